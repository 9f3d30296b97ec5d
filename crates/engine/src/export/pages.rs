//! Tasks, handoffs, decisions and lessons as Markdown that people read.
//!
//! Owns the words of these files. The same state gives the same bytes: no clock is read, and a
//! task's lease, which runs on while nothing happens, is not told. All text of agents is escaped
//! (S20), and no line of it can pass for a heading, a checklist item or front matter.

use std::fmt::Write as _;

use baton_core::handoffs;
use baton_core::notes::{self, Note};
use baton_core::task::dossier::{Dossier, Feedback, Past};
use baton_core::task::tally::Tally;
use baton_core::task::{self, Owner, State, Task};
use baton_core::tasks::reason_of;
use baton_core::view::{Query, View, get, only};
use serde_json::Value;

use crate::escape::{json, line, lines, prose};
use crate::failure::Failure;
use crate::handing::markdown;

pub(crate) const CHECKLIST: &str = "TASKS.md";
pub(super) const DECISIONS: &str = "decisions.md";
pub(super) const LESSONS: &str = "lessons.md";
pub(crate) const TASKS: &str = "tasks";
pub(super) const HANDOFFS: &str = "handoffs";

/// How many unfinished tasks of one state are written out.
const UNFINISHED_MAX: u32 = 10_000;
/// How many of those that were done or cancelled last.
const FINISHED_MAX: u32 = 1_000;
/// How many dossiers are read at once.
const BATCH: usize = 500;

/// What happens now comes first, what is over last.
const ORDER: [(State, &str); 9] = [
    (State::Active, "Active"),
    (State::Review, "In review"),
    (State::Waiting, "Waiting for a person"),
    (State::Failed, "Failed"),
    (State::Open, "Open"),
    (State::Blocked, "Blocked"),
    (State::Parked, "Parked"),
    (State::Done, "Done"),
    (State::Cancelled, "Cancelled"),
];

type Out<'a> = &'a mut dyn FnMut(String, String) -> Result<(), Failure>;

/// How every file of a task begins.
pub(super) fn mark(workspace: &str) -> String {
    format!("---\nmade_by: baton\nworkspace: {workspace}\n")
}

/// Every file, by its name in the folder.
pub(super) fn each(view: &dyn View, workspace: &str, out: Out<'_>) -> Result<(), Failure> {
    let tally = get::<Tally>(view, Tally::KEY).map_err(unread)?.unwrap_or_default();
    let limit = |state: State| if state.is_finished() { FINISHED_MAX } else { UNFINISHED_MAX };
    let queries: Vec<Query> =
        ORDER.iter().map(|(state, _)| task::in_state(*state, limit(*state))).collect();
    let mut states: Vec<Vec<Task>> = Vec::with_capacity(ORDER.len());
    for rows in view.read(&queries).map_err(unread)? {
        states.push(only::<Task>(&rows).map_err(unread)?);
    }
    out(CHECKLIST.to_owned(), checklist(&states, &tally, workspace))?;
    for tasks in states.concat().chunks(BATCH) {
        with_dossiers(view, tasks, &tally, workspace, out)?;
    }
    for (name, title, kind) in
        [(DECISIONS, "Decisions", notes::Kind::Decision), (LESSONS, "Lessons", notes::Kind::Lesson)]
    {
        let limit = notes::LISTED_MAX;
        let wanted = notes::Wanted { kind: Some(kind), limit, ..notes::Wanted::default() };
        out(name.to_owned(), told(title, &notes::list(view, &wanted)?))?;
    }
    Ok(())
}

fn unread(error: baton_core::view::Unreadable) -> Failure {
    baton_core::refusal::Refusal::from(error).into()
}

