//! Random cases with traffic classes.

use hyperfold_llm::workload::Flow;
use hyperfold_network::topology::Network;
use hyperfold_network::transport::{LossRecovery, TrafficClass, Transport};

use super::Case;
use super::random::{ADAPTIVE, CLASSES_BY_CHOICE, Rng, case, reserved};

/// A case with traffic classes whose switches choose among the paths of data.
pub fn classes_by_choice(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let from = ADAPTIVE + 5_000 + 3 * (seed - CLASSES_BY_CHOICE);
    // Ultra Ethernet and queues of ports have no classes.
    let may_have_classes =
        |case: &Case| case.transport.port_queue_per_100g == 0 && case.transport.loss_recovery != LossRecovery::Uec;
    let mut case = (from..).map(case).find(may_have_classes).expect("most have a shared buffer");
    classes(&mut rng, &case.network, &mut case.transport, &mut case.flows);
    case.transport.tier_buffers = None;
    case
}

/// Gives packets 2 to 8 traffic classes, flows one of them each, and switches a buffer that holds what is reserved for all.
pub fn classes(rng: &mut Rng, network: &Network, transport: &mut Transport, flows: &mut [Flow]) {
    let n = if rng.chance(80) { rng.range(2, 4) } else { rng.range(5, 8) } as usize;
    transport.pfc |= rng.chance(60);
    let levels = levels(rng, n);
    let largest = (transport.payload + transport.data_overhead).max(transport.ack_bytes);
    let most_packets = rng.pick(&[1, 4, 20]);
    // Without PFC what they say does not matter.
    let percent_lossless = rng.pick(&[0, 50, 70, 70, 100]);
    transport.classes = levels
        .into_iter()
        .map(|level| {
            let packets = rng.range(1, most_packets) as u32;
            let more = if rng.chance(50) { 0 } else { rng.range(0, u64::from(largest)) as u32 };
            TrafficClass { level, quantum_bytes: packets * largest + more, lossless: rng.chance(percent_lossless) }
        })
        .collect();
    let n_lossless = transport.classes.iter().filter(|class| transport.pfc && class.lossless).count();
    let reserved = reserved(network, largest, n, n_lossless);
    // What is only just enough for pauses lets no large packet of a lossy class pass.
    let least = if n_lossless == n { 0 } else { 5_000 };
    transport.buffer_bytes = reserved + rng.pick(&[least, least, 10_000, 10_000, 30_000, 200_000, 32 << 20]);
    // Some cases have one class with most of the traffic.
    let favourite = rng.chance(40).then(|| rng.range(0, n as u64 - 1) as u8);
    for flow in flows {
        let any = rng.range(0, n as u64 - 1) as u8;
        flow.class = favourite.filter(|_| rng.chance(60)).unwrap_or(any);
    }
}

/// Levels of `n` classes: all one, all different, or anything between. No level is left out.
fn levels(rng: &mut Rng, n: usize) -> Vec<u32> {
    let n_levels = match rng.range(0, 2) {
        0 => 1,
        1 => n,
        _ => rng.range(1, n as u64) as usize,
    };
    let mut levels: Vec<u32> = (0..n_levels as u32).collect();
    levels.extend((n_levels..n).map(|_| rng.range(0, n_levels as u64 - 1) as u32));
    for i in (1..n).rev() {
        levels.swap(i, rng.range(0, i as u64) as usize);
    }
    levels
}
