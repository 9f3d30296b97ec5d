//! Rust text as tokens, as far as the rules need it.
//!
//! Owns what is code and what is not: comments, strings with escapes, raw strings, bytes,
//! characters against lifetimes. It knows no grammar. Text that is cut short (an open string or
//! comment) ends at the end of the file: the compiler is the one to complain.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier, a keyword or a number.
    Word,
    /// One character of punctuation.
    Mark,
    /// A string, a byte string or a character.
    Literal,
    Lifetime,
    /// A comment, documentation included.
    Comment,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// The line it begins on, from 1.
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark && self.text.starts_with(mark)
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }
}

/// All tokens in order. White space is dropped.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let (mut at, mut line) = (0, 1);
    let mut tokens = Vec::new();
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() {
            line += usize::from(byte == b'\n');
            at += 1;
            continue;
        }
        let (kind, end) = token_at(bytes, at);
        let piece = text.get(at..end).unwrap_or_default();
        tokens.push(Token { kind, text: piece, line });
        line += piece.matches('\n').count();
        at = end;
    }
    tokens
}

/// The kind of the token that begins here, and where it ends.
fn token_at(bytes: &[u8], at: usize) -> (Kind, usize) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        return (Kind::Comment, at + length);
    }
    if rest.starts_with(b"/*") {
        return (Kind::Comment, at + block_comment(rest));
    }
    if let Some(length) = literal(rest) {
        return (Kind::Literal, at + length);
    }
    if rest[0] == b'\'' {
        let length = 1 + rest[1..].iter().take_while(|byte| is_word(**byte)).count();
        return (Kind::Lifetime, at + length);
    }
    if is_word(rest[0]) {
        // `r#fn` is a name, not the keyword.
        let raw = if rest.starts_with(b"r#") { 2 } else { 0 };
        let length = raw + rest[raw..].iter().take_while(|byte| is_word(**byte)).count();
        return (Kind::Word, at + length);
    }
    (Kind::Mark, at + 1)
}

/// Letters of other scripts are bytes above 127, and may stand in names.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of a block comment; they nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 && at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if rest[at..].starts_with(b"*/") {
            (at, depth) = (at + 2, depth - 1);
        } else {
            at += 1;
        }
    }
    at
}

/// The length of the string or character that begins here, if one does.
fn literal(rest: &[u8]) -> Option<usize> {
    let prefix = match rest {
        [b'b' | b'c', b'r', b'"' | b'#', ..] => 2,
        [b'b' | b'c', b'"', ..] | [b'b', b'\'', ..] | [b'r', b'"' | b'#', ..] => 1,
        _ => 0,
    };
    let body = &rest[prefix..];
    let raw = prefix > 0 && rest[prefix - 1] == b'r';
    let length = match body.first()? {
        b'"' | b'#' if raw => raw_string(body)?,
        b'"' => escaped(body, b'"'),
        b'\'' if prefix > 0 || is_character(body) => escaped(body, b'\''),
        _ => return None,
    };
    Some(prefix + length)
}

/// `"…"`, `#"…"#` and so on; none for a raw name such as `r#fn`.
fn raw_string(body: &[u8]) -> Option<usize> {
    let hashes = body.iter().take_while(|byte| **byte == b'#').count();
    if body.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut at = hashes + 1;
    while at < body.len() {
        let closes = body[at] == b'"' && body.len() - at > hashes;
        if closes && body[at + 1..=at + hashes].iter().all(|byte| *byte == b'#') {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(body.len())
}

fn escaped(body: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < body.len() {
        match body[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    body.len()
}

/// A quote opens a character when an escape follows, or a quote after exactly one character:
/// `'a'` is one, `'a` is a lifetime.
fn is_character(body: &[u8]) -> bool {
    let length = match body.get(1) {
        None | Some(b'\'') => return false,
        Some(b'\\') => return true,
        Some(0xf0..) => 4,
        Some(0xe0..) => 3,
        Some(0xc0..) => 2,
        Some(_) => 1,
    };
    body.get(1 + length) == Some(&b'\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let show = |token: &Token<'_>| {
            let kind = match token.kind {
                Kind::Word => "w",
                Kind::Mark => "m",
                Kind::Literal => "s",
                Kind::Lifetime => "t",
                Kind::Comment => "c",
            };
            format!("{}{kind}:{}", token.line, token.text.replace('\n', "|"))
        };
        tokens(text).iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_looks_like_code_in_strings_and_comments_is_not() {
        let check = |text: &str, expected: &str| assert_eq!(shown(text), expected, "{text}");
        check("a // {\nb", "1w:a 1c:// { 2w:b");
        check("/* { /* } */ \n */ x", "1c:/* { /* } */ | */ 2w:x");
        check(r#" "a\"{" x "#, r#"1s:"a\"{" 1w:x"#);
        check(r#" "\\" x "#, r#"1s:"\\" 1w:x"#);
        check("\"a\nb\" x", "1s:\"a|b\" 2w:x");
        check(r##"r"\" x"##, r##"1s:r"\" 1w:x"##);
        check(r###"br#"a"{"# x"###, r###"1s:br#"a"{"# 1w:x"###);
        check(r###"r##"a"#"## x"###, r###"1s:r##"a"#"## 1w:x"###);
        check(r#"c"{" b"{" x"#, r#"1s:c"{" 1s:b"{" 1w:x"#);
        check("r#fn x", "1w:r#fn 1w:x");
    }

    #[test]
    fn characters_and_lifetimes_differ() {
        let check = |text: &str, expected: &str| assert_eq!(shown(text), expected, "{text}");
        check("'{' '\\'' b'{' '\"' x", "1s:'{' 1s:'\\'' 1s:b'{' 1s:'\"' 1w:x");
        check("'é' '→' '🦀' x", "1s:'é' 1s:'→' 1s:'🦀' 1w:x");
        check("&'a str '_ 'static", "1m:& 1t:'a 1w:str 1t:'_ 1t:'static");
        check("'\\u{7b}' x", "1s:'\\u{7b}' 1w:x");
        check("f::<'a>('b')", "1w:f 1m:: 1m:: 1m:< 1t:'a 1m:> 1m:( 1s:'b' 1m:)");
    }

    #[test]
    fn text_cut_short_ends_with_the_file() {
        for text in ["\"abc", "/* a", "r#\"abc\"", "'", "b'", "r#", "\"\\", "'\\", "b", "br"] {
            let total: usize = tokens(text).iter().map(|token| token.text.len()).sum();
            assert_eq!(total, text.len(), "{text}");
        }
    }
}
