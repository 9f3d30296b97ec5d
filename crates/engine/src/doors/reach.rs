//! What a line names: whether a change of a file can be laid at its door.
//!
//! Owns the reading of its words and of the texts that it runs: scripts, the recipes of `make`,
//! what `npm run` stands for, and scripts that those name. It refuses to know who else was at work.
//! A name in a text is no proof of a write, and a program may write what it never names: this tells
//! only whether the line has anything to do with a file. What only looks at files (a test, a
//! checker, a commit, a word that is read) names them for nothing. What writes under names that
//! it makes up (`naming`) is taken for unread: any file may be among them. Read when something has
//! changed, which is rare, and never before.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use baton_core::naming;
use baton_core::shell::{self, Argument, Command, Deeds, Place as Named};

mod programs;

/// Longer texts are not read.
const TEXT_BYTES_MAX: u64 = 64 * 1024;
/// Texts that are read for one line.
const TEXTS_MAX: usize = 24;
/// How deep scripts of a package that call each other are followed.
const DEPTH_MAX: usize = 4;
/// What a line has to do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Says {
    /// All of it could be read, and nothing names the file.
    Nothing,
    /// It runs something that could not be read, or that writes under names it makes up.
    Unread,
    /// It names the file, a folder above it, or sweeps through all files.
    Named,
}

/// Lines that ran, each with the folder it began in.
#[derive(Debug, Default)]
pub(super) struct Reach {
    lines: Vec<(String, PathBuf)>,
    /// There were others, and nobody knows what they were.
    lost: bool,
    read: OnceCell<Read>,
}

impl Reach {
    pub(super) fn of(line: &str, cwd: &Path) -> Self {
        Self { lines: vec![(line.to_owned(), cwd.to_owned())], ..Self::default() }
    }

    /// A line that ran too; nothing where it is not known.
    pub(super) fn add(&mut self, line: Option<(String, PathBuf)>) {
        match line {
            Some(line) if self.lines.contains(&line) => {}
            Some(line) => self.lines.push(line),
            None => self.lost = true,
        }
    }

    pub(super) fn says(&self, root: &Path, path: &str) -> Says {
        self.read(root).says(root, path)
    }

    /// Does a line make commits?
    pub(super) fn commits(&self, root: &Path) -> Says {
        let read = self.read(root);
        let mut texts = read.texts.iter().flat_map(|text| tokens(&text.text));
        match read.commits || texts.any(|token| token == "commit") {
            true => Says::Named,
            false if read.unread => Says::Unread,
            false => Says::Nothing,
        }
    }

    fn read(&self, root: &Path) -> &Read {
        self.read.get_or_init(|| {
            let mut read = Read { unread: self.lost, ..Read::default() };
            for (line, cwd) in &self.lines {
                read.line(root, line, cwd);
            }
            read
        })
    }
}

#[derive(Debug, Default)]
struct Read {
    /// Words of the lines themselves.
    words: Vec<String>,
    texts: Vec<Text>,
    /// It rewrites whatever it finds.
    sweeps: bool,
    unread: bool,
    /// It writes under names that it makes up.
    computes: bool,
    /// It says `commit` somewhere.
    commits: bool,
    /// How many lines within lines are read now.
    depth: usize,
}

#[derive(Debug)]
struct Text {
    file: PathBuf,
    text: String,
    language: Language,
}

#[derive(Debug, PartialEq, Eq)]
enum Language {
    /// With the words that the script is given.
    Shell(Vec<String>),
    Recipes,
    Other,
}

impl Language {
    /// What its ending or its first line says.
    fn of(file: &Path, text: &str) -> Self {
        let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        let shebang = first.starts_with("#!") && first.trim_end().ends_with("sh");
        match ending {
            "sh" | "bash" | "zsh" | "ksh" => Self::Shell(Vec::new()),
            "mk" => Self::Recipes,
            _ if shebang => Self::Shell(Vec::new()),
            _ => Self::Other,
        }
    }
}

