//! What stands in files that are no code: dependencies, CSS classes, numbers of migrations.
//!
//! Owns their reading, from a text to names. A file that cannot be read has nothing in it.

use std::collections::BTreeMap;

/// The packages a manifest asks for, with the versions; nothing when it is no manifest.
pub(super) fn dependencies(path: &str, text: &str) -> BTreeMap<String, String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name {
        "Cargo.toml" | "pyproject.toml" => of_toml(text).unwrap_or_default(),
        "package.json" => of_json(text).unwrap_or_default(),
        "go.mod" => of_go(text),
        _ if name.starts_with("requirements") && name.ends_with(".txt") => of_lines(text),
        _ => BTreeMap::new(),
    }
}

pub(super) fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "Cargo.toml" | "pyproject.toml" | "package.json" | "go.mod")
        || name.starts_with("requirements") && name.ends_with(".txt")
}

fn of_toml(text: &str) -> Option<BTreeMap<String, String>> {
    let table: toml::Table = text.parse().ok()?;
    let mut found = BTreeMap::new();
    gather(&table, &mut found, 0);
    let project = table.get("project").and_then(toml::Value::as_table);
    let listed = project.and_then(|project| project.get("dependencies")?.as_array());
    for line in listed.into_iter().flatten().filter_map(toml::Value::as_str) {
        found.extend(requirement(line));
    }
    Some(found)
}

/// Every table of dependencies, wherever it stands.
fn gather(table: &toml::Table, found: &mut BTreeMap<String, String>, depth: usize) {
    for (key, value) in table {
        let Some(inner) = value.as_table().filter(|_| depth < 4) else { continue };
        if !key.ends_with("dependencies") {
            gather(inner, found, depth + 1);
            continue;
        }
        for (package, wanted) in inner {
            let version = match wanted {
                toml::Value::Table(about) => about.get("version").and_then(toml::Value::as_str),
                other => other.as_str(),
            };
            if let Some(version) = version {
                found.insert(package.clone(), version.to_owned());
            }
        }
    }
}

fn of_json(text: &str) -> Option<BTreeMap<String, String>> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let mut found = BTreeMap::new();
    for key in ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"] {
        for (package, version) in value.get(key).and_then(|v| v.as_object()).into_iter().flatten() {
            found.insert(package.clone(), version.as_str()?.to_owned());
        }
    }
    Some(found)
}

fn of_go(text: &str) -> BTreeMap<String, String> {
    let one = |line: &str| {
        let line = line.trim().trim_start_matches("require ");
        let mut words = line.split_whitespace();
        let (module, version) = (words.next()?, words.next()?);
        let is = version.starts_with('v') && module.contains('/');
        is.then(|| (module.to_owned(), version.to_owned()))
    };
    text.lines().filter_map(one).collect()
}

fn of_lines(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(requirement).collect()
}

/// `name[extra]>=1.2 ; marker`.
fn requirement(line: &str) -> Option<(String, String)> {
    let line = line.split(['#', ';']).next()?.trim();
    let end = line.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)))?;
    let (name, rest) = line.split_at(end);
    let version = rest.split(']').next_back()?.trim();
    let is = !name.is_empty() && version.starts_with(['=', '<', '>', '~', '!']);
    is.then(|| (name.to_lowercase().replace('_', "-"), version.to_owned()))
}

pub(super) fn is_style(path: &str) -> bool {
    [".css", ".scss", ".less"].iter().any(|end| path.ends_with(end))
}

