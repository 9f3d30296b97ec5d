//! Gates that Baton checks itself: what was seen, and what follows.
//!
//! The engine looks before it asks; a rule judges what it saw. Invariants: a command of an agent
//! counts only once a person stands for it; a gate that passed lets its task go on exactly once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::deciding::{Decided, conclude};
use super::find;
use super::refused::{Brief, Refused};
use crate::context::Context;
use crate::event::Event;
use crate::gate::{Check, Checked, Decision, Gate, Kind, Outcome};
use crate::id::GateId;
use crate::refusal::Refusal;
use crate::view::{View, get};

/// A command that did not pass is not run again sooner than this, unless somebody asks.
pub const AGAIN_AFTER: crate::time::Span = crate::time::Span::seconds(30);
pub const SAW_BYTES_MAX: usize = 400;

/// What the engine saw of one gate.
#[derive(Clone, Debug, Serialize)]
pub struct Look {
    pub gate: GateId,
    pub passed: bool,
    /// In words: `exit 1`, `there is no such file`.
    pub saw: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Looked {
    pub gate: GateId,
    pub on: String,
    pub kind: Kind,
    pub passed: bool,
    pub saw: String,
    /// What followed, when it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
}

/// Judges what was seen of one gate; nothing when it was decided meanwhile.
pub fn judge(
    view: &dyn View,
    look: &Look,
    context: &Context,
) -> Result<(Vec<Event>, Option<Looked>), Refusal> {
    let mut events = Vec::new();
    let gate = get::<Gate>(view, look.gate.as_str())?.filter(Gate::is_open);
    let Some((gate, check)) = gate.and_then(|gate| gate.check.clone().map(|check| (gate, check)))
    else {
        return Ok((events, None));
    };
    let passed = match check {
        Check::Time { at } => context.now >= at,
        Check::File { .. } => look.passed,
        Check::Command { .. } => look.passed && gate.trusted,
    };
    let mut saw = look.saw.clone();
    while saw.len() > SAW_BYTES_MAX {
        saw.pop();
    }
    // That nothing has changed is worth an entry only where a command ran.
    let ran = gate.kind == Kind::Command && gate.trusted;
    if passed || ran {
        let checked = Checked { at: context.now, passed, saw: saw.clone() };
        events.push(Event::GateChecked { gate: gate.gate.clone(), checked });
    }
    let decided = match passed {
        true => Some(pass(view, &gate, &saw, &mut events, context)?),
        false => None,
    };
    let (on, kind) = (gate.on.clone(), gate.kind);
    Ok((events, Some(Looked { gate: gate.gate, on, kind, passed, saw, decided })))
}

fn pass(
    view: &dyn View,
    gate: &Gate,
    saw: &str,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Decided, Refusal> {
    let decision = Decision {
        outcome: Outcome::Passed,
        by: None,
        at: context.now,
        why: Some(saw.to_owned()),
        option: None,
        commit: gate.commit.clone(),
    };
    conclude(view, gate, decision, events, context)
}

/// The gate, if Baton may look at it itself.
pub fn checkable(view: &dyn View, text: &str) -> Result<Gate, Refusal> {
    let gate = find(view, text)?;
    if let Some(decision) = gate.decision.clone().map(Box::new) {
        return Err(Refused::Decided { gate: Brief::from(&gate), decision }.into());
    }
    match (gate.kind.is_automatic(), gate.kind == Kind::Command && !gate.trusted) {
        (false, _) => Err(Refused::NotAutomatic { gate: Brief::from(&gate) }.into()),
        (_, true) => Err(Refused::Untrusted { gate: Brief::from(&gate) }.into()),
        _ => Ok(gate),
    }
}

/// Is it time to look again by ourselves?
pub fn is_due(gate: &Gate, context: &Context) -> bool {
    match (&gate.check, &gate.checked) {
        (Some(Check::Time { at }), _) => context.now >= *at,
        (Some(Check::File { .. }), _) => true,
        (Some(Check::Command { .. }), checked) => {
            let rested = |checked: &Checked| context.now >= checked.at + AGAIN_AFTER;
            gate.trusted && checked.as_ref().is_none_or(rested)
        }
        (None, _) => false,
    }
}
