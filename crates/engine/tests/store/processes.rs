//! Many processes, killed and stopped: the test binary runs itself as the child.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use baton_core::event::Durability;
use baton_engine::store::sqlite::Sqlite;
use baton_engine::store::{Error, Store};
use rustix::process::{Pid, Signal, kill_process};

use super::sqlite::InFolder;
use super::writing::{PATIENCE, alias, counter, increment, verified_journal, write};

const WORK: &str = "BATON_TEST_CHILD_WORK";
const FOLDER: &str = "BATON_TEST_CHILD_FOLDER";

/// What a child says is one line each: `said WORD`.
fn say(word: impl std::fmt::Display) {
    println!("said {word}");
}

/// Not a test of its own: does what the parent asks in the environment.
#[test]
fn child() {
    let (Ok(work), Ok(folder)) = (std::env::var(WORK), std::env::var(FOLDER)) else { return };
    // The line that the test harness has begun must not swallow the first word.
    println!();
    let folder = Path::new(&folder);
    let work: Vec<&str> = work.split(' ').collect();
    match work[..] {
        ["increment", count] => increment_times(folder, count.parse().unwrap()),
        ["hold"] => hold(folder),
        ["try"] => say(outcome(folder)),
        ["fill"] => fill(folder, true),
        ["fill", "limited"] => fill(folder, false),
        _ => panic!("no such work: {work:?}"),
    }
}

fn increment_times(folder: &Path, count: u64) {
    let mut store = Sqlite::open(folder).unwrap();
    for n in 0..count {
        let durability = if n % 7 == 3 { Durability::Power } else { Durability::Process };
        say(increment(&mut store, "n", durability).unwrap());
    }
}

fn hold(folder: &Path) {
    let mut store = Sqlite::open(folder).unwrap();
    let _held = store.begin(PATIENCE).unwrap();
    say("held");
    std::thread::sleep(Duration::from_secs(600));
}

/// How an attempt to read and to write ends, in one word.
pub(crate) fn outcome(folder: &Path) -> String {
    let attempt = || -> Result<(), Error> {
        let mut store = Sqlite::open(folder)?;
        store.snapshot()?;
        write(&mut store, &[alias("a", "1")])?;
        Ok(())
    };
    match attempt() {
        Ok(()) => "done".to_owned(),
        Err(Error::Io { source, .. }) => format!("Io:{:?}", source.kind()),
        Err(error) => {
            let shown = format!("{error:?}");
            shown.split([' ', '{']).next().unwrap().to_owned()
        }
    }
}

/// Writes until the disk is full, makes room, and looks whether every acknowledged commit is there.
fn fill(folder: &Path, room_after: bool) {
    let ballast = folder.join("ballast");
    let store = folder.join("store");
    drop(Sqlite::create(&store).unwrap());
    std::fs::write(&ballast, vec![1; 300_000]).unwrap();
    let mut acknowledged = 0;
    let error = loop {
        let opened = Sqlite::open(&store);
        match opened.and_then(|mut store| increment(&mut store, "n", Durability::Process)) {
            Ok(n) => acknowledged = n,
            Err(error) => break error,
        }
        // Grows the database too, so that the disk does fill.
        let more = Sqlite::open(&store)
            .and_then(|mut store| write(&mut store, &[alias(&acknowledged.to_string(), "xxxx")]));
        if let Err(error) = more {
            break error;
        }
    };
    say(format!("{:?}", matches!(error, Error::Full { .. } | Error::Io { .. })));
    assert!(acknowledged > 10, "{acknowledged} before {error:?}");
    std::fs::remove_file(&ballast).unwrap();
    let mut store = Sqlite::open(&store).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(counter(&*snapshot, "n"), acknowledged, "after {error:?}");
    verified_journal(&*snapshot);
    drop(snapshot);
    if room_after {
        increment(&mut store, "n", Durability::Power).unwrap();
    }
    say("kept");
}

/// A command that runs this binary as a child; `before` is what starts it, for instance `unshare`.
pub(crate) fn command(before: &[&str], work: &str, folder: &Path) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut words = before.iter().map(std::ffi::OsString::from).collect::<Vec<_>>();
    words.push(program.into());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(["--exact", "store::processes::child", "--nocapture"]);
    command.env(WORK, work).env(FOLDER, folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn spawn(work: &str, folder: &Path) -> Child {
    command(&[], work, folder).spawn().unwrap()
}

pub(crate) fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| Some(line.strip_prefix("said ")?.to_owned()))
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Everything a child says until it ends, or `None` when this machine does not let it start.
pub(crate) fn whole_run(mut command: Command) -> Option<Vec<String>> {
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<String> =
        text.lines().filter_map(|line| Some(line.strip_prefix("said ")?.to_owned())).collect();
    if words.is_empty() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Some(words)
}

