//! Where a command is served for somebody who is not at a terminal: a client of the MCP server.
//!
//! Owns what was said there: answers as documents and in words, kept instead of printed. Whoever
//! lends the workspace says who acts; a command asks for neither. Nothing is written to standard
//! output, which belongs to the protocol.

use std::cell::{RefCell, RefMut};
use std::io::PipeReader;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::context::Actor;
use baton_engine::workspace::Workspace;
use serde::Serialize;
use serde_json::{Value, json};

use crate::desk;
use crate::words::Problem;

/// A workspace that is open already.
pub(crate) type Lent<'a> = RefMut<'a, Workspace>;

pub(crate) struct Counter {
    workspace: RefCell<Workspace>,
    pub(crate) actor: Actor,
    pub(crate) cwd: PathBuf,
    said: RefCell<Said>,
    /// Told how long work goes on, while it does.
    hear: Box<dyn Fn(&str)>,
    /// Readable when nobody waits for the answer any more.
    end: Arc<PipeReader>,
}

/// What a command said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    /// The document of its answer, or of each when there are several.
    pub(crate) replies: Vec<Value>,
}

impl std::fmt::Debug for Counter {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Counter").field("actor", &self.actor).finish_non_exhaustive()
    }
}

impl Counter {
    pub(crate) fn new(
        workspace: Workspace,
        actor: Actor,
        cwd: PathBuf,
        end: Arc<PipeReader>,
        hear: Box<dyn Fn(&str)>,
    ) -> Self {
        let (workspace, said) = (RefCell::new(workspace), RefCell::default());
        Self { workspace, actor, cwd, said, hear, end }
    }

    pub(crate) fn workspace(&self) -> Result<Lent<'_>, Problem> {
        self.workspace.try_borrow_mut().map_err(|_| Problem {
            exit: 4,
            code: "busy",
            message: "two commands are served at one counter".to_owned(),
            next: "baton doctor, and report this line with what it prints".to_owned(),
            details: json!({}),
        })
    }

    pub(crate) fn answer(&self, reply: &impl Serialize, words: &str) {
        let mut said = self.said.borrow_mut();
        said.replies.push(serde_json::to_value(reply).unwrap_or_default());
        said.text.push_str(words);
    }

    /// The document of the first answer here.
    pub(crate) fn first_reply(&self) -> Option<Value> {
        self.said.borrow().replies.first().cloned()
    }

    /// A line that belongs to the answer.
    pub(crate) fn remark(&self, text: &str) {
        let mut said = self.said.borrow_mut();
        said.text.push_str(text);
        said.text.push('\n');
    }

    pub(crate) fn end_descriptor(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    pub(crate) fn end_wanted(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&*self.end, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Closed for good: the workspace goes back to whoever lent it.
    pub(crate) fn close(self) -> (Workspace, Said) {
        (self.workspace.into_inner(), self.said.into_inner())
    }
}

/// How work goes on: told at the counter, or on standard error.
pub(crate) fn tell(counter: Option<&Counter>, text: &str) {
    match counter {
        Some(counter) => (counter.hear)(text),
        None => desk::remark(text),
    }
}
