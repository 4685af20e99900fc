//! `hyperfold topo check`.
//!
//! Layer: cli.

use clap::Args;

use hyperfold_base::units::counted;
use hyperfold_config::spec::KeyId;
use hyperfold_network::routing::Router;
use hyperfold_network::topology::{Link, Network, NodeKind};

use super::facts::Facts;
use super::failures;
use super::show::rate;
use super::source::{FoundNetwork, NetworkSource};
use crate::cli::exit::{CliError, Exit};
use crate::cli::say;
use crate::cli::table::count;

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub source: NetworkSource,
}

/// What a line of the check says.
enum Finding {
    /// The network can hardly be meant so.
    Fault(String),
    /// The network may be meant so; a reader should know.
    Remark(String),
}

/// Rate of the fastest switch chips that are sold in 2026, in bps: Broadcom's Tomahawk 6 and NVIDIA's Spectrum-6, 102.4 Tb/s.
const FASTEST_SWITCH_BPS: u64 = 102_400_000_000_000;
/// How many ports of a ring are named.
const NAMED: usize = 8;

/// Prints what is found, faults first. The exit code is 3 if there is a fault.
///
/// # Errors
/// The network cannot be built.
pub fn execute(args: &CheckArgs) -> Result<Exit, CliError> {
    let found = args.source.network()?;
    let findings = findings(&found);
    let faults = || findings.iter().filter_map(|f| if let Finding::Fault(text) = f { Some(text) } else { None });
    faults().for_each(|text| say(&format!("fault: {text}")));
    for finding in &findings {
        if let Finding::Remark(text) = finding {
            say(&format!("remark: {text}"));
        }
    }
    if findings.is_empty() {
        say("nothing found");
    }
    Ok(if faults().next().is_some() { Exit::Condition } else { Exit::Ok })
}

fn findings(found: &FoundNetwork) -> Vec<Finding> {
    let net = &found.network;
    let facts = Facts::of(found);
    let mut findings = Vec::new();
    let unreached = match net.failed.is_empty() {
        true => facts.distances.unreached_pairs,
        false => Router::new(net).distances().unreached_pairs,
    };
    if unreached > 0 {
        let pairs = count(unreached);
        let text = format!("{pairs} pairs of NICs have no path of packets");
        // Inside a server they have NVLink, and a rail-only network is meant so.
        let is_meant = found.is_rail_only();
        findings.push(if is_meant {
            Finding::Remark(format!("{text}: rails are joined inside servers only"))
        } else {
            Finding::Fault(text)
        });
    }
    let isolated = net.isolated_switches();
    if !isolated.is_empty() {
        let n = counted(isolated.len(), "switch");
        findings.push(Finding::Fault(format!("{n} without links, the first is {}", isolated[0])));
    }
    let names = net.names();
    findings.extend(down_links(net, &names, facts.distances.unreached_pairs.saturating_sub(unreached)));
    let mut taken = vec![(0u64, 0u64); net.nodes.len()];
    let works = |(i, link): &(u32, &Link)| net.is_packet_link(link) && !net.failed.contains(i);
    for (_, link) in (0u32..).zip(&net.links).filter(works) {
        for (end, far) in [(link.a, link.b), (link.b, link.a)] {
            let is_host = net.nodes[far as usize].kind == NodeKind::Host;
            *(if is_host { &mut taken[end as usize].0 } else { &mut taken[end as usize].1 }) += link.rate_bps;
        }
    }
    let narrow = |(i, _): &(usize, _)| {
        let (hosts, switches) = taken[*i];
        net.nodes[*i].kind == NodeKind::Switch && switches > 0 && hosts > switches
    };
    let narrowed: Vec<usize> = taken.iter().enumerate().filter(narrow).map(|(i, _)| i).collect();
    if let Some(&worst) = narrowed.iter().max_by_key(|&&i| taken[i].0 * 1000 / taken[i].1) {
        let (hosts, switches) = taken[worst];
        let is_leaf = |(i, (hosts, _)): &(usize, (u64, u64))| *hosts > 0 && net.nodes[*i].kind == NodeKind::Switch;
        let n_leaves = taken.iter().copied().enumerate().filter(is_leaf).count();
        findings.push(Finding::Remark(format!(
            "{} of {n_leaves} switches with hosts are oversubscribed; {} takes {} from hosts and sends {} on: {:.2} to 1",
            narrowed.len(),
            names[worst],
            rate(hosts),
            rate(switches),
            hosts as f64 / switches as f64
        )));
    }
    let fastest = facts.switches.keys().max_by_key(|class| class.bps).filter(|class| class.bps > FASTEST_SWITCH_BPS);
    if let Some(class) = fastest {
        findings.push(Finding::Remark(format!(
            "a switch has {} and {}; the fastest chips of 2026 have {}",
            counted((class.to_hosts + class.to_switches) as usize, "port"),
            rate(class.bps),
            rate(FASTEST_SWITCH_BPS)
        )));
    }
    findings.extend(waiting_ring(found, &names));
    findings
}

/// What is to be said of links that `topology.outages` takes down from the beginning. `n_cut` pairs of NICs have no path because of them.
fn down_links(net: &Network, names: &[String], n_cut: u64) -> Option<Finding> {
    if net.failed.is_empty() {
        return None;
    }
    let down = format!(
        "topology.outages takes down {} from the beginning: {}",
        counted(net.failed.len(), "link"),
        failures::links_down(net, names)
    );
    if n_cut == 0 {
        return Some(Finding::Remark(format!("{down}; all NICs still reach each other as before")));
    }
    let cut_off = match failures::named_cut_off(net, names).as_str() {
        "" => String::new(),
        named => format!("; cut off are {named}"),
    };
    Some(Finding::Fault(format!(
        "{down}; so {} pairs of NICs have no path, and a run fails where they exchange packets{cut_off}",
        count(n_cut)
    )))
}

/// A remark on a ring of ports that can wait for each other, if pause frames are sent.
fn waiting_ring(found: &FoundNetwork, names: &[String]) -> Option<Finding> {
    if !found.config.values.bool(KeyId::Pfc) {
        return None;
    }
    let net = &found.network;
    let ring = Router::avoiding(net, &|link| net.failed.contains(&link)).waiting_ring()?;
    let port = |arc: &u32| format!("{}->{}", names[net.arc_from(*arc) as usize], names[net.arc_to(*arc) as usize]);
    let shown: Vec<String> = ring.iter().take(NAMED).map(port).collect();
    let more = match ring.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(Finding::Remark(format!(
        "with pause frames, {} on shortest paths can wait for each other in a ring: {}{more}. Virtual channels, which real networks of this kind use, are not modelled; a run that locks up fails and says so, transport.pfc = false drops packets instead",
        counted(ring.len(), "port"),
        shown.join(", ")
    )))
}
