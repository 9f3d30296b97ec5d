//! Keys of shared state and of `once`, and patterns over them.
//!
//! Owns their syntax: segments joined by `/`, letters, digits and a few marks, so that a key is one
//! word in a shell, a path in an export and a prefix in an index. `=` and `*` are in no key:
//! `KEY=JSON` and `build/*` can mean only one thing. Keys are compared letter by letter.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const KEY_BYTES_MAX: usize = 200;
const MARKS: &str = "-_.:@+~,#";

/// A key such as `build/status`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Key(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {KEY_BYTES_MAX} bytes")]
    TooLong,
    #[error("a segment between two `/` is empty")]
    EmptySegment,
    #[error("`.` and `..` are no segments")]
    Dots,
    #[error("{0:?} is not allowed in it")]
    Character(char),
}

impl Key {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first segment with its `/`, or nothing when there is only one.
    fn first_folder(&self) -> &str {
        self.0.find('/').map_or("", |at| &self.0[..=at])
    }

    /// Where to look for keys that were perhaps meant: beside it, or anywhere.
    pub fn neighbourhood(&self) -> [String; 2] {
        [self.first_folder().to_owned(), String::new()]
    }

    /// Those of `known` that look like this one, the likeliest first.
    pub fn near(&self, known: &[Self], count_max: usize) -> Vec<Self> {
        let far = self.0.chars().count().div_ceil(2).max(2);
        let mut near: Vec<(usize, &Self)> =
            known.iter().map(|key| (self.distance(key), key)).collect();
        near.retain(|(distance, _)| *distance <= far);
        near.sort_unstable();
        near.dedup();
        near.into_iter().take(count_max).map(|(_, key)| key.clone()).collect()
    }

    /// How many letters must be put in, taken out or changed to get from one to the other.
    fn distance(&self, other: &Self) -> usize {
        let other: Vec<char> = other.0.chars().collect();
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (above, mine) in self.0.chars().enumerate() {
            let mut diagonal = above;
            row[0] = above + 1;
            for (column, theirs) in other.iter().enumerate() {
                let change = diagonal + usize::from(mine != *theirs);
                diagonal = row[column + 1];
                row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
            }
        }
        row.last().copied().unwrap_or_default()
    }
}

fn check(text: &str, also: fn(char) -> bool) -> Result<(), BadKey> {
    if text.is_empty() {
        return Err(BadKey::Empty);
    }
    if text.len() > KEY_BYTES_MAX {
        return Err(BadKey::TooLong);
    }
    let allowed = |c: char| c == '/' || c.is_alphanumeric() || MARKS.contains(c) || also(c);
    if let Some(character) = text.chars().find(|c| !allowed(*c)) {
        return Err(BadKey::Character(character));
    }
    for segment in text.split('/') {
        match segment {
            "" => return Err(BadKey::EmptySegment),
            "." | ".." => return Err(BadKey::Dots),
            _ => {}
        }
    }
    Ok(())
}

impl FromStr for Key {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        check(text, |_| false).map(|()| Self(text.to_owned()))
    }
}

impl TryFrom<String> for Key {
    type Error = BadKey;

    fn try_from(text: String) -> Result<Self, BadKey> {
        check(&text, |_| false).map(|()| Self(text))
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Which keys are meant: `build/status`, `build/*` (within a segment), `build/**` (all below).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct KeyPattern(String);

impl KeyPattern {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What every key that fits begins with.
    pub fn prefix(&self) -> &str {
        // `build/**` also means `build` itself.
        self.0.find('*').map_or(self.0.as_str(), |at| self.0[..at].trim_end_matches('/'))
    }

    pub fn fits(&self, key: &Key) -> bool {
        let pattern: Vec<&str> = self.0.split('/').collect();
        let segments: Vec<&str> = key.0.split('/').collect();
        fits_segments(&pattern, &segments)
    }
}

/// Row by row: does the pattern so far fit the first so many segments?
fn fits_segments(pattern: &[&str], segments: &[&str]) -> bool {
    let mut row = vec![false; segments.len() + 1];
    row[0] = true;
    for word in pattern {
        let mut next = vec![false; segments.len() + 1];
        for at in 0..=segments.len() {
            next[at] = match *word {
                "**" => row[..=at].contains(&true),
                word => at > 0 && row[at - 1] && fits_word(word, segments[at - 1]),
            };
        }
        row = next;
    }
    row[segments.len()]
}

fn fits_word(word: &str, segment: &str) -> bool {
    let parts: Vec<&str> = word.split('*').collect();
    let [first, middle @ .., last] = parts.as_slice() else {
        return word == segment;
    };
    let Some(mut rest) = segment.strip_prefix(first).and_then(|rest| rest.strip_suffix(last))
    else {
        return false;
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

impl FromStr for KeyPattern {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        check(text, |c| c == '*').map(|()| Self(text.to_owned()))
    }
}

impl TryFrom<String> for KeyPattern {
    type Error = BadKey;

    fn try_from(text: String) -> Result<Self, BadKey> {
        text.parse()
    }
}

impl From<KeyPattern> for String {
    fn from(pattern: KeyPattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_plain_words_in_segments() {
        for good in ["a", "build/status", "t1/v1.2", "@x:y+z~,#", "größe/ß"] {
            assert_eq!(good.parse::<Key>().unwrap().as_str(), good);
        }
        let long = "x".repeat(KEY_BYTES_MAX + 1);
        for (bad, why) in [
            ("", BadKey::Empty),
            (long.as_str(), BadKey::TooLong),
            ("/a", BadKey::EmptySegment),
            ("a/", BadKey::EmptySegment),
            ("a//b", BadKey::EmptySegment),
            ("a/../b", BadKey::Dots),
            ("a b", BadKey::Character(' ')),
            ("a=b", BadKey::Character('=')),
            ("a*", BadKey::Character('*')),
            ("a\u{202e}b", BadKey::Character('\u{202e}')),
            ("a\0", BadKey::Character('\0')),
        ] {
            assert_eq!(bad.parse::<Key>(), Err(why), "{bad:?}");
        }
    }

    #[test]
    fn patterns_fit_within_a_segment_or_across() {
        for (pattern, fitting, other) in [
            ("build/*", &["build/a", "build/ab"][..], &["build", "build/a/b", "xbuild/a"][..]),
            ("build/**", &["build/a", "build/a/b", "build"], &["built/a"]),
            ("**/log", &["log", "a/log", "a/b/log"], &["a/logs", "a/log/b"]),
            ("a*c/b", &["ac/b", "abc/b"], &["ab/b", "acc/c"]),
            ("a*b*c", &["abc", "axxbxxc"], &["acb", "ab", "ac"]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("a/**/b", &["a/b", "a/x/y/b"], &["a/x"]),
            ("exact", &["exact"], &["exactly"]),
        ] {
            let pattern: KeyPattern = pattern.parse().unwrap();
            for key in fitting {
                assert!(pattern.fits(&key.parse().unwrap()), "{pattern} {key}");
            }
            for key in other {
                assert!(!pattern.fits(&key.parse().unwrap()), "{pattern} {key}");
            }
        }
    }

    #[test]
    fn near_keys_are_the_likeliest_first() {
        let key = |text: &str| text.parse::<Key>().unwrap();
        let known = ["build/status", "build/statistics", "deploy/time"].map(key);
        let near = key("build/statsu").near(&known, 3);
        assert_eq!(near, ["build/status", "build/statistics"].map(key));
    }
}
