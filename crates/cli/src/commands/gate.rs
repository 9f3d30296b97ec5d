//! `gate add`, `list`, `show`, `approve`, `deny`, `check` and `trust`.
//!
//! Owns the words; what may happen is decided in `baton_core::gates`. Filing needs no session;
//! deciding needs a person.

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::gate::{self, Check, Outcome as Came};
use baton_core::gates::Added;
use baton_core::gates::deciding::{Decided, Trusted};
use baton_engine::api::gates as api;
use baton_engine::gating::{self, Checks, GateList, ShownGate};
use baton_engine::whoami;
use clap::Subcommand;

use super::task::quoted;
use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{self, Paint, paint, shown, table};
use crate::words::decision_words;

/// Questions are cut here in a table; `show` has all of it.
const CELL_MAX: usize = 60;

#[derive(Debug, Subcommand)]
pub(crate) enum Gate {
    /// Ask before work goes on
    Add(api::Add),
    /// What is open, oldest first
    List {
        /// What is decided too, newest first
        #[arg(long)]
        all: bool,
    },
    /// Everything about one gate
    Show {
        #[arg(value_name = "ID")]
        gate: String,
    },
    /// Say yes, or choose (a person's right)
    Approve(api::Decide),
    /// Say no (a person's right)
    Deny(api::Decide),
    /// Look whether the condition of a gate holds, or of all that Baton may look at
    Check {
        #[arg(value_name = "ID")]
        gate: Option<String>,
    },
    /// Say that the command of a gate may be run (a person's right)
    Trust {
        #[arg(value_name = "ID")]
        gate: String,
    },
}

pub(crate) fn run(common: &Common, command: &Gate) -> Outcome {
    let mut desk = match command {
        Gate::List { .. } | Gate::Show { .. } => Desk::open(common)?,
        _ => Desk::open_as(common, whoami::actor)?,
    };
    let outcome = serve(&mut desk, command);
    desk.tell_of_gates();
    outcome
}

