//! The guide runs: every `console` block is typed, and what comes back must be what it says.
//!
//! `alice$ baton …` is typed by the session alice; `$ …` by nobody in particular, `person$ …` by a
//! person. A line `? 3` is the exit code. `[..]` stands for anything within a line.

use std::collections::BTreeMap;
use std::process::Command;

use crate::harness::{Scratch, path_without_clients, project};

struct Step {
    line: usize,
    who: String,
    typed: String,
    code: i32,
    expected: Vec<String>,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
            continue;
        }
        if !inside {
            continue;
        }
        let prompt =
            line.split_once("$ ").filter(|(who, _)| who.chars().all(|c| c.is_ascii_lowercase()));
        if let Some((who, typed)) = prompt {
            let (who, typed) = (who.to_owned(), typed.to_owned());
            steps.push(Step { line: index + 1, who, typed, code: 0, expected: Vec::new() });
        } else if let Some(step) = steps.last_mut() {
            match line.strip_prefix("? ") {
                Some(code) => step.code = code.parse().unwrap(),
                None => step.expected.push(line.to_owned()),
            }
        }
    }
    steps
}

/// Does the line fit, with `[..]` for anything?
fn fits(line: &str, expected: &str) -> bool {
    let parts: Vec<&str> = expected.split("[..]").collect();
    let Some(mut rest) = line.strip_prefix(parts[0]) else { return false };
    for part in &parts[1..] {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || expected.ends_with("[..]")
}

fn run(page: &str, scratch: &Scratch) {
    let text = std::fs::read_to_string(project().join("docs/guide").join(page)).unwrap();
    let steps = steps(&text);
    assert!(!steps.is_empty(), "{page} shows nothing to type");
    let mut sessions: BTreeMap<String, String> = BTreeMap::new();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_baton")).parent().unwrap();
    for step in steps {
        let mut command = Command::new("bash");
        scratch.clean(&mut command);
        let path = path_without_clients();
        command.env("PATH", format!("{}:{}", folder.display(), path.to_string_lossy()));
        command.current_dir(scratch.root()).arg("-c").arg(format!("{} 2>&1", step.typed));
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Ann");
            command.env(format!("GIT_{role}_EMAIL"), "ann@example.invalid");
        }
        if step.who == "person" {
            let token = scratch.path("home/person");
            if !token.exists() {
                scratch.baton(&["person", "token", token.to_str().unwrap()]).ok();
            }
            command.env("BATON_PERSON_TOKEN_FILE", token);
        } else if !step.who.is_empty() {
            let credential =
                sessions.entry(step.who.clone()).or_insert_with(|| scratch.session(&step.who));
            command.env("BATON_SESSION", credential);
        }
        let output = command.output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        let place = format!("{page}:{}: {}", step.line, step.typed);
        assert_eq!(output.status.code(), Some(step.code), "{place}\n{shown}");
        let expected: Vec<&String> =
            step.expected.iter().filter(|line| !line.trim().is_empty()).collect();
        let lines: Vec<&str> = shown.lines().filter(|line| !line.trim().is_empty()).collect();
        if expected.is_empty() {
            continue;
        }
        assert_eq!(lines.len(), expected.len(), "{place}\n{shown}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(fits(line, expected), "{place}\nsaid:     {line}\nexpected: {expected}");
        }
    }
}

#[test]
fn the_guide_to_sandboxes_runs() {
    let scratch = Scratch::workspace();
    let tried = scratch.baton(&["sandbox", "verify", "--net", "none", "--", "true"]);
    if tried.code == 4 {
        return eprintln!("skipped: {}", tried.err);
    }
    run("sandbox.md", &scratch);
}

#[test]
fn the_guide_to_starting_runs() {
    run("starting.md", &Scratch::workspace());
}

#[test]
fn the_guide_to_claims_runs() {
    let scratch = Scratch::workspace();
    scratch.write("src/parser.rs", "fn parse() {}\n");
    scratch.write("docs/index.md", "# Docs\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "second"]);
    run("claims.md", &scratch);
}

#[test]
fn the_guide_to_mcp_runs() {
    run("mcp.md", &Scratch::workspace());
}

#[test]
fn the_first_minute_runs() {
    let scratch = Scratch::repository();
    for file in ["Cargo.toml", "Cargo.lock", "CHANGELOG.md", "migrations/0001_users.sql"] {
        scratch.write(file, "x\n");
    }
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "second"]);
    run("getting-started.md", &scratch);
}

#[test]
fn the_guide_to_the_journal_runs() {
    run("journal.md", &Scratch::workspace());
}

#[test]
fn the_guide_to_handoffs_runs() {
    run("handoffs.md", &Scratch::workspace());
}

#[test]
fn the_guide_to_working_trees_runs() {
    run("worktrees.md", &Scratch::workspace());
}

#[test]
fn the_life_of_a_task_runs() {
    run("tasks.md", &Scratch::workspace());
}

/// The page shows the policy it starts with.
#[test]
fn the_guide_to_shared_state_runs() {
    let page = std::fs::read_to_string(project().join("docs/guide/state.md")).unwrap();
    let policy = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    run("state.md", &Scratch::with_policy(policy.unwrap()));
}

#[test]
fn a_line_that_differs_is_noticed() {
    assert!(fits("claimed x until 1, token 2", "claimed x until [..], token [..]"));
    assert!(!fits("claimed y until 1, token 2", "claimed x until [..], token [..]"));
    assert!(!fits("claimed x until 1, token 2 more", "claimed x until [..], token 2"));
}

#[test]
fn the_guide_to_gates_and_review_runs() {
    run("gates.md", &Scratch::workspace());
}

#[test]
fn the_guide_to_files_runs() {
    run("files.md", &Scratch::workspace());
}

#[test]
fn the_first_two_agents() {
    run("agents.md", &Scratch::workspace());
}

#[test]
fn from_branch_to_main_runs() {
    run("landing.md", &Scratch::workspace());
}

#[test]
fn the_guide_to_deploying_runs() {
    let page = std::fs::read_to_string(project().join("docs/guide/deploy.md")).unwrap();
    let policy = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    run("deploy.md", &Scratch::with_policy(policy.unwrap()));
}

#[test]
fn the_guide_to_commits_and_the_remote_runs() {
    run("commit.md", &Scratch::workspace());
}

#[test]
fn the_guide_to_conflicts_runs() {
    let scratch = Scratch::workspace();
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "setup"]);
    run("conflicts.md", &scratch);
}

#[test]
fn the_guide_to_wiring_runs() {
    let scratch = Scratch::repository();
    scratch.write("Cargo.toml", "x\n");
    run("wiring.md", &scratch);
}

#[test]
fn changing_a_rule_runs() {
    run("rules.md", &Scratch::workspace());
}

/// The page shows the policy it starts with.
#[test]
fn the_guide_to_roles_runs() {
    let page = std::fs::read_to_string(project().join("docs/guide/roles.md")).unwrap();
    let policy = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let scratch = Scratch::with_policy(policy.unwrap());
    scratch.write("tests/a.rs", "\n");
    run("roles.md", &scratch);
}

#[test]
fn the_guide_to_interfaces_runs() {
    run("interfaces.md", &Scratch::workspace());
}
