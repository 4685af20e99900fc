//! Takes samples of link ends and queue pairs between two steps. The rules are those of `docs/explanation/model-semantics.md`, "Samples over time".
//!
//! Samples only read rows. Their bytes depend on events alone: neither on steps nor on what else an experiment stops for.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use hyperfold_columns::{
    EndSample, FlowIdx, FlowSample, FlowTx, LinkEndIdx, NicIdx, PortIdx, SeriesSample, Tables, TimeSeries,
};

/// Maximum number of rows of all samples of an experiment (our choice: some 100 MB of a file).
pub const MAX_ROWS: usize = 1_000_000;

/// Prepares sampling: the tables hold the state at time 0.
pub fn begin(t: &mut Tables) {
    let (links, flows) = (t.series.links, t.series.flows);
    t.series.ends_before = if links { ends(t, 0).collect() } else { Vec::new() };
    t.series.flows_before = if flows { queue_pairs(t).collect() } else { Vec::new() };
    t.series.next = 1;
}

/// What a sample finds where rows are skipped ahead, as they do not show what happens meanwhile.
#[derive(Debug, Default)]
pub struct SkippedRows {
    /// Link ends whose queues and pauses stay as they were at the sample time before.
    pub ends: BTreeSet<LinkEndIdx>,
    /// Bytes by which queue pairs are further than their rows.
    pub ahead: BTreeMap<FlowIdx, u64>,
}

/// Takes the sample of the next sample time alone. Counters of the `skipped` rows are as they would be then.
pub fn take_next(t: &mut Tables, skipped: &SkippedRows) {
    let time = t.series.next.saturating_mul(t.series.interval);
    take_sample(t, skipped);
    // The interval may have doubled, and the sample may belong to a later time, which then gets the newer state.
    t.series.next = time / t.series.interval + 1;
}

/// Takes the samples of all times up to `until`. Nothing has happened between the first of them and `until`.
pub fn take_until(t: &mut Tables, until: u64) {
    if t.series.next_time().is_some_and(|time| time <= until) {
        take_sample(t, &SkippedRows::default());
        t.series.next = until / t.series.interval + 1;
    }
}

/// Takes the last sample of an experiment that has ended, at the first sample time after its end.
pub fn end(t: &mut Tables) {
    if t.series.is_on() {
        take_next(t, &SkippedRows::default());
    }
}

/// Takes the sample of the next sample time, if anything has changed.
fn take_sample(t: &mut Tables, skipped: &SkippedRows) {
    let mut series = take(&mut t.series);
    let mut sample = SeriesSample { number: series.next, ..SeriesSample::default() };
    if series.links {
        let time = series.next.saturating_mul(series.interval);
        for (mut end, before) in ends(t, time).zip(&mut series.ends_before) {
            if skipped.ends.contains(&end.end) {
                (end.queue_bytes, end.paused, end.paused_ps) = (before.queue_bytes, before.paused, before.paused_ps);
            }
            if end != *before && series.sampled_ends.get(end.end.usize()).is_none_or(|is_sampled| *is_sampled) {
                *before = end;
                sample.ends.push(end);
            }
        }
    }
    if series.flows {
        for (mut flow, before) in queue_pairs(t).zip(&mut series.flows_before) {
            let ahead = skipped.ahead.get(&flow.flow).copied().unwrap_or(0);
            (flow.snd_nxt, flow.snd_una) = (flow.snd_nxt + ahead, flow.snd_una + ahead);
            let bytes_have = (flow.snd_nxt, flow.snd_una) != (before.snd_nxt, before.snd_una);
            // Rate and window of a queue pair that has nothing to send concern nobody.
            if bytes_have || (flow != *before && t.flow_tx[flow.flow].snd_una < t.flow_tx[flow.flow].size) {
                *before = flow;
                sample.flows.push(flow);
            }
        }
    }
    if !sample.ends.is_empty() || !sample.flows.is_empty() {
        sample.ends.shrink_to_fit();
        sample.flows.shrink_to_fit();
        series.n_rows += push(&mut series.samples, sample);
        while series.samples.len() > 1 && (series.samples.len() > series.cap || series.n_rows > MAX_ROWS) {
            thin_out(&mut series);
        }
    }
    t.series = series;
}

/// Doubles the interval. The samples of times that are no sample times any more belong to the next time that is one.
fn thin_out(series: &mut TimeSeries) {
    series.interval = series.interval.saturating_mul(2);
    series.next = series.next.div_ceil(2);
    series.n_rows = 0;
    for sample in take(&mut series.samples) {
        series.n_rows += push(&mut series.samples, SeriesSample { number: sample.number.div_ceil(2), ..sample });
    }
}

