//! The rules once more, as plainly as they can be said: sets of concrete paths and direct loops.
//!
//! Shares nothing with the code it judges but the records it looks at: what a pattern means is a
//! table written by hand over a small universe, and every question is answered by trying all.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::claim::{Claim, Hold, Mode, Scope};
use baton_core::context::Life;
use baton_core::pattern;
use baton_core::resource::Resource;
use baton_core::time::{Moment, Span};
use baton_core::waiting::Waiter;
use baton_core::zones::Rule;

use crate::world::{World, resource};

/// Every path there is.
const UNIVERSE: &[&str] = &["a", "b", "x", "d/x", "d/y", "d/z.rs", "e/x", "m/1", "m/2", "m/x"];

/// What can be asked for, and which paths that is: also other spellings of the same (S9).
pub(crate) const TEXTS: &[(&str, &[&str])] = &[
    ("a", &["a"]),
    ("A", &["a"]),
    ("./d/../a", &["a"]),
    ("b", &["b"]),
    ("x", &["x"]),
    ("d/x", &["d/x"]),
    ("D//X", &["d/x"]),
    ("d/y", &["d/y"]),
    ("d/", &["d/x", "d/y", "d/z.rs"]),
    ("d/*", &["d/x", "d/y", "d/z.rs"]),
    ("d/*.rs", &["d/z.rs"]),
    ("d/[xy]", &["d/x", "d/y"]),
    ("*/x", &["d/x", "e/x", "m/x"]),
    ("**/x", &["x", "d/x", "e/x", "m/x"]),
    ("{a,b}", &["a", "b"]),
    ("e/x", &["e/x"]),
    ("m/1", &["m/1"]),
    ("m/2", &["m/2"]),
    ("m/", &["m/1", "m/2", "m/x"]),
    ("**", UNIVERSE),
];

pub(crate) const NAMES: &[&str] = &["@port", "@gpu", "@GPU=2", "@vram=2", "@vram=3"];

pub(crate) const ZONES: &[(&str, Rule)] = &[("e/", Rule::Require), ("m/", Rule::Serial)];
pub(crate) const CAPACITIES: &[(&str, u32)] = &[("gpu", 2), ("vram", 4)];
pub(crate) const ZONE_NAME: &str = "zone/m/";

/// S2 through the table: two texts overlap exactly when they share a path of the universe.
#[test]
fn s2_the_table_and_the_automata_agree() {
    for (one, paths) in TEXTS {
        for (two, others) in TEXTS {
            let share = paths.iter().any(|path| others.contains(path));
            assert_eq!(resource(one).overlaps(&resource(two)), share, "{one} and {two}");
        }
        for path in UNIVERSE {
            let Resource::Path(pattern) = resource(one) else { panic!() };
            assert_eq!(pattern.matches(path), paths.contains(path), "{one} and {path}");
        }
    }
}

/// S10: what leaves the workspace, or is git's own, is nothing that can be claimed.
#[test]
fn s10_nothing_outside_is_a_resource() {
    for text in ["../a", "a/../../b", "/etc/passwd", "", "..", ".git/config", ".GIT/x", "d/../.."] {
        assert!(Resource::parse(text).is_err(), "{text:?}");
        assert!(
            pattern::key_of(text).map_or(true, |key| key.is_empty() || key.starts_with(".git"))
        );
    }
}

/// What is held or asked for, as sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Things {
    pub(crate) paths: BTreeSet<&'static str>,
    pub(crate) names: BTreeMap<String, u32>,
}

impl Things {
    pub(crate) fn of(resources: &[Resource]) -> Self {
        let mut things = Self::default();
        for resource in resources {
            match resource {
                Resource::Name { name, amount } => {
                    let name = name.to_lowercase();
                    let before = things.names.get(&name).copied().unwrap_or(0);
                    // Amounts add up; a thing there is one of is the same thing twice.
                    let both = if capacity(&name).is_some() { before + amount } else { *amount };
                    things.names.insert(name, both);
                }
                Resource::Path(_) => {
                    let text = resource.to_string();
                    let known = TEXTS
                        .iter()
                        .find(|(one, _)| crate::world::resource(one).to_string() == text);
                    things.paths.extend(known.unwrap_or_else(|| panic!("{text}")).1);
                }
            }
        }
        things
    }

    fn add_zones(mut self) -> Self {
        if self.paths.iter().any(|path| path.starts_with("m/")) {
            self.names.insert(ZONE_NAME.to_owned(), 1);
        }
        self
    }

