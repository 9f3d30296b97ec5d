//! What can be claimed: paths, folders, globs, and named things with amounts.
//!
//! Owns the spelling people type and read: every resource has exactly one text, and that text gives
//! the same resource back. Refuses to know the file system: whether a path exists, is a folder or a
//! link was settled before it came here.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::pattern::{self, Pattern};

/// Longest name of a named resource, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Largest amount one claim may take of a named resource.
pub const AMOUNT_MAX: u32 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    Path(Pattern),
    /// `@gpu`, `@deploy/prod`, `@vram=4`.
    Name {
        name: String,
        amount: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Pattern(#[from] pattern::Error),
    #[error("a named resource needs a name after the @")]
    NameEmpty,
    #[error("the name of a resource is at most {NAME_BYTES_MAX} bytes")]
    NameLong,
    #[error("{character:?} cannot stand in the name of a resource: letters, digits and -_./:* can")]
    NameCharacter { character: char },
    #[error("{text:?} is not an amount: a whole number from 1 to {AMOUNT_MAX}")]
    Amount { text: String },
}

impl Resource {
    /// What a person typed. `path:` forces a literal path, `glob:` a pattern.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if let Some(name) = text.strip_prefix('@') {
            return Self::parse_name(name);
        }
        if let Some(path) = text.strip_prefix("path:") {
            return Self::literal(path);
        }
        if let Some(glob) = text.strip_prefix("glob:") {
            return Ok(Self::Path(Pattern::glob(glob)?));
        }
        if has_wildcard(text) {
            return Ok(Self::Path(Pattern::glob(text)?));
        }
        Self::literal(text)
    }

    /// A path taken letter by letter; a trailing `/` means the folder and everything below.
    pub fn literal(path: &str) -> Result<Self, Error> {
        let folder = path.ends_with('/');
        Ok(Self::Path(if folder { Pattern::folder(path)? } else { Pattern::literal(path)? }))
    }

    fn parse_name(text: &str) -> Result<Self, Error> {
        let (name, amount) = match text.split_once('=') {
            None => (text, 1),
            Some((name, digits)) => match digits.parse::<u32>() {
                Ok(amount) if (1..=AMOUNT_MAX).contains(&amount) => (name, amount),
                _ => return Err(Error::Amount { text: digits.to_owned() }),
            },
        };
        if name.is_empty() {
            return Err(Error::NameEmpty);
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(Error::NameLong);
        }
        if let Some(character) = name.chars().find(|c| !name_character(*c)) {
            return Err(Error::NameCharacter { character });
        }
        Ok(Self::Name { name: name.to_owned(), amount })
    }

    /// Where the index keeps it: `/src/a.rs/` for a path, `@gpu/` for a name.
    pub fn index_value(&self) -> String {
        match self {
            Self::Path(pattern) if pattern.literal_prefix().is_empty() => "/".to_owned(),
            Self::Path(pattern) => format!("/{}/", pattern.literal_prefix()),
            Self::Name { name, .. } => format!("@{}/", pattern::fold(name)),
        }
    }

    /// Do the two ever mean the same thing? Amounts are weighed elsewhere.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Path(one), Self::Path(two)) => pattern::overlaps(one, two),
            (Self::Name { name: one, .. }, Self::Name { name: two, .. }) => {
                pattern::fold(one) == pattern::fold(two)
            }
            _ => false,
        }
    }

    /// How much of a named resource; nothing for a path.
    pub fn amount(&self) -> u32 {
        match self {
            Self::Name { amount, .. } => *amount,
            Self::Path(_) => 0,
        }
    }

    /// Is all of `other` surely within this?
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Path(one), Self::Path(two)) => pattern::covers(one, two),
            (Self::Name { amount: one, .. }, Self::Name { amount: two, .. }) => {
                self.overlaps(other) && one >= two
            }
            _ => false,
        }
    }
}

/// Would this text be read as a pattern?
fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

pub(crate) fn name_character(character: char) -> bool {
    character.is_alphanumeric() || "-_./:*".contains(character)
}

impl fmt::Display for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pattern = match self {
            Self::Name { name, amount: 1 } => return write!(formatter, "@{name}"),
            Self::Name { name, amount } => return write!(formatter, "@{name}={amount}"),
            Self::Path(pattern) => pattern,
        };
        let text = pattern.text();
        let slash = if pattern.kind() == pattern::Kind::Folder { "/" } else { "" };
        let forced = ["@", "path:", "glob:"].iter().any(|prefix| text.starts_with(prefix));
        match (pattern.kind() == pattern::Kind::Glob, forced, has_wildcard(text)) {
            (false, false, false) | (true, false, true) => write!(formatter, "{text}{slash}"),
            (false, _, _) => write!(formatter, "path:{text}{slash}"),
            (true, _, _) => write!(formatter, "glob:{text}"),
        }
    }
}

impl Serialize for Resource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Resource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Resource {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Resource".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "src/a.rs, src/ (a folder), src/*.rs, @name, @name=4, path:…, glob:…"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_as_the_same_resource() {
        for (typed, shown) in [
            ("src/a.rs", "src/a.rs"),
            ("src/", "src/"),
            ("src/*.rs", "src/*.rs"),
            ("path:app/[id]/page.tsx", "path:app/[id]/page.tsx"),
            ("path:@types/x", "path:@types/x"),
            ("path:plain", "plain"),
            ("glob:plain", "plain"),
            ("src/**", "src/"),
            ("glob:@types/*.ts", "glob:@types/*.ts"),
            ("path:app/[id]/", "path:app/[id]/"),
            ("@gpu", "@gpu"),
            ("@vram=4", "@vram=4"),
            ("@gpu=1", "@gpu"),
        ] {
            let resource = Resource::parse(typed).unwrap();
            assert_eq!(resource.to_string(), shown);
            assert_eq!(Resource::parse(shown).unwrap(), resource, "{shown}");
        }
    }

    #[test]
    fn bad_names_are_refused() {
        for text in ["@", "@=3", "@gpu=0", "@gpu=x", "@a b", "@a\u{1b}[0m"] {
            assert!(Resource::parse(text).is_err(), "{text:?}");
        }
        assert!(Resource::parse(&format!("@{}", "x".repeat(300))).is_err());
    }
}
