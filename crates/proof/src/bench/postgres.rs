//! How many claims a second the fleet's store takes.
//!
//! Threads with a connection each, in one workspace (decisions stand in line there) and in one
//! workspace each (they do not).

use std::time::{Duration, Instant};

use baton_core::context::Actor;
use baton_engine::whoami::{self, Hints};
use baton_engine::{api, claiming, sessions};

use super::Scale;
use super::page::Line;
use crate::failure::Failure;
use crate::soak;
use crate::traffic::Ground;

const CONNECTIONS: [usize; 3] = [1, 8, 32];

pub(super) fn measure(scale: Scale, lines: &mut Vec<Line>) -> Result<(), Failure> {
    println!("PostgreSQL");
    let address = match soak::postgres() {
        Ok(address) => address,
        Err(failure) => {
            lines.push(left_out(&failure));
            return Ok(());
        }
    };
    for many in [false, true] {
        for connections in CONNECTIONS {
            let grounds = if many { connections } else { 1 };
            let grounds: Result<Vec<Ground>, Failure> =
                (0..grounds).map(|_| Ground::make(Some(&address))).collect();
            let grounds = match grounds {
                Ok(grounds) => grounds,
                Err(failure) => {
                    lines.push(left_out(&failure));
                    return Ok(());
                }
            };
            let rate = rate(&grounds, connections, &address, scale.postgres_seconds)?;
            let where_ = if many { "a workspace each" } else { "one workspace" };
            let name = format!("PostgreSQL, {connections} connections, {where_}");
            lines.push(Line::said(name, format!("{rate:.0} claims/s"), "–".to_owned(), true));
        }
    }
    Ok(())
}

fn left_out(failure: &Failure) -> Line {
    Line::said("PostgreSQL".to_owned(), format!("left out: {failure}"), "–".to_owned(), false)
}

fn rate(
    grounds: &[Ground],
    connections: usize,
    address: &str,
    seconds: u64,
) -> Result<f64, Failure> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let counted: Result<Vec<usize>, Failure> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|number| {
                let ground = &grounds[number % grounds.len()];
                scope.spawn(move || claims_until(ground, address, number, end))
            })
            .collect();
        let lost = || Failure::said("a connection", "ended before its time");
        threads.into_iter().map(|thread| thread.join().map_err(|_| lost())?).collect()
    });
    Ok(counted?.iter().sum::<usize>() as f64 / seconds as f64)
}

fn claims_until(
    ground: &Ground,
    address: &str,
    number: usize,
    end: Instant,
) -> Result<usize, Failure> {
    let folder = ground.root();
    let mut workspace = baton_engine::workspace::Workspace::open(&folder, Some(address))?;
    let wanted = api::SessionStart::default();
    let started = sessions::start(&mut workspace, &Actor::default(), &wanted, None)?;
    let hints = Hints { credential: Some(started.credential), ..Hints::default() };
    let actor = whoami::actor(&mut workspace, &hints)?;
    let mut claims = 0;
    while Instant::now() < end {
        let wanted = api::Claim {
            resources: vec![format!("src/{number}/{claims}.rs")],
            shared: false,
            tree: false,
            ttl: None,
            wait: None,
            priority: 0,
            reason: None,
        };
        claiming::claim(&mut workspace, &actor, &folder, &wanted, None, &mut |_| {})?;
        claims += 1;
    }
    Ok(claims)
}
