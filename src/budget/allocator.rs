//! An allocator that counts what each thread holds.
//!
//! Layer: budget. The system's allocator does the work.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated less those that it has freed. What another thread frees makes its own negative.
    static NET: Cell<i64> = const { Cell::new(0) };
    /// The most that [`NET`] was since [`set_most`].
    static MOST: Cell<i64> = const { Cell::new(0) };
    /// Checks until one fails as if memory had run out, for tests.
    static INJECTED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The system's allocator, and a count of bytes for each thread. A program installs it with `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

#[inline]
fn add(bytes: i64) {
    // No cell has a destructor, so all can be reached as long as the thread runs.
    let net = NET.get().wrapping_add(bytes);
    NET.set(net);
    if net > MOST.get() {
        MOST.set(net);
    }
}

// SAFETY: every call goes to `System` with the same arguments, and its result is returned as it is. Counting allocates nothing and does
// not unwind: a `Cell` in a thread-local without a destructor. Test: `it_counts_what_a_thread_holds`, and all others of this crate run on it.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: as in `alloc`; `at` came from `System`.
        unsafe { System.dealloc(at, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as i64 - layout.size() as i64);
        // SAFETY: as in `dealloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Bytes that this thread holds. 0 for ever where [`CountingAllocator`] is not installed.
#[inline]
pub(super) fn net() -> i64 {
    NET.get()
}

/// Sets what [`net`] says of this thread.
pub(super) fn set_net(bytes: i64) {
    NET.set(bytes);
}

/// The most that [`net`] was on this thread since the last [`set_most`].
pub(super) fn most() -> i64 {
    MOST.get()
}

/// Sets what [`most`] says of this thread.
pub(super) fn set_most(bytes: i64) {
    MOST.set(bytes);
}

/// Lets a check of this thread fail after `checks` others, or none.
#[cfg(test)]
pub fn inject(checks: Option<u64>) {
    INJECTED.set(checks);
}

/// Whether this check is to fail. Costs a load where none is.
#[inline]
pub(super) fn injected() -> bool {
    match INJECTED.get() {
        None => false,
        Some(0) => true,
        Some(n) => {
            INJECTED.set(Some(n - 1));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_what_a_thread_holds() {
        let before = net();
        let mut bytes = vec![0u8; 1 << 20];
        assert_eq!(net() - before, 1 << 20);
        bytes.reserve_exact(3 << 20);
        assert_eq!(net() - before, 4 << 20);
        drop(bytes);
        assert_eq!(net(), before);
    }

    #[test]
    fn what_another_thread_frees_is_counted_there() {
        let bytes = vec![0u8; 1 << 20];
        let before = net();
        let theirs = std::thread::spawn(move || {
            let start = net();
            drop(bytes);
            net() - start
        });
        assert_eq!(theirs.join().unwrap(), -(1 << 20));
        assert!((net() - before).abs() < 4096);
    }
}
