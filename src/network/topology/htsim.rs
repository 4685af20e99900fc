//! Reads topology files in htsim's form (`.topo`): fat-trees of two or three tiers, given by their parameters.
//!
//! Layer: topology. A file has `Nodes`, `Tiers`, `Podsize`, then one block per tier: `Downlink_speed_Gbps`, `Downlink_Latency_ns`, `Switch_Latency_ns`,
//! `Radix_Down`, `Radix_Up`, `Oversubscribed`, `Bundle`. Numbers of switches follow from these as in htsim's `FatTreeTopology`: uplinks of a tier from hosts,
//! speeds and oversubscription; switches above from their radix. Nodes are in the order hosts, ToR, aggregation, core switches; links go tier by tier, from
//! below. A link has one delay, so a switch's two links on a path each include half of its latency, as in generated topologies.

use super::network::{Link, Network, Node, NodeIdx, NodeKind};
use super::ns3::TopologyFile;
use super::text::{FileError, Line, Lines, shown};
use super::validate::{MAX_LINKS, MAX_NODES, TopologyError};
use hyperfold_base::units::{BPS_PER_GBPS, PS_PER_NS};

/// The highest rate of a link in Gb/s that is read and written.
pub(super) const MAX_GBPS: u64 = 8_000;

/// The block of one tier. Latencies are in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    line: usize,
    speed_gbps: Option<u64>,
    latency_ns: Option<u64>,
    switch_latency_ns: Option<u64>,
    radix_down: Option<u64>,
    radix_up: Option<u64>,
    oversubscribed: Option<u64>,
    bundle: Option<u64>,
}

impl Tier {
    fn speed(&self) -> u64 {
        self.speed_gbps.unwrap_or(0)
    }

    fn radix_down(&self) -> u64 {
        self.radix_down.unwrap_or(0)
    }

    fn oversubscribed(&self) -> u64 {
        self.oversubscribed.unwrap_or(1)
    }

    /// Number of parallel links to each switch (or host) below.
    fn bundle(&self) -> u64 {
        self.bundle.unwrap_or(1)
    }
}

/// The parameters of a file.
struct Description<'a> {
    path: &'a str,
    nodes: u64,
    podsize: u64,
    tiers: Vec<Tier>,
}

/// Numbers of switches, derived from a description.
struct Counts {
    tors_per_pod: u64,
    aggs_per_pod: u64,
    pods: u64,
    cores: u64,
    /// Number of core switches that an aggregation switch is linked to.
    cores_per_agg: u64,
}

/// Parses htsim's form; `path` is for messages.
pub fn parse_htsim(path: &str, text: &str) -> Result<TopologyFile, TopologyError> {
    let d = describe(path, text)?;
    let c = d.counts()?;
    let network = d.build(&c)?;
    Ok(TopologyFile { network, gpus_per_server: None, gpu: None, left_out: 0, notes: Vec::new() })
}

fn describe<'a>(path: &'a str, text: &'a str) -> Result<Description<'a>, FileError> {
    let mut lines = Lines::new(path, text);
    let (mut nodes, mut n_tiers, mut podsize) = (None, None, None);
    let mut tiers = [None; 3];
    let mut current: Option<usize> = None;
    let mut last = 1;
    while let Some(line) = lines.next_line() {
        last = line.number;
        let [key, value] = line.exactly("key value")?;
        let key = key.to_ascii_lowercase();
        if key == "tier" {
            let tier = line.number("tier", value, 0usize, 2)?;
            if tiers[tier].replace(Tier { line: line.number, ..Tier::default() }).is_some() {
                return Err(line.error(format!("tier {tier} is described twice")));
            }
            current = Some(tier);
        } else if let Some(tier) = current {
            set_tier(&line, tier, tiers[tier].get_or_insert_default(), &key, value)?;
        } else {
            match key.as_str() {
                "nodes" => set(&line, &mut nodes, "Nodes", value, 1, u64::from(MAX_NODES))?,
                "tiers" => set(&line, &mut n_tiers, "Tiers", value, 2, 3)?,
                "podsize" => set(&line, &mut podsize, "Podsize", value, 1, u64::from(MAX_NODES))?,
                _ => return Err(line.error(format!("`{}` is none of Nodes, Tiers, Podsize, Tier", shown(line.text)))),
            }
        }
    }
    let missing = |keyword: &str| FileError::Line {
        path: path.to_string(),
        line: last,
        problem: format!("there is no line `{keyword}`"),
    };
    let n_tiers = n_tiers.ok_or_else(|| missing("Tiers N"))? as usize;
    if let Some(extra) = tiers.iter().skip(n_tiers).flatten().next() {
        return Err(FileError::Line {
            path: path.to_string(),
            line: extra.line,
            problem: format!("the header says Tiers {n_tiers}; tiers are numbered from 0"),
        });
    }
    let described = tiers
        .into_iter()
        .take(n_tiers)
        .enumerate()
        .map(|(i, t)| t.ok_or_else(|| missing(&format!("Tier {i}"))))
        .collect::<Result<_, _>>()?;
    Ok(Description {
        path,
        nodes: nodes.ok_or_else(|| missing("Nodes N"))?,
        podsize: podsize.ok_or_else(|| missing("Podsize N"))?,
        tiers: described,
    })
}

