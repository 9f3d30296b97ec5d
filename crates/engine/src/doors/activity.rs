//! Who wrote in a working tree, and when: edits, and the time that shell commands ran.
//!
//! Owns the trace by which a change is laid at somebody's door. It tells only what hooks saw: a
//! change that nobody here explains has an unknown writer, who is never accused.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use baton_core::claim::Holder;
use baton_core::context::Actor;
use baton_core::id::{SessionId, TreeId};

use super::traces::Trace;
use crate::workspace::Workspace;

/// The clock of file times runs in steps; a change may seem to be this much older than it is.
pub(super) const STEP_MS: u64 = 20;
/// A command that was begun and whose end nobody told is over after this.
const COMMAND_MS_MAX: u64 = 6 * 60 * 60 * 1_000;
/// A subagent whose command runs and that nothing was heard of for so long is taken for ended when
/// its session's user says something: most commands of agents may not take longer.
const SILENT_MS_MAX: u64 = 10 * 60 * 1_000;
/// A command in the background is looked after for so long.
pub(super) const BACKGROUND_MS_MAX: u64 = 60 * 60 * 1_000;

/// What hooks saw in one tree, oldest first.
#[derive(Debug)]
pub(super) struct Activity {
    trace: Trace,
    me: Option<Who>,
}

/// A session, or one of its subagents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Who {
    pub(super) session: SessionId,
    agent: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Edited(String),
    Began(String),
    /// A command that goes on when its tool call is over.
    BeganBehind(String),
    Ended(String),
    /// Its turn is over: no command of its own runs any more, but for those in the background.
    Rested,
    /// Its session is over, with all that it ran.
    Left,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// In milliseconds of the wall clock, which is that of file times.
    pub(super) at: u64,
    pub(super) who: Who,
    pub(super) deed: Deed,
}

/// Whether commands of somebody ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Busy {
    No,
    /// Something in the background, which mostly writes nothing.
    Behind,
    Yes,
}

impl Who {
    pub(super) fn acting(actor: &Actor) -> Option<Self> {
        let session = actor.session.clone()?;
        // Words of a line are parted by spaces.
        let agent = actor.agent.as_ref().map(|agent| agent.replace(char::is_whitespace, "_"));
        Some(Self { session, agent })
    }

    fn parsed(text: &str) -> Self {
        let (session, agent) = match text.split_once('/') {
            Some((session, agent)) => (session, Some(agent.to_owned())),
            None => (text, None),
        };
        Self { session: SessionId(session.to_owned()), agent }
    }

    pub(super) fn text(&self) -> String {
        match &self.agent {
            Some(agent) => format!("{}/{agent}", self.session),
            None => self.session.0.clone(),
        }
    }

    /// May it write what that one holds? A session may write what its subagents hold; of others it
    /// is not asked which of their subagents it was.
    pub(super) fn acts_for(&self, holder: &Holder, me: &Self) -> bool {
        let agent = holder.agent.as_ref().map(|agent| agent.replace(char::is_whitespace, "_"));
        self.session == holder.session
            && self != me
            && (holder.session != me.session || self.agent.is_none() || self.agent == agent)
    }
}

impl Workspace {
    /// What hooks saw in the tree that this is about.
    pub(super) fn activity(&self, actor: &Actor) -> Activity {
        let trace = Trace::named(&self.place, &format!("tree-{}", tree_word(&self.tree)));
        Activity { trace, me: Who::acting(actor) }
    }
}

/// A tree as one word of a line or a file name.
pub(super) fn tree_word(tree: &TreeId) -> String {
    tree.0.chars().filter(char::is_ascii_alphanumeric).take(64).collect()
}

impl Activity {
    /// A command begins; one that is `behind` goes on when its tool call is over.
    pub(super) fn begins(&self, call: &str, behind: bool) {
        match behind {
            true => self.add('g', call),
            false => self.add('b', call),
        }
    }

    pub(super) fn edited(&self, path: &str) {
        self.add('e', path);
    }

    pub(super) fn ended(&self, call: &str) {
        self.add('x', call);
    }

    pub(super) fn rested(&self) {
        self.add('r', "");
    }

    pub(super) fn left(&self) {
        self.add('l', "");
    }

    /// Does a command of one's own run, as far as was told?
    pub(super) fn has_open_command(&self) -> bool {
        let lines = self.lines();
        let open = |(at, line): (usize, &Line)| {
            Some(&line.who) == self.me.as_ref()
                && matches!(line.deed, Deed::Began(_) | Deed::BeganBehind(_))
                && end_of(&lines, at).is_none()
        };
        lines.iter().enumerate().any(open)
    }

    /// Calls of one's own whose end nobody told.
    pub(super) fn unended(&self) -> Vec<String> {
        let lines = self.lines();
        let open = |(at, line): (usize, &Line)| match &line.deed {
            Deed::Began(call) if Some(&line.who) == self.me.as_ref() => {
                end_of(&lines, at).is_none().then(|| call.clone())
            }
            _ => None,
        };
        lines.iter().enumerate().filter_map(open).collect()
    }

