//! `status`: one screen, drawn once or whenever something happens.
//!
//! Owns the terminal while it watches, and gives it back as it was on every way out.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use baton_engine::failure::Failure;
use baton_engine::overview::{self, Overview};

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::render::colour_wanted;
use crate::signals::Signals;
use crate::words::Problem;

mod screen;

/// Ages grow old without news: this often they are drawn anew.
const AGES_EVERY: Duration = Duration::from_secs(10);
/// Entered and left: another screen, without a cursor.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Status {
    /// Stay, and draw again when something happens; Ctrl-C ends it
    #[arg(long)]
    watch: bool,
}

pub(crate) fn run(common: &Common, wanted: &Status) -> Outcome {
    let mut desk = Desk::open(common)?;
    if wanted.watch {
        return watch(&mut desk);
    }
    let overview = overview::overview(&mut desk.workspace)?;
    let terminal = desk.counter.is_none();
    desk.answer(&overview, |overview: &Overview, colour| {
        let size = match terminal {
            true => screen::Size::of_stdout(),
            false => screen::Size::BOUNDLESS,
        };
        // The shell's next prompt takes a line too.
        let height = size.height.map(|height| height.saturating_sub(1));
        let mut text = screen::draw(overview, screen::Size { height, ..size }, colour).join("\n");
        text.push('\n');
        text
    });
    desk.tell_of_gates();
    Ok(ExitCode::SUCCESS)
}

fn watch(desk: &mut Desk) -> Outcome {
    if desk.json || !std::io::stdout().is_terminal() {
        return Err(Problem::usage(
            "--watch draws on a terminal, and there is none",
            "baton journal --follow --json, which tells everything as it happens",
        ));
    }
    let mut news = desk.workspace.store.news().map_err(Failure::from)?;
    let mut end = Signals::to_end()?;
    let mut resized = Signals::of_size()?;
    let terminal = Terminal::take();
    let colour = colour_wanted(&std::io::stdout());
    loop {
        let overview = overview::overview(&mut desk.workspace)?;
        terminal.show(&screen::draw(&overview, screen::Size::of_stdout(), colour));
        let also = [end.descriptor(), resized.descriptor()];
        news.wait(AGES_EVERY, &also).map_err(Failure::from)?;
        resized.came();
        if end.came() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// The terminal, while we have it.
struct Terminal;

impl Terminal {
    fn take() -> Self {
        put(ENTER);
        Self
    }

    /// Over what is there, line by line, in one write: nothing flickers.
    fn show(&self, lines: &[String]) {
        let body = lines.join("\u{1b}[K\r\n");
        put(&format!("\u{1b}[H{body}\u{1b}[K\u{1b}[J"));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        put(LEAVE);
    }
}

fn put(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