fn serve(desk: &mut Desk, command: &Gate) -> Outcome {
    let Desk { workspace, actor, cwd, operation, .. } = &mut *desk;
    let operation = operation.as_deref();
    match command {
        Gate::Add(wanted) => {
            let added = gating::add(workspace, actor, cwd, wanted, operation)?;
            desk.answer(&added, added_words);
        }
        Gate::List { all } => {
            let found = gating::list(workspace, *all)?;
            desk.answer(&found, list_words);
        }
        Gate::Show { gate } => {
            let found = gating::show(workspace, gate)?;
            desk.answer(&found, page);
        }
        Gate::Approve(wanted) => {
            let decided = gating::decide(workspace, actor, wanted, true, operation)?;
            desk.answer(&decided, decided_words);
        }
        Gate::Deny(wanted) => {
            let decided = gating::decide(workspace, actor, wanted, false, operation)?;
            desk.answer(&decided, decided_words);
        }
        Gate::Check { gate } => {
            let checks = gating::check(workspace, gate.as_deref())?;
            desk.answer(&checks, checks_words);
        }
        Gate::Trust { gate } => {
            let trusted = gating::trust(workspace, actor, gate, operation)?;
            desk.answer(&trusted, |trusted: &Trusted, colour| {
                let word = paint("trusted", Paint::Green, colour);
                format!("{word} {}: {}\n", trusted.gate, argv_words(&trusted.command))
            });
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What a person types to decide it.
pub(crate) fn answer(gate: &gate::Gate) -> String {
    let id = &gate.gate;
    if gate.kind == gate::Kind::Command && !gate.trusted {
        return format!("baton gate trust {id}, or baton gate deny {id} --why '…'");
    }
    let option = match gate.options.is_empty() {
        true => String::new(),
        false => {
            let options: Vec<String> = gate.options.iter().map(|option| shown(option)).collect();
            format!(" --option '{}'", options.join("|"))
        }
    };
    format!("baton gate approve {id}{option} --why '…', or baton gate deny {id} --why '…'")
}

pub(super) fn argv_words(argv: &[String]) -> String {
    // As a shell would read them: where one word ends and the next begins is never in doubt.
    let quoted = |word: &String| format!("'{}'", shown(word).replace('\'', "'\\''"));
    let words: Vec<String> = argv.iter().map(quoted).collect();
    words.join(" ")
}

fn added_words(added: &Added, colour: bool) -> String {
    let verb = if added.known { "already open" } else { "opened" };
    let mut text = format!(
        "{} {}, {} on {}: {}\n",
        paint(verb, Paint::Green, colour),
        paint(added.gate.as_str(), Paint::Bold, colour),
        added.kind.name(),
        shown(&added.on),
        shown(&added.ask)
    );
    if let Some(task) = &added.task {
        let _ = writeln!(text, "{task} waits until it is decided");
    }
    if added.needs_trust {
        let word = paint("note", Paint::Yellow, colour);
        let _ = writeln!(text, "{word}: a person must trust the command before it is run");
    }
    text + &notices_words(&added.notices, colour)
}

fn list_words(found: &GateList, colour: bool) -> String {
    if found.gates.is_empty() {
        return "no gate is open\n".to_owned();
    }
    let rows: Vec<Vec<String>> = found.gates.iter().map(row).collect();
    let headings = ["GATE", "ON", "KIND", "SINCE", "STATE", "QUESTION"];
    let mut text = table(&headings, &rows, colour);
    if found.more {
        text.push_str("there are more: baton gate show ID\n");
    }
    for gate in found.gates.iter().filter(|gate| gate.is_open() && !gate.kind.is_automatic()) {
        let _ = writeln!(text, "{}: {}", paint("answer", Paint::Cyan, colour), answer(gate));
    }
    text
}

fn row(gate: &gate::Gate) -> Vec<String> {
    let ask = shown(&gate.ask);
    let ask = match ask.chars().count() > CELL_MAX {
        true => ask.chars().take(CELL_MAX - 1).chain(['…']).collect(),
        false => ask,
    };
    vec![
        gate.gate.to_string(),
        shown(&gate.on),
        gate.kind.name().to_owned(),
        render::ago(gate.opened_at),
        gate.decision.as_ref().map_or("open", |decision| decision.outcome.name()).to_owned(),
        ask,
    ]
}

fn page(found: &ShownGate, colour: bool) -> String {
    let gate = &found.gate;
    let by = gate.opened_by.as_ref().map(|by| format!(" by {}", shown(&by.name)));
    let mut text = format!(
        "{} {} on {}, opened {}{}\n",
        paint(gate.gate.as_str(), Paint::Bold, colour),
        gate.kind.name(),
        shown(&gate.on),
        render::ago(gate.opened_at),
        by.unwrap_or_default()
    );
    text.push_str(&quoted(&gate.ask));
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "  {:<9}{value}", format!("{name}:"));
        }
    };
    let options: Vec<String> = gate.options.iter().map(|option| shown(option)).collect();
    fact("options", (!options.is_empty()).then(|| options.join(", ")));
    fact("commit", gate.commit.as_deref().map(shown));
    fact("checks", gate.check.as_ref().map(|check| check_words(check, gate.trusted)));
    fact(
        "looked",
        gate.checked.as_ref().map(|checked| {
            let how = if checked.passed { "passes" } else { "does not pass" };
            format!("{}, {how}: {}", render::ago(checked.at), shown(&checked.saw))
        }),
    );
    for reason in &gate.reasons {
        let _ = writeln!(text, "{} says {}", shown(&reason.by.name), shown(&reason.says));
        text.push_str(&reason.why.as_deref().map(quoted).unwrap_or_default());
    }
    for said in &found.feedback {
        let by = shown(&said.by.name);
        let _ = writeln!(text, "feedback of {by} on attempt {}", said.attempt);
        text.push_str(&quoted(&said.text));
    }
    let last = match &gate.decision {
        Some(decision) => decision_words(decision),
        None if gate.kind.is_automatic() && gate.trusted => {
            format!("{}: baton gate check {}", paint("next", Paint::Cyan, colour), gate.gate)
        }
        None => format!("{}: {}", paint("answer", Paint::Cyan, colour), answer(gate)),
    };
    let _ = writeln!(text, "{last}");
    text
}

fn check_words(check: &Check, trusted: bool) -> String {
    match check {
        Check::Time { at } => format!("opens at {}", render::until(*at)),
        Check::File { path } => format!("{} must be there", shown(path)),
        Check::Command { argv } => {
            let trust = if trusted { "" } else { " (nobody stands for it yet)" };
            format!("{} must succeed{trust}", argv_words(argv))
        }
    }
}

fn decided_words(decided: &Decided, colour: bool) -> String {
    let tint = match decided.decision.outcome {
        Came::Approved | Came::Passed => Paint::Green,
        Came::Denied | Came::Moot => Paint::Yellow,
    };
    let word = paint(decided.decision.outcome.name(), tint, colour);
    let mut text = format!("{word} {} on {}", decided.gate, shown(&decided.on));
    if let (Some(task), Some(state)) = (&decided.task, decided.state) {
        let _ = write!(text, "; {task} is {} now", state.name());
    }
    text.push('\n');
    if !decided.woken.is_empty() {
        let names: Vec<&str> = decided.woken.iter().map(|task| task.as_str()).collect();
        let _ = writeln!(text, "{} {}", paint("ready now", Paint::Green, colour), names.join(", "));
    }
    text + &notices_words(&decided.notices, colour)
}

fn checks_words(checks: &Checks, colour: bool) -> String {
    if checks.gates.is_empty() {
        return "nothing to look at\n".to_owned();
    }
    let mut text = String::new();
    for looked in &checks.gates {
        let (word, tint) = match looked.passed {
            true => ("passed", Paint::Green),
            false => ("waits", Paint::Yellow),
        };
        let (gate, on, saw) = (&looked.gate, shown(&looked.on), shown(&looked.saw));
        let _ = writeln!(text, "{} {gate} on {on}: {saw}", paint(word, tint, colour));
    }
    text
}
