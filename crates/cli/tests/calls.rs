//! Tool calls through the binary: nothing runs out between their start and their end.

use crate::harness::{Process, Scratch};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn entries(scratch: &Scratch, kind: &str) -> usize {
    let said = scratch.baton(&["journal", "--json", "--kind", kind]).ok();
    said.out.lines().filter(|line| line.contains(kind)).count()
}

#[test]
fn lesson_08_a_long_tool_call_keeps_its_claims() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let (alice, _process) = scratch.session_with_process("alice");
    let bob = scratch.session("bob");
    let token = scratch.acts(&alice, &["claim", "src/a.rs", "--json"]).ok().json()["token"].clone();
    scratch.acts(&alice, &["session", "call", "start", "--limit", "5h", "--id", "t1"]).ok();
    let refused = scratch.acts_later(&bob, 4 * HOUR, &["claim", "src/a.rs"]).refused(1);
    assert!(refused.err.contains("held by alice during a tool call, until"), "{refused:?}");
    let list = scratch.acts_later(&bob, 4 * HOUR, &["claims"]).ok();
    assert!(!list.out.contains("run out"), "{list:?}");
    let seats = scratch.acts_later(&bob, 4 * HOUR, &["session", "list"]).ok();
    assert!(seats.out.lines().any(|line| line.contains("alice") && line.contains("busy")));
    // The call ends, and nothing was lost: the same token, and a whole lease from now.
    scratch.acts_later(&alice, 4 * HOUR, &["session", "call", "end", "--id", "t1"]).ok();
    let token = token.as_str().unwrap();
    scratch.acts_later(&alice, 4 * HOUR, &["check", "src/a.rs", "--token", token]).ok();
    scratch.acts_later(&bob, 4 * HOUR + 29 * MINUTE, &["claim", "src/a.rs"]).refused(1);
    scratch.acts_later(&bob, 4 * HOUR + 31 * MINUTE, &["claim", "src/a.rs"]).ok();
    assert_eq!((entries(&scratch, "call_started"), entries(&scratch, "calls_ended")), (1, 1));
    scratch.acts_later(&bob, 4 * HOUR + 31 * MINUTE, &["journal", "verify"]).ok();
}

#[test]
fn a_call_keeps_nothing_past_its_limit() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    scratch.acts(&alice, &["session", "call", "start", "--limit", "1h"]).ok();
    scratch.acts_later(&bob, 59 * MINUTE, &["claim", "src/a.rs"]).refused(1);
    scratch.acts_later(&bob, 61 * MINUTE, &["claim", "src/a.rs"]).ok();
    let told = scratch.acts_later(&alice, 61 * MINUTE, &["session", "call", "end"]).ok();
    assert!(told.out.contains("you no longer hold src/a.rs"), "{told:?}");
    scratch.acts(&alice, &["session", "call", "start", "--limit", "7h"]).refused(2);
    scratch.baton(&["session", "call", "start"]).refused(1);
}

#[test]
fn lesson_08_short_calls_leave_no_trace() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    let before = scratch.baton(&["journal"]).ok().out;
    for minute in 0..5 {
        let call = ["session", "call", "start", "--limit", "9m"];
        scratch.acts_later(&alice, minute * MINUTE, &call).ok();
        scratch.acts_later(&alice, minute * MINUTE, &["session", "call", "end"]).ok();
    }
    assert_eq!(scratch.baton(&["journal"]).ok().out, before);
}

#[test]
fn a_process_that_is_gone_is_in_no_call() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let (alice, mut process) = scratch.session_with_process("alice");
    let bob = scratch.session("bob");
    let call = ["session", "call", "start", "--limit", "5h"];
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    scratch.acts(&alice, &call).ok();
    process.end();
    scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
    // The same for a call with a process of its own, once the lease alone has run out.
    let mut tool = Process::start();
    let pid = tool.0.id().to_string();
    scratch.acts(&bob, &[&call[..], &["--pid", &pid]].concat()).ok();
    let eve = scratch.session("eve");
    scratch.acts_later(&eve, HOUR, &["claim", "src/a.rs"]).refused(1);
    tool.end();
    scratch.acts(&eve, &["claim", "src/a.rs"]).refused(1);
    scratch.acts_later(&eve, HOUR, &["claim", "src/a.rs"]).ok();
}
