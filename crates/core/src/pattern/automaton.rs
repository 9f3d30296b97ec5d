//! The automaton of a pattern over the characters of folded paths, and the three questions asked
//! of it: does it accept a key, do two share a key, does one accept all the other does.
//!
//! Knows nothing of syntax or Unicode. Invariants: every label accepts some character and every
//! state leads to an accepting one, so a state reached is a path found; no answer recurses, and
//! each is bounded by a product of states (`a*a*a*…` costs positions squared, not exponentials).

use std::collections::{BTreeMap, BTreeSet};

use super::charset::{CharSet, LIGATURES, One};
use super::syntax::{Element, Segment};
use super::{COVER_STEPS_MAX, OVERLAP_STATES_MAX, OVERLAP_STEPS_MAX};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// Taken without a character.
    Skip,
    Char(char),
    /// An index into the sets of the automaton.
    Set(usize),
}

/// The two sets every automaton has.
const ANY: usize = 0;
const NON_ASCII: usize = 1;

/// The state every automaton starts in.
const START: usize = 0;

#[derive(Debug, Clone)]
pub(super) struct Automaton {
    accepting: Vec<bool>,
    /// Edges of state `s` are `edges[first[s]..first[s + 1]]`.
    first: Vec<usize>,
    edges: Vec<(Label, usize)>,
    sets: Vec<CharSet>,
}

pub(super) enum Meeting {
    Never,
    /// A key both accept.
    At(String),
    /// The product is too large to search; S2 makes the caller take it for an overlap.
    Unknown,
}

/// The state behind a segment: by the state before it, and whether it is a `**` that ends a path.
type Known<'a> = BTreeMap<(usize, &'a Segment, bool), usize>;

struct Builder {
    accepting: Vec<bool>,
    edges: Vec<(usize, Label, usize)>,
    sets: Vec<CharSet>,
}

impl Builder {
    fn state(&mut self) -> usize {
        self.accepting.push(false);
        self.accepting.len() - 1
    }

    fn edge(&mut self, from: usize, label: Label, to: usize) {
        self.edges.push((from, label, to));
    }

    /// A new state behind `from`.
    fn after(&mut self, from: usize, label: Label) -> usize {
        let to = self.state();
        self.edge(from, label, to);
        to
    }

    fn set(&mut self, set: &CharSet) -> Label {
        let known = self.sets.iter().position(|other| other == set);
        Label::Set(known.unwrap_or_else(|| {
            self.sets.push(set.clone());
            self.sets.len() - 1
        }))
    }

    /// Adds one alternative. Alternatives share the states of the leading segments they have in
    /// common, since braces late in a long glob repeat all that stands before them. A segment
    /// starts in a state of its own, so a loop there belongs to this segment alone.
    fn path<'a>(&mut self, segments: &'a [Segment], known: &mut Known<'a>) {
        let mut before = START;
        let mut lead = Label::Skip;
        for (index, segment) in segments.iter().enumerate() {
            let ends = index + 1 == segments.len() && *segment == Segment::Tree;
            let key = (before, segment, ends);
            let after = match known.get(&key) {
                Some(state) => *state,
                None => {
                    let at = self.after(before, lead);
                    let after = self.segment(at, segment, ends);
                    known.insert(key, after);
                    after
                }
            };
            // Zero segments leave the folder itself; the root is not a path.
            self.accepting[before] |= ends && index > 0;
            before = after;
            lead = if *segment == Segment::Tree { Label::Skip } else { Label::Char('/') };
        }
        self.accepting[before] = true;
    }

    fn segment(&mut self, at: usize, segment: &Segment, ends: bool) -> usize {
        match segment {
            Segment::Name(elements) => self.name(at, elements),
            Segment::Tree => {
                let within = self.after(at, Label::Set(ANY));
                self.edge(within, Label::Set(ANY), within);
                self.edge(within, Label::Char('/'), at);
                if ends { within } else { at }
            }
        }
    }

    fn name(&mut self, mut at: usize, elements: &[Element]) -> usize {
        for element in elements {
            match element {
                Element::Char(c) => at = self.after(at, Label::Char(*c)),
                Element::Star => self.edge(at, Label::Set(ANY), at),
                Element::Marks => self.edge(at, Label::Set(NON_ASCII), at),
                Element::One(one) => at = self.one(at, one),
            }
        }
        at
    }

    fn one(&mut self, from: usize, one: &One) -> usize {
        let to = self.state();
        if !one.plain.is_empty() {
            let label = self.set(&one.plain);
            self.edge(from, label, to);
        }
        if !one.marked.is_empty() {
            let label = self.set(&one.marked);
            let base = self.after(from, label);
            self.edge(base, Label::Set(NON_ASCII), to);
        }
        self.ligatures(from, one.ligatures, to);
        if one.movable {
            self.edge(from, Label::Skip, to);
        }
        if one.trailed || !one.marked.is_empty() {
            self.edge(to, Label::Set(NON_ASCII), to);
        }
        to
    }

    /// The accepted ligatures between two states; those with a common start share its states,
    /// because every `?` has them all.
    fn ligatures(&mut self, from: usize, accepted: u8, to: usize) {
        let mut starts: Vec<(&str, usize)> = vec![("", from)];
        let chosen = LIGATURES.iter().enumerate().filter(|(bit, _)| accepted & (1 << bit) != 0);
        for (_, ligature) in chosen {
            let mut at = from;
            for (index, c) in ligature.char_indices() {
                let end = index + c.len_utf8();
                if end == ligature.len() {
                    self.edge(at, Label::Char(c), to);
                    break;
                }
                let known = starts.iter().find(|(start, _)| *start == &ligature[..end]);
                at = match known {
                    Some((_, state)) => *state,
                    None => self.after(at, Label::Char(c)),
                };
                starts.push((&ligature[..end], at));
            }
        }
    }

    fn finish(mut self) -> Automaton {
        self.edges.sort_by_key(|(from, _, _)| *from);
        let states = self.accepting.len();
        let first = (0..=states)
            .map(|state| self.edges.partition_point(|(from, _, _)| *from < state))
            .collect();
        let edges = self.edges.into_iter().map(|(_, label, to)| (label, to)).collect();
        Automaton { accepting: self.accepting, first, edges, sets: self.sets }
    }
}

