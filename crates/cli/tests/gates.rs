//! Gates, votes and the user's own notify command through the binary, on both stores.

use serde_json::json;

use crate::harness::{Said, Scratch};
use crate::reviews::person_token;
use crate::tasks::on_both_stores;

pub(crate) fn as_person(scratch: &Scratch, person: &str, words: &[&str]) -> Said {
    let mut words = words.to_vec();
    // Before `--`, behind which a command of a gate stands.
    words.splice(1..1, ["--person-token", person]);
    scratch.baton(&words)
}

#[test]
fn a_gate_holds_a_task_until_a_person_decides() {
    on_both_stores(|scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        let person = person_token(scratch);
        scratch.baton(&["task", "add", "Drop the table"]).ok();
        scratch.acts(&ann, &["task", "take", "t1", "--claim"]).ok();
        let add =
            ["gate", "add", "--on", "t1", "--kind", "approval", "--ask", "May I drop \u{1b}[2Jit?"];
        let opened = scratch.acts(&ann, &add).ok();
        assert!(opened.out.contains("t1 waits until it is decided"), "{opened:?}");
        assert!(!opened.out.contains('\u{1b}'), "{opened:?}");
        assert_eq!(scratch.acts(&bob, &["task", "take"]).code, 1);
        let status = scratch.baton(&["status"]).ok();
        let lines: Vec<&str> = status.out.lines().collect();
        let at = lines.iter().position(|line| *line == "Waits for a person").unwrap();
        assert!(at <= 2, "status opens with it: {status:?}");
        assert!(lines[at + 1].contains("g1 on t1"), "{status:?}");
        assert!(lines[at + 2].contains("baton gate approve g1 --why '…'"), "{status:?}");
        let deny = ["gate", "deny", "g1", "--why", "rename it instead", "--json"];
        let refused = scratch.acts(&ann, &deny).refused(1);
        assert_eq!(refused.json()["refused"]["code"], "needs_person");
        scratch.baton(&deny).refused(1);
        let decided = as_person(scratch, &person, &deny).ok().json();
        assert_eq!(decided["state"], "active");
        assert_eq!(
            as_person(scratch, &person, &deny).refused(1).json()["refused"]["code"],
            "decided"
        );
        let told = scratch.acts(&ann, &["task", "update", "t1", "--next", "rename"]).ok();
        assert!(told.out.contains("rename it instead"), "the person's words: {told:?}");
        let shown = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
        assert_eq!((&shown["attempt"], &shown["attempts_used"]), (&json!(2), &json!(1)));
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn an_approval_holds_for_its_commit_and_no_other() {
    on_both_stores(|scratch| {
        let person = person_token(scratch);
        let head = scratch.git(&["rev-parse", "HEAD"]).trim().to_owned();
        scratch
            .baton(&[
                "gate",
                "add",
                "--on",
                "deploy",
                "--kind",
                "deploy",
                "--ask",
                "Ship it?",
                "--at",
                "HEAD",
                "--options",
                "blue,green",
            ])
            .ok();
        let other = "0123456789012345678901234567890123456789";
        let approve = |at: &str, option: &str| {
            let words =
                ["gate", "approve", "g1", "--why", "go", "--at", at, "--option", option, "--json"];
            as_person(scratch, &person, &words)
        };
        let stale = approve(other, "blue").refused(3);
        assert_eq!(stale.json()["refused"]["current"], json!(head));
        let wrong = approve(&head, "red").refused(2);
        assert!(wrong.err.contains("blue, green"), "{wrong:?}");
        let none =
            as_person(scratch, &person, &["gate", "approve", "g1", "--why", "go"]).refused(2);
        assert!(none.err.contains("asks for a choice"), "{none:?}");
        let decided = approve(&head[..10], "green").ok().json();
        assert_eq!(decided["decision"]["commit"], json!(head));
        let all = scratch.baton(&["gate", "list", "--all"]).ok();
        assert!(all.out.contains("approved"), "{all:?}");
        assert_eq!(scratch.baton(&["gate", "list"]).ok().out, "no gate is open\n");
    });
}

/// Files a gate on t1.
fn adding<'a>(kind: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["gate", "add", "--on", "t1", "--ask", "may it?", "--kind", kind];
    words.extend(more);
    words
}

#[test]
fn baton_looks_itself_at_files_and_times() {
    on_both_stores(|scratch| {
        let ann = scratch.session("ann");
        scratch.baton(&["task", "add", "After the build"]).ok();
        scratch.acts(&ann, &adding("file", &["--path", "build/done"])).ok();
        scratch.acts(&ann, &["task", "take"]).refused(1);
        scratch.write("build/done", "");
        assert_eq!(scratch.acts(&ann, &["task", "take", "--json"]).ok().json()["task"], "t1");
        scratch.acts(&ann, &adding("time", &["--when", "0s"])).ok();
        let shown = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
        assert_eq!(shown["state"], "active", "looking at it is enough");
        scratch.acts(&ann, &adding("time", &["--when", "1h"])).ok();
        let waits = scratch.acts(&ann, &["gate", "check", "g3"]).ok();
        assert!(waits.out.contains("waits g3 on t1"), "{waits:?}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_command_is_run_only_when_a_person_stands_for_it() {
    on_both_stores(|scratch| {
        let ann = scratch.session("ann");
        let person = person_token(scratch);
        scratch.baton(&["task", "add", "After the tests"]).ok();
        let canary = scratch.path("canary");
        let touch = adding("command", &["--", "touch", canary.to_str().unwrap()]);
        let added = scratch.acts(&ann, &touch).ok();
        assert!(added.out.contains("a person must trust"), "{added:?}");
        scratch.acts(&ann, &["gate", "check", "g1"]).refused(1);
        scratch.baton(&["task", "show", "t1"]).ok();
        assert_eq!(scratch.acts(&ann, &["task", "take"]).code, 1);
        assert!(!canary.exists(), "an agent's command is not run");
        scratch.acts(&ann, &["gate", "trust", "g1"]).refused(1);
        as_person(scratch, &person, &["gate", "trust", "g1"]).ok();
        let checked = scratch.acts(&ann, &["gate", "check", "--json"]).ok().json();
        let first = &checked["gates"][0];
        assert_eq!((&first["gate"], &first["passed"]), (&json!("g1"), &json!(true)));
        assert!(canary.exists());
        // Filed by a person, it is trusted; what it saw is kept, and no secret reaches it.
        let fails = ["--", "sh", "-c", "echo $BATON_SESSION two failed; exit 3"];
        as_person(scratch, &person, &adding("command", &fails)).ok();
        let waits = scratch.acts(&ann, &["gate", "check", "g2"]).ok();
        assert!(waits.out.contains("waits g2 on t1: exit 3: two failed"), "{waits:?}");
        let shown = scratch.baton(&["gate", "show", "g2"]).ok();
        assert!(shown.out.contains("does not pass: exit 3"), "{shown:?}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn the_users_own_command_is_run_once_a_gate() {
    on_both_stores(|scratch| {
        let ann = scratch.session("ann");
        let told = scratch.path("told");
        let config = scratch.path("home/.config/baton/config.toml");
        std::fs::create_dir_all(config.parent().unwrap()).unwrap();
        let notify = |command: &str| {
            let mut text = format!("notify = [\"sh\", \"-c\", {command:?}, \"notify\"]\n");
            if let Ok(old) = std::fs::read_to_string(&config) {
                let kept = old.lines().filter(|line| !line.starts_with("notify"));
                text = kept.map(|line| format!("{line}\n")).collect::<String>() + &text;
            }
            std::fs::write(&config, text).unwrap();
        };
        let heard = || std::fs::read_to_string(&told).unwrap_or_default();
        notify(&format!("echo \"$BATON_GATE $1\" >> {}", told.display()));
        let add = |ask: &str| {
            scratch.acts(&ann, &["gate", "add", "--on", "deploy", "--kind", "legal", "--ask", ask])
        };
        add("the $(id) licence\u{1b}?").ok();
        assert_eq!(heard(), "g1 g1 on deploy: the $(id) licence\\u{1b}?\n");
        scratch.baton(&["status"]).ok();
        add("the $(id) licence\u{1b}?").ok();
        assert_eq!(heard().lines().count(), 1, "once");
        // One that fails is remarked and stops nothing.
        notify("exit 7");
        let said = add("another").ok();
        assert!(said.err.contains("your notify command failed for g2: exit 7"), "{said:?}");
        notify(&format!("echo \"$BATON_GATE\" >> {}", told.display()));
        scratch.baton(&["status"]).ok();
        assert_eq!(heard().lines().count(), 1, "and not run again");
        // Whoever died before telling is made up for by the next command.
        std::fs::rename(&config, scratch.path("away")).unwrap();
        add("a third").ok();
        std::fs::rename(scratch.path("away"), &config).unwrap();
        scratch.baton(&["task", "list"]).ok();
        assert_eq!(heard().lines().last(), Some("g3"));
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn voters_who_disagree_wait_for_a_person() {
    on_both_stores(|scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        let person = person_token(scratch);
        let vote = |who: &str, value: &str| {
            scratch.acts(who, &["vote", "tabs or spaces", value, "--why", "I like them"])
        };
        let agreed = vote(&ann, "tabs").ok();
        assert!(agreed.out.contains("all say tabs"), "{agreed:?}");
        let contested = vote(&bob, "spaces").ok();
        assert!(contested.out.contains("a person decides g1"), "{contested:?}");
        let votes = scratch.baton(&["votes", "Tabs or spaces", "--json"]).ok().json();
        assert_eq!(votes["votes"].as_array().unwrap().len(), 2);
        let words = ["gate", "approve", "g1", "--option", "spaces", "--why", "width"];
        as_person(scratch, &person, &words).ok();
        let late = vote(&ann, "tabs").refused(1);
        assert!(late.err.contains("for spaces: width"), "{late:?}");
        scratch.baton(&["votes", "nothing"]).refused(1);
        scratch.baton(&["vote", "x", "y", "--why", "z"]).refused(1);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn bad_input_of_gates() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    let person = person_token(&scratch);
    let long = "x".repeat(5_000);
    let refusals: [(&[&str], i32, &str); 16] = [
        (&["gate", "add", "--on", "t9", "--kind", "legal", "--ask", "x"], 1, "there is no task"),
        (&["gate", "add", "--on", "x", "--kind", "moon", "--ask", "x"], 2, "approval"),
        (&["gate", "add", "--on", "x", "--kind", "legal", "--ask", " "], 2, "says nothing"),
        (&["gate", "add", "--on", "x", "--kind", "legal", "--ask", &long], 2, "too long"),
        (&["gate", "add", "--on", "a\u{202e}b", "--kind", "legal", "--ask", "x"], 2, "subject"),
        (&["gate", "add", "--on", "x", "--kind", "time", "--ask", "x"], 2, "--when"),
        (
            &["gate", "add", "--on", "x", "--kind", "time", "--ask", "x", "--when", "soon"],
            2,
            "time",
        ),
        (&["gate", "add", "--on", "x", "--kind", "file", "--ask", "x"], 2, "--path"),
        (
            &["gate", "add", "--on", "x", "--kind", "file", "--ask", "x", "--path", "../up"],
            1,
            "outside",
        ),
        (&["gate", "add", "--on", "x", "--kind", "command", "--ask", "x"], 2, "COMMAND"),
        (&["gate", "add", "--on", "x", "--kind", "legal", "--ask", "x", "--", "ls"], 2, "command"),
        (
            &["gate", "add", "--on", "x", "--kind", "legal", "--ask", "x", "--at", "nope"],
            1,
            "no commit",
        ),
        (&["gate", "approve", "g7", "--why", "x"], 1, "there is no gate"),
        (&["gate", "show", "moon"], 1, "there is no gate"),
        (&["gate", "check", "g7"], 1, "there is no gate"),
        (&["gate", "approve", "g1"], 2, "--why"),
    ];
    for (words, code, said) in refusals {
        let answer = scratch.acts(&ann, words);
        assert_eq!(answer.code, code, "{words:?}: {answer:?}");
        assert!(answer.err.to_lowercase().contains(&said.to_lowercase()), "{words:?}: {answer:?}");
        assert!(!answer.err.contains('\u{202e}'), "{answer:?}");
    }
    scratch.acts(&ann, &["gate", "add", "--on", "x", "--kind", "legal", "--ask", "x"]).ok();
    let near = scratch.baton(&["gate", "show", "g11"]).refused(1);
    assert!(near.err.contains("g1 on x"), "{near:?}");
    scratch.acts(&ann, &["gate", "check", "g1"]).refused(1);
    as_person(&scratch, &person, &["gate", "approve", "g1", "--why", " "]).refused(2);
    let twice = ["gate", "approve", "g1", "--why", "yes", "--op-id", "one", "--json"];
    let first = as_person(&scratch, &person, &twice).ok().json();
    assert_eq!(first, as_person(&scratch, &person, &twice).ok().json());
}
