//! A call of Baton from inside a sandbox.
//!
//! Owns the caller's side of the broker: words, folder and standard descriptors go out, an exit
//! code comes back. Refuses to know what was asked.

use std::ffi::{OsStr, OsString};
use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::Error;
use super::broker::{BROUGHT, REQUEST_BYTES_MAX};
use crate::failure::Failure;

/// Has the broker do it, and answers with its exit code.
pub fn call(address: &OsStr, words: &[OsString]) -> Result<u8, Failure> {
    let address = address.as_bytes();
    let colon = address.iter().rposition(|byte| *byte == b':').ok_or(Error::BrokerGone)?;
    let (path, secret) = (OsStr::from_bytes(&address[..colon]), &address[colon + 1..]);
    let stream = UnixStream::connect(Path::new(path)).map_err(|_| Error::BrokerGone)?;
    ask(stream, &request(secret, words)?).map_err(|_| Error::BrokerGone.into())
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

fn ask(mut stream: UnixStream, body: &[u8]) -> std::io::Result<u8> {
    let (input, output, errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let descriptors = [input.as_fd(), output.as_fd(), errors.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    // Where there is no such flag there is no sandbox either.
    #[cfg(target_os = "linux")]
    let flags = SendFlags::NOSIGNAL;
    #[cfg(not(target_os = "linux"))]
    let flags = SendFlags::empty();
    let sent = sendmsg(&stream, &[IoSlice::new(&length)], &mut control, flags)?;
    stream.write_all(&length[sent..])?;
    stream.write_all(body)?;
    let mut code = [0];
    stream.read_exact(&mut code)?;
    Ok(code[0])
}
