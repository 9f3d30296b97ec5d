//! Ways around a door that somebody found: each stays closed.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::hooks::{Agent, denied, hook_with};

const APPEND: &str = "[[zone]]\npaths = [\"CHANGELOG.md\"]\npolicy = \"append\"\n";
const HUMAN: &str = "[[zone]]\npaths = [\"*.env\"]\npolicy = \"human\"\n";

fn ann(scratch: &Scratch) -> Agent<'_> {
    Agent { scratch, client: "claude", id: "ann" }
}

fn codex(scratch: &Scratch) -> Agent<'_> {
    Agent { scratch, client: "codex", id: "cody" }
}

fn patch(agent: &Agent<'_>, parts: &str) -> Said {
    let patch = format!("*** Begin Patch\n{parts}\n*** End Patch\n");
    agent.tool("before", "apply_patch", &json!({ "command": patch }))
}

fn claims(scratch: &Scratch) -> String {
    scratch.baton(&["claims"]).ok().out
}

fn sessions(scratch: &Scratch) -> usize {
    let list = scratch.baton(&["session", "list", "--json"]).ok().json();
    list["sessions"].as_array().unwrap().len()
}

#[test]
fn s11_a_path_that_cannot_be_resolved_takes_nothing_from_the_verdict_on_others() {
    let scratch = Scratch::workspace();
    let (holder, codex) = (ann(&scratch), codex(&scratch));
    assert_eq!(denied(&holder.write("src/held.rs", "x")), None);
    symlink("loop", scratch.root().join("loop")).unwrap();
    let broken = scratch.path("repo/broken");
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join(".git"), "garbage").unwrap();
    let long = "x".repeat(300);
    for odd in ["loop", "loop/x", &long, "n\0ul", "/proc/1/fd/3", "broken/q"] {
        let add = format!("*** Add File: {odd}\n+x");
        let both = format!("{add}\n*** Update File: src/held.rs\n@@\n-x\n+y");
        let why = denied(&patch(&codex, &both)).unwrap_or_else(|| panic!("{odd:.20}"));
        assert!(why.contains("src/held.rs is held by"), "{odd:.20}: {why}");
        // Alone it is what it was: an act that nobody could judge, and that is said.
        assert_eq!(denied(&patch(&codex, &add)), None, "{odd:.20}");
    }
    let check = scratch.baton(&["check", "loop", "src/held.rs"]);
    assert!(check.code == 1 && check.out.contains("src/held.rs"), "{check:?}");
    let check = scratch.baton(&["check", "loop", "src/free.rs"]);
    assert!(check.code != 0 && check.err.contains("circle"), "{check:?}");
}

#[test]
fn s11_a_commit_with_a_circle_of_links_is_judged_for_the_rest() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    symlink("loop", scratch.root().join("loop")).unwrap();
    scratch.write("src/a.rs", "fn b() {}\n");
    let mut commit = std::process::Command::new("git");
    scratch.clean(&mut commit);
    commit.current_dir(scratch.root()).env("BATON_SESSION", &bob).args(["-c", "user.name=A"]);
    commit.args(["-c", "user.email=a@b.invalid", "commit", "-qm", "both", "src/a.rs", "loop"]);
    scratch.git(&["add", "loop", "src/a.rs"]);
    let said = Said::from(commit.output().unwrap());
    assert!(said.code == 1 && said.err.contains("src/a.rs is held by ann"), "{said:?}");
}

#[test]
fn code_and_changelog_go_in_one_patch() {
    let scratch = Scratch::with_policy(APPEND);
    scratch.write("CHANGELOG.md", "one\n");
    scratch.write("src/b.rs", "two\n");
    let (ann, codex) = (ann(&scratch), codex(&scratch));
    assert_eq!(denied(&ann.write("CHANGELOG.md", "one\nann\n")), None);
    let both = "*** Update File: src/b.rs\n@@\n-two\n+TWO\n\
                *** Update File: CHANGELOG.md\n@@\n one\n+cody";
    assert_eq!(denied(&patch(&codex, both)), None);
    let bob = Agent { scratch: &scratch, client: "claude", id: "bob" };
    let line = "echo y > src/c.rs; echo z >> CHANGELOG.md";
    assert_eq!(denied(&bob.shell("before", line)), None);
    let all = scratch.baton(&["claims", "--json"]).ok().json();
    let held = |path: &str, mode: &str| {
        let all = all["claims"].as_array().unwrap();
        let of = |claim: &&Value| claim["mode"] == mode && claim["resources"] == json!([path]);
        all.iter().filter(of).count()
    };
    assert_eq!(held("CHANGELOG.md", "shared"), 3, "{all}");
    assert_eq!((held("src/b.rs", "exclusive"), held("src/c.rs", "exclusive")), (1, 1), "{all}");
    // What is held alone is in the way of the whole patch, and nothing of it is held (S3).
    let more = "*** Add File: src/d.rs\n+x\n*** Update File: src/b.rs\n@@\n-two\n+2\n\
                *** Update File: CHANGELOG.md\n@@\n one\n+dan";
    let dan = Agent { scratch: &scratch, client: "codex", id: "dan" };
    assert!(denied(&patch(&dan, more)).is_some());
    assert!(!claims(&scratch).contains("src/d.rs"), "{}", claims(&scratch));
    scratch.baton(&["journal", "verify"]).ok();
}

