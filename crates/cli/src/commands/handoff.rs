//! `handoff offer`, `accept`, `decline`, `list`, `show`, and `task checkpoint`.
//!
//! Owns the words of their answers; what may happen is decided in `baton_core::handoffs`. Whatever
//! an agent wrote is shown to another as quoted data (S20).

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::handoff::{self, Artifact, End, To};
use baton_core::handoffs::accepting::Answered;
use baton_core::handoffs::checkpoint::Saved;
use baton_core::handoffs::offering::Offered;
use baton_core::notices::{News, Notice};
use baton_core::task::State;
use baton_core::task::dossier::{Checkpoint, Feedback};
use baton_engine::api::handoffs as api;
use baton_engine::handing::{self, HandoffList, ListedHandoff, Received, ShownHandoff, markdown};
use clap::Subcommand;

use super::start;
use super::task::pages::quoted;
use crate::arguments::Common;
use crate::desk::{self, Desk, Outcome};
use crate::news::notices_words;
use crate::render::{self, Paint, counted, json_shown, paint, shown, table};

#[derive(Debug, Subcommand)]
pub(crate) enum Handoff {
    /// Offer your task to others, saying what only you know
    Offer(Box<api::Offer>),
    /// Take over what is offered: the task, its claims and its tree
    Accept(Accepting),
    /// Say that you will not have it, or take your own offer back
    Decline(api::Decline),
    /// What is offered now, and to whom
    List(api::List),
    /// Everything about one handoff, with all that came before it
    Show {
        /// The handoff, such as t3-h1, or its task
        #[arg(value_name = "ID")]
        handoff: String,
        /// As a file that `offer --file` reads
        #[arg(long)]
        markdown: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Accepting {
    #[command(flatten)]
    wanted: api::Accept,
    /// Start this client in its tree, as a session of its own that takes it over
    #[arg(long, value_name = "CLIENT")]
    pub(crate) start: Option<String>,
    #[command(flatten)]
    held: start::Held,
    /// Words for the client itself
    #[arg(last = true, value_name = "ARGS", requires = "start")]
    arguments: Vec<OsString>,
}

impl Accepting {
    /// What is accepted, where no client is to be started for it.
    pub(crate) fn of_own_accord(&self) -> Option<&api::Accept> {
        self.start.is_none().then_some(&self.wanted)
    }
}

impl From<api::Accept> for Accepting {
    fn from(wanted: api::Accept) -> Self {
        Self { wanted, start: None, held: start::Held::default(), arguments: Vec::new() }
    }
}

pub(crate) fn run(common: &Common, command: Handoff) -> Outcome {
    match command {
        Handoff::Offer(wanted) => offer(&mut Desk::open_to_act(common)?, &wanted),
        Handoff::Accept(Accepting { wanted, start: Some(client), held, arguments }) => {
            start::with_handoff(common, &wanted, &client, &held, &arguments)
        }
        Handoff::Accept(Accepting { wanted, .. }) => {
            accept(&mut Desk::open_to_act(common)?, &wanted)
        }
        Handoff::Decline(wanted) => decline(&mut Desk::open_to_act(common)?, &wanted),
        Handoff::List(wanted) => list(&mut Desk::open(common)?, &wanted),
        Handoff::Show { handoff, markdown } => show(&mut Desk::open(common)?, &handoff, markdown),
    }
}

pub(crate) fn to_words(to: &To) -> String {
    match to {
        To::Anyone => "anyone".to_owned(),
        To::Role(role) => format!("role {}", shown(role)),
        To::Session(holder) => shown(&holder.name),
    }
}

/// `was accepted by bob 5m ago`.
pub(crate) fn ended_words(end: &End) -> String {
    let when = render::ago(end.at());
    match end {
        End::Accepted { by, .. } => format!("was accepted by {} {when}", shown(&by.name)),
        End::Declined { by, why, .. } => {
            format!("was declined by {} {when}, saying: \"{}\"", shown(&by.name), shown(why))
        }
        End::Withdrawn { .. } => format!("was taken back {when}"),
        End::Returned { .. } => format!("was not accepted in time and returned {when}"),
        End::Unanswered { .. } => {
            format!("was not accepted in time and its giver is gone ({when})")
        }
        End::Exhausted { .. } => format!("ended {when}: nothing was new and no attempt was left"),
    }
}

fn offer(desk: &mut Desk, wanted: &api::Offer) -> Outcome {
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let offered = handing::offer(workspace, actor, cwd, wanted, operation.as_deref())?;
    desk.answer(&offered, offered_words);
    Ok(ExitCode::SUCCESS)
}

fn offered_words(offered: &Offered, colour: bool) -> String {
    let Offered { handoff, task, title, .. } = offered;
    let mut text = match offered.state {
        State::Active => format!(
            "{} {task} \"{}\" to {} as {}, until {}\n",
            paint("offered", Paint::Green, colour),
            shown(title),
            to_words(&offered.to),
            paint(handoff.as_str(), Paint::Bold, colour),
            render::until(offered.until)
        ),
        state => format!(
            "{}: {task} \"{}\" is {} now: nothing is new since it last changed hands, and {} of \
             {} attempts are used\n",
            paint("not offered", Paint::Red, colour),
            shown(title),
            state.name(),
            offered.attempts_used,
            offered.max_attempts
        ),
    };
    let _ = writeln!(text, "  {}", known_words(&offered.known));
    if offered.state == State::Active && !offered.progress {
        let _ = writeln!(
            text,
            "{}: no commit, result or passed check is new; it counts as attempt {} of {}",
            paint("note", Paint::Yellow, colour),
            offered.attempts_used,
            offered.max_attempts
        );
    }
    text + &notices_words(&offered.notices, colour)
}

/// `1 commit, 2 changed files (1 uncommitted), claims src/, check unit passed, 1 note`.
fn known_words(known: &handoff::Known) -> String {
    let work = &known.work;
    let mut parts = Vec::new();
    if !known.seen {
        parts.push("its tree could not be looked at from here".to_owned());
    }
    if !work.commits.is_empty() {
        parts.push(counted(work.commits.len() as u64, "commit", "commits"));
    }
    if known.seen {
        let files = counted(work.changed.len() as u64, "changed file", "changed files");
        let open = match work.uncommitted.len() {
            0 => String::new(),
            count => format!(" ({count} uncommitted)"),
        };
        parts.push(format!("{files}{open}{}", if work.more { " and more" } else { "" }));
    }
    if let Some(check) = &known.last_check {
        let how = if check.passed { "passed" } else { "failed" };
        parts.push(format!("check {} {how} {}", shown(&check.name), render::ago(check.at)));
    }
    if !known.claims.is_empty() {
        parts.push(format!("claims {}", render::resources(&known.claims)));
    }
    if !known.notes.is_empty() {
        parts.push(counted(known.notes.len() as u64, "note", "notes"));
    }
    parts.join(", ")
}

fn accept(desk: &mut Desk, wanted: &api::Accept) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let received = handing::accept(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&received, received_words);
    Ok(ExitCode::SUCCESS)
}

fn received_words(received: &Received, colour: bool) -> String {
    let got = &received.accepted;
    let mut text = format!(
        "{} {} \"{}\", attempt {} of {}, token {}, until {}\n",
        paint("took over", Paint::Green, colour),
        paint(got.task.as_str(), Paint::Bold, colour),
        shown(&got.title),
        got.attempt,
        got.max_attempts,
        got.token,
        render::until(got.expires_at)
    );
    for claim in &got.claims {
        let what = render::resources(&claim.resources);
        let _ = writeln!(text, "  now yours: {what}, token {}", claim.token);
    }
    for value in &got.set {
        let _ = writeln!(text, "  set {}, version {}", value.key, value.version);
    }
    if received.elsewhere {
        let place = received.tree_path.as_deref().map(shown);
        let far = || format!("tree {}, {}", got.tree, render::NOT_OF_THIS_CLONE);
        let place = place.unwrap_or_else(far);
        let _ =
            writeln!(text, "{}: the work is in {place}", paint("go there", Paint::Yellow, colour));
    }
    if let Some(body) = &got.body {
        text.push_str(&quoted(body));
    }
    for one in &got.chain {
        let _ = write!(text, "\n{}", paint(one.handoff.as_str(), Paint::Bold, colour));
        text.push_str(&handoff_words(one));
    }
    text.push_str(&feedback_words(&got.feedback));
    if let Some(saved) = &got.checkpoint {
        let _ = writeln!(text, "\n{}", saved_words(saved));
    }
    // That it was offered is no news to whoever has just accepted it.
    let is_this = |news: &News| matches!(news, News::Offered { task, .. } if *task == got.task);
    let notices: Vec<Notice> =
        got.notices.iter().filter(|notice| !is_this(&notice.news)).cloned().collect();
    text + &notices_words(&notices, colour)
}

fn feedback_words(feedback: &[Feedback]) -> String {
    let mut text = String::new();
    for said in feedback {
        let by = shown(&said.by.name);
        let _ = write!(text, "\nFeedback of {by} on attempt {}\n", said.attempt);
        text.push_str(&quoted(&said.text));
    }
    text
}

/// One handoff, quoted: the rest of its heading, then what was said and what is known.
pub(crate) fn handoff_words(one: &handoff::Handoff) -> String {
    let end = match &one.end {
        Some(end) => ended_words(end),
        None => format!("stands until {}", render::until(one.until)),
    };
    let (from, to) = (shown(&one.from.name), to_words(&one.to));
    let mut text = format!(" from {from} to {to}, {}, {end}\n", render::ago(one.offered_at));
    let said = &one.said;
    for (name, long) in [
        ("state", Some(&said.state)),
        ("changed", said.changed.as_ref()),
        ("remaining", Some(&said.remaining)),
        ("next", Some(&said.next)),
    ] {
        if let Some(long) = long {
            let _ = writeln!(text, "  {name}:");
            text.push_str(&quoted(long));
        }
    }
    for decision in &said.decisions {
        let _ = writeln!(
            text,
            "  decided: {}, because {}",
            shown(&decision.what),
            shown(&decision.why)
        );
    }
    for (name, list) in [
        ("blocker", &said.blockers),
        ("assumption", &said.assumptions),
        ("constraint", &said.constraints),
    ] {
        for entry in list {
            let _ = writeln!(text, "  {name}: {}", shown(entry));
        }
    }
    for artifact in &said.artifacts {
        let (Artifact::Path(name) | Artifact::Commit(name)) = artifact;
        let _ = writeln!(text, "  artifact: {}", shown(name));
    }
    if let Some(result) = &said.result {
        let _ = writeln!(text, "  result: {}", shown(&json_shown(result, false)));
    }
    for declined in &one.declined {
        let (by, why) = (shown(&declined.by.name), shown(&declined.why));
        let _ = writeln!(text, "  declined by {by}: \"{why}\"");
    }
    let _ = writeln!(text, "  known: {}", known_words(&one.known));
    text
}

/// `saved 5m ago from ann, attempt 1: 2 changed files …`.
pub(crate) fn saved_words(saved: &Checkpoint) -> String {
    let note = saved.note.as_deref().map(|note| format!("; \"{}\"", shown(note)));
    let commit = match &saved.known.work.commit {
        Some(commit) => {
            format!(" on commit {}", shown(&commit.chars().take(10).collect::<String>()))
        }
        None => String::new(),
    };
    let files = match saved.known.work.changed.as_slice() {
        [] => String::new(),
        some => {
            let names: Vec<String> = some.iter().take(5).map(|path| shown(path)).collect();
            format!(": {}{}", names.join(", "), if some.len() > 5 { ", …" } else { "" })
        }
    };
    format!(
        "saved {} from {}, attempt {}{commit}, {}{files}{}",
        render::ago(saved.at),
        shown(&saved.by.name),
        saved.attempt,
        known_words(&saved.known),
        note.unwrap_or_default()
    )
}

fn decline(desk: &mut Desk, wanted: &api::Decline) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let answered = handing::decline(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&answered, |answered: &Answered, colour| {
        let verb = if answered.withdrawn { "took back" } else { "declined" };
        let rest = match (answered.withdrawn, answered.still_open) {
            (true, _) => "",
            (false, true) => "; others may still take it, and its giver will be told",
            (false, false) => "; it stays with its giver, who will be told",
        };
        let notices = notices_words(&answered.notices, colour);
        format!(
            "{} {} of {} \"{}\"{rest}\n{notices}",
            paint(verb, Paint::Green, colour),
            answered.handoff,
            answered.task,
            shown(&answered.title)
        )
    });
    Ok(ExitCode::SUCCESS)
}

