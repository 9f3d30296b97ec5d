//! Shared state: versions, conditions, the six rules, owners, and drafts.

use baton_core::event::Event;
use baton_core::key::Key;
use baton_core::refusal::{Class, Refusal};
use baton_core::sessions::{self, Start};
use baton_core::state::drafts::{self, Published};
use baton_core::state::rules::{Kind, Owner, Rule};
use baton_core::state::{
    self, Against, Change, Got, HISTORY_MAX, READS_MAX, Read, Refused, Request, State,
    VALUE_BYTES_MAX, VALUE_DEPTH_MAX, Write, Writer, Written,
};
use baton_core::time::Span;
use baton_core::view::get;
use baton_core::zones::Policy;
use serde_json::{Value as Json, json};

use crate::world::World;

pub(crate) fn key(text: &str) -> Key {
    text.parse().unwrap()
}

fn set(value: Json) -> Change {
    Change::Set { value }
}

fn append(items: &[Json]) -> Change {
    Change::Append { items: items.to_vec() }
}

fn merge(patch: Json) -> Change {
    Change::Merge { patch }
}

pub(crate) fn ask(text: &str, change: Change) -> Request {
    let write = Write { key: key(text), change, if_version: None };
    Request { write, reads: Vec::new(), draft: false }
}

/// What callers do with the shared state.
impl World {
    pub(crate) fn writes(&mut self, who: &str, request: &Request) -> Result<Written, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| state::write(view, request, context))
    }

    pub(crate) fn publish(&mut self, who: &str, keys: &[Key]) -> Result<Published, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| drafts::publish(view, keys, context))
    }

    pub(crate) fn discard(&mut self, who: &str, keys: &[Key]) -> Result<(), Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| drafts::discard(view, keys, context)).map(drop)
    }

    pub(crate) fn got(&mut self, who: Option<&str>, text: &str) -> Result<Got, Refusal> {
        let context = self.context(who);
        let key = key(text);
        self.decide(context, |view, context| {
            Ok((Vec::new(), state::get_value(view, &key, false, context)?))
        })
    }

    fn does(&mut self, who: &str, text: &str, change: Change) -> Result<Written, Refusal> {
        self.writes(who, &ask(text, change))
    }

    fn rules(&mut self, rules: &[(&str, Kind)]) {
        let rule = |(pattern, rule): &(&str, Kind)| Rule {
            keys: vec![pattern.parse().unwrap()],
            rule: *rule,
            stages: ["planned", "building", "done"].map(str::to_owned).to_vec(),
            owner: None,
        };
        let state = rules.iter().map(rule).collect();
        self.put_policy(Policy { state, ..Policy::default() });
    }

    fn owned(&mut self, pattern: &str, owner: &str) {
        let rule = Rule {
            keys: vec![pattern.parse().unwrap()],
            rule: Kind::Replace,
            stages: Vec::new(),
            owner: Some(owner.parse().unwrap()),
        };
        self.put_policy(Policy { state: vec![rule], ..Policy::default() });
    }
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> Refused {
    match answer {
        Err(Refusal::State(refused)) => *refused,
        other => panic!("should be refused, but {other:?}"),
    }
}

#[track_caller]
fn against<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> Against {
    match refused(answer) {
        Refused::Against { why, .. } => why,
        other => panic!("should be against a rule, but {other:?}"),
    }
}

#[test]
fn versions_count_on_over_a_deletion() {
    let mut world = World::with(["ann", "bob"]);
    for (change, version) in [
        (set(json!(null)), 1),
        (set(json!([1])), 2),
        (append(&[json!(2), json!(3)]), 3),
        (Change::Delete, 4),
        (set(json!({ "a": 1 })), 5),
        (merge(json!({ "a": null, "b": 2 })), 6),
    ] {
        assert_eq!(world.does("ann", "k", change).unwrap().version, version);
        let got = world.got(None, "k");
        match version {
            1 => assert_eq!(got.unwrap().value, json!(null), "null is a value"),
            3 => assert_eq!(got.unwrap().value, json!([1, 2, 3])),
            4 => assert!(matches!(refused(got), Refused::Unknown { version: 4, .. })),
            6 => assert_eq!(got.unwrap().value, json!({ "b": 2 })),
            _ => assert_eq!(got.unwrap().version, version),
        }
    }
    let gone = refused(world.does("bob", "none", Change::Delete));
    assert!(matches!(gone, Refused::Unknown { version: 0, .. }));
    assert_eq!(against(world.does("bob", "k", append(&[json!(1)]))), Against::NotAnArray);
    world.audit();
}

