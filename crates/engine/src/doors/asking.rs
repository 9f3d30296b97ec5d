//! Asking a person about a file: by the client, where somebody sits at it, else by a gate.
//!
//! Owns the asking, once for a file and a session; whoever asks again hears of the same gate. What
//! a client asked is remembered until the edit has come, which is its user's yes.

use std::collections::BTreeSet;
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
use crate::resources::literal;
use crate::workspace::Workspace;

use super::Trace;
use super::edit::Target;

/// How lines about what a client asks its user begin.
const ASKED: &str = "? ";
const ANSWERED: &str = "! ";

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
                    ask: edits::question(&resource),
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

/// The client asks its user about these now.
pub fn client_asks(workspace: &Workspace, actor: &Actor, findings: &[Finding]) {
    let Some(trace) = asked_by_client(workspace, actor) else { return };
    for finding in findings.iter().filter(|one| one.because == Because::NeedsPerson) {
        trace.add(&format!("{ASKED}{}", finding.resource));
    }
}

/// The user has the word: whatever was asked before is answered, or will be asked again.
pub fn over(workspace: &Workspace, actor: &Actor) {
    if let Some(trace) = asked_by_client(workspace, actor) {
        trace.take();
    }
}

/// What is asked and not answered. Answers stand beside the questions, since several hooks write
/// here at the same time.
fn open(trace: &Trace) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    for line in trace.lines() {
        if let Some(path) = line.strip_prefix(ASKED) {
            open.insert(path.to_owned());
        } else if let Some(path) = line.strip_prefix(ANSWERED) {
            open.remove(path);
        }
    }
    open
}

/// An edit was made: where its client had asked, its user said yes, and the file is claimed as
/// after any other edit.
pub fn edited(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
) -> Result<(), Failure> {
    let Some(trace) = asked_by_client(workspace, actor) else { return Ok(()) };
    let asked = open(&trace);
    if asked.is_empty() {
        return Ok(());
    }
    let named = |target: &Target| literal(&workspace.place, cwd, target.path.as_ref());
    let written = targets.iter().filter_map(|target| named(target).ok()).flatten();
    let agreed: Vec<Resource> =
        written.filter(|resource| asked.contains(&resource.to_string())).collect();
    if agreed.is_empty() {
        return Ok(());
    }
    agreed.iter().for_each(|resource| trace.add(&format!("{ANSWERED}{resource}")));
    workspace.decide(actor, Observed::default(), |view, context| {
        edits::agreed(view, &agreed, context)
    })?;
    super::edit::edit(workspace, actor, cwd, targets)?;
    Ok(())
}

fn asked_by_client(workspace: &Workspace, actor: &Actor) -> Option<Trace> {
    let session = actor.session.as_ref()?;
    Some(Trace::of_session(&workspace.place, session, "asked"))
}
