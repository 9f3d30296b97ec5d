//! Which commands of `baton.toml` Baton may run, and who says so, on both stores.

use crate::harness::{Said, Scratch};
use crate::reviews::person_token;

const CHECKED: &str = "[[queue.check]]\nname = \"unit\"\nrun = [\"make\", \"test\"]\n";

fn as_person(scratch: &Scratch, person: &str, words: &[&str]) -> Said {
    let mut command = scratch.command(words);
    command.env("BATON_PERSON_TOKEN_FILE", person);
    command.output().unwrap().into()
}

#[test]
fn a_person_puts_the_policy_in_force_and_trusts_its_commands_at_once() {
    Scratch::on_each_store(CHECKED, |scratch| {
        let shown = scratch.baton(&["policy", "show"]).ok();
        assert!(shown.out.contains("not trusted"), "{shown:?}");
        assert!(shown.out.contains("queue check unit: 'make' 'test'"), "{shown:?}");
        let doctor = scratch.baton(&["doctor"]);
        assert!(doctor.out.contains("no person stands for queue check unit"), "{doctor:?}");
        let person = person_token(scratch);
        let unasked = as_person(scratch, &person, &["trust"]);
        assert_eq!(unasked.code, 1, "{unasked:?}");
        assert!(unasked.err.contains("queue check unit: 'make' 'test'"), "{unasked:?}");
        assert!(unasked.err.contains("next: read baton.toml, then baton trust --yes"));
        let id = ["trust", "--yes", "--json", "--op-id", "once"];
        let given = as_person(scratch, &person, &id).ok().json();
        assert_eq!(given["added"][0]["what"], "queue check unit");
        assert_eq!(as_person(scratch, &person, &id).ok().json(), given, "a retry");
        let shown = scratch.baton(&["policy", "show"]).ok();
        assert!(!shown.out.contains("not trusted"), "{shown:?}");
        assert!(!scratch.baton(&["doctor"]).out.contains("no person stands for"));
        // Another policy and another command: in force and trusted together, or neither.
        scratch.write("baton.toml", &CHECKED.replace("test", "all\\u001b[2J"));
        let said = as_person(scratch, &person, &["trust", "--yes"]).ok();
        assert!(said.out.contains("trusted 1 command"), "{said:?}");
        assert!(!said.out.contains('\u{1b}'), "{said:?}");
        let journal = scratch.baton(&["journal"]).ok();
        assert!(
            journal.out.contains("a person stands for 1 command of baton.toml: queue check unit")
        );
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn an_agent_and_a_script_trust_nothing() {
    let scratch = Scratch::with_policy(CHECKED);
    let ann = scratch.session("ann");
    let changed = CHECKED.replace("make", "evil");
    scratch.write("baton.toml", &changed);
    for said in [
        scratch.acts(&ann, &["trust", "--yes"]),
        scratch.baton(&["trust", "--yes"]),
        scratch.command(&["trust", "--yes"]).env("CLAUDECODE", "1").output().unwrap().into(),
        scratch.baton(&["trust"]),
    ] {
        let said = said.refused(1);
        assert!(said.err.contains("trusting commands is for a person"), "{said:?}");
    }
    let shown = scratch.baton(&["policy", "show", "--json"]).ok().json();
    assert_eq!(shown["untrusted"][0]["argv"][0], "make");
    // A policy in force is not a command that may run.
    scratch.baton(&["policy", "approve", "--yes"]).ok();
    let shown = scratch.baton(&["policy", "show", "--json"]).ok().json();
    assert_eq!(shown["untrusted"][0]["argv"][0], "evil");
    let person = person_token(&scratch);
    scratch.write("baton.toml", "[[queue.check]]\nname = \"unit\"\nrun = []\n");
    assert_eq!(as_person(&scratch, &person, &["trust", "--yes"]).code, 2);
    std::fs::remove_file(scratch.root().join("baton.toml")).unwrap();
    as_person(&scratch, &person, &["trust", "--yes"]).refused(2);
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    let scratch = Scratch::with_policy(CHECKED);
    let Some(no) = scratch.person(&["trust"], "n\n") else { return };
    assert_eq!(no.code, 1, "{no:?}");
    assert!(no.out.contains("queue check unit: 'make' 'test'"), "{no:?}");
    let yes = scratch.person(&["trust"], "y\n").unwrap().ok();
    assert!(yes.out.contains("trusted 1 command"), "{yes:?}");
}
