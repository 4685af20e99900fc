//! The servers of an experiment: the contents of a server preset or of NCCL's XML file, the NIC that each GPU uses, and the cluster as cost models see it.
//!
//! Layer: host. Builds no network: it changes the one that `prepare` built, and the configuration that it is built from.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hyperfold_base::input;
use hyperfold_config::spec::{self, Config, KeyId, LinkKind, LinksOfGpu, Named, TopologyKind, WorkloadSection};
use hyperfold_llm::collective::nccl::{Hca, XmlError, host_bps, topology};
use hyperfold_llm::collective::{
    Arch, BaseTimes, CollectiveSystem, Cpu, Env, Server, ServerInterconnect, measured_run,
};
use hyperfold_llm::compute::Gpu;
use hyperfold_llm::workload::lower;
use hyperfold_network::topology::{Link, Network, NodeIdx, NodeKind, NvLink};

/// A contradiction between a server's description and the configuration, or an error in the description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The XML file cannot be read.
    #[error("cluster.server_xml: cannot read {file}: {why}")]
    Read {
        /// Path of the XML file.
        file: String,
        /// Error of the operating system, in words.
        why: String,
    },
    /// The XML file is not one of NCCL.
    #[error("cluster.server_xml: {file}, {error}")]
    Xml {
        /// Path of the XML file.
        file: String,
        /// The fault, and the line that it is in.
        error: XmlError,
    },
    /// The keys and the XML file name different numbers of GPUs.
    #[error(
        "cluster.gpus_per_server = {asked}, but the server of {file} has {found} GPUs; write cluster.gpus_per_server = {found}"
    )]
    Gpus {
        /// Path of the XML file.
        file: String,
        /// Number in `cluster.gpus_per_server`.
        asked: u32,
        /// Number of GPUs in the file.
        found: u32,
    },
    /// The XML file names no NIC.
    #[error(
        "cluster.server_xml: {file} has no NIC with a <net>, so its servers cannot be joined; write cluster.nics_per_server to say how many there are"
    )]
    NoNics {
        /// Path of the XML file.
        file: String,
    },
    /// The XML file names a GPU that does not fit the keys.
    #[error("cluster.gpu: {file}: {why}")]
    Gpu {
        /// Path of the XML file.
        file: String,
        /// The fault, in words for the user.
        why: String,
    },
    /// `NCCL_IB_HCA` leaves no NIC.
    #[error("workload.nccl.NCCL_IB_HCA = \"{value}\" leaves no NIC; servers have {have}")]
    Hca {
        /// Value of the variable.
        value: String,
        /// Names of the NICs that there are.
        have: String,
    },
}

/// A server that the configuration names.
#[derive(Clone, Debug)]
pub struct Described {
    /// The server: its GPUs, NICs and links.
    pub server: Server,
    /// Names of its NICs; empty for a preset.
    nics: Vec<String>,
    /// The XML file, if the server is described by one.
    file: Option<String>,
}

/// Returns the server that `cluster.server_xml` describes or `cluster.server` names.
///
/// # Errors
/// The file cannot be read, or is not of NCCL's form.
pub fn described(config: &Config) -> Result<Option<Described>, ServerError> {
    if let Some(path) = &config.cluster.server_xml {
        let file = path.display().to_string();
        let text = input::read_tree(path).map_err(|e| ServerError::Read { file: file.clone(), why: e.to_string() })?;
        let t = topology(&text).map_err(|error| ServerError::Xml { file: file.clone(), error })?;
        return Ok(Some(Described { server: t.server, nics: t.nics, file: Some(file) }));
    }
    let preset = config
        .cluster
        .server
        .map(|name| Server::preset(name).expect("the key offers only servers of the asset").clone());
    Ok(preset.map(|server| Described { server, nics: Vec::new(), file: None }))
}

