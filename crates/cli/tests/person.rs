//! The person token: made by people, proves a person without a terminal.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::harness::{Said, Scratch};

const STRICT: &str = "[[zone]]\npaths = [\"src/\"]\npolicy = \"require\"\n";
const LOOSE: &str = "[[zone]]\npaths = [\"src/\"]\npolicy = \"off\"\n";

#[test]
fn a_token_proves_a_person_even_below_an_agent() {
    let scratch = Scratch::with_policy(STRICT);
    let file = scratch.path("home/person");
    let made = scratch.baton(&["person", "token", file.to_str().unwrap(), "--json"]).ok().json();
    assert!(made["file"].as_str().unwrap().ends_with("home/person"), "{made}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let secret = std::fs::read_to_string(&file).unwrap();
    let journal = std::fs::read(scratch.store().join("store.db-wal")).unwrap_or_default();
    let database = std::fs::read(scratch.store().join("store.db")).unwrap();
    for bytes in [journal, database] {
        let found = bytes.windows(secret.trim().len()).any(|part| part == secret.trim().as_bytes());
        assert!(!found, "the store keeps a hash alone");
    }
    scratch.write("baton.toml", LOOSE);
    let approve = |token: &str, by_variable: bool| -> Said {
        let mut words = vec!["policy", "approve", "--yes"];
        if !by_variable {
            words.extend(["--person-token", token]);
        }
        let mut command = scratch.command(&words);
        command.env("CLAUDECODE", "1");
        if by_variable {
            command.env("BATON_PERSON_TOKEN_FILE", token);
        }
        command.output().unwrap().into()
    };
    let wrong = scratch.path("home/wrong");
    std::fs::write(&wrong, "0123456789\n").unwrap();
    std::fs::set_permissions(&wrong, std::fs::Permissions::from_mode(0o600)).unwrap();
    let said = approve(wrong.to_str().unwrap(), false).refused(1);
    assert!(said.err.contains("does not know it"), "{said:?}");
    let missing = scratch.path("home/missing");
    approve(missing.to_str().unwrap(), false).refused(1);
    approve(file.to_str().unwrap(), false).ok();
    scratch.write("baton.toml", STRICT);
    approve(file.to_str().unwrap(), true).ok();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = approve(file.to_str().unwrap(), true).refused(1);
    assert!(said.err.contains("0600"), "{said:?}");
}

#[test]
fn agents_make_no_tokens() {
    let scratch = Scratch::workspace();
    let file = scratch.path("home/person");
    let file_name = file.to_str().unwrap();
    let words = ["person", "token", file_name];
    let agent = scratch.command(&words).env("CLAUDECODE", "1").output().unwrap();
    let said = Said::from(agent).refused(1);
    assert!(said.err.contains("for a person to decide"), "{said:?}");
    let several = scratch.command(&words).env("CLAUDECODE", "1").env("GEMINI_CLI", "1").output();
    Said::from(several.unwrap()).refused(1);
    let session = scratch.session("ann");
    scratch.acts(&session, &words).refused(1);
    scratch.baton(&["--session", &session, "person", "token", file_name]).refused(1);
    assert!(!file.exists());
}

#[test]
fn a_token_lies_outside_every_repository_and_replaces_nothing() {
    let scratch = Scratch::workspace();
    for inside in ["token", ".git/token", "src/token", "../repo/token"] {
        let said = scratch.baton(&["person", "token", inside]).refused(1);
        assert!(said.err.contains("inside a repository"), "{said:?}");
    }
    symlink(scratch.root().join("src"), scratch.path("home/link")).unwrap();
    let through = scratch.path("home/link/token");
    scratch.baton(&["person", "token", through.to_str().unwrap()]).refused(1);
    let there = scratch.path("home/there");
    std::fs::write(&there, "mine").unwrap();
    let said = scratch.baton(&["person", "token", there.to_str().unwrap()]).refused(1);
    assert!(said.err.contains("there is a file already"), "{said:?}");
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "mine");
    let nowhere = scratch.path("home/no/folder/token");
    scratch.baton(&["person", "token", nowhere.to_str().unwrap()]).refused(1);
    scratch.baton(&["person", "token"]).refused(2);
}
