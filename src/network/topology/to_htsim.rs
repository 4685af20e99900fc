//! Writes topology files in htsim's form (`.topo`), where that form can describe the network: trees of two or three tiers whose switches of a tier have equal ports.
//!
//! Layer: topology. `htsim` reads the form. A network that is read again has the same hosts and links; its switches are numbered tier by tier, and cores in the
//! order in which htsim deals them out to aggregation switches. The form has no servers and no NVLink, so these are left out.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::htsim::MAX_GBPS;
use super::network::{Network, NodeIdx, NodeKind};
use super::validate::TopologyError;
use hyperfold_base::units::{BPS_PER_GBPS, PS_PER_NS};

/// Rate and delay of all links below the switches of one tier.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Downlinks {
    rate_bps: u64,
    delay_ps: u64,
}

/// Number of parallel links to each neighbour of a switch in one direction.
type Neighbours = BTreeMap<NodeIdx, u64>;

/// A network whose links all lead from one tier to the next.
struct Layers {
    names: Vec<String>,
    hosts: Vec<NodeIdx>,
    /// Links below the switches of each tier, from the lowest tier on.
    downlinks: Vec<Downlinks>,
    /// Neighbours in the tier above, of each node.
    above: Vec<Neighbours>,
    /// Number of switches of each tier, from the lowest on.
    n_switches: Vec<u64>,
}

/// What the blocks of the file say besides rates and latencies. Counts of the third tier are 0 where there is none.
struct TreeCounts {
    hosts_of_leaf: u64,
    leaves_of_pod: u64,
    pods: u64,
    /// Switches above each leaf, and links to each.
    aggs: u64,
    agg_bundle: u64,
    /// Cores above each aggregation switch, and links to each.
    cores: u64,
    core_bundle: u64,
}

fn not_writable(what: impl Into<String>) -> TopologyError {
    TopologyError::NotWritable { form: "htsim", what: what.into() }
}

/// The network in htsim's form.
///
/// # Errors
/// The form cannot describe it; the error says why.
pub fn to_htsim(net: &Network) -> Result<String, TopologyError> {
    let layers = Layers::of(net)?;
    let counts = layers.counts()?;
    let latencies = layers.latencies()?;
    let hosts = layers.hosts.len() as u64;
    let three_tiers = layers.downlinks.len() == 3;
    let podsize = if three_tiers { counts.hosts_of_leaf * counts.leaves_of_pod } else { hosts };
    let (leaf_down, agg_down) = (counts.hosts_of_leaf, counts.leaves_of_pod * counts.agg_bundle);
    // Ports downward and upward, and parallel links to each node below.
    let mut tiers = vec![(leaf_down, counts.aggs * counts.agg_bundle, 1)];
    tiers.push((agg_down, counts.cores * counts.core_bundle, counts.agg_bundle));
    if three_tiers {
        tiers.push((counts.pods * counts.core_bundle, 0, counts.core_bundle));
    }
    let mut out = format!("Nodes {hosts}\nTiers {}\nPodsize {podsize}\n", tiers.len());
    for (i, &(down, up, bundle)) in tiers.iter().enumerate() {
        let infallible = "writing to a string cannot fail";
        let gbps = layers.gbps(i)?;
        let (latency_ns, switch_latency_ns) = latencies[i];
        writeln!(out, "\nTier {i}\nDownlink_speed_Gbps {gbps}\nRadix_Down {down}").expect(infallible);
        if i + 1 < tiers.len() {
            let oversubscribed = layers.oversubscription(i, down, up)?;
            writeln!(out, "Radix_Up {up}\nOversubscribed {oversubscribed}").expect(infallible);
        }
        writeln!(out, "Downlink_Latency_ns {latency_ns}\nSwitch_Latency_ns {switch_latency_ns}\nBundle {bundle}")
            .expect(infallible);
    }
    Ok(out)
}

