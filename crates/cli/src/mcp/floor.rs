//! Where calls are served: the workspace, kept open, and who calls.
//!
//! Owns the open workspaces: each call has one to itself, and gives it back for the next. Finds out
//! at every call who makes it, so that a session which a hook began after the server did is met.
//! Which workspace is meant is looked for until one is found: `baton init` may come later.

use std::io::PipeReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_core::context::Actor;
use baton_core::roles::Role;
use baton_engine::api::landings::Land;
use baton_engine::doors;
use baton_engine::doors::askers::{self, Asker};
use baton_engine::doors::served::{self, Parent};
use baton_engine::failure::Failure;
use baton_engine::place::workspace_file::WorkspaceId;
use baton_engine::place::{self, Place, test_hooks};
use baton_engine::whoami::{self, Hints};
use baton_engine::workspace::Workspace;
use baton_engine::{known, policy, sandbox, sessions, user_config};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::server::MOMENT;
use crate::arguments::{Command, Common};
use crate::commands;
use crate::counter::{Counter, Said};
use crate::desk::{self, Outcome};
use crate::news::notices_words;
use crate::render::shown;
use crate::words::Problem;

/// Open workspaces that are kept for the next call.
const KEPT_MAX: usize = 4;
/// How long a connection to a shared store is kept for the next call. A server has few of them,
/// and each agent has one of us.
const IDLE_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Floor {
    folder: PathBuf,
    /// The workspace that was asked for.
    wanted: Option<WorkspaceId>,
    hints: Hints,
    kept: Mutex<Vec<Kept>>,
    /// Said when a connection is kept that somebody has to let go of.
    kept_one: Notify,
    parent: Mutex<Option<Parent>>,
}

#[derive(Debug)]
struct Kept {
    /// Where it was asked for, and where its paths begin.
    asked: PathBuf,
    folder: PathBuf,
    workspace: Workspace,
    /// When it is let go of, if nobody calls before.
    until: Option<Instant>,
    /// Who acted last, by what its call said.
    last: Option<(Caller, Actor)>,
}

/// Who calls, as the call says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The client and its own id of the session.
    pub(crate) session: Option<(String, String)>,
    pub(crate) name: Option<String>,
}

/// One call.
pub(super) struct Order {
    pub(super) caller: Caller,
    /// What is said of which subagent of the caller's calls.
    pub(super) asker: Option<askers::Said>,
    /// Another folder than the server's.
    pub(super) folder: Option<PathBuf>,
    /// Whether it changes something, and so needs a session.
    pub(super) acts: bool,
    /// Whether who acted last may be taken for the caller; then a refusal may be its session's end.
    pub(super) remembers: bool,
    pub(super) steps: Vec<Step>,
    /// What a commit said that was served before.
    pub(super) committed: Option<Value>,
    pub(super) end: Arc<PipeReader>,
    pub(super) hear: Box<dyn Fn(&str)>,
    /// How long it waits for its turn at the store.
    pub(super) patience: Duration,
}

#[expect(clippy::large_enum_variant, reason = "a call has three of them at the most")]
pub(super) enum Step {
    Command(Command),
    /// The newest entries of the journal.
    Journal(u64),
}

/// What came of a call.
#[derive(Debug, Default)]
pub(super) struct Served {
    pub(super) said: Said,
    pub(super) problem: Option<Problem>,
    /// The last command said that it did not come to a good end.
    pub(super) bad: bool,
}

impl Floor {
    pub(crate) fn new(folder: PathBuf, wanted: Option<WorkspaceId>, hints: Hints) -> Self {
        let (kept, parent) = (Mutex::default(), Mutex::default());
        Self { folder, wanted, hints, kept, kept_one: Notify::new(), parent }
    }

    /// Whether a store of this machine is open and waits for a call.
    pub(super) fn is_warm(&self) -> bool {
        let here = |one: &Kept| one.asked == self.folder && !one.workspace.place.workspace.shared;
        locked(&self.kept).iter().any(here)
    }

