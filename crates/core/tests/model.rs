//! Random stories, judged after every step by the naive rules (S1–S5, S8–S10, S14).
//!
//! The naive rules say whether an act should succeed; a ledger remembers every promise that was
//! made and finds one that is broken; at the end everyone who waits must be served, and the journal
//! must rebuild the records. `PROPTEST_CASES` sets how many stories are told.

use std::collections::BTreeMap;

use baton_core::check::{Because, Verdict};
use baton_core::claim::{Claim, Hold, Holder, Mode, Scope};
use baton_core::claims::letting_go::{Target, Which};
use baton_core::claims::{Answer, Granted, Request};
use baton_core::id::{ClaimId, SessionId, Token};
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::sessions;
use baton_core::subagents;
use baton_core::time::{Moment, Span};
use baton_core::view::View;
use proptest::prelude::*;
use proptest_state_machine::{StateMachineTest, prop_state_machine};

use crate::naive::{self, Plain, Things};
use crate::story::{Act, SESSIONS, Story, Terms};
use crate::world::{World, resource, resources};

prop_state_machine! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn s1_to_s14_random_stories_keep_every_promise(sequential 1..60 => Story);
}

/// What a holder was told and may rely on.
#[derive(Clone, Debug)]
struct Promise {
    session: SessionId,
    token: Token,
    resources: Vec<Resource>,
    until: Moment,
}

#[derive(Debug)]
pub(crate) struct Told {
    world: World,
    promises: BTreeMap<ClaimId, Promise>,
    /// Every token that was ever given out, by caller, with a path it was for.
    tokens: BTreeMap<&'static str, Vec<(Token, String)>>,
}

impl StateMachineTest for Story {
    type SystemUnderTest = Told;
    type Reference = Self;

    fn init_test((): &()) -> Told {
        let mut world = World::new();
        world.policy(naive::ZONES, naive::CAPACITIES);
        for (name, tree) in SESSIONS {
            world.start(name, tree);
        }
        Told { world, promises: BTreeMap::new(), tokens: BTreeMap::new() }
    }

    fn apply(mut told: Told, (): &(), act: Act) -> Told {
        told.step(act);
        naive::assert_nobody_clashes(&told.world);
        told.assert_promises_kept();
        told.assert_zones_whole();
        told
    }

    fn teardown(mut told: Told, (): ()) {
        told.assert_everyone_is_served();
        naive::assert_nobody_clashes(&told.world);
        told.world.audit();
    }
}

impl Told {
    fn step(&mut self, act: Act) {
        match act {
            Act::Claim { who, asked, terms } => self.claim(who, &asked, terms),
            Act::Look { who } => self.look(who),
            Act::Release { who, text } => self.release(who, text),
            Act::ReleaseAll { who } => {
                if self.is_there(who) {
                    let mut gone = self.own(who);
                    let kept = |claim: &Claim| {
                        !who.contains('/')
                            && claim.hold.holder.agent.is_some()
                            && naive::is_live(claim, &self.world)
                    };
                    gone.retain(|claim| !kept(claim));
                    self.world.let_go(who, &Which::All, None).unwrap();
                    self.forget(&gone);
                }
            }
            Act::Renew { who } => self.renew(who),
            Act::Active { who } => {
                if self.is_there(who) {
                    self.world.acts(who);
                    self.assert_half_a_lease_left(who);
                }
            }
            Act::Check { who, text, token } => self.check(who, text, token),
            Act::Ask { who, text } => drop(self.world.ask(who, text)),
            Act::Revoke { text } => self.revoke(&Target::Resources(vec![resource(text)])),
            Act::RevokeAll { session } => {
                self.revoke(&Target::Session(self.world.id(session)));
            }
            Act::Settle { claim } => self.settle(claim),
            Act::Call { who, call, limit } => self.call(who, call, limit),
            Act::CallEnd { who, call } => self.call_end(who, call),
            Act::AgentStop { who } => self.agent_stop(who),
            Act::Pass { millis } => self.world.pass(Span(millis)),
            Act::End { session, grace } => self.end(session, grace),
            Act::Return { session } => {
                let (name, tree) = SESSIONS[session];
                self.world.start(name, tree);
            }
            Act::Die { session } => {
                let own = self.own(session);
                if self.world.dies(session) {
                    self.forget(&own);
                }
            }
            Act::Appear { session, life, dirty } => {
                self.world.looks.insert(session.to_owned(), life);
                self.world.dirty.insert(session.to_owned(), resources(dirty));
            }
            Act::RaiseEpoch => self.world.raise_epoch(),
            Act::FailOver => self.world.failed_over_at = Some(self.world.now),
        }
    }

