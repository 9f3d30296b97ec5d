//! Tasks through the binary, on both stores: filing, taking, ending, and every way to be refused.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::shared_store::address;

const REPORT: [&str; 4] = ["--report-done", "all of it", "--report-not-done", "nothing"];

/// Tells the story on SQLite and, where there is one, on PostgreSQL.
pub(crate) fn on_both_stores(story: impl Fn(&Scratch)) {
    story(&Scratch::workspace());
    if let Some(address) = address() {
        let scratch = Scratch::repository().on_store(&address);
        scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
        story(&scratch);
    }
}

fn finish(child: Child) -> Said {
    child.wait_with_output().unwrap().into()
}

fn done(scratch: &Scratch, who: &str, task: &str) -> Said {
    let words: Vec<&str> = ["task", "done", task].into_iter().chain(REPORT).collect();
    scratch.acts(who, &words)
}

#[test]
fn the_documents_scripts_rely_on() {
    on_both_stores(|scratch| {
        let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
        let added = scratch.baton(&["task", "add", "Fix the parser", "--json"]).ok().json();
        assert_eq!((&added["task"], &added["similar"]), (&json!("t1"), &json!([])));
        let taken = scratch.acts(&alice, &["task", "take", "--json"]).ok().json();
        assert_eq!((&taken["task"], &taken["attempt"]), (&json!("t1"), &json!(1)));
        let token = taken["token"].as_str().unwrap().to_owned();
        let nothing = scratch.acts(&bob, &["task", "take", "--json"]).refused(1);
        assert_eq!(nothing.json()["refused"]["code"], "nothing_ready");
        let shown = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
        assert_eq!(shown["state"], "active");
        assert_eq!(shown["owner"]["name"], "alice");
        assert_eq!(shown["owner"]["token"], json!(token));
        assert_eq!((&shown["title"], &shown["attempt"]), (&json!("Fix the parser"), &json!(1)));
        let mut words = vec!["task", "done", "t1", "--token", &token, "--json"];
        words.extend(REPORT);
        words.extend(["--result", "{\"status\": \"ok\", \"files\": 2}"]);
        let moved = scratch.acts(&alice, &words).ok().json();
        assert_eq!(moved["state"], "done");
        let shown = scratch.baton(&["task", "show", "1", "--json"]).ok().json();
        assert_eq!((&shown["owner"], &shown["state"]), (&Value::Null, &json!("done")));
        assert_eq!(shown["report_not_done"], "nothing");
        assert_eq!(shown["result"]["files"], 2);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn lesson_01_of_many_processes_one_gets_the_task() {
    on_both_stores(|scratch| {
        let workers: Vec<String> = (0..8).map(|_| scratch.session("worker")).collect();
        for round in 1..=5 {
            scratch.baton(&["task", "add", &format!("work of round{round}")]).ok();
            let task = format!("t{round}");
            // By its name in one round, as the best there is in the next.
            let words: &[&str] = match round % 2 {
                0 => &["task", "take", "--json"],
                _ => &["task", "take", &task, "--json"],
            };
            let racing: Vec<Child> = workers.iter().map(|who| scratch.begins(who, words)).collect();
            let said: Vec<Said> = racing.into_iter().map(finish).collect();
            let won: Vec<usize> =
                (0..said.len()).filter(|number| said[*number].code == 0).collect();
            assert_eq!(won.len(), 1, "{said:?}");
            for (number, said) in said.into_iter().enumerate() {
                if number != won[0] {
                    let code = said.refused(1).json()["refused"]["code"].clone();
                    assert!(["owned", "nothing_ready"].contains(&code.as_str().unwrap()), "{code}");
                }
            }
            done(scratch, &workers[won[0]], &task).ok();
        }
        let verified = scratch.baton(&["journal", "verify"]);
        verified.ok();
    });
}

#[test]
fn lesson_09_a_late_result_is_refused_with_the_attempt_that_counts() {
    on_both_stores(|scratch| {
        let (alice, mut process) = scratch.session_with_process("alice");
        let bob = scratch.session("bob");
        scratch.baton(&["task", "add", "long work", "--body", "with a body"]).ok();
        let old = scratch.acts(&alice, &["task", "take", "--json"]).ok().json();
        scratch.acts(&alice, &["task", "update", "t1", "--next", "run the tests"]).ok();
        process.end();
        let new = scratch.acts(&bob, &["task", "take", "--json"]).ok().json();
        assert_eq!((&new["task"], &new["attempt"]), (&json!("t1"), &json!(2)));
        assert_eq!(new["body"], "with a body");
        assert_eq!(new["next_action"], "run the tests", "what the last owner left");
        assert_eq!(new["attempts"][0]["name"], "alice");
        let old_token = old["token"].as_str().unwrap();
        let mut words = vec!["task", "done", "t1", "--token", old_token, "--json"];
        words.extend(REPORT);
        // Its session has ended with its process; whoever has its token learns no more.
        let late = scratch.acts(&bob, &words).refused(3).json();
        let refused = &late["refused"];
        assert_eq!((&refused["code"], &refused["attempt"]), (&json!("stale_attempt"), &json!(2)));
        assert_eq!(refused["current"], new["token"]);
        scratch.acts(&alice, &words).refused(1);
        let shown = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
        assert_eq!(shown["state"], "active");
        done(scratch, &bob, "t1").ok();
        done(scratch, &bob, "t1").refused(1);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn lesson_08_a_lease_is_renewed_by_activity_and_runs_out_in_silence() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.baton(&["task", "add", "long work"]).ok();
    let taken = scratch.acts(&alice, &["task", "take", "--json"]).ok().json();
    let minutes = |minutes: u64| minutes * 60_000;
    for step in 1..=6 {
        // Any act will do; a claim is one.
        scratch.acts_later(&alice, minutes(20 * step), &["claim", "notes.txt"]).ok();
        scratch.acts_later(&bob, minutes(20 * step), &["task", "take"]).refused(1);
    }
    let silent = minutes(120 + 31);
    let token = taken["token"].as_str().unwrap();
    let mut words = vec!["task", "done", "t1", "--token", token, "--json"];
    words.extend(REPORT);
    let late = scratch.acts_later(&alice, silent, &words).refused(3);
    assert!(late.err.contains("next: baton task take t1"), "{late:?}");
    let again = scratch.acts_later(&bob, silent, &["task", "take", "--json"]).ok().json();
    assert_eq!(again["attempt"], 2);
    let late = scratch.acts_later(&alice, silent, &words).refused(3).json();
    assert_eq!(late["refused"]["current"], again["token"]);
}

#[test]
fn lesson_22_a_rate_limit_waits_and_is_no_attempt() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let alice = scratch.session("alice");
    scratch.baton(&["task", "add", "costly work"]).ok();
    scratch.acts(&alice, &["task", "take"]).ok();
    let why = ["--why", "429", "--class", "rate-limited", "--json"];
    let words: Vec<&str> = ["task", "fail", "t1"].into_iter().chain(why).collect();
    let moved = scratch.acts(&alice, &words).ok().json();
    assert_eq!((&moved["state"], &moved["attempts_used"]), (&json!("parked"), &json!(0)));
    let nothing = scratch.acts(&alice, &["task", "take", "--json"]).refused(1).json();
    assert!(nothing["refused"]["next_at"].is_string(), "{nothing}");
    let later = scratch.acts_later(&alice, 61_000, &["task", "take", "--json"]).ok().json();
    assert_eq!(later["attempt"], 1);
}

#[test]
fn failures_are_bounded_and_the_rest_is_a_persons() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.baton(&["task", "add", "hard work", "--max-attempts", "2"]).ok();
    for _ in 0..2 {
        scratch.acts(&alice, &["task", "take"]).ok();
        scratch.acts(&alice, &["task", "fail", "t1", "--why", "it broke\u{1b}[2J"]).ok();
    }
    let shown = scratch.baton(&["task", "show", "t1"]).ok();
    assert!(shown.out.contains("waiting"), "{shown:?}");
    assert!(shown.out.contains("it broke\\u{1b}[2J"), "S20: {shown:?}");
    assert!(!shown.out.contains('\u{1b}'), "S20");
    scratch.acts(&alice, &["task", "reopen", "t1"]).refused(1);
    assert!(scratch.baton(&["status"]).ok().out.contains("1 waiting"));
}

#[test]
fn a_task_comes_with_its_claim_and_they_end_together() {
    on_both_stores(|scratch| {
        let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
        scratch.baton(&["task", "add", "first", "--paths", "src/a.rs"]).ok();
        scratch.baton(&["task", "add", "second", "--paths", "src/"]).ok();
        let taken = scratch.acts(&alice, &["task", "take", "--claim", "--json"]).ok().json();
        assert_eq!(taken["claim"]["resources"], json!(["src/a.rs"]));
        let refused = scratch.acts(&bob, &["task", "take", "--claim", "--json"]).refused(1).json();
        assert_eq!(refused["refused"]["code"], "held");
        let shown = scratch.baton(&["task", "show", "t2", "--json"]).ok().json();
        assert_eq!(shown["state"], "open", "all or nothing");
        let explained = scratch.acts(&bob, &["task", "take", "--explain"]).ok();
        assert!(explained.out.contains("alice has src/a.rs"), "{explained:?}");
        done(scratch, &alice, "t1").ok();
        let claims = scratch.baton(&["claims", "--json"]).ok().json();
        assert_eq!(claims["claims"], json!([]));
    });
}

#[test]
fn a_retry_under_the_same_operation_id_takes_nothing_twice() {
    on_both_stores(|scratch| {
        let alice = scratch.session("alice");
        for title in ["one thing", "another matter"] {
            scratch.baton(&["task", "add", title]).ok();
        }
        let words = ["task", "take", "--json", "--op-id", "take-1"];
        let first = scratch.acts(&alice, &words).ok().json();
        assert_eq!(scratch.acts(&alice, &words).ok().json(), first);
        let again = ["task", "add", "third one", "--op-id", "add-1", "--json"];
        let added = scratch.baton(&again).ok().json();
        assert_eq!(scratch.baton(&again).ok().json(), added);
        let list = scratch.baton(&["task", "list", "--json"]).ok().json();
        assert_eq!(list["tasks"].as_array().unwrap().len(), 3);
    });
}

#[test]
fn a_monitor_files_the_same_again_and_again() {
    on_both_stores(|scratch| {
        let words = ["task", "add", "disk is full", "--key", "disk", "--json"];
        for _ in 0..3 {
            assert_eq!(scratch.baton(&words).ok().json()["task"], "t1");
        }
        let like = scratch.baton(&["task", "add", "the disk is full", "--json"]).ok().json();
        assert_eq!(like["similar"][0]["task"], "t1");
        assert!(like["similar"][0]["score"].as_f64().unwrap() > 0.5, "{like}");
        scratch.baton(&["task", "add", "disk: full", "--unique"]).refused(1);
    });
}

#[test]
fn lists_tell_everything_at_a_glance() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.baton(&["task", "add", "alpha work", "--label", "bug", "--priority", "1"]).ok();
    scratch.baton(&["task", "add", "beta work", "--after", "t1"]).ok();
    scratch.baton(&["task", "add", "gamma \u{202e}work", "--role", "review"]).ok();
    scratch.acts(&alice, &["task", "take"]).ok();
    scratch.acts(&alice, &["task", "update", "t1", "--next", "write the test"]).ok();
    let list = scratch.baton(&["task", "list"]).ok();
    let without_times: Vec<String> = list
        .out
        .lines()
        .map(|line| {
            let words = line.split_whitespace();
            words.filter(|word| !word.ends_with('s') || word.len() > 4).collect::<Vec<_>>()
        })
        .map(|words| words.join(" "))
        .collect();
    insta::assert_snapshot!(without_times.join("\n"), @r"
    TASK PRIO STATE OWNER ATTEMPT SINCE TITLE NEXT
    t1 1 active alice 1/3 ago alpha work write the test
    t3 2 open - - ago gamma \u{202e}work
    t2 2 blocked - - ago beta work waits for t1
    ");
    let ready = scratch.baton(&["task", "ready", "--json"]).ok().json();
    assert_eq!(ready["tasks"][0]["task"], "t3");
    let blocked = scratch.baton(&["task", "blocked"]).ok();
    assert!(blocked.out.contains("waits for t1"), "{blocked:?}");
    let labelled = scratch.baton(&["task", "list", "--label", "bug", "--json"]).ok().json();
    assert_eq!(labelled["tasks"].as_array().unwrap().len(), 1);
    let mine = scratch.acts(&alice, &["task", "list", "--mine", "--json"]).ok().json();
    assert_eq!(mine["tasks"][0]["task"], "t1");
    let status = scratch.baton(&["status"]).ok();
    assert!(status.out.contains("tasks: 1 ready, 1 active, 1 blocked"), "{status:?}");
    assert!(status.out.contains("write the test"), "{status:?}");
}

/// What alice may not do while bob has t1 and t2 comes after it, with the exit code.
const WRONG: &[(i32, &str)] = &[
    (2, "task"),
    (2, "task add"),
    (2, "task add x --priority 5"),
    (2, "task add x --phase 0"),
    (2, "task add x --max-attempts 0"),
    (2, "task add x --budget-usd -1"),
    (1, "task add x --after t9"),
    (1, "task add x --paths ../outside"),
    (2, "task add x --body-file missing"),
    (1, "task show t12"),
    (1, "task show nonsense"),
    (1, "task take t1"),
    (1, "task take t2"),
    (1, "task take t77"),
    (2, "task take -n 0"),
    (2, "task take -n 99"),
    (2, "task done t1 --report-done x"),
    (2, "task done t1 --report-done x --report-not-done y --result {"),
    (1, "task done t1 --report-done x --report-not-done y"),
    (3, "task done t1 --report-done x --report-not-done y --token 1.1"),
    (1, "task fail t1 --why x"),
    (2, "task fail t1 --why x --class tired"),
    (1, "task park t1 --next x"),
    (1, "task block t1 --on x"),
    (1, "task block t2 --on t99"),
    (1, "task cancel t1"),
    (1, "task reopen t2"),
    (1, "task update t1 --priority 0"),
    (1, "task update t2 --after t2"),
    (2, "task update t2"),
    (2, "task list --state asleep"),
];

#[test]
fn whatever_is_typed_is_refused_in_one_line() {
    let scratch = Scratch::workspace();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.baton(&["task", "add", "first thing"]).ok();
    scratch.baton(&["task", "add", "second matter", "--after", "t1"]).ok();
    scratch.acts(&bob, &["task", "take", "t1"]).ok();
    let long = "x".repeat(600);
    let huge = "x".repeat(100_000);
    for (code, words) in [
        (2, &["task", "add", &long][..]),
        (2, &["task", "add", "x", "--body", &huge]),
        (2, &["task", "add", ""]),
        (2, &["task", "add", "x", "--label", "a\u{1b}b"]),
        (2, &["task", "add", "x", "--key", ""]),
        (2, &["task", "done", "t1", "--report-done", "x", "--report-not-done", " "]),
    ] {
        scratch.acts(&alice, words).refused(code);
    }
    for (code, line) in WRONG {
        let words: Vec<&str> = line.split(' ').collect();
        let said = scratch.acts(&alice, &words);
        assert_eq!(said.code, *code, "{line}: {said:?}");
        said.refused(*code);
    }
    let unknown = scratch.baton(&["task", "show", "matter"]).refused(1);
    assert!(unknown.err.contains("t2"), "near matches are named: {unknown:?}");
    let cycle = scratch.baton(&["task", "block", "t2", "--on", "t2", "--json"]).refused(1);
    assert_eq!(cycle.json()["refused"]["cycle"], json!(["t2", "t2"]));
    let list = scratch.baton(&["task", "list", "--json"]).ok().json();
    assert_eq!(list["tasks"].as_array().unwrap().len(), 2, "something was half done");
}

#[test]
fn a_body_may_come_from_a_file_or_a_pipe() {
    let scratch = Scratch::workspace();
    scratch.write("plan.md", "step one\nstep two\u{202e}\n");
    scratch.baton(&["task", "add", "from a file", "--body-file", "plan.md"]).ok();
    let shown = scratch.baton(&["task", "show", "t1"]).ok();
    assert!(shown.out.contains("  | step two\\u{202e}"), "{shown:?}");
    let mut command = scratch.command(&["task", "add", "from a pipe", "--body-file", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    use std::io::Write;
    child.stdin.take().unwrap().write_all(b"piped").unwrap();
    finish(child).ok();
    let shown = scratch.baton(&["task", "show", "t2", "--json"]).ok().json();
    assert_eq!(shown["body"], "piped");
}

/// Everything that may stand at a path besides a claim is in the same index.
#[test]
fn tasks_are_taken_beside_waiters_leftovers_interfaces_and_zones() {
    let zones = "[[zone]]\npaths = [\"src/db/\"]\npolicy = \"serial\"\n";
    let scratch = Scratch::with_policy(zones);
    let (ann, mut process) = scratch.session_with_process("ann");
    let (bob, cat) = (scratch.session("bob"), scratch.session("cat"));
    scratch.write("src/api.rs", "pub fn one() {}\n");
    scratch.acts(&bob, &["interface", "add", "api", "src/api.rs"]).ok();
    scratch.acts(&bob, &["claim", "src/db/one.sql"]).ok();
    scratch.acts(&ann, &["claim", "src/left.rs", "src/other.rs"]).ok();
    scratch.write("src/left.rs", "// not committed\n");
    let mut waiting = scratch.begins(&bob, &["claim", "src/other.rs", "--wait", "1m"]);
    scratch.until_waiting(1);
    process.end();
    for path in ["src/api.rs", "src/left.rs", "src/x.rs", "src/db/two.sql"] {
        scratch.acts(&cat, &["task", "add", "change it", "--paths", path]).ok();
    }
    for _ in 0..3 {
        let taken = scratch.acts(&cat, &["task", "take", "--json"]).ok().json();
        let task = taken["task"].as_str().unwrap_or_else(|| panic!("{taken}")).to_owned();
        scratch.acts(&cat, &["task", "park", &task, "--next", "go on"]).ok();
    }
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}
