//! Every finding between two sides, in every language, from texts alone.
//!
//! Each case is a small file before and after; what git does with it is tested elsewhere.

use std::collections::BTreeMap;

use super::comparing::compare;
use super::finding::{Found, Kind};
use super::sides::{Library, Side};
use crate::git::{Difference, Oid};

/// A side that changes files: path, before, after.
fn side(files: &[(&str, &str, &str)]) -> Side {
    let mut library = Library::of(BTreeMap::new());
    let mut put = |text: &str| {
        let name = blake3::hash(text.as_bytes()).to_hex()[..40].to_owned();
        let oid = Oid::parse(&name).unwrap();
        library.blobs.insert(oid.clone(), text.as_bytes().to_vec());
        (!text.is_empty()).then_some(oid)
    };
    let one = |(path, before, after): &(&str, &str, &str)| Difference {
        path: (*path).to_owned(),
        before: put(before),
        after: put(after),
    };
    let differences: Vec<Difference> = files.iter().map(one).collect();
    Side::of(&differences, &mut library)
}

fn between(a: &[(&str, &str, &str)], b: &[(&str, &str, &str)]) -> Found {
    let mut found = Found::default();
    compare(&side(a), &side(b), &mut found);
    found
}

/// A file with a function, the same without it, with other parameters, and a file that calls it.
struct Calls {
    file: &'static str,
    with: &'static str,
    without: &'static str,
    other: &'static str,
    caller: &'static str,
    call: &'static str,
    symbol: &'static str,
}

const CALLS: &[Calls] = &[
    Calls {
        file: "src/math.rs",
        with: "pub fn area(w: u32) -> u32 {\n    w\n}\n",
        without: "pub fn volume() {}\n",
        other: "pub fn area(w: u32, h: u32) -> u32 {\n    w * h\n}\n",
        caller: "src/main.rs",
        call: "use crate::math::area;\nfn main() {\n    area(1);\n}\n",
        symbol: "area",
    },
    Calls {
        file: "src/math.rs",
        with: "impl Shape {\n    pub fn area(&self) -> u32 {\n        1\n    }\n}\n",
        without: "impl Shape {}\n",
        other: "impl Shape {\n    pub fn area(&self, by: u32) -> u32 {\n        by\n    }\n}\n",
        caller: "src/main.rs",
        call: "fn main(shape: Shape) {\n    shape.area();\n}\n",
        symbol: "Shape.area",
    },
    Calls {
        file: "shop/math.py",
        with: "def area(w):\n    return w\n",
        without: "X = 1\n",
        other: "def area(w, h):\n    return w * h\n",
        caller: "shop/main.py",
        call: "from shop.math import area\n\nprint(area(1))\n",
        symbol: "area",
    },
    Calls {
        file: "src/math.ts",
        with: "export function area(w: number) { return w; }\n",
        without: "export const x = 1;\n",
        other: "export function area(w: string) { return w; }\n",
        caller: "src/main.tsx",
        call: "import { area } from './math';\narea(1);\n",
        symbol: "area",
    },
    Calls {
        file: "src/math.js",
        with: "export const area = (w) => w;\n",
        without: "export const x = 1;\n",
        other: "export const area = (w, h) => w * h;\n",
        caller: "src/main.js",
        call: "import { area } from './math.js';\narea(1);\n",
        symbol: "area",
    },
    Calls {
        file: "math/area.go",
        with: "package math\n\nfunc Area(w int) int { return w }\n",
        without: "package math\n",
        other: "package math\n\nfunc Area(w, h int) int { return w * h }\n",
        caller: "main.go",
        call: "package main\n\nfunc main() { math.Area(1) }\n",
        symbol: "Area",
    },
    Calls {
        file: "src/Shapes.java",
        with: "class Shapes { static int area(int w) { return w; } }\n",
        without: "class Shapes { }\n",
        other: "class Shapes { static int area(int w, int h) { return w * h; } }\n",
        caller: "src/Main.java",
        call: "class Main { void run() { Shapes.area(1); } }\n",
        symbol: "Shapes.area",
    },
];

