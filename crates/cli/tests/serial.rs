//! Serial zones with two real trees: one task has a zone until its branch has landed.

use crate::harness::{Said, Scratch};
use crate::reviews::person_token;

const ZONE: &str = "[[zone]]\npaths = [\"db/\"]\npolicy = \"serial\"\n";

/// Acts in a tree beside the repository.
fn there(scratch: &Scratch, who: &str, tree: &str, words: &[&str]) -> Said {
    let mut command = scratch.command(words);
    command.current_dir(scratch.path(tree)).env("BATON_SESSION", who);
    command.output().unwrap().into()
}

fn git_in(scratch: &Scratch, tree: &str, words: &[&str]) {
    let folder = scratch.path(tree);
    scratch.git(&[&["-C", folder.to_str().unwrap()], words].concat());
}

/// Two trees on branches of their own, and a session in each.
fn two_trees(scratch: &Scratch) -> (String, String) {
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "zones"]);
    for branch in ["one", "two"] {
        scratch.git(&["worktree", "add", "-q", "-b", branch, &format!("../{branch}")]);
    }
    (scratch.session("ann"), scratch.session("bob"))
}

#[test]
fn a_zone_stays_held_until_the_branch_has_landed() {
    Scratch::on_each_store(ZONE, |scratch| {
        let (ann, bob) = two_trees(scratch);
        there(scratch, &ann, "one", &["claim", "db/1.sql"]).ok();
        std::fs::create_dir_all(scratch.path("one/db")).unwrap();
        std::fs::write(scratch.path("one/db/1.sql"), "one\n").unwrap();
        there(scratch, &bob, "two", &["claim", "db/2.sql"]).refused(1);
        // Neither the commit nor the release frees it.
        git_in(scratch, "one", &["add", "-A"]);
        git_in(scratch, "one", &["commit", "-qm", "migration"]);
        let said = there(scratch, &ann, "one", &["release", "--all"]).ok();
        let stays = "released db/1.sql\nheld @zone/db/ stays with branch one until it has landed";
        assert!(said.out.contains(stays), "{said:?}");
        let said = there(scratch, &bob, "two", &["claim", "db/2.sql"]).refused(1);
        let ask = "or baton ask db/2.sql --why 'what you need it for'";
        assert!(said.err.contains(ask), "{said:?}");
        // What is proposed there reaches the holder, also without a claim.
        let asked = there(scratch, &bob, "two", &["ask", "db/2.sql", "--why", "a column"]).ok();
        assert!(asked.out.contains("ann"), "{asked:?}");
        let told = there(scratch, &ann, "one", &["claim", "README.md"]).ok();
        assert!(told.out.contains("bob") && told.out.contains("a column"), "{told:?}");
        assert!(said.err.contains("in a serial zone that ann has on one since"), "{said:?}");
        assert!(said.err.contains("until it has landed"), "{said:?}");
        let checked = there(scratch, &bob, "two", &["check", "db/2.sql"]);
        assert_eq!(checked.code, 1, "{checked:?}");
        // Its own branch goes on, whoever works there.
        there(scratch, &bob, "one", &["check", "db/3.sql"]).ok();
        there(scratch, &ann, "one", &["claim", "db/3.sql"]).ok();
        there(scratch, &ann, "one", &["release", "--all"]).ok();
        // Landed, as one commit of its own: the zone is free.
        scratch.git(&["merge", "-q", "--squash", "one"]);
        scratch.git(&["commit", "-qm", "landed"]);
        there(scratch, &bob, "two", &["claim", "db/2.sql"]).ok();
        let journal = scratch.baton(&["journal"]).ok();
        assert!(journal.out.contains("until one has landed"), "{journal:?}");
        assert!(journal.out.contains("nothing of it is left to land"), "{journal:?}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn uncommitted_changes_hold_it_too_and_a_person_or_a_removed_branch_frees_it() {
    let scratch = Scratch::with_policy(ZONE);
    let (ann, bob) = two_trees(&scratch);
    there(&scratch, &ann, "one", &["claim", "db/1.sql"]).ok();
    std::fs::create_dir_all(scratch.path("one/db")).unwrap();
    std::fs::write(scratch.path("one/db/1.sql"), "one\n").unwrap();
    there(&scratch, &ann, "one", &["release", "--all"]).ok();
    there(&scratch, &bob, "two", &["claim", "db/2.sql"]).refused(1);
    std::fs::remove_file(scratch.path("one/db/1.sql")).unwrap();
    there(&scratch, &bob, "two", &["claim", "db/2.sql"]).ok();
    std::fs::create_dir_all(scratch.path("two/db")).unwrap();
    std::fs::write(scratch.path("two/db/2.sql"), "two\n").unwrap();
    there(&scratch, &bob, "two", &["release", "--all"]).ok();
    there(&scratch, &ann, "one", &["claim", "db/1.sql"]).refused(1);
    let person = person_token(&scratch);
    let mut command = scratch.command(&["revoke", "db/", "--why", "given up"]);
    let freed = Said::from(command.env("BATON_PERSON_TOKEN_FILE", &person).output().unwrap()).ok();
    assert!(freed.out.contains("waits for two no longer"), "{freed:?}");
    there(&scratch, &ann, "one", &["claim", "db/1.sql"]).ok();
    // On the target itself a zone is held by its claim alone.
    there(&scratch, &ann, "one", &["release", "--all"]).ok();
    there(&scratch, &bob, "repo", &["claim", "db/9.sql"]).ok();
    scratch.write("db/9.sql", "nine\n");
    there(&scratch, &bob, "repo", &["release", "--all"]).ok();
    there(&scratch, &ann, "one", &["claim", "db/1.sql"]).ok();
}

/// Ann has a task with something of the zone on branch one, and a commit of it.
fn begun(scratch: &Scratch, ann: &str) {
    there(scratch, ann, "one", &["task", "add", "a column", "--paths", "db/1.sql"]).ok();
    there(scratch, ann, "one", &["task", "take", "--claim"]).ok();
    std::fs::create_dir_all(scratch.path("one/db")).unwrap();
    std::fs::write(scratch.path("one/db/1.sql"), "one\n").unwrap();
    git_in(scratch, "one", &["add", "-A"]);
    git_in(scratch, "one", &["commit", "-qm", "migration"]);
}

#[test]
fn who_accepts_the_task_has_the_zone_wherever_it_works() {
    Scratch::on_each_store(ZONE, |scratch| {
        let (ann, bob) = two_trees(scratch);
        let eve = scratch.session("eve");
        begun(scratch, &ann);
        there(scratch, &bob, "two", &["claim", "db/2.sql"]).refused(1);
        let offer = ["handoff", "offer", "t1", "--next", "the down migration", "--to", "bob"];
        let said = ["--state", "up", "--remaining", "down", "--decision", "one column: small"];
        there(scratch, &ann, "one", &[&offer[..], &said].concat()).ok();
        there(scratch, &bob, "two", &["claim", "db/2.sql"]).refused(1);
        there(scratch, &bob, "two", &["handoff", "accept", "t1"]).ok();
        // It is his, in his own tree; for everybody else nothing has changed.
        there(scratch, &bob, "two", &["claim", "db/2.sql"]).ok();
        scratch.git(&["worktree", "add", "-q", "-b", "three", "../three"]);
        let said = there(scratch, &eve, "three", &["claim", "db/3.sql"]).refused(1);
        assert!(said.err.contains("bob"), "{said:?}");
        std::fs::create_dir_all(scratch.path("two/db")).unwrap();
        std::fs::write(scratch.path("two/db/2.sql"), "two\n").unwrap();
        there(scratch, &bob, "two", &["release", "--all"]).ok();
        let said = there(scratch, &eve, "three", &["claim", "db/3.sql"]).refused(1);
        assert!(said.err.contains(" has for t1 on "), "{said:?}");
        // What was begun on the first branch has not landed because somebody went on elsewhere.
        std::fs::remove_file(scratch.path("two/db/2.sql")).unwrap();
        let said = there(scratch, &eve, "three", &["claim", "db/3.sql"]).refused(1);
        assert!(said.err.contains("ann has for t1 on one since"), "{said:?}");
        // And the other way round.
        std::fs::write(scratch.path("two/db/2.sql"), "two\n").unwrap();
        there(scratch, &bob, "two", &["claim", "db/2.sql"]).ok();
        there(scratch, &bob, "two", &["release", "--all"]).ok();
        scratch.git(&["merge", "-q", "one"]);
        let said = there(scratch, &eve, "three", &["claim", "db/3.sql"]).refused(1);
        assert!(said.err.contains("bob has for t1 on two since"), "{said:?}");
        std::fs::remove_file(scratch.path("two/db/2.sql")).unwrap();
        there(scratch, &eve, "three", &["claim", "db/3.sql"]).ok();
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_session_with_two_branches_has_the_zone_until_both_have_landed() {
    let scratch = Scratch::with_policy(ZONE);
    let (ann, bob) = two_trees(&scratch);
    scratch.git(&["worktree", "add", "-q", "-b", "three", "../three"]);
    for tree in ["one", "three"] {
        there(&scratch, &ann, tree, &["claim", "db/1.sql"]).ok();
        std::fs::create_dir_all(scratch.path(&format!("{tree}/db"))).unwrap();
        std::fs::write(scratch.path(&format!("{tree}/db/1.sql")), tree).unwrap();
        git_in(&scratch, tree, &["add", "-A"]);
        git_in(&scratch, tree, &["commit", "-qm", "migration"]);
        there(&scratch, &ann, tree, &["release", "--all"]).ok();
    }
    let said = there(&scratch, &bob, "two", &["claim", "db/2.sql"]).refused(1);
    assert!(said.err.contains("ann has on one since"), "{said:?}");
    scratch.git(&["merge", "-q", "one"]);
    let said = there(&scratch, &bob, "two", &["claim", "db/2.sql"]).refused(1);
    assert!(said.err.contains("ann has on three since"), "{said:?}");
    git_in(&scratch, "three", &["checkout", "-q", "--detach"]);
    scratch.git(&["branch", "-q", "-D", "three"]);
    there(&scratch, &bob, "two", &["claim", "db/2.sql"]).ok();
}

#[test]
fn a_cancelled_task_frees_its_zone() {
    Scratch::on_each_store(ZONE, |scratch| {
        let (ann, bob) = two_trees(scratch);
        begun(scratch, &ann);
        there(scratch, &ann, "one", &["release", "--all"]).ok();
        let said = there(scratch, &bob, "two", &["claim", "db/2.sql"]).refused(1);
        assert!(said.err.contains("ann has for t1 on one since"), "{said:?}");
        there(scratch, &ann, "one", &["task", "cancel", "t1", "--why", "not needed"]).ok();
        there(scratch, &bob, "two", &["claim", "db/2.sql"]).ok();
        let journal = scratch.baton(&["journal"]).ok();
        assert!(journal.out.contains("its task was given up"), "{journal:?}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}
