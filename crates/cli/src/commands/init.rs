//! `init`: stand-in until its engineer is done.

use std::process::ExitCode;

use baton_core::context::Actor;
use baton_engine::setup;

use crate::arguments::Common;
use crate::desk::{self, Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// Ask nothing
    #[arg(long)]
    yes: bool,
    /// Clients to wire up: none for now
    #[arg(long, default_value = "none")]
    agents: String,
}

pub(crate) fn run(common: &Common, wanted: &Init) -> Outcome {
    let _ = (wanted.yes, &wanted.agents);
    let folder = desk::folder(common)?;
    let (mut workspace, made) = setup::make(&folder, desk::address().as_deref())?;
    if let Some(policy) = setup::written_policy(&workspace.place)? {
        setup::put_in_force(&mut workspace, &Actor::default(), &policy)?;
    }
    desk::print(if made { "made\n" } else { "there already\n" });
    Ok(ExitCode::SUCCESS)
}