#[test]
fn a_new_call_of_what_is_gone_or_changed_is_found_in_every_language() {
    for calls in CALLS {
        let caller = [(calls.caller, "", calls.call)];
        for (after, kind) in [(calls.without, Kind::Removed), (calls.other, Kind::Signature)] {
            let change = [(calls.file, calls.with, after)];
            for found in [between(&change, &caller), between(&caller, &change)] {
                let one = &found.broken_calls;
                assert_eq!(one.len(), 1, "{} {after}: {found:?}", calls.file);
                assert_eq!((one[0].kind, one[0].symbol.as_str()), (kind, calls.symbol));
                let files: Vec<&str> = one[0].places.iter().map(|at| at.file.as_str()).collect();
                assert_eq!(files, [calls.file, calls.caller]);
                assert!(one[0].places[1].line > 0);
            }
        }
        // The same call that was there before is not new.
        let old = [(calls.caller, calls.call, &*format!("{}\n", calls.call))];
        let gone = [(calls.file, calls.with, calls.without)];
        assert_eq!(between(&gone, &old), Found::default(), "{}", calls.file);
        // Whoever defines it itself means its own.
        let moved = format!("{}{}", calls.with, calls.call);
        let own = [(calls.caller, "", moved.as_str())];
        assert!(between(&gone, &own).broken_calls.is_empty(), "{}", calls.file);
    }
}

#[test]
fn a_call_that_means_something_else_is_not_broken() {
    let gone = [("src/math.rs", "pub fn parse(a: u32) {}\n", "// nothing\n")];
    for call in [
        "use other::parse;\nfn main() { parse(1); }\n",
        "fn main(x: Json) { x.parse(1); }\n",
        "fn main() { Json::parse(1); }\n",
        "use crate::math::parse;\nfn main() { parse(1, 2); }\n",
    ] {
        let found = between(&gone, &[("src/main.rs", "", call)]);
        assert!(found.broken_calls.is_empty(), "{call}: {found:?}");
    }
    // Another name for a parameter, or one that may be left out, breaks nothing.
    let before = "def area(w):\n    return w\n";
    let call = [("shop/main.py", "", "from shop.math import area\narea(1)\n")];
    for after in ["def area(width):\n    return width\n", "def area(w, h=1):\n    return w * h\n"] {
        assert!(between(&[("shop/math.py", before, after)], &call).broken_calls.is_empty());
    }
    // It only moved.
    let moved =
        [("src/a.rs", "pub fn f(x: u8) {}\n", "// -\n"), ("src/b.rs", "", "pub fn f(x: u8) {}\n")];
    let call = [("src/main.rs", "", "use crate::a::f;\nfn main() { f(1); }\n")];
    assert!(between(&moved, &call).broken_calls.is_empty());
}

#[test]
fn one_name_for_two_things_is_found() {
    for (path, base, a, b, kind, symbol) in [
        ("a.rs", "", "fn f() { 1; }\n", "fn f() { 2; }\n", Kind::Function, "f"),
        (
            "a.py",
            "x = 1\n",
            "class K:\n    def f(self):\n        a()\n",
            "class K:\n    def f(self):\n        b()\n",
            Kind::Function,
            "K.f",
        ),
        ("a.ts", "", "function f() { a() }\n", "function f() { b() }\n", Kind::Function, "f"),
        (
            "a.go",
            "package p\n",
            "package p\nfunc F() { a() }\n",
            "package p\nfunc F() { b() }\n",
            Kind::Function,
            "F",
        ),
        (
            "A.java",
            "",
            "class A { int f() { return 1; } }\n",
            "class A { int f() { return 2; } }\n",
            Kind::Function,
            "A.f",
        ),
        ("a.css", "", ".card { color: red }\n", ".card { color: blue }\n", Kind::CssClass, ".card"),
        (
            "package.json",
            "{}",
            r#"{"dependencies":{"x":"1"}}"#,
            r#"{"dependencies":{"x":"2"}}"#,
            Kind::Dependency,
            "x",
        ),
        (
            "Cargo.toml",
            "[dependencies]\n",
            "[dependencies]\nx = \"1\"\n",
            "[dependencies]\nx = \"2\"\n",
            Kind::Dependency,
            "x",
        ),
    ] {
        let found = between(&[(path, base, a)], &[(path, base, b)]);
        assert_eq!(found.same_name.len(), 1, "{path}: {found:?}");
        assert_eq!((found.same_name[0].kind, found.same_name[0].symbol.as_str()), (kind, symbol));
        assert_eq!(between(&[(path, base, a)], &[(path, base, a)]), Found::default(), "{path}");
    }
    let a = [("db/0007_users.sql", "", "a"), ("db/0008_x.sql", "", "a")];
    let b = [("db/0007_items.sql", "", "b"), ("db/0008_x.sql", "", "b"), ("log/0007_a.md", "", "")];
    let found = between(&a, &b);
    assert_eq!(found.same_name.len(), 1, "{found:?}");
    assert_eq!(found.same_name[0].symbol, "7 of db");
}

