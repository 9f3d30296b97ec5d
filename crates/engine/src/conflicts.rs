//! Conflicts before they happen: every pair of live trees, and each tree against the target.
//!
//! Owns the look: snapshots with uncommitted work, merges on the side, and what git calls clean and
//! is not. It changes no tree, no index and no branch; it writes objects that nothing refers to, a
//! memory beside the store, and in the journal what nobody had been told of. Invariant: a pair is
//! said to be clean only if its two snapshots were merged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use baton_core::conflicts as rules;
use baton_core::context::{Actor, Observed};
use baton_core::id::SessionId;
use baton_core::sessions::{self, Session};
use baton_core::task::Task;
use baton_core::view::{Query, get, scan};

use crate::failure::Failure;
use crate::git::{self, Git, Oid};
use crate::trees::Clone;
use crate::trees::looking::{self, Found as Tree, SESSIONS_MAX};
use crate::workspace::Workspace;

use finding::{A, B};
use memory::Memory;
use pairs::{Ask, Sides};
use standing::Snapshot;
use unchanged::Settings;
use watching::Changed;

mod comparing;
mod differing;
pub mod finding;
mod lines;
mod listing;
mod manifests;
mod memory;
mod outside;
mod pairs;
mod reading;
mod routes;
mod sides;
mod standing;
pub mod symbols;
#[cfg(test)]
mod tests;
mod unchanged;
pub mod undo;
pub mod watching;

pub use finding::{Clashing, Conflicts, Finding, Found, Kind, LiveTree, Pair, Place, Unseen};
pub use lines::Span;
pub use symbols::Changes;

/// Trees that are compared with each other; the oldest of more are left out, and said to be.
pub const TREES_MAX: usize = 200;

/// A look, and which of its findings nobody had been told of.
#[derive(Clone, Debug, Default)]
pub struct Looked {
    pub conflicts: Conflicts,
    pub fresh: BTreeSet<String>,
}

/// Looks at every pair, writes down what is new and tells those concerned.
pub fn look(workspace: &mut Workspace, actor: &Actor) -> Result<Looked, Failure> {
    Eye::open(workspace)?.look(workspace, actor, &Changed::Anything)
}

/// Whoever looks more than once, and remembers in between.
#[derive(Debug)]
pub struct Eye {
    clone: Clone,
    memory: Memory,
}

impl Eye {
    pub fn open(workspace: &Workspace) -> Result<Self, Failure> {
        let clone = Clone::of(workspace)?;
        let memory = Memory::load(&clone.dirs.common_dir);
        Ok(Self { clone, memory })
    }

    /// Looks at every pair; only trees that may have changed are read again.
    pub fn look(
        &mut self,
        workspace: &mut Workspace,
        actor: &Actor,
        changed: &Changed,
    ) -> Result<Looked, Failure> {
        let (clone, memory) = (&self.clone, &mut self.memory);
        let scene = Scene::of(workspace, clone)?;
        let looked = match scene.compare(&clone.git, changed, memory) {
            // A snapshot of before may be gone, for nothing refers to it.
            Err(Failure::Git(_)) => {
                memory.forget_trees();
                scene.compare(&clone.git, &Changed::Anything, memory)?
            }
            other => other?,
        };
        memory.keep(&clone.dirs.common_dir);
        let fresh = tell(workspace, actor, clone, &scene, &looked)?;
        Ok(Looked { conflicts: looked, fresh })
    }
}

/// The same after a landing, or when an agent stops: only pairs whose snapshot changed are merged.
/// Gives what nobody had been told of.
pub fn after_landing(workspace: &mut Workspace, actor: &Actor) -> Result<Vec<Pair>, Failure> {
    let Looked { conflicts, fresh } = look(workspace, actor)?;
    let is_fresh = |pair: &Pair| identities(pair).iter().any(|(hash, _)| fresh.contains(hash));
    Ok(conflicts.pairs.into_iter().filter(is_fresh).collect())
}

