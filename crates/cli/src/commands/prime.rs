//! `baton prime`: everything an agent must know to begin, in few words.
//!
//! Owns the order of what is said and of what is cut. The last section is cut first, line by line
//! from its end, and says which command shows the rest. Who you are, the first lines of your work
//! and the news stay, and are shortened only by texts in scripts that cost a model much.

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::handoff::Handoff;
use baton_core::resource::Resource;
use baton_core::rules::{FILE, Rule};
use baton_engine::escape::for_models;
use baton_engine::priming::{self, Elsewhere, Primer, Work};
use baton_engine::rules::InForce;
use baton_engine::sessions::SeatState;

use crate::arguments::Common;
use crate::commands::rules::faulty;
use crate::desk::{Desk, Outcome};
use crate::hooks::words::{changed_since, told};
use crate::render::{self, counted, shown};

/// What one token of a model is worth in `weight`.
const TOKEN: usize = 6;
const WEIGHT_MAX: usize = 700 * TOKEN;
/// Longer texts of others are cut here, in bytes: the whole is one command away.
const TEXT_MAX: usize = 140;
/// A shorter line is not cut further.
const LINE_MIN: usize = 60;
/// Of a longer chain of handoffs the first and the last are named.
const CHAIN_MAX: usize = 4;
/// What one holder has for more reasons than these is counted.
const REASONS_MAX: usize = 3;
/// Names of claims that come with a working tree.
const TREES: &str = "tree/";
/// The same for a sentence of news, which quotes such a text.
const NEWS_MAX: usize = 220;
/// Files that changed since they were read are named up to this; the others are counted.
const CHANGED_MAX: usize = 2;

pub(crate) fn run(common: &Common) -> Outcome {
    let mut desk = Desk::open_to_act(common)?;
    let primer = priming::primer(&mut desk.workspace, &desk.actor)?;
    desk.answer(&primer, |primer: &Primer, _| format!("{}\n", text(primer)));
    Ok(ExitCode::SUCCESS)
}

/// A heading with lines below it, and the command that shows more.
struct Section {
    heading: String,
    lines: Vec<String>,
    more: &'static str,
    /// How many of the lines always stay.
    keep: usize,
}

/// What is said at the start of a session.
pub(crate) fn text(primer: &Primer) -> String {
    let mut sections = vec![who(primer), work(primer), rules(primer), news(primer)];
    sections.extend([claims(primer), others(primer), notes(primer)]);
    fit(sections, WEIGHT_MAX)
}

/// What a character costs a model at most. Three letters of a word are a token at least; digits and
/// signs make more of them; of other scripts every byte may be one.
fn weight_of(character: char) -> usize {
    match character {
        'a'..='z' | 'A'..='Z' | ' ' | '\n' => TOKEN / 3,
        _ if character.is_ascii() => TOKEN / 2,
        _ => TOKEN * character.len_utf8(),
    }
}

fn weight(text: &str) -> usize {
    text.chars().map(weight_of).sum()
}

fn fit(mut sections: Vec<Section>, weight_max: usize) -> String {
    let mut cut_off = vec![0_usize; sections.len()];
    loop {
        let text = for_models(&joined(&sections, &cut_off));
        if weight(&text) <= weight_max {
            return text;
        }
        let loose = |at: &usize| sections[*at].lines.len() > sections[*at].keep;
        if let Some(last) = (0..sections.len()).rev().find(loose) {
            sections[last].lines.pop();
            cut_off[last] += 1;
            continue;
        }
        // Whatever others wrote, what stays need not stay whole.
        let lines = sections.iter_mut().skip(1).flat_map(|one| &mut one.lines);
        let longest = lines.max_by_key(|line| weight(line));
        if let Some(line) = longest.filter(|line| line.len() > LINE_MIN) {
            *line = cut(line, line.len() / 2);
            continue;
        }
        let mut others = sections.iter_mut().skip(1);
        let Some(kept) = others.find(|one| one.keep > 1) else { return text };
        kept.keep -= 1;
    }
}

fn joined(sections: &[Section], cut: &[usize]) -> String {
    let mut text = String::new();
    for (at, (section, cut)) in sections.iter().zip(cut).enumerate() {
        // Who you are is said by the heading itself, whatever follows.
        if at > 0 && section.lines.is_empty() && *cut == 0 {
            continue;
        }
        let _ = writeln!(text, "{}", section.heading);
        for line in &section.lines {
            let _ = writeln!(text, "- {line}");
        }
        if *cut > 0 {
            let _ = writeln!(text, "- … {cut} more: {}", section.more);
        }
    }
    text.trim_end().to_owned()
}

