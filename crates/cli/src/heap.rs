//! Memory for a process that lives a millisecond.
//!
//! Every page that is touched for the first time costs a page fault, about two microseconds where
//! the machine is virtual. Here the first pages come in one piece that the kernel fills in at once.
//! Small pieces for the first thread are cut from the front of it without a lock and without
//! searching; a general allocator with its lock cost a fifth of the instructions of a `check`.
//! Everything else is dlmalloc's, which begins with the rest. Invariants: no byte is given out
//! twice, and only the first thread ever touches the front's lists.
#![expect(unsafe_code, reason = "a global allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use front::{FRONT_BYTES, ROOM_BYTES};

mod front;
#[cfg(test)]
mod tests;

/// What a `check` needs. Pages that nobody touches would cost as much as the faults they save.
const FIRST_BYTES: usize = 112 * 1024;

#[derive(Debug)]
pub(crate) struct Heap;

static HEAP: Mutex<Dlmalloc<Pages>> = Mutex::new(Dlmalloc::new_with_allocator(Pages));

/// Of the first piece, what is behind the front, until dlmalloc takes it.
static REST: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

impl Heap {
    fn lock() -> MutexGuard<'static, Dlmalloc<Pages>> {
        HEAP.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: the front and dlmalloc keep the contract of the trait each, the lock keeps threads apart
// in dlmalloc, and the address of a piece tells whose it is.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(piece) = front::take(layout) {
            return piece;
        }
        // SAFETY: the caller gives a layout of non-zero size, as the trait demands.
        unsafe { Self::lock().malloc(layout.size(), layout.align()) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if let Some(piece) = front::take(layout) {
            // SAFETY: the piece is at least as large as asked for, and nobody else has it.
            unsafe { piece.write_bytes(0, layout.size()) };
            return piece;
        }
        // SAFETY: as above.
        unsafe { Self::lock().calloc(layout.size(), layout.align()) }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if front::owns(piece) {
            // SAFETY: it lies in the front, so it was taken there, with this layout.
            return unsafe { front::give_back(piece, layout.size()) };
        }
        // SAFETY: the piece came from dlmalloc with this layout.
        unsafe { Self::lock().free(piece, layout.size(), layout.align()) }
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !front::owns(piece) {
            // SAFETY: the piece came from dlmalloc with this layout.
            return unsafe { Self::lock().realloc(piece, layout.size(), layout.align(), size) };
        }
        if front::fits(layout.size(), size) {
            return piece;
        }
        // SAFETY: the caller gives a size that makes a layout; both pieces are as large as what is
        // copied, and the new one is nobody else's.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(piece, size.min(layout.size()));
                self.dealloc(piece, layout);
            }
            moved
        }
    }
}

/// For a process that stays: its small pieces come without a lock also when there are many.
pub(crate) fn stay() {
    if let Some(room) = map(ROOM_BYTES, MapFlags::PRIVATE) {
        front::move_to(room);
    }
}

/// The first piece, once: its front is returned, its rest is left for dlmalloc.
fn first_piece() -> Option<*mut u8> {
    let start = map(FIRST_BYTES, MapFlags::PRIVATE | MapFlags::POPULATE)?;
    REST.store(start.wrapping_add(FRONT_BYTES), Ordering::Release);
    Some(start)
}

fn map(size: usize, flags: MapFlags) -> Option<*mut u8> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses a place that nothing else uses.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), size, access, flags) };
    start.ok().map(<*mut _>::cast)
}

struct Pages;

// SAFETY: every region is a fresh mapping of the kernel or the rest of the first one, which is
// given out once, and only whole regions go back.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        const REST_BYTES: usize = FIRST_BYTES - FRONT_BYTES;
        if size <= REST_BYTES {
            let rest = REST.swap(std::ptr::null_mut(), Ordering::Acquire);
            if !rest.is_null() {
                return (rest, REST_BYTES, 0);
            }
        }
        map(size, MapFlags::PRIVATE).map_or((std::ptr::null_mut(), 0, 0), |start| (start, size, 0))
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        std::ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, start: *mut u8, size: usize) -> bool {
        // SAFETY: dlmalloc gives back a whole region that nobody uses any more.
        unsafe { munmap(start.cast(), size) }.is_ok()
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}
