//! Every source and test file is part of a crate.
//!
//! The compiler does not miss a file that no `mod` names: its rules do not hold and its tests do
//! not run, silently. This follows the `mod` lines from the roots of each crate, as the compiler
//! does, and finds what was not reached. The one root of a crate's integration tests is
//! `tests/all.rs`, because each further one is a whole binary to link.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{self, Kind, Token};
use super::{Finding, Source};

pub(crate) fn judge(sources: &[Source], findings: &mut Vec<Finding>) {
    let rust: BTreeMap<&str, &Source> = sources
        .iter()
        .filter(|source| source.is_rust() && !source.is_sample())
        .map(|source| (source.path.as_str(), source))
        .collect();
    let crates = sources.iter().filter_map(|source| source.path.strip_suffix("Cargo.toml"));
    for folder in crates {
        judge_crate(folder, sources, &rust, findings);
    }
}

/// `folder` is empty for a crate at the root, or ends with `/`.
fn judge_crate(
    folder: &str,
    sources: &[Source],
    rust: &BTreeMap<&str, &Source>,
    findings: &mut Vec<Finding>,
) {
    let (source, tests) = (format!("{folder}src/"), format!("{folder}tests/"));
    let mut reached = BTreeSet::new();
    for root in ["src/lib.rs", "src/main.rs", "tests/all.rs"] {
        follow(&format!("{folder}{root}"), true, rust, &mut reached);
    }
    let programs = format!("{folder}src/bin/");
    for path in rust.keys().filter(|path| path.starts_with(&programs)) {
        follow(path, true, rust, &mut reached);
    }
    let mut found = |path: &str, what: &str, why: &'static str| {
        findings.push(Finding { path: path.to_owned(), line: 1, what: what.to_owned(), why });
    };
    let unreached = rust.keys().filter(|path| !reached.contains(**path));
    for path in unreached {
        if path.starts_with(&source) {
            found(path, "no `mod` names this file", "the compiler never sees it");
        } else if path.starts_with(&tests) {
            let what = "not reached from tests/all.rs";
            found(path, what, "its tests never run, or cost a binary of their own");
        }
    }
    let beside = rust.keys().filter_map(|path| path.strip_prefix(&tests[..]));
    let several = beside.filter(|name| !name.contains('/') && *name != "all.rs").count() > 0;
    let manifest = format!("{folder}Cargo.toml");
    let told = |source: &&Source| source.path == manifest;
    let closed = |source: &Source| source.text.lines().any(|line| line == "autotests = false");
    if several && !sources.iter().find(told).is_some_and(closed) {
        let what = "files beside tests/all.rs, but no `autotests = false`";
        found(&manifest, what, "cargo would build each of them again, as a binary of its own");
    }
}

/// Notes this file and all it names. The root of a crate, and a `mod.rs`, name their neighbours;
/// any other file names files in the folder of its own name.
fn follow<'a>(
    path: &str,
    root: bool,
    rust: &BTreeMap<&'a str, &'a Source>,
    reached: &mut BTreeSet<&'a str>,
) {
    let Some((path, source)) = rust.get_key_value(path) else { return };
    if !reached.insert(path) {
        return;
    }
    let folder = path.rfind('/').map_or("", |at| &path[..=at]);
    let below = match root || source.name() == "mod.rs" {
        true => folder.to_owned(),
        false => format!("{}/", path.strip_suffix(".rs").unwrap_or(path)),
    };
    let tokens = lexer::tokens(&source.text);
    for named in named(&tokens) {
        match named {
            Named::Module(name) => {
                follow(&format!("{below}{name}.rs"), false, rust, reached);
                follow(&format!("{below}{name}/mod.rs"), false, rust, reached);
            }
            Named::Path(file) => follow(&join(folder, file), false, rust, reached),
        }
    }
}

enum Named<'a> {
    /// `mod a;`, or `a/b` for `mod a { mod b; }`.
    Module(String),
    /// `#[path = "…"] mod a;`
    Path(&'a str),
}

