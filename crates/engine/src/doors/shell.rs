//! The shell door, before: what a line would write, and verbs that endanger others.
//!
//! Owns whether a danger is one here and now: a verb that sweeps through a whole tree is refused
//! where others work in it, and is nobody's business where one is alone. Files that a line surely
//! writes are judged as edits. What cannot be known from the line is compared afterwards.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use baton_core::check::Verdict;
use baton_core::context::Actor;
use baton_core::denials::{Deed, Refused, Thing, Why};
use baton_core::deploy;
use baton_core::landing::Guard;
use baton_core::notices::Notice;
use baton_core::resource::Resource;
use baton_core::shell::danger::{self, Danger, Verb};
use baton_core::shell::{self, Deeds};

use super::activity::Who;
use super::calls::{self, Begun, UNNAMED};
use super::edit;
use super::held;
use super::staging;
pub use super::sweeping::Saved;
use super::sweeping::{self, Risk};
use super::targets;
pub use super::whereabouts::places;
use super::whereabouts::{self, Whereabouts};
use crate::denying;
use crate::failure::Failure;
use crate::git::Git;
use crate::listing;
use crate::policy;
use crate::resources::meant_path;
use crate::sessions::{self, SeatState};
use crate::workspace::Workspace;
use crate::{api, doors};

/// What gives a session the whole tree.
pub const GIT_TREE: &str = "@git/tree";
/// So many dangers of one line are weighed by what they name; of more, each is taken to be about a
/// whole tree.
const WEIGHED_MAX: usize = 50;

/// Programs that change nothing and wait for something all the same. What only reads is quick, and
/// not worth a write to the store before each.
const WAITS: &[&str] = &[
    "sleep",
    "wait",
    "tail",
    "watch",
    "curl",
    "wget",
    "ping",
    "nc",
    "ssh",
    "gh",
    "glab",
    "inotifywait",
];

/// Why a line may not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    pub danger: Danger,
    /// Others in the tree, who would lose by it.
    pub others: Vec<String>,
    /// Those of them who have uncommitted work there.
    pub unsaved: Vec<String>,
    /// Sessions that ended and may come back to uncommitted work there.
    pub away: Vec<String>,
    /// The root of the tree, where that is not the one the line starts in.
    pub tree: Option<PathBuf>,
    /// Files that a commit would take along and that are not the actor's.
    pub taken: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Judged {
    pub verdict: Verdict,
    pub stopped: Vec<Stopped>,
    /// The target that the line would deploy by hand.
    pub deploys: Option<String>,
    /// A plain commit on the branch where work lands, which is kept for the queue.
    pub on_target: Option<String>,
    /// What it surely writes, as edits.
    pub edits: Option<edit::Judged>,
    /// Work of others that the line would destroy, and that was saved before.
    pub saved: Vec<Saved>,
    /// It surely changes nothing.
    pub harmless: bool,
    /// It may last, whatever it changes: it waits for something, or for somebody else.
    pub lasts: bool,
    pub notices: Vec<Notice>,
}

/// Judges a line before it runs. `call` is the client's id of the tool call; `behind` is whether it
/// goes on when that is over.
pub fn before(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    line: &str,
    call: &str,
    behind: bool,
) -> Result<Judged, Failure> {
    let judged = judge(workspace, actor, cwd, line, call, behind)?;
    denying::note(workspace, actor, judged.refused());
    Ok(judged)
}

impl Judged {
    /// What is refused here, and why. Of the line itself only the verb is kept: there may be
    /// secrets in it.
    fn refused(&self) -> Vec<Refused> {
        let edits = self.edits.as_ref().map(|edits| edits.refused(Deed::Shell));
        let mut refused = edits.unwrap_or_default();
        let verbs: Vec<Thing> =
            self.stopped.iter().map(|one| Thing::new(one.danger.verb.what())).collect();
        if !verbs.is_empty() {
            refused.push(Refused::new(Deed::Shell, Why::Danger, verbs));
        }
        let target = self.deploys.iter().map(Thing::new).collect::<Vec<_>>();
        if !target.is_empty() {
            refused.push(Refused::new(Deed::Shell, Why::ByHand, target));
        }
        refused
    }
}

