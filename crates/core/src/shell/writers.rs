//! Programs that write by their nature: which files, and how.
//!
//! Owns their operands. Invariant: what is written to is told, or the line is not harmless; what a
//! program makes of an archive or a patch that cannot be seen is unknown.

use crate::patches::{self, Action, File};

use super::formatters;
use super::options::{self, Options};
use super::outcome::{Argument, Command, How, Place, When};
use super::settling::folder_of;
use super::walk::{Input, Walker};

/// Notes what the command writes; false when the program is not known.
pub(super) fn judge(walker: &mut Walker, command: &Command, input: &Input) -> bool {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let read = |short: &str| options::read(arguments, short, &[]);
    match command.name() {
        "tee" => {
            let options = read("");
            let how = if options.has(&["-a", "--append"]) { How::Append } else { How::Create };
            walker.writes_all(command, &options.operands, how, false);
        }
        "touch" => walker.writes_all(command, &read("drt").operands, How::Change, false),
        "truncate" => walker.writes_all(command, &read("sr").operands, How::Change, false),
        "mkdir" => walker.writes_all(command, &read("m").operands, How::Folder, false),
        "mkfifo" => walker.writes_all(command, &read("m").operands, How::Create, false),
        "rmdir" => walker.writes_all(command, &read("").operands, How::Delete, false),
        "unlink" => walker.writes_all(command, arguments, How::Delete, false),
        "rm" | "shred" | "trash" => {
            let options = read("ns");
            let below = options.has(&["-r", "-R", "--recursive"]);
            walker.writes_all(command, &options.operands, How::Delete, below);
        }
        "chmod" | "chown" | "chgrp" => {
            let options = read("");
            // A mode may look like an option: chmod -x FILE.
            let modes = ["-r", "-w", "-x", "-X", "-s", "-t", "-u", "-g", "-o"];
            let given =
                options.has(&["--reference"]) || command.name() == "chmod" && options.has(&modes);
            let files = options.operands.get(usize::from(!given)..).unwrap_or_default();
            match options.has(&["-R", "--recursive"]) {
                true => walker.writes_part_of_all(command, files, How::Change),
                false => walker.writes_all(command, files, How::Change, false),
            }
        }
        "cp" | "mv" | "ln" | "install" | "rsync" => copy(walker, command),
        "dd" => dd(walker, command),
        "perl" | "ruby" => perl(walker, command),
        "ed" | "ex" => {
            let operands = read("pc").operands;
            walker.writes_all(command, &operands, How::Change, false);
            walker.opaque();
        }
        "patch" => patch(walker, command, input),
        "apply_patch" | "applypatch" => {
            let text = arguments.first().and_then(Argument::text).or(match input {
                Input::Known(text) => Some(text),
                Input::Outside | Input::Unknown => None,
            });
            patched(walker, command, text, |text| patches::read(text).ok());
        }
        "curl" => curl(walker, command),
        "wget" => wget(walker, command),
        "tar" | "bsdtar" | "gtar" => tar(walker, command),
        "unzip" => unzip(walker, command),
        "gzip" | "gunzip" | "xz" | "unxz" | "bzip2" | "bunzip2" | "zstd" => {
            let options = read("Sb");
            if !options.has(&["-c", "--stdout", "-l", "--list", "-t", "--test"]) {
                walker.writes(Place::Unknown, How::Create, false);
                walker.writes_all(command, &options.operands, How::Delete, false);
            }
        }
        "split" | "csplit" | "mktemp" => walker.writes(Place::Unknown, How::Create, false),
        _ => return formatters::judge(walker, command),
    }
    true
}

