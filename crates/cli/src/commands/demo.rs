//! Stand-in until its engineer is done.
use crate::desk::Outcome;
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {}
pub(crate) fn run(_: &Demo) -> Outcome {
    todo!()
}
