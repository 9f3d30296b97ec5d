//! Making a working tree: written down, made step by step, and taken back if any step fails.
//!
//! Owns the order of the steps. Each is told to whoever looks on; after each a test may let the
//! process die. Invariant (LESSONS 21): when this returns, the tree is there with everything that
//! was asked for, or nothing of it is, and after a death the next call makes it so.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use baton_core::context::{Actor, Observed};
use baton_core::id::TreeId;
use baton_core::refusal::Refusal;
use baton_core::sessions::Session;
use baton_core::tree::{Identity, Rules, Tree};
use baton_core::trees::refused::Refused;
use baton_core::trees::{self, BRANCH_PREFIX, Made, Naming, Plan, Planned};
use baton_core::trust;
use baton_core::view::get;
use baton_core::zones::Policy;

use super::undoing::{default_parent, give_up, repair, undo};
use super::{Clone, Door, Error, answered, carrying, setting_up};
use crate::api::trees as api;
use crate::failure::Failure;
use crate::git::{Git, Oid};
use crate::place::workspace_file::{self, publish};
use crate::place::{Place, TREE_FILE};
use crate::policy;
use crate::whoami::process_of;
use crate::wiring::Record;
use crate::workspace::{Retry, Workspace};

/// Ports are leased from here on: below those that systems give to anybody.
const PORTS_FROM: u16 = 20_000;
const PORTS_LOOKED_AT: u16 = 2_000;
/// In git's own folder of the tree, so that it is never committed.
pub const ENVIRONMENT_FILE: &str = "baton.env";
const PRIVATE: u32 = 0o600;

pub fn new(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::New,
    operation: Option<&str>,
    door: &mut dyn Door,
) -> Result<Made, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "worktree new", wanted));
    if let Some(made) = answered(workspace, actor, retry.as_ref())? {
        return Ok(made);
    }
    let clone = Clone::of(workspace)?;
    repair(workspace, &clone)?;
    let rules = policy::in_force(workspace)?.unwrap_or_default();
    let target = rules.evidence.target.clone();
    let wanted = &set_up_by(workspace, wanted, &rules)?;
    let plan = plan(workspace, actor, &clone, cwd, wanted, &rules.trees, target.as_deref())?;
    let planned = workspace
        .decide(actor, Observed::default(), |view, context| trees::plan(view, &plan, context))?;
    clone.stop_here("tree-planned");
    let tree = planned.tree.clone();
    let session = match &actor.session {
        None => None,
        Some(id) => {
            workspace.look(actor, Observed::default(), |view, _| Ok(get(view, id.as_str())?))?
        }
    };
    let mut maker = Maker { clone: &clone, tree: &tree, place: &workspace.place, session, door };
    let made = maker.make(wanted, &rules.trees, &planned);
    let made = made.and_then(|made| {
        clone.stop_here("tree-set-up");
        workspace.decide_once(
            actor,
            Observed::default(),
            retry.as_ref(),
            |_| true,
            |view, context| trees::finish(view, made, context),
        )
    });
    made.map_err(|first| {
        match undo(&clone, &tree).and_then(|()| {
            clone.stop_here("tree-undone");
            give_up(workspace, &tree, &first.to_string())
        }) {
            Ok(()) => first,
            Err(second) => {
                Error::LeftBehind { first: Box::new(first), second: Box::new(second) }.into()
            }
        }
    })
}

/// What is asked for, with the policy's own setup command where none is given; that one runs only
/// when a person stands for it.
fn set_up_by(
    workspace: &mut Workspace,
    wanted: &api::New,
    policy: &Policy,
) -> Result<api::New, Failure> {
    let mut wanted = wanted.clone();
    if let Some(setup) = trust::setup(policy).filter(|_| wanted.setup.is_empty()) {
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            trust::demand(view, std::slice::from_ref(&setup))
        })?;
        wanted.setup = setup.argv;
    }
    Ok(wanted)
}

