//! From what was asked to the commands that answer it.
//!
//! Owns the mapping of each tool on the requests of `baton_engine::api`, which are what the command
//! line parses into as well. A field that the request of an action does not have is refused rather
//! than passed over: an agent that gives a reason wants it kept.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::key::{Key, KeyPattern};
use baton_core::time::Span;
use baton_engine::api::{
    self, commits, conflicts, gates, handoffs, landings, reviews, shared, tasks,
};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::floor::Step;
use super::pages;
use super::tools::{self, Asked};
use crate::arguments::Command;
use crate::commands::gate::Gate;
use crate::commands::handoff::Handoff;
use crate::commands::state::{State, Typed};
use crate::commands::status::Status;
use crate::commands::task::Task;
use crate::words::Problem;

/// A call that waits longer than this is taken for lost by its client.
pub(super) const WAIT_MAX: Span = Span::minutes(5);
/// Tasks in a list when nothing else is said: a model reads all of it.
const LISTED: usize = 30;

/// What a client asks for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Call {
    Tool { name: String, given: JsonObject },
    Page { uri: String },
}

impl Call {
    pub(super) fn read(&self) -> Result<Meant, Problem> {
        let unknown = |what| Problem::usage(what, "call one that is listed");
        match self {
            Self::Tool { name, given } => match tools::named(name) {
                Some(tool) => read(tool, given.clone()),
                None => Err(unknown("there is no such tool")),
            },
            Self::Page { uri } => match pages::step(uri) {
                Some(step) => Ok(Meant { steps: vec![step], ..Meant::default() }),
                None => Err(unknown("there is no such page")),
            },
        }
    }
}

/// What a call means.
#[derive(Default)]
pub(super) struct Meant {
    pub(super) steps: Vec<Step>,
    pub(super) acts: bool,
    pub(super) folder: Option<PathBuf>,
    /// An ending that is not good is a refusal: nothing landed.
    pub(super) must_succeed: bool,
    /// It asks nothing but the store, and waits for nobody.
    pub(super) brief: bool,
}

/// The commands that answer a call.
fn read(tool: &Asked, given: JsonObject) -> Result<Meant, Problem> {
    let (given, others) = tool.split(given);
    let meant = meant(tool, given);
    match others.is_empty() {
        true => meant,
        false => Err(tool.does_not_take(&others, meant.err())),
    }
}

fn meant(tool: &Asked, given: JsonObject) -> Result<Meant, Problem> {
    let mut given = Given { tool, given: tool.check(given)? };
    let mut meant = Meant { acts: true, ..Meant::default() };
    let command = match tool.name {
        "status" => {
            meant.acts = false;
            match given.text("path") {
                Some(path) => Command::Why { path },
                None => Command::Status(Status::default()),
            }
        }
        "claim" => {
            let command = claim(&mut given)?;
            meant.brief = matches!(&command, Command::Claim(wanted) if wanted.wait.is_none());
            command
        }
        "release" => {
            given.given.entry("resources").or_insert_with(|| Value::Array(Vec::new()));
            let wanted: api::Release = given.request("release")?;
            match wanted.all == wanted.resources.is_empty() {
                true => Command::Release(wanted),
                false => {
                    let message = "release needs either `resources` or `all`";
                    return Err(Problem::usage(message, "call release with resources or all"));
                }
            }
        }
        "task_list" => {
            meant.acts = false;
            Command::Task(task_list(&mut given)?)
        }
        "task_take" => {
            given.given.entry("count").or_insert_with(|| 1.into());
            Command::Task(Task::Take(given.request("task_take")?))
        }
        "task_add" => Command::Task(task_add(&mut given)?),
        "task_update" => task_update(&mut given)?,
        "handoff" => {
            let command = handoff(&mut given)?;
            meant.acts = !matches!(command, Handoff::List(_) | Handoff::Show { .. });
            Command::Handoff(command)
        }
        "state" => {
            let command = state(&mut given)?;
            meant.acts =
                !matches!(command, State::Get { .. } | State::List { .. } | State::History { .. });
            Command::State(command)
        }
        "gate" => {
            let command = gate(&mut given)?;
            meant.acts = matches!(command, Gate::Add(_));
            Command::Gate(command)
        }
        "commit_and_land" => {
            meant.must_succeed = true;
            meant.folder = given.text("dir").map(PathBuf::from);
            meant.steps = commit_and_land(&mut given)?;
            return Ok(meant);
        }
        _ => {
            meant.acts = false;
            Command::Conflicts(conflicts::Conflicts::default())
        }
    };
    meant.steps.push(Step::Command(command));
    Ok(meant)
}

struct Given<'t> {
    tool: &'t Asked,
    given: JsonObject,
}

