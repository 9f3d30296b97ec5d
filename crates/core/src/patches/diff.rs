//! Unified diffs of many files, as `git apply` and `patch` take them.
//!
//! Owns both names of every file, those of renames and copies too. Invariant: where the names of
//! one file differ, both are told, since which of them is written depends on what is there.

use super::{Action, BYTES_MAX, FILES_MAX, File, Hunk, Malformed, full, wrong};

/// Reads a diff; `strip` folders are taken from the front of each name.
pub fn unified(text: &str, strip: usize) -> Result<Vec<File>, Malformed> {
    if text.len() > BYTES_MAX {
        return wrong(1, "a patch this long is not read");
    }
    let (files, opened, empty) = (Vec::new(), None, None);
    let mut reader = Reader { files, strip, from: None, left: (0, 0), opened, empty };
    for (index, line) in text.lines().enumerate() {
        reader.line(line, index + 1)?;
        if reader.files.len() > FILES_MAX {
            return wrong(index + 1, "a patch of so many files is not read");
        }
    }
    if reader.left != (0, 0) {
        return wrong(text.lines().count(), "it ends within a hunk");
    }
    reader.close();
    if reader.files.is_empty() {
        return wrong(1, "this is no patch: it names no file");
    }
    Ok(reader.files)
}

struct Reader {
    files: Vec<File>,
    strip: usize,
    /// The old name that was read last; None inside for `/dev/null`.
    from: Option<Option<String>>,
    /// Lines of the old and the new side that the hunk still has.
    left: (usize, usize),
    /// What `diff --git` said, until the names came in another way.
    opened: Option<String>,
    /// A file that is made or goes, and of which no line has told yet.
    empty: Option<(Action, String)>,
}

impl Reader {
    fn line(&mut self, line: &str, number: usize) -> Result<(), Malformed> {
        if self.left != (0, 0) {
            return self.changed(line, number);
        }
        if let Some(rest) = line.strip_prefix("--- ") {
            self.from = Some(self.name(rest, number)?);
        } else if let Some(rest) = line.strip_prefix("+++ ") {
            let Some(from) = self.from.take() else {
                return wrong(number, "before +++ stands --- with the old name");
            };
            let to = self.name(rest, number)?;
            self.empty = None;
            self.pair(from, to, number)?;
        } else if line.starts_with("@@ -") {
            let Some(lengths) = lengths(line).filter(|_| !self.files.is_empty()) else {
                return wrong(number, "a hunk without its file or its lengths");
            };
            self.left = lengths;
            if let Some(file) = self.files.last_mut() {
                file.hunks.push(Hunk::default());
            }
        } else if let Some(names) = line.strip_prefix("diff --git ") {
            self.close();
            self.opened = Some(names.to_owned());
        } else {
            self.extended(line, number)?;
        }
        Ok(())
    }

    /// A file without lines has no other line with its name.
    fn close(&mut self) {
        if let Some((action, path)) = self.empty.take() {
            self.files.push(File { path, action, moved_to: None, hunks: Vec::new() });
        }
    }

    /// The one name in `a/name b/name`.
    fn same(&self, names: &str, number: usize) -> Result<String, Malformed> {
        let old = names.get(..names.len() / 2).map(|old| self.name(old, number)).transpose()?;
        let new = names.get(names.len() / 2 + 1..).map(|new| self.name(new, number)).transpose()?;
        match (old.flatten(), new.flatten()) {
            (Some(old), Some(new)) if old == new => Ok(new),
            _ => wrong(number, "a file without lines, whose name cannot be told"),
        }
    }