#[test]
fn a_version_condition_holds_or_changes_nothing() {
    let mut world = World::with(["ann", "bob"]);
    let at = |version| {
        let mut request = ask("k", set(json!("mine")));
        request.write.if_version = Some(version);
        request
    };
    let entries = world.journal.len();
    let stale = refused(world.writes("ann", &at(1)));
    assert!(matches!(&stale, Refused::Stale { given: 1, current: 0, exists: false, .. }));
    assert_eq!((stale.class(), stale.code()), (Class::Stale, "stale_version"));
    assert_eq!(world.journal.len(), entries);
    world.writes("ann", &at(0)).unwrap();
    let stale = refused(world.writes("bob", &at(0)));
    let Refused::Stale { current: 1, exists: true, by: Some((by, _)), .. } = stale else {
        panic!("{stale:?}")
    };
    assert_eq!(by.name, "ann");
    world.writes("bob", &at(1)).unwrap();
    world.does("bob", "k", Change::Delete).unwrap();
    world.writes("ann", &at(0)).unwrap();
    assert_eq!(world.got(None, "k").unwrap().version, 4);
    world.audit();
}

#[test]
fn what_was_read_must_not_have_changed() {
    let mut world = World::with(["ann", "bob"]);
    world.does("ann", "read", set(json!(1))).unwrap();
    let with_reads = |reads: &[(&str, u64)]| {
        let mut request = ask("written", set(json!(1)));
        let read = |(text, version): &(&str, u64)| Read { key: key(text), version: *version };
        request.reads = reads.iter().map(read).collect();
        request
    };
    world.writes("bob", &with_reads(&[("read", 1), ("absent", 0)])).unwrap();
    world.does("ann", "read", set(json!(2))).unwrap();
    let stale = refused(world.writes("bob", &with_reads(&[("absent", 0), ("read", 1)])));
    assert_eq!((stale.class(), stale.code()), (Class::Stale, "stale_read"));
    assert!(matches!(stale, Refused::Stale { given: 1, current: 2, read: true, .. }));
    world.does("ann", "absent", set(json!(0))).unwrap();
    let stale = refused(world.writes("bob", &with_reads(&[("absent", 0)])));
    assert!(matches!(stale, Refused::Stale { given: 0, current: 1, .. }));
    let many = vec![("read", 2); READS_MAX + 1];
    assert!(matches!(refused(world.writes("bob", &with_reads(&many))), Refused::TooMany { .. }));
    world.audit();
}

/// One row: what is there, what is asked, what is there then (`None`: it stays) or why not.
type Row = (Option<Json>, Change, Result<Option<Json>, Against>);

