//! Calls that write files, and the names they are given.
//!
//! Owns the table of such calls and what counts as a name that stands in the text: one text in
//! quotes, perhaps below a folder, or a name that is set to nothing else.

use super::words::{Quoted, Token, is_of_name};
use crate::shell::How;

/// How often a name is followed to what it is set to.
const STEPS_MAX: usize = 4;

/// Calls whose first word is the file, wherever they come from.
const FIRST: &[&str] = &[
    "writeFile",
    "writeFileSync",
    "appendFile",
    "appendFileSync",
    "outputFile",
    "outputFileSync",
    "createWriteStream",
    "writeTextFile",
    "writeTextFileSync",
    "file_put_contents",
    "truncateSync",
    "unlinkSync",
    "rmSync",
    "rmtree",
    "binwrite",
];
/// Calls whose first word is the file if they are of these.
const FIRST_OF: &[(&str, &[&str])] = &[
    ("write", &["File", "IO", "Bun"]),
    ("delete", &["File", "FileUtils"]),
    ("remove", &["os"]),
    ("rm", &["fs", "promises", "FileUtils"]),
    ("truncate", &["os", "fs", "promises", "File"]),
    ("unlink", &["os", "fs", "promises", "File"]),
];
/// Calls with two files.
const BOTH: &[&str] = &["renameSync", "copyFile", "copyFileSync", "cpSync", "copy2", "copyfile"];
const BOTH_OF: &[(&str, &[&str])] = &[
    ("rename", &["os", "fs", "promises", "File"]),
    ("replace", &["os"]),
    ("copy", &["shutil"]),
    ("copytree", &["shutil"]),
    ("move", &["shutil"]),
    ("cp", &["FileUtils", "fs", "promises"]),
    ("mv", &["FileUtils"]),
];
/// Calls of the file itself.
const OF_FILE: &[&str] = &["write_text", "write_bytes", "unlink"];
/// Calls that start a program.
const RUNS: &[&str] = &[
    "run",
    "call",
    "check_call",
    "check_output",
    "Popen",
    "popen",
    "system",
    "exec",
    "execSync",
    "execFile",
    "execFileSync",
    "spawn",
    "spawnSync",
];
/// Programs that write what they are told to.
const WRITERS: &[&str] = &["tee", "mv", "cp", "rm", "truncate", "dd", "patch", "ln", "install"];
/// What makes code of what is no code.
const DECODERS: &[&str] = &[
    "b64decode",
    "a85decode",
    "atob",
    "fromhex",
    "unhexlify",
    "decode",
    "decompress",
    "chr",
    "fromCharCode",
    "pack",
];
/// Calls and parts that change nothing of the last part of a path.
const KEEP: &[&str] = &[
    "Path",
    "pathlib",
    "PurePath",
    "os",
    "path",
    "join",
    "resolve",
    "absolute",
    "abspath",
    "realpath",
    "dirname",
    "parent",
    "parents",
    "cwd",
    "getcwd",
    "process",
    "sys",
    "str",
    "File",
    "expand_path",
    "tempfile",
    "mkdtemp",
    "mkstemp",
    "mktmpdir",
    "gettempdir",
    "tmpdir",
];
/// Where the program is, and words that the line itself has.
const GIVEN: &[&str] = &["__dirname", "__file__", "__dir__", "__DIR__", "argv", "ARGV", "tmp_path"];

type Tokens<'a> = &'a [Token<'a>];

pub(super) struct Program<'a> {
    tokens: Tokens<'a>,
}

/// What stands before a call, and what is between its brackets.
struct Call<'a> {
    of: Tokens<'a>,
    words: Vec<Tokens<'a>>,
}

impl<'a> Call<'a> {
    fn is_of(&self, names: &[&str]) -> bool {
        matches!(self.of.last(), Some(Token::Name(name)) if names.contains(name))
    }

    fn text(&self, at: usize) -> Option<Quoted<'a>> {
        let texts = |token: &Token<'a>| match token {
            Token::Text(quoted) => Some(*quoted),
            _ => None,
        };
        self.words.get(at)?.iter().find_map(texts)
    }
}

impl<'a> Program<'a> {
    pub(super) fn new(tokens: Tokens<'a>) -> Self {
        Self { tokens }
    }

    pub(super) fn computes(&self) -> bool {
        let names = self.tokens.iter().enumerate().filter_map(|(at, token)| match token {
            Token::Name(name) => Some((at, *name)),
            _ => None,
        });
        names.into_iter().any(|(at, name)| self.call(at).is_some_and(|one| self.judge(name, &one)))
    }

