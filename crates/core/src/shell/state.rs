//! The state of a shell while it runs: folder, variables, functions.
//!
//! Owns what two ways through a script have in common. Invariant: what differs between them is
//! unknown, never one of the two.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::outcome::{Argument, Place};
use super::tree::Node;

/// Variables that are remembered, and the longest value.
const VARIABLES_MAX: usize = 128;
const VALUE_BYTES_MAX: usize = 4096;

/// What the shell knows while it runs.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) folder: Place,
    pub(super) before: Option<Place>,
    /// Folders that `pushd` left.
    pub(super) pushed: Vec<Place>,
    /// None: it was set to something that is not known.
    pub(super) variables: BTreeMap<String, Option<Argument>>,
    /// `$1` and so on.
    pub(super) positional: Option<Vec<Argument>>,
    pub(super) functions: BTreeMap<String, Rc<Node>>,
}

impl State {
    /// What holds whichever of the two ways was taken.
    pub(super) fn meet(&mut self, other: &Self) {
        if self.folder != other.folder {
            self.folder = Place::Unknown;
        }
        if self.before != other.before {
            self.before = None;
        }
        if self.pushed != other.pushed {
            self.pushed.clear();
        }
        if self.positional != other.positional {
            self.positional = None;
        }
        for (name, value) in &other.variables {
            match self.variables.get(name) {
                Some(known) if known == value => {}
                _ => drop(self.variables.insert(name.clone(), None)),
            }
        }
        for (name, value) in &mut self.variables {
            if other.variables.get(name) != Some(value) {
                *value = None;
            }
        }
        for (name, body) in &other.functions {
            self.functions.entry(name.clone()).or_insert_with(|| Rc::clone(body));
        }
    }

    /// Sets a variable; one too many, or one too long, is just not known.
    pub(super) fn set(&mut self, name: &str, value: Option<Argument>) {
        let fits = |value: &Argument| value.shown().len() <= VALUE_BYTES_MAX;
        let special = matches!(name, "HOME" | "PWD" | "OLDPWD" | "TMPDIR" | "IFS");
        if self.variables.len() < VARIABLES_MAX || special || self.variables.contains_key(name) {
            self.variables.insert(name.to_owned(), value.filter(fits));
        }
    }

    pub(super) fn differs(&self, other: &Self) -> bool {
        self.folder != other.folder || self.variables != other.variables
    }

    /// Nothing is known any more of what could have changed.
    pub(super) fn forget(&mut self) {
        self.folder = Place::Unknown;
        self.before = None;
        self.variables.values_mut().for_each(|value| *value = None);
    }
}
