//! Commits that a shell command made, seen afterwards by git's own record of where HEAD was.
//!
//! Owns the finding of what was committed around the git door: some clients switch git's hooks off
//! in their shells, and then nothing stood in the way. What came in by a pull, a merge or a
//! checkout was made by others before, and is not looked at.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use baton_core::id::SessionId;
use baton_core::resource::Resource;

use crate::failure::Failure;
use crate::git::{Git, Oid};
use crate::place::Place;
use crate::workspace::Workspace;

/// Files of commits that are looked at; who commits more has imported something.
const FILES_MAX: usize = 50;
/// The end of the record is enough: a command makes few commits.
const MOVES_MAX: usize = 20;
const BYTES_MAX: u64 = 64 * 1024;

/// The files in commits that were made since git's record was so long, but for those of other
/// sessions.
pub(super) fn since(
    workspace: &Workspace,
    me: &SessionId,
    begun: Option<u64>,
) -> Result<Vec<Resource>, Failure> {
    let place = &workspace.place;
    let (Some(begun), Some(record)) = (begun, record(place)) else {
        return Ok(Vec::new());
    };
    let moves = moves(&record, begun);
    if moves.is_empty() {
        return Ok(Vec::new());
    }
    let git = Git::in_tree(&place.root)?;
    let mut files = BTreeSet::new();
    for (old, new) in moves {
        for path in git.changed_between(&old, &new)?.into_iter().take(FILES_MAX) {
            let by = git.landed(&old, &new, &path)?;
            let others = by.iter().all(|one| one.session.as_ref().is_some_and(|s| *s != me.0));
            if !others || by.is_empty() {
                files.insert(path);
            }
        }
    }
    Ok(files.iter().filter_map(|path| Resource::literal(path).ok()).collect())
}

/// Where HEAD was when its record was so long, if it has moved since, whatever moved it.
pub(super) fn head_at(place: &Place, length: Option<u64>) -> Option<Oid> {
    let text = text_since(&record(place)?, length?);
    Oid::parse(text.lines().next()?.split(' ').next()?).filter(|oid| !is_null(oid))
}

/// How long git's record of HEAD is.
pub(super) fn length(place: &Place) -> Option<u64> {
    record(place).and_then(|record| std::fs::metadata(record).ok()).map(|found| found.len())
}

/// Where HEAD of this tree has been, in git's own words.
pub(crate) fn record(place: &Place) -> Option<PathBuf> {
    place.git.as_ref().map(|dirs| dirs.git_dir.join("logs/HEAD"))
}

/// From where to where HEAD went by commits since its record was so long.
fn moves(record: &Path, begun: u64) -> Vec<(Oid, Oid)> {
    let text = text_since(record, begun);
    let moved = |line: &str| {
        let (head, what) = line.split_once('\t')?;
        let mut words = head.split(' ');
        let (old, new) = (Oid::parse(words.next()?)?, Oid::parse(words.next()?)?);
        (what.starts_with("commit") && !is_null(&old)).then_some((old, new))
    };
    text.lines().rev().take(MOVES_MAX).filter_map(moved).collect()
}

fn text_since(record: &Path, begun: u64) -> String {
    let mut text = Vec::new();
    let read = File::open(record).and_then(|mut file| {
        file.seek(SeekFrom::Start(begun))?;
        file.take(BYTES_MAX).read_to_end(&mut text)
    });
    String::from_utf8_lossy(if read.is_ok() { &text } else { &[] }).into_owned()
}

/// The first commit of all has nothing before it.
fn is_null(oid: &Oid) -> bool {
    oid.as_str().bytes().all(|byte| byte == b'0')
}
