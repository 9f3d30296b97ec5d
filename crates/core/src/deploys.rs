//! Whether something may be deployed, and what came of it.
//!
//! Owns the judgement: one deployer of a target at a time, nothing older than what is live unless
//! said, nothing that lacks what others landed, nothing unfinished, nothing a person has not seen
//! where the policy asks for it. What git says of commits and files is looked at before and passed
//! in. Invariants: nothing untrusted is ever started, and the outcome follows from how the
//! commands ended, not from what the deployer says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Claim;
use crate::claims;
use crate::context::Context;
use crate::deploy::{self, Deploy, End, LEASE, Outcome, Rules, Shipped};
use crate::event::{EndOfClaim, Event};
use crate::gate::{self, Gate};
use crate::gates;
use crate::id::{GateId, Token};
use crate::notices::Notice;
use crate::policy;
use crate::refusal::{Class, Refusal};
use crate::roles::{self, Deed};
use crate::scene::Caller;
use crate::sessions::Process;
use crate::trust;
use crate::view::{View, get, scan};

/// How far back it is looked for what was live.
pub const PAST_MAX: u32 = 1_000;
/// How many gates of a target are looked at, newest first.
const GATES_MAX: u32 = 200;
/// How many commits that were live are named.
const NAMED_MAX: usize = 5;

/// A word that must not ship, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placeholder {
    pub path: String,
    pub line: u64,
    pub word: String,
}

/// What git says, looked at before the decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The rules of the target by which it was looked.
    pub rules: Rules,
    /// Where work lands, as it is named: `origin/main`.
    pub landed: String,
    /// Commits there that the one to ship has not.
    pub behind: u64,
    /// What was live when it was looked.
    pub live: Option<String>,
    /// The one to ship is an ancestor of what is live.
    pub older: bool,
    pub placeholders: Vec<Placeholder>,
    /// There are more than those.
    pub more: bool,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub target: String,
    /// In full.
    pub commit: String,
    pub rollback: bool,
    pub facts: Facts,
    pub process: Option<Process>,
    pub host: String,
    pub folder: String,
    pub log: String,
}

/// Why nothing is shipped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the policy has no target {target}")]
    NoTarget { target: String, known: Vec<String> },
    #[error("{} is being deployed by {}", .0.target, .0.by.name)]
    Running(Box<Deploy>),
    #[error("{commit} lacks {behind} commits of {landed}")]
    Behind { commit: String, landed: String, behind: u64 },
    #[error("{commit} is older than what is live")]
    Older { commit: String, live: Box<Deploy> },
    #[error("{commit} was never live")]
    NeverLive { target: String, commit: String, known: Vec<String> },
    #[error("nothing was live before")]
    NothingBefore { target: String },
    #[error("unfinished text would ship")]
    Placeholders { places: Vec<Placeholder>, more: bool },
    #[error("{gate} is not decided")]
    Gated { gate: GateId, target: String, commit: String, opened: bool },
    #[error("{gate} was denied")]
    Denied { gate: GateId, target: String, commit: String, why: Option<String> },
    #[error("there is no branch {branch} here")]
    NoBranch { branch: String },
    #[error("something changed while it was looked at")]
    Moved { target: String },
    #[error("the deploy {deploy} is over")]
    Over { deploy: Token, state: &'static str },
}

impl Refused {
    pub fn class(&self) -> Class {
        match self {
            Self::NoTarget { .. } => Class::Usage,
            Self::Over { .. } => Class::Stale,
            Self::Moved { .. } => Class::Unanswered,
            _ => Class::Refused,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::NoTarget { .. } => "no_target",
            Self::Running(_) => "deploying",
            Self::Behind { .. } => "behind",
            Self::Older { .. } => "rollback",
            Self::NeverLive { .. } => "never_live",
            Self::NothingBefore { .. } => "nothing_before",
            Self::Placeholders { .. } => "placeholders",
            Self::Gated { .. } => "gated",
            Self::Denied { .. } => "denied",
            Self::NoBranch { .. } => "no_branch",
            Self::Moved { .. } => "moved",
            Self::Over { .. } => "deploy_over",
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Deploy(Box::new(refused))
    }
}

/// What follows from asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    Started {
        deploy: Box<Deploy>,
        notices: Vec<Notice>,
    },
    /// A person is asked first.
    Gated {
        gate: GateId,
        opened: bool,
    },
}

