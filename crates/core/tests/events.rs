//! Stored events: every kind reads back as it was written, old samples stay readable, and what a
//! newer Baton wrote is refused (S21).

use baton_core::breach::{Breach, Door};
use baton_core::calls::Call;
use baton_core::claim::{Hold, Holder, Leftover, Mode, Scope};
use baton_core::commits::{Foreign, Left, Lines, Made};
use baton_core::denials::{self, Deed, Denial, Thing, Why};
use baton_core::event::{
    EndOfClaim, EndOfDraft, EndOfSession, EndOfWait, Event, KINDS, Renewal, Unknown,
};
use baton_core::evolve::evolve;
use baton_core::id::{ClaimId, NoticeId, Position, SessionId, TaskId, TreeId, WaiterId};
use baton_core::journal::{self, Broken, Entry, Hash, Head};
use baton_core::key::Key;
use baton_core::memory::Memory;
use baton_core::notes::{self, Note};
use baton_core::notices::{News, Notice, Was};
use baton_core::once;
use baton_core::operations::Operation;
use baton_core::rules::Seen;
use baton_core::serial::{EndOfZone, ZoneHold};
use baton_core::sessions::{Alias, Life, PersonToken, Session};
use baton_core::state::drafts::Draft;
use baton_core::state::{Change, Changed, Read, rules};
use baton_core::tasks::evidence::{NamedCheck, Proof, Rules};
use baton_core::time::{Moment, Span};
use baton_core::trust::{Command, Trust, Trusted};
use baton_core::waiting::Waiter;
use baton_core::zones::{OnExhausted, Policy, Rule, TaskRules, Zone};

use serde_json::json;

use crate::handoff_events;
use crate::world::{START, World, process, resource, resources};

/// The state the sample journal must give, whatever this Baton has become.
const SAMPLE_STATE: &str = "cd730fefe133ab4b774c4f9c69dd6be248caded11dd31d258f4fb699cfa45d8e";
const SAMPLE: &str = include_str!("samples/journal-v1.jsonl");

pub(crate) fn holder() -> Holder {
    let (session, name) = (SessionId("s1".to_owned()), "amber-otter".to_owned());
    Holder { session, name, agent: Some("helper".to_owned()) }
}

fn hold() -> Hold {
    Hold {
        holder: holder(),
        tree: TreeId("t1".to_owned()),
        scope: Scope::Tree,
        mode: Mode::Shared,
        resources: resources(["src/a.rs", "path:app/[id]/", "src/*.rs", "@vram=4"]),
    }
}

fn leftover() -> Leftover {
    Leftover {
        claim: ClaimId("c1".to_owned()),
        holder: holder(),
        tree: TreeId("t1".to_owned()),
        paths: resources(["src/a.rs"]),
        rescue: Some("refs/baton/rescue/1".to_owned()),
        ended_at: START,
    }
}

fn session(life: Life) -> Session {
    Session {
        session: SessionId("s1".to_owned()),
        name: "amber-otter".to_owned(),
        client: Some("claude".to_owned()),
        client_session: None,
        role: None,
        person: false,
        tree: TreeId("t1".to_owned()),
        host: "here".to_owned(),
        process: Some(process("ann")),
        secret_hashes: vec!["hash".to_owned()],
        started_at: START,
        renewed_at: START,
        expires_at: START + Span::hours(1),
        ttl: Span::hours(1),
        rules: Some(Seen { version: "ab12cd34ef56".to_owned(), at: START }),
        submissions: vec![TaskId::numbered(3)],
        calls: vec![call()],
        life,
    }
}

fn call() -> Call {
    Call { call: "t1".to_owned(), until: START + Span::hours(2), process: Some(process("ann")) }
}

fn claim() -> baton_core::claim::Claim {
    baton_core::claim::Claim {
        claim: ClaimId("c1".to_owned()),
        token: Position { epoch: 2, number: 7 },
        hold: hold(),
        ttl: Span::minutes(30),
        granted_at: START,
        renewed_at: START,
        expires_at: START + Span::minutes(30),
        busy_until: Some(START + Span::hours(2)),
        reason: Some("why \"not\" \u{1f980}".to_owned()),
        task: None,
        suggestions: 2,
        inherited: vec![leftover()],
    }
}

