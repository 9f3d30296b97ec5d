//! What can be typed: one definition for parsing, help, man pages and completions.
//!
//! Owns the shape of the command line. The requests themselves are defined in `baton_engine::api`,
//! once for every door.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use baton_engine::api;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::hooks::Client;
use crate::render::shown;
use crate::words::Problem;

const PERSON_TOKEN_FILE: &str = "BATON_PERSON_TOKEN_FILE";

const ABOUT: &str = "Baton lets several AI coding agents, and people, work on one codebase without \
stepping on each other.";

/// Help opens with the everyday verbs; the rest is grouped below.
const HELP: &str = "\
{before-help}{about}

Usage: baton [OPTIONS] COMMAND

Every day:
  init       Set this repository up for Baton; safe to repeat
  start      Start your agent client with a session, a tree and a task
  status     One screen: what waits for a person, sessions, tasks, claims, queue
  claim      Take paths or named things, all or nothing
  task       add, list, show, ready, blocked, take, update, done, fail, park …
  handoff    Hand a task over with its claims: offer, accept, decline, list, show
  land       Land this branch: merged, checked, and only then in the target
  doctor     Check that everything Baton relies on works here

Claims:
  release    Let go
  check      May I edit this? Takes nothing
  why        The story of a path: who held and changed it
  claims     List live claims
  renew      Renew claims before they run out
  ask        Ask a holder to let go
  revoke     Take claims away (a person's right)
  suggest    Suggest a change to a file that somebody else holds
  suggestions, suggestion    Read, apply and decline what was suggested to you
  interface  add, use, list, show, remove, give: what others build on

Shared:
  state      Values everyone sees, with versions: get, set, append, merge, watch, publish
  once       Run a command unless it has succeeded under this key
  note       Write down a decision, a lesson or progress
  notes      Read what was written down, newest last

Commits and landing:
  commit     Commit exactly the named paths, whatever others do in the tree
  sync       How far behind the remote this tree is; --pull brings it up to date
  queue      list, show, pause, resume, remove, retry, run: what waits to land
  deploy     Ship a commit to a target; deploys lists what was shipped

Trees:
  worktree   new, list, remove, gc: a working tree with a branch of its own
  rescue     list, show, restore: work that was saved before it could be lost
  next-number    The next number of a folder, such as migrations, handed out once

Sessions:
  session    start, role, end, list, whoami
  roles      What each role may do
  prime      What an agent must know to begin, in few words
  sandbox    Run a command that the kernel holds to its role
  hook       Judge one act of an agent; its client calls this
  mcp        Serve agents as an MCP server; their client starts it
  person     Make a token that proves a person where there is no terminal

Record:
  journal    Read, follow, verify or archive the record of everything
  export     Write claims, sessions and journal as files, to git, or as lock files
  store      Back up or restore the store
  policy     What of baton.toml is in force
  rules      show, check, report: the rules of .baton/rules.md
  trust      Stand for the commands of baton.toml (a person's right)

More:
  demo       See the difference in half a minute, with nothing set up
  completions, man

Options:
{options}

Exit codes: 0 done · 1 refused · 2 usage · 3 stale token or version · 4 no answer or unknown.
`baton COMMAND --help` tells more. The guide is in docs/guide of the project.
";

#[derive(Debug, Parser)]
#[command(name = "baton", bin_name = "baton", version, about = ABOUT, help_template = HELP,
    disable_help_subcommand = true, subcommand_required = true, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options of every command stand apart from its own.
const EVERYWHERE: &str = "Everywhere";

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Common {
    /// Act as if started in this folder
    #[arg(short = 'C', global = true, help_heading = EVERYWHERE, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Answer with one JSON document
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub(crate) json: bool,
    /// Act as this session; otherwise BATON_SESSION, the client, the process, the terminal
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        value_name = "ID.SECRET",
        hide_env_values = true
    )]
    pub(crate) session: Option<String>,
    /// Act as this subagent of the session; otherwise BATON_AGENT
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// The file with the person token
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        value_name = "FILE",
        env = PERSON_TOKEN_FILE,
        hide_env_values = true
    )]
    pub(crate) person_token: Option<PathBuf>,
    /// An id of this operation (UUIDv7): a retry with the same id gets the first answer again
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "ID")]
    pub(crate) op_id: Option<String>,
    /// Where a command is served for somebody else; never typed.
    #[arg(skip)]
    pub(crate) counter: Option<std::rc::Rc<crate::counter::Counter>>,
}

