//! `cargo xtask test`: everything that must hold before a change is taken, in one command.
//!
//! Owns the order of the steps. The cheap ones come first, and the first that fails ends the run.
//! The PostgreSQL cluster is started here and stopped when this process ends, however it ends: a
//! watcher in a group of its own holds a pipe to us (see `baton_testing::cluster`).

use std::process::Command;

use baton_testing::cluster::{self, Cluster};

use crate::failure::Failure;
use crate::run::{self, Ended, Steps, cargo, stream};
use crate::tidy;

mod install;
mod macos;

pub(crate) use install::packages;

pub(crate) const HELP: &str = "\
Usage: cargo xtask test [--fast] [--clients] [-- ARGUMENTS OF CARGO TEST]

On a Debian or Ubuntu machine with Rust and git, and nothing else: installs what is missing (asks
no questions: apt-get as root or by a sudo without password, rustup for rustfmt and clippy; where
it cannot, it says what to install), starts a PostgreSQL cluster of its own in a scratch folder,
then checks formatting, tidy, clippy with warnings denied, licences and advisories (cargo deny),
that the code compiles for macOS, and runs all tests.

  --fast      leaves out cargo deny and macOS
  --clients   first installs the real clients of agents (npm; about 1 GB in ~/.cache/baton-rig,
              or where RIG_HOME says); tests use those that are there

Environment:
  BATON_TEST_POSTGRES   the postgres:// URL of a cluster where tests may create databases; then
                        none is started
";

const STEPS: usize = 8;

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    fast: bool,
    clients: bool,
    for_cargo: Vec<String>,
}

pub(crate) fn act(words: &[String]) -> Result<(), Failure> {
    let options = parse(words)?;
    let mut steps = Steps::new(STEPS);
    let result = all(&options, &mut steps);
    println!("{}", steps.table());
    if result.is_ok() {
        println!("xtask test: all that was done passed");
    }
    result
}

fn parse(words: &[String]) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--fast" => options.fast = true,
            "--clients" => options.clients = true,
            "--" => options.for_cargo = words.by_ref().cloned().collect(),
            _ => return Err(Failure::Usage { verb: "test", word: word.clone() }),
        }
    }
    Ok(options)
}

fn all(options: &Options, steps: &mut Steps) -> Result<(), Failure> {
    let mut database = None;
    steps.step("postgres", || {
        install::rust_components()?;
        install::pre_commit();
        database = own_cluster()?;
        Ok(Ended::Passed)
    })?;
    let passed = |mut command: Command| stream(&mut command).map(|()| Ended::Passed);
    steps.step("fmt", || passed(cargo(["fmt", "--all", "--check"])))?;
    steps.step("tidy", || tidy::act(&[]).map(|()| Ended::Passed))?;
    steps.step("clippy", || {
        let words = ["clippy", "--workspace", "--all-targets", "--locked"];
        passed(cargo(words.into_iter().chain(["--", "-D", "warnings"])))
    })?;
    steps.step("deny", || if options.fast { Ok(left_out()) } else { deny() })?;
    steps.step("macos", || if options.fast { Ok(left_out()) } else { macos::check() })?;
    steps.step("clients", || match options.clients {
        true => passed(clients()),
        false => Ok(Ended::Skipped("those that are installed are used; --clients installs".into())),
    })?;
    steps.step("tests", || {
        let mut command = cargo(["test", "--workspace", "--locked"]);
        command.args(&options.for_cargo);
        if let Some(cluster) = &database {
            command.env(cluster::VARIABLE, cluster.address("postgres"));
        }
        passed(command)
    })
}

/// Installs what is missing of the pinned clients.
fn clients() -> Command {
    let mut command = Command::new("bash");
    command.current_dir(run::root()).arg("crates/cli/tests/clients/setup.sh");
    command
}

fn left_out() -> Ended {
    Ended::Skipped("left out by --fast".to_owned())
}

/// A cluster of our own, or none when the environment names one.
fn own_cluster() -> Result<Option<Cluster>, Failure> {
    if std::env::var_os(cluster::VARIABLE).is_some_and(|address| !address.is_empty()) {
        println!("  {} is set: that cluster is used", cluster::VARIABLE);
        return Ok(None);
    }
    let scratch = std::env::temp_dir();
    let started = match Cluster::start(&scratch) {
        Err(cluster::Error::Missing) => {
            install::postgres()?;
            Cluster::start(&scratch)
        }
        other => other,
    };
    let cluster = started.map_err(Failure::Cluster)?;
    let version = cluster.sql("postgres", "show server_version").map_err(Failure::Cluster)?;
    println!("  PostgreSQL {version} runs for this test in {}", scratch.display());
    Ok(Some(cluster))
}

fn deny() -> Result<Ended, Failure> {
    if run::ask(&mut cargo(["deny", "--version"])).is_none() {
        let next = "cargo-deny is not installed (cargo install cargo-deny --locked)";
        return Ok(Ended::Skipped(next.to_owned()));
    }
    // It looks at what every system would need, also what was not built here.
    if run::ask(&mut cargo(["fetch", "--locked", "--quiet"])).is_none() {
        return Ok(Ended::Skipped("dependencies of other systems could not be fetched".to_owned()));
    }
    // Advisories come over the network: without it the rest still says something.
    let mut offline = cargo(["deny", "--offline", "--log-level", "error", "check"]);
    let mut online = cargo(["deny", "--log-level", "error", "check"]);
    if run::ask(cargo(["deny"]).args(["--log-level", "off", "fetch", "db"])).is_some() {
        stream(&mut online)?;
        return Ok(Ended::Passed);
    }
    stream(offline.args(["bans", "licenses", "sources"]))?;
    Ok(Ended::Skipped("advisories could not be fetched; the rest of deny passed".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, Failure> {
        parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_follows_two_dashes_is_for_cargo() {
        let options = parsed(&["--fast", "--", "-p", "baton", "--", "--fast"]).unwrap();
        assert!(options.fast);
        assert_eq!(options.for_cargo, ["-p", "baton", "--", "--fast"]);
        assert_eq!(parsed(&[]).unwrap(), Options::default());
        let refused = parsed(&["--quick"]);
        assert!(matches!(&refused, Err(Failure::Usage { word, .. }) if word == "--quick"));
    }
}
