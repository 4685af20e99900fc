//! A cache of a job's table rows: the next experiment that puts the same job on the same NICs copies them.
//!
//! Layer: host. `build_tasks` builds the rows. The cache changes no result, only the time that a sweep takes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tables::packet_case::GraphCase;
use hyperfold_columns::{FlowIdx, Gate, NicIdx, OwnedTables, Signal, Task, TaskIdx};

/// Maximum number of rows of tasks kept for all jobs together: some 300 MB with their edges.
const MAX_ROWS: usize = 1 << 21;

/// Number of task rows kept for all jobs.
static CACHED_ROWS: AtomicUsize = AtomicUsize::new(0);

/// The rows of a job in the last experiment that had it, if another had it before and they are not too many to keep.
#[derive(Debug, Default)]
pub(crate) struct TaskRowCache(Mutex<KeptRows>);

#[derive(Debug, Default)]
struct KeptRows {
    /// Whether an experiment has had the job. Most jobs have only one.
    used: bool,
    rows: Option<Arc<TaskRows>>,
}

/// Everything that decides the rows besides the graph.
#[derive(Debug, PartialEq, Eq)]
struct TaskRowKey {
    release_ps: u64,
    /// NIC of each rank.
    owners: Vec<NicIdx>,
    /// For each queue pair its row, its flow id, and the NICs of its ends.
    qps: Vec<(FlowIdx, u32, NicIdx, NicIdx)>,
    nics: usize,
}

#[derive(Debug)]
struct TaskRows {
    key: TaskRowKey,
    tasks: Vec<Task>,
    edges: Vec<u32>,
    signals: Vec<Signal>,
    gates: Vec<Gate>,
    servers: Vec<u64>,
    /// First message of each queue pair, and the byte where it ends.
    first: Vec<(TaskIdx, u64)>,
    /// First task of each NIC, and when it is due, ps.
    due: Vec<(TaskIdx, u64)>,
}

impl Drop for TaskRows {
    fn drop(&mut self) {
        CACHED_ROWS.fetch_sub(self.tasks.len(), Ordering::Relaxed);
    }
}

impl TaskRowKey {
    fn new(t: &OwnedTables, case: &GraphCase, qp_rows: &[FlowIdx], owners: &[NicIdx]) -> TaskRowKey {
        let qp = |&row: &FlowIdx| (row, t.flow_tx[row].flow_id, t.flow_tx[row].nic, t.flow_rx[row].nic);
        TaskRowKey {
            release_ps: case.release_ps,
            owners: owners.to_vec(),
            qps: qp_rows.iter().map(qp).collect(),
            nics: t.nics.len(),
        }
    }
}

impl TaskRows {
    fn bytes(&self) -> u64 {
        let task_bytes = size_of_val(&*self.tasks) + size_of_val(&*self.edges) + size_of_val(&*self.signals);
        let gate_bytes = size_of_val(&*self.gates) + size_of_val(&*self.servers);
        let pair_bytes = size_of_val(&*self.first) + size_of_val(&*self.key.qps) + size_of_val(&*self.due);
        (task_bytes + gate_bytes + pair_bytes) as u64
    }
}