// Deferred: a call builds the arguments of its own command only.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Set this repository up for Baton; safe to repeat
    Init(crate::commands::init::Init),
    /// One screen: what waits for a person, sessions, tasks, claims, queue
    Status(crate::commands::status::Status),
    /// Take paths or named things, all or nothing
    Claim(api::Claim),
    /// Let go
    Release(api::Release),
    /// May I edit this? Takes nothing
    Check(api::Check),
    /// The story of a path: who held and changed it
    Why {
        #[arg(value_name = "PATH")]
        path: String,
    },
    /// List live claims
    Claims(api::Claims),
    /// Renew claims before they run out
    Renew(api::Renew),
    /// Ask a holder to let go
    Ask(api::Ask),
    /// Take claims away (a person's right)
    Revoke(api::Revoke),
    /// File, take and finish tasks
    #[command(subcommand)]
    Task(crate::commands::task::Task),
    /// Hand a task over, with everything that belongs to it
    #[command(subcommand)]
    Handoff(crate::commands::handoff::Handoff),
    /// What a person must decide before work goes on
    #[command(subcommand)]
    Gate(crate::commands::gate::Gate),
    /// Vote on any subject; voters who disagree are decided about by a person
    Vote(api::reviews::Vote),
    /// What was voted on a subject
    Votes {
        #[arg(value_name = "SUBJECT")]
        subject: String,
    },
    /// Values everyone sees, with versions
    #[command(subcommand)]
    State(crate::commands::state::State),
    /// Run a command unless it has succeeded under this key
    ///
    /// One runs at a time; the others are refused, or wait. After a success everyone gets the
    /// recorded end of its output and exit code 0. A command that ran and failed gives its own exit
    /// code, 128 and the signal when it was killed, 127 when it is not there, 126 when it cannot be
    /// run; it may be tried again. A success whose turn was lost meanwhile is not recorded: exit 3.
    /// With --json the output goes to standard error, and what came of it to standard output.
    Once(api::shared::Once),
    /// The command of `once`
    #[command(hide = true)]
    OnceCommand(crate::commands::once::OnceCommand),
    Start(crate::commands::start::Start),
    /// The client of `start`
    #[command(hide = true)]
    StartClient(crate::commands::sandbox::SandboxCall),
    Sandbox(crate::commands::sandbox::Sandbox),
    /// The command of `sandbox`
    #[command(hide = true)]
    SandboxCommand(crate::commands::sandbox::SandboxCommand),
    /// A call from inside a sandbox
    #[command(hide = true)]
    SandboxCall(crate::commands::sandbox::SandboxCall),
    /// Suggest a change to a file that somebody else holds
    Suggest(api::suggestions::Suggest),
    /// Changes that were suggested to you
    Suggestions(api::suggestions::Suggestions),
    /// Look at a suggestion, apply or decline it
    #[command(subcommand)]
    Suggestion(crate::commands::suggestions::OneSuggestion),
    /// What others build on: mark it, use it, look what became of it
    #[command(subcommand)]
    Interface(crate::commands::interface::OneInterface),
    /// Commit exactly the named paths, whatever others do in the tree
    ///
    /// The tree and the index of others are left as they are: the commit is built apart, hooks run
    /// in a private checkout, and only the entries of these paths change in the real index.
    Commit(api::commits::Commit),
    /// How far behind the remote this tree is; --pull brings it up to date
    ///
    /// Exit codes: 0 in sync or ahead, 1 behind, 4 the remote cannot be reached.
    Sync(api::commits::Sync),
    /// Land a branch: merged with the target, checked, and only then in it
    ///
    /// Waits for its own landing and moves the queue on itself when nobody does. Exit codes: 0 it
    /// landed (or stands in line, with --queue; or a request is open, where the target is
    /// protected), 1 it was returned, or waits for somebody and stays in line.
    Land(api::landings::Land),
    /// What waits to land
    #[command(subcommand)]
    Queue(crate::commands::queue::Queue),
    /// Ship a commit to a target of baton.toml, from a checkout of its own
    ///
    /// The commit must contain the branch where work lands, as the remote has it now. Exit codes: 0
    /// shipped and verified (or nothing verifies it), 1 refused or failed, 4 the remote cannot be
    /// reached.
    Deploy(api::deploys::Deploy),
    /// What was shipped: commit, who, when, outcome
    Deploys(api::deploys::Deploys),
    /// What stands between the live working trees, before it is met
    ///
    /// Every pair of trees, with what is in no commit yet, and each against the branch where work
    /// lands. Exit codes: 0 all clean, 1 something was found.
    Conflicts(api::conflicts::Conflicts),
    /// Write down a decision, a lesson or progress
    Note(api::shared::Note),
    /// Read what was written down, newest last
    Notes(api::shared::Notes),
    /// Working trees with a branch of their own
    #[command(subcommand)]
    Worktree(crate::commands::worktree::Worktree),
    /// Work that was saved before anybody could lose it
    #[command(subcommand)]
    Rescue(crate::commands::rescue::Rescue),
    /// The next number of a folder, such as migrations, handed out once
    ///
    /// Numbers in every working tree, in the branch where work lands and in Baton's branches count,
    /// and numbers that were handed out before.
    NextNumber(api::trees::NextNumber),
    /// Start, end and list sessions
    #[command(subcommand)]
    Session(crate::commands::session::Session),
    /// What an agent must know to begin, in few words
    Prime,
    /// Serve agents as an MCP server on standard input and output
    ///
    /// An agent's client starts it. It works in the workspace around its folder, from anywhere else
    /// in the one named by --workspace, and ends when its input does.
    Mcp(crate::commands::mcp::Mcp),
    /// A step of a tool that an MCP server inside a sandbox asks for
    #[command(hide = true)]
    McpStep(crate::commands::mcp::McpStep),
    /// Judge one act of an agent: its client's JSON comes in, the answer goes out
    Hook(crate::commands::hook::Hook),
    /// What each role may do
    Roles,
    /// The rules of this project: show them, check what enforces them, report
    #[command(subcommand)]
    Rules(crate::commands::rules::Rules),
    /// Prove a person where there is no terminal
    #[command(subcommand)]
    Person(crate::commands::person::Person),
    /// Read, follow, verify or archive the record of everything
    Journal(crate::commands::journal::Journal),
    /// Write tasks, handoffs, notes, claims and journal as files, to git, or as lock files
    Export(crate::commands::export::Export),
    /// File the tasks of a checklist, a folder of task files, or beads' export; each only once
    Import(api::tasks::Import),
    /// Back up or restore the store
    #[command(subcommand)]
    Store(crate::commands::store::Store),
    /// What of baton.toml is in force
    #[command(subcommand)]
    Policy(crate::commands::policy::Policy),
    /// Put baton.toml in force and stand for the commands it lets Baton run (a person's right)
    Trust(crate::commands::trust::Trust),
    /// See the difference in half a minute, with nothing set up
    Demo(crate::commands::demo::Demo),
    /// One agent of the demo
    #[command(hide = true)]
    DemoAgent(crate::commands::demo::agent::DemoAgent),
    /// One worker of the demo
    #[command(hide = true)]
    DemoWorker(crate::commands::demo::worker::DemoWorker),
    /// What git's own hooks ask, as `init` sets them up
    #[command(hide = true)]
    GitHook(crate::commands::git_door::GitHook),
    /// Check that everything Baton relies on works here
    Doctor,
    /// Completions for a shell
    Completions {
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// The manual page
    Man,
    /// The command reference
    #[command(hide = true)]
    Reference(crate::commands::reference::Reference),
}

