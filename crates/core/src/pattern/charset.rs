//! Sets of characters of folded text, and what one `?` or `[…]` stands for in it.
//!
//! One typed character can be several characters of the key: é is e and an accent, ß is ss. A
//! wildcard for one character therefore accepts all that one character can fold to; where that
//! cannot be said exactly it accepts more, never less. Over ASCII without ligatures it is exact.
//!
//! Invariant: no set holds `/`, NUL or an ASCII capital, none of which a folded name contains.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use super::fold::{fold_into, is_ignorable};

/// A class with more non-ASCII members than this is taken for `?`; folding each costs look-ups.
const CLASS_FOLDS_MAX: u32 = 256;

/// Every fold of one character that has an ASCII character after its first.
pub(super) const LIGATURES: [&str; 8] = ["ss", "ff", "fi", "fl", "st", "ffi", "ffl", "\u{2bc}n"];
const LIGATURES_ALL: u8 = u8::MAX;

/// Sorted, disjoint, not adjacent ranges.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CharSet(Vec<(char, char)>);

impl CharSet {
    pub(super) fn any() -> CharSet {
        CharSet::all_but(Vec::new())
    }

    pub(super) fn non_ascii() -> CharSet {
        CharSet(vec![('\u{80}', char::MAX)])
    }

    pub(super) fn of(mut chars: Vec<char>) -> CharSet {
        chars.sort_unstable();
        chars.dedup();
        let mut ranges: Vec<(char, char)> = Vec::new();
        for c in chars {
            match ranges.last_mut() {
                Some((_, high)) if after(*high) == Some(c) => *high = c,
                _ => ranges.push((c, c)),
            }
        }
        CharSet(ranges)
    }

    fn all_but(mut chars: Vec<char>) -> CharSet {
        chars.extend(['\0', '/']);
        chars.extend('A'..='Z');
        let mut ranges = Vec::new();
        let mut low = Some('\0');
        for (first, last) in CharSet::of(chars).0 {
            if let (Some(low), Some(high)) = (low, before(first))
                && low <= high
            {
                ranges.push((low, high));
            }
            low = after(last);
        }
        ranges.extend(low.map(|low| (low, char::MAX)));
        CharSet(ranges)
    }

    pub(super) fn ranges(&self) -> &[(char, char)] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, c: char) -> bool {
        let at = self.0.partition_point(|(_, high)| *high < c);
        self.0.get(at).is_some_and(|(low, _)| *low <= c)
    }

    /// A character of both sets, if there is one: a readable letter where possible.
    pub(super) fn common(&self, other: &CharSet) -> Option<char> {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut found = None;
        while let (Some(&&(a_low, a_high)), Some(&&(b_low, b_high))) = (left.peek(), right.peek()) {
            let (low, high) = (a_low.max(b_low), a_high.min(b_high));
            if low <= high {
                if low <= 'z' && high >= 'a' {
                    return Some(low.max('a'));
                }
                found = found.or(Some(high));
            }
            if a_high < b_high {
                left.next()
            } else {
                right.next()
            };
        }
        found
    }
}

fn after(c: char) -> Option<char> {
    (c..=char::MAX).nth(1)
}

fn before(c: char) -> Option<char> {
    ('\0'..=c).rev().nth(1)
}

/// What a wildcard for one typed character accepts in folded text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct One {
    /// One character of the key.
    pub(super) plain: CharSet,
    /// The base of a character that folds to a base with more non-ASCII characters behind it.
    pub(super) marked: CharSet,
    /// Which of [`LIGATURES`], by bit.
    pub(super) ligatures: u8,
    /// Non-ASCII characters may follow `plain`: typed marks are reordered across characters.
    pub(super) trailed: bool,
    /// A member is itself a combining mark, which may be sorted away from this place.
    pub(super) movable: bool,
}

impl One {
    pub(super) fn any() -> One {
        One {
            plain: CharSet::any(),
            marked: CharSet::of(Vec::new()),
            ligatures: LIGATURES_ALL,
            trailed: true,
            movable: false,
        }
    }

    /// `[…]` over ranges as typed.
    pub(super) fn member(ranges: &[(char, char)]) -> One {
        let mut one = Members::default();
        for &(low, high) in ranges {
            if !one.add(low, high) {
                return One::any();
            }
        }
        One {
            plain: CharSet::of(one.plain),
            trailed: one.movable,
            marked: CharSet::of(one.marked),
            ligatures: one.ligatures,
            movable: one.movable,
        }
    }

    /// `[!…]`: comparison ignores case, so a member excludes all its cases. What folds to several
    /// characters excludes none of them: `[!ß]` still accepts s, and `[!e]` accepts é.
    pub(super) fn other(ranges: &[(char, char)]) -> One {
        let mut excluded = Members::default();
        for &(low, high) in ranges {
            if !excluded.add(low, high) {
                break;
            }
        }
        One { plain: CharSet::all_but(excluded.plain), marked: CharSet::any(), ..One::any() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.marked.is_empty() && self.ligatures == 0
    }

    /// The only character accepted, if there is exactly one way.
    pub(super) fn only(&self) -> Option<char> {
        let simple = self.marked.is_empty() && self.ligatures == 0 && !self.movable;
        match self.plain.ranges() {
            [(low, high)] if simple && low == high => Some(*low),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Members {
    plain: Vec<char>,
    marked: Vec<char>,
    ligatures: u8,
    movable: bool,
    folds: u32,
}

impl Members {
    /// False when there are too many members to fold each.
    fn add(&mut self, low: char, high: char) -> bool {
        for c in low..=high {
            if c.is_ascii() {
                if c != '/' && c != '\0' {
                    self.plain.push(c.to_ascii_lowercase());
                }
                continue;
            }
            self.folds += 1;
            if self.folds > CLASS_FOLDS_MAX {
                return false;
            }
            self.add_folded(c);
        }
        true
    }

    fn add_folded(&mut self, c: char) {
        let mut key = String::new();
        fold_into(c.encode_utf8(&mut [0; 4]), &mut key);
        let mut rest = key.chars();
        let Some(first) = rest.next() else { return };
        self.movable |= is_mark_led(c);
        if let Some(at) = LIGATURES.iter().position(|ligature| *ligature == key) {
            self.ligatures |= 1 << at;
        } else if rest.next().is_none() {
            self.plain.push(first);
        } else {
            self.marked.push(first);
        }
    }
}

fn is_mark_led(c: char) -> bool {
    std::iter::once(c).nfd().next().is_some_and(is_mark)
}

/// Whether normalisation may sort this character among its neighbours.
pub(super) fn is_mark(c: char) -> bool {
    !c.is_ascii() && canonical_combining_class(c) != 0
}

/// The visible decomposition of a literal piece, before case is folded.
pub(super) fn decompose(piece: &str) -> Vec<char> {
    piece.chars().filter(|c| !is_ignorable(*c)).nfd().collect()
}
