//! The MCP server in Codex's `config.toml`: put in and taken out.
//!
//! Owns that one table, `[mcp_servers.baton]`. Comments, order and spacing of the rest stay, line
//! ends too where the file has one kind of them; a file that mixes them is left alone, because the
//! parser would write its lines anew. Comments on the table itself stay as well, where it stood:
//! none is ours. Knows nothing of files.

use toml_edit::{Array, Decor, DocumentMut, Item, Key, RawString, Table, TableLike, Value};

use super::Broken;
use super::command::{self, Server};
use crate::sandbox::BROKER_VARIABLE;
use crate::starting;
use crate::user_config::STORE_VARIABLE;

const SERVERS: &str = "mcp_servers";
const NAME: &str = "baton";
/// Codex starts servers with hardly anything of its own environment, and with what is named here:
/// where the store is, who acts, and the way out of a sandbox. A person's token is not for agents.
const VARIABLES: &str = "env_vars";
const PASSED: [&str; 7] = [
    STORE_VARIABLE,
    "BATON_SESSION",
    "BATON_AGENT",
    starting::VARIABLE,
    BROKER_VARIABLE,
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
];
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// What is around the text that the parser sees.
struct Frame {
    marked: bool,
    windows: bool,
}

fn parse(text: &str) -> Result<(DocumentMut, Frame), Broken> {
    let body = text.strip_prefix(BYTE_ORDER_MARK);
    let marked = body.is_some();
    let body = body.unwrap_or(text);
    let (all, windows) = (body.matches('\n').count(), body.matches("\r\n").count());
    if windows > 0 && windows < all {
        return Err(Broken("it mixes two kinds of line ends".to_owned()));
    }
    let windows = windows > 0;
    let plain = if windows { body.replace("\r\n", "\n") } else { body.to_owned() };
    let document = plain.parse::<DocumentMut>().map_err(|error| {
        let line = error.span().map_or(0, |span| span.start);
        let line = plain.get(..line).map_or(1, |before| before.matches('\n').count() + 1);
        let why = error.message().lines().next().unwrap_or_default().to_owned();
        Broken(format!("not TOML: {why} on line {line}"))
    })?;
    Ok((document, Frame { marked, windows }))
}

fn written(document: &DocumentMut, frame: &Frame) -> String {
    let text = document.to_string();
    let text = if frame.windows { text.replace('\n', "\r\n") } else { text };
    format!("{}{text}", if frame.marked { BYTE_ORDER_MARK } else { "" })
}

/// The text with our server in it.
pub(super) fn put(text: &str, program: &str) -> Result<String, Broken> {
    let (mut document, frame) = parse(text)?;
    let mut fresh = Table::new();
    fresh.set_implicit(true);
    let servers = document.entry(SERVERS).or_insert(Item::Table(fresh));
    let inline = servers.is_inline_table();
    let no_table = || Broken(format!("`{SERVERS}` is not a table"));
    let servers = servers.as_table_like_mut().ok_or_else(no_table)?;
    let arguments: Array = ["mcp"].into_iter().collect();
    match servers.get_mut(NAME) {
        None => {
            let mut server = Table::new();
            server.insert("command", program.into());
            server.insert("args", Item::Value(Value::Array(arguments)));
            pass_variables(&mut server);
            let server = match inline {
                true => Item::Value(Value::InlineTable(server.into_inline_table())),
                false => Item::Table(server),
            };
            servers.insert(NAME, server);
        }
        Some(there) => {
            let other = || Broken(format!("`{SERVERS}.{NAME}` is a server of somebody else"));
            let server = there.as_table_like_mut().ok_or_else(other)?;
            match whose(server) {
                Server::Other => return Err(other()),
                Server::Theirs => {}
                Server::Ours => {
                    if server.get("command").and_then(Item::as_str) != Some(program) {
                        server.insert("command", program.into());
                    }
                    pass_variables(server);
                }
            }
        }
    }
    Ok(written(&document, &frame))
}

/// Whether the user switched our server off.
pub(super) fn is_off(text: &str) -> bool {
    let document = parse(text).ok().map(|(document, _)| document);
    let server = document.as_ref().and_then(|document| document.get(SERVERS)?.get(NAME));
    server.and_then(|server| server.get("enabled")?.as_bool()) == Some(false)
}

/// Names the variables that are not named yet; what a user named stays.
fn pass_variables(server: &mut dyn TableLike) {
    match server.get_mut(VARIABLES).map(Item::as_array_mut) {
        None => {
            let names: Array = PASSED.into_iter().collect();
            server.insert(VARIABLES, Item::Value(Value::Array(names)));
        }
        Some(Some(names)) => {
            for name in PASSED {
                if !names.iter().any(|there| names_variable(there, name)) {
                    names.push(name);
                }
            }
        }
        // Codex would not read it either, and says so.
        Some(None) => {}
    }
}

/// An entry is a name, or a table with one.
fn names_variable(entry: &Value, name: &str) -> bool {
    let named = entry.as_inline_table().and_then(|table| table.get("name"));
    named.unwrap_or(entry).as_str() == Some(name)
}

/// Whether the user starts Baton's server with words of their own.
pub(super) fn has_own_server(text: &str) -> bool {
    let Ok((document, _)) = parse(text) else { return false };
    let server = document.get(SERVERS).and_then(|servers| servers.get(NAME));
    server.and_then(Item::as_table_like).is_some_and(|one| whose(one) == Server::Theirs)
}

