//! `baton sandbox ROLE -- CMD…`: a command that the kernel holds to its role.
//!
//! Owns the words and the foreground: the command has the terminal, we have the broker. Its exit
//! code is ours. `permits` says what may be asked for from inside.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use baton_core::id::SessionId;
use baton_core::policy::Standing;
use baton_core::refusal::Refusal;
use baton_engine::failure::Failure;
use baton_engine::sandbox::{self, Door, Limits, Net, Sandbox as Ready, Wanted};
use baton_engine::starting::clients;
use baton_engine::{api, policy, sessions, whoami};

use crate::arguments::{self, Command, Common};
use crate::desk::{self, Desk, Outcome, remark};
use crate::render::{Paint, colour_wanted, counted, paint, shown};
use crate::signals::Signals;
use crate::words::Problem;

pub(crate) mod permits;

/// How many of its parts one line names.
const PARTS_NAMED_MAX: usize = 4;

/// Run a command that can write only where its role may, held by the kernel for every child
///
/// Reading stays free. Besides what the role may write there is a private TMPDIR, removed at the
/// end, and the terminal. The store is closed: Baton inside asks a broker outside, which acts as
/// this session only, and decides nothing that is a person's. A plain `git commit` cannot move the
/// branch unless its folder is its own; `baton commit` does. Exit code: the command's, 128 and the
/// signal when it was killed; 4 when the role cannot be held here.
#[derive(Debug, clap::Args)]
pub(crate) struct Sandbox {
    /// The role: what it may write of this tree as that is now is opened, and nothing beside it;
    /// scratch writes its scratch folder; verify, review and explore write nothing
    #[arg(value_name = "ROLE")]
    role: String,
    /// Run it in this folder, with the tree around it; otherwise here
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// What of the network it sees, by a namespace of its own
    #[arg(long, value_name = "WHAT", default_value = "all")]
    net: Net,
    /// Also run it where the kernel cannot hold everything; what is not held is said
    #[arg(long)]
    best_effort: bool,
    /// Let it write here as well (a person's right)
    #[arg(long, value_name = "DIR")]
    allow_write: Vec<PathBuf>,
    /// The command, without a shell
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The copy of ourselves that confines itself and becomes the command.
#[derive(Debug, clap::Args)]
pub(crate) struct SandboxCommand {
    spec: String,
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// A call of the broker.
#[derive(Debug, clap::Args)]
pub(crate) struct SandboxCall {
    runner: u32,
    #[arg(last = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(common: &Common, wanted: &Sandbox) -> Outcome {
    let cwd = desk::folder(common)?;
    let folder = match &wanted.dir {
        None => cwd.clone(),
        Some(dir) => desk::existing(&cwd, dir, "--dir")?,
    };
    let common = Common { directory: Some(folder.clone()), ..common.clone() };
    let mut desk = Desk::open_as(&common, whoami::starter)?;
    policy::roles(&mut desk.workspace)?.must_have(&wanted.role).map_err(Failure::from)?;
    let allowed = allowed(&desk, wanted, &cwd)?;
    if !wanted.best_effort {
        sandbox::supported()?;
    }
    let own = own_session(&mut desk, &common, &wanted.role)?;
    let session = SessionId(own.credential().split('.').next().unwrap_or_default().to_owned());
    let limits = sandbox::limits_of(&mut desk.workspace, &wanted.role, &session);
    let mut limits = limits.inspect_err(|_| end(&mut desk, &own))?;
    let mut opening = opening(&wanted.role, &limits, wanted.net);
    if !allowed.is_empty() {
        let also: Vec<String> = allowed.iter().map(|one| shown(&one.to_string_lossy())).collect();
        opening.push_str(&format!("; also in {}, as far as it is not closed", also.join(", ")));
    }
    limits.writable.extend(sandbox::besides(&desk.workspace.place, &allowed));
    let kept = Wanted {
        judge: Arc::new(permits::Role { name: wanted.role.clone(), may: limits.may }),
        limits,
        net: wanted.net,
        best_effort: wanted.best_effort,
        credential: own.credential(),
    };
    let outcome = Ready::prepare(&desk.workspace, kept).and_then(|ready| {
        remark(&opening);
        let mut command = ready.command(&wanted.command)?;
        command.current_dir(&folder).env("PWD", &folder);
        run_in_foreground(ready, command)
    });
    end(&mut desk, &own);
    Ok(ExitCode::from(outcome?))
}

/// Whatever came of it, a session that was only for this ends; it may have ended by itself.
fn end(desk: &mut Desk, own: &Own) {
    let Own::Started(credential) = own else { return };
    let environment = Some(credential.clone());
    let hints = whoami::Hints { environment, ..whoami::Hints::default() };
    if let Ok(actor) = whoami::actor(&mut desk.workspace, &hints) {
        let _ = sessions::end(&mut desk.workspace, &actor, &api::SessionEnd::default(), None);
    }
}

/// As whom the broker acts.
enum Own {
    Given(String),
    Started(String),
}

impl Own {
    fn credential(&self) -> &str {
        match self {
            Self::Given(credential) | Self::Started(credential) => credential,
        }
    }
}

/// The session that was given, proven; otherwise one that lasts as long as the command.
fn own_session(desk: &mut Desk, common: &Common, role: &str) -> Result<Own, Problem> {
    let hints = desk::hints(common);
    if let Some(credential) = hints.credential.clone().or(hints.environment.clone()) {
        let actor = whoami::actor(&mut desk.workspace, &hints)?;
        sessions::whoami(&mut desk.workspace, &actor)?;
        sessions::must_be_within(&mut desk.workspace, &actor, role)?;
        return Ok(Own::Given(credential));
    }
    let wanted = api::SessionStart {
        role: Some(role.to_owned()),
        pid: Some(std::process::id()),
        ..api::SessionStart::default()
    };
    let started = sessions::start(&mut desk.workspace, &desk.actor, &wanted, None)?;
    Ok(Own::Started(started.credential))
}

/// What a person opens besides.
fn allowed(desk: &Desk, wanted: &Sandbox, cwd: &Path) -> Result<Vec<PathBuf>, Problem> {
    if wanted.allow_write.is_empty() {
        return Ok(Vec::new());
    }
    let agent = whoami::standing(&desk.workspace, &desk.actor) == Standing::Agent;
    if agent || std::env::var_os("BATON_SESSION").is_some() {
        let what = "opening folders to a sandbox".to_owned();
        return Err(Failure::Refused(Refusal::NeedsPerson { what }).into());
    }
    let full = |dir: &PathBuf| {
        cwd.join(dir).canonicalize().map_err(|_| {
            let message = format!("{} is not there", shown(&dir.to_string_lossy()));
            Problem::usage(message, "give an existing folder to --allow-write")
        })
    };
    let folders = wanted.allow_write.iter().map(full).collect::<Result<Vec<_>, _>>()?;
    let place = &desk.workspace.place;
    let shut =
        |folder: &&PathBuf| sandbox::besides(place, std::slice::from_ref(*folder)).is_empty();
    match folders.iter().find(shut) {
        Some(folder) => Err(Problem::usage(
            format!("{} stays closed, whatever the role", shown(&folder.to_string_lossy())),
            "give --allow-write a folder that is not git's or the store's",
        )),
        None => Ok(folders),
    }
}

/// What of a tree is opened, and that nothing else is.
fn opened(top: &Path, limits: &Limits) -> String {
    let mut named: Vec<String> =
        limits.parts.iter().take(PARTS_NAMED_MAX).map(|part| shown(part)).collect();
    let more = limits.parts.len().saturating_sub(PARTS_NAMED_MAX);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let left_out = match limits.left_out as u64 {
        0 => String::new(),
        count => format!(" ({} too many for the kernel)", counted(count, "file", "files")),
    };
    let (named, top) = (named.join(", "), shown(&top.to_string_lossy()));
    format!("writes {named}{left_out} in {top}, and makes nothing new beside them")
}

/// One line on what is held.
pub(crate) fn opening(role: &str, limits: &Limits, net: Net) -> String {
    let mut parts = Vec::new();
    let tree = limits.writable.first();
    parts.push(match (tree, &limits.closed_top) {
        (_, Some(top)) if !limits.parts.is_empty() => opened(top, limits),
        (None, _) => "writes nothing but its TMPDIR".to_owned(),
        (Some(_), Some(top)) => format!(
            "writes in {}, but nothing new directly in that folder (a worktree has no such limit)",
            shown(&top.to_string_lossy())
        ),
        (Some(folder), None) => format!("writes in {}", shown(&folder.to_string_lossy())),
    });
    if limits.may.commit && !limits.may.move_branch {
        parts.push("commits with baton commit".to_owned());
    }
    match net {
        Net::All => {}
        Net::None => parts.push("a network namespace with no interface".to_owned()),
        Net::Loopback => parts.push("a network namespace with loopback only".to_owned()),
    }
    let label = paint("sandbox", Paint::Dim, colour_wanted(&std::io::stderr()));
    format!("{label}: {} {}", shown(role), parts.join("; "))
}

/// Runs it to its end with the terminal, and tells what it had tampered with.
pub(crate) fn run_in_foreground(
    ready: Ready,
    mut command: std::process::Command,
) -> Result<u8, Failure> {
    let mut signals = Foreground::watch()?;
    let child = ready.start(&mut command);
    let code = child.map(|mut child| sandbox::attend(&mut child, &mut signals));
    let tampered = ready.close();
    for path in tampered {
        let label = paint("note", Paint::Yellow, colour_wanted(&std::io::stderr()));
        let path = shown(&path.to_string_lossy());
        remark(&format!("{label}: it had changed {path}, which is put back: look at what it ran"));
    }
    let path = PathBuf::from("/proc/self/exe");
    code.map_err(|source| Failure::File { doing: "cannot start the command", path, source })
}

/// A command has the terminal: what is typed there is for it, and we outlive it.
pub(crate) struct Foreground {
    interrupt: Signals,
    terminate: Signals,
}

impl Foreground {
    pub(crate) fn watch() -> Result<Self, Failure> {
        Ok(Self { interrupt: Signals::of_keys()?, terminate: Signals::to_terminate()? })
    }
}

impl Door for Foreground {
    fn end_descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.interrupt.descriptor(), self.terminate.descriptor()]
    }

