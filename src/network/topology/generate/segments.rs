//! Segments of servers under one tier of spines, or under pods that cores join, with one leaf for each port of a NIC: HPN, DCN+ and Spectrum-X.
//!
//! Layer: topology. HPN: Qian et al., "Alibaba HPN: A Data Center Network for Large Language Model Training", SIGCOMM 2024. A pod of it has 15 segments of
//! 1,024 GPUs. With three tiers, cores join the pods, with a fifteenth of the rate that aggregation switches have downward. DCN+ is the network that it
//! replaced. Planes of HPN stay apart in the third tier too, so they meet at the NICs only (our choice).

use super::builder::FabricBuilder;
use super::fabric::{Fabric, OversubscriptionMilli, bad, equal_pods};
use crate::topology::{Network, TopologyError};

/// Parameters of a fabric of segments. Every port of a NIC is on a leaf of its own: two ports are a dual ToR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Servers of a segment, at least 1. The last segment may have fewer.
    pub servers_per_segment: u32,
    /// Whether each NIC of a server has leaves of its own rail. Else the NICs of a segment share its leaves.
    pub by_rail: bool,
    /// 1: every leaf is linked to every spine. Else the number of ports of a NIC: leaves of port `p` are linked to spines of plane `p` alone.
    pub planes: u32,
    /// Spines of one plane, or aggregation switches of one plane of a pod, each linked once to every leaf below. 0: derived from the oversubscription.
    pub spines: u32,
    /// Host capacity over uplink capacity at a leaf, in thousandths, where `spines` is 0.
    pub oversubscription: OversubscriptionMilli,
    /// Pods of segments under a third tier. `None`: there are two tiers, and all segments are under the same spines.
    pub pods: Option<SegmentPods>,
}

/// Pods of segments, and the third tier that joins them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentPods {
    /// Number of pods. 0: as many as `segments_per_pod` asks for, at least 2.
    pub pods: u32,
    /// The most segments of a pod, where `pods` is 0. Pods are made equal, but for the last one.
    pub segments_per_pod: u32,
    /// Cores of one plane, a multiple of its aggregation switches in a pod. 0: derived from the oversubscription.
    pub cores: u32,
    /// Capacity of an aggregation switch downward over that to cores, in thousandths, where `cores` is 0.
    pub oversubscription: OversubscriptionMilli,
}

/// Counts of a fabric of segments. Without pods of their own, all segments are in one pod, and there are no cores.
struct Counts {
    servers_per_segment: u32,
    segments: u32,
    /// Rails of a segment, or 1 where its NICs share leaves.
    rails: u32,
    /// Leaves of a group, one for each port of a NIC.
    ports: u32,
    segments_per_pod: u32,
    pods: u32,
    /// Switches above the leaves, of one plane of one pod.
    spines: u32,
    /// Cores that each aggregation switch is linked to.
    cores_of_agg: u32,
}

