//! Deploys through the binary, with real repositories, remotes and processes.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Said, Scratch};
use crate::reviews::person_token;

const RUN: &str =
    "cp -r . \\\"$OUT\\\" && git rev-parse HEAD > \\\"$OUT/commit\\\" && echo shipping";

/// A repository with a remote, a trusted target `prod` that copies itself to `live`, and a session.
struct Site {
    person: String,
    ann: String,
}

fn policy(more: &str) -> String {
    format!(
        "[deploy.prod]\nrun = [\"sh\", \"-c\", \"{RUN}\"]\n\
         verify = [\"sh\", \"-c\", \"test -f \\\"$OUT/commit\\\"\"]\n{more}\n"
    )
}

impl Site {
    fn at(scratch: &Scratch, policy: &str) -> Self {
        scratch.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
        scratch.git(&["remote", "add", "origin", scratch.path("remote.git").to_str().unwrap()]);
        scratch.write("baton.toml", policy);
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "policy"]);
        scratch.git(&["push", "-q", "origin", "main"]);
        let (person, ann) = (person_token(scratch), scratch.session("ann"));
        let site = Self { person, ann };
        site.trusts(scratch);
        site
    }

    fn trusts(&self, scratch: &Scratch) {
        let mut command = scratch.command(&["trust", "--yes"]);
        command.env("BATON_PERSON_TOKEN_FILE", &self.person);
        Said::from(command.output().unwrap()).ok();
    }
}

fn live(scratch: &Scratch) -> PathBuf {
    scratch.path("live")
}

fn deploy_as(scratch: &Scratch, who: &str, words: &[&str]) -> Said {
    let mut command = scratch.command(&[&["deploy", "prod"], words].concat());
    command.env("BATON_SESSION", who).env("OUT", live(scratch));
    std::fs::create_dir_all(live(scratch)).unwrap();
    command.output().unwrap().into()
}

fn outcomes(scratch: &Scratch) -> Vec<String> {
    let list = scratch.baton(&["deploys", "--json"]).ok().json();
    let all = list["deploys"].as_array().unwrap();
    all.iter().map(|one| one["outcome"].as_str().unwrap().to_owned()).collect()
}

