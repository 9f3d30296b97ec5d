//! The edit door: may this session change these files, and the claim that follows from doing so.
//!
//! Owns the order of looks: the verdict, what the zone allows of the change itself, what others
//! changed since the file was read, and only then the claim. A path that is held already costs one
//! look and writes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::check::{Because, Finding, Verdict};
use baton_core::claims::Granted;
use baton_core::context::Actor;
use baton_core::denials::{self, Deed, Refused, Thing, Why};
use baton_core::id::SessionId;
use baton_core::notices::Notice;
use baton_core::refusal::{Class, Held, Refusal};
use baton_core::resource::Resource;
use baton_core::zones::Rule;

use super::asking::Asked;
use super::reads::{self, Stale};
use crate::checking::{self, Here, NotClaimable, Verdicts};
use crate::claiming;
use crate::conflicts::undo::lines_taken_back;
use crate::denying;
use crate::failure::Failure;
use crate::resources::{meant_path, path_on_disk};
use crate::sighting::in_the_way;
use crate::workspace::Workspace;
use crate::{api, doors};

/// Larger files are not compared with what an edit would make of them.
const COMPARED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// One file an edit would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As the client spells it.
    pub path: String,
    /// It is a pattern: only a shell writes that way.
    pub pattern: bool,
    pub change: Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The file becomes this.
    Whole(String),
    /// In the file, this becomes that.
    Replace { old: String, new: String, all: bool },
    /// The file becomes something else as a whole; what, only running it would tell.
    Over,
    /// Lines come after what is there.
    Append,
    /// It is deleted or moved away.
    Away,
    /// Some other way.
    Unknown,
}

/// What is answered at this door.
#[derive(Clone, Debug)]
pub struct Judged {
    pub verdict: Verdict,
    pub findings: Vec<Finding>,
    pub not_claimable: Vec<NotClaimable>,
    /// Who asked: of what a subagent holds its siblings are told otherwise than others.
    pub me: Option<SessionId>,
    /// Roots of other trees that some of it lies in, where it is judged and held.
    pub elsewhere: Vec<PathBuf>,
    /// What the edit holds from now on, tree by tree.
    pub granted: Vec<Granted>,
    /// Files that others changed since this session read them.
    pub stale: Vec<Stale>,
    /// Those of them that would be overwritten as a whole: the verdict is "no" for them.
    pub overwritten: Vec<Resource>,
    /// Files in which it would take back lines that another changed since this session read them,
    /// and how many.
    pub undone: Vec<(Resource, usize)>,
    /// What a person is asked about, because the client cannot ask.
    pub asked: Vec<Asked>,
    /// Files in append zones in which existing lines would change.
    pub not_appended: Vec<Resource>,
    /// Why it could not be claimed, where nobody is in the way.
    pub refusal: Option<Arc<Refusal>>,
    pub notices: Vec<Notice>,
    /// A sign of life is due, by which the session is told what it must know.
    due: bool,
}

impl Target {
    pub fn file(path: impl Into<String>, change: Change) -> Self {
        Self { path: path.into(), pattern: false, change }
    }

    /// The word that means it and nothing else.
    pub(super) fn word(&self) -> String {
        let kind = if self.pattern { "glob" } else { "path" };
        format!("{kind}:{}", self.path)
    }
}

impl Judged {
    fn of(verdicts: Verdicts, actor: &Actor) -> Self {
        Self {
            verdict: verdicts.verdict,
            findings: verdicts.findings,
            not_claimable: verdicts.not_claimable,
            me: actor.session.clone(),
            elsewhere: verdicts.elsewhere,
            granted: Vec::new(),
            stale: Vec::new(),
            overwritten: Vec::new(),
            undone: Vec::new(),
            asked: Vec::new(),
            not_appended: Vec::new(),
            refusal: None,
            notices: Vec::new(),
            due: verdicts.due,
        }
    }

