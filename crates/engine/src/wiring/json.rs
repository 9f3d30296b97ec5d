//! Our entries in a user's JSON file: put in, brought up to date, taken out.
//!
//! Owns the merge. It reads JSON with comments and trailing commas and keeps every byte that is not
//! ours: other keys, their order, comments, indentation, line ends, a byte order mark. It knows
//! nothing of files. Invariant: an entry is ours by what it runs, never by where it stands, so
//! hooks of the user in the same list stay and run too.

mod guards;
mod kinds;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};

pub(super) use guards::{Line, guards};
pub(super) use kinds::Kinds;

use super::Broken;
use super::command::{self, Server};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A value with its keys in the order in which they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Json {
    Text(String),
    Number(u32),
    Flag(bool),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn texts(words: &[&str]) -> Self {
        Self::List(words.iter().map(|word| Self::text(*word)).collect())
    }

    fn input(&self) -> CstInputValue {
        match self {
            Self::Text(text) => CstInputValue::String(text.clone()),
            Self::Number(number) => CstInputValue::Number(number.to_string()),
            Self::Flag(flag) => CstInputValue::Bool(*flag),
            Self::List(list) => CstInputValue::Array(list.iter().map(Self::input).collect()),
            Self::Object(fields) => CstInputValue::Object(
                fields.iter().map(|(name, value)| ((*name).to_owned(), value.input())).collect(),
            ),
        }
    }

    /// Whether the node says the same, in whatever form.
    fn is(&self, node: &CstNode) -> bool {
        match self {
            Self::Text(text) => text_of(node).as_deref() == Some(text),
            Self::Number(number) => {
                node.as_number_lit().is_some_and(|found| found.to_string() == number.to_string())
            }
            Self::Flag(flag) => node.as_boolean_lit().is_some_and(|found| found.value() == *flag),
            Self::List(list) => node.as_array().is_some_and(|found| {
                let found = found.elements();
                found.len() == list.len() && list.iter().zip(&found).all(|(one, two)| one.is(two))
            }),
            Self::Object(fields) => node.as_object().is_some_and(|found| {
                let there = |(name, value): &(&str, Self)| {
                    let found = found.get(name).and_then(|found| found.value());
                    found.is_some_and(|found| value.is(&found))
                };
                found.properties().len() == fields.len() && fields.iter().all(there)
            }),
        }
    }
}

/// One thing of ours in such a file.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// A value that a new file begins with; it goes only with the whole file.
    Given { key: &'static str, value: Json },
    /// The key `baton` in an object of servers, with the fields that are ours.
    Server { list: &'static str, fields: Vec<(&'static str, Json)> },
    /// A hook on an event: in a group with a matcher, or directly in the event's list.
    Hook(Hook),
}

#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) client: &'static str,
    pub(super) event: &'static str,
    pub(super) matcher: Option<&'static str>,
    pub(super) grouped: bool,
    pub(super) fields: Vec<(&'static str, Json)>,
}

/// How a client reads a file of its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// Comments and trailing commas pass.
    Lenient,
    /// The same, but no byte order mark.
    Unmarked,
    /// Plain JSON: where it is anything else, nothing of the file counts.
    Strict,
    /// The same, and one value of another kind is as bad.
    Typed(Kinds),
    /// The same without a byte order mark, and with no other keys than these.
    Closed(&'static [&'static str], Kinds),
}

/// Whether the client can read it at all.
pub(super) fn readable(text: &str, reader: Reader) -> Result<(), Broken> {
    let unmarked = matches!(reader, Reader::Unmarked | Reader::Closed(..));
    if unmarked && text.starts_with(BYTE_ORDER_MARK) {
        return Err(Broken(
            "it begins with a byte order mark, with which its client reads nothing of it: save it \
             as UTF-8 without one"
                .to_owned(),
        ));
    }
    let (keys, kinds) = match reader {
        Reader::Lenient | Reader::Unmarked => return Ok(()),
        Reader::Strict => (None, None),
        Reader::Typed(kinds) => (None, Some(kinds)),
        Reader::Closed(keys, kinds) => (Some(keys), Some(kinds)),
    };
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(());
    }
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        Broken(format!("its client reads JSON without comments or trailing commas: {error}"))
    })?;
    let object = value.as_object().into_iter().flatten();
    let other = object
        .map(|(name, _)| name)
        .find(|name| keys.is_some_and(|keys| !keys.contains(&name.as_str())));
    if let Some(name) = other {
        return Err(Broken(format!("its client takes no file with `{name}` in it")));
    }
    match kinds.and_then(|kinds| kinds::fault(&value, kinds)) {
        Some(fault) => Err(Broken(format!("{fault}, so its client reads nothing of this file"))),
        None => Ok(()),
    }
}

