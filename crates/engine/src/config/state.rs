//! `[[state]]` in `baton.toml`: how keys of the shared state may change.
//!
//! Owns reading those entries and saying what is wrong with one, with its line. What a rule does
//! is in `baton_core::state::rules`.

use baton_core::key::KeyPattern;
use baton_core::state::rules::{Kind, Owner, Rule};
use serde::Deserialize;
use toml::Spanned;

use super::Source;
use crate::failure::Failure;

pub(super) const RULES_MAX: usize = 200;
const KEYS_MAX: usize = 100;
const STAGES_MAX: usize = 100;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateEntry {
    keys: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    rule: Option<Spanned<String>>,
    #[serde(default)]
    stages: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    owner: Option<Spanned<String>>,
}

impl Source<'_> {
    pub(super) fn state(&self, entries: &[StateEntry]) -> Result<Vec<Rule>, Failure> {
        if entries.len() > RULES_MAX {
            return Err(self.wrong(None, format!("more than {RULES_MAX} [[state]] rules")));
        }
        entries.iter().map(|entry| self.state_rule(entry)).collect()
    }

    fn state_rule(&self, entry: &StateEntry) -> Result<Rule, Failure> {
        let at = Some(entry.keys.span().start);
        match entry.keys.get_ref().len() {
            0 => return Err(self.wrong(at, "a [[state]] rule needs at least one key".to_owned())),
            1..=KEYS_MAX => {}
            _ => return Err(self.wrong(at, format!("more than {KEYS_MAX} keys in one rule"))),
        }
        let keys = entry.keys.get_ref().iter().map(|typed| {
            let text = typed.get_ref();
            text.parse::<KeyPattern>().map_err(|error| {
                self.wrong(Some(typed.span().start), format!("{text:?} is not a key: {error}"))
            })
        });
        let keys: Vec<KeyPattern> = keys.collect::<Result<_, _>>()?;
        let rule = match &entry.rule {
            None => Kind::Replace,
            Some(typed) => self.state_kind(typed)?,
        };
        let owner = match &entry.owner {
            None => None,
            Some(typed) => {
                let owner = typed.get_ref().parse::<Owner>();
                let at = Some(typed.span().start);
                Some(owner.map_err(|error| self.wrong(at, error.to_string()))?)
            }
        };
        if entry.rule.is_none() && entry.owner.is_none() {
            let detail = "a [[state]] rule needs rule or owner, or both".to_owned();
            return Err(self.wrong(at, detail));
        }
        Ok(Rule { keys, rule, stages: self.stages(entry, rule)?, owner })
    }

    fn state_kind(&self, typed: &Spanned<String>) -> Result<Kind, Failure> {
        let kinds =
            [Kind::Replace, Kind::Append, Kind::Union, Kind::Max, Kind::Once, Kind::Forward];
        let text = typed.get_ref();
        kinds.into_iter().find(|kind| kind.to_string() == *text).ok_or_else(|| {
            let known = kinds.map(|kind| kind.to_string()).join(", ");
            let detail = format!("there is no rule `{text}`; there are `{known}`");
            self.wrong(Some(typed.span().start), detail)
        })
    }

    fn stages(&self, entry: &StateEntry, rule: Kind) -> Result<Vec<String>, Failure> {
        let keys_at = Some(entry.keys.span().start);
        let Some(stages) = &entry.stages else {
            return match rule {
                Kind::Forward => Err(self.wrong(
                    keys_at,
                    "forward needs its stages, for example stages = [\"planned\", \"done\"]"
                        .to_owned(),
                )),
                _ => Ok(Vec::new()),
            };
        };
        let at = Some(stages.span().start);
        let stages = stages.get_ref();
        let mut known = stages.clone();
        known.sort_unstable();
        known.dedup();
        let wrong = match stages.len() {
            _ if rule != Kind::Forward => "only the rule forward has stages",
            0 | 1 => "forward needs at least two stages",
            count if count > STAGES_MAX => "more than 100 stages",
            count if count != known.len() => "a stage is named twice",
            _ => return Ok(stages.clone()),
        };
        Err(self.wrong(at, wrong.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use baton_core::time::Moment;

    use super::*;
    use crate::config::compile;

    fn complaint(text: &str) -> String {
        match compile(Path::new("baton.toml"), text, Moment::default()) {
            Err(Failure::Config { line: Some(line), detail, .. }) => format!("{line}: {detail}"),
            Err(Failure::Config { detail, .. }) => detail,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn rules_are_read_and_mistakes_have_a_line() {
        let text = "[[state]]\nkeys = [\"build/*\", \"deploy/**\"]\nrule = \"forward\"\n\
                    stages = [\"a\", \"b\"]\nowner = \"role:lead\"\n\
                    [[state]]\nkeys = [\"plan\"]\nowner = \"session\"\n";
        let policy = compile(Path::new("baton.toml"), text, Moment::default()).unwrap();
        assert_eq!(policy.state.len(), 2);
        assert_eq!(policy.state[0].owner, Some(Owner::Role("lead".to_owned())));
        assert_eq!((policy.state[1].rule, policy.state[1].stages.len()), (Kind::Replace, 0));
        let with = |line: &str| complaint(&format!("[[state]]\nkeys = [\"k\"]\n{line}\n"));
        let complaints = [
            complaint("[[state]]\nkeys = []\nrule = \"max\"\n"),
            complaint("[[state]]\nkeys = [\"a b\"]\nrule = \"max\"\n"),
            complaint("[[state]]\nrule = \"max\"\n"),
            with(""),
            with("rule = \"sum\""),
            with("rule = \"forward\""),
            with("rule = \"forward\"\nstages = [\"a\"]"),
            with("rule = \"forward\"\nstages = [\"a\", \"b\", \"a\"]"),
            with("rule = \"max\"\nstages = [\"a\", \"b\"]"),
            with("owner = \"ann\""),
            with("ruel = \"max\""),
        ];
        insta::assert_snapshot!(complaints.join("\n"), @r#"
        2: a [[state]] rule needs at least one key
        2: "a b" is not a key: ' ' is not allowed in it
        1: missing key `keys`
        2: a [[state]] rule needs rule or owner, or both
        3: there is no rule `sum`; there are `replace, append, union, max, once, forward`
        2: forward needs its stages, for example stages = ["planned", "done"]
        4: forward needs at least two stages
        4: a stage is named twice
        4: only the rule forward has stages
        3: "ann" is no owner: write "session" or "role:NAME"
        3: unknown key `ruel`; there are `keys, rule, stages, owner`
        "#);
    }
}