    /// The verdict is the strictest of what was found.
    pub(super) fn sum_up(&mut self) {
        let found = self.findings.iter().map(|one| one.verdict);
        let all = found.chain(self.not_claimable.iter().map(|one| one.verdict));
        self.verdict = all.max().unwrap_or(Verdict::Allow);
    }

    fn sign_of_life(&mut self, workspace: &mut Workspace, actor: &Actor) -> Result<(), Failure> {
        if self.due {
            self.notices = doors::alive(workspace, actor)?;
        }
        Ok(())
    }

    /// With what was judged in another tree. What no claim can be about was told of here.
    pub(super) fn add(&mut self, there: Self) {
        self.verdict = self.verdict.max(there.verdict);
        self.findings.extend(there.findings);
        self.granted.extend(there.granted);
        self.stale.extend(there.stale);
        self.overwritten.extend(there.overwritten);
        self.undone.extend(there.undone);
        self.asked.extend(there.asked);
        self.not_appended.extend(there.not_appended);
        self.refusal = self.refusal.take().or(there.refusal);
        self.notices.extend(there.notices);
        self.elsewhere.extend(there.elsewhere);
    }

    fn resources(&self) -> Vec<Resource> {
        self.findings.iter().map(|one| one.resource.clone()).collect()
    }

    /// What is refused here, and why.
    pub(super) fn refused(&self, deed: Deed) -> Vec<Refused> {
        if self.verdict < Verdict::Ask {
            return Vec::new();
        }
        let mut refused = denials::of_findings(deed, &self.findings);
        let undone = self.undone.iter().map(|(path, _)| path);
        let stale: Vec<Thing> = self.overwritten.iter().chain(undone).map(thing).collect();
        let rewritten = self.not_appended.iter().map(thing).collect();
        let outside = self.not_claimable.iter().filter(|one| one.verdict == Verdict::Deny);
        let own = outside.map(|one| Thing::new(one.path.trim_start_matches("path:"))).collect();
        for (why, things) in [(Why::Stale, stale), (Why::AppendOnly, rewritten), (Why::GitDir, own)]
        {
            if !things.is_empty() {
                refused.push(Refused::new(deed, why, things));
            }
        }
        let refusal = self.refusal.as_ref();
        refused.extend(refusal.and_then(|one| denials::of_refusal(deed, "", one)));
        refused
    }

    /// What was free a moment ago is held now.
    fn too_late(&mut self, held: Vec<Held>) {
        self.verdict = Verdict::Deny;
        let resource = held.first().map(|first| first.resource.clone());
        let late = self.findings.iter_mut().find(|one| Some(&one.resource) == resource.as_ref());
        if let Some(finding) = late {
            finding.verdict = Verdict::Deny;
            finding.because = Because::Held;
            finding.held = held;
        }
    }

    /// What may not be claimed may not be edited either, whatever the reason: only where there is
    /// no answer is there none here.
    fn refuse(&mut self, failure: Failure) -> Result<(), Failure> {
        match failure {
            Failure::Refused(refusal) if refusal.class() != Class::Unanswered => {
                self.verdict = Verdict::Deny;
                self.refusal = Some(Arc::new(refusal));
                Ok(())
            }
            other => Err(other),
        }
    }

    fn goes_against_others(&self) -> bool {
        !(self.overwritten.is_empty() && self.undone.is_empty() && self.not_appended.is_empty())
    }
}

/// Judges an edit, and takes the claim that it needs where nobody is in the way.
pub fn edit(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
) -> Result<Judged, Failure> {
    let judged = judge(workspace, actor, cwd, targets)?;
    // A question is not refused: a person answers it, at the client or at a gate.
    if judged.verdict == Verdict::Deny {
        denying::note(workspace, actor, judged.refused(Deed::Edit));
    }
    Ok(judged)
}

