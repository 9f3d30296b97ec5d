//! A change that somebody would make to what another holds: kept until the holder answers.
//!
//! Owns the suggestion as a record and its rules. Invariants: only whoever holds the path answers;
//! a suggestion is answered once; one that is open when its claim ends becomes a task in the very
//! decision that ends the claim ([`follow`]), so that none is lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{Claim, Holder};
use crate::context::Context;
use crate::event::{EndOfClaim, Event};
use crate::id::{ClaimId, Fresh, NoticeId, SuggestionId, TaskId, TreeId};
use crate::interfaces;
use crate::notices::{News, Notice};
use crate::patch::{self, Malformed};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::{Caller, Scene};
use crate::task::tally::Tally;
use crate::task::{Standing, State, Task};
use crate::tasks::{self, ATTEMPTS_DEFAULT, PRIORITY_DEFAULT, TEXT_BYTES_MAX, TITLE_BYTES_MAX};
use crate::time::Moment;
use crate::view::{Index, Kind, Query, Record, View, get, scan};

/// Open suggestions by the claim they wait at.
pub const BY_CLAIM: Index = "suggestion.claim";
/// Open suggestions by the session that is to answer.
pub const BY_HOLDER: Index = "suggestion.holder";
/// All suggestions, newest first.
pub const ALL: Index = "suggestion.all";

/// So many may wait at one claim.
pub const PER_CLAIM_MAX: u32 = 20;
/// A patch no longer than this stands in the body of the task that it becomes.
const IN_BODY_MAX: usize = 32 * 1024;
/// How much of a path stands in a title.
const PATH_SHOWN_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Answer {
    Open,
    Applied {
        answered_by: Holder,
        answered_at: Moment,
    },
    Declined {
        answered_by: Holder,
        answered_at: Moment,
        because: String,
    },
    /// Nobody answered before the claim ended.
    Filed {
        task: TaskId,
        answered_at: Moment,
    },
}

impl Answer {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Applied { .. } => "applied",
            Self::Declined { .. } => "declined",
            Self::Filed { .. } => "filed",
        }
    }

    /// May it still be applied or declined?
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Open | Self::Filed { .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suggestion {
    pub suggestion: SuggestionId,
    pub path: Resource,
    pub patch: String,
    /// How many leading folders of its names are not of the path.
    pub strip: u8,
    pub added: usize,
    pub removed: usize,
    pub why: String,
    pub by: Holder,
    pub at: Moment,
    /// Who held the path.
    pub to: Holder,
    pub tree: TreeId,
    pub claim: ClaimId,
    #[serde(flatten)]
    pub answer: Answer,
}

impl Record for Suggestion {
    const KIND: Kind = "suggestion";

    fn key(&self) -> String {
        self.suggestion.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        let mut entries = vec![(ALL, format!("{:020}", u64::MAX - self.at.0))];
        if self.answer == Answer::Open {
            entries.push((BY_CLAIM, self.claim.0.clone()));
            entries.push((BY_HOLDER, self.to.session.0.clone()));
        }
        entries
    }
}

/// All suggestions of an index, in its order.
pub fn all_of(index: Index, limit: u32) -> Query {
    let until = "\u{10ffff}".to_owned();
    Query::Scan { index, from: String::new(), until, after: None, limit }
}

/// Why a suggestion cannot be made or answered.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("nobody holds {path}")]
    NotHeld { path: Resource },
    #[error("{path} is your own")]
    Own { path: Resource },
    #[error("{path} is not one file")]
    NotAFile { path: Resource },
    #[error("the patch cannot be read")]
    Patch(#[from] Malformed),
    #[error("the patch changes {other}")]
    OtherPath { path: Resource, other: String },
    #[error("too many suggestions wait for {}", to.name)]
    TooMany { to: Holder, max: u32 },
    #[error("there is no suggestion {given:?}")]
    Unknown { given: String },
    #[error("{suggestion} is {}", answer.name())]
    Answered { suggestion: SuggestionId, answer: Box<Answer> },
    #[error("{path} is not yours")]
    NotYours { suggestion: SuggestionId, path: Resource, holder: Option<Holder> },
}

impl Refused {
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotHeld { .. } => "not_held",
            Self::Own { .. } => "own_path",
            Self::NotAFile { .. } => "not_a_file",
            Self::Patch(_) => "bad_patch",
            Self::OtherPath { .. } => "other_path",
            Self::TooMany { .. } => "too_many",
            Self::Unknown { .. } => "unknown_suggestion",
            Self::Answered { .. } => "answered",
            Self::NotYours { .. } => "not_yours",
        }
    }

    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Patch(_) | Self::OtherPath { .. } | Self::NotAFile { .. })
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Suggestion(Box::new(refused))
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Request {
    pub path: Resource,
    pub patch: String,
    pub why: String,
}

