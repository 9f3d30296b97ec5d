//! What follows when a part of a split task has ended: it is counted, and the parts are joined.
//!
//! [`follow`] looks at every decision (`consequences`), so that the end of a part and what follows
//! from it are one. Rules that tell their caller what can be taken now call it themselves; a second
//! look adds nothing. Invariants: a split is joined once; a failed part is a result and never the
//! failure of the whole; nothing that somebody works on is cancelled from here.

use std::collections::VecDeque;

use super::{finish, graph, moved};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::evolve::evolve;
use crate::id::{Fresh, NoticeId, TaskId};
use crate::notices::{News, Notice};
use crate::overlay::Overlay;
use crate::refusal::Refusal;
use crate::sessions::{Life, Session};
use crate::task::dossier::Dossier;
use crate::task::split::{OnFailure, Outcome, Split, Stage};
use crate::task::{Move, Standing, State, Task};
use crate::view::{View, get};

/// Adds what follows from the ends among `events`; returns what can be taken now because of it.
pub(crate) fn follow(
    view: &dyn View,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Vec<TaskId>, Refusal> {
    let turned = |event: &Event| match event {
        Event::TaskMoved { task, how, standing }
            if standing.ended().is_some() || matches!(how, Move::Reopened | Move::Revived) =>
        {
            Some(task.clone())
        }
        _ => None,
    };
    let ids: Vec<TaskId> = events.iter().filter_map(turned).collect();
    let concerned = |task: &Task| task.parent.is_some() || task.waits_for_parts();
    let known = graph::tasks(view, &ids)?;
    let queue: VecDeque<TaskId> =
        known.into_iter().filter(concerned).map(|task| task.task).collect();
    if queue.is_empty() {
        return Ok(Vec::new());
    }
    let mut after =
        After { overlay: Overlay::new(view), new: Vec::new(), queue, woken: Vec::new() };
    for event in &*events {
        evolve(&mut after.overlay, event)?;
    }
    while let Some(id) = after.queue.pop_front() {
        after.settle(&id, context)?;
    }
    events.append(&mut after.new);
    Ok(after.woken)
}

/// What a task in parts, or one that follows parts, waits for.
pub(super) fn waits_for(task: &Task) -> Option<String> {
    if let Some(parent) = &task.awaits {
        return Some(format!("waits for the parts of {parent}"));
    }
    let split = task.split.as_ref()?;
    match (split.stage, &split.then) {
        (Stage::Parts, _) => Some(format!("waits for its parts: {}", split.progress())),
        (Stage::Then, Some(then)) => Some(format!("waits for {then}, which follows its parts")),
        _ => None,
    }
}

/// The records as they are after the events so far, and what is still to be looked at.
struct After<'a> {
    overlay: Overlay<'a>,
    new: Vec<Event>,
    queue: VecDeque<TaskId>,
    woken: Vec<TaskId>,
}

