//! A shell line as a tree: lists of pipelines of commands, and words in pieces.
//!
//! Owns the shape only. Invariant: nothing of the text that could run a command is left out: every
//! substitution stands as a script where it stood in a word.

use std::cell::OnceCell;
use std::rc::Rc;

use super::Unparsed;

pub(super) type Parsed<T> = Result<T, Unparsed>;

pub(super) type Script = Vec<Item>;

#[derive(Debug)]
pub(super) struct Item {
    pub(super) link: Link,
    pub(super) pipeline: Vec<Node>,
    pub(super) background: bool,
}

/// When it runs, by what ran before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Always,
    And,
    Or,
}

#[derive(Debug)]
pub(super) enum Node {
    Simple(Simple),
    Block {
        kind: Block,
        parts: Vec<Script>,
        redirects: Vec<Redirect>,
    },
    For {
        name: String,
        words: Option<Vec<Word>>,
        body: Script,
        redirects: Vec<Redirect>,
    },
    Function {
        name: String,
        body: Rc<Node>,
    },
    /// `[[ … ]]`, `(( … ))`, the words of a `case`: only what is substituted in them acts.
    Looked(Vec<Word>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Subshell,
    Group,
    /// One of its parts after another, or not: `if`, `case`.
    Choice,
    /// Its parts again and again: `while`, `until`.
    Loop,
}

#[derive(Debug, Default)]
pub(super) struct Simple {
    pub(super) assigned: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    /// None for arrays, elements and `+=`: afterwards nothing is known of it.
    pub(super) value: Option<Word>,
    /// Words whose substitutions run.
    pub(super) looked: Vec<Word>,
}

#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) operator: Operator,
    /// The file; of a here-document its body, which stands further down.
    pub(super) target: Rc<OnceCell<Word>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Read,
    Write,
    Append,
    ReadWrite,
    /// `>&`: a number or `-`, else a file.
    Duplicate,
    /// The target is what is read: `<<` and `<<<`.
    Here,
}

pub(super) type Word = Vec<Piece>;

#[derive(Debug)]
pub(super) enum Piece {
    /// Unquoted: globs, braces and `~` mean something in it.
    Plain(String),
    Quoted(String),
    Variable {
        name: String,
        change: Change,
        quoted: bool,
    },
    Command {
        script: Script,
        quoted: bool,
    },
    /// `<( … )` and `>( … )`.
    Process(Script),
    /// Only running it would tell; the pieces inside may run something.
    Unknown(Word),
}

/// What `${name…}` makes of the value.
#[derive(Debug)]
pub(super) enum Change {
    None,
    /// `%` and `%%`.
    WithoutEnd(String),
    /// `#` and `##`.
    WithoutStart(String),
    /// `##*/`.
    LastSegment,
    /// `%/*`.
    WithoutLastSegment,
    /// `:-`: the value if there is one.
    Default(Word),
}
