//! The shell door, after: what a command left in the tree, and whose it is.
//!
//! Owns the comparison. Of what others hold, how it stood before the command tells whether it has
//! changed (`held`); of everything else the clock does: a file that differs from HEAD and was
//! written since. What another's recorded edit or a command of another that ran meanwhile explains
//! is not this agent's; what an unknown writer may have done is laid at nobody's door (`changes`).
//! Of what a person holds, who may have written it too, nobody is accused. Ignored files are
//! nobody's, unless somebody holds them. A line is read from where it began (`calls`), in each tree
//! that it was about.

use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_core::breach::{self, Door};
use baton_core::check::{Because, Verdict};
use baton_core::context::{Actor, Observed};
use baton_core::denials::{self, Refused, Thing, Why};
use baton_core::refusal::Held;
use baton_core::resource::Resource;
use baton_core::shell::{self, Deeds, Place};

use super::activity::{self, Activity, Busy, Deed, Who};
use super::calls::{self, Begun};
use super::changes::{Changed, Sorted, Unseen, Window};
use super::committed;
use super::edit::{self, Change, Target, edit};
use super::held::{self, Before, Looks};
use super::reach::{Reach, Says};
use super::{middle, overwriting, reads, whereabouts};
use crate::checking;
use crate::denying;
use crate::failure::Failure;
use crate::interfaces;
use crate::resources::{Meant, meant_path};
use crate::sessions::SeatState;
use crate::sighting;
use crate::workspace::Workspace;

/// More changed files than this are a checkout or a build, and are not claimed one by one.
const CLAIMED_MAX: usize = 200;
/// Files of which one line is taken for read.
const SHOWN_MAX: usize = 50;
/// How long after its file an edit is told of.
const EDIT_IS_TOLD: Duration = Duration::from_millis(300);
/// A command that has run.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a> {
    pub line: &'a str,
    /// The client's id of the tool call.
    pub call: &'a str,
    pub failed: bool,
    /// It goes on, though its tool call is over.
    pub behind: bool,
}

/// What is said of a command that has run.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// What others held, and this command changed all the same.
    pub breached: Vec<Breached>,
    /// Uncommitted work of those who hold it no longer, which is gone now.
    pub lost: Vec<Lost>,
    /// Files in which it took back lines that another changed since this session read them, and how
    /// many.
    pub undone: Vec<(Resource, usize)>,
    /// What the command changed and nobody held: claimed now.
    pub taken: Option<edit::Judged>,
    /// Those of it that it was given.
    pub claimed: Vec<Resource>,
    /// Free files that changed meanwhile, and that nothing in the command names while others are at
    /// work in the tree: nobody's.
    pub unclaimed: Vec<Resource>,
    /// What it changed and no edit would have been allowed to: why not.
    pub kept: Option<edit::Judged>,
    /// Changed files that this session did not touch, and whose edits they are: a build may have
    /// failed for them.
    pub in_the_middle: Vec<(String, String)>,
    /// It is of an edit, and of no command.
    pub by_edit: bool,
}

#[derive(Clone, Debug)]
pub struct Breached {
    pub held: Held,
    /// Its holder may have written it as well.
    pub unsure: bool,
    /// Where a copy of what was there before is kept.
    pub copy: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Lost {
    pub path: String,
    /// Whose work it was.
    pub name: String,
    /// Where it is saved.
    pub saved: Option<String>,
}

impl Compared {
    /// With what was found in another tree.
    fn add(&mut self, there: Self) {
        self.breached.extend(there.breached);
        self.lost.extend(there.lost);
        self.claimed.extend(there.claimed);
        self.unclaimed.extend(there.unclaimed);
        for (mine, theirs) in [(&mut self.taken, there.taken), (&mut self.kept, there.kept)] {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => mine.add(theirs),
                (mine, Some(theirs)) => *mine = Some(theirs),
                (_, None) => {}
            }
        }
        self.in_the_middle.extend(there.in_the_middle);
    }
}

/// Compares the trees that a command was about, after it, and after what runs in the background.
/// `cwd` is where its agent stands now; the line is read from where it began.
pub fn after(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    ran: Ran<'_>,
) -> Result<Compared, Failure> {
    let me = Who::acting(actor);
    let begun = me.and_then(|me| calls::find(&workspace.place, &me, ran.call));
    match &begun {
        Some(at) if at.root == workspace.place.root => {
            after_line(workspace, actor, &at.cwd, ran, begun.as_ref())
        }
        Some(at) if at.root.is_dir() => workspace.within(&at.root, actor, |workspace, actor| {
            after_line(workspace, actor, &at.cwd, ran, begun.as_ref())
        }),
        _ => after_line(workspace, actor, cwd, ran, begun.as_ref()),
    }
}

