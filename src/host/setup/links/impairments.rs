//! Finds the links that `topology.outages` makes slow or lets lose packets, or the topology's file, and says what does not take that into account.
//!
//! Layer: host. Builds no tables.

use std::collections::{BTreeMap, BTreeSet};

use hyperfold_base::units::{BPS_PER_GBPS, BPS_PER_MBPS};
use hyperfold_config::spec::{
    Analytic, Config, Conflict, FailingPart, ImpairedSpan, Impairment, ImpairmentText, KeyId, ReducedRate,
    WorkloadSection,
};
use hyperfold_network::changes::{NetworkChange, TimedChange};
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Network, SlowArc};

use crate::setup::links::outages::{links_of, node_of};

/// Set in the numbers of draws for impaired links, so that they are not the links that fail.
const DRAW: u64 = 1 << 32;

/// What `topology.outages` makes slow or lets lose packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Impairments {
    /// Directions of links that have a reduced rate for the whole run, ascending. A direction whose rate is the link's own is none of them.
    pub slow: Vec<SlowArc>,
    /// Rates that change, and losses that begin or end, in the order of their times.
    pub changes: Vec<TimedChange>,
}

/// An impairment of a direction for some time.
struct Impaired<'a> {
    span: ImpairedSpan,
    /// Rate in bps, or share of lost packets.
    value: u64,
    text: &'a str,
}

/// What each direction has, by kind: rates first, then losses. Spans ascend.
type ByArc<'a> = [BTreeMap<ArcIdx, Vec<Impaired<'a>>>; 2];

/// Index of losses in [`ByArc`].
const LOSSES: usize = 1;

/// What the experiment's own losses are called, where receiver credit refuses them.
const LOST_CREDIT: &str =
    "credit that is lost is never given again: without transport.receiver_credit, or without losses";

/// Finds the impaired links of an experiment.
///
/// # Errors
/// An entry names what the network does not have, a rate above the link's own, a direction that another entry gives one of the same kind at some of its time, or losses
/// with receiver credit.
pub(crate) fn impairments(config: &Config, net: &Network) -> Result<Impairments, Conflict> {
    let texts = &config.topology.impairments;
    if texts.is_empty() && net.lossy_links.is_empty() {
        return Ok(Impairments::default());
    }
    let loses_credit = config.values.bool(KeyId::ReceiverCredit);
    if loses_credit && !net.lossy_links.is_empty() {
        let why = format!("links of the file lose packets (error rates), and {LOST_CREDIT}");
        return Err(Conflict { job: None, key: KeyId::TopologyPath, why });
    }
    let names = net.names();
    let mut by_arc = ByArc::default();
    let mut by_others: Option<[BTreeSet<ArcIdx>; 2]> = None;
    for (number, text) in ordered(texts) {
        let fail = |why: String| Conflict { job: None, key: KeyId::Outages, why: format!("`{}`: {why}", text.text) };
        let (kind, noun) = match text.what {
            Impairment::Rate(_) => (0, "a rate"),
            Impairment::Loss(_) => (LOSSES, "a loss"),
        };
        if kind == LOSSES && loses_credit {
            return Err(fail(LOST_CREDIT.into()));
        }
        let is_all = text.part == FailingPart::All;
        if is_all && by_others.is_none() {
            add_losses_of_file(net, &mut by_arc);
            by_others = Some([0, 1].map(|kind| by_arc[kind].keys().copied().collect()));
        }
        let has_own = |arc: &ArcIdx| is_all && by_others.as_ref().is_some_and(|own| own[kind].contains(arc));
        let impaired = &by_arc[kind];
        let may_draw = |link: u32| !impaired.contains_key(&(2 * link)) && !impaired.contains_key(&(2 * link + 1));
        let links = links_of(net, &names, &text.part, (&may_draw, noun), (config.seed, number)).map_err(fail)?;
        let arcs = links.into_iter().flat_map(|link| directions(net, &names, text, link));
        for arc in arcs.filter(|arc| !has_own(arc)) {
            let ends = format!("{} -> {}", names[net.arc_from(arc) as usize], names[net.arc_to(arc) as usize]);
            let value = match text.what {
                Impairment::Rate(rate) => {
                    reduced(net.arc_link(arc).rate_bps, rate).map_err(|why| fail(format!("{ends} {why}")))?
                }
                Impairment::Loss(share) => u64::from(share),
            };
            let has = by_arc[kind].entry(arc).or_default();
            let overlaps = |has: &&Impaired| text.spans.iter().any(|span| span.overlaps(has.span));
            if let Some(other) = has.iter().find(overlaps) {
                return Err(fail(format!(
                    "`{}` gives {ends} {noun} already; a direction of a link has one at a time",
                    other.text
                )));
            }
            has.extend(text.spans.iter().map(|&span| Impaired { span, value, text: &text.text }));
            has.sort_unstable_by_key(|impaired| impaired.span);
        }
    }
    if by_others.is_none() {
        add_losses_of_file(net, &mut by_arc);
    }
    Ok(told_apart(net, &by_arc))
}

