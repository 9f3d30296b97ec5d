//! What a client gives to its hook.
//!
//! Owns the reading of standard input, which ends with the time a hook has: a client that never
//! closes it is not waited for. And the answer to what nobody can read.

use std::time::Instant;

use baton_engine::failure::Failure;
use baton_engine::place;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::desk;
use crate::hooks::limit::LIMIT;
use crate::hooks::{self, Answer, Client, words};

/// Most payloads are shorter.
const PAYLOAD_BYTES_USUAL: usize = 4 * 1024;
/// More than any client sends; the rest is not read.
const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Standard input to its end, as long as that comes within the time limit. Without the buffer that
/// `std` puts before it, which is two pages of memory more, each as dear as a look at a file.
pub(super) fn given(begun: Instant) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(PAYLOAD_BYTES_USUAL);
    while text.len() < PAYLOAD_BYTES_MAX {
        if text.len() == text.capacity() {
            text.reserve(text.len());
        }
        if !comes(begun) {
            return None;
        }
        match rustix::io::read(rustix::stdio::stdin(), spare_capacity(&mut text)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(text)
}

/// Whether there is something to read before the time is over.
fn comes(begun: Instant) -> bool {
    let left = LIMIT.saturating_sub(begun.elapsed());
    let input = rustix::stdio::stdin();
    let mut watched = [PollFd::new(&input, PollFlags::IN)];
    // A signal that comes in between is waited out by the next look.
    match Timespec::try_from(left).map(|left| poll(&mut watched, Some(&left))) {
        Ok(Ok(0)) => false,
        Ok(Err(Errno::INTR)) => begun.elapsed() < LIMIT,
        _ => true,
    }
}

/// The answer where nothing can be judged and yet it can be seen that something is done here: it
/// goes on, and the model is told. Else nothing could be said that the client would understand, and
/// only its log may keep a word.
pub(super) fn unread(client: Client, text: &[u8]) -> Option<String> {
    let payload = hooks::glimpsed(client, text)?;
    let opened = desk::open(&payload.cwd);
    if matches!(opened, Err(Failure::Place(place::Error::NotInitialised { .. }))) {
        return None;
    }
    let answer = match hooks::is_told(&payload, true) {
        true => Answer::Context(words::unread(payload.client)),
        false => Answer::Silent,
    };
    Some(hooks::say(&payload, &answer).out).filter(|said| !said.is_empty())
}
