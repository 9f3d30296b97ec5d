//! Inputs that nobody would write, made out of those that somebody did.
//!
//! Owns the making: pieces of known inputs are cut, doubled, exchanged and spoiled, by a seed that
//! is told when something breaks. A short run is part of every test run; `cargo xtask fuzz` makes a
//! long one. Without coverage to guide it, what is known decides what is found: add every input
//! that ever broke something.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// How long each target runs, in seconds.
pub const SECONDS: &str = "BATON_FUZZ_SECONDS";
const SECONDS_DEFAULT: f64 = 1.0;
/// One seed instead of many: the one that a failure named.
pub const SEED: &str = "BATON_FUZZ_SEED";
const INPUT_BYTES_MAX: usize = 64 * 1024;
const CHANGES_MAX: u64 = 8;

/// Values at which programs break.
const ODD: &[&[u8]] = &[
    b"",
    b"\0",
    b"\n",
    b"\r\n",
    b"\\",
    b"\"",
    b"'",
    b"`",
    b"$(",
    b"{",
    b"}",
    b"[",
    b"]",
    b"null",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"true",
    b"\xff\xfe",
    "\u{202e}é".as_bytes(),
    b"../",
    b"\\u0000",
    b"\\ud800",
    b"*** ",
    b"@@",
    b"<<EOF",
    b"&&",
    b"|",
    b";",
];

/// Calls `target` with inputs made of `known` until the time is over. Returns how many.
///
/// # Panics
/// When the target does; the seed of the input is printed before.
pub fn run(name: &str, known: &[&[u8]], target: impl Fn(&[u8])) -> u64 {
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok());
    let until = Instant::now() + Duration::from_secs_f64(seconds.unwrap_or(SECONDS_DEFAULT));
    let only: Option<u64> = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
    // Known inputs as they are come first.
    known.iter().for_each(|input| target(input));
    let first = only.unwrap_or_else(|| u64::from(std::process::id()) << 32);
    let mut seed = first;
    while only.is_some() && seed == first || only.is_none() && Instant::now() < until {
        let input = made(known, seed);
        if let Err(broken) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
            eprintln!("{name} broke: {SEED}={seed} makes {:?}", String::from_utf8_lossy(&input));
            resume_unwind(broken);
        }
        seed += 1;
    }
    seed - first
}

fn made(known: &[&[u8]], seed: u64) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut input = dice.one_of(known).to_vec();
    for _ in 0..=dice.below(CHANGES_MAX) {
        let (from, to) = dice.range(input.len());
        match dice.below(7) {
            0 => drop(input.drain(from..to)),
            1 => insert(&mut input, from, dice.one_of(ODD)),
            2 => drop(input.splice(from..to, dice.one_of(ODD).iter().copied())),
            3 => {
                let piece = input[from..to].to_vec();
                insert(&mut input, from, &piece);
            }
            4 => {
                let other = dice.one_of(known);
                let (begin, end) = dice.range(other.len());
                drop(input.splice(from..to, other[begin..end].iter().copied()));
            }
            5 => input.truncate(from),
            _ => {
                let bit = 1 << dice.below(8);
                input.get_mut(from).into_iter().for_each(|byte| *byte ^= bit);
            }
        }
        input.truncate(INPUT_BYTES_MAX);
    }
    input
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    drop(input.splice(at..at, piece.iter().copied()));
}

/// `SplitMix64`: the same seed is the same input, on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn place(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap_or(0)
    }

    /// Two places in order, mostly close to each other.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let from = self.place(length + 1);
        let most = if self.below(4) == 0 { length - from } else { (length - from).min(16) };
        (from, from + self.place(most + 1))
    }

    fn one_of<'k>(&mut self, known: &[&'k [u8]]) -> &'k [u8] {
        known.get(self.place(known.len())).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_breaks_is_found_and_the_same_seed_makes_the_same() {
        let known: &[&[u8]] = &[b"a harmless text", b"another one"];
        let broken = catch_unwind(|| run("test", known, |input| assert!(!input.contains(&b'{'))));
        assert!(broken.is_err());
        assert_eq!(made(known, 7), made(known, 7));
        assert_ne!(made(known, 7), made(known, 8));
    }
}