    fn meets(&self, other: &Self) -> bool {
        let uncounted = |name: &String| capacity(name).is_none();
        self.paths.intersection(&other.paths).next().is_some()
            || self.names.keys().filter(|n| uncounted(n)).any(|n| other.names.contains_key(n))
    }

    fn counted_with(&self, other: &Self) -> bool {
        self.names.keys().any(|name| capacity(name).is_some() && other.names.contains_key(name))
    }
}

pub(crate) fn capacity(name: &str) -> Option<u32> {
    CAPACITIES.iter().find(|(known, _)| *known == name).map(|(_, many)| *many)
}

/// A hold as the naive rules see it.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub(crate) session: String,
    pub(crate) agent: Option<String>,
    pub(crate) tree: String,
    pub(crate) wide: bool,
    pub(crate) shared: bool,
    pub(crate) things: Things,
}

impl Plain {
    pub(crate) fn of(hold: &Hold) -> Self {
        let things = Things::of(&hold.resources).add_zones();
        let strict = |path: &&str| path.starts_with("e/") || path.starts_with("m/");
        let wide = hold.scope == Scope::Workspace
            || !things.names.is_empty()
            || things.paths.iter().any(strict);
        Self {
            session: hold.holder.session.0.clone(),
            agent: hold.holder.agent.clone(),
            tree: hold.tree.0.clone(),
            wide,
            shared: hold.mode == Mode::Shared,
            things,
        }
    }

    pub(crate) fn rivals(&self, other: &Self) -> bool {
        if self.session != other.session {
            return true;
        }
        self.agent.is_some() && other.agent.is_some() && self.agent != other.agent
    }

    /// Section 5's predicate, amounts aside.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        self.rivals(other)
            && (self.tree == other.tree || self.wide || other.wide)
            && !(self.shared && other.shared)
            && self.things.meets(&other.things)
    }

    /// Conflicting, or wanting the same counted resource.
    fn contests(&self, other: &Self) -> bool {
        self.conflicts(other) || self.rivals(other) && self.things.counted_with(&other.things)
    }
}

pub(crate) fn expiry(claim: &Claim, world: &World) -> Moment {
    let lease = match world.failed_over_at {
        Some(at) if claim.renewed_at < at => claim.expires_at + claim.ttl,
        _ => claim.expires_at,
    };
    lease.max(claim.busy_until.unwrap_or_default())
}

pub(crate) fn is_live(claim: &Claim, world: &World) -> bool {
    world.now < expiry(claim, world)
}

/// Does it keep others out: live, or past its time under one of the two exceptions. That a process
/// lives says nothing of one of its subagents to the others.
fn stands(claim: &Claim, world: &World, sibling: bool) -> bool {
    if is_live(claim, world) {
        return true;
    }
    let name = world.name_of(&claim.hold.holder.session);
    let paths = &Plain::of(&claim.hold).things.paths;
    let dirty = world.dirty.get(&name).into_iter().flatten();
    let dirty = Things::of(&dirty.cloned().collect::<Vec<_>>());
    let over_changes = dirty.paths.intersection(paths).next().is_some();
    let delay = Span((claim.ttl.0 / 10).min(10_000));
    match world.looks.get(&name).copied().unwrap_or(Life::Unknown) {
        Life::Alive => over_changes && !sibling,
        Life::Dead => false,
        Life::Unknown => world.now < expiry(claim, world) + delay,
    }
}

/// Why `wanted` cannot be had now, in plain words; nothing when it can.
pub(crate) fn obstacles(
    world: &World,
    wanted: &Plain,
    me: Option<&Waiter>,
    priority: u8,
) -> Vec<String> {
    let mut found = Vec::new();
    let claims: Vec<(Claim, Plain)> =
        world.claims().into_iter().map(|claim| (claim.clone(), Plain::of(&claim.hold))).collect();
    let mut used: BTreeMap<String, u32> = BTreeMap::new();
    for (claim, plain) in &claims {
        let sibling = wanted.session == plain.session;
        let counts = match wanted.rivals(plain) {
            true => stands(claim, world, sibling),
            false => is_live(claim, world),
        };
        if !counts {
            continue;
        }
        if wanted.conflicts(plain) {
            found.push(format!("{} holds {:?}", plain.session, plain.things));
        }
        for (name, amount) in &plain.things.names {
            *used.entry(name.clone()).or_default() += amount;
        }
    }
    for (name, asked) in &wanted.things.names {
        let used = used.get(name).copied().unwrap_or(0);
        if capacity(name).is_some_and(|capacity| used + asked > capacity) {
            found.push(format!("{used} of {name} are used"));
        }
    }
    for waiter in waiters_ahead(world, wanted, me, priority, &claims) {
        found.push(format!("{} was first", waiter.waiter));
    }
    found
}

