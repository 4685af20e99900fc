//! NCCL's cost model: latency and bandwidth of every algorithm and protocol for a communicator, and the predicted duration of an operation.
//!
//! Layer: collective. The model follows `src/graph/tuning.cc` of NCCL 2.30.7, including its optimism. Its figures are in `assets/nccl`. Predicting an operation
//! from a [`Context`] takes well under a microsecond.

use super::tuning::{Latencies, tuning};
use super::{Env, Protocol};
use crate::collective::system::{Arch, CollectiveSystem, Cpu, MemberPlacement, ServerInterconnect};
use crate::collective::{Algorithm, CollectiveOp};

/// A communicator as the model sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Context {
    /// Number of members.
    pub ranks: f64,
    /// Number of servers.
    pub nodes: f64,
    /// Members per server.
    pub ranks_per_node: f64,
    /// Generation of the GPUs.
    pub arch: Arch,
    /// The links between the GPUs of a server.
    pub inside: ServerInterconnect,
    /// Bus bandwidth of the rings inside a server, in GB/s.
    pub intra_bus: f64,
    /// Bus bandwidth of the rings with the network, in GB/s.
    pub inter_bus: f64,
    /// Number of channels of rings and trees.
    pub channels: u32,
    /// Bus bandwidth of NVLS before its efficiency, in GB/s; 0 if there is no NVLS.
    pub nvls_bus: f64,
    /// Number of channels of NVLS.
    pub nvls_channels: u32,
    /// Whether the network's switches reduce.
    pub in_network: bool,
    /// Share of the graph's channels that remains within the bounds on channels.
    pub held: f64,
    /// Overhead of the network, by the host CPU, in us.
    pub overhead_us: f64,
    /// Whether the host CPU is made by AMD, for which trees are corrected.
    pub amd_cpu: bool,
}

/// The rate in GB/s that NCCL counts for a GPU's links to the other `members`. NCCL counts whole NVLinks with figures of its own instead of the data sheet's
/// (A100: 12 x 20 instead of 12 x 25).
fn counted_gbps(system: &CollectiveSystem, members: u32) -> f64 {
    let sheet = system.rate_among_bps(members) as f64 / 8e9;
    let links = &tuning().link_bw;
    match (system.inside, system.arch) {
        (ServerInterconnect::Pcie, _) => sheet * 0.75,
        (_, Arch::Volta) => sheet / 25.0 * links.nvlink_sm70,
        (_, Arch::Ampere) => sheet / 25.0 * links.nvlink_sm80,
        (_, Arch::Hopper) => sheet / 25.0 * links.nvlink_sm90,
        (_, Arch::Blackwell) => sheet / 50.0 * links.nvlink_sm100,
    }
}

/// Maximum number of rings of a graph before they are doubled. Logs show 8 over NICs and 12 inside; the search does not take more rings for a per cent of
/// bandwidth.
const MAX_RINGS: f64 = 16.0;

/// Largest number of GPUs of a server for which NCCL offers CollNet chains (`NCCL_MAX_DIRECT_ARITY + 1`).
const MAX_CHAIN_RANKS: f64 = 8.0;

/// The largest sum of equal channels that fit the GPUs' links and, with a network, the NICs: (channels, speed in GB/s). Of equal sums, the one with faster
/// channels wins.
fn best(speeds: &[f64], gpu: f64, nics: Option<(f64, f64)>) -> (u32, f64) {
    let mut found = (1, gpu.min(nics.map_or(gpu, |(n, nic_gbps)| n * nic_gbps)));
    let mut best_gbps = 0.0;
    for &speed in speeds {
        let inside = libm::floor(gpu / speed + 1e-9);
        let fits = nics
            .map_or(inside, |(n, nic_gbps)| inside.min(libm::floor(n * libm::floor(nic_gbps / speed + 1e-9) + 1e-9)));
        if (1.0..=MAX_RINGS).contains(&fits) && fits * speed > best_gbps + 1e-9 {
            best_gbps = fits * speed;
            found = (fits as u32, speed);
        }
    }
    found
}

