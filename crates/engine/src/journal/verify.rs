//! Does the journal hold, and does it lead to exactly the live records? (S14)
//!
//! Owns the proof: the chain of every entry here and in the archives, then the records rebuilt from
//! the newest archive's snapshot (or from nothing) by the same `evolve` that wrote them, compared
//! with records and index entries of the store, all in one look. Changes nothing. What cannot be
//! checked is a finding, never a pass (S11).

use std::path::Path;

use baton_core::event::Event;
use baton_core::evolve::evolve;
use baton_core::id::Position;
use baton_core::journal::{Entry, Hash, Head, follows};
use baton_core::memory::Memory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PAGE;
use crate::archive::{self, Examined};
use crate::failure::Failure;
use crate::store::Snapshot;
use crate::workspace::Workspace;

mod compare;

/// So many findings are named; the rest is counted.
pub const FAULTS_NAMED_MAX: usize = 5;

/// Told how many entries of how many are done.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// What the look found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Entries in the store.
    pub entries: u64,
    /// Entries in archives that were read too.
    pub archived: u64,
    pub records: u64,
    pub index_entries: u64,
    pub head: Position,
    pub head_hash: Hash,
    /// The first few that are wrong.
    pub faults: Vec<Fault>,
    /// How many are wrong in all.
    pub fault_count: u64,
    /// What is worth knowing and not wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

impl Verified {
    pub fn sound(&self) -> bool {
        self.fault_count == 0
    }

