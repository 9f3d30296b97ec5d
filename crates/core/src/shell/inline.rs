//! Programs of other languages that stand in a line: `python3 -c '…'`, `node -e`, a here-document.
//!
//! Owns where such a text stands. Which files it surely writes is read from its words (`naming`);
//! whatever else it does, nobody knows, and the line is compared afterwards.

use super::outcome::{Argument, Command};
use super::walk::{Input, Walker};
use crate::naming;

/// Interpreters, and the options after which a text stands.
const INTERPRETERS: [(&str, &[&str]); 8] = [
    ("python", &["-c"]),
    ("node", &["-e", "--eval", "-p", "--print", "-pe"]),
    ("bun", &["-e", "--eval"]),
    ("deno", &["eval"]),
    ("ruby", &["-e"]),
    ("perl", &["-e", "-E"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
];

pub(super) fn judge(walker: &mut Walker, command: &Command, input: &Input) {
    let name = command.name();
    let known = |(one, _): &&(&str, &[&str])| name == *one || *one == "python" && versioned(name);
    let Some((_, options)) = INTERPRETERS.iter().find(known) else { return };
    let arguments = command.argv.get(1..).unwrap_or_default();
    let is_option = |word: &Argument| word.text().is_some_and(|word| options.contains(&word));
    let given = arguments.iter().position(is_option).map(|at| arguments.get(at + 1));
    // Without a script it reads one.
    let alone = arguments.iter().all(|word| word.text().is_some_and(|word| word.starts_with('-')));
    let text = match (given, input) {
        (Some(given), _) => given.and_then(Argument::text),
        (None, Input::Known(text)) if alone => Some(text.as_str()),
        _ => None,
    };
    for (file, how) in text.map(naming::written).unwrap_or_default() {
        walker.writes(walker.place(command, &file.as_str().into()), how, false);
    }
}

/// `python3`, `python3.12`.
fn versioned(name: &str) -> bool {
    let version = name.strip_prefix("python");
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

#[cfg(test)]
mod tests {
    use crate::shell::{How, Place, read};

    #[test]
    fn what_a_program_in_a_line_writes_is_written_by_the_line() {
        for (line, file, how) in [
            ("python3 -c \"open('a','w').write('x')\"", "a", How::Create),
            ("cd sub && python -c 'open(\"a\", \"a\")'", "sub/a", How::Append),
            ("env X=1 python3.12 - <<'E'\nopen('a', 'w')\nE", "a", How::Create),
            (
                "python3 <<'E'\nfrom pathlib import Path\nPath('a').write_text('')\nE",
                "a",
                How::Create,
            ),
            ("node -e \"require('fs').writeFileSync('a','x')\"", "a", How::Create),
            (
                "bash -c \"ruby -e 'File.write(%q(b), 1); File.write(\\\"a\\\", 1)'\"",
                "a",
                How::Create,
            ),
            ("perl -e 'open(my $f, \">\", \"a\")'", "a", How::Create),
            ("php -r 'unlink(\"b\"); file_put_contents(\"a\", 1);'", "a", How::Create),
        ] {
            let deeds = read(line);
            let named = deeds
                .writes
                .iter()
                .any(|write| write.place == Place::Path(file.to_owned()) && write.how == how);
            assert!(named && !deeds.harmless, "{line}: {deeds:?}");
        }
        for line in ["python3 -c \"print(open('a').read())\"", "python3 w.py", "python3 w.py -c x"]
        {
            let deeds = read(line);
            assert!(deeds.writes.is_empty() && !deeds.harmless, "{line}: {deeds:?}");
        }
    }
}
