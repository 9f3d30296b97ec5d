//! Ctrl-C as something to sleep on.
//!
//! Owns the descriptors that become readable when somebody wants this process to end, or when its
//! terminal changes size. A command that sleeps on them ends by returning, so whatever it must put
//! back is put back on the ordinary way out.

use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use baton_engine::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

#[derive(Debug)]
pub(crate) struct Signals {
    stream: UnixStream,
    /// The number of the last one, which a descriptor does not tell.
    last: Arc<AtomicUsize>,
}

/// The same wish as the end of a pipe, for as long as this process lives.
pub(crate) fn end_as_pipe() -> std::io::Result<PipeReader> {
    let (end, writer) = std::io::pipe()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(end)
}

impl Signals {
    /// Somebody wants us to end. From here on the first such wish is only noted.
    pub(crate) fn to_end() -> Result<Self, Failure> {
        Self::of(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// The same for a command that may be in the middle of a question to a store that does not
    /// answer: who wishes it twice does not wait for that.
    pub(crate) fn to_leave() -> Result<Self, Failure> {
        let wished = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order, so that the first wish alone does not end it.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&wished))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&wished)))
                .map_err(unwatched)?;
        }
        Self::to_end()
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
            let last = Arc::new(AtomicUsize::new(0));
            for signal in signals {
                // Known before the descriptor wakes anybody.
                let number = usize::try_from(*signal).unwrap_or_default();
                signal_hook::flag::register_usize(*signal, Arc::clone(&last), number)?;
                signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
            }
            Ok(Self { stream, last })
        };
        made().map_err(unwatched)
    }

    /// Has one come since this was asked last?
    pub(crate) fn came(&mut self) -> bool {
        let mut bytes = [0; 64];
        matches!(self.stream.read(&mut bytes), Ok(count) if count > 0)
    }

    /// Ends as a process does that was never asked about the signal that came: whoever started it
    /// sees what ended it, and a loop in a shell ends too. Does nothing when none came.
    pub(crate) fn end_as_told(&self) {
        let came = i32::try_from(self.last.load(Ordering::SeqCst)).unwrap_or_default();
        if came > 0 {
            let _ = signal_hook::low_level::emulate_default_handler(came);
        }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn unwatched(source: std::io::Error) -> Failure {
    Failure::File { doing: "Ctrl-C cannot be watched for", path: "signals".into(), source }
}
