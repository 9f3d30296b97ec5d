//! `baton doctor`: the truth about what works here.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::harness::{Said, Scratch, path_without_clients};

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|line| line["check"] == name).unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn a_fresh_workspace_has_no_problem() {
    let scratch = Scratch::workspace();
    let said = scratch.baton(&["doctor"]).ok();
    assert!(!said.out.contains("problem"), "{said:?}");
    let report = scratch.baton(&["doctor", "--json"]).ok().json();
    for name in ["git", "workspace", "filesystem", "privacy", "store", "journal", "clock", "policy"]
    {
        assert_eq!(check(&report, name)["state"], "ok", "{report}");
    }
}

#[test]
fn lesson_12_an_unguarded_door_is_told() {
    let report = Scratch::workspace().baton(&["doctor", "--json"]).ok().json();
    for door in ["edit door", "shell door", "git door"] {
        assert_eq!(check(&report, door)["state"], "warning", "{report}");
        let detail = check(&report, door)["detail"].as_str().unwrap();
        assert!(detail.contains("not guarded yet"), "{detail}");
    }
}

#[test]
fn without_a_workspace_that_is_the_problem() {
    let scratch = Scratch::repository();
    let said = scratch.baton(&["doctor", "--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    let report = said.json();
    assert_eq!(check(&report, "workspace")["state"], "problem");
    assert_eq!(check(&report, "workspace")["next"], "baton init");
}

#[test]
fn lesson_13_a_store_that_cannot_be_read_is_never_fine() {
    let scratch = Scratch::workspace();
    std::fs::write(scratch.store().join("store.db"), "this is no database at all").unwrap();
    let said = scratch.baton(&["doctor", "--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(check(&said.json(), "store")["state"], "problem");
    std::fs::remove_file(scratch.store().join("store.db")).unwrap();
    let said = scratch.baton(&["doctor", "--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(!scratch.store().join("store.db").exists(), "looking makes nothing");
    // A log without its database: making a new one would be refused.
    std::fs::write(scratch.store().join("store.db-wal"), "left").unwrap();
    let (_, _, next) = next_of(&scratch, "store");
    assert!(next.starts_with("baton store restore FILE"), "{next}");
}

#[test]
fn in_a_tree_from_before_the_policy_nothing_has_to_be_made() {
    let scratch = Scratch::repository();
    let old = scratch.path("old");
    scratch.git(&["worktree", "add", "-q", "-b", "old", old.to_str().unwrap()]);
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    let there = ["-C", old.to_str().unwrap()];
    let said = scratch.baton(&[&there[..], &["doctor", "--json"]].concat()).ok();
    let next = check(&said.json(), "policy")["next"].as_str().unwrap().to_owned();
    assert!(next.starts_with("git checkout BRANCH -- baton.toml"), "{next}");
    let words = ["init", "--yes", "--agents", "none"];
    let said = scratch.baton(&[&there[..], &words].concat()).ok();
    assert!(said.out.contains("that policy is in force, as before"), "{said:?}");
}

#[test]
fn a_network_filesystem_is_a_problem() {
    let scratch = Scratch::workspace();
    let said = scratch.command(&["doctor", "--json"]).env("BATON_TEST_FILESYSTEM", "nfs").output();
    let said = Said::from(said.unwrap());
    assert_eq!(said.code, 1, "{said:?}");
    let report = said.json();
    assert!(check(&report, "filesystem")["detail"].as_str().unwrap().contains("nfs"), "{report}");
}

#[test]
fn what_others_could_read_is_told() {
    let scratch = Scratch::workspace();
    std::fs::set_permissions(scratch.store(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = scratch.path("home/.config/baton");
    std::fs::create_dir_all(&settings).unwrap();
    let text = "store = \"postgres://me:geheim@db/baton\"\n";
    std::fs::write(settings.join("config.toml"), text).unwrap();
    let said = scratch.baton(&["doctor", "--json"]).ok();
    assert!(!said.out.contains("geheim"), "{said:?}");
    let report = said.json();
    for name in ["privacy", "settings"] {
        assert_eq!(check(&report, name)["state"], "warning", "{report}");
        assert!(check(&report, name)["next"].as_str().unwrap().starts_with("chmod "), "{report}");
    }
}

#[test]
fn sessions_of_dead_processes_and_a_changed_file_are_told() {
    let scratch = Scratch::workspace();
    let (session, mut process) = scratch.session_with_process("ann");
    scratch.acts(&session, &["claim", "src/"]).ok();
    process.end();
    scratch.write("baton.toml", "[[zone]]\npaths = [\"src/\"]\npolicy = \"off\"\n");
    let report = scratch.baton(&["doctor", "--json"]).ok().json();
    let detail = check(&report, "sessions")["detail"].as_str().unwrap();
    assert!(detail.contains("ann") && detail.contains("1 claims"), "{detail}");
    assert_eq!(check(&report, "policy")["state"], "warning");
    let agent = scratch.command(&["doctor"]).env("CLAUDECODE", "1").output().unwrap();
    assert!(Said::from(agent).ok().out.contains("an agent"));
}

#[test]
fn a_restart_of_the_machine_shows() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let said = scratch.command(&["doctor"]).env("BATON_TEST_BOOT_ID", "another").output().unwrap();
    let said = Said::from(said).ok();
    assert!(said.out.contains("epoch 2 begins with the next"), "{said:?}");
}

/// What Codex 0.166.0 writes for the hooks of a team, before and after a tool.
const BEFORE: &str = "sha256:6ae12000137901c5fdc0a27ff467f484cee8d17fd2ee61a6a488fec51a39d52e";
const AFTER: &str = "sha256:28c957ca35714ac822890132ac8452b503ddf045192b2c06bf8ef0c987508d89";

/// As a user does who types /hooks in Codex.
fn trust_codex(scratch: &Scratch) {
    approve(scratch, (BEFORE, AFTER), "");
}

/// Codex's own file with these marks, and more of what it keeps of a hook.
fn approve(scratch: &Scratch, marks: (&str, &str), more: &str) {
    let config = scratch.path("home/.codex/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let hooks = scratch.root().canonicalize().unwrap().join(".codex/hooks.json");
    let one = |event: &str, mark: &str| {
        let key = format!("{}:{event}:0:0", hooks.display());
        format!("[hooks.state.\"{key}\"]\ntrusted_hash = \"{mark}\"\n{more}")
    };
    let text = format!("{}{}", one("pre_tool_use", marks.0), one("post_tool_use", marks.1));
    std::fs::write(config, text).unwrap();
}

#[test]
fn lesson_14_a_probe_goes_through_every_door() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude,codex,gemini,cursor,opencode"]).ok();
    trust_codex(&scratch);
    let report = scratch.baton(&["doctor", "--json"]).ok().json();
    for client in ["claude", "codex", "gemini", "cursor", "opencode"] {
        let detail = check(&report, &format!("{client} hooks"))["detail"].as_str().unwrap();
        assert!(detail.contains("a probe came through"), "{client}: {detail}");
    }
    let detail = check(&report, "git door")["detail"].as_str().unwrap();
    assert!(detail.contains("a probe came through"), "{detail}");
    // Nobody was bothered by it.
    assert_eq!(scratch.baton(&["session", "list", "--json"]).ok().json()["sessions"], json!([]));
    // Written down, and not to be found: that guards nothing.
    let mut lost = scratch.command(&["doctor", "--json"]);
    lost.env("PATH", path_without_clients());
    let said = Said::from(lost.output().unwrap());
    let report = said.json();
    assert_eq!(said.code, 1, "{report}");
    let problems = report["checks"].as_array().unwrap().iter();
    let problems: Vec<&Value> = problems.filter(|line| line["state"] == "problem").collect();
    let told = |line: &&&Value| line["check"] == "claude hooks";
    let detail = problems.iter().find(told).unwrap()["detail"].as_str().unwrap();
    assert!(detail.contains("did not reach Baton"), "{detail}");
}

/// What `doctor` says of a client's hooks, and its exit code, after a file was changed.
fn hooks_after(scratch: &Scratch, client: &str, file: &str, text: &str) -> (i32, String) {
    scratch.write(file, text);
    let said = scratch.baton(&["doctor", "--json"]);
    let line = check(&said.json(), &format!("{client} hooks")).clone();
    let state = line["state"].as_str().unwrap();
    (said.code, format!("{state}: {}", line["detail"].as_str().unwrap()))
}

#[test]
fn lesson_12_hooks_that_stand_in_a_file_and_guard_nothing_are_a_problem() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude,gemini"]).ok();
    let rules = scratch.baton(&["rules", "check"]).ok();
    assert!(rules.out.contains("the edit door: on"), "{rules:?}");
    let (claude, gemini) = (".claude/settings.json", ".gemini/settings.json");
    let read = |file: &str| std::fs::read_to_string(scratch.root().join(file)).unwrap();
    let (good, other) = (read(claude), read(gemini));
    let mut without: Value = serde_json::from_str(&good).unwrap();
    let before = without["hooks"]["PreToolUse"][0]["matcher"].as_str().unwrap().to_owned();
    without["hooks"].as_object_mut().unwrap().remove("PreToolUse");
    let line = "\"command\": \"command -v";
    let tools = "Edit|Write|MultiEdit|NotebookEdit|Bash|Monitor|Read|TaskUpdate";
    for (text, why) in [
        (good.replacen('{', "{ // mine", 1), "without comments"),
        (good.replacen('{', "{\"disableAllHooks\": true,", 1), "`disableAllHooks` is true"),
        (good.replacen('{', "{\"hooks\": {},", 1), "`hooks` stands in it twice"),
        (without.to_string(), "at PreToolUse nothing calls Baton"),
        (good.replace(tools, "Nothing"), "at PreToolUse the matcher is `Nothing|mcp__baton__claim"),
        (good.replace(line, "\"command\": \"exit 0; command -v"), "the line was changed"),
        (good.replace("\"timeout\": 5", "\"timeout\": 5, \"async\": true"), "`async`"),
    ] {
        let (code, said) = hooks_after(&scratch, "claude", claude, &text);
        assert!(code == 1 && said.starts_with("problem: ") && said.contains(why), "{why}: {said}");
        let rules = scratch.baton(&["rules", "check"]);
        assert!(rules.code == 1 && rules.out.contains("the edit door: off"), "{why}: {rules:?}");
    }
    // What guards all the same is none.
    for text in [
        good.replace(&before, "*").replace(tools, "*"),
        good.replace(tools, &format!("WebFetch|{tools}")),
        good.replace("\"timeout\": 5", "\"timeout\": 60"),
    ] {
        let (code, said) = hooks_after(&scratch, "claude", claude, &text);
        assert!(code == 0 && said.starts_with("warning: "), "{said}");
    }
    scratch.baton(&["init", "--yes"]).ok();
    assert_eq!(read(claude), good, "and init puts all of that right");
    let off = other.replacen('{', "{\"hooksConfig\": {\"enabled\": false},", 1);
    let (code, said) = hooks_after(&scratch, "gemini", gemini, &off);
    assert!(code == 1 && said.contains("`hooksConfig.enabled` is false"), "{said}");
    let said = scratch.baton(&["init", "--yes"]);
    assert_eq!(said.code, 1, "it does not say that it guards: {said:?}");
    assert!(said.err.contains("`hooksConfig.enabled` is false"), "{said:?}");
}

#[test]
fn lesson_12_git_hooks_that_do_not_run_are_a_problem() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let folder = scratch.store().join("hooks");
    let script = folder.join("reference-transaction");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o644)).unwrap();
    for _ in 0..2 {
        let said = scratch.baton(&["doctor"]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.out.contains("not Baton's any more"), "{said:?}");
        let rules = scratch.baton(&["rules", "check"]);
        assert!(rules.out.contains("the git door: off"), "{rules:?}");
        let _ = std::fs::remove_dir_all(&folder);
    }
    scratch.baton(&["init", "--yes"]).ok();
    scratch.baton(&["doctor"]).ok();
}

#[test]
fn lesson_12_hooks_that_codex_was_not_told_to_trust_are_a_problem() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "codex"]).ok();
    let said = scratch.baton(&["doctor"]);
    assert_eq!(said.code, 1, "never started, so never approved: {said:?}");
    let config = scratch.path("home/.codex/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "model = \"x\"\n").unwrap();
    let said = scratch.baton(&["doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("codex skips hooks that you have not approved"), "{said:?}");
    // Of what changed since, of what is switched off and of half of it Codex says nothing either.
    for (marks, more) in [
        (("sha256:x", "sha256:x"), ""),
        ((BEFORE, "sha256:x"), ""),
        ((BEFORE, AFTER), "enabled = false\n"),
    ] {
        approve(&scratch, marks, more);
        let said = scratch.baton(&["doctor"]);
        assert!(said.code == 1 && said.out.contains("codex skips hooks"), "{marks:?}: {said:?}");
    }
    trust_codex(&scratch);
    let said = scratch.baton(&["doctor"]).ok();
    assert!(said.out.contains("and you let it run them"), "{said:?}");
    let file = ".codex/hooks.json";
    let text = std::fs::read_to_string(scratch.root().join(file)).unwrap();
    let (code, said) = hooks_after(&scratch, "codex", file, &text.replacen('{', "{\"x\": 1,", 1));
    assert!(code == 1 && said.contains("takes no file with `x` in it"), "{said}");
    let settings = std::fs::read_to_string(scratch.root().join(".codex/config.toml")).unwrap();
    scratch.write(".codex/config.toml", &format!("[features]\nhooks = false\n{settings}"));
    let (code, said) = hooks_after(&scratch, "codex", file, &text);
    assert!(code == 1 && said.contains("`features.hooks` is false"), "{said}");
    assert_eq!(std::fs::read_to_string(&config).unwrap().matches("trusted_hash").count(), 2);
}

#[test]
fn without_its_store_no_door_is_blamed() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let mut command = scratch.command(&["doctor", "--json"]);
    let said =
        Said::from(command.env("BATON_STORE", "postgres://x@127.0.0.1:1/x").output().unwrap());
    let report = said.json();
    assert_eq!(check(&report, "store")["state"], "problem", "{report}");
    for door in ["claude hooks", "git door"] {
        let line = check(&report, door);
        assert_eq!(line["state"], "problem", "{report}");
        assert!(line["detail"].as_str().unwrap().contains("cannot use its store"), "{line}");
        assert!(line["next"].as_str().unwrap().contains("store right first"), "{line}");
    }
}

/// The one thing that is to be done about a problem with this door.
fn next_of(scratch: &Scratch, name: &str) -> (i32, String, String) {
    let said = scratch.baton(&["doctor", "--json"]);
    let report = said.json();
    let line = check(&report, name);
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    (said.code, text("state"), text("next"))
}

#[test]
fn what_is_to_be_done_about_git_hooks_is_what_helps() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "gemini"]).ok();
    scratch.git(&["config", "--unset", "core.hooksPath"]);
    let said = next_of(&scratch, "git door");
    assert_eq!(said, (1, "problem".to_owned(), "baton init".to_owned()));
    scratch.baton(&["init", "--yes"]).ok();
    scratch.baton(&["doctor"]).ok();
    scratch.git(&["config", "extensions.worktreeConfig", "true"]);
    scratch.git(&["config", "--worktree", "core.hooksPath", "/dev/null"]);
    let (code, _, next) = next_of(&scratch, "git door");
    assert_eq!(code, 1);
    assert_eq!(next, "git config --worktree --unset core.hooksPath, then baton init");
    scratch.git(&["config", "--worktree", "--unset", "core.hooksPath"]);
    scratch.baton(&["doctor"]).ok();
}

