//! `[deploy.TARGET]` in `baton.toml`: what ships where, and what must hold before.
//!
//! Owns reading those entries and saying what is wrong with one, with its line. What a deploy needs
//! to begin is in `baton_core::deploys`; its commands run only when a person stands for them.

use std::collections::BTreeMap;

use baton_core::deploy::{
    LISTED_MAX, NAME_BYTES_MAX, PLACEHOLDERS, Rules, TARGETS_MAX, TIMEOUT_DEFAULT, TIMEOUT_MAX,
    WORD_BYTES_MAX,
};
use serde::Deserialize;
use toml::Spanned;

use super::Source;
use super::done::Words;
use crate::failure::Failure;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeployEntry {
    run: Spanned<Words>,
    #[serde(default)]
    verify: Option<Spanned<Words>>,
    #[serde(default)]
    commands: Vec<Spanned<String>>,
    #[serde(default)]
    gate: bool,
    #[serde(default)]
    paths: Vec<Spanned<String>>,
    #[serde(default)]
    placeholders: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    branch: Option<Spanned<String>>,
    #[serde(default)]
    remote: Option<Spanned<String>>,
    #[serde(default)]
    timeout: Option<Spanned<String>>,
}

impl Source<'_> {
    pub(super) fn deploys(
        &self,
        entries: &BTreeMap<Spanned<String>, DeployEntry>,
    ) -> Result<BTreeMap<String, Rules>, Failure> {
        if entries.len() > TARGETS_MAX {
            return Err(self.wrong(None, format!("more than {TARGETS_MAX} targets of deploys")));
        }
        let mut all = BTreeMap::new();
        for (typed, entry) in entries {
            let name = typed.get_ref();
            // It becomes part of a named resource, `@deploy/NAME`.
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
            let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
            if !starts || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
                let detail = format!("{name:?} is not a name such as \"prod\": lower-case letters");
                return Err(self.wrong(Some(typed.span().start), detail));
            }
            all.insert(name.clone(), self.deploy(entry)?);
        }
        Ok(all)
    }

    fn deploy(&self, entry: &DeployEntry) -> Result<Rules, Failure> {
        let commands = entry.commands.iter().map(|typed| {
            let words: Vec<String> =
                typed.get_ref().split_whitespace().map(str::to_owned).collect();
            let is = !words.is_empty() && typed.get_ref().len() <= WORD_BYTES_MAX;
            let detail = || format!("{:?} is not a command", typed.get_ref());
            is.then_some(words).ok_or_else(|| self.wrong(Some(typed.span().start), detail()))
        });
        let placeholders = match &entry.placeholders {
            None => PLACEHOLDERS.map(str::to_owned).to_vec(),
            Some(given) => self.words(given)?,
        };
        let paths = entry.paths.iter().map(|typed| self.path(typed));
        let name = |typed: &Option<Spanned<String>>| {
            typed.as_ref().map(|typed| self.target(typed)).transpose()
        };
        let rules = Rules {
            run: self.command(&entry.run)?,
            verify: match &entry.verify {
                Some(verify) => self.command(verify)?,
                None => Vec::new(),
            },
            commands: commands.collect::<Result<_, _>>()?,
            gate: entry.gate,
            paths: paths.collect::<Result<_, _>>()?,
            placeholders,
            branch: name(&entry.branch)?,
            remote: name(&entry.remote)?,
            timeout: self.timeout(entry.timeout.as_ref(), TIMEOUT_DEFAULT, TIMEOUT_MAX)?,
        };
        let longest = [rules.commands.len(), rules.paths.len(), rules.placeholders.len()];
        match longest.iter().any(|count| *count > LISTED_MAX) {
            true => {
                let at = Some(entry.run.span().start);
                Err(self.wrong(at, format!("more than {LISTED_MAX} of one thing in a target")))
            }
            false => Ok(rules),
        }
    }

    fn words(&self, typed: &[Spanned<String>]) -> Result<Vec<String>, Failure> {
        let one = |typed: &Spanned<String>| {
            let text = typed.get_ref();
            let bad = text.trim().is_empty()
                || text.len() > WORD_BYTES_MAX
                || text.chars().any(char::is_control);
            let detail = || format!("{text:?} is not a word to look for");
            match bad {
                true => Err(self.wrong(Some(typed.span().start), detail())),
                false => Ok(text.clone()),
            }
        };
        typed.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use baton_core::time::{Moment, Span};

    use super::*;
    use crate::config::compile;

    #[test]
    fn targets_are_read_and_mistakes_have_a_line() {
        let compiled = |text: &str| compile(Path::new("baton.toml"), text, Moment::default());
        let text = "[deploy.prod]\nrun = [\"./ship\", \"a b\"]\nverify = \"curl -f https://x\"\n\
                    commands = [\"wrangler deploy\"]\ngate = true\npaths = [\"site/\"]\n\
                    placeholders = []\nbranch = \"release\"\nremote = \"up\"\ntimeout = \"5m\"\n\
                    [deploy.test]\nrun = \"make ship\"\n";
        let all = compiled(text).unwrap().deploys;
        let prod = &all["prod"];
        assert_eq!(prod.run, ["./ship", "a b"]);
        assert_eq!(prod.commands, [["wrangler", "deploy"]]);
        assert!(prod.gate && prod.placeholders.is_empty());
        assert_eq!((prod.timeout, prod.branch.as_deref()), (Span::minutes(5), Some("release")));
        assert!(prod.ships("site/a.html") && !prod.ships("src/a.rs"));
        assert!(all["test"].ships("anything"));
        assert_eq!(all["test"].placeholders, PLACEHOLDERS);
        let complaint = |text: &str| match compiled(text) {
            Err(Failure::Config { line: Some(line), detail, .. }) => format!("{line}: {detail}"),
            other => format!("{other:?}"),
        };
        let target = |rest: &str| complaint(&format!("[deploy.a]\nrun = [\"x\"]\n{rest}\n"));
        for (said, expected) in [
            (complaint("[deploy.\"A b\"]\nrun = [\"x\"]"), "1: \"A b\" is not a name"),
            (complaint("[deploy.a]\nrun = []"), "2: it is no command"),
            (complaint("[deploy.a]\nrun = \"a | b\""), "2: it runs without a shell"),
            (complaint("[deploy.a]\ngate = true"), "1: missing key `run`"),
            (target("colour = 1"), "3: unknown key `colour`"),
            (target("commands = [\" \"]"), "3: \" \" is not a command"),
            (target("paths = [\"../x\"]"), "3: \"../x\""),
            (target("placeholders = [\"\"]"), "3: \"\" is not a word"),
            (target("branch = \"--x\""), "3: \"--x\" is not the name"),
            (target("timeout = \"2d\""), "3: a timeout is"),
        ] {
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