    /// Commands of one's own subagents whose end nobody told, and of which nothing was heard for
    /// long: who interrupts a subagent ends it without a word. One that does work goes on to act.
    pub(super) fn ends_of_silent_subagents(&self) {
        let Some(me) = self.me.as_ref().filter(|me| me.agent.is_none()) else { return };
        let lines = self.lines();
        for (who, call) in silent_subagents(&lines, me, now()) {
            self.add_of(&who, 'x', &call);
        }
    }

    fn add(&self, kind: char, what: &str) {
        if let Some(me) = &self.me {
            self.add_of(me, kind, what);
        }
    }

    fn add_of(&self, who: &Who, kind: char, what: &str) {
        self.trace.add(&format!("{} {} {kind} {what}", now(), who.text()));
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        self.trace.lines().iter().filter_map(|line| parsed(line)).collect()
    }
}

fn parsed(line: &str) -> Option<Line> {
    let mut parts = line.splitn(4, ' ');
    let at = parts.next()?.parse().ok()?;
    let who = Who::parsed(parts.next()?);
    let kind = parts.next()?;
    let what = parts.next().unwrap_or_default().to_owned();
    let deed = match kind {
        "e" => Deed::Edited(what),
        "b" => Deed::Began(what),
        "g" => Deed::BeganBehind(what),
        "x" => Deed::Ended(what),
        "r" => Deed::Rested,
        "l" => Deed::Left,
        _ => return None,
    };
    Some(Line { at, who, deed })
}

/// When this one's command began, by the clock of files.
pub(super) fn window(lines: &[Line], me: &Who, call: &str) -> Option<u64> {
    let began = |line: &&Line| {
        line.who == *me
            && matches!(&line.deed, Deed::Began(one) | Deed::BeganBehind(one) if one == call)
    };
    lines.iter().rev().find(began).map(|line| line.at.saturating_sub(STEP_MS))
}

/// When somebody else was told last to have edited that path.
pub(super) fn last_edit_by_others(lines: &[Line], me: &Who, path: &str) -> Option<u64> {
    let edit =
        |line: &&Line| line.who != *me && matches!(&line.deed, Deed::Edited(one) if one == path);
    lines.iter().filter(edit).map(|line| line.at).max()
}

/// Did commands of these run at any time since?
pub(super) fn busy_since(lines: &[Line], whose: impl Fn(&Who) -> bool, since: u64) -> Busy {
    let began = lines.iter().enumerate().filter(|(_, line)| whose(&line.who));
    let busy = began.filter_map(|(at, line)| {
        let (busy, limit) = match line.deed {
            Deed::Began(_) => (Busy::Yes, COMMAND_MS_MAX),
            Deed::BeganBehind(_) => (Busy::Behind, BACKGROUND_MS_MAX),
            _ => return None,
        };
        let end = end_of(lines, at).unwrap_or(line.at + limit);
        (end >= since).then_some(busy)
    });
    busy.max().unwrap_or(Busy::No)
}

/// Calls of these that ran at any time since, and whose each is.
pub(super) fn calls_since(
    lines: &[Line],
    whose: impl Fn(&Who) -> bool,
    since: u64,
) -> Vec<(&Who, &str)> {
    let began = lines.iter().enumerate().filter(|(_, line)| whose(&line.who));
    let ran = began.filter_map(|(at, line)| match &line.deed {
        Deed::Began(call) | Deed::BeganBehind(call) => {
            end_of(lines, at).is_none_or(|end| end >= since).then_some((&line.who, call.as_str()))
        }
        _ => None,
    });
    ran.collect()
}

/// When the command that begins there was told to be over.
fn end_of(lines: &[Line], at: usize) -> Option<u64> {
    let line = &lines[at];
    let ends = |later: &&Line| match (&later.deed, &line.deed) {
        (Deed::Left, _) => later.who.session == line.who.session,
        _ if later.who != line.who => false,
        (Deed::Rested, Deed::Began(_)) => true,
        (Deed::Ended(one), Deed::Began(call) | Deed::BeganBehind(call)) => one == call,
        // It was not over when its tool call was.
        (Deed::BeganBehind(one), Deed::Began(call)) => one == call,
        _ => false,
    };
    lines[at + 1..].iter().find(ends).map(|later| later.at)
}

/// Other sessions with commands whose end nobody told: they may be gone.
pub(super) fn with_open_ends(lines: &[Line], me: &Who) -> BTreeSet<SessionId> {
    let open = lines.iter().enumerate().filter(|(at, line)| {
        line.who.session != me.session
            && matches!(line.deed, Deed::Began(_) | Deed::BeganBehind(_))
            && end_of(lines, *at).is_none()
    });
    open.map(|(_, line)| line.who.session.clone()).collect()
}

