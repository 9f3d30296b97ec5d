//! A person or script that looks on while something takes its time.
//!
//! Owns how steps and output reach standard error, and that a wish to end is remembered once it was
//! made. What is shown, and when, is for each command to say.

use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;

use baton_engine::failure::Failure;

use crate::counter::Counter;
use crate::desk::remark;
use crate::render::{Paint, colour_wanted, paint};
use crate::signals::Signals;

#[derive(Debug)]
pub(crate) struct Onlooker<'a> {
    wish: Wish<'a>,
    ended: bool,
}

/// Where a wish to end comes from.
#[derive(Debug)]
enum Wish<'a> {
    Signals(Signals),
    /// Signals are the server's then.
    Counter(&'a Counter),
}

impl<'a> Onlooker<'a> {
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::of(None)
    }

    /// Whoever stands at a counter looks on from there.
    pub(crate) fn of(counter: Option<&'a Counter>) -> Result<Self, Failure> {
        let wish = match counter {
            Some(counter) => Wish::Counter(counter),
            None => Wish::Signals(Signals::to_end()?),
        };
        Ok(Self { wish, ended: false })
    }

    pub(crate) fn counter(&self) -> Option<&'a Counter> {
        match self.wish {
            Wish::Signals(_) => None,
            Wish::Counter(counter) => Some(counter),
        }
    }

    /// A step begins. For a person who looks on; a script gets the answer or the refusal.
    pub(crate) fn step(what: &str) {
        if std::io::stderr().is_terminal() {
            let colour = colour_wanted(&std::io::stderr());
            remark(&paint(&format!("{what} …"), Paint::Dim, colour));
        }
    }

    /// A piece of what a command writes.
    pub(crate) fn wrote(bytes: &[u8]) {
        // A reader that is gone is no reason to stop.
        let _ = std::io::stderr().write_all(bytes);
    }

    /// Readable when somebody wants this to end.
    pub(crate) fn end_descriptor(&self) -> BorrowedFd<'_> {
        match &self.wish {
            Wish::Signals(signals) => signals.descriptor(),
            Wish::Counter(counter) => counter.end_descriptor(),
        }
    }

    pub(crate) fn end_wanted(&mut self) -> bool {
        self.ended = self.ended
            || match &mut self.wish {
                Wish::Signals(signals) => signals.came(),
                Wish::Counter(counter) => counter.end_wanted(),
            };
        self.ended
    }
}
