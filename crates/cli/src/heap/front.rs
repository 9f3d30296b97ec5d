//! Small pieces for the first thread: cut off one after another, and kept in lists by size.
//!
//! Owns the front of the first pages, and the larger room that a process gets which stays. What
//! another thread lets go of stays unused: there is no more of it than both together. Invariants:
//! a piece is either with its user or in the one list of its size, and only the first thread that
//! ever asked reads or writes the lists.
#![expect(unsafe_code, reason = "an allocator hands out raw memory")]

use std::alloc::Layout;
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a `check` has in small pieces at the same time, and a little more.
pub(super) const FRONT_BYTES: usize = 44 * 1024;

/// What a server has in small pieces at the same time, and much more: pages that it does not touch
/// cost it nothing.
pub(super) const ROOM_BYTES: usize = 1024 * 1024;

/// Sizes are multiples of this, and so are addresses.
const STEP: usize = 16;
/// The largest size that is small.
const SMALL_MAX: usize = 1_024;
const SIZES: usize = SMALL_MAX / STEP + 1;

struct Front {
    /// Where the part begins that was never given out, and where it ends.
    next: usize,
    end: usize,
    /// What was given back, by size; each piece begins with the address of the next one, 0 ends.
    free: [usize; SIZES],
}

struct OfFirstThread(UnsafeCell<Front>);

// SAFETY: it is reached through `mine` only, which answers one single thread.
unsafe impl Sync for OfFirstThread {}

static FRONT: OfFirstThread =
    OfFirstThread(UnsafeCell::new(Front { next: 0, end: 0, free: [0; SIZES] }));

/// Where the front begins; before that, a place from which nothing lies within reach.
static START: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Where the room of a process that stays begins; before that, as above.
static ROOM: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Whether a first thread was found.
static FOUND: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_FIRST: Cell<bool> = const { Cell::new(false) };
}

/// The front, if this is the first thread.
#[inline]
fn mine() -> Option<*mut Front> {
    if IS_FIRST.get() || (!FOUND.load(Ordering::Relaxed) && become_first()) {
        return Some(FRONT.0.get());
    }
    None
}

#[cold]
fn become_first() -> bool {
    if FOUND.swap(true, Ordering::Relaxed) {
        return false;
    }
    let Some(start) = super::first_piece() else { return false };
    let start = start.expose_provenance();
    // SAFETY: `FOUND` lets one thread come here, once, and nobody has been told of the front yet.
    unsafe {
        let front = FRONT.0.get();
        (*front).next = start;
        (*front).end = start + FRONT_BYTES;
    }
    START.store(start, Ordering::Relaxed);
    IS_FIRST.set(true);
    true
}

/// A piece for this layout, unless it is not small, not for this thread, or none is left.
#[inline]
pub(super) fn take(layout: Layout) -> Option<*mut u8> {
    if layout.size() > SMALL_MAX || layout.align() > STEP {
        return None;
    }
    let front = mine()?;
    let size = layout.size().div_ceil(STEP);
    // SAFETY: only this thread has the front. A piece in a list is nobody's, it is in the front,
    // and its first word was written by `give_back`.
    unsafe {
        let kept = (*front).free[size];
        if kept != 0 {
            let piece: *mut u8 = std::ptr::with_exposed_provenance_mut(kept);
            (*front).free[size] = piece.cast::<usize>().read();
            return Some(piece);
        }
        let start = (*front).next;
        let after = start + size * STEP;
        if after > (*front).end {
            return None;
        }
        (*front).next = after;
        Some(std::ptr::with_exposed_provenance_mut(start))
    }
}

#[inline]
pub(super) fn owns(piece: *mut u8) -> bool {
    let behind = |start: &AtomicUsize| piece.addr().wrapping_sub(start.load(Ordering::Relaxed));
    behind(&START) < FRONT_BYTES || behind(&ROOM) < ROOM_BYTES
}

/// From here on pieces are cut from this room, which is [`ROOM_BYTES`] large and nobody else's.
/// Once, and for the first thread only; otherwise the room stays unused.
pub(super) fn move_to(room: *mut u8) {
    let Some(front) = mine() else { return };
    let start = room.expose_provenance();
    if ROOM.compare_exchange(usize::MAX, start, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: only this thread has the front. What was given back stays in its lists.
    unsafe {
        (*front).next = start;
        (*front).end = start + ROOM_BYTES;
    }
}

/// Whether a piece that was taken for `old` bytes also holds `new`.
#[inline]
pub(super) fn fits(old: usize, new: usize) -> bool {
    new.div_ceil(STEP) == old.div_ceil(STEP)
}

/// # Safety
///
/// `piece` was taken here for `size` bytes, and its user is done with it.
#[inline]
pub(super) unsafe fn give_back(piece: *mut u8, size: usize) {
    if !IS_FIRST.get() {
        return;
    }
    let front = FRONT.0.get();
    let size = size.div_ceil(STEP);
    // SAFETY: only this thread has the front; the piece is nobody's now and holds at least a word.
    unsafe {
        piece.cast::<usize>().write((*front).free[size]);
        (*front).free[size] = piece.expose_provenance();
    }
}
