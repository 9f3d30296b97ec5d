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
use crate::time::{Moment, Span};
use crate::view::{Index, Query, Record, Row, View, parse};

/// Of so many the first without a conflict is taken; if all conflict, the first.
pub const CONSIDERED_MAX: usize = 200;
/// So many are read at first: mostly one of them will do.
const FIRST_PAGE: usize = 8;
/// When all that others hold is no more than this, it is read at once.
const WHOLE_MAX: u32 = 48;
/// How many holders are read at one place of the index; more than that tell nothing new.
const PER_PLACE_MAX: u32 = 256;
/// How many candidates are tested together, growing.
const CHUNKS: [usize; 4] = [1, 7, 32, CONSIDERED_MAX];

/// As much of a task as choosing needs.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Candidate {
    pub(crate) task: TaskId,
    priority: u8,
    #[serde(default)]
    unblocks: u32,
    #[serde(default)]
    paths: Vec<String>,
    /// Where the rest of it is, for an explanation.
    #[serde(skip)]
    title: Title,
}

#[derive(Clone, Debug)]
enum Title {
    Known(String),
    /// In the record, unread: most candidates are never shown.
    Within(String),
}

impl Default for Title {
    fn default() -> Self {
        Self::Known(String::new())
    }
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
            priority: task.priority,
            unblocks: task.unblocks,
            paths: task.paths.iter().map(Resource::to_string).collect(),
            title: Title::Known(task.title.clone()),
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
    /// Say who is in the way.
    pub(crate) explain: bool,
}

/// The candidates in order of choice: those without a conflict first, each with what is in its
/// way. At least `wanted` are tested, if there are so many.
pub(crate) fn choose(
    view: &dyn View,
    offer: &Offer<'_>,
    wanted: usize,
    context: &Context,
) -> Result<Vec<Judged>, Refusal> {
    let mut hands = Hands::new(offer.me, offer.explain);
    let (mut page, mut complete) = offer.read(view, FIRST_PAGE.max(wanted))?;
    let mut tested: Vec<bool> = Vec::new();
    let mut free = 0;
    for chunk in CHUNKS {
        let until = tested.len() + chunk;
        if until > page.len() && !complete {
            (page, complete) = offer.read(view, CONSIDERED_MAX)?;
        }
        let next = &page[tested.len()..page.len().min(until)];
        for conflicts in hands.test(view, next, context)? {
            free += usize::from(!conflicts);
            tested.push(conflicts);
        }
        if free >= wanted || tested.len() >= page.len() && complete {
            break;
        }
    }
    Ok(judged(page, &tested, wanted, offer.explain.then_some(&hands)))
}

fn judged(
    page: Vec<Candidate>,
    tested: &[bool],
    wanted: usize,
    hands: Option<&Hands<'_>>,
) -> Vec<Judged> {
    let mut left = wanted;
    let mut all: Vec<Judged> = Vec::with_capacity(page.len());
    for (at, candidate) in page.into_iter().enumerate() {
        let (verdict, conflict) = match tested.get(at) {
            Some(true) => {
                let conflict = hands.and_then(|hands| hands.conflict(&candidate));
                (Verdict::Conflicts, conflict)
            }
            Some(false) if left > 0 => {
                left -= 1;
                (Verdict::Chosen, None)
            }
            Some(false) | None => (Verdict::NotNeeded, None),
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
    all
}

/// A candidate with what is in its way and what became of it.
pub(crate) type Judged = (Candidate, Option<Conflict>, Verdict);

pub(crate) fn considered(judged: &[Judged]) -> Result<Vec<Considered>, Refusal> {
    #[derive(Deserialize)]
    struct Titled {
        title: String,
    }
    let one = |(candidate, conflict, verdict): &Judged| {
        let title = match &candidate.title {
            Title::Known(title) => title.clone(),
            Title::Within(body) => parse::<Titled>(body)?.title,
        };
        Ok(Considered {
            task: candidate.task.clone(),
            title,
            priority: candidate.priority,
            unblocks: candidate.unblocks,
            verdict: *verdict,
            conflict: conflict.clone(),
        })
    };
    judged.iter().map(one).collect()
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
            for row in rows {
                let mut candidate: Candidate = parse(&row.body)?;
                candidate.title = Title::Within(row.body);
                all.push(candidate);
            }
        }
        // Mostly all come from one queue, in order.
        if !all.is_sorted_by_key(Candidate::order) {
            all.sort_by_cached_key(Candidate::order);
        }
        complete &= all.len() <= count;
        all.truncate(count);
        Ok((all, complete))
    }
}

/// What others have in hand: live claims, and the paths of tasks they work on.
struct Hands<'a> {
    me: &'a SessionId,
    held: Vec<Hand>,
    /// Which of `held` a record is; nothing when it is in nobody's way.
    seen: BTreeMap<(&'static str, String), Option<usize>>,
    claims: Shelf,
    tasks: Shelf,
    /// Verdicts by paths, so that the same are tested once.
    known: BTreeMap<Vec<String>, Option<Clash>>,
    /// What was in the way last: it is likely to be in the way of the next one too, and to test
    /// that needs no reading.
    last: Option<Clash>,
    /// Keep what is in the way of each.
    explain: bool,
}