    /// Serves one call, step by step until one is refused.
    pub(super) fn serve(&self, order: Order) -> Served {
        let (mut kept, asker) = match self.open_for(&order) {
            Ok(opened) => opened,
            Err(problem) => return Served { problem: Some(problem), ..Served::default() },
        };
        kept.workspace.patience = order.patience;
        let actor = match (self.who(&mut kept, &order), asker) {
            (Ok(actor), None) => actor,
            (Ok(actor), Some(asker)) => askers::acting(&mut kept.workspace, &actor, &asker),
            (Err(failure), _) => {
                self.keep(kept);
                return Served { problem: Some(failure.into()), ..Served::default() };
            }
        };
        let Kept { asked, folder, workspace, last, .. } = kept;
        let Order { steps, committed, acts, end, hear, .. } = order;
        let counter = Rc::new(Counter::new(workspace, actor, folder, end, hear));
        let common = Common { counter: Some(Rc::clone(&counter)), ..Common::default() };
        let mut served = run(&common, &counter, steps, committed);
        drop(common);
        let (actor, folder) = (counter.actor.clone(), counter.cwd.clone());
        let Some(counter) = Rc::into_inner(counter) else { return served };
        let (mut workspace, said) = counter.close();
        served.said = said;
        // A store that did not answer is opened anew by the next call.
        if served.problem.as_ref().is_none_or(|problem| problem.exit != 4) {
            served.said.text.push_str(&news(&mut workspace, &actor, acts));
            self.keep(Kept { asked, folder, workspace, until: None, last });
        }
        served
    }

    /// The role of the session that the server was started for, if that is known. Who comes to be
    /// known by a hook or by its calls is not known yet when tools are listed.
    pub(super) fn role(&self, caller: &Caller) -> Option<Role> {
        let credential = self.hints.credential.as_deref().or(self.hints.environment.as_deref())?;
        let mut kept = self.open(None).ok()?;
        let role = self.role_of(&mut kept.workspace, credential, caller);
        self.keep(kept);
        role
    }

    fn role_of(
        &self,
        workspace: &mut Workspace,
        credential: &str,
        caller: &Caller,
    ) -> Option<Role> {
        workspace.patience = MOMENT;
        let session = caller.session.as_ref().map(|(client, id)| (client.as_str(), id.as_str()));
        let name = caller.name.as_deref();
        let call = served::Call { credential: Some(credential), session, name };
        let actor = served::find(workspace, &self.parent(workspace), &call).ok()?;
        let name = sessions::starter_role(workspace, &actor).ok()??;
        policy::roles(workspace).ok()?.role(&name)
    }

    fn who(&self, kept: &mut Kept, order: &Order) -> Result<Actor, Failure> {
        // From inside a sandbox it is that session, whatever the call says.
        if sandbox::is_bound() {
            return whoami::actor(&mut kept.workspace, &self.hints);
        }
        if let Some(actor) = self.remembered(kept, order) {
            return Ok(actor);
        }
        let Kept { workspace, last, .. } = kept;
        let parent = self.parent(workspace);
        let session = order.caller.session.as_ref();
        let call = served::Call {
            credential: self.hints.credential.as_deref().or(self.hints.environment.as_deref()),
            session: session.map(|(client, id)| (client.as_str(), id.as_str())),
            name: order.caller.name.as_deref(),
        };
        if order.acts {
            *last = None;
            let actor = served::find_to_act(workspace, &parent, &call)?;
            if served::is_certain(&actor, &parent, &call) {
                *last = Some((order.caller.clone(), actor.clone()));
            }
            return Ok(actor);
        }
        match served::find(workspace, &parent, &call) {
            // Who cannot be told from another may read as nobody in particular.
            Err(Failure::Refused(_) | Failure::SeveralAgents { .. }) => {
                Ok(Actor { tree: Some(workspace.tree.clone()), ..Actor::default() })
            }
            found => found,
        }
    }

