//! Slim fly: routers of which each two are at most two links apart, on McKay-Miller-Širáň graphs.
//!
//! Layer: topology. Besta and Hoefler, "Slim Fly: A Cost Effective Low-Diameter Network Topology", SC 2014. Only primes `q` are supported; the paper has prime
//! powers too.

use super::builder::FabricBuilder;
use super::fabric::{Fabric, bad};
use crate::topology::{Network, TopologyError};

/// Parameters of a slim fly. 0 stands for a value that is derived from the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlimFly {
    /// The prime that makes the graph: `2 q^2` routers of `(3 q - d) / 2` links each, where `d` is 1 if `q` is 1 modulo 4, else -1. 0: the least that fits.
    pub q: u32,
    /// Hosts of a router. 0: half of its links to other routers, rounded up.
    pub hosts_per_router: u32,
}

/// The largest prime below 256: 126,002 routers.
const MAX_Q: u32 = 251;

fn is_prime(n: u32) -> bool {
    n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

/// Powers of a primitive root of the prime `q`: at index `i` the root to the `i`-th.
fn powers(q: u32) -> Vec<u32> {
    let powers_of = |root: u32| std::iter::successors(Some(1u32), move |&x| Some(x * root % q)).take(q as usize - 1);
    // The powers of a primitive root return to 1 only after all q - 1.
    let root = (2..q).find(|&root| powers_of(root).skip(1).all(|x| x != 1)).unwrap_or(1);
    powers_of(root).collect()
}

/// The two sets of differences that join routers within the two halves of the graph.
fn generators(q: u32) -> (Vec<u32>, Vec<u32>) {
    let power = powers(q);
    let pick = |exponents: Vec<u32>| exponents.into_iter().map(|e| power[e as usize]).collect::<Vec<u32>>();
    if q % 4 == 1 {
        return (pick((0..q - 1).step_by(2).collect()), pick((1..q - 1).step_by(2).collect()));
    }
    let w = q.div_ceil(4);
    let even = (0..=2 * w - 2).step_by(2).chain((2 * w - 1..=4 * w - 3).step_by(2));
    let odd = (1..=2 * w - 1).step_by(2).chain((2 * w..=4 * w - 2).step_by(2));
    // Exponents count modulo q - 1 = 4 w - 2.
    (pick(even.map(|e| e % (q - 1)).collect()), pick(odd.map(|e| e % (q - 1)).collect()))
}

impl SlimFly {
    /// Builds the network. Hosts fill routers in order.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let hosts = fabric.n_hosts();
        let degree = |q: u32| if q % 4 == 1 { (3 * q - 1) / 2 } else { (3 * q).div_ceil(2) };
        let per_router =
            |q: u32| if self.hosts_per_router == 0 { degree(q).div_ceil(2) } else { self.hosts_per_router };
        let holds = |q: u32| 2 * u64::from(q).pow(2) * u64::from(per_router(q));
        let fits = (3..=MAX_Q).find(|&q| is_prime(q) && holds(q) >= u64::from(hosts));
        let q = match (self.q, fits) {
            (0, Some(q)) => q,
            (0, None) => return Err(bad("cluster.gpus", fabric.gpus, format!("a slim fly has at most q = {MAX_Q}"))),
            (q, _) if q == 2 || !is_prime(q) || q > MAX_Q => {
                return Err(bad("topology.q", q, format!("it must be a prime from 3 to {MAX_Q}")));
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
        let (even, odd) = generators(q);
        for (half, differences) in [(0, even), (1, odd)] {
            for x in 0..q {
                for y in 0..q {
                    let later = differences.iter().map(|d| (y + d) % q).filter(|&far| far > y);
                    later.for_each(|far| b.uplink(router(half, x, y), router(half, x, far)));
                    if half == 0 {
                        // The line y = m x + c of the other half.
                        (0..q).for_each(|m| b.uplink(router(0, x, y), router(1, m, (y + q * q - m * x % q) % q)));
                    }
                }
            }
        }
        let coordinates = (0..2u32).flat_map(|half| (0..q * q).map(move |i| (half, i / q, i % q)));
        b.build_named(coordinates.map(|(half, x, y)| format!("router{half}.{x}.{y}")).collect())
    }
}
