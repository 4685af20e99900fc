//! The duration of operations by the links that they load: NCCL's latencies, and the bandwidths that links were measured to give it
//! (`assets/nccl/calibration.toml`).
//!
//! Layer: collective. NCCL's own model uses the discrete speeds of its search; this module uses the rates of links. So a faster link is never slower here. `curves`
//! holds the ratio of measured runs to it.
//!
//! # The filling of pipelines
//!
//! Data that passes several members in chunks waits for the first chunk at each of them. With chunks of the best size that costs `2 sqrt(h B)` beside the latencies
//! and `B`, the time of the bytes on the links (Johnsson and Ho, "Optimum broadcasting and personalized communication in hypercubes", 1989). Here `h` is NCCL's
//! latency of one hop; with it the formula agrees with measured runs of trees, rings and NVLS. NCCL's model has a table of factors on the rates of trees instead.

use std::sync::OnceLock;

use serde::Deserialize;

use super::experts::{ExpertDispatcher, ExpertExchange};
use super::nccl::{Context, Env, Protocol, hop_latencies_us, latency_us, tuning, uncorrected_gbps};
use super::system::{Arch, CollectiveSystem, MemberPlacement, ServerInterconnect};
use super::{Algorithm, CollectiveOp};

#[derive(Debug, Deserialize)]
struct PerLink {
    volta: f64,
    ampere: f64,
    hopper: f64,
    blackwell: f64,
    pcie: f64,
}

impl PerLink {
    fn for_system(&self, system: &CollectiveSystem) -> f64 {
        match (system.inside, system.arch) {
            (ServerInterconnect::Pcie, _) => self.pcie,
            (_, Arch::Volta) => self.volta,
            (_, Arch::Ampere) => self.ampere,
            (_, Arch::Hopper) => self.hopper,
            (_, Arch::Blackwell) => self.blackwell,
        }
    }
}

#[derive(Debug, Deserialize)]
struct Nvls {
    hopper: f64,
    blackwell: f64,
    large_domain: f64,
}

#[derive(Debug, Deserialize)]
struct Net {
    ring: f64,
    point: f64,
}

#[derive(Debug, Deserialize)]
struct PointLatency {
    point_net: f64,
    point_inside: f64,
    peer_net: f64,
    peer_inside: f64,
}

#[derive(Debug, Deserialize)]
struct ExpertKernels {
    nvlink: f64,
    deepep_gbps: f64,
    low_latency_us: f64,
}

#[derive(Debug, Deserialize)]
struct Calibration {
    ring: PerLink,
    nvls: Nvls,
    net: Net,
    copy: PerLink,
    latency_us: PointLatency,
    experts: ExpertKernels,
}

fn calibration() -> &'static Calibration {
    static CALIBRATION: OnceLock<Calibration> = OnceLock::new();
    CALIBRATION.get_or_init(|| {
        toml::from_str(include_str!("../../../assets/nccl/calibration.toml"))
            .expect("the asset is part of the program and a test reads it")
    })
}

/// Number of channels that limits of one channel are multiplied by, if the environment sets none: 12 rings, doubled, as NCCL's logs show for 8 A100 and 8 H100.
/// NCCL's own count depends on the speeds of its search, with which a faster link could be slower.
const CHANNELS: u32 = 24;

/// Bytes to a peer up to which all-to-alls use LL: NCCL's `NCCL_P2P_LL_THRESHOLD` of 16 KiB for each of two channels of a peer (`src/enqueue.cc`; two channels in
/// logs of two servers of 8 H100).
const P2P_LL_BYTES: f64 = 32_768.0;

/// Buffer steps of a ring's chunk with Simple (NCCL's `src/include/collectives.h`, `ALLREDUCE_CHUNKSTEPS`).
const RING_CHUNK_STEPS: u64 = 4;

/// Bytes of a warp's first store with LL: 8 bytes for each of 32 threads. From here on, NCCL's constants hold without the shortfall of a base time.
const WARP_BYTES: f64 = 256.0;

/// Number of GPUs in one NVLink domain from which on it spans several levels of switches (NVL72, unlike 8 in a box).
pub(super) const LARGE_DOMAIN: u32 = 17;