fn who(primer: &Primer) -> Section {
    let me = &primer.me;
    let may = primer.may.as_deref().map(|may| format!(" ({})", short(may))).unwrap_or_default();
    let role = me.role.as_deref().map(|role| format!(", role {}{may}", short(role)));
    let role = role.unwrap_or_default();
    let branch = primer.branch.as_deref().map(|branch| format!(" on branch {}", short(branch)));
    let others = match primer.sessions {
        0 => "no other session".to_owned(),
        count => counted(count as u64, "other session", "other sessions"),
    };
    let heading = format!(
        "Baton keeps the agents on this codebase out of each other's way. You are {} ({}){role}{}; \
         {others} at work.",
        short(&me.name),
        me.session,
        branch.unwrap_or_default()
    );
    let mut lines = Vec::new();
    lines.extend(primer.edits.then(|| {
        "An edit claims its file. If one is denied, do something else: never go around it."
            .to_owned()
    }));
    lines.extend(primer.commits.then(|| {
        "Commit your files with `baton commit -m MSG`, land with `baton land`.".to_owned()
    }));
    Section { heading, lines, more: "baton --help", keep: 2 }
}

fn short(text: &str) -> String {
    cut(&for_models(&shown(text)), TEXT_MAX)
}

/// No more of it than so many bytes.
fn cut(text: &str, bytes_max: usize) -> String {
    match text.len() <= bytes_max {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(bytes_max)]),
    }
}

fn work(primer: &Primer) -> Section {
    let mut lines: Vec<String> = primer.work.iter().flat_map(work_lines).collect();
    let heading = match primer.work.is_empty() {
        false => "Your work:".to_owned(),
        true => "You have no task.".to_owned(),
    };
    if primer.work.is_empty() {
        lines.extend(primer.ready.iter().map(|task| {
            format!(
                "ready: {} \"{}\" (baton task take {})",
                task.task,
                short(&task.title),
                task.task
            )
        }));
    }
    let keep = if primer.work.is_empty() { 1 } else { 3 };
    let keep = keep.min(lines.len());
    Section { heading, lines, more: "baton task list", keep }
}

fn work_lines(work: &Work) -> Vec<String> {
    let task = &work.task;
    let mut lines = vec![format!(
        "{} \"{}\", {}, attempt {} of {}: baton task show {}",
        task.task,
        short(&task.title),
        task.state.name(),
        task.attempt,
        task.max_attempts,
        task.task
    )];
    if let Some(Elsewhere { tree, path }) = &work.elsewhere {
        let path = path.as_deref().map(short);
        let place = path.unwrap_or_else(|| format!("tree {tree}, {}", render::NOT_OF_THIS_CLONE));
        lines.push(format!("its work is not here: it is in {place}"));
    }
    if let Some(next) = &task.next_action {
        lines.push(format!("next step, as written down: \"{}\"", short(next)));
    }
    if let Some(last) = work.handoffs.last() {
        lines.push(format!(
            "handed over by {}: state \"{}\"; remaining \"{}\"",
            chain(&work.handoffs),
            short(&last.said.state),
            short(&last.said.remaining)
        ));
    }
    if let Some(note) = work.checkpoint.as_ref().and_then(|saved| saved.note.as_ref()) {
        lines.push(format!("checkpoint: \"{}\"", short(note)));
    }
    lines
}

/// Through whose hands it went.
fn chain(handoffs: &[Handoff]) -> String {
    let names: Vec<String> = handoffs.iter().map(|one| short(&one.from.name)).collect();
    match names.as_slice() {
        [first, between @ .., last] if names.len() > CHAIN_MAX => {
            format!("{first}, then {} others, then {last}", between.len())
        }
        all => all.join(", then "),
    }
}

fn news(primer: &Primer) -> Section {
    let lines = told(&primer.notices);
    // Long texts of others must not push the rules out.
    let bare = |line: &str| for_models(line.trim_start_matches("Baton: news: "));
    let mut lines: Vec<String> = lines.lines().map(|line| cut(&bare(line), NEWS_MAX)).collect();
    let changed = changed_since(&primer.stale, CHANGED_MAX);
    lines.extend(changed.iter().map(|line| cut(&for_models(line), NEWS_MAX)));
    // What is told here is told nowhere else.
    let keep = lines.len();
    Section { heading: "News:".to_owned(), lines, more: "baton status", keep }
}

fn claims(primer: &Primer) -> Section {
    let lines = primer.mine.iter().map(|claim| {
        format!("{} until {}", render::resources(&claim.resources), render::until(claim.expires_at))
    });
    let lines: Vec<String> = lines.collect();
    Section { heading: "You hold:".to_owned(), lines, more: "baton claims --mine", keep: 0 }
}

/// Each rule by its title; where the project has none, what holds anyway.
fn rules(primer: &Primer) -> Section {
    let lines = match &primer.rules {
        None => vec![
            "verify before you call it done, and report what was not done".to_owned(),
            "sync before a deploy; no placeholders in what ships".to_owned(),
            "before you stop: commit, and hand over or park your task".to_owned(),
        ],
        Some(InForce { rules, .. }) => {
            let line = |rule: &Rule| format!("{}. {}", rule.number, short(&rule.title));
            let fault = match rules.faults.first().filter(|_| rules.rules.is_empty()) {
                Some(why) => Some(format!("{FILE} cannot be read: {}", shown(&why.to_string()))),
                None => faulty(&rules.faults),
            };
            fault.into_iter().chain(rules.rules.iter().map(line)).collect()
        }
    };
    let heading = match &primer.rules {
        None => "Rules:".to_owned(),
        Some(rules) => format!("Rules: (version {}; in full: baton rules show)", rules.version),
    };
    Section { heading, lines, more: "baton rules show", keep: 0 }
}

