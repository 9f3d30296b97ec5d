//! `baton mcp`: raw lines go in over a pipe, and what comes back is looked at.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Scratch;

/// Longer than anything here takes on a machine that is busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A client with a server of its own.
pub(crate) struct Client {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    pub(crate) lines: Receiver<String>,
    last: u64,
    /// Sent with every request.
    pub(crate) meta: Value,
    /// What came while something else was waited for.
    pub(crate) early: Vec<Value>,
}

impl Client {
    pub(crate) fn start(scratch: &Scratch) -> Self {
        Self::of(&mut scratch.command(&["mcp"]))
    }

    /// A client that acts as a session.
    pub(crate) fn of_session(scratch: &Scratch, credential: &str) -> Self {
        let mut client = Self::of(scratch.command(&["mcp"]).env("BATON_SESSION", credential));
        client.initialize("2025-06-18");
        client
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, last: 0, meta: json!({}), early: Vec::new() }
    }

    fn put(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// Sends a request and gives its id.
    pub(crate) fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        if self.meta.as_object().is_some_and(|meta| !meta.is_empty()) {
            params["_meta"] = self.meta.clone();
        }
        let id = self.last;
        self.put(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        id
    }

    pub(crate) fn tell(&mut self, method: &str, params: &Value) {
        self.put(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The first message that fits; what comes before it is kept for later.
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&fits) {
            return self.early.remove(at);
        }
        loop {
            let message = self.next();
            if fits(&message) {
                return message;
            }
            self.early.push(message);
        }
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id)
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let result = self.request(
            "initialize",
            json!({ "protocolVersion": version,
            "capabilities": {}, "clientInfo": { "name": "tester", "version": "1" } }),
        );
        self.tell("notifications/initialized", &json!({}));
        result
    }

    /// Calls a tool; every word must be in both halves of the answer.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        said(result)
    }

    #[track_caller]
    pub(crate) fn good(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
        result["structuredContent"]["text"].as_str().unwrap().to_owned()
    }

    /// Refused with a code, and with a next step.
    #[track_caller]
    pub(crate) fn refused(&mut self, tool: &str, arguments: &Value) -> (String, String) {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        let told = &result["structuredContent"];
        assert!(told["details"].is_object(), "{result}");
        let next = told["next"].as_str().unwrap();
        let text = told["text"].as_str().unwrap();
        assert!(!next.is_empty() && text.ends_with(&format!("next: {next}")), "{result}");
        assert!(text.contains(told["message"].as_str().unwrap()), "{result}");
        (told["code"].as_str().unwrap().to_owned(), text.to_owned())
    }

    /// How long the server takes to end once its input is closed.
    pub(crate) fn close(&mut self) -> Duration {
        drop(self.input.take());
        let took = self.ended();
        assert!(self.child.wait().unwrap().success(), "it ends well");
        took
    }

    pub(crate) fn ended(&mut self) -> Duration {
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
        begun.elapsed()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub(crate) fn said(result: Value) -> Value {
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
    assert_eq!(result["content"][0]["text"], result["structuredContent"]["text"], "{result}");
    assert!(!result["content"][0]["text"].as_str().unwrap().contains('\u{1b}'), "{result}");
    result
}

pub(crate) fn modern() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn every_protocol_version_is_spoken() {
    let scratch = Scratch::workspace();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::start(&scratch);
        let result = client.initialize(version);
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "baton");
        client.request("ping", json!({}));
        assert!(client.good("status", &json!({})).contains("Nothing waits for a person"));
    }
    // A version that nobody knows is answered with one that the server speaks.
    for version in ["1999-01-01", "2026-07-28", "2099-01-01", ""] {
        let mut client = Client::start(&scratch);
        let spoken = client.initialize(version)["protocolVersion"].as_str().unwrap().to_owned();
        assert!(spoken.starts_with("2025-"), "{version:?}: {spoken}");
        client.good("status", &json!({}));
    }
    let mut client = Client::start(&scratch);
    client.meta = modern();
    let found = client.request("server/discover", json!({}));
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    let list = client.request("tools/list", json!({}));
    assert_eq!(list["resultType"], "complete", "{list}");
    assert!(list["ttlMs"].is_number() && list["cacheScope"].is_string(), "{list}");
    client.good("claim", &json!({ "resources": ["src/a.rs"] }));
    client.meta["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let id = client.ask("tools/list", json!({}));
    assert_eq!(client.answer(id)["error"]["code"], -32022);
    client.meta = modern();
    client.good("release", &json!({ "all": true }));
}

