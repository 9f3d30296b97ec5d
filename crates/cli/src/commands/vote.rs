//! `vote` and `votes`: what sessions think about a subject.
//!
//! Owns the words. What a vote means, and when it goes to a person, is decided in
//! `baton_core::votes`.

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::votes::{Ballot, Voted};
use baton_engine::api::reviews as api;
use baton_engine::voting;

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{Paint, ago, paint, shown};
use crate::words::decision_words;

pub(crate) fn vote(common: &Common, wanted: &api::Vote) -> Outcome {
    let mut desk = Desk::open_to_act(common)?;
    let Desk { workspace, actor, operation, .. } = &mut desk;
    let voted = voting::vote(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&voted, |voted: &Voted, colour| {
        let word = paint("voted", Paint::Green, colour);
        let text = format!("{word} {} on {}\n", shown(&wanted.value), shown(&wanted.subject));
        text + &words(&voted.ballot, colour) + &notices_words(&voted.notices, colour)
    });
    desk.tell_of_gates();
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn votes(common: &Common, subject: &str) -> Outcome {
    let mut desk = Desk::open(common)?;
    let ballot = voting::votes(&mut desk.workspace, subject)?;
    desk.answer(&ballot, words);
    Ok(ExitCode::SUCCESS)
}

fn words(ballot: &Ballot, colour: bool) -> String {
    let mut text = String::new();
    for vote in &ballot.votes {
        let _ = writeln!(
            text,
            "  {} says {}, {}: {}",
            shown(&vote.by.name),
            shown(&vote.value),
            ago(vote.at),
            shown(&vote.why)
        );
    }
    let came = match (&ballot.decision, &ballot.gate, ballot.agreed()) {
        (Some(decision), _, _) => decision_words(decision),
        (None, Some(gate), _) => {
            let word = paint("contested", Paint::Yellow, colour);
            format!("{word}: a person decides {gate} (baton gate show {gate})")
        }
        (None, None, Some(value)) => format!("all say {}", shown(value)),
        (None, None, None) => "nobody has voted".to_owned(),
    };
    let _ = writeln!(text, "{came}");
    text
}
