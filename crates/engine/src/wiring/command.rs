//! How clients start Baton, and how such a line is known again.
//!
//! Owns the two forms. In a file that a team shares, Baton is found by PATH; in a file of one's
//! own, the line names this very program. Where that is not installed, or not any more, the line
//! ends with 0 and says nothing: Gemini would block every edit on a missing script. Knows nothing
//! of files.

use std::path::Path;

use super::Mode;

/// A hook on these two events stands in for git. Where Baton is not installed, or has nothing to
/// say about a new tree, it is made as Claude makes it: a tree that is there is given again, and a
/// branch that is there is checked out. Where Baton says no, there is none.
const MAKE_TREE: &str = "name=$(printf %s \"$in\" | \
sed -n 's/.*\"name\" *: *\"\\([^\"\\\\]*\\)\".*/\\1/p'); \
case $name in ''|/*|*..*) echo \"no tree of this name\" >&2; exit 1;; esac; \
tree=\"$CLAUDE_PROJECT_DIR/.claude/worktrees/$name\"; \
branch=\"worktree-$name\"; \
if [ -e \"$tree/.git\" ]; then printf '%s\\n' \"$tree\"; exit; fi; \
[ -e \"$tree\" ] || git worktree remove \"$tree\" >/dev/null 2>&1; \
if git show-ref -q --verify \"refs/heads/$branch\"; \
then git worktree add -q \"$tree\" \"$branch\" >&2; \
else git worktree add -q -b \"$branch\" \"$tree\" >&2; fi && printf '%s\\n' \"$tree\"";
const REMOVE_TREE: &str = "tree=$(sed -n 's/.*\"worktree_path\" *: *\"\\([^\"]*\\)\".*/\\1/p'); \
git worktree remove \"$tree\" >&2";

/// Who is started, and how.
#[derive(Clone, Debug)]
pub(super) struct Program<'a> {
    pub(super) mode: Mode,
    /// This binary.
    pub(super) path: &'a str,
}

impl Program<'_> {
    /// As a client names a program that it starts without a shell.
    pub(super) fn name(&self) -> &str {
        match self.mode {
            Mode::Team => "baton",
            Mode::Personal => self.path,
        }
    }

    /// A line for a shell.
    pub(super) fn line(&self, client: &str, event: &str) -> String {
        let program = quoted(self.name());
        let there = format!("command -v {program} >/dev/null 2>&1");
        match event {
            "WorktreeCreate" => format!(
                "in=$(cat); if {there}; then out=$(printf %s \"$in\" | {program} hook {client}) || \
                 exit; case $out in /*) printf '%s\\n' \"$out\"; exit;; esac; fi; {MAKE_TREE}"
            ),
            "WorktreeRemove" => {
                format!("{there} || {{ {REMOVE_TREE}; exit; }}; exec {program} hook {client}")
            }
            _ => format!("{there} || exit 0; exec {program} hook {client}"),
        }
    }
}

/// A word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=@%:,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Whether this is `baton hook CLIENT` as some Baton wrote it: with its arguments apart, or all in
/// one line. A line with other words in it is its user's, whatever it calls.
pub(super) fn is_hook(line: &str, arguments: Option<&[String]>, client: &str) -> bool {
    if let Some(arguments) = arguments {
        return is_program(line) && arguments == ["hook", client];
    }
    is_guard(line, client) || is_for_trees(line, client)
}

/// Whether a line calls `baton hook CLIENT` somewhere.
pub(super) fn calls(line: &str, client: &str) -> bool {
    let call = format!(" hook {client}");
    line.match_indices(&call).any(|(at, _)| {
        let before = line[..at].trim_end_matches(['\'', '"']);
        let ends = !line[at + call.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '-');
        ends && is_program(before.rsplit([' ', ';']).next().unwrap_or(before))
    })
}

/// Whether such a line does nothing but call Baton: in one of the two forms, or by its name alone.
pub(super) fn is_plain(line: &str, client: &str, event: &str) -> bool {
    // Those on trees stand in for git; nothing is judged there.
    event.starts_with("Worktree") || is_guard(line, client)
}

