//! Counter-based randomness for traffic: a hash of (seed, stream, count), so that no draw depends on the order of others.
//!
//! Layer: workload.

/// A stream of random draws. Equal seeds and streams give equal draws on every machine.
pub struct RandomStream {
    key: u64,
    count: u64,
}

/// splitmix64's finaliser (Steele, Lea, Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl RandomStream {
    /// A new stream. `stream` keeps draws for different purposes apart.
    pub fn new(seed: u64, stream: u64) -> RandomStream {
        RandomStream { key: mix(mix(seed).wrapping_add(stream)), count: 0 }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.count += 1;
        mix(self.key.wrapping_add(self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A whole number from 0 to `n - 1`; `n` is at least 1. The bias is below n / 2^64.
    pub fn below(&mut self, n: u32) -> u32 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u32
    }

    /// A number in (0, 1], a multiple of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Shuffles in place (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u32 + 1) as usize);
        }
    }
}
