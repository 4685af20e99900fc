//! The network of a configuration: generated or read from a file, with ranks placed on it, and its costs.
//!
//! Layer: host. Reads the topology's file.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cost::{self, Bill};
use hyperfold_base::units::counted;
use hyperfold_config::spec::{self, Config, Conflict, KeyId, TopologyKind, WorkloadSection};
use hyperfold_llm::collective::Env;
use hyperfold_network::topology::{self, Fabric, FabricShape, Link, Network, Node, NodeKind, NvLink, TopologyFormat};

use crate::programs::job;
use crate::programs::training as setup;
use crate::setup::error::{JobError, PrepareError};
use crate::setup::servers::{self, Described};

/// Returns only an experiment's network, the description of its servers, and its costs.
pub(crate) fn network_of(config: &Config) -> Result<(Network, Option<Described>, Bill), PrepareError> {
    let described = servers::described(config)?;
    let config = &*servers::applied(config, described.as_ref())?;
    let network = network(config, described.as_ref(), &mut Vec::new())?;
    let bill = bill(config, &network.at_beginning())?;
    Ok((network, described, bill))
}

/// Returns the network of a cluster and its costs, for callers that send no packets.
///
/// # Errors
/// The configuration describes no network, or a part of it has no price.
pub fn cluster_network(config: &Config) -> Result<(Network, Bill), PrepareError> {
    network_of(config).map(|(network, _, bill)| (network, bill))
}

pub(crate) fn network(
    config: &Config,
    described: Option<&Described>,
    notes: &mut Vec<String>,
) -> Result<Network, PrepareError> {
    let (c, t) = (&config.cluster, &config.topology);
    let (shape, sites) = match &t.kind {
        TopologyKind::Generated { shape, sites } => (shape, sites),
        TopologyKind::File { path, format } => {
            let network = network_of_file(path, *format, c.gpus, notes)?;
            check_lossy(config, &network)?;
            return Ok(network);
        }
    };
    let gpus = match (c.gpus, &config.workload) {
        (Some(gpus), _) => gpus,
        (None, WorkloadSection::Program(program)) => whole_servers(job::ranks_needed(program), c.gpus_per_server),
        (None, _) => c.gpus_per_server,
    };
    let fabric = Fabric {
        gpus,
        gpus_per_server: c.gpus_per_server,
        nics_per_server: c.nics_per_server,
        nic_ports: c.nic_ports,
        link_bps: t.link_bps,
        uplink_bps: t.uplink_bps,
        global_bps: t.global_bps,
        core_bps: t.core_bps,
        link_delay_ps: t.link_delay_ps,
        uplink_delay_ps: t.uplink_delay_ps,
        core_delay_ps: t.core_delay_ps,
        global_delay_ps: t.global_delay_ps,
        switch_latency_ps: t.switch_latency_ps,
        nvlink: (c.nvlink_bps > 0).then_some(NvLink {
            // Rate between two GPUs: in a mesh they have one link. Link rates are whole Mb/s.
            rate_bps: c.nvlink_bps / u64::from(servers::links_of_mesh(config, described)) / 1_000_000 * 1_000_000,
            latency_ps: c.nvlink_latency_ps,
        }),
    };
    let mut network = match sites {
        None => shape.build(&fabric)?,
        Some(sites) => sites.build(shape, &fabric)?,
    };
    let hca = match &config.workload {
        WorkloadSection::Program(p) => Env::parse(&p.communication.nccl).map_err(JobError::Nccl)?.hca,
        _ => None,
    };
    servers::place_ranks(&mut network, config, described, hca.as_ref())?;
    Ok(network)
}

/// The form of a topology file, as the network's crate has it.
fn named_format(format: spec::TopologyFormatChoice) -> TopologyFormat {
    match format {
        spec::TopologyFormatChoice::Ns3 => TopologyFormat::Ns3,
        spec::TopologyFormatChoice::SimAi => TopologyFormat::Simai,
        spec::TopologyFormatChoice::Htsim => TopologyFormat::Htsim,
        spec::TopologyFormatChoice::InfraGraph => TopologyFormat::InfraGraph,
    }
}

/// Returns the network that a file describes. Its number of GPUs must be the one that was asked for.
fn network_of_file(
    path: &Path,
    format: spec::TopologyFormatChoice,
    gpus: Option<u32>,
    notes: &mut Vec<String>,
) -> Result<Network, PrepareError> {
    let file = topology::read_topology(path, named_format(format))?;
    if file.left_out > 0 {
        notes.push(format!("{}: {} lines after the announced ones were left out", path.display(), file.left_out));
    }
    notes.extend(file.notes.iter().map(|note| format!("{}: {note}", path.display())));
    notes.extend(isolated_switches(path, &file.network));
    let found = file.network.ranks.len() as u32;
    match gpus.filter(|&n| n != found) {
        Some(asked) => Err(PrepareError::Gpus { asked, found }),
        None => Ok(file.network),
    }
}

