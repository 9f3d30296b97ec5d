//! `next-number`: the next number of a folder, handed out once.
//!
//! Owns the words: the number alone goes to standard output, so that a script can use it.

use std::process::ExitCode;

use baton_core::numbers::Given;
use baton_engine::api::trees as api;
use baton_engine::numbering;

use crate::desk::{Desk, Outcome, remark};
use crate::news::notices_words;
use crate::render::{colour_wanted, shown};

pub(crate) fn next(desk: &mut Desk, wanted: &api::NextNumber) -> Outcome {
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let given = numbering::next(workspace, actor, cwd, wanted, operation.as_deref())?;
    if !desk.json {
        if let (Some(claimed), Some(token)) = (&given.claimed, given.token) {
            remark(&format!("claimed {}, token {token}", shown(&claimed.to_string())));
        }
        let told = notices_words(&given.notices, colour_wanted(&std::io::stderr()));
        if !told.is_empty() {
            remark(told.trim_end());
        }
    }
    desk.answer(&given, |given: &Given, _| format!("{}\n", given.text));
    Ok(ExitCode::SUCCESS)
}
