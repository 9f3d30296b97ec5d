//! `baton mcp` while something takes long: waits are told, cancelled and end with their client, and
//! nobody waits for anybody else's.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Scratch;
use crate::mcp::{Client, modern, said};

/// A client that waits for what ann holds, with its request.
fn waiting(scratch: &Scratch, ann: &str) -> (Client, u64) {
    scratch.acts(ann, &["claim", "src/a.rs"]).ok();
    let mut bob = Client::of_session(scratch, &scratch.session("bob"));
    bob.meta = json!({ "progressToken": 5 });
    let id = bob.ask(
        "tools/call",
        json!({ "name": "claim",
        "arguments": { "resources": ["src/a.rs"], "wait": "2m" } }),
    );
    scratch.until_waiting(1);
    bob.meta = json!({});
    (bob, id)
}

#[test]
fn who_waits_is_told_served_beside_others_and_gets_it() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    let (mut bob, id) = waiting(&scratch, &ann);
    let told = bob.until(|message| message["method"] == "notifications/progress");
    assert_eq!(told["params"]["progressToken"], 5, "{told}");
    assert!(told["params"]["message"].as_str().unwrap().contains("held by ann"), "{told}");
    bob.request("ping", json!({}));
    assert!(bob.good("status", &json!({})).contains("1 waiting"));
    scratch.acts(&ann, &["release", "--all"]).ok();
    let got = said(bob.answer(id)["result"].clone());
    assert!(got["content"][0]["text"].as_str().unwrap().starts_with("claimed src/a.rs"), "{got}");
}

#[test]
fn a_cancelled_wait_leaves_no_place_in_the_queue() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    let (mut bob, id) = waiting(&scratch, &ann);
    bob.tell("notifications/cancelled", &json!({ "requestId": id, "reason": "enough" }));
    scratch.until_waiting(0);
    bob.good("claim", &json!({ "resources": ["README.md"] }));
    scratch.acts(&ann, &["release", "--all"]).ok();
    assert!(bob.early.iter().all(|message| message["id"] != id), "no answer to what nobody wants");
    let held = scratch.baton(&["claims"]).ok().out;
    assert!(!held.contains("src/a.rs"), "{held}");

    // The same in the version without sessions.
    scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    let mut eve =
        Client::of(scratch.command(&["mcp"]).env("BATON_SESSION", scratch.session("eve")));
    eve.meta = modern();
    let id = eve.ask(
        "tools/call",
        json!({ "name": "claim",
        "arguments": { "resources": ["src/a.rs"], "wait": "2m" } }),
    );
    scratch.until_waiting(1);
    eve.tell("notifications/cancelled", &json!({ "requestId": id }));
    scratch.until_waiting(0);
}

#[test]
fn the_server_ends_with_its_client_also_while_a_call_waits() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    let (mut bob, _) = waiting(&scratch, &ann);
    let took = bob.close();
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert!(bob.child.wait().unwrap().success());
    scratch.until_waiting(0);

    let (mut bob, _) = waiting(&scratch, &ann);
    let killed =
        Command::new("kill").args(["-TERM", &bob.child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let took = bob.ended();
    assert!(took < Duration::from_secs(3), "{took:?}");
    // Whoever looks next sees that nobody waits there.
    scratch.acts(&ann, &["release", "--all"]).ok();
    let cat = scratch.session("cat");
    scratch.acts(&cat, &["claim", "src/a.rs"]).ok();

    // A server without any request, and one whose answers nobody reads.
    let mut idle = Client::start(&scratch);
    assert!(idle.close() < Duration::from_secs(3));
    let mut deaf = scratch.command(&["mcp"]);
    let mut deaf = deaf.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = deaf.stdin.take().unwrap();
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    // It fills both pipes: only who stops listening can let it go on.
    let writing = std::thread::spawn(move || input.write_all(ping.repeat(20_000).as_bytes()));
    std::thread::sleep(Duration::from_millis(200));
    drop(deaf.stdout.take());
    let _ = writing.join().unwrap();
    let begun = Instant::now();
    deaf.wait().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// A claim is served where it arrives, but not while others are at the store.
#[test]
fn a_ping_is_answered_while_a_claim_waits_for_the_store() {
    let scratch = Scratch::workspace();
    let mut ann = Client::of_session(&scratch, &scratch.session("ann"));
    ann.good("claim", &json!({ "resources": ["src/a.rs"] }));
    let gate = scratch.root().join(".git/baton/gate");
    let gate = std::fs::File::options().write(true).open(gate).unwrap();
    gate.lock().unwrap();
    let claim = json!({ "name": "claim", "arguments": { "resources": ["src/b.rs"] } });
    let claim = ann.ask("tools/call", claim);
    ann.request("ping", json!({}));
    assert!(ann.early.iter().all(|message| message["id"] != claim), "{:?}", ann.early);
    gate.unlock().unwrap();
    let got = said(ann.answer(claim)["result"].clone());
    assert!(got["content"][0]["text"].as_str().unwrap().starts_with("claimed src/b.rs"), "{got}");
}
