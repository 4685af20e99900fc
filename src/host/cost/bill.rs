//! Counts the parts of a cluster on its network, and sums up their prices and powers.
//!
//! Layer: cost.

use std::collections::BTreeSet;

use super::assets::{CostError, Costs, PartCost};
use hyperfold_config::spec::CostKeys;
use hyperfold_network::topology::{Network, NodeKind};

const BPS_PER_GBPS: f64 = 1e9;
const HOURS_PER_YEAR: f64 = 8766.0;
const SECONDS_PER_HOUR: f64 = 3600.0;

/// The parts of a cluster, with their rates.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Parts {
    /// Number of GPUs.
    pub gpus: u64,
    /// Number of servers.
    pub servers: u64,
    /// Rate of each NIC in Gbit/s, all its links together.
    pub nics: Vec<f64>,
    /// Sum of the port rates of each switch in Gbit/s. Switches without links are not counted; those inside servers are part of the server.
    pub switches: Vec<f64>,
    /// Rate of each link of the network in Gbit/s.
    pub links: Vec<f64>,
    /// Number of ports of optical circuit switches, two for each circuit.
    pub circuit_ports: u64,
}

/// Price and power of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Bill {
    /// Price, in US cents.
    pub cost_cents: u64,
    /// Power at full load, mW.
    pub power_mw: u64,
}

/// Counts the parts of a network of `gpus` GPUs. If `nic_per_host` is set, a host node is one NIC, however many links it has. Otherwise each of its links is
/// one.
pub fn parts(net: &Network, gpus: u64, nic_per_host: bool) -> Parts {
    let mut gbps_of_node = vec![0.0; net.nodes.len()];
    let mut links = Vec::new();
    let mut host_links = Vec::new();
    for link in net.links.iter().filter(|l| net.is_packet_link(l)) {
        let gbps = link.rate_bps as f64 / BPS_PER_GBPS;
        let [server, far] = [link.a, link.b].map(|end| net.nodes[end as usize].server);
        // No cable inside a server.
        if server == u32::MAX || server != far {
            links.push(gbps);
        }
        for end in [link.a, link.b] {
            gbps_of_node[end as usize] += gbps;
            if net.nodes[end as usize].kind == NodeKind::Host {
                host_links.push(gbps);
            }
        }
    }
    let gbps_by_kind = |kind: NodeKind| {
        net.nodes
            .iter()
            .zip(&gbps_of_node)
            .filter(move |(n, gbps)| n.kind == kind && **gbps > 0.0 && (kind == NodeKind::Host || n.server == u32::MAX))
            .map(|(_, gbps)| *gbps)
    };
    let servers: BTreeSet<u32> = net.nodes.iter().filter(|n| n.kind == NodeKind::Host).map(|n| n.server).collect();
    Parts {
        gpus,
        servers: servers.len() as u64,
        nics: if nic_per_host { gbps_by_kind(NodeKind::Host).collect() } else { host_links },
        switches: gbps_by_kind(NodeKind::Switch).collect(),
        links,
        circuit_ports: 0,
    }
}

/// Number of ports that circuit switches have in a network of circuits: two for each link between two switches with hosts.
pub fn circuit_ports(net: &Network) -> u64 {
    let tiers = net.tiers();
    let is_leaf = |node: u32| tiers[node as usize] == 1;
    2 * net.links.iter().filter(|link| is_leaf(link.a) && is_leaf(link.b)).count() as u64
}

/// Price and power of all parts. `gpu` and `server` are names in the asset.
///
/// # Errors
/// The asset does not have the GPU, and `[base.cost]` does not give both its price and its power.
pub fn bill(parts: &Parts, gpu: &str, server: Option<&str>, keys: &CostKeys) -> Result<Bill, CostError> {
    let costs = Costs::shipped();
    let with_own = |own: (Option<f64>, Option<f64>), part: PartCost| PartCost {
        usd: own.0.unwrap_or(part.usd),
        watts: own.1.unwrap_or(part.watts),
    };
    let own_gpu = match keys.gpu {
        (Some(usd), Some(watts)) => PartCost { usd, watts },
        own => with_own(own, costs.gpu(gpu)?),
    };
    let gpus = parts.gpus as f64;
    // All servers together. The price of the asset's servers grows with their GPUs.
    let servers = costs.server(server, gpus);
    let own_servers =
        (keys.server.0.map(|x| x * parts.servers as f64), keys.server.1.map(|x| x * parts.servers as f64));
    let mut total = with_own(own_servers, servers);
    let mut add = |n: f64, p: PartCost| {
        total.usd += n * p.usd;
        total.watts += n * p.watts;
    };
    add(gpus, own_gpu);
    parts.nics.iter().for_each(|&g| add(1.0, with_own(keys.nic, costs.nic.cost(g))));
    parts.switches.iter().for_each(|&g| add(1.0, with_own(keys.switch, costs.switch.cost(g))));
    parts.links.iter().for_each(|&g| add(1.0, with_own(keys.link, costs.link.cost(g))));
    add(parts.circuit_ports as f64, with_own(keys.circuit_port, costs.circuit_port.cost(0.0)));
    Ok(Bill { cost_cents: (total.usd * 100.0).round() as u64, power_mw: (total.watts * 1e3).round() as u64 })
}

