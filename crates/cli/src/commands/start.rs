//! `baton start CLIENT`: the user's own client, under the protocol from its first act.
//!
//! Owns the foreground and the words at the end. The client has the terminal; its exit code is
//! ours. What is left behind goes to standard error, since standard output is the client's.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use baton_core::context::Actor;
use baton_core::refusal::Refusal;
use baton_core::trees::refused::Refused;
use baton_engine::api::handoffs::Accept;
use baton_engine::failure::Failure;
use baton_engine::policy;
use baton_engine::sandbox::{self, Net, Sandbox as Ready, Wanted};
use baton_engine::sessions;
use baton_engine::starting::limits::Limits;
use baton_engine::starting::{self, Begun, Client, Leftovers, NAMES, Tree, Wish};
use baton_engine::whoami;
use baton_engine::workspace::Workspace;
use serde_json::json;

use super::sandbox::{Foreground, opening, permits, run_in_foreground};
use crate::arguments::Common;
use crate::desk::{self, Outcome, remark};
use crate::onlooker::Onlooker;
use crate::render::{self, Paint, colour_wanted, paint, shown};
use crate::words::{Problem, word};

/// Start your agent client with a session, and a tree and a task if wanted
///
/// The client runs in the foreground with BATON_SESSION and the variables of its tree, so that its
/// hooks, its shell and its MCP server are one session. With --role it runs in that role's sandbox
/// (see baton sandbox), and the client is told not to offer its model the tools that the role has
/// not. A task that is for one role gives that role. When it ends, what is known is saved, claims
/// without uncommitted changes are released, the rest waits 10 minutes for its return, and what is
/// left is told. If the task cannot be taken, nothing is started and no tree is left. Exit code:
/// the client's.
#[derive(Debug, clap::Args)]
pub(crate) struct Start {
    /// The client: claude, codex, gemini, cursor-agent, opencode or aider, found on your PATH
    #[arg(value_name = "CLIENT")]
    client: String,
    /// Take this task for it
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// A new tree with a branch of its own, or this one; otherwise new when other agents are at
    /// work here and its role writes in the tree
    #[arg(long, value_name = "WHICH")]
    tree: Option<Tree>,
    /// So many ports in a row for a new tree, leased as @port/N
    #[arg(long, value_name = "N", default_value_t = 0)]
    ports: u16,
    #[command(flatten)]
    held: Held,
    /// Words for the client itself
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// How a client is held.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Held {
    /// Its role, held by the kernel in a sandbox; otherwise the task's, or its starter's
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// What of the network it sees, in a sandbox
    #[arg(long, value_name = "WHAT", default_value = "all", requires = "role")]
    net: Net,
    /// Also where the kernel cannot hold the role
    #[arg(long, requires = "role")]
    best_effort: bool,
}

pub(crate) fn run(common: &Common, wanted: &Start) -> Outcome {
    let client = client(&wanted.client)?;
    let (cwd, mut workspace, starter) = surroundings(common, &wanted.held)?;
    let role = match (&wanted.held.role, &wanted.task) {
        (None, Some(task)) => starting::role_of_task(&mut workspace, task)?,
        (role, _) => role.clone(),
    };
    let held = &wanted.held.for_start(&mut workspace, role.as_deref(), &starter)?;
    let wish = Wish {
        client,
        starter,
        role: role.as_deref(),
        task: wanted.task.as_deref(),
        tree: wanted.tree,
        ports: wanted.ports,
    };
    if wanted.ports > 0 && wanted.tree == Some(Tree::Here) {
        let next = "leave --ports out, or say --tree new";
        return Err(Problem::usage("ports are leased for a new tree", next));
    }
    let mut onlooker = Onlooker::new()?;
    let begun = starting::begin(workspace, &cwd, &wish, &mut onlooker)
        .map_err(|failure| tree_taken(failure, wanted))?;
    drop(onlooker);
    attend(common, client, begun, held, &wanted.arguments)
}

/// A tree that is there already, with a next step that can be said to `start`, which names none.
fn tree_taken(failure: Failure, wanted: &Start) -> Problem {
    let taken = match &failure {
        Failure::Refused(Refusal::Tree(refused)) => match refused.as_ref() {
            Refused::Taken { by, .. } => Some(by.as_ref().map(|tree| tree.path.clone())),
            _ => None,
        },
        _ => None,
    };
    let problem = Problem::from(failure);
    let Some(there) = taken else { return problem };
    let mut again = format!("baton start {}", wanted.client);
    for (option, value) in [("--task", &wanted.task), ("--role", &wanted.held.role)] {
        if let Some(value) = value {
            let _ = write!(again, " {option} {}", word(value));
        }
    }
    let go = match there {
        Some(path) => format!("cd {}", word(&path)),
        None => "baton worktree new NAME and cd there".to_owned(),
    };
    Problem { next: format!("{go}, then {again} --tree here"), ..problem }
}

