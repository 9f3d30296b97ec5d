//! Readable names of sessions: two words that are easy to say and to tell apart.
//!
//! Owns the words. A name is for people only and never an identity.

use super::BY_NAME;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::view::{Query, View};

const NAME_TRIES_MAX: u32 = 100;

/// The wanted name, or two words; with a number when somebody live has it already.
pub(super) fn free_name(
    view: &dyn View,
    wanted: Option<&str>,
    context: &Context,
) -> Result<String, Refusal> {
    let two_words = || {
        let number = usize::try_from(context.fresh.number(7) % (1 << 30)).unwrap_or(0);
        let adjective = ADJECTIVES[number % ADJECTIVES.len()];
        let animal = ANIMALS[(number / ADJECTIVES.len()) % ANIMALS.len()];
        format!("{adjective}-{animal}")
    };
    let base = wanted.map_or_else(two_words, str::to_owned);
    for number in 1..=NAME_TRIES_MAX {
        let name = if number == 1 { base.clone() } else { format!("{base}-{number}") };
        let taken = view.read(&[Query::equal(BY_NAME, &name, 1)])?;
        if taken.iter().all(Vec::is_empty) {
            return Ok(name);
        }
    }
    Ok(format!("{base}-{}", context.fresh.hex(8, 6)))
}

const ADJECTIVES: &[&str] = &[
    "amber", "bold", "brisk", "calm", "clear", "coral", "crisp", "dapper", "eager", "early",
    "fair", "fleet", "fond", "frank", "fresh", "gentle", "glad", "golden", "grand", "happy",
    "hazel", "honest", "ivory", "jade", "jolly", "keen", "kind", "lively", "loyal", "lucky",
    "mellow", "merry", "mild", "misty", "neat", "nimble", "noble", "olive", "patient", "plain",
    "plucky", "polite", "proud", "quick", "quiet", "rapid", "ready", "rosy", "royal", "ruby",
    "sage", "sharp", "silver", "sleek", "smart", "snowy", "solid", "spry", "steady", "sunny",
    "swift", "tidy", "warm", "wise",
];
const ANIMALS: &[&str] = &[
    "badger", "bear", "beaver", "bee", "bison", "bobcat", "camel", "cat", "cod", "condor",
    "cougar", "crane", "cricket", "crow", "deer", "dingo", "dove", "duck", "eagle", "eel", "elk",
    "falcon", "ferret", "finch", "fox", "frog", "gecko", "goose", "gull", "hare", "hawk", "heron",
    "horse", "ibis", "jackal", "jay", "koala", "lark", "lemur", "lion", "llama", "lynx", "magpie",
    "marten", "mole", "moose", "mouse", "newt", "otter", "owl", "panda", "puffin", "quail",
    "raven", "robin", "seal", "shrew", "sloth", "stoat", "swan", "tiger", "toad", "trout", "wren",
];
