//! The edges between the crates.
//!
//! Two rules make the house: core does no I/O, and engine does not print. What a crate may use is
//! the first half of both, and is read here from the manifests; a new name in the list of core is
//! a decision, made here and in a file of `docs/design`.

use super::{Finding, Source};

/// All that core may use: values, their stored form, their hash, their errors.
const CORE_MAY_USE: &[&str] =
    &["blake3", "jiff", "schemars", "serde", "serde_json", "thiserror", "unicode-normalization"];
/// What speaks to people, and so is not for engine.
const ENGINE_MAY_NOT_USE: &[&str] =
    &["baton", "baton-testing", "clap_complete", "clap_mangen", "indicatif", "ratatui"];

pub(crate) fn judge(sources: &[Source], findings: &mut Vec<Finding>) {
    for source in sources {
        let (refused, why): (fn(&str) -> bool, _) = match source.path.as_str() {
            "crates/core/Cargo.toml" => (
                |name| !CORE_MAY_USE.contains(&name),
                "core is rules over values: no I/O, no clock",
            ),
            "crates/engine/Cargo.toml" => {
                (|name| ENGINE_MAY_NOT_USE.contains(&name), "engine does, and cli speaks")
            }
            _ => continue,
        };
        for (line, name) in dependencies(&source.text) {
            if refused(name) {
                let what = format!("the dependency `{name}`");
                findings.push(Finding { path: source.path.clone(), line, what, why });
            }
        }
    }
}

/// The names below `[dependencies]`, `[build-dependencies]` and their forms for one platform, with
/// their lines. Those for tests alone are free.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            let last = table.rsplit('.').next().unwrap_or(table);
            let is_list = |name: &str| matches!(name, "dependencies" | "build-dependencies");
            inside = is_list(last);
            // `[dependencies.name]`
            let mut parts = table.rsplitn(3, '.');
            if let (Some(name), Some(list)) = (parts.next(), parts.next())
                && is_list(list)
            {
                found.push((index + 1, name));
            }
        } else if inside && let Some((name, _)) = line.split_once(['.', '=', ' ']) {
            found.push((index + 1, name.trim()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn judged(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        judge(&[samples::source(path, text)], &mut findings);
        samples::shown(&findings, false)
    }

    #[test]
    fn core_uses_only_what_is_listed() {
        let text = "[dependencies]\nserde.workspace = true\nserde_json = \"1\" # x\n\
                    [dev-dependencies]\nproptest.workspace = true\n[lints]\nworkspace = true\n";
        assert_eq!(judged("crates/core/Cargo.toml", text), [""; 0]);
        let bad = format!("{text}[dependencies]\nrusqlite = {{ version = \"1\" }}\n");
        assert_eq!(judged("crates/core/Cargo.toml", &bad), ["9 the dependency `rusqlite`"]);
        for table in ["build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let bad = format!("[{table}]\nrustix.workspace = true\n");
            assert_eq!(judged("crates/core/Cargo.toml", &bad), ["2 the dependency `rustix`"]);
        }
        let bad = "[dependencies.tokio]\nversion = \"1\"\n";
        assert_eq!(judged("crates/core/Cargo.toml", bad), ["1 the dependency `tokio`"]);
    }

    #[test]
    fn engine_uses_nothing_that_speaks() {
        let text = "[dependencies]\nindicatif.workspace = true\nrusqlite.workspace = true\n";
        assert_eq!(judged("crates/engine/Cargo.toml", text), ["2 the dependency `indicatif`"]);
        assert_eq!(judged("crates/cli/Cargo.toml", text), [""; 0]);
    }
}
