//! Finds the links that `topology.outages` names, and works out what their failure changes.
//!
//! Layer: host. Builds no tables. Links that are slow or lose packets are in [`impairments`](super::impairments).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hyperfold_config::spec::{Config, Conflict, FailingPart, KeyId, MAX_OUTAGES, OutageTimes, TopologyKind, mix};
use hyperfold_llm::workload::Flow;
use hyperfold_network::changes::{ChangeList, Outage, PortFailover, RoutedFlow, TimedChange, changes_of, crosses};
use hyperfold_network::routing::{FlowKey, FlowPaths, RoutingPolicy};
use hyperfold_network::topology::{CircuitPlan, DarkSpan, FabricShape, Network, NodeKind};
use hyperfold_network::transport::Transport;

/// Most names that a message lists.
const MAX_NAMES: usize = 6;

/// The flows that cross the network, with what decides their paths.
pub(crate) struct CrossingFlows<'a> {
    /// The flows.
    pub flows: &'a [Flow],
    /// Paths that each flow takes at first.
    pub paths: &'a [FlowPaths],
    /// Paths of flows that links have made take others, while no link is down.
    pub own_paths: &'a BTreeMap<usize, FlowPaths>,
    /// Link of its NICs that each flow is pinned to; `None`: any.
    pub lanes: &'a [Option<u32>],
    /// What chooses their paths.
    pub policy: &'a dyn RoutingPolicy,
    /// Id of the first flow that is a queue pair of tasks.
    pub first_qp_id: u32,
}

/// The outages of an experiment, with the links that they take down.
///
/// # Errors
/// An outage names what the network does not have, a link between two hosts, or one that fails during a run with receiver credit.
pub(crate) fn outages(config: &Config, net: &Network) -> Result<Vec<Outage>, Conflict> {
    let texts = &config.topology.outages;
    let names = if texts.is_empty() { Vec::new() } else { net.names() };
    let loses_credit = config.values.bool(KeyId::ReceiverCredit) && !config.is_flow_level();
    if loses_credit && config.topology.changes_circuits() {
        let why = "credit that is lost with a circuit is never given again: without transport.receiver_credit, or with circuits that stay";
        return Err(Conflict { job: None, key: KeyId::Circuits, why: why.to_string() });
    }
    let circuit = |dark: &DarkSpan| Outage {
        links: vec![dark.link],
        down_ps: dark.down_ps,
        up_ps: dark.up_ps,
        drain_ps: Some(dark.drain_ps),
    };
    let circuits: Vec<Outage> = net.dark.iter().map(circuit).collect();
    let dark_at_first: BTreeSet<u32> = net.dark.iter().filter(|d| d.down_ps.is_none()).map(|d| d.link).collect();
    let mut outages = Vec::new();
    for text in texts {
        if loses_credit && text.times.fails_during_run() {
            let why = "credit that is lost with a link is never given again: without transport.receiver_credit, or a link that is down from the start";
            return Err(Conflict { job: None, key: KeyId::Outages, why: format!("`{}`: {why}", text.text) });
        }
        let is_lit = |link| !dark_at_first.contains(&link);
        let found = links_of(net, &names, &text.part, (&is_lit, "come later as circuits"), (config.seed, text.entry));
        let links = found.and_then(|links| switched(net, links)).map_err(|why| Conflict {
            job: None,
            key: KeyId::Outages,
            why: format!("`{}`: {why}", text.text),
        })?;
        let drawn = match text.times {
            OutageTimes::Given { down_ps, up_ps } => {
                outages.push(Outage { links, down_ps, up_ps, drain_ps: text.drain_ps });
                continue;
            }
            OutageTimes::Drawn(drawn) => drawn,
        };
        // A node fails as a whole, and links one by one.
        let together = matches!(text.part, FailingPart::Node(_));
        let parts: Vec<Vec<u32>> =
            if together { vec![links] } else { links.into_iter().map(|link| vec![link]).collect() };
        for part in parts {
            let draws = (config.seed, text.entry, u64::from(part[0]));
            let spans = drawn.spans(draws, MAX_OUTAGES + 1 - outages.len());
            let outage = |(down_ps, up_ps)| Outage {
                links: part.clone(),
                down_ps: Some(down_ps),
                up_ps: Some(up_ps),
                drain_ps: None,
            };
            outages.extend(spans.into_iter().map(outage));
            if outages.len() > MAX_OUTAGES {
                let why = format!(
                    "`{}`: more than {MAX_OUTAGES} failures; a longer mtbf or an earlier `until` has fewer",
                    text.text
                );
                return Err(Conflict { job: None, key: KeyId::Outages, why });
            }
        }
    }
    outages.extend(circuits);
    Ok(outages)
}

