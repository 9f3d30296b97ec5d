//! What can be asked: one table of tools.
//!
//! Owns names, descriptions and fields. The schema that a client gets and the check of what it
//! sends come from the same lines, so neither can drift from the other. Fields are named as in the
//! requests of `baton_engine::api` that they become. Every word here is paid for by every agent in
//! every session: the whole list stays below [`LIST_BYTES_MAX`].

use std::sync::Arc;

use baton_core::roles::Role;
use baton_engine::api;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::render::shown;
use crate::words::Problem;

/// 2,500 model tokens at three and a half bytes each. Two public tokenizers make one of 4.2 bytes
/// of this list; at three bytes each there would be room for names, and none for what they mean.
#[cfg(test)]
const LIST_BYTES_MAX: usize = 8_750;

const COMMIT_AND_LAND: &str = "commit_and_land";

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Text,
    Texts,
    Flag,
    Whole,
    /// `90s`, `30m`: becomes milliseconds.
    Time,
    One(&'static [&'static str]),
    /// Any JSON.
    Any,
    /// The parts of a divided task.
    Parts,
}

#[derive(Debug)]
pub(super) struct Field {
    name: &'static str,
    kind: Kind,
    about: &'static str,
    required: bool,
}

const fn field(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, about, required: false }
}

const fn required(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, about, required: true }
}

#[derive(Debug)]
pub(super) struct Asked {
    pub(super) name: &'static str,
    about: &'static str,
    hints: Hints,
    fields: &'static [Field],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hints {
    Reads,
    /// Changes what Baton keeps; nothing is lost by it.
    Acts,
    /// The same, and twice is as good as once.
    Settles,
    /// Reaches the remote and files of the project.
    Outside,
}

use Kind::{Any, Flag, One, Parts, Text, Texts, Time, Whole};

/// What the parts of a divided task may say; the titles are required.
const PART: &[Field] = &[
    required("title", Text, ""),
    field("body", Text, ""),
    field("paths", Texts, ""),
    field("role", Text, ""),
];

