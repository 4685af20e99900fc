//! Topology files in SimAI's form.
//!
//! Layer: topology. `nodes gpus_per_server nvswitches switches links gpu_type`, the ids of the NVSwitches and then of the switches,
//! then a line a link as in the ns-3 form. Links of NVSwitches become [`Network::nvlink`].

use super::body::{self, Counts};
use super::network::{Network, Node, NodeIdx, NodeKind, NvLink};
use super::ns3::{TopologyFile, at};
use super::text::{FileError, Lines};
use super::validate::{MAX_LINKS, MAX_NODES, TopologyError};

/// Reads SimAI's form; `path` is for messages.
pub fn parse_simai(path: &str, text: &str) -> Result<TopologyFile, TopologyError> {
    let shape = "nodes gpus_per_server nvswitches switches links gpu_type";
    let mut lines = Lines::new(path, text);
    let header = lines.expect(|| format!("it should begin with `{shape}`"))?;
    let [nodes, per_server, nvswitches, switches, links, gpu] = header.exactly(shape).map_err(|e| {
        if header.fields().count() == 3 {
            header.error(format!("3 fields, expected 6: `{shape}`; this looks like the ns-3 form (format = \"ns3\")"))
        } else {
            e
        }
    })?;
    let n_nodes = header.number("the number of nodes", nodes, 1, MAX_NODES)?;
    let n_nvswitches = header.number("the number of NVSwitches", nvswitches, 0, n_nodes - 1)?;
    let n_network = header.number("the number of switches", switches, 0, n_nodes - 1 - n_nvswitches)?;
    let n_hosts = n_nodes - n_nvswitches - n_network;
    let per_server = header.number("the number of GPUs per server", per_server, 1, n_hosts)?;
    if n_hosts % per_server != 0 {
        return Err(header.error(format!("{n_hosts} GPUs do not fill servers of {per_server}")).into());
    }
    let n_links = header.number("the number of links", links, 1, MAX_LINKS)?;
    let counts = Counts { header, n_nodes, n_switches: n_nvswitches + n_network, n_links };
    let body = body::read(&mut lines, &counts)?;

    let mut kinds = vec![NodeKind::Host; n_nodes as usize];
    for (i, &id) in body.switch_ids.iter().enumerate() {
        kinds[id as usize] = if i < n_nvswitches as usize { NodeKind::NvSwitch } else { NodeKind::Switch };
    }
    let ranks: Vec<NodeIdx> = (0..n_nodes).filter(|&i| kinds[i as usize] == NodeKind::Host).collect();
    let mut nodes: Vec<Node> =
        (0..n_nodes).zip(&kinds).map(|(id, &kind)| Node { kind, id, server: u32::MAX }).collect();
    for (rank, &host) in ranks.iter().enumerate() {
        nodes[host as usize].server = rank as u32 / per_server;
    }
    let nvlink = read_nvlink(path, &nodes, &body)?;
    let network = Network::new(nodes, body.links, ranks, nvlink).map_err(|e| at(&counts, e))?;
    network.check_connected().map_err(|e| at(&counts, e))?;
    Ok(TopologyFile { network, gpus_per_server: Some(per_server), gpu: Some(gpu.to_string()), left_out: body.left_out })
}

/// One NVLink for all servers: every GPU-to-NVSwitch link must have the same rate and delay, and an NVSwitch serves one server.
fn read_nvlink(path: &str, nodes: &[Node], body: &body::TopologyBody) -> Result<Option<NvLink>, FileError> {
    let mut found: Option<NvLink> = None;
    let mut server_of = vec![u32::MAX; nodes.len()];
    for (l, &line) in body.links.iter().zip(&body.link_lines) {
        let error = |problem: String| Err(FileError::Line { path: path.to_string(), line, problem });
        let (nv, other) = match (nodes[l.a as usize].kind, nodes[l.b as usize].kind) {
            (NodeKind::NvSwitch, _) => (l.a, l.b),
            (_, NodeKind::NvSwitch) => (l.b, l.a),
            _ => continue,
        };
        let gpu = &nodes[other as usize];
        if gpu.kind != NodeKind::Host {
            return error(format!("NVSwitch {nv} is linked to switch {other}; NVSwitches link GPUs only"));
        }
        let server = &mut server_of[nv as usize];
        if *server != u32::MAX && *server != gpu.server {
            return error(format!(
                "NVSwitch {nv} links GPU {other} of server {} with server {server}; an NVSwitch serves one server, is gpus_per_server right?",
                gpu.server
            ));
        }
        *server = gpu.server;
        let this = NvLink { rate_bps: l.rate_bps, latency_ps: 2 * l.delay_ps };
        match found {
            Some(first) if first != this => {
                return error(format!(
                    "NVLink of {} bps and {} ps differs from the first one's {} bps and {} ps; all must agree",
                    this.rate_bps,
                    this.latency_ps / 2,
                    first.rate_bps,
                    first.latency_ps / 2
                ));
            }
            _ => found = Some(this),
        }
    }
    Ok(found)
}
