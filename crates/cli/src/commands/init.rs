//! `init`: looks, proposes, asks once, and makes what is missing.
//!
//! Owns the questions and the words; the looking and making are the engine's. Without a terminal
//! nothing is decided for a person unless `--yes` says so. Wiring clients is in `wiring`.

mod wiring;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use baton_core::context::{Actor, Context, Observed};
use baton_core::operations;
use baton_core::policy::{Change, Difference, Standing};
use baton_core::refusal::Refusal;
use baton_core::view::{View, parse};
use baton_core::zones::{Policy, Rule};
use baton_engine::failure::Failure;
use baton_engine::place::workspace_file::WorkspaceId;
use baton_engine::setup::{self, Choice, Config, Plan};
use baton_engine::survey::Proposed;
use baton_engine::wiring::{Client, Ground, Step};
use baton_engine::workspace::{Retry, Workspace};
use baton_engine::{policy, user_config, whoami};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::Common;
use crate::desk::{self, Outcome, hints, remark};
use crate::render::{Paint, colour_wanted, counted, paint, shown, table};
use crate::words::Problem;

#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Init {
    /// Take the proposal and ask nothing
    #[arg(long)]
    yes: bool,
    /// Clients to wire, such as claude,codex; or none. Otherwise those that are found
    #[arg(long, value_name = "CLIENTS")]
    agents: Option<String>,
    /// Wire for everybody: files to commit, which do no harm where Baton is not installed
    #[arg(long, conflicts_with = "personal")]
    team: bool,
    /// Wire for this clone alone: files that git does not see, nothing to commit
    #[arg(long)]
    personal: bool,
    /// Also write each role as an agent of the clients that have such (claude, codex, gemini,
    /// opencode)
    #[arg(long)]
    roles: bool,
    /// Take out what wiring put in; the store and baton.toml stay
    #[arg(long)]
    #[arg(conflicts_with_all = ["agents", "team", "personal", "roles", "join", "new", "plugin"])]
    remove: bool,
    /// Write a plugin for Claude Code into this folder, and nothing else
    #[arg(long, value_name = "DIR")]
    #[arg(conflicts_with_all = ["agents", "team", "personal", "roles", "join", "new"])]
    plugin: Option<PathBuf>,
    /// Join this workspace of the shared store (BATON_STORE)
    #[arg(long, value_name = "ID", conflicts_with = "new")]
    join: Option<String>,
    /// Make a workspace of its own even if the shared store knows this repository
    #[arg(long)]
    new: bool,
}

/// What `init` answers.
#[derive(Debug, Serialize, Deserialize)]
struct Done {
    workspace: String,
    tree: String,
    store: String,
    made: bool,
    config: Config,
    policy: String,
    zones: Vec<Proposed>,
    /// What is run before a branch lands, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<String>,
    /// A person must stand for them first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    needs_trust: bool,
    /// Whether there is somebody to share the file with.
    in_git: bool,
    /// Clients that are wired now, and what was done for it, file by file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clients: Vec<Client>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    wiring: Vec<Step>,
    /// Hooks of the user's own that git calls through ours.
    #[serde(default)]
    chained: usize,
    /// Nobody said which clients to wire, and none was found.
    #[serde(default)]
    nobody_to_wire: bool,
    /// Why the policy was not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<Value>,
}

pub(crate) fn run(common: &Common, wanted: &Init) -> Outcome {
    if let Some(folder) = &wanted.plugin {
        return wiring::plugin(common, folder);
    }
    if wanted.remove {
        return wiring::remove(common, wanted.yes);
    }
    let mut choice = choice(wanted)?;
    let named = wiring::named(wanted.agents.as_deref())?;
    let operation = desk::operation(common)?;
    let retry = operation.map(|operation| Retry::of(&operation, "init", wanted));
    let mut plan = setup::plan(&desk::folder(common)?)?;
    let address = match &plan.site.within {
        Some(place) => user_config::address_for(place)?,
        None => user_config::address()?,
    };
    if let Some(done) = earlier(&plan, address.as_deref(), retry.as_ref())? {
        desk::answer(common.json, &done, done_words);
        return Ok(ExitCode::SUCCESS);
    }
    // What a person approved is not replaced by what is proposed where the file is missing.
    if plan.written.is_none()
        && let Some(place) = &plan.site.within
    {
        let mut workspace = Workspace::open_at(place.clone(), address.as_deref())?;
        plan.written = policy::in_force(&mut workspace)?;
    }
    let ground = Ground::of_site(&plan.site);
    let mode = (wanted.team, wanted.personal);
    let mut wires = wiring::plan(&ground, named.as_deref(), mode, wanted.roles)?;
    plan.propose(&wires.plan.files());
    if plan.written.is_none() || wires.plan.changes() {
        propose(&plan, &wires, wanted)?;
    }
    let made = match setup::make_in(&plan.site, address.as_deref(), &choice) {
        Err(Failure::KnownThere { workspaces }) if desk::can_ask() => {
            choice = joined(&workspaces)?;
            setup::make_in(&plan.site, address.as_deref(), &choice)
        }
        made => made,
    };
    let (mut workspace, made) = made?;
    baton_engine::known::remember(&workspace.place);
    let (mut done, refused) = set_up(common, wanted, plan, &mut workspace, made)?;
    let wired = wires.apply(&ground)?;
    wiring::note(&mut done, &ground, &wires, wired);
    let broken = wiring::problem(&done.wiring, false);
    if let (Some(retry), None, None) = (&retry, &refused, &broken) {
        remember(&mut workspace, retry, &done)?;
    }
    desk::answer(common.json, &done, done_words);
    let said = [refused, broken].into_iter().flatten();
    let said: Vec<ExitCode> = said.map(|problem| desk::say_problem(&problem, false)).collect();
    Ok(said.into_iter().next().unwrap_or(ExitCode::SUCCESS))
}