/// Looks at everything the plan needs, and refuses what git would refuse half-way.
fn plan(
    workspace: &mut Workspace,
    actor: &Actor,
    clone: &Clone,
    cwd: &Path,
    wanted: &api::New,
    rules: &Rules,
    target: Option<&str>,
) -> Result<Plan, Failure> {
    let Naming { leaf, branch, task } =
        workspace.look(actor, Observed::default(), |view, context| {
            trees::name(view, wanted.task.as_deref(), wanted.name.as_deref(), context)
        })?;
    let (base, commit) = base_of(&clone.git, wanted.base.as_deref(), target)?;
    let taken = |name: String| Refusal::from(Refused::Taken { what: "branch", name, by: None });
    let mut branches = clone.git.branches_below(BRANCH_PREFIX)?.into_iter();
    // On some file systems two names that differ in case are one.
    if let Some(there) = branches.find(|there| trees::exclude_each_other(there, &branch)) {
        let by = clone.records(workspace)?.into_iter().find(|tree| tree.branch == there);
        return Err(match by {
            None => taken(there).into(),
            Some(by) => {
                let by = Some(Box::new(by));
                Refusal::from(Refused::Taken { what: "branch", name: there, by }).into()
            }
        });
    }
    let path = folder_of(clone, cwd, wanted, rules, &leaf)?;
    let machine = &workspace.machine;
    Ok(Plan {
        tree: TreeId(workspace_file::TreeId::fresh()?.as_str().to_owned()),
        host: clone.host.clone(),
        repository: clone.repository(),
        path,
        branch,
        base,
        commit: commit.to_string(),
        task,
        ports: wanted.ports,
        free_ports: if wanted.ports == 0 { Vec::new() } else { free_ports() },
        process: machine.current().map(|identity| process_of(machine, &identity)),
    })
}

/// What it starts from: what is named, else where work lands, else HEAD.
fn base_of(git: &Git, named: Option<&str>, target: Option<&str>) -> Result<(String, Oid), Failure> {
    if let Some(named) = named {
        let found = match named.chars().any(char::is_control) || named.is_empty() {
            true => None,
            false => git.commit_named(named)?,
        };
        let missing = || Error::NoBase { given: named.to_owned() };
        return Ok((named.to_owned(), found.ok_or_else(missing)?));
    }
    if let Some((name, tips)) = git.target(target)?
        && let Some(tip) = tips.into_iter().next()
    {
        return Ok((name, tip));
    }
    let head = git.head()?.ok_or(Error::NoCommit)?;
    Ok(("HEAD".to_owned(), head))
}

/// Where it is to stand: an absolute path, free of links, where nothing is yet.
fn folder_of(
    clone: &Clone,
    cwd: &Path,
    wanted: &api::New,
    rules: &Rules,
    leaf: &str,
) -> Result<String, Failure> {
    let given = match (&wanted.dir, &rules.dir) {
        (Some(dir), _) => cwd.join(dir),
        (None, Some(dir)) => clone.main.join(dir).join(leaf),
        (None, None) => default_parent(&clone.main).join(leaf),
    };
    let bad = |path: &Path, why| Error::BadFolder { path: path.to_owned(), why };
    let name = given.file_name().ok_or_else(|| bad(&given, "it has no name"))?;
    let path = canonical(given.parent().unwrap_or(&given))
        .ok_or_else(|| bad(&given, "its parent cannot be found"))?
        .join(name);
    let text = path.to_str().ok_or_else(|| bad(&path, "its name is not UTF-8"))?;
    if text.chars().any(char::is_control) {
        return Err(bad(&path, "its name has control characters").into());
    }
    if path.starts_with(&clone.dirs.common_dir) && clone.main != clone.dirs.common_dir {
        return Err(bad(&path, "it lies in git's own folder").into());
    }
    if fs::symlink_metadata(&path).is_ok() {
        return Err(Error::FolderThere { path }.into());
    }
    Ok(text.to_owned())
}

/// The path with links resolved as far as it exists; what is missing is kept as it is.
fn canonical(path: &Path) -> Option<PathBuf> {
    for above in path.ancestors() {
        if let Ok(found) = above.canonicalize() {
            let rest = path.strip_prefix(above).ok()?;
            let climbs = rest.components().any(|part| part == std::path::Component::ParentDir);
            return (!climbs).then(|| found.join(rest));
        }
    }
    None
}

/// Ports that nobody listens on just now.
fn free_ports() -> Vec<u16> {
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (PORTS_FROM..PORTS_FROM + PORTS_LOOKED_AT).filter(free).collect()
}

struct Maker<'a, 'd> {
    clone: &'a Clone,
    tree: &'a Tree,
    /// The tree that files are copied from.
    place: &'a Place,
    session: Option<Session>,
    door: &'d mut dyn Door,
}

