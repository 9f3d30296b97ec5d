//! The words of every refusal and failure: who, what, until when, why, and one safe next step.
//!
//! One table from failures to exit codes, script codes and sentences. Agents do what error text
//! suggests, so a `next:` line never names anything that destroys or overrides.

use baton_core::claim::Holder;
use baton_core::refusal::{Class, Held, Refusal};
use baton_core::roles;
use baton_core::trust::Command;
use baton_engine::failure::Failure;
use serde_json::{Value, json};

use crate::render::{self, quoted, resources, shown};

mod commits;
mod deploys;
mod evidence;
mod handoffs;
mod interfaces;
mod landings;
mod sandboxes;
mod setups;
mod stores;
mod syncs;
mod tasks;
pub(crate) use gates::decision_words;
pub(crate) use interfaces::changes_words;
pub(crate) use shared::running;

mod gates;
mod shared;
mod suggestions;
mod trees;

pub(crate) use trees::keep_words;

/// A failure, ready to be said.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) exit: u8,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) next: String,
    pub(crate) details: Value,
}

impl Problem {
    /// A request that makes no sense before any rule is asked.
    pub(crate) fn usage(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            exit: 2,
            code: "usage",
            message: message.into(),
            next: next.into(),
            details: json!({}),
        }
    }

    /// The word before the message.
    pub(crate) fn label(&self) -> &'static str {
        match self.exit {
            4 => NO_ANSWER,
            2 => "usage",
            3 => "stale",
            _ => "refused",
        }
    }

    /// The same document for `--json`, MCP and HTTP.
    pub(crate) fn document(&self) -> Value {
        let mut body = self.details.clone();
        if let Some(object) = body.as_object_mut() {
            object.insert("code".into(), self.code.into());
            object.insert("message".into(), self.message.clone().into());
            object.insert("next".into(), self.next.clone().into());
        }
        let name = if self.exit == 4 { "failed" } else { "refused" };
        json!({ name: body })
    }
}

pub(crate) fn exit_of(class: Class) -> u8 {
    match class {
        Class::Refused => 1,
        Class::Usage => 2,
        Class::Stale => 3,
        Class::Unanswered => 4,
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let exit = exit_of(failure.class());
        let (code, message, next, details) = match &failure {
            Failure::Refused(refusal) => return refusal.into(),
            Failure::Tree(error) => return trees::problem(error, exit),
            Failure::Store(error) => {
                let (code, next) = stores::words(error);
                (code, chain(error), next, json!({}))
            }
            Failure::Place(error) => {
                let (code, next) = place_words(error);
                (code, chain(error), next, json!({}))
            }
            Failure::Path(error) => (
                "bad_path",
                shown(&chain(error)),
                "name a path inside the workspace, relative to this folder".to_owned(),
                json!({}),
            ),
            Failure::Git(error) => {
                ("git", shown(&chain(error)), "git status, to see what git says".into(), json!({}))
            }
            Failure::Archive(error) => archive_words(error),
            Failure::Export(error) => export_words(error),
            Failure::Sandbox(error) => sandboxes::of(error),
            Failure::Config { path, line, detail } => {
                let at = line.map(|line| format!(":{line}")).unwrap_or_default();
                let (path, next) = (path.display(), "and run baton init again");
                let message = format!("{path}{at}: {}", shown(detail));
                ("bad_config", message, format!("mend {path} {next}"), json!({}))
            }
            Failure::Malformed { .. }
            | Failure::DoesNotApply { .. }
            | Failure::NoSuchCheck { .. } => work_words(&failure),
            Failure::BadCredentialText { given } => (
                "bad_credential",
                format!("\"{}\" is not a credential of the form ID.SECRET", shown(given)),
                "baton session start, which prints one".into(),
                json!({}),
            ),
            Failure::NoSuchProcess { pid } => (
                "no_such_process",
                format!("process {pid} cannot be seen from here"),
                "give the pid of a running process on this machine".into(),
                json!({}),
            ),
            Failure::PersonToken { path, why } => (
                "person_token",
                format!("the person token {} cannot be used: {why}", path.display()),
                "run the command in a terminal of your own".into(),
                json!({}),
            ),
            Failure::SeveralAgents { clients } => (
                "several_agents",
                format!("the environment names several agents ({})", clients.join(", ")),
                "set BATON_SESSION to the credential of the one that acts".into(),
                json!({}),
            ),
            Failure::File { doing, path, source } => (
                "file",
                format!("{doing}: {}: {source}", path.display()),
                "check that the folder can be written and has room".into(),
                json!({}),
            ),
            setup => setups::of(setup),
        };
        Self { exit, code, message, next, details }
    }
}