fn commit(scratch: &Scratch, file: &str, text: &str) -> String {
    scratch.write(file, text);
    scratch.git(&["add", "--", file]);
    scratch.git(&["commit", "-qm", file]);
    scratch.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

#[test]
fn a_commit_ships_from_a_checkout_of_its_own_and_is_verified() {
    Scratch::on_each_store("", |scratch| {
        let site = Site::at(scratch, &policy(""));
        let head = scratch.git(&["rev-parse", "HEAD"]).trim().to_owned();
        // What others have in the tree neither ships nor blocks.
        scratch.write("src/a.rs", "half an edit, TODO\n");
        scratch.write("junk", "TODO\n");
        let said = deploy_as(scratch, &site.ann, &["--op-id", "one", "--json"]).ok();
        assert!(said.err.contains("shipping"), "live output: {said:?}");
        let deploy = said.json();
        assert_eq!(deploy["end"]["outcome"], "succeeded", "{deploy}");
        assert_eq!(deploy["commit"], head.as_str());
        let shipped = |file: &str| std::fs::read_to_string(live(scratch).join(file)).unwrap();
        assert_eq!(shipped("commit").trim(), head);
        assert_eq!(shipped("src/a.rs"), "fn a() {}\n");
        assert!(!live(scratch).join("junk").exists());
        let log = std::fs::read_to_string(deploy["log"].as_str().unwrap()).unwrap();
        assert!(log.contains("shipping"), "{log}");
        assert!(!PathBuf::from(deploy["folder"].as_str().unwrap()).exists());
        assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1);
        let again = deploy_as(scratch, &site.ann, &["--op-id", "one", "--json"]).ok();
        assert_eq!(again.json(), deploy, "a retry ships nothing");
        assert_eq!(outcomes(scratch), ["succeeded"]);
        let list = scratch.baton(&["deploys", "prod"]).ok();
        assert!(list.out.contains("succeeded") && list.out.contains("live"), "{list:?}");
        let claims = scratch.baton(&["claims", "--json"]).ok();
        assert!(!claims.out.contains("deploy/prod"), "the target is free: {claims:?}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn lesson_33_a_stale_copy_300_commits_behind_is_refused() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    let site = Site::at(&scratch, &policy(""));
    let old = scratch.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let tree = scratch.git(&["rev-parse", "HEAD^{tree}"]).trim().to_owned();
    let mut tip = old;
    for number in 0..300 {
        let message = format!("{number}");
        let made = ["commit-tree", &tree, "-p", &tip, "-m", &message];
        tip = scratch.git(&made).trim().to_owned();
    }
    scratch.git(&["push", "-q", "origin", &format!("{tip}:refs/heads/main")]);
    scratch.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    let said = deploy_as(&scratch, &site.ann, &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("lacks 300 commits of origin/main"), "{said:?}");
    assert!(said.err.contains("next: baton sync --pull"), "{said:?}");
    assert!(!live(&scratch).join("commit").exists(), "nothing ran");
    assert!(outcomes(&scratch).is_empty());
    deploy_as(&scratch, &site.ann, &["--commit", &tip]).ok();
    // Offline is an answer of its own.
    std::fs::rename(scratch.path("remote.git"), scratch.path("gone.git")).unwrap();
    let said = deploy_as(&scratch, &site.ann, &["--commit", &tip]);
    assert_eq!(said.code, 4, "{said:?}");
    // Without any remote the local branch is where work lands.
    scratch.git(&["remote", "remove", "origin"]);
    let said = deploy_as(&scratch, &site.ann, &[]);
    assert!(said.err.contains("would be a rollback"), "main is older than what is live: {said:?}");
    scratch.git(&["reset", "-q", "--hard", &tip]);
    deploy_as(&scratch, &site.ann, &[]).ok();
}

#[test]
fn lesson_33_a_verify_that_fails_is_failed_and_without_one_it_is_unverified() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    let site = Site::at(&scratch, &policy(""));
    let change = |from: &str, to: &str| {
        let text = std::fs::read_to_string(scratch.root().join("baton.toml")).unwrap();
        assert!(text.contains(from), "{text}");
        commit(&scratch, "baton.toml", &text.replace(from, to));
        scratch.git(&["push", "-q", "origin", "main"]);
        site.trusts(&scratch);
    };
    change("test -f", "test -d");
    let said = deploy_as(&scratch, &site.ann, &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.starts_with("failed deploy of"), "{said:?}");
    assert!(said.out.contains("it was shipped, and verify ended with 1"), "{said:?}");
    change("verify = ", "timeout = \"5m\" # ");
    let said = deploy_as(&scratch, &site.ann, &[]).ok();
    assert!(said.out.starts_with("unverified"), "{said:?}");
    change("cp -r", "exit 3; cp -r");
    let said = deploy_as(&scratch, &site.ann, &[]);
    assert!(said.code == 1 && said.out.contains("run ended with 3"), "{said:?}");
    assert_eq!(outcomes(&scratch), ["failed", "unverified", "failed"]);
    change("5m", "1s");
    change("exit 3; cp -r", "sleep 60; cp -r");
    let said = deploy_as(&scratch, &site.ann, &[]);
    assert!(said.code == 1 && said.out.contains("run ended with 124"), "{said:?}");
}

#[test]
fn lesson_33_two_deploys_at_once_one_is_refused_naming_who() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    let slow = policy("").replace("cp -r", "touch \\\"$OUT/begun\\\"; sleep 600; cp -r");
    let site = Site::at(&scratch, &slow);
    let bob = scratch.session("bob");
    std::fs::create_dir_all(live(&scratch)).unwrap();
    let mut command = scratch.command(&["deploy", "prod"]);
    command.env("BATON_SESSION", &site.ann).env("OUT", live(&scratch));
    let mut first = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !live(&scratch).join("begun").exists() {
        assert!(std::time::Instant::now() < deadline, "it never began");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    for who in [&bob, &site.ann] {
        let said = deploy_as(&scratch, who, &[]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("is being deployed by ann"), "{said:?}");
    }
    assert_eq!(outcomes(&scratch), ["running"]);
    // It is killed: nobody knows what came of it, its command ended with it, and others go on.
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(outcomes(&scratch), ["unknown"]);
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1, "cleared up");
    let journal = scratch.baton(&["journal"]).ok();
    assert!(journal.out.contains("what came of it is unknown"), "{journal:?}");
    let quick = policy("");
    commit(&scratch, "baton.toml", &quick);
    scratch.git(&["push", "-q", "origin", "main"]);
    site.trusts(&scratch);
    deploy_as(&scratch, &bob, &[]).ok();
    assert_eq!(outcomes(&scratch), ["succeeded", "unknown"]);
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn a_death_at_any_step_shows_as_unknown_and_never_as_success() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    let site = Site::at(&scratch, &policy(""));
    scratch.allow_test_hooks();
    for (point, reached) in [
        ("deploy-started", false),
        ("deploy-checked-out", false),
        ("deploy-ran", false),
        ("deploy-shipped", true),
    ] {
        let mut command = scratch.command(&["deploy", "prod"]);
        command.env("BATON_SESSION", &site.ann).env("OUT", live(&scratch));
        std::fs::create_dir_all(live(&scratch)).unwrap();
        let died = Said::from(command.env("BATON_TEST_STOP_AT", point).output().unwrap());
        assert_ne!(died.code, 0, "{point}: {died:?}");
        let list = scratch.baton(&["deploys", "--json"]).ok().json();
        assert_eq!(list["deploys"][0]["outcome"], "unknown", "{point}: {list}");
        assert_eq!(list["deploys"][0]["live"], reached, "{point}");
        assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1, "{point}");
    }
    deploy_as(&scratch, &site.ann, &[]).ok();
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn a_rollback_must_be_said_and_goes_only_to_what_was_live() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    let site = Site::at(&scratch, &policy(""));
    let push = |file: &str| {
        let made = commit(&scratch, file, "x\n");
        scratch.git(&["push", "-q", "origin", "main"]);
        made
    };
    let nothing = deploy_as(&scratch, &site.ann, &["--rollback"]);
    assert_eq!(nothing.code, 1, "{nothing:?}");
    assert!(nothing.err.contains("nothing was live"), "{nothing:?}");
    let first = push("one");
    deploy_as(&scratch, &site.ann, &[]).ok();
    let between = push("between");
    push("two");
    deploy_as(&scratch, &site.ann, &[]).ok();
    let never = deploy_as(&scratch, &site.ann, &["--rollback", "--commit", &between]);
    assert!(never.code == 1 && never.err.contains("was never live"), "{never:?}");
    let back = deploy_as(&scratch, &site.ann, &["--rollback", "--json"]).ok().json();
    assert_eq!(back["commit"], first.as_str());
    let shipped = std::fs::read_to_string(live(&scratch).join("commit")).unwrap();
    assert_eq!(shipped.trim(), first);
    let journal = scratch.baton(&["journal"]).ok();
    assert!(journal.out.contains("rolled prod back from"), "{journal:?}");
    let text = scratch.baton(&["deploys"]).ok().out;
    assert!(text.contains("succeeded (rollback)"), "{text}");
}

