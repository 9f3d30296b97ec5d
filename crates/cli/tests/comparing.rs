//! After a shell command: what it took from others, and what is not laid at its door.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::hooks::{Agent, denied, hook_with};

fn ann(scratch: &Scratch) -> Agent<'_> {
    Agent { scratch, client: "claude", id: "ann" }
}

fn bob(scratch: &Scratch) -> Agent<'_> {
    Agent { scratch, client: "codex", id: "bob" }
}

/// A workspace with these files committed.
fn with_files(files: &[&str]) -> Scratch {
    let scratch = Scratch::workspace();
    files.iter().for_each(|file| scratch.write(file, "old\n"));
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "files"]);
    scratch
}

/// An edit, from before to after.
fn edits(agent: &Agent<'_>, file: &str, text: &str) {
    assert_eq!(denied(&agent.write(file, text)), None);
    agent.scratch.write(file, text);
    let input = json!({ "file_path": agent.file(file), "content": text });
    agent.tool("after", "Write", &input);
}

fn runs(agent: &Agent<'_>, line: &str, deed: impl FnOnce()) -> Said {
    assert_eq!(denied(&agent.shell("before", line)), None);
    deed();
    agent.shell("after", line)
}

fn journal(scratch: &Scratch) -> String {
    scratch.baton(&["journal"]).ok().out
}

fn breaches(scratch: &Scratch) -> usize {
    journal(scratch).matches("around the edit door").count()
}

fn remove(scratch: &Scratch, file: &str) {
    std::fs::remove_file(scratch.root().join(file)).unwrap();
}

#[test]
fn what_goes_back_to_head_or_away_is_seen_too_and_a_copy_is_left() {
    Scratch::on_each_store("", |scratch| {
        for file in ["src/back.rs", "src/gone.rs"] {
            scratch.write(file, "old\n");
        }
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "files"]);
        let (ann, bob) = (ann(scratch), bob(scratch));
        edits(&ann, "src/back.rs", "work of ann\n");
        edits(&ann, "src/gone.rs", "more of it\n");
        edits(&ann, "src/new.rs", "not known to git\n");
        let said = runs(&bob, "sh ./revert.sh", || {
            scratch.git(&["checkout", "-q", "--", "src/back.rs"]);
            remove(scratch, "src/gone.rs");
            remove(scratch, "src/new.rs");
        });
        for file in ["src/back.rs", "src/gone.rs", "src/new.rs"] {
            assert!(said.out.contains(&format!("your command changed {file}, and")), "{said:?}");
            assert!(journal(scratch).contains(&format!("wrote to {file}, which")));
        }
        let words = said.json()["hookSpecificOutput"]["additionalContext"].to_string();
        let copy = words.split("your command changed src/back.rs").nth(1).unwrap();
        let copy = copy.split("is kept in ").nth(1).unwrap().split(". This").next().unwrap();
        assert_eq!(std::fs::read_to_string(copy).unwrap(), "work of ann\n", "{words}");
        // What is advised can be done.
        let said = runs(&bob, "baton ask src/back.rs --why 'I put it back'", || {});
        assert_eq!(said.out.trim(), "{}", "nothing new: {said:?}");
    });
}

#[test]
fn a_folder_that_is_not_there_leaves_a_line_where_it_was() {
    let scratch = with_files(&["a.rs"]);
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    edits(&ann, "a.rs", "work of ann\n");
    let said = runs(&bob, "cd gone; rm -f a.rs", || remove(&scratch, "a.rs"));
    assert!(said.out.contains("your command changed a.rs, and"), "{said:?}");
}

#[test]
fn what_was_gone_before_is_not_laid_at_the_door_of_who_makes_a_file_beside_it() {
    let scratch = with_files(&["src/x.rs", "src/y.rs"]);
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    runs(&ann, "rm src/x.rs", || remove(&scratch, "src/x.rs"));
    edits(&ann, "src/y.rs", "changed before\n");
    // What ended within the step of a file's clock counts as at work still.
    std::thread::sleep(Duration::from_millis(60));
    let said = runs(&bob, "python3 make.py", || scratch.write("src/new.rs", "x\n"));
    assert!(!said.out.contains("src/x.rs") && !said.out.contains("src/y.rs"), "{said:?}");
    assert_eq!(breaches(&scratch), 0);
    let claims = scratch.baton(&["claims", "--path", "src/new.rs", "--json"]).ok().json();
    assert_eq!(claims["claims"].as_array().unwrap().len(), 1, "claimed for bob: {claims}");
}

