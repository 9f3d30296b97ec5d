//! Texts that are too long, too deep or no shell at all.
//!
//! Each must be answered at once; a test that hangs or overflows its stack is the failure.

use crate::shell::danger::{Verb, of};
use crate::shell::{
    COMMANDS_MAX, DEPTH_MAX, LINE_BYTES_MAX, Place, STEPS_MAX, Unparsed, Write, read,
};

#[test]
fn depth_is_bounded() {
    let openings = [
        "(",
        "$(",
        "`",
        "\"$(",
        "{ ",
        "${x:-",
        "$((",
        "if ",
        "while ",
        "((",
        "<(",
        "case x in a) ",
        "f() { ",
        "[[ $(",
        "bash -c \"",
        "! (",
        "{a,",
        "eval $(",
        "a=(",
    ];
    for opening in openings {
        let deeds = read(&opening.repeat(10_000));
        assert!(deeds.unparsed.is_some() || !deeds.harmless, "{opening}");
        let closed = format!("{}x{}", "(".repeat(10_000), ")".repeat(10_000));
        assert_eq!(read(&closed).unparsed, Some(Unparsed::TooDeep));
    }
    let within = |depth: usize| format!("{}touch a{}", "( ".repeat(depth), " )".repeat(depth));
    assert_eq!(read(&within(DEPTH_MAX / 2 - 2)).writes.len(), 1);
    assert_eq!(read(&within(DEPTH_MAX + 1)).unparsed, Some(Unparsed::TooDeep));
    assert_eq!(read("f() { f; }; f").unparsed, Some(Unparsed::TooDeep));
}

#[test]
fn length_is_bounded() {
    let long = "a".repeat(10 * 1024 * 1024);
    assert_eq!(read(&long).unparsed, Some(Unparsed::TooLong));
    let full = |unit: &str| unit.repeat(LINE_BYTES_MAX / unit.len());
    let units = [
        "a",
        "a;",
        "a ",
        "\n",
        "'",
        "\"\" ",
        "$x",
        "a[",
        "((echo '((((' ) );",
        "<<a ",
        "{",
        "{a,b}",
        "\\",
        "\u{fc}",
        "`a`",
        "x=1;",
        "a&&",
        "a|",
        "$'\\x",
        "for i in a b c d;do ",
        "#",
    ];
    for unit in units {
        let deeds = read(&full(unit));
        assert!(deeds.commands.len() <= LINE_BYTES_MAX);
    }
    let written = format!("cat > a <<'EOF'\n{}EOF\n", "text of a file\n".repeat(60_000));
    let deeds = read(&written);
    assert!(deeds.harmless && deeds.unparsed.is_none() && deeds.writes.len() == 1);
}

#[test]
fn work_is_bounded() {
    let doubled = format!("X=aa;{} touch $X", "X=$X$X;".repeat(60));
    assert!(!read(&doubled).harmless);
    let nested = format!("{}touch $a{}", "for a in {1..50}; do ".repeat(9), "; done".repeat(9));
    assert_eq!(read(&nested).unparsed, Some(Unparsed::TooMuch));
    let loops = format!("{}cd x{}", "while true; do ".repeat(20), "; done".repeat(20));
    assert!(!read(&loops).harmless || read(&loops).unparsed.is_none());
    assert!(!read(&format!("touch {}", "{a,b}".repeat(30))).harmless);
    let bomb = ":(){ :|:& };:";
    assert!(read(bomb).unparsed.is_some());
}

#[test]
fn what_is_over_a_limit_is_not_known() {
    // Braces that the shell makes more words of than are followed, or in a way that is not.
    for line in [
        "rm f{1..300}",
        "rm f{01..12}",
        "rm f{1..09}",
        "rm f{1..9..2}",
        "rm {c..a}",
        "rm f{a..i..2}",
        "rm f{1..99999999999}",
        "rm x{a,f{1..9..2}}",
    ] {
        assert!(!read(line).harmless, "{line}");
    }
    for line in ["git show HEAD@{1}..HEAD@{2}", "echo {a..} {..} {x..yz}", "touch {9..8} {a..c}"] {
        assert!(read(line).harmless, "{line}");
    }
    // A variable too many is still the one that says how others are split.
    let many: String = (0..200).map(|number| format!("v{number}=x; ")).collect();
    assert!(!read(&format!("x=a:b; {many} IFS=:; rm $x")).harmless);
}

#[test]
fn of_a_line_that_is_not_read_what_it_takes_away_and_says_to_git_is_guessed() {
    let dangers = |line: &str| of(&read(line)).iter().map(|one| one.verb).collect::<Vec<_>>();
    let words = "x ".repeat(STEPS_MAX);
    let commands = "x; ".repeat(COMMANDS_MAX);
    for before in [&words, &commands] {
        let line = format!("echo {before}; git stash");
        assert!(read(&line).unparsed.is_some());
        assert_eq!(dangers(&line), [Verb::Stash]);
    }
    assert_eq!(dangers(&"x".repeat(LINE_BYTES_MAX + 1)), [Verb::TooLong]);
    for line in ["rm -rf ../side /s 'x", "mv ../side /s 'x", &format!("rm {words} ../side /s")] {
        let deeds = read(line);
        assert!(deeds.unparsed.is_some());
        for place in ["../side", "/s"] {
            let gone = |write: &Write| write.place == Place::Path(place.to_owned()) && write.below;
            assert!(deeds.writes.iter().any(gone), "{place}");
        }
    }
}

#[test]
fn what_is_no_shell_is_said_so() {
    for line in [
        "'", "\"", "echo 'a", "$(", "`a", "a |", "a &&", "&& a", ")", "(a", "{ a", "if a", "fi",
        "for", "case", "a > ", "a <", "${x", "do a", "}", "a (b)", "| a", "<<",
    ] {
        let deeds = read(line);
        assert!(deeds.unparsed.is_some() && !deeds.harmless, "{line}: {deeds:?}");
    }
    for line in ["", " ", "\n", "# x", ";", "a;", "a &", "!", "\\\n"] {
        let _ = read(line);
    }
    assert!(read("").harmless);
}
