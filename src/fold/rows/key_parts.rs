//! Parts of keys and snapshots, used to say in which parts two of them differ.
//!
//! Layer: fold/rows. Only explanations use it. No decision of folding depends on it.

/// A part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyPart {
    /// Which rows exist: links, paths, and the order of their numbers, which breaks ties.
    Rows,
    /// The phase of HPCC's clock and counters.
    Phases,
    /// Messages that are posted, and how far each is sent.
    Messages,
    /// Deadlines and timers of queue pairs.
    Timers,
    /// State of congestion control: rates, windows, and the values they are computed from.
    Rates,
    /// Which queue pair is next at a NIC, and when its transmitter is free.
    Transmitters,
    /// Packets in queues.
    Queues,
    /// Packets on links.
    InFlight,
    /// Telemetry that packets carry.
    Telemetry,
    /// Lineages of events: their order if two happen at the same time.
    Lineages,
    /// Pauses and headroom at coupled switches.
    Coupled,
    /// The future that a skip that has just ended may lead to.
    Skips,
}

impl KeyPart {
    /// Every part, in the order in which keys hold them.
    pub const ALL: [KeyPart; 12] = [
        KeyPart::Rows,
        KeyPart::Phases,
        KeyPart::Messages,
        KeyPart::Timers,
        KeyPart::Rates,
        KeyPart::Transmitters,
        KeyPart::Queues,
        KeyPart::InFlight,
        KeyPart::Telemetry,
        KeyPart::Lineages,
        KeyPart::Coupled,
        KeyPart::Skips,
    ];
}

/// A set of key parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPartSet(u16);

impl KeyPartSet {
    /// The set of the parts for which `holds` returns true.
    pub(crate) fn of(holds: impl Fn(KeyPart) -> bool) -> KeyPartSet {
        KeyPartSet(KeyPart::ALL.iter().filter(|part| holds(**part)).map(|&part| 1 << part as u16).sum())
    }

    /// Whether `part` is in the set.
    pub fn has(self, part: KeyPart) -> bool {
        self.0 & 1 << part as u16 != 0
    }

    /// Number of parts in the set.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether no part is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}
