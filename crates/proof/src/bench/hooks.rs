//! What a hook costs its agent: an edit of what it holds, an edit of a new path, a read, and the
//! look after a shell command.
//!
//! Payloads are those of Claude Code. The large store has 50 working trees and 100,000 tasks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::landing::{git, plant_files};
use super::page::Line;
use super::samples::{self, Call};
use super::{KeptOpen, Scale, tasks};
use crate::failure::Failure;
use crate::traffic::Ground;

const TREES: usize = 50;
/// As long as real source files are.
const TEXT_BYTES: usize = 4_000;

pub(super) fn measure(
    baton: &Path,
    floor: &Path,
    scale: Scale,
    lines: &mut Vec<Line>,
) -> Result<(), Failure> {
    println!("hooks, and with {TREES} trees and {} tasks", scale.open_tasks);
    let (small, large) = (Ground::make(None)?, Ground::make(None)?);
    tasks::fill_tasks(&large, scale.open_tasks, 0, 0)?;
    let agents = [Agent::begin(baton, &small)?, Agent::begin(baton, &large)?];
    for tree in 0..TREES {
        let name = format!("../tree{tree}");
        git(&large.root(), &["worktree", "add", "-q", "-b", &format!("b{tree}"), &name])?;
        Agent::in_folder(baton, &large.root().join(&name), &format!("agent{tree}"))?;
    }
    let _open = (KeptOpen::start(&small.root())?, KeptOpen::start(&large.root())?);
    let empty = Call::new(floor, &std::env::temp_dir(), "");
    let spreads = samples::interleaved(scale.samples, |sample, series| {
        let agent = &agents[usize::from(series > 3)];
        match series {
            0 => empty.time(&[]),
            1 | 4 => agent.edits("src/held.rs"),
            2 | 5 => agent.edits(&format!("src/new{sample}.rs")),
            _ => agent.reads("src/held.rs"),
        }
    })?;
    let [empty, held, new, read, held_large, new_large, read_large] = spreads;
    let rows = [
        ("edit of a path it holds", 3.5, held, held_large),
        ("edit of a new path", 5.0, new, new_large),
        ("read", 3.5, read, read_large),
    ];
    for (what, target, small, large) in rows {
        lines.push(Line::ratio(format!("`hook claude`: {what}"), &small, &empty, target));
        let name = format!("`hook claude`: {what}, large store against the small one");
        lines.push(Line::ratio(name, &large, &small, 1.3));
    }
    after_a_command(baton, scale, lines)
}

fn after_a_command(baton: &Path, scale: Scale, lines: &mut Vec<Line>) -> Result<(), Failure> {
    println!("the look after a shell command, in 10,000 files");
    let ground = Ground::make(None)?;
    plant_files(&ground.root())?;
    let agent = Agent::begin(baton, &ground)?;
    let _open = KeptOpen::start(&ground.root())?;
    let rounds = (scale.samples / 10).max(20);
    let [ours, plain] = samples::interleaved(rounds, |_, series| match series {
        0 => {
            agent.tells(&agent.shell("PreToolUse"))?;
            agent.tells(&agent.shell("PostToolUse"))
        }
        _ => {
            let started = Instant::now();
            git(&ground.root(), &["status", "--porcelain=v2", "-z", "--untracked-files=all"])?;
            Ok(started.elapsed())
        }
    })?;
    let name = "the look after a shell command, against `git status`".to_owned();
    lines.push(Line::ratio(name, &ours, &plain, 1.2));
    Ok(())
}

/// An agent by its hooks.
struct Agent {
    call: Call,
    folder: PathBuf,
    id: String,
    text: String,
    /// What goes to the input of a hook: a file, so that nobody waits for a writer.
    payload: tempfile::NamedTempFile,
}

impl Agent {
    fn begin(baton: &Path, ground: &Ground) -> Result<Self, Failure> {
        let root = ground.root();
        let file = root.join("src/held.rs");
        let made = std::fs::create_dir_all(root.join("src"))
            .and_then(|()| std::fs::write(&file, "x".repeat(TEXT_BYTES)));
        made.map_err(Failure::file("writing", &file))?;
        git(&root, &["config", "user.name", "Ann"])?;
        git(&root, &["config", "user.email", "ann@example.invalid"])?;
        git(&root, &["add", "-A"])?;
        git(&root, &["commit", "-qm", "base"])?;
        let agent = Self::in_folder(baton, &root, "ann")?;
        agent.edits("src/held.rs")?;
        Ok(agent)
    }

    fn in_folder(baton: &Path, folder: &Path, id: &str) -> Result<Self, Failure> {
        let payload = tempfile::NamedTempFile::new();
        let payload = payload.map_err(Failure::file("making", &std::env::temp_dir()))?;
        let call = Call::new(baton, folder, "");
        let (folder, id) = (folder.to_owned(), id.to_owned());
        let agent = Self { call, folder, id, text: "x".repeat(TEXT_BYTES), payload };
        agent.tells(&json!({ "hook_event_name": "SessionStart", "source": "startup" }))?;
        Ok(agent)
    }

    fn edits(&self, file: &str) -> Result<Duration, Failure> {
        let path = self.folder.join(file);
        self.tells(&json!({ "hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": { "file_path": path, "old_string": "xx", "new_string": self.text },
            "tool_use_id": "toolu_1" }))
    }

    fn reads(&self, file: &str) -> Result<Duration, Failure> {
        let path = self.folder.join(file);
        self.tells(&json!({ "hook_event_name": "PostToolUse", "tool_name": "Read",
            "tool_input": { "file_path": path }, "tool_use_id": "toolu_2",
            "tool_response": { "type": "text", "file": { "content": self.text } } }))
    }

    fn shell(&self, event: &str) -> Value {
        json!({ "hook_event_name": event, "tool_name": "Bash", "tool_use_id": "toolu_3",
            "tool_input": { "command": "make all" }, "tool_response": { "stdout": self.text } })
    }

    /// The time of one hook, which must have let the act pass.
    fn tells(&self, payload: &Value) -> Result<Duration, Failure> {
        let mut payload = payload.clone();
        payload["session_id"] = json!(self.id);
        payload["cwd"] = json!(self.folder);
        payload["transcript_path"] = json!("/nowhere/transcript.jsonl");
        let path = self.payload.path();
        std::fs::write(path, payload.to_string()).map_err(Failure::file("writing", path))?;
        let input = File::open(path).map_err(Failure::file("reading", path))?;
        let mut command = self.call.command(&["hook", "claude"]);
        command.stdin(input);
        let started = Instant::now();
        let status = command.status();
        let time = started.elapsed();
        match status.map(|status| status.code()) {
            Ok(Some(0)) => Ok(time),
            other => Err(Failure::said("hook claude", format!("{other:?}"))),
        }
    }
}