/// Dollars per million tokens: the cluster's price over its life, and its energy.
pub fn usd_per_mtoken(bill: &Bill, tokens_per_s: f64, years: f64, usd_per_kwh: f64) -> f64 {
    let price_per_s = bill.cost_cents as f64 / 100.0 / (years * HOURS_PER_YEAR * SECONDS_PER_HOUR);
    let energy_per_s = bill.power_mw as f64 / 1e6 * usd_per_kwh / SECONDS_PER_HOUR;
    (price_per_s + energy_per_s) / tokens_per_s * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_network::topology::{CircuitPlan, Fabric, NvLink, Optical, RailOnly, RailOptimized};

    fn fabric() -> Fabric {
        Fabric {
            gpus: 16,
            gpus_per_server: 8,
            nics_per_server: 8,
            nic_ports: 1,
            link_bps: 400_000_000_000,
            uplink_bps: 400_000_000_000,
            core_bps: 400_000_000_000,
            global_bps: 400_000_000_000,
            link_delay_ps: 1_000_000,
            uplink_delay_ps: 1_000_000,
            core_delay_ps: 1_000_000,
            global_delay_ps: 1_000_000,
            switch_latency_ps: 0,
            nvlink: Some(NvLink { rate_bps: 3_600_000_000_000, latency_ps: 500_000 }),
        }
    }

    #[test]
    fn a_rail_only_network_has_a_switch_a_rail() {
        let net = RailOnly { rails: 0 }.build(&fabric()).unwrap();
        let p = parts(&net, 16, true);
        assert_eq!((p.servers, p.nics.len(), p.switches.len(), p.links.len()), (2, 16, 8, 16));
        assert!(p.switches.iter().all(|&g| g == 800.0) && p.nics.iter().all(|&g| g == 400.0));
        // By hand: 16 H100 x (28000 + 700 W), two servers of 80000 and 4400 W, 16 NICs of 1600 and 25 W, 8 switches of 3800 and 120 W, 16 links of 1260 and 17
        // W.
        let b = bill(&p, "h100-sxm", None, &CostKeys::default()).unwrap();
        assert_eq!(b.cost_cents, 100 * (16 * 28_000 + 2 * 80_000 + 16 * 1_600 + 8 * 3_800 + 16 * 1_260));
        assert_eq!(b.power_mw, 1000 * (16 * 700 + 2 * 4_400 + 16 * 25 + 8 * 120 + 16 * 17));
    }

    #[test]
    fn each_circuit_takes_two_ports_of_a_circuit_switch() {
        let optical = Optical { hosts_per_leaf: 4, ports: 3, oversubscription: 1000, plan: CircuitPlan::Mesh };
        let net = optical.build(&fabric()).unwrap();
        assert_eq!(circuit_ports(&net), 4 * 3, "four leaves with three ports each");
        let electric = parts(&net, 16, true);
        let optical = Parts { circuit_ports: circuit_ports(&net), ..electric.clone() };
        let own = CostKeys { circuit_port: (Some(2.0), Some(3.0)), ..CostKeys::default() };
        let [plain, dearer, cheaper] =
            [(&electric, &CostKeys::default()), (&optical, &CostKeys::default()), (&optical, &own)]
                .map(|(parts, keys)| bill(parts, "h100-sxm", None, keys).unwrap());
        assert_eq!((dearer.cost_cents - plain.cost_cents, dearer.power_mw - plain.power_mw), (12 * 50_000, 12_000));
        assert_eq!((cheaper.cost_cents - plain.cost_cents, cheaper.power_mw - plain.power_mw), (12 * 200, 36_000));
    }

    #[test]
    fn more_network_costs_more_and_own_prices_win() {
        let spines = RailOptimized { pods: 1, spines: 4, ..RailOptimized::default() }.build(&fabric()).unwrap();
        let p = parts(&spines, 16, true);
        let plain = bill(&p, "h100-sxm", None, &CostKeys::default()).unwrap();
        let less = bill(
            &parts(&RailOnly { rails: 0 }.build(&fabric()).unwrap(), 16, true),
            "h100-sxm",
            None,
            &CostKeys::default(),
        )
        .unwrap();
        assert!(plain.cost_cents > less.cost_cents && plain.power_mw > less.power_mw);
        let keys = CostKeys {
            gpu: (Some(1.0), Some(0.0)),
            server: (Some(10.0), Some(0.0)),
            nic: (Some(0.0), Some(2.0)),
            ..CostKeys::default()
        };
        let keys = CostKeys { switch: (Some(100.0), Some(0.0)), link: (Some(0.0), Some(0.0)), ..keys };
        // A GPU without a known price needs both figures, and has them here.
        let own = bill(&p, "mine", None, &keys).unwrap();
        assert_eq!(own, Bill { cost_cents: 100 * (16 + 2 * 10 + 100 * p.switches.len() as u64), power_mw: 16 * 2000 });
    }

    #[test]
    fn a_million_tokens_cost_their_share_of_price_and_energy() {
        let bill = Bill { cost_cents: 100 * 8766 * 3600, power_mw: 3_600_000_000 };
        // One dollar per second over a year, and 3600 kW at 0.1 per kWh: 0.1 per second.
        let usd = usd_per_mtoken(&bill, 1e6, 1.0, 0.1);
        assert!((usd - 1.1).abs() < 1e-12, "{usd}");
    }
}
