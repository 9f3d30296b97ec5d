//! How tasks look: the table that tells everything at a glance, and the page of one task.
//!
//! Owns appearance only. All text of agents goes through `shown`, line by line (S20).

use std::fmt::Write as _;

use baton_core::task::dossier::Past;
use baton_core::task::{Move, State, Verdict};
use baton_engine::tasking::showing::{ListedTask, ShownTask, TaskList};

use crate::commands::handoff;
use crate::render::{self, Paint, paint, shown, table};

/// Titles and texts are cut here in a table; `show` has all of it.
const CELL_MAX: usize = 48;
/// Lines of a long text that a page shows.
const LINES_MAX: usize = 200;

fn cell(text: &str) -> String {
    let text = shown(text);
    match text.chars().count() > CELL_MAX {
        true => text.chars().take(CELL_MAX - 1).chain(['…']).collect(),
        false => text,
    }
}

/// Who works on it, or why nobody does.
fn next_cell(task: &ListedTask) -> String {
    let reason = task.reason.as_deref();
    if let Some(offer) = &task.offer {
        return format!("offered to {}: {}", handoff::to_words(&offer.to), offer.handoff);
    }
    match task.state {
        State::Blocked | State::Failed | State::Waiting => reason.or(task.next_action.as_deref()),
        _ => task.next_action.as_deref().or(reason),
    }
    .map(cell)
    .unwrap_or_default()
}

pub(super) fn owner_cell(task: &ListedTask) -> String {
    match &task.owner {
        None => match (&task.author, task.reviewers.as_slice()) {
            (Some(author), []) => format!("({})", shown(author)),
            (Some(author), reviewers) => {
                let names: Vec<String> = reviewers.iter().map(|name| shown(name)).collect();
                format!("({}) {}", shown(author), names.join(" "))
            }
            (None, _) => "-".to_owned(),
        },
        Some(owner) if owner.run_out => format!("{} (run out)", shown(&owner.name)),
        Some(owner) => shown(&owner.name),
    }
}

pub(super) fn attempt_cell(task: &ListedTask) -> String {
    match task.attempt {
        0 => "-".to_owned(),
        attempt => format!("{attempt}/{}", task.max_attempts),
    }
}

pub(super) fn table_of(found: &TaskList, nothing: &str, colour: bool) -> String {
    if found.tasks.is_empty() {
        return format!("{nothing}\n");
    }
    let rows: Vec<Vec<String>> = found
        .tasks
        .iter()
        .map(|task| {
            vec![
                task.task.to_string(),
                task.priority.to_string(),
                task.state.name().to_owned(),
                owner_cell(task),
                attempt_cell(task),
                render::ago(task.since),
                cell(&task.title),
                next_cell(task),
            ]
        })
        .collect();
    let headings = ["TASK", "PRIO", "STATE", "OWNER", "ATTEMPT", "SINCE", "TITLE", "NEXT"];
    table(&headings, &rows, colour) + &more(found)
}

pub(super) fn blocked_table(found: &TaskList, colour: bool) -> String {
    if found.tasks.is_empty() {
        return "nothing is blocked\n".to_owned();
    }
    let rows: Vec<Vec<String>> = found
        .tasks
        .iter()
        .map(|task| {
            vec![
                task.task.to_string(),
                task.priority.to_string(),
                render::ago(task.since),
                cell(&task.title),
                task.reason.as_deref().map(shown).unwrap_or_default(),
            ]
        })
        .collect();
    table(&["TASK", "PRIO", "SINCE", "TITLE", "WHY"], &rows, colour) + &more(found)
}

fn more(found: &TaskList) -> String {
    match found.more {
        true => "there are more: --limit N\n".to_owned(),
        false => String::new(),
    }
}

/// A long text as quoted data, each line escaped and marked.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for line in text.lines().take(LINES_MAX) {
        let _ = writeln!(quoted, "  | {}", shown(line));
    }
    if text.lines().count() > LINES_MAX {
        quoted.push_str("  | … (the rest: --json)\n");
    }
    quoted
}

