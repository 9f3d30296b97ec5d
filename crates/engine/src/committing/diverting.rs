//! Commits of agents that would land on the target unchecked go to a branch of their own (S16).
//!
//! Owns where a commit goes. Where `[queue] guard` keeps somebody off the target, the commit is
//! made upon a branch of its session or task, and stands in line to land. Invariant: the tree stays
//! on the target, and what was committed stays in its index, so that it is not in the way of its
//! own landing.

use baton_core::landing::Guard;
use baton_core::policy::Standing;
use baton_core::trees::{BRANCH_PREFIX, slug};

use super::Job;
use crate::failure::Failure;
use crate::git::Oid;
use crate::{policy, whoami};

/// Where a commit goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) branch: Option<String>,
    /// What it is made upon.
    pub(super) head: Option<Oid>,
    /// Where the branch is now; nothing when it is to be made.
    pub(super) before: Option<Oid>,
    /// Not where HEAD stands.
    pub(super) diverted: bool,
}

impl Job<'_> {
    pub(super) fn spot(
        &mut self,
        branch: Option<String>,
        head: Option<Oid>,
    ) -> Result<Spot, Failure> {
        let before = head.clone();
        let here = Spot { branch, head, before, diverted: false };
        let Some(name) = here.branch.as_deref().and_then(|it| it.strip_prefix("refs/heads/"))
        else {
            return Ok(here);
        };
        // Before the first commit there is nothing to land on.
        if here.head.is_none() || !self.guarded(name)? {
            return Ok(here);
        }
        let own = self.own_branch()?;
        let before = self.git.branch(&own)?;
        // What it holds already and has not landed stays under the new commit.
        let head = match &before {
            Some(tip) if !self.is_landed(tip, here.head.as_ref())? => before.clone(),
            _ => here.head,
        };
        Ok(Spot { branch: Some(format!("refs/heads/{own}")), head, before, diverted: true })
    }

    fn is_landed(&self, tip: &Oid, head: Option<&Oid>) -> Result<bool, Failure> {
        match head {
            Some(head) => Ok(self.git.is_ancestor(tip, head)?),
            None => Ok(false),
        }
    }

    /// Is whoever commits kept off this branch?
    fn guarded(&mut self, branch: &str) -> Result<bool, Failure> {
        let Some(policy) = policy::in_force(self.workspace)? else { return Ok(false) };
        let checked = !policy.evidence.named.is_empty();
        let guard = policy.queue.guard.unwrap_or(match checked {
            true => Guard::Agents,
            false => Guard::Off,
        });
        let kept_off = match guard {
            Guard::Off => false,
            Guard::All => true,
            Guard::Agents => whoami::standing(self.workspace, self.actor) == Standing::Agent,
        };
        if !kept_off {
            return Ok(false);
        }
        let target = self.git.target(policy.evidence.target.as_deref())?;
        Ok(target.is_some_and(|(name, _)| name == branch))
    }

    /// The branch of the session; it is found again by the session's name and id.
    fn own_branch(&mut self) -> Result<String, Failure> {
        let (name, id) = self.workspace.look(self.actor, Default::default(), |view, context| {
            let caller = baton_core::scene::Caller::read(view, context)?;
            Ok((caller.session.name, caller.session.session.0))
        })?;
        let short: String = id.chars().skip(1).take(6).collect();
        Ok(format!("{BRANCH_PREFIX}{}-{short}", slug(&name)))
    }
}
