//! Follows a script: which commands run, in which folder, with which words.
//!
//! Owns the ways through it. Invariant: what holds on one way through the script and not on another
//! is unknown where the ways meet.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::danger::CLIENT_IDS;
use super::expand::{self, Bit};
use super::links::Links;
use super::outcome::{Argument, Command, Deeds, How, Place, When, Write};
use super::state::State;
use super::tree::{Assignment, Block, Change, Item, Link, Node, Operator, Parsed, Piece};
use super::tree::{Redirect, Script, Simple, Word};
use super::words::literal;
use super::{COMMANDS_MAX, DEPTH_MAX, LINE_BYTES_MAX, TURNS_MAX, Unparsed};

/// Letters that all words together may become.
const LETTERS_MAX: usize = 8 * LINE_BYTES_MAX;

/// Standard input of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// That of whoever runs the line.
    Outside,
    Known(String),
    Unknown,
}

#[derive(Debug)]
pub(super) struct Walker {
    pub(super) deeds: Deeds,
    /// What the last command printed, where that is sure.
    pub(super) output: Option<Argument>,
    pub(super) terminal: bool,
    pub(super) links: Links,
    depth: usize,
    ran: usize,
    /// Everything that was followed, also what runs no program.
    steps: usize,
    letters: usize,
}

/// Follows a whole script from its start.
pub(super) fn walk(script: &Script) -> Parsed<Deeds> {
    let deeds = Deeds { harmless: true, ..Deeds::default() };
    let (depth, ran, steps, letters, links) = (0, 0, 0, 0, Links::default());
    let (output, terminal) = (None, false);
    let mut walker = Walker { deeds, output, terminal, links, depth, ran, steps, letters };
    let mut state = State {
        folder: Place::here(),
        before: None,
        pushed: Vec::new(),
        variables: BTreeMap::new(),
        positional: Some(Vec::new()),
        functions: BTreeMap::new(),
    };
    walker.script(script, &mut state, &Input::Outside)?;
    let unknown = |write: &Write| write.place == Place::Unknown;
    walker.deeds.harmless &= !walker.deeds.writes.iter().any(unknown);
    walker.deeds.background &= !walker.deeds.commands.iter().any(|one| one.name() == "wait");
    Ok(walker.deeds)
}

