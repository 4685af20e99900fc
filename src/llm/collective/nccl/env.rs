//! NCCL's environment variables: those that SimAI's Table 6 marks as supported, as typed settings.
//!
//! Layer: collective. This module only parses. The code that reads a setting decides what it does (`choice`, the network's set-up).

use std::collections::BTreeMap;

use crate::collective::nccl::{Protocol, tuning};
use crate::collective::{Algorithm, CollectiveOp};

/// An error in a variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvError {
    /// The variable is unknown, or nothing is simulated of it.
    #[error("{name} is not a variable that can be simulated; those that can: {}", NAMES.join(", "))]
    Unknown {
        /// Name of the variable.
        name: String,
    },
    /// The variable cannot have this value.
    #[error("{name} = \"{value}\": {right}")]
    Value {
        /// Name of the variable.
        name: String,
        /// Value, as it was written.
        value: String,
        /// A description of values that would be right.
        right: &'static str,
    },
    /// The variables exclude every algorithm or protocol.
    #[error("{name}s leave nothing to choose from: {left}")]
    Nothing {
        /// The kind of choice: algorithms or protocols.
        name: &'static str,
        /// A description of the variables' values.
        left: String,
    },
}

/// Names of the supported variables.
pub const NAMES: [&str; 28] = [
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_CROSS_NIC",
    "NCCL_IB_DISABLE",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_HCA",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_RETRY_CNT",
    "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_IB_TC",
    "NCCL_IB_TIMEOUT",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MAX_NRINGS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MIN_NRINGS",
    "NCCL_NET",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_SHARED_BUFFERS",
    "NCCL_NVB_DISABLE",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DIRECT_DISABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_P2P_PXN_LEVEL",
    "NCCL_PROTO",
    "NCCL_PXN_DISABLE",
    "NCCL_TOPO_FILE",
];

/// Variables without an effect in this model. They are accepted, and reported by [`Env::without_effect`].
const WITHOUT_EFFECT: [&str; 4] =
    ["NCCL_IB_GID_INDEX", "NCCL_NET_SHARED_BUFFERS", "NCCL_NVB_DISABLE", "NCCL_P2P_DIRECT_DISABLE"];

/// The allowed options, one bit each; for some operations separately if the variable says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowed {
    all: u8,
    by_op: [Option<u8>; OPS.len()],
}

/// Operations that NCCL_ALGO and NCCL_PROTO may name.
const OPS: [(&str, CollectiveOp); 5] = [
    ("broadcast", CollectiveOp::Broadcast),
    ("reduce", CollectiveOp::Reduce),
    ("allgather", CollectiveOp::AllGather),
    ("reducescatter", CollectiveOp::ReduceScatter),
    ("allreduce", CollectiveOp::AllReduce),
];

/// NCCL's names of algorithms, and the algorithms of this project.
const ALGORITHMS: [(&str, Algorithm); 7] = [
    ("tree", Algorithm::Tree),
    ("ring", Algorithm::Ring),
    ("collnetdirect", Algorithm::InNetwork),
    ("collnetchain", Algorithm::CollnetChain),
    ("nvls", Algorithm::Nvls),
    ("nvlstree", Algorithm::Nvls),
    ("pat", Algorithm::Pat),
];

/// NCCL's names of protocols.
const PROTOCOLS: [(&str, Protocol); 3] =
    [("ll", Protocol::Ll), ("ll128", Protocol::Ll128), ("simple", Protocol::Simple)];

/// The NICs that NCCL_IB_HCA allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hca {
    /// Whether the list names excluded NICs.
    pub exclude: bool,
    /// Whether names must match as a whole (`=`). Otherwise a listed name matches any name that begins with it.
    pub exact: bool,
    /// Names in the list. Ports (`:1`) of one device count once.
    pub devices: Vec<String>,
}

/// Distances between two devices up to which a feature is allowed, nearest first (NCCL's path types).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathLevel {
    /// Never allowed.
    Loc,
    /// Allowed through NVLink alone.
    Nvl,
    /// Through one PCIe switch.
    Pix,
    /// Through several PCIe switches.
    Pxb,
    /// Through the CPU's root complex.
    Phb,
    /// Through the link between CPUs.
    Sys,
}

