//! Random cases whose switches know of queues further on, weigh their ports by rates, or drop data by WRED.

use hyperfold_network::transport::{EcnThresholds, PortWeights};

use super::Case;
use super::random::{
    ADAPTIVE, AVERAGED, CHANGES, CLASSES, CLASSES_BY_CHOICE, EARLY_DROPS, IMPAIRED, REPORTS, Rng, SELECTIVE, WATCHED,
    case,
};

/// A case of adaptive routing. Most of its switches report their queues every now and then, and some weigh their ports by rates.
pub fn reported(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let from = rng.pick(&[ADAPTIVE, ADAPTIVE, ADAPTIVE, CLASSES_BY_CHOICE, IMPAIRED, WATCHED]);
    let from = from + 7_000 + 3 * (seed - REPORTS);
    let is_adaptive = |case: &Case| case.transport.grade_packets.is_some();
    let mut case = (from..).map(case).find(is_adaptive).expect("some are adaptive");
    let transport = &mut case.transport;
    if rng.chance(80) {
        transport.remote_queues_ps = rng.pick(&[100_000, 500_000, 2_000_000, 2_000_000, 30_000_000]) + rng.range(0, 9);
    }
    transport.port_weights = rng.pick(&[PortWeights::None, PortWeights::Paths, PortWeights::Rates, PortWeights::Rates]);
    case
}

/// A case with switches that drop data by WRED, mostly with thresholds that their queues reach.
pub fn early_drops(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let others = [0, 0, SELECTIVE, CHANGES, ADAPTIVE, CLASSES, CLASSES, IMPAIRED, AVERAGED];
    let from = rng.pick(&others) + 5_000 + 3 * (seed - EARLY_DROPS);
    let may_drop = |mut case: Case| {
        let transport = &mut case.transport;
        (transport.ecn, transport.wred_drops) = (true, true);
        transport.drops_early().then_some(case)
    };
    let mut case = (from..).map(case).find_map(may_drop).expect("many lose packets");
    if rng.chance(80) {
        // With less, whatever waits is dropped, and senders wait for timeouts alone.
        let kmin_bytes = rng.range(6_000, 30_000);
        let kmax_bytes = kmin_bytes + rng.pick(&[0, 4_000, 20_000, 60_000]);
        let transport = &mut case.transport;
        transport.ecn_per_100g = EcnThresholds { kmin_bytes, kmax_bytes, ..transport.ecn_per_100g };
        transport.ecn_by_rate.clear();
    }
    case
}
