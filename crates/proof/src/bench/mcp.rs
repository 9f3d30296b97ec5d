//! What a call costs through the MCP server: a claim on a warm server against a ping.
//!
//! Both go over the same pipes to the same process, so the ratio is what the claim itself costs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::page::Line;
use super::samples::{self, Call};
use super::{Scale, fill};
use crate::failure::Failure;
use crate::traffic::Ground;

const TARGET: f64 = 3.0;

pub(super) fn measure(baton: &Path, scale: Scale, lines: &mut Vec<Line>) -> Result<(), Failure> {
    println!("calls of a warm MCP server");
    let ground = Ground::make(None)?;
    let mut server = Server::start(baton, &ground)?;
    server.claims("src/held.rs")?;
    let spreads = samples::interleaved(scale.samples, |sample, series| match series {
        0 => server.time("ping", &json!({})),
        1 => server.claims("src/held.rs"),
        _ => server.claims(&format!("src/new{sample}.rs")),
    })?;
    let [ping, held, new] = spreads;
    lines.push(Line::ratio(
        "MCP `claim` of a new path, against a ping".into(),
        &new,
        &ping,
        TARGET,
    ));
    lines.push(Line::ratio(
        "MCP `claim` of a held path, against a ping".into(),
        &held,
        &ping,
        TARGET,
    ));
    Ok(())
}

struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    fn start(baton: &Path, ground: &Ground) -> Result<Self, Failure> {
        let call = Call::new(baton, &ground.root(), &fill::session(ground)?);
        let mut command = call.command(&["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = command.spawn();
        let mut child =
            started.map_err(|source| Failure::NotStarted { what: "baton mcp".into(), source })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::said("baton mcp", "has no pipes"));
        };
        let mut server = Self { child, input, output: BufReader::new(output), last: 0 };
        let client = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" } });
        server.ask("initialize", &client)?;
        Ok(server)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.last += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.last, "method": method,
            "params": params });
        let line = self.round_trip(&format!("{request}\n"));
        let line = line.map_err(|error| Failure::said(method, error.to_string()))?;
        serde_json::from_str(&line).map_err(|error| Failure::said(method, error.to_string()))
    }

    fn round_trip(&mut self, line: &str) -> std::io::Result<String> {
        self.input.write_all(line.as_bytes())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        Ok(answer)
    }

    fn time(&mut self, method: &str, params: &Value) -> Result<Duration, Failure> {
        let started = Instant::now();
        let answer = self.ask(method, params)?;
        let time = started.elapsed();
        match answer["error"].is_null() && answer["result"]["isError"] != true {
            true => Ok(time),
            false => Err(Failure::said(method, answer.to_string())),
        }
    }

    fn claims(&mut self, path: &str) -> Result<Duration, Failure> {
        let wanted = json!({ "name": "claim", "arguments": { "resources": [path] } });
        self.time("tools/call", &wanted)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
