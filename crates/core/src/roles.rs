//! Roles: what a session may do, beside what claims and zones allow it.
//!
//! Owns the rule (role, deed) → allowed or refused, and which role is narrower than another. A role
//! only takes away: no role lets a session do what it could not do without one. A session without a
//! role, or with a name that nobody defined, is not looked at here. What the built-in ones may is
//! in `builtin`, who may set one in `giving`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::id::SessionId;
use crate::policy;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::sessions::Session;
use crate::view::View;

mod builtin;
pub mod giving;
#[cfg(test)]
mod tests;
pub mod writing;

pub use builtin::NAMES;

pub const ROLES_MAX: usize = 50;
/// Paths of all roles and kinds together: every write of a session with a role looks at them.
pub const PATHS_MAX: usize = 500;
/// Each session's own folder is below this.
pub const SCRATCH: &str = ".baton/scratch";

/// What a file is for, as far as roles are concerned. Each file is of one kind.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// What is neither of the others; or the paths that are said to be source.
    Source,
    Tests,
    Docs,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Source, Self::Tests, Self::Docs];

    pub fn word(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Tests => "tests",
            Self::Docs => "docs",
        }
    }
}

/// Something that a role may or may not write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Part {
    Kind(Kind),
    /// The session's own scratch folder.
    Scratch,
    Paths(Resource),
}

impl TryFrom<String> for Part {
    type Error = String;

    /// `kind:tests`, `kind:scratch`, or a path or pattern.
    fn try_from(text: String) -> Result<Self, String> {
        match text.strip_prefix("kind:") {
            Some("scratch") => Ok(Self::Scratch),
            Some(word) => Kind::ALL
                .into_iter()
                .find(|kind| kind.word() == word)
                .map(Self::Kind)
                .ok_or_else(|| format!("{text:?}: there are kind:source, tests, docs, scratch")),
            None => match Resource::parse(&text) {
                Ok(Resource::Name { .. }) => Err(format!("{text:?} is a name, not a path")),
                Ok(path) => Ok(Self::Paths(path)),
                Err(error) => Err(format!("{text:?}: {error}")),
            },
        }
    }
}

impl From<Part> for String {
    fn from(part: Part) -> Self {
        part.to_string()
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kind(kind) => write!(formatter, "kind:{}", kind.word()),
            Self::Scratch => formatter.write_str("kind:scratch"),
            Self::Paths(resource) => write!(formatter, "{resource}"),
        }
    }
}

/// What an agent's client offers it, whatever the client calls it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    Read,
    Search,
    Edit,
    Shell,
    Web,
    /// Starting other agents.
    Agents,
}

impl Tool {
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Search, Self::Edit, Self::Shell, Self::Web, Self::Agents];

    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Search => "search",
            Self::Edit => "edit",
            Self::Shell => "shell",
            Self::Web => "web",
            Self::Agents => "agents",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Role {
    /// What it is for, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// What it may write; everything when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<Part>>,
    /// What it may not write all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Part>,
    pub tools: Vec<Tool>,
    pub commit: bool,
    pub land: bool,
    pub deploy: bool,
}

impl Default for Role {
    /// Everything.
    fn default() -> Self {
        Self {
            about: String::new(),
            write: None,
            deny: Vec::new(),
            tools: Tool::ALL.to_vec(),
            commit: true,
            land: true,
            deploy: true,
        }
    }
}

/// What the policy says of roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    /// Which paths are of which kind, where the usual ones do not fit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<Kind, Vec<Resource>>,
    /// The project's own roles; one with the name of a built-in one takes its place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub named: BTreeMap<String, Role>,
}

impl Rules {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The role, or which there are: a misspelled one would take nothing away.
    pub fn must_have(&self, name: &str) -> Result<Role, Refusal> {
        self.role(name).ok_or_else(|| {
            let names: Vec<String> = self.all().into_keys().collect();
            let (given, allowed) = (format!("{name:?}"), names.join(", "));
            Refusal::OutOfRange { what: "role", given, allowed }
        })
    }

    pub fn role(&self, name: &str) -> Option<Role> {
        self.named.get(name).cloned().or_else(|| builtin::role(name))
    }

