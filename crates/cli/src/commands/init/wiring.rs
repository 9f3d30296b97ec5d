//! The part of `init` that wires agent clients: what is chosen, shown, done and said.
//!
//! Owns the words about files of clients, and what to do where one could not be used. The looking
//! and writing are the engine's. Invariant: taking the doors out is never an agent's to decide.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use baton_core::policy::Standing;
use baton_engine::failure::Failure;
use baton_engine::place::{Place, TreeKind};
use baton_engine::process::Machine;
use baton_engine::setup::Config;
use baton_engine::whoami;
use baton_engine::wiring::{self, Client, Door, Ground, Mode, Plan, Record, State, Step, Wanted};
use serde::Serialize;

use super::Done;
use crate::arguments::Common;
use crate::desk::{self, Outcome, hints, remark};
use crate::render::{Paint, colour_wanted, paint, shown};
use crate::words::{Problem, word};

const CHOICES: &str = "claude, codex, gemini, cursor, opencode, aider, or none";

/// What is to be wired, and by whose word.
pub(super) struct Wires {
    pub(super) plan: Plan,
    wanted: Wanted,
    /// Somebody named the clients, now or before.
    chosen: bool,
}

/// The clients that `--agents` names; nothing where it is not given.
pub(super) fn named(agents: Option<&str>) -> Result<Option<Vec<Client>>, Problem> {
    let Some(agents) = agents else { return Ok(None) };
    if agents == "none" {
        return Ok(Some(Vec::new()));
    }
    let mut clients = Vec::new();
    for name in agents.split(',').map(str::trim) {
        let client = Client::parse(name).ok_or_else(|| {
            Problem::usage(
                format!("{:?} is no client that can be wired: {CHOICES}", shown(name)),
                "baton init --agents claude,codex",
            )
        })?;
        if !clients.contains(&client) {
            clients.push(client);
        }
    }
    Ok(Some(clients))
}

/// Named now, else as named before, else what is found here.
pub(super) fn plan(
    ground: &Ground,
    named: Option<&[Client]>,
    (team, personal): (bool, bool),
    roles: bool,
) -> Result<Wires, Failure> {
    let record = Record::read(&ground.store)?;
    let clients = match named {
        Some(named) => named.to_vec(),
        None if record.chosen => record.clients.iter().copied().collect(),
        None => wiring::in_use(&ground.root, ground.home.as_deref()),
    };
    let mode = match (team, personal) {
        (_, true) => Mode::Personal,
        (true, _) => Mode::Team,
        _ => record.mode.unwrap_or(Mode::Team),
    };
    let roles = (roles || record.roles).then(|| wiring::roles::here(ground));
    let none = named.map_or(record.none, <[Client]>::is_empty);
    let wanted = Wanted { clients, mode, roles, none };
    let plan = wiring::plan(ground, &wanted)?;
    Ok(Wires { plan, wanted, chosen: named.is_some() || record.chosen })
}

impl Wires {
    pub(super) fn apply(&mut self, ground: &Ground) -> Result<Vec<Step>, Failure> {
        if !self.chosen && self.wanted.clients.is_empty() {
            return Ok(Vec::new());
        }
        let (plan, done) = wiring::wire(ground, &self.wanted)?;
        self.plan = plan;
        Ok(done)
    }

    /// What will be written, before it is.
    pub(super) fn show(&self, colour: bool) {
        if self.plan.steps.is_empty() {
            return;
        }
        let how = match self.plan.mode {
            Some(Mode::Personal) => "for you alone: git does not see these files",
            _ => "for everybody: files to commit, harmless where Baton is not installed",
        };
        let names: Vec<&str> = self.plan.clients.iter().map(|client| client.name()).collect();
        remark(&format!("To wire {} ({how}):", names.join(", ")));
        for step in &self.plan.steps {
            remark(&format!("  {}", step_words(step, colour)));
        }
    }
}

pub(super) fn note(done: &mut Done, ground: &Ground, wires: &Wires, wired: Vec<Step>) {
    done.clients = wires.plan.clients.clone();
    done.chained = wires.plan.hooks.as_ref().map_or(0, |hooks| hooks.chained(ground));
    done.nobody_to_wire = !wires.chosen && wires.wanted.clients.is_empty();
    done.wiring = wired;
}

fn what(step: &Step) -> &'static str {
    match (step.door, step.client) {
        (Door::Hooks, Some(Client::Gemini)) => "hooks and MCP server",
        (Door::Hooks, Some(Client::Opencode)) => "plugin",
        (Door::Hooks, _) => "hooks",
        (Door::Server, _) => "MCP server",
        (Door::Words, Some(_)) => "settings",
        (Door::Words, None) => "what agents read",
        (Door::Rules, _) => "the rules, yours to change",
        (Door::Agents, _) => "an agent that is held to its role",
        (Door::Ignored, _) => "keeps these files out of git",
        (Door::Git, _) => "pre-commit, pre-push, reference-transaction; yours are called too",
    }
}