fn list(desk: &mut Desk, wanted: &api::List) -> Outcome {
    let found = handing::list(&mut desk.workspace, &desk.actor, wanted)?;
    desk.answer(&found, |found: &HandoffList, colour| {
        if found.handoffs.is_empty() {
            return "nothing is offered\n".to_owned();
        }
        let rows: Vec<Vec<String>> = found.handoffs.iter().map(row).collect();
        let headings = ["HANDOFF", "TASK", "FROM", "TO", "STANDS", "TITLE", "NEXT"];
        let more = if found.more { "there are more: --limit N\n" } else { "" };
        table(&headings, &rows, colour) + more
    });
    Ok(ExitCode::SUCCESS)
}

fn row(one: &ListedHandoff) -> Vec<String> {
    let stands = match (&one.end, one.open) {
        (Some(end), _) => ended_words(end),
        (None, true) => format!("until {}", render::until(one.until)),
        (None, false) => "over".to_owned(),
    };
    let (handoff, task) = (one.handoff.to_string(), one.task.to_string());
    let from = shown(&one.from.name);
    vec![handoff, task, from, to_words(&one.to), stands, shown(&one.title), shown(&one.next)]
}

fn show(desk: &mut Desk, handoff: &str, as_markdown: bool) -> Outcome {
    let page = handing::show(&mut desk.workspace, handoff)?;
    if as_markdown && !desk.json {
        let workspace = desk.workspace.place.workspace.id.as_str();
        desk::print(&markdown::of(&page.handoff, &page.title, workspace));
        return Ok(ExitCode::SUCCESS);
    }
    desk.answer(&page, shown_words);
    Ok(ExitCode::SUCCESS)
}

