//! Tasks from files: a checklist, a folder of task files, or the JSONL export of beads.
//!
//! Owns the way from files to one decision. Everything is read and understood before anything is
//! written; what is not understood is refused with file, line and column. What an item is called
//! follows from the file alone, so that reading it again files nothing (`tasks::importing`).

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use baton_core::context::{Actor, Observed};
use baton_core::id::TaskId;
use baton_core::notices::Notice;
use baton_core::refusal::Refusal;
use baton_core::task::{State, Task};
use baton_core::tasks::adding;
use baton_core::tasks::importing::{self, Hold, Item, Tie};
use baton_core::tasks::refused::Refused;
use baton_core::tasks::{KEY_BYTES_MAX, WORD_BYTES_MAX};
use baton_core::view::{Query, only};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::tasks as api;
use crate::escape;
use crate::export::{CHECKLIST, TASKS};
use crate::failure::Failure;
use crate::resources::named;
use crate::workspace::{Retry, Workspace};
use found::{At, Found, Identity, Reference, Status};

mod beads;
mod checklist;
mod found;
mod front;
mod task_file;

/// The largest file that is read.
pub const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The most files of a folder.
pub const FILES_MAX: usize = 10_000;
/// Where beads keeps its export.
const BEADS: [&str; 2] = ["issues.jsonl", ".beads/issues.jsonl"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Checklist,
    Files,
    Beads,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Checklist => "checklist",
            Self::Files => "files",
            Self::Beads => "beads",
        }
    }
}

/// A task that was filed, or that would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FiledItem {
    /// Nothing in a dry run.
    pub task: Option<TaskId>,
    pub title: String,
    pub state: State,
    pub file: PathBuf,
    pub line: usize,
    /// Its state there and whose it is, where that is more than can be taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub there: Option<String>,
}

/// An item that is a task already; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownItem {
    pub task: TaskId,
    pub title: String,
    pub state: State,
    pub file: PathBuf,
    pub line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedItem {
    pub title: String,
    pub file: PathBuf,
    pub line: usize,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    pub from: PathBuf,
    pub format: Format,
    /// Nothing was written.
    pub dry_run: bool,
    pub filed: Vec<FiledItem>,
    pub known: Vec<KnownItem>,
    pub skipped: Vec<SkippedItem>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// What was read: items, and files that hold none.
struct Source {
    format: Format,
    found: Vec<Found>,
    skipped: Vec<SkippedItem>,
}

pub fn import(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Import,
    operation: Option<&str>,
) -> Result<Imported, Failure> {
    let source = read(cwd, &wanted.from)?;
    if let Some(name) = &wanted.source {
        check_source(name)?;
    }
    let plan = Plan::of(workspace, source, wanted.source.as_deref())?;
    let retry = operation.map(|operation| Retry::of(operation, "import", &plan.items));
    let observed = Observed::default();
    let filed = match wanted.dry_run {
        true => workspace.look(actor, observed, |view, context| {
            Ok(importing::import(view, &plan.items, context)?.1)
        }),
        false => workspace.decide_once(
            actor,
            observed,
            retry.as_ref(),
            |_| true,
            |view, context| importing::import(view, &plan.items, context),
        ),
    };
    let filed = filed.map_err(|failure| plan.placed(failure))?;
    Ok(plan.told(&wanted.from, wanted.dry_run, filed))
}

fn check_source(name: &str) -> Result<(), Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !name.is_empty() && name.len() <= WORD_BYTES_MAX && name.chars().all(fits) {
        true => Ok(()),
        false => Err(Refusal::OutOfRange {
            what: "source",
            given: format!("\"{}\"", escape::line(name)),
            allowed: format!("1 to {WORD_BYTES_MAX} letters, digits, -, _ and ."),
        }
        .into()),
    }
}

fn read(cwd: &Path, from: &Path) -> Result<Source, Failure> {
    let full = cwd.join(from);
    let unread = |source| Failure::File { doing: "cannot be read", path: from.to_owned(), source };
    if std::fs::metadata(&full).map_err(unread)?.is_dir() {
        return read_folder(&full, from);
    }
    let text = text_of(&full, from)?;
    let ending = from.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let (format, found) = match ending.to_ascii_lowercase().as_str() {
        "jsonl" => (Format::Beads, beads::read(from, &text)?),
        "md" | "markdown" => match task_file::read(from, &text)? {
            Some(found) => (Format::Files, vec![found]),
            None => (Format::Checklist, checklist::read(from, &text)?),
        },
        _ => {
            let detail = "its name must end in .md (a checklist or a task) or .jsonl (beads)";
            return Err(At::new(from, 1, 1).wrong(detail));
        }
    };
    Ok(Source { format, found, skipped: Vec::new() })
}

