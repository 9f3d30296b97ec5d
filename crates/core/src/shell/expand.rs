//! Words after expansion: braces, `~`, known variables, splitting into fields, globs.
//!
//! Owns the order in which a shell does it. Invariant: a letter never loses where it came from
//! before the last step, so quoted letters are never special and a value is never read as braces.

use super::BRACES_MAX;
use super::outcome::Argument;
use super::tree::Change;

/// The most opening braces of a word that are looked at.
const OPENINGS_MAX: usize = 64;
/// The longest word with braces that is taken apart.
const BRACED_LETTERS_MAX: usize = 4096;

/// A letter and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bit {
    /// Typed without quotes.
    Raw(char),
    /// Of an unquoted value: splits and matches, but is no brace.
    Value(char),
    Quoted(char),
    /// Of a value that is a glob already.
    Glob(char),
    Home,
    /// The folder where the line started.
    Start,
    Unknown,
    /// Here a word is, even without letters.
    Present,
    /// Here a word ends.
    Break,
}

/// The bits of a known value.
pub(super) fn of_value(value: &Argument, quoted: bool, bits: &mut Vec<Bit>) {
    let letter = |letter| if quoted { Bit::Quoted(letter) } else { Bit::Value(letter) };
    if quoted {
        bits.push(Bit::Present);
    }
    match value {
        Argument::Text(text) => bits.extend(text.chars().map(letter)),
        Argument::Pattern(text) => bits.extend(text.chars().map(Bit::Glob)),
        Argument::Unknown(_) => bits.push(Bit::Unknown),
        Argument::Home(rest) | Argument::Start(rest) => {
            bits.push(if matches!(value, Argument::Home(_)) { Bit::Home } else { Bit::Start });
            if !rest.is_empty() {
                bits.push(letter('/'));
                bits.extend(rest.chars().map(letter));
            }
        }
    }
}

/// `${name%…}` and its like.
pub(super) fn changed(value: &Argument, change: &Change) -> Argument {
    let make: fn(String) -> Argument = match value {
        Argument::Text(_) => Argument::Text,
        Argument::Pattern(_) => Argument::Pattern,
        _ if matches!(change, Change::None | Change::Default(_)) => return value.clone(),
        Argument::Home(_) | Argument::Start(_) | Argument::Unknown(_) => {
            return Argument::Unknown("…".to_owned());
        }
    };
    let text: &str = match value {
        Argument::Text(text) | Argument::Pattern(text) => text,
        Argument::Home(_) | Argument::Start(_) | Argument::Unknown(_) => "",
    };
    let without_last = || text.rsplit_once('/').map_or(text, |(folder, _)| folder);
    let changed = match change {
        Change::None | Change::Default(_) => text,
        Change::WithoutEnd(end) => text.strip_suffix(end.as_str()).unwrap_or(text),
        Change::WithoutStart(start) => text.strip_prefix(start.as_str()).unwrap_or(text),
        Change::LastSegment => text.rsplit('/').next().unwrap_or(text),
        Change::WithoutLastSegment => without_last(),
    };
    make(changed.to_owned())
}

/// The words that these bits become.
pub(super) fn words(bits: &[Bit], words: &mut Vec<Argument>) {
    let openings = bits.iter().filter(|bit| **bit == Bit::Raw('{')).count();
    let long = openings > OPENINGS_MAX || bits.len() > BRACED_LETTERS_MAX;
    let mut budget = if long { 0 } else { BRACES_MAX };
    let mut all = Vec::new();
    match openings {
        0 => all.push(bits.to_vec()),
        _ => braces(bits, &mut budget, &mut all),
    }
    if openings > 0 && budget == 0 {
        words.push(Argument::Unknown(shown(bits)));
        return;
    }
    for word in all {
        let split =
            |bit: &Bit| matches!(bit, Bit::Break) || matches!(bit, Bit::Value(' ' | '\t' | '\n'));
        let fields = word.split(split).filter(|field| !field.is_empty());
        words.extend(fields.map(argument));
    }
}

/// The one word of an assignment or a redirection: nothing is split, and no glob is looked for.
pub(super) fn value(bits: &[Bit]) -> Argument {
    let special = |bit: &Bit| match *bit {
        Bit::Raw('~') => *bit,
        Bit::Raw(letter) | Bit::Value(letter) => Bit::Quoted(letter),
        other => other,
    };
    let mut bits: Vec<Bit> = bits.iter().map(special).collect();
    // What stands behind the tilde must still be seen as typed.
    if let [Bit::Raw('~'), second @ Bit::Quoted('/'), ..] = &mut bits[..] {
        *second = Bit::Raw('/');
    }
    argument(&bits)
}

fn argument(bits: &[Bit]) -> Argument {
    if bits.contains(&Bit::Unknown) {
        return Argument::Unknown(shown(bits));
    }
    // Quotes around a variable begin a word, and are no letters of it.
    let quotes = bits.iter().take_while(|bit| **bit == Bit::Present).count();
    let bits = &bits[quotes..];
    let (base, rest) = match bits {
        [Bit::Home, rest @ ..] => ("~", rest),
        [Bit::Start, rest @ ..] => ("~+", rest),
        [Bit::Raw('~')] if quotes == 0 => ("~", &[][..]),
        [Bit::Raw('~'), Bit::Raw('/'), ..] if quotes == 0 => ("~", &bits[1..]),
        [Bit::Raw('~'), ..] if quotes == 0 => return Argument::Unknown(shown(bits)),
        _ => ("", bits),
    };
    // A folder within a word stands for letters that only the shell knows.
    if rest.iter().any(|bit| matches!(bit, Bit::Home | Bit::Start)) {
        return Argument::Unknown(shown(bits));
    }
    if base.is_empty() {
        return match is_glob(rest) {
            true => Argument::Pattern(pattern(rest)),
            false => Argument::Text(letters(rest)),
        };
    }
    let text = letters(rest);
    // The name of the folder goes on: that is another folder.
    if !text.is_empty() && !text.starts_with('/') {
        return Argument::Unknown(shown(bits));
    }
    let text = text.trim_start_matches('/').to_owned();
    match base {
        _ if is_glob(rest) => {
            Argument::Pattern(format!("{base}/{}", pattern(rest).trim_start_matches('/')))
        }
        "~" => Argument::Home(text),
        _ => Argument::Start(text),
    }
}

