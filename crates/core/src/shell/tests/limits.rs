//! Texts that are too long, too deep or no shell at all.
//!
//! Each must be answered at once; a test that hangs or overflows its stack is the failure.

use crate::shell::{DEPTH_MAX, LINE_BYTES_MAX, Unparsed, read};

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
