//! The words of Baton: the command line.
//!
//! Reads what was typed, opens the workspace, calls the engine and says what came of it. Owns exit
//! codes and words; refuses to decide anything.

use std::process::ExitCode;

mod arguments;
mod commands;
mod counter;
mod desk;
#[cfg(any(target_env = "musl", all(test, target_os = "linux")))]
mod heap;
mod hooks;
mod mcp;
mod news;
mod onlooker;
mod render;
mod signals;
mod words;

#[cfg(target_env = "musl")]
#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

fn main() -> ExitCode {
    #[cfg(windows)]
    compile_error!("Baton runs on Linux and macOS; on Windows use WSL 2");

    // A reader that went away (`baton journal | head`) ends us quietly, as any Unix tool.
    desk::end_quietly_on_broken_pipe();
    if let Some(code) = commands::sandbox::through_broker() {
        return code;
    }
    let command_line = match arguments::parse(std::env::args_os()) {
        Ok(command_line) => command_line,
        Err(said) => return said.say(),
    };
    commands::run(command_line)
}