/// From the tree and the folder in which the line began.
fn after_line(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    ran: Ran<'_>,
    begun: Option<&Begun>,
) -> Result<Compared, Failure> {
    let mut deeds = shell::read(ran.line);
    let quiet = deeds.harmless && deeds.writes.is_empty();
    let written = super::targets::aims(&workspace.place, cwd, &mut deeds).files;
    read(workspace, actor, cwd, &shown(&deeds))?;
    let undone = edited(workspace, actor, cwd, &written)?;
    note_undone(workspace, actor, &undone);
    let others = match begun {
        Some(begun) => begun.others.iter().filter(|root| root.is_dir()).cloned().collect(),
        None => whereabouts::other_trees(&workspace.place, cwd, &deeds),
    };
    let quiet = begun.map_or(quiet, |begun| !begun.writes);
    let compared = begun.is_none_or(|begun| begun.compared);
    let about = About { deeds: &deeds, quiet, compared, unended: false, cwd, ran };
    let Some(looks) = Looks::here(workspace, actor) else { return Ok(Compared::default()) };
    let mut behind = looks.behind_elsewhere();
    let mut compared = Compared { undone, ..after_here(workspace, actor, &about, &looks)? };
    for root in others {
        behind.remove(&root);
        compared.add(workspace.within(&root, actor, |workspace, actor| {
            let Some(looks) = Looks::here(workspace, actor) else { return Ok(Compared::default()) };
            after_here(workspace, actor, &about, &looks)
        })?);
    }
    for root in behind {
        compared.add(workspace.within(&root, actor, meanwhile_here)?);
    }
    Ok(compared)
}

/// A command that has run.
#[derive(Clone, Copy)]
struct About<'a> {
    deeds: &'a Deeds,
    /// It surely wrote nothing.
    quiet: bool,
    /// It may have written anywhere.
    compared: bool,
    /// Nobody told its end.
    unended: bool,
    /// Where it began.
    cwd: &'a Path,
    ran: Ran<'a>,
}

/// In one of the trees that it was about.
fn after_here(
    workspace: &mut Workspace,
    actor: &Actor,
    about: &About<'_>,
    looks: &Looks,
) -> Result<Compared, Failure> {
    let About { deeds, quiet, compared: everywhere, unended, cwd, ran } = *about;
    let mut compared = Compared::default();
    let Some(me) = Who::acting(actor) else { return Ok(compared) };
    if quiet && !looks.any_behind() {
        return Ok(compared);
    }
    let activity = workspace.activity(actor);
    let lines = activity.lines();
    let behind = !quiet && (ran.behind || deeds.background);
    match behind {
        true => activity.begins(ran.call, true),
        false if quiet => {}
        false => activity.ended(ran.call),
    }
    if workspace.place.git.is_none() {
        return Ok(compared);
    }
    if ran.failed && !deeds.harmless {
        compared.in_the_middle = middle::edits_of_others(workspace, &me, &lines, deeds)?;
    }
    // Where the look went wrong, there is the clock.
    let since = || activity::window(&lines, &me, ran.call).filter(|_| everywhere);
    let before = looks.before(everywhere.then_some(ran.call));
    if let Some(before) = before.or_else(|| since().map(Before::unseen)) {
        let reach = reach(workspace, &me, Some((ran, cwd)), &before);
        let moved = calls::find(&workspace.place, &me, ran.call)
            .filter(|begun| begun.root == workspace.place.root && !begun.moved.is_empty());
        let moved = moved.map(|begun| begun.moved).unwrap_or_default();
        let mut window = Window { me, lines, before, reach, moved, unended };
        compare(workspace, actor, &mut window, &mut compared)?;
        look_at_commits(workspace, actor, &window, &mut compared)?;
    }
    looks.look_again(workspace, actor, behind.then_some(ran.call));
    Ok(compared)
}

