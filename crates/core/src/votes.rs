//! Votes on any subject, and what happens when voters contradict each other.
//!
//! Owns the ballot: one record a subject, one vote a voter, the last one counts. Invariant: two
//! different votes open exactly one decision gate; what it decides is what the subject got.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::gate::{Decision, Gate, Kind, Origin, Outcome, Reason};
use crate::gates::{self, OPTION_BYTES_MAX, OPTIONS_MAX, SUBJECT_BYTES_MAX, refused::Refused};
use crate::id::{GateId, TaskId};
use crate::notices::Notice;
use crate::pattern::fold;
use crate::refusal::Refusal;
use crate::task::{State, Task};
use crate::tasks::{TEXT_BYTES_MAX, caller_with, says, word};
use crate::time::Moment;
use crate::view::{self, Index, Query, Record, View, only};

/// Voters on one subject.
pub const VOTES_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Vote {
    pub by: Holder,
    pub value: String,
    pub why: String,
    pub at: Moment,
}

/// What was said about one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ballot {
    pub subject: String,
    /// Oldest first, the last of each voter.
    pub votes: Vec<Vote>,
    /// The gate that decides about them, or decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

impl Ballot {
    pub fn of(subject: &str) -> Self {
        let (votes, gate, decision) = (Vec::new(), None, None);
        Self { subject: subject.to_owned(), votes, gate, decision }
    }

    /// The value that all agree on.
    pub fn agreed(&self) -> Option<&str> {
        let first = self.votes.first()?;
        let same = self.votes.iter().all(|vote| vote.value == first.value);
        same.then_some(first.value.as_str())
    }

    pub(crate) fn cast(&mut self, vote: &Vote) {
        self.votes.retain(|known| known.by.session != vote.by.session);
        self.votes.push(vote.clone());
    }

    /// Decided, or, when a person refused to choose, open for a new round.
    pub(crate) fn settled(&mut self, decision: &Decision) {
        match decision.outcome {
            Outcome::Approved => self.decision = Some(decision.clone()),
            _ => *self = Self::of(&self.subject),
        }
    }
}

impl Record for Ballot {
    const KIND: view::Kind = "ballot";

    fn key(&self) -> String {
        key_of(&self.subject)
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}

/// Two spellings of a subject are one.
pub fn key_of(subject: &str) -> String {
    fold(subject.trim())
}

#[derive(Clone, Debug, Serialize)]
pub struct Request {
    pub subject: String,
    pub value: String,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Voted {
    #[serde(flatten)]
    pub ballot: Ballot,
    /// All voters say the same so far.
    pub agreed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Votes, or changes one's vote.
pub fn vote(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Voted), Refusal> {
    word("subject", &request.subject, SUBJECT_BYTES_MAX)?;
    word("vote", &request.value, OPTION_BYTES_MAX)?;
    says("reason", &request.why, TEXT_BYTES_MAX)?;
    let named = request.subject.trim();
    let task = TaskId::parse(named).filter(|_| named.starts_with(['t', 'T', '#']));
    let subject = task.as_ref().map_or(named, TaskId::as_str);
    let id = task.as_ref().map(|task| task.0.clone()).unwrap_or_default();
    let queries = [Query::get::<Ballot>(key_of(subject)), Query::get::<Task>(id)];
    let (caller, answers) = caller_with(view, &queries, context)?;
    let by = gates::by(caller.as_ref(), context).ok_or(Refusal::NoSession)?;
    let known = only::<Ballot>(&answers[0])?.pop();
    let mut ballot = known.unwrap_or_else(|| Ballot::of(subject));
    if let (Some(gate), Some(decision)) = (&ballot.gate, &ballot.decision) {
        let (subject, gate) = (ballot.subject.clone(), gate.clone());
        return Err(Refused::Settled { subject, gate, decision: Box::new(decision.clone()) }.into());
    }
    let vote = Vote { by, value: request.value.clone(), why: request.why.clone(), at: context.now };
    let new = ballot.votes.iter().all(|known| known.by.session != vote.by.session);
    if new && ballot.votes.len() >= VOTES_MAX {
        return Err(Refused::TooMany { what: "votes on one subject", max: VOTES_MAX }.into());
    }
    ballot.cast(&vote);
    let mut events = vec![Event::VoteCast { subject: ballot.subject.clone(), vote }];
    if ballot.agreed().is_none() && ballot.gate.is_none() {
        let task = only::<Task>(&answers[1])?.pop();
        ballot.gate = Some(contest(view, &ballot, task, &mut events, context)?);
    }
    let notices = caller.as_ref().map(|caller| caller.notices.clone()).unwrap_or_default();
    events.extend(caller.iter().flat_map(|caller| caller.activity(context, &[])));
    let agreed = ballot.agreed().is_some();
    Ok((events, Voted { ballot, agreed, notices }))
}

/// Opens the gate where a person chooses. A task that was voted on waits for that.
fn contest(
    view: &dyn View,
    ballot: &Ballot,
    task: Option<Task>,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<GateId, Refusal> {
    let mut options: Vec<String> = Vec::new();
    for vote in &ballot.votes {
        if !options.contains(&vote.value) && options.len() < OPTIONS_MAX {
            options.push(vote.value.clone());
        }
    }
    let count = |option: &String| {
        let votes = ballot.votes.iter().filter(|vote| vote.value == *option).count();
        format!("{votes} for {option}")
    };
    let counts: Vec<String> = options.iter().map(count).collect();
    let ask = format!("{}: {}; which holds?", ballot.subject, counts.join(", "));
    let reason = |vote: &Vote| Reason {
        by: vote.by.clone(),
        says: vote.value.clone(),
        why: Some(vote.why.clone()),
    };
    let idle = |task: &Task| {
        matches!(task.state(), State::Open | State::Blocked | State::Parked | State::Review)
    };
    let task = task.filter(idle);
    let on = task.as_ref().map_or(ballot.subject.as_str(), |task| task.task.as_str());
    let draft = Gate {
        task: task.as_ref().map(|task| task.task.clone()),
        options,
        origin: Origin::Votes,
        reasons: ballot.votes.iter().map(reason).collect(),
        ..gates::draft(on, Kind::Decision, &ask, context)
    };
    let gate = gates::open(view, draft, events)?;
    let subject = ballot.subject.clone();
    events.push(Event::VotesContested { subject, gate: gate.gate.clone() });
    if let Some(mut task) = task {
        gates::hold(view, &mut task, &gate, events, context)?;
    }
    Ok(gate.gate)
}

/// A person chose, or refused to.
pub(crate) fn settle(gate: &Gate, decision: &Decision, events: &mut Vec<Event>) {
    let (gate, on) = (gate.gate.clone(), gate.on.clone());
    events.push(Event::VotesSettled { subject: on, gate, decision: decision.clone() });
}