/// Adds a sample behind the others. If the last one is of the same time, it gets the newer state. Returns how many rows more there are.
fn push(samples: &mut Vec<SeriesSample>, sample: SeriesSample) -> usize {
    match samples.last_mut().filter(|last| last.number == sample.number) {
        Some(last) => {
            let before = n_rows(last);
            merge(&mut last.ends, sample.ends, |end| end.end.0);
            merge(&mut last.flows, sample.flows, |flow| flow.flow.0);
            n_rows(last) - before
        }
        None => {
            let added = n_rows(&sample);
            samples.push(sample);
            added
        }
    }
}

/// Merges `newer` into `rows`. Both ascend by `index`, and so does the result.
fn merge<R: Copy>(rows: &mut Vec<R>, newer: Vec<R>, index: impl Fn(&R) -> u32) {
    let older = take(rows);
    let mut newer = newer.into_iter().peekable();
    for row in older {
        while let Some(next) = newer.next_if(|next| index(next) < index(&row)) {
            rows.push(next);
        }
        rows.push(newer.next_if(|next| index(next) == index(&row)).unwrap_or(row));
    }
    rows.extend(newer);
}

fn n_rows(sample: &SeriesSample) -> usize {
    sample.ends.len() + sample.flows.len()
}

/// Every link end at `time` (ps), in order.
fn ends<'a>(t: &'a Tables, time: u64) -> impl Iterator<Item = EndSample> + 'a {
    let n_nics = t.exps[0].nic_len;
    let nics = NicIdx::all(n_nics).map(move |n| {
        let row = &t.nics[n];
        EndSample {
            end: LinkEndIdx(n.0),
            queue_bytes: 0,
            paused: t.is_paused(n.end()),
            pauses: row.pauses,
            drops: t.changes.lost_of_nic(&t.exps[0], &t.shared, n),
            marks: 0,
            tx_bytes: row.tx_bytes,
            paused_ps: t.paused_until(n.end(), time),
        }
    });
    let ports = PortIdx::all(t.exps[0].port_len).map(move |port| {
        let row = &t.ports[port];
        EndSample {
            end: port.end(n_nics),
            queue_bytes: row.q_bytes,
            paused: t.is_paused(port.end(n_nics)),
            pauses: row.pauses,
            drops: row.drops,
            marks: row.marks,
            tx_bytes: row.tx_bytes,
            paused_ps: t.paused_until(port.end(n_nics), time),
        }
    });
    nics.chain(ports)
}

/// Every queue pair, in order.
fn queue_pairs<'a>(t: &'a Tables) -> impl Iterator<Item = FlowSample> + 'a {
    let sample = |(row, tx): (usize, &FlowTx)| FlowSample {
        flow: FlowIdx::new(row),
        rate: tx.rate,
        window: (tx.win != 0 && tx.win != u64::MAX).then_some(tx.win),
        snd_nxt: tx.snd_nxt,
        snd_una: tx.snd_una,
    };
    t.flow_tx.iter().enumerate().map(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(end: u32, tx_bytes: u64) -> EndSample {
        let end = LinkEndIdx(end);
        EndSample { end, queue_bytes: 0, paused: false, pauses: 0, drops: 0, marks: 0, tx_bytes, paused_ps: 0 }
    }

    fn sample(number: u64, ends: Vec<EndSample>) -> SeriesSample {
        SeriesSample { number, ends, flows: Vec::new() }
    }

    #[test]
    fn every_second_sample_goes_into_the_next_one() {
        let samples = vec![
            sample(1, vec![end(0, 10), end(4, 1)]),
            sample(2, vec![end(0, 20), end(2, 5)]),
            sample(5, vec![end(2, 7)]),
            sample(8, vec![end(4, 2)]),
        ];
        let mut series =
            TimeSeries { links: true, interval: 100, cap: 3, next: 9, samples, n_rows: 6, ..TimeSeries::default() };
        thin_out(&mut series);
        assert_eq!((series.interval, series.next, series.n_rows), (200, 5, 5));
        assert_eq!(
            series.samples,
            [sample(1, vec![end(0, 20), end(2, 5), end(4, 1)]), sample(3, vec![end(2, 7)]), sample(4, vec![end(4, 2)])]
        );
    }

    #[test]
    fn a_sample_that_was_moved_ahead_gets_what_happens_until_then() {
        let mut series = TimeSeries { links: true, interval: 100, next: 4, ..TimeSeries::default() };
        series.samples = vec![sample(2, vec![end(0, 1)]), sample(3, vec![end(0, 2), end(1, 1)])];
        thin_out(&mut series);
        push(&mut series.samples, sample(2, vec![end(0, 3)]));
        assert_eq!(series.samples, [sample(1, vec![end(0, 1)]), sample(2, vec![end(0, 3), end(1, 1)])]);
    }
}