impl Automaton {
    pub(super) fn new<'a>(alternatives: impl Iterator<Item = &'a [Segment]>) -> Automaton {
        let mut builder = Builder {
            accepting: vec![false],
            edges: Vec::new(),
            sets: vec![CharSet::any(), CharSet::non_ascii()],
        };
        let mut known = Known::new();
        for segments in alternatives {
            builder.path(segments, &mut known);
        }
        builder.finish()
    }

    pub(super) fn states(&self) -> usize {
        self.accepting.len()
    }

    fn edges(&self, state: usize) -> &[(Label, usize)] {
        &self.edges[self.first[state]..self.first[state + 1]]
    }

    fn takes(&self, label: Label, c: char) -> bool {
        match label {
            Label::Skip => false,
            Label::Char(own) => own == c,
            Label::Set(set) => self.sets[set].has(c),
        }
    }

    pub(super) fn accepts(&self, key: &str) -> bool {
        self.any_accepting(&self.run(key))
    }

    /// Whether some accepted key is `folder` or lies below it.
    pub(super) fn reaches(&self, folder: &str) -> bool {
        if folder.is_empty() {
            return true;
        }
        let states = self.run(folder);
        self.any_accepting(&states) || !self.step(&states, '/').is_empty()
    }

    fn any_accepting(&self, states: &[usize]) -> bool {
        states.iter().any(|state| self.accepting[*state])
    }

    fn run(&self, key: &str) -> Vec<usize> {
        let mut states = self.start();
        for c in key.chars() {
            if states.is_empty() {
                break;
            }
            states = self.step(&states, c);
        }
        states
    }

    fn start(&self) -> Vec<usize> {
        let mut seen = Bits::new(self.states());
        self.close(vec![START], &mut seen)
    }

    fn step(&self, states: &[usize], c: char) -> Vec<usize> {
        let taken = states
            .iter()
            .flat_map(|state| self.edges(*state))
            .filter(|(label, _)| self.takes(*label, c))
            .map(|(_, to)| *to)
            .collect();
        let mut seen = Bits::new(self.states());
        self.close(taken, &mut seen)
    }

    /// The states reached without a character, sorted and each once.
    fn close(&self, mut open: Vec<usize>, seen: &mut Bits) -> Vec<usize> {
        let mut closed = Vec::with_capacity(open.len());
        while let Some(state) = open.pop() {
            if !seen.insert(state) {
                continue;
            }
            closed.push(state);
            for (label, to) in self.edges(state) {
                if *label == Label::Skip {
                    open.push(*to);
                }
            }
        }
        closed.sort_unstable();
        closed
    }

    /// Breadth first over pairs of states, so that the key found is a short one.
    pub(super) fn meet(&self, other: &Automaton) -> Meeting {
        let width = other.states();
        if self.states().saturating_mul(width) > OVERLAP_STATES_MAX {
            return Meeting::Unknown;
        }
        let mut seen = Bits::new(self.states() * width);
        seen.insert(START);
        let mut pairs = vec![Pair { left: START, right: START, from: 0, by: None }];
        let (mut at, mut steps) = (0, 0);
        while at < pairs.len() {
            let Pair { left, right, .. } = pairs[at];
            if self.accepting[left] && other.accepting[right] {
                return Meeting::At(spell(&pairs, at));
            }
            let mut visit = |left: usize, right: usize, by: Option<char>| {
                if seen.insert(left * width + right) {
                    pairs.push(Pair { left, right, from: at, by });
                }
            };
            skips(self.edges(left)).for_each(|to| visit(to, right, None));
            skips(other.edges(right)).for_each(|to| visit(left, to, None));
            for &(mine, left_to) in self.edges(left) {
                for &(theirs, right_to) in other.edges(right) {
                    steps += self.cost(mine) + other.cost(theirs);
                    if let Some(c) = self.common(mine, other, theirs) {
                        visit(left_to, right_to, Some(c));
                    }
                }
            }
            if steps > OVERLAP_STEPS_MAX {
                return Meeting::Unknown;
            }
            at += 1;
        }
        Meeting::Never
    }

    fn cost(&self, label: Label) -> usize {
        if let Label::Set(set) = label { self.sets[set].ranges().len() } else { 1 }
    }

    fn common(&self, mine: Label, other: &Automaton, theirs: Label) -> Option<char> {
        match (mine, theirs) {
            (Label::Skip, _) | (_, Label::Skip) => None,
            (Label::Char(c), _) => other.takes(theirs, c).then_some(c),
            (_, Label::Char(c)) => self.takes(mine, c).then_some(c),
            (Label::Set(a), Label::Set(b)) => self.sets[a].common(&other.sets[b]),
        }
    }

    /// Whether this accepts every key `other` does; false also when that costs too much to know.
    pub(super) fn includes(&self, other: &Automaton) -> bool {
        let letters = letters(self, other);
        let mut seen: BTreeSet<(usize, Vec<usize>)> = BTreeSet::new();
        let mut memo: BTreeMap<(Vec<usize>, char), Vec<usize>> = BTreeMap::new();
        let mut open = vec![(START, self.start())];
        let mut steps = 0;
        while let Some((state, mine)) = open.pop() {
            if other.accepting[state] && !self.any_accepting(&mine) {
                return false;
            }
            if !seen.insert((state, mine.clone())) {
                continue;
            }
            for &(label, to) in other.edges(state) {
                if label == Label::Skip {
                    open.push((to, mine.clone()));
                    continue;
                }
                for &letter in letters.iter().filter(|c| other.takes(label, **c)) {
                    steps += 1 + mine.len();
                    if steps > COVER_STEPS_MAX {
                        return false;
                    }
                    let next = memo
                        .entry((mine.clone(), letter))
                        .or_insert_with(|| self.step(&mine, letter));
                    if next.is_empty() {
                        return false;
                    }
                    open.push((to, next.clone()));
                }
            }
        }
        true
    }
}

