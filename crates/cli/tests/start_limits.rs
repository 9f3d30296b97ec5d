//! What `baton start` tells each client of a role, with stand-ins that print what they were told.
//!
//! That the real clients then do not offer the tools is seen in `clients.rs`.

use serde_json::Value;

use crate::harness::{Said, Scratch};
use crate::start::{client, command, start};

/// Prints its arguments, the files they point at, and what concerns opencode. As Codex, it also
/// lists models.
const TELLS: &str = r#"
if [ "$1 $2" = "debug models" ]; then
  echo '{"models":[{"slug":"m","apply_patch_tool_type":"freeform","context_window":9}]}'
  exit
fi
for word; do
  echo "word $word"
  case $word in
    --admin-policy=*) file=${word#*=} ;;
    model_catalog_json=*) file=${word#*=}; file=${file#?}; file=${file%?} ;;
    *) continue ;;
  esac
  sed 's/^/file /' "$file"; echo
  (echo x >> "$file") 2>/dev/null && echo "it can be changed"
done
env | grep '^OPENCODE_'
true
"#;

fn words(said: &Said) -> Vec<&str> {
    said.out.lines().filter_map(|line| line.strip_prefix("word ")).collect()
}

fn variable(said: &Said, name: &str) -> Value {
    let text = said.out.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    serde_json::from_str(text.unwrap_or_default()).unwrap_or_else(|_| panic!("{name}: {said:?}"))
}

