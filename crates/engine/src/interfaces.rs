//! Interfaces in an open workspace: what others build on, and what became of it.
//!
//! Owns the look at the files, made before any decision, and the copies by which a change is told.
//! A file is looked at where somebody has just changed it: after an edit, a shell command, a
//! commit, a landing, a pull. In a tree where it was not told of last it is compared with that
//! tree's own last commit too, so that an older text elsewhere is not taken for a change.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use baton_core::claim::Holder;
use baton_core::context::{Actor, Observed};
use baton_core::id::{SessionId, TreeId};
use baton_core::interfaces::refused::Refused;
use baton_core::interfaces::{self, Add, FileChange, Interface, Known, Seen, SeenFile, Told};
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::sessions::{self as rules, Session};
use baton_core::view::{Query, get, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::interfaces as api;
use crate::conflicts::{Changes, symbols};
use crate::doors::reads::{self, mark};
use crate::doors::texts::Texts;
use crate::failure::Failure;
use crate::git::{Git, Landed, Oid};
use crate::policy;
use crate::resources::{literal, meant_path, path_on_disk};
use crate::sighting::bury;
use crate::workspace::{Retry, Workspace};
use crate::{sessions, sighting};

/// Larger files are not read for this.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How many live sessions are asked what they have read.
const READERS_MAX: u32 = 1_000;

/// A file of an interface, as it is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownFile {
    pub path: Resource,
    /// Its functions that others can use, with their parameters; nothing of a language that is not
    /// known here.
    pub functions: Vec<String>,
    /// It is not in this tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    #[serde(flatten)]
    pub interface: Interface,
    /// Its owner is still there; otherwise whoever claims one of its files first keeps it.
    pub kept: bool,
    pub surface: Vec<ShownFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interfaces {
    /// By name.
    pub interfaces: Vec<Interface>,
}

pub fn add(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Add,
    operation: Option<&str>,
) -> Result<Told, Failure> {
    let mut files = Vec::new();
    let copies = Texts::of_interfaces(&workspace.place);
    let in_use = copies.in_use();
    for word in &wanted.files {
        for path in literal(&workspace.place, cwd, word.as_ref())? {
            let text = match is_file(workspace, &path)? {
                true => text_here(workspace, &path).unwrap_or_default(),
                false => return Err(refuse(Refused::Missing { path })),
            };
            let (tree, mark) = (workspace.tree.clone(), mark(text.as_bytes()));
            copies.keep(&mark, text.as_bytes());
            files.push(Known { path, tree, mark });
        }
    }
    let request = Add { name: wanted.name.clone(), files };
    let retry = operation.map(|operation| Retry::of(operation, "interface add", wanted));
    let tries = |workspace: &mut Workspace| {
        workspace.decide_once(
            actor,
            Observed::default(),
            retry.as_ref(),
            |_| true,
            |view, context| interfaces::add(view, &request, context),
        )
    };
    let answer = tries(workspace);
    // Whoever is visibly dead changes nothing any more.
    let answer = match answer.as_ref().err().map(sighting::in_the_way) {
        Some(held) if !held.is_empty() && bury(workspace, &held[0].holder.session)? => {
            tries(workspace)
        }
        _ => answer,
    };
    drop(in_use);
    sweep(workspace);
    answer
}

/// Removes copies that no interface refers to any more. Whatever keeps that from being done, the
/// next change does it.
fn sweep(workspace: &mut Workspace) {
    let copies = Texts::of_interfaces(&workspace.place);
    let _ = copies.sweep(|| {
        let all = list(workspace)?.interfaces.into_iter();
        let marks = all.flat_map(|interface| interface.known).map(|known| known.mark);
        Ok::<_, Failure>(marks.collect())
    });
}

/// A folder is no file, and what is neither is not there.
fn is_file(workspace: &Workspace, path: &Resource) -> Result<bool, Failure> {
    let on_disk = path_on_disk(&workspace.place.root, path);
    match on_disk.and_then(|file| std::fs::metadata(file).ok()) {
        Some(found) if !found.is_file() => Err(refuse(Refused::NotAFile { path: path.clone() })),
        found => Ok(found.is_some()),
    }
}

fn refuse(refused: Refused) -> Failure {
    Failure::Refused(Refusal::from(refused))
}

pub fn use_it(
    workspace: &mut Workspace,
    actor: &Actor,
    name: &str,
    operation: Option<&str>,
) -> Result<Told, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "interface use", &name));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| interfaces::use_it(view, name, context),
    )
}