/// A suggestion as it is told after it was made or answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    pub suggestion: SuggestionId,
    pub path: Resource,
    pub to: Holder,
    pub by: Holder,
    #[serde(flatten)]
    pub answer: Answer,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

fn told(suggestion: &Suggestion, notices: Vec<Notice>) -> Told {
    let Suggestion { suggestion, path, to, by, answer, .. } = suggestion.clone();
    Told { suggestion, path, to, by, answer, notices }
}

/// Keeps a patch for a path that somebody else holds.
pub fn suggest(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Told), Refusal> {
    tasks::says("reason", &request.why, TEXT_BYTES_MAX)?;
    let outline = read_patch(&request.path, &request.patch)?;
    let scene = Scene::read(view, std::slice::from_ref(&request.path), context)?;
    let caller = scene.caller.as_ref().ok_or(Refusal::NoSession)?;
    let by = caller.holder(context);
    let path = request.path.clone();
    let holds = |claim: &&Claim| {
        claim.is_live(context) && claim.hold.resources.iter().any(|one| one.overlaps(&path))
    };
    let mut holding = scene.claims.iter().filter(holds);
    let Some(claim) = holding.clone().find(|claim| claim.hold.holder.competes_with(&by)) else {
        if holding.next().is_some() {
            return Err(Refused::Own { path }.into());
        }
        return to_keeper(view, &scene, request, &outline, &by, context);
    };
    let to = claim.hold.holder.clone();
    if claim.suggestions >= PER_CLAIM_MAX {
        return Err(Refused::TooMany { to, max: PER_CLAIM_MAX }.into());
    }
    let suggestion = Suggestion {
        suggestion: SuggestionId::fresh(&context.fresh, 0),
        path,
        patch: request.patch.clone(),
        strip: outline.strip,
        added: outline.added,
        removed: outline.removed,
        why: request.why.clone(),
        by: by.clone(),
        at: context.now,
        to: to.clone(),
        tree: claim.hold.tree.clone(),
        claim: claim.claim.clone(),
        answer: Answer::Open,
    };
    let news = News::Suggested {
        suggestion: suggestion.suggestion.clone(),
        by,
        path: suggestion.path.clone(),
        why: suggestion.why.clone(),
    };
    let answer = told(&suggestion, caller.notices.clone());
    let mut events = vec![Event::SuggestionMade { suggestion }, notice(&to, news, 0, context)];
    events.extend(caller.activity(context, &[]));
    Ok((events, answer))
}

/// Nobody holds it, but somebody keeps it as an interface: that one is told, and since there is no
/// claim whose end would make a task of it, it becomes one at once.
fn to_keeper(
    view: &dyn View,
    scene: &Scene,
    request: &Request,
    outline: &patch::Outline,
    by: &Holder,
    context: &Context,
) -> Result<(Vec<Event>, Told), Refusal> {
    let caller = scene.caller.as_ref().ok_or(Refusal::NoSession)?;
    let path = request.path.clone();
    let kept = interfaces::reached(scene, std::slice::from_ref(&path)).next();
    let Some((interface, ..)) = kept else {
        return Err(Refused::NotHeld { path }.into());
    };
    let to = interface.owner.clone();
    if to.session == by.session {
        return Err(Refused::Own { path }.into());
    }
    let mut suggestion = Suggestion {
        suggestion: SuggestionId::fresh(&context.fresh, 0),
        path: path.clone(),
        patch: request.patch.clone(),
        strip: outline.strip,
        added: outline.added,
        removed: outline.removed,
        why: request.why.clone(),
        by: by.clone(),
        at: context.now,
        to: to.clone(),
        tree: caller.session.tree.clone(),
        claim: ClaimId(String::new()),
        answer: Answer::Open,
    };
    let mut events = vec![Event::SuggestionMade { suggestion: suggestion.clone() }];
    let [task, filed] = file(view, &suggestion, 1, context)?;
    if let Event::SuggestionAnswered { answer, .. } = &filed {
        suggestion.answer = answer.clone();
    }
    let (id, why) = (suggestion.suggestion.clone(), suggestion.why.clone());
    let news = News::Suggested { suggestion: id, by: by.clone(), path, why };
    events.extend([task, filed, notice(&to, news, 0, context)]);
    events.extend(caller.activity(context, &[]));
    Ok((events, told(&suggestion, caller.notices.clone())))
}

