//! Which of the offered tasks a session gets.
//!
//! Owns the order (priority, how much it unblocks, age) and the test whether a task's paths are in
//! others' hands. However many tasks there are, at most [`CONSIDERED_MAX`] are looked at; they are
//! read as little as possible of, a few at first, and paths that occur again are tested once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim, Holder};
use crate::context::Context;
use crate::id::{SessionId, TaskId};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::Places;
use crate::task::dossier::Dossier;
use crate::task::{self, Task};
use crate::view::{Query, Row, View, only, parse};

/// Of so many the first without a conflict is taken; if all conflict, the first.
pub const CONSIDERED_MAX: usize = 200;
/// So many are read at first: mostly one of them will do.
const FIRST_PAGE: usize = 8;
/// When all that others hold is no more than this, it is read at once.
const WHOLE_MAX: u32 = 64;
/// How many holders are read at one place of the index. Where there are more, there is a conflict.
const PER_PLACE_MAX: u32 = 256;
/// How many candidates are tested together, growing.
const CHUNKS: [usize; 4] = [1, 7, 32, CONSIDERED_MAX];

/// As much of a task as choosing needs.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Candidate {
    pub(crate) task: TaskId,
    title: String,
    priority: u8,
    #[serde(default)]
    unblocks: u32,
    #[serde(default)]
    paths: Vec<String>,
}

impl Candidate {
    fn order(&self) -> (u8, std::cmp::Reverse<u32>, u64) {
        (self.priority, std::cmp::Reverse(self.unblocks), self.task.number())
    }
}

impl From<&Task> for Candidate {
    fn from(task: &Task) -> Self {
        Self {
            task: task.task.clone(),
            title: task.title.clone(),
            priority: task.priority,
            unblocks: task.unblocks,
            paths: task.paths.iter().map(Resource::to_string).collect(),
        }
    }
}

/// A candidate, and why it was chosen or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Considered {
    pub task: TaskId,
    pub title: String,
    pub priority: u8,
    pub unblocks: u32,
    pub verdict: Verdict,
    /// Who has its paths in hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Chosen,
    Conflicts,
    /// Something before it would do.
    NotNeeded,
}

/// What stands in a task's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    pub with: Holder,
    pub held: Resource,
    /// The other's task, when it is not a claim that conflicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

impl Considered {
    /// A task that is taken to be reviewed: its paths are in nobody's way.
    pub(crate) fn review(task: &Task) -> Self {
        Self {
            task: task.task.clone(),
            title: task.title.clone(),
            priority: task.priority,
            unblocks: task.unblocks,
            verdict: Verdict::Chosen,
            conflict: None,
        }
    }
}

/// Where candidates come from.
pub(crate) struct Offer<'a> {
    pub(crate) role: Option<&'a str>,
    /// The phase that is open.
    pub(crate) phase: Option<u16>,
    /// Tasks that this very decision makes ready.
    pub(crate) loose: Vec<Candidate>,
    pub(crate) me: &'a SessionId,
}

/// The candidates in order of choice: those without a conflict first, each with what is in its
/// way. At least `wanted` are tested, if there are so many.
pub(crate) fn choose(
    view: &dyn View,
    offer: &Offer<'_>,
    wanted: usize,
    context: &Context,
) -> Result<Vec<(Candidate, Option<Conflict>, Verdict)>, Refusal> {
    let mut hands = Hands::new(offer.me);
    let (mut page, mut complete) = offer.read(view, FIRST_PAGE.max(wanted))?;
    let mut tested: Vec<Option<Conflict>> = Vec::new();
    let mut free = 0;
    for chunk in CHUNKS {
        let until = tested.len() + chunk;
        if until > page.len() && !complete {
            (page, complete) = offer.read(view, CONSIDERED_MAX)?;
        }
        let next = &page[tested.len()..page.len().min(until)];
        for conflict in hands.test(view, next, context)? {
            free += usize::from(conflict.is_none());
            tested.push(conflict);
        }
        if free >= wanted || tested.len() >= page.len() && complete {
            break;
        }
    }
    let rest = page.len() - tested.len();
    tested.extend(std::iter::repeat_n(None, rest));
    let mut left = wanted;
    let looked_at = page.len() - rest;
    let mut all: Vec<_> = Vec::with_capacity(page.len());
    for (at, (candidate, conflict)) in page.into_iter().zip(tested).enumerate() {
        let verdict = match &conflict {
            Some(_) => Verdict::Conflicts,
            None if at < looked_at && left > 0 => {
                left -= 1;
                Verdict::Chosen
            }
            None => Verdict::NotNeeded,
        };
        all.push((candidate, conflict, verdict));
    }
    // Not enough without a conflict: the first of the others make up for it.
    for (_, _, verdict) in all.iter_mut().filter(|(_, _, one)| *one == Verdict::Conflicts) {
        if left > 0 {
            left -= 1;
            *verdict = Verdict::Chosen;
        }
    }
    Ok(all)
}

