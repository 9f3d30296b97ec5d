//! The words of refusals about gates and votes.
//!
//! Each names the gate, what was decided or can be chosen, and one safe step.

use baton_core::gate::Decision;
use baton_core::gates::refused::{Brief, Refused};
use serde_json::{Value, json};

use crate::render::{self, shown};

/// The sentence, the next step and the document of a refusal.
pub(super) fn of(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::Unknown { gate, near } => unknown(gate, near),
        Refused::Decided { gate, decision } => (
            format!("{} is decided already: {}", named(gate), decision_words(decision)),
            format!("baton gate show {}", gate.gate),
            json!({ "gate": gate, "decision": decision }),
        ),
        Refused::Settled { subject, gate, decision } => (
            format!("{} is decided by {gate}: {}", shown(subject), decision_words(decision)),
            format!("baton gate show {gate}"),
            json!({ "subject": subject, "gate": gate, "decision": decision }),
        ),
        Refused::OtherCommit { gate, given, current } => (
            format!("{} is about commit {current}, not {}", named(gate), shown(given)),
            format!("baton gate show {}", gate.gate),
            json!({ "gate": gate, "given": given, "current": current }),
        ),
        Refused::WhichOption { gate, given, options } => which_option(gate, given, options),
        Refused::NotAutomatic { gate } => (
            format!("{} is for a person to decide: Baton cannot look at it itself", named(gate)),
            format!("baton gate show {}", gate.gate),
            json!({ "gate": gate }),
        ),
        Refused::Untrusted { gate } => (
            format!("nobody stands for the command of {}: an agent filed it", named(gate)),
            format!("ask a person to look at it: baton gate show {}", gate.gate),
            json!({ "gate": gate }),
        ),
        Refused::TooManyOpen { on, max } => (
            format!("{max} gates are open on {} already", shown(on)),
            "baton gate list, to see them".to_owned(),
            json!({ "on": on }),
        ),
        Refused::TooMany { what, max } => (
            format!("there are too many {what}: {max} at the most"),
            "name fewer".to_owned(),
            json!({}),
        ),
        Refused::NoVotes { subject } => (
            format!("nobody voted on \"{}\"", shown(subject)),
            "baton vote SUBJECT VALUE --why 'your reason'".to_owned(),
            json!({ "subject": subject }),
        ),
    }
}

fn named(gate: &Brief) -> String {
    format!("{} on {} (\"{}\")", gate.gate, shown(&gate.on), shown(&gate.ask))
}

/// `approved by ann 5m ago for green: because`.
pub(crate) fn decision_words(decision: &Decision) -> String {
    let by = decision.by.as_ref().map(|by| format!(" by {}", shown(&by.name))).unwrap_or_default();
    let option = decision.option.as_deref().map(|option| format!(" for {}", shown(option)));
    let why = decision.why.as_deref().map(|why| format!(": {}", shown(why)));
    format!(
        "{}{by} {}{}{}",
        decision.outcome.name(),
        render::ago(decision.at),
        option.unwrap_or_default(),
        why.unwrap_or_default()
    )
}

fn unknown(gate: &str, near: &[Brief]) -> (String, String, Value) {
    let names: Vec<String> = near.iter().map(named).collect();
    let open = match names.is_empty() {
        true => "; none is open".to_owned(),
        false => format!("; open: {}", names.join(", ")),
    };
    let next = "baton gate list".to_owned();
    (format!("there is no gate \"{}\"{open}", shown(gate)), next, json!({ "near": near }))
}

fn which_option(
    gate: &Brief,
    given: &Option<String>,
    options: &[String],
) -> (String, String, Value) {
    let listed: Vec<String> = options.iter().map(|option| shown(option)).collect();
    let listed = listed.join(", ");
    let message = match (given, options.is_empty()) {
        (Some(given), true) => {
            format!("{} has no options, and {} is none of them", named(gate), shown(given))
        }
        (Some(given), false) => {
            format!("{} is not one of the options of {}: {listed}", shown(given), named(gate))
        }
        (None, _) => format!("{} asks for a choice: {listed}", named(gate)),
    };
    let next = match options.first() {
        Some(first) => {
            let id = &gate.gate;
            format!("baton gate approve {id} --option '{}' --why 'your reason'", shown(first))
        }
        None => format!("baton gate approve {} --why 'your reason'", gate.gate),
    };
    (message, next, json!({ "gate": gate, "given": given, "options": options }))
}
