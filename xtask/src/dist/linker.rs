//! xtask as the linker of `baton`: what a hook runs comes to lie together.
//!
//! Of fifteen megabytes of code a hook runs less than one, strewn over all of it: two hundred page
//! faults at every start, or sixty if the kernel happens to keep the file in large pieces. So it is
//! linked, watched at what hooks do, and linked again with the functions that were met in front.
//! rustc calls us in the linker's place, because only then are the compiled parts still there.
//! Whatever of this cannot be had, a plain link is the answer, and the report says why.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::map;
use crate::run::ask;

/// Set where we are to act as the linker; its value is the file for the report.
const REPORT: &str = "BATON_LINKER_REPORT";

/// Makes a build use us as its linker. Nothing, where the pieces for it are not there.
pub(super) fn take_part(build: &mut Command, report: &Path) {
    let Ok(ourselves) = std::env::current_exe() else { return };
    let mut linker = OsString::from("linker=");
    linker.push(ourselves);
    build.env(REPORT, report).arg("--").arg("-C").arg(linker);
}

/// Where xtask was started by rustc: acts as the linker and gives its exit code.
pub(crate) fn as_linker() -> Option<ExitCode> {
    let report = PathBuf::from(std::env::var_os(REPORT)?);
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let said = match ordered(&words) {
        Ok(said) => said,
        Err(why) => {
            if !link(&words, &[]) {
                return Some(ExitCode::FAILURE);
            }
            format!("functions lie as they came: {why}")
        }
    };
    let written = fs::write(report, said);
    Some(if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Links twice, with what was met at a rehearsal in front. Says what it came to, or why not.
fn ordered(words: &[OsString]) -> Result<String, String> {
    let output = words.iter().skip_while(|word| *word != "-o").nth(1).map(PathBuf::from);
    let output = output.ok_or("the output is not named")?;
    let folder = std::env::temp_dir().join(format!("baton-rehearsal-{}", std::process::id()));
    fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let done = ordered_in(&folder, words, &output);
    let _ = fs::remove_dir_all(&folder);
    done
}

fn ordered_in(folder: &Path, words: &[OsString], output: &Path) -> Result<String, String> {
    let lld = lld_folder().ok_or("this toolchain brings no lld")?;
    let with_value = |start: &str, path: &Path| {
        let mut word = OsString::from(start);
        word.push(path);
        word
    };
    let (map, order) = (folder.join("map"), folder.join("order"));
    let mut more = vec!["-fuse-ld=lld".into(), with_value("-B", &lld)];
    more.push("-Wl,--no-demangle".into());
    more.push(with_value("-Wl,-Map=", &map));
    if !link(words, &more) {
        return Err("lld did not link it".to_owned());
    }
    let map = fs::read_to_string(&map).map_err(|error| format!("the map: {error}"))?;
    let functions = map::functions(&map);
    let met = rehearse(output, folder, &functions)?;
    let names = met.iter().map(|function| format!("{}\n", function.name)).collect::<String>();
    fs::write(&order, names).map_err(|error| format!("the order: {error}"))?;
    more.truncate(2);
    more.push(with_value("-Wl,--symbol-ordering-file=", &order));
    if !link(words, &more) {
        return Err("lld did not link it in this order".to_owned());
    }
    let bytes: u64 = met.iter().map(|function| function.bytes).sum();
    let (met, all) = (met.len(), functions.len());
    Ok(format!("what hooks run lies together: {met} of {all} functions, {} kB", bytes / 1000))
}

/// The functions that are met at a rehearsal, in their order.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn rehearse<'map, 'list>(
    baton: &Path,
    folder: &Path,
    functions: &'list [map::Function<'map>],
) -> Result<Vec<&'list map::Function<'map>>, String> {
    use super::rehearsal::Rehearsal;
    let starts: Vec<u64> = functions.iter().map(|function| function.address).collect();
    let baton = baton.canonicalize().map_err(|error| format!("{}: {error}", baton.display()))?;
    let met = Rehearsal::prepare(&baton, folder).and_then(|rehearsal| rehearsal.watch(&starts));
    let met = met.map_err(|error| format!("the rehearsal: {error}"))?;
    let found = met.iter().filter_map(|start| starts.binary_search(start).ok());
    Ok(found.map(|index| &functions[index]).collect())
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn rehearse<'map, 'list>(
    _baton: &Path,
    _folder: &Path,
    _functions: &'list [map::Function<'map>],
) -> Result<Vec<&'list map::Function<'map>>, String> {
    Err("a process is watched on Linux with x86-64 only".to_owned())
}

/// Says what is wrong by itself, on the error output that rustc shows.
fn link(words: &[OsString], more: &[OsString]) -> bool {
    Command::new("cc").args(words).args(more).status().is_ok_and(|status| status.success())
}

/// The folder with the `ld.lld` of this toolchain.
fn lld_folder() -> Option<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let libraries = ask(Command::new(rustc).args(["--print", "target-libdir"]))?;
    let folder = Path::new(&libraries).parent()?.join("bin/gcc-ld");
    folder.join("ld.lld").is_file().then_some(folder)
}
