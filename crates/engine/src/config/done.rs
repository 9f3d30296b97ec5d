//! `[done]` and `[queue]` in `baton.toml`: what must be shown before a task is done.
//!
//! Owns reading those entries and saying what is wrong with one, with its line. What evidence is
//! worth is in `baton_core::tasks::evidence`.

use baton_core::tasks::evidence::{
    self, CHECKS_MAX, NAME_BYTES_MAX, NamedCheck, Proof, Rules, TIMEOUT_DEFAULT, TIMEOUT_MAX,
};
use baton_core::time::Span;
use serde::Deserialize;
use toml::Spanned;

use super::Source;
use crate::failure::Failure;

const TARGET_BYTES_MAX: usize = 200;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DoneEntry {
    #[serde(default)]
    require: Vec<Spanned<String>>,
    #[serde(default)]
    checks: Vec<Spanned<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueueEntry {
    #[serde(default)]
    target: Option<Spanned<String>>,
    #[serde(default)]
    check: Vec<CheckEntry>,
    #[serde(default)]
    pub(super) jobs: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) strategy: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) guard: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) mode: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) remote: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) request: Option<Spanned<Words>>,
    #[serde(default)]
    pub(super) merge_driver: Option<Spanned<Words>>,
    #[serde(default)]
    pub(super) after_land: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckEntry {
    name: Spanned<String>,
    run: Spanned<Words>,
    #[serde(default)]
    timeout: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Words {
    Words(Vec<String>),
    Line(String),
}

impl Source<'_> {
    pub(super) fn evidence(&self, done: &DoneEntry, queue: &QueueEntry) -> Result<Rules, Failure> {
        let mut named: Vec<NamedCheck> = Vec::new();
        if queue.check.len() > CHECKS_MAX {
            return Err(self.wrong(None, format!("more than {CHECKS_MAX} checks")));
        }
        for entry in &queue.check {
            let check = self.named_check(entry)?;
            if named.iter().any(|known| known.name == check.name) {
                let at = Some(entry.name.span().start);
                return Err(self.wrong(at, format!("there is a check {:?} already", check.name)));
            }
            named.push(check);
        }
        let mut require = Vec::new();
        for typed in &done.require {
            let text = typed.get_ref();
            let proof = Proof::ALL.into_iter().find(|proof| proof.name() == text);
            let proof = proof.ok_or_else(|| {
                let known = Proof::ALL.map(Proof::name).join(", ");
                let detail = format!("there is no evidence `{text}`; there are `{known}`");
                self.wrong(Some(typed.span().start), detail)
            })?;
            if !require.contains(&proof) {
                require.push(proof);
            }
        }
        require.sort_unstable();
        let mut checks: Vec<String> = Vec::new();
        for typed in &done.checks {
            let name = typed.get_ref();
            if named.iter().all(|check| check.name != *name) {
                let detail = format!("there is no [[queue.check]] with the name {name:?}");
                return Err(self.wrong(Some(typed.span().start), detail));
            }
            if !checks.contains(name) {
                checks.push(name.clone());
            }
        }
        let target = queue.target.as_ref().map(|target| self.target(target)).transpose()?;
        Ok(Rules { require, checks, named, target })
    }

    fn named_check(&self, entry: &CheckEntry) -> Result<NamedCheck, Failure> {
        let name = entry.name.get_ref();
        let plain = |character: char| {
            character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '/')
        };
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
            let detail = format!("{name:?} is not a name such as \"test\" or \"lint/rust\"");
            return Err(self.wrong(Some(entry.name.span().start), detail));
        }
        let run = self.command(&entry.run)?;
        let timeout = self.timeout(entry.timeout.as_ref(), TIMEOUT_DEFAULT, TIMEOUT_MAX)?;
        Ok(NamedCheck { name: name.clone(), run, timeout })
    }

    /// A command: its words, or a line that needs no shell to be read.
    pub(super) fn command(&self, typed: &Spanned<Words>) -> Result<Vec<String>, Failure> {
        let at = Some(typed.span().start);
        let run = match typed.get_ref() {
            Words::Words(words) => words.clone(),
            Words::Line(line)
                if line.contains(['"', '\'', '\\', '$', '|', '&', ';', '<', '>', '`', '*']) =>
            {
                let detail = "it runs without a shell: write [\"program\", \"word\", …]".to_owned();
                return Err(self.wrong(at, detail));
            }
            Words::Line(line) => line.split_whitespace().map(str::to_owned).collect(),
        };
        match evidence::fits_command(&run) {
            Ok(()) => Ok(run),
            Err(_) => Err(self.wrong(at, "it is no command, or too long for one".to_owned())),
        }
    }

    pub(super) fn timeout(
        &self,
        typed: Option<&Spanned<String>>,
        default: Span,
        max: Span,
    ) -> Result<Span, Failure> {
        let Some(typed) = typed else { return Ok(default) };
        let at = Some(typed.span().start);
        let given = crate::api::span(typed.get_ref());
        let span = given.map_err(|why| self.wrong(at, why))?;
        match span.0 == 0 || span > max {
            true => {
                let detail = format!("a timeout is more than nothing, at most {max}");
                Err(self.wrong(at, detail))
            }
            false => Ok(span),
        }
    }

    pub(super) fn target(&self, typed: &Spanned<String>) -> Result<String, Failure> {
        let name = typed.get_ref();
        let strange = |character: char| {
            character.is_whitespace() || character.is_control() || "~^:?*[\\".contains(character)
        };
        let bad = name.is_empty()
            || name.len() > TARGET_BYTES_MAX
            || name.starts_with('-')
            || name.contains("..")
            || name.contains(strange);
        match bad {
            true => {
                let detail = format!("{name:?} is not the name of a branch");
                Err(self.wrong(Some(typed.span().start), detail))
            }
            false => Ok(name.clone()),
        }
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
    fn evidence_is_read_and_mistakes_have_a_line() {
        let text = "[done]\nrequire = [\"landed\", \"check\", \"check\"]\nchecks = [\"test\"]\n\
                    [queue]\ntarget = \"release/1\"\n\
                    [[queue.check]]\nname = \"test\"\nrun = \"cargo test -q\"\ntimeout = \"2m\"\n\
                    [[queue.check]]\nname = \"lint\"\nrun = [\"sh\", \"-c\", \"a | b\"]\n";
        let rules = compile(Path::new("baton.toml"), text, Moment::default()).unwrap().evidence;
        assert_eq!(rules.require, [Proof::Check, Proof::Landed]);
        assert_eq!(rules.needed(), ["test"]);
        assert_eq!(rules.named[0].run, ["cargo", "test", "-q"]);
        assert_eq!(rules.named[0].timeout, Span::minutes(2));
        assert_eq!(rules.named[1].timeout, TIMEOUT_DEFAULT);
        assert_eq!(rules.target.as_deref(), Some("release/1"));
        let check = |rest: &str| complaint(&format!("[[queue.check]]\nname = \"a\"\n{rest}\n"));
        for (said, expected) in [
            (complaint("[done]\nrequire = [\"luck\"]"), "2: there is no evidence `luck`"),
            (complaint("[done]\nchecks = [\"x\"]"), "2: there is no [[queue.check]]"),
            (complaint("[done]\nwant = []"), "2: unknown key `want`"),
            (complaint("[queue]\ntarget = \"a b\""), "2: \"a b\" is not the name of a branch"),
            (complaint("[queue]\ntarget = \"--x\""), "2: \"--x\" is not the name of a branch"),
            (check("run = \"a | b\""), "3: it runs without a shell"),
            (check("run = []"), "3: it is no command"),
            (check("run = [\"x\"]\ntimeout = \"soon\""), "4: \"soon\" is not a time"),
            (check("run = [\"x\"]\ntimeout = \"2d\""), "4: a timeout is"),
            (check("run = [\"x\"]\n[[queue.check]]\nname = \"a\"\nrun = \"y\""), "5: there is a"),
            (complaint("[[queue.check]]\nname = \"a b\"\nrun = \"x\""), "2: \"a b\" is not a name"),
        ] {
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
