//! Memory for a process that lives a millisecond.
//!
//! Every page that is touched for the first time costs a page fault, about two microseconds where
//! the machine is virtual. Here the first pages come in one piece that the kernel fills in at once,
//! and what more is needed comes as usual. Owns where the memory comes from, and refuses to know
//! how it is cut up: that is dlmalloc's. Invariant: no page is given out twice.
#![expect(unsafe_code, reason = "a global allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// What a `check` needs. Pages that nobody touches would cost as much as the faults they save.
const FIRST_BYTES: usize = 160 * 1024;

#[derive(Debug)]
pub(crate) struct Heap;

static HEAP: Mutex<Dlmalloc<Pages>> =
    Mutex::new(Dlmalloc::new_with_allocator(Pages { started: AtomicBool::new(false) }));

impl Heap {
    fn lock() -> MutexGuard<'static, Dlmalloc<Pages>> {
        HEAP.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: dlmalloc keeps the contract of the trait, and the lock keeps threads apart.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller gives a layout of non-zero size, as the trait demands.
        unsafe { Self::lock().malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { Self::lock().calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: the piece came from `alloc` with this layout.
        unsafe { Self::lock().free(piece, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { Self::lock().realloc(piece, layout.size(), layout.align(), size) }
    }
}

struct Pages {
    started: AtomicBool,
}

// SAFETY: every region is a fresh mapping of the kernel, and only whole regions go back.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let (size, flags) = match self.started.swap(true, Ordering::Relaxed) {
            false => (size.max(FIRST_BYTES), MapFlags::PRIVATE | MapFlags::POPULATE),
            true => (size, MapFlags::PRIVATE),
        };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place that nothing else uses.
        match unsafe { mmap_anonymous(std::ptr::null_mut(), size, access, flags) } {
            Ok(start) => (start.cast(), size, 0),
            Err(_) => (std::ptr::null_mut(), 0, 0),
        }
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