    /// Its tokens are good for its session from then on, and for no one else.
    fn agent_stop(&mut self, who: &'static str) {
        let Some((name, agent)) = who.split_once('/').filter(|_| self.is_there(who)) else {
            return;
        };
        let context = self.world.context(Some(name));
        let stop = |view: &dyn View, context: &_| subagents::stop(view, agent, context);
        self.world.decide(context, stop).unwrap();
        let passed = self.tokens.remove(who).unwrap_or_default();
        let session = SESSIONS.iter().find(|(session, _)| *session == name).unwrap().0;
        self.tokens.entry(session).or_default().extend(passed);
    }

    fn is_there(&self, who: &str) -> bool {
        self.world.session(who).life == sessions::Life::Live
    }

    /// The claims a caller may let go of: a subagent's own, or all of the session's.
    fn own(&self, who: &str) -> Vec<Claim> {
        let agent = who.split_once('/').map(|(_, agent)| agent);
        let mut own = self.world.claims_of(who);
        own.retain(|claim| agent.is_none() || claim.hold.holder.agent.as_deref() == agent);
        own
    }

    fn forget(&mut self, claims: &[Claim]) {
        for claim in claims {
            self.promises.remove(&claim.claim);
        }
    }

    fn hold(&self, who: &str, request: &Request) -> Hold {
        let agent = who.split_once('/').map(|(_, agent)| agent.to_owned());
        let session = self.world.session(who);
        Hold {
            holder: Holder { session: session.session, name: session.name, agent },
            tree: session.tree,
            scope: request.scope,
            mode: request.mode,
            resources: request.resources.clone(),
        }
    }

