//! Done needs evidence where `baton.toml` says so; checks; on both stores.

use serde_json::json;

use crate::harness::{Said, Scratch};

const POLICY: &str = "\
[done]
require = [\"commit\", \"check\"]
[[queue.check]]
name = \"test\"
run = [\"grep\", \"-q\", \"good\", \"src/a.rs\"]
timeout = \"1m\"
";

fn done(scratch: &Scratch, who: &str, more: &[&str]) -> Said {
    let words = ["task", "done", "t1", "--report-done", "x", "--report-not-done", "nothing"];
    scratch.acts(who, &[&words, more].concat())
}

fn begin(scratch: &Scratch) -> String {
    let ann = scratch.session("ann");
    scratch.baton(&["task", "add", "work", "--paths", "src/a.rs"]).ok();
    scratch.acts(&ann, &["task", "take", "--claim"]).ok();
    ann
}

fn commit(scratch: &Scratch, text: &str) -> String {
    scratch.write("src/a.rs", text);
    scratch.git(&["commit", "-qam", "work"]);
    scratch.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

#[test]
fn a_task_is_done_only_when_the_commit_and_the_check_are_there() {
    Scratch::on_each_store(POLICY, |scratch| {
        let ann = begin(scratch);
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "policy"]);
        let shown = scratch.baton(&["policy", "show"]).ok().out;
        assert!(shown.contains("done needs commit, check"), "{shown}");
        assert!(shown.contains("check test: grep -q good src/a.rs"), "{shown}");
        scratch.write("src/a.rs", "bad\n");
        let said = done(scratch, &ann, &[]).refused(1);
        assert!(said.err.contains("not committed: src/a.rs"), "{said:?}");
        assert!(said.err.contains("check test was not run"), "{said:?}");
        assert!(said.err.contains("next: git commit"), "{said:?}");

        let failed = scratch.acts(&ann, &["task", "check", "t1", "test"]);
        assert_eq!(failed.code, 1, "{failed:?}");
        assert!(failed.out.contains("failed with 1: check test for t1"), "{failed:?}");
        commit(scratch, "good\n");
        let said = done(scratch, &ann, &["--json"]);
        assert_eq!(said.code, 1);
        let refused = &said.json()["refused"];
        assert_eq!(refused["code"], "missing_evidence");
        assert_eq!(refused["missing"][0]["why"], json!({ "failed": { "exit": 1 } }));
        assert_eq!(refused["next"], "baton task check t1 test");
        let passed = scratch.acts(&ann, &["task", "check", "t1", "--json"]).ok().json();
        assert_eq!(
            (&passed["passed"], &passed["checks"][0]["name"]),
            (&json!(true), &json!("test"))
        );

        scratch.write("README.md", "later\n");
        let said = done(scratch, &ann, &[]).refused(1);
        assert!(said.err.contains("the tree was changed after check test"), "{said:?}");
        scratch.git(&["checkout", "-q", "README.md"]);
        done(scratch, &ann, &["--op-id", "o1"]).ok();
        done(scratch, &ann, &["--op-id", "o1"]).ok();
        let task = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
        let head = scratch.git(&["rev-parse", "HEAD"]);
        assert_eq!(task["proven"]["commit"], head.trim());
        assert_eq!(task["proven"]["required"], json!(["commit", "check"]));
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn committing_what_was_checked_changes_nothing_about_the_check() {
    let scratch = Scratch::with_policy(POLICY);
    let ann = begin(&scratch);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "policy"]);
    scratch.write("src/a.rs", "good\n");
    scratch.acts(&ann, &["task", "check", "t1", "test"]).ok();
    scratch.git(&["commit", "-qam", "work"]);
    done(&scratch, &ann, &[]).ok();
}

#[test]
fn the_commit_must_hold_the_work_of_the_task() {
    let scratch = Scratch::with_policy("[done]\nrequire = [\"commit\"]\n");
    let ann = begin(&scratch);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "policy"]);
    let said = done(&scratch, &ann, &[]).refused(1);
    assert!(said.err.contains("changes none of its paths"), "{said:?}");
    let first = commit(&scratch, "one\n");
    commit(&scratch, "two\n");
    let said = done(&scratch, &ann, &["--commit", &first]).refused(1);
    assert!(said.err.contains("changed after commit"), "{said:?}");
    let said = done(&scratch, &ann, &["--commit", "no-such"]).refused(1);
    assert!(said.err.contains("there is no commit \"no-such\""), "{said:?}");
    let said = done(&scratch, &ann, &["--commit", "--help"]);
    assert_ne!(said.code, 0);
    done(&scratch, &ann, &[]).ok();
}

