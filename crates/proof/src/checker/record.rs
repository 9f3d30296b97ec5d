//! The journal, replayed with the checker's own eyes: who held what from which entry to which.
//!
//! Finds what the journal alone can show: a broken chain, tokens out of order (S5), two claims of
//! different sessions in conflict (S1).

use std::collections::HashMap;

use baton_core::claim::{Claim, Mode, Scope};
use baton_core::event::{EndOfClaim, Event};
use baton_core::id::{ClaimId, Position};
use baton_core::journal::{Entry, Head, follows};

use super::Violation;

/// One claim over its whole life.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub(super) claim: ClaimId,
    pub(super) session: String,
    agent: Option<String>,
    tree: String,
    scope: Scope,
    mode: Mode,
    resources: Vec<String>,
    pub(super) token: Position,
    pub(super) ended: Option<(Position, EndOfClaim)>,
    /// Some of it was let go before the rest.
    pub(super) narrowed: bool,
}

impl Holding {
    fn of(claim: &Claim) -> Self {
        Self {
            claim: claim.claim.clone(),
            session: claim.hold.holder.session.0.clone(),
            agent: claim.hold.holder.agent.clone(),
            tree: claim.hold.tree.0.clone(),
            scope: claim.hold.scope,
            mode: claim.hold.mode,
            resources: claim.hold.resources.iter().map(ToString::to_string).collect(),
            token: claim.token,
            ended: None,
            narrowed: false,
        }
    }

    /// The predicate of the design, written anew: overlap, not both shared, and in reach.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let rivals = self.session != other.session
            || (self.agent.is_some() && other.agent.is_some() && self.agent != other.agent);
        let shared = self.mode == Mode::Shared && other.mode == Mode::Shared;
        let wide = self.scope == Scope::Workspace || other.scope == Scope::Workspace;
        let overlap = || {
            self.resources.iter().any(|one| other.resources.iter().any(|two| overlaps(one, two)))
        };
        rivals && !shared && (wide || self.tree == other.tree) && overlap()
    }
}

/// Literal paths, folders (`a/`) and names only: all that workers ask for.
fn overlaps(one: &str, two: &str) -> bool {
    let within = |folder: &str, path: &str| folder.ends_with('/') && path.starts_with(folder);
    one == two || within(one, two) || within(two, one)
}

#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) holdings: Vec<Holding>,
    by_token: HashMap<Position, usize>,
    /// Where each operation's answer was kept.
    pub(super) answered: HashMap<String, Vec<Position>>,
    /// Actor and time of each entry, to tell whether two stand in one commit.
    commits: HashMap<Position, (String, u64)>,
    order: Vec<Position>,
}

impl Record {
    pub(super) fn read(journal: &[Entry], violations: &mut Vec<Violation>) -> Self {
        let mut record = Self::default();
        let mut live: HashMap<ClaimId, usize> = HashMap::new();
        let mut head = Head::start();
        for entry in journal {
            let at = entry.position;
            if let Err(broken) = follows(&head, entry) {
                violations.push(Violation::Journal { at, what: broken.to_string() });
            }
            head = entry.head();
            record.order.push(at);
            record.commits.insert(at, (entry.actor.clone(), entry.at.0));
            match entry.event() {
                Ok(event) => record.apply(at, event, &mut live, violations),
                Err(error) => {
                    violations.push(Violation::Journal { at, what: error.to_string() });
                }
            }
        }
        record
    }

    fn apply(
        &mut self,
        at: Position,
        event: Event,
        live: &mut HashMap<ClaimId, usize>,
        violations: &mut Vec<Violation>,
    ) {
        match event {
            Event::ClaimGranted { claim } => self.granted(at, &claim, live, violations),
            Event::ClaimNarrowed { claim, resources, .. } => {
                if let Some(index) = live.get(&claim) {
                    let holding = &mut self.holdings[*index];
                    holding.resources = resources.iter().map(ToString::to_string).collect();
                    holding.narrowed = true;
                }
            }
            Event::ClaimEnded { claim, why, .. } => match live.remove(&claim) {
                Some(index) => self.holdings[index].ended = Some((at, why)),
                None => violations.push(Violation::Twice { what: format!("the end of {claim}") }),
            },
            Event::OperationAnswered { operation } => {
                self.answered.entry(operation.operation).or_default().push(at);
            }
            _ => {}
        }
    }

    fn granted(
        &mut self,
        at: Position,
        claim: &Claim,
        live: &mut HashMap<ClaimId, usize>,
        violations: &mut Vec<Violation>,
    ) {
        let holding = Holding::of(claim);
        let before = self.holdings.last().map(|holding| holding.token);
        if holding.token != at || before.is_some_and(|before| before >= holding.token) {
            violations.push(Violation::TokenOrder { token: holding.token, at });
        }
        for index in live.values() {
            let other = &self.holdings[*index];
            if other.conflicts(&holding) {
                let (one, two) = (other.claim.clone(), holding.claim.clone());
                violations.push(Violation::Conflict { one, two, at });
            }
        }
        if live.insert(holding.claim.clone(), self.holdings.len()).is_some() {
            let what = format!("the grant of {}", holding.claim);
            violations.push(Violation::Twice { what });
        }
        self.by_token.insert(holding.token, self.holdings.len());
        self.holdings.push(holding);
    }

    pub(super) fn by_token(&self, token: Position) -> Option<&Holding> {
        self.by_token.get(&token).map(|index| &self.holdings[*index])
    }

    /// Do all entries from `from` to `to` belong to one commit, as far as can be seen?
    pub(super) fn one_commit(&self, from: Position, to: Position) -> bool {
        let start = self.order.partition_point(|position| *position < from);
        let entries = self.order[start..].iter().take_while(|position| **position <= to);
        let mut kinds = entries.map(|position| self.commits.get(position));
        let first = kinds.next();
        kinds.all(|kind| Some(kind) == first)
    }
}