#[test]
fn what_an_agent_committed_with_git_is_its_no_more() {
    Scratch::on_each_store("", |scratch| {
        let ann = ann(scratch);
        let held = || {
            let claims = scratch.baton(&["claims", "--json"]).ok().json();
            let all = claims["claims"].as_array().unwrap().clone();
            all.iter().map(|one| one["resources"][0].to_string()).collect::<Vec<_>>()
        };
        let files = ["one.rs", "two.rs", "open.rs"];
        for file in files {
            assert_eq!(denied(&ann.write(file, "new\n")), None);
        }
        // Later than the claims by the clock of files.
        std::thread::sleep(Duration::from_millis(60));
        for file in files {
            scratch.write(file, "new\n");
        }
        let line = "git add one.rs two.rs && git commit -qm both";
        runs(&ann, line, || {
            scratch.git(&["add", "one.rs", "two.rs"]);
            scratch.git(&["commit", "-qm", "both"]);
        });
        assert_eq!(held(), ["\"open.rs\""]);
    });
}

#[test]
fn a_person_tells_nobody_of_its_writes_and_nobody_is_accused() {
    let scratch = with_files(&["a.txt", "b.txt"]);
    scratch.write("slow.py", "open('b.txt', 'w')\nopen('free.txt', 'w')\n");
    let (bob, eve) = (bob(&scratch), scratch.session("eve"));
    let mut begin = scratch.command(&["session", "start", "--name", "pat", "--json"]);
    begin.env("BATON_PERSON_TOKEN_FILE", crate::reviews::person_token(&scratch));
    let begun = Said::from(begin.output().unwrap()).ok().json();
    let pat = begun["credential"].as_str().unwrap();
    scratch.acts(pat, &["claim", "a.txt"]).ok();
    scratch.acts(&eve, &["claim", "b.txt"]).ok();
    let said = runs(&bob, "python3 slow.py", || {
        scratch.write("a.txt", "pat's own\n");
        scratch.write("b.txt", "around the door\n");
        scratch.write("free.txt", "bob's\n");
    });
    assert!(said.out.contains("a.txt changed while a command of yours ran"), "{said:?}");
    assert!(said.out.contains("your command changed b.txt"), "{said:?}");
    assert_eq!(breaches(&scratch), 1);
    let told = "a.txt, which pat held, changed while a command of";
    assert!(journal(&scratch).contains(told), "{}", journal(&scratch));
    let claims = scratch.baton(&["claims"]).ok().out;
    assert!(claims.contains("free.txt"), "{claims}");
    let report = scratch.baton(&["rules", "report"]).out;
    assert!(!report.contains("a.txt"), "{report}");
}

#[test]
fn a_call_whose_end_was_never_told_ends_with_its_turn() {
    let over = [
        json!({ "hook_event_name": "Stop", "stop_hook_active": true }),
        json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on" }),
    ];
    for over in over {
        let scratch = with_files(&["a.txt"]);
        let (ann, bob) = (ann(&scratch), bob(&scratch));
        edits(&ann, "a.txt", "ann's\n");
        assert_eq!(denied(&ann.shell("before", "npm run dev")), None);
        let said = runs(&bob, "python3 w.py", || scratch.write("a.txt", "bob's\n"));
        assert!(!said.out.contains("Baton: your command changed"), "it runs: {said:?}");
        std::thread::sleep(Duration::from_millis(60));
        ann.tells(over).ok();
        std::thread::sleep(Duration::from_millis(60));
        let said = runs(&bob, "python3 w.py", || scratch.write("a.txt", "bob's again\n"));
        assert!(said.out.contains("your command changed a.txt"), "{said:?}");
        // And what is free is claimed.
        runs(&bob, "python3 w.py", || scratch.write("free.txt", "bob's\n"));
        assert!(scratch.baton(&["claims"]).ok().out.contains("free.txt"));
    }
}

