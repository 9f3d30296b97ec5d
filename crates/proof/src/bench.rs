//! `cargo xtask bench`: what Baton costs, as ratios to an empty process measured in the same run.
//!
//! Every series is interleaved with the floor sample by sample, so that a busy machine slows both.
//! Owns what is measured and what is promised; the page it writes shows misses as plainly as hits.

use std::io::Read;
use std::path::{Path, PathBuf};

use baton_engine::workspace::Workspace;

use crate::failure::Failure;
use crate::traffic::Ground;
use page::Line;
use samples::{Call, Spread};

mod conflicts;
mod crowd;
mod fill;
mod hooks;
mod landing;
mod mcp;
mod memory;
mod page;
mod postgres;
mod priority;
mod samples;
mod tasks;

pub const HELP: &str = "\
Usage: cargo xtask bench [--quick] [--conflicts | --hooks | --mcp]

Builds target/dist/baton and measures it against an empty static process: check and claim, alone
and with the store open elsewhere, empty and with 100,000 live claims and 1,000,000 journal
entries; hooks of agents; calls of the MCP server; taking tasks; conflicts of 20 trees; landing
branches; 64 processes at once; memory; PostgreSQL. Prints a table and writes it into
docs/design/performance.md.

  --quick       a tenth of everything, and the page is not written
  --conflicts   only the conflicts of 20 trees, and the page is not written
  --hooks       only the hooks of agents, and the page is not written
  --mcp         only calls of the MCP server, and the page is not written
";

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    samples: usize,
    warm_up_claims: usize,
    live_claims: usize,
    entries: usize,
    crowd_calls: usize,
    postgres_seconds: u64,
    open_tasks: usize,
    done_tasks: usize,
    drained_tasks: usize,
}

const FULL: Scale = Scale {
    samples: 1_000,
    warm_up_claims: 10_000,
    live_claims: 100_000,
    entries: 1_000_000,
    crowd_calls: 40,
    postgres_seconds: 5,
    open_tasks: 100_000,
    done_tasks: 1_000_000,
    drained_tasks: 5_000,
};

const QUICK: Scale = Scale {
    samples: 200,
    warm_up_claims: 1_000,
    live_claims: 10_000,
    entries: 100_000,
    crowd_calls: 8,
    postgres_seconds: 1,
    open_tasks: 10_000,
    done_tasks: 100_000,
    drained_tasks: 320,
};

#[derive(Debug)]
struct Options {
    quick: bool,
    /// Nothing but the conflicts.
    conflicts: bool,
    /// Nothing but the hooks.
    hooks: bool,
    /// Nothing but calls of the MCP server.
    mcp: bool,
    baton: PathBuf,
    floor: PathBuf,
    page: Option<PathBuf>,
}

/// Always true: a missed target is said, not failed, for a busy machine misses all of them.
pub fn run(words: &[String]) -> Result<bool, Failure> {
    let options = parse(words)?;
    let scale = if options.quick { QUICK } else { FULL };
    let mut lines = Vec::new();
    if options.conflicts {
        conflicts::measure(&options.baton, scale, &mut lines)?;
        print!("\n{}", page::table(&lines));
        return Ok(true);
    }
    if options.hooks {
        hooks::measure(&options.baton, &options.floor, scale, &mut lines)?;
        print!("\n{}", page::table(&lines));
        return Ok(true);
    }
    if options.mcp {
        mcp::measure(&options.baton, scale, &mut lines)?;
        print!("\n{}", page::table(&lines));
        return Ok(true);
    }
    println!("a store after {} claims and releases", scale.warm_up_claims);
    let small = Ground::make(None)?;
    fill::warm_up(&small, scale.warm_up_claims)?;
    println!("a store with {} live claims, {} entries", scale.live_claims, scale.entries);
    let large = Ground::make(None)?;
    fill::fill(&large, scale.live_claims, scale.entries)?;

    // Filling took minutes, in which some kernels put away what nobody ran: both are written anew,
    // as an installation does.
    for program in [&options.baton, &options.floor] {
        install(program)?;
    }
    let undisturbed = priority::raise();
    let uncontended = commands(&options, scale, &small, &large, &mut lines)?;
    hooks::measure(&options.baton, &options.floor, scale, &mut lines)?;
    mcp::measure(&options.baton, scale, &mut lines)?;
    priority::lower();
    lines.push(memory::measure(&options.baton, &small)?);
    tasks::measure(&options.baton, scale, &mut lines)?;
    landing::measure(&options.baton, scale, &mut lines)?;
    conflicts::measure(&options.baton, scale, &mut lines)?;
    crowd::measure(&options.baton, scale, &uncontended, &mut lines)?;
    postgres::measure(scale, &mut lines)?;
    let text = format!("{}\n{}", page::machine(&small.root(), undisturbed), page::table(&lines));
    print!("\n{text}");
    if let Some(path) = options.page.filter(|_| !options.quick) {
        page::write(&path, &text)?;
        println!("\nwritten to {}", path.file_name().unwrap_or_default().display());
    }
    Ok(true)
}

