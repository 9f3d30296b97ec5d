//! Tests of patterns: tables of cases, an oracle that enumerates paths, and Unicode spellings.
//! The oracle is an independent matcher; the tables say what people may rely on.

mod cases;
mod oracle;
mod spellings;

use super::*;

fn glob(text: &str) -> Pattern {
    Pattern::glob(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn path(text: &str) -> Pattern {
    Pattern::literal(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn folder(text: &str) -> Pattern {
    Pattern::folder(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// A splitmix64 sequence: the same pairs on every machine, and no dependency.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// What the claim rule asks of its index: patterns whose prefix is an ancestor of `a`'s prefix or
/// is that prefix, and, when `a` reaches below, those whose prefix lies under it.
fn is_candidate(a: &Pattern, b: &Pattern) -> bool {
    let (own, other) = (a.literal_prefix(), b.literal_prefix());
    let ancestor = other.is_empty() || format!("{own}/").starts_with(&format!("{other}/"));
    let under = own.is_empty() || format!("{other}/").starts_with(&format!("{own}/"));
    ancestor || a.reach() == Reach::Below && under
}