/// Help, version, or a mistake in what was typed.
pub(crate) enum Said {
    Text(String),
    Mistake { problem: Problem, json: bool },
}

impl Said {
    pub(crate) fn say(self) -> ExitCode {
        match self {
            Self::Text(text) => {
                crate::desk::print(&text);
                ExitCode::SUCCESS
            }
            Self::Mistake { problem, json } => crate::desk::say_problem(&problem, json),
        }
    }
}

pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> Result<CommandLine, Said> {
    let words: Vec<OsString> = words.collect();
    if let Some(plain) = plain(&words) {
        return Ok(plain);
    }
    let json = words.iter().any(|word| word == "--json");
    // Taking the definition apart again would cost a tenth of a call, and the process ends soon.
    let mut definition = std::mem::ManuallyDrop::new(CommandLine::command());
    let matches = definition.try_get_matches_from_mut(&words);
    let parsed = matches.and_then(|matches| {
        let matches = std::mem::ManuallyDrop::new(matches);
        CommandLine::from_arg_matches(&matches)
    });
    parsed.map_err(|error| said(&error, &words, json))
}

/// `check` and `claim` with nothing but paths, and perhaps `--json`: what scripts and hooks type
/// all day. It means the same below; only the definition of every option is not built for it, which
/// would be a tenth of such a call.
fn plain(words: &[OsString]) -> Option<CommandLine> {
    let [_, verb, rest @ ..] = words else { return None };
    let mut common = Common::default();
    let mut named = Vec::with_capacity(rest.len());
    for word in rest {
        match word.to_str()? {
            "--json" => common.json = true,
            option if option.starts_with('-') || option.is_empty() => return None,
            name => named.push(name.to_owned()),
        }
    }
    if named.is_empty() {
        return None;
    }
    let command = match verb.to_str()? {
        "hook" if named.len() == 1 && !common.json => {
            Command::Hook(crate::commands::hook::Hook { client: Client::named(&named[0])? })
        }
        "check" => Command::Check(api::Check { paths: named, token: None }),
        "claim" => Command::Claim(api::Claim { resources: named, ..api::Claim::default() }),
        _ => return None,
    };
    common.person_token = std::env::var_os(PERSON_TOKEN_FILE).map(PathBuf::from);
    Some(CommandLine { common, command })
}

