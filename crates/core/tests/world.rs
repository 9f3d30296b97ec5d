//! A world for the rules: records in memory, a journal, a clock, and callers known by name.
//!
//! Every decision goes through an [`Overlay`] as in the engine, and its changes are compared with
//! evolving the same events directly. A test tells a story: who claims what, what time passes, who
//! dies; `audit` then checks that the journal rebuilds the records (S14).

use std::collections::{BTreeMap, BTreeSet};

use baton_core::calls::{self, Called};
use baton_core::check::{self, Checked};
use baton_core::claim::{Claim, Mode, Scope};
use baton_core::claims::letting_go::{self, Asked, Released, Renewed, Revoked, Target, Which};
use baton_core::claims::{self, Answer, Granted, Queued, Request};
use baton_core::consequences;
use baton_core::context::{Actor, Context, Life, Observed, Proof, Sighting};
use baton_core::event::{EndOfWait, Event};
use baton_core::evolve::evolve;
use baton_core::id::{ClaimId, Fresh, Position, SessionId, Token, TreeId};
use baton_core::journal::{self, Entry, Head};
use baton_core::memory::Memory;
use baton_core::overlay::Overlay;
use baton_core::refusal::{Held, Refusal};
use baton_core::resource::Resource;
use baton_core::sessions::{self, Ended, Process, Session, Start, Started};
use baton_core::time::{Moment, Span};
use baton_core::view::{Record, Records, Row, View, parse};
use baton_core::waiting::{self, Waiter};
use baton_core::zones::{Policy, Rule, Zone};

pub(crate) const START: Moment = Moment(1_000_000_000_000);