/// The rules of a target in the policy in force.
pub fn rules(view: &dyn View, target: &str) -> Result<Rules, Refusal> {
    let policy = policy::in_force(view)?.unwrap_or_default();
    let known = || policy.deploys.keys().cloned().collect();
    let missing = || Refused::NoTarget { target: target.to_owned(), known: known() }.into();
    policy.deploys.get(target).cloned().ok_or_else(missing)
}

/// The last deploy that reached the surface of a target, and every commit that did, newest first.
pub fn live(view: &dyn View, target: &str) -> Result<(Option<Deploy>, Vec<String>), Refusal> {
    let past: Vec<Deploy> = scan(view, deploy::of_target(target, PAST_MAX))?;
    let reached: Vec<Deploy> = past.into_iter().filter(Deploy::reached).collect();
    let mut commits: Vec<String> = Vec::new();
    for deploy in &reached {
        if !commits.contains(&deploy.commit) {
            commits.push(deploy.commit.clone());
        }
    }
    Ok((reached.into_iter().next(), commits))
}

/// The commit that a rollback goes to when none is named: the last one before what is live.
pub fn before(view: &dyn View, target: &str) -> Result<String, Refusal> {
    let past: Vec<Deploy> = scan(view, deploy::of_target(target, PAST_MAX))?;
    let mut reached = past.iter().filter(|deploy| deploy.reached());
    let live = reached.clone().next().map(|live| live.commit.as_str());
    // Those that went forward: a rollback after a rollback goes further back, not forth again.
    let mut forward = reached.by_ref().filter(|deploy| !deploy.rollback);
    forward.by_ref().find(|deploy| Some(deploy.commit.as_str()) == live);
    let before = forward.find(|deploy| Some(deploy.commit.as_str()) != live);
    let nothing = || Refusal::from(Refused::NothingBefore { target: target.to_owned() });
    before.map(|deploy| deploy.commit.clone()).ok_or_else(nothing)
}

/// Takes the target, or refuses, or asks a person first.
pub fn begin(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Begun), Refusal> {
    let caller = Caller::read(view, context)?;
    roles::admit(view, &caller.session, &[Deed::Deploy], context)?;
    let rules = rules(view, &request.target)?;
    trust::demand(view, &rules.commands_of(&request.target))?;
    let open: Vec<Deploy> = scan(view, deploy::of_target(&request.target, PAST_MAX))?;
    let open = open.into_iter().find(|deploy| deploy.end.is_none());
    match open {
        Some(open) if open.is_there(context) => {
            return Err(Refused::Running(Box::new(open)).into());
        }
        // Whoever asks looks at the dead first.
        Some(_) => return Err(Refused::Moved { target: request.target.clone() }.into()),
        None => {}
    }
    let (live, commits) = live(view, &request.target)?;
    fits(request, &rules, live.as_ref(), &commits)?;
    let mut events = Vec::new();
    let gate = match rules.gate {
        false => None,
        true => match passed(view, request, &caller, &mut events, context)? {
            Ok(gate) => Some(gate),
            Err((gate, opened)) => {
                events.extend(caller.activity(context, &[]));
                return Ok((events, Begun::Gated { gate, opened }));
            }
        },
    };
    let (mut events, granted) = take(view, request, context)?;
    let deploy = Deploy {
        deploy: context.next.after(events.len() as u64),
        target: request.target.clone(),
        commit: request.commit.clone(),
        by: caller.holder(context),
        rollback: request.rollback,
        before: live.map(|live| live.commit),
        gate,
        run: rules.run,
        verify: rules.verify,
        claim: granted.claim,
        claimed: !granted.already_held,
        process: request.process.clone(),
        host: request.host.clone(),
        folder: request.folder.clone(),
        log: request.log.clone(),
        started_at: context.now,
        renewed_at: context.now,
        lease_until: context.now + LEASE,
        shipped: None,
        end: None,
    };
    events.push(Event::DeployStarted { deploy: deploy.clone() });
    let notices = granted.notices;
    Ok((events, Begun::Started { deploy: Box::new(deploy), notices }))
}

