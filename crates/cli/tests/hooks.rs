//! `baton hook`: payloads of every client go in, and what they would let happen is looked at.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};

/// A client's hook in a scratch workspace.
pub(crate) fn hook(scratch: &Scratch, client: &str, payload: &Value) -> Said {
    hook_with(scratch, client, payload.to_string().as_bytes(), &[])
}

pub(crate) fn hook_with(
    scratch: &Scratch,
    client: &str,
    bytes: &[u8],
    set: &[(&str, &str)],
) -> Said {
    let mut command = scratch.command(&["hook", client]);
    command.envs(set.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may answer before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child.wait_with_output().unwrap().into()
}

/// An act as its client tells it.
pub(crate) struct Agent<'a> {
    pub(crate) scratch: &'a Scratch,
    pub(crate) client: &'static str,
    pub(crate) id: &'static str,
}

impl Agent<'_> {
    pub(crate) fn tells(&self, mut payload: Value) -> Said {
        let id = match self.client {
            "cursor" => "conversation_id",
            "opencode" => "sessionID",
            _ => "session_id",
        };
        payload[id] = json!(self.id);
        payload["cwd"] = json!(self.scratch.root());
        hook(self.scratch, self.client, &payload)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.scratch.root().join(name).display().to_string()
    }

    pub(crate) fn tool(&self, when: &str, name: &str, input: &Value) -> Said {
        let event = match (self.client, when) {
            ("gemini", "before") => "BeforeTool",
            ("gemini", _) => "AfterTool",
            ("cursor", "before") => "preToolUse",
            ("cursor", _) => "postToolUse",
            ("opencode", "before") => "tool.execute.before",
            ("opencode", _) => "tool.execute.after",
            (_, "before") => "PreToolUse",
            (_, _) => "PostToolUse",
        };
        self.tells(json!({ "hook_event_name": event, "tool_name": name, "tool_input": input,
            "tool_use_id": "c1", "callID": "c1" }))
    }

    /// Its tool that writes a whole file.
    pub(crate) fn write(&self, file: &str, text: &str) -> Said {
        let path = self.file(file);
        let (name, input) = match self.client {
            "codex" => {
                let patch = format!(
                    "*** Begin Patch\n*** Add File: {path}\n+{}\n*** End Patch\n",
                    text.trim_end()
                );
                ("apply_patch", json!({ "command": patch }))
            }
            "gemini" => ("write_file", json!({ "file_path": path, "content": text })),
            "opencode" => ("write", json!({ "filePath": path, "content": text })),
            "cursor" => ("Write", json!({ "path": path, "contents": text })),
            _ => ("Write", json!({ "file_path": path, "content": text })),
        };
        self.tool("before", name, &input)
    }

    pub(crate) fn shell(&self, when: &str, line: &str) -> Said {
        let name = match self.client {
            "gemini" => "run_shell_command",
            "opencode" => "bash",
            "cursor" => "Shell",
            _ => "Bash",
        };
        self.tool(when, name, &json!({ "command": line }))
    }
}

/// Why the act may not be; nothing when it may.
pub(crate) fn denied(said: &Said) -> Option<String> {
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    if said.out.trim().is_empty() {
        return None;
    }
    let answer: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    let own = &answer["hookSpecificOutput"];
    let decision = [&own["permissionDecision"], &answer["decision"], &answer["permission"]];
    let no = decision.iter().any(|word| **word == "deny");
    let why = [&own["permissionDecisionReason"], &answer["reason"], &answer["agent_message"]];
    no.then(|| why.iter().find_map(|why| why.as_str()).expect("a reason").to_owned())
}

const CLIENTS: [&str; 5] = ["claude", "codex", "gemini", "cursor", "opencode"];

#[test]
fn lesson_11_every_client_claims_by_editing_and_is_denied_what_another_holds() {
    Scratch::on_each_store("", |scratch| {
        for (at, client) in CLIENTS.into_iter().enumerate() {
            let mine = format!("src/{client}.rs");
            let agent = Agent { scratch, client, id: "first" };
            assert_eq!(denied(&agent.write(&mine, "x\n")), None, "{client}");
            assert_eq!(denied(&agent.write(&mine, "x\n")), None, "{client} again");
            let other = Agent { scratch, client: CLIENTS[(at + 1) % 5], id: "second" };
            let why = denied(&other.write(&mine, "y\n")).unwrap_or_else(|| panic!("{client}"));
            for part in ["is held by", "until", "baton task ready", "--wait 10m"] {
                assert!(why.contains(part), "{why}");
            }
        }
        let claims = scratch.baton(&["claims", "--json"]).ok().json();
        assert_eq!(claims["claims"].as_array().unwrap().len(), 5, "{claims}");
        let sessions = scratch.baton(&["session", "list", "--json"]).ok().json();
        assert_eq!(sessions["sessions"].as_array().unwrap().len(), 10, "{sessions}");
    });
}

