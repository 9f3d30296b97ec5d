//! Ctrl-C as something to sleep on.
//!
//! Owns the descriptors that become readable when somebody wants this process to end, or when its
//! terminal changes size. A command that sleeps on them ends by returning, so whatever it must put
//! back is put back on the ordinary way out.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use baton_engine::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

#[derive(Debug)]
pub(crate) struct Signals {
    stream: UnixStream,
}

impl Signals {
    /// Somebody wants us to end. From here on the first such wish is only noted.
    pub(crate) fn to_end() -> Result<Self, Failure> {
        Self::of(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// Ctrl-C alone, which a command in the same terminal hears as well.
    pub(crate) fn to_interrupt() -> Result<Self, Failure> {
        Self::of(&[SIGINT])
    }

    /// The keys that end what has the terminal, which a command there hears by itself.
    pub(crate) fn of_keys() -> Result<Self, Failure> {
        Self::of(&[SIGINT, SIGQUIT])
    }

    /// Somebody wants this very process to end.
    pub(crate) fn to_terminate() -> Result<Self, Failure> {
        Self::of(&[SIGTERM, SIGHUP])
    }

    /// The terminal has another size.
    pub(crate) fn of_size() -> Result<Self, Failure> {
        Self::of(&[SIGWINCH])
    }

    fn of(signals: &[i32]) -> Result<Self, Failure> {
        let made = || -> std::io::Result<Self> {
            let (stream, write) = UnixStream::pair()?;
            stream.set_nonblocking(true)?;
            for signal in signals {
                signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
            }
            Ok(Self { stream })
        };
        made().map_err(|source| Failure::File {
            doing: "Ctrl-C cannot be watched for",
            path: "signals".into(),
            source,
        })
    }

    /// Has one come since this was asked last?
    pub(crate) fn came(&mut self) -> bool {
        let mut bytes = [0; 64];
        matches!(self.stream.read(&mut bytes), Ok(count) if count > 0)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
