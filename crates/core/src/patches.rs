//! Patches as agents hand them in: the `apply_patch` format and unified diffs of many files.
//!
//! Owns which files a patch names, what happens to each, and which lines go and come. Unlike
//! `patch`, which admits only what a suggestion may do, everything is read here that a tool would
//! apply: new files, deletions, moves. Invariant: every path that could be written is in the
//! answer, in the words of the patch; a text that is read in two ways by two tools is an error.
//! Whether a path leaves the workspace is judged where all paths are.

pub use crate::patch::Malformed;

mod diff;
#[cfg(test)]
mod tests;

pub use diff::unified;

/// The longest patch that is read.
pub const BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most files of a patch.
pub const FILES_MAX: usize = 2_000;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const MOVE: &str = "*** Move to:";
const HEADS: [(&str, Action); 3] = [
    ("*** Add File:", Action::Add),
    ("*** Update File:", Action::Update),
    ("*** Delete File:", Action::Delete),
];

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub action: Action,
    /// Its new name.
    pub moved_to: Option<String>,
    pub hunks: Vec<Hunk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Add,
    Update,
    Delete,
}

/// Lines that belong together, without those that stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    pub removed: Vec<String>,
    pub added: Vec<String>,
}

/// Every path that a patch writes, each once.
pub fn paths(files: &[File]) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    for file in files {
        for path in std::iter::once(&file.path).chain(&file.moved_to) {
            if !paths.contains(&path.as_str()) {
                paths.push(path);
            }
        }
    }
    paths
}

/// Every path that a line of the text names as a header would, also where the text is no patch:
/// for whoever must judge it all the same.
pub fn named(text: &str) -> Vec<String> {
    heads(text).map(str::to_owned).collect()
}

/// It is more than is read of a patch: nobody judges all of its files.
pub fn is_too_large(text: &str) -> bool {
    text.len() > BYTES_MAX || heads(text).nth(FILES_MAX).is_some()
}

fn heads(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let mut heads = HEADS.iter().map(|(head, _)| *head).chain([MOVE]);
        let path = heads.find_map(|head| line.strip_prefix(head))?.trim();
        (!path.is_empty()).then_some(path)
    })
}

/// Reads a patch in the `apply_patch` format, alone or in the here-document of a shell.
pub fn read(text: &str) -> Result<Vec<File>, Malformed> {
    if text.len() > BYTES_MAX {
        return wrong(1, "a patch this long is not read");
    }
    let lines: Vec<&str> = text.lines().collect();
    let begins = |line: &&str| line.trim() == BEGIN;
    let Some(begin) = lines.iter().position(begins) else {
        return wrong(1, "no patch begins here: *** Begin Patch");
    };
    let mut reader = Reader { lines: &lines, at: begin + 1 };
    let mut files = Vec::new();
    loop {
        let Some(line) = reader.peek() else {
            return wrong(lines.len(), "it ends before *** End Patch");
        };
        if line.trim() == END {
            break;
        }
        if line.trim().is_empty() {
            reader.at += 1;
            continue;
        }
        if files.len() >= FILES_MAX {
            return wrong(reader.at + 1, "a patch of so many files is not read");
        }
        files.push(reader.file()?);
    }
    // One tool ends here, another reads on to the last such line.
    for (index, line) in lines.iter().enumerate().skip(reader.at + 1) {
        if line.trim_start().starts_with("***") {
            return wrong(index + 1, "the patch goes on behind its end");
        }
    }
    if files.is_empty() {
        return wrong(begin + 1, "it names no file");
    }
    Ok(files)
}

fn wrong<T>(line: usize, what: &str) -> Result<T, Malformed> {
    Err(Malformed { line: line.max(1), what: what.to_owned() })
}

/// A name as one tool and another would read it, or an error where they differ.
fn name(text: &str, line: usize) -> Result<String, Malformed> {
    let path = text.trim();
    if path.is_empty() {
        return wrong(line, "a file needs a name");
    }
    // One space belongs to the head; more of them belong to the name for some, for others not.
    if text.strip_prefix(' ').unwrap_or(text).trim_end() != path {
        return wrong(line, "a name that begins with a space");
    }
    if path.chars().any(char::is_control) {
        return wrong(line, "a name with a control character in it");
    }
    Ok(path.to_owned())
}

struct Reader<'a> {
    lines: &'a [&'a str],
    /// The index of the next line.
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// A file from its head to the next one.
    fn file(&mut self) -> Result<File, Malformed> {
        let line = self.peek().unwrap_or_default().trim();
        let found = HEADS.iter().find_map(|(head, act)| Some((line.strip_prefix(head)?, *act)));
        let Some((rest, action)) = found else {
            return wrong(self.at + 1, "here begins a file: *** Add, Update or Delete File: name");
        };
        let path = name(rest, self.at + 1)?;
        self.at += 1;
        let mut file = File { path, action, moved_to: None, hunks: Vec::new() };
        match action {
            Action::Delete => {}
            Action::Add => self.added(&mut file),
            Action::Update => self.updated(&mut file)?,
        }
        Ok(file)
    }

    fn added(&mut self, file: &mut File) {
        let mut hunk = Hunk::default();
        while let Some(line) = self.peek().and_then(|line| line.strip_prefix('+')) {
            hunk.added.push(line.to_owned());
            self.at += 1;
        }
        file.hunks.push(hunk);
    }

    fn updated(&mut self, file: &mut File) -> Result<(), Malformed> {
        let start = self.at;
        let moves = |line: &'a str| line.trim_start().strip_prefix(MOVE);
        if let Some(rest) = self.peek().and_then(moves) {
            file.moved_to = Some(name(rest, self.at + 1)?);
            self.at += 1;
        }
        let mut hunk = Hunk::default();
        while let Some(line) = self.peek() {
            let mut letters = line.chars();
            match letters.next() {
                Some('*') if line.trim() == END_OF_FILE => {}
                Some('*') if line.starts_with("***") => break,
                Some('@') if line.starts_with("@@") => {
                    file.hunks.extend(full(std::mem::take(&mut hunk)));
                }
                Some('-') => hunk.removed.push(letters.as_str().to_owned()),
                Some('+') => hunk.added.push(letters.as_str().to_owned()),
                // Some tools take an empty line for one that stays.
                Some(' ') | None => {}
                Some(_) => {
                    let what = "a line of a change begins with a space, + or -";
                    return wrong(self.at + 1, what);
                }
            }
            self.at += 1;
        }
        file.hunks.extend(full(hunk));
        if self.at == start {
            return wrong(start, "an update without a change");
        }
        Ok(())
    }
}

fn full(hunk: Hunk) -> Option<Hunk> {
    (!hunk.removed.is_empty() || !hunk.added.is_empty()).then_some(hunk)
}
