//! Interfaces: files that others build on, with one keeper who may change them.
//!
//! Owns the record, who may change what is in one, and who is told of a change. Invariants: while
//! its owner is there nobody else gets an exclusive claim or an edit of its files; a change is
//! written down in one decision with the notices of it, and never told to whoever made it; of
//! changes that a session was not told of yet it hears once, what they come to together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim, Hold, Holder, Mode, Scope, resource_entries};
use crate::context::Context;
use crate::event::Event;
use crate::id::{Fresh, NoticeId, SessionId, TreeId};
use crate::key::Key;
use crate::notices::{News, Notice};
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::roles::{self, Deed};
use crate::scene::{Caller, Scene};
use crate::sessions::{GRACE, Life, Session};
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Query, Record, View, get, only, scan};

pub use surface::{FileChange, Resigned};
pub use telling::{Seen, SeenFile, changed};

pub mod refused;
mod surface;
mod telling;

use refused::{Refused, What};

/// All interfaces, by name.
pub const ALL: Index = "interface.all";

pub const INTERFACES_MAX: u32 = 1_000;
pub const FILES_MAX: usize = 100;
pub const USERS_MAX: usize = 500;
/// How many of the last changes are kept with it; the journal has all.
const CHANGES_KEPT: usize = 5;
/// How many names are proposed for one that is not known.
const NEAR_MAX: usize = 3;
/// An owner that lives by its process alone and has not been heard of for so long is gone.
const SILENCE_MAX: Span = Span::hours(24);
/// Records at one place of the index.
const AT_ONE_PLACE_MAX: u32 = 256;

/// What others build on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    pub name: Key,
    pub files: Vec<Resource>,
    pub owner: Holder,
    /// Since when that is its owner.
    pub since: Moment,
    pub added_at: Moment,
    /// Who said that it builds on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<Holder>,
    /// Its files as they were when a change was last told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<Known>,
    /// The last changes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// A file as everybody was told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Known {
    pub path: Resource,
    /// Where it was seen so; empty for the branch where work lands.
    pub tree: TreeId,
    /// A hash of its text.
    pub mark: String,
}

/// One change of what others build on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    pub by: Holder,
    pub at: Moment,
    pub files: Vec<FileChange>,
}

/// What is written down of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    pub name: Key,
    pub change: Change,
    pub known: Vec<Known>,
    /// Users that have ended and do not come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<SessionId>,
}

impl Record for Interface {
    const KIND: Kind = "interface";

    fn key(&self) -> String {
        self.name.as_str().to_owned()
    }

    /// Beside the claims, where every look for a path comes by: no look needs a further one.
    fn index_entries(&self) -> Vec<(Index, String)> {
        let mut entries = resource_entries(claim::BY_RESOURCE, &self.files);
        entries.push((ALL, self.key()));
        entries
    }
}

impl Interface {
    /// What everybody was told of this file.
    pub fn known(&self, path: &Resource) -> Option<&Known> {
        self.known.iter().find(|one| one.path == *path)
    }

    /// Is this session's word on it good?
    fn is_owned_by(&self, session: &SessionId) -> bool {
        self.owner.session == *session
    }

    fn held(&self, asked: &Resource, file: &Resource) -> Held {
        let (interface, owner) = (Some(self.name.clone()), self.owner.clone());
        Held { interface, ..Held::new(asked.clone(), file.clone(), owner, self.since) }
    }

    pub(crate) fn follow(&mut self, changed: &Changed) {
        for now in &changed.known {
            self.known.retain(|one| one.path != now.path);
            self.known.push(now.clone());
        }
        self.changes.push(changed.change.clone());
        let surplus = self.changes.len().saturating_sub(CHANGES_KEPT);
        self.changes.drain(..surplus);
        self.users.retain(|user| !changed.gone.contains(&user.session));
    }
}

/// Every interface, by name.
pub fn all(view: &dyn View) -> Result<Vec<Interface>, Refusal> {
    let until = "\u{10ffff}".to_owned();
    let limit = INTERFACES_MAX;
    Ok(scan(view, Query::Scan { index: ALL, from: String::new(), until, after: None, limit })?)
}

