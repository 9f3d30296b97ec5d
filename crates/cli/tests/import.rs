//! `import`: checklists, task files and beads' export; each task once, all or nothing.

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};

fn import(scratch: &Scratch, from: &str) -> Value {
    scratch.baton(&["import", from, "--json"]).ok().json()
}

fn titles(items: &Value) -> Vec<String> {
    let items = items.as_array().unwrap();
    items.iter().map(|item| item["title"].as_str().unwrap().to_owned()).collect()
}

fn task(scratch: &Scratch, id: &str) -> Value {
    scratch.baton(&["task", "show", id, "--json"]).ok().json()
}

fn count(scratch: &Scratch) -> usize {
    let list = scratch.baton(&["task", "list", "--all", "--json"]).ok().json();
    list["tasks"].as_array().unwrap().len()
}

#[track_caller]
fn malformed(scratch: &Scratch, file: &str, text: &str, place: &str) -> Said {
    scratch.write(file, text);
    let said = scratch.baton(&["import", file]).refused(2);
    assert!(said.err.contains(&format!("{file}:{place}: ")), "{place}: {said:?}");
    said
}

#[test]
fn a_checklist_is_filed_once() {
    Scratch::on_each_store("", |scratch| {
        let text = "# Plan\n\nSome words.\n\n- [ ] build the parser\n  in one pass\n\n  no regex\n\
                    \x20 - [x] read about it\n  - [ ] write the lexer\n\
                    - [ ] ship \u{202e}it\n- [X] begin\n";
        scratch.write("TASKS.md", text);
        let dry = scratch.baton(&["import", "TASKS.md", "--dry-run", "--json"]).ok().json();
        let three = ["build the parser", "write the lexer", "ship \u{202e}it"];
        assert_eq!((titles(&dry["filed"]), count(scratch)), (three.map(str::to_owned).to_vec(), 0));
        assert_eq!(dry["filed"][0]["task"], Value::Null);
        let said = scratch.baton(&["import", "TASKS.md"]).ok();
        assert!(said.out.starts_with("filed 3 tasks from TASKS.md\n"), "{said:?}");
        assert!(said.out.contains("skipped 2 items: it is done"), "{said:?}");
        assert!(said.out.contains("\\u{202e}") && !said.out.contains('\u{202e}'), "S20: {said:?}");
        let list = scratch.baton(&["task", "list", "--json"]).ok().json();
        let of = |title: &str| {
            let tasks = list["tasks"].as_array().unwrap();
            tasks.iter().find(|task| task["title"] == title).unwrap().clone()
        };
        let (whole, part) = (of("build the parser"), of("write the lexer"));
        assert_eq!(whole["after"], json!([part["task"]]), "the whole comes after its parts");
        assert_eq!((&whole["state"], &part["state"]), (&json!("blocked"), &json!("open")));
        assert_eq!(part["unblocks"], 1);
        let shown = task(scratch, whole["task"].as_str().unwrap());
        assert_eq!(shown["body"], "in one pass\n\nno regex");
        let again = import(scratch, "TASKS.md");
        assert_eq!((titles(&again["filed"]).len(), titles(&again["known"]).len()), (0, 3));
        assert_eq!(count(scratch), 3);
        // What was added since is filed, and only that.
        scratch.write("TASKS.md", &format!("{text}- [ ] sell it\n"));
        assert_eq!(titles(&import(scratch, "TASKS.md")["filed"]), ["sell it"]);
        // Another list may use the same titles.
        let other = scratch.baton(&["import", "TASKS.md", "--source", "other", "--json"]).ok();
        assert_eq!(titles(&other.json()["filed"]).len(), 4);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn an_operation_id_makes_a_retry_the_same_import() {
    let scratch = Scratch::workspace();
    scratch.write("TASKS.md", "- [ ] a\n- [ ] b\n");
    let words = ["import", "TASKS.md", "--op-id", "one", "--json"];
    let first = scratch.baton(&words).ok().json();
    assert_eq!(scratch.baton(&words).ok().json(), first);
    scratch.write("TASKS.md", "- [ ] c\n");
    scratch.baton(&words).refused(1);
    assert_eq!(count(&scratch), 2);
}

#[test]
fn our_own_export_is_known_again_and_anothers_is_taken_over_once() {
    let scratch = Scratch::workspace();
    scratch.baton(&["task", "add", "read dates", "--body", "all\n## of them", "--label", "x"]).ok();
    scratch.baton(&["task", "add", "write dates", "--after", "t1", "--priority", "0"]).ok();
    scratch.baton(&["task", "add", "gone"]).ok();
    scratch.baton(&["task", "cancel", "t3", "--why", "x"]).ok();
    scratch.baton(&["export", "../out"]).ok();
    for from in ["../out", "../out/TASKS.md", "../out/tasks", "../out/tasks/t1.md"] {
        let said = import(&scratch, from);
        assert_eq!(titles(&said["filed"]).len(), 0, "{from}: {said}");
    }
    // Without the line that says whose it is, the same id and title tell.
    let list = std::fs::read_to_string(scratch.path("out/TASKS.md")).unwrap();
    let bare: String = list
        .lines()
        .filter(|line| !line.starts_with("<!--"))
        .fold(String::new(), |text, line| format!("{text}{line}\n"));
    scratch.write("bare.md", &bare);
    assert_eq!(titles(&import(&scratch, "bare.md")["filed"]).len(), 0);
    // A person adds a line.
    std::fs::write(scratch.path("out/TASKS.md"), format!("{list}- [ ] a new one\n")).unwrap();
    assert_eq!(titles(&import(&scratch, "../out")["filed"]), ["a new one"]);

    let other = Scratch::workspace();
    other.baton(&["task", "add", "mine"]).ok();
    let from = scratch.path("out").to_str().unwrap().to_owned();
    let said = import(&other, &from);
    assert_eq!(titles(&said["filed"]), ["read dates", "write dates", "a new one"], "{said}");
    let (first, second) = (task(&other, "t2"), task(&other, "t3"));
    assert_eq!((&first["body"], &first["labels"]), (&json!("all\n## of them"), &json!(["x"])));
    assert_eq!((&second["after"], &second["priority"]), (&json!(["t2"]), &json!(0)));
    for again in [from.clone(), format!("{from}/TASKS.md"), format!("{from}/tasks")] {
        assert_eq!(titles(&import(&other, &again)["filed"]).len(), 0, "{again}");
    }
    // One file alone finds what was taken over before it.
    other.baton(&["import", &format!("{from}/tasks/t2.md")]).ok();
}

#[test]
fn task_files_of_others_are_understood() {
    let scratch = Scratch::workspace();
    let one = "---\nid: A-1\ntitle: 'First: thing'\nstatus: In Progress\nassignee: ann\n\
               priority: high\ntags:\n  - web\n  - api\ncreated: 2026-01-01\nmeta:\n  deep: 1\n\
               files: [src/a.rs]\n---\n# First: thing\n\nDo it.\n";
    scratch.write("backlog/a-1.md", one);
    scratch.write("backlog/second.md", "---\nstatus: on-hold\ndepends_on: [A-1]\n---\n# Second\n");
    scratch
        .write("backlog/third.md", "---\ntitle: Third\nblocked_by: second\nstate: blocked\n---\n");
    scratch.write("backlog/fourth.md", "---\ntitle: Fourth\nstate: waiting\n---\n");
    scratch.write("backlog/README.md", "# Read me\n");
    let said = import(&scratch, "backlog");
    assert_eq!(titles(&said["filed"]), ["First: thing", "Third", "Fourth", "Second"], "{said}");
    assert_eq!(said["skipped"][0]["why"], "it has no front matter");
    assert_eq!(said["filed"][0]["there"], "In Progress, ann");
    let by_title = |title: &str| {
        let items = said["filed"].as_array().unwrap();
        let item = items.iter().find(|item| item["title"] == title).unwrap();
        task(&scratch, item["task"].as_str().unwrap())
    };
    let first = by_title("First: thing");
    assert_eq!((&first["body"], &first["priority"]), (&json!("Do it."), &json!(1)));
    assert_eq!((&first["labels"], &first["state"]), (&json!(["api", "web"]), &json!("open")));
    let (second, third, fourth) = (by_title("Second"), by_title("Third"), by_title("Fourth"));
    assert_eq!((&second["state"], &second["after"]), (&json!("parked"), &json!([first["task"]])));
    assert_eq!((&third["state"], &third["after"]), (&json!("blocked"), &json!([second["task"]])));
    let why = fourth["reason"].as_str().unwrap();
    assert_eq!((&fourth["state"], why.contains("waiting")), (&json!("blocked"), true));
    assert_eq!(titles(&import(&scratch, "backlog")["filed"]).len(), 0);
}

fn tie(id: &str, on: &str, kind: &str) -> Value {
    json!({ "issue_id": id, "depends_on_id": on, "type": kind })
}

fn beads() -> String {
    let ties =
        [("bd-1", "parent-child"), ("bd-3", "blocks"), ("bd-4", "blocks"), ("bd-9", "related")];
    let ties: Vec<Value> = ties.iter().map(|(on, kind)| tie("bd-2", on, kind)).collect();
    let lines = [
        json!({ "id": "bd-1", "title": "Auth", "description": "epic", "status": "open",
            "priority": 1, "issue_type": "epic", "created_at": "2026-01-01T00:00:00Z" }),
        json!({ "id": "bd-2", "title": "OAuth", "status": "in_progress", "priority": 0,
            "issue_type": "feature", "assignee": "ann", "labels": ["web"], "dependencies": ties }),
        json!({ "id": "bd-3", "title": "Keys", "status": "blocked", "design": "small",
            "acceptance_criteria": "works" }),
        json!({ "id": "bd-4", "title": "Old", "status": "closed" }),
        json!({ "_type": "memory", "key": "x" }),
        json!({ "id": "bd-5", "title": "Later", "status": "deferred" }),
    ];
    lines.map(|line| format!("{line}\n")).join("\n")
}

#[test]
fn beads_are_taken_over_with_their_order() {
    Scratch::on_each_store("", |scratch| {
        scratch.write(".beads/issues.jsonl", &beads());
        for from in [".beads/issues.jsonl", "."] {
            let dry = scratch.baton(&["import", from, "--dry-run", "--json"]).ok().json();
            assert_eq!((titles(&dry["filed"]).len(), &dry["format"]), (4, &json!("beads")));
        }
        let said = import(scratch, ".beads/issues.jsonl");
        assert_eq!(said["skipped"][0]["why"], "it is done");
        let by_title = |title: &str| {
            let items = said["filed"].as_array().unwrap();
            let item = items.iter().find(|item| item["title"] == title).unwrap();
            task(scratch, item["task"].as_str().unwrap())
        };
        let (epic, part, keys) = (by_title("Auth"), by_title("OAuth"), by_title("Keys"));
        assert_eq!(epic["after"], json!([part["task"]]));
        assert_eq!((&part["after"], &part["state"]), (&json!([keys["task"]]), &json!("blocked")));
        assert_eq!(part["labels"], json!(["feature", "web"]));
        assert_eq!((&keys["state"], &keys["unblocks"]), (&json!("blocked"), &json!(2)));
        assert_eq!(keys["body"], "## Design\n\nsmall\n\n## Acceptance criteria\n\nworks");
        assert_eq!(by_title("Later")["state"], "parked");
        assert_eq!(titles(&import(scratch, ".beads")["known"]).len(), 4);
        // A later export may name only what is new.
        let ties = [tie("bd-6", "bd-5", "blocks")];
        let more = json!({ "id": "bd-6", "title": "More", "dependencies": ties }).to_string();
        scratch.write("more.jsonl", &more);
        let said = import(scratch, "more.jsonl");
        assert_eq!(titles(&said["filed"]), ["More"]);
        assert_eq!(by_title("Later")["unblocks"], 1);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn what_is_not_understood_is_refused_with_its_place_before_anything_is_written() {
    let scratch = Scratch::workspace();
    let tie = |id: &str, on: &str, kind: &str| {
        format!(
            "{{\"id\":\"{id}\",\"title\":\"x\",\"dependencies\":[{{\"issue_id\":\"{id}\",\
             \"depends_on_id\":\"{on}\",\"type\":\"{kind}\"}}]}}\n"
        )
    };
    let good = "{\"id\":\"ok\",\"title\":\"ok\"}\n";
    let unknown = format!("{good}{{\"id\":\"b\",\"title\":\"x\",\"status\":\"odd\u{1b}\"}}\n");
    let said = malformed(&scratch, "a.jsonl", &unknown.replace('\u{1b}', "\\u001b"), "2:23");
    assert!(said.err.contains("\"odd\\u{1b}\" is no status"), "{said:?}");
    let said = malformed(&scratch, "a.jsonl", &unknown, "2:36");
    assert!(!said.err.contains('\u{1b}'), "S20: {said:?}");
    let circle = format!("{}{}", tie("a", "b", "blocks"), tie("b", "a", "blocks"));
    let said = malformed(&scratch, "a.jsonl", &circle, "1:11");
    assert!(said.err.contains("a waits for b waits for a"), "{said:?}");
    malformed(&scratch, "a.jsonl", &tie("a", "a", "blocks"), "1:11");
    malformed(&scratch, "a.jsonl", &format!("{good}{}", tie("a", "gone", "blocks")), "2:23");
    malformed(&scratch, "a.jsonl", &tie("a", "b", "hates"), "1:23");
    malformed(&scratch, "a.jsonl", &format!("{good}{{\"id\": 1}}\n"), "2:8");
    malformed(&scratch, "a.jsonl", &format!("{good}{good}"), "2:2");
    malformed(&scratch, "a.jsonl", "{\"id\":\"p\",\"title\":\"x\",\"priority\":5}", "1:23");
    malformed(&scratch, "a.jsonl", "\n", "1:1");
    malformed(&scratch, "a.md", "- [ ] fine\n- [?] what\n", "2:4");
    malformed(&scratch, "a.md", &format!("- [ ] ok\n- [ ] {}\n", "x".repeat(1 << 20)), "2:3");
    malformed(&scratch, "a.md", "words\n", "1:1");
    let deep: String = (0..40).map(|depth| format!("{}- [ ] x\n", "  ".repeat(depth))).collect();
    malformed(&scratch, "a.md", &deep, "17:35");
    malformed(&scratch, "a.md", "---\ntitle: x\nstate: odd\n---\n", "3:8");
    malformed(&scratch, "a.md", "---\ntitle: x\npriority: 9\n---\n", "3:11");
    malformed(&scratch, "a.md", "---\ntitle: x\npaths: [../../etc/passwd]\n---\n", "3:9");
    malformed(&scratch, "a.md", "---\ntitle: x\nafter: [nobody]\n---\n", "3:9");
    malformed(&scratch, "a.md", "---\nstate: open\n---\n", "1:1");
    malformed(&scratch, "a.txt", "- [ ] x\n", "1:1");
    std::fs::write(scratch.root().join("a.md"), b"- [ ] ok\n- [ ] \xff\n").unwrap();
    let said = scratch.baton(&["import", "a.md"]).refused(2);
    assert!(said.err.contains("a.md:2:7: "), "{said:?}");
    let many: String = (0..2_001).map(|number| format!("- [ ] task {number}\n")).collect();
    scratch.write("a.md", &many);
    let said = scratch.baton(&["import", "a.md"]).refused(2);
    assert!(said.err.contains("2000"), "{said:?}");
    std::fs::create_dir_all(scratch.root().join("empty")).unwrap();
    scratch.baton(&["import", "empty"]).refused(2);
    scratch.baton(&["import", "gone.md"]).refused(4);
    scratch.baton(&["import", "a.md", "--source", "a b"]).refused(2);
    assert_eq!(count(&scratch), 0, "nothing of all that was filed");
}
