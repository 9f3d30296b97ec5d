//! Patches as tools take them, and those that lie.
//!
//! Every path that is named must come out, or an error with its line.

use super::{Action, named, paths, read, unified};

fn patch(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

#[test]
fn every_path_comes_out_with_what_happens_to_it() {
    let text = patch(
        "*** Add File: src/new.rs\n+fn a() {}\n+\n*** Update File: src/old.rs\n\
         *** Move to: src/moved.rs\n@@ fn b\n keep\n-gone\n+come\n@@\n+more\n*** End of File\n\
         *** Delete File: gone.txt\n",
    );
    let files = read(&text).unwrap();
    assert_eq!(paths(&files), ["src/new.rs", "src/old.rs", "src/moved.rs", "gone.txt"]);
    assert_eq!(files[0].action, Action::Add);
    assert_eq!(files[0].hunks[0].added, ["fn a() {}", ""]);
    assert_eq!(files[1].moved_to.as_deref(), Some("src/moved.rs"));
    assert_eq!(files[1].hunks.len(), 2);
    assert_eq!(files[1].hunks[0].removed, ["gone"]);
    assert_eq!(files[1].hunks[0].added, ["come"]);
    assert_eq!(files[2].action, Action::Delete);
    // As recorded from the clients, and as they spell it otherwise.
    let recorded =
        "*** Begin Patch\n*** Add File: /repo/allowed.txt\n+hello allowed\n*** End Patch\n";
    let crlf = recorded.replace('\n', "\r\n");
    for text in [recorded, recorded.trim_end(), &crlf, &format!("<<'EOF'\n{recorded}EOF\n")] {
        assert_eq!(paths(&read(text).unwrap()), ["/repo/allowed.txt"], "{text}");
    }
    let update = "*** Begin Patch\n*** Update File: /repo/locked.txt\n@@\n-old content\n\
                  +should never land\n*** End Patch\n";
    assert_eq!(read(update).unwrap()[0].hunks[0].removed, ["old content"]);
}

#[test]
fn a_patch_that_lies_is_seen_through() {
    // The text of a file may look like a head; a head in the middle is one.
    let text = patch("*** Update File: a\n@@\n *** Delete File: quoted\n-x\n*** Delete File: b\n");
    assert_eq!(paths(&read(&text).unwrap()), ["a", "b"]);
    let text = patch("*** Add File: a\n+x\n  *** Delete File: b\n");
    assert_eq!(paths(&read(&text).unwrap()), ["a", "b"]);
    let text =
        patch("*** Add File: ../out\n+x\n*** Delete File: /etc/passwd\n*** Add File: a\n+x\n");
    assert_eq!(paths(&read(&text).unwrap()), ["../out", "/etc/passwd", "a"]);
    let twice = patch("*** Delete File: a\n*** Add File: a\n+x\n");
    assert_eq!(read(&twice).unwrap().len(), 2);
    assert_eq!(paths(&read(&twice).unwrap()), ["a"]);
    let behind = format!("{}*** Delete File: b\n*** End Patch\n", patch("*** Delete File: a\n"));
    assert_eq!(read(&behind).unwrap_err().line, 4);
    assert_eq!(named(&behind), ["a", "b"]);
    assert_eq!(named("*** Move to: x\nno patch\n *** Add File:y"), ["x", "y"]);
}

#[test]
fn what_is_wrong_has_its_line() {
    for (text, line) in [
        (String::new(), 1),
        ("hello\n".to_owned(), 1),
        ("*** Begin Patch\n".to_owned(), 1),
        ("*** Begin Patch\n*** Delete File: a\n".to_owned(), 2),
        (patch(""), 1),
        (patch("*** Add File:\n+x\n"), 2),
        (patch("*** Add File:   \n+x\n"), 2),
        (patch("*** Add File:  a\n+x\n"), 2),
        (patch("*** Add File: a\u{7}b\n+x\n"), 2),
        (patch("*** Update File: a\n"), 2),
        (patch("*** Update File: a\n@@\nx\n"), 4),
        (patch("*** Delete File: a\njunk\n"), 3),
        (patch("*** Rename File: a\n"), 2),
        (patch("*** Update File: a\n*** Move to: \n@@\n-x\n"), 3),
    ] {
        assert_eq!(read(&text).unwrap_err().line, line, "{text}");
    }
}

#[test]
fn a_diff_names_both_sides() {
    let text = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n keep\n--- a/q\n\
                +come\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n--- /dev/null\n+++ b/new\n\
                @@ -0,0 +1 @@\n+x\ndiff --git a/m b/n\nsimilarity index 90%\nrename from m\n\
                rename to n\n--- a/m\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n\
                --- a/p\n+++ b/r\n@@ -1 +1 @@\n-a\n+b\n";
    let files = unified(text, 1).unwrap();
    assert_eq!(paths(&files), ["x", "old", "new", "m", "n", "p", "r"]);
    // A removed line that looks like a head is none.
    assert_eq!(files[0].hunks[0].removed, ["-- a/q"]);
    assert_eq!(files[3].hunks[0].added, ["b"]);
    let actions: Vec<Action> = files.iter().map(|file| file.action).collect();
    let wanted = [Action::Update, Action::Delete, Action::Add, Action::Update, Action::Update];
    assert_eq!(actions, wanted);
    assert_eq!(paths(&unified("--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n", 0).unwrap()), ["x"]);
    for (text, line) in [
        ("", 1),
        ("hello\n", 1),
        ("+++ b/x\n", 1),
        ("@@ -1 +1 @@\n", 1),
        ("--- a/x\n+++ b/x\n@@ -1,5 +1,5 @@\n a\n", 4),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n*\n", 4),
        ("--- x\n+++ x\n", 1),
        ("--- \"a/x\"\n+++ b/x\n", 1),
        ("GIT binary patch\n", 1),
        ("rename to x\n", 1),
    ] {
        assert_eq!(unified(text, 1).unwrap_err().line, line, "{text}");
    }
}