    fn fault(&mut self, fault: Fault) {
        self.fault_count += 1;
        if self.faults.len() < FAULTS_NAMED_MAX {
            self.faults.push(fault);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Fault {
    /// The chain does not hold at this entry.
    Chain {
        position: Position,
        why: String,
    },
    /// The entry cannot be understood, so nothing can be rebuilt.
    Entry {
        position: Position,
        why: String,
    },
    /// The journal makes this record, and the store does not have it.
    RecordMissing {
        kind: String,
        key: String,
    },
    /// The store has this record, and no entry makes it.
    RecordExtra {
        kind: String,
        key: String,
    },
    RecordDiffers {
        kind: String,
        key: String,
        fields: Vec<Difference>,
    },
    IndexMissing {
        index: String,
        value: String,
        kind: String,
        key: String,
    },
    IndexExtra {
        index: String,
        value: String,
        kind: String,
        key: String,
    },
    Archive {
        file: String,
        why: String,
    },
    /// The archive that the store's entries follow on is not here: nothing can be rebuilt.
    ArchiveMissing {
        last: Position,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    pub field: String,
    pub journal: String,
    pub store: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Note {
    /// An older archive is not here; its entries were not looked at.
    OlderArchiveMissing { last: Position },
    /// Left by an archiving that was cut short; the store still has everything.
    Unfinished { file: String },
    /// No part of this journal: made before a restore, or by an archiving that was cut short.
    Unused { file: String },
}

/// Where the store's entries begin: the state that they follow on.
#[derive(Debug)]
pub struct Base {
    pub head: Head,
    pub records: Memory,
}

pub fn verify(workspace: &mut Workspace, progress: Progress<'_>) -> Result<Verified, Failure> {
    verify_from(workspace, progress).map(|(verified, _)| verified)
}

/// As `verify`, and also gives the state before the store's first entry when that is known.
pub(crate) fn verify_from(
    workspace: &mut Workspace,
    progress: Progress<'_>,
) -> Result<(Verified, Option<Base>), Failure> {
    let folder = archive::folder_of(&workspace.place.store);
    let found = archive::find(&workspace.place.store)?;
    let snapshot = workspace.store.snapshot()?;
    let state = snapshot.state();
    let mut report = Verified {
        head: state.head.position,
        head_hash: state.head.hash.clone(),
        ..Verified::default()
    };
    let mut newest = None;
    let begin = match snapshot.archived()? {
        None => Head::start(),
        Some(sealed) => {
            newest = archives(&folder, &found, &sealed, &mut report);
            sealed
        }
    };
    notes(&found, &begin, newest.as_ref(), &mut report);
    let known = begin.position.number == 0 || newest.is_some();
    let mut replay = Replay {
        records: known
            .then(|| newest.as_ref().map_or_else(Memory::default, |(_, a)| a.records.clone())),
        snapshot_named: false,
        head: begin.clone(),
    };
    replay.run(&*snapshot, newest.as_ref(), &mut report, progress)?;
    if let Some((file, _)) = newest.as_ref().filter(|_| !replay.snapshot_named) {
        let why = "no entry after it says what state it stands for".to_owned();
        report.fault(Fault::Archive { file: file.clone(), why });
    }
    if let Some(records) = replay.records {
        compare::records(&*snapshot, &records, &mut report)?;
        compare::index(&*snapshot, &records, &mut report)?;
    }
    let records = match newest {
        Some((_, examined)) => Some(examined.records),
        None => known.then(Memory::default),
    };
    Ok((report, records.map(|records| Base { head: begin, records })))
}

/// Walks the archives back from the newest; that one is given back for its records.
fn archives(
    folder: &Path,
    found: &archive::Found,
    sealed: &Head,
    report: &mut Verified,
) -> Option<(String, Examined)> {
    let mut newest = None;
    let mut end = sealed.clone();
    while end.position.number > 0 {
        let file = found.archives.iter().find(|(_, last, _)| *last == end.position);
        let Some((_, _, name)) = file else {
            let last = end.position;
            match newest.is_none() {
                true => report.fault(Fault::ArchiveMissing { last }),
                false => report.notes.push(Note::OlderArchiveMissing { last }),
            }
            break;
        };
        let broken = |why: String| Fault::Archive { file: name.clone(), why };
        let examined = match archive::examine(&folder.join(name)) {
            Ok(examined) if examined.head == end => examined,
            Ok(_) => {
                report.fault(broken("its last entry is not the one that was archived".to_owned()));
                break;
            }
            Err(error) => {
                report.fault(broken(error.to_string()));
                break;
            }
        };
        report.archived += examined.entries;
        end = Head::from(&examined.header.before);
        newest.get_or_insert((name.clone(), examined));
    }
    newest
}

/// Files that are no part of this journal are said, because a person may wonder.
fn notes(
    found: &archive::Found,
    sealed: &Head,
    newest: Option<&(String, Examined)>,
    report: &mut Verified,
) {
    let used = |last: &Position| *last <= sealed.position && newest.is_some();
    for (_, last, file) in &found.archives {
        if !used(last) {
            report.notes.push(Note::Unused { file: file.clone() });
        }
    }
    report.notes.extend(found.parts.iter().map(|file| Note::Unfinished { file: file.clone() }));
}

/// Goes through the store's entries, checking the chain and rebuilding the records.
struct Replay {
    /// `None` once they cannot be known.
    records: Option<Memory>,
    /// The newest archive's state hash was seen in the chain.
    snapshot_named: bool,
    head: Head,
}

impl Replay {
    fn run(
        &mut self,
        snapshot: &dyn Snapshot,
        newest: Option<&(String, Examined)>,
        report: &mut Verified,
        progress: Progress<'_>,
    ) -> Result<(), Failure> {
        let last = snapshot.state().head.position.number;
        let total = last.saturating_sub(self.head.position.number);
        let mut number = self.head.position.number;
        loop {
            let page = snapshot.entries(number, PAGE)?;
            let Some(end) = page.last() else { break };
            number = end.position.number;
            for entry in &page {
                self.entry(entry, newest, report);
            }
            progress(report.entries, total);
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry, newest: Option<&(String, Examined)>, report: &mut Verified) {
        report.entries += 1;
        if let Err(broken) = follows(&self.head, entry) {
            report.fault(Fault::Chain { position: entry.position, why: broken.to_string() });
        }
        self.head = entry.head();
        let event = match entry.event() {
            Ok(event) => event,
            Err(unknown) => {
                self.give_up(entry, unknown.to_string(), report);
                return;
            }
        };
        if let Event::SnapshotTaken { state_hash, archive, .. } = &event
            && let Some((name, examined)) = newest
            && name == archive
        {
            self.snapshot_named = true;
            if *state_hash != examined.state_hash {
                let why = "its records are not those that the journal says".to_owned();
                report.fault(Fault::Archive { file: name.clone(), why });
            }
        }
        if let Some(records) = &mut self.records
            && let Err(unreadable) = evolve(records, &event)
        {
            self.give_up(entry, unreadable.to_string(), report);
        }
    }

    /// What follows from here on cannot be rebuilt; the chain can still be checked.
    fn give_up(&mut self, entry: &Entry, why: String, report: &mut Verified) {
        report.fault(Fault::Entry { position: entry.position, why });
        self.records = None;
    }
}
