//! Files people can read: what `export` writes of tasks, and `export --watch`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Scratch;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A workspace with a bit of everything.
fn furnish(scratch: &Scratch) -> String {
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    let add =
        ["task", "add", "read dates", "--priority", "1", "--paths", "src/a.rs", "--label", "x"];
    scratch.acts(&ann, &[&add[..], &["--body", "first\n## Report\n\tmake"]].concat()).ok();
    scratch.baton(&["task", "add", "write dates", "--after", "t1"]).ok();
    scratch.baton(&["task", "add", "evil \u{1b}[2J \u{202e}title"]).ok();
    scratch.baton(&["task", "add", "not wanted"]).ok();
    scratch.baton(&["task", "cancel", "t4", "--why", "no need"]).ok();
    scratch.acts(&ann, &["task", "take", "t1"]).ok();
    let offer = ["handoff", "offer", "t1", "--to", "bob", "--state", "half", "--remaining", "rest"];
    scratch.acts(&ann, &[&offer[..], &["--next", "read the month names"]].concat()).ok();
    scratch.acts(&bob, &["handoff", "accept", "t1"]).ok();
    scratch.acts(&ann, &["note", "decision", "no regular expressions", "--task", "t1"]).ok();
    scratch.acts(&ann, &["note", "lesson", "run the\n# tests first"]).ok();
    bob
}

#[test]
fn people_can_read_what_is_exported() {
    Scratch::on_each_store("", |scratch| {
        furnish(scratch);
        let said = scratch.baton(&["export", "../out", "--json"]).ok().json();
        let names = said["folder"]["changed"].to_string();
        for name in ["TASKS.md", "tasks/t1.md", "handoffs/t1-h1.md", "decisions.md", "lessons.md"] {
            assert!(names.contains(name), "{name}: {names}");
        }
        let out = scratch.path("out");
        let list = read(&out.join("TASKS.md"));
        for line in [
            "## Active",
            "- [ ] t1 read dates (priority 1, active, bob, attempt 2 of 3)",
            "- [ ] t2 write dates (priority 2, blocked, after t1)",
            "- [ ] t3 evil \\u{1b}[2J \\u{202e}title (priority 2, open)",
            "- [x] t4 not wanted (priority 2, cancelled)",
        ] {
            assert!(list.lines().any(|known| known == line), "{line}: {list}");
        }
        let page = read(&out.join("tasks/t1.md"));
        for line in [
            "task: t1",
            "title: \"read dates\"",
            "state: active",
            "assigned_to: \"bob\"",
            "priority: 1",
            "paths: [\"src/a.rs\"]",
            "labels: [\"x\"]",
            "next_action: \"read the month names\"",
            " ## Report",
            "\tmake",
        ] {
            assert!(page.lines().any(|known| known == line), "{line}: {page}");
        }
        assert!(page.contains("- attempt 1, ann, "), "{page}");
        let shown = scratch.baton(&["handoff", "show", "t1-h1", "--markdown"]).ok().out;
        assert_eq!(read(&out.join("handoffs/t1-h1.md")), shown);
        assert!(read(&out.join("decisions.md")).contains("no regular expressions"));
        assert!(read(&out.join("lessons.md")).contains("\nrun the\n # tests first\n"));
        scratch.baton(&["export", "../two"]).ok();
        for name in ["TASKS.md", "tasks/t1.md", "handoffs/t1-h1.md", "decisions.md"] {
            assert_eq!(read(&out.join(name)), read(&scratch.path("two").join(name)), "{name}");
        }
        let again = scratch.baton(&["export", "../out", "--json"]).ok().json();
        assert_eq!(again["folder"]["changed"], json!([]));
        scratch.baton(&["task", "update", "t3", "--priority", "4"]).ok();
        let again = scratch.baton(&["export", "../out", "--json"]).ok().json();
        let changed = json!(["journal.jsonl", "TASKS.md", "tasks/t3.md"]);
        assert_eq!(again["folder"]["changed"], changed);
    });
}

