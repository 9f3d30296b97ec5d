//! The runner: one at a time, it moves the queue on until what it was started for is done.
//!
//! Owns the loop. A round builds candidates upon the target, checks them (several at once), moves
//! the target to the longest that passed, gives back what broke it, and begins anew with the rest.
//! Everything that matters is written down before and after, under the runner's token: one killed
//! anywhere is followed by another that first looks what became of the move it had begun.

use std::collections::BTreeMap;

use baton_core::context::{Actor, Observed};
use baton_core::id::{LandingId, Token};
use baton_core::landing::{self as record, Cause, Landing, Mode, Moving, Queue, Verified};
use baton_core::landings::running::{self, Part};
use baton_core::landings::searching::{Footprint, Search, Verdict};
use baton_core::landings::{OPEN_MAX, Refused, Why};
use baton_core::refusal::Refusal;
use baton_core::tasks::evidence::NamedCheck;
use baton_core::trust;
use baton_core::view::{View, get, scan};
use baton_core::zones::Policy;

use super::checking::{Bench, Result as Checked};
use super::moving::{Moved, Target};
use super::pool::{Came, Pool, Work};
use super::{Door, Progress};
use crate::committing::may_stop;
use crate::config;
use crate::conflicts;
use crate::failure::Failure;
use crate::git::{Git, Oid};
use crate::interfaces;
use crate::workspace::Workspace;

/// How many landings one round looks at.
const ROUND_MAX: usize = 100;

/// One landing in a candidate.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) landing: Landing,
    pub(super) tip: Oid,
    /// With this one and all before it.
    pub(super) commit: Oid,
    pub(super) tree: Oid,
    pub(super) footprint: Footprint,
    pub(super) contains: Vec<String>,
}

/// The policy and the place, as one round sees them.
pub(super) struct Scene {
    pub(super) policy: Policy,
    pub(super) target: Target,
    pub(super) tip: Oid,
    pub(super) checks: Vec<NamedCheck>,
    checks_hash: String,
}

/// A turn at the queue.
pub(super) struct Run<'a> {
    pub(super) workspace: &'a mut Workspace,
    pub(super) actor: &'a Actor,
    pub(super) door: &'a mut dyn Door,
    pub(super) git: Git,
    pub(super) pool: Pool,
    pub(super) token: Token,
}

/// What a round has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// Something landed or went back: there may be more.
    Moved,
    /// Nothing can be done now.
    Idle,
    /// Somebody wants this to end.
    Stopped,
}

