//! `doctor`: one line for each thing Baton relies on.
//!
//! Owns which finding is a problem (exit 1), which a warning, and what to do about it. The looking
//! is the engine's. Invariant: a door that nothing guards is told, never left out.

mod doors;

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::policy::Standing;
use baton_core::time::Span;
use baton_engine::doctor::{self, Found, Health, Opened};
use baton_engine::failure::Failure;
use baton_engine::filesystem::Kind;
use baton_engine::place::TreeKind;
use baton_engine::policy::OnDisk;
use baton_engine::store::SCHEMA_VERSION;
use serde::Serialize;

use crate::arguments::Common;
use crate::desk::{self, Outcome, hints};
use crate::render::{Paint, counted, paint, shown};
use crate::words::{Problem, word};

/// A log above this should have been emptied long ago (see the store's checkpoints).
const LOG_BYTES_WARN: u64 = 32 * 1024 * 1024;
/// Below this it is time to make room.
const FREE_BYTES_WARN: u64 = 1024 * 1024 * 1024;
/// Below this hardly anything can be written at all.
const FREE_BYTES_NEEDED: u64 = 64 * 1024;
/// The store's clock may be ahead of the wall clock by this without a word.
const CLOCK_AHEAD_WARN: Span = Span::seconds(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warning,
    Problem,
}

#[derive(Debug, Serialize)]
struct Line {
    check: &'static str,
    state: State,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    checks: Vec<Line>,
}

impl Report {
    fn say(&mut self, check: &'static str, state: State, detail: impl Into<String>) {
        self.checks.push(Line { check, state, detail: detail.into(), next: None });
    }

    fn ok(&mut self, check: &'static str, detail: impl Into<String>) {
        self.say(check, State::Ok, detail);
    }

    /// Something is not as it should be; `next` is what to do.
    fn tell(&mut self, check: &'static str, state: State, detail: String, next: &str) {
        self.checks.push(Line { check, state, detail, next: Some(next.to_owned()) });
    }

    fn failed(&mut self, check: &'static str, failure: Failure) {
        let Problem { message, next, .. } = Problem::from(failure);
        self.checks.push(Line { check, state: State::Problem, detail: message, next: Some(next) });
    }
}

pub(crate) fn run(common: &Common) -> Outcome {
    let health = doctor::look(&desk::folder(common)?, &hints(common));
    let report = judge(health);
    desk::answer(common.json, &report, report_words);
    match report.checks.iter().any(|line| line.state == State::Problem) {
        true => Ok(ExitCode::from(1)),
        false => Ok(ExitCode::SUCCESS),
    }
}

fn judge(health: Health) -> Report {
    let mut report = Report::default();
    match health.git {
        Ok(version) => report.ok("git", format!("git {version}")),
        Err(error) => report.tell(
            "git",
            State::Problem,
            error.to_string(),
            "install git, from your system's packages",
        ),
    }
    match health.workspace {
        Err(failure) => report.failed("workspace", failure),
        Ok(found) => workspace(&mut report, found),
    }
    if let Some(path) = health.exposed_settings {
        let path = path.display().to_string();
        report.tell(
            "settings",
            State::Warning,
            format!("{} holds a password and other users can read it", shown(&path)),
            &format!("chmod 600 {}", word(&path)),
        );
    }
    machine(&mut report, &health.machine);
    sandbox(&mut report);
    report
}