impl Walker {
    pub(super) fn deeper<T>(&mut self, walk: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Unparsed::TooDeep);
        }
        self.depth += 1;
        let result = walk(self);
        self.depth -= 1;
        result
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn script(
        &mut self,
        script: &Script,
        state: &mut State,
        input: &Input,
    ) -> Parsed<()> {
        // Where a chain of && and || may have stopped, and where its last command began.
        let mut stopped: Option<State> = None;
        let mut previous: Option<State> = None;
        // Where the script was left before its end, for what comes after it.
        let mut left: Option<State> = None;
        let mut sure = true;
        for (index, item) in script.iter().enumerate() {
            if item.link == Link::Always {
                if let Some(stopped) = stopped.take() {
                    state.meet(&stopped);
                }
                sure = true;
            }
            if item.link == Link::And && !sure {
                meet_or_be(&mut stopped, state);
            }
            if item.link == Link::Or {
                let mut other = previous.take().unwrap_or_else(|| state.clone());
                self.item(item, &mut other, input)?;
                match leaving(item) {
                    None => {
                        state.meet(&other);
                        sure = false;
                    }
                    // Whoever is still here has come through all that stood before.
                    Some(leaving) => {
                        let gone = stopped.take().into_iter().chain([other]);
                        if leaving == Leaving::Script {
                            gone.for_each(|gone| meet_or_be(&mut left, &gone));
                        }
                        sure = true;
                    }
                }
                continue;
            }
            let other_follows = script.get(index + 1).is_some_and(|next| next.link == Link::Or);
            previous = other_follows.then(|| state.clone());
            self.item(item, state, input)?;
            sure &= surely_succeeds(item);
        }
        stopped.iter().chain(&left).for_each(|other| state.meet(other));
        Ok(())
    }

    fn item(&mut self, item: &Item, state: &mut State, input: &Input) -> Parsed<()> {
        if let ([only], false) = (&item.pipeline[..], item.background) {
            return self.deeper(|walker| walker.node(only, state, input));
        }
        self.deeds.background |= item.background;
        let mut input = input.clone();
        let last = item.pipeline.len().saturating_sub(1);
        for (index, node) in item.pipeline.iter().enumerate() {
            let mut inner = state.clone();
            let (before, noted) = (self.ran, self.deeds.commands.len());
            self.output = None;
            self.deeper(|walker| walker.node(node, &mut inner, &input))?;
            if index < last {
                self.feeds_since(noted);
            }
            let output = self.output.take().filter(|_| self.ran == before + 1);
            let text = output.as_ref().and_then(Argument::text);
            input = text.map_or(Input::Unknown, |text| Input::Known(text.to_owned()));
            // zsh runs the last command of a pipeline in the shell itself.
            if index == last && !item.background && state.differs(&inner) {
                state.meet(&inner);
            }
        }
        Ok(())
    }

    pub(super) fn node(&mut self, node: &Node, state: &mut State, input: &Input) -> Parsed<()> {
        self.steps += 1;
        if self.steps > COMMANDS_MAX {
            return Err(Unparsed::TooMuch);
        }
        match node {
            Node::Simple(simple) => self.simple(simple, state, input),
            Node::Function { name, body } => {
                state.functions.insert(name.clone(), Rc::clone(body));
                Ok(())
            }
            Node::Looked(words) => words.iter().try_for_each(|word| self.look(word, state)),
            Node::For { name, words, body, redirects } => {
                let input = self.redirected(redirects, state, input)?;
                self.turns(name, words.as_deref(), body, state, &input)
            }
            Node::Block { kind, parts, redirects } => {
                let input = self.redirected(redirects, state, input)?;
                self.block(*kind, parts, state, &input)?;
                if !redirects.is_empty() {
                    self.output = None;
                }
                Ok(())
            }
        }
    }

    fn block(
        &mut self,
        kind: Block,
        parts: &[Script],
        state: &mut State,
        input: &Input,
    ) -> Parsed<()> {
        match kind {
            Block::Group => parts.iter().try_for_each(|part| self.script(part, state, input)),
            Block::Subshell => {
                let mut inner = state.clone();
                parts.iter().try_for_each(|part| self.script(part, &mut inner, input))
            }
            Block::Choice => {
                // Each part begins where those before it may have left off.
                for part in parts {
                    let mut inner = state.clone();
                    self.script(part, &mut inner, input)?;
                    state.meet(&inner);
                }
                Ok(())
            }
            Block::Loop => self.again(state, |walker, state| {
                parts.iter().try_for_each(|part| walker.script(part, state, input))
            }),
        }
    }

    /// Runs something an unknown number of times.
    fn again(
        &mut self,
        state: &mut State,
        mut turn: impl FnMut(&mut Self, &mut State) -> Parsed<()>,
    ) -> Parsed<()> {
        for round in 0..3 {
            let mut inner = state.clone();
            turn(self, &mut inner)?;
            if !state.differs(&inner) {
                break;
            }
            state.meet(&inner);
            if round == 1 {
                state.forget();
            }
        }
        Ok(())
    }

    fn turns(
        &mut self,
        name: &str,
        words: Option<&[Word]>,
        body: &Script,
        state: &mut State,
        input: &Input,
    ) -> Parsed<()> {
        let mut values = Vec::new();
        for word in words.unwrap_or_default() {
            self.expand(word, state, &mut values)?;
        }
        let known = words.is_some() && !name.is_empty() && values.len() <= TURNS_MAX;
        // Of unknown words there may be many, or none.
        let split = values.iter().any(|value| matches!(value, Argument::Unknown(_)));
        if known && !split {
            let start = state.clone();
            for value in values {
                state.set(name, Some(value));
                self.script(body, state, input)?;
            }
            // A glob may match many files, and then each turn begins where the last one ended.
            if start.folder != state.folder {
                state.folder = Place::Unknown;
                return self.script(body, state, input);
            }
            return Ok(());
        }
        state.set(name, None);
        self.again(state, |walker, state| walker.script(body, state, input))
    }

    fn simple(&mut self, simple: &Simple, state: &mut State, input: &Input) -> Parsed<()> {
        self.output = None;
        let mut argv = Vec::with_capacity(simple.words.len());
        for word in &simple.words {
            self.expand(word, state, &mut argv)?;
        }
        let input = self.redirected(&simple.redirects, state, input)?;
        let mut assigned = Vec::new();
        for Assignment { name, value, looked } in &simple.assigned {
            for word in looked {
                self.look(word, state)?;
            }
            let value = value.as_ref().map(|value| self.value(value, state)).transpose()?;
            self.alters(name, value.as_ref());
            if simple.words.is_empty() {
                self.set_alone(name, value.as_ref(), state);
                state.set(name, value);
            } else {
                let unknown = || Argument::Unknown("…".to_owned());
                assigned.push((name.clone(), value.unwrap_or_else(unknown)));
            }
        }
        if argv.is_empty() {
            // A variable on its own may hold a whole command, or nothing.
            self.output = None;
            return Ok(());
        }
        self.ran += 1;
        let command = Command { assigned, ..Command::new(argv, state.folder.clone()) };
        self.command(command, state, &input)?;
        let leaves = |redirect: &Redirect| !matches!(redirect.operator, Operator::Here);
        if simple.redirects.iter().any(leaves) {
            self.output = None;
        }
        Ok(())
    }

    /// Variables that change which programs run, or what they run in turn.
    pub(super) fn alters(&mut self, name: &str, value: Option<&Argument>) {
        let loads = matches!(
            name,
            "PATH" | "LD_PRELOAD" | "LD_AUDIT" | "LD_LIBRARY_PATH" | "BASH_ENV" | "ENV" | "PAGER"
        );
        let git = name.starts_with("GIT_") && !name.contains("PROMPT");
        if (loads || git) && value.and_then(Argument::text) != Some("cat") {
            self.opaque();
        }
    }

    /// A variable that says who acts, or on which repository, is of interest by itself.
    fn set_alone(&mut self, name: &str, value: Option<&Argument>, state: &State) {
        let client = CLIENT_IDS.contains(&name);
        if client || name.starts_with("BATON_") || name.starts_with("GIT_") {
            let value = value.map_or("…".into(), Argument::shown);
            let argv = vec!["export".into(), Argument::Text(format!("{name}={value}"))];
            self.deeds.commands.push(Command::new(argv, state.folder.clone()));
        }
    }

    /// Notes what redirections write and read; says what standard input is behind them.
    pub(super) fn redirected(
        &mut self,
        redirects: &[Redirect],
        state: &mut State,
        input: &Input,
    ) -> Parsed<Input> {
        let mut input = input.clone();
        for Redirect { operator, target } in redirects {
            let Some(target) = target.get() else { continue };
            let value = match operator {
                Operator::Here => self.value(target, state)?,
                _ => self.one(target, state)?,
            };
            let place = state.folder.join(&value);
            match operator {
                Operator::Here => {
                    input = value.text().map_or(Input::Unknown, |text| Input::Known(text.into()));
                }
                Operator::Read => {
                    input = Input::Unknown;
                    self.reads(place);
                }
                Operator::Duplicate if is_descriptor(&value) => {}
                Operator::Write | Operator::Duplicate => self.writes(place, How::Create, false),
                Operator::Append => self.writes(place, How::Append, false),
                Operator::ReadWrite => self.writes(place, How::Change, false),
            }
        }
        Ok(input)
    }

    pub(super) fn writes(&mut self, place: Place, how: How, below: bool) {
        self.writes_when(place, how, below, When::Always);
    }

    pub(super) fn writes_when(&mut self, place: Place, how: How, below: bool, when: When) {
        if matches!(&place, Place::Path(path) if is_device(path)) {
            return;
        }
        let behind = self.links.behind(&place, how);
        for place in std::iter::once(place).chain(behind) {
            self.deeds.writes.push(Write { place, how, below, part: false, when });
        }
    }

    /// Something below it is written, and only running it would tell what.
    pub(super) fn writes_part(&mut self, place: Place, how: How) {
        self.deeds.writes.push(Write { place, how, below: true, part: true, when: When::Always });
        self.opaque();
    }

    pub(super) fn reads(&mut self, place: Place) {
        let device = matches!(&place, Place::Path(path) if is_device(path));
        if !device && place != Place::Unknown && !self.deeds.reads.contains(&place) {
            self.deeds.reads.push(place);
        }
    }

    /// What these commands print is used by another.
    fn feeds_since(&mut self, noted: usize) {
        let commands = self.deeds.commands.iter_mut().skip(noted);
        commands.for_each(|command| command.feeds = true);
    }

    /// Something runs that may write anything.
    pub(super) fn opaque(&mut self) {
        self.deeds.harmless = false;
    }

    /// Runs what is substituted in a word and forgets its text.
    fn look(&mut self, word: &Word, state: &mut State) -> Parsed<()> {
        self.bits(word, state).map(drop)
    }

    pub(super) fn expand(
        &mut self,
        word: &Word,
        state: &mut State,
        words: &mut Vec<Argument>,
    ) -> Parsed<()> {
        // Most words are plain.
        if let [Piece::Plain(text)] = &word[..]
            && !text.contains(['{', '*', '?', '[', '~'])
        {
            words.push(Argument::Text(text.clone()));
            return Ok(());
        }
        let bits = self.bits(word, state)?;
        expand::words(&bits, words);
        Ok(())
    }

    fn value(&mut self, word: &Word, state: &mut State) -> Parsed<Argument> {
        // The text of a whole file in a here-document: nothing in it is special.
        if let [Piece::Quoted(text)] = &word[..] {
            return Ok(Argument::Text(text.clone()));
        }
        let bits = self.bits(word, state)?;
        Ok(expand::value(&bits))
    }

    /// The file of a redirection; several words would be an error of the shell.
    fn one(&mut self, word: &Word, state: &mut State) -> Parsed<Argument> {
        let mut words = Vec::new();
        self.expand(word, state, &mut words)?;
        match (words.pop(), words.is_empty()) {
            (Some(word), true) => Ok(word),
            _ => Ok(Argument::Unknown("…".to_owned())),
        }
    }

    fn bits(&mut self, word: &Word, state: &mut State) -> Parsed<Vec<Bit>> {
        let mut bits = Vec::new();
        for piece in word {
            match piece {
                Piece::Plain(text) => bits.extend(text.chars().map(Bit::Raw)),
                Piece::Quoted(text) => {
                    bits.push(Bit::Present);
                    bits.extend(text.chars().map(Bit::Quoted));
                }
                Piece::Variable { name, change, quoted } => {
                    self.variable(name, change, *quoted, state, &mut bits)?;
                }
                Piece::Command { script, quoted } => {
                    let value = self.substituted(script, state)?;
                    let unknown = || Argument::Unknown("…".to_owned());
                    let value = value.unwrap_or_else(unknown);
                    expand::of_value(&value, *quoted, &mut bits);
                }
                Piece::Process(script) => {
                    self.substituted(script, state)?;
                    bits.extend("/dev/fd/63".chars().map(Bit::Quoted));
                }
                Piece::Unknown(inside) => {
                    self.look(inside, state)?;
                    // Arithmetic, and a default, may set any variable.
                    let sets = |text: &String| ["=", "++", "--"].iter().any(|s| text.contains(s));
                    let sets = |piece: &Piece| match piece {
                        Piece::Plain(text) | Piece::Quoted(text) => sets(text),
                        _ => false,
                    };
                    if inside.iter().any(sets) {
                        state.variables.values_mut().for_each(|value| *value = None);
                    }
                    bits.push(Bit::Unknown);
                }
            }
        }
        self.letters += bits.len();
        if self.letters > LETTERS_MAX {
            return Err(Unparsed::TooMuch);
        }
        Ok(bits)
    }

    /// Runs a substitution; gives what it prints, where that is sure.
    fn substituted(&mut self, script: &Script, state: &State) -> Parsed<Option<Argument>> {
        let mut inner = state.clone();
        let (before, noted) = (self.ran, self.deeds.commands.len());
        self.output = None;
        self.deeper(|walker| walker.script(script, &mut inner, &Input::Outside))?;
        self.feeds_since(noted);
        let output = self.output.take().filter(|_| self.ran == before + 1);
        Ok(output.map(|output| match output {
            Argument::Text(text) => Argument::Text(text.trim_end_matches('\n').to_owned()),
            other => other,
        }))
    }

    fn variable(
        &mut self,
        name: &str,
        change: &Change,
        quoted: bool,
        state: &mut State,
        bits: &mut Vec<Bit>,
    ) -> Parsed<()> {
        if let Change::Default(inside) = change {
            self.look(inside, state)?;
        }
        if let ("@" | "*", Some(all)) = (name, &state.positional) {
            for (index, value) in all.iter().enumerate() {
                if index > 0 {
                    bits.push(Bit::Break);
                }
                expand::of_value(value, quoted, bits);
            }
            return Ok(());
        }
        let value = match (state.variables.get(name), name) {
            (Some(value), _) => value.clone(),
            (None, "HOME") => Some(Argument::Home(String::new())),
            (None, "PWD") => Some(state.folder.as_argument()),
            (None, "OLDPWD") => state.before.as_ref().map(Place::as_argument),
            (None, _) => positional(name, state),
        };
        // Splits in a way that is not followed.
        let splits = !quoted && state.variables.contains_key("IFS");
        match value.filter(|_| !splits) {
            // An empty value gives way to the default, and that is not followed.
            Some(Argument::Text(text))
                if text.is_empty() && matches!(change, Change::Default(_)) =>
            {
                bits.push(Bit::Unknown);
            }
            Some(value) => expand::of_value(&expand::changed(&value, change), quoted, bits),
            None => bits.push(Bit::Unknown),
        }
        Ok(())
    }
}

