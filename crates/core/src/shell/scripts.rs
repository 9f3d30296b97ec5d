//! One command: a function, a builtin of the shell, something that starts another, or a program.
//!
//! Owns what changes the shell itself (`cd`, `export`, `eval`, …) and what commands surely print.
//! Invariant: every command is noted once, as the program that really runs.

use std::rc::Rc;

use super::outcome::{Argument, Command, Place, TEMPORARY};
use super::reader;
use super::state::State;
use super::tree::{Node, Parsed};
use super::walk::{Input, Walker};
use super::wrappers::{self, Inner};
use super::{inline, outcome, programs};

impl Walker {
    pub(super) fn command(
        &mut self,
        command: Command,
        state: &mut State,
        input: &Input,
    ) -> Parsed<()> {
        let function = command.argv.first().and_then(Argument::text);
        let function = function.and_then(|name| state.functions.get(name)).map(Rc::clone);
        if let Some(body) = function {
            return self.called(&body, &command, state, input);
        }
        for (name, value) in &command.assigned {
            self.alters(name, Some(value));
        }
        for (file, how) in wrappers::written(&command) {
            self.writes(self.place(&command, &file), how, false);
        }
        match wrappers::look_through(&command, input) {
            Inner::Command(inner) => {
                // Baton does more than to start it: as whom, and in which role.
                if command.name() == "baton" {
                    let own = command.argv.len() - inner.argv.len();
                    let argv = command.argv[..own].to_vec();
                    self.deeds.commands.push(Command { argv, ..command.clone() });
                }
                self.deeper(|walker| walker.command(inner, state, input))
            }
            Inner::Script(text, arguments) => self.inner_script(&text, arguments, &command, state),
            Inner::Unknown => {
                self.opaque();
                self.note(command, state, input);
                Ok(())
            }
            Inner::Itself => {
                if !self.builtin(&command, state)? {
                    programs::judge(self, &command, state, input)?;
                    inline::judge(self, &command, input);
                }
                self.note(command, state, input);
                Ok(())
            }
        }
    }

    fn note(&mut self, mut command: Command, state: &State, input: &Input) {
        self.output = printed(&command, state, input);
        command.terminal |= self.terminal;
        if let Input::Known(text) = input {
            command.input = Some(text.clone());
        }
        self.deeds.commands.push(command);
    }

    fn called(
        &mut self,
        body: &Node,
        command: &Command,
        state: &mut State,
        input: &Input,
    ) -> Parsed<()> {
        let arguments = command.argv.get(1..).unwrap_or_default().to_vec();
        let outer = state.positional.replace(arguments);
        let result = self.deeper(|walker| walker.node(body, state, input));
        state.positional = outer;
        result
    }

    /// A script within the line; only `eval` runs in the shell itself.
    fn inner_script(
        &mut self,
        text: &str,
        arguments: Vec<Argument>,
        command: &Command,
        state: &mut State,
    ) -> Parsed<()> {
        let before = self.terminal;
        self.terminal |= command.name() == "script" || command.terminal;
        // What it is given alone is of interest by itself: BATON_SESSION= bash -c '…'.
        if !command.assigned.is_empty() || !command.unset.is_empty() {
            self.deeds.commands.push(command.clone());
        }
        let script = reader::read(text, self.depth())?;
        let mut inner = State { folder: command.folder.clone(), ..state.clone() };
        for (name, value) in &command.assigned {
            inner.set(name, Some(value.clone()));
        }
        let own = command.name() == "eval";
        if !own {
            inner.set("0", arguments.first().cloned());
            inner.positional = Some(arguments.into_iter().skip(1).collect());
        }
        self.deeper(|walker| walker.script(&script, &mut inner, &Input::Outside))?;
        if own {
            *state = inner;
        }
        self.terminal = before;
        Ok(())
    }

