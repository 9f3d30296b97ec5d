//! Review and bounded retries through the binary, on both stores.

use serde_json::json;

use crate::harness::Scratch;
use crate::tasks::on_both_stores;

/// A commit that changes this file, in full.
fn commit(scratch: &Scratch, file: &str, text: &str) -> String {
    scratch.write(file, text);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", text]);
    scratch.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

/// Whoever shows this file is a person.
pub(crate) fn person_token(scratch: &Scratch) -> String {
    let file = scratch.path("home/person").to_str().unwrap().to_owned();
    scratch.baton(&["person", "token", &file]).ok();
    file
}

#[test]
fn a_task_is_rejected_mended_approved_and_done() {
    on_both_stores(|scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        scratch.baton(&["task", "add", "Write the parser", "--paths", "src/"]).ok();
        scratch.baton(&["task", "add", "Use the parser", "--after", "t1"]).ok();
        scratch.acts(&ann, &["task", "take"]).ok();
        let first = commit(scratch, "src/parser.rs", "one");
        let submit = ["task", "submit", "t1", "--commit", &first[..8], "--json"];
        assert_eq!(scratch.acts(&ann, &submit).ok().json()["state"], "review");
        let own = scratch.acts(&ann, &["task", "approve", "t1", "--json"]).refused(1);
        assert_eq!(own.json()["refused"]["code"], "own_work");
        let taken = scratch.acts(&bob, &["task", "take", "--json"]).ok().json();
        assert_eq!(taken["review"]["commit"], json!(first));
        let reject = ["task", "reject", "t1", "--feedback", "tests are \u{202e}missing", "--json"];
        let judged = scratch.acts(&bob, &reject).ok().json();
        assert_eq!((&judged["state"], &judged["attempt"]), (&json!("active"), &json!(2)));
        let second = commit(scratch, "src/parser.rs", "two");
        let again = scratch.acts(&ann, &["task", "submit", "t1", "--commit", "HEAD"]).ok();
        assert!(
            again.out.contains("news: t1 \"Write the parser\" is rejected by bob"),
            "{again:?}"
        );
        assert!(again.out.contains("\\u{202e}missing"), "escaped: {again:?}");
        let stale = ["task", "approve", "t1", "--commit", &first, "--json"];
        let stale = scratch.acts(&bob, &stale).refused(3);
        assert_eq!(stale.json()["refused"]["current"], json!(second));
        let approve = ["task", "approve", "t1", "--commit", &second[..12], "--why", "good"];
        let approved = scratch.acts(&bob, &approve).ok();
        assert!(approved.out.contains("now done") && approved.out.contains("t2"), "{approved:?}");
        let shown = scratch.baton(&["task", "show", "t1"]).ok();
        assert!(shown.out.contains("bob approved: good"), "{shown:?}");
        assert!(shown.out.contains("Feedback of bob on attempt 1"), "{shown:?}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_further_edit_withdraws_the_submission() {
    on_both_stores(|scratch| {
        let ann = scratch.session("ann");
        // No paths are named: what the commit changed is frozen.
        scratch.baton(&["task", "add", "Write the parser"]).ok();
        scratch.acts(&ann, &["task", "take"]).ok();
        let sha = commit(scratch, "src/parser.rs", "one");
        scratch.acts(&ann, &["task", "submit", "t1", "--commit", &sha]).ok();
        scratch.acts(&ann, &["claim", "README.md"]).ok();
        let state = || scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
        assert_eq!(state()["state"], "review");
        let claimed = scratch.acts(&ann, &["claim", "src/parser.rs"]).ok();
        assert!(claimed.out.contains("is withdrawn from review"), "{claimed:?}");
        let shown = state();
        assert_eq!((&shown["state"], &shown["owner"]["name"]), (&json!("active"), &json!("ann")));
        assert_eq!(shown["attempt"], 1);
        // And by hand.
        scratch.acts(&ann, &["task", "submit", "t1", "--commit", &sha]).ok();
        scratch.acts(&ann, &["task", "withdraw", "t1", "--why", "one more thing"]).ok();
        assert_eq!(state()["state"], "active");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn reviewers_who_disagree_wait_for_a_person() {
    on_both_stores(|scratch| {
        let [ann, bob, cid] = ["ann", "bob", "cid"].map(|name| scratch.session(name));
        let person = person_token(scratch);
        scratch.baton(&["task", "add", "Write the parser"]).ok();
        scratch.baton(&["task", "add", "Use the parser", "--after", "t1"]).ok();
        scratch.acts(&ann, &["task", "take"]).ok();
        let sha = commit(scratch, "src/parser.rs", "one");
        scratch.acts(&ann, &["task", "submit", "t1", "--commit", &sha]).ok();
        scratch.acts(&bob, &["task", "approve", "t1", "--why", "reads well"]).ok();
        assert_eq!(scratch.baton(&["task", "show", "t2", "--json"]).json()["state"], "open");
        let reject = ["task", "reject", "t1", "--feedback", "no tests at all", "--json"];
        let judged = scratch.acts(&cid, &reject).ok().json();
        assert_eq!((&judged["state"], &judged["gate"]), (&json!("waiting"), &json!("g1")));
        let held = scratch.baton(&["task", "show", "t2", "--json"]).json();
        assert_eq!(held["state"], "blocked", "whoever waits is held again");
        let shown = scratch.baton(&["gate", "show", "g1"]).ok();
        for said in ["reads well", "no tests at all", "--option 'approve|reject'"] {
            assert!(shown.out.contains(said), "{said}: {shown:?}");
        }
        let decide = ["gate", "approve", "g1", "--option", "reject", "--why", "tests first"];
        scratch.acts(&bob, &decide).refused(1);
        let mut words = decide.to_vec();
        words.extend(["--person-token", &person]);
        let decided = scratch.baton(&words).ok();
        assert!(decided.out.contains("t1 is active now"), "{decided:?}");
        let shown = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
        assert_eq!((&shown["owner"]["name"], &shown["attempt"]), (&json!("ann"), &json!(2)));
        assert_eq!(shown["feedback"][1]["text"], "tests first");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn attempts_are_bounded_and_only_a_person_revives() {
    on_both_stores(|scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        let person = person_token(scratch);
        scratch.baton(&["task", "add", "Hard", "--max-attempts", "2"]).ok();
        scratch.acts(&ann, &["task", "take"]).ok();
        for (number, feedback) in ["the tests are missing", "a name is wrong"].iter().enumerate() {
            let sha = commit(scratch, "src/hard.rs", &format!("try {number}"));
            scratch.acts(&ann, &["task", "submit", "t1", "--commit", &sha]).ok();
            scratch.acts(&bob, &["task", "reject", "t1", "--feedback", feedback]).ok();
        }
        let nothing = scratch.acts(&ann, &["task", "take"]).refused(1);
        assert!(nothing.err.contains("1 waiting for a person"), "{nothing:?}");
        let dead = scratch.baton(&["task", "dead", "--json"]).ok().json();
        assert_eq!(dead["tasks"][0]["task"], "t1");
        let shown = scratch.baton(&["gate", "show", "g1"]).ok();
        assert!(shown.out.contains("2 of 2 attempts"), "{shown:?}");
        assert!(shown.out.contains("the tests are missing"), "with the history: {shown:?}");
        let more = ["task", "update", "t1", "--max-attempts", "9"];
        scratch.acts(&ann, &more).refused(1);
        scratch.acts(&ann, &["task", "cancel", "t1"]).refused(1);
        let revive = ["task", "revive", "t1", "--attempts", "1", "--why", "once more"];
        let refused = scratch.acts(&ann, &revive).refused(1);
        assert!(refused.err.contains("for a person"), "{refused:?}");
        let mut words = revive.to_vec();
        words.extend(["--person-token", &person]);
        scratch.baton(&words).ok();
        let gates = scratch.baton(&["gate", "list", "--json"]).ok().json();
        assert_eq!(gates["gates"], json!([]), "the question is moot");
        let taken = scratch.acts(&ann, &["task", "take", "--json"]).ok().json();
        assert_eq!((&taken["attempt"], &taken["max_attempts"]), (&json!(1), &json!(1)));
        assert_eq!(taken["feedback"].as_array().unwrap().len(), 2);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn the_policy_says_what_becomes_of_exhausted_tasks() {
    let scratch = Scratch::with_policy("[tasks]\non_exhausted = \"abort\"\n");
    let ann = scratch.session("ann");
    scratch.baton(&["task", "add", "Hard", "--max-attempts", "1"]).ok();
    scratch.acts(&ann, &["task", "take"]).ok();
    scratch.acts(&ann, &["task", "fail", "t1", "--why", "it broke"]).ok();
    let shown = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
    assert_eq!(shown["state"], "failed");
    let policy = scratch.baton(&["policy", "show"]).ok();
    assert!(policy.out.contains("tasks without attempts: abort"), "{policy:?}");
    // Loosening it is a change of the policy: no agent's.
    scratch.write("baton.toml", "[tasks]\non_exhausted = \"role:ann\"\n");
    let drift = scratch.baton(&["policy", "show"]).ok();
    assert!(drift.out.contains("tasks without attempts: role:ann"), "{drift:?}");
    scratch.acts(&ann, &["policy", "approve", "--yes"]).refused(1);
}

#[test]
fn bad_input_of_reviews() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    scratch.baton(&["task", "add", "First"]).ok();
    scratch.acts(&ann, &["task", "take"]).ok();
    let refusals: [(&[&str], i32, &str); 10] = [
        (&["task", "submit", "t1", "--commit", "no-such"], 1, "there is no commit"),
        (&["task", "submit", "t1", "--commit=--output=x"], 1, "there is no commit"),
        (&["task", "submit", "t1", "--commit", ""], 1, "there is no commit"),
        (&["task", "submit", "t9", "--commit", "HEAD"], 1, "there is no task"),
        (&["task", "submit", "t1"], 2, "--commit"),
        (&["task", "submit", "t1", "--commit", "HEAD", "--to", "role:"], 2, "says nothing"),
        (&["task", "submit", "t1", "--commit", "HEAD", "--to", "ghost"], 1, "no session"),
        (&["task", "approve", "t1"], 1, "cannot be approved: it is active"),
        (&["task", "withdraw", "t1"], 1, "cannot be withdrawn"),
        (&["task", "reject", "t1"], 2, "--feedback"),
    ];
    for (words, code, said) in refusals {
        let answer = scratch.acts(&ann, words);
        assert_eq!(answer.code, code, "{words:?}: {answer:?}");
        assert!(answer.err.contains(said), "{words:?}: {answer:?}");
    }
    scratch.acts(&ann, &["task", "submit", "t1", "--commit", "HEAD"]).ok();
    let long = "x".repeat(20_000);
    scratch.acts(&bob, &["task", "reject", "t1", "--feedback", &long]).refused(2);
    scratch.acts(&bob, &["task", "reject", "t1", "--feedback", " "]).refused(2);
    let foreign = scratch.acts(&bob, &["task", "withdraw", "t1"]).refused(1);
    assert!(foreign.err.contains("is ann's"), "{foreign:?}");
    let done = scratch
        .acts(&ann, &["task", "done", "t1", "--report-done", "x", "--report-not-done", "nothing"]);
    assert!(done.err.contains("cannot be done: it is review"), "{done:?}");
    assert_eq!(scratch.acts(&bob, &["task", "revive", "t1", "--why", "x"]).code, 1);
    // Asking twice under one operation id judges once.
    let words = ["task", "reject", "t1", "--feedback", "no", "--op-id", "one", "--json"];
    let first = scratch.acts(&bob, &words).ok().json();
    assert_eq!(first, scratch.acts(&bob, &words).ok().json());
}
