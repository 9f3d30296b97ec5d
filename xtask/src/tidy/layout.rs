//! Rules on names and places of files.
//!
//! A name says what is inside; a decision has a number; what changed for people is written down.

use super::{Finding, Source};

/// Words that say nothing about what is inside, alone or at the end of a name. `common` says
/// nothing only alone: git has a common folder.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "manager"];
const DESIGN: &str = "docs/design/";
/// An index, and a page that a program rewrites: no decisions.
const DESIGN_UNNUMBERED: &[&str] = &["README.md", "performance.md"];

pub(crate) fn judge(source: &Source, findings: &mut Vec<Finding>) {
    let mut found = |what: String, why: &'static str| {
        findings.push(Finding { path: source.path.clone(), line: 1, what, why });
    };
    if source.is_rust()
        && let Some(name) = empty_name(&source.path)
    {
        let what = format!("the name `{name}` says nothing");
        found(what, "name the noun inside, or everything will end up here");
    }
    if let Some(name) = source.path.strip_prefix(DESIGN)
        && !DESIGN_UNNUMBERED.contains(&name)
        && !is_numbered(name)
    {
        found("not named NNNN-what.md".to_owned(), "decisions are cited by their number");
    }
    let unreleased = |line: &str| line == "## Unreleased" || line == "## [Unreleased]";
    if source.path == "CHANGELOG.md" && !source.text.lines().any(unreleased) {
        found("no section `## Unreleased`".to_owned(), "a change is told when it is made");
    }
}

/// What one file alone does not show.
pub(crate) fn judge_all(sources: &[Source], findings: &mut Vec<Finding>) {
    let numbered = sources.iter().filter_map(|source| {
        let name = source.path.strip_prefix(DESIGN)?;
        is_numbered(name).then(|| (&name[..4], source))
    });
    let mut before: Option<&str> = None;
    for (number, source) in numbered {
        if before == Some(number) {
            findings.push(Finding {
                path: source.path.clone(),
                line: 1,
                what: format!("a second decision with the number {number}"),
                why: "decisions are cited by their number",
            });
        }
        before = Some(number);
    }
}

fn empty_name(path: &str) -> Option<&str> {
    path.split('/').find(|part| {
        let stem = part.strip_suffix(".rs").unwrap_or(part);
        let last = stem.rsplit('_').next().unwrap_or(stem);
        stem == "common" || EMPTY_NAMES.contains(&last)
    })
}

/// `0001-one-idea.md`
fn is_numbered(name: &str) -> bool {
    let Some((number, rest)) = name.split_once('-') else { return false };
    let digits = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    digits && rest.len() > ".md".len() && rest.ends_with(".md") && !rest.contains('/')
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn judged(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        judge(&samples::source(path, text), &mut findings);
        samples::shown(&findings, false)
    }

    #[test]
    fn names_say_what_is_inside() {
        let expected = |name: &str| vec![format!("1 the name `{name}` says nothing")];
        for name in ["utils.rs", "helpers.rs", "common.rs", "manager.rs", "claim_manager.rs"] {
            assert_eq!(judged(&format!("crates/cli/src/{name}"), ""), expected(name));
        }
        assert_eq!(judged("crates/cli/tests/common/mod.rs", ""), expected("common"));
        for fine in ["common_dir.rs", "utility_bill.rs", "claims.rs"] {
            assert_eq!(judged(&format!("crates/cli/src/{fine}"), ""), [""; 0]);
        }
        assert_eq!(judged("docs/guide/common.md", ""), [""; 0]);
    }

    #[test]
    fn decisions_are_numbered_once() {
        for fine in ["0001-one-idea.md", "README.md", "performance.md"] {
            assert_eq!(judged(&format!("docs/design/{fine}"), ""), [""; 0]);
        }
        for bad in ["one-idea.md", "1-one.md", "0001-.md", "0001-a.txt", "00a1-x.md", "x/0001-a.md"]
        {
            assert_eq!(judged(&format!("docs/design/{bad}"), ""), ["1 not named NNNN-what.md"]);
        }
        let names = ["0001-a.md", "0001-b.md", "0002-c.md", "README.md"];
        let sources = names.map(|name| samples::source(&format!("docs/design/{name}"), ""));
        let mut findings = Vec::new();
        judge_all(&sources, &mut findings);
        let expected = ["docs/design/0001-b.md:1 a second decision with the number 0001"];
        assert_eq!(samples::shown(&findings, true), expected);
    }

    #[test]
    fn the_changelog_is_open() {
        assert_eq!(judged("CHANGELOG.md", "# Changelog\n\n## Unreleased\n"), [""; 0]);
        assert_eq!(judged("CHANGELOG.md", "## [Unreleased]\n"), [""; 0]);
        assert_eq!(judged("CHANGELOG.md", "## 0.1.0\n"), ["1 no section `## Unreleased`"]);
    }
}
