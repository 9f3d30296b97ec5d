//! Whether the hooks that stand in a file guard anything: each where and as it should be.
//!
//! Owns what of a hook may be otherwise than Baton writes it, and what may not: a matcher that
//! matches less, a line that does more or less than to call Baton, a field that lets the client go
//! on before there is an answer. What it cannot see is whether the line works; that is tried.

use jsonc_parser::cst::CstObject;

use super::{
    Broken, Entry, HARMFUL, Hook, Json, Seat, command, is_called_in, ours_in, parse, text_of,
};

/// Matchers that match everything.
const EVERYTHING: [&str; 3] = ["", "*", ".*"];
/// Of the time that Baton asks for, it needs this part itself.
const OF: u32 = 5;
const NEEDED: u32 = 2;

/// What a hook of ours runs, as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Line {
    pub(in super::super) command: String,
    pub(in super::super) arguments: Option<Vec<String>>,
}

/// What was found of our hooks.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Guards {
    /// Why some of them guard nothing.
    pub(in super::super) faults: Vec<String>,
    /// Each line once. Those that make or remove trees are left out: they cannot be tried.
    pub(in super::super) lines: Vec<Line>,
}

pub(in super::super) fn guards(text: &str, entries: &[Entry]) -> Result<Guards, Broken> {
    let (root, _) = parse(text)?;
    let hooks = root.object_value().and_then(|top| top.object_value("hooks"));
    let mut found = Guards::default();
    let wanted = entries.iter().filter_map(|entry| match entry {
        Entry::Hook(hook) => Some(hook),
        _ => None,
    });
    for hook in wanted {
        let list = hooks.as_ref().and_then(|hooks| hooks.array_value(hook.event));
        let seats = list.as_ref().map(|list| ours_in(list, hook.client)).unwrap_or_default();
        let mut faults: Vec<Option<String>> = seats.iter().map(|seat| fault(seat, hook)).collect();
        let good = faults.iter().position(Option::is_none);
        match good.and_then(|good| seats.get(good)) {
            Some(seat) if !hook.event.starts_with("Worktree") => {
                let line = line_of(&seat.hook);
                if !found.lines.contains(&line) {
                    found.lines.push(line);
                }
            }
            Some(_) => {}
            None => {
                let why = faults.drain(..).flatten().next();
                let changed = list.is_some_and(|list| is_called_in(&list, hook.client));
                let none = if changed { "the line was changed" } else { "nothing calls Baton" };
                let why = why.unwrap_or_else(|| none.to_owned());
                found.faults.push(format!("at {} {why}", hook.event));
            }
        }
    }
    Ok(found)
}

fn line_of(hook: &CstObject) -> Line {
    let (command, arguments) = super::line_of(hook);
    Line { command, arguments }
}

/// Why this hook does not do what it is there for.
fn fault(seat: &Seat, hook: &Hook) -> Option<String> {
    let holder = seat.group.as_ref().unwrap_or(&seat.hook);
    if let Some(fault) = matcher_fault(holder, hook) {
        return Some(fault);
    }
    let line = line_of(&seat.hook);
    let plain =
        line.arguments.is_some() || command::is_plain(&line.command, hook.client, hook.event);
    if !plain {
        return Some("the line was changed".to_owned());
    }
    for property in seat.hook.properties() {
        let name = property.decoded_name().unwrap_or_default();
        let ours = hook.fields.iter().find(|(known, _)| *known == name);
        let value = property.value();
        let fault = match ours {
            Some((_, Json::Number(wanted))) => {
                let found = value.and_then(|value| value.to_string().parse::<f64>().ok());
                found.is_none_or(|found| found * f64::from(OF) < f64::from(*wanted * NEEDED))
            }
            Some(("type", wanted)) => !value.is_some_and(|value| wanted.is(&value)),
            Some(_) => false,
            None => HARMFUL.contains(&name.as_str()),
        };
        if fault {
            return Some(format!("`{name}` was changed or added"));
        }
    }
    None
}

/// Why the hook is not called for all that it should be.
pub(super) fn matcher_fault(holder: &CstObject, hook: &Hook) -> Option<String> {
    let there = holder.get("matcher")?;
    let text = there.value().and_then(|value| text_of(&value));
    let Some(text) = text else { return Some("the matcher is not text".to_owned()) };
    let words: Vec<&str> = text.split('|').map(str::trim).collect();
    let covers = EVERYTHING.contains(&text.as_str())
        || hook.matcher.is_some_and(|wanted| wanted.split('|').all(|one| words.contains(&one)));
    (!covers).then(|| format!("the matcher is `{text}`"))
}
