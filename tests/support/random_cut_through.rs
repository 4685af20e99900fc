//! Random cases whose switches cut through.

use super::Case;
use super::random::{
    AVERAGED, CHANGES, CLASSES, CUT_THROUGH, IMPAIRED, MOVING, Rng, SELECTIVE, SLOW, SWIFT, UEC, WATCHED, case, rtt,
};

/// A case whose switches cut through, of any other kind but adaptive routing. Half of the networks have one rate, so that all switches do.
pub fn cut_through(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let others = [0, 0, SWIFT, SELECTIVE, CHANGES, SLOW, UEC, CLASSES, IMPAIRED, IMPAIRED, MOVING, WATCHED, AVERAGED];
    let from = rng.pick(&others) + 3_000 + 2 * (seed - CUT_THROUGH);
    let mut case = (from..).map(case).find(|case| case.transport.grade_packets.is_none()).expect("most choose nothing");
    let transport = &mut case.transport;
    let most = transport.payload + transport.data_overhead;
    transport.cut_through_bytes = rng.pick(&[14, 64, 64, 64, 70, 200, most - 1, most]).min(most);
    if rng.chance(70) {
        case.rtt = rtt(&case.network, &case.paths, &case.transport);
    }
    case
}
