//! A role that the kernel holds: a command, and every child of it, that can write only where its
//! role may.
//!
//! Owns the order of things: what may be written (`folders`), a private folder (`private`), the
//! broker outside (`broker`), and the copy of ourselves that confines itself (`kernel`) and then
//! becomes the command. Invariant: a command is started confined or not at all, unless somebody
//! asked for whatever the kernel can do. What a role may is said in `baton_core::roles`.

use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;

use baton_core::id::SessionId;
use baton_core::roles::writing::Writes;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::leash;
use crate::place::Place;
use crate::policy;
use crate::workspace::Workspace;

mod bounds;
mod broker;
pub mod caller;
mod family;
mod folders;
mod guard;
#[cfg(target_os = "linux")]
mod kernel;
mod parts;
#[cfg(not(target_os = "linux"))]
mod kernel {
    //! Without Landlock nothing is held, so nothing is started.
    use super::{Error, Spec};

    pub(super) fn supported() -> Result<(), Error> {
        Err(Error::NotLinux)
    }

    pub(super) fn confine(_: &Spec) -> Result<bool, Error> {
        Err(Error::NotLinux)
    }
}
pub(crate) mod private;

pub use bounds::bound_root;
pub(crate) use bounds::{bound_role, git_in, must_be_bound_to, must_be_on};
pub use broker::{Judge, Permit, Said};

/// The hidden verb of the copy that confines itself and becomes the command.
pub const VERB: &str = "sandbox-command";
/// The hidden verb of a call that the broker makes for somebody inside.
pub const CALL_VERB: &str = "sandbox-call";
/// Where the broker is: the path of its socket, a colon, a secret.
pub const BROKER_VARIABLE: &str = "BATON_BROKER";
/// The line to the broker that a command inherits: its descriptor, a colon, the socket's inode.
pub const LINE_VARIABLE: &str = "BATON_BROKER_LINE";
/// Set for calls that the broker makes: they act as its session, whatever they say of themselves.
pub const BOUND_VARIABLE: &str = "BATON_BOUND";

/// Set for calls that may run what the caller names or the tree has (checks, hooks): how that is
/// held, which is as the sandbox's own command is.
const HELD_VARIABLE: &str = "BATON_HELD";
/// Set for calls that the broker makes: the tree and the store that they act in, and no other.
const PLACE_VARIABLE: &str = "BATON_BOUND_PLACE";
/// What only calls of the broker have, and nothing that they start.
pub(crate) const OF_CALLS: [&str; 3] = [BOUND_VARIABLE, HELD_VARIABLE, PLACE_VARIABLE];

/// Whether this process is a call from inside a sandbox.
#[must_use]
pub fn is_bound() -> bool {
    std::env::var_os(BOUND_VARIABLE).is_some()
}

/// The words of a command held as the sandbox's own is, where this process is a call that holds.
pub(crate) fn held_words(words: &[String]) -> Option<Vec<String>> {
    let spec = held_spec()?;
    let first = ["/proc/self/exe", VERB, spec.as_str(), "--"].map(str::to_owned);
    Some(first.into_iter().chain(words.iter().cloned()).collect())
}

/// A command held as the sandbox's own is, where this process is a call from inside one.
pub(crate) fn held<Word: AsRef<OsStr>>(words: &[Word]) -> Option<Command> {
    let spec = held_spec()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(VERB).arg(spec).arg("--").args(words);
    for name in OF_CALLS {
        command.env_remove(name);
    }
    let credential = std::env::var("BATON_SESSION").unwrap_or_default();
    command.env("BATON_SESSION", public_half(&credential));
    Some(command)
}

/// Enough to know who one is, never enough to act as it elsewhere.
fn public_half(credential: &str) -> &str {
    credential.split('.').next().unwrap_or_default()
}

fn held_spec() -> Option<String> {
    let text = std::env::var(HELD_VARIABLE).ok()?;
    // What cannot be read holds everything.
    let spec = serde_json::from_str(&text).unwrap_or(Spec {
        writable: Vec::new(),
        temporary: std::env::temp_dir(),
        net: Net::None,
        best_effort: false,
        runner: 0,
    });
    let spec = Spec { runner: std::process::id(), ..spec };
    Some(serde_json::to_string(&spec).unwrap_or_default())
}

/// Whether this process is a call that holds what it runs.
#[must_use]
pub fn is_held() -> bool {
    std::env::var_os(HELD_VARIABLE).is_some()
}