/// Checks that packets are simulated where links of a topology file lose some.
fn check_lossy(config: &Config, network: &Network) -> Result<(), PrepareError> {
    let mode = config.values.text(KeyId::Mode);
    let Some(&(link, _)) = network.lossy_links.first().filter(|_| mode != "packet") else { return Ok(()) };
    let link = &network.links[link as usize];
    let [a, b] = [link.a, link.b].map(|node| network.nodes[node as usize].id);
    let why = format!(
        "it has {} with an error rate, such as that of nodes {a} and {b}, and with fidelity.mode = \"{mode}\" there are no packets to lose; write 0 as error rates, or fidelity.mode = \"packet\"",
        counted(network.lossy_links.len(), "link")
    );
    Err(PrepareError::Config(Conflict { job: None, key: KeyId::TopologyPath, why }))
}

/// Whether the configuration's topology is a file in which links lose packets. Reads the file.
pub fn file_loses_packets(config: &Config) -> bool {
    let TopologyKind::File { path, format } = &config.topology.kind else { return false };
    topology::read_topology(path, named_format(*format)).is_ok_and(|file| !file.network.lossy_links.is_empty())
}

/// Returns a note that names the switches of a topology file without links: a line of the file may be missing.
fn isolated_switches(path: &Path, network: &Network) -> Option<String> {
    let ids = network.isolated_switches();
    let named: Vec<String> = ids.iter().take(MAX_NAMED).map(u32::to_string).collect();
    let more = match ids.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (switches, have) = if ids.len() == 1 { ("switch", "has") } else { ("switches", "have") };
    let file = path.display();
    let note = || {
        format!(
            "{file}: {switches} {}{more} {have} no links, so nothing crosses there; is a link missing?",
            named.join(", ")
        )
    };
    (!ids.is_empty()).then(note)
}

/// Maximum number of switches that a note names one by one.
const MAX_NAMED: usize = 8;

/// Returns the GPUs of as many whole servers as so many ranks need, at least one server.
fn whole_servers(ranks: Option<u32>, per_server: u32) -> u32 {
    let per_server = per_server.max(1);
    ranks.unwrap_or(per_server).div_ceil(per_server).max(1).saturating_mul(per_server)
}

pub(crate) fn bill(config: &Config, network: &Network) -> Result<Bill, PrepareError> {
    let generated = !matches!(config.topology.kind, TopologyKind::File { .. });
    let gpus = network.ranks.len() as u64;
    let gpu = setup::gpu(&config.cluster.gpu)?;
    let mut parts = cost::parts(network, gpus, generated);
    if matches!(&config.topology.kind, TopologyKind::Generated { shape: FabricShape::Optical(_), .. }) {
        parts.circuit_ports = cost::circuit_ports(network);
    }
    Ok(cost::bill(&parts, &gpu.priced_as, config.cluster.server, &config.cost)?)
}

/// Gives every server links between its GPUs at NVLink's rate and latency, on which packets travel instead of fixed times. The links lead to a switch of the
/// server, or in a mesh from each GPU to each other one.
pub(crate) fn nvlink_as_packets(net: &mut Network, is_mesh: bool) {
    let Some(nvlink) = net.nvlink.take() else { return };
    let mut next_id = net.nodes.iter().map(|n| n.id).max().map_or(0, |id| id + 1);
    let mut servers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (v, node) in net.nodes.iter().enumerate() {
        if node.kind == NodeKind::Host {
            servers.entry(node.server).or_default().push(v as u32);
        }
    }
    // NVSwitches of a topology file stay, without effect, as no packet crosses them.
    for (server, hosts) in servers.into_iter().filter(|(_, hosts)| hosts.len() > 1) {
        if is_mesh {
            let link = |(a, b)| Link { a, b, rate_bps: nvlink.rate_bps, delay_ps: nvlink.latency_ps.max(1) };
            let pairs = hosts.iter().enumerate().flat_map(|(i, &a)| hosts[i + 1..].iter().map(move |&b| (a, b)));
            net.links.extend(pairs.map(link));
            continue;
        }
        let switch = net.nodes.len() as u32;
        net.nodes.push(Node { kind: NodeKind::Switch, id: next_id, server });
        next_id += 1;
        let delay_ps = (nvlink.latency_ps / 2).max(1);
        net.links.extend(hosts.iter().map(|&a| Link { a, b: switch, rate_bps: nvlink.rate_bps, delay_ps }));
    }
}