fn step_words(step: &Step, colour: bool) -> String {
    let file = shown(&step.file);
    let (word, tint, more) = match &step.state {
        State::New => ("new", Paint::Green, None),
        State::Merged => ("merged", Paint::Green, None),
        State::Same => ("as it is", Paint::Green, None),
        State::Removed => ("removed", Paint::Yellow, None),
        State::Cleaned => ("cleaned", Paint::Yellow, None),
        State::Moved { .. } => ("moved", Paint::Yellow, None),
        State::Kept { why } => ("kept", Paint::Yellow, Some(why)),
        State::Failed { why } => ("left", Paint::Red, Some(why)),
    };
    let client = step.client.map_or(String::new(), |client| format!("{} ", client.name()));
    let tail = match (more, step.door, &step.state) {
        (Some(why), ..) => shown(why),
        (None, _, State::Moved { to }) => moved_words(&step.file, to),
        (None, Door::Git, State::Removed) => "core.hooksPath is as it was".to_owned(),
        (None, ..) => format!("{client}{}", what(step)),
    };
    // Padded before it is painted: colours have no width.
    format!("{} {file}: {tail}", paint(&format!("{word:<8}"), tint, colour))
}

/// A hook of the user's that was in Baton's folder.
fn moved_words(file: &str, to: &str) -> String {
    let name = |path: &str| Path::new(path).file_name().map(|name| name.to_owned());
    let why = match name(file) == name(to) {
        true => "it is yours, and is called from there",
        false => "you changed what Baton wrote; your copy is kept, and not called",
    };
    format!("to {}: {why}", shown(to))
}

pub(super) fn did_something(done: &Done) -> bool {
    done.wiring.iter().any(|step| step.state.changes())
}

/// A line a file that was changed or left.
pub(super) fn words(done: &Done, colour: bool) -> String {
    let mut text = String::new();
    let told = |step: &&Step| step.state != State::Same;
    for step in done.wiring.iter().filter(told) {
        let _ = writeln!(text, "wired {}", step_words(step, colour));
    }
    let same = done.wiring.len() - done.wiring.iter().filter(told).count();
    if same > 0 && same == done.wiring.len() {
        let names: Vec<&str> = done.clients.iter().map(|client| client.name()).collect();
        let _ = writeln!(text, "wired {}, as before", names.join(", "));
    }
    text
}

/// What is left for a person to do.
pub(super) fn next(done: &Done) -> String {
    let mut text = String::new();
    // A command too long for its column says what it is for by itself.
    let mut line = |command: &str, why: &str| {
        let _ = match command.chars().count() {
            0..=44 => writeln!(text, "  {command:<44} {why}"),
            _ => writeln!(text, "  {command}"),
        };
    };
    let gone = |step: &Step| matches!(step.state, State::Removed | State::Cleaned);
    let ignored = |step: &&Step| step.door == Door::Ignored;
    let personal = done.wiring.iter().filter(ignored).any(|step| !gone(step));
    // What was for one person alone is new to git as a whole.
    let unveiled = done.wiring.iter().filter(ignored).any(gone);
    let shared = |step: &&Step| {
        let files = !matches!(step.door, Door::Git | Door::Ignored) && !gone(step);
        files && (step.state.changes() || (unveiled && step.state == State::Same))
    };
    let mut add: Vec<String> = Vec::new();
    if done.in_git && !personal {
        if (done.made && done.config == Config::Written) || unveiled {
            add.push(baton_engine::config::FILE_NAME.to_owned());
        }
        // One by one: beside them may lie what is the user's alone.
        add.extend(done.wiring.iter().filter(shared).map(|step| word(&step.file)));
    }
    if !done.in_git && done.made {
        line("git init, then baton init", "trees, commits and landings need git");
    }
    match add.len() {
        0 => {}
        1 if add[0] == baton_engine::config::FILE_NAME => {
            line(&format!("git add {}", add[0]), "share the zones");
        }
        _ => line(&format!("git add {}", add.join(" ")), "share the wiring"),
    }
    let changed = |client: Client, door: Door| {
        let of = |step: &&Step| step.client == Some(client) && step.door == door;
        done.wiring.iter().filter(of).any(|step| step.state.changes())
    };
    if changed(Client::Codex, Door::Hooks) {
        line("/hooks, in codex", "approve them: codex skips unapproved hooks silently");
    }
    if changed(Client::Gemini, Door::Agents) {
        line("gemini, in this folder", "say yes when it shows the agents: it loads no others");
    }
    if changed(Client::Claude, Door::Server) {
        line("claude, in this folder", "say yes when it asks about the MCP server");
    }
    if done.nobody_to_wire {
        line("baton init --agents claude,codex", "wire your agents");
    }
    text
}

/// Is there a client whose acts Baton hears of now?
pub(super) fn guards_somebody(done: &Done) -> bool {
    let stays = |step: &Step| !matches!(step.state, State::Removed | State::Failed { .. });
    done.wiring.iter().any(|step| step.door == Door::Hooks && stays(step))
}