fn letter(bit: &Bit) -> Option<char> {
    match *bit {
        Bit::Raw(letter) | Bit::Value(letter) | Bit::Quoted(letter) | Bit::Glob(letter) => {
            Some(letter)
        }
        Bit::Home | Bit::Start | Bit::Unknown | Bit::Present | Bit::Break => None,
    }
}

fn letters(bits: &[Bit]) -> String {
    bits.iter().filter_map(letter).collect()
}

fn shown(bits: &[Bit]) -> String {
    let show = |bit: &Bit| match bit {
        Bit::Unknown => Some('…'),
        Bit::Home => Some('~'),
        Bit::Start => Some('.'),
        Bit::Break => Some(' '),
        _ => letter(bit),
    };
    bits.iter().filter_map(show).collect()
}

fn is_glob(bits: &[Bit]) -> bool {
    let mut open = false;
    bits.iter().any(|bit| match bit {
        Bit::Glob(_) | Bit::Raw('*' | '?') | Bit::Value('*' | '?') => true,
        Bit::Raw('[') | Bit::Value('[') => {
            open = true;
            false
        }
        Bit::Raw(']') | Bit::Value(']') => open,
        _ => false,
    })
}

fn pattern(bits: &[Bit]) -> String {
    let mut text = String::with_capacity(bits.len());
    for bit in bits {
        match *bit {
            Bit::Raw(letter @ ('*' | '?' | '[' | ']'))
            | Bit::Value(letter @ ('*' | '?' | '[' | ']'))
            | Bit::Glob(letter) => text.push(letter),
            Bit::Raw(letter) | Bit::Value(letter) | Bit::Quoted(letter) => {
                if ",*?[]{}\\~".contains(letter) {
                    text.push('\\');
                }
                text.push(letter);
            }
            Bit::Home | Bit::Start | Bit::Unknown | Bit::Present | Bit::Break => {}
        }
    }
    text
}

/// Expands the first braces, and what comes of it again. The budget counts every call, so that
/// neither their number nor their depth is without bound.
fn braces(bits: &[Bit], budget: &mut usize, all: &mut Vec<Vec<Bit>>) {
    if *budget == 0 {
        return;
    }
    *budget -= 1;
    let openings = (0..bits.len()).filter(|at| bits[*at] == Bit::Raw('{'));
    let found = openings.filter_map(|at| alternatives(bits, at)).next();
    let Some((start, end, alternatives)) = found else {
        all.push(bits.to_vec());
        return;
    };
    for alternative in alternatives {
        let word = [&bits[..start], &alternative, &bits[end + 1..]].concat();
        braces(&word, budget, all);
    }
}

/// The brace that opens here, the one that closes it, and what stands between the commas.
fn alternatives(bits: &[Bit], start: usize) -> Option<(usize, usize, Vec<Vec<Bit>>)> {
    let (mut depth, mut commas) = (0_usize, vec![start]);
    let mut end = None;
    for (at, bit) in bits.iter().enumerate().skip(start + 1) {
        match bit {
            Bit::Raw('{') => depth += 1,
            Bit::Raw('}') if depth == 0 => {
                end = Some(at);
                break;
            }
            Bit::Raw('}') => depth -= 1,
            Bit::Raw(',') if depth == 0 => commas.push(at),
            _ => {}
        }
    }
    let end = end?;
    if commas.len() == 1 {
        let inside = letters(&bits[start + 1..end]);
        return sequence(&inside).map(|words| (start, end, words));
    }
    commas.push(end);
    let between = |pair: &[usize]| bits[pair[0] + 1..pair[1]].to_vec();
    Some((start, end, commas.windows(2).map(between).collect()))
}

/// `1..9` and `a..f`. What the shell counts in another way, or too far, is a word nobody knows.
fn sequence(inside: &str) -> Option<Vec<Vec<Bit>>> {
    let ends: Vec<&str> = inside.split("..").collect();
    let (first, last, plain) = match ends[..] {
        [first, last] => (first, last, true),
        [first, last, step] if step.parse::<i64>().is_ok() => (first, last, false),
        _ => return None,
    };
    let counted = |number: i64| number.to_string().chars().map(Bit::Quoted).collect();
    let unknown = || Some(vec![vec![Bit::Unknown]]);
    if let (Ok(from), Ok(until)) = (first.parse::<i64>(), last.parse::<i64>()) {
        // Leading zeros give each number as many digits.
        let plain = plain && from.to_string() == first && until.to_string() == last;
        let length = usize::try_from(from.abs_diff(until)).unwrap_or(usize::MAX);
        return match plain && length < BRACES_MAX {
            true if from <= until => Some((from..=until).map(counted).collect()),
            true => Some((until..=from).rev().map(counted).collect()),
            false => unknown(),
        };
    }
    let letter = |text: &str| {
        let mut letters = text.chars();
        letters.next().filter(|first| first.is_ascii_alphabetic() && letters.next().is_none())
    };
    let (from, until) = (letter(first)?, letter(last)?);
    match plain && from <= until {
        true => Some((from..=until).map(|one| vec![Bit::Quoted(one)]).collect()),
        false => unknown(),
    }
}