impl Run<'_> {
    pub(super) fn decide<T>(
        &mut self,
        rule: impl FnOnce(
            &dyn View,
            &baton_core::context::Context,
        ) -> Result<(Vec<baton_core::event::Event>, T), Refusal>,
    ) -> Result<T, Failure> {
        self.workspace.decide(self.actor, Observed::default(), rule)
    }

    pub(super) fn look<T>(
        &mut self,
        rule: impl FnOnce(&dyn View) -> Result<T, Refusal>,
    ) -> Result<T, Failure> {
        self.workspace.look(&Actor::default(), Observed::default(), |view, _| rule(view))
    }

    pub(super) fn queue(&mut self) -> Result<Queue, Failure> {
        self.look(|view| Ok(get::<Queue>(view, Queue::KEY)?.unwrap_or_default()))
    }

    pub(super) fn open(&mut self) -> Result<Vec<Landing>, Failure> {
        self.look(|view| Ok(scan(view, record::all_of(record::OPEN, OPEN_MAX))?))
    }

    pub(super) fn renew(&mut self) -> Result<(), Failure> {
        let token = self.token;
        self.decide(|view, context| running::renew(view, token, context))
    }

    /// A runner died while it moved the target: what became of that is seen, not guessed.
    pub(super) fn recover(&mut self) -> Result<(), Failure> {
        let Some(moving) = self.queue()?.moving else { return Ok(()) };
        let (policy, token) = (self.policy()?, self.token);
        let target = super::target_of(&self.git, &policy)?;
        let target = Target { name: moving.target.clone(), ..target };
        // Also puts in order what had died half-way in the trees on it.
        target.standing(self.workspace, &self.git)?;
        let has = match Oid::parse(&moving.to) {
            Some(to) => self.git.commit_exists(&to)? && target.has(&self.git, &to)?,
            None => false,
        };
        match has {
            true => self.landed(),
            false => self.decide(|view, context| running::not_moved(view, token, context)),
        }
    }

    fn policy(&mut self) -> Result<Policy, Failure> {
        Ok(crate::policy::in_force(self.workspace)?.unwrap_or_default())
    }

    pub(super) fn held(&mut self, landing: &LandingId, why: &Why) -> Result<(), Failure> {
        let token = self.token;
        self.decide(|view, context| running::held(view, token, landing, why, context))?;
        self.door.told(&Progress::Held { landing: landing.clone(), reason: why.reason.clone() });
        Ok(())
    }

    pub(super) fn returned(&mut self, landing: &LandingId, why: &Why) -> Result<(), Failure> {
        let token = self.token;
        let gone =
            self.decide(|view, context| running::returned(view, token, landing, why, context))?;
        if let Some(landing) = gone {
            self.door.told(&Progress::Returned { landing: Box::new(landing) });
        }
        Ok(())
    }

    /// The move that was written down was seen in the target.
    fn landed(&mut self) -> Result<(), Failure> {
        let token = self.token;
        let policy = self.landed_policy()?;
        let landings =
            self.decide(|view, context| running::landed(view, token, policy.as_ref(), context))?;
        for landing in landings {
            self.door.told(&Progress::Landed { landing: Box::new(landing) });
        }
        Ok(())
    }

    /// What the landed `baton.toml` says, when one of the landings was let through by a person
    /// because it changes that file.
    fn landed_policy(&mut self) -> Result<Option<Policy>, Failure> {
        let Some(moving) = self.queue()?.moving else { return Ok(None) };
        let ids: Vec<LandingId> = moving.landings.iter().map(|(id, _)| id.clone()).collect();
        let gated = self.look(|view| {
            let mut gated = false;
            for id in &ids {
                let landing = get::<Landing>(view, id.as_str())?;
                gated |= landing.is_some_and(|landing| {
                    let touches = |path: &String| path == config::FILE_NAME;
                    landing.gate.is_some() && landing.paths.iter().any(touches)
                });
            }
            Ok(gated)
        })?;
        let text = match gated {
            true => self.git.content(&moving.to, config::FILE_NAME)?,
            false => None,
        };
        let Some(text) = text.and_then(|text| String::from_utf8(text).ok()) else {
            return Ok(None);
        };
        // One that cannot be used changes nothing: the last good one stays in force.
        let path = self.workspace.place.root.join(config::FILE_NAME);
        Ok(config::compile(&path, &text, Default::default()).ok())
    }

    /// One round.
    pub(super) fn round(&mut self) -> Result<Round, Failure> {
        let queue = self.queue()?;
        if let Some(paused) = queue.paused {
            self.door.told(&Progress::Paused { paused });
            return Ok(Round::Idle);
        }
        let mut waiting = self.open()?;
        if waiting.is_empty() {
            return Ok(Round::Idle);
        }
        waiting.truncate(ROUND_MAX);
        let Some(scene) = self.scene(&waiting)? else { return Ok(Round::Idle) };
        let (entries, changed) = self.stack(&scene, &waiting)?;
        if entries.is_empty() {
            return Ok(if changed { Round::Moved } else { Round::Idle });
        }
        let done = self.settle(&scene, &entries)?;
        Ok(if changed && done == Round::Idle { Round::Moved } else { done })
    }

    /// What the round is about; nothing when the checks or the remote do not allow it.
    fn scene(&mut self, waiting: &[Landing]) -> Result<Option<Scene>, Failure> {
        let policy = self.policy()?;
        let target = super::target_of(&self.git, &policy)?;
        let hold_all = |run: &mut Self, why: Why| -> Result<Option<Scene>, Failure> {
            for landing in waiting {
                run.held(&landing.landing, &why)?;
            }
            Ok(None)
        };
        let commands: Vec<trust::Command> = trust::commands(&policy)
            .into_iter()
            .filter(|command| command.what.starts_with("queue check"))
            .collect();
        let missing = self.look(|view| trust::untrusted(view, &commands))?;
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|one| one.what.as_str()).collect();
            let why = format!("nobody stands for {}: a person runs baton trust", names.join(", "));
            return hold_all(self, Why::new(Cause::Untrusted, why));
        }
        let tip = match target.tip(&self.git) {
            Ok(Some(tip)) => tip,
            Ok(None) => {
                return Err(super::refuse(Refused::NoTarget { target: target.name }));
            }
            Err(Failure::Git(error)) if target.remote.is_some() => {
                let why = format!("the remote does not answer: {error}");
                return hold_all(self, Why::new(Cause::Offline, why));
            }
            Err(other) => return Err(other),
        };
        let checks = policy.evidence.named.clone();
        let checks_hash = config::hash(&serde_json::to_string(&checks).unwrap_or_default());
        Ok(Some(Scene { policy, target, tip, checks, checks_hash }))
    }
}