/// Returns the changes that the outages of an experiment bring, in order. Adds notes on what may surprise.
///
pub(crate) fn network_changes(
    config: &Config,
    net: &Network,
    outages: &[Outage],
    crossing: &CrossingFlows<'_>,
    transport: &Transport,
    notes: &mut Vec<String>,
) -> Vec<TimedChange> {
    let (flows, paths, own_paths) = (crossing.flows, crossing.paths, crossing.own_paths);
    if outages.is_empty() {
        return Vec::new();
    }
    if flows.is_empty() {
        notes.push(format!("{} has no effect here: no packet crosses the network", named(config)));
        return Vec::new();
    }
    let own = |flow: usize| own_paths.get(&flow).unwrap_or(&paths[flow]);
    let links: BTreeSet<u32> = outages.iter().flat_map(|outage| outage.links.iter().copied()).collect();
    if !(0..flows.len()).any(|flow| crosses(own(flow), &links)) {
        notes.push(format!("{} has no effect here: no path crosses what fails", named(config)));
        return Vec::new();
    }
    if outages.iter().all(Outage::is_lasting) {
        return Vec::new();
    }
    let moves_alone = |flow: &Flow| config.is_flow_level() || flow.id < crossing.first_qp_id;
    let routed: Vec<RoutedFlow> = (0..flows.len())
        .map(|flow| RoutedFlow {
            key: FlowKey::from(&flows[flow]),
            lane: crossing.lanes[flow],
            paths: own(flow),
            first: &paths[flow],
            failover: match (config.routing.port_failover, moves_alone(&flows[flow])) {
                (false, _) => PortFailover::Off,
                (true, true) => PortFailover::On,
                (true, false) => PortFailover::Together,
            },
        })
        .collect();
    let reroute_ps = config.routing.reroute_ps;
    let ChangeList { changes, without_way, other_ports } =
        changes_of(net, outages, reroute_ps, &routed, crossing.policy);
    if let Some(&first) = without_way.first() {
        let then = match config.is_flow_level() {
            true => "until a link is back".to_string(),
            false => format!(
                "and the experiment fails if they give up after transport.rto_retries = {} timeouts without progress",
                transport.rto_retries
            ),
        };
        notes.push(format!(
            "{} leaves {} of {} flows without a path between their NICs for some time (first: {} to {}): they wait, {then}",
            named(config),
            without_way.len(),
            flows.len(),
            net.rank_name(flows[first].src_rank),
            net.rank_name(flows[first].dst_rank),
        ));
    }
    notes.extend(stays_on_port(config, other_ports.len(), flows.len()));
    notes.extend(away_together(config, net));
    notes.extend(early_drain(config, outages));
    match config.is_flow_level() {
        true => notes.push(
            "at flow level flows on a link that has failed wait until paths avoid it or it is back; timeouts and packets that are sent again take no time"
                .to_string(),
        ),
        false => notes.extend(gives_up(config, outages, transport)),
    }
    if config.joins_ranks() {
        notes.push(
            "fidelity.join = \"ranks\" simulates one rank of each class: what fails for it fails for its whole class; fidelity.join = \"collectives\" tells \
             ranks apart"
                .to_string(),
        );
    }
    changes
}

