//! What a shell line does: the commands it runs, where, and the files it surely writes and reads.
//!
//! Owns the reading of lines as agents write them for sh, bash and zsh. Invariant: it may say more
//! than happens, never less: what it cannot follow is `Unknown`, makes the line not `harmless`, and
//! is compared afterwards. It refuses to know files, zones and claims; what may be written is
//! judged elsewhere.
//!
//! The parser is our own. Of those that exist, `yash-syntax` is GPL, `brush-parser` brings a PEG
//! machine, a cache of its own and tracing to a call that must end in microseconds, `conch-parser`
//! is not kept, and `shell-words` knows no operators. None has a limit on depth and size, and none
//! follows `cd`, variables and `bash -c`, which is most of what is here.

pub mod danger;
mod expand;
mod formatters;
mod git;
mod inline;
mod links;
mod options;
mod outcome;
mod places;
mod programs;
mod reader;
mod redirects;
mod scripts;
mod settling;
mod state;
#[cfg(test)]
mod tests;
mod tree;
mod walk;
mod words;
mod wrappers;
mod writers;

pub use outcome::{Argument, Command, Deeds, How, Place, TEMPORARY, When, Write, escaped};
pub use places::places;
pub use settling::Seen;

/// The longest line that is read.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// How deep commands, quotes and scripts in scripts may stand in each other.
pub const DEPTH_MAX: usize = 48;
/// The most commands and words of a line.
pub const STEPS_MAX: usize = 20_000;
/// The most commands that are followed, each turn of a loop counted.
pub const COMMANDS_MAX: usize = 5_000;
/// How many turns of a `for` are followed one by one.
pub const TURNS_MAX: usize = 64;
/// How many words one word with braces may become.
pub const BRACES_MAX: usize = 256;

/// Why a line could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unparsed {
    #[error("it is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("its commands stand in each other more than {DEPTH_MAX} deep")]
    TooDeep,
    #[error("it runs too many commands to follow")]
    TooMuch,
    #[error("it ends within a quote, a bracket or a command")]
    Unfinished,
    #[error("at byte {at} stands something that no command has there")]
    Unexpected { at: usize },
}

/// Reads a line. Always answers: what cannot be read is told in `unparsed`.
pub fn read(line: &str) -> Deeds {
    let script = match line.len() > LINE_BYTES_MAX {
        true => Err(Unparsed::TooLong),
        false => reader::read(line, 0),
    };
    match script.and_then(|script| walk::walk(&script)) {
        Ok(deeds) => deeds,
        Err(why) => outcome::guessed(line, why),
    }
}

/// Does a line make commits with plain git, or branches for them?
pub fn makes_commits(line: &str) -> bool {
    // Most lines are spared the reading.
    line.contains("git") && read(line).commands.iter().any(git::makes_commits)
}

/// The line in which a shell reads exactly these words.
pub fn quote<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = words.into_iter().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    quoted.collect::<Vec<String>>().join(" ")
}
