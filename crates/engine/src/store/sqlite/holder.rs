//! Who holds a lock on one of the store's files, as the kernel tells it.
//!
//! Owns the reading of `/proc/locks`. For words only: a process that the kernel does not show from
//! here (another pid namespace, another system) is nobody, and nothing is decided by it.

use std::path::Path;

/// Where SQLite's writers and rebuilders lock the shared index of the log.
const INDEX_LOCKS: std::ops::RangeInclusive<u64> = 120..=127;

/// The process that has `path` locked by `flock`.
pub(super) fn of_gate(path: &Path) -> Option<u32> {
    locks_on(path).into_iter().find(|lock| lock.kind == "FLOCK").map(|lock| lock.pid)
}

/// The process that keeps others from the database at `path`.
pub(super) fn of_database(path: &Path) -> Option<u32> {
    let mut index = path.as_os_str().to_owned();
    index.push("-shm");
    let writes = |lock: &Lock| lock.kind != "FLOCK" && lock.exclusive && lock.pid != 0;
    let in_index = locks_on(Path::new(&index)).into_iter().find(|lock| {
        let meets = lock.first <= *INDEX_LOCKS.end() && *INDEX_LOCKS.start() <= lock.last;
        writes(lock) && meets && lock.pid != std::process::id()
    });
    let found = in_index.or_else(|| locks_on(path).into_iter().find(writes));
    found.map(|lock| lock.pid)
}

/// The name of a process, empty when it cannot be told.
pub(super) fn program(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    name.map(|name| name.trim().to_owned()).unwrap_or_default()
}

struct Lock {
    kind: String,
    exclusive: bool,
    pid: u32,
    first: u64,
    last: u64,
}

#[cfg(target_os = "linux")]
fn locks_on(path: &Path) -> Vec<Lock> {
    let Ok(stat) = rustix::fs::stat(path) else { return Vec::new() };
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let file = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    let table = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    // `1: FLOCK  ADVISORY  WRITE 1234 fe:00:613 0 EOF`; those who wait have `->` before the kind.
    let lock = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, kind, _, mode, pid, place, first, last] = words[..] else { return None };
        (place == file).then_some(Lock {
            kind: kind.to_owned(),
            exclusive: mode == "WRITE",
            pid: pid.parse().ok()?,
            first: first.parse().ok()?,
            last: last.parse().unwrap_or(u64::MAX),
        })
    };
    table.lines().filter_map(lock).collect()
}

#[cfg(not(target_os = "linux"))]
fn locks_on(_: &Path) -> Vec<Lock> {
    Vec::new()
}
