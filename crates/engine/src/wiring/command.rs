//! How clients start Baton, and how such a line is known again.
//!
//! Owns the two forms. In a file that a team shares, Baton is found by PATH, and where it is not
//! installed the line ends with 0 and says nothing: Gemini would block every edit on a missing
//! script. In a file of one's own, the line names this very program. Knows nothing of files.

use std::path::Path;

use super::Mode;

/// Where Baton is not installed, Claude's worktrees are made and removed as without it: a hook on
/// these two events stands in for git.
const MAKE_TREE: &str = "name=$(sed -n 's/.*\"name\" *: *\"\\([A-Za-z0-9._-]*\\)\".*/\\1/p'); \
tree=\"$CLAUDE_PROJECT_DIR/.claude/worktrees/$name\"; \
git worktree add -q -b \"worktree-$name\" \"$tree\" >&2 && printf '%s\\n' \"$tree\"";
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
        match self.mode {
            Mode::Personal => format!("{} hook {client}", quoted(self.path)),
            Mode::Team => {
                let otherwise = match event {
                    "WorktreeCreate" => format!("{{ {MAKE_TREE}; exit; }}"),
                    "WorktreeRemove" => format!("{{ {REMOVE_TREE}; exit; }}"),
                    _ => "exit 0".to_owned(),
                };
                format!("command -v baton >/dev/null 2>&1 || {otherwise}; exec baton hook {client}")
            }
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

/// Whether this starts `baton hook CLIENT`: with its arguments apart, or all in one line.
pub(super) fn is_hook(line: &str, arguments: Option<&[String]>, client: &str) -> bool {
    if let Some(arguments) = arguments {
        return is_program(line) && arguments == ["hook", client];
    }
    let Some(before) = line.trim_end().strip_suffix(&format!(" hook {client}")) else {
        return false;
    };
    let before = before.trim_end_matches(['\'', '"']);
    is_program(before.rsplit([' ', ';']).next().unwrap_or(before)) || is_program(before)
}

/// Whether these words start `baton mcp`.
pub(super) fn is_server(words: &[String]) -> bool {
    match words {
        [program, verb, ..] => is_program(program) && verb == "mcp",
        _ => false,
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
                    assert!(!is_hook(&line, None, "codex"), "{line}");
                }
            }
            let words = ["hook".to_owned(), "claude".to_owned()];
            assert!(is_hook(path, Some(&words), "claude"), "{path}");
        }
        for line in ["mybaton hook claude", "echo baton hook claude later", "baton hook", ""] {
            assert!(!is_hook(line, None, "claude"), "{line}");
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
