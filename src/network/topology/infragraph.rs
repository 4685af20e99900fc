//! Topology files in InfraGraph's form, as JSON: reader and writer.
//!
//! Layer: topology. InfraGraph (MLCommons, Keysight) describes devices with components, instances of devices, and edges between components of instances. A
//! device with components of the kind `xpu` is a server, any other one is a switch. A server's `nic` components are hosts; a device whose edges end at its
//! `xpu` components has one host for each of these. Edges inside devices are not read, except those from `xpu` to a `switch` component, whose link is the
//! server's NVLink if it has a bandwidth.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Value, json};

use super::network::{Link, Network, Node, NodeIdx, NodeKind, NvLink};
use super::ns3::TopologyFile;
use super::text::FileError;
use super::validate::{MAX_LINKS, MAX_NODES, TopologyError};
use hyperfold_base::units::{BPS_PER_GBPS, BPS_PER_MBPS, PS_PER_NS};

/// Delay of a link for which the file has no latency, in ps: the default of `topology.link_delay_ns`.
const DEFAULT_DELAY_PS: u64 = 1_000_000;
/// Latency of an NVLink for which the file has none, in ps: the default of `cluster.nvlink_latency_ns`.
const DEFAULT_NVLINK_PS: u64 = 500_000;

#[derive(Deserialize)]
struct Infrastructure {
    #[serde(default)]
    devices: Vec<Device>,
    #[serde(default)]
    links: Vec<LinkKind>,
    #[serde(default)]
    instances: Vec<Instance>,
    #[serde(default)]
    edges: Vec<Edge>,
}

#[derive(Deserialize)]
struct Device {
    name: String,
    #[serde(default)]
    components: Vec<Component>,
    #[serde(default)]
    links: Vec<LinkKind>,
    #[serde(default)]
    edges: Vec<Edge>,
}

#[derive(Deserialize)]
struct Component {
    name: String,
    #[serde(default = "one")]
    count: u32,
    #[serde(default)]
    choice: String,
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
struct Instance {
    name: String,
    device: String,
    #[serde(default = "one")]
    count: u32,
}

#[derive(Deserialize)]
struct LinkKind {
    name: String,
    #[serde(default)]
    physical: Option<Physical>,
}

#[derive(Default, Deserialize)]
struct Physical {
    #[serde(default)]
    bandwidth: Option<Bandwidth>,
    #[serde(default)]
    latency: Option<Latency>,
}

#[derive(Deserialize)]
struct Bandwidth {
    gigabits_per_second: Option<f64>,
    gigabytes_per_second: Option<f64>,
}

#[derive(Deserialize)]
struct Latency {
    ms: Option<f64>,
    us: Option<f64>,
    ns: Option<f64>,
}

#[derive(Deserialize)]
struct Edge {
    ep1: Endpoint,
    ep2: Endpoint,
    #[serde(default)]
    scheme: String,
    link: String,
}

#[derive(Deserialize)]
struct Endpoint {
    #[serde(default)]
    instance: String,
    #[serde(default)]
    component: String,
}

impl LinkKind {
    fn rate_bps(&self) -> Option<u64> {
        let bandwidth = self.physical.as_ref()?.bandwidth.as_ref()?;
        let gbps = bandwidth.gigabits_per_second.or(bandwidth.gigabytes_per_second.map(|x| 8.0 * x))?;
        // Rates are whole Mb/s. One too large for 64 bits stays larger than any that is accepted.
        Some(((gbps * 1e3).round() as u64).saturating_mul(BPS_PER_MBPS))
    }

    fn latency_ps(&self) -> Option<u64> {
        let latency = self.physical.as_ref()?.latency.as_ref()?;
        let ns = latency.ns.or(latency.us.map(|x| 1e3 * x)).or(latency.ms.map(|x| 1e6 * x))?;
        Some((ns * PS_PER_NS as f64).round() as u64)
    }
}

impl Device {
    fn component(&self, kind: &str) -> Option<&Component> {
        self.components.iter().find(|c| c.choice == kind)
    }

    fn count(&self, kind: &str) -> u32 {
        self.components.iter().filter(|c| c.choice == kind).fold(0, |n, c| n.saturating_add(c.count))
    }

