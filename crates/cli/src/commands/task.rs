//! `task add`, `list`, `show`, `ready`, `blocked`, `take`, `update`, the verbs that end an attempt
//! and those of review.
//!
//! Owns the words of their answers; what may happen is decided in `baton_core::tasks`. Filing,
//! changing and cancelling need no session; working does.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use baton_core::tasks::adding::Added;
use baton_core::tasks::choosing::{Considered, Verdict};
use baton_core::tasks::reviewing::judging::Judged;
use baton_core::tasks::similar::Similar;
use baton_core::tasks::taking::{Taken, TakenTask};
use baton_core::tasks::{BODY_BYTES_MAX, Moved};
use baton_engine::api::{handoffs, reviews, tasks as api};
use baton_engine::evidence::{self, Outcomes, Output};
use baton_engine::failure::Failure;
use baton_engine::reviewing;
use baton_engine::tasking::{self, showing};
use baton_engine::whoami;
use clap::Subcommand;

use super::claims::granted_words;
use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{self, Paint, paint, shown};
use crate::words::Problem;

pub(crate) use pages::quoted;

mod graph;
pub(crate) mod pages;
mod parts;

/// How many candidates an explanation shows in words; the document has all.
const EXPLAINED_MAX: usize = 20;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// File a task
    Add(api::Add),
    /// List tasks: who works on what, since when, what comes next
    List(api::List),
    /// Everything about one task
    Show {
        #[arg(value_name = "ID")]
        task: String,
    },
    /// What can be taken now, best first
    Ready {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 200)]
        limit: usize,
    },
    /// What cannot go on, and why
    Blocked {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 200)]
        limit: usize,
    },
    /// What can run side by side, and the longest chain
    Graph {
        /// As Mermaid text
        #[arg(long, conflicts_with = "json")]
        mermaid: bool,
    },
    /// Take the best task there is, or a named one
    Take(api::Take),
    /// Change a task
    Update(api::Update),
    /// Say that a task cannot go on
    Block(api::Block),
    /// Divide a task into parts that others do
    Split(api::Split),
    /// What came of the parts of a divided task, in order
    Results {
        #[arg(value_name = "ID")]
        task: String,
    },
    /// Run a check for a task and keep what came of it: evidence that it is done
    Check(api::Check),
    /// Put a task aside
    Park(api::Park),
    /// Hand in a commit for review
    Submit(reviews::Submit),
    /// Take back what was handed in
    Withdraw(reviews::Withdraw),
    /// Approve what was handed in
    Approve(reviews::Approve),
    /// Reject what was handed in, saying what must change
    Reject(reviews::Reject),
    /// Finish a task, saying what is done and what is not
    Done(api::Done),
    /// Give up an attempt
    Fail(api::Fail),
    /// Save what is known of the work: changed files, commit, claims, notes
    Checkpoint(handoffs::Checkpoint),
    /// Say that a task will not be done
    Cancel(api::Change),
    /// Make a task open again
    Reopen(api::Change),
    /// Tasks whose attempts are used up
    Dead {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 200)]
        limit: usize,
    },
    /// Give a task new attempts (a person's right)
    Revive(reviews::Revive),
}

pub(crate) fn run(common: &Common, command: Task) -> Outcome {
    // Those who file or change need not be a session; one that is shown is proven all the same.
    let mut desk = match &command {
        Task::List(_)
        | Task::Show { .. }
        | Task::Ready { .. }
        | Task::Blocked { .. }
        | Task::Dead { .. }
        | Task::Graph { .. }
        | Task::Results { .. } => Desk::open(common)?,
        Task::Take(_)
        | Task::Done(_)
        | Task::Fail(_)
        | Task::Submit(_)
        | Task::Check(_)
        | Task::Checkpoint(_) => Desk::open_to_act(common)?,
        _ => Desk::open_as(common, whoami::actor)?,
    };
    let outcome = serve(&mut desk, command);
    desk.tell_of_gates();
    outcome
}

