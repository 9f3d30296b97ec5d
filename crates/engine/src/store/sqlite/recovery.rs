//! How much of the log this process had to read before it could use the store.
//!
//! The first to open a store reads and sums every page in the log; who comes while others have it
//! open reads none. SQLite says so in its own log only, so this listens to that. Owns the last
//! number heard, a hint: it decides when the log is emptied and nothing else.
#![expect(unsafe_code, reason = "SQLite tells its log to a C function")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::ffi;

static PAGES: AtomicU32 = AtomicU32::new(0);
static ONCE: Once = Once::new();

/// Before the first connection is opened; later calls do nothing.
pub(super) fn listen() {
    ONCE.call_once(|| {
        let hear: unsafe extern "C" fn(*mut c_void, c_int, *const c_char) = hear;
        // SAFETY: the function is as SQLite wants it and lives for ever. SQLite refuses the call,
        // and nothing changes, when it has been started already.
        unsafe {
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_LOG, hear, std::ptr::null_mut::<c_void>());
        }
    });
}

/// The pages read since this was last asked.
pub(super) fn pages_read() -> u32 {
    PAGES.swap(0, Ordering::Relaxed)
}

/// "recovered 880 frames from WAL file …"
unsafe extern "C" fn hear(_: *mut c_void, code: c_int, message: *const c_char) {
    if code != ffi::SQLITE_NOTICE_RECOVER_WAL || message.is_null() {
        return;
    }
    // SAFETY: SQLite gives a text that ends with a zero and stays until this returns.
    let message = unsafe { CStr::from_ptr(message) }.to_bytes();
    let digits = message.iter().skip_while(|byte| !byte.is_ascii_digit());
    let pages = digits
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_u32, |sum, digit| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0')));
    PAGES.store(pages, Ordering::Relaxed);
}
