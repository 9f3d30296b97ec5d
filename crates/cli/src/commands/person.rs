//! `person token`: proves a person where there is no terminal.
//!
//! Owns the words. Refuses it to whoever acts as a session, even in a terminal of a person.

use std::path::PathBuf;
use std::process::ExitCode;

use baton_core::policy::Standing;
use baton_engine::person::{self, Token};
use baton_engine::whoami;

use crate::arguments::Common;
use crate::desk::{Desk, Outcome, hints};
use crate::render::{Paint, paint, shown};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Person {
    /// Make a token file, outside every repository, that proves a person here (mode 0600)
    Token {
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) fn run(common: &Common, wanted: &Person) -> Outcome {
    let Person::Token { file } = wanted;
    let mut desk = Desk::open_as(common, whoami::actor)?;
    let hints = hints(common);
    // Whoever works as a session is no person to be trusted with more than that.
    let as_session = hints.credential.is_some() || hints.environment.is_some();
    let standing = match as_session && hints.person_token.is_none() {
        true => Standing::Agent,
        false => whoami::standing(&desk.workspace, &desk.actor),
    };
    let (actor, path) = (desk.actor.clone(), desk.cwd.join(file));
    let operation = desk.operation.clone();
    let workspace = &mut desk.workspace;
    let token = person::make_token(workspace, &actor, standing, &path, operation.as_deref())?;
    desk.answer(&token, |token: &Token, colour| {
        let file = shown(&token.file.display().to_string());
        format!(
            "{} {file}: whoever can read it acts as a person in this workspace\n\
             {}: export BATON_PERSON_TOKEN_FILE={file}\n",
            paint("made", Paint::Green, colour),
            paint("next", Paint::Cyan, colour)
        )
    });
    Ok(ExitCode::SUCCESS)
}
