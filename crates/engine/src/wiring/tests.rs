//! Merges of our entries into what users have, for every client at once.
//!
//! Owns the properties: byte for byte back, twice is once, and the user's own stays.

use super::command::Program;
use super::*;

/// Settings as people really have them.
const REALISTIC: &str = r#"// my settings
{
    "permissions": { "allow": ["Bash(cargo test)"], "deny": [] }, // keep
    "hooks": {
        "PreToolUse": [
            { "matcher": "Bash", "hooks": [ { "type": "command", "command": "./guard.sh" } ] },
        ],
        /* mine too */
        "Stop": [],
    },
    "mcpServers": { "other": { "command": "other", "args": [] } },
    "mcp": {},
}
"#;

const PLAIN: &str = "{\n  \"a\": 1\n}\n";

const TOML: &str = "# mine\nmodel = \"gpt\"   # fast\n\n[mcp_servers.other]\ncommand = \"x\"\n";

fn everything(mode: Mode) -> Vec<Piece> {
    let program = Program { mode, path: "/opt/it's here/baton" };
    let root = Path::new("/nowhere");
    [
        claude::pieces(&program),
        codex::pieces(&program),
        gemini::pieces(&program),
        cursor::pieces(&program),
        opencode::pieces(&program, root),
        aider::pieces(),
    ]
    .concat()
}

fn put(content: &Content, text: Option<&str>) -> String {
    match content.put(text) {
        Ok(Put::Text(text)) => text,
        Ok(Put::Kept(why)) => panic!("kept: {why}"),
        Err(why) => panic!("{why:?}"),
    }
}

#[test]
fn what_is_put_in_comes_out_again_byte_for_byte() {
    for mode in [Mode::Team, Mode::Personal] {
        for piece in everything(mode) {
            let texts: &[&str] = match piece.content {
                Content::Json(Reader::Lenient | Reader::Unmarked, _) => {
                    &[REALISTIC, PLAIN, "{}", "{\n\t\"a\": []\n}"]
                }
                Content::Json(Reader::Strict | Reader::Typed(_), _) => {
                    &[PLAIN, "{}", "{\n\t\"a\": []\n}"]
                }
                Content::Json(Reader::Closed(..), _) => &["{}", "{\n\t\"description\": \"a\"\n}"],
                Content::Toml { .. } => &[TOML, "model = \"gpt\"\n"],
                _ => &[],
            };
            for text in texts {
                for text in
                    [(*text).to_owned(), text.replace('\n', "\r\n"), format!("\u{feff}{text}")]
                {
                    let plain = matches!(
                        piece.content,
                        Content::Json(Reader::Unmarked | Reader::Closed(..), _)
                    );
                    if plain && text.starts_with('\u{feff}') {
                        assert!(piece.content.put(Some(&text)).is_err(), "{}", piece.path);
                        continue;
                    }
                    let with = put(&piece.content, Some(&text));
                    assert_ne!(with, text);
                    assert_eq!(put(&piece.content, Some(&with)), with, "twice: {}", piece.path);
                    let lone = with.replace("\r\n", "").contains('\n');
                    assert!(!text.contains("\r\n") || !lone, "line ends of {}", piece.path);
                    let back = piece.content.take_out(&with).unwrap();
                    // An empty list or object of the user's, once filled, is not told from ours.
                    if text.contains("\"a\": 1") || matches!(piece.content, Content::Toml { .. }) {
                        assert_eq!(back.as_deref(), Some(&*text), "{}: {with}", piece.path);
                    }
                }
            }
        }
    }
}

#[test]
fn a_new_file_is_whole_and_goes_whole() {
    for mode in [Mode::Team, Mode::Personal] {
        for piece in everything(mode) {
            let new = put(&piece.content, None);
            assert!(new.ends_with('\n'), "{}", piece.path);
            if matches!(piece.content, Content::Json(..)) {
                let parsed: serde_json::Value = serde_json::from_str(&new).unwrap();
                assert!(parsed.is_object());
            }
            assert_eq!(piece.content.take_out(&new).unwrap(), None, "{}: {new}", piece.path);
            assert_eq!(put(&piece.content, Some(&new)), new);
        }
    }
}

