//! Codex's own record of a session, for the one thing that its hooks do not say: how a command
//! ended.
//!
//! Owns which line of it tells that. Codex writes the line before it calls the hook, with the id
//! that the hook gets. Invariant: what does not stand there is not known. Nothing waits for it,
//! only the end of the file is read, and nothing but a plain file is opened.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value;

/// The line holds what the command wrote too, of which Codex keeps 64 KiB, and lines of commands
/// that ran beside it may come after it.
const TAIL_BYTES: u64 = 512 * 1024;

/// With what a command ended, by the id of its tool call.
pub(super) fn exit_code(path: &Path, call: &str) -> Option<i64> {
    let tail = tail(path)?;
    let lines = tail.split(|byte| *byte == b'\n').rev();
    lines.filter(|line| holds(line, call.as_bytes())).find_map(|line| ended(line, call))
}

fn ended(line: &[u8], call: &str) -> Option<i64> {
    let line = super::lenient::parse(line)?;
    let item = line.get("payload")?.get("item")?;
    let said = |key: &str| item.get(key).and_then(Value::as_str);
    let is_its_own = said("type") == Some("CommandExecution") && said("id") == Some(call);
    item.get("exit_code").filter(|_| is_its_own)?.as_i64()
}

fn holds(line: &[u8], wanted: &[u8]) -> bool {
    !wanted.is_empty() && line.windows(wanted.len()).any(|part| part == wanted)
}

fn tail(path: &Path) -> Option<Vec<u8>> {
    let size = path.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES))).ok()?;
    let mut text = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Codex 0.166.0 writes it.
    fn line(kind: &str, id: &str, code: &str, output: &str) -> String {
        format!(
            "{{\"timestamp\":\"2026-11-18T02:55:45.019Z\",\"ordinal\":11,\"type\":\"event_msg\",\
             \"payload\":{{\"type\":\"item_completed\",\"item\":{{\"type\":\"{kind}\",\"id\":\
             \"{id}\",\"status\":\"failed\",\"aggregated_output\":\"{output}\",\"exit_code\":\
             {code}}}}}}}\n"
        )
    }

    #[test]
    fn the_line_of_the_call_tells_how_it_ended_and_no_other_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollout.jsonl");
        let check = |text: &str, code: Option<i64>| {
            std::fs::write(&path, text).unwrap();
            assert_eq!(exit_code(&path, "call_1"), code, "{text}");
        };
        let other = line("CommandExecution", "call_2", "0", "call_1 exit_code 7");
        check(&format!("{}{other}", line("CommandExecution", "call_1", "3", "")), Some(3));
        check(&line("CommandExecution", "call_1", "0", ""), Some(0));
        check(&other, None);
        check(&line("FileChange", "call_1", "1", ""), None);
        check(&line("CommandExecution", "call_1", "null", ""), None);
        check(&line("CommandExecution", "call_1", "3", "")[..120], None);
        check("", None);
        let long = line("CommandExecution", "call_0", "1", &"x".repeat(900_000));
        check(&format!("{long}{}", line("CommandExecution", "call_1", "6", "y")), Some(6));
        check(&format!("{}{long}", line("CommandExecution", "call_1", "6", "y")), None);
        assert_eq!(exit_code(folder.path(), "call_1"), None);
        assert_eq!(exit_code(Path::new("/dev/zero"), "call_1"), None);
        assert_eq!(exit_code(&folder.path().join("none"), "call_1"), None);
    }
}
