//! What the tests need and a fresh machine lacks: found, installed, or named.
//!
//! Installs only what distributions and rustup ship, only when it may without asking, and shows
//! every command. Where it may not, the failure is the exact line to type.

use std::process::Command;

use crate::failure::Failure;
use crate::run::{ask, cargo, stream};

/// rustfmt and clippy, which a minimal toolchain comes without.
pub(crate) fn rust_components() -> Result<(), Failure> {
    for (verb, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if ask(&mut cargo([verb, "--version"])).is_some() {
            continue;
        }
        let mut add = Command::new("rustup");
        add.args(["component", "add", component]);
        stream(&mut add).map_err(|_| Failure::Missing {
            what: component,
            next: format!("rustup component add {component}"),
        })?;
    }
    Ok(())
}

/// The server of the distribution.
pub(crate) fn postgres() -> Result<(), Failure> {
    packages(
        "PostgreSQL",
        &["postgresql"],
        "install the PostgreSQL server (Debian, Ubuntu: sudo apt-get install postgresql), or set \
         BATON_TEST_POSTGRES to the postgres:// URL of a cluster where tests may create databases",
    )
}

/// The framework by which many repositories run their commit hooks. One test needs it; where it
/// cannot be installed that test says so, and only CI insists.
pub(crate) fn pre_commit() {
    if ask(Command::new("pre-commit").arg("--version")).is_some() {
        return;
    }
    let installed = packages("pre-commit", &["pre-commit"], "install pre-commit");
    if installed.is_err() {
        println!("  pre-commit is missing: one test of commit hooks is left out");
    }
}

/// Packages of Debian and Ubuntu; `next` is what to do where we cannot.
pub(crate) fn packages(
    what: &'static str,
    names: &[&str],
    next: &'static str,
) -> Result<(), Failure> {
    let missing = || Failure::Missing { what, next: next.to_owned() };
    if ask(Command::new("apt-get").arg("--version")).is_none() {
        return Err(missing());
    }
    let privilege = privilege().ok_or_else(missing)?;
    let apt = |words: &[&str]| {
        let mut all: Vec<&str> = privilege.to_vec();
        // By `env` rather than our own environment, which sudo does not pass on.
        all.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]);
        all.extend(words);
        let mut command = Command::new(all[0]);
        command.args(&all[1..]);
        command
    };
    println!("  {what} is missing and will be installed");
    let install =
        |command: &mut Command| stream(command.args(["-y", "--no-install-recommends"]).args(names));
    // A machine with fresh lists needs no update; an image without lists cannot do without.
    install(&mut apt(&["install"])).or_else(|_| {
        stream(&mut apt(&["update"])).map_err(|_| missing())?;
        install(&mut apt(&["install"])).map_err(|_| missing())
    })
}

/// The words that make apt-get run as root: none when we are, `sudo` when it asks no password.
fn privilege() -> Option<&'static [&'static str]> {
    if ask(Command::new("id").arg("-u")).as_deref() == Some("0") {
        return Some(&[]);
    }
    ask(Command::new("sudo").args(["-n", "true"])).map(|_| &["sudo", "-n"][..])
}
