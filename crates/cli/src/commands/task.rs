//! `task add`, `list`, `show`, `ready`, `blocked`, `take`, `update` and the verbs that end an
//! attempt.
//!
//! Owns the words of their answers; what may happen is decided in `baton_core::tasks`. Filing,
//! changing and cancelling need no session; working does.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use baton_core::tasks::adding::Added;
use baton_core::tasks::choosing::{Considered, Verdict};
use baton_core::tasks::similar::Similar;
use baton_core::tasks::taking::{Taken, TakenTask};
use baton_core::tasks::{BODY_BYTES_MAX, Moved};
use baton_engine::api::tasks as api;
use baton_engine::evidence::{self, Outcomes, Output};
use baton_engine::failure::Failure;
use baton_engine::tasking::{self, showing};
use baton_engine::whoami;
use clap::Subcommand;

use super::claims::{granted_words, notices_words};
use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::render::{self, Paint, paint, shown};
use crate::words::Problem;

mod graph;
mod pages;
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
    /// Finish a task, saying what is done and what is not
    Done(api::Done),
    /// Give up an attempt
    Fail(api::Fail),
    /// Say that a task will not be done
    Cancel(api::Change),
    /// Make a task open again
    Reopen(api::Change),
}

pub(crate) fn run(common: &Common, command: Task) -> Outcome {
    // Those who file or change need not be a session; one that is shown is proven all the same.
    let anyone = || Desk::open_as(common, whoami::actor);
    let worker = || Desk::open_to_act(common);
    match command {
        Task::Add(wanted) => add(&mut anyone()?, wanted),
        Task::List(wanted) => list(&mut Desk::open(common)?, &wanted),
        Task::Show { task } => show(&mut Desk::open(common)?, &task),
        Task::Ready { limit } => ready(&mut Desk::open(common)?, limit),
        Task::Blocked { limit } => blocked(&mut Desk::open(common)?, limit),
        Task::Graph { mermaid } => graph::run(&mut Desk::open(common)?, mermaid),
        Task::Take(wanted) => take(&mut worker()?, &wanted),
        Task::Update(wanted) => update(&mut anyone()?, wanted),
        Task::Split(wanted) => parts::split(&mut anyone()?, wanted),
        Task::Results { task } => parts::results(&mut Desk::open(common)?, &task),
        Task::Check(wanted) => check(&mut worker()?, &wanted),
        Task::Block(wanted) => move_it(&mut anyone()?, &wanted, "blocked", tasking::block),
        Task::Park(wanted) => move_it(&mut anyone()?, &wanted, "parked", tasking::park),
        Task::Done(wanted) => move_it(&mut worker()?, &wanted, "done", tasking::done),
        Task::Fail(wanted) => move_it(&mut worker()?, &wanted, "given up", tasking::fail),
        Task::Cancel(wanted) => move_it(&mut anyone()?, &wanted, "cancelled", tasking::cancel),
        Task::Reopen(wanted) => move_it(&mut anyone()?, &wanted, "reopened", tasking::reopen),
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
        Some(file) => text_of(desk, file, "the body cannot be read", BODY_BYTES_MAX as u64 + 1),
        None => Ok(given),
    }
}

/// The beginning of a file, or of standard input when it is `-`.
fn text_of(
    desk: &Desk,
    file: &Path,
    doing: &'static str,
    limit: u64,
) -> Result<Option<String>, Problem> {
    let cannot = |source| Failure::File { doing, path: file.to_owned(), source };
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
type Deed<W> = fn(
    &mut baton_engine::workspace::Workspace,
    &baton_core::context::Actor,
    &W,
    Option<&str>,
) -> Result<Moved, Failure>;

fn move_it<W>(desk: &mut Desk, wanted: &W, verb: &str, deed: Deed<W>) -> Outcome {
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
    let next = format!("baton task done {first} --report-done '…' --report-not-done '…'");
    let _ = writeln!(text, "{}: {next}", paint("next", Paint::Cyan, colour));
    text + &notices_words(&taken.notices, colour)
}

fn one_taken(task: &TakenTask, colour: bool) -> String {
    let mut text = format!(
        "{} {} \"{}\", attempt {} of {}, token {}, until {}\n",
        paint("took", Paint::Green, colour),
        paint(task.task.as_str(), Paint::Bold, colour),
        shown(&task.title),
        task.attempt,
        task.max_attempts,
        task.token,
        render::until(task.expires_at)
    );
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
    if let Some(body) = &task.body {
        text.push_str(&pages::quoted(body));
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
    desk.answer(&found, |found, colour| pages::blocked_table(found, colour));
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
