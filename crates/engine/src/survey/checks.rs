//! Which checks a repository already has, by the files that say how it is tested.
//!
//! Owns the guess: one command a language, run before a branch lands. It is a pure function of the
//! paths and of the few texts that tell whether there is a test to run. A person stands for what is
//! proposed before any of it runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files in the root whose text is looked at.
pub const READ: [&str; 2] = ["package.json", "Makefile"];
/// How much of such a file is read.
pub const READ_BYTES_MAX: u64 = 64 * 1024;

/// A check worth running before anything lands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedCheck {
    pub name: String,
    pub run: Vec<String>,
}

impl ProposedCheck {
    fn new(name: &str, run: &[&str]) -> Self {
        let run = run.iter().map(|word| (*word).to_owned()).collect();
        Self { name: name.to_owned(), run }
    }
}

/// The checks that these paths suggest. `texts` are those of [`READ`] that are there.
pub fn checks(paths: &[String], texts: &[(&str, String)]) -> Vec<ProposedCheck> {
    let has = |name: &str| paths.iter().any(|path| path == name);
    let text = |name: &str| texts.iter().find(|(known, _)| *known == name).map(|(_, text)| text);
    let mut found = Vec::new();
    if has("Cargo.toml") {
        found.push(ProposedCheck::new("cargo", &["cargo", "test", "--quiet"]));
    }
    if text("package.json").is_some_and(|text| has_test_script(text)) {
        let manager = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")];
        let manager = manager.iter().find(|(file, _)| has(file)).map_or("npm", |(_, name)| name);
        found.push(ProposedCheck::new(manager, &[manager, "run", "test"]));
    }
    let python = ["pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini"].iter().any(|it| has(it));
    let is_test = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.starts_with("test_") && name.ends_with(".py") || name.ends_with("_test.py")
    };
    if python && paths.iter().any(is_test) {
        found.push(ProposedCheck::new("pytest", &["python3", "-m", "pytest", "-q"]));
    }
    if has("go.mod") {
        found.push(ProposedCheck::new("go", &["go", "test", "./..."]));
    }
    if has("gradlew") {
        found.push(ProposedCheck::new("gradle", &["./gradlew", "test"]));
    } else if has("pom.xml") {
        found.push(ProposedCheck::new("maven", &["mvn", "-q", "test"]));
    }
    if found.is_empty() {
        let makes = |goal: &&&str| {
            let rule = format!("{goal}:");
            text("Makefile").is_some_and(|text| text.lines().any(|line| line.starts_with(&rule)))
        };
        let goal = ["test", "check"].iter().find(makes);
        found.extend(goal.map(|goal| ProposedCheck::new("make", &["make", goal])));
    }
    found
}

/// A script of its own, not the one that `npm init` writes to say that there is none.
fn has_test_script(text: &str) -> bool {
    let manifest: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let script = manifest["scripts"]["test"].as_str().unwrap_or_default();
    !script.is_empty() && !script.contains("no test specified")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_tested_as_its_files_say() {
        let found = |paths: &[&str], texts: &[(&'static str, &str)]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            let texts: Vec<(&str, String)> =
                texts.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
            let lines = checks(&paths, &texts).into_iter().map(|check| check.run.join(" "));
            lines.collect::<Vec<_>>().join("; ")
        };
        let script = r#"{"scripts": {"test": "vitest run"}}"#;
        let none = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        for (paths, texts, expected) in [
            (&["Cargo.toml", "Makefile"][..], &[("Makefile", "test:\n")][..], "cargo test --quiet"),
            (&["package.json"], &[("package.json", script)], "npm run test"),
            (&["package.json", "yarn.lock"], &[("package.json", script)], "yarn run test"),
            (&["package.json"], &[("package.json", none)], ""),
            (&["package.json"], &[("package.json", "not json")], ""),
            (&["pyproject.toml", "tests/test_a.py"], &[], "python3 -m pytest -q"),
            (&["pyproject.toml", "a.py"], &[], ""),
            (&["go.mod", "Cargo.toml"], &[], "cargo test --quiet; go test ./..."),
            (&["Makefile"], &[("Makefile", "all:\n\ncheck: all\n")], "make check"),
            (&["Makefile"], &[("Makefile", "tested:\n")], ""),
            (&["gradlew", "pom.xml"], &[], "./gradlew test"),
            (&["deep/Cargo.toml"], &[], ""),
        ] {
            assert_eq!(found(paths, texts), expected, "{paths:?}");
        }
    }
}
