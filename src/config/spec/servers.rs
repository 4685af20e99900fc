//! Servers by name: the parts of `assets/servers` that are defaults of `cluster` and `topology` keys.
//!
//! Layer: spec. `collective` reads what else is inside a server (which GPU is near which NIC, its switches) from the same file.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

/// A server model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ServerModel {
    /// Number of GPUs.
    pub gpus: i64,
    /// Number of network ports for GPU traffic.
    nics: i64,
    nic_gbps: f64,
    /// Links of one NIC.
    #[serde(rename = "ports")]
    nic_ports: i64,
    /// Rate from one GPU to the others of the server, one direction, Gbit/s.
    pub inside_gbps: f64,
    /// Latency from a GPU to another, ns.
    pub latency_ns: f64,
    /// Measured time of an all-reduce of 8 bytes among all its GPUs, ns.
    pub base_time_ns: Option<f64>,
    /// Measured time of an all-reduce of 8 bytes among all GPUs of two such servers, ns.
    pub base_time_across_ns: Option<f64>,
}

impl ServerModel {
    /// Number of ports as the network sees them: if a GPU has several NICs, they are one port with the sum of their rates.
    pub fn ports(&self) -> i64 {
        self.nics.min(self.gpus)
    }

    /// Links of each port as the network sees it.
    pub fn links_of_port(&self) -> i64 {
        self.nic_ports * (self.nics / self.ports())
    }

    /// Rate of each port as the network sees it, all its links together, Gbit/s.
    pub fn port_gbps(&self) -> f64 {
        self.nic_gbps * (self.nics / self.ports()) as f64
    }
}

/// Names of servers, and the accelerator of each, as `cluster.gpu` names it.
const GPU_OF: [(&str, &str); 20] = [
    ("dgx-a100", "a100"),
    ("hgx-a100", "a100"),
    ("hgx-a100-4gpu", "a100"),
    ("hgx-a100-4nic", "a100"),
    ("aws-p4de", "a100"),
    ("oci-a100", "a100-40g"),
    ("dgx-h100", "h100"),
    ("hgx-h100-4nic", "h100"),
    ("aws-p5", "h100"),
    ("gcp-a3mega", "h100"),
    ("gcp-a3ultra", "h200"),
    ("gh200-quad", "gh200"),
    ("hgx-h800", "h800"),
    ("hgx-h20", "h20"),
    ("hgx-b200", "b200"),
    ("hgx-b300", "b300"),
    ("gb200-nvl72", "gb200"),
    ("gb200-tray", "gb200"),
    ("dgx-1v", "v100"),
    ("pcie-gen4", "a100-pcie"),
];

/// Names of servers, for the key's choices.
pub static SERVERS: [&str; GPU_OF.len()] = {
    let mut names = [""; GPU_OF.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = GPU_OF[i].0;
        i += 1;
    }
    names
};

/// Returns the server with this name.
pub fn find_server(name: &str) -> Option<&'static ServerModel> {
    static ASSET: OnceLock<BTreeMap<String, ServerModel>> = OnceLock::new();
    if name.is_empty() {
        return None;
    }
    ASSET
        .get_or_init(|| {
            toml::from_str(include_str!("../../../assets/servers/servers.toml"))
                .expect("the asset is part of the program and a test reads it")
        })
        .get(name)
        .filter(|_| SERVERS.contains(&name))
}

/// Returns the servers with this accelerator.
pub(super) fn servers_of_gpu(gpu: &str) -> impl Iterator<Item = &'static str> + '_ {
    GPU_OF.iter().filter(move |(_, server_gpu)| gpu.eq_ignore_ascii_case(server_gpu)).map(|(server, _)| *server)
}

/// Returns the accelerator of a server.
pub fn gpu_of(name: &str) -> Option<&'static str> {
    GPU_OF.iter().find(|(server, _)| *server == name).map(|(_, gpu)| *gpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_in_the_asset() {
        assert!(SERVERS.iter().all(|s| find_server(s).is_some()));
        let h100 = find_server("dgx-h100").unwrap();
        assert_eq!((h100.gpus, h100.ports(), h100.port_gbps(), h100.inside_gbps), (8, 8, 400.0, 3600.0));
        // Four NICs of 100 Gb/s for each GPU; two GPUs for each NIC.
        assert_eq!(find_server("aws-p5").map(|s| (s.ports(), s.port_gbps())), Some((8, 400.0)));
        assert_eq!(find_server("hgx-a100-4nic").map(|s| (s.ports(), s.port_gbps())), Some((4, 200.0)));
    }
}
