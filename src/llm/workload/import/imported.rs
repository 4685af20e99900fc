//! Arguments that every importer takes beside a file, and its result.
//!
//! Layer: workload. Reads nothing.

use crate::workload::Flow;
use crate::workload::program::Workload;

/// Options of the importers: values that a file may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ImportOptions {
    /// Number of ranks, for formats that may not give it: SimAI files without `all_gpus`, traces of one rank. For `None` see each reader.
    pub ranks: Option<u32>,
    /// FLOP/s for trace nodes that give `num_ops` and no duration; 0: such nodes are an error.
    pub flops_per_s: u64,
    /// Memory bandwidth in bytes/s for trace nodes that give `tensor_size` and no duration; 0 means that it does not limit anything.
    pub memory_bytes_per_s: u64,
    /// Whether ranks wait for each call of a flight recorder's dump before they go on.
    pub wait_for_calls: bool,
}

/// The result of reading a workload file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Programs of all ranks.
    pub workload: Workload,
    /// The workload as flows, if the file has nothing but flows with start times (htsim without triggers).
    pub flows: Option<Vec<Flow>>,
    /// Notices for the user: what was read differently from what the file says literally.
    pub notes: Vec<String>,
}
