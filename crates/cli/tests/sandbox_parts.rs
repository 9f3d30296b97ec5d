//! `baton sandbox`: what of a tree each role is given by the kernel, and what not.

use std::path::{Path, PathBuf};

use crate::harness::{Said, Scratch};

const FILES: [&str; 9] = [
    "src/main.rs",
    "tests/t.rs",
    "docs/d.md",
    "Cargo.toml",
    "crates/x/Cargo.toml",
    "crates/x/README.md",
    "crates/x/src/lib.rs",
    "crates/x/tests/i.rs",
    "go/pkg/a.go",
];

/// The main checkout and a tree beside it, with the same files; nothing where there is no Landlock.
fn rooms(more: &[&str]) -> Option<(Scratch, [PathBuf; 2])> {
    let scratch = Scratch::repository();
    for file in FILES.iter().chain(more) {
        scratch.write(file, "old\n");
    }
    scratch.write(".gitignore", "/target\n.pytest_cache/\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "files"]);
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    let said = scratch.baton(&["sandbox", "verify", "--", "true"]);
    if said.err.contains("Landlock") {
        eprintln!("skipped: {}", said.err);
        return None;
    }
    let linked = scratch.path("linked");
    scratch.git(&["worktree", "add", "-q", "-b", "linked", linked.to_str().unwrap()]);
    let trees = [scratch.root(), linked];
    Some((scratch, trees))
}

/// Appends to each of the files by a program that no hook sees, and answers which it could.
fn written(scratch: &Scratch, tree: &Path, role: &str, files: &[&str]) -> (Vec<String>, Said) {
    let script = "import os, sys\nfor file in sys.argv[1:]:\n try:\n  \
                  os.makedirs(os.path.dirname(file) or '.', exist_ok=True)\n  \
                  open(file, 'a').write('new')\n  print(file)\n except PermissionError: pass\n";
    let dir = tree.to_str().unwrap();
    let mut words = vec!["sandbox", role, "--dir", dir, "--", "python3", "-c", script];
    words.extend(files);
    let said = scratch.baton(&words).ok();
    (said.out.lines().map(str::to_owned).collect(), said)
}

fn each_role(more: &[&str], tried: &[&str], roles: &[(&str, &[&str])]) {
    let Some((scratch, trees)) = rooms(more) else { return };
    for tree in trees {
        for (role, wanted) in roles {
            let (found, said) = written(&scratch, &tree, role, tried);
            assert_eq!(found, *wanted, "{role} in {}: {said:?}", tree.display());
            scratch.git(&["-C", tree.to_str().unwrap(), "checkout", "-q", "."]);
            scratch.git(&["-C", tree.to_str().unwrap(), "clean", "-fdxq"]);
        }
    }
}

#[test]
fn source_tests_and_documentation_are_held_apart_by_their_folders() {
    let tried = [
        "src/main.rs",
        "src/py.rs",
        "tests/t.rs",
        "tests/py.rs",
        "tests/deep/py.rs",
        "docs/plan.md",
        "README.md",
        "Cargo.toml",
        "crates/x/src/py.rs",
        "crates/x/tests/py.rs",
        "crates/x/README.md",
        "crates/x/Cargo.toml",
        "target/debug/x",
        "top.txt",
        "new/py.rs",
    ];
    let tests = ["tests/t.rs", "tests/py.rs", "tests/deep/py.rs"];
    let docs = ["docs/plan.md", "README.md"];
    let of_test =
        [&tests[..], &docs, &["crates/x/tests/py.rs", "crates/x/README.md", "target/debug/x"]]
            .concat();
    let of_code = [
        "src/main.rs",
        "src/py.rs",
        "docs/plan.md",
        "README.md",
        "Cargo.toml",
        "crates/x/src/py.rs",
        "crates/x/README.md",
        "crates/x/Cargo.toml",
        "target/debug/x",
    ];
    let of_orchestrator = [&docs[..], &["crates/x/README.md", "target/debug/x"]].concat();
    let of_docs = [&docs[..], &["crates/x/README.md"]].concat();
    let roles: [(&str, &[&str]); 6] = [
        ("test", &of_test),
        ("debug", &of_test),
        ("code", &of_code),
        ("orchestrator", &of_orchestrator),
        ("docs", &of_docs),
        ("review", &[]),
    ];
    each_role(&[], &tried, &roles);
}

#[test]
fn where_tests_lie_beside_their_source_the_folder_is_open_and_none_below_or_above() {
    let more = ["go/pkg/a_test.go", "go/pkg/inner/b.go", "go/lib/c.go", "go/lib/c_test.go"];
    let tried = [
        "go/pkg/a_test.go",
        "go/pkg/new_test.go",
        "go/pkg/inner/b.go",
        "go/lib/new_test.go",
        "go/new_test.go",
        "src/main.rs",
    ];
    // What is below `pkg` is source alone: `pkg` is not opened for its sake, its tests are.
    let of_test = ["go/pkg/a_test.go", "go/lib/new_test.go"];
    each_role(&more, &tried, &[("test", &of_test)]);
}

#[test]
fn what_has_to_be_there_is_made_and_goes_again() {
    let Some((scratch, [main, _])) = rooms(&[]) else { return };
    for folder in ["tests", "docs"] {
        std::fs::remove_dir_all(main.join(folder)).unwrap();
    }
    let (found, said) = written(&scratch, &main, "test", &["tests/one.rs"]);
    assert_eq!(found, ["tests/one.rs"], "{said:?}");
    assert!(said.err.contains("and makes nothing new beside them"), "{said:?}");
    assert!(main.join("tests/one.rs").exists());
    for folder in ["docs", "target", ".pytest_cache"] {
        assert!(!main.join(folder).exists(), "{folder} was left");
    }
}

#[test]
fn a_role_of_the_project_is_held_to_what_it_denies() {
    let policy = "[roles.schema]\nwrite = [\"migrations/\", \"kind:docs\"]\n\
                  deny = [\"migrations/archive/\"]\n";
    let scratch = Scratch::with_policy(policy);
    scratch.write("migrations/1.sql", "old\n");
    scratch.write("migrations/archive/0.sql", "old\n");
    if scratch.baton(&["sandbox", "verify", "--", "true"]).err.contains("Landlock") {
        return eprintln!("skipped: no Landlock");
    }
    let tried = ["migrations/1.sql", "migrations/archive/0.sql", "README.md", "src/a.rs"];
    let (found, said) = written(&scratch, &scratch.root(), "schema", &tried);
    assert_eq!(found, ["migrations/1.sql", "README.md"], "{said:?}");
}