fn judge(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    line: &str,
    call: &str,
    behind: bool,
) -> Result<Judged, Failure> {
    let mut deeds = shell::read(line);
    let aims = targets::aims(&workspace.place, cwd, &mut deeds);
    let named = !aims.files.is_empty() || !aims.wide.is_empty();
    let behind = behind || deeds.background;
    let (writes, named_call) = (aims.compared || named, call != UNNAMED);
    let begun = Begun {
        call: call.to_owned(),
        cwd: cwd.to_owned(),
        root: workspace.place.root.clone(),
        others: match writes {
            true => other_trees(workspace, actor, cwd, (line, &deeds), aims.compared)?,
            false => Vec::new(),
        },
        writes,
        compared: aims.compared,
        moved: moved(workspace, cwd, &aims),
        line: (behind || named_call && writes).then(|| line.to_owned()),
    };
    // Before anything can go wrong: what was not judged is compared all the same.
    begins(workspace, actor, &begun, behind);
    let mut judged = Judged {
        verdict: Verdict::Allow,
        stopped: Vec::new(),
        deploys: None,
        on_target: None,
        edits: None,
        saved: Vec::new(),
        harmless: !aims.compared,
        lasts: aims.compared || deeds.commands.iter().any(|one| WAITS.contains(&one.name())),
        notices: Vec::new(),
    };
    look_at_dangers(workspace, actor, cwd, &deeds, &mut judged)?;
    if judged.verdict < Verdict::Ask && named {
        let edits = targets::judge(workspace, actor, cwd, &aims)?;
        judged.verdict = judged.verdict.max(edits.verdict);
        judged.edits = Some(edits);
    } else {
        judged.notices = doors::alive(workspace, actor)?;
    }
    match judged.verdict {
        _ if !begun.writes => {}
        // What does not run has no end that somebody would tell.
        Verdict::Ask | Verdict::Deny => workspace.activity(actor).ended(call),
        Verdict::Allow | Verdict::Warn => look(workspace, actor, &begun, behind)?,
    }
    Ok(judged)
}

/// Roots of the other trees that a line is about; where it may write anywhere, also of those that
/// it may get to and where others have something to lose.
fn other_trees(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    (line, deeds): (&str, &Deeds),
    anywhere: bool,
) -> Result<Vec<PathBuf>, Failure> {
    let mut others = whereabouts::other_trees(&workspace.place, cwd, deeds);
    if !anywhere {
        return Ok(others);
    }
    let mut reached = whereabouts::reached(&workspace.place, cwd, line, deeds);
    reached.retain(|root| !others.contains(root));
    if reached.is_empty() {
        return Ok(others);
    }
    let held = held::trees_of_others(workspace, actor)?;
    let known = workspace.place.trees().into_iter().filter(|(id, _)| held.contains(id));
    let known: Vec<PathBuf> = known.filter_map(|(_, root)| root.canonicalize().ok()).collect();
    reached.retain(|root| known.contains(root));
    others.extend(reached);
    Ok(others)
}

/// Folders of this tree that a line moves or takes away.
fn moved(workspace: &Workspace, cwd: &Path, aims: &targets::Aims) -> Vec<Resource> {
    let folders = aims.moved.iter();
    folders.flat_map(|path| meant_path(&workspace.place, cwd, path).here).collect()
}

/// A line is about to run: its call is written down, and that it begins in this tree.
fn begins(workspace: &Workspace, actor: &Actor, begun: &Begun, behind: bool) {
    let Some(me) = Who::acting(actor) else { return };
    calls::begins(&workspace.place, &me, begun);
    if begun.writes {
        workspace.activity(actor).begins(&begun.call, behind);
    }
}