/// A mistake in one line, with the way to more.
fn said(error: &clap::Error, words: &[OsString], json: bool) -> Said {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let text = error.render();
        let colour = crate::render::colour_wanted(&std::io::stdout());
        return Said::Text(if colour { text.ansi().to_string() } else { text.to_string() });
    }
    let verb = words.get(1).map(|word| word.to_string_lossy().into_owned());
    let known = CommandLine::command();
    let verb = verb.filter(|verb| known.find_subcommand(verb).is_some());
    let parts: Vec<&str> = verb
        .iter()
        .flat_map(|verb| known.find_subcommand(verb))
        .flat_map(|verb| {
            verb.get_subcommands().filter(|part| !part.is_hide_set()).map(clap::Command::get_name)
        })
        .collect();
    let part = words.get(2).and_then(|word| word.to_str()).filter(|word| parts.contains(word));
    let next = match (&verb, part) {
        (Some(verb), Some(part)) => format!("baton {verb} {part} --help"),
        (Some(verb), None) => format!("baton {verb} --help"),
        (None, _) => "baton --help".to_owned(),
    };
    let invalid = words.iter().find(|word| word.to_str().is_none());
    let message = match (error.kind(), invalid) {
        (ErrorKind::InvalidUtf8, Some(word)) => {
            format!("\"{}\" is not UTF-8", shown(&word.to_string_lossy()))
        }
        (ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
            match (&verb, parts.is_empty()) {
                (Some(verb), false) => format!("{verb} needs one of {}", parts.join(", ")),
                _ => "a command is missing".to_owned(),
            }
        }
        _ => one_line(&error.render().to_string()),
    };
    Said::Mistake { problem: Problem::usage(message, next), json }
}

/// The sentence of clap's report, without its usage block.
fn one_line(report: &str) -> String {
    let body = report.strip_prefix("error: ").unwrap_or(report);
    let sentence = body.split("\n\n").next().unwrap_or(body);
    let words: Vec<&str> = sentence.split_whitespace().collect();
    match words.is_empty() {
        true => "a command is missing".to_owned(),
        false => shown(&words.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn plain_words_mean_what_the_definition_says() {
        for line in ["baton check a b", "baton claim a --json @gpu=2", "baton --json check x"] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let matches = CommandLine::command().try_get_matches_from(&words).unwrap();
            let long_way = CommandLine::from_arg_matches(&matches).unwrap();
            let parsed = parse(words.into_iter()).unwrap_or_else(|_| panic!("{line}"));
            assert_eq!(format!("{parsed:?}"), format!("{long_way:?}"), "{line}");
        }
        for line in ["baton check", "baton claim", "baton check a --token x", "baton status a"] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert!(plain(&words).is_none(), "{line}");
        }
    }

    #[test]
    fn a_mistake_leads_to_the_help_of_what_was_meant() {
        for (line, step) in [
            ("baton gate approve g1", "baton gate approve --help"),
            ("baton gate allow g1", "baton gate --help"),
            ("baton gates", "baton --help"),
        ] {
            let words = line.split(' ').map(OsString::from);
            let Err(Said::Mistake { problem, .. }) = parse(words) else { panic!("{line}") };
            assert_eq!(problem.next, step, "{line}");
        }
    }
}
