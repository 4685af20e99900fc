//! Algorithms of `workload.algorithm`: what they are called in `collective`, and which operations they carry out.
//!
//! Layer: host. `planner` uses it. Knows no machine.

use hyperfold_config::spec;
use hyperfold_llm::collective::{Algorithm, CollectiveOp};

/// Converts `workload.algorithm` to the type of `collective`.
pub(super) fn general(algorithm: spec::AlgorithmChoice) -> Algorithm {
    match algorithm {
        spec::AlgorithmChoice::Auto => Algorithm::Auto,
        spec::AlgorithmChoice::Ring => Algorithm::Ring,
        spec::AlgorithmChoice::Tree => Algorithm::Tree,
        spec::AlgorithmChoice::HalvingDoubling => Algorithm::HalvingDoubling,
        spec::AlgorithmChoice::Pat => Algorithm::Pat,
        spec::AlgorithmChoice::Direct => Algorithm::Direct,
        spec::AlgorithmChoice::Hierarchical => Algorithm::Hierarchical,
        spec::AlgorithmChoice::Nvls => Algorithm::Nvls,
        spec::AlgorithmChoice::InNetwork => Algorithm::InNetwork,
        spec::AlgorithmChoice::CollnetChain => Algorithm::CollnetChain,
    }
}

/// Whether switches reduce by this algorithm, inside servers or between them.
pub(super) fn has_switches(algorithm: Algorithm) -> bool {
    algorithm == Algorithm::Nvls || algorithm.reduces_in_network()
}

/// Why switches cannot carry out an operation by this algorithm, in words for the user.
pub(super) fn no_sum_by_switches(op: CollectiveOp, algorithm: Algorithm) -> String {
    let right = match algorithm {
        Algorithm::CollnetChain => "NCCL has chains of GPUs to a switch only for all-reduce and barrier",
        _ => "switches reduce only for all-reduce, all-gather, reduce-scatter and barrier",
    };
    format!("{} by {} does not exist; {right}", op.name(), algorithm.name())
}

/// Whether an operation can be carried out by an algorithm.
pub(super) fn exists(op: CollectiveOp, algorithm: Algorithm) -> bool {
    match algorithm {
        Algorithm::Auto | Algorithm::Direct | Algorithm::Hierarchical => true,
        Algorithm::Ring => !op.is_all_to_all(),
        Algorithm::Tree => matches!(
            op,
            CollectiveOp::AllReduce | CollectiveOp::Barrier | CollectiveOp::Broadcast | CollectiveOp::Reduce
        ),
        Algorithm::CollnetChain => matches!(op, CollectiveOp::AllReduce | CollectiveOp::Barrier),
        Algorithm::Pat => matches!(op, CollectiveOp::AllGather | CollectiveOp::ReduceScatter),
        Algorithm::HalvingDoubling | Algorithm::Nvls | Algorithm::InNetwork => {
            matches!(
                op,
                CollectiveOp::AllReduce | CollectiveOp::Barrier | CollectiveOp::AllGather | CollectiveOp::ReduceScatter
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_llm::collective::{ScheduleOptions, Shape, build};

    #[test]
    fn what_exists_is_what_can_be_built() {
        let shape = Shape::servers(2, 2);
        for op in CollectiveOp::PLAIN {
            for a in [
                Algorithm::Ring,
                Algorithm::Tree,
                Algorithm::HalvingDoubling,
                Algorithm::Pat,
                Algorithm::Direct,
                Algorithm::Hierarchical,
            ] {
                assert_eq!(
                    build(op, a, 4096, &shape, &ScheduleOptions::default()).is_ok(),
                    exists(op, a),
                    "{op:?} by {a:?}"
                );
            }
        }
    }
}
