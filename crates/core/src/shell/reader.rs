//! Commands of a shell line: lists, pipelines, compound commands, redirections, here-documents.
//!
//! Owns the grammar. It is a plain descent with a limit on its depth ([`super::DEPTH_MAX`]), so no
//! text can exhaust the stack; `words` reads what stands between the operators.

use std::rc::Rc;

use super::redirects::Pending;
use super::tree::{Assignment, Block, Item, Link, Node, Parsed, Piece, Script, Simple, Word};
use super::words::{Place, is_meta, is_name_start, literal};
use super::{DEPTH_MAX, STEPS_MAX, Unparsed};

#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) pending: Vec<Pending>,
    depth: usize,
    /// Words and commands that were read.
    steps: usize,
}

/// What ends a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Text,
    /// `)`.
    Bracket,
    /// One of these words where a command could stand.
    Words(&'static [&'static str]),
    /// `;;` and its like, or `esac`.
    Arm,
}

/// Reads a whole text; `depth` counts what already stands around it.
pub(super) fn read(text: &str, depth: usize) -> Parsed<Script> {
    let mut reader = Reader::new(text, depth);
    let script = reader.script(End::Text)?;
    reader.here_documents()?;
    Ok(script)
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, depth: usize) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, pending: Vec::new(), depth, steps: 0 }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    pub(super) fn starts(&self, text: &str) -> bool {
        self.bytes[self.at..].starts_with(text.as_bytes())
    }

    pub(super) fn unfinished(&self) -> Unparsed {
        Unparsed::Unfinished
    }

    pub(super) fn unexpected<T>(&self) -> Parsed<T> {
        Err(Unparsed::Unexpected { at: self.at })
    }

    /// One more of what is read.
    fn step(&mut self) -> Parsed<()> {
        self.steps += 1;
        if self.steps > STEPS_MAX { Err(Unparsed::TooMuch) } else { Ok(()) }
    }

    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Unparsed::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads another text as part of this one.
    pub(super) fn apart<T>(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut Reader<'_>) -> Parsed<T>,
    ) -> Parsed<T> {
        let mut inner = Reader { steps: self.steps, ..Reader::new(text, self.depth) };
        let result = inner.deeper(|inner| {
            let result = read(inner)?;
            inner.here_documents()?;
            Ok(result)
        });
        self.steps = inner.steps;
        result
    }

    /// Goes over blanks, continued lines and a comment.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                Some(b'#') => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().take_while(|byte| **byte != b'\n').count();
                }
                _ => return,
            }
        }
    }

    fn skip_lines(&mut self) -> Parsed<()> {
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.at += 1;
            self.here_documents()?;
        }
    }

    /// Commands up to the end, which is not taken.
    pub(super) fn script(&mut self, end: End) -> Parsed<Script> {
        let mut script = Script::new();
        let mut link = Link::Always;
        loop {
            self.skip_lines()?;
            if self.is_end(end)? {
                return if link == Link::Always { Ok(script) } else { self.unexpected() };
            }
            if self.peek() == Some(b';') && link == Link::Always {
                self.at += 1;
                continue;
            }
            self.step()?;
            let pipeline = self.pipeline()?;
            self.skip_blanks();
            let mut item = Item { link, pipeline, background: false };
            link = Link::Always;
            match self.peek() {
                Some(b'&') if self.starts("&&") => (link, self.at) = (Link::And, self.at + 2),
                Some(b'|') if self.starts("||") => (link, self.at) = (Link::Or, self.at + 2),
                Some(b'&') => {
                    item.background = true;
                    self.at += 1;
                    // zsh: `&|` and `&!`.
                    self.at += usize::from(matches!(self.peek(), Some(b'|' | b'!')));
                }
                Some(b';') if end != End::Arm || !self.is_arm_end() => self.at += 1,
                Some(b'\n' | b';' | b')') | None => {}
                // A compound command before the word that closes what is around it.
                Some(_) if self.is_end(end)? => {}
                Some(_) => return self.unexpected(),
            }
            script.push(item);
        }
    }

    fn is_arm_end(&self) -> bool {
        self.starts(";;") || self.starts(";&") || self.starts(";|")
    }

    fn is_end(&self, end: End) -> Parsed<bool> {
        let ends = match (self.peek(), end) {
            (None, End::Text) => true,
            (None, _) => return Err(self.unfinished()),
            (Some(b')'), End::Bracket) => true,
            (Some(b')'), _) => return self.unexpected(),
            (Some(_), End::Words(words)) => words.contains(&self.reserved()),
            (Some(_), End::Arm) => self.is_arm_end() || self.reserved() == "esac",
            (Some(_), End::Text | End::Bracket) => false,
        };
        Ok(ends)
    }

    /// The letters up to a blank or operator, which may be a word of the grammar.
    fn reserved(&self) -> &'a str {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take(9).take_while(|byte| !is_meta(**byte)).count();
        self.text.get(self.at..self.at + length).unwrap_or("")
    }

    fn take(&mut self, word: &str) -> Parsed<()> {
        if self.reserved() != word {
            return if self.peek().is_none() { Err(self.unfinished()) } else { self.unexpected() };
        }
        self.at += word.len();
        Ok(())
    }

    fn pipeline(&mut self) -> Parsed<Vec<Node>> {
        let mut nodes = Vec::new();
        loop {
            self.skip_lines()?;
            match self.reserved() {
                "!" => {
                    self.at += 1;
                    continue;
                }
                "time" => {
                    self.at += 4;
                    self.skip_blanks();
                    if self.reserved() == "-p" {
                        self.at += 2;
                    }
                    continue;
                }
                _ => {}
            }
            nodes.push(self.deeper(Self::command)?);
            self.skip_blanks();
            if self.starts("|&") {
                self.at += 2;
            } else if self.peek() == Some(b'|') && !self.starts("||") {
                self.at += 1;
            } else {
                return Ok(nodes);
            }
        }
    }

    fn command(&mut self) -> Parsed<Node> {
        if self.starts("((") {
            let before = self.at;
            if let Some(inside) = self.double_brackets(before + 2) {
                let word = self.apart(&inside, |reader| reader.pieces(Place::Body))?;
                let redirects = self.redirects()?;
                let looked = vec![vec![Node::Looked(vec![vec![Piece::Unknown(word)]]).into()]];
                return Ok(Node::Block { kind: Block::Group, parts: looked, redirects });
            }
        }
        match self.reserved() {
            _ if self.peek() == Some(b'(') => {
                self.at += 1;
                let body = self.script(End::Bracket)?;
                self.at += 1;
                self.block(Block::Subshell, vec![body])
            }
            "{" => {
                let body = self.between("{", &["}"])?;
                self.block(Block::Group, vec![body])
            }
            "if" => self.choice(),
            "while" | "until" => {
                self.at += 5;
                let looked = self.script(End::Words(&["do"]))?;
                let body = self.between("do", &["done"])?;
                self.block(Block::Loop, vec![looked, body])
            }
            "for" | "select" => self.loop_over(),
            "case" => self.case(),
            "[[" => self.test(),
            "function" => {
                self.at += 8;
                self.skip_blanks();
                let name = literal(&self.pieces(Place::Line)?).unwrap_or_default();
                self.skip_blanks();
                if self.starts("()") {
                    self.at += 2;
                }
                self.function(name)
            }
            "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "}" => self.unexpected(),
            _ => self.simple(),
        }
    }

    /// A script between two words of the grammar, both taken.
    fn between(&mut self, open: &str, close: &'static [&'static str]) -> Parsed<Script> {
        self.take(open)?;
        let script = self.script(End::Words(close))?;
        self.at += self.reserved().len();
        Ok(script)
    }

    fn block(&mut self, kind: Block, parts: Vec<Script>) -> Parsed<Node> {
        let redirects = self.redirects()?;
        Ok(Node::Block { kind, parts, redirects })
    }

    fn choice(&mut self) -> Parsed<Node> {
        let mut parts = Vec::new();
        self.at += 2;
        loop {
            parts.push(self.script(End::Words(&["then"]))?);
            self.take("then")?;
            parts.push(self.script(End::Words(&["elif", "else", "fi"]))?);
            let word = self.reserved();
            self.at += word.len();
            if word == "else" {
                parts.push(self.script(End::Words(&["fi"]))?);
                self.at += 2;
            }
            if word != "elif" {
                return self.block(Block::Choice, parts);
            }
        }
    }

    fn loop_over(&mut self) -> Parsed<Node> {
        self.at += self.reserved().len();
        self.skip_blanks();
        let (mut name, mut words) = (String::new(), None);
        if self.starts("((") {
            let inside = self.double_brackets(self.at + 2).ok_or_else(|| self.unfinished())?;
            let word = self.apart(&inside, |reader| reader.pieces(Place::Body))?;
            words = Some(vec![vec![Piece::Unknown(word)]]);
        } else {
            name = self.name().to_owned();
            self.skip_lines()?;
            if self.reserved() == "in" {
                self.at += 2;
                words = Some(self.words_of_line()?);
            }
        }
        self.skip_lines()?;
        if self.peek() == Some(b';') {
            self.at += 1;
            self.skip_lines()?;
        }
        let body = match self.reserved() {
            "{" => self.between("{", &["}"])?,
            _ => self.between("do", &["done"])?,
        };
        let redirects = self.redirects()?;
        Ok(Node::For { name, words, body, redirects })
    }

    fn words_of_line(&mut self) -> Parsed<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some(b';' | b'\n' | b'&' | b'|' | b')' | b'(') => return Ok(words),
                Some(b'<' | b'>') if self.peek_at(1) != Some(b'(') => return self.unexpected(),
                Some(_) => {
                    self.step()?;
                    words.push(self.pieces(Place::Line)?);
                }
            }
        }
    }

    fn case(&mut self) -> Parsed<Node> {
        self.at += 4;
        self.skip_blanks();
        let mut looked = vec![self.pieces(Place::Line)?];
        self.skip_lines()?;
        self.take("in")?;
        let mut parts = Vec::new();
        loop {
            self.skip_lines()?;
            if self.reserved() == "esac" {
                self.at += 4;
                break;
            }
            self.at += usize::from(self.peek() == Some(b'('));
            loop {
                self.skip_blanks();
                looked.push(self.pieces(Place::Line)?);
                self.skip_blanks();
                match self.peek() {
                    Some(b'|') => self.at += 1,
                    Some(b')') => break,
                    None => return Err(self.unfinished()),
                    Some(_) => return self.unexpected(),
                }
            }
            self.at += 1;
            parts.push(self.script(End::Arm)?);
            if self.peek() == Some(b';') {
                self.at += if self.starts(";;&") { 3 } else { 2 };
            }
        }
        parts.insert(0, vec![Node::Looked(looked).into()]);
        self.block(Block::Choice, parts)
    }

    fn test(&mut self) -> Parsed<Node> {
        self.at += 2;
        let mut looked = Vec::new();
        loop {
            self.skip_lines()?;
            match self.peek() {
                None => return Err(self.unfinished()),
                Some(b'&' | b'|' | b'<' | b'>' | b'(' | b')' | b';') => self.at += 1,
                Some(_) if self.reserved() == "]]" => {
                    self.at += 2;
                    let parts = vec![vec![Node::Looked(looked).into()]];
                    return self.block(Block::Group, parts);
                }
                Some(_) => looked.push(self.pieces(Place::Line)?),
            }
        }
    }

    fn function(&mut self, name: String) -> Parsed<Node> {
        self.skip_lines()?;
        let body = Rc::new(self.deeper(Self::command)?);
        Ok(Node::Function { name, body })
    }

    fn simple(&mut self) -> Parsed<Node> {
        let mut simple = Simple::default();
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            match self.peek() {
                Some(b'(') if simple.words.len() == 1 && simple.redirects.is_empty() => {
                    return self.called_name(&simple.words);
                }
                Some(b'(') => return self.unexpected(),
                Some(b'<' | b'>') => {}
                Some(byte) if is_meta(byte) => break,
                None => break,
                Some(_) => {}
            }
            match self.assignment(&simple)? {
                Some(assignment) => simple.assigned.push(assignment),
                None => {
                    self.step()?;
                    let mut word = self.pieces(Place::Line)?;
                    self.array_behind(&mut word)?;
                    simple.words.push(word);
                }
            }
        }
        let empty = simple.words.is_empty() && simple.assigned.is_empty();
        if empty && simple.redirects.is_empty() {
            return if self.peek().is_none() { Err(self.unfinished()) } else { self.unexpected() };
        }
        Ok(Node::Simple(simple))
    }

    /// `name ( )` and its body.
    fn called_name(&mut self, words: &[Word]) -> Parsed<Node> {
        let name = words.first().and_then(literal).unwrap_or_default();
        self.at += 1;
        self.skip_blanks();
        if self.peek() != Some(b')') || name.is_empty() {
            return self.unexpected();
        }
        self.at += 1;
        self.function(name)
    }

    fn assignment(&mut self, simple: &Simple) -> Parsed<Option<Assignment>> {
        if !simple.words.is_empty() || !self.peek().is_some_and(is_name_start) {
            return Ok(None);
        }
        let start = self.at;
        let name = self.name().to_owned();
        let mut known = true;
        let mut looked = Vec::new();
        if self.peek() == Some(b'[') {
            // To the end of the word and no further, or many such words would cost too much.
            let rest = &self.bytes[self.at..];
            let length = rest.iter().take_while(|byte| !is_meta(**byte)).count();
            let word = &self.text[self.at..self.at + length];
            match word.find("]=").or_else(|| word.find("]+=")).map(|length| &word[1..length]) {
                Some(inside) => {
                    self.at += inside.len() + 2;
                    looked.push(self.apart(inside, |r| r.pieces(Place::Body))?);
                    known = false;
                }
                None => {
                    self.at = start;
                    return Ok(None);
                }
            }
        }
        if self.starts("+=") {
            known = false;
            self.at += 1;
        }
        if self.peek() != Some(b'=') {
            self.at = start;
            return Ok(None);
        }
        self.at += 1;
        let mut value = Word::new();
        if self.peek() == Some(b'(') {
            looked.extend(self.array()?);
            known = false;
        } else {
            value = self.pieces(Place::Line)?;
        }
        if !known {
            looked.push(std::mem::take(&mut value));
        }
        Ok(Some(Assignment { name, value: known.then_some(value), looked }))
    }

    /// `declare -a name=( … )`: the brackets belong to the word.
    fn array_behind(&mut self, word: &mut Word) -> Parsed<()> {
        let open = matches!(word.last(), Some(Piece::Plain(text)) if text.ends_with('='));
        if open && self.peek() == Some(b'(') {
            let inside = self.array()?.into_iter().flatten().collect();
            word.push(Piece::Unknown(inside));
        }
        Ok(())
    }

    fn array(&mut self) -> Parsed<Vec<Word>> {
        self.at += 1;
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            words.extend(self.words_of_line()?);
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    return Ok(words);
                }
                Some(b'\n') => {}
                None => return Err(self.unfinished()),
                Some(_) => return self.unexpected(),
            }
        }
    }
}

impl From<Node> for Item {
    fn from(node: Node) -> Self {
        Self { link: Link::Always, pipeline: vec![node], background: false }
    }
}