    /// Every role there is, by name.
    pub fn all(&self) -> BTreeMap<String, Role> {
        let built_in =
            NAMES.into_iter().filter_map(|name| Some((name.to_owned(), self.role(name)?)));
        built_in.chain(self.named.clone()).collect()
    }

    fn kinds(&self) -> Kinds {
        let of = |kind| match self.kinds.get(&kind) {
            Some(paths) => paths.clone(),
            None => builtin::paths(kind),
        };
        let scratch = Resource::parse(&format!("{SCRATCH}/")).into_iter().collect();
        Kinds {
            source: self.kinds.get(&Kind::Source).cloned(),
            tests: of(Kind::Tests),
            docs: of(Kind::Docs),
            scratch,
        }
    }
}

/// The folder that is one session's own to write.
pub fn scratch_folder(session: &SessionId) -> String {
    format!("{SCRATCH}/{session}/")
}

/// The paths of each kind. What is in a scratch folder is of no kind; a test is a test even where
/// it looks like documentation.
#[derive(Debug)]
struct Kinds {
    source: Option<Vec<Resource>>,
    tests: Vec<Resource>,
    docs: Vec<Resource>,
    scratch: Vec<Resource>,
}

fn reach(paths: &[Resource], resource: &Resource) -> bool {
    paths.iter().any(|path| path.overlaps(resource))
}

fn cover(paths: &[Resource], resource: &Resource) -> bool {
    paths.iter().any(|path| path.covers(resource))
}

impl Kinds {
    /// May some of it be of this kind?
    fn reaches(&self, kind: Kind, resource: &Resource) -> bool {
        if cover(&self.scratch, resource) {
            return false;
        }
        match kind {
            Kind::Tests => reach(&self.tests, resource),
            Kind::Docs => reach(&self.docs, resource) && !cover(&self.tests, resource),
            Kind::Source => {
                let elsewhere = cover(&self.tests, resource) || cover(&self.docs, resource);
                let said = self.source.as_ref().is_none_or(|paths| reach(paths, resource));
                said && !elsewhere
            }
        }
    }

    /// Is all of it surely of this kind?
    fn covers(&self, kind: Kind, resource: &Resource) -> bool {
        if reach(&self.scratch, resource) {
            return false;
        }
        match kind {
            Kind::Tests => cover(&self.tests, resource),
            Kind::Docs => cover(&self.docs, resource) && !reach(&self.tests, resource),
            Kind::Source => {
                let said = self.source.as_ref().is_none_or(|paths| cover(paths, resource));
                said && !reach(&self.tests, resource) && !reach(&self.docs, resource)
            }
        }
    }

    fn part_reaches(&self, part: &Part, session: &SessionId, resource: &Resource) -> bool {
        match part {
            Part::Kind(kind) => self.reaches(*kind, resource),
            Part::Scratch => own_scratch(session).is_some_and(|own| own.overlaps(resource)),
            Part::Paths(paths) => paths.overlaps(resource),
        }
    }

    fn part_covers(&self, part: &Part, session: &SessionId, resource: &Resource) -> bool {
        match part {
            Part::Kind(kind) => self.covers(*kind, resource),
            Part::Scratch => own_scratch(session).is_some_and(|own| own.covers(resource)),
            Part::Paths(paths) => paths.covers(resource),
        }
    }
}

fn own_scratch(session: &SessionId) -> Option<Resource> {
    Resource::parse(&scratch_folder(session)).ok()
}

