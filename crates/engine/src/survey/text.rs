//! The text of a fresh `baton.toml`: for people first, who will change it.
//!
//! Owns its comments and their order. Invariant: what is written here compiles to exactly the zones
//! and checks that were proposed.

use std::fmt::Write as _;

use baton_core::zones::Rule;

use super::{Proposed, ProposedCheck};

const HEAD: &str = r#"# How agents and people share this repository.
#
# A zone is some paths with a policy. The last zone that matches a path wins; a path in no zone
# is "auto". The policies:
#
#   off      nothing is judged
#   auto     the first edit claims the file; others are held off until it is let go
#   require  claim first (baton claim PATH), then edit
#   serial   one holder for the whole zone, from the first edit until the change has landed
#   append   many may add at the end; changing existing lines is refused
#   human    a person approves
#
# Paths: "src/a.rs" is a file, "src/" everything below, "**/*.sql" a pattern.
# A change of this file counts once a person has approved it: baton policy approve
"#;

const TAIL: &str = r#"
# Things that are not files can be claimed too: baton claim @deploy/prod
# One that several may hold at once has a capacity, taken in amounts: baton claim @gpu=1
#
# [resource."@gpu"]
# capacity = 2
"#;

const QUEUE: &str = r#"
# What must pass before a branch lands (baton land). Nothing of it runs before a person has seen
# it: baton trust
[queue]
"#;

/// The file for these zones and checks.
pub fn baton_toml(zones: &[Proposed], checks: &[ProposedCheck]) -> String {
    let mut text = HEAD.to_owned();
    for zone in zones {
        let mut reason = zone.reason.clone();
        if let Some(first) = reason.get(..1) {
            reason = first.to_uppercase() + &reason[1..];
        }
        let _ = write!(text, "\n# {reason}.\n[[zone]]\npaths = ");
        let paths: Vec<String> = zone.paths.iter().map(|path| quoted(path)).collect();
        let line = paths.join(", ");
        if line.chars().count() <= 80 {
            let _ = writeln!(text, "[{line}]");
        } else {
            let _ = writeln!(text, "[\n    {},\n]", paths.join(",\n    "));
        }
        let _ = writeln!(text, "policy = \"{}\"", word(zone.policy));
    }
    if !checks.is_empty() {
        text.push_str(QUEUE);
    }
    for check in checks {
        let run: Vec<String> = check.run.iter().map(|word| quoted(word)).collect();
        let (name, run) = (quoted(&check.name), run.join(", "));
        let _ = writeln!(text, "\n[[queue.check]]\nname = {name}\nrun = [{run}]");
        let _ = writeln!(text, "timeout = \"10m\"");
    }
    text.push_str(TAIL);
    text
}

/// The policy as it is written.
fn word(rule: Rule) -> &'static str {
    match rule {
        Rule::Off => "off",
        Rule::Auto => "auto",
        Rule::Append => "append",
        Rule::Require => "require",
        Rule::Serial => "serial",
        Rule::Human => "human",
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            _ if character.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(character));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
