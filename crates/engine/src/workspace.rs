//! An open workspace: its place, its store, and decisions made in it.
//!
//! Owns the one way state changes: lock, read, decide (pure), evolve, commit, all in one
//! transaction. Refuses to know any rule. Nothing outside the store is read while the lock is held.

use std::cell::LazyCell;
use std::path::Path;
use std::time::Duration;

use baton_core::consequences;
use baton_core::context::{Actor, Context, Observed};
use baton_core::event::{Durability, Event};
use baton_core::evolve::evolve;
use baton_core::id::{Fresh, Position, TreeId};
use baton_core::journal::{Entry, Head};
use baton_core::operations::{self, Operation};
use baton_core::overlay::Overlay;
use baton_core::refusal::Refusal;
use baton_core::view::{Unreadable, View};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::denying::Pending;
use crate::failure::Failure;
use crate::place::Place;
use crate::process::{Boot, Machine};
use crate::sandbox;
use crate::store::{self, Commit, State, Store};

/// How long a command waits for its turn at the store.
pub const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Workspace {
    pub place: Place,
    /// Looked at when it is first asked for: most checks never ask.
    pub machine: LazyCell<Machine, Box<dyn FnOnce() -> Machine + Send>>,
    pub tree: TreeId,
    pub store: Box<dyn Store>,
    /// How long a decision waits for its turn.
    pub patience: Duration,
    /// What was refused and is to be written down later; nothing when that is done at once.
    pub(crate) denied: Option<Vec<Pending>>,
}

/// What makes a retry harmless: the id, and what the request was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Retry {
    pub operation: String,
    pub request_hash: String,
}

impl Retry {
    /// Binds an operation id to a verb and its request. Only a hash of the id is stored: the
    /// secret of a session that was started under an id follows from it (`sessions::start`), and
    /// the journal is public.
    pub fn of(operation: &str, verb: &str, request: &impl Serialize) -> Self {
        let body = serde_json::to_string(request).unwrap_or_default();
        let request_hash = blake3::hash(format!("{verb}\0{body}").as_bytes()).to_hex();
        let id = blake3::derive_key("baton 2026 operation id", operation.as_bytes());
        let operation = hex(&id[..16]);
        Self { operation, request_hash: request_hash.to_string() }
    }
}

impl Workspace {
    /// Opens the workspace that `folder` belongs to. `address` names a shared store; without one
    /// the workspace's own SQLite store is used. There is no fallback from one to the other.
    pub fn open(folder: &Path, address: Option<&str>) -> Result<Self, Failure> {
        let place = Place::find(folder)?;
        Self::open_at(place, address)
    }

    pub fn open_at(place: Place, address: Option<&str>) -> Result<Self, Failure> {
        sandbox::must_be_bound_to(&place)?;
        let boot = Boot::here_with(&place.test_hooks());
        let tree = TreeId(place.tree_id()?.as_str().to_owned());
        let store = store::open(&place, &boot, address)?;
        let machine = LazyCell::new(machine_of(boot));
        Ok(Self { place, machine, tree, store, patience: PATIENCE, denied: None })
    }

    /// Acts in another tree of this workspace, known by its root, and comes back.
    pub fn within<T>(
        &mut self,
        root: &Path,
        actor: &Actor,
        act: impl FnOnce(&mut Self, &Actor) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let place = Place::find(root)?;
        let tree = TreeId(place.tree_id()?.as_str().to_owned());
        let actor = Actor { tree: Some(tree.clone()), ..actor.clone() };
        let place = std::mem::replace(&mut self.place, place);
        let tree = std::mem::replace(&mut self.tree, tree);
        let came = act(self, &actor);
        self.place = place;
        self.tree = tree;
        came
    }

    /// Reads with a rule that changes nothing.
    pub fn look<T>(
        &mut self,
        actor: &Actor,
        observed: Observed,
        rule: impl FnOnce(&dyn View, &Context) -> Result<T, Refusal>,
    ) -> Result<T, Failure> {
        let snapshot = self.store.snapshot()?;
        let context = context(snapshot.state(), actor, observed, Fresh([0; 32]));
        let view: &dyn View = &*snapshot;
        Ok(rule(view, &context)?)
    }