pub(crate) fn resource(text: &str) -> Resource {
    Resource::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

pub(crate) fn resources<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Resource> {
    texts.into_iter().map(resource).collect()
}

/// A session or one of its subagents: `alice`, `alice/helper`.
fn parts(who: &str) -> (&str, Option<&str>) {
    who.split_once('/').map_or((who, None), |(session, agent)| (session, Some(agent)))
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) store: Memory,
    pub(crate) journal: Vec<Entry>,
    pub(crate) now: Moment,
    pub(crate) failed_over_at: Option<Moment>,
    /// How the holders of run-out claims look from here; unknown when not said.
    pub(crate) looks: BTreeMap<String, Life>,
    /// Uncommitted changes, by the session that made them.
    pub(crate) dirty: BTreeMap<String, Vec<Resource>>,
    pub(crate) locks: Vec<baton_core::context::ForeignLock>,
    /// Requests in the queue, by who waits.
    pub(crate) pending: BTreeMap<String, Request>,
    sessions: BTreeMap<String, SessionId>,
    epoch: u32,
    raise: bool,
    decisions: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            store: Memory::default(),
            journal: Vec::new(),
            now: START,
            failed_over_at: None,
            looks: BTreeMap::new(),
            dirty: BTreeMap::new(),
            locks: Vec::new(),
            pending: BTreeMap::new(),
            sessions: BTreeMap::new(),
            epoch: 1,
            raise: false,
            decisions: 0,
        }
    }

    /// A world with these sessions, each in the tree `main`.
    pub(crate) fn with<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut world = Self::new();
        for name in names {
            world.start(name, "main");
        }
        world
    }

    pub(crate) fn policy(&mut self, zones: &[(&str, Rule)], capacities: &[(&str, u32)]) {
        let zone = |(path, policy): &(&str, Rule)| Zone {
            paths: resources(path.split(' ')),
            policy: *policy,
        };
        let policy = Policy {
            zones: zones.iter().map(zone).collect(),
            capacities: capacities.iter().map(|(name, many)| ((*name).to_owned(), *many)).collect(),
            approved_at: self.now,
            ..Policy::default()
        };
        self.put_policy(policy);
    }

    pub(crate) fn put_policy(&mut self, policy: Policy) {
        let context = self.context(None);
        let event = Event::PolicySet { policy };
        self.decide(context, |_, _| Ok((vec![event.clone()], ()))).unwrap();
    }

    pub(crate) fn pass(&mut self, span: Span) {
        self.now = self.now + span;
    }

    /// The next entry begins a new epoch: entries may have been lost.
    pub(crate) fn raise_epoch(&mut self) {
        self.raise = true;
    }

    pub(crate) fn id(&self, who: &str) -> SessionId {
        self.sessions[parts(who).0].clone()
    }

    fn head(&self) -> Head {
        self.journal.last().map_or_else(Head::start, Entry::head)
    }

    fn fresh(&mut self) -> Fresh {
        self.decisions += 1;
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.decisions.to_le_bytes());
        Fresh(seed)
    }

    /// What the next decision of `who` knows. Position and sightings follow in `decide`.
    pub(crate) fn context(&mut self, who: Option<&str>) -> Context {
        let actor = who.map_or_else(Actor::default, |who| {
            let (name, agent) = parts(who);
            let session = self.sessions.get(name).cloned();
            Actor {
                proof: Proof::Secret(format!("secret of {name}")),
                session,
                agent: agent.map(str::to_owned),
                ..Actor::default()
            }
        });
        Context {
            now: self.now,
            next: Position::START,
            fresh: self.fresh(),
            actor,
            observed: Observed { foreign_locks: self.locks.clone(), ..Observed::default() },
            failed_over_at: self.failed_over_at,
        }
    }

    pub(crate) fn person(&mut self) -> Context {
        let mut context = self.context(None);
        context.actor.person = true;
        context
    }

    /// Decides as the engine does: when the rule must know how holders look, it looks and asks
    /// again; then the events are written, or nothing is.
    pub(crate) fn decide<T>(
        &mut self,
        mut context: Context,
        rule: impl Fn(&dyn View, &Context) -> Result<(Vec<Event>, T), Refusal>,
    ) -> Result<T, Refusal> {
        let head = self.head();
        let epoch = self.epoch + u32::from(self.raise);
        let first = Position { epoch, number: head.position.number + 1 };
        context.next = first.after(u64::from(self.raise));
        self.see_dirty(&mut context);
        let (mut events, answer) = match rule(&self.store, &context) {
            Err(Refusal::Unobserved { claims }) => {
                self.look_at(&claims, &mut context);
                context.observed.complete = true;
                rule(&self.store, &context)?
            }
            other => other?,
        };
        consequences::add(&self.store, &mut events, &context)?;
        let why = "the power was cut".to_owned();
        let raised = self.raise.then_some(Event::EpochRaised { why });
        let actor = context.actor.session.map(|session| session.0).unwrap_or_default();
        let all: Vec<Event> = raised.into_iter().chain(events).collect();
        if !all.is_empty() {
            self.write(&all, epoch, &actor);
        }
        Ok(answer)
    }

    fn write(&mut self, events: &[Event], epoch: u32, actor: &str) {
        let mut direct = self.store.clone();
        let mut overlay = Overlay::new(&self.store);
        for event in events {
            let head = self.journal.last().map_or_else(Head::start, Entry::head);
            let position = Position { epoch, number: head.position.number + 1 };
            self.journal.push(Entry::next(&head, position, self.now, actor, event));
            evolve(&mut overlay, event).unwrap();
            evolve(&mut direct, event).unwrap();
        }
        let changes = overlay.into_changes().unwrap();
        let index = |store: &Memory| -> BTreeSet<_> { store.index().cloned().collect() };
        let (old, new) = (index(&self.store), index(&direct));
        let (mut removed, mut added) = (BTreeSet::new(), BTreeSet::new());
        for change in changes {
            let (kind, key) = (change.kind, change.key);
            let entry = |(index, value)| (index, value, kind, key.clone());
            removed.extend(change.index_removed.into_iter().map(entry));
            added.extend(change.index_added.into_iter().map(entry));
            match change.put {
                None => self.store.delete(kind, &key).unwrap(),
                Some((version, body)) => {
                    self.store.restore(Row { kind, key, version, body }).unwrap();
                }
            }
        }
        let only = |here: &BTreeSet<_>, there| -> BTreeSet<_> {
            here.difference(there).cloned().collect()
        };
        assert_eq!(removed, only(&old, &new), "an overlay removes the wrong index entries");
        assert_eq!(added, only(&new, &old), "an overlay adds the wrong index entries");
        assert_eq!(self.store, direct, "an overlay and memory evolve differently");
        self.epoch = epoch;
        self.raise = false;
    }

    /// The engine knows the uncommitted changes of sessions that end something themselves.
    fn see_dirty(&self, context: &mut Context) {
        if self.dirty.is_empty() {
            return;
        }
        let dirty: Vec<ClaimId> = self
            .claims()
            .into_iter()
            .filter(|claim| !self.dirt(claim).is_empty())
            .map(|claim| claim.claim)
            .collect();
        self.look_at(&dirty, context);
    }

    fn look_at(&self, claims: &[ClaimId], context: &mut Context) {
        for claim in self.claims().into_iter().filter(|claim| claims.contains(&claim.claim)) {
            let name = self.name_of(&claim.hold.holder.session);
            let life = self.looks.get(&name).copied().unwrap_or(Life::Unknown);
            let dirty = self.dirt(&claim);
            let rescue = (!dirty.is_empty()).then(|| format!("refs/baton/rescue/{}", claim.claim));
            context.observed.claims.insert(claim.claim, Sighting { life, dirty, rescue });
        }
    }

    fn dirt(&self, claim: &Claim) -> Vec<Resource> {
        let dirty = self.dirty.get(&self.name_of(&claim.hold.holder.session));
        let held = |path: &&Resource| claim.hold.resources.iter().any(|held| held.overlaps(path));
        dirty.into_iter().flatten().filter(held).cloned().collect()
    }

    pub(crate) fn name_of(&self, id: &SessionId) -> String {
        let named = self.sessions.iter().find(|(_, known)| *known == id);
        named.map(|(name, _)| name.clone()).unwrap_or_default()
    }

    pub(crate) fn records<R: Record>(&self) -> Vec<R> {
        let rows = self.store.rows().filter(|row| row.kind == R::KIND);
        rows.map(|row| parse(&row.body).unwrap()).collect()
    }

    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.records()
    }

    pub(crate) fn claims_of(&self, who: &str) -> Vec<Claim> {
        let id = self.id(who);
        self.claims().into_iter().filter(|claim| claim.hold.holder.session == id).collect()
    }

    pub(crate) fn waiters(&self) -> Vec<Waiter> {
        self.records()
    }

    pub(crate) fn session(&self, who: &str) -> Session {
        let id = self.id(who);
        self.records().into_iter().find(|session: &Session| session.session == id).unwrap()
    }

    /// The events since entry `from`, in order.
    pub(crate) fn events_since(&self, from: usize) -> Vec<Event> {
        self.journal[from..].iter().map(|entry| entry.event().unwrap()).collect()
    }

    /// S14 and S5: the chain holds, the journal rebuilds the records, tokens only rise.
    pub(crate) fn audit(&self) {
        let mut rebuilt = Memory::default();
        let mut head = Head::start();
        let mut highest: Option<Token> = None;
        for entry in &self.journal {
            journal::follows(&head, entry).unwrap();
            head = entry.head();
            let event = entry.event().unwrap();
            if let Event::ClaimGranted { claim } = &event {
                assert_eq!(claim.token, entry.position, "a token is a place in the journal");
                assert!(highest.is_none_or(|highest| highest < claim.token), "tokens rise (S5)");
                highest = Some(claim.token);
            }
            evolve(&mut rebuilt, &event).unwrap();
        }
        assert_eq!(rebuilt, self.store, "the journal rebuilds other records (S14)");
        assert_eq!(rebuilt.hash(), self.store.hash());
    }
}