fn rows(kind: Kind) -> Vec<Row> {
    let stages = ["planned", "building", "done"].map(str::to_owned).to_vec();
    let (one, two) = (|| Some(json!([1])), || Some(json!([1, 2])));
    match kind {
        Kind::Replace => vec![
            (None, append(&[json!(1)]), Ok(one())),
            (one(), set(json!("x")), Ok(Some(json!("x")))),
            (Some(json!({ "a": 1 })), merge(json!([2])), Ok(Some(json!([2])))),
            (Some(json!("x")), append(&[json!(1)]), Err(Against::NotAnArray)),
        ],
        Kind::Append => vec![
            (None, set(json!([1])), Ok(one())),
            (None, set(json!("x")), Err(Against::NotAnArray)),
            (one(), append(&[json!(2)]), Ok(two())),
            (one(), set(json!([1, 2])), Ok(two())),
            (one(), set(json!([1])), Ok(None)),
            (two(), set(json!([1])), Err(Against::Shrinks)),
            (two(), set(json!([1, 3, 4])), Err(Against::Shrinks)),
            (one(), merge(json!([])), Err(Against::NotMerged)),
            (one(), Change::Delete, Err(Against::NotDeleted)),
        ],
        Kind::Union => vec![
            (None, set(json!([1, 1])), Ok(one())),
            (one(), set(json!([2, 2, 1])), Ok(two())),
            (two(), append(&[json!(1)]), Ok(None)),
            (one(), set(json!(2)), Err(Against::NotAnArray)),
            (one(), merge(json!([])), Err(Against::NotMerged)),
            (one(), Change::Delete, Err(Against::NotDeleted)),
        ],
        Kind::Max => vec![
            (None, set(json!(-1)), Ok(Some(json!(-1)))),
            (Some(json!(1)), set(json!(1.5)), Ok(Some(json!(1.5)))),
            (Some(json!(2)), set(json!(1)), Ok(None)),
            (Some(json!(2)), set(json!(2)), Ok(None)),
            (Some(json!(u64::MAX - 1)), set(json!(u64::MAX)), Ok(Some(json!(u64::MAX)))),
            (Some(json!(1)), set(json!("2")), Err(Against::NotANumber)),
            (Some(json!(1)), append(&[json!(2)]), Err(Against::NotAppended)),
            (Some(json!(1)), merge(json!(2)), Err(Against::NotMerged)),
            (Some(json!(1)), Change::Delete, Err(Against::NotDeleted)),
        ],
        Kind::Once => vec![
            (None, set(json!("x")), Ok(Some(json!("x")))),
            // Also the same value: two who set it must not both believe they were first.
            (Some(json!("x")), set(json!("x")), Err(Against::AlreadySet)),
            (one(), append(&[json!(2)]), Err(Against::AlreadySet)),
            (one(), merge(json!({})), Err(Against::AlreadySet)),
            (one(), Change::Delete, Err(Against::AlreadySet)),
        ],
        Kind::Forward => vec![
            (None, set(json!("building")), Ok(Some(json!("building")))),
            (Some(json!("planned")), set(json!("done")), Ok(Some(json!("done")))),
            (Some(json!("done")), set(json!("done")), Ok(None)),
            (
                Some(json!("done")),
                set(json!("planned")),
                Err(Against::Backwards { from: "done".to_owned(), to: "planned".to_owned() }),
            ),
            (None, set(json!("lost")), Err(Against::NoStage { given: json!("lost"), stages })),
            (Some(json!("done")), append(&[json!(1)]), Err(Against::NotAppended)),
            (Some(json!("done")), merge(json!("x")), Err(Against::NotMerged)),
            (Some(json!("done")), Change::Delete, Err(Against::NotDeleted)),
        ],
    }
}

#[test]
fn every_rule_lets_a_value_change_only_its_own_way() {
    let kinds = [Kind::Replace, Kind::Append, Kind::Union, Kind::Max, Kind::Once, Kind::Forward];
    for kind in kinds {
        for (number, (there, asked, expected)) in rows(kind).into_iter().enumerate() {
            let mut world = World::with(["ann"]);
            if let Some(there) = &there {
                world.does("ann", "k", set(there.clone())).unwrap();
            }
            world.rules(&[("**", kind)]);
            let entries = world.journal.len();
            let what = format!("{kind} {number}: {there:?} {asked:?}");
            let answer = world.does("ann", "k", asked);
            match expected {
                Ok(Some(value)) => {
                    assert!(answer.unwrap().changed, "{what}");
                    assert_eq!(world.got(None, "k").unwrap().value, value, "{what}");
                }
                Ok(None) => {
                    assert!(!answer.unwrap().changed, "{what}");
                    assert_eq!(world.journal.len(), entries, "{what}: nothing happened");
                }
                Err(why) => assert_eq!(against(answer), why, "{what}"),
            }
            world.audit();
        }
    }
}

#[test]
fn an_append_to_a_long_list_is_one_item_in_the_journal() {
    let mut world = World::with(["ann"]);
    world.does("ann", "log", set(Json::Array(vec![json!("x".repeat(1_000)); 200]))).unwrap();
    world.does("ann", "log", append(&[json!("y")])).unwrap();
    assert!(world.journal.last().unwrap().body.len() < 1_000);
    let mut whole = world.got(None, "log").unwrap().value;
    world.rules(&[("log", Kind::Union)]);
    whole.as_array_mut().unwrap().push(json!("z"));
    world.does("ann", "log", set(whole)).unwrap();
    assert!(world.journal.last().unwrap().body.len() < 1_000);
    assert_eq!(world.got(None, "log").unwrap().value.as_array().unwrap().len(), 202);
    world.audit();
}

