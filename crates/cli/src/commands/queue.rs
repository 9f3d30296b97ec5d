//! `land` and `queue`: how a branch reaches the target, and what waits to.
//!
//! Owns the words and the exit codes. How it goes is told on standard error, the answer on standard
//! output. Branches, reasons and logs of others are shown escaped (S20).

use std::fmt::Write as _;
use std::os::fd::BorrowedFd;
use std::process::ExitCode;

use baton_core::id::LandingId;
use baton_core::landing::{Cause, Landing, State};
use baton_core::landings::{Changed, Standing};
use baton_engine::api::landings as api;
use baton_engine::landing::{self, Door, Listed, Progress, Reply};

use crate::arguments::Common;
use crate::counter::{Counter, tell};
use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::onlooker::Onlooker;
use crate::render::{Paint, ago, colour_wanted, counted, paint, shown, table};

const COMMIT_SHOWN: usize = 12;
/// How many uncommitted files are named.
const FILES_SHOWN: usize = 5;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Queue {
    /// What stands in line, and what is over
    List(api::List),
    /// One landing, whole
    Show {
        /// Its id, or its branch
        #[arg(value_name = "LANDING")]
        landing: String,
    },
    /// Nothing lands until it is resumed
    Pause {
        /// Why
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
    },
    /// Landing goes on
    Resume,
    /// Take one out of line; its branch stays as it is
    Remove {
        /// Its id, or its branch
        #[arg(value_name = "LANDING")]
        landing: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
    },
    /// Put one that was returned or removed in line again, as its branch is now
    Retry {
        /// Its id, or its branch
        #[arg(value_name = "LANDING")]
        landing: String,
    },
    /// Move the queue on, until it is told to end
    Run(api::Run),
}