#[test]
fn lesson_32_the_list_is_short_and_precise() {
    let scratch = Scratch::workspace();
    let mut client = Client::start(&scratch);
    client.initialize("2025-06-18");
    let list = client.request("tools/list", json!({}));
    // 2,500 model tokens at three and a half bytes each; see `mcp/tools.rs`.
    assert!(list.to_string().len() <= 8_750, "{} bytes", list.to_string().len());
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "status",
            "claim",
            "release",
            "task_list",
            "task_take",
            "task_add",
            "task_update",
            "handoff",
            "state",
            "gate",
            "commit_and_land",
            "conflicts"
        ]
    );
    for tool in tools {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object", "{tool}");
        assert_eq!(schema["additionalProperties"], false, "{tool}");
        assert!(schema["properties"].is_object(), "{tool}");
        let hints = &tool["annotations"];
        assert!(hints["readOnlyHint"].is_boolean() && hints["openWorldHint"].is_boolean());
        assert!(hints["readOnlyHint"] == true || hints["destructiveHint"] == false, "{tool}");
    }
    let pages = client.request("resources/list", json!({}));
    assert_eq!(pages["resources"].as_array().unwrap().len(), 2, "{pages}");
    let kinds = client.request("resources/templates/list", json!({}));
    assert_eq!(kinds["resourceTemplates"].as_array().unwrap().len(), 2, "{kinds}");
}

#[test]
fn claims_tasks_and_values_are_the_same_as_on_the_command_line() {
    Scratch::on_each_store("", |scratch| {
        let ann = scratch.session("ann");
        let mut bob = Client::of_session(scratch, &scratch.session("bob"));
        scratch.acts(&ann, &["claim", "src/a.rs", "--reason", "the parser"]).ok();
        let (code, text) = bob.refused("claim", &json!({ "resources": ["src/"] }));
        assert_eq!(code, "held");
        for part in ["held by ann", "the parser", "until"] {
            assert!(text.contains(part), "{text}");
        }
        let asked = json!({ "resources": ["src/a.rs"], "ask": "I need it" });
        assert!(bob.good("claim", &asked).starts_with("asked ann"));
        let told = bob.good("claim", &json!({ "resources": ["@browser/login", "README.md"] }));
        assert!(told.contains("claimed @browser/login, README.md until"), "{told}");
        scratch.acts(&ann, &["claim", "README.md"]).refused(1);
        assert!(bob.good("status", &json!({ "path": "src/a.rs" })).contains("held by ann"));
        bob.refused("release", &json!({}));
        bob.good("release", &json!({ "resources": ["README.md"] }));
        scratch.acts(&ann, &["claim", "README.md"]).ok();

        assert!(bob.good("task_add", &json!({ "title": "one", "priority": 0 })).contains("t1"));
        bob.good("task_add", &json!({ "title": "two", "after": ["t1"] }));
        assert!(bob.good("task_list", &json!({ "view": "ready" })).contains("one"));
        assert!(bob.good("task_list", &json!({ "view": "blocked" })).contains("two"));
        let taken = bob.good("task_take", &json!({}));
        assert!(taken.contains("took t1"), "{taken}");
        assert!(bob.good("task_list", &json!({ "view": "mine" })).contains("t1"));
        let note = json!({ "action": "note", "task": "t1", "text": "half-way" });
        bob.good("task_update", &note);
        let (code, text) = bob.refused("task_update", &json!({ "action": "done", "task": "t1" }));
        assert_eq!(code, "usage");
        assert!(text.contains("done needs `report_done`"), "{text}");
        let parts = json!({ "split": "t1", "parts": [{ "title": "a" }, { "title": "b" }] });
        bob.good("task_add", &parts);
        bob.good("task_list", &json!({ "task": "t1" }));
        let taken = bob.good("task_take", &json!({ "task": "t3" }));
        assert!(taken.contains("took t3 \"a\""), "{taken}");
        let done = json!({ "action": "done", "task": "t3", "report_done": "all",
            "report_not_done": "nothing" });
        assert!(bob.good("task_update", &done).starts_with("done t3"));
        let (code, _) = bob.refused("task_update", &done);
        assert_ne!(code, "usage");

        bob.good("state", &json!({ "action": "set", "key": "port", "value": { "n": 5 } }));
        let again = json!({ "action": "set", "key": "port", "value": 6, "if_version": 0 });
        let (_, text) = bob.refused("state", &again);
        assert!(text.starts_with("stale: ") && text.contains("version 1"), "{text}");
        let got = bob.good("state", &json!({ "action": "get", "key": "port" }));
        assert!(got.contains("{\"n\":5}") && got.contains("version 1, by bob"), "{got}");
        assert!(bob.good("state", &json!({ "action": "list" })).contains("port"));
        let said = scratch.baton(&["state", "get", "port"]).ok();
        assert_eq!(said.out, "{\"n\":5}\n");
        // What ann did behind bob's back: nothing yet. Then she lets go, and asks.
        scratch.acts(&ann, &["ask", "@browser/login", "--why", "my turn"]).ok();
        let heard = bob.good("task_list", &json!({}));
        assert!(heard.contains("news: ann asks you to let go of @browser/login"), "{heard}");
        assert!(!bob.good("task_list", &json!({})).contains("news:"), "told once");
        bob.close();
    });
}

