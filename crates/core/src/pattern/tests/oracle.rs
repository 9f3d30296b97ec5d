//! S2 against brute force: random patterns over a small alphabet, judged by a naive matcher that
//! shares no code with the automaton, on every path up to a length. `s` is in the alphabet because
//! `ss` is also one folded character (ß).
//!
//! `BATON_OVERLAP_PAIRS` sets how many pairs are tried.

use super::*;

const PAIRS_DEFAULT: usize = 100_000;
/// Patterns per round; every two of them are a pair.
const ROUND: usize = 32;
const PATH_CHARS_MAX: usize = 6;

// Four quarters with pairs of their own, so that the test runner spreads them over the cores.
#[test]
fn s2_overlap_agrees_with_enumeration_first_quarter() {
    check_quarter(4);
}

#[test]
fn s2_overlap_agrees_with_enumeration_second_quarter() {
    check_quarter(5);
}

#[test]
fn s2_overlap_agrees_with_enumeration_third_quarter() {
    check_quarter(6);
}

#[test]
fn s2_overlap_agrees_with_enumeration_fourth_quarter() {
    check_quarter(7);
}

fn check_quarter(seed: u64) {
    let pairs_wanted = pairs_wanted().div_ceil(4);
    let paths = all_paths();
    let mut random = Random(seed << 48);
    let (mut pairs, mut overlapping, mut covering) = (0, 0, 0);
    while pairs < pairs_wanted {
        let round: Vec<Judged> = (0..ROUND).map(|_| judged(&mut random, &paths)).collect();
        for (index, a) in round.iter().enumerate() {
            for (other, b) in round.iter().enumerate() {
                pairs += 1;
                overlapping += usize::from(check_overlap(a, b));
                covering += usize::from(check_covers(a, b));
                // Once for each two: overlap itself is seen to be the same from both sides.
                if index <= other {
                    check_witness(a, b);
                }
            }
        }
    }
    report(pairs, overlapping, covering, paths.len());
    assert!(overlapping > pairs / 10 && overlapping < pairs, "the generator went stale");
    assert!(covering > pairs / 100, "the generator went stale");
}

#[expect(clippy::disallowed_methods, reason = "a test may be told how long to run")]
fn pairs_wanted() -> usize {
    std::env::var("BATON_OVERLAP_PAIRS")
        .ok()
        .map_or(PAIRS_DEFAULT, |text| text.parse().expect("BATON_OVERLAP_PAIRS is a number"))
}

/// A long run says what it did; a failure would have said so before.
#[expect(clippy::disallowed_methods, reason = "a test may speak")]
fn report(pairs: usize, overlapping: usize, covering: usize, paths: usize) {
    use std::io::Write as _;
    let line = format!(
        "{pairs} pairs, {paths} paths each: {overlapping} overlap, {covering} cover, \
         0 disagreements\n"
    );
    std::io::stdout().write_all(line.as_bytes()).expect("standard output can be written");
}

/// A pattern with the naive verdict on every path.
struct Judged {
    pattern: Pattern,
    naive: Naive,
    hits: Vec<u64>,
}

/// A disagreement fails the test on the spot, with the pair in the message.
fn check_overlap(a: &Judged, b: &Judged) -> bool {
    let shown = (&a.pattern, &b.pattern);
    let overlap = overlaps(&a.pattern, &b.pattern);
    let enumerated = a.hits.iter().zip(&b.hits).any(|(a, b)| a & b != 0);
    assert!(overlap || !enumerated, "false negative: {shown:?}");
    assert!(!overlap || is_candidate(&a.pattern, &b.pattern), "not a candidate: {shown:?}");
    overlap
}

fn check_witness(a: &Judged, b: &Judged) {
    let shown = (&a.pattern, &b.pattern);
    let overlap = overlaps(&a.pattern, &b.pattern);
    assert_eq!(overlap, overlaps(&b.pattern, &a.pattern), "not symmetric: {shown:?}");
    match witness(&a.pattern, &b.pattern) {
        Some(key) => {
            assert!(overlap, "witness {key:?} without overlap: {shown:?}");
            for side in [a, b] {
                assert!(side.naive.matches(&key), "false positive {key:?}: {shown:?}");
                assert!(side.pattern.matches(&key), "witness {key:?} unmatched: {shown:?}");
            }
        }
        None => assert!(!overlap || is_over_cap(a, b), "overlap without witness: {shown:?}"),
    }
}