/// Copies, moves and links: the last operand is where to, unless an option says so.
fn copy(walker: &mut Walker, command: &Command) {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let name = command.name();
    let short = match name {
        "install" => "gmotS",
        "rsync" => "ef",
        _ => "tS",
    };
    let long = ["--target-directory", "--suffix", "--exclude", "--include", "--rsh", "--filter"];
    let options = options::read(arguments, short, &long);
    if name == "rsync" && options.has(&["-n", "--dry-run"]) {
        return;
    }
    if name == "install" && options.has(&["-d", "--directory"]) {
        return walker.writes_all(command, &options.operands, How::Folder, false);
    }
    let folder = options.value(&["-t", "--target-directory"]).filter(|_| name != "rsync");
    let mut sources = options.operands.clone();
    let target = match folder {
        Some(folder) => Some(folder.clone()),
        None if sources.len() > 1 => sources.pop(),
        // `ln -s a/b` makes `b` here.
        None if name == "ln" => Some(".".into()),
        None => None,
    };
    let Some(target) = target else { return walker.opaque() };
    let remote = |one: &Argument| name == "rsync" && one.shown().contains(':');
    let archive = ["-r", "-R", "-a", "--recursive", "--archive"];
    let below = matches!(name, "mv" | "rsync") || name != "ln" && options.has(&archive);
    match name {
        "mv" => walker.writes_all(command, &sources, How::MoveFrom, true),
        "rsync" if options.has(&["--remove-source-files"]) => {
            walker.writes_all(command, &sources, How::MoveFrom, true);
        }
        "ln" => {}
        _ => {
            let local: Vec<Argument> = sources.iter().filter(|one| !remote(one)).cloned().collect();
            walker.reads_all(command, &local);
        }
    }
    if remote(&target) {
        return;
    }
    let how = if name == "mv" { How::MoveTo } else { How::Copy };
    let taken = ["--delete", "--del", "--delete-before", "--delete-after", "--delete-excluded"];
    if name == "rsync" && options.has(&taken) {
        return mirrored(walker, command, &options, &target);
    }
    // What the sources have decides what it makes below the target.
    if name == "rsync" || options.has(&["--parents"]) {
        return walker.writes_part_of_all(command, &[target], how);
    }
    let unsure = folder.is_none() && sources.len() == 1;
    landed(walker, command, &options, (&sources, &target, unsure), (how, below));
}

/// Notes where each source lands, and which of these are links to them.
fn landed(
    walker: &mut Walker,
    command: &Command,
    options: &Options,
    (sources, target, unsure): (&[Argument], &Argument, bool),
    (how, below): (How, bool),
) {
    let landings = match options.has(&["-T", "--no-target-directory"]) {
        true => itself(sources, &walker.place(command, target), When::Always),
        false => landings(walker, command, sources, target, unsure),
    };
    let linked = match command.name() {
        "ln" => Some(options.has(&["-s", "--symbolic"]) && !options.has(&["-r", "--relative"])),
        "cp" if options.has(&["-l", "--link", "-s", "--symbolic-link"]) => Some(false),
        _ => None,
    };
    // A link that was there is replaced, not written through.
    let mut links = linked.map(|_| std::mem::take(&mut walker.links));
    for Landing { source, place, when } in landings {
        // What a link says is read from where the link is.
        let from = match linked {
            Some(true) => folder_of(&place).unwrap_or_else(Place::here),
            _ => command.folder.clone(),
        };
        if let Some(links) = &mut links {
            links.add(&place, from.join(source));
        }
        walker.writes_when(place, how, below, when);
    }
    if let Some(links) = links {
        walker.links = links;
    }
}

/// `rsync --delete`: what the sources do not have is taken away from the target, unless it is left
/// out.
fn mirrored(walker: &mut Walker, command: &Command, options: &Options, target: &Argument) {
    let target = std::slice::from_ref(target);
    let leaves = ["--exclude", "--include", "--filter", "-f", "--exclude-from"];
    match options.has(&leaves) {
        true => {
            walker.writes_part_of_all(command, target, How::Delete);
            walker.writes_all(command, target, How::DeleteFiles, true);
        }
        false => walker.writes_all(command, target, How::Delete, true),
    }
}

/// Where one of several sources lands, if that is so.
struct Landing<'a> {
    source: &'a Argument,
    place: Place,
    when: When,
}

/// What is copied as the target.
fn itself<'a>(sources: &'a [Argument], place: &Place, when: When) -> Vec<Landing<'a>> {
    sources.iter().map(|source| Landing { source, place: place.clone(), when }).collect()
}

/// Where something lands: in the target if it is a folder, else as the target itself. Nobody can
/// tell here which of the two it is when there is one source, so both are told.
fn landings<'a>(
    walker: &Walker,
    command: &Command,
    sources: &'a [Argument],
    target: &Argument,
    unsure: bool,
) -> Vec<Landing<'a>> {
    let shown = target.shown();
    let folder = shown.ends_with('/') || matches!(&*shown, "." | "..") || shown.ends_with("/..");
    let unsure = unsure && !folder;
    let base = walker.place(command, target);
    let mut landings = match unsure {
        true => itself(sources, &base, When::NoFolder),
        false => Vec::new(),
    };
    for source in sources {
        let place = match (source, &base) {
            (Argument::Text(text), Place::Path(_) | Place::Home(_)) => {
                let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or(text);
                match name {
                    "." | ".." | "" => base.clone(),
                    _ => base.join(&name.into()),
                }
            }
            (Argument::Pattern(text), Place::Path(_)) => {
                let name = text.rsplit('/').next().unwrap_or(text);
                base.join(&Argument::Pattern(name.to_owned()))
            }
            _ => Place::Unknown,
        };
        if unsure && place == Place::Unknown {
            continue;
        }
        let when = if unsure { When::InFolder } else { When::Always };
        landings.push(Landing { source, place, when });
    }
    landings
}

