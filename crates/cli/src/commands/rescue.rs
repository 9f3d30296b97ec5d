//! `rescue`: work that was saved before anybody could lose it.
//!
//! Owns the words. A patch is another's text: on a terminal nothing in it acts, in a pipe it is
//! what `git apply` takes.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::process::ExitCode;

use baton_engine::api::trees as api;
use baton_engine::rescuing::{self, RescueList, Rescued, Restored, ShownRescue};

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::render::{Paint, ago, paint, shown, shown_lines, table};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Rescue {
    /// What was saved: whose, when, which files
    List,
    /// One of them, with its changes as a patch
    Show {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Bring it back, into a tree where its files are clean or as a new branch
    Restore(api::Restore),
}

pub(crate) fn run(common: &Common, command: &Rescue) -> Outcome {
    match command {
        Rescue::List => {
            let mut desk = Desk::open(common)?;
            let found = rescuing::list(&mut desk.workspace)?;
            desk.answer(&found, list_words);
        }
        Rescue::Show { name } => {
            let mut desk = Desk::open(common)?;
            let found = rescuing::show(&mut desk.workspace, name)?;
            desk.answer(&found, page);
        }
        Rescue::Restore(wanted) => {
            let mut desk = Desk::open_to_act(common)?;
            let Desk { workspace, actor, cwd, operation, .. } = &mut desk;
            let operation = operation.as_deref();
            let restored = rescuing::restore(workspace, actor, cwd, wanted, operation)?;
            desk.answer(&restored, restored_words);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list_words(found: &RescueList, colour: bool) -> String {
    if found.rescues.is_empty() {
        return "nothing had to be rescued\n".to_owned();
    }
    let row = |one: &Rescued| {
        let files = match one.files.as_slice() {
            [] => "-".to_owned(),
            [file] => shown(file),
            [file, rest @ ..] => format!("{} and {} more", shown(file), rest.len()),
        };
        vec![shown(&one.name), shown(&one.who), ago(one.at), files, shown(&one.what)]
    };
    let rows: Vec<Vec<String>> = found.rescues.iter().map(row).collect();
    table(&["NAME", "WHO", "SINCE", "FILES", "WHAT"], &rows, colour)
}

fn page(one: &ShownRescue, colour: bool) -> String {
    if !std::io::stdout().is_terminal() {
        return one.patch.clone();
    }
    let rescued = &one.rescued;
    let mut text = format!(
        "{}, {}'s, {}: {}\n",
        paint(&shown(&rescued.name), Paint::Bold, colour),
        shown(&rescued.who),
        ago(rescued.at),
        shown(&rescued.what)
    );
    let _ = writeln!(text, "{}", shown_lines(&one.patch, ""));
    text
}

fn restored_words(restored: &Restored, colour: bool) -> String {
    let done = paint("restored", Paint::Green, colour);
    let name = shown(&restored.name);
    match (&restored.branch, &restored.tree) {
        (Some(branch), _) => format!("{done} {name} as the branch {}\n", shown(branch)),
        (None, tree) => {
            let tree = shown(tree.as_deref().unwrap_or_default());
            match restored.files.is_empty() {
                true => format!("{tree} has everything of {name} already\n"),
                false => {
                    let files = shown(&restored.files.join(", "));
                    format!("{done} {name} in {tree}: {files}\n")
                }
            }
        }
    }
}
