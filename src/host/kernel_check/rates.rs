//! The kernel that solves fair rates, checked against the CPU's solver on small networks while flows come and go.
//!
//! Layer: host.

use hyperfold_engine::EngineError;
use hyperfold_engine::fair_rates::{FlowsChange, RateNetwork, RateSolver};
use hyperfold_flow::maxmin::{LinkShare, MaxMin, WHOLE};
use hyperfold_llm::workload::random::RandomStream;

/// Shape of a network.
#[derive(Clone, Copy, Debug)]
struct Shape {
    links: u32,
    carriers: u32,
    /// Most links of a carrier.
    max_links: u32,
    sprayed: bool,
    with_acks: bool,
    /// Tolerance of rates, as a shift.
    tolerance: Option<u32>,
    /// Whether all links have the same speed.
    even: bool,
}

const SMALL: Shape =
    Shape { links: 24, carriers: 60, max_links: 5, sprayed: false, with_acks: false, tolerance: None, even: false };
const SHAPES: [Shape; 6] = [
    SMALL,
    Shape { with_acks: true, ..SMALL },
    Shape { sprayed: true, with_acks: true, ..SMALL },
    Shape { links: 300, carriers: 700, max_links: 3, ..SMALL },
    Shape { links: 300, carriers: 700, with_acks: true, tolerance: Some(14), ..SMALL },
    Shape { even: true, max_links: 2, ..SMALL },
];
/// Number of times that flows change. At first many do, then a few.
const CHANGES: u32 = 5;

/// Number of networks that are solved.
pub const NETWORKS: usize = SHAPES.len();

/// Solves the networks on the device and on the CPU. Returns the first rate that differs.
///
/// # Errors
/// The device failed, or the run is to stop.
pub fn first_difference(solver: &mut dyn RateSolver) -> Result<Option<String>, EngineError> {
    let mut random = RandomStream::new(31, 0);
    let mut networks: Vec<MaxMin> = SHAPES.iter().map(|shape| network(&mut random, shape)).collect();
    let rows: Vec<RateNetwork> = networks.iter().map(MaxMin::network).collect();
    let (mut on_device, numbers) = solver.load(&rows)?;
    let mut told: Vec<Vec<u64>> = rows.iter().map(|rows| vec![0; rows.carriers.len()]).collect();
    for change in 0..CHANGES {
        let changes: Vec<Vec<FlowsChange>> =
            networks.iter_mut().map(|network| changed(&mut random, network, change == 0)).collect();
        // A network without room on the device is left to the CPU, as in a run.
        let asked: Vec<(u32, &[FlowsChange])> = numbers
            .iter()
            .zip(&changes)
            .filter_map(|(number, changes)| Some(((*number)?, &changes[..])))
            .filter(|(_, changes)| !changes.is_empty())
            .collect();
        let answer = on_device.solve(&asked)?;
        for (told, changes) in told.iter_mut().zip(&changes) {
            changes.iter().filter(|c| c.flows == 0).for_each(|c| told[c.carrier as usize] = 0);
        }
        for row in answer {
            let network = numbers.iter().position(|number| *number == Some(row.network));
            match network.and_then(|network| told[network].get_mut(row.carrier as usize)) {
                Some(rate) => *rate = row.rate,
                None => {
                    return Ok(Some(format!(
                        "a rate of network {}, carrier {}: there is none",
                        row.network, row.carrier
                    )));
                }
            }
        }
        for (number, (told, network)) in told.iter().zip(&networks).enumerate().filter(|(i, _)| numbers[*i].is_some()) {
            for (carrier, &got) in (0..).zip(told) {
                let want = network.rate(carrier);
                if got != want {
                    return Ok(Some(format!(
                        "network {number}, change {change}, rate of carrier {carrier}: {got} ({got:#x}), must be {want} ({want:#x})"
                    )));
                }
            }
        }
    }
    Ok(None)
}

fn network(random: &mut RandomStream, shape: &Shape) -> MaxMin {
    let speeds = [10u64, 25, 100, 100, 400];
    let mut speed = || if shape.even { 100 } else { speeds[random.below(speeds.len() as u32) as usize] };
    let capacities: Vec<u64> = (0..shape.links).map(|_| speed() * 1_000_000_000).collect();
    let mut rates = MaxMin::new(&capacities, shape.sprayed);
    if let Some(shift) = shape.tolerance {
        rates.tolerate(shift);
    }
    for _ in 0..shape.carriers {
        let base = random.below(shape.links);
        let mut links: Vec<u32> =
            (0..=random.below(shape.max_links)).map(|_| (base + random.below(12)) % shape.links).collect();
        links.sort_unstable();
        links.dedup();
        // Parts of sprayed flows do not divide evenly.
        let mut share = || if shape.sprayed { WHOLE / (1 + random.below(7)) } else { WHOLE };
        let data: Vec<LinkShare> = links.iter().map(|&link| LinkShare { link, share: share() }).collect();
        let back = links.iter().map(|link| link ^ 1).filter(|link| shape.with_acks && !links.contains(link));
        let acks: Vec<LinkShare> = back.map(|link| LinkShare { link, share: WHOLE / 17 }).collect();
        rates.add(&data, &acks);
    }
    rates
}

/// Changes flows of `network`, of most carriers or of a few, and solves it. Returns what has changed.
fn changed(random: &mut RandomStream, network: &mut MaxMin, many: bool) -> Vec<FlowsChange> {
    let n = network.network().carriers.len() as u32;
    let carriers: Vec<u32> = match many {
        true => (0..n).filter(|_| random.below(10) < 6).collect(),
        false => (0..1 + random.below(4)).map(|_| random.below(n)).collect(),
    };
    let mut changes: Vec<FlowsChange> = Vec::new();
    for carrier in carriers {
        let flows = if !many && random.below(10) < 4 { 0 } else { 1 + random.below(4) };
        if network.flows(carrier) != flows && changes.iter().all(|c| c.carrier != carrier) {
            changes.push(FlowsChange { carrier, flows });
        }
    }
    changes.iter().for_each(|c| network.set_flows(c.carrier, c.flows));
    network.solve(&mut |_| {});
    changes
}
