//! Reads the outcome of an experiment from its table rows.
//!
//! Layer: host. Formats nothing; the result is plain integer data, see `outcome`.

use std::sync::Arc;

use hyperfold_columns::{
    Exp, FlowIdx, FlowTx, LinkEndIdx, NEVER, NetworkChanges, Nic, NicIdx, Port, PortIdx, RttSample, Tables, Task, mode,
    task,
};

use crate::outcomes::flow_info::{FlowCarrier, FlowInfo};
use crate::outcomes::job_outcomes;
use crate::outcomes::outcome::{ExperimentOutcome, FlowOutcome, LinkOutcome, MeanRoundTrip, WatchdogOutcome};
use crate::outcomes::serving_outcome;
use crate::programs::job::Job;
use crate::tables::job_rows::JobRows;

/// The rows of one experiment, as slices of the world's columns.
pub(crate) struct OutcomeRows<'a> {
    pub exp: &'a Exp,
    pub nics: &'a [Nic],
    pub ports: &'a [Port],
    pub tx: &'a [FlowTx],
    pub tasks: &'a [Task],
    pub changes: &'a NetworkChanges,
    /// Shared words of the experiment.
    pub shared: &'a [u32],
    /// Paused time of each link end, in ps; empty at flow level.
    pub paused_ps: Vec<u64>,
}

impl<'a> OutcomeRows<'a> {
    /// The rows of tables that hold one experiment.
    pub(crate) fn of(t: &'a Tables<'_>) -> Self {
        OutcomeRows {
            exp: &t.exps[0],
            nics: &t.nics,
            ports: &t.ports,
            tx: &t.flow_tx,
            tasks: &t.tasks,
            changes: &t.changes,
            shared: &t.shared,
            paused_ps: paused_times(t),
        }
    }
}

/// Paused time of each link end, in ps. A pause that has not ended lasts until the last completion of a flow or task.
fn paused_times(t: &Tables) -> Vec<u64> {
    let ends = || (0..t.pause_ps.len()).map(LinkEndIdx::new);
    let completed = || t.tasks.iter().map(|task| task.done).chain(t.flow_tx.iter().map(|tx| tx.finish));
    let end_ps = match ends().any(|end| t.is_paused(end)) {
        true => completed().filter(|&at| at != NEVER).max().unwrap_or(0),
        false => 0,
    };
    // One that began later has no length.
    ends().map(|end| t.paused_until(end, end_ps)).map(|ps| if ps > u64::MAX / 2 { 0 } else { ps }).collect()
}

