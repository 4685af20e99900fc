//! Converts outcomes of the simulation to result records.
//!
//! Layer: session. Between `host`, which formats nothing, and `results`, which simulates nothing.

use crate::records::convert_iteration::measured_iteration;
use crate::records::convert_jobs::{jobs, shared_links};
use crate::records::convert_series::series;
use crate::records::convert_serving::{requests, serving};
use hyperfold_base::units::BPS_PER_GBPS;
use hyperfold_config::spec::Config;
use hyperfold_engine::FoldStats;
use hyperfold_host::cost::usd_per_mtoken;
use hyperfold_host::{Ended, Ending, ExperimentOutcome, FlowOutcome, LinkOutcome, MeanRoundTrip, nodes_of_link};
use hyperfold_network::topology::REDUCER_WORD;
use hyperfold_results::approximate::MESSAGES_UP_TO;
use hyperfold_results::{
    ExperimentRecord, Finished, FlowMeasures, FlowRecord, FoldingRecord, LinkEnds, LinkPackets, LinkPauses, LinkRecord,
    MeanRttRecord, Micro, Outputs, Ps, RttRecord, StatsRecord, fct_stats, utilisation,
};
use hyperfold_validated::Worth;

/// Converts a finished experiment for writing. `record` holds its identity; `outputs` says which companion files are asked for.
pub(crate) fn finished(record: ExperimentRecord, ended: Ended, outputs: &Outputs, config: &Config) -> Finished {
    let hops = ended.packet_hops;
    let folds = ended.folds.unwrap_or(FoldStats { hops_simulated: hops, hops_plain: hops, ..FoldStats::default() });
    let stats = StatsRecord {
        packet_hops_simulated: folds.hops_simulated,
        packet_hops_skipped: ended.packet_hops.saturating_sub(folds.hops_simulated),
        memo_hits: folds.hits,
        memo_misses: folds.misses,
        steady_skips: folds.skips,
        audit_fct_error: (folds.audit.messages > 0)
            .then(|| folds.audit.error_sum as f64 / folds.audit.messages as f64 / 1e6),
        steady_error: match &ended.result {
            Ok(outcome) => folds.steady_error(ended.packet_hops, outcome.makespan_ps),
            Err(_) => None,
        },
        batches: 1 + folds.restarts,
        wall_s: ended.seconds,
        folding: folding(&folds),
    };
    let mut outcome = match ended.result {
        Ok(outcome) => outcome,
        Err(ending) => {
            let record = match ending {
                Ending::Failed(why) => record.failed(why),
                Ending::MachineLimit(why) => record.reached_machine_limit(why),
                Ending::Oom { peak_bytes, breakdown } => record.oom(peak_bytes, breakdown),
            };
            return Finished::without_rows(record, stats);
        }
    };
    let span = outcome.makespan_ps;
    let packets = !outcome.flow_level;
    let links = if outputs.links { outcome.links.iter().map(|l| link(l, span, packets)).collect() } else { Vec::new() };
    let flows = if outputs.flows { outcome.flows.iter().map(flow).collect() } else { Vec::new() };
    let sample =
        |&(flow_id, at_ps, rtt_ps): &(u32, u64, u64)| RttRecord { flow_id, sample: Ps(at_ps), rtt: Ps(rtt_ps) };
    let rtt = if outputs.rtt { outcome.rtts.iter().map(sample).collect() } else { Vec::new() };
    let mean = |m: &MeanRoundTrip| MeanRttRecord {
        flow_id: m.flow_id,
        src: Some(m.src),
        dst: Some(m.dst),
        round_trips: m.n,
        mean: Ps(m.mean_ps),
    };
    let rtt_means = if outputs.rtt_means { outcome.rtt_means.iter().map(mean).collect() } else { Vec::new() };
    let none = Finished::without_rows(measured(record, &outcome, config), stats);
    let shared_links = if outputs.shared_links { shared_links(&outcome) } else { Vec::new() };
    let requests = if outputs.requests { requests(&outcome, config) } else { Vec::new() };
    let (series_links, series_flows) = series(&mut outcome);
    let mut finished = Finished {
        flows,
        links,
        rtt,
        rtt_means,
        jobs: jobs(&outcome),
        shared_links,
        requests,
        series_links,
        series_flows,
        ..none
    };
    let message_error = finished.stats.folding.carried_messages_error;
    if message_error > MESSAGES_UP_TO || finished.stats.steady_error.is_some_and(|error| error > MESSAGES_UP_TO) {
        without_messages(&mut finished.record);
    }
    finished
}