/// `baton.toml`, the policy and who stands for its commands.
fn set_up(
    common: &Common,
    wanted: &Init,
    plan: Plan,
    workspace: &mut Workspace,
    made: bool,
) -> Result<(Done, Option<Problem>), Problem> {
    let config = match &plan.written {
        Some(_) => Config::Kept,
        None => setup::write_config(&workspace.place, &plan.proposed, &plan.checks)?,
    };
    // What is in the file now counts, whoever wrote it.
    let path = workspace.place.root.join(baton_engine::config::FILE_NAME);
    let in_file = setup::written_policy(&workspace.place)?;
    let config = if in_file.is_some() { config } else { Config::Absent };
    let written = in_file.or(plan.written).ok_or(Failure::NoConfig { path })?;
    let (policy, refused) = put_in_force(common, wanted, workspace, &written)?;
    let zones = match config {
        Config::Written => plan.proposed,
        Config::Kept | Config::Absent => zones_of(&written),
    };
    let asked = config == Config::Written && !wanted.yes && refused.is_none();
    let needs_trust = !trusted(workspace, common, &written, asked)?;
    if plan.repositories_below > 0 {
        remark(&format!(
            "note: {} repositories below this folder belong to this workspace now",
            plan.repositories_below
        ));
    }
    let done = Done {
        checks: written.evidence.named.iter().map(|check| check.name.clone()).collect(),
        needs_trust,
        workspace: workspace.place.workspace.id.to_string(),
        tree: workspace.tree.0.clone(),
        store: workspace.store.describe(),
        made,
        config,
        policy: policy.to_owned(),
        zones,
        in_git: workspace.place.git.is_some(),
        clients: Vec::new(),
        wiring: Vec::new(),
        chained: 0,
        nobody_to_wire: false,
        refused: refused.as_ref().map(|problem| problem.document()["refused"].clone()),
    };
    Ok((done, refused))
}

/// What was answered under the same operation id, if the workspace is there to remember it.
fn earlier(
    plan: &Plan,
    address: Option<&str>,
    retry: Option<&Retry>,
) -> Result<Option<Done>, Problem> {
    let (Some(place), Some(retry)) = (&plan.site.within, retry) else {
        return Ok(None);
    };
    let mut workspace = Workspace::open_at(place.clone(), address)?;
    let done = workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let Retry { operation, request_hash } = retry;
        let kept = operations::answered(view, operation, "", request_hash)?;
        Ok(kept.map(|kept| parse(&kept)).transpose()?)
    })?;
    Ok(done)
}

fn remember(workspace: &mut Workspace, retry: &Retry, done: &Done) -> Result<(), Problem> {
    let (nobody, unseen) = (Actor::default(), Observed::default());
    let answer = serde_json::to_value(done).unwrap_or_default();
    let kept = |_: &Value| true;
    let rule = |_: &dyn View, _: &Context| Ok((Vec::new(), answer));
    workspace.decide_once(&nobody, unseen, Some(retry), kept, rule)?;
    Ok(())
}

fn choice(wanted: &Init) -> Result<Choice, Problem> {
    match &wanted.join {
        None if wanted.new => Ok(Choice::New),
        None => Ok(Choice::Unsaid),
        Some(text) => match WorkspaceId::parse(text) {
            Some(id) => Ok(Choice::Join(id)),
            None => Err(Problem::usage(
                format!(
                    "\"{}\" is not the id of a workspace: 32 digits and letters a-f",
                    shown(text)
                ),
                "baton init --json in a clone that belongs to it shows its id",
            )),
        },
    }
}

