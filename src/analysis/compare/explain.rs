//! Explains why two experiments differ: by settings, parts of the time, links, and flows.
//!
//! Layer: compare. It only takes results apart, and does not guess what no file contains.

use std::collections::BTreeMap;

use super::metric::PARTS;
use super::pick::Pick;
use super::rank::percent;
use super::{CompareError, Section, Study, jobs, link_kinds, metric, resent, shared_links};
use hyperfold_config::spec::split_job_name;
use hyperfold_host::FlowOutcome;
use hyperfold_host::outcomes::timeline::Timeline;
use hyperfold_results::{Cell, FlowMeasures, FlowRecord, LinkRecord, Micro, Ps};

/// Column that is the sum of [`PARTS`].
const WHOLE: &str = "iteration_time_ns";

/// Tables of all known differences of two experiments, with at most `top` rows each. `timelines` are recorded timelines of both, if there are any; they show
/// the same rank of both.
///
/// # Errors
/// A companion file is damaged.
pub fn explain(
    study: &Study,
    a: Pick,
    b: Pick,
    timelines: Option<(&Timeline, &Timeline)>,
    top: usize,
) -> Result<Vec<Section>, CompareError> {
    let mut sections = vec![settings(study, a, b)];
    match jobs::of_two(study, a, b) {
        // Ranks of different jobs cannot be compared, so jobs replace the time of a rank.
        Some(jobs) => sections.push(jobs),
        None => {
            sections.extend(timelines.and_then(|(of_a, of_b)| time_of_a_rank(of_a, of_b)).or_else(|| time(study, a, b)))
        }
    }
    let mut metrics = metrics(study, a, b);
    resent::add_notes(&mut metrics, study, &[("a: ", a), ("b: ", b)]);
    sections.push(metrics);
    sections.extend(super::stated_errors::sections(study, a, b));
    sections.extend(shared_links::section(&[("a", &study.runs[a.run], a.row), ("b", &study.runs[b.run], b.row)], top)?);
    let (run_a, run_b) = (&study.runs[a.run], &study.runs[b.run]);
    let (id_a, id_b) = (run_a.exp_id(a.row), run_b.exp_id(b.row));
    if let (Some(of_a), Some(of_b)) = (run_a.links_of(id_a)?, run_b.links_of(id_b)?) {
        sections.push(link_kinds::section(&[("a", &of_a), ("b", &of_b)]));
        sections.push(links(&of_a, &of_b, top));
    }
    match (run_a.flows_of(id_a)?, run_b.flows_of(id_b)?, timelines) {
        (Some(of_a), Some(of_b), _) => sections.push(flows(&of_a, &of_b, top)),
        (_, _, Some((of_a, of_b))) => sections.push(flows(&recorded(of_a), &recorded(of_b), top)),
        _ => {}
    }
    Ok(sections)
}

/// Packet-hops of both experiments together, which is the work of simulating them again. `None`: one of them has no result.
pub fn packet_hops(study: &Study, a: Pick, b: Pick) -> Option<f64> {
    Some(a.number(study, "packet_hops")? + b.number(study, "packet_hops")?)
}

/// Messages of a timeline, in the form of rows of `flows.csv`.
fn recorded(t: &Timeline) -> Vec<FlowRecord> {
    let record = |f: &FlowOutcome| {
        let FlowOutcome { id, src, dst, bytes, start_ps, fct_ps, .. } = *f;
        FlowRecord {
            flow_id: id,
            src,
            dst,
            bytes,
            start: Ps(start_ps),
            fct: fct_ps.map(Ps),
            measures: FlowMeasures::default(),
        }
    };
    t.messages.iter().map(|m| record(&m.flow)).collect()
}