#[test]
fn landed_and_reviewed_are_asked_of_git_and_of_reviewers() {
    let scratch = Scratch::with_policy("[done]\nrequire = [\"landed\", \"review\"]\n");
    let ann = begin(&scratch);
    scratch.git(&["checkout", "-qb", "side"]);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "policy"]);
    let head = commit(&scratch, "one\n");
    let said = done(&scratch, &ann, &[]).refused(1);
    assert!(said.err.contains(&format!("commit {} is not approved", &head[..12])), "{said:?}");
    assert!(said.err.contains("is not in main"), "{said:?}");
    scratch.git(&["branch", "-f", "main", "side"]);
    let said = done(&scratch, &ann, &[]).refused(1);
    assert!(!said.err.contains("is not in main"), "{said:?}");
}

#[test]
fn checks_of_ones_own_and_what_goes_wrong_with_them() {
    let scratch = Scratch::with_policy("[done]\nrequire = [\"check\"]\n");
    let (ann, bob) = (begin(&scratch), scratch.session("bob"));
    let check =
        |who: &str, words: &[&str]| scratch.acts(who, &[&["task", "check", "t1"], words].concat());
    check(&ann, &[]).refused(2);
    check(&ann, &["test"]).refused(2);
    check(&bob, &["x", "--", "true"]).refused(1);
    check(&ann, &["x", "--token", "1.1", "--", "true"]).refused(3);
    assert_eq!(check(&ann, &["x", "--", "sh", "-c", "exit 7"]).code, 1);
    assert_eq!(check(&ann, &["x", "--", "no-such-program"]).code, 1);
    let task = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
    assert_eq!(task["checks"][0]["exit"], 127);
    let said = check(&ann, &["--json", "--", "echo", "loud"]).ok();
    assert!(said.err.contains("loud") && said.json()["passed"] == true, "{said:?}");
    let said = check(&ann, &["y", "--", "sh", "-c", "echo x > made"]).ok();
    assert!(said.out.contains("the tree was changed while it ran"), "{said:?}");
    let said = done(&scratch, &ann, &[]).refused(1);
    assert!(said.err.contains("y"), "{said:?}");
    check(&ann, &["--", "true"]).ok();
    done(&scratch, &ann, &[]).ok();
    let page = scratch.baton(&["task", "show", "t1"]).ok().out;
    assert!(page.contains("check x failed with 127"), "{page}");
}

#[test]
fn a_check_of_the_policy_is_run_as_it_says_and_ends_in_time() {
    let policy = "[[queue.check]]\nname = \"slow\"\nrun = \"sleep 30\"\ntimeout = \"1s\"\n";
    let scratch = Scratch::with_policy(policy);
    let ann = begin(&scratch);
    let said = scratch.acts(&ann, &["task", "check", "t1", "slow", "--", "true"]).refused(2);
    assert!(said.err.contains("the policy says how it is run"), "{said:?}");
    let begun = std::time::Instant::now();
    let said = scratch.acts(&ann, &["task", "check", "t1", "slow"]);
    assert!(said.code == 1 && said.out.contains("failed with 124"), "{said:?}");
    assert!(begun.elapsed().as_secs() < 20);
    done(&scratch, &ann, &[]).ok();
}

#[test]
fn waves_and_the_critical_path() {
    let scratch = Scratch::workspace();
    for words in [
        &["task", "add", "first"][..],
        &["task", "add", "sec\u{1b}ond \"q\"", "--after", "t1"],
        &["task", "add", "third", "--after", "t2"],
        &["task", "add", "aside"],
    ] {
        scratch.baton(words).ok();
    }
    let page = scratch.baton(&["task", "graph"]).ok().out;
    assert!(page.contains("Wave 1 · 2 tasks, can run now"), "{page}");
    assert!(page.contains("Critical path · 3 steps: t1 → t2 → t3"), "{page}");
    assert!(page.contains("  * t1 \"first\" open") && !page.contains('\u{1b}'), "{page}");
    let graph = scratch.baton(&["task", "graph", "--json"]).ok().json();
    assert_eq!(graph["critical_path"], json!(["t1", "t2", "t3"]));
    assert_eq!(graph["waves"][1][0]["task"], "t2");
    let drawing = scratch.baton(&["task", "graph", "--mermaid"]).ok().out;
    assert!(drawing.starts_with("flowchart LR\n") && drawing.contains("t1 --> t2"), "{drawing}");
    let empty = Scratch::workspace();
    assert_eq!(empty.baton(&["task", "graph"]).ok().out, "no unfinished tasks\n");
}
