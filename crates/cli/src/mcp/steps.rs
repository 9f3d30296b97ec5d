//! What to do next, for an agent that has tools and perhaps no command line.
//!
//! Owns the one way from commands to tools. A step names commands as they are typed; each is read
//! by the parser of the command line, and said as the call that does the same. What no tool does
//! stays as it is and is said to be for a shell: it is never said wrongly.

use baton_core::handoffs::refused::Missing;
use clap::Parser;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::requests::WAIT_MAX;
use super::tools;
use crate::arguments::{Command, CommandLine};
use crate::commands::gate::Gate;
use crate::commands::handoff::Handoff;
use crate::commands::state::State;
use crate::commands::task::Task;
use crate::words::Problem;

const PROGRAM: &str = "baton ";
const NEXT: &str = "next: ";
const NEWS: &str = "news: ";
const MORE: &str = "there are more: --limit N";

/// The next step after a refusal.
pub(super) fn next(problem: &Problem) -> String {
    let missing = problem.details.get("missing").cloned().unwrap_or_default();
    match serde_json::from_value::<Vec<Missing>>(missing) {
        Ok(missing) if problem.code == "incomplete" => {
            let mut fields: Vec<&str> = missing.iter().filter_map(field).collect();
            fields.dedup();
            format!("call handoff again with {}", fields.join(", "))
        }
        _ => in_tools(&problem.next),
    }
}

/// The same for the lines of an answer that say what comes next.
pub(super) fn text(said: &str) -> String {
    let line = |line: &str| match line.strip_prefix(NEXT) {
        Some(step) => format!("{NEXT}{}", in_tools(step)),
        None if line.starts_with(NEWS) => news(line),
        None => line.replace(MORE, "there are more: give a higher `limit`"),
    };
    said.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// News end with the command that shows more. What stands before it may be somebody's own words.
fn news(line: &str) -> String {
    let ends = [": baton ", "; baton "].into_iter().filter_map(|sign| line.rfind(sign));
    match ends.max() {
        Some(at) if !line[at..].contains('"') => {
            let (said, command) = line.split_at(at + ": ".len());
            format!("{said}{}", call(command).unwrap_or_else(|| command.to_owned()))
        }
        _ => line.to_owned(),
    }
}

fn field(missing: &Missing) -> Option<&'static str> {
    match missing {
        Missing::State => Some("`state`"),
        Missing::Remaining => Some("`remaining`"),
        Missing::Next { .. } => Some("`next`"),
        Missing::Decisions { .. } | Missing::Why { .. } => Some("`decisions` (\"what: why\")"),
        Missing::Status => None,
    }
}

/// A step with its commands as calls of tools.
fn in_tools(step: &str) -> String {
    let (mut said, mut rest, mut left) = (String::new(), step, false);
    while let Some(at) = command_at(rest) {
        let (before, from) = rest.split_at(at);
        let (typed, after) = from.split_at(length(from));
        let call = call(typed);
        left |= call.is_none();
        said.push_str(before);
        said.push_str(call.as_deref().unwrap_or(typed));
        rest = after;
    }
    said.push_str(rest);
    match left && said.starts_with(PROGRAM) {
        true => format!("in a shell: {said}"),
        false => said,
    }
}

fn command_at(text: &str) -> Option<usize> {
    let begins = |at: &usize| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|before| before == ' ' || before == '(' || before == '`')
    };
    text.match_indices(PROGRAM).map(|(at, _)| at).find(begins)
}

/// How far a command goes: to its end in the sentence, outside of quotes.
fn length(text: &str) -> usize {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ',' | ';' | ')' | '`') => return at,
            (None, '(') => return text[..at].trim_end().len(),
            _ => {}
        }
    }
    text.len()
}

/// Words as a shell would make them of what our own sentences have.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in text.chars() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ' ') if word.is_empty() => {}
            (None, ' ') => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Steps leave out what only whoever does them can say.
const LEFT_OUT: [(&str, &str); 5] = [
    ("baton commit", " -m …"),
    ("baton task done ", " --report-done … --report-not-done …"),
    ("baton task park ", " --next …"),
    ("baton task reject ", " --feedback …"),
    ("baton task fail ", " --why …"),
];

fn parsed(typed: &str) -> Option<CommandLine> {
    let whole = CommandLine::try_parse_from(words(typed)).ok();
    whole.or_else(|| {
        let (_, more) = LEFT_OUT.iter().find(|(verb, _)| typed.starts_with(verb))?;
        CommandLine::try_parse_from(words(&format!("{typed}{more}"))).ok()
    })
}

