//! What became of the functions of a file between two texts of it.
//!
//! Owns the comparison by name and place: which are new, gone, called otherwise, or only different
//! inside. Of a language that is not known here nothing is said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::{self, Function, Parameter};
use super::sides::takes_the_same;

/// The functions that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// They are called in another way now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resigned: Vec<Resigned>,
    /// They are called as before and do something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewritten: Vec<String>,
}

/// A function with its parameters before and after, as `name(a: T, b)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resigned {
    pub before: String,
    pub after: String,
}

impl Changes {
    /// What the functions of `path` were, and are.
    pub fn between(path: &str, before: &str, after: &str) -> Self {
        let (old, new) = (reading::read(path, before), reading::read(path, after));
        let same = |a: &Function, b: &Function| a.name == b.name && a.container == b.container;
        let mut changes = Self::default();
        for function in &new.functions {
            match old.functions.iter().find(|one| same(one, function)) {
                None => changes.added.push(signature(function)),
                Some(was) if !takes_the_same(was, function) => changes
                    .resigned
                    .push(Resigned { before: signature(was), after: signature(function) }),
                Some(was) if was.body != function.body => changes.rewritten.push(function.symbol()),
                Some(_) => {}
            }
        }
        let gone = old.functions.iter().filter(|was| !new.functions.iter().any(|f| same(was, f)));
        changes.removed.extend(gone.map(signature));
        changes
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Is something called otherwise than before?
    pub fn at_the_surface(&self) -> bool {
        !(self.added.is_empty() && self.removed.is_empty() && self.resigned.is_empty())
    }

    /// The names alone, for a short remark.
    pub fn names(&self) -> Vec<&str> {
        let plain =
            |signature: &String| -> usize { signature.find('(').unwrap_or(signature.len()) };
        let resigned = self.resigned.iter().map(|one| &one.after);
        let signed = self.added.iter().chain(&self.removed).chain(resigned);
        let mut names: Vec<&str> = signed.map(|one| &one[..plain(one)]).collect();
        names.extend(self.rewritten.iter().map(String::as_str));
        names.dedup();
        names
    }
}

fn signature(function: &Function) -> String {
    let one = |parameter: &Parameter| match parameter.kind.as_str() {
        "" => parameter.name.clone(),
        kind => format!("{}: {kind}", parameter.name),
    };
    let parameters: Vec<String> = function.parameters.iter().map(one).collect();
    format!("{}({})", function.symbol(), parameters.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_has_its_place() {
        let before = "pub fn a(x: u8) {}\npub fn b() { one(); }\npub fn c() {}\nfn d() {}\n";
        let after =
            "pub fn a(x: u8, y: u8) {}\npub fn b() { two(); }\nfn d() {}\nfn e(z: &str) {}\n";
        let changes = Changes::between("src/a.rs", before, after);
        assert_eq!(changes.added, ["e(z: &str)"]);
        assert_eq!(changes.removed, ["c()"]);
        let resigned = Resigned { before: "a(x: u8)".into(), after: "a(x: u8, y: u8)".into() };
        assert_eq!(changes.resigned, [resigned]);
        assert_eq!(changes.rewritten, ["b"]);
        assert_eq!(changes.names(), ["e", "c", "a", "b"]);
        assert!(changes.at_the_surface());
        assert!(Changes::between("src/a.rs", before, before).is_empty());
        assert!(Changes::between("notes.txt", before, after).is_empty());
    }
}
