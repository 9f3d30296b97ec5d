//! How long functions are.
//!
//! A function counts from the line of its `fn` to the line of its closing brace, signature and
//! comments included; functions inside functions count for both. Tests count as well: a test that
//! needs a second screen wants a table of cases.

use super::lexer::{Kind, Token};
use super::{Finding, Source};

pub(crate) const LINES_MAX: usize = 70;

pub(crate) fn judge(source: &Source, tokens: &[Token<'_>], findings: &mut Vec<Finding>) {
    for Function { name, line, lines } in functions(tokens) {
        if lines > LINES_MAX {
            findings.push(Finding {
                path: source.path.clone(),
                line,
                what: format!("fn {name} has {lines} lines, at most {LINES_MAX}"),
                why: "a function is read whole, on one screen",
            });
        }
    }
}

struct Function<'a> {
    name: &'a str,
    line: usize,
    lines: usize,
}

/// Every function with a name and a body.
fn functions<'a>(tokens: &[Token<'a>]) -> Vec<Function<'a>> {
    let code: Vec<Token<'a>> =
        tokens.iter().filter(|token| token.kind != Kind::Comment).copied().collect();
    let named = |at: usize| match code[at..] {
        // `fn(u8) -> u8` is a type and `fn $name` belongs to a macro: neither has a name here.
        [first, name, ref rest @ ..] if first.is_word("fn") && name.kind == Kind::Word => {
            let lines = body_end(rest)? - first.line + 1;
            Some(Function { name: name.text, line: first.line, lines })
        }
        _ => None,
    };
    (0..code.len()).filter_map(named).collect()
}

/// The line of the closing brace; none for a function without a body.
fn body_end(tokens: &[Token<'_>]) -> Option<usize> {
    let (mut round, mut open) = (0_usize, 0_usize);
    let mut in_body = false;
    let mut before = None;
    for token in tokens.iter().filter(|token| token.kind == Kind::Mark) {
        match token.text {
            "(" | "[" => round += 1,
            ")" | "]" => round = round.saturating_sub(1),
            // Before the body, a brace within brackets or after `<` is a constant in a type.
            "{" => {
                in_body |= open == 0 && round == 0 && before != Some("<");
                open += 1;
            }
            "}" => {
                open = open.saturating_sub(1);
                if in_body && open == 0 {
                    return Some(token.line);
                }
            }
            ";" if round == 0 && open == 0 => return None,
            _ => {}
        }
        before = Some(token.text);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{lexer, samples};
    use super::*;

    fn lengths(text: &str) -> Vec<String> {
        let tokens = lexer::tokens(text);
        functions(&tokens).iter().map(|found| format!("{} {}", found.name, found.lines)).collect()
    }

    #[test]
    fn braces_that_are_not_code_do_not_count() {
        let check = |text: &str, expected: &[&str]| assert_eq!(lengths(text), expected, "{text}");
        check("fn f() {}", &["f 1"]);
        check("fn f() {\n  \"}\";\n}\nfn g() {\n}", &["f 3", "g 2"]);
        check("fn f() {\n  r#\"}\"}\"#;\n}", &["f 3"]);
        check("fn f() {\n  // }\n  /* } /* } */ */\n}", &["f 4"]);
        check("fn f() {\n  '}'; b'}';\n  x::<'a>();\n}", &["f 4"]);
        check("fn f() {\n  if a { b } else { c }\n}", &["f 3"]);
    }

    #[test]
    fn signatures_of_every_shape_are_understood() {
        let check = |text: &str, expected: &[&str]| assert_eq!(lengths(text), expected, "{text}");
        check("trait T {\n  fn none(&self);\n  fn some(&self) {\n  }\n}", &["some 2"]);
        check("fn f(\n  a: [u8; 4],\n) -> [u8; { 2 + 2 }]\nwhere\n  A: B,\n{\n}", &["f 7"]);
        check("fn f() -> Bits<{ N }> {\n  1\n}", &["f 3"]);
        check("fn f(g: fn(u8) -> u8) {\n  fn inner() {\n  }\n}", &["f 4", "inner 2"]);
        check("fn f() {\n  let x = [0; 3];\n}", &["f 3"]);
    }

    #[test]
    fn the_limit_is_the_limit() {
        let judged = |lines: usize| {
            let text = format!("\nfn f() {{\n{}}}\n", "  x();\n".repeat(lines - 2));
            let source = samples::source("a.rs", &text);
            let mut findings = Vec::new();
            judge(&source, &lexer::tokens(&source.text), &mut findings);
            samples::shown(&findings, false)
        };
        assert_eq!(judged(70), [""; 0]);
        assert_eq!(judged(71), ["2 fn f has 71 lines, at most 70"]);
    }
}