fn whose(server: &dyn TableLike) -> Server {
    let Some(program) = server.get("command").and_then(Item::as_str) else { return Server::Other };
    let mut words = vec![program.to_owned()];
    let arguments = server.get("args").and_then(Item::as_array);
    let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
    words.extend(arguments.map(str::to_owned));
    command::server(&words)
}

/// The text without it; nothing if nothing else is in it.
pub(super) fn take_out(text: &str) -> Result<Option<String>, Broken> {
    let (mut document, frame) = parse(text)?;
    let ours = |item: &Item| item.as_table_like().is_some_and(|one| whose(one) == Server::Ours);
    let servers = document.get_mut(SERVERS).and_then(Item::as_table_like_mut);
    let Some(servers) = servers.filter(|servers| servers.get(NAME).is_some_and(ours)) else {
        return Ok(Some(text.to_owned()));
    };
    let position = servers.get(NAME).and_then(Item::as_table).and_then(Table::position);
    let mut kept = comments(servers.key(NAME), servers.get(NAME));
    servers.remove(NAME);
    if servers.is_empty() {
        let above = comments(document.key(SERVERS), document.get(SERVERS));
        let has_header = document.get(SERVERS).and_then(Item::as_table).is_some_and(is_headed);
        // A header with a comment is the user's own: `put` makes none.
        if !has_header || above.is_empty() {
            document.remove(SERVERS);
            kept.insert_str(0, &above);
        }
    }
    leave(&mut document, position, &kept);
    let left = written(&document, &frame);
    Ok((!left.trim_start_matches(BYTE_ORDER_MARK).trim().is_empty()).then_some(left))
}

/// It has a line of its own, above which a comment can stand.
fn is_headed(table: &Table) -> bool {
    !table.is_implicit() && !table.is_dotted()
}

/// The comments on an entry and in it, each on a line, with the empty lines above a table.
fn comments(key: Option<&Key>, item: Option<&Item>) -> String {
    let above = item.and_then(Item::as_table).map_or("", |table| plain(table.decor().prefix()));
    let mut found = Vec::new();
    gather(key, item.unwrap_or(&Item::None), &mut found);
    let lines = found.iter().flat_map(|raw| plain(Some(raw)).lines()).map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| line.starts_with('#')).collect();
    let before = above.lines().map(str::trim).filter(|line| line.starts_with('#')).count();
    let within = lines[before.min(lines.len())..].iter().map(|line| format!("{line}\n"));
    let above = if before > 0 { above } else { "" };
    format!("{above}{}", within.collect::<String>())
}

fn plain(raw: Option<&RawString>) -> &str {
    raw.and_then(RawString::as_str).unwrap_or_default()
}

/// Everything in which a comment can stand; first what is above a table.
fn gather<'a>(key: Option<&'a Key>, item: &'a Item, found: &mut Vec<&'a RawString>) {
    let around = |decor: &'a Decor| decor.prefix().into_iter().chain(decor.suffix());
    match item {
        Item::None => {}
        Item::Table(table) => {
            found.extend(around(table.decor()));
            found.extend(key.into_iter().flat_map(|key| around(key.leaf_decor())));
            for (name, item) in table {
                gather(table.key(name), item, found);
            }
        }
        Item::ArrayOfTables(tables) => {
            for table in tables {
                found.extend(around(table.decor()));
                table.iter().for_each(|(name, item)| gather(table.key(name), item, found));
            }
        }
        Item::Value(value) => {
            found.extend(key.into_iter().flat_map(|key| around(key.leaf_decor())));
            found.extend(around(value.decor()));
            if let Value::Array(array) = value {
                found.extend(array.iter().flat_map(|value| around(value.decor())));
                found.push(array.trailing());
            }
        }
    }
}

/// Puts comments where a table stood: above the next one, or at the end.
fn leave(document: &mut DocumentMut, position: Option<isize>, comments: &str) {
    if comments.is_empty() {
        return;
    }
    let next = position.and_then(|position| first_after(document, position));
    match next.and_then(|next| table_at(document, next)) {
        Some(table) => {
            let there = plain(table.decor().prefix());
            let both = format!("{comments}{there}");
            table.decor_mut().set_prefix(both);
        }
        None => {
            let both = format!("{comments}{}", plain(Some(document.trailing())));
            document.set_trailing(both);
        }
    }
}

fn first_after(table: &Table, position: isize) -> Option<isize> {
    let within = table.iter().flat_map(|(_, item)| match item {
        Item::Table(table) => vec![table],
        Item::ArrayOfTables(tables) => tables.iter().collect(),
        Item::None | Item::Value(_) => Vec::new(),
    });
    let positions = within.flat_map(|table| {
        let own = table.position().filter(|at| *at > position && is_headed(table));
        own.into_iter().chain(first_after(table, position))
    });
    positions.min()
}

fn table_at(table: &mut Table, position: isize) -> Option<&mut Table> {
    let within = table.iter_mut().flat_map(|(_, item)| match item {
        Item::Table(table) => vec![table],
        Item::ArrayOfTables(tables) => tables.iter_mut().collect(),
        Item::None | Item::Value(_) => Vec::new(),
    });
    for table in within {
        if table.position() == Some(position) && is_headed(table) {
            return Some(table);
        }
        if let Some(found) = table_at(table, position) {
            return Some(found);
        }
    }
    None
}
