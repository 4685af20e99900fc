//! What random cases reached, so that a test says when its cases no longer meet what they are for.

use hyperfold_network::transport::Transport;

/// What one case came to.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    pub pauses: u64,
    pub marks: u64,
    pub drops: u64,
    /// Whether links that fail are the only cause of drops.
    pub only_links: bool,
    pub gave_up: bool,
    /// Whether all flows and tasks ended.
    pub ended: bool,
    /// Whether something was still to be done when a link failed.
    pub outlives: bool,
    pub credit: Credit,
}

/// What receiver credit had to do in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// There was none.
    Without,
    /// No message was larger than what senders have at first.
    Unasked,
    /// A message needed PULLs.
    Pulled,
}

impl Credit {
    /// `largest_bytes`: those of the largest message.
    pub fn of_case(t: &Transport, largest_bytes: u64) -> Self {
        match t.credit {
            None => Credit::Without,
            Some(credit) if largest_bytes.div_ceil(t.payload as u64) > credit.burst_packets as u64 => Credit::Pulled,
            Some(_) => Credit::Unasked,
        }
    }
}

/// How many cases reached what.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    pub paused: u32,
    pub marked: u32,
    pub lost: u32,
    /// All ended, but packets were lost on the way.
    pub recovered: u32,
    pub gave_up: u32,
    /// Lost packets, on links that failed and nowhere else.
    pub cut: u32,
    /// The same, and yet all ended, something of it after a link failed.
    pub outlived: u32,
    /// Never ended, though nobody gave up.
    pub stuck: u32,
    /// Had receiver credit.
    pub credited: u32,
    /// The same, and all ended.
    pub credited_ended: u32,
    /// The same, and a message was larger than the credit that senders have at first.
    pub pulled_ended: u32,
}

impl Reached {
    pub fn note(&mut self, case: Reach) {
        let cut = case.drops > 0 && case.only_links;
        self.paused += u32::from(case.pauses > 0);
        self.marked += u32::from(case.marks > 0);
        self.lost += u32::from(case.drops > 0);
        self.recovered += u32::from(case.drops > 0 && case.ended);
        self.gave_up += u32::from(case.gave_up);
        self.cut += u32::from(cut);
        self.outlived += u32::from(cut && case.ended && case.outlives);
        self.credited += u32::from(case.credit != Credit::Without);
        self.credited_ended += u32::from(case.credit != Credit::Without && case.ended);
        self.pulled_ended += u32::from(case.credit == Credit::Pulled && case.ended);
        self.stuck += u32::from(!case.ended && !case.gave_up);
    }
}
