//! `claim`, `release`, `renew`, `claims`, `ask`, `revoke`, `check`, `why`.
//!
//! Owns the words of their answers; what may happen is decided in `baton_core::claims`.

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::check::{Because, Verdict};
use baton_core::claim::{Holder, Leftover, Mode};
use baton_core::claims::letting_go::{Released, Renewed, Revoked};
use baton_core::claims::{Granted, Queued};
use baton_engine::checking::{self, Verdicts};
use baton_engine::claiming::{self, Asking, Away, Wait};
use baton_engine::failure::Failure;
use baton_engine::listing::{Chapter, ClaimList, ListedClaim, Story, What};
use baton_engine::sessions::SeatState;
use baton_engine::{api, listing};

use crate::counter::{Counter, tell};
use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{self, Paint, paint, quoted, shown, table};
use crate::signals::Signals;
use crate::words::{Problem, held_next, held_sentence, role_next, role_sentence};

pub(crate) fn claim(desk: &mut Desk, wanted: &api::Claim) -> Outcome {
    let Desk { workspace, actor, cwd, operation, counter, .. } = desk;
    let mut told = None;
    let mut progress = |queued: &Queued| {
        // Said once for each one in the way, so that waiting is not silent and not a flood.
        let first = queued.blockers.first();
        let who = first.map(|held| held.holder.session.clone());
        if let (Some(held), true) = (first, who != told) {
            tell(*counter, &format!("waiting: {}", held_sentence(held)));
            told = who;
        }
    };
    let operation = operation.as_deref();
    // Whoever waits and is told to end leaves the queue first.
    let signals = match (wanted.wait, counter.is_none()) {
        (Some(_), true) => Some(Signals::to_leave()?),
        _ => None,
    };
    let end = counter.map(Counter::end_descriptor);
    let end = end.or_else(|| signals.as_ref().map(Signals::descriptor));
    let wait = Wait { progress: &mut progress, end };
    let taken = claiming::claim_until(workspace, actor, cwd, wanted, operation, wait);
    let granted = match taken {
        Ok(granted) => granted,
        Err(failure) => {
            signals.iter().for_each(Signals::end_as_told);
            return Err(not_taken(failure, wanted));
        }
    };
    desk.answer(&granted, granted_words);
    desk.remark_policy();
    Ok(ExitCode::SUCCESS)
}

/// What to do next asks for the same as before.
fn not_taken(failure: Failure, wanted: &api::Claim) -> Problem {
    let mut problem = Problem::from(failure);
    if wanted.shared && problem.next.starts_with("baton claim ") {
        problem.next.push_str(" --shared");
    }
    problem
}

pub(super) fn granted_words(granted: &Granted, colour: bool) -> String {
    let what = render::resources(&granted.resources);
    let verb = if granted.already_held { "already held" } else { "claimed" };
    let shared = if granted.mode == Mode::Shared { " (shared)" } else { "" };
    let zones = match granted.zones.is_empty() {
        true => String::new(),
        false => format!(" with the whole zone {}", render::resources(&granted.zones)),
    };
    let mut text = format!(
        "{} {what}{shared}{zones} until {}, token {}\n",
        paint(verb, Paint::Green, colour),
        render::until(granted.expires_at),
        granted.token
    );
    for held in &granted.elsewhere {
        let _ = writeln!(
            text,
            "{}: in another tree, {}",
            paint("warning", Paint::Yellow, colour),
            held_sentence(held)
        );
    }
    for left in &granted.left_behind {
        text.push_str(&left_words(left, colour));
    }
    for name in &granted.interfaces {
        let note = paint("note", Paint::Yellow, colour);
        let name = shown(name.as_str());
        let _ = writeln!(text, "{note}: you keep the interface {name} now: its owner is gone");
    }
    text.push_str(&notices_words(&granted.notices, colour));
    text
}