    fn extended(&mut self, line: &str, number: usize) -> Result<(), Malformed> {
        let from = ["rename from ", "copy from "].iter().find_map(|head| line.strip_prefix(head));
        let to = ["rename to ", "copy to "].iter().find_map(|head| line.strip_prefix(head));
        // These names have no folder in front that could be stripped.
        if let Some(rest) = from {
            self.from = Some(Some(unquoted(rest, number)?));
        } else if let Some(rest) = to {
            let Some(Some(path)) = self.from.take() else {
                return wrong(number, "a new name without the old one");
            };
            let moved_to = Some(unquoted(rest, number)?);
            let hunks = Vec::new();
            self.files.push(File { path, action: Action::Update, moved_to, hunks });
            self.opened = None;
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return wrong(number, "a binary patch is not read");
        } else if line.starts_with("new file") || line.starts_with("deleted file") {
            let action = if line.starts_with("new") { Action::Add } else { Action::Delete };
            if let Some(names) = self.opened.take() {
                self.empty = Some((action, self.same(&names, number)?));
            }
        } else if line.starts_with("old mode") {
            return wrong(number, "a change of modes is not read");
        }
        Ok(())
    }

    fn pair(
        &mut self,
        from: Option<String>,
        to: Option<String>,
        number: usize,
    ) -> Result<(), Malformed> {
        let (path, action, other) = match (from, to) {
            (None, None) => return wrong(number, "a file needs a name"),
            (None, Some(to)) => (to, Action::Add, None),
            (Some(from), None) => (from, Action::Delete, None),
            (Some(from), Some(to)) if from == to => (to, Action::Update, None),
            (Some(from), Some(to)) => (from, Action::Update, Some(to)),
        };
        // Behind `rename to` stand the same names once more.
        let again = self.files.last().is_some_and(|last| {
            last.moved_to.is_some() && last.path == path && last.moved_to == other
        });
        if !again {
            self.files.push(File { path, action, moved_to: other, hunks: Vec::new() });
        }
        Ok(())
    }

    fn changed(&mut self, line: &str, number: usize) -> Result<(), Malformed> {
        let (old, new) = match line.as_bytes().first() {
            Some(b' ') | None => (1, 1),
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') => (0, 0),
            Some(_) => return wrong(number, "a line of a hunk begins with a space, + or -"),
        };
        let left = (self.left.0.checked_sub(old), self.left.1.checked_sub(new));
        let (Some(old_left), Some(new_left)) = left else {
            return wrong(number, "the hunk is longer than its header says");
        };
        self.left = (old_left, new_left);
        let hunk = self.files.last_mut().and_then(|file| file.hunks.last_mut());
        match hunk {
            Some(hunk) if (old, new) == (1, 0) => hunk.removed.push(line[1..].to_owned()),
            Some(hunk) if (old, new) == (0, 1) => hunk.added.push(line[1..].to_owned()),
            _ => {}
        }
        if self.left == (0, 0)
            && let Some(file) = self.files.last_mut()
        {
            let last = file.hunks.pop().and_then(full);
            file.hunks.extend(last);
        }
        Ok(())
    }

    /// The name without what is stripped; None for `/dev/null`.
    fn name(&self, text: &str, number: usize) -> Result<Option<String>, Malformed> {
        let text = text.split('\t').next().unwrap_or_default().trim_end();
        if text == "/dev/null" {
            return Ok(None);
        }
        let text = unquoted(text, number)?;
        let mut rest = text.as_str();
        for _ in 0..self.strip {
            let Some((_, below)) = rest.split_once('/') else {
                return wrong(number, "the name has fewer folders than are to be taken from it");
            };
            rest = below.trim_start_matches('/');
        }
        match rest.is_empty() {
            true => wrong(number, "a file needs a name"),
            false => Ok(Some(rest.to_owned())),
        }
    }
}

fn unquoted(text: &str, number: usize) -> Result<String, Malformed> {
    let text = text.trim_end_matches('\r');
    if text.starts_with('"') || text.chars().any(char::is_control) {
        return wrong(number, "names in quotes or with control characters are not read");
    }
    if text.is_empty() {
        return wrong(number, "a file needs a name");
    }
    Ok(text.to_owned())
}

/// The lengths in `@@ -1,3 +1,4 @@ …`.
fn lengths(line: &str) -> Option<(usize, usize)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let length = |range: &str| match range.split_once(',') {
        Some((start, length)) => start.parse::<usize>().ok().and(length.parse().ok()),
        None => range.parse::<usize>().ok().map(|_| 1),
    };
    Some((length(old)?, length(new)?))
}
