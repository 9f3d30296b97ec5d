//! Stand-in until its engineer is done.
use crate::arguments::Common;
use crate::desk::Outcome;
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Person {
    Show,
}
pub(crate) fn run(_: &Common, _: &Person) -> Outcome {
    todo!()
}