/// The fields that an older entry of ours may have had.
const RETIRED: [&str; 1] = ["args"];
/// Fields by which a client runs a hook beside its work, only sometimes, or not at all.
const HARMFUL: [&str; 6] = ["async", "asyncRewake", "disabled", "enabled", "if", "shell"];

fn parse(text: &str) -> Result<(CstRootNode, bool), Broken> {
    let body = text.strip_prefix(BYTE_ORDER_MARK);
    let options = ParseOptions {
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_loose_object_property_names: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
        ..ParseOptions::default()
    };
    let root = CstRootNode::parse(body.unwrap_or(text), &options)
        .map_err(|error| Broken(format!("not JSON: {error}")))?;
    let top = root.object_value();
    let hooks = top.as_ref().and_then(|top| top.object_value("hooks"));
    // A client takes one of the two, and it may not be ours.
    match top.iter().chain(&hooks).find_map(doubled) {
        Some(name) => Err(Broken(format!("`{name}` stands in it twice"))),
        None => Ok((root, body.is_some())),
    }
}

fn doubled(object: &CstObject) -> Option<String> {
    let mut names: Vec<String> =
        object.properties().iter().filter_map(|one| one.decoded_name()).collect();
    names.sort();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

/// What is said at a place, as far as it is plain JSON.
pub(super) fn value_at(text: &str, place: &[&str]) -> Option<serde_json::Value> {
    let (root, _) = parse(text).ok()?;
    let (last, folders) = place.split_last()?;
    let mut object = root.object_value()?;
    for name in folders {
        object = object.object_value(name)?;
    }
    let value = object.get(last)?.value()?;
    serde_json::from_str(&value.to_string()).ok()
}

fn written(root: &CstRootNode, marked: bool) -> String {
    format!("{}{root}", if marked { BYTE_ORDER_MARK } else { "" })
}

/// The text with all entries in it, as they should be.
pub(super) fn put(text: &str, entries: &[Entry]) -> Result<String, Broken> {
    let (root, marked) = parse(text)?;
    let top = root.object_value_or_create().ok_or_else(|| wrong("the file", "an object"))?;
    let new = top.properties().is_empty();
    for entry in entries {
        match entry {
            Entry::Given { key, value } => {
                if new {
                    top.append(key, value.input());
                }
            }
            Entry::Server { list, fields } => put_server(&top, list, fields)?,
            Entry::Hook(hook) => put_hook(&top, hook)?,
        }
    }
    Ok(written(&root, marked))
}

fn wrong(what: &str, expected: &str) -> Broken {
    Broken(format!("{what} is not {expected}"))
}

fn put_server(
    top: &CstObject,
    list: &'static str,
    fields: &[(&'static str, Json)],
) -> Result<(), Broken> {
    let servers =
        top.object_value_or_create(list).ok_or_else(|| wrong(&format!("`{list}`"), "an object"))?;
    let Some(there) = servers.get("baton") else {
        servers.append("baton", Json::Object(fields.to_vec()).input());
        return Ok(());
    };
    let server = there.object_value();
    match server.as_ref().map(|server| command::server(&words_of(server))) {
        Some(Server::Ours) => server.iter().for_each(|server| set_fields(server, fields)),
        Some(Server::Theirs) => {}
        _ => return Err(Broken(format!("`{list}.baton` is a server of somebody else"))),
    }
    Ok(())
}

/// Whether the user starts Baton's server with words of their own.
pub(super) fn has_own_server(text: &str, entries: &[Entry]) -> bool {
    let Some(top) = parse(text).ok().and_then(|(root, _)| root.object_value()) else {
        return false;
    };
    entries.iter().any(|entry| match entry {
        Entry::Server { list, .. } => {
            let there = top.object_value(list).and_then(|list| list.object_value("baton"));
            there.is_some_and(|there| command::server(&words_of(&there)) == Server::Theirs)
        }
        _ => false,
    })
}

/// What a server is started with.
fn words_of(server: &CstObject) -> Vec<String> {
    let value = |name| server.get(name).and_then(|found| found.value());
    let Some(command) = value("command") else { return Vec::new() };
    match (text_of(&command), command.as_array()) {
        (Some(program), _) => {
            let arguments = value("args").and_then(|found| found.as_array());
            let mut words = vec![program];
            words.extend(arguments.iter().flat_map(texts_in));
            words
        }
        (None, Some(list)) => texts_in(&list),
        (None, None) => Vec::new(),
    }
}

fn set_fields(object: &CstObject, fields: &[(&'static str, Json)]) {
    for (name, value) in fields {
        set_field(object, name, value);
    }
    for name in RETIRED.iter().filter(|name| fields.iter().all(|(ours, _)| ours != *name)) {
        if let Some(there) = object.get(name) {
            there.remove();
        }
    }
}

fn set_field(object: &CstObject, name: &str, value: &Json) {
    match object.get(name) {
        None => {
            object.append(name, value.input());
        }
        Some(there) => {
            if !there.value().is_some_and(|there| value.is(&there)) {
                there.set_value(value.input());
            }
        }
    }
}

fn put_hook(top: &CstObject, hook: &Hook) -> Result<(), Broken> {
    let hooks = top.object_value_or_create("hooks").ok_or_else(|| wrong("`hooks`", "an object"))?;
    let event = format!("`hooks.{}`", hook.event);
    let list = hooks.array_value_or_create(hook.event).ok_or_else(|| wrong(&event, "a list"))?;
    let mut ours = ours_in(&list, hook.client).into_iter();
    let Some(seat) = ours.next() else {
        list.append(whole(hook).input());
        return Ok(());
    };
    set_fields(&seat.hook, &hook.fields);
    for there in HARMFUL.iter().filter_map(|name| seat.hook.get(name)) {
        there.remove();
    }
    let holder = seat.group.as_ref().unwrap_or(&seat.hook);
    let alone = seat.group.as_ref().is_none_or(|group| hooks_of(group).len() == 1);
    match (hook.matcher, holder.get("matcher")) {
        // A group of the user's with a matcher of its own: ours needs another.
        _ if !alone && guards::matcher_fault(holder, hook).is_some() => {
            seat.hook.clone().remove();
            list.append(whole(hook).input());
        }
        (Some(matcher), _) if alone => {
            set_field(holder, "matcher", &Json::text(matcher));
        }
        (None, Some(there)) if alone => there.remove(),
        _ => {}
    }
    // One is enough: a second one would be asked the same at every call.
    for more in ours {
        more.remove();
    }
    Ok(())
}

/// What is written where there is nothing of ours yet.
fn whole(hook: &Hook) -> Json {
    let matcher = hook.matcher.map(|matcher| ("matcher", Json::text(matcher)));
    if !hook.grouped {
        let mut fields = hook.fields.clone();
        fields.extend(matcher);
        return Json::Object(fields);
    }
    let mut group: Vec<_> = matcher.into_iter().collect();
    group.push(("hooks", Json::List(vec![Json::Object(hook.fields.clone())])));
    Json::Object(group)
}

/// A hook of ours, and the group it stands in if there is one.
struct Seat {
    group: Option<CstObject>,
    hook: CstObject,
}

impl Seat {
    /// Takes the hook out, and its group if nothing else is in it.
    fn remove(self) {
        match self.group {
            Some(group) if hooks_of(&group).len() == 1 => group.remove(),
            _ => self.hook.remove(),
        }
    }
}

fn hooks_of(group: &CstObject) -> Vec<CstNode> {
    group.array_value("hooks").map(|hooks| hooks.elements()).unwrap_or_default()
}

fn ours_in(list: &CstArray, client: &str) -> Vec<Seat> {
    let ours = |seat: &Seat| {
        let (line, arguments) = line_of(&seat.hook);
        command::is_hook(&line, arguments.as_deref(), client)
    };
    seats_in(list).into_iter().filter(ours).collect()
}

/// Whether a hook in this list calls Baton among words of the user's own.
fn is_called_in(list: &CstArray, client: &str) -> bool {
    let calls = |seat: &Seat| command::calls(&line_of(&seat.hook).0, client);
    seats_in(list).iter().any(calls)
}

/// Whether such a hook is anywhere in the text.
pub(super) fn calls_baton(text: &str, entries: &[Entry]) -> bool {
    let top = parse(text).ok().and_then(|(root, _)| root.object_value());
    let Some(hooks) = top.and_then(|top| top.object_value("hooks")) else { return false };
    entries.iter().any(|entry| match entry {
        Entry::Hook(hook) => {
            hooks.array_value(hook.event).is_some_and(|list| is_called_in(&list, hook.client))
        }
        _ => false,
    })
}

/// Every hook of an event, in a group or by itself.
fn seats_in(list: &CstArray) -> Vec<Seat> {
    let mut seats = Vec::new();
    for element in list.elements().iter().filter_map(CstNode::as_object) {
        for hook in hooks_of(&element).iter().filter_map(CstNode::as_object) {
            seats.push(Seat { group: Some(element.clone()), hook });
        }
        if element.get("command").is_some() {
            seats.push(Seat { group: None, hook: element });
        }
    }
    seats
}

/// What a hook runs, and its arguments where they stand apart.
fn line_of(hook: &CstObject) -> (String, Option<Vec<String>>) {
    let value = |name| hook.get(name).and_then(|found| found.value());
    let line = value("command").and_then(|found| text_of(&found)).unwrap_or_default();
    let arguments = value("args").and_then(|found| found.as_array());
    (line, arguments.map(|list| texts_in(&list)))
}

fn text_of(node: &CstNode) -> Option<String> {
    node.as_string_lit()?.decoded_value().ok()
}

fn texts_in(list: &CstArray) -> Vec<String> {
    list.elements().iter().filter_map(text_of).collect()
}

/// The text without anything of ours; nothing if nothing else is in it. A text without entries of
/// ours comes back as it is.
pub(super) fn take_out(text: &str, entries: &[Entry]) -> Result<Option<String>, Broken> {
    let (root, marked) = parse(text)?;
    let Some(top) = root.object_value() else { return Ok(Some(text.to_owned())) };
    let mut found = false;
    for entry in entries {
        found |= match entry {
            Entry::Given { .. } => false,
            Entry::Server { list, .. } => take_server(&top, list),
            Entry::Hook(hook) => take_hooks(&top, hook.client),
        };
    }
    let given = |name: &str| {
        let value = top.get(name).and_then(|found| found.value());
        entries.iter().any(|entry| match entry {
            Entry::Given { key, value: ours } => {
                *key == name && value.as_ref().is_some_and(|value| ours.is(value))
            }
            _ => false,
        })
    };
    let names = top.properties().into_iter().filter_map(|one| one.decoded_name());
    let empty = names.into_iter().all(|name| given(&name)) && !has_comment(&root);
    Ok(match (found, empty) {
        (true, true) => None,
        (true, false) => Some(written(&root, marked)),
        (false, _) => Some(text.to_owned()),
    })
}

fn has_comment(root: &CstRootNode) -> bool {
    let mut open: Vec<CstNode> = root.children();
    while let Some(node) = open.pop() {
        if node.is_comment() {
            return true;
        }
        open.extend(node.children());
    }
    false
}

fn take_server(top: &CstObject, list: &str) -> bool {
    let Some(servers) = top.object_value(list) else { return false };
    let Some(there) = servers.get("baton") else { return false };
    let ours = |server: CstObject| command::server(&words_of(&server)) == Server::Ours;
    if !there.object_value().is_some_and(ours) {
        return false;
    }
    there.remove();
    drop_if_empty(top, list);
    true
}

/// Every hook of ours, also on events that only an older Baton asked for.
fn take_hooks(top: &CstObject, client: &str) -> bool {
    let Some(hooks) = top.object_value("hooks") else { return false };
    let mut found = false;
    for event in hooks.properties() {
        let Some(list) = event.array_value() else { continue };
        let ours = ours_in(&list, client);
        if ours.is_empty() {
            continue;
        }
        found = true;
        for seat in ours {
            seat.remove();
        }
        if list.elements().is_empty() {
            event.remove();
        }
    }
    if found {
        drop_if_empty(top, "hooks");
    }
    found
}

fn drop_if_empty(top: &CstObject, name: &str) {
    if let Some(there) = top.get(name)
        && there.object_value().is_some_and(|object| object.properties().is_empty())
    {
        there.remove();
    }
}
