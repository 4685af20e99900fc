//! Asks the processor for rows before they are needed, so that several are fetched from memory at once.
//!
//! Layer: beside `units`. Knows nothing about the contents of rows, and changes no value.

/// Starts to fetch the cache line at `row` into the processor's caches.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
pub fn address<T>(row: *const T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 processor has this instruction. It reads no value, so any address is allowed.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(row.cast()) }
}

/// Does the same on aarch64, where stable Rust offers it only through assembly.
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
#[inline]
pub fn address<T>(row: *const T) {
    // SAFETY: every aarch64 processor has this instruction. It reads no value and changes no register or flag, so any address is allowed.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) row, options(nostack, preserves_flags, readonly));
    }
}

/// Does nothing: for other processors there is no instruction here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub fn address<T>(_row: *const T) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_will_do() {
        let rows = [1u64, 2, 3];
        address(&raw const rows[2]);
        address(rows.as_ptr().wrapping_add(1 << 40));
        address(std::ptr::null::<u64>());
        assert_eq!(rows, [1, 2, 3]);
    }
}
