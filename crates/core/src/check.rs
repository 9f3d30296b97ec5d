//! The verdict: may this session do this to these paths? Nothing is taken.
//!
//! One function answers for every door; the doors differ only in what they do with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{Claim, Hold, Holder, Mode, Scope};
use crate::claims::{elsewhere, foreign, queued_first};
use crate::context::Context;
use crate::gates::edits;
use crate::id::{ClaimId, SessionId, Token, TreeId};
use crate::interfaces;
use crate::notices::Notice;
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::roles::{self, Deed};
use crate::scene::Scene;
use crate::serial;
use crate::view::View;
use crate::waiting::{self, Waiter};
use crate::zones::Rule;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Allow,
    Warn,
    Ask,
    Deny,
}

/// Why, in one word for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    Free,
    Mine,
    /// No policy there, or not a path of this workspace.
    Unjudged,
    /// Held by somebody else, and that excludes this act.
    Held,
    /// Somebody in another tree works on it: a merge to come.
    HeldElsewhere,
    ClaimFirst,
    NeedsPerson,
    /// The role of whoever acts does not write there.
    Role,
    GitDir,
}

/// The verdict on one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub resource: Resource,
    pub verdict: Verdict,
    pub because: Because,
    pub zone: Rule,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// What the role does not allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Box<roles::Refused>>,
}

/// The verdict on all of them: the strictest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    pub verdict: Verdict,
    pub findings: Vec<Finding>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// The act is to be written down: a lease is half used, or somebody must be told something.
    #[serde(skip)]
    pub due: bool,
}

/// Judges each resource. A token that is shown must belong to a live claim of the caller that
/// covers every one of them (S4).
pub fn check(
    view: &dyn View,
    resources: &[Resource],
    token: Option<Token>,
    context: &Context,
) -> Result<Checked, Refusal> {
    if resources.is_empty() {
        return Err(Refusal::Empty);
    }
    let scene = Scene::read(view, resources, context)?;
    let mut findings = Vec::with_capacity(resources.len());
    for resource in resources {
        let finding = judge(view, &scene, resource, token, context)?;
        if let Some(given) = token
            && finding.token != Some(given)
        {
            return Err(Refusal::StaleToken { given, current: finding.token });
        }
        findings.push(finding);
    }
    let verdict = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Allow);
    let due = scene.caller.as_ref().is_some_and(|caller| !caller.activity(context, &[]).is_empty());
    let notices = scene.caller.map(|caller| caller.notices).unwrap_or_default();
    Ok(Checked { verdict, findings, notices, due })
}

fn judge(
    view: &dyn View,
    scene: &Scene,
    resource: &Resource,
    token: Option<Token>,
    context: &Context,
) -> Result<Finding, Refusal> {
    let rule = scene.policy.rule(resource);
    let finding = |verdict, because, held| Finding {
        resource: resource.clone(),
        verdict,
        because,
        zone: rule,
        held,
        claim: None,
        token: None,
        role: None,
    };
    if let Some(refused) = not_by_role(scene, resource, context) {
        let verdict = if context.actor.person { Verdict::Warn } else { Verdict::Deny };
        let role = Some(refused);
        return Ok(Finding { role, ..finding(verdict, Because::Role, Vec::new()) });
    }
    let hold = would_hold(scene, resource, rule, context);
    let own = own_claim(scene, &hold, token, context);
    let mine = |because| Finding {
        claim: own.map(|own| own.claim.clone()),
        token: own.map(|own| own.token),
        ..finding(Verdict::Allow, because, Vec::new())
    };
    if rule == Rule::Off {
        return Ok(mine(Because::Unjudged));
    }
    let judgement = scene.judge(&hold, context)?;
    let mut in_the_way = foreign(&hold, context);
    in_the_way.extend(judgement.blockers);
    if own.is_none() {
        in_the_way.extend(judgement.shortages);
        let me = Waiter::newcomer(hold.clone(), context);
        let ahead = waiting::ahead(view, scene, &me, context)?;
        in_the_way.extend(ahead.into_iter().map(queued_first));
    }
    if in_the_way.is_empty() {
        in_the_way = interfaces::in_the_way(view, scene, &hold, context)?;
    }
    if in_the_way.is_empty() && own.is_none() {
        in_the_way = serial::judge(view, scene, &hold, context)?.held;
    }
    if !in_the_way.is_empty() {
        // A person is warned rather than stopped, except where only one may write at a time.
        let soft = context.actor.person && rule != Rule::Serial;
        let verdict = if soft { Verdict::Warn } else { Verdict::Deny };
        return Ok(finding(verdict, Because::Held, in_the_way));
    }
    if own.is_some() {
        return Ok(mine(Because::Mine));
    }
    let others = elsewhere(scene, &hold, context);
    let session = context.actor.session.as_ref();
    let let_by = rule == Rule::Human && edits::are_allowed(view, resource, session)?;
    let rule = if let_by { Rule::Auto } else { rule };
    let (verdict, because) = of_the_free(rule, context.actor.person, others.is_empty());
    let held = if because == Because::HeldElsewhere { others } else { Vec::new() };
    Ok(finding(verdict, because, held))
}

