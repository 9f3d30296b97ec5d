//! `interface`: what others build on, who keeps it, and what became of it.
//!
//! Owns the words. Who may change what is in one is decided in `baton_core::interfaces`.

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::interfaces::{Interface, Told};
use baton_engine::api::interfaces as api;
use baton_engine::interfaces::{self, Interfaces, Shown};

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{self, Paint, counted, paint, resources, shown, table};
use crate::words::changes_words;

/// Functions of one file that are shown.
const FUNCTIONS_MAX: usize = 200;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum OneInterface {
    /// Mark files as what others build on; you keep them: only you change them
    Add(api::Add),
    /// Say that you build on it: you are told what changes
    Use {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// All of them
    List,
    /// Its files and functions, its owner, its users, its last changes
    Show {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// It is an interface no longer; for its owner or a person
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Somebody else keeps it from now on; for its owner or a person
    Give(api::Give),
}

pub(crate) fn run(common: &Common, command: &OneInterface) -> Outcome {
    let mut desk = match command {
        OneInterface::List | OneInterface::Show { .. } => Desk::open(common)?,
        _ => Desk::open_to_act(common)?,
    };
    let Desk { workspace, actor, cwd, operation, .. } = &mut desk;
    let operation = operation.as_deref();
    let (verb, told) = match command {
        OneInterface::List => {
            let found = interfaces::list(workspace)?;
            desk.answer(&found, listed);
            return Ok(ExitCode::SUCCESS);
        }
        OneInterface::Show { name } => {
            let found = interfaces::show(workspace, name)?;
            desk.answer(&found, page);
            return Ok(ExitCode::SUCCESS);
        }
        OneInterface::Add(wanted) => {
            ("added", interfaces::add(workspace, actor, cwd, wanted, operation)?)
        }
        OneInterface::Use { name } => {
            ("used", interfaces::use_it(workspace, actor, name, operation)?)
        }
        OneInterface::Remove { name } => {
            ("removed", interfaces::remove(workspace, actor, name, operation)?)
        }
        OneInterface::Give(wanted) => {
            ("given", interfaces::give(workspace, actor, wanted, operation)?)
        }
    };
    desk.answer(&told, |told: &Told, colour| {
        let done = paint(verb, Paint::Green, colour);
        said(verb, &done, told) + &notices_words(&told.notices, colour)
    });
    Ok(ExitCode::SUCCESS)
}

fn said(verb: &str, done: &str, told: &Told) -> String {
    let Told { interface, already, .. } = told;
    let name = shown(interface.name.as_str());
    let (owner, files) = (shown(&interface.owner.name), resources(&interface.files));
    let already = if *already { " already" } else { "" };
    match verb {
        "added" => format!("{done} the interface {name}{already}, kept by {owner}: {files}\n"),
        "used" => format!("{done} {name}{already}: you are told when {files} changes\n"),
        "removed" => format!("{done} the interface {name}; {files} stays as it is\n"),
        _ => format!("{done} {name} to {owner}{already}, who keeps it now\n"),
    }
}

fn listed(found: &Interfaces, colour: bool) -> String {
    if found.interfaces.is_empty() {
        return "no interfaces\n".to_owned();
    }
    let row = |one: &Interface| {
        vec![
            shown(one.name.as_str()),
            shown(&one.owner.name),
            one.users.len().to_string(),
            one.changes.last().map_or_else(|| "-".to_owned(), |last| render::ago(last.at)),
            resources(&one.files),
        ]
    };
    let rows: Vec<Vec<String>> = found.interfaces.iter().map(row).collect();
    table(&["INTERFACE", "OWNER", "USERS", "CHANGED", "FILES"], &rows, colour)
}

fn page(found: &Shown, colour: bool) -> String {
    let Shown { interface, kept, surface } = found;
    let gone = match kept {
        true => "",
        false => ", who is gone: whoever claims one of its files first keeps it",
    };
    let mut text = format!(
        "{}, kept by {} since {}{gone}\n",
        paint(&shown(interface.name.as_str()), Paint::Bold, colour),
        shown(&interface.owner.name),
        render::ago(interface.since)
    );
    let users: Vec<String> = interface.users.iter().map(|user| shown(&user.name)).collect();
    match users.is_empty() {
        true => text.push_str("  users: nobody said so\n"),
        false => {
            let _ = writeln!(text, "  users: {}", users.join(", "));
        }
    }
    for file in surface {
        let missing = if file.missing { " (not in this tree)" } else { "" };
        let _ = writeln!(text, "  {}{missing}", shown(&file.path.to_string()));
        for function in file.functions.iter().take(FUNCTIONS_MAX) {
            let _ = writeln!(text, "    {}", shown(function));
        }
        let more = file.functions.len().saturating_sub(FUNCTIONS_MAX);
        if more > 0 {
            let _ = writeln!(text, "    and {}", counted(more as u64, "more", "more"));
        }
    }
    for change in interface.changes.iter().rev() {
        let (by, at) = (shown(&change.by.name), render::ago(change.at));
        let _ = writeln!(text, "  changed by {by} {at}: {}", changes_words(&change.files));
    }
    text
}
