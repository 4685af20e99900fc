//! Compares two timelines: kernels, collectives, sends and receives by name.
//!
//! Layer: compare. It sums over all ranks, because a slow operation on one rank makes others wait.

use std::collections::BTreeMap;

use super::Section;
use super::rank::percent;
use hyperfold_columns::NEVER;
use hyperfold_host::outcomes::timeline::Timeline;
use hyperfold_llm::workload::program::OpKind;
use hyperfold_results::Cell;

/// Sum over the operations of one name: their number and their time in ps.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    n: u64,
    ps: u128,
    /// Part of `ps` until the peers were there.
    waited: u128,
}

/// Identity of operations that are compared: what they are, their part of the iteration, and their name.
type Name = (&'static str, &'static str, String);

fn sums(t: &Timeline) -> BTreeMap<Name, Sum> {
    let mut sums: BTreeMap<Name, Sum> = BTreeMap::new();
    let Some(job) = &t.job else { return sums };
    let w = &job.workload;
    for span in t.ops.iter().filter(|s| s.end != NEVER) {
        let op = &w.programs[w.ranks[span.rank as usize].program as usize].ops[span.op as usize];
        let (kind, part) = match op.kind {
            OpKind::Compute { phase, .. } => ("compute", phase.name()),
            OpKind::Collective { dim, .. } => ("collective", dim.name()),
            OpKind::Send { dim, .. } => ("send", dim.name()),
            OpKind::Recv { dim, .. } => ("receive", dim.name()),
            OpKind::Join => continue,
        };
        let name = w.names.get(op.name).unwrap_or_default().to_string();
        let sum = sums.entry((kind, part, name)).or_default();
        sum.n += 1;
        sum.ps += u128::from(span.end - span.begin);
        sum.waited += u128::from(span.go.clamp(span.begin, span.end) - span.begin);
    }
    sums
}

/// Table of the `top` names whose times per rank differ most.
pub fn section(a: &Timeline, b: &Timeline, top: usize) -> Section {
    let columns = [
        "op",
        "part",
        "name",
        "count a",
        "count b",
        "mean a ns",
        "mean b ns",
        "mean %",
        "waited a ns",
        "waited b ns",
        "per rank difference ns",
    ];
    let mut section = Section::new("explain_ops", "operations whose times differ most, over all ranks", columns);
    let (of_a, of_b) = (sums(a), sums(b));
    if of_a.is_empty() || of_b.is_empty() {
        section.notes.push("flows have no kernels and collectives; only programs do".into());
        return section;
    }
    let ranks = |t: &Timeline| t.job.as_ref().map_or(1, |j| j.workload.ranks.len().max(1)) as f64;
    let (ranks_a, ranks_b) = (ranks(a), ranks(b));
    let mut names: Vec<&Name> = of_a.keys().chain(of_b.keys().filter(|n| !of_a.contains_key(*n))).collect();
    let sum = |sums_of_one: &BTreeMap<Name, Sum>, name: &Name| sums_of_one.get(name).copied().unwrap_or_default();
    let difference = |name: &Name| sum(&of_b, name).ps as f64 / ranks_b - sum(&of_a, name).ps as f64 / ranks_a;
    let n = names.len();
    names.retain(|name| difference(name) != 0.0);
    names.sort_by(|x, y| difference(y).abs().total_cmp(&difference(x).abs()).then_with(|| x.cmp(y)));
    for name in names.iter().take(top) {
        let (x, y) = (sum(&of_a, name), sum(&of_b, name));
        let mean = |s: Sum, ps: u128| (s.n > 0).then(|| ps as f64 / s.n as f64 / 1e3);
        let (mean_x, mean_y) = (mean(x, x.ps), mean(y, y.ps));
        let mut row: Vec<Cell> = vec![name.0.into(), name.1.into(), name.2.as_str().into(), x.n.into(), y.n.into()];
        row.extend(
            [
                mean_x,
                mean_y,
                mean_x.zip(mean_y).and_then(|(x, y)| percent(y, x)),
                mean(x, x.waited),
                mean(y, y.waited),
                Some(difference(name) / 1e3),
            ]
            .map(Cell::from),
        );
        section.rows.push(row);
    }
    if let Some(name) = names.first() {
        let difference = difference(name) / 1e3;
        let operation = if name.2.is_empty() { name.1.to_string() } else { format!("{} ({})", name.2, name.1) };
        let (more, per_rank) = (if difference > 0.0 { "longer" } else { "less long" }, difference.abs());
        section.notes.push(format!("{} {operation} takes b's ranks {} {more} each", name.0, in_ns(per_rank)));
    }
    section.notes.push(format!(
        "{} of {n} names differ; waited: until the peers were there; times overlap, so differences do not add up to the iteration's",
        names.len()
    ));
    section.notes.extend(
        [("a", a), ("b", b)]
            .iter()
            .filter_map(|(which, t)| t.cut.as_ref().map(|why| format!("{which} did not end: {why}"))),
    );
    section
}

/// A time in ns as text, with the unit that fits and four digits.
fn in_ns(ns: f64) -> String {
    let (value, unit) = match ns {
        _ if ns < 1e3 => (ns, "ns"),
        _ if ns < 1e6 => (ns / 1e3, "us"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = if value < 10.0 {
        3
    } else if value < 100.0 {
        2
    } else {
        1
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_config::sweep::{self, SetOverrides};
    use hyperfold_host::outcomes::timeline::{RecordedSpan, record};

    fn timeline(link_gbps: u32) -> Timeline {
        let text = format!(
            "name = \"t\"\n[base.cluster]\ngpus = 4\ngpus_per_server = 1\nnics_per_server = 1\n[base.topology]\nlink_gbps = {link_gbps}\n\
             [base.workload]\nkind = \"collective\"\nop = \"all-reduce\"\nbytes = 1000000\n"
        );
        let sweep = sweep::parse(&text, std::path::Path::new("t.toml"), &SetOverrides(Vec::new())).unwrap();
        record(&sweep.config(&sweep.experiments[0]).unwrap(), 0, RecordedSpan::default(), &|| false).unwrap()
    }

    #[test]
    fn a_collective_takes_longer_on_slower_links() {
        let (fast, slow) = (timeline(400), timeline(100));
        let section = section(&fast, &slow, 5);
        assert_eq!(section.rows.len(), 1);
        let row = &section.rows[0];
        assert_eq!(
            row[..5],
            ["collective".into(), "other".into(), "all-reduce".into(), Cell::Unsigned(4), Cell::Unsigned(4)]
        );
        let mean = |c: usize| row[c].number().unwrap();
        assert!(mean(6) > 1.5 * mean(5), "{row:?}");
        assert!((mean(10) - (mean(6) - mean(5))).abs() < 1e-6, "one op a rank: the mean's difference");
        assert!(mean(6) <= slow.makespan_ps as f64 / 1e3);
        assert!(super::section(&fast, &fast, 5).rows.is_empty());
    }
}
