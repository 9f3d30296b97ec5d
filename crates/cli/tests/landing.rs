//! `baton land` and `baton queue`: what reaches the target, and what does not.
//!
//! S16 and LESSONS 17, 18, 31, 34 carry their numbers; git itself judges what became of the
//! repository. Faults are in `landing_faults`.

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::reviews::person_token;

/// A check that fails where there is a file whose name begins with `bad`.
pub(crate) const CHECKED: &str = "[queue]\ntarget = \"main\"\njobs = 2\n\
    [[queue.check]]\nname = \"unit\"\nrun = [\"sh\", \"-c\", \"! ls bad* 2>&1\"]\n";

pub(crate) fn settle(scratch: &Scratch) {
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    for name in ["a", "b", "c", "d"] {
        scratch.write(name, "1\n2\n3\n4\n5\n");
    }
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "setup"]);
    let person = person_token(scratch);
    as_person(scratch, &person, &["trust", "--yes"]).ok();
}

pub(crate) fn as_person(scratch: &Scratch, person: &str, words: &[&str]) -> Said {
    let mut command = scratch.command(words);
    command.env("BATON_PERSON_TOKEN_FILE", person);
    command.output().unwrap().into()
}

pub(crate) fn workspace(policy: &str) -> Scratch {
    let scratch = Scratch::with_policy(policy);
    settle(&scratch);
    scratch
}

