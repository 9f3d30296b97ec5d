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
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Runtime;

use super::address::Address;
use super::state::Id;
use super::wire::{self, Failure, Socket};
use crate::store::{Error, News, Woken};

/// How long commits send notifications after a listener last said that it listens.
const LEASE: Duration = Duration::from_secs(60);
const LEASE_RENEWED_AFTER: Duration = Duration::from_secs(30);
const REGISTER_MAX: Duration = Duration::from_secs(10);
/// Between two attempts to reach a server that is away.
const BACK_OFF_MIN: Duration = Duration::from_millis(200);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

pub(super) struct Listener {
    address: Address,
    id: Id,
    runtime: Runtime,
    /// None while the server is away.
    line: Option<Line>,
}

/// A connection that listens.
struct Line {
    socket: Socket,
    registered: Instant,
}

impl Listener {
    pub(super) fn start(address: Address, id: Id) -> Result<Self, Error> {
        let runtime = wire::runtime(&address)?;
        let line = runtime.block_on(async {
            let socket = Socket::open(&address).await?;
            Line::over(socket, &address, &id).await
        })?;
        Ok(Self { address, id, runtime, line: Some(line) })
    }
}

impl Line {
    async fn over(socket: Socket, address: &Address, id: &Id) -> Result<Self, Error> {
        let mut line = Self { socket, registered: Instant::now() };
        line.register(id).await.map_err(|failure| wire::failed(address, &failure))?;
        Ok(line)
    }

    /// Listens and says so. Waits for a decision under way: see the top of this file.
    async fn register(&mut self, id: &Id) -> Result<(), Failure> {
        let lease = LEASE.as_millis();
        let renew = LEASE_RENEWED_AFTER.as_millis();
        let limit = REGISTER_MAX.as_millis();
        let now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let sql = format!(
            "SET statement_timeout = {limit}; LISTEN {}; \
             UPDATE baton.workspaces SET waiting_until = {now} + {lease} \
             WHERE id = '{}' AND waiting_until < {now} + {renew}",
            id.channel(),
            id.as_str(),
        );
        self.socket.batch(&sql, REGISTER_MAX * 2).await?;
        self.registered = Instant::now();
        Ok(())
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
    #[expect(deprecated, reason = "unsound only for types whose descriptor may change or close")]
    let watch = |fd: &BorrowedFd<'a>| AsyncFd::with_interest(*fd, Interest::READABLE);
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
            if let Ok(socket) = Socket::open_once(address).await {
                *line = Line::over(socket, address, id).await.ok();
            }
            if line.is_some() {
                return;
            }
            continue;
        };
        if std::mem::take(&mut open.socket.heard) {
            return;
        }
        let renewal = open.registered + LEASE_RENEWED_AFTER;
        let heard = tokio::time::timeout_at(renewal.into(), open.socket.hear()).await;
        let lost = match heard {
            Ok(heard) => !heard,
            // Nothing for a while: say again that somebody listens.
            Err(_) => open.register(id).await.is_err(),
        };
        if lost {
            *line = None;
        }
    }
}
