//! The broker: calls of Baton from inside a sandbox, made outside, as one session.
//!
//! Owns the socket and the calls. A request brings its words, its folder and its three standard
//! descriptors; the call runs as a child of ours with just those, and its life is tied to the
//! caller's. Who may do what is judged by the door that opened the sandbox. Invariant: whoever
//! has neither the line nor the secret is not served, and no call acts as anybody but the session.
//!
//! The line is a connection that the command inherits, and so do its children: each call sends one
//! end of a pair of sockets over it. Beside it the socket has a path, for those who lost the line:
//! Node, Python and the pseudo-terminals of clients close every descriptor they do not know before
//! they start a command.

use std::ffi::{OsStr, OsString};
use std::io::{IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::family::Family;
use super::guard::Guard;
use super::{
    BOUND_VARIABLE, BROKER_VARIABLE, CALL_VERB, HELD_VARIABLE, LINE_VARIABLE, Net, PLACE_VARIABLE,
    Spec, VERB, inside,
};
use crate::failure::Failure;
use crate::leash::{self, Waited};
use crate::workspace::secret;

/// The words of one call, altogether.
pub(super) const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Calls side by side, the line among them.
const CALLS_MAX: usize = 65;
/// A caller that says nothing is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// `journal --follow` and the MCP server last as long as their caller.
const CALL_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// What a call may bring of its own surroundings, in this order.
pub(super) const BROUGHT: [&str; 5] =
    ["BATON_AGENT", "TERM", "NO_COLOR", "COLUMNS", "GIT_INDEX_FILE"];

/// What is said instead of a call.
#[derive(Clone, Debug)]
pub struct Said {
    pub out: String,
    pub err: String,
    pub code: u8,
}

/// How a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// As any command.
    Plain,
    /// It may run what the caller names or the tree has (checks, hooks). That is held as the
    /// sandbox's own command is; the call itself writes to this repository and nowhere else.
    InRepository,
}

/// Whoever knows what may be asked for.
pub trait Judge: std::fmt::Debug + Send + Sync {
    fn judge(&self, words: &[OsString]) -> Result<Permit, Said>;
    /// The same for calls that are many in one: what `BATON_BOUND` says to them.
    fn bound(&self) -> String;
    /// By which everything inside is held.
    fn role(&self) -> &str;
}

/// What every call is bound to.
pub(super) struct Bound {
    /// How the sandbox's own command is held.
    pub(super) held: Spec,
    pub(super) credential: String,
    pub(super) root: PathBuf,
    pub(super) repository: Vec<PathBuf>,
    pub(super) temporary: PathBuf,
    pub(super) best_effort: bool,
    pub(super) guard: Arc<Guard>,
    pub(super) family: Arc<Family>,
    pub(super) judge: Arc<dyn Judge>,
    /// Where every call acts, as `BATON_BOUND_PLACE` says it.
    pub(super) place: String,
}

pub(super) struct Broker {
    socket: PathBuf,
    secret: String,
    closed: Arc<AtomicBool>,
}

impl Broker {
    pub(super) fn open(socket: &Path, bound: Bound) -> Result<Self, Failure> {
        let cannot = |source| Failure::File {
            doing: "cannot open the broker's socket",
            path: socket.to_owned(),
            source,
        };
        let listener = UnixListener::bind(socket).map_err(cannot)?;
        let secret = secret()?;
        let closed = Arc::new(AtomicBool::new(false));
        let desk = Arc::new(Desk { secret: secret.clone(), bound, calls: AtomicUsize::new(0) });
        let ended = Arc::clone(&closed);
        let serve = move || serve(&listener, &desk, &ended);
        std::thread::Builder::new().name("broker".to_owned()).spawn(serve).map_err(cannot)?;
        Ok(Self { socket: socket.to_owned(), secret, closed })
    }

    /// What `BATON_BROKER` says inside.
    pub(super) fn address(&self) -> OsString {
        let mut address = self.socket.clone().into_os_string();
        address.push(":");
        address.push(&self.secret);
        address
    }

    /// Nobody is served from here on.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        // Whoever sleeps on the socket wakes and sees it.
        let _ = UnixStream::connect(&self.socket);
    }
}

struct Desk {
    secret: String,
    bound: Bound,
    calls: AtomicUsize,
}

fn serve(listener: &UnixListener, desk: &Arc<Desk>, closed: &Arc<AtomicBool>) {
    for stream in listener.incoming() {
        if closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        serve_one(desk, closed, stream, Came::ByPath);
    }
}

/// By which way somebody came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// Anybody can who finds the path: the secret tells.
    ByPath,
    /// Over the line, which only this sandbox has.
    OverLine,
}

