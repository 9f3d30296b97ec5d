//! What a model reads at the doors: who, until when, why, and what it can do now.
//!
//! Owns the sentences. Every line begins with `Baton:` so that a reader knows who speaks; texts of
//! other agents stand in quotes, escaped, and never at the start of a line (S20).

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use baton_core::check::{Because, Finding, Verdict};
use baton_core::id::SessionId;
use baton_core::roles;
use baton_core::shell::danger::Verb;
use baton_engine::checking::NotClaimable;
use baton_engine::doors::edit::Judged;
use baton_engine::doors::reads::Stale;
use baton_engine::doors::shell::{self, Saved, Stopped};
use baton_engine::doors::turn::Turn;

mod afterwards;
mod leaving;

pub(crate) use afterwards::compared;
pub(crate) use leaving::left;

use super::Client;
use crate::commands::sync::touch_words;
use crate::news::notices_words;
use crate::render::{self, quoted, shown};
use crate::words::{Problem, held_next, held_sentence, role_next, role_sentence, word};

pub(crate) const NOT_SET_UP: &str = "Baton: this project uses Baton, but it is not set up in \
this clone, so nothing here is guarded: others may be changing the same files. Tell your user to \
run `baton init`.";
/// Findings that one answer spells out.
const FINDINGS_MAX: usize = 5;

/// Why an edit may not be, and what else can be done.
pub(crate) fn denial(judged: &Judged) -> String {
    let mut text = String::new();
    let mut stopped = Vec::new();
    for finding in judged.findings.iter().filter(|one| one.verdict >= Verdict::Ask) {
        let sentence = stopped_sentence(finding, judged.me.as_ref());
        // One line of a shell may touch a file twice.
        if !stopped.contains(&sentence) {
            stopped.push(sentence);
        }
    }
    for sentence in stopped.iter().take(FINDINGS_MAX) {
        let _ = writeln!(text, "Baton: {sentence}");
    }
    let more = stopped.len().saturating_sub(FINDINGS_MAX);
    if more > 0 {
        let _ = writeln!(text, "Baton: and {more} more like it.");
    }
    for one in judged.not_claimable.iter().filter(|one| one.verdict >= Verdict::Ask) {
        let _ = writeln!(text, "Baton: {}", unclaimable_sentence(one));
    }
    if let Some(refusal) = &judged.refusal {
        let _ = writeln!(text, "{}", refused(&Problem::from(refusal.as_ref())));
    }
    for path in &judged.overwritten {
        let stale = judged.stale.iter().find(|one| one.path == *path);
        let _ = writeln!(
            text,
            "Baton: {} since you read it, and this would overwrite that. Read it again, then \
             write what both need.",
            stale.map_or_else(|| shown(&path.to_string()), changed_sentence)
        );
    }
    for (path, lines) in &judged.undone {
        let stale = judged.stale.iter().find(|one| one.path == *path);
        let _ = writeln!(
            text,
            "Baton: {} since you read it, and this would take back {} of that. Read it again, then \
             change what is there now.",
            stale.map_or_else(|| shown(&path.to_string()), changed_sentence),
            render::counted(*lines as u64, "line", "lines")
        );
    }
    for asked in &judged.asked {
        let (path, gate) = (shown(&asked.resource.to_string()), &asked.gate);
        let _ = match &asked.decision {
            None => writeln!(
                text,
                "Baton: a person is asked about {path} now ({gate}), and you will be told the \
                 answer. Until then it stays as it is."
            ),
            Some(decision) => {
                let why = decision.why.as_deref().unwrap_or_default();
                writeln!(text, "Baton: a person said no to {path} ({gate}): {}", quoted(why))
            }
        };
    }
    for path in &judged.not_appended {
        let _ = writeln!(
            text,
            "Baton: {} is in an append zone: lines may be added at its end, and those that are \
             there stay as they are.",
            shown(&path.to_string())
        );
    }
    text.push_str(&other_trees(judged));
    text.push_str(&news(judged));
    text.trim_end().to_owned()
}

/// Paths are said as they are in their tree: whoever edits in another one is told which.
fn other_trees(judged: &Judged) -> String {
    let tree = |root: &PathBuf| {
        let root = shown(&root.display().to_string());
        format!("Baton: this is about files in another working tree, {root}.\n")
    };
    judged.elsewhere.iter().map(tree).collect()
}

