//! `cargo xtask dist`: the binary that people install, and proof that it is what it should be.
//!
//! Hooks start `baton` thousands of times a day, so its start time is a feature: it is static, of
//! musl where that can be had, and not position-independent. Measured with an empty program: musl
//! 0.21 ms, musl relocatable 0.23 ms, static glibc 0.58 ms, dynamic 0.89 ms. What comes out is read
//! back: a file that still asks for an interpreter or a library is a failure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::run::{self, ask, cargo, stream};
use crate::test::packages;

mod elf;
pub(crate) mod linker;
mod map;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod rehearsal;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod watching;

pub(crate) const HELP: &str = "\
Usage: cargo xtask dist

Builds target/dist/baton: a static, stripped binary for this machine's processor, with
completions and man pages beside it. Uses musl; installs its compiler (musl-tools) and target where
it may, and falls back to a static glibc, saying so, where musl cannot be had.
";

/// Static, at a fixed address, and with headers, code and constants in one piece that begins where
/// a large page may: the kernel then maps two megabytes at one fault, the first two included.
const STATIC_FLAGS: &str = "-C target-feature=+crt-static -C relocation-model=static \
     -C link-arg=-Wl,-z,noseparate-code";
/// Slower to build than a release, and quicker to start.
const PROFILE: &str = "static";
const STARTS: usize = 300;
const SHELLS: &[(&str, &str)] =
    &[("bash", "baton.bash"), ("zsh", "_baton"), ("fish", "baton.fish")];

pub(crate) fn act(words: &[String]) -> Result<(), Failure> {
    if let Some(word) = words.first() {
        return Err(Failure::Usage { verb: "dist", word: word.clone() });
    }
    let target = choose_target();
    println!("building for {target}");
    let folder = run::target().join("dist");
    fs::create_dir_all(&folder).map_err(Failure::file("making", &folder))?;
    let report = folder.join("layout");
    let mut build = static_build("rustc", "baton", &target);
    linker::take_part(build.args(["--bin", "baton"]), &report);
    stream(&mut build)?;
    let binary = folder.join("baton");
    let built = built(&target).join("baton");
    replace(&built, &binary)?;
    let size = prove(&binary)?;
    let shown = binary.strip_prefix(run::root()).unwrap_or(&binary).display().to_string();
    println!("{shown}: {:.1} MB, static, {target}", size as f64 / 1e6);
    println!("{}", fs::read_to_string(&report).unwrap_or_default());
    println!("starts and ends in {:.2} ms (median of {STARTS})", start_time(&binary)?);
    extras(&binary, &folder)
}

/// One package as people get it: static and not relocatable. The verb is `build`, or `rustc` where
/// the last step gets words of its own.
pub(crate) fn static_build(verb: &str, package: &str, target: &str) -> Command {
    let words = [verb, "--profile", PROFILE, "--locked", "-p", package, "--target", target];
    let mut build = cargo(words);
    // With --target these reach the product only, not the build scripts that run here.
    build.env("RUSTFLAGS", STATIC_FLAGS);
    build
}

/// Where static builds for a target end up.
pub(crate) fn built(target: &str) -> PathBuf {
    run::target().join(target).join(PROFILE)
}

/// Whether the standard library for a target is installed, by rustup or otherwise.
pub(crate) fn has_target(target: &str) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let folder = ask(Command::new(rustc).args(["--print", "target-libdir", "--target", target]));
    folder.is_some_and(|folder| Path::new(&folder).is_dir())
}

pub(crate) fn choose_target() -> String {
    let processor = std::env::consts::ARCH;
    let musl = format!("{processor}-unknown-linux-musl");
    let fallback = |why: String| {
        println!("{why}: falling back to a static glibc, which starts more slowly");
        format!("{processor}-unknown-linux-gnu")
    };
    if !has_target(&musl) {
        let added = stream(Command::new("rustup").args(["target", "add", &musl]));
        if added.is_err() || !has_target(&musl) {
            return fallback(format!("{musl} is not installed (rustup target add {musl})"));
        }
    }
    if ask(Command::new("musl-gcc").arg("--version")).is_none() {
        let next = "sudo apt-get install musl-tools";
        if let Err(failure) = packages("musl-gcc", &["musl-tools"], next) {
            return fallback(failure.to_string());
        }
    }
    musl
}

/// By a new file and a rename: the old binary may be running. In one write, not by a copy: the page
/// cache then holds it in large pieces, and a start has seventy page faults fewer.
fn replace(from: &Path, to: &Path) -> Result<(), Failure> {
    let fresh = to.with_extension("new");
    let bytes = fs::read(from).map_err(Failure::file("reading", from))?;
    fs::write(&fresh, bytes).map_err(Failure::file("writing", &fresh))?;
    let mode = fs::metadata(from).map_err(Failure::file("reading", from))?.permissions();
    fs::set_permissions(&fresh, mode).map_err(Failure::file("writing", &fresh))?;
    fs::rename(&fresh, to).map_err(Failure::file("replacing", to))
}

/// Reads the binary back: static and stripped, or it is not what was asked for. Gives its size.
fn prove(binary: &Path) -> Result<usize, Failure> {
    let bytes = fs::read(binary).map_err(Failure::file("reading", binary))?;
    let unfit = |what| Failure::Unfit { path: binary.to_owned(), what };
    let facts = elf::read(&bytes).ok_or_else(|| unfit("not a 64-bit ELF file we can read"))?;
    if facts.interpreter {
        return Err(unfit("asks for an interpreter, so it is not static"));
    }
    if facts.libraries > 0 {
        return Err(unfit("asks for shared libraries, so it is not static"));
    }
    if facts.relocatable {
        return Err(unfit("is position-independent, which costs time at every start"));
    }
    if facts.symbols {
        return Err(unfit("is not stripped"));
    }
    Ok(bytes.len())
}

/// The median time in milliseconds from starting the binary to its end.
fn start_time(binary: &Path) -> Result<f64, Failure> {
    let mut times = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let mut command = Command::new(binary);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        command.status().map_err(Failure::file("starting", binary))?;
        times.push(started.elapsed());
    }
    times.sort();
    let median: Duration = times[STARTS / 2];
    Ok(median.as_secs_f64() * 1e3)
}

/// Completions and the man pages, from the binary's own words; what it does not offer is left out.
fn extras(binary: &Path, folder: &Path) -> Result<(), Failure> {
    let say =
        |words: &[&str]| ask(Command::new(binary).args(words)).filter(|text| !text.is_empty());
    let mut wanted: Vec<(Vec<&str>, PathBuf)> = SHELLS
        .iter()
        .map(|(shell, name)| (vec!["completions", shell], folder.join("completions").join(name)))
        .collect();
    wanted.push((vec!["man"], folder.join("man").join("man1").join("baton.1")));
    for (words, path) in wanted {
        let Some(text) = say(&words) else {
            println!("left out: this baton does not offer `baton {}`", words.join(" "));
            continue;
        };
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(Failure::file("making", parent))?;
        fs::write(&path, format!("{text}\n")).map_err(Failure::file("writing", &path))?;
        println!("{}", path.strip_prefix(run::root()).unwrap_or(&path).display());
    }
    Ok(())
}
