//! Parameters that every generated fabric needs.
//!
//! Layer: topology.

use crate::topology::network::NvLink;
use crate::topology::validate::{MAX_NODES, TopologyError, check_delay, check_rate};

/// Parameters that every generated fabric needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// Number of GPU ranks. Servers are filled: it is a multiple of `gpus_per_server`.
    pub gpus: u32,
    /// Number of GPUs in a server.
    pub gpus_per_server: u32,
    /// NICs of a server, each a host node. If there are fewer than GPUs, neighbouring ranks share one.
    pub nics_per_server: u32,
    /// Number of links of a NIC to its leaf.
    pub nic_ports: u32,
    /// Rate of a NIC in bps, all its links together.
    pub link_bps: u64,
    /// Rate of links between switches in bps.
    pub uplink_bps: u64,
    /// Rate of links to the third tier in bps.
    pub core_bps: u64,
    /// Rate of links between groups of a dragonfly in bps.
    pub global_bps: u64,
    /// One-way propagation delay of links of hosts in ps.
    pub link_delay_ps: u64,
    /// One-way propagation delay of links between switches in ps, but for those below.
    pub uplink_delay_ps: u64,
    /// One-way propagation delay of links to the third tier in ps.
    pub core_delay_ps: u64,
    /// One-way propagation delay of links between groups of a dragonfly in ps.
    pub global_delay_ps: u64,
    /// Latency of a switch in ps. A link has one delay, so a switch's two links on a path each include half of its latency: a link between switches includes
    /// the full latency, a link to a host half of it. A path over n switches takes n times this longer.
    pub switch_latency_ps: u64,
    /// Path between the GPUs of a server. `None`: they have none.
    pub nvlink: Option<NvLink>,
}

/// Oversubscription in thousandths: 1000 is 1:1, 3000 is 3:1 (three times more host than uplink capacity at a leaf).
pub type OversubscriptionMilli = u32;

/// The error that a parameter has a wrong value.
pub(super) fn bad(key: &'static str, value: impl ToString, problem: impl Into<String>) -> TopologyError {
    TopologyError::Parameter { key, value: value.to_string(), problem: problem.into() }
}

/// Number of pods, and of parts in each but the last, when `parts` things called `name` (`leaves`) are divided into `pods` of them.
///
/// # Errors
/// More pods are asked for than there are parts, or a number that equal pods never make: the message has the next numbers that they do.
pub(super) fn equal_pods(pods: u32, parts: u32, name: &str) -> Result<(u32, u32), TopologyError> {
    let key = "topology.pods";
    if pods > parts {
        return Err(bad(key, pods, format!("there are {parts} {name}, fewer than pods")));
    }
    let per_pod = parts.div_ceil(pods);
    let fewer = parts.div_ceil(per_pod);
    if fewer != pods {
        // The last pod may be smaller, and never empty. With one part less in each, there are more pods than were asked for.
        let smaller = per_pod - 1;
        let more = parts.div_ceil(smaller);
        let problem = format!(
            "{parts} {name} make {fewer} pods of {per_pod} or {more} of {smaller} each, the last with what is left; write {fewer} or {more}"
        );
        return Err(bad(key, pods, problem));
    }
    Ok((pods, per_pod))
}

#[cfg(test)]
impl Fabric {
    /// A fabric for tests: servers of `per_server` GPUs with a NIC each, all links at 400 Gb/s with 1 ns.
    pub(crate) fn uniform(gpus: u32, per_server: u32, nic_ports: u32) -> Fabric {
        Fabric {
            gpus,
            gpus_per_server: per_server,
            nics_per_server: per_server,
            nic_ports,
            link_bps: 400_000_000_000,
            uplink_bps: 400_000_000_000,
            core_bps: 400_000_000_000,
            global_bps: 400_000_000_000,
            link_delay_ps: 1000,
            uplink_delay_ps: 1000,
            core_delay_ps: 1000,
            global_delay_ps: 1000,
            switch_latency_ps: 0,
            nvlink: None,
        }
    }
}

