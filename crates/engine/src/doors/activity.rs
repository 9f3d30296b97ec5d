//! Who wrote in a working tree, and when: edits, and the time that shell commands ran.
//!
//! Owns the trace by which a change is laid at somebody's door. It tells only what hooks saw: a
//! change that nobody here explains has an unknown writer, who is never accused.

use std::time::{SystemTime, UNIX_EPOCH};

use baton_core::context::Actor;
use baton_core::id::{SessionId, TreeId};

use super::traces::Trace;
use crate::place::Place;

/// The clock of file times runs in steps; a change may seem to be this much older than it is.
pub(super) const STEP_MS: u64 = 20;
/// A command that was begun and whose end nobody told is over after this.
const COMMAND_MS_MAX: u64 = 6 * 60 * 60 * 1_000;

/// What hooks saw in one tree, oldest first.
#[derive(Debug)]
pub(super) struct Activity {
    trace: Trace,
    me: Option<SessionId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Edited(String),
    Began(String),
    Ended(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// In milliseconds of the wall clock, which is that of file times.
    pub(super) at: u64,
    pub(super) session: SessionId,
    pub(super) deed: Deed,
}

impl Activity {
    pub(super) fn here(place: &Place, tree: &TreeId, actor: &Actor) -> Self {
        let name: String = tree.0.chars().filter(char::is_ascii_alphanumeric).take(64).collect();
        Self { trace: Trace::named(place, &format!("tree-{name}")), me: actor.session.clone() }
    }

    pub(super) fn edited(&self, path: &str) {
        self.add('e', path);
    }

    pub(super) fn began(&self, call: &str) {
        self.add('b', call);
    }

    pub(super) fn ended(&self, call: &str) {
        self.add('x', call);
    }

    fn add(&self, kind: char, what: &str) {
        let Some(me) = &self.me else { return };
        self.trace.add(&format!("{} {} {kind} {what}", now(), me.as_str()));
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        self.trace.lines().iter().filter_map(|line| parsed(line)).collect()
    }
}

fn parsed(line: &str) -> Option<Line> {
    let mut parts = line.splitn(4, ' ');
    let at = parts.next()?.parse().ok()?;
    let session = SessionId(parts.next()?.to_owned());
    let kind = parts.next()?;
    let what = parts.next().unwrap_or_default().to_owned();
    let deed = match kind {
        "e" => Deed::Edited(what),
        "b" => Deed::Began(what),
        "x" => Deed::Ended(what),
        _ => return None,
    };
    Some(Line { at, session, deed })
}

/// When this session's command began, by the clock of files.
pub(super) fn window(lines: &[Line], me: &SessionId, call: &str) -> Option<u64> {
    let began = |line: &&Line| line.session == *me && line.deed == Deed::Began(call.to_owned());
    lines.iter().rev().find(began).map(|line| line.at.saturating_sub(STEP_MS))
}

/// When somebody else was told last to have edited that path.
pub(super) fn last_edit_by_others(lines: &[Line], me: &SessionId, path: &str) -> Option<u64> {
    let edit = |line: &&Line| {
        line.session != *me && matches!(&line.deed, Deed::Edited(one) if one == path)
    };
    lines.iter().filter(edit).map(|line| line.at).max()
}

/// Did a command of this session run at any time since?
pub(super) fn ran_since(lines: &[Line], who: &SessionId, since: u64) -> bool {
    let own: Vec<&Line> = lines.iter().filter(|line| line.session == *who).collect();
    own.iter().enumerate().any(|(at, line)| {
        let Deed::Began(call) = &line.deed else { return false };
        let end = Deed::Ended(call.clone());
        let ended = own[at..].iter().find(|later| later.deed == end).map(|later| later.at);
        ended.unwrap_or(line.at + COMMAND_MS_MAX) >= since
    })
}

pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_explains_what_changed_while_it_ran() {
        let who = |name: &str| SessionId(name.to_owned());
        let lines: Vec<Line> =
            ["100 a b c1", "150 b e src/x y.rs", "200 a x c1", "300 b b c9", "rubbish", "9 a"]
                .iter()
                .filter_map(|line| parsed(line))
                .collect();
        assert_eq!(lines.len(), 4);
        assert!(ran_since(&lines, &who("a"), 150) && !ran_since(&lines, &who("a"), 250));
        assert!(ran_since(&lines, &who("b"), 10_000), "it has not ended");
        assert_eq!(last_edit_by_others(&lines, &who("a"), "src/x y.rs"), Some(150));
        assert_eq!(last_edit_by_others(&lines, &who("b"), "src/x y.rs"), None, "its own");
        assert_eq!(last_edit_by_others(&lines, &who("a"), "y.rs"), None);
        assert_eq!(window(&lines, &who("a"), "c1"), Some(80));
        assert_eq!(window(&lines, &who("a"), "c2"), None);
    }
}
