//! `policy show` and `policy approve`: what of `baton.toml` is in force.
//!
//! Owns the question before a policy changes; `init` asks it through here too, so that there is one
//! way to approve.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::context::Actor;
use baton_core::deploy;
use baton_core::id::SessionId;
use baton_core::key::KeyPattern;
use baton_core::policy::{Approved, Change, Difference, Standing};
use baton_core::refusal::Refusal;
use baton_core::roles;
use baton_core::state::rules::{Owner, Rule};
use baton_core::tasks::evidence::Rules;
use baton_core::tree::Identity;
use baton_core::trust::Command;
use baton_core::zones::Zone;
use baton_engine::failure::Failure;
use baton_engine::policy::{self, OnDisk, Shown};
use baton_engine::workspace::Workspace;
use baton_engine::{config, setup, whoami};

use super::gate::argv_words;
use super::init::rule_word;
use crate::arguments::Common;
use crate::desk::{self, Desk, Outcome, remark};
use crate::render::{self, Paint, colour_wanted, paint, shown, table};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Policy {
    /// The zones in force, and whether baton.toml here differs
    Show,
    /// Put baton.toml of this tree in force (a person's right)
    Approve {
        /// Ask nothing
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) fn run(common: &Common, wanted: &Policy) -> Outcome {
    match wanted {
        Policy::Show => {
            let mut desk = Desk::open(common)?;
            let shown = policy::show(&mut desk.workspace)?;
            desk.answer(&shown, shown_words);
            Ok(ExitCode::SUCCESS)
        }
        Policy::Approve { yes } => approve(&mut Desk::open_as(common, whoami::actor)?, *yes),
    }
}

fn approve(desk: &mut Desk, yes: bool) -> Outcome {
    let path = desk.workspace.place.root.join(config::FILE_NAME);
    let written =
        setup::written_policy(&desk.workspace.place)?.ok_or(Failure::NoConfig { path })?;
    let standing = whoami::standing(&desk.workspace, &desk.actor);
    let (actor, operation) = (desk.actor.clone(), desk.operation.clone());
    let workspace = &mut desk.workspace;
    let approved = approve_as(workspace, &actor, standing, &written, yes, operation.as_deref())?;
    desk.answer(&approved, |approved: &Approved, colour| match approved.policy {
        Change::InForce => {
            format!("{} baton.toml is in force now\n", paint("approved", Paint::Green, colour))
        }
        Change::Unchanged => "unchanged: baton.toml says what is in force already\n".to_owned(),
    });
    Ok(ExitCode::SUCCESS)
}

/// Puts a policy in force after the person, if there is one to ask, has seen what changes. Without
/// a terminal only `--yes` counts, and only where there is no sign of an agent.
pub(crate) fn approve_as(
    workspace: &mut Workspace,
    actor: &Actor,
    standing: Standing,
    written: &baton_core::zones::Policy,
    yes: bool,
    operation: Option<&str>,
) -> Result<Approved, Failure> {
    let needs_person =
        || Failure::Refused(Refusal::NeedsPerson { what: "a change of the policy".to_owned() });
    if let Some(current) = policy::in_force(workspace)? {
        let difference = Difference::between(&current, written);
        if !difference.is_empty() && standing != Standing::Agent && !yes {
            if !desk::can_ask() {
                return Err(needs_person());
            }
            remark("This changes the policy in force:\n");
            remark(&difference_words(&difference, colour_wanted(&std::io::stderr())));
            if !desk::ask("Put baton.toml in force?") {
                return Err(needs_person());
            }
        }
    }
    policy::put_in_force(workspace, actor, written, standing, operation)
}

fn shown_words(found: &Shown, colour: bool) -> String {
    let mut text = match (found.approved_at, found.zones.is_empty()) {
        (None, _) => "no policy is in force: everything is auto\n".to_owned(),
        (Some(at), true) => format!("in force since {}: no zones, all is auto\n", render::ago(at)),
        (Some(at), false) => {
            let rows: Vec<Vec<String>> = found
                .zones
                .iter()
                .map(|zone| vec![rule_word(zone.policy).to_owned(), paths_of(zone)])
                .collect();
            let zones = table(&["POLICY", "PATHS"], &rows, colour);
            format!("in force, approved {}; the last match wins:\n{zones}", render::ago(at))
        }
    };
    for (name, capacity) in &found.capacities {
        let _ = writeln!(text, "@{}: {capacity} in all", shown(name));
    }
    if !found.tasks.is_default() {
        let becomes = found.tasks.on_exhausted.to_string();
        let _ = writeln!(text, "tasks without attempts: {}", shown(&becomes));
    }
    for rule in &found.state {
        let _ = writeln!(text, "state {}", state_words(rule));
    }
    text.push_str(&evidence_words(&found.evidence, ""));
    if !found.trees.is_default() {
        let _ = writeln!(text, "working trees: {}", tree_words(&found.trees));
    }
    text.push_str(&deploys_words(&found.deploys, ""));
    text.push_str(&roles_words(&found.roles, ""));
    let (sentence, next) = match found.on_disk {
        OnDisk::Same => ("baton.toml here says the same".to_owned(), None),
        OnDisk::Missing => ("there is no baton.toml in this tree".to_owned(), None),
        OnDisk::Broken => {
            let why = found.broken.as_deref().unwrap_or_default();
            (format!("baton.toml here cannot be used: {}", shown(why)), None)
        }
        OnDisk::Differs => {
            ("baton.toml here differs:".to_owned(), Some("baton policy approve, by a person"))
        }
        OnDisk::NothingInForce => {
            ("baton.toml here is not in force yet".to_owned(), Some("baton policy approve"))
        }
    };
    if !found.untrusted.is_empty() {
        let word = paint("not trusted", Paint::Yellow, colour);
        let _ = writeln!(text, "{word}, so Baton does not run them:");
        text.push_str(&commands_words(&found.untrusted, "  "));
    }
    let _ = writeln!(text, "{sentence}");
    if let Some(difference) = &found.difference {
        text.push_str(&difference_words(difference, colour));
    }
    let trust = (!found.untrusted.is_empty()).then_some("baton trust, by a person");
    if let Some(next) = next.or(trust) {
        let _ = writeln!(text, "{}: {next}", paint("next", Paint::Cyan, colour));
    }
    text
}

/// One line for each command: what it is for, and its words as they are run.
pub(crate) fn commands_words(commands: &[Command], indent: &str) -> String {
    let line = |command: &Command| {
        format!("{indent}{}: {}\n", shown(&command.what), argv_words(&command.argv))
    };
    commands.iter().map(line).collect()
}

fn paths_of(zone: &Zone) -> String {
    let paths: Vec<String> = zone.paths.iter().map(|path| shown(&path.to_string())).collect();
    paths.join(", ")
}

/// `build/*: forward planned, building, done; written by role:lead`.
fn state_words(rule: &Rule) -> String {
    let keys: Vec<&str> = rule.keys.iter().map(KeyPattern::as_str).collect();
    let stages = match rule.stages.is_empty() {
        true => String::new(),
        false => format!(" {}", rule.stages.join(", ")),
    };
    let owner = match &rule.owner {
        Some(Owner::Session) => "; written by its first writer".to_owned(),
        Some(owner) => format!("; written by {owner}"),
        None => String::new(),
    };
    shown(&format!("{}: {}{stages}{owner}", keys.join(", "), rule.rule))
}

/// One line for each thing that `done` asks for.
fn evidence_words(rules: &Rules, sign: &str) -> String {
    let mut text = String::new();
    if !rules.require.is_empty() {
        let names: Vec<&str> = rules.require.iter().map(|proof| proof.name()).collect();
        let checks = match rules.checks.is_empty() {
            true => String::new(),
            false => format!("; checks {}", shown(&rules.checks.join(", "))),
        };
        let _ = writeln!(text, "{sign}done needs {}{checks}", names.join(", "));
    }
    for check in &rules.named {
        let (name, run) = (shown(&check.name), shown(&check.run.join(" ")));
        let _ = writeln!(text, "{sign}check {name}: {run}, at most {}", check.timeout);
    }
    if let Some(target) = &rules.target {
        let _ = writeln!(text, "{sign}target {}", shown(target));
    }
    text
}

fn tree_words(rules: &baton_core::tree::Rules) -> String {
    let dir = rules.dir.as_deref().map_or("beside the repository".to_owned(), shown);
    let identity = match rules.identity {
        Identity::Agent => "commits by the agent",
        Identity::Person => "commits by the person",
        Identity::Off => "commits as everywhere",
    };
    let copied = match rules.copy.is_empty() {
        true => "nothing".to_owned(),
        false => shown(&rules.copy.join(", ")),
    };
    let setup = match rules.setup.is_empty() {
        true => String::new(),
        false => format!(", set up by {}", argv_words(&rules.setup)),
    };
    format!("in {dir}, {copied} copied, {identity}{setup}")
}

/// One line for each target.
fn deploys_words(deploys: &BTreeMap<String, deploy::Rules>, indent: &str) -> String {
    let line = |(target, rules): (&String, &deploy::Rules)| {
        let verify = match rules.verify.is_empty() {
            true => "nothing verifies it".to_owned(),
            false => format!("verified by {}", argv_words(&rules.verify)),
        };
        let gate = if rules.gate { ", a person approves" } else { "" };
        let run = argv_words(&rules.run);
        format!("{indent}deploy {}: {run}, {verify}{gate}\n", shown(target))
    };
    deploys.iter().map(line).collect()
}

/// One line for each role and kind of the project's own.
fn roles_words(rules: &roles::Rules, indent: &str) -> String {
    let nobody = SessionId("SESSION".to_owned());
    let mut text = String::new();
    for (kind, paths) in &rules.kinds {
        let paths: Vec<String> = paths.iter().map(|path| shown(&path.to_string())).collect();
        let _ = writeln!(text, "{indent}{}: {}", kind.word(), paths.join(", "));
    }
    for (name, role) in &rules.named {
        let deeds = [("commit", role.commit), ("land", role.land), ("deploy", role.deploy)];
        let may: Vec<&str> = deeds.iter().filter(|(_, may)| *may).map(|(deed, _)| *deed).collect();
        let may = if may.is_empty() { "nothing else".to_owned() } else { may.join(", ") };
        let words = shown(&role.words(&nobody));
        let _ = writeln!(text, "{indent}role {}: {words}; may {may}", shown(name));
    }
    text
}

pub(super) fn difference_words(difference: &Difference, colour: bool) -> String {
    let mut text = String::new();
    let mut line = |sign: &str, tint, zone: &Zone| {
        let words = format!("{sign} {:<7}  {}", rule_word(zone.policy), paths_of(zone));
        let _ = writeln!(text, "  {}", paint(&words, tint, colour));
    };
    difference.removed.iter().for_each(|zone| line("-", Paint::Red, zone));
    difference.added.iter().for_each(|zone| line("+", Paint::Green, zone));
    if difference.reordered {
        text.push_str("  they come in another order, and the last match wins\n");
    }
    for (sign, tint, rules) in
        [("-", Paint::Red, &difference.state_removed), ("+", Paint::Green, &difference.state_added)]
    {
        for rule in rules {
            let words = format!("{sign} state    {}", state_words(rule));
            let _ = writeln!(text, "  {}", paint(&words, tint, colour));
        }
    }
    if let Some(becomes) = &difference.on_exhausted {
        let _ = writeln!(text, "  tasks without attempts: {}", shown(&becomes.to_string()));
    }
    if let Some(change) = &difference.evidence {
        for (sign, tint, rules) in
            [("- ", Paint::Red, &change.from), ("+ ", Paint::Green, &change.to)]
        {
            for line in evidence_words(rules, sign).lines() {
                let _ = writeln!(text, "  {}", paint(line, tint, colour));
            }
        }
    }
    if let Some(trees) = &difference.trees {
        let _ = writeln!(text, "  working trees: {}", tree_words(trees));
    }
    if let Some(deploys) = &difference.deploys {
        match deploys.is_empty() {
            true => text.push_str("  nothing is deployed any more\n"),
            false => text.push_str(&deploys_words(deploys, "  ")),
        }
    }
    if let Some(rules) = &difference.roles {
        match rules.is_empty() {
            true => text.push_str("  only the built-in roles are left\n"),
            false => text.push_str(&roles_words(rules, "  ")),
        }
    }
    for change in &difference.capacities {
        let amount =
            |amount: Option<u32>| amount.map_or("one holder".to_owned(), |it| it.to_string());
        let (from, to) = (amount(change.from), amount(change.to));
        let _ = writeln!(text, "  {}: {from} becomes {to}", shown(&change.resource));
    }
    text
}