/// What can be wrong with what is given for a task.
fn work_words(failure: &Failure) -> (&'static str, String, String, Value) {
    match failure {
        Failure::Malformed { path, line, column, detail } => (
            "malformed",
            format!("{}:{line}:{column}: {}", shown(&path.to_string_lossy()), shown(detail)),
            format!("mend line {line} of {}", shown(&path.to_string_lossy())),
            json!({ "line": line, "column": column }),
        ),
        Failure::DoesNotApply { suggestion, path, why } => (
            "does_not_apply",
            format!("the patch does not fit {} as it is: {}", shown(&path.to_string()), shown(why)),
            format!("baton suggestion decline {} --why 'it no longer fits'", shown(suggestion)),
            json!({ "suggestion": suggestion }),
        ),
        Failure::NoSuchCheck { name, known, why } => {
            let what = match name {
                Some(name) => format!("check \"{}\" cannot be run so: {why}", shown(name)),
                None => format!("there is nothing to run: {why}"),
            };
            let next = match known.first() {
                Some(first) => format!("baton task check ID {}", shown(first)),
                None => "baton task check ID NAME -- COMMAND".to_owned(),
            };
            ("no_such_check", what, next, json!({ "known": known }))
        }
        other => ("failed", other.to_string(), "baton doctor".to_owned(), json!({})),
    }
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = next.source();
    }
    shown(&text)
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        let (message, next, details) = refused_words(refusal);
        Self { exit: exit_of(refusal.class()), code: refusal.code(), message, next, details }
    }
}

fn refused_words(refusal: &Refusal) -> (String, String, Value) {
    match refusal {
        Refusal::Held(held) => (held_sentence(held), held_next(held), held_document(held)),
        Refusal::WaitedInVain(held) => (
            format!("nobody let go in time: {}", held_sentence(held)),
            format!("baton ask {} --why 'what you need it for'", shown_word(held)),
            held_document(held),
        ),
        Refusal::Cycle { names } => (
            format!("waiting would never end: {}", shown(&names.join(" waits for "))),
            "let go of what they wait for (baton release NAME), then ask again".into(),
            json!({ "cycle": names }),
        ),
        Refusal::StaleToken { given, current } => (
            format!("token {given} is stale: its claim has ended or was taken by someone else"),
            "baton claims --mine, to see what you hold now".into(),
            json!({ "given": given, "current": current }),
        ),
        Refusal::Role(refused) => {
            (role_sentence(refused), role_next(refused).to_owned(), json!({ "role": refused }))
        }
        Refusal::Commit(refused) => commits::of(refused),
        Refusal::Sync(refused) => syncs::of(refused),
        Refusal::Landing(refused) => landings::of(refused),
        Refusal::Task(refused) => tasks::of(refused),
        Refusal::Handoff(refused) => handoffs::of(refused),
        Refusal::Suggestion(refused) => suggestions::of(refused),
        Refusal::Tree(refused) => trees::of(refused),
        Refusal::Deploy(refused) => deploys::of(refused),
        Refusal::Gate(refused) => gates::of(refused),
        Refusal::State(refused) => shared::state(refused),
        Refusal::Once(refused) => shared::once(refused),
        Refusal::Interface(refused) => interfaces::of(refused),
        Refusal::Untrusted { commands } => (
            untrusted(commands),
            "a person runs: baton trust".to_owned(),
            json!({ "commands": commands }),
        ),
        other => {
            let (message, next) = plain_words(other);
            (message, next, json!({}))
        }
    }
}