fn with_dossiers(
    view: &dyn View,
    tasks: &[Task],
    tally: &Tally,
    workspace: &str,
    out: Out<'_>,
) -> Result<(), Failure> {
    let queries: Vec<Query> =
        tasks.iter().map(|task| Query::get::<Dossier>(task.task.as_str())).collect();
    for (task, rows) in tasks.iter().zip(view.read(&queries).map_err(unread)?) {
        let dossier = only::<Dossier>(&rows).map_err(unread)?.pop();
        let dossier = dossier.unwrap_or_else(|| Dossier::of(task.task.clone()));
        out(format!("{TASKS}/{}.md", task.task), page(task, &dossier, tally, workspace))?;
        for handoff in handoffs::chain_of(view, &dossier)? {
            let text = markdown::of(&handoff, &task.title, workspace);
            out(format!("{HANDOFFS}/{}.md", handoff.handoff), text)?;
        }
    }
    Ok(())
}

/// As the next take would see it: its phase may hold it back.
fn state_of(task: &Task, tally: &Tally) -> State {
    match task.state() {
        State::Open if tally.holds_back(task.phase) => State::Blocked,
        state => state,
    }
}

fn checklist(states: &[Vec<Task>], tally: &Tally, workspace: &str) -> String {
    let mut text = format!("# Tasks\n\n{}\n", checklist_mark(workspace));
    for ((state, heading), tasks) in ORDER.iter().zip(states) {
        if tasks.is_empty() {
            continue;
        }
        let _ = write!(text, "\n## {heading}\n\n");
        for task in tasks {
            text.push_str(&item(task, tally));
        }
        let more = tally.count(*state).saturating_sub(tasks.len() as u64);
        if more > 0 {
            let _ = write!(text, "\nand {more} more\n");
        }
    }
    text
}

/// Says whose the ids in a checklist are.
fn checklist_mark(workspace: &str) -> String {
    format!("<!-- made by baton for workspace {workspace}; new lines are read by baton import -->")
}

/// The workspace that a checklist's mark names.
pub(crate) fn workspace_of_mark(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("<!-- made by baton for workspace ")?;
    rest.split_once(';').map(|(workspace, _)| workspace)
}

/// `- [ ] t3 Title (priority 2, active, alice, attempt 2 of 3)`.
fn item(task: &Task, tally: &Tally) -> String {
    let state = state_of(task, tally);
    let box_ = if state.is_finished() { 'x' } else { ' ' };
    let mut facts = vec![format!("priority {}", task.priority), state.name().to_owned()];
    facts.extend(assigned(task).map(|owner| line(&owner.name)));
    if task.standing.attempt > 0 {
        facts.push(format!("attempt {} of {}", task.standing.attempt, task.max_attempts));
    }
    facts.extend(task.phase.map(|phase| format!("phase {phase}")));
    if !task.pending.is_empty() {
        let ids: Vec<&str> = task.pending.iter().map(|id| id.as_str()).collect();
        facts.push(format!("after {}", ids.join(" ")));
    }
    format!("- [{box_}] {} {} ({})\n", task.task, line(&task.title), facts.join(", "))
}

/// Whose it is: the owner's, or of whoever handed it in.
fn assigned(task: &Task) -> Option<&Owner> {
    task.owner().or(task.standing.author.as_ref())
}

fn text_value(text: &str) -> String {
    json(&Value::from(text), false)
}

fn list_value<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> String {
    let entries: Vec<String> =
        entries.into_iter().map(|entry| text_value(entry.as_ref())).collect();
    format!("[{}]", entries.join(", "))
}

fn page(task: &Task, dossier: &Dossier, tally: &Tally, workspace: &str) -> String {
    let mut text = mark(workspace);
    front(task, tally, &mut text);
    let _ = write!(text, "---\n\n# {} {}\n", task.task, line(&task.title));
    let mut long = |heading: &str, body: &str| {
        let _ = write!(text, "\n{heading}\n\n{}\n", prose(body));
    };
    if let Some(body) = &dossier.body {
        long("## Body", body);
    }
    if let Some(report) = &dossier.report {
        long("## Report: done", &report.done);
        long("## Report: not done", &report.not_done);
        if let Some(result) = &report.result {
            let _ = write!(text, "\n## Result\n\n```json\n{}\n```\n", json(result, true));
        }
    }
    if !dossier.feedback.is_empty() {
        text.push_str("\n## Feedback\n\n");
        dossier.feedback.iter().for_each(|one| feedback(one, &mut text));
    }
    if !dossier.attempts.is_empty() {
        text.push_str("\n## Attempts\n\n");
        dossier.attempts.iter().for_each(|one| attempt(one, &mut text));
    }
    text
}

