//! A client that cannot ask its user: a person is asked by a gate instead.
//!
//! Owns the asking, once for a file and a session; whoever asks again hears of the same gate.

use std::path::Path;

use baton_core::check::{Because, Finding};
use baton_core::context::{Actor, Observed};
use baton_core::gate::{Decision, Kind};
use baton_core::gates::edits;
use baton_core::id::GateId;
use baton_core::resource::Resource;

use crate::api::gates as api;
use crate::failure::Failure;
use crate::gating;
use crate::workspace::Workspace;

/// A person is asked, or has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub resource: Resource,
    pub gate: GateId,
    pub decision: Option<Decision>,
}

/// Asks about everything among these that is a person's to decide.
pub fn ask(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    findings: &[Finding],
) -> Result<Vec<Asked>, Failure> {
    let Some(session) = actor.session.clone() else { return Ok(Vec::new()) };
    let mut asked = Vec::new();
    for finding in findings.iter().filter(|one| one.because == Because::NeedsPerson) {
        let resource = finding.resource.clone();
        let known = workspace
            .look(actor, Observed::default(), |view, _| edits::latest(view, &resource, &session))?;
        let (gate, decision) = match known {
            Some(gate) => (gate.gate, gate.decision),
            None => {
                let wanted = api::Add {
                    on: edits::subject(&resource, &session),
                    kind: Kind::Approval,
                    ask: format!("May {resource} be changed?"),
                    options: Vec::new(),
                    at: None,
                    when: None,
                    path: None,
                    command: Vec::new(),
                };
                (gating::add(workspace, actor, cwd, &wanted, None)?.gate, None)
            }
        };
        asked.push(Asked { resource, gate, decision });
    }
    Ok(asked)
}
