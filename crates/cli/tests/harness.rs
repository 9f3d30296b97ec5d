//! A scratch repository with the real binary in it.
//!
//! Owns a clean environment: no variable of the machine's agents, sessions or stores reaches a
//! test, and nothing of a test reaches the user's home.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Scratch {
    pub(crate) folder: TempDir,
    pub(crate) store: Option<String>,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Refused in the way every refusal must be: one line, then one `next:` line.
    #[track_caller]
    pub(crate) fn refused(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        let lines: Vec<&str> = self.err.lines().collect();
        assert_eq!(lines.len(), 2, "one line and a next line: {self:?}");
        assert!(lines[1].starts_with("next: "), "{self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
        self
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Scratch {
    /// A git repository with two files and one commit, not yet a workspace.
    pub(crate) fn repository() -> Self {
        let scratch = Self { folder: TempDir::new().unwrap(), store: None };
        std::fs::create_dir_all(scratch.path("repo/src")).unwrap();
        std::fs::create_dir_all(scratch.path("home")).unwrap();
        scratch.write("src/a.rs", "fn a() {}\n");
        scratch.write("README.md", "# Read me\n");
        scratch.git(&["init", "-q", "-b", "main"]);
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "first"]);
        scratch
    }

    /// The same, set up with `baton init`.
    pub(crate) fn workspace() -> Self {
        let scratch = Self::repository();
        scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
        scratch
    }

    /// The same with this `baton.toml`.
    pub(crate) fn with_policy(policy: &str) -> Self {
        let scratch = Self::repository();
        scratch.write("baton.toml", policy);
        scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
        scratch
    }

    /// All commands use this shared store from here on.
    pub(crate) fn on_store(mut self, address: &str) -> Self {
        self.store = Some(address.to_owned());
        self
    }

    /// The same test on each kind of store: SQLite, and PostgreSQL where there is one.
    pub(crate) fn on_each_store(policy: &str, test: impl Fn(&Self)) {
        test(&Self::with_policy(policy));
        let address = match baton_testing::cluster::shared() {
            Ok(server) => server.address(&server.create_database().unwrap()),
            Err(error) => return eprintln!("skipped on PostgreSQL: {error}"),
        };
        let scratch = Self::repository().on_store(&address);
        scratch.write("baton.toml", policy);
        scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
        test(&scratch);
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path("repo")
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.root().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn git(&self, words: &[&str]) -> String {
        let mut command = Command::new("git");
        self.clean(&mut command);
        command.current_dir(self.root()).args(words);
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Ann");
            command.env(format!("GIT_{role}_EMAIL"), "ann@example.invalid");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The binary, ready to be given more.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        self.clean(&mut command);
        command.current_dir(self.root()).args(words).stdin(Stdio::null());
        command
    }

    /// Only what a command needs of the surroundings.
    pub(crate) fn clean(&self, command: &mut Command) {
        command.env_clear();
        // Hooks of a team find Baton by PATH.
        let program = Path::new(env!("CARGO_BIN_EXE_baton")).parent().unwrap().to_owned();
        let others = path_without_clients();
        let folders = std::iter::once(program).chain(std::env::split_paths(&others));
        command.env("PATH", std::env::join_paths(folders).unwrap());
        command.env("HOME", self.path("home"));
        command.env("XDG_CONFIG_HOME", self.path("home/.config"));
        command.env("LANG", "C.UTF-8").env("NO_COLOR", "1");
        if let Some(store) = &self.store {
            command.env("BATON_STORE", store);
        }
    }

    pub(crate) fn baton(&self, words: &[&str]) -> Said {
        self.command(words).output().unwrap().into()
    }

    /// The command with a terminal of its own, where a person types `answer`. Nothing where there
    /// is no `script`, or where an agent runs the tests: no terminal below it is a person's.
    pub(crate) fn person(&self, words: &[&str], answer: &str) -> Option<Said> {
        let who = self.on_terminal(&["doctor"], "")?;
        if !who.out.contains("a person") {
            eprintln!("skipped: an agent is above this test");
            return None;
        }
        self.on_terminal(words, answer)
    }

    pub(crate) fn on_terminal(&self, words: &[&str], answer: &str) -> Option<Said> {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let line = format!("{} {}", env!("CARGO_BIN_EXE_baton"), quoted.join(" "));
        let mut command = Command::new("script");
        self.clean(&mut command);
        command.env("NO_COLOR", "1").current_dir(self.root());
        command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped());
        let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
            eprintln!("skipped: there is no `script` here");
            return None;
        };
        use std::io::Write;
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        let mut said = Said::from(child.wait_with_output().unwrap());
        said.out = said.out.replace('\r', "");
        Some(said)
    }

    /// Starts a session and gives its credential.
    pub(crate) fn session(&self, name: &str) -> String {
        let said = self.baton(&["session", "start", "--name", name, "--json"]).ok();
        said.json()["credential"].as_str().unwrap().to_owned()
    }

    /// A session bound to a process of its own, which ends when the guard is dropped.
    pub(crate) fn session_with_process(&self, name: &str) -> (String, Process) {
        let process = Process::start();
        let pid = process.0.id().to_string();
        let said = self.baton(&["session", "start", "--name", name, "--pid", &pid, "--json"]).ok();
        (said.json()["credential"].as_str().unwrap().to_owned(), process)
    }

    pub(crate) fn acts(&self, credential: &str, words: &[&str]) -> Said {
        self.command(words).env("BATON_SESSION", credential).output().unwrap().into()
    }

    /// As `acts`, in the background.
    pub(crate) fn begins(&self, credential: &str, words: &[&str]) -> Child {
        self.command(words)
            .env("BATON_SESSION", credential)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Lets tests move the clock and the boot id of this workspace.
    pub(crate) fn allow_test_hooks(&self) {
        std::fs::write(self.store().join("test-hooks"), "").unwrap();
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.root().join(".git/baton")
    }

    /// As `acts`, with the store's clock this far ahead.
    pub(crate) fn acts_later(&self, credential: &str, millis: u64, words: &[&str]) -> Said {
        self.command(words)
            .env("BATON_SESSION", credential)
            .env("BATON_TEST_CLOCK_ADVANCE_MS", millis.to_string())
            .output()
            .unwrap()
            .into()
    }

    /// Waits until the queue has this many waiters, so that a test need not guess.
    pub(crate) fn until_waiting(&self, count: usize) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while self.waiters() != count {
            assert!(std::time::Instant::now() < deadline, "nobody waits");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// As `until_waiting`, for any store: each look is a command of its own.
    pub(crate) fn until_status_shows_waiting(&self, count: usize) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            let status = self.baton(&["status", "--json"]).ok().json();
            let waiting = status["queue"].as_array().or(status["waiters"].as_array());
            if waiting.is_some_and(|waiting| waiting.len() == count) {
                return;
            }
            assert!(std::time::Instant::now() < deadline, "nobody waits: {status}");
        }
    }

    fn waiters(&self) -> usize {
        let database = rusqlite::Connection::open(self.store().join("store.db")).unwrap();
        let count = "SELECT count(*) FROM records WHERE kind = 'waiter'";
        let found: i64 = database.query_row(count, [], |row| row.get(0)).unwrap();
        usize::try_from(found).unwrap()
    }
}

/// The machine's PATH without folders that hold an agent client: `init` would find it in use.
pub(crate) fn path_without_clients() -> std::ffi::OsString {
    const CLIENTS: [&str; 7] =
        ["claude", "codex", "gemini", "cursor", "cursor-agent", "opencode", "aider"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let none = |folder: &PathBuf| CLIENTS.iter().all(|name| !folder.join(name).exists());
    std::env::join_paths(std::env::split_paths(&path).filter(none)).unwrap_or_default()
}

/// A process that does nothing until it is ended.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start() -> Self {
        // It may outlive a test that is killed, and must not hold the runner's output open then.
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The repository of Baton itself.
pub(crate) fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).unwrap()
}