/// Names the key with its value, which tells experiments of a sweep apart. A long value is cut.
fn named(config: &Config) -> String {
    const MOST: usize = 80;
    let (key, text) = match (config.values.text(KeyId::Outages), config.topology.changes_circuits()) {
        (_, true) => ("topology.circuits", config.values.text(KeyId::Circuits)),
        (text, false) => ("topology.outages", text),
    };
    let end = text.char_indices().nth(MOST).map_or(text.len(), |(end, _)| end);
    format!("{key} = \"{}{}\"", &text[..end], if end < text.len() { "..." } else { "" })
}

/// Returns a note if circuits rotate so that those of several circuit switches are dark or drained at the same time.
fn away_together(config: &Config, net: &Network) -> Option<String> {
    let TopologyKind::Generated { shape: FabricShape::Optical(optical), .. } = &config.topology.kind else {
        return None;
    };
    let CircuitPlan::Rotate(rotation) = &optical.plan else { return None };
    // Each circuit switch joins nearly all leaves in pairs at the beginning.
    let at_beginning = net.at_beginning();
    let is_switch = |node: u32| net.nodes[node as usize].kind == NodeKind::Switch;
    let circuits = at_beginning.links.iter().filter(|l| is_switch(l.a) && is_switch(l.b)).count() as u64;
    let leaves =
        net.nodes.iter().filter(|node| node.kind == NodeKind::Switch && node.server == u32::MAX).count() as u64;
    let ports = circuits / (leaves / 2).max(1);
    let turn_ps = rotation.every_ps / ports.max(1);
    let away_ps = rotation.dark_ps + rotation.drain_ps;
    (away_ps > turn_ps).then(|| {
        format!(
            "topology.circuits: a circuit switch changes every {} us, as there are {ports}, and is dark or drained for {} us: several are away at once; a longer \
             `every` keeps more circuits",
            turn_ps as f64 / 1e6,
            away_ps as f64 / 1e6
        )
    })
}

/// Returns a note if something is drained for longer than there is time before it fails or goes dark.
fn early_drain(config: &Config, outages: &[Outage]) -> Option<String> {
    let early = |outage: &&Outage| outage.down_ps.zip(outage.drain_ps).is_some_and(|(down, drain)| drain > down);
    let first = outages.iter().filter(early).min_by_key(|outage| outage.down_ps)?;
    let (down_ps, drain_ps) = first.down_ps.zip(first.drain_ps)?;
    Some(format!(
        "{}: at {} us links go down that are drained for {} us before, which is longer than there is time: paths avoid them from the beginning",
        named(config),
        down_ps as f64 / 1e6,
        drain_ps as f64 / 1e6
    ))
}

/// Returns a note if `n` of `all` flows wait although another port of their NIC has a path.
fn stays_on_port(config: &Config, n: usize, all: usize) -> Option<String> {
    (n > 0).then(|| {
        format!(
            "{}: {n} of {all} flows wait although another port of their NICs has a path: routing.port_failover = true moves them",
            named(config)
        )
    })
}

/// Returns a note if flows may give up before paths avoid what failed, or before it is back.
fn gives_up(config: &Config, outages: &[Outage], transport: &Transport) -> Option<String> {
    let patience_ps = transport.rto_ps.saturating_mul(u64::from(transport.rto_retries) + 1);
    let reroute_ps = config.routing.reroute_ps;
    let unavoided_ps = |o: &Outage| {
        let down_ps = o.down_ps.filter(|_| o.drain_ps.is_none())?;
        Some(o.up_ps.map_or(reroute_ps, |up| (up - down_ps).min(reroute_ps)))
    };
    let longest = outages.iter().filter_map(unavoided_ps).max()?;
    (longest >= patience_ps).then(|| {
        format!(
            "flows may give up before routing.reroute_us = {} is over: {} timeouts of {} us are shorter; raise transport.rto_us or transport.rto_retries, \
             or lower routing.reroute_us",
            reroute_ps as f64 / 1e6,
            transport.rto_retries + 1,
            transport.rto_ps as f64 / 1e6
        )
    })
}

