//! A queue pair's messages as one stream of packets: which byte the n-th begins with.
//!
//! Layer: engine. The last packet of a message is as long as is left of it, so bytes and packets are no multiples of each other.

use super::part::Member;
use crate::columns::{NONE, Tables};

/// Messages of a queue pair from the first that is remembered on.
#[derive(Clone)]
pub struct Stream {
    payload: u64,
    /// The byte that the first begins with.
    start: u64,
    /// Of each message the task, and the bytes and packets up to its end, from `start`.
    ends: Vec<(u32, u64, u64)>,
}

impl Stream {
    /// The messages of `member`, the first of which begins at `start`.
    pub fn new(t: &Tables, member: &Member, start: u64) -> Stream {
        let mut stream = Stream { payload: u64::from(t.exps[0].payload), start, ends: Vec::new() };
        stream.extend(t, member);
        stream
    }

    /// Messages that were posted since.
    pub fn extend(&mut self, t: &Tables, member: &Member) {
        for &(i, _) in &member.posted[self.ends.len()..] {
            let &(_, bytes, packets) = self.ends.last().unwrap_or(&(NONE, 0, 0));
            let more = t.tasks[i as usize].bytes;
            self.ends.push((i, bytes + more, packets + more.div_ceil(self.payload)));
        }
    }

    /// The end of message `nth`, in packets.
    pub fn end(&self, nth: usize) -> Option<u64> {
        self.ends.get(nth).map(|x| x.2)
    }

    /// All of it, in packets.
    pub fn packets(&self) -> u64 {
        self.ends.last().map_or(0, |x| x.2)
    }

    /// The byte behind the last.
    pub fn size(&self) -> u64 {
        self.start + self.ends.last().map_or(0, |x| x.1)
    }

    /// How many whole packets lie before byte `x`.
    pub fn packet(&self, x: u64) -> u64 {
        let x = x.saturating_sub(self.start);
        let nth = self.ends.partition_point(|e| e.1 <= x);
        let (bytes, packets) = if nth == 0 { (0, 0) } else { (self.ends[nth - 1].1, self.ends[nth - 1].2) };
        packets + (x - bytes) / self.payload
    }

    /// The byte that packet `n` begins with.
    pub fn byte(&self, n: u64) -> u64 {
        let nth = self.ends.partition_point(|e| e.2 <= n);
        let (bytes, packets) = if nth == 0 { (0, 0) } else { (self.ends[nth - 1].1, self.ends[nth - 1].2) };
        self.start + bytes + (n - packets) * self.payload
    }

    /// Where byte `x` of the pattern is once it has moved on by `by` packets. What lies before the first message moves as the first does.
    pub fn moved(&self, x: u64, by: u64) -> u64 {
        if x >= self.start {
            return self.byte(self.packet(x) + by);
        }
        x + self.byte(by) - self.start
    }

    /// The message that byte `x` belongs to, and the byte behind it.
    pub fn message(&self, x: u64) -> Option<(u32, u64)> {
        let nth = self.ends.partition_point(|e| self.start + e.1 <= x);
        self.ends.get(nth).map(|e| (e.0, self.start + e.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_packets_agree() {
        let ends = vec![(7, 2500, 3), (8, 2501, 4), (9, 4501, 6)];
        let s = Stream { payload: 1000, start: 100, ends };
        let begins: Vec<u64> = (0..=6).map(|n| s.byte(n)).collect();
        assert_eq!(begins, [100, 1100, 2100, 2600, 2601, 3601, 4601]);
        for (n, &x) in begins.iter().enumerate() {
            assert_eq!(s.packet(x), n as u64);
            assert_eq!(s.moved(100, n as u64), x);
        }
        assert_eq!(s.moved(50, 3), 2550);
        assert_eq!(s.message(2599), Some((7, 2600)));
        assert_eq!(s.message(2600), Some((8, 2601)));
        assert_eq!(s.message(4601), None);
        assert_eq!((s.packets(), s.size(), s.end(1)), (6, 4601, Some(4)));
    }
}
