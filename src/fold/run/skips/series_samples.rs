//! Samples over time of a folded experiment. The rules are those of `docs/explanation/model-semantics.md`, "Samples over time".
//!
//! Layer: fold/run. All partitions come to a stand at each sample time, as they do for samples of the detector. What is skipped is sampled as it was measured:
//! counters grow at the rates of the skip, queues stay as they were. Times of samples change neither turns' results nor skips.

use crate::run::fold_run::FoldRun;
use hyperfold_columns::{FlowIdx, FlowRx, FlowTx, NEVER, Nic, NicIdx, Port, PortIdx, Tables};
use hyperfold_engine::series::{SkippedRows, take_next, take_until};

/// Time of the next sample in ps, before which turns end; `NEVER`: there is none.
pub(crate) fn next_sample_at(t: &Tables) -> u64 {
    t.series.next_time().filter(|&time| time < t.series.time_limit).unwrap_or(NEVER)
}

/// Takes the samples that are due by `now_ps`. PRECONDITION: everything before the next of them has happened, and nothing at it or after it.
pub(crate) fn take_samples(run: &FoldRun, t: &mut Tables, now_ps: u64) {
    while next_sample_at(t) <= now_ps {
        if run.partitions.iter().all(|partition| partition.skip().is_none()) {
            return take_until(t, now_ps);
        }
        let rows = RowsAsTheyAre::of_skipped(run, t);
        let skipped = count_ahead(run, t, next_sample_at(t));
        take_next(t, &skipped);
        rows.put_back(t);
    }
}

/// Adds to the counters of all skipped rows what they count by `time_ps`. Returns what else a sample has to know of them.
fn count_ahead(run: &FoldRun, t: &mut Tables, time_ps: u64) -> SkippedRows {
    let mut skipped = SkippedRows::default();
    for partition in run.partitions.iter() {
        let Some(skip) = partition.skip() else { continue };
        let (rows, n_nics) = (&partition.rows, t.exps[0].nic_len);
        skip.count(t, rows, &skip.moved_by(time_ps), time_ps);
        skipped.ends.extend(rows.nics.iter().map(|n| n.end()));
        skipped.ends.extend(rows.ports.iter().map(|port| port.end(n_nics)));
        skipped.ahead.extend(rows.members.iter().enumerate().map(|(m, member)| (member.flow, skip.bytes(m, time_ps))));
    }
    skipped
}

/// Rows of skipped partitions, from before [`count_ahead`].
struct RowsAsTheyAre {
    nics: Vec<(NicIdx, Nic)>,
    ports: Vec<(PortIdx, Port)>,
    senders: Vec<(FlowIdx, FlowTx)>,
    receivers: Vec<(FlowIdx, FlowRx)>,
}

impl RowsAsTheyAre {
    /// Copies the rows.
    fn of_skipped(run: &FoldRun, t: &Tables) -> Self {
        let skipped = || run.partitions.iter().filter(|partition| partition.skip().is_some());
        let flows = || skipped().flat_map(|partition| partition.rows.members.iter().map(|member| member.flow));
        RowsAsTheyAre {
            nics: skipped().flat_map(|partition| &partition.rows.nics).map(|&n| (n, t.nics[n])).collect(),
            ports: skipped().flat_map(|partition| &partition.rows.ports).map(|&port| (port, t.ports[port])).collect(),
            senders: flows().map(|f| (f, t.flow_tx[f])).collect(),
            receivers: flows().map(|f| (f, t.flow_rx[f])).collect(),
        }
    }

    /// Puts the rows back as they were.
    fn put_back(self, t: &mut Tables) {
        self.nics.into_iter().for_each(|(n, row)| t.nics[n] = row);
        self.ports.into_iter().for_each(|(port, row)| t.ports[port] = row);
        self.senders.into_iter().for_each(|(f, row)| t.flow_tx[f] = row);
        self.receivers.into_iter().for_each(|(f, row)| t.flow_rx[f] = row);
    }
}