    fn end_wanted(&mut self) -> bool {
        // The command hears the keys itself.
        self.interrupt.came();
        self.terminate.came()
    }
}

pub(crate) fn become_command(wanted: &SandboxCommand) -> Outcome {
    let (spec, whole) = sandbox::confine(&wanted.spec)?;
    if !whole {
        remark("sandbox: this kernel holds nothing: what it writes is not confined");
    }
    let (code, error) = sandbox::become_command(&spec, &wanted.command);
    Ok(not_run(code, error, &wanted.command))
}

pub(crate) fn become_call(wanted: &SandboxCall) -> Outcome {
    let (code, error) = sandbox::become_call(wanted.runner, &wanted.words);
    Ok(not_run(code, error, &wanted.words))
}

pub(crate) fn become_client(wanted: &SandboxCall) -> Outcome {
    let (code, error) = clients::become_client(wanted.runner, &wanted.words);
    Ok(not_run(code, error, &wanted.words))
}

fn not_run(code: u8, error: Option<std::io::Error>, words: &[OsString]) -> ExitCode {
    let program = words.first().map(|word| word.to_string_lossy().into_owned());
    if let Some(error) = error {
        remark(&format!("cannot run {}: {error}", shown(&program.unwrap_or_default())));
    }
    ExitCode::from(code)
}

/// Inside a sandbox the store is closed: whatever is asked goes to the broker outside. An MCP
/// server stays inside, and asks for one thing after the other.
pub(crate) fn through_broker() -> Option<ExitCode> {
    if !sandbox::caller::is_inside() {
        return None;
    }
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let serves = || match arguments::parse(std::env::args_os()) {
        Ok(line) => matches!(line.command, Command::Mcp(_)),
        Err(_) => false,
    };
    if words.first().is_some_and(|verb| verb == sandbox::VERB)
        || words.iter().any(|word| word == "mcp") && serves()
    {
        return None;
    }
    let json = words.iter().any(|word| word == "--json");
    Some(match sandbox::caller::call(&words) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => desk::say_problem(&failure.into(), json),
    })
}
