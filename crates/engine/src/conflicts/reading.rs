//! What is in a source file: functions with their parameters and bodies, calls, and routes.
//!
//! Owns the parsers. Half-finished code is read as far as it can be. It knows no trees and no git:
//! a text goes in, a list of what is in it comes out. Invariant: a file in a language that is not
//! known here has nothing in it, so nothing is ever said of it.

use tree_sitter::{Language, Node, Parser};

use super::outside::Outside;
use super::routes::{self, Route};

/// How deep a file may be nested; what lies deeper is not read.
const DEPTH_MAX: usize = 400;
/// Functions with fewer tokens are too common to be a copy of each other.
pub(super) const BODY_TOKENS_MIN: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tongue {
    Rust,
    Python,
    TypeScript,
    Tsx,
    Go,
    Java,
}

impl Tongue {
    pub(super) fn of(path: &str) -> Option<Self> {
        let extension = path.rsplit('/').next()?.rsplit_once('.')?.1;
        Some(match extension {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" | "jsx" | "js" | "mjs" | "cjs" => Self::Tsx,
            "go" => Self::Go,
            "java" => Self::Java,
            _ => return None,
        })
    }

    fn language(self) -> Language {
        match self {
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::Java => tree_sitter_java::LANGUAGE.into(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// As written, without spaces; empty where the language or the author says nothing.
    pub(super) kind: String,
    pub(super) optional: bool,
    /// Takes any number of arguments.
    pub(super) rest: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// The class, type, module or function around it, outermost first.
    pub(super) container: Vec<String>,
    pub(super) parameters: Vec<Parameter>,
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) last_line: usize,
    /// Its tokens without names of variables, for telling copies.
    pub(super) shape: Vec<u64>,
    /// Everything in it, for telling whether two are the same.
    pub(super) body: u64,
    /// There is nothing in it that does anything.
    pub(super) empty: bool,
    /// Only declared, as in a trait or an interface.
    pub(super) declared: bool,
    /// It can be used from outside the file.
    pub(super) outside: bool,
}

impl Function {
    /// `Type::name`, `name`.
    pub(super) fn symbol(&self) -> String {
        match self.container.last() {
            Some(container) => format!("{container}.{}", self.name),
            None => self.name.clone(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) name: String,
    /// What stands before the name: `x` of `x.f()`, `T` of `T::f()`.
    pub(super) on: Option<String>,
    /// Written with a dot, so `on` is a value or a module and no type.
    pub(super) dotted: bool,
    pub(super) arguments: usize,
    /// Names of arguments that are given by name.
    pub(super) named: Vec<String>,
    pub(super) line: usize,
    pub(super) container: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    pub(super) functions: Vec<Function>,
    pub(super) calls: Vec<Called>,
    pub(super) routes: Vec<Route>,
}

pub(super) fn read(path: &str, text: &str) -> Reading {
    let mut reading = Reading::default();
    let Some(tongue) = Tongue::of(path) else { return reading };
    let mut parser = Parser::new();
    if parser.set_language(&tongue.language()).is_err() {
        return reading;
    }
    let Some(tree) = parser.parse(text, None) else { return reading };
    let mut reader = Reader { text, tongue, outside: Outside::default() };
    reader.outside = Outside::of(&reader, tree.root_node());
    reader.walk(tree.root_node(), &mut Vec::new(), 0, &mut reading);
    reading
}

pub(super) struct Reader<'t> {
    text: &'t str,
    pub(super) tongue: Tongue,
    outside: Outside,
}

impl<'t> Reader<'t> {
    pub(super) fn text(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn field(&self, node: Node<'_>, name: &str) -> Option<&'t str> {
        node.child_by_field_name(name).map(|child| self.text(child))
    }

    fn walk(&self, node: Node<'_>, around: &mut Vec<String>, depth: usize, into: &mut Reading) {
        if depth > DEPTH_MAX {
            return;
        }
        if let Some(function) = self.function(node, around) {
            into.functions.push(function);
        }
        if let Some(called) = self.called(node, around) {
            into.calls.push(called);
        }
        routes::read(self, node, &mut into.routes);
        let name = self.container(node);
        let inside = name.is_some();
        around.extend(name);
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for child in children {
            self.walk(child, around, depth + 1, into);
        }
        if inside {
            around.pop();
        }
    }

    /// The name that things within this node are known by.
    fn container(&self, node: Node<'_>) -> Option<String> {
        let name = match node.kind() {
            "impl_item" => self.field(node, "type")?,
            "trait_item"
            | "mod_item"
            | "class_definition"
            | "class_declaration"
            | "abstract_class_declaration"
            | "interface_declaration"
            | "enum_declaration"
            | "record_declaration" => self.field(node, "name")?,
            _ => return self.named(node).map(|(name, _)| name.to_owned()),
        };
        Some(plain(name).to_owned())
    }

    /// The name of a function, and the node that has its parameters and body.
    fn named<'n>(&self, node: Node<'n>) -> Option<(&'t str, Node<'n>)> {
        match node.kind() {
            "function_item"
            | "function_signature_item"
            | "function_definition"
            | "function_declaration"
            | "generator_function_declaration"
            | "method_definition"
            | "method_declaration"
            | "constructor_declaration" => Some((self.field(node, "name")?, node)),
            "variable_declarator" | "public_field_definition" | "pair" => {
                let value = node.child_by_field_name("value")?;
                let is = matches!(
                    value.kind(),
                    "arrow_function" | "function_expression" | "generator_function"
                );
                let key = if node.kind() == "pair" { "key" } else { "name" };
                is.then_some((self.field(node, key)?, value))
            }
            _ => None,
        }
    }

    fn function(&self, node: Node<'_>, around: &[String]) -> Option<Function> {
        let (name, inner) = self.named(node)?;
        let mut container = around.to_vec();
        if let Some(receiver) = node.child_by_field_name("receiver") {
            container = vec![plain(self.receiver(receiver)?).to_owned()];
        }
        let body = inner.child_by_field_name("body");
        let mut shape = Vec::new();
        let mut all = blake3::Hasher::new();
        if let Some(body) = body {
            self.tokens(body, 0, &mut |kind, text, called| {
                let is_variable = kind == "identifier" && !called;
                shape.push(hash(if is_variable { "i" } else { text }));
                all.update(text.as_bytes()).update(&[0]);
            });
        }
        let body_hash = u64::from_le_bytes(first_eight(all.finalize().as_bytes()));
        Some(Function {
            name: name.to_owned(),
            container,
            parameters: self.parameters(inner),
            line: node.start_position().row + 1,
            last_line: node.end_position().row + 1,
            empty: body.is_some_and(|body| self.is_empty(body)),
            declared: body.is_none(),
            outside: self.outside.has(self, node, name),
            shape,
            body: body_hash,
        })
    }

    /// The type of a Go method's receiver.
    fn receiver(&self, list: Node<'_>) -> Option<&'t str> {
        let text = self.text(list).trim_matches(['(', ')']);
        text.rsplit([' ', '*']).next()
    }

    /// Every token below a node but comments, and whether it is the name of a call.
    fn tokens(&self, node: Node<'_>, depth: usize, tell: &mut dyn FnMut(&str, &str, bool)) {
        if node.kind().contains("comment") || depth > DEPTH_MAX {
            return;
        }
        if node.child_count() == 0 {
            let text = self.text(node).trim();
            if !text.is_empty() && !matches!(text, ";" | ",") {
                let next = self.text.get(node.end_byte()..).unwrap_or_default();
                tell(node.kind(), text, next.trim_start().starts_with('('));
            }
            return;
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor).collect::<Vec<_>>() {
            self.tokens(child, depth + 1, tell);
        }
    }

    /// Nothing but comments, a docstring, `pass`, `todo!()` and the like.
    fn is_empty(&self, body: Node<'_>) -> bool {
        let mut words = Vec::new();
        self.tokens(body, 0, &mut |_, text, _| words.push(text.to_owned()));
        let text: String = words.join("").trim_matches(['{', '}']).to_owned();
        let docstring = self.tongue == Tongue::Python
            && text.starts_with(['"', '\''])
            && body.named_child_count() == 1;
        docstring
            || matches!(
                text.as_str(),
                "" | "pass"
                    | "..."
                    | "todo!()"
                    | "unimplemented!()"
                    | "raiseNotImplementedError"
                    | "raiseNotImplementedError()"
                    | "return"
                    | "panic(\"notimplemented\")"
            )
    }

    fn parameters(&self, function: Node<'_>) -> Vec<Parameter> {
        if let Some(one) = function.child_by_field_name("parameter") {
            let name = self.text(one).to_owned();
            return vec![Parameter { name, ..Parameter::default() }];
        }
        let Some(list) = function.child_by_field_name("parameters") else { return Vec::new() };
        let mut cursor = list.walk();
        let mut all = Vec::new();
        for node in list.named_children(&mut cursor) {
            if node.kind().contains("comment") || node.kind() == "self_parameter" {
                continue;
            }
            let count = match self.tongue {
                // `a, b int` is one node with two names.
                Tongue::Go => {
                    let mut inner = node.walk();
                    node.children_by_field_name("name", &mut inner).count().max(1)
                }
                _ => 1,
            };
            let parameter = self.parameter(node);
            all.extend(std::iter::repeat_n(parameter, count));
        }
        let own = matches!(self.tongue, Tongue::Python)
            && all.first().is_some_and(|first| matches!(first.name.as_str(), "self" | "cls"));
        if own {
            all.remove(0);
        }
        all
    }

    fn parameter(&self, node: Node<'_>) -> Parameter {
        let named = ["name", "pattern"].iter().find_map(|field| self.field(node, field));
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = self.text(node);
        let name = named.unwrap_or(text);
        let name = name.split([':', '=']).next().unwrap_or_default();
        let kind = self.field(node, "type").map(squeezed).unwrap_or_default();
        let rest = text.starts_with('*')
            || text.starts_with("...")
            || node.kind().starts_with("variadic")
            || node.kind() == "spread_parameter";
        let optional = node.child_by_field_name("value").is_some()
            || node.kind() == "optional_parameter"
            || node.kind().contains("default");
        let name = name.trim_start_matches(['*', '.']).trim().to_owned();
        Parameter { name, kind, optional, rest }
    }

    fn called(&self, node: Node<'_>, around: &[String]) -> Option<Called> {
        let (name, on, dotted) = match node.kind() {
            "call_expression" | "call" => self.callee(node.child_by_field_name("function")?)?,
            "method_invocation" => (self.field(node, "name")?, self.field(node, "object"), true),
            "new_expression" => (self.field(node, "constructor")?, None, false),
            "object_creation_expression" => (plain(self.field(node, "type")?), None, false),
            _ => return None,
        };
        let list = node.child_by_field_name("arguments")?;
        let mut cursor = list.walk();
        let arguments: Vec<Node<'_>> = list
            .named_children(&mut cursor)
            .filter(|node| !node.kind().contains("comment"))
            .collect();
        let named = arguments
            .iter()
            .filter(|node| node.kind() == "keyword_argument")
            .filter_map(|node| self.field(*node, "name").map(str::to_owned));
        Some(Called {
            name: name.to_owned(),
            on: on.map(|on| plain(on.rsplit(['.', ':']).next().unwrap_or(on)).to_owned()),
            dotted,
            arguments: arguments.len(),
            named: named.collect(),
            line: node.start_position().row + 1,
            container: around.to_vec(),
        })
    }

    /// The last name of what is called, and what it is called on.
    fn callee(&self, node: Node<'_>) -> Option<(&'t str, Option<&'t str>, bool)> {
        match node.kind() {
            "identifier" => Some((self.text(node), None, false)),
            "scoped_identifier" => {
                Some((self.field(node, "name")?, self.field(node, "path"), false))
            }
            "generic_function" => self.callee(node.child_by_field_name("function")?),
            "field_expression" => {
                Some((self.field(node, "field")?, self.field(node, "value"), true))
            }
            "attribute" => Some((self.field(node, "attribute")?, self.field(node, "object"), true)),
            "member_expression" => {
                Some((self.field(node, "property")?, self.field(node, "object"), true))
            }
            "selector_expression" => {
                Some((self.field(node, "field")?, self.field(node, "operand"), true))
            }
            _ => None,
        }
    }
}

/// A type without its parameters: `Vec` of `Vec<T>`.
fn plain(name: &str) -> &str {
    name.split(['<', '[']).next().unwrap_or(name).trim_start_matches(['&', '*']).trim()
}

fn hash(text: &str) -> u64 {
    // FNV: quick, and the same in every run.
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn first_eight(bytes: &[u8; 32]) -> [u8; 8] {
    let mut first = [0; 8];
    first.copy_from_slice(&bytes[..8]);
    first
}
