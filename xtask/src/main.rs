//! `cargo xtask`: what people who work on Baton do with it, besides using it.
//!
//! Owns the list of verbs and nothing else: each verb is one file. A verb fails at the first thing
//! that is wrong and says in its last line what that was. Nothing here is part of the product.

use std::process::ExitCode;

mod dist;
mod failure;
mod fuzz;
mod proof;
mod reference;
mod run;
mod test;
mod tidy;

use failure::Failure;

struct Verb {
    name: &'static str,
    summary: &'static str,
    help: &'static str,
    act: fn(&[String]) -> Result<(), Failure>,
}

const VERBS: &[Verb] = &[
    Verb {
        name: "test",
        summary: "everything that must hold before a change is taken",
        help: test::HELP,
        act: test::act,
    },
    Verb { name: "tidy", summary: "the rules of the house", help: tidy::HELP, act: tidy::act },
    Verb {
        name: "dist",
        summary: "the static binary, in target/dist",
        help: dist::HELP,
        act: dist::act,
    },
    Verb {
        name: "soak",
        summary: "histories of killed processes against the journal, as long as asked",
        help: proof::SOAK_HELP,
        act: proof::soak,
    },
    Verb {
        name: "fuzz",
        summary: "spoiled payloads, patches and shell lines, as long as asked",
        help: fuzz::HELP,
        act: fuzz::act,
    },
    Verb {
        name: "bench",
        summary: "what Baton costs, against an empty process",
        help: proof::BENCH_HELP,
        act: proof::bench,
    },
    Verb {
        name: "reference",
        summary: "the generated pages in docs/reference",
        help: reference::HELP,
        act: reference::act,
    },
];

fn main() -> ExitCode {
    if let Some(ended) = dist::linker::as_linker() {
        return ended;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (first, rest) = match words.split_first() {
        Some((first, rest)) => (first.as_str(), rest),
        None => ("--help", &words[..]),
    };
    if matches!(first, "help" | "-h" | "--help") {
        print!("{}", overview());
        return ExitCode::SUCCESS;
    }
    let Some(verb) = VERBS.iter().find(|verb| verb.name == first) else {
        eprint!("xtask: there is no verb {first:?}\n\n{}", overview());
        return ExitCode::from(2);
    };
    // What follows `--` belongs to somebody else, its --help included.
    let ours = rest.iter().take_while(|word| *word != "--");
    if ours.into_iter().any(|word| matches!(word.as_str(), "-h" | "--help")) {
        print!("{}", verb.help);
        return ExitCode::SUCCESS;
    }
    match (verb.act)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask {}: {failure}", verb.name);
            failure.exit_code()
        }
    }
}

fn overview() -> String {
    let mut text = String::from("Usage: cargo xtask VERB [OPTIONS]\n\n");
    for Verb { name, summary, .. } in VERBS {
        text.push_str(&format!("  {name:<10} {summary}\n"));
    }
    text.push_str("\n`cargo xtask VERB --help` says more.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_in_the_overview_and_its_help_names_it() {
        for verb in VERBS {
            assert!(overview().contains(verb.summary), "{}", verb.name);
            assert!(verb.help.contains(&format!("cargo xtask {}", verb.name)), "{}", verb.name);
        }
    }
}
