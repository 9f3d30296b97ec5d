//! `mcp`: serve an agent over the Model Context Protocol on standard input and output.
//!
//! Owns the command and the descriptors: standard input and output are the protocol's alone from
//! here on. What is served is in `crate::mcp`.

use std::fs::File;
use std::process::ExitCode;

use baton_engine::failure::Failure;
use baton_engine::place::workspace_file::WorkspaceId;
use baton_engine::sandbox::caller;

use crate::arguments::Common;
use crate::desk::{self, Outcome};
use crate::mcp::floor::Floor;
use crate::mcp::{self, Room, relay};
use crate::words::Problem;

#[derive(Debug, clap::Args)]
pub(crate) struct Mcp {
    /// The workspace, when it is not the one around this folder; `baton init --json` shows its id
    #[arg(long, value_name = "ID")]
    workspace: Option<String>,
}

pub(crate) fn run(common: &Common, wanted: &Mcp) -> Outcome {
    let workspace = match wanted.workspace.as_deref() {
        None => None,
        Some(text) => Some(WorkspaceId::parse(text).ok_or_else(|| {
            Problem::usage(
                format!("\"{}\" is no workspace's id", crate::render::shown(text)),
                "baton init --json in the workspace, which shows its id",
            )
        })?),
    };
    let room = match caller::is_inside() {
        true => Room::Outside,
        false => {
            let folder = desk::folder(common)?;
            Room::Here(Box::new(Floor::new(folder, workspace, desk::hints(common))))
        }
    };
    let (input, output) = stdio()?;
    #[cfg(target_env = "musl")]
    crate::heap::stay();
    mcp::serve(room, input, output)?;
    Ok(ExitCode::SUCCESS)
}

/// One step of a tool, for a server inside a sandbox.
#[derive(Debug, clap::Args)]
pub(crate) struct McpStep {
    /// Hold it: it may run code of the tree
    #[arg(long)]
    pub(crate) held: bool,
}

pub(crate) fn step(common: &Common) -> Outcome {
    let floor = Floor::new(desk::folder(common)?, None, desk::hints(common));
    let (input, output) = stdio()?;
    relay::serve_step(&floor, input, output)?;
    Ok(ExitCode::SUCCESS)
}

/// Standard input and output under other numbers. In their place nothing is read and everything
/// goes to standard error: neither a program that is started here nor a line that is printed by
/// mistake can get between the client and us.
fn stdio() -> Result<(File, File), Failure> {
    use rustix::io::fcntl_dupfd_cloexec;
    let moved = || {
        let input = fcntl_dupfd_cloexec(std::io::stdin(), 3)?;
        let output = fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
        let nothing = File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(std::io::stderr())?;
        Ok((input.into(), output.into()))
    };
    moved().map_err(|source| Failure::File {
        doing: "standard input and output cannot be used",
        path: "stdio".into(),
        source,
    })
}