    /// Runs a builtin that changes the shell; says whether it was one.
    fn builtin(&mut self, command: &Command, state: &mut State) -> Parsed<bool> {
        let arguments = command.argv.get(1..).unwrap_or_default();
        let operands = || arguments.iter().filter(|one| !is_option(one));
        match command.name() {
            "cd" | "chdir" => {
                let folder = match operands().next() {
                    None if arguments.iter().any(|one| one.text() == Some("-")) => {
                        state.before.clone().unwrap_or(Place::Unknown)
                    }
                    None => Place::Home(String::new()),
                    Some(folder) => state.folder.entered(folder),
                };
                let left = std::mem::replace(&mut state.folder, folder);
                state.before = Some(left);
            }
            "pushd" => {
                let folder = operands().next().map_or(Place::Unknown, |f| state.folder.entered(f));
                let left = std::mem::replace(&mut state.folder, folder);
                state.pushed.push(left);
            }
            "popd" => state.folder = state.pushed.pop().unwrap_or(Place::Unknown),
            "export" | "declare" | "local" | "readonly" | "typeset" => {
                for argument in operands() {
                    match wrappers::assigned(argument) {
                        Some((name, value)) => {
                            self.alters(&name, Some(&value));
                            state.set(&name, known(value));
                        }
                        None if command.name() == "local" => state.set(&argument.shown(), None),
                        None => {}
                    }
                }
            }
            "unset" | "read" | "mapfile" | "readarray" | "getopts" | "let" => {
                for argument in operands() {
                    let name = argument.shown();
                    state.set(name.split('=').next().unwrap_or(&name), None);
                }
                if command.name() == "unset" {
                    operands().for_each(|name| drop(state.functions.remove(&*name.shown())));
                }
            }
            "printf" if arguments.first().and_then(Argument::text) == Some("-v") => {
                operands().take(1).for_each(|name| state.set(&name.shown(), None));
            }
            "shift" => state.positional = None,
            "set" => self.set_positional(arguments, state),
            "trap" => {
                if let Some(script) = arguments.first().and_then(Argument::text) {
                    let script = reader::read(script, self.depth())?;
                    let mut inner = state.clone();
                    self.deeper(|walker| walker.script(&script, &mut inner, &Input::Outside))?;
                }
            }
            "source" | "." => {
                // It may go anywhere and set anything.
                state.folder = Place::Unknown;
                state.variables.values_mut().for_each(|value| *value = None);
                state.set("TMPDIR", None);
                self.opaque();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_positional(&mut self, arguments: &[Argument], state: &mut State) {
        let mut all = arguments.iter().peekable();
        while let Some(option) = all.next_if(|one| is_option(one) || is_turned_off(one)) {
            let text = option.text().unwrap_or_default();
            if text == "--" {
                state.positional = Some(all.cloned().collect());
                return;
            }
            // `-o pipefail`.
            if text.ends_with('o') {
                all.next();
            }
        }
        state.positional = match all.peek() {
            None => return,
            // Options or words, and nobody knows how many.
            Some(Argument::Unknown(_)) => None,
            Some(_) => Some(all.cloned().collect()),
        };
    }
}

fn known(value: Argument) -> Option<Argument> {
    Some(value).filter(|value| !matches!(value, Argument::Unknown(_)))
}

fn is_option(argument: &Argument) -> bool {
    argument.text().is_some_and(|text| text.starts_with('-'))
}

/// `set +e`.
fn is_turned_off(argument: &Argument) -> bool {
    argument.text().is_some_and(|text| text.starts_with('+'))
}

/// What a command surely prints.
fn printed(command: &Command, state: &State, input: &Input) -> Option<Argument> {
    match command.name() {
        "mktemp" if is_temporary(command, state) => Some(TEMPORARY.into()),
        "pwd" => Some(command.folder.as_argument()),
        _ => printed_text(command, input).map(Argument::Text),
    }
}

/// Does `mktemp` make something where temporary files lie, and nowhere else?
pub(super) fn is_temporary(command: &Command, state: &State) -> bool {
    let plain = ["-d", "-q", "-dq", "-qd", "--directory", "--quiet"];
    let is_plain = |word: &Argument| word.text().is_some_and(|text| plain.contains(&text));
    let turned = state.variables.contains_key("TMPDIR")
        || command.assigned.iter().any(|(name, _)| name == "TMPDIR")
        || !command.unset.is_empty();
    !turned && command.argv.iter().skip(1).all(is_plain)
}

fn printed_text(command: &Command, input: &Input) -> Option<String> {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let texts: Option<Vec<&str>> = arguments.iter().map(Argument::text).collect();
    let texts = texts?;
    match (command.name(), &texts[..]) {
        ("echo", ["-n", words @ ..]) => Some(words.join(" ")),
        ("echo", [first, ..]) if first.starts_with('-') => None,
        ("echo", words) => Some(format!("{}\n", words.join(" "))),
        ("printf", [format]) if !format.contains(['%', '\\']) => Some((*format).to_owned()),
        ("printf", ["%s" | "%s\\n", text]) => Some(format!("{text}\n")),
        ("cat", [] | ["-"]) => match input {
            Input::Known(text) => Some(text.clone()),
            Input::Outside | Input::Unknown => None,
        },
        ("which", [name]) | ("command" | "type", ["-v" | "-p" | "-P", name]) => {
            Some((*name).to_owned())
        }
        ("dirname", [path]) => {
            let (folder, _) = path.trim_end_matches('/').rsplit_once('/').unwrap_or((".", ""));
            Some(folder.to_owned())
        }
        ("basename", [path]) => path.rsplit('/').next().map(str::to_owned),
        _ => None,
    }
}

impl Walker {
    /// A word as the program sees it, from where the program runs.
    pub(super) fn place(&self, command: &Command, argument: &Argument) -> Place {
        command.folder.join(argument)
    }

    pub(super) fn writes_all(
        &mut self,
        command: &Command,
        operands: &[Argument],
        how: outcome::How,
        below: bool,
    ) {
        for operand in operands {
            let place = self.place(command, operand);
            self.writes(place, how, below);
        }
    }

    pub(super) fn writes_part_of_all(
        &mut self,
        command: &Command,
        operands: &[Argument],
        how: outcome::How,
    ) {
        for operand in operands {
            self.writes_part(self.place(command, operand), how);
        }
    }

    pub(super) fn reads_all(&mut self, command: &Command, operands: &[Argument]) {
        for operand in operands.iter().filter(|operand| operand.text() != Some("-")) {
            let place = self.place(command, operand);
            self.reads(place);
        }
    }
}
