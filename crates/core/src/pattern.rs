//! Stand-in until the pattern branch is merged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern { text: String, kind: u8 }
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bad")]
pub struct Error;
impl Pattern {
    pub fn literal(t: &str) -> Result<Self, Error> { Ok(Self { text: t.into(), kind: 0 }) }
    pub fn folder(t: &str) -> Result<Self, Error> { Ok(Self { text: t.trim_end_matches('/').into(), kind: 1 }) }
    pub fn glob(t: &str) -> Result<Self, Error> { Ok(Self { text: t.into(), kind: 2 }) }
    pub fn text(&self) -> &str { &self.text }
    pub fn is_folder(&self) -> bool { self.kind == 1 }
    pub fn is_glob(&self) -> bool { self.kind == 2 }
    pub fn is_literal(&self) -> bool { self.kind == 0 }
    pub fn literal_prefix(&self) -> &str { if self.kind == 2 { "" } else { &self.text } }
}
pub fn has_wildcard(text: &str) -> bool { text.contains(['*', '?', '[', ']', '{', '}', '\\']) }
pub fn fold(text: &str) -> String { text.to_lowercase() }
pub fn overlaps(a: &Pattern, b: &Pattern) -> bool { a == b || a.kind != 0 || b.kind != 0 }
pub fn covers(a: &Pattern, b: &Pattern) -> bool { a == b }