#[test]
fn a_subagent_writes_around_its_sibling_and_is_told() {
    let scratch = with_files(&["b.txt"]);
    let tells = |agent: &str, event: &str, tool: &str, input: Value| {
        ann(&scratch).tells(json!({ "hook_event_name": event, "agent_id": agent,
            "tool_name": tool, "tool_input": input, "tool_use_id": format!("{agent}{tool}") }))
    };
    let edit = json!({ "file_path": scratch.root().join("b.txt"), "content": "of one\n" });
    assert_eq!(denied(&tells("one", "PreToolUse", "Write", edit.clone())), None);
    scratch.write("b.txt", "of one\n");
    tells("one", "PostToolUse", "Write", edit);
    let line = json!({ "command": "python3 w.py" });
    assert_eq!(denied(&tells("two", "PreToolUse", "Bash", line.clone())), None);
    scratch.write("b.txt", "of two\n");
    let said = tells("two", "PostToolUse", "Bash", line);
    assert!(said.out.contains("your command changed b.txt"), "{said:?}");
    assert_eq!(breaches(&scratch), 1);
}

#[test]
fn what_runs_in_the_background_is_looked_after() {
    let lines = [
        json!({ "command": "python3 later.py", "run_in_background": true }),
        json!({ "command": "(sleep 1; python3 later.py) &" }),
    ];
    for input in lines {
        let scratch = with_files(&["h.txt"]);
        let (ann, bob) = (ann(&scratch), bob(&scratch));
        edits(&bob, "h.txt", "bob's\n");
        assert_eq!(denied(&ann.tool("before", "Bash", &input)), None);
        let said = ann.tool("after", "Bash", &input);
        assert!(!said.out.contains("h.txt"), "{said:?}");
        scratch.write("h.txt", "from behind\n");
        let stop = || ann.tells(json!({ "hook_event_name": "Stop", "stop_hook_active": false }));
        let said = stop();
        assert!(said.out.contains("your command changed h.txt"), "{input}: {said:?}");
        assert_eq!(stop().out, "", "once");
        // The next command finds what it wrote since.
        scratch.write("h.txt", "from behind again\n");
        ann.shell("before", "ls");
        let said = ann.shell("after", "ls");
        assert!(said.out.contains("your command changed h.txt"), "{input}: {said:?}");
        assert_eq!(breaches(&scratch), 2);
    }
}

/// Claude sends a command there by itself when its time is over, or its user does.
#[test]
fn what_was_sent_to_the_background_is_looked_after() {
    let scratch = with_files(&["h.txt"]);
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    edits(&bob, "h.txt", "bob's\n");
    let input = json!({ "command": "python3 later.py", "timeout": 1500 });
    assert_eq!(denied(&ann.tool("before", "Bash", &input)), None);
    ann.tells(json!({ "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_input": input, "tool_use_id": "c1",
        "tool_response": { "stdout": "", "backgroundTaskId": "b1", "interrupted": false } }));
    scratch.write("h.txt", "from behind\n");
    let said = ann.tells(json!({ "hook_event_name": "Stop", "stop_hook_active": false }));
    assert!(said.out.contains("your command changed h.txt"), "{said:?}");
    assert_eq!(breaches(&scratch), 1);
}

