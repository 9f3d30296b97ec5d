//! The words of refusals about shared state and commands that run once.
//!
//! Owns their sentences and `next:` steps. A part of the table in [`super`].

use baton_core::claim::Holder;
use baton_core::once;
use baton_core::state::rules::{Kind, Owner};
use baton_core::state::{Against, Refused, VALUE_BYTES_MAX, VALUE_DEPTH_MAX};
use baton_core::time::Moment;
use serde_json::{Value, json};

use super::shell_word;
use crate::render::{ago, json_shown, shown};

type Words = (String, String, Value);

pub(super) fn state(refused: &Refused) -> Words {
    match refused {
        Refused::Unknown { key, version, near } => {
            let gone = if *version > 0 { " any more" } else { "" };
            let perhaps: Vec<String> = near.iter().map(|key| shown(key.as_str())).collect();
            let perhaps = match perhaps.is_empty() {
                true => String::new(),
                false => format!("; perhaps {}", perhaps.join(", ")),
            };
            let next = match near.first() {
                Some(near) => format!("baton state get {}", shell_word(near.as_str())),
                None => "baton state list, to see what there is".to_owned(),
            };
            (
                format!("{key} has no value{gone}{perhaps}"),
                next,
                json!({ "key": key, "version": version, "near": near }),
            )
        }
        Refused::Stale { key, given, current, exists, by, read } => {
            let next =
                format!("baton state get {} --json, then decide again", shell_word(key.as_str()));
            let details = json!({ "key": key, "given": given, "current": current,
                "by": by.as_ref().map(|(by, _)| by) });
            (stale(key.as_str(), *given, *current, *exists, by.as_ref(), *read), next, details)
        }
        Refused::Against { key, rule, why, set } => {
            let (message, next) = against(key.as_str(), *rule, why, set.as_ref());
            let details = json!({ "key": key, "rule": rule, "why": why.to_string() });
            (message, next, details)
        }
        Refused::NotOwner { key, owner, by } => {
            let whose = match (owner, by) {
                (Owner::Role(role), _) => format!("written by the role {} alone", shown(role)),
                (Owner::Session, Some(by)) => format!("{}'s, who wrote it first", shown(&by.name)),
                (Owner::Session, None) => "another session's".to_owned(),
            };
            (
                format!("{key} is {whose}; everyone may read it"),
                "use a key of your own, or baton policy show, to see the rules".into(),
                json!({ "key": key, "owner": owner, "by": by }),
            )
        }
        Refused::TooLarge { .. } | Refused::TooDeep { .. } | Refused::TooMany { .. } => {
            over_limit(refused)
        }
        Refused::NoDraft { key } => {
            let what = key.as_ref().map(|key| format!(" of {key}")).unwrap_or_default();
            (
                format!("you have no draft{what}"),
                "baton state set KEY VALUE --draft makes one".into(),
                json!({ "key": key }),
            )
        }
    }
}

fn over_limit(refused: &Refused) -> Words {
    match refused {
        Refused::TooLarge { key, bytes } => (
            format!("{key} would have {bytes} bytes; {VALUE_BYTES_MAX} at the most"),
            "keep large things in a file or a commit, and its name here".into(),
            json!({ "key": key, "bytes": bytes }),
        ),
        Refused::TooDeep { key } => (
            format!("{key} would nest deeper than {VALUE_DEPTH_MAX} levels"),
            "store it flatter, or over several keys".into(),
            json!({ "key": key }),
        ),
        Refused::TooMany { what, given, max } => (
            format!("{given} {what} are too many: {max} at the most"),
            "do it in smaller parts".into(),
            json!({ "given": given, "max": max }),
        ),
        other => (other.to_string(), "baton state --help".to_owned(), json!({})),
    }
}

fn stale(
    key: &str,
    given: u64,
    current: u64,
    exists: bool,
    by: Option<&(Holder, Moment)>,
    read: bool,
) -> String {
    let who = match by {
        Some((by, at)) => format!(" by {} {}", shown(&by.name), ago(*at)),
        None => String::new(),
    };
    let given = match (given, read) {
        (0, true) => "it had no value when it was read".to_owned(),
        (0, false) => "it was to have no value".to_owned(),
        (given, true) => format!("version {given} was read"),
        (given, false) => format!("version {given} was expected"),
    };
    match (exists, current) {
        (true, _) => format!("{key} is at version {current}, set{who}; {given}"),
        (false, 0) => format!("{key} has no value, version 0; {given}"),
        (false, _) => format!("{key} was deleted{who}, version {current}; {given}"),
    }
}

fn against(
    key: &str,
    rule: Kind,
    why: &Against,
    set: Option<&(Holder, Moment)>,
) -> (String, String) {
    let at = shell_word(key);
    let see = format!("baton state get {at}");
    match why {
        Against::NotAnArray if rule == Kind::Replace => {
            (format!("{key} is not an array, so nothing can be appended to it"), see)
        }
        Against::NotAnArray => (
            format!("{key} is kept by the rule {rule}, which is for arrays"),
            format!("baton state append {at} VALUE"),
        ),
        Against::NotANumber => {
            (format!("{key} is kept by the rule max, which is for numbers"), see)
        }
        Against::Shrinks => (
            format!("{key} only grows at its end, and this would change what is there"),
            format!("baton state append {at} VALUE"),
        ),
        Against::AlreadySet => {
            let who = match set {
                Some((by, at)) => format!(" by {} {}", shown(&by.name), ago(*at)),
                None => String::new(),
            };
            (format!("{key} is set once, and was set{who}"), see)
        }
        Against::NoStage { given, stages } => (
            format!("{} is not a stage of {key}", shown(&json_shown(given, false))),
            format!("use one of its stages: {}", shown(&stages.join(", "))),
        ),
        Against::Backwards { from, to } => {
            (format!("{key} never goes backwards: {} comes before {}", shown(to), shown(from)), see)
        }
        Against::NotMerged => (format!("{key} is kept by the rule {rule}, without merging"), see),
        Against::NotAppended => (format!("{key} is kept by the rule {rule}, as one value"), see),
        Against::NotDeleted => {
            (format!("{key} is kept by the rule {rule}, and is never deleted"), see)
        }
    }
}

pub(super) fn once(refused: &once::Refused) -> Words {
    match refused {
        once::Refused::Running { key, runner, waited } => {
            let late = if *waited { "the wait is over, and " } else { "" };
            let message = format!("{late}{key} is {}", running(runner));
            let next = format!("baton once {} --wait 10m -- COMMAND", shell_word(key.as_str()));
            let details = json!({ "key": key, "holder": runner.holder, "token": runner.token,
                "since": runner.started_at, "until": runner.lease_until });
            (message, next, details)
        }
        once::Refused::LostTurn { key, given, current } => {
            let now = match current {
                Some(runner) => format!("it is {}", running(runner)),
                None => "nobody runs it now".to_owned(),
            };
            (
                format!("the turn {given} at {key} was lost, so its result is not kept: {now}"),
                format!("baton once {} --wait 10m -- COMMAND", shell_word(key.as_str())),
                json!({ "key": key, "given": given,
                    "current": current.as_ref().map(|runner| runner.token) }),
            )
        }
    }
}

/// `being run by amber-otter since 5s ago (make, process 42)`.
pub(crate) fn running(runner: &once::Runner) -> String {
    let process = match &runner.process {
        Some(process) => format!(", process {}", process.pid),
        None => String::new(),
    };
    format!(
        "being run by {}, started {} ({}{process})",
        shown(&runner.holder.name),
        ago(runner.started_at),
        shown(&runner.command.program)
    )
}
