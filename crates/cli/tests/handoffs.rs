//! Handing tasks over, through the real binary, on both stores.

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};

const OFFER: [&str; 8] = [
    "--state",
    "the parser reads one line",
    "--remaining",
    "several lines, errors",
    "--next",
    "write the test of an empty line",
    "--decision",
    "one pass: the files are small",
];

fn offer(scratch: &Scratch, who: &str, more: &[&str]) -> Said {
    let words = [&["handoff", "offer", "t1", "--json"][..], &OFFER, more].concat();
    scratch.acts(who, &words)
}

/// Ann has t1 with a claim on src/, and has committed something.
fn begun(scratch: &Scratch, ann: &str) -> Value {
    scratch.baton(&["task", "add", "write the parser", "--paths", "src/"]).ok();
    let taken = scratch.acts(ann, &["task", "take", "--claim", "--json"]).ok().json();
    scratch.write("src/a.rs", "fn parse() {}\n");
    scratch.git(&["commit", "-qam", "parse one line"]);
    taken
}

fn holders(scratch: &Scratch) -> Vec<String> {
    let claims = scratch.baton(&["claims", "--json"]).ok().json();
    let names = claims["claims"].as_array().unwrap().iter();
    names.map(|claim| claim["holder"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn s15_a_task_goes_over_with_everything_and_the_giver_is_stale() {
    Scratch::on_each_store("", |scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        let taken = begun(scratch, &ann);
        scratch.acts(&ann, &["note", "progress", "one line works", "--task", "t1"]).ok();
        scratch.write("src/b.rs", "// not yet\n");
        let more = ["--to", "bob", "--set", "parser/stage=\"half\"", "--artifact", "src/a.rs"];
        let offered = offer(scratch, &ann, &more).ok().json();
        assert_eq!((&offered["handoff"], &offered["progress"]), (&json!("t1-h1"), &json!(true)));
        let known = &offered["known"];
        assert_eq!(known["changed"], json!(["src/a.rs", "src/b.rs"]), "{offered}");
        assert_eq!(known["uncommitted"], json!(["src/b.rs"]));
        assert_eq!(known["commits"][0]["subject"], "parse one line");
        assert_eq!(known["claims"], json!(["src/"]));
        assert_eq!(known["notes"][0]["text"], "one line works");
        assert_eq!(holders(scratch), ["ann"], "until accepted the giver owns");
        scratch.acts(&bob, &["state", "get", "parser/stage"]).refused(1);

        let told = scratch.acts(&bob, &["session", "whoami"]).ok();
        assert!(!told.out.contains("offers"), "reading tells nothing: {told:?}");
        let listed = scratch.acts(&bob, &["handoff", "list", "--mine", "--json"]).ok().json();
        assert_eq!(listed["handoffs"][0]["next"], "write the test of an empty line");
        let got = scratch.acts(&bob, &["handoff", "accept", "t1-h1", "--json"]).ok().json();
        assert_eq!((&got["attempt"], &got["elsewhere"]), (&json!(1), &json!(false)), "{got}");
        assert_eq!(got["set"][0]["key"], "parser/stage");
        assert_eq!(holders(scratch), ["bob"]);
        scratch.acts(&bob, &["check", "src/a.rs"]).ok();
        let value = scratch.acts(&ann, &["state", "get", "parser/stage", "--json"]).ok().json();
        assert_eq!(value["value"], "half");

        let old = taken["token"].as_str().unwrap();
        let done = ["task", "done", "t1", "--report-done", "all", "--report-not-done", "nothing"];
        let late = scratch.acts(&ann, &[&done[..], &["--token", old]].concat()).refused(3);
        assert!(late.err.contains("bob"), "{late:?}");
        scratch.acts(&ann, &done).refused(3);
        let claim = taken["claim"]["token"].as_str().unwrap();
        scratch.acts(&ann, &["release", "src/", "--token", claim]).refused(3);
        scratch.acts(&ann, &["check", "src/a.rs", "--token", claim]).refused(3);
        offer(scratch, &ann, &[]).refused_json(3);
        let again = scratch.acts(&ann, &["handoff", "accept", "t1-h1"]).refused(1);
        assert!(again.err.contains("accepted by bob"), "{again:?}");
        let news = scratch.acts(&ann, &["claim", "docs/"]).ok();
        assert!(news.out.contains("accepted by bob"), "{news:?}");
        let token = got["token"].as_str().unwrap();
        scratch.acts(&bob, &[&done[..], &["--token", token]].concat()).ok();
        scratch.baton(&["journal", "verify"]).ok();
        let told = scratch.baton(&["journal"]).ok();
        for words in ["ann offered t1 to bob as t1-h1", "bob accepted t1-h1", "bob took t1 over"] {
            assert!(told.out.contains(words), "{words}: {}", told.out);
        }
    });
}

impl Said {
    /// As `refused`, where the document went to standard output.
    #[track_caller]
    fn refused_json(self, code: i32) -> Value {
        assert_eq!(self.code, code, "{self:?}");
        self.json()["refused"].clone()
    }
}

#[test]
fn kill_9_of_the_receiver_leaves_everything_with_it() {
    Scratch::on_each_store("", |scratch| {
        let ann = scratch.session("ann");
        let (bob, mut process) = scratch.session_with_process("bob");
        let cat = scratch.session("cat");
        begun(scratch, &ann);
        offer(scratch, &ann, &[]).ok();
        scratch.acts(&bob, &["handoff", "accept", "t1"]).ok();
        process.end();
        // Nothing is half-way: all is the receiver's until somebody looks, then free at once.
        let shown = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
        assert_eq!(
            (&shown["owner"]["name"], holders(scratch)),
            (&json!("bob"), vec!["bob".into()])
        );
        let taken = scratch.acts(&cat, &["task", "take", "--claim", "--json"]).ok().json();
        assert_eq!((&taken["task"], &taken["attempt"]), (&json!("t1"), &json!(2)), "{taken}");
        assert_eq!(holders(scratch), ["cat"]);
        assert_eq!(taken["handoffs"][0]["handoff"], "t1-h1");
        assert!(taken["checkpoint"]["at"].is_string(), "saved when it was seen dead: {taken}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn what_is_missing_is_said_all_at_once() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    begun(&scratch, &ann);
    let words = ["handoff", "offer", "t1", "--next", "continue", "--result", "{}", "--json"];
    let refused = scratch.acts(&ann, &words).refused_json(1);
    let missing: Vec<&str> = refused["missing"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["missing"].as_str().unwrap())
        .collect();
    assert_eq!(missing, ["state", "remaining", "next", "decisions", "status"], "{refused}");
    let said = scratch.acts(&ann, &words[..words.len() - 1]).refused(1);
    for words in ["where the work stands", "not \"continue\"", "1 changed file", "--decision"] {
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    let said = scratch.acts(&ann, &["handoff", "offer", "t9"]).refused(1);
    assert!(said.err.contains("t1"), "near ids: {said:?}");
    let said = offer(&scratch, &ann, &["--artifact", "no/such", "--artifact", "README.md"]);
    assert!(said.refused_json(2)["message"].as_str().unwrap().contains("no/such"));
    scratch.acts(&ann, &["handoff", "offer", "t1", "--set", "novalue"]).refused(2);
    scratch.acts(&ann, &["handoff", "accept", "what"]).refused(1);
    scratch.baton(&["handoff", "accept", "t1-h1"]).refused(1);
}

#[test]
fn a_handoff_from_a_file_reads_back_from_what_is_shown() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    begun(&scratch, &ann);
    scratch.write("handoff.md", "# Handoff\n\n## State\nhalf\n## not a heading in a fence\n");
    let said = scratch.acts(&ann, &["handoff", "offer", "t1", "--file", "handoff.md"]).refused(2);
    assert!(said.err.contains("handoff.md:5:4: no such heading"), "{said:?}");
    scratch.write("handoff.json", "{\n  \"state\": \"x\",\n}");
    let said = scratch.acts(&ann, &["handoff", "offer", "t1", "--file", "handoff.json"]).refused(2);
    assert!(said.err.contains("handoff.json:3:1"), "{said:?}");
    scratch.write("handoff.toml", "state = 'x'\nstate = 'y'\n");
    scratch.acts(&ann, &["handoff", "offer", "t1", "--file", "handoff.toml"]).refused(2);
    scratch.acts(&ann, &["handoff", "offer", "t1", "--file", "gone.md"]).refused(4);

    let text = "## State\n\nhalf \u{1b}[2J of it\n# no heading\n\n## Remaining\n\nrest\n\n\
        ## Next\n\nrun the tests\n\n## Decisions\n\n- one pass: small files\n- no cache: later\n\n\
        ## Blockers\n\n- the CI is slow\n\n## Result\n\n```json\n{\"status\": \"partial\"}\n```\n\n\
        ## Set\n\n- a/b={\"c\": 1}\n";
    scratch.write("handoff.md", text);
    let words = ["handoff", "offer", "t1", "--file", "handoff.md", "--constraint", "no unsafe"];
    scratch.acts(&ann, &words).ok();
    let first = scratch.acts(&bob, &["handoff", "show", "t1", "--markdown"]).ok().out;
    assert!(!first.contains('\u{1b}'), "S20: {first}");
    scratch.write("again.md", &first);
    scratch.acts(&ann, &["handoff", "offer", "t1", "--file", "again.md"]).ok();
    let second = scratch.acts(&bob, &["handoff", "show", "t1-h2", "--json"]).ok().json();
    assert_eq!(second["decisions"].as_array().unwrap().len(), 2, "{second}");
    assert_eq!(second["constraints"], json!(["no unsafe"]));
    assert_eq!(
        (&second["set"][0]["key"], &second["result"]["status"]),
        (&json!("a/b"), &json!("partial"))
    );
    assert!(second["state"].as_str().unwrap().contains("# no heading"));
    assert_eq!(second["earlier"][0]["end"]["how"], "withdrawn");
    let words = scratch.acts(&bob, &["handoff", "accept", "t1"]).ok();
    assert!(words.out.contains("t1-h1") && !words.out.contains('\u{1b}'), "{words:?}");
}

#[test]
fn two_agents_cannot_pass_a_task_back_and_forth_for_ever() {
    Scratch::on_each_store("", |scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        scratch.baton(&["task", "add", "fix the test"]).ok();
        scratch.acts(&ann, &["task", "take"]).ok();
        for (giver, receiver, name) in [(&ann, &bob, "bob"), (&bob, &ann, "ann")] {
            let offered = offer(scratch, giver, &["--to", name]).ok().json();
            assert_eq!(offered["progress"], false, "{offered}");
            scratch.acts(receiver, &["handoff", "accept", "t1"]).ok();
        }
        let last = offer(scratch, &ann, &["--to", "bob"]).ok().json();
        assert_eq!(last["state"], "waiting", "{last}");
        scratch.acts(&bob, &["handoff", "accept", "t1"]).refused(1);
        let shown = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
        assert_eq!(shown["handoffs"].as_array().unwrap().len(), 3, "the whole chain: {shown}");
        assert_eq!(shown["state"], "waiting");
    });
}

#[test]
fn an_offer_nobody_takes_returns_or_waits_for_a_person() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    begun(&scratch, &ann);
    offer(&scratch, &ann, &["--within", "10m"]).ok();
    let later = 11 * 60_000;
    let said = scratch.acts_later(&bob, later, &["handoff", "accept", "t1"]).refused(1);
    assert!(said.err.contains("returned"), "{said:?}");
    let news = scratch.acts_later(&ann, later, &["claim", "docs/"]).ok();
    assert!(news.out.contains("not accepted in time"), "{news:?}");
    offer(&scratch, &ann, &["--within", "20m"]).ok();
    scratch.acts(&ann, &["session", "end"]).ok();
    assert_eq!(holders(&scratch), ["ann"], "what is offered waits for its receiver");
    let taken = scratch.acts_later(&bob, 40 * 60_000, &["task", "take"]);
    assert_eq!(taken.code, 1, "{taken:?}");
    let shown = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
    assert_eq!(shown["state"], "waiting", "{shown}");
    assert!(shown["reason"].as_str().unwrap().contains("ann"), "{shown}");
    assert_eq!(shown["checkpoints"].as_array().unwrap().len(), 1, "saved when it ended");
}

#[test]
fn a_checkpoint_needs_no_words_of_the_agent() {
    Scratch::on_each_store("", |scratch| {
        let (ann, mut process) = scratch.session_with_process("ann");
        let bob = scratch.session("bob");
        scratch.acts(&ann, &["task", "checkpoint"]).refused(1);
        begun(scratch, &ann);
        scratch.write("src/c.rs", "// more\n");
        let saved = scratch.acts(&ann, &["task", "checkpoint", "--json"]).ok().json();
        assert_eq!(saved["saved"][0]["changed"], json!(["src/a.rs", "src/c.rs"]), "{saved}");
        scratch.acts(&bob, &["task", "checkpoint", "t1"]).refused(1);
        scratch.write("src/d.rs", "// the last words\n");
        process.end();
        let taken = scratch.acts(&bob, &["task", "take", "--json"]).ok().json();
        let last = &taken["checkpoint"];
        assert_eq!(last["changed"], json!(["src/a.rs", "src/c.rs", "src/d.rs"]), "{taken}");
        assert_eq!((&last["by"]["name"], &last["claims"]), (&json!("ann"), &json!(["src/"])));
        let page = scratch.baton(&["task", "show", "t1"]).ok();
        assert!(page.out.contains("Saved by code"), "{page:?}");
    });
}

#[test]
fn a_receiver_in_another_tree_is_told_where_to_go() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    begun(&scratch, &ann);
    let side = scratch.path("side");
    scratch.git(&["worktree", "add", "-q", side.to_str().unwrap()]);
    let start = ["-C", side.to_str().unwrap(), "session", "start", "--name", "bob", "--json"];
    let bob = scratch.baton(&start).ok().json()["credential"].as_str().unwrap().to_owned();
    offer(&scratch, &ann, &["--to", "bob"]).ok();
    let words = ["-C", side.to_str().unwrap(), "handoff", "accept", "t1-h1", "--op-id", "op-1"];
    let said = scratch.acts(&bob, &words).ok();
    let root = scratch.root().canonicalize().unwrap();
    let place = format!("go there: the work is in {}", root.display());
    assert!(said.out.contains(&place), "{said:?}");
    let again = scratch.acts(&bob, &words).ok();
    assert_eq!(said.out.lines().next(), again.out.lines().next(), "a retry gets the same answer");
}