#[test]
fn only_what_baton_wrote_is_replaced_or_removed() {
    let scratch = Scratch::workspace();
    scratch.baton(&["task", "add", "one"]).ok();
    scratch.baton(&["export", "../out"]).ok();
    let out = scratch.path("out");
    let page = read(&out.join("tasks/t1.md"));
    std::fs::write(out.join("tasks/t77.md"), page.replace("t1", "t77")).unwrap();
    std::fs::write(out.join("tasks/t78.md"), "mine\n").unwrap();
    std::fs::write(out.join("tasks/notes.md"), &page).unwrap();
    let said = scratch.baton(&["export", "../out", "--json"]).ok().json();
    assert_eq!(said["folder"]["removed"], json!(["tasks/t77.md"]));
    assert!(out.join("tasks/t78.md").exists() && out.join("tasks/notes.md").exists());
    // A task gets a number that somebody used for a file of their own.
    std::fs::write(out.join("tasks/t2.md"), "mine\n").unwrap();
    scratch.baton(&["task", "add", "two"]).ok();
    let said = scratch.baton(&["export", "../out"]).refused(1);
    assert!(said.err.contains("tasks/t2.md"), "{said:?}");
    assert_eq!(read(&out.join("tasks/t2.md")), "mine\n");
    // Somebody's own checklist, in a folder of their own and in one of an earlier Baton.
    scratch.write("mine/TASKS.md", "- [ ] mine\n");
    scratch.baton(&["export", "mine"]).refused(1);
    scratch.baton(&["export", "../old"]).ok();
    let manifest = scratch.path("old/baton-export.json");
    let text = read(&manifest).replace("\"TASKS.md\",", "");
    std::fs::write(&manifest, text).unwrap();
    let said = scratch.baton(&["export", "../old"]).refused(1);
    assert!(said.err.contains("TASKS.md"), "{said:?}");
    // A file or a link where the folder would be.
    scratch.write("filed/tasks", "mine\n");
    scratch.baton(&["export", "filed"]).refused(1);
    std::fs::create_dir_all(scratch.root().join("linked")).unwrap();
    std::os::unix::fs::symlink(scratch.root(), scratch.root().join("linked/tasks")).unwrap();
    scratch.baton(&["export", "linked"]).refused(1);
    assert!(!scratch.root().join("t1.md").exists());
}

#[test]
fn the_same_files_go_to_git() {
    let scratch = Scratch::workspace();
    furnish(&scratch);
    scratch.baton(&["export", "--git"]).ok();
    let names = scratch.git(&["ls-tree", "-r", "--name-only", "refs/baton/state"]);
    for name in ["TASKS.md", "tasks/t1.md", "handoffs/t1-h1.md", "lessons.md", "claims.json"] {
        assert!(names.lines().any(|known| known == name), "{name}: {names}");
    }
    scratch.baton(&["export", "../out"]).ok();
    let shown = scratch.git(&["show", "refs/baton/state:tasks/t1.md"]);
    assert_eq!(shown, read(&scratch.path("out/tasks/t1.md")));
}

#[test]
fn a_watched_folder_stays_current_until_ctrl_c() {
    Scratch::on_each_store("", |scratch| {
        scratch.baton(&["task", "add", "one"]).ok();
        let mut watching = scratch
            .command(&["export", "../out", "--watch", "--json"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
        let mut next = || -> serde_json::Value {
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
        };
        let first = next();
        assert!(first["folder"]["changed"].to_string().contains("tasks/t1.md"), "{first}");
        scratch.baton(&["task", "add", "two"]).ok();
        let second = next();
        let changed = json!(["journal.jsonl", "TASKS.md", "tasks/t2.md"]);
        assert_eq!(second["folder"]["changed"], changed, "only what changed");
        assert!(read(&scratch.path("out/TASKS.md")).contains("t2 two"));
        let pid = watching.id().to_string();
        assert!(
            std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success()
        );
        let deadline = Instant::now() + Duration::from_secs(20);
        let ended = loop {
            if let Some(status) = watching.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(ended.code(), Some(0));
        let left = std::fs::read_dir(scratch.path("out/tasks")).unwrap().count();
        assert_eq!(left, 2, "no draft stays behind");
    });
    let scratch = Scratch::workspace();
    scratch.baton(&["export", "--watch"]).refused(2);
    scratch.baton(&["export", "../out", "--watch", "--git"]).refused(2);
}
