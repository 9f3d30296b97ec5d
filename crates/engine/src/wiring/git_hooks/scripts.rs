//! The scripts in Baton's folder of git hooks: what is in them, and how one is known again.
//!
//! Owns their text and the stamp in it. A script with an untouched stamp is Baton's, of whatever
//! version; one that bears the mark and is otherwise was changed by somebody; every other file is
//! the user's, however it came there. Knows nothing of git's settings.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::super::command::quoted;
use super::super::text;

/// What a branch that goes away moves to; longer in repositories of SHA-256.
const ZERO: &str = "0000000000000000000000000000000000000000";

/// Whose a script in Baton's folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Nobodys,
    Batons,
    /// Baton wrote it, and somebody changed it.
    Changed,
    Theirs,
}

pub(super) fn whose(path: &Path) -> Whose {
    let Ok(found) = fs::symlink_metadata(path) else { return Whose::Nobodys };
    let text = match found.is_file() {
        true => fs::read_to_string(path).unwrap_or_default(),
        // Baton makes no links and no folders here.
        false => return Whose::Theirs,
    };
    match text::is_our_file(&text) {
        true => Whose::Batons,
        false if text::has_mark(&text) => Whose::Changed,
        false => Whose::Theirs,
    }
}

pub(super) fn runs(path: &Path) -> bool {
    let found = fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A hook of ours. The user's is called by the very path by which git would call it, and looked for
/// each time: one that comes later is called without another `init`.
pub(super) fn script(program: &str, theirs: &str, name: &str) -> String {
    let theirs = quoted(&format!("{}/{name}", theirs.trim_end_matches('/')));
    let head = format!(
        "# Baton first, then your own hook, if you have one. This is not the place for it: it\n# \
         belongs where it always was.\ntheirs={theirs}\n"
    );
    let program = quoted(program);
    let find =
        format!("baton={program}\n[ -x \"$baton\" ] || baton=$(command -v baton) || baton=\n");
    let gone =
        "echo 'baton: the program is not there any more, so Baton does not look at this' >&2";
    let pass = "if [ -x \"$theirs\" ]; then exec \"$theirs\" \"$@\"; fi\nexit 0\n";
    // What git tells a hook on its input is for both.
    let keep = "input=$(cat; echo .); input=${input%.}\n";
    let pass_input = "if [ -x \"$theirs\" ]; then\n  printf %s \"$input\" | \"$theirs\" \"$@\"\n  \
                      exit $?\nfi\nexit 0\n";
    let body = match name {
        "pre-commit" => format!(
            "{head}{find}if [ -n \"$baton\" ]; then\n  \"$baton\" git-hook {name} \"$@\"\n  [ $? \
             -eq 1 ] && exit 1\nelse\n  {gone}\nfi\n{pass}"
        ),
        "pre-push" => format!(
            "{head}{find}{keep}if [ -n \"$baton\" ]; then\n  printf %s \"$input\" | \"$baton\" \
             git-hook {name} \"$@\"\n  [ $? -eq 1 ] && exit 1\nelse\n  {gone}\nfi\n{pass_input}"
        ),
        // Git calls it several times a command; only branches that are about to move matter. Git's
        // gc lets each branch go by itself, so that is seen without another process.
        "reference-transaction" => format!(
            "{head}[ \"$1\" = prepared ] || {{\n{pass}}}\nnewline='\n'\nIFS= read -r first; \
             input=$first$newline\nif IFS= read -r second; then\n  rest=$(cat; echo .); \
             input=$input$second$newline${{rest%.}}\nfi\ncase $second:$input in\n:*' \
             {ZERO}'*' refs/heads/'*) ;;\n*' refs/heads/'*)\n{find}  if [ -n \"$baton\" ]; \
             then\n    printf %s \"$input\" | \"$baton\" git-hook {name} \"$@\"\n    [ $? -eq 1 \
             ] && exit 1\n  fi\n  ;;\nesac\n{pass_input}"
        ),
        _ => format!("{head}{pass}"),
    };
    text::shell_script(&body)
}
