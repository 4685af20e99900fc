//! Collective schedules against closed forms: how many transfers, how many bytes on each link, how long on equal links without contention; costs against each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hyperfold_config::spec::{self, KeyId};
use hyperfold_llm::collective::{
    Algorithm, CollectiveOp, CollectiveSystem, Env, MemberPlacement, Schedule, ScheduleOptions, Server, Shape, build,
    cost_ps, measured_run, measured_runs,
};

const MB: u64 = 1 << 20;

/// Time of a schedule where every member has one transmitter of `bps`, links have one latency and nothing contends: whatever may go first goes first, messages whole.
fn time_ps(s: &Schedule, bps: u64, latency_ps: u64) -> u64 {
    let after = |i: usize| {
        &s.after[s.transfers[i].after_first as usize..(s.transfers[i].after_first + s.transfers[i].after_n) as usize]
    };
    let mut followers = vec![Vec::new(); s.transfers.len()];
    (0..s.transfers.len()).for_each(|i| after(i).iter().for_each(|&a| followers[a as usize].push(i)));
    let mut missing: Vec<usize> = (0..s.transfers.len()).map(|i| after(i).len()).collect();
    let mut ready: BinaryHeap<Reverse<(u64, usize)>> =
        (0..s.transfers.len()).filter(|&i| missing[i] == 0).map(|i| Reverse((0, i))).collect();
    let mut free = vec![0u64; s.n as usize];
    let (mut last, mut done) = (0, 0);
    while let Some(Reverse((now, i))) = ready.pop() {
        let t = &s.transfers[i];
        let from = &mut free[t.from as usize];
        if *from > now {
            ready.push(Reverse((*from, i)));
            continue;
        }
        *from = now + (t.bytes as u128 * 8_000_000_000_000 / bps as u128) as u64;
        let arrival = *from + latency_ps;
        (last, done) = (last.max(arrival), done + 1);
        for &f in &followers[i] {
            missing[f] -= 1;
            if missing[f] == 0 {
                // Arrivals come in order of time, so the last to arrive is what it waited for.
                ready.push(Reverse((arrival, f)));
            }
        }
    }
    assert_eq!(done, s.transfers.len(), "some transfers wait for ever");
    last
}

fn sent(s: &Schedule) -> Vec<u64> {
    let mut sent = vec![0; s.n as usize];
    s.transfers.iter().for_each(|t| sent[t.from as usize] += t.bytes);
    sent
}

fn flat(op: CollectiveOp, algorithm: Algorithm, bytes: u64, n: u32, chunk_bytes: u64) -> Schedule {
    build(op, algorithm, bytes, &Shape::flat(n), &ScheduleOptions { chunk_bytes, ..ScheduleOptions::default() })
        .unwrap()
}

/// Within half a per cent, as the task asks of closed forms.
fn close(got: u64, due: u64) {
    assert!(got.abs_diff(due) as f64 <= 0.005 * due as f64, "{got} ps, the closed form says {due}");
}

#[test]
fn ring() {
    let (bps, latency) = (400_000_000_000, 2_000_000);
    for n in [2u32, 3, 8, 16, 33] {
        let bytes = 64 * MB / n as u64 * n as u64;
        let block_ps = bytes / n as u64 * 20;
        let reduce = flat(CollectiveOp::AllReduce, Algorithm::Ring, bytes, n, 0);
        assert_eq!(reduce.transfers.len() as u32, 2 * n * (n - 1));
        assert!(sent(&reduce).iter().all(|&b| b == 2 * (n as u64 - 1) * (bytes / n as u64)));
        close(time_ps(&reduce, bps, latency), 2 * (n as u64 - 1) * (block_ps + latency));
        let gather = flat(CollectiveOp::AllGather, Algorithm::Ring, bytes, n, 0);
        close(time_ps(&gather, bps, latency), (n as u64 - 1) * (block_ps + latency));
        // Cut into chunks, a step's latency hides behind the step before it: bandwidth, and the latency of the last chunk's way.
        let cut = flat(CollectiveOp::AllReduce, Algorithm::Ring, bytes, n, MB / 4);
        let whole = 2 * (n as u64 - 1) * block_ps;
        if n > 2 {
            assert!(time_ps(&cut, bps, latency) < time_ps(&reduce, bps, latency));
        }
        assert!(time_ps(&cut, bps, latency) >= whole);
    }
}