fn waiter() -> Waiter {
    Waiter {
        waiter: WaiterId("w1".to_owned()),
        hold: hold(),
        priority: 3,
        place: Position { epoch: 2, number: 8 },
        queued_at: START,
        deadline: START + Span::hours(1),
        lease_until: START + Span::seconds(30),
        process: Some(process("ann")),
        ttl: Span::minutes(1),
        reason: None,
    }
}

fn notices() -> [Notice; 3] {
    let (to, at) = (SessionId("s1".to_owned()), START);
    let why = "please".to_owned();
    let asked = News::Asked { by: holder(), resources: hold().resources, why: why.clone() };
    let lost = News::Lost {
        claim: ClaimId("c1".to_owned()),
        resources: hold().resources,
        to: Some(holder()),
        why,
    };
    let was = Was::Saved("refs/baton/rescue/s1/overwritten-1".to_owned());
    let path = resource("src/a.rs");
    let overwritten = News::Overwritten { by: holder(), path, was, unsure: false };
    [("n1", asked), ("n2", lost), ("n3", overwritten)].map(|(id, news)| Notice {
        notice: NoticeId(id.to_owned()),
        to: to.clone(),
        agent: Some("helper".to_owned()),
        at,
        news,
    })
}

fn policy() -> Policy {
    Policy {
        zones: vec![Zone { paths: resources(["db/"]), policy: Rule::Serial }],
        capacities: [("gpu".to_owned(), 2)].into(),
        trees: baton_core::tree::Rules {
            dir: Some("../trees".to_owned()),
            copy: vec![".env".to_owned()],
            identity: baton_core::tree::Identity::Person,
            setup: vec!["npm".to_owned(), "ci".to_owned()],
        },
        queue: baton_core::landing::Rules {
            jobs: 3,
            remote: Some("origin".to_owned()),
            request: vec!["gh".to_owned()],
            merge_driver: vec!["m".to_owned()],
            after_land: Some("look".to_owned()),
            ..baton_core::landing::Rules::default()
        },
        deploys: [("prod".to_owned(), crate::deploys::rules())].into(),
        roles: crate::roles::rules(),
        source_hash: "hash".to_owned(),
        approved_at: START,
        tasks: TaskRules { on_exhausted: OnExhausted::Role("senior".to_owned()) },
        evidence: Rules {
            require: Proof::ALL.to_vec(),
            checks: vec!["test".to_owned()],
            named: vec![NamedCheck {
                name: "test".to_owned(),
                run: vec!["make".to_owned()],
                timeout: Span::minutes(1),
            }],
            target: Some("main".to_owned()),
        },
        state: vec![rules::Rule {
            keys: vec!["build/*".parse().unwrap()],
            rule: rules::Kind::Forward,
            stages: vec!["a".to_owned(), "b".to_owned()],
            owner: Some(rules::Owner::Role("build".to_owned())),
        }],
    }
}

fn zone_hold() -> ZoneHold {
    ZoneHold {
        zone: resource("@zone/db/"),
        holder: holder(),
        tree: TreeId("t1".to_owned()),
        clone: "here".to_owned(),
        branch: "baton/t1".to_owned(),
        task: Some(TaskId::numbered(1)),
        since: START,
    }
}

fn trust() -> Trust {
    let command = Command::new("queue check test", &["make".to_owned(), "test".to_owned()]);
    let hash = command.hash();
    Trust { commands: vec![Trusted { command, hash }], at: START, by: Some(holder()) }
}

fn commit_made() -> Made {
    let foreign = Foreign {
        path: "src/a.rs".to_owned(),
        holder: holder(),
        claim: ClaimId("c2".to_owned()),
        at: START,
        left: Some(Left { rescue: None }),
        lines: Some(vec![Lines { from: 1, to: 2 }]),
    };
    Made {
        commit: "0".repeat(40),
        parent: Some("1".repeat(40)),
        branch: Some("main".to_owned()),
        paths: resources(["src/a.rs"]),
        by: holder(),
        task: Some(TaskId("t1".to_owned())),
        token: Some(Position { epoch: 1, number: 2 }),
        tree: TreeId("t1".to_owned()),
        foreign: vec![foreign],
    }
}

fn breach() -> Breach {
    let (by, resource, door) = (holder(), resource("src/a.rs"), Door::Shell);
    Breach { by, resource, holder: holder(), door, at: START, unsure: true }
}