#[test]
fn ones_own_formatter_makes_nothing_strange_of_ones_own_file() {
    let scratch = with_files(&["own.py"]);
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    edits(&bob, "own.py", "bob's\n");
    scratch.git(&["commit", "-qam", "bob's work"]);
    lets_go(&bob);
    ann.tool("after", "Read", &json!({ "file_path": ann.file("own.py") }));
    let edit = json!({ "file_path": ann.file("own.py"), "old_string": "bob's",
        "new_string": "ann's" });
    assert_eq!(denied(&ann.tool("before", "Edit", &edit)), None);
    scratch.write("own.py", "ann's\n");
    ann.tool("after", "Edit", &edit);
    runs(&ann, "python3 fmt.py", || scratch.write("own.py", "# formatted\nann's\n"));
    let again =
        json!({ "file_path": ann.file("own.py"), "old_string": "ann's", "new_string": "x" });
    let said = ann.tool("before", "Edit", &again);
    assert!(!said.out.contains("own.py"), "{said:?}");
    let prompt = ann.tells(json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on" }));
    assert!(!prompt.out.contains("own.py"), "{prompt:?}");
}

/// By the shell of its client, which is Codex.
fn lets_go(agent: &Agent<'_>) {
    let mut release = agent.scratch.command(&["release", "--all"]);
    release.env("CODEX_THREAD_ID", agent.id);
    Said::from(release.output().unwrap()).ok();
}

/// Ann has read a file that bob then changed, committed and let go of.
fn changed_behind_ann(file: &str) -> Scratch {
    let scratch = Scratch::workspace();
    scratch.write(file, "one\ntwo\nthree\nfour\nfive\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "base"]);
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    ann.tool("after", "Read", &json!({ "file_path": ann.file(file) }));
    let text = "ONE\ntwo\nthree\nfour\nfive\n";
    edits(&bob, file, text);
    scratch.git(&["commit", "-qam", "bob's"]);
    lets_go(&bob);
    scratch
}

#[test]
fn one_edit_of_a_stale_file_does_not_make_it_known() {
    let scratch = changed_behind_ann("f.txt");
    let ann = ann(&scratch);
    let edit = |old: &str, new: &str| {
        let path = ann.file("f.txt");
        json!({ "file_path": path, "old_string": old, "new_string": new })
    };
    let first = edit("five", "FIVE");
    let said = ann.tool("before", "Edit", &first);
    assert!(denied(&said).is_none() && said.out.contains("was changed by"), "{said:?}");
    scratch.write("f.txt", "ONE\ntwo\nthree\nfour\nFIVE\n");
    ann.tool("after", "Edit", &first);
    let why = denied(&ann.tool("before", "Edit", &edit("ONE", "one"))).expect("it takes back");
    assert!(why.contains("would take back"), "{why}");
    // Its own line is its own.
    assert_eq!(denied(&ann.tool("before", "Edit", &edit("FIVE", "5"))), None);
    ann.tool("after", "Read", &json!({ "file_path": ann.file("f.txt") }));
    assert_eq!(denied(&ann.tool("before", "Edit", &edit("ONE", "one"))), None);
}

/// Ann commits her file.
fn commits(scratch: &Scratch) -> Said {
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    let mut commit = scratch.command(&["commit", "-m", "mine", "f.txt"]);
    commit.env("CLAUDE_CODE_SESSION_ID", "ann");
    Said::from(commit.output().unwrap()).ok()
}

/// Her own line is not in what landed, and she knew the file with it.
#[test]
fn a_commit_after_an_edit_of_a_stale_file_takes_nothing_back_by_it() {
    let edited = |takes_back: bool| {
        let scratch = changed_behind_ann("f.txt");
        let ann = ann(&scratch);
        let edit = json!({ "file_path": ann.file("f.txt"), "old_string": "five",
            "new_string": "FIVE" });
        let mut first = "ONE";
        if takes_back {
            runs(&ann, "git checkout HEAD~1 -- f.txt", || {
                scratch.git(&["checkout", "-q", "HEAD~1", "--", "f.txt"]);
            });
            first = "one";
        }
        let said = ann.tool("before", "Edit", &edit);
        assert_eq!(denied(&said), None);
        assert!(takes_back || said.out.contains("was changed by"), "{said:?}");
        scratch.write("f.txt", &format!("{first}\ntwo\nthree\nfour\nFIVE\n"));
        ann.tool("after", "Edit", &edit);
        commits(&scratch).out
    };
    let mine = edited(false);
    assert!(!mine.contains("takes back"), "{mine}");
    let theirs = edited(true);
    assert!(theirs.contains("takes back what others changed"), "{theirs}");
}

#[test]
fn a_shell_takes_back_lines_of_others_no_more_than_an_edit() {
    let scratch = changed_behind_ann("f.txt");
    let ann = ann(&scratch);
    let why = denied(&ann.shell("before", "cat > f.txt <<'E'\none\nE")).expect("it overwrites");
    assert!(why.contains("this would overwrite that"), "{why}");
    let said = runs(&ann, "git checkout HEAD~1 -- f.txt", || {
        scratch.git(&["checkout", "-q", "HEAD~1", "--", "f.txt"]);
    });
    assert!(said.out.contains("your command took back"), "{said:?}");
    let payload = json!({ "hook_event_name": "SessionStart", "source": "resume",
        "session_id": "ann", "cwd": scratch.root() });
    hook_with(&scratch, "claude", payload.to_string().as_bytes(), &[]).ok();
    let commit = commits(&scratch);
    assert!(commit.out.contains("takes back what others changed"), "{commit:?}");
    assert!(journal(&scratch).contains("f.txt"), "{}", journal(&scratch));
}

/// Codex tells no end of a command that outlasts its tool call, as a shell that it keeps open.
#[test]
fn what_a_shell_that_codex_keeps_open_changed_is_seen_when_the_turn_is_over() {
    let scratch = with_files(&["held.txt", "later.txt"]);
    let (bob, eve) = (bob(&scratch), scratch.session("eve"));
    scratch.acts(&eve, &["claim", "held.txt", "later.txt"]).ok();
    let stops = |agent: &Agent<'_>| {
        agent.tells(json!({ "hook_event_name": "Stop", "stop_hook_active": false })).ok().out
    };
    assert_eq!(denied(&bob.shell("before", "bash")), None);
    scratch.write("held.txt", "typed into that shell\n");
    scratch.write("free.txt", "the same\n");
    let said = stops(&bob);
    assert!(said.contains("your command changed held.txt"), "{said}");
    assert_eq!(breaches(&scratch), 1, "{}", journal(&scratch));
    let claims = scratch.baton(&["claims"]).ok().out;
    assert!(claims.contains("free.txt"), "{claims}");
    // It goes on, and so does the look at it.
    scratch.write("later.txt", "typed in the next turn\n");
    let said = stops(&bob);
    assert!(said.contains("your command changed later.txt"), "{said}");
    // Where each end is told, a call without one may not have been allowed to begin.
    assert_eq!(denied(&ann(&scratch).shell("before", "python3 w.py")), None);
    scratch.write("held.txt", "by somebody else\n");
    assert!(!stops(&ann(&scratch)).contains("Baton: your command changed"));
    assert_eq!(breaches(&scratch), 2, "{}", journal(&scratch));
}

#[test]
fn what_its_own_command_changed_is_no_news_of_its_holder() {
    let scratch = with_files(&["held.txt"]);
    let (ann, eve) = (ann(&scratch), scratch.session("eve"));
    scratch.acts(&eve, &["claim", "held.txt"]).ok();
    ann.tool("after", "Read", &json!({ "file_path": ann.file("held.txt") }));
    let said = runs(&ann, "python3 write.py held.txt", || scratch.write("held.txt", "around\n"));
    assert!(said.out.contains("your command changed held.txt"), "{said:?}");
    let prompt = || ann.tells(json!({ "hook_event_name": "UserPromptSubmit", "prompt": "on" }));
    let said = prompt();
    assert!(!said.out.contains("was changed by eve"), "it was not: {said:?}");
    scratch.write("held.txt", "by eve\n");
    let said = prompt();
    assert!(said.out.contains("held.txt was changed by eve since you read it"), "{said:?}");
}

#[test]
fn a_failed_test_is_laid_at_shell_edits_too_and_never_at_our_own_refusals() {
    let scratch = with_files(&["src/other.rs"]);
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    runs(&bob, "printf 'broken(' > src/other.rs", || scratch.write("src/other.rs", "broken("));
    let fails = |line: &str| {
        ann.shell("before", line);
        ann.tells(json!({ "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
            "tool_input": { "command": line }, "tool_use_id": "c1" }))
    };
    let said = fails("sh t.sh");
    assert!(
        said.out.contains("in the middle of edits that are not yours: src/other.rs"),
        "{said:?}"
    );
    // Gemini has no field for it: an exit code is a line of what its model reads.
    let gemini = Agent { scratch: &scratch, client: "gemini", id: "g" };
    let told = |code: &str| {
        gemini.shell("before", "sh t.sh");
        let text = format!(
            "<untrusted_context>\nOutput: Exit Code: 1\nsaid{code}\nProcess Group PGID: \
             7\n</untrusted_context>"
        );
        gemini.tells(json!({ "hook_event_name": "AfterTool", "tool_name": "run_shell_command",
            "tool_input": { "command": "sh t.sh" },
            "tool_response": { "llmContent": text, "returnDisplay": "said" } }))
    };
    let said = told("");
    assert!(!said.out.contains("in the middle"), "{said:?}");
    let said = told("\nExit Code: 1");
    assert!(said.out.contains("in the middle of edits that are not yours"), "{said:?}");
    let said = fails("baton commit -m 'mine' src/a.rs");
    assert!(!said.out.contains("in the middle"), "{said:?}");
    bob.tells(json!({ "hook_event_name": "SessionEnd" })).ok();
    let said = fails("sh t.sh");
    assert!(!said.out.contains("in the middle"), "whoever is gone ends no edit: {said:?}");
}

#[test]
fn many_breaches_are_few_words() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    runs(&ann, "echo x > many/x", || ());
    let names: Vec<String> = (0..40).map(|number| format!("many/{number}.txt")).collect();
    names.iter().for_each(|name| edits(&ann, name, "ann's\n"));
    let said = runs(&bob, "python3 all.py", || {
        names.iter().for_each(|name| scratch.write(name, "bob's\n"));
    });
    assert!(said.out.contains("and 35 more that others hold"), "{said:?}");
    assert!(said.out.len() < 4_000, "{}", said.out.len());
    assert_eq!(breaches(&scratch), 40);
}

