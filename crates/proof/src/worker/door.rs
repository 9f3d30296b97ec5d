//! How a worker reaches Baton: through the library in its own process, or by starting the binary.
//!
//! Owns the translation of acts into requests and of answers into outcomes. The library gives many
//! acts a second; the binary is what agents really run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use baton_core::check::Verdict;
use baton_core::claims::Granted;
use baton_core::context::Actor;
use baton_core::refusal::Class;
use baton_core::time::Span;
use baton_engine::failure::Failure as Answer;
use baton_engine::whoami::{self, Hints};
use baton_engine::workspace::Workspace;
use baton_engine::{api, checking, claiming, sessions};
use serde_json::Value;

use super::Task;
use crate::failure::Failure;
use crate::history::{Act, Outcome, Verb};

/// What an act needs beyond what the history keeps.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    pub ttl_ms: u64,
    pub wait_ms: Option<u64>,
    pub operation: Option<String>,
}

#[derive(Debug)]
pub struct Door {
    session: String,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Library { workspace: Box<Workspace>, actor: Box<Actor>, folder: PathBuf },
    Binary { baton: PathBuf, folder: PathBuf, credential: String },
}

impl Door {
    /// Opens the workspace and starts a session that dies with this process.
    pub fn open(task: &Task) -> Result<Self, Failure> {
        let folder = task.folder.clone();
        let mut workspace = Workspace::open(&folder, task.store.as_deref())?;
        let wanted = api::SessionStart { pid: Some(std::process::id()), ..Default::default() };
        let starter = Actor::default();
        let started = sessions::start(&mut workspace, &starter, &wanted, None)?;
        let session = started.session.0.clone();
        let credential = started.credential;
        let way = match &task.baton {
            Some(baton) => Way::Binary { baton: baton.clone(), folder, credential },
            None => {
                let hints = Hints { credential: Some(credential), ..Hints::default() };
                let actor = Box::new(whoami::actor(&mut workspace, &hints)?);
                Way::Library { workspace: Box::new(workspace), actor, folder }
            }
        };
        Ok(Self { session, way })
    }

    pub fn session(&self) -> &str {
        &self.session
    }

    /// The workspace and who acts in it, where this process acts itself.
    pub fn inside(&mut self) -> Option<(&mut Workspace, &Actor, &Path)> {
        match &mut self.way {
            Way::Library { workspace, actor, folder } => Some((workspace, actor, folder)),
            Way::Binary { .. } => None,
        }
    }

    pub fn ask(&mut self, act: &Act, terms: &Terms) -> Outcome {
        match &mut self.way {
            Way::Library { workspace, actor, folder } => call(workspace, actor, folder, act, terms),
            Way::Binary { baton, folder, credential } => {
                let mut command = Command::new(baton);
                command.args(words(act, terms)).current_dir(folder);
                command.env("BATON_SESSION", credential).stdin(Stdio::null());
                spawn(command, act.verb)
            }
        }
    }
}

fn call(
    workspace: &mut Workspace,
    actor: &Actor,
    folder: &Path,
    act: &Act,
    terms: &Terms,
) -> Outcome {
    let operation = terms.operation.as_deref();
    let (resources, token) = (act.resources.clone(), act.token);
    match act.verb {
        Verb::Claim => {
            let wanted = api::Claim {
                resources,
                shared: act.shared,
                tree: false,
                ttl: Some(Span(terms.ttl_ms)),
                wait: terms.wait_ms.map(Span),
                priority: 0,
                reason: None,
            };
            let progress = &mut |_: &_| {};
            match claiming::claim(workspace, actor, folder, &wanted, operation, progress) {
                Ok(granted) => outcome_of(granted),
                Err(failure) => failed(&failure),
            }
        }
        Verb::Release => {
            let wanted = api::Release { resources, all: false, commit: None, token };
            done(claiming::release(workspace, actor, folder, &wanted, operation).map(|_| ()))
        }
        Verb::Renew => {
            let wanted = api::Renew { resources, token };
            done(claiming::renew(workspace, actor, folder, &wanted, operation).map(|_| ()))
        }
        Verb::Check => {
            let wanted = api::Check { paths: resources, token };
            match checking::check(workspace, actor, folder, &wanted) {
                Ok(checked) if checked.verdict <= Verdict::Warn => Outcome::Done,
                Ok(_) => Outcome::Refused { code: "denied".to_owned() },
                Err(failure) => failed(&failure),
            }
        }
    }
}

fn outcome_of(granted: Granted) -> Outcome {
    let Granted { claim, token, already_held, .. } = granted;
    Outcome::Granted { claim, token, already_held }
}

fn done(answer: Result<(), Answer>) -> Outcome {
    match answer {
        Ok(()) => Outcome::Done,
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Answer) -> Outcome {
    match failure.class() {
        Class::Unanswered => Outcome::Unknown,
        _ => Outcome::Refused { code: failure.to_string() },
    }
}

/// The command line of an act.
pub fn words(act: &Act, terms: &Terms) -> Vec<String> {
    let verb = match act.verb {
        Verb::Claim => "claim",
        Verb::Release => "release",
        Verb::Renew => "renew",
        Verb::Check => "check",
    };
    let mut words = vec![verb.to_owned(), "--json".to_owned()];
    words.extend(act.resources.iter().cloned());
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_owned(), value]);
        }
    };
    option("--token", act.token.map(|token| token.to_string()));
    option("--op-id", terms.operation.clone());
    if act.verb == Verb::Claim {
        option("--ttl", Some(format!("{}ms", terms.ttl_ms)));
        option("--wait", terms.wait_ms.map(|wait| format!("{wait}ms")));
        if act.shared {
            words.push("--shared".to_owned());
        }
    }
    words
}

fn spawn(mut command: Command, verb: Verb) -> Outcome {
    let Ok(output) = command.output() else { return Outcome::Unknown };
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match output.status.code() {
        Some(0) if verb == Verb::Claim => {
            serde_json::from_value::<Granted>(reply).map_or(Outcome::Unknown, outcome_of)
        }
        Some(0) => Outcome::Done,
        Some(1 | 3) => {
            let code = reply["refused"]["code"].as_str().unwrap_or("denied");
            Outcome::Refused { code: code.to_owned() }
        }
        _ => Outcome::Unknown,
    }
}
