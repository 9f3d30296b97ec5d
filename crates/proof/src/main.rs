//! The program behind `cargo xtask soak` and `cargo xtask bench`, and the workers they start.
//!
//! xtask itself knows nothing of the product, so that it starts at once and works on a broken
//! build; what needs the product's own crates is here.

use std::process::ExitCode;

use baton_proof::worker::{self, Task};
use baton_proof::{bench, soak};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let verb = words.first().map_or("", String::as_str);
    let rest = words.get(1..).unwrap_or_default();
    if rest.iter().any(|word| matches!(word.as_str(), "-h" | "--help")) {
        print!("{}", if verb == "bench" { bench::HELP } else { soak::HELP });
        return ExitCode::SUCCESS;
    }
    let done = match verb {
        "worker" => match Task::from_environment() {
            Some(task) => worker::run(&task).map(|()| true),
            None => Ok(false),
        },
        "soak" => soak::run(rest),
        "bench" => bench::run(rest),
        "keep-open" => bench::keep_open(rest).map(|()| true),
        _ => Ok(false),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("baton-proof {verb}: {failure}");
            ExitCode::from(2)
        }
    }
}
