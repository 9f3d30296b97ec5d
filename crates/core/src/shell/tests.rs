//! Lines as agents write them, and what is known of each.
//!
//! Each table is one line and its deeds in short: `create a`, `delete b/**` with all below it,
//! `thin b/**` for the files there, `?` for a place nobody knows, `/some` for what cannot be told
//! of it, and `!` at the end of what is not harmless.

mod dangers;
mod formatters;
mod limits;
mod lines;
mod links;
mod properties;
mod settling;
mod sweeps;

use super::outcome::{Deeds, How, Place, When, Write};

fn place(place: &Place) -> String {
    match place {
        Place::Path(text) if text.starts_with('~') => format!("./{text}"),
        Place::Path(text) => text.clone(),
        Place::Home(text) => format!("~/{text}"),
        Place::Root(text) => format!(":/{text}"),
        Place::Pattern(text) => format!("<{text}>"),
        Place::Unknown => "?".to_owned(),
    }
}

fn write(write: &Write) -> String {
    let how = match write.how {
        How::Create => "create",
        How::Change => "change",
        How::Restore => "restore",
        How::Append => "append",
        How::Delete => "delete",
        How::DeleteFiles => "thin",
        How::MoveFrom => "from",
        How::MoveTo => "to",
        How::Copy => "copy",
        How::Folder => "folder",
    };
    let below = match (write.below, write.part) {
        (_, true) => "/some",
        (true, false) => "/**",
        (false, false) => "",
    };
    let when = match write.when {
        When::Always => "",
        When::There => " if there",
        When::NoFolder => " if no folder",
        When::InFolder => " if in a folder",
    };
    format!("{how} {}{below}{when}", place(&write.place))
}

fn in_short(deeds: &Deeds) -> String {
    let mut parts: Vec<String> = deeds.writes.iter().map(write).collect();
    if !deeds.harmless {
        parts.push("!".to_owned());
    }
    if deeds.unparsed.is_some() {
        parts.push("unparsed".to_owned());
    }
    parts.join(", ")
}

/// Looks at every line of a table, so that one run shows all that is wrong.
fn check(table: &[(&str, &str)]) {
    let look = |(line, wanted): &(&str, &str)| {
        let found = in_short(&super::read(line));
        (found != *wanted).then(|| format!("{line}\n  wanted {wanted}\n  found  {found}"))
    };
    let wrong: Vec<String> = table.iter().filter_map(look).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