/// The links that are named. Random ones are drawn among those that `may_draw` allows, by the seed and a number; the others have `what` already. The error says
/// what the network does not have.
pub(super) fn links_of(
    net: &Network,
    names: &[String],
    part: &FailingPart,
    (may_draw, what): (&dyn Fn(u32) -> bool, &str),
    (seed, number): (u64, u64),
) -> Result<Vec<u32>, String> {
    let packet_links = || (0u32..).zip(&net.links).filter(|(_, link)| net.is_packet_link(link));
    let node = |name: &str| node_of(net, names, name);
    let links: Vec<u32> = match part {
        FailingPart::All => packet_links().map(|(i, _)| i).collect(),
        FailingPart::Node(name) => {
            let node = node(name)?;
            packet_links().filter(|(_, l)| l.a == node || l.b == node).map(|(i, _)| i).collect()
        }
        FailingPart::Links { a, b, number: chosen } => {
            let (a, b) = (node(a)?, node(b)?);
            let between: Vec<u32> =
                packet_links().filter(|(_, l)| (l.a, l.b) == (a, b) || (l.b, l.a) == (a, b)).map(|(i, _)| i).collect();
            match *chosen {
                Some(number) if number as usize > between.len() => {
                    return Err(format!("there are {} links between these nodes", between.len()));
                }
                Some(number) => vec![between[number as usize - 1]],
                None => between,
            }
        }
        FailingPart::Random(count) => {
            let is_switch = |node: u32| net.nodes[node as usize].kind == NodeKind::Switch;
            let between_switches = packet_links().filter(|(_, l)| is_switch(l.a) && is_switch(l.b));
            let n_all = between_switches.clone().count();
            let mut all: Vec<u32> = between_switches.map(|(i, _)| i).filter(|&link| may_draw(link)).collect();
            if all.len() < *count as usize {
                let taken = match n_all - all.len() {
                    0 => String::new(),
                    taken => format!(", and {taken} of them have {what} already"),
                };
                return Err(format!("the network has {n_all} links between switches{taken}"));
            }
            all.sort_by_key(|&link| (mix(seed, number, u64::from(link)), link));
            all.truncate(*count as usize);
            all
        }
    };
    if links.is_empty() {
        let linked = neighbours(net, names, part);
        return Err(format!("no packet link is there{linked}"));
    }
    Ok(links)
}

/// The links, if none of them joins two hosts.
fn switched(net: &Network, links: Vec<u32>) -> Result<Vec<u32>, String> {
    let is_host = |node: u32| net.nodes[node as usize].kind == NodeKind::Host;
    let between_hosts = |&&link: &&u32| is_host(net.links[link as usize].a) && is_host(net.links[link as usize].b);
    match links.iter().find(between_hosts) {
        Some(_) => {
            Err("a link between two hosts cannot fail in this model: one of its ends must be a switch".to_string())
        }
        None => Ok(links),
    }
}

/// Index of the node with this name, or with this id. The error names similar ones.
pub(super) fn node_of(net: &Network, names: &[String], name: &str) -> Result<u32, String> {
    let by_name = || names.iter().position(|known| known == name);
    let by_id = || net.nodes.binary_search_by_key(&name.parse().ok()?, |node| node.id).ok();
    if let Some(node) = by_name().or_else(by_id) {
        return Ok(node as u32);
    }
    let mut kinds: HashMap<&str, (usize, &str, &str)> = HashMap::new();
    for known in names {
        let word = known.trim_end_matches(|c: char| c.is_ascii_digit());
        let n_kinds = kinds.len();
        kinds.entry(word).or_insert((n_kinds, known, known)).2 = known;
    }
    let mut kinds: Vec<(usize, &str, &str)> = kinds.into_values().collect();
    kinds.sort_unstable();
    let spans: Vec<String> = kinds
        .iter()
        .take(MAX_NAMES)
        .map(|(_, first, last)| if first == last { first.to_string() } else { format!("{first} to {last}") })
        .collect();
    let more = if kinds.len() > MAX_NAMES { " and more (hyperfold topo show)" } else { "" };
    Err(format!("no node is called `{name}`; there are {}{more}", spans.join(", ")))
}