impl Text {
    fn computes(&self) -> bool {
        match &self.language {
            Language::Shell(given) => naming::shell_computes(&self.text, given),
            Language::Recipes => naming::recipes_compute(&self.text),
            Language::Other => naming::computes(&self.text),
        }
    }
}

/// Programs that run a text which is their first word, or comes after an option.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ksh", "source", ".", "node", "deno", "bun", "tsx", "ts-node",
    "ruby", "perl", "php", "lua", "Rscript", "awk", "sed",
];
/// Endings by which a text that names another one is known to run it.
const SCRIPTS: &[&str] = &["sh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "mk", "lua", "php"];
const RECIPES: &[&str] = &["GNUmakefile", "makefile", "Makefile"];
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "source", "."];
/// Words before the name of a text that another one takes in.
const TAKES_IN: &[&str] = &["import", "from", "require", "require_relative", "source", "load"];
impl Read {
    fn line(&mut self, root: &Path, line: &str, cwd: &Path) {
        let deeds: Deeds = shell::read(line);
        if deeds.unparsed.is_some() {
            self.words.push(line.to_owned());
            self.unread = true;
        }
        // A commit runs hooks, which may write; that is no sign that it did.
        let quiet = |one: &Command| {
            one.name() == "git" && programs::git(&one.words()) == programs::Git::Nothing
        };
        let unknown = deeds.writes.iter().any(|write| write.place == Named::Unknown);
        self.unread |= unknown && !deeds.commands.iter().all(quiet);
        // What it surely writes may stand behind a `>` and be no word of a command.
        self.words.extend(deeds.writes.iter().filter_map(|write| match &write.place {
            Named::Path(path) | Named::Root(path) | Named::Pattern(path) => Some(path.clone()),
            _ => None,
        }));
        for command in &deeds.commands {
            self.command(root, command, cwd);
        }
        for at in 0..TEXTS_MAX {
            let Some(text) = self.texts.get(at) else { break };
            self.sweeps |= programs::has_git_verb(&text.text);
            let folder = text.file.parent().unwrap_or(root).to_owned();
            let script = |token: &&str| {
                let (_, ending) = token.rsplit_once('.').unwrap_or_default();
                SCRIPTS.contains(&ending)
            };
            let named = tokens(&text.text).filter(script).map(str::to_owned);
            let named: Vec<String> = named.chain(taken_in(text)).collect();
            for token in named {
                for folder in [folder.as_path(), cwd, root] {
                    self.text(&folder.join(&token));
                }
            }
        }
        self.computes |= self.texts.iter().any(Text::computes);
    }

    fn command(&mut self, root: &Path, command: &Command, cwd: &Path) {
        let folder = match &command.folder {
            Named::Path(path) => cwd.join(path),
            Named::Root(path) => root.join(path),
            _ => cwd.to_owned(),
        };
        let words = command.words();
        let name = command.name();
        self.commits |= words.iter().any(|word| tokens(word).any(|token| token == "commit"));
        // What it writes is known by itself, and was told with the whole line.
        if shell::read(&shell::quote(words.iter().map(String::as_str))).harmless {
            return;
        }
        if name == "git" {
            let git = programs::git(&words);
            self.sweeps |= git == programs::Git::Changes;
            self.unread |= git == programs::Git::Unknown;
            if git == programs::Git::Nothing {
                return;
            }
        }
        if programs::only_checks(&words) {
            if matches!(name, "npm" | "yarn" | "pnpm") {
                self.package(root, &words, &folder);
            }
            return;
        }
        self.sweeps |= programs::rewrites(&words);
        self.sweeps |= programs::has_git_verb(&words.join(" "));
        self.words.extend(command.input.clone());
        self.computes |= words.iter().chain(&command.input).any(|word| naming::computes(word));
        let program = command.argv.first().and_then(Argument::text);
        match (name, program) {
            (_, None) => self.unread = true,
            ("make" | "gmake", _) => self.recipes(&words, &folder),
            (name, _) if programs::runs_what_it_built(name, &words) => self.unread = true,
            ("just", _) => drop(self.text(&folder.join("justfile"))),
            ("npm" | "yarn" | "pnpm", _) => self.package(root, &words, &folder),
            (name, _) if INTERPRETERS.contains(&name) || name.starts_with("python") => {
                let inline = words.iter().any(|word| matches!(word.as_str(), "-c" | "-e" | "-m"));
                let script = words.iter().skip(1).position(|word| !word.starts_with('-'));
                self.module(&words, &folder);
                match script.map(|at| at + 1).filter(|_| !inline && !is_given(name)) {
                    Some(at) => {
                        self.script(&folder.join(&words[at]), name, &command.argv[at + 1..]);
                        // That a script runs is no sign that it writes itself.
                        self.words.extend(words.into_iter().skip(at + 1));
                        return;
                    }
                    None => self.unread |= !inline && !is_given(name) && command.input.is_none(),
                }
            }
            (_, Some(program)) if program.contains('/') => {
                let file = folder.join(program);
                if !program.starts_with('/') || file.starts_with(root) {
                    self.script(&file, "", &command.argv[1..]);
                } else {
                    self.text(&file);
                }
                self.words.extend(words.into_iter().skip(1));
                return;
            }
            _ => {}
        }
        self.words.extend(words);
    }

