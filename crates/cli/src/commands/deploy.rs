//! `deploy` and `deploys`: what ships where, and what came of it.
//!
//! Owns the words and the exit code: 0 only when what was shipped was verified, or nothing is there
//! to verify it; 1 when it failed. What the commands write is shown as it comes, on standard error.

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::deploy::{Deploy, Outcome as Came};
use baton_core::notices::Notice;
use baton_engine::api::deploys as api;
use baton_engine::deploying::{self, DeployList, Door, Listed};

use crate::arguments::Common;
use crate::desk::{Desk, Outcome, remark};
use crate::news::notices_words;
use crate::onlooker::Onlooker;
use crate::render::{self, Paint, colour_wanted, paint, shown, table};
use crate::words::word;

const COMMIT_SHOWN: usize = 12;

pub(crate) fn run(common: &Common, wanted: &api::Deploy) -> Outcome {
    let mut desk = Desk::open_to_act(common)?;
    let mut terminal = Onlooker::new()?;
    let Desk { workspace, actor, operation, .. } = &mut desk;
    let deployed = deploying::deploy(workspace, actor, wanted, operation.as_deref(), &mut terminal);
    desk.tell_of_gates();
    let deploy = deployed?;
    desk.answer(&deploy, words);
    match deploy.end.map(|end| end.outcome) {
        Some(Came::Succeeded | Came::Unverified) => Ok(ExitCode::SUCCESS),
        _ => Ok(ExitCode::from(1)),
    }
}

pub(crate) fn list(common: &Common, wanted: &api::Deploys) -> Outcome {
    let mut desk = Desk::open(common)?;
    let found = deploying::list(&mut desk.workspace, wanted)?;
    desk.answer(&found, list_words);
    Ok(ExitCode::SUCCESS)
}

impl Door for Onlooker<'_> {
    fn step(&mut self, what: &str) {
        Self::step(what);
    }

    fn wrote(&mut self, bytes: &[u8]) {
        Self::wrote(bytes);
    }

    fn was_told(&mut self, notices: &[Notice]) {
        let text = notices_words(notices, colour_wanted(&std::io::stderr()));
        if !text.is_empty() {
            remark(text.trim_end());
        }
    }

    fn end_wanted(&mut self) -> bool {
        Self::end_wanted(self)
    }
}

fn short(commit: &str) -> String {
    shown(&commit.chars().take(COMMIT_SHOWN).collect::<String>())
}

fn tint_of(outcome: &str) -> Paint {
    match outcome {
        "succeeded" => Paint::Green,
        "running" => Paint::Cyan,
        "unverified" => Paint::Yellow,
        _ => Paint::Red,
    }
}

fn words(deploy: &Deploy, colour: bool) -> String {
    let state = deploy.state();
    let verb = if deploy.rollback { "rollback" } else { "deploy" };
    let (target, commit) = (shown(&deploy.target), short(&deploy.commit));
    let mut text =
        format!("{} {verb} of {commit} to {target}", paint(state, tint_of(state), colour));
    let run = deploy.shipped.map(|shipped| shipped.exit);
    let verified = deploy.end.and_then(|end| end.verify);
    let why = match (deploy.end.map(|end| end.outcome), run, verified) {
        (Some(Came::Unverified), ..) => ": nothing verifies it ([deploy] verify)".to_owned(),
        (Some(Came::Failed), None, _) => ": nothing was run".to_owned(),
        (Some(Came::Failed), Some(0), Some(exit)) => {
            format!(": it was shipped, and verify ended with {exit}")
        }
        (Some(Came::Failed), Some(0), None) => ": it was shipped, and not verified".to_owned(),
        (Some(Came::Failed), Some(exit), _) => format!(": run ended with {exit}"),
        _ => String::new(),
    };
    let _ = writeln!(text, "{why}");
    let _ = writeln!(text, "  log: {}", shown(&deploy.log));
    if deploy.state() == "failed" {
        let next = match run {
            Some(0) => format!("look at what is live; baton deploys {}", word(&deploy.target)),
            _ => "read the log, mend it and deploy again".to_owned(),
        };
        let _ = writeln!(text, "{}: {next}", paint("next", Paint::Cyan, colour));
    }
    text
}

fn list_words(found: &DeployList, colour: bool) -> String {
    if found.deploys.is_empty() {
        return "nothing was deployed yet\n".to_owned();
    }
    let row = |one: &Listed| {
        let deploy = &one.deploy;
        let what = if deploy.rollback { " (rollback)" } else { "" };
        vec![
            shown(&deploy.target),
            short(&deploy.commit),
            format!("{}{what}", one.outcome),
            if one.live { "live".to_owned() } else { String::new() },
            render::holder(&deploy.by),
            render::ago(deploy.started_at),
        ]
    };
    let rows: Vec<Vec<String>> = found.deploys.iter().map(row).collect();
    let mut text = table(&["TARGET", "COMMIT", "OUTCOME", "", "BY", "WHEN"], &rows, colour);
    if found.more {
        text.push_str("there are more: baton deploys TARGET\n");
    }
    text
}
