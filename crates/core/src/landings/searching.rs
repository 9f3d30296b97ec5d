//! Which candidate to check next, and whom to blame.
//!
//! Candidates are stacked: prefix `n` has the first `n` landings upon the target. Owns the search
//! for the longest prefix that passes and for the landing that breaks the next one. Entries that
//! have nothing to do with each other are checked together; a failure is halved down to one entry,
//! and that one is tried once more before it is blamed. Pure: results go in, questions come out.

use std::collections::{BTreeMap, BTreeSet};

/// The most landings that are checked as one.
pub const BATCH_MAX: usize = 64;
/// A failure counts when it was seen this often in a row.
const FAILURES: u32 = 2;

/// What matters of one landing: what it changes, and what it comes after.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// None when they are too many to tell: then it stands alone.
    pub paths: Option<BTreeSet<String>>,
    pub task: Option<String>,
    pub after: Vec<String>,
}

impl Footprint {
    fn meets(&self, other: &Self) -> bool {
        let follows =
            |one: &Self, two: &Self| two.task.as_ref().is_some_and(|task| one.after.contains(task));
        match (&self.paths, &other.paths) {
            (Some(mine), Some(theirs)) => {
                !mine.is_disjoint(theirs) || follows(self, other) || follows(other, self)
            }
            _ => true,
        }
    }
}

/// The prefixes at which a batch ends.
pub fn batches(entries: &[Footprint]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut begin = 0;
    for place in 0..entries.len() {
        let batch = &entries[begin..place];
        if batch.len() >= BATCH_MAX || batch.iter().any(|other| other.meets(&entries[place])) {
            ends.push(place);
            begin = place;
        }
    }
    if !entries.is_empty() {
        ends.push(entries.len());
    }
    ends
}

/// What is known so far.
#[derive(Clone, Debug)]
pub struct Search {
    ends: Vec<usize>,
    /// The longest prefix that passed; 0 is the target itself.
    good: usize,
    /// How often each prefix failed since it last passed.
    failures: BTreeMap<usize, u32>,
    running: BTreeSet<usize>,
}

/// Where the search stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not known yet.
    Open,
    /// All passes.
    Whole,
    /// This entry, counted from zero, breaks what passes without it.
    Guilty(usize),
}

impl Search {
    pub fn new(entries: &[Footprint]) -> Self {
        let (failures, running) = (BTreeMap::new(), BTreeSet::new());
        Self { ends: batches(entries), good: 0, failures, running }
    }

    /// The longest prefix that is known to pass.
    pub fn good(&self) -> usize {
        self.good
    }

    /// The longest prefix that may land now. A batch lands in one piece, unless it is known that it
    /// does not pass as a whole.
    pub fn ripe(&self) -> usize {
        match self.bad() {
            Some(_) => self.good,
            None => self.ends.iter().rev().find(|end| **end <= self.good).copied().unwrap_or(0),
        }
    }