    /// The files that calls are given by names that stand there.
    pub(super) fn written(&self) -> Vec<(String, How)> {
        let mut written = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            let Token::Name(name) = token else { continue };
            let Some(call) = self.call(at) else { continue };
            for (words, how) in files(name, &call) {
                written.extend(self.name_in(words, 0).map(|name| (name.to_owned(), how)));
            }
        }
        written
    }

    /// The one name that stands in these words, or in what a name there is set to.
    fn name_in(&self, words: Tokens<'a>, steps: usize) -> Option<&'a str> {
        match words {
            [Token::Text(text)] => {
                (!text.filled && self.is_whole(*text, steps)).then_some(text.text)
            }
            [Token::Name("Path"), Token::Sign('('), inside @ .., Token::Sign(')')]
            | [
                Token::Name("pathlib"),
                Token::Sign('.'),
                Token::Name("Path"),
                Token::Sign('('),
                inside @ ..,
                Token::Sign(')'),
            ] => self.name_in(inside, steps),
            [Token::Name(name)] if steps < STEPS_MAX => {
                let mut values = self.set_to(name);
                let value = values.next()?;
                values.next().is_none().then(|| self.name_in(value, steps + 1))?
            }
            _ => None,
        }
    }

    fn judge(&self, name: &str, call: &Call<'a>) -> bool {
        let listed = |table: &[(&str, &[&str])]| {
            table.iter().any(|(one, of)| *one == name && call.is_of(of))
        };
        let made_up = |at: usize| call.words.get(at).is_some_and(|words| !self.stands(words, 0));
        let bare = call.of.is_empty();
        if matches!(name, "open" | "openSync" | "fopen") {
            return self.opens(call);
        }
        (FIRST.contains(&name) || listed(FIRST_OF)) && made_up(0)
            || (name == "unlink" && bare && made_up(0))
            || (BOTH.contains(&name) || listed(BOTH_OF)) && (made_up(0) || made_up(1))
            || (name == "rename" && bare && (made_up(0) || made_up(1)))
            || (OF_FILE.contains(&name) && !bare && !listed(FIRST_OF) && !self.stands(call.of, 0))
            || (matches!(name, "input" | "FileInput") && has_name(&call.words, "inplace"))
            || (matches!(name, "exec" | "eval") && bare && self.decodes(call))
            || (RUNS.contains(&name) && self.runs(call))
    }

    /// An opened file: is it for writing, by a name that is made up?
    fn opens(&self, call: &Call<'a>) -> bool {
        let filled = |text: Quoted<'_>| text.filled && text.text.starts_with('>');
        match (opened(call), call.words.as_slice()) {
            (Some((words, _)), _) => !self.stands(words, 0),
            (None, [.., [Token::Text(text)]]) if filled(*text) => true,
            // How it is opened is made up as well.
            (None, [name, [Token::Name(_)], ..]) => !self.stands(name, 0),
            _ => false,
        }
    }

    /// Does it run a text that was made of something else?
    fn decodes(&self, call: &Call<'a>) -> bool {
        let Some(words) = call.words.first() else { return false };
        let set = words.iter().filter_map(|token| match token {
            Token::Name(name) => Some(self.set_to(name)),
            _ => None,
        });
        let decoder =
            |token: &Token<'_>| matches!(token, Token::Name(name) if DECODERS.contains(name));
        words.iter().any(decoder) || set.flatten().any(|value| value.iter().any(decoder))
    }

    /// Does it start a program that writes, with a name that is made up?
    fn runs(&self, call: &Call<'a>) -> bool {
        let all = || call.words.iter().flat_map(|words| words.iter());
        let texts = all().filter_map(|token| match token {
            Token::Text(quoted) => Some(quoted.text),
            _ => None,
        });
        let mut words = texts.clone().flat_map(str::split_whitespace);
        let writes = texts.clone().any(|text| text.contains('>'))
            || words.clone().any(|word| WRITERS.contains(&word))
            || words.any(|word| word.starts_with("-i") || word == "--in-place");
        let known = |token: &Token<'a>| match token {
            Token::Text(quoted) => !quoted.filled,
            Token::Name(name) => *name == "True" || !name.starts_with(char::is_lowercase),
            Token::Sign(sign) => !matches!(sign, '+' | '%'),
            Token::Line => true,
        };
        // Words for the call itself are no words of the program.
        let first = call.words.first().copied().unwrap_or_default();
        writes && !first.iter().all(known)
    }

    /// Does this name a file by words that stand there as they are?
    fn stands(&self, words: Tokens<'a>, steps: usize) -> bool {
        let mut joined = false;
        for (at, token) in words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let stands = match token {
                Token::Text(text) => {
                    let whole = !joined || text.text.starts_with(['/', '\\']);
                    whole && !matches!(before, Some(Token::Text(_))) && self.is_whole(*text, steps)
                }
                Token::Name(name) if name.starts_with(|c: char| c.is_ascii_digit()) => true,
                Token::Name(name) => {
                    let after = matches!(words.get(at + 1), Some(Token::Sign('.' | '(')));
                    let part = after || before == Some(&Token::Sign('.'));
                    GIVEN.contains(name)
                        || (part && KEEP.contains(name))
                        || self.is_set_to_a_name(name, steps)
                }
                Token::Sign('+' | '.') => true,
                Token::Sign('[') => {
                    matches!(before, Some(Token::Name("argv" | "ARGV" | "parents")))
                }
                Token::Sign(sign) => matches!(sign, '(' | ')' | ']' | ',' | '/'),
                Token::Line => true,
            };
            if !stands {
                return false;
            }
            joined |= matches!(token, Token::Sign('+'));
        }
        !words.is_empty()
    }

    /// A text in which the last part of a path is as it is written.
    fn is_whole(&self, quoted: Quoted<'a>, steps: usize) -> bool {
        let text = quoted.text;
        let escapes = text.match_indices('\\').any(|(at, _)| {
            text[at + 1..].starts_with(|c: char| c.is_ascii_digit() || "xuUN".contains(c))
        });
        if escapes || !quoted.filled {
            return !escapes;
        }
        let (folder, last) = text.rsplit_once('/').unwrap_or(("", text));
        let names = folder.split(|c: char| !is_of_name(c)).filter(|name| !name.is_empty());
        let literal = |name: &str| !folder.contains(&format!("{{{name}"));
        !last.contains(['{', '$'])
            && names.into_iter().all(|name| {
                literal(name) || GIVEN.contains(&name) || self.is_set_to_a_name(name, steps)
            })
    }

    /// Is that set to nothing but names that stand there?
    fn is_set_to_a_name(&self, name: &str, steps: usize) -> bool {
        let mut values = self.set_to(name).peekable();
        steps < STEPS_MAX
            && values.peek().is_some()
            && values.all(|value| self.stands(value, steps + 1))
    }

    /// Everything that a name is set to, to the ends of the lines.
    fn set_to<'s>(&'s self, name: &'s str) -> impl Iterator<Item = Tokens<'a>> + 's {
        let tokens = self.tokens;
        (0..tokens.len()).filter_map(move |at| {
            let is_it = matches!(&tokens[at], Token::Name(one) if *one == name);
            let sign = |at: usize| match tokens.get(at) {
                Some(Token::Sign(sign)) => Some(*sign),
                _ => None,
            };
            let loops = matches!(tokens.get(at + 1), Some(Token::Name("in" | "of" | "as")));
            match (sign(at + 1), sign(at + 2)) {
                // It takes on one after another of what nobody can tell.
                _ if is_it && loops => Some(&tokens[..0]),
                (Some('+' | '.' | '/'), Some('=')) if is_it => Some(&tokens[..0]),
                (Some('='), after) if is_it && !matches!(after, Some('=' | '>' | '~')) => {
                    let value = &tokens[at + 2..];
                    Some(&value[..end_of_line(value)])
                }
                _ => None,
            }
        })
    }

    /// The call of the name that stands there.
    fn call(&self, at: usize) -> Option<Call<'a>> {
        let tokens = self.tokens;
        let behind = tokens.get(at + 1..)?;
        let inside = match behind.first()? {
            Token::Sign('(') => {
                let end = closing(behind)?;
                &behind[1..end]
            }
            // Ruby and Perl do without.
            Token::Text(_) => &behind[..end_of_line(behind)],
            Token::Name(name) if *name == "my" || name.starts_with(['$', '@']) => {
                &behind[..end_of_line(behind)]
            }
            Token::Name(_) if is_of_ruby(tokens, at) => &behind[..end_of_line(behind)],
            _ => return None,
        };
        Some(Call { of: receiver(tokens, at), words: split(inside) })
    }
}

