//! Tables: what parses to what, what overlaps, what covers, what is stored.
//! Each row is a promise to users of patterns.

use super::*;

fn check_overlap(a: &Pattern, b: &Pattern, expected: bool) {
    assert_eq!(overlaps(a, b), expected, "{a:?} and {b:?}");
    assert_eq!(overlaps(b, a), expected, "{b:?} and {a:?}");
    assert_eq!(witness(a, b).is_some(), expected, "{a:?} and {b:?}");
    assert!(!expected || is_candidate(a, b) && is_candidate(b, a), "{a:?} and {b:?}");
}

#[test]
fn lesson_04_patterns_that_share_a_file_overlap() {
    check_overlap(&glob("src/*.rs"), &glob("src/a*"), true);
    assert_eq!(witness(&glob("src/*.rs"), &glob("src/a*")).as_deref(), Some("src/a.rs"));
    check_overlap(&glob("src/*.rs"), &glob("src/*.ts"), false);
    for text in ["src/[", "src/{a", "src/{a}", "a\\", "[z-a]", "src/[/]", "{,a}", "[[:alpha:]]"] {
        assert!(Pattern::glob(text).is_err(), "{text:?} must be refused");
    }
}

#[test]
fn lesson_05_every_spelling_is_one_resource() {
    for spellings in [
        &["a", "./a", "a//", "A", "b/../a", ".//./a/.", "a/b/..", "\u{200c}a"][..],
        &["d/\u{e9}", "d/e\u{301}", "D//\u{c9}", "./d/E\u{301}"],
        &["straße/x", "STRASSE/X", "Straẞe/./x"],
    ] {
        for spelling in spellings {
            assert_eq!(path(spelling), path(spellings[0]), "{spelling:?}");
            assert!(path(spellings[0]).matches(spelling), "{spelling:?}");
            assert!(overlaps(&path(spellings[0]), &folder(spelling)), "{spelling:?}");
        }
    }
    assert_ne!(path("a"), folder("a"));
    assert_eq!(glob("SRC/*.rs"), glob("./src//x/../*.RS"));
}

#[test]
fn overlap_of_globs() {
    for (a, b, expected) in [
        ("**/*.rs", "src/**", true),
        ("**/*.rs", "**/*.ts", false),
        ("**/a/**", "b/**/c", true),
        ("src/*/x", "src/y", false),
        ("src/**/x", "src/x", true),
        ("src/**", "src", true),
        ("src/", "src/a/b", true),
        ("src/*", "src/a/b", false),
        ("src/*", "src", false),
        ("*", "**/*", true),
        ("a?c", "a[bx]c", true),
        ("a[!b]c", "a[b]c", false),
        ("[a-f]x", "[g-z]x", false),
        ("[+-9]", "x/y", false),
        ("x[+-9]y", "x/y", false),
        ("{src,lib}/*.rs", "lib/a.rs", true),
        ("{src,lib}/*.rs", "test/*.rs", false),
        ("{a/b,c}/d", "a/*/d", true),
        ("a{,/**}/z", "a/b/z", true),
        ("*a*b*c*", "*c*b*a*", true),
        ("a*", "*b", true),
        ("a**b", "a/b", false),
        ("***", "a/b", false),
        ("?", "??", true), // ß is ss
        ("[a-z]", "[a-z][a-z]", false),
        ("app/\\[id\\]/*", "app/[[]id]/page.tsx", true),
        ("@types/*", "@types/x", true),
        ("a#b*", "a#b", true),
        ("[]]", "]", true),
        ("[a-]", "-", true),
        ("[\\]x]", "]", true),
    ] {
        check_overlap(&glob(a), &glob(b), expected);
    }
}

#[test]
fn literals_are_never_globs() {
    let page = path("app/[id]/page.tsx");
    check_overlap(&page, &path("app/i/page.tsx"), false);
    check_overlap(&page, &glob("app/*/page.tsx"), true);
    check_overlap(&page, &glob("app/[id]/page.tsx"), false);
    check_overlap(&path("a*"), &path("ab"), false);
    check_overlap(&path("{a,b}"), &path("a"), false);
    check_overlap(&path("src/ab"), &folder("src/a"), false);
    check_overlap(&path("src/a"), &folder("src/a"), true);
    check_overlap(&path("src/a/b"), &folder("src/a"), true);
    check_overlap(&folder("src/a"), &folder("src"), true);
    check_overlap(&folder("src/a"), &folder("src/ab"), false);
    check_overlap(&folder("."), &path("x"), true);
    check_overlap(&folder("src"), &glob("**/*.rs"), true);
    check_overlap(&folder("src/a"), &glob("src/*"), true);
    check_overlap(&folder("src/a/b"), &glob("src/*"), false);
    check_overlap(&folder("src/a"), &glob("src/*/b/?"), true);
    check_overlap(&folder("srcs"), &glob("src/*"), false);
    check_overlap(&folder("."), &glob("?"), true);
}

