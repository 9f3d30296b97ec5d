//! How many tasks there are: in all, in each state, and in each phase.
//!
//! One record that every event about a task keeps true, so that a new number, the open phase and
//! the counts of `status` cost one read however many tasks there are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{State, Task};
use crate::view::{Index, Kind, Record};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How many were ever made: the last number that was given out.
    pub made: u64,
    pub states: BTreeMap<State, u64>,
    /// How many gates were ever opened: the last number that was given out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gates: u64,
    /// Only phases with unfinished tasks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phases: BTreeMap<u16, InPhase>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InPhase {
    pub unfinished: u64,
    /// Those of them that nothing but the phase holds back.
    pub open: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Tally {
    pub const KEY: &str = "tasks";

    pub fn count(&self, state: State) -> u64 {
        self.states.get(&state).copied().unwrap_or(0)
    }

    /// The phase that is open: the lowest with unfinished tasks. All lower ones are finished.
    pub fn phase(&self) -> Option<u16> {
        self.phases.keys().next().copied()
    }

    /// Does its phase hold this task back?
    pub fn holds_back(&self, phase: Option<u16>) -> bool {
        matches!((phase, self.phase()), (Some(phase), Some(open)) if phase > open)
    }

    /// Tasks that are offered now.
    pub fn ready(&self) -> u64 {
        self.count(State::Open).saturating_sub(self.behind_phases())
    }

    /// Open tasks of later phases.
    pub fn behind_phases(&self) -> u64 {
        self.phases.values().skip(1).map(|phase| phase.open).sum()
    }

    /// A task came, went, or moved from one place to another.
    pub(crate) fn moved(&mut self, before: Option<&Task>, after: Option<&Task>) {
        if let Some(task) = before {
            let state = self.states.entry(task.state()).or_default();
            *state = state.saturating_sub(1);
            self.in_phase(task, |count| *count = count.saturating_sub(1));
        }
        if let Some(task) = after {
            *self.states.entry(task.state()).or_default() += 1;
            self.in_phase(task, |count| *count += 1);
        }
        self.states.retain(|_, count| *count > 0);
        self.phases.retain(|_, phase| phase.unfinished > 0);
    }

    fn in_phase(&mut self, task: &Task, change: impl Fn(&mut u64)) {
        let Some(phase) = task.phase.filter(|_| !task.state().is_finished()) else {
            return;
        };
        let counts = self.phases.entry(phase).or_default();
        change(&mut counts.unfinished);
        if task.state() == State::Open {
            change(&mut counts.open);
        }
    }
}

impl Record for Tally {
    const KIND: Kind = "tally";

    fn key(&self) -> String {
        Self::KEY.to_owned()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}
