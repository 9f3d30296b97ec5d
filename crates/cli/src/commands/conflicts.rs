//! `conflicts`: what stands between the live trees, and between each and the target.
//!
//! Owns the matrix and the words, and the exit code: 0 all clean, 1 something was found or could
//! not be seen.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_engine::api::conflicts::Conflicts as Wanted;
use baton_engine::conflicts::watching::{Changed, Watch};
use baton_engine::conflicts::{self, Conflicts, Eye, Finding, Kind, Pair, Span};
use baton_engine::failure::Failure;

use super::journal::{is_pipe, reader_gone};
use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::render::{Paint, paint, shown, table};
use crate::signals::Signals;

/// A watcher looks this often even without news: a report may be lost.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);
/// How long the trees must be quiet before they are looked at, and for how long that is waited.
const PAUSE: Duration = Duration::from_millis(150);
const PAUSES_MAX: Duration = Duration::from_secs(3);

/// Ranges of one file that are told in words.
const RANGES_TOLD_MAX: usize = 4;

pub(crate) fn run(common: &Common, wanted: &Wanted) -> Outcome {
    let mut desk = Desk::open(common)?;
    if wanted.watch {
        return watch(&mut desk);
    }
    let looked = conflicts::look(&mut desk.workspace, &desk.actor)?;
    desk.answer(&looked.conflicts, words);
    Ok(code(&looked.conflicts))
}

/// Looks again whenever something changes; shows what was not shown before.
fn watch(desk: &mut Desk) -> Outcome {
    let mut end = Signals::to_end()?;
    let mut eye = Eye::open(&desk.workspace)?;
    let mut watch = Watch::start().map_err(cannot_watch)?;
    // Before the first look, so that nothing that changes in between is missed.
    watch.extend(&mut desk.workspace)?;
    let out = std::io::stdout();
    let (mut changed, mut shown_before): (Changed, Option<BTreeSet<String>>) =
        (Changed::Anything, None);
    loop {
        let looked = eye.look(&mut desk.workspace, &desk.actor, &changed)?;
        let now: BTreeSet<String> = looked.conflicts.pairs.iter().flat_map(keys).collect();
        match &shown_before {
            None => desk.answer(&looked.conflicts, words),
            Some(before) => show_new(desk, looked.conflicts, before),
        }
        shown_before = Some(now);
        watch.extend(&mut desk.workspace)?;
        let mut also: Vec<BorrowedFd<'_>> = vec![end.descriptor()];
        if is_pipe(&out) {
            also.push(out.as_fd());
        }
        changed = watch.wait(LOOK_AT_LEAST_EVERY, &also).map_err(cannot_watch)?;
        if end.came() || is_pipe(&out) && reader_gone(&out) {
            return Ok(ExitCode::SUCCESS);
        }
        changed = match changed {
            Changed::Trees(trees) => settled(&mut watch, trees, &also_end(&end))?,
            // Nothing was told for long: a report may have been lost.
            _ => Changed::Anything,
        };
    }
}

fn also_end(end: &Signals) -> [BorrowedFd<'_>; 1] {
    [end.descriptor()]
}