/// `handoff accept ID --start CLIENT`.
pub(crate) fn with_handoff(
    common: &Common,
    accept: &Accept,
    name: &str,
    held: &Held,
    arguments: &[OsString],
) -> Outcome {
    let client = client(name)?;
    let (_, mut workspace, starter) = surroundings(common, held)?;
    let role = match &held.role {
        None => starting::role_of_handoff(&mut workspace, &accept.handoff)?,
        role => role.clone(),
    };
    let held = held.for_start(&mut workspace, role.as_deref(), &starter)?;
    let role = role.as_deref();
    let wish = Wish { client, starter, role, task: None, tree: Some(Tree::Here), ports: 0 };
    let begun = starting::begin_with_handoff(workspace, accept, &wish)?;
    attend(common, client, begun, &held, arguments)
}

/// One that is known and there.
fn client(name: &str) -> Result<&'static Client, Problem> {
    let Some(client) = Client::named(name) else {
        return Err(Problem::usage(
            format!("\"{}\" is no client that can be started", shown(name)),
            format!("name one of {}", NAMES.join(", ")),
        ));
    };
    match client.installed() {
        Some(_) => Ok(client),
        None => Err(Problem {
            exit: 4,
            code: "not_installed",
            message: format!("{} is not on your PATH; nothing was started", client.program),
            next: format!("install {}, or start another client that is", client.program),
            details: json!({ "client": client.name }),
        }),
    }
}

impl Held {
    /// With the role of a task or a handoff. That of its starter's session comes with the client's
    /// own; that it can be held is looked at here, before anything is begun.
    fn for_start(
        &self,
        workspace: &mut Workspace,
        role: Option<&str>,
        starter: &Actor,
    ) -> Result<Self, Failure> {
        let held = self.with(workspace, role)?;
        if role.is_none() {
            let inherited = sessions::starter_role(workspace, starter)?;
            self.with(workspace, inherited.as_deref())?;
        }
        Ok(held)
    }

    /// With a role that came along. One that the policy only names takes nothing away, so nothing
    /// is held. One that was asked for must be there.
    fn with(&self, workspace: &mut Workspace, role: Option<&str>) -> Result<Self, Failure> {
        let came = role.filter(|_| self.role.is_none());
        if let Some(named) = &self.role {
            policy::roles(workspace)?.must_have(named)?;
        }
        let Some(role) = came else { return Ok(self.clone()) };
        if policy::roles(workspace)?.role(role).is_none() {
            return Ok(self.clone());
        }
        sandbox::supported()?;
        Ok(Self { role: Some(role.to_owned()), ..self.clone() })
    }
}

/// Looked at before anything is begun.
fn surroundings(
    common: &Common,
    held: &Held,
) -> Result<(std::path::PathBuf, Workspace, Actor), Problem> {
    let cwd = desk::folder(common)?;
    if held.role.is_some() && !held.best_effort {
        sandbox::supported()?;
    }
    let mut workspace = desk::open(&cwd)?;
    let starter = whoami::starter(&mut workspace, &desk::hints(common))?;
    Ok((cwd, workspace, starter))
}

fn attend(
    common: &Common,
    client: &'static Client,
    mut begun: Begun,
    held: &Held,
    arguments: &[OsString],
) -> Outcome {
    remark(&begun_words(client, &begun));
    let ran = run_client(client, &mut begun, held, arguments);
    // Whatever came of it, what was begun is ended in order.
    let code = *ran.as_ref().unwrap_or(&126);
    let left = starting::finish(&mut begun, code);
    let code = ran?;
    match left {
        Ok(left) => {
            if common.json {
                desk::print(&format!("{}\n", serde_json::to_string(&left).unwrap_or_default()));
            }
            let here = desk::folder(common)?;
            let elsewhere = (begun.folder != here).then(|| begun.folder.display().to_string());
            let text = left_words(&left, elsewhere.as_deref(), colour_wanted(&std::io::stderr()));
            remark(text.trim_end());
        }
        Err(failure) => {
            desk::say_problem(&failure.into(), false);
        }
    }
    Ok(ExitCode::from(code))
}