#[test]
fn one_route_for_two_things_is_found_across_files() {
    for (one, a, two, b, symbol) in [
        ("a.js", "app.get('/x', one);\n", "b.ts", "router.get(\"/x\", two);\n", "GET /x"),
        (
            "a.py",
            "@app.route('/x', methods=['POST'])\ndef one():\n    a()\n",
            "b.py",
            "@bp.post('/x')\ndef two():\n    b()\n",
            "POST /x",
        ),
        (
            "a.go",
            "package p\nfunc a() { r.HandleFunc(\"/x\", one) }\n",
            "b.go",
            "package p\nfunc b() { mux.Handle(\"/x\", two) }\n",
            "* /x",
        ),
        (
            "a.rs",
            "fn a() { r.route(\"/x\", get(one)); }\n",
            "b.rs",
            "#[get(\"/x\")]\nfn b() { c(); }\n",
            "GET /x",
        ),
        (
            "A.java",
            "class A { @GetMapping(\"/x\") int a() { return 1; } }\n",
            "B.java",
            "class B { @GetMapping(\"/x\") int b() { return 2; } }\n",
            "GET /x",
        ),
    ] {
        let found = between(&[(one, "", a)], &[(two, "", b)]);
        assert_eq!(found.same_name.len(), 1, "{one}: {found:?}");
        let same = &found.same_name[0];
        assert_eq!((same.kind, same.symbol.as_str()), (Kind::Route, symbol), "{one}");
    }
    // Asking for a path offers none.
    let client = [("a.js", "", "axios.get('/x', options);\n")];
    assert_eq!(between(&client, &[("b.js", "", "app.get('/x', two);\n")]), Found::default());
    let other = [("a.js", "", "app.post('/x', one);\n")];
    assert_eq!(between(&other, &[("b.js", "", "app.get('/x', two);\n")]), Found::default());
}

fn typescript(name: &str, x: &str) -> String {
    format!(
        "export function {name}({x}: number[]): number {{
  let t{x} = 0;
  for (const one of {x}) {{
    if (one > 10) {{ t{x} += one * 2; }} else {{ t{x} -= Math.min(one, 3); }}
  }}
  console.log('done', t{x});
  return Math.max(t{x}, 1);
}}
"
    )
}

fn go(name: &str, x: &str) -> String {
    format!(
        "package p

func {name}({x} []int) int {{
    t{x} := 0
    for _, one := range {x} {{
        if one > 10 {{
            t{x} += one * 2
        }} else {{
            t{x} -= min(one, 3)
        }}
    }}
    log.Println(\"done\", t{x})
    return max(t{x}, 1)
}}
"
    )
}

fn java(name: &str, x: &str) -> String {
    format!(
        "class Sums {{
    static int {name}(int[] {x}) {{
        int t{x} = 0;
        for (int one : {x}) {{
            if (one > 10) {{ t{x} += one * 2; }} else {{ t{x} -= Math.min(one, 3); }}
        }}
        System.out.println(t{x});
        return Math.max(t{x}, 1);
    }}
}}
"
    )
}

