//! A case with a task graph.

use hyperfold_columns::NEVER;
use hyperfold_host::tables::build_tables::GraphCase;
use hyperfold_llm::workload::Flow;
use hyperfold_llm::workload::tasks::TaskGraph;

use super::Case;

/// A task graph beside a case's flows; its queue pairs are the case's last flows.
#[derive(Clone, Debug)]
pub struct TaskCase {
    pub case: Case,
    pub graph: TaskGraph,
    pub first_qp: usize,
    pub release_ps: u64,
    pub fresh_qp: bool,
}

impl TaskCase {
    pub fn input(&self) -> GraphCase<'_> {
        GraphCase { graph: &self.graph, first_qp: self.first_qp, release_ps: self.release_ps, fresh_qp: self.fresh_qp }
    }
}

/// The flow that stands for a queue pair between two ranks.
pub fn queue_pair(id: u32, src_rank: u32, dst_rank: u32) -> Flow {
    Flow { id, src_rank, dst_rank, bytes: 0, start_ps: NEVER, sport: 20_000 + id as u16, dport: 100, class: 3 }
}