    fn is_server(&self) -> bool {
        self.count("xpu") > 0
    }
}

/// A name with a slice in Python's notation, as `nic[0:4]`, and the indices that it selects of `count`.
fn sliced(text: &str, count: impl Fn(&str) -> Option<u32>) -> Result<(&str, Vec<u32>), String> {
    let (name, slice) = match text.split_once('[') {
        None => (text, ""),
        Some((name, rest)) => (name, rest.strip_suffix(']').ok_or_else(|| format!("`{text}` has no closing bracket"))?),
    };
    let n = i64::from(count(name).ok_or_else(|| format!("`{name}` is not declared"))?);
    let wrong = || format!("`{text}`: `{slice}` is no slice such as 3, 0:4 or 0:8:2 of {n}");
    let parts: Vec<Option<i64>> = slice
        .split(':')
        .map(|part| match part.trim() {
            "" => Ok(None),
            number => number.parse().map(Some).map_err(|_| wrong()),
        })
        .collect::<Result<_, _>>()?;
    let from_start = |i: i64| if i < 0 { i + n } else { i };
    let indices: Vec<i64> = match parts[..] {
        [None] => (0..n).collect(),
        [Some(i)] => vec![from_start(i)],
        [first, end] | [first, end, None] => {
            (from_start(first.unwrap_or(0)).max(0)..from_start(end.unwrap_or(n)).min(n)).collect()
        }
        [first, end, Some(step @ 1..)] => (from_start(first.unwrap_or(0)).max(0)..from_start(end.unwrap_or(n)).min(n))
            .step_by(step as usize)
            .collect(),
        _ => return Err(wrong()),
    };
    if indices.iter().any(|i| !(0..n).contains(i)) {
        return Err(wrong());
    }
    Ok((name, indices.into_iter().map(|i| i as u32).collect()))
}

/// The part of `parts` that the `i`-th of `n` things belongs to, in order and evenly.
fn share(i: u32, parts: u32, n: u32) -> u32 {
    (u64::from(i) * u64::from(parts) / u64::from(n)) as u32
}

/// The pairs that an edge joins, of the indices at its ends.
fn pairs(scheme: &str, a: &[u32], b: &[u32]) -> Result<Vec<(u32, u32)>, String> {
    match scheme {
        "one2one" | "" => Ok(a.iter().copied().zip(b.iter().copied()).collect()),
        "many2many" => Ok(a.iter().flat_map(|&x| b.iter().map(move |&y| (x, y))).collect()),
        other => Err(format!("the scheme `{other}` is not read; write one2one or many2many")),
    }
}

/// Devices and instances by name, and the first node of each instance.
struct Layout<'f> {
    devices: HashMap<&'f str, &'f Device>,
    instances: HashMap<&'f str, (&'f Instance, &'f Device, NodeIdx)>,
    /// Whether a server's hosts are its `xpu` components, as no edge ends at a NIC or port of it.
    xpus_are_hosts: HashMap<&'f str, bool>,
}

impl Layout<'_> {
    /// Hosts of one server.
    fn hosts_of(&self, device: &Device) -> u32 {
        let nics = device.count("nic");
        if self.xpus_are_hosts.get(device.name.as_str()).copied().unwrap_or(false) || nics == 0 {
            device.count("xpu")
        } else {
            nics
        }
    }

    /// The node of a component of an instance.
    fn node(&self, instance: &str, index: u32, component: &str, position: u32) -> Result<NodeIdx, String> {
        let (_, device, first) = self.instances[instance];
        if !device.is_server() {
            return Ok(first + index);
        }
        let hosts = self.hosts_of(device);
        let own = device.components.iter().find(|c| c.name == component);
        let host = match own.map(|c| (c.choice.as_str(), c.count)) {
            Some(("nic", _)) => position,
            // Ports are shared out evenly among the NICs, GPUs among hosts.
            Some((_, count)) => share(position, hosts, count.max(1)),
            None => return Err(format!("device `{}` has no component `{component}`", device.name)),
        };
        Ok(first + index * hosts + host.min(hosts.saturating_sub(1)))
    }
}

