//! What one side changed, in words of code: functions gained, lost and emptied, new calls, routes,
//! classes, numbers and packages.
//!
//! Owns the step from two texts of a file to that list. Only changed files are read, and each text
//! once. It compares nothing with another side.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::lines;
use super::manifests;
use super::pairs::readable;
use super::reading::{self, Called, Function, Reading, Tongue};
use crate::git::{Difference, Oid};

/// Changed files of one side that are read; a side with more is a machine's.
pub(super) const FILES_READ_MAX: usize = 2_000;

/// A name that was gained at a place; `body` tells two of them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gained {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) body: String,
}

/// A function that is gone or takes something else.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    pub(super) file: String,
    pub(super) old: Function,
    pub(super) new: Option<Function>,
}

/// A call in a line that this side wrote.
#[derive(Clone, Debug)]
pub(super) struct NewCall {
    pub(super) file: String,
    pub(super) called: Called,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    pub(super) functions: Vec<(String, Function)>,
    pub(super) lost: Vec<Lost>,
    pub(super) emptied: Vec<(String, Function)>,
    pub(super) calls: Vec<NewCall>,
    /// By method and path.
    pub(super) routes: Vec<(String, Gained)>,
    pub(super) classes: Vec<(String, Gained)>,
    /// By folder and number.
    pub(super) numbers: Vec<((String, u64), Gained)>,
    /// By manifest and package; the body is the version.
    pub(super) packages: Vec<((String, String), Gained)>,
    /// What each file with new calls defines itself, and its text.
    pub(super) callers: BTreeMap<String, (BTreeSet<String>, Arc<str>)>,
}

/// Sides by where they began and what they are: both are commits, so a side never changes.
pub(super) type Kept = BTreeMap<(Oid, Oid), Arc<Side>>;

/// Is anything read from such a file?
pub(super) fn is_read(path: &str) -> bool {
    Tongue::of(path).is_some() || manifests::is_manifest(path) || manifests::is_style(path)
}

/// Texts and what is in them, each read once for all sides.
#[derive(Debug, Default)]
pub(super) struct Library {
    pub(super) blobs: BTreeMap<Oid, Vec<u8>>,
    texts: BTreeMap<Oid, Option<Arc<str>>>,
    readings: BTreeMap<(Oid, String), Arc<Reading>>,
}

impl Library {
    pub(super) fn of(blobs: BTreeMap<Oid, Vec<u8>>) -> Self {
        Self { blobs, ..Self::default() }
    }

    pub(super) fn text(&mut self, blob: Option<&Oid>) -> Option<Arc<str>> {
        let blob = blob?;
        if let Some(known) = self.texts.get(blob) {
            return known.clone();
        }
        let text = self.blobs.get(blob).and_then(|bytes| readable(bytes)).map(Arc::from);
        self.texts.insert(blob.clone(), text.clone());
        text
    }

    pub(super) fn reading(&mut self, path: &str, blob: Option<&Oid>) -> Arc<Reading> {
        let (Some(oid), Some(text)) = (blob, self.text(blob)) else { return Arc::default() };
        let extension = path.rsplit('.').next().unwrap_or_default().to_owned();
        let read = || Arc::new(reading::read(path, &text));
        self.readings.entry((oid.clone(), extension)).or_insert_with(read).clone()
    }
}

impl Side {
    pub(super) fn of(differences: &[Difference], library: &mut Library) -> Self {
        let mut side = Self::default();
        for one in differences.iter().filter(|one| one.before.is_none() && one.after.is_some()) {
            if let Some((folder, number)) = manifests::numbered(&one.path) {
                let (file, body) = (one.path.clone(), one.path.clone());
                side.numbers.push(((folder.to_owned(), number), Gained { file, line: 1, body }));
            }
        }
        for one in differences.iter().filter(|one| is_read(&one.path)).take(FILES_READ_MAX) {
            // A file that is too large, or no text, is not read: nothing is said of it.
            let unread = |library: &mut Library, blob: &Option<Oid>| {
                blob.is_some() && library.text(blob.as_ref()).is_none()
            };
            if unread(library, &one.before) || unread(library, &one.after) {
                continue;
            }
            if Tongue::of(&one.path).is_some() {
                side.code(one, library);
            } else {
                side.plain(one, library);
            }
        }
        side.forget_moved();
        side
    }