/// Asks for a whole file as a subagent of Ann's that stands there.
fn writes_as(scratch: &Scratch, agent: &str, cwd: &str, file: &str) -> Option<String> {
    let write = json!({ "hook_event_name": "PreToolUse", "session_id": "ann", "agent_id": agent,
        "cwd": cwd, "tool_name": "Write", "tool_use_id": "w",
        "tool_input": { "file_path": format!("{cwd}/{file}"), "content": "x" } });
    denied(&hook_with(scratch, "claude", write.to_string().as_bytes(), &[]))
}

#[test]
fn a_subagent_stays_who_it_is_when_its_parent_goes_elsewhere() {
    let scratch = Scratch::workspace();
    let side = scratch.folder.path().canonicalize().unwrap().join("side").display().to_string();
    scratch.git(&["worktree", "add", "-q", "-b", "side", &side]);
    let root = scratch.root().canonicalize().unwrap().display().to_string();
    let parent_in = |cwd: &str| {
        let read = json!({ "hook_event_name": "PreToolUse", "session_id": "ann", "cwd": cwd,
            "tool_name": "Bash", "tool_use_id": "l", "tool_input": { "command": "ls" } });
        hook_with(&scratch, "claude", read.to_string().as_bytes(), &[]).ok();
    };
    parent_in(&root);
    assert_eq!(writes_as(&scratch, "s1", &root, "src/a.rs"), None);
    parent_in(&side);
    for file in ["src/a.rs", "src/b.rs"] {
        assert_eq!(writes_as(&scratch, "s1", &root, file), None, "{file}");
    }
    let why = writes_as(&scratch, "s2", &root, "src/a.rs").expect("its sibling's");
    assert!(why.contains("(subagent s1)"), "{why}");
    assert_eq!(sessions(&scratch), 1, "nobody is somebody else");
    // Where its parent stood in a linked tree, what it holds there is its own still.
    assert_eq!(writes_as(&scratch, "s1", &side, "src/a.rs"), None);
    parent_in(&root);
    assert_eq!(writes_as(&scratch, "s1", &side, "src/a.rs"), None);
    assert_eq!(sessions(&scratch), 1);
    // One that went there by itself is a session of its own, also when its parent follows.
    assert_eq!(writes_as(&scratch, "s3", &side, "src/c.rs"), None);
    assert_eq!(sessions(&scratch), 2);
    parent_in(&side);
    assert_eq!(writes_as(&scratch, "s3", &side, "src/c.rs"), None);
}

#[test]
fn lesson_13_odd_ids_and_credentials_are_judged_like_all_others() {
    let scratch = Scratch::workspace();
    assert_eq!(denied(&ann(&scratch).write("src/a.rs", "x")), None);
    let asks = |session: &str, agent: Option<&str>, set: &[(&str, &str)]| {
        let mut write = json!({ "hook_event_name": "PreToolUse", "session_id": session,
            "cwd": scratch.root(), "tool_name": "Write", "tool_use_id": "w",
            "tool_input": { "file_path": scratch.root().join("src/a.rs"), "content": "x" } });
        if let Some(agent) = agent {
            write["agent_id"] = json!(agent);
        }
        denied(&hook_with(&scratch, "claude", write.to_string().as_bytes(), set))
    };
    let garbage = [("BATON_SESSION", "garbage")];
    assert!(asks("new", None, &garbage).is_some());
    assert_eq!(asks("ann", None, &garbage), None);
    let long = "y".repeat(80);
    assert!(asks(&long, None, &[]).is_some());
    assert!(asks("new", Some("x\ny"), &[]).is_some());
    assert!(asks("newer", Some("x\u{202e}y"), &[]).is_some());
    assert!(asks("bidi\u{202e}", None, &[]).is_some());
    assert_eq!(asks("ann", Some("x\ny"), &[]), None, "a subagent of hers");
    // A command in the shell of a client with a long id is the same session.
    let mut who = scratch.command(&["session", "whoami", "--json"]);
    who.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", &long);
    assert_eq!(Said::from(who.output().unwrap()).ok().json()["client"], "claude");
}

