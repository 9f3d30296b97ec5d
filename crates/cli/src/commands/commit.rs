//! `commit`: exactly the named paths, in a tree that others use at the same time.
//!
//! Owns the words. What is held of the committed paths is told, since a commit lets go of nothing
//! by itself.

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::commits::Foreign;
use baton_engine::api::commits::Commit;
use baton_engine::committing::{self, Reply};

use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{Paint, counted, paint, resources, shown};

/// How much of a commit's id is shown.
const COMMIT_SHOWN: usize = 12;

pub(crate) fn run(desk: &mut Desk, wanted: &Commit) -> Outcome {
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let reply = committing::commit(workspace, actor, cwd, wanted, operation.as_deref())?;
    desk.answer(&reply, words);
    Ok(ExitCode::SUCCESS)
}

fn words(reply: &Reply, colour: bool) -> String {
    let made = &reply.committed.made;
    let short: String = made.commit.chars().take(COMMIT_SHOWN).collect();
    let place = match &made.branch {
        Some(branch) => format!("on {}", shown(branch)),
        None => "on no branch".to_owned(),
    };
    let mut text = format!(
        "{} {short} {place}: {}\n",
        paint("committed", Paint::Green, colour),
        resources(&made.paths)
    );
    if let Some(landing) = &reply.landing {
        let _ = writeln!(text, "the target is guarded: it lands through the queue, as {landing}");
        text.push_str("next: baton land ");
        let _ = writeln!(text, "{}", shown(made.branch.as_deref().unwrap_or_default()));
    }
    if reply.repaired {
        text.push_str("a commit that had died half-way was put in order first\n");
    }
    let names = |paths: &[String]| {
        let shown: Vec<String> = paths.iter().map(|path| shown(path)).collect();
        shown.join(", ")
    };
    if !reply.changed_by_hooks.is_empty() {
        let _ = writeln!(text, "a hook changed {}", names(&reply.changed_by_hooks));
    }
    if !reply.not_taken.is_empty() {
        let left = names(&reply.not_taken);
        let _ = writeln!(text, "left as it is though a hook changed it: {left}");
    }
    if !reply.undone.is_empty() {
        let _ = writeln!(
            text,
            "takes back what others changed since you read it: {}; make sure that it is meant",
            names(&reply.undone)
        );
    }
    if !made.foreign.is_empty() {
        let mut whose: Vec<String> =
            made.foreign.iter().map(|one: &Foreign| shown(&one.holder.name)).collect();
        whose.sort_unstable();
        whose.dedup();
        let _ = writeln!(text, "with lines of {}", whose.join(", "));
    }
    if !reply.committed.released.is_empty() {
        let _ = writeln!(text, "released {}", resources(&reply.committed.released));
    }
    if !reply.committed.held.is_empty() {
        let count = counted(reply.committed.held.len() as u64, "path", "paths");
        let held = resources(&reply.committed.held);
        let _ = writeln!(text, "you still hold {count} of it: {held}");
    }
    text.push_str(&notices_words(&reply.committed.notices, colour));
    text
}