/// `attempt 1 by bob, 20m, failed: it broke; next: run the tests`.
pub(super) fn past_words(past: &Past) -> String {
    let how = match past.how {
        Move::Done => "done",
        Move::Failed => "failed",
        Move::RateLimited => "rate-limited",
        Move::Auth => "its login had expired",
        Move::Killed => "killed",
        Move::RanOut => "its lease ran out",
        Move::SessionEnded => "its session ended",
        Move::SessionDied => "its process ended",
        Move::Parked => "parked",
        Move::Blocked => "blocked",
        Move::Cancelled => "cancelled",
        Move::HandedOver => "handed over",
        Move::NoProgress => "nothing was new",
        Move::Unanswered => "its offer was not answered",
        Move::TakenAnew => "taken again by the same session",
        Move::Submitted => "handed in for review",
        Move::Withdrawn => "withdrawn from review",
        Move::Approved => "approved",
        Move::Rejected => "rejected",
        Move::Held => "held by a gate",
        Move::Split => "divided into parts",
        Move::Answered | Move::Revived | Move::Joined => "moved on",
        Move::Taken | Move::Woken | Move::Unblocked | Move::Reopened => "moved on",
    };
    let why = match &past.why {
        Some(why) if why != how => format!(": {}", shown(why)),
        _ => String::new(),
    };
    let next = match &past.next_action {
        Some(next) => format!("; next: {}", shown(next)),
        None => String::new(),
    };
    let (name, time) = (shown(&past.name), past.until.since(past.from));
    format!("attempt {} by {name}, {time}, {how}{why}{next}", past.attempt)
}

/// The page of one task.
pub(super) fn page(task: &ShownTask, colour: bool) -> String {
    let glance = &task.glance;
    let mut text = format!(
        "{} {}\n",
        paint(glance.task.as_str(), Paint::Bold, colour),
        paint(&shown(&glance.title), Paint::Bold, colour)
    );
    for (name, value) in facts(task, colour) {
        let _ = writeln!(text, "  {:<13}{value}", format!("{name}:"));
    }
    for (name, long) in [
        ("Body", task.body.as_deref()),
        ("Done", task.report_done.as_deref()),
        ("Not done", task.report_not_done.as_deref()),
    ] {
        if let Some(long) = long {
            let _ = write!(text, "\n{}\n{}", paint(name, Paint::Bold, colour), quoted(long));
        }
    }
    if let Some(result) = &task.result {
        let pretty = serde_json::to_string_pretty(result).unwrap_or_default();
        let _ = write!(text, "\n{}\n{}", paint("Result", Paint::Bold, colour), quoted(&pretty));
    }
    for run in &task.checks {
        let how = match run.exit {
            0 => paint("passed", Paint::Green, colour),
            exit => paint(&format!("failed with {exit}"), Paint::Red, colour),
        };
        let argv = shown(&run.argv.join(" "));
        let _ =
            writeln!(text, "  check {} {how} {}: {argv}", shown(&run.name), render::ago(run.at));
    }
    if let Some(results) = &task.results {
        let _ = write!(text, "\n{}", super::parts::results_words(results, colour));
    }
    if !task.attempts.is_empty() {
        let _ = write!(text, "\n{}\n", paint("Earlier attempts", Paint::Bold, colour));
        for past in &task.attempts {
            let _ = writeln!(text, "  {}, {}", past_words(past), render::ago(past.until));
        }
    }
    for said in &task.feedback {
        let by = shown(&said.by.name);
        let _ = write!(text, "\nFeedback of {by} on attempt {}\n", said.attempt);
        text.push_str(&quoted(&said.text));
    }
    text.push_str(&handoffs(task, colour));
    text
}

/// Everything that was handed over or saved, oldest first.
fn handoffs(task: &ShownTask, colour: bool) -> String {
    let mut text = String::new();
    for one in &task.handoffs {
        let name = format!("Handoff {}", one.handoff);
        let _ = write!(text, "\n{}", paint(&name, Paint::Bold, colour));
        text.push_str(&handoff::handoff_words(one));
    }
    if !task.checkpoints.is_empty() {
        let _ = writeln!(text, "\n{}", paint("Saved by code", Paint::Bold, colour));
        for saved in &task.checkpoints {
            let _ = writeln!(text, "  {}", handoff::saved_words(saved));
        }
    }
    text
}