/// Entries with the numbers of their draws, in the order in which they are given to links. Random links are drawn among those that have no impairment of the kind
/// by then. Last come entries about all links without one.
fn ordered(texts: &[ImpairmentText]) -> Vec<(u64, &ImpairmentText)> {
    let mut ordered: Vec<(u64, &ImpairmentText)> = (DRAW..).zip(texts).collect();
    ordered.sort_by_key(|(_, text)| match text.part {
        FailingPart::Node(_) | FailingPart::Links { .. } => 0,
        FailingPart::Random(_) => 1,
        FailingPart::All => 2,
    });
    ordered
}

/// Adds the error rates of the topology's file, in both directions of a link, where no entry gives a loss.
fn add_losses_of_file(net: &Network, by_arc: &mut ByArc) {
    for &(link, share_q32) in &net.lossy_links {
        for arc in [2 * link, 2 * link + 1] {
            let of_file = || Impaired { span: ImpairedSpan::WHOLE_RUN, value: u64::from(share_q32), text: "" };
            by_arc[LOSSES].entry(arc).or_insert_with(|| vec![of_file()]);
        }
    }
}

/// Tells rates for the whole run from what changes.
fn told_apart(net: &Network, [rates, losses]: &ByArc) -> Impairments {
    let mut found = Impairments::default();
    for (&arc, spans) in rates {
        let own_bps = net.arc_link(arc).rate_bps;
        if let [Impaired { span: ImpairedSpan::WHOLE_RUN, value: rate_bps, .. }] = *spans.as_slice() {
            found.slow.extend((rate_bps < own_bps).then_some(SlowArc { arc, rate_bps }));
            continue;
        }
        let rate = |(time_ps, rate_bps)| TimedChange { time_ps, change: NetworkChange::Rate { arc, rate_bps } };
        found.changes.extend(steps(spans, own_bps).into_iter().map(rate));
    }
    for (&arc, spans) in losses {
        let loss = |(time_ps, share)| {
            let share_q32 = u32::try_from(share).expect("a share is less than all");
            TimedChange { time_ps, change: NetworkChange::Loss { arc, share_q32 } }
        };
        found.changes.extend(steps(spans, 0).into_iter().map(loss));
    }
    found.changes.sort_by_key(|change| change.time_ps);
    found
}

/// Times at which a value changes, and what it is from then on. Outside of the spans, which ascend, it is `usual`.
fn steps(spans: &[Impaired], usual: u64) -> Vec<(u64, u64)> {
    let mut steps: Vec<(u64, u64)> = Vec::new();
    for impaired in spans {
        // It begins where another ends.
        steps.pop_if(|last| last.0 == impaired.span.from_ps);
        steps.push((impaired.span.from_ps, impaired.value));
        steps.extend(impaired.span.to_ps.map(|to_ps| (to_ps, usual)));
    }
    let mut now = usual;
    steps.retain(|&(_, value)| std::mem::replace(&mut now, value) != value);
    steps
}

/// The directions of a link that an entry is about.
fn directions(net: &Network, names: &[String], text: &ImpairmentText, link: u32) -> Vec<ArcIdx> {
    let both = [2 * link, 2 * link + 1];
    match &text.part {
        FailingPart::Links { a, .. } if text.one_way => {
            both.into_iter().filter(|&arc| node_of(net, names, a) == Ok(net.arc_from(arc))).collect()
        }
        _ => both.into(),
    }
}

/// The rate in bps of a direction whose link has `own_bps`. A share is rounded down to whole Mb/s. The error goes on after the direction's name.
fn reduced(own_bps: u64, rate: ReducedRate) -> Result<u64, String> {
    let gbps = |bps: u64| bps as f64 / BPS_PER_GBPS as f64;
    match rate {
        ReducedRate::Share(ppm) => {
            let bps = (u128::from(own_bps) * u128::from(ppm) / 1_000_000) as u64 / BPS_PER_MBPS * BPS_PER_MBPS;
            (bps > 0).then_some(bps).ok_or_else(|| {
                format!("has {} Gb/s, and this share of it is below 1 Mb/s, the least that is simulated", gbps(own_bps))
            })
        }
        ReducedRate::Bps(bps) if bps > own_bps => {
            Err(format!("has {} Gb/s, and a rate cannot be above that of the link", gbps(own_bps)))
        }
        ReducedRate::Bps(bps) => Ok(bps),
    }
}

