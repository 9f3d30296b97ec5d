//! `cargo xtask soak` and `cargo xtask bench`: builds what is proved and measured, then hands over.
//!
//! The work is in `crates/proof`, which knows the product; xtask does not, so it starts at once and
//! works on a broken build.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::dist;
use crate::failure::Failure;
use crate::run::{self, stream};

pub(crate) const SOAK_HELP: &str = "\
Usage: cargo xtask soak [--minutes N] [--store sqlite|postgres] [--workers N]

Real processes claim, renew, check and release at random, half of them through the binary, while
some are killed with -9, some are stopped for a while, and the clock moves on. Their histories are
held against the journal: S1, S4, S5, S12 and real-time order. Then they race for one path, and
for tasks (S6, S7). Any violation ends it with exit code 1.

  --minutes N   how long (1)
  --store S     sqlite (the default) or postgres, a cluster of its own
  --workers N   how many processes (8)
";

pub(crate) const BENCH_HELP: &str = "\
Usage: cargo xtask bench [--quick] [--conflicts | --hooks | --mcp]

Builds target/dist/baton and measures it against an empty static process, both started in the same
way and sampled in turn. Prints a table and writes it into docs/design/performance.md. A missed
target is shown, not failed: a busy machine misses all of them.

  --quick       a tenth of everything, and the page is not written
  --conflicts   only the conflicts of 20 trees, and the page is not written
  --hooks       only the hooks of agents, and the page is not written
  --mcp         only calls of the MCP server, and the page is not written
";

pub(crate) fn soak(words: &[String]) -> Result<(), Failure> {
    let built = build()?;
    let mut command = Command::new(&built.proof);
    command.arg("soak").args(words).arg("--baton").arg(&built.baton);
    hand_over(&mut command)
}

pub(crate) fn bench(words: &[String]) -> Result<(), Failure> {
    let built = build()?;
    let mut command = Command::new(&built.proof);
    command.arg("bench").args(words).arg("--baton").arg(&built.baton);
    command.arg("--floor").arg(&built.floor);
    command.arg("--page").arg(run::root().join("docs/design/performance.md"));
    hand_over(&mut command)
}

struct Built {
    baton: PathBuf,
    proof: PathBuf,
    floor: PathBuf,
}

/// The product as people install it, and the proof built in the very same way.
fn build() -> Result<Built, Failure> {
    dist::act(&[])?;
    let target = dist::choose_target();
    stream(&mut dist::static_build("build", "baton-proof", &target))?;
    let folder = dist::built(&target);
    Ok(Built {
        baton: run::target().join("dist").join("baton"),
        proof: folder.join("baton-proof"),
        floor: folder.join("floor"),
    })
}

/// Runs it with our own outputs, so that it may draw on a terminal.
fn hand_over(command: &mut Command) -> Result<(), Failure> {
    let line = "baton-proof".to_owned();
    let status = command.stdin(Stdio::null()).status();
    let status = status.map_err(|source| Failure::NotStarted { line: line.clone(), source })?;
    if status.success() { Ok(()) } else { Err(Failure::Program { line, status }) }
}
