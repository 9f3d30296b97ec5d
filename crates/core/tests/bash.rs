//! The shell's own reading of words, beside ours.
//!
//! One bash reads many generated lines and prints the words it saw; ours must be the same.

#![expect(
    clippy::disallowed_types,
    reason = "only the shell itself can say how it reads; no rule is run here"
)]

use std::process::Command;

use baton_core::shell::{Argument, read};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const LINES: usize = 2_000;

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z0-9_./,:@%+=-]{1,6}",
        2 => "'[^'\u{0}]{0,6}'",
        2 => "\"[a-z '*~{},;&|<>()#!?-]{0,6}\"",
        1 => "\"(\\\\[$`\"\\\\a]){1,2}\"",
        1 => "\\\\[ a-z'\"*$`;&|<>(){}#~?!\\[-]",
        1 => "\\$'([a-z ]|\\\\[nt\\\\'ea]|\\\\x4[1-9]|\\\\10[1-7]|\\\\u00e9){0,3}'",
        1 => "\\{[a-c]{0,2},[a-c'\"]{0}[a-c]{0,2}\\}",
        1 => "\\{[1-5]\\.\\.[1-5]\\}",
        1 => Just("$V".to_owned()),
        1 => Just("\"$V\"".to_owned()),
        1 => Just("${W}".to_owned()),
        1 => Just("${W%.rs}".to_owned()),
        1 => Just("$(echo a b)".to_owned()),
        1 => Just("\"$(echo 'a  b')\"".to_owned()),
        1 => Just("`echo q`".to_owned()),
        1 => Just("\\\n".to_owned()),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let word = prop::collection::vec(piece(), 1..4).prop_map(|pieces| pieces.concat());
    let words = prop::collection::vec(word, 1..5).prop_map(|words| words.join(" "));
    words.prop_map(|words| format!("V='x  y'; W=src/main.rs; printf '%s\\0' - {words}"))
}

#[test]
fn words_are_those_of_bash() {
    let mut runner = TestRunner::deterministic();
    let lines: Vec<String> =
        (0..LINES).map(|_| line().new_tree(&mut runner).unwrap().current()).collect();
    let script = lines.join("\nprintf '\\1\\0'\n");
    let scratch = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples");
    let mut bash = Command::new("bash");
    // Without globbing: what is in the folder is no matter of words.
    bash.args(["--norc", "-f", "-c", &script]).env("LC_ALL", "C.UTF-8").current_dir(scratch);
    let output = match bash.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        output => output.unwrap(),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<&str> = text.split("\u{1}\u{0}").collect();
    assert_eq!(answers.len(), LINES, "{}", String::from_utf8_lossy(&output.stderr));
    for (line, answer) in lines.iter().zip(answers) {
        let deeds = read(line);
        let command = deeds.commands.last().unwrap_or_else(|| panic!("{line}: {deeds:?}"));
        let found: Vec<&str> = command.argv.iter().map(|word| word.text().unwrap_or("?")).collect();
        let known = command.argv.iter().all(|word| matches!(word, Argument::Text(_)));
        let wanted: Vec<&str> = answer.trim_end_matches('\u{0}').split('\u{0}').collect();
        // Trailing empty words are lost in the trimming above.
        let found: Vec<&str> = found.into_iter().skip(2).collect();
        let kept = found.iter().rposition(|word| !word.is_empty()).map_or(0, |at| at + 1);
        assert!(known, "{line}: {command:?}");
        assert_eq!(found[..kept], wanted[..], "{line}");
    }
}
