//! Breaches: somebody wrote what another held, around every door that could have refused it.
//!
//! Owns what is written down of one. It takes nothing away and decides nothing: the journal has the
//! evidence, and whoever wrote is told at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{self, Because};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::scene::Caller;
use crate::time::Moment;
use crate::view::View;

/// By which door it came to light.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Door {
    Shell,
    Git,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breach {
    pub by: Holder,
    pub resource: Resource,
    pub holder: Holder,
    pub door: Door,
    pub at: Moment,
    /// It changed while a command of `by` ran, and its holder tells nobody when it writes: whose
    /// change it is, nobody knows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
}

/// Writes down that the caller changed these, as far as others hold them now; of those that are
/// `unsure` only that they changed while it was at work.
pub fn note(
    view: &dyn View,
    resources: &[Resource],
    unsure: bool,
    door: Door,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Held>), Refusal> {
    let by = Caller::read(view, context)?.holder(context);
    let checked = check::check(view, resources, None, context)?;
    let held = checked.findings.into_iter().filter(|finding| finding.because == Because::Held);
    let held: Vec<Held> = held.filter_map(|finding| finding.held.into_iter().next()).collect();
    let events = held.iter().map(|held| Event::HoldBreached {
        breach: Breach {
            by: by.clone(),
            resource: held.resource.clone(),
            holder: held.holder.clone(),
            door,
            at: context.now,
            unsure,
        },
    });
    Ok((events.collect(), held))
}
