//! Why a role cannot be held here, in words, with the one next step.
//!
//! Owns the sentences. No step lets a command loose that was to be confined: doing without is for
//! whoever asks for it by name.

use baton_engine::sandbox::Error;
use serde_json::{Value, json};

use crate::render::shown;
use crate::words::word;

/// The store cannot be written though its file could be: whoever asks is confined, and the way out
/// is the broker's, or nobody's.
pub(super) const CLOSED: &str = "this runs in a sandbox, where the store stays closed: run it \
outside; under baton start or baton sandbox, pass BATON_BROKER and BATON_SESSION on to it (baton \
init brings the settings of clients up to date)";

pub(super) fn of(error: &Error) -> (&'static str, String, String, Value) {
    let (code, next) = match error {
        Error::NotLinux => ("not_linux", "run it in a container or machine with Linux".to_owned()),
        Error::NoLandlock => (
            "no_landlock",
            "use a kernel of 6.2 or later with Landlock on; --best-effort runs it with less"
                .to_owned(),
        ),
        Error::NotConfined { .. } => ("not_confined", "baton doctor".to_owned()),
        Error::NoNamespace { .. } => {
            ("no_namespace", "allow user namespaces on this machine, or leave --net out".to_owned())
        }
        Error::TooManyFiles => (
            "too_many_files",
            "give the role folders by name: write = [\"src/\"] in [roles.NAME] of baton.toml"
                .to_owned(),
        ),
        Error::NotText { .. } => ("not_text", "use folders with names in UTF-8".to_owned()),
        Error::BrokerGone => (
            "broker_gone",
            "end this command and start it again with baton sandbox or baton start".to_owned(),
        ),
        Error::Elsewhere { .. } => (
            "elsewhere",
            "work in the tree of the sandbox, and leave others to sessions outside".to_owned(),
        ),
        Error::OtherBranch { began, .. } => (
            "other_branch",
            match began {
                Some(branch) => format!("git switch {}, then again", word(branch)),
                None => "leave it to a session outside".to_owned(),
            },
        ),
    };
    let message = match error {
        Error::Elsewhere { .. } => shown(&error.to_string()),
        Error::OtherBranch { .. } => {
            format!("{}: only the first is moved from inside", shown(&error.to_string()))
        }
        // Whether it was asked before that is not known.
        Error::BrokerGone => error.to_string(),
        error => format!("{}; nothing was started", shown(&error.to_string())),
    };
    (code, message, next, json!({}))
}
