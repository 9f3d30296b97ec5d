//! Stand-in until its engineer is done.
#![expect(unused_variables, clippy::todo, reason = "stand-in")]
use crate::arguments::Common;
use crate::desk::Outcome;
#[derive(Debug, clap::Args)]
pub(crate) struct Journal {}
pub(crate) fn run(common: &Common, wanted: &Journal) -> Outcome {
    todo!()
}
