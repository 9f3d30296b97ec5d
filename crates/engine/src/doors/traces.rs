//! Traces on this machine: short lines in files beside the store.
//!
//! Owns their place, their size and their loss. A trace never decides a grant and may be gone at
//! any time; whoever writes one waits for nobody but for some milliseconds, and never fails because
//! of it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_core::id::SessionId;
use rustix::fs::{FlockOperation, flock};

use crate::place::Place;

/// A trace that has grown beyond this keeps its second half only.
const BYTES_MAX: u64 = 512 * 1024;
const TAILS: [u64; 2] = [8 * 1024, 64 * 1024];
pub(super) const FOLDER: &str = "traces";
/// How often, and after which time each, a trace that is being shortened is tried again.
const TRIES_MAX: usize = 50;
const TRY_AGAIN: Duration = Duration::from_millis(1);
/// Traces that nobody has touched for so long are of no use to anybody.
const AGE_MAX: Duration = Duration::from_secs(3 * 24 * 3_600);

/// Removes what is old. For the start of a session, where a moment more does not matter.
pub(super) fn tidy(place: &Place) {
    let folder = place.store.join(FOLDER);
    remove_old(&folder);
    remove_old(&folder.join("texts"));
}

fn remove_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let age = metadata.modified().ok().and_then(|modified| modified.elapsed().ok());
        if metadata.is_file() && age.is_some_and(|age| age > AGE_MAX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A file of lines that only grows at its end.
#[derive(Debug)]
pub(super) struct Trace {
    path: PathBuf,
}

impl Trace {
    /// What one session leaves.
    pub(super) fn of_session(place: &Place, session: &SessionId, what: &str) -> Self {
        Self { path: place.store.join(FOLDER).join(format!("{}.{what}", session.as_str())) }
    }

    /// What all sessions leave together.
    pub(super) fn named(place: &Place, name: &str) -> Self {
        Self { path: place.store.join(FOLDER).join(name) }
    }

    /// Adds a line. Lines of several processes do not mix: each is one write at the end.
    pub(super) fn add(&self, line: &str) {
        let text = format!("{}\n", line.replace('\n', " "));
        let length = self.open_shared().and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.metadata().map(|metadata| metadata.len())
        });
        if length.is_ok_and(|length| length > BYTES_MAX) {
            self.shorten();
        }
    }

    /// The file, for a moment in which nobody shortens it: a line that is written to what was
    /// shortened meanwhile is lost. Whoever shortens is waited for only so long.
    fn open_shared(&self) -> std::io::Result<File> {
        for _ in 0..TRIES_MAX {
            let file = self.open()?;
            let locked = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
            if locked && is_at(&file, &self.path) {
                return Ok(file);
            }
            if !locked {
                std::thread::sleep(TRY_AGAIN);
            }
        }
        self.open()
    }

    fn open(&self) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        match options.open(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if let Some(folder) = self.path.parent() {
                    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                }
                options.open(&self.path)
            }
            other => other,
        }
    }

    /// All lines, oldest first; nothing when there is no trace.
    pub(super) fn text(&self) -> String {
        fs::read(&self.path).map(text_of).unwrap_or_default()
    }

    /// Its last lines, then more of them, then all: what is asked for is mostly recent, and a hook
    /// does not read all that a long session has left.
    pub(super) fn tails(&self) -> impl Iterator<Item = String> {
        let file = File::open(&self.path).ok();
        let opened = file.and_then(|file| Some((file.metadata().ok()?.len(), file)));
        let (length, file) = opened.map_or((0, None), |(length, file)| (length, Some(file)));
        let parts = TAILS.into_iter().filter(move |part| *part < length).chain([length]);
        parts.map_while(move |part| {
            let mut file = file.as_ref()?;
            let mut bytes = Vec::with_capacity(usize::try_from(part).ok()?);
            file.seek(SeekFrom::Start(length - part)).ok()?;
            file.take(part).read_to_end(&mut bytes).ok()?;
            if part < length {
                // The first line is cut in two: it goes.
                let cut =
                    bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
                bytes.drain(..cut);
            }
            Some(text_of(bytes))
        })
    }

    /// The lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }

    /// The lines, and the trace is empty after. Each line is taken once, and by one; where others
    /// write all the time it is left to the next.
    pub(super) fn take(&self) -> Vec<String> {
        let Some(mut file) = self.open_alone() else { return Vec::new() };
        let mut bytes = Vec::new();
        let taken = file.read_to_end(&mut bytes).and_then(|_| fs::remove_file(&self.path));
        let text = if taken.is_ok() { text_of(bytes) } else { String::new() };
        text.lines().map(str::to_owned).collect()
    }

    /// The file, for a moment in which nobody else has it; nothing where there is none.
    fn open_alone(&self) -> Option<File> {
        for _ in 0..TRIES_MAX {
            let file = File::open(&self.path).ok()?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                return Some(file).filter(|file| is_at(file, &self.path));
            }
            std::thread::sleep(TRY_AGAIN);
        }
        None
    }

    /// Whoever comes second leaves it to the first.
    fn shorten(&self) {
        let Ok(mut file) = File::open(&self.path) else { return };
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if !locked || length <= BYTES_MAX || !is_at(&file, &self.path) {
            return;
        }
        let mut rest = Vec::new();
        let read = file
            .seek(SeekFrom::Start(length - BYTES_MAX / 2))
            .and_then(|_| file.read_to_end(&mut rest));
        if read.is_err() {
            return;
        }
        // The first line is cut in two: it goes.
        let cut = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
        // Traces of one session differ in their endings only, and each has its own.
        let mut fresh = self.path.clone().into_os_string();
        fresh.push(".new");
        let fresh = PathBuf::from(fresh);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let written = options.open(&fresh).and_then(|mut file| file.write_all(&rest[cut..]));
        if written.is_ok() {
            let _ = fs::rename(&fresh, &self.path);
        }
    }
}

