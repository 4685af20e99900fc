//! The messages of a queue pair as one stream of packets: which byte packet n begins with, and how much work the first n packets are.
//!
//! Layer: fold/rows. A message's last packet may be short, so bytes are not a fixed multiple of packets. Work is bytes on the wire: it flows at a
//! steady rate even if packets differ in size.

use crate::rows::partition_rows::Member;
use hyperfold_columns::{Tables, TaskIdx};

/// The messages of a queue pair, from the first one that is still listed.
#[derive(Clone)]
pub(crate) struct MessageStream {
    payload: u64,
    /// Bytes on the wire of a packet beyond its payload.
    overhead: u64,
    /// The first byte of the first message.
    start: u64,
    ends: Vec<End>,
}

/// The end of a message.
#[derive(Clone, Copy)]
struct End {
    task: TaskIdx,
    /// Whether a task waits for its delivery, and whether one waits for its acknowledgement.
    waits_delivered: bool,
    waits_acked: bool,
    /// Bytes and packets from the stream's start up to here.
    bytes: u64,
    packets: u64,
}

impl MessageStream {
    /// The stream of the messages of `member`. The first begins at byte `start`.
    pub(crate) fn new(t: &Tables, member: &Member, start: u64) -> MessageStream {
        let mut stream = MessageStream {
            payload: u64::from(t.exps[0].payload),
            overhead: u64::from(t.exps[0].data_overhead),
            start,
            ends: Vec::new(),
        };
        stream.extend(t, member);
        stream
    }

    #[cfg(test)]
    pub(crate) fn of_one(payload: u64, bytes: u64) -> MessageStream {
        MessageStream {
            payload,
            overhead: 0,
            start: 0,
            ends: vec![End {
                task: TaskIdx(0),
                waits_delivered: false,
                waits_acked: false,
                bytes,
                packets: bytes.div_ceil(payload),
            }],
        }
    }

    /// Appends messages that were posted since.
    pub(crate) fn extend(&mut self, t: &Tables, member: &Member) {
        for &(i, _) in &member.posted[self.ends.len()..] {
            let (bytes, packets) = self.ends.last().map_or((0, 0), |e| (e.bytes, e.packets));
            let row = &t.tasks[i];
            let (waits_delivered, waits_acked) = (row.got_n > 0, row.done_n > 0);
            self.ends.push(End {
                task: i,
                waits_delivered,
                waits_acked,
                bytes: bytes + row.bytes,
                packets: packets + row.bytes.div_ceil(self.payload),
            });
        }
    }

    /// The end of message `nth`, in packets from the start of the stream.
    pub(crate) fn end(&self, nth: usize) -> Option<u64> {
        self.ends.get(nth).map(|x| x.packets)
    }

    /// The first message from `nth` on whose delivery a task waits for.
    pub(crate) fn next_delivered(&self, nth: usize) -> Option<usize> {
        (nth..self.ends.len()).find(|&k| self.ends[k].waits_delivered)
    }

    /// The first message from `nth` on whose acknowledgement a task waits for.
    pub(crate) fn next_acked(&self, nth: usize) -> Option<usize> {
        (nth..self.ends.len()).find(|&k| self.ends[k].waits_acked)
    }

    /// The length of the stream in packets.
    pub(crate) fn packets(&self) -> u64 {
        self.ends.last().map_or(0, |x| x.packets)
    }

    /// The byte after the last message.
    pub(crate) fn size(&self) -> u64 {
        self.start + self.ends.last().map_or(0, |x| x.bytes)
    }

    /// Number of whole packets before byte `x`.
    pub(crate) fn packet(&self, x: u64) -> u64 {
        let x = x.saturating_sub(self.start);
        let nth = self.ends.partition_point(|e| e.bytes <= x);
        let (bytes, packets) = if nth == 0 { (0, 0) } else { (self.ends[nth - 1].bytes, self.ends[nth - 1].packets) };
        packets + (x - bytes) / self.payload
    }