fn settings(study: &Study, a: Pick, b: Pick) -> Section {
    let title = format!("a is experiment {}, b is {}", a.name(study), b.name(study));
    let mut section = Section::new("explain_settings", title, ["key", "a", "b"]);
    let configuration_of = |p: Pick| study.configurations.iter().find(|c| c.run == p.run && c.rows.contains(&p.row));
    if let (Some(ca), Some(cb)) = (configuration_of(a), configuration_of(b)) {
        for (axis_idx, axis) in study.axes.iter().enumerate() {
            if ca.values[axis_idx].to_string() != cb.values[axis_idx].to_string() {
                section.rows.push(vec![axis.as_str().into(), ca.values[axis_idx].clone(), cb.values[axis_idx].clone()]);
            }
        }
        if section.rows.is_empty() {
            let same = ca.config_key == cb.config_key;
            let why = if same {
                "both have the same configuration"
            } else {
                "no axis differs; an input file or the model's version does, since config_key differs"
            };
            section.notes.push(why.into());
        }
        let replicas = ca.rows.len().max(cb.rows.len());
        if replicas > 1 && ca.config_key != cb.config_key {
            let [x, y] = [a, b].map(|pick| study.runs[pick.run].replica(pick.row));
            section.notes.push(format!(
                "one replica of each is compared, {x} with {y} of {replicas}; a ranking (`compare` without --explain) takes all"
            ));
        }
    }
    for key in ["replica", "seed", "status", "error"] {
        let (x, y) = (a.cell(study, key), b.cell(study, key));
        if x != y {
            section.rows.push(vec![key.into(), x, y]);
        }
    }
    section
}

/// Parts of the iteration time in both experiments, on the rank that ends last in `a`. `None`: there is no iteration, it did not end, or the ranks differ.
fn time_of_a_rank(a: &Timeline, b: &Timeline) -> Option<Section> {
    let (last_a, last_b) = (a.critical_rank()?, b.critical_rank()?);
    let parts = |t: &Timeline| {
        let b = t.breakdown(last_a)?;
        let [tp, pp, dp, ep, cp, rest] = b.exposed;
        let parts = [b.compute, tp, pp, dp, ep, cp, b.bubble, b.optimizer, b.other + rest];
        Some((parts.map(|ps| ps as f64 / 1e3), b.total as f64 / 1e3))
    };
    let ((of_a, whole_a), (of_b, whole_b)) = (parts(a)?, parts(b)?);
    let rows = PARTS.iter().zip(of_a).zip(of_b).map(|((part, x), y)| (*part, x, y)).collect();
    let title = format!("where the iteration's time goes, on rank {last_a} of both");
    let mut section = time_table(title, rows, whole_a, whole_b);
    section.notes.push(if last_a == last_b {
        format!("rank {last_a} ends last in both")
    } else {
        format!("rank {last_a} ends last in a, rank {last_b} in b; results.csv has the parts of the one that ends last")
    });
    Some(section)
}

/// Parts of the iteration time in both experiments. `None`: one of them has no iteration.
fn time(study: &Study, a: Pick, b: Pick) -> Option<Section> {
    let (whole_a, whole_b) = (a.number(study, WHOLE)?, b.number(study, WHOLE)?);
    let part_ns = |p: Pick, part: &str| p.number(study, part).unwrap_or(0.0);
    let rows = PARTS.iter().map(|p| (*p, part_ns(a, p), part_ns(b, p))).collect();
    let mut section = time_table("where the iteration's time goes".into(), rows, whole_a, whole_b);
    section.notes.push(
        "each on the rank that ends last, which may be another one; --ops simulates both again and shows the same rank"
            .into(),
    );
    Some(section)
}

/// Table of parts by their difference, then the whole. `rows` are the name of a part and its times in a and b. Shares of the difference add up to 100.
fn time_table(title: String, mut rows: Vec<(&str, f64, f64)>, whole_a: f64, whole_b: f64) -> Section {
    let columns = ["part", "a", "b", "difference", "share of difference %"];
    let mut section = Section::new("explain_time", title, columns);
    rows.retain(|r| r.1 != 0.0 || r.2 != 0.0);
    rows.sort_by(|x, y| (y.2 - y.1).abs().total_cmp(&(x.2 - x.1).abs()));
    let total = whole_b - whole_a;
    for (part, x, y) in rows.iter().copied().chain([(WHOLE, whole_a, whole_b)]) {
        let share = (total != 0.0).then(|| (y - x) / total * 100.0);
        section.rows.push(vec![part.into(), x.into(), y.into(), (y - x).into(), share.into()]);
    }
    section.notes.push(why(&rows, whole_a, total));
    section
}

