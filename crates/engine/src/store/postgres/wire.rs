//! The connection, and what its failures mean.
//!
//! Every statement of a decision goes through here, so this is where round trips are counted and
//! where a server's error becomes one of ours. Invariant: an error's text is one line and carries
//! no password. Refuses to know what the statements are for.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Row, SimpleQueryMessage, SimpleQueryRow};

use super::address::Address;
use super::tls;
use crate::slow;
use crate::store::Error;

/// The longest a single answer is awaited. The server gives up before; this is for one that hangs,
/// and for a network that swallows everything.
const ANSWER_MAX: Duration = Duration::from_secs(40);
/// The same for what opens a transaction, on top of what the server was asked to wait: it is the
/// first word after a silence, and a server that hangs is found out by it.
const OPENING_MAX: Duration = Duration::from_secs(10);
/// How long a server is tried again that has no connection to spare, or is about to start.
const SPARE_MAX: Duration = Duration::from_secs(5);
/// What must be left of a deadline once there is a connection, or to say that there was none.
const AFTER_CONNECTING: Duration = Duration::from_millis(800);
/// Between two attempts.
const BACK_OFF_MIN: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_millis(200);
/// Processes that came together do not come back together.
const APART_MAX_MS: u32 = 40;

/// When this process must be done, whatever the server does.
static DEADLINE: OnceLock<Instant> = OnceLock::new();
/// When this process gives up a server that has no connection to spare.
static CONNECT_BY: OnceLock<Instant> = OnceLock::new();

/// From here on no answer is awaited for longer than until then: for a process that somebody waits
/// for.
pub fn answer_by(deadline: Instant) {
    // Whoever said so first has less time.
    let _ = DEADLINE.set(deadline);
    connect_before(deadline);
}

/// From here on a server without a connection to spare is tried again only so long that there is
/// time left before the deadline, which somebody else watches over.
pub fn connect_before(deadline: Instant) {
    let _ = CONNECT_BY.set(deadline.checked_sub(AFTER_CONNECTING).unwrap_or(deadline));
}

/// What is left of a limit.
fn until_deadline(limit: Duration) -> Duration {
    match DEADLINE.get() {
        Some(deadline) => limit.min(deadline.saturating_duration_since(Instant::now())),
        None => limit,
    }
}

pub(super) type Parameters<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

type Messages = Poll<Option<Result<AsyncMessage, tokio_postgres::Error>>>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{}", with_causes(.0))]
    Told(#[from] tokio_postgres::Error),
    #[error("the connection ended")]
    Ended,
    #[error("there was no answer for {} s", .0.as_secs_f32().ceil())]
    Silent(Duration),
}

impl Failure {
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Told(error) => error.code(),
            Self::Ended | Self::Silent(_) => None,
        }
    }
}

/// Why a transaction was not ended as wanted.
pub(super) enum Uncommitted {
    /// Nothing was done.
    Refused(Failure),
    /// Whether it was done nobody knows.
    Unknown(Failure),
}

/// A connection and the client that asks over it. Nothing moves unless one of its futures runs.
pub(super) struct Socket {
    client: Client,
    poll: Box<dyn FnMut(&mut Context<'_>) -> Messages + Send>,
    /// A notification came.
    pub(super) heard: bool,
    ended: bool,
}

impl Socket {
    /// Connects; a server that says it cannot just now is tried again for a while. One that does
    /// not listen is told of at once: there may be none.
    pub(super) async fn open(address: &Address) -> Result<Self, Error> {
        let latest = Instant::now() + SPARE_MAX;
        let latest = CONNECT_BY.get().map_or(latest, |by| latest.min(*by));
        let apart = Duration::from_millis(u64::from(std::process::id() % APART_MAX_MS));
        let mut back_off = BACK_OFF_MIN;
        loop {
            let opened = Self::open_once(address).await;
            let left = latest.saturating_duration_since(Instant::now());
            match opened {
                Err(Error::NoConnection { .. } | Error::NotReady { .. }) if !left.is_zero() => {}
                opened => return opened,
            }
            tokio::time::sleep(left.min(back_off + apart)).await;
            back_off = (back_off * 2).min(BACK_OFF_MAX);
        }
    }

