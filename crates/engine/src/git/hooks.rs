//! Where git looks for hooks, and what is staged while one runs.
//!
//! Owns the one setting of the repository's configuration that Baton changes, `core.hooksPath`. It
//! refuses to know what the hooks do.

use std::ffi::OsStr;

use super::read::names;
use super::{Error, Git};

const KEY: &str = "core.hooksPath";

/// The setting where it counts, and in the repository's own configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HooksPath {
    /// What git uses, with `~` resolved.
    pub effective: Option<String>,
    /// What the repository's own configuration says, as it is written there.
    pub local: Option<String>,
}

impl Git {
    pub fn hooks_setting(&self) -> Result<HooksPath, Error> {
        let options = ["-z", "--local", "--get", KEY];
        let answer = self.call("config").options(&options).answer(&[1])?;
        let text = String::from_utf8_lossy(&answer.output);
        let value = text.strip_suffix('\0').unwrap_or(&text);
        let local = (answer.status == Some(0)).then(|| value.to_owned());
        Ok(HooksPath { effective: self.hooks_path()?, local })
    }

    /// Says in the repository's configuration where its hooks are; nothing takes the setting out.
    pub fn set_hooks_path(&self, folder: Option<&str>) -> Result<(), Error> {
        let call = match folder {
            Some(folder) => self.call("config").options(&["--local", KEY, folder]),
            None => self.call("config").options(&["--local", "--unset", KEY]),
        };
        // 5: there is nothing to take out.
        call.answer(&[5]).map(|_| ())
    }

    /// The paths that a commit of this index would change. During a commit git uses an index file
    /// of its own and names it to its hooks.
    pub fn staged(&self, index: Option<&OsStr>) -> Result<Vec<String>, Error> {
        let options = ["--cached", "--name-only", "--no-renames", "--no-ext-diff", "-z"];
        let mut call = self.call("diff").options(&options);
        if let Some(index) = index {
            call = call.set("GIT_INDEX_FILE", index);
        }
        names(&call.bytes()?)
    }
}