/// A sentence that names the largest part of the difference, and the largest part that works against it.
fn why(rows: &[(&str, f64, f64)], whole: f64, total: f64) -> String {
    if total == 0.0 {
        return "both take equally long".into();
    }
    let named = |(part, x, y): &(&str, f64, f64)| {
        format!("{} ({:+.2} % of a's iteration)", in_words(part), (y - x) / whole * 100.0)
    };
    let first = |same_sign: bool| rows.iter().find(|(_, x, y)| x != y && ((y - x > 0.0) == (total > 0.0)) == same_sign);
    let how = if total > 0.0 { "longer" } else { "less long" };
    let amount = percent(whole + total, whole).map(|p| format!("{:.2} % ", p.abs())).unwrap_or_default();
    let mut text = format!("b takes {amount}{how}");
    text += &first(true).map(|r| format!("; most of that is {}", named(r))).unwrap_or_default();
    text += &first(false).map(|r| format!("; what works against it most is {}", named(r))).unwrap_or_default();
    text
}

/// Plain name of a part of an iteration.
pub(super) fn in_words(part: &str) -> String {
    let bare = part.trim_end_matches("_ns");
    let dimension = match bare.strip_prefix("comm_exposed_") {
        Some("tp") => "tensor-parallel",
        Some("pp") => "pipeline",
        Some("dp") => "data-parallel",
        Some("ep") => "expert",
        Some("cp") => "context-parallel",
        _ => return bare.to_string(),
    };
    format!("exposed {dimension} communication")
}

fn metrics(study: &Study, a: Pick, b: Pick) -> Section {
    let mut section = Section::new("explain_metrics", "metrics", ["metric", "a", "b", "difference", "difference %"]);
    for name in metric::available(study).iter().filter(|n| !PARTS.contains(&n.as_str()) && split_job_name(n).is_none())
    {
        let (x, y) = (a.number(study, name), b.number(study, name));
        if x.is_some() || y.is_some() {
            let difference = x.zip(y).map(|(x, y)| y - x);
            let relative = x.zip(y).and_then(|(x, y)| percent(y, x));
            section.rows.push(vec![name.as_str().into(), x.into(), y.into(), difference.into(), relative.into()]);
        }
    }
    let name = "bottleneck_link";
    let (x, y) = (a.cell(study, name), b.cell(study, name));
    if x != y {
        section.rows.push(vec![name.into(), x, y, Cell::Empty, Cell::Empty]);
    }
    section
}

/// Table of the links that both experiments have, largest difference of use first. The difference is the larger one of two: of utilisation, and of the
/// largest queue as a share of the largest queue of all links.
fn links(a: &[LinkRecord], b: &[LinkRecord], top: usize) -> Section {
    let columns = [
        "link",
        "utilisation a",
        "utilisation b",
        "max_queue_bytes a",
        "max_queue_bytes b",
        "ecn_marks a",
        "ecn_marks b",
        "pfc_pauses a",
        "pfc_pauses b",
    ];
    let mut section = Section::new("explain_links", "links whose use differs most", columns);
    let of_b: BTreeMap<&str, &LinkRecord> = b.iter().map(|l| (l.link.as_str(), l)).collect();
    let mut both: Vec<(&LinkRecord, &LinkRecord)> =
        a.iter().filter_map(|l| of_b.get(l.link.as_str()).map(|m| (l, *m))).collect();
    let queued = |l: &LinkRecord| l.packets.map(|p| p.max_queue_bytes);
    let largest = a.iter().chain(b).filter_map(queued).max().unwrap_or(0);
    let difference = |(x, y): &(&LinkRecord, &LinkRecord)| {
        // If one of them had no packets, queues are not compared.
        let queues = queued(x).zip(queued(y)).map_or(0, |(x, y)| x.abs_diff(y));
        let queue = Micro::ratio(queues.into(), largest.into()).0;
        x.utilisation.0.abs_diff(y.utilisation.0).max(queue)
    };
    let common = both.len();
    let counts = |l: &LinkRecord| l.packets.map(|p| (p.ecn_marks, p.pfc_pauses));
    let differ = |(x, y): &(&LinkRecord, &LinkRecord)| counts(x).zip(counts(y)).is_some_and(|(x, y)| x != y);
    both.retain(|l| difference(l) > 0 || differ(l));
    both.sort_by(|x, y| difference(y).cmp(&difference(x)).then_with(|| x.0.link.cmp(&y.0.link)));
    for (x, y) in both.iter().take(top) {
        let pair = |f: fn(&LinkRecord) -> Cell| [f(x), f(y)];
        let mut row: Vec<Cell> = vec![x.link.as_str().into()];
        row.extend(pair(|l| l.utilisation.into()));
        row.extend(pair(|l| l.packets.map(|p| p.max_queue_bytes).into()));
        row.extend(pair(|l| l.packets.map(|p| p.ecn_marks).into()));
        row.extend(pair(|l| l.packets.map(|p| p.pfc_pauses).into()));
        section.rows.push(row);
    }
    section.notes.push(format!("links that differ: {} of {common} that both have", both.len()));
    let (only_a, only_b) = (a.len() - common, b.len() - common);
    if only_a > 0 || only_b > 0 {
        section
            .notes
            .push(format!("links that only one has: {only_a} in a, {only_b} in b; links are compared by name"));
    }
    section
}

