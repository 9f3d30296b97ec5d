//! Stores with a past: many claims and releases, or very many live claims and entries.
//!
//! Filled through the same decisions and the same evolution as everything else, only many events
//! to a decision: the records, index entries and journal are as real as any.

use std::fs;

use baton_core::claim::{Claim, Hold, Holder, Mode, Scope};
use baton_core::context::{Actor, Context, Observed};
use baton_core::event::{EndOfClaim, Event};
use baton_core::id::{ClaimId, SessionId};
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::time::Span;
use baton_engine::sessions::Credentials;
use baton_engine::whoami::{self, Hints};
use baton_engine::workspace::Workspace;
use baton_engine::{api, claiming, sessions};

use crate::failure::Failure;
use crate::traffic::Ground;

pub(super) const EVENTS_AT_ONCE: usize = 2_000;
const HOLDERS: usize = 100;
const TTL: Span = Span::hours(24);

fn start(workspace: &mut Workspace) -> Result<Credentials, Failure> {
    let wanted = api::SessionStart::default();
    Ok(sessions::start(workspace, &Actor::default(), &wanted, None)?)
}

/// The credential of a session in this ground; the same for every measurement.
pub(super) fn session(ground: &Ground) -> Result<String, Failure> {
    let path = ground.root().join(".git").join("bench-credential");
    if let Ok(credential) = fs::read_to_string(&path) {
        return Ok(credential);
    }
    let credential = start(&mut ground.open()?)?.credential;
    fs::write(&path, &credential).map_err(Failure::file("writing", &path))?;
    Ok(credential)
}

pub(super) fn actor(workspace: &mut Workspace, credential: &str) -> Result<Actor, Failure> {
    let hints = Hints { credential: Some(credential.to_owned()), ..Hints::default() };
    Ok(whoami::actor(workspace, &hints)?)
}

/// Claims and releases, one decision each.
pub(super) fn warm_up(ground: &Ground, times: usize) -> Result<(), Failure> {
    let mut workspace = ground.open()?;
    let credential = start(&mut workspace)?.credential;
    let actor = actor(&mut workspace, &credential)?;
    let folder = ground.root();
    for index in 0..times {
        let resources = vec![path(index)];
        let claim = api::Claim { resources: resources.clone(), ..api::Claim::default() };
        claiming::claim(&mut workspace, &actor, &folder, &claim, None, &mut |_| {})?;
        let release = api::Release { resources, all: false, commit: None, token: None };
        claiming::release(&mut workspace, &actor, &folder, &release, None)?;
    }
    Ok(())
}

fn path(index: usize) -> String {
    format!("src/pkg{}/mod{}/file{index}.rs", index % 50, index / 50 % 40)
}

/// `live` claims by many holders and a journal of at least `entries`.
pub(super) fn fill(ground: &Ground, live: usize, entries: usize) -> Result<(), Failure> {
    let mut workspace = ground.open()?;
    let mut holders = Vec::new();
    for _ in 0..HOLDERS {
        let started = start(&mut workspace)?;
        holders.push(Holder { session: started.session, name: started.name, agent: None });
    }
    let passing = entries.saturating_sub(live) / 2;
    let mut written = 0;
    // Claims that ended first, so that the live ones stand among the newest.
    while written < passing {
        let count = (passing - written).min(EVENTS_AT_ONCE / 2);
        batch(&mut workspace, &holders, written..written + count, true)?;
        written += count;
    }
    let mut granted = 0;
    while granted < live {
        let count = (live - granted).min(EVENTS_AT_ONCE);
        batch(&mut workspace, &holders, granted..granted + count, false)?;
        granted += count;
    }
    Ok(())
}

fn batch(
    workspace: &mut Workspace,
    holders: &[Holder],
    range: std::ops::Range<usize>,
    ends: bool,
) -> Result<(), Failure> {
    let tree = workspace.tree.clone();
    workspace.decide(&Actor::default(), Observed::default(), |_, context| {
        let mut events = Vec::with_capacity(range.len() * 2);
        for index in range {
            let hold = Hold {
                holder: holders[index % holders.len()].clone(),
                tree: tree.clone(),
                scope: Scope::Workspace,
                mode: Mode::Exclusive,
                resources: vec![literal(&path(index))?],
            };
            let claim = claim(hold, index, ends, events.len(), context);
            let (id, resources) = (claim.claim.clone(), claim.hold.resources.clone());
            let session: SessionId = claim.hold.holder.session.clone();
            events.push(Event::ClaimGranted { claim });
            if ends {
                let why = EndOfClaim::Released { commit: None };
                events.push(Event::ClaimEnded { claim: id, session, resources, why, left: None });
            }
        }
        Ok((events, ()))
    })?;
    Ok(())
}

pub(super) fn literal(path: &str) -> Result<Resource, Refusal> {
    Resource::literal(path).map_err(|source| Refusal::BadResource { text: path.to_owned(), source })
}

fn claim(hold: Hold, index: usize, ends: bool, before: usize, context: &Context) -> Claim {
    let kind = if ends { "p" } else { "l" };
    Claim {
        claim: ClaimId(format!("c{kind}{index:011x}")),
        token: context.next.after(before as u64),
        hold,
        ttl: TTL,
        granted_at: context.now,
        renewed_at: context.now,
        expires_at: context.now + TTL,
        busy_until: None,
        reason: None,
        task: None,
        suggestions: 0,
        inherited: Vec::new(),
    }
}

/// A new session's credential.
pub(super) fn another_session(ground: &Ground) -> Result<String, Failure> {
    Ok(start(&mut ground.open()?)?.credential)
}