/// An export of Baton's, a folder of task files, or one of beads.
fn read_folder(full: &Path, from: &Path) -> Result<Source, Failure> {
    let mut source = Source { format: Format::Files, found: Vec::new(), skipped: Vec::new() };
    let below = full.join(TASKS);
    let whole = below.is_dir() || full.join(CHECKLIST).is_file();
    match whole {
        true if below.is_dir() => read_files(&below, &from.join(TASKS), &mut source)?,
        true => {}
        false => read_files(full, from, &mut source)?,
    }
    if full.join(CHECKLIST).is_file() {
        let name = from.join(CHECKLIST);
        source.found.extend(checklist::read(&name, &text_of(&full.join(CHECKLIST), &name)?)?);
    }
    if source.found.is_empty()
        && let Some(name) = BEADS.iter().find(|name| full.join(name).is_file())
    {
        let path = from.join(name);
        let found = beads::read(&path, &text_of(&full.join(name), &path)?)?;
        return Ok(Source { format: Format::Beads, found, skipped: Vec::new() });
    }
    match source.found.is_empty() {
        true => Err(At::new(from, 1, 1).wrong("it holds no task: no .md file with front matter")),
        false => Ok(source),
    }
}

fn read_files(full: &Path, from: &Path, source: &mut Source) -> Result<(), Failure> {
    let unread = |source| Failure::File { doing: "cannot be read", path: from.to_owned(), source };
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(full).map_err(unread)? {
        let name = entry.map_err(unread)?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && !name.starts_with('.') {
            names.push(name);
        }
        if names.len() > FILES_MAX {
            return Err(At::new(from, 1, 1).wrong(format!("it has more than {FILES_MAX} files")));
        }
    }
    // t2 before t10.
    names.sort_by_key(|name| (name.len(), name.clone()));
    for name in names {
        let path = from.join(&name);
        match task_file::read(&path, &text_of(&full.join(&name), &path)?)? {
            Some(found) => source.found.push(found),
            None => source.skipped.push(SkippedItem {
                title: name,
                file: path,
                line: 1,
                why: "it has no front matter".to_owned(),
            }),
        }
    }
    Ok(())
}

fn text_of(full: &Path, from: &Path) -> Result<String, Failure> {
    let unread = |source| Failure::File { doing: "cannot be read", path: from.to_owned(), source };
    let file = std::fs::File::open(full).map_err(unread)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(At::new(from, 1, 1).wrong(format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let good = String::from_utf8_lossy(good);
        let line = good.matches('\n').count() + 1;
        let column = good.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        At::new(from, line, column).wrong("it is not UTF-8 here")
    })
}

/// The items of an import, each with where it was found.
struct Plan {
    format: Format,
    items: Vec<Item>,
    found: Vec<Found>,
    skipped: Vec<SkippedItem>,
    /// Where each tie to something outside of the files stands.
    ties: Vec<(String, Reference)>,
}

impl Plan {
    fn of(workspace: &mut Workspace, source: Source, name: Option<&str>) -> Result<Self, Failure> {
        let mine = workspace.place.workspace.id.as_str().to_owned();
        let same = same_titles(workspace, &source.found)?;
        let Source { format, found, mut skipped } = source;
        // The item that stands for each one that was found, unless there is nothing to file.
        let mut places: Vec<Option<usize>> = Vec::with_capacity(found.len());
        let mut keys: BTreeMap<String, usize> = BTreeMap::new();
        let mut kept: Vec<Found> = Vec::new();
        for one in &found {
            if let Some(why) = over(one) {
                skipped.push(skip(one, why));
                places.push(None);
                continue;
            }
            let key = key_of(source_of(name, one), &one.identity);
            match (keys.get(&key), &one.identity) {
                (None, _) => {
                    keys.insert(key, kept.len());
                    places.push(Some(kept.len()));
                    kept.push(one.clone());
                }
                // A file and a line of the same export.
                (Some(place), Identity::Baton { .. }) => places.push(Some(*place)),
                (Some(place), _) => {
                    let At { file, line, .. } = &kept[*place].at;
                    let before = format!("{}:{line}", escape::line(&file.to_string_lossy()));
                    return Err(one.at.wrong(format!("the same task stands in {before}")));
                }
            }
        }
        let mut plan = Self { format, items: Vec::new(), found: kept, skipped, ties: Vec::new() };
        let names = Names::of(format, &found, &places);
        for place in 0..plan.found.len() {
            let source = source_of(name, &plan.found[place]).to_owned();
            let item = plan.item(workspace, place, &source, &names, &mine, &same)?;
            plan.items.push(item);
        }
        plan.refuse_circle()?;
        Ok(plan)
    }

