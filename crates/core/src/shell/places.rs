//! The places that a line is about, for whoever does not know yet in which workspace it acts.
//!
//! Owns which of its words lead somewhere: what it writes, where it runs, where it is a danger.
//! Invariant: the folder where the line started is none of them.

use std::collections::BTreeSet;

use super::outcome::{Argument, Command, Deeds, Place};
use super::{danger, read};

/// Known paths that a line writes, runs in or endangers, each once, in the order of the line.
pub fn places(line: &str) -> Vec<Place> {
    let deeds = read(line);
    let somewhere = |place: &Place| match place {
        Place::Path(text) => text != ".",
        Place::Home(_) => true,
        Place::Root(_) | Place::Pattern(_) | Place::Unknown => false,
    };
    let mut known = BTreeSet::new();
    all(&deeds).filter(|place| somewhere(place) && known.insert(place.clone())).collect()
}

fn all(deeds: &Deeds) -> impl Iterator<Item = Place> {
    let written = deeds.writes.iter().map(|write| write.place.parted().0);
    let folders = deeds.commands.iter().map(|command| command.folder.clone());
    let dangers = danger::of(deeds).into_iter().map(|danger| danger.folder);
    let turned = deeds.commands.iter().filter(|one| one.name() == "git").flat_map(elsewhere);
    dangers.chain(written).chain(folders).chain(turned)
}

/// Repositories that git is turned to: `--git-dir=/x/.git`, `GIT_WORK_TREE=/x`.
fn elsewhere(command: &Command) -> Vec<Place> {
    let variables = command.assigned.iter();
    let variables = variables.filter(|(name, _)| name.starts_with("GIT_")).map(|(_, value)| value);
    let words = variables.chain(command.argv.iter().skip(1)).filter_map(Argument::text);
    let paths = words.map(|word| word.split_once('=').map_or(word, |(_, value)| value));
    let paths = paths.filter(|path| path.starts_with('/'));
    paths.map(|path| Place::Path(path.to_owned())).collect()
}
