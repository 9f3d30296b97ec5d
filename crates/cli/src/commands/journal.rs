//! `journal`: read, follow, run a command for each entry; `verify`; `archive`.
//!
//! Owns the way entries reach a reader: as sentences, as documents, or on a command's standard
//! input. Entries are written a page at a time, so memory stays small whatever the journal's size.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use baton_engine::api;
use baton_engine::journal::{Reading, Told};
use baton_engine::store::News;
use clap::{Args, Subcommand};

use crate::arguments::Common;
use crate::desk::{Desk, Outcome, remark};
use crate::render::{colour_wanted, shown};
use crate::signals::Signals;
use crate::words::Problem;

mod checks;
mod sentences;

/// What a terminal gets when nothing else was asked for.
const ON_TERMINAL: u64 = 50;
/// A follower looks this often even without news: a writer may die before it tells.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)] // The flattened request has a group of the same name.
pub(crate) struct Journal {
    #[command(subcommand)]
    command: Option<Deed>,
    #[command(flatten)]
    wanted: api::Journal,
    /// Go on with new entries as they come; Ctrl-C ends it
    #[arg(long, short)]
    follow: bool,
    /// Run this command for each entry, with the entry as JSON on its standard input; takes the
    /// rest of the line, and no shell is involved
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true)]
    exec: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum Deed {
    /// Check the chain of all entries, and that they lead to exactly the live records
    Verify,
    /// Seal old entries into a verified file and take them out of the store
    Archive(api::Archive),
}

impl Journal {
    /// Whether it neither runs a command nor takes entries out.
    pub(crate) fn only_reads(&self) -> bool {
        self.exec.is_empty() && !matches!(self.command, Some(Deed::Archive(_)))
    }
}

pub(crate) fn run(common: &Common, wanted: &Journal) -> Outcome {
    match &wanted.command {
        Some(Deed::Verify) => checks::verify(&mut Desk::open(common)?),
        Some(Deed::Archive(archive)) => checks::archive(common, archive),
        None => read(common, wanted),
    }
}

/// Where entries go.
enum Sink {
    Sentences {
        colour: bool,
    },
    /// One document for all.
    Document {
        first: bool,
    },
    /// One document for each, on a line of its own.
    Lines,
    Command(Vec<OsString>),
}

/// Nobody reads any more.
struct ReaderGone;

fn read(common: &Common, wanted: &Journal) -> Outcome {
    // Here `--session` says whose entries are wanted, and reading needs no session.
    let anonymous = Common { session: None, ..common.clone() };
    let mut desk = Desk::open(&anonymous)?;
    let mut asked = api::Journal { session: common.session.clone(), ..wanted.wanted.clone() };
    let plain = wanted.exec.is_empty() && !common.json && !wanted.follow;
    let whole = asked.limit.is_none() && asked.since.is_none();
    if plain && whole && std::io::stdout().is_terminal() {
        asked.limit = Some(ON_TERMINAL);
    }
    let mut sink = match (wanted.exec.is_empty(), common.json, wanted.follow) {
        (false, _, _) => Sink::Command(wanted.exec.clone()),
        (true, true, true) => Sink::Lines,
        (true, true, false) => Sink::Document { first: true },
        (true, false, _) => Sink::Sentences { colour: colour_wanted(&std::io::stdout()) },
    };
    // Before the first look, so that nothing committed in between is missed.
    let news = match wanted.follow {
        true => Some(desk.workspace.store.news().map_err(baton_engine::failure::Failure::from)?),
        false => None,
    };
    let mut reading = Reading::begin(&mut desk.workspace, &desk.cwd, &asked, wanted.follow)?;
    if let Some(archived) = reading.archived {
        remark(&format!("note: entries up to {archived} are archived, and not shown here"));
    }
    let shown = match news {
        None => to_the_end(&mut desk, &mut reading, &mut sink),
        Some(news) => follow(&mut desk, &mut reading, &mut sink, news),
    };
    if let Err(problem) = shown? {
        let ReaderGone = problem;
    }
    Ok(ExitCode::SUCCESS)
}

