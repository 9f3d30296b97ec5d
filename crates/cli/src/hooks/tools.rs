//! Tools of all clients, by the names they have there: which files they change or read.
//!
//! Owns the one table of names and argument keys. A tool that is not in it is none of ours; one
//! that edits something nobody can read is not let through as if it were judged.

use baton_core::patches::{self, Action};
use baton_core::shell;
use baton_engine::doors::edit::{Change, Target};
use serde_json::Value;

use super::{Tool, text, words};

const PATH: &[&str] =
    &["file_path", "filePath", "path", "absolute_path", "target_file", "notebook_path"];
const CONTENT: &[&str] = &["content", "contents", "file_text"];
const OLD: &[&str] = &["old_string", "oldString", "old_str"];
const NEW: &[&str] = &["new_string", "newString", "new_str"];
const ALL: &[&str] = &["replace_all", "replaceAll"];
/// Where a shell tool runs its line: Gemini's name for it, that of Codex and opencode, Cursor's.
const FOLDER: &[&str] = &["dir_path", "workdir", "working_directory"];
const MANY: &[&str] = &["include", "paths"];
const PATCH: &[&str] = &["command", "patchText", "patch", "input"];

pub(super) fn tool(name: &str, input: &Value) -> Tool {
    match name {
        "Write" | "write_file" | "write" | "create_file" => edited(input, whole(input)),
        "Edit" | "replace" | "edit" | "StrReplace" | "search_replace" => edited(input, one(input)),
        "MultiEdit" | "multiedit" => edited(input, several(input)),
        "NotebookEdit" => edited(input, target(input, Change::Unknown)),
        "Delete" | "delete_file" => edited(input, target(input, Change::Away)),
        "apply_patch" | "ApplyPatch" => patch(input),
        // A monitor runs a command in the background.
        "Bash" | "Monitor" | "run_shell_command" | "bash" | "Shell" | "shell" | "exec_command" => {
            command(input).map_or(Tool::Other, |line| Tool::Shell(within(input, line)))
        }
        "Read" | "read_file" | "read" | "ReadFile" => {
            let path = text(input, PATH).map(str::to_owned);
            path.map_or(Tool::Other, |path| Tool::Read(vec![path]))
        }
        "read_many_files" => Tool::Read(several_read(input)),
        name if is_own(name) => Tool::Own,
        _ => Tool::Other,
    }
}

/// A tool of our own server, which a plugin names after itself too.
fn is_own(name: &str) -> bool {
    let server = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    server.is_some_and(|(server, _)| server == "baton" || server.ends_with("_baton"))
}

/// Files that Gemini reads at once; what a pattern matched, nobody tells.
fn several_read(input: &Value) -> Vec<String> {
    let given = MANY.iter().find_map(|key| input.get(*key)?.as_array());
    let paths = given.into_iter().flatten().filter_map(Value::as_str);
    paths.filter(|path| !path.contains(['*', '?', '[', '{'])).map(str::to_owned).collect()
}

/// An edit whose file is there and cannot be read is nothing that could be judged.
fn edited(input: &Value, targets: Vec<Target>) -> Tool {
    let given = PATH.iter().find_map(|key| input.get(*key));
    match given.filter(|given| targets.is_empty() && !given.is_null() && !given.is_string()) {
        Some(_) => Tool::Refused(words::no_path()),
        None => Tool::Edit(targets),
    }
}

fn target(input: &Value, change: Change) -> Vec<Target> {
    let path = text(input, PATH).filter(|path| !path.is_empty());
    path.map(|path| Target::file(path, change)).into_iter().collect()
}

fn whole(input: &Value) -> Vec<Target> {
    let change = match text(input, CONTENT) {
        Some(content) => Change::Whole(content.to_owned()),
        // Cursor calls every edit a write.
        None => return one(input),
    };
    target(input, change)
}

fn one(input: &Value) -> Vec<Target> {
    target(input, replaced(input))
}

fn replaced(input: &Value) -> Change {
    let all = ALL.iter().any(|key| input.get(*key).and_then(Value::as_bool) == Some(true));
    match (text(input, OLD), text(input, NEW)) {
        // Nothing is replaced: the file is made.
        (Some(""), Some(new)) => Change::Whole(new.to_owned()),
        (Some(old), Some(new)) => Change::Replace { old: old.to_owned(), new: new.to_owned(), all },
        _ => Change::Unknown,
    }
}

fn several(input: &Value) -> Vec<Target> {
    let edits = input.get("edits").and_then(Value::as_array);
    let changes: Vec<Change> = edits.into_iter().flatten().map(replaced).collect();
    let changes = if changes.is_empty() { vec![Change::Unknown] } else { changes };
    changes.into_iter().flat_map(|change| target(input, change)).collect()
}

fn patch(input: &Value) -> Tool {
    // Codex also gives the words of a command, of which one is the patch.
    let listed = |given: &Value| {
        let words = given.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
        Some(words.join("\n"))
    };
    let listed = PATCH.iter().find_map(|key| listed(input.get(*key)?));
    let Some(given) = text(input, PATCH).or_else(|| input.as_str()).or(listed.as_deref()) else {
        let given = PATCH.iter().any(|key| input.get(*key).is_some_and(|given| !given.is_null()));
        let why = "it is no text".to_owned();
        return if given { Tool::Patch { why, targets: Vec::new() } } else { Tool::Other };
    };
    match patches::read(given) {
        Ok(files) => Tool::Edit(files.iter().flat_map(changed).collect()),
        // The paths that are read of it would not be all of them.
        Err(why) if patches::is_too_large(given) => {
            Tool::Patch { why: why.to_string(), targets: Vec::new() }
        }
        Err(why) => {
            let unknown = |path: String| Target::file(path, Change::Unknown);
            let targets = patches::named(given).into_iter().map(unknown).collect();
            Tool::Patch { why: why.to_string(), targets }
        }
    }
}

/// A move changes both its ends.
fn changed(file: &patches::File) -> Vec<Target> {
    let here = match (file.action, &file.moved_to) {
        (Action::Delete, _) | (_, Some(_)) => Change::Away,
        (Action::Add, None) => {
            let lines = file.hunks.iter().flat_map(|hunk| &hunk.added);
            Change::Whole(lines.map(|line| format!("{line}\n")).collect())
        }
        (Action::Update, None) => match file.hunks.as_slice() {
            [hunk] if !hunk.removed.is_empty() => Change::Replace {
                old: hunk.removed.join("\n"),
                new: hunk.added.join("\n"),
                all: false,
            },
            hunks if hunks.iter().all(|hunk| hunk.removed.is_empty()) => Change::Append,
            _ => Change::Unknown,
        },
    };
    let mut targets = vec![Target::file(&file.path, here)];
    let there = file.moved_to.iter().cloned();
    targets.extend(there.map(|path| Target::file(path, Change::Unknown)));
    targets
}

/// The line with the folder in which it runs, where the tool names one.
fn within(input: &Value, line: String) -> String {
    match text(input, FOLDER).filter(|folder| !matches!(*folder, "" | ".")) {
        None => line,
        Some(folder) => format!("cd {} && {{ {line}\n}}", shell::quote([folder])),
    }
}

/// The line of a shell; a list of words is the line in which a shell reads them.
fn command(input: &Value) -> Option<String> {
    let given = input.get("command").or_else(|| input.get("cmd"))?;
    match given {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            Some(shell::quote(words?))
        }
        _ => None,
    }
}
