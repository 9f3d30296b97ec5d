//! Fills the store of a workspace with a long journal, for measuring `journal verify`.
//!
//! `cargo run --release -p baton-engine --example make_journal -- FOLDER ENTRIES`

use std::path::Path;

use baton_core::claim::{Claim, Hold, Holder, Mode, Scope};
use baton_core::context::{Actor, Observed};
use baton_core::event::{EndOfClaim, Event};
use baton_core::id::{ClaimId, SessionId, TreeId};
use baton_core::resource::Resource;
use baton_core::time::Span;
use baton_engine::workspace::Workspace;

const BATCH: u64 = 10_000;
/// One claim in so many stays.
const KEPT: u64 = 50;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, folder, entries] = words.as_slice() else {
        println!("usage: make_journal FOLDER ENTRIES");
        return;
    };
    let wanted: u64 = entries.parse().unwrap_or(1_000);
    let mut workspace = match Workspace::open(Path::new(folder), None) {
        Ok(workspace) => workspace,
        Err(failure) => {
            println!("{failure:?}");
            return;
        }
    };
    let mut made = 0;
    while made < wanted {
        let batch = BATCH.min(wanted - made);
        let done = workspace.decide(&Actor::default(), Observed::default(), |_, context| {
            let events = (made..made + batch).map(|number| event(number, context)).collect();
            Ok((events, ()))
        });
        if let Err(failure) = done {
            println!("{failure:?}");
            return;
        }
        made += batch;
    }
    println!("{made} entries");
}

fn event(number: u64, context: &baton_core::context::Context) -> Event {
    let pair = number / 2;
    let session = SessionId(format!("s{:012x}", pair % 64));
    let text = format!("src/module_{}/file_{pair}.rs", pair % 997);
    let resources: Vec<Resource> = Resource::literal(&text).into_iter().collect();
    let claim = ClaimId(format!("c{pair:012x}"));
    if number % 2 == 1 && pair % KEPT != 0 {
        let why = EndOfClaim::Released { commit: None };
        return Event::ClaimEnded { claim, session, resources, why, left: None };
    }
    let granted = if number % 2 == 1 { ClaimId(format!("d{pair:012x}")) } else { claim };
    let holder = Holder { session, name: format!("agent-{}", pair % 64), agent: None };
    let tree = TreeId("t".to_owned());
    Event::ClaimGranted {
        claim: Claim {
            claim: granted,
            token: context.next,
            hold: Hold { holder, tree, scope: Scope::Workspace, mode: Mode::Exclusive, resources },
            ttl: Span::minutes(30),
            granted_at: context.now,
            renewed_at: context.now,
            expires_at: context.now + Span::minutes(30),
            reason: Some("measuring".to_owned()),
            task: None,
        },
    }
}