/// Table of the flows of both experiments, summed by source and destination. The n-th flow of a size between two ranks is the same flow in both.
fn flows(a: &[FlowRecord], b: &[FlowRecord], top: usize) -> Section {
    #[derive(Default)]
    struct Pair {
        flows: u64,
        bytes: u64,
        a: u128,
        b: u128,
        worst: Option<(u64, u32)>,
    }
    let columns = [
        "src",
        "dst",
        "flows",
        "bytes",
        "mean fct a ns",
        "mean fct b ns",
        "difference ns",
        "difference %",
        "worst flow_id in a",
    ];
    let mut section = Section::new("explain_flows", "pairs of ranks whose flows differ most", columns);
    type Name = (u32, u32, u64, u32);
    fn named(flows: &[FlowRecord]) -> BTreeMap<Name, &FlowRecord> {
        let mut count: BTreeMap<(u32, u32, u64), u32> = BTreeMap::new();
        let mut name = |f: &FlowRecord| {
            let n = count.entry((f.src, f.dst, f.bytes)).or_default();
            *n += 1;
            (f.src, f.dst, f.bytes, *n)
        };
        flows.iter().map(|f| (name(f), f)).collect()
    }
    let (of_a, of_b) = (named(a), named(b));
    let mut pairs: BTreeMap<(u32, u32), Pair> = BTreeMap::new();
    let mut common = 0;
    for (name, x) in &of_a {
        let Some(y) = of_b.get(name) else { continue };
        common += 1;
        if let (Some(Ps(fx)), Some(Ps(fy))) = (x.fct, y.fct) {
            let p = pairs.entry((x.src, x.dst)).or_default();
            (p.flows, p.bytes, p.a, p.b) = (p.flows + 1, p.bytes + x.bytes, p.a + u128::from(fx), p.b + u128::from(fy));
            if fx.abs_diff(fy) > p.worst.map_or(0, |w| w.0) {
                p.worst = Some((fx.abs_diff(fy), x.flow_id));
            }
        }
    }
    let mut order: Vec<(&(u32, u32), &Pair)> = pairs.iter().filter(|(_, p)| p.worst.is_some()).collect();
    order.sort_by_key(|(ends, p)| (std::cmp::Reverse(p.a.abs_diff(p.b)), **ends));
    for ((src, dst), p) in order.iter().take(top) {
        let mean = |sum: u128| sum as f64 / p.flows as f64 / 1e3;
        let (x, y) = (mean(p.a), mean(p.b));
        let mut row: Vec<Cell> = [*src, *dst].map(Cell::from).to_vec();
        row.extend([
            p.flows.into(),
            p.bytes.into(),
            x.into(),
            y.into(),
            (y - x).into(),
            percent(y, x).into(),
            p.worst.map(|w| w.1).into(),
        ]);
        section.rows.push(row);
    }
    section.notes.push(format!("pairs of ranks that differ: {} of {}", order.len(), pairs.len()));
    let (only_a, only_b) = (of_a.len() - common, of_b.len() - common);
    if only_a > 0 || only_b > 0 {
        section.notes.push(format!(
            "flows that only one has: {only_a} in a, {only_b} in b; flows are the same if ends and bytes are"
        ));
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, flow, iteration, link, ok};

    #[test]
    fn the_difference_is_taken_apart() {
        let mut one = iteration(ok(0, "a", &["x"], 1_000_000), 900_000, 100_000);
        let mut two = iteration(ok(1, "b", &["y"], 1_200_000), 900_000, 300_000);
        one.links = vec![link("0->1", 500_000, 10), link("1->0", 1, 0), link("2->0", 1, 0)];
        two.links = vec![link("0->1", 400_000, 10), link("1->0", 1, 9), link("3->0", 1, 0)];
        one.flows = vec![flow(0, 0, 1, 1_000), flow(1, 0, 1, 2_000), flow(2, 1, 0, 5_000)];
        two.flows = vec![flow(0, 1, 0, 5_000), flow(1, 0, 1, 1_000), flow(2, 0, 1, 4_000), flow(3, 7, 8, 1)];
        let folder = Folder::new(&["transport.cc"], vec![one, two]);
        let study = Study::open(&[folder.path()]).unwrap();
        let picks = ["0", "1"].map(|p| Pick::parse(&study, p, 0).unwrap());
        let sections = explain(&study, picks[0], picks[1], None, 10).unwrap();
        assert_eq!(
            sections.iter().map(|s| s.kind).collect::<Vec<_>>(),
            [
                "explain_settings",
                "explain_time",
                "explain_metrics",
                "explain_link_kinds",
                "explain_links",
                "explain_flows"
            ]
        );
        assert_eq!(sections[0].rows[0], ["transport.cc".into(), "x".into(), Cell::from("y")]);
        let time = &sections[1].rows;
        assert_eq!(
            time[0],
            ["comm_exposed_dp_ns".into(), Cell::Real(100.0), Cell::Real(300.0), Cell::Real(200.0), Cell::Real(100.0)]
        );
        assert_eq!(time.last().unwrap()[3], Cell::Real(200.0), "the parts' differences add up");
        let shares = |rows: &[Vec<Cell>]| rows.iter().filter_map(|r| r[4].number()).sum::<f64>();
        assert!((shares(&time[..time.len() - 1]) - 100.0).abs() < 1e-9, "and so do their shares");
        let links = &sections[4];
        assert_eq!(
            (links.rows[0][0].to_string(), links.rows[1][0].to_string(), links.rows.len()),
            ("1->0".into(), "0->1".into(), 2)
        );
        assert!(links.notes[1].contains("links that only one has: 1 in a, 1 in b"));
        let flows = &sections[5];
        assert_eq!(flows.rows.len(), 1, "what is equal is left out");
        assert_eq!(
            (flows.rows[0][4].clone(), flows.rows[0][5].clone(), flows.rows[0][8].clone()),
            (Cell::Real(1.5), Cell::Real(2.5), Cell::Unsigned(1))
        );
        assert!(flows.notes[1].contains("flows that only one has: 0 in a, 1 in b"));
    }

    #[test]
    fn a_gain_is_explained_by_what_got_better() {
        let rows = [("bubble_ns", 100.0, 117.0), ("compute_ns", 800.0, 770.0), ("other_ns", 100.0, 98.0)];
        let why = why(&rows, 1000.0, -15.0);
        assert_eq!(
            why,
            "b takes 1.50 % less long; most of that is compute (-3.00 % of a's iteration); what works against it most is bubble (+1.70 % of a's iteration)"
        );
    }

    #[test]
    fn experiments_are_named_by_id_or_folder() {
        let one = Folder::new(&["transport.cc"], vec![ok(3, "a", &["x"], 1_000)]);
        let two = Folder::new(&["transport.cc"], vec![ok(4, "a", &["x"], 1_000)]);
        let study = Study::open(&[one.path(), two.path()]).unwrap();
        assert_eq!(Pick::parse(&study, "3", 0).unwrap(), Pick { run: 0, row: 0 });
        assert_eq!(Pick::parse(&study, "4", 1).unwrap(), Pick { run: 1, row: 0 });
        assert_eq!(Pick::parse(&study, &format!("{}:4", two.path().display()), 0).unwrap(), Pick { run: 1, row: 0 });
        let why = |text: &str| Pick::parse(&study, text, 0).unwrap_err().to_string();
        assert!(why("7").contains("no experiment 7"));
        assert!(why("elsewhere:7").contains("not one of the folders"));
        assert!(why("x").contains("write an exp_id"));
    }
}
