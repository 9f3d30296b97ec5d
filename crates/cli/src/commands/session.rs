//! `session start`, `end`, `list`, `whoami`.
//!
//! Owns the words of their answers. The credential is shown once, by `start`, and nowhere else.

use std::process::ExitCode;

use baton_core::sessions::Ended;
use baton_engine::sessions::{self, Credentials, Seat, SeatState, Seats};
use baton_engine::{api, whoami};
use clap::Subcommand;

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::render::{self, Paint, paint, shown, table};

#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    /// Start a session, or go on with the one this client had
    Start {
        #[command(flatten)]
        wanted: api::SessionStart,
        /// Print a line for eval: export BATON_SESSION=…
        #[arg(long, conflicts_with = "json")]
        export: bool,
    },
    /// End a session and let go of everything it holds
    End(api::SessionEnd),
    /// List sessions
    List {
        /// Also those that ended
        #[arg(long)]
        all: bool,
    },
    /// Which session am I?
    Whoami,
}

pub(crate) fn run(common: &Common, command: &Session) -> Outcome {
    match command {
        Session::Start { wanted, export } => start(common, wanted, *export),
        Session::End(wanted) => end(&mut Desk::open_as(common, whoami::actor)?, wanted),
        Session::List { all } => list(&mut Desk::open(common)?, *all),
        Session::Whoami => whoami_(&mut Desk::open_as(common, whoami::actor)?),
    }
}

fn start(common: &Common, wanted: &api::SessionStart, export: bool) -> Outcome {
    // Who starts a session need not be one: a stale credential in the environment is no obstacle.
    let mut desk = Desk::open_as(common, whoami::bystander)?;
    let Desk { workspace, actor, operation, .. } = &mut desk;
    let started = sessions::start(workspace, actor, wanted, operation.as_deref())?;
    if export {
        crate::desk::print(&format!("export BATON_SESSION={}\n", started.credential));
        return Ok(ExitCode::SUCCESS);
    }
    desk.answer(&started, |started: &Credentials, colour| {
        let verb = if started.resumed { "resumed" } else { "started" };
        format!(
            "{} {} ({})\nBATON_SESSION={}\nnext: export that line, so that what you do is yours\n",
            paint(verb, Paint::Green, colour),
            shown(&started.name),
            started.session,
            started.credential
        )
    });
    Ok(ExitCode::SUCCESS)
}

fn end(desk: &mut Desk, wanted: &api::SessionEnd) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let ended = sessions::end(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&ended, |ended: &Ended, colour| {
        let rest = match (ended.grace_until, ended.released.is_empty()) {
            (Some(until), _) => format!("; its claims wait until {}", render::until(until)),
            (None, true) => "; it held nothing".to_owned(),
            (None, false) => format!("; released {}", render::resources(&ended.released)),
        };
        format!("{} {}{rest}\n", paint("ended", Paint::Green, colour), shown(&ended.name))
    });
    Ok(ExitCode::SUCCESS)
}

fn list(desk: &mut Desk, all: bool) -> Outcome {
    let seats = sessions::list(&mut desk.workspace, all)?;
    desk.answer(&seats, |seats: &Seats, colour| match seats.sessions.is_empty() {
        true => "no sessions\n".to_owned(),
        false => sessions_table(&seats.sessions, colour),
    });
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn sessions_table(seats: &[Seat], colour: bool) -> String {
    let rows: Vec<Vec<String>> = seats
        .iter()
        .map(|seat| {
            let what = match (&seat.client, seat.person) {
                (Some(client), _) => shown(client),
                (None, true) => "person".to_owned(),
                (None, false) => "-".to_owned(),
            };
            vec![
                shown(&seat.name),
                seat.session.to_string(),
                what,
                seat.role.as_deref().map(shown).unwrap_or_else(|| "-".to_owned()),
                state_word(seat.state).to_owned(),
                seat.claims.to_string(),
                render::ago(seat.last_act_at),
            ]
        })
        .collect();
    table(&["NAME", "SESSION", "CLIENT", "ROLE", "STATE", "CLAIMS", "LAST SEEN"], &rows, colour)
}

fn state_word(state: SeatState) -> &'static str {
    match state {
        SeatState::Live => "live",
        SeatState::Idle => "idle",
        SeatState::Dead => "dead",
        SeatState::Ended => "ended",
    }
}

fn whoami_(desk: &mut Desk) -> Outcome {
    let seat = sessions::whoami(&mut desk.workspace, &desk.actor)?;
    desk.answer(&seat, |seat: &Seat, colour| {
        let who = paint(&shown(&seat.name), Paint::Bold, colour);
        let what = match (&seat.client, seat.person) {
            (Some(client), _) => format!(", {}", shown(client)),
            (None, true) => ", a person".to_owned(),
            (None, false) => String::new(),
        };
        format!("{who} ({}){what}; holds {} claims\n", seat.session, seat.claims)
    });
    Ok(ExitCode::SUCCESS)
}