/// What the commands name that ran: this one, and those in the background.
fn reach(workspace: &Workspace, me: &Who, ran: Option<(Ran<'_>, &Path)>, before: &Before) -> Reach {
    let mut reach = ran.map_or_else(Reach::default, |(ran, cwd)| Reach::of(ran.line, cwd));
    for call in &before.behind {
        let begun = calls::find_behind(&workspace.place, me, call);
        reach.add(begun.and_then(|begun| Some((begun.line?, begun.cwd))));
    }
    reach
}

/// The turn is over, and calls whose end nobody told are not: what they run is looked after as
/// what is in the background. For clients that tell an end only when it comes.
pub fn outlasts(workspace: &Workspace, actor: &Actor) {
    let activity = workspace.activity(actor);
    let open = activity.unended();
    open.iter().for_each(|call| activity.begins(call, true));
    held::go_on(workspace, actor, &open);
}

/// Compares calls of the agent's own in this tree whose end nobody told: whoever interrupts a
/// command, or its client, ends it without a word. None of them runs any more, and one that its
/// user did not allow never ran: nobody is accused of what changed meanwhile.
pub fn interrupted(workspace: &mut Workspace, actor: &Actor) -> Result<Compared, Failure> {
    let mut compared = Compared::default();
    let Some(me) = Who::acting(actor) else { return Ok(compared) };
    for call in workspace.activity(actor).unended() {
        let begun = calls::find(&workspace.place, &me, &call);
        let line = begun.as_ref().and_then(|begun| begun.line.clone());
        let (Some(begun), Some(line)) = (begun, line) else { continue };
        let looks = Looks::here(workspace, actor).filter(|_| begun.compared);
        let Some(looks) = looks else { continue };
        let deeds = shell::read(&line);
        let ran = Ran { line: &line, call: &call, failed: false, behind: false };
        // What runs in the background goes on, and is looked after.
        let (cwd, unended) = (begun.cwd.as_path(), true);
        let about = About { deeds: &deeds, quiet: false, compared: true, unended, cwd, ran };
        compared.add(after_here(workspace, actor, &about, &looks)?);
    }
    Ok(compared)
}

/// Compares what runs in the background, if anything does, in whatever tree.
pub fn meanwhile(workspace: &mut Workspace, actor: &Actor) -> Result<Compared, Failure> {
    let elsewhere = Looks::here(workspace, actor).map(|looks| looks.behind_elsewhere());
    let mut compared = meanwhile_here(workspace, actor)?;
    for root in elsewhere.unwrap_or_default() {
        compared.add(workspace.within(&root, actor, meanwhile_here)?);
    }
    Ok(compared)
}

fn meanwhile_here(workspace: &mut Workspace, actor: &Actor) -> Result<Compared, Failure> {
    let mut compared = Compared::default();
    let looks = Looks::here(workspace, actor).filter(|_| workspace.place.git.is_some());
    let (Some(me), Some(looks)) = (Who::acting(actor), looks) else { return Ok(compared) };
    if let Some(before) = looks.before(None) {
        let lines = workspace.activity(actor).lines();
        let reach = reach(workspace, &me, None, &before);
        let (moved, unended) = (Vec::new(), false);
        let mut window = Window { me, lines, before, reach, moved, unended };
        compare(workspace, actor, &mut window, &mut compared)?;
        looks.look_again(workspace, actor, None);
    }
    Ok(compared)
}

/// Files that a line showed to its agent: some agents read with nothing but a shell.
fn shown(deeds: &Deeds) -> Vec<String> {
    let named = deeds.reads.iter().filter_map(|place| match place {
        Place::Path(path) => Some(path.clone()),
        _ => None,
    });
    named.take(SHOWN_MAX).collect()
}

/// The turn of an agent is over, or begins anew: no command of its own runs, whatever was told of
/// its end.
pub fn rests(workspace: &mut Workspace, actor: &Actor) {
    everywhere(workspace, actor, Activity::rested);
}

/// The session is over, with all that it ran.
pub fn leaves(workspace: &mut Workspace, actor: &Actor) {
    everywhere(workspace, actor, Activity::left);
}

/// In the tree that the agent stands in, and in those where lines of its own run.
fn everywhere(workspace: &mut Workspace, actor: &Actor, tell: impl Fn(&Activity)) {
    tell(&workspace.activity(actor));
    let Some(me) = Who::acting(actor) else { return };
    let recent = calls::recent(&workspace.place, &me).into_iter();
    let mut roots: Vec<PathBuf> =
        recent.flat_map(|begun| begun.others.into_iter().chain([begun.root])).collect();
    roots.sort_unstable();
    roots.dedup();
    roots.retain(|root| *root != workspace.place.root && root.is_dir());
    for root in roots {
        // A tree that is gone has no commands left.
        let _ = workspace.within(&root, actor, |workspace, actor| {
            let activity = workspace.activity(actor);
            if activity.has_open_command() {
                tell(&activity);
            }
            Ok(())
        });
    }
}

/// What changed in a window, and whose it is.
fn compare(
    workspace: &mut Workspace,
    actor: &Actor,
    window: &mut Window,
    compared: &mut Compared,
) -> Result<(), Failure> {
    let changed = window.changed(workspace)?;
    if changed.is_empty() {
        return Ok(());
    }
    forget_the_dead(workspace, window)?;
    let root = workspace.place.root.clone();
    let mut unexplained = window.unexplained(&root, &changed);
    let resources = |changed: &[&Changed]| -> Vec<Resource> {
        changed.iter().map(|one| one.resource.clone()).collect()
    };
    if unexplained.is_empty() {
        return Ok(());
    }
    let findings = checking::judge_done(workspace, actor, &resources(&unexplained))?.findings;
    // Nobody is accused before the word of whoever wrote has had its time to come.
    if findings.iter().any(|one| one.because == Because::Held)
        || unexplained.iter().any(|one| window.edited_by_others(&one.path).is_some())
    {
        std::thread::sleep(EDIT_IS_TOLD);
        window.lines = workspace.activity(actor).lines();
        forget_the_dead(workspace, window)?;
        unexplained = window.unexplained(&root, &changed);
    }
    let unseen = Unseen::look(workspace, actor)?;
    let sorted = window.sort(&workspace.place, &unexplained, findings, &unseen)?;
    // Where others ran too, whose it is will be seen when it is committed.
    if !sorted.others_ran {
        interfaces::look(workspace, actor, &resources(&unexplained))?;
    }
    settle(workspace, actor, sorted, &window.before, compared)
}

/// What follows for everybody.
fn settle(
    workspace: &mut Workspace,
    actor: &Actor,
    sorted: Sorted,
    before: &Before,
    compared: &mut Compared,
) -> Result<(), Failure> {
    let root = workspace.place.root.clone();
    let activity = workspace.activity(actor);
    let foreign = overwriting::note(workspace, actor, &sorted.foreign, before)?;
    for others in [&sorted.holders, &sorted.unsure] {
        overwriting::note_unsure(workspace, actor, others, before)?;
    }
    compared.unclaimed = sorted.unclaimed;
    let unsure: Vec<Resource> = sorted.unsure.into_iter().chain(sorted.persons).collect();
    let unsure_held = note(workspace, actor, &unsure, true)?;
    for (held, unsure) in [(foreign, false), (unsure_held, true)] {
        compared.breached.extend(held.into_iter().map(|held| {
            let state = before.files.get(&held.resource.to_string());
            let copy = state.and_then(|state| state.copy(&workspace.place));
            Breached { held, unsure, copy: copy.map(|path| path.display().to_string()) }
        }));
    }
    reads::told(workspace, actor, &sorted.foreign);
    for path in sorted.lost {
        let Some(state) = before.files.get(&path) else { continue };
        let Some(left) = state.left.clone() else { continue };
        let copy = || state.copy(&workspace.place).map(|path| path.display().to_string());
        compared.lost.push(Lost { path, name: left.name, saved: left.rescue.or_else(copy) });
    }
    // What its own formatter made of a file is what the agent knows of it.
    let target = |resource: &Resource| Target::file(resource.to_string(), Change::Unknown);
    let own: Vec<Target> = sorted.mine.iter().map(target).collect();
    own.iter().for_each(|one| activity.edited(&one.path));
    if !sorted.others_ran {
        reads::wrote(workspace, actor, &root, &own);
    }
    if !sorted.kept.is_empty() {
        let targets: Vec<Target> = sorted.kept.iter().map(target).collect();
        let judged = edit::judge(workspace, actor, &root, &targets)?;
        let refused = judged.refused(denials::Deed::Shell).into_iter();
        let done = refused.map(|one| Refused { done: true, ..one }).collect();
        denying::note(workspace, actor, done);
        compared.kept = Some(judged);
    }
    let appended = |one: &Resource| Target::file(one.to_string(), Change::Append);
    let targets: Vec<Target> =
        sorted.free.iter().map(target).chain(sorted.appended.iter().map(appended)).collect();
    if !targets.is_empty() && targets.len() <= CLAIMED_MAX {
        let taken = edit(workspace, actor, &root, &targets)?;
        if taken.verdict < Verdict::Ask {
            compared.claimed = sorted.free.into_iter().chain(sorted.appended).collect();
        }
        compared.taken = Some(taken);
        targets.iter().for_each(|one| activity.edited(&one.path));
        reads::wrote(workspace, actor, &root, &targets);
    }
    Ok(())
}

/// Writes down that lines of others were taken back.
fn note_undone(workspace: &mut Workspace, actor: &Actor, undone: &[(Resource, usize)]) {
    if undone.is_empty() {
        return;
    }
    let things = undone.iter().map(|(path, _)| Thing::new(path.to_string())).collect();
    let refused = Refused::new(denials::Deed::Shell, Why::Stale, things);
    denying::note(workspace, actor, vec![Refused { done: true, ..refused }]);
}

/// What it committed around git's own door.
fn look_at_commits(
    workspace: &mut Workspace,
    actor: &Actor,
    window: &Window,
    compared: &mut Compared,
) -> Result<(), Failure> {
    let committed = committed::since(workspace, &window.me.session, window.before.own_head)?;
    if committed.is_empty() {
        return Ok(());
    }
    sighting::settle_own(workspace, &window.me.session, &committed)?;
    let found = checking::judge(workspace, actor, &committed, None)?.findings;
    let known = |path: &Resource| compared.breached.iter().any(|one| one.held.resource == *path);
    let foreign: Vec<Resource> = found
        .into_iter()
        .filter(|one| one.because == Because::Held && !known(&one.resource))
        .filter(|one| window.holder_busy(one) != Busy::Yes)
        .map(|one| one.resource)
        .collect();
    if foreign.is_empty() {
        return Ok(());
    }
    let unsure = match window.reach.commits(&workspace.place.root) {
        _ if window.unended => true,
        Says::Named => false,
        Says::Unread => !window.is_alone(&Unseen::look(workspace, actor)?),
        Says::Nothing => true,
    };
    let held = note(workspace, actor, &foreign, unsure)?;
    let breached = held.into_iter().map(|held| Breached { held, unsure, copy: None });
    compared.breached.extend(breached);
    Ok(())
}

/// Commands of those who are visibly gone: nobody will tell their end.
fn forget_the_dead(workspace: &mut Workspace, window: &mut Window) -> Result<(), Failure> {
    for session in activity::with_open_ends(&window.lines, &window.me) {
        let state = crate::sessions::state_of(workspace, &session)?;
        if !matches!(state, Some(SeatState::Live | SeatState::Idle)) {
            window.lines.retain(|line| {
                line.who.session != session
                    || !matches!(line.deed, Deed::Began(_) | Deed::BeganBehind(_))
            });
        }
    }
    Ok(())
}

/// Writes down what others held.
fn note(
    workspace: &mut Workspace,
    actor: &Actor,
    foreign: &[Resource],
    unsure: bool,
) -> Result<Vec<Held>, Failure> {
    if foreign.is_empty() {
        return Ok(Vec::new());
    }
    let observed = Observed { complete: true, ..Observed::default() };
    workspace.decide(actor, observed, |view, context| {
        breach::note(view, foreign, unsure, Door::Shell, context)
    })
}

/// The session has edited these: others can tell whose the change is, and who builds on them is
/// told. Answers with what it took back of others' lines.
pub fn edited(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
) -> Result<Vec<(Resource, usize)>, Failure> {
    let mut undone = Vec::new();
    for root in edited_here(workspace, actor, cwd, targets, &mut undone)? {
        workspace.within(&root, actor, |workspace, actor| {
            edited_here(workspace, actor, cwd, targets, &mut undone).map(drop)
        })?;
    }
    Ok(undone)
}

/// What of it lies in this tree; answers with other trees that it lies in.
fn edited_here(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
    undone: &mut Vec<(Resource, usize)>,
) -> Result<Vec<PathBuf>, Failure> {
    undone.extend(reads::wrote(workspace, actor, cwd, targets));
    let activity = workspace.activity(actor);
    let mut all = Meant::default();
    for target in targets {
        let meant = meant_path(&workspace.place, cwd, &target.path);
        meant.here.iter().for_each(|resource| activity.edited(&resource.to_string()));
        all.add(meant);
    }
    let paths: Vec<String> = targets.iter().map(|one| one.path.clone()).collect();
    interfaces::edited(workspace, actor, cwd, &paths)?;
    Ok(all.elsewhere)
}

/// The session has read these.
pub fn read(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    paths: &[String],
) -> Result<(), Failure> {
    for root in reads::remember(workspace, actor, cwd, paths) {
        workspace.within(&root, actor, |workspace, actor| {
            reads::remember(workspace, actor, cwd, paths);
            Ok(())
        })?;
    }
    Ok(())
}