#[test]
fn refusals_say_what_and_where() {
    let long = "a".repeat(TEXT_BYTES_MAX + 1);
    let deep = "a/".repeat(SEGMENTS_MAX + 1);
    let many = "{a,b}".repeat(9);
    let nested = "{a,".repeat(BRACE_DEPTH_MAX + 1);
    let wide = format!("{}{{a,b}}{{c,d}}{{e,f}}{{g,h}}", "x".repeat(2000));
    let too_long = Error::TooLong { bytes: long.len(), max: TEXT_BYTES_MAX };
    for (text, expected) in [
        ("", Error::Empty),
        (".", Error::Root),
        ("a/..", Error::Root),
        ("/a", Error::Absolute),
        ("{/a,b}", Error::Absolute),
        ("..", Error::Escapes { at: 0 }),
        ("a/../../b", Error::Escapes { at: 5 }),
        ("a/{..,b}/../c", Error::Escapes { at: 9 }),
        ("a/**/../c", Error::ParentOfAny { at: 5 }),
        ("a/.\u{200c}./b", Error::HiddenDots { at: 2 }),
        ("a\0b", Error::Nul { at: 1 }),
        (&long, too_long),
        (&deep, Error::TooManySegments { segments: SEGMENTS_MAX + 2, max: SEGMENTS_MAX }),
        (&many, Error::TooManyAlternatives { alternatives: 512, max: ALTERNATIVES_MAX }),
        (&nested, Error::TooDeep { at: 3 * BRACE_DEPTH_MAX, max: BRACE_DEPTH_MAX }),
        (&wide, Error::TooManyStates { states: 1 + 16 * 2005, max: GLOB_STATES_MAX }),
        ("a\\", Error::EscapesNothing { at: 1 }),
        ("src\\a*", Error::EscapesLetter { at: 3 }),
        ("a[b", Error::UnclosedClass { at: 1 }),
        ("a[]", Error::UnclosedClass { at: 1 }),
        ("a[b-", Error::UnclosedClass { at: 1 }),
        ("a[/]", Error::EmptyClass { at: 1 }),
        ("[b-a]", Error::BackwardRange { at: 2 }),
        ("[[:digit:]]", Error::NamedClass { at: 1 }),
        ("é{a,b", Error::UnclosedBrace { at: 2 }),
        ("a}", Error::UnopenedBrace { at: 1 }),
        ("a{1..3}", Error::SingleBranch { at: 1 }),
        ("{}", Error::SingleBranch { at: 0 }),
    ] {
        assert_eq!(Pattern::glob(text), Err(expected), "{text:?}");
    }
    for text in ["", "/a", "..", "a/../..", "a\0", ".\u{200c}", ".git", &long] {
        assert!(Pattern::literal(text).is_err(), "{text:?}");
        assert!(Pattern::folder(text).is_err(), "{text:?}");
    }
    assert_eq!(Pattern::literal("./"), Err(Error::Root));
}

#[test]
fn s10_the_git_directory_is_never_claimable() {
    for text in [
        ".git",
        ".GIT/config",
        ".git/",
        "./.Git/hooks/x",
        "a/../.git/x",
        ".git ",
        ".git. .",
        "git~1/x",
        "GIT~1",
        ".g\u{200c}it",
        "\u{feff}.git/x",
        ".gıt",
        ".git::$INDEX_ALLOCATION/x",
    ] {
        assert_eq!(Pattern::literal(text), Err(Error::GitDir), "{text:?}");
        assert_eq!(Pattern::folder(text), Err(Error::GitDir), "{text:?}");
        assert_eq!(Pattern::glob(text), Err(Error::GitDir), "{text:?}");
    }
    for text in [".git/*", ".g[i]t/*.x", "{.git,.GIT}/**/x", ".[gG]it/?", ".git/**"] {
        assert_eq!(Pattern::glob(text), Err(Error::GitDir), "{text:?}");
    }
    for text in ["**", ".git*", ".gitignore", "sub/.git/x", "{.git,src}/*", ".github/**"] {
        assert!(Pattern::glob(text).is_ok(), "{text:?}");
    }
}

