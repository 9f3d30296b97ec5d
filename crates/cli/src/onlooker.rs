//! A person or script that looks on while something takes its time.
//!
//! Owns how steps and output reach standard error, and that a wish to end is remembered once it was
//! made. What is shown, and when, is for each command to say.

use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;

use baton_engine::failure::Failure;

use crate::desk::remark;
use crate::render::{Paint, colour_wanted, paint};
use crate::signals::Signals;

#[derive(Debug)]
pub(crate) struct Onlooker {
    signals: Signals,
    ended: bool,
}

impl Onlooker {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self { signals: Signals::to_end()?, ended: false })
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
        self.signals.descriptor()
    }

    pub(crate) fn end_wanted(&mut self) -> bool {
        self.ended = self.ended || self.signals.came();
        self.ended
    }
}
