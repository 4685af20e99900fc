//! Servers: GPUs, their links, NICs, and the nearest NIC of each GPU. Presets are in `assets/servers`.
//!
//! Layer: collective. `nccl::topology` reads NCCL's XML form.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::base_time::BaseTimes;
use super::nccl::Env;
use super::system::{Arch, CollectiveSystem, Cpu, ServerInterconnect};

/// A type of server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Generation of its GPUs.
    pub arch: Arch,
    /// The links between its GPUs.
    pub inside: ServerInterconnect,
    /// Maker of its host CPUs.
    pub cpu: Cpu,
    /// Number of GPUs.
    pub gpus: u32,
    /// One GPU's rate in bit/s into the fabric that links the GPUs, one direction.
    pub inside_bps: u64,
    /// Latency from a GPU to another in ps.
    pub latency_ps: u64,
    /// Number of NICs for GPU traffic.
    pub nics: u32,
    /// One NIC's rate in bit/s, one direction, all its ports together.
    pub nic_bps: u64,
    /// Number of ports of one NIC; each port of a dual-port NIC has half the rate.
    pub ports: u32,
    /// The nearest NIC of each GPU.
    pub nic_of_gpu: Vec<u32>,
    /// Measured times of its smallest collectives.
    pub base_times: BaseTimes,
    /// Whether its network keeps no order inside a message. NCCL is then limited to the Simple protocol.
    pub simple_only: bool,
    /// Whether its switches reduce (NVLS).
    pub nvls: bool,
    /// The source of the figures.
    pub source: String,
}

/// The error for a name without a preset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no server is called \"{name}\"; there are {}", Server::names().collect::<Vec<_>>().join(", "))]
pub struct NoSuchServer {
    /// Name that no preset has.
    pub name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    source: String,
    arch: Arch,
    inside: ServerInterconnect,
    cpu: Cpu,
    gpus: u32,
    inside_gbps: u64,
    latency_ns: u64,
    nics: u32,
    nic_gbps: u64,
    ports: u32,
    /// If left out, each GPU has a NIC of its own.
    nic_of_gpu: Option<Vec<u32>>,
    nvls: bool,
    base_time_ns: Option<u64>,
    base_time_across_ns: Option<u64>,
    #[serde(default)]
    simple_only: bool,
}

fn presets() -> &'static BTreeMap<String, Server> {
    static PRESETS: OnceLock<BTreeMap<String, Server>> = OnceLock::new();
    PRESETS.get_or_init(|| {
        let entries: BTreeMap<String, Entry> = toml::from_str(include_str!("../../../assets/servers/servers.toml"))
            .expect("the asset is part of the program and a test reads it");
        entries.into_iter().map(|(name, entry)| (name, entry.server())).collect()
    })
}

impl Entry {
    fn server(self) -> Server {
        Server {
            arch: self.arch,
            inside: self.inside,
            cpu: self.cpu,
            gpus: self.gpus,
            inside_bps: self.inside_gbps * 1_000_000_000,
            latency_ps: self.latency_ns * 1000,
            nics: self.nics,
            nic_bps: self.nic_gbps * 1_000_000_000,
            ports: self.ports,
            nic_of_gpu: self.nic_of_gpu.unwrap_or_else(|| (0..self.gpus).collect()),
            nvls: self.nvls,
            base_times: BaseTimes {
                server_ps: self.base_time_ns.map(|ns| ns * 1000),
                two_servers_ps: self.base_time_across_ns.map(|ns| ns * 1000),
            },
            simple_only: self.simple_only,
            source: self.source,
        }
    }
}

impl Server {
    /// The preset with this name.
    pub fn preset(name: &str) -> Result<&'static Server, NoSuchServer> {
        presets().get(name).ok_or_else(|| NoSuchServer { name: name.to_string() })
    }

    /// Names of the presets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        presets().keys().map(String::as_str)
    }

    /// The place of the preset with this name among [`Server::names`].
    pub fn index(name: &str) -> Option<u16> {
        Server::names().position(|n| n == name).map(|place| place as u16)
    }

    /// NCCL's environment on this server, if the user sets nothing.
    pub fn env(&self) -> Env {
        let variables = self.simple_only.then(|| ("NCCL_PROTO".to_string(), "Simple".to_string()));
        Env::parse(&variables.into_iter().collect()).expect("NCCL knows this variable and its value")
    }

    /// The system for computing costs, for a cluster of such servers. `in_network` says whether the network's switches reduce.
    pub fn system(&self, in_network: bool) -> CollectiveSystem {
        let preset = presets().values().position(|server| server == self);
        let system = CollectiveSystem {
            arch: self.arch,
            inside: self.inside,
            cpu: self.cpu,
            gpus_per_server: self.gpus,
            inside_bps: self.inside_bps,
            nics_per_server: self.nics,
            nic_bps: self.nic_bps,
            net_extra_ps: 0,
            transport_extra_ps: 0,
            launch_ps: 0,
            base_shortfall_ps: 0,
            server_idx: preset.map(|place| place as u16),
            nvls: self.nvls,
            in_network,
            latency_ppm: 1_000_000,
            left_out_run: None,
            by_chunks: false,
        };
        self.base_times.applied(system, self.gpus, &self.env())
    }

    /// GPUs that share a NIC.
    pub fn gpus_of_nic(&self, nic: u32) -> impl Iterator<Item = u32> + '_ {
        self.nic_of_gpu.iter().enumerate().filter(move |(_, n)| **n == nic).map(|(gpu, _)| gpu as u32)
    }

    /// Rate of one port of a NIC in bit/s.
    pub fn port_bps(&self) -> u64 {
        self.nic_bps / self.ports.max(1) as u64
    }

    /// Rate in bit/s between two GPUs without other traffic, one direction: all of a GPU's links through a switch, or a peer's share of them in a mesh.
    pub fn pair_bps(&self) -> u64 {
        match self.inside {
            ServerInterconnect::NvlinkMesh => self.inside_bps / self.gpus.saturating_sub(1).max(1) as u64,
            _ => self.inside_bps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_whole() {
        assert!(Server::names().count() >= 12);
        for name in Server::names() {
            let s = Server::preset(name).unwrap();
            assert_eq!(s.nic_of_gpu.len(), s.gpus as usize, "{name}");
            assert!(s.nic_of_gpu.iter().all(|&n| n < s.nics), "{name}");
            assert!((0..s.nics).all(|n| s.gpus_of_nic(n).count() > 0), "{name}: a NIC that no GPU is near");
            assert!(!s.source.is_empty() && s.inside_bps > 0 && s.nic_bps.is_multiple_of(s.ports as u64), "{name}");
        }
        assert!(Server::preset("dgx").unwrap_err().to_string().contains("dgx-a100"));
        assert_eq!(Server::preset("hgx-a100-4nic").unwrap().gpus_of_nic(1).collect::<Vec<_>>(), [2, 3]);
    }
}
