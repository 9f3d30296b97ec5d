//! Why nothing was committed, in words, with the one next step.
//!
//! Owns the sentences. What agents, hooks and other programs wrote is shown escaped (S20).

use baton_core::commits::{Foreign, Lines, Refused};
use serde_json::{Value, json};

use crate::render::{self, shown};

/// How many paths of others one sentence names.
const NAMED_MAX: usize = 3;
/// How many lines of a hook's output one sentence quotes; the document has all of it.
const LINES_MAX: usize = 8;

pub(super) fn of(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::Foreign { foreign } => of_foreign(foreign),
        Refused::Hook { hook, exit, output, changed } => of_hook(hook, *exit, output, changed),
        Refused::IndexLocked { lock, by, age_seconds } => {
            let who = match by {
                Some(by) => format!("by {}", shown(by)),
                None => "and nobody is seen who has it".to_owned(),
            };
            (
                format!("git's index is locked {who}, since {age_seconds} s: {}", shown(lock)),
                "wait for the git command that runs in this tree, then try again".to_owned(),
                json!({ "lock": lock, "by": by, "age_seconds": age_seconds }),
            )
        }
        Refused::Busy { by } => {
            let who = by.as_deref().map_or_else(String::new, |by| format!(": {}", shown(by)));
            let message = format!("another baton commit is at work in this tree{who}");
            (message, "try again when it is done".to_owned(), json!({ "by": by }))
        }
        Refused::CheckedOutTwice { branch, tree } => (
            format!(
                "{} is checked out in {} too: it would be left behind",
                shown(branch),
                shown(tree)
            ),
            "git switch -c NAME, for a branch of this tree's own".to_owned(),
            json!({ "branch": branch, "tree": tree }),
        ),
        other => of_paths(other),
    }
}

fn of_paths(refused: &Refused) -> (String, String, Value) {
    let (message, next) = match refused {
        Refused::NoRepository => {
            ("there is no git repository here".to_owned(), "git init, then baton init".to_owned())
        }
        Refused::InProgress { what } => (
            format!("a {what} is in progress in this tree"),
            format!("finish it with git {what} --continue"),
        ),
        Refused::Nothing { named: true } => (
            "nothing to commit: the named paths are as they were committed".to_owned(),
            "git status".to_owned(),
        ),
        Refused::Nothing { named: false } => (
            "nothing to commit: this session claimed nothing that was changed".to_owned(),
            "baton commit -m MSG PATH, with what is to be committed".to_owned(),
        ),
        Refused::Ignored { path } => (
            format!("{} is ignored by git", shown(path)),
            "name a file that git does not ignore".to_owned(),
        ),
        Refused::Missing { path } => {
            (format!("there is no {}, and git knows of none", shown(path)), "git status".to_owned())
        }
        Refused::OtherRepository { path } => (
            format!("{} belongs to another repository or working tree", shown(path)),
            "commit it there: baton -C FOLDER commit".to_owned(),
        ),
        Refused::Unmerged { path } => (
            format!("{} has conflicts that are not resolved", shown(path)),
            format!("resolve them, then git add {}", shown(path)),
        ),
        Refused::Colliding { path, other } => (
            format!("{} is one file with {} where case does not count", shown(path), shown(other)),
            "give it a name that differs in more than case".to_owned(),
        ),
        Refused::OwnFilter { path, filter } => (
            format!(
                "{} goes through the filter {}, which this repository configures itself; Baton \
                 runs only filters of your own configuration",
                shown(path),
                shown(filter)
            ),
            format!("configure the filter {} in your own ~/.gitconfig", shown(filter)),
        ),
        Refused::NotUtf8 { lossy } => (
            format!("\"{}\" is not UTF-8", shown(lossy)),
            "name the other files one by one".to_owned(),
        ),
        Refused::NotNamed { path } => (
            format!("{} stands where a named path is to be, and was not named", shown(path)),
            format!("name {} too", shown(path)),
        ),
        Refused::NoMessage => ("the message is empty".to_owned(), "give -m 'what changed'".into()),
        Refused::Moved { reference } => (
            format!("others commit the same paths to {} all the time", shown(reference)),
            "git log -3, then try again".to_owned(),
        ),
        _ => (
            "git does not know who commits".to_owned(),
            "git config user.name 'NAME', and user.email".to_owned(),
        ),
    };
    (message, next, details(refused))
}

/// Which paths a refusal is about, for scripts.
fn details(refused: &Refused) -> Value {
    match refused {
        Refused::Ignored { path } | Refused::Missing { path } | Refused::Unmerged { path } => {
            json!({ "path": path })
        }
        Refused::OtherRepository { path } | Refused::NotNamed { path } => json!({ "path": path }),
        Refused::Colliding { path, other } => json!({ "path": path, "other": other }),
        Refused::OwnFilter { path, filter } => json!({ "path": path, "filter": filter }),
        _ => json!({}),
    }
}

fn of_foreign(foreign: &[Foreign]) -> (String, String, Value) {
    let named: Vec<String> = foreign.iter().take(NAMED_MAX).map(sentence).collect();
    let more = match foreign.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let message = format!("not only yours: {}{more}", named.join("; "));
    let next = match foreign.first() {
        Some(first) if first.left.is_none() => {
            format!("baton ask {} --why 'to commit it'", shown(&first.path))
        }
        _ => "look at them with git diff; --include-foreign commits them along".to_owned(),
    };
    (message, next, json!({ "foreign": foreign }))
}

/// `src/a.rs is held by otter since 5m ago`, `lines 3-7 of src/a.rs are otter's, left 5m ago`.
fn sentence(one: &Foreign) -> String {
    let (path, name, ago) = (shown(&one.path), shown(&one.holder.name), render::ago(one.at));
    match (&one.left, &one.lines) {
        (None, _) => format!("{path} is held by {name}, claimed {ago}"),
        (Some(_), None) => format!("changes in {path} are {name}'s, left {ago}"),
        (Some(_), Some(lines)) => {
            let (lines, are) = lines_words(lines);
            format!("{lines} of {path} {are} {name}'s, left {ago}")
        }
    }
}

/// `line 3`, `lines 3-7, 9`, and the verb that fits.
fn lines_words(lines: &[Lines]) -> (String, &'static str) {
    let range = |one: &Lines| match one.from == one.to {
        true => one.from.to_string(),
        false => format!("{}-{}", one.from, one.to),
    };
    let ranges: Vec<String> = lines.iter().map(range).collect();
    match lines {
        [one] if one.from == one.to => (format!("line {}", one.from), "is"),
        _ => (format!("lines {}", ranges.join(", ")), "are"),
    }
}

fn of_hook(
    hook: &str,
    exit: Option<i32>,
    output: &str,
    changed: &[String],
) -> (String, String, Value) {
    let how = exit.map_or_else(|| "was ended".to_owned(), |code| format!("ended with {code}"));
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES_MAX)..];
    let said: Vec<String> = last.iter().map(|line| shown(line.trim_end())).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(" | ")) };
    let next = match changed.is_empty() {
        true => "mend what it names, then commit again".to_owned(),
        false => {
            let files: Vec<String> = changed.iter().map(|path| shown(path)).collect();
            format!("look at what it changed ({}), then commit again", files.join(", "))
        }
    };
    let details = json!({ "hook": hook, "exit": exit, "output": output, "changed": changed });
    (format!("the hook {hook} {how}{said}"), next, details)
}
