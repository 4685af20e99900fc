//! Queue pairs that are one flow: all have the rate of the slowest. Also the duration of such a collective without other traffic.
//!
//! Layer: flow level. Steps of rings are followed one by one on an idle network. Of a long ring only the first steps are followed, since the others are
//! similar.

use std::collections::BTreeMap;

use super::crossings::{ack_share, links, rate_bps};
use super::latency::{Path, wire_bytes};
use super::maxmin::{SHARE_BITS, WHOLE};
use hyperfold_base::units::PS_PER_S;
use hyperfold_columns::{FlowIdx, NEVER, Tables, TaskIdx};

/// The load of a flow's queue pairs on each link, in units of one flow's rate and share: (data, acknowledgements).
pub(super) type Loads = BTreeMap<u32, [u64; 2]>;

/// A collective with equal steps, by rows of the tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CollectiveAlone {
    /// The queue pair that carries all messages.
    pub leader: FlowIdx,
    /// Number of queue pairs that each edge's bytes are spread over.
    pub lanes: u64,
    /// The queue pair of each edge, ring by ring; `None` if no packet goes there.
    pub edges: Vec<Vec<Option<FlowIdx>>>,
    /// Number of steps of the collective.
    pub steps: u64,
    /// Number of messages of a step.
    pub pieces: u64,
    /// Bytes of each message.
    pub piece_bytes: u64,
    /// Software overhead in ps, once at the start.
    pub start_ps: u64,
    /// Software overhead in ps before each message over the network.
    pub net_ps: u64,
    /// Software overhead in ps before each other message.
    pub inside_ps: u64,
    /// Number of blocks that a GPU sends one after another inside its server in a step.
    pub inside_each: u64,
    /// Path without packets: (rate in bps, latency in ps).
    pub inside: (u64, u64),
    /// Minimum duration in ps.
    pub min_ps: u64,
}

/// Approximate maximum of followed steps, summed over members. Our choice: it takes a tenth of a second.
const MAX_STEPS: usize = 1 << 24;
/// Minimum of followed steps: several times around the GPUs of a server.
const MIN_STEPS: usize = 64;

/// Joins queue pairs into one flow. The first of them has the messages.
pub fn join(t: &mut Tables, rows: &[FlowIdx]) {
    let leader = rows[0].0 + 1;
    rows.iter().for_each(|&row| t.flow_tx[row].joined = leader);
}

/// The load of joined queue pairs on the links that they cross.
pub(super) fn loads(t: &Tables, rows: impl Iterator<Item = FlowIdx>) -> Loads {
    let acks = ack_share(t);
    let mut loads = Loads::new();
    for row in rows {
        let (tx, rx) = (&t.flow_tx[row], &t.flow_rx[row]);
        for l in links(t, tx.nic, tx.path_first, tx.path_len, tx.n_paths, WHOLE) {
            loads.entry(l.link).or_default()[0] += u64::from(l.share);
        }
        for l in links(t, rx.nic, rx.path_first, rx.path_len, rx.n_paths, acks) {
            loads.entry(l.link).or_default()[1] += u64::from(l.share);
        }
    }
    loads
}

/// Counts acknowledgements as data if they alone would fill a link before data fill one.
pub(super) fn acks_as_data(loads: &mut Loads, capacities: &[u64]) {
    let capacity = |link: u32| u128::from(capacities[link as usize]);
    let fills = |(&b, back): (&u32, &[u64; 2])| {
        let mut data = loads.iter().filter(|(_, l)| l[0] > 0);
        back[1] > 0 && data.all(|(&d, l)| capacity(d) * u128::from(back[1]) > capacity(b) * u128::from(l[0]))
    };
    if loads.iter().any(fills) {
        loads.values_mut().for_each(|l| *l = [l[0] + l[1], 0]);
    }
}

/// An edge of a ring, with times in ps: the transmission of a message, the latency to its arrival, and the software overhead.
#[derive(Clone, Copy)]
struct Edge {
    serial: u64,
    latency: u64,
    software: u64,
}

/// When the first and the last message of a block have arrived, and when the edge is free; ps.
#[derive(Clone, Copy)]
struct Block {
    first: u64,
    last: u64,
    free: u64,
}

impl CollectiveAlone {
    /// Duration of the collective on an idle network in ps.
    pub fn ps(&self, t: &Tables) -> u64 {
        let leader = self.leader.0 + 1;
        let rows = FlowIdx::all(t.flow_tx.len() as u32).filter(|&row| t.flow_tx[row].joined == leader);
        let loads = loads(t, rows);
        let members = self.edges.first().map_or(0, Vec::len).max(1);
        let rings = (MAX_STEPS / (members * MIN_STEPS)).clamp(1, self.edges.len().max(1));
        let steps = MAX_STEPS / (members * rings) / MIN_STEPS * MIN_STEPS;
        let followed = self.steps.min(steps.max(MIN_STEPS) as u64);
        let alone = self.edges.iter().take(rings).map(|ring| self.ring_ps(t, ring, &loads, followed));
        alone.max().unwrap_or(0).max(self.min_ps)
    }

