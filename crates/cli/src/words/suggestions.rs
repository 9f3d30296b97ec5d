//! Why a suggestion cannot be made or answered, in words, with the one next step.
//!
//! Owns the sentences. What agents wrote is shown escaped.

use baton_core::suggestions::Refused;
use serde_json::{Value, json};

use crate::render::shown;

pub(super) fn of(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::NotHeld { path } => {
            let path = shown(&path.to_string());
            let message = format!("nobody holds {path}: there is nobody to suggest it to");
            (message, format!("baton claim {path}, and change it yourself"), json!({}))
        }
        Refused::Own { path } => {
            let path = shown(&path.to_string());
            (format!("you hold {path} yourself"), "make the change".to_owned(), json!({}))
        }
        Refused::NotAFile { path } => (
            format!("{} is not one file", shown(&path.to_string())),
            "name the one file that the patch changes".to_owned(),
            json!({}),
        ),
        Refused::Patch(wrong) => (
            format!("the patch makes no sense at line {}: {}", wrong.line, shown(&wrong.what)),
            "git diff -- PATH, which writes one".to_owned(),
            json!({ "line": wrong.line }),
        ),
        Refused::OtherPath { path, other } => {
            let path = shown(&path.to_string());
            let message = format!("the patch changes {}, not only {path}", shown(other));
            (message, format!("git diff -- {path}, which writes one"), json!({ "other": other }))
        }
        Refused::TooMany { to, max } => (
            format!("{max} suggestions wait for {} already", shown(&to.name)),
            "baton ask PATH --why '…', so that it answers".to_owned(),
            json!({ "to": to }),
        ),
        Refused::Unknown { given } => (
            format!("there is no suggestion \"{}\"", shown(given)),
            "baton suggestions --all".to_owned(),
            json!({}),
        ),
        Refused::Answered { suggestion, answer } => (
            format!("{suggestion} is {} already", answer.name()),
            format!("baton suggestion show {suggestion}"),
            json!({ "suggestion": suggestion, "answer": answer }),
        ),
        Refused::NotYours { suggestion, path, holder } => {
            let path = shown(&path.to_string());
            let (who, next) = match holder {
                Some(holder) => (
                    format!("{} holds it", shown(&holder.name)),
                    format!("baton suggestion show {suggestion}"),
                ),
                None => ("nobody holds it".to_owned(), format!("baton claim {path}")),
            };
            let message = format!("{suggestion} is for whoever holds {path}: {who}");
            (message, next, json!({ "suggestion": suggestion, "holder": holder }))
        }
    }
}