/// `call task_list with {"task":"t1"}`.
fn call(typed: &str) -> Option<String> {
    let CommandLine { common, command } = parsed(typed)?;
    if common.directory.is_some() {
        return None;
    }
    let (tool, arguments) = tool(&command)?;
    let arguments = arguments.as_object().map(|given| fitting(tool, given)).unwrap_or_default();
    Some(match arguments.is_empty() {
        true => format!("call {tool}"),
        false => format!("call {tool} with {}", Value::Object(arguments)),
    })
}

/// What the tool takes, without what says nothing.
fn fitting(tool: &str, given: &Map<String, Value>) -> Map<String, Value> {
    let says = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    let known = |name: &str| tools::named(tool).is_some_and(|tool| tool.takes(name));
    let fits = given.iter().filter(|(name, value)| known(name) && says(value));
    fits.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A request as the arguments of a tool, with what the tool calls otherwise.
fn with(request: &impl Serialize, more: Value) -> Value {
    let mut given = serde_json::to_value(request).unwrap_or_default();
    if let (Some(given), Value::Object(more)) = (given.as_object_mut(), more) {
        given.extend(more);
    }
    given
}

/// The tool that does what a command does.
fn tool(command: &Command) -> Option<(&'static str, Value)> {
    Some(match command {
        Command::Status(_) | Command::Claims(_) => ("status", json!({})),
        Command::Why { path } => ("status", json!({ "path": path })),
        Command::Claim(wanted) => {
            let wait = wanted.wait.map(|wait| wait.min(WAIT_MAX).to_string());
            ("claim", with(wanted, json!({ "wait": wait })))
        }
        Command::Ask(wanted) => {
            ("claim", json!({ "resources": wanted.resources, "ask": wanted.why }))
        }
        Command::Release(wanted) => ("release", with(wanted, json!({}))),
        Command::Task(command) => return task(command),
        Command::Handoff(command) => ("handoff", handoff(command)?),
        Command::Gate(Gate::List { .. }) => ("gate", json!({ "action": "list" })),
        Command::Gate(Gate::Show { gate }) => ("gate", json!({ "action": "show", "id": gate })),
        Command::State(command) => ("state", state(command)?),
        Command::Commit(wanted) => ("commit_and_land", with(wanted, json!({}))),
        Command::Land(wanted) => ("commit_and_land", with(wanted, json!({}))),
        Command::Sync(wanted) if wanted.pull => ("commit_and_land", json!({ "sync": true })),
        Command::Conflicts(_) => ("conflicts", json!({})),
        _ => return None,
    })
}

fn task(command: &Task) -> Option<(&'static str, Value)> {
    let update = |action: &str, arguments: Value| {
        let arguments = with(&arguments, json!({ "action": action }));
        Some(("task_update", arguments))
    };
    match command {
        Task::List(wanted) => {
            let view = if wanted.mine { "mine" } else { "" };
            Some(("task_list", json!({ "view": view })))
        }
        Task::Ready { .. } => Some(("task_list", json!({ "view": "ready" }))),
        Task::Blocked { .. } => Some(("task_list", json!({ "view": "blocked" }))),
        Task::Show { task } => Some(("task_list", json!({ "task": task }))),
        Task::Take(wanted) => Some(("task_take", with(wanted, json!({})))),
        Task::Add(wanted) => Some(("task_add", json!({ "title": wanted.title }))),
        Task::Done(wanted) => update("done", with(wanted, json!({}))),
        Task::Fail(wanted) => update("fail", with(wanted, json!({}))),
        Task::Block(wanted) => update("block", with(wanted, json!({}))),
        Task::Park(wanted) => update("park", with(wanted, json!({ "back_in": null }))),
        Task::Submit(wanted) => update("submit", with(wanted, json!({}))),
        Task::Approve(wanted) => update("approve", with(wanted, json!({}))),
        Task::Reject(wanted) => update("reject", with(wanted, json!({}))),
        Task::Reopen(wanted) => update("reopen", with(wanted, json!({}))),
        _ => None,
    }
}

fn handoff(command: &Handoff) -> Option<Value> {
    match command {
        Handoff::Offer(wanted) => {
            Some(with(&**wanted, json!({ "action": "offer", "id": wanted.task, "within": null })))
        }
        Handoff::List(_) => Some(json!({ "action": "list" })),
        Handoff::Show { handoff, .. } => Some(json!({ "action": "show", "id": handoff })),
        Handoff::Accept(wanted) => {
            Some(json!({ "action": "accept", "id": wanted.of_own_accord()?.handoff }))
        }
        _ => None,
    }
}

fn state(command: &State) -> Option<Value> {
    match command {
        State::Get { key, .. } => Some(json!({ "action": "get", "key": key })),
        State::Append { key, .. } => {
            Some(json!({ "action": "append", "key": key, "value": "VALUE" }))
        }
        State::List { .. } => Some(json!({ "action": "list" })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_name_tools_and_their_arguments() {
        for (typed, said) in [
            (
                "baton claim held.txt --wait 10m",
                r#"call claim with {"resources":["held.txt"],"wait":"5m"}"#,
            ),
            (
                "baton ask 'a b' --why 'what you need it for'",
                r#"call claim with {"ask":"what you need it for","resources":["a b"]}"#,
            ),
            ("baton land BRANCH", r#"call commit_and_land with {"branch":"BRANCH"}"#),
            ("baton task take, which finds another", "call task_take, which finds another"),
            (
                "baton task blocked, to see what holds them",
                r#"call task_list with {"view":"blocked"}, to see what holds them"#,
            ),
            (
                "baton task done t1 --report-done '…' --report-not-done '…'",
                concat!(
                    r#"call task_update with {"action":"done","report_done":"…","#,
                    r#""report_not_done":"…","task":"t1"}"#
                ),
            ),
            (
                "baton task park t1 --next '…', or baton handoff offer t1",
                concat!(
                    r#"call task_update with {"action":"park","next":"…","task":"t1"}, or "#,
                    r#"call handoff with {"action":"offer","id":"t1"}"#
                ),
            ),
            (
                "baton claims --mine, to see what you hold now",
                "call status, to see what you hold now",
            ),
            (
                "put the branch upon what they landed (baton sync --pull in its tree), then land",
                "put the branch upon what they landed (baton sync --pull in its tree), then land",
            ),
            ("baton queue list", "in a shell: baton queue list"),
            ("baton -C there status", "in a shell: baton -C there status"),
            ("a person runs: baton trust", "a person runs: baton trust"),
            ("run it again", "run it again"),
        ] {
            assert_eq!(in_tools(typed), said);
        }
    }

    #[test]
    fn answers_name_tools_where_they_say_what_comes_next() {
        for (said, told) in [
            (
                "next: baton handoff accept h1",
                r#"next: call handoff with {"action":"accept","id":"h1"}"#,
            ),
            (
                "news: ann offers you t1: baton handoff show h1",
                r#"news: ann offers you t1: call handoff with {"action":"show","id":"h1"}"#,
            ),
            ("news: ann says: \"do: baton status\"", "news: ann says: \"do: baton status\""),
            ("news: it; baton rescue show x", "news: it; baton rescue show x"),
            ("there are more: --limit N", "there are more: give a higher `limit`"),
        ] {
            assert_eq!(text(said), told);
        }
    }

    /// What is said can be done: the tools take it.
    #[test]
    fn tools_take_what_steps_say() {
        for typed in [
            "baton claim a --wait 10m",
            "baton ask a --why b",
            "baton release a",
            "baton task take t1",
            "baton task add 'what is to be done'",
            "baton task done t1 --commit SHA",
            "baton task submit t1 --commit SHA",
            "baton task approve t1",
            "baton task reject t1",
            "baton task park t1",
            "baton handoff offer t1",
            "baton handoff list --mine",
            "baton handoff accept h1",
            "baton task reopen t1",
            "baton commit",
            "baton gate show g1",
            "baton state get a/b",
            "baton state append a/b VALUE",
            "baton commit -m MSG PATH",
            "baton land",
            "baton sync --pull",
        ] {
            let said = call(typed).unwrap_or_else(|| panic!("{typed}"));
            let (name, given) = said.split_once(" with ").unwrap_or((&said, "{}"));
            let tool = tools::named(name.trim_start_matches("call ")).unwrap();
            let given: Map<String, Value> = serde_json::from_str(given).unwrap();
            tool.check(given).unwrap_or_else(|problem| panic!("{typed}: {problem:?}"));
        }
    }
}