fn waiters_ahead(
    world: &World,
    wanted: &Plain,
    me: Option<&Waiter>,
    priority: u8,
    claims: &[(Claim, Plain)],
) -> Vec<Waiter> {
    let now = world.now;
    let rank =
        |waiter: &Waiter| u64::from(waiter.priority) + now.since(waiter.queued_at).0 / 60_000;
    let mine: Vec<&Plain> = claims
        .iter()
        .filter(|(claim, plain)| {
            plain.session == wanted.session && !wanted.rivals(plain) && is_live(claim, world)
        })
        .map(|(_, plain)| plain)
        .collect();
    let waits_for_me = |other: &Plain| {
        let taken = |name: &String| -> u32 {
            mine.iter().filter_map(|plain| plain.things.names.get(name)).sum()
        };
        mine.iter().any(|plain| other.conflicts(plain))
            || other.things.names.iter().any(|(name, asked)| {
                capacity(name).is_some_and(|capacity| capacity < asked + taken(name))
            })
    };
    let mut all = world.waiters();
    all.retain(|waiter| {
        let other = Plain::of(&waiter.hold);
        let before = match me {
            Some(me) if me.waiter == waiter.waiter => false,
            Some(me) if rank(me) == rank(waiter) => waiter.place < me.place,
            Some(me) => rank(me) < rank(waiter),
            None => rank(waiter) >= u64::from(priority),
        };
        let there = now < waiter.deadline && now < waiter.lease_until;
        before && there && wanted.contests(&other) && !waits_for_me(&other)
    });
    all
}

/// S1 over every pair, and the sums of counted resources.
pub(crate) fn assert_nobody_clashes(world: &World) {
    let live: Vec<Plain> = world
        .claims()
        .iter()
        .filter(|claim| is_live(claim, world))
        .map(|claim| Plain::of(&claim.hold))
        .collect();
    for (index, one) in live.iter().enumerate() {
        for two in &live[index + 1..] {
            assert!(!one.conflicts(two), "S1: {one:?} and {two:?}");
        }
    }
    for (name, many) in CAPACITIES {
        let used: u32 = live.iter().filter_map(|plain| plain.things.names.get(*name)).sum();
        assert!(used <= *many, "S1: {used} of {name}, there are {many}");
    }
}

/// Who waits for whom, `wanted` included. `certain` keeps only what surely blocks: conflicting
/// claims of that very subagent; otherwise everything that might, session by session.
pub(crate) fn waits_for(
    world: &World,
    wanted: &Plain,
    certain: bool,
) -> BTreeMap<String, BTreeSet<String>> {
    let node = |plain: &Plain| match certain {
        true => format!("{} {:?}", plain.session, plain.agent),
        false => plain.session.clone(),
    };
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let claims: Vec<(Claim, Plain)> =
        world.claims().into_iter().map(|claim| (claim.clone(), Plain::of(&claim.hold))).collect();
    let there = |waiter: &Waiter| world.now < waiter.deadline && world.now < waiter.lease_until;
    let waiting = world.waiters().into_iter().filter(there);
    let all: Vec<(Plain, Option<Waiter>)> = waiting
        .map(|waiter| (Plain::of(&waiter.hold), Some(waiter)))
        .chain([(wanted.clone(), None)])
        .collect();
    for (wanted, waiter) in &all {
        let blockers = edges.entry(node(wanted)).or_default();
        for (claim, plain) in &claims {
            let there = if certain { is_live(claim, world) } else { stands(claim, world, false) };
            let clashes = there && wanted.conflicts(plain);
            if clashes || !certain && wanted.things.counted_with(&plain.things) {
                blockers.insert(node(plain));
            }
        }
        if !certain {
            let before = waiters_ahead(world, wanted, waiter.as_ref(), 0, &claims);
            blockers.extend(before.into_iter().map(|other| other.hold.holder.session.0));
        }
    }
    edges
}

/// Is there a way along the edges from this one back to itself?
pub(crate) fn goes_round(world: &World, wanted: &Plain, certain: bool) -> bool {
    let edges = waits_for(world, wanted, certain);
    let from = match certain {
        true => format!("{} {:?}", wanted.session, wanted.agent),
        false => wanted.session.clone(),
    };
    let mut open: Vec<&String> = edges.get(&from).into_iter().flatten().collect();
    let mut seen = BTreeSet::new();
    while let Some(next) = open.pop() {
        if *next == from {
            return true;
        }
        if seen.insert(next) {
            open.extend(edges.get(next).into_iter().flatten());
        }
    }
    false
}