fn positional(name: &str, state: &State) -> Option<Argument> {
    let number = name.parse::<usize>().ok().filter(|number| *number > 0)?;
    let all = state.positional.as_ref()?;
    Some(all.get(number - 1).cloned().unwrap_or(Argument::Text(String::new())))
}

fn is_descriptor(value: &Argument) -> bool {
    let digits = |text: &str| text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit());
    value.text().is_some_and(digits)
}

fn is_device(path: &str) -> bool {
    let name = path.strip_prefix("/dev/");
    name.is_some_and(|name| {
        matches!(name, "null" | "stdout" | "stderr" | "stdin" | "tty" | "zero" | "full")
            || name.starts_with("fd/")
            || name.starts_with("tcp/")
            || name.starts_with("udp/")
            || matches!(name, "random" | "urandom")
    })
}

fn meet_or_be(state: &mut Option<State>, other: &State) {
    match state {
        Some(state) => state.meet(other),
        None => *state = Some(other.clone()),
    }
}

/// How a command ends what it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// With the whole shell: nothing comes after it.
    Shell,
    /// With a loop or a function, after which the line goes on.
    Script,
}

/// Does it surely leave: `exit`, or `{ echo no; exit 1; }`?
fn leaving(item: &Item) -> Option<Leaving> {
    match (&item.pipeline[..], item.background) {
        ([Node::Simple(simple)], false) => match literal(simple.words.first()?)?.as_str() {
            "exit" => Some(Leaving::Shell),
            "return" | "break" | "continue" => Some(Leaving::Script),
            _ => None,
        },
        ([Node::Block { kind: Block::Group, parts, .. }], false) => {
            let last = parts.last()?.last()?;
            leaving(last).filter(|_| last.link == Link::Always)
        }
        _ => None,
    }
}

/// Commands that a line is written to rely on.
fn surely_succeeds(item: &Item) -> bool {
    let [Node::Simple(simple)] = &item.pipeline[..] else { return false };
    let Some(first) = simple.words.first() else { return true };
    let name = literal(first).unwrap_or_default();
    let sure = [
        "cd", "pushd", "popd", "mkdir", "export", "set", "true", ":", "echo", "printf", "source",
        ".", "local", "declare", "unset", "umask", "ulimit",
    ];
    sure.contains(&name.as_str())
}
