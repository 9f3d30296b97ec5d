//! `once`: run a command unless it has succeeded under a key.
//!
//! Owns how its output and its end reach the caller. The command's standard output is passed on as
//! it comes, and the recorded end of it is given to everyone who asks later.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;
use std::process::ExitCode;

use baton_core::id::Token;
use baton_core::key::Key;
use baton_core::notices::Notice;
use baton_core::once::Runner;
use baton_core::time::{Moment, Span};
use baton_engine::api::shared;
use baton_engine::once::{self, Door, Outcome as Came, Wish};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::Common;
use crate::desk::{Desk, Outcome, print, remark};
use crate::news::notices_words;
use crate::render::{ago, colour_wanted, shown, shown_lines};
use crate::signals::Signals;
use crate::words::{Problem, running};

/// The copy of ourselves that becomes the command.
#[derive(Debug, clap::Args)]
pub(crate) struct OnceCommand {
    runner: u32,
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// What `--json` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Reply {
    key: Key,
    how: How,
    /// The turn that ran it.
    token: Token,
    exit_code: u8,
    /// The end of its standard output.
    output: String,
    /// There was more output before it.
    cut: bool,
    /// In milliseconds.
    took: Span,
    /// When it succeeded; for a recorded result.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Moment>,
    /// Whether the end was recorded. False when the turn was lost meanwhile.
    recorded: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum How {
    Ran,
    Recorded,
}

pub(crate) fn run(common: &Common, wanted: &shared::Once) -> Outcome {
    let mut desk = Desk::open_to_act(common)?;
    let mut terminal = Terminal {
        json: common.json,
        interrupt: Signals::to_interrupt()?,
        terminate: Signals::to_terminate()?,
    };
    let came = once::run(&mut desk.workspace, &desk.actor, wanted, &mut terminal)?;
    match came {
        Came::Recorded { success, same_command } => {
            if !same_command {
                let program = shown(&success.command.program);
                remark(&format!("note: recorded for another command line ({program})"));
            }
            if success.output.cut {
                remark("note: only the end of the recorded output is kept");
            }
            let who = shown(&success.holder.name);
            remark(&format!("recorded: {} succeeded {} by {who}", wanted.key, ago(success.at)));
            let reply = Reply {
                key: wanted.key.clone(),
                how: How::Recorded,
                token: success.token,
                exit_code: 0,
                output: success.output.text,
                cut: success.output.cut,
                took: success.took,
                at: Some(success.at),
                recorded: true,
            };
            desk.answer(&reply, |reply: &Reply, _| replayed(&reply.output));
            Ok(ExitCode::SUCCESS)
        }
        Came::Ran(ran) => {
            let code = ran.code;
            if common.json {
                let reply = Reply {
                    key: wanted.key.clone(),
                    how: How::Ran,
                    token: ran.token,
                    exit_code: code,
                    output: ran.output.text,
                    cut: ran.output.cut,
                    took: ran.took,
                    at: None,
                    recorded: ran.unrecorded.is_none(),
                };
                print(&format!("{}\n", serde_json::to_string(&reply).unwrap_or_default()));
            }
            ended(code, ran.unrecorded.map(Problem::from))
        }
    }
}

/// The command's own code, unless it succeeded and that could not be kept.
fn ended(code: u8, unrecorded: Option<Problem>) -> Outcome {
    let Some(problem) = unrecorded else {
        return Ok(ExitCode::from(code));
    };
    match code {
        0 => remark("the command succeeded, and that is not recorded"),
        code => remark(&format!("the command failed with {code}, and that is not recorded")),
    }
    // Said here and not by the caller: with --json there is one document already.
    let said = crate::desk::say_problem(&problem, false);
    Ok(if code == 0 { said } else { ExitCode::from(code) })
}

/// The recorded output. A script gets it byte for byte; on a terminal nothing in it acts.
fn replayed(output: &str) -> String {
    match std::io::stdout().is_terminal() && !output.is_empty() {
        true => format!("{}\n", shown_lines(output, "")),
        false => output.to_owned(),
    }
}

pub(crate) fn become_command(wanted: &OnceCommand) -> Outcome {
    let (code, error) = once::child::become_command(wanted.runner, &wanted.command);
    let program = wanted.command.first().map(|word| word.to_string_lossy().into_owned());
    if let Some(error) = error {
        remark(&format!("cannot run {}: {error}", shown(&program.unwrap_or_default())));
    }
    Ok(ExitCode::from(code))
}

struct Terminal {
    json: bool,
    interrupt: Signals,
    terminate: Signals,
}

impl Door for Terminal {
    fn waits_for(&mut self, runner: &Runner) {
        remark(&format!("waiting: {}", running(runner)));
    }

    fn was_told(&mut self, notices: &[Notice]) {
        let text = notices_words(notices, colour_wanted(&std::io::stderr()));
        if !text.is_empty() {
            remark(text.trim_end());
        }
    }

    fn wrote(&mut self, bytes: &[u8]) {
        // A reader that is gone is no reason to stop the command.
        let _ = match self.json {
            true => std::io::stderr().write_all(bytes),
            false => {
                let mut out = std::io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
        };
    }

    fn end_descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.interrupt.descriptor(), self.terminate.descriptor()]
    }

    fn end_wanted(&mut self) -> Option<Wish> {
        let interrupted = self.interrupt.came();
        match self.terminate.came() {
            true => Some(Wish::Terminate),
            false => interrupted.then_some(Wish::Interrupt),
        }
    }
}
