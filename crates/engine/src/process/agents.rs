//! The agent clients we can recognise, by environment and by process name.
//!
//! Owns the one table of them. It refuses to decide who is a session: it gives hints. Only
//! variables that a client itself sets for its children are listed; what people set to configure a
//! client (`CODEX_HOME`, `AIDER_MODEL`, `GEMINI_API_KEY`) would turn their terminals into agents.
//! Invariant: an environment that names two clients is an error, not a guess.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::{Ancestor, system};

/// A client, and how it shows.
struct Client {
    name: &'static str,
    /// Variables it sets for its children, to anything but empty, `0` and `false`.
    signs: &'static [&'static str],
    /// Variables that carry its session's id; each is also a sign.
    sessions: &'static [&'static str],
    /// Names of its process, or of the script that an interpreter runs for it.
    processes: &'static [&'static str],
}

const CLIENTS: &[Client] = &[
    Client {
        name: "claude",
        signs: &["CLAUDECODE"],
        sessions: &["CLAUDE_CODE_SESSION_ID"],
        processes: &["claude", "claude-code"],
    },
    Client {
        name: "codex",
        signs: &["CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_CI"],
        sessions: &["CODEX_THREAD_ID", "CODEX_SESSION_ID"],
        processes: &["codex"],
    },
    Client {
        name: "gemini",
        signs: &["GEMINI_CLI"],
        sessions: &["GEMINI_SESSION_ID"],
        processes: &["gemini", "gemini-cli"],
    },
    Client {
        name: "cursor",
        signs: &["CURSOR_AGENT"],
        sessions: &["CURSOR_CONVERSATION_ID"],
        processes: &["cursor-agent"],
    },
    Client {
        name: "opencode",
        signs: &["OPENCODE"],
        sessions: &["OPENCODE_SESSION_ID"],
        processes: &["opencode"],
    },
    Client { name: "amp", signs: &[], sessions: &["AMP_CURRENT_THREAD_ID"], processes: &["amp"] },
    Client { name: "goose", signs: &["GOOSE_TERMINAL"], sessions: &[], processes: &["goose"] },
    Client { name: "aider", signs: &[], sessions: &[], processes: &["aider"] },
    Client { name: "gptme", signs: &[], sessions: &[], processes: &["gptme"] },
];

/// Programs that run a client's script under their own name.
const INTERPRETERS: &[&str] = &["node", "bun", "deno", "python", "python3", "MainThread"];
/// How many arguments of an interpreter may come before and with the script.
const SCRIPT_ARGUMENTS_MAX: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHint {
    pub client: String,
    /// The client's own id of its session, as it says.
    pub client_session: Option<String>,
}

/// One agent was started inside another and inherited its variables: neither is an identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment names several agents: {}", clients.join(", "))]
pub struct SeveralAgents {
    pub clients: Vec<String>,
}

/// The agent that this process's environment speaks of.
pub fn agent_environment() -> Result<Option<AgentHint>, SeveralAgents> {
    agent_in(|name| std::env::var_os(name))
}

fn agent_in(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<AgentHint>, SeveralAgents> {
    let set = |name: &&str| {
        variable(name).filter(|value| !["", "0", "false"].iter().any(|no| value == no))
    };
    let mut hints = Vec::new();
    for client in CLIENTS {
        let session = client.sessions.iter().find_map(set);
        if session.is_some() || client.signs.iter().any(|name| set(name).is_some()) {
            let client_session = session.and_then(|value| value.into_string().ok());
            hints.push(AgentHint { client: client.name.to_owned(), client_session });
        }
    }
    if hints.len() > 1 {
        return Err(SeveralAgents { clients: hints.into_iter().map(|hint| hint.client).collect() });
    }
    Ok(hints.pop())
}

/// The nearest known agent among the ancestors, and which client it is.
pub fn agent_among(
    ancestors: impl IntoIterator<Item = Ancestor>,
) -> Option<(&'static str, Ancestor)> {
    ancestors.into_iter().find_map(|ancestor| {
        let arguments = || system::arguments(ancestor.identity.pid);
        let client = client_of(&ancestor.name, arguments)?;
        Some((client, ancestor))
    })
}

fn client_of(name: &str, arguments: impl FnOnce() -> Vec<String>) -> Option<&'static str> {
    if let Some(client) = client_named(name) {
        return Some(client);
    }
    let interpreter = INTERPRETERS.contains(&name) || name.starts_with("python3.");
    if !interpreter {
        return None;
    }
    let arguments = arguments();
    arguments.iter().take(SCRIPT_ARGUMENTS_MAX).find_map(|argument| {
        let file = argument.rsplit('/').next().unwrap_or_default();
        let stem = file.split('.').next().unwrap_or_default();
        client_named(stem).or_else(|| {
            // `node …/@google/gemini-cli/dist/index.js`: the package is the client.
            argument
                .contains("/node_modules/")
                .then(|| argument.split('/').find_map(client_named))?
        })
    })
}