/// What callers do.
impl World {
    pub(crate) fn start(&mut self, name: &str, tree: &str) -> Started {
        self.begin(name, tree, Some(&format!("client of {name}")))
    }

    pub(crate) fn begin(
        &mut self,
        name: &str,
        tree: &str,
        client_session: Option<&str>,
    ) -> Started {
        self.begin_as(name, tree, client_session, (None, process(name)))
    }

    pub(crate) fn start_as(&mut self, name: &str, tree: &str, process: Process) -> Started {
        self.begin_as(name, tree, Some(&format!("client of {name}")), (None, process))
    }

    pub(crate) fn begin_as(
        &mut self,
        name: &str,
        tree: &str,
        client_session: Option<&str>,
        as_whom: (Option<&str>, Process),
    ) -> Started {
        let request = Start {
            name: Some(name.to_owned()),
            client: Some("test".to_owned()),
            client_session: client_session.map(str::to_owned),
            continues: false,
            role: as_whom.0.map(str::to_owned),
            starter: None,
            process: Some(as_whom.1),
            host: "here".to_owned(),
            tree: TreeId(tree.to_owned()),
            ttl: sessions::TTL_DEFAULT,
            secret_hash: format!("secret of {name}"),
        };
        let context = self.context(None);
        let started =
            self.decide(context, |view, context| sessions::start(view, &request, context)).unwrap();
        self.sessions.insert(name.to_owned(), started.session.clone());
        started
    }

