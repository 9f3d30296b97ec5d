//! Routes of web frameworks: a method and a path that must not be there twice.
//!
//! Owns how they are written: calls with a handler, decorators, annotations and attributes. A call
//! of a client that fetches such a path is no route.

use tree_sitter::Node;

use super::reading::{Reader, Tongue};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// `GET /users`; `*` where no method is said.
    pub(super) name: String,
    pub(super) line: usize,
}

const METHODS: &[&str] = &["get", "post", "put", "delete", "patch", "head", "options"];
/// Those that say nothing of the method.
const ANY: &[&str] = &["route", "handle", "handlefunc", "all", "any", "use"];
/// Whatever is called on these asks for a path and offers none.
const CLIENTS: &[&str] =
    &["axios", "client", "http_client", "requests", "session", "request", "self"];

pub(super) fn read(reader: &Reader<'_>, node: Node<'_>, into: &mut Vec<Route>) {
    let route = match node.kind() {
        "call_expression" | "call" => of_call(reader, node),
        "attribute_item" => of_attribute(reader.text(node)),
        "annotation" => of_annotation(reader.text(node)),
        _ => None,
    };
    into.extend(route.map(|name| Route { name, line: node.start_position().row + 1 }));
}

/// `app.get("/x", handler)`, `@app.route("/x")`, `mux.HandleFunc("/x", handler)`.
fn of_call(reader: &Reader<'_>, node: Node<'_>) -> Option<String> {
    let function = reader.text(node.child_by_field_name("function")?);
    let (on, verb) = function.rsplit_once('.')?;
    let verb = verb.to_lowercase();
    let known = METHODS.contains(&verb.as_str()) || ANY.contains(&verb.as_str());
    let client = CLIENTS.contains(&on.rsplit('.').next().unwrap_or(on));
    if !known || client {
        return None;
    }
    let list = node.child_by_field_name("arguments")?;
    let mut cursor = list.walk();
    let arguments: Vec<Node<'_>> = list.named_children(&mut cursor).collect();
    let decorator = node.parent().is_some_and(|parent| parent.kind() == "decorator");
    if arguments.len() < 2 && !decorator {
        return None;
    }
    let literal = literal(reader.text(*arguments.first()?))?;
    let mut method =
        if METHODS.contains(&verb.as_str()) { verb.to_uppercase() } else { "*".into() };
    let rest: Vec<&str> = arguments[1..].iter().map(|node| reader.text(*node)).collect();
    if method == "*" {
        method = said_method(&rest.join(" "), reader.tongue).unwrap_or(method);
    }
    // Since Go 1.22 the method may stand in the pattern.
    match literal.split_once(' ') {
        Some((said, path)) if path.starts_with('/') => Some(format!("{said} {path}")),
        _ => literal.starts_with('/').then(|| format!("{method} {literal}")),
    }
}

/// `methods=["POST"]` of Flask, `post(handler)` of axum.
fn said_method(text: &str, tongue: Tongue) -> Option<String> {
    let lower = text.to_lowercase();
    let said = METHODS.iter().find(|method| match tongue {
        Tongue::Rust => {
            lower.starts_with(&format!("{method}(")) || lower.contains(&format!("::{method}("))
        }
        Tongue::Python => lower.contains("methods") && lower.contains(*method),
        _ => false,
    });
    said.map(|method| method.to_uppercase())
}

/// `#[get("/x")]`.
fn of_attribute(text: &str) -> Option<String> {
    let inner = text.strip_prefix("#[")?.strip_suffix(']')?;
    let (verb, rest) = inner.split_once('(')?;
    let verb = verb.rsplit("::").next()?.trim();
    let path = literal(rest.trim_end_matches(')').split(',').next()?.trim())?;
    let known = METHODS.contains(&verb) && path.starts_with('/');
    known.then(|| format!("{} {path}", verb.to_uppercase()))
}

/// `@GetMapping("/x")`, `@RequestMapping(path = "/x")`.
fn of_annotation(text: &str) -> Option<String> {
    let (name, rest) = text.strip_prefix('@')?.split_once('(')?;
    let verb = name.strip_suffix("Mapping")?.to_uppercase();
    let from = rest.find('"')?;
    let path = rest[from + 1..].split('"').next()?;
    let method = if verb == "REQUEST" { "*" } else { verb.as_str() };
    Some(format!("{method} {path}"))
}

fn literal(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    text.strip_prefix(quote)?.strip_suffix(quote)
}
