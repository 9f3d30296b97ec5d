//! Which folders a sweep names, and the places that a line is about.
//!
//! A danger names what it goes through, so that the engine can tell a folder from a whole tree.

use crate::shell::danger::of;
use crate::shell::{Place, places, read};

/// The folders of the only danger of a line.
fn swept(line: &str) -> String {
    let dangers = of(&read(line));
    assert_eq!(dangers.len(), 1, "{line}: {dangers:?}");
    dangers[0].named.iter().map(super::place).collect::<Vec<String>>().join(" ")
}

#[test]
fn a_sweep_names_its_folders_or_is_of_the_whole_tree() {
    for (line, folders) in [
        ("git add .", "."),
        ("cd lib && git add .", "lib"),
        ("cd lib && git add ./*", "lib"),
        ("cd lib && git add '*'", "lib"),
        ("git -C lib checkout .", "lib"),
        ("cd lib && git checkout -- .", "lib"),
        ("cd lib && git restore .", "lib"),
        ("cd lib && git restore --staged .", "lib"),
        ("cd lib && git clean -fd", "lib"),
        ("git clean -fd lib doc", "lib doc"),
        ("git add sub/..", "sub/.."),
        ("git add /abs/root src", "/abs/root"),
        ("cd lib && git add ..", "lib/.."),
        ("cd lib && git add ../*", "lib/.."),
        ("git add /abs/*", "/abs"),
        ("git add ~/x", "~/x"),
        ("git clean -fd 'lib*'", "?"),
        ("git reset HEAD lib/..", "lib/.."),
        ("git rm -r --cached .", "."),
        ("poetry run git -C lib add .", "lib"),
        // Whatever the folder.
        ("cd lib && git add -A", ""),
        ("cd lib && git add :/", ""),
        ("cd lib && git add . :/", ""),
        ("cd lib && git reset", ""),
        ("cd lib && git reset --hard", ""),
        ("cd lib && git stash", ""),
        ("cd lib && GIT_WORK_TREE=/x git clean -fd | cat", ""),
    ] {
        if line.contains("GIT_") {
            assert!(of(&read(line)).iter().all(|danger| danger.named.is_empty()), "{line}");
        } else {
            assert_eq!(swept(line), folders, "{line}");
        }
    }
}

#[test]
fn a_line_is_about_what_it_names() {
    for (line, wanted) in [
        ("git -C /abs reset --hard", "/abs"),
        ("echo x > /abs/a.rs", "/abs/a.rs"),
        ("cd /abs && git add -A", "/abs"),
        ("rm ~/p/*.rs", "~/p"),
        ("rm /abs/*.rs", "/abs"),
        ("cd ~/p && make", "~/p"),
        ("git -C repo stash", "repo"),
        ("git --git-dir=/abs/.git reset --hard", "/abs/.git"),
        ("GIT_DIR=/abs/.git git reset --hard", "/abs/.git"),
        ("make", ""),
        ("git add -A", ""),
        ("rm *.rs", ""),
    ] {
        let found: Vec<String> = places(line).iter().map(super::place).collect();
        assert_eq!(found.join(" "), wanted, "{line}");
    }
    let many: String = (0..100).map(|at| format!("touch /x/{at}; ")).collect();
    assert_eq!(places(&many).len(), 100);
    assert_eq!(places(&many)[0], Place::Path("/x/0".to_owned()));
}
