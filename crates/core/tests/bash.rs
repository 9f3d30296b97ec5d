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

const LINES: usize = 1_000;

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z0-9_./,:@%+=-]{1,6}",
        2 => "'[^'\u{0}\u{1}]{0,6}'",
        2 => "\"[a-z '*~{},;&|<>()#!?-]{0,6}\"",
        1 => "\"(\\\\[$`\"\\\\a]){1,2}\"",
        1 => "\\\\[ a-z'\"*$`;&|<>(){}#~?!\\[-]",
        1 => "\\$'([a-z ]|\\\\[nt\\\\'ea]|\\\\x4[1-9]|\\\\10[1-7]|\\\\u00e9){0,3}'",
        1 => "\\{[a-c]{0,2},[a-c'\"]{0}[a-c]{0,2}\\}",
        1 => "\\{[1-5]\\.\\.[1-5]\\}",
        1 => Just("${V}".to_owned()),
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

/// What bash prints for each line; None where there is no bash.
fn answers(lines: &[String]) -> Option<Vec<String>> {
    let script = lines.join("\nprintf '\\1\\0'\n");
    let mut bash = Command::new("bash");
    // Without globbing: what is in the folder is no matter of words.
    bash.args(["--norc", "-f", "-c", &script]).env("LC_ALL", "C.UTF-8");
    let output = match bash.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        output => output.unwrap(),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<String> = text.split("\u{1}\u{0}").map(str::to_owned).collect();
    assert_eq!(answers.len(), lines.len(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(answers)
}

#[test]
fn words_are_those_of_bash() {
    let mut runner = TestRunner::deterministic();
    let lines: Vec<String> =
        (0..LINES).map(|_| line().new_tree(&mut runner).unwrap().current()).collect();
    // An argument of a process has its own limit.
    for lines in lines.chunks(200) {
        let Some(answers) = answers(lines) else { return };
        for (line, answer) in lines.iter().zip(answers) {
            let deeds = read(line);
            let command = deeds.commands.last().unwrap_or_else(|| panic!("{line}: {deeds:?}"));
            let known = command.argv.iter().all(|word| matches!(word, Argument::Text(_)));
            assert!(known && deeds.unparsed.is_none(), "{line}: {deeds:?}");
            let words = command.argv.iter().skip(2).filter_map(Argument::text);
            let found: String = words.map(|word| format!("{word}\u{0}")).collect();
            assert_eq!(found, answer, "{line}");
        }
    }
}
