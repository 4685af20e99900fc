//! The machine as collectives see it: GPU generation, links inside a server, NICs; and where a communicator's members are.
//!
//! Layer: collective. Plain numbers; it knows no topology and no file.

/// GPU generations that NCCL's model distinguishes, by compute capability.
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
    /// The generation of a compute capability times ten (80, 90, 100).
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
    /// NVLink through switches: every pair has the full rate.
    NvSwitch,
    /// NVLink from GPU to GPU: a GPU's rate is divided over its peers.
    NvlinkMesh,
    /// PCIe only.
    Pcie,
}

/// Makers of host CPUs, which determine the overhead of posting a network operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cpu {
    /// Made by Intel.
    Intel,
    /// Made by AMD.
    Amd,
    /// Made by somebody else, such as NVIDIA's Grace.
    Other,
}

/// The parameters that determine the cost of a collective on an idle cluster of equal servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CollectiveSystem {
    /// Generation of the GPUs.
    pub arch: Arch,
    /// The links between the GPUs of a server.
    pub inside: ServerInterconnect,
    /// Maker of the host CPUs.
    pub cpu: Cpu,
    /// Number of GPUs of a server.
    pub gpus_per_server: u32,
    /// Rate in bit/s of one GPU into the server's fabric, one direction, by the data sheet: NVLink's, or PCIe's if there is no NVLink.
    pub inside_bps: u64,
    /// Number of NICs of a server.
    pub nics_per_server: u32,
    /// Rate in bit/s of one NIC, one direction, all its ports together.
    pub nic_bps: u64,
    /// One-way latency of the network in ps, beyond what NCCL's own constants include for adjacent servers.
    pub net_extra_ps: u64,
    /// Time in ps that the NICs' transport adds to each pass through the network. NCCL's constants are for InfiniBand; this comes on top of them.
    pub transport_extra_ps: u64,
    /// Time in ps that hosts take between launches of a collective. It passes beside the collective itself: see [`super::BaseTimes`].
    pub launch_ps: u64,
    /// Time in ps by which a collective of 8 bytes in one server takes less than NCCL's constants say: see [`super::BaseTimes`].
    pub base_shortfall_ps: u64,
    /// The server's place among [`super::Server::names`]. Measured runs correct costs of their own server alone; `None`: no run corrects these costs.
    pub server_idx: Option<u16>,
    /// Factor on the latencies of steps and messages in millionths; one million leaves NCCL's latencies unchanged.
    pub latency_ppm: u64,
    /// Whether the NVSwitches reduce (NVLink SHARP).
    pub nvls: bool,
    /// Whether the network's switches reduce (SHARP).
    pub in_network: bool,
    /// A measured run that costs must not use, as its index in [`super::measured_runs`].
    pub left_out_run: Option<u16>,
    /// Whether analytic collectives follow Moye's equations: see [`super::ChunkPasses`].
    pub by_chunks: bool,
}

/// How the members of a communicator are placed on servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberPlacement {
    /// Number of members, at least 1.
    pub ranks: u32,
    /// Number of members in one server. It is 1 for data-parallel groups across servers whose GPUs are all in one tensor-parallel group.
    pub ranks_per_node: u32,
    /// Number of such groups that communicate at the same time on each server and share its NICs; 1 if the group is alone.
    pub sharing: u32,
}

impl MemberPlacement {
    /// A communicator that has its servers for itself.
    pub fn alone(ranks: u32, ranks_per_node: u32) -> MemberPlacement {
        MemberPlacement { ranks, ranks_per_node, sharing: 1 }
    }

    /// Number of servers that it spans.
    pub fn nodes(&self) -> u32 {
        self.ranks.max(1).div_ceil(self.ranks_per_node.max(1))
    }
}

impl CollectiveSystem {
    /// Rate in bit/s of one GPU to the others of `members` GPUs of its server, one direction. In a mesh it is the rate of the links to them.
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

    /// Bytes per second that one group may send from a server's NICs: those that its GPUs reach, or its share of them if other groups communicate.
    pub fn net_share_bytes_per_s(&self, placement: &MemberPlacement) -> f64 {
        let nics = self.nics_per_server.max(1) as f64;
        let reach = (placement.ranks_per_node as f64 * nics / self.gpus_per_server.max(1) as f64).max(1.0).min(nics);
        let share = nics / placement.sharing.max(1) as f64;
        reach.min(share) * self.nic_bps as f64 / 8.0
    }
}
