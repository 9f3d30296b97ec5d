//! The words of a program, whatever its language: names, texts in quotes, and signs.
//!
//! Owns what is common to scripting languages. Comments are left out. A quote that is not closed
//! ends with its line, so that one that was no quote spoils nothing but that line.

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name, with the sign that some languages put before it.
    Name(&'a str),
    /// A text in quotes.
    Text(Quoted<'a>),
    Sign(char),
    Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quoted<'a> {
    pub(super) text: &'a str,
    /// Values may stand in it: `f"{x}"`, `` `${x}` ``, `"#{x}"`, `"$x"`.
    pub(super) filled: bool,
}

pub(super) fn read(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let fresh = matches!(tokens.last(), None | Some(Token::Line));
        let comment = (letter == '#' && (fresh || rest[1..].starts_with([' ', '!'])))
            || rest.starts_with("//")
            || (fresh && rest.starts_with("--"));
        let long = match letter {
            _ if comment => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '\n' | ';' => {
                tokens.push(Token::Line);
                1
            }
            '\'' | '"' | '`' => {
                let before = &text[..text.len() - rest.len()];
                let marks = match tokens.last() {
                    Some(Token::Name(name)) if before.ends_with(*name) && is_prefix(name) => *name,
                    _ => "",
                };
                tokens.truncate(tokens.len() - usize::from(!marks.is_empty()));
                let (quoted, long) = quoted(rest, letter, marks);
                tokens.push(Token::Text(quoted));
                long
            }
            letter if is_of_name(letter) || letter == '$' || letter == '@' => {
                let behind = |(at, one): &(usize, char)| *at > 0 && !is_of_name(*one);
                let long = rest.char_indices().find(behind).map_or(rest.len(), |(at, _)| at);
                tokens.push(match long == 1 && !is_of_name(letter) {
                    true => Token::Sign(letter),
                    false => Token::Name(&rest[..long]),
                });
                long
            }
            letter => {
                if !letter.is_whitespace() {
                    tokens.push(Token::Sign(letter));
                }
                letter.len_utf8()
            }
        };
        rest = &rest[long..];
    }
    tokens
}

pub(super) fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Letters that Python puts before quotes.
fn is_prefix(name: &str) -> bool {
    name.len() <= 2 && name.chars().all(|letter| "rbfuRBFU".contains(letter))
}

/// A text in quotes at the start of this, with letters before them, and how long it is.
fn quoted<'a>(rest: &'a str, quote: char, prefix: &str) -> (Quoted<'a>, usize) {
    let triple = match quote {
        '"' => "\"\"\"",
        _ => "'''",
    };
    let (open, ends_with_line) = match rest.starts_with(triple) {
        true => (3, false),
        false => (1, quote != '`'),
    };
    let body = &rest[open..];
    let mut end = body.len();
    let mut close = 0;
    let mut letters = body.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '\n' if ends_with_line => {
                end = at;
                break;
            }
            _ if letter == quote && (open == 1 || body[at..].starts_with(triple)) => {
                (end, close) = (at, open);
                break;
            }
            _ => {}
        }
    }
    let text = &body[..end];
    let filled = (prefix.contains(['f', 'F']) && text.contains('{'))
        || (quote == '`' && text.contains("${"))
        || (quote == '"' && (text.contains("#{") || has_variable(text)));
    (Quoted { text, filled }, open + end + close)
}

/// `$name` or `@name`, as Perl and PHP put them.
fn has_variable(text: &str) -> bool {
    let starts = |at: usize| text[at + 1..].starts_with(|c: char| c.is_alphabetic() || c == '{');
    text.match_indices('$').any(|(at, _)| starts(at))
}
