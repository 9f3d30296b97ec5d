//! `journal archive`: what is sealed stays provable, and no moment is a bad one to die in.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::Scratch;

fn archives(scratch: &Scratch) -> Vec<PathBuf> {
    let Ok(found) = std::fs::read_dir(scratch.store().join("archive")) else { return Vec::new() };
    let paths = found.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|kind| kind == "jsonl")).collect();
    files.sort();
    files
}

fn verified(scratch: &Scratch) -> Value {
    scratch.baton(&["journal", "verify", "--json"]).ok().json()
}

fn busy(scratch: &Scratch, name: &str) -> String {
    let session = scratch.session(name);
    for file in ["src/a.rs", "README.md", "src/"] {
        scratch.acts(&session, &["claim", file]).ok();
    }
    scratch.acts(&session, &["release", "README.md"]).ok();
    session
}

#[test]
fn s14_old_entries_go_into_a_sealed_file_and_the_rest_still_verifies() {
    let scratch = Scratch::workspace();
    busy(&scratch, "alice");
    let before = verified(&scratch);
    let sealed = scratch.baton(&["journal", "archive", "--keep", "2", "--json"]).ok().json();
    let file = PathBuf::from(sealed["archive"]["file"].as_str().unwrap());
    assert_eq!(archives(&scratch), std::slice::from_ref(&file));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let after = verified(&scratch);
    assert_eq!(after["entries"], 3, "two were kept, and the snapshot event is new");
    assert_eq!(after["archived"].as_u64().unwrap() + 2, before["entries"].as_u64().unwrap());
    assert_eq!(after["records"], before["records"]);
    assert_eq!(after["index_entries"], before["index_entries"]);
    let nothing = scratch.baton(&["journal", "archive", "--keep", "3"]).ok();
    assert!(nothing.out.starts_with("nothing to archive"), "{nothing:?}");
    let nothing = scratch.baton(&["journal", "archive", "--before", "1h"]).ok();
    assert!(nothing.out.starts_with("nothing to archive"), "{nothing:?}");
}

#[test]
fn s14_random_histories_verify_whatever_is_archived_in_between() {
    for seed in 1..=3_u64 {
        let scratch = Scratch::workspace();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut sessions = vec![scratch.session("first")];
        for step in 0..70 {
            let who = sessions[random(sessions.len() as u64) as usize].clone();
            let file = format!("dir{}/f{}", random(3), random(4));
            match random(9) {
                0 => sessions.push(scratch.session(&format!("agent-{step}"))),
                1..=3 => drop(scratch.acts(&who, &["claim", &file, "--shared"])),
                4 => drop(scratch.acts(&who, &["claim", &format!("dir{}/", random(3))])),
                5 => drop(scratch.acts(&who, &["release", &file])),
                6 => drop(scratch.acts(&who, &["ask", &file, "--why", "need it"])),
                7 if sessions.len() > 1 => drop(scratch.acts(&who, &["release", "--all"])),
                _ => {
                    let keep = random(6).to_string();
                    scratch.baton(&["journal", "archive", "--keep", &keep]).ok();
                    verified(&scratch);
                }
            }
        }
        let found = verified(&scratch);
        assert!(!archives(&scratch).is_empty() && found.get("notes").is_none(), "{found}");
        // The journal through all archives is the whole history, in order.
        let entries = found["entries"].as_u64().unwrap() + found["archived"].as_u64().unwrap();
        let head = found["head"].as_str().unwrap().split('.').nth(1).unwrap().to_owned();
        assert_eq!(entries.to_string(), head, "seed {seed}");
    }
}

#[test]
fn lesson_28_an_archiving_that_dies_anywhere_leaves_a_store_that_verifies() {
    for (point, entries_left) in [("written", true), ("placed", true), ("committed", true)] {
        let scratch = Scratch::workspace();
        scratch.allow_test_hooks();
        busy(&scratch, "alice");
        let before = verified(&scratch)["entries"].as_u64().unwrap();
        let mut command = scratch.command(&["journal", "archive", "--keep", "1"]);
        let died = command.env("BATON_TEST_STOP_AT", point).output().unwrap();
        assert_eq!(died.status.code(), None, "{point}: it was to die: {died:?}");
        let found = verified(&scratch);
        assert!(found["entries"].as_u64().unwrap() >= before && entries_left, "{point}: {found}");
        let notes = found["notes"].as_array().map_or(0, Vec::len);
        assert_eq!(notes, 1, "{point}: what was left is said: {found}");
        // It is simply done again.
        scratch.baton(&["journal", "archive", "--keep", "1"]).ok();
        assert!(verified(&scratch)["archived"].as_u64().unwrap() > 0, "{point}");
    }
}