/// What the zone says of a file that nobody holds here.
fn of_the_free(rule: Rule, person: bool, nowhere_held: bool) -> (Verdict, Because) {
    match rule {
        Rule::Human if !person => (Verdict::Ask, Because::NeedsPerson),
        Rule::Require if person => (Verdict::Warn, Because::ClaimFirst),
        Rule::Require => (Verdict::Deny, Because::ClaimFirst),
        _ if nowhere_held => (Verdict::Allow, Because::Free),
        _ => (Verdict::Warn, Because::HeldElsewhere),
    }
}

/// What keeps the caller's role from writing there; without a role nothing is looked at.
fn not_by_role(
    scene: &Scene,
    resource: &Resource,
    context: &Context,
) -> Option<Box<roles::Refused>> {
    let session = &scene.caller.as_ref()?.session;
    roles::admit_by(&scene.policy.roles, session, Deed::Write(resource), context).err()
}

/// What an edit of this path would hold.
fn would_hold(scene: &Scene, resource: &Resource, rule: Rule, context: &Context) -> Hold {
    let nobody = || Holder { session: SessionId(String::new()), name: String::new(), agent: None };
    let caller = scene.caller.as_ref();
    let holder = caller.map_or_else(nobody, |caller| caller.holder(context));
    let tree = context.actor.tree.clone();
    let tree = tree.or_else(|| caller.map(|caller| caller.session.tree.clone()));
    let mut resources = vec![resource.clone()];
    resources.extend(scene.policy.serial_zones(resource));
    let named = matches!(resource, Resource::Name { .. });
    let literal = matches!(resource, Resource::Path(pattern) if pattern.is_literal());
    let (scope, mode) = match rule {
        // Adding at the end is shared work; only an exclusive claim stands against it.
        Rule::Append if literal => (Scope::Tree, Mode::Shared),
        Rule::Append | Rule::Auto | Rule::Off if !named => (Scope::Tree, Mode::Exclusive),
        _ => (Scope::Workspace, Mode::Exclusive),
    };
    Hold { holder, tree: tree.unwrap_or_else(|| TreeId(String::new())), scope, mode, resources }
}

/// A live claim of the caller that gives it the path; the one with `token` before any other.
fn own_claim<'a>(
    scene: &'a Scene,
    hold: &Hold,
    token: Option<Token>,
    context: &Context,
) -> Option<&'a Claim> {
    let gives = |claim: &&Claim| {
        claim.hold.holder.session == hold.holder.session
            && !hold.holder.competes_with(&claim.hold.holder)
            && claim.is_live(context)
            && (claim.hold.mode == Mode::Exclusive || hold.mode == Mode::Shared)
            && (claim.hold.tree == hold.tree || claim.hold.scope == Scope::Workspace)
            && claim.hold.covers(&hold.resources[..1])
    };
    let own = scene.claims.iter().filter(gives);
    own.max_by_key(|claim| (Some(claim.token) == token, claim.token))
}
