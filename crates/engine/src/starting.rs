//! Starting a client: a session, perhaps a tree and a task, before it runs; and its end.
//!
//! Owns the order, and that whatever is refused leaves nothing behind: no session, no tree, no
//! task. At the end what is known is saved, what has no uncommitted change is let go, and the rest
//! waits for its return. `clients` knows the clients themselves.

use std::path::{Path, PathBuf};

use baton_core::claim::{self, Claim};
use baton_core::claims::letting_go::{self, Target, Which};
use baton_core::context::{Actor, Observed};
use baton_core::handoff::To;
use baton_core::handoffs::find;
use baton_core::id::{SessionId, TaskId};
use baton_core::launches;
use baton_core::pattern::Kind;
use baton_core::resource::Resource;
use baton_core::roles::writing::Writes;
use baton_core::sessions::{BY_LIFE, GRACE, Session};
use baton_core::task::Task;
use baton_core::time::{Moment, Span};
use baton_core::tree::Tree as Record;
use baton_core::trees::Made;
use baton_core::view::{Query, get, only, scan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::{self, handoffs};
use crate::doors::stop::{self, LeftThere};
use crate::failure::Failure;
use crate::handing::{self, Received};
use crate::place::Place;
use crate::policy;
use crate::sessions::{self, Credentials, SeatState};
use crate::sighting::files::tree_root;
use crate::sighting::left_by;
use crate::tasking;
use crate::tasking::showing::ListedTask;
use crate::trees::making;
use crate::trees::{Door, removing};
use crate::user_config;
use crate::whoami::{self, Hints};
use crate::workspace::Workspace;

pub mod clients;
pub mod limits;

pub use clients::{Client, NAMES};
use limits::Limits;

/// Set for the client: whoever started it ends its session.
pub const VARIABLE: &str = "BATON_LAUNCHED";
/// No session has more.
const CLAIMS_MAX: u32 = 10_000;
/// Sessions that ended are looked through for one that waits.
const SESSIONS_MAX: u32 = 10_000;

/// Which tree the client works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Tree {
    /// A new one with a branch of its own
    New,
    /// The one around this folder
    Here,
}

/// What is to be started.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    pub client: &'static Client,
    /// Who starts it: a session gives no role that is wider than its own.
    pub starter: Actor,
    pub role: Option<&'a str>,
    pub task: Option<&'a str>,
    /// Not said: a new one when others are at work here, otherwise here.
    pub tree: Option<Tree>,
    pub ports: u16,
}

/// A session that waits for its client.
#[derive(Debug)]
pub struct Begun {
    /// In the tree of the work.
    pub workspace: Workspace,
    pub actor: Actor,
    pub credentials: Credentials,
    /// The folder the client is to run in.
    pub folder: PathBuf,
    pub made: Option<Made>,
    /// What a tree that was made for it had from the first: uncommitted settings, files of setup.
    came_with: Vec<Resource>,
    /// What it took over, when it goes on with somebody's work.
    pub received: Option<Box<Received>>,
    pub environment: Vec<(String, String)>,
}

/// What a client left when it ended.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Leftovers {
    pub session: String,
    pub name: String,
    /// The client's exit code, as a shell counts it.
    pub exit_code: u8,
    pub released: Vec<Resource>,
    /// Held, changed and in no commit.
    pub dirty: Vec<Resource>,
    /// The same, in other trees of this machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<LeftThere>,
    /// Changed in the tree that was made for it, held by nobody and in no commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unclaimed: Vec<Resource>,
    /// Active, and neither reported nor offered to anybody.
    pub tasks: Vec<ListedTask>,
    /// What is left waits so long for its return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Moment>,
    /// The tree that was made for it, which is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// Whether other agents are at work in the tree around here.