fn read_patch(path: &Resource, patch: &str) -> Result<patch::Outline, Refusal> {
    let literal = matches!(path, Resource::Path(pattern) if pattern.is_literal());
    if !literal {
        return Err(Refused::NotAFile { path: path.clone() }.into());
    }
    tasks::fits("patch", Some(patch), patch::BYTES_MAX)?;
    let outline = patch::outline(patch).map_err(Refused::Patch)?;
    let other =
        outline.files.iter().find(|file| Resource::literal(file).ok().as_ref() != Some(path));
    match other {
        Some(other) => {
            let (path, other) = (path.clone(), other.clone());
            Err(Refused::OtherPath { path, other }.into())
        }
        None => Ok(outline),
    }
}

fn notice(to: &Holder, news: News, ordinal: u32, context: &Context) -> Event {
    let fresh = Fresh(*blake3::keyed_hash(&context.fresh.0, b"suggestion").as_bytes());
    let notice = NoticeId::fresh(&fresh, ordinal);
    let (to, agent) = (to.session.clone(), to.agent.clone());
    Event::NoticeSent { notice: Notice { notice, to, agent, at: context.now, news } }
}

/// What becomes of a suggestion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    Apply,
    Decline { why: String },
}

/// The suggestion, if the caller may answer it: whoever holds its path, or a person.
pub fn answerable(
    view: &dyn View,
    given: &str,
    context: &Context,
) -> Result<(Suggestion, Caller), Refusal> {
    let Some(suggestion) = get::<Suggestion>(view, given)? else {
        return Err(Refused::Unknown { given: given.to_owned() }.into());
    };
    if !suggestion.answer.is_pending() {
        let (suggestion, answer) = (suggestion.suggestion, Box::new(suggestion.answer));
        return Err(Refused::Answered { suggestion, answer }.into());
    }
    let scene = Scene::read(view, std::slice::from_ref(&suggestion.path), context)?;
    let caller = scene.caller.ok_or(Refusal::NoSession)?;
    let holds = |claim: &&Claim| {
        let held = &claim.hold.resources;
        claim.is_live(context) && held.iter().any(|one| one.overlaps(&suggestion.path))
    };
    let mut holders = scene.claims.iter().filter(holds).map(|claim| &claim.hold.holder);
    let mine = holders.clone().any(|holder| holder.session == caller.session.session);
    if !mine && !context.actor.person {
        let holder = holders.next().cloned();
        let Suggestion { suggestion, path, .. } = suggestion;
        return Err(Refused::NotYours { suggestion, path, holder }.into());
    }
    Ok((suggestion, caller))
}

/// Answers a suggestion. Applying was done before: this only keeps that it was.
pub fn answer(
    view: &dyn View,
    given: &str,
    verdict: &Verdict,
    context: &Context,
) -> Result<(Vec<Event>, Told), Refusal> {
    if let Verdict::Decline { why } = verdict {
        tasks::says("reason", why, TEXT_BYTES_MAX)?;
    }
    let (mut suggestion, caller) = answerable(view, given, context)?;
    let (answered_by, answered_at) = (caller.holder(context), context.now);
    let (answer, because) = match verdict {
        Verdict::Apply => (Answer::Applied { answered_by: answered_by.clone(), answered_at }, None),
        Verdict::Decline { why } => {
            let (by, because) = (answered_by.clone(), why.clone());
            (Answer::Declined { answered_by: by, answered_at, because }, Some(why.clone()))
        }
    };
    suggestion.answer = answer.clone();
    let mut events = vec![closed(&suggestion, answer)];
    if suggestion.by.session != answered_by.session {
        let news = News::SuggestionAnswered {
            suggestion: suggestion.suggestion.clone(),
            path: suggestion.path.clone(),
            by: answered_by,
            applied: because.is_none(),
            why: because,
        };
        events.push(notice(&suggestion.by, news, 0, context));
    }
    events.extend(caller.activity(context, &[]));
    Ok((events, told(&suggestion, caller.notices)))
}