/// Every class with its line and all that is said of it.
pub(super) fn classes(text: &str) -> BTreeMap<String, (usize, String)> {
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let (mut depth, mut line, mut selector, mut body) = (0_usize, 1, String::new(), String::new());
    let (mut at, mut in_comment) = (1, false);
    let mut before = ' ';
    for character in text.chars() {
        line += usize::from(character == '\n');
        match (before, character) {
            ('/', '*') => in_comment = true,
            ('*', '/') if in_comment => {
                in_comment = false;
                selector.clear();
                before = ' ';
                continue;
            }
            _ => {}
        }
        before = character;
        if in_comment {
            continue;
        }
        match character {
            '{' => {
                depth += 1;
                if depth == 1 {
                    body.clear();
                    continue;
                }
            }
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    for name in names_in(&selector) {
                        let entry = found.entry(name).or_insert((at, String::new()));
                        entry.1.push_str(&body);
                    }
                    selector.clear();
                    continue;
                }
            }
            _ => {}
        }
        match depth {
            0 => {
                if selector.trim().is_empty() {
                    at = line;
                }
                selector.push(character);
            }
            _ => body.extend((!character.is_whitespace()).then_some(character)),
        }
    }
    found
}

/// The classes a selector is about: `.card`, of `.card, .box:hover`.
fn names_in(selector: &str) -> Vec<String> {
    let one = |part: &str| {
        let rest = part.trim().strip_prefix('.')?;
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let end = rest.find(|c| !plain(c)).unwrap_or(rest.len());
        // Only the class itself: `.a .b` and `.a:hover` say something more of it.
        (end > 0 && end == rest.len()).then(|| format!(".{rest}"))
    };
    selector.split(',').filter_map(one).collect()
}

/// The folder and number of a file such as `db/0007_users.sql`.
pub(super) fn numbered(path: &str) -> Option<(&str, u64)> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (number, digits) = baton_core::numbers::in_name(name)?;
    let marked = name.starts_with(['V', 'v']);
    let rest = name.get(usize::from(marked) + digits..)?;
    let is = (digits >= 3 || marked) && rest.starts_with(['_', '-']);
    is.then_some((folder, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_every_manifest() {
        for (path, text, package, version) in [
            ("Cargo.toml", "[dependencies]\nserde = \"1.0\"\n", "serde", "1.0"),
            ("a/Cargo.toml", "[dev-dependencies]\nx = { version = \"2\" }\n", "x", "2"),
            ("Cargo.toml", "[workspace.dependencies]\ny = \"3\"\n", "y", "3"),
            ("package.json", r#"{"dependencies": {"react": "^18"}}"#, "react", "^18"),
            ("go.mod", "require (\n\tgithub.com/a/b v1.2.3\n)\n", "github.com/a/b", "v1.2.3"),
            ("requirements.txt", "Flask==2.0 # web\n", "flask", "==2.0"),
            ("requirements-dev.txt", "a_b[x]>=1\n", "a-b", ">=1"),
            ("pyproject.toml", "[project]\ndependencies = [\"q~=4\"]\n", "q", "~=4"),
            ("pyproject.toml", "[tool.poetry.dependencies]\nz = \"^5\"\n", "z", "^5"),
        ] {
            let found = dependencies(path, text);
            assert_eq!(found.get(package).map(String::as_str), Some(version), "{path}: {found:?}");
        }
        for (path, text) in [("Cargo.toml", "[dep"), ("package.json", "{"), ("a.rs", "x = 1")] {
            assert!(dependencies(path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn classes_have_a_line_and_a_body() {
        let text = "/* .no {} */\n.card, .box { color: red; }\n\n.card:hover { x: y }\n.box{a:b}\n";
        let found = classes(text);
        assert_eq!(found.keys().collect::<Vec<_>>(), [".box", ".card"]);
        assert_eq!(found[".card"], (2, "color:red;".to_owned()));
        assert_eq!(found[".box"].1, "color:red;a:b");
        assert!(classes("}{{.x").is_empty());
    }

    #[test]
    fn numbers_are_those_of_migrations() {
        for (path, expected) in [
            ("db/0007_users.sql", Some(("db", 7))),
            ("V12__x.sql", Some(("", 12))),
            ("db/7.sql", None),
            ("docs/2-columns.md", None),
            ("db/users_0007.sql", None),
        ] {
            assert_eq!(numbered(path), expected, "{path}");
        }
    }
}
