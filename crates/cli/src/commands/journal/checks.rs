//! `journal verify` and `journal archive`: what they say.
//!
//! Owns the words of every finding and the progress line; a finding is exit 1, never a failure.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_engine::api;
use baton_engine::archive::sealing::{self, Archived, Outcome as Sealing, Sealed};
use baton_engine::journal::verify::{self, Fault, Note, Verified};
use baton_engine::whoami;
use serde::Serialize;

use crate::arguments::Common;
use crate::desk::{self, Desk, Outcome};
use crate::render::{Paint, bytes, counted, paint, shown};

/// Progress is drawn no more often than this.
const DRAWN_EVERY: Duration = Duration::from_millis(100);

/// The verdict and how long it took, as one document.
#[derive(Serialize)]
struct Report<'a> {
    verified: bool,
    #[serde(flatten)]
    found: &'a Verified,
    seconds: f64,
}

pub(super) fn verify(desk: &mut Desk) -> Outcome {
    let start = Instant::now();
    let mut progress = Progress::new("verifying");
    let found = verify::verify(&mut desk.workspace, &mut |done, all| progress.draw(done, all));
    progress.wipe();
    say(desk.json, &found?, start.elapsed())
}

fn say(json: bool, found: &Verified, took: Duration) -> Outcome {
    let seconds = (took.as_secs_f64() * 1_000.0).round() / 1_000.0;
    let report = Report { verified: found.sound(), found, seconds };
    desk::answer(json, &report, |report, colour| verified_words(report, colour));
    Ok(if found.sound() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn verified_words(report: &Report<'_>, colour: bool) -> String {
    let Verified { entries, archived, records, index_entries, .. } = report.found;
    let mut text = String::new();
    let what = format!(
        "{} ({} more archived), {}, {}, in {:.1} s\n",
        counted(*entries, "entry", "entries"),
        counted(*archived, "", ""),
        counted(*records, "record", "records"),
        counted(*index_entries, "index entry", "index entries"),
        report.seconds
    );
    let what = match archived {
        0 => what.replacen(" (0 more archived)", "", 1),
        _ => what,
    };
    let (word, tint) = match report.verified {
        true => ("verified", Paint::Green),
        false => ("does not verify", Paint::Red),
    };
    let _ = write!(text, "{}: {what}", paint(word, tint, colour));
    let _ = writeln!(text, "head {} {}", report.found.head, report.found.head_hash.0);
    for fault in &report.found.faults {
        let _ = writeln!(text, "{}: {}", paint("wrong", Paint::Red, colour), fault_words(fault));
    }
    let more = report.found.fault_count - report.found.faults.len() as u64;
    if more > 0 {
        let _ = writeln!(text, "and {}", counted(more, "more finding", "more findings"));
    }
    for note in &report.found.notes {
        let _ = writeln!(text, "{}: {}", paint("note", Paint::Yellow, colour), note_words(note));
    }
    if !report.verified {
        let next = "keep the store's folder as it is, and ask a person to look at these lines";
        let _ = writeln!(text, "{}: {next}", paint("next", Paint::Cyan, colour));
    }
    text
}

fn fault_words(fault: &Fault) -> String {
    let record = |kind: &str, key: &str| format!("{} {}", shown(kind), shown(key));
    match fault {
        Fault::Chain { why, .. } => shown(why),
        Fault::Entry { position, why } => {
            format!("entry {position} cannot be applied: {}", shown(why))
        }
        Fault::RecordMissing { kind, key } => {
            format!("{} is missing: the journal makes it", record(kind, key))
        }
        Fault::RecordExtra { kind, key } => {
            format!("{} is there, and no entry makes it", record(kind, key))
        }
        Fault::RecordDiffers { kind, key, fields } => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| {
                    let (journal, store) = (shown(&field.journal), shown(&field.store));
                    format!("{} is {store}, the journal says {journal}", shown(&field.field))
                })
                .collect();
            format!("{} differs: {}", record(kind, key), fields.join("; "))
        }
        Fault::IndexMissing { index, value, kind, key } => {
            let record = record(kind, key);
            format!("{record} is not in the index {} under {}", shown(index), shown(value))
        }
        Fault::IndexExtra { index, value, kind, key } => {
            let record = record(kind, key);
            format!("{record} is wrongly in the index {} under {}", shown(index), shown(value))
        }
        Fault::Archive { file, why } => format!("archive {}: {}", shown(file), shown(why)),
        Fault::ArchiveMissing { last } => format!(
            "the archive that ends with {last} is not in this clone's store folder, so the \
             records cannot be rebuilt"
        ),
    }
}

fn note_words(note: &Note) -> String {
    match note {
        Note::OlderArchiveMissing { last } => {
            format!("the archive that ends with {last} is not here; its entries were not checked")
        }
        Note::Unfinished { file } => {
            format!("{} was left by an archiving that was cut short; nothing needs it", shown(file))
        }
        Note::Unused { file } => format!("{} is no part of this journal now", shown(file)),
    }
}

pub(super) fn archive(common: &Common, wanted: &api::Archive) -> Outcome {
    let mut desk = Desk::open_as(common, whoami::actor)?;
    let start = Instant::now();
    let mut progress = Progress::new("archiving");
    let actor = desk.actor.clone();
    let sealed = sealing::seal(&mut desk.workspace, &actor, wanted, &mut |done, all| {
        progress.draw(done, all);
    });
    progress.wipe();
    let sealed = match sealed? {
        Sealing::Done(sealed) => sealed,
        Sealing::Unsound(found) => {
            desk::remark("refused: the journal does not verify, so nothing was archived");
            return say(desk.json, &found, start.elapsed());
        }
    };
    desk.answer(&sealed, sealed_words);
    Ok(ExitCode::SUCCESS)
}

fn sealed_words(sealed: &Sealed, colour: bool) -> String {
    let kept = counted(sealed.kept, "entry", "entries");
    let Some(Archived { file, first, last, entries, bytes: size, .. }) = &sealed.archive else {
        return format!("nothing to archive: the store has {kept}; --keep and --before say more\n");
    };
    format!(
        "{} {}, {first} to {last}, in {} ({}); the store keeps {kept}\n",
        paint("archived", Paint::Green, colour),
        counted(*entries, "entry", "entries"),
        file.display(),
        bytes(*size)
    )
}

/// A line that is drawn over itself, for a person who waits.
struct Progress {
    verb: &'static str,
    wanted: bool,
    drawn: Instant,
    any: bool,
}

impl Progress {
    fn new(verb: &'static str) -> Self {
        let wanted = std::io::stderr().is_terminal();
        Self { verb, wanted, drawn: Instant::now(), any: false }
    }

    fn draw(&mut self, done: u64, all: u64) {
        if !self.wanted || self.drawn.elapsed() < DRAWN_EVERY {
            return;
        }
        self.drawn = Instant::now();
        self.any = true;
        let percent = done.saturating_mul(100) / all.max(1);
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "\r{} {percent} % of {all}\u{1b}[K", self.verb);
        let _ = out.flush();
    }

    fn wipe(&mut self) {
        if self.any {
            let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}