/// As `edit`; whoever asks writes down what is refused. Each target is judged and claimed in the
/// tree it lies in, and nothing is claimed anywhere unless all of it may be.
pub(super) fn judge(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
) -> Result<Judged, Failure> {
    judge_after(workspace, actor, cwd, targets, |_, _, _| Ok(()))
}

/// As `judge`; of the verdict in each tree `settle` may make something else, before the changes
/// themselves are looked at.
pub(super) fn judge_after(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
    settle: impl Fn(&mut Workspace, &Actor, &mut Judged) -> Result<(), Failure>,
) -> Result<Judged, Failure> {
    let (mut judged, mut unknown) = look(workspace, actor, cwd, targets, &settle)?;
    let mut apart = Vec::new();
    for root in judged.elsewhere.clone() {
        let there = workspace.within(&root, actor, |workspace, actor| {
            let targets = within_tree(workspace, cwd, targets);
            look(workspace, actor, cwd, &targets, &settle)
        });
        match there {
            Ok((there, _)) => {
                judged.verdict = judged.verdict.max(there.verdict);
                apart.push((root, there));
            }
            Err(failure) => unknown = unknown.or(Some(failure)),
        }
    }
    checking::unless_unknown(judged.verdict, unknown)?;
    let may_be = judged.verdict < Verdict::Ask;
    match may_be {
        true => take(workspace, actor, &mut judged)?,
        false => judged.sign_of_life(workspace, actor)?,
    }
    for (root, mut there) in apart {
        // This tree is one of those that are elsewhere from there.
        there.elsewhere.clear();
        if may_be && judged.verdict < Verdict::Ask {
            let claims =
                |workspace: &mut Workspace, actor: &Actor| take(workspace, actor, &mut there);
            workspace.within(&root, actor, claims)?;
        }
        judged.add(there);
    }
    Ok(judged)
}

/// Those that are not another tree as a whole: whether that may go is asked at the shell door.
fn within_tree(workspace: &Workspace, cwd: &Path, targets: &[Target]) -> Vec<Target> {
    let whole = |one: &Resource| matches!(one, Resource::Path(pattern) if pattern.text() == ".");
    let is_tree = |target: &&Target| {
        let here = || meant_path(&workspace.place, cwd, &target.path).here;
        target.change == Change::Away && !target.pattern && here().iter().any(whole)
    };
    targets.iter().filter(|target| !is_tree(target)).cloned().collect()
}

/// The verdict on what lies in this tree, and why not all of it could be judged. Takes nothing.
fn look(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
    settle: impl Fn(&mut Workspace, &Actor, &mut Judged) -> Result<(), Failure>,
) -> Result<(Judged, Option<Failure>), Failure> {
    let words: Vec<String> = targets.iter().map(Target::word).collect();
    let wanted = api::Check { paths: words, token: None };
    let Here { verdicts, unknown } = checking::check_here(workspace, actor, cwd, &wanted)?;
    let mut judged = Judged::of(verdicts, actor);
    settle(workspace, actor, &mut judged)?;
    if judged.verdict < Verdict::Ask {
        look_at_changes(workspace, actor, cwd, targets, &mut judged)?;
        if judged.goes_against_others() {
            judged.verdict = Verdict::Deny;
        }
    }
    Ok((judged, unknown))
}

fn thing(path: &Resource) -> Thing {
    Thing::new(path.to_string())
}

