//! Which doors of which client are guarded, by looking at its files.
//!
//! Owns the judgement of a file: as this Baton would write it, something of ours but otherwise,
//! nothing of ours, or not to be understood. It changes nothing and starts no client, so whether a
//! hook really fires is not known here.

use super::probe::{self, Firing, Trust};
use super::record::Record;
use super::{Client, Door, Ground, Mode, Piece, Put, files, git_hooks, in_use, pieces};
use crate::failure::Failure;
use crate::place::Place;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Installed,
    Missing,
    Differs,
    Broken {
        file: String,
        why: String,
    },
    /// The client has no such door.
    None,
}

/// One client's doors.
#[derive(Clone, Debug)]
pub struct Doors {
    pub client: Client,
    pub hooks: State,
    pub server: State,
    /// Wired by somebody, or seen in the repository itself.
    pub in_use: bool,
    /// For whom its hooks are written.
    pub mode: Option<Mode>,
    /// What came of trying them; nothing where there is nothing to try.
    pub firing: Option<Firing>,
    pub trust: Trust,
}

#[derive(Clone, Debug)]
pub struct Inspection {
    pub doors: Vec<Doors>,
    /// Nothing where there is no git.
    pub git: Option<git_hooks::Standing>,
    pub git_firing: Option<Firing>,
    /// Whether somebody said which clients to wire.
    pub chosen: bool,
}

pub fn inspect(ground: &Ground) -> Result<Inspection, Failure> {
    let record = Record::read(&ground.store)?;
    let found = in_use(&ground.root, ground.home.as_deref());
    let seen = |client: &Client| record.clients.contains(client) || found.contains(client);
    let doors = Client::ALL.into_iter().filter(seen).map(|client| Doors {
        client,
        hooks: state(ground, client, Door::Hooks).0,
        server: state(ground, client, Door::Server).0,
        mode: state(ground, client, Door::Hooks).1,
        firing: None,
        trust: Trust::Unknown,
        in_use: record.clients.contains(&client)
            || !record.chosen
            || client.is_in_repository(&ground.root),
    });
    let doors = doors.collect();
    let git = git_hooks::plan(ground, &record)?.map(|plan| plan.standing());
    Ok(Inspection { doors, git, git_firing: None, chosen: record.chosen })
}

/// Tries every door that is there, and asks each client's files for its trust.
pub fn try_out(ground: &Ground, place: &Place, found: &mut Inspection) {
    for doors in &mut found.doors {
        let there = matches!(doors.hooks, State::Installed | State::Differs);
        let mode = doors.mode.filter(|_| there);
        doors.firing = mode.map(|mode| probe::hook(ground, place, doors.client, mode));
        doors.trust = probe::trust(ground, doors.client);
    }
    if found.git == Some(git_hooks::Standing::Installed) {
        found.git_firing = Some(probe::git(ground, place));
    }
}

/// The best of what both ways of wiring would have written.
fn state(ground: &Ground, client: Client, door: Door) -> (State, Option<Mode>) {
    let mut states: Vec<(State, Option<Mode>)> = [Mode::Team, Mode::Personal]
        .into_iter()
        .flat_map(|mode| pieces(ground, client, mode).into_iter().map(move |one| (one, mode)))
        .filter(|(piece, _)| piece.door == door)
        .map(|(piece, mode)| (judge(ground, &piece), Some(mode)))
        .collect();
    let rank = |state: &State| match state {
        State::Installed => 0,
        State::Broken { .. } => 1,
        State::Differs => 2,
        State::Missing => 3,
        State::None => 4,
    };
    states.sort_by_key(|(state, _)| rank(state));
    match states.is_empty() {
        false => states.swap_remove(0),
        // Gemini has both in one file.
        true if door == Door::Server && client == Client::Gemini => {
            state(ground, client, Door::Hooks)
        }
        true => (State::None, None),
    }
}

fn judge(ground: &Ground, piece: &Piece) -> State {
    let broken = |why: super::Broken| State::Broken { file: piece.path.clone(), why: why.0 };
    let there = match files::look(&ground.root, &piece.path) {
        Ok(there) => there,
        Err(why) => return broken(why),
    };
    let Some(text) = there.text else { return State::Missing };
    match (piece.content.put(Some(&text)), piece.content.take_out(&text)) {
        (Err(why), _) => broken(why),
        (Ok(Put::Text(same)), _) if same == text => State::Installed,
        (Ok(Put::Text(_)), Ok(Some(without))) if without == text => State::Missing,
        _ => State::Differs,
    }
}
