//! `hyperfold topo show`.
//!
//! Layer: cli.

use clap::Args;
use serde_json::json;

use hyperfold_base::units::counted;

use super::circuits;
use super::facts::{Facts, PAYLOAD};
use super::failures;
use super::source::{FoundNetwork, FoundNetworks, NetworkSource};
use crate::cli::exit::{CliError, Exit};
use crate::cli::table::{TextTable, count, time};
use crate::cli::{say, say_json, tell};

#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub source: NetworkSource,
    /// Most networks of a sweep that are shown
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// One JSON object a line, for each network
    #[arg(long)]
    pub json: bool,
}

/// Prints the network, or a table of the networks of a sweep.
///
/// # Errors
/// No network can be built.
pub fn execute(args: &ShowArgs) -> Result<Exit, CliError> {
    let found = args.source.networks(args.limit as usize)?;
    for (exp_id, why) in &found.failed {
        tell(&format!("experiment {exp_id}: {why}"));
    }
    if args.json {
        found.networks.iter().for_each(|n| say_json(&as_json(&found.axes, n, &Facts::of(n))));
    } else if let [network] = &found.networks[..] {
        one(network, &Facts::of(network)).iter().for_each(|line| say(line));
    } else {
        table(&found).iter().for_each(|line| say(line));
    }
    if found.n_more > 0 {
        tell(&format!("{} more, as --limit is {}", counted(found.n_more, "network"), args.limit));
    }
    Ok(if found.failed.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// A rate with its unit.
pub fn rate(bps: u64) -> String {
    let gbps = bps as f64 / 1e9;
    if gbps < 1e4 { format!("{gbps} Gb/s") } else { format!("{} Tb/s", (gbps / 10.0).round() / 100.0) }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(String::new, |s| format!("{:.1} %", 100.0 * s))
}

/// Numbers of shortest paths, from the least to the most.
fn paths(facts: &Facts) -> String {
    let d = &facts.distances;
    if d.min_paths == d.max_paths {
        format!("{} from one NIC to another", counted(d.min_paths as usize, "shortest path"))
    } else {
        let (min, max) = (count(d.min_paths), count(d.max_paths));
        format!("{min} to {max} shortest ones from one NIC to another, {:.1} on average", d.mean_paths)
    }
}

fn one(found: &FoundNetwork, facts: &Facts) -> Vec<String> {
    let d = &facts.distances;
    let mut lines = vec![
        format!("kind        {}", found.kind()),
        format!(
            "GPUs        {} in {}, {}",
            count(facts.gpus as u64),
            counted(facts.servers, "server"),
            counted(facts.hosts, "NIC")
        ),
        format!("switches    {}", count(facts.n_switches() as u64)),
    ];
    for (class, n) in &facts.switches {
        lines.push(format!(
            "            {} with {} to hosts and {} to switches, {}",
            count(*n as u64),
            counted(class.to_hosts as usize, "port"),
            class.to_switches,
            rate(class.bps)
        ));
    }
    for (i, tier) in found.chips.iter().enumerate() {
        lines.push(format!(
            "{:<12}{} like {}: {}, {} Tb/s, buffer {:.3} MiB{}",
            if i == 0 { "chips" } else { "" },
            count(tier.n_switches as u64),
            tier.first_switch,
            tier.chip.name,
            tier.chip.capacity_gbps as f64 / 1e3,
            mib(tier.buffer_bytes),
            if tier.has_default_buffer() { ", the default: that of the chip is not published" } else { "" }
        ));
    }
    lines.push(format!("links       {}", count(facts.n_links() as u64)));
    for (class, n) in &facts.links {
        let ends = if class.to_host { "to hosts" } else { "between switches" };
        lines.push(format!("            {} {ends}, {}, {}", count(*n as u64), rate(class.bps), time(class.delay_ps)));
    }
    lines.extend(circuits::lines(found));
    lines.extend(failures::lines(found));
    lines.push(format!("distance    {} links at most, {:.2} on average", d.diameter, d.mean));
    if d.unreached_pairs > 0 {
        lines.push(format!("            {} pairs of NICs have no path", count(d.unreached_pairs)));
    }
    lines.push(format!("round trip  {} at most, for packets of {PAYLOAD} bytes and no queues", time(facts.rtt_ps)));
    lines.push(format!("paths       {}", paths(facts)));
    if let Some(share) = facts.bisection_share() {
        lines.push(format!(
            "halves      {} from the first half of the servers to the second, {} of what their NICs can send",
            rate(facts.bisection_bps),
            percent(Some(share))
        ));
    }
    lines.push(format!("price       ${}", count(found.bill.cost_cents / 100)));
    lines.push(format!("power       {:.1} kW", found.bill.power_mw as f64 / 1e6));
    lines
}

fn table(found: &FoundNetworks) -> Vec<String> {
    // Axes that do not change the network have one value in all rows.
    let varies = |i: &usize| found.networks.iter().any(|n| n.values[*i] != found.networks[0].values[*i]);
    let axes: Vec<usize> = (0..found.axes.len()).filter(varies).collect();
    let mut header = vec!["exp".to_string()];
    header.extend(axes.iter().map(|&i| found.axes[i].clone()));
    header.extend(
        ["GPUs", "switches", "ports", "links", "most hops", "mean hops", "paths", "halves", "of NICs", "price"]
            .map(String::from),
    );
    let mut table = TextTable::new(header);
    for n in &found.networks {
        let facts = Facts::of(n);
        let d = &facts.distances;
        let mut row = vec![n.exp_id.to_string()];
        row.extend(axes.iter().map(|&i| n.values[i].clone()));
        row.extend([
            facts.gpus.to_string(),
            facts.n_switches().to_string(),
            facts.radix().to_string(),
            facts.n_links().to_string(),
            d.diameter.to_string(),
            format!("{:.2}", d.mean),
            format!("{:.1}", d.mean_paths),
            rate(facts.bisection_bps),
            percent(facts.bisection_share()),
            format!("${}", count(n.bill.cost_cents / 100)),
        ]);
        table.row(row);
    }
    let mut lines = table.lines();
    lines.push(
        "ports: of the largest switch; hops: links from NIC to NIC; paths: shortest ones, mean over pairs of NICs; halves: highest rate from the first half of the servers to the second, and its part of what their NICs can send"
            .to_string(),
    );
    lines
}

fn as_json(axes: &[String], found: &FoundNetwork, facts: &Facts) -> String {
    let values: serde_json::Map<String, serde_json::Value> =
        axes.iter().cloned().zip(found.values.iter().map(|v| v.clone().into())).collect();
    let d = &facts.distances;
    let switches: Vec<_> = facts
        .switches
        .iter()
        .map(|(c, n)| json!({"count": n, "ports_to_hosts": c.to_hosts, "ports_to_switches": c.to_switches, "bps": c.bps}))
        .collect();
    let chips: Vec<_> = found
        .chips
        .iter()
        .map(|tier| json!({"chip": tier.chip.name, "count": tier.n_switches, "first": tier.first_switch, "buffer_mib": mib(tier.buffer_bytes)}))
        .collect();
    let links: Vec<_> = facts
        .links
        .iter()
        .map(|(c, n)| json!({"count": n, "to_host": c.to_host, "bps": c.bps, "delay_ps": c.delay_ps}))
        .collect();
    json!({
        "exp_id": found.exp_id, "axes": values, "kind": found.kind(), "gpus": facts.gpus, "servers": facts.servers, "nics": facts.hosts,
        "switches": switches, "chips": chips, "links": links, "circuits": circuits::as_json(found),
        "links_down": found.network.failed.len(), "lossy_links": found.network.lossy_links.len(), "diameter_links": d.diameter, "mean_links": d.mean, "unreached_pairs": d.unreached_pairs,
        "min_paths": d.min_paths, "max_paths": d.max_paths, "mean_paths": d.mean_paths, "rtt_ps": facts.rtt_ps,
        "bisection_bps": facts.bisection_bps, "half_bps": facts.half_bps,
        "cost_usd": found.bill.cost_cents as f64 / 100.0, "power_kw": found.bill.power_mw as f64 / 1e6,
    })
    .to_string()
}