impl Layers {
    fn of(net: &Network) -> Result<Layers, TopologyError> {
        let names = net.names();
        let (tiers, is_host) = (net.tiers(), |v: NodeIdx| net.nodes[v as usize].kind == NodeKind::Host);
        let hosts: Vec<NodeIdx> = (0..net.nodes.len() as NodeIdx).filter(|&v| is_host(v)).collect();
        for (v, node) in (0..).zip(&net.nodes).filter(|(v, _)| !is_host(*v)) {
            let name = &names[v as usize];
            if node.kind != NodeKind::Switch || node.server != u32::MAX {
                return Err(not_writable(format!("{name}, a part of a server or of another switch,")));
            }
            if tiers[v as usize] == 0 {
                return Err(not_writable(format!("{name}, which no host reaches,")));
            }
        }
        if net.ranks != hosts {
            return Err(not_writable("a NIC that is not that of one GPU, in the order of the ranks,"));
        }
        let top = tiers.iter().copied().max().unwrap_or(0) as usize;
        if !(2..=3).contains(&top) {
            let tiers = if top == 1 { "one tier".to_string() } else { format!("{top} tiers") };
            return Err(not_writable(format!("a network of {tiers} of switches, not of two or three,")));
        }
        let mut of_tier: Vec<Option<Downlinks>> = vec![None; top];
        let mut above = vec![Neighbours::new(); net.nodes.len()];
        for link in &net.links {
            let shown = || format!("the link between {} and {}", names[link.a as usize], names[link.b as usize]);
            let lower_first = tiers[link.a as usize] < tiers[link.b as usize];
            let (low, high) = if lower_first { (link.a, link.b) } else { (link.b, link.a) };
            let tier = tiers[high as usize] as usize;
            if tiers[low as usize] as usize + 1 != tier {
                return Err(not_writable(format!("{}, which does not lead from one tier to the next,", shown())));
            }
            let own = Downlinks { rate_bps: link.rate_bps, delay_ps: link.delay_ps };
            if *of_tier[tier - 1].get_or_insert(own) != own {
                let why = "whose rate or delay is not that of the others of its tier,";
                return Err(not_writable(format!("{}, {why}", shown())));
            }
            *above[low as usize].entry(high).or_default() += 1;
        }
        let count = |tier: usize| tiers.iter().filter(|&&t| t as usize == tier).count() as u64;
        Ok(Layers {
            names,
            hosts,
            downlinks: of_tier.into_iter().flatten().collect(),
            above,
            n_switches: (1..=top).map(count).collect(),
        })
    }

    fn counts(&self) -> Result<TreeCounts, TopologyError> {
        let leaves = self.leaves()?;
        let hosts_of_leaf = (self.hosts.len() / leaves.len()) as u64;
        let (aggs, agg_bundle) = self.equal_uplinks(&leaves)?;
        let above = |v: NodeIdx| &self.above[v as usize];
        let n_leaves = leaves.len() as u64;
        if self.downlinks.len() == 2 {
            if aggs != self.n_switches[1] {
                return Err(not_writable("a leaf that is not linked to every spine"));
            }
            let counts = TreeCounts {
                hosts_of_leaf,
                leaves_of_pod: n_leaves,
                pods: 1,
                aggs,
                agg_bundle,
                cores: 0,
                core_bundle: 0,
            };
            return Ok(counts);
        }
        let same_aggs = |a: &NodeIdx, b: &NodeIdx| above(*a).keys().eq(above(*b).keys());
        let pods: Vec<&[NodeIdx]> = leaves.chunk_by(same_aggs).collect();
        // Pods have aggregation switches of their own if all of them together are as many as there are.
        let unequal = pods.iter().any(|pod| pod.len() != pods[0].len());
        if unequal || pods.len() as u64 * aggs != self.n_switches[1] {
            return Err(not_writable(
                "leaves that do not form equal pods, each with aggregation switches of its own, in order,",
            ));
        }
        let of_pod = |pod: &[NodeIdx]| above(pod[0]).keys().copied().collect::<Vec<NodeIdx>>();
        let all_aggs: Vec<NodeIdx> = pods.iter().flat_map(|pod| of_pod(pod)).collect();
        let (cores, core_bundle) = self.equal_uplinks(&all_aggs)?;
        // Each aggregation switch shares its cores with one of each other pod, and with none of its own.
        let mut groups: Vec<Vec<&Neighbours>> = Vec::new();
        for pod in &pods {
            let mut group: Vec<&Neighbours> = of_pod(pod).into_iter().map(above).collect();
            group.sort_unstable();
            groups.push(group);
        }
        let differ = groups.iter().any(|group| *group != groups[0]);
        if differ || aggs * cores != self.n_switches[2] {
            return Err(not_writable(
                "a third tier in which an aggregation switch does not share its cores with just one of each other pod",
            ));
        }
        let leaves_of_pod = pods[0].len() as u64;
        Ok(TreeCounts { hosts_of_leaf, leaves_of_pod, pods: pods.len() as u64, aggs, agg_bundle, cores, core_bundle })
    }