impl From<&(Candidate, Option<Conflict>, Verdict)> for Considered {
    fn from((candidate, conflict, verdict): &(Candidate, Option<Conflict>, Verdict)) -> Self {
        Self {
            task: candidate.task.clone(),
            title: candidate.title.clone(),
            priority: candidate.priority,
            unblocks: candidate.unblocks,
            verdict: *verdict,
            conflict: conflict.clone(),
        }
    }
}

impl Offer<'_> {
    /// The first `count` in the order of service, and whether that is all there is.
    fn read(&self, view: &dyn View, count: usize) -> Result<(Vec<Candidate>, bool), Refusal> {
        let limit = u32::try_from(count).unwrap_or(u32::MAX);
        let roles = [None, self.role];
        let phases = [None, self.phase];
        let mut queries = Vec::new();
        for role in &roles[..1 + usize::from(self.role.is_some())] {
            for phase in &phases[..1 + usize::from(self.phase.is_some())] {
                queries.push(task::ready(*role, *phase, limit));
            }
        }
        let mut all = self.loose.clone();
        let mut complete = true;
        for rows in view.read(&queries)? {
            complete &= rows.len() < count;
            for row in &rows {
                all.push(parse(&row.body)?);
            }
        }
        all.sort_by_key(Candidate::order);
        complete &= all.len() <= count;
        all.truncate(count);
        Ok((all, complete))
    }
}

/// What others have in hand: live claims, and the paths of tasks they work on.
struct Hands<'a> {
    me: &'a SessionId,
    /// By their place in the index of resources.
    held: BTreeMap<String, Vec<Hand>>,
    seen: std::collections::BTreeSet<(&'static str, String)>,
    asked: Places,
    /// Everything was read.
    whole: bool,
    /// Verdicts by paths, so that the same are tested once.
    known: BTreeMap<Vec<String>, Option<Conflict>>,
}

#[derive(Clone)]
struct Hand {
    holder: Holder,
    resource: Resource,
    task: Option<TaskId>,
}

impl<'a> Hands<'a> {
    fn new(me: &'a SessionId) -> Self {
        Self {
            me,
            held: BTreeMap::new(),
            seen: std::collections::BTreeSet::new(),
            asked: Places::default(),
            whole: false,
            known: BTreeMap::new(),
        }
    }

    fn test(
        &mut self,
        view: &dyn View,
        candidates: &[Candidate],
        context: &Context,
    ) -> Result<Vec<Option<Conflict>>, Refusal> {
        let mut new: Vec<(&Vec<String>, Vec<Resource>)> = Vec::new();
        for candidate in candidates {
            let paths = &candidate.paths;
            if paths.is_empty() || self.known.contains_key(paths) {
                continue;
            }
            if new.iter().all(|(known, _)| *known != paths) {
                let read = |path: &String| {
                    let bad = |source| Refusal::BadResource { text: path.clone(), source };
                    Resource::parse(path).map_err(bad)
                };
                new.push((paths, paths.iter().map(read).collect::<Result<_, _>>()?));
            }
        }
        self.learn(view, candidates, &new, context)?;
        for (paths, resources) in new {
            let conflict = self.conflict(&resources);
            self.known.insert(paths.clone(), conflict);
        }
        let verdict = |one: &Candidate| self.known.get(&one.paths).cloned().flatten();
        Ok(candidates.iter().map(verdict).collect())
    }

