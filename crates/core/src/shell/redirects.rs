//! Redirections, and here-documents, whose bodies stand after the line that names them.
//!
//! Owns their reading. Invariant: a body is taken exactly where the shell takes it, at the first
//! line break after its redirection, so what stands in it is never read as commands.

use std::cell::OnceCell;
use std::rc::Rc;

use super::reader::Reader;
use super::tree::{Operator, Parsed, Piece, Redirect, Word};
use super::words::{Place, literal};

/// A here-document whose body begins after the next line break.
#[derive(Debug)]
pub(super) struct Pending {
    body: Rc<OnceCell<Word>>,
    delimiter: String,
    quoted: bool,
    tabs: bool,
}

impl Reader<'_> {
    pub(super) fn here_documents(&mut self) -> Parsed<()> {
        for pending in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            loop {
                let rest = &self.text[self.at..];
                // Without its end it goes to the end of the text, as in bash.
                if rest.is_empty() {
                    break;
                }
                let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
                self.at += line.len();
                let broken = self.peek().is_some();
                self.at += usize::from(broken);
                let line = if pending.tabs { line.trim_start_matches('\t') } else { line };
                if line == pending.delimiter {
                    break;
                }
                body.push_str(line);
                if broken {
                    body.push('\n');
                }
            }
            let word = match pending.quoted {
                true => vec![Piece::Quoted(body)],
                false => self.apart(&body, |reader| reader.pieces(Place::Body))?,
            };
            let _ = pending.body.set(word);
        }
        Ok(())
    }

    pub(super) fn redirects(&mut self) -> Parsed<Vec<Redirect>> {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(redirects),
            }
        }
    }

    /// A redirection, if one begins here.
    pub(super) fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        let digits = self.bytes[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let both = digits == 0 && self.starts("&>");
        let start = self.at + digits + usize::from(both);
        if !matches!(self.bytes.get(start), Some(b'<' | b'>')) {
            return Ok(None);
        }
        let rest = &self.text[start..];
        if digits == 0 && !both && (rest.starts_with("<(") || rest.starts_with(">(")) {
            return Ok(None);
        }
        let operators = [
            ("<<<", Operator::Here),
            ("<<-", Operator::Here),
            ("<<", Operator::Here),
            ("<>", Operator::ReadWrite),
            ("<&", Operator::Duplicate),
            ("<", Operator::Read),
            (">>|", Operator::Append),
            (">>", Operator::Append),
            (">&", Operator::Duplicate),
            (">|", Operator::Write),
            (">!", Operator::Write),
            (">", Operator::Write),
        ];
        let found = operators.into_iter().find(|(sign, _)| rest.starts_with(sign));
        let Some((sign, operator)) = found else { return Ok(None) };
        self.at = start + sign.len();
        self.skip_blanks();
        let before = self.at;
        let target = self.pieces(Place::Line)?;
        if self.at == before {
            return if self.peek().is_none() { Err(self.unfinished()) } else { self.unexpected() };
        }
        if !matches!(sign, "<<" | "<<-") {
            return Ok(Some(Redirect { operator, target: Rc::new(OnceCell::from(target)) }));
        }
        let Some(delimiter) = literal(&target) else { return self.unexpected() };
        let quoted = target.iter().any(|piece| matches!(piece, Piece::Quoted(_)));
        let body = Rc::new(OnceCell::new());
        let target = Rc::clone(&body);
        self.pending.push(Pending { body, delimiter, quoted, tabs: sign == "<<-" });
        Ok(Some(Redirect { operator, target }))
    }
}
