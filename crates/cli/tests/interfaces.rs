//! `interface` with two agents and the hook door: who may change what others build on, and who
//! hears of a change.

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::reviews::person_token;

const BEFORE: &str = "pub struct User {\n    pub name: String,\n}\n\npub fn load(path: &str) -> \
                      User {\n    read(path)\n}\n\npub fn gone() {}\n";

/// Claude's hook, for an agent by the id of its talk.
struct Agent<'a> {
    scratch: &'a Scratch,
    id: &'static str,
}

impl Agent<'_> {
    fn tells(&self, payload: Value) -> String {
        let Self { scratch, id } = *self;
        let said = crate::hooks::Agent { scratch, client: "claude", id }.tells(payload);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
        said.out
    }

    fn tool(&self, when: &str, name: &str, input: &Value) -> String {
        self.tells(json!({ "hook_event_name": when, "tool_name": name, "tool_input": input,
            "tool_use_id": "c1" }))
    }

    fn file(&self, file: &str) -> String {
        self.scratch.root().join(file).display().to_string()
    }

    fn reads(&self, file: &str) {
        self.tool("PostToolUse", "Read", &json!({ "file_path": self.file(file) }));
    }

    /// Asks, writes and says that it did; what was answered to the question when that was no.
    fn writes(&self, file: &str, text: &str) -> Option<String> {
        let input = json!({ "file_path": self.file(file), "content": text });
        let answer = self.tool("PreToolUse", "Write", &input);
        if answer.contains("\"deny\"") {
            return Some(answer);
        }
        self.scratch.write(file, text);
        self.tool("PostToolUse", "Write", &input);
        None
    }

    fn prompts(&self) -> String {
        self.tells(json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on" }))
    }

    /// A shell line, really run between the two hooks.
    fn runs(&self, line: &str) -> String {
        let input = json!({ "command": line });
        let before = self.tool("PreToolUse", "Bash", &input);
        assert!(!before.contains("\"deny\""), "{before}");
        let mut command = std::process::Command::new("bash");
        self.scratch.clean(&mut command);
        command.current_dir(self.scratch.root()).args(["-c", line]);
        assert!(command.status().is_ok_and(|status| status.success()), "{line}");
        self.tool("PostToolUse", "Bash", &input)
    }
}

fn set_up(scratch: &Scratch) -> String {
    scratch.write("src/api.rs", BEFORE);
    scratch.write("src/api.proto", "one\n");
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "api"]);
    let ann = scratch.session("ann");
    scratch.acts(&ann, &["interface", "add", "api", "src/api.rs", "src/api.proto"]).ok();
    ann
}

