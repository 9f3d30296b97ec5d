//! Patterns: which paths of the workspace a claim is about, and whether two of them share a path.
//!
//! Owns spelling (every way to write a file gives one key), the glob language and the exact
//! overlap of patterns. Refuses to know the filesystem: links, existing folders and which tree is
//! meant are settled before a text gets here. Invariant (S2): `overlaps` has no false negative;
//! a text that is not understood is an error, and a product too large to search is an overlap.
//!
//! The language is described in `docs/design/0002-patterns.md`.

mod automaton;
mod charset;
mod error;
mod fold;
mod lexical;
mod syntax;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use automaton::{Automaton, Meeting};
pub use error::Error;
pub use fold::fold;
use syntax::{Alternative, Element, Segment};

/// Longest text of a path or glob, in bytes; Linux opens no longer path.
pub const TEXT_BYTES_MAX: usize = 4096;
/// Most segments of a path or of one alternative of a glob.
pub const SEGMENTS_MAX: usize = 256;
/// Most alternatives the braces of a glob may expand to.
pub const ALTERNATIVES_MAX: usize = 256;
/// Deepest nesting of braces.
pub const BRACE_DEPTH_MAX: usize = 16;
/// Most states of one glob's automaton; over it the glob is refused.
pub const GLOB_STATES_MAX: usize = 1 << 14;
/// Most pairs of states `overlaps` searches; over it the answer is "overlap".
pub const OVERLAP_STATES_MAX: usize = 1 << 24;
/// Most comparisons of character ranges in one search; over it the answer is "overlap".
pub const OVERLAP_STEPS_MAX: usize = 1 << 24;
/// Most steps `covers` spends on two globs; over it the answer is "not covered".
pub const COVER_STEPS_MAX: usize = 1 << 16;

/// A set of paths: one file, a folder with all below it, or a glob.
///
/// Equal, ordered and hashed by kind and key; `text` keeps the user's spelling.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct Pattern {
    text: String,
    key: String,
    shape: Shape,
}

#[derive(Clone)]
enum Shape {
    Path,
    Folder,
    Glob(Box<Glob>),
}

#[derive(Clone)]
struct Glob {
    prefix: String,
    automaton: Automaton,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Path,
    Folder,
    Glob,
}

/// Where the paths of a pattern lie relative to its literal prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The prefix is the only path.
    Exact,
    /// Paths may lie below the prefix.
    Below,
}

/// A pattern as it is stored and shown.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Pattern")]
enum Document {
    /// One path, never read as a glob.
    Path(String),
    /// A folder and everything below it; `.` is the whole workspace.
    Folder(String),
    /// A glob: `*` `?` `[…]` within a segment, `**` for segments, `{a,b}`.
    Glob(String),
}

/// The comparison key of a path: resolved lexically, then folded.
pub fn key_of(path: &str) -> Result<String, Error> {
    Ok(fold(&lexical::normalise(path)?))
}

/// Whether some path is matched by both. Exact over keys, save for the caps above.
pub fn overlaps(a: &Pattern, b: &Pattern) -> bool {
    use Shape::{Folder, Glob, Path};
    match (&a.shape, &b.shape) {
        (Path, Path) => a.key == b.key,
        (Path, Folder) => lexical::is_within(&a.key, &b.key),
        (Folder, Path) => lexical::is_within(&b.key, &a.key),
        (Folder, Folder) => {
            lexical::is_within(&a.key, &b.key) || lexical::is_within(&b.key, &a.key)
        }
        _ if !prefixes_agree(a, b) => false,
        (Glob(glob), Path) => glob.automaton.accepts(&b.key),
        (Path, Glob(glob)) => glob.automaton.accepts(&a.key),
        (Glob(glob), Folder) => glob.automaton.reaches(&b.key),
        (Folder, Glob(glob)) => glob.automaton.reaches(&a.key),
        (Glob(one), Glob(two)) => !matches!(one.automaton.meet(&two.automaton), Meeting::Never),
    }
}

/// The key of a path matched by both, a short one. None when there is none, or when the search
/// for it is over the cap.
pub fn witness(a: &Pattern, b: &Pattern) -> Option<String> {
    match a.to_automaton().meet(&b.to_automaton()) {
        Meeting::At(key) => Some(key),
        Meeting::Never | Meeting::Unknown => None,
    }
}