#[test]
fn nearly_the_same_function_is_found_whatever_its_names() {
    let rust = |name: &str, x: &str| {
        format!(
            "pub fn {name}({x}: &[u32]) -> u32 {{
    let mut t{x} = 0;
    for one in {x} {{
        if *one > 10 {{ t{x} += one * 2; }} else {{ t{x} -= one.min(3); }}
    }}
    log(\"done\", t{x});
    t{x}.max(1)
}}
"
        )
    };
    let (one, two) = (rust("total", "a"), rust("sum_up", "values"));
    let found = between(&[("a.rs", "", &one)], &[("b.rs", "", &two)]);
    assert_eq!(found.duplicates.len(), 1, "{found:?}");
    assert_eq!(found.duplicates[0].symbol, "total and sum_up");
    let python = |name: &str, x: &str| {
        format!(
            "def {name}({x}):
    t{x} = {{}}
    for row in {x}:
        key = row.get('id', 0)
        if key in t{x}:
            t{x}[key].append(row)
        else:
            t{x}[key] = [row]
    return sorted(t{x}.items())
"
        )
    };
    let (one_py, two_py) = (python("group", "rows"), python("by_id", "items"));
    let found = between(&[("a.py", "", &one_py)], &[("b.py", "", &two_py)]);
    assert_eq!(found.duplicates.len(), 1, "{found:?}");
    for (one, a, two, b) in [
        ("a.ts", typescript("total", "rows"), "b.tsx", typescript("sumUp", "values")),
        ("a.go", go("Total", "rows"), "b.go", go("SumUp", "values")),
        ("A.java", java("total", "rows"), "B.java", java("sumUp", "values")),
    ] {
        let found = between(&[(one, "", &a)], &[(two, "", &b)]);
        assert_eq!(found.duplicates.len(), 1, "{one}: {found:?}");
        let same = &found.duplicates[0];
        assert!(same.symbol.to_lowercase().contains("sumup"), "{one}: {same:?}");
        assert_eq!((same.places[0].file.as_str(), same.places[1].file.as_str()), (one, two));
        // What was there before on one side has not been written twice now.
        let edited = format!("{b}\n");
        assert!(between(&[(one, "", &a)], &[(two, &b, &edited)]).duplicates.is_empty(), "{one}");
    }
    // Another thing, and small ones, are none.
    let other = "pub fn other(a: &[u32]) -> u32 {
    match a.first() {
        Some(x) if *x > 1 => x + 1,
        Some(_) => panic(),
        None => read(\"file\").unwrap_or(7),
    }
}
";
    assert_eq!(between(&[("a.rs", "", &one)], &[("b.rs", "", other)]), Found::default());
    let small = ("fn a(&self) -> u32 { self.x }\n", "fn b(&self) -> u32 { self.y }\n");
    assert_eq!(between(&[("a.rs", "", small.0)], &[("b.rs", "", small.1)]), Found::default());
}

#[test]
fn a_function_without_a_body_is_seen_in_every_language() {
    for (path, before, after) in [
        ("a.rs", "fn f() { go(); }\n", "fn f() { todo!() }\n"),
        ("a.rs", "fn f() { go(); }\n", "fn f() {\n    // later\n}\n"),
        ("a.py", "def f():\n    go()\n", "def f():\n    pass\n"),
        ("a.py", "def f():\n    go()\n", "def f():\n    \"\"\"Later.\"\"\"\n"),
        ("a.ts", "function f() { go() }\n", "function f() { /* later */ }\n"),
        ("a.go", "package p\nfunc F() { g() }\n", "package p\nfunc F() {}\n"),
        ("A.java", "class A { void f() { g(); } }\n", "class A { void f() { } }\n"),
    ] {
        assert_eq!(side(&[(path, before, after)]).emptied.len(), 1, "{path} {after}");
        assert!(side(&[(path, after, before)]).emptied.is_empty(), "{path}");
    }
}

#[test]
fn what_is_no_text_or_broken_says_nothing() {
    let bytes = "fn f() {}\u{0}";
    for text in [bytes, "fn fn fn ((((", "\u{fffd}\u{202e}", "{{{{{{{{"] {
        for path in ["a.rs", "a.py", "a.ts", "a.go", "A.java", "a.css", "package.json"] {
            let found = between(&[(path, "", text)], &[(path, "", "x")]);
            assert!(found.broken_calls.is_empty(), "{path} {text:?}: {found:?}");
        }
    }
    let deep = "(".repeat(100_000);
    side(&[("a.rs", "", &format!("fn f() {{ {deep} }}"))]);
}
