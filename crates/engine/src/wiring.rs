//! Wiring agent clients to Baton: which files, what is in them, what of it is ours.
//!
//! Owns the plan and its execution. A plan is made by looking alone and says for each file what is
//! there and what will be; whoever asks for it may show it first. Each client's entries are in a
//! module of its name. Invariants: what a user wrote stays, byte for byte; twice changes nothing; a
//! file that cannot be understood is left alone and told, and the rest goes on; taking out takes
//! exactly what was put in; no client's trust is ever written.

mod aider;
mod claude;
mod clients;
mod codex;
mod command;
mod cursor;
mod files;
mod gemini;
pub mod git_hooks;
mod inspect;
mod json;
mod opencode;
pub mod plugin;
pub mod probe;
pub mod record;
pub mod roles;
#[cfg(test)]
mod tests;
mod text;
mod toml;
pub(crate) mod tools;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use baton_core::roles::Rules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use clients::{Client, in_use};
pub use inspect::{Doors, Inspection, State as DoorState, inspect, try_out};
pub use record::Record;

use crate::config;
use crate::failure::Failure;
use crate::git::Git;
use crate::place::{GitDirs, Place, Site};
use command::Program;
use json::Entry;
use text::{Marks, Outcome};

const RULES_FILE: &str = ".baton/rules.md";
const EXCLUDE_FILE: &str = "info/exclude";

/// Why something is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) String);

/// For whom it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Files to commit; Baton is found by PATH.
    Team,
    /// Files that git does not see, for this clone alone; this very program.
    Personal,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// Hooks, and in Gemini's one file the server too.
    Hooks,
    /// The MCP server.
    Server,
    /// What agents read.
    Words,
    Rules,
    /// Roles as a client's own agents.
    Agents,
    /// What git does not look at.
    Ignored,
    /// Git's own hooks.
    Git,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    New,
    Merged,
    Same,
    /// The whole file goes.
    Removed,
    /// Our entries go.
    Cleaned,
    /// It is not as we would write it, and that is all right.
    Kept {
        why: String,
    },
    /// It cannot be used, and something has to be done about it.
    Failed {
        why: String,
    },
}

impl State {
    pub fn changes(&self) -> bool {
        matches!(self, Self::New | Self::Merged | Self::Removed | Self::Cleaned)
    }
}

/// Where wiring happens.
#[derive(Clone, Debug)]
pub struct Ground {
    pub root: PathBuf,
    pub store: PathBuf,
    pub git: Option<GitDirs>,
    pub home: Option<PathBuf>,
    /// This binary.
    pub program: PathBuf,
}

impl Ground {
    pub fn of_site(site: &Site) -> Self {
        Self::at(&site.root, &site.store, site.git.as_ref())
    }

    pub fn of(place: &Place) -> Self {
        Self::at(&place.root, &place.store, place.git.as_ref())
    }

    fn at(root: &Path, store: &Path, git: Option<&GitDirs>) -> Self {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        // By another name it would not be known again in a file; then it is found by PATH.
        let program = std::env::current_exe().ok().filter(|path| path.ends_with("baton"));
        let program = program.unwrap_or_else(|| "baton".into());
        Self { root: root.to_owned(), store: store.to_owned(), git: git.cloned(), home, program }
    }

    fn base(&self, piece: &Piece) -> Option<&Path> {
        match piece.door {
            Door::Ignored => self.git.as_ref().map(|git| git.common_dir.as_path()),
            _ => Some(&self.root),
        }
    }
}

/// One file with something of ours in it.
#[derive(Clone, Debug)]
struct Piece {
    client: Option<Client>,
    door: Door,
    path: String,
    content: Content,
}

impl Piece {
    fn of(client: Client, door: Door, path: &str, content: Content) -> Self {
        Self { client: Some(client), door, path: path.to_owned(), content }
    }
}