fn client_named(name: &str) -> Option<&'static str> {
    CLIENTS.iter().find(|client| client.processes.contains(&name)).map(|client| client.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(variables: &[(&str, &str)]) -> Result<Option<AgentHint>, SeveralAgents> {
        agent_in(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    fn hint(client: &str, session: Option<&str>) -> Result<Option<AgentHint>, SeveralAgents> {
        let client_session = session.map(str::to_owned);
        Ok(Some(AgentHint { client: client.to_owned(), client_session }))
    }

    #[test]
    fn the_environment_names_the_client_and_its_session() {
        let claude = agent(&[("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "s")]);
        assert_eq!(claude, hint("claude", Some("s")));
        assert_eq!(agent(&[("CODEX_THREAD_ID", "t")]), hint("codex", Some("t")));
        assert_eq!(agent(&[("GEMINI_CLI", "1")]), hint("gemini", None));
        assert_eq!(agent(&[("OPENCODE", "1")]), hint("opencode", None));
    }

    #[test]
    fn the_shell_door_knows_every_name_of_an_agent() {
        use baton_core::shell::danger::{CLIENT_IDS, CLIENT_SIGNS};
        for client in CLIENTS {
            assert!(
                client.sessions.iter().all(|name| CLIENT_IDS.contains(name)),
                "{}",
                client.name
            );
            assert!(client.signs.iter().all(|name| CLIENT_SIGNS.contains(name)), "{}", client.name);
        }
    }

    #[test]
    fn what_people_set_makes_no_agent() {
        let set = [("CODEX_HOME", "x"), ("AIDER_MODEL", "y"), ("GEMINI_API_KEY", "z")];
        assert_eq!(agent(&set), Ok(None));
        assert_eq!(agent(&[("CLAUDECODE", "0"), ("CURSOR_AGENT", "")]), Ok(None));
    }

    #[test]
    fn an_agent_inside_an_agent_is_no_identity() {
        let both = agent(&[("CLAUDECODE", "1"), ("CODEX_SANDBOX", "seatbelt")]);
        assert_eq!(both.unwrap_err().clients, ["claude", "codex"]);
    }

    #[test]
    fn processes_are_known_by_name_or_by_script() {
        let known = |name: &str, arguments: &[&str]| {
            client_of(name, || arguments.iter().map(|text| (*text).to_owned()).collect())
        };
        assert_eq!(known("claude", &[]), Some("claude"));
        assert_eq!(known("node", &["node", "/usr/bin/codex"]), Some("codex"));
        assert_eq!(known("python3.12", &["python3", "/venv/bin/aider"]), Some("aider"));
        let package = "/lib/node_modules/@google/gemini-cli/dist/index.js";
        assert_eq!(known("node", &["node", "--no-warnings", package]), Some("gemini"));
        assert_eq!(known("node", &["node", "server.js", "x", "y", "codex"]), None);
        assert_eq!(known("bash", &["bash", "claude"]), None);
        assert_eq!(known("node", &["node", "/srv/claude/server.js"]), None);
    }
}
