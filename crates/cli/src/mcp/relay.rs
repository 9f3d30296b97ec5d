//! Calls of a client inside a sandbox, where the store is closed.
//!
//! Owns the way of a call to the broker and back. Each of its steps is a call of its own there, and
//! a process of its own: so whoever asks is looked at each time, what lies in the tree's git folder
//! is put right before git sees it, and what runs code of the tree is held. `serve` is the side
//! within, `serve_step` the one outside.

use std::ffi::OsString;
use std::fs::File;
use std::io::{PipeReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use baton_core::roles::Role;
use baton_engine::failure::Failure;
use baton_engine::sandbox::caller;
use baton_engine::workspace::PATIENCE;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{Told, defect};
use super::floor::{Caller, Floor, Order, Step};
use super::requests::Call;
use crate::arguments::Command;
use crate::commands::roles::Roles;
use crate::commands::sandbox::permits;
use crate::signals;
use crate::words::Problem;

const VERB: &str = "mcp-step";
/// More than a line of the protocol may have.
const CALL_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// One step of a call.
#[derive(Debug, Serialize, Deserialize)]
struct Passed<C> {
    call: C,
    step: usize,
    /// What the commit before it said.
    committed: Option<Value>,
}

/// Has the broker do one step after the other, until one is refused.
pub(super) fn serve(
    call: &Call,
    steps: &[Step],
    end: &PipeReader,
    hear: &(dyn Fn(&str) + Sync),
) -> Told {
    let mut told = Told::default();
    let mut committed = None;
    for (at, step) in steps.iter().enumerate() {
        let passed = Passed { call, step: at, committed: committed.take() };
        let next = pass(&passed, step, end, hear).unwrap_or_else(Told::from);
        if matches!(step, Step::Command(Command::Commit(_))) {
            committed = next.replies.first().cloned();
        }
        told.go_on(next);
        if told.refused.is_some() {
            break;
        }
    }
    told
}

/// The role of whoever is inside, as the broker tells it.
pub(super) fn role(end: &PipeReader) -> Option<Role> {
    let asked = |words: &[&str]| {
        let words: Vec<OsString> = words.iter().chain(&["--json"]).map(OsString::from).collect();
        let (_, output) = caller::pass(&words, &[], end.as_fd(), &|_| {}).ok()?;
        serde_json::from_slice::<Value>(&output).ok()
    };
    let me = asked(&["session", "whoami"])?;
    let mut all: Roles = serde_json::from_value(asked(&["roles"])?).ok()?;
    let at = all.roles.iter().position(|one| me["role"] == one.name.as_str())?;
    Some(all.roles.swap_remove(at).role)
}

fn pass(
    passed: &Passed<&Call>,
    step: &Step,
    end: &PipeReader,
    hear: &(dyn Fn(&str) + Sync),
) -> Result<Told, Problem> {
    let mut words = vec![OsString::from(VERB)];
    if matches!(step, Step::Command(command) if permits::is_held(command)) {
        words.push("--held".into());
    }
    let input = serde_json::to_vec(passed).map_err(|error| defect(&error.to_string()))?;
    let (code, output) = caller::pass(&words, &input, end.as_fd(), hear)?;
    serde_json::from_slice(&output)
        .map_err(|_| defect(&format!("its step outside ended with exit code {code}")))
}

/// Serves the one step that comes in, and says what came of it.
pub(crate) fn serve_step(floor: &Floor, input: File, mut output: File) -> Result<(), Problem> {
    let told = read(input).and_then(|passed| {
        let mut meant = passed.call.read()?;
        if passed.step >= meant.steps.len() {
            return Err(defect("there is no such step"));
        }
        // Whoever does not want it any more has the broker tell this process to end.
        let end = signals::end_as_pipe().map_err(|error| defect(&error.to_string()))?;
        let served = floor.serve(Order {
            caller: Caller::default(),
            asker: None,
            folder: meant.folder,
            acts: meant.acts,
            remembers: false,
            steps: vec![meant.steps.swap_remove(passed.step)],
            committed: passed.committed,
            end: Arc::new(end),
            hear: Box::new(|text| eprintln!("{text}")),
            patience: PATIENCE,
        });
        Ok(served.into())
    });
    let told = told.unwrap_or_else(Told::from);
    let text = serde_json::to_vec(&told).map_err(|error| defect(&error.to_string()))?;
    output.write_all(&text).map_err(|source| {
        Failure::File { doing: "the answer cannot be said", path: "stdout".into(), source }.into()
    })
}

fn read(input: File) -> Result<Passed<Call>, Problem> {
    let mut text = Vec::new();
    let all = input.take(CALL_BYTES_MAX).read_to_end(&mut text);
    all.map_err(|error| defect(&error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| defect(&error.to_string()))
}
