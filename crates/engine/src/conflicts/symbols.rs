//! What became of the functions of a file between two texts of it.
//!
//! Owns the comparison by name and place: which are new, gone, called otherwise, or only different
//! inside. Of a language that is not known here nothing is said.

use baton_core::interfaces::Resigned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lines;
use super::reading::{self, Function, Parameter, Tongue};
use super::sides::takes_the_same;

/// Lines that begin so say nothing to whoever builds on a file.
const BESIDE: [&str; 8] = ["//", "#", "/*", "*", "use ", "import ", "from ", "package "];

/// The functions that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// They are called in another way now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resigned: Vec<Resigned>,
    /// They are called as before and do something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewritten: Vec<String>,
}

impl Changes {
    /// What the functions of `path` were, and are.
    pub fn between(path: &str, before: &str, after: &str) -> Self {
        Self::of(&reading::read(path, before).functions, &reading::read(path, after).functions)
    }

    /// As `between`, of those functions alone that others can use. One that they cannot use any
    /// more is gone for them.
    pub fn outside(path: &str, before: &str, after: &str) -> Self {
        Self::of(&usable(path, before), &usable(path, after))
    }

    fn of(old: &[Function], new: &[Function]) -> Self {
        let same = |a: &Function, b: &Function| a.name == b.name && a.container == b.container;
        let mut changes = Self::default();
        for function in new {
            match old.iter().find(|one| same(one, function)) {
                None => changes.added.push(signature(function)),
                Some(was) if !takes_the_same(was, function) => changes
                    .resigned
                    .push(Resigned { before: signature(was), after: signature(function) }),
                Some(was) if was.body != function.body => changes.rewritten.push(function.symbol()),
                Some(_) => {}
            }
        }
        let gone = old.iter().filter(|was| !new.iter().any(|f| same(was, f)));
        changes.removed.extend(gone.map(signature));
        changes
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Is something called otherwise than before?
    pub fn at_the_surface(&self) -> bool {
        !(self.added.is_empty() && self.removed.is_empty() && self.resigned.is_empty())
    }

    /// The names alone, for a short remark.
    pub fn names(&self) -> Vec<&str> {
        let plain =
            |signature: &String| -> usize { signature.find('(').unwrap_or(signature.len()) };
        let resigned = self.resigned.iter().map(|one| &one.after);
        let signed = self.added.iter().chain(&self.removed).chain(resigned);
        let mut names: Vec<&str> = signed.map(|one| &one[..plain(one)]).collect();
        names.extend(self.rewritten.iter().map(String::as_str));
        names.dedup();
        names
    }
}

/// How the functions of a text that others can use are called; nothing of a language that is not
/// known here.
pub fn surface(path: &str, text: &str) -> Option<Vec<String>> {
    Tongue::of(path)?;
    Some(usable(path, text).iter().map(signature).collect())
}

fn usable(path: &str, text: &str) -> Vec<Function> {
    let mut functions = reading::read(path, text).functions;
    functions.retain(|function| function.outside);
    functions
}

/// How many lines outside functions differ: types, constants, routes. Where the language is not
/// known, all lines count. Comments, empty lines and what is only imported do not.
pub fn lines_outside(path: &str, before: &str, after: &str) -> usize {
    let outside = |text| {
        let known = Tongue::of(path).is_some();
        let functions = reading::read(path, text).functions;
        let within = |number: usize| {
            functions.iter().any(|one| one.line <= number && number <= one.last_line)
        };
        let told = |line: &str| {
            !known || !line.is_empty() && !BESIDE.iter().any(|one| line.starts_with(one))
        };
        let lines = lines::split(text).into_iter().zip(1..);
        let mut kept: Vec<&str> = Vec::new();
        for (line, number) in lines {
            let line = line.trim();
            if told(line) && !within(number) {
                kept.push(line);
            }
        }
        kept
    };
    let hunks = lines::diff(&outside(before), &outside(after));
    hunks.iter().map(|hunk| hunk.before.len().max(hunk.after.len())).sum()
}

fn signature(function: &Function) -> String {
    let one = |parameter: &Parameter| match parameter.kind.as_str() {
        "" => parameter.name.clone(),
        kind => format!("{}: {kind}", parameter.name),
    };
    let parameters: Vec<String> = function.parameters.iter().map(one).collect();
    format!("{}({})", function.symbol(), parameters.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_has_its_place() {
        let before = "pub fn a(x: u8) {}\npub fn b() { one(); }\npub fn c() {}\nfn d() {}\n";
        let after =
            "pub fn a(x: u8, y: u8) {}\npub fn b() { two(); }\nfn d() {}\nfn e(z: &str) {}\n";
        let changes = Changes::between("src/a.rs", before, after);
        assert_eq!(changes.added, ["e(z: &str)"]);
        assert_eq!(changes.removed, ["c()"]);
        let resigned = Resigned { before: "a(x: u8)".into(), after: "a(x: u8, y: u8)".into() };
        assert_eq!(changes.resigned, [resigned]);
        assert_eq!(changes.rewritten, ["b"]);
        assert_eq!(changes.names(), ["e", "c", "a", "b"]);
        assert!(changes.at_the_surface());
        assert!(Changes::between("src/a.rs", before, before).is_empty());
        assert!(Changes::between("notes.txt", before, after).is_empty());
        assert_eq!(surface("src/a.rs", before).unwrap()[0], "a(x: u8)");
        assert!(surface("notes.txt", before).is_none());
    }

    const RUST: &str = r#"
pub fn a() {}
fn b() {}
pub(crate) fn c() {}
pub(self) fn d() {}
impl S {
    pub fn e(&self) { fn f() {} }
    fn g(&self) {}
}
impl T for S {
    fn h() {}
}
pub trait T {
    fn h();
    fn i() {}
}
trait U {
    fn j();
}
extern "C" fn k() {}
"#;
    const SCRIPT: &str = r"
export function a() { function b() {} const c = () => 1; return { d() {} } }
function e() {}
const f = () => 1;
export const g = () => 1;
export class H {
    i() {}
    private j() {}
    #k() {}
}
class L {
    m() {}
}
function n() {}
const o = { p() {} };
export { n, L as M };
export default o;
";
    const GO: &str = "
package a
func Load() {}
func save() {}
func (s *Store) Get() {}
func (s *Store) put() {}
";
    const JAVA: &str = "
class A {
    public A() {}
    void b() {}
    private int c() { return 1; }
    private static class D {
        public void e() {}
    }
}
";
    const PYTHON: &str = "
def a():
    def b(): pass
def _c(): pass
class D:
    def __init__(self): pass
    def e(self): pass
    def _f(self): pass
    def __g(self): pass
class _H:
    def i(self): pass
";

    #[test]
    fn what_others_cannot_use_is_not_the_surface() {
        for (path, text, usable) in [
            ("a.rs", RUST, &["a", "c", "S.e", "S.h", "T.h", "T.i", "k"][..]),
            ("a.ts", SCRIPT, &["a", "a.d", "g", "H.i", "L.m", "n", "p"][..]),
            ("a.js", "function a() {}\nmodule.exports = { a };\n", &["a"][..]),
            ("a.go", GO, &["Load", "Store.Get"][..]),
            ("A.java", JAVA, &["A.A", "A.b"][..]),
            ("a.py", PYTHON, &["a", "D.__init__", "D.e"][..]),
        ] {
            let found = surface(path, text).unwrap();
            let names: Vec<&str> = found.iter().map(|one| &one[..one.find('(').unwrap()]).collect();
            assert_eq!(names, usable, "{path}");
        }
        let (before, after) = ("pub fn a() {}\nfn b() {}\n", "fn a() {}\nfn b(x: u8) {}\n");
        let changes = Changes::outside("a.rs", before, after);
        assert_eq!((changes.removed, changes.resigned), (vec!["a()".to_owned()], vec![]));
        assert_eq!(Changes::between("a.rs", before, after).resigned.len(), 1);
    }

    #[test]
    fn lines_outside_functions_count_where_they_say_something() {
        let before = "use a;\n// one\npub struct S {\n    a: u8,\n}\nfn f() {\n    one();\n}\n";
        let same = "use b;\n\n// two\npub struct S {\n    a: u8,\n}\n\nfn f() {\n    two();\n}\n";
        assert_eq!(lines_outside("src/a.rs", before, same), 0);
        let field = before.replace("a: u8,", "a: u16,\n    b: u8,");
        assert_eq!(lines_outside("src/a.rs", before, &field), 2);
        assert_eq!(lines_outside("a.proto", "one\ntwo\n", "one\n2\n"), 1);
        assert_eq!(lines_outside("a.proto", "one\n", "one\n\n"), 1);
    }
}