fn denial() -> Denial {
    let thing = Thing { what: "src/a.rs".to_owned(), holder: Some(holder()) };
    Denial {
        by: holder(),
        deed: Deed::Edit,
        why: Why::Held,
        things: vec![thing, Thing::new("src/b.rs")],
        more: 2,
        role: Some("verify".to_owned()),
        done: true,
        at: START,
        quiet_until: START + denials::QUIET,
    }
}

fn every_kind() -> Vec<Event> {
    let id = SessionId("s1".to_owned());
    let claim_id = ClaimId("c1".to_owned());
    let waiter_id = WaiterId("w1".to_owned());
    let grace_until = Some(START + Span::minutes(10));
    let renewal = |ttl| Renewal { claim: claim_id.clone(), expires_at: START, ttl };
    let mut events = vec![
        Event::EpochRaised { why: "restore".to_owned() },
        Event::CommitMade { made: commit_made() },
        Event::WorkspaceMade { workspace: "w".to_owned() },
        Event::PolicySet { policy: policy() },
        Event::CommandsTrusted { trust: trust() },
        Event::PersonTokenAdded { token: PersonToken { hash: "hash".to_owned(), made_at: START } },
        Event::SessionStarted { session: session(Life::Live) },
        Event::SessionResumed { session: session(Life::Ended { at: START, grace_until }) },
        Event::SessionRenewed { session: id.clone(), at: START, expires_at: START },
        Event::AliasBound { alias: Alias { alias: "k".to_owned(), session: Some(id) } },
        Event::AliasBound { alias: Alias { alias: "k".to_owned(), session: None } },
        Event::ClaimGranted { claim: claim() },
        Event::ClaimsRenewed { claims: vec![renewal(None), renewal(Some(Span(1)))], at: START },
        Event::ClaimNarrowed {
            claim: claim_id.clone(),
            resources: resources(["a"]),
            released: resources(["b"]),
            left: Some(leftover()),
        },
        Event::LeftoversTold { claims: vec![claim_id.clone()], remaining: vec![leftover()] },
        Event::HoldBreached { breach: breach() },
        Event::ZoneHeld { hold: zone_hold() },
        Event::ZoneFreed {
            zone: resource("@zone/db/"),
            clone: "here".to_owned(),
            branch: "baton/t1".to_owned(),
            why: EndOfZone::Revoked { why: "stuck".to_owned() },
        },
        Event::WaitQueued { waiter: waiter() },
        Event::WaitRenewed { waiter: waiter_id, lease_until: START },
        Event::NoticesTold { notices: vec![NoticeId("n1".to_owned())] },
        Event::NoticesDropped { notices: vec![NoticeId("n1".to_owned())] },
        Event::OperationAnswered {
            operation: Operation {
                operation: "op".to_owned(),
                session: "s1".to_owned(),
                request_hash: "hash".to_owned(),
                answer: "{\"claim\":\"c1\"}".to_owned(),
                at: START,
            },
        },
        Event::OperationsForgotten { operations: vec!["old".to_owned()] },
        Event::SnapshotTaken {
            state_hash: Hash("hash".to_owned()),
            records: 3,
            archive: "journal-1.jsonl".to_owned(),
        },
    ];
    events.extend(notices().map(|notice| Event::NoticeSent { notice }));
    events.extend(calls_and_subagents());
    events.extend(every_ending());
    events.extend(crate::task_events::all());
    events.extend(shared());
    events.extend(handoff_events::samples(&holder()));
    events.extend(crate::review_events::all());
    events.extend(crate::trees::samples());
    events.extend(crate::deploys::samples(&holder()));
    events.extend(crate::landings::events());
    events.extend(crate::interfaces::samples(&holder()));
    events
}

/// State, once and notes.
fn shared() -> Vec<Event> {
    let key: Key = "build/status".parse().unwrap();
    let token = Position { epoch: 2, number: 9 };
    let changes = [
        Change::Set { value: json!({ "a": [1.5, null, "\u{0}"], "b": 31.245270191439438 }) },
        Change::Set { value: json!(null) },
        Change::Append { items: vec![json!(1), json!("x")] },
        Change::Merge { patch: json!({ "a": null }) },
        Change::Delete,
    ];
    let mut events: Vec<Event> = changes
        .into_iter()
        .zip(1..)
        .map(|(change, version)| Changed {
            key: key.clone(),
            version,
            change,
            by: holder(),
            at: START,
            owner: SessionId("s1".to_owned()),
            position: token,
        })
        .map(|changed| Event::StateChanged { changed })
        .collect();
    let reads = vec![Read { key: key.clone(), version: 3 }];
    let draft = Draft {
        session: SessionId("s1".to_owned()),
        key: key.clone(),
        based_on: 3,
        deleted: false,
        value: json!([1]),
        reads,
        at: START,
    };
    events.push(Event::DraftSet { draft });
    events.extend([EndOfDraft::Published, EndOfDraft::Discarded, EndOfDraft::SessionEnded].map(
        |why| Event::DraftsEnded {
            session: SessionId("s1".to_owned()),
            keys: vec![key.clone()],
            why,
        },
    ));
    events.extend(once_and_notes(&key, token));
    events
}

