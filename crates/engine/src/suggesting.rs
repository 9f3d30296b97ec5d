//! Suggestions in an open workspace: making, listing and answering them.
//!
//! Owns applying: git looks first whether the patch fits, then applies it in the tree of whoever
//! answers, and only then is that kept. A death in between is harmless: a patch that is in the tree
//! already is only kept.

use std::path::Path;

use baton_core::context::{Actor, Observed};
use baton_core::id::SessionId;
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::suggestions::{self, Refused, Request, Suggestion, Told, Verdict};
use baton_core::view::{Query, get, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::suggestions as api;
use crate::failure::Failure;
use crate::git::Git;
use crate::resources::literal;
use crate::workspace::{Retry, Workspace};

const READ_MAX: u32 = 10_000;

pub fn suggest(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Suggest,
    operation: Option<&str>,
) -> Result<Told, Failure> {
    let mut named = literal(&workspace.place, cwd, wanted.path.as_ref())?;
    // A link is two paths: the patch is about the file itself, which comes last.
    let path: Resource = named.pop().ok_or(Refusal::Empty)?;
    let request = Request { path, patch: wanted.patch_text.clone(), why: wanted.why.clone() };
    let retry = operation.map(|operation| Retry::of(operation, "suggest", wanted));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| suggestions::suggest(view, &request, context),
    )
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suggestions {
    /// Newest first.
    pub suggestions: Vec<Suggestion>,
    /// There are more than are listed.
    pub more: bool,
}

/// Those that wait for the caller; with `all`, everybody's, answered ones too.
pub fn list(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Suggestions,
) -> Result<Suggestions, Failure> {
    let me: Option<SessionId> = match wanted.all {
        true => None,
        false => Some(actor.session.clone().ok_or(Refusal::NoSession)?),
    };
    let limit = u32::try_from(wanted.limit).unwrap_or(READ_MAX).min(READ_MAX);
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let query = match &me {
            Some(me) => Query::equal(suggestions::BY_HOLDER, me.as_str(), limit + 1),
            None => suggestions::all_of(suggestions::ALL, limit + 1),
        };
        let mut suggestions: Vec<Suggestion> = scan(view, query)?;
        let more = suggestions.len() > limit as usize;
        suggestions.truncate(limit as usize);
        suggestions.sort_by_key(|one| std::cmp::Reverse(one.at));
        Ok(Suggestions { suggestions, more })
    })
}

pub fn show(workspace: &mut Workspace, given: &str) -> Result<Suggestion, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let found = get::<Suggestion>(view, given)?;
        found.ok_or_else(|| Refused::Unknown { given: given.to_owned() }.into())
    })
}

pub fn apply(
    workspace: &mut Workspace,
    actor: &Actor,
    given: &str,
    operation: Option<&str>,
) -> Result<Told, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "suggestion apply", &given));
    let seen = workspace.look(actor, Observed::default(), |view, context| {
        suggestions::answerable(view, given, context).map(|(suggestion, _)| suggestion)
    });
    match seen {
        Ok(suggestion) => {
            let git = Git::in_tree(&workspace.place.root)?;
            if let Err(why) = git.applies(&suggestion.patch, suggestion.strip, false)? {
                // In the tree already: somebody applied it and could not say so.
                if git.applies(&suggestion.patch, suggestion.strip, true)?.is_err() {
                    let path = suggestion.path.clone();
                    return Err(Failure::DoesNotApply { suggestion: given.to_owned(), path, why });
                }
            } else {
                git.apply(&suggestion.patch, suggestion.strip)?;
            }
        }
        // A retry of what was answered gets its answer below, and anybody else this refusal.
        Err(failure) if retry.is_none() => return Err(failure),
        Err(_) => {}
    }
    answer(workspace, actor, given, &Verdict::Apply, retry.as_ref())
}

pub fn decline(
    workspace: &mut Workspace,
    actor: &Actor,
    given: &str,
    why: &str,
    operation: Option<&str>,
) -> Result<Told, Failure> {
    let verdict = Verdict::Decline { why: why.to_owned() };
    let retry =
        operation.map(|operation| Retry::of(operation, "suggestion decline", &(given, why)));
    answer(workspace, actor, given, &verdict, retry.as_ref())
}

fn answer(
    workspace: &mut Workspace,
    actor: &Actor,
    given: &str,
    verdict: &Verdict,
    retry: Option<&Retry>,
) -> Result<Told, Failure> {
    workspace.decide_once(
        actor,
        Observed::default(),
        retry,
        |_| true,
        |view, context| suggestions::answer(view, given, verdict, context),
    )
}
