//! Sleeping until something is committed.
//!
//! Owns a connection of its own that listens. NOTIFY takes a lock over all commits of the server,
//! so commits send it only while somebody listens: a listener keeps `waiting_until` of its
//! workspace in the future. It is set under the workspace's lock, so a decision under way is either
//! over before the listener looks, or sees the listener. A notification is a hint; a lost
//! connection counts as news, because a hint may have been lost with it.

use std::future::poll_fn;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Runtime;
use tokio_postgres::{AsyncMessage, Client};

use super::address::Address;
use super::state::Id;
use super::{tls, wire};
use crate::store::{Error, News, Woken};

/// How long commits send notifications after a listener last said that it listens.
const LEASE: Duration = Duration::from_secs(60);
const LEASE_RENEWED_AFTER: Duration = Duration::from_secs(30);
const REGISTER_TIMEOUT_MS: u64 = 10_000;
/// Between two attempts to reach a server that is away.
const BACK_OFF_MIN: Duration = Duration::from_millis(200);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

type Messages = Poll<Option<Result<AsyncMessage, tokio_postgres::Error>>>;

pub(super) struct Listener {
    address: Address,
    id: Id,
    runtime: Runtime,
    /// None while the server is away.
    line: Option<Line>,
}

/// A connection that listens. The client must live as long as the messages are read.
struct Line {
    client: Client,
    poll: Box<dyn FnMut(&mut Context<'_>) -> Messages>,
    heard: bool,
    registered: Option<Instant>,
}

/// The connection ended.
struct Gone(Option<tokio_postgres::Error>);

impl Listener {
    pub(super) fn start(address: Address, id: Id) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(
            |source| Error::Io { doing: "preparing to listen", path: address.url().into(), source },
        )?;
        let line = runtime.block_on(Line::open(&address, &id))?;
        Ok(Self { address, id, runtime, line: Some(line) })
    }
}

impl Line {
    /// Listens first and registers then, so that nothing falls in between.
    async fn open(address: &Address, id: &Id) -> Result<Self, Error> {
        let connected = address.config.connect(tls::connector(address)?).await;
        let (client, mut connection) = connected.map_err(|error| wire::refused(address, &error))?;
        let poll = Box::new(move |cx: &mut Context<'_>| connection.poll_message(cx));
        let mut line = Self { client, poll, heard: false, registered: None };
        line.register(id).await.map_err(|gone| gone.told(address))?;
        Ok(line)
    }

    /// Says that somebody listens. Waits for a decision under way: see the top of this file.
    async fn register(&mut self, id: &Id) -> Result<(), Gone> {
        let lease = LEASE.as_millis();
        let renew = LEASE_RENEWED_AFTER.as_millis();
        let now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let sql = format!(
            "LISTEN {}; SET statement_timeout = {REGISTER_TIMEOUT_MS}; \
             UPDATE baton.workspaces SET waiting_until = {now} + {lease} \
             WHERE id = '{}' AND waiting_until < {now} + {renew}",
            id.channel(),
            id.as_str(),
        );
        let Self { client, poll, heard, .. } = self;
        let mut asked = pin!(client.batch_execute(&sql));
        let answered = poll_fn(|cx| match listen(poll, heard, cx) {
            Poll::Ready(gone) => Poll::Ready(Err(gone)),
            Poll::Pending => asked.as_mut().poll(cx).map_err(|error| Gone(Some(error))),
        });
        answered.await?;
        self.registered = Some(Instant::now());
        Ok(())
    }

    /// True when there is a notification, false when the connection ended.
    async fn hear(&mut self) -> bool {
        let Self { poll, heard, .. } = self;
        let ended = poll_fn(|cx| match listen(poll, heard, cx) {
            Poll::Pending if *heard => Poll::Ready(false),
            ended => ended.map(|_| true),
        });
        !ended.await
    }

    fn must_register(&self) -> bool {
        self.registered.is_none_or(|at| at.elapsed() >= LEASE_RENEWED_AFTER)
    }
}

/// Takes in what the server sent. Ready when the connection has ended.
fn listen(
    poll: &mut dyn FnMut(&mut Context<'_>) -> Messages,
    heard: &mut bool,
    cx: &mut Context<'_>,
) -> Poll<Gone> {
    loop {
        match poll(cx) {
            Poll::Ready(Some(Ok(AsyncMessage::Notification(_)))) => *heard = true,
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Gone(Some(error))),
            Poll::Ready(None) => return Poll::Ready(Gone(None)),
            Poll::Pending => return Poll::Pending,
        }
    }
}

impl Gone {
    fn told(&self, address: &Address) -> Error {
        match &self.0 {
            Some(error) => wire::failed(address, error),
            None => Error::Unreachable { detail: "the connection ended".to_owned() },
        }
    }
}

impl News for Listener {
    fn wait(&mut self, at_most: Duration, also: &[BorrowedFd<'_>]) -> Result<Woken, Error> {
        let Self { address, id, runtime, line } = self;
        runtime.block_on(async {
            let others = watched(address, also)?;
            let mut news = pin!(next_news(address, id, line));
            let mut over = pin!(tokio::time::sleep(at_most));
            let mut ready: Vec<_> = others.iter().map(|other| Box::pin(other.readable())).collect();
            poll_fn(|cx| {
                if news.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Ok(Woken::News));
                }
                if ready.iter_mut().any(|other| other.as_mut().poll(cx).is_ready()) {
                    return Poll::Ready(Ok(Woken::Other));
                }
                over.as_mut().poll(cx).map(|()| Ok(Woken::TimedOut))
            })
            .await
        })
    }
}

fn watched<'a>(
    address: &Address,
    also: &[BorrowedFd<'a>],
) -> Result<Vec<AsyncFd<BorrowedFd<'a>>>, Error> {
    let watch = |fd: &BorrowedFd<'a>| AsyncFd::register_with_interest(*fd, Interest::READABLE);
    let watched: Result<Vec<_>, _> = also.iter().map(watch).collect();
    watched.map_err(|source| Error::Io {
        doing: "watching another descriptor",
        path: address.url().into(),
        source,
    })
}

/// Ends when there is news. A server that is away is tried again, ever more slowly.
async fn next_news(address: &Address, id: &Id, line: &mut Option<Line>) {
    let mut back_off = BACK_OFF_MIN;
    loop {
        let Some(open) = line else {
            tokio::time::sleep(back_off).await;
            back_off = (back_off * 2).min(BACK_OFF_MAX);
            *line = Line::open(address, id).await.ok();
            if line.is_some() {
                return;
            }
            continue;
        };
        if open.must_register() && open.register(id).await.is_err() {
            *line = None;
            continue;
        }
        if std::mem::take(&mut open.heard) {
            return;
        }
        let renewal = open.registered.unwrap_or_else(Instant::now) + LEASE_RENEWED_AFTER;
        let heard = tokio::time::timeout_at(renewal.into(), open.hear()).await;
        if heard == Ok(false) {
            *line = None;
        }
    }
}