/// Where the name of a file stands that is opened for writing, and how it is.
fn opened<'a>(call: &Call<'a>) -> Option<(Tokens<'a>, How)> {
    let mode = |at: usize| {
        let text = call.text(at)?;
        let alone = call.words[at].len() <= 3;
        (alone && is_mode(text.text)).then_some((at, text.text))
    };
    // A file may have such a name too: the sign of Perl counts first, then the last.
    let mut all = (0..call.words.len().min(3)).filter_map(mode);
    let (at, mode) =
        all.clone().find(|(_, mode)| mode.starts_with(['>', '+'])).or_else(|| all.next_back())?;
    let how = match mode {
        mode if mode.starts_with(">>") || mode.contains('a') => How::Append,
        mode if mode.contains(['w', 'x', '>']) => How::Create,
        _ => How::Change,
    };
    let words = match at {
        _ if mode.starts_with(['>', '+']) => call.words.get(at + 1)?,
        0 if call.of.is_empty() => return None,
        0 => call.of,
        _ => call.words.first()?,
    };
    Some((words, how))
}

/// The words of a call that name files, and what becomes of these.
fn files<'a>(name: &str, call: &Call<'a>) -> Vec<(Tokens<'a>, How)> {
    let listed =
        |table: &[(&str, &[&str])]| table.iter().any(|(one, of)| *one == name && call.is_of(of));
    let at = |at: usize, how: How| call.words.get(at).map(|words| (*words, how));
    let how = match name {
        _ if name.starts_with("append") => How::Append,
        _ if ["unlink", "rm", "remove", "delete"].iter().any(|one| name.starts_with(one)) => {
            How::Delete
        }
        _ if name.starts_with("truncate") => How::Change,
        _ => How::Create,
    };
    let found = match name {
        "open" | "openSync" | "fopen" => vec![opened(call)],
        "rmtree" => Vec::new(),
        _ if FIRST.contains(&name) || listed(FIRST_OF) => vec![at(0, how)],
        _ if OF_FILE.contains(&name) && !call.of.is_empty() => vec![Some((call.of, how))],
        _ if BOTH.contains(&name) || listed(BOTH_OF) => {
            let moves = name.starts_with("rename") || matches!(name, "replace" | "move" | "mv");
            vec![at(0, How::Delete).filter(|_| moves), at(1, How::Create)]
        }
        _ => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

fn is_mode(text: &str) -> bool {
    let plain = text.len() <= 4
        && text.chars().all(|letter| "rwaxbtU+".contains(letter))
        && text.contains(['w', 'a', 'x', '+']);
    plain || text.starts_with('>') || text.starts_with("+<")
}

fn has_name(words: &[Tokens<'_>], name: &str) -> bool {
    words.iter().flat_map(|one| one.iter()).any(|one| *one == Token::Name(name))
}

/// `File.write f, …`
fn is_of_ruby(tokens: Tokens<'_>, at: usize) -> bool {
    at >= 2
        && tokens[at - 1] == Token::Sign('.')
        && matches!(tokens[at - 2], Token::Name("File" | "IO" | "FileUtils"))
}

/// How deep brackets are after this one.
fn depth_after(token: &Token<'_>, depth: usize) -> usize {
    match token {
        Token::Sign('(' | '[' | '{') => depth + 1,
        Token::Sign(')' | ']' | '}') => depth.saturating_sub(1),
        _ => depth,
    }
}

/// Where the bracket ends that opens first.
fn closing(tokens: Tokens<'_>) -> Option<usize> {
    let mut depth = 0;
    tokens.iter().position(|token| {
        depth = depth_after(token, depth);
        depth == 0
    })
}

fn end_of_line(tokens: Tokens<'_>) -> usize {
    let mut depth = 0;
    let end = tokens.iter().position(|token| {
        let closes = depth == 0 && matches!(token, Token::Sign(')' | ']' | '}'));
        depth = depth_after(token, depth);
        let ends =
            matches!(token, Token::Line | Token::Name("or" | "and" | "do" | "if" | "unless"));
        closes || depth == 0 && ends
    });
    end.unwrap_or(tokens.len())
}

/// The words of a call, parted by commas.
fn split(inside: Tokens<'_>) -> Vec<Tokens<'_>> {
    let mut depth = 0;
    let parts = inside.split(|token| {
        depth = depth_after(token, depth);
        depth == 0 && *token == Token::Sign(',')
    });
    parts.map(|part| part.strip_prefix(&[Token::Name("my")]).unwrap_or(part)).collect()
}

/// What stands before the dot of a call.
fn receiver(tokens: Tokens<'_>, at: usize) -> Tokens<'_> {
    let Some(dot) = at.checked_sub(1).filter(|dot| tokens[*dot] == Token::Sign('.')) else {
        return &[];
    };
    let mut from = dot;
    let mut depth = 0_usize;
    while let Some(before) = from.checked_sub(1) {
        let name = |at: usize| matches!(tokens[at], Token::Name(_) | Token::Text(_));
        match &tokens[before] {
            Token::Sign(')' | ']' | '}') => depth += 1,
            Token::Sign('(' | '[' | '{') if depth == 0 => break,
            Token::Sign('(' | '[' | '{') => depth -= 1,
            _ if depth > 0 => {}
            Token::Sign('.') => {}
            // Two names in a row are two expressions.
            Token::Name(_) if !(from < dot && name(from)) => {}
            _ => break,
        }
        from = before;
    }
    &tokens[from..dot]
}
