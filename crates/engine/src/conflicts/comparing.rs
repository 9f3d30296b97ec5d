//! What two sides do to each other that git does not see.
//!
//! Owns the judgement of every kind of finding between two sides. It is careful rather than
//! complete: a call counts only where its name cannot well mean anything else. The first place of a
//! finding is that of whoever changes something, the second of whoever relies on it.

use std::collections::BTreeSet;

use super::finding::{A, B, Finding, Found, Kind, Place};
use super::reading::{BODY_TOKENS_MIN, Called, Function, Tongue};
use super::sides::{Gained, Lost, NewCall, Side};

/// How many tokens are compared at once, and how many such pieces are left between two that count.
const PIECE_TOKENS: usize = 5;
const WINDOW: usize = 4;
/// Of all pieces that either has, so many of a hundred must be in both.
const ALIKE_PERCENT: usize = 80;
/// Findings of one kind for one pair; a machine's change has thousands.
const FINDINGS_MAX: usize = 100;

/// Adds what stands between two sides.
pub(super) fn compare(a: &Side, b: &Side, found: &mut Found) {
    found.broken_calls.extend(broken(a, b, A, B));
    found.broken_calls.extend(broken(b, a, B, A));
    same_functions(a, b, &mut found.same_name);
    same(&a.routes, &b.routes, Kind::Route, |name| name.clone(), &mut found.same_name);
    same(&a.classes, &b.classes, Kind::CssClass, |name| name.clone(), &mut found.same_name);
    let number = |(folder, number): &(String, u64)| match folder.is_empty() {
        true => number.to_string(),
        false => format!("{number} of {folder}"),
    };
    same(&a.numbers, &b.numbers, Kind::Migration, number, &mut found.same_name);
    same(
        &a.packages,
        &b.packages,
        Kind::Dependency,
        |(_, name)| name.clone(),
        &mut found.same_name,
    );
    found.duplicates.extend(duplicates(a, b));
    for list in [&mut found.broken_calls, &mut found.same_name, &mut found.duplicates] {
        list.truncate(FINDINGS_MAX);
    }
}

fn broken(changer: &Side, caller: &Side, one: &str, two: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for lost in &changer.lost {
        for call in caller.calls.iter().filter(|call| call.called.name == lost.old.name) {
            if !means(lost, call, caller) || !breaks(lost, &call.called) {
                continue;
            }
            let line = lost.new.as_ref().map_or(lost.old.line, |new| new.line);
            let kind = if lost.new.is_some() { Kind::Signature } else { Kind::Removed };
            let detail = match &lost.new {
                Some(new) => format!("it took ({}), now ({})", written(&lost.old), written(new)),
                None => String::new(),
            };
            let places = vec![
                Place::on(one, &lost.file, line),
                Place::on(two, &call.file, call.called.line),
            ];
            found.push(Finding { kind, symbol: lost.old.symbol(), places, detail });
        }
    }
    found
}

fn written(function: &Function) -> String {
    let one = |parameter: &super::reading::Parameter| match parameter.kind.is_empty() {
        true => parameter.name.clone(),
        false => format!("{}: {}", parameter.name, parameter.kind.trim_start_matches([':', ' '])),
    };
    function.parameters.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Would the call, which fits what was there, fit no longer?
fn breaks(lost: &Lost, call: &Called) -> bool {
    if !fits(&lost.old, call) {
        return false;
    }
    let Some(new) = &lost.new else { return true };
    if !fits(new, call) {
        return true;
    }
    let types = |function: &Function| -> Vec<String> {
        let used = function.parameters.iter().take(call.arguments);
        used.map(|parameter| parameter.kind.clone()).collect()
    };
    types(&lost.old) != types(new)
}

fn fits(function: &Function, call: &Called) -> bool {
    let all = &function.parameters;
    let rest = all.iter().any(|parameter| parameter.rest);
    let needed = all.iter().filter(|one| !one.optional && !one.rest).count();
    let known = |name: &String| all.iter().any(|parameter| parameter.name == *name);
    let count = call.arguments;
    count >= needed && (rest || count <= all.len()) && (rest || call.named.iter().all(known))
}

/// Does the call mean this very function, as far as names can tell?
fn means(lost: &Lost, call: &NewCall, caller: &Side) -> bool {
    let Some((own, text)) = caller.callers.get(&call.file) else { return false };
    let (tongue, other) = (Tongue::of(&lost.file), Tongue::of(&call.file));
    let near = |one: Option<Tongue>| matches!(one, Some(Tongue::TypeScript | Tongue::Tsx));
    if tongue != other && !(near(tongue) && near(other)) {
        return false;
    }
    // The caller's own side defines it: then that is meant.
    let gained = |(_, one): &(String, Function)| one.name == lost.old.name;
    let same_file = call.file == lost.file;
    if caller.functions.iter().any(gained) || own.contains(&lost.old.name) && !same_file {
        return false;
    }
    let Called { on, dotted, container, .. } = &call.called;
    let own_word = on.as_deref().is_some_and(|on| matches!(on, "self" | "Self" | "this" | "cls"));
    match lost.old.container.last() {
        Some(holder) => match on {
            Some(_) if own_word => container.iter().any(|one| one == holder),
            // `Type::f()` and `Type.f()` name it; of a value only the file can tell.
            Some(on) if on == holder => true,
            Some(_) => *dotted && (same_file || mentions(text, holder)),
            None => {
                let made = lost.old.name == *holder;
                made || same_file && container.contains(holder)
                    || tongue == Some(Tongue::Rust) && mentions(text, holder)
            }
        },
        None => match on {
            Some(_) if own_word => false,
            Some(on) => stems(&lost.file).contains(&on.as_str()) || is_path_word(on),
            None => !dotted && (same_file || reachable(lost, call, text)),
        },
    }
}

/// `crate::f()` and the like.
fn is_path_word(on: &str) -> bool {
    matches!(on, "crate" | "super" | "self")
}

/// Could a plain name in the calling file mean a function of that other file?
fn reachable(lost: &Lost, call: &NewCall, text: &str) -> bool {
    let stems = stems(&lost.file);
    let is_import = |line: &&str| {
        let line = line.trim_start();
        ["use ", "pub use ", "import ", "from ", "export "]
            .iter()
            .any(|word| line.starts_with(word))
            || line.contains("require(")
    };
    let mut imports = text.lines().filter(is_import);
    let folder = |path: &str| path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    match Tongue::of(&call.file) {
        // One folder is one package.
        Some(Tongue::Go | Tongue::Java) => folder(&lost.file) == folder(&call.file),
        _ => imports.any(|line| {
            let named = mentions(line, &lost.old.name) || line.contains('*');
            named
                && (stems.iter().any(|stem| mentions(line, stem))
                    || line.contains("crate::")
                    || line.contains("super::"))
        }),
    }
}

/// The names by which a file is known to others: its own, or that of its folder.
fn stems(path: &str) -> Vec<&str> {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file);
    let folder = parts.next();
    match stem {
        "mod" | "lib" | "main" | "index" | "__init__" => folder.into_iter().collect(),
        _ if path.ends_with(".go") => folder.into_iter().collect(),
        _ => vec![stem],
    }
}

