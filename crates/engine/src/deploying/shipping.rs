//! Shipping: a checkout of its own, the commands in it, and saying how they ended.
//!
//! Owns that the checkout is made for one deploy and gone after it, that the output of its commands
//! is shown as it comes and kept, and that a command ends with its deployer, on Linux by the
//! kernel. What proves a session or a person is not handed on to it.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use baton_core::context::{Actor, Observed};
use baton_core::deploy::{Deploy, RENEWED_EVERY, Rules};
use baton_core::deploys;

use super::{Door, logs};
use crate::failure::Failure;
use crate::git::{Git, Oid};
use crate::leash::{self, exit_code};
use crate::place::test_hooks;
use crate::trees::setting_up::listen;
use crate::workspace::{Retry, Workspace};

const LOOKED_FOR_EVERY: Duration = Duration::from_millis(50);
/// A child of the command may hold its output open; it is not waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);
const STOPPED: u8 = 130;

fn cannot<'a>(doing: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> Failure + 'a {
    move |source| Failure::File { doing, path: path.to_owned(), source }
}

/// Where the checkout is to stand: outside every tree.
pub(super) fn folder() -> Result<PathBuf, Failure> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(|_| crate::git::Error::NoRandomness)?;
    let parent = std::env::temp_dir();
    let parent = parent.canonicalize().unwrap_or(parent);
    Ok(parent.join(format!("baton-deploy-{:016x}", u64::from_ne_bytes(random))))
}

/// Where its output is kept: a name that no other deploy has.
pub(super) fn log_file(workspace: &Workspace, target: &str) -> Result<PathBuf, Failure> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(|_| crate::git::Error::NoRandomness)?;
    Ok(logs(workspace).join(format!("{target}-{:016x}.log", u64::from_ne_bytes(random))))
}

/// Takes a checkout away. What cannot be taken away harms nobody.
pub(super) fn clear(workspace: &Workspace, folder: &Path) {
    let ours = folder.file_name().is_some_and(|name| {
        name.to_string_lossy().starts_with("baton-deploy-") && folder.is_absolute()
    });
    if ours && let Some(dirs) = &workspace.place.git {
        if let Ok(git) = Git::in_repository(&dirs.common_dir) {
            let _ = git.forget_tree(folder);
        }
        let _ = fs::remove_dir_all(folder);
    }
}

/// Ships, verifies, and says what came of it.
pub(super) fn ship(
    workspace: &mut Workspace,
    actor: &Actor,
    deploy: &Deploy,
    rules: &Rules,
    retry: Option<&Retry>,
    door: &mut dyn Door,
) -> Result<Deploy, Failure> {
    stop_here(workspace, "deploy-started");
    let worked = work(workspace, actor, deploy, rules, door);
    clear(workspace, Path::new(&deploy.folder));
    let verify = worked.as_ref().ok().copied().flatten();
    let ended = workspace.decide_once(
        actor,
        Observed::default(),
        retry,
        |_| true,
        |view, context| deploys::finish(view, deploy.deploy, verify, context),
    );
    // What went wrong first is what is told.
    worked.and(ended)
}

/// How what verifies it ended; nothing where nothing was verified.
fn work(
    workspace: &mut Workspace,
    actor: &Actor,
    deploy: &Deploy,
    rules: &Rules,
    door: &mut dyn Door,
) -> Result<Option<u8>, Failure> {
    let folder = Path::new(&deploy.folder);
    door.step("checking out");
    fs::DirBuilder::new().mode(0o700).create(folder).map_err(cannot("cannot make", folder))?;
    let git = Git::in_tree(&workspace.place.root)?;
    let commit = Oid::parse(&deploy.commit);
    let commit = commit.ok_or(crate::git::Error::Unexpected { command: "rev-parse".into() })?;
    git.add_detached(folder, &commit)?;
    let path = Path::new(&deploy.log);
    fs::create_dir_all(logs(workspace)).map_err(cannot("cannot make", path))?;
    let mut open = File::options();
    let log = open.create_new(true).write(true).mode(0o600).open(path);
    let log = log.map_err(cannot("cannot write", path))?;
    stop_here(workspace, "deploy-checked-out");
    let mut at = AtWork { workspace, actor, deploy, rules, log, door };
    at.door.step("deploying");
    let exit = at.run(&deploy.run)?;
    stop_here(at.workspace, "deploy-ran");
    let notices = at.workspace.decide(actor, Observed::default(), |view, context| {
        deploys::shipped(view, deploy.deploy, exit, context)
    })?;
    at.door.was_told(&notices);
    stop_here(at.workspace, "deploy-shipped");
    if exit != 0 || deploy.verify.is_empty() {
        return Ok(None);
    }
    at.door.step("verifying");
    at.run(&deploy.verify).map(Some)
}