pub fn remove(
    workspace: &mut Workspace,
    actor: &Actor,
    name: &str,
    operation: Option<&str>,
) -> Result<Told, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "interface remove", &name));
    let answer = workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| interfaces::remove(view, name, context),
    )?;
    sweep(workspace);
    Ok(answer)
}

pub fn give(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Give,
    operation: Option<&str>,
) -> Result<Told, Failure> {
    let to = sessions::find(workspace, &wanted.to)?.session;
    let retry = operation.map(|operation| Retry::of(operation, "interface give", wanted));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| interfaces::give(view, &wanted.name, &to, context),
    )
}

pub fn list(workspace: &mut Workspace) -> Result<Interfaces, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok(Interfaces { interfaces: interfaces::all(view)? })
    })
}

pub fn show(workspace: &mut Workspace, name: &str) -> Result<Shown, Failure> {
    let rule = |view: &dyn baton_core::view::View, context: &_| {
        let interface = interfaces::named(view, name)?;
        let kept = interfaces::is_kept(view, &interface, context)?;
        Ok((interface, kept))
    };
    let (interface, kept) = workspace.look(&Actor::default(), Observed::default(), rule)?;
    let shown = |path: &Resource| {
        let text = text_here(workspace, path);
        let functions = text.as_deref().and_then(|text| symbols::surface(&path.to_string(), text));
        let functions = functions.unwrap_or_default();
        ShownFile { path: path.clone(), functions, missing: text.is_none() }
    };
    let surface = interface.files.iter().map(shown).collect();
    Ok(Shown { interface, kept, surface })
}

/// The file as it is in this tree; nothing when it is not there.
fn text_here(workspace: &Workspace, path: &Resource) -> Option<String> {
    let file = path_on_disk(&workspace.place.root, path)?;
    let found = std::fs::metadata(&file).ok()?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return None;
    }
    Some(String::from_utf8_lossy(&std::fs::read(&file).ok()?).into_owned())
}

/// The actor has just changed these, as a client spells them; what lies in this tree is looked at.
pub fn edited(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    paths: &[String],
) -> Result<(), Failure> {
    let place = &workspace.place;
    let files: Vec<Resource> =
        paths.iter().flat_map(|path| meant_path(place, cwd, path).here).collect();
    look(workspace, actor, &files)
}

/// The actor has just changed these: whoever builds on one of them is told what is different.
pub fn look(workspace: &mut Workspace, actor: &Actor, files: &[Resource]) -> Result<(), Failure> {
    let concerned = concerned(workspace, files)?;
    let in_use = in_use(workspace, &concerned);
    let mut seen = Vec::new();
    for (interface, path) in &concerned {
        let after = text_here(workspace, path);
        let known = interface.known(path);
        let tree = workspace.tree.clone();
        let own = known.is_some_and(|known| known.tree == tree);
        // Where everybody knows it from another tree, this one's own last commit is what it was.
        let before = match own {
            true => None,
            false => in_commit(workspace, "HEAD", path),
        };
        let compared = Compared { path, known, before, after, tree };
        seen.extend(compared.seen(workspace, interface, None));
    }
    tell(workspace, actor, &seen, in_use)
}

/// The branch where work lands has moved. `by` says whose change of a file that was.
pub fn landed(
    workspace: &mut Workspace,
    actor: &Actor,
    git: &Git,
    (from, to): (&Oid, &Oid),
    by: &dyn Fn(&str) -> Option<Holder>,
) -> Result<(), Failure> {
    let concerned = concerned_between(workspace, git, (from, to))?;
    let tree = TreeId(String::new());
    came_in(workspace, actor, git, (from, to), &concerned, &tree, by)
}

/// What a tree was brought up to date with.
#[derive(Debug)]
pub struct Pull<'a> {
    pub branch: &'a str,
    /// Where it stood, and stands now.
    pub moved: (&'a Oid, &'a Oid),
    /// What was at the remote.
    pub tip: &'a Oid,
}