#[test]
fn lesson_24_s13_killed_writers_corrupt_nothing_and_lose_no_acknowledged_commit() {
    let fixture = InFolder::new();
    let mut acknowledged = 0;
    for round in 0..12_u64 {
        let mut children: Vec<Child> =
            (0..2).map(|_| spawn("increment 100000", fixture.path())).collect();
        let listeners: Vec<_> = children
            .iter_mut()
            .map(|child| {
                let words = said(child);
                std::thread::spawn(move || words.filter_map(|word| word.parse().ok()).last())
            })
            .collect();
        std::thread::sleep(Duration::from_millis(60 + round * 17));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        for listener in listeners {
            acknowledged = acknowledged.max(listener.join().unwrap().unwrap_or(0));
        }
        let mut store = fixture.sqlite();
        let snapshot = store.snapshot().unwrap();
        let found = counter(&*snapshot, "n");
        // One commit may have been made by each whose acknowledgement was cut off.
        assert!((acknowledged..=acknowledged + 2).contains(&found), "{found} of {acknowledged}");
        assert_eq!(verified_journal(&*snapshot).len() as u64, found);
        drop(snapshot);
        store.quick_check().unwrap();
        acknowledged = found;
    }
    assert!(acknowledged > 50, "only {acknowledged} commits were made");
}

#[test]
fn s12_no_entry_is_lost_among_32_processes() {
    let fixture = InFolder::new();
    let mut children: Vec<Child> = (0..32).map(|_| spawn("increment 10", fixture.path())).collect();
    let mut all = Vec::new();
    for child in &mut children {
        all.extend(said(child));
        assert!(child.wait().unwrap().success());
    }
    let mut numbers: Vec<u64> = all.iter().map(|word| word.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=320).collect::<Vec<u64>>());
    let mut store = fixture.sqlite();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(counter(&*snapshot, "n"), 320);
    assert_eq!(verified_journal(&*snapshot).len(), 320);
}

#[test]
fn a_process_stopped_anywhere_loses_nothing_and_misleads_no_reader() {
    let fixture = InFolder::new();
    let mut child = spawn("increment 100000", fixture.path());
    let pid = child.id();
    let words = said(&mut child);
    let listener = std::thread::spawn(move || words.filter_map(|word| word.parse().ok()).last());
    let mut store = fixture.sqlite();
    let (mut stopped_holding, mut own) = (0, 0);
    for round in 0..60 {
        std::thread::sleep(Duration::from_micros(3_000 + round * 331));
        signal(&child, Signal::STOP);
        std::thread::sleep(Duration::from_millis(2));
        // Stopped while it rewrites the index of the log, it makes readers wait, and then they are
        // told that nothing could be read; what they do read is always whole (S11).
        match store.snapshot().map(|snapshot| drop(verified_journal(&*snapshot))) {
            Ok(()) => {}
            Err(Error::Locked { pid: named, waited_ms, .. }) => {
                assert!(waited_ms > 0 && (named == pid || named == 0), "{named}, not {pid}");
                signal(&child, Signal::CONT);
                continue;
            }
            Err(error) => panic!("{error:?}"),
        }
        match store.begin(Duration::from_millis(20)).map(|_| ()) {
            Ok(()) => {
                increment(&mut store, "n", Durability::Process).unwrap();
                own += 1;
            }
            Err(Error::Busy { pid: named, .. }) => {
                assert_eq!(named, pid);
                stopped_holding += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
        signal(&child, Signal::CONT);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let last: u64 = listener.join().unwrap().unwrap();
    let snapshot = store.snapshot().unwrap();
    assert!(counter(&*snapshot, "n") >= last);
    assert_eq!(verified_journal(&*snapshot).len() as u64, counter(&*snapshot, "n"));
    assert!(stopped_holding > 0, "never stopped inside; {own} times outside");
}

#[test]
fn s13_a_full_disk_keeps_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=1500k tmpfs \"$0\" && exec \"$@\"";
    let place = folder.path().to_str().unwrap();
    let before = ["unshare", "--mount", "sh", "-c", mount, place];
    if let Some(said) = whole_run(command(&before, "fill", folder.path())) {
        assert_eq!(said, ["true", "kept"]);
    }
}

#[test]
fn s13_a_file_size_limit_keeps_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    // The signal must be ignored, or the kernel ends the process instead of failing the write.
    let limit = "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\"";
    if let Some(said) = whole_run(command(&["sh", "-c", limit], "fill limited", folder.path())) {
        assert_eq!(said, ["true", "kept"]);
    }
}

#[test]
fn two_pid_namespaces_share_one_gate() {
    let fixture = InFolder::new();
    let before = ["unshare", "--pid", "--fork", "--mount-proc"];
    let mut outside: Vec<Child> = (0..2).map(|_| spawn("increment 50", fixture.path())).collect();
    let inside: Vec<_> = (0..2)
        .map(|_| {
            let run = command(&before, "increment 50", fixture.path());
            std::thread::spawn(move || whole_run(run).map_or(0, |said| said.len()))
        })
        .collect();
    let inside: usize = inside.into_iter().map(|thread| thread.join().unwrap()).sum();
    for child in &mut outside {
        assert_eq!(said(child).count(), 50);
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(counter(&*fixture.sqlite().snapshot().unwrap(), "n"), 100 + inside as u64);
}