    /// A text that is run by this program, and is given these words.
    fn script(&mut self, file: &Path, by: &str, given: &[Argument]) {
        self.unread |= !self.text(file);
        // What it is told to write, nobody can tell either.
        self.computes |= given.iter().any(|word| match word {
            Argument::Pattern(_) | Argument::Unknown(_) => true,
            Argument::Text(_) | Argument::Home(_) | Argument::Start(_) => false,
        });
        let Some(text) = self.texts.iter_mut().find(|text| text.file == file) else { return };
        if SHELLS.contains(&by) || matches!(text.language, Language::Shell(_)) {
            let given = given.iter().map(|word| word.shown().into_owned());
            text.language = Language::Shell(given.collect());
        }
    }

    /// `python -m NAME`: a text of this tree, or a program that is installed.
    fn module(&mut self, words: &[String], folder: &Path) {
        let at = words.iter().position(|word| word == "-m");
        let Some(name) = at.and_then(|at| words.get(at + 1)) else { return };
        let name = name.replace('.', "/");
        for file in [format!("{name}.py"), format!("{name}/__main__.py")] {
            self.text(&folder.join(file));
        }
    }

    /// Reads a text, once; whether it could be.
    fn text(&mut self, file: &Path) -> bool {
        if self.texts.iter().any(|text| text.file == file) {
            return true;
        }
        let small = |found: std::fs::Metadata| found.is_file() && found.len() <= TEXT_BYTES_MAX;
        if self.texts.len() >= TEXTS_MAX || !std::fs::metadata(file).is_ok_and(small) {
            return false;
        }
        let Ok(text) = std::fs::read_to_string(file) else { return false };
        let language = Language::of(file, &text);
        // A script that surely writes nothing names files only to look at them.
        let is_quiet = |deeds: Deeds| deeds.harmless && deeds.writes.is_empty();
        if !matches!(language, Language::Shell(_)) || !is_quiet(shell::read(&text)) {
            self.texts.push(Text { file: file.to_owned(), text, language });
        }
        true
    }

    /// What `make` goes by. Without a file of recipes it does nothing of its own.
    fn recipes(&mut self, words: &[String], folder: &Path) {
        let after = |option: &str| {
            let at = words.iter().position(|word| word == option)?;
            words.get(at + 1)
        };
        let folder = after("-C").map_or_else(|| folder.to_owned(), |to| folder.join(to));
        let file = match after("-f") {
            Some(file) => Some(folder.join(file)),
            // On some file systems two of these names are one file.
            None => RECIPES.iter().map(|name| folder.join(name)).find(|file| file.is_file()),
        };
        let Some(file) = file else { return };
        self.unread |= !self.text(&file);
        let text = self.texts.iter_mut().find(|text| text.file == file);
        text.into_iter().for_each(|text| text.language = Language::Recipes);
    }

