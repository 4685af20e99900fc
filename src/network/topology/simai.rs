//! Topology files in SimAI's form: reader and writer.
//!
//! Layer: topology. A file has `nodes gpus_per_server nvswitches switches links gpu_type`, the ids of the NVSwitches and then of the switches, then one line
//! per link as in the ns-3 form. Links of NVSwitches become [`Network::nvlink`].

use super::body::{self, Counts};
use super::network::{Network, Node, NodeIdx, NodeKind, NvLink};
use super::ns3::{TopologyFile, at_header, link_line};
use super::text::{FileError, Lines};
use super::validate::{MAX_LINKS, MAX_NODES, TopologyError, check_rate};

/// Parses SimAI's form; `path` is for messages.
pub fn parse_simai(path: &str, text: &str) -> Result<TopologyFile, TopologyError> {
    let shape = "nodes gpus_per_server nvswitches switches links gpu_type";
    let mut lines = Lines::new(path, text);
    let header = lines.expect(|| format!("it should begin with `{shape}`"))?;
    let [nodes, per_server, nvswitches, switches, links, gpu] = header.exactly(shape)?;
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
    let network = Network::new(nodes, body.links, ranks, nvlink).map_err(|e| at_header(&counts, e))?;
    let is_of_packets = |&(link, _): &(u32, u32)| network.is_packet_link(&network.links[link as usize]);
    let (lossy_links, inside): (Vec<_>, Vec<_>) = body.lossy_links.into_iter().partition(is_of_packets);
    let notes = (!inside.is_empty())
        .then(|| format!("error rates of links to NVSwitches have no effect: {} of them lose nothing", inside.len()));
    let network = Network { lossy_links, ..network };
    network.check_connected().map_err(|e| at_header(&counts, e))?;
    Ok(TopologyFile {
        network,
        gpus_per_server: Some(per_server),
        gpu: Some(gpu.to_string()),
        left_out: body.left_out,
        notes: notes.into_iter().collect(),
    })
}

/// The NVLinks of one GPU: the sum of their rates, their common delay, and the line of the last of them.
#[derive(Clone, Copy)]
struct GpuNvLink {
    rate_bps: u64,
    delay_ps: u64,
    line: usize,
}

/// The NVLink of all servers. A GPU's links to NVSwitches are added up. All GPUs must have the same sum and the same delay, and an NVSwitch must serve one
/// server.
fn read_nvlink(path: &str, nodes: &[Node], body: &body::TopologyBody) -> Result<Option<NvLink>, FileError> {
    let mut nvlink_of_gpu: Vec<Option<GpuNvLink>> = vec![None; nodes.len()];
    let mut server_of = vec![u32::MAX; nodes.len()];
    for (l, &line) in body.links.iter().zip(&body.link_lines) {
        let error = |problem: String| Err(line_error(path, line, problem));
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
        let before = nvlink_of_gpu[other as usize].unwrap_or(GpuNvLink { rate_bps: 0, delay_ps: l.delay_ps, line });
        if before.delay_ps != l.delay_ps {
            return error(format!(
                "GPU {other} has NVLinks with delays of {} ps and {} ps; all must agree",
                before.delay_ps, l.delay_ps
            ));
        }
        let rate_bps = before.rate_bps + l.rate_bps;
        check_rate(rate_bps)
            .map_err(|e| line_error(path, line, format!("all NVLinks of GPU {other} together: {e}")))?;
        nvlink_of_gpu[other as usize] = Some(GpuNvLink { rate_bps, delay_ps: l.delay_ps, line });
    }
    one_for_all(path, nodes, &nvlink_of_gpu)
}

