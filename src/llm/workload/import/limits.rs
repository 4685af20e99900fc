//! Limits of what a workload file may ask for.
//!
//! Layer: workload. They keep a typing error in a file from exhausting the memory.

/// Maximum number of ranks of a workload, as many as a network may have nodes. The limit keeps a typing error in a header from exhausting the memory.
pub const MAX_RANKS: u32 = hyperfold_network::topology::MAX_NODES;
/// Maximum number of operations of all distinct programs of a workload together.
pub const MAX_OPS: usize = 1 << 28;
/// Maximum size of one message or collective: a petabyte in bytes, as in flow files.
pub const MAX_BYTES: u64 = crate::workload::MAX_FLOW_BYTES;
/// Maximum length of a single duration in ps: a million seconds.
pub const MAX_PS: u64 = 1_000_000 * hyperfold_base::units::PS_PER_S;