/// Parses InfraGraph's form; `path` is for messages.
pub fn parse_infragraph(path: &str, text: &str) -> Result<TopologyFile, TopologyError> {
    let error =
        |line: usize, problem: String| TopologyError::from(FileError::Line { path: path.to_string(), line, problem });
    let file: Infrastructure = serde_json::from_str(text).map_err(|e| {
        let hint = if text.trim_start().starts_with('{') { "" } else { "; only JSON is read: write YAML out as JSON" };
        error(e.line().max(1), format!("{e}{hint}"))
    })?;
    let (nodes, links, ranks, nvlink, mut read) = file.read().map_err(|problem| error(1, problem))?;
    read.network = Network::new(nodes, links, ranks, nvlink)
        .and_then(|network| network.check_connected().map(|()| network))
        .map_err(|problem| error(1, problem.to_string()))?;
    Ok(read)
}

/// Nodes, links, ranks, NVLink, and the rest of what was read, without the network.
type Parts = (Vec<Node>, Vec<Link>, Vec<NodeIdx>, Option<NvLink>, TopologyFile);

impl Infrastructure {
    fn read(&self) -> Result<Parts, String> {
        let layout = self.layout()?;
        let (nodes, ranks, per_server) = self.nodes(&layout)?;
        let mut notes = Vec::new();
        let mut without_latency = 0;
        let kinds: HashMap<&str, &LinkKind> = self.links.iter().map(|l| (l.name.as_str(), l)).collect();
        let mut links = Vec::new();
        for edge in &self.edges {
            let named = || format!("edge from `{}` to `{}`", edge.ep1.instance, edge.ep2.instance);
            let kind = *kinds.get(edge.link.as_str()).ok_or_else(|| format!("{}: no link `{}`", named(), edge.link))?;
            let rate_bps = kind.rate_bps().ok_or_else(|| {
                format!("link `{}` has no bandwidth; write physical.bandwidth.gigabits_per_second", kind.name)
            })?;
            let delay_ps = kind.latency_ps();
            for (a, b) in self.joined(&layout, edge).map_err(|why| format!("{}: {why}", named()))? {
                without_latency += u32::from(delay_ps.is_none());
                links.push(Link { a, b, rate_bps, delay_ps: delay_ps.unwrap_or(DEFAULT_DELAY_PS) });
                if links.len() > MAX_LINKS as usize {
                    return Err(format!("more than the {MAX_LINKS} links that are supported"));
                }
            }
        }
        if without_latency > 0 {
            notes.push(format!(
                "{without_latency} links have no latency in the file; each has {} ns here",
                DEFAULT_DELAY_PS / PS_PER_NS
            ));
        }
        let read = TopologyFile {
            network: Network::default(),
            gpus_per_server: Some(per_server),
            gpu: None,
            left_out: 0,
            notes,
        };
        Ok((nodes, links, ranks, self.nvlink(), read))
    }