/// Does the word stand in the text as a word of its own?
fn mentions(text: &str, word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(plain) && !after.is_some_and(plain)
    })
}

fn same_functions(a: &Side, b: &Side, found: &mut Vec<Finding>) {
    for (file, one) in &a.functions {
        // What is within a function is nobody else's business.
        let is = |(other, two): &&(String, Function)| {
            other == file
                && two.name == one.name
                && two.container == one.container
                && (two.body != one.body || !super::sides::takes_the_same(one, two))
        };
        if let Some((_, two)) = b.functions.iter().find(is) {
            let places = vec![Place::on(A, file, one.line), Place::on(B, file, two.line)];
            let (kind, symbol, detail) = (Kind::Function, one.symbol(), String::new());
            found.push(Finding { kind, symbol, places, detail });
        }
    }
}

/// Names that both gained with something else behind them.
fn same<N: PartialEq>(
    a: &[(N, Gained)],
    b: &[(N, Gained)],
    kind: Kind,
    symbol: impl Fn(&N) -> String,
    found: &mut Vec<Finding>,
) {
    for (name, one) in a {
        let is = |(other, two): &&(N, Gained)| other == name && two.body != one.body;
        if let Some((_, two)) = b.iter().find(is) {
            let places = vec![Place::on(A, &one.file, one.line), Place::on(B, &two.file, two.line)];
            let detail = match kind {
                Kind::Dependency => format!("{} and {}", one.body, two.body),
                _ => String::new(),
            };
            found.push(Finding { kind, symbol: symbol(name), places, detail });
        }
    }
}

fn duplicates(a: &Side, b: &Side) -> Vec<Finding> {
    let large = |side: &Side| -> Vec<(String, Function, BTreeSet<u64>)> {
        let is = |(_, function): &&(String, Function)| function.shape.len() >= BODY_TOKENS_MIN;
        let all = side.functions.iter().filter(is);
        all.map(|(file, one)| (file.clone(), one.clone(), prints(&one.shape))).collect()
    };
    let (ones, twos) = (large(a), large(b));
    let mut found = Vec::new();
    for (file, one, first) in &ones {
        for (other, two, second) in &twos {
            let same_place =
                file == other && one.name == two.name && one.container == two.container;
            let Some(percent) = alike(first, second).filter(|_| !same_place) else { continue };
            let places = vec![Place::on(A, file, one.line), Place::on(B, other, two.line)];
            let symbol = match one.name == two.name {
                true => one.symbol(),
                false => format!("{} and {}", one.symbol(), two.symbol()),
            };
            let detail = format!("{symbol}, {percent} % alike");
            found.push(Finding { kind: Kind::Duplicate, symbol, places, detail });
        }
    }
    found
}

/// Winnowing: of every few pieces the smallest, so that a copy has the same ones wherever it is.
fn prints(shape: &[u64]) -> BTreeSet<u64> {
    let pieces: Vec<u64> = shape
        .windows(PIECE_TOKENS)
        .map(|piece| {
            piece.iter().fold(17, |hash: u64, token| {
                (hash.rotate_left(5) ^ token).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            })
        })
        .collect();
    pieces.windows(WINDOW).filter_map(|window| window.iter().min().copied()).collect()
}

/// How alike two are, if they are alike enough.
fn alike(one: &BTreeSet<u64>, two: &BTreeSet<u64>) -> Option<usize> {
    let both = one.intersection(two).count();
    let all = one.len() + two.len() - both;
    let percent = both * 100 / all.max(1);
    (percent >= ALIKE_PERCENT).then_some(percent)
}