fn serve(desk: &mut Desk, command: Task) -> Outcome {
    match command {
        Task::Add(wanted) => add(desk, wanted),
        Task::List(wanted) => list(desk, &wanted),
        Task::Show { task } => show(desk, &task),
        Task::Ready { limit } => ready(desk, limit),
        Task::Blocked { limit } => blocked(desk, limit),
        Task::Dead { limit } => dead(desk, limit),
        Task::Graph { mermaid } => graph::run(desk, mermaid),
        Task::Take(wanted) => take(desk, &wanted),
        Task::Update(wanted) => update(desk, wanted),
        Task::Split(wanted) => parts::split(desk, wanted),
        Task::Results { task } => parts::results(desk, &task),
        Task::Check(wanted) => check(desk, &wanted),
        Task::Block(wanted) => move_it(desk, &wanted, "blocked", tasking::block),
        Task::Park(wanted) => move_it(desk, &wanted, "parked", tasking::park),
        Task::Submit(wanted) => move_it(desk, &wanted, "submitted", reviewing::submit),
        Task::Withdraw(wanted) => move_it(desk, &wanted, "withdrawn", reviewing::withdraw),
        Task::Approve(wanted) => judge(desk, &wanted, reviewing::approve),
        Task::Reject(wanted) => judge(desk, &wanted, reviewing::reject),
        Task::Done(wanted) => move_it(desk, &wanted, "done", tasking::done),
        Task::Fail(wanted) => move_it(desk, &wanted, "given up", tasking::fail),
        Task::Checkpoint(wanted) => super::handoff::checkpoint(desk, &wanted),
        Task::Cancel(wanted) => move_it(desk, &wanted, "cancelled", tasking::cancel),
        Task::Reopen(wanted) => move_it(desk, &wanted, "reopened", tasking::reopen),
        Task::Revive(wanted) => move_it(desk, &wanted, "revived", reviewing::revive),
    }
}

/// The body from a file, or as it was given.
fn body(
    desk: &Desk,
    given: Option<String>,
    file: Option<&Path>,
) -> Result<Option<String>, Problem> {
    match file {
        // One byte more than fits: the rule then says that it is too long.
        Some(file) => text_of(desk, file, "the body", BODY_BYTES_MAX as u64 + 1),
        None => Ok(given),
    }
}

/// The beginning of a file, or of standard input when it is `-`.
fn text_of(desk: &Desk, file: &Path, what: &str, limit: u64) -> Result<Option<String>, Problem> {
    let cannot = |error: std::io::Error| {
        let file = shown(&file.display().to_string());
        let message = format!("{what} cannot be read from {file}: {error}");
        Problem::usage(message, "name a file that can be read, or - for standard input")
    };
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(cannot)?;
    } else {
        let open = std::fs::File::open(desk.cwd.join(file)).map_err(cannot)?;
        open.take(limit).read_to_end(&mut bytes).map_err(cannot)?;
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn add(desk: &mut Desk, mut wanted: api::Add) -> Outcome {
    wanted.body = body(desk, wanted.body.take(), wanted.body_file.as_deref())?;
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let added = tasking::add(workspace, actor, cwd, &wanted, operation.as_deref())?;
    desk.answer(&added, added_words);
    Ok(ExitCode::SUCCESS)
}

fn added_words(added: &Added, colour: bool) -> String {
    let verb = if added.known { "already filed" } else { "filed" };
    let mut text = format!(
        "{} {} \"{}\", {}\n",
        paint(verb, Paint::Green, colour),
        added.task,
        shown(&added.title),
        added.state.name()
    );
    for Similar { task, title, state, score } in &added.similar {
        let _ = writeln!(
            text,
            "{}: like {task} \"{}\", {}, {} % the same words",
            paint("note", Paint::Yellow, colour),
            shown(title),
            state.name(),
            score.0
        );
    }
    text + &notices_words(&added.notices, colour)
}

fn update(desk: &mut Desk, mut wanted: api::Update) -> Outcome {
    wanted.body = body(desk, wanted.body.take(), wanted.body_file.as_deref())?;
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let moved = tasking::update(workspace, actor, cwd, &wanted, operation.as_deref())?;
    desk.answer(&moved, |moved: &Moved, colour| moved_words(moved, "changed", colour));
    Ok(ExitCode::SUCCESS)
}

/// A deed of the engine that moves one task.
type Deed<W, T> = fn(
    &mut baton_engine::workspace::Workspace,
    &baton_core::context::Actor,
    &W,
    Option<&str>,
) -> Result<T, Failure>;

fn judge<W>(desk: &mut Desk, wanted: &W, deed: Deed<W, Judged>) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let judged = deed(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&judged, judged_words);
    Ok(ExitCode::SUCCESS)
}

