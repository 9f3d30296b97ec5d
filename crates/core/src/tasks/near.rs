//! Which task was meant by an id that does not exist.
//!
//! Owns the guess: numbers that differ by one slip of the finger, or titles with the same words.
//! Reads a bounded number of tasks, and only when somebody is refused anyway.

use std::collections::BTreeSet;

use super::refused::{Brief, Refused};
use super::similar;
use crate::id::TaskId;
use crate::refusal::Refusal;
use crate::task::Task;
use crate::task::tally::Tally;
use crate::view::{Query, View, get, only};

const SHOWN_MAX: usize = 3;
/// Longer numbers are no slip of the finger.
const DIGITS_MAX: usize = 12;

/// The refusal of an unknown id, with what may have been meant.
pub fn unknown(view: &dyn View, text: &str) -> Result<Refusal, Refusal> {
    let near = match TaskId::parse(text) {
        Some(id) => near_number(view, &id)?,
        None => near_words(view, text)?,
    };
    let task = text.chars().take(80).collect();
    Ok(Refused::Unknown { task, near }.into())
}

fn near_number(view: &dyn View, id: &TaskId) -> Result<Vec<Brief>, Refusal> {
    let digits = id.number().to_string();
    let made = get::<Tally>(view, Tally::KEY)?.unwrap_or_default().made;
    let mut guesses: Vec<String> = Vec::new();
    if digits.len() <= DIGITS_MAX {
        for at in 0..digits.len() {
            let mut dropped = digits.clone();
            dropped.remove(at);
            guesses.push(dropped);
            if at > 0 {
                let mut swapped = digits.clone().into_bytes();
                swapped.swap(at - 1, at);
                guesses.extend(String::from_utf8(swapped));
            }
        }
    }
    guesses.push(made.to_string());
    let mut seen = BTreeSet::new();
    let fresh = |guess: &String| {
        let number: u64 = guess.parse().ok().filter(|number| (1..=made).contains(number))?;
        Some(TaskId::numbered(number))
    };
    let ids: Vec<TaskId> =
        guesses.iter().filter_map(fresh).filter(|id| seen.insert(id.clone())).collect();
    let queries: Vec<Query> = ids.iter().map(|id| Query::get::<Task>(id.as_str())).collect();
    briefs(view, &queries)
}

fn near_words(view: &dyn View, text: &str) -> Result<Vec<Brief>, Refusal> {
    briefs(view, &similar::queries(text))
}

fn briefs(view: &dyn View, queries: &[Query]) -> Result<Vec<Brief>, Refusal> {
    let mut near: Vec<Brief> = Vec::new();
    for rows in view.read(queries)? {
        for task in only::<Task>(&rows)? {
            if near.len() < SHOWN_MAX && near.iter().all(|known| known.task != task.task) {
                near.push(Brief::from(&task));
            }
        }
    }
    Ok(near)
}
