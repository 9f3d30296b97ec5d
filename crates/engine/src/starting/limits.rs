//! The client's own limits: what it is told at its start, so that its model is not even offered
//! the tools that a role takes away.
//!
//! Owns how each client is told; what it calls a tool is the table of `wiring::tools`. These limits
//! come before the user's own words, so a user can take them back: they spare the model useless
//! tries, while the doors and the sandbox hold the role whatever a client is told. What cannot be
//! told is left out, and never stops a start.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_core::roles::{Role, Tool};
use serde_json::{Map, Value, json};

use super::Client;
use crate::errand;
use crate::sandbox::private::Private;
use crate::wiring::roles::PREFIX;
use crate::wiring::{self, tools};

/// Codex lists its models in less than a second; without a network it gives up by itself.
const MODELS_WITHIN: Duration = Duration::from_secs(10);
/// A list of models that is longer is none.
const MODELS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// By this a model of Codex is offered patches.
const PATCHES: &str = "apply_patch_tool_type";
/// The highest that a rule of Gemini can have.
const GEMINI_PRIORITY: u16 = 999;
/// A tree is made outside the sandbox that holds the role, so this would always be refused.
const OUTSIDE_OF_CLAUDE: [&str; 1] = ["EnterWorktree"];
const OPENCODE_PERMISSION: &str = "OPENCODE_PERMISSION";
const OPENCODE_CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

/// What a client is told beside its user's words.
#[derive(Debug, Default)]
pub struct Limits {
    /// Before the user's own.
    pub arguments: Vec<OsString>,
    pub environment: Vec<(String, String)>,
    /// What its model is not offered now.
    pub gone: Vec<Tool>,
    /// Files that the client was pointed at. They go when this does, and nobody in a sandbox
    /// writes there.
    private: Option<Private>,
}

/// Who is to be limited, to what.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub client: &'a Client,
    /// The client itself, which may be asked what it has.
    pub program: &'a Path,
    /// Where it will run.
    pub folder: &'a Path,
    pub role_name: &'a str,
    pub role: &'a Role,
}

impl Limits {
    pub fn of(subject: &Subject<'_>) -> Self {
        let mut limits = Self::default();
        let gone = tools::gone(subject.role);
        let Some(client) = wiring::Client::parse(subject.client.name) else { return limits };
        let mut words = tools::words_for(client, &gone);
        if client == wiring::Client::Claude {
            words.extend(OUTSIDE_OF_CLAUDE);
        }
        if words.is_empty() && gone.is_empty() {
            return limits;
        }
        limits.gone =
            gone.iter().copied().filter(|tool| !tools::words(client, *tool).is_empty()).collect();
        match client {
            // With `=`, or the option would take the user's first words for more of its values.
            wiring::Client::Claude => {
                limits.arguments.push(format!("--disallowedTools={}", words.join(",")).into());
            }
            wiring::Client::Codex => limits.of_codex(subject, &gone, &words),
            wiring::Client::Gemini => limits.of_gemini(subject, &words),
            wiring::Client::Opencode => limits.of_opencode(subject, client),
            // The mode takes both away, so it is only for roles that have neither.
            wiring::Client::Cursor => match limits.gone[..] {
                [Tool::Edit, Tool::Shell] => limits.arguments.extend(words.iter().map(Into::into)),
                _ => limits.gone.clear(),
            },
            wiring::Client::Aider => limits.arguments.extend(words.iter().map(Into::into)),
        }
        limits
    }

    /// A file for the client to read; nothing where none can be written.
    fn file(&mut self, name: &str) -> Option<PathBuf> {
        if self.private.is_none() {
            self.private = Private::make().ok();
        }
        self.private.as_ref().map(|private| private.file(name))
    }

    fn of_codex(&mut self, subject: &Subject<'_>, gone: &[Tool], words: &[&str]) {
        let mut settings: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if gone.contains(&Tool::Edit)
            && let Some(models) = self.models_without_patches(subject)
        {
            let path = toml_edit::Value::from(models);
            settings.push(format!("model_catalog_json={path}"));
            self.gone.insert(0, Tool::Edit);
        }
        let pairs = settings.into_iter().flat_map(|setting| ["-c".into(), setting.into()]);
        self.arguments.extend(pairs);
    }