    /// What code gained and lost.
    fn code(&mut self, one: &Difference, library: &mut Library) {
        let before = library.reading(&one.path, one.before.as_ref());
        let after = library.reading(&one.path, one.after.as_ref());
        let same = |a: &Function, b: &Function| a.name == b.name && a.container == b.container;
        for function in &after.functions {
            match before.functions.iter().find(|old| same(old, function)) {
                None => self.functions.push((one.path.clone(), function.clone())),
                Some(old) if function.empty && !old.empty && !old.declared => {
                    self.emptied.push((one.path.clone(), function.clone()));
                }
                Some(_) => {}
            }
        }
        for old in &before.functions {
            let now: Vec<&Function> = after.functions.iter().filter(|new| same(old, new)).collect();
            if now.iter().any(|new| takes_the_same(old, new)) {
                continue;
            }
            let was_there = |new: &&&Function| {
                before.functions.iter().any(|old| same(old, new) && takes_the_same(old, new))
            };
            let new = now.iter().find(|new| !was_there(new)).map(|new| (*new).clone());
            if new.is_some() || now.is_empty() {
                self.lost.push(Lost { file: one.path.clone(), old: old.clone(), new });
            }
        }
        self.written(one, &before, &after, library);
    }

    /// Calls and routes in lines that this side wrote.
    fn written(
        &mut self,
        one: &Difference,
        before: &Reading,
        after: &Reading,
        library: &mut Library,
    ) {
        let Some(text) = library.text(one.after.as_ref()) else { return };
        let old = library.text(one.before.as_ref()).unwrap_or_else(|| Arc::from(""));
        let hunks = lines::diff(&lines::split(&old), &lines::split(&text));
        let is_new =
            |line: usize| hunks.iter().any(|hunk| hunk.after.contains(&line.saturating_sub(1)));
        let calls = after.calls.iter().filter(|call| is_new(call.line));
        let new: Vec<NewCall> = calls
            .map(|called| NewCall { file: one.path.clone(), called: called.clone() })
            .collect();
        if !new.is_empty() {
            let names = after.functions.iter().map(|function| function.name.clone()).collect();
            self.callers.insert(one.path.clone(), (names, text.clone()));
            self.calls.extend(new);
        }
        let all: Vec<&str> = lines::split(&text);
        for route in &after.routes {
            if before.routes.iter().any(|old| old.name == route.name) {
                continue;
            }
            let body = all.get(route.line - 1).map_or("", |line| line.trim()).to_owned();
            let gained = Gained { file: one.path.clone(), line: route.line, body };
            self.routes.push((route.name.clone(), gained));
        }
    }

    /// What manifests and style sheets gained.
    fn plain(&mut self, one: &Difference, library: &mut Library) {
        let text = |blob: Option<&Oid>, library: &mut Library| {
            library.text(blob).unwrap_or_else(|| Arc::from(""))
        };
        let (old, new) = (text(one.before.as_ref(), library), text(one.after.as_ref(), library));
        if manifests::is_style(&one.path) {
            let before = manifests::classes(&old);
            for (name, (line, body)) in manifests::classes(&new) {
                if !before.contains_key(&name) {
                    self.classes.push((name, Gained { file: one.path.clone(), line, body }));
                }
            }
            return;
        }
        let before = manifests::dependencies(&one.path, &old);
        for (package, version) in manifests::dependencies(&one.path, &new) {
            if before.contains_key(&package) {
                continue;
            }
            let line = new.lines().position(|line| line.contains(&package)).map_or(1, |at| at + 1);
            let gained = Gained { file: one.path.clone(), line, body: version };
            self.packages.push(((one.path.clone(), package), gained));
        }
    }

    /// What is gone here and came back elsewhere as it was has only moved.
    fn forget_moved(&mut self) {
        let gained = &self.functions;
        self.lost.retain(|lost| {
            let moved = |(_, new): &(String, Function)| {
                new.name == lost.old.name && takes_the_same(&lost.old, new)
            };
            lost.new.is_some() || !gained.iter().any(moved)
        });
    }
}

/// Can both be called in the same way?
pub(super) fn takes_the_same(one: &Function, two: &Function) -> bool {
    let about = |function: &Function| -> Vec<(String, bool, bool)> {
        let each = |parameter: &reading::Parameter| {
            (parameter.kind.clone(), parameter.optional, parameter.rest)
        };
        function.parameters.iter().map(each).collect()
    };
    about(one) == about(two)
}
