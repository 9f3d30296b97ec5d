//! Patches for the files of a tree, and what the whole of a tree is.
//!
//! Owns the one way in which Baton changes a user's file: a patch, applied because whoever holds
//! the file asks for it, all of it or nothing. A snapshot writes objects and touches nothing else.

use super::rescue::{File, RESCUE_BYTES_MAX, read_exactly};
use super::write::PrivateIndex;
use super::{Error, Git, Oid};

impl Git {
    /// Would this patch apply in the tree, or with `reverse` is it there already? What git says
    /// against it, when not.
    pub fn applies(
        &self,
        patch: &str,
        strip: u8,
        reverse: bool,
    ) -> Result<Result<(), String>, Error> {
        let mut options = vec!["--check"];
        options.extend(reverse.then_some("--reverse"));
        match self.patch(&options, patch.as_bytes(), strip) {
            Ok(()) => Ok(Ok(())),
            Err(Error::Failed { message, .. }) => Ok(Err(message)),
            Err(other) => Err(other),
        }
    }

    /// Applies a patch to the files of the tree: all of it, or nothing.
    pub fn apply(&self, patch: &str, strip: u8) -> Result<(), Error> {
        self.patch(&[], patch.as_bytes(), strip)
    }

    /// Applies a patch of any bytes, all of it or nothing; what git says against it, when not.
    pub fn apply_bytes(&self, patch: &[u8]) -> Result<Result<(), String>, Error> {
        match self.patch(&[], patch, 1) {
            Ok(()) => Ok(Ok(())),
            Err(Error::Failed { message, .. }) => Ok(Err(message)),
            Err(other) => Err(other),
        }
    }

    fn patch(&self, options: &[&str], patch: &[u8], strip: u8) -> Result<(), Error> {
        let filters = self.own_filters()?;
        let strip = format!("-p{strip}");
        let call = self.call("apply").options(options);
        let call = call.options(&["--whitespace=nowarn", &strip, "-"]);
        call.without_filters(&filters).input(patch.to_vec()).bytes().map(|_| ())
    }

    /// A hash of the whole tree as it is, uncommitted changes included and ignored files not: two
    /// snapshots are equal when nothing that git would commit differs.
    pub fn snapshot(&self) -> Result<Oid, Error> {
        let status = self.status(&[String::new()])?;
        let head = match status.head {
            Some(known) => known,
            None => self.head()?,
        };
        if let (true, Some(head)) = (status.changed.is_empty(), &head) {
            let tree = self.resolve(&format!("{head}^{{tree}}"))?;
            return tree.ok_or(Error::Unexpected { command: "rev-parse".into() });
        }
        let mut left = RESCUE_BYTES_MAX;
        let mut files: Vec<(&str, File)> = Vec::with_capacity(status.changed.len());
        for changed in &status.changed {
            let file = read_exactly(self.folder(), &changed.path, &mut left)?;
            files.push((&changed.path, file));
        }
        let index = PrivateIndex::new()?;
        if let Some(head) = &head {
            let call = self.call("read-tree").options(&["--end-of-options", head.as_str()]);
            call.set("GIT_INDEX_FILE", &index.file).bytes()?;
        }
        self.tree_of(&index, &files, head.as_ref())
    }
}
