//! `session start`, `end`, `list`, `whoami`, `call`, `agent-stop`.
//!
//! Owns the words of their answers. The credential is shown once, by `start`, and nowhere else.

use std::process::ExitCode;

use baton_core::calls::Called;
use baton_core::roles::giving::Given;
use baton_core::sessions::Ended;
use baton_core::subagents::Stopped;
use baton_engine::sessions::{self, Credentials, Seat, SeatState, Seats};
use baton_engine::{api, whoami};
use clap::Subcommand;

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{self, Paint, counted, paint, shown, table};

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
    /// Narrow what this session may do; only a person widens it
    Role(api::SessionRole),
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
    /// Say that a tool call begins or ends: nothing runs out in between (for hooks)
    #[command(subcommand)]
    Call(Call),
    /// Say that a subagent has stopped: its session has what it held (for hooks)
    AgentStop(api::AgentStop),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Call {
    /// A tool call begins: until it ends, what this session holds does not run out
    Start(api::CallStart),
    /// A tool call has ended
    End(api::CallEnd),
}

pub(crate) fn run(common: &Common, command: &Session) -> Outcome {
    match command {
        Session::Start { wanted, export } => start(common, wanted, *export),
        Session::Role(wanted) => role(&mut Desk::open_as(common, whoami::actor)?, wanted),
        Session::End(wanted) => end(&mut Desk::open_as(common, whoami::actor)?, wanted),
        Session::List { all } => list(&mut Desk::open(common)?, *all),
        Session::Whoami => whoami_(&mut Desk::open_as(common, whoami::actor)?),
        Session::AgentStop(wanted) => {
            agent_stop(&mut Desk::open_as(common, whoami::actor)?, wanted)
        }
        Session::Call(wanted) => call(&mut Desk::open_as(common, whoami::actor)?, wanted),
    }
}

fn start(common: &Common, wanted: &api::SessionStart, export: bool) -> Outcome {
    // Who starts a session need not be one: a stale credential in the environment is no obstacle.
    let mut desk = Desk::open_as(common, whoami::starter)?;
    let Desk { workspace, actor, operation, .. } = &mut desk;
    let started = sessions::start(workspace, actor, wanted, operation.as_deref())?;
    if export {
        crate::desk::print(&format!("export BATON_SESSION={}\n", started.credential));
        return Ok(ExitCode::SUCCESS);
    }
    desk.answer(&started, |started: &Credentials, colour| {
        let verb = if started.resumed { "resumed" } else { "started" };
        format!(
            "{} {} ({}){}\nBATON_SESSION={}\nnext: export that line, so that what you do is \
             yours\n",
            paint(verb, Paint::Green, colour),
            shown(&started.name),
            started.session,
            role_words(started),
            started.credential
        )
    });
    Ok(ExitCode::SUCCESS)
}

/// A role that the policy names without saying what it may do is a word for tasks and state, and
/// whoever gave it should know.
fn role_words(started: &Credentials) -> String {
    match (&started.role, &started.may) {
        (None, _) => String::new(),
        (Some(role), Some(may)) => format!(", role {}: it {}", shown(role), shown(may)),
        (Some(role), None) => {
            format!(
                ", role {}: it is only named in the policy, so it takes nothing away",
                shown(role)
            )
        }
    }
}

fn role(desk: &mut Desk, wanted: &api::SessionRole) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let given = sessions::role(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&given, |given: &Given, colour| {
        let already = if given.already { ", as before" } else { "" };
        format!(
            "{} {} has the role {}{already}: it {}\n",
            paint("set:", Paint::Green, colour),
            shown(&given.name),
            shown(&given.role),
            shown(&given.may)
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
            (None, true) if !ended.offered.is_empty() => String::new(),
            (None, true) => "; it held nothing".to_owned(),
            (None, false) => format!("; released {}", render::resources(&ended.released)),
        };
        let waits = match ended.offered.as_slice() {
            [] => String::new(),
            offered => {
                let names: Vec<&str> = offered.iter().map(|task| task.as_str()).collect();
                format!("; {} waits for whoever accepts it", names.join(", "))
            }
        };
        format!("{} {}{rest}{waits}\n", paint("ended", Paint::Green, colour), shown(&ended.name))
    });
    Ok(ExitCode::SUCCESS)
}

fn call(desk: &mut Desk, wanted: &Call) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let operation = operation.as_deref();
    let called = match wanted {
        Call::Start(wanted) => sessions::call_start(workspace, actor, wanted, operation)?,
        Call::End(wanted) => sessions::call_end(workspace, actor, wanted, operation)?,
    };
    desk.answer(&called, |called: &Called, colour| {
        let kept = match called.busy_until {
            Some(until) => format!("nothing runs out before {}", render::until(until)),
            None => "leases run as usual".to_owned(),
        };
        let notices = notices_words(&called.notices, colour);
        format!("{} {kept}\n{notices}", paint("noted:", Paint::Green, colour))
    });
    Ok(ExitCode::SUCCESS)
}

fn agent_stop(desk: &mut Desk, wanted: &api::AgentStop) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let stopped = sessions::agent_stop(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&stopped, |stopped: &Stopped, colour| {
        let what = match stopped.passed.is_empty() {
            true => "it held nothing".to_owned(),
            false => format!("its session holds {} now", render::resources(&stopped.passed)),
        };
        let done = paint("stopped", Paint::Green, colour);
        let notices = notices_words(&stopped.notices, colour);
        format!("{done} subagent {}: {what}\n{notices}", shown(&stopped.agent))
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
                state_word(seat).to_owned(),
                seat.claims.to_string(),
                format!("within {}", render::wall_clock().since(seat.last_recorded_at)),
            ]
        })
        .collect();
    table(&["NAME", "SESSION", "CLIENT", "ROLE", "STATE", "CLAIMS", "LAST ACT"], &rows, colour)
}

pub(crate) fn state_word(seat: &Seat) -> &'static str {
    match seat.state {
        SeatState::Live if seat.busy_until.is_some() => "busy",
        SeatState::Live => "live",
        SeatState::Idle => "idle",
        SeatState::Dead => "gone",
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
        let claims = counted(seat.claims as u64, "claim", "claims");
        format!("{who} ({}){what}; holds {claims}\n", seat.session)
    });
    Ok(ExitCode::SUCCESS)
}
