//! Notes: decisions, lessons and progress, written down for whoever comes next.
//!
//! Append-only: a note is never changed and never goes. Text is stored as it was given and escaped
//! where it is shown (S20). The index has the newest first, because that is how notes are read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::id::Position;
use crate::notices::Notice;
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::time::Moment;
use crate::view::{self, Index, Query, Record, View, scan};

pub const TEXT_BYTES_MAX: usize = 8_000;
pub const TASK_BYTES_MAX: usize = 64;
/// How many notes one list shows at the most.
pub const LISTED_MAX: u32 = 1_000;

/// Values are `FILTER/newest first`, for every filter a list can have.
pub const BY_TIME: Index = "note.time";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// What was chosen, and why.
    Decision,
    /// What should be known the next time.
    Lesson,
    /// Where the work stands.
    Progress,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Lesson => "lesson",
            Self::Progress => "progress",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Its place in the journal, which is also its name.
    pub note: Position,
    pub kind: Kind,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The rule of the project it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<u32>,
    pub by: Holder,
    pub at: Moment,
}

impl Record for Note {
    const KIND: view::Kind = "note";

    fn key(&self) -> String {
        self.note.to_string()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        let order = newest_first(self.at, Some(self.note));
        let mut filters = vec![filter(None, None), filter(Some(self.kind), None)];
        if let Some(task) = &self.task {
            filters.push(filter(None, Some(task)));
            filters.push(filter(Some(self.kind), Some(task)));
        }
        filters.extend(self.rule.map(of_rule));
        filters.into_iter().map(|filter| (BY_TIME, format!("{filter}{order}"))).collect()
    }
}

/// `decision:t1/`, `:/`. A task id has no `:` and no `/`.
fn filter(kind: Option<Kind>, task: Option<&str>) -> String {
    format!("{}:{}/", kind.map_or("", Kind::word), task.unwrap_or_default())
}

/// No kind begins with `#`.
fn of_rule(rule: u32) -> String {
    format!("#{rule}:/")
}

/// Scans go upwards: what is newer must be smaller.
fn newest_first(at: Moment, note: Option<Position>) -> String {
    let time = u64::MAX - at.0;
    match note {
        None => format!("{time:020}"),
        Some(Position { epoch, number }) => {
            format!("{time:020}{:010}{:020}", u32::MAX - epoch, u64::MAX - number)
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Request {
    pub kind: Kind,
    pub text: String,
    pub task: Option<String>,
    pub rule: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Noted {
    pub note: Position,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    pub at: Moment,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

pub fn add(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Noted), Refusal> {
    if request.text.trim().is_empty() {
        let allowed = format!("1 to {TEXT_BYTES_MAX} bytes of text");
        return Err(Refusal::OutOfRange { what: "note", given: "without text".into(), allowed });
    }
    if request.text.len() > TEXT_BYTES_MAX {
        return Err(Refusal::TooLong { what: "note", bytes_max: TEXT_BYTES_MAX });
    }
    check_task(request.task.as_deref())?;
    if request.rule == Some(0) {
        let (given, allowed) = ("0".to_owned(), "the number of a rule, from 1 on".to_owned());
        return Err(Refusal::OutOfRange { what: "rule", given, allowed });
    }
    let caller = Caller::read(view, context)?;
    let note = Note {
        note: context.next,
        kind: request.kind,
        text: request.text.clone(),
        task: request.task.clone(),
        rule: request.rule,
        by: caller.holder(context),
        at: context.now,
    };
    let mut events = vec![Event::NoteAdded { note: note.clone() }];
    events.extend(caller.activity(context, &[]));
    let Note { note, kind, task, at, .. } = note;
    Ok((events, Noted { note, kind, task, at, notices: caller.notices }))
}

fn check_task(task: Option<&str>) -> Result<(), Refusal> {
    let Some(task) = task else {
        return Ok(());
    };
    if task.is_empty() || task.len() > TASK_BYTES_MAX {
        let (given, allowed) = (format!("{task:?}"), format!("1 to {TASK_BYTES_MAX} bytes"));
        return Err(Refusal::OutOfRange { what: "task", given, allowed });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match task.chars().find(|c| !allowed(*c)) {
        Some(character) => Err(Refusal::BadText { what: "task", character }),
        None => Ok(()),
    }
}

/// Which notes are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub kind: Option<Kind>,
    pub task: Option<String>,
    /// About this rule, of whatever kind and task.
    pub rule: Option<u32>,
    /// Not older than this.
    pub since: Option<Moment>,
    /// Later in the journal than this.
    pub after: Option<Position>,
    pub limit: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notes {
    /// Oldest first.
    pub notes: Vec<Note>,
    /// There are older ones that fit.
    pub more: bool,
}

/// The newest notes that fit, oldest of them first.
pub fn list(view: &dyn View, wanted: &Wanted) -> Result<Notes, Refusal> {
    check_task(wanted.task.as_deref())?;
    let limit = wanted.limit.min(LISTED_MAX);
    let filter = match wanted.rule {
        Some(rule) => of_rule(rule),
        None => filter(wanted.kind, wanted.task.as_deref()),
    };
    let until = match wanted.since {
        // The moment itself counts, so everything that begins with it must be below the end.
        Some(since) => format!("{filter}{}~", newest_first(since, None)),
        None => format!("{filter}~"),
    };
    let query = Query::Scan { index: BY_TIME, from: filter, until, after: None, limit: limit + 1 };
    let mut notes: Vec<Note> = scan(view, query)?;
    notes.retain(|note| wanted.after.is_none_or(|after| note.note > after));
    let more = notes.len() > limit as usize;
    notes.truncate(limit as usize);
    notes.reverse();
    Ok(Notes { notes, more })
}