impl Context {
    /// The communicator with this placement on `system`.
    pub fn new(system: &CollectiveSystem, placement: &MemberPlacement, env: &Env) -> Context {
        let t = tuning();
        let speeds = &t.search_speeds;
        let (intra, inter) = match system.arch {
            Arch::Volta | Arch::Ampere => (&speeds.intra, &speeds.inter),
            Arch::Hopper => (&speeds.intra_sm90, &speeds.inter_sm90),
            Arch::Blackwell => (&speeds.intra_sm100, &speeds.inter_sm100),
        };
        let nodes = placement.nodes();
        let per_node = placement.ranks_per_node.min(placement.ranks).max(1);
        let gpu = counted_gbps(system, per_node);
        let inside = if env.no_p2p() { ServerInterconnect::Pcie } else { system.inside };
        let gpu = if env.no_p2p() && system.inside != ServerInterconnect::Pcie {
            gpu.min(t.link_bw.pci_gen3_x16)
        } else {
            gpu
        };
        let (intra_n, intra_speed) = best(intra, gpu, None);
        let nics = env.nics(system.nics_per_server);
        let reachable = CollectiveSystem { nics_per_server: nics, ..*system };
        let share = reachable.net_share_bytes_per_s(placement) / 1e9;
        let nic = (system.nic_bps as f64 / 8e9).min(share);
        let (inter_n, inter_speed) = if nodes > 1 {
            best(inter, if per_node > 1 { gpu } else { f64::MAX }, Some((share / nic, nic)))
        } else {
            (intra_n, intra_speed)
        };
        // NCCL doubles the channels of a graph and halves their speed while that is possible: 12 rings of A100 and H100 become 24, 8 over NICs become 16.
        let graph = if nodes > 1 { inter_n } else { intra_n.max(12) };
        let channels = env.bound_channels((graph * 2).clamp(2, t.channels.max_channels));
        let heads = per_node as f64;
        let nvls_speed = intra.iter().copied().find(|s| s * heads <= gpu + 1e-9).unwrap_or(gpu / heads);
        let nvls =
            system.nvls && inside == ServerInterconnect::NvSwitch && env.nvls_enable != Some(false) && per_node > 2;
        let nvls_channels = match (system.arch, nodes) {
            (Arch::Blackwell, 1) => t.channels.nvls_sm100_single_nvl,
            (Arch::Blackwell, _) => t.channels.nvls_sm100_multinode,
            _ => t.channels.nvls_sm90,
        };
        let overhead = &t.net_overhead_us;
        let overhead_us = match system.cpu {
            Cpu::Intel => overhead.intel,
            Cpu::Amd => overhead.amd,
            Cpu::Other => overhead.other,
        };
        // Bounds on channels limit the sum of what the graph's channels carry.
        let held = (channels as f64 / (graph * 2) as f64).min(1.0);
        Context {
            ranks: placement.ranks as f64,
            nodes: nodes as f64,
            ranks_per_node: heads,
            arch: system.arch,
            inside,
            intra_bus: intra_n as f64 * intra_speed * held,
            inter_bus: inter_n as f64 * inter_speed * held,
            channels,
            nvls_bus: if nvls { nvls_speed * heads } else { 0.0 },
            nvls_channels: env.bound_channels(nvls_channels),
            in_network: system.in_network && nodes > 1,
            held,
            overhead_us,
            amd_cpu: system.cpu == Cpu::Amd,
        }
    }
}

/// The latencies of an algorithm, by protocol.
fn row(latencies: &Latencies, algorithm: Algorithm, nodes: f64) -> [f64; 3] {
    match algorithm {
        Algorithm::Tree => latencies.tree,
        Algorithm::InNetwork => latencies.collnet_direct,
        Algorithm::CollnetChain => latencies.collnet_chain,
        Algorithm::Nvls if nodes > 1.0 => latencies.nvls_tree,
        Algorithm::Nvls => latencies.nvls,
        Algorithm::HalvingDoubling | Algorithm::Pat => latencies.pat,
        _ => latencies.ring,
    }
}

/// Number of steps that NCCL counts for an operation.
fn steps(op: CollectiveOp, n: f64) -> f64 {
    match op {
        CollectiveOp::AllReduce => 2.0 * (n - 1.0),
        CollectiveOp::AllGather | CollectiveOp::ReduceScatter => n - 1.0,
        _ => n,
    }
}

