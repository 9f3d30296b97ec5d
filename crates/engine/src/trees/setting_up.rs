//! The command that makes a new tree ready, such as `npm ci`.
//!
//! Owns running it with its output passed on as it comes. It is ended when whoever waits for it
//! wants that, and on Linux by the kernel when this process dies, so that nothing writes into a
//! tree that is being cleared away.

use std::io::Read;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::{Door, Error};
use crate::failure::Failure;
use crate::leash;

const LOOKED_FOR_EVERY: Duration = Duration::from_millis(50);
/// A child of the command may hold its output open; it is not waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);
const LINE_CHARACTERS_MAX: usize = 200;
const TAIL_BYTES_MAX: usize = 4 * 1024;

pub(super) fn run(
    words: &[String],
    folder: &Path,
    environment: &[(String, String)],
    door: &mut dyn Door,
) -> Result<(), Failure> {
    let words: Vec<String> = match words {
        [] => return Ok(()),
        [line] => ["sh", "-c", line].map(str::to_owned).into(),
        words => words.to_vec(),
    };
    let failed = |source: std::io::Error| Failure::from(Error::Setup { saw: source.to_string() });
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let mut command = leash::command(&words);
    command.current_dir(folder).stdin(std::process::Stdio::null());
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    // Git's own variables would send its git into the repository around us.
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
    {
        command.env_remove(name);
    }
    command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
    let mut child = command.spawn().map_err(failed)?;
    drop(command);
    let said = listen(reader);
    let mut tail = Vec::new();
    let status = loop {
        match said.recv_timeout(LOOKED_FOR_EVERY) {
            Ok(piece) => pass_on(&piece, &mut tail, door),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break child.wait().map_err(failed)?,
        }
        if door.end_wanted() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Stopped.into());
        }
        if let Some(status) = child.try_wait().map_err(failed)? {
            while let Ok(piece) = said.recv_timeout(LAST_WORDS) {
                pass_on(&piece, &mut tail, door);
            }
            break status;
        }
    };
    match status.success() {
        // Ctrl-C reaches both; a command that takes no notice must not hide it.
        true if door.end_wanted() => Err(Error::Stopped.into()),
        true => Ok(()),
        false => Err(Error::Setup { saw: in_words(status, &tail) }.into()),
    }
}

pub(crate) fn listen(mut reader: std::io::PipeReader) -> Receiver<Vec<u8>> {
    let (tell, said) = channel();
    std::thread::spawn(move || {
        let mut piece = [0; 8 * 1024];
        while let Ok(count) = reader.read(&mut piece)
            && count > 0
            && tell.send(piece[..count].to_vec()).is_ok()
        {}
    });
    said
}

fn pass_on(piece: &[u8], tail: &mut Vec<u8>, door: &mut dyn Door) {
    door.wrote(piece);
    tail.extend(piece);
    let surplus = tail.len().saturating_sub(TAIL_BYTES_MAX);
    tail.drain(..surplus);
}

fn in_words(status: ExitStatus, tail: &[u8]) -> String {
    let how = match status.code() {
        Some(code) => format!("exit {code}"),
        None => "it was killed".to_owned(),
    };
    let text = String::from_utf8_lossy(tail);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let last: String = last.trim().chars().take(LINE_CHARACTERS_MAX).collect();
    if last.is_empty() { how } else { format!("{how}: {last}") }
}