    /// The scripts of a package that its words ask for, as lines of a shell that they are.
    fn package(&mut self, root: &Path, words: &[String], folder: &Path) {
        let text = std::fs::read(folder.join("package.json")).unwrap_or_default();
        let package: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        for word in words.iter().skip(1) {
            for before in ["pre", "", "post"] {
                let script = package["scripts"][format!("{before}{word}")].as_str();
                let Some(script) = script else { continue };
                if self.depth >= DEPTH_MAX {
                    self.unread = true;
                    continue;
                }
                self.depth += 1;
                self.computes |= naming::shell_computes(script, &[]);
                self.line(root, script, folder);
                self.depth -= 1;
            }
        }
    }

    fn says(&self, root: &Path, path: &str) -> Says {
        let root = root.display().to_string();
        let named = self.sweeps
            || self
                .words
                .iter()
                .any(|word| names(word, &root, path, true) && !only_reads(word, path))
            || self.texts.iter().any(|text| names(&text.text, &root, path, false));
        match named {
            true => Says::Named,
            false if self.unread || self.computes => Says::Unread,
            false => Says::Nothing,
        }
    }
}

/// Texts that a text takes in, which it names without their ending.
fn taken_in(text: &Text) -> Vec<String> {
    let Some(ending) = text.file.extension().and_then(|ending| ending.to_str()) else {
        return Vec::new();
    };
    let takes = text.text.lines().filter(|line| tokens(line).any(|one| TAKES_IN.contains(&one)));
    let plain = |token: &&str| !TAKES_IN.contains(token) && !token.contains("..");
    let named = takes.flat_map(|line| tokens(line).filter(plain));
    let name = |token: &str| match ending {
        "py" => format!("{}.{ending}", token.trim_start_matches('.').replace('.', "/")),
        _ => format!("{token}.{ending}"),
    };
    named.map(name).collect()
}

/// Its first word is a program of its own language, and files come after it.
fn is_given(name: &str) -> bool {
    matches!(name, "awk" | "sed")
}

/// What may be a path in a text of any language.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let within = |letter: char| {
        letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | '/' | '*' | '@' | '+')
    };
    text.split(move |letter| !within(letter)).filter(|token| !token.is_empty())
}

/// Does a text of a language name the file only to open it for reading? Rather one too few is taken
/// for that.
fn only_reads(text: &str, path: &str) -> bool {
    const OPENS: &[&str] = &["open(", "readFile(", "readFileSync(", "File.read(", "Path("];
    const READS: &[&str] =
        &[")", "'r'", "\"r\"", "'rb'", "\"rb\"", "'utf8'", "'utf-8'", "encoding"];
    let file = path.rsplit('/').next().unwrap_or(path);
    let quotes = ['\'', '"'];
    let mut found = text.match_indices(file).peekable();
    found.peek().is_some()
        && found.all(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + file.len()..]);
            let start = before.rfind(quotes).map_or("", |quote| before[..quote].trim_end());
            let Some(rest) = after.strip_prefix(quotes) else { return false };
            let rest = rest.trim_start();
            let plain = READS
                .iter()
                .any(|read| rest.strip_prefix(',').map_or(rest, str::trim_start).starts_with(read));
            let next = rest.trim_start_matches([')', ' ']);
            let reads = !next.starts_with('.') || next.starts_with(".read");
            OPENS.iter().any(|open| start.ends_with(open)) && plain && reads
        })
}

/// Does a text name the file, or a folder above it? `plain` is whether one word is enough for a
/// folder: `src` is a word of many programs.
fn names(text: &str, root: &str, path: &str, plain: bool) -> bool {
    // A path with letters that no other word has is in no token.
    (!path.chars().all(|letter| letter.is_alphanumeric() || "._-/".contains(letter))
        && text.contains(path))
        || tokens(text).any(|token| is_named(token, root, path, plain))
}

