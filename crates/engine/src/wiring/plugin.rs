//! Baton as a plugin of Claude Code, for those who would rather not have it in every repository.
//!
//! Owns the folder's layout: manifest, hooks, MCP server, one skill. Writes only into a folder that
//! is new, empty, or a plugin of Baton's already.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::command::Program;
use super::record::hash;
use super::{Broken, Mode, claude, files, json, words};

const MANIFEST: &str = ".claude-plugin/plugin.json";
/// What Baton wrote last, by its hashes: what is otherwise was changed by somebody.
const RECORD: &str = ".claude-plugin/baton-wrote.json";

/// What became of the folder.
#[derive(Debug, Default)]
pub struct Written {
    pub files: Vec<String>,
    /// Files that somebody changed, which stay.
    pub kept: Vec<String>,
}

/// Which file could not be written, and why.
#[derive(Debug)]
pub struct Problem {
    pub path: PathBuf,
    pub why: String,
}

/// Writes the plugin and names its files.
pub fn write(folder: &Path) -> Result<Written, Problem> {
    let problem = |path: &Path, why: Broken| Problem { path: path.to_owned(), why: why.0 };
    let io = |error: std::io::Error| problem(folder, Broken(error.to_string()));
    std::fs::create_dir_all(folder).map_err(io)?;
    let folder = &folder.canonicalize().map_err(io)?;
    let contents = contents().map_err(|why| problem(folder, why))?;
    let failed = |name: &str, why| problem(&folder.join(name), why);
    let manifest = files::look(folder, MANIFEST).map_err(|why| failed(MANIFEST, why))?;
    let ours = manifest.text.is_some_and(|text| text.contains("\"name\": \"baton\""));
    let empty = std::fs::read_dir(folder).map_err(io)?.next().is_none();
    if !ours && !empty {
        return Err(problem(folder, Broken("it holds something else already".to_owned())));
    }
    let record = files::look(folder, RECORD).map_err(|why| failed(RECORD, why))?;
    let text = record.text.as_deref().unwrap_or("{}");
    let mut known: BTreeMap<String, String> = serde_json::from_str(text).unwrap_or_default();
    let mut written = Written::default();
    for (name, text) in contents {
        let there = files::look(folder, name).map_err(|why| failed(name, why))?;
        let now = there.text.as_deref();
        let is_ours = |now: &str| now == text || known.get(name) == Some(&hash(now));
        if !now.is_none_or(is_ours) {
            written.kept.push(name.to_owned());
            continue;
        }
        if now != Some(&*text) {
            files::write(&there.path, now, &text, None).map_err(|why| failed(name, why))?;
        }
        known.insert(name.to_owned(), hash(&text));
        written.files.push(name.to_owned());
    }
    let text = serde_json::to_string_pretty(&known).unwrap_or_default() + "\n";
    if record.text.as_deref() != Some(&*text) {
        files::write(&record.path, record.text.as_deref(), &text, None)
            .map_err(|why| failed(RECORD, why))?;
    }
    Ok(written)
}

fn contents() -> Result<Vec<(&'static str, String)>, Broken> {
    let program = Program { mode: Mode::Team, path: "baton" };
    let manifest = serde_json::json!({
        "name": "baton",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Keeps agents that work on one codebase from stepping on each other",
        "author": { "name": "Baton" },
    });
    let manifest = serde_json::to_string_pretty(&manifest).unwrap_or_default() + "\n";
    Ok(vec![
        (MANIFEST, manifest),
        ("hooks/hooks.json", json::put("", &claude::hooks(&program))?),
        (".mcp.json", json::put("", &claude::server(&program))?),
        ("skills/baton/SKILL.md", format!("{}{}", words::SKILL, words::BLOCK)),
    ])
}