#[test]
fn halving_and_doubling() {
    let (bps, latency) = (100_000_000_000, 5_000_000);
    for n in [2u32, 4, 16, 64] {
        let bytes = 16 * MB;
        let s = flat(CollectiveOp::AllReduce, Algorithm::HalvingDoubling, bytes, n, 0);
        assert_eq!(s.transfers.len() as u32, 2 * n * n.ilog2());
        let bandwidth = 2 * (n as u64 - 1) * (bytes / n as u64) * 80;
        close(time_ps(&s, bps, latency), bandwidth + 2 * n.ilog2() as u64 * latency);
    }
    // Not a power of two: one message more each way for the members that wait, all bytes both times.
    let s = flat(CollectiveOp::AllReduce, Algorithm::HalvingDoubling, 1000, 6, 0);
    assert_eq!(s.transfers.len(), 2 * 4 * 2 + 2 * 2);
    assert_eq!(s.transfers.iter().map(|t| t.bytes).sum::<u64>(), 2 * 3 * 1000 + 2 * 2 * 1000);
}

#[test]
fn double_tree() {
    let (bps, latency) = (100_000_000_000, 1_000_000);
    for n in [4u32, 8, 15, 32] {
        let bytes = 64 * MB;
        let s = flat(CollectiveOp::AllReduce, Algorithm::Tree, bytes, n, 64 << 10);
        // n - 1 edges, up and down.
        assert_eq!(s.transfers.iter().map(|t| t.bytes).sum::<u64>(), 2 * (n as u64 - 1) * bytes);
        // Nobody sends more than to two children and a parent in one tree, to a parent in the other.
        assert!(sent(&s).iter().all(|&b| b <= 2 * bytes), "{:?}", sent(&s));
        // One unpipelined pass takes the depth; small messages cost twice the depth in latency.
        let small = flat(CollectiveOp::AllReduce, Algorithm::Tree, 2, n, 0);
        let depth = n.ilog2() as u64 + 1;
        assert!(time_ps(&small, bps, latency) <= 2 * depth * (latency + 1_000));
        // Pipelined, the busiest transmitter is what takes time, though nobody plans when to send what: leaves of one tree are in the way of the other.
        let busiest = *sent(&s).iter().max().expect("there are members");
        let (time, floor) = (time_ps(&s, bps, latency), busiest * 80);
        assert!(time >= floor && time < floor * 5 / 2, "n = {n}: {time} ps, the busiest transmitter needs {floor}");
    }
}

#[test]
fn all_to_all_and_rails() {
    let (n, bytes, bps, latency) = (16u32, 16 * MB, 200_000_000_000, 1_000_000);
    let s = flat(CollectiveOp::AllToAll, Algorithm::Direct, bytes, n, 0);
    assert_eq!(s.transfers.len() as u32, n * (n - 1));
    close(time_ps(&s, bps, latency), (n as u64 - 1) * (bytes / n as u64) * 40 + latency);
    // Hierarchical: each rail carries 2 (N - 1) / N of a server's share, N servers.
    let shape = Shape::servers(4, 8);
    let s =
        build(CollectiveOp::AllReduce, Algorithm::Hierarchical, 32 * MB, &shape, &ScheduleOptions::default()).unwrap();
    let mut across = BTreeMap::new();
    for t in s.transfers.iter().filter(|t| shape.members[t.from as usize].0 != shape.members[t.to as usize].0) {
        assert_eq!(shape.members[t.from as usize].1, shape.members[t.to as usize].1);
        *across.entry(t.from).or_insert(0) += t.bytes;
    }
    assert_eq!(across.len(), 32);
    assert!(across.values().all(|&b| b == 2 * 3 * MB));
}

#[test]
fn volumes_do_not_depend_on_the_channels() {
    let shape = Shape::servers(3, 4);
    for (op, algorithm) in [
        (CollectiveOp::AllReduce, Algorithm::Ring),
        (CollectiveOp::AllGather, Algorithm::Hierarchical),
        (CollectiveOp::ReduceScatter, Algorithm::Direct),
        (CollectiveOp::AllToAll, Algorithm::Hierarchical),
    ] {
        let total = |channels| {
            build(
                op,
                algorithm,
                1_000_003,
                &shape,
                &ScheduleOptions { channels, chunk_bytes: 4096, ..ScheduleOptions::default() },
            )
            .unwrap()
            .transfers
            .iter()
            .map(|t| t.bytes)
            .sum::<u64>()
        };
        assert_eq!(total(1), total(7), "{op:?} {algorithm:?}");
    }
}