/// Everything that is known of the trees before they are read.
#[derive(Debug)]
struct Scene {
    /// Git's folder that all trees share.
    common: PathBuf,
    trees: Vec<Tree>,
    names: Vec<String>,
    /// Who is concerned with each: ids of live sessions, and names.
    sessions: Vec<(Vec<SessionId>, Vec<String>)>,
    target: Option<(String, Oid)>,
    /// What each tree's session knew when it began, and where its task is.
    known: Vec<pairs::Known>,
    /// Nothing when it cannot be said what git's answers depend on.
    settings: Option<Settings>,
}

impl Scene {
    fn of(workspace: &mut Workspace, clone: &Clone) -> Result<Self, Failure> {
        let policy = crate::policy::in_force(workspace)?.and_then(|policy| policy.evidence.target);
        // Each is a process or more, and none needs what another says.
        let (target, settings, trees) = std::thread::scope(|scope| {
            let target = scope.spawn(|| clone.git.target(policy.as_deref()));
            let settings = scope.spawn(|| Settings::of(&clone.git));
            let trees = looking::all(workspace, clone);
            let lost = || git::Error::Unexpected { command: "rev-parse".to_owned() };
            let target = target.join().unwrap_or_else(|_| Err(lost()));
            (target, settings.join().unwrap_or_default(), trees)
        });
        let target = target?.and_then(|(name, tips)| Some((name, tips.into_iter().next()?)));
        let mut trees = trees?;
        trees.retain(Tree::stands);
        trees.truncate(TREES_MAX);
        let live: Vec<Session> =
            workspace.look(&Actor::default(), Observed::default(), |view, _| {
                Ok(scan(view, Query::equal(sessions::BY_LIFE, "live", SESSIONS_MAX))?)
            })?;
        let sessions = trees.iter().map(|tree| concerned(tree, &trees, &live)).collect();
        let mut known = Vec::with_capacity(trees.len());
        for tree in &trees {
            known.push(known_to(workspace, tree)?);
        }
        let names = names_of(&trees, target.as_ref().map(|(name, _)| name.as_str()));
        let common = clone.dirs.common_dir.clone();
        Ok(Self { common, trees, names, sessions, target, known, settings })
    }

    fn compare(
        &self,
        git: &Git,
        changed: &Changed,
        memory: &mut Memory,
    ) -> Result<Conflicts, Failure> {
        let snapshots = standing::read_all(git, self, changed, memory)?;
        let mut conflicts = Conflicts {
            target: self.target.as_ref().map(|(name, _)| name.clone()),
            ..Conflicts::default()
        };
        let mut seen: Vec<(usize, Oid)> = Vec::new();
        for (index, snapshot) in snapshots.into_iter().enumerate() {
            let path = self.trees[index].path.to_string_lossy().into_owned();
            let name = self.names[index].clone();
            match snapshot {
                Err(error) => {
                    conflicts.unseen.push(Unseen { name, path, why: error.to_string() });
                }
                Ok(Snapshot { commit: None, .. }) => {}
                Ok(Snapshot { commit: Some(commit), dirty }) => {
                    // A tree that is the target is told by the target's own name.
                    if self.is_target(index, &commit) {
                        continue;
                    }
                    let branch = self.trees[index].branch().map(str::to_owned);
                    let sessions = self.sessions[index].1.clone();
                    conflicts.trees.push(LiveTree { name, path, branch, sessions, dirty });
                    seen.push((index, commit));
                }
            }
        }
        self.fill(git, memory, &seen, &mut conflicts)?;
        Ok(conflicts)
    }

    fn is_target(&self, index: usize, commit: &Oid) -> bool {
        let branch = self.trees[index].branch();
        let target = self.target.as_ref();
        target.is_some_and(|(name, tip)| branch == Some(name) && tip == commit)
    }

