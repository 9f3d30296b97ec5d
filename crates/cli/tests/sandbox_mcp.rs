//! An MCP server inside a sandbox: its tools do what the role may, each step held as it must be.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::json;

use crate::mcp::Client;
use crate::sandbox_calls::Room;

fn serves(room: &Room, role: &str) -> Client {
    let mut client = Client::of(&mut room.command(&["sandbox", role, "--", "baton", "mcp"]));
    client.initialize("2025-06-18");
    client
}

pub(crate) fn offers(client: &mut Client, name: &str) -> bool {
    let list = client.request("tools/list", json!({}));
    list["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name)
}

#[test]
fn tools_commit_land_and_finish_a_task_from_inside() {
    let Some(room) = Room::new() else { return };
    let mut client = serves(&room, "code");
    client.good("task_add", &json!({ "title": "more", "paths": ["src/b.rs"] }));
    client.good("task_take", &json!({ "task": "t1", "claim": true }));
    std::fs::write(room.tree.join("src/b.rs"), "more\n").unwrap();
    let landed = client.good("commit_and_land", &json!({ "message": "more" }));
    assert!(landed.contains("committed ") && landed.contains("l1 landed"), "{landed}");
    assert!(room.scratch.git(&["ls-tree", "--name-only", "main", "src/"]).contains("b.rs"));
    let report = json!({ "action": "done", "task": "t1", "report_done": "b",
        "report_not_done": "nothing" });
    let done = client.good("task_update", &report);
    assert!(done.contains("done t1"), "{done}");
    let page = client.request("resources/read", json!({ "uri": "baton://task/t1" }));
    assert!(page["contents"][0]["text"].as_str().unwrap().contains("more"), "{page}");
}

#[test]
fn a_role_that_commits_nothing_does_not_by_a_tool() {
    let Some(room) = Room::new() else { return };
    let mut client = serves(&room, "review");
    assert!(!offers(&mut client, "commit_and_land") && offers(&mut client, "status"));
    assert!(offers(&mut serves(&room, "code"), "commit_and_land"));
    let (code, text) = client.refused("commit_and_land", &json!({ "message": "x" }));
    assert_eq!(code, "sandboxed", "{text}");
    assert!(text.contains("this role does not commit"), "{text}");
    let (_, text) = client.refused("gate", &json!({ "action": "ask", "ask": "?" }));
    assert!(text.contains("ask needs `on`"), "{text}");
    client.good("status", &json!({}));
}

#[test]
fn hooks_that_a_tool_runs_are_held_as_the_sandbox_is() {
    let Some(room) = Room::new() else { return };
    room.scratch.git(&["config", "core.hooksPath", ".husky"]);
    let hooks = room.tree.join(".husky");
    std::fs::create_dir(&hooks).unwrap();
    let script = "#!/bin/sh\ntouch \"$TMPDIR/x\" || exit 3\n\
                  git config -f \"$REPO/.git/config\" a.b c\necho x >> \"$REPO/a\"\n\
                  echo it was here; exit 1\n";
    std::fs::write(hooks.join("pre-commit"), script).unwrap();
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(hooks.join("pre-commit"), runs).unwrap();
    let mut client = serves(&room, "code");
    std::fs::write(room.tree.join("src/b.rs"), "more\n").unwrap();
    client.good("claim", &json!({ "resources": ["src/b.rs"] }));
    let asked = json!({ "message": "more", "paths": ["src/b.rs"], "land": false });
    let (_, said) = client.refused("commit_and_land", &asked);
    assert!(said.contains("it was here"), "{said}");
    assert!(!room.read(".git/config").contains("[a]"), "{}", room.read(".git/config"));
    assert_eq!(room.read("a"), "1\n2\n3\n4\n5\n");
}

/// The server lives long: what was right when it began may not be at its tenth call.
#[test]
fn git_is_not_led_astray_between_two_calls() {
    let Some(room) = Room::new() else { return };
    let settings = room.scratch.root().join(".git/worktrees/one/config.worktree");
    let before = std::fs::read(&settings).unwrap();
    let mut client = serves(&room, "code");
    client.good("conflicts", &json!({}));
    std::fs::write(&settings, "[core]\n\tfsmonitor = touch x\n").unwrap();
    client.good("conflicts", &json!({}));
    assert_eq!(std::fs::read(&settings).unwrap(), before);
}

#[test]
fn a_call_that_waits_ends_with_its_client() {
    let Some(room) = Room::new() else { return };
    let ann = room.scratch.session("ann");
    room.scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    let mut client = serves(&room, "code");
    let waits = json!({ "resources": ["src/a.rs"], "wait": "5m" });
    client.ask("tools/call", json!({ "name": "claim", "arguments": waits }));
    room.scratch.until_status_shows_waiting(1);
    assert!(client.close() < Duration::from_secs(10));
    room.scratch.until_status_shows_waiting(0);
}

#[test]
fn a_cancelled_wait_leaves_no_place_in_the_queue_from_inside() {
    let Some(room) = Room::new() else { return };
    let ann = room.scratch.session("ann");
    room.scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    let mut client = serves(&room, "code");
    let waits = json!({ "resources": ["src/a.rs"], "wait": "5m" });
    let id = client.ask("tools/call", json!({ "name": "claim", "arguments": waits }));
    room.scratch.until_waiting(1);
    client.tell("notifications/cancelled", &json!({ "requestId": id }));
    room.scratch.until_waiting(0);
    client.good("status", &json!({}));
}