#[test]
fn prefixes_for_the_index() {
    for (pattern, prefix, reach) in [
        (path("Src/A.rs"), "src/a.rs", Reach::Exact),
        (folder("src/a"), "src/a", Reach::Below),
        (folder("."), "", Reach::Below),
        (glob("src/*/x"), "src", Reach::Below),
        (glob("**/*.rs"), "", Reach::Below),
        (glob("src/a.rs"), "src/a.rs", Reach::Exact),
        (glob("src/a/"), "src/a", Reach::Below),
        (glob("src/{a,b}/x"), "src", Reach::Below),
        (glob("{src/a,src/b}"), "src", Reach::Below),
        (glob("a/{b,b/c}/*"), "a/b", Reach::Below),
    ] {
        assert_eq!(pattern.literal_prefix(), prefix, "{pattern:?}");
        assert_eq!(pattern.reach(), reach, "{pattern:?}");
        assert_eq!(pattern.is_literal(), reach == Reach::Exact, "{pattern:?}");
    }
}

#[test]
fn cover_is_never_claimed_in_vain() {
    for (a, b, expected) in [
        ("src/", "src/a/*.rs", true),
        ("src/", "src", true),
        ("src", "src/", false),
        ("src/*.rs", "src/a.rs", true),
        ("src/*.rs", "src/a*.rs", true),
        ("src/a*.rs", "src/*.rs", false),
        ("**/*.rs", "src/**/*.rs", true),
        ("**/*.rs", "src/", false),
        ("**", "*", true),
        ("*/**", "src/x/", true),
        ("[a-f]", "[b-c]", true),
        ("[b-c]", "[a-f]", false),
        ("?", "[a-z]", true),
        ("{a,b}", "{b,a}", true),
        ("{a,b,c}", "{b,a}", true),
        ("a", "[ab]", false),
    ] {
        assert_eq!(covers(&glob(a), &glob(b)), expected, "{a:?} over {b:?}");
    }
}

#[test]
fn stored_as_one_tagged_text() {
    for (pattern, stored, shown) in [
        (path("./Src/A.rs"), r#"{"path":"Src/A.rs"}"#, "Src/A.rs"),
        (path("app/[id]/x"), r#"{"path":"app/[id]/x"}"#, "app/[id]/x"),
        (folder("src//"), r#"{"folder":"src"}"#, "src/"),
        (folder("."), r#"{"folder":"."}"#, "./"),
        (glob("Src/*.rs"), r#"{"glob":"Src/*.rs"}"#, "Src/*.rs"),
        (glob("Src/\\[a\\].rs"), r#"{"path":"Src/[a].rs"}"#, "Src/[a].rs"),
        (glob("Src/**"), r#"{"folder":"Src"}"#, "Src/"),
        (glob("**"), r#"{"folder":"."}"#, "./"),
    ] {
        assert_eq!(serde_json::to_string(&pattern).unwrap(), stored);
        let read: Pattern = serde_json::from_str(stored).unwrap();
        assert_eq!((&read, read.text()), (&pattern, pattern.text()));
        assert_eq!(pattern.to_string(), shown);
    }
    assert!(serde_json::from_str::<Pattern>(r#"{"glob":"["}"#).is_err());
    let schema = serde_json::to_string(&schemars::schema_for!(Pattern)).unwrap();
    assert!(schema.contains("\"folder\""), "{schema}");
}

#[test]
fn hostile_patterns_stay_polynomial() {
    let stars = format!("{}b", "a*".repeat(500));
    check_overlap(&glob(&stars), &glob(&format!("{}c", "a*".repeat(500))), false);
    check_overlap(&glob(&stars), &glob(&"*a".repeat(500)), false);
    assert!(!glob(&stars).matches(&"a".repeat(4000)));
    assert!(!covers(&glob(&stars), &glob(&"*a".repeat(500))));
    check_overlap(&glob(&"**/a/".repeat(100)), &glob(&"**/b/".repeat(100)), true);
}

#[test]
fn s2_over_the_cap_counts_as_overlap() {
    let (a, b) = (glob(&format!("{}a", "?".repeat(900))), glob(&format!("{}b", "?".repeat(900))));
    assert!(overlaps(&a, &b));
    assert_eq!(witness(&a, &b), None);
    assert!(!overlaps(
        &glob(&format!("{}a", "?".repeat(60))),
        &glob(&format!("{}b", "?".repeat(60)))
    ));
}
