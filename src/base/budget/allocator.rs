//! An allocator that counts what each thread holds, and asks for large pages for large allocations.
//!
//! Layer: budget. The system's allocator does the work.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated, less those that it has freed. It becomes negative if the thread frees what others have allocated.
    static NET: Cell<i64> = const { Cell::new(0) };
    /// The highest value of [`NET`] since [`set_peak`].
    static PEAK: Cell<i64> = const { Cell::new(0) };
    /// Number of checks until one fails as if memory had run out, for tests.
    static INJECTED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The system's allocator with a count of bytes for each thread. A program installs it with `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

/// From this size on, allocations are placed in large pages. Tables of packets and ports are accessed in no particular order, and with small pages most
/// accesses must look up an address first. Smaller allocations would fill too few large pages.
const LARGE_BYTES: usize = 8 << 20;

/// The alignment that the system provides without a request. To grow an allocation with a greater alignment, it copies it, and so fills small pages before
/// large ones can be requested.
const SMALL_ALIGN: usize = 16;

/// Asks the system to place an allocation of `bytes` bytes in large pages. The system may refuse.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
#[cold]
fn use_large_pages(pointer: *mut u8, bytes: usize) {
    /// The smallest page size of any Linux, or a divisor of it.
    const PAGE: usize = 4096;
    if pointer.is_null() {
        return;
    }
    // The range begins with the page that holds the notes of the system's allocator before a large allocation, and ends where its mapping ends. Without that
    // page the kernel would split the mapping in two. It can only move whole mappings (`mremap`), so growing an allocation would need a copy besides the old
    // one.
    let bytes_before = pointer.addr() % PAGE;
    // SAFETY: the pages belong to an allocation that was just made, and to its neighbours at both ends. The advice only changes which pages hold them, and a
    // refusal does no harm. Tests: `a_large_allocation_is_as_any_other`, `a_large_allocation_is_one_mapping`.
    unsafe {
        libc::madvise(pointer.wrapping_sub(bytes_before).cast(), bytes + bytes_before, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn use_large_pages(_pointer: *mut u8, _bytes: usize) {}

#[inline]
fn large(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if bytes >= LARGE_BYTES {
        use_large_pages(pointer, bytes);
    }
    pointer
}

#[inline]
fn add(bytes: i64) {
    // No cell has a destructor, so all of them can be used as long as the thread runs.
    let net = NET.get().wrapping_add(bytes);
    NET.set(net);
    if net > PEAK.get() {
        PEAK.set(net);
    }
}

// SAFETY: every call goes to `System` with the same arguments, except that `realloc` sometimes copies by itself, and its result is returned unchanged. Advice
// about pages moves nothing. Counting uses a `Cell` in a thread-local without a destructor, so it allocates nothing and does not unwind. Test:
// `it_counts_what_a_thread_holds`; all other tests of this crate run on it too.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is that of `System`.
        large(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: as in `alloc`.
        large(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: as in `alloc`; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size >= LARGE_BYTES && layout.align() > SMALL_ALIGN {
            // SAFETY: the new layout has a valid alignment, and the caller's contract bounds its size. The copied bytes fit into both allocations, and the old
            // one is freed once, with its own layout.
            unsafe {
                let target = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !target.is_null() {
                    std::ptr::copy_nonoverlapping(pointer, target, layout.size().min(size));
                    self.dealloc(pointer, layout);
                }
                return target;
            }
        }
        add(size as i64 - layout.size() as i64);
        // SAFETY: as in `dealloc`.
        large(unsafe { System.realloc(pointer, layout, size) }, size)
    }
}

/// Returns free memory to the system. The system's allocator keeps what each thread has freed, and blocks that threads pass to each other end up between free
/// ones: after hundreds of large experiments, as much is kept as is in use.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn give_back() {
    // SAFETY: the call moves nothing and is allowed at any time from any thread, and its result does not matter. Test: `what_is_free_can_be_given_back`.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Does nothing: other systems have no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}

/// Returns the number of bytes that this thread holds. It stays 0 if [`CountingAllocator`] is not installed.
#[inline]
pub(super) fn net() -> i64 {
    NET.get()
}

/// Sets what [`net`] returns on this thread.
pub(super) fn set_net(bytes: i64) {
    NET.set(bytes);
}

/// Returns the highest value of [`net`] on this thread since the last [`set_peak`].
pub(super) fn peak() -> i64 {
    PEAK.get()
}

/// Sets what [`peak`] returns on this thread.
pub(super) fn set_peak(bytes: i64) {
    PEAK.set(bytes);
}

/// Makes a check on this thread fail after `checks` others, or none. Tests try with it what memory that runs out leaves behind.
pub fn inject(checks: Option<u64>) {
    INJECTED.set(checks);
}

/// Whether this check should fail. It costs one load if no failure is asked for.
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
        let net_before = net();
        let mut bytes = vec![0u8; 1 << 20];
        assert_eq!(net() - net_before, 1 << 20);
        bytes.reserve_exact(3 << 20);
        assert_eq!(net() - net_before, 4 << 20);
        drop(bytes);
        assert_eq!(net(), net_before);
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

    /// The kernel only moves whole mappings. If an allocation were split over two, growing it would need a copy besides the old rows.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn a_large_allocation_is_one_mapping() {
        for bytes in [16 * LARGE_BYTES, 5 * LARGE_BYTES + 12_345, 8 * LARGE_BYTES - 16] {
            let some = vec![1u8; bytes];
            // The range includes the notes of the system's allocator before the allocation.
            let (first, end) = (some.as_ptr().addr() - 16, some.as_ptr().addr() + bytes);
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let parts = maps.lines().filter(|line| {
                let (first_address, end_address) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
                let address = |text| usize::from_str_radix(text, 16).unwrap();
                address(first_address) < end && first < address(end_address)
            });
            assert_eq!(parts.count(), 1, "{bytes} bytes");
        }
    }

    /// Small free allocations between others that are in use: unless they are given back, their pages stay with the process.
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
        // 2 of 128 MiB are in use. Other tests may allocate memory in the meantime.
        assert!(left + (64 << 20) < full, "{left} of {full} bytes");
        assert_eq!(some.iter().flatten().count(), 128);
    }

    #[test]
    fn what_another_thread_frees_is_counted_there() {
        let bytes = vec![0u8; 1 << 20];
        let net_before = net();
        let theirs = std::thread::spawn(move || {
            let start = net();
            drop(bytes);
            net() - start
        });
        assert_eq!(theirs.join().unwrap(), -(1 << 20));
        assert!((net() - net_before).abs() < 4096);
    }
}
