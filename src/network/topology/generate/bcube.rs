//! BCube: servers that forward for each other, joined by one switch in each digit of their number.
//!
//! Layer: topology. Guo et al., "BCube: A High Performance, Server-centric Network Architecture for Modular Data Centers", SIGCOMM 2009. A server forwards
//! through a switch of its own, which stands inside the server and has no price.

use super::builder::FabricBuilder;
use super::fabric::{Fabric, bad};
use crate::topology::{Network, TopologyError};

/// Parameters of a BCube. Servers are numbered in `levels` digits of base `ports`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BCube {
    /// Ports of a switch. 0: the least that holds the servers.
    pub ports: u32,
    /// Levels of switches. A server's NICs are divided among them.
    pub levels: u32,
}

impl BCube {
    /// Builds the network. A switch joins the servers that differ in one digit; a switch of a single server is left out.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let (servers, nics, levels) = (fabric.n_servers(), fabric.nics_per_server, self.levels);
        if !(1..=4).contains(&levels) {
            return Err(bad("topology.tiers", levels, "a BCube has 1 to 4 levels of switches"));
        }
        if nics > 1 && !nics.is_multiple_of(levels) {
            let problem = format!("they must divide among the {levels} levels of switches (topology.tiers)");
            return Err(bad("cluster.nics_per_server", nics, problem));
        }
        let holds = |ports: u32| u64::from(ports).saturating_pow(levels);
        let fits = (2..=servers.max(2)).find(|&ports| holds(ports) >= u64::from(servers)).unwrap_or(servers.max(2));
        let ports = if self.ports == 0 { fits } else { self.ports };
        if ports < 2 || holds(ports) < u64::from(servers) {
            let problem =
                format!("{levels} levels of it hold {} servers, {servers} are needed; {fits} would do", holds(ports));
            return Err(bad("topology.k", ports, problem));
        }
        // All servers of one switch have the same number once the digit of its level is left out.
        let mut switches: Vec<(u32, Vec<u32>)> = Vec::new();
        for level in 0..levels {
            let digit = u64::from(ports).saturating_pow(level);
            let mut of_level = std::collections::BTreeMap::<u64, Vec<u32>>::new();
            for server in 0..servers {
                let number = u64::from(server);
                let others = number - number / digit % u64::from(ports) * digit;
                of_level.entry(others).or_default().push(server);
            }
            switches.extend(of_level.into_values().filter(|joined| joined.len() > 1).map(|joined| (level, joined)));
        }
        let cables = (nics / levels).max(1);
        let n_cables: u64 = switches.iter().map(|(_, joined)| joined.len() as u64 * u64::from(cables)).sum();
        let n_switches = u64::from(servers) + switches.len() as u64;
        let mut b = FabricBuilder::new(fabric, n_switches, fabric.n_host_links() + n_cables)?;
        let hosts = fabric.n_hosts();
        for host in 0..hosts {
            b.host_link(host, hosts + host / nics);
        }
        let mut names: Vec<String> = (0..servers).map(|server| format!("server{server}")).collect();
        let mut of_level = vec![0u32; levels as usize];
        for (i, (level, joined)) in (0u32..).zip(&switches) {
            for &server in joined {
                for _ in 0..cables {
                    b.uplink(hosts + server, hosts + servers + i);
                }
            }
            let position = &mut of_level[*level as usize];
            names.push(format!("level{level}.switch{position}"));
            *position += 1;
        }
        for server in 0..servers {
            b.put_in_server(hosts + server, server);
        }
        b.build_named(names)
    }
}
