//! From glob text to its alternatives: braces are expanded first, as a shell does, so an
//! alternative may hold `/`, `..` or `**`; each is then split, resolved and folded on its own.
//!
//! Knows nothing of automata. Invariant: text that has more than one plausible reading (named
//! classes, `{1..3}`, `\n`) is refused rather than read as something narrower than was meant.

use super::charset::{One, decompose, is_mark};
use super::error::Error;
use super::fold::{fold, fold_into};
use super::lexical::{self, Step};
use super::{ALTERNATIVES_MAX, BRACE_DEPTH_MAX};

/// One character of the glob language, with its place in the text.
#[derive(Debug, Clone)]
struct Token {
    sort: Sort,
    at: usize,
}

#[derive(Debug, Clone)]
enum Sort {
    Literal(char),
    Slash,
    Star,
    One(Box<One>),
    Branches(Vec<Vec<Token>>),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Segment {
    /// `**`: zero or more whole segments.
    Tree,
    Name(Vec<Element>),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    Char(char),
    /// Any number of characters.
    Star,
    /// Any number of non-ASCII characters: stands where typed combining marks touch a wildcard,
    /// since normalisation may sort them past characters the wildcard accepts.
    Marks,
    One(Box<One>),
}

#[derive(Debug)]
pub(super) struct Alternative {
    pub(super) segments: Vec<Segment>,
    /// The user's spelling of the leading segments that hold no wildcard.
    pub(super) spelling: String,
}

impl Segment {
    /// The folded name, if there is no wildcard in it.
    pub(super) fn literal(&self) -> Option<String> {
        let Segment::Name(elements) = self else { return None };
        elements
            .iter()
            .map(|element| if let Element::Char(c) = element { Some(*c) } else { None })
            .collect()
    }
}

pub(super) fn parse(text: &str) -> Result<Vec<Alternative>, Error> {
    lexical::check_text(text)?;
    let mut parser = Parser { text, at: 0 };
    let tokens = parser.tokens(0)?;
    let count = count(&tokens);
    if count > ALTERNATIVES_MAX {
        return Err(Error::TooManyAlternatives { alternatives: count, max: ALTERNATIVES_MAX });
    }
    let mut alternatives =
        expand(&tokens).into_iter().map(|flat| resolve(&flat)).collect::<Result<Vec<_>, _>>()?;
    alternatives.sort_by(|a, b| a.segments.cmp(&b.segments));
    alternatives.dedup_by(|a, b| a.segments == b.segments);
    Ok(alternatives)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Reads up to the end, or inside braces up to `,` or `}`, which stay unread.
    fn tokens(&mut self, depth: usize) -> Result<Vec<Token>, Error> {
        let mut tokens = Vec::new();
        while let Some(c) = self.peek() {
            let at = self.at;
            if depth > 0 && matches!(c, ',' | '}') {
                break;
            }
            self.next();
            let sort = match c {
                '/' => Sort::Slash,
                '*' => Sort::Star,
                '?' => Sort::One(Box::new(One::any())),
                '[' => self.class(at)?,
                '{' => Sort::Branches(self.branches(at, depth + 1)?),
                '}' => return Err(Error::UnopenedBrace { at }),
                '\\' => match self.escaped(at)? {
                    '/' => Sort::Slash,
                    c => Sort::Literal(c),
                },
                c => Sort::Literal(c),
            };
            tokens.push(Token { sort, at });
        }
        Ok(tokens)
    }

    /// A letter behind a backslash is most likely a Windows separator; reading `src\a` as `srca`
    /// would claim another file than was meant.
    fn escaped(&mut self, at: usize) -> Result<char, Error> {
        match self.next() {
            None => Err(Error::EscapesNothing { at }),
            Some(c) if c.is_alphanumeric() => Err(Error::EscapesLetter { at }),
            Some(c) => Ok(c),
        }
    }

    fn branches(&mut self, at: usize, depth: usize) -> Result<Vec<Vec<Token>>, Error> {
        if depth > BRACE_DEPTH_MAX {
            return Err(Error::TooDeep { at, max: BRACE_DEPTH_MAX });
        }
        let mut branches = Vec::new();
        loop {
            branches.push(self.tokens(depth)?);
            match self.next() {
                Some(',') => {}
                Some(_) if branches.len() == 1 => return Err(Error::SingleBranch { at }),
                Some(_) => return Ok(branches),
                None => return Err(Error::UnclosedBrace { at }),
            }
        }
    }

    fn class(&mut self, at: usize) -> Result<Sort, Error> {
        let negated = matches!(self.peek(), Some('!' | '^'));
        if negated {
            self.next();
        }
        let mut ranges = Vec::new();
        loop {
            let member_at = self.at;
            let low = match self.next() {
                None => return Err(Error::UnclosedClass { at }),
                Some(']') if !ranges.is_empty() => break,
                Some('[') if matches!(self.peek(), Some(':' | '.' | '=')) => {
                    return Err(Error::NamedClass { at: member_at });
                }
                Some('\\') => self.escaped(member_at)?,
                Some(c) => c,
            };
            ranges.push((low, self.range_end(low, at)?));
        }
        if let ([(low, high)], false) = (&ranges[..], negated)
            && low == high
            && *low != '/'
        {
            return Ok(Sort::Literal(*low));
        }
        let one = if negated { One::other(&ranges) } else { One::member(&ranges) };
        if one.is_empty() {
            return Err(Error::EmptyClass { at });
        }
        Ok(one.only().map_or_else(|| Sort::One(Box::new(one)), Sort::Literal))
    }

    /// The upper end of a range, or `low` again where there is none; a last `-` is a member.
    fn range_end(&mut self, low: char, class_at: usize) -> Result<char, Error> {
        let rest = &self.text[self.at..];
        if !rest.starts_with('-') || rest.starts_with("-]") {
            return Ok(low);
        }
        let at = self.at;
        self.next();
        let high = match self.next() {
            None => return Err(Error::UnclosedClass { at: class_at }),
            Some('\\') => self.escaped(at + 1)?,
            Some(c) => c,
        };
        if high < low { Err(Error::BackwardRange { at }) } else { Ok(high) }
    }
}

/// How many alternatives `expand` would make; counted first, so that none is made in vain.
fn count(tokens: &[Token]) -> usize {
    tokens.iter().fold(1, |total: usize, token| match &token.sort {
        Sort::Branches(branches) => {
            let sum = branches.iter().fold(0, |sum: usize, b| sum.saturating_add(count(b)));
            total.saturating_mul(sum)
        }
        _ => total,
    })
}

fn expand(tokens: &[Token]) -> Vec<Vec<Token>> {
    let mut flats = vec![Vec::new()];
    for token in tokens {
        if let Sort::Branches(branches) = &token.sort {
            let tails: Vec<Vec<Token>> = branches.iter().flat_map(|b| expand(b)).collect();
            flats = flats
                .iter()
                .flat_map(|head| tails.iter().map(move |tail| [&head[..], &tail[..]].concat()))
                .collect();
        } else {
            for flat in &mut flats {
                flat.push(token.clone());
            }
        }
    }
    flats
}

/// Resolves `.`, `..` and doubled slashes, and appends `**` for a trailing slash.
fn resolve(tokens: &[Token]) -> Result<Alternative, Error> {
    if tokens.is_empty() {
        return Err(Error::Empty);
    }
    if matches!(tokens[0].sort, Sort::Slash) {
        return Err(Error::Absolute);
    }
    let mut segments = Vec::new();
    let mut spellings = Vec::new();
    for name in tokens.split(|token| matches!(token.sort, Sort::Slash)) {
        let at = name.first().map_or(0, |token| token.at);
        let spelling = spelling(name);
        match spelling.as_deref().map_or(Ok(Step::Down), |name| lexical::step(name, at))? {
            Step::Stay => {}
            Step::Up => {
                spellings.pop();
                match segments.pop() {
                    None => return Err(Error::Escapes { at }),
                    Some(Segment::Tree) => return Err(Error::ParentOfAny { at }),
                    Some(Segment::Name(_)) => {}
                }
            }
            Step::Down => {
                let segment = segment(name);
                if segment == Segment::Tree && segments.last() == Some(&Segment::Tree) {
                    continue;
                }
                segments.push(segment);
                spellings.push(spelling);
            }
        }
    }
    let below = tokens.last().is_some_and(|token| matches!(token.sort, Sort::Slash));
    if below && segments.last() != Some(&Segment::Tree) {
        segments.push(Segment::Tree);
    }
    if segments.is_empty() {
        return Err(Error::Root);
    }
    lexical::check_segments(segments.len())?;
    let literal: Vec<String> = spellings.into_iter().map_while(|spelling| spelling).collect();
    Ok(Alternative { segments, spelling: literal.join("/") })
}

/// The name as typed, if there is no wildcard in it.
fn spelling(name: &[Token]) -> Option<String> {
    name.iter()
        .map(|token| if let Sort::Literal(c) = token.sort { Some(c) } else { None })
        .collect()
}

fn segment(name: &[Token]) -> Segment {
    if let [Token { sort: Sort::Star, .. }, Token { sort: Sort::Star, .. }] = name {
        return Segment::Tree;
    }
    if let Some(literal) = spelling(name) {
        return Segment::Name(fold(&literal).chars().map(Element::Char).collect());
    }
    let mut elements = Vec::new();
    let mut piece = String::new();
    let mut after_wildcard = false;
    for token in name {
        let wildcard = match &token.sort {
            Sort::Literal(c) => {
                piece.push(*c);
                continue;
            }
            Sort::One(one) => Element::One(one.clone()),
            _ => Element::Star,
        };
        push_piece(&piece, after_wildcard, true, &mut elements);
        piece.clear();
        after_wildcard = true;
        if wildcard != Element::Star || elements.last() != Some(&Element::Star) {
            elements.push(wildcard);
        }
    }
    push_piece(&piece, after_wildcard, false, &mut elements);
    if elements.iter().all(|element| matches!(element, Element::Star | Element::Marks)) {
        // A name is never empty, so a lone star takes at least one character.
        let one = One { ligatures: 0, trailed: false, ..One::any() };
        elements = vec![Element::One(Box::new(one)), Element::Star];
    }
    Segment::Name(elements)
}

/// Folds the literal characters between two wildcards.
fn push_piece(piece: &str, after: bool, before: bool, elements: &mut Vec<Element>) {
    if piece.is_ascii() {
        elements.extend(piece.chars().map(|c| Element::Char(c.to_ascii_lowercase())));
        return;
    }
    let chars = decompose(piece);
    let mut kept = &chars[..];
    if after && let Some(start) = kept.iter().position(|c| !is_mark(*c)).or(Some(kept.len())) {
        if start > 0 {
            elements.push(Element::Marks);
        }
        kept = &kept[start..];
    }
    let mut end = kept.len();
    while before && end > 0 && is_mark(kept[end - 1]) {
        end -= 1;
    }
    let mut key = String::new();
    fold_into(&kept[..end].iter().collect::<String>(), &mut key);
    elements.extend(key.chars().map(Element::Char));
    if end < kept.len() {
        elements.push(Element::Marks);
    }
}