    /// Puts every pair into the answer, from memory where nothing changed.
    fn fill(
        &self,
        git: &Git,
        memory: &mut Memory,
        seen: &[(usize, Oid)],
        conflicts: &mut Conflicts,
    ) -> Result<(), Failure> {
        let mut asks: Vec<(usize, Option<usize>, Ask)> = Vec::new();
        for (place, (index, commit)) in seen.iter().enumerate() {
            for (other, second) in &seen[place + 1..] {
                let ask = Ask { a: commit.clone(), b: second.clone(), known: None };
                asks.push((*index, Some(*other), ask));
            }
            if let Some((_, tip)) = &self.target {
                let known = Some(self.known[*index].clone());
                asks.push((*index, None, Ask { a: commit.clone(), b: tip.clone(), known }));
            }
        }
        let mut found: BTreeMap<usize, Found> = BTreeMap::new();
        let mut open: Vec<usize> = Vec::new();
        for (number, (_, _, ask)) in asks.iter().enumerate() {
            match memory.get(&ask.a, &ask.b, &ask.about()) {
                Some(known) => {
                    found.insert(number, known);
                }
                None => open.push(number),
            }
        }
        conflicts.merged = open.len();
        let wanted: Vec<&Ask> = open.iter().map(|number| &asks[*number].2).collect();
        let drivers = match &self.settings {
            Some(settings) => settings.drivers.clone(),
            None => git.own_drivers()?,
        };
        if !open.is_empty() {
            let (merged, sides) = Sides::new(git, &wanted, &drivers, &memory.sides)?.all()?;
            memory.sides = sides;
            for (number, one) in open.iter().zip(merged) {
                let ask = &asks[*number].2;
                memory.put(&ask.a, &ask.b, &ask.about(), &one);
                found.insert(*number, one);
            }
        }
        for (number, (index, other, _)) in asks.iter().enumerate() {
            let found = found.remove(&number).unwrap_or_default();
            conflicts.pairs.push(self.named(*index, *other, found));
        }
        Ok(())
    }

    /// The pair with the names of its trees in every place.
    fn named(&self, index: usize, other: Option<usize>, mut found: Found) -> Pair {
        let about = |index: usize| (self.names[index].clone(), self.sessions[index].1.clone());
        let (a, sessions_a) = about(index);
        let (b, sessions_b) = match (other, &self.target) {
            (Some(other), _) => about(other),
            (None, Some((name, _))) => (name.clone(), Vec::new()),
            (None, None) => (String::new(), Vec::new()),
        };
        for place in found.findings_mut().flat_map(|finding| &mut finding.places) {
            let (name, sessions) = match place.tree.as_str() {
                A => (&a, &sessions_a),
                B => (&b, &sessions_b),
                _ => continue,
            };
            place.tree.clone_from(name);
            place.sessions.clone_from(sessions);
        }
        Pair { a, b, found }
    }
}

/// Who works in a tree: sessions that were started there, and whoever made it.
fn concerned(tree: &Tree, trees: &[Tree], live: &[Session]) -> (Vec<SessionId>, Vec<String>) {
    let maker = tree.record.as_ref().map(|record| &record.by);
    let has_own = |session: &Session| {
        let mut records = trees.iter().filter_map(|tree| tree.record.as_ref());
        records.any(|record| record.by.session == session.session)
    };
    let there = |session: &&Session| {
        let made = maker.is_some_and(|maker| maker.session == session.session);
        let stands = tree.id.as_ref() == Some(&session.tree);
        made || stands && !(tree.main && has_own(session))
    };
    let found: Vec<&Session> = live.iter().filter(there).collect();
    let mut names: Vec<String> = found.iter().map(|session| session.name.clone()).collect();
    if names.is_empty() {
        names.extend(maker.map(|maker| maker.name.clone()));
    }
    (found.iter().map(|session| session.session.clone()).collect(), names)
}

/// What the session of a tree knew when the tree was made, and which paths its task has.
fn known_to(workspace: &mut Workspace, tree: &Tree) -> Result<pairs::Known, Failure> {
    let Some(record) = &tree.record else { return Ok(pairs::Known::default()) };
    let task: Option<Task> = match &record.task {
        Some(id) => workspace
            .look(&Actor::default(), Observed::default(), |view, _| Ok(get(view, id.as_str())?))?,
        None => None,
    };
    Ok(pairs::Known {
        base: Oid::parse(&record.commit),
        session: Some(record.by.session.to_string()),
        paths: task.map(|task| task.paths).unwrap_or_default(),
    })
}

