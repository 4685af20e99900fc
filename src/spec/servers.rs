//! Servers by name: the numbers that a network sees of each.
//!
//! Layer: spec. They are defaults of `cluster` and `topology` keys; what is inside a server beyond them is described by `collective`'s assets.

/// A server model.
pub struct Server {
    pub name: &'static str,
    /// Its accelerator, as `cluster.gpu` names it.
    pub gpu: &'static str,
    pub gpus: i64,
    /// Network ports for GPU traffic, and the rate of each.
    pub nics: i64,
    pub nic_gbps: f64,
    /// From one GPU to the others of the server, one direction.
    pub nvlink_gbps: f64,
}

const fn server(name: &'static str, gpu: &'static str, gpus: i64, nics: i64, nic_gbps: f64, nvlink_gbps: f64) -> Server {
    Server { name, gpu, gpus, nics, nic_gbps, nvlink_gbps }
}

/// NVIDIA's data sheets of each system; NVLink rates are half the bidirectional ones they print (600, 900, 1800 GB/s; H800: 400).
/// The PCIe server has the nominal rate of PCIe 4.0 x16 between GPUs, 32 GB/s, and a NIC for every two.
static TABLE: [Server; 8] = [
    server("dgx-a100", "a100", 8, 8, 200.0, 2400.0),
    server("dgx-h100", "h100", 8, 8, 400.0, 3600.0),
    server("dgx-h200", "h200", 8, 8, 400.0, 3600.0),
    server("dgx-b200", "b200", 8, 8, 400.0, 7200.0),
    server("hgx-h20", "h20", 8, 8, 400.0, 3600.0),
    server("hgx-h800", "h800", 8, 8, 400.0, 1600.0),
    server("gb200-nvl72", "gb200", 72, 72, 400.0, 7200.0),
    server("pcie-a100", "a100-pcie", 8, 4, 200.0, 256.0),
];

/// The names, for the key's choices.
pub static SERVERS: [&str; 8] = ["dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "hgx-h20", "hgx-h800", "gb200-nvl72", "pcie-a100"];

/// The server of a name.
pub fn find_server(name: &str) -> Option<&'static Server> {
    TABLE.iter().find(|s| s.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_in_the_table() {
        assert!(TABLE.iter().map(|s| s.name).eq(SERVERS));
    }
}