#[test]
fn what_is_taken_off_the_clients_list_is_nobodys_task() {
    let scratch = Scratch::workspace();
    let ann = ann(&scratch);
    ann.tells(json!({ "hook_event_name": "TaskCreated", "task_id": "1", "task_subject": "Mend" }));
    ann.tool("after", "TaskUpdate", &json!({ "taskId": "1", "status": "deleted" })).ok();
    let shown = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
    assert_eq!(shown["state"], "cancelled", "{shown}");
    let stop = ann.tells(json!({ "hook_event_name": "Stop", "stop_hook_active": false }));
    assert_eq!(stop.out, "");
}

fn break_store(scratch: &Scratch) {
    for name in ["store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(scratch.store().join(name));
    }
    std::fs::write(scratch.store().join("store.db"), [7; 100_000]).unwrap();
}

#[test]
fn a_broken_store_is_told_before_an_act_and_not_after_it() {
    let scratch = Scratch::workspace();
    let ann = ann(&scratch);
    assert_eq!(denied(&ann.write("src/a.rs", "x")), None);
    break_store(&scratch);
    assert!(ann.write("src/a.rs", "x").out.contains("was not judged"));
    assert!(ann.shell("before", "make").out.contains("was not judged"));
    let file = json!({ "file_path": ann.file("src/a.rs"), "content": "x" });
    for said in [
        ann.tool("after", "Write", &file),
        ann.tool("after", "Read", &file),
        ann.shell("after", "make"),
    ] {
        assert_eq!(said.out, "", "{said:?}");
    }
}

