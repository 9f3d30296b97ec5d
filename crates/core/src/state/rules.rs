//! How a key may change, by what `baton.toml` says of it.
//!
//! Owns the six rules as one function: what is there and what is asked give what happens, nothing,
//! or a reason why not. The last rule whose pattern fits a key wins; a key without one is
//! `replace`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Against, Change};
use crate::key::{Key, KeyPattern};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Any value takes the place of any other.
    #[default]
    Replace,
    /// An array that only grows at its end.
    Append,
    /// A set: what is given is added unless it is there.
    Union,
    /// A number; the greatest ever given stays.
    Max,
    /// Set once and never again.
    Once,
    /// A declared list of stages, never backwards.
    Forward,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Replace => "replace",
            Self::Append => "append",
            Self::Union => "union",
            Self::Max => "max",
            Self::Once => "once",
            Self::Forward => "forward",
        })
    }
}

/// The one who may write; everyone may read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Owner {
    /// Sessions that play this role.
    Role(String),
    /// The session that wrote first, as long as it lives.
    Session,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no owner: write \"session\" or \"role:NAME\"")]
pub struct BadOwner {
    pub text: String,
}

impl FromStr for Owner {
    type Err = BadOwner;

    fn from_str(text: &str) -> Result<Self, BadOwner> {
        match text.strip_prefix("role:") {
            Some(role) if !role.trim().is_empty() => Ok(Self::Role(role.to_owned())),
            None if text == "session" => Ok(Self::Session),
            _ => Err(BadOwner { text: text.to_owned() }),
        }
    }
}

impl TryFrom<String> for Owner {
    type Error = BadOwner;

    fn try_from(text: String) -> Result<Self, BadOwner> {
        text.parse()
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> Self {
        owner.to_string()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(role) => write!(formatter, "role:{role}"),
            Self::Session => formatter.write_str("session"),
        }
    }
}

/// One `[[state]]` of the policy in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    pub keys: Vec<KeyPattern>,
    pub rule: Kind,
    /// For `forward`: the stages in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
}

/// The rule of a key: the last one that fits.
pub fn of<'a>(rules: &'a [Rule], key: &Key) -> Option<&'a Rule> {
    rules.iter().rev().find(|rule| rule.keys.iter().any(|pattern| pattern.fits(key)))
}

/// What happens when `asked` meets `current`; `None` when what is there stays as it is.
pub fn settle(
    rule: Option<&Rule>,
    current: Option<&Json>,
    asked: &Change,
) -> Result<Option<Change>, Against> {
    match rule.map_or(Kind::Replace, |rule| rule.rule) {
        Kind::Replace => replace(current, asked),
        Kind::Append => append(current, asked),
        Kind::Union => union(current, asked),
        Kind::Max => max(current, asked),
        Kind::Once if current.is_some() => Err(Against::AlreadySet),
        Kind::Once => replace(None, asked),
        Kind::Forward => forward(rule.map_or(&[], |rule| &rule.stages), current, asked),
    }
}

fn replace(current: Option<&Json>, asked: &Change) -> Result<Option<Change>, Against> {
    match (asked, current) {
        (Change::Append { .. }, Some(value)) if !value.is_array() => Err(Against::NotAnArray),
        _ => Ok(Some(asked.clone())),
    }
}

/// What an append or a set gives, for rules about arrays; a merge and a deletion are no growth.
fn items(asked: &Change) -> Result<&[Json], Against> {
    match asked {
        Change::Set { value: Json::Array(items) } | Change::Append { items } => Ok(items),
        Change::Set { .. } => Err(Against::NotAnArray),
        Change::Merge { .. } => Err(Against::NotMerged),
        Change::Delete => Err(Against::NotDeleted),
    }
}

fn append(current: Option<&Json>, asked: &Change) -> Result<Option<Change>, Against> {
    let given = items(asked)?;
    let new = match (current, asked) {
        (None, _) => return Ok(Some(asked.clone())),
        (Some(Json::Array(_)), Change::Append { .. }) => given,
        // A whole array is taken when what is there is its beginning.
        (Some(Json::Array(there)), _) => {
            given.strip_prefix(there.as_slice()).ok_or(Against::Shrinks)?
        }
        (Some(_), _) => return Err(Against::NotAnArray),
    };
    Ok((!new.is_empty()).then(|| Change::Append { items: new.to_vec() }))
}

fn union(current: Option<&Json>, asked: &Change) -> Result<Option<Change>, Against> {
    let given = items(asked)?;
    let there = match current {
        None => &[],
        Some(Json::Array(there)) => there.as_slice(),
        Some(_) => return Err(Against::NotAnArray),
    };
    let mut new: Vec<Json> = Vec::new();
    for item in given {
        if !there.contains(item) && !new.contains(item) {
            new.push(item.clone());
        }
    }
    match current {
        None => Ok(Some(Change::Set { value: Json::Array(new) })),
        Some(_) => Ok((!new.is_empty()).then_some(Change::Append { items: new })),
    }
}

fn max(current: Option<&Json>, asked: &Change) -> Result<Option<Change>, Against> {
    let given = match asked {
        Change::Set { value: value @ Json::Number(_) } => value,
        Change::Set { .. } => return Err(Against::NotANumber),
        Change::Append { .. } => return Err(Against::NotAppended),
        Change::Merge { .. } => return Err(Against::NotMerged),
        Change::Delete => return Err(Against::NotDeleted),
    };
    let grows = match current {
        None => true,
        Some(there) if there.is_number() => is_greater(given, there),
        Some(_) => return Err(Against::NotANumber),
    };
    Ok(grows.then(|| asked.clone()))
}

/// Whole numbers are compared as such: beyond 2^53 two of them may be one as floating point.
fn is_greater(one: &Json, two: &Json) -> bool {
    let whole =
        |value: &Json| value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    match (whole(one), whole(two)) {
        (Some(one), Some(two)) => one > two,
        _ => one.as_f64() > two.as_f64(),
    }
}

fn forward(
    stages: &[String],
    current: Option<&Json>,
    asked: &Change,
) -> Result<Option<Change>, Against> {
    let value = match asked {
        Change::Set { value } => value,
        Change::Append { .. } => return Err(Against::NotAppended),
        Change::Merge { .. } => return Err(Against::NotMerged),
        Change::Delete => return Err(Against::NotDeleted),
    };
    let place = |value: &Json| {
        let name = value.as_str()?;
        stages.iter().position(|stage| stage == name)
    };
    let Some(to) = place(value) else {
        return Err(Against::NoStage { given: value.clone(), stages: stages.to_vec() });
    };
    // What was written before there was a rule is before every stage.
    match current.and_then(place) {
        Some(from) if from > to => {
            Err(Against::Backwards { from: stages[from].clone(), to: stages[to].clone() })
        }
        Some(from) if from == to => Ok(None),
        _ => Ok(Some(asked.clone())),
    }
}