/// Whether it is a sandbox, ours or a client's, that keeps a store from being written: by its own
/// rights the file could be.
pub fn closes(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    let folder = path.parent().unwrap_or(path);
    // A gate that is not there yet is a matter of its folder.
    [path, folder].iter().all(|one| !one.exists() || access(*one, Access::WRITE_OK).is_ok())
        && folder.exists()
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("only Linux can hold a role by its kernel")]
    NotLinux,
    #[error("this kernel has no Landlock, or an old one")]
    NoLandlock,
    #[error("the kernel did not take the rules: {why}")]
    NotConfined { why: String },
    #[error("a network namespace cannot be made: {why}")]
    NoNamespace { why: String },
    #[error("this tree has more than {} files to tell apart for the role", parts::FILES_MAX)]
    TooManyFiles,
    #[error("{path} is not UTF-8")]
    NotText { path: PathBuf },
    #[error("the broker of this sandbox does not answer")]
    BrokerGone,
    #[error("{} is not the tree of this sandbox", .root.display())]
    Elsewhere { root: PathBuf },
    #[error("this sandbox began on {}, and the tree is on {now} now", began_on(.began.as_deref()))]
    OtherBranch { began: Option<String>, now: String },
}

impl Error {
    /// Whether it is a "no" to a call, and not that something could not be done.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Elsewhere { .. } | Self::OtherBranch { .. })
    }
}

fn began_on(branch: Option<&str>) -> &str {
    branch.unwrap_or("no branch")
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sandbox(Box::new(error))
    }
}

/// What of the network a command sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Net {
    /// No interface is up
    None,
    /// Only 127.0.0.1 of its own, which nobody outside shares
    Loopback,
    /// The machine's network, as it is
    #[default]
    All,
}

/// What a role may do, as far as the kernel and the broker are asked to hold it.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// What may be written, with everything below.
    pub writable: Vec<PathBuf>,
    /// New entries cannot be made directly in this folder: something in it stays closed.
    pub closed_top: Option<PathBuf>,
    /// What of the tree is opened one by one, because the role may not write all of it.
    pub parts: Vec<String>,
    /// So many more files could not be named to the kernel.
    pub left_out: usize,
    /// Folders that were made for it, and go again if nothing is in them at the end.
    pub made: Vec<PathBuf>,
    /// The session's own folder, if that is all.
    pub scratch: Option<PathBuf>,
    pub may: May,
}

/// What the broker does for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct May {
    /// Changes of the tree that Baton itself makes.
    pub write_tree: bool,
    /// Plain `git commit` can move the branch.
    pub move_branch: bool,
    pub commit: bool,
    pub land: bool,
    pub deploy: bool,
}

/// What a session of a role may write in this tree.
pub fn limits_of(
    workspace: &mut Workspace,
    role: &str,
    session: &SessionId,
) -> Result<Limits, Failure> {
    let rules = policy::roles(workspace)?;
    let place = &workspace.place;
    let known = rules.role(role).unwrap_or_default();
    let mut limits = match Writes::of(&rules, role, session) {
        None => folders::of_tree(place),
        Some(writes) => folders::of_role(place, &writes, session)?,
    };
    limits.may = May {
        write_tree: !limits.writable.is_empty() && limits.scratch.is_none(),
        move_branch: limits.may.move_branch,
        commit: known.commit,
        land: known.land,
        deploy: known.deploy,
    };
    Ok(limits)
}

/// What of these folders can be opened besides: never what stays closed whatever the role.
pub fn besides(place: &Place, folders: &[PathBuf]) -> Vec<PathBuf> {
    folders::besides(place, folders)
}

/// What the copy of ourselves is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    writable: Vec<PathBuf>,
    /// Its TMPDIR.
    temporary: PathBuf,
    net: Net,
    best_effort: bool,
    /// Our own process: when it ends, so does the command.
    runner: u32,
}

/// What is wanted of a sandbox.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub limits: Limits,
    pub net: Net,
    pub best_effort: bool,
    /// As which session the broker acts.
    pub credential: &'a str,
    pub judge: Arc<dyn Judge>,
}

/// A sandbox that is ready for its command.
pub struct Sandbox {
    /// Goes with it.
    _private: private::Private,
    broker: broker::Broker,
    guard: Arc<guard::Guard>,
    family: Arc<family::Family>,
    limits: Limits,
    spec: Spec,
    session: String,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Whether this kernel can hold a role.
pub fn supported() -> Result<(), Failure> {
    Ok(kernel::supported()?)
}

impl Sandbox {
    pub fn prepare(workspace: &Workspace, wanted: Wanted<'_>) -> Result<Self, Failure> {
        if !wanted.best_effort {
            supported()?;
        } else if cfg!(not(target_os = "linux")) {
            return Err(Error::NotLinux.into());
        }
        let place = &workspace.place;
        let bounds = bounds::Bounds::of(place, &wanted)?;
        let private = private::Private::make()?;
        let mut writable = wanted.limits.writable.clone();
        writable.push(private.temporary());
        let guard = Arc::new(guard::Guard::of(place));
        let family = Arc::new(family::Family::begin());
        let runner = std::process::id();
        let (temporary, net, best_effort) = (private.temporary(), wanted.net, wanted.best_effort);
        let spec = Spec { writable, temporary, net, best_effort, runner };
        let bound = broker::Bound {
            held: spec.clone(),
            credential: wanted.credential.to_owned(),
            root: place.root.clone(),
            repository: folders::whole_repository(place, [private.temporary(), private.of_calls()]),
            temporary: private.of_calls(),
            best_effort: wanted.best_effort,
            guard: Arc::clone(&guard),
            family: Arc::clone(&family),
            judge: wanted.judge,
            place: serde_json::to_string(&bounds)
                .map_err(|_| Error::NotText { path: place.root.clone() })?,
        };
        let broker = broker::Broker::open(&private.socket(), bound)?;
        let session = public_half(wanted.credential).to_owned();
        let _private = private;
        Ok(Self { _private, broker, guard, family, limits: wanted.limits, spec, session })
    }

