//! How the demo looks: one line that is drawn anew for each run, then a small table.
//!
//! On a terminal the line moves; on a pipe each run is one plain line; with JSON there is nothing
//! but the document.

use std::io::{IsTerminal, Write};

use super::Tally;
use super::backlog::{Drained, WORKERS};
use crate::desk;
use crate::render::{Paint, colour_wanted, paint};

const BAR_CELLS: usize = 24;
const TITLE_WIDTH: usize = 13;

#[derive(Debug)]
pub(super) struct Screen {
    silent: bool,
    moving: bool,
    colour: bool,
}

impl Screen {
    pub(super) fn new(json: bool) -> Self {
        let out = std::io::stdout();
        let moving = !json && out.is_terminal();
        Self { silent: json, moving, colour: !json && colour_wanted(&out) }
    }

    pub(super) fn open(&self, agents: u8, files: usize) {
        if self.silent {
            return;
        }
        let heading = format!("{agents} agents, {files} files, one scratch repository.");
        desk::print(&format!(
            "{}\n{}\n\n",
            paint(&heading, Paint::Bold, self.colour),
            paint(
                "Each agent is a process: it reads a file, thinks a moment, writes it back.",
                Paint::Dim,
                self.colour
            ),
        ));
    }

    pub(super) fn progress(&self, title: &str, part: f64, tally: &Tally) {
        if self.moving {
            self.draw(&self.line(title, part, tally), false);
        }
    }

    pub(super) fn done(&self, title: &str, tally: &Tally) {
        if !self.silent {
            self.draw(&self.line(title, 1.0, tally), true);
        }
    }

    fn draw(&self, line: &str, last: bool) {
        let mut out = std::io::stdout().lock();
        let (home, clear) = if self.moving { ("\r", "\u{1b}[K") } else { ("", "") };
        let end = if last { "\n" } else { "" };
        let _ = write!(out, "{home}{line}{clear}{end}").and_then(|()| out.flush());
    }

    fn line(&self, title: &str, part: f64, tally: &Tally) -> String {
        let bar = if self.moving { format!("{}  ", self.bar(part)) } else { String::new() };
        let lost = format!("{:>4} lost", tally.edits_lost);
        let lost = match tally.edits_lost {
            0 => paint(&lost, Paint::Green, self.colour),
            _ => paint(&lost, Paint::Red, self.colour),
        };
        format!(
            "  {title:<TITLE_WIDTH$}  {bar}{:>5} edits  {lost}  {:>4} refused  {:>4.1} s",
            tally.edits_made, tally.conflicts_refused, tally.seconds
        )
    }

    fn bar(&self, part: f64) -> String {
        let filled = ((part * BAR_CELLS as f64).round() as usize).min(BAR_CELLS);
        let rest = "░".repeat(BAR_CELLS - filled);
        let filled = paint(&"█".repeat(filled), Paint::Cyan, self.colour);
        format!("{filled}{}", paint(&rest, Paint::Dim, self.colour))
    }

    pub(super) fn second_part(&self) {
        if self.silent {
            return;
        }
        let text = format!("Then a backlog for {WORKERS} workers, one of them killed half-way.");
        desk::print(&format!("\n{}\n\n", paint(&text, Paint::Dim, self.colour)));
    }

    /// How far the backlog is drained.
    pub(super) fn drained(&self, title: &str, part: f64, drained: &Drained, last: bool) {
        if self.silent || !(self.moving || last) {
            return;
        }
        let bar = if self.moving { format!("{}  ", self.bar(part)) } else { String::new() };
        let Drained { done, tasks, seconds, .. } = drained;
        let line =
            format!("  {title:<TITLE_WIDTH$}  {bar}{done:>5} of {tasks} done  {seconds:>4.1} s");
        self.draw(&line, last);
    }

    pub(super) fn close(&self, runs: (&Tally, &Tally), backlog: &Drained, kept: Option<&str>) {
        let kept = kept.map(|folder| format!("\nKept: {folder}\n")).unwrap_or_default();
        let (without, with) = runs;
        let tables = format!("{}\n{}", self.table(without, with), self.backlog(backlog));
        desk::print(&format!("\n{tables}\n{}{kept}", self.words(without)));
    }

    fn backlog(&self, drained: &Drained) -> String {
        let heading = format!("  {:<18}{:>15}", "", "the backlog");
        let mut text = paint(&heading, Paint::Dim, self.colour);
        text.push('\n');
        let good = |count: usize, good: bool| {
            let colour = if good { Paint::Green } else { Paint::Red };
            paint(&format!("{count:>15}"), colour, self.colour)
        };
        let plain = |count: usize| format!("{count:>15}");
        for (name, count) in [
            ("tasks filed", plain(drained.tasks)),
            ("done", good(drained.done, drained.done == drained.tasks)),
            ("lost", good(drained.lost, drained.lost == 0)),
            ("done twice", good(drained.done_twice, drained.done_twice == 0)),
            ("taken over", plain(drained.taken_over)),
        ] {
            text.push_str(&format!("  {name:<18}{count}\n"));
        }
        text
    }

    fn table(&self, without: &Tally, with: &Tally) -> String {
        let heading = format!("  {:<18}{:>15}{:>15}", "", "without Baton", "with Baton");
        let mut text = paint(&heading, Paint::Dim, self.colour);
        text.push('\n');
        let mut row = |name: &str, one: String, two: String| {
            text.push_str(&format!("  {name:<18}{one}{two}\n"));
        };
        let plain = |count: usize| format!("{count:>15}");
        row("edits made", plain(without.edits_made), plain(with.edits_made));
        row("edits lost", self.lost(without), self.lost(with));
        row("conflicts refused", format!("{:>15}", "none"), plain(with.conflicts_refused));
        let time = |tally: &Tally| format!("{:>13.1} s", tally.seconds);
        row("time", time(without), time(with));
        text
    }

    fn lost(&self, tally: &Tally) -> String {
        let part = 100.0 * tally.edits_lost as f64 / tally.edits_made.max(1) as f64;
        let text = match tally.edits_lost {
            0 => format!("{:>15}", 0),
            lost => format!("{:>15}", format!("{lost} ({part:.0} %)")),
        };
        let colour = if tally.edits_lost == 0 { Paint::Green } else { Paint::Red };
        paint(&text, colour, self.colour)
    }

    fn words(&self, without: &Tally) -> String {
        let lost = match without.edits_lost {
            0 => "This time the first run was lucky; run it again with more agents.".to_owned(),
            _ => "The lost edits were overwritten by an agent that had read the file before \
                  them.\nWith Baton each agent claimed its file first, and a refused one worked \
                  elsewhere or waited. The killed worker had a task in its hands; another took \
                  it over."
                .to_owned(),
        };
        let command = |words: &str| paint(words, Paint::Cyan, self.colour);
        format!(
            "{lost}\n\nNext, in your own repository: {}, then {} in one terminal\nand once \
             more in another.\n",
            command("baton init"),
            command("baton claim src/"),
        )
    }
}