/// This tree was brought up to date. Whoever did that changed nothing: whose changes came in is
/// what git says of them.
pub fn pulled(
    workspace: &mut Workspace,
    actor: &Actor,
    git: &Git,
    pull: &Pull<'_>,
) -> Result<(), Failure> {
    let (from, to) = pull.moved;
    let mut concerned = concerned_between(workspace, git, (from, to))?;
    if concerned.is_empty() {
        return Ok(());
    }
    // Of what has landed here everybody was told, and of what is before that too.
    if has_landed(workspace, git, pull)? {
        let landed = |known: &Known| known.tree.0.is_empty();
        concerned.retain(|(interface, path)| !interface.known(path).is_some_and(landed));
    }
    let mut authors = BTreeMap::new();
    for (_, path) in &concerned {
        let Resource::Path(pattern) = path else { continue };
        if let Some(last) = git.landed(from, pull.tip, pattern.text())?.into_iter().next() {
            authors.insert(pattern.text().to_owned(), author_of(workspace, last)?);
        }
    }
    let by = |path: &str| authors.get(path).cloned();
    let tree = workspace.tree.clone();
    came_in(workspace, actor, git, (from, to), &concerned, &tree, &by)
}

/// Does the branch where work lands have all of it, and is it another one?
fn has_landed(workspace: &mut Workspace, git: &Git, pull: &Pull<'_>) -> Result<bool, Failure> {
    let policy = policy::in_force(workspace)?.unwrap_or_default();
    let Some((target, _)) = git.target(policy.evidence.target.as_deref())? else {
        return Ok(false);
    };
    if pull.branch.strip_prefix("refs/heads/").unwrap_or(pull.branch) == target {
        return Ok(false);
    }
    match git.branch(&target)? {
        Some(tip) => Ok(git.is_ancestor(pull.moved.1, &tip)?),
        None => Ok(false),
    }
}

/// The session that made a commit, where it is one of ours; else whom git names.
fn author_of(workspace: &mut Workspace, commit: Landed) -> Result<Holder, Failure> {
    let id = commit.session.unwrap_or_default();
    let session: Option<Session> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| Ok(get(view, &id)?))?;
    Ok(match session {
        Some(session) => Holder { session: session.session, name: session.name, agent: None },
        None => Holder { session: SessionId(String::new()), name: commit.author, agent: None },
    })
}

/// The files of interfaces that differ between two commits; where there is no interface git is not
/// asked.
fn concerned_between(
    workspace: &mut Workspace,
    git: &Git,
    (from, to): (&Oid, &Oid),
) -> Result<Vec<(Interface, Resource)>, Failure> {
    if list(workspace)?.interfaces.is_empty() {
        return Ok(Vec::new());
    }
    let changed = git.changed_between(from, to)?;
    let files: Vec<Resource> =
        changed.iter().filter_map(|path| Resource::literal(path).ok()).collect();
    concerned(workspace, &files)
}

/// Looks at these as they were in one commit and are in another.
fn came_in(
    workspace: &mut Workspace,
    actor: &Actor,
    git: &Git,
    (from, to): (&Oid, &Oid),
    concerned: &[(Interface, Resource)],
    tree: &TreeId,
    by: &dyn Fn(&str) -> Option<Holder>,
) -> Result<(), Failure> {
    let in_use = in_use(workspace, concerned);
    let mut seen = Vec::new();
    for (interface, path) in concerned {
        let Resource::Path(pattern) = path else { continue };
        let text = |commit: &Oid| -> Result<Option<String>, Failure> {
            let bytes = git.content(commit.as_str(), pattern.text())?;
            Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        };
        let compared = Compared {
            path,
            known: interface.known(path),
            before: Some(text(from)?.unwrap_or_default()),
            after: text(to)?,
            tree: tree.clone(),
        };
        seen.extend(compared.seen(workspace, interface, by(pattern.text())));
    }
    tell(workspace, actor, &seen, in_use)
}

/// The copies are not swept while one may be made for these.
fn in_use(workspace: &Workspace, concerned: &[(Interface, Resource)]) -> Option<File> {
    if concerned.is_empty() {
        return None;
    }
    Texts::of_interfaces(&workspace.place).in_use()
}

/// Which of these files belong to which interface. One read, and nothing more where there is none.
fn concerned(
    workspace: &mut Workspace,
    files: &[Resource],
) -> Result<Vec<(Interface, Resource)>, Failure> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let found = workspace.look(&Actor::default(), Observed::default(), |view, _| {
        interfaces::of_files(view, files)
    })?;
    let mut concerned = Vec::new();
    for interface in found {
        let own = interface.files.iter().filter(|own| files.iter().any(|one| one.overlaps(own)));
        concerned.extend(own.cloned().map(|path| (interface.clone(), path)));
    }
    Ok(concerned)
}