/// What could not be done, if anything. Where something was to be taken out, it is not known
/// whether anything of Baton's is in such a file.
pub(super) fn problem(steps: &[Step], removal: bool) -> Option<Problem> {
    let (left, again) = match removal {
        true => ("left as it is, with whatever Baton may have in it", "baton init --remove"),
        false => ("left as it is, and so not guarded", "baton init"),
    };
    let failed: Vec<(&Step, &String)> = steps
        .iter()
        .filter_map(|step| match &step.state {
            State::Failed { why } => Some((step, why)),
            _ => None,
        })
        .collect();
    let (first, why) = failed.first()?;
    let next = match why.as_str() {
        wiring::TRACKED => "baton init --team".to_owned(),
        _ => format!("put {} right, then {again}", word(&first.file)),
    };
    let list: Vec<String> =
        failed.iter().map(|(step, why)| format!("{}: {}", shown(&step.file), shown(why))).collect();
    let files: Vec<&Step> = failed.iter().map(|(step, _)| *step).collect();
    Some(Problem {
        exit: 1,
        code: "not_wired",
        message: format!("{left}: {}", list.join("; ")),
        next,
        details: serde_json::json!({ "files": files }),
    })
}

pub(super) fn declined(next: &str) -> Problem {
    Problem {
        exit: 1,
        code: "declined",
        message: "nothing was changed".into(),
        next: next.into(),
        details: serde_json::json!({}),
    }
}

#[derive(Debug, Serialize)]
struct Removed {
    wiring: Vec<Step>,
}

/// `init --remove`.
pub(super) fn remove(common: &Common, yes: bool) -> Outcome {
    let place = Place::find(&desk::folder(common)?).map_err(Failure::from)?;
    if decides_as_agent(common, &place) {
        return Err(Problem {
            exit: 1,
            code: "needs_person",
            message: "taking the doors out is for a person to decide".into(),
            next: "ask a person to run this in a terminal".into(),
            details: serde_json::json!({}),
        });
    }
    let ground = Ground::of(&place);
    let plan = wiring::plan_removal(&ground)?;
    if plan.changes() && !yes {
        if !desk::can_ask() {
            return Err(Problem {
                exit: 1,
                code: "needs_yes",
                message: "there is no terminal to ask on whether to take the wiring out".into(),
                next: "run it in a terminal, or with --yes".into(),
                details: serde_json::json!({ "wiring": plan.steps }),
            });
        }
        remark("To be taken out; the store and baton.toml stay:");
        let colour = colour_wanted(&std::io::stderr());
        for step in &plan.steps {
            remark(&format!("  {}", step_words(step, colour)));
        }
        if !desk::ask("Take this out?") {
            return Err(declined("baton status"));
        }
    }
    let wiring = wiring::unwire(&ground)?;
    let broken = problem(&wiring, true);
    let hooks_went = |step: &Step| step.door == Door::Git && step.state == State::Removed;
    if matches!(place.tree_kind, TreeKind::Linked { .. }) && wiring.iter().any(hooks_went) {
        remark(
            "note: git's hooks are those of the whole repository: no tree of it has Baton's any \
             more, though clients may still be wired there; baton init in one brings them back",
        );
    }
    desk::answer(common.json, &Removed { wiring }, |removed, colour| {
        let lines = removed.wiring.iter().map(|step| format!("{}\n", step_words(step, colour)));
        let lines: String = lines.collect();
        match lines.is_empty() {
            true => "nothing of Baton's is wired here\n".to_owned(),
            false => lines,
        }
    });
    Ok(broken.map_or(ExitCode::SUCCESS, |problem| desk::say_problem(&problem, false)))
}

fn decides_as_agent(common: &Common, place: &Place) -> bool {
    let opened = desk::open(&place.root).and_then(|mut workspace| {
        let actor = whoami::reader(&mut workspace, &hints(common))?;
        Ok(whoami::standing(&workspace, &actor) == Standing::Agent)
    });
    // A store that cannot be opened does not make an agent a person.
    opened.unwrap_or_else(|_| {
        hints(common).environment.is_some() || whoami::agent_above(&Machine::here())
    })
}

#[derive(Debug, Serialize)]
struct Plugin {
    folder: String,
    files: Vec<String>,
    /// Files that somebody changed, which stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kept: Vec<String>,
}

/// `init --plugin`.
pub(super) fn plugin(common: &Common, folder: &Path) -> Outcome {
    let folder = desk::folder(common)?.join(folder);
    let written = wiring::plugin::write(&folder).map_err(|problem| Problem {
        exit: 1,
        code: "plugin",
        message: format!("{}: {}", shown(&problem.path.to_string_lossy()), shown(&problem.why)),
        next: "name a folder that is new or empty".into(),
        details: serde_json::json!({}),
    })?;
    let wiring::plugin::Written { files, kept } = written;
    let written = Plugin { folder: folder.to_string_lossy().into_owned(), files, kept };
    desk::answer(common.json, &written, |written, _| {
        let folder = word(&written.folder);
        let mut text = format!("wrote {}\n", written.files.join(", "));
        if !written.kept.is_empty() {
            let kept = written.kept.join(", ");
            let _ = writeln!(text, "kept {kept}: not as Baton wrote it, so it is yours");
        }
        text + &format!("next: claude --plugin-dir {folder}\n")
    });
    Ok(ExitCode::SUCCESS)
}