/// An edit comes as many reports: waits until they pause.
fn settled(
    watch: &mut Watch,
    mut trees: BTreeSet<PathBuf>,
    also: &[BorrowedFd<'_>],
) -> Result<Changed, Failure> {
    let begun = Instant::now();
    while begun.elapsed() < PAUSES_MAX {
        match watch.wait(PAUSE, also).map_err(cannot_watch)? {
            Changed::Trees(more) => trees.extend(more),
            Changed::Anything => return Ok(Changed::Anything),
            Changed::Nothing => break,
        }
    }
    Ok(Changed::Trees(trees))
}

fn cannot_watch(source: std::io::Error) -> Failure {
    Failure::File { doing: "the trees cannot be watched", path: "inotify".into(), source }
}

/// Every finding of a pair, told apart from those of other pairs.
fn keys(pair: &Pair) -> Vec<String> {
    let all = conflicts::identities(pair).into_iter();
    all.map(|(hash, _)| format!("{}\0{}\0{hash}", pair.a, pair.b)).collect()
}

fn show_new(desk: &Desk, mut conflicts: Conflicts, before: &BTreeSet<String>) {
    let is_new = |pair: &Pair| keys(pair).iter().any(|key| !before.contains(key));
    conflicts.pairs.retain(is_new);
    if !conflicts.pairs.is_empty() {
        desk.answer(&conflicts, |conflicts, colour| told(&conflicts.pairs, colour));
    }
}

fn code(conflicts: &Conflicts) -> ExitCode {
    let clean = conflicts.pairs.iter().all(|pair| pair.found.is_clean());
    ExitCode::from(u8::from(!clean || !conflicts.unseen.is_empty()))
}

fn words(conflicts: &Conflicts, colour: bool) -> String {
    let mut text = String::new();
    if conflicts.pairs.is_empty() && conflicts.unseen.is_empty() {
        let what = match (conflicts.trees.len(), &conflicts.target) {
            (_, None) => "there is no other tree, and no branch where work lands",
            (0, _) => "no tree has anything of its own",
            _ => "there is no other tree",
        };
        let _ = writeln!(text, "{}: {what}", paint("clean", Paint::Green, colour));
        return text;
    }
    text.push_str(&matrix(conflicts, colour));
    text.push_str(&told(&conflicts.pairs, colour));
    for unseen in &conflicts.unseen {
        let label = paint("unseen", Paint::Red, colour);
        let _ = writeln!(text, "{label}: {}: {}", shown(&unseen.name), shown(&unseen.why));
    }
    text
}

/// `·` clean, a number of files that conflict, `!` other findings.
fn cell(pair: Option<&Pair>) -> String {
    let Some(pair) = pair else { return String::new() };
    let mark = if pair.found.others() > 0 { "!" } else { "" };
    match pair.found.files.len() {
        0 if mark.is_empty() => "·".to_owned(),
        0 => mark.to_owned(),
        count => format!("{count}{mark}"),
    }
}

fn matrix(conflicts: &Conflicts, colour: bool) -> String {
    let names: Vec<&str> = conflicts.trees.iter().map(|tree| tree.name.as_str()).collect();
    let columns: Vec<&str> = names.iter().copied().chain(conflicts.target.as_deref()).collect();
    let pair_of = |one: &str, two: &str| {
        let is = |pair: &&Pair| pair.a == one && pair.b == two || pair.a == two && pair.b == one;
        conflicts.pairs.iter().find(is)
    };
    let numbers: Vec<String> = (1..=names.len()).map(|number| number.to_string()).collect();
    let mut headings = vec!["", "TREE", "SESSION"];
    headings.extend(numbers.iter().map(String::as_str));
    let target = conflicts.target.as_deref().map(shown);
    headings.extend(target.as_deref());
    let row = |(index, tree): (usize, &conflicts::LiveTree)| {
        let dirty = if tree.dirty { " *" } else { "" };
        let mut cells = vec![numbers[index].clone(), format!("{}{dirty}", shown(&tree.name))];
        let sessions: Vec<String> = tree.sessions.iter().map(|name| shown(name)).collect();
        cells.push(sessions.join(", "));
        cells.extend(columns.iter().map(|column| cell(pair_of(&tree.name, column))));
        cells
    };
    let rows: Vec<Vec<String>> = conflicts.trees.iter().enumerate().map(row).collect();
    table(&headings, &rows, colour)
}

/// Every finding of these pairs in sentences.
fn told(pairs: &[Pair], colour: bool) -> String {
    let mut text = String::new();
    for pair in pairs.iter().filter(|pair| !pair.found.is_clean()) {
        let (a, b) = (shown(&pair.a), shown(&pair.b));
        let head = paint(&format!("{a} and {b}"), Paint::Yellow, colour);
        let _ = writeln!(text, "{head}:");
        for file in &pair.found.files {
            let ranges = ranges(&file.ranges, &a, &b);
            let _ = writeln!(text, "  {} conflicts, {}{ranges}", shown(&file.path), file.kind);
        }
        if !pair.found.files.is_empty() {
            text.push_str(
                "    do: agree who changes it, or land one of the two and sync the other\n",
            );
        }
        for finding in pair.found.findings() {
            let _ = writeln!(text, "  {}", shown(&finding.sentence()));
            let _ = writeln!(text, "    do: {}", advice(finding));
        }
    }
    text
}

fn ranges(ranges: &[Span], a: &str, b: &str) -> String {
    if ranges.is_empty() {
        return String::new();
    }
    let lines = |[first, last]: [usize; 2]| match first == last {
        true => format!("line {first}"),
        false => format!("lines {first} to {last}"),
    };
    let one = |span: &Span| format!("{} of {a} with {} of {b}", lines(span.a), lines(span.b));
    let mut all: Vec<String> = ranges.iter().take(RANGES_TOLD_MAX).map(one).collect();
    if let Some(more) = ranges.len().checked_sub(RANGES_TOLD_MAX).filter(|more| *more > 0) {
        all.push(format!("{more} more"));
    }
    format!(": {}", all.join("; "))
}

/// What to do about it; never anything that destroys.
fn advice(finding: &Finding) -> &'static str {
    match finding.kind {
        Kind::Removed => "keep it until the new call is gone, or call what replaces it",
        Kind::Signature => "call it as it will be, or keep a form that takes both",
        Kind::Function | Kind::CssClass => "give one of them another name, or make one of both",
        Kind::Route => "give one of them another path or method",
        Kind::Migration => "baton next-number DIR, and rename the later one",
        Kind::Dependency => "agree on one version before either lands",
        Kind::Duplicate => "keep one of them, and call it from both places",
        Kind::Removes | Kind::Restores => {
            "read what was landed, and take it in again unless it is meant to go"
        }
        Kind::Empties => "leave its body, or let whoever has it in their task decide",
    }
}
