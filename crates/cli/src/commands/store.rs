//! Stand-in until its engineer is done.
use crate::arguments::Common;
use crate::desk::Outcome;
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Store {
    Show,
}
pub(crate) fn run(_: &Common, _: &Store) -> Outcome {
    todo!()
}