/// `bob approved: good`.
pub(super) fn verdict_words(verdict: &Verdict) -> String {
    let verb = if verdict.approves { "approved" } else { "rejected" };
    let text = verdict.text.as_deref().map(|text| format!(": {}", shown(text)));
    format!("{} {verb}{}", shown(&verdict.by.name), text.unwrap_or_default())
}

fn facts(task: &ShownTask, colour: bool) -> Vec<(&'static str, String)> {
    let glance = &task.glance;
    let state = {
        let tint = match glance.state {
            State::Active | State::Review | State::Done => Paint::Green,
            State::Blocked | State::Parked | State::Waiting => Paint::Yellow,
            State::Failed => Paint::Red,
            State::Open | State::Cancelled => Paint::Cyan,
        };
        let why = glance.reason.as_deref().map(|why| format!(": {}", shown(why)));
        let name = paint(glance.state.name(), tint, colour);
        format!("{name} since {}{}", render::until(glance.since), why.unwrap_or_default())
    };
    let mut facts = vec![("state", state)];
    if let Some(owner) = &glance.owner {
        let lease = match owner.run_out {
            true => "its lease is over: whoever takes next has it".to_owned(),
            false => format!("until {}", render::until(owner.expires_at)),
        };
        let name = shown(&owner.name);
        facts
            .push(("owner", format!("{name} ({}), token {}, {lease}", owner.session, owner.token)));
    }
    if let Some(offer) = &glance.offer {
        let to = handoff::to_words(&offer.to);
        let until = render::until(offer.until);
        facts.push(("offered", format!("to {to} until {until}: {}", offer.handoff)));
    }
    if let Some(author) = &glance.author {
        facts.push(("author", shown(author)));
    }
    if let Some(submission) = &task.submission {
        let to = submission.to.as_deref().map(|to| format!(" for {}", shown(to)));
        let (commit, ago) = (shown(&submission.commit), render::ago(submission.at));
        facts.push(("commit", format!("{commit}, handed in {ago}{}", to.unwrap_or_default())));
        facts.extend(submission.verdicts.iter().map(|verdict| ("review", verdict_words(verdict))));
    }
    if !glance.reviewers.is_empty() {
        let names: Vec<String> = glance.reviewers.iter().map(|name| shown(name)).collect();
        facts.push(("reviewed by", names.join(", ")));
    }
    let attempts = format!("{}, {} used", attempt_cell(glance), glance.attempts_used);
    facts.push(("attempt", attempts));
    let mut optional = |name, value: Option<String>| {
        facts.extend(value.map(|value| (name, value)));
    };
    optional("next action", glance.next_action.as_deref().map(shown));
    optional("not before", glance.not_before.map(render::until));
    let unblocks = match glance.unblocks {
        0 => String::new(),
        count => format!(", unblocks {count}"),
    };
    optional("priority", Some(format!("{}{unblocks}", glance.priority)));
    optional("phase", glance.phase.map(|phase| phase.to_string()));
    optional("role", glance.role.as_deref().map(shown));
    let listed = |texts: Vec<String>| (!texts.is_empty()).then(|| texts.join(", "));
    optional("labels", listed(glance.labels.iter().map(|label| shown(label)).collect()));
    optional("paths", listed(glance.paths.iter().map(|one| shown(&one.to_string())).collect()));
    optional("after", listed(glance.after.iter().map(ToString::to_string).collect()));
    optional("parent", task.parent.as_ref().map(ToString::to_string));
    optional("parts", listed(task.children.iter().map(ToString::to_string).collect()));
    optional("interface", task.interface.as_deref().map(shown));
    optional("budget", task.budget_usd.map(|budget| budget.to_string()));
    optional("key", task.key.as_deref().map(shown));
    let by = task.created_by.as_ref().map(|by| format!(" by {}", shown(&by.name)));
    optional("filed", Some(format!("{}{}", render::ago(task.created_at), by.unwrap_or_default())));
    facts
}