impl Maker<'_, '_> {
    fn make(
        &mut self,
        wanted: &api::New,
        rules: &Rules,
        planned: &Planned,
    ) -> Result<Made, Failure> {
        let path = Path::new(&self.tree.path);
        self.check_out(path)?;
        let admin = self.clone.admin_of(path, None);
        let admin = admin.ok_or_else(|| self.failed("finding the new tree"))?;
        publish(&admin.join(TREE_FILE), format!("{}\n", self.tree.tree).as_bytes(), PRIVATE)?;
        self.clone.stop_here("tree-named");
        let place = Place::find(path)?;
        if place.root != path || place.store != self.place.store {
            let (path, why) = (path.to_owned(), "it lies in another workspace");
            return Err(Error::BadFolder { path, why }.into());
        }
        let mut remarks = Vec::new();
        let author = self.identity(rules.identity, &mut remarks)?;
        self.clone.stop_here("tree-signed");
        // Wiring that is not committed yet goes along, or the new tree would have no doors.
        let mut listed = rules.copy.clone();
        listed.extend(Record::read(&self.place.store)?.wired_in(&self.place.root));
        let carried = carrying::carry(&self.place.root, path, &admin, &wanted.copy, &listed)?;
        let environment = environment(self.tree);
        let file = admin.join(ENVIRONMENT_FILE);
        let lines = environment
            .iter()
            .map(|(name, value)| format!("export {name}='{}'\n", value.replace('\'', "'\\''")));
        fs::write(&file, lines.collect::<String>()).map_err(super::failed("writing the ports"))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(PRIVATE))
            .map_err(super::failed("writing the ports"))?;
        self.clone.stop_here("tree-carried");
        if !wanted.setup.is_empty() {
            self.door.step("setting up");
            setting_up::run(&wanted.setup, path, &environment, self.door)?;
        }
        if self.door.end_wanted() {
            return Err(Error::Stopped.into());
        }
        Ok(Made {
            tree: self.tree.clone(),
            token: planned.token,
            environment: file.to_string_lossy().into_owned(),
            carried,
            author,
            remarks,
            notices: planned.notices.clone(),
        })
    }

    fn failed(&self, step: &'static str) -> Failure {
        Error::Step { step, why: "git did not say where it is".to_owned() }.into()
    }

    /// Branch, folder and files.
    fn check_out(&mut self, path: &Path) -> Result<(), Failure> {
        let git = Git::in_repository(&self.clone.dirs.common_dir)?;
        let commit = Oid::parse(&self.tree.commit).ok_or(Error::NoCommit)?;
        self.door.step("making the branch");
        let why = format!("baton: tree {}", self.tree.tree);
        git.make_branch(&self.tree.branch, &commit, &why)?;
        self.clone.stop_here("tree-branched");
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(super::failed("making the folder"))?;
        }
        // Not over anything: whoever made it in the meantime keeps it.
        fs::create_dir(path).map_err(super::failed("making the folder"))?;
        self.clone.stop_here("tree-foldered");
        self.door.step("checking out");
        git.add_tree(path, &self.tree.branch)?;
        self.clone.stop_here("tree-added");
        Ok(())
    }

    /// As whom commits are made there.
    fn identity(
        &self,
        wanted: Identity,
        remarks: &mut Vec<String>,
    ) -> Result<Option<String>, Failure> {
        let agent = |session: &&Session| wanted != Identity::Off && !session.person;
        let Some(session) = self.session.as_ref().filter(agent) else {
            return Ok(None);
        };
        let git = Git::in_tree(Path::new(&self.tree.path))?;
        // Such characters would end the name or the line in a commit.
        let plain = |text: &str| {
            let bad = |c: char| c.is_control() || matches!(c, '<' | '>' | ':' | '\\');
            text.chars().filter(|c| !bad(*c)).collect::<String>()
        };
        let name = plain(&session.name);
        let email = format!("{}@baton.invalid", trees::slug(&session.name));
        let agent = format!("{name} <{email}>");
        let person = match (git.setting("user.name")?, git.setting("user.email")?) {
            (Some(name), Some(email)) => Some(format!("{} <{}>", plain(&name), plain(&email))),
            _ => None,
        };
        let mut values: Vec<(&str, &str)> = Vec::new();
        let author = match (wanted, &person) {
            (Identity::Person, Some(person)) => {
                values.push(("baton.coAuthor", &agent));
                person.clone()
            }
            (_, person) => {
                values.extend([("user.name", name.as_str()), ("user.email", &email)]);
                values.extend(person.as_ref().map(|person| ("baton.coAuthor", person.as_str())));
                agent.clone()
            }
        };
        match git.set_for_tree(&values)? {
            true => Ok(Some(author)),
            false => {
                let remark = "commits are made as everywhere: the repository is bare, so a tree \
                              cannot have settings of its own";
                remarks.push(remark.to_owned());
                Ok(None)
            }
        }
    }
}

/// What whoever works in the tree may want to know of it.
pub(crate) fn environment(tree: &Tree) -> Vec<(String, String)> {
    let mut values = vec![
        ("BATON_TREE".to_owned(), tree.tree.to_string()),
        ("BATON_BRANCH".to_owned(), tree.branch.clone()),
    ];
    values.extend(tree.task.iter().map(|task| ("BATON_TASK".to_owned(), task.to_string())));
    if let Some(first) = tree.ports.first() {
        let all: Vec<String> = tree.ports.iter().map(u16::to_string).collect();
        values.push(("PORT".to_owned(), first.to_string()));
        values.push(("BATON_PORTS".to_owned(), all.join(" ")));
    }
    values
}
