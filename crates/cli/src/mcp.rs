//! The MCP server: a thin mapping of tools and resources on the commands.
//!
//! Owns the protocol's side: `tools` what can be asked, `requests` which commands that is, `floor`
//! where they are served, `relay` the same from inside a sandbox, `answer` what comes back, `wire`
//! the lines, `server` the protocol, `pages` the resources. No rule and no word of an answer is
//! here. Invariant: whatever a client sends, the server goes on until its input ends, and then it
//! ends at once.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use baton_engine::failure::Failure;
use tokio::sync::watch;

use crate::words::Problem;

mod answer;
pub(crate) mod floor;
mod pages;
pub(crate) mod relay;
mod requests;
mod server;
mod steps;
mod tools;
mod wire;

use floor::Floor;
use server::Server;
use wire::Wire;

/// Calls that are served at the same moment; more of them wait for their turn.
const CALLS_MAX: usize = 32;
/// How long calls may take to end once nobody reads their answers.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Where calls are served.
#[derive(Debug)]
pub(crate) enum Room {
    Here(Box<Floor>),
    /// The store is closed here: a broker outside has each of their steps done.
    Outside,
}

/// Serves one client until its input ends.
pub(crate) fn serve(room: Room, input: File, output: File) -> Result<(), Problem> {
    let failed = |source| Failure::File {
        doing: "the server cannot be started",
        path: "tokio".into(),
        source,
    };
    // The only place in Baton's commands with a runtime: calls run beside each other.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(CALLS_MAX)
        .build()
        .map_err(failed)?;
    let (ended, end) = watch::channel(false);
    let wire = Wire::open(input, output, ended).map_err(failed)?;
    // Its connections have runtimes of their own, which must not end within this one.
    let room = Arc::new(room);
    let server = Server::new(Arc::clone(&room), end.clone()).map_err(failed)?;
    let served_in = Arc::clone(&room);
    runtime.block_on(async move {
        let served = async {
            // It fails only where the input ended before anything was asked.
            if let Ok(running) = rmcp::serve_server(server, wire).await {
                let _ = running.waiting().await;
            }
        };
        let over = async {
            server::over(end).await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        let tidied = async {
            match &*served_in {
                Room::Here(floor) => floor.let_go_of_idle().await,
                Room::Outside => std::future::pending().await,
            }
        };
        tokio::select! {
            () = served => {}
            () = over => {}
            () = tidied => {}
        }
    });
    runtime.shutdown_background();
    drop(room);
    Ok(())
}
