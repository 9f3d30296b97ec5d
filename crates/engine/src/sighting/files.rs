//! How the files under claims look, and saving what their holders left there.
//!
//! Owns every question to git about held paths. However many claims are asked about, git is started
//! a few times for each tree: each start is a process. Uncommitted changes of a holder that may be
//! gone are saved under `refs/baton/rescue/` before anyone may overwrite them. That a file is in no
//! status says nothing where git does not look at it: what is ignored is never called committed.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use baton_core::claim::Claim;
use baton_core::context::{Life, Sighting};
use baton_core::id::{ClaimId, TreeId};
use baton_core::pattern::Kind;
use baton_core::resource::Resource;
use baton_core::time::{Moment, Span};

use super::RESCUE_PREFIX;
use crate::doors::committed;
use crate::failure::Failure;
use crate::git::{self, Changed, Git, Rescue, Status};
use crate::workspace::Workspace;

/// A file that git does not look at is saved up to this: what is larger was mostly built.
const HIDDEN_BYTES_MAX: u64 = 1024 * 1024;

/// What the files of each claim look like; saved first when their holder may be gone.
pub fn sight(
    workspace: &mut Workspace,
    looks: Vec<(Claim, Life)>,
) -> Result<BTreeMap<ClaimId, Sighting>, Failure> {
    let mut sightings = BTreeMap::new();
    let mut trees: BTreeMap<PathBuf, Vec<(Claim, Life)>> = BTreeMap::new();
    if looks.is_empty() {
        return Ok(sightings);
    }
    let clock = FileClock::now(workspace)?;
    let mut roots: BTreeMap<TreeId, Option<PathBuf>> = BTreeMap::new();
    for (claim, life) in looks {
        let sighting = Sighting { life, dirty: Vec::new(), rescue: None };
        sightings.insert(claim.claim.clone(), sighting);
        // Asking git costs a process: not for files that nobody touched while they were held.
        let tree = &claim.hold.tree;
        let root = roots.entry(tree.clone()).or_insert_with(|| tree_root(workspace, tree));
        if let Some(root) = root.clone()
            && workspace.place.git.is_some()
            && !untouched(&root, &clock, &claim)
        {
            trees.entry(root).or_default().push((claim, life));
        }
    }
    for (root, looks) in trees {
        look_in_tree(&root, &looks, &mut sightings)?;
    }
    Ok(sightings)
}

fn look_in_tree(
    root: &Path,
    looks: &[(Claim, Life)],
    sightings: &mut BTreeMap<ClaimId, Sighting>,
) -> Result<(), Failure> {
    let mut asked: Vec<String> = looks.iter().flat_map(|(claim, _)| prefixes(claim)).collect();
    asked.sort_unstable();
    asked.dedup();
    if asked.is_empty() {
        return Ok(());
    }
    let git = Git::in_tree(root)?;
    let mut status = git.status(&asked)?;
    let hidden = hidden_of_the_gone(root, &git, looks, &status)?;
    status.changed.extend(hidden);
    let mut rescues = Vec::new();
    for (claim, life) in looks {
        let Some(sighting) = sightings.get_mut(&claim.claim) else { continue };
        let changed = changed_under(claim, &status);
        let literal = |one: &&Changed| Resource::literal(&one.path).ok();
        sighting.dirty = changed.iter().filter_map(literal).collect();
        if *life != Life::Alive && !changed.is_empty() {
            let holder = &claim.hold.holder;
            let reference = format!("{RESCUE_PREFIX}/{}/{}", holder.session, claim.claim);
            // The claim may go on: that its holder looks gone to another is enough.
            let whose = format!("Uncommitted changes of {}", holder.name);
            let message = format!("{whose}, saved before another could overwrite them");
            sighting.rescue = Some(reference.clone());
            rescues.push(Rescue { changed, reference, message });
        }
    }
    save(&git, &status, &rescues)
}

/// Files that holders who may be gone hold by name, and that no status shows: whatever they wrote
/// there is in no commit. Whoever is alive keeps such a file for its lease, and no longer.
fn hidden_of_the_gone(
    root: &Path,
    git: &Git,
    looks: &[(Claim, Life)],
    status: &Status,
) -> Result<Vec<Changed>, Failure> {
    let gone = looks.iter().filter(|(_, life)| *life != Life::Alive);
    let named = gone.flat_map(|(claim, _)| &claim.hold.resources).filter_map(literal_path);
    let shown = status.paths();
    let small = |path: &String| {
        let found = std::fs::symlink_metadata(root.join(path));
        found.is_ok_and(|found| found.is_file() && found.len() <= HIDDEN_BYTES_MAX)
    };
    let mut unseen: Vec<String> = named.filter(|path| !shown.contains(&path.as_str())).collect();
    unseen.retain(small);
    unseen.sort_unstable();
    unseen.dedup();
    if unseen.is_empty() {
        return Ok(Vec::new());
    }
    let hidden = git.hidden(&unseen)?;
    unseen.retain(|path| hidden.iter().any(|one| is_at_or_below(path, one)));
    Ok(unseen.into_iter().map(Changed::unstaged).collect())
}