/// A branch from `base` that writes these files, made without touching any tree.
pub(crate) fn branch_from(scratch: &Scratch, name: &str, base: &str, files: &[(&str, &str)]) {
    let tree = scratch.path(&format!("making-{}", name.replace('/', "-")));
    let tree = tree.to_str().unwrap();
    scratch.git(&["worktree", "add", "-q", "-b", name, tree, base]);
    for (file, text) in files {
        let path = std::path::Path::new(tree).join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    scratch.git(&["-C", tree, "add", "-A"]);
    scratch.git(&["-C", tree, "commit", "-qm", &format!("work of {name}")]);
    scratch.git(&["worktree", "remove", "--force", tree]);
}

pub(crate) fn branch(scratch: &Scratch, name: &str, files: &[(&str, &str)]) {
    branch_from(scratch, name, "main", files);
}

pub(crate) fn at(scratch: &Scratch, what: &str) -> String {
    scratch.git(&["show", what])
}

/// The states of all landings, by branch.
pub(crate) fn states(scratch: &Scratch) -> Vec<(String, String)> {
    let listed = scratch.baton(&["queue", "list", "--all", "--json"]).ok().json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut states: Vec<(String, String)> = listed["landings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|landing| (text(&landing["branch"]), text(&landing["state"])))
        .collect();
    states.sort();
    states
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(branch, state)| ((*branch).to_owned(), (*state).to_owned())).collect()
}

#[test]
fn s16_only_what_passes_lands_and_the_rest_goes_back() {
    Scratch::on_each_store(CHECKED, |scratch| {
        settle(scratch);
        let ann = scratch.session("ann");
        branch(scratch, "one", &[("a", "one\n2\n3\n4\n5\n")]);
        branch(scratch, "two", &[("b", "two\n2\n3\n4\n5\n")]);
        branch(scratch, "broken", &[("bad", "x\n"), ("c", "broken\n")]);
        branch(scratch, "three", &[("d", "three\n2\n3\n4\n5\n")]);
        branch(scratch, "clash", &[("a", "other\n2\n3\n4\n5\n")]);
        for name in ["one", "two", "broken", "three", "clash"] {
            let said = scratch.acts(&ann, &["land", name, "--queue", "--json"]).ok().json();
            assert_eq!(said["state"], "queued", "{said}");
        }
        scratch.acts(&ann, &["queue", "run", "--once"]).ok();
        let expected = pairs(&[
            ("broken", "returned"),
            ("clash", "returned"),
            ("one", "landed"),
            ("three", "landed"),
            ("two", "landed"),
        ]);
        assert_eq!(states(scratch), expected);
        let files = scratch.git(&["ls-tree", "--name-only", "main"]);
        assert!(!files.contains("bad"), "{files}");
        let landed = ["main:a", "main:b", "main:c", "main:d"].map(|file| at(scratch, file));
        let first = landed.map(|text| text.lines().next().unwrap().to_owned());
        assert_eq!(first, ["one", "two", "1", "three"]);
        // The tree that has main checked out went along (LESSONS 34).
        assert_eq!(scratch.git(&["status", "--porcelain"]), "");
        let broken = scratch.baton(&["queue", "show", "broken", "--json"]).ok().json();
        assert_eq!(broken["cause"], "check");
        let log = std::fs::read_to_string(broken["log"].as_str().unwrap()).unwrap();
        assert!(log.contains("bad"), "{log}");
        let clash = scratch.baton(&["queue", "show", "clash", "--json"]).ok().json();
        assert_eq!((&clash["cause"], &clash["files"]), (&json!("conflict"), &json!(["a"])));
        scratch.git(&["fsck", "--strict"]);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn lesson_34_after_a_landing_the_next_plain_commit_undoes_nothing() {
    let scratch = workspace(CHECKED);
    branch(&scratch, "one", &[("a", "landed\n"), ("new/file", "x\n")]);
    // Dirty elsewhere: that stays, byte for byte.
    scratch.write("b", "1\n2\n3\n4\n5\nmine\n");
    let said = scratch.baton(&["land", "one"]).ok();
    assert!(said.out.contains("landed: one is in main at "), "{said:?}");
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M b\n");
    assert_eq!(std::fs::read_to_string(scratch.root().join("a")).unwrap(), "landed\n");
    scratch.git(&["commit", "-qam", "plain"]);
    assert_eq!(scratch.git(&["show", "--name-only", "--format=", "HEAD"]), "b\n");
    assert_eq!(
        (at(&scratch, "HEAD:a"), at(&scratch, "HEAD:new/file")),
        ("landed\n".into(), "x\n".into())
    );
    // The same again is told, and nothing is done twice.
    let again = scratch.baton(&["land", "one", "--json"]).ok().json();
    assert_eq!((&again["landing"], &again["state"]), (&json!("l1"), &json!("landed")));
}

#[test]
fn uncommitted_work_in_the_way_keeps_everything_where_it_is() {
    let scratch = workspace(CHECKED);
    branch(&scratch, "one", &[("a", "landed\n")]);
    branch(&scratch, "two", &[("b", "two\n")]);
    branch(&scratch, "three", &[("fresh", "three\n")]);
    scratch.write("a", "mine\n");
    scratch.write("fresh", "not git's\n");
    for name in ["one", "three", "two"] {
        scratch.baton(&["land", name, "--queue"]).ok();
    }
    scratch.baton(&["queue", "run", "--once"]).ok();
    let expected = pairs(&[("one", "queued"), ("three", "queued"), ("two", "landed")]);
    assert_eq!(states(&scratch), expected, "what is not in the way moves on");
    let one = scratch.baton(&["queue", "show", "one", "--json"]).ok().json();
    assert_eq!((&one["cause"], &one["files"]), (&json!("overlap"), &json!(["a"])));
    assert!(one["reason"].as_str().unwrap().contains("uncommitted work in "), "{one}");
    assert_eq!(std::fs::read_to_string(scratch.root().join("a")).unwrap(), "mine\n");
    assert_eq!(std::fs::read_to_string(scratch.root().join("fresh")).unwrap(), "not git's\n");
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M a\n?? fresh\n");
    // A waiting landing says so and stays in line.
    let said = scratch.baton(&["land", "one"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("it stays there: uncommitted work"), "{said:?}");
    scratch.git(&["checkout", "-q", "--", "a"]);
    std::fs::remove_file(scratch.root().join("fresh")).unwrap();
    scratch.baton(&["land", "one"]).ok();
    scratch.baton(&["land", "three"]).ok();
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

#[test]
fn lesson_18_no_side_of_a_conflict_is_dropped_and_appends_are_joined() {
    let policy = format!("{CHECKED}[[zone]]\npaths = [\"LOG\"]\npolicy = \"append\"\n");
    let scratch = workspace(&policy);
    scratch.write("LOG", "start\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "log"]);
    branch(&scratch, "one", &[("LOG", "start\nfrom one\n")]);
    branch(&scratch, "two", &[("LOG", "start\nfrom two\n")]);
    branch(&scratch, "three", &[("a", "three\n")]);
    branch(&scratch, "four", &[("a", "four\n")]);
    for name in ["one", "two", "three", "four"] {
        scratch.baton(&["land", name, "--queue"]).ok();
    }
    scratch.baton(&["queue", "run", "--once"]).ok();
    let log = at(&scratch, "main:LOG");
    assert!(log.contains("from one\n") && log.contains("from two\n"), "{log}");
    assert_eq!(at(&scratch, "main:a"), "three\n");
    assert_eq!(at(&scratch, "four:a"), "four\n", "the branch is as it was");
    assert_eq!(states(&scratch)[0], ("four".to_owned(), "returned".to_owned()));
}

#[test]
fn a_merge_driver_is_tried_first_and_only_when_trusted() {
    let policy = format!(
        "{}merge_driver = [\"sh\", \"-c\", \"cat $1 $2 > $2.new && mv $2.new $1\", \"x\", \
         \"%A\", \"%B\", \"%O\"]\n{}",
        "[queue]\ntarget = \"main\"\n", "[[queue.check]]\nname = \"unit\"\nrun = [\"true\"]\n"
    );
    let scratch = workspace(&policy);
    branch(&scratch, "one", &[("a", "one\n")]);
    branch(&scratch, "two", &[("a", "two\n")]);
    scratch.baton(&["land", "one"]).ok();
    scratch.baton(&["land", "two"]).ok();
    assert_eq!(at(&scratch, "main:a"), "one\ntwo\n");
}

#[test]
fn each_strategy_makes_its_own_history() {
    for (strategy, parents, subject) in [
        ("merge", 2, "Merge branch 'one' into main"),
        ("squash", 1, "work of one"),
        ("rebase", 1, "work of one"),
    ] {
        let policy = format!("[queue]\ntarget = \"main\"\nstrategy = \"{strategy}\"\n");
        let scratch = workspace(&policy);
        branch(&scratch, "one", &[("a", "one\n")]);
        branch(&scratch, "two", &[("b", "two\n")]);
        scratch.baton(&["land", "two"]).ok();
        let said = scratch.baton(&["land", "one"]).ok();
        assert!(said.out.contains("landed unchecked"), "{said:?}");
        let head = scratch.git(&["log", "-1", "--format=%P%n%s%n%an"]);
        let lines: Vec<&str> = head.lines().collect();
        assert_eq!(lines[0].split(' ').count(), parents, "{strategy}: {head}");
        assert_eq!((lines[1], lines[2]), (subject, "Ann"), "{strategy}");
        assert_eq!(
            (at(&scratch, "main:a"), at(&scratch, "main:b")),
            ("one\n".into(), "two\n".into())
        );
        assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    }
}

#[test]
fn nothing_runs_before_a_person_has_seen_it_and_rules_land_by_a_persons_word() {
    let scratch = Scratch::with_policy(CHECKED);
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "setup"]);
    branch(&scratch, "one", &[("x", "one\n")]);
    let said = scratch.baton(&["land", "one"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("a person runs baton trust"), "{said:?}");
    let person = person_token(&scratch);
    as_person(&scratch, &person, &["trust", "--yes"]).ok();
    scratch.baton(&["land", "one"]).ok();
    // A branch that changes the checks is gated before it lands.
    let changed = CHECKED.replace("! ls bad* 2>&1", "true");
    branch(&scratch, "loosen", &[("baton.toml", &changed), ("bad", "x\n")]);
    let said = scratch.baton(&["land", "loosen", "--json"]);
    assert_eq!((said.code, &said.json()["cause"]), (1, &json!("gate")));
    assert!(!scratch.git(&["ls-tree", "--name-only", "main"]).contains("bad"));
    let gate = said.json()["gate"].as_str().unwrap().to_owned();
    let words = ["gate", "approve", &gate, "--why", "fine"];
    scratch.acts(&scratch.session("ann"), &words).refused(1);
    as_person(&scratch, &person, &words).ok();
    // Approved; but the checks in force are still the old ones, and they fail.
    let said = scratch.baton(&["land", "loosen", "--json"]);
    assert_eq!((said.code, &said.json()["cause"]), (1, &json!("check")), "{said:?}");
    branch(&scratch, "loosen2", &[("baton.toml", &changed)]);
    let said = scratch.baton(&["land", "loosen2", "--json"]);
    let gate = said.json()["gate"].as_str().unwrap().to_owned();
    as_person(&scratch, &person, &["gate", "approve", &gate, "--why", "fine"]).ok();
    scratch.baton(&["land", "loosen2"]).ok();
    // It counts now, with what it runs.
    branch(&scratch, "bad-now", &[("bad", "x\n")]);
    scratch.baton(&["land", "bad-now"]).ok();
}

#[test]
fn a_flaky_check_blames_nobody_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("seen");
    let check = format!("test -e {0} || {{ touch {0}; exit 1; }}", mark.display());
    let policy = format!(
        "[queue]\ntarget = \"main\"\n[[queue.check]]\nname = \"unit\"\n\
         run = [\"sh\", \"-c\", {check:?}]\n"
    );
    let scratch = workspace(&policy);
    branch(&scratch, "one", &[("a", "one\n")]);
    scratch.baton(&["land", "one"]).ok();
    let listed = scratch.baton(&["queue", "list", "--json"]).ok().json();
    assert_eq!((&listed["flaky"], &listed["landings"][0]["flaky"]), (&json!(1), &json!(1)));
}

#[test]
fn a_returned_task_goes_back_to_its_author_with_the_log_and_only_so_often() {
    Scratch::on_each_store(CHECKED, |scratch| {
        settle(scratch);
        let ann = scratch.session("ann");
        scratch.acts(&ann, &["task", "add", "do it", "--max-attempts", "2"]).ok();
        scratch.acts(&ann, &["task", "take", "t1"]).ok();
        branch(scratch, "one", &[("bad", "x\n")]);
        let said = scratch.acts(&ann, &["land", "one", "--task", "t1", "--json"]);
        assert_eq!((said.code, &said.json()["state"]), (1, &json!("returned")), "{said:?}");
        let task = scratch.acts(&ann, &["task", "show", "t1", "--json"]).ok().json();
        assert_eq!(task["state"], "active", "{task}");
        assert_eq!(task["attempts_used"], 1, "{task}");
        let shown = scratch.acts(&ann, &["task", "show", "t1"]).ok();
        assert!(shown.out.contains("check unit failed with exit 1"), "{shown:?}");
        branch(scratch, "two", &[("bad2", "x\n")]);
        scratch.acts(&ann, &["land", "two", "--task", "t1"]);
        let task = scratch.acts(&ann, &["task", "show", "t1", "--json"]).ok().json();
        assert_eq!(task["state"], "waiting", "no attempt is left, a person decides: {task}");
    });
}

#[test]
fn with_a_remote_it_is_pushed_with_a_lease_and_read_back() {
    let scratch = workspace(CHECKED);
    scratch.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
    scratch.git(&["remote", "add", "origin", "../remote.git"]);
    scratch.git(&["push", "-q", "origin", "main"]);
    scratch.git(&["clone", "-q", "../remote.git", "../other"]);
    branch(&scratch, "one", &[("a", "one\n")]);
    scratch.baton(&["land", "one"]).ok();
    let remote = scratch.git(&["-C", "../remote.git", "rev-parse", "main"]);
    assert_eq!(remote, scratch.git(&["rev-parse", "main"]), "and the local branch went along");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    // Others push in between: what lands is upon theirs.
    scratch.git(&["-C", "../other", "pull", "-q"]);
    std::fs::write(scratch.path("other").join("b"), "theirs\n").unwrap();
    scratch.git(&["-C", "../other", "commit", "-qam", "theirs"]);
    scratch.git(&["-C", "../other", "push", "-q"]);
    branch(&scratch, "two", &[("c", "two\n")]);
    scratch.baton(&["land", "two"]).ok();
    for (file, text) in [("a", "one\n"), ("b", "theirs\n"), ("c", "two\n")] {
        assert_eq!(scratch.git(&["-C", "../remote.git", "show", &format!("main:{file}")]), text);
    }
    // LESSONS 17: a remote that cannot be reached is never "landed".
    std::fs::rename(scratch.path("remote.git"), scratch.path("gone.git")).unwrap();
    branch(&scratch, "three", &[("d", "three\n")]);
    let said = scratch.baton(&["land", "three", "--json"]);
    assert_eq!((said.code, &said.json()["state"]), (1, &json!("queued")), "{said:?}");
    assert_eq!(said.json()["cause"], "offline");
}

#[test]
fn somebody_who_pushes_while_checks_run_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("pushed");
    let check = format!(
        "test -e {0} || {{ touch {0}; cd \"$OTHER\" && git pull -q && echo x > theirs && \
         git add -A && \
         git -c user.name=B -c user.email=b@x commit -qm theirs && git push -q; }}",
        mark.display()
    );
    let policy = format!(
        "[queue]\ntarget = \"main\"\n[[queue.check]]\nname = \"unit\"\n\
         run = [\"sh\", \"-c\", {check:?}]\n"
    );
    let scratch = workspace(&policy);
    scratch.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
    scratch.git(&["remote", "add", "origin", "../remote.git"]);
    scratch.git(&["push", "-q", "origin", "main"]);
    scratch.git(&["clone", "-q", "../remote.git", "../other"]);
    branch(&scratch, "one", &[("a", "one\n")]);
    let mut command = scratch.command(&["land", "one"]);
    command.env("OTHER", scratch.path("other"));
    Said::from(command.output().unwrap()).ok();
    let files = scratch.git(&["-C", "../remote.git", "ls-tree", "--name-only", "main"]);
    assert!(files.contains("theirs"), "{files}");
    assert_eq!(scratch.git(&["-C", "../remote.git", "show", "main:a"]), "one\n");
}

#[test]
fn a_protected_target_gets_a_request_and_lands_when_it_is_merged() {
    let policy = "[queue]\ntarget = \"main\"\nmode = \"pr\"\n\
        request = [\"sh\", \"-c\", \"echo %B %T >> requests; test -n $BATON_COMMIT\"]\n\
        [[queue.check]]\nname = \"unit\"\nrun = [\"sh\", \"-c\", \"! ls bad*\"]\n";
    let scratch = workspace(policy);
    scratch.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
    scratch.git(&["remote", "add", "origin", "../remote.git"]);
    scratch.git(&["push", "-q", "origin", "main"]);
    branch(&scratch, "one", &[("a", "one\n")]);
    branch(&scratch, "two", &[("bad", "two\n")]);
    let said = scratch.baton(&["land", "one", "--json"]).ok().json();
    assert_eq!(said["state"], "proposed", "{said}");
    assert_eq!(scratch.baton(&["land", "two"]).code, 1);
    let asked = std::fs::read_to_string(scratch.root().join("requests")).unwrap();
    assert_eq!(asked, "one main\n", "once, and only for what passed");
    let pushed = scratch.git(&["-C", "../remote.git", "rev-parse", "one"]);
    assert_eq!(said["commit"], pushed.trim());
    assert_ne!(scratch.git(&["-C", "../remote.git", "rev-parse", "main"]), pushed);
    scratch.git(&["-C", "../remote.git", "update-ref", "refs/heads/main", "refs/heads/one"]);
    scratch.baton(&["queue", "run", "--once"]).ok();
    assert_eq!(states(&scratch)[0], ("one".to_owned(), "landed".to_owned()));
}

#[test]
fn s4_what_another_holds_everywhere_does_not_land() {
    Scratch::on_each_store(CHECKED, |scratch| {
        settle(scratch);
        let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
        branch(scratch, "one", &[("a", "one\n")]);
        scratch.acts(&bob, &["claim", "a"]).ok();
        let said = scratch.acts(&ann, &["land", "one"]).refused(1);
        assert!(said.err.contains("one changes a, which bob holds everywhere until"), "{said:?}");
        scratch.acts(&bob, &["release", "a"]).ok();
        scratch.acts(&ann, &["land", "one", "--queue"]).ok();
        // Claimed meanwhile: it is judged again in the transaction that moves the target.
        scratch.acts(&bob, &["claim", "a"]).ok();
        scratch.acts(&ann, &["queue", "run", "--once"]).ok();
        assert_eq!(states(scratch), pairs(&[("one", "returned")]));
        assert_eq!(at(scratch, "main:a"), "1\n2\n3\n4\n5\n");
        scratch.acts(&bob, &["release", "a"]).ok();
        scratch.acts(&ann, &["queue", "retry", "one"]).ok();
        scratch.acts(&ann, &["queue", "run", "--once"]).ok();
        assert_eq!(at(scratch, "main:a"), "one\n");
    });
}

#[test]
fn s16_an_agents_own_commits_on_the_target_are_diverted_and_land() {
    let scratch = workspace(CHECKED);
    let ann = scratch.session("ann");
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.acts(&ann, &["claim", "a"]).ok();
    scratch.write("a", "ann\n");
    let said = scratch.acts(&ann, &["commit", "-m", "mine", "a", "--json"]).ok().json();
    let branch = said["branch"].as_str().unwrap().to_owned();
    assert!(branch.starts_with("baton/ann-"), "{said}");
    assert_eq!(scratch.git(&["rev-parse", "main"]), before, "main did not move");
    scratch.write("a", "ann\nmore\n");
    scratch.acts(&ann, &["commit", "-m", "more", "a"]).ok();
    assert_eq!(scratch.git(&["rev-list", "--count", &format!("main..{branch}")]), "2\n");
    scratch.acts(&ann, &["land", &branch]).ok();
    assert_eq!(at(&scratch, "main:a"), "ann\nmore\n");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "the tree is clean on the new main");
    // Without checks there is nothing to guard.
    let scratch = workspace("[queue]\ntarget = \"main\"\n");
    let bob = scratch.session("bob");
    scratch.write("b", "bob\n");
    let said = scratch.acts(&bob, &["commit", "-m", "mine", "b", "--json"]).ok().json();
    assert_eq!(said["branch"], "main", "{said}");
}

#[test]
fn one_waits_while_another_runs_and_pausing_stops_it() {
    let scratch = workspace(CHECKED);
    branch(&scratch, "one", &[("a", "one\n")]);
    branch(&scratch, "two", &[("b", "two\n")]);
    let ann = scratch.session("ann");
    scratch.acts(&ann, &["queue", "pause", "--why", "release day"]).ok();
    let said = scratch.baton(&["land", "one", "--json"]);
    assert_eq!((said.code, &said.json()["state"]), (1, &json!("queued")));
    assert!(said.err.contains("paused by ann: release day"), "{said:?}");
    let bob = scratch.session("bob");
    scratch.acts(&bob, &["queue", "resume"]).refused(1);
    scratch.acts(&ann, &["queue", "resume"]).ok();
    let mut children: Vec<_> =
        ["one", "two"].map(|name| scratch.command(&["land", name]).spawn().unwrap()).into();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!((at(&scratch, "main:a"), at(&scratch, "main:b")), ("one\n".into(), "two\n".into()));
    scratch.baton(&["queue", "remove", "one"]).refused(1);
    branch(&scratch, "three", &[("c", "x\n")]);
    scratch.acts(&ann, &["land", "three", "--queue"]).ok();
    scratch.acts(&bob, &["queue", "remove", "three"]).refused(1);
    scratch.acts(&ann, &["queue", "remove", "three", "--why", "not yet"]).ok();
    assert_eq!(states(&scratch)[1], ("three".to_owned(), "removed".to_owned()));
}

/// The stash is one stack for all trees. The door that refuses it to agents is in front of their
/// shell; here: nothing that Baton does itself pushes to it, pops it, or resets what lies around.
#[test]
fn lesson_20_no_command_of_batons_touches_the_stash_or_the_edits_of_others() {
    let scratch = workspace(CHECKED);
    let ann = scratch.session("ann");
    scratch.write("d", "stashed\n");
    scratch.git(&["stash", "push", "-q", "-m", "somebody's"]);
    scratch.write("d", "in flight\n");
    scratch.write("loose", "in flight too\n");
    let kept = || (scratch.git(&["stash", "list"]), scratch.git(&["stash", "show", "-p"]));
    let before = kept();
    scratch.acts(&ann, &["worktree", "new", "own"]).ok();
    let tree = scratch.path("repo.trees/own");
    std::fs::write(tree.join("a"), "own\n").unwrap();
    let inside = tree.to_str().unwrap();
    scratch.acts(&ann, &["-C", inside, "commit", "-m", "own", "a"]).ok();
    scratch.acts(&ann, &["-C", inside, "land"]).ok();
    scratch.acts(&ann, &["conflicts"]);
    scratch.acts(&ann, &["worktree", "remove", "own"]).ok();
    scratch.write("b", "mine\n");
    scratch.acts(&ann, &["commit", "-m", "shared tree", "b"]).ok();
    scratch.acts(&ann, &["queue", "run", "--once"]).ok();
    assert_eq!(kept(), before);
    assert_eq!((at(&scratch, "main:a"), at(&scratch, "main:b")), ("own\n".into(), "mine\n".into()));
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M d\n?? loose\n");
    assert_eq!(std::fs::read_to_string(scratch.root().join("d")).unwrap(), "in flight\n");
}

#[test]
fn after_land_files_one_task_for_a_batch() {
    let policy = CHECKED.replace("jobs = 2", "after_land = \"Integrate\"");
    let scratch = workspace(&policy);
    for (name, file) in [("one", "a"), ("two", "b"), ("three", "c")] {
        branch(&scratch, name, &[(file, "x\n")]);
        scratch.baton(&["land", name, "--queue"]).ok();
    }
    scratch.baton(&["queue", "run", "--once"]).ok();
    let tasks = scratch.baton(&["task", "list", "--json"]).ok().json();
    let titles: Vec<&Value> =
        tasks["tasks"].as_array().unwrap().iter().map(|task| &task["title"]).collect();
    assert_eq!(titles, [&json!("Integrate")]);
}
