//! How long messages take on an idle network of one switch, by algebra.
//!
//! Layer: batch. Times in ps as floats: these are formulas, not simulation.

/// A link's rate and delay, packets and their answers, what posting a message costs.
#[derive(Clone, Copy)]
pub(super) struct IdleLink {
    pub bps: f64,
    pub delay: f64,
    pub payload: u64,
    pub header: f64,
    pub ack: f64,
    /// Before each message.
    pub post: f64,
    /// Messages are cut into pieces of at most so many bytes, alike; 0: not cut.
    pub piece: u64,
}

impl IdleLink {
    /// 100 Gb/s, a microsecond, 1,000 bytes in 1,048, answers of 60: what `config` sets and the transport's defaults.
    pub(super) fn plain(post: f64, piece: u64) -> IdleLink {
        IdleLink { bps: 100e9, delay: 1e6, payload: 1000, header: 48.0, ack: 60.0, post, piece }
    }

    fn tx(&self, bytes: f64) -> f64 {
        bytes * 8e12 / self.bps
    }

    /// Packets, none of which spans two pieces.
    pub(super) fn packets(&self, bytes: u64) -> f64 {
        let pieces = if self.piece == 0 { 1 } else { bytes.div_ceil(self.piece) };
        (pieces * (bytes / pieces).div_ceil(self.payload)) as f64
    }

    /// A full packet on the link.
    pub(super) fn data(&self) -> f64 {
        self.tx(self.payload as f64 + self.header)
    }

    /// An answer on the link.
    pub(super) fn answer(&self) -> f64 {
        self.tx(self.ack)
    }

    /// All packets of a message, one behind the other.
    pub(super) fn serial(&self, bytes: u64) -> f64 {
        self.tx(bytes as f64 + self.header * self.packets(bytes))
    }

    /// From the end of a packet's transmission to its arrival: two links, and whole at the switch in between.
    pub(super) fn latency(&self) -> f64 {
        2.0 * self.delay + self.data()
    }

    /// The way back of the last answer.
    pub(super) fn answered(&self) -> f64 {
        2.0 * self.delay + 2.0 * self.answer()
    }

    /// A message while as much comes in: the link out carries the answers to what has come in too. Those to the packets still under way follow when nothing else does, but for the one
    /// to the last packet, which goes before whatever is sent next.
    pub(super) fn exchange(&self, bytes: u64) -> f64 {
        let under_way = ((self.data() + self.latency()) / (self.data() + self.answer())).ceil();
        let answers = (self.packets(bytes) - under_way).max(0.0) + 1.0;
        self.post + self.serial(bytes) + answers * self.answer() + self.latency()
    }

    /// `bytes` through members that each pass pieces on to `copies` others, `levels` of them between the first and the last. A relay answers what comes in as fast as the first member
    /// sends: while that lasts the second relay waits for the first, afterwards the first has no answers left to send and the second still has.
    pub(super) fn relayed(&self, bytes: u64, copies: f64, levels: f64) -> f64 {
        let each = |bytes: u64| copies * self.serial(bytes) + self.packets(bytes) * self.answer();
        let sent_meanwhile = (self.serial(bytes) - self.packets(bytes) * self.answer()) / (copies * self.serial(bytes));
        let second = self.serial(bytes) + (1.0 - sent_meanwhile) * each(bytes);
        let all = if levels > 1.0 { second.max(each(bytes)) } else { each(bytes) };
        // The first piece reaches the first relay; all is sent; the last piece goes on through the others.
        self.post
            + self.serial(self.piece)
            + self.latency()
            + all
            + self.latency()
            + (levels - 1.0) * (self.post + each(self.piece) + self.latency())
    }
}