    fn item(
        &mut self,
        workspace: &Workspace,
        place: usize,
        source: &str,
        names: &Names,
        mine: &str,
        same: &BTreeMap<String, String>,
    ) -> Result<Item, Failure> {
        let one = self.found[place].clone();
        let mut paths = Vec::new();
        for path in &one.paths {
            let root = &workspace.place.root;
            let settled = named(&workspace.place, root, std::slice::from_ref(&path.name));
            paths.extend(settled.map_err(|failure| path.at.wrong(said(&failure)))?);
        }
        let mut ties: Vec<Tie> = Vec::new();
        for reference in &one.after {
            let tie = match names.place(&one.identity, &reference.name) {
                Some(None) => continue,
                Some(Some(other)) => Tie::Item(other),
                None => outside(source, &one.identity, &reference.name, mine),
            };
            if let Tie::Key(name) | Tie::Task(name) = &tie {
                self.ties.push((name.clone(), reference.clone()));
            }
            ties.push(tie);
        }
        let parts = one.parts.iter().filter_map(|part| names.places.get(*part).copied().flatten());
        ties.extend(parts.map(Tie::Item));
        let own = match &one.identity {
            Identity::Baton { workspace, task } if workspace == mine => Some(task.clone()),
            _ => one.perhaps.clone().filter(|id| same.get(id) == Some(&one.title)),
        };
        let hold = match one.status {
            Status::Blocked if ties.is_empty() => {
                let there = one.state_there.as_deref().unwrap_or("blocked");
                Some(Hold::Blocked(format!("it was {there} where it was imported from")))
            }
            Status::Parked => Some(Hold::Parked),
            _ => None,
        };
        let request = adding::Request {
            title: one.title.clone(),
            body: one.body.clone(),
            priority: one.priority,
            phase: one.phase,
            paths,
            role: one.role.clone(),
            labels: one.labels.clone(),
            max_attempts: one.max_attempts,
            key: Some(key_of(source, &one.identity)),
            ..adding::Request::default()
        };
        let item = Item { request, ties, hold, own };
        importing::check(&item).map_err(|refusal| one.at.wrong(said(&refusal.into())))?;
        Ok(item)
    }

    fn refuse_circle(&self) -> Result<(), Failure> {
        let Err(circle) = importing::order(&self.items) else { return Ok(()) };
        let name = |place: &usize| match &self.found[*place].identity {
            Identity::Id(id) => id.clone(),
            Identity::Baton { task, .. } => task.clone(),
            Identity::Title(_) => self.found[*place].title.clone(),
        };
        let names: Vec<String> = circle.iter().map(|place| escape::line(&name(place))).collect();
        let at = circle.first().map(|place| self.found[*place].at.clone());
        let at = at.unwrap_or_else(|| At::new(Path::new("."), 1, 1));
        Err(at.wrong(format!("tasks would wait for each other: {}", names.join(" waits for "))))
    }

    /// What the decision refused, with where it stands.
    fn placed(&self, failure: Failure) -> Failure {
        if let Failure::Refused(Refusal::Task(refused)) = &failure
            && let Refused::Unknown { task, .. } = &**refused
            && let Some((_, reference)) = self.ties.iter().find(|(name, _)| name == task)
        {
            let name = escape::line(&reference.name);
            return reference.at.wrong(format!("it comes after \"{name}\", which is nowhere"));
        }
        failure
    }

    fn told(self, from: &Path, dry_run: bool, filed: importing::Filed) -> Imported {
        let mut told = Imported {
            from: from.to_owned(),
            format: self.format,
            dry_run,
            filed: Vec::new(),
            known: Vec::new(),
            skipped: self.skipped,
            notices: filed.notices,
        };
        for (one, settled) in self.found.into_iter().zip(filed.items) {
            let there = there(&one);
            let (title, file, line) = (one.title, one.at.file, one.at.line);
            let importing::Settled { task, state, known } = settled;
            match known {
                true => told.known.push(KnownItem { task, title, state, file, line }),
                false => {
                    let task = Some(task).filter(|_| !dry_run);
                    told.filed.push(FiledItem { task, title, state, file, line, there });
                }
            }
        }
        told
    }
}

/// Why there is nothing to file.
fn over(one: &Found) -> Option<String> {
    match one.status {
        Status::Done => Some("it is done".to_owned()),
        Status::Cancelled => Some("it is cancelled".to_owned()),
        Status::Other => {
            let kind = one.state_there.as_deref().unwrap_or("something else");
            Some(format!("{} is not work to be done", escape::line(kind)))
        }
        _ => None,
    }
}