#[test]
fn reviews_handoffs_gates_and_parking() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    let mut bob = Client::of_session(&scratch, &scratch.session("bob"));
    for title in ["one", "two", "three", "four"] {
        bob.good("task_add", &json!({ "title": title }));
    }
    let update = |action: &str, task: &str, rest: Value| {
        let mut all = json!({ "action": action, "task": task });
        for (name, value) in rest.as_object().unwrap() {
            all[name] = value.clone();
        }
        all
    };
    bob.good("task_take", &json!({ "task": "t1" }));
    let head = scratch.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let submit = update(
        "submit",
        "t1",
        json!({ "commit": head, "report_done": "x",
        "report_not_done": "nothing" }),
    );
    assert!(bob.good("task_update", &submit).contains("submitted t1"));
    bob.refused("task_update", &update("approve", "t1", json!({})));
    let mut eve = Client::of_session(&scratch, &scratch.session("eve"));
    eve.good("task_take", &json!({ "task": "t1" }));
    let reject = update("reject", "t1", json!({ "feedback": "add a test" }));
    assert!(eve.good("task_update", &reject).contains("rejected t1"));
    let news = bob.good("status", &json!({}));
    assert!(news.contains("is rejected by eve, saying: \"add a test\""), "{news}");
    bob.good("task_update", &submit);
    eve.good("task_take", &json!({ "task": "t1" }));
    assert!(eve.good("task_update", &update("approve", "t1", json!({}))).contains("approved t1"));

    bob.good("task_take", &json!({ "task": "t2" }));
    bob.good("task_update", &update("block", "t2", json!({ "on": "t3" })));
    bob.good("task_take", &json!({ "task": "t3" }));
    let (_, text) = bob.refused("task_update", &update("park", "t3", json!({ "why": "x" })));
    assert!(text.contains("park does not take `why`"), "{text}");
    let park = update("park", "t3", json!({ "next": "go on", "back_in": "1h" }));
    bob.good("task_update", &park);
    bob.good("task_take", &json!({ "task": "t4" }));
    bob.good("task_update", &update("fail", "t4", json!({ "why": "no network" })));

    bob.good("task_take", &json!({ "task": "t4" }));
    bob.refused("handoff", &json!({ "action": "offer", "id": "t4" }));
    let offer = json!({ "action": "offer", "id": "t4", "to": "ann", "state": "half",
        "remaining": "the rest", "next": "begin with b", "decisions": ["x: because"] });
    assert!(bob.good("handoff", &offer).contains("to ann as t4-h1"));
    assert!(bob.good("handoff", &json!({ "action": "list" })).contains("t4-h1"));
    let shown = bob.good("handoff", &json!({ "action": "show", "id": "t4-h1" }));
    assert!(shown.contains("begin with b"), "{shown}");
    let page = bob.request("resources/read", json!({ "uri": "baton://handoff/t4-h1" }));
    assert!(page["contents"][0]["text"].as_str().unwrap().contains("begin with b"), "{page}");
    eve.refused("handoff", &json!({ "action": "accept", "id": "t4-h1" }));
    scratch.acts(&ann, &["handoff", "decline", "t4-h1", "--why", "busy"]).ok();

    let ask = json!({ "action": "ask", "on": "t4", "ask": "may we?", "options": ["yes", "no"] });
    assert!(bob.good("gate", &ask).contains("opened g1"));
    assert!(bob.good("gate", &json!({ "action": "list" })).contains("may we?"));
    bob.good("gate", &json!({ "action": "show", "id": "g1" }));
    bob.refused("gate", &json!({ "action": "approve", "id": "g1" }));
    bob.refused("gate", &json!({ "action": "show", "id": "g9" }));
}