    /// One decision: the rule's events are written in the transaction it read from, or nothing is.
    pub fn decide<T>(
        &mut self,
        actor: &Actor,
        observed: Observed,
        rule: impl FnOnce(&dyn View, &Context) -> Result<(Vec<Event>, T), Refusal>,
    ) -> Result<T, Failure> {
        let transaction = self.store.begin(self.patience)?;
        let state = transaction.state().clone();
        let context = context(&state, actor, observed, fresh()?);
        let mut overlay = Overlay::new(&*transaction);
        let (mut events, answer) = rule(&overlay, &context)?;
        if events.is_empty() {
            return Ok(answer);
        }
        consequences::add(&overlay, &mut events, &context)?;
        let written = Written::new(&state, &context, events);
        written.evolve(&mut overlay).map_err(Refusal::from)?;
        let changes = overlay.into_changes().map_err(Refusal::from)?;
        transaction.commit(&Commit {
            entries: &written.entries,
            changes: &changes,
            durability: written.durability,
        })?;
        Ok(answer)
    }

    /// As `decide`, but a retry under the same operation id gets the first answer again (S12).
    /// `keep` says whether an answer is final.
    pub fn decide_once<T: Serialize + DeserializeOwned>(
        &mut self,
        actor: &Actor,
        observed: Observed,
        retry: Option<&Retry>,
        keep: impl Fn(&T) -> bool,
        rule: impl FnOnce(&dyn View, &Context) -> Result<(Vec<Event>, T), Refusal>,
    ) -> Result<T, Failure> {
        let Some(retry) = retry else {
            return self.decide(actor, observed, rule);
        };
        let session = actor.session.as_ref().map(|id| id.0.clone()).unwrap_or_default();
        self.decide(actor, observed, |view, context| {
            let kept = operations::answered(view, &retry.operation, &session, &retry.request_hash)?;
            if let Some(answer) = kept {
                return Ok((Vec::new(), baton_core::view::parse(&answer)?));
            }
            let (mut events, answer) = rule(view, context)?;
            if keep(&answer) {
                let text =
                    serde_json::to_string(&answer).map_err(|error| Unreadable(Box::new(error)))?;
                let kept = Operation {
                    operation: retry.operation.clone(),
                    session,
                    request_hash: retry.request_hash.clone(),
                    answer: text,
                    at: context.now,
                };
                events.extend(operations::keep(view, kept)?);
            }
            Ok((events, answer))
        })
    }
}

fn machine_of(boot: Boot) -> Box<dyn FnOnce() -> Machine + Send> {
    Box::new(move || Machine::of_boot(boot))
}

/// What one decision writes to the journal.
struct Written {
    events: Vec<Event>,
    entries: Vec<Entry>,
    durability: Durability,
}

impl Written {
    fn new(state: &State, context: &Context, events: Vec<Event>) -> Self {
        let raised = state.raised_because.clone().map(|why| Event::EpochRaised { why });
        let events: Vec<Event> = raised.into_iter().chain(events).collect();
        let actor = context.actor.session.as_ref().map_or("", |session| session.as_str());
        let mut head: Head = state.head.clone();
        let mut entries = Vec::with_capacity(events.len());
        for event in &events {
            let position = Position { epoch: state.epoch, number: head.position.number + 1 };
            let entry = Entry::next(&head, position, state.now, actor, event);
            head = entry.head();
            entries.push(entry);
        }
        let durability = events.iter().map(Event::durability).max().unwrap_or(Durability::Process);
        Self { events, entries, durability }
    }

    fn evolve(&self, overlay: &mut Overlay<'_>) -> Result<(), Unreadable> {
        self.events.iter().try_for_each(|event| evolve(overlay, event))
    }
}

fn context(state: &State, actor: &Actor, observed: Observed, fresh: Fresh) -> Context {
    let raised = u64::from(state.raised_because.is_some());
    Context {
        now: state.now,
        next: Position { epoch: state.epoch, number: state.head.position.number + 1 + raised },
        fresh,
        actor: actor.clone(),
        observed,
        failed_over_at: state.failed_over_at,
    }
}

fn fresh() -> Result<Fresh, Failure> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Failure::File {
        doing: "no randomness from the kernel",
        path: "getrandom".into(),
        source: std::io::Error::other(error),
    })?;
    Ok(Fresh(seed))
}

/// A secret in hex, for a session or a person.
pub fn secret() -> Result<String, Failure> {
    let Fresh(seed) = fresh()?;
    Ok(hex(&seed[..24]))
}

/// What the store keeps of a secret.
pub fn secret_hash(secret: &str) -> String {
    hex(&blake3::derive_key("baton 2026 session secret", secret.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