pub fn others_at_work(workspace: &mut Workspace) -> Result<bool, Failure> {
    let tree = workspace.tree.0.clone();
    let seats = sessions::list(workspace, false)?.sessions;
    Ok(seats.iter().any(|seat| seat.tree == tree && !seat.person && seat.state == SeatState::Live))
}

/// Whether it would be in others' way here: not if its role writes nothing of a tree.
fn wants_own_tree(workspace: &mut Workspace, wish: &Wish<'_>) -> Result<bool, Failure> {
    let inherited = sessions::starter_role(workspace, &wish.starter)?;
    if let Some(role) = wish.role.or(inherited.as_deref()) {
        let writes = Writes::of(&policy::roles(workspace)?, role, &SessionId(String::new()));
        if writes.is_some_and(|writes| writes.is_nothing() || writes.is_own_folder()) {
            return Ok(false);
        }
    }
    others_at_work(workspace)
}

/// Begins everything that comes before the client, or nothing.
pub fn begin(
    mut workspace: Workspace,
    cwd: &Path,
    wish: &Wish<'_>,
    door: &mut dyn Door,
) -> Result<Begun, Failure> {
    if let Some(begun) = begin_again(&mut workspace, cwd, wish)? {
        return Ok(begun);
    }
    let tree = match wish.tree {
        Some(tree) => tree,
        None if workspace.place.git.is_some() && wants_own_tree(&mut workspace, wish)? => Tree::New,
        None => Tree::Here,
    };
    let (credentials, actor) = session(&mut workspace, wish)?;
    let made = match tree {
        Tree::Here => None,
        Tree::New => {
            let wanted = api::trees::New {
                task: wish.task.map(str::to_owned),
                ports: wish.ports,
                ..api::trees::New::default()
            };
            match making::new(&mut workspace, &actor, cwd, &wanted, None, door) {
                Ok(made) => Some(made),
                Err(failure) => return Err(undone(workspace, &actor, None, None, failure)),
            }
        }
    };
    let folder = match &made {
        Some(made) => PathBuf::from(&made.tree.path),
        None => cwd.to_owned(),
    };
    match in_tree(&folder, &credentials, wish) {
        Ok(there) => Ok(there.begun(credentials, folder, made)),
        Err(failure) => Err(undone(workspace, &actor, made.as_ref(), None, failure)),
    }
}

/// Goes on with what the same client left, where that is what is asked for: in this tree, or with
/// this task in the tree where it was worked on. What waited goes on waiting if that fails.
fn begin_again(
    workspace: &mut Workspace,
    cwd: &Path,
    wish: &Wish<'_>,
) -> Result<Option<Begun>, Failure> {
    if wish.tree == Some(Tree::New) {
        return Ok(None);
    }
    let Some(left) = left_here(workspace, wish)? else { return Ok(None) };
    let folder = match left.tree == workspace.tree {
        true => cwd.to_owned(),
        false => match tree_root(workspace, &left.tree) {
            Some(root) => root,
            None => return Ok(None),
        },
    };
    let mut there = open(&folder)?;
    let (starter, wanted) = seat(&there, wish);
    let Some(credentials) = sessions::again(&mut there, &starter, &wanted, &left.session)? else {
        return Ok(None);
    };
    match in_tree(&folder, &credentials, wish) {
        Ok(there) => Ok(Some(there.begun(credentials, folder, None))),
        Err(failure) => {
            let actor = acting(&mut there, &credentials)?;
            Err(undone(there, &actor, None, Some(GRACE), failure))
        }
    }
}

