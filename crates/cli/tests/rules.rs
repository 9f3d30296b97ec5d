//! `rules show`, `check`, `report`, and how a change reaches every session.

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::hooks::Agent;

const TWO: &str = "\
# Rules

1. **Say what is so.** Also what failed.
   Enforced by: advice.
2. **Claim first.** One writer.
   Enforced by: the edit, shell and git doors.
3. *(yours)*
";

fn commit_rules(scratch: &Scratch, text: &str) {
    scratch.write(".baton/rules.md", text);
    scratch.git(&["add", ".baton/rules.md"]);
    scratch.git(&["commit", "-qm", "rules"]);
}

fn shown(scratch: &Scratch) -> Value {
    scratch.baton(&["rules", "show", "--json"]).ok().json()
}

fn primed(scratch: &Scratch, credential: &str) -> Said {
    let said = scratch.acts(credential, &["prime"]).ok();
    assert!(said.out.len() <= 2_100, "{}", said.out.len());
    said
}

#[test]
fn a_change_reaches_every_session_at_its_next_start_whatever_tree_it_is_in() {
    Scratch::on_each_store("# plain\n", |scratch| {
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        // None yet, then one that nobody has committed: it counts, and that is said.
        scratch.baton(&["rules", "show"]).refused(1);
        assert!(primed(scratch, &ann).out.contains("Rules:\n- verify before"), "the built-in ones");
        scratch.write(".baton/rules.md", TWO);
        let said = scratch.baton(&["rules", "show"]).ok();
        assert!(said.out.contains("from the working tree: the branch"), "{said:?}");
        commit_rules(scratch, TWO);
        let first = shown(scratch);
        assert_eq!((&first["from"], &first["source"]["from"]), (&Value::Null, &json!("target")));
        assert_eq!(first["source"]["branch"], "main");
        assert_eq!(first["since"].as_str(), Some(scratch.git(&["rev-parse", "HEAD"]).trim()));
        let told = primed(scratch, &ann).out;
        assert!(told.contains("1. Say what is so\n- 2. Claim first"), "{told}");
        assert!(told.contains("baton rules show"), "{told}");
        // A tree that was made before the change has the old file, and is told the new rules.
        let tree = scratch.path("old");
        scratch.git(&["worktree", "add", "-q", tree.to_str().unwrap(), "-b", "old"]);
        let changed = TWO.replace("Say what is so", "Say it all");
        commit_rules(scratch, &changed);
        // What is not committed does not count.
        scratch.write(".baton/rules.md", "1. **Mine.** x\n   Enforced by: advice.\n");
        let folder = tree.to_str().unwrap();
        for _ in 0..2 {
            let told = scratch.acts(&bob, &["-C", folder, "prime"]).ok().out;
            assert!(told.contains("1. Say it all\n"), "{told}");
        }
        let second = shown(scratch);
        assert_ne!(first["version"], second["version"]);
        let report = scratch.baton(&["rules", "report", "--json"]).ok().json();
        let of = |name: &str| {
            let sessions = report["sessions"].as_array().unwrap();
            sessions.iter().find(|one| one["name"] == name).unwrap().clone()
        };
        assert_eq!(
            (&of("ann")["version"], &of("ann")["current"]),
            (&first["version"], &json!(false))
        );
        assert_eq!(
            (&of("bob")["version"], &of("bob")["current"]),
            (&second["version"], &json!(true))
        );
        let journal = scratch.baton(&["journal", "--kind", "rules_seen"]).ok().out;
        assert_eq!(journal.lines().count(), 2, "once for each session and version: {journal}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_rule_that_claims_more_than_there_is_is_told() {
    let scratch = Scratch::workspace();
    commit_rules(&scratch, TWO);
    let said = scratch.baton(&["rules", "check"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("off     2. Claim first"), "{said:?}");
    assert!(said.out.contains("the edit door: off, no client is wired"), "{said:?}");
    assert!(said.out.contains("advice  1. Say what is so"), "{said:?}");
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let said = scratch.baton(&["rules", "check"]).ok();
    assert!(said.out.contains("on      2. Claim first"), "{said:?}");
    let enforced = |by: &str| {
        commit_rules(&scratch, &format!("1. **One.** x\n   Enforced by: {by}\n"));
        scratch.baton(&["rules", "check"]).code
    };
    for by in ["`baton deploy`.", "`baton task done`", "`baton land`"] {
        assert_eq!(enforced(by), 1, "{by}");
        assert_eq!(enforced(&format!("{by}, where configured; else advice")), 0, "{by}");
    }
    scratch.git(&["config", "core.hooksPath", "elsewhere"]);
    assert_eq!(enforced("the git door"), 1);
    assert_eq!(enforced("the edit door"), 0);
}

#[test]
fn the_starter_is_sound_where_clients_are_wired() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let said = scratch.baton(&["rules", "check"]).ok();
    assert!(said.out.contains("3 numbers are free for rules of yours"), "{said:?}");
    assert!(said.out.contains("on      5. Claim before you change"), "{said:?}");
    assert!(said.out.contains("advice  6. Be in sync before you deploy"), "{said:?}");
    let ann = scratch.session("ann");
    let told = primed(&scratch, &ann).out;
    assert!(told.contains("- 7. Carry work through interruptions"), "{told}");
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_its_line() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    commit_rules(&scratch, "# Rules\n\n- **One.** x\n");
    for words in [["rules", "show"], ["rules", "check"]] {
        let said = scratch.baton(&words).refused(1);
        assert!(said.err.contains("cannot be read: line 1: there is no rule"), "{said:?}");
    }
    let told = primed(&scratch, &ann).out;
    assert!(told.contains(".baton/rules.md cannot be read: line 1: there is no rule"), "{told}");
    let journal = scratch.baton(&["journal", "--kind", "rules_seen"]).ok().out;
    assert_eq!(journal, "", "what cannot be read was not seen");
}

#[test]
fn rules_of_the_users_own_are_told_however_their_lines_look() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let starter = std::fs::read_to_string(scratch.root().join(".baton/rules.md")).unwrap();
    let tabs = "8. **Use tabs, never spaces.** Always.\n   Enforced by: CI\u{1b}[2J.";
    let own = starter.replace("8. *(yours)*", tabs);
    let own = own.replace("9. *(yours)*", "9. **Ask before new dependencies.** Always.");
    commit_rules(&scratch, &own);
    let line = |words: &str| own.lines().position(|line| line.contains(words)).unwrap() + 1;
    let (first, second) = (line("Enforced by: CI"), line("Ask before"));
    let said = scratch.baton(&["rules", "show"]).ok().out;
    assert!(said.contains("  8. Use tabs, never spaces\n     Always.\n     advice: "), "{said}");
    assert!(
        said.contains("  9. Ask before new dependencies\n     Always.\n     advice: "),
        "{said}"
    );
    let note = format!("lines {first}, {second} of .baton/rules.md are faulty: baton rules check");
    assert!(said.contains(&note) && !said.contains('\u{1b}'), "{said}");
    let faults = shown(&scratch)["faults"].clone();
    assert_eq!((&faults[0]["line"], &faults[1]["line"]), (&json!(first), &json!(second)));
    // Every faulty line, what is expected there, and nothing that is not so.
    let said = scratch.baton(&["rules", "check"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("advice  8. Use tabs, never spaces\n"), "{said:?}");
    assert!(said.out.contains("advice  9. Ask before new dependencies\n"), "{said:?}");
    for fault in [
        format!(
            "faulty line {first}: rule 8: nothing Baton knows enforces it: it counts as advice"
        ),
        format!("faulty line {second}: rule 9: no line \"Enforced by: …\" below it: it counts as"),
        "expected is that word, or the edit door, ".to_owned(),
        "next: put that right in .baton/rules.md".to_owned(),
    ] {
        assert!(said.out.contains(&fault), "{fault}: {said:?}");
    }
    assert!(!said.out.contains("an enforcement that is off"), "{said:?}");
    // Agents are told, whatever they start by, and that is written down.
    let ann = scratch.session("ann");
    let agent = Agent { scratch: &scratch, client: "claude", id: "bob" };
    let start = json!({ "hook_event_name": "SessionStart", "source": "startup" });
    for told in [primed(&scratch, &ann).out, agent.tells(start).out] {
        assert!(told.contains("- 8. Use tabs, never spaces"), "{told}");
        assert!(told.contains("- 9. Ask before new dependencies"), "{told}");
    }
    let journal = scratch.baton(&["journal", "--kind", "rules_seen"]).ok().out;
    assert!(journal.lines().count() >= 2, "{journal}");
}

#[test]
fn many_rules_are_cut_before_who_you_are_and_after_what_others_hold() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    let rule = |number: u32| {
        format!("{number}. **Rule {number} {}.** y\n   Enforced by: advice\n", "x".repeat(90))
    };
    commit_rules(&scratch, &(1..=40).map(rule).collect::<String>());
    scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
    let told = primed(&scratch, &ann).out;
    assert!(told.contains("You are ann") && told.contains("- 1. Rule 1 "), "{told}");
    assert!(told.contains(" more: baton rules show"), "{told}");
    assert!(!told.contains("bob has src/a.rs"), "{told}");
}

#[test]
fn what_was_done_against_a_rule_is_reported_with_its_place_in_the_journal() {
    let scratch = Scratch::workspace();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let done = "4. **Verify.** Run it.\n   Enforced by: `baton task done`; else advice.\n";
    commit_rules(
        &scratch,
        &format!("{}{done}", TWO.replace("*(yours)*", "**X.** x\n   Enforced by: advice")),
    );
    let clean = scratch.baton(&["rules", "report"]).ok();
    assert!(clean.out.contains("nothing in the journal speaks against a rule"), "{clean:?}");
    // A script of bob's agent writes what cat's agent holds.
    let ann = scratch.session("ann");
    let cat = Agent { scratch: &scratch, client: "codex", id: "cat" };
    cat.write("src/a.rs", "fn a() {}\n").ok();
    scratch.write("build.py", "open('src/a.rs', 'w').write('fn other() {}')\n");
    let bob = Agent { scratch: &scratch, client: "claude", id: "bob" };
    bob.shell("before", "python3 build.py");
    scratch.write("src/a.rs", "fn other() {}\n");
    bob.shell("after", "python3 build.py");
    // And ann calls something done without showing anything.
    scratch.acts(&ann, &["task", "add", "Small thing"]).ok();
    scratch.acts(&ann, &["task", "take"]).ok();
    scratch
        .acts(&ann, &["task", "done", "t1", "--report-done", "it", "--report-not-done", "nothing"])
        .ok();
    let report = scratch.baton(&["rules", "report", "--json"]).ok().json();
    let counts: Vec<u64> = report["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["count"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [0, 1, 0, 1], "{report}");
    let what = report["rules"][1]["evidence"][0]["what"].as_str().unwrap();
    assert!(what.contains("changed src/a.rs by its shell, which"), "{what}");
    let said = scratch.baton(&["rules", "report"]).ok().out;
    assert!(said.contains("rule 4. Verify: 1 finding\n"), "{said}");
    assert!(said.contains("ann: t1 was called done, and nothing was shown for it"), "{said}");
    let later = scratch.baton(&["rules", "report", "--since", "2100-01-01"]).ok().out;
    assert!(later.contains("nothing in the journal speaks"), "{later}");
}

#[test]
fn a_lesson_stands_with_its_rule() {
    Scratch::on_each_store("# plain\n", |scratch| {
        commit_rules(scratch, TWO);
        let ann = scratch.session("ann");
        scratch.acts(&ann, &["note", "lesson", "ask \u{202e}first", "--rule", "2"]).ok();
        scratch.acts(&ann, &["note", "lesson", "x", "--rule", "0"]).refused(2);
        let said = scratch.baton(&["rules", "show"]).ok().out;
        let after = said.split("2. Claim first").nth(1).unwrap();
        assert!(after.contains("lesson by ann"), "{said}");
        assert!(!said.contains('\u{202e}'), "{said}");
        let notes = scratch.baton(&["notes", "--rule", "2", "--json"]).ok().json();
        assert_eq!(notes["notes"].as_array().unwrap().len(), 1);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn rules_that_are_being_written_are_told_apart_and_lessons_need_a_rule() {
    let scratch = Scratch::workspace();
    commit_rules(&scratch, TWO);
    let file = ".baton/rules.md";
    assert!(!scratch.baton(&["rules", "show"]).ok().out.contains("in this tree"));
    scratch.write(file, &format!("{TWO}4. **New.** x\n   Enforced by: advice\n"));
    let said = scratch.baton(&["rules", "show"]).ok().out;
    assert!(said.contains("in this tree is another") && said.contains("has landed"), "{said}");
    scratch.write(file, "1. no title\n");
    let said = scratch.baton(&["rules", "show"]).ok().out;
    assert!(said.contains("in this tree is another"), "{said}");
    assert!(said.contains("\n  faulty line 1: rule 1: no line \"Enforced by: …\""), "{said}");
    let ann = scratch.session("ann");
    let said = scratch.acts(&ann, &["note", "lesson", "x", "--rule", "99"]).refused(2);
    assert!(said.err.contains("rule 99 is not allowed") && said.err.contains("1, 2"), "{said:?}");
    scratch.acts(&ann, &["note", "lesson", "x", "--rule", "2"]).ok();
}
