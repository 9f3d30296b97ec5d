//! Calls of a shell: what must be known of a line when it is over.
//!
//! Owns the one record of a call, written before its line runs: where that began and whether it is
//! compared afterwards. When a line is over its client tells the folder that the line went to, from
//! which its words mean other files. How things stood in each tree it is about, `held` knows.

use std::path::PathBuf;

use baton_core::resource::Resource;
use serde::{Deserialize, Serialize};

use super::activity::Who;
use super::traces::Trace;
use crate::place::Place;

/// Longer lines are not kept; then it is not known what a command in the background was.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// The last calls of an agent, which may still run.
const RECENT_MAX: usize = 32;

/// What stands for the id of a call where a client gives none, for all of them.
pub const UNNAMED: &str = "-";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) call: String,
    /// Where the line began.
    pub(super) cwd: PathBuf,
    /// The root of the tree that is in.
    pub(super) root: PathBuf,
    /// Roots of the other trees that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) others: Vec<PathBuf>,
    /// It may write something: others are told when it began and ended.
    pub(super) writes: bool,
    /// It may write anywhere.
    pub(super) compared: bool,
    /// Folders of that tree which it moves or takes away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) moved: Vec<Resource>,
    /// The line, where it may go on when its call is over: nobody tells it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<String>,
}

/// A line is about to run. A record that cannot be written leaves what its client tells after it.
pub(super) fn begins(place: &Place, me: &Who, begun: &Begun) {
    let short = |line: &String| line.len() <= LINE_BYTES_MAX;
    let begun = Begun { line: begun.line.clone().filter(short), ..begun.clone() };
    if let Ok(record) = serde_json::to_string(&begun) {
        trace(place, me).add(&format!("{} {record}", me.text()));
    }
}

/// The last call of that id.
pub(super) fn find(place: &Place, me: &Who, call: &str) -> Option<Begun> {
    let found = |text: String| newest(&text, me).find(|begun| begun.call == call);
    trace(place, me).tails().find_map(found)
}

/// The last call of that id that went on when it was over. Clients that give no ids use one for
/// all calls.
pub(super) fn find_behind(place: &Place, me: &Who, call: &str) -> Option<Begun> {
    let behind = |begun: &Begun| begun.call == call && begun.line.is_some();
    trace(place, me).tails().find_map(|text| newest(&text, me).find(behind))
}

/// The last calls of an agent, the newest first.
pub(super) fn recent(place: &Place, me: &Who) -> Vec<Begun> {
    let text = trace(place, me).tails().next().unwrap_or_default();
    newest(&text, me).take(RECENT_MAX).collect()
}

fn newest<'a>(text: &'a str, me: &Who) -> impl Iterator<Item = Begun> + 'a {
    let who = me.text();
    let own = text.lines().rev().filter_map(move |line| line.strip_prefix(&who)?.strip_prefix(' '));
    own.filter_map(|record| serde_json::from_str(record).ok())
}

fn trace(place: &Place, me: &Who) -> Trace {
    Trace::of_session(place, &me.session, "calls")
}
