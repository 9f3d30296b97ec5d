//! `roles`: what each role may do.
//!
//! Owns the words of the list. What a role means is decided in `baton_core::roles`.

use std::process::ExitCode;

use baton_core::id::SessionId;
use baton_core::roles::{Role, Rules, Tool};
use baton_engine::policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::desk::{Desk, Outcome};
use crate::render::{shown, table};

/// What `roles` answers.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Roles {
    pub(crate) roles: Vec<Listed>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Listed {
    pub(crate) name: String,
    /// Said in `baton.toml`; otherwise it is built in.
    pub(crate) own: bool,
    #[serde(flatten)]
    pub(crate) role: Role,
}

pub(crate) fn list(desk: &mut Desk) -> Outcome {
    let rules: Rules = policy::roles(&mut desk.workspace)?;
    let listed = |(name, role): (String, Role)| {
        let own = rules.named.contains_key(&name);
        Listed { name, own, role }
    };
    let found = Roles { roles: rules.all().into_iter().map(listed).collect() };
    desk.answer(&found, words);
    Ok(ExitCode::SUCCESS)
}

fn words(found: &Roles, colour: bool) -> String {
    let rows: Vec<Vec<String>> = found.roles.iter().map(row).collect();
    let text = table(&["ROLE", "WRITES", "MAY", "WITHOUT", "FOR"], &rows, colour);
    format!("{text}set at the start: baton session start --role ROLE\n")
}

fn row(listed: &Listed) -> Vec<String> {
    let role = &listed.role;
    // Each session has another folder: here it stands for all of them.
    let writes = role.words(&SessionId("SESSION".to_owned()));
    let writes = writes.strip_prefix("writes ").unwrap_or(&writes);
    let deeds = [("commit", role.commit), ("land", role.land), ("deploy", role.deploy)];
    let may: Vec<&str> = deeds.iter().filter(|(_, may)| *may).map(|(deed, _)| *deed).collect();
    let gone = Tool::ALL.into_iter().filter(|tool| !role.tools.contains(tool));
    let gone: Vec<&str> = gone.map(Tool::word).collect();
    let or_dash = |words: Vec<&str>| match words.is_empty() {
        true => "-".to_owned(),
        false => words.join(", "),
    };
    vec![shown(&listed.name), shown(writes), or_dash(may), or_dash(gone), shown(&role.about)]
}
