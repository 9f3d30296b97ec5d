//! What a hook does most often, done once in a scratch repository while somebody watches.
//!
//! Knows which calls are worth a fast start: the verdicts on edits and reads, `check` and `claim`.
//! None of them starts a thread or a process, which the watching relies on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::watching::entered;

const EDIT: &str = r#""tool_name":"Edit","tool_input":
    {"file_path":"{held}","old_string":"a","new_string":"b"}"#;
const WRITE: &str = r#""tool_name":"Write","tool_input":{"file_path":"{new}","content":"b"}"#;
const READ: &str = r#""tool_name":"Read","tool_input":{"file_path":"{held}"},
    "tool_response":{"type":"text","file":{"content":"a"}}"#;

/// Acts of agents before or after which their client starts us; the last one is refused.
const ACTS: &[(&str, &str, &str)] = &[
    ("ann", "PreToolUse", EDIT),
    ("ann", "PostToolUse", EDIT),
    ("ann", "PreToolUse", WRITE),
    ("ann", "PostToolUse", READ),
    ("bob", "PreToolUse", EDIT),
];

pub(super) struct Rehearsal {
    baton: PathBuf,
    folder: PathBuf,
    repository: PathBuf,
}

impl Rehearsal {
    /// A repository with Baton and two agents, in an empty folder.
    pub(super) fn prepare(baton: &Path, folder: &Path) -> io::Result<Self> {
        let repository = folder.join("repository");
        let place = Self { baton: baton.to_owned(), folder: folder.to_owned(), repository };
        fs::create_dir_all(place.repository.join("src"))?;
        fs::write(place.repository.join("src/held.rs"), "a\n".repeat(200))?;
        place.succeed(place.call(Path::new("git"), &["init", "-q", "-b", "main"]))?;
        place.succeed(place.baton(&["init", "--yes", "--agents", "none"]))?;
        for agent in ["ann", "bob"] {
            place.tell(agent, "SessionStart", r#""source":"startup""#)?;
        }
        let (agent, event, details) = ACTS[0];
        place.tell(agent, event, details)?;
        Ok(place)
    }

    /// Every function of `starts` that one of the calls enters, in the order of the first to.
    pub(super) fn watch(&self, starts: &[u64]) -> io::Result<Vec<u64>> {
        let mut order = Vec::new();
        let nothing = self.folder.join("nothing");
        fs::write(&nothing, "")?;
        for (agent, event, details) in ACTS {
            let payload = self.payload(agent, event, details)?;
            self.add(&self.baton(&["hook", "claude"]), &payload, starts, &mut order)?;
        }
        let credential = self.succeed(self.baton(&["session", "start", "--export"]))?;
        let credential = String::from_utf8_lossy(&credential.stdout).into_owned();
        let (_, credential) = credential.trim().split_once('=').unwrap_or_default();
        for words in [["check", "src/held.rs"], ["claim", "src/third.rs"]] {
            let mut command = self.baton(&words);
            command.env("BATON_SESSION", credential);
            self.add(&command, &nothing, starts, &mut order)?;
        }
        Ok(order)
    }

    fn add(
        &self,
        command: &Command,
        input: &Path,
        starts: &[u64],
        order: &mut Vec<u64>,
    ) -> io::Result<()> {
        let (met, code) = entered(command, input, starts)?;
        // A refusal is a fine end too; anything else was no rehearsal of what happens every day.
        if code > 1 {
            return Err(io::Error::other(format!("{command:?} ended with {code}")));
        }
        let new = met.into_iter().filter(|start| !order.contains(start)).collect::<Vec<_>>();
        order.extend(new);
        Ok(())
    }

    fn tell(&self, agent: &str, event: &str, details: &str) -> io::Result<()> {
        let payload = self.payload(agent, event, details)?;
        let mut command = self.baton(&["hook", "claude"]);
        command.stdin(fs::File::open(payload)?);
        self.succeed(command).map(|_| ())
    }

    fn payload(&self, agent: &str, event: &str, details: &str) -> io::Result<PathBuf> {
        let root = self.repository.display();
        let details = details
            .replace("{held}", &format!("{root}/src/held.rs"))
            .replace("{new}", &format!("{root}/src/new.rs"));
        let path = self.folder.join(format!("{agent}-{event}.json"));
        let whose = format!(r#""session_id":"{agent}","cwd":"{root}","tool_use_id":"1""#);
        let text = format!(r#"{{{whose},"hook_event_name":"{event}",{details}}}"#);
        fs::write(&path, text)?;
        Ok(path)
    }

    fn baton(&self, words: &[&str]) -> Command {
        self.call(&self.baton, words)
    }

    /// With nothing of the user's in reach: neither files nor settings.
    fn call(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.repository).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("HOME", &self.folder).env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    fn succeed(&self, mut command: Command) -> io::Result<Output> {
        let output = command.stderr(Stdio::piped()).output()?;
        match output.status.success() {
            true => Ok(output),
            false => Err(io::Error::other(format!(
                "{command:?} failed: {}",
                String::from_utf8_lossy(&output.stderr)
            ))),
        }
    }
}
