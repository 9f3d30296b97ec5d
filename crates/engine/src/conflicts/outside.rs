//! Which functions of a file can be used from outside of it.
//!
//! Owns what each language says about that: `pub`, `export`, a capital letter, `private`, a leading
//! underscore. Invariant: where nothing is said, or it cannot be told, a function can be used:
//! rather one too many is told to those who build on a file than one too few.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::reading::{Reader, Tongue};

/// What a file lets out by name.
#[derive(Debug, Default)]
pub(super) struct Outside {
    /// Names in its `export` statements; nothing where there is no such statement at all.
    exported: Option<BTreeSet<String>>,
}

impl Outside {
    pub(super) fn of(reader: &Reader<'_>, root: Node<'_>) -> Self {
        if !matches!(reader.tongue, Tongue::TypeScript | Tongue::Tsx) {
            return Self::default();
        }
        let mut cursor = root.walk();
        let statements: Vec<Node<'_>> =
            root.named_children(&mut cursor).filter(|node| node.kind() == EXPORT).collect();
        if statements.is_empty() {
            return Self::default();
        }
        let mut names = BTreeSet::new();
        for statement in statements {
            specified(reader, statement, &mut names);
        }
        Self { exported: Some(names) }
    }

    /// Can a function of this name, which stands at this node, be used from outside?
    pub(super) fn has(&self, reader: &Reader<'_>, node: Node<'_>, name: &str) -> bool {
        match reader.tongue {
            Tongue::Rust => rust(reader, node),
            Tongue::Python => python(reader, node, name),
            Tongue::TypeScript | Tongue::Tsx => self.script(reader, node, name),
            Tongue::Go => name.chars().next().is_none_or(char::is_uppercase),
            Tongue::Java => java(reader, node),
        }
    }

    fn script(&self, reader: &Reader<'_>, node: Node<'_>, name: &str) -> bool {
        let Some(exported) = &self.exported else { return true };
        if name.starts_with('#') || says(reader, node, "accessibility_modifier", "private") {
            return false;
        }
        let member = !matches!(
            node.kind(),
            "function_declaration" | "generator_function_declaration" | "variable_declarator"
        );
        let mut top = node;
        for around in above(node) {
            match around.kind() {
                EXPORT => return true,
                // A member of what a function gives back can be used; a name within it cannot.
                kind if is_function(kind) && !member => return false,
                "variable_declarator"
                | "class_declaration"
                | "abstract_class_declaration"
                | "function_declaration" => top = around,
                _ => {}
            }
        }
        // What stands in no declaration has no name that could be let out.
        let name = top.child_by_field_name("name").map(|name| reader.text(name));
        name.is_none_or(|name| exported.contains(name))
    }
}

const EXPORT: &str = "export_statement";

/// `export { a, b as c }`, `export default a`, `export = a`.
fn specified(reader: &Reader<'_>, statement: Node<'_>, names: &mut BTreeSet<String>) {
    let mut cursor = statement.walk();
    for child in statement.named_children(&mut cursor) {
        match child.kind() {
            "identifier" => {
                names.insert(reader.text(child).to_owned());
            }
            "export_clause" => {
                let mut inner = child.walk();
                let each = child.named_children(&mut inner);
                let named = each.filter_map(|one| one.child_by_field_name("name"));
                names.extend(named.map(|name| reader.text(name).to_owned()));
            }
            _ => {}
        }
    }
}

/// Everything around a node, from the inside out.
fn above(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    std::iter::successors(node.parent(), Node::parent)
}

fn is_function(kind: &str) -> bool {
    matches!(
        kind,
        "function_declaration"
            | "generator_function_declaration"
            | "function_expression"
            | "generator_function"
            | "arrow_function"
            | "method_definition"
            | "function_definition"
            | "function_item"
    )
}

/// Is there a child of this kind with this word?
fn says(reader: &Reader<'_>, node: Node<'_>, kind: &str, word: &str) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor).any(|child| {
        child.kind() == kind && reader.text(child).split_whitespace().any(|w| w == word)
    })
}

fn rust(reader: &Reader<'_>, node: Node<'_>) -> bool {
    if is_public(reader, node) || says(reader, node, "function_modifiers", "extern") {
        return true;
    }
    for around in above(node) {
        match around.kind() {
            "function_item" => return false,
            // Whoever can use the trait can use what is in it.
            "trait_item" => return is_public(reader, around),
            "impl_item" => return around.child_by_field_name("trait").is_some(),
            _ => {}
        }
    }
    false
}

/// `pub`, also for a part of the crate: others work in that too.
fn is_public(reader: &Reader<'_>, node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    let modifier = node.children(&mut cursor).find(|one| one.kind() == "visibility_modifier");
    modifier.is_some_and(|modifier| reader.text(modifier) != "pub(self)")
}

fn python(reader: &Reader<'_>, node: Node<'_>, name: &str) -> bool {
    let hidden =
        |name: &str| name.starts_with('_') && !(name.starts_with("__") && name.ends_with("__"));
    let around_hides = |around: Node<'_>| match around.kind() {
        "function_definition" => true,
        "class_definition" => {
            around.child_by_field_name("name").is_some_and(|name| hidden(reader.text(name)))
        }
        _ => false,
    };
    !hidden(name) && !above(node).any(around_hides)
}

fn java(reader: &Reader<'_>, node: Node<'_>) -> bool {
    let private = |node: Node<'_>| says(reader, node, "modifiers", "private");
    !private(node) && !above(node).any(private)
}
