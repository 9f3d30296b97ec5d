//! A change of what others build on: who is told, and what.
//!
//! Owns the one decision that writes it down together with the notices of it. Invariants: whoever
//! made the change is not told; a session that was not told of an earlier one yet hears once, what
//! they come to together; what two saw is told once.

use super::{Change, Changed, FileChange, Interface, Known, notice};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::id::SessionId;
use crate::key::Key;
use crate::notices::{self, News, Notice};
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::sessions::{Life, Session};
use crate::view::{Query, View, get, only, parse};

/// How many sessions are told of one change.
const TOLD_MAX: usize = 1_000;

/// What somebody saw changed in the files of one interface.
#[derive(Clone, Debug)]
pub struct Seen {
    pub name: Key,
    pub files: Vec<SeenFile>,
    /// Sessions that have read one of them as it was.
    pub readers: Vec<SessionId>,
    /// Who changed it; the caller when nobody is named.
    pub by: Option<Holder>,
}

#[derive(Clone, Debug)]
pub struct SeenFile {
    pub change: FileChange,
    /// The mark that it was compared with, as far as everybody knew it.
    pub known: Option<String>,
    pub now: Known,
}

/// Writes down that what others build on has changed, and tells them. What was told meanwhile by
/// somebody who saw the same is not told again.
pub fn changed(
    view: &dyn View,
    seen: &[Seen],
    context: &Context,
) -> Result<(Vec<Event>, usize), Refusal> {
    let mut events = Vec::new();
    let mut told = 0;
    for one in seen {
        let Some(interface) = get::<Interface>(view, one.name.as_str())? else { continue };
        let news = |file: &&SeenFile| {
            let known = interface.known(&file.now.path).map(|known| &known.mark);
            interface.files.contains(&file.now.path) && known == file.known.as_ref()
        };
        let files: Vec<&SeenFile> = one.files.iter().filter(news).collect();
        if files.is_empty() {
            continue;
        }
        let by = match (&one.by, context.actor.session.is_some()) {
            (Some(by), _) => by.clone(),
            (None, true) => Caller::read(view, context)?.holder(context),
            (None, false) => Holder::person(),
        };
        let changes: Vec<FileChange> = files.iter().map(|file| file.change.clone()).collect();
        let concerned = concerned(view, &interface, &one.readers, &by, context)?;
        told += concerned.there.len();
        let change = Change { by: by.clone(), at: context.now, files: changes };
        let known = files.iter().map(|file| file.now.clone()).collect();
        let (name, gone) = (interface.name.clone(), concerned.gone);
        for (to, waiting) in concerned.there {
            let ordinal = events.len();
            events.extend(tell(&name, &change, &to, &waiting, ordinal, context));
        }
        let changed = Changed { name, change, known, gone };
        events.push(Event::InterfaceChanged { changed });
    }
    Ok((events, told))
}

/// Whom a change concerns.
struct Concerned {
    /// With what waits to be told to them.
    there: Vec<(SessionId, Vec<Notice>)>,
    /// Users that have ended and do not come back.
    gone: Vec<SessionId>,
}

fn concerned(
    view: &dyn View,
    interface: &Interface,
    readers: &[SessionId],
    by: &Holder,
    context: &Context,
) -> Result<Concerned, Refusal> {
    let users = interface.users.iter().map(|user| &user.session);
    let mut ids: Vec<&SessionId> = users.chain(readers).collect();
    ids.retain(|id| **id != by.session);
    ids.sort_unstable();
    ids.dedup();
    ids.truncate(TOLD_MAX);
    let mut queries: Vec<Query> = Vec::with_capacity(ids.len() * 2);
    for id in &ids {
        queries.push(Query::get::<Session>(id.as_str()));
        queries.push(notices::waiting_for(id, None, notices::TOLD_MAX));
    }
    let answers = view.read(&queries)?;
    let mut concerned = Concerned { there: Vec::new(), gone: Vec::new() };
    for (id, rows) in ids.into_iter().zip(answers.chunks(2)) {
        let [session, waiting] = rows else { continue };
        let session = session.first().map(|row| parse::<Session>(&row.body)).transpose()?;
        let over = |session: &Session| match session.life {
            Life::Live => false,
            Life::Ended { grace_until, .. } => grace_until.is_none_or(|until| context.now >= until),
        };
        match session.is_none_or(|session| over(&session)) {
            true => concerned.gone.push(id.clone()),
            false => concerned.there.push((id.clone(), only(waiting)?)),
        }
    }
    Ok(concerned)
}

/// One notice, of all that this session was not told of yet.
fn tell(
    name: &Key,
    change: &Change,
    to: &SessionId,
    waiting: &[Notice],
    ordinal: usize,
    context: &Context,
) -> Vec<Event> {
    let mut files: Vec<FileChange> = Vec::new();
    let mut replaced = Vec::new();
    for notice in waiting {
        if let News::InterfaceChanged { interface, files: before, .. } = &notice.news
            && interface == name
        {
            files.extend(before.iter().cloned());
            replaced.push(notice.notice.clone());
        }
    }
    for now in &change.files {
        match files.iter_mut().find(|file| file.path == now.path) {
            Some(before) => before.then(now),
            None => files.push(now.clone()),
        }
    }
    files.retain(|file| !file.is_empty());
    let mut events = Vec::new();
    if !replaced.is_empty() {
        events.push(Event::NoticesDropped { notices: replaced });
    }
    if !files.is_empty() {
        let news = News::InterfaceChanged { interface: name.clone(), by: change.by.clone(), files };
        events.push(notice(to, news, ordinal, context));
    }
    events
}