#[test]
fn for_one_person_alone_what_git_follows_is_for_the_team() {
    let scratch = Scratch::repository();
    scratch.write(".mcp.json", "{}\n");
    scratch.git(&["add", ".mcp.json"]);
    scratch.git(&["commit", "-qm", "servers"]);
    scratch.baton(&["init", "--yes", "--personal", "--agents", "claude"]);
    let (_, _, next) = next_of(&scratch, "claude mcp");
    assert_eq!(next, "baton init --agents claude --team");
    scratch.baton(&["init", "--yes", "--agents", "claude", "--team"]).ok();
    assert_eq!(next_of(&scratch, "claude mcp").1, "ok");
}

#[test]
fn lesson_12_a_folder_that_gemini_was_told_not_to_trust_is_a_problem() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "gemini"]).ok();
    scratch.baton(&["doctor"]).ok();
    let root = scratch.root().canonicalize().unwrap();
    let home = scratch.path("home/.gemini");
    std::fs::create_dir_all(&home).unwrap();
    let said = serde_json::json!({ root.to_str().unwrap(): "DO_NOT_TRUST" }).to_string();
    std::fs::write(home.join("trustedFolders.json"), said).unwrap();
    let (code, state, next) = next_of(&scratch, "gemini hooks");
    assert_eq!((code, state.as_str()), (1, "problem"));
    assert!(next.contains("trust this folder"), "{next}");
    let off = "{\"security\":{\"folderTrust\":{\"enabled\":false}}}";
    std::fs::write(home.join("settings.json"), off).unwrap();
    scratch.baton(&["doctor"]).ok();
}

