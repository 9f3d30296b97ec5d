//! One file a noun: what each command does with the engine and how it says so.
//!
//! Owns the way from a parsed command line to the file that serves it. Decides nothing.

use std::process::ExitCode;

use baton_engine::whoami;
use clap::CommandFactory;

use crate::arguments::{Command, CommandLine, Common};
use crate::desk::{self, Desk, Outcome};

pub(crate) mod claims;
pub(crate) mod commit;
pub(crate) mod conflicts;
pub(crate) mod demo;
pub(crate) mod deploy;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod gate;
pub(crate) mod git_door;
pub(crate) mod handoff;
pub(crate) mod hook;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod interface;
pub(crate) mod journal;
pub(crate) mod mcp;
pub(crate) mod notes;
pub(crate) mod numbers;
pub(crate) mod once;
pub(crate) mod person;
pub(crate) mod policy;
pub(crate) mod prime;
pub(crate) mod queue;
pub(crate) mod reference;
pub(crate) mod rescue;
pub(crate) mod roles;
pub(crate) mod rules;
pub(crate) mod sandbox;
pub(crate) mod session;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod suggestions;
pub(crate) mod sync;
pub(crate) mod task;
pub(crate) mod trust;
pub(crate) mod vote;
pub(crate) mod worktree;

/// Serves one command line.
pub(crate) fn run(line: CommandLine) -> ExitCode {
    let json = line.common.json;
    match serve(line.command, &line.common) {
        Ok(code) => code,
        Err(problem) => desk::say_problem(&problem, json),
    }
}

/// The deed of one command. With a counter in `common`, for whoever stands there.
pub(crate) fn serve(command: Command, common: &Common) -> Outcome {
    sandbox::permits::demand(&command, common)?;
    match command {
        Command::Claim(wanted) => claims::claim(&mut Desk::open_to_act(common)?, &wanted),
        Command::Release(wanted) => claims::release(&mut Desk::open_to_act(common)?, &wanted),
        Command::Renew(wanted) => claims::renew(&mut Desk::open_to_act(common)?, &wanted),
        Command::Ask(wanted) => claims::ask(&mut Desk::open_to_act(common)?, &wanted),
        Command::Revoke(wanted) => claims::revoke(&mut Desk::open_to_act(common)?, &wanted),
        Command::Check(wanted) => claims::check(&mut Desk::open(common)?, &wanted),
        Command::Claims(wanted) => claims::list(&mut Desk::open(common)?, &wanted),
        Command::Why { path } => claims::why(&mut Desk::open(common)?, &path),
        Command::Task(wanted) => task::run(common, wanted),
        Command::Handoff(wanted) => handoff::run(common, wanted),
        Command::Gate(wanted) => gate::run(common, &wanted),
        Command::Vote(wanted) => vote::vote(common, &wanted),
        Command::Votes { subject } => vote::votes(common, &subject),
        Command::State(wanted) => state::run(common, &wanted),
        Command::Once(wanted) => once::run(common, &wanted),
        Command::OnceCommand(wanted) => once::become_command(&wanted),
        Command::Sandbox(wanted) => sandbox::run(common, &wanted),
        Command::SandboxCommand(wanted) => sandbox::become_command(&wanted),
        Command::SandboxCall(wanted) => sandbox::become_call(&wanted),
        Command::Start(wanted) => start::run(common, &wanted),
        Command::StartClient(wanted) => sandbox::become_client(&wanted),
        Command::Suggest(wanted) => suggestions::suggest(&mut Desk::open_to_act(common)?, wanted),
        Command::Suggestions(wanted) => {
            suggestions::list(&mut Desk::open_as(common, whoami::actor)?, &wanted)
        }
        Command::Suggestion(wanted) => suggestions::run(common, &wanted),
        Command::Interface(wanted) => interface::run(common, &wanted),
        Command::Hook(wanted) => hook::run(common, &wanted),
        Command::Mcp(wanted) => mcp::run(common, &wanted),
        Command::McpStep(_) => mcp::step(common),
        Command::Prime => prime::run(common),
        Command::Commit(wanted) => commit::run(&mut Desk::open_to_act(common)?, &wanted),
        Command::Sync(wanted) => sync::run(common, &wanted),
        Command::Land(wanted) => queue::land(&mut Desk::open_to_act(common)?, &wanted),
        Command::Queue(wanted) => queue::run(common, &wanted),
        Command::Conflicts(wanted) => conflicts::run(common, &wanted),
        Command::Note(wanted) => notes::add(&mut Desk::open_to_act(common)?, &wanted),
        Command::Notes(wanted) => notes::list(&mut Desk::open(common)?, &wanted),
        Command::Worktree(wanted) => worktree::run(common, &wanted),
        Command::Rescue(wanted) => rescue::run(common, &wanted),
        Command::NextNumber(wanted) => numbers::next(&mut Desk::open_to_act(common)?, &wanted),
        Command::Session(wanted) => session::run(common, &wanted),
        Command::Roles => roles::list(&mut Desk::open(common)?),
        Command::Rules(wanted) => rules::run(common, &wanted),
        Command::Person(wanted) => person::run(common, &wanted),
        Command::Init(wanted) => init::run(common, &wanted),
        Command::Status(wanted) => status::run(common, &wanted),
        Command::Journal(wanted) => journal::run(common, &wanted),
        Command::Export(wanted) => export::run(common, &wanted),
        Command::Import(wanted) => import::run(&mut Desk::open_to_act(common)?, &wanted),
        Command::Store(wanted) => store::run(common, &wanted),
        Command::Policy(wanted) => policy::run(common, &wanted),
        Command::Trust(wanted) => trust::run(common, &wanted),
        Command::Deploy(wanted) => deploy::run(common, &wanted),
        Command::Deploys(wanted) => deploy::list(common, &wanted),
        Command::Demo(wanted) => demo::run(common, &wanted),
        Command::DemoAgent(wanted) => demo::agent::run(&wanted),
        Command::DemoWorker(wanted) => demo::worker::run(&wanted),
        Command::Reference(wanted) => reference::run(&wanted),
        Command::GitHook(wanted) => git_door::run(common, &wanted),
        Command::Doctor => doctor::run(common),
        Command::Completions { shell } => completions(shell),
        Command::Man => manual(),
    }
}

fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "baton", &mut text);
    desk::print(&String::from_utf8_lossy(&text));
    Ok(ExitCode::SUCCESS)
}

fn manual() -> Outcome {
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(CommandLine::command()).render(&mut text);
    page.map_err(|source| baton_engine::failure::Failure::File {
        doing: "the manual page cannot be made",
        path: "man".into(),
        source,
    })?;
    desk::print(&String::from_utf8_lossy(&text));
    Ok(ExitCode::SUCCESS)
}