#[test]
fn work_is_committed_and_lands() {
    let scratch = crate::landing::workspace(crate::landing::CHECKED);
    let ann = scratch.session("ann");
    let made = scratch.acts(&ann, &["worktree", "new", "work", "--json"]).ok().json();
    let tree = made["path"].as_str().unwrap().to_owned();
    let mut client = Client::of_session(&scratch, &ann);
    client.refused("commit_and_land", &json!({ "message": "x", "dir": "nowhere" }));
    client.refused("commit_and_land", &json!({ "land": false }));
    client.refused("commit_and_land", &json!({ "paths": ["src/a.rs"] }));
    std::fs::write(format!("{tree}/src/a.rs"), "fn a() { b() }\n").unwrap();
    client.meta = json!({ "progressToken": "p1" });
    let all = json!({ "message": "a calls b", "paths": ["src/a.rs"], "dir": tree });
    let text = client.good("commit_and_land", &all);
    assert!(text.contains("committed ") && text.contains("landed"), "{text}");
    let told: Vec<&Value> = client.early.iter().map(|message| &message["params"]).collect();
    assert!(told.iter().all(|told| told["progressToken"] == "p1"), "{told:?}");
    let steps: Vec<f64> = told.iter().map(|told| told["progress"].as_f64().unwrap()).collect();
    assert!(!steps.is_empty() && steps.is_sorted_by(|one, two| one < two), "{told:?}");
    assert!(told[0]["message"].as_str().unwrap().starts_with("checking "), "{told:?}");
    assert!(scratch.git(&["show", "main:src/a.rs"]).contains("b()"));
    std::fs::write(format!("{tree}/bad"), "").unwrap();
    let bad = json!({ "message": "bad", "paths": ["bad"], "dir": tree });
    let result = client.call("commit_and_land", &bad);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(result["isError"], true, "{text}");
    assert!(text.contains("returned") && text.contains("next: mend it"), "{text}");
    let text = client.good("conflicts", &json!({}));
    assert!(text.contains("clean") || text.contains('·'), "{text}");
}