/// Work of others that was saved before a command that overwrites it.
pub(crate) fn saved(saved: &[Saved]) -> String {
    let mut text = String::new();
    for one in saved.iter().take(FINDINGS_MAX) {
        let whose = match &one.name {
            Some(name) => format!("of {}, who is gone,", shown(name)),
            None => "there that are not yours".to_owned(),
        };
        let reference = shown(&one.reference);
        let _ = writeln!(
            text,
            "Baton: uncommitted changes {whose} were saved first, as {reference}. Bring them back \
             if they are needed: baton rescue list."
        );
    }
    text
}

fn stopped_sentence(finding: &Finding, me: Option<&SessionId>) -> String {
    let path = finding.resource.to_string();
    let (what, given) = (shown(&path), word(&path));
    match (finding.because, finding.held.first()) {
        (Because::Held, Some(held)) if me == Some(&held.holder.session) => format!(
            "{}, which works for the same agent as you. Nothing was changed; do not go around \
             this. Leave the file to it and do the rest of your work; it is free when that \
             subagent has stopped. If you cannot go on without it, say so in your answer to the \
             agent that started you.",
            held_sentence(held)
        ),
        (Because::Held, Some(held)) if held.interface.is_some() => format!(
            "{}. Nothing was changed; do not go around this. You can: {}.",
            held_sentence(held),
            held_next(held)
        ),
        (Because::Held, Some(held)) => format!(
            "{}. Nothing was changed; do not go around this. You can work on something else now \
             (baton task ready), wait for it (baton claim {given} --wait 10m), ask for it (baton \
             ask {given} --why \"…\"), or suggest your change (baton suggest --help).",
            held_sentence(held)
        ),
        (Because::Held, None) => format!("{what} is held by somebody else."),
        (Because::ClaimFirst, _) if path.ends_with('/') || path.contains('*') => format!(
            "in {what} are files of a zone where a claim comes first: claim those that you need by \
             name, then edit them one by one."
        ),
        (Because::ClaimFirst, _) => format!(
            "{what} is in a zone where a claim comes first: baton claim {given}, then edit it."
        ),
        (Because::NeedsPerson, _) => format!(
            "{what} is for a person to approve. Say what you would change and why, and go on with \
             something else meanwhile."
        ),
        (Because::Role, _) if finding.role.is_some() => {
            finding.role.as_deref().map(role_words).unwrap_or_default()
        }
        _ => format!("{what} may not be edited now."),
    }
}

/// Why the role of this agent does not do that.
pub(crate) fn role_denial(refused: &roles::Refused) -> String {
    format!("Baton: {}", role_words(refused))
}

fn role_words(refused: &roles::Refused) -> String {
    format!(
        "{}. Nothing was changed; do not go around this. What you can do: {}.",
        role_sentence(refused),
        role_next(refused)
    )
}

fn unclaimable_sentence(one: &NotClaimable) -> String {
    let path = shown(one.path.trim_start_matches("path:"));
    match one.because {
        Because::GitDir => format!(
            "{path} belongs to git or to Baton and is never edited by hand; use git and baton."
        ),
        _ => format!("{path} may not be edited."),
    }
}

fn changed_sentence(stale: &Stale) -> String {
    let path = shown(&stale.path.to_string());
    let names = stale.functions.names();
    let mut functions = names.iter().take(FINDINGS_MAX).map(|name| shown(name)).collect::<Vec<_>>();
    if names.len() > FINDINGS_MAX {
        functions.push(format!("{} more", names.len() - FINDINGS_MAX));
    }
    let what = match functions.is_empty() {
        true => String::new(),
        false => format!(" ({})", functions.join(", ")),
    };
    match &stale.by {
        Some(name) => format!("{path} was changed by {}{what}", shown(name)),
        None => format!("{path} has changed{what}"),
    }
}