    pub(crate) fn end(&mut self, who: &str, grace: Option<Span>) -> Result<Ended, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| sessions::end(view, None, grace, context))
    }

    pub(crate) fn dies(&mut self, who: &str) -> bool {
        let (id, seen) = (self.id(who), process(who));
        let context = self.context(None);
        self.decide(context, |view, context| sessions::died(view, &id, &seen, context)).unwrap()
    }

    pub(crate) fn acts(&mut self, who: &str) -> sessions::Active {
        let context = self.context(Some(who));
        self.decide(context, sessions::active).unwrap()
    }

    /// A tool call of this length begins.
    pub(crate) fn call(&mut self, who: &str, call: &str, limit: Span) -> Result<Called, Refusal> {
        let request = calls::Start { call: call.to_owned(), limit, process: None };
        let context = self.context(Some(who));
        self.decide(context, |view, context| calls::start(view, &request, context))
    }

    pub(crate) fn call_ends(&mut self, who: &str, call: &str) -> Called {
        let which = calls::Which::One(call.to_owned());
        let context = self.context(Some(who));
        self.decide(context, |view, context| calls::end(view, &which, context)).unwrap()
    }

    pub(crate) fn claim<'a>(
        &mut self,
        who: &str,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Asking<'_> {
        let request = Request::of(resources(texts));
        Asking { world: self, who: who.to_owned(), request }
    }

    pub(crate) fn take(&mut self, who: &str, request: &Request) -> Result<Answer, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| claims::take(view, request, context))
    }

    /// A waiter looks again; one that is refused gives up its place, as the engine does.
    pub(crate) fn look(&mut self, who: &str) -> Result<Answer, Refusal> {
        let request = self.pending[who].clone();
        let answer = self.take(who, &request);
        match &answer {
            Ok(Answer::Queued(queued)) => {
                let waiter = Some(queued.waiter.clone());
                self.pending.insert(who.to_owned(), Request { waiter, ..request });
            }
            Ok(Answer::Granted(_)) => {
                self.pending.remove(who);
            }
            Err(_) => self.withdraw(who),
        }
        answer
    }

    pub(crate) fn withdraw(&mut self, who: &str) {
        let waiter = self.pending.remove(who).and_then(|request| request.waiter).unwrap();
        let context = self.context(Some(who));
        let why = EndOfWait::Withdrawn;
        self.decide(context, |view, _| waiting::withdraw(view, &waiter, why.clone())).unwrap();
    }

    pub(crate) fn release<'a>(
        &mut self,
        who: &str,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Released, Refusal> {
        let named = Which::Resources(resources(texts));
        self.let_go(who, &named, None)
    }

    pub(crate) fn let_go(
        &mut self,
        who: &str,
        which: &Which,
        token: Option<Token>,
    ) -> Result<Released, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| letting_go::release(view, which, None, token, context))
    }

    pub(crate) fn renew(&mut self, who: &str, which: &Which) -> Result<Renewed, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| letting_go::renew(view, which, None, context))
    }

    pub(crate) fn ask(&mut self, who: &str, text: &str) -> Result<Asked, Refusal> {
        let wanted = [resource(text)];
        let context = self.context(Some(who));
        self.decide(context, |view, context| letting_go::ask(view, &wanted, "please", context))
    }

    pub(crate) fn revoke(&mut self, target: &Target) -> Result<Revoked, Refusal> {
        let context = self.person();
        self.decide(context, |view, context| letting_go::revoke(view, target, "why not", context))
    }

    pub(crate) fn settle(&mut self, claim: &ClaimId) {
        let seen = self.claims().into_iter().find(|one| one.claim == *claim).unwrap();
        self.settle_seen(&seen);
    }

    /// The claim is settled if it still is as it was seen.
    pub(crate) fn settle_seen(&mut self, seen: &Claim) -> bool {
        let context = self.context(None);
        self.decide(context, |view, context| letting_go::settled(view, seen, context)).unwrap()
    }

    pub(crate) fn check(
        &mut self,
        who: &str,
        text: &str,
        token: Option<Token>,
    ) -> Result<Checked, Refusal> {
        let wanted = [resource(text)];
        let context = self.context(Some(who));
        self.decide(context, |view, context| {
            Ok((Vec::new(), check::check(view, &wanted, token, context)?))
        })
    }
}