/// Returns notes on what impaired links do not change, or change by more than they would. `changes` are all changes of the network.
pub(crate) fn impairment_notes(
    config: &Config,
    net: &Network,
    paths: &[FlowPaths],
    changes: &[TimedChange],
) -> Vec<String> {
    let source = match (config.topology.impairments.is_empty(), net.lossy_links.is_empty()) {
        (true, true) => return Vec::new(),
        (true, false) => "the error rates of the topology's file",
        (false, true) => "the rates and losses of topology.outages",
        (false, false) => "the rates and losses of topology.outages and of the topology's file",
    };
    let impaired = changes.iter().filter_map(|timed| match timed.change {
        NetworkChange::Rate { arc, .. } | NetworkChange::Loss { arc, .. } => Some(arc),
        _ => None,
    });
    let impaired: BTreeSet<ArcIdx> = impaired.chain(net.slow_arcs.iter().map(|slow| slow.arc)).collect();
    let later = changes.iter().filter_map(|timed| match &timed.change {
        NetworkChange::NewPaths { paths, .. } => Some(paths),
        _ => None,
    });
    let crosses = |path: &FlowPaths| path.data.iter().chain(&path.ack).flatten().any(|arc| impaired.contains(arc));
    let mut notes = Vec::new();
    if paths.is_empty() {
        notes.push(format!("{source} have no effect here: no packet crosses the network"));
    } else if impaired.is_empty() {
        notes.push("the rates of topology.outages have no effect here: they are the links' own".to_string());
    } else if !paths.iter().chain(later).any(crosses) {
        notes.push(format!("{source} have no effect here: no path crosses an impaired link"));
    } else if config.joins_ranks() {
        notes.push(
            "fidelity.join = \"ranks\" gives all ranks of a class the rate of the slowest: a slow link of topology.outages slows all of them down; \
             fidelity.join = \"collectives\" tells them apart"
                .to_string(),
        );
    }
    let jobs = config.jobs.iter().flat_map(|jobs| &jobs.jobs).map(|job| &job.workload);
    if !paths.is_empty() && std::iter::once(&config.workload).chain(jobs).any(has_formulas) {
        notes.push(format!(
            "communication that workload.analytic works out takes its time over links at their own rate, without {source}"
        ));
    }
    notes
}

