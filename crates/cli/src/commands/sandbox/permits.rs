//! What may be asked for from inside a sandbox.
//!
//! Owns the one list. Nothing on it writes at a path of the caller's choosing, runs a command of
//! the caller's outside, or decides what a person decides. Invariant: a new command is on neither
//! side by accident, because the compiler asks for it here.

use std::ffi::OsString;

use baton_engine::sandbox::{self, Judge, May, Permit, Said};

use crate::arguments::{self, Command, Common, Said as Parsed};
use crate::commands::gate::Gate;
use crate::commands::handoff::Handoff;
use crate::commands::policy::Policy;
use crate::commands::queue::Queue;
use crate::commands::rescue::Rescue;
use crate::commands::session::Session;
use crate::commands::store::Store;
use crate::commands::suggestions::OneSuggestion;
use crate::commands::task::Task;
use crate::commands::worktree::Worktree;
use crate::words::Problem;
use serde_json::json;

/// These say who acts; inside, that is settled.
const OF_OTHERS: [&str; 2] = ["--session", "--person-token"];

/// The role that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) may: May,
}

/// Whether a command may run code of the tree, and is held then.
pub(crate) fn is_held(command: &Command) -> bool {
    let mut all = May::default();
    rights(&mut all).into_iter().for_each(|(_, has)| *has = true);
    permit(command, all) == Ok(Permit::InRepository)
}

/// Asked again where a command is served: what came as a step of a tool (MCP) is known only here.
pub(crate) fn demand(command: &Command, common: &Common) -> Result<(), Problem> {
    let Ok(text) = std::env::var(sandbox::BOUND_VARIABLE) else { return Ok(()) };
    // The broker's own steps on the way to a call.
    if matches!(command, Command::SandboxCall(_) | Command::SandboxCommand(_)) {
        return Ok(());
    }
    let role = Role::from_text(&text);
    match permit(command, role.may) {
        Ok(Permit::InRepository) if common.counter.is_some() && !sandbox::is_held() => {
            Err(role.problem(UNCONFINED))
        }
        Ok(_) => Ok(()),
        Err(why) => Err(role.problem(why)),
    }
}

/// Each right as the letter that says it.
fn rights(may: &mut May) -> [(char, &mut bool); 5] {
    let May { write_tree, move_branch, commit, land, deploy } = may;
    [('w', write_tree), ('m', move_branch), ('c', commit), ('l', land), ('d', deploy)]
}

impl Judge for Role {
    /// `wcld code`.
    fn bound(&self) -> String {
        let mut may = self.may;
        let has = rights(&mut may).into_iter().filter(|(_, has)| **has).map(|(letter, _)| letter);
        format!("{} {}", has.collect::<String>(), self.name)
    }

    fn role(&self) -> &str {
        &self.name
    }

    fn judge(&self, words: &[OsString]) -> Result<Permit, Said> {
        let json = words.iter().any(|word| word == "--json");
        let of_others = |word: &&OsString| {
            let text = word.to_string_lossy();
            OF_OTHERS.iter().any(|option| {
                text.strip_prefix(option)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            })
        };
        let journal = words.first().is_some_and(|verb| verb == "journal");
        if let Some(word) = words.iter().take_while(|word| *word != "--").find(of_others)
            && (!journal || word.to_string_lossy().starts_with("--person"))
        {
            return Err(self.refused(&format!("{} is not for you", word.to_string_lossy()), json));
        }
        let line = [OsString::from("baton")].into_iter().chain(words.iter().cloned());
        match arguments::parse(line) {
            Ok(line) => permit(&line.command, self.may).map_err(|why| self.refused(why, json)),
            // Help, or a mistake: the command says so itself.
            Err(Parsed::Text(_) | Parsed::Mistake { .. }) => Ok(Permit::Plain),
        }
    }
}

impl Role {
    /// What says nothing we know means no right.
    fn from_text(text: &str) -> Self {
        let (letters, name) = text.split_once(' ').unwrap_or(("", text));
        let mut may = May::default();
        for (letter, has) in rights(&mut may) {
            *has = letters.contains(letter);
        }
        Self { name: name.to_owned(), may }
    }

    fn problem(&self, why: &str) -> Problem {
        Problem {
            exit: 1,
            code: "sandboxed",
            message: format!(
                "{why} inside the sandbox of role {}",
                crate::render::shown(&self.name)
            ),
            next: next(why).to_owned(),
            details: json!({}),
        }
    }

    fn refused(&self, why: &str, json: bool) -> Said {
        let problem = self.problem(why);
        Said {
            out: if json { format!("{}\n", problem.document()) } else { String::new() },
            err: format!("refused: {}\nnext: {}\n", problem.message, problem.next),
            code: problem.exit,
        }
    }
}

/// What is done instead where that is possible inside.
fn next(why: &str) -> &'static str {
    match why {
        PLAIN_COMMIT => "baton commit PATH… -m MESSAGE",
        _ => "leave it to a person or a session outside, and go on with something else",
    }
}

const UNCONFINED: &str = "this runs code of the tree and was not asked to be held: it is not done";
const PROBES: &str = "doctor tries the hooks that files of the tree name: it is not done";
const SERVER: &str = "a server outside would outlive what it was asked for: it is not done";
const PLAIN_COMMIT: &str = "plain git commit cannot move the branch (baton commit PATH… -m … \
                            does): it is not done";
const PERSON: &str = "this is a person's to decide: it is not done";
const ELSEWHERE: &str = "this writes or runs what you choose, outside: it is not done";
const COMMITS: &str = "this role does not commit: it is not done";
const LANDS: &str = "this role does not land: it is not done";
const DEPLOYS: &str = "this role does not deploy: it is not done";
const WRITES: &str = "this role does not write in the tree: it is not done";
const ONE_SESSION: &str = "there is one session, which begins and ends with it: it is not done";

