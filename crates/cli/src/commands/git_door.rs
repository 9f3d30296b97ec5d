//! `git-hook`, hidden: what the hooks that `init` gave to git ask.
//!
//! Owns the words at the git door and its two answers: 0 lets git go on, 1 stops it. Invariant: it
//! fails open. Whatever keeps Baton from answering is said on standard error, and git goes on; the
//! landing judges again.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use baton_core::check::{Because, Finding};
use baton_core::context::Actor;
use baton_engine::doors::{self, git, git::Staged, git::TooMany};
use baton_engine::failure::Failure;
use baton_engine::git::RefMove;
use baton_engine::place;
use baton_engine::store::postgres;
use baton_engine::whoami;
use baton_engine::wiring::probe;
use baton_engine::workspace::Workspace;

use crate::arguments::Common;
use crate::desk::{self, Outcome, hints, remark};
use crate::hooks::limit::LIMIT;
use crate::render::shown;
use crate::words::{Problem, held_next, held_sentence, role_next, role_sentence};

/// A commit may touch hundreds of held files; the first few say enough.
const SHOWN_MAX: usize = 5;
const ASK_A_PERSON: &str = "leave it out of the commit, and ask a person to approve or commit it";
/// Git names every ref of a transaction; one that moves more than this is no commit.
const INPUT_BYTES_MAX: u64 = 1024 * 1024;

#[derive(Debug, clap::Args)]
pub(crate) struct GitHook {
    /// Which hook git runs
    #[arg(value_name = "NAME")]
    name: String,
    /// What git gave it
    #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<std::ffi::OsString>,
}

impl GitHook {
    pub(crate) fn before_commit(&self) -> bool {
        self.name == "pre-commit"
    }
}

pub(crate) fn run(common: &Common, wanted: &GitHook) -> Outcome {
    let folder = desk::folder(common)?;
    if let Some(mark) = std::env::var_os(probe::VARIABLE) {
        // `doctor` tries whether git's hooks come through; nothing is judged. "No" keeps the hook
        // of the user's that would come next from being called for it.
        let workspace = desk::open(&folder)?;
        doors::probed(&workspace.place, &mark.to_string_lossy());
        return Ok(ExitCode::FAILURE);
    }
    let judged = match wanted.name.as_str() {
        "pre-commit" => judge(common, &folder, |workspace, actor, root| {
            let index = std::env::var_os("GIT_INDEX_FILE").map(|index| folder.join(index));
            git::staged(workspace, actor, root, index.as_deref().map(Path::as_os_str))
        }),
        "reference-transaction" => match about_to_move(wanted) {
            moves if moves.is_empty() => return Ok(ExitCode::SUCCESS),
            moves => judge(common, &folder, |workspace, actor, root| {
                let mut judged = git::moved(workspace, actor, root, &moves)?;
                // Before a commit they were told already.
                judged.warned.clear();
                Ok(judged)
            }),
        },
        "pre-push" => match pushed() {
            references if references.is_empty() => return Ok(ExitCode::SUCCESS),
            references => judge(common, &folder, |workspace, actor, root| {
                git::pushed(workspace, actor, root, &references)
            }),
        },
        // The others are passed; they are installed so that `doctor` knows that git calls us.
        _ => return Ok(ExitCode::SUCCESS),
    };
    match judged {
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

/// What git says it will push to: the third word of each line.
fn pushed() -> Vec<String> {
    let mut input = Vec::new();
    let _ = std::io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut input);
    let text = String::from_utf8_lossy(&input);
    text.lines().filter_map(|line| line.split(' ').nth(2)).map(str::to_owned).collect()
}

/// The branches git says it will move. At every other moment of a transaction it is too early or
/// too late to say no.
fn about_to_move(wanted: &GitHook) -> Vec<RefMove> {
    if wanted.arguments.first().is_none_or(|state| state != "prepared") {
        return Vec::new();
    }
    let mut input = Vec::new();
    match std::io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut input) {
        Ok(_) => RefMove::read(&String::from_utf8_lossy(&input)),
        Err(_) => Vec::new(),
    }
}

fn judge(
    common: &Common,
    folder: &Path,
    ask: impl FnOnce(&mut Workspace, &Actor, &Path) -> Result<Staged, Failure>,
) -> Result<Staged, Failure> {
    postgres::answer_by(Instant::now() + LIMIT);
    let mut workspace = desk::open(folder)?;
    let actor = whoami::reader(&mut workspace, &hints(common))?;
    let root = workspace.place.root.clone();
    ask(&mut workspace, &actor, &root)
}

fn answer(staged: &Staged) -> ExitCode {
    if let Some(unjudged) = staged.unjudged {
        let what = match unjudged {
            TooMany::Files(count) => format!("{count} files"),
            TooMany::Commits(count) => format!("more than {count} new commits"),
        };
        remark(&format!("baton: {what} are too many to be judged here; the landing does it"));
    }
    if let Some(refused) = &staged.role {
        remark(&format!("baton: refused: {}", role_sentence(refused)));
        remark(&format!("next: {}", role_next(refused)));
        return ExitCode::from(1);
    }
    if !staged.warned.is_empty() {
        remark(&sentences("warning", &staged.warned));
    }
    if staged.denied.is_empty() {
        return ExitCode::SUCCESS;
    }
    remark(&sentences("refused", &staged.denied));
    let next = staged.denied.iter().find_map(|finding| match &finding.role {
        Some(refused) => Some(role_next(refused).to_owned()),
        None if finding.because == Because::NeedsPerson => Some(ASK_A_PERSON.to_owned()),
        None => finding.held.first().map(held_next),
    });
    remark(&format!("next: {}", next.unwrap_or_else(|| "baton status".to_owned())));
    ExitCode::from(1)
}

fn sentences(label: &str, findings: &[Finding]) -> String {
    let mut text = String::new();
    let sentence = |finding: &Finding| match &finding.role {
        Some(refused) => Some(role_sentence(refused)),
        None if finding.because == Because::NeedsPerson => {
            let path = shown(&finding.resource.to_string());
            Some(format!("{path} is for a person to approve, and nobody has"))
        }
        None => finding.held.first().map(held_sentence),
    };
    for (index, sentence) in findings.iter().filter_map(sentence).take(SHOWN_MAX).enumerate() {
        let line_end = if index == 0 { "" } else { "\n" };
        let _ = write!(text, "{line_end}baton: {label}: {sentence}");
    }
    if findings.len() > SHOWN_MAX {
        let _ = write!(text, "\nbaton: and {} more", findings.len() - SHOWN_MAX);
    }
    text
}