    /// Reads what others hold around these paths, unless it is known.
    fn learn(
        &mut self,
        view: &dyn View,
        candidates: &[Candidate],
        new: &[(&Vec<String>, Vec<Resource>)],
        context: &Context,
    ) -> Result<(), Refusal> {
        if self.whole || new.is_empty() {
            return Ok(());
        }
        let indexes = [claim::BY_RESOURCE, task::BY_PATH];
        let first = self.known.is_empty();
        if !first && self.asked.points.len() < usize::MAX && !self.tried_whole() {
            let everything = indexes.map(|index| task::all_of(index, WHOLE_MAX + 1));
            let answers = view.read(&everything)?;
            let whole = answers.iter().all(|rows| rows.len() <= WHOLE_MAX as usize);
            self.asked.ranges.insert(String::new());
            if whole {
                self.whole = true;
                return self.take_in(&answers, context);
            }
        }
        let mut queries = Vec::new();
        for (_, resources) in new {
            let places = Places::of(resources);
            for point in places.points {
                if self.asked.points.insert(point.clone()) {
                    queries.extend(indexes.map(|one| Query::equal(one, &point, PER_PLACE_MAX)));
                }
            }
            for range in places.ranges {
                if self.asked.ranges.insert(range.clone()) {
                    queries.extend(indexes.map(|one| Places::below(one, &range, PER_PLACE_MAX)));
                }
            }
        }
        let around = queries.len();
        if first {
            // Most likely it is this one, and then its papers are wanted: no read of their own.
            queries.extend(candidates.first().map(|one| Query::get::<Dossier>(one.task.as_str())));
        }
        let mut answers = view.read(&queries)?;
        answers.truncate(around);
        self.take_in(&answers, context)
    }

    fn tried_whole(&self) -> bool {
        self.asked.ranges.contains("")
    }

    fn take_in(&mut self, answers: &[Vec<Row>], context: &Context) -> Result<(), Refusal> {
        for rows in answers {
            let mut fresh: Vec<Row> = Vec::new();
            for row in rows {
                if self.seen.insert((row.kind, row.key.clone())) {
                    fresh.push(row.clone());
                }
            }
            for claim in only::<Claim>(&fresh)? {
                if claim.hold.holder.session != *self.me && claim.is_live(context) {
                    self.hold(&claim.hold.holder, &claim.hold.resources, None);
                }
            }
            for task in only::<Task>(&fresh)? {
                let Some(owner) = task.owner() else { continue };
                if owner.session != *self.me && owner.is_live(context) {
                    self.hold(&owner.holder(), &task.paths, Some(&task.task));
                }
            }
        }
        Ok(())
    }

    fn hold(&mut self, holder: &Holder, resources: &[Resource], task: Option<&TaskId>) {
        for resource in resources {
            self.held.entry(resource.index_value()).or_default().push(Hand {
                holder: holder.clone(),
                resource: resource.clone(),
                task: task.cloned(),
            });
        }
    }

    fn conflict(&self, resources: &[Resource]) -> Option<Conflict> {
        let places = Places::of(resources);
        let at = places.points.iter().filter_map(|point| self.held.get(point));
        let within = places.ranges.iter().flat_map(|from| {
            let until = Places::end_of(from);
            self.held.range(from.clone()..until).map(|(_, hands)| hands)
        });
        let mut near = at.chain(within).flatten();
        let hand = near.find(|hand| resources.iter().any(|one| one.overlaps(&hand.resource)))?;
        Some(Conflict {
            with: hand.holder.clone(),
            held: hand.resource.clone(),
            task: hand.task.clone(),
        })
    }
}
