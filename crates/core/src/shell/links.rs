//! Links that a line makes itself: what is written at one lands in what it leads to.
//!
//! Owns which places are the same file by then. Those that were there before are whoever's who sees
//! the files. Invariant: a write at a link whose end is not known is a write nobody knows where.

use super::outcome::{Argument, How, Place};

/// Links of one line that are followed; with more, every write may land anywhere.
const LINKS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Links {
    /// Where each is, and what it leads to.
    made: Vec<(Place, Place)>,
    /// There are others, nobody knows where.
    unsure: bool,
}

impl Links {
    pub(super) fn add(&mut self, at: &Place, leads_to: Place) {
        let known = matches!(at, Place::Path(_) | Place::Home(_)) && self.made.len() < LINKS_MAX;
        match (plain(at), known) {
            (_, false) => self.unsure = true,
            (at, true) if at == plain(&leads_to) => {}
            (at, true) => self.made.push((at, leads_to)),
        }
    }

    /// The other places that a write at this one lands in.
    pub(super) fn behind(&self, place: &Place, how: How) -> Vec<Place> {
        let mut found = Vec::new();
        if self.made.is_empty() && !self.unsure {
            return found;
        }
        let follows =
            matches!(how, How::Create | How::Change | How::Restore | How::Append | How::Copy);
        let mut open = vec![plain(place)];
        while let Some(place) = open.pop() {
            for (at, leads_to) in &self.made {
                let Some(rest) = below(at, &place) else { continue };
                // What removes, moves or replaces a link does that to the link alone.
                let there = match rest.as_str() {
                    "" if !follows => continue,
                    "" => leads_to.clone(),
                    rest => leads_to.join(&rest.into()),
                };
                if !found.contains(&there) {
                    open.push(plain(&there));
                    found.push(there);
                }
            }
            if found.len() > LINKS_MAX {
                found.push(Place::Unknown);
                break;
            }
        }
        let anywhere = self.unsure || matches!(place, Place::Pattern(_) | Place::Root(_));
        if anywhere && follows && !found.contains(&Place::Unknown) {
            found.push(Place::Unknown);
        }
        found
    }
}

/// The same place without `.` and `..`, as far as letters tell.
fn plain(place: &Place) -> Place {
    match place {
        Place::Path(text) => Place::here().entered(&Argument::Text(text.clone())),
        Place::Home(text) => Place::Home(String::new()).entered(&Argument::Home(text.clone())),
        other => other.clone(),
    }
}

/// What of a place lies below the link, empty for the link itself. Of an absolute path and one from
/// where the line started nobody knows here how they lie: the same names are taken for the same.
fn below(link: &Place, place: &Place) -> Option<String> {
    let (link, link_is_full) = words(link)?;
    let (place, place_is_full) = words(place)?;
    let rest = match (link_is_full, place_is_full) {
        (None, Some(_)) => {
            let at = place.windows(link.len()).position(|names| names == link)?;
            &place[at + link.len()..]
        }
        (Some(_), None) => {
            let same = |count: &usize| link.ends_with(&place[..*count]);
            let count = (1..=place.len().min(link.len())).rev().find(same)?;
            &place[count..]
        }
        (link_from, place_from) => {
            place.strip_prefix(&link[..]).filter(|_| link_from == place_from)?
        }
    };
    Some(rest.join("/"))
}

/// The names of a path, and where it begins, if that is not where the line started.
fn words(place: &Place) -> Option<(Vec<&str>, Option<char>)> {
    let (text, from) = match place {
        Place::Path(text) if text.starts_with('/') => (text, Some('/')),
        Place::Path(text) => (text, None),
        Place::Home(text) => (text, Some('~')),
        Place::Root(_) | Place::Pattern(_) | Place::Unknown => return None,
    };
    let names: Vec<&str> = text.split('/').filter(|name| !name.is_empty()).collect();
    Some((names, from)).filter(|(names, _)| !names.is_empty())
}
