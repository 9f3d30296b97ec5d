//! `store backup`, `restore`, `info`.
//!
//! Owns the question before a restore. A restore is not for agents, and the engine sees to that.

use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use baton_engine::copies::{self, Backup, Info, Restored};
use baton_engine::failure::Failure;
use baton_engine::place::Place;
use baton_engine::user_config;
use serde_json::json;

use crate::arguments::Common;
use crate::desk::{self, Desk, Outcome};
use crate::render::{Paint, bytes, counted, paint, shown};
use crate::words::Problem;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Store {
    /// Write a copy of the store to a new file
    Backup {
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Put a backup in the place of the store; what was there is kept (not for agents)
    Restore {
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Ask nothing
        #[arg(long)]
        yes: bool,
        /// The backup is of another workspace: the repository was cloned anew
        #[arg(long)]
        other_workspace: bool,
    },
    /// Kind, place, size and state of the store
    Info,
}

pub(crate) fn run(common: &Common, command: &Store) -> Outcome {
    match command {
        Store::Backup { file } => backup(&mut Desk::open(common)?, file),
        Store::Restore { file, yes, other_workspace } => {
            restore(common, file, *yes, *other_workspace)
        }
        Store::Info => info(&mut Desk::open(common)?),
    }
}

fn backup(desk: &mut Desk, file: &Path) -> Outcome {
    let made = copies::backup(&mut desk.workspace, &desk.cwd.join(file))?;
    desk.answer(&made, |made: &Backup, colour| {
        let mut text = format!(
            "{} {} ({}), up to {}\n",
            paint("backed up to", Paint::Green, colour),
            made.file.display(),
            bytes(made.bytes),
            made.head
        );
        if let (Some(archived), Some(folder)) = (made.archived, &made.archives) {
            let note = paint("note", Paint::Yellow, colour);
            let folder = folder.display();
            let _ = writeln!(text, "{note}: entries up to {archived} are in {folder}: copy it too");
        }
        text
    });
    Ok(ExitCode::SUCCESS)
}

fn restore(common: &Common, file: &Path, yes: bool, other_workspace: bool) -> Outcome {
    let cwd = desk::folder(common)?;
    let file = cwd.join(file);
    let place = Place::find(&cwd).map_err(Failure::from)?;
    let address = user_config::address_for(&place)?;
    copies::may_restore(&place, address.as_deref(), &desk::hints(common))?;
    let foreign = copies::foreign(&place, &file).map_err(of_backup)?;
    // On a shared store a backup always goes to the workspace that it was made of.
    let allowed = other_workspace && !place.workspace.shared;
    if let Some(found) = foreign.filter(|_| !allowed) {
        return Err(Problem {
            exit: 1,
            code: "other_workspace",
            message: format!(
                "{} is a backup of another workspace, {}",
                file.display(),
                shown(&found)
            ),
            next: "give a backup of this workspace; --other-workspace if it was cloned anew".into(),
            details: json!({ "workspace": found }),
        });
    }
    if !yes && !confirmed(&file)? {
        desk::remark("nothing was changed");
        return Ok(ExitCode::from(1));
    }
    let restored = copies::restore(&place, address.as_deref(), &file).map_err(of_backup)?;
    desk::answer(common.json, &restored, |restored: &Restored, colour| {
        let mut text = format!(
            "{} {}, up to {}; epoch {} begins with the next entry\n",
            paint("restored", Paint::Green, colour),
            restored.file.display(),
            restored.head,
            restored.epoch
        );
        if let Some(kept) = &restored.kept {
            let _ = writeln!(text, "what was replaced is kept as {kept}");
        }
        text
    });
    Ok(ExitCode::SUCCESS)
}

/// Here the file that cannot be used is the backup, so the way on is another one than usual.
fn of_backup(failure: Failure) -> Problem {
    use baton_engine::store::Error as E;
    let about_backup = matches!(
        &failure,
        Failure::Store(E::Corrupt { .. } | E::Missing { .. } | E::Folder { .. } | E::Newer { .. })
    );
    let mut problem = Problem::from(failure);
    if about_backup {
        problem.exit = 1;
        problem.message = problem.message.replacen("the store", "the backup", 1);
        problem.message = problem.message.replacen("not a store", "not a backup", 1);
        problem.next = "give a file that baton store backup made; nothing was changed".to_owned();
    }
    problem
}

fn confirmed(file: &Path) -> Result<bool, Problem> {
    if !std::io::stdin().is_terminal() {
        return Err(Problem::usage(
            "restoring replaces the store, and there is no terminal to ask on",
            "ask a person to run this in a terminal, or with --yes",
        ));
    }
    let mut out = std::io::stderr().lock();
    let question = format!(
        "Replace the store by {}? Claims and entries made since are lost from the live store; \
         it is kept as a file beside it. [y/N] ",
        file.display()
    );
    let _ = out.write_all(question.as_bytes()).and_then(|()| out.flush());
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn info(desk: &mut Desk) -> Outcome {
    let info = copies::info(&mut desk.workspace)?;
    desk.answer(&info, |info: &Info, colour| {
        let archived = match info.archived {
            Some(position) => format!(", up to {position} archived"),
            None => String::new(),
        };
        let size = info.bytes.map_or_else(|| "unknown".to_owned(), bytes);
        let lines = [
            ("store", info.place.clone()),
            ("workspace", info.workspace.clone()),
            ("size", size),
            ("journal", format!("{}{archived}", counted(info.entries, "entry", "entries"))),
            ("head", info.head.to_string()),
            ("epoch", info.epoch.to_string()),
            ("schema", info.schema.to_string()),
        ];
        let line = |(name, value): &(&str, String)| {
            format!("{}  {}\n", paint(&format!("{name:<9}"), Paint::Dim, colour), shown(value))
        };
        lines.iter().map(line).collect()
    });
    Ok(ExitCode::SUCCESS)
}