fn in_commit(workspace: &Workspace, commit: &str, path: &Resource) -> Option<String> {
    workspace.place.git.as_ref()?;
    let Resource::Path(pattern) = path else { return None };
    let git = Git::in_tree(&workspace.place.root).ok()?;
    let bytes = git.content(commit, pattern.text()).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// One file, and what it is compared with.
struct Compared<'a> {
    path: &'a Resource,
    known: Option<&'a Known>,
    /// What it was here, where that is not what everybody was told of.
    before: Option<String>,
    after: Option<String>,
    tree: TreeId,
}

impl Compared<'_> {
    /// What others must hear of, if anything.
    fn seen(self, workspace: &mut Workspace, of: &Interface, by: Option<Holder>) -> Option<Seen> {
        let copies = Texts::of_interfaces(&workspace.place);
        let after = self.after.clone().unwrap_or_default();
        let mark = mark(after.as_bytes());
        if self.known.is_some_and(|known| known.mark == mark) {
            return None;
        }
        let told = self.known.and_then(|known| copies.get(&known.mark));
        // A copy may be gone, or lie on another machine: the last commit is the next best.
        let told = told.or_else(|| in_commit(workspace, "HEAD", self.path));
        let since_told = told.as_deref().map(|told| self.change(told, &after));
        let change = match (&self.before, since_told) {
            // Nobody knows what it was: that it changed is all that can be said.
            (None, None) => FileChange { lines: Some(0), ..self.change(&after, &after) },
            (None, Some(change)) => change,
            (Some(before), None) => self.change(before, &after),
            (Some(_), Some(told)) if told.is_empty() => return None,
            (Some(before), Some(_)) => self.change(before, &after),
        };
        if change.is_empty() {
            return None;
        }
        copies.keep(&mark, after.as_bytes());
        let now = Known { path: self.path.clone(), tree: self.tree, mark };
        let known = self.known.map(|known| known.mark.clone());
        let readers = readers(workspace, self.path, &now.mark).unwrap_or_default();
        let files = vec![SeenFile { change: change.cut(), known, now }];
        Some(Seen { name: of.name.clone(), files, readers, by })
    }

    /// What is different at the surface. What functions do inside is nobody else's business.
    fn change(&self, before: &str, after: &str) -> FileChange {
        let path = self.path.to_string();
        let Changes { added, removed, resigned, .. } = Changes::outside(&path, before, after);
        let lines = symbols::lines_outside(&path, before, after);
        FileChange {
            path: self.path.clone(),
            added,
            removed,
            resigned,
            lines: u32::try_from(lines).ok().filter(|lines| *lines > 0),
            deleted: self.after.is_none(),
            more: 0,
        }
    }
}

/// Live sessions that have read the file, and not as it is now.
fn readers(
    workspace: &mut Workspace,
    path: &Resource,
    now: &str,
) -> Result<Vec<SessionId>, Failure> {
    let Resource::Path(pattern) = path else { return Ok(Vec::new()) };
    let live: Vec<Session> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(scan(view, Query::equal(rules::BY_LIFE, "live", READERS_MAX))?)
        })?;
    let has_read = |session: &Session| {
        let known = reads::known_mark(&workspace.place, &session.session, pattern.text());
        known.is_some_and(|known| known != now)
    };
    Ok(live.into_iter().filter(has_read).map(|session| session.session).collect())
}

/// Tells those whom it concerns; until then the copies are `in_use`.
fn tell(
    workspace: &mut Workspace,
    actor: &Actor,
    seen: &[Seen],
    in_use: Option<File>,
) -> Result<(), Failure> {
    if seen.is_empty() {
        return Ok(());
    }
    // Files of one interface that changed together are told together.
    let mut whole: Vec<Seen> = Vec::new();
    for one in seen {
        match whole.iter_mut().find(|all| all.name == one.name && all.by == one.by) {
            Some(all) => {
                all.files.extend(one.files.iter().cloned());
                all.readers.extend(one.readers.iter().cloned());
            }
            None => whole.push(one.clone()),
        }
    }
    workspace.decide(actor, Observed::default(), |view, context| {
        interfaces::changed(view, &whole, context)
    })?;
    drop(in_use);
    sweep(workspace);
    Ok(())
}
