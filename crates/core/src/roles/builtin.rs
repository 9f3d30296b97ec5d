//! The roles that every project has, and which paths are tests and documentation in the usual
//! languages.
//!
//! Owns these tables and nothing else. A project that names things otherwise says so in `[roles]`.

use super::{Kind, Part, Role, Tool};
use crate::resource::Resource;

pub const NAMES: [&str; 9] =
    ["orchestrator", "code", "test", "debug", "verify", "review", "explore", "docs", "scratch"];

const TESTS: &[&str] = &[
    "**/tests/",
    "**/test/",
    "**/__tests__/",
    "**/spec/",
    "**/e2e/",
    "**/testdata/",
    "**/*_test.*",
    "**/*_tests.*",
    "**/test_*.*",
    "**/*.test.*",
    "**/*.spec.*",
    "**/*_spec.rb",
    "**/*Test.{java,kt,cs,php,swift}",
    "**/*Tests.{java,kt,cs,php,swift}",
    "**/conftest.py",
];

const DOCS: &[&str] = &[
    "docs/",
    "doc/",
    "**/*.md",
    "**/*.mdx",
    "**/*.rst",
    "**/*.adoc",
    "LICENSE*",
    "NOTICE*",
    "AUTHORS*",
];

/// The usual paths of a kind. Source is the rest, and has none.
pub(super) fn paths(kind: Kind) -> Vec<Resource> {
    let texts = match kind {
        Kind::Source => &[][..],
        Kind::Tests => TESTS,
        Kind::Docs => DOCS,
    };
    texts.iter().filter_map(|text| Resource::parse(text).ok()).collect()
}

/// What a built-in role may.
pub(super) fn role(name: &str) -> Option<Role> {
    let about = |text: &str| text.to_owned();
    let without = |gone: &[Tool]| {
        Tool::ALL.into_iter().filter(|tool| !gone.contains(tool)).collect::<Vec<_>>()
    };
    // Only who divides work starts others: what they may is no more than this one's then.
    let no_deploy = || Role { deploy: false, tools: without(&[Tool::Agents]), ..Role::default() };
    let readers = |gone: &[Tool]| Role {
        write: Some(Vec::new()),
        tools: without(gone),
        commit: false,
        land: false,
        deploy: false,
        ..Role::default()
    };
    let kind = Part::Kind;
    Some(match name {
        "orchestrator" => Role {
            about: about("plans, divides and lands work, and writes no source"),
            deny: vec![kind(Kind::Source), kind(Kind::Tests)],
            ..Role::default()
        },
        "code" => Role {
            about: about("writes source, and no tests"),
            deny: vec![kind(Kind::Tests)],
            ..no_deploy()
        },
        "test" => Role {
            about: about("writes tests, and no source"),
            deny: vec![kind(Kind::Source)],
            ..no_deploy()
        },
        "debug" => Role {
            about: about("finds causes; reads source and writes none"),
            deny: vec![kind(Kind::Source)],
            land: false,
            ..no_deploy()
        },
        "verify" => Role {
            about: about("runs what there is and reports; writes nothing"),
            ..readers(&[Tool::Edit, Tool::Agents])
        },
        "review" => Role {
            about: about("reads changes and judges them; writes nothing"),
            ..readers(&[Tool::Edit, Tool::Agents])
        },
        "explore" => Role {
            about: about("reads and searches; writes nothing, through the shell neither"),
            // Codex reads with its shell: without one it would see nothing.
            ..readers(&[Tool::Edit, Tool::Agents])
        },
        "docs" => Role {
            about: about("writes documentation, and nothing else"),
            write: Some(vec![kind(Kind::Docs)]),
            ..no_deploy()
        },
        "scratch" => Role {
            about: about("tries things in a folder of its own and hands results back"),
            write: Some(vec![Part::Scratch]),
            commit: false,
            land: false,
            ..no_deploy()
        },
        _ => return None,
    })
}
