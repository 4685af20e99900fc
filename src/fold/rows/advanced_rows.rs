//! Moves the rows of a queue pair ahead by the packets that it sent while its partition was skipped.
//!
//! Layer: fold/rows.

use crate::rows::message_stream::MessageStream;
use hyperfold_columns::{FlowRx, FlowTx, NEVER, Tables};

/// Number of fraction bits in rates, and in numbers of packets between two actions of congestion control.
pub(crate) const FRACTION: u32 = 16;

/// A queue pair that went on while its partition was skipped.
#[derive(Clone, Copy)]
pub(crate) struct AdvancedRows<'a> {
    pub stream: &'a MessageStream,
    /// Number of packets by which it went on.
    pub n_packets: u64,
    /// Number of packets between two actions of congestion control, with [`FRACTION`] bits of fraction. 0: it does not act once per round trip.
    pub turn: u64,
}

impl AdvancedRows<'_> {
    /// The byte whose acknowledgement triggers congestion control next. Before the skip that was byte `next`, and bytes up to `una` were
    /// acknowledged.
    fn acts_next(&self, next: u64, una: u64) -> u64 {
        let AdvancedRows { stream, n_packets, turn } = *self;
        if turn == 0 {
            return stream.moved(next, n_packets);
        }
        let una = stream.packet(una);
        let (ahead, moved) = (stream.packet(next).saturating_sub(una) << FRACTION, n_packets << FRACTION);
        let ahead = if moved > ahead { turn - 1 - (moved - ahead - 1) % turn } else { ahead - moved };
        stream.byte(una + n_packets + ((ahead + (1 << (FRACTION - 1))) >> FRACTION))
    }

    /// Moves the queue pair's rows, except `snd_una`, from which everything else is counted.
    pub(crate) fn advance(&self, t: &Tables, tx: &mut FlowTx, rx: &mut FlowRx) {
        let AdvancedRows { stream, n_packets, .. } = *self;
        let moved = |x: u64| stream.moved(x, n_packets);
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
        let beyond = (next, tx.size + if next.is_none() { 0 } else { t.tasks[next].bytes });
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
        let stream = MessageStream::of_one(1000, packets(1000));
        let next = |turn: u64, n_packets: u64| {
            AdvancedRows { stream: &stream, n_packets, turn }.acts_next(packets(30), packets(10))
        };
        let turn = 22 << FRACTION;
        // It acts 20 packets ahead. After that it acts again every 22 packets.
        assert_eq!(
            [0, 5, 20, 21, 42, 43, 64, 65].map(|n_packets| next(turn, n_packets)),
            [30, 30, 30, 52, 52, 74, 74, 96].map(packets)
        );
        // Fractions add up: after ten times 22.5 packets.
        assert_eq!(next((22 << FRACTION) + (1 << (FRACTION - 1)), 240), packets(30 + 225));
        // It does not act once a round trip.
        assert_eq!(next(0, 43), packets(73));
    }
}