impl Given<'_> {
    fn text(&mut self, name: &str) -> Option<String> {
        match self.given.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    fn flag(&mut self, name: &str) -> Option<bool> {
        self.given.remove(name).and_then(|value| value.as_bool())
    }

    fn needs(&mut self, name: &str, action: &str) -> Result<String, Problem> {
        self.text(name).ok_or_else(|| self.missing(name, action))
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let Some(value) = self.given.remove(from) {
            self.given.insert(to.to_owned(), value);
        }
    }

    fn wrong(&self, message: impl Into<String>) -> Problem {
        Problem::usage(message, format!("call {} again", self.tool.name))
    }

    fn missing(&self, name: &str, action: &str) -> Problem {
        let about = match self.tool.about(name) {
            "" => String::new(),
            about => format!(": {about}"),
        };
        let next = format!("call {} with {name}", self.tool.name);
        Problem::usage(format!("{action} needs `{name}`{about}"), next)
    }

    /// Nothing may be left that this action does not know.
    fn nothing_left(&self, action: &str) -> Result<(), Problem> {
        match self.given.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.wrong(format!("{action} does not take `{name}`"))),
        }
    }

    /// All that is left, as one request.
    fn request<T>(&mut self, action: &str) -> Result<T, Problem>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        let known = fields_of::<T>();
        if let Some(name) = self.given.keys().find(|name| !known.contains(name)) {
            return Err(self.wrong(format!("{action} does not take `{name}`")));
        }
        let given = std::mem::take(&mut self.given);
        serde_json::from_value(given.into()).map_err(|error| {
            let error = error.to_string();
            match error.strip_prefix("missing field ") {
                Some(name) => self.missing(name.trim_matches('`'), action),
                None => self.wrong(format!("{action}: {error}")),
            }
        })
    }
}

/// What a request has. Kept, because its schema takes as long to make as a claim.
fn fields_of<T: JsonSchema + 'static>() -> Arc<[String]> {
    static KNOWN: Mutex<BTreeMap<TypeId, Arc<[String]>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let fields = known.entry(TypeId::of::<T>()).or_insert_with(|| {
        let schema = schemars::schema_for!(T);
        let fields = schema.get("properties").and_then(Value::as_object);
        fields.into_iter().flat_map(|fields| fields.keys().cloned()).collect()
    });
    Arc::clone(fields)
}

fn claim(given: &mut Given<'_>) -> Result<Command, Problem> {
    if let Some(why) = given.text("ask") {
        if why.trim().is_empty() {
            return Err(given.missing("ask", "a question to who holds it"));
        }
        given.given.insert("why".into(), why.into());
        return Ok(Command::Ask(given.request("ask")?));
    }
    let wanted: api::Claim = given.request("claim")?;
    match wanted.wait {
        Some(wait) if wait > WAIT_MAX => {
            Err(given.wrong(format!("`wait` is at most {WAIT_MAX}: call again to go on waiting")))
        }
        _ => Ok(Command::Claim(wanted)),
    }
}