/// Whether formulas give the times of some communication between servers.
fn has_formulas(workload: &WorkloadSection) -> bool {
    matches!(workload, WorkloadSection::Program(program) if program.communication.analytic != Analytic::default())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use hyperfold_config::sweep::{self, SetOverrides};
    use hyperfold_network::topology::parse_ns3;

    /// Hosts 0 and 1 at leaf 2, which has two links of 100 Gb/s to spine 3, and host 4 there at 25 Gb/s.
    fn network() -> Network {
        let links = "0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n2 3 100Gbps 1us 0\n3 2 100Gbps 1us 0\n3 4 25Gbps 1us 0\n";
        parse_ns3("test", &format!("5 2 5\n2 3\n{links}")).unwrap().network
    }

    /// The slow directions as (arc, Mb/s), or the error.
    fn found(outages: &str) -> Result<Vec<(u32, u64)>, String> {
        let text = format!(
            "name = \"t\"\n[base]\ncluster.gpus = 4\nworkload = {{ kind = \"traffic\", pattern = \"ring\", bytes = 1000 }}\ntopology.outages = {outages}\n"
        );
        let sweep = sweep::parse(&text, Path::new("s.toml"), &SetOverrides::default()).map_err(|e| e.to_string())?;
        let config = sweep.config(&sweep.experiments[0]).map_err(|e| e.to_string())?;
        let found = impairments(&config, &network()).map_err(|e| e.why)?;
        assert!(found.changes.is_empty(), "{outages}: {:?}", found.changes);
        Ok(found.slow.into_iter().map(|slow| (slow.arc, slow.rate_bps / BPS_PER_MBPS)).collect())
    }

    #[test]
    fn rates_are_given_to_directions() {
        for (outages, arcs) in [
            ("\"switch2 switch3 rate 25%\"", vec![(4, 25_000), (5, 25_000), (6, 25_000), (7, 25_000)]),
            ("\"switch3 -> switch2 rate 25%\"", vec![(5, 25_000), (6, 25_000)]),
            ("\"switch2 -> switch3#2 rate 40Gbps\"", vec![(7, 40_000)]),
            ("\"switch3 host4 rate 0.33%\"", vec![(8, 82), (9, 82)]),
            ("\"host4 rate 25Gbps\"", vec![]),
            ("\"switch3 rate 25Gbps\"", vec![(4, 25_000), (5, 25_000), (6, 25_000), (7, 25_000)]),
            ("[\"host0 -> switch2 rate 1Gbps\", \"switch2 -> host0 rate 2Gbps\"]", vec![(0, 1000), (1, 2000)]),
            (
                "[\"random 1 rate 50%\", \"switch2 switch3#1 rate 10%\"]",
                vec![(4, 10_000), (5, 10_000), (6, 50_000), (7, 50_000)],
            ),
        ] {
            assert_eq!(found(outages), Ok(arcs), "{outages}");
        }
    }

    /// The losses as (arc, share in units of 2^-32), where the link of host 4 has an error rate in the file.
    fn lost(outages: &str) -> Vec<(u32, u32)> {
        let mut net = network();
        net.lossy_links = vec![(4, 1 << 20)];
        let text = format!(
            "name = \"t\"\n[base]\ncluster.gpus = 4\nworkload = {{ kind = \"traffic\", pattern = \"ring\", bytes = 1000 }}\ntopology.outages = {outages}\n"
        );
        let sweep = sweep::parse(&text, Path::new("s.toml"), &SetOverrides::default()).expect("it is right");
        let config = sweep.config(&sweep.experiments[0]).expect("it is right");
        let found = impairments(&config, &net).expect("it is right");
        let mut lost: Vec<(u32, u32)> = found
            .changes
            .iter()
            .map(|timed| match timed.change {
                NetworkChange::Loss { arc, share_q32 } => (arc, share_q32),
                ref other => panic!("{other:?}"),
            })
            .collect();
        lost.sort_unstable();
        lost
    }

    #[test]
    fn error_rates_of_a_file_are_losses_where_no_entry_gives_one() {
        let (file, quarter, half) = (1 << 20, 1 << 30, 1 << 31);
        assert_eq!(lost("\"\""), [(8, file), (9, file)]);
        assert_eq!(lost("\"3 -> host4 loss 25%\""), [(8, quarter), (9, file)], "an id of the file is a name");
        let all: Vec<(u32, u32)> = (0..10)
            .map(|arc| {
                (
                    arc,
                    if arc == 1 {
                        half
                    } else if arc < 8 {
                        quarter
                    } else {
                        file
                    },
                )
            })
            .collect();
        assert_eq!(lost("[\"all loss 25%\", \"switch2 -> host0 loss 50%\"]"), all, "the order does not matter");
    }

    #[test]
    fn values_change_where_spans_begin_and_end() {
        let impaired = |from_ps, to_ps, value| Impaired { span: ImpairedSpan { from_ps, to_ps }, value, text: "" };
        for (spans, found) in [
            (vec![impaired(5, Some(7), 3)], vec![(5, 3), (7, 9)]),
            // One begins where another ends, with another value or the same.
            (vec![impaired(5, Some(7), 3), impaired(7, None, 4)], vec![(5, 3), (7, 4)]),
            (vec![impaired(5, Some(7), 3), impaired(7, Some(8), 3)], vec![(5, 3), (8, 9)]),
            (vec![impaired(0, Some(2), 3), impaired(4, Some(6), 9)], vec![(0, 3), (2, 9)]),
        ] {
            assert_eq!(steps(&spans, 9), found);
        }
    }

    #[test]
    fn wrong_rates_of_a_network_say_why() {
        for (outages, why) in [
            ("\"switch9 rate 25%\"", "no node is called `switch9`; there are host0 to host4, switch2 to switch3"),
            ("\"switch2 host4 rate 25%\"", "no packet link is there; switch2 is linked to host0, host1, switch3"),
            ("\"switch3 rate 26Gbps\"", "switch3 -> host4 has 25 Gb/s, and a rate cannot be above that of the link"),
            ("\"host4 rate 0.003%\"", "this share of it is below 1 Mb/s"),
            (
                "[\"switch2 switch3 rate 25%\", \"switch3 -> switch2#2 rate 50%\"]",
                "`switch2 switch3 rate 25%` gives switch3 -> switch2 a rate already",
            ),
            (
                "[\"random 1 rate 50%\", \"switch2 switch3 rate 10%\"]",
                "`random 1 rate 50%`: the network has 2 links between switches, and 2 of them have a rate already",
            ),
        ] {
            let said = found(outages).unwrap_err();
            assert!(said.contains(why), "{outages}: {said}");
        }
    }
}