impl Segments {
    /// Builds the network.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let c = self.counts(fabric)?;
        let (ports, nics) = (c.ports, fabric.nics_per_server);
        let groups = u64::from(c.segments) * u64::from(c.rails);
        let leaves = groups * u64::from(ports);
        let spines_of_pod = u64::from(self.planes) * u64::from(c.spines);
        let n_spines = u64::from(c.pods) * spines_of_pod;
        let n_cores = spines_of_pod * u64::from(c.cores_of_agg);
        let core_links = n_spines.saturating_mul(u64::from(c.cores_of_agg));
        let n_links = (fabric.n_host_links() + leaves * u64::from(c.spines)).saturating_add(core_links);
        let mut b = FabricBuilder::new(fabric, (leaves + n_spines).saturating_add(n_cores), n_links)?;
        let hosts = fabric.n_hosts();
        let (leaf_0, spine_0) = (hosts, hosts + leaves as u32);
        let core_0 = spine_0 + n_spines as u32;
        for h in 0..hosts {
            let (server, nic) = (h / nics, h % nics);
            let group = server / c.servers_per_segment * c.rails + if self.by_rail { nic } else { 0 };
            for port in 0..ports {
                b.port_link(h, leaf_0 + group * ports + port);
            }
        }
        // Spine (pod, plane, s): s counts fastest.
        for leaf in 0..leaves as u32 {
            let plane = if self.planes == 1 { 0 } else { leaf % ports };
            let pod = leaf / ports / c.rails / c.segments_per_pod;
            for s in 0..c.spines {
                b.uplink(leaf_0 + leaf, spine_0 + (pod * self.planes + plane) * c.spines + s);
            }
        }
        // Aggregation switches of the same place in each pod share their cores: core (plane, s, i), and i counts fastest.
        for agg in 0..n_spines as u32 {
            for i in 0..c.cores_of_agg {
                b.core_link(spine_0 + agg, core_0 + agg % spines_of_pod as u32 * c.cores_of_agg + i);
            }
        }
        b.build_named(self.names(&c))
    }

    fn counts(&self, fabric: &Fabric) -> Result<Counts, TopologyError> {
        let (ports, nics) = (fabric.nic_ports, fabric.nics_per_server);
        if self.planes != 1 && self.planes != ports {
            let problem = format!("it must be 1, or the ports of a NIC: cluster.nic_ports = {ports}");
            return Err(bad("topology.planes", self.planes, problem));
        }
        if self.servers_per_segment == 0 {
            return Err(bad("topology.servers_per_pod", 0, "it must be at least 1"));
        }
        let per_segment = self.servers_per_segment.min(fabric.n_servers());
        let segments = fabric.n_servers().div_ceil(per_segment);
        let (rails, hosts_per_leaf) = if self.by_rail { (nics, per_segment) } else { (1, per_segment * nics) };
        let spines = || fabric.uplinks(hosts_per_leaf, ports, self.spines, self.oversubscription);
        let one_pod = Counts {
            servers_per_segment: per_segment,
            segments,
            rails,
            ports,
            segments_per_pod: segments,
            pods: 1,
            spines: 0,
            cores_of_agg: 0,
        };
        let Some(of_pods) = self.pods else {
            return Ok(match (segments * rails, self.spines) {
                // All NICs are on the same leaves.
                (1, 0) => one_pod,
                _ => Counts { spines: spines()?, ..one_pod },
            });
        };
        let (pods, segments_per_pod) = of_pods.divide(segments, per_segment)?;
        let spines = spines()?;
        // Leaves below an aggregation switch of a whole pod: those of its plane.
        let leaves = segments_per_pod * rails * if self.planes == 1 { ports } else { 1 };
        let cores_of_agg = of_pods.cores_of_agg(fabric, leaves, spines)?;
        Ok(Counts { segments_per_pod, pods, spines, cores_of_agg, ..one_pod })
    }

    /// Names of the leaves, then of the spines or aggregation switches, then of the cores.
    fn names(&self, c: &Counts) -> Vec<String> {
        let three_tiers = self.pods.is_some();
        let pod = |p: u32| if three_tiers { format!("pod{p}.") } else { String::new() };
        let rail = |r: u32| if self.by_rail { format!(".rail{r}") } else { String::new() };
        let tor = |t: u32| if c.ports > 1 || !self.by_rail { format!(".tor{t}") } else { String::new() };
        let plane = |p: u32| if self.planes > 1 { format!("plane{p}.") } else { String::new() };
        let segment = |s: u32| format!("{}segment{}", pod(s / c.segments_per_pod), s % c.segments_per_pod);
        let groups = (0..c.segments).flat_map(|s| (0..c.rails).map(move |r| (s, r)));
        let leaves = groups.flat_map(|(s, r)| (0..c.ports).map(move |t| (s, r, t)));
        let planes = (0..c.pods).flat_map(|p| (0..self.planes).map(move |plane| (p, plane)));
        let spines = planes.flat_map(|(p, plane)| (0..c.spines).map(move |s| (p, plane, s)));
        let word = if three_tiers { "agg" } else { "spine" };
        let cores = (0..self.planes).flat_map(|p| (0..c.spines * c.cores_of_agg).map(move |i| (p, i)));
        leaves
            .map(|(s, r, t)| format!("{}{}{}", segment(s), rail(r), tor(t)))
            .chain(spines.map(|(p, of_plane, s)| format!("{}{}{word}{s}", pod(p), plane(of_plane))))
            .chain(cores.map(|(p, i)| format!("{}core{i}", plane(p))))
            .collect()
    }
}

impl SegmentPods {
    /// Number of pods, and of segments in each but the last.
    fn divide(&self, segments: u32, servers_per_segment: u32) -> Result<(u32, u32), TopologyError> {
        if segments == 1 {
            let problem = format!(
                "a third tier joins pods of segments, and one segment of {servers_per_segment} servers (topology.servers_per_pod) holds all; set it to 2"
            );
            return Err(bad("topology.tiers", 3, problem));
        }
        match self.pods {
            0 => {
                let at_most = segments.div_ceil(self.segments_per_pod.max(1)).max(2);
                let per_pod = segments.div_ceil(at_most);
                Ok((segments.div_ceil(per_pod), per_pod))
            }
            1 => Err(bad("topology.pods", 1, "a third tier joins at least 2 pods; set topology.tiers = 2")),
            pods => equal_pods(pods, segments, &format!("segments of {servers_per_segment} servers")),
        }
    }

    /// Cores above each aggregation switch that has one link to each of `leaves`, where a pod has `aggs` such switches in a plane.
    fn cores_of_agg(&self, fabric: &Fabric, leaves: u32, aggs: u32) -> Result<u32, TopologyError> {
        match self.cores {
            0 => {
                let down = u128::from(leaves) * u128::from(fabric.uplink_bps) * 1000;
                let up = u128::from(fabric.core_bps) * u128::from(self.oversubscription.max(1));
                Ok(u32::try_from(down.div_ceil(up)).unwrap_or(u32::MAX))
            }
            cores if !cores.is_multiple_of(aggs) => {
                let problem = format!("it must be a multiple of the {aggs} aggregation switches of a pod");
                Err(bad("topology.cores", cores, problem))
            }
            cores => Ok(cores / aggs),
        }
    }
}
