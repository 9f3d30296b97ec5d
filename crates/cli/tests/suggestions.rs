//! Suggestions through the binary, on both stores.

use serde_json::json;

use crate::harness::Scratch;

const PATCH: &str =
    "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-fn a() {}\n+fn a() -> u8 { 1 }\n";

fn suggest(scratch: &Scratch, who: &str) -> String {
    scratch.write("../fix.patch", PATCH);
    let words = ["suggest", "src/a.rs", "--patch", "../fix.patch", "--why", "it counts", "--json"];
    let told = scratch.acts(who, &words).ok().json();
    told["suggestion"].as_str().unwrap().to_owned()
}

fn text(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.root().join("src/a.rs")).unwrap()
}

#[test]
fn the_holder_is_told_and_applies_it() {
    Scratch::on_each_store("", |scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        scratch.acts(&ann, &["claim", "src/"]).ok();
        let id = suggest(scratch, &bob);
        let said = scratch.acts(&ann, &["renew"]).ok().out;
        assert!(said.contains("bob suggests a change to src/a.rs"), "{said}");
        let list = scratch.acts(&ann, &["suggestions"]).ok().out;
        assert!(list.contains(&id) && list.contains("+1 -1"), "{list}");
        let page = scratch.baton(&["suggestion", "show", &id]).ok().out;
        assert!(page.contains("| +fn a() -> u8 { 1 }"), "{page}");
        let said = scratch.acts(&bob, &["suggestion", "apply", &id]).refused(1);
        assert!(said.err.contains("ann holds it"), "{said:?}");
        assert_eq!(text(scratch), "fn a() {}\n");
        let apply = ["suggestion", "apply", &id, "--op-id", "o1"];
        scratch.acts(&ann, &apply).ok();
        scratch.acts(&ann, &apply).ok();
        assert_eq!(text(scratch), "fn a() -> u8 { 1 }\n");
        scratch.acts(&ann, &["suggestion", "apply", &id]).refused(1);
        let told = scratch.acts(&bob, &["claim", "README.md"]).ok().out;
        assert!(told.contains(&format!("ann applied {id} for src/a.rs")), "{told}");
        scratch.acts(&ann, &["release", "src/"]).ok();
        let tasks = scratch.baton(&["task", "list", "--json"]).ok().json();
        assert_eq!(tasks["tasks"], json!([]));
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn unanswered_it_becomes_a_task_when_the_claim_ends() {
    Scratch::on_each_store("", |scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
        let id = suggest(scratch, &bob);
        scratch.acts(&ann, &["release", "src/a.rs"]).ok();
        let task = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
        assert_eq!(task["title"], "look at bob's suggestion for src/a.rs");
        assert_eq!(task["paths"], json!(["src/a.rs"]));
        assert!(task["body"].as_str().unwrap().contains(&id), "{task}");
        let all = scratch.baton(&["suggestions", "--all", "--json"]).ok().json();
        assert_eq!(all["suggestions"][0]["state"], "filed");
        scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
        scratch.acts(&bob, &["suggestion", "apply", &id]).ok();
        assert_eq!(text(scratch), "fn a() -> u8 { 1 }\n");
        let journal = scratch.baton(&["journal"]).ok().out;
        assert!(journal.contains(&format!("nobody answered {id}: it became t1")), "{journal}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn the_end_of_a_session_files_it_too() {
    let scratch = Scratch::workspace();
    let (ann, process) = scratch.session_with_process("ann");
    let bob = scratch.session("bob");
    scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    suggest(&scratch, &bob);
    drop(process);
    scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
    let tasks = scratch.baton(&["task", "list", "--json"]).ok().json();
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1, "{tasks}");
}

#[test]
fn declining_says_why_and_what_does_not_fit_changes_nothing() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    let id = suggest(&scratch, &bob);
    scratch.write("src/a.rs", "other\n");
    let said = scratch.acts(&ann, &["suggestion", "apply", &id]).refused(1);
    assert!(said.err.contains("does not fit src/a.rs"), "{said:?}");
    assert_eq!(text(&scratch), "other\n");
    scratch.acts(&ann, &["suggestion", "decline", &id]).refused(2);
    scratch.acts(&ann, &["suggestion", "decline", &id, "--why", "too late"]).ok();
    let told = scratch.acts(&bob, &["claim", "README.md"]).ok().out;
    assert!(told.contains("ann declined") && told.contains("too late"), "{told}");
}

#[test]
fn what_is_in_the_tree_already_is_only_kept() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    let id = suggest(&scratch, &bob);
    scratch.write("src/a.rs", "fn a() -> u8 { 1 }\n");
    scratch.acts(&ann, &["suggestion", "apply", &id]).ok();
    assert_eq!(text(&scratch), "fn a() -> u8 { 1 }\n");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    let with = |path: &str, patch: &str| {
        scratch.write("../fix.patch", patch);
        let words = ["suggest", path, "--patch", "../fix.patch", "--why", "x"];
        scratch.acts(&bob, &words)
    };
    let said = with("src/a.rs", PATCH).refused(1);
    assert!(said.err.contains("next: baton claim src/a.rs"), "{said:?}");
    scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    let said = with("src/a.rs", &PATCH.replace("@@ -1", "@@ x")).refused(2);
    assert!(said.err.contains("line 3"), "{said:?}");
    let said = with("src/a.rs", &PATCH.replace("src/a.rs", "src/b.rs")).refused(2);
    assert!(said.err.contains("src/b.rs"), "{said:?}");
    with("src/a.rs", &PATCH.replace("a/src/a.rs", "a/../src/a.rs")).refused(2);
    with("src/a.rs", "").refused(2);
    with("src/a.rs", &format!("{PATCH}{}", "x".repeat(256 * 1024))).refused(2);
    with("src/", PATCH).refused(2);
    scratch.acts(&bob, &["suggest", "src/a.rs", "--patch", "none", "--why", "x"]).refused(4);
    scratch
        .acts(&bob, &["suggest", "src/a.rs", "--patch", "../fix.patch", "--why", " "])
        .refused(2);
    scratch.acts(&ann, &["suggestion", "apply", "p0"]).refused(1);
    scratch.baton(&["suggestions"]).refused(1);
}