#[test]
fn the_last_rule_that_fits_wins() {
    let mut world = World::with(["ann"]);
    world.rules(&[("**", Kind::Once), ("free/*", Kind::Replace)]);
    for (text, again) in [("a", false), ("free/a", true), ("free/a/b", false)] {
        world.does("ann", text, set(json!(1))).unwrap();
        assert_eq!(world.does("ann", text, set(json!(2))).is_ok(), again, "{text}");
    }
}

#[test]
fn limits_are_refusals() {
    let mut world = World::with(["ann"]);
    let fits = json!("x".repeat(VALUE_BYTES_MAX - 2));
    world.does("ann", "k", set(fits.clone())).unwrap();
    let large = json!("x".repeat(VALUE_BYTES_MAX - 1));
    assert!(matches!(refused(world.does("ann", "k", set(large))), Refused::TooLarge { .. }));
    world.does("ann", "list", set(json!([]))).unwrap();
    let grown = refused(world.does("ann", "list", append(&[fits])));
    assert_eq!(grown.class(), Class::Usage, "also what an append would make of it");
    let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    world.does("ann", "k", set(nested(VALUE_DEPTH_MAX))).unwrap();
    let deep = refused(world.does("ann", "k", set(nested(VALUE_DEPTH_MAX + 1))));
    assert!(matches!(deep, Refused::TooDeep { .. }));
    world.audit();
}

#[test]
fn one_writer_where_the_policy_says_so() {
    let mut world = World::with(["ann", "bob"]);
    world.owned("plan/**", "session");
    world.does("ann", "plan/a", set(json!(1))).unwrap();
    let refused_to = refused(world.does("bob", "plan/a", set(json!(2))));
    let Refused::NotOwner { owner: Owner::Session, by: Some(by), .. } = refused_to else {
        panic!("{refused_to:?}")
    };
    assert_eq!(by.name, "ann");
    assert_eq!(world.got(Some("bob"), "plan/a").unwrap().value, json!(1), "all may read");
    world.does("bob", "plan/b", set(json!(2))).unwrap();
    // Within its grace the owner may come back; after that the next writer is the owner.
    world.end("ann", Some(Span::minutes(10))).unwrap();
    refused(world.does("bob", "plan/a", set(json!(2))));
    world.pass(Span::minutes(11));
    world.does("bob", "plan/a", set(json!(2))).unwrap();
    world.start("ann", "main");
    refused(world.does("ann", "plan/a", set(json!(3))));
    world.audit();
}

#[test]
fn a_role_writes_what_is_the_roles() {
    let mut world = World::with(["ann", "bob"]);
    world.owned("plan/**", "role:lead");
    let request = Start {
        name: Some("lea".to_owned()),
        client: None,
        client_session: None,
        continues: false,
        role: Some("lead".to_owned()),
        starter: None,
        process: None,
        host: "here".to_owned(),
        tree: baton_core::id::TreeId("main".to_owned()),
        ttl: sessions::TTL_DEFAULT,
        secret_hash: "secret of lea".to_owned(),
    };
    let context = world.context(None);
    let lea = world
        .decide(context, |view, context| sessions::start(view, &request, context))
        .unwrap()
        .session;
    let mut context = world.context(Some("ann"));
    context.actor.session = Some(lea);
    context.actor.proof = baton_core::context::Proof::Secret("secret of lea".to_owned());
    let wanted = ask("plan/a", set(json!(1)));
    world.decide(context, |view, context| state::write(view, &wanted, context)).unwrap();
    let foreign = refused(world.does("ann", "plan/a", set(json!(2))));
    assert!(matches!(foreign, Refused::NotOwner { owner: Owner::Role(_), by: None, .. }));
    world.does("ann", "other", set(json!(2))).unwrap();
}

