//! Asks the processor for rows before they are needed, so that several are fetched from memory at once.
//!
//! Layer: beside `units`. Knows nothing of what rows hold; changes no value.

/// Starts to fetch row `i` of `rows` into the processor's caches. No such row: nothing happens.
#[inline]
pub fn row<T>(rows: &[T], i: u32) {
    if let Some(row) = rows.get(i as usize) {
        fetch(row);
    }
}

/// The instruction, for the cache line in which `row` begins.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
fn fetch<T>(row: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction belongs to every x86-64 processor, reads no value, and `row` is a reference besides.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(row).cast()) }
}

/// As above. Aarch64 has no such function in stable Rust but by assembly.
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
#[inline]
fn fetch<T>(row: &T) {
    // SAFETY: the instruction belongs to every aarch64 processor, reads no value, changes no register or flag, and `row` is a reference besides.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) std::ptr::from_ref(row), options(nostack, preserves_flags, readonly));
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn fetch<T>(_row: &T) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_not_there_are_no_error() {
        let rows = [1u64, 2, 3];
        row(&rows, 2);
        row(&rows, 3);
        row(&rows, u32::MAX);
        row::<u64>(&[], 0);
        assert_eq!(rows, [1, 2, 3]);
    }
}