/// Which of the hands is in the way, with which of its resources.
type Clash = (usize, Resource);

/// What was read of one index of resources.
struct Shelf {
    index: Index,
    /// Everything in the index was read.
    whole: Option<bool>,
    /// What was found, by the place that was asked for; of the whole, by where it stands.
    points: BTreeMap<String, Vec<usize>>,
    ranges: BTreeMap<String, Vec<usize>>,
}

/// Something that somebody else holds.
struct Hand {
    holder: Holder,
    task: Option<TaskId>,
    texts: Vec<String>,
    /// The same, read when the text alone does not tell.
    resources: Option<Vec<Resource>>,
}

/// As much of a claim as a conflict needs.
#[derive(Deserialize)]
struct Held {
    session: SessionId,
    name: String,
    #[serde(default)]
    agent: Option<String>,
    resources: Vec<String>,
    renewed_at: Moment,
    expires_at: Moment,
    ttl: Span,
}

impl Held {
    fn is_live(&self, context: &Context) -> bool {
        let late = context.failed_over_at.is_some_and(|at| self.renewed_at < at);
        context.now < if late { self.expires_at + self.ttl } else { self.expires_at }
    }
}

fn read_paths(texts: &[String]) -> Result<Vec<Resource>, Refusal> {
    let read = |text: &String| {
        let bad = |source| Refusal::BadResource { text: text.clone(), source };
        Resource::parse(text).map_err(bad)
    };
    texts.iter().map(read).collect()
}

fn meets(resources: &[Resource], held: &Resource) -> bool {
    resources.iter().any(|mine| mine.overlaps(held))
}

impl<'a> Hands<'a> {
    fn new(me: &'a SessionId, explain: bool) -> Self {
        let shelf =
            |index| Shelf { index, whole: None, points: BTreeMap::new(), ranges: BTreeMap::new() };
        Self {
            me,
            held: Vec::new(),
            seen: BTreeMap::new(),
            claims: shelf(claim::BY_RESOURCE),
            tasks: shelf(task::BY_PATH),
            known: BTreeMap::new(),
            last: None,
            explain,
        }
    }

    fn test(
        &mut self,
        view: &dyn View,
        candidates: &[Candidate],
        context: &Context,
    ) -> Result<Vec<bool>, Refusal> {
        let mut verdicts = vec![false; candidates.len()];
        let (mut new, mut untold) = (Vec::new(), Vec::new());
        for (at, Candidate { paths: texts, .. }) in candidates.iter().enumerate() {
            if texts.is_empty() {
                continue;
            }
            if let Some(clash) = self.known.get(texts) {
                verdicts[at] = clash.is_some();
                continue;
            }
            let resources = read_paths(texts)?;
            if let Some(clash) = self.last.as_ref().filter(|(_, held)| meets(&resources, held)) {
                verdicts[at] = true;
                if self.explain {
                    self.known.insert(texts.clone(), Some(clash.clone()));
                }
                continue;
            }
            let places = Places::of(&resources);
            new.push((texts, resources, places));
            untold.push(at);
        }
        if !new.is_empty() {
            let places: Vec<&Places> = new.iter().map(|(_, _, places)| places).collect();
            self.learn(view, candidates, &places, context)?;
        }
        for (at, (texts, resources, places)) in untold.into_iter().zip(new) {
            let clash = match self.known.get(texts) {
                Some(clash) => clash.clone(),
                None => self.clash(&resources, &places)?,
            };
            verdicts[at] = clash.is_some();
            self.last = clash.clone().or(self.last.take());
            self.known.insert(texts.clone(), clash);
        }
        Ok(verdicts)
    }

    /// What is in the way of a candidate that was tested.
    fn conflict(&self, candidate: &Candidate) -> Option<Conflict> {
        let (at, held) = self.known.get(&candidate.paths)?.as_ref()?;
        let Hand { holder, task, .. } = self.held.get(*at)?;
        Some(Conflict { with: holder.clone(), held: held.clone(), task: task.clone() })
    }

    /// Reads what others hold around these places, unless it is known. From the second time on it
    /// is tried whether all there is can be read at once.
    fn learn(
        &mut self,
        view: &dyn View,
        candidates: &[Candidate],
        places: &[&Places],
        context: &Context,
    ) -> Result<(), Refusal> {
        let first = self.known.is_empty();
        if !first {
            self.read_whole(view, context)?;
        }
        let (mut queries, mut asked) = (Vec::new(), Vec::new());
        for shelf in [&mut self.claims, &mut self.tasks] {
            shelf.ask(places, &mut queries, &mut asked);
        }
        if first {
            // Most likely it is this one, and then its papers are wanted: no read of their own.
            queries.extend(candidates.first().map(|one| Query::get::<Dossier>(one.task.as_str())));
        }
        if queries.is_empty() {
            return Ok(());
        }
        let answers = view.read(&queries)?;
        for ((index, is_range, place), rows) in asked.into_iter().zip(answers) {
            let found = self.take_in(&rows, context)?;
            let shelf = if index == self.claims.index { &mut self.claims } else { &mut self.tasks };
            let kept = if is_range { &mut shelf.ranges } else { &mut shelf.points };
            kept.insert(place, found);
        }
        Ok(())
    }

