//! Converts samples over time to rows of `series_links.csv` and `series_flows.csv`.
//!
//! Layer: session.

use std::sync::Arc;

use hyperfold_base::units::BPS_PER_GBPS;
use hyperfold_host::{ExperimentOutcome, FlowSampleOutcome, LinkSampleOutcome, nodes_of_link};
use hyperfold_results::{FlowSampleRecord, LinkSampleRecord, Micro, Ps};

/// Converts the samples of an experiment, which are dropped; empty if there are none.
pub(crate) fn series(outcome: &mut ExperimentOutcome) -> (Vec<LinkSampleRecord>, Vec<FlowSampleRecord>) {
    let Some(series) = outcome.series.take() else { return Default::default() };
    let interval = Ps(series.interval_ps);
    // Rows are many, so they share names.
    let names: Vec<Arc<str>> = outcome.links.iter().map(|link| link.name.as_str().into()).collect();
    let sources: Vec<Arc<str>> = names.iter().map(|name| nodes_of_link(name).0.into()).collect();
    let link = |s: &LinkSampleOutcome| LinkSampleRecord {
        time: Ps(s.time_ps),
        interval,
        link: Arc::clone(&names[s.link as usize]),
        queue_bytes: s.queue_bytes,
        tx_bytes: s.tx_bytes,
        ecn_marks: s.marks,
        pfc_pauses: s.pauses,
        paused: s.paused,
        drops: s.drops,
        paused_time: Some(Ps(s.paused_ps)),
    };
    let flow = |s: &FlowSampleOutcome| FlowSampleRecord {
        time: Ps(s.time_ps),
        interval,
        flow_id: s.id,
        source: Arc::clone(&sources[s.source_link as usize]),
        target: Arc::clone(&sources[s.target_link as usize]),
        rate_gbps: Micro::ratio(s.rate_bps.into(), BPS_PER_GBPS.into()),
        window_bytes: s.window_bytes,
        outstanding_bytes: s.outstanding_bytes,
        acked_bytes: s.acked_bytes,
    };
    (series.links.iter().map(link).collect(), series.flows.iter().map(flow).collect())
}