#[test]
fn a_draft_is_seen_by_its_writer_until_all_are_published() {
    let mut world = World::with(["ann", "bob"]);
    world.does("bob", "a", set(json!(0))).unwrap();
    let mut draft = ask("a", set(json!([1])));
    draft.draft = true;
    let written = world.writes("ann", &draft).unwrap();
    assert!(written.draft && written.version == 1);
    draft.write.change = append(&[json!(2)]);
    world.writes("ann", &draft).unwrap();
    let mut other = ask("b", set(json!("new")));
    other.draft = true;
    world.writes("ann", &other).unwrap();
    let mine = world.got(Some("ann"), "a").unwrap();
    assert!(mine.draft && mine.value == json!([1, 2]));
    for who in [Some("bob"), None] {
        assert_eq!(world.got(who, "a").unwrap().value, json!(0));
        refused(world.got(who, "b"));
    }
    let mut context = world.context(Some("ann"));
    context.actor.proof = baton_core::context::Proof::Secret("guessed".to_owned());
    let seen = state::get_value(&world.store, &key("a"), false, &context).unwrap();
    assert_eq!(seen.value, json!(0), "S19: an id alone shows no draft");
    let published = world.publish("ann", &[]).unwrap();
    let versions: Vec<u64> = published.published.iter().map(|one| one.version).collect();
    assert_eq!(versions, [2, 1]);
    assert_eq!(world.got(Some("bob"), "a").unwrap().value, json!([1, 2]));
    assert!(matches!(refused(world.publish("ann", &[])), Refused::NoDraft { key: None }));
    world.audit();
}

#[test]
fn a_conflict_publishes_nothing() {
    let mut world = World::with(["ann", "bob"]);
    world.does("bob", "read", set(json!(0))).unwrap();
    for (text, reads) in [("a", vec![]), ("b", vec![Read { key: key("read"), version: 1 }])] {
        let mut draft = ask(text, set(json!(1)));
        (draft.draft, draft.reads) = (true, reads);
        world.writes("ann", &draft).unwrap();
    }
    world.does("bob", "read", set(json!(1))).unwrap();
    let entries = world.journal.len();
    let conflict = refused(world.publish("ann", &[]));
    assert_eq!(conflict.code(), "stale_read");
    assert_eq!(world.journal.len(), entries, "nothing is published");
    world.publish("ann", &[key("a")]).unwrap();
    world.discard("ann", &[key("b")]).unwrap();
    world.does("bob", "c", set(json!(1))).unwrap();
    let mut draft = ask("c", set(json!(2)));
    draft.draft = true;
    world.writes("ann", &draft).unwrap();
    world.does("bob", "c", set(json!(3))).unwrap();
    assert_eq!(refused(world.publish("ann", &[])).code(), "stale_version");
    assert_eq!(world.got(None, "c").unwrap().value, json!(3));
    world.end("ann", None).unwrap();
    let left = drafts::of_session(&world.id("ann"), 10);
    let left = baton_core::view::View::read(&world.store, &[left]).unwrap();
    assert!(left[0].is_empty(), "drafts end with their session");
    world.audit();
}

#[test]
fn a_draft_that_was_deleted_before_anyone_saw_it_is_gone() {
    let mut world = World::with(["ann"]);
    let mut draft = ask("k", set(json!(1)));
    draft.draft = true;
    world.writes("ann", &draft).unwrap();
    draft.write.change = Change::Delete;
    world.writes("ann", &draft).unwrap();
    assert!(matches!(refused(world.publish("ann", &[])), Refused::NoDraft { .. }));
    world.audit();
}

#[test]
fn drafts_nobody_comes_back_for_are_cleared_away() {
    let mut world = World::with(["ann", "bob"]);
    let draft = |text| Request { draft: true, ..ask(text, set(json!(1))) };
    world.writes("ann", &draft("a")).unwrap();
    world.end("ann", Some(Span::minutes(10))).unwrap();
    let left = |world: &World| {
        let mine = drafts::of_session(&world.id("ann"), 10);
        baton_core::view::View::read(&world.store, &[mine]).unwrap()[0].len()
    };
    world.writes("bob", &draft("b")).unwrap();
    assert_eq!(left(&world), 1, "within its grace it may come back");
    world.pass(Span::minutes(11));
    world.writes("bob", &draft("c")).unwrap();
    assert_eq!(left(&world), 0);
    assert_eq!(world.publish("bob", &[]).unwrap().published.len(), 2);
    world.audit();
}

