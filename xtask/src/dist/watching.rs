//! Watching a process: which of the given functions it enters, in the order it first does.
//!
//! A breakpoint stands at every function and goes when it is met, so a run stops once for each
//! function and not for each call. The process may start neither threads nor processes: they would
//! meet the breakpoints with nobody watching.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};

use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

/// The instruction that stops a processor of this kind.
const BREAKPOINT: u8 = 0xcc;

/// A shell that becomes the program when it is told to: so it can be watched from its first
/// instruction without a line of unsafe code here.
const WAITING_SHELL: &str = r#"read -r _ && exec "$@" < "$0""#;

/// The addresses of `starts` that were entered, in order, and how the program ended.
///
/// `starts` is sorted. The command's program and arguments are run with `input` on their input.
pub(super) fn entered(
    command: &Command,
    input: &std::path::Path,
    starts: &[u64],
) -> io::Result<(Vec<u64>, i32)> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", WAITING_SHELL]).arg(input);
    shell.arg(command.get_program()).args(command.get_args()).env_clear();
    shell.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.spawn()?;
    let process = Pid::from_raw(child.id().cast_signed());
    let watched = child.stdin.take().map_or_else(
        || Err(io::Error::other("the shell has no input")),
        |mut go| {
            let options = Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_EXITKILL;
            ptrace::seize(process, options)?;
            go.write_all(b"\n")?;
            drop(go);
            watch(process, starts)
        },
    );
    if watched.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    watched
}

fn watch(process: Pid, starts: &[u64]) -> io::Result<(Vec<u64>, i32)> {
    let mut met = Vec::new();
    let mut planted: Option<Breakpoints> = None;
    loop {
        match waitpid(process, None)? {
            WaitStatus::Exited(_, code) => return Ok((met, code)),
            WaitStatus::Signaled(_, signal, _) => {
                return Err(io::Error::other(format!("the program was ended by {signal}")));
            }
            WaitStatus::PtraceEvent(_, _, event) if event == Event::PTRACE_EVENT_EXEC as i32 => {
                planted = Some(Breakpoints::plant(process, starts)?);
                ptrace::cont(process, None)?;
            }
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                let breakpoints = planted.as_mut();
                let stopped = breakpoints.map(|breakpoints| breakpoints.lift(process));
                met.extend(stopped.transpose()?.flatten());
                ptrace::cont(process, None)?;
            }
            WaitStatus::Stopped(_, signal) => ptrace::cont(process, signal)?,
            _ => ptrace::cont(process, None)?,
        }
    }
}

/// The breakpoints of one process, and what stood in their place.
struct Breakpoints {
    memory: File,
    first: u64,
    original: Vec<u8>,
    standing: HashSet<u64>,
}

impl Breakpoints {
    fn plant(process: Pid, starts: &[u64]) -> io::Result<Self> {
        let memory = format!("/proc/{process}/mem");
        let memory = OpenOptions::new().read(true).write(true).open(memory)?;
        let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else {
            return Err(io::Error::other("the map names no function"));
        };
        let bytes = usize::try_from(last - first + 1).map_err(io::Error::other)?;
        let mut original = vec![0; bytes];
        memory.read_exact_at(&mut original, first)?;
        let mut changed = original.clone();
        for start in starts {
            changed[(start - first) as usize] = BREAKPOINT;
        }
        memory.write_all_at(&changed, first)?;
        Ok(Self { memory, first, original, standing: starts.iter().copied().collect() })
    }

    /// Takes away the breakpoint at which the process stopped and sets it back to the function's
    /// first instruction. Nothing, if it stopped for another reason.
    fn lift(&mut self, process: Pid) -> io::Result<Option<u64>> {
        let mut registers = ptrace::getregs(process)?;
        let start = registers.rip.wrapping_sub(1);
        if !self.standing.remove(&start) {
            return Ok(None);
        }
        let offset = (start - self.first) as usize;
        self.memory.write_all_at(&self.original[offset..=offset], start)?;
        registers.rip = start;
        ptrace::setregs(process, registers)?;
        Ok(Some(start))
    }
}
