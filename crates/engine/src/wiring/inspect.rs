//! Which doors of which client are guarded, by looking at its files.
//!
//! Owns the judgement of a file: as this Baton would write it, something of ours but otherwise,
//! nothing that guards, nothing of ours, or not to be understood; and the one answer to whether a
//! door is guarded, for whoever asks. It changes nothing and starts no client.

use super::json::{self, Line};
use super::probe::{self, Firing, Trust};
use super::record::Record;
use super::switches::{self, Off};
use super::{
    Client, Content, Door, Ground, Mode, Piece, Put, files, git_hooks, in_use, pieces, text, toml,
};
use crate::failure::Failure;
use crate::git::Git;
use crate::place::Place;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Installed,
    Missing,
    /// Not as this Baton would write them, and they guard.
    Differs,
    /// Something of ours is there that guards nothing.
    Unguarded {
        file: String,
        why: String,
    },
    /// The client was told to run no hooks.
    Off {
        file: String,
        why: String,
    },
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
    /// Wired by somebody, seen in the repository itself, or found where nothing is wired; not where
    /// somebody said that no client is to be.
    pub in_use: bool,
    /// For whom its hooks are written.
    pub mode: Option<Mode>,
    /// Git follows a file in which `init` would have to write, and wiring is for one person alone.
    pub shared: bool,
    /// What came of trying them; nothing where there is nothing to try.
    pub firing: Option<Firing>,
    pub trust: Trust,
    /// What the file has its client run.
    lines: Vec<Line>,
}

impl Doors {
    /// Whether edits and shells of this client are judged; what keeps them from it otherwise.
    pub fn guard(&self) -> Result<(), Lack> {
        match (&self.hooks, &self.firing, &self.trust) {
            (State::Missing, ..) => Err(Lack::Hooks),
            (State::None, ..) => Err(Lack::Door),
            (State::Unguarded { file, why }, ..) => {
                Err(Lack::Changed { file: file.clone(), why: why.clone() })
            }
            (State::Off { file, why } | State::Broken { file, why }, ..) => {
                Err(Lack::Unusable { file: file.clone(), why: why.clone() })
            }
            (_, Some(Firing::Unheard { why }), _) => Err(Lack::Answer { why: why.clone() }),
            (_, _, Trust::Missing) => Err(Lack::Trust),
            (_, _, Trust::Refused { file }) => Err(Lack::Refused { file: file.clone() }),
            (_, _, Trust::Untold { file }) => Err(Lack::Untold { file: file.clone() }),
            (State::Installed | State::Differs, ..) => Ok(()),
        }
    }
}

/// Why a door guards nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The client has no such door.
    Door,
    Hooks,
    Changed {
        file: String,
        why: String,
    },
    /// The client does not run what is in it.
    Unusable {
        file: String,
        why: String,
    },
    /// It ran, and Baton heard nothing of it.
    Answer {
        why: String,
    },
    Trust,
    /// The client was told to run nothing of this folder's.
    Refused {
        file: String,
    },
    /// Whether its user agreed cannot be told.
    Untold {
        file: String,
    },
}

#[derive(Clone, Debug)]
pub struct Inspection {
    pub doors: Vec<Doors>,
    /// Nothing where there is no git.
    pub git: Option<git_hooks::Standing>,
    pub git_firing: Option<Firing>,
    /// Whether somebody said which clients to wire.
    pub chosen: bool,
    /// Whether clients are wired, so that `init` by itself wires them again.
    pub wired: bool,
}

impl Inspection {
    /// Whether commits are judged.
    pub fn git_guards(&self) -> bool {
        use git_hooks::Standing::{Differs, Installed};
        matches!(self.git, Some(Installed | Differs { .. }))
            && self.git_firing == Some(Firing::Answered)
    }
}

/// Looks at every door, tries those that are there, and asks each client's files for its trust.
pub fn examine(ground: &Ground, place: &Place) -> Result<Inspection, Failure> {
    let mut found = inspect(ground)?;
    for doors in &mut found.doors {
        if matches!(doors.hooks, State::Installed | State::Differs) {
            doors.firing = doors
                .mode
                .map(|mode| probe::hook(ground, place, (doors.client, mode), &doors.lines));
        }
        doors.trust = probe::trust(ground, doors.client);
    }
    use git_hooks::Standing::{Differs, Installed};
    if matches!(found.git, Some(Installed | Differs { .. })) {
        found.git_firing = Some(probe::git(ground, place));
    }
    Ok(found)
}

