//! One call of git: its arguments, its environment, its limits.
//!
//! Owns what makes a call safe in a hostile repository. It refuses to know what is asked.
//! Invariant: git sees only the variables named here, looks for itself only in absolute folders
//! (a `git` lying in the repository is not ours), and dies with all its children at the deadline.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::{At, Error, Git, OUTPUT_BYTES_MAX};
use crate::{sandbox, slow};

const MESSAGE_BYTES_MAX: u64 = 64 * 1024;
const MESSAGE_CHARS_SHOWN: usize = 300;
const COMMAND_CHARS_SHOWN: usize = 120;
const EXIT_POLL: Duration = Duration::from_micros(200);

/// What git needs of our environment. Everything else stays out, above all `GIT_*`: a hook's
/// `GIT_DIR` or `GIT_INDEX_FILE` would send a call into another repository.
const KEPT: &[&str] =
    &["HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "DEVELOPER_DIR", "SYSTEMROOT"];

const SET: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("LANG", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    // Replacement objects would let a repository show other content than it has.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // A partial clone would otherwise go to the network in the middle of a status.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_EDITOR", ":"),
    ("GIT_PAGER", "cat"),
];

/// Every setting by which a repository's own configuration could run a program in the calls we
/// make, and some that would change their answers. Filters have names and are handled apart.
const CONFIGURATION: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=:",
    "sequence.editor=:",
    "core.askPass=",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.alternateRefsCommand=false",
    "core.splitIndex=false",
    "credential.helper=",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "color.ui=false",
    "advice.detachedHead=false",
    "safe.bareRepository=explicit",
];

/// The first `git` in the absolute folders of PATH.
pub(super) fn find_program() -> Result<PathBuf, Error> {
    let found = absolute_path_folders().into_iter().find_map(|folder| {
        let program = folder.join("git");
        let metadata = std::fs::metadata(&program).ok()?;
        (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(program)
    });
    found.ok_or(Error::NotInstalled)
}

fn absolute_path_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

#[derive(Debug)]
pub(super) struct Call<'a> {
    git: &'a Git,
    subcommand: &'static str,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    /// Filter drivers of the repository's own configuration, switched off.
    filters: Vec<String>,
    /// Merge drivers of the repository's own configuration, switched off.
    drivers: Vec<String>,
    /// Settings over those of every call, for the few that must reach a remote.
    settings: Vec<String>,
    input: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: Option<i32>,
    pub(super) output: Vec<u8>,
    message: Vec<u8>,
}

impl<'a> Call<'a> {
    pub(super) fn new(git: &'a Git, subcommand: &'static str) -> Self {
        let (arguments, environment, filters) = (Vec::new(), Vec::new(), Vec::new());
        let (drivers, settings, input) = (Vec::new(), Vec::new(), Vec::new());
        Self { git, subcommand, arguments, environment, filters, drivers, settings, input }
    }

    /// Options and other words of ours.
    pub(super) fn options(mut self, options: &[&str]) -> Self {
        self.arguments.extend(options.iter().map(OsString::from));
        self
    }

    /// Names that came from outside: no option is read after this.
    pub(super) fn revisions(mut self, names: &[&str]) -> Self {
        self.arguments.push("--end-of-options".into());
        self.options(names)
    }

