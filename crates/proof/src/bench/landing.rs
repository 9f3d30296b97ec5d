//! The merge queue against landing one branch at a time, and `commit` against git's own.
//!
//! Forty branches that have nothing in common, with a check that takes two seconds. Landed by the
//! queue, two checks at once; and some of them one after the other, which gives the rate that a
//! person or a script without a queue would have.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::page::Line;
use super::samples::{self, Call};
use super::{Scale, fill};
use crate::failure::Failure;
use crate::traffic::Ground;

const BRANCHES: usize = 40;
/// Landed one at a time, to know the rate.
const ALONE: usize = 8;
/// Which of them break, when some do.
const BAD: [usize; 3] = [7, 19, 33];
const FOLDERS: usize = 100;
const FILES_EACH: usize = 100;
const POLICY: &str = "[queue]\ntarget = \"main\"\njobs = 2\n[[queue.check]]\nname = \"unit\"\n\
    run = [\"sh\", \"-c\", \"sleep 2; ! ls bad* 2> /dev/null\"]\n";

pub(super) fn measure(baton: &Path, scale: Scale, lines: &mut Vec<Line>) -> Result<(), Failure> {
    println!("landing {BRANCHES} branches with a check of two seconds");
    let alone = one_at_a_time(baton)?;
    for (name, bad, target) in [("all good", &[][..], 4.0), ("three bad", &BAD[..], 2.0)] {
        let (time, landed) = queued(baton, bad)?;
        let rate = f64::from(landed) / time.as_secs_f64() * 60.0;
        let ratio = rate / alone;
        let said = format!("{rate:.0} a minute, {ratio:.1} × one at a time ({alone:.0})");
        let name = format!("{BRANCHES} branches, 2 s of checks, `jobs = 2`, {name}");
        let complete = usize::try_from(landed) == Ok(BRANCHES - bad.len());
        lines.push(Line::said(name, said, format!("≥ {target} ×"), complete && ratio >= target));
    }
    commits(baton, scale, lines)
}

pub(super) fn git(folder: &Path, words: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.invalid"]);
    command.args(words).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status();
    let status = status.map_err(|source| Failure::NotStarted { what: "git".to_owned(), source })?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::said(words.join(" "), format!("{status}"))),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.map_err(Failure::file("writing", path))
}

/// A repository whose branches each add a file of their own.
fn plant(baton: &Path, branches: usize, bad: &[usize]) -> Result<(Ground, Call), Failure> {
    let ground = Ground::make(None)?;
    let root = ground.root();
    write(&root.join("baton.toml"), POLICY)?;
    git(&root, &["checkout", "-q", "-B", "main"])?;
    git(&root, &["add", "-A"])?;
    git(&root, &["commit", "-qm", "base"])?;
    for branch in 0..branches {
        git(&root, &["checkout", "-q", "-b", &format!("b{branch}"), "main"])?;
        let name = if bad.contains(&branch) { "bad" } else { "file" };
        write(&root.join(format!("{name}{branch}")), "text\n")?;
        git(&root, &["add", "-A"])?;
        git(&root, &["commit", "-qm", "own"])?;
    }
    git(&root, &["checkout", "-q", "main"])?;
    let token = root.with_file_name("person");
    let call = Call::new(baton, &root, &fill::session(&ground)?);
    let path = token.to_string_lossy().into_owned();
    // Nobody in particular makes the token: to a session it would be refused.
    let nobody = Call::new(baton, &root, "");
    nobody.run(&["person", "token", &path])?;
    let mut trust = nobody.command(&["trust", "--yes"]);
    let status = trust.env("BATON_PERSON_TOKEN_FILE", &path).stdout(Stdio::null()).status();
    let status =
        status.map_err(|source| Failure::NotStarted { what: "trust".to_owned(), source })?;
    match status.success() {
        true => Ok((ground, call)),
        false => Err(Failure::said("trust", format!("{status}"))),
    }
}

/// Landings a minute, each waited for before the next.
fn one_at_a_time(baton: &Path) -> Result<f64, Failure> {
    let (_ground, call) = plant(baton, ALONE, &[])?;
    let started = Instant::now();
    for branch in 0..ALONE {
        call.run(&["land", &format!("b{branch}")])?;
    }
    let count = u32::try_from(ALONE).unwrap_or(u32::MAX);
    Ok(f64::from(count) / started.elapsed().as_secs_f64() * 60.0)
}

/// How long the queue took, and how many landed.
fn queued(baton: &Path, bad: &[usize]) -> Result<(Duration, u32), Failure> {
    let (_ground, call) = plant(baton, BRANCHES, bad)?;
    for branch in 0..BRANCHES {
        call.run(&["land", &format!("b{branch}"), "--queue"])?;
    }
    let started = Instant::now();
    call.run(&["queue", "run", "--once"])?;
    let time = started.elapsed();
    let (_, listed) = call.answer(&["queue", "list", "--all", "--json"])?;
    let landings = listed["landings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let landed = landings.iter().filter(|landing| landing["state"] == "landed").count();
    Ok((time, u32::try_from(landed).unwrap_or(u32::MAX)))
}

/// One file of ten thousand, committed by Baton and by git, each in a repository of its own.
/// Ten thousand of them.
pub(super) fn plant_files(root: &Path) -> Result<(), Failure> {
    for folder in 0..FOLDERS {
        for file in 0..FILES_EACH {
            write(&root.join(format!("f{folder}/g{file}")), &format!("{folder} {file}\n"))?;
        }
    }
    Ok(())
}

fn commits(baton: &Path, scale: Scale, lines: &mut Vec<Line>) -> Result<(), Failure> {
    println!("commit of one file of {}", FOLDERS * FILES_EACH);
    let grounds = [Ground::make(None)?, Ground::make(None)?];
    for ground in &grounds {
        let root = ground.root();
        plant_files(&root)?;
        git(&root, &["config", "user.name", "Ann"])?;
        git(&root, &["config", "user.email", "ann@example.invalid"])?;
        git(&root, &["add", "-A"])?;
        git(&root, &["commit", "-qm", "base"])?;
    }
    let call = Call::new(baton, &grounds[0].root(), &fill::session(&grounds[0])?);
    let rounds = (scale.samples / 20).max(10);
    let [ours, plain] = samples::interleaved(rounds, |round, series| {
        let root = grounds[series].root();
        write(&root.join("f7/g7"), &format!("round {round}\n"))?;
        let started = Instant::now();
        match series {
            0 => call.run(&["commit", "-m", "one", "f7/g7"])?,
            _ => git(&root, &["commit", "-qm", "one", "--", "f7/g7"])?,
        }
        Ok(started.elapsed())
    })?;
    let name = "`commit` of one file of 10,000, against `git commit`".to_owned();
    lines.push(Line::ratio(name, &ours, &plain, 2.0));
    Ok(())
}
