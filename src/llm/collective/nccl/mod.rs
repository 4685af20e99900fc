//! NCCL: its protocols, its cost model and the choice that it makes with it, and its environment variables.
//!
//! Layer: collective. The model only chooses; `collective::cost` estimates how long an operation really takes.

mod choice;
mod env;
mod model;
mod topology;
mod tuning;

#[cfg(test)]
mod tests;

pub use choice::Choice;
pub(super) use choice::{all_to_all_algorithm, carried_out, choose_collective, offered, point_chunk_bytes};
pub use env::{Env, EnvError, Hca, NAMES, PathLevel};
pub use model::{Context, predict_us};
pub(super) use model::{hop_latencies_us, latency_us, uncorrected_gbps};
pub use topology::{GpuNic, NcclTopology, XmlError, topology};
pub(crate) use tuning::tuning;

/// Rate in bit/s, one direction, between two GPUs of a server whose data passes through the host's memory. It is NCCL's figure for a PCIe link of the third
/// generation.
pub fn host_bps() -> u64 {
    (tuning().link_bw.pci_gen3_x16 * 8e9) as u64
}

/// How data and the notice of its arrival travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// 8 bytes of data and 8 of flags in a 16-byte store.
    Ll = 0,
    /// 120 bytes of data and 8 of flags in a 128-byte store.
    Ll128 = 1,
    /// Whole slices, then a fence and a flag.
    Simple = 2,
}

impl Protocol {
    /// All protocols in NCCL's order.
    pub const ALL: [Protocol; 3] = [Protocol::Ll, Protocol::Ll128, Protocol::Simple];

    /// Name of the protocol in `workload.protocol`, `NCCL_PROTO` and `results.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Ll => "LL",
            Protocol::Ll128 => "LL128",
            Protocol::Simple => "Simple",
        }
    }

    /// Bytes on the wire for a payload, with flags, in whole lines.
    pub fn wire_bytes(self, payload: u64) -> u64 {
        let buffers = &tuning().buffers;
        match self {
            Protocol::Ll => payload.div_ceil(buffers.ll_line_bytes / 2) * buffers.ll_line_bytes,
            Protocol::Ll128 => payload.div_ceil(buffers.ll128_line_bytes - 8) * buffers.ll128_line_bytes,
            Protocol::Simple => payload,
        }
    }
}