/// It will run: how things stand in each tree it is about, as far as it may write anywhere.
fn look(
    workspace: &mut Workspace,
    actor: &Actor,
    begun: &Begun,
    behind: bool,
) -> Result<(), Failure> {
    if begun.compared {
        held::look(workspace, actor, &begun.call, behind);
    }
    for root in &begun.others {
        workspace.within(root, actor, |workspace, actor| {
            workspace.activity(actor).begins(&begun.call, behind);
            if begun.compared {
                held::look(workspace, actor, &begun.call, behind);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Each danger is one where it takes effect: in the tree it is about, and nowhere outside. However
/// often a line says the same, it is weighed once: a line must not be so long that there is no
/// answer in time.
fn look_at_dangers(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    deeds: &Deeds,
    judged: &mut Judged,
) -> Result<(), Failure> {
    let mut dangers = danger::of(deeds);
    dangers.extend(whereabouts::removals(&workspace.place, cwd, deeds));
    let mut weighed = BTreeSet::new();
    for mut danger in dangers {
        if weighed.len() >= WEIGHED_MAX {
            danger.named.clear();
        }
        let whereabouts = whereabouts::of(&workspace.place, cwd, &danger.folder);
        if !weighed.insert((danger.verb, whereabouts.clone(), danger.named.clone())) {
            continue;
        }
        match whereabouts {
            Whereabouts::Here if sweeping::spares(workspace, actor, cwd, &danger)? => {}
            Whereabouts::Here => weigh(workspace, actor, cwd, (danger, deeds), None, judged)?,
            Whereabouts::Tree(root) => workspace.within(&root, actor, |workspace, actor| {
                if sweeping::spares(workspace, actor, cwd, &danger)? {
                    return Ok(());
                }
                weigh(workspace, actor, cwd, (danger, deeds), Some(&root), judged)
            })?,
            Whereabouts::Outside => {
                let always = [Verb::ActsAsPerson, Verb::ActsAsSession, Verb::KillsBaton];
                if always.contains(&danger.verb) {
                    weigh(workspace, actor, cwd, (danger, deeds), None, judged)?;
                }
            }
        }
    }
    if let Some(policy) = policy::in_force(workspace)? {
        judged.deploys = deploy::guarded_in(&policy, deeds).map(str::to_owned);
    }
    if !judged.stopped.is_empty() || judged.deploys.is_some() {
        judged.verdict = Verdict::Deny;
    }
    Ok(())
}

/// Is it a danger to anybody in this tree? `root` names a tree the line does not start in.
fn weigh(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    (danger, deeds): (Danger, &Deeds),
    root: Option<&Path>,
    judged: &mut Judged,
) -> Result<(), Failure> {
    let mut risk = Risk::default();
    let mut taken = Vec::new();
    let stops = match danger.verb {
        Verb::ForcePush
        | Verb::NoVerify
        | Verb::ConfigHooks
        | Verb::DeletesBaton
        | Verb::ActsAsPerson
        | Verb::ActsAsSession
        | Verb::KillsBaton
        | Verb::TooLong => true,
        Verb::Push => false,
        // Whose files they are is judged when git asks; but git knows no subagents.
        Verb::NamedCommit => {
            judged.on_target = guarded_branch(workspace)?;
            risk.others = sweeping::siblings_with(workspace, actor, cwd, &danger.named)?;
            judged.on_target.is_some() || !risk.is_none()
        }
        Verb::PlainCommit => {
            judged.on_target = guarded_branch(workspace)?;
            risk.others = sweeping::others(workspace, actor)?;
            // Of siblings git knows nothing: theirs is not told by what is staged.
            let told = !risk.is_none() && actor.agent.is_none();
            match told.then(|| staging::taken_along(workspace, actor, cwd, deeds)).transpose()? {
                Some(Some(none)) if none.is_empty() => risk.others.clear(),
                found => taken = found.flatten().unwrap_or_default(),
            }
            judged.on_target.is_some() || !risk.is_none()
        }
        Verb::Stash
        | Verb::ResetHard
        | Verb::Clean
        | Verb::DiscardAll
        | Verb::SwitchTree
        | Verb::AddAll
        | Verb::RemovesTree => {
            risk = sweeping::look(workspace, actor, danger.verb, root.is_some())?;
            match danger.verb {
                // One stack for all working trees: whoever pops next gets it.
                Verb::Stash => !risk.is_none() || others_anywhere(workspace, actor)?,
                Verb::RemovesTree => !risk.is_none(),
                // Whoever has the whole tree may change it under the hands of those who have
                // nothing to lose in it.
                _ if risk.unsaved.is_empty() && risk.away.is_empty() => {
                    !risk.is_none() && !holds_tree(workspace, actor)?
                }
                _ => true,
            }
        }
    };
    let Risk { others, unsaved, away, saved } = risk;
    for one in saved {
        if !judged.saved.contains(&one) {
            judged.saved.push(one);
        }
    }
    if stops {
        let tree = root.map(Path::to_path_buf);
        judged.stopped.push(Stopped { danger, others, unsaved, away, tree, taken });
    }
    Ok(())
}

fn others_anywhere(workspace: &mut Workspace, actor: &Actor) -> Result<bool, Failure> {
    let seats = sessions::list(workspace, false)?.sessions;
    Ok(seats
        .iter()
        .any(|seat| seat.state == SeatState::Live && Some(&seat.session) != actor.session.as_ref()))
}

fn holds_tree(workspace: &mut Workspace, actor: &Actor) -> Result<bool, Failure> {
    let root = workspace.place.root.clone();
    let wanted = api::Claims { mine: true, path: None };
    let mine = listing::claims(workspace, actor, &root, &wanted)?;
    let tree = |claim: &listing::ListedClaim| {
        let named = || claim.resources.iter().any(|resource| resource.to_string() == GIT_TREE);
        claim.tree == workspace.tree.0 && named()
    };
    Ok(mine.claims.iter().any(tree))
}

/// The branch of this tree, if it is the one where work lands and agents are kept off it.
fn guarded_branch(workspace: &mut Workspace) -> Result<Option<String>, Failure> {
    let Some(policy) = policy::in_force(workspace)? else {
        return Ok(None);
    };
    let checked = !policy.evidence.named.is_empty();
    let off = policy.queue.guard.map_or(!checked, |guard| guard == Guard::Off);
    if off || workspace.place.git.is_none() {
        return Ok(None);
    }
    let git = Git::in_tree(&workspace.place.root)?;
    let target = git.target(policy.evidence.target.as_deref())?.map(|(name, _)| name);
    let head = git.head_branch()?;
    let here = head.as_deref().and_then(|name| name.strip_prefix("refs/heads/"));
    Ok(target.filter(|target| here == Some(target.as_str())))
}
