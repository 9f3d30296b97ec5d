//! Wiring agent clients to Baton: which files, what is in them, what of it is ours.
//!
//! Owns the plan and its execution. A plan is made by looking alone and says for each file what is
//! there and what will be; whoever asks for it may show it first. Each client's entries are in a
//! module of its name. Invariants: what a user wrote stays, byte for byte; twice changes nothing; a
//! file that cannot be understood is left alone and told, and the rest goes on; taking out takes
//! exactly what was put in; no client's trust is ever written.

mod aider;
mod approval;
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
mod steps;
mod switches;
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
pub use inspect::{Doors, Inspection, Lack, State as DoorState, examine};
pub use record::Record;

use crate::config;
use crate::failure::Failure;
use crate::git::Git;
use crate::place::{GitDirs, Place, Site};
use command::Program;
use json::{Entry, Reader};
use steps::{once_for_claude, put_step, take_step, tracked_step};
use text::{Marks, Outcome};

const RULES_FILE: &str = ".baton/rules.md";
const EXCLUDE_FILE: &str = "info/exclude";
/// Why an entry of one's own is not written into a file that git follows.
pub const TRACKED: &str = "git follows it, so it is not for one person alone; --team writes it";

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
    /// It is the user's and was in our place.
    Moved {
        to: String,
    },
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
        match self {
            Self::New | Self::Merged | Self::Removed | Self::Cleaned | Self::Moved { .. } => true,
            Self::Same | Self::Kept { .. } | Self::Failed { .. } => false,
        }
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
        let program = std::env::current_exe().ok();
        let program = program.filter(|path| path.ends_with("baton") && path.to_str().is_some());
        let program = program.unwrap_or_else(|| "baton".into());
        Self { root: root.to_owned(), store: store.to_owned(), git: git.cloned(), home, program }
    }

    /// Why nothing can be wired here at all: clients, git's settings and the store name every path
    /// as text, so that what they would name is another.
    pub fn unnameable(&self) -> Option<&'static str> {
        let named = self.root.to_str().is_some() && self.store.to_str().is_some();
        (!named).then_some("the path of this repository is not UTF-8")
    }

    /// The main checkout, where this is a tree that is linked to one: Codex reads its hooks there.
    fn main_root(&self) -> &Path {
        let linked = self.git.as_ref().filter(|git| git.git_dir != git.common_dir);
        let common = linked.map(|git| git.common_dir.as_path());
        let main = common.filter(|common| common.ends_with(".git")).and_then(Path::parent);
        main.unwrap_or(&self.root)
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
    Json(Reader, Vec<Entry>),
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
            Self::Json(reader, entries) => {
                let with = json::put(text, entries)?;
                json::readable(text, *reader)?;
                return Ok(Put::Text(with));
            }
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

    /// Whether the user starts Baton's server with words of their own, which stay.
    fn has_own_server(&self, there: &str) -> bool {
        match self {
            Self::Json(_, entries) => json::has_own_server(there, entries),
            Self::Toml { .. } => toml::has_own_server(there),
            _ => false,
        }
    }

    /// Nothing where nothing else is in the file.
    fn take_out(&self, there: &str) -> Result<Option<String>, Broken> {
        let unless = |ours: bool| (!ours).then(|| there.to_owned());
        match self {
            Self::Json(_, entries) => json::take_out(there, entries),
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
    fn new(file: String, state: State) -> Self {
        let (path, before, after, bare) = (PathBuf::new(), None, None, None);
        Self { file, client: None, door: Door::Git, state, path, before, after, bare }
    }

    /// What the whole is about, without a file of its own.
    fn git(state: State) -> Self {
        Self::new("git hooks".to_owned(), state)
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
    /// No client is to be wired, by somebody's word.
    none: bool,
    removal: bool,
}

impl Plan {
    fn empty(removal: bool) -> Self {
        let (steps, clients) = (Vec::new(), Vec::new());
        Self { steps, clients, mode: None, hooks: None, roles: false, none: false, removal }
    }

    /// Files of the repository that will have something of ours in them.
    pub fn files(&self) -> Vec<String> {
        let has = |step: &&Step| {
            let here = !matches!(step.door, Door::Git | Door::Ignored);
            here && matches!(step.state, State::New | State::Merged | State::Same)
        };
        self.steps.iter().filter(has).map(|step| step.file.clone()).collect()
    }

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

/// Which clients are to be wired, and how.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub clients: Vec<Client>,
    pub mode: Mode,
    /// Roles that become agents of the clients.
    pub roles: Option<Rules>,
    /// Somebody said that there are to be no clients.
    pub none: bool,
}

/// Looks what wiring these clients would change.
pub fn plan(ground: &Ground, wanted: &Wanted) -> Result<Plan, Failure> {
    let Wanted { clients, mode, roles, .. } = wanted;
    let (mode, roles) = (*mode, roles.as_ref());
    let record = Record::read(&ground.store)?;
    let mut steps: Vec<Step> = Vec::new();
    if clients.is_empty() {
        return Ok(Plan { none: wanted.none, ..Plan::empty(false) });
    }
    let tracked = match (mode, &ground.git) {
        (Mode::Personal, Some(_)) => Git::in_tree(&ground.root)?.tracked()?,
        _ => Vec::new(),
    };
    if let Some(why) = ground.unnameable() {
        let failed = Step::new("agents and git hooks".into(), State::Failed { why: why.into() });
        let clients = clients.clone();
        return Ok(Plan { steps: vec![failed], clients, ..Plan::empty(false) });
    }
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
            let kept = steps::own_server(piece, &step);
            steps.push(step);
            steps.extend(kept);
        }
    }
    steps.extend(clients.iter().filter_map(|client| switches::step(ground, *client)));
    if clients.contains(&Client::Claude) {
        once_for_claude(ground, mode, &mut steps);
    }
    let ignored = match (mode, &ground.git) {
        (Mode::Personal, Some(_)) => kept_from_git(ground, &record, &tracked, &steps)?,
        (Mode::Personal, None) => Vec::new(),
        (Mode::Team, _) => shown_to_git(ground, &record, &wanted, &steps),
    };
    steps.extend(ignored);
    let hooks = git_hooks::plan(ground, &record)?;
    if let Some(hooks) = &hooks {
        steps.extend(git_hooks::strangers(ground, Some(&hooks.theirs)));
        let state = match (hooks.is_done(), hooks.standing()) {
            (true, _) => State::Same,
            (false, git_hooks::Standing::Missing) => State::New,
            (false, _) => State::Merged,
        };
        steps.push(Step::git(state));
    }
    let (clients, mode, roles) = (clients.clone(), Some(mode), roles.is_some());
    Ok(Plan { steps, clients, mode, hooks, roles, none: false, removal: false })
}

/// What git must not see where wiring is for one person alone.
fn kept_from_git(
    ground: &Ground,
    record: &Record,
    tracked: &[String],
    steps: &[Step],
) -> Result<Vec<Step>, Failure> {
    let new = steps.iter().filter(|step| step.state == State::New);
    // What other clients were given before stays out of git too.
    let before = record.wired_in(&ground.root).into_iter();
    let ours = before.filter(|file| record.made(&ground.root.join(file)));
    let own = Some(config::FILE_NAME.to_owned()).filter(|own| !tracked.contains(own));
    let lines: BTreeSet<String> =
        new.map(|step| step.file.clone()).chain(ours).chain(own).collect();
    let mut kept = vec![put_step(ground, &excluded(&lines))];
    // What everybody was to read, and nobody has committed, is taken back.
    let git = Git::in_tree(&ground.root)?;
    for piece in shared(ground, true).iter().filter(|piece| tracked.contains(&piece.path)) {
        let step = take_step(ground, piece, record);
        let after = step.after.as_ref().map(|text| text.clone().into_bytes());
        if step.state == State::Cleaned && git.content("HEAD", &piece.path)? == after {
            kept.push(step);
        }
    }
    Ok(kept)
}

/// What was for one person alone is now for everybody, and git is to see it; but not what other
/// clients have, which stays for one person.
fn shown_to_git(ground: &Ground, record: &Record, now: &[Piece], steps: &[Step]) -> Vec<Step> {
    let seen = take_step(ground, &excluded(&BTreeSet::new()), record);
    let hidden = std::fs::read_to_string(&seen.path).unwrap_or_default();
    let is_hidden = |file: &str| hidden.lines().any(|line| line.strip_prefix('/') == Some(file));
    let is_here = |file: &str| {
        now.iter().any(|piece| piece.path == file) || steps.iter().any(|step| step.file == file)
    };
    let before = record.wired_in(&ground.root).into_iter();
    let others: BTreeSet<String> =
        before.filter(|file| is_hidden(file) && !is_here(file)).collect();
    let step = match others.is_empty() {
        true => seen,
        false => put_step(ground, &excluded(&others)),
    };
    Some(step).into_iter().filter(|step| step.state.changes()).collect()
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
    let before = git_hooks::remembered(ground, &record)?;
    steps.extend(git_hooks::strangers(ground, before.as_ref()));
    if git_hooks::is_there(ground)? {
        steps.push(Step::git(State::Removed));
    }
    Ok(Plan { steps, ..Plan::empty(true) })
}

/// Wires, as far as it goes, and tells of each file what came of it. The plan is made anew within
/// the turn: what somebody else has done meanwhile is seen, and is done.
pub fn wire(ground: &Ground, wanted: &Wanted) -> Result<(Plan, Vec<Step>), Failure> {
    let _turn = record::Turn::take(&ground.store)?;
    let plan = plan(ground, wanted)?;
    let done = apply(ground, &plan)?;
    Ok((plan, done))
}

/// Takes everything out again.
pub fn unwire(ground: &Ground) -> Result<Vec<Step>, Failure> {
    let _turn = record::Turn::take(&ground.store)?;
    apply(ground, &plan_removal(ground)?)
}

fn apply(ground: &Ground, plan: &Plan) -> Result<Vec<Step>, Failure> {
    let mut record = Record::read(&ground.store)?;
    let mut done = Vec::with_capacity(plan.steps.len());
    for planned in &plan.steps {
        let mut step = planned.clone();
        let outcome = match (&step.state, step.door) {
            (state, _) if !state.changes() => Ok(()),
            (State::Moved { to }, _) => git_hooks::move_out(&step, to),
            (_, Door::Git) if plan.removal => git_hooks::remove(ground, &mut record),
            (_, Door::Git) => match &plan.hooks {
                Some(hooks) => git_hooks::apply(ground, hooks, &mut record),
                None => Ok(()),
            },
            _ => steps::carry_out(&step, plan.removal, &mut record),
        };
        if let Err(why) = outcome {
            step.state = State::Failed { why: why.0 };
        }
        done.push(step);
    }
    record.chosen = true;
    if plan.removal {
        steps::remove_folders(ground, &done, &record);
        record.folders.clear();
        record.clients.clear();
        record.roles = false;
        record.mode = None;
        record.none = false;
    } else {
        // As it was said before, where nothing is said now.
        record.none = plan.none;
        record.roles |= plan.roles;
        record.clients.extend(&plan.clients);
        record.mode = plan.mode.or(record.mode);
    }
    record.write(&ground.store)?;
    Ok(done)
}
