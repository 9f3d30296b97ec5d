//! The words of refusals about handoffs.
//!
//! Owns their sentences and `next:` steps. What is missing is said all at once, and the next step
//! names every option that is needed.

use baton_core::handoff::To;
use baton_core::handoffs::refused::{Missing, OutOfReach, Refused};
use baton_core::tasks::refused::Brief;
use serde_json::{Value, json};

use crate::commands::handoff::{ended_words, to_words};
use crate::render::{self, resources, shown};
use crate::words::word;

type Words = (String, String, Value);

/// So many files are named, and so much of a commit.
const FILES_SHOWN: usize = 5;
const COMMIT_SHOWN: usize = 12;

pub(super) fn of(refused: &Refused) -> Words {
    match refused {
        Refused::Unknown { handoff, near } => {
            let names: Vec<&str> = near.iter().map(|id| id.as_str()).collect();
            let meant = match names.is_empty() {
                true => String::new(),
                false => format!("; there is {}", names.join(", ")),
            };
            let message = format!("there is no handoff \"{}\"{meant}", shown(handoff));
            (message, "baton handoff list".to_owned(), json!({ "near": near }))
        }
        Refused::Incomplete { task, missing } => incomplete(task, missing),
        Refused::NoSuchArtifact { given } => no_such_artifact(given),
        Refused::ToYourself { task } => (
            format!("{} is yours already; it can be handed to others only", named(task)),
            format!("baton task show {}", task.task),
            json!({ "task": task }),
        ),
        Refused::NotForYou { handoff, to, yours } => {
            let you = match (to, yours) {
                (To::Role(_), Some(yours)) => format!("; your role is {}", shown(yours)),
                (To::Role(_), None) => "; you have no role".to_owned(),
                _ => String::new(),
            };
            (
                format!("{handoff} is for {}{you}", to_words(to)),
                "baton handoff list --mine".to_owned(),
                json!({ "handoff": handoff, "to": to }),
            )
        }
        Refused::Over { handoff, task, state, owner, end, until } => {
            let how = match end {
                Some(end) => ended_words(end),
                None => {
                    format!("can no longer be accepted (it stood until {})", until_words(*until))
                }
            };
            let now = match owner {
                Some(owner) => format!("{} is {}'s", task.task, shown(owner)),
                None => format!("{} is {}", task.task, state.name()),
            };
            (
                format!("{handoff} {how}; {now}"),
                format!("baton task show {}", task.task),
                json!({ "handoff": handoff, "task": task, "state": state, "owner": owner,
                    "end": end }),
            )
        }
        Refused::Entangled { task, with, resources: held } => (
            format!(
                "claims for {task} overlap {}, which is claimed for {with}: they cannot part",
                resources(held)
            ),
            format!("baton task show {with}, and finish or park one of the two first"),
            json!({ "task": task, "with": with, "resources": held }),
        ),
        Refused::OutOfReach(far) => out_of_reach(far),
        Refused::NoTask => (
            "no task of this session is active".to_owned(),
            "baton task take".to_owned(),
            json!({}),
        ),
    }
}

fn no_such_artifact(given: &[String]) -> Words {
    let names: Vec<String> = given.iter().map(|text| shown(text)).collect();
    (
        format!("neither a file nor a commit here: {}", names.join(", ")),
        "name files that exist, or commits of this repository".to_owned(),
        json!({ "artifacts": given }),
    )
}

/// Who has it, where it is, and what to say there, or how the work comes here.
fn out_of_reach(far: &OutOfReach) -> Words {
    let OutOfReach { handoff, task, tree, client, .. } = far;
    let folder = far.path.as_deref().map(|path| format!(" ({})", shown(path)));
    let folder = folder.unwrap_or_default();
    let machine = match (&far.host, far.this_machine) {
        (_, true) => "in another clone on this machine".to_owned(),
        (Some(host), false) => format!("on the machine {}", shown(host)),
        (None, false) => render::NOT_OF_THIS_CLONE.to_owned(),
    };
    let open = match far.uncommitted.as_slice() {
        [] => String::new(),
        some => {
            let names: Vec<String> =
                some.iter().take(FILES_SHOWN).map(|path| shown(path)).collect();
            let more = if some.len() > FILES_SHOWN { ", …" } else { "" };
            format!("; in no commit: {}{more}", names.join(", "))
        }
    };
    let message = format!(
        "the work on {} of {} is in tree {tree}{folder}, {machine}, and {client} would not find it \
         here{open}; nothing was accepted",
        named(task),
        shown(&far.from)
    );
    let accept = format!("baton handoff accept {handoff} --start {client}");
    let next = match (&far.commit, &far.path) {
        (Some(commit), _) => format!(
            "the work is committed, and in this clone: baton worktree new {} --base {}, cd there, \
             baton start {client} --tree here, and in it baton handoff accept {handoff}",
            task.task,
            shown(&commit.chars().take(COMMIT_SHOWN).collect::<String>())
        ),
        (None, Some(path)) if far.this_machine => format!("cd {}, then {accept}", word(path)),
        (None, Some(path)) => format!("there: cd {}, then {accept}", word(path)),
        (None, None) => format!("there, in that clone: {accept}"),
    };
    (message, next, json!({ "out_of_reach": far }))
}

fn until_words(until: baton_core::time::Moment) -> String {
    render::until(until)
}

fn named(task: &Brief) -> String {
    format!("{} \"{}\"", task.task, shown(&task.title))
}

fn incomplete(task: &Brief, missing: &[Missing]) -> Words {
    let mut parts = Vec::new();
    let mut options: Vec<&str> = Vec::new();
    for one in missing {
        let (part, option) = match one {
            Missing::State => ("where the work stands".to_owned(), "--state '…'"),
            Missing::Remaining => ("what is left to do".to_owned(), "--remaining '…'"),
            Missing::Next { given: None } => ("the next step".to_owned(), "--next '…'"),
            Missing::Next { given: Some(given) } => {
                (format!("a concrete next step (not \"{}\")", shown(given)), "--next '…'")
            }
            Missing::Decisions { files: 0 } => {
                ("the decisions behind what changed".to_owned(), "--decision 'what: why'")
            }
            Missing::Decisions { files } => {
                let files = render::counted(*files as u64, "changed file", "changed files");
                (format!("the decisions behind {files}"), "--decision 'what: why'")
            }
            Missing::Why { decision } => {
                (format!("why \"{}\" was decided", shown(decision)), "--decision 'what: why'")
            }
            Missing::Status => {
                ("the status in the result".to_owned(), "--result '{\"status\": \"…\"}'")
            }
        };
        parts.push(part);
        if !options.contains(&option) {
            options.push(option);
        }
    }
    let message = format!("the handoff of {} does not say: {}", named(task), parts.join("; "));
    let next = format!("add {}", options.join(" "));
    (message, next, json!({ "task": task, "missing": missing }))
}