/// The session of this client that waits for its return: who has the task that is asked for, else
/// the one that was here last.
fn left_here(workspace: &mut Workspace, wish: &Wish<'_>) -> Result<Option<Session>, Failure> {
    let host = workspace.machine.host.clone();
    let (tree, here) = (workspace.tree.clone(), wish.tree == Some(Tree::Here));
    let id = wish.task.map(|task| TaskId::parse(task).map(|id| id.0).unwrap_or_default());
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let owner = match &id {
            Some(id) => get::<Task>(view, id)?
                .and_then(|task| task.owner().map(|owner| owner.session.clone())),
            None => None,
        };
        let ended: Vec<Session> = scan(view, Query::equal(BY_LIFE, "ended", SESSIONS_MAX))?;
        let wanted = |session: &Session| match &owner {
            Some(owner) => session.session == *owner && (!here || session.tree == tree),
            None => session.tree == tree,
        };
        let waiting = ended.into_iter().filter(wanted).filter_map(|session| {
            let since = launches::waits(&session, wish.client.name, &host, context.now)?;
            Some((since, session))
        });
        Ok(waiting.max_by_key(|(since, _)| *since).map(|(_, session)| session))
    })
}

/// Begins a session in the tree of a handoff and takes over what is offered, or does nothing.
pub fn begin_with_handoff(
    mut workspace: Workspace,
    accept: &handoffs::Accept,
    wish: &Wish<'_>,
) -> Result<Begun, Failure> {
    let folder = handing::folder_of(&mut workspace, &accept.handoff, wish.client.name)?;
    let mut there = open(&folder)?;
    let (credentials, actor) = session(&mut there, wish)?;
    match handing::accept(&mut there, &actor, accept, None) {
        Ok(received) => {
            let task = received.accepted.task.to_string();
            let (task, made) = (Some(task), None);
            let begun = There { workspace: there, actor, task }.begun(credentials, folder, made);
            Ok(Begun { received: Some(Box::new(received)), ..begun })
        }
        Err(failure) => Err(undone(there, &actor, None, None, failure)),
    }
}

/// Whom a task is for, if it is for one role. One that is not there is told when it is taken.
pub fn role_of_task(workspace: &mut Workspace, text: &str) -> Result<Option<String>, Failure> {
    let id = TaskId::parse(text).map(|id| id.0).unwrap_or_default();
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok(get::<Task>(view, &id)?.and_then(|task| task.role))
    })
}

/// Whom a handoff is for: a role, or that of its task. Who is named need not have it.
pub fn role_of_handoff(workspace: &mut Workspace, text: &str) -> Result<Option<String>, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let Ok(handoff) = find(view, text) else { return Ok(None) };
        Ok(match handoff.to {
            To::Role(role) => Some(role),
            To::Anyone => get::<Task>(view, handoff.task.as_str())?.and_then(|task| task.role),
            To::Session(_) => None,
        })
    })
}

/// What the client is told of the role that its session has, whoever gave it.
pub fn limits(begun: &mut Begun, client: &Client, program: &Path) -> Result<Limits, Failure> {
    let Some(name) = begun.credentials.role.as_deref() else { return Ok(Limits::default()) };
    let rules = policy::roles(&mut begun.workspace)?;
    let Some(role) = rules.role(name) else { return Ok(Limits::default()) };
    let (folder, role_name, role) = (begun.folder.as_path(), name, &role);
    Ok(Limits::of(&limits::Subject { client, program, folder, role_name, role }))
}

fn open(folder: &Path) -> Result<Workspace, Failure> {
    let place = Place::find(folder)?;
    let address = user_config::address_for(&place)?;
    Workspace::open_at(place, address.as_deref())
}

fn session(workspace: &mut Workspace, wish: &Wish<'_>) -> Result<(Credentials, Actor), Failure> {
    let (starter, wanted) = seat(workspace, wish);
    let credentials = sessions::start(workspace, &starter, &wanted, None)?;
    let actor = acting(workspace, &credentials)?;
    Ok((credentials, actor))
}

/// Who starts it, and what: it lives as long as this process, which outlives the client.
fn seat(workspace: &Workspace, wish: &Wish<'_>) -> (Actor, api::SessionStart) {
    let wanted = api::SessionStart {
        client: Some(wish.client.name.to_owned()),
        role: wish.role.map(str::to_owned),
        pid: Some(std::process::id()),
        ..api::SessionStart::default()
    };
    (Actor { tree: Some(workspace.tree.clone()), ..wish.starter.clone() }, wanted)
}

