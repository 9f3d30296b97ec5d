//! SQLite's memory from Rust's allocator.
//!
//! In the static binary SQLite would use musl's allocator, which asks the kernel for a few pages
//! at a time and gives them back as soon as it can: a hundred system calls in a call that lives
//! for a millisecond. Owns the four functions SQLite calls instead.
#![expect(unsafe_code, reason = "SQLite takes its allocator as C functions")]

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::ffi::{c_int, c_void};
use std::sync::Once;

use rusqlite::ffi;

/// In front of every piece: its size, which `xSize` must tell. Keeps the alignment of 16 bytes that
/// SQLite may expect.
const HEADER: usize = 16;

static ONCE: Once = Once::new();

/// Before the first connection is opened; later calls do nothing.
pub(super) fn install() {
    ONCE.call_once(|| {
        let methods = ffi::sqlite3_mem_methods {
            xMalloc: Some(allocate),
            xFree: Some(free),
            xRealloc: Some(resize),
            xSize: Some(size),
            xRoundup: Some(round_up),
            xInit: Some(start),
            xShutdown: Some(stop),
            pAppData: std::ptr::null_mut(),
        };
        // SAFETY: SQLite copies the table. It refuses the call, and nothing changes, when it has
        // been started already.
        unsafe {
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw const methods);
        }
    });
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(HEADER)?, HEADER).ok()
}

unsafe extern "C" fn allocate(bytes: c_int) -> *mut c_void {
    let Some((bytes, layout)) = usize::try_from(bytes).ok().and_then(|n| Some((n, layout(n)?)))
    else {
        return std::ptr::null_mut();
    };
    // SAFETY: the layout is never empty, and the header lies within what was allocated.
    unsafe {
        let start = alloc(layout);
        if start.is_null() {
            return std::ptr::null_mut();
        }
        start.cast::<usize>().write(bytes);
        start.add(HEADER).cast()
    }
}

unsafe extern "C" fn free(piece: *mut c_void) {
    if piece.is_null() {
        return;
    }
    // SAFETY: SQLite gives back only what `allocate` or `resize` gave it.
    unsafe {
        let start = piece.cast::<u8>().sub(HEADER);
        if let Some(layout) = layout(start.cast::<usize>().read()) {
            dealloc(start, layout);
        }
    }
}

unsafe extern "C" fn resize(piece: *mut c_void, bytes: c_int) -> *mut c_void {
    let Ok(bytes) = usize::try_from(bytes) else {
        return std::ptr::null_mut();
    };
    // SAFETY: as for `free`; the new size is checked by `layout` before it is used.
    unsafe {
        let start = piece.cast::<u8>().sub(HEADER);
        let (Some(old), Some(new)) = (layout(start.cast::<usize>().read()), layout(bytes)) else {
            return std::ptr::null_mut();
        };
        let moved = realloc(start, old, new.size());
        if moved.is_null() {
            return std::ptr::null_mut();
        }
        moved.cast::<usize>().write(bytes);
        moved.add(HEADER).cast()
    }
}

unsafe extern "C" fn size(piece: *mut c_void) -> c_int {
    if piece.is_null() {
        return 0;
    }
    // SAFETY: as for `free`.
    let bytes = unsafe { piece.cast::<u8>().sub(HEADER).cast::<usize>().read() };
    c_int::try_from(bytes).unwrap_or(c_int::MAX)
}

unsafe extern "C" fn round_up(bytes: c_int) -> c_int {
    bytes.saturating_add(7) & !7
}

unsafe extern "C" fn start(_: *mut c_void) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn stop(_: *mut c_void) {}