/// What an agent should know of an edit that may be.
pub(crate) fn remarks(judged: &Judged) -> String {
    let mut text = String::new();
    for stale in &judged.stale {
        let _ = writeln!(
            text,
            "Baton: {} since you read it. Make sure your change fits what is there now.",
            changed_sentence(stale)
        );
    }
    for granted in &judged.granted {
        for name in &granted.interfaces {
            let _ = writeln!(
                text,
                "Baton: others build on this: it is the interface {}, and you keep it now, since \
                 its owner is gone. They are told what you change of it.",
                shown(name.as_str())
            );
        }
        for held in &granted.elsewhere {
            let _ = writeln!(
                text,
                "Baton: in another tree, {}. Your edit is fine here; expect a merge, and keep the \
                 change small.",
                held_sentence(held)
            );
        }
        for left in &granted.left_behind {
            let saved = match &left.rescue {
                Some(reference) => format!(" (saved as {reference})"),
                None => String::new(),
            };
            let _ = writeln!(
                text,
                "Baton: {} has uncommitted changes of {}{saved}. They are not yours: keep them.",
                render::resources(&left.paths),
                render::holder(&left.holder)
            );
        }
    }
    text.push_str(&news(judged));
    text.trim_end().to_owned()
}

fn news(judged: &Judged) -> String {
    told(&judged.notices)
}

/// What a session must be told, a line each.
pub(crate) fn told(notices: &[baton_core::notices::Notice]) -> String {
    let lines = notices_words(notices, false);
    lines.lines().map(|line| format!("Baton: {line}\n")).collect()
}

/// What is not as the session read it, so many of them by name.
pub(crate) fn changed_since(stale: &[Stale], named_max: usize) -> Vec<String> {
    let named = stale.iter().take(named_max).map(|one| {
        let changed = changed_sentence(one);
        format!("{changed} since you read it. Read it again before you rely on it.")
    });
    let more = stale.len().saturating_sub(named_max);
    let more = (more > 0).then(|| format!("and {more} more files that you read have changed."));
    named.chain(more).collect()
}

/// What is new at the beginning of a turn, a few lines.
pub(crate) fn turn(turn: &Turn) -> String {
    let mut text = told(&turn.notices);
    for line in changed_since(&turn.stale, FINDINGS_MAX) {
        let _ = writeln!(text, "Baton: {line}");
    }
    if let Some(behind) = &turn.behind {
        let commits = render::counted(behind.commits, "commit", "commits");
        let _ = writeln!(
            text,
            "Baton: {} has {commits} that your branch has not, and these touch what you work with \
             (baton sync --pull brings them in):",
            shown(&behind.target)
        );
        for touch in behind.touches.iter().take(FINDINGS_MAX) {
            text.push_str(&touch_words(touch));
        }
    }
    text
}

/// Why a line of a shell may not run, and what to do instead.
pub(crate) fn line_denial(judged: &shell::Judged) -> String {
    let mut text = String::new();
    // One command, one sentence: what it may not leave out says enough of what it would take along.
    let said_already = |one: &&Stopped| {
        let others = judged.stopped.iter().filter(|other| other.danger.argv == one.danger.argv);
        let verbs: Vec<Verb> = others.map(|other| other.danger.verb).collect();
        match one.danger.verb {
            Verb::AddAll => verbs.contains(&Verb::PlainCommit),
            Verb::PlainCommit | Verb::NamedCommit => verbs.contains(&Verb::NoVerify),
            // Two spellings of one folder, or two folders of one command: the same is true of both.
            Verb::DeletesBaton => {
                let first =
                    judged.stopped.iter().find(|other| other.danger.verb == one.danger.verb);
                first.is_some_and(|first| !std::ptr::eq(first, *one))
            }
            _ => false,
        }
    };
    let stopped = judged.stopped.iter().filter(|one| !said_already(one));
    for stopped in stopped.take(FINDINGS_MAX) {
        let line = match stopped.danger.verb {
            Verb::RemovesTree | Verb::DeletesBaton => plain_path(&stopped.danger.argv.join(" ")),
            _ => stopped.danger.argv.join(" "),
        };
        let line = shown(&line);
        let why = danger_sentence(stopped, judged.on_target.as_deref());
        let _ = match stopped.danger.verb {
            Verb::RemovesTree => {
                writeln!(text, "Baton: this removes `{line}`, and was not run: {why}")
            }
            Verb::DeletesBaton => {
                writeln!(text, "Baton: this writes in `{line}`, and was not run: {why}")
            }
            _ => writeln!(text, "Baton: `{line}` was not run: {why}"),
        };
    }
    if let Some(target) = &judged.deploys {
        let target = shown(target);
        let _ = writeln!(
            text,
            "Baton: this ships {target} by hand, and was not run. `baton deploy {target}` does it \
             from a clean checkout of what has landed, one at a time, and checks it afterwards."
        );
    }
    if let Some(edits) = &judged.edits {
        text.push_str(&denial(edits));
    }
    text.push_str(&told(&judged.notices));
    text.trim_end().to_owned()
}

