//! What agents with tools alone are told to do next, and that they can do it.

use serde_json::{Value, json};

use crate::harness::Scratch;
use crate::mcp::Client;

/// The step that a refusal names, done as it is said.
fn follows(client: &mut Client, step: &str) -> Value {
    let (tool, given) = step.split_once(" with ").unwrap_or((step, "{}"));
    let given: Value = serde_json::from_str(given).unwrap_or_else(|_| panic!("{step}"));
    client.call(tool.trim_start_matches("call "), &given)
}

fn next_of(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    let next = result["structuredContent"]["next"].as_str().unwrap().to_owned();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&format!("next: {next}")), "every word stands in both: {result}");
    next
}

#[test]
fn a_refusal_names_tools_and_their_arguments() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    scratch.acts(&bob, &["claim", "held.txt", "--why", "an alias of --reason"]).ok();
    let mut client = Client::of_session(&scratch, &ann);
    let result = client.call("claim", &json!({ "resources": ["held.txt"] }));
    let next = next_of(&result);
    assert_eq!(next, r#"call claim with {"resources":["held.txt"],"wait":"5m"}"#);
    assert!(result.to_string().contains("an alias of --reason"), "{result}");
    client.good("task_add", &json!({ "title": "parse dates", "paths": ["src/a.rs"] }));
    let text = client.good("task_take", &json!({}));
    assert!(!text.contains("next: baton"), "{text}");
    scratch.write("src/a.rs", "fn changed() {}\n");
    client.good("claim", &json!({ "resources": ["src/a.rs"] }));
    let offer = json!({ "action": "offer", "id": "t1", "state": "half of it stands in a.rs",
        "remaining": "the other half", "next": "write the parser of months" });
    let next = next_of(&client.call("handoff", &offer));
    assert_eq!(next, "call handoff again with `decisions` (\"what: why\")");
    let next = next_of(&client.call("handoff", &json!({ "action": "show", "id": "t9-h1" })));
    let result = follows(&mut client, &next);
    assert_eq!(result["isError"], false, "{next}: {result}");
    let land = client.call("commit_and_land", &json!({}));
    assert_eq!(next_of(&land), r#"call commit_and_land with {"branch":"BRANCH"}"#);
}

/// One answer says what is taken and what is missing, and the step is the way on.
#[test]
fn a_wrong_name_is_answered_with_the_right_one() {
    let scratch = Scratch::workspace();
    let mut client = Client::of_session(&scratch, &scratch.session("ann"));
    for (tool, given, says, next) in [
        (
            "claim",
            json!({ "paths": ["a"] }),
            "no argument `paths`: it takes resources, reason, wait, shared, ask; \
             claim needs `resources`",
            "call claim with resources",
        ),
        (
            "handoff",
            json!({ "task": "t1" }),
            "handoff needs `action` (one of offer, accept, decline, list, show)",
            "call handoff with action",
        ),
        (
            "handoff",
            json!({ "task": "t1", "action": "offer" }),
            "it takes action, id,",
            "call handoff with id",
        ),
        (
            "task_update",
            json!({ "id": "t1" }),
            "note) and `task`",
            "call task_update with action and task",
        ),
        (
            "task_update",
            json!({ "id": "t1", "action": "done" }),
            "no argument `id`: it takes action, task,",
            "call task_update with task",
        ),
        (
            "release",
            json!({ "paths": ["a"] }),
            "needs either `resources` or `all`",
            "call release with resources or all",
        ),
        (
            "commit_and_land",
            json!({ "msg": "change" }),
            "no argument `msg`: it takes message,",
            "call commit_and_land again with what it takes, or without it",
        ),
    ] {
        let result = client.call(tool, &given);
        assert_eq!(next_of(&result), next, "{result}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(says), "{result}");
    }
}

/// It is where it was to go: nothing failed.
#[test]
fn a_commit_on_the_target_itself_needs_no_landing() {
    let scratch = Scratch::with_policy("[queue]\nguard = \"off\"\n");
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    let ann = scratch.session("ann");
    let mut client = Client::of_session(&scratch, &ann);
    scratch.write("src/a.rs", "fn changed() {}\n");
    let wanted = json!({ "message": "change", "paths": ["src/a.rs"] });
    let text = client.good("commit_and_land", &wanted);
    assert!(text.contains("committed "), "{text}");
    assert!(text.contains("main is the target: nothing is left to land"), "{text}");
    assert!(scratch.git(&["show", "main:src/a.rs"]).contains("changed"));
}

/// On a guarded target it goes to a branch of its own, and that one lands.
#[test]
fn a_commit_that_was_diverted_lands_as_its_own_branch() {
    let scratch = crate::landing::workspace("[queue]\nguard = \"all\"\n");
    let ann = scratch.session("ann");
    let mut client = Client::of_session(&scratch, &ann);
    scratch.write("src/a.rs", "fn changed() {}\n");
    let wanted = json!({ "message": "change", "paths": ["src/a.rs"] });
    let text = client.good("commit_and_land", &wanted);
    assert!(text.contains("landed"), "{text}");
    assert!(scratch.git(&["show", "main:src/a.rs"]).contains("changed"));
}

#[test]
fn what_is_asked_for_wrongly_is_named_as_the_tool_names_it() {
    let scratch = Scratch::workspace();
    let mut client = Client::of_session(&scratch, &scratch.session("ann"));
    client.good("task_add", &json!({ "title": "one" }));
    let (_, text) = client.refused("task_add", &json!({ "split": "t1" }));
    assert!(text.contains("needs `parts`") && !text.contains("children"), "{text}");
    let (_, text) = client.refused("task_list", &json!({ "limit": 0 }));
    assert!(text.contains("`limit` is 1 or more"), "{text}");
    let (_, text) = client.refused("claim", &json!({ "resources": ["a"], "ask": " " }));
    assert!(text.contains("needs `ask`"), "{text}");
    let (_, text) = client.refused("task_take", &json!({ "task": "t".repeat(100_000) }));
    assert!(text.len() < 10_000, "{} bytes", text.len());
}

#[test]
fn a_blocked_task_is_no_dead_end() {
    let scratch = Scratch::workspace();
    let mut client = Client::of_session(&scratch, &scratch.session("ann"));
    client.good("task_add", &json!({ "title": "one" }));
    client.good("task_take", &json!({ "task": "t1" }));
    client.good("task_update", &json!({ "action": "block", "task": "t1", "on": "an answer" }));
    let park = json!({ "action": "park", "task": "t1", "next": "go on" });
    let next = next_of(&client.call("task_update", &park));
    let reopen = r#"call task_update with {"action":"reopen","task":"t1"}"#;
    assert!(next.starts_with(reopen), "{next}");
    assert_eq!(follows(&mut client, reopen)["isError"], false);
    client.good("task_take", &json!({ "task": "t1" }));
}

#[test]
fn a_model_reads_whole_lines_and_hears_of_a_store_that_does_not_answer() {
    let scratch = Scratch::workspace();
    let mut client = Client::of_session(&scratch, &scratch.session("ann"));
    let long = format!("src/{}.rs", "long/".repeat(40));
    client.good("claim", &json!({ "resources": [long] }));
    let status = client.good("status", &json!({}));
    assert!(status.contains(&long), "{status}");
    drop(client);
    std::fs::rename(scratch.store().join("store.db"), scratch.path("away")).unwrap();
    let mut client = Client::start(&scratch);
    client.initialize("2025-06-18");
    let id = client.ask("resources/read", json!({ "uri": "baton://status" }));
    assert_eq!(client.answer(id)["error"]["code"], -32603);
}