fn serve_one(desk: &Arc<Desk>, closed: &Arc<AtomicBool>, mut stream: UnixStream, came: Came) {
    let (desk, closed) = (Arc::clone(desk), Arc::clone(closed));
    if desk.calls.fetch_add(1, Ordering::SeqCst) >= CALLS_MAX {
        desk.calls.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let call = move || {
        let code = match desk.asked(&mut stream, came) {
            Some(Asked::Call(request)) => desk.answer(&stream, *request),
            Some(Asked::Line) if came == Came::ByPath => {
                attend_line(&desk, &closed, &stream);
                None
            }
            Some(Asked::Line) | None => None,
        };
        desk.calls.fetch_sub(1, Ordering::SeqCst);
        // A caller that is gone needs no answer.
        if let Some(code) = code {
            let _ = stream.write_all(&[code]);
        }
    };
    // Without a thread the stream is closed, which says that nobody answers.
    let _ = std::thread::Builder::new().name("broker call".to_owned()).spawn(call);
}

/// Serves whoever sends the end of a socket over it, until everybody inside has closed it.
fn attend_line(desk: &Arc<Desk>, closed: &Arc<AtomicBool>, line: &UnixStream) {
    loop {
        let mut byte = [0_u8; 1];
        let Some((1, descriptors)) = receive_with(line, &mut byte) else { return };
        if closed.load(Ordering::SeqCst) {
            return;
        }
        if let Ok([end]) = <[OwnedFd; 1]>::try_from(descriptors) {
            serve_one(desk, closed, UnixStream::from(end), Came::OverLine);
        }
    }
}

/// What somebody wants.
enum Asked {
    Call(Box<Request>),
    /// A line for the command and its children.
    Line,
}

/// One call, as it was asked for.
struct Request {
    folder: PathBuf,
    brought: Vec<Vec<u8>>,
    words: Vec<OsString>,
    descriptors: [OwnedFd; 3],
}

impl Desk {
    /// What is asked for, by somebody who may.
    fn asked(&self, stream: &mut UnixStream, came: Came) -> Option<Asked> {
        let (secret, asked) = receive(stream)?;
        (came == Came::OverLine || secret == self.secret.as_bytes()).then_some(asked)
    }

    /// The exit code of a call, or nothing when nobody is there to hear it.
    fn answer(&self, stream: &UnixStream, request: Request) -> Option<u8> {
        let [input, output, errors] = request.descriptors;
        let permit = match self.bound.judge.judge(&request.words) {
            Ok(permit) => permit,
            Err(said) => {
                let _ = std::fs::File::from(output).write_all(said.out.as_bytes());
                let _ = std::fs::File::from(errors).write_all(said.err.as_bytes());
                return Some(said.code);
            }
        };
        self.bound.guard.hold();
        let mut command = self.command(permit, &request.words);
        command.current_dir(inside(&self.bound.root, &request.folder));
        for (name, value) in BROUGHT.iter().zip(&request.brought) {
            match value.as_slice() {
                [] => command.env_remove(name),
                value => command.env(name, OsStr::from_bytes(value)),
            };
        }
        command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(errors));
        let mut child = self.bound.family.start(&mut command).ok()?;
        // The command holds its descriptors open no longer than the call does.
        drop(command);
        let waited = leash::wait(&mut child, Instant::now() + CALL_MAX, Some(stream.as_fd()));
        let code = match waited {
            Waited::Ended(code) => Some(code),
            Waited::Late | Waited::Woken => {
                leash::end_in_order(&mut child);
                None
            }
        };
        self.bound.family.ended(&child);
        code
    }

    fn command(&self, permit: Permit, words: &[OsString]) -> Command {
        let runner = std::process::id();
        let mut command = Command::new("/proc/self/exe");
        command.arg(CALL_VERB).arg(runner.to_string()).arg("--");
        if permit == Permit::InRepository {
            let spec = Spec {
                writable: self.bound.repository.clone(),
                temporary: self.bound.temporary.clone(),
                net: Net::All,
                best_effort: self.bound.best_effort,
                runner,
            };
            // A folder that is not text was refused when the sandbox was made.
            let spec = serde_json::to_string(&spec).unwrap_or_default();
            command.arg(VERB).arg(spec).arg("--").arg("/proc/self/exe");
        }
        command.args(words);
        leash::for_nobody(&mut command);
        if permit == Permit::InRepository {
            let held = serde_json::to_string(&self.bound.held).unwrap_or_default();
            command.env(HELD_VARIABLE, held);
        }
        command.env_remove(BROKER_VARIABLE).env_remove(LINE_VARIABLE);
        command
            .env("TMPDIR", &self.bound.temporary)
            .env(BOUND_VARIABLE, self.bound.judge.bound())
            .env(PLACE_VARIABLE, &self.bound.place)
            .env("BATON_SESSION", &self.bound.credential);
        command
    }
}

/// Reads a request: its length, then fields that end with a zero byte. The descriptors come with
/// its first byte. With nothing but the secret a line is asked for.
fn receive(stream: &mut UnixStream) -> Option<(Vec<u8>, Asked)> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let mut length = [0_u8; 4];
    let (got, descriptors) = receive_with(stream, &mut length)?;
    stream.read_exact(length.get_mut(got..)?).ok()?;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    if length > REQUEST_BYTES_MAX {
        return None;
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    stream.set_read_timeout(None).ok()?;
    let mut fields = body.strip_suffix(&[0])?.split(|byte| *byte == 0).map(<[u8]>::to_vec);
    let secret = fields.next()?;
    let Some(folder) = fields.next() else { return Some((secret, Asked::Line)) };
    let folder = PathBuf::from(OsString::from_vec(folder));
    let brought: Vec<Vec<u8>> = fields.by_ref().take(BROUGHT.len()).collect();
    let words: Vec<OsString> = fields.map(OsString::from_vec).collect();
    let descriptors = descriptors.try_into().ok()?;
    let request = Request { folder, brought, words, descriptors };
    Some((secret, Asked::Call(Box::new(request))))
}

/// Some bytes, and the descriptors that come with them.
fn receive_with(stream: &UnixStream, bytes: &mut [u8]) -> Option<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut pieces = [IoSliceMut::new(bytes)];
    // Where there is no such flag there is no sandbox either.
    #[cfg(target_os = "linux")]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = RecvFlags::empty();
    let got = loop {
        match recvmsg(stream, &mut pieces, &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            got => break got.ok()?,
        }
    };
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors = descriptors.flatten().collect();
    Some((got.bytes, descriptors))
}
