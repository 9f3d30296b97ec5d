//! S9 in patterns: whatever one typed character folds to, the wildcard for it accepts, in every
//! normal form and case of the path.

use unicode_normalization::UnicodeNormalization;

use super::*;

#[test]
fn a_question_mark_matches_every_character() {
    let any = glob("x?y");
    let negated = glob("x[!/\u{e000}]y");
    for c in ('\u{1}'..='\u{2ffff}').filter(|c| *c != '/' && !fold::is_ignorable(*c)) {
        assert!(any.matches(&format!("x{c}y")), "{c:?}");
        assert!(c == '\u{e000}' || negated.matches(&format!("x{c}y")), "{c:?}");
    }
}

#[test]
fn a_class_matches_its_members_in_every_spelling() {
    for c in ('\u{1}'..='\u{3000}').filter(|c| *c != '/' && !fold::is_ignorable(*c)) {
        if "[]!^-\\".contains(c) {
            continue;
        }
        let class = glob(&format!("x[{c}\u{4e00}]y"));
        let upper: String = c.to_uppercase().collect();
        for spelling in [c.to_string(), upper, c.nfd().collect(), c.nfc().collect()] {
            assert!(class.matches(&format!("x{spelling}y")), "{c:?} as {spelling:?}");
        }
    }
}

/// A pattern made from a name by blotting out characters matches that name, however it is spelled:
/// marks reordered across wildcards, folds that grow, iota subscripts, Hangul.
#[test]
fn s2_blotting_out_characters_keeps_the_match() {
    const CHARS: &[&str] = &[
        "a", "e", "s", "f", "i", "é", "\u{301}", "\u{323}", "\u{345}", "\u{344}", "ß", "ẞ", "ﬃ",
        "ς", "Σ", "α", "ᾳ", "ᾂ", "İ", "ı", "\u{ac01}", "\u{1100}", "\u{1161}", "\u{212a}", "ŉ",
        "ậ", "ǰ", "日", "\u{94d}", "क",
    ];
    let mut random = Random(9);
    for _ in 0..20_000 {
        let chars: Vec<&str> = (0..=random.below(5)).map(|_| random.pick(CHARS)).collect();
        let name = chars.concat();
        let text: String = chars
            .iter()
            .map(|c| match random.below(8) {
                0 => "?".to_owned(),
                1 => "*".to_owned(),
                2 => format!("[{c}q]"),
                3 => "[!qx]".to_owned(),
                4 => format!("[{c}é\u{323}ß]"),
                _ => (*c).to_owned(),
            })
            .collect();
        let pattern = glob(&text);
        let spellings: [String; 5] = [
            name.clone(),
            name.nfc().collect(),
            name.nfd().collect(),
            name.nfd().collect::<String>().to_uppercase(),
            fold(&name),
        ];
        for spelling in spellings {
            assert!(pattern.matches(&spelling), "{text:?} made from {name:?}, on {spelling:?}");
            assert!(overlaps(&pattern, &path(&spelling)), "{text:?} and {spelling:?}");
        }
        assert!(overlaps(&pattern, &glob(&format!("{name}*"))), "{text:?} and {name:?}*");
    }
}

#[test]
fn s9_globs_ignore_case_and_form() {
    for (text, name, expected) in [
        ("[A-Z].rs", "b.rs", true),
        ("[a-z].rs", "B.RS", true),
        ("[k]", "\u{212a}", true),
        ("stra?e", "STRASSE", true),
        ("stra[ß]e", "strasse", true),
        ("stra[ßx]e", "STRASSE", true),
        ("stra[ßx]e", "strase", false),
        ("[éx]", "e", false),
        ("[éx]", "E\u{301}", true),
        ("[!e]", "é", true),
        ("[!e]", "E", false),
        ("[!A]b", "ab", false),
        ("*é", "e\u{301}", true),
        ("ÉTÉ/*", "e\u{301}te\u{301}/x", true),
        ("\u{200c}a*", "a", true),
        ("a\u{200c}", "A", true),
        ("[a-\u{10ffff}]", "日", true),
        ("\u{1}[!a-\u{10ffff}]", "\u{1}日", true),
    ] {
        assert_eq!(glob(text).matches(name), expected, "{text:?} on {name:?}");
    }
}