/// Over the cap the answer is "overlap" without a path to show for it.
fn is_over_cap(a: &Judged, b: &Judged) -> bool {
    let states = |judged: &Judged| judged.pattern.to_automaton().states();
    states(a) * states(b) > OVERLAP_STATES_MAX
}

fn check_covers(a: &Judged, b: &Judged) -> bool {
    let covered = covers(&a.pattern, &b.pattern);
    let enumerated = a.hits.iter().zip(&b.hits).all(|(a, b)| b & !a == 0);
    assert!(!covered || enumerated, "false cover: {:?}", (&a.pattern, &b.pattern));
    covered
}

fn judged(random: &mut Random, paths: &[String]) -> Judged {
    loop {
        let text = pattern_text(random);
        let parsed = match random.below(8) {
            0 => (Pattern::literal(&paths[random.below(paths.len())]), None),
            1 => (Pattern::folder(&paths[random.below(paths.len())]), None),
            _ => (Pattern::glob(&text), Naive::glob(&text)),
        };
        let (pattern, naive) = match parsed {
            (Ok(pattern), None) if pattern.kind() != Kind::Glob => {
                let tail = if pattern.is_literal() { vec![] } else { vec!["**".to_owned()] };
                let names = pattern.text().split('/').map(str::to_owned).chain(tail).collect();
                (pattern, Naive(vec![names]))
            }
            (Ok(pattern), Some(naive)) => (pattern, naive),
            (Err(_), None) | (Err(Error::TooManyAlternatives { .. }), _) => continue,
            (parsed, _) => panic!("{text:?}: validity is disputed: {parsed:?}"),
        };
        let mut hits = vec![0; paths.len().div_ceil(64)];
        for (index, path) in paths.iter().enumerate() {
            let hit = naive.matches(path);
            assert_eq!(pattern.matches(path), hit, "{pattern:?} on {path:?}");
            hits[index / 64] |= u64::from(hit) << (index % 64);
        }
        return Judged { pattern, naive, hits };
    }
}

/// Every valid path over the alphabet, shortest first.
fn all_paths() -> Vec<String> {
    let mut paths = Vec::new();
    let mut texts = vec![String::new()];
    for _ in 0..PATH_CHARS_MAX {
        texts = texts.iter().flat_map(|t| ["a", "s", "/"].map(|c| format!("{t}{c}"))).collect();
        let valid = |t: &&String| !t.starts_with('/') && !t.ends_with('/') && !t.contains("//");
        paths.extend(texts.iter().filter(valid).cloned());
    }
    paths
}

fn pattern_text(random: &mut Random) -> String {
    let names = 1 + random.below(4);
    let mut text = (0..names).map(|_| segment_text(random)).collect::<Vec<_>>().join("/");
    if random.below(8) == 0 {
        text.push('/');
    }
    text
}

fn segment_text(random: &mut Random) -> String {
    match random.below(24) {
        0..=3 => "**".to_owned(),
        4 => random.pick(&[".", "..", ""]).to_owned(),
        _ => (0..=random.below(3)).map(|_| atom_text(random, 2)).collect(),
    }
}

fn atom_text(random: &mut Random, depth: usize) -> String {
    match random.below(16) {
        0..=4 => "a".to_owned(),
        5..=8 => "s".to_owned(),
        9..=10 => "*".to_owned(),
        11 => "?".to_owned(),
        12..=13 => random.pick(&["[a]", "[as]", "[!a]", "[^s]", "[a-r]", "[b-z]"]).to_owned(),
        _ if depth == 0 => "a".to_owned(),
        _ => {
            let branch = |random: &mut Random| {
                let shape = random.below(8);
                let inner: String =
                    (0..random.below(3)).map(|_| atom_text(random, depth - 1)).collect();
                match shape {
                    0 => format!("{inner}/{}", atom_text(random, depth - 1)),
                    1 => format!("{inner}/**"),
                    _ => inner,
                }
            };
            format!("{{{},{}}}", branch(random), branch(random))
        }
    }
}

