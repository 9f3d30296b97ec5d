//! The real clients, offline: what they do in a project that `baton init` wired.
//!
//! Each runs headless against a scripted model in a network of its own (`clients/rig.sh`). They are
//! installed by `cargo xtask test --clients`; where one is missing, its test says so and ends.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Scratch, project};

/// Where clients are installed; `clients/setup.sh` has the same.
pub(crate) fn home() -> PathBuf {
    let given = std::env::var_os("RIG_HOME").map(PathBuf::from);
    let usual = || std::env::home_dir().unwrap_or_default().join(".cache/baton-rig");
    given.unwrap_or_else(usual)
}

/// What a scenario left.
struct Left {
    folder: tempfile::TempDir,
}

impl Left {
    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default()
    }

    fn json(&self, file: &str) -> Value {
        let text = self.text(file);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{file}: {text}\n{}", self.all()))
    }

    /// Everything that helps to see what went wrong.
    fn all(&self) -> String {
        let files =
            ["init.out", "fakemodel.out", "alice.err", "bob.err", "alice.out", "model.jsonl"];
        let tail = |text: String| {
            let from = text.char_indices().rev().nth(6_000).map_or(0, |(at, _)| at);
            text[from..].to_owned()
        };
        files.map(|file| format!("--- {file}\n{}\n", tail(self.text(file)))).concat()
    }

    /// What the model was shown.
    fn shown(&self) -> String {
        self.text("model.jsonl")
    }

    /// Who holds a resource.
    fn holder(&self, resource: &str) -> Option<String> {
        let claims = self.json("claims.json");
        let claims = claims["claims"].as_array().cloned().unwrap_or_default();
        let holds = |claim: &&Value| {
            claim["resources"].as_array().is_some_and(|all| all.iter().any(|one| one == resource))
        };
        let found = claims.iter().find(holds)?;
        found["holder"]["session"].as_str().map(str::to_owned)
    }
}

/// Runs a scenario; nothing when one of the clients is not there, or cannot be run here.
fn run(scenario: &[&str], clients: &[&str]) -> Option<Left> {
    let missing = clients.iter().find(|client| !home().join(client).join("node_modules").is_dir());
    if let Some(missing) = missing {
        eprintln!("skipped: {missing} is not installed; cargo xtask test --clients installs it");
        return None;
    }
    let alone = Command::new("unshare").args(["-rn", "true"]).status();
    if !alone.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no network of its own can be made here (unshare -n)");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let rig = project().join("crates/cli/tests/clients");
    let mut command = Command::new(rig.join("rig.sh"));
    command.arg("--").arg("bash").arg(rig.join(scenario[0])).args(&scenario[1..]);
    command.env("RIG_TMP", folder.path()).env("BATON_BIN", env!("CARGO_BIN_EXE_baton"));
    command.env("RIG_HOME", home()).env_remove("BATON_SESSION").env_remove("RIG_IN_NS");
    let output = command.output().unwrap();
    let left = Left { folder };
    assert!(output.status.success(), "{output:?}\n{}", left.all());
    Some(left)
}

/// A held file is not written, a free one is claimed and written, by tool, shell and MCP alike as
/// one session; and what goes around the doors is caught behind them.
fn guarded(client: &str) {
    let Some(left) = run(&["probe.sh", client], &[client]) else { return };
    assert_eq!(left.text("proj/held.txt"), "old content\n", "{}", left.all());
    assert_eq!(left.text("proj/free.txt"), "written by the client\n", "{}", left.all());
    assert_eq!(left.text("proj/shell.txt"), "shell-ran\n", "{}", left.all());
    let shown = left.shown();
    assert!(shown.contains("held.txt is held by eve"), "{}", left.all());
    let agent = left.holder("free.txt").unwrap_or_else(|| panic!("{}", left.all()));
    assert_eq!(left.holder("shell.txt").as_ref(), Some(&agent), "{}", left.all());
    assert_eq!(left.holder("@console/one").as_ref(), Some(&agent), "one session: {}", left.all());
    assert_ne!(left.holder("held.txt"), Some(agent));
    // Around the doors: the write stands in the journal, and its agent is told. The commit is
    // refused by git's own door, but where the client switches git's hooks off, as Gemini CLI does.
    assert!(left.text("journal.json").contains("hold_breached"), "{}", left.all());
    // Codex puts such words into a message of their own, which the model's log does not keep.
    if client != "codex" {
        assert!(shown.contains("your command changed other.txt"), "{}", left.all());
    }
    if client != "gemini" {
        assert!(!left.text("log").contains("around"), "{}", left.text("log"));
        assert!(!shown.contains("committed-around"), "{}", left.all());
    }
}

#[test]
fn real_claude_is_guarded() {
    guarded("claude");
}

#[test]
fn real_codex_is_guarded() {
    guarded("codex");
}

#[test]
fn real_gemini_is_guarded() {
    guarded("gemini");
}

#[test]
fn real_opencode_is_guarded() {
    guarded("opencode");
}

#[test]
fn real_claude_and_codex_meet_at_one_file() {
    let Some(left) = run(&["meeting.sh"], &["claude", "codex"]) else { return };
    assert_eq!(left.text("proj/shared.txt"), "alice was here\n", "{}", left.all());
    assert_eq!(left.text("proj/bob.txt"), "bob works elsewhere\n", "{}", left.all());
    assert!(left.shown().contains("shared.txt is held by"), "{}", left.all());
    assert_ne!(left.holder("bob.txt"), None, "{}", left.all());
    assert!(Path::new(&left.folder.path().join("proj/.claude/settings.json")).exists());
}