fn once_and_notes(key: &Key, token: Position) -> Vec<Event> {
    let mut events = Vec::new();
    let command = once::Command { program: "make".to_owned(), hash: "hash".to_owned() };
    let runner = once::Runner {
        token,
        holder: holder(),
        process: Some(process("ann")),
        command,
        started_at: START,
        renewed_at: START,
        lease_until: START + once::LEASE,
    };
    let at = START;
    events.push(Event::OnceStarted { key: key.clone(), runner });
    events.push(Event::OnceRenewed { key: key.clone(), token, at, lease_until: START });
    let output = once::Output { text: "done\n".to_owned(), cut: true };
    for end in [once::End::Failed { code: 3 }, once::End::Succeeded { took: Span(5), output }] {
        events.push(Event::OnceEnded { key: key.clone(), token, at, end });
    }
    let note = Note {
        note: token,
        kind: notes::Kind::Lesson,
        text: "why \u{202e}".to_owned(),
        task: Some("t1".to_owned()),
        rule: Some(3),
        by: holder(),
        at: START,
    };
    events.push(Event::NoteAdded { note });
    events
}

fn calls_and_subagents() -> [Event; 6] {
    let (id, claim_id) = (SessionId("s1".to_owned()), ClaimId("c1".to_owned()));
    [
        Event::CallStarted {
            session: id.clone(),
            call: call(),
            busy_until: START + Span::hours(2),
            claims: vec![claim_id.clone()],
        },
        Event::CallsEnded {
            session: id.clone(),
            calls: vec!["t1".to_owned()],
            busy_until: None,
            claims: vec![claim_id.clone()],
        },
        Event::RoleGiven { session: id.clone(), role: "verify".to_owned(), at: START },
        Event::DeedRefused { denial: denial() },
        Event::RulesSeen {
            session: id.clone(),
            seen: Seen { version: "ab12cd34ef56".to_owned(), at: START },
        },
        Event::SubagentStopped {
            session: id,
            agent: "helper".to_owned(),
            claims: vec![claim_id],
            notices: vec![NoticeId("n1".to_owned())],
        },
    ]
}

fn every_ending() -> Vec<Event> {
    let id = SessionId("s1".to_owned());
    let grace_until = Some(START + Span::minutes(10));
    let mut events = Vec::new();
    events.extend([EndOfSession::Ended, EndOfSession::Died].map(|why| Event::SessionEnded {
        session: id.clone(),
        at: START,
        why,
        grace_until,
    }));
    let waits = [EndOfWait::Granted, EndOfWait::TimedOut, EndOfWait::Withdrawn, EndOfWait::Gone];
    events.extend(waits.map(|why| Event::WaitEnded { waiter: WaiterId("w1".to_owned()), why }));
    let ends = [
        EndOfClaim::Released { commit: Some("abc".to_owned()) },
        EndOfClaim::Released { commit: None },
        EndOfClaim::Expired,
        EndOfClaim::SessionEnded,
        EndOfClaim::SessionDied,
        EndOfClaim::Revoked { why: "stuck".to_owned() },
        EndOfClaim::Settled,
        EndOfClaim::Replaced,
        EndOfClaim::HandedOver { to: SessionId("s2".to_owned()) },
    ];
    events.extend(ends.map(|why| Event::ClaimEnded {
        claim: ClaimId("c1".to_owned()),
        session: id.clone(),
        resources: hold().resources,
        why,
        left: Some(leftover()),
    }));
    events
}