impl Run<'_> {
    /// Checks the candidates and lands what passes.
    fn settle(&mut self, scene: &Scene, entries: &[Entry]) -> Result<Round, Failure> {
        let ids: Vec<LandingId> =
            entries.iter().map(|entry| entry.landing.landing.clone()).collect();
        let token = self.token;
        self.decide(|view, context| running::checking(view, token, &ids, context))?;
        may_stop(self.workspace, "land-checking");
        if scene.checks.is_empty() {
            return self.land(scene, entries, 0, entries.len());
        }
        if scene.policy.queue.mode == Mode::Pr {
            return self.propose_each(scene, entries);
        }
        self.search(scene, entries)
    }

    /// Several at once, up to the longest that passes and the one that breaks the next.
    fn search(&mut self, scene: &Scene, entries: &[Entry]) -> Result<Round, Failure> {
        let footprints: Vec<Footprint> =
            entries.iter().map(|entry| entry.footprint.clone()).collect();
        let mut search = Search::new(&footprints);
        let mut bench = Bench::new(self.pool.clone())?;
        let jobs = scene.policy.queue.jobs as usize;
        let mut landed = 0;
        let mut last: BTreeMap<usize, Came> = BTreeMap::new();
        loop {
            for prefix in search.useless() {
                bench.stop(prefix);
                search.dropped(prefix);
            }
            let ripe = search.ripe();
            if ripe > landed {
                match self.land(scene, entries, landed, ripe)? {
                    Round::Moved => landed = ripe,
                    other => return Ok(other),
                }
            }
            match search.verdict() {
                Verdict::Whole => return Ok(Round::Moved),
                Verdict::Guilty(place) => {
                    bench.stop_all();
                    let why = self.blame(scene, &entries[place], place, last.get(&(place + 1)))?;
                    self.returned(&entries[place].landing.landing, &why)?;
                    return Ok(Round::Moved);
                }
                Verdict::Open => {}
            }
            let queue = self.queue()?;
            let mut known = false;
            for prefix in search.next(jobs) {
                let entry = &entries[prefix - 1];
                if queue.has_verified(entry.tree.as_str(), &scene.checks_hash) {
                    search.passed(prefix);
                    known = true;
                } else {
                    self.begin(scene, entries, prefix, &mut bench)?;
                }
            }
            if known {
                continue;
            }
            let Some(Checked { prefix, came }) = bench.wait(self)? else {
                bench.stop_all();
                return Ok(Round::Stopped);
            };
            self.note(scene, entries, prefix, came?, &mut search, &mut last)?;
        }
    }

    pub(super) fn begin(
        &mut self,
        scene: &Scene,
        entries: &[Entry],
        prefix: usize,
        bench: &mut Bench,
    ) -> Result<(), Failure> {
        let entry = &entries[prefix - 1];
        let inside = &entries[..prefix];
        let names: Vec<&str> = inside.iter().map(|one| one.landing.landing.as_str()).collect();
        let log = self.pool.log(entry.landing.landing.as_str())?;
        let work = Work {
            commit: entry.commit.clone(),
            checks: scene.checks.clone(),
            landings: names.join(" "),
            target: scene.target.name.clone(),
            log: log.clone(),
        };
        let branches: Vec<LandingId> =
            inside.iter().map(|one| one.landing.landing.clone()).collect();
        self.door.told(&Progress::Checking { landings: branches, log });
        bench.start(prefix, work);
        Ok(())
    }

    /// A result has come.
    fn note(
        &mut self,
        scene: &Scene,
        entries: &[Entry],
        prefix: usize,
        came: Came,
        search: &mut Search,
        last: &mut BTreeMap<usize, Came>,
    ) -> Result<(), Failure> {
        match &came {
            Came::Stopped => search.dropped(prefix),
            Came::Failed { check, exit, log, .. } => {
                search.failed(prefix);
                self.door.told(&Progress::Failed {
                    landings: prefix,
                    check: check.clone(),
                    exit: *exit,
                    log: log.clone(),
                });
            }
            Came::Passed => {
                let flaky = search.passed(prefix);
                let entry = &entries[prefix - 1];
                let verified =
                    Verified { tree: entry.tree.to_string(), checks: scene.checks_hash.clone() };
                let (token, id) = (self.token, entry.landing.landing.clone());
                let flaky = flaky.then_some(&id);
                self.decide(|view, context| {
                    running::passed(view, token, &verified, flaky, context)
                })?;
                may_stop(self.workspace, "land-checked");
                self.door.told(&Progress::Passed { landings: prefix, flaky: flaky.is_some() });
            }
        }
        last.insert(prefix, came);
        Ok(())
    }

    /// Why this one goes back. Where nothing passed before it, the target itself may be broken.
    pub(super) fn blame(
        &mut self,
        scene: &Scene,
        entry: &Entry,
        place: usize,
        came: Option<&Came>,
    ) -> Result<Why, Failure> {
        let Some(Came::Failed { check, exit, log, tail }) = came else {
            return Ok(Why::new(Cause::Check, "its checks failed"));
        };
        let mut reason = format!("check {check} failed with exit {exit}, twice");
        let tree = self.git.tree_of_commit(&scene.tip)?;
        let known = self.queue()?.has_verified(tree.as_str(), &scene.checks_hash);
        if place == 0 && !known && self.target_fails(scene)? {
            reason.push_str(&format!("; {} itself fails its checks too", scene.target.name));
        }
        let _ = entry;
        Ok(Why {
            log: Some(log.display().to_string()),
            detail: Some(tail.clone()),
            ..Why::new(Cause::Check, reason)
        })
    }

    fn target_fails(&mut self, scene: &Scene) -> Result<bool, Failure> {
        let log = self.pool.log("target")?;
        self.door.told(&Progress::CheckingTarget { target: scene.target.name.clone() });
        let work = Work {
            commit: scene.tip.clone(),
            checks: scene.checks.clone(),
            landings: String::new(),
            target: scene.target.name.clone(),
            log,
        };
        let mut bench = Bench::new(self.pool.clone())?;
        bench.start(0, work);
        let came = match bench.wait(self)? {
            Some(Checked { came, .. }) => came?,
            None => Came::Stopped,
        };
        if came == Came::Passed {
            let tree = self.git.tree_of_commit(&scene.tip)?.to_string();
            let verified = Verified { tree, checks: scene.checks_hash.clone() };
            let token = self.token;
            self.decide(|view, context| running::passed(view, token, &verified, None, context))?;
        }
        Ok(matches!(came, Came::Failed { .. }))
    }

    /// Moves the target to the candidate with the first `good` landings.
    fn land(
        &mut self,
        scene: &Scene,
        entries: &[Entry],
        landed: usize,
        good: usize,
    ) -> Result<Round, Failure> {
        if scene.policy.queue.mode == Mode::Pr {
            return self.propose_each(scene, entries);
        }
        let from = match landed {
            0 => scene.tip.clone(),
            some => entries[some - 1].commit.clone(),
        };
        let part = |entry: &Entry| Part {
            landing: entry.landing.landing.clone(),
            tip: entry.tip.to_string(),
            commit: entry.commit.to_string(),
            contains: entry.contains.clone(),
        };
        let parts: Vec<Part> = entries[landed..good].iter().map(part).collect();
        let to = entries[good - 1].commit.clone();
        let tree = Verified {
            tree: entries[good - 1].tree.to_string(),
            checks: scene.checks_hash.clone(),
        };
        let moving = Moving {
            target: scene.target.name.clone(),
            from: from.to_string(),
            to: to.to_string(),
            landings: parts
                .iter()
                .map(|part| (part.landing.clone(), part.commit.clone()))
                .collect(),
            checked: !scene.checks.is_empty(),
        };
        let token = self.token;
        let begun = self.decide(|view, context| {
            running::move_begins(view, token, &moving, &parts, &tree, context)
        });
        if let Err(failure) = begun {
            return self.not_begun(failure, &parts);
        }
        may_stop(self.workspace, "land-begun");
        match scene.target.move_to(self.workspace, &self.git, &from, &to)? {
            Moved::Done => {
                may_stop(self.workspace, "land-seen");
                self.landed()?;
                may_stop(self.workspace, "land-kept");
                self.tell_others(&from, &to, &entries[landed..good]);
                Ok(Round::Moved)
            }
            Moved::Elsewhere => {
                self.decide(|view, context| running::not_moved(view, token, context))?;
                // Somebody else moved it: the rest of this round is worth nothing.
                Err(super::refuse(Refused::Moved))
            }
            Moved::Blocked(why) => {
                self.decide(|view, context| running::not_moved(view, token, context))?;
                for part in &parts {
                    self.held(&part.landing, &why)?;
                }
                Ok(Round::Idle)
            }
        }
    }

    /// What others have in their trees meets something new, and what they build on may have
    /// changed. Whoever is concerned is told; that it cannot be looked at now does not undo the
    /// landing.
    fn tell_others(&mut self, from: &Oid, to: &Oid, landed: &[Entry]) {
        let _ = conflicts::after_landing(self.workspace, self.actor);
        let by = |path: &str| {
            let changes = |one: &&Entry| one.landing.paths.iter().any(|own| own == path);
            landed.iter().rfind(changes).map(|entry| entry.landing.by.clone())
        };
        let _ = interfaces::landed(self.workspace, self.actor, &self.git, (from, to), &by);
    }

    /// A rule said no at the last moment: claims changed, or what was checked is not what stands
    /// in line any more.
    fn not_begun(&mut self, failure: Failure, parts: &[Part]) -> Result<Round, Failure> {
        let Failure::Refused(Refusal::Landing(refused)) = &failure else { return Err(failure) };
        let branch = match &**refused {
            Refused::Held { branch, .. } | Refused::Lost { branch, .. } => branch.clone(),
            Refused::Paused { paused } => {
                self.door.told(&Progress::Paused { paused: paused.clone() });
                return Ok(Round::Idle);
            }
            _ => return Err(failure),
        };
        let why = Why::new(Cause::Claims, refused.to_string());
        for part in parts {
            let id = &part.landing;
            let of = self.look(|view| get::<Landing>(view, id.as_str()).map_err(Refusal::from))?;
            if of.is_some_and(|landing| landing.branch == branch) {
                self.returned(id, &why)?;
            }
        }
        Ok(Round::Moved)
    }
}