/// NCCL's settings. `Env::default()` is an empty environment; `None` means that the variable is not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    algorithms: Option<Allowed>,
    protocols: Option<Allowed>,
    /// Least number of channels (NCCL_MIN_NCHANNELS).
    pub min_channels: Option<u32>,
    /// Largest number of channels (NCCL_MAX_NCHANNELS).
    pub max_channels: Option<u32>,
    /// Buffer size of the Simple protocol in bytes (NCCL_BUFFSIZE).
    pub buffsize: Option<u64>,
    /// 0: rings stay on one NIC per server; 1: they leave by another; 2: they may, if that gives more bandwidth, and stay on rails.
    pub cross_nic: Option<u32>,
    /// Whether NVLink switches may reduce (NCCL_NVLS_ENABLE).
    pub nvls_enable: Option<bool>,
    /// Whether data never leaves by the NIC of another GPU (NCCL_PXN_DISABLE).
    pub pxn_disable: bool,
    /// 0: no PXN for all-to-all; 1: PXN for data that would leave by a far NIC; 2: always, to aggregate.
    pub pxn_level: Option<u32>,
    /// Whether GPUs of a server use the network (NCCL_P2P_DISABLE).
    pub p2p_disable: bool,
    /// Distance up to which GPUs reach each other directly (NCCL_P2P_LEVEL).
    pub p2p_level: Option<PathLevel>,
    /// Distance up to which NICs reach GPUs directly (NCCL_NET_GDR_LEVEL).
    pub gdr_level: Option<PathLevel>,
    /// Bytes that an all-to-all passes on at a time (NCCL_P2P_NET_CHUNKSIZE).
    pub p2p_net_chunk: Option<u64>,
    /// Whether the network is reached through the host (NCCL_IB_DISABLE, or NCCL_NET = Socket).
    pub sockets: bool,
    /// NICs that may be used (NCCL_IB_HCA).
    pub hca: Option<Hca>,
    /// Queue pairs of a connection (NCCL_IB_QPS_PER_CONNECTION).
    pub ib_qps: Option<u32>,
    /// Whether each message is split over them (NCCL_IB_SPLIT_DATA_ON_QPS).
    pub ib_split_data: Option<bool>,
    /// Traffic class of packets (NCCL_IB_TC).
    pub ib_traffic_class: Option<u8>,
    /// Time in ps until a lost packet is sent again (4.096 us x 2^NCCL_IB_TIMEOUT).
    pub ib_timeout_ps: Option<u64>,
    /// Number of retransmissions (NCCL_IB_RETRY_CNT).
    pub ib_retries: Option<u32>,
    /// Path of a topology file (NCCL_TOPO_FILE).
    pub topo_file: Option<String>,
    without_effect: Vec<String>,
}