    /// Who acted last, when the same is said again and the same process stands behind it.
    fn remembered(&self, kept: &Kept, order: &Order) -> Option<Actor> {
        let (caller, actor) = kept.last.as_ref().filter(|_| order.acts && order.remembers)?;
        let same_parent = || locked(&self.parent).as_ref().is_some_and(Parent::is_there);
        (*caller == order.caller && same_parent()).then(|| actor.clone())
    }

    fn parent(&self, workspace: &Workspace) -> Parent {
        let mut known = locked(&self.parent);
        match known.as_ref().filter(|parent| parent.is_there()) {
            Some(parent) => parent.clone(),
            None => known.insert(Parent::look(workspace)).clone(),
        }
    }

    /// The workspace, and which subagent calls. One with a tree of its own means that tree.
    fn open_for(&self, order: &Order) -> Result<(Kept, Option<Asker>), Problem> {
        let kept = self.open(order.folder.as_deref())?;
        // Whoever is inside a sandbox is one session, whatever the call says.
        let said = order.asker.as_ref().filter(|_| !sandbox::is_bound());
        let asker = said.and_then(|said| askers::find(&kept.workspace.place, said));
        let root = asker.as_ref().and_then(|asker| asker.root.as_deref());
        match root.filter(|root| order.folder.is_none() && *root != kept.workspace.place.root) {
            Some(root) if root.is_dir() => {
                self.keep(kept);
                Ok((self.open(Some(root))?, asker))
            }
            _ => Ok((kept, asker)),
        }
    }

    fn open(&self, folder: Option<&Path>) -> Result<Kept, Problem> {
        let asked = folder.map_or_else(|| self.folder.clone(), |folder| self.folder.join(folder));
        let mut kept = locked(&self.kept);
        if let Some(at) = kept.iter().position(|one| one.asked == asked) {
            return Ok(kept.swap_remove(at));
        }
        drop(kept);
        let (place, folder) = match folder {
            Some(_) if !asked.is_dir() => {
                let name = shown(&asked.display().to_string());
                return Err(Problem::usage(format!("{name} is not a folder"), "name a folder"));
            }
            Some(_) => (Place::find(&asked).map_err(Failure::from)?, asked.clone()),
            None => self.place()?,
        };
        let address = user_config::address_for(&place)?;
        let workspace = Workspace::open_at(place, address.as_deref())?;
        known::remember(&workspace.place);
        Ok(Kept { asked, folder, workspace, until: None, last: None })
    }

    /// The workspace that is meant, and where paths begin in it.
    fn place(&self) -> Result<(Place, PathBuf), Problem> {
        let at_root = |place: Place| {
            let root = place.root.clone();
            (place, root)
        };
        let here = Place::find(&self.folder);
        match (&self.wanted, here) {
            (None, Ok(place)) => Ok((place, self.folder.clone())),
            (Some(wanted), Ok(place)) if place.workspace.id == *wanted => {
                Ok((place, self.folder.clone()))
            }
            (Some(wanted), _) => known::find(wanted).map(at_root).ok_or_else(|| Problem {
                exit: 1,
                code: "no_such_workspace",
                message: format!("workspace {wanted} is not known on this machine"),
                next: "baton init, once, in a clone that belongs to it".to_owned(),
                details: json!({}),
            }),
            (None, Err(error @ place::Error::NotInitialised { .. })) => {
                let mut places = known::all();
                match (places.len(), places.pop()) {
                    (1, Some(only)) => Ok(at_root(only)),
                    (_, None) => Err(Failure::from(error).into()),
                    (_, Some(last)) => {
                        places.push(last);
                        Err(several(&places))
                    }
                }
            }
            (None, Err(error)) => Err(Failure::from(error).into()),
        }
    }

