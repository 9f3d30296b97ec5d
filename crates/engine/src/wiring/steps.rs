//! One file of a plan: what would become of it, and how that is done.
//!
//! Owns the looking at each file, by itself and against what git follows, and the writing. What all
//! of them are together is the plan's. Invariant: looking changes nothing.

use std::path::Path;

use super::record::Record;
use super::{
    Broken, Client, Content, Door, Ground, Mode, Piece, Put, State, Step, claude, files, pieces,
    text,
};

fn step(piece: &Piece, state: State) -> Step {
    let Piece { client, door, path, .. } = piece;
    let file = match door {
        Door::Ignored => format!(".git/{path}"),
        _ => path.clone(),
    };
    Step { client: *client, door: *door, ..Step::new(file, state) }
}

pub(super) fn put_step(ground: &Ground, piece: &Piece) -> Step {
    let failed = |why: Broken| step(piece, State::Failed { why: why.0 });
    let Some(base) = ground.base(piece) else { return failed(Broken("there is no git".into())) };
    let there = match files::look(base, &piece.path) {
        Ok(there) => there,
        Err(why) => return failed(why),
    };
    match piece.content.put(there.text.as_deref()) {
        Err(why) => failed(why),
        Ok(Put::Kept(why)) => {
            let state = match piece.content {
                Content::Starter(_) => State::Same,
                _ => State::Kept { why: why.to_owned() },
            };
            Step { path: there.path, ..step(piece, state) }
        }
        Ok(Put::Text(after)) => {
            let state = match &there.text {
                None => State::New,
                Some(before) if *before == after => State::Same,
                Some(_) => State::Merged,
            };
            let without = there.text.as_deref().map(|text| piece.content.take_out(text));
            let bare = without.and_then(Result::ok).flatten();
            let (before, after) = (there.text, Some(after));
            Step { path: there.path, before, after, bare, ..step(piece, state) }
        }
    }
}

/// A server of the user's own that starts Baton is as good as ours, and stays.
pub(super) fn own_server(piece: &Piece, looked: &Step) -> Option<Step> {
    let there = looked.before.as_deref()?;
    let why = "its server `baton` is your own".to_owned();
    let own = piece.content.has_own_server(there);
    own.then(|| Step { door: Door::Server, ..step(piece, State::Kept { why }) })
}

/// In a file that git follows, an entry of one's own would be seen by everybody.
pub(super) fn tracked_step(ground: &Ground, piece: &Piece) -> Step {
    let looked = put_step(ground, piece);
    match looked.state {
        State::Same | State::Kept { .. } | State::Failed { .. } => looked,
        _ => {
            let why = super::TRACKED.to_owned();
            Step { state: State::Failed { why }, before: None, after: None, ..looked }
        }
    }
}

/// Claude runs the hooks of both its settings files: ours are to stand in one of them.
pub(super) fn once_for_claude(ground: &Ground, mode: Mode, steps: &mut Vec<Step>) {
    let other = match mode {
        Mode::Team => Mode::Personal,
        Mode::Personal => Mode::Team,
    };
    let piece =
        pieces(ground, Client::Claude, other).into_iter().find(|one| one.door == Door::Hooks);
    let Some(piece) = piece else { return };
    let Ok(there) = files::look(&ground.root, &piece.path) else { return };
    let Some(text) = there.text else { return };
    let without = match piece.content.take_out(&text) {
        Ok(without) if without.as_deref() != Some(&text) => without,
        _ => return,
    };
    match mode {
        Mode::Team => {
            let state = if without.is_some() { State::Cleaned } else { State::Removed };
            let before = Some(text);
            steps.push(Step { path: there.path, before, after: without, ..step(&piece, state) });
        }
        Mode::Personal => {
            for step in steps.iter_mut().filter(|step| step.file == claude::PERSONAL) {
                let why = format!("{} guards already", claude::TEAM);
                step.state = State::Kept { why };
            }
        }
    }
}

pub(super) fn take_step(ground: &Ground, piece: &Piece, record: &Record) -> Step {
    let nothing = step(piece, State::Same);
    let Some(base) = ground.base(piece) else { return nothing };
    // Where nothing of ours can be, nothing is to be taken out.
    let Ok(there) = files::look(base, &piece.path) else { return nothing };
    let Some(text) = there.text else { return nothing };
    let after = match (record.before(&there.path, &text), piece.content.take_out(&text)) {
        (Some(before), _) => before.map(str::to_owned),
        (None, Ok(Some(after))) if after == text => {
            let changed = matches!(piece.content, Content::File { .. }) && text::has_mark(&text);
            let why = "you changed what Baton wrote, so it is yours now".to_owned();
            return match changed {
                true => Step { path: there.path, ..step(piece, State::Kept { why }) },
                false => nothing,
            };
        }
        (None, Ok(after)) => {
            // A file that was the user's before us stays, however little is in it.
            let emptied = matches!(piece.content, Content::Json(..)) && after.is_none();
            let theirs = record.knows(&there.path) && !record.made(&there.path);
            after.or_else(|| (emptied && theirs).then(|| "{}\n".to_owned()))
        }
        (None, Err(why)) => {
            let state = State::Failed { why: why.0 };
            return Step { path: there.path, ..step(piece, state) };
        }
    };
    let state = if after.is_some() { State::Cleaned } else { State::Removed };
    Step { path: there.path, before: Some(text), after, ..step(piece, state) }
}

/// Folders that were made for our files go with them, where nothing else is in them.
pub(super) fn remove_folders(ground: &Ground, done: &[Step], record: &Record) {
    let known = !record.folders.is_empty();
    let gone = done.iter().filter(|step| step.state == State::Removed && step.door != Door::Git);
    for step in gone {
        let within = |folder: &&Path| folder.starts_with(&ground.root) && **folder != ground.root;
        let made = |folder: &&Path| !known || record.folders.contains(&*folder.to_string_lossy());
        for folder in step.path.ancestors().skip(1).take_while(within).take_while(made) {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

pub(super) fn carry_out(step: &Step, removal: bool, record: &mut Record) -> Result<(), Broken> {
    let Some(after) = &step.after else {
        files::remove(&step.path, step.before.as_deref().unwrap_or_default())?;
        record.forget(&step.path);
        return Ok(());
    };
    let made = files::write(&step.path, step.before.as_deref(), after, None)?;
    record.folders.extend(made.iter().map(|path| path.to_string_lossy().into_owned()));
    if removal || step.state == State::Cleaned {
        record.forget(&step.path);
        return Ok(());
    }
    let known = step.before.as_deref().and_then(|now| record.before(&step.path, now));
    let first = match known {
        Some(before) => before.map(str::to_owned),
        // Not wired before, or somebody changed it since.
        None => step.bare.clone(),
    };
    record.wrote(&step.path, first, after);
    Ok(())
}