/// Says for a message what the first of two nodes is linked to.
fn neighbours(net: &Network, names: &[String], part: &FailingPart) -> String {
    let FailingPart::Links { a, .. } = part else { return String::new() };
    let Ok(node) = node_of(net, names, a) else { return String::new() };
    let packet_links = net.links.iter().filter(|l| net.is_packet_link(l));
    let others = packet_links.filter_map(|l| match (l.a == node, l.b == node) {
        (true, _) => Some(l.b),
        (_, true) => Some(l.a),
        _ => None,
    });
    let mut others: Vec<u32> = others.collect();
    others.dedup();
    let shown: Vec<&str> = others.iter().take(MAX_NAMES).map(|&other| names[other as usize].as_str()).collect();
    let more = if others.len() > MAX_NAMES { ", ..." } else { "" };
    format!("; {a} is linked to {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_network::topology::parse_ns3;

    /// Hosts 0 to 3 at leaves 4 and 5, which spines 6 and 7 join; leaf 4 has two links to spine 6.
    fn network() -> Network {
        let links = ["0 4", "1 4", "2 5", "3 5", "4 6", "4 6", "4 7", "5 6", "5 7"];
        let links = links.map(|ends| format!("{ends} 100Gbps 1us 0\n")).concat();
        parse_ns3("test", &format!("8 4 9\n4 5 6 7\n{links}")).unwrap().network
    }

    fn links(part: FailingPart, draw: (u64, u64)) -> Result<Vec<u32>, String> {
        let net = network();
        links_of(&net, &net.names(), &part, (&|_| true, ""), draw)
    }

    fn between(a: &str, b: &str, number: Option<u32>) -> Result<Vec<u32>, String> {
        links(FailingPart::Links { a: a.into(), b: b.into(), number }, (1, 0))
    }

    #[test]
    fn nodes_and_links_are_found_by_name() {
        assert_eq!(links(FailingPart::Node("switch6".into()), (1, 0)), Ok(vec![4, 5, 7]));
        assert_eq!(links(FailingPart::Node("host3".into()), (1, 0)), Ok(vec![3]));
        assert_eq!(between("switch4", "switch6", None), Ok(vec![4, 5]));
        assert_eq!(between("switch6", "switch4", Some(2)), Ok(vec![5]));
        assert_eq!(between("6", "4", None), Ok(vec![4, 5]), "ids of the file");
        assert_eq!(links(FailingPart::All, (1, 0)), Ok((0..9).collect()));
        assert!(between("4", "8", None).unwrap_err().starts_with("no node is called `8`"));
        assert_eq!(between("switch4", "switch6", Some(3)), Err("there are 2 links between these nodes".into()));
        assert!(
            between("switch4", "switch5", None)
                .unwrap_err()
                .starts_with("no packet link is there; switch4 is linked to host0")
        );
    }

    #[test]
    fn random_links_join_switches_and_more_of_them_contain_fewer() {
        let drawn = |count, draw| links(FailingPart::Random(count), draw).unwrap();
        let mut seen = BTreeSet::new();
        for seed in 0..20 {
            let three = drawn(3, (seed, 0));
            assert!(three.iter().all(|link| (4..9).contains(link)), "{three:?}");
            assert_eq!(three.iter().collect::<BTreeSet<_>>().len(), 3);
            assert_eq!(drawn(2, (seed, 0)), three[..2]);
            seen.insert(three);
        }
        assert!(seen.len() > 10, "{seen:?}");
        assert_ne!((0..9).map(|n| drawn(3, (1, n))).collect::<BTreeSet<_>>().len(), 1);
        assert_eq!(links(FailingPart::Random(6), (1, 0)), Err("the network has 5 links between switches".into()));
    }
}