struct Pair {
    left: usize,
    right: usize,
    from: usize,
    by: Option<char>,
}

fn spell(pairs: &[Pair], mut at: usize) -> String {
    let mut chars = Vec::new();
    // Pair 0 is the start, and every other pair comes after its origin.
    while at > 0 {
        chars.extend(pairs[at].by);
        at = pairs[at].from;
    }
    chars.iter().rev().collect()
}

fn skips(edges: &[(Label, usize)]) -> impl Iterator<Item = usize> {
    edges.iter().filter(|(label, _)| *label == Label::Skip).map(|(_, to)| *to)
}

/// One character of each kind the two automata tell apart: where any of their ranges begins, and
/// behind where it ends.
fn letters(left: &Automaton, right: &Automaton) -> Vec<char> {
    let mut letters = BTreeSet::from(['\u{1}']);
    for automaton in [left, right] {
        let singles = automaton.edges.iter().filter_map(|(label, _)| match label {
            Label::Char(c) => Some((*c, *c)),
            _ => None,
        });
        let ranges = automaton.sets.iter().flat_map(|set| set.ranges().iter().copied());
        for (low, high) in singles.chain(ranges) {
            letters.insert(low);
            letters.extend((high..=char::MAX).nth(1));
        }
    }
    letters.into_iter().collect()
}

struct Bits(Vec<u64>);

impl Bits {
    fn new(len: usize) -> Bits {
        Bits(vec![0; len.div_ceil(64)])
    }

    /// Whether the bit was not set before.
    fn insert(&mut self, at: usize) -> bool {
        let (word, bit) = (&mut self.0[at / 64], 1 << (at % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}