/// Returns the configuration with the values from the servers' file, for keys that are not given. Presets are defaults of keys already.
///
/// # Errors
/// The file has another number of GPUs, which decides too much to be changed silently.
pub fn applied<'c>(config: &'c Config, described: Option<&Described>) -> Result<Cow<'c, Config>, ServerError> {
    if let (Named::File(path), None) = (&config.cluster.gpu, described) {
        return links_of_file(config, path);
    }
    let Some(Described { server, file: Some(file), .. }) = described else { return Ok(Cow::Borrowed(config)) };
    if matches!(config.topology.kind, TopologyKind::File { .. }) {
        return Ok(Cow::Borrowed(config));
    }
    if server.gpus != config.cluster.gpus_per_server {
        return Err(ServerError::Gpus {
            file: file.clone(),
            asked: config.cluster.gpus_per_server,
            found: server.gpus,
        });
    }
    let is_open = |key: KeyId| !config.values.given(key);
    if server.nics == 0 && is_open(KeyId::NicsPerServer) {
        return Err(ServerError::NoNics { file: file.clone() });
    }
    let mut config = config.clone();
    // The network has at most one host per GPU: if a GPU has several NICs, they become one with the sum of their rates.
    let nics = server.nics.min(server.gpus).max(1);
    let joined = (server.nics / nics).max(1);
    if is_open(KeyId::NicsPerServer) {
        config.cluster.nics_per_server = nics;
    }
    if is_open(KeyId::NicPorts) {
        config.cluster.nic_ports = server.ports.max(1) * joined;
    }
    if is_open(KeyId::LinkGbps) && server.nics > 0 {
        config.topology.link_bps = server.nic_bps * u64::from(joined);
    }
    // 0 although the key is not given: NCCL may not use it.
    if is_open(KeyId::NvlinkGbps) && config.cluster.nvlink_bps > 0 {
        config.cluster.nvlink_bps = server.inside_bps / 1_000_000 * 1_000_000;
    }
    if is_open(KeyId::NvlinkLatencyNs) {
        config.cluster.nvlink_latency_ps = server.latency_ps;
    }
    Ok(Cow::Owned(config))
}

/// Returns the configuration with the links from the file of its GPU, for keys that are not given.
///
/// # Errors
/// The file cannot be read, or does not give links.
fn links_of_file<'c>(config: &'c Config, path: &Path) -> Result<Cow<'c, Config>, ServerError> {
    let is_open = |key: KeyId| !config.values.given(key);
    let gpus = config.cluster.gpus_per_server;
    // 0 although the key has a value: NCCL may not use them.
    let unsaid = *config.values.get(KeyId::NvlinkGbps) == spec::Value::Unset;
    if matches!(config.topology.kind, TopologyKind::File { .. }) || gpus < 2 || !unsaid {
        return Ok(Cow::Borrowed(config));
    }
    let bad = |why: String| ServerError::Gpu { file: path.display().to_string(), why };
    let text = input::read_small_tree(path).map_err(|e| bad(e.to_string()))?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| bad(e.message().to_string()))?;
    let known = match spec::links_of_table(&table).map_err(bad)? {
        LinksOfGpu::Known(links) => links.gbps_in_server(gpus).map(|gbps| (links, gbps)),
        _ => None,
    };
    let Some((links, gbps)) = known else {
        return Err(bad(format!(
            "it does not say how {gpus} GPUs of one server are joined; write links (nvswitch, mesh, pcie) and links_gbps there, cluster.nvlink_gbps, or name a cluster.server"
        )));
    };
    let mut config = config.clone();
    config.cluster.nvlink_bps = (gbps * 1e9).round() as u64;
    config.cluster.link_kind = links.kind;
    if is_open(KeyId::NvlinkLatencyNs) {
        config.cluster.nvlink_latency_ps = links.latency_ps;
    }
    Ok(Cow::Owned(config))
}

/// Places the ranks of a generated network on the nearest of the NICs that may be used.
///
/// # Errors
/// NCCL_IB_HCA allows no NIC.
pub fn place_ranks(
    net: &mut Network,
    config: &Config,
    described: Option<&Described>,
    hca: Option<&Hca>,
) -> Result<(), ServerError> {
    let (gpus, nics) = (config.cluster.gpus_per_server, config.cluster.nics_per_server);
    let names = match described {
        Some(d) if d.nics.len() as u32 == nics => d.nics.clone(),
        _ => (0..nics).map(|i| format!("mlx5_{i}")).collect(),
    };
    let usable: Vec<u32> = (0..nics).filter(|&n| hca.is_none_or(|h| h.allows(&names[n as usize]))).collect();
    if usable.is_empty() {
        let value = hca.map_or(String::new(), |h| h.devices.join(","));
        return Err(ServerError::Hca { value, have: names.join(", ") });
    }
    let nearest = described.map(|d| &d.server).filter(|s| s.gpus == gpus && s.nics == nics);
    let nic_of = |gpu: u32| {
        let near = nearest.map_or(gpu * nics / gpus, |s| s.nic_of_gpu[gpu as usize]);
        if usable.contains(&near) { near } else { usable[(gpu as usize * usable.len()) / gpus as usize] }
    };
    for (rank, host) in net.ranks.iter_mut().enumerate() {
        let rank = rank as u32;
        *host = rank / gpus * nics + nic_of(rank % gpus);
    }
    Ok(())
}

