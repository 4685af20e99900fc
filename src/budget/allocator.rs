//! An allocator that counts what each thread holds, and asks for large pages where much is held at once.
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

/// From this size on, an allocation is to lie in large pages: tables of packets and ports are walked in no order, and with small pages most of
/// these walks look up an address first. Smaller ones would fill too few.
const LARGE_BYTES: usize = 8 << 20;

/// The alignment that the system gives without being asked. With a greater one it grows an allocation by a copy, which fills small pages before
/// anything can be asked of it.
const SMALL_ALIGN: usize = 16;

/// Asks the system to put the allocation of `bytes` at `at` into large pages. It is free not to.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
#[cold]
fn use_large_pages(at: *mut u8, bytes: usize) {
    /// The least size of a page on every Linux, or a part of it.
    const PAGE: usize = 4096;
    if at.is_null() {
        return;
    }
    // The range begins with the page that holds what the system's allocator notes before a large allocation, and ends with its mapping.
    // Without that page the kernel would have two mappings. It moves only whole ones (`mremap`), so rows would grow by a copy beside them.
    let before = at.addr() % PAGE;
    // SAFETY: the pages are those of an allocation that was just made and their neighbours' at both ends; the advice changes nothing but which
    // pages hold them. A refusal is of no consequence. Tests: `a_large_allocation_is_as_any_other`, `a_large_allocation_is_one_mapping`.
    unsafe {
        libc::madvise(at.wrapping_sub(before).cast(), bytes + before, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn use_large_pages(_at: *mut u8, _bytes: usize) {}

#[inline]
fn large(at: *mut u8, bytes: usize) -> *mut u8 {
    if bytes >= LARGE_BYTES {
        use_large_pages(at, bytes);
    }
    at
}

#[inline]
fn add(bytes: i64) {
    // No cell has a destructor, so all can be reached as long as the thread runs.
    let net = NET.get().wrapping_add(bytes);
    NET.set(net);
    if net > MOST.get() {
        MOST.set(net);
    }
}

// SAFETY: every call goes to `System`, with the same arguments but where `realloc` copies by itself, and its result is returned as it is. Advice on
// pages moves nothing. Counting allocates nothing and does not unwind: a `Cell` in a thread-local without a destructor. Test: `it_counts_what_a_thread_holds`, and all others of this crate run on it.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, which is `System`'s.
        large(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: as in `alloc`.
        large(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: as in `alloc`; `at` came from `System`.
        unsafe { System.dealloc(at, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size >= LARGE_BYTES && layout.align() > SMALL_ALIGN {
            // SAFETY: the new layout has the alignment of a valid one and a size that the caller's contract bounds; what is copied fits into both,
            // and the old allocation is given back once, with its own layout.
            unsafe {
                let to = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !to.is_null() {
                    std::ptr::copy_nonoverlapping(at, to, layout.size().min(size));
                    self.dealloc(at, layout);
                }
                return to;
            }
        }
        add(size as i64 - layout.size() as i64);
        // SAFETY: as in `dealloc`.
        large(unsafe { System.realloc(at, layout, size) }, size)
    }
}

/// Gives memory that is free back to the system. Its allocator keeps for each thread what that thread has freed, and what threads hand to each other comes
/// to lie between: after hundreds of large experiments as much again as is in use.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn give_back() {
    // SAFETY: it moves nothing and may be called at any time, by any thread. What it says is of no consequence. Test: `what_is_free_can_be_given_back`.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}

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
    fn a_large_allocation_is_as_any_other() {
        let bytes = 3 * LARGE_BYTES + 5;
        let mut some = vec![0u8; bytes];
        assert!(some.iter().all(|&b| b == 0));
        some[bytes - 1] = 7;
        some.resize(2 * bytes, 1);
        assert_eq!((some[0], some[bytes - 1], some[bytes], some[2 * bytes - 1]), (0, 7, 1, 1));
        some.truncate(bytes);
        some.shrink_to_fit();
        assert_eq!((some.len(), some[bytes - 1]), (bytes, 7));
    }

    /// The kernel moves whole mappings only; of parts of two it would be asked in vain, and growing would take a copy beside the old rows.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn a_large_allocation_is_one_mapping() {
        for bytes in [16 * LARGE_BYTES, 5 * LARGE_BYTES + 12_345, 8 * LARGE_BYTES - 16] {
            let some = vec![1u8; bytes];
            // With what the system's allocator notes before it.
            let (first, end) = (some.as_ptr().addr() - 16, some.as_ptr().addr() + bytes);
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let parts = maps.lines().filter(|line| {
                let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
                let address = |text| usize::from_str_radix(text, 16).unwrap();
                address(from) < end && first < address(to)
            });
            assert_eq!(parts.count(), 1, "{bytes} bytes");
        }
    }

    /// Small allocations that others lie between: without being asked for, their pages stay with the process.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn what_is_free_can_be_given_back() {
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
        };
        let mut some: Vec<Option<Vec<u8>>> = (0..8192).map(|_| Some(vec![1u8; 16 << 10])).collect();
        let full = resident();
        some.iter_mut().enumerate().filter(|(i, _)| i % 64 != 0).for_each(|(_, bytes)| *bytes = None);
        give_back();
        let left = resident();
        // Of 128 MiB 2 are in use; other tests allocate meanwhile.
        assert!(left + (64 << 20) < full, "{left} of {full} bytes");
        assert_eq!(some.iter().flatten().count(), 128);
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
