//! `[roles]` in `baton.toml`: which paths are source, tests and documentation, and what a session of
//! which role may do.
//!
//! Owns reading the entries and saying what is wrong with them, with the line of the entry. What a
//! role means is in `baton_core::roles`.

use std::collections::BTreeMap;

use baton_core::resource::Resource;
use baton_core::roles::{Kind, PATHS_MAX, Part, ROLES_MAX, Role, Rules, Tool};
use toml::{Spanned, Value};

use super::Source;
use crate::failure::Failure;

const KEYS: &str = "about, write, deny, tools, commit, land, deploy";
const ABOUT_BYTES_MAX: usize = 200;

/// A list is what belongs to a kind, a table is a role: so that `docs` can be either.
pub(super) type RolesEntry = BTreeMap<Spanned<String>, Value>;

impl Source<'_> {
    pub(super) fn roles(&self, entries: &RolesEntry) -> Result<Rules, Failure> {
        let mut rules = Rules::default();
        let mut count = 0;
        for (name, value) in entries {
            let (at, name) = (Some(name.span().start), name.get_ref());
            let read = match value {
                Value::Array(paths) => kind(name, paths).map(|(kind, paths)| {
                    count += paths.len();
                    rules.kinds.insert(kind, paths);
                }),
                Value::Table(table) => role(name, table).map(|role| {
                    count += role.write.iter().flatten().count() + role.deny.len();
                    rules.named.insert(name.clone(), role);
                }),
                _ => Err(format!("{name}: a role is a table, and source, tests, docs are lists")),
            };
            read.map_err(|detail| self.wrong(at, detail))?;
        }
        if rules.named.len() > ROLES_MAX {
            return Err(self.wrong(None, format!("more than {ROLES_MAX} roles")));
        }
        if count > PATHS_MAX {
            return Err(self.wrong(None, format!("more than {PATHS_MAX} paths in all roles")));
        }
        Ok(rules)
    }
}

fn kind(name: &str, paths: &[Value]) -> Result<(Kind, Vec<Resource>), String> {
    let kind = Kind::ALL.into_iter().find(|kind| kind.word() == name);
    let kind = kind.ok_or_else(|| format!("{name}: only source, tests and docs have lists"))?;
    let path = |text: String| match Part::try_from(text.clone())? {
        Part::Paths(path) => Ok(path),
        _ => Err(format!("{text:?} is not a path")),
    };
    Ok((kind, texts(name, paths)?.into_iter().map(path).collect::<Result<_, String>>()?))
}

fn role(name: &str, table: &toml::Table) -> Result<Role, String> {
    let visible = !name.contains(|c: char| c.is_control() || c.is_whitespace());
    if name.is_empty() || name.len() > baton_core::sessions::TEXT_BYTES_MAX || !visible {
        return Err(format!("{name:?} is no name for a role"));
    }
    let mut role = Role::default();
    for (key, value) in table {
        match (key.as_str(), value) {
            ("about", Value::String(text)) if text.len() <= ABOUT_BYTES_MAX => {
                role.about.clone_from(text);
            }
            ("write", Value::Array(list)) => role.write = Some(parts(key, list)?),
            ("deny", Value::Array(list)) => role.deny = parts(key, list)?,
            ("tools", Value::Array(list)) => role.tools = tools(list)?,
            ("commit", Value::Boolean(may)) => role.commit = *may,
            ("land", Value::Boolean(may)) => role.land = *may,
            ("deploy", Value::Boolean(may)) => role.deploy = *may,
            ("about", _) => return Err(format!("about is text of {ABOUT_BYTES_MAX} bytes")),
            ("write" | "deny" | "tools", _) => return Err(format!("{key} is a list of texts")),
            ("commit" | "land" | "deploy", _) => return Err(format!("{key} is true or false")),
            _ => return Err(format!("unknown key `{key}` of role {name}; there are `{KEYS}`")),
        }
    }
    Ok(role)
}

fn texts(key: &str, list: &[Value]) -> Result<Vec<String>, String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts: Option<Vec<String>> = list.iter().map(text).collect();
    texts.ok_or_else(|| format!("{key} is a list of texts"))
}

fn parts(key: &str, list: &[Value]) -> Result<Vec<Part>, String> {
    texts(key, list)?.into_iter().map(Part::try_from).collect()
}

fn tools(list: &[Value]) -> Result<Vec<Tool>, String> {
    let named = |text: String| {
        let found = Tool::ALL.into_iter().find(|tool| tool.word() == text);
        let all = Tool::ALL.map(Tool::word).join(", ");
        found.ok_or_else(|| format!("{text:?} is no tool; there are {all}"))
    };
    texts("tools", list)?.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use baton_core::time::Moment;
    use baton_core::zones::Policy;

    use super::*;
    use crate::config::{compile, meaning};

    fn compiled(text: &str) -> Result<Policy, Failure> {
        compile(Path::new("baton.toml"), text, Moment::default())
    }

    #[test]
    fn kinds_and_roles_are_read_and_mistakes_are_told_with_their_line() {
        let text = "[roles]\ntests = [\"checks/\"]\n\n[roles.builder]\nabout = \"builds\"\n\
                    write = [\"kind:source\", \"build/\"]\ndeny = [\"build/keep/\"]\n\
                    tools = [\"read\", \"shell\"]\ndeploy = false\n";
        let rules = compiled(text).unwrap().roles;
        assert_eq!(rules.kinds[&Kind::Tests].len(), 1);
        let builder = &rules.named["builder"];
        assert!(builder.commit && builder.land && !builder.deploy);
        assert_eq!(builder.tools, [Tool::Read, Tool::Shell]);
        assert_ne!(meaning(&compiled(text).unwrap()), meaning(&compiled("").unwrap()));
        for (wrong, why) in [
            ("tests = [\"@gpu\"]", "is a name, not a path"),
            ("tests = [3]", "list of texts"),
            ("sauces = [\"a\"]", "only source, tests and docs have lists"),
            ("tests = \"a\"", "a role is a table"),
            ("\"a b\" = {}", "no name for a role"),
            ("x = { write = \"a\" }", "write is a list"),
            ("x = { write = [\"kind:sauce\"] }", "there are kind:source"),
            ("x = { tools = [\"saw\"] }", "is no tool; there are read, search"),
            ("x = { commit = 1 }", "commit is true or false"),
            ("x = { wriet = [] }", "unknown key `wriet` of role x"),
        ] {
            match compiled(&format!("# one\n[roles]\n{wrong}\n")) {
                Err(Failure::Config { line: Some(3), detail, .. }) => {
                    assert!(detail.contains(why), "{wrong}: {detail}");
                }
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }
}