fn left_words(left: &Leftover, colour: bool) -> String {
    let saved = match &left.rescue {
        Some(reference) => format!("; saved as {reference}"),
        None => String::new(),
    };
    format!(
        "{}: uncommitted changes of {} are in {}{saved}\n",
        paint("note", Paint::Yellow, colour),
        render::holder(&left.holder),
        render::resources(&left.paths)
    )
}

pub(crate) fn release(desk: &mut Desk, wanted: &api::Release) -> Outcome {
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let released = claiming::release(workspace, actor, cwd, wanted, operation.as_deref())?;
    desk.answer(&released, |released: &Released, colour| {
        let what = match released.released.is_empty() {
            true => "nothing: nothing was held".to_owned(),
            false => render::resources(&released.released),
        };
        let mut text = format!("{} {what}\n", paint("released", Paint::Green, colour));
        for zone in &released.zones {
            let _ = writeln!(
                text,
                "{} {} stays with branch {} until it has landed",
                paint("held", Paint::Yellow, colour),
                shown(&zone.zone.to_string()),
                shown(&zone.branch)
            );
        }
        text + &notices_words(&released.notices, colour)
    });
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn renew(desk: &mut Desk, wanted: &api::Renew) -> Outcome {
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let renewed = claiming::renew(workspace, actor, cwd, wanted, operation.as_deref())?;
    desk.answer(&renewed, |renewed: &Renewed, colour| {
        let mut text = String::new();
        for kept in &renewed.renewed {
            let anew = if kept.new_token { " under a new token" } else { "" };
            let _ = writeln!(
                text,
                "{} {}{anew} until {}, token {}",
                paint("renewed", Paint::Green, colour),
                render::resources(&kept.resources),
                render::until(kept.expires_at),
                kept.token
            );
        }
        text + &notices_words(&renewed.notices, colour)
    });
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn ask(desk: &mut Desk, wanted: &api::Ask) -> Outcome {
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let asked = claiming::ask(workspace, actor, cwd, wanted, operation.as_deref())?;
    desk.answer(&asked, |asking: &Asking, colour| asked_words(asking, wanted, colour));
    Ok(ExitCode::SUCCESS)
}

fn asked_words(asking: &Asking, wanted: &api::Ask, colour: bool) -> String {
    let things: Vec<String> = wanted.resources.iter().map(|word| shown(word)).collect();
    let things = things.join(" ");
    let away = |holder: &&Holder| asking.away.iter().any(|away| away.holder == **holder);
    let here = asking.asked.asked.iter().filter(|holder| !away(holder));
    let names: Vec<String> = here.map(render::holder).collect();
    let done = paint("asked", Paint::Green, colour);
    let mut text = match names.is_empty() {
        true => String::new(),
        false => format!("{done} {}, who will be told at the next act\n", names.join(", ")),
    };
    for Away { holder, state } in &asking.away {
        let name = render::holder(holder);
        let _ = match state {
            SeatState::Dead => writeln!(text, "{name} is gone\nnext: baton claim {things}"),
            _ => writeln!(
                text,
                "{done} {name}, whose session has ended: it will be told if it comes back\n\
                 next: baton claim {things} --wait 10m"
            ),
        };
    }
    text
}

pub(crate) fn revoke(desk: &mut Desk, wanted: &api::Revoke) -> Outcome {
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let revoked = claiming::revoke(workspace, actor, cwd, wanted, operation.as_deref())?;
    desk.answer(&revoked, |revoked: &Revoked, colour| {
        let mut text = String::new();
        for claim in &revoked.revoked {
            let _ = writeln!(
                text,
                "{} {} from {}, who will be told",
                paint("revoked", Paint::Green, colour),
                render::resources(&claim.resources),
                render::holder(&claim.holder)
            );
        }
        for zone in &revoked.zones {
            let _ = writeln!(
                text,
                "{} {} waits for {} no longer",
                paint("freed", Paint::Green, colour),
                shown(&zone.zone.to_string()),
                shown(&zone.branch)
            );
        }
        text
    });
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check(desk: &mut Desk, wanted: &api::Check) -> Outcome {
    let Desk { workspace, actor, cwd, .. } = desk;
    let checked = checking::check(workspace, actor, cwd, wanted)?;
    desk.answer(&checked, checked_words);
    desk.remark_policy();
    Ok(match checked.verdict {
        Verdict::Allow | Verdict::Warn => ExitCode::SUCCESS,
        Verdict::Ask | Verdict::Deny => ExitCode::from(1),
    })
}

fn verdict_word(verdict: Verdict, colour: bool) -> String {
    let (word, tint) = match verdict {
        Verdict::Allow => ("allow", Paint::Green),
        Verdict::Warn => ("warn", Paint::Yellow),
        Verdict::Ask => ("ask", Paint::Yellow),
        Verdict::Deny => ("deny", Paint::Red),
    };
    paint(word, tint, colour)
}

fn checked_words(checked: &Verdicts, colour: bool) -> String {
    let mut text = String::new();
    for path in &checked.not_claimable {
        let what = shown(&path.path);
        let sentence = match path.because {
            Because::GitDir => format!("{what} belongs to git and is never edited by hand"),
            _ => format!("{what} is outside the workspace and not judged"),
        };
        let _ = writeln!(text, "{}  {sentence}", verdict_word(path.verdict, colour));
    }
    for finding in &checked.findings {
        let what = shown(&finding.resource.to_string());
        let held = finding.held.first();
        let sentence = match (finding.because, held) {
            (Because::Free, _) => format!("{what} is free"),
            (Because::Mine, _) => format!("{what} is yours"),
            (Because::Unjudged | Because::GitDir, _) => format!("{what} is not judged here"),
            (Because::ClaimFirst, _) => format!("{what} must be claimed before it is edited"),
            (Because::NeedsPerson, _) => format!("{what} is for a person to approve"),
            (Because::Held, Some(held)) => held_sentence(held),
            (Because::HeldElsewhere, Some(held)) => {
                format!("in another tree, {}", held_sentence(held))
            }
            (Because::Held | Because::HeldElsewhere, None) => format!("{what} is held"),
            (Because::Role, _) => finding.role.as_deref().map(role_sentence).unwrap_or_default(),
        };
        let _ = writeln!(text, "{}  {sentence}", verdict_word(finding.verdict, colour));
        let next = match (finding.because, held) {
            (Because::Held, Some(held)) => Some(held_next(held)),
            (Because::ClaimFirst, _) => Some(format!("baton claim {what}")),
            (Because::NeedsPerson, _) => Some(format!("ask a person to claim {what} for you")),
            (Because::Role, _) => finding.role.as_deref().map(|no| role_next(no).to_owned()),
            _ => None,
        };
        if let Some(next) = next {
            let _ = writeln!(text, "{}: {next}", paint("next", Paint::Cyan, colour));
        }
    }
    text + &notices_words(&checked.notices, colour)
}

pub(crate) fn list(desk: &mut Desk, wanted: &api::Claims) -> Outcome {
    let found = listing::claims(&mut desk.workspace, &desk.actor, &desk.cwd, wanted)?;
    desk.answer(&found, |found: &ClaimList, colour| match found.claims.is_empty() {
        true => "no claims\n".to_owned(),
        false => claims_table(&found.claims, colour),
    });
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn claims_table(claims: &[ListedClaim], colour: bool) -> String {
    let rows: Vec<Vec<String>> = claims
        .iter()
        .map(|claim| {
            let mut kind = String::new();
            if claim.mode == Mode::Shared {
                kind.push_str("shared ");
            }
            if claim.scope == baton_core::claim::Scope::Tree {
                kind.push_str("tree");
            }
            let until = ends(claim, render::until(claim.expires_at));
            vec![
                render::resources(&claim.resources),
                render::holder(&claim.holder),
                until,
                claim.token.to_string(),
                kind.trim().to_owned(),
                claim.reason.as_deref().map(shown).unwrap_or_default(),
            ]
        })
        .collect();
    table(&["WHAT", "WHO", "UNTIL", "TOKEN", "KIND", "WHY"], &rows, colour)
}

/// Until when it is held, as far as anybody is there to hold it.
pub(crate) fn ends(claim: &ListedClaim, until: String) -> String {
    match claim.holder_state {
        _ if claim.run_out => "run out".to_owned(),
        SeatState::Dead => "gone: free to take".to_owned(),
        SeatState::Ended => format!("{until}; its session has ended"),
        SeatState::Live | SeatState::Idle => until,
    }
}

pub(crate) fn why(desk: &mut Desk, path: &str) -> Outcome {
    let story = listing::story(&mut desk.workspace, &desk.cwd, path)?;
    desk.answer(&story, story_words);
    Ok(ExitCode::SUCCESS)
}

fn story_words(story: &Story, colour: bool) -> String {
    let path = shown(&story.path.to_string());
    let mut text = match story.now_held_by.first() {
        None => format!("{path}: nobody holds it now.\n"),
        Some(claim) => {
            let because = match &claim.reason {
                Some(reason) => format!(", because: {}", quoted(reason)),
                None => String::new(),
            };
            let holder = paint(&render::holder(&claim.holder), Paint::Bold, colour);
            let until = render::until(claim.expires_at);
            match claim.holder_state {
                SeatState::Dead => {
                    format!("{path}: {holder} is gone; it is free for whoever asks.\n")
                }
                SeatState::Ended => format!(
                    "{path}: kept for {holder}, whose session has ended, until {until}{because}.\n"
                ),
                SeatState::Live | SeatState::Idle => {
                    format!("{path}: held by {holder} until {until}{because}.\n")
                }
            }
        }
    };
    for chapter in &story.chapters {
        let _ = writeln!(text, "  {}", chapter_words(chapter, &story.path));
    }
    for commit in &story.commits {
        let _ = writeln!(
            text,
            "  {}: {} committed {} \"{}\".",
            render::ago(commit.at),
            shown(&commit.author),
            commit.commit,
            shown(&commit.subject)
        );
    }
    text
}

fn chapter_words(chapter: &Chapter, path: &baton_core::resource::Resource) -> String {
    let who = shown(&chapter.name);
    let through = |held: &[baton_core::resource::Resource]| match held.contains(path) {
        true => String::new(),
        false => format!(" (through {})", render::resources(held)),
    };
    let deed = match &chapter.what {
        What::Claimed { resources, mode, reason, agent } => {
            let agent = match agent {
                Some(agent) => format!(" for its subagent {}", shown(agent)),
                None => String::new(),
            };
            let shared = if *mode == Mode::Shared { " to share" } else { "" };
            let because = match reason {
                Some(reason) => format!(", because: {}", quoted(reason)),
                None => String::new(),
            };
            format!("{who} claimed it{shared}{agent}{}{because}", through(resources))
        }
        What::Ended { resources, how, rescue } => {
            let saved = match rescue {
                Some(reference) => format!("; its changes are saved as {reference}"),
                None => String::new(),
            };
            format!("{who} {}{}{saved}", shown(how), through(resources))
        }
        What::Breached { resource, holder, agent, holder_agent } => {
            let through = through(std::slice::from_ref(resource));
            let subagent = |agent: &Option<String>| match agent {
                Some(agent) => format!(" (subagent {})", shown(agent)),
                None => String::new(),
            };
            let (by, of) = (subagent(agent), subagent(holder_agent));
            let holder = shown(holder);
            format!("{who}{by} wrote it around the doors while {holder}{of} held it{through}")
        }
    };
    format!("{}: {deed}.", render::ago(chapter.at))
}