/// A path as a person would say it: without the steps that lead nowhere.
fn plain_path(path: &str) -> String {
    let plain: PathBuf =
        Path::new(path).components().filter(|part| *part != Component::CurDir).collect();
    match plain.as_os_str().is_empty() {
        true => ".".to_owned(),
        false => plain.display().to_string(),
    }
}

/// Whom it endangers, and how many they are.
fn endangered(stopped: &Stopped) -> (String, usize) {
    let names = stopped.others.iter().map(|name| shown(name));
    let away = stopped.away.iter();
    let away = away.map(|name| format!("{} (ended, but its claims wait for it)", shown(name)));
    let mut said: Vec<String> = names.chain(away).collect();
    let count = said.len();
    if count > FINDINGS_MAX {
        said.truncate(FINDINGS_MAX);
        said.push(format!("{} more", count - FINDINGS_MAX));
    }
    (if said.is_empty() { "others".to_owned() } else { said.join(", ") }, count)
}

fn taken_along(paths: &[String]) -> String {
    let mut named: Vec<String> = paths.iter().take(FINDINGS_MAX).map(|path| shown(path)).collect();
    if paths.len() > FINDINGS_MAX {
        named.push(format!("{} more", paths.len() - FINDINGS_MAX));
    }
    named.join(", ")
}

fn danger_sentence(stopped: &Stopped, on_target: Option<&str>) -> String {
    let (others, count) = endangered(stopped);
    let work = if count == 1 { "works" } else { "work" };
    let tree = match &stopped.tree {
        Some(root) => format!("the tree {}", shown(&root.display().to_string())),
        None => "this tree".to_owned(),
    };
    match stopped.danger.verb {
        Verb::Stash => format!(
            "git has one stash for all working trees, and {others} would find or lose work in it. \
             Commit what is yours instead: baton commit -m \"wip: …\"."
        ),
        Verb::ResetHard | Verb::Clean | Verb::DiscardAll => format!(
            "{others} {work} in {tree}, and uncommitted edits would be gone. To undo your \
             own edits, restore your own files by name: git restore FILE."
        ),
        Verb::SwitchTree => {
            let then = match stopped.unsaved.is_empty() && stopped.away.is_empty() {
                true => ", or take the whole tree first: baton claim @git/tree --wait 10m.",
                false => ", or wait until what is uncommitted there is committed.",
            };
            format!(
                "{others} {work} in {tree}, and it would change under their hands. Work in a tree \
                 of your own (baton worktree new), bring this one up to date with baton sync \
                 --pull{then}"
            )
        }
        Verb::AddAll => format!(
            "it would take what {others} changed or staged along. Commit exactly your files: baton \
             commit -m \"…\" FILE…"
        ),
        Verb::PlainCommit | Verb::NamedCommit => {
            commit_sentence(stopped, on_target, &format!("{others} {work}"), &tree)
        }
        Verb::RemovesTree => format!(
            "{others} {work} in {tree}, and it would be gone. Leave it to them; a tree that nobody \
             works in any more is removed with baton worktree remove, which saves what is in it."
        ),
        Verb::ForcePush => {
            "it can erase what others pushed. Land your branch instead: baton land.".to_owned()
        }
        Verb::NoVerify if stopped.danger.argv.iter().any(|word| word == "commit") => {
            "hooks guard the work of others here, and are not left out. Commit exactly your files: \
             baton commit -m \"…\" FILE…"
                .to_owned()
        }
        Verb::NoVerify | Verb::ConfigHooks => {
            "hooks guard the work of others here, and are not left out. Run it without that."
                .to_owned()
        }
        Verb::DeletesBaton => {
            "that folder belongs to git or to Baton, and is never written by hand. Remove or move \
             what is yours by its name; for a tree of your own: baton worktree new."
                .to_owned()
        }
        Verb::ActsAsPerson => {
            "only a person decides that. Say what you need and why, and go on with something else."
                .to_owned()
        }
        Verb::ActsAsSession => "you act as your own session, and as no other.".to_owned(),
        Verb::KillsBaton => "other agents depend on it.".to_owned(),
        Verb::TooLong => {
            "it is longer than Baton reads, so nobody can tell what it does. Write it into a file \
             and run that, or run it in parts."
                .to_owned()
        }
        Verb::Push => "others may be at risk.".to_owned(),
    }
}

