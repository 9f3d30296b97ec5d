//! Rules on tokens: what must not stay in the code, and what a module must open with.
//!
//! Strings are never judged: a message may speak of anything.

use super::lexer::{Kind, Token};
use super::{Finding, Source};

const HEADER_LINES_MIN: usize = 2;
const MARKERS: &[&str] = &["TODO", "FIXME", "XXX"];
const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];
const PRINTING: &[&str] = &["println", "eprintln", "print", "eprint"];
/// The crates whose sources may not print.
const SILENT: &[&str] = &["crates/core/src/", "crates/engine/src/"];

pub(crate) fn judge(source: &Source, tokens: &[Token<'_>], findings: &mut Vec<Finding>) {
    let mut found = |line: usize, what: String, why: &'static str| {
        findings.push(Finding { path: source.path.clone(), line, what, why });
    };
    header(source, tokens, &mut found);
    let silent = SILENT.iter().any(|folder| source.path.starts_with(folder));
    for (at, token) in tokens.iter().enumerate() {
        if token.kind == Kind::Comment {
            if let Some(marker) = marker_in(token.text) {
                let why = "finish it, or open an issue that somebody sees";
                found(token.line, format!("{marker} in a comment"), why);
            }
            continue;
        }
        let is_macro = token.kind == Kind::Word
            && tokens.get(at + 1).is_some_and(|next| next.is_mark('!'))
            && !tokens.get(at + 2).is_some_and(|next| next.is_mark('='));
        if is_macro && MACROS.contains(&token.text) {
            found(token.line, format!("{}!", token.text), "it is for the desk, not for the house");
        }
        if is_macro && silent && PRINTING.contains(&token.text) {
            let why = "rules and deeds do not print: only cli speaks to people";
            found(token.line, format!("{}!", token.text), why);
        }
        if token.is_mark('#') {
            attribute(&tokens[at..], &mut found);
        }
    }
    if source.name() == "mod.rs" {
        logic(tokens, &mut found);
    }
}