/// Refusals that name nobody: a sentence and a next step.
fn plain_words(refusal: &Refusal) -> (String, String) {
    let (message, next): (String, &str) = match refusal {
        Refusal::NoSession => (
            "no session: Baton does not know who is acting".into(),
            "eval \"$(baton session start --export)\"",
        ),
        Refusal::UnknownSession { session } => {
            (format!("no session \"{}\" here", shown(session)), "baton session list --all")
        }
        Refusal::BadCredential { session } => (
            format!("the credential is not that of session {}", shown(session.as_str())),
            "eval \"$(baton session start --export)\"",
        ),
        Refusal::SessionEnded { name, at, .. } => (
            format!("session {} ended {}", shown(name), render::ago(*at)),
            "eval \"$(baton session start --export)\"",
        ),
        Refusal::AmbiguousProcess { pid } => (
            format!("process {pid} belongs to more than one session, so it identifies none"),
            "set BATON_SESSION to the credential of the one that acts",
        ),
        Refusal::NeedsPerson { what } => (
            format!("{} is for a person to decide", shown(what)),
            "ask a person to run this in a terminal",
        ),
        Refusal::NotHeld { resource, holder } => {
            (not_held(resource, holder.as_ref()), "baton claims, to see what is")
        }
        Refusal::OfSubagent { resource, agent } => {
            (of_subagent(resource, agent), "wait until it stops: what it holds passes to you then")
        }
        Refusal::UnknownClaim { claim } => {
            (format!("no claim \"{}\" here", shown(claim)), "baton claims, to see what there is")
        }
        Refusal::OperationTaken { at, .. } => (
            format!("this operation id was used {} for another request", render::ago(*at)),
            "use a fresh operation id for a new request",
        ),
        Refusal::Empty => ("nothing was named".into(), "name at least one path or @resource"),
        Refusal::TooMany { given, max } => (
            format!("{given} resources in one claim are too many: {max} at the most"),
            "claim a folder instead, for example src/",
        ),
        Refusal::TooLong { what, bytes_max } => {
            (format!("the {what} is too long: {bytes_max} bytes at the most"), "shorten it")
        }
        Refusal::OutOfRange { what, given, allowed } => {
            (format!("{what} {} is not allowed", shown(given)), allowed.as_str())
        }
        Refusal::BadResource { text, source } => (
            format!("\"{}\" cannot be claimed: {source}", shown(text)),
            "baton claim --help shows how resources are written",
        ),
        Refusal::OverCapacity { resource, capacity } => (
            format!("{resource} asks for more than there is: {capacity} in all"),
            "ask for less, or raise [resource] capacity in baton.toml",
        ),
        Refusal::BadText { what, character } => (
            format!("the {what} contains {character:?}, which is not allowed"),
            "use letters, digits, spaces and punctuation",
        ),
        _ => (chain(refusal), "baton status"),
    };
    match refusal {
        Refusal::OutOfRange { allowed, .. } => (message, format!("give {allowed}")),
        _ => (message, next.to_owned()),
    }
}

/// A command of the policy would run that no person has seen.
fn untrusted(commands: &[Command]) -> String {
    let line = |one: &Command| format!("{} ({})", shown(&one.what), shown(&one.argv.join(" ")));
    let lines: Vec<String> = commands.iter().map(line).collect();
    format!("no person stands for what baton.toml would run: {}", lines.join(", "))
}

/// What a role does not allow, and what it may.
pub(crate) fn role_sentence(refused: &roles::Refused) -> String {
    let (role, what, may) = (shown(&refused.role), shown(&refused.what), shown(&refused.may));
    format!("your role is {role}, which may not {what}: it {may}")
}

pub(crate) fn role_next(refused: &roles::Refused) -> &'static str {
    match (&refused.resource, refused.what.as_str()) {
        (Some(_), what) if what.starts_with("land ") => {
            "take that out of the branch, or leave the landing to a session whose role writes it"
        }
        (Some(_), _) => "baton task add 'what is to be changed', for a session that may",
        (None, "use the shell") => "read and search with your client's own tools",
        _ => "baton handoff offer --help, to leave it to a session that may",
    }
}

/// `src/a.rs is held by amber-otter until 12:05:00Z, in 28m: refactoring`.
pub(crate) fn held_sentence(held: &Held) -> String {
    if let Some(name) = &held.interface {
        return interfaces::kept(held, name);
    }
    let what = shown(&held.resource.to_string());
    let who = render::holder(&held.holder);
    let verb = match (held.queued, held.free) {
        (true, _) => format!("{what} has {who} first in the queue"),
        (false, Some(0)) => format!("{what}: none is free; {who} holds {}", held.held),
        (false, Some(free)) => format!("{what}: only {free} is free; {who} holds {}", held.held),
        (false, None) if held.held == held.resource => format!("{what} is held by {who}"),
        (false, None) => {
            format!(
                "{what} is held by {who} through {}",
                resources(std::slice::from_ref(&held.held))
            )
        }
    };
    if let Some(unlanded) = &held.unlanded {
        let task = unlanded.task.as_ref().map(|task| format!(" for {task}")).unwrap_or_default();
        let (branch, since) = (shown(&unlanded.branch), render::ago(held.since));
        return format!(
            "{what} is in a serial zone that {who} has{task} on {branch} since {since}, until it \
             has landed"
        );
    }
    let until = match held.until {
        _ if held.idle_dirty => " past its time, over uncommitted changes".to_owned(),
        Some(until) if held.busy => {
            format!(" during a tool call, until {} at the latest", render::until(until))
        }
        Some(until) if held.queued => {
            format!(" until {}, or as long as it waits", render::until(until))
        }
        Some(until) => format!(" until {}", render::until(until)),
        None => ", which is another tool, through a lock file".to_owned(),
    };
    match &held.reason {
        Some(reason) => format!("{verb}{until}, because: {}", quoted(reason)),
        None => format!("{verb}{until}"),
    }
}