#[test]
fn every_event_reads_back_as_it_was_written() {
    let events = every_kind();
    for kind in KINDS {
        assert!(events.iter().any(|event| event.kind() == *kind), "{kind} is missing here");
    }
    for event in events {
        let (kind, version, body) = event.to_stored();
        assert!(KINDS.contains(&kind));
        assert_eq!(Event::from_stored(kind, version, &body).unwrap(), event, "{body}");
        // What it writes reads back too: applying it twice reads the record of the first time.
        let mut memory = Memory::default();
        evolve(&mut memory, &event).unwrap();
        evolve(&mut memory, &event).unwrap();
        assert_eq!(event.to_stored().2, body, "the bytes are always the same");
    }
}

#[test]
fn s21_what_a_newer_baton_wrote_is_refused() {
    let (kind, version, body) = Event::EpochRaised { why: String::new() }.to_stored();
    let newer = Event::from_stored(kind, version + 1, &body);
    assert!(matches!(newer, Err(Unknown::Newer { .. })));
    assert!(matches!(Event::from_stored("moon_landed", 1, "{}"), Err(Unknown::Newer { .. })));
    for body in ["", "[]", "{}", "null", "{\"why\":3}"] {
        let read = Event::from_stored(kind, version, body);
        assert!(matches!(read, Err(Unknown::Unreadable { .. })), "{body:?}: {read:?}");
    }
}

fn entries(text: &str) -> Vec<Entry> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn replay(entries: &[Entry]) -> Memory {
    let mut memory = Memory::default();
    let mut head = Head::start();
    for entry in entries {
        journal::follows(&head, entry).unwrap();
        head = entry.head();
        evolve(&mut memory, &entry.event().unwrap()).unwrap();
    }
    memory
}

#[test]
fn the_sample_journal_gives_the_state_it_always_gave() {
    let entries = entries(SAMPLE);
    for kind in ["epoch_raised", "claim_narrowed", "leftovers_told", "notice_sent", "wait_queued"] {
        assert!(entries.iter().any(|entry| entry.kind == kind), "the sample has no {kind}");
    }
    assert_eq!(replay(&entries).hash().0, SAMPLE_STATE);
}

#[test]
fn a_changed_dropped_or_swapped_entry_is_found() {
    let entries = entries(SAMPLE);
    let check = |entries: &[Entry]| {
        let mut head = Head::start();
        for entry in entries {
            journal::follows(&head, entry)?;
            head = entry.head();
        }
        Ok(())
    };
    assert_eq!(check(&entries), Ok(()));
    let mut changed = entries.clone();
    changed[3].body.push(' ');
    assert!(matches!(check(&changed), Err(Broken::Changed { .. })));
    let mut changed = entries.clone();
    changed[3].actor.push('x');
    assert!(matches!(check(&changed), Err(Broken::Changed { .. })));
    let mut dropped = entries.clone();
    dropped.remove(3);
    assert!(matches!(check(&dropped), Err(Broken::Order { .. })));
    let mut swapped = entries.clone();
    swapped.swap(3, 4);
    assert!(matches!(check(&swapped), Err(Broken::Order { .. })));
    let mut older = entries;
    older[3].at = Moment(0);
    assert!(matches!(check(&older), Err(Broken::Time { .. })));
}

/// Makes the sample, printed with `BATON_SAMPLE=1 cargo test -p baton-core sample -- --nocapture`.
/// A sample is never made again for a version that was released: then a new one is added.
#[test]
#[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "it is made to print")]
fn print_a_sample() {
    let mut world = World::with(["ann", "bob"]);
    world.policy(&[("db/", Rule::Serial)], &[("gpu", 2)]);
    world.claim("ann", ["src/", "path:app/[id].ts", "@gpu", "db/1"]).granted();
    world.claim("bob", ["src/a.rs"]).wait(Span::hours(1)).queued();
    world.ask("bob", "src/a.rs").unwrap();
    world.acts("ann");
    world.dirty.insert("ann".to_owned(), vec![resource("src/a.rs"), resource("src/b.rs")]);
    world.release("ann", ["src/"]).unwrap();
    world.raise_epoch();
    world.look("bob").unwrap();
    world.pass(Span::minutes(20));
    world.acts("ann");
    world.end("bob", Some(baton_core::sessions::GRACE)).unwrap();
    world.start("bob", "main");
    world.pass(Span::hours(2));
    world.start("cat", "side");
    world.claim("cat", ["src/**", "@gpu=2"]).granted();
    world.audit();
    if std::env::var_os("BATON_SAMPLE").is_some() {
        for entry in &world.journal {
            println!("{}", serde_json::to_string(entry).unwrap());
        }
        println!("{}", world.store.hash().0);
    }
}