/// What is said before a tool does not reach the models of these.
#[test]
fn where_nobody_hears_words_before_an_act_a_broken_store_is_told_after_it() {
    let scratch = Scratch::workspace();
    break_store(&scratch);
    for (client, name, key) in [
        ("gemini", "write_file", "file_path"),
        ("opencode", "write", "filePath"),
        ("cursor", "Write", "path"),
    ] {
        let agent = Agent { scratch: &scratch, client, id: "s" };
        let before = [agent.write("src/a.rs", "x"), agent.shell("before", "make")];
        assert!(before.iter().all(|said| !said.out.contains("not judged")), "{before:?}");
        let input = json!({ key: agent.file("src/a.rs"), "content": "x" });
        for said in [agent.tool("after", name, &input), agent.shell("after", "make")] {
            assert!(said.ok().out.contains("was not judged"), "{client}");
        }
    }
}

/// Claude takes words at a stop for a reason to go on, and would go on until it gives up.
#[test]
fn without_a_store_whoever_stops_is_let_go_in_silence() {
    let scratch = Scratch::workspace();
    break_store(&scratch);
    for (client, nothing, events) in [
        ("claude", "", ["Stop", "SubagentStop", "SessionEnd", "PreCompact"].as_slice()),
        ("codex", "{}\n", &["Stop", "SubagentStop", "SessionEnd", "PreCompact"]),
        ("gemini", "", &["AfterAgent", "SessionEnd"]),
        ("cursor", "", &["stop", "subagentStop", "sessionEnd", "preCompact"]),
        ("opencode", "", &["session.idle", "session.deleted", "dispose"]),
    ] {
        let agent = Agent { scratch: &scratch, client, id: "s" };
        for event in events {
            let said = agent.tells(json!({ "hook_event_name": event, "agent_id": "a" })).ok();
            assert_eq!((said.out.as_str(), said.err.as_str()), (nothing, ""), "{client} {event}");
        }
    }
    let ann = ann(&scratch);
    let said = ann.tells(json!({ "hook_event_name": "WorktreeCreate", "name": "t" }));
    assert_eq!((said.code, said.out.as_str()), (1, ""), "no folder was made: {said:?}");
    let said = ann.tells(json!({ "hook_event_name": "SessionStart", "source": "startup" }));
    assert!(said.out.contains("was not judged"), "{said:?}");
}
