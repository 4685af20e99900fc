//! Converts samples over time to rows of `series_links.csv` and `series_flows.csv`.
//!
//! Layer: session.

use hyperfold_base::units::BPS_PER_GBPS;
use hyperfold_host::{ExperimentOutcome, FlowSampleOutcome, LinkSampleOutcome, nodes_of_link};
use hyperfold_results::{FlowSampleRecord, LinkSampleRecord, Micro, Ps};

/// Converts the samples of an experiment; empty if there are none.
pub(crate) fn series(outcome: &ExperimentOutcome) -> (Vec<LinkSampleRecord>, Vec<FlowSampleRecord>) {
    let Some(series) = &outcome.series else { return Default::default() };
    let interval = Ps(series.interval_ps);
    let name = |link: u32| outcome.links[link as usize].name.as_str();
    let link = |s: &LinkSampleOutcome| LinkSampleRecord {
        time: Ps(s.time_ps),
        interval,
        link: name(s.link).to_string(),
        queue_bytes: s.queue_bytes,
        tx_bytes: s.tx_bytes,
        ecn_marks: s.marks,
        pfc_pauses: s.pauses,
        paused: s.paused,
        drops: s.drops,
    };
    let flow = |s: &FlowSampleOutcome| FlowSampleRecord {
        time: Ps(s.time_ps),
        interval,
        flow_id: s.id,
        source: nodes_of_link(name(s.source_link)).0.to_string(),
        target: nodes_of_link(name(s.target_link)).0.to_string(),
        rate_gbps: Micro::ratio(s.rate_bps.into(), BPS_PER_GBPS.into()),
        window_bytes: s.window_bytes,
        outstanding_bytes: s.outstanding_bytes,
        acked_bytes: s.acked_bytes,
    };
    (series.links.iter().map(link).collect(), series.flows.iter().map(flow).collect())
}