#[test]
fn rubbish_passes_and_leaves_nothing_but_a_word_in_the_log() {
    let scratch = Scratch::workspace();
    let huge = format!(
        r#"{{"hook_event_name":"PreToolUse","session_id":"s","cwd":{:?},"tool_name":"Write",
            "tool_input":{{"file_path":"/elsewhere","content":"{}"}}}}"#,
        scratch.root(),
        "x".repeat(10 * 1024 * 1024)
    );
    for client in CLIENTS {
        let texts = ["", "not json", "[]", "null", "\u{0}"].map(str::as_bytes);
        for bytes in texts.into_iter().chain([&b"\xff\xfe{"[..]]) {
            let said = hook_with(&scratch, client, bytes, &[]);
            let what = String::from_utf8_lossy(bytes);
            assert_eq!((said.code, said.out.as_str()), (0, ""), "{client} {what:.40}");
            let log =
                format!("baton: this was not judged, because what came is no payload of {client}");
            assert!(said.err.starts_with(&log), "{client} {what:.40}: {}", said.err);
        }
        let said = hook_with(&scratch, client, huge.as_bytes(), &[]);
        assert_eq!(said.code, 0, "{client}");
        assert!(denied(&said).is_none(), "{client}");
    }
    assert_eq!(scratch.baton(&["claims"]).ok().out, "no claims\n");
}

/// The calls of each client, before and after: the tool of a shell and the event's name.
const CALLS: [(&str, &str, [&str; 2]); 5] = [
    ("claude", "Bash", ["PreToolUse", "PostToolUse"]),
    ("codex", "Bash", ["PreToolUse", "PostToolUse"]),
    ("gemini", "run_shell_command", ["BeforeTool", "AfterTool"]),
    ("cursor", "Shell", ["preToolUse", "postToolUse"]),
    ("opencode", "bash", ["tool.execute.before", "tool.execute.after"]),
];

