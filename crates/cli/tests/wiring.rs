//! `baton init` and the files of agent clients: put in, kept, mended, taken out.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;

use crate::harness::{Said, Scratch, path_without_clients};

/// Every client, the file of its hooks, the file of its MCP server, and a word from each.
const CLIENTS: [(&str, &str, &str); 5] = [
    ("claude", ".claude/settings.json", ".mcp.json"),
    ("codex", ".codex/hooks.json", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json", ".gemini/settings.json"),
    ("cursor", ".cursor/hooks.json", ".cursor/mcp.json"),
    ("opencode", ".opencode/plugins/baton.js", "opencode.json"),
];

/// Everything in the tree that git does not keep for itself, with content and mode.
fn picture(scratch: &Scratch) -> Vec<(String, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![scratch.root()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(scratch.root()).unwrap().to_string_lossy().into_owned();
            let kind = path.symlink_metadata().unwrap();
            if name == ".git" || name == "baton.toml" {
                continue;
            }
            let mode = kind.permissions().mode();
            if kind.is_dir() {
                found.push((name, mode, Vec::new()));
                folders.push(path);
            } else if kind.is_symlink() {
                let to = std::fs::read_link(path).unwrap().to_string_lossy().into_owned();
                found.push((name, mode, to.into_bytes()));
            } else {
                found.push((name, mode, std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn wire(scratch: &Scratch, agents: &str) -> Said {
    scratch.baton(&["init", "--yes", "--agents", agents])
}

fn read(scratch: &Scratch, file: &str) -> String {
    std::fs::read_to_string(scratch.root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

fn remove(scratch: &Scratch) -> Said {
    scratch.baton(&["init", "--remove", "--yes"])
}

/// Settings as people have them: comments, trailing commas, hooks and servers of their own.
fn furnish(scratch: &Scratch) {
    let settings = "// mine\n{\n    \"permissions\": { \"allow\": [\"Bash(ls)\"], }, // keep\n    \
                    \"hooks\": {\n        \"PreToolUse\": [\n            { \"matcher\": \"Bash\", \
                    \"hooks\": [{ \"type\": \"command\", \"command\": \"./mine.sh\" }] },\n        \
                    ],\n        \"Stop\": [],\n    },\n}\n";
    scratch.write(".gemini/settings.json", settings);
    // Claude reads no comments, so nobody has any there.
    let plain = settings.replace("// mine\n", "").replace(" // keep", "");
    let plain = plain.replace("], }", "] }").replace("},\n        ]", "}\n        ]");
    let plain = plain.replace("[],\n    },\n}", "[]\n    }\n}");
    scratch.write(".claude/settings.json", &plain);
    scratch.write(".codex/hooks.json", "{\"hooks\":{}}");
    scratch
        .write(".codex/config.toml", "# mine\r\nmodel = \"gpt\" # fast\r\n\r\n[tui]\r\na = 1\r\n");
    scratch.write(".cursor/hooks.json", "{\n\t\"version\": 1,\n\t\"hooks\": {\"stop\": []}\n}");
    scratch.write(".cursor/mcp.json", "");
    scratch.write(".mcp.json", "\u{feff}{\n  \"mcpServers\": {\"x\": {\"command\": \"y\"}}\n}\n");
    scratch.write("opencode.json", "{\"theme\":\"dark\"}");
    scratch.write("AGENTS.md", "# Agents\n\nBe kind.");
    scratch.write("CLAUDE.md", "# Claude\r\n\r\nBe brief.\r\n");
    let secret = scratch.root().join(".mcp.json");
    std::fs::set_permissions(secret, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn each_client_is_wired_fresh_and_taken_out_again() {
    for (client, hooks, server) in CLIENTS {
        let scratch = Scratch::repository();
        let before = picture(&scratch);
        let said = wire(&scratch, client).ok();
        assert!(said.out.contains(hooks) && said.out.contains(server), "{client}: {said:?}");
        let text = read(&scratch, hooks);
        let asks = text.contains(&format!("baton hook {client}"))
            || text.contains("[\"hook\", \"opencode\"]");
        assert!(asks, "{client}: {text}");
        assert!(read(&scratch, server).contains("mcp"), "{client}");
        assert!(read(&scratch, "AGENTS.md").contains("<!-- baton:begin -->"));
        assert!(read(&scratch, ".baton/rules.md").contains("Claim before you change"));
        assert!(!scratch.root().join("CLAUDE.md").exists(), "only where it exists");
        let wired = picture(&scratch);
        let again = wire(&scratch, client).ok();
        assert!(again.out.contains("as before"), "{again:?}");
        scratch.baton(&["init"]).ok();
        assert_eq!(wired, picture(&scratch), "twice changes nothing");
        remove(&scratch).ok();
        assert_eq!(before, picture(&scratch), "{client}");
        assert!(scratch.root().join("baton.toml").exists() && scratch.store().exists());
        assert!(remove(&scratch).ok().out.contains("nothing of Baton's"), "twice");
    }
}

#[test]
fn what_a_user_has_stays_and_comes_back_byte_for_byte() {
    let scratch = Scratch::repository();
    furnish(&scratch);
    let before = picture(&scratch);
    wire(&scratch, "claude,codex,gemini,cursor,opencode,aider").ok();
    let claude = read(&scratch, ".claude/settings.json");
    let gemini = read(&scratch, ".gemini/settings.json");
    for kept in ["// mine\n", "// keep\n", "./mine.sh", "\"Bash(ls)\""] {
        assert!(gemini.contains(kept), "{kept}: {gemini}");
        assert!(kept.starts_with("//") || claude.contains(kept), "{kept}: {claude}");
    }
    let codex = read(&scratch, ".codex/config.toml");
    assert!(codex.starts_with("# mine\r\nmodel = \"gpt\" # fast\r\n\r\n[tui]\r\na = 1\r\n"));
    assert!(codex.contains("[mcp_servers.baton]\r\ncommand = \"baton\"\r\n"), "{codex:?}");
    assert!(read(&scratch, ".mcp.json").starts_with('\u{feff}'));
    let mode = scratch.root().join(".mcp.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "modes are kept");
    for file in ["AGENTS.md", "CLAUDE.md"] {
        assert!(read(&scratch, file).contains("baton:begin"), "{file}");
    }
    let wired = picture(&scratch);
    scratch.baton(&["init", "--yes"]).ok();
    assert_eq!(wired, picture(&scratch), "twice changes nothing");
    remove(&scratch).ok();
    assert_eq!(before, picture(&scratch));
}

#[test]
fn without_memory_only_our_own_is_taken_out() {
    let scratch = Scratch::repository();
    furnish(&scratch);
    wire(&scratch, "claude,codex,gemini,cursor,opencode").ok();
    // Another clone has the files but not what was before, and its user goes on working.
    std::fs::remove_file(scratch.store().join("wiring.json")).unwrap();
    let agents = read(&scratch, "AGENTS.md").replace("## Working here", "Mine.\n## Working here");
    scratch.write("AGENTS.md", &agents);
    remove(&scratch).ok();
    for (file, kept) in [
        (".claude/settings.json", "./mine.sh"),
        (".codex/config.toml", "a = 1"),
        (".mcp.json", "\"command\": \"y\""),
        ("opencode.json", "dark"),
        ("AGENTS.md", "Mine.\n"),
        ("CLAUDE.md", "Be brief."),
    ] {
        let text = read(&scratch, file);
        assert!(text.contains(kept) && !text.contains("baton"), "{file}: {text}");
    }
    assert_eq!(read(&scratch, "CLAUDE.md"), "# Claude\r\n\r\nBe brief.\r\n");
    assert!(!scratch.root().join(".opencode").exists(), "folders that became empty go");
}

#[test]
fn an_edit_of_the_user_between_is_kept() {
    let scratch = Scratch::repository();
    wire(&scratch, "claude").ok();
    let text = read(&scratch, ".claude/settings.json");
    let mine = text.replacen('{', "{\n  \"model\": \"opus\",", 1);
    scratch.write(".claude/settings.json", &mine.replace("\"timeout\": 5", "\"timeout\": 9"));
    wire(&scratch, "claude").ok();
    let text = read(&scratch, ".claude/settings.json");
    assert!(text.contains("opus") && !text.contains("\"timeout\": 9"), "updated in place: {text}");
    remove(&scratch).ok();
    let left: Value = serde_json::from_str(&read(&scratch, ".claude/settings.json")).unwrap();
    assert_eq!(left, serde_json::json!({ "model": "opus" }));
    wire(&scratch, "claude").ok();
    let rules = read(&scratch, ".baton/rules.md");
    scratch.write(".baton/rules.md", "my own rules\n");
    wire(&scratch, "claude").ok();
    assert_eq!(read(&scratch, ".baton/rules.md"), "my own rules\n", "never overwritten");
    remove(&scratch).ok();
    assert_eq!(read(&scratch, ".baton/rules.md"), "my own rules\n", "and never taken");
    assert_eq!(rules.matches("Enforced by").count(), 7);
}

#[test]
fn a_broken_file_is_left_and_the_rest_goes_on() {
    let scratch = Scratch::repository();
    let broken: [(&str, &[u8], &str); 8] = [
        (".claude/settings.json", b"{ \"hooks\": ", "not JSON"),
        (".mcp.json", b"{\"mcpServers\": []}", "`mcpServers` is not an object"),
        (".codex/hooks.json", b"{\"hooks\": {\"Stop\": {}}}", "`hooks.Stop` is not a list"),
        (".codex/config.toml", b"model = \n", "not TOML"),
        (".gemini/settings.json", b"\xff\xfe{}", "not UTF-8"),
        (".cursor/hooks.json", b"[]", "the file is not an object"),
        ("opencode.json", b"{\"mcp\": {\"baton\": {\"command\": [\"x\"]}}}", "somebody else"),
        ("AGENTS.md", b"<!-- baton:begin -->\n", "has no end"),
    ];
    for (file, text, _) in broken {
        scratch.write(file, "");
        std::fs::write(scratch.root().join(file), text).unwrap();
    }
    std::fs::create_dir_all(scratch.root().join(".cursor/mcp.json")).unwrap();
    let said = wire(&scratch, "claude,codex,gemini,cursor,opencode");
    assert_eq!(said.code, 1, "{said:?}");
    for (file, text, why) in broken {
        assert_eq!(std::fs::read(scratch.root().join(file)).unwrap(), text, "{file} untouched");
        assert!(said.err.contains(file) && said.err.contains(why), "{file} {why}: {said:?}");
    }
    assert!(said.err.contains(".cursor/mcp.json: a folder is in its place"), "{said:?}");
    assert!(said.err.contains("next: put .claude/settings.json right"), "{said:?}");
    assert!(scratch.root().join(".opencode/plugins/baton.js").exists(), "the rest goes on");
    let doctor = scratch.baton(&["doctor", "--json"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.out.contains("settings.json cannot be used: not JSON"), "{doctor:?}");
    let said = remove(&scratch);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(!said.err.contains("guarded") && said.err.contains("whatever Baton"), "{said:?}");
    assert!(said.err.contains("right, then baton init --remove\n"), "{said:?}");
    for (file, text, _) in broken {
        assert_eq!(std::fs::read(scratch.root().join(file)).unwrap(), text, "{file} untouched");
    }
}

#[test]
fn a_server_of_the_user_that_starts_baton_is_kept_and_told() {
    let scratch = Scratch::repository();
    let json = "{\"mcpServers\": {\"baton\": {\"command\": \"/opt/my/baton\", \"args\": [\"mcp\", \
                \"--workspace\", \"x\"]}}}\n";
    let toml = "[mcp_servers.baton]\ncommand = \"/opt/my/baton\"\nargs = [\"mcp\", \"-w\"]\n";
    let opencode = "{\"mcp\": {\"baton\": {\"command\": [\"/opt/my/baton\", \"mcp\", \"-w\"]}}}\n";
    let files = [
        (".mcp.json", json),
        (".cursor/mcp.json", json),
        (".codex/config.toml", toml),
        ("opencode.json", opencode),
        (".gemini/settings.json", json),
    ];
    for (file, text) in files {
        scratch.write(file, text);
    }
    let said = wire(&scratch, "claude,codex,gemini,cursor,opencode").ok();
    for (file, text) in files {
        let told = format!("kept     {file}: its server `baton` is your own");
        assert!(said.out.contains(&told), "{file}: {said:?}");
        assert!(read(&scratch, file).contains("/opt/my/baton"), "{file}");
        assert!(file.contains("gemini") || read(&scratch, file) == text, "{file}");
    }
    assert!(read(&scratch, ".gemini/settings.json").contains("hook gemini"));
    remove(&scratch).ok();
    for (file, text) in files {
        assert_eq!(read(&scratch, file), text, "{file}");
    }
}

#[test]
fn a_plugin_that_the_user_changed_is_theirs_and_that_is_said() {
    let scratch = Scratch::repository();
    wire(&scratch, "opencode").ok();
    let file = ".opencode/plugins/baton.js";
    let mine = format!("{}// mine\n", read(&scratch, file));
    scratch.write(file, &mine);
    let doctor = scratch.baton(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.out.contains(&format!("next: move {file} away, then baton init")), "{doctor:?}");
    let said = remove(&scratch).ok();
    assert!(said.out.contains(&format!("kept     {file}: you changed")), "{said:?}");
    assert_eq!(read(&scratch, file), mine);
}

#[test]
fn from_one_mode_to_the_other_git_sees_what_it_should() {
    let scratch = Scratch::repository();
    scratch.write("AGENTS.md", "# Agents\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "agents"]);
    let words = ["init", "--yes", "--agents", "claude,aider"];
    scratch.baton(&[&words[..], &["--personal"]].concat()).ok();
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    let said = scratch.baton(&[&words[..], &["--team"]].concat()).ok();
    let add = said.out.lines().find(|line| line.contains("git add ")).unwrap();
    for file in ["baton.toml", ".aider.conf.yml", ".mcp.json", "AGENTS.md"] {
        assert!(add.contains(file), "{file}: {add}");
    }
    let named: Vec<&str> = add.split_whitespace().skip(1).collect();
    scratch.git(&named);
    scratch.git(&["reset", "-q"]);
    scratch.baton(&[&words[..], &["--personal"]].concat()).ok();
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

#[test]
fn lesson_14_no_link_leads_out_of_the_repository() {
    let scratch = Scratch::repository();
    let away = scratch.path("away");
    std::fs::create_dir(&away).unwrap();
    std::fs::write(away.join("settings.json"), "{}").unwrap();
    symlink(&away, scratch.root().join(".claude")).unwrap();
    symlink("../away/settings.json", scratch.root().join(".mcp.json")).unwrap();
    symlink("nowhere", scratch.root().join(".gemini")).unwrap();
    scratch.write("AGENTS.md", "# Agents\n");
    symlink("AGENTS.md", scratch.root().join("CLAUDE.md")).unwrap();
    let said = wire(&scratch, "claude,gemini");
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.err.matches("leads out of the repository").count(), 2, "{said:?}");
    assert!(said.err.contains(".gemini is a symbolic link that leads nowhere"), "{said:?}");
    assert_eq!(std::fs::read_to_string(away.join("settings.json")).unwrap(), "{}");
    assert_eq!(std::fs::read_dir(&away).unwrap().count(), 1);
    assert!(scratch.root().join("CLAUDE.md").symlink_metadata().unwrap().is_symlink());
    assert_eq!(
        read(&scratch, "AGENTS.md").matches("baton:begin").count(),
        1,
        "one file, one block"
    );
    scratch.baton(&["init", "--remove", "--yes"]);
    assert_eq!(read(&scratch, "AGENTS.md"), "# Agents\n");
}

#[test]
fn a_read_only_file_is_told_and_stays() {
    let scratch = Scratch::repository();
    scratch.write(".mcp.json", "{}");
    let file = scratch.root().join(".mcp.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    let said = wire(&scratch, "claude");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains(".mcp.json: it is read-only"), "{said:?}");
    assert_eq!(read(&scratch, ".mcp.json"), "{}");
    assert!(scratch.root().join(".claude/settings.json").exists(), "the rest goes on");
}

#[test]
fn personal_wiring_leaves_nothing_to_commit() {
    let scratch = Scratch::repository();
    let before = picture(&scratch);
    let exclude = scratch.root().join(".git/info/exclude");
    let excluded = std::fs::read(&exclude).unwrap();
    let all = "claude,codex,gemini,cursor,opencode,aider";
    scratch.baton(&["init", "--yes", "--personal", "--agents", all]).ok();
    assert_eq!(scratch.git(&["status", "--short"]), "");
    let text = read(&scratch, ".claude/settings.local.json");
    let hooks: Value = serde_json::from_str(&text).unwrap();
    let hook = &hooks["hooks"]["PreToolUse"][0]["hooks"][0];
    assert_eq!(hook["command"], env!("CARGO_BIN_EXE_baton"), "this very program");
    assert_eq!(hook["args"], serde_json::json!(["hook", "claude"]));
    assert!(!scratch.root().join(".claude/settings.json").exists());
    assert!(!scratch.root().join("AGENTS.md").exists());
    let wired = picture(&scratch);
    scratch.baton(&["init", "--yes"]).ok();
    assert_eq!(wired, picture(&scratch), "the way is remembered");
    remove(&scratch).ok();
    assert_eq!(before, picture(&scratch));
    assert_eq!(excluded, std::fs::read(&exclude).unwrap());
}

#[test]
fn a_client_that_is_wired_later_leaves_what_others_were_given_out_of_git() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--personal", "--agents", "claude,cursor"]).ok();
    let more = ["init", "--yes", "--personal", "--agents", "opencode", "--roles"];
    let told = scratch.baton(&more).ok().out;
    assert!(!told.ends_with("next:\n"), "a heading with nothing below: {told}");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

#[test]
fn personal_wiring_does_not_touch_what_git_follows() {
    let scratch = Scratch::repository();
    scratch.write(".gemini/settings.json", "{}\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "gemini"]);
    let said = scratch.baton(&["init", "--yes", "--personal", "--agents", "gemini,claude"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("git follows it"), "{said:?}");
    assert_eq!(scratch.git(&["status", "--short"]), "");
    // The team's way takes its place, and Claude's hooks are in one file only.
    scratch.baton(&["init", "--yes", "--team"]).ok();
    assert!(scratch.root().join(".claude/settings.json").exists());
    assert!(!scratch.root().join(".claude/settings.local.json").exists());
}

#[test]
fn a_line_for_a_team_does_no_harm_without_baton() {
    let scratch = Scratch::repository();
    wire(&scratch, "claude,gemini").ok();
    let settings: Value = serde_json::from_str(&read(&scratch, ".gemini/settings.json")).unwrap();
    let group = &settings["hooks"]["BeforeTool"][0];
    assert_eq!(group["hooks"][0]["timeout"], 5000, "milliseconds: {group}");
    let run = |line: &Value, input: &str| {
        let mut command = std::process::Command::new("sh");
        scratch.clean(&mut command);
        command.env("PATH", path_without_clients());
        command.env("CLAUDE_PROJECT_DIR", scratch.root()).current_dir(scratch.root());
        command.args(["-c", &format!("printf '%s' '{input}' | {{ {}; }}", line.as_str().unwrap())]);
        Said::from(command.output().unwrap())
    };
    let said = run(&group["hooks"][0]["command"], "{}").ok();
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""), "silent");
    let settings: Value = serde_json::from_str(&read(&scratch, ".claude/settings.json")).unwrap();
    let line = &settings["hooks"]["WorktreeCreate"][0]["hooks"][0]["command"];
    let made = run(line, "{\"hook_event_name\": \"WorktreeCreate\", \"name\": \"fix-1\"}").ok();
    let tree = scratch.root().join(".claude/worktrees/fix-1");
    assert_eq!(Path::new(made.out.trim()), tree, "{made:?}");
    assert!(tree.join("README.md").exists(), "as Claude does it by itself");
    let wanted = "{\"hook_event_name\": \"WorktreeCreate\", \"name\": \"fix-1\"}";
    std::fs::write(tree.join("mine.txt"), "x").unwrap();
    assert_eq!(run(line, wanted).ok().out, made.out, "the same is given again");
    assert!(tree.join("mine.txt").exists());
    // Its folder goes, with and without a word to git, and its branch stays.
    for with_word in [true, false] {
        match with_word {
            true => drop(scratch.git(&["worktree", "remove", "-f", made.out.trim()])),
            false => std::fs::remove_dir_all(&tree).unwrap(),
        }
        assert_eq!(run(line, wanted).ok().out, made.out);
        assert!(tree.join("README.md").exists());
        let branch = scratch.git(&["-C", made.out.trim(), "branch", "--show-current"]);
        assert_eq!(branch.trim(), "worktree-fix-1");
    }
    assert!(!line.as_str().unwrap().contains('\n'), "{line}");
    // A Baton that has nothing to say about it does no harm either; one that says no is heard.
    let fake = scratch.path("fake");
    std::fs::create_dir(&fake).unwrap();
    let with = |script: &str| {
        std::fs::write(fake.join("baton"), format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(fake.join("baton"), mode).unwrap();
        let line = format!("PATH='{}':$PATH; {}", fake.display(), line.as_str().unwrap());
        run(&Value::from(line), "{\"name\": \"fix-2\"}")
    };
    assert!(with("cat >/dev/null; echo '{}'").ok().out.ends_with("worktrees/fix-2\n"));
    assert_eq!(with("cat >/dev/null; echo /made/here").ok().out, "/made/here\n");
    assert_eq!(with("echo no >&2; exit 1").code, 1);
    let line = &settings["hooks"]["WorktreeRemove"][0]["hooks"][0]["command"];
    run(line, &format!("{{\"worktree_path\":\"{}\"}}", tree.display())).ok();
    assert!(!tree.exists());
}

#[test]
fn a_line_of_ones_own_does_no_harm_when_baton_is_gone() {
    let scratch = Scratch::repository();
    let program = scratch.path("its place/baton");
    std::fs::create_dir(program.parent().unwrap()).unwrap();
    // By another process: a file that this one wrote may be open in a child of another test, and a
    // program that is open for writing cannot be started.
    let copied = std::process::Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_baton"))
        .arg(&program)
        .status()
        .unwrap();
    assert!(copied.success());
    let mut init = std::process::Command::new(&program);
    scratch.clean(&mut init);
    init.current_dir(scratch.root());
    init.args(["init", "--yes", "--personal", "--agents", "codex,gemini,cursor"]);
    Said::from(init.output().unwrap()).ok();
    std::fs::remove_file(&program).unwrap();
    let lines = [
        (".codex/hooks.json", "/hooks/PreToolUse/0/hooks/0/command"),
        (".gemini/settings.json", "/hooks/BeforeTool/0/hooks/0/command"),
        (".cursor/hooks.json", "/hooks/preToolUse/0/command"),
    ];
    for (file, place) in lines {
        let settings: Value = serde_json::from_str(&read(&scratch, file)).unwrap();
        let line = settings.pointer(place).and_then(Value::as_str).unwrap();
        assert!(line.contains("its place/baton"), "{line}");
        let mut command = std::process::Command::new("sh");
        scratch.clean(&mut command);
        command.current_dir(scratch.root()).args(["-c", line]);
        let said = Said::from(command.output().unwrap()).ok();
        assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""), "{line}");
    }
}

#[test]
fn a_repository_with_spaces_and_quotes_in_its_path() {
    let scratch = Scratch::repository();
    let odd = scratch.path("it's a \"repo\"");
    std::fs::create_dir(&odd).unwrap();
    let mut git = std::process::Command::new("git");
    scratch.clean(&mut git);
    git.args(["clone", "-q"]).arg(scratch.root()).arg(odd.join("x y"));
    assert!(git.status().unwrap().success());
    let at = |words: &[&str]| {
        Said::from(scratch.command(words).current_dir(odd.join("x y")).output().unwrap())
    };
    at(&["init", "--yes", "--agents", "claude,gemini"]).ok();
    let mut commit = std::process::Command::new("git");
    scratch.clean(&mut commit);
    commit.current_dir(odd.join("x y")).args(["-c", "user.name=A", "-c", "user.email=a@b"]);
    let committed = commit.args(["commit", "-q", "--allow-empty", "-m", "x"]).output().unwrap();
    assert!(committed.status.success() && committed.stderr.is_empty(), "{committed:?}");
    at(&["doctor"]).ok();
    at(&["init", "--remove", "--yes"]).ok();
}

#[test]
fn an_agent_does_not_take_the_doors_out() {
    let scratch = Scratch::repository();
    wire(&scratch, "claude").ok();
    let before = picture(&scratch);
    let session = scratch.session("ann");
    let said = scratch.acts(&session, &["init", "--remove", "--yes"]).refused(1);
    assert!(said.err.contains("for a person to decide"), "{said:?}");
    let agent = scratch.command(&["init", "--remove", "--yes"]).env("CLAUDECODE", "1").output();
    Said::from(agent.unwrap()).refused(1);
    scratch.baton(&["init", "--remove"]).refused(1);
    assert_eq!(before, picture(&scratch));
}

#[test]
fn clients_are_found_by_their_signs() {
    let scratch = Scratch::repository();
    std::fs::create_dir(scratch.root().join(".codex")).unwrap();
    std::fs::create_dir(scratch.path("home/.gemini")).unwrap();
    let refused = scratch.baton(&["init", "--json"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let planned = refused.json()["refused"]["wiring"].to_string();
    assert!(planned.contains(".codex/hooks.json") && planned.contains("new"), "{planned}");
    assert!(!scratch.root().join(".codex/hooks.json").exists());
    let done = scratch.baton(&["init", "--yes", "--json"]).ok().json();
    assert_eq!(done["clients"], serde_json::json!(["codex", "gemini"]));
    let report = scratch.baton(&["doctor", "--json"]).json();
    assert!(report.to_string().contains("codex hooks"), "{report}");
    assert!(report.to_string().contains("approved"), "{report}");
    std::fs::remove_file(scratch.root().join(".codex/hooks.json")).unwrap();
    let said = scratch.baton(&["doctor"]);
    assert_eq!(said.code, 1, "lesson 12: {said:?}");
    assert!(said.out.contains("edits and shell of codex are not guarded"), "{said:?}");
}

#[test]
fn a_person_sees_the_files_before_they_are_written() {
    let scratch = Scratch::repository();
    let before = picture(&scratch);
    let Some(no) = scratch.on_terminal(&["init", "--agents", "codex"], "n\n") else { return };
    assert!(no.out.contains("new      .codex/hooks.json: codex hooks"), "{no:?}");
    assert_eq!(no.out.matches("[Y/n]").count(), 1, "{no:?}");
    assert_eq!(before, picture(&scratch));
    let yes = scratch.on_terminal(&["init", "--agents", "codex"], "\n").unwrap();
    assert!(yes.out.contains("/hooks, in codex"), "how to approve: {yes:?}");
    assert!(scratch.root().join(".codex/hooks.json").exists());
}

#[test]
fn a_plugin_is_a_folder_of_its_own() {
    let scratch = Scratch::repository();
    let before = picture(&scratch);
    scratch.baton(&["init", "--plugin", "../plugin"]).ok();
    scratch.baton(&["init", "--plugin", "../plugin"]).ok();
    let plugin = scratch.path("plugin");
    let parse = |file: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(plugin.join(file)).unwrap()).unwrap()
    };
    assert_eq!(parse(".claude-plugin/plugin.json")["name"], "baton");
    assert_eq!(parse(".mcp.json")["mcpServers"]["baton"]["args"][0], "mcp");
    assert!(parse("hooks/hooks.json")["hooks"]["PreToolUse"].is_array());
    assert!(plugin.join("skills/baton/SKILL.md").exists());
    scratch.baton(&["init", "--plugin", "src"]).refused(1);
    assert_eq!(before, picture(&scratch));
    assert!(!scratch.store().exists(), "nothing else is set up");
}

#[test]
fn a_new_tree_gets_uncommitted_wiring_along() {
    let scratch = Scratch::repository();
    wire(&scratch, "claude,opencode").ok();
    let ann = scratch.session("ann");
    let made = scratch.acts(&ann, &["worktree", "new", "one", "--json"]).ok().json();
    let tree = made["path"].as_str().map(Path::new).unwrap().to_owned();
    for file in [".claude/settings.json", ".mcp.json", ".opencode/plugins/baton.js", "AGENTS.md"] {
        assert!(tree.join(file).exists(), "{file}: {made}");
    }
}

/// With such a mark Codex runs no hook of the file, and Gemini does not start.
#[test]
fn a_file_with_a_mark_that_its_client_cannot_read_is_left_and_told() {
    let scratch = Scratch::repository();
    let files = [(".codex/hooks.json", "{\"hooks\":{}}"), (".gemini/settings.json", "{\"ui\":{}}")];
    for (file, text) in files {
        scratch.write(file, &format!("\u{feff}{text}\n"));
    }
    scratch.write(".claude/settings.json", "\u{feff}{\"env\":{}}\n");
    let said = wire(&scratch, "claude,codex,gemini");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("next: put .codex/hooks.json right"), "{said:?}");
    let doctor = scratch.baton(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    for (file, text) in files {
        assert_eq!(read(&scratch, file), format!("\u{feff}{text}\n"));
        let line = format!("{file} cannot be used: it begins with a byte order mark");
        assert!(said.err.contains(&format!("{file}: it begins with a")), "{said:?}");
        assert!(doctor.out.contains(&line), "{doctor:?}");
        scratch.write(file, text);
    }
    assert!(read(&scratch, ".claude/settings.json").contains("hook claude"), "Claude reads it");
    scratch.baton(&["init", "--yes"]).ok();
}