/// The interfaces that have one of these files.
pub fn of_files(view: &dyn View, files: &[Resource]) -> Result<Vec<Interface>, Refusal> {
    let values: Vec<String> = files.iter().map(Resource::index_value).collect();
    let at = |value: &String| Query::equal(claim::BY_RESOURCE, value, AT_ONE_PLACE_MAX);
    let queries: Vec<Query> = values.iter().map(at).collect();
    let mut found: Vec<Interface> = Vec::new();
    for rows in view.read(&queries)? {
        for interface in only::<Interface>(&rows)? {
            if !found.iter().any(|one| one.name == interface.name) {
                found.push(interface);
            }
        }
    }
    Ok(found)
}

/// The interface of this name, or those that were perhaps meant.
pub fn named(view: &dyn View, given: &str) -> Result<Interface, Refusal> {
    let name = name_of(given)?;
    if let Some(found) = get::<Interface>(view, name.as_str())? {
        return Ok(found);
    }
    let known: Vec<Key> = all(view)?.into_iter().map(|one| one.name).collect();
    let near = name.near(&known, NEAR_MAX);
    Err(Refused::Unknown { given: given.to_owned(), near }.into())
}

fn name_of(given: &str) -> Result<Key, Refusal> {
    let bad = |source| Refused::BadName { given: given.to_owned(), source }.into();
    given.parse().map_err(bad)
}

/// Is its owner still there to be asked?
pub fn is_kept(view: &dyn View, interface: &Interface, context: &Context) -> Result<bool, Refusal> {
    let owner = get::<Session>(view, interface.owner.session.as_str())?;
    Ok(owner.is_some_and(|owner| is_there(&owner, context)))
}

fn is_there(session: &Session, context: &Context) -> bool {
    match session.life {
        Life::Ended { grace_until, .. } => grace_until.is_some_and(|until| context.now < until),
        // One that nobody can see die is gone when it is silent for long.
        Life::Live => {
            let patience = if session.process.is_some() { SILENCE_MAX } else { GRACE };
            let busy = session.busy_until(context.now).is_some();
            busy || context.now < session.expires_at + patience
        }
    }
}

/// What others keep of the paths in a hold. Nothing is read unless there is such a thing.
pub(crate) fn in_the_way(
    view: &dyn View,
    scene: &Scene,
    hold: &Hold,
    context: &Context,
) -> Result<Vec<Held>, Refusal> {
    let mut held = Vec::new();
    for (interface, asked, file) in reached(scene, &hold.resources) {
        if !interface.is_owned_by(&hold.holder.session) && is_kept(view, interface, context)? {
            held.push(interface.held(asked, file));
        }
    }
    Ok(held)
}

/// The interfaces that these resources reach into, with what does.
pub(crate) fn reached<'a>(
    scene: &'a Scene,
    resources: &'a [Resource],
) -> impl Iterator<Item = (&'a Interface, &'a Resource, &'a Resource)> {
    scene.interfaces.iter().filter_map(|interface| {
        resources.iter().find_map(|asked| {
            let file = interface.files.iter().find(|file| file.overlaps(asked))?;
            Some((interface, asked, file))
        })
    })
}

/// Who has just been granted a file of an interface whose owner is gone keeps it from now on.
pub(crate) fn inherit(
    view: &dyn View,
    scene: &Scene,
    claim: &Claim,
    context: &Context,
) -> Result<Vec<Event>, Refusal> {
    if claim.hold.mode == Mode::Shared {
        return Ok(Vec::new());
    }
    let mut events = Vec::new();
    let to = Holder { agent: None, ..claim.hold.holder.clone() };
    for (interface, ..) in reached(scene, &claim.hold.resources) {
        if !interface.is_owned_by(&to.session) && !is_kept(view, interface, context)? {
            let (name, from, at) = (interface.name.clone(), interface.owner.clone(), context.now);
            let given = Given { name, from, to: to.clone(), at, by: None };
            events.push(Event::InterfaceGiven { given });
        }
    }
    Ok(events)
}

