//! Which process is which, and whether it still lives.
//!
//! Owns the reading of `/proc`, the names of the machine, and process identities. It refuses to
//! know sessions and claims. Invariant: only what is certain is called dead. A process of another
//! host or another pid namespace, or behind a `/proc` that hides it, is unknown, because freeing
//! the claims of a living agent is worse than waiting for its lease.

pub mod agents;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
use other as system;

use std::os::fd::OwnedFd;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::place::test_hooks::TestHooks;

/// More generations than any shell, multiplexer and agent stack up.
pub const ANCESTORS_MAX: usize = 64;

/// The machine as seen by this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Changes with every boot; empty where the system does not tell.
    pub boot: String,
    /// The pid namespace; 0 when `/proc` is missing or shows another one.
    pub namespace: u64,
    /// Host name and a digest of the machine id: either alone is shared by cloned machines.
    pub host: String,
}

/// As much of the machine as a store needs to know; the rest costs a `check` more than it is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    pub id: String,
}

impl Boot {
    /// The boot as a test wants it seen.
    pub fn here_with(hooks: &TestHooks) -> Self {
        let mut boot = system::boot();
        if let Some(id) = &hooks.boot_id {
            boot.id.clone_from(id);
        }
        boot
    }
}

/// The time namespace of this process; 0 where there are none.
pub(crate) fn time_namespace() -> u64 {
    system::time_namespace()
}

impl Machine {
    pub fn here() -> Self {
        Self::of_boot(system::boot())
    }

    /// The machine as a test wants it seen.
    pub fn here_with(hooks: &TestHooks) -> Self {
        Self::of_boot(Boot::here_with(hooks))
    }

    pub fn of_boot(boot: Boot) -> Self {
        Self { boot: boot.id, namespace: system::namespace(), host: system::host() }
    }

    /// This process.
    pub fn current(&self) -> Option<Identity> {
        self.of(rustix::process::getpid().as_raw_pid().cast_unsigned())
    }

    /// A process that can be seen from here, by its number.
    pub fn of(&self, pid: u32) -> Option<Identity> {
        let stat = system::stat(pid).ok()?;
        Some(self.identity(&stat))
    }

    fn identity(&self, stat: &Stat) -> Identity {
        let (boot, namespace) = (self.boot.clone(), self.namespace);
        Identity { boot, namespace, pid: stat.pid, start: stat.start }
    }

    /// Whether a process recorded on `host` lives.
    pub fn state(&self, identity: &Identity, host: &str) -> State {
        if host != self.host || identity.boot.is_empty() || self.boot.is_empty() {
            return self.state_without_boot(identity, host);
        }
        if identity.boot != self.boot {
            return State::Dead;
        }
        if identity.namespace != self.namespace || self.namespace == 0 {
            return State::Unknown;
        }
        match system::stat(identity.pid) {
            Ok(stat) if stat.start != identity.start || stat.is_ended() => State::Dead,
            Ok(_) => State::Alive,
            // `hidepid` makes others' processes look absent; the kernel's word decides.
            Err(NoStat::Absent) if is_gone(identity.pid) => State::Dead,
            Err(_) => State::Unknown,
        }
    }

    /// Without a boot id only the absence of the number is certain, and only on the same host.
    fn state_without_boot(&self, identity: &Identity, host: &str) -> State {
        let comparable = host == self.host && identity.boot == self.boot;
        if comparable && identity.namespace == self.namespace && is_gone(identity.pid) {
            State::Dead
        } else {
            State::Unknown
        }
    }

    /// The parents of this process, nearest first; each costs one read when asked for.
    pub fn ancestors(&self) -> Ancestors<'_> {
        let parent = rustix::process::getppid().map(|pid| pid.as_raw_pid().cast_unsigned());
        Ancestors { machine: self, next: parent, left: ANCESTORS_MAX }
    }

    /// The shell of the terminal that controls this process: the leader of its session, or, where
    /// the leader is outside this pid namespace (`unshare`, `nsenter`), the farthest parent in the
    /// same terminal.
    pub fn terminal_shell(&self) -> Option<Identity> {
        let terminal = controlling_terminal()?;
        let here = system::stat(rustix::process::getpid().as_raw_pid().cast_unsigned()).ok()?;
        let leader = (here.session != 0).then(|| self.of(here.session)).flatten();
        leader.or_else(|| {
            let same = |ancestor: &Ancestor| ancestor.terminal == Some(terminal);
            Some(self.ancestors().take_while(same).last()?.identity)
        })
    }

    /// A descriptor that becomes readable when the process ends; nothing if it has ended already
    /// or the system has no such descriptors.
    pub fn watch(&self, identity: &Identity) -> Option<OwnedFd> {
        if identity.boot != self.boot || identity.namespace != self.namespace {
            return None;
        }
        let descriptor = system::open_process(identity.pid)?;
        // The number may have passed to another process before it was opened; the descriptor
        // holds on to whoever has it now, so the start time read after opening decides.
        let stat = system::stat(identity.pid).ok()?;
        (stat.start == identity.start && !stat.is_ended()).then_some(descriptor)
    }
}

/// The terminal that controls this process, if any.
pub fn controlling_terminal() -> Option<Terminal> {
    system::controlling_terminal()
}

