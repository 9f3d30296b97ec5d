//! Writing down what was refused, after whoever asked was told.
//!
//! Owns the one way there for every door and deed. Invariants: the answer is settled before and is
//! handed on as it is, whatever becomes of the writing; who is granted something pays nothing for
//! it. What is worth a line, and how often, is decided in `baton_core::denials`.

use std::time::Duration;

use baton_core::context::{Actor, Observed};
use baton_core::denials::{self, Deed, Denial, Refused, Why};

use crate::failure::Failure;
use crate::workspace::Workspace;

/// A line in the journal is not worth a longer wait for the store.
const PATIENCE: Duration = Duration::from_millis(300);
/// So many things are named in a sentence.
const NAMED_MAX: usize = 3;

/// What is to be written down, and of whom.
#[derive(Debug)]
pub(crate) struct Pending {
    actor: Actor,
    refused: Vec<Refused>,
}

/// Hands on what came of a deed, and writes down when it was refused. `subject` is the target or
/// task it was about.
pub(crate) fn noted<T>(
    workspace: &mut Workspace,
    actor: &Actor,
    (deed, subject): (Deed, &str),
    came: Result<T, Failure>,
) -> Result<T, Failure> {
    if let Err(Failure::Refused(refusal)) = &came {
        let refused = denials::of_refusal(deed, subject, refusal);
        note(workspace, actor, refused.into_iter().collect());
    }
    came
}

/// Writes these down, or keeps them for who answers first.
pub(crate) fn note(workspace: &mut Workspace, actor: &Actor, refused: Vec<Refused>) {
    if refused.is_empty() || actor.session.is_none() || actor.person {
        return;
    }
    let pending = Pending { actor: actor.clone(), refused };
    match &mut workspace.denied {
        Some(kept) => kept.push(pending),
        None => write(workspace, &pending),
    }
}

/// From now on what is refused is written down when [`write_down`] is called: a hook has little
/// time, and its answer must not wait for this.
pub fn answer_first(workspace: &mut Workspace) {
    workspace.denied.get_or_insert_default();
}

/// Everybody was answered: what was refused is written down.
pub fn write_down(workspace: &mut Workspace) {
    for pending in workspace.denied.take().unwrap_or_default() {
        write(workspace, &pending);
    }
}

/// What goes wrong here is nobody's concern: the refusal stands, and only its line is missing.
fn write(workspace: &mut Workspace, Pending { actor, refused }: &Pending) {
    let patience = std::mem::replace(&mut workspace.patience, PATIENCE);
    let _ = workspace
        .decide(actor, Observed::default(), |view, context| denials::note(view, refused, context));
    workspace.patience = patience;
}

/// In words, after a name: "was refused an edit of src/a.rs, which ann held".
pub fn in_words(denial: &Denial) -> String {
    let mut names: Vec<&str> =
        denial.things.iter().take(NAMED_MAX).map(|thing| thing.what.as_str()).collect();
    let more = denial.things.len() - names.len() + denial.more as usize;
    let rest = format!("{more} more");
    if more > 0 {
        names.push(&rest);
    }
    let what = names.join(", ");
    if denial.done {
        return format!("wrote {what} by its shell{}", reason(denial));
    }
    let deed = match (denial.deed, denial.why) {
        (Deed::Edit, _) => with("an edit", "of", &what),
        (Deed::Shell, Why::Danger) => with("a shell command", "with", &what),
        (Deed::Shell, Why::ByHand) => with("a deploy by hand", "to", &what),
        (Deed::Shell, _) => with("a shell command", "that writes", &what),
        (Deed::Claim, _) => with("a claim", "on", &what),
        (Deed::Commit, _) => with("a commit", "of", &what),
        (Deed::Land, _) => with("a landing", "of", &what),
        (Deed::Deploy, _) => with("a deploy", "to", &what),
        (Deed::Done, _) => with("\"done\"", "for", &what),
    };
    format!("was refused {deed}{}", reason(denial))
}

fn with(deed: &str, joined: &str, what: &str) -> String {
    if what.is_empty() { deed.to_owned() } else { format!("{deed} {joined} {what}") }
}

fn reason(denial: &Denial) -> String {
    let holder = denial.things.iter().find_map(|thing| thing.holder.as_ref());
    let role = denial.role.as_deref().unwrap_or_default();
    match (denial.why, holder) {
        (Why::Held, Some(holder)) => format!(", which {} held", holder.name),
        (Why::Held, None) => ", which another held".to_owned(),
        (Why::Stale, _) => ", which another changed since it was read".to_owned(),
        (Why::ClaimFirst, _) => ", where a claim comes first".to_owned(),
        (Why::NeedsPerson, _) => ", which is for a person to approve".to_owned(),
        (Why::AppendOnly, _) => ", where lines are only added at the end".to_owned(),
        (Why::GitDir, _) => ", which belongs to git or to Baton".to_owned(),
        (Why::Role, _) => format!(": the role {role} does not do that"),
        (Why::Danger, _) => ", which endangers others or is a person's to do".to_owned(),
        (Why::ByHand, _) => ", around baton deploy".to_owned(),
        (Why::Behind, _) => ": the commit lacks what has landed".to_owned(),
        (Why::Older, _) => ": the commit is older than what is live".to_owned(),
        (Why::Unfinished, _) => ": there are placeholders in it".to_owned(),
        (Why::Unproven, _) => ": what it must show is missing".to_owned(),
    }
}
