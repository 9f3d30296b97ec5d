//! What changed of a file at its surface, and what two such changes come to.
//!
//! Owns the sum: what was added and then removed is no news, what was changed twice is told with
//! its first and its last form. It reads no code: signatures are texts here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resource::Resource;

/// So many of each are kept; the rest is counted.
const LISTED_MAX: usize = 50;
/// A longer signature is cut.
const SIGNATURE_CHARS_MAX: usize = 200;

/// What became of one file that others build on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    pub path: Resource,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// What is called in another way now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resigned: Vec<Resigned>,
    /// How many lines changed in a file whose functions cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
    /// The file is not there any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// How much more than is listed changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u32,
}

/// A signature before and after, as `name(a: T, b)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resigned {
    pub before: String,
    pub after: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl FileChange {
    pub fn nothing(path: Resource) -> Self {
        let (added, removed, resigned) = (Vec::new(), Vec::new(), Vec::new());
        Self { path, added, removed, resigned, lines: None, deleted: false, more: 0 }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::nothing(self.path.clone())
    }

    /// Within what a record may hold.
    #[must_use]
    pub fn cut(mut self) -> Self {
        let mut more = cut(&mut self.added, |_| {}) + cut(&mut self.removed, |_| {});
        more += cut(&mut self.resigned, |one| {
            shorten(&mut one.before);
            shorten(&mut one.after);
        });
        self.added.iter_mut().chain(&mut self.removed).for_each(shorten);
        self.more += more;
        self
    }

    /// This, and what came after it.
    pub fn then(&mut self, later: &Self) {
        for gone in &later.removed {
            if take(&mut self.added, gone) {
                continue;
            }
            let was = self.resigned.iter().position(|one| one.after == *gone);
            let first = was.map_or_else(|| gone.clone(), |at| self.resigned.remove(at).before);
            self.removed.push(first);
        }
        for one in &later.resigned {
            if take(&mut self.added, &one.before) {
                self.added.push(one.after.clone());
            } else if let Some(at) = self.resigned.iter().position(|was| was.after == one.before) {
                self.resigned[at].after.clone_from(&one.after);
                if self.resigned[at].before == one.after {
                    self.resigned.remove(at);
                }
            } else {
                self.resigned.push(one.clone());
            }
        }
        for new in &later.added {
            if !take(&mut self.removed, new) {
                self.added.push(new.clone());
            }
        }
        self.lines = match (self.lines, later.lines) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
        };
        self.deleted = later.deleted;
        self.more = self.more.saturating_add(later.more);
        *self = self.clone().cut();
    }
}

fn take(from: &mut Vec<String>, what: &String) -> bool {
    let at = from.iter().position(|one| one == what);
    at.map(|at| from.remove(at)).is_some()
}

fn cut<T>(list: &mut Vec<T>, mend: impl FnMut(&mut T)) -> u32 {
    let more = list.len().saturating_sub(LISTED_MAX);
    list.truncate(LISTED_MAX);
    list.iter_mut().for_each(mend);
    u32::try_from(more).unwrap_or(u32::MAX)
}

fn shorten(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(SIGNATURE_CHARS_MAX) {
        text.truncate(at);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(added: &[&str], removed: &[&str], resigned: &[(&str, &str)]) -> FileChange {
        let texts = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
        let resign = |(before, after): &(&str, &str)| Resigned {
            before: (*before).to_owned(),
            after: (*after).to_owned(),
        };
        FileChange {
            added: texts(added),
            removed: texts(removed),
            resigned: resigned.iter().map(resign).collect(),
            ..FileChange::nothing(Resource::literal("a.rs").unwrap())
        }
    }

    #[test]
    fn two_changes_come_to_what_is_between_first_and_last() {
        let mut both = change(&["a()", "b()"], &["old()"], &[("c()", "c(x)"), ("d()", "d(x)")]);
        let later = change(
            &["old()", "e()"],
            &["a()", "d(x)"],
            &[("b()", "b(y)"), ("c(x)", "c(x, y)"), ("f()", "f(z)")],
        );
        both.then(&later);
        let whole = change(&["b(y)", "e()"], &["d()"], &[("c()", "c(x, y)"), ("f()", "f(z)")]);
        assert_eq!(both, whole);
        let mut there = change(&["a()"], &["b()"], &[("c()", "c(x)")]);
        there.then(&change(&["b()"], &["a()"], &[("c(x)", "c()")]));
        assert!(there.is_empty(), "{there:?}");
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let many: Vec<String> = (0..60).map(|at| format!("f{at}({})", "x".repeat(500))).collect();
        let names: Vec<&str> = many.iter().map(String::as_str).collect();
        let cut = change(&names, &[], &[]).cut();
        assert_eq!((cut.added.len(), cut.more), (LISTED_MAX, 10));
        assert!(cut.added[0].chars().count() <= SIGNATURE_CHARS_MAX + 1);
    }
}
