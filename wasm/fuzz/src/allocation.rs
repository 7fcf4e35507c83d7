//! An allocator that refuses to give out more than a limit, and knows the most that was in use.
//!
//! Per thread, so that tests beside each other do not count for each other.

#![expect(unsafe_code, reason = "an allocator is a trait of unsafe functions")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Forwards to the system's allocator.
pub struct Limited;

thread_local! {
    /// Bytes in use. What another thread took and this one gives back makes it smaller than it is.
    static IN_USE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static LIMIT: Cell<isize> = const { Cell::new(isize::MAX) };
}

/// Runs `body` and returns the most bytes that it had in use at once, those it asked for in vain included. A request beyond `limit`
/// fails, as it does where memory is short.
pub fn most_in_use<T>(limit: usize, body: impl FnOnce() -> T) -> (T, usize) {
    let before = IN_USE.get();
    MOST.set(before);
    LIMIT.set(before.saturating_add_unsigned(limit));
    let out = body();
    LIMIT.set(isize::MAX);
    (out, usize::try_from(MOST.get() - before).unwrap_or(0))
}

fn take(bytes: usize) -> bool {
    let wanted = IN_USE.get().saturating_add_unsigned(bytes);
    MOST.set(MOST.get().max(wanted));
    let is_given = wanted <= LIMIT.get();
    if is_given {
        IN_USE.set(wanted);
    }
    is_given
}

fn give_back(bytes: usize) {
    IN_USE.set(IN_USE.get().saturating_sub_unsigned(bytes));
}

// SAFETY: every call goes to the system's allocator with the arguments it was made with, or fails with null.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !take(size) {
            return std::ptr::null_mut();
        }
        give_back(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}
