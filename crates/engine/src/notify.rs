//! Telling the user of new gates with the user's own command.
//!
//! Owns that it runs once a gate: through `once`, after the commit that opened the gate and outside
//! every lock. Whoever dies in between leaves the gate untold, and the next command sees to it. A
//! command that fails is remarked and not run again; nothing else depends on it.

use std::time::Duration;

use baton_core::context::{Actor, Observed};
use baton_core::gate::{self, Gate};
use baton_core::gates;
use baton_core::id::GateId;
use baton_core::key::Key;
use baton_core::once::{self, Answer, End, Output, Request};
use baton_core::time::Span;
use baton_core::view::scan;

use crate::errand::{self, Came};
use crate::once::{described, sighted};
use crate::user_config;
use crate::whoami::process_of;
use crate::workspace::Workspace;

/// How many gates one command tells of; the rest follow with the next.
const TOLD_MAX: u32 = 5;
/// Shorter than the lease of a turn of `once`, so that it need not be renewed.
const AT_MOST: Duration = Duration::from_secs(10);
/// How much of a question stands in the line of the command.
const LINE_CHARACTERS_MAX: usize = 300;

/// A gate that could not be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    pub gate: GateId,
    pub why: String,
}

/// Tells of gates that nobody was told of yet. `escape` makes a line safe to show.
pub fn tell(workspace: &mut Workspace, escape: fn(&str) -> String) -> Vec<Untold> {
    let argv = match user_config::read() {
        Ok(config) => config.notify.filter(|argv| !argv.is_empty()),
        Err(_) => None,
    };
    let Some(argv) = argv else {
        return Vec::new();
    };
    let gates: Result<Vec<Gate>, _> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(scan(view, gate::all_of(gate::UNTOLD, TOLD_MAX))?)
        });
    let mut untold = Vec::new();
    for gate in gates.unwrap_or_default() {
        if let Some(came) = tell_of(workspace, &gate, &argv, escape)
            && !came.well
        {
            untold.push(Untold { gate: gate.gate, why: came.saw });
        }
    }
    untold
}

/// Nothing when it is another's turn, or was told already.
fn tell_of(
    workspace: &mut Workspace,
    gate: &Gate,
    argv: &[String],
    escape: fn(&str) -> String,
) -> Option<Came> {
    let key: Key = format!("notify/{}", gate.gate).parse().ok()?;
    let mut line = escape(&format!("{} on {}: {}", gate.gate, gate.on, gate.ask));
    if let Some((end, _)) = line.char_indices().nth(LINE_CHARACTERS_MAX) {
        line.truncate(end);
        line.push('…');
    }
    let mut argv = argv.to_vec();
    argv.push(line);
    let words: Vec<_> = argv.iter().map(Into::into).collect();
    let machine = &workspace.machine;
    let request = Request {
        key: key.clone(),
        command: described(&words),
        ttl: None,
        process: machine.current().map(|identity| process_of(machine, &identity)),
        errand: true,
    };
    let observed = sighted(workspace, &key).ok()?;
    let nobody = Actor::default();
    let answer =
        workspace.decide(&nobody, observed, |view, context| once::begin(view, &request, context));
    let came = match answer.ok()? {
        Answer::Recorded(..) => None,
        Answer::Run(turn) => {
            let told = [
                ("BATON_GATE", gate.gate.0.clone()),
                ("BATON_GATE_ON", escape(&gate.on)),
                ("BATON_GATE_KIND", gate.kind.name().to_owned()),
            ];
            let document = serde_json::to_string(gate).unwrap_or_default();
            let root = workspace.place.root.clone();
            let came = errand::run(&argv, &root, &told, &format!("{document}\n"), AT_MOST);
            let end = match came.well {
                true => End::Succeeded { took: Span::ZERO, output: Output::default() },
                false => End::Failed { code: came.code },
            };
            let said = workspace.decide(&nobody, Observed::default(), |view, context| {
                once::finish(view, &key, turn.token, &end, context)
            });
            // Whether it was written down decides nothing: that it ran is marked below.
            let _ = said;
            Some(came)
        }
    };
    let well = came.as_ref().is_none_or(|came| came.well);
    let marked = workspace.decide(&nobody, Observed::default(), |view, context| {
        gates::was_told(view, &gate.gate, well, context)
    });
    marked.ok()?;
    came
}
