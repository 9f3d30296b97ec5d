//! `export`: the state as files, in git, or as lock files.
//!
//! Owns the words; one command line may ask for all three.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use baton_engine::export::lock_files::{self, Locked};
use baton_engine::export::{self, Committed, Exported};
use serde::Serialize;

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::render::{Paint, paint, shown};
use crate::words::Problem;

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Write claims.json, sessions.json and journal.jsonl into this folder
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Commit the same files to refs/baton/state: git log -p refs/baton/state
    #[arg(long)]
    git: bool,
    /// Put FILE.agent-lock beside claimed files, for tools without hooks
    #[arg(long)]
    lock_files: bool,
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
    let done = Done {
        folder: folder.map(|folder| export::to_folder(workspace, &folder)).transpose()?,
        git: wanted.git.then(|| export::to_git(workspace)).transpose()?,
        lock_files: wanted.lock_files.then(|| lock_files::write(workspace)).transpose()?,
    };
    desk.answer(&done, words);
    Ok(ExitCode::SUCCESS)
}

fn words(done: &Done, colour: bool) -> String {
    let exported = |text: &str| paint(text, Paint::Green, colour);
    let mut text = String::new();
    if let Some(Exported { folder, position, changed }) = &done.folder {
        let what = match changed.is_empty() {
            true => "nothing changed".to_owned(),
            false => format!("new: {}", changed.join(", ")),
        };
        let folder = folder.display();
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
