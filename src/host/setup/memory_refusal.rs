//! The refusal of an experiment that needs too much memory: what it needs, what it may take, and what would make it smaller.
//!
//! Layer: host. Counts bytes of what would be built; builds nothing.

use std::fmt;

use hyperfold_base::budget::{self, OverBudget};
use hyperfold_base::units::thousands;
use hyperfold_columns::Task;
use hyperfold_config::spec::{Config, Joining, KeyId, OpChoice, ProgramSpec, Source, WorkloadSection};
use hyperfold_llm::workload::lower::GraphSize;
use hyperfold_llm::workload::tasks::{GraphTask, OpTasks};

/// An experiment that would take more memory than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRefusal {
    /// Bytes that it needs, at least.
    pub wanted: u64,
    /// Bytes that it may take.
    pub allowance: u64,
    /// A description of the needed bytes' use.
    sum: String,
    bound: MemoryBound,
    hint: &'static str,
}

/// The limit of the memory of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemoryBound {
    /// `limits.memory_gib`.
    Own,
    /// A part of the memory that the process may use, which is so many bytes.
    PartOf(u64),
    /// All memory that the process may use.
    Whole,
}

/// Hints for an experiment at flow level.
const JOIN: &str = ", set fidelity.join = \"ranks\", which makes one flow of what ranks send alike";
const NO_RELAYS: &str =
    ", set workload.pxn = false, so that an all-to-all is one flow and not messages that GPUs of a server relay";
const JOIN_WITHOUT_RELAYS: &str = ", set fidelity.join = \"ranks\", which makes one flow of what ranks send alike, and workload.pxn = false, as relayed all-to-alls stay messages";

/// Returns what makes an experiment at flow level smaller, if a key does.
fn hint(config: &Config) -> &'static str {
    let WorkloadSection::Program(program) = &config.workload else { return "" };
    if !config.is_flow_level() {
        return "";
    }
    match (config.joining(), has_relays(config, program)) {
        (Joining::Ranks, true) => NO_RELAYS,
        (Joining::Ranks, false) => "",
        (_, true) => JOIN_WITHOUT_RELAYS,
        (_, false) => JOIN,
    }
}

/// Whether GPUs relay messages of all-to-alls to others of their servers (NCCL's PXN).
fn has_relays(config: &Config, program: &ProgramSpec) -> bool {
    let exchanges = match &program.source {
        Source::Model(training) => training.ep > 1,
        Source::Collective { op, .. } => *op == OpChoice::AllToAll,
        Source::Inference(_) | Source::File { .. } => false,
    };
    let is_fixed = ["direct", "hierarchical"].iter().any(|name| config.values.is(KeyId::Algorithm, name));
    program.communication.pxn && exchanges && !is_fixed && config.cluster.nics_per_server > 1
}

impl MemoryRefusal {
    /// Creates the refusal of an experiment that was stopped while it was prepared.
    pub fn of(config: &Config, excess: &OverBudget) -> MemoryRefusal {
        let bound = match config.limits.memory_bytes {
            Some(limit) if limit == excess.allowance => MemoryBound::Own,
            _ if excess.allowance < budget::total() => MemoryBound::PartOf(budget::total()),
            _ => MemoryBound::Whole,
        };
        let hint = hint(config);
        let sum = format!("counted up to the {}", excess.what);
        MemoryRefusal { wanted: excess.wanted, allowance: excess.allowance, sum, bound, hint }
    }

    /// Creates the refusal of an experiment with so many flows.
    pub(crate) fn of_flows(flows: u64, wanted: u64, allowance: u64) -> MemoryRefusal {
        let sum = format!("for {} flows", thousands(flows));
        MemoryRefusal { wanted, allowance, sum, bound: MemoryBound::Whole, hint: "" }
    }
}

impl fmt::Display for MemoryRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory: it needs at least {}, {}, and may take ", gib(self.wanted), self.sum)?;
        match self.bound {
            MemoryBound::Own => write!(f, "{}, because limits.memory_gib says so", gib(self.allowance))?,
            MemoryBound::PartOf(all) => {
                let rest = "because the rest is for what is prepared or grows beside it";
                write!(f, "{} of {}, {rest}", gib(self.allowance), gib(all))?;
            }
            MemoryBound::Whole => write!(f, "{}, all that this process may use", gib(self.allowance))?,
        }
        let hint = self.hint;
        write!(
            f,
            "; make the experiment smaller{hint}, or allow more: --memory, limits.memory_gib, a machine with more memory"
        )
    }
}

/// Refuses a program whose task graph cannot fit, before its tasks are generated, which may take minutes.
///
/// # Errors
/// The task graph cannot fit.
pub(crate) fn check_graph(config: &Config, size: &GraphSize) -> Result<(), MemoryRefusal> {
    let allowance = config.limits.memory_bytes.unwrap_or(u64::MAX).min(budget::total());
    let bytes = |n: u64, each: usize| n.saturating_mul(each as u64);
    let rows = bytes(size.tasks, size_of::<Task>());
    let graph = bytes(size.tasks, size_of::<GraphTask>()).saturating_add(bytes(size.ops, size_of::<OpTasks>()));
    // Tasks exist twice while they move into the world, as in `Prepared::peak_bytes`.
    let wanted = rows.saturating_mul(2).saturating_add(graph);
    if wanted <= allowance {
        return Ok(());
    }
    let excess = OverBudget { wanted, allowance, what: "tasks" };
    let messages = match size.messages {
        0 => String::new(),
        messages => format!(", {} messages among them", thousands(messages)),
    };
    let each = wanted / size.tasks.max(1);
    let (tasks, ops) = (thousands(size.tasks), thousands(size.ops));
    let sum = format!("for {tasks} tasks of {ops} operations{messages}, of {each} bytes each or more");
    Err(MemoryRefusal { sum, ..MemoryRefusal::of(config, &excess) })
}

/// Formats bytes as GiB, or as MiB below 1 GiB.
fn gib(bytes: u64) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    if mib < 1024.0 { format!("{mib:.0} MiB") } else { format!("{:.1} GiB", mib / 1024.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_memory_is_told_with_the_whole_and_the_reason() {
        let sum = "counted up to the paths".to_string();
        let whole = MemoryRefusal { wanted: 5 << 30, allowance: 6 << 30, sum, bound: MemoryBound::Whole, hint: "" };
        let part =
            MemoryRefusal { allowance: 9 << 29, bound: MemoryBound::PartOf(6 << 30), hint: JOIN, ..whole.clone() };
        let text = part.to_string();
        assert!(
            text.contains("needs at least 5.0 GiB, counted up to the paths, and may take 4.5 GiB of 6.0 GiB, because ")
        );
        assert!(text.contains("fidelity.join = \"ranks\""), "{text}");
        assert!(whole.to_string().contains("may take 6.0 GiB, all that this process may use"));
        let own = MemoryRefusal { bound: MemoryBound::Own, ..whole };
        assert!(own.to_string().contains("because limits.memory_gib says so"));
    }
}