    fn whole(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The shortest prefix beyond the good one that is known to fail.
    fn bad(&self) -> Option<usize> {
        self.failures.range(self.good + 1..).next().map(|(prefix, _)| *prefix)
    }

    pub fn verdict(&self) -> Verdict {
        if self.good == self.whole() {
            return Verdict::Whole;
        }
        match self.bad() {
            Some(bad) if bad == self.good + 1 && self.failures[&bad] >= FAILURES => {
                Verdict::Guilty(self.good)
            }
            _ => Verdict::Open,
        }
    }

    /// What to check now, so that `jobs` checks run. Each is told once; a result brings more.
    pub fn next(&mut self, jobs: usize) -> Vec<usize> {
        if self.verdict() != Verdict::Open {
            return Vec::new();
        }
        let free = jobs.saturating_sub(self.running.len());
        let mut wanted: Vec<usize> = Vec::new();
        match self.bad() {
            None => {
                let ahead = self.ends.iter().filter(|end| **end > self.good);
                wanted.extend(ahead.clone().filter(|end| !self.running.contains(*end)));
                // A job that would be idle looks inside the first batch: should that fail, a part
                // of the search is done already.
                let idle = free.saturating_sub(wanted.len());
                wanted.extend(ahead.take(1).flat_map(|end| self.inside(*end, idle)));
            }
            Some(bad) if bad == self.good + 1 => {
                // The blame is near: once more. A first failure never counts alone.
                wanted.extend((!self.running.contains(&bad)).then_some(bad));
            }
            Some(bad) => wanted.extend(self.inside(bad, jobs)),
        }
        wanted.dedup();
        wanted.truncate(free);
        self.running.extend(&wanted);
        wanted
    }

    /// At most `count` prefixes that divide what lies between the good one and `end`. None while
    /// one is running there: it divides it already, and more would only guess.
    fn inside(&self, end: usize, count: usize) -> Vec<usize> {
        if self.running.range(self.good + 1..end).next().is_some() {
            return Vec::new();
        }
        let parts = (count + 1).min(end - self.good);
        (1..parts).map(|part| self.good + (end - self.good) * part / parts).collect()
    }

    /// True when the same prefix had failed before: a flaky check.
    pub fn passed(&mut self, prefix: usize) -> bool {
        self.running.remove(&prefix);
        let flaky = self.failures.remove(&prefix).is_some();
        self.good = self.good.max(prefix);
        if flaky {
            // Larger ones may have failed for the same reason, and are looked at again.
            self.failures.retain(|_, count| *count >= FAILURES);
        }
        flaky
    }

    pub fn failed(&mut self, prefix: usize) {
        self.running.remove(&prefix);
        *self.failures.entry(prefix).or_default() += 1;
    }

    /// Checks that no longer tell anything: a shorter one failed, or a longer one passed.
    pub fn useless(&self) -> Vec<usize> {
        let bad = self.bad().unwrap_or(usize::MAX);
        let idle = |prefix: &&usize| **prefix <= self.good || **prefix > bad;
        self.running.iter().filter(idle).copied().collect()
    }

    pub fn dropped(&mut self, prefix: usize) {
        self.running.remove(&prefix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(count: usize) -> Vec<Footprint> {
        let one = |place: usize| Footprint {
            paths: Some([format!("f{place}")].into()),
            ..Footprint::default()
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn only_what_has_nothing_in_common_is_one_batch() {
        let mut entries = apart(5);
        assert_eq!(batches(&entries), [5]);
        entries[3].paths = Some(["f0".to_owned()].into());
        assert_eq!(batches(&entries), [3, 5]);
        entries[1].paths = None;
        assert_eq!(batches(&entries), [1, 2, 5], "what is not known stands alone");
        let mut tasks = apart(3);
        tasks[0].task = Some("t1".to_owned());
        tasks[2].after = vec!["t1".to_owned()];
        assert_eq!(batches(&tasks), [2, 3], "what follows a task is not checked with it");
        assert_eq!(batches(&apart(BATCH_MAX + 1)), [BATCH_MAX, BATCH_MAX + 1]);
        assert!(batches(&[]).is_empty());
    }

    /// Drives a search against an oracle; the number of rounds, and the verdict.
    fn drive(count: usize, jobs: usize, mut fails: impl FnMut(usize) -> bool) -> (usize, Search) {
        let mut search = Search::new(&apart(count));
        for round in 0..1_000 {
            if search.verdict() != Verdict::Open {
                return (round, search);
            }
            let wanted = search.next(jobs);
            assert!(!wanted.is_empty() && wanted.len() <= jobs, "stuck: {search:?}");
            for prefix in wanted {
                if fails(prefix) {
                    search.failed(prefix);
                } else {
                    let _ = search.passed(prefix);
                }
            }
            for prefix in search.useless() {
                search.dropped(prefix);
            }
        }
        panic!("no end: {search:?}");
    }

    #[test]
    fn the_guilty_is_found_and_only_that() {
        for count in 1..70 {
            for guilty in 0..count {
                for jobs in 1..5 {
                    let (_, search) = drive(count, jobs, |prefix| prefix > guilty);
                    assert_eq!(search.verdict(), Verdict::Guilty(guilty), "{count} {jobs}");
                    assert_eq!(search.good(), guilty);
                }
            }
        }
    }

    #[test]
    fn when_all_is_well_one_check_tells() {
        let (rounds, search) = drive(40, 2, |_| false);
        assert_eq!((rounds, search.verdict()), (1, Verdict::Whole));
    }

    #[test]
    fn a_batch_lands_in_one_piece_unless_it_is_known_to_fail() {
        let mut search = Search::new(&apart(40));
        assert_eq!(search.next(2), [40, 20], "the whole, and its half beside it");
        let _ = search.passed(20);
        assert_eq!((search.good(), search.ripe()), (20, 0));
        let (mut fine, mut bad) = (search.clone(), search);
        let _ = fine.passed(40);
        assert_eq!(fine.ripe(), 40);
        bad.failed(40);
        assert_eq!(bad.ripe(), 20);
        assert_eq!(bad.next(2), [26, 33], "and a part of the search is done");
    }

    #[test]
    fn a_failure_that_does_not_come_again_blames_nobody() {
        for flaky in 1..=40 {
            let mut seen = BTreeSet::new();
            let fails = |prefix: usize| prefix >= flaky && seen.insert(prefix);
            let (_, search) = drive(40, 2, fails);
            assert_eq!(search.verdict(), Verdict::Whole, "{flaky}");
        }
    }

    #[test]
    fn halving_takes_few_rounds() {
        let worst = (0..40).map(|guilty| drive(40, 2, |prefix| prefix > guilty).0).max();
        assert!(worst <= Some(5), "{worst:?}");
    }
}
