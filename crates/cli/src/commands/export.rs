//! `export`: the state as files, in git, or as lock files; `--watch` keeps a folder current.
//!
//! Owns the words, and the waiting of a watch: it sleeps on news of the store, Ctrl-C and a reader
//! that goes away. One command line may ask for all three kinds.

use std::fmt::Write as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_engine::export::lock_files::{self, Locked};
use baton_engine::export::{self, Committed, Exported};
use baton_engine::failure::Failure;
use serde::Serialize;

use super::journal::{is_pipe, reader_gone};
use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::render::{Paint, counted, paint, shown};
use crate::signals::Signals;
use crate::words::Problem;

/// How many names of changed files are said.
const NAMED_MAX: usize = 8;
/// A watcher looks this often even without news: a writer may die before it tells.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);
/// The least time between two writings of a watch, and how many times as long as the last one
/// took: a busy workspace must not keep a core busy with its files.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_FACTOR: u32 = 4;

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Write TASKS.md, tasks/, handoffs/, decisions.md, lessons.md, and claims, sessions and
    /// journal as JSON, into this folder
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Commit the same files to refs/baton/state: git log -p refs/baton/state
    #[arg(long)]
    git: bool,
    /// Put FILE.agent-lock beside claimed files, for tools without hooks
    #[arg(long)]
    lock_files: bool,
    /// Keep the folder current until Ctrl-C
    #[arg(long, requires = "folder", conflicts_with_all = ["git", "lock_files"])]
    watch: bool,
}

#[derive(Serialize)]
struct Done {
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<Exported>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git: Option<Committed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_files: Option<Locked>,
}

pub(crate) fn run(common: &Common, wanted: &Export) -> Outcome {
    if wanted.folder.is_none() && !wanted.git && !wanted.lock_files {
        return Err(Problem::usage(
            "export needs a folder, --git or --lock-files",
            "baton export --help",
        ));
    }
    let mut desk = Desk::open(common)?;
    let workspace = &mut desk.workspace;
    let folder = wanted.folder.as_ref().map(|folder| desk.cwd.join(folder));
    if let Some(folder) = folder.as_ref().filter(|_| wanted.watch) {
        return watch(&mut desk, folder);
    }
    let done = Done {
        folder: folder.map(|folder| export::to_folder(workspace, &folder)).transpose()?,
        git: wanted.git.then(|| export::to_git(workspace)).transpose()?,
        lock_files: wanted.lock_files.then(|| lock_files::write(workspace)).transpose()?,
    };
    desk.answer(&done, words);
    Ok(ExitCode::SUCCESS)
}

/// Writes what changed whenever something was committed, and ends on Ctrl-C.
fn watch(desk: &mut Desk, folder: &Path) -> Outcome {
    let mut end = Signals::to_end()?;
    // Before the first look, so that nothing committed in between is missed.
    let mut news = desk.workspace.store.news().map_err(Failure::from)?;
    let out = std::io::stdout();
    let mut first = true;
    loop {
        let begun = Instant::now();
        let exported = export::to_folder(&mut desk.workspace, folder)?;
        if std::mem::take(&mut first) || !exported.is_unchanged() {
            desk.answer(&Done { folder: Some(exported), git: None, lock_files: None }, words);
        }
        let pause = (begun.elapsed() * PAUSE_FACTOR).max(PAUSE_MIN);
        let rested = Instant::now() + pause;
        let mut told = false;
        loop {
            let rest = match told {
                true => rested.saturating_duration_since(Instant::now()),
                false => LOOK_AT_LEAST_EVERY,
            };
            if told && rest.is_zero() {
                break;
            }
            let mut also: Vec<BorrowedFd<'_>> = vec![end.descriptor()];
            if is_pipe(&out) {
                also.push(out.as_fd());
            }
            news.wait(rest, &also).map_err(Failure::from)?;
            if end.came() || is_pipe(&out) && reader_gone(&out) {
                return Ok(ExitCode::SUCCESS);
            }
            told = true;
        }
    }
}

fn words(done: &Done, colour: bool) -> String {
    let exported = |text: &str| paint(text, Paint::Green, colour);
    let mut text = String::new();
    if let Some(Exported { folder, position, changed, removed }) = &done.folder {
        let mut what: Vec<String> = Vec::new();
        for (verb, names) in [("new", changed), ("removed", removed)] {
            if !names.is_empty() {
                what.push(format!("{verb}: {}", some_of(names)));
            }
        }
        if what.is_empty() {
            what.push("nothing changed".to_owned());
        }
        let (folder, what) = (folder.display(), what.join("; "));
        let _ = writeln!(text, "{} {folder}, up to {position}; {what}", exported("exported to"));
    }
    if let Some(Committed { reference, commit, position, changed }) = &done.git {
        let short: String = commit.chars().take(12).collect();
        let what = match changed {
            true => format!("commit {short}; git log -p {reference} shows it"),
            false => format!("nothing changed since commit {short}"),
        };
        let _ = writeln!(text, "{} {reference}, up to {position}: {what}", exported("exported to"));
    }
    if let Some(locked) = &done.lock_files {
        text.push_str(&locked_words(locked, colour));
    }
    text
}

/// `TASKS.md, tasks/t1.md, and 3 more`.
fn some_of(names: &[String]) -> String {
    let said = names.iter().take(NAMED_MAX).map(|name| shown(name)).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => said,
        more => format!("{said}, and {}", counted(more as u64, "more", "more")),
    }
}

fn locked_words(locked: &Locked, colour: bool) -> String {
    let mut text = format!(
        "{} {} written, {} removed, {} unchanged\n",
        paint("lock files:", Paint::Green, colour),
        locked.written.len(),
        locked.removed.len(),
        locked.unchanged
    );
    let mut note = |sentence: String| {
        let _ = writeln!(text, "{}: {sentence}", paint("note", Paint::Yellow, colour));
    };
    for path in &locked.foreign {
        note(format!("{} is another tool's and was left alone", shown(&path.to_string_lossy())));
    }
    if locked.without > 0 {
        note(format!(
            "{} claimed folders, patterns, names or missing files have no lock file",
            locked.without
        ));
    }
    if locked.incomplete {
        note("the tree is too large to look for old lock files everywhere".to_owned());
    }
    text
}