/// A process, told apart from every other one of this and earlier boots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub boot: String,
    pub namespace: u64,
    pub pid: u32,
    /// In clock ticks since boot.
    pub start: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Also when stopped or asleep.
    Alive,
    Dead,
    /// Cannot be seen from here.
    Unknown,
}

/// A terminal device, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Terminal {
    pub device: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    pub identity: Identity,
    /// The kernel's name of it, cut to 15 bytes there.
    pub name: String,
    pub terminal: Option<Terminal>,
}

#[derive(Debug)]
pub struct Ancestors<'a> {
    machine: &'a Machine,
    next: Option<u32>,
    left: usize,
}

impl Iterator for Ancestors<'_> {
    type Item = Ancestor;

    fn next(&mut self) -> Option<Ancestor> {
        let pid = self.next.take().filter(|pid| *pid > 0)?;
        self.left = self.left.checked_sub(1)?;
        let stat = system::stat(pid).ok()?;
        self.next = Some(stat.parent).filter(|_| pid != 1);
        let identity = self.machine.identity(&stat);
        Some(Ancestor { identity, name: stat.name, terminal: stat.terminal })
    }
}

/// What the kernel tells of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stat {
    pid: u32,
    name: String,
    state: u8,
    parent: u32,
    /// The leader of its session; 0 when that is outside this pid namespace.
    session: u32,
    terminal: Option<Terminal>,
    threads: u64,
    start: u64,
}

impl Stat {
    /// A leader that has ended while other threads run looks like a zombie and is none.
    fn is_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoStat {
    Absent,
    Unreadable,
}

/// Whether the kernel itself says that nobody has this number.
fn is_gone(pid: u32) -> bool {
    let Some(pid) = Pid::from_raw(pid.cast_signed()) else { return false };
    rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{Signal, kill_process};

    use super::*;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap()
    }

    fn state(machine: &Machine, identity: &Identity) -> State {
        machine.state(identity, &machine.host)
    }

    #[test]
    fn a_process_lives_stopped_or_not_and_dies_as_a_zombie() {
        let here = Machine::here();
        let mut child = sleeper();
        let pid = Pid::from_child(&child);
        let identity = here.of(child.id()).unwrap();
        assert_eq!(state(&here, &identity), State::Alive);
        kill_process(pid, Signal::STOP).unwrap();
        assert_eq!(state(&here, &identity), State::Alive, "stopped");
        let watched = here.watch(&identity).unwrap();
        child.kill().unwrap();
        let mut ended = [rustix::event::PollFd::new(&watched, rustix::event::PollFlags::IN)];
        assert_eq!(rustix::event::poll(&mut ended, None), Ok(1));
        assert_eq!(state(&here, &identity), State::Dead, "a zombie");
        assert!(here.watch(&identity).is_none());
        child.wait().unwrap();
        assert_eq!(state(&here, &identity), State::Dead, "reaped");
    }

    #[test]
    fn another_process_with_the_same_number_is_not_the_one() {
        let here = Machine::here();
        let mut identity = here.current().unwrap();
        assert_eq!(state(&here, &identity), State::Alive);
        identity.start += 1;
        assert_eq!(state(&here, &identity), State::Dead);
        assert!(here.watch(&identity).is_none());
    }

    #[test]
    fn what_cannot_be_seen_is_unknown_and_never_dead() {
        let here = Machine::here();
        let mut gone = here.current().unwrap();
        gone.pid = 0x3fff_fffe;
        assert_eq!(state(&here, &gone), State::Dead);
        let elsewhere = Identity { namespace: gone.namespace + 1, ..gone.clone() };
        assert_eq!(state(&here, &elsewhere), State::Unknown);
        assert_eq!(here.state(&gone, "another host"), State::Unknown);
        let blind = Machine { namespace: 0, ..here };
        assert_eq!(state(&blind, &Identity { namespace: 0, ..gone }), State::Unknown);
    }

    #[test]
    fn a_reboot_ends_every_process_of_this_host_only() {
        let here = Machine::here();
        let identity = here.current().unwrap();
        let hooks = TestHooks { boot_id: Some("next boot".into()), clock_advance_ms: 0 };
        let later = Machine::here_with(&hooks);
        assert_eq!(state(&later, &identity), State::Dead);
        assert_eq!(later.state(&identity, "another host"), State::Unknown);
        let nameless = Machine { boot: String::new(), ..here };
        assert_eq!(state(&nameless, &identity), State::Unknown);
    }

    #[test]
    fn ancestors_lead_from_the_parent_towards_the_first_process() {
        let here = Machine::here();
        let ancestors: Vec<_> = here.ancestors().collect();
        let parent = rustix::process::getppid().unwrap().as_raw_pid().cast_unsigned();
        assert_eq!(ancestors[0].identity.pid, parent);
        assert!(!ancestors[0].name.is_empty());
        assert!(ancestors.len() <= ANCESTORS_MAX);
        assert_eq!(here.terminal_shell().is_some(), controlling_terminal().is_some());
    }

    #[test]
    fn an_identity_survives_being_stored() {
        let identity = Machine::here().current().unwrap();
        let text = serde_json::to_string(&identity).unwrap();
        assert_eq!(serde_json::from_str::<Identity>(&text).unwrap(), identity);
    }
}
