//! What a model reads after a command: what that did, in the words for what is done.
//!
//! Owns the sentences about deeds. What was denied did not happen, so no word of a denial fits
//! here; and nothing is to be put back by hand, which would be one more edit of what another holds.

use std::fmt::Write as _;

use baton_core::check::{Because, Finding, Verdict};
use baton_core::resource::Resource;
use baton_engine::doors::after::Compared;
use baton_engine::doors::edit::Judged;

use super::{FINDINGS_MAX, news, other_trees, remarks};
use crate::render::{self, shown};
use crate::words::{Problem, held_sentence, role_sentence, word};

/// What a command left that its agent must know.
pub(crate) fn compared(compared: &Compared) -> String {
    let mut text = taken_from_others(compared);
    if let Some(kept) = &compared.kept {
        text.push_str(&overstepped(kept));
        text.push_str(&news(kept));
    }
    if let Some(taken) = &compared.taken {
        text.push_str(&overstepped(taken));
        text.push_str(&remarks(taken));
        text.push('\n');
    }
    text.push_str(&nobody_held(compared));
    if !compared.in_the_middle.is_empty() {
        let named = compared.in_the_middle.iter().take(FINDINGS_MAX);
        let named: Vec<String> =
            named.map(|(path, name)| format!("{} ({})", shown(path), shown(name))).collect();
        let _ = writeln!(
            text,
            "Baton: this failed while others are in the middle of edits that are not yours: {}. Do \
             not mend them: wait a minute and run it again.",
            named.join(", ")
        );
    }
    text.trim_end().to_owned()
}

/// Files that nobody held: whose they are now.
fn nobody_held(compared: &Compared) -> String {
    let mut text = String::new();
    let named = |paths: &[Resource]| {
        let mut named: Vec<String> =
            paths.iter().take(FINDINGS_MAX).map(|path| shown(&path.to_string())).collect();
        if paths.len() > FINDINGS_MAX {
            named.push(format!("{} more", paths.len() - FINDINGS_MAX));
        }
        named.join(", ")
    };
    if let Some(first) = compared.claimed.first() {
        let _ = writeln!(
            text,
            "Baton: changed while your command ran, and claimed for you: {}. What of it is not \
             yours, leave as it is and let go: baton release {}.",
            named(&compared.claimed),
            word(&first.to_string())
        );
    }
    if let Some(first) = compared.unclaimed.first() {
        let _ = writeln!(
            text,
            "Baton: changed while your command ran, which does not name it, and others work here: \
             {}. It is not claimed for you. Is it yours, then: baton claim {}.",
            named(&compared.unclaimed),
            word(&first.to_string())
        );
    }
    text
}

/// What a command changed and no edit would have been allowed to.
fn overstepped(judged: &Judged) -> String {
    let mut text = String::new();
    let stopped = judged.findings.iter().filter(|one| one.verdict >= Verdict::Ask);
    let appended = judged.not_appended.iter().map(|path| {
        let zone = "is in an append zone, where lines that are there stay as they are";
        format!("{}, which {zone}", shown(&path.to_string()))
    });
    let all: Vec<String> = stopped.map(overstepped_sentence).chain(appended).collect();
    for one in all.iter().take(FINDINGS_MAX) {
        let _ = writeln!(text, "Baton: your command changed {one}.");
    }
    let more = all.len().saturating_sub(FINDINGS_MAX);
    if more > 0 {
        let _ = writeln!(text, "Baton: and {more} more like it.");
    }
    if let Some(refusal) = &judged.refusal {
        let _ = writeln!(text, "Baton: {}.", Problem::from(refusal.as_ref()).message);
    }
    if !all.is_empty() {
        text.push_str(&other_trees(judged));
        let them = if all.len() == 1 { "it as it is" } else { "them as they are" };
        let _ =
            writeln!(text, "Baton: leave {them} now, and tell your user. This is in the journal.");
    }
    text
}

fn overstepped_sentence(finding: &Finding) -> String {
    let what = shown(&finding.resource.to_string());
    match (finding.because, finding.held.first(), &finding.role) {
        (Because::Held, Some(held), _) => format!("{what}, and {}", held_sentence(held)),
        (Because::ClaimFirst, ..) => {
            format!("{what}, which is in a zone where a claim comes first")
        }
        (Because::NeedsPerson, ..) => {
            format!("{what}, which is for a person to approve, and nobody has")
        }
        (Because::Role, _, Some(role)) => format!("{what}, but {}", role_sentence(role)),
        _ => format!("{what}, which may not be edited now"),
    }
}

/// What a command did to the work of others. Nothing is to be put back by hand: that would be one
/// more edit of what another holds.
fn taken_from_others(compared: &Compared) -> String {
    let act = if compared.by_edit { "edit" } else { "command" };
    let mut text = String::new();
    for one in compared.breached.iter().take(FINDINGS_MAX) {
        let path = one.held.resource.to_string();
        let (what, held) = (shown(&path), held_sentence(&one.held));
        let _ = match one.unsure {
            false => write!(text, "Baton: your {act} changed {what}, and {held}. Leave"),
            true => write!(
                text,
                "Baton: {what} changed while a command of yours ran, and {held}; whose change it \
                 is cannot be seen from here. If your command changed {what}, leave"
            ),
        };
        let _ = write!(
            text,
            " it as it is now, and tell them what happened: baton ask {} --why \"…\". ",
            word(&path)
        );
        if let Some(copy) = &one.copy {
            let _ = write!(text, "What was there before is kept in {}. ", shown(copy));
        }
        let _ = writeln!(text, "This is in the journal.");
    }
    let more = compared.breached.len().saturating_sub(FINDINGS_MAX);
    if more > 0 {
        let _ = writeln!(text, "Baton: and {more} more that others hold; baton journal has them.");
    }
    for lost in compared.lost.iter().take(FINDINGS_MAX) {
        let saved = match &lost.saved {
            Some(saved) => format!(" It is saved: {}.", shown(saved)),
            None => String::new(),
        };
        let (name, path) = (shown(&lost.name), shown(&lost.path));
        let _ = writeln!(
            text,
            "Baton: uncommitted work of {name} in {path} is gone since your command ran.{saved} \
             Tell your user."
        );
    }
    for (path, lines) in compared.undone.iter().take(FINDINGS_MAX) {
        let _ = writeln!(
            text,
            "Baton: your command took back {} that another changed in {} since you read it. Read \
             it again, and bring back what is not yours; this is in the journal.",
            render::counted(*lines as u64, "line", "lines"),
            shown(&path.to_string())
        );
    }
    text
}
