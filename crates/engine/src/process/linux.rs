//! Processes as Linux's `/proc` tells of them.
//!
//! Owns the format of `/proc/PID/stat` and the places of boot id, namespaces and machine id.
//! Invariant: a file that is not as expected is unreadable, never absent.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use super::{Boot, NoStat, Stat, Terminal};

/// Holds any `/proc/PID/stat`: a name of 15 bytes and fifty numbers.
const STAT_BYTES_MAX: usize = 2048;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const MACHINE_ID: &str = "/etc/machine-id";

pub(super) fn boot() -> Boot {
    let mut buffer = [0_u8; STAT_BYTES_MAX];
    let id = text(BOOT_ID, &mut buffer).unwrap_or_default().to_owned();
    Boot { id }
}

pub(super) fn time_namespace() -> u64 {
    inode("/proc/self/ns/time")
}

pub(super) fn namespace() -> u64 {
    if sees_itself() { inode("/proc/self/ns/pid") } else { 0 }
}

pub(super) fn host() -> String {
    let mut buffer = [0_u8; STAT_BYTES_MAX];
    host_with(text(MACHINE_ID, &mut buffer).unwrap_or_default())
}

/// systemd asks that the machine id itself be kept from others, so a digest stands for it.
fn host_with(machine_id: &str) -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    if machine_id.is_empty() {
        return name.into_owned();
    }
    let digest = blake3::derive_key("baton host of a session", machine_id.as_bytes());
    let short = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    format!("{name}-{short:08x}")
}

/// Whether `/proc` counts processes as we do. After `unshare --pid` without a new mount it shows
/// the numbers of the namespace outside, where our numbers belong to strangers.
fn sees_itself() -> bool {
    let shown = fs::read_link("/proc/self").ok();
    let shown = shown.as_deref().and_then(|link| link.to_str()?.parse().ok());
    shown == Some(getpid().as_raw_pid())
}

fn inode(path: &str) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.ino())
}

fn text<'a>(path: &str, buffer: &'a mut [u8]) -> Option<&'a str> {
    let length = read(path, buffer).ok()?;
    std::str::from_utf8(&buffer[..length]).ok().map(str::trim)
}

fn read(path: &str, buffer: &mut [u8]) -> std::io::Result<usize> {
    File::open(path)?.read(buffer)
}

pub(super) fn stat(pid: u32) -> Result<Stat, NoStat> {
    let mut buffer = [0_u8; STAT_BYTES_MAX];
    match read(&format!("/proc/{pid}/stat"), &mut buffer) {
        Ok(length) => parse(&buffer[..length]).filter(|stat| stat.pid == pid),
        // A process that ends between opening and reading answers ESRCH.
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound
                || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) =>
        {
            return Err(NoStat::Absent);
        }
        Err(_) => None,
    }
    .ok_or(NoStat::Unreadable)
}

/// The name may hold spaces and parentheses, so it ends at the *last* parenthesis.
fn parse(line: &[u8]) -> Option<Stat> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(line.get(..open)?).ok()?.trim().parse().ok()?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    // Numbered as in proc(5): state 3, parent 4, session 6, terminal 7, threads 20, start 22.
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let device: i32 = fields.next()?.parse().ok()?;
    let threads = fields.nth(12)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    let terminal = (device != 0).then_some(Terminal { device: u64::from(device.cast_unsigned()) });
    Some(Stat { pid, name, state, parent, session, terminal, threads, start })
}

pub(super) fn controlling_terminal() -> Option<Terminal> {
    // Agents' tools have no terminal, and this says so at a tenth of the cost of `/proc`.
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
    stat(getpid().as_raw_pid().cast_unsigned()).ok()?.terminal
}

pub(super) fn open_process(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()
}

/// The arguments of a process, as far as the limit reaches.
pub(super) fn arguments(pid: u32) -> Vec<String> {
    let mut buffer = [0_u8; STAT_BYTES_MAX];
    let Ok(length) = read(&format!("/proc/{pid}/cmdline"), &mut buffer) else { return Vec::new() };
    let arguments = buffer[..length].split(|byte| *byte == 0);
    arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "S 7 42 42 34817 42 4194560 1 2 3 4 5 6 7 8 20 0 9 0 123456 10 11";

    #[test]
    fn a_name_with_spaces_and_parentheses_hides_nothing() {
        for name in ["sleep", "a b", "x) S 1 2 3 (y", "((", "))", ""] {
            let stat = parse(format!("42 ({name}) {TAIL}\n").as_bytes()).unwrap();
            assert_eq!((stat.pid, &*stat.name, stat.parent), (42, name, 7), "{name}");
            assert_eq!((stat.session, stat.threads, stat.start), (42, 9, 123_456), "{name}");
            assert_eq!(stat.terminal, Some(Terminal { device: 34817 }));
        }
    }

    #[test]
    fn what_is_not_a_stat_line_is_unreadable() {
        for line in ["", "42", "42 (x", "42 (x) S", "x (y) S 1 2 3 4", ")("] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_leader_that_ended_before_its_threads_is_no_zombie() {
        let line = format!("42 (x) {}", TAIL.replacen('S', "Z", 1));
        assert!(!parse(line.as_bytes()).unwrap().is_ended());
        assert!(parse(line.replace(" 9 0 ", " 1 0 ").as_bytes()).unwrap().is_ended());
    }

    #[test]
    fn the_machine_is_named_without_its_id() {
        let machine = super::super::Machine::here();
        assert!(!machine.boot.is_empty() && machine.namespace != 0 && !machine.host.is_empty());
        if let Ok(id) = fs::read_to_string(MACHINE_ID)
            && !id.trim().is_empty()
        {
            assert!(!machine.host.contains(id.trim()));
        }
        assert_ne!(host_with("one"), host_with("two"));
    }
}