fn judged_words(judged: &Judged, colour: bool) -> String {
    let verb = if judged.approves { "approved" } else { "rejected" };
    let mut text = moved_words(&judged.moved, verb, colour);
    for holder in &judged.waits_for {
        let _ = writeln!(text, "it counts when {} has said its word", shown(&holder.name));
    }
    if let Some(gate) = &judged.gate {
        let _ = writeln!(text, "a person decides {gate} (baton gate show {gate})");
    }
    text
}

fn move_it<W>(desk: &mut Desk, wanted: &W, verb: &str, deed: Deed<W, Moved>) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let moved = deed(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&moved, |moved: &Moved, colour| moved_words(moved, verb, colour));
    Ok(ExitCode::SUCCESS)
}

fn moved_words(moved: &Moved, verb: &str, colour: bool) -> String {
    let mut text =
        format!("{} {} \"{}\"", paint(verb, Paint::Green, colour), moved.task, shown(&moved.title));
    if moved.state.name() != verb {
        let _ = write!(text, ", now {}", moved.state.name());
    }
    if moved.attempts_used > 0 {
        let _ = write!(text, ", {} of {} attempts used", moved.attempts_used, moved.max_attempts);
    }
    if let Some(at) = moved.not_before {
        let _ = write!(text, ", offered again at {}", render::until(at));
    }
    text.push('\n');
    if !moved.woken.is_empty() {
        let names: Vec<&str> = moved.woken.iter().map(|task| task.as_str()).collect();
        let _ = writeln!(text, "{} {}", paint("ready now", Paint::Green, colour), names.join(", "));
    }
    if !moved.released.is_empty() {
        let what = render::resources(&moved.released);
        let _ = writeln!(text, "{} {what}", paint("released", Paint::Green, colour));
    }
    text + &notices_words(&moved.notices, colour)
}

fn take(desk: &mut Desk, wanted: &api::Take) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let taken = tasking::take(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&taken, taken_words);
    Ok(ExitCode::SUCCESS)
}

fn taken_words(taken: &Taken, colour: bool) -> String {
    let mut text = explained_words(&taken.considered, colour);
    for task in std::iter::once(&taken.first).chain(&taken.also) {
        text.push_str(&one_taken(task, colour));
    }
    if let Some(granted) = &taken.claim {
        text.push_str(&granted_words(granted, colour));
    }
    let first = &taken.first.task;
    let next = match &taken.first.review {
        Some(_) => {
            format!("baton task approve {first}, or baton task reject {first} --feedback '…'")
        }
        None => format!("baton task done {first} --report-done '…' --report-not-done '…'"),
    };
    let _ = writeln!(text, "{}: {next}", paint("next", Paint::Cyan, colour));
    text + &notices_words(&taken.notices, colour)
}

fn one_taken(task: &TakenTask, colour: bool) -> String {
    let verb = if task.review.is_some() { "reviews" } else { "took" };
    let mut text = format!(
        "{} {} \"{}\", attempt {} of {}, token {}, until {}\n",
        paint(verb, Paint::Green, colour),
        paint(task.task.as_str(), Paint::Bold, colour),
        shown(&task.title),
        task.attempt,
        task.max_attempts,
        task.token,
        render::until(task.expires_at)
    );
    if let Some(review) = &task.review {
        let (commit, by) = (shown(&review.commit), shown(&review.by.name));
        let _ = writeln!(text, "  commit {commit} by {by}, handed in {}", render::ago(review.at));
        for verdict in &review.verdicts {
            let _ = writeln!(text, "  {}", pages::verdict_words(verdict));
        }
    }
    if !task.paths.is_empty() {
        let _ = writeln!(text, "  paths: {}", render::resources(&task.paths));
    }
    if let Some(next) = &task.next_action {
        let _ = writeln!(text, "  next action: {}", shown(next));
    }
    if let Some(whole) = &task.results_of {
        let _ = writeln!(text, "  results of its parts: baton task results {whole}");
    }
    for past in &task.attempts {
        let _ = writeln!(text, "  {}", pages::past_words(past));
    }
    if let Some(saved) = &task.checkpoint {
        let _ = writeln!(text, "  {}", super::handoff::saved_words(saved));
    }
    if let Some(last) = task.handoffs.last() {
        let _ = writeln!(text, "  handed over before: baton handoff show {}", last.handoff);
    }
    for said in &task.feedback {
        let by = shown(&said.by.name);
        let _ = writeln!(text, "  feedback of {by} on attempt {}", said.attempt);
        text.push_str(&quoted(&said.text));
    }
    if let Some(body) = &task.body {
        text.push_str(&quoted(body));
    }
    text
}

