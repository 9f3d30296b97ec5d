//! The token that proves a person where there is no terminal: a cron job, a dashboard's host.
//!
//! Owns making it. The file is the only copy of the secret; the store keeps a hash. Refuses to
//! write where a repository could carry it away, and over anything that is there.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use baton_core::context::{Actor, Observed};
use baton_core::event::Event;
use baton_core::policy::Standing;
use baton_core::refusal::Refusal;
use baton_core::sessions::PersonToken;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::workspace::{Retry, Workspace, secret, secret_hash};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    pub file: PathBuf,
}

/// Makes the file and lets the workspace know its hash.
pub fn make_token(
    workspace: &mut Workspace,
    actor: &Actor,
    standing: Standing,
    path: &Path,
    operation: Option<&str>,
) -> Result<Token, Failure> {
    if standing == Standing::Agent {
        return Err(Refusal::NeedsPerson { what: "making a person token".to_owned() }.into());
    }
    let file = place_of(workspace, path)?;
    // As with sessions: a retry must make the same token, and the store must not know it.
    let secret = match operation {
        Some(operation) => secret_hash(&format!("{operation}/person/{}", file.display())),
        None => secret()?,
    };
    let failed = |source| Failure::File { doing: "cannot write", path: file.clone(), source };
    let mut open = std::fs::OpenOptions::new();
    match open.write(true).create_new(true).mode(0o600).open(&file) {
        Ok(mut made) => made
            .write_all(format!("{secret}\n").as_bytes())
            .and_then(|()| made.sync_all())
            .map_err(failed)?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let ours = || std::fs::read_to_string(&file).is_ok_and(|text| text.trim() == secret);
            if operation.is_some() && ours() {
                return register(workspace, actor, &secret, operation).map(|()| Token { file });
            }
            return Err(Failure::TokenPlace { path: file, why: "there is a file already" });
        }
        Err(error) => return Err(failed(error)),
    }
    let registered = register(workspace, actor, &secret, operation);
    if let Err(failure) = registered {
        // A token that the store surely does not know proves nothing: the file we just made goes.
        let unknown = matches!(failure, Failure::Store(crate::store::Error::OutcomeUnknown { .. }));
        if !unknown {
            let _ = std::fs::remove_file(&file);
        }
        return Err(failure);
    }
    Ok(Token { file })
}

fn register(
    workspace: &mut Workspace,
    actor: &Actor,
    secret: &str,
    operation: Option<&str>,
) -> Result<(), Failure> {
    let hash = secret_hash(secret);
    let retry = operation.map(|operation| Retry::of(operation, "person token", &hash));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |_, context| {
            let token = PersonToken { hash: hash.clone(), made_at: context.now };
            Ok((vec![Event::PersonTokenAdded { token }], ()))
        },
    )
}

/// The full path, if it lies outside every repository and every workspace.
fn place_of(workspace: &Workspace, path: &Path) -> Result<PathBuf, Failure> {
    let wrong = |why| Failure::TokenPlace { path: path.to_owned(), why };
    let name = path.file_name().ok_or_else(|| wrong("it names no file"))?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|_| wrong("its folder is not there"))?;
    if folder.starts_with(&workspace.place.root)
        || folder
            .ancestors()
            .any(|above| above.join(".git").exists() || above.join(".baton").exists())
    {
        return Err(wrong("it would lie inside a repository, which may carry it away"));
    }
    Ok(folder.join(name))
}