fn task_list(given: &mut Given<'_>) -> Result<Task, Problem> {
    if let Some(task) = given.text("task") {
        given.nothing_left("a list of one task")?;
        return Ok(Task::Show { task });
    }
    let limit = given.given.remove("limit").and_then(|limit| limit.as_u64());
    if limit == Some(0) {
        return Err(given.wrong("`limit` is 1 or more"));
    }
    let limit = limit.map_or(LISTED, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let view = given.text("view").unwrap_or_default();
    let (all, mine) = (view == "all", view == "mine");
    Ok(match view.as_str() {
        "ready" => Task::Ready { limit },
        "blocked" => Task::Blocked { limit },
        _ => Task::List(tasks::List { all, mine, limit, ..tasks::List::default() }),
    })
}

fn task_add(given: &mut Given<'_>) -> Result<Task, Problem> {
    if !given.given.contains_key("split") {
        return Ok(Task::Add(given.request("task_add without split")?));
    }
    if !given.given.contains_key("parts") {
        return Err(given.missing("parts", "task_add with split"));
    }
    given.rename("split", "task");
    given.rename("parts", "children");
    let wanted: tasks::Split = given.request("task_add with split")?;
    Ok(Task::Split(wanted))
}

fn task_update(given: &mut Given<'_>) -> Result<Command, Problem> {
    let action = given.needs("action", "task_update")?;
    let action = action.as_str();
    Ok(Command::Task(match action {
        "done" => Task::Done(given.request::<tasks::Done>(action)?),
        "fail" => Task::Fail(given.request::<tasks::Fail>(action)?),
        "block" => Task::Block(given.request::<tasks::Block>(action)?),
        "park" => Task::Park(given.request::<tasks::Park>(action)?),
        "submit" => Task::Submit(given.request::<reviews::Submit>(action)?),
        "approve" => Task::Approve(given.request::<reviews::Approve>(action)?),
        "reopen" => Task::Reopen(given.request::<tasks::Change>(action)?),
        "reject" => Task::Reject(given.request::<reviews::Reject>(action)?),
        _ => {
            given.given.entry("kind").or_insert_with(|| "progress".into());
            return Ok(Command::Note(given.request::<shared::Note>(action)?));
        }
    }))
}

fn handoff(given: &mut Given<'_>) -> Result<Handoff, Problem> {
    let action = given.needs("action", "handoff")?;
    let action = action.as_str();
    if action != "list" && !given.given.contains_key("id") {
        return Err(given.missing("id", action));
    }
    match action {
        "offer" | "list" => given.rename("id", "task"),
        _ => given.rename("id", "handoff"),
    }
    Ok(match action {
        "offer" => Handoff::Offer(Box::new(given.request::<handoffs::Offer>(action)?)),
        "accept" => Handoff::Accept(given.request::<handoffs::Accept>(action)?.into()),
        "decline" => Handoff::Decline(given.request::<handoffs::Decline>(action)?),
        "list" => {
            given.given.entry("limit").or_insert_with(|| LISTED.into());
            Handoff::List(given.request::<handoffs::List>(action)?)
        }
        _ => {
            let handoff = given.needs("handoff", action)?;
            given.nothing_left(action)?;
            Handoff::Show { handoff, markdown: false }
        }
    })
}

fn state(given: &mut Given<'_>) -> Result<State, Problem> {
    let action = given.needs("action", "state")?;
    let action = action.as_str();
    if action == "list" {
        let pattern = given.text("key").map(|text| text.parse::<KeyPattern>());
        let pattern = pattern.transpose().map_err(|error| given.wrong(error.to_string()))?;
        given.nothing_left(action)?;
        return Ok(State::List { pattern, limit: 200 });
    }
    let key = given.needs("key", action)?;
    let key: Key = key.parse().map_err(|error| given.wrong(format!("{error}")))?;
    let value = match (action, given.given.remove("value")) {
        ("set" | "append" | "merge", None) => {
            return Err(given.missing("value", action));
        }
        ("set" | "append" | "merge", Some(value)) => value,
        (_, Some(_)) => return Err(given.wrong(format!("{action} does not take `value`"))),
        (_, None) => Value::Null,
    };
    if matches!(action, "get" | "history") {
        given.nothing_left(action)?;
    }
    let value = Typed::of(&value);
    let conditions: shared::Conditions = given.request(action)?;
    Ok(match action {
        "get" => State::Get { key, published: false },
        "history" => State::History { key, limit: 20 },
        "delete" => State::Delete { key, conditions },
        "append" => State::Append { key, value, conditions },
        "merge" => State::Merge { key, value, conditions },
        _ => State::Set { key, value, conditions },
    })
}

fn gate(given: &mut Given<'_>) -> Result<Gate, Problem> {
    let action = given.needs("action", "gate")?;
    match action.as_str() {
        "list" => {
            given.nothing_left("list")?;
            Ok(Gate::List { all: false })
        }
        "show" => {
            let gate = given.needs("id", "show")?;
            given.nothing_left("show")?;
            Ok(Gate::Show { gate })
        }
        _ => {
            given.given.entry("kind").or_insert_with(|| "decision".into());
            Ok(Gate::Add(given.request::<gates::Add>("ask")?))
        }
    }
}

/// What of it is asked for, in the only order that makes sense.
fn commit_and_land(given: &mut Given<'_>) -> Result<Vec<Step>, Problem> {
    let land = given.flag("land").unwrap_or(true);
    let sync = given.flag("sync").unwrap_or(false);
    let mut steps = Vec::new();
    let landing = landings::Land {
        branch: given.text("branch"),
        task: given.text("task"),
        queue: given.flag("queue").unwrap_or(false),
        takes_back: given.flag("takes_back").unwrap_or(false),
    };
    match given.given.is_empty() {
        true => {}
        // What is left belongs to the commit, which needs its message.
        false => steps.push(Command::Commit(given.request::<commits::Commit>("a commit")?)),
    }
    if sync {
        let wanted = commits::Sync { remote: "origin".to_owned(), branch: None, pull: true };
        steps.push(Command::Sync(wanted));
    }
    if land {
        steps.push(Command::Land(landing));
    }
    match steps.is_empty() {
        true => Err(given.wrong("there is nothing to do: give `message`, `sync` or `land`")),
        false => Ok(steps.into_iter().map(Step::Command).collect()),
    }
}