impl Env {
    /// Parses variables. Unknown names, values out of range and contradictions are errors.
    pub fn parse(variables: &BTreeMap<String, String>) -> Result<Env, EnvError> {
        let mut env = Env::default();
        for (name, value) in variables {
            env.set(name, value.trim())?;
        }
        if let (Some(min), Some(max)) = (env.min_channels, env.max_channels)
            && min > max
        {
            return Err(EnvError::Nothing {
                name: "NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNEL",
                left: format!("at least {min} and at most {max} channels"),
            });
        }
        Ok(env)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), EnvError> {
        let bad = |right| EnvError::Value { name: name.to_string(), value: value.to_string(), right };
        let int = |min: u64, max: u64, right| {
            value.parse::<u64>().ok().filter(|v| (min..=max).contains(v)).ok_or_else(|| bad(right))
        };
        let flag = || match value {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(bad("must be 0 or 1")),
        };
        match name {
            "NCCL_ALGO" => self.algorithms = Some(allowed(value, &ALGORITHMS, |a| algorithm_bit(*a)).ok_or_else(|| bad("must be a list such as \"Ring,Tree\", \"^NVLS\" or \"allreduce:tree;allgather:ring\" of Tree, Ring, CollnetDirect, CollnetChain, NVLS, NVLSTree, PAT"))?),
            "NCCL_PROTO" => self.protocols = Some(allowed(value, &PROTOCOLS, |p| 1 << *p as u8).ok_or_else(|| bad("must be a list such as \"LL,Simple\" or \"^LL128\" of LL, LL128, Simple"))?),
            "NCCL_MIN_NCHANNELS" | "NCCL_MIN_NRINGS" => self.min_channels = Some(int(1, 64, "must be a number of channels from 1 to 64")? as u32),
            "NCCL_MAX_NCHANNELS" | "NCCL_MAX_NRINGS" => self.max_channels = Some(int(1, 64, "must be a number of channels from 1 to 64")? as u32),
            "NCCL_BUFFSIZE" => self.buffsize = Some(int(4096, 1 << 32, "must be bytes from 4096 to 4294967296")?),
            "NCCL_P2P_NET_CHUNKSIZE" => self.p2p_net_chunk = Some(int(4096, 1 << 30, "must be bytes from 4096 to 1073741824")?),
            "NCCL_CROSS_NIC" => self.cross_nic = Some(int(0, 2, "must be 0, 1 or 2")? as u32),
            "NCCL_NVLS_ENABLE" => self.nvls_enable = Some(int(0, 2, "must be 0, 1 or 2")? != 0),
            "NCCL_PXN_DISABLE" => self.pxn_disable = flag()?,
            "NCCL_P2P_PXN_LEVEL" => self.pxn_level = Some(int(0, 2, "must be 0, 1 or 2")? as u32),
            "NCCL_P2P_DISABLE" => self.p2p_disable = flag()?,
            "NCCL_P2P_LEVEL" => self.p2p_level = Some(level(value).ok_or_else(|| bad("must be LOC, NVL, PIX, PXB, PHB or SYS"))?),
            "NCCL_NET_GDR_LEVEL" => self.gdr_level = Some(level(value).ok_or_else(|| bad("must be LOC, PIX, PXB, PHB or SYS"))?),
            "NCCL_IB_DISABLE" => self.sockets |= flag()?,
            "NCCL_NET" => match value.to_ascii_lowercase().as_str() {
                "socket" => self.sockets = true,
                "ib" => {}
                _ => return Err(bad("must be IB or Socket")),
            },
            "NCCL_IB_HCA" => self.hca = Some(hca(value).ok_or_else(|| bad("must name NICs, for example \"mlx5_0,mlx5_1\", \"=mlx5_0:1\" or \"^mlx5_2\""))?),
            "NCCL_IB_QPS_PER_CONNECTION" => self.ib_qps = Some(int(1, 128, "must be from 1 to 128")? as u32),
            "NCCL_IB_SPLIT_DATA_ON_QPS" => self.ib_split_data = Some(flag()?),
            "NCCL_IB_TC" => self.ib_traffic_class = Some(int(0, 255, "must be from 0 to 255")? as u8),
            "NCCL_IB_TIMEOUT" => self.ib_timeout_ps = Some(4_096_000 << int(1, 31, "must be from 1 to 31 (4.096 us x 2^value)")?),
            "NCCL_IB_RETRY_CNT" => self.ib_retries = Some(int(0, 7, "must be from 0 to 7")? as u32),
            "NCCL_TOPO_FILE" => self.topo_file = Some(value.to_string()),
            _ if WITHOUT_EFFECT.contains(&name) => self.without_effect.push(name.to_string()),
            _ => return Err(EnvError::Unknown { name: name.to_string() }),
        }
        Ok(())
    }

    /// Whether an algorithm may be chosen for an operation.
    pub fn allows(&self, op: CollectiveOp, algorithm: Algorithm) -> bool {
        let named = self.algorithms.as_ref().is_none_or(|a| a.bits_for(op) & algorithm_bit(algorithm) != 0);
        named && !(algorithm == Algorithm::Nvls && self.nvls_enable == Some(false))
    }

    /// Whether a protocol may be chosen for an operation.
    pub fn allows_protocol(&self, op: CollectiveOp, protocol: Protocol) -> bool {
        self.protocols.as_ref().is_none_or(|a| a.bits_for(op) & 1 << protocol as u8 != 0)
    }