/// Reads the outcome of an experiment. `link_names` are the names of its link ends, NICs first; `rtts` are its samples, `rtt_cap` for each flow.
pub(crate) fn read(
    rows: &OutcomeRows,
    infos: &[FlowInfo],
    job: Option<&Job>,
    jobs: &[JobRows],
    link_names: &[String],
    rtts: &[RttSample],
) -> ExperimentOutcome {
    let flow_level = rows.exp.modes & mode::FLOW != 0;
    let mut out = ExperimentOutcome { flow_level, ..ExperimentOutcome::default() };
    let cap = rows.exp.rtt_cap as usize;
    let samples = |row: FlowIdx, tx: &FlowTx| {
        let first = row.usize() * cap;
        rtts[first..first + (tx.rtt_n as usize).min(cap)].iter()
    };
    let mean = |flow_id: u32, (src, dst): (u32, u32), tx: &FlowTx| {
        let (adds_up, n) = (rows.exp.sums_rtts > 0 && tx.rtt_seen > 0, tx.rtt_seen);
        adds_up.then(|| MeanRoundTrip { flow_id, src, dst, n, mean_ps: tx.rtt_sum / u64::from(n) })
    };
    let again = if flow_level { None } else { Some(sent_again(rows)) };
    let mut flows = Vec::with_capacity(infos.len());
    for f in infos {
        let mut start_ps = f.start_ps;
        let fct_ps = match f.carried {
            FlowCarrier::Inside => Some(f.ideal_ps),
            FlowCarrier::Alone(row) => {
                let tx = &rows.tx[row];
                out.rtts.extend(samples(row, tx).map(|s| (f.id, s.at, s.rtt)));
                out.rtt_means.extend(mean(f.id, (f.src, f.dst), tx));
                (tx.finish != NEVER).then(|| tx.finish - tx.start)
            }
            FlowCarrier::Message(task) => {
                let task = &rows.tasks[task];
                start_ps = task.at;
                (task.done != NEVER).then(|| task.done - task.at)
            }
        };
        out.makespan_ps = out.makespan_ps.max(fct_ps.map_or(0, |fct| start_ps + fct));
        let retransmissions = again.as_ref().and_then(|again| match f.carried {
            FlowCarrier::Inside => Some(0),
            FlowCarrier::Alone(row) => Some(again[row.usize()].packets),
            FlowCarrier::Message(task) => again[rows.tasks[task].flow.usize()].of_each_message(),
        });
        let FlowInfo { id, src, dst, bytes, ideal_ps, .. } = *f;
        flows.push(FlowOutcome { id, src, dst, bytes, start_ps, ideal_ps, fct_ps, retransmissions });
    }
    out.flows = Arc::new(flows);
    if let Some(job) = job {
        // Messages share queue pairs, so round trips are reported per queue pair. Flows beside the programs come before these, and have been added.
        let n_plain = infos.iter().filter(|f| !matches!(f.carried, FlowCarrier::Message(_))).count();
        for (row, tx) in rows.tx.iter().enumerate() {
            let queue_pair = (tx.flow_id as usize).checked_sub(n_plain).and_then(|qp| job.graph.qps.get(qp));
            let Some(ends) = queue_pair else { continue };
            out.rtts.extend(samples(FlowIdx::new(row), tx).map(|s| (tx.flow_id, s.at, s.rtt)));
            out.rtt_means.extend(mean(tx.flow_id, (ends.src, ends.dst), tx));
        }
        out.rtts.sort_unstable();
        out.rtt_means.sort_unstable();
        out.makespan_ps = rows.tasks.iter().map(|t| if t.done == NEVER { 0 } else { t.done }).max().unwrap_or(0);
        if let Some(result) = &job.worked_out {
            (out.makespan_ps, out.iteration) = (result.makespan_ps, result.iteration);
        } else if jobs.is_empty() {
            out.iteration = job_outcomes::iteration(job, rows.tasks, 0);
            out.serving = serving_outcome::read(job, rows.tasks, 0).map(Arc::new);
        }
        out.peak_memory_bytes = job.peak_bytes;
        out.longest_collective = job.longest;
    }
    if !jobs.is_empty() {
        out.jobs = job_outcomes::read(jobs, &out.flows, rows.tasks, link_names);
        out.makespan_ps = job_outcomes::makespan_ps(&out.jobs);
        let first = out.jobs.iter().find(|job| !job.background);
        (out.iteration, out.longest_collective) =
            first.map_or((None, None), |job| (job.iteration, job.longest_collective));
        out.serving = out.jobs.iter().find_map(|job| job.serving.clone());
        out.peak_memory_bytes = out.jobs.iter().filter_map(|job| job.peak_memory_bytes).max();
    }
    out.retransmissions = again.iter().flatten().map(|qp| qp.packets).sum();
    out.watchdog = WatchdogOutcome::read(rows.exp, rows.shared);
    out.pfc_paused_ps = rows.paused_ps.iter().sum();
    out.pfc_paused_max_ps = rows.paused_ps.iter().copied().max().unwrap_or(0);
    let paused_ps = |end: LinkEndIdx| rows.paused_ps.get(end.usize()).copied().unwrap_or(0);
    for ((n, nic), name) in (0..).map(NicIdx).zip(rows.nics).zip(link_names) {
        let drops = u64::from(rows.changes.lost_of_nic(rows.exp, rows.shared, n));
        out.packet_hops += nic.hops;
        out.pfc_pauses += nic.pauses as u64;
        out.drops += drops;
        out.links.push(LinkOutcome {
            name: name.clone(),
            rate_bps: rows.changes.own_rate(n.end(), nic.rate),
            bytes: nic.tx_bytes,
            max_queue_bytes: 0,
            queue_area: 0,
            marks: 0,
            pauses: nic.pauses as u64,
            paused_ps: paused_ps(n.end()),
            drops,
        });
    }
    for ((p, port), name) in (0..).map(PortIdx).zip(rows.ports).zip(&link_names[rows.nics.len()..]) {
        out.packet_hops += port.hops;
        out.pfc_pauses += port.pauses as u64;
        out.ecn_marks += port.marks;
        out.drops += port.drops as u64;
        out.max_queue_bytes = out.max_queue_bytes.max(port.max_q as u64);
        out.links.push(LinkOutcome {
            name: name.clone(),
            rate_bps: rows.changes.own_rate(p.end(rows.nics.len() as u32), port.rate),
            bytes: port.tx_bytes,
            max_queue_bytes: port.max_q as u64,
            queue_area: port.q_area,
            marks: port.marks,
            pauses: port.pauses as u64,
            paused_ps: paused_ps(p.end(rows.nics.len() as u32)),
            drops: port.drops as u64,
        });
    }
    out
}