impl After<'_> {
    fn push(&mut self, event: Event) -> Result<(), Refusal> {
        evolve(&mut self.overlay, &event)?;
        self.new.push(event);
        Ok(())
    }

    fn task(&self, id: &TaskId) -> Result<Option<Task>, Refusal> {
        Ok(get::<Task>(&self.overlay, id.as_str())?)
    }

    fn settle(&mut self, id: &TaskId, context: &Context) -> Result<(), Refusal> {
        let Some(task) = self.task(id)? else {
            return Ok(());
        };
        if task.state().is_finished() && task.waits_for_parts() {
            self.give_up(&task, context)?;
        }
        let Some(parent) = task.parent.as_ref().map(|id| self.task(id)).transpose()?.flatten()
        else {
            return Ok(());
        };
        let Some(split) = parent.split.as_deref() else {
            return Ok(());
        };
        if split.parts.contains(id) {
            self.count(&parent, split, &task, context)
        } else if split.follows(id) && split.stage == Stage::Then {
            self.close(&parent, &task, context)
        } else {
            Ok(())
        }
    }

    fn count(
        &mut self,
        parent: &Task,
        split: &Split,
        part: &Task,
        context: &Context,
    ) -> Result<(), Refusal> {
        let ended = part.standing.ended();
        if split.ended.get(&part.task).copied() == ended {
            return Ok(());
        }
        let (task, part_id) = (parent.task.clone(), part.task.clone());
        self.push(Event::TaskPartMoved { task, part: part_id, ended })?;
        if split.stage != Stage::Parts {
            return Ok(());
        }
        if ended == Some(State::Failed) {
            match split.on_failure {
                OnFailure::Stop => self.stop(split, &part.task, context)?,
                OnFailure::Continue if split.sequence => {
                    self.let_next(split, &part.task, context)?;
                }
                OnFailure::Continue => {}
            }
        }
        let Some(parent) = self.task(&parent.task)? else {
            return Ok(());
        };
        match parent.split.as_deref().and_then(Split::verdict) {
            Some(outcome) => self.join(&parent, outcome, context),
            None => Ok(()),
        }
    }

    /// In a sequence the next one goes on although the one before it failed; so do its own parts,
    /// which came after whatever it came after.
    fn let_next(&mut self, split: &Split, of: &TaskId, context: &Context) -> Result<(), Refusal> {
        let mut ids: VecDeque<TaskId> = split.parts.iter().cloned().collect();
        while let Some(id) = ids.pop_front() {
            let Some(next) = self.task(&id)?.filter(|next| next.pending.contains(of)) else {
                continue;
            };
            self.push(Event::TaskFreed { task: id.clone(), of: of.clone() })?;
            let Some(freed) = self.task(&id)? else { continue };
            if next.state() == State::Blocked && freed.at_rest() == State::Open {
                let why = format!("{of}, which came before it, failed");
                self.wake(&freed, Move::Unblocked, Some(why), context)?;
            }
            ids.extend(next.split.into_iter().flat_map(|split| split.parts));
        }
        match graph::weigh_anew(&self.overlay, std::slice::from_ref(of))? {
            Some(event) => self.push(event),
            None => Ok(()),
        }
    }

    /// One failed: those that nobody has begun are not begun.
    fn stop(&mut self, split: &Split, failed: &TaskId, context: &Context) -> Result<(), Refusal> {
        for id in &split.parts {
            // A divided one is under way, unless it was to come after the one that failed.
            let begun = |part: &Task| part.waits_for_parts() && !part.pending.contains(failed);
            if let Some(part) = self.task(id)?.filter(|part| !begun(part)) {
                self.cancel(&part, format!("{failed}, a part beside it, failed"), context)?;
            }
        }
        Ok(())
    }

    /// The whole was ended: so is what nobody works on.
    fn give_up(&mut self, whole: &Task, context: &Context) -> Result<(), Refusal> {
        let Some(split) = whole.split.clone() else {
            return Ok(());
        };
        let (task, then) = (whole.task.clone(), split.then.clone());
        let (outcome, stage) = (Outcome::GivenUp, Stage::Over);
        self.push(Event::TaskJoined { task, outcome, stage, then })?;
        for id in split.parts.iter().chain(&split.then) {
            if let Some(part) = self.task(id)? {
                let why = format!("{}, of which it was a part, was ended", whole.task);
                self.cancel(&part, why, context)?;
            }
        }
        Ok(())
    }

    /// Cancels a task, unless somebody has it in hand or it has ended.
    fn cancel(&mut self, task: &Task, why: String, context: &Context) -> Result<(), Refusal> {
        let idle = matches!(task.state(), State::Open | State::Blocked | State::Parked);
        if !idle || task.owner().is_some() {
            return Ok(());
        }
        self.end(task, Move::Cancelled, State::Cancelled, Some(why), context)
    }

    /// Ends a task, with what follows from that.
    fn end(
        &mut self,
        task: &Task,
        how: Move,
        state: State,
        why: Option<String>,
        context: &Context,
    ) -> Result<(), Refusal> {
        let standing = Standing {
            state,
            since: context.now,
            not_before: None,
            blocked_on: None,
            why,
            next_action: None,
            ..task.standing.clone()
        };
        self.push(moved(task, how, standing))?;
        let (followed, woken) = finish(&self.overlay, task, context)?;
        followed.into_iter().try_for_each(|event| self.push(event))?;
        self.woken.extend(woken);
        self.queue.push_back(task.task.clone());
        Ok(())
    }

    fn join(&mut self, whole: &Task, outcome: Outcome, context: &Context) -> Result<(), Refusal> {
        let Some(split) = whole.split.as_deref() else {
            return Ok(());
        };
        let then = split.then.as_ref().map(|id| self.task(id)).transpose()?.flatten();
        let wanted = then.is_some_and(|then| !then.state().is_finished());
        let goes_on = outcome == Outcome::Met && wanted;
        let stage = if goes_on { Stage::Then } else { Stage::Over };
        let (task, id) = (whole.task.clone(), split.then.clone());
        self.push(Event::TaskJoined { task, outcome, stage, then: id.clone() })?;
        let why = match outcome {
            Outcome::Met => format!("{} as asked", split.progress()),
            _ => format!("{}: too few are done", split.progress()),
        };
        let then = id.as_ref().map(|id| self.task(id)).transpose()?.flatten();
        match then {
            Some(then) if goes_on => {
                if then.state() == State::Blocked && then.at_rest() == State::Open {
                    self.wake(&then, Move::Joined, Some(why), context)?;
                }
                Ok(())
            }
            other => {
                if let Some(then) = other {
                    let parts = format!("the parts of {} are not joined", whole.task);
                    self.cancel(&then, parts, context)?;
                }
                self.give_back(&whole.task, why, context)
            }
        }
    }

    /// What followed the parts has ended: its result is that of the whole.
    fn close(&mut self, whole: &Task, then: &Task, context: &Context) -> Result<(), Refusal> {
        let Some(state) = then.standing.ended() else {
            return Ok(());
        };
        let task = whole.task.clone();
        let (outcome, stage) = (Outcome::Met, Stage::Over);
        self.push(Event::TaskJoined { task, outcome, stage, then: None })?;
        if state != State::Done {
            let why = format!("{}, which followed its parts, is {}", then.task, state.name());
            return self.give_back(&whole.task, why, context);
        }
        let dossier = get::<Dossier>(&self.overlay, then.task.as_str())?;
        if let Some(report) = dossier.and_then(|dossier| dossier.report) {
            self.push(Event::TaskReported { task: whole.task.clone(), report })?;
        }
        match self.task(&whole.task)? {
            Some(whole) => self.end(&whole, Move::Joined, State::Done, None, context),
            None => Ok(()),
        }
    }

    /// The whole can be taken again, by whoever had it or by another.
    fn give_back(&mut self, id: &TaskId, why: String, context: &Context) -> Result<(), Refusal> {
        let Some(whole) = self.task(id)? else {
            return Ok(());
        };
        if whole.state() == State::Blocked && whole.at_rest() == State::Open {
            self.wake(&whole, Move::Joined, Some(why.clone()), context)?;
        }
        let by = whole.split.as_ref().and_then(|split| split.by.clone());
        match by {
            Some(by) => self.tell(&by, &whole, why, context),
            None => Ok(()),
        }
    }

    fn wake(
        &mut self,
        task: &Task,
        how: Move,
        why: Option<String>,
        context: &Context,
    ) -> Result<(), Refusal> {
        let standing =
            Standing { state: State::Open, since: context.now, why, ..task.standing.clone() };
        self.push(moved(task, how, standing))?;
        self.woken.push(task.task.clone());
        Ok(())
    }

    fn tell(
        &mut self,
        who: &Holder,
        whole: &Task,
        why: String,
        context: &Context,
    ) -> Result<(), Refusal> {
        let session = get::<Session>(&self.overlay, who.session.as_str())?;
        if session.is_none_or(|session| session.life != Life::Live) {
            return Ok(());
        }
        let fresh = Fresh(*blake3::keyed_hash(&context.fresh.0, b"joined").as_bytes());
        let ordinal = u32::try_from(self.new.len()).unwrap_or(u32::MAX);
        let notice = Notice {
            notice: NoticeId::fresh(&fresh, ordinal),
            to: who.session.clone(),
            agent: who.agent.clone(),
            at: context.now,
            news: News::Joined { task: whole.task.clone(), title: whole.title.clone(), why },
        };
        self.push(Event::NoticeSent { notice })
    }
}