fn shown_words(page: &ShownHandoff, colour: bool) -> String {
    let one = &page.handoff;
    let title = format!("{} \"{}\"", one.task, shown(&page.title));
    let mut text = format!("{}\n", paint(&title, Paint::Bold, colour));
    for one in page.earlier.iter().chain([one]) {
        let _ = write!(text, "\n{}", paint(one.handoff.as_str(), Paint::Bold, colour));
        text.push_str(&handoff_words(one));
    }
    text.push_str(&feedback_words(&page.feedback));
    if let Some(saved) = &page.checkpoint {
        let _ = writeln!(text, "\n{}", saved_words(saved));
    }
    if page.open {
        let next = format!("baton handoff accept {}", one.handoff);
        let _ = writeln!(text, "{}: {next}", paint("next", Paint::Cyan, colour));
    }
    text
}

pub(crate) fn checkpoint(desk: &mut Desk, wanted: &api::Checkpoint) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let saved = handing::checkpoint(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&saved, |saved: &Saved, colour| {
        let mut text = String::new();
        for one in &saved.saved {
            let files = counted(one.changed.len() as u64, "changed file", "changed files");
            let unseen = if one.seen { "" } else { "; its tree could not be looked at from here" };
            let _ = writeln!(
                text,
                "{} {} \"{}\": {files}{unseen}",
                paint("saved", Paint::Green, colour),
                one.task,
                shown(&one.title)
            );
        }
        text + &notices_words(&saved.notices, colour)
    });
    Ok(ExitCode::SUCCESS)
}