#[test]
fn a_person_approves_the_commit_and_unfinished_text_does_not_ship() {
    Scratch::on_each_store("", |scratch| {
        let site = Site::at(scratch, &policy("gate = true\npaths = [\"site/\"]"));
        let said = deploy_as(scratch, &site.ann, &["--json"]);
        assert_eq!(said.code, 1, "{said:?}");
        let refused = said.json()["refused"].clone();
        assert_eq!(refused["code"], "gated", "{refused}");
        assert_eq!(refused["gate"], "g1");
        let again = deploy_as(scratch, &site.ann, &["--json"]).json();
        assert_eq!(again["refused"]["gate"], "g1", "asked once");
        let own = ["gate", "approve", "g1", "--why", "mine"];
        scratch.acts(&site.ann, &own).refused(1);
        let decide = |gate: &str| {
            let mut command = scratch.command(&["gate", "approve", gate, "--why", "seen"]);
            command.env("BATON_PERSON_TOKEN_FILE", &site.person);
            Said::from(command.output().unwrap()).ok();
        };
        decide("g1");
        deploy_as(scratch, &site.ann, &[]).ok();
        commit(scratch, "notes.md", "TODO: does not ship\n");
        commit(scratch, "site/index.html", "one\n<p>Coming soon</p>\n\nTBD\n");
        let said = deploy_as(scratch, &site.ann, &["--json"]);
        let refused: Value = said.json()["refused"].clone();
        assert_eq!(refused["code"], "placeholders", "{said:?}");
        assert!(
            said.err.contains("site/index.html:2 coming soon, site/index.html:4 TBD"),
            "{said:?}"
        );
        assert!(!said.err.contains("notes.md"), "{said:?}");
        commit(scratch, "site/index.html", "done\n");
        let said = deploy_as(scratch, &site.ann, &["--json"]);
        assert_eq!(said.json()["refused"]["gate"], "g2", "another commit, another gate: {said:?}");
        decide("g2");
        deploy_as(scratch, &site.ann, &[]).ok();
        assert_eq!(outcomes(scratch), ["succeeded", "succeeded"]);
    });
}

#[test]
fn nothing_untrusted_runs_and_bad_words_are_told() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    let site = Site::at(&scratch, &policy(""));
    commit(&scratch, "baton.toml", &policy("").replace("cp -r", "touch \\\"$OUT/canary\\\"; cp"));
    scratch.git(&["push", "-q", "origin", "main"]);
    // What is in force and trusted counts, whatever the commit says.
    deploy_as(&scratch, &site.ann, &[]).ok();
    assert!(!live(&scratch).join("canary").exists());
    scratch.baton(&["policy", "approve", "--yes"]).ok();
    let said = deploy_as(&scratch, &site.ann, &["--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.json()["refused"]["code"], "untrusted");
    assert!(said.err.contains("deploy prod run"), "{said:?}");
    assert!(said.err.contains("next: a person runs: baton trust"), "{said:?}");
    assert!(!live(&scratch).join("canary").exists());
    for (words, code, expected) in [
        (&["deploy", "moon"][..], 2, "has no target"),
        (&["deploys", "moon"], 2, "has no target"),
        (&["deploy"], 2, "TARGET"),
    ] {
        let said = scratch.acts(&site.ann, words);
        assert_eq!(said.code, code, "{words:?}: {said:?}");
        assert!(said.err.contains(expected), "{said:?}");
    }
    site.trusts(&scratch);
    for named in ["nothing", "--output=x", "HEAD:src"] {
        let said = deploy_as(&scratch, &site.ann, &[&format!("--commit={named}")]);
        assert_eq!(said.code, 1, "{named}: {said:?}");
    }
    let said = scratch.baton(&["deploy", "prod"]);
    assert!(said.code == 1 && said.err.contains("no session"), "{said:?}");
}
