//! `baton hook CLIENT`: one act of an agent, judged while its client waits.
//!
//! Owns the way of a payload through the doors and back. Invariant: it always answers in the
//! client's dialect and never with an exit code that the client would take for something else;
//! what goes wrong on our side lets the act pass, and says so where the model can read it. What is
//! refused is no such thing: that is an answer, and the act is denied.

use std::mem::ManuallyDrop;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_core::calls::{CALL_LIMIT_MAX, CALL_LIMIT_MIN};
use baton_core::check::Verdict;
use baton_core::claims::CLAIM_RESOURCES_MAX;
use baton_core::context::Actor;
use baton_core::refusal::{Class, Refusal};
use baton_core::time::Span;
use baton_core::trees;
use baton_engine::doors::after::Ran;
use baton_engine::doors::edit::{Judged, Target, edit};
use baton_engine::doors::{
    self, Admitted, Visitor, after, askers, asking, callers, list, shell, stop, turn, unjudged,
};
use baton_engine::failure::Failure;
use baton_engine::trees::{looking, making, removing};
use baton_engine::workspace::Workspace;
use baton_engine::{api, denying, priming, sandbox, sessions, starting};
use serde_json::Value;

use crate::arguments::Common;
use crate::commands::prime;
use crate::desk::{self, Outcome};
use crate::hooks::limit::{LIMIT, Limit};
use crate::hooks::{self, Answer, Client, Event, Payload, Tool, words};
use crate::words::Problem;

mod input;
mod whereabouts;

/// A hook does not wait longer for its turn at the store.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// What Claude takes for "no".
const BLOCK: u8 = 2;

/// Judge one act of an agent: its client's JSON comes in, the answer goes out
///
/// Called by the hooks that `baton init` writes. Exit code 0 always, with the answer as the client
/// wants it; what Baton cannot judge passes.
#[derive(Debug, clap::Args)]
pub(crate) struct Hook {
    /// Whose hook this is
    #[arg(value_name = "CLIENT")]
    pub(crate) client: Client,
}

