//! The agents of one run: started together, watched, counted, and ended with the demo.
//!
//! Owns the processes. What they report is only how often they wrote; what became of it is read
//! from the files.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::agent::mark;
use super::scratch::{Repository, baton};
use super::screen::Screen;
use super::{Tally, unable};
use crate::words::Problem;

/// How often the screen is drawn anew.
const FRAME: Duration = Duration::from_millis(120);
/// A run that takes this many times as long as planned has gone wrong.
const PATIENCE: u32 = 10;
const PATIENCE_MIN: Duration = Duration::from_secs(60);

/// When an agent stops.
#[derive(Debug)]
pub(super) struct Limit {
    pub(super) time: Duration,
    /// With Baton: as many edits as each agent made without it, so that both do the same work.
    pub(super) edits: Option<Vec<usize>>,
}

enum Report {
    Edit(usize),
    Refused,
    Ready,
    Ended,
}

#[derive(Debug)]
pub(super) struct Crew {
    agents: Vec<Child>,
    inputs: Vec<ChildStdin>,
    reports: Receiver<Report>,
    /// How many edits are to be made, where that is known.
    planned: Option<usize>,
    time: Duration,
}

/// A finished run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) tally: Tally,
    /// By agent.
    pub(super) edits: Vec<usize>,
}

impl Crew {
    pub(super) fn start(
        repository: &Repository,
        agents: u8,
        limit: &Limit,
    ) -> Result<Self, Problem> {
        let (sender, reports) = mpsc::channel();
        let planned = limit.edits.as_ref().map(|edits| edits.iter().sum());
        let time = limit.time;
        let mut crew = Self { agents: Vec::new(), inputs: Vec::new(), reports, planned, time };
        for number in 0..agents {
            let mut command = baton()?;
            command.args(["demo-agent", "--number", &number.to_string(), "--repository"]);
            command.arg(&repository.root).current_dir(&repository.root);
            command.args(["--milliseconds", &limit.time.as_millis().to_string()]);
            if let Some(edits) = &limit.edits {
                let edits = edits.get(usize::from(number)).copied().unwrap_or(0);
                command.args(["--edits", &edits.to_string()]);
            }
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let child = command.spawn();
            let mut child = child.map_err(|error| unable("an agent cannot be started", &error))?;
            let (output, sender) = (child.stdout.take(), sender.clone());
            crew.inputs.extend(child.stdin.take());
            crew.agents.push(child);
            std::thread::spawn(move || {
                let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
                for line in lines.map_while(Result::ok) {
                    let report = match line.as_str() {
                        "edit" => Report::Edit(usize::from(number)),
                        "refused" => Report::Refused,
                        _ => Report::Ready,
                    };
                    let _ = sender.send(report);
                }
                let _ = sender.send(Report::Ended);
            });
        }
        Ok(crew)
    }

    /// Gives the signal and stays until all agents have ended.
    pub(super) fn watch(
        mut self,
        repository: &Repository,
        screen: &Screen,
        title: &str,
    ) -> Result<Run, Problem> {
        let mut run = Run { tally: Tally::default(), edits: vec![0; self.agents.len()] };
        let (mut ready, mut ended) = (0, 0);
        let mut started = Instant::now();
        let mut drawn = started;
        let end = started + PATIENCE_MIN.max(self.time * PATIENCE);
        while ended < self.agents.len() {
            match self.reports.recv_timeout(FRAME) {
                Ok(Report::Edit(agent)) => run.edits[agent] += 1,
                Ok(Report::Refused) => run.tally.conflicts_refused += 1,
                Ok(Report::Ended) => ended += 1,
                Ok(Report::Ready) => {
                    ready += 1;
                    if ready == self.agents.len() {
                        started = self.give_signal();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() > end {
                return Err(unable(title, &"the agents do not come to an end"));
            }
            if drawn.elapsed() >= FRAME {
                drawn = Instant::now();
                run.count(repository, started);
                let part = self.part_done(&run);
                screen.progress(title, part, &run.tally);
            }
        }
        run.tally.seconds = started.elapsed().as_secs_f64();
        self.all_went_well(title)?;
        run.count_exactly(repository);
        screen.done(title, &run.tally);
        Ok(run)
    }

    fn give_signal(&mut self) -> Instant {
        for input in &mut self.inputs {
            let _ = input.write_all(b"go\n").and_then(|()| input.flush());
        }
        Instant::now()
    }

    fn part_done(&self, run: &Run) -> f64 {
        let of_edits = |edits: usize| run.tally.edits_made as f64 / edits.max(1) as f64;
        let of_time = run.tally.seconds / self.time.as_secs_f64();
        self.planned.map_or(0.0, of_edits).max(of_time).clamp(0.0, 1.0)
    }

    fn all_went_well(&mut self, title: &str) -> Result<(), Problem> {
        for agent in &mut self.agents {
            let status = agent.wait().map_err(|error| unable(title, &error))?;
            if !status.success() {
                return Err(unable(title, &format!("an agent failed ({status})")));
            }
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.inputs.clear();
        for agent in &mut self.agents {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

impl Run {
    fn marks(&self) -> impl Iterator<Item = String> + '_ {
        let agents = self.edits.iter().enumerate();
        agents.flat_map(|(agent, edits)| {
            let agent = u8::try_from(agent).unwrap_or(u8::MAX);
            (0..*edits).map(move |edit| mark(agent, edit))
        })
    }

    /// What the files show while agents work.
    fn count(&mut self, repository: &Repository, started: Instant) {
        self.count_exactly(repository);
        self.tally.seconds = started.elapsed().as_secs_f64();
    }

    fn count_exactly(&mut self, repository: &Repository) {
        let lines = repository.lines();
        self.tally.edits_made = self.edits.iter().sum();
        self.tally.edits_lost = self.marks().filter(|mark| !lines.contains(mark)).count();
    }
}