    fn layout(&self) -> Result<Layout<'_>, String> {
        let devices: HashMap<&str, &Device> = self.devices.iter().map(|d| (d.name.as_str(), d)).collect();
        let instances: HashMap<&str, &Instance> = self.instances.iter().map(|i| (i.name.as_str(), i)).collect();
        let mut xpus_are_hosts = HashMap::new();
        for end in self.edges.iter().flat_map(|e| [&e.ep1, &e.ep2]) {
            let [instance, component] =
                [&end.instance, &end.component].map(|text| text.split('[').next().unwrap_or_default());
            let Some(device) = instances.get(instance).and_then(|i| devices.get(i.device.as_str())) else { continue };
            let is_xpu = device.components.iter().any(|c| c.name == component && c.choice == "xpu");
            *xpus_are_hosts.entry(device.name.as_str()).or_insert(true) &= is_xpu;
        }
        let mut layout = Layout { devices, instances: HashMap::new(), xpus_are_hosts };
        // Hosts first, then switches, in the order of the instances.
        let mut first = 0u64;
        for servers in [true, false] {
            for instance in &self.instances {
                let device = *layout
                    .devices
                    .get(instance.device.as_str())
                    .ok_or_else(|| format!("instance `{}`: there is no device `{}`", instance.name, instance.device))?;
                if let Some(large) = device.components.iter().find(|c| c.count > MAX_NODES) {
                    let (name, count) = (&large.name, large.count);
                    return Err(format!(
                        "component `{name}`: {count} are more than the {MAX_NODES} that are supported"
                    ));
                }
                if device.component("device").is_some() {
                    return Err(format!("device `{}` contains devices, which is not read", device.name));
                }
                if device.is_server() != servers {
                    continue;
                }
                let nodes = if servers { layout.hosts_of(device) } else { 1 };
                if layout.instances.insert(&instance.name, (instance, device, first as NodeIdx)).is_some() {
                    return Err(format!("there are two instances `{}`", instance.name));
                }
                first += u64::from(instance.count) * u64::from(nodes);
                if first > u64::from(MAX_NODES) {
                    return Err(format!("more than the {MAX_NODES} nodes that are supported"));
                }
            }
        }
        Ok(layout)
    }

    /// The nodes, the host of each GPU, and the GPUs of a server.
    fn nodes(&self, layout: &Layout) -> Result<(Vec<Node>, Vec<NodeIdx>, u32), String> {
        let (mut nodes, mut ranks, mut server) = (Vec::new(), Vec::new(), 0);
        let mut per_server = None;
        for instance in &self.instances {
            let (_, device, first) = layout.instances[instance.name.as_str()];
            if !device.is_server() {
                continue;
            }
            let (hosts, gpus) = (layout.hosts_of(device), device.count("xpu"));
            if *per_server.get_or_insert(gpus) != gpus {
                return Err(format!("servers have {} and {gpus} GPUs; all must agree", per_server.unwrap_or(0)));
            }
            if ranks.len() as u64 + u64::from(instance.count) * u64::from(gpus) > u64::from(MAX_NODES) {
                return Err(format!("more than the {MAX_NODES} GPUs that are supported"));
            }
            for i in 0..instance.count {
                nodes.extend((0..hosts).map(|h| Node { kind: NodeKind::Host, id: first + i * hosts + h, server }));
                ranks.extend((0..gpus).map(|g| first + i * hosts + share(g, hosts, gpus)));
                server += 1;
            }
        }
        let switches = self.instances.iter().filter(|i| !layout.instances[i.name.as_str()].1.is_server());
        let n_switches: u32 = switches.map(|i| i.count).sum();
        let n_hosts = nodes.len() as u32;
        nodes.extend((0..n_switches).map(|s| Node { kind: NodeKind::Switch, id: n_hosts + s, server: u32::MAX }));
        let per_server = per_server.ok_or("no device has a component of the kind `xpu`, so there is no server")?;
        Ok((nodes, ranks, per_server))
    }

    /// The nodes that an edge joins, pair by pair.
    fn joined(&self, layout: &Layout, edge: &Edge) -> Result<Vec<(NodeIdx, NodeIdx)>, String> {
        let ends = [&edge.ep1, &edge.ep2].map(|end| {
            let of_instance = |name: &str| layout.instances.get(name).map(|(instance, ..)| instance.count);
            let (instance, which) = sliced(&end.instance, of_instance)?;
            let device = layout.instances[instance].1;
            let of_component = |name: &str| device.components.iter().find(|c| c.name == name).map(|c| c.count);
            let (component, indices) = sliced(&end.component, of_component)?;
            Ok::<_, String>((instance, which, component, indices))
        });
        let [a, b] = ends;
        let (a, b) = (a?, b?);
        let n_pairs = if edge.scheme == "many2many" { a.3.len() * b.3.len() } else { a.3.len().min(b.3.len()) };
        if a.1.len().min(b.1.len()).saturating_mul(n_pairs) > MAX_LINKS as usize {
            return Err(format!("more than the {MAX_LINKS} links that are supported"));
        }
        let mut joined = Vec::new();
        // As InfraGraph's own service: instances in pairs, components by the scheme.
        for (&i, &j) in a.1.iter().zip(&b.1) {
            for (x, y) in pairs(&edge.scheme, &a.3, &b.3)? {
                joined.push((layout.node(a.0, i, a.2, x)?, layout.node(b.0, j, b.2, y)?));
            }
        }
        Ok(joined)
    }

    /// The link from the GPUs to a switch of their server, of the first server that has one with a bandwidth.
    fn nvlink(&self) -> Option<NvLink> {
        let device = self.devices.iter().find(|d| d.is_server())?;
        let kind_of = |text: &str| {
            let name = text.split('[').next().unwrap_or_default();
            device.components.iter().find(|c| c.name == name).map(|c| (c.choice.as_str(), c.count))
        };
        device.edges.iter().find_map(|edge| {
            let ends = [kind_of(&edge.ep1.component)?, kind_of(&edge.ep2.component)?];
            let switches = match ends {
                [("xpu", _), ("switch", n)] | [("switch", n), ("xpu", _)] => u64::from(n),
                _ => return None,
            };
            let kind = device.links.iter().find(|l| l.name == edge.link)?;
            let each = if edge.scheme == "many2many" { switches } else { 1 };
            let latency_ps = kind.latency_ps().map_or(DEFAULT_NVLINK_PS, |ps| ps.saturating_mul(2));
            Some(NvLink { rate_bps: kind.rate_bps()?.saturating_mul(each), latency_ps })
        })
    }
}