/// The program by a new file in its place, in one write.
fn install(program: &Path) -> Result<(), Failure> {
    let fresh = program.with_extension("fresh");
    let replaced = std::fs::read(program)
        .and_then(|bytes| std::fs::write(&fresh, bytes))
        .and_then(|()| std::fs::metadata(program))
        .and_then(|found| std::fs::set_permissions(&fresh, found.permissions()))
        .and_then(|()| std::fs::rename(&fresh, program));
    replaced.map_err(|error| Failure::said("installing", error.to_string()))
}

/// The two commands of every hook, in all four situations. Gives the uncontended claim.
fn commands(
    options: &Options,
    scale: Scale,
    small: &Ground,
    large: &Ground,
    lines: &mut Vec<Line>,
) -> Result<Spread, Failure> {
    let mut empty_alone = None;
    let situations = [("alone", 4.5, 5.0), ("open elsewhere", 3.0, 4.0)];
    for (index, (where_, check_target, claim_target)) in situations.into_iter().enumerate() {
        println!("check and claim, store {where_}");
        let open = match index {
            0 => None,
            _ => Some((KeptOpen::start(&small.root())?, KeptOpen::start(&large.root())?)),
        };
        let floor = Call::new(&options.floor, &std::env::temp_dir(), "");
        let call = |ground: &Ground| -> Result<Call, Failure> {
            Ok(Call::new(&options.baton, &ground.root(), &fill::session(ground)?))
        };
        let (one, two) = (call(small)?, call(large)?);
        let spreads = samples::interleaved(scale.samples, |sample, series| {
            let path = format!("bench/{where_}/{sample}.rs").replace(' ', "-");
            match series {
                0 => floor.time(&[]),
                1 => one.time(&["check", "src/pkg7/mod3/file1.rs"]),
                2 => one.time(&["claim", &path]),
                3 => two.time(&["check", "src/pkg7/mod3/file1.rs"]),
                _ => two.time(&["claim", &path]),
            }
        })?;
        let [floor, check, claim, check_large, claim_large] = spreads;
        let small_line = |what: &str, spread: &Spread, target: f64| {
            let name = format!("{what}, {where_}");
            Line::ratio(name, spread, &floor, target)
        };
        lines.push(small_line("`check`", &check, check_target));
        lines.push(small_line("`claim` of a new path", &claim, claim_target));
        for (what, large, empty) in
            [("`check`", &check_large, &check), ("`claim`", &claim_large, &claim)]
        {
            let name = format!("{what}, {where_}, large store against the small one");
            lines.push(Line::ratio(name, large, empty, 1.3));
        }
        empty_alone = empty_alone.or(Some(claim));
        drop(open);
    }
    empty_alone.ok_or_else(|| Failure::said("bench", "no samples"))
}

/// Another process that has the store open, as a resident agent or server has.
struct KeptOpen {
    child: std::process::Child,
}

impl KeptOpen {
    fn start(folder: &Path) -> Result<Self, Failure> {
        let not_started = |source| Failure::NotStarted { what: "a keeper".to_owned(), source };
        let program = std::env::current_exe().map_err(not_started)?;
        let mut command = std::process::Command::new(program);
        command.arg("keep-open").arg(folder);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().map_err(not_started)?;
        if let Some(output) = child.stdout.as_mut() {
            // It says one letter when the store is open.
            output.read_exact(&mut [0]).map_err(not_started)?;
        }
        Ok(Self { child })
    }
}

impl Drop for KeptOpen {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Opens the store of a folder and keeps it open until the input ends.
pub fn keep_open(words: &[String]) -> Result<(), Failure> {
    let folder = words.first().ok_or_else(|| Failure::Usage { word: String::new() })?;
    let mut workspace = Workspace::open(Path::new(folder), None)?;
    drop(workspace.store.snapshot()?);
    println!("o");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}

fn parse(words: &[String]) -> Result<Options, Failure> {
    let (mut quick, mut conflicts, mut hooks, mut mcp) = (false, false, false, false);
    let (mut baton, mut floor, mut page) = (None, None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().map(PathBuf::from);
        match word.as_str() {
            "--quick" => quick = true,
            "--conflicts" => conflicts = true,
            "--hooks" => hooks = true,
            "--mcp" => mcp = true,
            "--baton" => baton = value(),
            "--floor" => floor = value(),
            "--page" => page = value(),
            _ => return Err(Failure::Usage { word: word.clone() }),
        }
    }
    let missing = |word: &str| Failure::Usage { word: word.to_owned() };
    Ok(Options {
        quick,
        conflicts,
        hooks,
        mcp,
        baton: baton.ok_or_else(|| missing("--baton"))?,
        floor: floor.ok_or_else(|| missing("--floor"))?,
        page,
    })
}