fn set(line: &Line, slot: &mut Option<u64>, key: &str, value: &str, min: u64, max: u64) -> Result<(), FileError> {
    match slot.replace(line.number(key, value, min, max)?) {
        None => Ok(()),
        Some(_) => Err(line.error(format!("{key} is given twice"))),
    }
}

fn set_tier(line: &Line, tier: usize, t: &mut Tier, key: &str, value: &str) -> Result<(), FileError> {
    match key {
        "downlink_speed_gbps" => set(line, &mut t.speed_gbps, "Downlink_speed_Gbps", value, 1, MAX_GBPS),
        "downlink_latency_ns" => set(line, &mut t.latency_ns, "Downlink_Latency_ns", value, 1, 1_000_000_000),
        "switch_latency_ns" => set(line, &mut t.switch_latency_ns, "Switch_Latency_ns", value, 0, 1_000_000_000),
        "radix_down" => set(line, &mut t.radix_down, "Radix_Down", value, 1, u64::from(MAX_NODES)),
        "radix_up" => set(line, &mut t.radix_up, "Radix_Up", value, 1, u64::from(MAX_NODES)),
        "oversubscribed" => set(line, &mut t.oversubscribed, "Oversubscribed", value, 1, u64::from(MAX_NODES)),
        "bundle" if tier == 0 && value != "1" => Err(line.error("hosts with several links (Bundle in tier 0) are not in this form; write 1")),
        "bundle" => set(line, &mut t.bundle, "Bundle", value, 1, u64::from(MAX_NODES)),
        _ => Err(line.error(format!(
            "`{}` is none of Downlink_speed_Gbps, Downlink_Latency_ns, Switch_Latency_ns, Radix_Down, Radix_Up, Oversubscribed, Bundle, Tier",
            shown(line.text)
        ))),
    }
}