/// Returns the cluster as the cost models see it.
pub fn system(config: &Config, net: &Network, gpu: &Gpu, described: Option<&Described>) -> CollectiveSystem {
    let server_of = |host: NodeIdx| net.nodes[host as usize].server;
    let first = net.ranks.first().map_or(0, |&h| server_of(h));
    let hosts: Vec<NodeIdx> = net.ranks.iter().copied().filter(|&h| server_of(h) == first).collect();
    let used: BTreeSet<NodeIdx> = hosts.iter().copied().collect();
    // A switch inside the server has the server's number.
    let links_out_of = |host: NodeIdx| {
        let leaves = move |l: &&Link| {
            net.is_packet_link(l)
                && ((l.a == host && server_of(l.b) != first) || (l.b == host && server_of(l.a) != first))
        };
        net.links.iter().filter(leaves)
    };
    let nic = used.first().copied();
    let nic_bps: u64 = nic.map_or(0, |n| links_out_of(n).map(|l| l.rate_bps).sum());
    let nvlink = nvlink(config, net).map(|n| n.rate_bps);
    let server = described.map(|d| &d.server);
    let inside = match (server, nvlink) {
        (None, None) => ServerInterconnect::Pcie,
        _ => interconnect(config, described),
    };
    // In a mesh, the network knows the rate of a pair's link.
    let peers = (hosts.len() as u64).saturating_sub(1).max(1);
    let nvlink = match u64::from(links_of_mesh(config, described)) {
        1 => nvlink,
        links => nvlink.map(|_| config.cluster.nvlink_bps * peers / links),
    };
    let arch = generation(gpu);
    let base_times =
        BaseTimes { server_ps: config.cluster.base_time_ps, two_servers_ps: config.cluster.base_time_across_ps };
    let env = server.map_or_else(Env::default, Server::env);
    let system = CollectiveSystem {
        arch,
        inside,
        cpu: server.map_or(Cpu::Intel, |s| s.cpu),
        gpus_per_server: hosts.len().max(1) as u32,
        // Without NVLink: the rate of a PCIe link by its data sheet, of which NCCL counts three quarters.
        inside_bps: nvlink.unwrap_or(host_bps() / 3 * 4),
        nics_per_server: used.len().max(1) as u32,
        nic_bps: if nic_bps > 0 { nic_bps } else { config.topology.link_bps },
        // A server that forwards by itself, as in BCube, has no link from a NIC to elsewhere.
        net_extra_ps: nic
            .and_then(|n| links_out_of(n).next().or_else(|| net.links.iter().find(|l| l.a == n)))
            .map_or(0, |l| 2 * l.delay_ps),
        transport_extra_ps: 0,
        launch_ps: 0,
        base_shortfall_ps: 0,
        // With other base times than its own it is another machine, of which its runs say nothing.
        server_idx: server.filter(|s| s.base_times == base_times).and(config.cluster.server).and_then(Server::index),
        nvls: inside == ServerInterconnect::NvSwitch && server.map_or(arch >= Arch::Hopper, |s| s.nvls),
        in_network: reduces(config),
        latency_ppm: program(config).map_or(1_000_000, |p| p.communication.latency_ppm),
        left_out_run: program(config).and_then(|p| measured_run(&p.communication.leave_out_run)),
        by_chunks: program(config).is_some_and(|p| p.communication.cost_by_chunks),
    };
    base_times.applied(system, server.map_or(system.gpus_per_server, |s| s.gpus), &env)
}

/// Returns NVLink of the servers, whether it takes calibrated times or carries packets; `None`: there is none.
fn nvlink(config: &Config, net: &Network) -> Option<NvLink> {
    let (rate_bps, latency_ps) = (config.cluster.nvlink_bps, config.cluster.nvlink_latency_ps);
    let as_packets = || match config.topology.kind {
        TopologyKind::File { .. } => inside_link(net),
        _ => (rate_bps > 0).then_some(NvLink { rate_bps, latency_ps }),
    };
    net.nvlink.or_else(|| config.cluster.nvlink_packets.then(as_packets).flatten())
}

/// Returns rate and round latency of a packet link from a GPU to the switch of its own server.
fn inside_link(net: &Network) -> Option<NvLink> {
    let server = |node: NodeIdx| net.nodes[node as usize].server;
    // Only a server's own switch has the server's number.
    let link =
        net.links.iter().find(|l| server(l.a) == server(l.b) && net.is_packet_link(l) && server(l.a) != u32::MAX)?;
    Some(NvLink { rate_bps: link.rate_bps, latency_ps: 2 * link.delay_ps })
}

/// Returns what joins the GPUs of a server that have links.
fn interconnect(config: &Config, described: Option<&Described>) -> ServerInterconnect {
    match (described, config.cluster.link_kind) {
        (Some(d), _) => d.server.inside,
        (None, LinkKind::NvSwitch) => ServerInterconnect::NvSwitch,
        (None, LinkKind::Mesh) => ServerInterconnect::NvlinkMesh,
        (None, LinkKind::Pcie) => ServerInterconnect::Pcie,
    }
}

