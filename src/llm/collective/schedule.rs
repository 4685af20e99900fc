//! A collective as a list of transfers with dependencies.

/// One message from a member to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Sending member, numbered from 0 in the communicator.
    pub from: u32,
    /// Receiving member, numbered from 0 in the communicator.
    pub to: u32,
    /// Payload bytes, at least 1. The flags of a protocol are added by the network.
    pub bytes: u64,
    /// The connection that it uses. Transfers with equal (from, to, channel) are sent in the order of the schedule.
    pub channel: u16,
    /// Transfers that must have been delivered to `from` before: `Schedule::after[after_first .. after_first + after_n]`, indices of earlier transfers.
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

    /// Appends a transfer and returns its index.
    pub fn push(&mut self, from: u32, to: u32, bytes: u64, channel: u16, after: &[u32]) -> u32 {
        let after_first = self.after.len() as u32;
        self.after.extend_from_slice(after);
        self.transfers.push(Transfer { from, to, bytes, channel, after_first, after_n: after.len() as u32 });
        self.transfers.len() as u32 - 1
    }
}