    /// The command, through a copy of ourselves that confines itself and then becomes it.
    pub fn command(&self, words: &[OsString]) -> Result<Command, Failure> {
        let spec = serde_json::to_string(&self.spec);
        let odd = self.spec.writable.iter().find(|path| path.to_str().is_none());
        let not_text = || Error::NotText { path: odd.cloned().unwrap_or_default() };
        let mut command = Command::new("/proc/self/exe");
        command.arg(VERB).arg(spec.map_err(|_| not_text())?).arg("--").args(words);
        for name in ["BATON_PERSON_TOKEN_FILE", "BATON_AGENT", BOUND_VARIABLE, LINE_VARIABLE] {
            command.env_remove(name);
        }
        command.env(BROKER_VARIABLE, self.broker.address());
        command.env("BATON_SESSION", &self.session);
        if let Some(folder) = &self.limits.scratch {
            command.env("BATON_SCRATCH", folder);
        }
        Ok(command)
    }

    pub fn start(&self, command: &mut Command) -> std::io::Result<Child> {
        self.family.start(command)
    }

    /// The command has ended: nobody is served any more, and whatever it left running ends too.
    /// Answers which files of the tree's git folder it had changed and were put back.
    pub fn close(self) -> Vec<PathBuf> {
        self.broker.close();
        self.family.end();
        self.guard.hold();
        // One that has something in it stays.
        for folder in &self.limits.made {
            let _ = std::fs::remove_dir(folder);
        }
        self.guard.put_back()
    }
}

/// Confines this process for good. Answers whether the kernel took every rule; without
/// `best_effort` it took them all.
pub fn confine(spec: &str) -> Result<(Spec, bool), Failure> {
    let bad = |error: serde_json::Error| Error::NotConfined { why: error.to_string() };
    let spec: Spec = serde_json::from_str(spec).map_err(bad)?;
    let whole = kernel::confine(&spec)?;
    Ok((spec, whole))
}

/// Becomes the command, whose life is tied to the sandbox's. Returns only if that cannot be, with
/// what a shell would answer.
#[must_use]
pub fn become_command(spec: &Spec, words: &[OsString]) -> (u8, Option<std::io::Error>) {
    // Kept until the process is another: so it stays open there.
    let line = caller::keep_line();
    let said = line.as_ref().map(|(_, text)| (LINE_VARIABLE, OsStr::new(text)));
    let variables: Vec<(&str, &OsStr)> =
        said.into_iter().chain([("TMPDIR", spec.temporary.as_os_str())]).collect();
    crate::once::child::become_tied_with(spec.runner, Signal::TERM, words, &variables)
}

/// A call for somebody inside: without the terminal, so that it is nobody's word but the
/// session's, and confined to the repository where it runs code of the tree.
#[must_use]
pub fn become_call(runner: u32, words: &[OsString]) -> (u8, Option<std::io::Error>) {
    if let Err(error) = rustix::process::setsid() {
        return (126, Some(error.into()));
    }
    let mut whole = vec![OsString::from("/proc/self/exe")];
    whole.extend_from_slice(words);
    crate::once::child::become_tied(runner, Signal::KILL, &whole)
}

/// Whoever wants a command in the foreground to end.
pub trait Door {
    fn end_descriptors(&self) -> [BorrowedFd<'_>; 2];
    /// Somebody wants this very process to end, and not by the terminal, which the command hears.
    fn end_wanted(&mut self) -> bool;
}

/// Waits for a command in the foreground; a wish to end is passed on to it. Its exit code, as a
/// shell counts it.
pub fn attend(child: &mut Child, door: &mut dyn Door) -> u8 {
    loop {
        match leash::wait_long(child, &door.end_descriptors()) {
            leash::Waited::Ended(code) => return code,
            leash::Waited::Late => {}
            leash::Waited::Woken => {
                if door.end_wanted() {
                    // It may have ended in this very moment; then there is nobody to tell.
                    let _ = kill_process(Pid::from_child(child), Signal::TERM);
                }
            }
        }
    }
}

/// The folder of a call, if it lies in the tree; its root otherwise.
fn inside(root: &Path, folder: &Path) -> PathBuf {
    match folder.canonicalize() {
        Ok(found) if found.starts_with(root) && found.is_dir() => found,
        _ => root.to_owned(),
    }
}