fn fails(agent: &Agent<'_>, file: &str) {
    let input = json!({ "file_path": agent.file(file), "old_string": "none", "new_string": "q" });
    agent.tells(json!({ "hook_event_name": "PostToolUseFailure", "tool_name": "Edit",
        "tool_use_id": "c1", "tool_input": input, "error": "not found" }));
}

#[test]
fn a_failed_edit_is_no_edit_and_no_yes() {
    let scratch = Scratch::with_policy(HUMAN);
    scratch.write("s.env", "one\n");
    let ann = ann(&scratch);
    let asks =
        || ann.write("s.env", "x").json()["hookSpecificOutput"]["permissionDecision"].clone();
    assert_eq!(asks(), "ask");
    fails(&ann, "s.env");
    assert_eq!(claims(&scratch), "no claims\n");
    assert_eq!(asks(), "ask", "nobody has said yes");
    // It explains no change either.
    let bob = Agent { scratch: &scratch, client: "claude", id: "bob" };
    assert_eq!(denied(&ann.write("src/a.rs", "fn a() {}\n")), None);
    assert_eq!(denied(&bob.shell("before", "make all")), None);
    scratch.write("src/a.rs", "bob wrote this\n");
    fails(&ann, "src/a.rs");
    let told = bob.shell("after", "make all");
    assert!(told.out.contains("src/a.rs"), "{told:?}");
}

#[test]
fn every_question_of_a_client_has_an_answer_of_its_own() {
    let scratch = Scratch::with_policy(HUMAN);
    let ann = ann(&scratch);
    let files = ["s1.env", "s2.env", "s3.env"];
    let asks = |file: &str| ann.write(file, "x").out.contains("\"ask\"");
    assert!(files.iter().all(|file| asks(file)));
    for file in &files[..2] {
        let input = json!({ "file_path": ann.file(file), "content": "x" });
        scratch.write(file, "x");
        ann.tool("after", "Write", &input).ok();
    }
    assert!(claims(&scratch).contains("s1.env"), "{}", claims(&scratch));
    assert!(!asks("s1.env") && !asks("s2.env"), "both were approved");
    // With the next word of the user an old question is none any more.
    ann.tells(json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on" })).ok();
    let input = json!({ "file_path": ann.file("s3.env"), "content": "x" });
    ann.tool("after", "Write", &input).ok();
    assert!(asks("s3.env"), "nobody has said yes to it");
}

#[test]
fn lesson_13_what_cannot_be_claimed_is_not_edited() {
    let scratch = Scratch::workspace();
    std::fs::create_dir(scratch.path("repo/many")).unwrap();
    let mut parts = Vec::new();
    // A link is claimed with what it leads to: more than one claim takes.
    for number in 0..501 {
        let link = format!("many/{number}");
        symlink(format!("to-{number}"), scratch.root().join(&link)).unwrap();
        parts.push(format!("*** Add File: {link}\n+x"));
    }
    let why = denied(&patch(&codex(&scratch), &parts.join("\n"))).expect("too many for a claim");
    assert!(why.contains("1002") && why.contains("What you can do: "), "{why}");
    assert_eq!(claims(&scratch), "no claims\n");
}

/// A command that Ann's client runs.
fn in_shell(scratch: &Scratch, words: &[&str]) -> Said {
    let mut command = scratch.command(words);
    command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "ann");
    command.output().unwrap().into()
}

fn line_as(scratch: &Scratch, event: &str, agent: Option<&str>, line: &str) {
    let mut told = json!({ "hook_event_name": event, "session_id": "ann", "cwd": scratch.root(),
        "tool_name": "Bash", "tool_use_id": format!("{agent:?}"),
        "tool_input": { "command": line }, "tool_response": {} });
    if let Some(agent) = agent {
        told["agent_id"] = json!(agent);
    }
    let said = hook_with(scratch, "claude", told.to_string().as_bytes(), &[]);
    assert_eq!(denied(&said), None, "{line}");
}

