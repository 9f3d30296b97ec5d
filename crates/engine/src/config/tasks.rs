//! `[tasks]` in `baton.toml`: what becomes of tasks whose attempts are used up.
//!
//! Owns reading the entry and saying what is wrong with it, with its line. What it does is in
//! `baton_core::tasks`.

use baton_core::tasks::WORD_BYTES_MAX;
use baton_core::zones::{OnExhausted, TaskRules};
use serde::Deserialize;
use toml::Spanned;

use super::Source;
use crate::failure::Failure;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TasksEntry {
    #[serde(default)]
    on_exhausted: Option<Spanned<String>>,
}

impl Source<'_> {
    pub(super) fn tasks(&self, entry: &TasksEntry) -> Result<TaskRules, Failure> {
        let Some(typed) = &entry.on_exhausted else {
            return Ok(TaskRules::default());
        };
        let text = typed.get_ref();
        let role = text.strip_prefix("role:").filter(|role| {
            let visible = !role.contains(|c: char| c.is_control() || c.is_whitespace());
            !role.is_empty() && role.len() <= WORD_BYTES_MAX && visible
        });
        let on_exhausted = match (text.as_str(), role) {
            ("escalate", _) => OnExhausted::Escalate,
            ("abort", _) => OnExhausted::Abort,
            (_, Some(role)) => OnExhausted::Role(role.to_owned()),
            _ => {
                let detail =
                    format!("{text:?} is not escalate, abort or role:NAME such as role:senior");
                return Err(self.wrong(Some(typed.span().start), detail));
            }
        };
        Ok(TaskRules { on_exhausted })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use baton_core::time::Moment;

    use super::*;
    use crate::config::{compile, meaning};

    #[test]
    fn what_becomes_of_exhausted_tasks_is_read_and_mistakes_are_told() {
        let compiled = |text: &str| compile(Path::new("baton.toml"), text, Moment::default());
        let read = |value: &str| compiled(&format!("[tasks]\non_exhausted = {value:?}\n"));
        for (value, meant) in [
            ("escalate", OnExhausted::Escalate),
            ("abort", OnExhausted::Abort),
            ("role:senior", OnExhausted::Role("senior".to_owned())),
        ] {
            assert_eq!(read(value).unwrap().tasks.on_exhausted, meant, "{value}");
        }
        assert_ne!(meaning(&read("abort").unwrap()), meaning(&compiled("").unwrap()));
        for wrong in ["", "role:", "role:a b", "Abort", "retry"] {
            let refused = read(wrong);
            assert!(matches!(refused, Err(Failure::Config { line: Some(2), .. })), "{refused:?}");
        }
        assert!(compiled("[tasks]\nmax = 3\n").is_err());
    }
}
