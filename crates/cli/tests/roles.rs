//! Roles through the real binary, at every door: claim, check, edit, shell, git, and the deeds.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::hooks::{Agent, denied};

const OWN: &str = "\
[roles]
tests = [\"checks/\"]

[roles.builder]
about = \"builds\"
write = [\"kind:source\", \"build/\"]
deny = [\"src/secret/\"]
tools = [\"read\", \"edit\", \"shell\"]
commit = true
land = false
deploy = false
";

fn session(scratch: &Scratch, name: &str, role: &str) -> String {
    let words = ["session", "start", "--name", name, "--role", role, "--json"];
    scratch.baton(&words).ok().json()["credential"].as_str().unwrap().to_owned()
}

/// An agent whose client came with a session of this role.
fn agent<'a>(
    scratch: &'a Scratch,
    client: &'static str,
    id: &'static str,
    role: &str,
) -> Agent<'a> {
    let words = ["session", "start", "--client", client, "--client-session", id, "--role", role];
    scratch.baton(&words).ok();
    Agent { scratch, client, id }
}

fn git(scratch: &Scratch, session: &str, words: &[&str]) -> Said {
    let mut command = Command::new("git");
    scratch.clean(&mut command);
    command.current_dir(scratch.root()).args(["-c", "user.name=A", "-c", "user.email=a@b.invalid"]);
    command.env("BATON_SESSION", session);
    command.args(words).output().unwrap().into()
}

#[test]
fn a_claim_and_a_check_follow_the_role() {
    Scratch::on_each_store(OWN, |scratch| {
        let code = session(scratch, "cora", "code");
        scratch.acts(&code, &["claim", "src/a.rs", "src/"]).ok();
        let said = scratch.acts(&code, &["claim", "checks/a.rs"]).refused(1);
        let sentence = "your role is code, which may not claim checks/a.rs for writing: it writes \
                        everything but tests";
        assert!(said.err.contains(sentence), "{said:?}");
        assert!(said.err.contains("next: baton task add"), "{said:?}");
        let json = scratch.acts(&code, &["claim", "checks/a.rs", "--json"]);
        let error: Value = serde_json::from_str(json.out.trim()).unwrap_or(Value::Null);
        assert!(error.to_string().contains("\"role\""), "{json:?}");
        scratch.acts(&code, &["claim", "checks/a.rs", "--shared"]).ok();
        let said = scratch.acts(&code, &["check", "checks/a.rs"]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.out.contains("deny  your role is code, which may not write"), "{said:?}");
        let builder = session(scratch, "bill", "builder");
        scratch.acts(&builder, &["claim", "build/out.o"]).ok();
        for path in ["src/secret/key.rs", "checks/b.rs", "README.md"] {
            scratch.acts(&builder, &["claim", path]).refused(1);
        }
        // A word that nobody defined would take nothing away: it is refused wherever it is said.
        scratch.baton(&["task", "add", "One"]).ok();
        scratch.write("parts.json", "[{\"title\": \"a\", \"role\": \"wizard\"}]");
        for words in [
            &["session", "start", "--name", "nora", "--role", "wizard"][..],
            &["session", "role", "wizard"],
            &["task", "add", "Two", "--role", "wizard"],
            &["task", "update", "t1", "--role", "wizard"],
            &["task", "split", "t1", "--file", "parts.json"],
        ] {
            let said = scratch.acts(&code, words).refused(2);
            assert!(said.err.contains("wizard") && said.err.contains("builder"), "{said:?}");
            assert!(said.err.contains("explore"), "{said:?}");
        }
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_session_narrows_its_role_and_only_a_person_widens_it() {
    Scratch::on_each_store("# plain\n", |scratch| {
        let ann = session(scratch, "ann", "code");
        let said = scratch.acts(&ann, &["session", "role", "verify"]).ok();
        assert!(said.out.contains("ann has the role verify: it writes nothing"), "{said:?}");
        let said = scratch.acts(&ann, &["session", "role", "code"]).refused(1);
        assert!(said.err.contains("from role verify to code"), "{said:?}");
        scratch.acts(&ann, &["session", "role", "wizard"]).refused(2);
        let bob = scratch.session("bob");
        scratch.acts(&bob, &["session", "role", "code", "ann"]).refused(1);
        // Nor does it help to start another session.
        let words = ["session", "start", "--name", "eve", "--role", "code"];
        scratch.acts(&ann, &words).refused(1);
        let eve = scratch.acts(&ann, &["session", "start", "--name", "eve", "--json"]).ok().json();
        assert_eq!(eve["role"], "verify", "{eve}");
        let token = scratch.path("home/person");
        scratch.baton(&["person", "token", token.to_str().unwrap()]).ok();
        let mut command = scratch.command(&["session", "role", "code", "ann"]);
        let said: Said = command.env("BATON_PERSON_TOKEN_FILE", token).output().unwrap().into();
        said.ok();
        scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
        let journal = scratch.baton(&["journal", "--kind", "role_given"]).ok().out;
        assert!(journal.contains("ann has the role verify"), "{journal}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn the_edit_and_shell_doors_hold_an_agent_to_its_role() {
    let reader = "[roles.reader]\nwrite = []\ntools = [\"read\", \"search\"]\n";
    Scratch::on_each_store(reader, |scratch| {
        for client in ["claude", "codex", "gemini", "cursor", "opencode"] {
            let verify = agent(scratch, client, "v", "verify");
            let why =
                denied(&verify.write("src/new.rs", "x\n")).unwrap_or_else(|| panic!("{client}"));
            assert!(why.contains("your role is verify, which may not write src/new.rs"), "{why}");
            assert!(why.contains("baton task add"), "{why}");
            for line in ["echo x > src/new.rs", "rm src/a.rs", "sed -i s/a/b/ src/a.rs"] {
                let why = denied(&verify.shell("before", line)).unwrap_or_else(|| panic!("{line}"));
                assert!(why.contains("your role is verify"), "{why}");
            }
            assert_eq!(denied(&verify.shell("before", "cargo test")), None, "{client}");
            let explore = agent(scratch, client, "e", "explore");
            for line in ["ls", "cat src/a.rs", "git log --oneline", "grep -rn fn src | head"] {
                assert_eq!(denied(&explore.shell("before", line)), None, "{client}: {line}");
            }
            for line in ["ls > src/new.rs", "cat src/a.rs | tee b.rs", "git mv src/a.rs b.rs"] {
                let why = denied(&explore.shell("before", line));
                let why = why.unwrap_or_else(|| panic!("{client}: {line}"));
                assert!(why.contains("your role is explore, which may not write"), "{why}");
            }
            for line in ["git commit --allow-empty -m x", "git checkout -b x", "git branch x"] {
                let why = denied(&explore.shell("before", line));
                let why = why.unwrap_or_else(|| panic!("{client}: {line}"));
                assert!(why.contains("your role is explore, which may not commit"), "{why}");
            }
            assert_eq!(denied(&explore.shell("before", "git branch -a; git branch")), None);
            let reader = agent(scratch, client, "r", "reader");
            let why = denied(&reader.shell("before", "ls")).unwrap_or_else(|| panic!("{client}"));
            assert!(why.contains("may not use the shell"), "{why}");
        }
    });
    let scratch = Scratch::workspace();
    let test = agent(&scratch, "claude", "t", "test");
    assert_eq!(denied(&test.write("tests/new.rs", "x\n")), None);
    assert!(denied(&test.write("src/new.rs", "x\n")).is_some());
    // Others pay nothing and lose nothing.
    let free = Agent { scratch: &scratch, client: "claude", id: "f" };
    assert_eq!(denied(&free.write("src/new.rs", "x\n")), None);
}

#[test]
fn what_a_script_wrote_outside_the_role_is_told_afterwards() {
    wrote_outside_the_role("open('src/a.rs', 'w').write('fn other() {}')\n");
    let made_up = "for f in glob.glob('*/*'):\n    open(f, 'w').write('fn other() {}')\n";
    wrote_outside_the_role(made_up);
}

#[track_caller]
fn wrote_outside_the_role(script: &str) {
    let scratch = Scratch::workspace();
    let verify = agent(&scratch, "claude", "v", "verify");
    scratch.write("build.py", script);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "x"]);
    assert_eq!(denied(&verify.shell("before", "python3 build.py")), None);
    std::thread::sleep(std::time::Duration::from_millis(60));
    scratch.write("src/a.rs", "fn other() {}\n");
    let said = verify.shell("after", "python3 build.py");
    assert!(said.out.contains("your role is verify, which may not write src/a.rs"), "{said:?}");
    // It is done, so no word says that it was not.
    assert!(said.out.contains("your command changed src/a.rs, but your role"), "{said:?}");
    assert!(said.out.contains("leave it as it is now, and tell your user"), "{said:?}");
    assert!(!said.out.contains("Nothing was changed"), "{said:?}");
    assert!(!scratch.baton(&["claims"]).ok().out.contains("src/a.rs"), "nothing was claimed");
}

#[test]
fn a_subagent_is_held_to_the_role_of_its_definition() {
    let scratch = Scratch::workspace();
    let main = Agent { scratch: &scratch, client: "claude", id: "m" };
    assert_eq!(denied(&main.write("src/new.rs", "x\n")), None);
    let edit = |kind: &str, file: &str| {
        let path = scratch.root().join(file);
        let input = json!({ "file_path": path, "content": "x\n" });
        main.tells(json!({ "hook_event_name": "PreToolUse", "tool_name": "Write",
            "tool_input": input, "tool_use_id": "c", "agent_id": "a1", "agent_type": kind }))
    };
    let why = denied(&edit("baton-review", "src/b.rs")).expect("a reviewer writes nothing");
    assert!(why.contains("your role is review"), "{why}");
    assert!(denied(&edit("baton:baton-review", "src/b.rs")).is_some(), "as a plugin's too");
    assert_eq!(denied(&edit("baton-docs", "docs/b.md")), None);
    assert_eq!(denied(&edit("general-purpose", "src/c.rs")), None);
    // Git's own hooks know nothing of subagents, and a command in a shell is known by its line.
    let line = |when: &str, line: &str| {
        main.tells(json!({ "hook_event_name": when, "tool_name": "Bash", "tool_use_id": "d",
            "tool_input": { "command": line }, "agent_id": "a1", "agent_type": "baton-explore" }))
    };
    let why = denied(&line("PreToolUse", "git commit -m sneaky")).expect("it may not commit");
    assert!(why.contains("your role is explore, which may not commit"), "{why}");
    assert_eq!(denied(&line("PreToolUse", "baton commit -m x src/a.rs")), None);
    scratch.write("src/a.rs", "fn b() {}\n");
    let mut commit = scratch.command(&["commit", "-m", "x", "src/a.rs"]);
    commit.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "m");
    let said = Said::from(commit.output().unwrap()).refused(1);
    assert!(said.err.contains("your role is explore, which may not commit"), "{said:?}");
}

#[test]
fn who_may_not_change_a_file_does_not_close_it_to_everybody() {
    let scratch = Scratch::workspace();
    let rita = session(&scratch, "rita", "review");
    let said = scratch.acts(&rita, &["interface", "add", "API", "src/a.rs"]).refused(1);
    assert!(said.err.contains("your role is review, which may not write src/a.rs"), "{said:?}");
}

#[test]
fn commit_land_and_deploy_are_for_roles_that_may() {
    let policy = "[deploy.prod]\nrun = [\"true\"]\n";
    let scratch = Scratch::with_policy(policy);
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    let verify = session(&scratch, "vera", "verify");
    scratch.write("src/a.rs", "fn b() {}\n");
    let said = scratch.acts(&verify, &["commit", "-m", "x", "src/a.rs"]).refused(1);
    assert!(said.err.contains("your role is verify, which may not commit"), "{said:?}");
    let debug = session(&scratch, "dora", "debug");
    let said = scratch.acts(&debug, &["commit", "-m", "x", "src/a.rs"]).refused(1);
    assert!(said.err.contains("may not write src/a.rs"), "{said:?}");
    scratch.git(&["switch", "-qc", "topic"]);
    scratch.git(&["commit", "-qam", "topic"]);
    let said = scratch.acts(&debug, &["land", "topic"]).refused(1);
    assert!(said.err.contains("your role is debug, which may not land"), "{said:?}");
    let code = session(&scratch, "cora", "code");
    let said = scratch.acts(&code, &["deploy", "prod"]).refused(1);
    assert!(said.err.contains("your role is code, which may not deploy"), "{said:?}");
    scratch.acts(&code, &["land", "topic"]).ok();
}

/// A tree of this name with a commit of this file that no hook saw.
fn sneaks(scratch: &Scratch, session: &str, name: &str, file: &str) -> String {
    scratch.acts(session, &["worktree", "new", name]).ok();
    let tree = scratch.path(&format!("repo.trees/{name}"));
    std::fs::create_dir_all(tree.join(file).parent().unwrap()).unwrap();
    std::fs::write(tree.join(file), format!("{name}\n")).unwrap();
    let tree = tree.to_str().unwrap().to_owned();
    scratch.git(&["-C", &tree, "add", file]);
    scratch.git(&["-C", &tree, "-c", "core.hooksPath=/dev/null", "commit", "-qm", name]);
    tree
}

#[test]
fn what_a_branch_brings_must_be_what_its_lander_may_write() {
    Scratch::on_each_store("# plain\n", |scratch| {
        scratch.git(&["config", "user.name", "Ann"]);
        scratch.git(&["config", "user.email", "ann@example.invalid"]);
        let test = session(scratch, "tess", "test");
        let own = sneaks(scratch, &test, "own", "src/a.rs");
        let said = scratch.acts(&test, &["-C", &own, "land"]).refused(1);
        let why = "your role is test, which may not land src/a.rs: it writes everything but source";
        assert!(said.err.contains(why), "{said:?}");
        assert!(said.err.contains("next: take that out of the branch, or leave"), "{said:?}");
        let branch = scratch.git(&["-C", &own, "branch", "--show-current"]);
        let branch = branch.trim();
        for words in [&["land", branch, "--queue"][..], &["land", branch, "--task", "t1"]] {
            scratch.baton(&["task", "add", "One"]).ok();
            scratch.acts(&test, words).refused(1);
        }
        let journal = scratch.baton(&["journal", "--kind", "deed_refused"]).ok().out;
        assert!(journal.contains("was refused a landing of src/a.rs"), "{journal}");
        // Nor by a branch that has no tree.
        scratch.git(&["branch", "plain", branch]);
        scratch.acts(&test, &["land", "plain"]).refused(1);
        // What it may write lands, and so does its branch for whoever may write it.
        let tests = sneaks(scratch, &test, "tests", "tests/a.rs");
        scratch.acts(&test, &["-C", &tests, "land"]).ok();
        let code = session(scratch, "cora", "code");
        scratch.acts(&code, &["land", branch]).ok();
        // Another's work is another's.
        let other = sneaks(scratch, &code, "other", "src/b.rs");
        let branch = scratch.git(&["-C", &other, "branch", "--show-current"]);
        scratch.acts(&test, &["-C", &other, "land"]).refused(1);
        scratch.acts(&test, &["land", branch.trim()]).ok();
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn who_divides_work_lands_what_others_made_and_not_its_own_source() {
    let scratch = Scratch::with_policy("# plain\n");
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    let olga = session(&scratch, "olga", "orchestrator");
    let own = sneaks(&scratch, &olga, "own", "src/a.rs");
    let said = scratch.acts(&olga, &["-C", &own, "land"]).refused(1);
    assert!(said.err.contains("may not land src/a.rs"), "{said:?}");
    // A tree that it made is a worker's once that one sits there.
    let worker = ["-C", &own, "session", "start", "--name", "wim", "--role", "code"];
    scratch.acts(&olga, &worker).ok();
    scratch.acts(&olga, &["-C", &own, "land"]).ok();
    let code = session(&scratch, "cora", "code");
    let others = sneaks(&scratch, &code, "others", "src/b.rs");
    scratch.acts(&olga, &["-C", &others, "land"]).ok();
}

#[test]
fn the_queue_is_for_roles_that_land() {
    Scratch::on_each_store("# plain\n", |scratch| {
        scratch.git(&["config", "user.name", "Ann"]);
        scratch.git(&["config", "user.email", "ann@example.invalid"]);
        let code = session(scratch, "cora", "code");
        let tree = sneaks(scratch, &code, "own", "src/a.rs");
        scratch.acts(&code, &["-C", &tree, "land", "--queue"]).ok();
        let review = session(scratch, "rita", "review");
        let refused = |words: &[&str]| {
            let said = scratch.acts(&review, words).refused(1);
            let why = "your role is review, which may not land";
            assert!(said.err.contains(why), "{words:?}: {said:?}");
        };
        refused(&["queue", "run", "--once"]);
        refused(&["queue", "pause"]);
        refused(&["queue", "remove", "l1"]);
        scratch.acts(&code, &["queue", "pause"]).ok();
        refused(&["queue", "resume"]);
        scratch.acts(&code, &["queue", "resume"]).ok();
        scratch.acts(&code, &["queue", "remove", "l1"]).ok();
        refused(&["queue", "retry", "l1"]);
        scratch.acts(&code, &["queue", "retry", "l1"]).ok();
        scratch.acts(&review, &["queue", "list"]).ok();
        scratch.acts(&code, &["queue", "run", "--once"]).ok();
        assert!(scratch.git(&["show", "main:src/a.rs"]).contains("own"));
    });
}

#[test]
fn the_git_door_holds_to_the_role_too() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "wiring"]);
    let origin = scratch.path("origin.git");
    scratch.git(&["clone", "-q", "--bare", ".", origin.to_str().unwrap()]);
    scratch.git(&["remote", "add", "origin", origin.to_str().unwrap()]);
    let verify = session(&scratch, "vera", "verify");
    scratch.write("src/a.rs", "fn b() {}\n");
    for words in [&["commit", "-qam", "x"][..], &["commit", "-q", "--no-verify", "-am", "x"]] {
        let said = git(&scratch, &verify, words);
        assert_ne!(said.code, 0, "{said:?}");
        assert!(said.err.contains("your role is verify, which may not commit"), "{said:?}");
        assert!(said.err.contains("next: baton "), "{said:?}");
    }
    let test = session(&scratch, "tess", "test");
    let said = git(&scratch, &test, &["commit", "-qam", "x"]);
    assert!(said.code != 0 && said.err.contains("may not write src/a.rs"), "{said:?}");
    let code = session(&scratch, "cora", "code");
    git(&scratch, &code, &["commit", "-qam", "x"]).ok();
    let debug = session(&scratch, "dora", "debug");
    let said = git(&scratch, &debug, &["push", "-q", "origin", "main"]);
    assert!(said.code != 0 && said.err.contains("may not land"), "{said:?}");
    git(&scratch, &debug, &["push", "-q", "origin", "HEAD:refs/heads/side"]).ok();
    git(&scratch, &code, &["push", "-q", "origin", "main"]).ok();
}

#[test]
fn a_scratch_session_has_a_folder_that_git_does_not_see() {
    let scratch = Scratch::workspace();
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "setup"]);
    let one = scratch.baton(&["session", "start", "--role", "scratch", "--json"]).ok().json();
    let (id, credential) = (one["session"].as_str().unwrap(), one["credential"].as_str().unwrap());
    let folder = format!(".baton/scratch/{id}");
    assert!(one["may"].as_str().unwrap().contains(&folder), "{one}");
    assert!(scratch.root().join(&folder).is_dir());
    scratch.acts(credential, &["claim", &format!("{folder}/try.py")]).ok();
    for path in ["src/a.rs", ".baton/scratch/other/try.py", ".baton/scratch/"] {
        scratch.acts(credential, &["claim", path]).refused(1);
    }
    scratch.write(&format!("{folder}/try.py"), "x\n");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

#[test]
fn roles_become_agents_of_the_clients_and_go_again() {
    let scratch = Scratch::repository();
    scratch.write("baton.toml", OWN);
    scratch.write(".claude/agents/baton-code.md", "mine\n");
    scratch.write(".claude/agents/own.md", "mine\n");
    scratch.write(".codex/agents/baton-own.toml", "name = \"mine\"\n");
    let words = ["init", "--yes", "--agents", "claude,codex,gemini,opencode,cursor,aider"];
    scratch.baton(&words).ok();
    assert!(!scratch.root().join(".opencode/agents").exists(), "only where it is asked for");
    let said = scratch.baton(&[&words[..], &["--roles"]].concat()).ok();
    assert!(said.out.contains("gemini, in this folder"), "its user is to say yes: {said:?}");
    let read = |path: &str| std::fs::read_to_string(scratch.root().join(path)).unwrap();
    let explore = read(".claude/agents/baton-explore.md");
    let tools = "tools: Read, Grep, Glob, Bash, Monitor, WebFetch, WebSearch, mcp__baton\n";
    assert!(explore.contains(tools), "{explore}");
    let builder = read(".opencode/agents/baton-builder.md");
    assert!(!builder.contains("bash") && builder.contains("webfetch: deny"), "{builder}");
    let builder = read(".codex/agents/baton-builder.toml");
    assert!(builder.contains("web_search=\"disabled\"\n"), "{builder}");
    assert!(!builder.contains("shell_tool") && !builder.contains("sandbox_mode"), "{builder}");
    let builder = read(".gemini/agents/baton-builder.md");
    assert!(builder.contains("- \"write_file\"\n") && !builder.contains("web_fetch"), "{builder}");
    assert!(!scratch.root().join(".cursor/agents").exists());
    assert_eq!(read(".claude/agents/baton-code.md"), "mine\n", "another's file stays");
    let again = scratch.baton(&["init", "--yes"]).ok();
    assert!(!again.out.contains("baton-explore"), "twice changes nothing: {again:?}");
    scratch.baton(&["init", "--remove", "--yes"]).ok();
    for folder in [".opencode", ".gemini", ".cursor"] {
        assert!(!scratch.root().join(folder).exists(), "{folder}");
    }
    for (folder, before) in [(".claude/agents", 2), (".codex/agents", 1)] {
        let left = std::fs::read_dir(scratch.root().join(folder)).unwrap().count();
        assert_eq!(left, before, "what was there before in {folder}");
    }
}

#[test]
fn roles_are_listed_and_told_at_the_start() {
    let scratch = Scratch::with_policy(OWN);
    let listed = scratch.baton(&["roles", "--json"]).ok().json();
    let names: Vec<&str> = listed["roles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|role| role["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 10, "{names:?}");
    let said = scratch.baton(&["roles"]).ok().out;
    assert!(said.contains("builder") && said.contains("source, build/ but src/secret/"), "{said}");
    let policy = scratch.baton(&["policy", "show"]).ok().out;
    assert!(policy.contains("role builder: writes source, build/ but src/secret/; may commit"));
    assert!(policy.contains("tests: checks/"), "{policy}");
    let ann = session(&scratch, "ann", "docs");
    let told = scratch.acts(&ann, &["prime"]).ok().out;
    assert!(told.contains("role docs (writes docs)"), "{told}");
    for (name, role) in [("rita", "review"), ("vera", "verify"), ("eli", "explore")] {
        let told = scratch.acts(&session(&scratch, name, role), &["prime"]).ok().out;
        let first = told.lines().next().unwrap();
        let who = format!("You are {name} (");
        assert!(first.contains(&who), "{told}");
        assert!(first.contains(&format!("role {role} (writes nothing)")), "{told}");
    }
    scratch.write("baton.toml", &OWN.replace("wr", "rw"));
    let said = scratch.baton(&["policy", "show"]).ok().out;
    assert!(said.contains("unknown key `rwite` of role builder"), "{said}");
}