/// The NVLink that all GPUs share; `None` if the file has no link of an NVSwitch.
fn one_for_all(path: &str, nodes: &[Node], nvlink_of_gpu: &[Option<GpuNvLink>]) -> Result<Option<NvLink>, FileError> {
    let Some((first_id, first)) =
        (0..).zip(nvlink_of_gpu).find_map(|(id, nvlink): (u32, _)| nvlink.map(|nvlink| (id, nvlink)))
    else {
        return Ok(None);
    };
    for (id, (node, nvlink)) in (0u32..).zip(nodes.iter().zip(nvlink_of_gpu)) {
        if node.kind != NodeKind::Host {
            continue;
        }
        let Some(own) = nvlink else {
            let problem = format!("GPU {first_id} has an NVLink, but GPU {id} has none; all must agree");
            return Err(line_error(path, first.line, problem));
        };
        if (own.rate_bps, own.delay_ps) != (first.rate_bps, first.delay_ps) {
            let problem = format!(
                "NVLinks of GPU {id} add up to {} bps and have a delay of {} ps, those of GPU {first_id} to {} bps and {} ps; all must agree",
                own.rate_bps, own.delay_ps, first.rate_bps, first.delay_ps
            );
            return Err(line_error(path, own.line, problem));
        }
    }
    Ok(Some(NvLink { rate_bps: first.rate_bps, latency_ps: 2 * first.delay_ps }))
}

fn line_error(path: &str, line: usize, problem: String) -> FileError {
    FileError::Line { path: path.to_string(), line, problem }
}

/// The network in SimAI's form: hosts, one NVSwitch a server if there is NVLink, switches. `gpu` is the name of the GPU.
///
/// # Errors
/// GPUs share NICs, servers are not of one size, or a switch stands inside a server.
pub fn to_simai(net: &Network, gpu: &str) -> Result<String, TopologyError> {
    let not_writable = |what: String| TopologyError::NotWritable { form: "SimAI", what };
    let n_hosts = net.nodes.iter().filter(|n| n.kind == NodeKind::Host).count() as u32;
    let servers = net.nodes.iter().filter(|n| n.kind == NodeKind::Host).map(|n| n.server + 1).max().unwrap_or(1);
    let per_server = n_hosts / servers;
    if net.ranks != (0..n_hosts).collect::<Vec<_>>() {
        return Err(not_writable("a NIC that is not that of one GPU, in the order of the ranks,".into()));
    }
    if (0..n_hosts).any(|h| net.nodes[h as usize].server != h / per_server) || per_server * servers != n_hosts {
        return Err(not_writable("servers of different sizes".into()));
    }
    if let Some(inner) = net.nodes.iter().find(|n| n.kind != NodeKind::Host && n.server != u32::MAX) {
        return Err(not_writable(format!("switch {} inside a server", inner.id)));
    }
    let switches: Vec<NodeIdx> =
        (0..net.nodes.len() as u32).filter(|&v| net.nodes[v as usize].kind == NodeKind::Switch).collect();
    let n_nvswitches = if net.nvlink.is_some() { servers } else { 0 };
    let mut new_id = vec![0; net.nodes.len()];
    (0..n_hosts).for_each(|h| new_id[h as usize] = h);
    (n_hosts + n_nvswitches..).zip(&switches).for_each(|(id, &v)| new_id[v as usize] = id);
    let links: Vec<_> = net.links.iter().zip(0..).filter(|(l, _)| net.is_packet_link(l)).collect();
    let n_inside = if net.nvlink.is_some() { n_hosts } else { 0 };
    let n_nodes = n_hosts + n_nvswitches + switches.len() as u32;
    let n_links = links.len() as u32 + n_inside;
    let ids: Vec<String> = (n_hosts..n_nodes).map(|id| id.to_string()).collect();
    let mut out =
        format!("{n_nodes} {per_server} {n_nvswitches} {} {n_links} {gpu}\n{}\n", switches.len(), ids.join(" "));
    if let Some(nvlink) = net.nvlink {
        (0..n_hosts).for_each(|h| {
            let nvswitch = n_hosts + h / per_server;
            out.push_str(&link_line(h, nvswitch, nvlink.rate_bps, (nvlink.latency_ps / 2).max(1), 0));
        });
    }
    for (l, link) in links {
        let (a, b) = (new_id[l.a as usize], new_id[l.b as usize]);
        out.push_str(&link_line(a, b, l.rate_bps, l.delay_ps, net.loss_q32(link)));
    }
    Ok(out)
}
