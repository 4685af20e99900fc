//! Explains a single experiment: parts of its time, busy links, and slow flows.
//!
//! Layer: compare. The counterpart of [`explain`](fn@super::explain), which compares two experiments.

use super::explain::in_words;
use super::metric::{PARTS, available};
use super::pick::Pick;
use super::{CompareError, Section, Study, jobs, link_kinds, resent, shared_links};
use hyperfold_config::spec::split_job_name;
use hyperfold_results::{Cell, FlowRecord, LinkRecord};

const WHOLE: &str = "iteration_time_ns";

/// Tables of all that the folder's files say about one experiment, with at most `top` rows each.
///
/// # Errors
/// A companion file is damaged.
pub fn explain_one(study: &Study, pick: Pick, top: usize) -> Result<Vec<Section>, CompareError> {
    let mut sections = vec![settings(study, pick)];
    sections.extend(jobs::of_one(study, pick).or_else(|| time(study, pick)));
    sections.push(metrics(study, pick));
    sections.retain(|section| !section.rows.is_empty());
    let run = &study.runs[pick.run];
    let id = run.exp_id(pick.row);
    sections.extend(shared_links::section(&[("", run, pick.row)], top)?);
    if let Some(all) = run.links_of(id)? {
        sections.push(link_kinds::section(&[("", &all)]));
        sections.push(links(all, top));
    }
    if let Some(all) = run.flows_of(id)? {
        sections.push(flows(all, top));
    }
    Ok(sections)
}

fn settings(study: &Study, pick: Pick) -> Section {
    let mut section = Section::new("explain_settings", format!("experiment {}", pick.name(study)), ["key", "value"]);
    if let Some(c) = study.configurations.iter().find(|c| c.run == pick.run && c.rows.contains(&pick.row)) {
        let axes = study.axes.iter().zip(&c.values).filter(|(_, value)| **value != Cell::Empty);
        section.rows.extend(axes.map(|(axis, value)| vec![axis.as_str().into(), value.clone()]));
    }
    for key in ["replica", "seed", "status"] {
        section.rows.push(vec![key.into(), pick.cell(study, key)]);
    }
    // The full error message, because a cell would be clipped.
    let error = pick.cell(study, "error");
    section.notes.extend((error != Cell::Empty).then(|| error.to_string()));
    section.rows.retain(|row| row[1] != Cell::Empty);
    section
}

/// Table of the parts of the iteration, largest first. `None`: there is no iteration.
fn time(study: &Study, pick: Pick) -> Option<Section> {
    let whole = pick.number(study, WHOLE).filter(|whole| *whole > 0.0)?;
    let mut parts: Vec<(&str, f64)> =
        PARTS.iter().map(|part| (*part, pick.number(study, part).unwrap_or(0.0))).filter(|p| p.1 != 0.0).collect();
    parts.sort_by(|x, y| y.1.total_cmp(&x.1));
    let title = "where the iteration's time goes, on the rank that ends last";
    let mut section = Section::new("explain_time", title, ["part", "time_ns", "share %"]);
    let row = |name: &str, ns: f64| vec![name.into(), ns.into(), (ns / whole * 100.0).into()];
    section.rows.extend(parts.iter().map(|(name, ns)| row(name, *ns)));
    section.rows.push(row(WHOLE, whole));
    if let Some((name, ns)) = parts.iter().find(|(name, _)| name.starts_with("comm_exposed")) {
        let largest = format!("{} takes {:.1} % of it", in_words(name), ns / whole * 100.0);
        section.notes.push(format!("of what the network could shorten, {largest}, the most"));
    }
    Some(section)
}

fn metrics(study: &Study, pick: Pick) -> Section {
    let mut section = Section::new("explain_metrics", "metrics", ["metric", "value"]);
    let numbers =
        available(study).into_iter().filter(|name| !PARTS.contains(&name.as_str()) && split_job_name(name).is_none());
    let words = ["bottleneck_link", "algorithm", "protocol", "validated_error"].map(String::from);
    let row = |name: String| vec![name.as_str().into(), pick.cell(study, &name)];
    section.rows.extend(numbers.chain(words).map(row).filter(|row| row[1] != Cell::Empty));
    resent::add_notes(&mut section, study, &[("", pick)]);
    section
}

/// Table of the busiest links.
fn links(mut all: Vec<LinkRecord>, top: usize) -> Section {
    let columns = [
        "link",
        "utilisation",
        "max_queue_bytes",
        "ecn_marks",
        "pfc_pauses",
        "pfc_paused_ns",
        "drops",
        "capacity_gbps",
    ];
    let mut section = Section::new("explain_links", "busiest links", columns);
    all.sort_by(|x, y| y.utilisation.0.cmp(&x.utilisation.0).then_with(|| x.link.cmp(&y.link)));
    section.rows.extend(all.iter().take(top).map(|l| {
        vec![
            l.link.as_str().into(),
            l.utilisation.into(),
            l.packets.map(|p| p.max_queue_bytes).into(),
            l.packets.map(|p| p.ecn_marks).into(),
            l.packets.map(|p| p.pfc_pauses).into(),
            l.pauses.paused.into(),
            l.packets.map(|p| p.drops).into(),
            l.ends.as_ref().map(|ends| ends.capacity_gbps).into(),
        ]
    }));
    section
}

/// Table of the slowest flows. Flows that did not end come first.
fn flows(mut all: Vec<FlowRecord>, top: usize) -> Section {
    let columns = ["flow_id", "src", "dst", "bytes", "start_ns", "fct_ns", "slowdown", "retransmissions"];
    let mut section = Section::new("explain_flows", "slowest flows", columns);
    let time = |f: &FlowRecord| f.fct.map_or(u64::MAX, |fct| fct.0);
    all.sort_by_key(|f| (std::cmp::Reverse(time(f)), f.flow_id));
    section.rows.extend(all.iter().take(top).map(|f| {
        vec![
            f.flow_id.into(),
            f.src.into(),
            f.dst.into(),
            f.bytes.into(),
            f.start.into(),
            f.fct.into(),
            f.measures.slowdown.into(),
            f.measures.retransmissions.into(),
        ]
    }));
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, flow, iteration, link, ok};

    #[test]
    fn an_experiment_is_taken_apart() {
        let mut one = iteration(ok(0, "a", &["x"], 1_000_000), 900_000, 100_000);
        one.links = vec![link("leaf0->host1", 500_000, 10), link("leaf0->host2", 700_000, 0)];
        one.flows = vec![flow(0, 0, 1, 1_000), flow(1, 0, 1, 2_000)];
        let folder = Folder::new(&["transport.cc"], vec![one]);
        let study = Study::open(&[folder.path()]).unwrap();
        let sections = explain_one(&study, Pick::parse(&study, "0", 0).unwrap(), 1).unwrap();
        let kinds: Vec<&str> = sections.iter().map(|s| s.kind).collect();
        let all = "explain_settings explain_time explain_metrics explain_link_kinds explain_links explain_flows";
        assert_eq!(kinds.join(" "), all);
        assert_eq!(sections[0].rows[0], ["transport.cc".into(), Cell::from("x")]);
        assert_eq!(sections[1].rows[0], ["compute_ns".into(), Cell::Real(900.0), Cell::Real(90.0)]);
        assert!(sections[1].notes[0].contains("exposed data-parallel communication takes 10.0 %"));
        assert_eq!((sections[4].rows.len(), sections[4].rows[0][0].to_string()), (1, "leaf0->host2".into()));
        assert_eq!(sections[5].rows[0][0], Cell::from(1u32));
    }
}