fn is_guard(line: &str, client: &str) -> bool {
    let Some(before) = line.strip_suffix(&format!(" hook {client}")) else { return false };
    let program = before.rsplit_once("; exec ").map_or(before, |(_, program)| program);
    let Some(bare) = unquoted(program).filter(|bare| is_program(bare)) else { return false };
    let ours = Program { mode: Mode::Personal, path: &bare };
    program == before || line == ours.line(client, "")
}

/// What such a line does without Baton is not the same in every version.
fn is_for_trees(line: &str, client: &str) -> bool {
    let asked = line.strip_prefix("in=$(cat); if ");
    let Some(there) = asked.unwrap_or(line).strip_prefix("command -v ") else { return false };
    let Some((program, rest)) = there.split_once(" >/dev/null 2>&1") else { return false };
    let call = format!("{program} hook {client}");
    let ours = match asked {
        Some(_) => rest.starts_with(&format!("; then out=$(printf %s \"$in\" | {call})")),
        None => rest.starts_with(" || { ") && rest.ends_with(&format!("; exec {call}")),
    };
    ours && unquoted(program).is_some_and(|bare| is_program(&bare))
}

/// The word that a shell reads there, if it is written as Baton writes one.
fn unquoted(word: &str) -> Option<String> {
    let bare = match word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(inner) => inner.replace("'\\''", "'"),
        None => word.to_owned(),
    };
    (quoted(&bare) == word).then_some(bare)
}

/// Whose a server with these words is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// `baton mcp`, from wherever.
    Ours,
    /// The same with more words: the user's.
    Theirs,
    Other,
}

pub(super) fn server(words: &[String]) -> Server {
    match words {
        [program, verb, more @ ..] if is_program(program) && verb == "mcp" => {
            if more.is_empty() {
                Server::Ours
            } else {
                Server::Theirs
            }
        }
        _ => Server::Other,
    }
}

fn is_program(word: &str) -> bool {
    Path::new(word.trim_matches(['\'', '"'])).file_name().is_some_and(|name| name == "baton")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_ours_is_known_again() {
        for path in ["/usr/bin/baton", "/a b/baton", "/it's/baton", "/a\"b/$x/baton"] {
            for mode in [Mode::Team, Mode::Personal] {
                let program = Program { mode, path };
                for event in ["PreToolUse", "WorktreeCreate", "WorktreeRemove"] {
                    let line = program.line("claude", event);
                    assert!(is_hook(&line, None, "claude"), "{line}");
                    assert!(is_plain(&line, "claude", event), "{line}");
                    let first = format!("exit 0; {line}");
                    assert_eq!(is_plain(&first, "claude", event), event != "PreToolUse");
                    assert!(!is_hook(&line, None, "codex"), "{line}");
                }
            }
            let words = ["hook".to_owned(), "claude".to_owned()];
            assert!(is_hook(path, Some(&words), "claude"), "{path}");
        }
        for line in ["mybaton hook claude", "baton hook claude-x", "baton hook", "hook claude", ""]
        {
            assert!(!is_hook(line, None, "claude") && !calls(line, "claude"), "{line}");
        }
        for line in [
            "./log.sh; baton hook claude",
            "BATON_STORE=x exec baton hook claude",
            "exit 0; exec baton hook claude",
            "baton hook claude | tee log",
            "./log.sh; command -v baton >/dev/null 2>&1 || exit 0; exec baton hook claude",
        ] {
            assert!(!is_hook(line, None, "claude") && calls(line, "claude"), "{line}");
        }
        assert!(!is_hook("/usr/bin/other", Some(&["hook".into(), "claude".into()]), "claude"));
    }

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_was() {
        for word in ["plain/a.b", "a b", "it's", "$(x)", "\"", ""] {
            let line = format!("printf %s {}", quoted(word));
            let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
    }
}
