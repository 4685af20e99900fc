//! Networks over coordinates: torus, mesh and HyperX, in any number of dimensions.
//!
//! Layer: topology. HyperX (Ahn et al., SC 2009) joins all switches that differ in one coordinate; with one host a switch it is Huawei's UB-Mesh
//! (nD-FullMesh, 2025).

use super::builder::FabricBuilder;
use super::fabric::{Fabric, bad};
use crate::topology::{Network, TopologyError};
use hyperfold_base::units::counted;

/// Which switches of a line along one dimension are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridLinks {
    /// Neighbours, and the last with the first: a torus. Two switches have one link.
    Ring,
    /// Neighbours: a mesh.
    Line,
    /// Each with each: a HyperX.
    All,
}

/// Parameters of a network over coordinates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridFabric {
    /// Links along each dimension.
    pub links: GridLinks,
    /// Switches along each dimension; the first one counts fastest. Empty: the fewest switches for the hosts, as cubic as can be.
    pub dims: Vec<u32>,
    /// Rate of the links along each dimension in bps. Empty: the rate of uplinks.
    pub dim_bps: Vec<u64>,
    /// Hosts of a switch. 0: 1.
    pub hosts_per_switch: u32,
}

/// The most dimensions.
const MAX_DIMS: usize = 8;

impl GridFabric {
    /// Builds the network. Hosts fill the switches in order; switches without hosts only forward.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let hosts = fabric.n_hosts();
        let per_switch = self.hosts_per_switch.max(1);
        let needed = hosts.div_ceil(per_switch);
        let dims = if self.dims.is_empty() { self.smallest(needed) } else { self.dims.clone() };
        let n = self.check(&dims, needed)?;
        let n_links = fabric.n_host_links().saturating_add(self.n_links(&dims, n));
        let mut b = FabricBuilder::new(fabric, n, n_links)?;
        for host in 0..hosts {
            b.host_link(host, hosts + host / per_switch);
        }
        for switch in 0..n as u32 {
            let mut stride = 1;
            for (dim, &size) in dims.iter().enumerate() {
                let own = switch / stride % size;
                let rate = self.dim_bps.get(dim).copied().unwrap_or(fabric.uplink_bps);
                for other in self.later_neighbours(own, size) {
                    let far = switch - own * stride + other * stride;
                    b.switch_link(hosts + switch, hosts + far, rate, fabric.uplink_delay_ps);
                }
                stride *= size;
            }
        }
        b.build_named((0..n as u32).map(|switch| name(switch, &dims)).collect())
    }

    /// Checks the dimensions, and returns the number of switches.
    fn check(&self, dims: &[u32], needed: u32) -> Result<u64, TopologyError> {
        let shown = dims.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
        if dims.len() > MAX_DIMS || dims.contains(&0) {
            return Err(bad("topology.dims", shown, format!("it must be 1 to {MAX_DIMS} numbers of at least 1")));
        }
        let n = dims.iter().fold(1u64, |n, &d| n.saturating_mul(u64::from(d)));
        if n < u64::from(needed) {
            let per = self.hosts_per_switch.max(1);
            let problem = format!("these are {n} switches; the NICs of all servers at {per} a switch need {needed}");
            return Err(bad("topology.dims", shown, problem));
        }
        if !self.dim_bps.is_empty() && self.dim_bps.len() != dims.len() {
            let rates: Vec<String> = self.dim_bps.iter().map(|&bps| (bps as f64 / 1e9).to_string()).collect();
            let problem =
                format!("{} for {} ({shown})", counted(rates.len(), "rate"), counted(dims.len(), "dimension"));
            return Err(bad("topology.dim_gbps", rates.join("x"), problem));
        }
        Ok(n)
    }

    fn n_links(&self, dims: &[u32], n: u64) -> u64 {
        let of_line = |size: u64| match self.links {
            GridLinks::Ring if size > 2 => size,
            GridLinks::Ring | GridLinks::Line => size - 1,
            GridLinks::All => size * (size - 1) / 2,
        };
        dims.iter().map(|&d| (n / u64::from(d)).saturating_mul(of_line(u64::from(d)))).fold(0, u64::saturating_add)
    }

    /// The switches of a line that the one at `own` is joined to, each pair once.
    fn later_neighbours(&self, own: u32, size: u32) -> std::ops::Range<u32> {
        match self.links {
            GridLinks::All => own + 1..size,
            // The last switch of a ring closes it.
            GridLinks::Ring if own + 1 == size && size > 2 => 0..1,
            _ => own + 1..(own + 2).min(size),
        }
    }

    /// The dimensions of the smallest network of `needed` switches: three for a torus or mesh, two for a HyperX. Of equally small ones the most cubic.
    fn smallest(&self, needed: u32) -> Vec<u32> {
        let needed = u64::from(needed.max(1));
        let sides = |n: u64, power: u32| (1u64..).take_while(move |a| a.pow(power) <= n.max(1) || *a == 1);
        // The last side is rounded up, so sides slightly above the root are covered by an earlier, smaller one.
        let planes: Vec<Vec<u64>> = match self.links {
            GridLinks::All => sides(needed, 2).map(|a| vec![a, needed.div_ceil(a)]).collect(),
            _ => sides(needed, 3)
                .flat_map(|a| {
                    let rest = needed.div_ceil(a);
                    sides(rest, 2).filter(move |&b| b >= a).map(move |b| vec![a, b, rest.div_ceil(b)])
                })
                .collect(),
        };
        let best = planes.into_iter().min_by_key(|d| (d.iter().product::<u64>(), d.iter().sum::<u64>()));
        best.unwrap_or_default().into_iter().map(|d| d as u32).collect()
    }
}

/// Name of a switch: its coordinates, first dimension first.
fn name(switch: u32, dims: &[u32]) -> String {
    let mut rest = switch;
    let mut coordinates = Vec::with_capacity(dims.len());
    for &size in dims {
        coordinates.push((rest % size).to_string());
        rest /= size;
    }
    format!("switch{}", coordinates.join("."))
}