    fn keep(&self, mut kept: Kept) {
        let place = &kept.workspace.place;
        if place.workspace.shared {
            let idle = test_hooks::idle(&place.store).unwrap_or(IDLE_MAX);
            kept.until = Some(Instant::now() + idle);
        }
        let ends = kept.until.is_some();
        let mut all = locked(&self.kept);
        if all.len() < KEPT_MAX {
            all.push(kept);
        }
        drop(all);
        if ends {
            self.kept_one.notify_one();
        }
    }

    /// Lets go of connections that nobody needed for a while. Never ends, and sleeps while there
    /// are none.
    pub(super) async fn let_go_of_idle(&self) {
        loop {
            let next = locked(&self.kept).iter().filter_map(|one| one.until).min();
            let Some(next) = next else {
                self.kept_one.notified().await;
                continue;
            };
            tokio::time::sleep_until(next.into()).await;
            let now = Instant::now();
            let is_idle = |one: &mut Kept| one.until.is_some_and(|until| until <= now);
            let idle: Vec<Kept> = locked(&self.kept).extract_if(.., is_idle).collect();
            // Each has a runtime of its own, which must not end within this one.
            let _ = tokio::task::spawn_blocking(move || drop(idle)).await;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(
    common: &Common,
    counter: &Counter,
    steps: Vec<Step>,
    mut committed: Option<Value>,
) -> Served {
    let mut served = Served::default();
    for step in steps {
        let commits = matches!(step, Step::Command(Command::Commit(_)));
        let outcome = match (step, &committed) {
            (Step::Command(Command::Land(wanted)), Some(committed)) => {
                land(common, counter, wanted, committed)
            }
            (Step::Command(command), _) => commands::serve(command, common),
            (Step::Journal(limit), _) => desk::Desk::open(common).and_then(|mut desk| {
                counter.remark(commands::journal::tail(&mut desk, limit)?.trim_end());
                Ok(ExitCode::SUCCESS)
            }),
        };
        if commits {
            committed = counter.first_reply();
        }
        match outcome {
            Ok(code) => served.bad = code != ExitCode::SUCCESS,
            Err(problem) => {
                served.problem = Some(problem);
                break;
            }
        }
    }
    served
}

/// Lands what was committed just before. A commit on a guarded target went to a branch of its own,
/// which is meant then; one on the target itself is where it was to go.
fn land(common: &Common, counter: &Counter, mut wanted: Land, reply: &Value) -> Outcome {
    let committed = reply["branch"].as_str();
    if wanted.branch.is_none() && reply["landing"].is_string() {
        wanted.branch = committed.map(str::to_owned);
    }
    match commands::serve(Command::Land(wanted), common) {
        Err(problem)
            if problem.code == "is_target" && problem.details["target"].as_str() == committed =>
        {
            let target = shown(committed.unwrap_or_default());
            counter.remark(&format!("{target} is the target: nothing is left to land"));
            Ok(ExitCode::SUCCESS)
        }
        outcome => outcome,
    }
}

/// What the caller must be told besides. Answers to acts bring the news with them.
fn news(workspace: &mut Workspace, actor: &Actor, acts: bool) -> String {
    if actor.session.is_none() {
        return String::new();
    }
    let kept = doors::kept_words(&workspace.place, actor);
    if acts {
        return kept;
    }
    let notices = doors::alive(workspace, actor).unwrap_or_default();
    kept + &notices_words(&notices, false)
}

fn several(places: &[Place]) -> Problem {
    let named: Vec<String> = places
        .iter()
        .map(|place| {
            let root = shown(&place.root.display().to_string());
            format!("{} ({root})", place.workspace.id)
        })
        .collect();
    let ids: Vec<&str> = places.iter().map(|place| place.workspace.id.as_str()).collect();
    let named = named.join(", ");
    Problem {
        exit: 1,
        code: "several_workspaces",
        message: format!("this folder is in no workspace, and several are known: {named}"),
        next: "start the server as: baton mcp --workspace ID".to_owned(),
        details: json!({ "workspaces": ids }),
    }
}