/// A communicator described by its links; rates in GB/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommunicatorLinks {
    context: Context,
    placement: MemberPlacement,
    /// A GPU's rate into the server's fabric for rings.
    ring: f64,
    /// A GPU's rate into the server's fabric for reductions in the switch.
    nvls: f64,
    /// A GPU's rate into the server's fabric for copies.
    copy: f64,
    /// A GPU's rate into the server's fabric for kernels that exchange tokens with experts.
    expert: f64,
    /// Rate that the group gets from one server's NICs for rings.
    net: f64,
    /// Rate that the group gets from one server's NICs for single messages.
    net_point: f64,
    /// Extra time of a pass through the network in us.
    net_extra_us: f64,
    /// Factor on the latencies of steps and messages.
    latency_scale: f64,
    /// Time in us between launches.
    launch_us: f64,
    /// Time in us by which 8 bytes take less than NCCL's constants say.
    shortfall_us: f64,
}

impl CommunicatorLinks {
    /// The communicator with this placement on `system`; NCCL's model gives its `context`.
    pub(super) fn new(
        mut context: Context,
        system: &CollectiveSystem,
        placement: &MemberPlacement,
        env: &Env,
    ) -> CommunicatorLinks {
        let c = calibration();
        // Without peer-to-peer, data inside a server passes through the host: over PCIe up and down, at NCCL's rate for it.
        let host = tuning().link_bw.pci_gen3_x16;
        let sheet = system.rate_among_bps(placement.ranks_per_node) as f64 / 8e9;
        let held = |gbps: f64| if env.no_p2p() { gbps.min(host) } else { gbps };
        // Without RDMA, or without a path from NIC to GPU, data that leaves the server also crosses the host's memory.
        let through_host = env.sockets || env.gdr_level == Some(super::nccl::PathLevel::Loc);
        let nics = CollectiveSystem { nics_per_server: env.nics(system.nics_per_server), ..*system };
        let share = nics.net_share_bytes_per_s(placement) / 1e9;
        let net = if through_host { share.min(host * placement.ranks_per_node as f64) } else { share };
        let nvls = match system.arch {
            _ if placement.ranks_per_node >= LARGE_DOMAIN => c.nvls.large_domain,
            Arch::Blackwell => c.nvls.blackwell,
            _ => c.nvls.hopper,
        };
        let ring = held(sheet * c.ring.for_system(system));
        let across = placement.nodes() > 1;
        // Bounds on channels reduce the links' rates as they reduce the bandwidths of NCCL's model.
        context.channels = env.bound_channels(CHANNELS);
        context.intra_bus = ring * context.held;
        context.inter_bus = if across {
            (net * c.net.ring).min(if placement.ranks_per_node > 1 { ring } else { f64::MAX })
        } else {
            ring
        } * context.held;
        CommunicatorLinks {
            context,
            placement: *placement,
            ring: context.intra_bus,
            nvls: sheet * nvls,
            copy: held(sheet * c.copy.for_system(system)),
            expert: held(match system.inside {
                ServerInterconnect::Pcie => sheet * c.copy.pcie,
                _ => sheet * c.experts.nvlink,
            }),
            net: net * c.net.ring * context.held,
            net_point: net * c.net.point,
            net_extra_us: if across { (system.net_extra_ps + system.transport_extra_ps) as f64 / 1e6 } else { 0.0 },
            latency_scale: system.latency_scale(),
            launch_us: system.launch_ps as f64 / 1e6,
            shortfall_us: if across { 0.0 } else { system.base_shortfall_ps as f64 / 1e6 },
        }
    }