fn literal_path(resource: &Resource) -> Option<String> {
    match resource {
        Resource::Path(pattern) if pattern.is_literal() => Some(pattern.text().to_owned()),
        _ => None,
    }
}

/// Is it that file, or in that folder, which has a `/` at its end?
fn is_at_or_below(path: &str, name: &str) -> bool {
    path == name || name.ends_with('/') && path.starts_with(name)
}

fn save(git: &Git, status: &Status, rescues: &[Rescue<'_>]) -> Result<(), Failure> {
    match git.rescue(status, rescues) {
        // Too much to be saved at once may be saved one by one.
        Err(git::Error::TooLarge { .. }) if rescues.len() > 1 => {
            rescues.iter().try_for_each(|one| save(git, status, std::slice::from_ref(one)))
        }
        saved => Ok(saved.map(drop)?),
    }
}

/// What git is asked about: the literal part bounds where it looks, the pattern then decides.
fn prefixes(claim: &Claim) -> Vec<String> {
    let prefix = |resource: &Resource| match resource {
        Resource::Name { .. } => None,
        // The whole tree is asked for with the empty path.
        Resource::Path(pattern) if pattern.kind() == Kind::Glob || pattern.text() == "." => {
            Some(String::new())
        }
        Resource::Path(pattern) => Some(pattern.text().to_owned()),
    };
    claim.hold.resources.iter().filter_map(prefix).collect()
}

fn changed_under<'a>(claim: &Claim, status: &'a Status) -> Vec<&'a Changed> {
    let held = |one: &&Changed| {
        Resource::literal(&one.path)
            .is_ok_and(|path| claim.hold.resources.iter().any(|held| held.overlaps(&path)))
    };
    status.changed.iter().filter(held).collect()
}

/// The folder of a tree, when it is on this machine.
pub(crate) fn tree_root(workspace: &Workspace, tree: &TreeId) -> Option<PathBuf> {
    if *tree == workspace.tree {
        return Some(workspace.place.root.clone());
    }
    workspace.place.trees().into_iter().find_map(|(id, root)| (id == tree.0).then_some(root))
}

/// Those claims in a tree of which every path exists, was written after the grant, and has no
/// uncommitted change. A path that was never written may be about to be: its claim stays. So does
/// one over a file that git does not look at: nothing tells that this is as it was. Whoever has
/// just committed what it held before that is done with it, whenever it was written: a command may
/// have written it before it was claimed, and clocks of files are a little slow.
pub(super) fn settled(
    workspace: &mut Workspace,
    tree: &TreeId,
    mut claims: Vec<Claim>,
    just_committed: &[Resource],
) -> Result<Vec<Claim>, Failure> {
    let Some(root) = tree_root(workspace, tree).filter(|_| workspace.place.git.is_some()) else {
        return Ok(Vec::new());
    };
    let clock = FileClock::now(workspace)?;
    let record = committed::record(&workspace.place).filter(|_| !just_committed.is_empty());
    let committed_at = record.and_then(|record| clock.changed_at(&record));
    claims.retain(|claim| {
        let was_before = committed_at.is_some_and(|at| claim.granted_at <= at);
        let is_done = |resource: &Resource| {
            was_before && just_committed.contains(resource)
                || crate::resources::path_on_disk(&root, resource)
                    .and_then(|path| clock.changed_at(&path))
                    .is_some_and(|changed| changed > claim.granted_at)
        };
        claim.hold.resources.iter().all(is_done)
    });
    if claims.is_empty() {
        return Ok(claims);
    }
    let asked: Vec<String> = claims.iter().flat_map(prefixes).collect();
    let git = Git::in_tree(&root)?;
    let status = git.status(&asked)?;
    claims.retain(|claim| changed_under(claim, &status).is_empty());
    if claims.is_empty() {
        return Ok(claims);
    }
    let asked: Vec<String> = claims.iter().flat_map(prefixes).collect();
    let hidden = git.hidden(&asked)?;
    claims.retain(|claim| !hidden.iter().any(|name| holds_hidden(claim, name, &root, &clock)));
    Ok(claims)
}