/// Shows the proposal and asks once.
fn propose(plan: &Plan, wires: &wiring::Wires, wanted: &Init) -> Result<(), Problem> {
    if wanted.yes {
        return Ok(());
    }
    let new = plan.written.is_none();
    if !desk::can_ask() {
        let what = match new {
            true => "the proposed zones are right",
            false => "to wire the clients",
        };
        return Err(Problem {
            exit: 1,
            code: "needs_yes",
            message: format!("there is no terminal to ask on whether {what}"),
            next: "baton init --yes".into(),
            details: serde_json::json!({ "zones": plan.proposed, "wiring": wires.plan.steps }),
        });
    }
    let colour = colour_wanted(&std::io::stderr());
    if new {
        let root = shown(&plan.site.root.display().to_string());
        remark(&format!("Baton looked at {root} and proposes:\n"));
        remark(&zones_table(&plan.proposed, colour));
        remark("Everything else is auto: the first edit claims a file.");
        for check in &plan.checks {
            let run: Vec<String> = check.run.iter().map(|word| shown(word)).collect();
            remark(&format!("Before a branch lands, Baton would run: {}", run.join(" ")));
        }
        if !plan.checks.is_empty() {
            remark("Yes allows that too. Any other command needs baton trust first.");
        }
    }
    wires.show(colour);
    let question = match (new, wires.plan.changes()) {
        (true, false) => "Write this to baton.toml and set up the store?",
        (true, true) => "Write this, and set up the store?",
        (false, _) => "Write this?",
    };
    match desk::ask(question) {
        true => Ok(()),
        false if new => Err(wiring::declined("write a baton.toml of your own, then baton init")),
        false => Err(wiring::declined("baton init --agents LIST wires those you name; or none")),
    }
}

/// Does somebody stand for the commands of the policy? A person who was shown them and said yes
/// does, with that word.
fn trusted(
    workspace: &mut Workspace,
    common: &Common,
    written: &Policy,
    asked: bool,
) -> Result<bool, Problem> {
    if baton_core::trust::commands(written).is_empty() {
        return Ok(true);
    }
    let actor = whoami::reader(workspace, &hints(common))?;
    if asked && actor.person {
        policy::trust(workspace, &actor, written, None)?;
    }
    Ok(policy::commands(workspace, written)?.untrusted.is_empty())
}

fn joined(workspaces: &[String]) -> Result<Choice, Problem> {
    let known = || Problem::from(Failure::KnownThere { workspaces: workspaces.to_vec() });
    let [only] = workspaces else { return Err(known()) };
    let question = format!("The shared store knows this repository as workspace {only}. Join it?");
    match (desk::ask(&question), WorkspaceId::parse(only)) {
        (true, Some(id)) => Ok(Choice::Join(id)),
        _ => Err(known()),
    }
}

/// Puts the file in force as far as the caller may. A refusal does not undo the rest.
fn put_in_force(
    common: &Common,
    wanted: &Init,
    workspace: &mut Workspace,
    written: &Policy,
) -> Result<(&'static str, Option<Problem>), Problem> {
    let (actor, standing) = match policy::in_force(workspace)? {
        // Somebody has to begin, and who that is does not matter.
        None => (Default::default(), Standing::Unattended),
        Some(_) => {
            let actor = whoami::actor(workspace, &hints(common))?;
            let standing = whoami::standing(workspace, &actor);
            (actor, standing)
        }
    };
    // `--yes` is for what `init` proposes; nobody has seen what this would change.
    if standing != Standing::Agent && wanted.yes && differs(workspace, written)? {
        let problem = Problem {
            exit: 1,
            code: "needs_person",
            message: "baton.toml differs from the policy in force, and the old policy stays".into(),
            next:
                "baton policy show tells what would change, baton policy approve puts it in force"
                    .into(),
            details: serde_json::json!({}),
        };
        return Ok(("needs_person", Some(problem)));
    }
    let approved = super::policy::approve_as(workspace, &actor, standing, written, false, None);
    match approved.map(|approved| approved.policy) {
        Ok(Change::InForce) => Ok(("in_force", None)),
        Ok(Change::Unchanged) => Ok(("unchanged", None)),
        Err(Failure::Refused(refusal @ Refusal::NeedsPerson { .. })) => {
            let mut problem = Problem::from(Failure::Refused(refusal));
            problem.message = "baton.toml differs from the policy in force, \
                and a change of the policy is for a person to decide; the old policy stays"
                .to_owned();
            problem.next = "ask a person to run baton policy approve in a terminal".to_owned();
            Ok(("needs_person", Some(problem)))
        }
        Err(other) => Err(other.into()),
    }
}

