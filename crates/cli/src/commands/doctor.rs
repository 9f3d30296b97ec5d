//! Stand-in until its engineer is done.
use crate::arguments::Common;
use crate::desk::Outcome;
pub(crate) fn run(_: &Common) -> Outcome {
    todo!()
}