pub(crate) fn run(common: &Common, command: &Queue) -> Outcome {
    match command {
        Queue::List(wanted) => {
            let mut desk = Desk::open(common)?;
            let listed = landing::list(&mut desk.workspace, wanted)?;
            desk.answer(&listed, list_words);
        }
        Queue::Show { landing } => {
            let mut desk = Desk::open(common)?;
            let reply = landing::show(&mut desk.workspace, landing)?;
            desk.answer(&reply, show_words);
        }
        Queue::Pause { why } => {
            let mut desk = Desk::open_to_act(common)?;
            let standing = landing::pause(&mut desk.workspace, &desk.actor, why.as_deref())?;
            desk.answer(&standing, standing_words);
        }
        Queue::Resume => {
            let mut desk = Desk::open_to_act(common)?;
            let standing = landing::resume(&mut desk.workspace, &desk.actor)?;
            desk.answer(&standing, standing_words);
        }
        Queue::Remove { landing, why } => {
            let mut desk = Desk::open_to_act(common)?;
            let Desk { workspace, actor, operation, .. } = &mut desk;
            let operation = operation.as_deref();
            let changed = landing::remove(workspace, actor, landing, why.as_deref(), operation)?;
            desk.answer(&changed, removed_words);
        }
        Queue::Retry { landing } => {
            let mut desk = Desk::open_to_act(common)?;
            let Desk { workspace, actor, operation, .. } = &mut desk;
            let reply = landing::again(workspace, actor, landing, operation.as_deref())?;
            desk.answer(&reply, land_words);
        }
        Queue::Run(wanted) => {
            let mut desk = Desk::open_to_act(common)?;
            let mut terminal = Terminal::new(desk.counter)?;
            let Desk { workspace, actor, .. } = &mut desk;
            let listed = landing::run(workspace, actor, wanted, &mut terminal)?;
            desk.answer(&listed, list_words);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn land(desk: &mut Desk, wanted: &api::Land) -> Outcome {
    let mut terminal = Terminal::new(desk.counter)?;
    let Desk { workspace, actor, operation, .. } = desk;
    let reply = landing::land(workspace, actor, wanted, operation.as_deref(), &mut terminal)?;
    desk.answer(&reply, land_words);
    let good = match reply.landing.state {
        State::Landed | State::Proposed => true,
        State::Queued | State::Checking => wanted.queue,
        State::Returned | State::Removed => false,
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

struct Terminal<'a> {
    onlooker: Onlooker<'a>,
    /// What was said last, so that nothing is said twice.
    last: String,
    /// How this one ends is told by the answer.
    own: Option<LandingId>,
}

impl<'a> Terminal<'a> {
    fn new(counter: Option<&'a Counter>) -> Result<Self, crate::words::Problem> {
        Ok(Self { onlooker: Onlooker::of(counter)?, last: String::new(), own: None })
    }
}

impl Door for Terminal<'_> {
    fn told(&mut self, progress: &Progress) {
        match progress {
            Progress::Own { landing } => return self.own = Some(landing.clone()),
            Progress::Landed { landing } | Progress::Returned { landing }
                if self.own.as_ref() == Some(&landing.landing) =>
            {
                return;
            }
            _ => {}
        }
        let counter = self.onlooker.counter();
        let colour = counter.is_none() && colour_wanted(&std::io::stderr());
        let text = progress_words(progress, colour);
        if self.last != text {
            tell(counter, &text);
            self.last = text;
        }
    }

    fn end_descriptor(&self) -> BorrowedFd<'_> {
        self.onlooker.end_descriptor()
    }

    fn end_wanted(&mut self) -> bool {
        self.onlooker.end_wanted()
    }
}

fn names(landings: &[LandingId]) -> String {
    match landings {
        [] => String::new(),
        [one] => one.to_string(),
        [first, .., last] => {
            format!("{first} … {last} ({})", counted(landings.len() as u64, "branch", "branches"))
        }
    }
}

fn progress_words(progress: &Progress, colour: bool) -> String {
    let together = |count: &usize| match count {
        0 => "the target alone".to_owned(),
        1 => "the first in line".to_owned(),
        count => format!("the first {count} in line"),
    };
    match progress {
        Progress::InLine { landing, place, runner } => {
            let who = shown(&runner.holder.name);
            format!("{landing} is number {place} in line; {who} moves the queue on")
        }
        Progress::Paused { paused } => {
            let why = paused.why.as_ref().map(|why| format!(": {}", shown(why)));
            let word = paint("paused", Paint::Yellow, colour);
            format!("{word} by {}{}", shown(&paused.by.name), why.unwrap_or_default())
        }
        Progress::Checking { landings, log } => {
            let log = shown(&log.display().to_string());
            paint(&format!("checking {} … ({log})", names(landings)), Paint::Dim, colour)
        }
        Progress::CheckingTarget { target } => {
            paint(&format!("checking {} alone …", shown(target)), Paint::Dim, colour)
        }
        Progress::StillChecking { landings, check, seconds } => {
            let check = shown(check);
            let text = format!("{}: {check} runs since {seconds} s", together(landings));
            paint(&text, Paint::Dim, colour)
        }
        Progress::Passed { landings, flaky } => {
            let flaky = if *flaky { ", after a failure: flaky" } else { "" };
            format!("{}: {}{flaky}", together(landings), paint("passed", Paint::Green, colour))
        }
        Progress::Failed { landings, check, exit, log } => format!(
            "{}: {} {} (exit {exit}, {})",
            together(landings),
            shown(check),
            paint("failed", Paint::Red, colour),
            shown(&log.display().to_string())
        ),
        Progress::Held { landing, reason } => {
            let word = paint("waits", Paint::Yellow, colour);
            format!("{landing} {word}: {}", shown(reason))
        }
        Progress::Own { landing } => landing.to_string(),
        Progress::Landed { landing } | Progress::Returned { landing } => outcome(landing, colour),
        Progress::Proposed { landing } => format!("{landing}: a request is open"),
    }
}

fn short(commit: &str) -> String {
    shown(commit).chars().take(COMMIT_SHOWN).collect()
}

/// One landing that is over, in one line.
fn outcome(landing: &Landing, colour: bool) -> String {
    let (id, branch, target) = (&landing.landing, shown(&landing.branch), shown(&landing.target));
    let reason = landing.reason.as_deref().map(shown).unwrap_or_default();
    match landing.state {
        State::Landed => {
            let commit = short(landing.commit.as_deref().unwrap_or(&landing.tip));
            let word = match landing.checked {
                true => paint("landed", Paint::Green, colour),
                false => paint("landed unchecked", Paint::Yellow, colour),
            };
            format!("{id} {word}: {branch} is in {target} at {commit}")
        }
        State::Returned => {
            format!("{id} {}: {branch}: {reason}", paint("returned", Paint::Red, colour))
        }
        state => format!("{id} {}: {branch}: {reason}", state.name()),
    }
}

fn land_words(reply: &Reply, colour: bool) -> String {
    let landing = &reply.landing;
    let mut text = String::new();
    match landing.state {
        State::Queued | State::Checking => {
            let (branch, target) = (shown(&landing.branch), shown(&landing.target));
            let place = reply.place.map(|place| format!(", number {place}")).unwrap_or_default();
            let word = paint("in line", Paint::Green, colour);
            let _ = writeln!(text, "{} {word} for {target}{place}: {branch}", landing.landing);
            if let Some(reason) = &landing.reason {
                let _ = writeln!(text, "  it stays there: {}", shown(reason));
            }
            let _ = writeln!(text, "next: baton queue show {}", landing.landing);
        }
        State::Proposed => {
            let _ = writeln!(text, "{} checked; a request is open", landing.landing);
        }
        State::Landed | State::Removed => {
            let _ = writeln!(text, "{}", outcome(landing, colour));
        }
        State::Returned => {
            let _ = writeln!(text, "{}", outcome(landing, colour));
            details(landing, &mut text);
            let target = shown(&landing.target);
            let next = match landing.cause {
                Some(Cause::Conflict) => {
                    format!("git merge {target} in its tree, mend the conflict, then baton land")
                }
                Some(Cause::Undo) => {
                    "look at what it takes back; if that is meant: baton land --takes-back"
                        .to_owned()
                }
                Some(Cause::Claims) => "baton claims, to see who holds it".to_owned(),
                _ => "mend it, baton commit, then baton land".to_owned(),
            };
            let _ = writeln!(text, "next: {next}");
        }
    }
    if !reply.uncommitted.is_empty() {
        let files: Vec<String> =
            reply.uncommitted.iter().take(FILES_SHOWN).map(|path| shown(path)).collect();
        let count = counted(reply.uncommitted.len() as u64, "file", "files");
        let note = paint("note", Paint::Yellow, colour);
        let _ = writeln!(
            text,
            "{note}: {count} in its tree not committed, so not landed: {}",
            files.join(", ")
        );
    }
    text.push_str(&notices_words(&reply.notices, colour));
    text
}

fn details(landing: &Landing, text: &mut String) {
    if !landing.files.is_empty() {
        let files: Vec<String> = landing.files.iter().map(|path| shown(path)).collect();
        let _ = writeln!(text, "  files:  {}", files.join(", "));
    }
    if let Some(log) = &landing.log {
        let _ = writeln!(text, "  log:    {}", shown(log));
    }
}

fn show_words(reply: &Reply, colour: bool) -> String {
    let landing = &reply.landing;
    let mut text = match landing.state.is_over() {
        true => format!("{}\n", outcome(landing, colour)),
        false => {
            let place = reply.place.map(|place| format!(", number {place} in line"));
            format!(
                "{} {}{}: {} for {}\n",
                landing.landing,
                landing.state.name(),
                place.unwrap_or_default(),
                shown(&landing.branch),
                shown(&landing.target)
            )
        }
    };
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {:<7} {value}", format!("{name}:"));
    };
    if !landing.state.is_over()
        && let Some(reason) = &landing.reason
    {
        line("waits", shown(reason));
    }
    line("by", shown(&landing.by.name));
    line("tip", short(&landing.tip));
    if let Some(task) = &landing.task {
        line("task", task.to_string());
    }
    line("queued", ago(landing.queued_at));
    if landing.flaky > 0 {
        line("flaky", counted(u64::from(landing.flaky), "time", "times"));
    }
    details(landing, &mut text);
    text
}

fn list_words(listed: &Listed, colour: bool) -> String {
    let mut text = String::new();
    if let Some(paused) = &listed.paused {
        let why = paused.why.as_ref().map(|why| format!(": {}", shown(why))).unwrap_or_default();
        let word = paint("paused", Paint::Yellow, colour);
        let _ = writeln!(text, "{word} by {} {}{why}", shown(&paused.by.name), ago(paused.at));
    }
    if let Some(runner) = &listed.runner {
        let _ = writeln!(text, "{} moves the queue on", shown(&runner.holder.name));
    }
    if listed.landings.is_empty() {
        text.push_str("nothing waits to land\n");
        return text;
    }
    let row = |landing: &Landing| {
        let word = match (landing.state, landing.checked) {
            (State::Landed, true) => paint("landed", Paint::Green, colour),
            (State::Landed, false) => paint("landed unchecked", Paint::Yellow, colour),
            (State::Returned, _) => paint("returned", Paint::Red, colour),
            (state, _) => state.name().to_owned(),
        };
        let what = match (landing.state, &landing.commit, &landing.reason) {
            (State::Landed, Some(commit), _) => short(commit),
            (_, _, Some(reason)) => shown(reason),
            _ => String::new(),
        };
        vec![
            landing.landing.to_string(),
            shown(&landing.branch),
            word,
            shown(&landing.by.name),
            ago(landing.since),
            what,
        ]
    };
    let rows: Vec<Vec<String>> = listed.landings.iter().map(row).collect();
    text.push_str(&table(&["ID", "BRANCH", "STATE", "BY", "SINCE", ""], &rows, colour));
    text
}

fn standing_words(standing: &Standing, colour: bool) -> String {
    match (&standing.paused, standing.changed) {
        (Some(paused), true) => {
            let why = paused.why.as_ref().map(|why| format!(": {}", shown(why)));
            let word = paint("paused", Paint::Yellow, colour);
            format!("{word}{}; what is being checked does not land\n", why.unwrap_or_default())
        }
        (Some(paused), false) => {
            format!("{} paused it {} already\n", shown(&paused.by.name), ago(paused.at))
        }
        (None, true) => {
            format!("{}\nnext: baton queue run --once\n", paint("resumed", Paint::Green, colour))
        }
        (None, false) => "it was not paused\n".to_owned(),
    }
}

fn removed_words(changed: &Changed, colour: bool) -> String {
    let landing = &changed.landing;
    let mut text = format!(
        "{} {} from the line; the branch stays as it is\n",
        paint("removed", Paint::Green, colour),
        shown(&landing.branch)
    );
    text.push_str(&notices_words(&changed.notices, colour));
    text
}
