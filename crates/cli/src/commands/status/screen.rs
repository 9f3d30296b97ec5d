//! The one screen: what is on it, in which order, and what is cut when it does not fit.
//!
//! Owns the layout. What waits for a person is on top and is cut last. A line is cut before it is
//! painted, so that no colour is left open, and text of agents is escaped before it is measured.

use baton_core::claim::Mode;
use baton_core::landing::Landing;
use baton_core::time::Moment;
use baton_engine::copies::Info;
use baton_engine::listing::ListedClaim;
use baton_engine::overview::{InQueue, Matter, Overview};
use baton_engine::sessions::{Seat, SeatState};
use baton_engine::tasking::showing::{ListedTask, TasksAtAGlance};

use crate::commands::claims::ends;
use crate::commands::session::state_word;
use crate::render::{Paint, bytes, counted, holder as name, paint, resources, shown};

/// Where there is no terminal, lists are cut here.
const ROWS_MAX: usize = 50;
const WIDTH_DEFAULT: usize = 100;
/// Columns wider than this are cut, so that the others have room.
const CELL_MAX: usize = 30;

/// How much room there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) width: usize,
    /// None where nobody counts lines.
    pub(super) height: Option<usize>,
}

impl Size {
    /// A model reads a line to its end.
    pub(super) const BOUNDLESS: Self = Self { width: usize::MAX, height: None };

    pub(super) fn of_stdout() -> Self {
        match rustix::termios::tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Self { width: size.ws_col.into(), height: Some(size.ws_row.into()) }
            }
            _ => Self { width: WIDTH_DEFAULT, height: None },
        }
    }
}

/// A list with its title.
struct Section {
    title: String,
    headings: Vec<&'static str>,
    rows: Vec<(Vec<String>, Option<Paint>)>,
    /// How many rows are shown.
    cap: usize,
    /// Where the rest can be seen.
    more: &'static str,
}

impl Section {
    /// Lines it takes: a gap, the title, headings, rows, and the line about what was cut.
    fn height(&self) -> usize {
        if self.rows.is_empty() {
            return 0;
        }
        let headings = usize::from(!self.headings.is_empty());
        2 + headings + self.cap + usize::from(self.cap < self.rows.len())
    }
}

pub(super) fn draw(overview: &Overview, size: Size, colour: bool) -> Vec<String> {
    let mut sections = [
        matters(overview),
        sessions(&overview.sessions, overview.now),
        tasks(&overview.tasks, overview.now),
        claims(&overview.claims, overview.now),
        queue(&overview.queue, overview.now),
        landings(&overview.landings, overview.now),
    ];
    fit(&mut sections, size.height);
    let mut lines = vec![cut(&heading(overview), size.width)];
    lines[0] = paint(&lines[0], Paint::Bold, colour);
    if overview.matters.is_empty() {
        lines.push(paint("Nothing waits for a person.", Paint::Green, colour));
    }
    for section in &sections {
        lines.extend(section_lines(section, size.width, colour));
    }
    lines.push(String::new());
    lines.push(paint(&cut(&store_line(&overview.store), size.width), Paint::Dim, colour));
    lines
}

/// Cuts the longest list until all fits; what waits for a person last.
fn fit(sections: &mut [Section; 6], height: Option<usize>) {
    let Some(height) = height else {
        sections.iter_mut().for_each(|section| section.cap = section.cap.min(ROWS_MAX));
        return;
    };
    // The heading, the line that nothing waits, the store's line and its gap.
    let fixed = if sections[0].rows.is_empty() { 4 } else { 3 };
    let total = |sections: &[Section; 6]| -> usize {
        fixed + sections.iter().map(Section::height).sum::<usize>()
    };
    while total(sections) > height {
        let (first, others) = sections.split_at_mut(1);
        let longest = others.iter_mut().max_by_key(|section| section.cap);
        match longest.filter(|section| section.cap > 1) {
            Some(section) => section.cap -= 1,
            None if first[0].cap > 1 => first[0].cap -= 1,
            None => return,
        }
    }
}

fn heading(overview: &Overview) -> String {
    let now = overview.now.to_string();
    let time = now.get(11..19).unwrap_or(&now);
    let counts = tasks_counts(&overview.tasks);
    let tasks = if counts.is_empty() { String::new() } else { format!("; tasks: {counts}") };
    format!(
        "Baton at {time}Z: {}, {}, {}{tasks}",
        counted(overview.sessions.len() as u64, "session", "sessions"),
        counted(overview.claims.len() as u64, "claim", "claims"),
        counted(overview.queue.len() as u64, "waiting", "waiting")
    )
}