fn stop_here(workspace: &Workspace, point: &str) {
    if test_hooks::stops_at(&workspace.place.store, point) {
        std::process::abort();
    }
}

struct AtWork<'a, 'd> {
    workspace: &'a mut Workspace,
    actor: &'a Actor,
    deploy: &'a Deploy,
    rules: &'a Rules,
    log: File,
    door: &'d mut dyn Door,
}

impl AtWork<'_, '_> {
    /// Runs one command in the checkout and gives its exit code, as a shell counts it.
    fn run(&mut self, words: &[String]) -> Result<u8, Failure> {
        let path = PathBuf::from(&self.deploy.log);
        let line = format!("$ {}\n", words.join(" "));
        self.log.write_all(line.as_bytes()).map_err(cannot("cannot write", &path))?;
        let failed = cannot("cannot run", Path::new(words.first().map_or("", String::as_str)));
        let (reader, writer) = std::io::pipe().map_err(&failed)?;
        let mut command = leash::command(words);
        command.current_dir(&self.deploy.folder).stdin(Stdio::null());
        {
            use std::os::unix::process::CommandExt;
            command.process_group(0);
        }
        leash::for_nobody(&mut command);
        command
            .env("BATON_DEPLOY", self.deploy.deploy.to_string())
            .env("BATON_DEPLOY_TARGET", &self.deploy.target)
            .env("BATON_DEPLOY_COMMIT", &self.deploy.commit);
        command.stdout(writer.try_clone().map_err(&failed)?).stderr(writer);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ok(leash::code_of(&error)),
        };
        // It holds the other end of the pipe.
        drop(command);
        self.attend(child, &listen(reader))
    }

    /// Passes output on, shows that we are there, and ends the command in time.
    fn attend(
        &mut self,
        mut child: Child,
        said: &std::sync::mpsc::Receiver<Vec<u8>>,
    ) -> Result<u8, Failure> {
        let lost = cannot("the command is lost", Path::new("wait"));
        let deadline = Instant::now() + Duration::from_millis(self.rules.timeout.0);
        let every = Duration::from_millis(RENEWED_EVERY.0);
        let mut renewed = Instant::now();
        loop {
            match said.recv_timeout(LOOKED_FOR_EVERY) {
                Ok(piece) => self.pass_on(&piece),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOKED_FOR_EVERY),
            }
            if let Some(status) = child.try_wait().map_err(&lost)? {
                while let Ok(piece) = said.recv_timeout(LAST_WORDS) {
                    self.pass_on(&piece);
                }
                return Ok(exit_code(status));
            }
            if Instant::now() >= deadline {
                end(&mut child);
                return Ok(leash::TOO_LONG);
            }
            if self.door.end_wanted() {
                end(&mut child);
                return Ok(STOPPED);
            }
            if renewed.elapsed() >= every {
                renewed = Instant::now();
                if let Err(failure) = self.renew() {
                    end(&mut child);
                    return Err(failure);
                }
            }
        }
    }

    /// Shows that we are still there. A store that does not answer now is asked again later; that
    /// the target was taken away is an answer.
    fn renew(&mut self) -> Result<(), Failure> {
        let id = self.deploy.deploy;
        let renewed = self.workspace.decide(self.actor, Observed::default(), |view, context| {
            deploys::renew(view, id, context)
        });
        match renewed {
            Ok(notices) => {
                self.door.was_told(&notices);
                Ok(())
            }
            Err(Failure::Store(_)) => Ok(()),
            Err(other) => Err(other),
        }
    }

    fn pass_on(&mut self, piece: &[u8]) {
        self.door.wrote(piece);
        // A disk that is full must not stop a deploy half-way.
        let _ = self.log.write_all(piece);
    }
}

/// Ends a command and everything it has started.
fn end(child: &mut Child) {
    let group = rustix::process::Pid::from_child(child);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
    child.kill().ok();
    child.wait().ok();
}