fn front(task: &Task, tally: &Tally, text: &mut String) {
    let standing = &task.standing;
    let mut put = |name: &str, value: String| {
        let _ = writeln!(text, "{name}: {value}");
    };
    put("task", task.task.to_string());
    put("title", text_value(&task.title));
    put("state", state_of(task, tally).name().to_owned());
    if let Some(owner) = assigned(task) {
        put("assigned_to", text_value(&owner.name));
    }
    if !task.reviewers().is_empty() {
        put("reviewers", list_value(task.reviewers().iter().map(|owner| &owner.name)));
    }
    put("priority", task.priority.to_string());
    put("attempt", standing.attempt.to_string());
    put("attempts_used", standing.attempts_used.to_string());
    put("max_attempts", task.max_attempts.to_string());
    for (name, value) in [
        ("next_action", &standing.next_action),
        ("reason", &reason_of(task)),
        ("role", &task.role),
        ("key", &task.key),
    ] {
        if let Some(value) = value {
            put(name, text_value(value));
        }
    }
    if !task.after.is_empty() {
        let ids: Vec<&str> = task.after.iter().map(|id| id.as_str()).collect();
        put("after", format!("[{}]", ids.join(", ")));
    }
    if !task.paths.is_empty() {
        put("paths", list_value(task.paths.iter().map(ToString::to_string)));
    }
    if !task.labels.is_empty() {
        put("labels", list_value(&task.labels));
    }
    if let Some(phase) = task.phase {
        put("phase", phase.to_string());
    }
    if let Some(parent) = &task.parent {
        put("parent", parent.to_string());
    }
    put("since", standing.since.to_string());
    put("created_at", task.created_at.to_string());
    if let Some(by) = &task.created_by {
        put("created_by", text_value(&by.name));
    }
}

fn feedback(one: &Feedback, text: &mut String) {
    let commit = one.commit.as_deref().map(|commit| format!(", commit {}", line(commit)));
    let (by, commit) = (line(&one.by.name), commit.unwrap_or_default());
    let _ = writeln!(text, "- {by} on attempt {}{commit}, {}:", one.attempt, one.at);
    let _ = writeln!(text, "  {}", lines(&one.text, "  "));
}

fn attempt(one: &Past, text: &mut String) {
    let how = serde_json::to_value(one.how).unwrap_or_default();
    let how = how.as_str().unwrap_or_default().replace('_', " ");
    let name = line(&one.name);
    let _ =
        writeln!(text, "- attempt {}, {name}, {} to {}: {how}", one.attempt, one.from, one.until);
    for (what, said) in [("why", &one.why), ("next", &one.next_action)] {
        if let Some(said) = said {
            let _ = writeln!(text, "  {what}: {}", lines(said, "  "));
        }
    }
}

/// Oldest first, so that a new one is added at the end.
fn told(title: &str, found: &notes::Notes) -> String {
    let mut text = format!("# {title}\n");
    if found.more {
        text.push_str("\nOlder ones are in the journal.\n");
    }
    for Note { text: said, task, rule, by, at, note, .. } in &found.notes {
        let about = task.as_deref().map(|task| format!(", task {}", line(task)));
        let rule = rule.map(|rule| format!(", rule {rule}"));
        let (about, rule) = (about.unwrap_or_default(), rule.unwrap_or_default());
        let by = line(&by.name);
        let _ = write!(text, "\n## {note}: {by}{about}{rule}, {at}\n\n{}\n", prose(said));
    }
    text
}