/// What somebody is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed<'a> {
    /// All of it may be written.
    Write(&'a Resource),
    /// It is kept from others. A folder is of the kind that a plain file in it is of: what else
    /// lies there is judged when it is written.
    Hold(&'a Resource),
    Commit,
    Land,
    Deploy,
    Use(Tool),
}

/// What a role does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("role {role} may not {what}")]
pub struct Refused {
    pub role: String,
    /// `write src/a.rs`, `commit`, `use the shell`.
    pub what: String,
    /// What it may instead, in words.
    pub may: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource>,
}

/// May a session of this role do that? A role that the policy only names takes nothing away.
pub fn judge(
    rules: &Rules,
    role: &str,
    session: &SessionId,
    deed: Deed<'_>,
) -> Result<(), Box<Refused>> {
    let Some(found) = rules.role(role) else { return Ok(()) };
    let (allowed, what) = match deed {
        Deed::Write(resource) => {
            let allowed = may_write(rules, &found, session, resource);
            (allowed, format!("write {resource}"))
        }
        Deed::Hold(resource) => {
            let file = file_within(resource);
            let allowed = may_write(rules, &found, session, file.as_ref().unwrap_or(resource));
            (allowed, format!("claim {resource} for writing"))
        }
        Deed::Commit => (found.commit, "commit".to_owned()),
        Deed::Land => (found.land, "land".to_owned()),
        Deed::Deploy => (found.deploy, "deploy".to_owned()),
        Deed::Use(tool) => {
            let what = match tool {
                Tool::Shell => "use the shell".to_owned(),
                tool => format!("use the tool {}", tool.word()),
            };
            (found.tools.contains(&tool), what)
        }
    };
    if allowed {
        return Ok(());
    }
    let resource = match deed {
        Deed::Write(resource) | Deed::Hold(resource) => Some(resource.clone()),
        _ => None,
    };
    let may = found.words(session);
    Err(Box::new(Refused { role: role.to_owned(), what, may, resource }))
}

/// A file in a folder, of which nothing is known but where it lies.
fn file_within(resource: &Resource) -> Option<Resource> {
    let text = resource.to_string();
    let folder = text.strip_prefix("path:").unwrap_or(&text).strip_suffix('/')?;
    Resource::literal(&format!("{folder}/file")).ok()
}

/// Names of things are claimed by whoever needs them: roles are about files.
fn may_write(rules: &Rules, role: &Role, session: &SessionId, resource: &Resource) -> bool {
    if matches!(resource, Resource::Name { .. }) || (role.write.is_none() && role.deny.is_empty()) {
        return true;
    }
    may_write_by(&rules.kinds(), role, session, resource)
}

fn may_write_by(kinds: &Kinds, role: &Role, session: &SessionId, resource: &Resource) -> bool {
    let denied = role.deny.iter().any(|part| kinds.part_reaches(part, session, resource));
    let given = role
        .write
        .as_ref()
        .is_none_or(|parts| parts.iter().any(|part| kinds.part_covers(part, session, resource)));
    given && !denied
}

impl Role {
    /// Has each session of it a folder of its own?
    pub fn writes_scratch(&self) -> bool {
        self.write.iter().flatten().any(|part| *part == Part::Scratch)
    }

    /// What it may write, in words.
    pub fn words(&self, session: &SessionId) -> String {
        let named = |parts: &[Part]| {
            let words = parts.iter().map(|part| match part {
                Part::Kind(kind) => kind.word().to_owned(),
                Part::Scratch => scratch_folder(session),
                Part::Paths(paths) => paths.to_string(),
            });
            words.collect::<Vec<_>>().join(", ")
        };
        let write = match &self.write {
            None => "everything".to_owned(),
            Some(parts) if parts.is_empty() => "nothing".to_owned(),
            Some(parts) => named(parts),
        };
        match self.deny.is_empty() {
            true => format!("writes {write}"),
            false => format!("writes {write} but {}", named(&self.deny)),
        }
    }
}

/// May whoever acts do that, by the role of its session and by its own where it is a subagent?
/// Without a role nothing is read. A person is told at the doors and not stopped.
pub fn admit(
    view: &dyn View,
    session: &Session,
    deeds: &[Deed<'_>],
    context: &Context,
) -> Result<(), Refusal> {
    let Some(rules) = rules_for(view, session, context)? else { return Ok(()) };
    for deed in deeds {
        admit_by(&rules, session, *deed, context).map_err(Refusal::Role)?;
    }
    Ok(())
}

/// What the policy says of roles, where whoever acts is held by one.
pub(crate) fn rules_for(
    view: &dyn View,
    session: &Session,
    context: &Context,
) -> Result<Option<Rules>, Refusal> {
    let without = session.role.is_none() && context.actor.role.is_none();
    if without || context.actor.person {
        return Ok(None);
    }
    Ok(Some(policy::in_force(view)?.unwrap_or_default().roles))
}

/// As `admit`, with the policy at hand.
pub(crate) fn admit_by(
    rules: &Rules,
    session: &Session,
    deed: Deed<'_>,
    context: &Context,
) -> Result<(), Box<Refused>> {
    let roles = session.role.iter().chain(&context.actor.role);
    roles.into_iter().try_for_each(|role| judge(rules, role, &session.session, deed))
}