pub(super) const TOOLS: &[Asked] = &[
    Asked {
        name: "status",
        about: "Who works here, on which tasks, what is claimed, waits or needs a person.",
        hints: Hints::Reads,
        fields: &[field("path", Text, "Instead: who holds and changed this path")],
    },
    Asked {
        name: "claim",
        about: "Take files or named things before you change them, all or nothing. Hooked edits \
                claim by themselves.",
        hints: Hints::Settles,
        fields: &[
            required(
                "resources",
                Texts,
                "Paths, folders (src/), patterns (src/*.rs), names (@browser/shop, @gpu=2)",
            ),
            field("reason", Text, "For whoever is refused by it"),
            field("wait", Time, "Queue this long, e.g. 60s, at most 5m"),
            field("shared", Flag, "Together with others who only share"),
            field("ask", Text, "Instead: ask the holder to let go, saying why"),
        ],
    },
    Asked {
        name: "release",
        about: "Let go of claims.",
        hints: Hints::Settles,
        fields: &[
            field("resources", Texts, "A folder lets go of everything in it"),
            field("all", Flag, "Everything you hold"),
        ],
    },
    Asked {
        name: "task_list",
        about: "Tasks: who does what, what can be taken, what is blocked and why.",
        hints: Hints::Reads,
        fields: &[
            field(
                "view",
                One(&["unfinished", "ready", "blocked", "mine", "all"]),
                "Default unfinished",
            ),
            field("task", Text, "All about this one instead"),
            field("limit", Whole, "Default 30"),
        ],
    },
    Asked {
        name: "task_take",
        about: "Take the best ready task, or a named one, and get what is needed to do it.",
        hints: Hints::Acts,
        fields: &[
            field("task", Text, "This one"),
            field("claim", Flag, "Claim its paths with it"),
            field("also", Flag, "Beside your active task"),
        ],
    },
    Asked {
        name: "task_add",
        about: "File a task; or, with split, divide one into parts that others do.",
        hints: Hints::Acts,
        fields: &[
            field("title", Text, "What is to be done, in one line"),
            field("body", Text, "All else to know"),
            field("priority", Whole, "0 (urgent) to 4"),
            field("after", Texts, "Tasks to be finished before"),
            field("paths", Texts, "What it will touch"),
            field("role", Text, "Only for this role"),
            field("key", Text, "The same key is one task"),
            field("split", Text, "The task to divide"),
            field("parts", Parts, ""),
            field("sequence", Flag, "The parts one after the other"),
            field("then", Text, "Title of a task to join them"),
        ],
    },
    Asked {
        name: "task_update",
        about: "End or move a task. done: report_done, report_not_done. fail: why. block: on. \
                park: next. submit (for review): commit. approve. reject: feedback. reopen. \
                note: text.",
        hints: Hints::Acts,
        fields: &[
            required(
                "action",
                One(&[
                    "done", "fail", "block", "park", "submit", "approve", "reject", "reopen",
                    "note",
                ]),
                "",
            ),
            required("task", Text, ""),
            field("report_done", Text, "What was done"),
            field("report_not_done", Text, "What was not, or \"nothing\""),
            field("commit", Text, "Holds the work"),
            field("why", Text, ""),
            field(
                "class",
                One(&["failed", "rate-limited", "auth", "killed"]),
                "Of fail; default failed",
            ),
            field("on", Text, "Task or words it waits for"),
            field("next", Text, "Next step, for whoever goes on"),
            field("back_in", Time, "Offer it again after"),
            field("to", Text, "Reviewer: role:NAME or a session"),
            field("feedback", Text, "What must change"),
            field("kind", One(&["decision", "lesson", "progress"]), "Of note"),
            field("text", Text, ""),
            field("token", Text, "Refuse unless the attempt's"),
        ],
    },
    Asked {
        name: "handoff",
        about: "Hand a task over with its claims and tree. offer: id of the task, \
                state, remaining, next. accept, decline (why), show: id. list.",
        hints: Hints::Acts,
        fields: &[
            required("action", One(&["offer", "accept", "decline", "list", "show"]), ""),
            field("id", Text, "Handoff (t3-h1) or task"),
            field("to", Text, "Session, role:NAME or anyone"),
            field("state", Text, "Where it stands"),
            field("remaining", Text, "Left to do"),
            field("next", Text, "Step to begin with"),
            field("decisions", Texts, "What: why"),
            field("blockers", Texts, ""),
            field("constraints", Texts, "Must stay"),
            field("within", Time, "Returns to you after"),
            field("also", Flag, "Beside your active task"),
            field("why", Text, ""),
        ],
    },
    Asked {
        name: "state",
        about: "Values everyone sees, each with a version.",
        hints: Hints::Acts,
        fields: &[
            required(
                "action",
                One(&["get", "set", "append", "merge", "delete", "list", "history"]),
                "",
            ),
            field("key", Text, "Or a pattern for list: build/*"),
            field("value", Any, "Any JSON"),
            field("if_version", Whole, "Refuse unless it is at it; 0: no value"),
        ],
    },
    Asked {
        name: "gate",
        about: "Ask a person before work goes on. Only a person decides.",
        hints: Hints::Acts,
        fields: &[
            required("action", One(&["ask", "list", "show"]), ""),
            field("id", Text, "Gate to show"),
            field("on", Text, "Task or words it stands before"),
            field(
                "kind",
                One(&["approval", "credential", "legal", "deploy", "decision"]),
                "Default decision",
            ),
            field("ask", Text, "The question"),
            field("options", Texts, "To choose from"),
        ],
    },
    Asked {
        name: COMMIT_AND_LAND,
        about: "Commit exactly these paths (with message), sync with the remote if asked, and land \
                the branch: merged, checked, then in the target. Without message: only land.",
        hints: Hints::Outside,
        fields: &[
            field("message", Text, ""),
            field("paths", Texts, "Default: what you claimed and changed"),
            field("release", Flag, "Let go of what is committed"),
            field("include_foreign", Flag, "Also lines another session wrote"),
            field("sync", Flag, "Pull first"),
            field("land", Flag, "Default true"),
            field("branch", Text, "Default: this tree's"),
            field("task", Text, ""),
            field("queue", Flag, "Only get in line"),
            field("takes_back", Flag, "It undoes landed work on purpose"),
            field("dir", Text, "Folder of another tree"),
        ],
    },
    Asked {
        name: "conflicts",
        about: "What will not merge between live trees and the target, before it is met.",
        hints: Hints::Reads,
        fields: &[],
    },
];

pub(super) fn named(name: &str) -> Option<&'static Asked> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Asked {
    pub(super) fn tool(&self) -> Tool {
        let mut schema = object(self.fields);
        schema.entry("properties").or_insert_with(|| json!({}));
        Tool::new(self.name, self.about, Arc::new(schema)).with_annotations(self.hints.of())
    }

    /// Whether a session of this role can do anything at all with it.
    pub(super) fn is_for(&self, role: Option<&Role>) -> bool {
        self.name != COMMIT_AND_LAND || role.is_none_or(|role| role.commit || role.land)
    }

    /// What is said of a field, if anything is.
    pub(super) fn about(&self, name: &str) -> &'static str {
        self.fields.iter().find(|field| field.name == name).map_or("", |field| field.about)
    }

    pub(super) fn takes(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }

    /// What was sent under names that it takes, and the other names.
    pub(super) fn split(&self, given: JsonObject) -> (JsonObject, Vec<String>) {
        split(self.fields, given)
    }

    /// What is said of names that it does not take, and what else would be wrong.
    pub(super) fn does_not_take(&self, names: &[String], rest: Option<Problem>) -> Problem {
        does_not_take(self.name, self.fields, names, rest)
    }

    /// What was sent, if it is what the schema asks for; times as the requests want them.
    pub(super) fn check(&self, given: JsonObject) -> Result<JsonObject, Problem> {
        checked(self.name, self.fields, given)
    }
}