fn inspect(ground: &Ground) -> Result<Inspection, Failure> {
    let record = Record::read(&ground.store)?;
    let found = in_use(&ground.root, ground.home.as_deref());
    let seen = |client: &Client| record.clients.contains(client) || found.contains(client);
    let tracked = match (record.mode, &ground.git) {
        (Some(Mode::Personal), Some(_)) => Git::in_tree(&ground.root)?.tracked()?,
        _ => Vec::new(),
    };
    let shared = |client| {
        let own = pieces(ground, client, Mode::Personal).into_iter();
        own.map(|piece| piece.path).any(|path| tracked.contains(&path))
    };
    let doors = Client::ALL.into_iter().filter(seen).map(|client| {
        let (hooks, mode, lines) = state(ground, client, Door::Hooks);
        let off = switches::off(ground, client).filter(|_| hooks != State::Missing);
        Doors {
            client,
            hooks: off.map_or(hooks, |Off { file, why }| State::Off { file, why }),
            server: state(ground, client, Door::Server).0,
            mode,
            shared: shared(client),
            lines,
            firing: None,
            trust: Trust::Unknown,
            in_use: record.clients.contains(&client)
                || !record.none
                    && (record.clients.is_empty() || client.is_in_repository(&ground.root)),
        }
    });
    let doors = doors.collect();
    let git = match ground.unnameable() {
        Some(why) => ground.git.as_ref().map(|_| git_hooks::Standing::Impossible { why }),
        None => git_hooks::plan(ground, &record)?.map(|plan| plan.standing()),
    };
    let wired = !record.clients.is_empty();
    Ok(Inspection { doors, git, git_firing: None, chosen: record.chosen, wired })
}

/// The best of what both ways of wiring would have written.
fn state(ground: &Ground, client: Client, door: Door) -> (State, Option<Mode>, Vec<Line>) {
    let mut states: Vec<(State, Option<Mode>, Vec<Line>)> = [Mode::Team, Mode::Personal]
        .into_iter()
        .flat_map(|mode| pieces(ground, client, mode).into_iter().map(move |one| (one, mode)))
        .filter(|(piece, _)| piece.door == door)
        .map(|(piece, mode)| {
            let (state, lines) = judge(ground, &piece);
            (state, Some(mode), lines)
        })
        .collect();
    let rank = |state: &State| match state {
        State::Installed => 0,
        State::Differs => 1,
        State::Broken { .. } | State::Off { .. } => 2,
        State::Unguarded { .. } => 3,
        State::Missing => 4,
        State::None => 5,
    };
    states.sort_by_key(|(state, ..)| rank(state));
    match states.is_empty() {
        false => states.swap_remove(0),
        // Gemini has both in one file.
        true if door == Door::Server && client == Client::Gemini => {
            state(ground, client, Door::Hooks)
        }
        true => (State::None, None, Vec::new()),
    }
}

/// Whether a line that is not Baton's alone calls it all the same.
fn calls(piece: &Piece, text: &str) -> bool {
    matches!(&piece.content, Content::Json(_, entries) if json::calls_baton(text, entries))
}

fn judge(ground: &Ground, piece: &Piece) -> (State, Vec<Line>) {
    let reads_main = piece.client == Some(Client::Codex) && piece.door == Door::Hooks;
    let base = if reads_main { ground.main_root() } else { &ground.root };
    let file = || match base == ground.root {
        true => piece.path.clone(),
        false => base.join(&piece.path).display().to_string(),
    };
    let broken = |why: super::Broken| (State::Broken { file: file(), why: why.0 }, Vec::new());
    if let Some(why) = ground.unnameable() {
        return broken(super::Broken(why.to_owned()));
    }
    let there = match files::look(base, &piece.path) {
        Ok(there) => there,
        Err(why) => return broken(why),
    };
    let Some(text) = there.text else {
        let why = "nothing calls Baton: codex reads this one, also in linked trees".to_owned();
        let state = match base == ground.root {
            true => State::Missing,
            false => State::Unguarded { file: file(), why },
        };
        return (state, Vec::new());
    };
    if matches!(piece.content, Content::Toml { .. }) && toml::is_off(&text) {
        let why = "`mcp_servers.baton.enabled` is false: codex does not start it".to_owned();
        return (State::Off { file: file(), why }, Vec::new());
    }
    let same = match (piece.content.put(Some(&text)), piece.content.take_out(&text)) {
        (Err(why), _) => return broken(why),
        (Ok(Put::Text(same)), _) if same == text => true,
        (Ok(Put::Text(_)), Ok(Some(without))) if without == text && !calls(piece, &text) => {
            return (State::Missing, Vec::new());
        }
        _ => false,
    };
    let unguarded = |why: String| State::Unguarded { file: file(), why };
    let (fault, lines) = match &piece.content {
        Content::Json(_, entries) => match json::guards(&text, entries) {
            Err(why) => return broken(why),
            Ok(found) => (found.faults.first().cloned(), found.lines),
        },
        Content::File { .. } if !text::is_our_file(&text) => {
            (Some("you changed what Baton wrote".to_owned()), Vec::new())
        }
        _ => (None, Vec::new()),
    };
    let state = match (same, fault) {
        (_, Some(why)) => unguarded(why),
        (true, None) => State::Installed,
        (false, None) => State::Differs,
    };
    (state, lines)
}
