//! Formulas for how long messages take on an idle network of one switch.
//!
//! Layer: host. Times in ps as floats: these are formulas, not simulation.

/// An idle link: its rate and delay, its packets and their answers, and the cost of posting a message. Times in ps, sizes in bytes.
#[derive(Clone, Copy)]
pub(super) struct IdleLink {
    pub bps: f64,
    pub delay: f64,
    pub payload: u64,
    pub header: f64,
    pub ack: f64,
    /// Time before each message, ps.
    pub post: f64,
    /// Messages are cut into equal pieces of at most this many bytes; 0: not cut.
    pub piece: u64,
}

impl IdleLink {
    /// Creates the link that `config` and the transport's defaults describe: 100 Gb/s, a microsecond, 1,000 bytes in packets of 1,048, answers of 60 bytes.
    pub(super) fn plain(post: f64, piece: u64) -> IdleLink {
        IdleLink { bps: 100e9, delay: 1e6, payload: 1000, header: 48.0, ack: 60.0, post, piece }
    }

    fn tx(&self, bytes: f64) -> f64 {
        bytes * 8e12 / self.bps
    }

    /// Number of packets of a message. No packet spans two pieces.
    pub(super) fn packets(&self, bytes: u64) -> f64 {
        let pieces = if self.piece == 0 { 1 } else { bytes.div_ceil(self.piece) };
        (pieces * (bytes / pieces).div_ceil(self.payload)) as f64
    }

    /// Transmission time of a full packet, ps.
    pub(super) fn data(&self) -> f64 {
        self.tx(self.payload as f64 + self.header)
    }

    /// Transmission time of an answer, ps.
    pub(super) fn answer(&self) -> f64 {
        self.tx(self.ack)
    }

    /// Transmission time of all packets of a message, one behind the other, ps.
    pub(super) fn serial(&self, bytes: u64) -> f64 {
        self.tx(bytes as f64 + self.header * self.packets(bytes))
    }

    /// Time from the end of a packet's transmission to its arrival, ps: two links, and store and forward at the switch between them.
    pub(super) fn latency(&self) -> f64 {
        2.0 * self.delay + self.data()
    }

    /// Time that the last answer takes back to the sender, ps.
    pub(super) fn answered(&self) -> f64 {
        2.0 * self.delay + 2.0 * self.answer()
    }

    /// Time of sending a message while equally many bytes come in, ps. The outgoing link also carries answers to the packets that came in. The answers to
    /// packets still in flight follow after the data, except the answer to the last packet: it goes before whatever is sent next.
    pub(super) fn exchange(&self, bytes: u64) -> f64 {
        let in_flight = ((self.data() + self.latency()) / (self.data() + self.answer())).ceil();
        let answers = (self.packets(bytes) - in_flight).max(0.0) + 1.0;
        self.post + self.serial(bytes) + answers * self.answer() + self.latency()
    }

    /// Time of sending `bytes` through members that each pass pieces on to `copies` others, ps. There are `levels` members between the first and the last. A
    /// relay answers what comes in as fast as the first member sends. Meanwhile the second relay waits for the first; afterwards the first has no answers left
    /// to send and the second still has.
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