impl TaskRowCache {
    fn lock(&self) -> MutexGuard<'_, KeptRows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Approximate size, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().rows.as_ref().map_or(0, |rows| rows.bytes())
    }

    /// Fills the rows as [`crate::tables::build_tasks::tasks`] would, if they are here. Returns whether they were. PRECONDITION: `t` has its NICs and queue pairs.
    pub(crate) fn fill(
        &self,
        t: &mut OwnedTables,
        case: &GraphCase,
        qp_rows: &[FlowIdx],
        owners: &[NicIdx],
        exp_id: u32,
    ) -> bool {
        let Some(rows) = self.lock().rows.clone() else { return false };
        if rows.key != TaskRowKey::new(t, case, qp_rows, owners) {
            return false;
        }
        t.tasks = rows.tasks.iter().map(|&row| Task { exp: exp_id, ..row }).collect();
        t.gates = rows.gates.iter().map(|&row| Gate { exp: exp_id, ..row }).collect();
        t.edges.clone_from(&rows.edges);
        t.signals.clone_from(&rows.signals);
        t.servers.clone_from(&rows.servers);
        for (&row, &(i, end)) in qp_rows.iter().zip(&rows.first) {
            let (tx, rx) = (&mut t.flow_tx[row], &mut t.flow_rx[row]);
            (tx.msg_post, tx.msg_send, tx.msg_ack, rx.msg) = (i, i, i, i);
            (tx.send_end, tx.ack_end, rx.msg_end) = (end, end, end);
        }
        for (nic, &due) in t.nics.iter_mut().zip(&rows.due) {
            (nic.task_head, nic.next_task) = due;
        }
        true
    }

    /// Keeps the rows of `t` instead of older ones. Does not keep those of the first experiment that has the job.
    pub(crate) fn keep(&self, t: &OwnedTables, case: &GraphCase, qp_rows: &[FlowIdx], owners: &[NicIdx]) {
        let n = t.tasks.len();
        let mut kept = self.lock();
        kept.rows = None;
        if !std::mem::replace(&mut kept.used, true) {
            return;
        }
        if CACHED_ROWS.fetch_add(n, Ordering::Relaxed) + n > MAX_ROWS {
            CACHED_ROWS.fetch_sub(n, Ordering::Relaxed);
            return;
        }
        kept.rows = Some(Arc::new(TaskRows {
            key: TaskRowKey::new(t, case, qp_rows, owners),
            tasks: t.tasks.clone(),
            edges: t.edges.clone(),
            signals: t.signals.clone(),
            gates: t.gates.clone(),
            servers: t.servers.clone(),
            first: qp_rows.iter().map(|&row| (t.flow_tx[row].msg_post, t.flow_tx[row].send_end)).collect(),
            due: t.nics.iter().map(|nic| (nic.task_head, nic.next_task)).collect(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Prepared;
    use crate::prepare;
    use hyperfold_config::sweep::{self, SetOverrides};

    /// Prepares an all-reduce of 16 GPUs, with a packet size that no other test uses.
    fn prepared(delay_ns: u32, payload: u32, exp_id: u32) -> Prepared {
        let text = format!(
            "name = \"t\"\nbase.cluster = {{ gpus = 16, gpus_per_server = 8 }}\nbase.topology = {{ link_delay_ns = {delay_ns} }}\n\
             base.transport = {{ payload_bytes = {payload} }}\nbase.workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 7654321 }}\n"
        );
        let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).unwrap();
        prepare(&sweep.config(&sweep.experiments[0]).unwrap(), exp_id).unwrap()
    }

    fn graph_of(p: &Prepared) -> String {
        let t = &p.built.tables;
        let tasks: Vec<Task> = t.tasks.iter().map(|&row| Task { exp: 0, ..row }).collect();
        let gates: Vec<Gate> = t.gates.iter().map(|&row| Gate { exp: 0, ..row }).collect();
        let first: Vec<_> =
            t.flow_tx.iter().map(|f| (f.msg_post, f.msg_send, f.msg_ack, f.send_end, f.ack_end)).collect();
        let arriving: Vec<_> = t.flow_rx.iter().map(|f| (f.msg, f.msg_end)).collect();
        let due: Vec<_> = t.nics.iter().map(|n| (n.task_head, n.next_task)).collect();
        format!("{tasks:?} {gates:?} {:?} {:?} {:?} {first:?} {arriving:?} {due:?}", t.edges, t.signals, t.servers)
    }

    #[test]
    fn what_is_copied_is_what_would_be_worked_out() {
        let alone = prepared(1000, 3333, 2);
        let rows = &alone.job.as_ref().unwrap().shared.as_ref().unwrap().rows;
        assert!(rows.0.lock().unwrap().rows.is_none(), "kept for nobody");
        let first = prepared(1000, 1111, 3);
        assert!(rows.0.lock().unwrap().rows.is_some(), "nothing was kept");
        let second = prepared(1000, 2222, 4);
        assert!(Arc::ptr_eq(first.job.as_ref().unwrap(), second.job.as_ref().unwrap()));
        assert_eq!(graph_of(&first), graph_of(&second));
        assert!(
            first.built.tables.tasks.iter().all(|row| row.exp == 3)
                && second.built.tables.tasks.iter().all(|row| row.exp == 4)
        );
        assert!(second.built.tables.gates.iter().all(|row| row.exp == 4));
    }
}