impl Hints {
    fn of(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new().read_only(self == Self::Reads);
        let hints = match self {
            Self::Reads => hints,
            Self::Settles => hints.destructive(false).idempotent(true),
            Self::Acts | Self::Outside => hints.destructive(false),
        };
        hints.open_world(self == Self::Outside)
    }
}

fn object(fields: &[Field]) -> JsonObject {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
    schema.insert("properties".into(), properties.into());
    let needed: Vec<&str> =
        fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    if !needed.is_empty() {
        schema.insert("required".into(), needed.into());
    }
    schema.insert("additionalProperties".into(), false.into());
    schema
}

impl Field {
    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Text | Time => json!({ "type": "string" }),
            Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Flag => json!({ "type": "boolean" }),
            Whole => json!({ "type": "integer", "minimum": 0 }),
            One(words) => json!({ "type": "string", "enum": words }),
            Any => json!({}),
            Parts => json!({ "type": "array", "items": object(PART) }),
        };
        if let (Some(schema), false) = (schema.as_object_mut(), self.about.is_empty()) {
            schema.insert("description".into(), self.about.into());
        }
        schema
    }

    fn check(&self, tool: &str, value: Value) -> Result<Value, Problem> {
        let name = self.name;
        let wrong = |what: &str| {
            Err(Problem::usage(format!("`{name}` must be {what}"), format!("call {tool} again")))
        };
        match (self.kind, value) {
            (Any, value) => Ok(value),
            (Text, value @ Value::String(_)) => Ok(value),
            (Text, _) => wrong("text"),
            (Flag, value @ Value::Bool(_)) => Ok(value),
            (Flag, _) => wrong("true or false"),
            (Whole, Value::Number(number)) => match whole(&number) {
                Some(whole) => Ok(whole.into()),
                None => wrong("a whole number, 0 or more"),
            },
            (Whole, _) => wrong("a whole number, 0 or more"),
            (Texts, Value::Array(items)) if items.iter().all(Value::is_string) => Ok(items.into()),
            (Texts, _) => wrong("a list of texts"),
            (One(words), Value::String(word)) if words.contains(&word.as_str()) => Ok(word.into()),
            (One(words), _) => wrong(&format!("one of {}", words.join(", "))),
            (Time, Value::String(text)) => match api::span(&text) {
                Ok(span) => Ok(span.0.into()),
                Err(_) => wrong("a time: 90s, 30m, 2h or 1d"),
            },
            (Time, _) => wrong("a time as text: 90s, 30m, 2h or 1d"),
            (Parts, Value::Array(parts)) => {
                let part = |part| match part {
                    Value::Object(part) => checked(tool, PART, part).map(Value::from),
                    _ => wrong("a list of objects with a title"),
                };
                parts.into_iter().map(part).collect()
            }
            (Parts, _) => wrong("a list of objects with a title"),
        }
    }
}

/// Some clients send 5 as 5.0.
fn whole(number: &serde_json::Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        let fits = float.fract() == 0.0 && (0.0..9e15).contains(&float);
        fits.then(|| format!("{float:.0}").parse().ok())?
    })
}

fn split(fields: &[Field], given: JsonObject) -> (JsonObject, Vec<String>) {
    let takes = |name: &str| fields.iter().any(|field| field.name == name);
    if given.keys().all(|name| takes(name)) {
        return (given, Vec::new());
    }
    let (known, others): (JsonObject, JsonObject) =
        given.into_iter().partition(|(name, _)| takes(name));
    (known, others.into_iter().map(|(name, _)| name).collect())
}

