//! Writes and reads numbers in few bytes: the encoding of snapshots and of memo records.
//!
//! Layer: fold/rows. Knows nothing of what the numbers mean.

/// Appends numbers to a vector of bytes.
#[derive(Default)]
pub(crate) struct NumberWriter(pub Vec<u8>);

impl NumberWriter {
    /// Appends `x`, seven bits per byte, the lowest first.
    #[inline]
    pub(crate) fn number(&mut self, mut x: u64) {
        while x >= 0x80 {
            self.0.push(x as u8 | 0x80);
            x >>= 7;
        }
        self.0.push(x as u8);
    }

    pub(crate) fn bytes(&mut self, x: &[u8]) {
        self.number(x.len() as u64);
        self.0.extend_from_slice(x);
    }

    /// Appends the differences of `words` from `like`: the number of equal words, the number of differing words, the XOR of these; and so on.
    pub(crate) fn words(&mut self, words: &[u32], like: &[u32]) {
        let mut i = 0;
        while i < words.len() {
            let same = words[i..].iter().zip(&like[i..]).take_while(|(a, b)| a == b).count();
            i += same;
            let other = words[i..].iter().zip(&like[i..]).take_while(|(a, b)| a != b).count();
            self.number(same as u64);
            self.number(other as u64);
            for k in i..i + other {
                self.number(u64::from(words[k] ^ like[k]));
            }
            i += other;
        }
    }
}

/// Reads what a [`NumberWriter`] wrote. Any method returns `None` if the bytes are something else.
pub(crate) struct NumberReader<'a>(pub &'a [u8]);

impl<'a> NumberReader<'a> {
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut x = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            x |= bits << shift;
            if byte < 0x80 {
                return Some(x);
            }
        }
        None
    }

    pub(crate) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// Reads a count of items of at least one byte each. It is limited by the bytes left, so that bad input reserves no memory.
    pub(crate) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|&n| n <= self.0.len())
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.count()?;
        let (bytes, rest) = self.0.split_at(n);
        self.0 = rest;
        Some(bytes)
    }

    /// Reads words. Before the call, `words` must hold what the writer's `like` held.
    pub(crate) fn words(&mut self, words: &mut [u32]) -> Option<()> {
        let mut i = 0usize;
        while i < words.len() {
            let (same, other) = (self.small()? as usize, self.small()? as usize);
            if same + other == 0 || other > words.len().checked_sub(i + same)? {
                return None;
            }
            i += same;
            for word in &mut words[i..i + other] {
                *word ^= self.small()?;
            }
            i += other;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(numbers in prop::collection::vec(any::<u64>(), 0..20), rows in prop::collection::vec((0u32..4, 0u32..4), 0..40), text in prop::collection::vec(any::<u8>(), 0..30)) {
            let (words, like): (Vec<u32>, Vec<u32>) = rows.iter().map(|&(a, b)| (a.wrapping_sub(1), b.wrapping_sub(1))).unzip();
            let mut w = NumberWriter::default();
            numbers.iter().for_each(|&x| w.number(x));
            w.words(&words, &like);
            w.bytes(&text);
            let mut r = NumberReader(&w.0);
            for &x in &numbers {
                prop_assert_eq!(r.number(), Some(x));
            }
            let mut read = like;
            prop_assert_eq!(r.words(&mut read), Some(()));
            prop_assert_eq!(read, words);
            prop_assert_eq!(r.bytes(), Some(text.as_slice()));
            prop_assert!(r.0.is_empty());
        }

        #[test]
        fn anything_may_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut words = [7u32; 20];
            let _ = NumberReader(&bytes).words(&mut words);
            let _ = NumberReader(&bytes).bytes();
            let _ = NumberReader(&bytes).count();
        }
    }
}