fn closed(suggestion: &Suggestion, answer: Answer) -> Event {
    let (suggestion, claim) = (suggestion.suggestion.clone(), suggestion.claim.clone());
    Event::SuggestionAnswered { suggestion, claim, answer }
}

/// Adds what follows when claims with open suggestions end or let go of the path: each becomes a
/// task, or goes along when the same session takes the path anew. Nothing is read unless a claim
/// ends, and nothing more unless it carries suggestions.
pub(crate) fn follow(
    view: &dyn View,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let mut new = Vec::new();
    let mut filed = events.iter().filter(|event| matches!(event, Event::TaskAdded { .. })).count();
    for event in events.iter() {
        let (id, kept, replaced) = match event {
            Event::ClaimEnded { claim, why, .. } => (claim, &[][..], *why == EndOfClaim::Replaced),
            Event::ClaimNarrowed { claim, resources, .. } => (claim, resources.as_slice(), true),
            _ => continue,
        };
        let Some(claim) = get::<Claim>(view, id.as_str())?.filter(|one| one.suggestions > 0) else {
            continue;
        };
        let waiting = Query::equal(BY_CLAIM, id.as_str(), PER_CLAIM_MAX);
        for suggestion in scan::<Suggestion>(view, waiting)? {
            if kept.iter().any(|kept| kept.overlaps(&suggestion.path)) {
                continue;
            }
            let anew = events.iter().filter(|_| replaced).find_map(|event| match event {
                Event::ClaimGranted { claim: new } => Some(new).filter(|new| {
                    new.hold.holder == claim.hold.holder
                        && new.hold.resources.iter().any(|one| one.overlaps(&suggestion.path))
                }),
                _ => None,
            });
            if let Some(anew) = anew {
                let (suggestion, to) = (suggestion.suggestion, anew.claim.clone());
                new.push(Event::SuggestionMoved { suggestion, from: id.clone(), to });
                continue;
            }
            let answered = answered_in(events, &suggestion.suggestion);
            if !answered {
                filed += 1;
                new.extend(file(view, &suggestion, filed, context)?);
            }
        }
    }
    events.append(&mut new);
    Ok(())
}

fn answered_in(events: &[Event], id: &SuggestionId) -> bool {
    events.iter().any(
        |event| matches!(event, Event::SuggestionAnswered { suggestion, .. } if suggestion == id),
    )
}

/// The task that an unanswered suggestion becomes, and the event that says so.
fn file(
    view: &dyn View,
    suggestion: &Suggestion,
    place: usize,
    context: &Context,
) -> Result<[Event; 2], Refusal> {
    let tally = get::<Tally>(view, Tally::KEY)?.unwrap_or_default();
    let task = TaskId::numbered(tally.made + place as u64);
    let path: String = suggestion.path.to_string().chars().take(PATH_SHOWN_MAX).collect();
    let name: String = suggestion.by.name.chars().take(PATH_SHOWN_MAX).collect();
    let mut title = format!("look at {name}'s suggestion for {path}");
    title.truncate(title.floor_char_boundary(TITLE_BYTES_MAX));
    let id = &suggestion.suggestion;
    let how = format!("baton suggestion show {id}\nbaton suggestion apply {id}");
    let body = match suggestion.patch.len() <= IN_BODY_MAX {
        true => format!("{}\n\n{how}\n\n{}", suggestion.why, suggestion.patch),
        false => format!("{}\n\n{how}", suggestion.why),
    };
    let filed = Task {
        task: task.clone(),
        title,
        priority: PRIORITY_DEFAULT,
        phase: None,
        paths: vec![suggestion.path.clone()],
        role: None,
        labels: vec!["suggestion".to_owned()],
        max_attempts: ATTEMPTS_DEFAULT,
        budget_usd: None,
        key: None,
        created_at: context.now,
        created_by: Some(suggestion.by.clone()),
        standing: Standing::new(State::Open, context.now),
        after: Vec::new(),
        pending: Vec::new(),
        unblocks: 0,
        parent: None,
        split: None,
        awaits: None,
        interface: None,
        submission: None,
        remembered: true,
    };
    let answer = Answer::Filed { task, answered_at: context.now };
    Ok([Event::TaskAdded { task: Box::new(filed), body: Some(body) }, closed(suggestion, answer)])
}