/// Algorithm bandwidth in GB/s, not corrected for size; 0 if this pair is not available.
pub(in crate::collective) fn uncorrected_gbps(
    op: CollectiveOp,
    algorithm: Algorithm,
    protocol: Protocol,
    c: &Context,
) -> f64 {
    let t = tuning();
    let f = &t.factors;
    let (n, nodes) = (c.ranks, c.nodes);
    let by_nodes = if nodes <= 1.0 {
        0
    } else if nodes <= 2.0 {
        1
    } else {
        2
    };
    let bus = if nodes <= 2.0 || algorithm.reduces_in_network() {
        c.intra_bus.min(if nodes > 1.0 { c.inter_bus } else { f64::MAX })
    } else {
        c.inter_bus
    };
    let ll_max = t.ll_max_bw.for_arch(if nodes <= 1.0 {
        c.arch
    } else if c.amd_cpu {
        Arch::Ampere
    } else {
        Arch::Volta
    })[by_nodes];
    let channels = c.channels as f64;
    let cap = |rows: &super::tuning::ByArch| channels * rows.for_arch(c.arch)[by_nodes];
    let caps = &t.per_channel_max_bw;
    // LL128 relies on 128-byte stores that stay whole, so it needs NVLink inside servers.
    if protocol == Protocol::Ll128 && c.inside == ServerInterconnect::Pcie {
        return 0.0;
    }
    let simple_only = protocol == Protocol::Simple;
    let bus = match algorithm {
        Algorithm::Ring => match protocol {
            Protocol::Ll => ll_max.min(bus * f.ring_ll_bw),
            Protocol::Ll128 => (bus * f.ring_ll128_bw).min(cap(&caps.ring_ll128)),
            Protocol::Simple => bus,
        },
        Algorithm::Tree if op == CollectiveOp::AllReduce => {
            let tree = (bus * f.tree_allreduce_bw).min(cap(&caps.tree_simple));
            match protocol {
                Protocol::Ll => (tree * f.tree_ll_bw).min(ll_max),
                Protocol::Ll128 => (tree
                    * if nodes <= 1.0 { f.tree_ll128_bw_1node } else { f.tree_ll128_bw_multinode })
                .min(cap(&caps.tree_ll128)),
                Protocol::Simple => tree,
            }
        }
        Algorithm::HalvingDoubling | Algorithm::Pat
            if simple_only
                && c.ranks_per_node <= 1.0
                && matches!(op, CollectiveOp::AllGather | CollectiveOp::ReduceScatter) =>
        {
            bus * f.pat_bw
        }
        // With NVLS, the server's switch reduces before the network does (NCCL calls this NVLS too).
        Algorithm::InNetwork if simple_only && c.in_network && op == CollectiveOp::AllReduce && c.nvls_bus > 0.0 => {
            c.nvls_bus * t.nvls_efficiency.for_arch(c.arch) * (c.ranks_per_node - 1.0) / c.ranks_per_node * 2.0
        }
        Algorithm::InNetwork if simple_only && c.in_network && op == CollectiveOp::AllReduce => {
            bus * if c.arch >= Arch::Hopper { f.collnet_direct_sm90 } else { 1.0 }
        }
        Algorithm::CollnetChain
            if simple_only && c.in_network && op == CollectiveOp::AllReduce && c.ranks_per_node <= MAX_CHAIN_RANKS =>
        {
            bus
        }
        Algorithm::Nvls if simple_only && c.nvls_bus > 0.0 => {
            let heads = c.ranks_per_node;
            let inside = c.nvls_bus * t.nvls_efficiency.for_arch(c.arch) * (heads - 1.0) / heads;
            match op {
                CollectiveOp::AllReduce if nodes > 1.0 => {
                    (inside * 2.0).min(c.inter_bus * if nodes <= 2.0 { 2.0 } else { 1.0 }).min(cap(&caps.nvls_tree))
                }
                CollectiveOp::AllReduce => inside * 2.0,
                CollectiveOp::AllGather | CollectiveOp::ReduceScatter if nodes <= 1.0 => {
                    inside * (c.ranks_per_node - 1.0) / c.ranks_per_node
                }
                _ => 0.0,
            }
        }
        _ => 0.0,
    };
    match algorithm {
        Algorithm::Ring | Algorithm::Nvls | Algorithm::HalvingDoubling | Algorithm::Pat => bus * n / steps(op, n),
        Algorithm::InNetwork if c.nvls_bus > 0.0 => bus * n / steps(op, n),
        _ => bus * 0.5,
    }
}