#[test]
fn lesson_12_what_codex_was_told_is_a_problem_where_it_cannot_be_read() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "codex"]).ok();
    let home = scratch.path("home/.codex");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("config.toml"), "[hooks\n").unwrap();
    let (code, state, next) = next_of(&scratch, "codex hooks");
    assert_eq!((code, state.as_str()), (1, "problem"));
    assert!(next.contains("config.toml right"), "{next}");
}

#[test]
fn lesson_12_a_client_in_use_without_a_guard_is_a_problem_unless_none_was_wanted() {
    let scratch = Scratch::repository();
    std::fs::create_dir_all(scratch.path("home/.claude")).unwrap();
    scratch.baton(&["init", "--yes"]).ok();
    scratch.baton(&["doctor"]).ok();
    scratch.baton(&["init", "--remove", "--yes"]).ok();
    for door in ["claude hooks", "git door"] {
        let (code, state, next) = next_of(&scratch, door);
        assert_eq!((code, state.as_str()), (1, "problem"), "{door}");
        assert_eq!(next, "baton init --agents claude", "{door}");
    }
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    scratch.baton(&["doctor"]).ok();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    scratch.baton(&["doctor"]).ok();
}

/// One value of another kind, and the client reads nothing of the file.
#[test]
fn lesson_12_a_file_that_its_client_drops_for_one_value_is_a_problem_and_stays() {
    for (client, file, text, key) in [
        ("claude", ".claude/settings.json", r#"{"cleanupPeriodDays":"30"}"#, "cleanupPeriodDays"),
        ("claude", ".claude/settings.json", r#"{"model":5}"#, "model"),
        (
            "claude",
            ".claude/settings.json",
            r#"{"hooks":{"PreToolUse":["x",null,{"hooks":"y"}]}}"#,
            "hooks.PreToolUse[0]",
        ),
        ("codex", ".codex/hooks.json", r#"{"description":5}"#, "description"),
        (
            "codex",
            ".codex/hooks.json",
            r#"{"hooks":{"PostToolUse":[{"matcher":"Bash","hooks":[{"type":"command"}]}]}}"#,
            "hooks.PostToolUse[0].hooks[0].command",
        ),
    ] {
        let scratch = Scratch::repository();
        scratch.write(file, text);
        let said = scratch.baton(&["init", "--yes", "--agents", client]).refused(1);
        assert!(said.err.contains(file) && said.err.contains(&format!("`{key}`")), "{said:?}");
        assert_eq!(std::fs::read_to_string(scratch.root().join(file)).unwrap(), text);
        let (code, said) = hooks_after(&scratch, client, file, text);
        assert!(code == 1 && said.starts_with("problem: "), "{said}");
        assert!(said.contains(file) && said.contains(&format!("`{key}`")), "{said}");
    }
}

#[test]
fn lesson_12_what_codex_was_told_of_a_project_and_its_hooks_counts() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "codex"]).ok();
    trust_codex(&scratch);
    scratch.baton(&["doctor"]).ok();
    let config = scratch.path("home/.codex/config.toml");
    let approved = std::fs::read_to_string(&config).unwrap();
    let root = scratch.root().canonicalize().unwrap();
    let told = format!("[projects.\"{}\"]\ntrust_level = \"untrusted\"\n", root.display());
    std::fs::write(&config, format!("{approved}{told}")).unwrap();
    let said = scratch.baton(&["doctor"]);
    assert!(said.code == 1 && said.out.contains("told not to trust this project"), "{said:?}");
    let (_, state, next) = next_of(&scratch, "codex hooks");
    assert!(
        state == "problem" && next.contains("trust_level") && next.contains("/hooks"),
        "{next}"
    );
    std::fs::write(&config, format!("{approved}{}", told.replace("untrusted", "trusted"))).unwrap();
    scratch.baton(&["doctor"]).ok();
    std::fs::write(&config, format!("[features]\ncodex_hooks = false\n{approved}")).unwrap();
    let said = scratch.baton(&["doctor"]);
    assert!(said.code == 1 && said.out.contains("`features.codex_hooks` is false"), "{said:?}");
    std::fs::write(&config, &approved).unwrap();
    let settings = std::fs::read_to_string(scratch.root().join(".codex/config.toml")).unwrap();
    scratch.write(".codex/config.toml", &format!("{settings}enabled = false\n"));
    let report = scratch.baton(&["doctor", "--json"]).ok().json();
    let server = check(&report, "codex mcp");
    assert_eq!(server["state"], "warning", "{server}");
    assert!(server["detail"].as_str().unwrap().contains("switched off"), "{server}");
}