    fn read_whole(&mut self, view: &dyn View, context: &Context) -> Result<(), Refusal> {
        if self.claims.whole.is_some() {
            return Ok(());
        }
        let indexes = [self.claims.index, self.tasks.index];
        let answers = view.read(&indexes.map(|index| task::all_of(index, WHOLE_MAX + 1)))?;
        for (index, rows) in indexes.into_iter().zip(answers) {
            let whole = rows.len() <= WHOLE_MAX as usize;
            let mut points: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for at in if whole { self.take_in(&rows, context)? } else { Vec::new() } {
                for resource in self.held[at].read()? {
                    points.entry(resource.index_value()).or_default().push(at);
                }
            }
            let shelf = if index == self.claims.index { &mut self.claims } else { &mut self.tasks };
            shelf.whole = Some(whole);
            if whole {
                shelf.points = points;
            }
        }
        Ok(())
    }

    /// The places in `held` of what is in others' hands among these rows.
    fn take_in(&mut self, rows: &[Row], context: &Context) -> Result<Vec<usize>, Refusal> {
        let mut found = Vec::new();
        for row in rows {
            let key = (row.kind, row.key.clone());
            let at = match self.seen.get(&key) {
                Some(at) => *at,
                None => {
                    let hand = self.hand(row, context)?;
                    let at = hand.map(|hand| {
                        self.held.push(hand);
                        self.held.len() - 1
                    });
                    self.seen.insert(key, at);
                    at
                }
            };
            found.extend(at.filter(|at| found.last() != Some(at)));
        }
        Ok(found)
    }

    fn hand(&self, row: &Row, context: &Context) -> Result<Option<Hand>, Refusal> {
        match row.kind {
            Claim::KIND => {
                let held: Held = parse(&row.body)?;
                let counts = held.session != *self.me && held.is_live(context);
                let holder = Holder { session: held.session, name: held.name, agent: held.agent };
                let texts = held.resources;
                Ok(counts.then_some(Hand { holder, task: None, texts, resources: None }))
            }
            Task::KIND => {
                let task: Task = parse(&row.body)?;
                let lives = |one: &&task::Owner| one.session != *self.me && one.is_live(context);
                Ok(task.owner().filter(lives).map(|owner| Hand {
                    holder: owner.holder(),
                    task: Some(task.task.clone()),
                    texts: task.paths.iter().map(Resource::to_string).collect(),
                    resources: Some(task.paths.clone()),
                }))
            }
            // Waiters, leftovers, interfaces: nobody's hands.
            _ => Ok(None),
        }
    }

    fn clash(&mut self, resources: &[Resource], places: &Places) -> Result<Option<Clash>, Refusal> {
        let mut near = self.claims.near(places);
        near.extend(self.tasks.near(places));
        for at in near {
            let theirs = self.held[at].read()?;
            if let Some(held) = theirs.iter().find(|one| meets(resources, one)) {
                return Ok(Some((at, held.clone())));
            }
        }
        Ok(None)
    }
}

impl Hand {
    fn read(&mut self) -> Result<&[Resource], Refusal> {
        if self.resources.is_none() {
            self.resources = Some(read_paths(&self.texts)?);
        }
        Ok(self.resources.as_deref().unwrap_or_default())
    }
}

/// A question to an index: which one, whether a range, and where.
type Asked = (Index, bool, String);

impl Shelf {
    /// Adds the queries for those of the places that were not asked for yet.
    fn ask(&mut self, places: &[&Places], queries: &mut Vec<Query>, asked: &mut Vec<Asked>) {
        if self.whole == Some(true) {
            return;
        }
        for place in places {
            for point in &place.points {
                if !self.points.contains_key(point) {
                    self.points.insert(point.clone(), Vec::new());
                    queries.push(Query::equal(self.index, point, PER_PLACE_MAX));
                    asked.push((self.index, false, point.clone()));
                }
            }
            for range in &place.ranges {
                if !self.ranges.contains_key(range) {
                    self.ranges.insert(range.clone(), Vec::new());
                    queries.push(Places::below(self.index, range, PER_PLACE_MAX));
                    asked.push((self.index, true, range.clone()));
                }
            }
        }
    }

    /// What may overlap something at these places.
    fn near(&self, places: &Places) -> Vec<usize> {
        let at = places.points.iter().filter_map(|point| self.points.get(point)).flatten();
        let mut near: Vec<usize> = at.copied().collect();
        for range in &places.ranges {
            match self.whole {
                Some(true) => {
                    let within = self.points.range(range.clone()..Places::end_of(range));
                    near.extend(within.flat_map(|(_, held)| held));
                }
                _ => near.extend(self.ranges.get(range).into_iter().flatten()),
            }
        }
        near
    }
}
