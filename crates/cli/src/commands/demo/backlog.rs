//! The second part of the demo: a backlog, four workers, and one of them killed half-way.
//!
//! Every worker is a process of its own. The one that is killed has a task in its hands; that task
//! is offered again and somebody else finishes it. What is counted is what was acknowledged: a task
//! without an acknowledgement is lost, one with two was done twice.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::scratch::{Repository, baton};
use super::screen::Screen;
use super::unable;
use crate::words::Problem;

pub(super) const WORKERS: u8 = 4;
/// Enough that the end of one worker is in the middle of it, and over in three seconds.
const TASKS: usize = 32;
const FRAME: Duration = Duration::from_millis(120);
const PATIENCE: Duration = Duration::from_secs(120);
const TITLE: &str = "a backlog";
/// What the tasks are about; the titles differ by their number.
const WORK: [&str; 4] = ["port the tests of", "document", "add types to", "split"];
const PARTS: [&str; 8] =
    ["billing", "search", "login", "export", "the mailer", "the router", "the cache", "reports"];

/// What became of the backlog.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Drained {
    pub(crate) tasks: usize,
    pub(crate) workers: u8,
    /// Acknowledged as done, at least once.
    pub(crate) done: usize,
    pub(crate) done_twice: usize,
    pub(crate) lost: usize,
    /// Begun by the killed worker, finished by another.
    pub(crate) taken_over: usize,
    pub(crate) seconds: f64,
}

enum Report {
    Ready,
    Took(usize, String),
    Done(String),
    Ended,
}

#[derive(Debug)]
struct Workers {
    processes: Vec<Child>,
    inputs: Vec<ChildStdin>,
    reports: Receiver<Report>,
}

/// Files the backlog and has it drained.
pub(super) fn drain(repository: &Repository, screen: &Screen) -> Result<Drained, Problem> {
    for number in 0..TASKS {
        let title = format!("{} {}", WORK[number % WORK.len()], PARTS[number / WORK.len()]);
        let mut command = baton()?;
        command.args(["task", "add", &title, "--json"]).current_dir(&repository.root);
        let output = command.output().map_err(|error| unable("a task", &error))?;
        if !output.status.success() {
            return Err(unable("a task", &String::from_utf8_lossy(&output.stderr).trim()));
        }
    }
    let mut drained = Workers::start(repository)?.watch(screen)?;
    let done = finished(repository)?;
    drained.done = done;
    drained.lost = TASKS - done.min(TASKS);
    screen.drained(TITLE, 1.0, &drained, true);
    Ok(drained)
}

/// What the store says is done, which the workers' own word must agree with.
fn finished(repository: &Repository) -> Result<usize, Problem> {
    let mut command = baton()?;
    command.args(["task", "list", "--state", "done", "--json"]).current_dir(&repository.root);
    let output = command.output().map_err(|error| unable("the backlog", &error))?;
    let list: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| unable("the backlog cannot be read", &error))?;
    Ok(list["tasks"].as_array().map_or(0, Vec::len))
}

fn half_way(done: &BTreeMap<String, usize>) -> bool {
    done.len() * 2 >= TASKS
}

fn tally(done: &BTreeMap<String, usize>, orphan: Option<&str>, started: Instant) -> Drained {
    Drained {
        tasks: TASKS,
        workers: WORKERS,
        done: done.len(),
        done_twice: done.values().filter(|times| **times > 1).count(),
        lost: 0,
        taken_over: usize::from(orphan.is_some_and(|task| done.contains_key(task))),
        seconds: started.elapsed().as_secs_f64(),
    }
}

impl Workers {
    fn start(repository: &Repository) -> Result<Self, Problem> {
        let (sender, reports) = mpsc::channel();
        let mut workers = Self { processes: Vec::new(), inputs: Vec::new(), reports };
        for number in 0..WORKERS {
            let mut command = baton()?;
            command.args(["demo-worker", "--number", &number.to_string(), "--repository"]);
            command.arg(&repository.root).current_dir(&repository.root);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let child = command.spawn();
            let mut child = child.map_err(|error| unable("a worker cannot be started", &error))?;
            let (output, sender) = (child.stdout.take(), sender.clone());
            workers.inputs.extend(child.stdin.take());
            workers.processes.push(child);
            let worker = usize::from(number);
            std::thread::spawn(move || {
                let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
                for line in lines.map_while(Result::ok) {
                    let report = match line.split_once(' ') {
                        Some(("took", task)) => Report::Took(worker, task.to_owned()),
                        Some(("done", task)) => Report::Done(task.to_owned()),
                        _ => Report::Ready,
                    };
                    let _ = sender.send(report);
                }
                let _ = sender.send(Report::Ended);
            });
        }
        Ok(workers)
    }

    /// Gives the signal, kills one worker half-way, and stays until the others have ended.
    fn watch(mut self, screen: &Screen) -> Result<Drained, Problem> {
        let victim = self.processes.len() - 1;
        let mut done: BTreeMap<String, usize> = BTreeMap::new();
        let mut orphan: Option<String> = None;
        let (mut ready, mut ended) = (0, 0);
        let mut started = Instant::now();
        while ended < self.processes.len() {
            match self.reports.recv_timeout(FRAME) {
                Ok(Report::Ready) => {
                    ready += 1;
                    if ready == self.processes.len() {
                        started = self.give_signal();
                    }
                }
                // It has only just begun, so nobody can say that it was finished in time.
                Ok(Report::Took(worker, task)) if worker == victim && half_way(&done) => {
                    orphan = orphan.or(Some(task));
                    let killed = self.processes[victim].kill();
                    killed.map_err(|error| unable("a worker cannot be killed", &error))?;
                }
                Ok(Report::Took(..)) => {}
                Ok(Report::Done(task)) => *done.entry(task).or_default() += 1,
                Ok(Report::Ended) => ended += 1,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if started.elapsed() > PATIENCE {
                return Err(unable(TITLE, &"the workers do not come to an end"));
            }
            let part = done.len() as f64 / TASKS as f64;
            screen.drained(TITLE, part, &tally(&done, orphan.as_deref(), started), false);
        }
        Ok(tally(&done, orphan.as_deref(), started))
    }

    fn give_signal(&mut self) -> Instant {
        for input in &mut self.inputs {
            let _ = input.write_all(b"go\n").and_then(|()| input.flush());
        }
        Instant::now()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.inputs.clear();
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