    /// Codex's own list of models, of which none is offered patches: that a model has them is said
    /// nowhere else.
    fn models_without_patches(&mut self, subject: &Subject<'_>) -> Option<String> {
        let path = self.file("models.json")?;
        let argv = [subject.program.to_str()?, "debug", "models"].map(str::to_owned);
        let file = File::create(&path).ok()?;
        if !errand::run_into(&argv, subject.folder, file, MODELS_WITHIN) {
            return None;
        }
        let small = fs::metadata(&path).is_ok_and(|file| file.len() <= MODELS_BYTES_MAX);
        let text = small.then(|| fs::read_to_string(&path).ok())??;
        let mut list: Value = serde_json::from_str(&text).ok()?;
        let models = list.get_mut("models")?.as_array_mut().filter(|models| !models.is_empty())?;
        for model in models {
            model.as_object_mut()?.remove(PATCHES);
        }
        fs::write(&path, list.to_string()).ok()?;
        path.to_str().map(str::to_owned)
    }

    /// What a rule denies without looking at its arguments, Gemini does not offer.
    fn of_gemini(&mut self, subject: &Subject<'_>, words: &[&str]) {
        let rule = format!(
            "[[rule]]\ntoolName = {}\ndecision = \"deny\"\npriority = {GEMINI_PRIORITY}\n\
             denyMessage = {}\n",
            words.iter().copied().collect::<toml_edit::Array>(),
            toml_edit::Value::from(format!("your role is {}", subject.role_name)),
        );
        let file = self.file("policy.toml").filter(|path| fs::write(path, rule).is_ok());
        // Gemini takes a comma for the end of a path.
        match file.and_then(|path| path.to_str().map(str::to_owned)) {
            Some(path) if !path.contains(',') => {
                self.arguments.push(format!("--admin-policy={path}").into());
            }
            _ => self.gone.clear(),
        }
    }

    /// An agent of its own is what the user's settings for other agents, and for all, do not
    /// reach; the permission is for the agents that the user may switch to.
    fn of_opencode(&mut self, subject: &Subject<'_>, client: wiring::Client) {
        let denied = tools::denied(client, subject.role);
        let set = |name: &str| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
        let permission = with(set(OPENCODE_PERMISSION), &denied);
        self.environment.push((OPENCODE_PERMISSION.to_owned(), permission));
        // One that is set is its user's, and says more than can be joined with ours.
        if set(OPENCODE_CONFIG).is_none() {
            let name = format!("{PREFIX}{}", subject.role_name);
            let agent = json!({ "mode": "all", "permission": denied });
            let config = json!({ "default_agent": &name, "agent": { &name: agent } });
            self.environment.push((OPENCODE_CONFIG.to_owned(), config.to_string()));
        }
    }
}

/// An object in JSON with ours after what is there: there, what comes last counts.
fn with(there: Option<String>, ours: &Map<String, Value>) -> String {
    let text = Value::Object(ours.clone()).to_string();
    let there = there.filter(|text| {
        serde_json::from_str::<Map<String, Value>>(text).is_ok_and(|object| !object.is_empty())
    });
    let before = there.as_deref().and_then(|there| there.trim_end().strip_suffix('}'));
    match (before, text.strip_prefix('{')) {
        (Some(before), Some(after)) => format!("{before},{after}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_permits_is_kept_and_ours_comes_last() {
        let ours: Map<String, Value> = [("edit".to_owned(), json!("deny"))].into_iter().collect();
        let joined = with(Some("{\"bash\":\"ask\", \"edit\":\"allow\"} ".to_owned()), &ours);
        assert_eq!(joined, "{\"bash\":\"ask\", \"edit\":\"allow\",\"edit\":\"deny\"}");
        for there in [None, Some("{}".to_owned()), Some("allow".to_owned())] {
            assert_eq!(with(there, &ours), "{\"edit\":\"deny\"}");
        }
    }
}