/// Data packets that a queue pair sent more often than once.
#[derive(Clone, Copy)]
struct SentAgain {
    /// Number of times that a packet was sent again.
    packets: u64,
    /// Number of messages that were posted; 0: it is a flow.
    messages: u64,
}

impl SentAgain {
    /// Returns the count of each of its messages. `None`: some were sent again, and several messages share the counter.
    fn of_each_message(self) -> Option<u64> {
        (self.packets == 0 || self.messages == 1).then_some(self.packets)
    }
}

/// Counts the data packets that each queue pair sent more often than once. Packets never span two messages, and are the same when they are sent again.
fn sent_again(rows: &OutcomeRows) -> Vec<SentAgain> {
    let packets = |bytes: u64| bytes.div_ceil(u64::from(rows.exp.payload.max(1)));
    // Messages, packets and bytes that were posted, by queue pair. Its size counts more bytes where messages begin at multiples of the payload.
    let mut posted = vec![(0u64, 0u64, 0u64); rows.tx.len()];
    for message in rows.tasks.iter().filter(|t| t.flags & task::MESSAGE != 0 && t.at != NEVER) {
        let sums = &mut posted[message.flow.usize()];
        *sums = (sums.0 + 1, sums.1 + packets(message.bytes), sums.2 + message.bytes);
    }
    let again = |(tx, &(messages, needed, bytes)): (&FlowTx, &(u64, u64, u64))| {
        // A queue pair without messages is a flow.
        let (needed, bytes) = if messages == 0 { (packets(tx.size), tx.size) } else { (needed, bytes) };
        let packets = if tx.sent_bytes > bytes { u64::from(tx.n_sent.wrapping_sub(needed as u32)) } else { 0 };
        SentAgain { packets, messages }
    };
    rows.tx.iter().zip(&posted).map(again).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;
    use hyperfold_columns::OwnedTables;

    #[test]
    fn a_pause_that_nobody_ends_lasts_until_the_last_completion() {
        let nic = |paused| Nic { paused, ..Nic::zeroed() };
        let begun_at = |ps: u64| 0u64.wrapping_sub(ps);
        let mut owned = OwnedTables {
            exps: vec![Exp { nic_len: 4, ..Exp::zeroed() }],
            nics: vec![nic(1), nic(0), nic(1), nic(1)],
            // The second one was paused for 20 ps and is not any more; the third one was, too, before it was paused again at 60 ps.
            pause_ps: vec![begun_at(30), 20, begun_at(60).wrapping_add(20), begun_at(400)],
            flow_tx: [NEVER, 70].map(|finish| FlowTx { finish, ..FlowTx::zeroed() }).to_vec(),
            tasks: [100, NEVER].map(|done| Task { done, ..Task::zeroed() }).to_vec(),
            ..OwnedTables::default()
        };
        assert_eq!(paused_times(&owned.view()), [70, 20, 60, 0]);
        owned.tasks.clear();
        assert_eq!(paused_times(&owned.view()), [40, 20, 30, 0]);
    }
}
