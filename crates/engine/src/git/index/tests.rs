//! Indexes that git itself wrote, whole and broken: what is read of them is what git says, and
//! nothing that is broken is taken for whole.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;

fn git(root: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=T", "-c", "user.email=t@example.invalid"]);
    command.args(["-c", "commit.gpgSign=false"]).args(words).current_dir(root);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository whose index is of this version, and HEAD.
fn repository(hash: &str, version: &str) -> (tempfile::TempDir, Oid) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    git(root, &["init", "-q", &format!("--object-format={hash}")]);
    git(root, &["config", "index.version", version]);
    let long = "n".repeat(200);
    for path in ["a", "a.b/c", "a/b", "a/c/d", "ab", "empty", &long, &format!("z/{long}/{long}")] {
        let file =
            root.join(path.strip_prefix("a/").map_or(path.to_owned(), |x| format!("a-/{x}")));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, if path == "empty" { "" } else { path }).unwrap();
    }
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "x"]);
    let head = Oid::parse(&git(root, &["rev-parse", "HEAD"])).unwrap();
    (folder, head)
}

#[test]
fn every_version_in_both_hashes_is_what_git_says() {
    for hash in ["sha1", "sha256"] {
        for version in ["2", "3", "4"] {
            let (folder, head) = repository(hash, version);
            let root = folder.path();
            let index = Index::read(&root.join(".git/index"), &head).unwrap();
            let paths: Vec<String> =
                index.iter().map(|(path, _)| String::from_utf8_lossy(path).into_owned()).collect();
            let said = git(root, &["ls-files", "-z"]);
            assert_eq!(paths, said.split_terminator('\0').collect::<Vec<_>>());
            let tree = git(root, &["rev-parse", "HEAD^{tree}"]);
            assert_eq!(
                index.tree.as_ref().map(Oid::as_str),
                Some(tree.as_str()),
                "{hash} {version}"
            );
            assert!(index.iter().all(|(_, stamp)| !stamp.doubtful && stamp.mode == 0o100_644));
            // After a change that is staged git has not noted the tree yet.
            fs::write(root.join("ab"), "other").unwrap();
            git(root, &["add", "ab"]);
            let staged = Index::read(&root.join(".git/index"), &head).unwrap();
            assert_eq!(staged.tree, None);
        }
    }
}

#[test]
fn a_broken_index_is_left_to_git() {
    for version in ["2", "4"] {
        let (folder, _) = repository("sha1", version);
        let whole = fs::read(folder.path().join(".git/index")).unwrap();
        assert!(Index::parse(&whole, 20).is_some());
        for end in 0..whole.len() {
            // Without its last part, what is left ends somewhere in an entry or an extension.
            let cut = Index::parse(&whole[..end], 20);
            assert!(cut.is_none_or(|cut| cut.tree.is_none()), "{end}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0xff;
            // It may look whole, and must not be a panic.
            drop(Index::parse(&other, 20));
        }
        for count in [u32::MAX, 1 << 20] {
            let mut other = whole.clone();
            other[8..12].copy_from_slice(&count.to_be_bytes());
            assert!(Index::parse(&other, 20).is_none());
        }
    }
    assert!(Index::parse(b"", 20).is_none());
}

#[test]
fn what_changed_about_when_the_index_was_written_proves_nothing() {
    let milliseconds = |part: u32| part * 1_000_000;
    let mut index =
        Index::parse(&fs::read(repository("sha1", "2").0.path().join(".git/index")).unwrap(), 20)
            .unwrap();
    index.written = (100, milliseconds(500).into());
    let racy = |modified: (u32, u32), changed: (u32, u32)| {
        index.is_racy(&Stamp { modified, changed, ..Stamp::default() })
    };
    let old = (99, milliseconds(1));
    assert!(!racy(old, old) && !racy((100, milliseconds(470)), (100, milliseconds(470))));
    for young in [(100, milliseconds(481)), (100, milliseconds(500)), (101, 1)] {
        assert!(racy(young, young) && racy(old, young), "{young:?}");
    }
    assert!(racy((98, 0), (98, 0)), "a clock of whole seconds");
    assert!(!racy((96, 0), (96, 0)));
}
