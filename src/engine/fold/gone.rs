//! Queue pairs that went on while a partition slept: their rows, moved on by what they sent meanwhile.
//!
//! Layer: engine.

use super::sleep::FRACTION;
use super::stream::Stream;
use crate::columns::{FlowRx, FlowTx, NEVER, NONE, Tables};

/// A queue pair has gone on.
#[derive(Clone, Copy)]
pub struct Gone<'a> {
    pub stream: &'a Stream,
    /// By how many packets.
    pub by: u64,
    /// As in [`super::sleep::Pace`].
    pub turn: u64,
}

impl Gone<'_> {
    /// With which byte's acknowledgement congestion control acts next; it was `next`, with `una` acknowledged.
    fn acts_next(&self, next: u64, una: u64) -> u64 {
        let Gone { stream, by, turn } = *self;
        if turn == 0 {
            return stream.moved(next, by);
        }
        let una = stream.packet(una);
        let (ahead, by_now) = (stream.packet(next).saturating_sub(una) << FRACTION, by << FRACTION);
        let ahead = if by_now > ahead { turn - 1 - (by_now - ahead - 1) % turn } else { ahead - by_now };
        stream.byte(una + by + ((ahead + (1 << (FRACTION - 1))) >> FRACTION))
    }

    /// The rows of the queue pair, but for what is acknowledged, from which all else is counted.
    pub fn rows(&self, t: &Tables, tx: &mut FlowTx, rx: &mut FlowRx) {
        let Gone { stream, by, .. } = *self;
        let moved = |x: u64| stream.moved(x, by);
        let una_was = tx.snd_una;
        let una = moved(una_was);
        tx.snd_nxt = moved(tx.snd_nxt);
        rx.expected = moved(rx.expected);
        if rx.nack_seq != NEVER {
            rx.nack_seq = moved(rx.nack_seq);
        }
        if tx.last_seq != 0 {
            tx.last_seq = self.acts_next(tx.last_seq, una_was).min(tx.snd_nxt);
        }
        if tx.high_seq != 0 {
            tx.high_seq = moved(tx.high_seq);
        }
        tx.size = stream.size();
        let next = tx.msg_post;
        let beyond = (next, tx.size + if next == NONE { 0 } else { t.tasks[next as usize].bytes });
        let message = |x: u64| stream.message(x).unwrap_or(beyond);
        (tx.msg_send, tx.send_end) = message(tx.snd_nxt);
        (tx.msg_ack, tx.ack_end) = message(una);
        (rx.msg, rx.msg_end) = message(rx.expected);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congestion_control_acts_in_its_turn() {
        let packets = |n: u64| n * 1000;
        let stream = Stream::of_one(1000, packets(1000));
        let next = |turn: u64, by: u64| Gone { stream: &stream, by, turn }.acts_next(packets(30), packets(10));
        let turn = 22 << FRACTION;
        // 20 packets ahead; what is passed comes again 22 packets on.
        assert_eq!(
            [0, 5, 20, 21, 42, 43, 64, 65].map(|by| next(turn, by)),
            [30, 30, 30, 52, 52, 74, 74, 96].map(packets)
        );
        // Fractions add up: after ten turns of 22.5.
        assert_eq!(next((22 << FRACTION) + (1 << (FRACTION - 1)), 240), packets(30 + 225));
        // It does not act in turns.
        assert_eq!(next(0, 43), packets(73));
    }
}