/// Claims what is not held yet; a sign of life when all of it is. In append zones it is held
/// together with others who add to the same file.
fn take(workspace: &mut Workspace, actor: &Actor, judged: &mut Judged) -> Result<(), Failure> {
    reads::warned(workspace, actor, &judged.stale);
    let free = |one: &&Finding| !matches!(one.because, Because::Mine | Because::Unjudged);
    let (append, other): (Vec<&Finding>, Vec<&Finding>) =
        judged.findings.iter().partition(|one| one.zone == Rule::Append);
    let wanted = |findings: &[&Finding]| match findings.iter().any(&free) {
        true => findings.iter().map(|one| one.resource.clone()).collect(),
        false => Vec::new(),
    };
    let (alone, shared) = (wanted(&other), wanted(&append));
    if alone.is_empty() && shared.is_empty() {
        return judged.sign_of_life(workspace, actor);
    }
    match claiming::for_edit(workspace, actor, alone, shared) {
        Ok(granted) => {
            judged.notices = granted.iter().flat_map(|one| one.notices.clone()).collect();
            judged.granted.extend(granted);
            Ok(())
        }
        // Somebody was quicker between the look and the claim.
        Err(failure) => match in_the_way(&failure) {
            held if held.is_empty() => judged.refuse(failure),
            held => {
                judged.too_late(held);
                Ok(())
            }
        },
    }
}

/// What the change itself would do to lines that are not this session's.
fn look_at_changes(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
    judged: &mut Judged,
) -> Result<(), Failure> {
    let literals = targets.iter().filter(|one| !one.pattern);
    judged.stale = reads::changed(workspace, actor, &judged.resources())?;
    let append = judged.findings.iter().any(|one| one.zone == Rule::Append);
    if judged.stale.is_empty() && !append {
        return Ok(());
    }
    for target in literals {
        for resource in meant_path(&workspace.place, cwd, &target.path).here {
            let stale = judged.stale.iter().find(|one| one.path == resource);
            let over = match target.change {
                Change::Whole(_) => stale.is_some(),
                // A shell writes much that nobody reads; what another changed is not that.
                Change::Over => stale.is_some_and(|stale| stale.by.is_some()),
                _ => false,
            };
            if over {
                judged.overwritten.push(resource.clone());
            } else if let Some(stale) = stale {
                let lines = taken_back(workspace, stale, &target.change);
                judged.undone.extend((lines > 0).then(|| (resource.clone(), lines)));
            }
            let finding = judged.findings.iter().find(|one| one.resource == resource);
            let zone = finding.map(|one| one.zone);
            if zone == Some(Rule::Append) && !appends(workspace, &resource, &target.change) {
                judged.not_appended.push(resource);
            }
        }
    }
    Ok(())
}

/// Does the change only add at the end of what is there?
fn appends(workspace: &Workspace, resource: &Resource, change: &Change) -> bool {
    let Some(path) = path_on_disk(&workspace.place.root, resource) else {
        return true;
    };
    // What is made anew changes no line of anybody's.
    let Some(there) = text_at(&path) else { return true };
    match change {
        Change::Append => true,
        change => change.makes(&there).is_some_and(|after| keeps(&there, &after)),
    }
}

/// Does what was there stand before all that came to it?
pub(super) fn keeps(there: &str, after: &str) -> bool {
    after.starts_with(there.trim_end_matches('\n'))
}

/// How many lines it would take back of what another made of the file since it was read. What
/// nobody is known to have changed is nobody's to be kept.
fn taken_back(workspace: &Workspace, stale: &Stale, change: &Change) -> usize {
    let path = path_on_disk(&workspace.place.root, &stale.path);
    let (Some(known), Some(_)) = (&stale.known, &stale.by) else { return 0 };
    let Some(there) = path.as_deref().and_then(text_at) else { return 0 };
    change.makes(&there).map_or(0, |after| lines_taken_back(known, &there, &after))
}

/// A text that can be compared; a file that is not there has none.
fn text_at(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    (metadata.len() <= COMPARED_BYTES_MAX).then(|| std::fs::read_to_string(path).ok())?
}

impl Change {
    /// What comes of a text; nothing where that cannot be told.
    pub(super) fn makes(&self, there: &str) -> Option<String> {
        match self {
            Self::Whole(text) => Some(text.clone()),
            Self::Replace { old, new, all: true } => Some(there.replace(old, new)),
            Self::Replace { old, new, all: false } => Some(there.replacen(old, new, 1)),
            Self::Away => Some(String::new()),
            Self::Over | Self::Append | Self::Unknown => None,
        }
    }
}
