//! A claim that settles while its holder writes again, with a real repository.
//!
//! The holder writes between the look at its files and the end of its claim.

use std::path::Path;
use std::process::Command;

use baton_core::context::Proof;

use super::*;
use crate::setup::{self, Choice};
use crate::workspace::secret_hash;
use crate::{api, claiming};

fn git(root: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=T", "-c", "user.email=t@example.invalid"]).args(words);
    let output = command.current_dir(root).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "git {words:?}: {output:?}");
}

/// A workspace in which a session has a tree claim on `a`, which it changed and committed.
fn settled() -> (tempfile::TempDir, Workspace, Claim) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    git(&root, &["init", "-q"]);
    std::fs::write(root.join("a"), "one\n").unwrap();
    git(&root, &["add", "a"]);
    git(&root, &["commit", "-qm", "one"]);
    let plan = setup::plan(&root).unwrap();
    let (mut workspace, _) = setup::make_in(&plan.site, None, &Choice::Unsaid).unwrap();
    let wanted = api::SessionStart { name: Some("ann".to_owned()), ..Default::default() };
    let started = crate::sessions::start(&mut workspace, &Actor::default(), &wanted, None).unwrap();
    let secret = started.credential.split_once('.').unwrap().1;
    let ann = Actor {
        session: Some(started.session),
        proof: Proof::Secret(secret_hash(secret)),
        ..Actor::default()
    };
    let wanted = api::Claim {
        resources: vec!["a".to_owned()],
        shared: false,
        tree: true,
        ttl: None,
        wait: None,
        priority: 0,
        reason: None,
    };
    let granted = claiming::claim(&mut workspace, &ann, &root, &wanted, None, &mut |_| {}).unwrap();
    // Times of files have whole seconds.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    std::fs::write(root.join("a"), "two\n").unwrap();
    git(&root, &["commit", "-qam", "two"]);
    let (claim, _) = claim_and_session(&mut workspace, &granted.claim).unwrap().unwrap();
    let tree = claim.hold.tree.clone();
    assert_eq!(files::settled(&mut workspace, &tree, vec![claim.clone()], &[]).unwrap().len(), 1);
    (folder, workspace, claim)
}

fn claims(workspace: &mut Workspace, session: &SessionId) -> Vec<Claim> {
    let look = workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok(scan(view, claim::of_session(session, CLAIMS_MAX))?)
    });
    look.unwrap()
}

#[test]
fn a_claim_whose_files_are_committed_settles() {
    let (_folder, mut workspace, claim) = settled();
    let session = claim.hold.holder.session.clone();
    assert!(settle(&mut workspace, &claim.claim).unwrap());
    assert_eq!(claims(&mut workspace, &session), []);
}

#[test]
fn who_writes_between_the_look_and_the_end_keeps_the_claim() {
    let (folder, mut workspace, claim) = settled();
    let session = claim.hold.holder.session.clone();
    std::fs::write(folder.path().join("a"), "three\n").unwrap();
    let ended = end_settled(&mut workspace, std::slice::from_ref(&claim)).unwrap();
    assert_eq!(ended, 0, "nobody else is let in");
    let kept = claims(&mut workspace, &session);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].hold, claim.hold);
    assert!(kept[0].token > claim.token, "it had ended, so this is another hold");
}

#[test]
fn who_used_the_claim_after_the_look_keeps_it() {
    let (_folder, mut workspace, mut claim) = settled();
    let session = claim.hold.holder.session.clone();
    claim.renewed_at = claim.renewed_at - baton_core::time::Span(1);
    assert_eq!(end_settled(&mut workspace, std::slice::from_ref(&claim)).unwrap(), 0);
    assert_eq!(claims(&mut workspace, &session)[0].token, claim.token);
}