#[test]
fn a_payload_that_strict_readers_refuse_is_judged_all_the_same() {
    let scratch = Scratch::workspace();
    let held = scratch.root().join("src/a.rs");
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (client, shell, [before, _]) in CALLS {
        let edit = if client == "gemini" { "write_file" } else { "Write" };
        let acts = [
            (edit, format!(r#""file_path":{held:?},"content":"x\ud83d""#)),
            (shell, r#""command":"echo x > src/a.rs","description":"\ude00""#.to_owned()),
            (shell, format!(r#""command":"echo x > src/a.rs","unknown":{deep}"#)),
        ];
        for (tool, input) in acts {
            let id = if client == "cursor" { "conversation_id" } else { "session_id" };
            let payload = format!(
                r#"{{"hook_event_name":"{before}","{id}":"s","cwd":{:?},"tool_name":"{tool}",
                    "tool_input":{{{input}}}}}"#,
                scratch.root()
            );
            let said = hook_with(&scratch, client, payload.as_bytes(), &[]);
            assert!(denied(&said).is_some(), "{client} {tool}: {said:?}");
        }
    }
}

#[test]
fn what_cannot_be_read_passes_and_the_model_is_told_where_it_hears() {
    let scratch = Scratch::workspace();
    let elsewhere = Scratch::repository();
    for (client, shell, events) in CALLS {
        let mut heard = Vec::new();
        for event in events {
            let cut = |root: &std::path::Path| {
                format!(
                    r#"{{"hook_event_name":"{event}","session_id":"s","cwd":{root:?},
                        "tool_name":"{shell}","tool_input":{{"comm"#
                )
            };
            let said = hook_with(&scratch, client, cut(&scratch.root()).as_bytes(), &[]);
            assert_eq!(said.code, 0, "{client} {event}: {said:?}");
            assert!(!said.out.contains("deny"), "{client} {event}: {said:?}");
            let fine = said.out.is_empty() || serde_json::from_str::<Value>(&said.out).is_ok();
            assert!(fine, "{client} {event}: {said:?}");
            heard.push(said.out.contains("was not judged"));
            let said = hook_with(&elsewhere, client, cut(&elsewhere.root()).as_bytes(), &[]);
            assert_eq!((said.code, said.out.as_str()), (0, ""), "{client} {event}");
        }
        assert!(heard.contains(&true), "{client}: {heard:?}");
    }
}

#[test]
fn a_folder_that_nobody_set_up_is_none_of_our_business() {
    let scratch = Scratch::repository();
    let agent = Agent { scratch: &scratch, client: "claude", id: "s" };
    let said = agent.write("src/a.rs", "x");
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
}

#[test]
fn a_path_is_what_it_is_and_no_pattern() {
    let scratch = Scratch::workspace();
    let agent = Agent { scratch: &scratch, client: "claude", id: "s" };
    for odd in ["app/[id]/page.tsx", "a*b", "with\nnewline", "@types/x", "it's \"quoted\"", "a#b"] {
        assert_eq!(denied(&agent.write(odd, "x")), None, "{odd:?}");
    }
    let other = Agent { scratch: &scratch, client: "codex", id: "t" };
    assert_eq!(denied(&other.write("app/i/page.tsx", "x")), None);
    assert!(denied(&other.write("app/[id]/page.tsx", "x")).is_some());
    let git = denied(&agent.write(".git/config", "x")).expect("git's own file");
    assert!(git.contains("belongs to git"), "{git}");
}

#[test]
fn a_patch_is_judged_by_every_path_it_names() {
    let scratch = Scratch::workspace();
    let holder = Agent { scratch: &scratch, client: "claude", id: "holder" };
    assert_eq!(denied(&holder.write("src/held.rs", "x")), None);
    let codex = Agent { scratch: &scratch, client: "codex", id: "c" };
    let patch = |body: &str| {
        let patch = format!("*** Begin Patch\n{body}\n*** End Patch\n");
        codex.tool("before", "apply_patch", &json!({ "command": patch }))
    };
    for body in [
        "*** Update File: src/a.rs\n@@\n-fn a() {}\n+fn b() {}\n*** Delete File: src/held.rs",
        "*** Update File: src/a.rs\n*** Move to: src/held.rs\n@@\n-fn a() {}\n+fn b() {}",
        "*** Add File: src/../src/held.rs\n+x",
        "*** Update File: src/held.rs\nrubbish without a hunk",
    ] {
        assert!(denied(&patch(body)).is_some_and(|why| why.contains("is held by")), "{body}");
    }
    let lie = codex.tool("before", "apply_patch", &json!({ "command": "*** Begin Patch" }));
    assert!(denied(&lie).is_some_and(|why| why.contains("cannot be read")), "{lie:?}");
    assert_eq!(denied(&patch("*** Update File: src/a.rs\n@@\n-fn a() {}\n+fn b() {}")), None);
}

#[test]
fn lesson_20_the_stash_and_the_whole_tree_are_refused_where_others_work() {
    let scratch = Scratch::workspace();
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    for line in ["git stash", "git reset --hard", "git add -A && git commit -m x"] {
        assert_eq!(denied(&ann.shell("before", line)), None, "alone: {line}");
    }
    let bob = Agent { scratch: &scratch, client: "codex", id: "bob" };
    assert_eq!(denied(&bob.write("src/b.rs", "x")), None);
    for line in [
        "git stash",
        "cd src && git stash pop",
        "bash -c 'git reset --hard HEAD'",
        "git clean -fdx",
        "git checkout main",
        "git add -A",
        "git commit -am x",
        "true; env A=1 git rebase main | cat",
    ] {
        let why = denied(&ann.shell("before", line)).unwrap_or_else(|| panic!("{line}"));
        assert!(
            why.contains("was not run") && why.contains(" in this tree") || why.contains("baton ")
        );
    }
    for line in ["git status", "git log --oneline", "ls -la", "git push --force", "baton trust"] {
        let no = denied(&ann.shell("before", line)).is_some();
        assert_eq!(no, line.contains("force") || line.contains("trust"), "{line}");
    }
}

#[test]
fn a_write_through_the_shell_is_an_edit() {
    let scratch = Scratch::workspace();
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    let bob = Agent { scratch: &scratch, client: "gemini", id: "bob" };
    assert_eq!(denied(&ann.write("src/held.rs", "x")), None);
    for line in [
        "echo x > src/held.rs",
        "cd src; sed -i s/a/b/ held.rs",
        "cat <<'E' | tee src/held.rs\nx\nE",
        "mv src/held.rs src/other.rs",
        "rm -rf src",
        "rm src/*.rs",
    ] {
        let why = denied(&bob.shell("before", line)).unwrap_or_else(|| panic!("{line}"));
        assert!(why.contains("held by"), "{why}");
    }
    assert_eq!(denied(&bob.shell("before", "echo x > src/free.rs")), None);
    assert!(denied(&ann.write("src/free.rs", "x")).is_some(), "the redirection claimed it");
}

#[test]
fn what_a_command_changed_is_found_afterwards() {
    let scratch = Scratch::workspace();
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    let bob = Agent { scratch: &scratch, client: "codex", id: "bob" };
    assert_eq!(denied(&ann.write("src/held.rs", "x")), None);
    scratch.write("src/held.rs", "ann's\n");
    scratch.write("build.py", "open('src/held.rs', 'w')\nopen('src/made.rs', 'w')\n");
    let line = "python3 build.py";
    assert_eq!(denied(&bob.shell("before", line)), None);
    scratch.write("src/held.rs", "bob's\n");
    scratch.write("src/made.rs", "bob's\n");
    let said = bob.shell("after", line);
    assert!(said.out.contains("your command changed src/held.rs"), "{said:?}");
    let journal = scratch.baton(&["journal"]).ok().out;
    assert!(journal.contains("wrote to src/held.rs, which"), "{journal}");
    let claims = scratch.baton(&["claims", "--path", "src/made.rs", "--json"]).ok().json();
    let other = denied(&ann.write("src/made.rs", "x"));
    assert!(claims["claims"][0]["holder"].is_object() || other.is_some(), "{claims}");
    // What ann writes while bob's next command runs is not laid at bob's door.
    assert_eq!(denied(&bob.shell("before", line)), None);
    scratch.write("src/held.rs", "ann's again\n");
    let input = json!({ "file_path": ann.file("src/held.rs"), "content": "ann's again\n" });
    ann.tool("after", "Write", &input);
    let said = bob.shell("after", line);
    assert!(!said.out.contains("your command changed"), "{said:?}");
    // What bob's command writes over it after that is.
    assert_eq!(denied(&bob.shell("before", line)), None);
    scratch.write("src/held.rs", "ann's once more\n");
    ann.tool("after", "Write", &input);
    std::thread::sleep(std::time::Duration::from_millis(60));
    scratch.write("src/held.rs", "generated\n");
    let said = bob.shell("after", line);
    assert!(said.out.contains("your command changed src/held.rs"), "{said:?}");
    let story = scratch.baton(&["why", "src/held.rs"]).ok().out;
    assert!(story.contains("wrote it around the doors while"), "{story}");
}

/// Its agents think that they are guarded: the files of the project say so.
#[test]
fn in_a_clone_that_is_not_set_up_an_agent_is_told() {
    let scratch = Scratch::workspace();
    scratch.write("baton.toml", "");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "wired"]);
    let clone = scratch.path("clone");
    scratch.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
    let tells = |folder: &std::path::Path, event: &str| {
        let payload = json!({ "session_id": "a", "cwd": folder, "hook_event_name": event,
            "source": "startup", "prompt": "go", "tool_name": "Write", "tool_use_id": "t",
            "tool_input": { "file_path": folder.join("a"), "content": "x" } });
        hook(&scratch, "claude", &payload).out
    };
    for event in ["SessionStart", "UserPromptSubmit"] {
        let said = tells(&clone, event);
        assert!(said.contains("not set up in this clone") && said.contains("baton init"), "{said}");
    }
    assert_eq!(tells(&clone, "PreToolUse"), "");
    let elsewhere = scratch.path("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".git")).unwrap();
    assert_eq!(tells(&elsewhere, "SessionStart"), "", "none of our business");
}

#[test]
fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    let scratch = Scratch::workspace();
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    let read = json!({ "file_path": ann.file("src/a.rs") });
    ann.tool("after", "Read", &read);
    scratch.write("src/a.rs", "fn changed() {}\n");
    let why = denied(&ann.write("src/a.rs", "fn mine() {}\n")).expect("stale");
    assert!(why.contains("since you read it") && why.contains("Read it again"), "{why}");
    ann.tool("after", "Read", &read);
    assert_eq!(denied(&ann.write("src/a.rs", "fn both() {}\n")), None);
}

#[test]
fn an_edit_that_takes_back_what_another_wrote_is_named_and_not_made() {
    let scratch = Scratch::workspace();
    let text = "fn one() {\n    a();\n}\n\nfn two() {\n    b();\n}\n\nfn three() {}\n";
    scratch.write("src/a.rs", text);
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    let bob = scratch.session("bob");
    let read = json!({ "file_path": ann.file("src/a.rs") });
    ann.tool("after", "Read", &read);
    // Bob works on it meanwhile, and lets it go.
    scratch.baton(&["--session", &bob, "claim", "src/a.rs"]).ok();
    scratch.write("src/a.rs", &text.replace("    b();\n", "    b();\n    checked();\n"));
    scratch.baton(&["--session", &bob, "release", "--all"]).ok();
    let edit = |old: &str, new: &str| {
        let path = ann.file("src/a.rs");
        let input = json!({ "file_path": path, "old_string": old, "new_string": new });
        ann.tool("before", "Edit", &input)
    };
    let why = denied(&edit("    checked();\n}", "}")).expect("it takes back what bob wrote");
    assert!(why.contains("was changed by bob (two)"), "{why}");
    assert!(why.contains("would take back 1 line of that. Read it again"), "{why}");
    // Elsewhere in the file it may be, and is told what changed.
    let said = edit("fn three() {}", "fn three() { c(); }");
    assert_eq!(denied(&said), None);
    assert!(said.out.contains("was changed by bob (two) since you read"), "{said:?}");
    // Who has read it knows what it does.
    ann.tool("after", "Read", &read);
    assert_eq!(denied(&edit("    checked();\n}", "}")), None);
}

#[test]
fn append_zones_take_lines_at_the_end_only() {
    let scratch = Scratch::with_policy("[[zone]]\npaths = [\"LOG.md\"]\npolicy = \"append\"\n");
    scratch.write("LOG.md", "one\n");
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    let bob = Agent { scratch: &scratch, client: "gemini", id: "bob" };
    assert_eq!(denied(&ann.write("LOG.md", "one\ntwo\n")), None);
    assert_eq!(denied(&bob.shell("before", "echo three >> LOG.md")), None);
    let why = denied(&bob.write("LOG.md", "two\n")).expect("a line would go");
    assert!(why.contains("append zone"), "{why}");
}

#[test]
fn hook_shell_and_credential_of_one_agent_are_one_session() {
    let scratch = Scratch::workspace();
    let file = scratch.path("env");
    let start = json!({ "hook_event_name": "SessionStart", "source": "startup",
        "session_id": "ann", "cwd": scratch.root() });
    let path = file.display().to_string();
    let said = hook_with(
        &scratch,
        "claude",
        start.to_string().as_bytes(),
        &[("CLAUDE_ENV_FILE", path.as_str())],
    );
    assert!(said.out.contains("additionalContext") && said.out.contains("You are"), "{said:?}");
    let exported = std::fs::read_to_string(&file).unwrap();
    let credential = exported.trim().trim_start_matches("export BATON_SESSION='");
    let credential = credential.trim_end_matches('\'');
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    assert_eq!(denied(&ann.write("src/mine.rs", "x")), None);
    let mine = scratch.baton(&["--session", credential, "claims", "--mine"]).ok().out;
    assert!(mine.contains("src/mine.rs"), "{mine}");
    // The environment of `baton start`: the first id that is told is the session's, another is
    // another agent that only inherited it.
    let launched = scratch.baton(&["session", "start", "--client", "codex", "--json"]).ok().json();
    let credential = launched["credential"].as_str().unwrap();
    let tell = |id: &str, file: &str| {
        let patch = format!("*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch");
        let payload = json!({ "hook_event_name": "PreToolUse", "session_id": id,
            "cwd": scratch.root(), "tool_name": "apply_patch",
            "tool_input": { "command": patch } });
        let bytes = payload.to_string();
        denied(&hook_with(&scratch, "codex", bytes.as_bytes(), &[("BATON_SESSION", credential)]))
    };
    assert_eq!((tell("one", "src/one.rs"), tell("two", "src/two.rs")), (None, None));
    let mine = scratch.baton(&["--session", credential, "claims", "--mine"]).ok().out;
    assert!(mine.contains("src/one.rs") && !mine.contains("src/two.rs"), "{mine}");
    assert!(tell("two", "src/one.rs").is_some());
}

#[test]
fn a_session_that_ended_comes_back_to_what_it_held() {
    let scratch = Scratch::workspace();
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    assert_eq!(denied(&ann.write("src/mine.rs", "x")), None);
    ann.tells(json!({ "hook_event_name": "SessionEnd", "reason": "other" }));
    let bob = Agent { scratch: &scratch, client: "codex", id: "bob" };
    assert!(denied(&bob.write("src/mine.rs", "x")).is_some(), "it waits for ann's return");
    ann.tells(json!({ "hook_event_name": "SessionStart", "source": "resume" }));
    assert_eq!(denied(&ann.write("src/mine.rs", "x")), None);
    let sessions = scratch.baton(&["session", "list", "--json"]).ok().json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2, "{sessions}");
}

#[test]
fn subagents_of_one_session_keep_out_of_each_others_files() {
    let scratch = Scratch::workspace();
    let write = |agent: Option<&str>, file: &str| {
        let mut payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s",
            "cwd": scratch.root(), "tool_name": "Write",
            "tool_input": { "file_path": scratch.root().join(file), "content": "x" } });
        if let Some(agent) = agent {
            payload["agent_id"] = json!(agent);
        }
        denied(&hook(&scratch, "claude", &payload))
    };
    assert_eq!(write(Some("one"), "src/one.rs"), None);
    let why = write(Some("two"), "src/one.rs").expect("a sibling");
    assert!(why.contains("subagent one"), "{why}");
    assert_eq!(write(None, "src/one.rs"), None, "the parent may always");
    let stop = json!({ "hook_event_name": "SubagentStop", "session_id": "s", "agent_id": "one",
        "cwd": scratch.root() });
    hook(&scratch, "claude", &stop);
    let listed = scratch.baton(&["claims"]).ok().out;
    assert!(!listed.contains("subagent one"), "{listed}");
}

