//! `worktree`: working trees with a branch of their own, made and removed without losing anything.
//!
//! Owns the words. Progress and what a setup command writes go to standard error, the answer to
//! standard output. Text from others is shown escaped (S20).

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::trees::refused::Keep;
use baton_core::trees::{Made, Removed};
use baton_engine::api::trees as api;
use baton_engine::trees::Door;
use baton_engine::trees::looking::{self, ListedTree, TreeList};
use baton_engine::trees::making;
use baton_engine::trees::removing::{self, Collected};
use baton_engine::whoami;

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::onlooker::Onlooker;
use crate::render::{Paint, paint, shown, table};
use crate::words::{keep_words, word};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Worktree {
    /// Make a working tree with a branch of its own, all of it or nothing
    New(api::New),
    /// Every working tree: branch, task, owner, how far ahead and behind, dirty, in use
    List,
    /// Remove one; what is in it is saved first (baton rescue)
    Remove(api::Remove),
    /// Remove what is landed, clean and unused
    Gc(api::Collect),
}

pub(crate) fn run(common: &Common, command: &Worktree) -> Outcome {
    match command {
        Worktree::New(wanted) => new(&mut Desk::open_to_act(common)?, wanted),
        Worktree::List => {
            let mut desk = Desk::open_as(common, whoami::reader)?;
            let found = looking::list(&mut desk.workspace, &desk.actor)?;
            desk.answer(&found, list_words);
            Ok(ExitCode::SUCCESS)
        }
        Worktree::Remove(wanted) => {
            let mut desk = Desk::open_to_act(common)?;
            let Desk { workspace, actor, cwd, operation, .. } = &mut desk;
            let removed = removing::remove(workspace, actor, cwd, wanted, operation.as_deref())?;
            desk.answer(&removed, |removed, colour| removed_words(removed, "removed", colour));
            Ok(ExitCode::SUCCESS)
        }
        Worktree::Gc(wanted) => {
            let mut desk = Desk::open_to_act(common)?;
            let Desk { workspace, actor, operation, .. } = &mut desk;
            let collected = removing::collect(workspace, actor, wanted, operation.as_deref())?;
            desk.answer(&collected, collected_words);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn new(desk: &mut Desk, wanted: &api::New) -> Outcome {
    let mut terminal = Onlooker::new()?;
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let operation = operation.as_deref();
    let made = making::new(workspace, actor, cwd, wanted, operation, &mut terminal)?;
    desk.answer(&made, made_words);
    Ok(ExitCode::SUCCESS)
}

impl Door for Onlooker<'_> {
    fn step(&mut self, what: &str) {
        Self::step(what);
    }

    fn wrote(&mut self, bytes: &[u8]) {
        Self::wrote(bytes);
    }

    fn end_wanted(&mut self) -> bool {
        Self::end_wanted(self)
    }
}

fn made_words(made: &Made, colour: bool) -> String {
    let tree = &made.tree;
    let mut text = format!(
        "{} {}\n  branch: {}\n  base:   {} ({})\n",
        paint("made", Paint::Green, colour),
        shown(&tree.path),
        shown(&tree.branch),
        shown(&tree.base),
        tree.commit.get(..12).unwrap_or(&tree.commit)
    );
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {:<7} {value}", format!("{name}:"));
    };
    if let Some(task) = &tree.task {
        line("task", task.as_str());
    }
    if let (Some(first), Some(last)) = (tree.ports.first(), tree.ports.last()) {
        line("ports", &format!("{first} to {last}, in {}", shown(&made.environment)));
    }
    if !made.carried.is_empty() {
        line("copied", &shown(&made.carried.join(", ")));
    }
    if let Some(author) = &made.author {
        line("author", &shown(author));
    }
    for remark in &made.remarks {
        line("note", &shown(remark));
    }
    let _ = writeln!(text, "  {:<7} cd {}", "next:", word(&tree.path));
    text.push_str(&notices_words(&made.notices, colour));
    text
}

fn list_words(found: &TreeList, colour: bool) -> String {
    let rows: Vec<Vec<String>> = found.trees.iter().map(row).collect();
    let headings = ["TREE", "BRANCH", "TASK", "OWNER", "AHEAD", "BEHIND", "STATE", "USE"];
    table(&headings, &rows, colour)
}

fn row(tree: &ListedTree) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let state = match (tree.planned, tree.there, tree.seen.dirty.len()) {
        (true, ..) => "being made".to_owned(),
        (_, false, _) => "gone".to_owned(),
        (_, _, 0) => "clean".to_owned(),
        (_, _, count) => format!("dirty ({count})"),
    };
    let used = tree.keep.iter().find_map(|keep| match keep {
        Keep::InUse { session, .. } => Some(shown(session)),
        Keep::Process { pid, name } => Some(format!("{} ({pid})", shown(name))),
        _ => None,
    });
    let used = used.or_else(|| tree.held.then(|| "held".to_owned()));
    vec![
        shown(&tree.path),
        or_dash(tree.branch.as_deref().map(shown)),
        or_dash(tree.task.as_ref().map(|task| task.to_string())),
        or_dash(tree.owner.as_deref().map(shown)),
        or_dash(tree.ahead.map(|count| count.to_string())),
        or_dash(tree.behind.map(|count| count.to_string())),
        state,
        or_dash(used),
    ]
}

fn removed_words(removed: &Removed, verb: &str, colour: bool) -> String {
    let mut text = format!("{} {}\n", paint(verb, Paint::Green, colour), shown(&removed.path));
    if let Some(branch) = &removed.branch {
        let fate = if removed.branch_removed { "gone too" } else { "kept" };
        let _ = writeln!(text, "  branch: {}, {fate}", shown(branch));
    }
    for reference in &removed.rescued {
        let name = reference.strip_prefix("refs/baton/rescue/").unwrap_or(reference);
        let _ = writeln!(text, "  saved:  baton rescue show {}", word(name));
    }
    text
}

fn collected_words(collected: &Collected, colour: bool) -> String {
    let verb = if collected.dry_run { "would remove" } else { "removed" };
    let mut text = String::new();
    for removed in &collected.removed {
        match collected.dry_run {
            true => {
                let _ = writeln!(text, "{verb} {}", shown(&removed.path));
            }
            false => text.push_str(&removed_words(removed, verb, colour)),
        }
    }
    for kept in &collected.kept {
        let _ = writeln!(text, "kept {}: {}", shown(&kept.path), keep_words(&kept.because).0);
    }
    if text.is_empty() {
        text.push_str("there is no tree but the main one\n");
    }
    text
}