    fn claim(&mut self, who: &'static str, asked: &[&'static str], terms: Terms) {
        if self.world.pending.contains_key(who) {
            return self.look(who);
        }
        let request = Request {
            resources: resources(asked.iter().copied()),
            mode: if terms.shared { Mode::Shared } else { Mode::Exclusive },
            scope: if terms.wide { Scope::Workspace } else { Scope::Tree },
            ttl: terms.ttl,
            priority: terms.priority,
            reason: None,
            task: None,
            wait: terms.wait,
            waiter: None,
            process: None,
        };
        let hold = self.hold(who, &request);
        let wanted = Plain::of(&hold);
        let obstacles = naive::obstacles(&self.world, &wanted, None, terms.priority);
        let entries = self.world.journal.len();
        let known = self.live_twin(&hold);
        let answer = self.world.take(who, &request);
        if !self.is_there(who) {
            assert!(matches!(answer, Err(Refusal::SessionEnded { .. })), "{answer:?}");
            return;
        }
        let over = |(name, asked): (&String, &u32)| {
            naive::capacity(name).is_some_and(|capacity| *asked > capacity)
        };
        if wanted.things.names.iter().any(over) {
            assert!(matches!(answer, Err(Refusal::OverCapacity { .. })), "{answer:?}");
            return;
        }
        match answer {
            Ok(Answer::Granted(granted)) => {
                assert!(known.is_none_or(|token| token == granted.token), "the token changed");
                self.granted(who, &wanted, &granted, &obstacles, &request);
            }
            Ok(Answer::Queued(queued)) => {
                assert!(!obstacles.is_empty(), "it was free, yet {queued:?}");
                assert!(terms.wait.is_some());
                assert!(!naive::goes_round(&self.world, &wanted, true), "a circle was let in");
                let waiter = Some(queued.waiter);
                self.world.pending.insert(who.to_owned(), Request { waiter, ..request });
            }
            Err(refusal) => {
                assert_eq!(self.world.journal.len(), entries, "a refusal writes nothing (S3)");
                assert!(!obstacles.is_empty(), "it was free, yet {refusal:?}");
                self.assert_refusal(&refusal, &wanted, terms.wait.is_some());
            }
        }
    }

    /// The token of a live claim of exactly this, if that is all the caller has.
    fn live_twin(&self, hold: &Hold) -> Option<Token> {
        let own = self.world.claims_of(&self.world.name_of(&hold.holder.session));
        match &own[..] {
            [only] if only.hold == *hold && naive::is_live(only, &self.world) => Some(only.token),
            _ => None,
        }
    }

    fn assert_refusal(&self, refusal: &Refusal, wanted: &Plain, waits: bool) {
        match refusal {
            Refusal::Held(_) => assert!(!waits, "it wanted to wait"),
            Refusal::Cycle { .. } => {
                assert!(naive::goes_round(&self.world, wanted, false), "no circle: {refusal:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    fn granted(
        &mut self,
        who: &'static str,
        wanted: &Plain,
        granted: &Granted,
        obstacles: &[String],
        request: &Request,
    ) {
        let now = self.world.now;
        let all: Vec<_> = granted.resources.iter().chain(&granted.zones).cloned().collect();
        let things = Things::of(&all);
        if granted.already_held {
            let record = self.world.claims().into_iter().find(|one| one.claim == granted.claim);
            let record = record.unwrap();
            assert!(naive::is_live(&record, &self.world), "S4: {record:?} has run out");
            assert_eq!(record.hold.holder.session.0, wanted.session);
            assert!(things.paths.is_superset(&wanted.things.paths));
        } else {
            assert!(obstacles.is_empty(), "S1: granted in spite of {obstacles:?}");
            let busy = self.world.session(who).busy_until(now).unwrap_or_default();
            assert_eq!(granted.expires_at, (now + request.ttl).max(busy));
            assert_eq!(things, wanted.things, "S3: all or nothing");
        }
        assert!(granted.expires_at > now);
        self.remember(who, granted.token, &all);
        let resources = match self.promises.get(&granted.claim) {
            Some(known) if now < known.until => known.resources.clone(),
            // A lease that a failover brought back promises what is left of the claim.
            _ => all.iter().filter(|one| one.amount() == 0).cloned().collect(),
        };
        self.promises.insert(
            granted.claim.clone(),
            Promise {
                session: self.world.id(who),
                token: granted.token,
                resources,
                until: granted.expires_at,
            },
        );
    }

    /// Whatever was promised is promised at least until the call must have ended.
    fn call(&mut self, who: &str, call: &str, limit: Span) {
        let answer = self.world.call(who, call, limit);
        if !self.is_there(who) {
            assert!(matches!(answer, Err(Refusal::SessionEnded { .. })), "{answer:?}");
            return;
        }
        let (id, now) = (self.world.id(who), self.world.now);
        let promised = self.promises.values_mut().filter(|promise| promise.session == id);
        for promise in promised.filter(|promise| now < promise.until) {
            promise.until = promise.until.max(now + limit);
        }
    }

    /// What is left of a promise is the lease, and calls that go on. Nothing ends at this moment.
    fn call_end(&mut self, who: &str, call: &str) {
        if !self.is_there(who) {
            return;
        }
        self.world.call_ends(who, call);
        let now = self.world.now;
        for claim in self.world.claims_of(who) {
            if let Some(promise) = self.promises.get_mut(&claim.claim)
                && now < promise.until
            {
                assert!(naive::is_live(&claim, &self.world), "lost by the end of a call");
                promise.until = promise.until.min(naive::expiry(&claim, &self.world));
            }
        }
    }

    fn look(&mut self, who: &'static str) {
        let Some(request) = self.world.pending.get(who).cloned() else { return };
        let wanted = Plain::of(&self.hold(who, &request));
        let me = self
            .world
            .waiters()
            .into_iter()
            .find(|one| Some(&one.waiter) == request.waiter.as_ref());
        let obstacles = naive::obstacles(&self.world, &wanted, me.as_ref(), request.priority);
        let there = self.is_there(who);
        let round = naive::goes_round(&self.world, &wanted, false);
        let answer = self.world.look(who);
        let late = me.is_some_and(|me| self.world.now >= me.deadline);
        match answer {
            Err(Refusal::SessionEnded { .. }) => assert!(!there),
            Ok(Answer::Granted(granted)) => {
                self.granted(who, &wanted, &granted, &obstacles, &request);
                let waiter = request.waiter.unwrap();
                assert!(self.world.waiters().iter().all(|one| one.waiter != waiter));
            }
            Ok(Answer::Queued(queued)) => {
                assert!(!obstacles.is_empty() && !late, "free or late, yet {queued:?}");
                assert!(self.world.waiters().iter().any(|one| one.waiter == queued.waiter));
                assert!(queued.look_again_at > self.world.now);
            }
            Err(Refusal::WaitedInVain(_)) => assert!(late && !obstacles.is_empty()),
            Err(refusal) => {
                assert!(!obstacles.is_empty(), "it was free, yet {refusal:?}");
                assert!(matches!(refusal, Refusal::Cycle { .. }), "{refusal:?}");
                assert!(round, "no circle: {refusal:?}");
            }
        }
    }

    fn release(&mut self, who: &'static str, text: &'static str) {
        let own = self.own(who);
        let there = self.is_there(who);
        let wanted = resource(text);
        let named = Things::of(std::slice::from_ref(&wanted));
        let names = |held: &Resource| match &wanted {
            Resource::Path(_) => wanted.covers(held),
            Resource::Name { .. } => wanted.overlaps(held),
        };
        // A session does not let go of what one of its subagents is at work on.
        let at_work = !who.contains('/')
            && own.iter().any(|claim| {
                claim.hold.holder.agent.is_some()
                    && naive::is_live(claim, &self.world)
                    && claim.hold.resources.iter().any(names)
            });
        let answer = self.world.release(who, [text]);
        if !there {
            return;
        }
        if at_work {
            assert!(answer.is_err(), "{text} is a subagent's, yet {answer:?}");
            return;
        }
        let exact = |claim: &Claim| claim.hold.resources.contains(&resource(text));
        assert!(answer.is_ok() || !own.iter().any(exact), "{text} was held, yet {answer:?}");
        assert!(!self.own(who).iter().any(exact), "{text} was not let go");
        for claim in own {
            if let Some(promise) = self.promises.get_mut(&claim.claim) {
                promise.resources.retain(|held| {
                    let paths = Things::of(std::slice::from_ref(held)).paths;
                    !paths.is_subset(&named.paths)
                });
                if promise.resources.is_empty() {
                    self.promises.remove(&claim.claim);
                }
            }
        }
    }

    fn renew(&mut self, who: &'static str) {
        let own = self.own(who);
        let there = self.is_there(who);
        let late: Vec<&Claim> =
            own.iter().filter(|claim| !naive::is_live(claim, &self.world)).collect();
        let free = late.len() == 1 && {
            let wanted = Plain::of(&late[0].hold);
            naive::obstacles(&self.world, &wanted, None, 0).is_empty()
        };
        let answer = self.world.renew(who, &Which::All);
        if !there || own.is_empty() {
            assert!(answer.is_err());
            return;
        }
        let Ok(renewed) = answer else {
            assert!(own.len() == late.len() && !free, "renewable, yet {answer:?}");
            return;
        };
        assert!(!free || renewed.not_renewed.is_empty(), "free, yet {renewed:?}");
        for kept in renewed.renewed {
            let resources: Vec<Resource> =
                kept.resources.iter().filter(|one| one.amount() == 0).cloned().collect();
            let session = self.world.id(who);
            let promise = Promise { session, token: kept.token, resources, until: kept.expires_at };
            self.promises.insert(kept.claim, promise);
            self.remember(who, kept.token, &kept.resources);
        }
        self.assert_half_a_lease_left(who);
    }

    /// Activity renews (lesson 8): after an act no live lease is less than half full. Those of
    /// subagents live by their own acts.
    fn assert_half_a_lease_left(&self, who: &str) {
        let agent = who.split_once('/').map(|(_, agent)| agent.to_owned());
        let mut own = self.own(who);
        own.retain(|claim| {
            let holder = &claim.hold.holder;
            naive::is_live(claim, &self.world) && (holder.agent.is_none() || holder.agent == agent)
        });
        for claim in own {
            let left = claim.expires_at.since(self.world.now);
            assert!(left.0 >= claim.ttl.0 / 2, "{claim:?} was not renewed");
        }
    }

    fn remember(&mut self, who: &'static str, token: Token, resources: &[Resource]) {
        let path = resources.iter().find(|one| one.amount() == 0);
        let known = self.tokens.entry(who).or_default();
        known.extend(path.map(|path| (token, path.to_string())));
    }

    /// With a token, the check is of a path it was for; without, of any.
    fn check(&mut self, who: &'static str, text: &'static str, token: Option<usize>) {
        let known = self.tokens.get(who).cloned().unwrap_or_default();
        let token = token.and_then(|index| known.get(index % known.len().max(1)).cloned());
        let text = token.as_ref().map_or(text, |(_, path)| path);
        let token = token.as_ref().map(|(token, _)| *token);
        if !self.is_there(who) {
            assert!(self.world.check(who, text, token).is_err());
            return;
        }
        let resources = vec![resource(text)];
        let request = Request { scope: Scope::Tree, ttl: Span::ZERO, ..Request::of(resources) };
        let wanted = Plain::of(&self.hold(who, &request));
        let mut live = self.world.claims();
        live.retain(|claim| naive::is_live(claim, &self.world));
        let right = live.iter().find(|claim| Some(claim.token) == token);
        let answer = self.world.check(who, text, token);
        let clashes = |claim: &Claim| wanted.conflicts(&Plain::of(&claim.hold));
        match (&answer, token) {
            (Ok(_), Some(_)) => {
                let right = right.expect("S4: a token without a live claim was let through");
                let held = Plain::of(&right.hold);
                assert_eq!(held.session, wanted.session, "S4");
                assert!(held.things.paths.is_superset(&wanted.things.paths), "S4: {right:?}");
                assert!(!held.shared, "S4: a shared claim is no right to edit");
            }
            (Err(Refusal::StaleToken { .. }), Some(_)) => {
                let exact = right.is_some_and(|right| {
                    right.hold.resources.contains(&request.resources[0])
                        && right.hold.mode == Mode::Exclusive
                        && !wanted.rivals(&Plain::of(&right.hold))
                        && right.hold.holder.session.0 == wanted.session
                });
                assert!(!exact, "S4: a good token was refused");
            }
            (Ok(checked), None) => {
                let finding = &checked.findings[0];
                if live.iter().any(clashes) {
                    assert_eq!(checked.verdict, Verdict::Deny, "S11: {finding:?}");
                }
                if finding.because == Because::Held {
                    let found = naive::obstacles(&self.world, &wanted, None, 0);
                    assert!(!found.is_empty(), "free, yet {finding:?}");
                }
            }
            (other, None) => panic!("{other:?}"),
            (Err(other), _) => panic!("{other:?}"),
        }
    }

    fn revoke(&mut self, target: &Target) {
        if let Ok(revoked) = self.world.revoke(target) {
            for claim in revoked.revoked {
                self.promises.remove(&claim.claim);
            }
        }
    }

    fn settle(&mut self, index: usize) {
        let claims = self.world.claims();
        if let Some(claim) = claims.get(index) {
            self.world.settle(&claim.claim);
            if claim.hold.scope == Scope::Tree {
                self.promises.remove(&claim.claim);
            }
        }
    }

    fn end(&mut self, session: &'static str, grace: bool) {
        let own = self.own(session);
        let there = self.is_there(session);
        let answer = self.world.end(session, grace.then_some(sessions::GRACE));
        assert_eq!(answer.is_ok(), there);
        let Ok(ended) = answer else { return };
        let id = self.world.id(session);
        assert!(self.world.waiters().iter().all(|waiter| waiter.hold.holder.session != id));
        match ended.grace_until {
            None => self.forget(&own),
            Some(until) => {
                let now = self.world.now;
                self.promises.retain(|_, promise| promise.session != id || now < promise.until);
                for promise in self.promises.values_mut().filter(|one| one.session == id) {
                    promise.until = until;
                }
            }
        }
    }

    /// S8 and S3: what was promised until later is there, all of it, under its token.
    fn assert_promises_kept(&self) {
        let claims = self.world.claims();
        for (id, promise) in &self.promises {
            if self.world.now >= promise.until {
                continue;
            }
            let claim = claims.iter().find(|claim| claim.claim == *id);
            let claim = claim.unwrap_or_else(|| panic!("S8: {promise:?} ended early"));
            assert_eq!(claim.token, promise.token);
            assert!(naive::is_live(claim, &self.world), "S8: {claim:?} ran out early");
            for held in &promise.resources {
                assert!(claim.hold.resources.contains(held), "S8: {held} was lost");
            }
        }
    }

    /// Who holds a path of the serial zone holds the zone.
    fn assert_zones_whole(&self) {
        for claim in self.world.claims() {
            let things = Things::of(&claim.hold.resources);
            if things.paths.iter().any(|path| path.starts_with("m/")) {
                assert!(things.names.contains_key(naive::ZONE_NAME), "{claim:?}");
            }
        }
    }

    /// Liveness: when everything is let go, everyone who waits is answered in a few rounds.
    fn assert_everyone_is_served(&mut self) {
        for claim in self.world.claims() {
            self.revoke(&Target::Claim(claim.claim));
        }
        self.promises.clear();
        let waiting: Vec<String> = self.world.pending.keys().cloned().collect();
        for _ in 0..=waiting.len() {
            for who in &waiting {
                if self.world.pending.contains_key(who)
                    && let Ok(Answer::Granted(_)) = self.world.look(who)
                {
                    self.world.let_go(who, &Which::All, None).unwrap();
                }
            }
        }
        let left = &self.world.pending;
        assert!(left.is_empty(), "still waiting for nobody: {left:?}");
    }
}
