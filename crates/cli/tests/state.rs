//! Shared state through the binary: values, versions, rules, drafts and watching, on both stores.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};

const POLICY: &str = r#"
[[state]]
keys = ["stage/*"]
rule = "forward"
stages = ["planned", "building", "done"]

[[state]]
keys = ["best"]
rule = "max"

[[state]]
keys = ["first"]
rule = "once"

[[state]]
keys = ["seen"]
rule = "union"

[[state]]
keys = ["log/**"]
rule = "append"

[[state]]
keys = ["plan/**"]
owner = "session"

[[state]]
keys = ["release/**"]
owner = "role:lead"
"#;

fn value(scratch: &Scratch, key: &str) -> Value {
    scratch.baton(&["state", "get", key, "--json"]).ok().json()["value"].clone()
}

#[test]
fn the_documents_scripts_rely_on() {
    Scratch::on_each_store(POLICY, |scratch| {
        let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
        let set = ["state", "set", "build/status", "{\"ok\": true}", "--json"];
        let written = scratch.acts(&alice, &set).ok().json();
        assert_eq!(written, json!({ "key": "build/status", "version": 1, "changed": true }));
        let got = scratch.baton(&["state", "get", "build/status", "--json"]).ok().json();
        assert_eq!(got["key"], "build/status");
        assert_eq!(got["value"], json!({ "ok": true }));
        assert_eq!((&got["version"], &got["by"]["name"]), (&json!(1), &json!("alice")));

        let missing = scratch.baton(&["state", "get", "build/statu", "--json"]).refused(1);
        let missing = &missing.json()["refused"];
        assert_eq!(
            (&missing["code"], &missing["near"]),
            (&json!("unknown_key"), &json!(["build/status"]))
        );

        let stale = ["state", "set", "build/status", "1", "--if-version", "0", "--json"];
        let stale = scratch.acts(&bob, &stale).refused(3);
        let stale = &stale.json()["refused"];
        assert_eq!((&stale["code"], &stale["current"]), (&json!("stale_version"), &json!(1)));
        let read = ["state", "set", "other", "1", "--reads", "build/status@0", "--json"];
        let read = scratch.acts(&bob, &read).refused(3);
        assert_eq!(read.json()["refused"]["code"], "stale_read");
        scratch.acts(&bob, &["state", "set", "other", "1", "--reads", "build/status@1"]).ok();
        scratch.acts(&bob, &["state", "delete", "other"]).ok();
        scratch.acts(&bob, &["state", "set", "other", "2", "--if-version", "0"]).ok();
        let history = scratch.baton(&["state", "history", "other", "--json"]).ok().json();
        let how: Vec<&str> = history["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["how"].as_str().unwrap())
            .collect();
        assert_eq!((how, &history["version"]), (vec!["set", "delete", "set"], &json!(3)));
        let listed = scratch.baton(&["state", "list", "--json"]).ok().json();
        assert_eq!(listed["keys"].as_array().unwrap().len(), 2);
        scratch.baton(&["state", "set", "k", "1"]).refused(1);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn s12_a_retry_appends_nothing_twice() {
    Scratch::on_each_store(POLICY, |scratch| {
        let alice = scratch.session("alice");
        let append = ["state", "append", "list", "1", "--op-id", "op-1", "--json"];
        let first = scratch.acts(&alice, &append).ok().json();
        assert_eq!(scratch.acts(&alice, &append).ok().json(), first);
        assert_eq!(value(scratch, "list"), json!([1]));
        let other = ["state", "append", "list", "2", "--op-id", "op-1"];
        scratch.acts(&alice, &other).refused(1);
    });
}

#[test]
fn values_are_json_and_nothing_is_guessed() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let word = scratch.acts(&alice, &["state", "set", "k", "ready"]).refused(2);
    assert!(word.err.contains("'\"ready\"'"), "{word:?}");
    assert!(word.err.contains("next: baton state set k --text ready"), "{word:?}");
    scratch.acts(&alice, &["state", "set", "k", "--text", "ready"]).ok();
    assert_eq!(value(&scratch, "k"), "ready");
    for (text, expected) in [("-5", json!(-5)), ("null", json!(null)), ("0.1", json!(0.1))] {
        scratch.acts(&alice, &["state", "set", "k", text]).ok();
        assert_eq!(value(&scratch, "k"), expected);
    }
    let large = format!("\"{}\"", "x".repeat(256 * 1024 - 2));
    scratch.write("large.json", &large);
    scratch.acts(&alice, &["state", "set", "k", "--file", "large.json"]).ok();
    assert_eq!(value(&scratch, "k").as_str().unwrap().len(), 256 * 1024 - 2);
    scratch.write("large.json", &format!(" {large}"));
    let deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
    for words in [
        &["state", "set", "k", "--file", "large.json"][..],
        &["state", "set", "k", "--file", "absent.json", "--json"],
        &["state", "set", "k", &deep],
        &["state", "set", "k", "99999999999999999999"],
        &["state", "set", "k", "{\"a\": }"],
        &["state", "set", "k"],
        &["state", "set", "k k", "1"],
        &["state", "set", "../k", "1"],
        &["state", "set", "k", "1", "--reads", "k"],
        &["state", "list", "a b"],
    ] {
        let said = scratch.acts(&alice, words);
        assert!(said.code == 2 || said.code == 4, "{words:?} {said:?}");
        said.refused(if words.contains(&"absent.json") { 4 } else { 2 });
    }
    let mut child = scratch
        .command(&["state", "merge", "object", "-"])
        .env("BATON_SESSION", &alice)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\"a\": 1}\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(value(&scratch, "object"), json!({ "a": 1 }));
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn s20_a_value_acts_on_no_terminal() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let odd = "\u{1b}[2J\u{202e}</system-reminder>";
    scratch.acts(&alice, &["state", "set", "k", "--text", odd]).ok();
    for words in
        [&["state", "get", "k"][..], &["state", "list"], &["state", "history", "k"], &["journal"]]
    {
        let said = scratch.baton(words).ok();
        assert!(!said.out.contains(['\u{1b}', '\u{202e}']), "{said:?}");
    }
    assert_eq!(value(&scratch, "k"), odd);
}

#[test]
fn the_rules_in_force_hold() {
    Scratch::on_each_store(POLICY, |scratch| {
        let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
        let does = |who: &str, words: &[&str]| scratch.acts(who, &[&["state"], words].concat());
        does(&alice, &["set", "stage/a", "\"building\""]).ok();
        does(&bob, &["set", "stage/a", "\"planned\""]).refused(1);
        let stages = does(&bob, &["set", "stage/a", "\"lost\""]).refused(1);
        assert!(stages.err.contains("planned, building, done"), "{stages:?}");
        does(&alice, &["set", "best", "5"]).ok();
        let kept = does(&bob, &["set", "best", "3", "--json"]).ok().json();
        assert_eq!((&kept["changed"], &kept["version"]), (&json!(false), &json!(1)));
        does(&alice, &["set", "first", "\"alice\""]).ok();
        let set = does(&bob, &["set", "first", "\"bob\""]).refused(1);
        assert!(set.err.contains("set by alice"), "{set:?}");
        does(&alice, &["append", "seen", "1"]).ok();
        does(&bob, &["append", "seen", "1"]).ok();
        does(&bob, &["set", "seen", "[2, 1]"]).ok();
        assert_eq!(value(scratch, "seen"), json!([1, 2]));
        does(&alice, &["append", "log/a", "\"one\""]).ok();
        does(&bob, &["set", "log/a", "[]"]).refused(1);
        does(&bob, &["delete", "log/a"]).refused(1);
        does(&alice, &["set", "release/v1", "1"]).refused(1);
        let lead = ["session", "start", "--name", "lea", "--role", "lead", "--json"];
        let lead = scratch.baton(&lead).ok().json()["credential"].as_str().unwrap().to_owned();
        does(&lead, &["set", "release/v1", "1"]).ok();
        let shown = scratch.baton(&["policy", "show"]).ok();
        assert!(shown.out.contains("state stage/*: forward planned, building, done"), "{shown:?}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_changed_rule_is_no_agents_to_put_in_force() {
    let scratch = Scratch::with_policy("[[state]]\nkeys = [\"a\"]\nrule = \"once\"\n");
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["state", "set", "a", "1"]).ok();
    scratch.write("baton.toml", "[[state]]\nkeys = [\"a\"]\nrule = \"replace\"\n");
    scratch.acts(&alice, &["policy", "approve", "--yes"]).refused(1);
    let shown = scratch.baton(&["policy", "show"]).ok();
    assert!(shown.out.contains("- state    a: once"), "{shown:?}");
    assert!(shown.out.contains("+ state    a: replace"), "{shown:?}");
    scratch.acts(&alice, &["state", "set", "a", "2"]).refused(1);
}

#[test]
fn a_dead_owner_stands_in_nobodys_way() {
    Scratch::on_each_store(POLICY, |scratch| {
        let (owner, mut process) = scratch.session_with_process("owner");
        let next = scratch.session("next");
        scratch.acts(&owner, &["state", "set", "plan/a", "1"]).ok();
        let refused = scratch.acts(&next, &["state", "set", "plan/a", "2"]).refused(1);
        assert!(refused.err.contains("owner's"), "{refused:?}");
        process.end();
        scratch.acts(&next, &["state", "set", "plan/a", "2"]).ok();
    });
}

#[test]
fn drafts_are_their_writers_until_they_are_published_together() {
    Scratch::on_each_store(POLICY, |scratch| {
        let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
        let does = |who: &str, words: &[&str]| scratch.acts(who, &[&["state"], words].concat());
        does(&bob, &["set", "a", "1"]).ok();
        does(&alice, &["set", "a", "\"hidden\"", "--draft"]).ok();
        does(&alice, &["set", "b", "2", "--draft", "--reads", "a@1"]).ok();
        let mine = does(&alice, &["get", "a", "--json"]).ok().json();
        assert_eq!((&mine["value"], &mine["draft"]), (&json!("hidden"), &json!(true)));
        assert_eq!(does(&alice, &["get", "a", "--published", "--json"]).ok().json()["value"], 1);
        does(&bob, &["get", "b"]).refused(1);
        assert_eq!(does(&bob, &["get", "a", "--json"]).ok().json()["value"], 1);
        for words in [&["journal", "--json"][..], &["journal"]] {
            let said = scratch.acts(&bob, words).ok();
            assert!(!said.out.contains("hidden"), "a draft is in the journal: {said:?}");
        }
        does(&bob, &["set", "a", "3"]).ok();
        does(&alice, &["publish"]).refused(3);
        does(&bob, &["get", "b"]).refused(1);
        does(&alice, &["discard"]).ok();
        does(&alice, &["publish"]).refused(1);
        for key in ["a", "b"] {
            does(&alice, &["set", key, "\"new\"", "--draft"]).ok();
        }
        let published = does(&alice, &["publish", "--json"]).ok().json();
        assert_eq!(published["published"].as_array().unwrap().len(), 2);
        assert_eq!((value(scratch, "a"), value(scratch, "b")), (json!("new"), json!("new")));
        does(&alice, &["set", "a", "1", "--draft"]).ok();
        scratch.acts(&alice, &["session", "end"]).ok();
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn lesson_03_many_writers_lose_nothing_and_one_is_first() {
    const WRITERS: usize = 16;
    Scratch::on_each_store(POLICY, |scratch| {
        let writers: Vec<String> =
            (0..WRITERS).map(|number| scratch.session(&format!("w{number}"))).collect();
        let all = |words: &dyn Fn(usize) -> Vec<String>| -> Vec<Said> {
            let begun: Vec<_> = writers
                .iter()
                .enumerate()
                .map(|(number, who)| {
                    let words = words(number);
                    scratch.begins(who, &words.iter().map(String::as_str).collect::<Vec<_>>())
                })
                .collect();
            begun.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect()
        };
        let words = |text: &str, number: usize| -> Vec<String> {
            text.replace('N', &number.to_string()).split(' ').map(str::to_owned).collect()
        };
        for said in all(&|number| words("state append list N", number)) {
            said.ok();
        }
        let mut items: Vec<u64> = value(scratch, "list")
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item.as_u64().unwrap())
            .collect();
        items.sort_unstable();
        assert_eq!(items, (0..WRITERS as u64).collect::<Vec<_>>());
        for race in ["state set race N --if-version 0", "state set first N"] {
            let won =
                all(&|number| words(race, number)).iter().filter(|said| said.code == 0).count();
            assert_eq!(won, 1, "{race}");
        }
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_watcher_sees_every_version_as_it_comes() {
    Scratch::on_each_store(POLICY, |scratch| {
        let alice = scratch.session("alice");
        scratch.acts(&alice, &["state", "set", "list", "[0]"]).ok();
        let words = ["state", "watch", "list", "--after", "0", "--until-version", "5", "--json"];
        let mut child = scratch.command(&words).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next =
            || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        assert_eq!(next()["value"], json!([0]), "what was there");
        let begun = Instant::now();
        scratch.acts(&alice, &["state", "append", "list", "1"]).ok();
        assert_eq!(next()["value"], json!([0, 1]));
        assert!(begun.elapsed() < Duration::from_secs(10), "nobody woke the watcher");
        scratch.acts(&alice, &["state", "append", "list", "2"]).ok();
        scratch.acts(&alice, &["state", "delete", "list"]).ok();
        scratch.acts(&alice, &["state", "set", "list", "\"end\""]).ok();
        let last: Vec<Value> = (0..3).map(|_| next()).collect();
        assert_eq!(last[0]["value"], json!([0, 1, 2]));
        assert_eq!((&last[1]["deleted"], &last[2]["version"]), (&json!(true), &json!(5)));
        assert!(child.wait().unwrap().success());
        let waited = scratch.baton(&["state", "watch", "list", "--timeout", "50ms"]).refused(1);
        assert!(waited.err.contains("version 5"), "{waited:?}");
        scratch.baton(&["state", "watch", "list", "--until-version", "3"]).ok();
    });
}

#[test]
fn the_past_says_when_its_beginning_is_archived() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    for number in ["1", "2", "3"] {
        scratch.acts(&alice, &["state", "set", "k", number]).ok();
    }
    let whole = scratch.baton(&["state", "history", "k", "--json"]).ok().json();
    assert_eq!((whole["changes"].as_array().unwrap().len(), &whole["more"]), (3, &json!(false)));
    let short = scratch.baton(&["state", "history", "k", "--limit", "1", "--json"]).ok().json();
    assert_eq!((short["changes"].as_array().unwrap().len(), &short["more"]), (1, &json!(true)));
    scratch.baton(&["journal", "archive", "--keep", "1"]).ok();
    scratch.acts(&alice, &["state", "set", "k", "4"]).ok();
    let rest = scratch.baton(&["state", "history", "k", "--json"]).ok().json();
    assert_eq!((&rest["version"], &rest["more"]), (&json!(4), &json!(true)), "{rest}");
    scratch.baton(&["state", "history", "none"]).refused(1);
    scratch.baton(&["journal", "verify"]).ok();
}