/// What the model was offered in a role, or without one.
fn offered(client: &str, how: &str, role: &str) -> Option<(Vec<String>, Left)> {
    let left = run(&["role.sh", client, how, role], &[client])?;
    let lines = left.shown();
    let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let asked: Vec<Value> = lines.filter(|line| line["script"] == "look").collect();
    let tools = asked.iter().filter_map(|line| line["tools"].as_array());
    // A title is asked for without any tools.
    let tools: Vec<&Vec<Value>> = tools.filter(|tools| !tools.is_empty()).collect();
    assert!(!tools.is_empty(), "nothing was asked: {}", left.all());
    let names = tools.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    Some((names, left))
}

/// The tools of a role that are gone and that are kept, against what the model is offered without
/// a role, and as an agent of the client's own.
fn limited(client: &str, role: &str, gone: &[&str], gone_in_agents: &[&str], kept: &[&str]) {
    let Some((all, left)) = offered(client, "free", role) else { return };
    let has = |offered: &[String], name: &str| offered.iter().any(|one| one == name);
    for name in gone.iter().chain(kept) {
        assert!(has(&all, name), "{name} is offered without a role: {all:?}\n{}", left.all());
    }
    for (how, gone) in [("start", gone), ("agent", gone_in_agents)] {
        let Some((some, left)) = offered(client, how, role) else { return };
        for name in gone {
            assert!(!has(&some, name), "{client} {how}: {name} of {some:?}\n{}", left.all());
        }
        for name in kept {
            assert!(has(&some, name), "{client} {how}: no {name} in {some:?}\n{}", left.all());
        }
    }
}

#[test]
fn real_claude_does_not_offer_what_a_role_has_not() {
    let gone = ["Edit", "Write", "NotebookEdit", "Agent", "Workflow"];
    limited("claude", "review", &gone, &gone, &["Bash", "Read", "mcp__baton__claim"]);
}

/// Patches are offered to every agent of Codex; there the hook refuses them.
#[test]
fn real_codex_does_not_offer_what_a_role_has_not() {
    limited("codex", "review", &["apply_patch"], &[], &["exec_command"]);
    let gone = ["apply_patch", "exec_command", "write_stdin"];
    limited("codex", "reader", &gone, &gone[1..], &["view_image"]);
    let Some(left) = run(&["role.sh", "codex", "try", "review"], &["codex"]) else { return };
    assert!(left.shown().contains("your role is review, which may not write"), "{}", left.all());
    assert_eq!(left.text("proj/new.txt"), "", "{}", left.all());
}

#[test]
fn real_gemini_does_not_offer_what_a_role_has_not() {
    let gone = ["write_file", "replace", "invoke_agent"];
    limited("gemini", "review", &gone, &gone, &["run_shell_command", "read_file"]);
}

#[test]
fn real_opencode_does_not_offer_what_a_role_has_not() {
    limited(
        "opencode",
        "review",
        &["edit", "write", "task"],
        &["edit", "write", "task"],
        &["bash"],
    );
}

/// What a subagent claims by the server of its session is its own.
#[test]
fn a_real_subagent_is_known_by_its_calls_of_the_server() {
    for client in ["claude", "codex"] {
        let Some(left) = run(&["role.sh", client, "ask", "code"], &[client]) else { return };
        let claims: Value = serde_json::from_str(&left.text("claims.json")).unwrap_or_default();
        let claims = claims["claims"].as_array().cloned().unwrap_or_default();
        let mine = claims.iter().find(|claim| claim["resources"].to_string().contains("mine.txt"));
        let holder = mine.map(|mine| mine["holder"].clone()).unwrap_or_default();
        assert!(holder["agent"].is_string(), "{client}: {claims:?}\n{}", left.all());
        let wrote = left.text("proj/mine.txt");
        assert_eq!(wrote, "written by who claimed it\n", "{client}\n{}", left.all());
    }
}

/// The inspector of the protocol's makers, which is strict about what a server says.
#[test]
fn the_mcp_inspector_lists_and_calls_the_tools() {
    let program = home().join("inspector/node_modules/.bin/mcp-inspector");
    if !program.exists() {
        eprintln!(
            "skipped: the inspector is not installed; cargo xtask test --clients installs it"
        );
        return;
    }
    let scratch = Scratch::workspace();
    let ask = |words: &[&str]| {
        let mut command = Command::new(&program);
        scratch.clean(&mut command);
        let node = home().join("node24/node_modules/.bin");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", node.display())).current_dir(scratch.root());
        command.args(["--cli", env!("CARGO_BIN_EXE_baton"), "mcp", "--method"]).args(words);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str::<Value>(&text).unwrap_or_else(|_| panic!("{words:?}: {output:?}"))
    };
    let tools = ask(&["tools/list"]);
    assert_eq!(tools["tools"].as_array().unwrap().len(), 12, "{tools}");
    let said = ask(&["tools/call", "--tool-name", "status"]);
    let words = said["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("0 claims") && said["isError"] != true, "{said}");
    let pages = ask(&["resources/list"]);
    assert!(pages.to_string().contains("baton://status"), "{pages}");
}