/// `3 ready, 1 active, 2 blocked`; nothing where there is no unfinished task.
fn tasks_counts(tasks: &TasksAtAGlance) -> String {
    let counts = [
        (tasks.ready, "ready"),
        (tasks.active, "active"),
        (tasks.review, "in review"),
        (tasks.blocked, "blocked"),
        (tasks.waiting, "waiting for a person"),
        (tasks.parked, "parked"),
        (tasks.failed, "failed"),
    ];
    let there = counts.iter().filter(|(count, _)| *count > 0);
    there.map(|(count, what)| counted(*count, what, what)).collect::<Vec<_>>().join(", ")
}

fn section_lines(section: &Section, width: usize, colour: bool) -> Vec<String> {
    if section.rows.is_empty() {
        return Vec::new();
    }
    let shown = &section.rows[..section.cap.min(section.rows.len())];
    let columns = shown.iter().map(|(cells, _)| cells.len()).max().unwrap_or(0);
    let cell_max = if width == usize::MAX { usize::MAX } else { CELL_MAX };
    let width_of = |column: usize| {
        let cells = shown.iter().filter_map(|(cells, _)| cells.get(column));
        let widest = cells.map(|cell| cell.chars().count().min(cell_max)).max().unwrap_or(0);
        widest.max(section.headings.get(column).map_or(0, |heading| heading.len()))
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    let line = |cells: Vec<&str>| {
        let last = cells.len().saturating_sub(1);
        let padded =
            cells.iter().zip(&widths).enumerate().map(|(at, (cell, wide))| match at == last {
                true => (*cell).to_owned(),
                false => format!("{:<wide$}", cut(cell, *wide)),
            });
        let text = format!("  {}", padded.collect::<Vec<_>>().join("  "));
        cut(text.trim_end(), width)
    };
    let mut lines = vec![String::new(), paint(&section.title, Paint::Bold, colour)];
    if !section.headings.is_empty() {
        lines.push(paint(&line(section.headings.clone()), Paint::Dim, colour));
    }
    for (cells, tint) in shown {
        let text = line(cells.iter().map(String::as_str).collect());
        lines.push(tint.map_or(text.clone(), |tint| paint(&text, tint, colour)));
    }
    let rest = section.rows.len() - shown.len();
    if rest > 0 {
        lines.push(paint(&format!("  and {rest} more: {}", section.more), Paint::Dim, colour));
    }
    lines
}

/// At most `width` characters, and a sign that there was more.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

fn matters(overview: &Overview) -> Section {
    let now = overview.now;
    let sentence = |matter: &Matter| match matter {
        Matter::Gate { gate } => {
            let (id, on, ask) = (&gate.gate, shown(&gate.on), shown(&gate.ask));
            format!("{id} on {on}, {}: {ask}", now.since(gate.opened_at))
        }
        Matter::PolicyChanged => {
            "baton.toml was changed and is not in force: baton policy show".to_owned()
        }
        Matter::PolicyUnreadable { why } => format!("baton.toml cannot be used: {}", shown(why)),
        Matter::LeftDirty { holder, paths, since, .. } => format!(
            "{} left changes in {} and its time ran out {} ago",
            name(holder),
            resources(paths),
            now.since(*since)
        ),
        Matter::HolderDead { name, claims, .. } => {
            let claims = counted(*claims as u64, "claim", "claims");
            format!("{} is gone and holds {claims} until somebody asks", shown(name))
        }
    };
    let mut rows = Vec::new();
    for matter in &overview.matters {
        rows.push((vec![sentence(matter)], Some(Paint::Yellow)));
        if let Matter::Gate { gate } = matter {
            rows.push((vec![format!("  {}", crate::commands::gate::answer(gate))], None));
        }
    }
    Section {
        title: "Waits for a person".to_owned(),
        headings: Vec::new(),
        cap: rows.len(),
        rows,
        more: "baton status --json",
    }
}

fn sessions(seats: &[Seat], now: Moment) -> Section {
    let row = |seat: &Seat| {
        let kind = match (&seat.client, seat.person) {
            (Some(client), _) => shown(client),
            (None, true) => "person".to_owned(),
            (None, false) => "-".to_owned(),
        };
        let tint = match seat.state {
            SeatState::Live => None,
            SeatState::Idle | SeatState::Ended => Some(Paint::Dim),
            SeatState::Dead => Some(Paint::Red),
        };
        let cells = vec![
            shown(&seat.name),
            kind,
            state_word(seat).to_owned(),
            seat.claims.to_string(),
            format!("within {}", now.since(seat.last_recorded_at)),
            seat.role.as_deref().map(shown).unwrap_or_default(),
        ];
        (cells, tint)
    };
    let rows: Vec<_> = seats.iter().map(row).collect();
    Section {
        title: "Sessions".to_owned(),
        headings: vec!["NAME", "CLIENT", "STATE", "CLAIMS", "LAST ACT", "ROLE"],
        cap: rows.len(),
        rows,
        more: "baton session list",
    }
}

fn tasks(tasks: &TasksAtAGlance, now: Moment) -> Section {
    let row = |task: &ListedTask| {
        let (who, run_out) = match &task.owner {
            Some(owner) => (shown(&owner.name), owner.run_out),
            None => ("-".to_owned(), false),
        };
        let next = task.next_action.as_deref().or(task.reason.as_deref());
        let cells = vec![
            task.task.to_string(),
            if run_out { "run out".to_owned() } else { task.state.name().to_owned() },
            who,
            format!("{}/{}", task.attempt, task.max_attempts),
            format!("{} ago", now.since(task.since)),
            shown(&task.title),
            next.map(shown).unwrap_or_default(),
        ];
        (cells, run_out.then_some(Paint::Dim))
    };
    let rows: Vec<_> = tasks.owned.iter().map(row).collect();
    Section {
        title: "Tasks".to_owned(),
        headings: vec!["TASK", "STATE", "OWNER", "ATTEMPT", "SINCE", "TITLE", "NEXT"],
        cap: rows.len(),
        rows,
        more: "baton task list",
    }
}

fn landings(landings: &[Landing], now: Moment) -> Section {
    let row = |landing: &Landing| {
        let cells = vec![
            landing.landing.to_string(),
            landing.state.name().to_owned(),
            name(&landing.by),
            format!("{} ago", now.since(landing.since)),
            shown(&landing.branch),
            landing.reason.as_deref().map(shown).unwrap_or_default(),
        ];
        (cells, None)
    };
    let rows: Vec<_> = landings.iter().map(row).collect();
    Section {
        title: "Waiting to land".to_owned(),
        headings: vec!["ID", "STATE", "WHO", "SINCE", "BRANCH", "WHY"],
        cap: rows.len(),
        rows,
        more: "baton queue list",
    }
}

fn claims(claims: &[ListedClaim], now: Moment) -> Section {
    let row = |claim: &ListedClaim| {
        let until = ends(claim, format!("in {}", claim.expires_at.since(now)));
        let shared = if claim.mode == Mode::Shared { " (shared)" } else { "" };
        let cells = vec![
            format!("{}{shared}", resources(&claim.resources)),
            name(&claim.holder),
            until,
            claim.reason.as_deref().map(shown).unwrap_or_default(),
        ];
        (cells, claim.run_out.then_some(Paint::Dim))
    };
    let rows: Vec<_> = claims.iter().map(row).collect();
    Section {
        title: "Claims".to_owned(),
        headings: vec!["WHAT", "WHO", "ENDS", "WHY"],
        cap: rows.len(),
        rows,
        more: "baton claims",
    }
}

fn queue(waiting: &[InQueue], now: Moment) -> Section {
    let row = |waiter: &InQueue| {
        let behind: Vec<String> = waiter.behind.iter().map(name).collect();
        let behind = match behind.as_slice() {
            [] => "nobody: it is next".to_owned(),
            [one] => one.clone(),
            [one, rest @ ..] => format!("{one} and {} more", rest.len()),
        };
        let cells = vec![
            name(&waiter.holder),
            resources(&waiter.resources),
            behind,
            format!("{} ago", now.since(waiter.since)),
        ];
        (cells, None)
    };
    let rows: Vec<_> = waiting.iter().map(row).collect();
    Section {
        title: "Queue".to_owned(),
        headings: vec!["WHO", "WAITS FOR", "BEHIND", "SINCE"],
        cap: rows.len(),
        rows,
        more: "baton status --json",
    }
}

fn store_line(store: &Info) -> String {
    let size = store.bytes.map(|size| format!(", {}", bytes(size))).unwrap_or_default();
    let entries = counted(store.entries, "entry", "entries");
    let place = shown(&store.place);
    format!("{entries}, epoch {}{size}, {place}", store.epoch)
}