fn dd(walker: &mut Walker, command: &Command) {
    for argument in command.argv.iter().skip(1) {
        let shown = argument.shown();
        let make = |rest: &str| match argument {
            Argument::Text(_) => Argument::from(rest),
            _ => Argument::Unknown(rest.to_owned()),
        };
        if let Some(file) = shown.strip_prefix("of=") {
            let place = walker.place(command, &make(file));
            walker.writes(place, How::Change, false);
        } else if let Some(file) = shown.strip_prefix("if=") {
            let place = walker.place(command, &make(file));
            walker.reads(place);
        }
    }
}

/// perl, and ruby after it, write in place with `-i`; whatever else its program does, nobody knows.
fn perl(walker: &mut Walker, command: &Command) {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let mut in_place = false;
    let mut files = Vec::new();
    let mut rest = arguments.iter();
    let mut given = false;
    while let Some(argument) = rest.next() {
        match argument.text().filter(|text| text.starts_with('-') && text.len() > 1) {
            Some(text) => {
                in_place |= text.find('i').is_some_and(|at| {
                    text[1..at].chars().all(|c| c.is_ascii_digit() || "pnlawsWtTX".contains(c))
                });
                let program = text.ends_with(['e', 'E']) && !text.starts_with("--");
                given |= program;
                if program || text == "-I" {
                    rest.next();
                }
            }
            None => files.push(argument.clone()),
        }
    }
    let files = files.get(usize::from(!given)..).unwrap_or_default();
    if in_place {
        walker.writes_all(command, files, How::Change, false);
    }
    walker.opaque();
}

fn patch(walker: &mut Walker, command: &Command, input: &Input) {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let options = options::read(arguments, "pidorBDFgVYz", &["--input", "--directory", "--strip"]);
    if options.has(&["--dry-run"]) {
        return;
    }
    // It keeps what it replaced, and what it could not place, in files of its own.
    walker.opaque();
    let folder = options.value(&["-d", "--directory"]);
    let inner = folder.map(|folder| command.folder.entered(folder));
    let command = Command { folder: inner.unwrap_or(command.folder.clone()), ..command.clone() };
    if let Some(named) = options.operands.first() {
        return walker.writes_all(&command, std::slice::from_ref(named), How::Change, false);
    }
    let text = match input {
        Input::Known(text) if !options.has(&["-i", "--input"]) => Some(text.as_str()),
        _ => None,
    };
    let strip = strip_of(&options);
    patched(walker, &command, text, |text| patches::unified(text, strip?).ok());
}

/// How many folders `-p` takes from the names; None when it cannot be told.
pub(super) fn strip_of(options: &Options) -> Option<usize> {
    match options.value(&["-p", "--strip"]) {
        None => None,
        Some(number) => number.text()?.parse().ok(),
    }
}

/// Notes what a patch writes; one that cannot be seen or read may write anything.
pub(super) fn patched(
    walker: &mut Walker,
    command: &Command,
    text: Option<&str>,
    read: impl FnOnce(&str) -> Option<Vec<File>>,
) {
    let Some(files) = text.and_then(read) else {
        walker.writes(Place::Unknown, How::Change, false);
        return walker.opaque();
    };
    for File { path, action, moved_to, .. } in &files {
        let place = named(walker, command, path);
        let how = match (action, moved_to) {
            (Action::Add, _) => How::Create,
            (Action::Delete, _) => How::Delete,
            (Action::Update, Some(_)) => How::MoveFrom,
            (Action::Update, None) => How::Change,
        };
        walker.writes(place, how, false);
        if let Some(target) = moved_to {
            let place = named(walker, command, target);
            walker.writes(place, How::MoveTo, false);
        }
    }
}