fn skip(one: &Found, why: String) -> SkippedItem {
    let At { file, line, .. } = one.at.clone();
    SkippedItem { title: one.title.clone(), file, line, why }
}

fn there(one: &Found) -> Option<String> {
    let state = one.state_there.clone().filter(|_| one.status != Status::Open);
    let parts: Vec<String> = state.into_iter().chain(one.assigned_to.clone()).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The name under which an item's id or title counts: a list is the same however it is reached.
fn source_of<'a>(name: Option<&'a str>, one: &Found) -> &'a str {
    name.unwrap_or(one.format.name())
}

/// `import:beads:bd-12`. What is too long for a key, or would not be seen in it, is hashed.
fn key_of(source: &str, identity: &Identity) -> String {
    let hashed = |text: &str| blake3::hash(text.as_bytes()).to_hex()[..32].to_owned();
    match identity {
        Identity::Baton { workspace, task } => {
            let plain = format!("import:baton:{workspace}:{task}");
            let fits = plain.len() <= KEY_BYTES_MAX && plain.chars().all(|c| c.is_ascii_graphic());
            if fits { plain } else { format!("import:baton:~{}", hashed(&plain)) }
        }
        Identity::Id(id) => {
            let plain = format!("import:{source}:{id}");
            let fits = plain.len() <= KEY_BYTES_MAX && id.chars().all(|c| c.is_ascii_graphic());
            if fits { plain } else { format!("import:{source}:~{}", hashed(id)) }
        }
        Identity::Title(title) => format!("import:{source}:~{}", hashed(title)),
    }
}

/// Something that no item here is: a task of this workspace, or what was imported before.
fn outside(source: &str, of: &Identity, name: &str, mine: &str) -> Tie {
    match of {
        Identity::Baton { workspace, .. } if workspace == mine => Tie::Task(name.to_owned()),
        Identity::Baton { workspace, .. } => {
            let (workspace, task) = (workspace.clone(), name.to_owned());
            Tie::Key(key_of(source, &Identity::Baton { workspace, task }))
        }
        _ => Tie::Key(key_of(source, &Identity::Id(name.to_owned()))),
    }
}

/// By which names items are meant within the files.
struct Names {
    by_name: BTreeMap<String, Option<usize>>,
    places: Vec<Option<usize>>,
}

impl Names {
    fn of(format: Format, found: &[Found], places: &[Option<usize>]) -> Self {
        let mut by_name = BTreeMap::new();
        for (one, place) in found.iter().zip(places) {
            let name = match &one.identity {
                Identity::Baton { workspace, task } => format!("{workspace}\0{task}"),
                Identity::Id(id) => format!("\0{id}"),
                Identity::Title(_) => continue,
            };
            by_name.entry(name).or_insert(*place);
        }
        // Files mean each other by their names and titles as well; an id comes before both.
        for (one, place) in found.iter().zip(places).filter(|_| format == Format::Files) {
            if !matches!(one.identity, Identity::Baton { .. }) {
                let stem = one.at.file.file_stem().unwrap_or_default().to_string_lossy();
                by_name.entry(format!("\0{stem}")).or_insert(*place);
                by_name.entry(format!("\0{}", one.title)).or_insert(*place);
            }
        }
        Self { by_name, places: places.to_vec() }
    }

    /// The item that `of` means; nothing inside when it is finished.
    fn place(&self, of: &Identity, name: &str) -> Option<Option<usize>> {
        let scope = match of {
            Identity::Baton { workspace, .. } => workspace.as_str(),
            _ => "",
        };
        self.by_name.get(&format!("{scope}\0{name}")).copied()
    }
}

/// The titles, as files show them, of tasks that items may be.
fn same_titles(
    workspace: &mut Workspace,
    found: &[Found],
) -> Result<BTreeMap<String, String>, Failure> {
    let ids: Vec<&String> = found.iter().filter_map(|one| one.perhaps.as_ref()).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let queries: Vec<Query> = ids.iter().map(|id| Query::get::<Task>(id.as_str())).collect();
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let mut titles = BTreeMap::new();
        for rows in view.read(&queries)? {
            for task in only::<Task>(&rows)? {
                titles.insert(task.task.0.clone(), escape::line(&task.title));
            }
        }
        Ok(titles)
    })
}

/// What is wrong, in words for a place in a file.
fn said(failure: &Failure) -> String {
    if let Failure::Refused(Refusal::TooLong { what, bytes_max }) = failure {
        return format!("the {what} is longer than {bytes_max} bytes");
    }
    let mut text = failure.to_string();
    let mut cause = std::error::Error::source(failure);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
