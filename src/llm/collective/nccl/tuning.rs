//! NCCL's tuning constants, read once from `assets/nccl/tuning_2_30_7.toml`, which names their source.
//!
//! Layer: collective.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::collective::system::Arch;

/// A latency in us for each protocol: LL, LL128, Simple.
pub(super) type PerProtocol = [f64; 3];

/// A row of latencies for each algorithm.
#[derive(Debug, Deserialize)]
pub(crate) struct Latencies {
    pub tree: PerProtocol,
    pub ring: PerProtocol,
    pub collnet_direct: PerProtocol,
    pub collnet_chain: PerProtocol,
    pub nvls: PerProtocol,
    pub nvls_tree: PerProtocol,
    pub pat: PerProtocol,
}

/// Latencies of one hop by the kind of link.
#[derive(Debug, Deserialize)]
pub(crate) struct HwLatencies {
    pub nvlink: Latencies,
    pub pci: Latencies,
    pub net: Latencies,
}

/// Rates in GB/s on 1, 2, and 3 or more nodes, by GPU generation.
#[derive(Debug, Deserialize)]
pub(crate) struct ByArch {
    volta: [f64; 3],
    ampere: [f64; 3],
    hopper: [f64; 3],
    blackwell: [f64; 3],
}

impl ByArch {
    /// The row of a generation.
    pub(crate) fn for_arch(&self, arch: Arch) -> &[f64; 3] {
        match arch {
            Arch::Volta => &self.volta,
            Arch::Ampere => &self.ampere,
            Arch::Hopper => &self.hopper,
            Arch::Blackwell => &self.blackwell,
        }
    }
}

/// Maximum rates of one channel.
#[derive(Debug, Deserialize)]
pub(crate) struct ChannelCaps {
    pub ring_ll128: ByArch,
    pub tree_ll128: ByArch,
    pub tree_simple: ByArch,
    pub nvls_tree: ByArch,
}

/// NVLS efficiency by generation.
#[derive(Debug, Deserialize)]
pub(crate) struct NvlsEfficiency {
    volta: f64,
    ampere: f64,
    hopper: f64,
    blackwell: f64,
}

impl NvlsEfficiency {
    /// The value of a generation.
    pub(crate) fn for_arch(&self, arch: Arch) -> f64 {
        match arch {
            Arch::Volta => self.volta,
            Arch::Ampere => self.ampere,
            Arch::Hopper => self.hopper,
            Arch::Blackwell => self.blackwell,
        }
    }
}

/// Factors on a tree's bandwidth, indexed by floor(log2(bytes / 64)).
#[derive(Debug, Deserialize)]
pub(crate) struct TreeCorrection {
    pub ll: Vec<f64>,
    pub ll128: Vec<f64>,
    pub simple: Vec<f64>,
}

/// Overhead in us per posted network operation, by CPU maker.
#[derive(Debug, Deserialize)]
pub(crate) struct NetOverhead {
    pub intel: f64,
    pub amd: f64,
    pub other: f64,
}

/// Factors between bandwidths or latencies.
#[derive(Debug, Deserialize)]
pub(crate) struct Factors {
    pub ring_simple_plateau_sm80plus: f64,
    pub ring_simple_plateau_pre_sm80: f64,
    pub ring_ll_bw: f64,
    pub ring_ll128_bw: f64,
    pub tree_allreduce_bw: f64,
    pub tree_ll_bw: f64,
    pub tree_ll128_bw_1node: f64,
    pub tree_ll128_bw_multinode: f64,
    pub pat_bw: f64,
    pub collnet_direct_sm90: f64,
    pub pat_linear_us_per_rank: f64,
    pub pat_log_divisor: f64,
    pub collnet_direct_arity_us: f64,
}

/// Rates in GB/s that NCCL counts for a link.
#[derive(Debug, Deserialize)]
pub(crate) struct LinkBw {
    pub nvlink_sm70: f64,
    pub nvlink_sm80: f64,
    pub nvlink_sm90: f64,
    pub nvlink_sm100: f64,
    pub pci_gen3_x16: f64,
}

/// Speeds of one channel that the search for a graph tries, in GB/s, descending.
#[derive(Debug, Deserialize)]
pub(crate) struct SearchSpeeds {
    pub intra: Vec<f64>,
    pub inter: Vec<f64>,
    pub intra_sm90: Vec<f64>,
    pub inter_sm90: Vec<f64>,
    pub intra_sm100: Vec<f64>,
    pub inter_sm100: Vec<f64>,
}

/// Buffer and chunk sizes in bytes.
#[derive(Debug, Deserialize)]
pub(crate) struct Buffers {
    pub nccl_steps: u64,
    pub buffsize_simple: u64,
    pub buffsize_ll: u64,
    pub buffsize_ll128: u64,
    pub p2p_chunk_net: u64,
    pub p2p_chunk_nvlink: u64,
    pub ring_simple_slice_steps: u64,
    pub broadcast_reduce_chunk_steps: u64,
    pub collnet_chain_chunk: u64,
    pub nvls_chunk: u64,
    pub nvls_tree_max_chunk_4nodes: u64,
    pub ll_line_bytes: u64,
    pub ll128_line_bytes: u64,
}

/// Numbers of channels.
#[derive(Debug, Deserialize)]
pub(crate) struct Channels {
    pub max_channels: u32,
    pub nvls_sm90: u32,
    pub nvls_sm100_multinode: u32,
    pub nvls_sm100_single_nvl: u32,
}

/// Threads of a channel, and the bytes per thread below which a channel is dropped.
#[derive(Debug, Deserialize)]
pub(crate) struct Threads {
    pub simple_max: u64,
    pub ll_max: u64,
    pub ll128_max: u64,
    pub threshold_ll: u64,
    pub threshold_ll128: u64,
    pub threshold_simple: u64,
    pub threshold_collnet_chain: u64,
}

/// All tuning constants.
#[derive(Debug, Deserialize)]
pub(crate) struct Tuning {
    pub base_latency_us: Latencies,
    pub hw_latency_us: HwLatencies,
    pub ll_max_bw: ByArch,
    pub per_channel_max_bw: ChannelCaps,
    pub nvls_efficiency: NvlsEfficiency,
    pub tree_correction: TreeCorrection,
    pub net_overhead_us: NetOverhead,
    pub factors: Factors,
    pub link_bw: LinkBw,
    pub search_speeds: SearchSpeeds,
    pub buffers: Buffers,
    pub channels: Channels,
    pub threads: Threads,
}

/// The constants of NCCL 2.30.7.
pub(crate) fn tuning() -> &'static Tuning {
    static TUNING: OnceLock<Tuning> = OnceLock::new();
    TUNING.get_or_init(|| {
        toml::from_str(include_str!("../../../../assets/nccl/tuning_2_30_7.toml"))
            .expect("the asset is part of the program and a test reads it")
    })
}