fn is_named(token: &str, root: &str, path: &str, plain: bool) -> bool {
    let below = token.strip_prefix(root).map_or(token, |rest| rest.trim_start_matches('/'));
    let mut word = below.trim_end_matches(['/', '.']);
    while let Some(rest) = word.strip_prefix("./").or_else(|| word.strip_prefix("../")) {
        word = rest;
    }
    if word.is_empty() || word == "*" {
        return false;
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    if let Some((before, after)) = word.rsplit('/').next().and_then(|last| last.split_once('*')) {
        let long = file.len() >= before.len() + after.len();
        return after.starts_with('.') && long && file.starts_with(before) && file.ends_with(after);
    }
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let is_folder = || {
        let mut folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        (plain || token.contains('/')) && folders.any(|folder| ends(folder, word))
    };
    ends(path, word) || ends(word, path) || is_folder()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_files_by_their_path_their_name_or_a_folder_above() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |file: &str, text: &str| std::fs::write(root.join(file), text).unwrap();
        write("gen.sh", "echo x > src/a.rs\n");
        write("calls.sh", "exec python3 tools.py --all\n");
        write("tools.py", "open('src/' + name, 'w')\n");
        write("plain.py", "import src\nprint('done')\n");
        write("back.sh", "git -C . checkout -- .\n");
        write("Makefile", "all:\n\tsh gen.sh\n");
        write("package.json", r#"{"main": "src/a.rs", "scripts": {"gen": "sh gen.sh"}}"#);
        let says = |line: &str| Reach::of(line, root).says(root, "src/a.rs");
        for line in [
            "python3 -c \"open('src/a.rs','w')\"",
            "python3 -c \"open('a.rs','w')\"",
            "sh gen.sh",
            "./gen.sh",
            "sh calls.sh",
            "make",
            "npm run gen",
            "sh back.sh",
            "cargo fmt",
            "tool src/",
            "tool *.rs",
            &format!("tool {}/src", root.display()),
        ] {
            assert_eq!(says(line), Says::Named, "{line}");
        }
        for line in [
            "python3 plain.py",
            "cargo test",
            "npm test",
            "tool b.rs",
            "tool lib/a.rs.bak",
            "sleep 5",
        ] {
            assert_eq!(says(line), Says::Nothing, "{line}");
        }
        for line in ["python3 gone.py", "./gone", "curl x | sh", "$TOOL x", "cargo run"] {
            assert_eq!(says(line), Says::Unread, "{line}");
        }
    }

    #[test]
    fn who_writes_under_names_it_makes_up_may_have_written_anything() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |file: &str, text: &str| std::fs::write(root.join(file), text).unwrap();
        write("all.py", "import glob\nfor f in glob.glob('*/*'):\n    open(f, 'w')\n");
        write("joined.py", "open('he' + 'ld', 'w')\n");
        write("one.py", "open('out.txt', 'w').write('x')\n");
        write("deep.py", "import all\n");
        write("reads.py", "import glob\nfor f in glob.glob('*/*'):\n    print(open(f).read())\n");
        write("each.sh", "for f in */*; do echo x > $f; done\n");
        write("told.sh", "echo x > \"$1\"\n");
        write("each.mk", "all:\n\tfor f in */*; do echo x > $$f; done\n");
        write("each", "#!/usr/bin/env bash\nfor f in */*; do echo x > $f; done\n");
        write("package.json", r#"{"scripts": {"each": "for f in */*; do echo x > $f; done"}}"#);
        let says = |line: &str| Reach::of(line, root).says(root, "src/a.rs");
        for line in [
            "python3 all.py",
            "python3 -m all",
            "python3 deep.py",
            "python3 joined.py",
            "python3 -c \"import glob; [open(f, 'w') for f in glob.glob('*/*')]\"",
            "python3 - <<'EOF'\nopen('he' + 'ld', 'w')\nEOF",
            "sh each.sh",
            "make -f each.mk",
            "npm run each",
            "./each",
        ] {
            assert_eq!(says(line), Says::Unread, "{line}");
        }
        for line in ["python3 one.py", "python3 reads.py", "sh told.sh out.txt", "npm test"] {
            assert_eq!(says(line), Says::Nothing, "{line}");
        }
    }
}