#[test]
fn another_is_refused_by_name_and_told_what_it_can_do() {
    Scratch::on_each_store("", |scratch| {
        let ann = set_up(scratch);
        let bob = scratch.session("bob");
        let said = scratch.acts(&bob, &["claim", "src/api.rs"]).refused(1);
        let words = "src/api.rs belongs to the interface api, which ann keeps since";
        assert!(said.err.contains(words), "{said:?}");
        let next = "next: baton ask src/api.rs --why 'what you need', baton suggest src/api.rs";
        assert!(said.err.contains(next) && said.err.contains("interface show api"), "{said:?}");
        let said = scratch.acts(&bob, &["claim", "src/", "--json"]);
        assert_eq!(said.json()["refused"]["interface"], "api", "{said:?}");
        assert!(said.err.contains("src/ reaches src/api.proto, which belongs"), "{said:?}");
        scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
        // What is proposed there works.
        scratch.acts(&bob, &["ask", "src/api.rs", "--why", "a flag"]).ok();
        scratch
            .write("p.diff", "--- a/src/api.proto\n+++ b/src/api.proto\n@@ -1 +1 @@\n-one\n+two\n");
        let suggest = ["suggest", "src/api.proto", "--patch", "p.diff", "--why", "newer"];
        scratch.acts(&bob, &suggest).ok();
        let told = scratch.acts(&ann, &["claim", "src/api.proto"]).ok();
        assert!(told.out.contains("bob asks you to let go of src/api.rs"), "{told:?}");
        assert!(told.out.contains("bob suggests a change to src/api.proto"), "{told:?}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn an_edit_by_another_agent_is_denied_at_the_hook() {
    let scratch = Scratch::workspace();
    set_up(&scratch);
    let agent = Agent { scratch: &scratch, id: "one" };
    let denial = agent.writes("src/api.rs", "fn mine() {}\n").expect("denied");
    for part in ["the interface api", "which ann keeps", "baton ask src/api.rs", "baton suggest"] {
        assert!(denial.contains(part), "{denial}");
    }
    assert!(!denial.contains("--wait"), "waiting does not help: {denial}");
    assert_eq!(std::fs::read_to_string(scratch.root().join("src/api.rs")).unwrap(), BEFORE);
    assert_eq!(agent.writes("src/mine.rs", "fn mine() {}\n"), None);
}

#[test]
fn a_changed_signature_reaches_readers_and_users_and_a_changed_body_nobody() {
    Scratch::on_each_store("", |scratch| {
        scratch.write("src/api.rs", BEFORE);
        let owner = Agent { scratch, id: "owner" };
        let reader = Agent { scratch, id: "reader" };
        let other = Agent { scratch, id: "other" };
        assert_eq!(owner.writes("src/api.rs", BEFORE), None);
        let credential = |agent: &str| -> String {
            // The session of the client comes back, with a credential for the shell.
            let words = ["session", "start", "--client", "claude", "--client-session", agent];
            let said = scratch.baton(&[&words[..], &["--json"]].concat()).ok();
            said.json()["credential"].as_str().unwrap().to_owned()
        };
        let ann = credential("owner");
        scratch.acts(&ann, &["interface", "add", "api", "src/api.rs"]).ok();
        reader.reads("src/api.rs");
        other.reads("src/a.rs");
        let bob = scratch.session("bob");
        let used = scratch.acts(&bob, &["interface", "use", "api"]).ok();
        assert!(used.out.contains("you are told when src/api.rs changes"), "{used:?}");
        // Only inside: nobody hears of it.
        let body = BEFORE.replace("read(path)", "read_all(path)");
        assert_eq!(owner.writes("src/api.rs", &body), None);
        assert!(!reader.prompts().contains("interface"));
        assert!(!scratch.acts(&bob, &["claim", "README.md"]).ok().out.contains("news"));
        // At its surface: the reader hears at its next prompt, the user with its next command.
        let after = body
            .replace("path: &str", "path: &str, strict: bool")
            .replace("pub fn gone() {}\n", "pub fn save(user: User) {}\n");
        assert_eq!(owner.writes("src/api.rs", &after), None);
        let heard = reader.prompts();
        for part in [
            "changed the interface api: src/api.rs: now load(path: &str, strict: bool), was \
             load(path: &str)",
            "added save(user: User)",
            "removed gone()",
            "baton interface show api",
        ] {
            assert!(heard.contains(part), "{part}: {heard}");
        }
        assert!(!reader.prompts().contains("interface"), "once");
        let heard = scratch.acts(&bob, &["renew"]).ok().out;
        assert!(heard.contains("was load(path: &str); added save(user: User)"), "{heard}");
        assert!(!other.prompts().contains("interface"), "it never read the file");
        assert!(!owner.prompts().contains("interface"), "it made the change");
        // A type is no function, but it is called by everybody.
        assert_eq!(owner.writes("src/api.rs", &after.replace("pub name", "pub id")), None);
        let heard = scratch.acts(&bob, &["renew"]).ok().out;
        assert!(heard.contains("src/api.rs: 1 line changed"), "{heard}");
        let journal = scratch.baton(&["journal", "--kind", "interface_changed"]).ok().out;
        assert_eq!(journal.lines().count(), 2, "{journal}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn what_was_not_heard_yet_is_heard_at_once_and_shown_later() {
    let scratch = Scratch::workspace();
    let ann = set_up(&scratch);
    let bob = scratch.session("bob");
    scratch.acts(&bob, &["interface", "use", "api"]).ok();
    scratch.acts(&ann, &["claim", "src/api.rs", "src/api.proto"]).ok();
    let commit = |file: &str, text: &str| {
        scratch.write(file, text);
        scratch.acts(&ann, &["commit", file, "-m", "change"]).ok();
    };
    // By a commit, without any hook.
    commit("src/api.rs", &format!("{BEFORE}pub fn one() {{}}\n"));
    commit("src/api.rs", &format!("{BEFORE}pub fn two() {{}}\n"));
    commit("src/api.proto", "one\ntwo\nthree\n");
    let heard = scratch.acts(&bob, &["claim", "README.md"]).ok().out;
    assert_eq!(heard.matches("changed the interface").count(), 1, "{heard}");
    assert!(heard.contains("src/api.rs: added two()"), "{heard}");
    assert!(heard.contains("src/api.proto: 2 lines changed"), "{heard}");
    assert!(!heard.contains("one()"), "{heard}");
    let shown = scratch.baton(&["interface", "show", "api"]).ok().out;
    for part in ["api, kept by ann since", "users: bob", "load(path: &str)", "two()"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains("changed by ann"), "{shown}");
    let listed = scratch.baton(&["interface", "list"]).ok().out;
    assert!(listed.contains("api") && listed.contains("ann"), "{listed}");
    let listed = scratch.baton(&["interface", "list", "--json"]).ok().json();
    assert_eq!(listed["interfaces"][0]["users"][0]["name"], "bob", "{listed}");
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn a_shell_command_that_changes_it_is_seen_too() {
    let scratch = Scratch::workspace();
    set_up(&scratch);
    let ann = Agent { scratch: &scratch, id: "ann" };
    let bob = scratch.session("bob");
    // The agent keeps it: its own session got it from a person.
    ann.prompts();
    let sessions = scratch.baton(&["session", "list", "--json"]).ok().json();
    let sessions = sessions["sessions"].as_array().unwrap().clone();
    let agent = sessions.iter().find(|one| one["client"] == "claude").unwrap();
    let agent = agent["session"].as_str().unwrap().to_owned();
    let person = person_token(&scratch);
    let mut give = scratch.command(&["interface", "give", "api", "--to", &agent]);
    let said = Said::from(give.env("BATON_PERSON_TOKEN_FILE", &person).output().unwrap()).ok();
    assert!(said.out.contains("given api to"), "{said:?}");
    assert!(ann.prompts().contains("you keep the interface api now"));
    scratch.acts(&bob, &["interface", "use", "api"]).ok();
    ann.runs("sed -i 's/gone()/here(x: u8)/' src/api.rs");
    let heard = scratch.acts(&bob, &["claim", "README.md"]).ok().out;
    assert!(heard.contains("added here(x: u8); removed gone()"), "{heard}");
    // Where the line does not say what it writes.
    scratch.write("change.sh", "echo 'pub fn late() {}' >> src/api.rs\n");
    ann.runs("bash change.sh");
    let heard = scratch.acts(&bob, &["renew"]).ok().out;
    assert!(heard.contains("src/api.rs: added late()"), "{heard}");
}

#[test]
fn an_older_text_in_another_tree_is_no_change_and_a_landing_is() {
    let scratch = Scratch::workspace();
    let ann = set_up(&scratch);
    let bob = scratch.session("bob");
    scratch.acts(&bob, &["interface", "use", "api"]).ok();
    scratch.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let there = |words: &[&str]| {
        let mut command = scratch.command(words);
        command.current_dir(scratch.path("side")).env("BATON_SESSION", &ann);
        Said::from(command.output().unwrap()).ok()
    };
    scratch.acts(&ann, &["claim", "src/api.rs"]).ok();
    scratch.write("src/api.rs", &format!("pub fn one() {{}}\n\n{BEFORE}"));
    scratch.acts(&ann, &["commit", "src/api.rs", "-m", "one"]).ok();
    assert!(scratch.acts(&bob, &["claim", "README.md"]).ok().out.contains("added one()"));
    // The other tree has not got it yet, and only a body changes there.
    let body = BEFORE.replace("read(path)", "read_all(path)");
    std::fs::write(scratch.path("side/src/api.rs"), body).unwrap();
    there(&["commit", "src/api.rs", "-m", "body"]);
    assert!(!scratch.acts(&bob, &["renew"]).ok().out.contains("interface"));
    // What git alone made there is heard when it lands.
    let side = scratch.path("side");
    let side = side.to_str().unwrap();
    let text = BEFORE.replace("read(path)", "read_all(path)").replace("gone()", "here()");
    std::fs::write(scratch.path("side/src/api.rs"), text).unwrap();
    scratch.git(&["-C", side, "commit", "-qam", "surface"]);
    scratch.acts(&ann, &["release", "--all"]).ok();
    there(&["land"]);
    let heard = scratch.acts(&bob, &["renew"]).ok().out;
    assert!(heard.contains("ann changed the interface api"), "{heard}");
    assert!(heard.contains("added here(); removed gone()"), "{heard}");
    assert!(!heard.contains(" one()"), "that was told: {heard}");
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn when_its_owner_has_ended_whoever_claims_first_keeps_it() {
    Scratch::on_each_store("", |scratch| {
        scratch.write("src/api.rs", BEFORE);
        let (ann, mut process) = scratch.session_with_process("ann");
        scratch.acts(&ann, &["interface", "add", "api", "src/api.rs"]).ok();
        let bob = scratch.session("bob");
        scratch.acts(&bob, &["claim", "src/api.rs"]).refused(1);
        // Also when it was not said: its process is seen to be gone.
        process.end();
        let said = scratch.acts(&bob, &["claim", "src/api.rs"]).ok();
        assert!(said.out.contains("note: you keep the interface api now"), "{said:?}");
        let cat = scratch.session("cat");
        scratch.acts(&bob, &["release", "--all"]).ok();
        let said = scratch.acts(&cat, &["claim", "src/api.rs"]).refused(1);
        assert!(said.err.contains("which bob keeps"), "{said:?}");
        scratch.acts(&bob, &["session", "end"]).ok();
        let agent = Agent { scratch, id: "next" };
        let path = agent.file("src/api.rs");
        let input = json!({ "file_path": path, "content": "x" });
        let answer = agent.tool("PreToolUse", "Write", &input);
        assert!(answer.contains("you keep it now"), "{answer}");
        let journal = scratch.baton(&["journal"]).ok().out;
        assert!(journal.contains("keeps the interface api now: ann is gone"), "{journal}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn bad_requests_are_refused_and_a_retry_is_harmless() {
    let scratch = Scratch::workspace();
    let ann = set_up(&scratch);
    let bob = scratch.session("bob");
    let refused = |who: &str, words: &[&str], code: i32, part: &str| {
        let said = scratch.acts(who, &[&["interface"], words].concat()).refused(code);
        assert!(said.err.contains(part), "{words:?}: {said:?}");
    };
    refused(&bob, &["add", "api", "src/a.rs"], 1, "already, kept by ann");
    refused(&bob, &["add", "b", "src/api.rs"], 1, "belongs to the interface api already");
    refused(&bob, &["add", "b", "nowhere.rs"], 2, "there is no file nowhere.rs");
    refused(&bob, &["add", "b", "src/*.rs"], 2, "there is no file");
    refused(&bob, &["add", "b", "src"], 2, "src/ is not one file");
    refused(&bob, &["add", "b", "../outside.rs"], 1, "is outside the workspace");
    refused(&bob, &["add", "a b\u{1b}", "src/a.rs"], 2, "cannot be the name");
    refused(&bob, &["add", "", "src/a.rs"], 2, "it is empty");
    refused(&bob, &["add", "b"], 2, "FILE");
    refused(
        &bob,
        &["use", "apo"],
        1,
        "there is no interface \"apo\"\nnext: baton interface show api",
    );
    refused(&bob, &["show", "x\u{1b}y"], 2, "x\\u{1b}y");
    refused(&bob, &["remove", "api"], 1, "is kept by ann");
    refused(&bob, &["give", "api", "--to", "bob"], 1, "is kept by ann");
    refused(&ann, &["give", "api", "--to", "nobody"], 1, "no session \"nobody\"");
    scratch.baton(&["interface", "use", "api"]).refused(1);
    scratch.acts(&bob, &["claim", "README.md"]).ok();
    refused(&ann, &["add", "readme", "README.md"], 1, "README.md is held by bob");
    // The same again, and the same again under an id.
    let again = scratch.acts(&ann, &["interface", "add", "api", "src/api.proto", "src/api.rs"]);
    assert!(again.ok().out.contains("added the interface api already"));
    for _ in 0..2 {
        let removed = scratch.acts(&ann, &["interface", "remove", "api", "--op-id", "one"]).ok();
        assert!(removed.out.contains("removed the interface api"), "{removed:?}");
    }
    assert_eq!(scratch.baton(&["interface", "list"]).ok().out, "no interfaces\n");
    scratch.acts(&bob, &["claim", "src/api.rs"]).ok();
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn what_others_cannot_use_is_not_the_surface() {
    let scratch = Scratch::workspace();
    let files = [
        ("api.rs", "pub fn a() {}\nfn b() {}\n"),
        ("api.ts", "export function a() {}\nfunction b() {}\n"),
        ("api.go", "package api\nfunc A() {}\nfunc b() {}\n"),
        ("Api.java", "class Api {\n void a() {}\n private void b() {}\n}\n"),
        ("api.py", "def a(): pass\ndef _b(): pass\n"),
        // Nothing is said here, so everything counts.
        ("plain.js", "function a() {}\nfunction b() {}\n"),
    ];
    for (file, text) in files {
        scratch.write(file, text);
    }
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "apis"]);
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    let names: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
    scratch.acts(&ann, &[&["interface", "add", "api"], &names[..]].concat()).ok();
    scratch.acts(&bob, &["interface", "use", "api"]).ok();
    scratch.acts(&ann, &[&["claim"], &names[..]].concat()).ok();
    let commit = |from: &str, to: &str| -> String {
        for (file, text) in files {
            scratch.write(file, &text.replace(from, to));
        }
        scratch.acts(&ann, &["commit", "-m", "change"]).ok();
        scratch.acts(&bob, &["claim", "README.md"]).ok().out
    };
    let heard = commit("b()", "b(x)");
    assert!(heard.contains("plain.js: now b(x), was b()"), "{heard}");
    for file in &names[..5] {
        assert!(!heard.contains(&format!("{file}:")), "{file}: {heard}");
    }
    let heard = commit("()", "(y)");
    for file in &names {
        assert!(heard.contains(&format!("{file}: now ")), "{file}: {heard}");
    }
    let shown = scratch.baton(&["interface", "show", "api", "--json"]).ok().json();
    for file in shown["surface"].as_array().unwrap() {
        let expected = if file["path"] == "plain.js" { 2 } else { 1 };
        assert_eq!(file["functions"].as_array().unwrap().len(), expected, "{file}");
    }
}

#[test]
fn what_a_pull_brings_is_seen_and_is_not_the_work_of_who_pulled() {
    Scratch::on_each_store("", |scratch| {
        set_up(scratch);
        let (bob, cat) = (scratch.session("bob"), scratch.session("cat"));
        scratch.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
        scratch.git(&["remote", "add", "origin", "../remote.git"]);
        scratch.git(&["push", "-q", "origin", "main"]);
        scratch.git(&["clone", "-q", "../remote.git", "../other"]);
        scratch.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
        for who in [&bob, &cat] {
            scratch.acts(who, &["interface", "use", "api"]).ok();
        }
        let push = |file: &str, text: &str| {
            std::fs::write(scratch.path("other").join(file), text).unwrap();
            scratch.git(&["-C", "../other", "commit", "-qam", "theirs"]);
            scratch.git(&["-C", "../other", "push", "-q", "origin", "main"]);
        };
        let news = |who: &str| scratch.acts(who, &["claim", "README.md", "--shared"]).ok().out;
        // Inside a function it is nobody's business.
        push("src/api.rs", &BEFORE.replace("read(path)", "read_all(path)"));
        scratch.acts(&cat, &["sync", "--pull"]).ok();
        assert!(!news(&bob).contains("interface"));
        // Also where own commits are put upon it.
        push("src/api.rs", &BEFORE.replace("gone()", "here()"));
        scratch.write("mine", "x");
        scratch.acts(&cat, &["commit", "mine", "-m", "mine"]).ok();
        scratch.acts(&cat, &["sync", "--pull"]).ok();
        for who in [&bob, &cat] {
            let heard = news(who);
            assert!(heard.contains("Ann changed the interface api: src/api.rs: added"), "{heard}");
            assert!(heard.contains("added here(); removed gone()"), "{heard}");
        }
        // Another tree that gets the same has nothing new.
        let mut pull = scratch.command(&["sync", "--pull"]);
        pull.current_dir(scratch.path("side")).env("BATON_SESSION", &cat);
        Said::from(pull.output().unwrap()).ok();
        for who in [&bob, &cat] {
            assert!(!news(who).contains("interface"));
        }
        let journal = scratch.baton(&["journal", "--kind", "interface_changed"]).ok().out;
        assert_eq!(journal.lines().count(), 1, "{journal}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn copies_that_nothing_refers_to_are_removed_and_no_others() {
    let scratch = Scratch::workspace();
    let ann = set_up(&scratch);
    let bob = scratch.session("bob");
    let copies = || -> Vec<String> {
        let entries = std::fs::read_dir(scratch.store().join("interfaces")).unwrap();
        let texts = entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
        let mut texts: Vec<String> = texts.collect();
        texts.sort();
        texts
    };
    assert_eq!(copies(), ["one\n", BEFORE]);
    // Two interfaces may have the same text.
    scratch.write("other.proto", "one\n");
    scratch.acts(&bob, &["interface", "add", "other", "other.proto"]).ok();
    assert_eq!(copies(), ["one\n", BEFORE]);
    scratch.acts(&ann, &["claim", "src/api.rs", "src/api.proto"]).ok();
    let after = BEFORE.replace("gone()", "here()");
    for (file, text) in [("src/api.rs", after.as_str()), ("src/api.proto", "two\n")] {
        scratch.write(file, text);
        scratch.acts(&ann, &["commit", file, "-m", "change"]).ok();
    }
    assert_eq!(copies(), ["one\n", &after, "two\n"]);
    // While somebody is about to refer to one, nothing goes.
    let folder = std::fs::File::open(scratch.store().join("interfaces")).unwrap();
    folder.lock_shared().unwrap();
    scratch.acts(&ann, &["interface", "remove", "api"]).ok();
    assert_eq!(copies().len(), 3);
    drop(folder);
    scratch.acts(&ann, &["interface", "add", "again", "src/api.proto"]).ok();
    assert_eq!(copies(), ["one\n", "two\n"]);
    scratch.acts(&bob, &["interface", "remove", "other"]).ok();
    assert_eq!(copies(), ["two\n"]);
    scratch.acts(&ann, &["interface", "use", "again"]).ok();
    assert_eq!(copies(), ["two\n"]);
}

#[test]
fn a_tree_that_pulls_what_has_landed_long_ago_tells_nobody_again() {
    let scratch = Scratch::workspace();
    let ann = set_up(&scratch);
    let bob = scratch.session("bob");
    scratch.acts(&bob, &["interface", "use", "api"]).ok();
    scratch.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
    scratch.git(&["remote", "add", "origin", "../remote.git"]);
    scratch.git(&["push", "-q", "origin", "main"]);
    for tree in ["side", "late"] {
        scratch.git(&["worktree", "add", "-q", "-b", tree, &format!("../{tree}")]);
    }
    let there = |tree: &str, words: &[&str]| {
        let mut command = scratch.command(words);
        command.current_dir(scratch.path(tree)).env("BATON_SESSION", &ann);
        Said::from(command.output().unwrap()).ok()
    };
    let side = scratch.path("side").display().to_string();
    let mut landed = Vec::new();
    for name in ["one()", "two()"] {
        let text = BEFORE.replace("gone()", name);
        std::fs::write(scratch.path("side/src/api.rs"), text).unwrap();
        scratch.git(&["-C", &side, "commit", "-qam", name]);
        there("side", &["land"]);
        landed.push(scratch.git(&["rev-parse", "main"]).trim().to_owned());
        let heard = scratch.acts(&bob, &["claim", "README.md", "--shared"]).ok().out;
        assert!(heard.contains(&format!("added {name}")), "{heard}");
    }
    // The remote has the first of them only.
    let first = format!("{}:refs/heads/main", landed[0]);
    scratch.git(&["push", "-qf", "origin", &first]);
    there("late", &["sync", "--pull"]);
    let text = std::fs::read_to_string(scratch.path("late/src/api.rs")).unwrap();
    assert!(text.contains("one()"), "{text}");
    let heard = scratch.acts(&bob, &["claim", "README.md", "--shared"]).ok().out;
    assert!(!heard.contains("interface"), "{heard}");
}