    /// Literal paths, last; the empty one is the root.
    pub(super) fn paths<'p>(mut self, paths: impl IntoIterator<Item = &'p str>) -> Self {
        self.arguments.push("--".into());
        let root = |path: &'p str| if path.is_empty() { "." } else { path };
        self.arguments.extend(paths.into_iter().map(|path| OsString::from(root(path))));
        self
    }

    pub(super) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    pub(super) fn set(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name, value.as_ref().to_os_string()));
        self
    }

    pub(super) fn without_filters(mut self, filters: &[String]) -> Self {
        self.filters = filters.to_vec();
        self
    }

    pub(super) fn without_drivers(mut self, drivers: &[String]) -> Self {
        self.drivers = drivers.to_vec();
        self
    }

    pub(super) fn settings(mut self, settings: &[String]) -> Self {
        self.settings = settings.to_vec();
        self
    }

    /// The answer of a call that must succeed.
    pub(super) fn bytes(self) -> Result<Vec<u8>, Error> {
        self.answer(&[]).map(|answer| answer.output)
    }

    pub(super) fn text(self) -> Result<String, Error> {
        let command = self.summary();
        String::from_utf8(self.bytes()?).map_err(|_| Error::Unexpected { command })
    }

    /// The answer of a call that may also end with one of these codes.
    pub(super) fn answer(self, accepted: &[i32]) -> Result<Answer, Error> {
        let command = self.summary();
        let answer = self.run(&command)?;
        let accepts = |code: i32| code == 0 || accepted.contains(&code);
        if answer.status.is_some_and(accepts) {
            return Ok(answer);
        }
        let text = String::from_utf8_lossy(&answer.message);
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let message = line.chars().take(MESSAGE_CHARS_SHOWN).collect();
        Err(Error::Failed { command, status: answer.status, message })
    }

    /// What was asked, short enough to show.
    pub(super) fn summary(&self) -> String {
        let mut text = self.subcommand.to_owned();
        for argument in &self.arguments {
            text.push(' ');
            text.push_str(&argument.to_string_lossy());
        }
        if text.chars().count() > COMMAND_CHARS_SHOWN {
            text = text.chars().take(COMMAND_CHARS_SHOWN).collect();
            text.push('…');
        }
        text
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.git.program);
        command.env_clear();
        if let At::Tree(folder) = &self.git.place
            && let Some(bound) = sandbox::git_in(&self.git.program, folder, self.subcommand)
        {
            command = bound;
        }
        command.envs(SET.iter().copied());
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Ok(path) = std::env::join_paths(absolute_path_folders()) {
            command.env("PATH", path);
        }
        // Through the environment and not `-c`, because a driver's name may hold an `=`.
        let settings = self.filters.iter().flat_map(|filter| {
            [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")]
                .map(|(key, value)| (format!("filter.{filter}.{key}"), value))
        });
        // A driver that fails leaves a conflict, which is never resolved by dropping a side.
        let drivers = self.drivers.iter().map(|name| (format!("merge.{name}.driver"), "false"));
        let mut count = 0;
        for (key, value) in settings.chain(drivers) {
            command.env(format!("GIT_CONFIG_KEY_{count}"), key);
            command.env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command.env("GIT_CONFIG_COUNT", count.to_string());
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command.current_dir(self.git.folder());
        command.arg("--no-pager");
        // The only one that knows no such thing; whoever calls it writes its names accordingly.
        if self.subcommand != "check-ignore" {
            command.arg("--literal-pathspecs");
        }
        if let At::Repository(folder) = &self.git.place {
            command.arg("--git-dir").arg(folder);
        }
        command.args(CONFIGURATION.iter().flat_map(|setting| ["-c", setting]));
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        command.arg(self.subcommand).args(&self.arguments);
        command
    }

    fn run(self, summary: &str) -> Result<Answer, Error> {
        slow::begins();
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that the deadline also ends what git has started.
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|source| Error::Spawn { command: summary.to_owned(), source })?;
        let deadline = Instant::now() + self.git.timeout;
        let result = talk(&mut child, self.input, deadline);
        let problem = match result {
            Ok(answer) => return Ok(answer),
            Err(problem) => problem,
        };
        end(&mut child);
        let command = summary.to_owned();
        Err(match problem {
            Problem::Late => Error::TimedOut { command, seconds: self.git.timeout.as_secs() },
            Problem::Long => Error::TooMuchOutput { command, limit: OUTPUT_BYTES_MAX },
            Problem::Lost => Error::Unexpected { command },
        })
    }
}

enum Problem {
    Late,
    Long,
    Lost,
}

enum Heard {
    Output(Vec<u8>),
    Message(Vec<u8>),
}

fn talk(child: &mut Child, input: Vec<u8>, deadline: Instant) -> Result<Answer, Problem> {
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Problem::Lost);
    };
    // The threads end with the pipes: when git ends, or is ended at the deadline.
    if input.is_empty() {
        drop(stdin);
    } else {
        // Git may well stop reading early; its answer, not this write, tells what happened.
        std::thread::spawn(move || stdin.write_all(&input).ok());
    }
    let (sender, receiver) = channel();
    let second = sender.clone();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes).ok();
        sender.send(Heard::Output(bytes)).ok();
    });
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut stderr = stderr;
        stderr.by_ref().take(MESSAGE_BYTES_MAX).read_to_end(&mut bytes).ok();
        std::io::copy(&mut stderr, &mut std::io::sink()).ok();
        second.send(Heard::Message(bytes)).ok();
    });
    let (output, message) = hear(&receiver, deadline)?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Answer { status: status.code(), output, message }),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(EXIT_POLL),
            Ok(None) => return Err(Problem::Late),
            Err(_) => return Err(Problem::Lost),
        }
    }
}

fn hear(receiver: &Receiver<Heard>, deadline: Instant) -> Result<(Vec<u8>, Vec<u8>), Problem> {
    let (mut output, mut message) = (None, None);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok(Heard::Output(bytes)) if bytes.len() as u64 > OUTPUT_BYTES_MAX => {
                return Err(Problem::Long);
            }
            Ok(Heard::Output(bytes)) => output = Some(bytes),
            Ok(Heard::Message(bytes)) => message = Some(bytes),
            Err(_) => return Err(Problem::Late),
        }
        if let (Some(output), Some(message)) = (&mut output, &mut message) {
            return Ok((std::mem::take(output), std::mem::take(message)));
        }
    }
}

/// Ends git and everything it has started, then reaps it.
fn end(child: &mut Child) {
    let group = rustix::process::Pid::from_child(child);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
    child.kill().ok();
    child.wait().ok();
}