fn named<'a>(tokens: &[Token<'a>]) -> Vec<Named<'a>> {
    let code: Vec<Token<'a>> =
        tokens.iter().filter(|token| token.kind != Kind::Comment).copied().collect();
    let mut found = Vec::new();
    // Modules written in place that we are inside of, with the depth of braces around each.
    let mut inside: Vec<(&str, usize)> = Vec::new();
    let (mut depth, mut path) = (0_usize, None);
    for (at, token) in code.iter().enumerate() {
        match (token.text, code.get(at + 1), code.get(at + 2)) {
            ("path", Some(equals), Some(file)) if equals.is_mark('=') => {
                path = (file.kind == Kind::Literal).then(|| file.text.trim_matches('"'));
            }
            ("mod", Some(name), Some(end)) if token.kind == Kind::Word && end.is_mark(';') => {
                let outer: String = inside.iter().map(|(name, _)| format!("{name}/")).collect();
                found.push(match path.take() {
                    Some(file) => Named::Path(file),
                    None => Named::Module(format!("{outer}{}", name.text)),
                });
            }
            ("mod", Some(name), Some(end)) if token.kind == Kind::Word && end.is_mark('{') => {
                inside.push((name.text, depth));
                path = None;
            }
            ("{", ..) => depth += 1,
            ("}", ..) => {
                depth = depth.saturating_sub(1);
                inside.pop_if(|(_, around)| *around == depth);
            }
            _ => {}
        }
    }
    found
}

/// `a/b/` and `../c.rs` is `a/c.rs`.
fn join(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(file.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn judged(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| samples::source(path, text)).collect();
        let mut findings = Vec::new();
        judge(&sources, &mut findings);
        samples::shown(&findings, true)
    }

    #[test]
    fn a_source_that_no_mod_names_is_found() {
        let files = [
            ("x/Cargo.toml", ""),
            (
                "x/src/lib.rs",
                "pub mod a; // mod lost;\n#[cfg(test)] mod tests { mod deep; }\nmod after;",
            ),
            ("x/src/a.rs", "mod b; fn f() { \"mod lost;\"; }"),
            ("x/src/a/b.rs", "#[path = \"../odd.rs\"] mod c;"),
            ("x/src/odd.rs", ""),
            ("x/src/after.rs", ""),
            ("x/src/tests/deep.rs", ""),
            ("x/src/main.rs", "mod old;"),
            ("x/src/old/mod.rs", "mod neighbour;"),
            ("x/src/old/neighbour.rs", ""),
            ("x/src/bin/tool.rs", ""),
            ("x/src/lost.rs", "mod lost;"),
        ];
        let expected = ["x/src/lost.rs:1 no `mod` names this file"];
        assert_eq!(judged(&files), expected);
    }

    #[test]
    fn a_test_file_that_nobody_runs_is_found() {
        let told = "autotests = false\n";
        let lost = "x/tests/lost.rs:1 not reached from tests/all.rs";
        let all = ("x/tests/all.rs", "mod claims;");
        let claims = ("x/tests/claims.rs", "mod deep;");
        let deep = ("x/tests/claims/deep.rs", "");
        let fixture = ("x/tests/fixtures/bad.rs", "");
        let good = [("x/Cargo.toml", told), all, claims, deep, fixture];
        assert_eq!(judged(&good), [""; 0]);
        let bad = [("x/Cargo.toml", told), all, claims, deep, ("x/tests/lost.rs", "")];
        assert_eq!(judged(&bad), [lost]);
        assert_eq!(judged(&[("x/Cargo.toml", told), ("x/tests/lost.rs", "")]), [lost]);
        let open = [("x/Cargo.toml", ""), all, claims, deep];
        let expected = ["x/Cargo.toml:1 files beside tests/all.rs, but no `autotests = false`"];
        assert_eq!(judged(&open), expected);
    }
}
