//! Watching a process: which of the given functions it enters, in the order it first does.
//!
//! A breakpoint stands at every function and goes when it is met, so a run stops once for each
//! function and not for each call. The process may start neither threads nor processes: they would
//! meet the breakpoints with nobody watching.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
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
    input: &Path,
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
            watch(process, Path::new(command.get_program()), starts)
        },
    );
    if watched.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    watched
}

fn watch(process: Pid, program: &Path, starts: &[u64]) -> io::Result<(Vec<u64>, i32)> {
    let mut met = Vec::new();
    let mut planted: Option<Breakpoints> = None;
    loop {
        match waitpid(process, None)? {
            WaitStatus::Exited(_, code) if planted.is_some() => return Ok((met, code)),
            WaitStatus::Exited(..) => {
                return Err(io::Error::other("the program was not started"));
            }
            WaitStatus::Signaled(_, signal, _) => {
                return Err(io::Error::other(format!("the program was ended by {signal}")));
            }
            WaitStatus::PtraceEvent(_, _, event) if event == Event::PTRACE_EVENT_EXEC as i32 => {
                // The shell may still be becoming itself when we first look.
                if std::fs::read_link(format!("/proc/{process}/exe"))? == program {
                    planted = Some(Breakpoints::plant(process, starts)?);
                }
                ptrace::cont(process, None)?;
            }
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                let breakpoints = planted.as_mut();
                let stopped = breakpoints.map(Breakpoints::lift);
                met.extend(stopped.transpose()?.flatten());
                ptrace::cont(process, None)?;
            }
            WaitStatus::Stopped(_, signal) => ptrace::cont(process, signal)?,
            _ => ptrace::cont(process, None)?,
        }
    }
}

/// The breakpoints of one process, and what stood in their place.
///
/// Memory is read by its file and written word by word: kernels may refuse to write code through
/// the file, whoever asks.
struct Breakpoints {
    process: Pid,
    first: u64,
    original: Vec<u8>,
    changed: Vec<u8>,
    standing: HashSet<u64>,
}

impl Breakpoints {
    fn plant(process: Pid, starts: &[u64]) -> io::Result<Self> {
        let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else {
            return Err(io::Error::other("the map names no function"));
        };
        let first = word_of(first);
        let bytes = usize::try_from(word_of(last) + WORD - first).map_err(io::Error::other)?;
        let mut original = vec![0; bytes];
        let memory = File::open(format!("/proc/{process}/mem"))?;
        memory.read_exact_at(&mut original, first)?;
        let mut changed = original.clone();
        for start in starts {
            changed[(start - first) as usize] = BREAKPOINT;
        }
        let standing = starts.iter().copied().collect();
        let planted = Self { process, first, original, changed, standing };
        let mut words: Vec<u64> = starts.iter().copied().map(word_of).collect();
        words.dedup();
        for word in words {
            planted.write(word)?;
        }
        Ok(planted)
    }

    /// Takes away the breakpoint at which the process stopped and sets it back to the function's
    /// first instruction. Nothing, if it stopped for another reason.
    fn lift(&mut self) -> io::Result<Option<u64>> {
        let mut registers = ptrace::getregs(self.process)?;
        let start = registers.rip.wrapping_sub(1);
        if !self.standing.remove(&start) {
            return Ok(None);
        }
        let offset = (start - self.first) as usize;
        self.changed[offset] = self.original[offset];
        self.write(word_of(start))?;
        registers.rip = start;
        ptrace::setregs(self.process, registers)?;
        Ok(Some(start))
    }

    /// The word at this address as it is to be now.
    fn write(&self, word: u64) -> io::Result<()> {
        let offset = (word - self.first) as usize;
        let bytes = self.changed[offset..].first_chunk().copied().unwrap_or_default();
        let address = std::ptr::without_provenance_mut(word as usize);
        Ok(ptrace::write(self.process, address, i64::from_ne_bytes(bytes))?)
    }
}

const WORD: u64 = size_of::<i64>() as u64;

fn word_of(address: u64) -> u64 {
    address - address % WORD
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "
        int never(int x) { return x - 1; }
        int second(int x) { return x * 3; }
        int first(int x) { return x > 0 ? first(x - 1) : second(x); }
        int main(void) { int c = getchar(); return first(5) + second(c - 'a'); }";

    #[test]
    fn functions_are_met_once_in_the_order_they_are_entered() {
        let folder = std::env::temp_dir().join(format!("baton-watching-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let folder = folder.canonicalize().unwrap();
        let (source, program) = (folder.join("a.c"), folder.join("a"));
        std::fs::write(&source, PROGRAM).unwrap();
        let mut compile = Command::new("cc");
        compile.args(["-w", "-O0", "-static", "-no-pie", "-fno-builtin", "-o"]);
        assert!(compile.arg(&program).arg(&source).status().unwrap().success());
        let names = Command::new("nm").arg(&program).output().unwrap().stdout;
        let names = String::from_utf8(names).unwrap();
        let address = |name: &str| {
            let line = names.lines().find(|line| line.ends_with(&format!(" T {name}"))).unwrap();
            u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
        };
        let (main, first, second) = (address("main"), address("first"), address("second"));
        let mut starts = vec![main, first, second, address("never")];
        starts.sort_unstable();
        let input = folder.join("input");
        std::fs::write(&input, "b").unwrap();
        let (met, code) = entered(&Command::new(&program), &input, &starts).unwrap();
        assert_eq!((met, code), (vec![main, first, second], 3));
        let missing = entered(&Command::new(folder.join("missing")), &input, &starts);
        assert!(missing.is_err(), "{missing:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
