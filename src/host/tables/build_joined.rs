//! Rows of what counts as one flow at flow level: joined queue pairs, and the durations of collectives that run alone.
//!
//! Layer: host.

use std::collections::HashMap;
use std::sync::Arc;

use hyperfold_columns::{FlowIdx, OwnedTables, TaskIdx, qp};
use hyperfold_llm::workload::tasks::{TaskGraph, Work};

/// Marks queue pairs that are joined into one flow, with their weights, and sets the duration of each collective that is one flow.
pub(crate) fn joined(t: &mut OwnedTables, graph: &TaskGraph, qp_rows: &[FlowIdx]) {
    let mut view = t.view();
    for (&row, &weight) in qp_rows.iter().zip(&graph.weights) {
        view.flow_tx[row].flags |= (weight - 1) << qp::WEIGHT_SHIFT;
    }
    for pairs in &graph.joined {
        hyperfold_flow::join(&mut view, &qp_rows[pairs.first as usize..(pairs.first + pairs.n) as usize]);
    }
    // A training iteration repeats a few collectives thousands of times, so each duration is computed once.
    let mut known: HashMap<_, u64> = HashMap::new();
    for c in &graph.one_flow {
        let Work::Message { qp, .. } = graph.tasks[c.task as usize].work else { continue };
        let key = (Arc::as_ptr(&c.edges), c.steps, c.pieces, c.piece_bytes);
        let ps = *known.entry(key).or_insert_with(|| {
            let row = |qp: &u32| qp_rows.get(*qp as usize).copied();
            hyperfold_flow::CollectiveAlone {
                leader: qp_rows[qp as usize],
                lanes: u64::from(c.lanes),
                edges: c.edges.iter().map(|ring| ring.iter().map(row).collect()).collect(),
                steps: c.steps,
                pieces: c.pieces,
                piece_bytes: c.piece_bytes,
                start_ps: c.overheads.start_ps,
                net_ps: c.overheads.net_ps,
                inside_ps: c.overheads.inside_ps,
                inside_each: c.inside_each,
                inside: c.inside,
                min_ps: c.min_ps,
            }
            .ps(&view)
        });
        view.tasks[TaskIdx(c.task)].got = ps;
    }
}