/// The interfaces that are handed on by these events.
pub(crate) fn names_of(events: &[Event]) -> Vec<Key> {
    let name = |event: &Event| match event {
        Event::InterfaceGiven { given } => Some(given.name.clone()),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

/// Somebody else keeps an interface from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Given {
    pub name: Key,
    pub from: Holder,
    pub to: Holder,
    pub at: Moment,
    /// Who said so; nobody when its owner was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Holder>,
}

/// An interface as it is after a request about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    #[serde(flatten)]
    pub interface: Interface,
    /// It was so already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Files that others build on, as they are now.
#[derive(Clone, Debug)]
pub struct Add {
    pub name: String,
    pub files: Vec<Known>,
}

/// Marks files as what others build on; the caller keeps them.
pub fn add(
    view: &dyn View,
    request: &Add,
    context: &Context,
) -> Result<(Vec<Event>, Told), Refusal> {
    let name = name_of(&request.name)?;
    let mut known = request.files.clone();
    known.sort_by(|one, two| one.path.cmp(&two.path));
    known.dedup_by(|one, two| one.path == two.path);
    let files: Vec<Resource> = known.iter().map(|one| one.path.clone()).collect();
    if files.is_empty() {
        return Err(Refusal::Empty);
    }
    if files.len() > FILES_MAX {
        return Err(Refused::TooMany { what: What::Files, max: FILES_MAX }.into());
    }
    let literal = |one: &&Resource| !matches!(one, Resource::Path(path) if path.is_literal());
    if let Some(path) = files.iter().find(literal) {
        return Err(Refused::NotAFile { path: path.clone() }.into());
    }
    let scene = Scene::read(view, &files, context)?;
    let caller = scene.caller.as_ref().ok_or(Refusal::NoSession)?;
    if let Some(there) = get::<Interface>(view, name.as_str())? {
        return again(there, &files, caller, context);
    }
    // Who may not change a file would close it to everybody.
    let deeds: Vec<Deed<'_>> = files.iter().map(Deed::Write).collect();
    roles::admit(view, &caller.session, &deeds, context)?;
    if all(view)?.len() >= INTERFACES_MAX as usize {
        let max = INTERFACES_MAX as usize;
        return Err(Refused::TooMany { what: What::Interfaces, max }.into());
    }
    if let Some((other, path, _)) = reached(&scene, &files).next() {
        let (path, name, owner) = (path.clone(), other.name.clone(), other.owner.clone());
        return Err(Refused::FileTaken { path, name, owner }.into());
    }
    let owner = Holder { agent: None, ..caller.holder(context) };
    held_by_others(&scene, caller, &files, context)?;
    let (since, added_at) = (context.now, context.now);
    let (users, changes) = (Vec::new(), Vec::new());
    let interface = Interface { name, files, owner, since, added_at, users, known, changes };
    let mut events = vec![Event::InterfaceAdded { interface: interface.clone() }];
    events.extend(caller.activity(context, &[]));
    Ok((events, Told { interface, already: false, notices: caller.notices.clone() }))
}

/// The name is taken: by the very same, or by something else.
fn again(
    there: Interface,
    files: &[Resource],
    caller: &Caller,
    context: &Context,
) -> Result<(Vec<Event>, Told), Refusal> {
    if there.is_owned_by(&caller.session.session) && there.files == files {
        let notices = caller.notices.clone();
        let told = Told { interface: there, already: true, notices };
        return Ok((caller.activity(context, &[]), told));
    }
    Err(Refused::Taken { name: there.name, owner: there.owner }.into())
}

/// Nobody becomes the keeper of what another is changing.
fn held_by_others(
    scene: &Scene,
    caller: &Caller,
    files: &[Resource],
    context: &Context,
) -> Result<(), Refusal> {
    let hold = Hold {
        holder: Holder { agent: None, ..caller.holder(context) },
        tree: caller.session.tree.clone(),
        scope: Scope::Workspace,
        mode: Mode::Exclusive,
        resources: files.to_vec(),
    };
    let others = scene
        .claims
        .iter()
        .filter(|claim| claim.hold.mode == Mode::Exclusive && claim.is_live(context));
    for claim in others {
        if let Some((asked, held)) = scene.clash(&hold, &claim.hold) {
            return Err(Refusal::Held(Box::new(Held::by_claim(claim, asked, held, false))));
        }
    }
    Ok(())
}

/// The caller builds on it and is told of every change from now on.
pub fn use_it(
    view: &dyn View,
    given: &str,
    context: &Context,
) -> Result<(Vec<Event>, Told), Refusal> {
    let mut interface = named(view, given)?;
    let caller = Caller::read(view, context)?;
    let user = Holder { agent: None, ..caller.holder(context) };
    let already = interface.users.iter().any(|one| one.session == user.session);
    let mut events = Vec::new();
    if !already {
        if interface.users.len() >= USERS_MAX {
            return Err(Refused::TooMany { what: What::Users, max: USERS_MAX }.into());
        }
        let name = interface.name.clone();
        events.push(Event::InterfaceUsed { name, user: user.clone() });
        interface.users.push(user);
    }
    events.extend(caller.activity(context, &[]));
    Ok((events, Told { interface, already, notices: caller.notices }))
}

/// Who may say what becomes of it: its owner, or a person.
fn entitled(
    view: &dyn View,
    interface: &Interface,
    context: &Context,
) -> Result<(Holder, Option<Caller>), Refusal> {
    let caller = match &context.actor.session {
        None if context.actor.person => return Ok((Holder::person(), None)),
        _ => Caller::read(view, context)?,
    };
    if !interface.is_owned_by(&caller.session.session) && !context.actor.person {
        let (name, owner) = (interface.name.clone(), interface.owner.clone());
        return Err(Refused::NotYours { name, owner }.into());
    }
    Ok((Holder { agent: None, ..caller.holder(context) }, Some(caller)))
}

fn answered(
    mut events: Vec<Event>,
    interface: Interface,
    already: bool,
    caller: Option<&Caller>,
    context: &Context,
) -> (Vec<Event>, Told) {
    events.extend(caller.map(|caller| caller.activity(context, &[])).unwrap_or_default());
    let notices = caller.map(|caller| caller.notices.clone()).unwrap_or_default();
    (events, Told { interface, already, notices })
}

/// It is an interface no longer; the files stay.
pub fn remove(
    view: &dyn View,
    given: &str,
    context: &Context,
) -> Result<(Vec<Event>, Told), Refusal> {
    let interface = named(view, given)?;
    let (by, caller) = entitled(view, &interface, context)?;
    let events = vec![Event::InterfaceRemoved { name: interface.name.clone(), by }];
    Ok(answered(events, interface, false, caller.as_ref(), context))
}

/// Another session keeps it from now on, and is told.
pub fn give(
    view: &dyn View,
    given: &str,
    to: &SessionId,
    context: &Context,
) -> Result<(Vec<Event>, Told), Refusal> {
    let mut interface = named(view, given)?;
    let (by, caller) = entitled(view, &interface, context)?;
    let Some(next) = get::<Session>(view, to.as_str())? else {
        return Err(Refusal::UnknownSession { session: to.0.clone() });
    };
    if let Life::Ended { at, .. } = next.life {
        return Err(Refusal::SessionEnded { session: next.session, name: next.name, at });
    }
    let to = Holder { session: next.session, name: next.name, agent: None };
    if interface.is_owned_by(&to.session) {
        return Ok(answered(Vec::new(), interface, true, caller.as_ref(), context));
    }
    let (name, from, at) = (interface.name.clone(), interface.owner.clone(), context.now);
    let given = Given { name: name.clone(), from, to: to.clone(), at, by: Some(by.clone()) };
    let mut events = vec![Event::InterfaceGiven { given }];
    if to.session != by.session {
        let news = News::InterfaceGiven { interface: name, by };
        events.push(notice(&to.session, news, 0, context));
    }
    interface.owner = to;
    interface.since = context.now;
    Ok(answered(events, interface, false, caller.as_ref(), context))
}

fn notice(to: &SessionId, news: News, ordinal: usize, context: &Context) -> Event {
    let fresh = Fresh(*blake3::keyed_hash(&context.fresh.0, b"interface").as_bytes());
    let notice = NoticeId::fresh(&fresh, u32::try_from(ordinal).unwrap_or(u32::MAX));
    Event::NoticeSent {
        notice: Notice { notice, to: to.clone(), agent: None, at: context.now, news },
    }
}