    /// Time of an operation of `bytes` in us. Every pair of operation and algorithm has one. Pairs that NCCL does not offer are estimated from their volume and
    /// steps.
    pub(super) fn time_us(&self, op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> f64 {
        let us = self.on_links_us(op, algorithm, protocol, bytes);
        // A shortfall never takes more than half: no machine was measured at less.
        let shortfall_us = (self.shortfall_us * (1.0 - bytes as f64 / WARP_BYTES).max(0.0)).min(us / 2.0);
        self.launched_us(us - shortfall_us)
    }

    /// Time in us of what takes `us` after its launch, when hosts launch ahead. The mean of the slower of both is more than either where they are about as long.
    /// For that the root of the sum of squares is taken: our choice, between their maximum and their sum.
    fn launched_us(&self, us: f64) -> f64 {
        libm::hypot(self.launch_us, us)
    }

    /// Time of an operation of `bytes` in us after its launch.
    fn on_links_us(&self, op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> f64 {
        let (c, s) = (&self.context, self.latency_scale);
        let kb = bytes as f64 / 1000.0;
        if let CollectiveOp::Experts(e) = op {
            return self.experts_us(bytes, &e);
        }
        if op == CollectiveOp::AllToAll {
            return self.all_to_all_us(bytes, algorithm == Algorithm::Hierarchical);
        }
        let passes = self.net_extra_us * self.net_passes(op, algorithm);
        match algorithm {
            Algorithm::Ring => {
                s * latency_us(op, algorithm, protocol, bytes, c) + self.ring_bytes_us(op, protocol, bytes) + passes
            }
            Algorithm::Tree => {
                let gbps = uncorrected_gbps(op, algorithm, protocol, &self.tree_context());
                if gbps > 0.0 {
                    let bytes_us = kb / gbps;
                    let (_, intra, inter) = hop_latencies_us(algorithm, protocol, c);
                    let fill_us = pipeline_fill_us(self.pipeline_hop_us(intra, inter), bytes_us);
                    return s * latency_us(op, algorithm, protocol, bytes, c) + bytes_us + fill_us + passes;
                }
                // NCCL has no tree for this operation, only a ring. Half of the ring's bus bandwidth and the tree's depth are used.
                let depth = s * latency_us(CollectiveOp::AllReduce, algorithm, protocol, bytes, c) / 2.0;
                depth + kb / (0.5 * self.bus()) + passes
            }
            Algorithm::HalvingDoubling | Algorithm::Pat => self.logarithmic_us(op, kb) + passes,
            Algorithm::Nvls => {
                let bytes_us = kb / self.reduced_gbps(op, algorithm);
                // Inside a server, the switch and its GPUs are a tree of one level.
                let intra = tuning().hw_latency_us.nvlink.tree[Protocol::Simple as usize];
                let inter = tuning().hw_latency_us.net.nvls_tree[Protocol::Simple as usize];
                s * latency_us(op, algorithm, Protocol::Simple, bytes, c)
                    + bytes_us
                    + pipeline_fill_us(self.pipeline_hop_us(intra, inter), bytes_us)
                    + passes
            }
            Algorithm::InNetwork => {
                s * latency_us(op, algorithm, Protocol::Simple, bytes, c)
                    + kb / self.reduced_gbps(op, algorithm)
                    + passes
            }
            Algorithm::CollnetChain => {
                let bytes_us = kb / self.reduced_gbps(op, algorithm);
                // The switches between servers pass pieces on as they come, so only the hops inside servers are filled.
                let (_, intra, _) = hop_latencies_us(algorithm, Protocol::Simple, c);
                let hop_us = if c.ranks_per_node > 1.0 { s * intra } else { 0.0 };
                s * latency_us(op, algorithm, Protocol::Simple, bytes, c)
                    + bytes_us
                    + pipeline_fill_us(hop_us, bytes_us)
                    + passes
            }
            _ => self.grouped_us(op, algorithm, kb) + passes,
        }
    }

    /// Latency in us of the slowest hop of a pipeline through the communicator, by NCCL's latencies of both kinds of hops.
    fn pipeline_hop_us(&self, intra_us: f64, inter_us: f64) -> f64 {
        if self.context.nodes > 1.0 {
            self.latency_scale * inter_us + self.net_extra_us
        } else {
            self.latency_scale * intra_us
        }
    }

    /// Time in us of a ring's bytes: on the network, or inside servers with the filling of the pipeline, whichever is longer.
    ///
    /// The pipeline is filled once for all that the channels' buffers hold of every member; later bytes follow without a gap.
    fn ring_bytes_us(&self, op: CollectiveOp, protocol: Protocol, bytes: u64) -> f64 {
        let (c, kb) = (&self.context, bytes as f64 / 1000.0);
        // A pair that NCCL does not offer takes the rate of Simple.
        let offered = uncorrected_gbps(op, Algorithm::Ring, protocol, c) > 0.0;
        let protocol = if offered { protocol } else { Protocol::Simple };
        let bytes_us = kb / uncorrected_gbps(op, Algorithm::Ring, protocol, c);
        let inside = Context { inter_bus: c.intra_bus, ..*c };
        let inside_us = kb / uncorrected_gbps(op, Algorithm::Ring, protocol, &inside);
        let buffers = &tuning().buffers;
        let chunk_bytes = match protocol {
            Protocol::Ll => 0,
            Protocol::Ll128 => buffers.buffsize_ll128 / buffers.nccl_steps * 15 / 16,
            Protocol::Simple => buffers.buffsize_simple / buffers.nccl_steps * RING_CHUNK_STEPS,
        };
        let filling_bytes = f64::from(c.channels) * c.ranks * chunk_bytes as f64;
        let first = (filling_bytes / bytes.max(1) as f64).min(1.0);
        let (_, hop_us, _) = hop_latencies_us(Algorithm::Ring, protocol, c);
        let filled_hop_us = fills(op, protocol) * self.latency_scale * hop_us;
        bytes_us.max(inside_us + pipeline_fill_us(filled_hop_us, inside_us * first))
    }

    /// Rates of a ring's edges in GB/s: (a GPU's into its server's fabric, the group's from one server's NICs).
    pub(super) fn edge_gbps(&self) -> (f64, f64) {
        (self.ring, self.net)
    }

    /// Time of an operation in us without its bytes: NCCL's latencies of its steps, and the passes through the network.
    pub(super) fn setup_us(&self, op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> f64 {
        self.latency_scale * latency_us(op, algorithm, protocol, bytes, &self.context)
            + self.net_extra_us * self.net_passes(op, algorithm)
    }

    /// Time of one message between two GPUs in us.
    pub(super) fn message_us(&self, bytes: u64) -> f64 {
        let (c, s) = (&calibration().latency_us, self.latency_scale);
        let kb = bytes as f64 / 1000.0;
        self.launched_us(if self.placement.nodes() > 1 {
            s * c.point_net + self.net_extra_us + kb / self.net_point.min(self.copy)
        } else {
            s * c.point_inside + kb / self.copy
        })
    }

    /// Number of passes through the network, one after another.
    pub(super) fn net_passes(&self, op: CollectiveOp, algorithm: Algorithm) -> f64 {
        let nodes = self.context.nodes;
        let phases = if op == CollectiveOp::AllReduce { 2.0 } else { 1.0 };
        match algorithm {
            Algorithm::Ring | Algorithm::Hierarchical => phases * (nodes - 1.0),
            Algorithm::Direct => phases,
            Algorithm::InNetwork | Algorithm::CollnetChain => 2.0,
            _ => phases * libm::ceil(libm::log2(nodes)),
        }
    }

    /// The communicator as a double tree loads its links. Each of the `nodes - 1` edges between servers carries the data once up and once down. So a server's
    /// NICs carry `2 (nodes - 1) / nodes` times the data; with two servers, that is once. NCCL's formula takes half of the bus as the algorithm bandwidth of a
    /// tree.
    fn tree_context(&self) -> Context {
        let c = self.context;
        if c.nodes <= 1.0 {
            return c;
        }
        let across = self.net * c.nodes / (2.0 * (c.nodes - 1.0));
        Context { inter_bus: (2.0 * across).min(self.ring), ..c }
    }

    /// A ring's bus bandwidth in GB/s.
    fn bus(&self) -> f64 {
        if self.context.nodes > 1.0 { self.context.inter_bus } else { self.ring }
    }

    /// Algorithm bandwidth in GB/s if switches reduce.
    fn reduced_gbps(&self, op: CollectiveOp, algorithm: Algorithm) -> f64 {
        let (nodes, k) = (self.context.nodes, self.context.ranks_per_node);
        // Each GPU sends its data once to be reduced and receives its part of the sums. Then it sends that part once to be spread and receives all parts.
        let inside = match op {
            _ if k <= 1.0 => f64::MAX,
            // A GPU is an end of one of the k chains and of another in the other direction, so it sends 2 (k - 1) / k times the data to its neighbours.
            _ if algorithm == Algorithm::CollnetChain => self.ring * k / (2.0 * (k - 1.0)),
            CollectiveOp::AllReduce if self.context.nvls_bus > 0.0 => self.nvls * k / (k + 1.0),
            _ if self.context.nvls_bus > 0.0 => self.nvls * k / (k - 1.0),
            _ => self.ring * k / (2.0 * (k - 1.0)),
        };
        let across = match algorithm {
            _ if nodes <= 1.0 => f64::MAX,
            Algorithm::InNetwork | Algorithm::CollnetChain => self.net,
            // With two trees, each of the nodes - 1 edges carries the data once up and once down.
            _ => self.net * nodes / (2.0 * (nodes - 1.0)),
        };
        inside.min(across)
    }

    /// Time in us of recursive halving and doubling: NCCL's PAT if the operation has one, else by steps.
    fn logarithmic_us(&self, op: CollectiveOp, kb: f64) -> f64 {
        let (c, s) = (&self.context, self.latency_scale);
        let pat = uncorrected_gbps(op, Algorithm::HalvingDoubling, Protocol::Simple, c);
        if pat > 0.0 {
            return s * latency_us(op, Algorithm::HalvingDoubling, Protocol::Simple, 0, c) + kb / pat;
        }
        let phases = if op == CollectiveOp::AllReduce { 2.0 } else { 1.0 };
        let (base, intra, inter) = hops(c.inside);
        let rounds_net = libm::ceil(libm::log2(c.nodes));
        let rounds = libm::ceil(libm::log2(c.ranks)) - rounds_net;
        // Distances beyond the server load the NICs of all its members at once. Most bytes move at the largest distance.
        let (n, k) = (c.ranks, c.ranks_per_node);
        let within = kb * (k - 1.0) / n / self.ring;
        let across = if c.nodes > 1.0 { kb * k * (n - k) / n / self.net } else { 0.0 };
        s * base + phases * (s * (rounds * intra + rounds_net * inter) + within + across)
    }

    /// Time in us of direct and hierarchical forms: the bytes of the busiest link, and the latency of the steps.
    fn grouped_us(&self, op: CollectiveOp, algorithm: Algorithm, kb: f64) -> f64 {
        let c = &self.context;
        let (n, k, nodes) = (c.ranks, c.ranks_per_node, c.nodes);
        let (base, intra, inter) = hops(c.inside);
        let hierarchical = algorithm == Algorithm::Hierarchical;
        let phases = if op == CollectiveOp::AllReduce { 2.0 } else { 1.0 };
        // kB that the busiest GPU moves inside its server, and the busiest server's NICs outside.
        let (within, across) = match (op, hierarchical) {
            (CollectiveOp::Broadcast | CollectiveOp::Reduce, false) => ((k - 1.0) * kb, (n - k) * kb),
            (CollectiveOp::Broadcast | CollectiveOp::Reduce, true) => {
                (2.0 * (k - 1.0) / k * kb, if nodes > 1.0 { kb } else { 0.0 })
            }
            (_, false) => (phases * (k - 1.0) / n * kb, phases * k * (n - k) / n * kb),
            (_, true) => (phases * (k - 1.0) / k * kb, phases * (nodes - 1.0) / nodes * kb),
        };
        let steps = if hierarchical {
            phases * intra + phases * (nodes - 1.0) * inter
        } else {
            phases * if nodes > 1.0 { inter } else { intra }
        };
        self.latency_scale * (base + steps)
            + (within / self.ring).max(if across > 0.0 { across / self.net } else { 0.0 })
    }

    /// Time of an all-to-all in us: the slower of the traffic inside the server and the traffic that leaves it.
    fn all_to_all_us(&self, bytes: u64, rails: bool) -> f64 {
        let (c, s) = (&calibration().latency_us, self.latency_scale);
        let (n, k, nodes) = (self.context.ranks, self.context.ranks_per_node, self.context.nodes);
        let kb = bytes as f64 / 1000.0;
        // With rails, most of what leaves first goes to a neighbour: (k - 1) / k of it.
        let relayed = if rails && k > 1.0 { (n - k) / n * (k - 1.0) / k } else { 0.0 };
        let within = kb * ((k - 1.0) / n + relayed) / self.copy;
        if nodes <= 1.0 {
            return s * (c.point_inside + c.peer_inside * (n - 2.0).max(0.0)) + within;
        }
        let across = kb * k * (n - k) / n / self.net_point;
        let peers = if rails { nodes - 1.0 } else { n - k };
        // Each peer of a small one is one operation to send and one to receive.
        let is_small = bytes as f64 <= P2P_LL_BYTES * n;
        let peer_net = if is_small { (2.0 * self.context.overhead_us).min(c.peer_net) } else { c.peer_net };
        s * (c.point_net + peer_net * peers) + self.net_extra_us + within.max(across)
    }

    /// Time in us of an exchange of tokens with experts by kernels of its own. NVLink and the network carry different pieces at the same time, so the slower of
    /// both decides.
    fn experts_us(&self, bytes: u64, e: &ExpertExchange) -> f64 {
        let c = calibration();
        let (n, k) = (self.context.ranks, self.context.ranks_per_node.min(self.context.ranks));
        let kb = bytes as f64 / 1000.0;
        let across = n > k;
        let net_extra_us = if across { self.net_extra_us } else { 0.0 };
        if !e.is_once_a_server() {
            // Copies for the sender's own GPU pass through the same kernel as those for its neighbours.
            let (within, outside) = (kb * k / n / self.expert, kb * k * (n - k) / n / self.net_point);
            return self.latency_scale * c.experts.low_latency_us + net_extra_us + within.max(outside);
        }
        let (experts, servers) = (f64::from(e.experts), n / k);
        let token_kb = kb / f64::from(e.top_k.max(1));
        // kB that reach a GPU, with its own: tokens, each once for a GPU.
        let within = token_kb * n * e.probability(experts / n, 1.0 / n) / self.expert;
        if !across {
            return self.latency_scale * c.latency_us.point_inside + within;
        }
        // kB of a GPU's tokens, each once for a server, with its own server.
        let sent_kb = token_kb * servers * e.probability(experts / servers, 1.0 / servers);
        let outside = sent_kb * (servers - 1.0) / servers * k / self.net_point;
        // The first version's kernels pass tokens for their own server through the same buffers as those for others.
        let buffers = if e.dispatcher == ExpertDispatcher::DeepEp { sent_kb / c.experts.deepep_gbps } else { 0.0 };
        self.latency_scale * c.latency_us.point_net + net_extra_us + within.max(outside).max(buffers)
    }
}

/// Number of times that a ring's pipeline is filled: once to sum, and once more to spread.
///
/// LL passes lines of 8 bytes on as they come. With Simple, members that only spread write into each other's buffers, and all-gathers were measured without a
/// filling (gke_gib_2n, from 32 MiB on).
fn fills(op: CollectiveOp, protocol: Protocol) -> f64 {
    match (op, protocol) {
        (_, Protocol::Ll) => 0.0,
        (CollectiveOp::AllReduce, _) => 2.0,
        (CollectiveOp::AllGather | CollectiveOp::Broadcast, Protocol::Simple) => 0.0,
        _ => 1.0,
    }
}

/// Time in us that the filling of a pipeline adds to bytes that take `bytes_us`, with a latency of `hop_us` for each hop.
fn pipeline_fill_us(hop_us: f64, bytes_us: f64) -> f64 {
    2.0 * libm::sqrt(hop_us * bytes_us)
}

/// Latencies in us of a grouped send and receive without its bytes: (inside a server, over the network without the network's own latency).
pub(super) fn point_latencies_us() -> (f64, f64) {
    let c = &calibration().latency_us;
    (c.point_inside, c.point_net)
}

/// Latencies of the Simple protocol in us: (base, hop inside a server, hop over the network).
fn hops(inside: ServerInterconnect) -> (f64, f64, f64) {
    let t = tuning();
    let simple = Protocol::Simple as usize;
    let hw = if inside == ServerInterconnect::Pcie { &t.hw_latency_us.pci } else { &t.hw_latency_us.nvlink };
    (t.base_latency_us.ring[simple], hw.ring[simple], t.hw_latency_us.net.ring[simple])
}