#[test]
fn hooks_and_servers_of_the_user_stay() {
    for piece in everything(Mode::Team) {
        let Content::Json(Reader::Lenient | Reader::Unmarked, _) = piece.content else { continue };
        let with = put(&piece.content, Some(REALISTIC));
        for kept in ["// my settings", "./guard.sh", "/* mine too */", "\"other\"", "// keep"] {
            assert!(with.contains(kept), "{kept} in {}: {with}", piece.path);
        }
    }
}

#[test]
fn an_older_entry_is_updated_in_place() {
    let program = Program { mode: Mode::Team, path: "baton" };
    let hooks = Content::Json(Reader::Strict, claude::hooks(&program));
    let old = r#"{"hooks":{"PreToolUse":[{"matcher":"Edit","hooks":[
        {"type":"command","command":"/old/baton","args":["hook","claude"],"timeout":9,"mine":1}
    ]}],"Gone":[{"hooks":[{"type":"command","command":"baton hook claude"}]}]}}"#;
    let new = put(&hooks, Some(old));
    assert!(!new.contains("/old/baton") && new.contains("\"mine\":1"), "{new}");
    assert!(new.contains("Edit|Write|MultiEdit"), "the matcher too: {new}");
    assert_eq!(new.matches("PreToolUse\"").count(), 1, "{new}");
    assert_eq!(hooks.take_out(&new).unwrap(), None, "also what only an older Baton asked for");
    let shared = r#"{"hooks":{"PreToolUse":[{"matcher":"Edit","hooks":[
        {"type":"command","command":"./mine.sh"},
        {"type":"command","command":"baton hook claude"}
    ]}]}}"#;
    let both = put(&hooks, Some(shared));
    assert!(both.contains("\"matcher\":\"Edit\""), "a group that others share is theirs: {both}");
    assert!(both.contains("Edit|Write|MultiEdit"), "and ours has one of its own: {both}");
    let Content::Json(_, entries) = &hooks else { panic!("JSON") };
    assert!(json::guards(shared, entries).unwrap().faults[0].contains("at SessionStart nothing"));
    assert!(json::guards(&both, entries).unwrap().faults.is_empty(), "{both}");
    let left = hooks.take_out(&both).unwrap().unwrap();
    assert!(left.contains("./mine.sh") && !left.contains("baton"), "{left}");
}

#[test]
fn a_second_entry_of_ours_goes_and_a_comment_stays() {
    let program = Program { mode: Mode::Team, path: "baton" };
    let hooks = Content::Json(Reader::Strict, claude::hooks(&program));
    let once = put(&hooks, None);
    let group = "{\"hooks\": [{\"command\": \"/x/baton\", \"args\": [\"hook\", \"claude\"]}]},";
    let twice = once.replacen("\"Stop\": [", &format!("\"Stop\": [{group}"), 1);
    assert_eq!(twice.matches("/x/baton").count(), 1, "{twice}");
    let mended = put(&hooks, Some(&twice));
    assert_eq!(mended.matches("hook claude").count(), once.matches("hook claude").count());
    assert!(!mended.contains("/x/baton"), "{mended}");
    let noted = format!("/* why */\n{once}");
    assert!(hooks.take_out(&noted).unwrap().unwrap().starts_with("/* why */"));
}

