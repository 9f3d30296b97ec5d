//! `git-hook`, hidden: what the hooks that `init` gave to git ask.
//!
//! Owns the words at the git door and its two answers: 0 lets git go on, 1 stops it. Invariant: it
//! fails open. Whatever keeps Baton from answering is said on standard error, and git goes on; the
//! landing judges again.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use baton_core::check::Finding;
use baton_engine::doors::git::{self, Staged};
use baton_engine::failure::Failure;
use baton_engine::place;
use baton_engine::whoami;

use crate::arguments::Common;
use crate::desk::{self, Outcome, hints, remark};
use crate::words::{Problem, held_next, held_sentence};

/// A commit may touch hundreds of held files; the first few say enough.
const SHOWN_MAX: usize = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct GitHook {
    /// Which hook git runs
    #[arg(value_name = "NAME")]
    name: String,
    /// What git gave it
    #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<std::ffi::OsString>,
}

pub(crate) fn run(common: &Common, wanted: &GitHook) -> Outcome {
    // The other hooks are passed; they are installed so that `doctor` knows that git calls us.
    if wanted.name != "pre-commit" {
        return Ok(ExitCode::SUCCESS);
    }
    let folder = desk::folder(common)?;
    match judge(common, &folder) {
        Ok(staged) => Ok(answer(&staged)),
        // A checkout that is in no workspace is none of our business.
        Err(Failure::Place(place::Error::NotInitialised { .. })) => Ok(ExitCode::SUCCESS),
        Err(failure) => {
            let Problem { message, next, .. } = Problem::from(failure);
            remark(&format!("baton: this commit is not judged: {message}"));
            remark(&format!("next: {next}"));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn judge(common: &Common, folder: &Path) -> Result<Staged, Failure> {
    let mut workspace = desk::open(folder)?;
    let actor = whoami::reader(&mut workspace, &hints(common))?;
    let root = workspace.place.root.clone();
    let index = std::env::var_os("GIT_INDEX_FILE").map(|index| folder.join(index));
    git::staged(&mut workspace, &actor, &root, index.as_deref().map(Path::as_os_str))
}

fn answer(staged: &Staged) -> ExitCode {
    if let Some(count) = staged.unjudged {
        remark(&format!(
            "baton: {count} files are too many to be judged here; the landing does it"
        ));
    }
    if !staged.warned.is_empty() {
        remark(&sentences("warning", &staged.warned));
    }
    if staged.denied.is_empty() {
        return ExitCode::SUCCESS;
    }
    remark(&sentences("refused", &staged.denied));
    let next = staged.denied.iter().find_map(|finding| finding.held.first()).map(held_next);
    remark(&format!("next: {}", next.unwrap_or_else(|| "baton status".to_owned())));
    ExitCode::from(1)
}

fn sentences(label: &str, findings: &[Finding]) -> String {
    let mut text = String::new();
    let held = findings.iter().filter_map(|finding| finding.held.first());
    for (index, held) in held.take(SHOWN_MAX).enumerate() {
        let line_end = if index == 0 { "" } else { "\n" };
        let _ = write!(text, "{line_end}baton: {label}: {}", held_sentence(held));
    }
    if findings.len() > SHOWN_MAX {
        let _ = write!(text, "\nbaton: and {} more", findings.len() - SHOWN_MAX);
    }
    text
}
