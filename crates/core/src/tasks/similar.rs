//! Is this task filed already, in other words?
//!
//! Owns the comparison of titles: sets of normalised words, weighted by how telling they are. A
//! pure function of two titles; which titles are compared is found by an index of words.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::pattern::fold;
use crate::task::{self, State, Task};
use crate::time::{Moment, Span};
use crate::view::{Query, Row, parse};

/// At this score and above, in hundredths, two titles mean the same work.
pub const ALIKE_PERCENT: u32 = 60;
/// A finished task is no duplicate any more after this long.
pub const REMEMBERED: Span = Span::days(7);
/// How many like ones a reply names.
pub const SHOWN_MAX: usize = 5;
/// How many words of a title stand in the index: its longest.
const WORDS_MAX: usize = 8;
/// How many titles with the same word are compared.
const PER_WORD_MAX: u32 = 24;
/// Longer words tell no more than these.
const WEIGHT_MAX: u32 = 8;
/// One title within another is as good as alike only when it says this much.
const CONTAINED_WORDS_MIN: usize = 3;

/// Words that say nothing about what a task is about.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has",
    "have", "how", "if", "in", "into", "is", "it", "its", "make", "more", "must", "not", "of",
    "on", "or", "our", "should", "so", "some", "than", "that", "the", "their", "them", "then",
    "there", "they", "this", "to", "up", "use", "was", "we", "when", "which", "will", "with",
    "you",
];

/// A task that is close in words to one that is filed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Similar {
    pub task: TaskId,
    pub title: String,
    pub state: State,
    /// From 0 to 1: how much of the words is the same.
    pub score: Score,
}

/// Hundredths, written as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(pub u32);

impl Serialize for Score {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 100.0)
    }
}

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fraction = f64::deserialize(deserializer)?.clamp(0.0, 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
        Ok(Self((fraction * 100.0).round() as u32))
    }
}

impl JsonSchema for Score {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Score".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

/// The words of a title that say what it is about, in one form each.
pub fn words(title: &str) -> BTreeSet<String> {
    // Folding takes letters and their marks apart; the marks say nothing here.
    let folded: String =
        fold(title).chars().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).collect();
    let words = folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.filter(|word| !STOP_WORDS.contains(word)).map(stem).collect()
}

/// Without the endings that only grammar asks for.
fn stem(word: &str) -> String {
    for (ending, rest_min) in [("ing", 4), ("ies", 3), ("ed", 4), ("es", 4), ("s", 3)] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.chars().count() >= rest_min
            && !rest.ends_with('s')
        {
            return without_e(rest);
        }
    }
    without_e(word)
}

/// `update`, `updates` and `updated` are one word.
fn without_e(word: &str) -> String {
    let rest = word.strip_suffix('e').filter(|rest| rest.chars().count() >= 3);
    rest.unwrap_or(word).to_owned()
}

/// The words by which a title is found: its longest.
pub fn telling_words(title: &str) -> Vec<String> {
    let mut words: Vec<String> = words(title).into_iter().collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    words.truncate(WORDS_MAX);
    words
}

fn weight<'a>(words: impl IntoIterator<Item = &'a String>) -> u32 {
    let one = |word: &String| u32::try_from(word.chars().count()).unwrap_or(WEIGHT_MAX);
    words.into_iter().map(|word| one(word).min(WEIGHT_MAX)).sum()
}

/// How alike two titles are, in hundredths: what they share of all their words, or, when the
/// shorter one says enough, how much of it stands in the longer one, a little less.
pub fn score(one: &BTreeSet<String>, two: &BTreeSet<String>) -> Score {
    let shared = weight(one.intersection(two));
    let all = weight(one.union(two));
    if shared == 0 || all == 0 {
        return Score(0);
    }
    let jaccard = shared * 100 / all;
    let (shorter, longer) = if one.len() <= two.len() { (one, two) } else { (two, one) };
    let contained = match shorter.len() >= CONTAINED_WORDS_MIN && longer.len() <= 3 * shorter.len()
    {
        true => shared * 80 / weight(shorter).max(1),
        false => 0,
    };
    Score(jaccard.max(contained))
}

/// How much of all their words two texts share, in hundredths; all of it when they are the same.
pub fn shared_words(one: &str, two: &str) -> Score {
    if fold(one.trim()) == fold(two.trim()) {
        return Score(100);
    }
    let (one, two) = (words(one), words(two));
    let all = weight(one.union(&two));
    Score(weight(one.intersection(&two)) * 100 / all.max(1))
}

/// Where titles like this one are found.
pub(crate) fn queries(title: &str) -> Vec<Query> {
    telling_words(title).iter().map(|word| task::with_word(word, PER_WORD_MAX)).collect()
}

/// The best of those found.
pub(crate) fn among(
    title: &str,
    rows: &[Vec<Row>],
    now: Moment,
) -> Result<Vec<Similar>, crate::view::Unreadable> {
    let wanted = words(title);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for row in rows.iter().flatten().filter(|row| row.kind == "task") {
        if !seen.insert(row.key.as_str()) {
            continue;
        }
        let lean: Titled = parse(&row.body)?;
        let Titled { task, title, standing } = lean;
        let late = standing.state.is_finished() && now.since(standing.since) > REMEMBERED;
        let score = score(&wanted, &words(&title));
        if !late && score.0 >= ALIKE_PERCENT {
            found.push(Similar { task, title, state: standing.state, score });
        }
    }
    found.sort_by(|one, two| (two.score, one.task.number()).cmp(&(one.score, two.task.number())));
    found.truncate(SHOWN_MAX);
    Ok(found)
}

/// As much of a task as a comparison needs.
#[derive(Deserialize)]
struct Titled {
    task: TaskId,
    title: String,
    standing: Place,
}

#[derive(Deserialize)]
struct Place {
    state: State,
    since: Moment,
}

impl From<&Task> for Similar {
    fn from(task: &Task) -> Self {
        let (task, title, state) = (task.task.clone(), task.title.clone(), task.state());
        Self { task, title, state, score: Score(100) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, two: &str) -> bool {
        score(&words(one), &words(two)).0 >= ALIKE_PERCENT
    }

    #[test]
    fn the_same_work_in_other_words() {
        for (one, two) in [
            ("Fix the login timeout", "fix login timeouts"),
            ("Fix flaky test in parser", "Parser: fix the flaky tests"),
            ("Add rate limiting to the API", "Add rate limits to API gateway"),
            ("Update the README", "README updated"),
        ] {
            assert!(alike(one, two), "{one:?} and {two:?}: {:?}", score(&words(one), &words(two)));
        }
        for (one, two) in [
            ("Fix the login timeout", "Fix the parser"),
            ("Write docs for the parser", "Write tests for the lexer"),
            ("task 1", "task 2 about other things"),
            ("", "anything"),
            ("the of and", "the of and"),
        ] {
            assert!(!alike(one, two), "{one:?} and {two:?}");
        }
    }

    #[test]
    fn it_does_not_matter_which_was_first() {
        let titles = ["fix login", "Fix the login timeout in auth", "timeouts", "auth: login"];
        for one in titles {
            for two in titles {
                assert_eq!(score(&words(one), &words(two)), score(&words(two), &words(one)));
            }
        }
    }

    #[test]
    fn words_of_any_script_are_words() {
        assert_eq!(words("Ünïcode: 修复 登录\u{202e}!").len(), 3);
        assert!(telling_words(&"word".repeat(100)).len() == 1);
    }
}
