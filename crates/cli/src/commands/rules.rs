//! `rules show`, `check`, `report`: the rules of the project.
//!
//! Owns the words. Rules are text that people wrote and lessons are text of agents: both are shown
//! escaped (S20). `check` ends with 1 when a line is not as it should be, or a rule claims an
//! enforcement that is off; `show` only when there is no rule to show.

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::rules::{FILE, Fault, Rule};
use baton_engine::api::RulesReport;
use baton_engine::rules::report::{self, Found, Informed, Report};
use baton_engine::rules::{self, Checked, CheckedRule, Shown, Source};
use clap::Subcommand;
use serde_json::json;

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::render::{Paint, ago, counted, paint, shown, shown_lines, table};
use crate::words::Problem;

const COMMIT_DIGITS: usize = 10;
/// More faulty lines than these are counted.
const LINES_NAMED_MAX: usize = 5;
const MENDING: &str = "put that right in .baton/rules.md, and commit it where work lands";

#[derive(Debug, Subcommand)]
pub(crate) enum Rules {
    /// The rules that count now, with what was learnt about each
    Show,
    /// Is every line as it should be, and is what they name really on?
    ///
    /// Exit codes: 0 yes, 1 a line is not as it should be, or a rule claims an enforcement that is
    /// off.
    Check,
    /// Who was told which version, and what was done against which rule
    Report(RulesReport),
}

