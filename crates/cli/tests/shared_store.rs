//! `init` on a shared store: making, finding and joining a workspace.

use baton_testing::cluster;

use crate::harness::{Said, Scratch};
use crate::start;

/// A fresh database, or nothing where there is no PostgreSQL.
pub(crate) fn address() -> Option<String> {
    match cluster::shared() {
        Ok(server) => Some(server.address(&server.create_database().unwrap())),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// A second clone of the same repository.
fn clone_of(scratch: &Scratch) -> Scratch {
    let clone = Scratch::repository();
    std::fs::remove_dir_all(clone.root()).unwrap();
    let (from, to) = (scratch.root(), clone.root());
    std::fs::create_dir(&to).unwrap();
    clone.git(&["clone", "-q", from.to_str().unwrap(), "."]);
    clone
}

#[test]
fn two_clones_share_one_workspace_when_a_person_says_so() {
    let Some(address) = address() else { return };
    let origin = Scratch::repository();
    let one = clone_of(&origin).on_store(&address);
    let two = clone_of(&origin).on_store(&address);
    let made = one.baton(&["init", "--yes", "--json"]).ok().json();
    assert_eq!(made["made"], true, "{made}");
    assert!(!made["store"].to_string().contains("baton-test"), "{made}");
    assert!(!one.store().join("store.db").exists(), "one source of truth");
    assert_eq!(one.baton(&["init", "--json"]).ok().json()["made"], false);
    let id = made["workspace"].as_str().unwrap();

    let refused = two.baton(&["init", "--yes"]).refused(1);
    assert!(refused.err.contains(&format!("next: baton init --join {id}")), "{refused:?}");
    assert!(!two.store().exists() && !two.root().join("baton.toml").exists());
    let joined = two.baton(&["init", "--yes", "--join", id, "--json"]).ok().json();
    assert_eq!(joined["workspace"], made["workspace"]);
    assert_ne!(joined["tree"], made["tree"]);
    assert_eq!(joined["made"], false);
    two.baton(&["init", "--yes", "--join", id]).ok();

    let (ann, bob) = (one.session("ann"), two.session("bob"));
    one.acts(&ann, &["claim", "src/a.rs"]).ok();
    let held = two.acts(&bob, &["claim", "src/"]).refused(1);
    assert!(held.err.contains("ann"), "{held:?}");
    let report = two.baton(&["doctor"]).ok();
    assert!(report.out.contains("PostgreSQL"), "{report:?}");
    assert!(report.out.contains("sound"), "{report:?}");
}

#[test]
fn a_clone_belongs_to_one_workspace() {
    let Some(address) = address() else { return };
    let origin = Scratch::repository();
    let one = clone_of(&origin).on_store(&address);
    let two = clone_of(&origin).on_store(&address);
    let first = one.baton(&["init", "--yes", "--json"]).ok().json();
    let second = two.baton(&["init", "--yes", "--new", "--json"]).ok().json();
    assert_ne!(first["workspace"], second["workspace"]);
    let wanted = first["workspace"].as_str().unwrap();
    let said = two.baton(&["init", "--yes", "--join", wanted]).refused(1);
    assert!(said.err.contains(second["workspace"].as_str().unwrap()), "{said:?}");
    let three = clone_of(&origin).on_store(&address);
    let nobody = "00000000000000000000000000000000";
    three.baton(&["init", "--yes", "--join", nobody]).refused(1);
    assert!(!three.store().exists());
    let both = three.baton(&["init", "--yes", "--json"]);
    assert_eq!(both.json()["refused"]["workspaces"].as_array().unwrap().len(), 2, "{both:?}");
}

#[test]
fn lesson_26_a_forgotten_address_splits_nothing() {
    let Some(address) = address() else { return };
    let scratch = Scratch::repository();
    let mut init = scratch.command(&["init", "--yes"]);
    Said::from(init.env("BATON_STORE", &address).output().unwrap()).ok();
    for words in [&["claims"][..], &["init", "--yes"], &["session", "start"]] {
        let said = scratch.baton(words).refused(4);
        assert!(said.err.contains("shared store"), "{said:?}");
    }
    assert!(!scratch.store().join("store.db").exists());
    let settings = scratch.path("home/.config/baton");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("config.toml"), format!("store = \"{address}\"\n")).unwrap();
    scratch.baton(&["claims"]).ok();
}

#[test]
fn a_person_is_asked_whether_to_join() {
    let Some(address) = address() else { return };
    let origin = Scratch::repository();
    let one = clone_of(&origin).on_store(&address);
    let two = clone_of(&origin).on_store(&address);
    let made = one.baton(&["init", "--yes", "--json"]).ok().json();
    let Some(no) = two.on_terminal(&["init", "--yes"], "n\n") else { return };
    assert_eq!(no.code, 1, "{no:?}");
    assert!(no.out.contains("Join it? [Y/n]"), "{no:?}");
    let yes = two.on_terminal(&["init", "--yes"], "y\n").unwrap();
    assert_eq!(yes.code, 0, "{yes:?}");
    assert!(yes.out.contains(made["workspace"].as_str().unwrap()), "{yes:?}");
}

#[test]
fn s14_journal_archive_export_and_restore_work_on_a_shared_store() {
    let Some(address) = address() else { return };
    let origin = Scratch::repository();
    let one = clone_of(&origin).on_store(&address);
    let id = one.baton(&["init", "--yes", "--json"]).ok().json()["workspace"].clone();
    let two = clone_of(&origin).on_store(&address);
    two.baton(&["init", "--yes", "--join", id.as_str().unwrap()]).ok();
    let ann = one.session("ann");
    for file in ["src/a.rs", "README.md"] {
        one.acts(&ann, &["claim", file]).ok();
    }
    one.acts(&ann, &["release", "README.md"]).ok();
    one.baton(&["journal", "verify"]).ok();
    one.baton(&["store", "backup", "../backup"]).ok();
    let info = one.baton(&["store", "info", "--json"]).ok().json();
    assert_eq!(info["kind"], "postgresql");
    one.baton(&["journal", "archive", "--keep", "1"]).ok();
    let found = one.baton(&["journal", "verify", "--json"]).ok().json();
    assert!(found["archived"].as_u64() > Some(0), "{found}");
    // The archive is in the clone that made it, and the other one says so.
    let elsewhere = two.baton(&["journal", "verify"]);
    assert_eq!(elsewhere.code, 1, "{elsewhere:?}");
    assert!(elsewhere.out.contains("is not in this clone's store folder"), "{elsewhere:?}");
    one.baton(&["export", "../out"]).ok();
    one.baton(&["export", "--git", "--lock-files"]).ok();
    assert!(one.root().join("src/a.rs.agent-lock").exists());
    assert!(one.baton(&["status"]).ok().out.contains("src/a.rs"));
    let restored = one.baton(&["store", "restore", "../backup", "--yes", "--json"]).ok().json();
    assert!(restored["epoch"].as_u64() > info["epoch"].as_u64(), "{restored}");
    two.baton(&["journal", "verify"]).ok();
    two.baton(&["store", "restore", "README.md", "--yes"]).refused(1);
}

#[test]
fn lesson_06_waiters_on_a_shared_store_are_woken() {
    let Some(address) = address() else { return };
    let scratch = Scratch::repository().on_store(&address);
    scratch.baton(&["init", "--yes"]).ok();
    let (holder, mut process) = scratch.session_with_process("holder");
    let (second, third) = (scratch.session("second"), scratch.session("third"));
    scratch.acts(&holder, &["claim", "src/a.rs", "@deploy/prod"]).ok();
    let waits = ["claim", "src/a.rs", "--wait", "60s", "--json"];
    let first_waiter = scratch.begins(&second, &waits);
    scratch.until_status_shows_waiting(1);
    let begun = std::time::Instant::now();
    scratch.acts(&holder, &["release", "src/a.rs"]).ok();
    let granted: Said = first_waiter.wait_with_output().unwrap().into();
    granted.ok();
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "nobody woke the waiter");

    let waiter = scratch.begins(&third, &["claim", "@deploy/prod", "--wait", "60s"]);
    scratch.until_status_shows_waiting(1);
    process.end();
    let granted: Said = waiter.wait_with_output().unwrap().into();
    granted.ok();
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn calls_and_subagents_on_a_shared_store() {
    let Some(address) = address() else { return };
    let scratch = Scratch::repository().on_store(&address);
    scratch.baton(&["init", "--yes"]).ok();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    // A short lease, in a call that may take an hour. Not so short that it could be over before the
    // call begins on a busy machine.
    scratch.acts(&ann, &["claim", "src/a.rs", "--ttl", "4s", "--agent", "one"]).ok();
    scratch.acts(&ann, &["session", "call", "start", "--limit", "1h"]).ok();
    std::thread::sleep(std::time::Duration::from_millis(4_300));
    let held = scratch.acts(&bob, &["claim", "src/a.rs"]).refused(1);
    assert!(held.err.contains("held by ann (subagent one) during a tool call"), "{held:?}");
    scratch.acts(&ann, &["claim", "src/a.rs", "--agent", "two"]).refused(1);
    scratch.acts(&ann, &["session", "agent-stop", "one"]).ok();
    scratch.acts(&ann, &["claim", "src/a.rs", "--agent", "two"]).ok();
    scratch.acts(&ann, &["session", "call", "end"]).ok();
    scratch.acts(&ann, &["session", "agent-stop", "two"]).ok();
    scratch.acts(&ann, &["release", "--all"]).ok();
    scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
    scratch.baton(&["journal", "verify"]).ok();
}

/// Made anew in another database, a workspace would be two, with the same tokens in both.
#[test]
fn a_wrong_address_makes_no_second_store_for_the_same_workspace() {
    let (Some(right), Some(wrong)) = (address(), address()) else { return };
    let scratch = Scratch::repository().on_store(&right);
    scratch.baton(&["init", "--yes"]).ok();
    let ann = scratch.session("ann");
    scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    scratch.baton(&["store", "backup", "../backup"]).ok();

    let scratch = scratch.on_store(&wrong);
    for words in [&["claims"][..], &["init", "--yes"], &["init", "--yes", "--new"]] {
        let said = scratch.baton(words).refused(4);
        assert!(said.err.contains("belongs to a workspace in another store"), "{said:?}");
        assert!(said.err.contains("next: check BATON_STORE"), "{said:?}");
        assert!(!said.err.contains("baton init"), "{said:?}");
    }
    let (server, database) = wrong.rsplit_once('/').unwrap();
    let missing = format!("{server}/no_such_{database}");
    let scratch = scratch.on_store(&missing);
    for words in [&["claims"][..], &["init", "--yes"]] {
        let said = scratch.baton(words).refused(4);
        assert!(said.err.contains("does not exist"), "{said:?}");
        assert!(said.err.contains("next: check BATON_STORE"), "{said:?}");
    }

    // That the workspace is in it is enough: a database may move.
    let scratch = scratch.on_store(&wrong);
    scratch.baton(&["store", "restore", "../backup", "--yes"]).ok();
    scratch.baton(&["init", "--yes"]).ok();
    assert!(scratch.baton(&["claims"]).ok().out.contains("src/a.rs"));
}

#[test]
fn doctor_tells_a_store_that_cannot_be_written() {
    let Some(address) = address() else { return };
    let scratch = Scratch::repository().on_store(&address);
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    scratch.baton(&["doctor"]).ok();
    let server = cluster::shared().unwrap();
    let database = address.rsplit('/').next().unwrap().split('?').next().unwrap();
    let role = format!("reader_{database}");
    let sql = format!(
        "create role {role} login password 'x'; grant usage on schema baton to {role}; \
         grant select on all tables in schema baton to {role}"
    );
    server.sql(database, &sql).unwrap();
    let (before, place) = address.split_once('@').unwrap();
    let scheme = before.split("//").next().unwrap();
    let scratch = scratch.on_store(&format!("{scheme}//{role}:x@{place}"));
    let said = scratch.baton(&["doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    let line = said.out.lines().find(|line| line.contains("  store  ")).unwrap();
    assert!(line.starts_with("problem") && line.contains("cannot be written"), "{said:?}");
    assert!(said.out.contains("next: grant your role SELECT, INSERT"), "{said:?}");
}

/// Two clones of one workspace, each with its own machine's view of the trees.
fn two_clones(address: &str) -> (Scratch, Scratch) {
    let origin = Scratch::repository();
    let one = clone_of(&origin).on_store(address);
    let two = clone_of(&origin).on_store(address);
    let id = one.baton(&["init", "--yes", "--json"]).ok().json()["workspace"].clone();
    two.baton(&["init", "--yes", "--join", id.as_str().unwrap()]).ok();
    (one, two)
}

/// Ann has t1 in her clone, with a claim.
fn has_a_task(one: &Scratch) -> String {
    let ann = one.session("ann");
    one.acts(&ann, &["task", "add", "Parse it", "--paths", "src/a.rs"]).ok();
    one.acts(&ann, &["task", "take", "t1", "--claim"]).ok();
    ann
}

fn offers(one: &Scratch, ann: &str) {
    let said = ["--state", "half", "--remaining", "the rest", "--decision", "one pass: small"];
    let next = ["--next", "write the lexer tests in src/a.rs"];
    one.acts(ann, &[&["handoff", "offer", "t1"][..], &said, &next].concat()).ok();
}

fn accepts(two: &Scratch) -> Said {
    start::client(two, "codex", "pwd; touch $OUT");
    let words = ["handoff", "accept", "t1-h1", "--start", "codex"];
    start::command(two, &words).output().unwrap().into()
}

#[test]
fn s15_a_client_is_not_started_where_the_offered_work_is_not() {
    let Some(address) = address() else { return };
    let (one, two) = two_clones(&address);
    let ann = has_a_task(&one);
    one.write("src/a.rs", "fn half() {}\n");
    offers(&one, &ann);
    let said = accepts(&two).refused(1);
    assert!(said.err.contains("the work on t1 \"Parse it\" of ann is in tree "), "{said:?}");
    assert!(said.err.contains("in no commit: src/a.rs"), "{said:?}");
    assert!(said.err.contains("nothing was accepted"), "{said:?}");
    let next = "next: there, in that clone: baton handoff accept t1-h1 --start codex";
    assert!(said.err.contains(next), "{said:?}");
    assert!(!two.path("out").exists(), "the client did not run");
    let task = two.baton(&["task", "show", "t1", "--json"]).ok().json();
    assert_eq!(task["owner"]["name"], "ann", "{task}");
    let claims = two.baton(&["claims", "--json"]).ok().json();
    assert_eq!(claims["claims"][0]["holder"]["name"], "ann", "{claims}");
    let seats = two.baton(&["session", "list", "--json"]).ok().json();
    assert_eq!(seats["sessions"].as_array().unwrap().len(), 1, "ann alone: {seats}");

    // Who accepts it all the same is told where the work is, then and when it begins anew.
    let bob = two.session("bob");
    let far = "on another machine or in another clone";
    let said = two.acts(&bob, &["handoff", "accept", "t1-h1"]).ok();
    assert!(said.out.contains("go there: the work is in tree ") && said.out.contains(far));
    let primer = two.acts(&bob, &["prime"]).ok();
    assert!(primer.out.contains("its work is not here: it is in tree "), "{primer:?}");
    let one_more = one.acts(&ann, &["prime"]).ok();
    assert!(!one_more.out.contains("not here"), "{one_more:?}");
}

#[test]
fn s15_work_that_is_committed_and_here_says_how_it_is_gone_on_with() {
    let Some(address) = address() else { return };
    let (one, two) = two_clones(&address);
    let ann = has_a_task(&one);
    one.write("src/a.rs", "fn all() {}\n");
    one.git(&["add", "src/a.rs"]);
    one.git(&["-c", "core.hooksPath=/dev/null", "commit", "-qm", "all of it"]);
    offers(&one, &ann);
    let head = one.git(&["rev-parse", "HEAD"]);
    let said = accepts(&two).refused(1);
    assert!(said.err.contains("next: there, in that clone: "), "not here yet: {said:?}");
    two.git(&["fetch", "-q", one.root().to_str().unwrap(), "HEAD"]);
    let said = accepts(&two).refused(1);
    let new = format!("baton worktree new t1 --base {}", &head[..12]);
    assert!(said.err.contains(&new) && !said.err.contains("in no commit"), "{said:?}");
    // The words can be followed.
    let bob = two.session("bob");
    two.acts(&bob, &["worktree", "new", "t1", "--base", &head[..12]]).ok();
    two.acts(&bob, &["handoff", "accept", "t1-h1"]).ok();
}
