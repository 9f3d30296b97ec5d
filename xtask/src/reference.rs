//! `cargo xtask reference`: the generated pages of `docs/reference`.
//!
//! Owns where they go. What is in them comes from the binary's own definitions (`baton reference`),
//! and a test of the command line fails when they are out of date.

use crate::failure::Failure;
use crate::run;

pub(crate) const HELP: &str = "\
cargo xtask reference

Writes docs/reference/commands.md, replies.json and messages.json from the definitions in the code.
";

/// Each page, and what the binary is asked for it.
const PAGES: &[(&str, &[&str])] =
    &[("commands.md", &[]), ("replies.json", &["--schemas"]), ("messages.json", &["--messages"])];

pub(crate) fn act(words: &[String]) -> Result<(), Failure> {
    if let Some(word) = words.first() {
        return Err(Failure::Usage { verb: "reference", word: word.clone() });
    }
    run::stream(&mut run::cargo(["build", "--package", "baton"]))?;
    let binary = run::target().join("debug/baton");
    for (page, options) in PAGES {
        let mut command = std::process::Command::new(&binary);
        let text = run::ask(command.arg("reference").args(*options)).ok_or_else(|| {
            Failure::Unfit { path: binary.clone(), what: "it did not print its reference" }
        })?;
        let path = run::root().join("docs/reference").join(page);
        std::fs::write(&path, format!("{text}\n")).map_err(Failure::file("writing", &path))?;
        println!("wrote docs/reference/{page}");
    }
    Ok(())
}