#[test]
fn commits_during_an_archiving_are_not_lost() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    for number in 0..30 {
        scratch.acts(&alice, &["claim", &format!("f{number}")]).ok();
    }
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let mut command = std::process::Command::new("sh");
            scratch.clean(&mut command);
            let baton = env!("CARGO_BIN_EXE_baton");
            let script = format!(
                "for n in $(seq 15); do {baton} claim w{writer}-$n && {baton} release w{writer}-$n \
                 || exit 1; done"
            );
            let session = scratch.session(&format!("writer-{writer}"));
            command.arg("-c").arg(script).current_dir(scratch.root());
            command.env("BATON_SESSION", session).stdout(std::process::Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for _ in 0..6 {
        scratch.baton(&["journal", "archive", "--keep", "3"]).ok();
        verified(&scratch);
    }
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let found = verified(&scratch);
    let entries = found["entries"].as_u64().unwrap() + found["archived"].as_u64().unwrap();
    assert_eq!(found["head"], format!("1.{entries}"), "not one is missing");
}

#[test]
fn a_meddled_or_missing_archive_is_told() {
    let scratch = Scratch::workspace();
    let alice = busy(&scratch, "alice");
    scratch.baton(&["journal", "archive", "--keep", "1"]).ok();
    let first = archives(&scratch).remove(0);
    scratch.acts(&alice, &["claim", "later.rs"]).ok();
    scratch.baton(&["journal", "archive", "--keep", "1"]).ok();
    let newest = archives(&scratch).into_iter().find(|file| *file != first).unwrap();
    let refuses = |word: &str| {
        let said = scratch.baton(&["journal", "verify"]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.out.contains(word), "{word}: {said:?}");
    };
    for file in [&first, &newest] {
        let whole = std::fs::read_to_string(file).unwrap();
        for (from, to, word) in [
            ("alice", "mallo", "archive 1."),
            ("\"version\":1", "\"version\":2", "archive 1."),
            ("{\"end\"", "{\"ent\"", "is not what Baton writes"),
        ] {
            std::fs::write(file, whole.replace(from, to)).unwrap();
            refuses(word);
        }
        std::fs::write(file, &whole[..whole.len() / 2]).unwrap();
        refuses("it ends too early");
        std::fs::write(file, format!("{whole}\n")).unwrap();
        refuses("there is more after the footer");
        let newer = whole.replacen("\"format\":1", "\"format\":2", 1);
        std::fs::write(file, newer).unwrap();
        refuses("written by a newer Baton");
        std::fs::write(file, whole).unwrap();
        verified(&scratch);
    }
    let aside = scratch.path("aside");
    std::fs::rename(&first, &aside).unwrap();
    let found = verified(&scratch);
    assert_eq!(found["notes"][0]["what"], "older_archive_missing", "{found}");
    std::fs::rename(&aside, &first).unwrap();
    std::fs::rename(&newest, &aside).unwrap();
    refuses("so the records cannot be rebuilt");
    let refused = scratch.baton(&["journal", "archive", "--keep", "0"]);
    assert_eq!(refused.code, 1, "{refused:?}");
}

#[test]
fn s14_a_snapshot_with_other_records_is_found_out_by_the_chain() {
    let scratch = Scratch::workspace();
    busy(&scratch, "alice");
    scratch.baton(&["journal", "archive", "--keep", "1"]).ok();
    let database = rusqlite::Connection::open(scratch.store().join("store.db")).unwrap();
    let other = "UPDATE journal SET body=json_set(body, '$.state_hash', '00') \
                 WHERE kind='snapshot_taken'";
    assert_eq!(database.execute(other, []).unwrap(), 1);
    let said = scratch.baton(&["journal", "verify"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("its records are not those that the journal says"), "{said:?}");
}

#[test]
fn two_archivists_do_not_meet() {
    let scratch = Scratch::workspace();
    busy(&scratch, "alice");
    scratch.baton(&["journal", "archive", "--keep", "3"]).ok();
    let lock = std::fs::File::open(scratch.store().join("archive/lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    scratch.baton(&["journal", "archive", "--keep", "0"]).refused(1);
    drop(lock);
    scratch.baton(&["journal", "archive", "--keep", "0"]).ok();
}
