//! One scripted agent: a process that picks a file, reads it, thinks, and writes it back.
//!
//! With Baton it claims the file before it reads and releases it after it wrote, by running the
//! same commands a user would. Refused, it takes another file, and after some refusals it queues.
//! It ends when its input ends, so no agent outlives the demo.

use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;

use super::{scratch, unable};
use crate::desk::Outcome;
use crate::words::Problem;

/// An agent's thought between reading and writing.
const THOUGHT_MS: std::ops::Range<u64> = 10..90;
/// How often it takes another file before it queues for one.
const REFUSALS_BEFORE_QUEUE: u32 = 3;
const QUEUE_TIME: &str = "20s";
/// How often an answer other than yes or no is taken before the agent gives up.
const FAILURES_MAX: u32 = 5;

#[derive(Debug, Args)]
pub(crate) struct DemoAgent {
    /// Its number; edits carry it
    #[arg(long, default_value_t = 0)]
    pub(super) number: u8,
    /// The repository it works in
    #[arg(long, default_value = ".")]
    pub(super) repository: PathBuf,
    /// Stop after this time
    #[arg(long)]
    pub(super) milliseconds: Option<u64>,
    /// Stop after this many edits; claim what is edited
    #[arg(long)]
    pub(super) edits: Option<usize>,
    /// Be no agent: remove this folder when the demo has ended
    #[arg(long)]
    pub(super) janitor: Option<PathBuf>,
}

pub(crate) fn run(wanted: &DemoAgent) -> Outcome {
    if let Some(folder) = &wanted.janitor {
        scratch::clean_up_after(folder);
        return Ok(std::process::ExitCode::SUCCESS);
    }
    let mut agent = Agent {
        number: wanted.number,
        repository: wanted.repository.clone(),
        dice: Dice(seed() | 1),
        credential: None,
        made: 0,
    };
    if wanted.edits.is_some() {
        let name = format!("agent-{}", agent.number);
        agent.credential = Some(start_session(&agent.repository, &name)?);
    }
    report("ready");
    wait_for_the_signal();
    let started = Instant::now();
    let time = wanted.milliseconds.map(Duration::from_millis);
    while time.is_none_or(|time| started.elapsed() < time)
        && wanted.edits.is_none_or(|edits| agent.made < edits)
    {
        agent.work()?;
    }
    Ok(std::process::ExitCode::SUCCESS)
}

/// One line to the demo.
pub(super) fn report(word: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{word}").and_then(|()| out.flush());
}

/// Returns when everybody is ready; from then on the end of the input is the end of the agent.
pub(super) fn wait_for_the_signal() {
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    std::thread::spawn(|| {
        let mut rest = String::new();
        while std::io::stdin().lock().read_line(&mut rest).is_ok_and(|bytes| bytes > 0) {}
        std::process::exit(0);
    });
}

struct Agent {
    number: u8,
    repository: PathBuf,
    dice: Dice,
    /// With Baton: who it is.
    credential: Option<String>,
    made: usize,
}

impl Agent {
    fn work(&mut self) -> Result<(), Problem> {
        let file = match self.credential.clone() {
            None => self.dice.file(),
            Some(credential) => self.claim_one(&credential)?,
        };
        self.edit(&self.repository.join(file))?;
        if let Some(credential) = self.credential.clone() {
            self.baton(&credential, &["release", file])?;
        }
        report("edit");
        Ok(())
    }

    /// Read, think, write: what every coding agent does. The write is atomic, so that nothing is
    /// lost but what somebody else overwrites.
    fn edit(&mut self, path: &Path) -> Result<(), Problem> {
        let fault = |error: std::io::Error| unable("a scratch file", &error);
        let mut text = std::fs::read_to_string(path).map_err(fault)?;
        std::thread::sleep(Duration::from_millis(self.dice.within(THOUGHT_MS)));
        text.push_str(&mark(self.number, self.made));
        text.push('\n');
        let draft = path.with_extension(format!("draft-{}", self.number));
        std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path)).map_err(fault)?;
        self.made += 1;
        Ok(())
    }

    /// A file that this agent may edit now.
    fn claim_one(&mut self, credential: &str) -> Result<&'static str, Problem> {
        for attempt in 0.. {
            let file = self.dice.file();
            let queue = ["claim", file, "--wait", QUEUE_TIME];
            let words = if attempt < REFUSALS_BEFORE_QUEUE { &queue[..2] } else { &queue[..] };
            if self.baton(credential, words)? {
                return Ok(file);
            }
            report("refused");
        }
        Err(unable("no file became free", &"all attempts were refused"))
    }

    /// Runs the real command; false is a refusal.
    fn baton(&self, credential: &str, words: &[&str]) -> Result<bool, Problem> {
        let mut failures = 0;
        loop {
            let mut command = scratch::baton()?;
            command.args(words).current_dir(&self.repository).env("BATON_SESSION", credential);
            let output = command.stdout(Stdio::null()).output();
            let output = output.map_err(|error| unable("baton cannot be started", &error))?;
            match output.status.code() {
                Some(0) => return Ok(true),
                Some(1) => return Ok(false),
                _ if failures < FAILURES_MAX => failures += 1,
                _ => {
                    let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
                    return Err(unable(&words.join(" "), &said));
                }
            }
        }
    }
}

/// A session of this process, which ends with it.
pub(super) fn start_session(repository: &Path, name: &str) -> Result<String, Problem> {
    let pid = std::process::id().to_string();
    let mut command: Command = scratch::baton()?;
    command.args(["session", "start", "--json", "--name", name, "--pid", &pid]);
    let output = command.current_dir(repository).output();
    let output = output.map_err(|error| unable("baton cannot be started", &error))?;
    let reply: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| unable("a session", &error))?;
    match reply["credential"].as_str() {
        Some(credential) => Ok(credential.to_owned()),
        None => Err(unable("a session", &String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// What one edit leaves in the file, and nobody else writes.
pub(super) fn mark(agent: u8, edit: usize) -> String {
    format!("edit {edit} of agent {agent}")
}

/// Randomness good enough to pick a file.
pub(super) fn seed() -> u64 {
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// Xorshift; the seed is never zero.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn throw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.throw() % (range.end - range.start)
    }

    fn file(&mut self) -> &'static str {
        let index = self.within(0..scratch::FILES.len() as u64);
        scratch::FILES[usize::try_from(index).unwrap_or(0)]
    }
}
