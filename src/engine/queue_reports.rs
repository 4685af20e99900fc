//! Reports of switches about their queues, between two steps. The rules are those of `docs/explanation/model-semantics.md`, "Queues further on".
//!
//! At each of its times, a report writes the queues of all ports to shared words. Adaptive switches read those of the next switch. No system writes them, so
//! every engine and any number of threads finds the same.

use crate::cpu::switch::class_port::port_queue_row;
use hyperfold_columns::{PortIdx, QueueReports, REMOTE_DOWN, Tables};

/// Makes the first report: the tables hold the state at time 0.
pub(crate) fn begin(t: &mut Tables) {
    if t.changes.reports.is_some() {
        report_until(t, 0);
    }
}

/// Time in ps of the next stop for a report before `limit`.
pub(crate) fn next_stop(t: &Tables, limit: u64) -> Option<u64> {
    t.changes.reports.map(|reports| reports.next).filter(|&next| next < limit)
}

/// Makes the reports of all times up to `until`, in ps. Nothing has happened between the first of them and `until`.
pub(crate) fn report_until(t: &mut Tables, until: u64) {
    let Some(reports) = t.changes.reports.filter(|reports| reports.next <= until) else { return };
    for port in PortIdx::all(t.exps[0].port_len) {
        for class in 0..t.exps[0].class_n.max(1) {
            let word = t.exps[0].remote_word(port, class);
            t.shared[word] = reported(t, port, class);
        }
    }
    let next = (until / reports.period + 1).saturating_mul(reports.period);
    t.changes.reports = Some(QueueReports { next, ..reports });
}

/// Returns what is reported of the queue of `class` at `port`.
fn reported(t: &Tables, port: PortIdx, class: u32) -> u32 {
    let e = &t.exps[0];
    let q_bytes =
        if e.class_n == 0 { t.ports[port].q_bytes } else { t.class_queues[port_queue_row(e, port, class)].q_bytes };
    let down = if t.ports[port].is_cut_off() { REMOTE_DOWN } else { 0 };
    q_bytes.min(REMOTE_DOWN - 1) | down
}
