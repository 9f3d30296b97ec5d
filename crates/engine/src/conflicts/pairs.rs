//! What stands between two snapshots: git's own conflicts, and what git calls clean.
//!
//! Owns the gathering for many pairs at once, so that git is asked each question once for all of
//! them. Which texts mean what is decided in the modules beside this one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_core::resource::Resource;

use super::finding::{Clashing, Found};
use super::sides::{FILES_READ_MAX, Kept, Library, Side, is_read};
use super::{comparing, lines, undo};
use crate::failure::Failure;
use crate::git::{Clash, Difference, Git, Oid};

/// What lies between two commits.
type Change = ((Oid, Oid), Vec<Difference>);

/// Files that are read for their lines; of larger ones only the name is told.
pub(super) const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Merges that are worth a process of their own.
const SHARE_MIN: usize = 32;
/// A NUL within so many bytes means that it is no text.
const TEXT_BYTES_TRIED: usize = 8_000;

/// What the session of a tree knew, and where it is at home.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) base: Option<Oid>,
    pub(super) session: Option<String>,
    pub(super) paths: Vec<Resource>,
}

/// A pair to be looked at; `known` when the second is the target.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) a: Oid,
    pub(super) b: Oid,
    pub(super) known: Option<Known>,
}

impl Ask {
    /// What the answer depends on besides the two commits.
    pub(super) fn about(&self) -> String {
        let Some(known) = &self.known else { return String::new() };
        let base = known.base.as_ref().map_or("", Oid::as_str);
        let paths: Vec<String> = known.paths.iter().map(ToString::to_string).collect();
        format!("{base} {} {}", known.session.as_deref().unwrap_or_default(), paths.join(" "))
    }
}

/// The pairs of one look, with what git said of them.
pub(super) struct Sides<'a> {
    git: &'a Git,
    asks: &'a [&'a Ask],
    /// Merge drivers of the repository itself, which never run.
    drivers: &'a [String],
    /// Sides that were read before.
    kept: &'a Kept,
    /// Where each pair parts.
    bases: Vec<Option<Oid>>,
}