#[test]
fn costs_grow_with_bytes_and_shrink_with_links() {
    let env = Env::default();
    for name in Server::names() {
        let system = Server::preset(name).unwrap().system(false);
        let k = system.gpus_per_server;
        for op in [
            CollectiveOp::AllReduce,
            CollectiveOp::AllGather,
            CollectiveOp::ReduceScatter,
            CollectiveOp::AllToAll,
            CollectiveOp::Broadcast,
        ] {
            for at in [
                MemberPlacement::alone(k, k),
                MemberPlacement::alone(4 * k, k),
                MemberPlacement { ranks: 4, ranks_per_node: 1, sharing: k },
            ] {
                let cost = |bytes| cost_ps(op, bytes, &at, &system, &env);
                assert!(
                    cost(8) > 0 && cost(1 << 30) > cost(64 * MB) && cost(64 * MB) > cost(MB / 4),
                    "{name} {op:?} {at:?}"
                );
                // No faster than the links allow: the slowest of fabric and NICs, NVLink SHARP at most doubling what a link is worth.
                let link = if at.nodes() > 1 {
                    system.nic_bps as f64
                        * (system.nics_per_server as f64 / at.sharing as f64).min(system.nics_per_server as f64)
                } else {
                    system.inside_bps as f64
                };
                let floor = 0.5 * (1u64 << 30) as f64 * 8.0 / link * 0.9
                    / if op == CollectiveOp::AllToAll { at.ranks as f64 } else { 1.0 };
                assert!(cost(1 << 30) as f64 / 1e12 > floor, "{name} {op:?} {at:?}");
            }
        }
        assert_eq!(cost_ps(CollectiveOp::AllReduce, MB, &MemberPlacement::alone(1, 1), &system, &env), 0);
        assert!(cost_ps(CollectiveOp::Barrier, 0, &MemberPlacement::alone(k, k), &system, &env) > 0);
    }
}

#[test]
fn more_of_a_machine_is_never_slower() {
    let (at, env) = (MemberPlacement::alone(32, 8), Env::default());
    let base = Server::preset("dgx-h100").unwrap().system(false);
    let cost = |system| cost_ps(CollectiveOp::AllGather, 256 * MB, &at, &system, &env);
    let mut slow = base;
    slow.nic_bps /= 4;
    assert!(cost(slow) > 2 * cost(base));
    let mut few = base;
    few.nics_per_server = 2;
    assert!(cost(few) > 2 * cost(base));
    let mut far = base;
    far.net_extra_ps = 5_000_000;
    assert!(cost(far) > cost(base));
    let shared = MemberPlacement { ranks: 4, ranks_per_node: 1, sharing: 8 };
    let alone = MemberPlacement::alone(4, 1);
    assert_eq!(
        cost_ps(CollectiveOp::AllGather, MB, &shared, &base, &env),
        cost_ps(CollectiveOp::AllGather, MB, &alone, &base, &env),
        "one GPU, one NIC: neighbours take nothing"
    );
}

#[test]
fn every_measured_run_can_be_left_out() {
    let accepted = spec::key(KeyId::LeaveOutRun).accepts();
    let runs: Vec<&str> = measured_runs().collect();
    assert!(runs.iter().all(|run| accepted.contains(&format!("\"{run}\""))), "{accepted} of {runs:?}");
    assert_eq!(accepted.matches('"').count() / 2, runs.len() + 1, "{accepted} are none and {runs:?}");
    let server = Server::preset("aws-p5").unwrap().system(false);
    let (at, env) = (MemberPlacement::alone(16, 8), Env::default());
    let cost = |left_out_run| {
        let system = CollectiveSystem { left_out_run, ..server };
        cost_ps(CollectiveOp::AllReduce, 64 << 20, &at, &system, &env)
    };
    assert_ne!(cost(None), cost(measured_run("aws_p5_2n")));
    assert_eq!(cost(None), cost(measured_run("gke_gib_2n")), "a run of all-gathers says nothing of all-reduces");
}