type Judged = Result<Permit, &'static str>;

fn only(may: bool, permit: Permit, why: &'static str) -> Judged {
    if may { Ok(permit) } else { Err(why) }
}

#[rustfmt::skip]
fn permit(command: &Command, may: May) -> Judged {
    match command {
        Command::Status(_) | Command::Claim(_) | Command::Release(_) | Command::Check(_)
        | Command::Why { .. } | Command::Claims(_) | Command::Renew(_) | Command::Ask(_)
        | Command::Vote(_) | Command::Votes { .. } | Command::State(_) | Command::Suggest(_)
        | Command::Suggestions(_) | Command::Conflicts(_) | Command::Note(_)
        | Command::Notes(_) | Command::NextNumber(_) | Command::Prime | Command::Interface(_)
        | Command::Hook(_) | Command::Roles | Command::Rules(_)
        | Command::Import(_) | Command::Deploys(_)
        | Command::Completions { .. } | Command::Man | Command::Reference(_) => Ok(Permit::Plain),
        Command::Doctor => Err(PROBES),
        Command::Mcp(_) => Err(SERVER),
        Command::McpStep(wanted) => Ok(match wanted.held {
            true => Permit::InRepository,
            false => Permit::Plain,
        }),
        Command::Handoff(Handoff::Accept(accepting)) if accepting.start.is_some() => Err(ELSEWHERE),
        Command::Handoff(_) => Ok(Permit::Plain),
        Command::Task(wanted) => Ok(task(wanted)),
        Command::GitHook(wanted) if wanted.before_commit() => {
            let why = if may.commit { PLAIN_COMMIT } else { COMMITS };
            only(may.commit && may.move_branch, Permit::Plain, why)
        }
        Command::GitHook(_) => Ok(Permit::Plain),
        Command::Gate(wanted) => gate(wanted),
        Command::Session(wanted) => session(wanted),
        Command::Suggestion(OneSuggestion::Apply { .. }) => {
            only(may.write_tree, Permit::InRepository, WRITES)
        }
        Command::Suggestion(_) => Ok(Permit::Plain),
        Command::Commit(_) => only(may.commit, Permit::InRepository, COMMITS),
        Command::Sync(wanted) if wanted.pull => only(may.commit, Permit::InRepository, COMMITS),
        Command::Sync(_) => Ok(Permit::Plain),
        Command::Land(_) => only(may.land, Permit::Plain, LANDS),
        Command::Queue(Queue::List(_) | Queue::Show { .. }) => Ok(Permit::Plain),
        Command::Queue(_) => only(may.land, Permit::Plain, LANDS),
        Command::Deploy(_) => only(may.deploy, Permit::Plain, DEPLOYS),
        Command::Journal(wanted) => only(wanted.only_reads(), Permit::Plain, ELSEWHERE),
        Command::Worktree(Worktree::List) => Ok(Permit::Plain),
        Command::Rescue(Rescue::List | Rescue::Show { .. }) => Ok(Permit::Plain),
        Command::Store(Store::Info) => Ok(Permit::Plain),
        Command::Policy(Policy::Show) => Ok(Permit::Plain),
        Command::Revoke(_) | Command::Person(_) | Command::Policy(_) | Command::Trust(_)
        | Command::Init(_) => Err(PERSON),
        Command::Once(_) | Command::OnceCommand(_) | Command::Sandbox(_)
        | Command::SandboxCommand(_) | Command::SandboxCall(_) | Command::Start(_)
        | Command::StartClient(_) | Command::Worktree(_) | Command::Rescue(_)
        | Command::Export(_) | Command::Store(_) | Command::Demo(_) | Command::DemoAgent(_)
        | Command::DemoWorker(_) => Err(ELSEWHERE),
    }
}

/// Checks run code of the tree, and so may what `done` asks for.
fn task(wanted: &Task) -> Permit {
    match wanted {
        Task::Check(_) | Task::Done(_) => Permit::InRepository,
        _ => Permit::Plain,
    }
}

fn gate(wanted: &Gate) -> Judged {
    match wanted {
        Gate::Add(_) | Gate::List { .. } | Gate::Show { .. } => Ok(Permit::Plain),
        Gate::Check { .. } => Ok(Permit::InRepository),
        Gate::Approve(_) | Gate::Deny(_) | Gate::Trust { .. } => Err(PERSON),
    }
}

fn session(wanted: &Session) -> Judged {
    match wanted {
        Session::List { .. }
        | Session::Whoami
        | Session::Call(_)
        | Session::AgentStop(_)
        | Session::Role(_) => Ok(Permit::Plain),
        Session::Start { .. } | Session::End(_) => Err(ONE_SESSION),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_comes_back_as_it_went() {
        for may in [
            May::default(),
            May { commit: true, ..May::default() },
            May { write_tree: true, move_branch: true, commit: true, land: true, deploy: true },
        ] {
            let role = Role { name: "my role".to_owned(), may };
            assert_eq!(Role::from_text(&role.bound()), role);
        }
        assert_eq!(Role::from_text("nonsense").may, May::default());
    }

    /// It would go on outside, held by nothing, whatever becomes of the tree's git folder.
    #[test]
    fn no_server_is_started_outside() {
        let role = Role::from_text("wmcld code");
        let judged = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            role.judge(&words).map_err(|said| said.err)
        };
        assert!(judged(&["mcp"]).unwrap_err().contains("it is not done"));
        assert_eq!(judged(&["mcp-step"]).unwrap(), Permit::Plain);
        assert_eq!(judged(&["mcp-step", "--held"]).unwrap(), Permit::InRepository);
    }
}