impl<'a> Sides<'a> {
    pub(super) fn new(
        git: &'a Git,
        asks: &'a [&'a Ask],
        drivers: &'a [String],
        kept: &'a Kept,
    ) -> Result<Self, Failure> {
        let mut tips: Vec<Oid> = asks.iter().flat_map(|ask| [&ask.a, &ask.b]).cloned().collect();
        tips.sort_unstable();
        tips.dedup();
        let place = |oid: &Oid| tips.binary_search(oid).unwrap_or_default();
        let wanted: Vec<(usize, usize)> =
            asks.iter().map(|ask| (place(&ask.a), place(&ask.b))).collect();
        let found = git.bases(&tips, &wanted.iter().copied().collect::<BTreeSet<_>>())?;
        let bases = wanted.iter().map(|pair| found.get(pair).cloned().flatten()).collect();
        Ok(Self { git, asks, drivers, kept, bases })
    }

    /// What was found between each, and the sides that were read for it.
    pub(super) fn all(&self) -> Result<(Vec<Found>, Kept), Failure> {
        // What git calls clean is looked for while git merges.
        let (merged, sides) = std::thread::scope(|scope| {
            let merging = scope.spawn(|| self.merges());
            let sides = self.sides();
            let lost = || crate::git::Error::Unexpected { command: "merge-tree".to_owned() };
            (merging.join().unwrap_or_else(|_| Err(lost().into())), sides)
        });
        let (mut all, sides) = (merged?, sides?);
        for (number, found) in all.iter_mut().enumerate() {
            let ask = self.asks[number];
            if let Some(base) = self.bases[number].as_ref().filter(|_| !self.one_sided(number)) {
                let side = |tip: &Oid| sides.get(&(base.clone(), tip.clone()));
                if let (Some(a), Some(b)) = (side(&ask.a), side(&ask.b)) {
                    comparing::compare(a, b, found);
                }
            }
            if let Some(known) = &ask.known {
                self.undo(number, known, found)?;
            }
        }
        Ok((all, sides))
    }

    /// What every side gained and lost, by where it began and what it is.
    fn sides(&self) -> Result<Kept, Failure> {
        let mut pairs: BTreeSet<(Oid, Oid)> = BTreeSet::new();
        for number in (0..self.asks.len()).filter(|number| !self.one_sided(*number)) {
            let ask = self.asks[number];
            if let Some(base) = &self.bases[number] {
                pairs.extend([&ask.a, &ask.b].map(|tip| (base.clone(), tip.clone())));
            }
        }
        let mut sides = Kept::new();
        let mut unread: Vec<(Oid, Oid)> = Vec::new();
        for pair in pairs {
            match self.kept.get(&pair) {
                Some(known) => drop(sides.insert(pair, known.clone())),
                None => unread.push(pair),
            }
        }
        let (changes, mut library) = self.changes(unread)?;
        for (pair, differences) in changes {
            sides.insert(pair, Arc::new(Side::of(&differences, &mut library)));
        }
        Ok(sides)
    }

    /// What every side changed, and the texts that are read of it.
    fn changes(&self, pairs: Vec<(Oid, Oid)>) -> Result<(Vec<Change>, Library), Failure> {
        let found = self.git.differences(&pairs)?;
        let read = found
            .iter()
            .flat_map(|one| one.iter().filter(|one| is_read(&one.path)).take(FILES_READ_MAX))
            .flat_map(|one| [&one.before, &one.after]);
        let blobs: BTreeSet<Oid> = read.flatten().cloned().collect();
        let blobs = self.git.contents(&blobs, FILE_BYTES_MAX)?;
        Ok((pairs.into_iter().zip(found).collect(), Library::of(blobs)))
    }

    /// Does the tree take back what others landed? Only a tree that began elsewhere than where it
    /// parts from the target now, or whose task has paths, is asked.
    fn undo(&self, number: usize, known: &Known, found: &mut Found) -> Result<(), Failure> {
        let ask = self.asks[number];
        let moved = known.base.is_some() && known.base != self.bases[number];
        if ask.a == ask.b || !moved && known.paths.is_empty() {
            return Ok(());
        }
        let (base, session) = (known.base.as_ref(), known.session.as_deref());
        let undone = undo::undone(self.git, &ask.a, base, &ask.b, session, &known.paths)?;
        found.undo.extend(undone.iter().map(undo::Undone::finding));
        Ok(())
    }

    /// Does one side have nothing of its own? Then there is nothing to merge.
    fn one_sided(&self, number: usize) -> bool {
        let ask = self.asks[number];
        let base = self.bases[number].as_ref();
        base == Some(&ask.a) || base == Some(&ask.b)
    }

    fn merges(&self) -> Result<Vec<Found>, Failure> {
        let open: Vec<usize> =
            (0..self.asks.len()).filter(|number| !self.one_sided(*number)).collect();
        let pairs: Vec<(Oid, Oid)> = open
            .iter()
            .map(|number| (self.asks[*number].a.clone(), self.asks[*number].b.clone()))
            .collect();
        let mut clashes: BTreeMap<usize, Vec<Clash>> = BTreeMap::new();
        for (number, merged) in
            open.into_iter().zip(merge_side_by_side(self.git, &pairs, self.drivers)?)
        {
            clashes.insert(number, merged);
        }
        let blobs = clashes.values().flatten().flat_map(|clash| clash.blobs.iter().flatten());
        let texts = self.git.contents(&blobs.cloned().collect(), FILE_BYTES_MAX)?;
        let found = (0..self.asks.len()).map(|number| {
            let files = clashes.remove(&number).unwrap_or_default();
            let files = files.into_iter().map(|clash| clashing(clash, &texts)).collect();
            Found { files, ..Found::default() }
        });
        Ok(found.collect())
    }
}

/// Merges the pairs in as many processes as there are cores.
fn merge_side_by_side(
    git: &Git,
    pairs: &[(Oid, Oid)],
    drivers: &[String],
) -> Result<Vec<Vec<Clash>>, Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = pairs.len().div_ceil(threads).max(SHARE_MIN);
    let parts: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = pairs
            .chunks(share)
            .map(|part| scope.spawn(move || git.merge_many(part, drivers)))
            .collect();
        started.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut merged = Vec::with_capacity(pairs.len());
    for part in parts {
        let lost = || crate::git::Error::Unexpected { command: "merge-tree".to_owned() };
        merged.extend(part.unwrap_or_else(|_| Err(lost()))?);
    }
    Ok(merged)
}

fn clashing(clash: Clash, texts: &BTreeMap<Oid, Vec<u8>>) -> Clashing {
    let text = |blob: &Option<Oid>| match blob {
        Some(blob) => texts.get(blob).and_then(|bytes| readable(bytes)),
        None => Some(String::new()),
    };
    let [base, ours, theirs] = &clash.blobs;
    let kind = if clash.kind.is_empty() { "contents".to_owned() } else { clash.kind.clone() };
    let ranges = match (text(base), text(ours), text(theirs)) {
        (Some(base), Some(a), Some(b)) if ours.is_some() && theirs.is_some() => {
            lines::meetings(&base, &a, &b)
        }
        _ => Vec::new(),
    };
    Clashing { path: clash.path, kind, ranges }
}

/// A blob as text, if it is any. Bytes that are no UTF-8 become a letter each, so that two that
/// differ stay different.
pub(super) fn readable(bytes: &[u8]) -> Option<String> {
    let tried = &bytes[..bytes.len().min(TEXT_BYTES_TRIED)];
    if tried.contains(&0) {
        return None;
    }
    let text = std::str::from_utf8(bytes).map(str::to_owned);
    Some(text.unwrap_or_else(|_| bytes.iter().copied().map(char::from).collect()))
}
