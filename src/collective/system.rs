//! The machine as collectives see it: GPU generation, links inside a server, NICs; and where a communicator's members are.
//!
//! Layer: collective. Plain numbers; knows no topology, no file.

/// GPU generations that NCCL's model tells apart, by compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arch {
    /// 7.x (V100) and before.
    Volta,
    /// 8.x (A100, A800).
    Ampere,
    /// 9.x (H100, H200, H800, H20).
    Hopper,
    /// 10.x (B200, GB200, GB300) and after.
    Blackwell,
}

impl Arch {
    /// From a compute capability times ten (80, 90, 100).
    pub fn of_capability(sm: u32) -> Arch {
        match sm {
            0..80 => Arch::Volta,
            80..90 => Arch::Ampere,
            90..100 => Arch::Hopper,
            _ => Arch::Blackwell,
        }
    }
}

/// How the GPUs of a server reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerInterconnect {
    /// NVLink through switches: every pair at full rate.
    NvSwitch,
    /// NVLink from GPU to GPU: a GPU's rate is shared out over its peers.
    NvlinkMesh,
    /// PCIe only.
    Pcie,
}

/// Makers of host CPUs, which decide what posting a network operation costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cpu {
    Intel,
    Amd,
    Other,
}

/// What decides the cost of a collective on an idle cluster of equal servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CollectiveSystem {
    pub arch: Arch,
    pub inside: ServerInterconnect,
    pub cpu: Cpu,
    pub gpus_per_server: u32,
    /// Rate of one GPU into the server's fabric, one direction, as the data sheet has it, bit/s: NVLink's, or PCIe's where there is no NVLink.
    pub inside_bps: u64,
    pub nics_per_server: u32,
    /// Rate of one NIC, one direction, bit/s (all its ports together).
    pub nic_bps: u64,
    /// One-way latency of the network beyond what NCCL's own constants hold for adjacent servers, ps.
    pub net_extra_ps: u64,
    /// What the NICs' transport adds to each pass through the network beyond NCCL's constants, which are for InfiniBand, ps.
    pub transport_extra_ps: u64,
    /// Factor on the latencies of steps and messages, millionths: one million as NCCL has them.
    pub latency_ppm: u64,
    /// The NVSwitches reduce (NVLink SHARP).
    pub nvls: bool,
    /// The network's switches reduce (SHARP).
    pub in_network: bool,
    /// A measured run that costs take nothing from: its place in [`super::measured_runs`].
    pub left_out_run: Option<u16>,
    /// Collectives that are analytic take what Moye's equations say: see [`super::ChunkRounds`].
    pub by_chunks: bool,
}

/// Where the members of a communicator are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberPlacement {
    /// Members in all, at least 1.
    pub ranks: u32,
    /// Members in one server; 1 for data-parallel groups across servers whose GPUs are all in one tensor-parallel group.
    pub ranks_per_node: u32,
    /// Groups like this that communicate at the same time on each server and share its NICs; 1: alone.
    pub sharing: u32,
}

impl MemberPlacement {
    /// A communicator that has its servers to itself.
    pub fn alone(ranks: u32, ranks_per_node: u32) -> MemberPlacement {
        MemberPlacement { ranks, ranks_per_node, sharing: 1 }
    }

    /// Servers it spans.
    pub fn nodes(&self) -> u32 {
        self.ranks.max(1).div_ceil(self.ranks_per_node.max(1))
    }
}

impl CollectiveSystem {
    /// Rate of one GPU to the others of `members` GPUs of its server, one direction, bit/s: in a mesh that of the links to them.
    pub fn rate_among_bps(&self, members: u32) -> u64 {
        let (peers, all) = (members.saturating_sub(1), self.gpus_per_server.saturating_sub(1));
        match self.inside {
            ServerInterconnect::NvlinkMesh if (1..all).contains(&peers) => {
                (u128::from(self.inside_bps) * u128::from(peers) / u128::from(all)) as u64
            }
            _ => self.inside_bps,
        }
    }

    /// Factor on the latencies of steps and messages.
    pub(super) fn latency_scale(&self) -> f64 {
        self.latency_ppm as f64 / 1e6
    }

    /// Bytes a second that one group may send from a server's NICs: those its GPUs reach, its share of them if others are at work.
    pub fn net_share_bytes_per_s(&self, at: &MemberPlacement) -> f64 {
        let nics = self.nics_per_server.max(1) as f64;
        let reach = (at.ranks_per_node as f64 * nics / self.gpus_per_server.max(1) as f64).max(1.0).min(nics);
        let share = nics / at.sharing.max(1) as f64;
        reach.min(share) * self.nic_bps as f64 / 8.0
    }
}