/// The network in InfraGraph's form. Names of switches are not part of it: switches with the same number of ports are one instance.
///
/// # Errors
/// Servers have different numbers of NICs or GPUs, or a switch stands inside a server.
pub fn to_infragraph(net: &Network) -> Result<String, TopologyError> {
    let not_writable = |what: String| TopologyError::NotWritable { form: "InfraGraph", what };
    if let Some(inner) = net.nodes.iter().find(|n| n.kind != NodeKind::Host && n.server != u32::MAX) {
        return Err(not_writable(format!("switch {} inside a server", inner.id)));
    }
    let hosts = net.nodes.iter().filter(|n| n.kind == NodeKind::Host).count();
    let servers = net.nodes.iter().filter(|n| n.kind == NodeKind::Host).map(|n| n.server + 1).max().unwrap_or(1);
    let (nics, gpus) = ((hosts as u32 / servers).max(1), (net.ranks.len() as u32 / servers).max(1));
    let regular = (0u32..).zip(&net.nodes[..hosts]).all(|(i, n)| n.kind == NodeKind::Host && n.server == i / nics)
        && (0u32..).zip(&net.ranks).all(|(rank, host)| *host == rank / gpus * nics + share(rank % gpus, nics, gpus));
    if !regular || nics * servers != hosts as u32 || gpus * servers != net.ranks.len() as u32 {
        return Err(not_writable("servers with different numbers of NICs or GPUs, or GPUs in another order".into()));
    }
    let mut ports_used = vec![0u32; net.nodes.len()];
    let mut ends = Vec::with_capacity(net.links.len());
    for link in net.links.iter().filter(|l| net.is_packet_link(l)) {
        let port = [link.a, link.b].map(|v| {
            ports_used[v as usize] += 1;
            ports_used[v as usize] - 1
        });
        ends.push((link, port));
    }
    // Each number of ports is a device and an instance, in the order of the first switch that has it.
    let mut classes: Vec<(u32, u32)> = Vec::new();
    let mut place = vec![(0usize, 0u32); net.nodes.len()];
    for (i, _) in net.nodes.iter().enumerate().filter(|(_, n)| n.kind == NodeKind::Switch) {
        let class = classes.iter().position(|(ports, _)| *ports == ports_used[i]).unwrap_or_else(|| {
            classes.push((ports_used[i], 0));
            classes.len() - 1
        });
        place[i] = (class, classes[class].1);
        classes[class].1 += 1;
    }
    let nic_ports = ports_used[..hosts].iter().copied().max().unwrap_or(1);
    let endpoint = |v: u32, port: u32| -> Value {
        if (v as usize) < hosts {
            let nic = v % nics;
            let component =
                if nic_ports > 1 { format!("port[{}]", nic * nic_ports + port) } else { format!("nic[{nic}]") };
            json!({"instance": format!("server[{}]", v / nics), "component": component})
        } else {
            let (class, index) = place[v as usize];
            let name = format!("switch-{}-ports[{index}]", classes[class].0);
            json!({"instance": name, "component": format!("port[{port}]")})
        }
    };
    let mut kinds: BTreeMap<(u64, u64), String> = BTreeMap::new();
    for (link, _) in &ends {
        let (gbps, ns) = (link.rate_bps as f64 / BPS_PER_GBPS as f64, link.delay_ps as f64 / PS_PER_NS as f64);
        kinds.entry((link.rate_bps, link.delay_ps)).or_insert_with(|| format!("{gbps}-gbps-{ns}-ns"));
    }
    let edges: Vec<Value> = ends
        .iter()
        .map(|(link, [a, b])| {
            json!({"ep1": endpoint(link.a, *a), "ep2": endpoint(link.b, *b), "scheme": "one2one",
                   "link": kinds[&(link.rate_bps, link.delay_ps)]})
        })
        .collect();
    let links: Vec<Value> = kinds.iter().map(|((rate, delay), name)| physical(name, *rate, *delay)).collect();
    let switch = |(ports, _): &(u32, u32)| {
        json!({"name": format!("switch-{ports}-ports"), "components": [component("asic", "cpu", 1), component("port", "port", *ports)],
               "links": [{"name": "ic"}],
               "edges": [{"ep1": {"component": "asic"}, "ep2": {"component": "port"}, "scheme": "many2many", "link": "ic"}]})
    };
    let mut devices = vec![server(net.nvlink, gpus, nics, nic_ports)];
    devices.extend(classes.iter().map(switch));
    let mut instances = vec![json!({"name": "server", "device": "server", "count": servers})];
    instances.extend(classes.iter().map(|(ports, n)| {
        let name = format!("switch-{ports}-ports");
        json!({"name": name, "device": name, "count": n})
    }));
    let file = json!({"name": "network", "devices": devices, "links": links, "instances": instances, "edges": edges});
    Ok(format!("{file:#}\n"))
}