#[test]
fn in_a_linked_tree_codex_reads_the_main_checkouts_hooks() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "codex"]).ok();
    trust_codex(&scratch);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "wired"]);
    scratch.git(&["worktree", "add", "-q", "../linked"]);
    let linked = scratch.path("linked");
    let doctor = || {
        let words = ["-C", linked.to_str().unwrap(), "doctor", "--json"];
        let said = scratch.baton(&words);
        check(&said.json(), "codex hooks").clone()
    };
    let line = doctor();
    assert_eq!(line["state"], "ok", "{line}");
    std::fs::remove_file(scratch.root().join(".codex/hooks.json")).unwrap();
    let line = doctor();
    assert_eq!(line["state"], "problem", "its own copy is not read: {line}");
    assert!(line["next"].as_str().unwrap().ends_with(" init"), "{line}");
}

#[test]
fn lesson_12_settings_of_clients_in_other_places_and_around_count() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude,gemini"]).ok();
    scratch.baton(&["doctor"]).ok();
    let moved = scratch.path("moved");
    std::fs::create_dir_all(moved.join(".gemini")).unwrap();
    std::fs::write(moved.join("settings.json"), "{\"disableAllHooks\": true}").unwrap();
    let root = scratch.root().canonicalize().unwrap();
    let around = root.parent().unwrap().display().to_string();
    let trust = |text: String| {
        std::fs::write(moved.join(".gemini/trustedFolders.json"), text).unwrap();
    };
    trust(format!("{{{around:?}: \"DO_NOT_TRUST\"}}"));
    let doctor = |name: &str| {
        let mut command = scratch.command(&["doctor", "--json"]);
        command.env("CLAUDE_CONFIG_DIR", &moved).env("GEMINI_CLI_HOME", &moved);
        check(&Said::from(command.output().unwrap()).json(), name).clone()
    };
    let claude = doctor("claude hooks");
    assert!(claude["detail"].as_str().unwrap().contains("`disableAllHooks` is true"), "{claude}");
    let gemini = doctor("gemini hooks");
    assert!(gemini["detail"].as_str().unwrap().contains("told not to trust"), "{gemini}");
    trust(format!("{{{around:?}: \"DO_NOT_TRUST\", {root:?}: \"TRUST_FOLDER\"}}"));
    assert_eq!(doctor("gemini hooks")["state"], "ok", "the nearest counts");
}
