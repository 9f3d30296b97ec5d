//! Interfaces in words: why something cannot be, and what became of what others build on.
//!
//! Owns the sentences. Names and signatures are others' text and are shown escaped.

use baton_core::interfaces::FileChange;
use baton_core::interfaces::refused::{Refused, What};
use baton_core::key::Key;
use baton_core::refusal::Held;
use serde_json::{Value, json};

use super::word;
use crate::render::{self, counted, shown};

/// Signatures of each sort that one sentence names.
const NAMED_MAX: usize = 5;

pub(super) fn of(refused: &Refused) -> (String, String, Value) {
    let list = || "baton interface list".to_owned();
    match refused {
        Refused::BadName { given, source } => (
            format!("\"{}\" cannot be the name of an interface: {source}", shown(given)),
            "use letters, digits and -_.: with / between the parts, for example auth/api".into(),
            json!({}),
        ),
        Refused::Taken { name, owner } => (
            format!(
                "there is an interface {} already, kept by {}",
                plain(name),
                shown(&owner.name)
            ),
            format!("baton interface show {}, or choose another name", plain(name)),
            json!({ "name": name, "owner": owner }),
        ),
        Refused::FileTaken { path, name, owner } => {
            let (path, name, owner_name) =
                (shown(&path.to_string()), plain(name), shown(&owner.name));
            let message =
                format!("{path} belongs to the interface {name} already, kept by {owner_name}");
            let next = format!("baton interface use {name}");
            (message, next, json!({ "name": name, "owner": owner }))
        }
        Refused::Unknown { given, near } => {
            let next = match near.first() {
                Some(near) => format!("baton interface show {}", plain(near)),
                None => list(),
            };
            let message = format!("there is no interface \"{}\"", shown(given));
            (message, next, json!({ "near": near }))
        }
        Refused::NotAFile { path } => (
            format!("{} is not one file", shown(&path.to_string())),
            "name each file that others build on".to_owned(),
            json!({ "path": path }),
        ),
        Refused::Missing { path } => (
            format!("there is no file {}", shown(&path.to_string())),
            "name each file that others build on; it must be there".to_owned(),
            json!({ "path": path }),
        ),
        Refused::TooMany { what, max } => {
            let next = match what {
                What::Files => "make two of it".to_owned(),
                What::Users | What::Interfaces => list(),
            };
            (format!("more than {max} {} are too many", what.name()), next, json!({ "max": max }))
        }
        Refused::NotYours { name, owner } => {
            let message =
                format!("the interface {} is kept by {}", plain(name), shown(&owner.name));
            let next = format!(
                "baton interface show {}, which names its files, and baton ask FILE --why '…'",
                plain(name)
            );
            (message, next, json!({ "name": name, "owner": owner }))
        }
    }
}

fn plain(name: &Key) -> String {
    shown(name.as_str())
}

/// Why a path may not be changed: it is what others build on.
pub(super) fn kept(held: &Held, name: &Key) -> String {
    let (asked, file) = (shown(&held.resource.to_string()), shown(&held.held.to_string()));
    let what = match asked == file {
        true => asked,
        false => format!("{asked} reaches {file}, which"),
    };
    let (name, owner) = (plain(name), render::holder(&held.holder));
    let since = render::ago(held.since);
    format!(
        "{what} belongs to the interface {name}, which {owner} keeps since {since}: others \
         build on it, and only its owner changes it"
    )
}

/// What can be done instead.
pub(super) fn kept_next(held: &Held, name: &Key) -> String {
    let file = word(&held.held.to_string());
    let name = plain(name);
    format!(
        "baton ask {file} --why 'what you need', baton suggest {file} --patch FILE --why '…', or \
         baton interface show {name}"
    )
}

/// `src/api.rs: now load(p, q), was load(p); added save(); removed drop()`.
pub(crate) fn change_words(change: &FileChange) -> String {
    let mut parts = Vec::new();
    if change.deleted {
        parts.push("it was deleted".to_owned());
    }
    for one in change.resigned.iter().take(NAMED_MAX) {
        parts.push(format!("now {}, was {}", shown(&one.after), shown(&one.before)));
    }
    parts.extend(listed("added", &change.added));
    parts.extend(listed("removed", &change.removed));
    let hidden = [change.resigned.len(), change.added.len(), change.removed.len()];
    let hidden: usize = hidden.iter().map(|count| count.saturating_sub(NAMED_MAX)).sum();
    match hidden as u64 + u64::from(change.more) {
        0 => {}
        more => parts.push(format!("and {more} more")),
    }
    match change.lines {
        None => {}
        Some(0) => parts.push("it changed".to_owned()),
        Some(lines) if parts.is_empty() => {
            parts.push(format!("{} changed", counted(u64::from(lines), "line", "lines")));
        }
        Some(lines) => {
            let lines = counted(u64::from(lines), "other line", "other lines");
            parts.push(format!("{lines} changed"));
        }
    }
    format!("{}: {}", shown(&change.path.to_string()), parts.join("; "))
}

fn listed(verb: &str, signatures: &[String]) -> Option<String> {
    let named: Vec<String> = signatures.iter().take(NAMED_MAX).map(|one| shown(one)).collect();
    (!named.is_empty()).then(|| format!("{verb} {}", named.join(", ")))
}

/// All files of one change, in one line.
pub(crate) fn changes_words(changes: &[FileChange]) -> String {
    changes.iter().map(change_words).collect::<Vec<_>>().join("; ")
}