/// A name in a patch, as the program that reads it takes it.
fn named(walker: &Walker, command: &Command, path: &str) -> Place {
    match &command.folder {
        _ if command.name() != "git" => walker.place(command, &path.into()),
        // git takes names from the root of the tree, wherever in it it runs.
        Place::Path(folder) if !folder.starts_with(['/', '.']) || folder == "." => {
            Place::Root(path.to_owned())
        }
        _ => Place::Unknown,
    }
}

fn curl(walker: &mut Walker, command: &Command) {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let long = ["--output", "--dump-header", "--cookie-jar", "--output-dir", "--header", "--data"];
    let options = options::read(arguments, "oDcHdXuAbeFmKTrUxwCEQtYyz", &long);
    for names in [["-o", "--output"], ["-D", "--dump-header"], ["-c", "--cookie-jar"]] {
        let files: Vec<Argument> = options.values(&names).cloned().collect();
        let files: Vec<Argument> = files.into_iter().filter(|f| f.text() != Some("-")).collect();
        match options.has(&["--output-dir"]) {
            true if !files.is_empty() => walker.writes(Place::Unknown, How::Create, false),
            _ => walker.writes_all(command, &files, How::Create, false),
        }
    }
    if options.has(&["-O", "--remote-name", "--remote-name-all", "-J"]) {
        let name = |url: &Argument| url.text()?.rsplit('/').next().map(Argument::from);
        match options.operands.iter().filter_map(name).collect::<Vec<Argument>>() {
            names if names.is_empty() || options.has(&["-J", "--output-dir"]) => {
                walker.writes(Place::Unknown, How::Create, false);
            }
            names => walker.writes_all(command, &names, How::Create, false),
        }
    }
    if options.has(&["-K", "--config", "--trace", "--trace-ascii", "--libcurl", "--hsts"]) {
        walker.opaque();
    }
}

fn wget(walker: &mut Walker, command: &Command) {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let long = ["--output-document", "--directory-prefix", "--output-file"];
    let options = options::read(arguments, "OPoaUtTwQeiBlARDIX", &long);
    match options.value(&["-O", "--output-document"]) {
        Some(file) if file.text() == Some("-") => {}
        Some(file) => {
            let place = walker.place(command, file);
            walker.writes(place, How::Create, false);
        }
        None if options.has(&["--spider"]) => {}
        None => walker.writes(Place::Unknown, How::Create, false),
    }
    let logs: Vec<Argument> = options.values(&["-o", "-a", "--output-file"]).cloned().collect();
    walker.writes_all(command, &logs, How::Create, false);
}

/// tar: listing reads, making writes the archive, and taking out writes below the folder.
fn tar(walker: &mut Walker, command: &Command) {
    let mut arguments = command.argv.get(1..).unwrap_or_default().to_vec();
    // The first word is options even without a dash.
    if let Some(Argument::Text(first)) = arguments.first_mut()
        && !first.starts_with('-')
    {
        first.insert(0, '-');
    }
    let long = ["--file", "--directory", "--exclude", "--strip-components", "--files-from"];
    let options = options::read(&arguments, "fCTXbgIHKNVL", &long);
    let folder = options.value(&["-C", "--directory"]);
    let archive: Vec<Argument> = options.values(&["-f", "--file"]).cloned().collect();
    let runs = ["-I", "--use-compress-program", "--to-command", "--checkpoint-action"];
    if options.has(&runs) {
        walker.opaque();
    }
    if options.has(&["-x", "--extract", "--get"]) {
        if !options.has(&["-O", "--to-stdout"]) {
            let target = folder.cloned().unwrap_or_else(|| ".".into());
            walker.writes_part(command.folder.entered(&target), How::Create);
        }
        walker.reads_all(command, &archive);
    } else if options.has(&["-t", "--list", "-d", "--diff"]) {
        walker.reads_all(command, &archive);
    } else {
        let kept = |one: &Argument| one.text() != Some("-");
        let archive: Vec<Argument> = archive.into_iter().filter(kept).collect();
        walker.writes_all(command, &archive, How::Create, false);
        if options.has(&["--remove-files"]) {
            walker.writes_all(command, &options.operands, How::Delete, true);
        }
    }
}

fn unzip(walker: &mut Walker, command: &Command) {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let options = options::read(arguments, "dxP", &[]);
    walker.reads_all(command, options.operands.get(..1).unwrap_or_default());
    if options.has(&["-l", "-t", "-p", "-v", "-Z", "-c"]) {
        return;
    }
    let target = options.value(&["-d"]).cloned().unwrap_or_else(|| ".".into());
    walker.writes_part(command.folder.entered(&target), How::Create);
}