#[test]
fn what_cannot_be_understood_is_not_touched() {
    let program = Program { mode: Mode::Team, path: "baton" };
    let hooks = Content::Json(Reader::Strict, claude::hooks(&program));
    let server = Content::Json(Reader::Strict, claude::server(&program));
    for bad in [
        "{",
        "[]",
        "{\"hooks\": []}",
        "{\"hooks\": {\"PreToolUse\": {}}}",
        "{} {}",
        "not json",
        "{'hooks': {}}",
        "{\"a\": 1 \"b\": 2}",
        "{\"a\": 1, // mine\n}",
        "{\"a\": 1,}",
        "{\"hooks\": {}, \"hooks\": {}}",
        "{\"hooks\": {\"Stop\": [], \"Stop\": []}}",
    ] {
        assert!(hooks.put(Some(bad)).is_err(), "{bad}");
    }
    for bad in ["{\"mcpServers\": []}", "{\"mcpServers\": {\"baton\": {\"command\": \"x\"}}}"] {
        assert!(server.put(Some(bad)).is_err(), "{bad}");
        assert_eq!(server.take_out(bad).unwrap().as_deref(), Some(bad));
    }
    let own =
        "{\"mcpServers\": {\"baton\": {\"command\": \"/o/baton\", \"args\": [\"mcp\", \"-w\"]}}}";
    assert_eq!(put(&server, Some(own)), own, "the user's own stays");
    assert_eq!(server.take_out(own).unwrap().as_deref(), Some(own));
    assert!(server.has_own_server(own));
    let toml = Content::Toml { program: "baton".into() };
    let own = "[mcp_servers.baton]\ncommand = \"/o/baton\"\nargs = [\"mcp\", \"-w\"]\n";
    assert_eq!(put(&toml, Some(own)), own);
    assert!(toml.has_own_server(own));
    for bad in ["a = ", "mcp_servers = 1", "a = 1\r\nb = 2\n", "[mcp_servers.baton]\ncommand='x'\n"]
    {
        assert!(toml.put(Some(bad)).is_err(), "{bad}");
    }
    let inline = toml.put(Some("mcp_servers = { x = { command = \"y\" } }\n")).unwrap();
    let Put::Text(inline) = inline else { panic!("kept") };
    assert!(inline.starts_with("mcp_servers = { x = { command = \"y\" }"), "{inline}");
    let entry = "baton = { command = \"baton\", args = [\"mcp\"], env_vars = [\"BATON_STORE\", ";
    assert!(inline.contains(entry), "{inline}");
}

/// Comments on our table are the user's, and stay where it stood.
#[test]
fn comments_on_our_table_stay_when_it_goes() {
    let toml = Content::Toml { program: "baton".into() };
    let ours = "[mcp_servers.baton]\ncommand = \"baton\"\nargs = [\"mcp\"]\n";
    let out = |text: &str| toml.take_out(text).unwrap();
    for (text, left) in [
        (ours.to_owned(), None),
        (format!("# mine\n{ours}"), Some("# mine\n")),
        (format!("{ours}# below\n"), Some("# below\n")),
        (format!("a = 1\n\n# one\n\n# two\n{ours}"), Some("a = 1\n\n# one\n\n# two\n")),
        (
            format!("[a]\nx = 1\n\n# mine\n{ours}\n# of b\n[b]\ny = 1\n"),
            Some("[a]\nx = 1\n\n# mine\n\n# of b\n[b]\ny = 1\n"),
        ),
        (
            format!("# all\n[mcp_servers]\n\n# mine\n{ours}"),
            Some("# all\n[mcp_servers]\n\n# mine\n"),
        ),
        (
            "[mcp_servers.baton] # 1\n# 2\ncommand = \"baton\" # 3\nargs = [ # 4\n\"mcp\"]\n"
                .into(),
            Some("# 1\n# 2\n# 3\n# 4\n"),
        ),
    ] {
        assert_eq!(out(&text).as_deref(), left, "{text}");
    }
}

/// Codex passes a server only what is named.
#[test]
fn an_entry_of_an_older_version_is_told_what_the_server_needs() {
    let toml = Content::Toml { program: "baton".into() };
    let fresh = put(&toml, Some(TOML));
    let passed = fresh.lines().find(|line| line.starts_with("env_vars")).unwrap();
    for name in ["BATON_STORE", "BATON_SESSION", "BATON_AGENT", "BATON_BROKER", "BATON_LAUNCHED"] {
        assert!(passed.contains(name), "{passed}");
    }
    assert!(!passed.contains("PERSON"), "{passed}");
    let old = format!("{TOML}\n[mcp_servers.baton]\ncommand = \"baton\"\nargs = [\"mcp\"]\n");
    assert_eq!(put(&toml, Some(&old)), fresh);
    assert_eq!(put(&toml, Some(&fresh)), fresh, "twice is once");
    assert_eq!(toml.take_out(&fresh).unwrap().as_deref(), Some(TOML));
    let own = old + "env_vars = [\"MINE\", { name = \"BATON_STORE\" }]\n";
    let both = put(&toml, Some(&own));
    assert!(both.contains("[\"MINE\", { name = \"BATON_STORE\" }, \"BATON_SESSION\""), "{both}");
    assert_eq!(put(&toml, Some(&both)), both, "twice is once");
}
