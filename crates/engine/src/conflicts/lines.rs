//! How two texts differ, line by line, and where two changes of one text meet.
//!
//! Owns the comparison only; it knows no git and no trees. Invariant: outside the hunks both texts
//! are the same, so whatever lies in no hunk was not touched.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Edits that are told apart; a text that differs in more is one hunk.
const EDITS_MAX: usize = 1_000;

/// Lines that were replaced by others, counted from 0; either may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hunk {
    pub(crate) before: Range<usize>,
    pub(crate) after: Range<usize>,
}

/// Lines in conflict, first and last counted from 1, as either side has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    pub a: [usize; 2],
    pub b: [usize; 2],
}

pub(crate) fn split(text: &str) -> Vec<&str> {
    text.lines().collect()
}

/// What must be replaced to make the second out of the first.
pub(crate) fn diff(before: &[&str], after: &[&str]) -> Vec<Hunk> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut number = |line| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(line).or_insert(next)
    };
    let one: Vec<u32> = before.iter().map(|line| number(*line)).collect();
    let two: Vec<u32> = after.iter().map(|line| number(*line)).collect();
    let same_start = one.iter().zip(&two).take_while(|(a, b)| a == b).count();
    let most = one.len().min(two.len()) - same_start;
    let ends = one.iter().rev().zip(two.iter().rev());
    let same_end = ends.take(most).take_while(|(a, b)| a == b).count();
    let inner_one = &one[same_start..one.len() - same_end];
    let inner_two = &two[same_start..two.len() - same_end];
    if inner_one.is_empty() && inner_two.is_empty() {
        return Vec::new();
    }
    let hunks = shortest(inner_one, inner_two)
        .unwrap_or_else(|| vec![Hunk { before: 0..inner_one.len(), after: 0..inner_two.len() }]);
    let moved = |range: Range<usize>| range.start + same_start..range.end + same_start;
    hunks.into_iter().map(|h| Hunk { before: moved(h.before), after: moved(h.after) }).collect()
}

/// Myers' shortest way from one to the other; nothing when it is too long.
fn shortest(one: &[u32], two: &[u32]) -> Option<Vec<Hunk>> {
    let (n, m) = (one.len(), two.len());
    let width = 2 * EDITS_MAX + 3;
    let middle = EDITS_MAX + 1;
    let mut far = vec![0_usize; width];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for edits in 0..=EDITS_MAX.min(n + m) {
        trace.push(far[middle - edits..=middle + edits].to_vec());
        let mut lane = 0;
        while lane <= 2 * edits {
            // The diagonal is `lane - edits`: how much further in `one` than in `two`.
            let at = middle + lane - edits;
            let down = lane == 0 || (lane < 2 * edits && far[at - 1] < far[at + 1]);
            let mut x = if down { far[at + 1] } else { far[at - 1] + 1 };
            if edits == 0 {
                x = 0;
            }
            let mut y = x + edits - lane;
            while x < n && y < m && one[x] == two[y] {
                (x, y) = (x + 1, y + 1);
            }
            far[at] = x;
            if x >= n && y >= m {
                return Some(walk_back(&trace, n, m));
            }
            lane += 2;
        }
    }
    None
}

/// The steps of the way, gathered into hunks.
fn walk_back(trace: &[Vec<usize>], n: usize, m: usize) -> Vec<Hunk> {
    let (mut x, mut y) = (n, m);
    let mut hunks: Vec<Hunk> = Vec::new();
    for edits in (1..trace.len()).rev() {
        // `trace[edits]` has the furthest places before this edit, for diagonals -edits..=edits.
        let places = &trace[edits];
        let lane = x + edits - y;
        let down = lane == 0 || (lane < 2 * edits && places[lane - 1] < places[lane + 1]);
        let from = if down { lane + 1 } else { lane - 1 };
        let from_x = places[from];
        let from_y = from_x + edits - from;
        let (to_x, to_y) = if down { (from_x, from_y + 1) } else { (from_x + 1, from_y) };
        match hunks.last_mut() {
            Some(last) if last.before.start == to_x && last.after.start == to_y => {
                (last.before.start, last.after.start) = (from_x, from_y);
            }
            _ => hunks.push(Hunk { before: from_x..to_x, after: from_y..to_y }),
        }
        (x, y) = (from_x, from_y);
    }
    hunks.reverse();
    hunks
}

/// Where two changes of one text meet or touch without being the same.
pub(crate) fn meetings(base: &str, a: &str, b: &str) -> Vec<Span> {
    let (base, a, b) = (split(base), split(a), split(b));
    let (ones, twos) = (diff(&base, &a), diff(&base, &b));
    let mut spans: Vec<Span> = Vec::new();
    for one in &ones {
        for two in &twos {
            let apart = one.before.start > two.before.end || two.before.start > one.before.end;
            let same = one.before == two.before && a[one.after.clone()] == b[two.after.clone()];
            if apart || same {
                continue;
            }
            let shown = |range: &Range<usize>| [range.start + 1, range.end.max(range.start + 1)];
            let span = Span { a: shown(&one.after), b: shown(&two.after) };
            match spans.last_mut() {
                Some(last) if last.a[1] >= span.a[0] || last.b[1] >= span.b[0] => {
                    last.a[1] = last.a[1].max(span.a[1]);
                    last.b[1] = last.b[1].max(span.b[1]);
                }
                _ => spans.push(span),
            }
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(before: &[&str], after: &[&str], hunks: &[Hunk]) -> Vec<String> {
        let mut text = Vec::new();
        let mut at = 0;
        for hunk in hunks {
            text.extend(before[at..hunk.before.start].iter().map(|line| (*line).to_owned()));
            text.extend(after[hunk.after.clone()].iter().map(|line| (*line).to_owned()));
            at = hunk.before.end;
        }
        text.extend(before[at..].iter().map(|line| (*line).to_owned()));
        text
    }

    proptest::proptest! {
        #[test]
        fn hunks_make_the_second_out_of_the_first(
            before in proptest::collection::vec("[abc]", 0..20),
            after in proptest::collection::vec("[abc]", 0..20),
        ) {
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            let after: Vec<&str> = after.iter().map(String::as_str).collect();
            let hunks = diff(&before, &after);
            proptest::prop_assert_eq!(applied(&before, &after, &hunks), after);
        }
    }

    #[test]
    fn only_what_differs_is_in_a_hunk() {
        let hunks = diff(&["a", "b", "c", "d"], &["a", "x", "c", "d", "e"]);
        let expected = [Hunk { before: 1..2, after: 1..2 }, Hunk { before: 4..4, after: 4..5 }];
        assert_eq!(hunks, expected);
    }

    #[test]
    fn changes_meet_where_they_touch() {
        for (a, b, expected) in [
            ("1\nA\n3\n4\n", "1\nB\n3\n4\n", vec![([2, 2], [2, 2])]),
            ("1\nA\n3\n4\n", "1\n2\n3\nB\n", vec![]),
            ("1\nA\n3\n4\n", "1\nA\n3\n4\n", vec![]),
            ("1\nA\n3\n4\n", "1\n2\nB\n4\n", vec![([2, 2], [3, 3])]),
        ] {
            let found: Vec<_> =
                meetings("1\n2\n3\n4\n", a, b).into_iter().map(|span| (span.a, span.b)).collect();
            assert_eq!(found, expected, "{a:?} {b:?}");
        }
    }
}
