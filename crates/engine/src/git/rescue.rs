//! Saving uncommitted work under `refs/baton/rescue/…` before anybody may overwrite it.
//!
//! Owns the shape of a rescue: a commit on top of HEAD with the files as they lie in the tree, byte
//! for byte, and, where the index has something else, a second parent with what was staged; so
//! `git stash apply <reference>` brings it back. All of it goes through one `fast-import`, however
//! many rescues there are: each call of git is a process. Invariants: the user's index, files, HEAD
//! and branches are never touched, no filter runs, and what an earlier rescue saved under the same
//! name stays reachable from it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::read::{Changed, Status};
use super::write::{Author, check_reference};
use super::{Error, Git, Oid};

/// What one rescue may save, since it passes through memory.
pub const RESCUE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What is to be saved, and as what.
#[derive(Debug, Clone)]
pub struct Rescue<'a> {
    pub changed: Vec<&'a Changed>,
    pub reference: String,
    pub message: String,
}

/// A text that is in no file any more, to be saved as the file it was.
#[derive(Debug)]
pub struct Text<'a> {
    pub path: &'a str,
    pub text: Vec<u8>,
    pub executable: bool,
}

/// What is at a path, as git would store it: a mode and content, or nothing if it is gone.
pub(super) type File = Option<(&'static str, Vec<u8>)>;

impl Git {
    /// Saves each of these as a commit of its own. All are saved, or an error is returned.
    pub fn rescue(&self, status: &Status, rescues: &[Rescue<'_>]) -> Result<Vec<Oid>, Error> {
        let mut left = RESCUE_BYTES_MAX;
        let mut saves = Vec::with_capacity(rescues.len());
        for rescue in rescues {
            check_reference(&rescue.reference)?;
            let mut files = Vec::with_capacity(rescue.changed.len());
            for changed in &rescue.changed {
                let file = read_exactly(self.folder(), &changed.path, &mut left)?;
                files.push((changed.path.as_str(), file));
            }
            saves.push(Save { rescue, files, earlier: None });
        }
        if saves.is_empty() {
            return Ok(Vec::new());
        }
        let head = match &status.head {
            Some(known) => known.clone(),
            None => self.head()?,
        };
        match self.import(head.as_ref(), &saves) {
            Ok(saved) => Ok(saved),
            Err(error @ Error::Failed { status: Some(1), .. }) => {
                // A reference that is there already is not moved away from what it has.
                for save in &mut saves {
                    save.earlier =
                        self.resolve(&format!("{}^{{commit}}", save.rescue.reference))?;
                }
                match saves.iter().any(|save| save.earlier.is_some()) {
                    true => self.rescue_again(head.as_ref(), saves),
                    false => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// On top of earlier rescues, where these do not have it all: whoever is in the way is asked
    /// about at each try, and every try would leave one more commit of the same.
    fn rescue_again(&self, head: Option<&Oid>, saves: Vec<Save<'_>>) -> Result<Vec<Oid>, Error> {
        let mut known = Vec::with_capacity(saves.len());
        let mut anew = Vec::new();
        for save in saves {
            let earlier = save.earlier.clone().filter(|earlier| self.has(earlier, &save));
            if earlier.is_none() {
                anew.push(save);
            }
            known.push(earlier);
        }
        let saved = if anew.is_empty() { Vec::new() } else { self.import(head, &anew)? };
        let mut saved = saved.into_iter();
        Ok(known.into_iter().filter_map(|earlier| earlier.or_else(|| saved.next())).collect())
    }

    /// Are all the files in this commit as they are now? What cannot be told is saved once more.
    fn has(&self, commit: &Oid, save: &Save<'_>) -> bool {
        if save.rescue.changed.iter().any(|one| one.hides_staged) {
            return false;
        }
        let names = save.files.iter().map(|(path, _)| format!("{commit}:{path}"));
        let Ok(there) = self.objects_named(&names.collect::<Vec<_>>()) else { return false };
        let blobs: BTreeSet<Oid> = there.iter().flatten().cloned().collect();
        let Ok(contents) = self.contents(&blobs, RESCUE_BYTES_MAX) else { return false };
        save.files.iter().zip(there).all(|((_, file), oid)| {
            let content = oid.and_then(|oid| contents.get(&oid));
            content == file.as_ref().map(|(_, content)| content)
        })
    }

    /// Which of these texts the last commit does not have.
    pub fn uncommitted<'a>(&self, texts: Vec<Text<'a>>) -> Result<Vec<Text<'a>>, Error> {
        let revisions: Vec<String> =
            texts.iter().map(|text| format!("HEAD:{}", text.path)).collect();
        let committed = self.objects_named(&revisions)?;
        let blobs: BTreeSet<Oid> = committed.iter().flatten().cloned().collect();
        let contents = self.contents(&blobs, RESCUE_BYTES_MAX)?;
        let content = |oid: Option<Oid>| oid.and_then(|oid| contents.get(&oid));
        let all = texts.into_iter().zip(committed);
        let changed = all.filter(|(text, oid)| content(oid.clone()) != Some(&text.text));
        Ok(changed.map(|(text, _)| text).collect())
    }

    /// Saves what was in files, as one commit. A reference that is there already has it.
    pub fn rescue_texts(
        &self,
        texts: Vec<Text<'_>>,
        reference: &str,
        message: String,
    ) -> Result<(), Error> {
        check_reference(reference)?;
        let rescue = Rescue { changed: Vec::new(), reference: reference.to_owned(), message };
        let file = |one: Text<'_>| Some((mode(one.executable), one.text));
        let files = texts.into_iter().map(|one| (one.path, file(one))).collect();
        let save = Save { rescue: &rescue, files, earlier: None };
        match self.import(self.head()?.as_ref(), &[save]) {
            Err(error @ Error::Failed { status: Some(1), .. }) => {
                let there = self.resolve(&format!("{reference}^{{commit}}"))?;
                there.map(drop).ok_or(error)
            }
            saved => saved.map(drop),
        }
    }

    fn import(&self, head: Option<&Oid>, saves: &[Save<'_>]) -> Result<Vec<Oid>, Error> {
        let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seconds = seconds.map_or(0, |since| since.as_secs());
        let mut stream = Stream { bytes: Vec::new(), marks: 0, seconds };
        let mut wanted = Vec::with_capacity(saves.len());
        for save in saves {
            wanted.push(stream.save(save, head));
        }
        for mark in wanted {
            stream.line(&format!("get-mark :{mark}"));
        }
        stream.line("done");
        let call = self.call("fast-import").options(&["--quiet", "--done"]);
        let text = call.input(stream.bytes).text()?;
        let commits: Option<Vec<Oid>> = text.lines().map(Oid::parse).collect();
        let complete = commits.filter(|commits| commits.len() == saves.len());
        complete.ok_or(Error::Unexpected { command: "fast-import".into() })
    }
}

struct Save<'a> {
    rescue: &'a Rescue<'a>,
    files: Vec<(&'a str, File)>,
    /// What stands under the reference from an earlier rescue of the same claim.
    earlier: Option<Oid>,
}

/// What fast-import reads.
struct Stream {
    bytes: Vec<u8>,
    marks: u32,
    seconds: u64,
}

impl Stream {
    fn line(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(b'\n');
    }

    fn data(&mut self, content: &[u8]) {
        self.line(&format!("data {}", content.len()));
        self.bytes.extend_from_slice(content);
        self.bytes.push(b'\n');
    }

    /// The commands for one rescue; the mark of its commit.
    fn save(&mut self, save: &Save<'_>, head: Option<&Oid>) -> u32 {
        let Rescue { changed, reference, message } = save.rescue;
        let staged = changed.iter().any(|one| one.hides_staged);
        let index = staged.then(|| {
            let mark = self.commit(reference, "What was staged", head, None);
            let staged = changed.iter().filter_map(|one| Some((one, one.staged.as_ref()?)));
            for (one, _) in staged.clone().filter(|(_, staged)| staged.is_none()) {
                self.line(&format!("D {}", quoted(&one.path)));
            }
            for (one, staged) in staged {
                if let Some((mode, blob)) = staged {
                    self.line(&format!("M {mode} {blob} {}", quoted(&one.path)));
                }
            }
            mark
        });
        // On top of what was saved before, so that all of it is found in one place.
        let below = save.earlier.as_ref().or(head);
        let mark = self.commit(reference, message, below, index);
        // What is gone goes first: a folder may stand where a file was.
        for (path, _) in save.files.iter().filter(|(_, file)| file.is_none()) {
            self.line(&format!("D {}", quoted(path)));
        }
        for (path, file) in &save.files {
            if let Some((mode, content)) = file {
                self.line(&format!("M {mode} inline {}", quoted(path)));
                self.data(content);
            }
        }
        mark
    }

    fn commit(
        &mut self,
        reference: &str,
        message: &str,
        below: Option<&Oid>,
        beside: Option<u32>,
    ) -> u32 {
        self.marks += 1;
        self.line(&format!("commit {reference}"));
        self.line(&format!("mark :{}", self.marks));
        let Author { name, email } = Author::baton();
        self.line(&format!("committer {name} <{email}> {} +0000", self.seconds));
        self.data(message.as_bytes());
        if let Some(below) = below {
            self.line(&format!("from {below}"));
        }
        if let (Some(_), Some(beside)) = (below, beside) {
            self.line(&format!("merge :{beside}"));
        }
        if below.is_none() {
            // Before the first commit there is nothing to build upon but what was staged.
            self.line("deleteall");
        }
        self.marks
    }
}

/// A path as fast-import reads it, whatever is in it.
pub(super) fn quoted(path: &str) -> String {
    let mut text = String::with_capacity(path.len() + 2);
    text.push('"');
    for character in path.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            _ if character.is_ascii_control() => {
                text.push_str(&format!("\\{:03o}", u32::from(character)));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
    text
}

/// What is at a path; nothing if it is gone or not a thing git stores.
pub(super) fn read_exactly(root: &Path, path: &str, left: &mut u64) -> Result<File, Error> {
    // Behind a folder that became a link is another's file: git says that this one is gone.
    let mut above = path.match_indices('/').map(|(end, _)| root.join(&path[..end]));
    if above.any(|folder| folder.is_symlink()) {
        return Ok(None);
    }
    let full = root.join(path);
    let io = |source| Error::Io { path: full.clone(), source };
    let metadata = match fs::symlink_metadata(&full) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(io(error)),
    };
    if metadata.is_symlink() {
        let target = fs::read_link(&full).map_err(io)?;
        return Ok(Some(("120000", target.as_os_str().as_bytes().to_vec())));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    // Not following: a link put there in between must not make us read its target.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(&full).map_err(io)?;
    let mut content = Vec::new();
    file.take(*left + 1).read_to_end(&mut content).map_err(io)?;
    let too_large = || Error::TooLarge { path: path.to_owned(), limit: RESCUE_BYTES_MAX };
    *left = left.checked_sub(content.len() as u64).ok_or_else(too_large)?;
    let executable = metadata.permissions().mode() & 0o100 != 0;
    Ok(Some((mode(executable), content)))
}

fn mode(executable: bool) -> &'static str {
    if executable { "100755" } else { "100644" }
}