/// True only if surely every path of `b` is one of `a`. Exact between paths and folders, and
/// between globs up to a cap; a folder covers a glob only by the glob's literal prefix.
pub fn covers(a: &Pattern, b: &Pattern) -> bool {
    match (&a.shape, &b.shape) {
        (Shape::Path, Shape::Path) => a.key == b.key,
        (Shape::Path, _) => false,
        (Shape::Folder, _) => lexical::is_within(b.literal_prefix(), &a.key),
        (Shape::Glob(glob), Shape::Path) => glob.automaton.accepts(&b.key),
        (Shape::Glob(glob), _) => {
            a == b || prefixes_agree(a, b) && glob.automaton.includes(&b.to_automaton())
        }
    }
}

/// Every path of a pattern is its prefix or below, so two patterns can only meet if one prefix
/// holds the other.
fn prefixes_agree(a: &Pattern, b: &Pattern) -> bool {
    let (a, b) = (a.literal_prefix(), b.literal_prefix());
    lexical::is_within(a, b) || lexical::is_within(b, a)
}

impl Pattern {
    /// One path, taken as it is: no character in it is special.
    pub fn literal(path: &str) -> Result<Pattern, Error> {
        let text = lexical::normalise(path)?;
        if text.is_empty() {
            return Err(Error::Root);
        }
        Pattern::named(text, Shape::Path)
    }

    /// A folder: its own path and everything below. `.` is the whole workspace.
    pub fn folder(path: &str) -> Result<Pattern, Error> {
        let text = lexical::normalise(path)?;
        if text.is_empty() {
            return Ok(Pattern { text: ".".to_owned(), key: String::new(), shape: Shape::Folder });
        }
        Pattern::named(text, Shape::Folder)
    }

    fn named(text: String, shape: Shape) -> Result<Pattern, Error> {
        let key = fold(&text);
        if lexical::is_git_dir(key.split('/').next().unwrap_or(&key)) {
            return Err(Error::GitDir);
        }
        Ok(Pattern { text, key, shape })
    }

    /// A glob. One without wildcards is the path it names, and `a/` and `a/**` are the folder `a`,
    /// so that equal sets are equal patterns where that is easy to see.
    pub fn glob(text: &str) -> Result<Pattern, Error> {
        let mut alternatives = syntax::parse(text)?;
        if let [only] = &mut alternatives[..] {
            let names = only.segments.iter().take_while(|s| s.literal().is_some()).count();
            let spelling = std::mem::take(&mut only.spelling);
            match only.segments.get(names..) {
                Some([]) => return Pattern::literal(&spelling),
                Some([Segment::Tree]) if names == 0 => return Pattern::folder("."),
                Some([Segment::Tree]) => return Pattern::folder(&spelling),
                _ => {}
            }
        }
        if alternatives.iter().all(is_in_git_dir) {
            return Err(Error::GitDir);
        }
        let automaton = Automaton::new(alternatives.iter().map(|a| &a.segments[..]));
        let states = automaton.states();
        if states > GLOB_STATES_MAX {
            return Err(Error::TooManyStates { states, max: GLOB_STATES_MAX });
        }
        let (prefix, key) = (common_prefix(&alternatives), glob_key(&alternatives));
        let shape = Shape::Glob(Box::new(Glob { prefix, automaton }));
        Ok(Pattern { text: text.to_owned(), key, shape })
    }

    /// Whether the path is one of the pattern's. What names nothing in the workspace (absolute,
    /// leaving the root, the root itself) is matched by nothing.
    pub fn matches(&self, path: &str) -> bool {
        key_of(path).is_ok_and(|key| !key.is_empty() && self.matches_key(&key))
    }

    /// As `matches`, for a path that already is a key.
    pub fn matches_key(&self, key: &str) -> bool {
        match &self.shape {
            Shape::Path => self.key == key,
            Shape::Folder => lexical::is_within(key, &self.key),
            Shape::Glob(glob) => {
                lexical::is_within(key, &glob.prefix) && glob.automaton.accepts(key)
            }
        }
    }

    /// The folded leading segments without a wildcard, for an index: every path of the pattern is
    /// this prefix or lies below it. Empty for `**/*.rs`.
    pub fn literal_prefix(&self) -> &str {
        match &self.shape {
            Shape::Path | Shape::Folder => &self.key,
            Shape::Glob(glob) => &glob.prefix,
        }
    }