/// All of it in one answer: what is taken, and what is wrong without these names too. Where nothing
/// is, the name may still have been meant for another, so it is not only to be left out.
fn does_not_take(tool: &str, fields: &[Field], names: &[String], rest: Option<Problem>) -> Problem {
    let named: Vec<String> = names.iter().map(|name| format!("`{}`", shown(name))).collect();
    let (noun, them) = if named.len() == 1 { ("argument", "it") } else { ("arguments", "them") };
    let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
    let (allowed, mut next) = match known.as_slice() {
        [] => ("nothing".to_owned(), format!("call {tool} again without {them}")),
        known => {
            (known.join(", "), format!("call {tool} again with what it takes, or without {them}"))
        }
    };
    let mut message = format!("{tool} has no {noun} {}: it takes {allowed}", named.join(", "));
    if let Some(rest) = rest {
        message = format!("{message}; {}", rest.message);
        next = rest.next;
    }
    Problem::usage(message, next)
}

fn checked(tool: &str, fields: &[Field], given: JsonObject) -> Result<JsonObject, Problem> {
    let (given, others) = split(fields, given);
    if !others.is_empty() {
        let rest = checked(tool, fields, given).err();
        return Err(does_not_take(tool, fields, &others, rest));
    }
    let mut good = Map::new();
    for (name, value) in given {
        let Some(field) = fields.iter().find(|field| field.name == name) else { continue };
        // Some clients send every field, with nothing in those that are not meant.
        if value.is_null() && !matches!(field.kind, Any) {
            continue;
        }
        good.insert(name, field.check(tool, value)?);
    }
    let lacks = |field: &&Field| field.required && !good.contains_key(field.name);
    let missing: Vec<&Field> = fields.iter().filter(lacks).collect();
    if missing.is_empty() {
        return Ok(good);
    }
    let said = |field: &&Field| match field.kind {
        One(words) => format!("`{}` (one of {})", field.name, words.join(", ")),
        _ => format!("`{}`", field.name),
    };
    let needs: Vec<String> = missing.iter().map(said).collect();
    let names: Vec<&str> = missing.iter().map(|field| field.name).collect();
    let message = format!("{tool} needs {}", needs.join(" and "));
    Err(Problem::usage(message, format!("call {tool} with {}", names.join(" and "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lesson_32_the_list_costs_an_agent_little() {
        let tools: Vec<Tool> = TOOLS.iter().map(Asked::tool).collect();
        let text = serde_json::to_string(&json!({ "tools": tools })).unwrap();
        assert!(text.len() <= LIST_BYTES_MAX, "{} bytes: {text}", text.len());
    }

    fn said(tool: &str, given: Value) -> String {
        let Value::Object(given) = given else { panic!() };
        match named(tool).unwrap().check(given) {
            Ok(good) => Value::from(good).to_string(),
            Err(problem) => format!("{}; next: {}", problem.message, problem.next),
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        for (tool, given, expected) in [
            ("claim", json!({}), "claim needs `resources`; next: call claim with resources"),
            (
                "claim",
                json!({ "paths": ["a"] }),
                "claim has no argument `paths`: it takes resources, reason, wait, shared, ask; \
                 claim needs `resources`; next: call claim with resources",
            ),
            (
                "claim",
                json!({ "resources": "a" }),
                "`resources` must be a list of texts; next: call claim again",
            ),
            (
                "claim",
                json!({ "resources": ["a"], "wait": "soon" }),
                "`wait` must be a time: 90s, 30m, 2h or 1d; next: call claim again",
            ),
            (
                "claim",
                json!({ "resources": ["a"], "wait": "2s", "reason": null }),
                r#"{"resources":["a"],"wait":2000}"#,
            ),
            (
                "release",
                json!({ "al\u{1b}l": true }),
                "release has no argument `al\\u{1b}l`: it takes resources, all; \
                 next: call release again with what it takes, or without it",
            ),
            (
                "conflicts",
                json!({ "x": 1, "y": 2 }),
                "conflicts has no arguments `x`, `y`: it takes nothing; \
                 next: call conflicts again without them",
            ),
            (
                "gate",
                json!({ "action": "approve" }),
                "`action` must be one of ask, list, show; next: call gate again",
            ),
            (
                "gate",
                json!({}),
                "gate needs `action` (one of ask, list, show); next: call gate with action",
            ),
            ("task_list", json!({ "limit": 5.0 }), r#"{"limit":5}"#),
            (
                "task_list",
                json!({ "limit": -1 }),
                "`limit` must be a whole number, 0 or more; next: call task_list again",
            ),
            (
                "task_add",
                json!({ "split": "t1", "parts": [{ "titel": "x" }] }),
                "task_add has no argument `titel`: it takes title, body, paths, role; \
                 task_add needs `title`; next: call task_add with title",
            ),
            (
                "task_add",
                json!({ "parts": ["x"] }),
                "`parts` must be a list of objects with a title; next: call task_add again",
            ),
        ] {
            assert_eq!(said(tool, given), expected, "{tool}");
        }
    }
}