fn acting(workspace: &mut Workspace, credentials: &Credentials) -> Result<Actor, Failure> {
    let environment = Some(credentials.credential.clone());
    let actor = whoami::actor(workspace, &Hints { environment, ..Hints::default() })?;
    // Whatever a session of an agent does is not a person's word.
    Ok(Actor { person: false, ..actor })
}

/// A session in its tree.
struct There {
    workspace: Workspace,
    actor: Actor,
    /// What it works on, if anything.
    task: Option<String>,
}

impl There {
    fn begun(self, credentials: Credentials, folder: PathBuf, made: Option<Made>) -> Begun {
        let Self { mut workspace, actor, task } = self;
        let environment = environment(&mut workspace, task.as_deref());
        let looked = made.as_ref().map(|_| stop::changed(&workspace, &[String::new()]));
        // Without a look everything is told at the end, which is rather too much than too little.
        let came_with = looked.and_then(Result::ok).unwrap_or_default();
        let received = None;
        Begun { workspace, actor, credentials, folder, made, came_with, received, environment }
    }
}

/// The session in its tree, with its task.
fn in_tree(folder: &Path, credentials: &Credentials, wish: &Wish<'_>) -> Result<There, Failure> {
    let mut workspace = open(folder)?;
    let actor = acting(&mut workspace, credentials)?;
    let own = own_task(&mut workspace, &actor)?;
    let task = match (wish.task, own) {
        (Some(wanted), own) if own.as_ref().is_some_and(|own| own.as_str() == wanted) => own,
        (Some(wanted), _) => {
            let take = api::tasks::Take {
                task: Some(wanted.to_owned()),
                count: 1,
                ..api::tasks::Take::default()
            };
            tasking::take(&mut workspace, &actor, &take, None)?;
            Some(wanted.to_owned())
        }
        (None, own) => own,
    };
    let tree = workspace.tree.clone();
    workspace.decide(&actor, Observed::default(), |view, context| {
        launches::settle(view, &tree, context)
    })?;
    Ok(There { workspace, actor, task })
}

/// The task that waited for this session.
fn own_task(workspace: &mut Workspace, actor: &Actor) -> Result<Option<String>, Failure> {
    let Some(session) = actor.session.clone() else { return Ok(None) };
    workspace.look(actor, Observed::default(), |view, context| {
        let rows = view.read(&[claim::of_session(&session, CLAIMS_MAX)])?.pop().unwrap_or_default();
        let tasks: Vec<Task> = only(&rows)?;
        let live = |task: &&Task| task.seat_of(&session).is_some_and(|seat| seat.is_live(context));
        Ok(tasks.iter().find(live).map(|task| task.task.to_string()))
    })
}

/// Takes back what was begun, and gives the reason on.
fn undone(
    mut workspace: Workspace,
    actor: &Actor,
    made: Option<&Made>,
    grace: Option<Span>,
    failure: Failure,
) -> Failure {
    if let Some(made) = made {
        let root = workspace.place.root.clone();
        let wanted = api::trees::Remove { which: made.tree.path.clone(), force: false };
        // What cannot be removed is kept, and `worktree list` shows it.
        let _ = removing::remove(&mut workspace, actor, &root, &wanted, None);
    }
    let wanted = api::SessionEnd { grace, ..api::SessionEnd::default() };
    let _ = sessions::end(&mut workspace, actor, &wanted, None);
    failure
}

/// What the tree is known by, and the task. Its file of variables lies where a sandbox writes: that
/// is for shells, and nothing of it is believed here.
fn environment(workspace: &mut Workspace, task: Option<&str>) -> Vec<(String, String)> {
    let id = workspace.tree.clone();
    let tree: Result<Option<Record>, Failure> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| Ok(get(view, &id.0)?));
    let tree = tree.ok().flatten();
    let mut variables = tree.as_ref().map_or_else(Vec::new, making::environment);
    // A tree that was made for a task may be another's to work in by now.
    variables.retain(|(name, _)| name != "BATON_TASK");
    if let Some(task) = task {
        variables.push(("BATON_TASK".to_owned(), task.to_owned()));
    }
    variables
}

