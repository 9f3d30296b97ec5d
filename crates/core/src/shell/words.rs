//! Words of a shell line: quotes, escapes, variables and substitutions, as bash reads them.
//!
//! Owns one pass over the bytes of a word into pieces. Invariant: the position only moves on, and
//! what has no end is an error, so that reading costs a fixed number of looks at each byte.

use super::Unparsed;
use super::reader::{End, Reader};
use super::tree::{Change, Parsed, Piece, Script, Word};

/// The longest arithmetic; a longer one is read as commands, and looked through only once.
const ARITHMETIC_BYTES_MAX: usize = 1024;

/// Where a word stands, which says what ends it and what is special in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Between blanks and operators.
    Line,
    /// Between double quotes.
    Quotes,
    /// A here-document, or arithmetic: to the end of the text.
    Body,
    /// After `${name…` up to the brace; the flag tells whether quotes stand around all of it.
    Braces(bool),
}

impl Place {
    fn quoted(self) -> bool {
        !matches!(self, Self::Line | Self::Braces(false))
    }
}

impl Reader<'_> {
    /// The pieces up to what ends them; the end itself is not taken.
    pub(super) fn pieces(&mut self, place: Place) -> Parsed<Word> {
        let mut word = Word::new();
        loop {
            let Some(byte) = self.peek() else {
                let ends = matches!(place, Place::Line | Place::Body);
                return if ends { Ok(word) } else { Err(self.unfinished()) };
            };
            match byte {
                b'"' if place == Place::Quotes => return Ok(word),
                b'}' if matches!(place, Place::Braces(_)) => return Ok(word),
                b'\\' => self.escape(place, &mut word),
                b'\'' if place == Place::Line || place == Place::Braces(false) => {
                    let text = self.single_quoted()?;
                    word.push(Piece::Quoted(text));
                }
                b'"' if place == Place::Line || matches!(place, Place::Braces(_)) => {
                    self.double_quoted(&mut word)?;
                }
                b'$' => self.dollar(place, &mut word)?,
                b'`' => {
                    let script = self.backticks()?;
                    word.push(Piece::Command { script, quoted: place.quoted() });
                }
                b'<' | b'>' if place == Place::Line && self.peek_at(1) == Some(b'(') => {
                    let script = self.nested(2)?;
                    word.push(Piece::Process(script));
                }
                b'(' if place == Place::Line && ends_with_glob(&word) => {
                    self.extended_glob()?;
                    plain(&mut word, "*", false);
                }
                _ if place == Place::Line && is_meta(byte) => return Ok(word),
                _ => self.run(place, &mut word),
            }
        }
    }

    /// Bytes that mean nothing here.
    fn run(&mut self, place: Place, word: &mut Word) {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            let special = matches!(byte, b'\\' | b'\'' | b'"' | b'$' | b'`' | b'}');
            if special || place == Place::Line && is_meta(byte) {
                break;
            }
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        plain(word, text, place.quoted());
    }

    fn escape(&mut self, place: Place, word: &mut Word) {
        let Some(next) = self.text[self.at + 1..].chars().next() else {
            plain(word, "\\", true);
            self.at += 1;
            return;
        };
        let special = match place {
            Place::Line | Place::Braces(false) => true,
            Place::Quotes | Place::Braces(true) => matches!(next, '$' | '`' | '"' | '\\' | '\n'),
            Place::Body => matches!(next, '$' | '`' | '\\' | '\n'),
        };
        if !special {
            plain(word, "\\", true);
            self.at += 1;
            return;
        }
        let start = self.at + 1;
        self.at = start + next.len_utf8();
        if next != '\n' {
            plain(word, &self.text[start..self.at], true);
        }
    }

    fn single_quoted(&mut self) -> Parsed<String> {
        let start = self.at + 1;
        let length = self.text[start..].find('\'').ok_or_else(|| self.unfinished())?;
        self.at = start + length + 1;
        Ok(self.text[start..start + length].to_owned())
    }

    fn double_quoted(&mut self, word: &mut Word) -> Parsed<()> {
        self.at += 1;
        // Empty quotes are a word too.
        word.push(Piece::Quoted(String::new()));
        self.deeper(|reader| {
            word.extend(reader.pieces(Place::Quotes)?);
            reader.at += 1;
            Ok(())
        })
    }

    fn dollar(&mut self, place: Place, word: &mut Word) -> Parsed<()> {
        let quoted = place.quoted();
        match self.peek_at(1) {
            Some(b'(') if self.peek_at(2) == Some(b'(') => self.arithmetic(quoted, word),
            Some(b'(') => {
                let script = self.nested(2)?;
                word.push(Piece::Command { script, quoted });
                Ok(())
            }
            Some(b'{') => self.deeper(|reader| reader.parameter(quoted, word)),
            Some(b'\'') if place == Place::Line => {
                self.at += 2;
                let piece = self.ansi()?;
                word.push(piece);
                Ok(())
            }
            Some(b'"') if place == Place::Line => {
                self.at += 1;
                self.double_quoted(word)
            }
            Some(byte) if is_name_start(byte) => {
                self.at += 1;
                let name = self.name().to_owned();
                word.push(Piece::Variable { name, change: Change::None, quoted });
                Ok(())
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.at += 2;
                let name = char::from(byte).to_string();
                word.push(Piece::Variable { name, change: Change::None, quoted });
                Ok(())
            }
            _ => {
                self.at += 1;
                plain(word, "$", true);
                Ok(())
            }
        }
    }

    /// `$(( … ))`; a command when its brackets do not close together.
    fn arithmetic(&mut self, quoted: bool, word: &mut Word) -> Parsed<()> {
        let Some(inside) = self.double_brackets(self.at + 3) else {
            let script = self.nested(2)?;
            word.push(Piece::Command { script, quoted });
            return Ok(());
        };
        let inside = self.apart(&inside, |reader| reader.pieces(Place::Body))?;
        word.push(Piece::Unknown(inside));
        Ok(())
    }

    /// What stands before the `))` that closes; goes behind it. None when there is none.
    pub(super) fn double_brackets(&mut self, start: usize) -> Option<String> {
        let (mut depth, mut at) = (0_usize, start);
        let most = start + ARITHMETIC_BYTES_MAX;
        while let Some(byte) = self.bytes.get(at).filter(|_| at < most) {
            match byte {
                b'(' => depth += 1,
                b')' if depth > 0 => depth -= 1,
                b')' if self.bytes.get(at + 1) == Some(&b')') => {
                    self.at = at + 2;
                    return Some(self.text[start..at].to_owned());
                }
                b')' => return None,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// `${ … }`.
    fn parameter(&mut self, quoted: bool, word: &mut Word) -> Parsed<()> {
        self.at += 2;
        let special = self.peek().is_some_and(|byte| b"@*?-$!".contains(&byte));
        let name = match self.peek() {
            Some(byte) if is_name_start(byte) => self.name().to_owned(),
            Some(byte) if byte.is_ascii_digit() => {
                self.at += 1;
                char::from(byte).to_string()
            }
            Some(byte) if special && self.peek_at(1) == Some(b'}') => {
                self.at += 1;
                char::from(byte).to_string()
            }
            _ => String::new(),
        };
        let rest = &self.text[self.at..];
        let operators = [":-", ":=", "##", "%%", "#", "%", "-"];
        let operator = operators.into_iter().find(|one| rest.starts_with(one)).unwrap_or("");
        self.at += operator.len();
        let literal_quotes = quoted && matches!(operator, ":-" | ":=" | "-");
        let inside = self.pieces(Place::Braces(literal_quotes))?;
        self.at += 1;
        let text = literal(&inside);
        // Whoever looks for assignments finds this one.
        let mut inside = inside;
        if operator == ":=" {
            inside.push(Piece::Quoted("=".to_owned()));
        }
        let change = match (operator, text.as_deref()) {
            ("", Some("")) => Some(Change::None),
            (":-" | "-", _) => None,
            ("%", Some("/*")) => Some(Change::WithoutLastSegment),
            ("##", Some("*/")) => Some(Change::LastSegment),
            ("%" | "%%", Some(end)) if is_fixed(end) => Some(Change::WithoutEnd(end.to_owned())),
            ("#" | "##", Some(start)) if is_fixed(start) => {
                Some(Change::WithoutStart(start.to_owned()))
            }
            _ => None,
        };
        word.push(match change {
            Some(change) if !name.is_empty() => Piece::Variable { name, change, quoted },
            None if !name.is_empty() && matches!(operator, ":-" | "-") => {
                Piece::Variable { name, change: Change::Default(inside), quoted }
            }
            _ => Piece::Unknown(inside),
        });
        Ok(())
    }

    /// `$( … )` and the like: a script of its own up to the bracket that closes it.
    pub(super) fn nested(&mut self, opening: usize) -> Parsed<Script> {
        self.at += opening;
        let pending = std::mem::take(&mut self.pending);
        let script = self.deeper(|reader| reader.script(End::Bracket))?;
        // A here-document whose body would begin behind the bracket.
        if !self.pending.is_empty() {
            return Err(self.unfinished());
        }
        self.pending = pending;
        self.at += 1;
        Ok(script)
    }

    fn backticks(&mut self) -> Parsed<Script> {
        self.at += 1;
        let mut inside = String::new();
        loop {
            let rest = &self.text[self.at..];
            let length = rest.find(['`', '\\']).ok_or_else(|| self.unfinished())?;
            inside.push_str(&rest[..length]);
            self.at += length + 1;
            if rest.as_bytes().get(length) == Some(&b'`') {
                break;
            }
            match self.peek() {
                Some(byte @ (b'`' | b'\\' | b'$')) => {
                    inside.push(char::from(byte));
                    self.at += 1;
                }
                _ => inside.push('\\'),
            }
        }
        self.apart(&inside, |reader| reader.script(End::Text))
    }

    /// `$'…'`, behind the opening.
    fn ansi(&mut self) -> Parsed<Piece> {
        let mut bytes = Vec::new();
        let mut ended = false;
        loop {
            let byte = self.peek().ok_or_else(|| self.unfinished())?;
            self.at += 1;
            match byte {
                b'\'' => break,
                b'\\' => {
                    let before = bytes.len();
                    self.ansi_escape(&mut bytes)?;
                    // A zero ends the string, as C has it.
                    if !ended && bytes.get(before) == Some(&0) {
                        bytes.truncate(before);
                        ended = true;
                    }
                    if ended {
                        bytes.truncate(before);
                    }
                }
                _ if ended => {}
                _ => bytes.push(byte),
            }
        }
        Ok(String::from_utf8(bytes).map_or_else(|_| Piece::Unknown(Word::new()), Piece::Quoted))
    }

    fn ansi_escape(&mut self, bytes: &mut Vec<u8>) -> Parsed<()> {
        let byte = self.peek().ok_or_else(|| self.unfinished())?;
        self.at += 1;
        let simple = match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'e' | b'E' => 27,
            b'f' => 12,
            b'v' => 11,
            b'\\' | b'\'' | b'"' | b'?' => byte,
            b'x' => return self.ansi_number(16, 2, byte, bytes),
            b'u' => return self.ansi_number(16, 4, byte, bytes),
            b'U' => return self.ansi_number(16, 8, byte, bytes),
            b'0'..=b'7' => {
                self.at -= 1;
                return self.ansi_number(8, 3, byte, bytes);
            }
            b'c' => {
                let next = self.peek().ok_or_else(|| self.unfinished())?;
                self.at += 1;
                next & 0x1f
            }
            _ => {
                bytes.push(b'\\');
                byte
            }
        };
        bytes.push(simple);
        Ok(())
    }

    fn ansi_number(&mut self, base: u32, most: usize, by: u8, bytes: &mut Vec<u8>) -> Parsed<()> {
        let digits = self.bytes[self.at..].iter().take(most);
        let length = digits.take_while(|byte| char::from(**byte).is_digit(base)).count();
        let number = u32::from_str_radix(&self.text[self.at..self.at + length], base);
        self.at += length;
        match number {
            Err(_) => bytes.extend([b'\\', by]),
            Ok(number) if matches!(by, b'u' | b'U') => {
                let letter = char::from_u32(number).unwrap_or('\u{fffd}');
                bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes());
            }
            // Three octal digits hold more than a byte does; the shell takes the lower eight bits.
            Ok(number) => bytes.push((number & 0xff) as u8),
        }
        Ok(())
    }

    /// `@( … )`: what it matches counts as anything within a segment.
    fn extended_glob(&mut self) -> Parsed<()> {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => depth += 1,
                b')' if depth == 1 => return Ok(()),
                b')' => depth -= 1,
                b'$' | b'`' | b'\'' | b'"' | b'\\' | b'/' => {
                    return Err(Unparsed::Unexpected { at: self.at - 1 });
                }
                _ => {}
            }
        }
        Err(self.unfinished())
    }

    pub(super) fn name(&mut self) -> &str {
        let start = self.at;
        let part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        self.at += self.bytes[start..].iter().take_while(part).count();
        &self.text[start..self.at]
    }
}

fn plain(word: &mut Word, text: &str, quoted: bool) {
    match word.last_mut() {
        Some(Piece::Plain(before)) if !quoted => before.push_str(text),
        Some(Piece::Quoted(before)) if quoted => before.push_str(text),
        _ if quoted => word.push(Piece::Quoted(text.to_owned())),
        _ => word.push(Piece::Plain(text.to_owned())),
    }
}

fn ends_with_glob(word: &Word) -> bool {
    matches!(word.last(), Some(Piece::Plain(text)) if text.ends_with(['?', '*', '+', '@', '!']))
}

/// The text of a word that says it all itself.
pub(super) fn literal(word: &Word) -> Option<String> {
    let mut whole = String::new();
    for piece in word {
        match piece {
            Piece::Plain(text) | Piece::Quoted(text) => whole.push_str(text),
            _ => return None,
        }
    }
    Some(whole)
}

fn is_fixed(text: &str) -> bool {
    !text.is_empty() && !text.contains(['*', '?', '[', '(', '{'])
}

pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}
