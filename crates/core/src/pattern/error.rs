//! Why a text is not a pattern. Owns the error space of parsing and nothing else.
//!
//! Every variant carries data a caller can point with (`at` is a byte offset into the text as
//! typed). There is no variant for "matches nothing": a text that cannot be understood is refused,
//! because a claim on nothing would be granted to everybody.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Error {
    #[error("the path is empty")]
    Empty,
    #[error("the path names the workspace itself; claim it as a folder")]
    Root,
    #[error("the path is absolute; paths are relative to the workspace")]
    Absolute,
    #[error("`..` at byte {at} leaves the workspace")]
    Escapes { at: usize },
    #[error("`..` at byte {at} follows `**`, so it names no definite folder")]
    ParentOfAny { at: usize },
    #[error("the name at byte {at} is `.` or `..` with invisible characters in it")]
    HiddenDots { at: usize },
    #[error("the path lies inside the git directory, which is never claimable")]
    GitDir,
    #[error("NUL at byte {at}")]
    Nul { at: usize },
    #[error("{bytes} bytes are more than the {max} a path or pattern may have")]
    TooLong { bytes: usize, max: usize },
    #[error("{segments} path segments are more than the {max} allowed")]
    TooManySegments { segments: usize, max: usize },
    #[error("the braces expand to {alternatives} alternatives, more than the {max} allowed")]
    TooManyAlternatives { alternatives: usize, max: usize },
    #[error("braces at byte {at} are nested deeper than {max}")]
    TooDeep { at: usize, max: usize },
    #[error("the pattern needs {states} states, more than the {max} allowed")]
    TooManyStates { states: usize, max: usize },
    #[error("the backslash at byte {at} escapes nothing")]
    EscapesNothing { at: usize },
    #[error("the backslash at byte {at} stands before a letter or digit; separate with `/`")]
    EscapesLetter { at: usize },
    #[error("the `[` at byte {at} is never closed")]
    UnclosedClass { at: usize },
    #[error("the class at byte {at} matches no character a name can have")]
    EmptyClass { at: usize },
    #[error("the range at byte {at} runs backwards")]
    BackwardRange { at: usize },
    #[error("named classes such as `[:alpha:]` (byte {at}) are not supported")]
    NamedClass { at: usize },
    #[error("the `{{` at byte {at} is never closed")]
    UnclosedBrace { at: usize },
    #[error("the `}}` at byte {at} closes nothing")]
    UnopenedBrace { at: usize },
    #[error("the braces at byte {at} hold no choice; write {{a,b}}, or escape them as \\{{")]
    SingleBranch { at: usize },
}
