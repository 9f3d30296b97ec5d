//! Numbers that are handed out once: of migrations, of decisions, of anything in one folder.
//!
//! Owns the counter of each folder. What lies in the trees and branches is looked at before and
//! handed in. Invariant: a number that was given is never given again, whether or not a file with
//! it ever appears.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::claims::{self, take};
use crate::context::Context;
use crate::event::Event;
use crate::id::Token;
use crate::notices::Notice;
use crate::pattern::fold;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::Caller;
use crate::time::Moment;
use crate::view::{Index, Kind, Record, View, get};

pub const WIDTH_MAX: usize = 18;
pub const WIDTH_DEFAULT: usize = 4;
const NUMBER_MAX: u64 = 999_999_999_999_999_999;

/// The last number that was given for a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counter {
    /// The folder as claims compare it.
    pub folder: String,
    pub last: u64,
    pub by: Holder,
    pub at: Moment,
}

impl Record for Counter {
    const KIND: Kind = "counter";

    fn key(&self) -> String {
        self.folder.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}

/// The number at the front of a name, and in how many digits: `0007_users.sql`, `V12__x.sql`.
pub fn in_name(name: &str) -> Option<(u64, usize)> {
    let digits = name.strip_prefix(['V', 'v']).unwrap_or(name);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number = digits[..end].parse().ok().filter(|number| *number <= NUMBER_MAX)?;
    Some((number, end))
}

#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// Relative to the root of the workspace.
    pub folder: String,
    pub width: Option<usize>,
    pub claim: bool,
    /// The highest number in any tree or branch, and its digits.
    #[serde(skip)]
    pub seen: Option<(u64, usize)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Given {
    pub folder: String,
    pub number: u64,
    /// With its leading zeros.
    pub text: String,
    /// The claim on every file whose name begins with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Resource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Gives the next number of a folder.
pub fn next(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Given), Refusal> {
    if let Some(width) = request.width.filter(|width| !(1..=WIDTH_MAX).contains(width)) {
        let (given, allowed) = (width.to_string(), format!("1 to {WIDTH_MAX} digits"));
        return Err(Refusal::OutOfRange { what: "width", given, allowed });
    }
    let caller = Caller::read(view, context)?;
    let key = fold(&request.folder);
    let last = get::<Counter>(view, &key)?.map_or(0, |counter| counter.last);
    let number = last.max(request.seen.map_or(0, |(number, _)| number)) + 1;
    if number > NUMBER_MAX {
        let (given, allowed) = (number.to_string(), format!("at most {NUMBER_MAX}"));
        return Err(Refusal::OutOfRange { what: "number", given, allowed });
    }
    let width = request.width.or(request.seen.map(|(_, width)| width)).unwrap_or(WIDTH_DEFAULT);
    let text = format!("{number:0width$}");
    let (mut events, mut token, mut claimed, mut notices) = (Vec::new(), None, None, Vec::new());
    if request.claim {
        let pattern = format!("glob:{}{text}*", escaped(&request.folder));
        let resource = Resource::parse(&pattern)
            .map_err(|source| Refusal::BadResource { text: pattern, source })?;
        let (granted, answer) = take(view, &claim_of(resource.clone(), &text), context)?;
        if let claims::Answer::Granted(granted) = answer {
            token = Some(granted.token);
            notices = granted.notices;
        }
        events.extend(granted);
        claimed = Some(resource);
    }
    let counter =
        Counter { folder: key, last: number, by: caller.holder(context), at: context.now };
    events.push(Event::NumberGiven { counter });
    if !request.claim {
        events.extend(caller.activity(context, &[]));
        notices = caller.notices;
    }
    let folder = request.folder.clone();
    Ok((events, Given { folder, number, text, token, claimed, notices }))
}

fn claim_of(resource: Resource, text: &str) -> claims::Request {
    let reason = Some(format!("number {text}"));
    claims::Request { reason, ..claims::Request::of(vec![resource]) }
}

/// The folder as the beginning of a pattern, its own letters taken as they are.
fn escaped(folder: &str) -> String {
    let mut text = String::new();
    for character in folder.chars() {
        if "*?[]{}\\".contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    if !text.is_empty() {
        text.push('/');
    }
    text
}