#[derive(Clone, Debug)]
enum Content {
    Json(Vec<Entry>),
    Toml {
        program: String,
    },
    Block {
        marks: Marks,
        body: String,
    },
    /// A file of ours alone; where the user has another of this name, that is wrong or it stays.
    File {
        text: String,
        others_stay: bool,
    },
    /// A file that is the user's from the moment it is written.
    Starter(&'static str),
}

enum Put {
    Text(String),
    Kept(&'static str),
}

impl Content {
    fn put(&self, there: Option<&str>) -> Result<Put, Broken> {
        let text = there.unwrap_or_default();
        let outcome = match self {
            Self::Json(entries) => return json::put(text, entries).map(Put::Text),
            Self::Toml { program } => return toml::put(text, program).map(Put::Text),
            Self::Starter(_) if there.is_some() => return Ok(Put::Kept("it is yours")),
            Self::Starter(text) => return Ok(Put::Text((*text).to_owned())),
            Self::Block { marks, body } => text::put_block(text, *marks, body)?,
            Self::File { text: ours, .. } if there.is_none() => Outcome::Text(ours.clone()),
            Self::File { text: ours, others_stay } => match text::put_file(text, ours) {
                Err(_) if *others_stay => return Ok(Put::Kept("it is yours")),
                other => other?,
            },
        };
        Ok(match outcome {
            Outcome::Text(text) => Put::Text(text),
            Outcome::Theirs => Put::Kept("you changed what Baton wrote"),
        })
    }