fn explained_words(considered: &[Considered], colour: bool) -> String {
    let mut text = String::new();
    for one in considered.iter().take(EXPLAINED_MAX) {
        let (verdict, tint) = match one.verdict {
            Verdict::Chosen => ("chosen", Paint::Green),
            Verdict::Conflicts => ("passed over", Paint::Yellow),
            Verdict::NotNeeded => ("comes later", Paint::Dim),
        };
        let why = match &one.conflict {
            None => String::new(),
            Some(conflict) => {
                let through = match &conflict.task {
                    Some(task) => format!(" for {task}"),
                    None => String::new(),
                };
                let held = render::resources(std::slice::from_ref(&conflict.held));
                format!(": {} has {held}{through}", shown(&conflict.with.name))
            }
        };
        let _ = writeln!(
            text,
            "{:<11}  {} \"{}\", priority {}, unblocks {}{why}",
            paint(verdict, tint, colour),
            one.task,
            shown(&one.title),
            one.priority,
            one.unblocks
        );
    }
    if considered.len() > EXPLAINED_MAX {
        let _ = writeln!(text, "and {} more: --json", considered.len() - EXPLAINED_MAX);
    }
    text
}

fn list(desk: &mut Desk, wanted: &api::List) -> Outcome {
    let found = showing::list(&mut desk.workspace, &desk.actor, wanted)?;
    desk.answer(&found, |found, colour| pages::table_of(found, "no tasks", colour));
    Ok(ExitCode::SUCCESS)
}

fn ready(desk: &mut Desk, limit: usize) -> Outcome {
    let found = showing::ready(&mut desk.workspace, limit)?;
    desk.answer(&found, |found, colour| pages::table_of(found, "no task is ready", colour));
    Ok(ExitCode::SUCCESS)
}

fn blocked(desk: &mut Desk, limit: usize) -> Outcome {
    let found = showing::blocked(&mut desk.workspace, limit)?;
    desk.answer(&found, pages::blocked_table);
    Ok(ExitCode::SUCCESS)
}

fn dead(desk: &mut Desk, limit: usize) -> Outcome {
    let found = showing::dead(&mut desk.workspace, limit)?;
    desk.answer(&found, |found, colour| pages::table_of(found, "no dead letters", colour));
    Ok(ExitCode::SUCCESS)
}

fn check(desk: &mut Desk, wanted: &api::Check) -> Outcome {
    let output = if desk.json { Output::ToError } else { Output::Inherited };
    let Desk { workspace, actor, operation, .. } = desk;
    let came = evidence::check(workspace, actor, wanted, output, operation.as_deref())?;
    desk.answer(&came, checked_words);
    Ok(if came.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn checked_words(came: &Outcomes, colour: bool) -> String {
    let mut text = String::new();
    for check in &came.checks {
        let (verb, tint) = match check.passed {
            true => ("passed".to_owned(), Paint::Green),
            false => (format!("failed with {}", check.exit), Paint::Red),
        };
        let _ = writeln!(
            text,
            "{}: check {} for {}, {}",
            paint(&verb, tint, colour),
            shown(&check.name),
            check.task,
            check.took
        );
        if check.snapshot.is_none() {
            let note = paint("note", Paint::Yellow, colour);
            let why = "the tree was changed while it ran, or is not git's: it shows nothing";
            let _ = writeln!(text, "{note}: {why}");
        }
        text.push_str(&notices_words(&check.notices, colour));
    }
    text
}

fn show(desk: &mut Desk, task: &str) -> Outcome {
    let page = showing::show(&mut desk.workspace, task)?;
    desk.answer(&page, pages::page);
    Ok(ExitCode::SUCCESS)
}
