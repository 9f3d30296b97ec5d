//! `cargo xtask tidy`: the rules of the house that a compiler does not hold.
//!
//! A rule is a plain function from files to findings, so each is tested on small samples; the
//! repository itself is judged by a unit test too, so that plain `cargo test` holds it. A finding
//! carries the reason of its rule: whoever meets it should know what it protects.

use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::run;

mod code;
mod edges;
mod functions;
mod layout;
mod lexer;
mod modules;
mod text;

pub(crate) const HELP: &str = "\
Usage: cargo xtask tidy

Checks the rules of the house on every file that git tracks or would track: sizes of files,
functions and lines, words and attributes that must not stay, module headers, names, test files
that nobody runs, the edges between the crates, paths of somebody's machine.

Each finding is one line: path:line: what is wrong, and why the rule exists.
";

/// A text file of the repository; the path is relative to its root, with `/`.
#[derive(Debug)]
pub(crate) struct Source {
    path: String,
    text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// A sample in a file that is not ours to shape: what a program printed, or was fed.
    fn is_sample(&self) -> bool {
        let folder = |name: &str| self.path.split('/').any(|part| part == name);
        self.path.ends_with(".snap") || folder("fixtures") || folder("samples")
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    what: String,
    why: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what, why } = self;
        write!(formatter, "{path}:{line}: {what}: {why}")
    }
}

pub(crate) fn act(words: &[String]) -> Result<(), Failure> {
    if let Some(word) = words.first() {
        return Err(Failure::Usage { verb: "tidy", word: word.clone() });
    }
    let sources = read(run::root())?;
    let findings = judge(&sources);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, nothing found", sources.len());
        Ok(())
    } else {
        Err(Failure::Untidy { findings: findings.len() })
    }
}

/// All rules over all files, in the order of the files.
fn judge(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        text::judge(source, &mut findings);
        layout::judge(source, &mut findings);
        if source.is_rust() {
            let tokens = lexer::tokens(&source.text);
            code::judge(source, &tokens, &mut findings);
            functions::judge(source, &tokens, &mut findings);
        }
    }
    layout::judge_all(sources, &mut findings);
    modules::judge(sources, &mut findings);
    edges::judge(sources, &mut findings);
    findings.sort();
    findings
}

/// Every text file that git tracks or, not being ignored, would track: a finding should come
/// before the commit, not after it.
fn read(root: &Path) -> Result<Vec<Source>, Failure> {
    let mut command = Command::new("git");
    // A checkout that belongs to another user, as in many CI machines, is still ours to read.
    command.args(["-c", "safe.directory=*", "ls-files", "-z"]).current_dir(root);
    command.args(["--cached", "--others", "--exclude-standard"]);
    let listed = run::ask(&mut command).ok_or_else(|| Failure::Missing {
        what: "the list of files",
        next: "run it in a git checkout, with git in PATH".to_owned(),
    })?;
    let mut sources = Vec::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        let full = root.join(path);
        // Deleted but still in the index, a submodule, or a link: nothing to read.
        if !full.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            continue;
        }
        let bytes = std::fs::read(&full).map_err(Failure::file("reading", &full))?;
        if let Ok(text) = String::from_utf8(bytes) {
            sources.push(Source { path: path.to_owned(), text });
        }
    }
    sources.sort_by(|one, two| one.path.cmp(&two.path));
    sources.dedup_by(|one, two| one.path == two.path);
    Ok(sources)
}

/// For the tests of the rules: what they find in one file, or in several.
#[cfg(test)]
mod samples {
    use super::{Finding, Source};

    pub(crate) fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// Each finding as `line what`, or `path:line what` when there are several files.
    pub(crate) fn shown(findings: &[Finding], several: bool) -> Vec<String> {
        let show = |finding: &Finding| match several {
            true => format!("{}:{} {}", finding.path, finding.line, finding.what),
            false => format!("{} {}", finding.line, finding.what),
        };
        findings.iter().map(show).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let sources = read(run::root()).unwrap();
        assert!(sources.iter().any(|source| source.path == "xtask/src/tidy.rs"), "wrong root");
        let shown: Vec<String> = judge(&sources).iter().map(ToString::to_string).collect();
        assert!(shown.is_empty(), "{} findings:\n{}", shown.len(), shown.join("\n"));
    }

    #[test]
    fn a_finding_says_where_what_and_why() {
        let sources = [samples::source("xtask/src/x.rs", "//! One.\n//! Two.\nfn f() {} \n")];
        let shown: Vec<String> = judge(&sources).iter().map(ToString::to_string).collect();
        let expected = "xtask/src/x.rs:3: space at the end of the line: it makes diffs of nothing";
        assert!(shown.contains(&expected.to_owned()), "{shown:?}");
    }
}
