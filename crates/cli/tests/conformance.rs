//! The conformance suite of the Model Context Protocol, asked of `baton mcp`.
//!
//! The suite speaks HTTP only, so it goes through `clients/bridge.mjs`. What in it is about
//! HTTP itself (origins, headers, status codes, streams), or about tools that a test server must
//! have, cannot be asked of us. Where it is not installed, the test says so and ends.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::clients::home;
use crate::harness::{Scratch, project};

const OLDEST: &str = "2025-06-18";
const MIDDLE: &str = "2025-11-25";
const NEWEST: &str = "2026-07-28";

/// What a server with tools and resources must do, whatever its tools are.
const SCENARIOS: [(&str, &[&str]); 5] = [
    ("server-initialize", &[OLDEST, MIDDLE]),
    ("ping", &[OLDEST, MIDDLE]),
    ("tools-list", &[OLDEST, MIDDLE, NEWEST]),
    ("resources-list", &[OLDEST, MIDDLE, NEWEST]),
    ("sep-2164-resource-not-found", &[NEWEST]),
];

/// Of the scenario without sessions, what is not about HTTP.
const STATELESS: [&str; 9] = [
    "sep-2575-request-meta-invalid-missing-meta",
    "sep-2575-request-meta-invalid-missing-protocol-version",
    "sep-2575-request-meta-invalid-missing-client-capabilities",
    "sep-2575-request-meta-client-info-optional",
    "sep-2575-server-implements-discover",
    "sep-2575-server-identifies-in-result-meta",
    "sep-2575-discover-capabilities-match-handlers",
    "sep-2575-server-unsupported-version-error",
    "sep-2575-http-server-error-jsonrpc-id",
];

/// The bridge, which ends with the test.
struct Bridge {
    child: Child,
    address: String,
}

impl Bridge {
    fn start(scratch: &Scratch) -> Self {
        let mut command = Command::new(node());
        scratch.clean(&mut command);
        command.arg(project().join("crates/cli/tests/clients/bridge.mjs"));
        command.args([env!("CARGO_BIN_EXE_baton"), "mcp"]).current_dir(scratch.root());
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    fn ask(&self, scenario: &str, version: &str) -> String {
        let suite = "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js";
        let mut command = Command::new(node());
        command.arg(home().join(suite)).args(["server", "--url", &self.address]);
        command.args(["--scenario", scenario, "--spec-version", version]);
        let output = command.env("NO_COLOR", "1").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn node() -> PathBuf {
    home().join("node24/node_modules/.bin/node")
}

#[test]
fn the_protocols_own_suite_is_content() {
    if !home().join("conformance/node_modules").is_dir() {
        eprintln!("skipped: the suite is not installed; cargo xtask test --clients installs it");
        return;
    }
    let scratch = Scratch::workspace();
    let bridge = Bridge::start(&scratch);
    for (scenario, versions) in SCENARIOS {
        for version in versions {
            let said = bridge.ask(scenario, version);
            assert!(said.contains(", 0 failed, 0 warnings"), "{scenario} {version}: {said}");
        }
    }
    let said = bridge.ask("server-stateless", NEWEST);
    for check in STATELESS {
        let line = said.lines().find(|line| line.contains(&format!("[{check} ")));
        let line = line.or_else(|| said.lines().find(|line| line.contains(&format!("[{check}]"))));
        assert!(line.is_some_and(|line| line.contains("SUCCESS")), "{check}: {said}");
    }
}
