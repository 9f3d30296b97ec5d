//! Random takers and givers of memory, on several threads, who fill what they have.
//!
//! A byte that was given out twice is seen when either of its users looks at it again. Runs on
//! every Linux build, although only the static binary uses this heap.
#![expect(unsafe_code, reason = "an allocator is tried through its own trait")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::mpsc;

use super::Heap;

const THREADS: u8 = 4;
const ACTS: usize = 20_000;
const PIECES_MAX: usize = 300;

/// A piece of memory and the byte that all of it must hold.
struct Piece {
    address: usize,
    layout: Layout,
    mark: u8,
}

impl Piece {
    fn new(layout: Layout, mark: u8, zeroed: bool) -> Self {
        // SAFETY: the size is not zero.
        let start = match zeroed {
            true => unsafe { Heap.alloc_zeroed(layout) },
            false => unsafe { Heap.alloc(layout) },
        };
        assert!(!start.is_null() && start.addr().is_multiple_of(layout.align()));
        let piece = Self { address: start.expose_provenance(), layout, mark };
        if zeroed {
            piece.holds(0);
        }
        piece.fill()
    }

    fn start(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    fn fill(self) -> Self {
        // SAFETY: the piece is ours and so large.
        unsafe { self.start().write_bytes(self.mark, self.layout.size()) };
        self
    }

    fn holds(&self, mark: u8) {
        // SAFETY: the piece is ours, so large, and all of it was written.
        let bytes = unsafe { std::slice::from_raw_parts(self.start(), self.layout.size()) };
        assert!(bytes.iter().all(|byte| *byte == mark), "somebody else wrote here");
    }

    fn resized(self, size: usize) -> Self {
        self.holds(self.mark);
        // SAFETY: the piece came from this heap with this layout; the new size is not zero.
        let start = unsafe { Heap.realloc(self.start(), self.layout, size) };
        assert!(!start.is_null());
        let kept = Layout::from_size_align(self.layout.size().min(size), self.layout.align());
        let address = start.expose_provenance();
        Self { address, layout: kept.unwrap(), mark: self.mark }.holds(self.mark);
        let layout = Layout::from_size_align(size, self.layout.align()).unwrap();
        Self { address, layout, mark: self.mark }.fill()
    }

    fn free(self) {
        self.holds(self.mark);
        // SAFETY: the piece came from this heap with this layout, and is not used again.
        unsafe { Heap.dealloc(self.start(), self.layout) };
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// Mostly small, as programs are.
    fn size(&mut self) -> usize {
        match self.below(10) {
            0 => 1 + self.below(40_000),
            1..=3 => 1 + self.below(2_000),
            _ => 1 + self.below(120),
        }
    }
}

/// Takes, resizes and gives back at random; now and then a piece goes to another thread.
fn live(number: u8, heard: &mpsc::Receiver<Piece>, others: &[mpsc::Sender<Piece>]) {
    let mut dice = Dice(u64::from(number) * 0x9e37_79b9 + 7);
    let mut pieces: Vec<Piece> = Vec::new();
    for act in 0..ACTS {
        pieces.extend(heard.try_iter());
        if act == ACTS / 2 {
            super::stay();
        }
        let mark = u8::try_from(act % 251).unwrap();
        match dice.below(8) {
            0..=3 if pieces.len() < PIECES_MAX => {
                let align = 1 << dice.below(7);
                let layout = Layout::from_size_align(dice.size(), align).unwrap();
                pieces.push(Piece::new(layout, mark, dice.below(4) == 0));
            }
            _ if pieces.is_empty() => {}
            4 => {
                let piece = pieces.swap_remove(dice.below(pieces.len()));
                pieces.push(piece.resized(dice.size()));
            }
            5 => {
                let piece = pieces.swap_remove(dice.below(pieces.len()));
                if let Err(back) = others[dice.below(others.len())].send(piece) {
                    pieces.push(back.0);
                }
            }
            _ => pieces.swap_remove(dice.below(pieces.len())).free(),
        }
    }
    pieces.into_iter().for_each(Piece::free);
}

#[test]
fn no_byte_is_given_out_twice() {
    let (tell, hear): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel()).unzip();
    std::thread::scope(|scope| {
        for (number, heard) in (0..THREADS).zip(hear) {
            let others = tell.clone();
            scope.spawn(move || live(number, &heard, &others));
        }
    });
}