fn component(name: &str, kind: &str, count: u32) -> Value {
    json!({"name": name, "count": count, "choice": kind, kind: {}})
}

fn physical(name: &str, rate_bps: u64, delay_ps: u64) -> Value {
    let (gbps, ns) = (rate_bps as f64 / BPS_PER_GBPS as f64, delay_ps as f64 / PS_PER_NS as f64);
    json!({"name": name, "physical": {
        "bandwidth": {"choice": "gigabits_per_second", "gigabits_per_second": gbps}, "latency": {"choice": "ns", "ns": ns}}})
}

/// The device of a server: GPUs, NICs, their ports if a NIC has several, and a switch for NVLink.
fn server(nvlink: Option<NvLink>, gpus: u32, nics: u32, nic_ports: u32) -> Value {
    let mut components = vec![component("xpu", "xpu", gpus), component("nic", "nic", nics)];
    let mut links = vec![json!({"name": "pcie"})];
    let mut edges: Vec<Value> = (0..gpus)
        .map(|g| {
            let nic = format!("nic[{}]", share(g, nics, gpus));
            json!({"ep1": {"component": format!("xpu[{g}]")}, "ep2": {"component": nic}, "scheme": "one2one", "link": "pcie"})
        })
        .collect();
    if nic_ports > 1 {
        components.push(component("port", "port", nics * nic_ports));
        links.push(json!({"name": "serdes"}));
        edges.extend((0..nics * nic_ports).map(|p| {
            json!({"ep1": {"component": format!("nic[{}]", p / nic_ports)}, "ep2": {"component": format!("port[{p}]")},
                   "scheme": "one2one", "link": "serdes"})
        }));
    }
    if let Some(nvlink) = nvlink {
        components.push(component("nvswitch", "switch", 1));
        links.push(physical("nvlink", nvlink.rate_bps, nvlink.latency_ps / 2));
        edges.push(json!({"ep1": {"component": "xpu"}, "ep2": {"component": "nvswitch"}, "scheme": "many2many", "link": "nvlink"}));
    }
    json!({"name": "server", "components": components, "links": links, "edges": edges})
}