    /// The limit counts for the whole handshake: a server that accepts and then says nothing must
    /// not hold us.
    pub(super) async fn open_once(address: &Address) -> Result<Self, Error> {
        let hosts = address.config.get_hosts().len().max(address.config.get_hostaddrs().len());
        let each = address.config.get_connect_timeout().copied().unwrap_or(OPENING_MAX);
        let limit = each * u32::try_from(hosts).unwrap_or(1).saturating_add(1);
        let limit = until_deadline(limit);
        let connecting = address.config.connect(tls::connector(address)?);
        let connected = match tokio::time::timeout(limit, connecting).await {
            Ok(connected) => connected.map_err(Failure::Told),
            Err(_) => Err(Failure::Silent(limit)),
        };
        let (client, mut connection) = connected.map_err(|failure| refused(address, &failure))?;
        let poll = Box::new(move |cx: &mut Context<'_>| connection.poll_message(cx));
        Ok(Self { client, poll, heard: false, ended: false })
    }

    pub(super) async fn batch(
        &mut self,
        sql: &str,
        limit: Duration,
    ) -> Result<Vec<SimpleQueryMessage>, Failure> {
        let Self { client, poll, heard, ended } = self;
        answered(client.simple_query(sql), (poll, heard, ended), limit).await
    }

    async fn query(
        &mut self,
        sql: &str,
        parameters: Parameters<'_>,
        limit: Duration,
    ) -> Result<Vec<Row>, Failure> {
        let Self { client, poll, heard, ended } = self;
        answered(client.query_typed(sql, parameters), (poll, heard, ended), limit).await
    }

    /// The statement, and at once COMMIT after it: one round trip for both. The server undoes the
    /// transaction at a COMMIT whose statement it refused.
    async fn query_and_commit(
        &mut self,
        sql: &str,
        parameters: Parameters<'_>,
        limit: Duration,
    ) -> Result<(), Uncommitted> {
        let Self { client, poll, heard, ended } = self;
        // What has ended already is not sent anything, so nothing is done. The runtime looks at the
        // socket when it gets its turn.
        tokio::task::yield_now().await;
        *ended |= poll_fn(|cx| Poll::Ready(listen(poll, heard, cx).is_ready())).await;
        if *ended {
            return Err(Uncommitted::Refused(Failure::Ended));
        }
        let both = async {
            let mut write = pin!(client.query_typed(sql, parameters));
            let mut commit = pin!(client.simple_query("COMMIT"));
            // Each is sent when it is first polled; what cannot be sent is not committed either.
            let written = match polled(write.as_mut()).await {
                Poll::Ready(Err(error)) => return Ok(Err(error)),
                written => written,
            };
            let committed = polled(commit.as_mut()).await;
            if let Err(error) = rest_of(written, write).await {
                return Ok(Err(error));
            }
            rest_of(committed, commit).await.map(|_| Ok(()))
        };
        match answered(both, (poll, heard, ended), limit).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) if error.as_db_error().is_some() || is_ours(&error) => {
                Err(Uncommitted::Refused(Failure::Told(error)))
            }
            Ok(Err(error)) => Err(Uncommitted::Unknown(Failure::Told(error))),
            Err(failure) if is_lost(&failure) => Err(Uncommitted::Unknown(failure)),
            Err(failure) => Err(Uncommitted::Refused(failure)),
        }
    }

    /// Sends what needs no answer. Whatever the server says to it is passed over.
    async fn send(&mut self, sql: &str) {
        let Self { client, poll, heard, ended } = self;
        let mut question = pin!(client.simple_query(sql));
        let _ = polled(question.as_mut()).await;
        *ended |= poll_fn(|cx| Poll::Ready(listen(poll, heard, cx).is_ready())).await;
    }

