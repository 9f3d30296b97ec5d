//! `suggest`, `suggestions` and `suggestion`: a change to what another holds, and its answer.
//!
//! Owns the words. A patch is another's text: it is shown escaped, line by line (S20).

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use baton_core::patch::BYTES_MAX;
use baton_core::suggestions::{Answer, Suggestion, Told};
use baton_engine::api::suggestions as api;
use baton_engine::failure::Failure;
use baton_engine::suggesting::{self, Suggestions};

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{self, Paint, paint, shown, shown_lines, table};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum OneSuggestion {
    /// The whole of it, with the patch
    Show {
        #[arg(value_name = "ID")]
        suggestion: String,
    },
    /// Apply the patch in this tree; for whoever holds the path
    Apply {
        #[arg(value_name = "ID")]
        suggestion: String,
    },
    /// Say no
    Decline {
        #[arg(value_name = "ID")]
        suggestion: String,
        /// Why not
        #[arg(long, value_name = "TEXT")]
        why: String,
    },
}

pub(crate) fn suggest(desk: &mut Desk, mut wanted: api::Suggest) -> Outcome {
    wanted.patch_text = read(desk, &wanted.patch)?;
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let told = suggesting::suggest(workspace, actor, cwd, &wanted, operation.as_deref())?;
    desk.answer(&told, |told: &Told, colour| {
        format!(
            "{} {} to {} for {}\n{}",
            paint("suggested", Paint::Green, colour),
            told.suggestion,
            shown(&told.to.name),
            shown(&told.path.to_string()),
            notices_words(&told.notices, colour)
        )
    });
    Ok(ExitCode::SUCCESS)
}

/// One byte more than fits: the rule then says that it is too long.
fn read(desk: &Desk, file: &Path) -> Result<String, Failure> {
    let limit = BYTES_MAX as u64 + 1;
    let doing = "the patch cannot be read";
    let cannot = |source| Failure::File { doing, path: file.to_owned(), source };
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(cannot)?;
    } else {
        let open = std::fs::File::open(desk.cwd.join(file)).map_err(cannot)?;
        open.take(limit).read_to_end(&mut bytes).map_err(cannot)?;
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        let detail = "the text is not UTF-8".to_owned();
        Failure::Malformed { path: file.to_owned(), line, column: 1, detail }
    })
}

pub(crate) fn list(desk: &mut Desk, wanted: &api::Suggestions) -> Outcome {
    let found = suggesting::list(&mut desk.workspace, &desk.actor, wanted)?;
    desk.answer(&found, |found: &Suggestions, colour| {
        if found.suggestions.is_empty() {
            return "no suggestions\n".to_owned();
        }
        let row = |one: &Suggestion| {
            vec![
                one.suggestion.to_string(),
                one.answer.name().to_owned(),
                shown(&one.path.to_string()),
                shown(&one.by.name),
                shown(&one.to.name),
                format!("+{} -{}", one.added, one.removed),
                render::ago(one.at),
                shown(&one.why),
            ]
        };
        let rows: Vec<Vec<String>> = found.suggestions.iter().map(row).collect();
        let headings = ["SUGGESTION", "STATE", "PATH", "BY", "TO", "LINES", "SINCE", "WHY"];
        let more = if found.more { "there are more: --limit N\n" } else { "" };
        table(&headings, &rows, colour) + more
    });
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(common: &Common, command: &OneSuggestion) -> Outcome {
    let mut desk = match command {
        OneSuggestion::Show { suggestion } => {
            let mut desk = Desk::open(common)?;
            let found = suggesting::show(&mut desk.workspace, suggestion)?;
            desk.answer(&found, page);
            return Ok(ExitCode::SUCCESS);
        }
        _ => Desk::open_to_act(common)?,
    };
    let Desk { workspace, actor, operation, .. } = &mut desk;
    let told = match command {
        OneSuggestion::Apply { suggestion } => {
            suggesting::apply(workspace, actor, suggestion, operation.as_deref())?
        }
        OneSuggestion::Decline { suggestion, why } => {
            suggesting::decline(workspace, actor, suggestion, why, operation.as_deref())?
        }
        OneSuggestion::Show { .. } => return Ok(ExitCode::SUCCESS),
    };
    desk.answer(&told, |told: &Told, colour| {
        format!(
            "{} {}, {}'s for {}\n{}",
            paint(told.answer.name(), Paint::Green, colour),
            told.suggestion,
            shown(&told.by.name),
            shown(&told.path.to_string()),
            notices_words(&told.notices, colour)
        )
    });
    Ok(ExitCode::SUCCESS)
}

fn page(one: &Suggestion, colour: bool) -> String {
    let mut text = format!(
        "{} for {}, by {} to {}, {}\n",
        paint(one.suggestion.as_str(), Paint::Bold, colour),
        shown(&one.path.to_string()),
        shown(&one.by.name),
        shown(&one.to.name),
        render::ago(one.at)
    );
    let state = match &one.answer {
        Answer::Open => "open".to_owned(),
        Answer::Applied { answered_by, answered_at } => {
            format!("applied by {} {}", shown(&answered_by.name), render::ago(*answered_at))
        }
        Answer::Declined { answered_by, answered_at, because } => format!(
            "declined by {} {}: {}",
            shown(&answered_by.name),
            render::ago(*answered_at),
            shown(because)
        ),
        Answer::Filed { task, .. } => format!("nobody answered: it became {task}"),
    };
    let _ = writeln!(text, "  state: {state}\n  why:   {}\n", shown(&one.why));
    text.push_str(&shown_lines(&one.patch, "  | "));
    text.push('\n');
    text
}