    /// Nothing where nothing else is in the file.
    fn take_out(&self, there: &str) -> Result<Option<String>, Broken> {
        let unless = |ours: bool| (!ours).then(|| there.to_owned());
        match self {
            Self::Json(entries) => json::take_out(there, entries),
            Self::Toml { .. } => toml::take_out(there),
            Self::Block { marks, body } => text::take_block(there, *marks, body),
            Self::File { .. } => Ok(unless(text::is_our_file(there))),
            Self::Starter(text) => Ok(unless(there == *text)),
        }
    }
}

/// One file of a plan, and what becomes of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// As people know it: within the repository, or within git's own folder.
    pub file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    pub door: Door,
    #[serde(flatten)]
    pub state: State,
    #[serde(skip)]
    path: PathBuf,
    #[serde(skip)]
    before: Option<String>,
    #[serde(skip)]
    after: Option<String>,
    /// What was there, without anything of ours.
    #[serde(skip)]
    bare: Option<String>,
}

impl Step {
    /// What the whole is about, without a file of its own.
    fn git(state: State) -> Self {
        let (path, before, after, bare) = (PathBuf::new(), None, None, None);
        let file = "git hooks".to_owned();
        Self { file, client: None, door: Door::Git, state, path, before, after, bare }
    }
}

/// What would be done.
#[derive(Clone, Debug)]
pub struct Plan {
    pub steps: Vec<Step>,
    pub clients: Vec<Client>,
    pub mode: Option<Mode>,
    pub hooks: Option<git_hooks::Plan>,
    /// Roles become agents of the clients.
    roles: bool,
    removal: bool,
}

impl Plan {
    pub fn changes(&self) -> bool {
        self.steps.iter().any(|step| step.state.changes())
    }
}

fn pieces(ground: &Ground, client: Client, mode: Mode) -> Vec<Piece> {
    let path = ground.program.to_string_lossy();
    let program = Program { mode, path: &path };
    match client {
        Client::Claude => claude::pieces(&program),
        Client::Codex => codex::pieces(&program),
        Client::Gemini => gemini::pieces(&program),
        Client::Cursor => cursor::pieces(&program),
        Client::Opencode => opencode::pieces(&program, &ground.root),
        Client::Aider => aider::pieces(),
    }
}

/// What agents of every client read. Claude reads AGENTS.md only where there is no CLAUDE.md.
fn shared(ground: &Ground, everywhere: bool) -> Vec<Piece> {
    let there = |name: &&str| everywhere || ground.root.join(name).symlink_metadata().is_ok();
    let others = ["CLAUDE.md", "GEMINI.md"].into_iter().filter(there);
    let block = |name: &str| Piece {
        client: None,
        door: Door::Words,
        path: name.to_owned(),
        content: Content::Block { marks: text::MARKDOWN, body: words::BLOCK.to_owned() },
    };
    let mut pieces: Vec<Piece> = std::iter::once("AGENTS.md").chain(others).map(block).collect();
    let content = Content::Starter(words::RULES);
    pieces.push(Piece { client: None, door: Door::Rules, path: RULES_FILE.to_owned(), content });
    pieces
}

fn excluded(lines: &BTreeSet<String>) -> Piece {
    let body: String = lines.iter().map(|line| format!("/{line}\n")).collect();
    let content = Content::Block { marks: text::HASHES, body };
    Piece { client: None, door: Door::Ignored, path: EXCLUDE_FILE.to_owned(), content }
}

/// Looks what wiring these clients would change.
pub fn plan(
    ground: &Ground,
    clients: &[Client],
    mode: Mode,
    roles: Option<&Rules>,
) -> Result<Plan, Failure> {
    let record = Record::read(&ground.store)?;
    let mut steps: Vec<Step> = Vec::new();
    if clients.is_empty() {
        let (mode, hooks, roles) = (None, None, false);
        return Ok(Plan { steps, clients: Vec::new(), mode, hooks, roles, removal: false });
    }
    let tracked = match (mode, &ground.git) {
        (Mode::Personal, Some(_)) => Git::in_tree(&ground.root)?.tracked()?,
        _ => Vec::new(),
    };
    let mut wanted: Vec<Piece> =
        clients.iter().flat_map(|client| pieces(ground, *client, mode)).collect();
    if mode == Mode::Team {
        wanted.extend(shared(ground, false));
    }
    if let Some(rules) = roles {
        wanted.extend(clients.iter().flat_map(|client| roles::pieces(*client, rules)));
    }
    for piece in &wanted {
        let step = match tracked.contains(&piece.path) {
            true => tracked_step(ground, piece),
            false => put_step(ground, piece),
        };
        // A link to another of these files is that file.
        if steps.iter().all(|known| known.path != step.path || step.path == Path::new("")) {
            steps.push(step);
        }
    }
    if clients.contains(&Client::Claude) {
        once_for_claude(ground, mode, &mut steps);
    }
    if mode == Mode::Personal && ground.git.is_some() {
        let new = steps.iter().filter(|step| step.state == State::New);
        // What other clients were given before stays out of git too.
        let before = record.wired_in(&ground.root).into_iter();
        let ours = before.filter(|file| record.made(&ground.root.join(file)));
        let own = Some(config::FILE_NAME.to_owned());
        let own = own.filter(|own| !tracked.contains(own));
        let lines: BTreeSet<String> =
            new.map(|step| step.file.clone()).chain(ours).chain(own).collect();
        steps.push(put_step(ground, &excluded(&lines)));
    }
    if mode == Mode::Team {
        // What was for one person alone is now for everybody, and git is to see it.
        let seen = take_step(ground, &excluded(&BTreeSet::new()), &record);
        steps.extend(Some(seen).filter(|step| step.state.changes()));
    }
    let hooks = git_hooks::plan(ground, &record)?;
    if let Some(hooks) = &hooks {
        let state = match (hooks.is_done(), hooks.standing()) {
            (true, _) => State::Same,
            (false, git_hooks::Standing::Missing) => State::New,
            (false, _) => State::Merged,
        };
        steps.push(Step::git(state));
    }
    let (clients, mode, roles) = (clients.to_vec(), Some(mode), roles.is_some());
    Ok(Plan { steps, clients, mode, hooks, roles, removal: false })
}

fn step(piece: &Piece, state: State) -> Step {
    let Piece { client, door, path, .. } = piece;
    let file = match door {
        Door::Ignored => format!(".git/{path}"),
        _ => path.clone(),
    };
    let (path, before, after, bare) = (PathBuf::new(), None, None, None);
    Step { file, client: *client, door: *door, state, path, before, after, bare }
}

fn put_step(ground: &Ground, piece: &Piece) -> Step {
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

/// In a file that git follows, an entry of one's own would be seen by everybody.
fn tracked_step(ground: &Ground, piece: &Piece) -> Step {
    let looked = put_step(ground, piece);
    match looked.state {
        State::Same | State::Kept { .. } | State::Failed { .. } => looked,
        _ => {
            let why = "git follows it, so it is not for one person alone; --team writes it".into();
            Step { state: State::Failed { why }, before: None, after: None, ..looked }
        }
    }
}

/// Claude runs the hooks of both its settings files: ours are to stand in one of them.
fn once_for_claude(ground: &Ground, mode: Mode, steps: &mut Vec<Step>) {
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

/// Looks what taking everything out would change.
pub fn plan_removal(ground: &Ground) -> Result<Plan, Failure> {
    let record = Record::read(&ground.store)?;
    let modes = [Mode::Team, Mode::Personal];
    let mut wanted: Vec<Piece> = modes
        .into_iter()
        .flat_map(|mode| {
            Client::ALL.into_iter().flat_map(move |client| pieces(ground, client, mode))
        })
        .collect();
    wanted.extend(shared(ground, true));
    wanted.extend(roles::there(ground));
    wanted.push(excluded(&BTreeSet::new()));
    let mut steps: Vec<Step> = Vec::new();
    for piece in &wanted {
        let step = take_step(ground, piece, &record);
        let known = |known: &Step| known.file == step.file || known.path == step.path;
        if step.state != State::Same && !steps.iter().any(known) {
            steps.push(step);
        }
    }
    if git_hooks::is_there(ground)? {
        steps.push(Step::git(State::Removed));
    }
    let (mode, hooks, roles) = (None, None, false);
    Ok(Plan { steps, clients: Vec::new(), mode, hooks, roles, removal: true })
}

fn take_step(ground: &Ground, piece: &Piece, record: &Record) -> Step {
    let nothing = step(piece, State::Same);
    let Some(base) = ground.base(piece) else { return nothing };
    // Where nothing of ours can be, nothing is to be taken out.
    let Ok(there) = files::look(base, &piece.path) else { return nothing };
    let Some(text) = there.text else { return nothing };
    let after = match (record.before(&there.path, &text), piece.content.take_out(&text)) {
        (Some(before), _) => before.map(str::to_owned),
        (None, Ok(Some(after))) if after == text => return nothing,
        (None, Ok(after)) => {
            // A file that was the user's before us stays, however little is in it.
            let emptied = matches!(piece.content, Content::Json(_)) && after.is_none();
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

/// Does what was planned, as far as it goes, and tells of each file what came of it.
pub fn apply(ground: &Ground, plan: &Plan) -> Result<Vec<Step>, Failure> {
    let _turn = record::Turn::take(&ground.store)?;
    let mut record = Record::read(&ground.store)?;
    let mut done = Vec::with_capacity(plan.steps.len());
    for planned in &plan.steps {
        let mut step = planned.clone();
        let outcome = match (&step.state, step.door) {
            (state, _) if !state.changes() => Ok(()),
            (_, Door::Git) if plan.removal => git_hooks::remove(ground, &mut record),
            (_, Door::Git) => match &plan.hooks {
                Some(hooks) => git_hooks::apply(ground, hooks, &mut record),
                None => Ok(()),
            },
            _ => carry_out(&step, plan.removal, &mut record),
        };
        if let Err(why) = outcome {
            step.state = State::Failed { why: why.0 };
        }
        done.push(step);
    }
    record.chosen = true;
    if plan.removal {
        remove_folders(ground, &done, &record);
        record.folders.clear();
        record.clients.clear();
        record.roles = false;
        record.mode = None;
    } else {
        record.roles |= plan.roles;
        record.clients.extend(&plan.clients);
        record.mode = plan.mode.or(record.mode);
    }
    record.write(&ground.store)?;
    Ok(done)
}

/// Folders that were made for our files go with them, where nothing else is in them.
fn remove_folders(ground: &Ground, done: &[Step], record: &Record) {
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

fn carry_out(step: &Step, removal: bool, record: &mut Record) -> Result<(), Broken> {
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