/// Latencies of an algorithm and a protocol in us: (once, per hop inside a server, per hop over the network).
pub(in crate::collective) fn hop_latencies_us(
    algorithm: Algorithm,
    protocol: Protocol,
    c: &Context,
) -> (f64, f64, f64) {
    let t = tuning();
    let p = protocol as usize;
    let base = row(&t.base_latency_us, algorithm, c.nodes)[p];
    let inside = if c.inside == ServerInterconnect::Pcie { &t.hw_latency_us.pci } else { &t.hw_latency_us.nvlink };
    let intra = row(inside, algorithm, c.nodes)[p];
    let net = &t.hw_latency_us.net;
    let inter = if c.ranks_per_node <= 1.0 && matches!(algorithm, Algorithm::Ring | Algorithm::CollnetChain) {
        net.tree[p]
    } else {
        row(net, algorithm, c.nodes)[p]
    };
    (base, intra, inter)
}

/// Latency of an operation in us, without its correction for size.
fn latency(op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, c: &Context) -> f64 {
    let t = tuning();
    let (base, intra, inter) = hop_latencies_us(algorithm, protocol, c);
    let across = c.nodes > 1.0;
    match algorithm {
        Algorithm::Ring => {
            let steps = steps(op, c.ranks);
            let net_steps = match (across, op) {
                (false, _) => 0.0,
                (true, CollectiveOp::AllReduce) => 2.0 * (c.nodes - 1.0),
                (true, _) => c.nodes - 1.0,
            };
            let overhead = c.overhead_us * if protocol == Protocol::Simple { 3.0 } else { 1.0 };
            base + (steps - net_steps) * if across { intra.max(overhead) } else { intra } + net_steps * inter
        }
        Algorithm::Tree => base + 2.0 * ((c.ranks / c.nodes - 1.0) * intra + libm::log2(c.nodes) * inter),
        Algorithm::InNetwork if c.nvls_bus > 0.0 => {
            let inside =
                if c.inside == ServerInterconnect::Pcie { &t.hw_latency_us.pci } else { &t.hw_latency_us.nvlink };
            inside.nvls[protocol as usize] + t.hw_latency_us.net.nvls[protocol as usize]
        }
        Algorithm::InNetwork => {
            base + 2.0 * (intra + t.factors.collnet_direct_arity_us * (c.ranks_per_node - 1.0)) + inter
        }
        // Up the chain and down again, and once through the switches.
        Algorithm::CollnetChain => base + 2.0 * (c.ranks / c.nodes - 1.0) * intra + inter,
        Algorithm::Nvls => base + intra + if across { 2.0 * libm::log2(c.nodes) * inter } else { 0.0 },
        _ => {
            base + libm::log2(c.nodes) * inter / t.factors.pat_log_divisor + t.factors.pat_linear_us_per_rank * c.ranks
        }
    }
}

/// Latency of an operation in us, corrected for its size.
pub(in crate::collective) fn latency_us(
    op: CollectiveOp,
    algorithm: Algorithm,
    protocol: Protocol,
    bytes: u64,
    c: &Context,
) -> f64 {
    let f = &tuning().factors;
    let plateau =
        algorithm == Algorithm::Ring && protocol == Protocol::Simple && op == CollectiveOp::AllReduce && c.nodes > 1.0;
    let factor = match plateau && bytes as f64 / (c.channels as f64 * c.ranks) >= 64.0 {
        false => 1.0,
        true if c.arch >= Arch::Ampere => f.ring_simple_plateau_sm80plus,
        true => f.ring_simple_plateau_pre_sm80,
    };
    latency(op, algorithm, protocol, c) * factor
}

/// Algorithm bandwidth in GB/s, corrected for size; 0 if NCCL does not offer this pair.
fn bandwidth_gbps(op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, bytes: u64, c: &Context) -> f64 {
    let bw = uncorrected_gbps(op, algorithm, protocol, c);
    if algorithm != Algorithm::Tree || op != CollectiveOp::AllReduce {
        return bw;
    }
    let tables = &tuning().tree_correction;
    let table = match protocol {
        Protocol::Ll => &tables.ll,
        Protocol::Ll128 => &tables.ll128,
        Protocol::Simple => &tables.simple,
    };
    // Sizes beyond the table are not corrected.
    bw * table.get((bytes / 64).max(1).ilog2() as usize).copied().unwrap_or(1.0)
}

/// Predicted duration in us of an operation of `bytes`, counted as in nccl-tests. `None` if NCCL does not offer this pair.
pub fn predict_us(op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, bytes: u64, c: &Context) -> Option<f64> {
    let gbps = bandwidth_gbps(op, algorithm, protocol, bytes, c);
    (gbps > 0.0).then(|| latency_us(op, algorithm, protocol, bytes, c) + bytes as f64 / (1000.0 * gbps))
}