impl Fabric {
    /// Checks the parameters that all kinds share.
    pub(super) fn check(&self) -> Result<(), TopologyError> {
        if self.gpus == 0 || self.gpus > MAX_NODES {
            return Err(bad("cluster.gpus", self.gpus, format!("it must be from 1 to {MAX_NODES}")));
        }
        if self.gpus_per_server == 0 {
            return Err(bad("cluster.gpus_per_server", 0, "it must be at least 1"));
        }
        if !self.gpus.is_multiple_of(self.gpus_per_server) {
            let (per, gpus) = (self.gpus_per_server, self.gpus);
            let fix = match gpus / per {
                0 => format!("set cluster.gpus_per_server = {gpus} for one server"),
                n => format!("cluster.gpus = {} or {} would fit", n * per, (n + 1) * per),
            };
            return Err(bad("cluster.gpus", gpus, format!("servers of {per} GPUs are not filled; {fix}")));
        }
        if self.nics_per_server == 0 || self.nics_per_server > self.gpus_per_server {
            let problem = format!("it must be from 1 to gpus_per_server = {}", self.gpus_per_server);
            return Err(bad("cluster.nics_per_server", self.nics_per_server, problem));
        }
        if self.nic_ports == 0 || !self.link_bps.is_multiple_of(u64::from(self.nic_ports) * 1_000_000) {
            let problem = format!("topology.link_gbps, {} bps, must divide by it into whole Mb/s", self.link_bps);
            return Err(bad("cluster.nic_ports", self.nic_ports, problem));
        }
        let rates = [
            ("topology.link_gbps", self.link_bps),
            ("topology.uplink_gbps", self.uplink_bps),
            ("topology.core_gbps", self.core_bps),
            ("topology.global_gbps", self.global_bps),
        ];
        for (key, rate) in rates {
            check_rate(rate).map_err(|e| bad(key, format!("{} bps", rate), e))?;
        }
        let delays = [
            ("topology.link_delay_ns", self.link_delay_ps),
            ("topology.uplink_delay_ns", self.uplink_delay_ps),
            ("topology.core_delay_ns", self.core_delay_ps),
            ("topology.global_delay_ns", self.global_delay_ps),
        ];
        for (key, delay) in delays {
            check_delay(delay).map_err(|e| bad(key, format!("{delay} ps"), e))?;
            check_delay(delay.saturating_add(self.switch_latency_ps))
                .map_err(|e| bad("topology.switch_latency_ns", format!("{} ps", self.switch_latency_ps), e))?;
        }
        Ok(())
    }

    pub(super) fn n_servers(&self) -> u32 {
        self.gpus / self.gpus_per_server
    }

    /// Number of host nodes: one per NIC.
    pub(super) fn n_hosts(&self) -> u32 {
        self.n_servers() * self.nics_per_server
    }

    /// Number of links of all hosts.
    pub(super) fn n_host_links(&self) -> u64 {
        u64::from(self.n_hosts()) * u64::from(self.nic_ports)
    }

    /// Number of uplinks of a leaf with `n_hosts` hosts, each of which divides its rate among `leaves_of_host` leaves. The oversubscription must be in range,
    /// and must agree with the given number of uplinks if both are set; 0 uplinks are derived from it, rounded up.
    pub(super) fn uplinks(
        &self,
        n_hosts: u32,
        leaves_of_host: u32,
        given: u32,
        oversubscription: OversubscriptionMilli,
    ) -> Result<u32, TopologyError> {
        if !(1..=1_000_000).contains(&oversubscription) {
            return Err(bad(
                "topology.oversubscription",
                shown_milli(oversubscription),
                "it must be from 0.001 to 1000",
            ));
        }
        let down = u128::from(n_hosts) * u128::from(self.link_bps / u64::from(leaves_of_host)) * 1000;
        let up = u128::from(self.uplink_bps) * u128::from(oversubscription);
        let derived = u32::try_from(down.div_ceil(up)).unwrap_or(u32::MAX).max(1);
        if given == 0 {
            return Ok(derived);
        }
        if oversubscription != 1000 && derived != given {
            let problem = format!(
                "an oversubscription of {} needs {derived} above leaves of {n_hosts} hosts; leave one of the two out",
                shown_milli(oversubscription)
            );
            return Err(bad("topology.spines", given, problem));
        }
        Ok(given)
    }
}

/// Formats thousandths as a decimal number.
fn shown_milli(milli: OversubscriptionMilli) -> String {
    let text = format!("{}.{:03}", milli / 1000, milli % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