/// The newest entries in sentences, oldest first.
pub(crate) fn tail(desk: &mut Desk, limit: u64) -> Result<String, Problem> {
    let asked = api::Journal { limit: Some(limit), ..api::Journal::default() };
    let mut reading = Reading::begin(&mut desk.workspace, &desk.cwd, &asked, false)?;
    let mut text = String::new();
    while let Some(told) = reading.next(&mut desk.workspace)? {
        text.extend(told.iter().map(|told| sentences::line(told, false)));
    }
    Ok(text)
}

fn to_the_end(
    desk: &mut Desk,
    reading: &mut Reading,
    sink: &mut Sink,
) -> Result<Result<(), ReaderGone>, Problem> {
    if sink.open().is_err() {
        return Ok(Err(ReaderGone));
    }
    while let Some(told) = reading.next(&mut desk.workspace)? {
        if sink.take(&told).is_err() {
            return Ok(Err(ReaderGone));
        }
    }
    Ok(sink.close())
}

fn follow(
    desk: &mut Desk,
    reading: &mut Reading,
    sink: &mut Sink,
    mut news: Box<dyn News>,
) -> Result<Result<(), ReaderGone>, Problem> {
    let mut end = Signals::to_end()?;
    let out = std::io::stdout();
    // A pipe's writing end becomes ready when its reader is gone; a terminal's when somebody types.
    let piped = is_pipe(&out) && !matches!(sink, Sink::Command(_));
    loop {
        while let Some(told) = reading.next(&mut desk.workspace)? {
            if end.came() || sink.take(&told).is_err() {
                return Ok(Ok(()));
            }
        }
        let mut also: Vec<BorrowedFd<'_>> = vec![end.descriptor()];
        if piped {
            also.push(out.as_fd());
        }
        let woken = news.wait(LOOK_AT_LEAST_EVERY, &also);
        woken.map_err(baton_engine::failure::Failure::from)?;
        if end.came() || (piped && reader_gone(&out)) {
            return Ok(Ok(()));
        }
    }
}

pub(super) fn is_pipe(stream: &impl AsFd) -> bool {
    rustix::fs::fstat(stream).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Fifo
    })
}

pub(super) fn reader_gone(stream: &impl AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut watched = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&now)).is_ok_and(|ready| ready > 0)
}

impl Sink {
    fn open(&mut self) -> Result<(), ReaderGone> {
        match self {
            Self::Document { .. } => put("{\"entries\":["),
            _ => Ok(()),
        }
    }

    fn take(&mut self, told: &[Told]) -> Result<(), ReaderGone> {
        let mut text = String::new();
        for told in told {
            match self {
                Self::Sentences { colour } => text.push_str(&sentences::line(told, *colour)),
                Self::Document { first } => {
                    text.push_str(if *first { "\n" } else { ",\n" });
                    text.push_str(&json(told));
                    *first = false;
                }
                Self::Lines => {
                    text.push_str(&json(told));
                    text.push('\n');
                }
                Self::Command(words) => execute(words, told),
            }
        }
        put(&text)
    }

    fn close(&mut self) -> Result<(), ReaderGone> {
        match self {
            Self::Document { first: true } => put("]}\n"),
            Self::Document { first: false } => put("\n]}\n"),
            _ => Ok(()),
        }
    }
}

fn json(told: &Told) -> String {
    serde_json::to_string(&told.document()).unwrap_or_default()
}

fn put(text: &str) -> Result<(), ReaderGone> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|_| ReaderGone)
}

/// Runs the command once; whatever comes of it, the next entry gets its turn too.
fn execute(words: &[OsString], told: &Told) {
    let Some((program, arguments)) = words.split_first() else { return };
    let name = shown(&program.to_string_lossy());
    let position = told.entry.position;
    let started = Command::new(program)
        .args(arguments)
        .env("BATON_EVENT_KIND", &told.entry.kind)
        .env("BATON_EVENT_POSITION", position.to_string())
        .stdin(Stdio::piped())
        .spawn();
    let ended = started.and_then(|mut child| {
        if let Some(mut input) = child.stdin.take() {
            // A command need not read what it is given.
            let _ = input.write_all(json(told).as_bytes()).and_then(|()| input.write_all(b"\n"));
        }
        child.wait()
    });
    match ended {
        Ok(status) if status.success() => {}
        Ok(status) => remark(&format!("warning: {name} failed for entry {position}: {status}")),
        Err(error) => {
            remark(&format!("warning: {name} cannot be run for entry {position}: {error}"));
        }
    }
}