/// What was cut short by a full disk is no reason to lose the rest.
fn text_of(bytes: Vec<u8>) -> String {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    String::from_utf8(bytes).unwrap_or_else(|error| lossy(error.as_bytes()))
}

/// Is this still the file of that name?
fn is_at(file: &File, path: &Path) -> bool {
    let inode = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (here, there) = (file.metadata().ok(), fs::metadata(path).ok());
    here.is_some() && here.map(inode) == there.map(inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_grow_and_hold_whole_lines_only() {
        let folder = tempfile::tempdir().unwrap();
        let trace = Trace { path: folder.path().join("of") };
        assert_eq!(trace.tails().count(), 0);
        trace.add("one");
        trace.add("two\nlines");
        assert_eq!(trace.tails().collect::<Vec<_>>(), ["one\ntwo lines\n"]);
        (0..20_000).for_each(|number| trace.add(&format!("{number:08}")));
        let tails: Vec<String> = trace.tails().collect();
        assert_eq!(tails.len(), 3);
        for tail in &tails {
            assert!(tail.ends_with("\n00019999\n"));
            assert!(tail.lines().skip(2).all(|line| line.len() == 8));
        }
        assert!(tails[0].lines().all(|line| line.len() == 8), "no line cut in two");
        assert!(tails[2].starts_with("one\n"));
    }

    #[test]
    fn each_line_is_taken_once() {
        const LINES: usize = 2_000;
        let folder = tempfile::tempdir().unwrap();
        let trace = || Trace { path: folder.path().join("of.words") };
        let written = std::sync::atomic::AtomicBool::new(false);
        let order = std::sync::atomic::Ordering::SeqCst;
        let mut taken: Vec<String> = std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..LINES).for_each(|at| trace().add(&at.to_string()));
                written.store(true, order);
            });
            let taker = || {
                let mut taken = Vec::new();
                while !written.load(order) {
                    taken.extend(trace().take());
                }
                taken
            };
            let takers = [scope.spawn(taker), scope.spawn(taker)];
            takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
        });
        taken.extend(trace().take());
        taken.sort_by_key(|line| line.parse::<usize>().unwrap());
        let all: Vec<String> = (0..LINES).map(|at| at.to_string()).collect();
        assert_eq!(taken, all);
        assert_eq!(trace().take(), [""; 0]);
    }

    #[test]
    fn a_letter_that_was_cut_short_takes_no_other_line_along() {
        let folder = tempfile::tempdir().unwrap();
        let trace = Trace { path: folder.path().join("of") };
        trace.add("one");
        fs::write(&trace.path, b"one\n\xc3\ntwo\n").unwrap();
        assert_eq!(trace.lines().len(), 3);
    }

    #[test]
    fn what_is_added_while_others_shorten_is_kept() {
        const WRITERS: usize = 4;
        let folder = tempfile::tempdir().unwrap();
        // A few of these are as long as a trace may be, so that it is shortened all the time.
        let long = "x".repeat(40_000);
        let together = std::sync::Barrier::new(WRITERS);
        let lost = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                // Two traces of one session, each with two writers.
                let path = folder.path().join(["of.one", "of.two"][writer % 2]);
                let (long, together, lost) = (&long, &together, &lost);
                scope.spawn(move || {
                    let trace = Trace { path };
                    for at in 0..100 {
                        let line = format!("{writer} {at} {long}");
                        together.wait();
                        trace.add(&line);
                        together.wait();
                        if !trace.lines().contains(&line) {
                            lost.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(lost.into_inner(), 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside");
    }
}
