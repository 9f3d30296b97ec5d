//! `[queue]` in `baton.toml`: how branches land.
//!
//! Owns reading the entry and saying what is wrong with it, with its line. The target and the
//! checks, which tasks show as evidence too, are read in `done`.

use baton_core::landing::{Guard, JOBS_DEFAULT, JOBS_MAX, Mode, Rules, Strategy};
use baton_core::tasks::TITLE_BYTES_MAX;
use serde::de::DeserializeOwned;
use toml::Spanned;

use super::Source;
use super::done::QueueEntry;
use crate::failure::Failure;

const REMOTE_BYTES_MAX: usize = 200;
/// The places that a merge driver is told its files by.
const PLACES: [&str; 3] = ["%O", "%A", "%B"];

impl Source<'_> {
    pub(super) fn queue(&self, entry: &QueueEntry) -> Result<Rules, Failure> {
        let jobs = match &entry.jobs {
            None => JOBS_DEFAULT,
            Some(typed) if (1..=JOBS_MAX).contains(typed.get_ref()) => *typed.get_ref(),
            Some(typed) => {
                let detail = format!("jobs are 1 to {JOBS_MAX}");
                return Err(self.wrong(Some(typed.span().start), detail));
            }
        };
        let strategy: Option<Strategy> =
            self.word("strategy", "merge, squash, rebase", entry.strategy.as_ref())?;
        let mode: Option<Mode> = self.word("mode", "direct, pr", entry.mode.as_ref())?;
        let guard: Option<Guard> = self.word("guard", "agents, all, off", entry.guard.as_ref())?;
        let command = |typed| Option::map_or(typed, Ok(Vec::new()), |typed| self.command(typed));
        let merge_driver = command(entry.merge_driver.as_ref())?;
        if let Some(typed) = &entry.merge_driver
            && !PLACES.iter().all(|place| merge_driver.iter().any(|word| word.contains(place)))
        {
            let detail = "a merge driver is told its files by %O, %A and %B".to_owned();
            return Err(self.wrong(Some(typed.span().start), detail));
        }
        Ok(Rules {
            jobs,
            strategy: strategy.unwrap_or_default(),
            guard,
            mode: mode.unwrap_or_default(),
            remote: entry.remote.as_ref().map(|typed| self.remote(typed)).transpose()?,
            request: command(entry.request.as_ref())?,
            merge_driver,
            after_land: entry.after_land.as_ref().map(|typed| self.title(typed)).transpose()?,
        })
    }

    /// One of a few words.
    fn word<T: DeserializeOwned>(
        &self,
        what: &str,
        known: &str,
        typed: Option<&Spanned<String>>,
    ) -> Result<Option<T>, Failure> {
        let Some(typed) = typed else { return Ok(None) };
        let text = typed.get_ref();
        match serde_json::from_value(serde_json::Value::String(text.clone())) {
            Ok(word) => Ok(Some(word)),
            Err(_) => {
                let detail = format!("there is no {what} `{text}`; there are `{known}`");
                Err(self.wrong(Some(typed.span().start), detail))
            }
        }
    }

    fn remote(&self, typed: &Spanned<String>) -> Result<String, Failure> {
        let name = typed.get_ref();
        let strange = |character: char| character.is_whitespace() || character.is_control();
        if name.starts_with('-') || name.len() > REMOTE_BYTES_MAX || name.contains(strange) {
            let detail = format!("{name:?} is not the name of a remote");
            return Err(self.wrong(Some(typed.span().start), detail));
        }
        Ok(name.clone())
    }

    fn title(&self, typed: &Spanned<String>) -> Result<String, Failure> {
        let title = typed.get_ref();
        if title.trim().is_empty() || title.len() > TITLE_BYTES_MAX {
            let detail = format!("a title has 1 to {TITLE_BYTES_MAX} bytes");
            return Err(self.wrong(Some(typed.span().start), detail));
        }
        Ok(title.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use baton_core::time::Moment;

    use super::*;
    use crate::config::compile;

    #[test]
    fn the_queue_is_read_and_mistakes_have_a_line() {
        let compiled = |text: &str| compile(Path::new("baton.toml"), text, Moment::default());
        let text = "[queue]\ntarget = \"main\"\njobs = 3\nstrategy = \"rebase\"\nguard = \"all\"\n\
                    remote = \"\"\nmode = \"pr\"\nrequest = \"gh pr create\"\n\
                    merge_driver = \"mergiraf merge %O %A %B -p %P\"\nafter_land = \"Look\"\n";
        let rules = compiled(text).unwrap().queue;
        assert_eq!((rules.jobs, rules.strategy), (3, Strategy::Rebase));
        assert_eq!((rules.guard, rules.mode), (Some(Guard::All), Mode::Pr));
        assert_eq!(rules.remote.as_deref(), Some(""));
        assert_eq!(rules.request, ["gh", "pr", "create"]);
        assert_eq!(rules.after_land.as_deref(), Some("Look"));
        assert!(compiled("").unwrap().queue.is_default());
        for (line, expected) in [
            ("jobs = 0", "2: jobs are 1 to 64"),
            ("strategy = \"octopus\"", "2: there is no strategy `octopus`"),
            ("guard = \"dogs\"", "2: there is no guard `dogs`"),
            ("mode = \"x\"", "2: there is no mode `x`"),
            ("remote = \"--x\"", "2: \"--x\" is not the name of a remote"),
            ("merge_driver = \"m %A %B\"", "2: a merge driver is told"),
            ("after_land = \" \"", "2: a title has"),
            ("speed = 1", "2: unknown key `speed`"),
        ] {
            match compiled(&format!("[queue]\n{line}\n")) {
                Err(Failure::Config { line: Some(line), detail, .. }) => {
                    let said = format!("{line}: {detail}");
                    assert!(said.starts_with(expected), "{said}");
                }
                other => panic!("{line}: {other:?}"),
            }
        }
    }
}