/// A source module opens with what it owns, what it refuses to know, what it keeps true.
fn header(
    source: &Source,
    tokens: &[Token<'_>],
    found: &mut impl FnMut(usize, String, &'static str),
) {
    let module = source.path.starts_with("src/") || source.path.contains("/src/");
    let opening = tokens.iter().take_while(|token| token.text.starts_with("//!"));
    let written = opening.filter(|token| token.text.trim_start_matches("//!").len() > 1).count();
    if module && written < HEADER_LINES_MIN {
        let what = format!("fewer than {HEADER_LINES_MIN} lines of `//!` on top");
        found(1, what, "a reader must know what it owns before reading it");
    }
}

fn marker_in(comment: &str) -> Option<&'static str> {
    let mut words = comment.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.find_map(|word| MARKERS.iter().find(|marker| **marker == word).copied())
}

/// `#[allow(…)]` and `#[ignore]`, also within `cfg_attr`.
fn attribute(tokens: &[Token<'_>], found: &mut impl FnMut(usize, String, &'static str)) {
    let inner = usize::from(tokens.get(1).is_some_and(|token| token.is_mark('!')));
    if !tokens.get(1 + inner).is_some_and(|token| token.is_mark('[')) {
        return;
    }
    let mut depth = 0_usize;
    let mut before = &tokens[0];
    for (at, token) in tokens.iter().enumerate().skip(1 + inner) {
        match token.text {
            "[" => depth += 1,
            "]" if depth == 1 => return,
            "]" => depth -= 1,
            // Only where an attribute begins: `#[x(ignore)]` of a macro is something else.
            "allow" if tokens.get(at + 1).is_some_and(|next| next.is_mark('(')) => {
                let why = "use #[expect(…, reason)], which speaks up when it is no longer needed";
                found(token.line, "#[allow]".to_owned(), why);
            }
            "ignore" if before.is_mark('[') || before.is_mark(',') => {
                let why = "a test that nobody runs protects nothing";
                found(token.line, "#[ignore]".to_owned(), why);
            }
            _ => {}
        }
        before = token;
    }
}

/// `mod.rs` may list modules and pass names on.
fn logic(tokens: &[Token<'_>], found: &mut impl FnMut(usize, String, &'static str)) {
    let items = ["fn", "impl", "struct", "enum", "trait", "macro_rules", "const", "static"];
    let first = tokens.iter().find(|token| items.iter().any(|item| token.is_word(item)));
    if let Some(token) = first {
        let what = format!("`{}` in a mod.rs", token.text);
        found(token.line, what, "ten tabs named mod.rs tell nobody what is where");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{lexer, samples};
    use super::*;

    fn judged(path: &str, text: &str) -> Vec<String> {
        let source = samples::source(path, text);
        let mut findings = Vec::new();
        judge(&source, &lexer::tokens(&source.text), &mut findings);
        samples::shown(&findings, false)
    }

    #[test]
    fn unfinished_work_is_found_in_code_and_comments_but_not_in_strings() {
        let check = |text: &str, expected: &[&str]| assert_eq!(judged("a.rs", text), expected);
        check(
            "// TODO: x\n/* a FIXME */ /// XXX\n",
            &["1 TODO in a comment", "2 FIXME in a comment", "2 XXX in a comment"],
        );
        check("// TODOS, XXXX, todo and TODO_LIST are other words\n", &[]);
        check(
            "fn f() { todo!() }\ndbg!(x); unimplemented!()",
            &["1 todo!", "2 dbg!", "2 unimplemented!"],
        );
        check("f(\"TODO todo!() dbg!(x)\"); let todo = 1; if todo != 2 {}", &[]);
    }

    #[test]
    fn attributes_that_silence_are_found_in_every_form() {
        let check = |text: &str, expected: &[&str]| assert_eq!(judged("a.rs", text), expected);
        check("#[allow(dead_code)]\nfn f() {}", &["1 #[allow]"]);
        check("#![allow(dead_code)]", &["1 #[allow]"]);
        check("#[cfg_attr(test, allow(dead_code))]", &["1 #[allow]"]);
        check("#[test]\n#[ignore]\nfn f() {}", &["2 #[ignore]"]);
        check("#[ignore = \"slow\"]", &["1 #[ignore]"]);
        check("#[cfg_attr(miri, ignore)]", &["1 #[ignore]"]);
        check("#[expect(dead_code, reason = \"allow(x)\")] fn allow(ignore: u8) {}", &[]);
        check("let x = allow(y); // #[allow(x)]", &[]);
    }

    #[test]
    fn a_source_module_opens_with_its_header() {
        let one = "1 fewer than 2 lines of `//!` on top";
        assert_eq!(judged("xtask/src/a.rs", "//! One.\n//! Two.\nfn f() {}"), [""; 0]);
        assert_eq!(judged("xtask/src/a.rs", "//! One.\n//!\nfn f() {}"), [one]);
        assert_eq!(judged("xtask/src/a.rs", "//! One.\nfn f() {}\n//! Two."), [one]);
        assert_eq!(judged("xtask/tests/all.rs", "fn f() {}"), [""; 0]);
    }

    #[test]
    fn only_cli_prints() {
        let text = "//! One.\n//! Two.\nfn f() { println!(); eprint!(\"x\"); print(); }";
        let expected = ["3 println!", "3 eprint!"];
        assert_eq!(judged("crates/engine/src/store.rs", text), expected);
        assert_eq!(judged("crates/core/src/a/b.rs", text), expected);
        assert_eq!(judged("crates/cli/src/render.rs", text), [""; 0]);
    }

    #[test]
    fn a_mod_file_only_lists() {
        let head = "//! One.\n//! Two.\n";
        let list = format!("{head}mod a;\npub use a::b;\n");
        assert_eq!(judged("crates/cli/src/mcp/mod.rs", &list), [""; 0]);
        let logic = format!("{head}mod a;\nfn f() {{}}\n");
        assert_eq!(judged("crates/cli/src/mcp/mod.rs", &logic), ["4 `fn` in a mod.rs"]);
        assert_eq!(judged("crates/cli/src/mcp.rs", &logic), [""; 0]);
    }
}
