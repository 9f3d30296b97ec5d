//! `cargo xtask fuzz`: the parsers that read what agents send, for as long as asked.
//!
//! Owns the list of places that have such targets; what is done with inputs stands beside each
//! parser, in tests whose names begin with `fuzz_`, which every test run does for a second.

use baton_testing::fuzz::SECONDS;

use crate::failure::Failure;
use crate::run::{cargo, stream};

pub(crate) const HELP: &str = "\
Usage: cargo xtask fuzz [SECONDS]

Feeds the parsers of hook payloads, patches and shell lines with spoiled inputs, each for so many
seconds (60 when not given). A failure names its seed: BATON_FUZZ_SEED=N makes the same input.
";

const SECONDS_DEFAULT: &str = "60";

pub(crate) fn act(words: &[String]) -> Result<(), Failure> {
    let seconds = match words {
        [] => SECONDS_DEFAULT,
        [seconds] if seconds.parse::<u32>().is_ok() => seconds,
        [.., word] => return Err(Failure::Usage { verb: "fuzz", word: word.clone() }),
    };
    let packages = ["--package", "baton-core", "--package", "baton", "--lib", "--bins"];
    let mut command = cargo(["test"].into_iter().chain(packages).chain(["fuzz_"]));
    stream(command.env(SECONDS, seconds))
}