/// Returns the number of other GPUs that a GPU has its own link to; 1 if all it sends shares one link, or the network is from a file.
pub(crate) fn links_of_mesh(config: &Config, described: Option<&Described>) -> u32 {
    let generated = !matches!(config.topology.kind, TopologyKind::File { .. });
    let gpus = described.map_or(config.cluster.gpus_per_server, |d| d.server.gpus);
    match interconnect(config, described) {
        ServerInterconnect::NvlinkMesh if generated => gpus.saturating_sub(1).max(1),
        _ => 1,
    }
}

fn program(config: &Config) -> Option<&spec::ProgramSpec> {
    match &config.workload {
        WorkloadSection::Program(program) => Some(program),
        _ => None,
    }
}

/// Whether switches may reduce what crosses them as packets: those of the network, or those inside servers.
pub(crate) fn reduces_packets(config: &Config) -> bool {
    reduces(config) || config.cluster.nvlink_packets
}

/// Whether the network's switches reduce: only if the configuration asks for it, since few networks can.
fn reduces(config: &Config) -> bool {
    let Some(c) = program(config).map(|p| &p.communication) else { return false };
    // A list of what NCCL may not choose names nothing that it should.
    let names = |list: &str| list.contains("collnet") && !list.rsplit(':').any(|names| names.trim().starts_with('^'));
    let named = c.nccl.get("NCCL_ALGO").is_some_and(|lists| lists.to_ascii_lowercase().split(';').any(names));
    matches!(c.algorithm, spec::AlgorithmChoice::InNetwork | spec::AlgorithmChoice::CollnetChain) || named
}

/// Returns the path between GPUs of a server (`None`: they use the network), and the path between GPUs that share a NIC even then.
pub fn ways(
    config: &Config,
    net: &Network,
    described: Option<&Described>,
) -> (Option<lower::IntraServerPath>, lower::IntraServerPath) {
    let way = |rate_bps: u64, latency_ps: u64, links: u32| lower::IntraServerPath {
        rate_bps,
        latency_ps: latency_ps.max(1),
        links,
    };
    let links = links_of_mesh(config, described);
    // Links out of a GPU are numbered by the GPU that they lead to.
    let n_link_numbers = if links > 1 { links + 1 } else { 1 };
    let intra =
        net.nvlink.filter(|_| !config.cluster.nvlink_packets).map(|n| way(n.rate_bps, n.latency_ps, n_link_numbers));
    // GPUs that share a NIC use NVLink, as packets or not; without it they go through the host.
    let from_file = matches!(config.topology.kind, TopologyKind::File { .. });
    let shared = if config.cluster.nvlink_bps > 0 { config.cluster.nvlink_bps / u64::from(links) } else { host_bps() };
    let inside = nvlink(config, net)
        .filter(|_| from_file)
        .unwrap_or(NvLink { rate_bps: shared, latency_ps: config.cluster.nvlink_latency_ps });
    (intra, way(inside.rate_bps, inside.latency_ps, n_link_numbers))
}

/// Whether GPUs of a server reach each other by NVLink, over links with times of their own (`by_time`) or as packets.
pub(crate) fn has_nvlink(config: &Config, system: &CollectiveSystem, by_time: bool) -> bool {
    let as_packets = config.cluster.nvlink_packets && config.cluster.nvlink_bps > 0;
    system.inside != ServerInterconnect::Pcie && (by_time || as_packets)
}

/// Returns the rail of each rank: the number of its NIC among those of its server.
pub(crate) fn rails(net: &Network) -> Vec<u32> {
    let mut numbers = vec![0; net.nodes.len()];
    let mut nics_of_server: BTreeMap<u32, u32> = BTreeMap::new();
    for (number, node) in numbers.iter_mut().zip(&net.nodes).filter(|(_, node)| node.kind == NodeKind::Host) {
        let next = nics_of_server.entry(node.server).or_default();
        *number = *next;
        *next += 1;
    }
    net.ranks.iter().map(|&host| numbers[host as usize]).collect()
}

/// Returns the GPU generation for NCCL's model. A user's own GPU counts as the one that it is `like`.
pub fn generation(gpu: &Gpu) -> Arch {
    match gpu.kin.as_str() {
        n if n.starts_with('v') => Arch::Volta,
        n if n.starts_with('b') || n.starts_with("gb") => Arch::Blackwell,
        n if n.starts_with('h') || n.starts_with("gh") => Arch::Hopper,
        _ => Arch::Ampere,
    }
}
