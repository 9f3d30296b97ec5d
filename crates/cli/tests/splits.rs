//! Tasks in parts through the binary, on both stores.

use serde_json::json;

use crate::harness::{Said, Scratch};

fn done(scratch: &Scratch, who: &str, task: &str, result: &str) -> Said {
    let words = ["--report-done", "all", "--report-not-done", "nothing", "--result", result];
    scratch.acts(who, &["task", "take", task]).ok();
    scratch.acts(who, &[&["task", "done", task, "--json"], &words[..]].concat()).ok()
}

fn breaks(scratch: &Scratch, who: &str, task: &str) {
    scratch.acts(who, &["task", "take", task]).ok();
    scratch.acts(who, &["task", "fail", task, "--why", "it \u{1b}[2J broke"]).ok();
}

fn state(scratch: &Scratch, task: &str) -> String {
    let shown = scratch.baton(&["task", "show", task, "--json"]).ok().json();
    shown["state"].as_str().unwrap().to_owned()
}

#[test]
fn parts_are_done_by_others_and_their_results_come_together_in_order() {
    Scratch::on_each_store("", |scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        scratch.baton(&["task", "add", "the whole", "--max-attempts", "1"]).ok();
        scratch.acts(&ann, &["task", "take"]).ok();
        let split = ["task", "split", "t1", "--each", "parse", "check", "print"];
        let more = ["--then", "put together", "--interface", "ast", "--op-id", "o1", "--json"];
        let words = [&split[..], &more[..]].concat();
        let divided = scratch.acts(&ann, &words).ok().json();
        let again = scratch.acts(&ann, &words).ok().json();
        assert_eq!(divided, again, "the same operation is the same split");
        assert_eq!(divided["state"], "blocked");
        assert_eq!(divided["parts"][2]["task"], "t4");
        assert_eq!(divided["then"]["task"], "t5");
        let part = scratch.baton(&["task", "show", "t3", "--json"]).ok().json();
        assert_eq!((&part["parent"], &part["interface"]), (&json!("t1"), &json!("ast")));

        done(scratch, &bob, "t4", r#"{"n":3}"#);
        breaks(scratch, &bob, "t3");
        assert_eq!(state(scratch, "t5"), "blocked");
        let shown = scratch.baton(&["task", "blocked"]).ok().out;
        assert!(
            shown.contains("waits for its parts: 2 of 3 parts have ended (1 failed)"),
            "{shown}"
        );
        let last = done(scratch, &bob, "t2", r#"{"n":1}"#).json();
        assert_eq!(last["woken"], json!(["t5"]));

        let taken = scratch.acts(&bob, &["task", "take", "--json"]).ok().json();
        assert_eq!((&taken["task"], &taken["results_of"]), (&json!("t5"), &json!("t1")));
        for whose in ["t1", "t5"] {
            let results = scratch.baton(&["task", "results", whose, "--json"]).ok().json();
            assert_eq!((&results["done"], &results["failed"]), (&json!(2), &json!(1)));
            let parts = results["parts"].as_array().unwrap();
            let states: Vec<_> = parts.iter().map(|part| &part["state"]).collect();
            assert_eq!(states, ["done", "failed", "done"]);
            assert_eq!(parts[2]["result"], json!({ "n": 3 }));
        }
        let page = scratch.baton(&["task", "results", "t1"]).ok().out;
        assert!(page.contains("2. t3 \"check\", failed: it") && !page.contains('\u{1b}'), "{page}");
        let finish = ["task", "done", "t5", "--report-done", "x", "--report-not-done", "nothing"];
        scratch.acts(&bob, &finish).ok();
        assert_eq!(state(scratch, "t1"), "done");
        let journal = scratch.baton(&["journal"]).ok().out;
        assert!(journal.contains("divided t1 into t2, t3, t4, then t5"), "{journal}");
        assert!(journal.contains("the parts of t1 are joined"), "{journal}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn without_a_follower_whoever_divided_it_is_told() {
    Scratch::on_each_store("", |scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        scratch.baton(&["task", "add", "the whole", "--max-attempts", "1"]).ok();
        scratch.acts(&ann, &["task", "take"]).ok();
        let words = ["task", "split", "t1", "--each", "a", "b", "--sequence", "--join", "1"];
        scratch.acts(&ann, &words).ok();
        scratch.acts(&bob, &["task", "take", "t3"]).refused(1);
        breaks(scratch, &bob, "t2");
        done(scratch, &bob, "t3", "1");
        let taken = scratch.acts(&ann, &["task", "take"]).ok().out;
        assert!(taken.contains("t1 \"the whole\", which you divided, can go on"), "{taken}");
        assert!(taken.contains("results of its parts: baton task results t1"), "{taken}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn parts_from_a_file() {
    let scratch = Scratch::workspace();
    scratch.baton(&["task", "add", "the whole"]).ok();
    let file =
        "[{\"title\": \"one\", \"body\": \"long\", \"paths\": [\"src/\"], \"role\": \"code\",
        \"priority\": 0, \"key\": \"k1\"},\n {\"title\": \"two\"}]\n";
    scratch.write("children.json", file);
    let stop = ["--on-failure", "stop", "--json"];
    let words = [&["task", "split", "t1", "--file", "children.json"], &stop[..]].concat();
    scratch.baton(&words).ok();
    let part = scratch.baton(&["task", "show", "t2", "--json"]).ok().json();
    assert_eq!((&part["role"], &part["priority"]), (&json!("code"), &json!(0)));
    assert_eq!((&part["body"], &part["key"]), (&json!("long"), &json!("k1")));
    let results = scratch.baton(&["task", "results", "t1"]).ok().out;
    assert!(results.contains("a failure stops the rest"), "{results}");
}

#[test]
fn a_split_that_makes_no_sense_is_refused_with_the_place() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    scratch.baton(&["task", "add", "the whole", "--key", "taken"]).ok();
    let split = |words: &[&str]| scratch.baton(&[&["task", "split"], words].concat());
    for (text, place) in [
        ("[{\"title\": \"one\"},\n {\"titel\": \"two\"}]", "children.json:2:9: "),
        ("[{\"title\": 7}]", "children.json:1:12: "),
        ("[{\"title\": \"one\"", "children.json:1:16: "),
        ("{}", "children.json:1:"),
        ("", "children.json:1:0: "),
    ] {
        scratch.write("children.json", text);
        let said = split(&["t1", "--file", "children.json"]).refused(2);
        assert!(said.err.contains(place), "{text}: {said:?}");
    }
    scratch.write("children.json", "[{\"title\": \"x\", \"key\": \"taken\"}]");
    let said = split(&["t1", "--file", "children.json"]).refused(1);
    assert!(said.err.contains("t1 \"the whole\""), "{said:?}");
    scratch.write("children.json", &format!("[{{\"title\": \"{}\"}}]", "x".repeat(1 << 20)));
    split(&["t1", "--file", "children.json"]).refused(2);
    split(&["t1", "--file", "none.json"]).refused(2);
    let many: Vec<String> = (0..101).map(|number| format!("part {number}")).collect();
    let many: Vec<&str> =
        ["t1", "--each"].into_iter().chain(many.iter().map(String::as_str)).collect();
    split(&many).refused(2);
    for words in [
        &["t1"][..],
        &["t1", "--each", " "],
        &["t1", "--each", "a", "--join", "some"],
        &["t1", "--each", "a", "--join", "2"],
        &["t1", "--each", "a", "--join", "0"],
        &["t1", "--each", "a", "--on-failure", "panic"],
        &["t1", "--each", "a", "--interface", "a\u{202e}b"],
    ] {
        split(words).refused(2);
    }
    split(&["t9", "--each", "a"]).refused(1);
    scratch.baton(&["task", "results", "t1"]).refused(1);
    scratch.acts(&ann, &["task", "take"]).ok();
    let said = scratch.acts(&bob, &["task", "split", "t1", "--each", "a"]).refused(1);
    assert!(said.err.contains("ann"), "{said:?}");
    let stale = ["task", "split", "t1", "--each", "a", "--token", "1.1"];
    scratch.acts(&ann, &stale).refused(3);
    assert_eq!(
        scratch.baton(&["task", "list", "--json"]).json()["tasks"].as_array().unwrap().len(),
        1
    );
}
