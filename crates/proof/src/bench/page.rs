//! The table, on the screen and in `docs/design/performance.md`.
//!
//! Rewrites only what stands between the two markers of the page. Describes the machine in general
//! words: no names, no paths.

use std::path::Path;

use super::samples::Spread;
use crate::failure::Failure;

const BEGIN: &str = "<!-- bench: written by `cargo xtask bench` -->";
const END: &str = "<!-- bench: end -->";

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Line {
    name: String,
    ours: String,
    p99: String,
    floor: String,
    ratio: String,
    target: String,
    met: bool,
}

impl Line {
    /// The median against another median.
    pub(super) fn ratio(name: String, ours: &Spread, floor: &Spread, target: f64) -> Self {
        let ratio = ours.p50() / floor.p50();
        let floor = format!("{:.2} ms", floor.p50());
        Self { floor, ..Self::plain(name, ours, ratio, target) }
    }

    /// A ratio that was worked out elsewhere.
    pub(super) fn plain(name: String, ours: &Spread, ratio: f64, target: f64) -> Self {
        Self {
            name,
            ours: format!("{:.2} ms", ours.p50()),
            p99: format!("{:.2} ms", ours.p99()),
            floor: "–".to_owned(),
            ratio: format!("{ratio:.2}"),
            target: format!("≤ {target}"),
            met: ratio <= target,
        }
    }

    /// Times that nothing is promised about.
    pub(super) fn times(name: String, ours: &Spread) -> Self {
        let none = || "–".to_owned();
        let (ratio, target) = (none(), none());
        Self { ratio, target, met: true, ..Self::plain(name, ours, 0.0, 0.0) }
    }

    /// A figure that is no time.
    pub(super) fn said(name: String, ours: String, target: String, met: bool) -> Self {
        let none = || "–".to_owned();
        Self { name, ours, p99: none(), floor: none(), ratio: none(), target, met }
    }

    fn cells(&self) -> [&str; 7] {
        let Self { name, ours, p99, floor, ratio, target, met } = self;
        let met = match (target.as_str(), met) {
            ("–", true) => "–",
            (_, true) => "yes",
            (_, false) => "**no**",
        };
        [name, ours, p99, floor, ratio, target, met]
    }
}

pub(super) fn table(lines: &[Line]) -> String {
    let heading = ["measure", "p50", "p99", "against", "ratio", "target", "met"];
    let rows: Vec<[&str; 7]> =
        std::iter::once(heading).chain(lines.iter().map(Line::cells)).collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(&format!("| {} |\n", cells.collect::<Vec<_>>().join(" | ")));
        if index == 0 {
            let rule = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>();
            text.push_str(&format!("| {} |\n", rule.join(" | ")));
        }
    }
    text
}

/// The machine in general words: processors, how busy they were, the disk's filesystem.
pub(super) fn machine(folder: &Path, undisturbed: bool) -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?").to_owned();
    let disk = filesystem(folder).unwrap_or_else(|| "unknown".to_owned());
    let processor = std::env::consts::ARCH;
    let how = match undisturbed {
        true => "single commands at real-time priority, so that other work does not count",
        false => "without real-time priority, so that other work on the machine counts",
    };
    format!("Measured on {cores} cores ({processor}), load {load}, store on {disk}; {how}.\n")
}

/// The filesystem of the longest mount point that the folder is below.
fn filesystem(folder: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    });
    let around = mounts.filter(|(point, _)| folder.starts_with(point));
    around.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind)
}

/// Puts the text between the markers.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let old = std::fs::read_to_string(path).map_err(Failure::file("reading", path))?;
    let fresh = between(&old, text)
        .ok_or_else(|| Failure::said(path.display().to_string(), "the markers are missing"))?;
    std::fs::write(path, fresh).map_err(Failure::file("writing", path))
}

fn between(old: &str, text: &str) -> Option<String> {
    let (before, rest) = old.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{text}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_markers_is_rewritten() {
        let old = format!("# A\n{BEGIN}\nold\n{END}\nwhy\n");
        let fresh = between(&old, "| new |").unwrap();
        assert_eq!(fresh, format!("# A\n{BEGIN}\n\n| new |\n{END}\nwhy\n"));
        assert_eq!(between("no markers", "x"), None);
    }

    #[test]
    fn a_miss_is_shown_as_plainly_as_a_hit() {
        let said = |met| Line::said("memory".into(), "13 MB".into(), "≤ 12 MB".into(), met);
        assert!(table(&[said(false)]).contains("**no**"));
        assert!(table(&[said(true)]).contains("| yes"));
    }
}