    /// The leaves, each with an equal number of hosts, in the order of their hosts.
    fn leaves(&self) -> Result<Vec<NodeIdx>, TopologyError> {
        let mut leaf_of = Vec::with_capacity(self.hosts.len());
        for &host in &self.hosts {
            match self.above[host as usize].iter().collect::<Vec<_>>()[..] {
                [(&leaf, 1)] => leaf_of.push(leaf),
                _ => return Err(not_writable(format!("{} with several links", self.names[host as usize]))),
            }
        }
        let groups: Vec<&[NodeIdx]> = leaf_of.chunk_by(|a, b| a == b).collect();
        if groups.len() as u64 != self.n_switches[0] {
            return Err(not_writable("a leaf whose hosts do not follow each other, as those of rails do not,"));
        }
        if let Some(other) = groups.iter().find(|group| group.len() != groups[0].len()) {
            let [first, other] = [groups[0], other].map(|group| (&self.names[group[0] as usize], group.len()));
            let what = format!("{} with {} hosts beside {} with {}", other.0, other.1, first.0, first.1);
            return Err(not_writable(what));
        }
        Ok(groups.into_iter().map(|group| group[0]).collect())
    }

    /// Neighbours above each of these switches, and links to each, which must be the same numbers for all.
    fn equal_uplinks(&self, switches: &[NodeIdx]) -> Result<(u64, u64), TopologyError> {
        let shape = |v: NodeIdx| {
            let above = &self.above[v as usize];
            let first = above.values().next().copied().unwrap_or(0);
            above.values().all(|&n| n == first).then_some((above.len() as u64, first))
        };
        let first = shape(switches[0]);
        match (first, switches.iter().find(|&&v| shape(v).is_none() || shape(v) != first)) {
            (Some(shape), None) if shape.0 > 0 => Ok(shape),
            (_, other) => {
                let name = &self.names[*other.unwrap_or(&switches[0]) as usize];
                Err(not_writable(format!("{name}, whose links upward are not those of the others of its tier,")))
            }
        }
    }

    /// Rate of the links below the switches of a tier.
    fn gbps(&self, tier: usize) -> Result<u64, TopologyError> {
        let bps = self.downlinks[tier].rate_bps;
        if bps.is_multiple_of(BPS_PER_GBPS) && bps <= MAX_GBPS * BPS_PER_GBPS {
            return Ok(bps / BPS_PER_GBPS);
        }
        Err(not_writable(format!("a rate of {bps} bps, which is no whole number of Gb/s up to {MAX_GBPS},")))
    }

    /// Rate downward over rate upward of a switch with so many ports in each direction.
    fn oversubscription(&self, tier: usize, down: u64, up: u64) -> Result<u64, TopologyError> {
        let (down_gbps, up_gbps) = (down * self.gbps(tier)?, up * self.gbps(tier + 1)?);
        if down_gbps.is_multiple_of(up_gbps) {
            return Ok(down_gbps / up_gbps);
        }
        let word = if tier == 0 { "a leaf" } else { "an aggregation switch" };
        Err(not_writable(format!(
            "{word} with {down_gbps} Gb/s downward and {up_gbps} Gb/s upward, whose ratio is no whole number,"
        )))
    }

    /// Latency in ns of the links below each tier, and of the switches of that tier. A link's delay has half of the latency of the switch at each of its ends,
    /// so where a delay has half a ns, one of them has a latency of 1 ns.
    fn latencies(&self) -> Result<Vec<(u64, u64)>, TopologyError> {
        let mut latencies = Vec::new();
        let mut below_ns = 0;
        for links in &self.downlinks {
            let half_ns = PS_PER_NS / 2;
            let halves = links.delay_ps / half_ns;
            let own_ns = (halves + below_ns) % 2;
            let link_ns = halves.saturating_sub(own_ns + below_ns) / 2;
            if !links.delay_ps.is_multiple_of(half_ns) || link_ns == 0 {
                let delay_ps = links.delay_ps;
                return Err(not_writable(format!("a delay of {delay_ps} ps, which is no whole number of ns,")));
            }
            latencies.push((link_ns, own_ns));
            below_ns = own_ns;
        }
        Ok(latencies)
    }
}