    /// True when a notification has come, false when the connection ended.
    pub(super) async fn hear(&mut self) -> bool {
        let Self { poll, heard, ended, .. } = self;
        let over = poll_fn(|cx| match listen(poll, heard, cx) {
            Poll::Pending if *heard => Poll::Ready(false),
            over => over.map(|()| true),
        });
        *ended = over.await;
        !*ended
    }

    fn is_closed(&self) -> bool {
        self.ended || self.client.is_closed()
    }
}

type Driven<'a> =
    (&'a mut Box<dyn FnMut(&mut Context<'_>) -> Messages + Send>, &'a mut bool, &'a mut bool);

/// Moves the connection until the question is answered.
async fn answered<T>(
    question: impl Future<Output = Result<T, tokio_postgres::Error>>,
    (poll, heard, ended): Driven<'_>,
    limit: Duration,
) -> Result<T, Failure> {
    let mut question = pin!(question);
    let answer = poll_fn(|cx| {
        let over = listen(poll, heard, cx).is_ready();
        // Also when the connection has ended: the answer may have come just before.
        match question.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(answer.map_err(Failure::Told)),
            Poll::Pending if over => Poll::Ready(Err(Failure::Ended)),
            Poll::Pending => Poll::Pending,
        }
    });
    let limit = until_deadline(limit);
    let answer = match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::Silent(limit)),
    };
    // Whatever comes after this belongs to a question nobody awaits any more.
    *ended |= answer.as_ref().is_err_and(is_lost);
    answer
}

/// Where a future stands after it was polled once.
async fn polled<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// What comes of a future that was polled once.
async fn rest_of<F: Future>(polled: Poll<F::Output>, future: Pin<&mut F>) -> F::Output {
    match polled {
        Poll::Ready(output) => output,
        Poll::Pending => future.await,
    }
}

/// Takes in what the server sent. Ready when the connection has ended.
fn listen(
    poll: &mut dyn FnMut(&mut Context<'_>) -> Messages,
    heard: &mut bool,
    cx: &mut Context<'_>,
) -> Poll<()> {
    loop {
        match poll(cx) {
            Poll::Ready(Some(Ok(AsyncMessage::Notification(_)))) => *heard = true,
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
            Poll::Pending => return Poll::Pending,
        }
    }
}

/// One connection to the server, for callers that wait.
pub(super) struct Wire {
    runtime: Runtime,
    socket: Socket,
    round_trips: u64,
    /// The last transaction was not opened because the server said nothing at all: to ask it again
    /// at once would double the wait.
    pub(super) is_mute: bool,
}

impl Wire {
    pub(super) fn connect(address: &Address) -> Result<Self, Error> {
        slow::begins();
        let runtime = runtime(address)?;
        let socket = runtime.block_on(Socket::open(address))?;
        Ok(Self { runtime, socket, round_trips: 0, is_mute: false })
    }

    /// Several statements without parameters, in one round trip. Gives the rows of all.
    pub(super) fn batch(&mut self, sql: &str) -> Result<Vec<SimpleQueryRow>, Failure> {
        self.batch_within(sql, ANSWER_MAX)
    }

    /// The same for what opens a transaction, where the server was asked to wait.
    pub(super) fn open(
        &mut self,
        sql: &str,
        wait: Duration,
    ) -> Result<Vec<SimpleQueryRow>, Failure> {
        let opened = self.batch_within(sql, OPENING_MAX + wait);
        self.is_mute = matches!(opened, Err(Failure::Silent(_)));
        opened
    }

    fn batch_within(&mut self, sql: &str, limit: Duration) -> Result<Vec<SimpleQueryRow>, Failure> {
        self.round_trips += 1;
        let messages = self.runtime.block_on(self.socket.batch(sql, limit))?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        Ok(rows.collect())
    }

    /// One statement with parameters, in one round trip: it is not prepared by name, so a pooler
    /// between us and the server does no harm either.
    pub(super) fn query(
        &mut self,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        self.round_trips += 1;
        self.runtime.block_on(self.socket.query(sql, parameters, ANSWER_MAX))
    }

    /// The last statement of a transaction and its COMMIT, in one round trip.
    pub(super) fn query_and_commit(
        &mut self,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<(), Uncommitted> {
        self.round_trips += 1;
        self.runtime.block_on(self.socket.query_and_commit(sql, parameters, ANSWER_MAX))
    }

    /// Sends what needs no answer, in no round trip at all.
    pub(super) fn send(&mut self, sql: &str) {
        self.runtime.block_on(self.socket.send(sql));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.socket.is_closed()
    }

    pub(super) fn round_trips(&self) -> u64 {
        self.round_trips
    }
}

/// On this thread alone: a socket needs it, and it starts no other.
pub(super) fn runtime(address: &Address) -> Result<Runtime, Error> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|source| Error::Io {
        doing: "preparing a connection",
        path: address.url().into(),
        source,
    })
}