    fn edge(&self, t: &Tables, row: Option<FlowIdx>, loads: &Loads) -> Edge {
        let bits = |bytes: u64| u128::from(bytes) * 8 * u128::from(PS_PER_S);
        let Some(row) = row else {
            let own = bits(self.piece_bytes).div_ceil(u128::from(self.inside.0.max(1))) as u64;
            return Edge { serial: own * self.inside_each, latency: self.inside.1, software: self.inside_ps };
        };
        let tx = &t.flow_tx[row];
        let wire = bits(wire_bytes(t, self.piece_bytes));
        let serial_on = |link: u32| {
            let load: u64 = loads.get(&link).map_or(0, |l| l.iter().sum());
            (wire * u128::from(load / self.lanes)).div_ceil(u128::from(rate_bps(t, link)) << SHARE_BITS) as u64
        };
        let crossed = links(t, tx.nic, tx.path_first, tx.path_len, tx.n_paths, WHOLE);
        let serial = crossed.iter().map(|l| serial_on(l.link)).max().unwrap_or(0);
        let latency = Path::of(t, row).latency(t, self.piece_bytes, None).arrival_ps;
        Edge { serial, latency, software: self.net_ps }
    }

    /// Duration of one ring in ps, of which `followed` steps are followed.
    fn ring_ps(&self, t: &Tables, ring: &[Option<FlowIdx>], loads: &Loads, followed: u64) -> u64 {
        let edges: Vec<Edge> = ring.iter().map(|&row| self.edge(t, row, loads)).collect();
        steps_ps(&edges, self.start_ps, self.pieces, self.steps, followed)
    }
}

/// When all blocks of a ring have arrived, in ps. Steps that are not followed take as long on average as those of the second half of the followed ones.
fn steps_ps(edges: &[Edge], start_ps: u64, pieces: u64, steps: u64, followed: u64) -> u64 {
    let mut blocks = vec![Block { first: start_ps, last: start_ps, free: 0 }; edges.len()];
    let last = |blocks: &[Block]| blocks.iter().map(|b| b.last).max().unwrap_or(0);
    let mut half = 0;
    for step in 0..followed {
        if 2 * step == followed {
            half = last(&blocks);
        }
        // The block that the member before has sent in the step before.
        let Some(&(mut previous)) = blocks.last() else { break };
        for (block, edge) in blocks.iter_mut().zip(edges) {
            let begin = block.free.max(previous.first + edge.software);
            let sent = (begin + pieces * edge.serial).max(previous.last + edge.software + edge.serial);
            let now = Block { first: begin + edge.serial + edge.latency, last: sent + edge.latency, free: sent };
            previous = std::mem::replace(block, now);
        }
    }
    let end_ps = last(&blocks);
    end_ps + (u128::from(end_ps - half) * u128::from(steps - followed) / u128::from((followed / 2).max(1))) as u64
}

/// Duration in ps without other traffic of a message that is a whole collective; `None` if it is not one. PRECONDITION: the message has not arrived.
pub(super) fn alone(t: &Tables, message: TaskIdx) -> Option<u64> {
    let ps = t.tasks[message].got;
    (ps != NEVER).then_some(ps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers of 8 in a ring: seven edges inside, one between.
    fn ring(servers: usize, serial: u64) -> Vec<Edge> {
        let inside = Edge { serial: serial / 9, latency: 600_000, software: 0 };
        let between = Edge { serial, latency: 4_000_000, software: 30_000 };
        (0..8 * servers).map(|k| if k % 8 == 7 { between } else { inside }).collect()
    }

    #[test]
    fn steps_that_are_not_followed_are_like_those_that_are() {
        // At first latency decides, then the load of the slowest edge.
        for (serial, pieces) in [(10_000, 1), (50_000_000, 1), (5_000_000, 8)] {
            let edges = ring(100, serial);
            let all = steps_ps(&edges, 0, pieces, 1598, 1598);
            for followed in [64, 640] {
                let some = steps_ps(&edges, 0, pieces, 1598, followed);
                let off = (some as f64 / all as f64 - 1.0).abs();
                assert!(off < 2e-3, "{serial} ps, {pieces} pieces, {followed} steps: {some} for {all}");
            }
        }
    }

    #[test]
    fn a_ring_of_equal_edges_takes_its_steps() {
        let edges = vec![Edge { serial: 20_000_000, latency: 2_000_000, software: 7_000 }; 4];
        assert_eq!(steps_ps(&edges, 1_000_000, 1, 6, 6), 1_000_000 + 6 * 22_007_000);
        // With four pieces, the latency of a step is hidden by the remaining transmission.
        let edges = vec![Edge { serial: 5_000_000, latency: 2_000_000, software: 7_000 }; 4];
        assert_eq!(steps_ps(&edges, 0, 4, 6, 6), 6 * 20_000_000 + 2_000_000 + 7_000);
    }
}
