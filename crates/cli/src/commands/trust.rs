//! `trust`: a person stands for the commands that `baton.toml` lets Baton run.
//!
//! Owns the question and its words. Invariant: whoever is asked sees every command in full, with
//! what else the file changes, before anything is trusted.

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::policy::{Change, Difference};
use baton_core::refusal::Refusal;
use baton_core::trust::Given;
use baton_engine::failure::Failure;
use baton_engine::policy::{self, Commands};
use baton_engine::{config, setup, whoami};

use super::policy::{commands_words, difference_words};
use crate::arguments::Common;
use crate::desk::{self, Desk, Outcome, remark};
use crate::render::{Paint, colour_wanted, counted, paint};
use crate::words::Problem;

#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    /// Ask nothing
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(common: &Common, wanted: &Trust) -> Outcome {
    let mut desk = Desk::open_as(common, whoami::actor)?;
    let path = desk.workspace.place.root.join(config::FILE_NAME);
    let written =
        setup::written_policy(&desk.workspace.place)?.ok_or(Failure::NoConfig { path })?;
    if !desk.actor.person {
        let what = "trusting commands".to_owned();
        return Err(Failure::Refused(Refusal::NeedsPerson { what }).into());
    }
    let commands = policy::commands(&mut desk.workspace, &written)?;
    if !wanted.yes {
        let current = policy::in_force(&mut desk.workspace)?.unwrap_or_default();
        ask(&Difference::between(&current, &written), &commands)?;
    }
    let (actor, operation) = (desk.actor.clone(), desk.operation.clone());
    let given = policy::trust(&mut desk.workspace, &actor, &written, operation.as_deref())?;
    desk.answer(&given, given_words);
    Ok(ExitCode::SUCCESS)
}

/// Shows everything and asks; no answer is no.
fn ask(difference: &Difference, commands: &Commands) -> Result<(), Problem> {
    if difference.is_empty() && commands.untrusted.is_empty() {
        return Ok(());
    }
    let unsaid = |why: &str, next: &str| Problem {
        exit: 1,
        code: "needs_yes",
        message: why.to_owned(),
        next: next.to_owned(),
        details: serde_json::json!({ "commands": commands.all }),
    };
    let colour = colour_wanted(&std::io::stderr());
    if !difference.is_empty() {
        remark("This changes the policy in force:");
        remark(difference_words(difference, colour).trim_end());
    }
    remark(commands_shown(commands).trim_end());
    if !desk::can_ask() {
        let why = "there is no terminal to ask at, and nothing is trusted unasked";
        return Err(unsaid(why, "read baton.toml, then baton trust --yes"));
    }
    match desk::ask("Put baton.toml in force and let Baton run these?") {
        true => Ok(()),
        false => Err(unsaid("nothing was trusted: the answer was no", "change baton.toml")),
    }
}

fn commands_shown(commands: &Commands) -> String {
    if commands.all.is_empty() {
        return "It lets Baton run no command.\n".to_owned();
    }
    let mut text = "It lets Baton run:\n".to_owned();
    for command in &commands.all {
        let sign = if commands.untrusted.contains(command) { "  + " } else { "    " };
        text.push_str(&commands_words(std::slice::from_ref(command), sign));
    }
    text
}

fn given_words(given: &Given, colour: bool) -> String {
    let policy = match given.policy {
        Change::InForce => "baton.toml is in force now",
        Change::Unchanged => "baton.toml was in force already",
    };
    let count = counted(given.commands.len() as u64, "command", "commands");
    let word = paint("trusted", Paint::Green, colour);
    let mut text = format!("{word} {count}; {policy}\n");
    text.push_str(&commands_words(&given.added, "  + "));
    for line in commands_words(&given.dropped, "").lines() {
        let _ = writeln!(text, "  - {line}");
    }
    text
}