/// The language by definition: expand braces as text, split, resolve, then try everything.
struct Naive(Vec<Vec<String>>);

impl Naive {
    /// None where the definition knows no path for an alternative.
    fn glob(text: &str) -> Option<Naive> {
        naive_expand(text).iter().map(|text| naive_resolve(text)).collect::<Option<_>>().map(Naive)
    }

    fn matches(&self, key: &str) -> bool {
        let names: Vec<Vec<char>> = key.split('/').map(|name| name.chars().collect()).collect();
        self.0.iter().any(|pattern| naive_path(pattern, &names))
    }
}

fn naive_expand(text: &str) -> Vec<String> {
    let Some(open) = text.find('{') else { return vec![text.to_owned()] };
    let (mut depth, mut from, mut branches) = (0, open + 1, Vec::new());
    for (at, c) in text.char_indices().skip(open) {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 || depth == 1 && c == ',' {
            branches.push(&text[from..at]);
            from = at + 1;
        }
        if depth == 0 {
            let whole = |branch: &&str| format!("{}{branch}{}", &text[..open], &text[from..]);
            return branches.iter().map(whole).flat_map(|t| naive_expand(&t)).collect();
        }
    }
    panic!("unbalanced {text:?}")
}

fn naive_resolve(text: &str) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    if text.is_empty() || text.starts_with('/') {
        return None;
    }
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop().filter(|name| name != "**")?;
            }
            _ => names.push(name.to_owned()),
        }
    }
    if text.ends_with('/') {
        names.push("**".to_owned());
    }
    (!names.is_empty()).then_some(names)
}

fn naive_path(pattern: &[String], names: &[Vec<char>]) -> bool {
    match pattern {
        [] => names.is_empty(),
        [first, rest @ ..] if first == "**" => {
            (0..=names.len()).any(|skipped| naive_path(rest, &names[skipped..]))
        }
        [first, rest @ ..] => {
            let first: Vec<char> = first.chars().collect();
            !names.is_empty() && naive_name(&first, &names[0]) && naive_path(rest, &names[1..])
        }
    }
}

fn naive_name(pattern: &[char], name: &[char]) -> bool {
    let tails = |count: usize, rest: &[char]| {
        let trail = name[count..].iter().take_while(|c| !c.is_ascii()).count();
        (0..=trail).any(|more| naive_name(rest, &name[count + more..]))
    };
    let ligature = |rest: &[char]| {
        let folds = ["ss", "ff", "fi", "fl", "st", "ffi", "ffl", "\u{2bc}n"];
        let fits = |fold: &&str| name.starts_with(&fold.chars().collect::<Vec<_>>());
        folds.iter().filter(|f| fits(f)).any(|fold| tails(fold.chars().count(), rest))
    };
    match pattern {
        [] => name.is_empty(),
        ['*', rest @ ..] => (0..=name.len()).any(|taken| naive_name(rest, &name[taken..])),
        ['?', rest @ ..] => !name.is_empty() && (tails(1, rest) || ligature(rest)),
        ['[', class @ ..] => {
            let close = class.iter().position(|c| *c == ']').expect("closed");
            let (class, rest) = (&class[..close], &class[close + 1..]);
            match (class, name) {
                (_, []) => false,
                (['!' | '^', class @ ..], [first, ..]) => {
                    !naive_class(class, *first) && tails(1, rest)
                        || name.get(1).is_some_and(|c| !c.is_ascii()) && tails(2, rest)
                        || ligature(rest)
                }
                (_, [first, ..]) => naive_class(class, *first) && naive_name(rest, &name[1..]),
            }
        }
        [c, rest @ ..] => name.first() == Some(c) && naive_name(rest, &name[1..]),
    }
}

fn naive_class(class: &[char], c: char) -> bool {
    match class {
        [low, '-', high] => (*low..=*high).contains(&c),
        _ => class.contains(&c),
    }
}