/// The client has ended: saves what is known, lets go of what is done with, and says what is left.
pub fn finish(begun: &mut Begun, exit_code: u8) -> Result<Leftovers, Failure> {
    let Begun { workspace, actor, credentials, made, came_with, .. } = begun;
    let mut left = Leftovers {
        session: credentials.session.to_string(),
        name: credentials.name.clone(),
        exit_code,
        tree: made.as_ref().map(|made| made.tree.path.clone()),
        ..Leftovers::default()
    };
    match handing::checkpoint(workspace, actor, &handoffs::Checkpoint::default(), None) {
        // Without work there is nothing to save.
        Ok(_) | Err(Failure::Refused(_)) => {}
        Err(other) => return Err(other),
    }
    let found = stop::look(workspace, actor)?;
    (left.dirty, left.tasks) = (found.dirty, found.tasks);
    // What others may add to as well waits in no tree.
    let alone = |there: LeftThere| LeftThere { shared: Vec::new(), ..there };
    left.elsewhere = found.elsewhere.into_iter().map(alone).collect();
    left.elsewhere.retain(|there| !there.dirty.is_empty());
    if left.tree.is_some() {
        left.unclaimed = stop::changed(workspace, &[String::new()])?;
        left.unclaimed.retain(|path| !(left.dirty.contains(path) || came_with.contains(path)));
    }
    left.released = release_clean(workspace, actor, &left)?;
    let waits = !(left.dirty.is_empty() && left.elsewhere.is_empty() && left.tasks.is_empty());
    let wanted = api::SessionEnd { grace: waits.then_some(GRACE), ..api::SessionEnd::default() };
    let ended = sessions::end(workspace, actor, &wanted, None)?;
    left.waits_until = ended.grace_until;
    left.released.extend(ended.released);
    Ok(left)
}

/// Lets go of whatever has no uncommitted change and belongs to no task that waits. A folder or
/// pattern with a change in it is kept whole.
fn release_clean(
    workspace: &mut Workspace,
    actor: &Actor,
    left: &Leftovers,
) -> Result<Vec<Resource>, Failure> {
    let Some(session) = actor.session.clone() else { return Ok(Vec::new()) };
    let mine: Vec<Claim> = workspace.look(actor, Observed::default(), |view, _| {
        Ok(scan(view, claim::of_session(&session, CLAIMS_MAX))?)
    })?;
    // The same path may be held in two trees, and whoever lets go of it does so in both.
    let there = left.elsewhere.iter().flat_map(|there| &there.dirty);
    let dirty: Vec<&Resource> = left.dirty.iter().chain(there).collect();
    let kept = |resource: &Resource| match resource {
        Resource::Path(pattern) if pattern.kind() == Kind::Glob => !dirty.is_empty(),
        resource => dirty.iter().any(|dirty| resource.overlaps(dirty)),
    };
    let waits = |task: &String| left.tasks.iter().any(|one| one.task.as_str() == task);
    let clean: Vec<Resource> = mine
        .into_iter()
        .filter(|claim| !claim.task.as_ref().is_some_and(waits))
        .flat_map(|claim| claim.hold.resources)
        .filter(|resource| !kept(resource))
        .collect();
    if clean.is_empty() {
        return Ok(clean);
    }
    let observed = left_by(workspace, &Target::Resources(clean.clone()), Some(actor))?;
    let which = Which::Resources(clean);
    let released = workspace.decide(actor, observed, |view, context| {
        letting_go::release(view, &which, None, None, context)
    })?;
    Ok(released.released)
}
