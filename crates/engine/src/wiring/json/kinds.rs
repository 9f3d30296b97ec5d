//! Of what kind the values of well-known keys must be.
//!
//! Owns what makes a client drop a whole file of settings: one value of another kind than it knows,
//! and not a word about it; then none of its hooks run. Only keys of which that was seen are here,
//! and a client may know many more. Seen with Claude Code 2.1.325 and Codex 0.166.0.

use serde_json::Value;

/// Which client's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kinds {
    Claude,
    Codex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flag,
    Object,
    List,
    Texts,
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
            Self::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "a number",
            Self::Flag => "true or false",
            Self::Object => "an object",
            Self::List => "a list",
            Self::Texts => "a list of texts",
        }
    }
}

const CLAUDE: [(&[&str], Kind); 14] = [
    (&["model"], Kind::Text),
    (&["apiKeyHelper"], Kind::Text),
    (&["cleanupPeriodDays"], Kind::Number),
    (&["includeCoAuthoredBy"], Kind::Flag),
    (&["disableAllHooks"], Kind::Flag),
    (&["enableAllProjectMcpServers"], Kind::Flag),
    (&["env"], Kind::Object),
    (&["statusLine"], Kind::Object),
    (&["permissions"], Kind::Object),
    (&["permissions", "allow"], Kind::Texts),
    (&["permissions", "ask"], Kind::Texts),
    (&["permissions", "deny"], Kind::Texts),
    (&["permissions", "additionalDirectories"], Kind::Texts),
    (&["permissions", "defaultMode"], Kind::Text),
];
const CODEX: [(&[&str], Kind); 1] = [(&["description"], Kind::Text)];

/// The first value that is of another kind, in words.
pub(super) fn fault(settings: &Value, kinds: Kinds) -> Option<String> {
    let known: &[(&[&str], Kind)] = match kinds {
        Kinds::Claude => &CLAUDE,
        Kinds::Codex => &CODEX,
    };
    let wrong = known.iter().find_map(|(place, kind)| {
        let value = place.iter().try_fold(settings, |value, key| value.get(key))?;
        other(value, *kind, kinds, || place.join("."))
    });
    wrong.or_else(|| fault_of_hooks(settings.get("hooks")?, kinds))
}

/// Codex takes nothing for a value that is not set.
fn other(value: &Value, kind: Kind, kinds: Kinds, name: impl Fn() -> String) -> Option<String> {
    let unset = kinds == Kinds::Codex && value.is_null();
    (!unset && !kind.fits(value)).then(|| format!("`{}` is not {}", name(), kind.name()))
}

fn fault_of_hooks(hooks: &Value, kinds: Kinds) -> Option<String> {
    let Some(events) = hooks.as_object() else {
        return Some("`hooks` is not an object".to_owned());
    };
    events.iter().find_map(|(event, groups)| {
        let name = format!("hooks.{event}");
        let Some(groups) = groups.as_array() else {
            return other(groups, Kind::List, kinds, || name.clone());
        };
        let mut numbered = groups.iter().enumerate();
        numbered.find_map(|(at, group)| fault_of_group(group, kinds, &format!("{name}[{at}]")))
    })
}

fn fault_of_group(group: &Value, kinds: Kinds, name: &str) -> Option<String> {
    if !group.is_object() {
        return Some(format!("`{name}` is not an object"));
    }
    let matcher = group.get("matcher");
    let wrong = matcher.and_then(|it| other(it, Kind::Text, kinds, || format!("{name}.matcher")));
    if wrong.is_some() {
        return wrong;
    }
    let hooks = match group.get("hooks") {
        None if kinds == Kinds::Codex => return None,
        hooks => hooks.and_then(Value::as_array),
    };
    let Some(hooks) = hooks else { return Some(format!("`{name}.hooks` is not a list")) };
    let mut numbered = hooks.iter().enumerate();
    numbered.find_map(|(at, hook)| fault_of_hook(hook, kinds, &format!("{name}.hooks[{at}]")))
}

fn fault_of_hook(hook: &Value, kinds: Kinds, name: &str) -> Option<String> {
    if !hook.is_object() {
        return Some(format!("`{name}` is not an object"));
    }
    let is_command = hook.get("type").is_some_and(|kind| kind == "command");
    if is_command && !hook.get("command").is_some_and(Value::is_string) {
        return Some(format!("`{name}.command` is not text"));
    }
    let timeout = hook.get("timeout")?;
    other(timeout, Kind::Number, kinds, || format!("{name}.timeout"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_of_another_kind_is_named() {
        let claude = [
            (r#"{"cleanupPeriodDays":"30"}"#, "`cleanupPeriodDays` is not a number"),
            (r#"{"model":5}"#, "`model` is not text"),
            (r#"{"statusLine":"x"}"#, "`statusLine` is not an object"),
            (r#"{"permissions":{"allow":"Bash"}}"#, "`permissions.allow` is not a list of texts"),
            (r#"{"permissions":{"deny":[1]}}"#, "`permissions.deny` is not a list of texts"),
            (r#"{"includeCoAuthoredBy":"no"}"#, "`includeCoAuthoredBy` is not true or false"),
            (r#"{"hooks":{"PreToolUse":["x"]}}"#, "`hooks.PreToolUse[0]` is not an object"),
            (r#"{"hooks":{"Stop":[{"hooks":"y"}]}}"#, "`hooks.Stop[0].hooks` is not a list"),
            (r#"{"hooks":{"Stop":[{"hooks":[null]}]}}"#, "`hooks.Stop[0].hooks[0]` is not an obj"),
        ];
        let codex = [
            (r#"{"description":5}"#, "`description` is not text"),
            (
                r#"{"hooks":{"PostToolUse":[{"matcher":"Bash","hooks":[{"type":"command"}]}]}}"#,
                "`hooks.PostToolUse[0].hooks[0].command` is not text",
            ),
        ];
        let all = claude.iter().map(|case| (Kinds::Claude, case));
        for (kinds, (text, why)) in all.chain(codex.iter().map(|case| (Kinds::Codex, case))) {
            let said = fault(&serde_json::from_str(text).unwrap(), kinds).unwrap_or_default();
            assert!(said.starts_with(why), "{text}: {said}");
        }
        for text in [
            r#"{"model":"opus","env":{"A":1},"permissions":{"allow":["Bash"]},"other":5}"#,
            r#"{"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"x","timeout":1.5}]}]}}"#,
            r#"{"hooks":{"Stop":[]},"statusLine":{"type":"command"}}"#,
        ] {
            assert_eq!(fault(&serde_json::from_str(text).unwrap(), Kinds::Claude), None, "{text}");
        }
        let unset = r#"{"description":null,"hooks":{"Stop":[{"matcher":null}]}}"#;
        assert_eq!(fault(&serde_json::from_str(unset).unwrap(), Kinds::Codex), None);
    }
}