/// Is this commit one to ship, by what was looked at?
fn fits(
    request: &Request,
    rules: &Rules,
    live: Option<&Deploy>,
    commits: &[String],
) -> Result<(), Refusal> {
    let Request { facts, commit, target, .. } = request;
    let seen = live.map(|live| &live.commit) == facts.live.as_ref();
    if facts.rules != *rules || !seen {
        return Err(Refused::Moved { target: target.clone() }.into());
    }
    match (request.rollback, live) {
        (true, _) if !commits.contains(commit) => {
            let known = commits.iter().skip(1).take(NAMED_MAX).cloned().collect();
            let (target, commit) = (target.clone(), commit.clone());
            return Err(Refused::NeverLive { target, commit, known }.into());
        }
        (true, _) => {}
        (false, _) if facts.behind > 0 => {
            let (commit, landed) = (commit.clone(), facts.landed.clone());
            return Err(Refused::Behind { commit, landed, behind: facts.behind }.into());
        }
        (false, Some(live)) if facts.older && live.commit != *commit => {
            let (commit, live) = (commit.clone(), Box::new(live.clone()));
            return Err(Refused::Older { commit, live }.into());
        }
        (false, _) => {}
    }
    match facts.placeholders.is_empty() {
        true => Ok(()),
        false => {
            let (places, more) = (facts.placeholders.clone(), facts.more);
            Err(Refused::Placeholders { places, more }.into())
        }
    }
}

/// What a gate before a target is about.
pub fn subject(target: &str) -> String {
    format!("deploy/{target}")
}

