//! Asks the processor for rows before they are needed, so that several are fetched from memory at once.
//!
//! Layer: beside `units`. Knows nothing of what rows hold; changes no value.

/// Starts to fetch the cache line at `row` into the processor's caches.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
pub fn address<T>(row: *const T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction belongs to every x86-64 processor, and reads no value: any address will do.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(row.cast()) }
}

/// As above. Aarch64 has no such function in stable Rust but by assembly.
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
#[inline]
pub fn address<T>(row: *const T) {
    // SAFETY: the instruction belongs to every aarch64 processor, reads no value, changes no register or flag: any address will do.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) row, options(nostack, preserves_flags, readonly));
    }
}

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
