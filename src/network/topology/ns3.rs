//! Topology files in the ns-3 (HPCC) form: reader and writer.
//!
//! Layer: topology. A file has `nodes switches links`, the switch ids, then `a b rate delay error_rate` per link, which loses that share of packets. Every node that is not listed as a switch is
//! a host, and a server of its own.

use std::fmt::Write;

use super::body::{self, Counts, TopologyBody};
use super::loss::loss_text;
use super::network::{Network, Node, NodeIdx, NodeKind};
use super::text::Lines;
use super::validate::{MAX_LINKS, MAX_NODES, TopologyError};
use hyperfold_base::units::{BPS_PER_MBPS, PS_PER_NS};

/// The result of reading a topology file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyFile {
    /// Network of the file, validated.
    pub network: Network,
    /// GPUs per server, from SimAI's header; the ns-3 form does not give it.
    pub gpus_per_server: Option<u32>,
    /// GPU type, from SimAI's header; the ns-3 form does not give it.
    pub gpu: Option<String>,
    /// Number of link lines to nodes beyond the header's count, which the header leaves out. They cause a notice.
    pub left_out: u32,
    /// Values that the file lacks, and what stands in their place, in words for the user.
    pub notes: Vec<String>,
}

/// Parses the ns-3 form; `path` is for messages.
pub fn parse_ns3(path: &str, text: &str) -> Result<TopologyFile, TopologyError> {
    let mut lines = Lines::new(path, text);
    let header = lines.expect(|| "it should begin with `nodes switches links`".to_string())?;
    let [nodes, switches, links] = header.exactly("nodes switches links")?;
    let n_nodes = header.number("the number of nodes", nodes, 1, MAX_NODES)?;
    let n_switches = header.number("the number of switches", switches, 0, n_nodes - 1)?;
    let n_links = header.number("the number of links", links, 1, MAX_LINKS)?;
    let counts = Counts { header, n_nodes, n_switches, n_links };
    let TopologyBody { switch_ids, links, lossy_links, left_out, .. } = body::read(&mut lines, &counts)?;

    let mut kinds = vec![NodeKind::Host; n_nodes as usize];
    for id in switch_ids {
        kinds[id as usize] = NodeKind::Switch;
    }
    let ranks: Vec<NodeIdx> = (0..n_nodes).filter(|&i| kinds[i as usize] == NodeKind::Host).collect();
    let mut n_hosts = 0;
    let nodes = (0..n_nodes).zip(&kinds).map(|(id, &kind)| {
        let server = if kind == NodeKind::Host { n_hosts } else { u32::MAX };
        n_hosts += u32::from(kind == NodeKind::Host);
        Node { kind, id, server }
    });
    let nodes = nodes.collect();
    let network = Network::new(nodes, links, ranks, None).map_err(|e| at_header(&counts, e))?;
    let network = Network { lossy_links, ..network };
    network.check_connected().map_err(|e| at_header(&counts, e))?;
    Ok(TopologyFile { network, gpus_per_server: None, gpu: None, left_out, notes: Vec::new() })
}

/// Places an error of the whole network at the header of its file.
pub(crate) fn at_header(counts: &Counts, e: TopologyError) -> TopologyError {
    match e {
        TopologyError::File(_) => e,
        other => counts.header.error(other.to_string()).into(),
    }
}

/// The network in the ns-3 form. The form has no NVLink and no servers, so these are left out. NVSwitches and ids with gaps are errors.
pub fn to_ns3(net: &Network) -> Result<String, TopologyError> {
    let mut switches = Vec::new();
    for (i, n) in net.nodes.iter().enumerate() {
        if n.id != i as u32 {
            return Err(TopologyError::NotWritable { form: "ns-3", what: format!("node id {} at position {i}", n.id) });
        }
        match n.kind {
            NodeKind::Host => {}
            NodeKind::Switch => switches.push(n.id.to_string()),
            kind @ (NodeKind::NvSwitch | NodeKind::Reducer) => {
                return Err(TopologyError::NotWritable { form: "ns-3", what: format!("{kind:?} {}", n.id) });
            }
        }
    }
    let mut out = String::new();
    let infallible = "writing to a string cannot fail";
    writeln!(out, "{} {} {}", net.nodes.len(), switches.len(), net.links.len()).expect(infallible);
    writeln!(out, "{}", switches.join(" ")).expect(infallible);
    for (l, link) in net.links.iter().zip(0..) {
        out.push_str(&link_line(l.a, l.b, l.rate_bps, l.delay_ps, net.loss_q32(link)));
    }
    Ok(out)
}

/// The line of a link that loses a share of packets, in units of 2^-32, as the ns-3 and the SimAI form have it.
pub(crate) fn link_line(a: u32, b: u32, rate_bps: u64, delay_ps: u64, lost_q32: u32) -> String {
    let mbps = rate_bps / BPS_PER_MBPS;
    let (rate, unit) = if mbps.is_multiple_of(1000) { (mbps / 1000, "Gbps") } else { (mbps, "Mbps") };
    let (delay, delay_unit) =
        if delay_ps.is_multiple_of(PS_PER_NS) { (delay_ps / PS_PER_NS, "ns") } else { (delay_ps, "ps") };
    let error_rate = if lost_q32 == 0 { "0".to_string() } else { loss_text(lost_q32) };
    format!("{a} {b} {rate}{unit} {delay}{delay_unit} {error_rate}\n")
}