/// What one holder has for one reason.
#[derive(Default)]
struct Held<'a> {
    why: Option<&'a str>,
    resources: Vec<Resource>,
}

impl Held<'_> {
    fn words(&self) -> String {
        // The name of a tree's own claim is a number; its reason says which tree that is.
        let is_tree = |one: &Resource| match one {
            Resource::Name { name, .. } => name.starts_with(TREES),
            _ => false,
        };
        let (trees, rest): (Vec<Resource>, Vec<Resource>) =
            self.resources.iter().cloned().partition(is_tree);
        match (trees.is_empty(), self.why, rest.is_empty()) {
            (true, None, _) => render::resources(&rest),
            (true, Some(why), _) => format!("{}: \"{}\"", render::resources(&rest), short(why)),
            (false, why, true) => short(why.unwrap_or("a working tree")),
            (false, why, false) => {
                let tree = short(why.unwrap_or("a working tree"));
                format!("{tree} with {}", render::resources(&rest))
            }
        }
    }
}

/// A line for each holder: one with many claims does not crowd out the others.
fn others(primer: &Primer) -> Section {
    let mut holders: Vec<(String, Vec<Held<'_>>)> = Vec::new();
    for claim in &primer.others {
        let away = match claim.holder_state {
            SeatState::Ended => " (ended, but its claims wait for it)",
            _ => "",
        };
        let name = format!("{}{away}", render::holder(&claim.holder));
        let at = match holders.iter().position(|(holder, _)| *holder == name) {
            Some(at) => at,
            None => {
                holders.push((name, Vec::new()));
                holders.len() - 1
            }
        };
        let (held, why) = (&mut holders[at].1, claim.reason.as_deref());
        match held.iter_mut().find(|held| held.why == why) {
            Some(held) => held.resources.extend(claim.resources.iter().cloned()),
            None => held.push(Held { why, resources: claim.resources.clone() }),
        }
    }
    let lines = holders.iter().map(|(name, held)| {
        let mut said: Vec<String> = held.iter().take(REASONS_MAX).map(Held::words).collect();
        let more = held.len().saturating_sub(REASONS_MAX);
        said.extend((more > 0).then(|| format!("and {more} more")));
        format!("{name} has {}", said.join("; "))
    });
    let lines: Vec<String> = lines.collect();
    Section { heading: "Others hold:".to_owned(), lines, more: "baton claims", keep: 0 }
}

fn notes(primer: &Primer) -> Section {
    let lines = primer.notes.iter().rev().map(|note| {
        format!("{} by {}: \"{}\"", note.kind.word(), shown(&note.by.name), short(&note.text))
    });
    let lines: Vec<String> = lines.collect();
    Section { heading: "Written down:".to_owned(), lines, more: "baton notes", keep: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_said_by_its_name_and_a_reason_only_of_what_it_is_for() {
        let held = |why, names: &[&str]| {
            let resource = |name: &&str| match name.strip_prefix('@') {
                Some(name) => Resource::Name { name: name.to_owned(), amount: 1 },
                None => Resource::literal(name).unwrap(),
            };
            Held { why, resources: names.iter().map(resource).collect() }.words()
        };
        assert_eq!(held(None, &["a.txt"]), "a.txt");
        assert_eq!(held(Some("mine"), &["a.txt"]), "a.txt: \"mine\"");
        assert_eq!(held(Some("the tree baton/x"), &["@tree/abb14c6e"]), "the tree baton/x");
        let ports = held(Some("the tree baton/x"), &["@tree/abb14c6e", "@port/4000"]);
        assert_eq!(ports, "the tree baton/x with @port/4000");
    }

    #[test]
    fn the_last_section_is_cut_first_and_the_first_lines_stay() {
        let section = |name: &str, count: usize, keep| Section {
            heading: format!("{name}:"),
            lines: (0..count).map(|at| format!("{name} line {at} {}", "x".repeat(60))).collect(),
            more: "baton more",
            keep,
        };
        let text = fit(vec![section("a", 3, 3), section("b", 30, 0), section("c", 30, 0)], 2_100);
        assert!(weight(&text) <= 2_100, "{}", weight(&text));
        assert!(text.contains("a line 2") && text.contains("b line 0"), "{text}");
        assert!(!text.contains("c line") && text.contains("… 30 more: baton more"), "{text}");
        let tight = fit(vec![section("a", 1, 1), section("b", 3, 3), section("c", 3, 0)], 10);
        assert!(tight.contains("a line 0") && tight.contains("b line 0"), "the first: {tight}");
        assert!(!tight.contains("b line 1") && !tight.contains("c line"), "{tight}");
    }
}