    /// The first byte of packet `n`.
    pub(crate) fn byte(&self, n: u64) -> u64 {
        let nth = self.ends.partition_point(|e| e.packets <= n);
        let (bytes, packets) = if nth == 0 { (0, 0) } else { (self.ends[nth - 1].bytes, self.ends[nth - 1].packets) };
        self.start + bytes + (n - packets) * self.payload
    }

    /// Bytes on the wire of the first `n` packets.
    pub(crate) fn work(&self, n: u64) -> u64 {
        self.byte(n) - self.start + n * self.overhead
    }

    /// Bytes on the wire of the first `n` packets, as [`MessageStream::work`], if they end at or shortly before the end of message `nth`: the search
    /// from there is short.
    pub(crate) fn work_before(&self, nth: usize, n: u64) -> u64 {
        let begins = self.ends[..nth]
            .iter()
            .rposition(|e| e.packets <= n)
            .map_or((0, 0), |k| (self.ends[k].bytes, self.ends[k].packets));
        // The last packet of a message is shorter than the others.
        let bytes = (begins.0 + (n - begins.1) * self.payload).min(self.ends[nth].bytes);
        bytes + n * self.overhead
    }

    /// Number of whole packets in the first `work` bytes on the wire.
    pub(crate) fn worked(&self, work: u64) -> u64 {
        let work_up_to = |e: &End| e.bytes + e.packets * self.overhead;
        let nth = self.ends.partition_point(|e| work_up_to(e) <= work);
        let (done, packets) =
            if nth == 0 { (0, 0) } else { (work_up_to(&self.ends[nth - 1]), self.ends[nth - 1].packets) };
        packets + (work - done) / (self.payload + self.overhead)
    }

    /// Byte `x` after moving ahead by `n_packets` packets. Bytes before the first message move by as much as its first byte.
    pub(crate) fn moved(&self, x: u64, n_packets: u64) -> u64 {
        if x >= self.start {
            return self.byte(self.packet(x) + n_packets);
        }
        x + self.byte(n_packets) - self.start
    }

    /// The message that byte `x` belongs to, and the byte after that message.
    pub(crate) fn message(&self, x: u64) -> Option<(TaskIdx, u64)> {
        let nth = self.ends.partition_point(|e| self.start + e.bytes <= x);
        self.ends.get(nth).map(|e| (e.task, self.start + e.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_packets_agree() {
        let end = |task, bytes, packets| End {
            task: TaskIdx(task),
            waits_delivered: task == 8,
            waits_acked: false,
            bytes,
            packets,
        };
        let ends = vec![end(7, 2500, 3), end(8, 2501, 4), end(9, 4501, 6)];
        let s = MessageStream { payload: 1000, overhead: 60, start: 100, ends };
        let begins: Vec<u64> = (0..=6).map(|n| s.byte(n)).collect();
        assert_eq!(begins, [100, 1100, 2100, 2600, 2601, 3601, 4601]);
        for (n, &x) in begins.iter().enumerate() {
            assert_eq!(s.packet(x), n as u64);
            assert_eq!(s.moved(100, n as u64), x);
        }
        let works: Vec<u64> = (0..=6).map(|n| s.work(n)).collect();
        assert_eq!(works, [0, 1060, 2120, 2680, 2741, 3801, 4861]);
        for (n, &x) in works.iter().enumerate() {
            assert_eq!((s.worked(x), s.worked(x + 59)), (n as u64, n as u64));
            for (k, end) in s.ends.iter().enumerate().filter(|(_, end)| end.packets >= n as u64) {
                assert_eq!(s.work_before(k, n as u64), x, "message {k} of {}", end.packets);
            }
        }
        assert_eq!([1059, 2679, 2740].map(|x| s.worked(x)), [0, 2, 3]);
        assert_eq!(s.moved(50, 3), 2550);
        assert_eq!(s.message(2599), Some((TaskIdx(7), 2600)));
        assert_eq!(s.message(2600), Some((TaskIdx(8), 2601)));
        assert_eq!(s.message(4601), None);
        assert_eq!((s.packets(), s.size(), s.end(1)), (6, 4601, Some(4)));
        assert_eq!((s.next_delivered(0), s.next_delivered(2), s.next_acked(0)), (Some(1), None, None));
    }
}
