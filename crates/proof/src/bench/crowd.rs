//! Sixty-four agents at once: fresh processes in a tight loop, with time to think, on one path.
//!
//! Every caller is a thread that starts the real binary again and again and times each start.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::page::Line;
use super::samples::{Call, Spread};
use super::{Scale, fill};
use crate::failure::Failure;
use crate::traffic::Ground;

const CALLERS: usize = 64;
const THINK: Duration = Duration::from_millis(50);

pub(super) fn measure(
    baton: &Path,
    scale: Scale,
    uncontended: &Spread,
    lines: &mut Vec<Line>,
) -> Result<(), Failure> {
    println!("{CALLERS} processes at once");
    let ground = Ground::make(None)?;
    let call = Call::new(baton, &ground.root(), &fill::session(&ground)?);
    let calls = scale.crowd_calls;
    let tight = distinct(&call, calls, "tight", Duration::ZERO)?;
    let name = format!("{CALLERS} processes, tight loop, distinct paths");
    lines.push(Line::plain(
        format!("{name}: p99 against mean"),
        &tight,
        tight.p99() / tight.mean(),
        3.0,
    ));
    lines.push(Line::plain(
        format!("{name}: max against mean"),
        &tight,
        tight.max() / tight.mean(),
        10.0,
    ));
    let calm = distinct(&call, calls, "calm", THINK)?;
    let name = format!("{CALLERS} processes, 50 ms of thought: p99 against one alone");
    lines.push(Line::plain(name, &calm, calm.p99() / uncontended.p50(), 10.0));
    lines.push(same_path(baton, calls)?);
    Ok(())
}

/// Everybody claims paths of its own; any answer but yes is a failure.
fn distinct(call: &Call, calls: usize, name: &str, think: Duration) -> Result<Spread, Failure> {
    let times = everybody(CALLERS, |caller| {
        let mut times = Vec::with_capacity(calls);
        for round in 0..calls {
            let path = format!("crowd/{name}/{caller}/{round}.rs");
            times.push(call.time(&["claim", &path])?);
            std::thread::sleep(think);
        }
        Ok(times)
    })?;
    Ok(Spread::of(times.into_iter().flatten().collect()))
}

pub(super) fn everybody<T: Send>(
    callers: usize,
    work: impl Fn(usize) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|caller| {
                scope.spawn({
                    let work = &work;
                    move || work(caller)
                })
            })
            .collect();
        let lost = || Failure::said("a caller", "ended before its time");
        threads.into_iter().map(|thread| thread.join().map_err(|_| lost())?).collect()
    })
}

/// All for one path: whoever is granted it must be alone in the arena.
fn same_path(baton: &Path, calls: usize) -> Result<Line, Failure> {
    let ground = Ground::make(None)?;
    let inside = ground.root().join("inside");
    let (rounds, doubled) = (AtomicU64::new(0), AtomicU64::new(0));
    // A session each: one session would never stand in its own way.
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        callers.push(Call::new(baton, &ground.root(), &fill::another_session(&ground)?));
    }
    everybody(CALLERS, |caller| {
        for _ in 0..calls {
            let (_, code) = callers[caller].attempt(&["claim", "the/one/path"])?;
            match code {
                Some(0) => {}
                Some(1) => continue,
                other => return Err(Failure::said("claim", format!("ended with {other:?}"))),
            }
            match std::fs::File::options().write(true).create_new(true).open(&inside) {
                Ok(_) => rounds.fetch_add(1, Ordering::Relaxed),
                Err(_) => doubled.fetch_add(1, Ordering::Relaxed),
            };
            let _ = std::fs::remove_file(&inside);
            callers[caller].run(&["release", "the/one/path"])?;
        }
        Ok(())
    })?;
    let (rounds, doubled) = (rounds.into_inner(), doubled.into_inner());
    Ok(Line::said(
        format!("{CALLERS} processes, one path: holders at every moment"),
        format!("{} in {rounds} rounds", if doubled == 0 { "one" } else { "MORE THAN ONE" }),
        "one".to_owned(),
        doubled == 0 && rounds > 0,
    ))
}