    /// A channel count limited to the given bounds.
    pub fn bound_channels(&self, channels: u32) -> u32 {
        channels.min(self.max_channels.unwrap_or(u32::MAX)).max(self.min_channels.unwrap_or(1))
    }

    /// Number of NICs that may be used, of `per_server` NICs of a server.
    pub fn nics(&self, per_server: u32) -> u32 {
        match &self.hca {
            None => per_server,
            Some(h) if h.exclude => per_server.saturating_sub(h.devices.len() as u32).max(1),
            Some(h) => per_server.min(h.devices.len() as u32),
        }
    }

    /// Whether GPUs may not access each other's memory. Data inside a server then goes through the host.
    pub fn no_p2p(&self) -> bool {
        self.p2p_disable || self.p2p_level == Some(PathLevel::Loc)
    }

    /// Payload bytes of a piece of sends between servers.
    pub fn p2p_net_chunk_bytes(&self) -> u64 {
        self.p2p_net_chunk.unwrap_or(tuning().buffers.p2p_chunk_net)
    }

    /// Names of given variables that change nothing in the model.
    pub fn without_effect(&self) -> &[String] {
        &self.without_effect
    }
}

impl Hca {
    /// Whether the NIC with this name may be used.
    pub fn allows(&self, nic: &str) -> bool {
        let listed = self.devices.iter().any(|d| if self.exact { d == nic } else { nic.starts_with(d.as_str()) });
        listed != self.exclude
    }
}

impl Allowed {
    fn bits_for(&self, op: CollectiveOp) -> u8 {
        OPS.iter().position(|(_, o)| *o == op).and_then(|i| self.by_op[i]).unwrap_or(self.all)
    }
}

fn algorithm_bit(algorithm: Algorithm) -> u8 {
    ALGORITHMS.iter().position(|(_, a)| *a == algorithm).map_or(0, |i| 1 << i)
}

/// Parses `list` or `op:list;op:list`, where a list may begin with `^` (all except). Empty items are errors.
fn allowed<T>(value: &str, names: &[(&str, T)], bit: impl Fn(&T) -> u8) -> Option<Allowed> {
    let every: u8 = names.iter().fold(0, |bits, (_, t)| bits | bit(t));
    let mut result = Allowed { all: every, by_op: [None; OPS.len()] };
    for part in value.to_ascii_lowercase().split(';') {
        let (op, list) = part.split_once(':').map_or((None, part), |(op, list)| (Some(op.trim().to_string()), list));
        let list = list.trim();
        let (exclude, list) = list.strip_prefix('^').map_or((false, list), |rest| (true, rest));
        let mut bits = 0;
        for item in list.split(',') {
            bits |= bit(&names.iter().find(|(n, _)| *n == item.trim())?.1);
        }
        let bits = if exclude { every & !bits } else { bits };
        match op {
            None => result.all = bits,
            Some(op) => result.by_op[OPS.iter().position(|(n, _)| *n == op)?] = Some(bits),
        }
    }
    Some(result)
}

fn level(value: &str) -> Option<PathLevel> {
    Some(match value.to_ascii_uppercase().as_str() {
        "LOC" | "0" => PathLevel::Loc,
        "NVL" => PathLevel::Nvl,
        "PIX" => PathLevel::Pix,
        "PXB" => PathLevel::Pxb,
        "PHB" => PathLevel::Phb,
        "SYS" => PathLevel::Sys,
        _ => return None,
    })
}

fn hca(value: &str) -> Option<Hca> {
    let (exclude, list) = value.strip_prefix('^').map_or((false, value), |rest| (true, rest));
    let (exact, list) = list.strip_prefix('=').map_or((false, list), |rest| (true, rest));
    let mut devices: Vec<String> = Vec::new();
    for item in list.split(',') {
        let device = item.split(':').next().unwrap_or(item).trim();
        if device.is_empty() {
            return None;
        }
        if !devices.iter().any(|d| d == device) {
            devices.push(device.to_string());
        }
    }
    Some(Hca { exclude, exact, devices })
}