/// Why a plain commit may not be made.
fn commit_sentence(
    stopped: &Stopped,
    on_target: Option<&str>,
    others_work: &str,
    tree: &str,
) -> String {
    match on_target {
        Some(branch) => target_sentence(branch),
        None if stopped.danger.verb == Verb::NamedCommit => format!(
            "{others_work} on some of what it names, and is not done. Leave that to it, and \
                 commit exactly your files: baton commit -m \"…\" FILE…"
        ),
        None if !stopped.taken.is_empty() => format!(
            "it would take {} along, which you do not hold. Commit exactly your files: baton \
                 commit -m \"…\" FILE…",
            taken_along(&stopped.taken)
        ),
        None => format!(
            "{others_work} in {tree} with the same index, and it may take what was staged \
                 there. Commit exactly your files: baton commit -m \"…\" FILE…"
        ),
    }
}

/// How work reaches a branch that agents are kept off.
fn target_sentence(branch: &str) -> String {
    format!(
        "work reaches {} only through the queue. `baton commit -m \"…\"` puts it on a branch of \
         your own, and `baton land` lands it when its checks have passed.",
        shown(branch)
    )
}

/// An edit whose path is there and is no text.
pub(crate) fn no_path() -> String {
    "Baton: the path of this edit is not a text, so nobody can tell which file it changes. Send it \
     again with the path as a string."
        .to_owned()
}

/// A patch of which nobody can tell what it changes.
pub(crate) fn unreadable(why: &str) -> String {
    format!(
        "Baton: this patch cannot be read, so nobody can tell what it changes: {}. Send it again \
         in the format of its tool, in smaller parts if it is large.",
        shown(why)
    )
}

/// An edit of a file that its client would look for elsewhere.
pub(crate) fn sought(path: &str, folder: &Path) -> String {
    format!(
        "Baton: this was not done: there is no {} in {}, and Gemini would look for one elsewhere. \
         Name it by its whole path.",
        shown(path),
        shown(&folder.display().to_string())
    )
}

/// An edit of more files than one claim takes.
pub(crate) fn too_many(files: usize, max: usize) -> String {
    format!(
        "Baton: this changes {files} files at once, and no more than {max} are judged together. \
         Send it in smaller parts."
    )
}

/// Baton said no to something that the act needs.
pub(crate) fn refused(Problem { message, next, .. }: &Problem) -> String {
    format!(
        "Baton: {message}. Nothing was changed; do not go around this. What you can do: {next}."
    )
}

/// No session and no act can be told from what came; whatever it was goes on unjudged.
pub(crate) fn not_understood(client: Client) -> String {
    format!(
        "baton: this was not judged, because what came is no payload of {} with a session in it",
        client.name()
    )
}

/// The same for the model, where it can be seen that something is done.
pub(crate) fn unread(client: Client) -> String {
    format!(
        "Baton: this was not judged, because what {} sent of it could not be read. Go on \
         carefully, and tell your user: baton doctor",
        client.name()
    )
}

/// The time is over; the act goes on unjudged.
/// What another workspace says that an act reaches into.
pub(crate) fn elsewhere(root: &Path, text: &str) -> String {
    let root = shown(&root.display().to_string());
    format!("In another project, {root} (run baton there): {text}")
}

pub(crate) fn too_slow(limit: Duration) -> String {
    format!(
        "Baton: this was not judged, because Baton had no answer within {} s. Go on carefully, and \
         tell your user: baton doctor",
        limit.as_secs()
    )
}

/// Baton could not answer; the act goes on unjudged, and the agent is told so.
pub(crate) fn unanswered(problem: &Problem) -> String {
    format!(
        "Baton: this was not judged, because Baton could not answer: {}. Go on carefully, and tell \
         your user: {}",
        problem.message, problem.next
    )
}
