//! What each built-in role may, what is of which kind, and which role is narrower.
//!
//! Tables: a role that changes its meaning changes a row here.

use super::giving::is_narrower;
use super::writing::Writes;
use super::*;

fn session() -> SessionId {
    SessionId("s1".to_owned())
}

fn resource(text: &str) -> Resource {
    Resource::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn writes(rules: &Rules, role: &str, path: &str) -> bool {
    judge(rules, role, &session(), Deed::Write(&resource(path))).is_ok()
}

fn part(text: &str) -> Part {
    Part::try_from(text.to_owned()).unwrap()
}

#[test]
fn the_usual_paths_are_all_patterns() {
    for kind in [Kind::Tests, Kind::Docs] {
        assert!(builtin::paths(kind).len() > 5);
    }
    let count = builtin::paths(Kind::Tests).len() + builtin::paths(Kind::Docs).len();
    assert_eq!(count, 24, "one of them cannot be read");
}

#[test]
fn each_built_in_role_writes_its_part() {
    let rules = Rules::default();
    let (source, test, doc) = ("src/a.rs", "crates/x/tests/a.rs", "docs/guide/a.md");
    let mine = ".baton/scratch/s1/try.py";
    for (role, expected) in [
        ("orchestrator", [false, false, true, true]),
        ("code", [true, false, true, true]),
        ("test", [false, true, true, true]),
        ("debug", [false, true, true, true]),
        ("verify", [false; 4]),
        ("review", [false; 4]),
        ("explore", [false; 4]),
        ("docs", [false, false, true, false]),
        ("scratch", [false, false, false, true]),
        ("nobody-defined-it", [true; 4]),
    ] {
        let found = [source, test, doc, mine].map(|path| writes(&rules, role, path));
        assert_eq!(found, expected, "{role}");
    }
    assert!(!writes(&rules, "scratch", ".baton/scratch/s2/try.py"), "another's folder");
    assert!(writes(&rules, "verify", "@gpu"), "roles are about files");
}

#[test]
fn what_is_a_test_in_the_usual_languages() {
    let rules = Rules::default();
    for path in [
        "tests/a.rs",
        "src/parse_test.go",
        "app/test_models.py",
        "web/button.test.tsx",
        "web/button.spec.ts",
        "spec/user_spec.rb",
        "a/src/test/java/AppTest.java",
        "lib/__tests__/x.js",
        "tests/README.md",
        "pkg/testdata/x.json",
    ] {
        assert!(!writes(&rules, "code", path), "{path}");
        assert!(writes(&rules, "test", path), "{path}");
    }
    for path in ["src/test.rs", "src/latest.rs", "src/contest/a.rs", "Cargo.toml", "Makefile"] {
        assert!(writes(&rules, "code", path) && !writes(&rules, "test", path), "{path}");
    }
}

#[test]
fn a_pattern_is_allowed_only_as_a_whole() {
    let rules = Rules::default();
    assert!(!writes(&rules, "code", "src/**"), "tests may be in it");
    // `docs/parse_test.md` would be a test, and a test is a test wherever it lies.
    assert!(!writes(&rules, "code", "docs/*.md") && !writes(&rules, "docs", "docs/*.md"));
    assert!(writes(&rules, "code", "docs/guide.md"));
    assert!(!writes(&rules, "test", "src/**"));
    assert!(writes(&rules, "test", "tests/**"));
    assert!(writes(&rules, "docs", "docs/guide.md"));
    assert!(!writes(&rules, "docs", "**"));
    assert!(!writes(&rules, "scratch", ".baton/scratch/"), "others' folders are in it");
    let holds = |role, path| judge(&rules, role, &session(), Deed::Hold(&resource(path))).is_ok();
    for (role, path, expected) in [
        ("code", "src/", true),
        ("code", "tests/", false),
        ("code", "src/**/*.rs", false),
        ("test", "src/", false),
        ("test", "tests/", true),
        ("docs", "docs/", true),
        ("verify", "docs/", false),
        ("scratch", ".baton/scratch/s1/", true),
        ("scratch", ".baton/scratch/", false),
    ] {
        assert_eq!(holds(role, path), expected, "{role} {path}");
    }
}

#[test]
fn the_policy_says_what_is_what_and_makes_roles() {
    let kinds = [(Kind::Tests, vec![resource("checks/")]), (Kind::Source, vec![resource("lib/")])];
    let builder = Role {
        write: Some(vec![part("kind:source"), part("build/**")]),
        deny: vec![part("lib/secret/")],
        commit: false,
        ..Role::default()
    };
    let named = [("builder".to_owned(), builder)].into();
    let rules = Rules { kinds: kinds.into(), named };
    assert!(writes(&rules, "builder", "lib/a.c") && writes(&rules, "builder", "build/x/y"));
    assert!(!writes(&rules, "builder", "lib/secret/key.c") && !writes(&rules, "builder", "a.c"));
    assert!(!writes(&rules, "code", "checks/a.c") && writes(&rules, "code", "tests/a.c"));
    // What is neither source nor test here is free for those who may not write source.
    assert!(writes(&rules, "test", "Makefile") && !writes(&rules, "test", "lib/a.c"));
    let no = judge(&rules, "builder", &session(), Deed::Commit).unwrap_err();
    assert_eq!(no.to_string(), "role builder may not commit");
    assert_eq!(no.may, "writes source, build/ but lib/secret/");
    assert!(rules.all().len() == NAMES.len() + 1);
}

#[test]
fn deeds_and_tools_follow_the_role() {
    let rules = Rules::default();
    let may = |role: &str, deed| judge(&rules, role, &session(), deed).is_ok();
    for (role, commit, land, deploy, shell) in [
        ("orchestrator", true, true, true, true),
        ("code", true, true, false, true),
        ("debug", true, false, false, true),
        ("verify", false, false, false, true),
        ("explore", false, false, false, true),
        ("scratch", false, false, false, true),
    ] {
        let found = [
            may(role, Deed::Commit),
            may(role, Deed::Land),
            may(role, Deed::Deploy),
            may(role, Deed::Use(Tool::Shell)),
        ];
        assert_eq!(found, [commit, land, deploy, shell], "{role}");
    }
}

#[test]
fn a_role_is_narrower_only_where_it_takes_nothing_back() {
    let rules = Rules::default();
    let role = |name: &str| rules.role(name).unwrap();
    for (new, old, expected) in [
        ("verify", "code", true),
        ("explore", "verify", true),
        ("explore", "orchestrator", true),
        ("docs", "code", true),
        ("scratch", "code", true),
        ("debug", "test", true),
        ("verify", "verify", true),
        ("code", "verify", false),
        ("verify", "explore", true),
        ("code", "test", false),
        ("test", "code", false),
        ("test", "debug", false),
        ("docs", "scratch", false),
        ("orchestrator", "code", false),
    ] {
        assert_eq!(is_narrower(&rules, &role(new), &role(old)), expected, "{new} in {old}");
    }
    let all = Role::default();
    assert!(NAMES.iter().all(|name| is_narrower(&rules, &role(name), &all)));
    assert!(NAMES.iter().all(|name| !is_narrower(&rules, &all, &role(name))));
    let paths = |write: &[&str], deny: &[&str]| Role {
        write: Some(write.iter().copied().map(part).collect()),
        deny: deny.iter().copied().map(part).collect(),
        ..Role::default()
    };
    let (wide, narrow) = (paths(&["src/", "kind:docs"], &["src/x/"]), paths(&["src/a/"], &[]));
    assert!(is_narrower(&rules, &narrow, &wide));
    assert!(!is_narrower(&rules, &paths(&["src/x/y"], &[]), &wide), "what was denied stays so");
    assert!(!is_narrower(&rules, &paths(&["src/"], &[]), &wide));
    assert!(is_narrower(&rules, &paths(&["src/"], &["src/x/"]), &wide));
    assert!(is_narrower(&rules, &paths(&["docs/a.md"], &[]), &wide));
    assert!(!is_narrower(&rules, &wide, &narrow));
}

#[test]
fn a_sandbox_is_told_what_the_rule_allows() {
    let rules = Rules::default();
    for role in NAMES {
        let writes = Writes::of(&rules, role, &session()).unwrap();
        for path in ["src/a.rs", "src/a_test.rs", "tests/a.rs", "docs/a.md", "a.md"] {
            let path = resource(path);
            let allowed = judge(&rules, role, &session(), Deed::Write(&path)).is_ok();
            assert_eq!(writes.may(&path), allowed, "{role} {path}");
        }
    }
    let of = |role: &str| Writes::of(&rules, role, &session());
    assert!(of("nobody-defined-it").is_none());
    assert!(of("verify").is_some_and(|role| role.is_nothing() && !role.has_the_rest()));
    assert!(of("scratch").is_some_and(|role| role.is_own_folder() && !role.is_nothing()));
    let test = of("test").unwrap();
    assert!(test.has_the_rest());
    let kinds = ["src/a.rs", "src/a_test.rs", "docs/a", ".baton/scratch/s1/x"]
        .map(|path| test.kind_of(&resource(path)));
    assert_eq!(kinds, [Some(Kind::Source), Some(Kind::Tests), Some(Kind::Docs), None]);
}

#[test]
fn parts_are_read_as_they_are_written() {
    for text in ["kind:source", "kind:scratch", "src/", "a/**/b.rs"] {
        assert_eq!(part(text).to_string(), text);
    }
    for wrong in ["kind:sauce", "@gpu", "../x", "a["] {
        assert!(Part::try_from(wrong.to_owned()).is_err(), "{wrong}");
    }
}