fn run_client(
    client: &'static Client,
    begun: &mut Begun,
    held: &Held,
    arguments: &[OsString],
) -> Result<u8, Failure> {
    // Its starter's, or that which it had when it comes back.
    let held = &held.with(&mut begun.workspace, begun.credentials.role.as_deref())?;
    let program = client.installed().unwrap_or_else(|| client.program.into());
    let told = starting::limits(begun, client, &program)?;
    if !told.gone.is_empty() {
        remark(&told_words(client, &told));
    }
    let words: Vec<OsString> = [program.into_os_string()]
        .into_iter()
        .chain(told.arguments.iter().chain(arguments).cloned())
        .collect();
    let credential = &begun.credentials.credential.clone();
    let (folder, variables) = (begun.folder.clone(), begun.environment.clone());
    let surround = |command: &mut std::process::Command| {
        command.current_dir(&folder);
        // Some clients go by this rather than by where they are.
        command.env("PWD", &folder).env_remove("OLDPWD");
        command.env(starting::VARIABLE, "1");
        command.envs(variables.iter().chain(&told.environment).map(|(name, value)| (name, value)));
    };
    let Some(role) = &held.role else {
        let mut command = starting::clients::tied(&words);
        command.env("BATON_SESSION", credential);
        for name in ["BATON_AGENT", "BATON_PERSON_TOKEN_FILE"] {
            command.env_remove(name);
        }
        surround(&mut command);
        let mut signals = Foreground::watch()?;
        let doing = "cannot start the client";
        let cannot = |source| Failure::File { doing, path: client.program.into(), source };
        let mut child = command.spawn().map_err(cannot)?;
        return Ok(sandbox::attend(&mut child, &mut signals));
    };
    let mut limits =
        sandbox::limits_of(&mut begun.workspace, role, &begun.credentials.session.clone())?;
    remark(&opening(role, &limits, held.net));
    limits.writable.extend(client.own_folders());
    let kept = Wanted {
        judge: Arc::new(permits::Role { name: role.clone(), may: limits.may }),
        limits,
        net: held.net,
        best_effort: held.best_effort,
        credential,
    };
    let ready = Ready::prepare(&begun.workspace, kept)?;
    let mut command = ready.command(&words)?;
    surround(&mut command);
    run_in_foreground(ready, command)
}

fn begun_words(client: &Client, begun: &Begun) -> String {
    let colour = colour_wanted(&std::io::stderr());
    let name = paint(&shown(&begun.credentials.name), Paint::Bold, colour);
    let mut text = format!("{}: {} is {name}", paint("started", Paint::Green, colour), client.name);
    if begun.credentials.resumed {
        text.push_str(" again, with what it left");
    }
    if let Some(made) = &begun.made {
        let (path, branch) = (shown(&made.tree.path), shown(&made.tree.branch));
        let _ = write!(text, ", in the new tree {path} on {branch}");
    }
    let task = begun.environment.iter().find(|(name, _)| name == "BATON_TASK");
    if let Some((_, task)) = task {
        let _ = write!(text, ", with {}", shown(task));
    }
    text
}

fn told_words(client: &Client, told: &Limits) -> String {
    let gone: Vec<&str> = told.gone.iter().map(|tool| tool.word()).collect();
    let label = paint("tools", Paint::Dim, colour_wanted(&std::io::stderr()));
    format!("{label}: {} does not offer its model {}", client.name, gone.join(", "))
}

/// What is left, each with its next step.
fn left_words(left: &Leftovers, elsewhere: Option<&str>, colour: bool) -> String {
    let mut text = format!("{} {}", paint("ended", Paint::Green, colour), shown(&left.name));
    if !left.released.is_empty() {
        let _ = write!(text, "; released {}", render::resources(&left.released));
    }
    text.push('\n');
    let mut next = Vec::new();
    for (what, how) in [(&left.dirty, ""), (&left.unclaimed, ", claimed by nobody")] {
        if !what.is_empty() {
            let what = render::resources(what);
            let _ = writeln!(text, "  left: {what}, changed and in no commit{how}");
        }
    }
    for there in &left.elsewhere {
        let (what, place) = (render::resources(&there.dirty), shown(&there.path));
        let _ = writeln!(text, "  left: {what} in {place}, changed and in no commit");
    }
    if !(left.dirty.is_empty() && left.unclaimed.is_empty()) {
        next.push(match left.tree.as_deref().or(elsewhere) {
            Some(tree) => format!("git -C {} status", word(tree)),
            None => "git status".to_owned(),
        });
    }
    next.extend(left.elsewhere.iter().map(|there| format!("git -C {} status", word(&there.path))));
    for task in &left.tasks {
        let _ = writeln!(text, "  left: {} \"{}\", not finished", task.task, shown(&task.title));
        next.push(format!("baton task show {}", task.task));
    }
    if let Some(until) = left.waits_until {
        let _ = writeln!(text, "  what is left waits until {}", render::until(until));
    }
    if let Some(tree) = &left.tree {
        let _ = writeln!(text, "  the tree is kept: {}", shown(tree));
        if next.is_empty() {
            next.push(format!("cd {}, then baton land; or baton worktree gc", word(tree)));
        }
    }
    if let Some(first) = next.first() {
        let _ = writeln!(text, "{}: {first}", paint("next", Paint::Cyan, colour));
    }
    text
}