fn not_held(resource: &str, holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) => {
            format!("{} is held by {}, not by you", shown(resource), render::holder(holder))
        }
        None => format!("{} is not held", shown(resource)),
    }
}

fn of_subagent(resource: &str, agent: &str) -> String {
    let (what, who) = (shown(resource), shown(agent));
    format!("{what} is held by your subagent {who}, which may be writing it now")
}

/// The resource as a word that a shell takes as one.
fn shown_word(held: &Held) -> String {
    shell_word(&shown(&held.resource.to_string()))
}

/// Agents' text as one word that a shell takes as it is.
pub(crate) fn word(text: &str) -> String {
    shell_word(&shown(text))
}

fn shell_word(text: &str) -> String {
    // A name that begins with a dash would be taken for an option.
    let dashed = text.starts_with('-').then(|| format!("./{text}"));
    let text = dashed.as_deref().unwrap_or(text);
    let plain = |c: char| c.is_alphanumeric() || "-_./@:=+,%".contains(c);
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

pub(crate) fn held_next(held: &Held) -> String {
    if let Some(name) = &held.interface {
        return interfaces::kept_next(held, name);
    }
    match held.until {
        None if held.unlanded.is_some() => {
            let ask = format!("baton ask {} --why 'what you need it for'", shown_word(held));
            format!("work on something else until that branch has landed, or {ask}")
        }
        None => "wait until the other tool removes its lock file, or work on something else".into(),
        Some(_) => format!("baton claim {} --wait 10m", shown_word(held)),
    }
}

fn held_document(held: &Held) -> Value {
    serde_json::to_value(held).unwrap_or_else(|_| json!({}))
}

/// The label of what says neither yes nor no.
pub(crate) const NO_ANSWER: &str = "no answer";

fn archive_words(error: &baton_engine::archive::Error) -> (&'static str, String, String, Value) {
    use baton_engine::archive::Error as E;
    let (code, next) = match error {
        E::Busy => ("archive_busy", "wait until the other one is done, then try again"),
        E::Taken { .. } => ("archive_taken", "baton journal verify"),
        E::Io { .. } => ("archive_io", "check that the store's folder can be written and has room"),
        E::Newer { .. } => ("archive_newer", "use the newer baton that wrote it"),
        _ => ("archive", "baton journal verify"),
    };
    (code, chain(error), next.to_owned(), json!({}))
}

fn export_words(error: &baton_engine::export::Error) -> (&'static str, String, String, Value) {
    use baton_engine::export::Error as E;
    let (code, next) = match error {
        E::InsideGit { .. } => ("inside_git", "choose a folder outside .git, or --git"),
        E::NotOurs { .. } => ("not_ours", "choose an empty folder: nothing is overwritten"),
        E::NotAFolder { .. } => ("not_a_folder", "choose a folder"),
        E::NoRepository => ("no_repository", "baton export DIR, which needs no git"),
        E::TooLarge => ("too_large", "baton journal archive, then export again"),
        E::Io { .. } => ("file", "check that the folder can be written and has room"),
    };
    (code, chain(error), next.to_owned(), json!({}))
}

fn place_words(error: &baton_engine::place::Error) -> (&'static str, String) {
    use baton_engine::place::Error as E;
    match error {
        E::NotInitialised { .. } => ("not_initialised", "baton init".to_owned()),
        E::Io { .. } => {
            ("file", "check that the folder can be read and written, and has room".to_owned())
        }
        E::BareRepository { .. } => {
            ("bare_repository", "git worktree add, then baton init in that worktree".to_owned())
        }
        E::Malformed { path, .. } => {
            let path = shell_word(&shown(&path.display().to_string()));
            ("bad_place", format!("mv {path} {path}.damaged, then baton init"))
        }
        _ => ("bad_place", "run baton in a working tree of the repository".to_owned()),
    }
}