fn workspace(report: &mut Report, found: Found) {
    let kind = match &found.place.tree_kind {
        TreeKind::Main => "the main tree".to_owned(),
        TreeKind::Linked { name } => format!("the linked worktree {}", shown(name)),
        TreeKind::Plain => "a folder without git".to_owned(),
    };
    let (id, root) = (&found.place.workspace.id, found.place.root.display().to_string());
    report.ok("workspace", format!("{id}, {kind} {}", shown(&root)));
    if !found.place.workspace.shared {
        match &found.filesystem {
            Ok(Kind::Local) => report.ok("filesystem", "local; file locks can be trusted"),
            Ok(Kind::Network { name }) => report.tell(
                "filesystem",
                State::Problem,
                format!("the store is on {name}, where file locks cannot be trusted"),
                "set BATON_STORE to a PostgreSQL address, in a fresh clone",
            ),
            Err(error) => report.say("filesystem", State::Warning, error.to_string()),
        }
        exposure(report, &found);
    }
    // A probe leaves its mark beside the store.
    let room = found.free_bytes.is_none_or(|free| free > FREE_BYTES_NEEDED);
    let marks = found.store.is_ok() && room;
    match found.store {
        Err(failure) => report.failed("store", failure),
        Ok(opened) => store(report, opened),
    }
    match found.free_bytes {
        Some(free) if free < FREE_BYTES_WARN => report.tell(
            "disk",
            State::Warning,
            format!("{} MB are left where the store is", free / 1_048_576),
            "make room: when nothing is left, claims are refused",
        ),
        Some(free) => {
            report.ok("disk", format!("{} GB are free", free / 1_048_576 / 1_024));
        }
        None => {}
    }
    match found.log_bytes {
        None => {}
        Some(bytes) if bytes > LOG_BYTES_WARN => report.tell(
            "log",
            State::Warning,
            format!("the store's log has {} MB", bytes / 1_048_576),
            "end processes that keep the store open for long; the next claim empties the log",
        ),
        Some(bytes) => report.ok("log", format!("the store's log has {} KB", bytes / 1_024)),
    }
    match found.wiring {
        Err(failure) => report.failed("wiring", failure),
        Ok(found) => doors::judge(report, &found, marks),
    }
}

fn exposure(report: &mut Report, found: &Found) {
    match found.exposed.first() {
        None => report.ok("privacy", "only you can read the store"),
        Some((path, mode)) => {
            let path = path.display().to_string();
            report.tell(
                "privacy",
                State::Warning,
                format!("other users can reach the store: {} has mode {mode:o}", shown(&path)),
                &format!("chmod 700 {}", word(&path)),
            );
        }
    }
}

fn store(report: &mut Report, opened: Opened) {
    let what = shown(&opened.description);
    match opened.integrity {
        Ok(()) => report.ok("store", format!("{what}, sound, layout {SCHEMA_VERSION}")),
        Err(failure) => report.failed("store", failure),
    }
    let entries = opened.entries;
    match opened.raised_because {
        None => report.ok("journal", format!("epoch {}, {entries} entries", opened.epoch)),
        Some(why) => report.ok(
            "journal",
            format!(
                "{entries} entries; epoch {} begins with the next: {}",
                opened.epoch,
                shown(&why)
            ),
        ),
    }
    let (store, wall) = (opened.store_clock, opened.wall_clock);
    match (store.since(wall), wall.since(store)) {
        (ahead, _) if ahead > CLOCK_AHEAD_WARN => report.tell(
            "clock",
            State::Warning,
            format!("the store's clock is {ahead} ahead of this machine's"),
            "set the machine's clock right; times shown are the store's",
        ),
        (_, behind) if behind > CLOCK_AHEAD_WARN => report.tell(
            "clock",
            State::Warning,
            format!("the store's clock is {behind} behind this machine's"),
            "set the machine's clock right; times shown are the store's",
        ),
        _ => report.ok("clock", "the store's clock and this machine's agree"),
    }
    match opened.policy {
        Err(failure) => report.failed("policy", failure),
        Ok(found) => {
            policy(report, found.on_disk, found.zones.len(), found.broken.as_deref());
            if !found.untrusted.is_empty() {
                let names: Vec<String> =
                    found.untrusted.iter().map(|command| shown(&command.what)).collect();
                let detail = format!("no person stands for {}: not run", names.join(", "));
                report.tell("trust", State::Warning, detail, "a person runs: baton trust");
            }
        }
    }
    who(report, opened.actor);
    let dead = opened.dead;
    if dead.is_empty() {
        report.ok("sessions", "no session of a dead process");
    } else {
        let names: Vec<String> = dead.iter().take(5).map(|seat| shown(&seat.name)).collect();
        let claims: usize = dead.iter().map(|seat| seat.claims).sum();
        report.say(
            "sessions",
            State::Warning,
            format!(
                "{} of dead processes ({}), with {claims} claims that go to whoever asks next",
                dead.len(),
                names.join(", ")
            ),
        );
    }
}