impl Description<'_> {
    fn error(&self, tier: usize, problem: String) -> TopologyError {
        FileError::Line {
            path: self.path.to_string(),
            line: self.tiers[tier].line,
            problem: format!("tier {tier}: {problem}"),
        }
        .into()
    }

    /// `a / b`, or an error if the division has a remainder.
    fn divide(&self, tier: usize, quantity: &str, a: u64, b: u64) -> Result<u64, TopologyError> {
        if b > 0 && a.is_multiple_of(b) && a > 0 {
            return Ok(a / b);
        }
        Err(self.error(tier, format!("{quantity}: {a} is not a multiple of {b}")))
    }

    fn counts(&self) -> Result<Counts, TopologyError> {
        let top = self.tiers.len() - 1;
        for (i, t) in self.tiers.iter().enumerate() {
            let required = [
                ("Downlink_speed_Gbps", t.speed_gbps),
                ("Downlink_Latency_ns", t.latency_ns),
                ("Radix_Down", t.radix_down),
            ];
            if let Some((key, _)) = required.iter().find(|(_, v)| v.is_none()) {
                return Err(self.error(i, format!("{key} is missing")));
            }
            if i < top && t.radix_up.is_none() {
                return Err(self.error(i, "Radix_Up is missing".to_string()));
            }
            if i == top && (t.radix_up.is_some() || t.oversubscribed.is_some_and(|o| o > 1)) {
                return Err(
                    self.error(i, "the top tier has no uplinks; leave Radix_Up and Oversubscribed out".to_string())
                );
            }
        }
        let t = &self.tiers;
        let pods = self.divide(0, "Nodes over Podsize", self.nodes, self.podsize)?;
        let tors_per_pod = self.divide(0, "Podsize over Radix_Down", self.podsize, t[0].radix_down())?;
        // There are at most 2^20 nodes at 8,000 Gb/s, so no product comes near 64 bits.
        let tor_uplinks = self.divide(
            0,
            "host bandwidth over uplink speed and oversubscription",
            self.nodes * t[0].speed(),
            t[1].speed() * t[0].oversubscribed(),
        )?;
        let n_tors = tors_per_pod * pods;
        // Two tiers have no pods above the ToRs: every spine reaches all ToRs.
        let (above_pods, tors_below) = if top == 1 { (1, n_tors) } else { (pods, tors_per_pod) };
        let aggs_per_pod = self.divide(
            1,
            "uplinks of all ToRs over pods and Radix_Down",
            tor_uplinks,
            above_pods * t[1].radix_down(),
        )?;
        self.same(0, "Radix_Up", t[0].radix_up, aggs_per_pod * t[1].bundle())?;
        self.same(1, "Radix_Down", t[1].radix_down, tors_below * t[1].bundle())?;
        if top == 1 {
            return Ok(Counts { tors_per_pod, aggs_per_pod, pods, cores: 0, cores_per_agg: 0 });
        }
        let agg_uplinks = self.divide(
            1,
            "bandwidth of all ToR uplinks over uplink speed and oversubscription",
            tor_uplinks * t[1].speed(),
            t[2].speed() * t[1].oversubscribed(),
        )?;
        let cores =
            self.divide(2, "uplinks of all aggregation switches over Radix_Down", agg_uplinks, t[2].radix_down())?;
        let n_aggs = aggs_per_pod * pods;
        self.same(
            1,
            "Radix_Up",
            t[1].radix_up,
            self.divide(1, "uplinks over aggregation switches", agg_uplinks, n_aggs)?,
        )?;
        let cores_per_agg =
            self.divide(1, "Radix_Up over the Bundle of tier 2", agg_uplinks / n_aggs, t[2].bundle())?;
        if cores_per_agg * aggs_per_pod != cores {
            let problem = format!(
                "{cores} core switches do not serve {aggs_per_pod} aggregation switches a pod with {cores_per_agg} core switches each"
            );
            return Err(self.error(2, problem));
        }
        self.same(2, "Radix_Down", t[2].radix_down, pods * t[2].bundle())?;
        Ok(Counts { tors_per_pod, aggs_per_pod, pods, cores, cores_per_agg })
    }

    /// Checks that a given value equals the derived one.
    fn same(&self, tier: usize, key: &str, said: Option<u64>, derived: u64) -> Result<(), TopologyError> {
        match said {
            Some(said) if said != derived => Err(self
                .error(tier, format!("{key} is {said}, but speeds, radices and oversubscription make it {derived}"))),
            _ => Ok(()),
        }
    }

    fn build(&self, c: &Counts) -> Result<Network, TopologyError> {
        let (hosts, tors, aggs) = (self.nodes, c.tors_per_pod * c.pods, self.aggs(c));
        let n = hosts + tors + aggs + c.cores;
        let n_links = hosts
            + tors * c.aggs_per_pod * self.tiers[1].bundle()
            + aggs * c.cores_per_agg * self.tiers.get(2).map_or(1, Tier::bundle);
        if n > u64::from(MAX_NODES) {
            return Err(TopologyError::TooManyNodes { n });
        }
        if n_links > u64::from(MAX_LINKS) {
            return Err(TopologyError::TooManyLinks { n: n_links });
        }
        let node = |i: u64| {
            let (kind, server) = if i < hosts { (NodeKind::Host, i as u32) } else { (NodeKind::Switch, u32::MAX) };
            Node { kind, id: i as u32, server }
        };
        let mut links = Vec::with_capacity(n_links as usize);
        let (tor_0, agg_0, core_0) = (hosts, hosts + tors, hosts + tors + aggs);
        for host in 0..hosts {
            self.link(&mut links, 0, host, tor_0 + host / self.tiers[0].radix_down());
        }
        for tor in 0..tors {
            let pod = if self.tiers.len() == 2 { 0 } else { tor / c.tors_per_pod };
            for agg in 0..c.aggs_per_pod {
                self.link(&mut links, 1, tor_0 + tor, agg_0 + pod * c.aggs_per_pod + agg);
            }
        }
        for agg in 0..aggs {
            for l in 0..c.cores_per_agg {
                self.link(&mut links, 2, agg_0 + agg, core_0 + agg % c.aggs_per_pod + c.aggs_per_pod * l);
            }
        }
        let network = Network::new((0..n).map(node).collect(), links, (0..hosts as NodeIdx).collect(), None)?;
        network.check_connected()?;
        Ok(network)
    }

    fn aggs(&self, c: &Counts) -> u64 {
        if self.tiers.len() == 2 { c.aggs_per_pod } else { c.aggs_per_pod * c.pods }
    }

    /// Adds the links of a bundle from `lower` up to a switch of `tier`.
    fn link(&self, links: &mut Vec<Link>, tier: usize, lower: u64, upper: u64) {
        let t = &self.tiers[tier];
        let latency = |t: &Tier| t.switch_latency_ns.unwrap_or(0) * PS_PER_NS;
        // A host has no switch latency; a lower switch has that of the tier below.
        let switches = latency(t) + if tier > 0 { latency(&self.tiers[tier - 1]) } else { 0 };
        let delay_ps = t.latency_ns.unwrap_or(0) * PS_PER_NS + switches.div_ceil(2);
        for _ in 0..t.bundle() {
            links.push(Link { a: lower as NodeIdx, b: upper as NodeIdx, rate_bps: t.speed() * BPS_PER_GBPS, delay_ps });
        }
    }
}
