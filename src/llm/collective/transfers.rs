//! A collective as a list of transfers with dependencies.

/// One message from a member to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Sending member, numbered from 0 in the communicator; from `Schedule::n` on, a switch that reduces.
    pub from: u32,
    /// Receiving member, numbered from 0 in the communicator; from `Schedule::n` on, a switch that reduces.
    pub to: u32,
    /// Payload bytes, at least 1. The flags of a protocol are added by the network.
    pub bytes: u64,
    /// The connection that it uses. Transfers with equal (from, to, channel) are sent in the order of the schedule.
    pub channel: u16,
    /// Transfers that must have been delivered to `from` before: `Schedule::after[after_first .. after_first + after_n]`, indices of earlier transfers. What a
    /// switch sends to several at once has one such list, and stands one behind the other.
    pub after_first: u32,
    /// Number of these transfers.
    pub after_n: u32,
}

/// A collective on `n` members. INVARIANT: a transfer depends only on earlier ones whose `to` is its `from`.
/// A member is done when everything sent to it has arrived and everything it sends has left its buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Number of members.
    pub n: u32,
    /// Transfers in the order in which members send.
    pub transfers: Vec<Transfer>,
    /// Dependencies of all transfers: see [`Transfer::after_first`].
    pub after: Vec<u32>,
}

impl Schedule {
    /// An empty schedule for `n` members.
    pub fn new(n: u32) -> Schedule {
        Schedule { n, ..Schedule::default() }
    }

    /// Appends a transfer of the same bytes on the same channel that waits for the same deliveries as the last one, and returns its index.
    ///
    /// PRECONDITION: there is one before, from the same sender.
    pub fn push_copy_to(&mut self, to: u32) -> u32 {
        let last = *self.transfers.last().expect("a copy follows a transfer");
        self.transfers.push(Transfer { to, ..last });
        self.transfers.len() as u32 - 1
    }

    /// Index behind the last of the transfers that share the list of deliveries of transfer `k`, the first of these.
    pub fn copies_end(&self, k: usize) -> usize {
        let first = &self.transfers[k];
        let is_copy = |t: &&Transfer| first.after_n > 0 && (t.from, t.after_first) == (first.from, first.after_first);
        k + 1 + self.transfers[k + 1..].iter().take_while(is_copy).count()
    }

    /// Appends a transfer and returns its index.
    pub fn push(&mut self, from: u32, to: u32, bytes: u64, channel: u16, after: &[u32]) -> u32 {
        let after_first = self.after.len() as u32;
        self.after.extend_from_slice(after);
        self.transfers.push(Transfer { from, to, bytes, channel, after_first, after_n: after.len() as u32 });
        self.transfers.len() as u32 - 1
    }
}