/// Clears columns about single messages, because skips make them too inaccurate.
fn without_messages(r: &mut ExperimentRecord) {
    (r.fct_mean, r.fct_p50, r.fct_p99, r.fct_max) = (None, None, None, None);
    (r.fct_slowdown_p50, r.fct_slowdown_p99) = (None, None);
}

fn folding(f: &FoldStats) -> FoldingRecord {
    FoldingRecord {
        episodes: f.episodes,
        episodes_known: f.episodes_known,
        snapshots: f.snapshots,
        snapshots_known: f.snapshots_known,
        partitions: f.partitions,
        partitions_max: f.partitions_max,
        partitions_mean: if f.span_ps == 0 { 0.0 } else { f.partition_ps as f64 / f.span_ps as f64 },
        memo_bytes: f.memo_bytes,
        hops_steady: f.hops_skipped,
        skipped_mean: if f.span_ps == 0 { 0.0 } else { f.skipped_ps as f64 / f.span_ps as f64 },
        rounded: f.rounded,
        switches_coupled: f.coupled,
        couplings: f.couplings,
        carried_skips: f.carried,
        carried_drift: if f.carried == 0 {
            0.0
        } else if f.drift_over_ps == 0 {
            // No carried rate was measured again: the difference that Eq. 6 accepts.
            0.05
        } else {
            f.drift_ps as f64 / f.drift_over_ps as f64 / 1e6
        },
        carried_audits: f.continued,
        carried_messages_error: f.carried_messages_ppm as f64 / 1e6,
        pauses_left_out: f.unpaused,
        exact_instead: f.exactly,
        packet_hops_plain: f.hops_plain,
        audited: f.audit.skips,
        audit_hops: f.audit_hops,
        audit_messages: f.audit.messages,
        audit_fct_error_max: f.audit.error_max as f64 / 1e6,
        audit_above_1pct: if f.audit.messages == 0 { 0.0 } else { f.audit.above as f64 / f.audit.messages as f64 },
        theorem2_violations: f.audit.theorem2,
        theorem3_violations: f.audit.theorem3,
        simulating_s: f.simulating.as_secs_f64(),
        looking_up_s: f.looking_up.as_secs_f64(),
        checkpointing_s: f.checkpointing.as_secs_f64(),
        auditing_s: f.auditing.as_secs_f64(),
    }
}