fn policy(report: &mut Report, on_disk: OnDisk, zones: usize, broken: Option<&str>) {
    let warn = |report: &mut Report, detail: &str, next: &str| {
        report.tell("policy", State::Warning, detail.to_owned(), next);
    };
    match on_disk {
        OnDisk::Same => {
            let zones = counted(zones as u64, "zone", "zones");
            report.ok("policy", format!("{zones} in force, as in baton.toml"));
        }
        OnDisk::Differs => {
            warn(report, "baton.toml here differs from the policy in force", "baton policy show");
        }
        OnDisk::Missing => {
            warn(
                report,
                "there is no baton.toml here; the last approved policy counts",
                "git checkout BRANCH -- baton.toml, from a branch that has it",
            );
        }
        OnDisk::NothingInForce => warn(report, "no policy is in force", "baton init"),
        OnDisk::Broken => {
            let detail =
                format!("{}; the last approved policy counts", shown(broken.unwrap_or("")));
            warn(report, &detail, "mend baton.toml");
        }
    }
}

fn who(report: &mut Report, actor: Result<(baton_core::context::Actor, Standing), Failure>) {
    match actor {
        Err(failure) => {
            let Problem { message, next, .. } = Problem::from(failure);
            report.tell("you", State::Warning, message, &next);
        }
        Ok((actor, standing)) => {
            let what = match standing {
                Standing::Person => "a person",
                Standing::Agent => "an agent",
                Standing::Unattended => "a script: no terminal and no sign of an agent",
            };
            let session = actor.session.map(|id| format!(", session {id}")).unwrap_or_default();
            report.ok("you", format!("{what}{session}"));
        }
    }
}

fn machine(report: &mut Report, machine: &baton_engine::process::Machine) {
    if cfg!(target_os = "macos") {
        report.say(
            "system",
            State::Warning,
            "macOS: a dead process is noticed by its lease, waiting looks around more often, \
             and there is no sandbox",
        );
        return;
    }
    match (machine.boot.is_empty(), machine.namespace) {
        (false, namespace) if namespace != 0 => {
            report.ok("system", "processes and restarts of this machine can be told apart");
        }
        _ => report.tell(
            "system",
            State::Warning,
            "/proc does not tell about processes: a dead one is noticed by its lease alone".into(),
            "mount /proc in this container",
        ),
    }
}

fn sandbox(report: &mut Report) {
    match baton_engine::sandbox::supported() {
        Ok(()) => report.ok("sandbox door", "Landlock: the kernel can hold a role to its folders"),
        Err(failure) => {
            let Problem { message, next, .. } = Problem::from(failure);
            report.tell("sandbox door", State::Warning, message, &next);
        }
    }
}

fn report_words(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    for line in &report.checks {
        let (word, tint) = match line.state {
            State::Ok => ("ok     ", Paint::Green),
            State::Warning => ("warning", Paint::Yellow),
            State::Problem => ("problem", Paint::Red),
        };
        let _ =
            writeln!(text, "{}  {:<14}  {}", paint(word, tint, colour), line.check, line.detail);
        if let Some(next) = &line.next {
            let _ = writeln!(text, "{:25}{}: {next}", "", paint("next", Paint::Cyan, colour));
        }
    }
    text
}
