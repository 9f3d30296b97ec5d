//! What holds for every text.
//!
//! A longer run: `PROPTEST_CASES=1000000 cargo test -p baton-core shell`. The same functions
//! are what a fuzzer calls: `read`, `danger::of`, `patches::read`, `patches::unified`.

use proptest::prelude::*;

use crate::patches;
use crate::shell::{Argument, danger, quote, read};

#[rustfmt::skip]
const PIECES: &[&str] = &[
    " ", "\n", ";", "&", "&&", "||", "|", "(", ")", "{", "}", "<", ">", ">>", "<<", "<<-", "<<<",
    "&>", ">&", "$", "${", "$(", "$((", "))", "`", "'", "\"", "\\", "#", "=", "x=1", "a", "b.c",
    "*", "?", "[", "]", "~", "!", "if", "then", "fi", "for", "in", "do", "done", "case", "esac",
    "while", "function", "[[", "]]", "((", "EOF", "git", "stash", "rm", "cd", "-r", "bash", "-c",
    "eval", "xargs", "find", "-exec", "sed", "-i", "cp", "tar", "x", "é", "\u{0}", "..", ",", "1",
    "env", "sudo", "-u", "tee", "perl", "dd", "of=", "apply_patch", "*** Begin Patch\n", "%",
    ":-",
];

/// Pieces that mean something to a shell, in any order.
fn shellish() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(PIECES);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_is_too_much(text in prop_oneof![any::<String>(), ".{0,200}", shellish()]) {
        let deeds = read(&text);
        danger::of(&deeds);
        prop_assert!(deeds.unparsed.is_none() || !deeds.harmless);
        prop_assert!(deeds.commands.iter().all(|command| !command.argv.is_empty()));
        let _ = (patches::read(&text), patches::unified(&text, 1), patches::named(&text));
    }

    #[test]
    fn quoted_words_come_back(words in prop::collection::vec("[^\u{0}]{0,12}", 0..6)) {
        let all = std::iter::once("printf").chain(words.iter().map(String::as_str));
        let deeds = read(&quote(all));
        prop_assert_eq!(deeds.commands.len(), 1);
        let found: Vec<Option<&str>> = deeds.commands[0].argv.iter().map(Argument::text).collect();
        let wanted = std::iter::once("printf").chain(words.iter().map(String::as_str)).map(Some);
        prop_assert_eq!(found, wanted.collect::<Vec<_>>());
    }

    #[test]
    fn a_write_is_seen_whatever_stands_around_it(before in shellish(), name in "[a-z]{3,8}") {
        let line = format!("{before}\nprintf x > zz{name}");
        let deeds = read(&line);
        let place = crate::shell::Place::Path(format!("zz{name}"));
        // In a quote, a here-document or a loop it is part of something else, or nobody knows.
        let hidden = before.contains(['\'', '"', '`', '\\', '#', '<', '$', '[', '('])
            || before.contains("cd") || before.contains("function") || before.contains("case");
        let seen = deeds.writes.iter().any(|write| write.place == place);
        prop_assert!(seen || hidden || deeds.unparsed.is_some(), "{}", line);
    }
}

/// Known lines and patches, spoiled in every way.
#[test]
fn fuzz_shell_and_patches() {
    let lines = [
        "git add -A && git commit -m 'a b' || echo \"$(date)\" > out.txt",
        "cat <<'EOF' | tee -a log.md >/dev/null\nline $x\nEOF\n",
        "for f in *.rs; do sed -i \"s/a/b/\" \"$f\"; done; bash -c 'rm -rf x' & xargs -0 rm",
        "case $1 in a|b) echo ${x:-y} >> \"$HOME/z\";; *) (cd src; mv a b) 2>&1;; esac",
        "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@ fn a\n-old\n+new\n ctx\n\
         *** Add File: c\n+x\n*** Delete File: d\n*** End Patch\n",
        "diff --git a/x b/y\nrename from x\n--- a/x\n+++ b/y\n@@ -1,2 +1 @@\n-a\n b\n",
    ];
    let known: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
    let tried = baton_testing::fuzz::run("shell and patches", &known, |input| {
        let text = String::from_utf8_lossy(input);
        let deeds = read(&text);
        danger::of(&deeds);
        assert!(deeds.unparsed.is_none() || !deeds.harmless);
        let _ = (patches::read(&text), patches::unified(&text, 1), patches::named(&text));
    });
    assert!(tried > 100, "{tried}");
}