/// Is this one of the claim's files, and written since it was granted?
fn holds_hidden(claim: &Claim, name: &str, root: &Path, clock: &FileClock) -> bool {
    let file = name.trim_end_matches('/');
    let held = |resource: &Resource| {
        literal_path(resource).is_some_and(|path| is_at_or_below(&path, name))
            || Resource::literal(file).is_ok_and(|file| resource.overlaps(&file))
    };
    let written = |path: PathBuf| clock.changed_at(&path).is_some_and(|at| at > claim.granted_at);
    claim.hold.resources.iter().filter(|one| held(one)).any(|resource| {
        match literal_path(resource) {
            Some(path) => written(root.join(path)),
            None => written(root.join(file)),
        }
    })
}

/// Surely nothing was written, made or removed under this claim. Only single files can be judged
/// so; a folder or a pattern is asked of git.
fn untouched(root: &Path, clock: &FileClock, claim: &Claim) -> bool {
    let old = |resource: &Resource| match resource {
        Resource::Name { .. } => true,
        Resource::Path(pattern) if !pattern.is_literal() => false,
        Resource::Path(pattern) => {
            let path = root.join(pattern.text());
            // The nearest thing that exists: a removed file changes the folder it was in.
            let nearest = path.ancestors().find_map(|path| clock.changed_at(path));
            nearest.is_some_and(|changed| changed + FILE_TIME_STEP < claim.granted_at)
        }
    };
    claim.hold.resources.iter().all(old)
}

/// Times of files on the store's clock, which a jump of the wall clock does not move.
pub(crate) struct FileClock {
    store: Moment,
    wall: Moment,
}

/// File systems count time in steps; what changed within this of a grant counts as after it.
const FILE_TIME_STEP: Span = Span::seconds(2);
/// The same where they count in fractions of a second.
const FILE_TIME_FINE: Span = Span(10);

/// The two clocks are looked at until there was no more than this between them, so often at most.
const CLOCKS_APART: Span = Span(2);
const CLOCK_LOOKS_MAX: usize = 4;

fn wall_clock() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Moment(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

impl FileClock {
    /// Both clocks at one moment, or nearly so: on a busy machine much may pass between two looks,
    /// and files would seem older than they are by that.
    pub(crate) fn now(workspace: &mut Workspace) -> Result<Self, Failure> {
        workspace.store.leave_this_moment();
        let (mut apart, mut clock) = Self::look(workspace)?;
        for _ in 1..CLOCK_LOOKS_MAX {
            if apart <= CLOCKS_APART {
                break;
            }
            let (again, later) = Self::look(workspace)?;
            // What is no nearer the second time is far away: a shared store, not a busy moment.
            let is_far = again.0 * 2 > apart.0;
            if again < apart {
                (apart, clock) = (again, later);
            }
            if is_far {
                break;
            }
        }
        Ok(clock)
    }

    /// Both clocks, and how far apart the looks at them were at most.
    fn look(workspace: &mut Workspace) -> Result<(Span, Self), Failure> {
        let before = wall_clock();
        let store = workspace.store.snapshot()?.state().now;
        let wall = wall_clock();
        Ok((wall.since(before), Self { store, wall }))
    }

    /// Was it written, made or removed after that moment, as exactly as the file system counts?
    pub(crate) fn touched_since(&self, path: &Path, moment: Moment) -> bool {
        let Ok(metadata) = path.symlink_metadata() else {
            return true;
        };
        let (changed, fine) = times(&metadata);
        let step = if fine { FILE_TIME_FINE } else { FILE_TIME_STEP };
        self.store - self.wall.since(changed) + step >= moment
    }

    /// When the file last changed, content or attributes, as exactly as its file system counts.
    fn changed_at(&self, path: &Path) -> Option<Moment> {
        let (changed, _) = times(&path.symlink_metadata().ok()?);
        Some(self.store - self.wall.since(changed))
    }
}

/// When a file changed by the wall clock, and whether its file system counts fractions of a second.
fn times(metadata: &Metadata) -> (Moment, bool) {
    let time = |seconds: i64, nanos: i64| {
        let millis = seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000);
        Moment(u64::try_from(millis).unwrap_or(0))
    };
    let changed = time(metadata.ctime(), metadata.ctime_nsec());
    let changed = changed.max(time(metadata.mtime(), metadata.mtime_nsec()));
    (changed, metadata.ctime_nsec().max(metadata.mtime_nsec()) > 0)
}
