//! What a line does where its files are as they are: the doubts that a look at them ends.
//!
//! Owns which of two readings of a word holds. It refuses to look itself: whoever asks says what is
//! there. Invariant: nothing is taken away that could still be written.

use std::collections::BTreeSet;

use super::git;
use super::outcome::{Deeds, How, Place, TEMPORARY, When, Write};

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    File,
    Folder,
    Missing,
}

impl Deeds {
    /// Leaves only what holds there. Where nothing can be seen, `look` says nothing, and both
    /// readings stay.
    pub fn settle(&mut self, look: impl Fn(&Place) -> Option<Seen>) {
        let folders: BTreeSet<&Place> = self.commands.iter().map(|one| &one.folder).collect();
        let entered = folders.into_iter().all(|folder| self.is_entered(folder, &look));
        self.harmless &= entered;
        let moves = |write: &Write| {
            write.how == How::MoveFrom && look(&write.place).is_none_or(|seen| seen == Seen::Folder)
        };
        let folder_moves = self.writes.iter().any(moves);
        self.writes.retain(|write| holds(write, &look));
        for write in self.writes.iter_mut().filter(|write| write.below && !write.part) {
            write.below = match (look(&write.place), write.how) {
                (Some(Seen::File), _) => false,
                (Some(Seen::Missing), How::MoveTo) => folder_moves,
                // What is copied may be a folder.
                (Some(Seen::Missing), How::Copy) => true,
                (Some(Seen::Missing), _) => false,
                (Some(Seen::Folder) | None, _) => true,
            };
        }
        for command in &mut self.commands {
            let Some((at, place)) = git::doubtful_name(command) else { continue };
            if look(&place).is_some_and(|seen| seen != Seen::Missing) {
                command.argv.insert(at, "--".into());
            }
        }
    }
}

impl Deeds {
    /// Does a command surely run in that folder? A `cd` that fails leaves it where it was; a folder
    /// that the line makes itself is there by then.
    fn is_entered(&self, folder: &Place, look: &impl Fn(&Place) -> Option<Seen>) -> bool {
        let temporary = matches!(folder, Place::Path(text) if text.starts_with(TEMPORARY));
        if *folder == Place::here() || temporary {
            return true;
        }
        let made = |write: &Write| write.how == How::Folder && is_above(folder, &write.place);
        !matches!(look(folder), Some(Seen::Missing | Seen::File)) || self.writes.iter().any(made)
    }
}

/// Is it that folder, or one on the way to it?
fn is_above(folder: &Place, place: &Place) -> bool {
    let (folder, place) = match (folder, place) {
        (Place::Path(folder), Place::Path(place)) => (folder, place),
        (Place::Home(folder), Place::Home(place)) => (folder, place),
        _ => return false,
    };
    let rest = place.strip_prefix(folder.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn holds(write: &Write, look: &impl Fn(&Place) -> Option<Seen>) -> bool {
    let seen = match write.when {
        When::Always => return true,
        When::There | When::NoFolder => look(&write.place),
        When::InFolder => folder_of(&write.place).and_then(|folder| look(&folder)),
    };
    let Some(seen) = seen else { return true };
    match write.when {
        When::Always => true,
        When::There => seen != Seen::Missing,
        When::NoFolder => seen != Seen::Folder,
        When::InFolder => seen == Seen::Folder,
    }
}

/// The folder around it; none for a name alone.
pub(super) fn folder_of(place: &Place) -> Option<Place> {
    let parent = |text: &str| {
        let (folder, _) = text.trim_end_matches('/').rsplit_once('/')?;
        Some(if folder.is_empty() { "/".to_owned() } else { folder.to_owned() })
    };
    match place {
        Place::Path(text) => parent(text).map(Place::Path),
        Place::Home(text) => Some(Place::Home(parent(text).unwrap_or_default())),
        Place::Root(_) | Place::Pattern(_) | Place::Unknown => None,
    }
}