pub(crate) fn run(common: &Common, wanted: &Rules) -> Outcome {
    let mut desk = Desk::open(common)?;
    match wanted {
        Rules::Show => show(&mut desk),
        Rules::Check => check(&mut desk),
        Rules::Report(wanted) => {
            let found = report::report(&mut desk.workspace, wanted)?;
            desk.answer(&found, report_words);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn none() -> Problem {
    Problem {
        exit: 1,
        code: "no_rules",
        message: format!("this project has no rules: there is no {FILE}"),
        next: "baton init writes some to begin with; commit them where work lands".to_owned(),
        details: json!({}),
    }
}

/// There is a file, and no rule in it.
fn unreadable(faults: &[Fault]) -> Problem {
    let why: Vec<String> = faults.iter().map(|fault| shown(&fault.to_string())).collect();
    Problem {
        exit: 1,
        code: "bad_rules",
        message: format!("{FILE} cannot be read: {}", why.join("; ")),
        next: MENDING.to_owned(),
        details: json!({ "faults": faults }),
    }
}

/// The rules are told all the same: which lines to look at, and who says what is wrong with them.
pub(crate) fn faulty(faults: &[Fault]) -> Option<String> {
    let mut lines: Vec<String> = faults.iter().map(|fault| fault.line.to_string()).collect();
    lines.dedup();
    match lines.as_slice() {
        [] => None,
        [line] => Some(format!("line {line} of {FILE} is faulty: baton rules check")),
        [first, .., last] if lines.len() > LINES_NAMED_MAX => {
            let count = lines.len();
            Some(format!(
                "{count} lines of {FILE} are faulty, {first} to {last}: baton rules check"
            ))
        }
        lines => {
            Some(format!("lines {} of {FILE} are faulty: baton rules check", lines.join(", ")))
        }
    }
}

/// Where the text was read.
fn origin(source: &Source) -> String {
    match source {
        Source::Target { branch, tip } => {
            format!("from {} at {}", shown(branch), &tip[..COMMIT_DIGITS.min(tip.len())])
        }
        Source::WorkingTree => {
            "from the working tree: the branch where work lands has no such file".to_owned()
        }
    }
}

fn show(desk: &mut Desk) -> Outcome {
    let found = rules::show(&mut desk.workspace)?.ok_or_else(none)?;
    let rules = &found.in_force.rules;
    if rules.rules.is_empty() && !rules.faults.is_empty() {
        return Err(unreadable(&rules.faults));
    }
    desk.answer(&found, show_words);
    Ok(ExitCode::SUCCESS)
}

/// What holds a rule up, in its own words; what Baton does not know holds nothing.
fn enforcement(rule: &Rule) -> String {
    let said = shown_lines(&rule.enforcement, "     ");
    match rule.names_nothing_known() {
        false => format!("enforced by: {said}"),
        true if said.is_empty() => "advice: no line says what enforces it".to_owned(),
        true => format!("advice: Baton knows nothing of what enforces it: {said}"),
    }
}

fn show_words(found: &Shown, colour: bool) -> String {
    let in_force = &found.in_force;
    let since = found
        .since
        .as_deref()
        .map(|commit| format!(", unchanged since {}", &commit[..COMMIT_DIGITS.min(commit.len())]));
    let version = paint(&in_force.version, Paint::Bold, colour);
    let origin = origin(&in_force.source);
    let mut text = format!("rules {version}, {origin}{}\n", since.unwrap_or_default());
    for rule in &in_force.rules.rules {
        let title = paint(&shown(&rule.title), Paint::Bold, colour);
        let _ = writeln!(text, "{:>3}. {title}", rule.number);
        if !rule.text.is_empty() {
            let _ = writeln!(text, "     {}", shown_lines(&rule.text, "     "));
        }
        let _ = writeln!(text, "     {}", paint(&enforcement(rule), Paint::Dim, colour));
        for lesson in found.lessons.iter().filter(|note| note.rule == Some(rule.number)) {
            let _ = writeln!(
                text,
                "     {} by {}, {}: {}",
                lesson.kind.word(),
                shown(&lesson.by.name),
                ago(lesson.at),
                shown_lines(&lesson.text, "       ")
            );
        }
    }
    let label = paint("note", Paint::Yellow, colour);
    if let Some(faulty) = faulty(&in_force.rules.faults) {
        let _ = writeln!(text, "{label}: {faulty}");
    }
    if let Some(here) = &found.here {
        let _ = writeln!(
            text,
            "{label}: {FILE} in this tree is another ({}); it counts once it has landed",
            here.version
        );
        for fault in &here.faults {
            let _ = writeln!(text, "  faulty {}", shown(&fault.to_string()));
        }
    }
    text
}

fn check(desk: &mut Desk) -> Outcome {
    let found = rules::check(&mut desk.workspace)?.ok_or_else(none)?;
    if found.rules.is_empty() && !found.faults.is_empty() {
        return Err(unreadable(&found.faults));
    }
    desk.answer(&found, check_words);
    Ok(if found.sound { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn check_words(found: &Checked, colour: bool) -> String {
    let mut text = format!("rules {}, {}\n", found.version, origin(&found.source));
    for rule in &found.rules {
        let (mark, hue) = match rule {
            CheckedRule { hollow: true, .. } => ("off", Paint::Red),
            CheckedRule { held, .. } if held.iter().any(|held| held.on) => ("on", Paint::Green),
            _ => ("advice", Paint::Yellow),
        };
        let mark = paint(&format!("{mark:<6}"), hue, colour);
        let _ = writeln!(text, "{mark} {:>2}. {}", rule.number, shown(&rule.title));
        for held in &rule.held {
            let state = if held.on { "on" } else { "off" };
            let _ = writeln!(text, "           {}: {state}, {}", held.by.name(), shown(&held.why));
        }
    }
    if !found.free.is_empty() {
        let count = counted(found.free.len() as u64, "number is", "numbers are");
        let _ = writeln!(text, "{count} free for rules of yours");
    }
    for fault in &found.faults {
        let label = paint("faulty", Paint::Red, colour);
        let _ = writeln!(text, "{label} {}", shown(&fault.to_string()));
    }
    if !found.faults.is_empty() {
        let _ = writeln!(text, "next: {MENDING}");
    }
    if found.rules.iter().any(|rule| rule.hollow) {
        text.push_str(
            "a rule claims an enforcement that is off: switch it on, or write \"advice\"\n",
        );
        text.push_str("next: baton doctor, to see what is not guarded\n");
    }
    text
}

fn report_words(found: &Report, colour: bool) -> String {
    let mut text = match &found.version {
        Some(version) => format!("rules {version}\n"),
        None => "this project has no rules\n".to_owned(),
    };
    let rows: Vec<Vec<String>> = found.sessions.iter().map(informed_row).collect();
    match rows.is_empty() {
        true => text.push_str("no session was told of them\n"),
        false => text.push_str(&table(&["SESSION", "TOLD", "WHEN", ""], &rows, colour)),
    }
    for rule in found.rules.iter().filter(|rule| !rule.found.is_empty()) {
        let title = format!("rule {}. {}", rule.number, shown(&rule.title));
        findings_words(&mut text, &title, &rule.found, colour);
    }
    if found.rules.iter().all(|rule| rule.found.count == 0) {
        text.push_str("nothing in the journal speaks against a rule\n");
    }
    if !found.without_rule.is_empty() {
        findings_words(&mut text, "what no rule names", &found.without_rule, colour);
    }
    text
}

fn informed_row(informed: &Informed) -> Vec<String> {
    let note = match (&informed.version, informed.current, informed.live) {
        (None, ..) => "not told yet; baton prime tells",
        (Some(_), true, _) => "current",
        (Some(_), false, true) => "older; told anew at its next start",
        (Some(_), false, false) => "older",
    };
    vec![
        shown(&informed.name),
        informed.version.as_deref().map_or_else(|| "-".to_owned(), shown),
        informed.at.map_or_else(|| "-".to_owned(), ago),
        note.to_owned(),
    ]
}

fn findings_words(text: &mut String, title: &str, found: &Found, colour: bool) {
    let title = paint(title, Paint::Bold, colour);
    let refused = match found.refused {
        0 => String::new(),
        all if all == found.count => ", refused".to_owned(),
        some => format!(", {some} of them refused"),
    };
    let count = counted(found.count as u64, "finding", "findings");
    let _ = writeln!(text, "{title}: {count}{refused}");
    if found.count > 1 {
        let by: Vec<String> =
            found.by.iter().map(|one| format!("{} {}", name(&one.who), one.count)).collect();
        let _ = writeln!(text, "  {}", by.join(", "));
    }
    if found.evidence.len() < found.count {
        let _ = writeln!(text, "  the newest {}; baton journal has all", found.evidence.len());
    }
    for one in &found.evidence {
        let (who, what) = (name(&one.who), shown(&one.what));
        let at = one.position.to_string();
        let _ = writeln!(text, "  {at:<8} {}, {who}: {what}", ago(one.at));
    }
    for one in &found.turned_away {
        let times = counted(one.count as u64, "time", "times");
        let (who, what) = (name(&one.who), shown(&one.last.what));
        let (at, last) = (one.last.position.to_string(), ago(one.last.at));
        let line = format!("{at:<8} {who} was turned away {times}; {last} it {what}");
        let _ = writeln!(text, "  {}", paint(&line, Paint::Dim, colour));
    }
}

/// What nobody did by name, Baton did.
fn name(who: &str) -> String {
    if who.is_empty() { "baton".to_owned() } else { shown(who) }
}
