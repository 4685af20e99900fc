//! Rates of the flow level against the dense solver, while flows come and go.

use super::dense::DenseNetwork;
use crate::support::random::Rng;
use hyperfold_flow::maxmin::{LinkShare, MaxMin, WHOLE};

const NETWORKS: u64 = 500;
/// Acknowledgements' part of their data's rate, as a shift.
const ACKS_SHIFT: u32 = 4;

fn shuffle(rng: &mut Rng, list: &mut [u32]) {
    for i in (1..list.len()).rev() {
        list.swap(i, rng.range(0, i as u64) as usize);
    }
}

/// A random network with its carriers, each one flow.
fn network(rng: &mut Rng, with_acks: bool) -> (MaxMin, DenseNetwork) {
    // Two directions each.
    let n_links = 2 * rng.range(2, 12) as usize;
    let sprayed = rng.chance(30);
    let gbps = [10u64, 25, 100, 100, 100, 400];
    let capacity: Vec<u64> = (0..n_links / 2).flat_map(|_| [rng.pick(&gbps) * 1_000_000_000; 2]).collect();
    let mut rates = MaxMin::new(&capacity, sprayed);
    let n = rng.range(1, 59);
    let mut dense =
        DenseNetwork { capacity: capacity.iter().map(|&c| c as f64).collect(), share: Vec::new(), acks: Vec::new() };
    let mut links: Vec<u32> = (0..n_links as u32).collect();
    for _ in 0..n {
        shuffle(rng, &mut links);
        let data = &links[..rng.range(1, links.len().min(5) as u64) as usize];
        let crossing = |&link: &u32, share: u32| LinkShare { link, share };
        // Shares that are exact in binary, so that both solvers see the same network.
        let parts: Vec<u32> = data.iter().map(|_| if sprayed { WHOLE >> rng.range(0, 3) } else { WHOLE }).collect();
        let of_data: Vec<LinkShare> = data.iter().zip(&parts).map(|(link, share)| crossing(link, *share)).collect();
        // Back over the other directions of the same links, as far as they are not its own.
        let back = data.iter().map(|link| link ^ 1).filter(|link| with_acks && !data.contains(link));
        let of_acks: Vec<LinkShare> = back.map(|link| crossing(&link, WHOLE >> ACKS_SHIFT)).collect();
        rates.add(&of_data, &of_acks);
        let row = |crossings: &[LinkShare]| {
            let mut row = vec![0.0; n_links];
            crossings.iter().for_each(|c| row[c.link as usize] = f64::from(c.share) / f64::from(WHOLE));
            row
        };
        dense.share.push(row(&of_data));
        dense.acks.push(row(&of_acks));
    }
    (rates, dense)
}

fn agree(rates: &MaxMin, dense: &DenseNetwork, on: &[bool], tolerance: f64, what: &str) -> f64 {
    let unit = 2f64.powi(rates.rate_bits() as i32);
    let mut worst: f64 = 0.0;
    for (carrier, want) in dense.rates(on).into_iter().enumerate() {
        let got = rates.rate(carrier as u32) as f64 / unit;
        let off = if want == 0.0 { got } else { (got - want).abs() / want };
        assert!(off < tolerance, "{what}: carrier {carrier} has {got} bps, the dense solver says {want}");
        worst = worst.max(off);
    }
    worst
}

/// Compares rates on all networks, within a relative difference; gives the largest.
fn compare(with_acks: bool, tolerance: f64) -> f64 {
    let mut worst: f64 = 0.0;
    for seed in 0..NETWORKS {
        let mut rng = Rng::new(seed);
        let (mut rates, dense) = network(&mut rng, with_acks);
        let mut on = vec![false; dense.share.len()];
        // Most come at once; then a few at a time come and go, so that what is solved anew is a part.
        for step in 0..6 {
            let changes = if step == 0 { on.len() } else { rng.range(1, 3) as usize };
            for change in 0..changes {
                let carrier = if step == 0 { change } else { rng.range(0, on.len() as u64 - 1) as usize };
                on[carrier] = !on[carrier];
                rates.set_flows(carrier as u32, u32::from(on[carrier]));
            }
            rates.solve(&mut |_| {});
            worst = worst.max(agree(&rates, &dense, &on, tolerance, &format!("network {seed}, step {step}")));
        }
    }
    worst
}

#[test]
fn rates_are_those_of_a_dense_solver_on_random_networks() {
    println!("largest difference of a rate on {NETWORKS} random networks: {:.2e}", compare(false, 1e-6));
}

/// What is kept for acknowledgements is right to 3e-5 of a link; a flow that has little of the link sees more of that.
#[test]
fn with_acknowledgements_rates_are_those_of_a_dense_solver_within_what_links_keep() {
    println!("the same with acknowledgements: {:.2e}", compare(true, 1e-3));
}

#[test]
fn flows_of_one_carrier_share_as_carriers_of_their_own_would() {
    let capacity = [100_000_000_000u64, 40_000_000_000];
    let both = [0, 1].map(|link| LinkShare { link, share: WHOLE });
    let mut rates = MaxMin::new(&capacity, false);
    let (three, one) = (rates.add(&both, &[]), rates.add(&both[..1], &[]));
    rates.set_flows(three, 3);
    rates.set_flows(one, 1);
    rates.solve(&mut |_| {});
    let bps = |rate: u64| rate >> rates.rate_bits();
    assert_eq!(bps(rates.rate(three)), 40_000_000_000 / 3);
    assert_eq!(bps(rates.rate(one)), 60_000_000_000);
}

#[test]
fn what_no_change_reaches_keeps_its_rate_and_is_not_told_of() {
    let capacity = [100_000_000_000u64; 2];
    let mut rates = MaxMin::new(&capacity, false);
    let on = |rates: &mut MaxMin, link: u32| rates.add(&[LinkShare { link, share: WHOLE }], &[]);
    let (a, b, other) = (on(&mut rates, 0), on(&mut rates, 0), on(&mut rates, 1));
    rates.set_flows(a, 1);
    rates.set_flows(other, 1);
    rates.solve(&mut |_| {});
    rates.set_flows(b, 1);
    let mut changed = Vec::new();
    rates.solve(&mut |carrier| changed.push(carrier));
    changed.sort_unstable();
    assert_eq!(changed, [a, b]);
}
