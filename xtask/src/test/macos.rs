//! That the code compiles for macOS, as far as a Linux machine can tell.
//!
//! `cargo check` links nothing, so the standard library of the target is enough for our own code.
//! The C code of two dependencies (SQLite, ring) is not ours to check and would need Apple's
//! compiler: stand-ins that only make the expected output files take its place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::failure::Failure;
use crate::run::{self, Ended, cargo, stream};

const TARGET: &str = "aarch64-apple-darwin";
const PACKAGES: &[&str] = &["-p", "baton-core", "-p", "baton-engine", "-p", "baton"];

/// Answers the question which compiler it is, makes an empty file for `-o FILE`, compiles nothing.
const COMPILER: &str = r#"#!/bin/sh
out=
while [ $# -gt 0 ]; do
  case "$1" in
    -o) shift; out=$1 ;;
    -E) echo '"clang"' ;;
  esac
  shift
done
[ -z "$out" ] || : > "$out"
"#;

/// `ar cq ARCHIVE FILES…`: an archive without members.
const ARCHIVER: &str = r#"#!/bin/sh
for word in "$@"; do
  case "$word" in *.a) printf '!<arch>\n' > "$word" ;; esac
done
"#;

pub(crate) fn check() -> Result<Ended, Failure> {
    if !crate::dist::has_target(TARGET) {
        let why = format!("no standard library for {TARGET} (rustup target add {TARGET})");
        return Ok(Ended::Skipped(why));
    }
    let folder = run::target().join("macos-stand-ins");
    fs::create_dir_all(&folder).map_err(Failure::file("making", &folder))?;
    let (compiler, archiver) = (folder.join("cc"), folder.join("ar"));
    write_program(&compiler, COMPILER)?;
    write_program(&archiver, ARCHIVER)?;
    let mut command = cargo(["check", "--locked", "--target", TARGET]);
    command.args(PACKAGES);
    command.env("CC_aarch64_apple_darwin", &compiler).env("AR_aarch64_apple_darwin", &archiver);
    // Else build scripts ask xcrun, which only a Mac has.
    command.env("SDKROOT", &folder);
    stream(&mut command).map(|()| Ended::Passed)
}

fn write_program(path: &Path, text: &str) -> Result<(), Failure> {
    // Untouched when it is as it should be: a new time would make cargo build the C parts again.
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))
        .map_err(Failure::file("writing", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ask;
    use std::process::Command;

    #[test]
    fn the_stand_ins_make_the_files_that_are_expected() {
        let folder = std::env::temp_dir().join(format!("baton-stand-ins-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        write_program(&at("cc"), COMPILER).unwrap();
        write_program(&at("ar"), ARCHIVER).unwrap();
        let told = ask(Command::new(at("cc")).args(["-E", "x.c"]));
        assert_eq!(told.as_deref(), Some("\"clang\""));
        assert!(ask(Command::new(at("cc")).args(["-c", "x.c", "-o"]).arg(at("x.o"))).is_some());
        assert!(ask(Command::new(at("ar")).arg("cq").arg(at("x.a")).arg(at("x.o"))).is_some());
        assert_eq!(fs::read(at("x.o")).unwrap(), b"");
        assert_eq!(fs::read(at("x.a")).unwrap(), b"!<arch>\n");
        fs::remove_dir_all(folder).unwrap();
    }
}