    pub fn reach(&self) -> Reach {
        if self.is_literal() { Reach::Exact } else { Reach::Below }
    }

    pub fn is_literal(&self) -> bool {
        matches!(self.shape, Shape::Path)
    }

    pub fn kind(&self) -> Kind {
        match self.shape {
            Shape::Path => Kind::Path,
            Shape::Folder => Kind::Folder,
            Shape::Glob(_) => Kind::Glob,
        }
    }

    /// The user's spelling, without `.`, `..` and doubled slashes for paths and folders.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What equality compares within a kind; for a path or folder, the folded path.
    pub fn key(&self) -> &str {
        &self.key
    }

    fn to_automaton(&self) -> Automaton {
        let names = self.key.split('/').filter(|name| !name.is_empty());
        let name = |name: &str| Segment::Name(name.chars().map(Element::Char).collect());
        let mut segments: Vec<Segment> = names.map(name).collect();
        match &self.shape {
            Shape::Glob(glob) => return glob.automaton.clone(),
            Shape::Folder => segments.push(Segment::Tree),
            Shape::Path => {}
        }
        Automaton::new([&segments[..]].into_iter())
    }
}

fn is_in_git_dir(alternative: &Alternative) -> bool {
    let first = alternative.segments.first().and_then(Segment::literal);
    first.is_some_and(|name| lexical::is_git_dir(&name))
}

fn common_prefix(alternatives: &[Alternative]) -> String {
    let mut names = alternatives
        .iter()
        .map(|a| a.segments.iter().map_while(Segment::literal).collect::<Vec<_>>());
    let mut common = names.next().unwrap_or_default();
    for other in names {
        let same = common.iter().zip(&other).take_while(|(a, b)| a == b).count();
        common.truncate(same);
    }
    common.join("/")
}

/// A text that tells parsed globs apart. It is compared, never parsed, so the parts a user cannot
/// type are simply written out.
fn glob_key(alternatives: &[Alternative]) -> String {
    let mut key = String::new();
    for (index, alternative) in alternatives.iter().enumerate() {
        if index > 0 {
            key.push(',');
        }
        for (index, segment) in alternative.segments.iter().enumerate() {
            if index > 0 {
                key.push('/');
            }
            match segment {
                Segment::Tree => key.push_str("**"),
                Segment::Name(elements) => {
                    elements.iter().for_each(|element| push_key(element, &mut key));
                }
            }
        }
    }
    key
}

fn push_key(element: &Element, key: &mut String) {
    match element {
        Element::Char(c) if ",*?[]{}\\~".contains(*c) => key.extend(['\\', *c]),
        Element::Char(c) => key.push(*c),
        Element::Star => key.push('*'),
        Element::Marks => key.push('~'),
        Element::One(one) if **one == charset::One::any() => key.push('?'),
        Element::One(one) => {
            for set in [&one.plain, &one.marked] {
                key.push('[');
                for (low, high) in set.ranges() {
                    key.extend([*low, *high]);
                }
                key.push(']');
            }
            key.push_str(&format!("{},{},{}", one.ligatures, one.trailed, one.movable));
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        // A folder reads as one, so that it is not taken for the file of that name.
        if self.kind() == Kind::Folder { f.write_str("/") } else { Ok(()) }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:?})", self.kind(), self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pattern {}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Pattern) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pattern {
    fn cmp(&self, other: &Pattern) -> Ordering {
        (self.kind(), &self.key).cmp(&(other.kind(), &other.key))
    }
}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind(), &self.key).hash(state);
    }
}

impl TryFrom<Document> for Pattern {
    type Error = Error;

    fn try_from(document: Document) -> Result<Pattern, Error> {
        match document {
            Document::Path(path) => Pattern::literal(&path),
            Document::Folder(path) => Pattern::folder(&path),
            Document::Glob(text) => Pattern::glob(&text),
        }
    }
}

impl From<Pattern> for Document {
    fn from(pattern: Pattern) -> Document {
        match pattern.kind() {
            Kind::Path => Document::Path(pattern.text),
            Kind::Folder => Document::Folder(pattern.text),
            Kind::Glob => Document::Glob(pattern.text),
        }
    }
}

impl JsonSchema for Pattern {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Document::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Document::json_schema(generator)
    }
}