pub(crate) fn process(name: &str) -> Process {
    Process {
        host: "here".to_owned(),
        boot: "boot".to_owned(),
        namespace: 1,
        pid: name.bytes().fold(7, |sum, byte| sum * 31 + u32::from(byte)) % 30_000,
        start: 1,
    }
}

/// A claim about to be asked for.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    world: &'a mut World,
    who: String,
    request: Request,
}

impl Asking<'_> {
    pub(crate) fn shared(mut self) -> Self {
        self.request.mode = Mode::Shared;
        self
    }

    /// As a hook claims it: against sessions of the same tree.
    pub(crate) fn in_tree(mut self) -> Self {
        self.request.scope = Scope::Tree;
        self
    }

    pub(crate) fn ttl(mut self, ttl: Span) -> Self {
        self.request.ttl = ttl;
        self
    }

    pub(crate) fn wait(mut self, wait: Span) -> Self {
        self.request.wait = Some(wait);
        self
    }

    pub(crate) fn priority(mut self, priority: u8) -> Self {
        self.request.priority = priority;
        self
    }

    pub(crate) fn into_request(self) -> Request {
        self.request
    }

    pub(crate) fn answer(self) -> Result<Answer, Refusal> {
        let Self { world, who, mut request } = self;
        let answer = world.take(&who, &request)?;
        if let Answer::Queued(queued) = &answer {
            request.waiter = Some(queued.waiter.clone());
            world.pending.insert(who, request);
        }
        Ok(answer)
    }

    pub(crate) fn granted(self) -> Granted {
        granted(self.answer())
    }

    pub(crate) fn queued(self) -> Queued {
        match self.answer() {
            Ok(Answer::Queued(queued)) => *queued,
            other => panic!("should wait, but {other:?}"),
        }
    }

    pub(crate) fn refused(self) -> Refusal {
        match self.answer() {
            Err(refusal) => refusal,
            other => panic!("should be refused, but {other:?}"),
        }
    }

    /// Who is in the way.
    pub(crate) fn held(self) -> Held {
        match self.refused() {
            Refusal::Held(held) => *held,
            other => panic!("should be held, but {other:?}"),
        }
    }
}

pub(crate) fn granted(answer: Result<Answer, Refusal>) -> Granted {
    match answer {
        Ok(Answer::Granted(granted)) => *granted,
        other => panic!("should be granted, but {other:?}"),
    }
}