#[test]
fn a_command_in_the_shell_of_a_subagent_is_the_subagents() {
    let scratch = Scratch::workspace();
    let root = scratch.root().display().to_string();
    let sibling = |file: &str| writes_as(&scratch, "s2", &root, file);
    line_as(&scratch, "PreToolUse", Some("s1"), "cd src && cd .. && baton claim b.rs 'c d.rs'");
    in_shell(&scratch, &["claim", "b.rs", "c d.rs"]).ok();
    let why = sibling("b.rs").expect("s1 has claimed it");
    assert!(why.contains("(subagent s1)"), "{why}");
    assert_eq!(writes_as(&scratch, "s1", &root, "b.rs"), None);
    // Other words are not that line's, and when it is over nothing is.
    in_shell(&scratch, &["claim", "parents.rs"]).ok();
    line_as(&scratch, "PostToolUse", Some("s1"), "cd src && cd .. && baton claim b.rs 'c d.rs'");
    in_shell(&scratch, &["claim", "later.rs"]).ok();
    assert!(!claims(&scratch).contains("parents.rs (subagent"), "{}", claims(&scratch));
    assert_eq!((sibling("parents.rs"), sibling("later.rs")), (None, None));
    // What only running it tells is whose it can be, if that is one alone.
    line_as(&scratch, "PreToolUse", Some("s1"), "baton claim \"$(cat list)\"");
    in_shell(&scratch, &["claim", "listed.rs"]).ok();
    assert!(sibling("listed.rs").is_some());
    line_as(&scratch, "PreToolUse", Some("s2"), "baton claim $OTHER");
    in_shell(&scratch, &["claim", "either.rs"]).ok();
    assert_eq!(sibling("either.rs"), None, "it may be of both, so it is their parent's");
    // Two that say the same are told apart no more; the end of a turn ends its lines.
    let stop = json!({ "hook_event_name": "SubagentStop", "session_id": "ann", "agent_id": "s1",
        "cwd": scratch.root() });
    hook_with(&scratch, "claude", stop.to_string().as_bytes(), &[]).ok();
    line_as(&scratch, "PreToolUse", None, "baton claim same.rs");
    line_as(&scratch, "PreToolUse", Some("s3"), "baton claim same.rs");
    in_shell(&scratch, &["claim", "same.rs"]).ok();
    assert_eq!(sibling("same.rs"), None);
    // Nobody becomes another session by it (S19).
    line_as(&scratch, "PreToolUse", Some("s3"), "baton claim foreign.rs");
    let bob = scratch.session("bob");
    scratch.acts(&bob, &["claim", "foreign.rs"]).ok();
    assert!(sibling("foreign.rs").expect("it is bob's").contains("held by bob"));
}

#[test]
fn an_agent_that_comes_only_to_gits_door_stands_in_the_journal() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let ann = scratch.session("ann");
    scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    scratch.write("src/a.rs", "fn b() {}\n");
    let aider = scratch.path("aider");
    let git = "git -c user.name=A -c user.email=a@b.invalid";
    let text = format!(
        "#!/bin/sh\n{git} commit -q --no-verify -am mine\necho $?\n{git} commit -qam mine\n\
         echo $?\n"
    );
    std::fs::write(&aider, text).unwrap();
    std::fs::set_permissions(&aider, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = std::process::Command::new(&aider);
    scratch.clean(&mut command);
    let said = Said::from(command.current_dir(scratch.root()).output().unwrap());
    assert!(!said.out.contains('0'), "{said:?}");
    let journal = scratch.baton(&["journal", "--kind", "deed_refused"]).ok().out;
    assert!(journal.contains("was refused a commit of src/a.rs, which ann held"), "{journal}");
    let list = scratch.baton(&["session", "list", "--json"]).ok().json();
    let clients: Vec<&Value> =
        list["sessions"].as_array().unwrap().iter().map(|seat| &seat["client"]).collect();
    assert_eq!(clients.iter().filter(|client| **client == "aider").count(), 1, "{list}");
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn the_dead_are_not_at_work() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    let (bob, mut process) = scratch.session_with_process("bob");
    scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
    let primed = || scratch.acts(&ann, &["prime"]).ok().out;
    assert!(primed().contains("1 other session"), "{}", primed());
    process.end();
    assert!(primed().contains("no other session at work"), "{}", primed());
}

#[test]
fn the_end_of_a_session_that_nobody_knows_begins_none() {
    let scratch = Scratch::workspace();
    let end = json!({ "hook_event_name": "SessionEnd", "reason": "exit" });
    let said = ann(&scratch).tells(end).ok();
    assert_eq!((said.out.as_str(), sessions(&scratch)), ("", 0));
}