/// Short names that differ from each other and from the target's.
fn names_of(trees: &[Tree], target: Option<&str>) -> Vec<String> {
    let leaf = |tree: &Tree| {
        let name = tree.path.file_name().unwrap_or(tree.path.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let leaves: Vec<String> = trees.iter().map(leaf).collect();
    let one = |(tree, name): (&Tree, &String)| {
        let twice = leaves.iter().filter(|other| *other == name).count() > 1;
        match twice || target == Some(name) {
            true => tree.path.to_string_lossy().into_owned(),
            false => name.clone(),
        }
    };
    trees.iter().zip(&leaves).map(one).collect()
}

/// Every finding of a pair: a short hash that stays the same while it is the same finding, and the
/// words for it. Lines are left out, for they move with every edit above them.
pub fn identities(pair: &Pair) -> Vec<(String, String)> {
    let hash = |text: String| blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
    let file = |clash: &Clashing| {
        let words = format!("{} conflicts ({})", clash.path, clash.kind);
        (hash(format!("file\0{}\0{}", clash.path, clash.kind)), words)
    };
    let other = |finding: &Finding| {
        let places: Vec<String> =
            finding.places.iter().map(|place| format!("{}\0{}", place.tree, place.file)).collect();
        let about = format!("{:?}\0{}\0{}", finding.kind, finding.symbol, places.join("\0"));
        (hash(about), finding.sentence())
    };
    let files = pair.found.files.iter().map(file);
    files.chain(pair.found.findings().map(other)).collect()
}

/// Writes down what nobody had been told of; nothing when there is nothing.
fn tell(
    workspace: &mut Workspace,
    actor: &Actor,
    clone: &Clone,
    scene: &Scene,
    conflicts: &Conflicts,
) -> Result<BTreeSet<String>, Failure> {
    let place = format!("{}\u{1f}{}", clone.host, clone.repository());
    let pairs: Vec<rules::Seen> = conflicts.pairs.iter().map(|pair| scene.seen(pair)).collect();
    let check = |view: &dyn baton_core::view::View, context: &baton_core::context::Context| {
        rules::tell(view, &place, &pairs, context)
    };
    // Most looks have nothing to write, and then need no turn at the store.
    let quiet = workspace
        .look(actor, Observed::default(), |view, context| Ok(check(view, context)?.0.is_empty()))?;
    if quiet {
        return Ok(BTreeSet::new());
    }
    let told = workspace.decide(actor, Observed::default(), check)?;
    Ok(told.fresh)
}

impl Scene {
    fn seen(&self, pair: &Pair) -> rules::Seen {
        let mut files: Vec<String> =
            pair.found.files.iter().map(|clash| clash.path.clone()).collect();
        let places = pair.found.findings().flat_map(|finding| &finding.places);
        files.extend(places.map(|place| place.file.clone()));
        files.sort_unstable();
        files.dedup();
        let findings = identities(pair);
        let from = findings.len() - pair.found.others();
        let duplicates = pair
            .found
            .findings()
            .zip(&findings[from..])
            .filter(|(finding, _)| finding.kind == Kind::Duplicate)
            .map(|(finding, (hash, _))| {
                let place = |one: &Place| format!("{} {}:{}", one.tree, one.file, one.line);
                let places = finding.places.iter().map(place).collect();
                (hash.clone(), finding.symbol.clone(), places)
            });
        let duplicates = duplicates.collect();
        let mut sessions: Vec<SessionId> = Vec::new();
        for (name, (ids, _)) in self.names.iter().zip(&self.sessions) {
            if *name == pair.a || *name == pair.b {
                sessions.extend(
                    ids.iter().filter(|id| !sessions.contains(id)).cloned().collect::<Vec<_>>(),
                );
            }
        }
        let (a, b) = (pair.a.clone(), pair.b.clone());
        rules::Seen { a, b, files, findings, duplicates, sessions }
    }
}
