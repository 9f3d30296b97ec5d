//! The scratch folder of the demo: repositories to work in, and their removal.
//!
//! Owns what lies on disk. A janitor process in a group of its own holds the other end of a pipe,
//! so the folder also goes when the demo is interrupted or killed. Invariant: nothing outside the
//! folder is touched, and no variable of the caller's own Baton or git reaches what runs in it.

use std::collections::HashSet;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::unable;
use crate::words::Problem;

/// The files all agents edit: more than agents by default, so that somebody can always work.
pub(crate) const FILES: [&str; 12] = [
    "src/router.ts",
    "src/session.ts",
    "src/api/orders.ts",
    "src/api/users.ts",
    "src/api/search.ts",
    "src/billing/invoice.ts",
    "src/billing/tax.ts",
    "src/ui/table.tsx",
    "src/ui/form.tsx",
    "src/ui/theme.ts",
    "tests/orders.test.ts",
    "docs/notes.md",
];

/// How long the janitor tries to remove a folder in which an agent may still be writing.
const REMOVAL_TIME_MAX: Duration = Duration::from_secs(5);
/// Variables that would lead a child to the caller's own workspace, store or session.
const CALLERS_OWN: [&str; 9] = [
    "BATON_STORE",
    "BATON_SESSION",
    "BATON_AGENT",
    "BATON_PERSON_TOKEN_FILE",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_CEILING_DIRECTORIES",
];

#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) folder: PathBuf,
    janitor: Option<Child>,
}

impl Scratch {
    pub(super) fn make(keep: bool) -> Result<Self, Problem> {
        let folder = std::env::temp_dir();
        let folder =
            folder.canonicalize().map_err(|error| unable("no temporary folder", &error))?;
        let name = format!("baton-demo-{}-{:08x}", std::process::id(), super::agent::seed() as u32);
        let folder = folder.join(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| unable("the scratch folder cannot be made", &error))?;
        let mut scratch = Self { folder, janitor: None };
        if !keep {
            scratch.janitor = Some(scratch.hire()?);
        }
        Ok(scratch)
    }

    fn hire(&self) -> Result<Child, Problem> {
        let mut command = baton()?;
        command.arg("demo-agent").arg("--janitor").arg(&self.folder);
        // A group of its own: Ctrl-C reaches the demo and its agents, not whoever cleans up.
        command.process_group(0).current_dir("/").stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map_err(|error| unable("a process cannot be started", &error))
    }

    /// A small repository with one commit. What the agents edit is excluded from git: they do not
    /// commit, and Baton would save every uncommitted change that a release leaves behind.
    pub(super) fn repository(&self, name: &str) -> Result<Repository, Problem> {
        let repository = Repository { root: self.folder.join(name) };
        for file in FILES {
            let path = repository.root.join(file);
            let parent = path.parent().unwrap_or(&repository.root);
            let text = format!("// {file}: edits follow, one line each\n");
            let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(path, text));
            written.map_err(|error| unable("the scratch files cannot be written", &error))?;
        }
        repository.git(&["init", "--quiet"])?;
        let exclude = repository.root.join(".git").join("info").join("exclude");
        let written = std::fs::create_dir_all(exclude.parent().unwrap_or(&repository.root))
            .and_then(|()| std::fs::write(&exclude, FILES.join("\n")))
            .and_then(|()| std::fs::write(repository.root.join("README.md"), "# Scratch\n"));
        written.map_err(|error| unable("the scratch files cannot be written", &error))?;
        repository.git(&["add", "--all"])?;
        repository.git(&["commit", "--quiet", "--message", "a codebase to work on"])?;
        Ok(repository)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(mut janitor) = self.janitor.take() {
            // Its input ends here; waiting makes sure that nothing is left when we say so.
            drop(janitor.stdin.take());
            let _ = janitor.wait();
        }
    }
}

/// Waits for the demo to end, however it ends, and removes its folder.
pub(super) fn clean_up_after(folder: &Path) {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let started = Instant::now();
    while std::fs::remove_dir_all(folder).is_err() && folder.exists() {
        if started.elapsed() > REMOVAL_TIME_MAX {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// This very program, without the caller's own settings.
pub(super) fn baton() -> Result<Command, Problem> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| unable("this program cannot be found", &error))?;
    Ok(untouched(Command::new(program)))
}

fn untouched(mut command: Command) -> Command {
    for variable in CALLERS_OWN {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

#[derive(Debug)]
pub(super) struct Repository {
    pub(super) root: PathBuf,
}

impl Repository {
    fn git(&self, words: &[&str]) -> Result<(), Problem> {
        let mut command = untouched(Command::new("git"));
        // The user's own hooks, templates and signing have no business in a scratch repository.
        command.args(["-c", "user.name=Baton demo", "-c", "user.email=demo@localhost"]);
        command.args(["-c", "commit.gpgSign=false", "-c", "core.hooksPath=", "-c"]);
        command.arg("init.templateDir=").args(words).current_dir(&self.root);
        let output = command.output().map_err(|error| unable("git cannot be started", &error))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(unable("git failed", &String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    /// Makes it a workspace, as a user would.
    pub(super) fn set_up(&self) -> Result<(), Problem> {
        let mut command = baton()?;
        command.args(["init", "--yes", "--agents", "none"]).current_dir(&self.root);
        let output = command.output().map_err(|error| unable("init cannot be run", &error))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(unable("init failed", &String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    /// Every line of every file: what is still there of what was written.
    pub(super) fn lines(&self) -> HashSet<String> {
        let texts = FILES.iter().filter_map(|file| std::fs::read(self.root.join(file)).ok());
        texts
            .flat_map(|text| {
                let text = String::from_utf8_lossy(&text).into_owned();
                text.lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect()
    }
}
