//! Scans of many machines, communicators and sizes: the choice is never far from the best pair, and costs never run against bytes or rates.

use super::nccl::{Protocol, offered};
use super::{Algorithm, CollectiveOp, CollectiveSystem, Communicator, Env, MemberPlacement, Server};

const OPS: [CollectiveOp; 5] = [
    CollectiveOp::AllReduce,
    CollectiveOp::AllGather,
    CollectiveOp::ReduceScatter,
    CollectiveOp::AllToAll,
    CollectiveOp::Broadcast,
];

/// Sizes in bytes: doublings from 8 B to 4 GiB.
fn sizes() -> impl Iterator<Item = u64> {
    (3..=32).map(|octave| 1 << octave)
}

/// Calls `check` with each preset, a description, a placement on it, and NCCL's environment there.
fn for_each_communicator(mut check: impl FnMut(&CollectiveSystem, &str, &MemberPlacement, &Env)) {
    for name in Server::names() {
        let server = Server::preset(name).expect("the name is one of the presets");
        let k = server.gpus;
        let alone = |ranks: u32, ranks_per_node: u32| MemberPlacement::alone(ranks, ranks_per_node);
        let placements = [
            alone(2, 2),
            alone(4.min(k), 4.min(k)),
            alone(k, k),
            alone(2 * k, k),
            alone(16 * k, k),
            alone(16, 1),
            MemberPlacement { ranks: 4, ranks_per_node: 1, sharing: k },
        ];
        for placement in placements {
            check(&server.system(false), name, &placement, &server.env());
        }
    }
}

#[test]
fn no_offered_pair_is_faster_than_the_choice_by_a_tenth() {
    let mut n_points = 0;
    for_each_communicator(|system, name, placement, env| {
        let communicator = Communicator::new(placement, system, env);
        for (op, bytes) in OPS.into_iter().flat_map(|op| sizes().map(move |bytes| (op, bytes))) {
            let chosen_ps = communicator.cost_ps(op, bytes);
            let pairs: Vec<(Algorithm, Protocol)> = match op {
                CollectiveOp::AllToAll => {
                    [Algorithm::Direct, Algorithm::Hierarchical].map(|a| (a, Protocol::Simple)).to_vec()
                }
                _ => offered(op, bytes, &communicator.context, env).map(|(a, p, _)| (a, p)).collect(),
            };
            for (algorithm, protocol) in pairs {
                let forced_ps = communicator.cost_with_ps(op, algorithm, protocol, bytes);
                n_points += 1;
                assert!(
                    chosen_ps as f64 <= 1.1 * forced_ps as f64,
                    "{name} {placement:?} {op:?} of {bytes}: {chosen_ps} ps, by {algorithm:?} and {protocol:?} {forced_ps} ps"
                );
            }
        }
    });
    assert!(n_points > 2_000, "{n_points} points");
}

#[test]
fn twice_the_bytes_are_never_faster_by_more_than_5_per_cent() {
    let mut n_points = 0;
    let mut wrong = Vec::new();
    for_each_communicator(|system, name, placement, env| {
        let communicator = Communicator::new(placement, system, env);
        for op in OPS {
            let times_ps: Vec<u64> = sizes().map(|bytes| communicator.cost_ps(op, bytes)).collect();
            for (half_idx, pair) in times_ps.windows(2).enumerate() {
                n_points += 1;
                if (pair[1] as f64) < 0.95 * pair[0] as f64 {
                    wrong.push(format!("{name} {placement:?} {op:?} of {} B: {pair:?} ps", 8u64 << half_idx));
                }
            }
        }
    });
    assert!(wrong.is_empty(), "{} of {n_points}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(n_points > 2_000, "{n_points} points");
}

#[test]
fn more_rate_is_never_slower_by_more_than_5_per_cent() {
    let mut n_points = 0;
    let mut wrong = Vec::new();
    for_each_communicator(|system, name, placement, env| {
        // Rates in tenths of the preset's.
        let rates = [2u64, 5, 7, 10, 13, 20, 40];
        let nic = |tenths: u64| CollectiveSystem { nic_bps: system.nic_bps * tenths / 10, ..*system };
        let inside = |tenths: u64| CollectiveSystem { inside_bps: system.inside_bps * tenths / 10, ..*system };
        let sweeps: [(&str, Vec<CollectiveSystem>); 2] =
            [("NICs", rates.map(nic).to_vec()), ("links inside", rates.map(inside).to_vec())];
        for (links, systems) in sweeps {
            for (op, bytes) in OPS.into_iter().flat_map(|op| sizes().step_by(3).map(move |bytes| (op, bytes))) {
                let cost = |system| Communicator::new(placement, system, env).cost_ps(op, bytes);
                let times_ps: Vec<u64> = systems.iter().map(cost).collect();
                for (slower_idx, pair) in times_ps.windows(2).enumerate() {
                    n_points += 1;
                    if pair[1] as f64 > 1.05 * pair[0] as f64 {
                        let tenths = (rates[slower_idx], rates[slower_idx + 1]);
                        wrong.push(format!(
                            "{name} {placement:?} {op:?} of {bytes} B, {links} of {tenths:?} tenths: {pair:?} ps"
                        ));
                    }
                }
            }
        }
    });
    assert!(wrong.is_empty(), "{} of {n_points}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(n_points > 2_000, "{n_points} points");
}