/// Is the connection gone, so that nobody will hear about what was under way?
pub(super) fn is_lost(failure: &Failure) -> bool {
    let Failure::Told(error) = failure else { return true };
    let Some(told) = error.as_db_error() else { return !is_ours(error) };
    matches!(told.severity(), "FATAL" | "PANIC")
        || told.code().code().starts_with("08")
        || told.code().code().starts_with("57P")
}

/// A value that cannot be sent or read, not a connection that is gone.
fn is_ours(error: &tokio_postgres::Error) -> bool {
    let text = error.to_string();
    text.starts_with("error serializing") || text.starts_with("error deserializing")
}

fn with_causes(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Could somebody else have been in the way, so that trying again helps?
pub(super) fn is_conflict(failure: &Failure) -> bool {
    failure.code().is_some_and(|code| {
        *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
    })
}

pub(super) fn is_timeout(failure: &Failure) -> bool {
    failure.code().is_some_and(|code| {
        *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::QUERY_CANCELED
    })
}

/// Why the server did not let us in.
pub(super) fn refused(address: &Address, failure: &Failure) -> Error {
    if failure.code() == Some(&SqlState::UNDEFINED_DATABASE) {
        return Error::NoDatabase { path: PathBuf::from(address.url()) };
    }
    let detail = match failure {
        Failure::Told(error) => match error.as_db_error() {
            Some(told) => told.message().to_owned(),
            None => with_causes(error),
        },
        Failure::Ended | Failure::Silent(_) => failure.to_string(),
    };
    let detail = line(address, &format!("{}: {detail}", address.url()));
    match failure.code().map(SqlState::code) {
        Some("53300") => Error::NoConnection { detail },
        Some("57P01" | "57P02" | "57P03") => Error::NotReady { detail },
        _ => Error::Unreachable { detail },
    }
}

/// What an error in the middle of our work means. Nothing was done.
pub(super) fn failed(address: &Address, failure: &Failure) -> Error {
    let path = || PathBuf::from(address.url());
    let told = match failure {
        Failure::Told(error) => error.as_db_error(),
        Failure::Ended | Failure::Silent(_) => None,
    };
    let Some(told) = told else {
        return match failure {
            Failure::Told(error) if is_ours(error) => {
                Error::Backend { detail: line(address, &failure.to_string()) }
            }
            _ => refused(address, failure),
        };
    };
    let code = told.code();
    let detail = line(address, &format!("{} ({})", told.message(), code.code()));
    match code.code() {
        "53100" => Error::Full { path: path() },
        "25006" | "42501" => Error::ReadOnly { path: path() },
        "3F000" | "42P01" => Error::OtherStore { path: path() },
        "XX001" | "XX002" => Error::Corrupt { path: path(), detail },
        "57014" => Error::Unreachable { detail: format!("it took too long to answer: {detail}") },
        _ if is_conflict(failure) || is_timeout(failure) => Error::Busy { pid: 0, waited_ms: 0 },
        _ if is_lost(failure) => Error::Unreachable { detail },
        _ => Error::Backend { detail },
    }
}

/// One line without the password, whatever a server or a system call put into it.
fn line(address: &Address, text: &str) -> String {
    let mut line: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if let Some(Ok(password)) = address.config.get_password().map(std::str::from_utf8)
        && !password.is_empty()
    {
        line = line.replace(password, "…");
    }
    line
}