fn measured(mut r: ExperimentRecord, o: &ExperimentOutcome, config: &Config) -> ExperimentRecord {
    let worth = Worth::of(config);
    (r.validated_error, r.validated_class) = (worth.text, worth.class);
    let latency = worth.latency;
    (r.validated_mean_error, r.validated_p90_error, r.validated_rows) = (worth.mean, worth.p90, worth.rows);
    r.makespan = Some(Ps(o.makespan_ps));
    r.flows = Some(o.flows.len() as u64);
    if let Some(s) = fct_stats(o.flows.iter().filter_map(|f| f.fct_ps.map(|fct| (fct, f.ideal_ps)))) {
        r.fct_mean = Some(s.mean);
        r.fct_p50 = Some(s.p50);
        r.fct_p99 = Some(s.p99);
        r.fct_max = Some(s.max);
        r.fct_slowdown_p50 = s.slowdown_p50;
        r.fct_slowdown_p99 = s.slowdown_p99;
    }
    if !o.flow_level {
        r.packet_hops = Some(o.packet_hops);
        r.ecn_marks = Some(o.ecn_marks);
        r.pfc_pauses = Some(o.pfc_pauses);
        r.pfc_paused = Some(Ps(o.pfc_paused_ps));
        r.pfc_paused_max = Some(Ps(o.pfc_paused_max_ps));
        r.drops = Some(o.drops);
        r.retransmissions = Some(o.retransmissions);
        r.max_queue_bytes = Some(o.max_queue_bytes);
    }
    r.peak_memory_bytes = o.peak_memory_bytes;
    if let Some(i) = &o.iteration {
        measured_iteration(&mut r, i);
    }
    if let Some(outcome) = &o.serving {
        let figures = serving(outcome, config, latency);
        let rate = figures.output_tokens_per_s.0 as f64 / 1e6;
        let gpus: u32 = outcome.pools.iter().map(|p| p.gpus).sum();
        r.tokens_per_s = Some(rate);
        r.tokens_per_s_per_gpu = Some(rate / f64::from(gpus));
        r.serving = Some(Box::new(figures));
    }
    if let Some(l) = &o.longest_collective {
        r.algorithm = Some(l.algorithm.name().to_string());
        r.protocol = (l.channels > 0).then(|| l.protocol.name().to_string());
        r.channels = (l.channels > 0).then_some(u64::from(l.channels));
    }
    if let Some(bill) = &o.bill {
        r.cost_usd = Some(bill.cost_cents as f64 / 100.0);
        r.power_kw = Some(bill.power_mw as f64 / 1e6);
        // Tokens of one of several jobs do not pay for the whole cluster.
        let rate = r.tokens_per_s.filter(|_| o.jobs.is_empty());
        r.usd_per_mtoken = rate.map(|rate| usd_per_mtoken(bill, rate, config.cost.years, config.cost.usd_per_kwh));
    }
    // The most utilised link; the first of equals, in the order of links. Those of reducers are no hardware.
    let mut busiest: Option<(Micro, &LinkOutcome)> = None;
    for l in o.links.iter().filter(|l| l.bytes > 0 && !l.name.contains(REDUCER_WORD)) {
        let u = share(l, o.makespan_ps);
        if busiest.is_none_or(|(best, _)| u > best) {
            busiest = Some((u, l));
        }
    }
    if let Some((u, l)) = busiest {
        r.max_link_utilisation = Some(u);
        r.bottleneck_link = Some(l.name.clone());
    }
    r
}

fn flow(f: &FlowOutcome) -> FlowRecord {
    FlowRecord {
        flow_id: f.id,
        src: f.src,
        dst: f.dst,
        bytes: f.bytes,
        start: Ps(f.start_ps),
        fct: f.fct_ps.map(Ps),
        measures: FlowMeasures { slowdown: slowdown(f), retransmissions: f.retransmissions },
    }
}

/// Completion time over the time at line rate on an idle network; `None`: unfinished, or that time is 0.
pub(crate) fn slowdown(f: &FlowOutcome) -> Option<Micro> {
    f.fct_ps.filter(|_| f.ideal_ps > 0).map(|fct| Micro::ratio(fct.into(), f.ideal_ps.into()))
}

/// Utilisation of a link's rate from 0 to the makespan. Bytes after the last completion (duplicates in flight) count too, so it is capped at 1.
fn share(l: &LinkOutcome, span_ps: u64) -> Micro {
    utilisation(l.bytes, l.rate_bps, span_ps).min(Micro(1_000_000))
}

fn link(l: &LinkOutcome, span_ps: u64, packets: bool) -> LinkRecord {
    // Units of 1024 byte-ps over ps, in millionths of a byte.
    let mean = (l.queue_area as u128 * 1024 * 1_000_000).checked_div(span_ps as u128).unwrap_or(0);
    let (source, target) = nodes_of_link(&l.name);
    LinkRecord {
        link: l.name.clone(),
        bytes: l.bytes,
        utilisation: share(l, span_ps),
        packets: packets.then_some(LinkPackets {
            max_queue_bytes: l.max_queue_bytes,
            mean_queue_bytes: Micro(mean as u64),
            ecn_marks: l.marks,
            pfc_pauses: l.pauses,
            drops: l.drops,
        }),
        ends: Some(LinkEnds {
            source: source.to_string(),
            target: target.to_string(),
            capacity_gbps: Micro::ratio(l.rate_bps.into(), BPS_PER_GBPS.into()),
        }),
        pauses: LinkPauses { paused: packets.then_some(Ps(l.paused_ps)) },
    }
}