/// A role without a shell, which none of the built-in ones is.
const READER: &str = "\
[roles.reader]
write = []
tools = [\"read\", \"search\", \"web\"]
commit = false
land = false
deploy = false
";

/// A workspace with a stand-in for every client.
fn furnished() -> Scratch {
    let scratch = Scratch::with_policy(READER);
    furnish(&scratch);
    scratch
}

fn furnish(scratch: &Scratch) {
    for name in ["claude", "codex", "gemini", "cursor-agent", "opencode", "aider"] {
        client(scratch, name, TELLS);
    }
}

/// Nothing where no role can be held.
fn started(scratch: &Scratch, words: &[&str]) -> Option<Said> {
    let said = start(scratch, words);
    if said.code == 4 && said.err.contains("Landlock") {
        eprintln!("skipped: {said:?}");
        return None;
    }
    assert_eq!(said.code, 0, "{said:?}");
    Some(said)
}

/// The client, the role, what it is told before the user's words, and what is said of it.
const TOLD: [(&str, &str, &[&str], &str); 14] = [
    (
        "claude",
        "review",
        &["--disallowedTools=Edit,Write,NotebookEdit,Task,Workflow,EnterWorktree"],
        "edit, agents",
    ),
    (
        "claude",
        "reader",
        &["--disallowedTools=Edit,Write,NotebookEdit,Bash,Monitor,Task,Workflow,EnterWorktree"],
        "edit, shell, agents",
    ),
    ("claude", "code", &["--disallowedTools=Task,Workflow,EnterWorktree"], "agents"),
    ("claude", "orchestrator", &["--disallowedTools=EnterWorktree"], ""),
    (
        "codex",
        "reader",
        &[
            "-c",
            "features.shell_tool=false",
            "-c",
            "features.multi_agent=false",
            "-c",
            "features.multi_agent_v2=false",
            "-c",
            "model_catalog_json=",
        ],
        "edit, shell, agents",
    ),
    (
        "codex",
        "code",
        &["-c", "features.multi_agent=false", "-c", "features.multi_agent_v2=false"],
        "agents",
    ),
    ("gemini", "review", &["--admin-policy="], "edit, agents"),
    ("gemini", "orchestrator", &[], ""),
    ("cursor-agent", "reader", &["--mode=ask"], "edit, shell"),
    // It has no mode without edits that keeps the shell.
    ("cursor-agent", "review", &[], ""),
    ("opencode", "review", &[], "edit, agents"),
    ("aider", "reader", &["--chat-mode=ask", "--no-suggest-shell-commands"], "edit, shell"),
    ("aider", "review", &["--chat-mode=ask"], "edit"),
    ("aider", "code", &[], ""),
];

#[test]
fn each_client_is_told_in_its_own_words_which_tools_are_gone() {
    let scratch = furnished();
    for (name, role, told, gone) in TOLD {
        let start = [name, "--tree", "here", "--role", role, "--", "-p", "two words"];
        let Some(said) = started(&scratch, &start) else { return };
        let heard = words(&said);
        let (before, own) = heard.split_at(heard.len() - 2);
        assert_eq!(own, ["-p", "two words"], "the user's own are last: {said:?}");
        assert_eq!(before.len(), told.len(), "{name} {role}: {said:?}");
        for (heard, told) in before.iter().zip(told) {
            let whole = !told.ends_with('=');
            assert!(heard.starts_with(told) && (!whole || heard == told), "{name}: {said:?}");
        }
        let sentence = format!("does not offer its model {gone}\n");
        assert_eq!(said.err.contains("does not offer"), !gone.is_empty(), "{name}: {said:?}");
        assert!(gone.is_empty() || said.err.contains(&sentence), "{name} {role}: {said:?}");
        assert!(!said.out.contains("it can be changed"), "{said:?}");
    }
    // Without a role nobody is told anything.
    for name in ["claude", "codex", "gemini", "cursor-agent", "opencode", "aider"] {
        let said = start(&scratch, &[name, "--tree", "here", "--", "alone"]);
        assert_eq!(words(&said), ["alone"], "{said:?}");
        assert!(!said.out.contains("OPENCODE_"), "{said:?}");
    }
}

#[test]
fn what_a_client_is_pointed_at_says_it_and_goes_with_the_client() {
    let scratch = furnished();
    let Some(said) = started(&scratch, &["codex", "--tree", "here", "--role", "review"]) else {
        return;
    };
    let file = said.out.lines().find_map(|line| line.strip_prefix("file ")).unwrap();
    let models: Value = serde_json::from_str(file).unwrap();
    assert_eq!(models.to_string(), "{\"models\":[{\"context_window\":9,\"slug\":\"m\"}]}");
    let word = *words(&said).last().unwrap();
    let path = word.strip_prefix("model_catalog_json=\"").unwrap().trim_end_matches('"');
    assert!(!std::path::Path::new(path).exists(), "{path}");

    let said = started(&scratch, &["gemini", "--tree", "here", "--role", "review"]).unwrap();
    let lines = said.out.lines().filter_map(|line| line.strip_prefix("file "));
    let rule = "[[rule]]\ntoolName = [\"write_file\", \"replace\", \"invoke_agent\"]\n\
                decision = \"deny\"\npriority = 999\ndenyMessage = \"your role is review\"";
    assert_eq!(lines.collect::<Vec<_>>().join("\n"), rule);

    let mut with_own =
        command(&scratch, &["start", "opencode", "--tree", "here", "--role", "review"]);
    with_own.env("OPENCODE_PERMISSION", "{\"bash\":\"ask\",\"edit\":\"allow\"}");
    let said = Said::from(with_own.output().unwrap());
    let permission = variable(&said, "OPENCODE_PERMISSION");
    assert_eq!(permission.to_string(), "{\"bash\":\"ask\",\"edit\":\"deny\",\"task\":\"deny\"}");
    let config = variable(&said, "OPENCODE_CONFIG_CONTENT");
    assert_eq!(config["default_agent"], "baton-review");
    assert_eq!(config["agent"]["baton-review"]["permission"]["edit"], "deny");
    assert_eq!(config["agent"]["baton-review"]["permission"].get("bash"), None);
    let mut with_own =
        command(&scratch, &["start", "opencode", "--tree", "here", "--role", "review"]);
    with_own.env("OPENCODE_CONFIG_CONTENT", "{\"theme\":\"x\"}");
    let said = Said::from(with_own.output().unwrap());
    assert_eq!(variable(&said, "OPENCODE_CONFIG_CONTENT").to_string(), "{\"theme\":\"x\"}");
    assert_eq!(variable(&said, "OPENCODE_PERMISSION")["edit"], "deny");
}

#[test]
fn a_codex_that_lists_no_models_starts_all_the_same() {
    let scratch = Scratch::workspace();
    for answer in ["exit 2", "echo nothing; exit", "echo '{\"models\":[]}'; exit"] {
        let script = format!("[ \"$1\" = debug ] && {{ {answer}; }}\n{TELLS}");
        client(&scratch, "codex", &script);
        let words = ["codex", "--tree", "here", "--role", "review"];
        let Some(said) = started(&scratch, &words) else { return };
        assert!(!said.out.contains("model_catalog_json"), "{answer}: {said:?}");
        assert!(said.err.contains("does not offer its model agents\n"), "{answer}: {said:?}");
    }
}

#[test]
fn the_role_of_a_task_or_a_handoff_comes_with_it() {
    let policy = "[tasks]\non_exhausted = \"role:senior\"\n";
    Scratch::on_each_store(policy, the_role_comes_along);
}

fn the_role_comes_along(scratch: &Scratch) {
    furnish(scratch);
    let ann = scratch.session("ann");
    scratch.acts(&ann, &["task", "add", "Judge it", "--role", "review"]).ok();
    scratch.acts(&ann, &["task", "add", "Paint it", "--role", "senior"]).ok();
    let told = "--disallowedTools=Edit,Write,NotebookEdit,Task,Workflow,EnterWorktree";
    let start = ["claude", "--tree", "here", "--task", "t1"];
    let Some(said) = started(scratch, &start) else { return };
    assert_eq!(words(&said), [told], "{said:?}");
    assert!(said.err.contains("sandbox: review writes nothing"), "{said:?}");
    // A role that the policy only names: the task is taken, and nothing is held.
    let said = started(scratch, &["claude", "--tree", "here", "--task", "t2"]).unwrap();
    assert!(words(&said).is_empty() && !said.err.contains("sandbox:"), "{said:?}");
    assert!(said.err.contains("with t2"), "{said:?}");

    scratch.acts(&ann, &["task", "add", "Judge that", "--paths", "src/a.rs"]).ok();
    scratch.acts(&ann, &["task", "take", "t3"]).ok();
    let offer = ["handoff", "offer", "t3", "--to", "role:review", "--state", "half"];
    let rest = ["--remaining", "the rest", "--next", "read src/a.rs and judge it"];
    scratch.acts(&ann, &[&offer[..], &rest].concat()).ok();
    let accept = ["handoff", "accept", "t3", "--start", "claude", "--", "own"];
    let said = Said::from(command(scratch, &accept).output().unwrap());
    assert_eq!(words(&said), [told, "own"], "{said:?}");
    assert!(said.err.contains("sandbox: review writes nothing"), "{said:?}");
}

#[test]
fn a_role_that_is_inherited_is_told_and_held_too() {
    let scratch = furnished();
    let started = ["session", "start", "--name", "eve", "--role", "verify", "--json"];
    let eve = scratch.baton(&started).ok().json()["credential"].as_str().unwrap().to_owned();
    let mut by_eve = command(&scratch, &["start", "claude", "--tree", "here"]);
    let said = Said::from(by_eve.env("BATON_SESSION", &eve).output().unwrap());
    if said.code == 4 && said.err.contains("Landlock") {
        return eprintln!("skipped: {said:?}");
    }
    let told = "--disallowedTools=Edit,Write,NotebookEdit,Task,Workflow,EnterWorktree";
    assert_eq!(words(&said), [told], "{said:?}");
    assert!(said.err.contains("sandbox: verify writes nothing"), "{said:?}");
    // Eve is at work here; who writes nothing is in nobody's way all the same.
    client(&scratch, "claude", "echo x > src/a.rs || echo held; pwd");
    let mut by_eve = command(&scratch, &["start", "claude"]);
    let said = Said::from(by_eve.env("BATON_SESSION", &eve).output().unwrap());
    assert!(said.out.starts_with("held\n") && !said.err.contains("new tree"), "{said:?}");
    // A client that comes back to its session is held to the role that this one has.
    client(&scratch, "codex", "baton claim src/a.rs --shared; echo x > src/a.rs || echo held");
    let said = start(&scratch, &["codex", "--tree", "here", "--role", "verify"]);
    assert!(said.out.contains("held\n"), "{said:?}");
    let again = start(&scratch, &["codex", "--tree", "here"]);
    let resumed = again.err.contains("again, with what it left");
    assert_eq!(again.out.contains("held\n"), resumed, "{again:?}");
}