#[test]
fn bad_arguments_are_told_and_end_nothing() {
    let scratch = Scratch::workspace();
    let mut client = Client::start(&scratch);
    client.tell("notifications/cancelled", &json!({ "requestId": 7 }));
    client.put("this is no JSON");
    client.put("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":");
    client.put("");
    client.put("\u{0}\u{1}");
    client.input.as_mut().unwrap().write_all(&[0xff, 0xfe, b'\n']).unwrap();
    client.put("[]");
    assert_eq!(client.next()["error"]["code"], -32600);
    client.put("{\"id\": 77, \"method\": 5}");
    assert_eq!(client.next()["id"], 77);
    client.initialize("2025-06-18");
    client.initialize("2025-11-25");
    for (tool, arguments, part) in [
        ("claim", json!({}), "claim needs `resources`"),
        ("claim", json!({ "resources": [] }), "nothing was named"),
        ("claim", json!({ "resources": ["../out"] }), "out"),
        ("claim", json!({ "resources": [".git/config"] }), ".git"),
        ("claim", json!({ "resources": ["a"], "wait": "1h" }), "at most 5m"),
        ("claim", json!({ "resources": ["a"], "who": 1 }), "it takes resources, reason, wait"),
        ("task_list", json!({ "view": "x" }), "one of unfinished, ready, blocked, mine, all"),
        ("task_list", json!({ "task": "t99" }), "t99"),
        ("task_take", json!({ "task": "t99" }), "t99"),
        ("task_add", json!({}), "needs `title`"),
        ("task_add", json!({ "split": "t1" }), "needs `parts`"),
        ("task_add", json!({ "split": "t1", "title": "x", "parts": [] }), "does not take `title`"),
        ("task_update", json!({ "action": "x", "task": "t1" }), "one of done, fail"),
        ("handoff", json!({ "action": "accept" }), "needs `id`"),
        ("state", json!({ "action": "set", "key": "k" }), "set needs `value`"),
        ("state", json!({ "action": "get", "key": "//" }), "between two"),
        ("gate", json!({ "action": "ask", "on": "x" }), "ask needs `ask`: The question"),
        ("gate", json!({ "action": "ask", "ask": "?" }), "ask needs `on`: Task or words"),
    ] {
        let (_, text) = client.refused(tool, &arguments);
        assert!(text.contains(part), "{tool} {arguments}: {text}");
    }
    let unknown = |client: &mut Client, method: &str, params: Value| {
        let id = client.ask(method, params);
        client.answer(id)["error"]["code"].as_i64().unwrap()
    };
    assert_eq!(unknown(&mut client, "tools/call", json!({ "name": "rm" })), -32602);
    assert_eq!(unknown(&mut client, "tools/call", json!({ "name": 5 })), -32602);
    let list = json!({ "name": "status", "arguments": [1] });
    assert_eq!(unknown(&mut client, "tools/call", list), -32602);
    assert_eq!(unknown(&mut client, "baton/none", json!({})), -32601);
    assert_eq!(
        unknown(&mut client, "resources/read", json!({ "uri": "file:///etc/passwd" })),
        -32602
    );
    assert_eq!(unknown(&mut client, "resources/read", json!({ "uri": "baton://task/t9" })), -32002);
    let huge = "x".repeat(10 * 1024 * 1024);
    let (_, text) = client.refused("claim", &json!({ "resources": [huge] }));
    assert!(text.len() < 2_000, "{} bytes", text.len());
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    client.put(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":88,\"method\":\"tools/call\",\"params\":\
         {{\"name\":\"claim\",\"arguments\":{{\"resources\":{deep}}}}}}}"
    ));
    assert_eq!(client.answer(88)["result"]["isError"], true);
    client.put(&"y".repeat(17 * 1024 * 1024));
    client.request("ping", json!({}));
    assert_eq!(scratch.baton(&["claims"]).ok().out, "no claims\n");
    client.close();
}

#[test]
fn of_two_servers_one_gets_it_and_the_other_is_told_of_the_first() {
    let scratch = Scratch::workspace();
    let mut ann = Client::of_session(&scratch, &scratch.session("ann"));
    let mut bob = Client::of_session(&scratch, &scratch.session("bob"));
    for round in 0..20 {
        let wanted = json!({ "name": "claim",
            "arguments": { "resources": [format!("src/{round}.rs")] } });
        let (one, two) = (ann.ask("tools/call", wanted.clone()), bob.ask("tools/call", wanted));
        let (one, two) = (ann.answer(one), bob.answer(two));
        let errors = [&one, &two].map(|answer| answer["result"]["isError"] == true);
        assert_eq!(errors.iter().filter(|error| **error).count(), 1, "{one} {two}");
        let loser = if errors[0] { &one } else { &two };
        assert_eq!(loser["result"]["structuredContent"]["code"], "held", "{loser}");
    }
    let verified = scratch.baton(&["journal", "verify"]).ok();
    assert!(verified.out.starts_with("verified: "), "{verified:?}");
}
