//! How much memory a `claim` takes at its peak.
//!
//! Read from the kernel's high-water mark of a process that waits for a claim: it has done all that
//! a plain claim does, and is still there to be looked at. The mark counts the mapped binary, which
//! all processes share; what a process has for itself is told beside it.

use std::path::Path;
use std::time::{Duration, Instant};

use super::fill;
use super::page::Line;
use super::samples::Call;
use crate::failure::Failure;
use crate::traffic::Ground;

const LIMIT_MB: f64 = 12.0;
const SETTLED: Duration = Duration::from_millis(400);

pub(super) fn measure(baton: &Path, ground: &Ground) -> Result<Line, Failure> {
    let call = |credential: String| Call::new(baton, &ground.root(), &credential);
    let holder = call(fill::another_session(ground)?);
    holder.run(&["claim", "memory/one"])?;
    let waiter = call(fill::another_session(ground)?);
    let child = waiter.command(&["claim", "memory/one", "--wait", "30s"]).spawn();
    let mut child =
        child.map_err(|source| Failure::NotStarted { what: "baton".to_owned(), source })?;
    let started = Instant::now();
    let (mut peak, mut own) = (None, None);
    while started.elapsed() < SETTLED {
        peak = megabytes(child.id(), "VmHWM:").or(peak);
        own = megabytes(child.id(), "RssAnon:").or(own);
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    holder.run(&["release", "memory/one"])?;
    let peak = peak.ok_or_else(|| Failure::said("memory", "could not be read"))?;
    let name = "resident memory of a `claim` at its peak".to_owned();
    let own = own.map(|own| format!(", {own:.1} MB of it its own")).unwrap_or_default();
    let said = format!("{peak:.1} MB{own}");
    Ok(Line::said(name, said, format!("≤ {LIMIT_MB} MB"), peak <= LIMIT_MB))
}

fn megabytes(pid: u32, field: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1024.0)
}
