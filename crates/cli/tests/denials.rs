//! What was refused stands in the journal and in `rules report`: who, what, when, against which
//! rule. Who only asks leaves nothing.

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::hooks::{Agent, denied, hook_with};
use crate::reviews::person_token;

const RULES: &str = "\
1. **Verify.** Run it.
   Enforced by: `baton task done`.
2. **Claim first.** One writer.
   Enforced by: the edit, shell and git doors.
3. **Sync.** Ship what has landed.
   Enforced by: `baton deploy`.
4. **Keep to your part.** All of it.
   Enforced by: roles.
5. **Zones.** As they are.
   Enforced by: zones.
";

const POLICY: &str = "\
[queue]
guard = \"off\"
[done]
require = [\"check\"]
[[queue.check]]
name = \"test\"
run = [\"true\"]
[[zone]]
paths = [\"db/\"]
policy = \"require\"
[[zone]]
paths = [\"log/\"]
policy = \"append\"
[deploy.prod]
run = [\"true\"]
";

fn set_up(scratch: &Scratch) {
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    scratch.write(".baton/rules.md", RULES);
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "rules"]);
}

fn journal(scratch: &Scratch) -> String {
    scratch.baton(&["journal", "--kind", "deed_refused"]).ok().out
}

fn report(scratch: &Scratch) -> Value {
    scratch.baton(&["rules", "report", "--json"]).ok().json()
}

/// What is said against a rule, by its number.
fn against(scratch: &Scratch, rule: usize) -> Vec<String> {
    let report = report(scratch);
    let rule = &report["rules"][rule - 1];
    let evidence = rule["evidence"].as_array().unwrap();
    assert_eq!(rule["count"], evidence.len(), "{rule}");
    let text = |one: &Value| {
        let (who, what) = (one["who"].as_str().unwrap(), one["what"].as_str().unwrap());
        assert!(one["position"].is_string() && one["at"].is_string(), "{one}");
        format!("{who} {what}")
    };
    evidence.iter().map(text).collect()
}

/// Git in the shell of a session.
fn git(scratch: &Scratch, session: &str, words: &[&str]) -> Said {
    let mut command = std::process::Command::new("git");
    scratch.clean(&mut command);
    command.current_dir(scratch.root()).env("BATON_SESSION", session);
    command.args(words).output().unwrap().into()
}

#[test]
fn who_is_turned_away_is_told_apart_and_who_asks_leaves_nothing() {
    Scratch::on_each_store(POLICY, |scratch| {
        set_up(scratch);
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
        scratch.acts(&bob, &["claim", "src/a.rs"]).refused(1);
        for who in [&bob, &ann] {
            scratch.acts(who, &["check", "src/a.rs", "db/x"]);
        }
        assert_eq!(journal(scratch), "", "a question is no deed");
        let agent = Agent { scratch, client: "claude", id: "one" };
        assert_eq!(denied(&agent.write("src/free.rs", "x")), None);
        assert_eq!(denied(&agent.write("src/free.rs", "x")), None);
        assert_eq!(journal(scratch), "");
        for _ in 0..4 {
            assert!(denied(&agent.write("src/a.rs", "x")).is_some());
        }
        let told = journal(scratch);
        assert_eq!(told.lines().count(), 1, "once, however often it is tried: {told}");
        assert!(told.contains("was refused an edit of src/a.rs, which ann held"), "{told}");
        assert!(denied(&agent.shell("before", "echo x > src/a.rs")).is_some());
        assert_eq!(journal(scratch).lines().count(), 2);
        let report = report(scratch);
        let rule = &report["rules"][1];
        assert_eq!((&rule["count"], &rule["evidence"]), (&json!(0), &json!([])), "{rule}");
        let away = &rule["turned_away"][0];
        assert_eq!((&away["count"], &away["last"]["refused"]), (&json!(2), &json!(true)), "{rule}");
        let said = scratch.baton(&["rules", "report"]).ok().out;
        assert!(said.contains("nothing in the journal speaks against a rule"), "{said}");
        assert!(said.contains("was turned away 2 times; "), "{said}");
        let last = "it was refused a shell command that writes src/a.rs, which ann held";
        assert!(said.contains(last), "{said}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn what_is_refused_again_later_is_written_down_again() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let ann = scratch.session("ann");
    scratch.acts(&ann, &["claim", "src/a.rs", "--ttl", "8h"]).ok();
    let file = scratch.root().join("src/a.rs").display().to_string();
    let payload = json!({ "hook_event_name": "PreToolUse", "tool_name": "Write", "session_id": "s",
        "cwd": scratch.root(), "tool_input": { "file_path": file, "content": "x" } });
    let after = |minutes: u64| {
        let set = [("BATON_TEST_CLOCK_ADVANCE_MS", &*(minutes * 60_000).to_string())];
        let said = hook_with(&scratch, "claude", payload.to_string().as_bytes(), &set);
        assert!(denied(&said).is_some(), "{said:?}");
        journal(&scratch).lines().count()
    };
    assert_eq!([after(0), after(5), after(9), after(11), after(12)], [1, 1, 1, 2, 2]);
}

#[test]
fn what_goes_against_a_rule_is_counted_with_who_and_what() {
    Scratch::on_each_store(POLICY, |scratch| {
        set_up(scratch);
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        let agent = Agent { scratch, client: "claude", id: "one" };
        // Zones.
        assert!(denied(&agent.write("db/x.sql", "x")).is_some());
        scratch.write("log/all.txt", "one\n");
        assert!(denied(&agent.write("log/all.txt", "two\n")).is_some());
        let zones = against(scratch, 5);
        assert_eq!(zones.len(), 2, "{zones:?}");
        assert!(zones[0].contains("an edit of db/x.sql, where a claim comes first"), "{zones:?}");
        assert!(zones[1].contains("log/all.txt, where lines are only added"), "{zones:?}");
        // The doors: a verb that endangers others, git's own folder, and commits of what ann has.
        assert!(denied(&agent.shell("before", "git push --force # SECRET")).is_some());
        assert!(denied(&agent.write(".git/config", "x")).is_some());
        scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
        scratch.write("src/a.rs", "fn b() {}\n");
        assert_eq!(git(scratch, &bob, &["commit", "-qam", "mine"]).code, 1);
        assert_ne!(git(scratch, &bob, &["commit", "-qam", "mine", "--no-verify"]).code, 0);
        scratch.acts(&bob, &["commit", "src/a.rs", "-m", "mine"]).refused(1);
        let doors = against(scratch, 2);
        assert_eq!(doors.len(), 4, "{doors:?}");
        assert!(doors[0].contains("db/x.sql"), "{doors:?}");
        assert!(doors[1].contains("a shell command with git push --force"), "{doors:?}");
        assert!(doors[2].contains(".git/config, which belongs to git"), "{doors:?}");
        assert_eq!(doors[3], "bob was refused a commit of src/a.rs, which ann held");
        assert!(!journal(scratch).contains("SECRET"));
        let report = report(scratch);
        assert_eq!(report["rules"][1]["refused"], 4, "{report}");
        assert_eq!(report["rules"][1]["by"][1]["who"], "bob", "{report}");
        // Done.
        scratch.acts(&ann, &["task", "add", "Thing"]).ok();
        scratch.acts(&ann, &["task", "take"]).ok();
        let done = ["task", "done", "t1", "--report-done", "it", "--report-not-done", "no"];
        for _ in 0..2 {
            scratch.acts(&ann, &done).refused(1);
        }
        let proof = ["ann was refused \"done\" for t1: what it must show is missing"];
        assert_eq!(against(scratch, 1), proof);
        let said = scratch.baton(&["rules", "report"]).ok().out;
        assert!(said.contains("rule 1. Verify: 1 finding, refused\n"), "{said}");
        assert!(said.contains("ago, ann: was refused \"done\" for t1"), "{said}");
        assert!(said.contains("rule 2. Claim first: 4 findings, refused\n"), "{said}");
        assert!(said.contains(" 3, bob 1\n"), "{said}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn what_a_role_does_not_do_is_counted_at_every_door() {
    Scratch::on_each_store(POLICY, |scratch| {
        set_up(scratch);
        let start = |more: &[&str]| {
            let words = [&["session", "start", "--role", "verify", "--json"], more].concat();
            scratch.baton(&words).ok().json()["credential"].as_str().unwrap().to_owned()
        };
        let vera = start(&["--name", "vera"]);
        start(&["--name", "agent", "--client", "claude", "--client-session", "one"]);
        let agent = Agent { scratch, client: "claude", id: "one" };
        assert!(denied(&agent.write("src/a.rs", "x")).is_some());
        scratch.acts(&vera, &["claim", "src/a.rs"]).refused(1);
        scratch.write("src/a.rs", "fn b() {}\n");
        scratch.acts(&vera, &["commit", "src/a.rs", "-m", "x"]).refused(1);
        scratch.acts(&vera, &["deploy", "prod"]).refused(1);
        assert_eq!(git(scratch, &vera, &["commit", "-qam", "x"]).code, 1);
        scratch.git(&["checkout", "-qb", "side"]);
        scratch.write("b", "b");
        scratch.git(&["add", "b"]);
        scratch.git(&["commit", "-qm", "b", "b"]);
        scratch.acts(&vera, &["land"]).refused(1);
        // A command that did not say what it writes.
        scratch.write("make.sh", "echo 'fn c() {}' > src/a.rs\n");
        assert_eq!(denied(&agent.shell("before", "bash make.sh")), None);
        // The clock of file times runs in steps, and nobody is accused of what may be older.
        std::thread::sleep(std::time::Duration::from_millis(60));
        scratch.write("src/a.rs", "fn c() {}\n");
        agent.shell("after", "bash make.sh");
        let role = |deed: &str| format!("was refused {deed}: the role verify does not do that");
        let found = against(scratch, 4);
        assert_eq!(
            found,
            [
                format!("agent {}", role("an edit of src/a.rs")),
                format!("vera {}", role("a claim on src/a.rs")),
                format!("vera {}", role("a commit")),
                format!("vera {}", role("a deploy")),
                format!("vera {}", role("a landing")),
                "agent wrote src/a.rs by its shell: the role verify does not do that".to_owned(),
            ]
        );
        assert_eq!(report(scratch)["rules"][3]["refused"], 5);
        // A rule that names nothing of it does not hide it.
        scratch.git(&["checkout", "-qf", "main"]);
        scratch.write(".baton/rules.md", "1. **Be kind.** x\n   Enforced by: advice.\n");
        scratch.git(&["commit", "-qam", "other rules", "--no-verify"]);
        let said = scratch.baton(&["rules", "report"]).ok().out;
        assert!(said.contains("what no rule names: 6 findings, 5 of them refused\n"), "{said}");
        assert!(said.contains("\n  vera 4, agent 2\n"), "{said}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_deploy_that_lacks_what_has_landed_is_counted() {
    Scratch::on_each_store(POLICY, |scratch| {
        set_up(scratch);
        let person = person_token(scratch);
        let mut trust = scratch.command(&["trust", "--yes"]);
        Said::from(trust.env("BATON_PERSON_TOKEN_FILE", &person).output().unwrap()).ok();
        let ann = scratch.session("ann");
        let old = scratch.git(&["rev-parse", "HEAD"]).trim().to_owned();
        scratch.write("new", "x");
        scratch.git(&["add", "new"]);
        scratch.git(&["commit", "-qm", "new"]);
        for _ in 0..2 {
            let said = scratch.acts(&ann, &["deploy", "prod", "--commit", &old]).refused(1);
            assert!(said.err.contains("lacks 1 commit"), "{said:?}");
        }
        let expected = ["ann was refused a deploy to prod: the commit lacks what has landed"];
        assert_eq!(against(scratch, 3), expected);
        scratch.acts(&ann, &["deploy", "prod"]).ok();
        assert_eq!(against(scratch, 3).len(), 1);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn an_answer_does_not_depend_on_whether_it_can_be_written_down() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    let agent = Agent { scratch: &scratch, client: "claude", id: "one" };
    assert_eq!(denied(&agent.write("src/b.rs", "x")), None);
    // Somebody has the store for the whole time.
    let database = rusqlite::Connection::open(scratch.store().join("store.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said = agent.write("src/a.rs", "x");
    assert!(denied(&said).is_some_and(|why| why.contains("is held by ann")), "{said:?}");
    database.execute_batch("ROLLBACK").unwrap();
    assert_eq!(journal(&scratch), "");
    assert!(denied(&agent.write("src/a.rs", "x")).is_some());
    assert_eq!(journal(&scratch).lines().count(), 1);
}

/// Gemini edits another file than its model names: it drops an `@`, and looks for what is missing.
#[test]
fn a_path_is_judged_as_gemini_takes_it() {
    let scratch = Scratch::workspace();
    scratch.write("@kept/a.rs", "x\n");
    let holder = Agent { scratch: &scratch, client: "claude", id: "ann" };
    for file in ["src/a.rs", "shared.txt"] {
        assert_eq!(denied(&holder.write(file, "x\n")), None);
        scratch.write(file, "x\n");
    }
    let gemini = Agent { scratch: &scratch, client: "gemini", id: "bob" };
    for path in ["@shared.txt", "@/shared.txt", "@//shared.txt", "shared.txt\0", "@src/a.rs"] {
        let input = json!({ "file_path": path, "content": "y\n" });
        let why = denied(&gemini.tool("before", "write_file", &input)).expect(path);
        assert!(why.contains("is held by"), "{path:?}: {why}");
    }
    let input = |path: &str| json!({ "file_path": path, "old_string": "x", "new_string": "y" });
    let why = denied(&gemini.tool("before", "replace", &input("a.rs"))).expect("looked for");
    assert!(why.contains("there is no a.rs in") && why.contains("whole path"), "{why}");
    let why = denied(&gemini.tool("before", "replace", &input("src/a.rs"))).expect("held");
    assert!(why.contains("is held by"), "{why}");
    assert_eq!(denied(&gemini.tool("before", "replace", &input("@kept/a.rs"))), None);
    let new = json!({ "file_path": "new.rs", "content": "y\n" });
    assert_eq!(denied(&gemini.tool("before", "write_file", &new)), None);
}