pub(crate) fn run(common: &Common, wanted: &Hook) -> Outcome {
    let begun = Instant::now();
    let text = input::given(begun);
    if text.is_none() && begun.elapsed() >= LIMIT {
        // Who it is and what it wants is not known, so nothing can be said in its own words.
        eprintln!("{}", words::too_slow(LIMIT));
        return Ok(ExitCode::SUCCESS);
    }
    let text = text.unwrap_or_default();
    let payload = hooks::lenient::parse(&text);
    if let Some(mark) = payload.as_ref().and_then(|payload| payload.get("baton_probe")?.as_str()) {
        probed(payload.as_ref().unwrap_or(&Value::Null), mark);
        return Ok(ExitCode::SUCCESS);
    }
    let Some(payload) = payload.and_then(|payload| hooks::read(wanted.client, &payload)) else {
        eprintln!("{}", words::not_understood(wanted.client));
        if let Some(said) = input::unread(wanted.client, &text) {
            desk::print(&format!("{said}\n"));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let limit = Limit::watch(&payload, begun);
    let mut workspace = None;
    let answer = match serve(common, &payload, &mut workspace) {
        Ok(answer) => answer,
        Err(problem) => unanswered(&payload, &problem),
    };
    let said = hooks::say(&payload, &answer);
    limit.answer();
    if !said.err.is_empty() {
        eprintln!("{}", said.err);
    }
    if !said.out.is_empty() {
        desk::print(&format!("{}\n", said.out));
    }
    if let Some(workspace) = &mut workspace {
        denying::write_down(workspace);
    }
    Ok(ExitCode::from(said.exit))
}

/// What is said when Baton could not answer. A tree that was not made must not look like one.
fn unanswered(payload: &Payload, problem: &Problem) -> Answer {
    let words = words::unanswered(problem);
    match &payload.event {
        Event::TreeWanted(_) => Answer::No { why: words, exit: 1 },
        _ if hooks::is_told(payload, is_passing(problem)) => Answer::Context(words),
        _ => Answer::Silent,
    }
}

/// May the same have been answered a moment before?
fn is_passing(problem: &Problem) -> bool {
    matches!(problem.code, "busy" | "no_free_connection" | "not_ready")
}

/// `doctor` tries whether hooks come through. What counts is that the store could be opened.
fn probed(payload: &Value, mark: &str) {
    let folder = payload.get("cwd").and_then(Value::as_str).unwrap_or(".");
    if let Ok(workspace) = desk::open(folder.as_ref()) {
        doors::probed(&workspace.place, mark);
    }
}

/// The answer. The workspace it was given in stays in `kept`.
fn serve(
    common: &Common,
    payload: &Payload,
    kept: &mut Option<ManuallyDrop<Workspace>>,
) -> Result<Answer, Problem> {
    if payload.event == Event::Other {
        return Ok(Answer::Silent);
    }
    let Some((workspace, is_here)) = whereabouts::open(payload)? else {
        return Ok(whereabouts::not_set_up(payload));
    };
    let workspace = kept.insert(ManuallyDrop::new(workspace));
    denying::answer_first(workspace);
    let credential = desk::hints(common).environment;
    let answer = judged(payload, workspace, is_here, credential.as_deref())?;
    let others = whereabouts::others(payload, &workspace.place).into_iter();
    Ok(others.fold(answer, |answer, (root, other)| {
        // What proves a session here proves nothing there.
        let there = other.map_err(Problem::from);
        let there = there.and_then(|mut there| judged(payload, &mut there, false, None));
        let there = there.unwrap_or_else(|problem| unanswered(payload, &problem));
        answer.and(there.of_workspace(&root))
    }))
}

/// The answer of one workspace.
fn judged(
    payload: &Payload,
    workspace: &mut Workspace,
    is_here: bool,
    credential: Option<&str>,
) -> Result<Answer, Problem> {
    workspace.patience = PATIENCE;
    // Who comes is seen at the moment of opening.
    workspace.store.stay_at_this_moment();
    let id = doors::fitting(&payload.session);
    let agent = payload.agent.as_deref().map(doors::fitting);
    let visitor = Visitor {
        client: payload.client.name(),
        id: &id,
        agent: agent.as_deref(),
        // A subagent that stops goes nowhere any more, wherever its last line went.
        is_here: is_here && payload.event != Event::SubagentStop,
        ended: match &payload.event {
            Event::After { tool: Tool::Shell(_), .. } => payload.call.as_deref(),
            _ => None,
        },
        continues: matches!(payload.event, Event::SessionStart { continues: true }),
        credential,
        role: None,
        agent_role: payload.agent_type.as_deref().and_then(role_of),
    };
    let mut door = Door { workspace, payload, has_role: false };
    match &payload.event {
        Event::SessionStart { .. } => door.session_start(&visitor),
        Event::SessionEnd => door.session_end(&visitor),
        _ => match door.admit_to_act(&visitor) {
            Err(Failure::Refused(refusal)) if denies(payload, &refusal) => {
                Ok(Answer::Deny(words::refused(&Problem::from(&refusal))))
            }
            came => Ok(came?),
        },
    }
}

/// A refusal is an answer, whatever step to the act it came from: then that is not done.
fn denies(payload: &Payload, refusal: &Refusal) -> bool {
    refusal.class() != Class::Unanswered
        && matches!(&payload.event, Event::Before(tool) if tool.is_act())
}

const NO_TREE_GOES: &str = "Baton: from this sandbox no tree is removed. Next: leave it to a \
                            session outside.";
const ONE_TREE: &str = "Baton: in this sandbox only its own tree can be written, so no other is \
                        made. Next: work in this one.";

/// Whether somebody started the client for this very session, and ends it.
fn launched(actor: &Actor) -> bool {
    let said = |name: &str| std::env::var(name).unwrap_or_default();
    let session = actor.session.as_ref().map_or("", |session| session.as_str());
    sandbox::is_bound()
        || !said(starting::VARIABLE).is_empty()
            && said("BATON_SESSION").split('.').next() == Some(session)
}

/// A call from inside a sandbox is its session's, whatever the payload says.
fn admit(workspace: &mut Workspace, visitor: &Visitor<'_>) -> Result<Admitted, Failure> {
    match sandbox::is_bound() {
        true => doors::admit_bound(workspace, visitor),
        false => doors::admit(workspace, visitor),
    }
}

struct Door<'a> {
    workspace: &'a mut Workspace,
    payload: &'a Payload,
    /// Whoever acts may do only its part; nobody else pays for looking.
    has_role: bool,
}

/// The role that an agent of ours has by its name (`init --roles`); a plugin's has its name before.
fn role_of(agent_type: &str) -> Option<&str> {
    let name = agent_type.rsplit(':').next().unwrap_or(agent_type);
    name.strip_prefix(baton_engine::wiring::roles::PREFIX)
}

impl Door<'_> {
    fn admit_to_act(&mut self, visitor: &Visitor<'_>) -> Result<Answer, Failure> {
        let Admitted { actor, has_role, .. } = admit(self.workspace, visitor)?;
        let prompted = self.payload.event == Event::Prompt;
        if prompted && visitor.agent.is_none() && !launched(&actor) {
            doors::came_back(self.workspace, visitor, &actor)?;
        }
        self.has_role = has_role;
        if !self.is_judged_at_once() {
            self.workspace.store.leave_this_moment();
        }
        let answer = self.act(visitor, &actor)?;
        Ok(self.heard(&actor, answer))
    }

    /// Whether who comes and what may be done can be seen at one moment. Where files are compared
    /// in between, what others did meanwhile counts.
    fn is_judged_at_once(&self) -> bool {
        matches!(
            &self.payload.event,
            Event::Before(_) | Event::After { tool: Tool::Read(_) | Tool::Other, .. }
        )
    }

    fn act(&mut self, visitor: &Visitor<'_>, actor: &Actor) -> Result<Answer, Failure> {
        match &self.payload.event {
            Event::Before(Tool::Edit(targets)) => self.before_edit(actor, targets),
            Event::Before(Tool::Patch { why, targets }) => self.before_patch(actor, why, targets),
            Event::After { tool: Tool::Edit(targets) | Tool::Patch { targets, .. }, failed } => {
                self.after_edit(actor, targets, *failed)
            }
            Event::Before(Tool::Refused(why)) => Ok(Answer::Deny(why.clone())),
            Event::Before(Tool::Shell(line)) => self.before_line(actor, line),
            Event::Before(Tool::Own) => {
                if let Some(agent) = visitor.agent {
                    askers::asks(self.workspace, actor, agent, self.payload.call_id());
                }
                Ok(Answer::Silent)
            }
            Event::After { tool: Tool::Shell(line), failed } => {
                self.after_line(actor, line, *failed)
            }
            Event::After { tool: Tool::Read(paths), .. } => {
                after::read(self.workspace, actor, &self.payload.cwd, paths)?;
                Ok(Answer::Silent)
            }
            Event::Prompt => {
                asking::over(self.workspace, actor);
                let (compared, told) = self.turn_over(actor)?;
                self.workspace.store.stay_at_this_moment();
                let turn = turn::begins(self.workspace, actor)?;
                Ok(context(&format!("{compared}\n{told}{}", words::turn(&turn))))
            }
            Event::Stop { again } => self.stop(actor, *again),
            Event::BeforeCompaction => {
                doors::checkpoint(self.workspace, actor)?;
                Ok(Answer::Silent)
            }
            Event::SubagentStop => {
                let (compared, told) = self.turn_over(actor)?;
                doors::subagent_gone(self.workspace, visitor, actor)?;
                Ok(context(&format!("{compared}\n{told}")))
            }
            Event::TreeWanted(name) => self.make_tree(actor, name),
            Event::TreeUnwanted(path) => self.remove_tree(actor, path),
            Event::Listed { id, title, text, done } => {
                let (client, session) = (visitor.client, visitor.id);
                self.listed(actor, list::Entry { client, session, id, title, text }, *done)
            }
            Event::Unlisted { id } => {
                let (client, session) = (visitor.client, visitor.id);
                let entry = list::Entry { client, session, id, title: "", text: "" };
                unless_refused(list::dropped(self.workspace, actor, entry))?;
                Ok(Answer::Silent)
            }
            _ => Ok(Answer::Silent),
        }
    }

    fn before_edit(&mut self, actor: &Actor, targets: &[Target]) -> Result<Answer, Failure> {
        if targets.is_empty() {
            return Ok(Answer::Silent);
        }
        // No claim takes so much, and what is not claimed is not judged.
        if targets.len() > CLAIM_RESOURCES_MAX {
            return Ok(Answer::Deny(words::too_many(targets.len(), CLAIM_RESOURCES_MAX)));
        }
        let mut judged = edit(self.workspace, actor, &self.payload.cwd, targets)?;
        if judged.verdict == Verdict::Ask {
            if self.payload.client.asks_its_user() {
                asking::client_asks(self.workspace, actor, &judged.findings);
                return Ok(Answer::Ask(words::denial(&judged)));
            }
            self.ask(actor, &mut judged);
        }
        Ok(match judged.verdict {
            Verdict::Deny | Verdict::Ask => Answer::Deny(words::denial(&judged)),
            Verdict::Allow | Verdict::Warn => context(&words::remarks(&judged)),
        })
    }

    /// What was not made is nobody's edit, and no user's yes.
    fn after_edit(
        &mut self,
        actor: &Actor,
        targets: &[Target],
        failed: bool,
    ) -> Result<Answer, Failure> {
        if failed {
            return Ok(Answer::Silent);
        }
        after::edited(self.workspace, actor, &self.payload.cwd, targets)?;
        if self.payload.client.asks_its_user() {
            asking::edited(self.workspace, actor, &self.payload.cwd, targets)?;
        }
        let around = unjudged::edited(self.workspace, actor, &self.payload.cwd, targets)?;
        Ok(context(&words::compared(&around)))
    }

    /// A person decides at a gate. Where none can be opened the answer is "no" all the same.
    fn ask(&mut self, actor: &Actor, judged: &mut Judged) {
        let cwd = &self.payload.cwd;
        let asked = asking::ask(self.workspace, actor, cwd, &judged.findings);
        judged.asked = asked.unwrap_or_default();
    }

    /// Every path that a patch names is judged, also where it cannot be read: but then it may name
    /// others in a way that only its tool understands.
    fn before_patch(
        &mut self,
        actor: &Actor,
        why: &str,
        targets: &[Target],
    ) -> Result<Answer, Failure> {
        match self.before_edit(actor, targets)? {
            Answer::Silent if targets.is_empty() => Ok(Answer::Deny(words::unreadable(why))),
            other => Ok(other),
        }
    }

    fn before_line(&mut self, actor: &Actor, line: &str) -> Result<Answer, Failure> {
        if self.has_role
            && let Some(refused) = doors::shell_not_by_role(self.workspace, actor, line)?
        {
            return Ok(Answer::Deny(words::role_denial(&refused)));
        }
        let (cwd, call) = (&self.payload.cwd, self.payload.call_id());
        let behind = self.payload.behind;
        let mut judged = shell::before(self.workspace, actor, cwd, line, call, behind)?;
        if judged.verdict < Verdict::Ask && judged.lasts {
            // What it holds does not run out while the command does. Its leases cover most.
            let limit = self.payload.limit.map(Span);
            let limit = limit.map(|limit| limit.clamp(CALL_LIMIT_MIN, CALL_LIMIT_MAX));
            let wanted = api::CallStart { id: Some(call.to_owned()), limit, pid: None };
            unless_refused(sessions::call_start(self.workspace, actor, &wanted, None))?;
        }
        if let Some(edits) = judged.edits.as_mut().filter(|edits| edits.verdict == Verdict::Ask) {
            self.ask(actor, edits);
        }
        Ok(match judged.verdict {
            Verdict::Deny | Verdict::Ask => Answer::Deny(words::line_denial(&judged)),
            Verdict::Allow | Verdict::Warn => {
                callers::begins(&self.workspace.place, actor, line, call);
                let edits = judged.edits.as_ref().map(words::remarks).unwrap_or_default();
                let saved = words::saved(&judged.saved);
                context(&format!("{saved}{edits}\n{}", words::told(&judged.notices)))
            }
        })
    }

    fn after_line(&mut self, actor: &Actor, line: &str, failed: bool) -> Result<Answer, Failure> {
        let (cwd, call) = (&self.payload.cwd, self.payload.call_id());
        let ran = Ran { line, call, failed, behind: self.payload.behind };
        callers::ended(&self.workspace.place, actor, line, call);
        let compared = after::after(self.workspace, actor, cwd, ran)?;
        let wanted = api::CallEnd { id: Some(call.to_owned()), all: false };
        let told = self.calls_over(actor, &wanted)?;
        Ok(context(&format!("{}\n{told}", words::compared(&compared))))
    }

    /// No tool call of the agent's own runs now, whether or not its end was told; what came of
    /// those in the background is said, and what the session must be told.
    fn turn_over(&mut self, actor: &Actor) -> Result<(String, String), Failure> {
        let mut compared = String::new();
        match self.payload.client.tells_each_end() {
            true => compared = words::compared(&after::interrupted(self.workspace, actor)?),
            false => after::outlasts(self.workspace, actor),
        }
        let behind = words::compared(&after::meanwhile(self.workspace, actor)?);
        let compared = format!("{compared}\n{behind}").trim().to_owned();
        after::rests(self.workspace, actor);
        callers::rests(&self.workspace.place, actor);
        let told = match actor.agent {
            None => self.calls_over(actor, &api::CallEnd { id: None, all: true })?,
            Some(_) => String::new(),
        };
        Ok((compared, told))
    }

    /// Ends calls, and gives the words that came with that: whoever is told once is not told again.
    fn calls_over(&mut self, actor: &Actor, wanted: &api::CallEnd) -> Result<String, Failure> {
        match sessions::call_end(self.workspace, actor, wanted, None) {
            Ok(called) => Ok(words::told(&called.notices)),
            Err(Failure::Refused(_)) => Ok(String::new()),
            Err(other) => Err(other),
        }
    }

    /// What it would leave, and what it must know, is said once: then it goes on.
    fn stop(&mut self, actor: &Actor, again: bool) -> Result<Answer, Failure> {
        let (compared, told) = self.turn_over(actor)?;
        if again {
            return Ok(context(&format!("{compared}\n{told}")));
        }
        let left = stop::left(self.workspace, actor)?.map(|left| words::left(&left));
        let text = format!("{compared}\n{}", left.unwrap_or_default());
        Ok(match text.trim() {
            "" => context(&told),
            text => Answer::GoOn(format!("{text}\n{told}").trim_end().to_owned()),
        })
    }

    /// A tree for the client, made as all others are, or the one of this name that nobody else
    /// uses. Where it may not be, there is none: a client that was told "no" makes none itself.
    fn make_tree(&mut self, actor: &Actor, name: &str) -> Result<Answer, Failure> {
        if sandbox::is_bound() {
            return Ok(Answer::No { why: ONE_TREE.to_owned(), exit: 1 });
        }
        let name = Some(trees::slug(name));
        let wanted = api::trees::New { name, ..api::trees::New::default() };
        let cwd = &self.payload.cwd;
        match making::new(self.workspace, actor, cwd, &wanted, None, &mut Unwatched) {
            Ok(made) => Ok(Answer::Made(made.tree.path)),
            Err(Failure::Refused(refused)) => {
                let name = wanted.name.unwrap_or_default();
                match looking::again(self.workspace, actor, &name)? {
                    Some(folder) => Ok(Answer::Made(folder)),
                    None => refusal(Failure::Refused(refused), 1),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    fn remove_tree(&mut self, actor: &Actor, path: &str) -> Result<Answer, Failure> {
        if sandbox::is_bound() {
            return Ok(Answer::No { why: NO_TREE_GOES.to_owned(), exit: 1 });
        }
        let wanted = api::trees::Remove { which: path.to_owned(), force: false };
        match removing::remove(self.workspace, actor, &self.payload.cwd, &wanted, None) {
            Ok(_) => Ok(Answer::Silent),
            Err(failure) => refusal(failure, 1),
        }
    }

    /// "No" keeps the entry open, and the model reads why.
    fn listed(
        &mut self,
        actor: &Actor,
        entry: list::Entry<'_>,
        done: bool,
    ) -> Result<Answer, Failure> {
        let told = match done {
            true => list::completed(self.workspace, actor, entry),
            false => list::created(self.workspace, actor, &self.payload.cwd, entry),
        };
        match told {
            Err(failure) if done => refusal(failure, BLOCK),
            other => other.map(|()| Answer::Silent),
        }
    }

    fn session_start(&mut self, visitor: &Visitor<'_>) -> Result<Answer, Problem> {
        let admitted = admit(self.workspace, visitor)?;
        match &admitted.begun {
            Some(begun) => export(&begun.credential),
            None if launched(&admitted.actor) => {}
            None => doors::came_back(self.workspace, visitor, &admitted.actor)?,
        }
        let primer = priming::primer(self.workspace, &admitted.actor)?;
        Ok(context(&prime::text(&primer)))
    }

    /// The session ends, and what it held waits a while for its return.
    fn session_end(&mut self, visitor: &Visitor<'_>) -> Result<Answer, Problem> {
        let admitted = match sandbox::is_bound() {
            true => Some(doors::admit_bound(self.workspace, visitor)?),
            false => doors::find(self.workspace, visitor)?,
        };
        // Of one that was never seen nothing is left.
        let Some(admitted) = admitted else { return Ok(Answer::Silent) };
        // Nobody hears what came of it, but the journal does; and it keeps nobody from leaving.
        let _ = after::interrupted(self.workspace, &admitted.actor);
        after::leaves(self.workspace, &admitted.actor);
        callers::leaves(&self.workspace.place, &admitted.actor);
        // Whoever started the client ends its session, when the client itself has ended.
        match launched(&admitted.actor) {
            true => doors::checkpoint(self.workspace, &admitted.actor)?,
            false => doors::leave(self.workspace, &admitted.actor)?,
        }
        Ok(Answer::Silent)
    }

    /// Words that this event cannot carry to the model wait for one that can.
    fn heard(&self, actor: &Actor, answer: Answer) -> Answer {
        let place = &self.workspace.place;
        match (answer, hooks::is_heard(self.payload)) {
            (Answer::Context(text), false) => {
                doors::keep_words(place, actor, &text);
                Answer::Silent
            }
            (Answer::Context(text), true) => {
                let kept = doors::kept_words(place, actor);
                context(format!("{kept}{text}").trim_end())
            }
            (Answer::Silent, true) => context(doors::kept_words(place, actor).trim_end()),
            (other, _) => other,
        }
    }
}

/// What is refused here concerns nobody but us.
fn unless_refused<T>(came: Result<T, Failure>) -> Result<(), Failure> {
    match came {
        Ok(_) | Err(Failure::Refused(_)) => Ok(()),
        Err(other) => Err(other),
    }
}

/// A refusal in words; what else went wrong is no answer.
fn refusal(failure: Failure, exit: u8) -> Result<Answer, Failure> {
    match failure {
        Failure::Refused(_) => {
            let Problem { message, next, .. } = Problem::from(failure);
            Ok(Answer::No { why: format!("Baton: {message}. Next: {next}"), exit })
        }
        other => Err(other),
    }
}

/// Nobody watches a tree being made for a client.
struct Unwatched;

impl baton_engine::trees::Door for Unwatched {
    fn step(&mut self, _: &str) {}

    fn wrote(&mut self, _: &[u8]) {}

    fn end_wanted(&mut self) -> bool {
        false
    }
}

fn context(text: &str) -> Answer {
    match text.trim() {
        "" => Answer::Silent,
        text => Answer::Context(text.to_owned()),
    }
}

/// Where the client keeps variables for the commands its agent runs: the session goes there, so
/// that `baton` in the shell is the same session.
fn export(credential: &str) {
    let Some(path) = std::env::var_os("CLAUDE_ENV_FILE").filter(|path| !path.is_empty()) else {
        return;
    };
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
    if let Ok(mut file) = opened {
        use std::io::Write as _;
        let _ = writeln!(file, "export BATON_SESSION='{credential}'");
    }
}