#[test]
fn the_primer_fits_in_what_a_model_is_given() {
    let scratch = Scratch::workspace();
    for number in 0..40 {
        let title = format!("task {number} {}", "with many words ".repeat(10));
        scratch.baton(&["task", "add", &title]).ok();
        let note = format!("decision {number} {}", "because of this and that ".repeat(20));
        let credential = scratch.session(&format!("other-{number}"));
        scratch.acts(&credential, &["note", "decision", &note]).ok();
        scratch.acts(&credential, &["claim", &format!("src/file-{number}.rs")]).ok();
    }
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    let said = ann.tells(json!({ "hook_event_name": "SessionStart", "source": "startup" }));
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    let text = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(text.len() <= 2_100 && text.contains("You are") && text.contains("more: "), "{text}");
}

#[test]
fn lesson_13_a_payload_that_does_not_end_is_not_waited_for() {
    let scratch = Scratch::workspace();
    for text in ["", "{\"session_id\": \"c\","] {
        let begun = std::time::Instant::now();
        let mut command = scratch.command(&["hook", "claude"]);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        let said = Said::from(child.wait_with_output().unwrap()).ok();
        drop(input);
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{said:?}");
        assert!(said.err.contains("no answer within 2 s") && said.out.is_empty(), "{said:?}");
    }
}

#[test]
fn agents_do_not_edit_their_own_doors_without_a_word() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let agent = Agent { scratch: &scratch, client: "claude", id: "c-1" };
    for path in [".claude/settings.json", ".mcp.json", "AGENTS.md", ".baton/rules.md"] {
        assert!(denied(&agent.write(path, "x")).is_some(), "{path:?}");
    }
    for line in [
        "rm .claude/settings.json",
        "mv .claude x",
        "chmod -w .claude/settings.json",
        "chmod -x .git/baton/hooks/pre-commit",
        "rm .git/baton/hooks/pre-commit",
        "sed -i s/a/b/ .baton/rules.md",
    ] {
        assert!(denied(&agent.shell("before", line)).is_some(), "{line}");
    }
    // The rules are the project's: who has claimed them writes them, by whichever door.
    let own = ["session", "start", "--client", "claude", "--client-session", "c-1", "--json"];
    let own = scratch.baton(&own).ok().json()["credential"].as_str().unwrap().to_owned();
    scratch.acts(&own, &["claim", ".baton/rules.md"]).ok();
    assert_eq!(denied(&agent.shell("before", "sed -i s/a/b/ .baton/rules.md")), None);
}