#[test]
fn a_set_along_with_something_else_is_read_from_one_word() {
    let write: Write = "a/b={\"x=y\": 1}".parse().unwrap();
    assert_eq!(write.change, set(json!({ "x=y": 1 })));
    for text in ["a", "=1", "a b=1", "a=word", "a=", ""] {
        assert!(text.parse::<Write>().is_err(), "{text}");
    }
}

#[test]
fn another_decision_sets_values_in_its_own_transaction() {
    let mut world = World::with(["ann"]);
    world.does("ann", "taken", set(json!(1))).unwrap();
    let writes = |if_version| {
        [("x", None), ("x", None), ("taken", if_version)].map(|(text, if_version)| Write {
            key: key(text),
            change: set(json!(text)),
            if_version,
        })
    };
    let mut accept = |if_version| {
        let context = world.context(Some("ann"));
        world.decide(context, |view, context| {
            let caller = baton_core::scene::Caller::read(view, context)?;
            let writer = Writer::of(&caller, context);
            let mut events = vec![Event::WorkspaceMade { workspace: "w".to_owned() }];
            let first = context.next.after(1);
            let written =
                state::write_all(view, &writer, &writes(if_version), &[], first, context)?;
            events.extend(written.0);
            Ok((events, written.1))
        })
    };
    assert_eq!(refused(accept(Some(0))).code(), "stale_version");
    let versions: Vec<u64> = accept(None).unwrap().iter().map(|one| one.version).collect();
    assert_eq!(versions, [1, 2, 2], "the second write of one key sees the first");
    assert_eq!(world.got(None, "x").unwrap().version, 2);
    positions_are_true(&world);
    world.audit();
}

/// The record of every key says where the journal has its changes.
pub(crate) fn positions_are_true(world: &World) {
    for entry in &world.journal {
        let Event::StateChanged { changed } = entry.event().unwrap() else { continue };
        assert_eq!(changed.position, entry.position);
        let state: State = get(&world.store, changed.key.as_str()).unwrap().unwrap();
        let back = usize::try_from(state.version - changed.version).unwrap();
        let place = state.past.len().checked_sub(1 + back);
        let known = place.map(|place| state.past[place]);
        assert_eq!(known, (back < HISTORY_MAX).then_some(entry.position));
    }
}

#[test]
fn the_past_of_a_key_is_bounded() {
    let mut world = World::with(["ann"]);
    for number in 0..HISTORY_MAX + 5 {
        world.does("ann", "k", set(json!(number))).unwrap();
    }
    positions_are_true(&world);
}

#[test]
fn a_missing_key_is_answered_with_near_ones() {
    let mut world = World::with(["ann"]);
    for text in ["build/status", "build/statistics", "deploy/status"] {
        world.does("ann", text, set(json!(1))).unwrap();
    }
    let Refused::Unknown { near, .. } = refused(world.got(None, "build/statu")) else { panic!() };
    assert_eq!(near[0], key("build/status"));
    let Refused::Unknown { near, .. } = refused(world.got(None, "duplo/status")) else { panic!() };
    assert_eq!(near[0], key("deploy/status"));
}

#[test]
fn lists_page_through_and_say_when_there_is_more() {
    let mut world = World::with(["ann"]);
    for number in 0..70 {
        world.does("ann", &format!("many/{number:02}"), set(json!(number))).unwrap();
    }
    world.does("ann", "manyfold", set(json!(0))).unwrap();
    let mut draft = ask("many/00", set(json!("mine")));
    draft.draft = true;
    world.writes("ann", &draft).unwrap();
    let context = world.context(Some("ann"));
    let list = |pattern: Option<&str>, limit| {
        let pattern = pattern.map(|text| text.parse().unwrap());
        state::list(&world.store, pattern.as_ref(), limit, &context).unwrap()
    };
    let all = list(Some("many"), 1_000);
    assert_eq!((all.keys.len(), all.more), (71, false));
    assert!(all.keys[1].draft && all.keys[1].preview == "\"mine\"");
    assert_eq!(list(Some("many/*9"), 1_000).keys.len(), 7);
    assert!(list(Some("many/**"), 40).more);
    assert_eq!(list(None, 1_000).keys.len(), 72);
}
