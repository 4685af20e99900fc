//! Slim fly: routers of which each two are at most two links apart, on McKay-Miller-Širáň graphs.
//!
//! Layer: topology. Besta and Hoefler, "Slim Fly: A Cost Effective Low-Diameter Network Topology", SC 2014; sets of differences as in Hafner, "Geometric
//! realisation of the graphs of McKay-Miller-Širáň", Journal of Combinatorial Theory B 90, 2004. Fields of prime powers are in `galois`.

use super::builder::FabricBuilder;
use super::fabric::{Fabric, bad};
use super::galois::{GaloisField, is_prime_power};
use crate::topology::{Network, TopologyError};

/// Parameters of a slim fly. 0 stands for a value that is derived from the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlimFly {
    /// The prime power `4 w + d`, with `d` one of -1, 0 and 1, that makes the graph: `2 q^2` routers of `(3 q - d) / 2` links each. 0: the least that fits.
    pub q: u32,
    /// Hosts of a router. 0: half of its links to other routers, rounded up.
    pub hosts_per_router: u32,
}

/// The largest `q`: 131,072 routers. The least is 3.
const MAX_Q: u32 = 256;

/// Links of a router to others: `(3 q - d) / 2`.
fn degree(q: u32) -> u32 {
    match q % 4 {
        1 => (3 * q - 1) / 2,
        0 => 3 * q / 2,
        _ => (3 * q).div_ceil(2),
    }
}

/// The two sets of differences that join routers within the two halves of the graph. With each difference its negative is in the set.
fn generators(field: &GaloisField, q: u32) -> (Vec<u32>, Vec<u32>) {
    let pick = |exponents: Vec<u32>| exponents.into_iter().map(|e| field.power(e)).collect::<Vec<u32>>();
    if q % 4 != 3 {
        // Even and odd exponents. If q is even, the last odd one is q - 1, whose power is 1 as that of 0 is: both sets have it.
        return (pick((0..q - 1).step_by(2).collect()), pick((1..q).step_by(2).collect()));
    }
    let w = q.div_ceil(4);
    let even = (0..=2 * w - 2).step_by(2).chain((2 * w - 1..=4 * w - 3).step_by(2));
    let odd = (1..=2 * w - 1).step_by(2).chain((2 * w..=4 * w - 2).step_by(2));
    (pick(even.collect()), pick(odd.collect()))
}

impl SlimFly {
    /// Builds the network. Hosts fill routers in order.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let hosts = fabric.n_hosts();
        let per_router =
            |q: u32| if self.hosts_per_router == 0 { degree(q).div_ceil(2) } else { self.hosts_per_router };
        let holds = |q: u32| 2 * u64::from(q).pow(2) * u64::from(per_router(q));
        let is_valid = |q: u32| (3..=MAX_Q).contains(&q) && is_prime_power(q);
        let fits = (3..=MAX_Q).find(|&q| is_valid(q) && holds(q) >= u64::from(hosts));
        let q = match (self.q, fits) {
            (0, Some(q)) => q,
            (0, None) => return Err(bad("cluster.gpus", fabric.gpus, format!("a slim fly has at most q = {MAX_Q}"))),
            (q, _) if !is_valid(q) => {
                let problem = format!("it must be a prime or a power of a prime, from 3 to {MAX_Q}");
                return Err(bad("topology.q", q, problem));
            }
            (q, fits) if holds(q) < u64::from(hosts) => {
                let hint = fits.map_or(String::new(), |q| format!("; q = {q} holds {}", holds(q)));
                let problem = format!("a slim fly of q = {q} holds {} hosts, {hosts} are needed{hint}", holds(q));
                return Err(bad("topology.q", q, problem));
            }
            (q, _) => q,
        };
        let routers = 2 * u64::from(q).pow(2);
        let n_links = fabric.n_host_links() + routers * u64::from(degree(q)) / 2;
        let mut b = FabricBuilder::new(fabric, routers, n_links)?;
        for host in 0..hosts {
            b.host_link(host, hosts + host / per_router(q));
        }
        // Router (half, x, y): y counts fastest.
        let router = |half: u32, x: u32, y: u32| hosts + (half * q + x) * q + y;
        let field = GaloisField::new(q).expect("q is a prime power");
        let (even, odd) = generators(&field, q);
        for (half, differences) in [(0, even), (1, odd)] {
            for x in 0..q {
                for y in 0..q {
                    let later = differences.iter().map(|&d| field.add(y, d)).filter(|&far| far > y);
                    later.for_each(|far| b.uplink(router(half, x, y), router(half, x, far)));
                    if half == 0 {
                        // The line y = m x + c of the other half.
                        let crossing = |m: u32| router(1, m, field.subtract(y, field.multiply(m, x)));
                        (0..q).for_each(|m| b.uplink(router(0, x, y), crossing(m)));
                    }
                }
            }
        }
        let coordinates = (0..2u32).flat_map(|half| (0..q * q).map(move |i| (half, i / q, i % q)));
        b.build_named(coordinates.map(|(half, x, y)| format!("router{half}.{x}.{y}")).collect())
    }
}
