//! Those who wait, and the notes that are sent, as sentences.
//!
//! Owns what the journal says of each; what others wrote is quoted data.

use baton_core::event::{EndOfWait, Event};
use baton_core::notices::{News, Was};
use baton_engine::journal::Told;

use super::{Naming, because, interfaces, suggestions, time};
use crate::render::{counted, resources, shown};

pub(super) fn sentence(told: &Told, event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::WaitQueued { waiter } => format!(
            "{} waits for {} until {} at the latest{}",
            who(&waiter.hold.holder.name),
            resources(&waiter.hold.resources),
            time(waiter.deadline),
            because(waiter.reason.as_deref())
        ),
        Event::WaitRenewed { .. } => format!("{actor} still waits"),
        Event::WaitEnded { why, .. } => match why {
            EndOfWait::Granted => format!("{actor} waits no longer: its turn came"),
            EndOfWait::TimedOut => format!("{actor} waits no longer: nobody let go in time"),
            EndOfWait::Withdrawn => format!("{actor} waits no longer: it gave up its place"),
            EndOfWait::Gone => {
                format!("{actor} cleared away a wait: the waiting process had ended")
            }
        },
        Event::NoticeSent { notice } => note(&notice.news, &who(told.name(&notice.to)), who),
        Event::NoticesDropped { notices } => {
            let count = counted(notices.len() as u64, "note", "notes");
            format!("{actor} dropped {count} that need not be told any more")
        }
        Event::NoticesTold { notices } => {
            format!("{actor} was told {}", counted(notices.len() as u64, "note", "notes"))
        }
        other => other.kind().to_owned(),
    }
}

fn note(news: &News, to: &str, who: Naming<'_>) -> String {
    match news {
        News::Offered { task, by, .. } => {
            format!("a note for {to}: {} offers it {task}", who(&by.name))
        }
        News::OfferEnded { task, handoff, .. } => {
            format!("a note for {to}: what became of its offer {handoff} of {task}")
        }
        News::Asked { by, resources: wanted, why } => format!(
            "{} asked {to} to let go of {}, saying: \"{}\"",
            who(&by.name),
            resources(wanted),
            shown(why)
        ),
        News::Lost { resources: lost, to: taker, why, .. } => {
            let now = match taker {
                Some(taker) => format!("; {} has it now", who(&taker.name)),
                None => String::new(),
            };
            let what = resources(lost);
            format!("a note for {to}: it no longer holds {what}: {}{now}", shown(why))
        }
        News::TaskMoved { task, state, .. } => {
            format!("a note for {to}: {task} is {}", state.name())
        }
        News::ReviewOver { task, why, .. } => {
            format!("a note for {to}: {task} need not be reviewed: {}", shown(why))
        }
        News::Suggested { .. } | News::SuggestionAnswered { .. } => {
            suggestions::note(news, to, who)
        }
        News::InterfaceChanged { .. } | News::InterfaceGiven { .. } => {
            interfaces::note(news, to, who)
        }
        News::LandingOver { landing, state, .. } => {
            format!("a note for {to}: {landing} is {}", state.name())
        }
        News::GateDecided { gate, outcome, .. } => {
            format!("a note for {to}: {gate} is {}", outcome.name())
        }
        News::Conflict { a, b, .. } => {
            format!("{to} is told what stands between {} and {}", shown(a), shown(b))
        }
        News::Overwritten { by, path, was, unsure } => {
            let saved = match was {
                Was::Saved(reference) => {
                    format!("; what was there is saved as {}", shown(reference))
                }
                Was::Committed | Was::Unknown => String::new(),
            };
            let (by, path) = (super::worker(by, who), shown(&path.to_string()));
            match unsure {
                false => format!("a note for {to}: {by} wrote over {path}{saved}"),
                true => format!("a note for {to}: an unknown writer changed {path}{saved}"),
            }
        }
        News::Joined { task, why, .. } => {
            format!("a note for {to}: {task} can go on: {}", shown(why))
        }
    }
}
