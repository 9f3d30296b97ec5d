//! Rules on lines: sizes, white space, and paths that exist on one machine only.
//!
//! They hold for every text file that people write; samples of what programs print are spared the
//! rules on form, but not the one on paths.

use super::{Finding, Source};

const FILE_LINES_MAX: usize = 600;
const RUST_COLUMNS_MAX: usize = 100;
const MARKDOWN_COLUMNS_MAX: usize = 160;

pub(crate) fn judge(source: &Source, findings: &mut Vec<Finding>) {
    let mut found = |line: usize, what: String, why: &'static str| {
        findings.push(Finding { path: source.path.clone(), line, what, why });
    };
    let lines = source.text.lines().count();
    if source.is_rust() && lines > FILE_LINES_MAX {
        let what = format!("{lines} lines, at most {FILE_LINES_MAX}");
        found(lines, what, "the noun inside that grew wants a room of its own");
    }
    // What a command prints is as wide as it is.
    let mut fenced = false;
    for (index, line) in source.text.lines().enumerate() {
        let number = index + 1;
        fenced ^= source.path.ends_with(".md") && line.starts_with("```");
        if let Some(path) = machine_path(line) {
            let what = format!("path of one machine ({path})");
            found(number, what, "it is wrong everywhere else, and tells who wrote it");
        }
        if source.is_sample() {
            continue;
        }
        if line.ends_with([' ', '\t', '\r']) {
            found(number, "space at the end of the line".into(), "it makes diffs of nothing");
        }
        if line.contains('\t') && source.name() != "Makefile" {
            found(number, "a tab".into(), "columns must be the same in every editor");
        }
        let columns = line.chars().count();
        if let Some(limit) = columns_max(source, line).filter(|limit| columns > *limit && !fenced) {
            let what = format!("{columns} characters, at most {limit}");
            found(number, what, "two files fit side by side on a screen");
        }
    }
    if !source.text.is_empty() && !source.text.ends_with('\n') && !source.is_sample() {
        found(lines, "no end of line at the end of the file".into(), "appending changes this line");
    }
}

fn columns_max(source: &Source, line: &str) -> Option<usize> {
    if source.is_rust() {
        return Some(RUST_COLUMNS_MAX);
    }
    // A row of a table or an address cannot be broken.
    let unbreakable = line.trim_start().starts_with('|') || line.contains("](");
    let unbreakable = unbreakable || line.contains("://");
    (source.path.ends_with(".md") && !unbreakable).then_some(MARKDOWN_COLUMNS_MAX)
}

/// Folders where people, or the machines of this project's developers, keep their things. Written
/// in two parts so that this file keeps its own rule.
const MACHINE_FOLDERS: &[&str] =
    &[concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// The first absolute path below such a folder. A placeholder such as `<user>` or `$USER` may
/// follow, and a longer path that only contains the name (`a/home/b`) is not one.
fn machine_path(line: &str) -> Option<&str> {
    for folder in MACHINE_FOLDERS {
        for (at, _) in line.match_indices(folder) {
            let before = line[..at].chars().next_back();
            let inside = before.is_some_and(|c| c.is_alphanumeric() || "_.-/~*}>)".contains(c));
            let rest = &line[at + folder.len()..];
            if !inside && !rest.starts_with(['<', '$', '{', '*']) {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || "_.-/".contains(c)));
                return Some(&line[at..at + folder.len() + end.unwrap_or(rest.len())]);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn judged(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        judge(&samples::source(path, text), &mut findings);
        samples::shown(&findings, false)
    }

    #[test]
    fn lines_have_a_limit_by_kind_of_file() {
        let line = |columns: usize| format!("{}\n", "é".repeat(columns));
        assert_eq!(judged("a.rs", &line(100)), [""; 0]);
        assert_eq!(judged("a.rs", &line(101)), ["1 101 characters, at most 100"]);
        assert_eq!(judged("a.md", &line(160)), [""; 0]);
        assert_eq!(judged("a.md", &line(161)), ["1 161 characters, at most 160"]);
        assert_eq!(judged("a.md", &format!("| {}", line(161))), [""; 0]);
        assert_eq!(judged("a.md", &format!("[x](y) {}", line(161))), [""; 0]);
        assert_eq!(judged("a.md", &format!("```console\n{}```\n", line(161))), [""; 0]);
        assert_eq!(judged("Cargo.toml", &line(300)), [""; 0]);
    }

    #[test]
    fn files_have_a_limit() {
        assert_eq!(judged("a.rs", &"x\n".repeat(600)), [""; 0]);
        assert_eq!(judged("a.rs", &"x\n".repeat(601)), ["601 601 lines, at most 600"]);
        assert_eq!(judged("a.md", &"x\n".repeat(601)), [""; 0]);
    }

    #[test]
    fn white_space_is_where_it_can_be_seen() {
        assert_eq!(judged("a.toml", "a \nb\tc\n"), ["1 space at the end of the line", "2 a tab"]);
        assert_eq!(judged("a.rs", "a\r\n"), [""; 0], "git settles line ends");
        assert_eq!(judged("a.rs", "a"), ["1 no end of line at the end of the file"]);
        assert_eq!(judged("tests/fixtures/a.txt", "a \nb\tc"), [""; 0]);
        assert_eq!(judged("tests/snapshots/a.snap", "a \nb\tc"), [""; 0]);
    }

    #[test]
    fn paths_of_a_machine_are_found_and_others_are_not() {
        let [root, work, home, users] = MACHINE_FOLDERS else { panic!("four folders") };
        for path in [format!("{root}x"), format!("{work}b/c.rs"), format!("{home}ann/x")] {
            let expected = [format!("1 path of one machine ({path})")];
            assert_eq!(judged("a.md", &format!("see \"{path}\" there\n")), expected);
            assert_eq!(judged("tests/fixtures/a.json", &format!("{{\"{path}\"}}")), expected);
        }
        for path in [format!("{home}<user>/x"), format!("{users}$USER/x"), format!("a{work}b")] {
            assert_eq!(judged("a.md", &format!("{path}\n")), [""; 0], "{path}");
        }
        assert_eq!(judged("a.md", &format!("$X/frame{}x\n", &work[1..])), [""; 0]);
        assert_eq!(judged("a.md", &format!("{{}}{work}x\n")), [""; 0]);
    }
}