/// The gate that a person approved for this very commit; or the one that is open, opened now if
/// there was none.
fn passed(
    view: &dyn View,
    request: &Request,
    caller: &Caller,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Result<GateId, (GateId, bool)>, Refusal> {
    let subject = subject(&request.target);
    let known: Vec<Gate> = scan(view, gate::about(gate::BY_SUBJECT, &subject, GATES_MAX))?;
    let about = |gate: &&Gate| {
        gate.kind == gate::Kind::Deploy && gate.commit.as_deref() == Some(&request.commit)
    };
    for gate in known.iter().filter(about) {
        match gate.decision.as_ref().map(|decision| (decision.outcome, decision)) {
            None => return Ok(Err((gate.gate.clone(), false))),
            Some((gate::Outcome::Approved | gate::Outcome::Passed, _)) => {
                return Ok(Ok(gate.gate.clone()));
            }
            Some((gate::Outcome::Denied, decision)) => {
                let (gate, why) = (gate.gate.clone(), decision.why.clone());
                let (target, commit) = (request.target.clone(), request.commit.clone());
                return Err(Refused::Denied { gate, target, commit, why }.into());
            }
            Some((gate::Outcome::Moot, _)) => {}
        }
    }
    let short: String = request.commit.chars().take(12).collect();
    let verb = if request.rollback { "Roll back" } else { "Deploy" };
    let ask = format!("{verb} {} to {short}?", request.target);
    let gate = Gate {
        commit: Some(request.commit.clone()),
        opened_by: gates::by(Some(caller), context),
        ..gates::draft(&subject, gate::Kind::Deploy, &ask, context)
    };
    Ok(Err((gates::open(view, gate, events)?.gate, true)))
}

fn take(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, claims::Granted), Refusal> {
    let short: String = request.commit.chars().take(12).collect();
    let wanted = claims::Request {
        reason: Some(format!("deploys {short}")),
        ..claims::Request::of(vec![Deploy::resource(&request.target)])
    };
    match claims::take(view, &wanted, context)? {
        (events, claims::Answer::Granted(granted)) => Ok((events, *granted)),
        (_, claims::Answer::Queued(_)) => Err(Refusal::Empty),
    }
}

/// The caller's own deploy, while it goes on.
fn own(view: &dyn View, id: Token, context: &Context) -> Result<(Caller, Deploy), Refusal> {
    let caller = Caller::read(view, context)?;
    let deploy = get::<Deploy>(view, &id.to_string())?;
    let over = |state| Refusal::from(Refused::Over { deploy: id, state });
    let deploy = deploy.ok_or_else(|| over("not known"))?;
    match deploy.end.is_none() && deploy.by.session == caller.session.session {
        true => Ok((caller, deploy)),
        false => Err(over(deploy.state())),
    }
}

/// The deployer is still there. Refused when its claim was taken away: then it must stop.
pub fn renew(
    view: &dyn View,
    id: Token,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Notice>), Refusal> {
    let (caller, deploy) = own(view, id, context)?;
    if get::<Claim>(view, deploy.claim.as_str())?.is_none() {
        return Err(Refused::Over { deploy: id, state: "revoked" }.into());
    }
    let lease_until = context.now + LEASE;
    let mut events = vec![Event::DeployRenewed { deploy: id, at: context.now, lease_until }];
    events.extend(caller.activity(context, &[]));
    Ok((events, caller.notices))
}

/// The command that ships has ended; from here on it is known whether the surface has it.
pub fn shipped(
    view: &dyn View,
    id: Token,
    exit: u8,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Notice>), Refusal> {
    let (caller, deploy) = own(view, id, context)?;
    let shipped = Shipped { at: context.now, exit };
    let mut events = vec![Event::DeployShipped { deploy: id, shipped }];
    if deploy.rollback && exit == 0 {
        let (target, from, to) = (deploy.target, deploy.before, deploy.commit);
        events.push(Event::RolledBack { deploy: id, target, from, to });
    }
    events.extend(caller.activity(context, &[]));
    Ok((events, caller.notices))
}

/// All of it has ended: what came of it, and the target is free again.
pub fn finish(
    view: &dyn View,
    id: Token,
    verify: Option<u8>,
    context: &Context,
) -> Result<(Vec<Event>, Deploy), Refusal> {
    let (caller, mut deploy) = own(view, id, context)?;
    let outcome = match (deploy.reached(), deploy.verify.is_empty(), verify) {
        (true, false, Some(0)) => Outcome::Succeeded,
        (true, true, _) => Outcome::Unverified,
        _ => Outcome::Failed,
    };
    let end = End { at: context.now, outcome, verify };
    let mut events = vec![Event::DeployEnded { deploy: id, end }];
    events.extend(let_go(view, &deploy, context)?);
    events.extend(caller.activity(context, &[&deploy.claim]));
    deploy.end = Some(end);
    Ok((events, deploy))
}

/// A deployer that is gone left its deploy open: nobody knows how it ended. True when it is so.
pub fn settle(
    view: &dyn View,
    id: Token,
    context: &Context,
) -> Result<(Vec<Event>, bool), Refusal> {
    let open = get::<Deploy>(view, &id.to_string())?.filter(|deploy| deploy.end.is_none());
    let Some(deploy) = open.filter(|deploy| !deploy.is_there(context)) else {
        return Ok((Vec::new(), false));
    };
    let end = End { at: context.now, outcome: Outcome::Unknown, verify: None };
    let mut events = vec![Event::DeployEnded { deploy: id, end }];
    events.extend(let_go(view, &deploy, context)?);
    Ok((events, true))
}

/// The claim ends with the deploy it was taken for.
fn let_go(view: &dyn View, deploy: &Deploy, context: &Context) -> Result<Option<Event>, Refusal> {
    if !deploy.claimed {
        return Ok(None);
    }
    let claim = get::<Claim>(view, deploy.claim.as_str())?;
    Ok(claim.map(|claim| claim.ends(EndOfClaim::Released { commit: None }, context)))
}
