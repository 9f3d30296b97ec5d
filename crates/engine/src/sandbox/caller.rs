//! A call of Baton from inside a sandbox.
//!
//! Owns the caller's side of the broker: words, folder and three descriptors go out, an exit code
//! comes back. And the line that a command inherits, over which it is asked first. Refuses to know
//! what was asked.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
#[cfg(target_os = "linux")]
use {
    rustix::fs::{FileType, fstat},
    rustix::io::{FdFlags, fcntl_setfd},
    rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open},
    std::os::fd::AsRawFd as _,
};

use super::broker::{BROUGHT, REQUEST_BYTES_MAX};
use super::{BROKER_VARIABLE, Error, LINE_VARIABLE};
use crate::failure::Failure;

/// What comes back of one call is held in memory.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Whether there is a broker to ask, because the store is closed here.
#[must_use]
pub fn is_inside() -> bool {
    [LINE_VARIABLE, BROKER_VARIABLE].iter().any(|name| std::env::var_os(name).is_some())
}

/// Has the broker do it, with our own input and outputs, and answers with its exit code.
pub fn call(words: &[OsString]) -> Result<u8, Failure> {
    let (input, output, errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let mut stream = ask(words, [input.as_fd(), output.as_fd(), errors.as_fd()])?;
    answer(&mut stream).map_err(|_| Error::BrokerGone.into())
}

/// Has the broker do it with this input, and answers with its exit code and output. What it says
/// on the way is heard line by line. It ends early when `end` can be read.
pub fn pass(
    words: &[OsString],
    input: &[u8],
    end: BorrowedFd<'_>,
    hear: &(dyn Fn(&str) + Sync),
) -> Result<(u8, Vec<u8>), Failure> {
    let gone = |_| Failure::from(Error::BrokerGone);
    let (its_input, mut to) = std::io::pipe().map_err(gone)?;
    let (from, its_output) = std::io::pipe().map_err(gone)?;
    let (remarks, its_errors) = std::io::pipe().map_err(gone)?;
    let theirs = [its_input.as_fd(), its_output.as_fd(), its_errors.as_fd()];
    let mut stream = ask(words, theirs)?;
    drop((its_input, its_output, its_errors));
    std::thread::scope(|scope| {
        // A call that ends without reading all of it is no failure of ours.
        scope.spawn(move || drop(to.write_all(input)));
        let output = scope.spawn(move || {
            let mut output = Vec::new();
            let _ = from.take(OUTPUT_BYTES_MAX).read_to_end(&mut output);
            output
        });
        scope.spawn(move || {
            BufReader::new(remarks).lines().map_while(Result::ok).for_each(|line| hear(&line));
        });
        wait(&stream, end);
        let code = answer(&mut stream);
        // The broker ends a call whose caller is gone.
        drop(stream);
        let output = output.join().unwrap_or_default();
        Ok((code.map_err(gone)?, output))
    })
}

/// Until there is an answer, or nobody wants one any more: then there will be none.
fn wait(stream: &UnixStream, end: BorrowedFd<'_>) {
    let mut both = [PollFd::new(stream, PollFlags::IN), PollFd::new(&end, PollFlags::IN)];
    while let Err(rustix::io::Errno::INTR) = poll(&mut both, None) {}
    if both[0].revents().is_empty() {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Asks over the line that was inherited, else by the path of the broker's socket.
fn ask(words: &[OsString], descriptors: [BorrowedFd<'_>; 3]) -> Result<UnixStream, Failure> {
    let address = std::env::var_os(BROKER_VARIABLE).unwrap_or_default();
    let found = split(&address);
    let secret = found.map(|(_, secret)| secret).unwrap_or_default();
    let body = request(secret, words)?;
    let by_path = || found.and_then(|(path, _)| UnixStream::connect(path).ok());
    let mut stream = over_line().or_else(by_path).ok_or(Error::BrokerGone)?;
    send(&mut stream, &body, &descriptors).map_err(|_| Error::BrokerGone)?;
    Ok(stream)
}

/// The path of the socket, and the secret.
fn split(address: &OsStr) -> Option<(&Path, &[u8])> {
    let address = address.as_bytes();
    let colon = address.iter().rposition(|byte| *byte == b':')?;
    Some((Path::new(OsStr::from_bytes(&address[..colon])), &address[colon + 1..]))
}

/// A line for the command that this process becomes: the descriptor, which stays open in it, and
/// what says which one it is. Without one there is still the path.
#[cfg(target_os = "linux")]
pub(super) fn keep_line() -> Option<(OwnedFd, String)> {
    let address = std::env::var_os(BROKER_VARIABLE)?;
    let (path, secret) = split(&address)?;
    let mut line = UnixStream::connect(path).ok()?;
    let mut body = secret.to_vec();
    body.push(0);
    line.write_all(&u32::try_from(body.len()).ok()?.to_be_bytes()).ok()?;
    line.write_all(&body).ok()?;
    let line = OwnedFd::from(line);
    let text = format!("{}:{}", line.as_raw_fd(), fstat(&line).ok()?.st_ino);
    fcntl_setfd(&line, FdFlags::empty()).ok()?;
    Some((line, text))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn keep_line() -> Option<(OwnedFd, String)> {
    None
}

/// The line that was inherited. Somebody in between may have closed it and opened something else
/// under its number, so it must be that very socket.
#[cfg(target_os = "linux")]
fn line() -> Option<OwnedFd> {
    let text = std::env::var(LINE_VARIABLE).ok()?;
    let (number, inode) = text.split_once(':')?;
    let (number, inode) = (number.parse().ok()?, inode.parse::<u64>().ok()?);
    let myself = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    let line = pidfd_getfd(&myself, number, PidfdGetfdFlags::empty()).ok()?;
    let found = fstat(&line).ok()?;
    let socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
    (socket && found.st_ino == inode).then_some(line)
}

#[cfg(not(target_os = "linux"))]
fn line() -> Option<OwnedFd> {
    None
}

/// A connection of its own for one call: the broker gets the other end over the line.
fn over_line() -> Option<UnixStream> {
    let line = line()?;
    let (mine, others) = UnixStream::pair().ok()?;
    send_with(&line, &[0], &[others.as_fd()]).ok()?;
    Some(mine)
}

fn request(secret: &[u8], words: &[OsString]) -> Result<Vec<u8>, Failure> {
    let folder = std::env::current_dir().unwrap_or_default();
    let mut body = Vec::new();
    let mut field = |bytes: &[u8]| {
        body.extend_from_slice(bytes);
        body.push(0);
    };
    field(secret);
    field(folder.as_os_str().as_bytes());
    for name in BROUGHT {
        field(std::env::var_os(name).unwrap_or_default().as_bytes());
    }
    words.iter().for_each(|word| field(word.as_bytes()));
    match body.len() > REQUEST_BYTES_MAX {
        true => Err(baton_core::refusal::Refusal::TooLong {
            what: "command line",
            bytes_max: REQUEST_BYTES_MAX,
        }
        .into()),
        false => Ok(body),
    }
}

fn send(
    stream: &mut UnixStream,
    body: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> std::io::Result<()> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    let sent = send_with(&*stream, &length, descriptors)?;
    stream.write_all(&length[sent..])?;
    stream.write_all(body)
}

fn answer(stream: &mut UnixStream) -> std::io::Result<u8> {
    let mut code = [0];
    stream.read_exact(&mut code)?;
    Ok(code[0])
}

/// Sends bytes, and descriptors with the first of them.
fn send_with(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> std::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(descriptors));
    // Where there is no such flag there is no sandbox either.
    #[cfg(target_os = "linux")]
    let flags = SendFlags::NOSIGNAL;
    #[cfg(not(target_os = "linux"))]
    let flags = SendFlags::empty();
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)?)
}