/// Open commands of this session's subagents that have said nothing for long.
fn silent_subagents(lines: &[Line], me: &Who, now: u64) -> Vec<(Who, String)> {
    let open = lines.iter().enumerate().filter_map(|(at, line)| match &line.deed {
        Deed::Began(call) if end_of(lines, at).is_none() => Some((&line.who, call)),
        _ => None,
    });
    let silent = |who: &Who| {
        let last = lines.iter().rev().find(|line| line.who == *who).map_or(0, |line| line.at);
        last + SILENT_MS_MAX <= now
    };
    open.filter(|(who, _)| who.session == me.session && who.agent.is_some() && silent(who))
        .map(|(who, call)| (who.clone(), call.clone()))
        .collect()
}

/// Did anybody else do anything since: an edit, or a command that ran?
pub(super) fn anybody_since(lines: &[Line], me: &Who, since: u64) -> bool {
    let edit =
        |line: &Line| line.who != *me && line.at >= since && matches!(line.deed, Deed::Edited(_));
    lines.iter().any(edit) || busy_since(lines, |who| who != me, since) != Busy::No
}

pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<Line> {
        text.iter().filter_map(|line| parsed(line)).collect()
    }

    fn busy(lines: &[Line], name: &str, since: u64) -> Busy {
        let who = Who::parsed(name);
        busy_since(lines, |one| *one == who, since)
    }

    #[test]
    fn a_command_explains_what_changed_while_it_ran() {
        let who = Who::parsed;
        let lines = lines(&[
            "100 a b c1",
            "150 b e src/x y.rs",
            "200 a x c1",
            "300 b b c9",
            "rubbish",
            "9 a",
        ]);
        assert_eq!(lines.len(), 4);
        assert_eq!((busy(&lines, "a", 150), busy(&lines, "a", 250)), (Busy::Yes, Busy::No));
        assert_eq!(busy(&lines, "b", 10_000), Busy::Yes, "it has not ended");
        assert_eq!(with_open_ends(&lines, &who("a")), [SessionId("b".into())].into());
        assert_eq!(last_edit_by_others(&lines, &who("a"), "src/x y.rs"), Some(150));
        assert_eq!(last_edit_by_others(&lines, &who("b"), "src/x y.rs"), None, "its own");
        assert_eq!(last_edit_by_others(&lines, &who("a"), "y.rs"), None);
        assert_eq!(window(&lines, &who("a"), "c1"), Some(80));
        assert_eq!(window(&lines, &who("a"), "c2"), None);
    }

    #[test]
    fn the_end_of_a_turn_is_the_end_of_its_commands_but_not_of_those_in_the_background() {
        let lines = lines(&[
            "100 a b c1",
            "100 a/sub b c2",
            "100 b g c3",
            "100 c b c4",
            "120 c g c4",
            "200 a r ",
            "200 b r ",
            "400 b l ",
        ]);
        assert_eq!(busy(&lines, "a", 300), Busy::No);
        assert_eq!(busy(&lines, "a/sub", 300), Busy::Yes, "a subagent may outlast it");
        assert_eq!(busy(&lines, "b", 300), Busy::Behind);
        assert_eq!(busy(&lines, "b", 500), Busy::No, "its session is over");
        assert_eq!(busy(&lines, "c", 300), Busy::Behind, "it went on behind its call");
        assert_eq!(busy(&lines, "c", 200 + BACKGROUND_MS_MAX), Busy::No);
    }

    #[test]
    fn a_subagent_that_is_silent_for_long_was_interrupted() {
        let late = 100 + SILENT_MS_MAX;
        let lines = lines(&[
            "100 a/one b c1",
            "100 a/two b c2",
            "100 a b c3",
            "100 b/one b c4",
            "100 a/three g c5",
            &format!("{} a/two e x.rs", late - 1),
        ]);
        let found = silent_subagents(&lines, &Who::parsed("a"), late);
        assert_eq!(found, [(Who::parsed("a/one"), "c1".to_owned())]);
        assert_eq!(silent_subagents(&lines, &Who::parsed("a"), late - 1), []);
    }

    #[test]
    fn siblings_are_others() {
        let holder = |agent: Option<&str>| Holder {
            session: SessionId("a".into()),
            name: String::new(),
            agent: agent.map(str::to_owned),
        };
        let me = Who::parsed("a/two");
        assert!(Who::parsed("a/one").acts_for(&holder(Some("one")), &me));
        assert!(Who::parsed("a").acts_for(&holder(Some("one")), &me));
        assert!(!me.acts_for(&holder(Some("one")), &me));
        assert!(!Who::parsed("a/three").acts_for(&holder(Some("one")), &me));
        assert!(Who::parsed("a/one").acts_for(&holder(None), &Who::parsed("b")));
    }
}