/// Whether another policy is in force.
fn differs(workspace: &mut Workspace, written: &Policy) -> Result<bool, Failure> {
    let current = policy::in_force(workspace)?;
    Ok(current.is_some_and(|current| !Difference::between(&current, written).is_empty()))
}

fn zones_of(policy: &Policy) -> Vec<Proposed> {
    let zone = |zone: &baton_core::zones::Zone| Proposed {
        paths: zone.paths.iter().map(ToString::to_string).collect(),
        policy: zone.policy,
        reason: String::new(),
    };
    policy.zones.iter().map(zone).collect()
}

pub(crate) fn rule_word(rule: Rule) -> &'static str {
    match rule {
        Rule::Off => "off",
        Rule::Auto => "auto",
        Rule::Append => "append",
        Rule::Require => "require",
        Rule::Serial => "serial",
        Rule::Human => "human",
    }
}

fn zones_table(zones: &[Proposed], colour: bool) -> String {
    let rows: Vec<Vec<String>> = zones
        .iter()
        .map(|zone| {
            let paths: Vec<String> = zone.paths.iter().map(|path| shown(path)).collect();
            let listed = match paths.len() {
                0..=3 => paths.join(", "),
                count => format!("{}, and {} more", paths[..2].join(", "), count - 2),
            };
            vec![rule_word(zone.policy).to_owned(), listed, zone.reason.clone()]
        })
        .collect();
    table(&["POLICY", "PATHS", "WHY"], &rows, colour)
}

/// What was done and what comes next, in at most 12 lines.
fn done_words(done: &Done, colour: bool) -> String {
    let good = |text: &str| paint(text, Paint::Green, colour);
    let mut text = String::new();
    let (verb, id) = (if done.made { "made" } else { "kept" }, &done.workspace);
    let _ = writeln!(text, "{}  workspace {id}", good(verb));
    let _ = writeln!(text, "{}  store {}", good(verb), shown(&done.store));
    match done.config {
        Config::Written => {
            let count = |rule| done.zones.iter().filter(|zone| zone.policy == rule).count();
            let rules = [Rule::Serial, Rule::Require, Rule::Append];
            let numbers = rules.iter().map(|rule| (count(*rule), rule_word(*rule)));
            let list: Vec<String> = numbers
                .filter(|(count, _)| *count > 0)
                .map(|(count, word)| format!("{count} {word}"))
                .collect();
            let list = list.join(", ");
            let checks = match done.checks.is_empty() {
                true => String::new(),
                false => format!("; before landing: {}", done.checks.join(", ")),
            };
            let _ = writeln!(text, "{} baton.toml: {list}, the rest auto{checks}", good("wrote"));
        }
        Config::Kept => {
            let zones = counted(done.zones.len() as u64, "zone", "zones");
            let _ = writeln!(text, "{}  baton.toml ({zones})", good("kept"));
        }
        Config::Absent => {
            let zones = counted(done.zones.len() as u64, "zone", "zones");
            let _ = writeln!(
                text,
                "{}  the policy in force ({zones}): baton policy show. There is no baton.toml \
                 here; git checkout BRANCH -- baton.toml brings it from a branch that has it",
                good("kept")
            );
        }
    }
    let policy = match done.policy.as_str() {
        "in_force" => "baton.toml is in force",
        "unchanged" if done.config == Config::Absent => "that policy is in force, as before",
        "unchanged" => "baton.toml is in force, as before",
        _ => "the policy approved before stays in force",
    };
    let _ = writeln!(text, "{}   {policy}", good("now"));
    text.push_str(&wiring::words(done, colour));
    if !done.made && !wiring::did_something(done) {
        return text;
    }
    let next = wiring::next(done);
    if done.made || !next.is_empty() {
        text.push_str("\nnext:\n");
        text.push_str(&next);
    }
    if !done.made {
        return text;
    }
    if done.needs_trust {
        text.push_str("  baton trust                                  see and allow the checks\n");
    }
    // A client that is wired begins its session and takes its claims by itself.
    text.push_str(match wiring::guards_somebody(done) {
        true => "  baton doctor                                 send a probe through every door\n",
        false => {
            "  eval \"$(baton session start --export)\"       begin to work\n  \
               baton claim src/                             take what you will edit\n"
        }
    });
    text.push_str("  baton status                                 see who holds what\n");
    text
}
