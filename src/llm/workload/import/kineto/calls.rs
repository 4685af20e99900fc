//! What NCCL's kernels say of their calls: operation, bytes, and the other end of a message.
//!
//! Layer: workload. It reads arguments of one event.

use super::events::CommArgs;
use crate::collective::CollectiveOp;
use crate::workload::import::MAX_BYTES;
use crate::workload::import::torch::calls::{CallKind, bytes_of_element, kind_of};

/// A call of NCCL.
#[derive(Clone, Copy, Debug)]
pub(super) struct NcclCall {
    pub(super) kind: CallKind,
    /// Bytes that a rank begins with.
    pub(super) in_bytes: u64,
    /// Bytes that a rank ends with.
    pub(super) out_bytes: u64,
    /// Whether a rank sends parts of different sizes.
    pub(super) is_uneven: bool,
}

impl NcclCall {
    /// The call of a kernel. The error says what the trace lacks, and what would be right.
    pub(super) fn of(args: &CommArgs) -> Result<NcclCall, String> {
        let Some(name) = args.collective.as_deref().filter(|name| !name.is_empty()) else {
            return Err(
                "it does not say its collective; PyTorch from 2.3 on notes it, though not of calls that were put together (batch_isend_irecv, coalescing)"
                    .to_string(),
            );
        };
        let kind = kind_of(name)?;
        if kind == CallKind::Collective(CollectiveOp::Barrier) {
            return Ok(NcclCall { kind, in_bytes: 0, out_bytes: 0, is_uneven: false });
        }
        let dtype = args.dtype.as_deref().unwrap_or_default();
        let element = bytes_of_element(name, dtype)?;
        let bytes = |elements: Option<u64>, field: &str| {
            let elements = elements.ok_or_else(|| format!("`{name}` has no `{field}`; its size is not known"))?;
            elements
                .checked_mul(element)
                .filter(|bytes| *bytes <= MAX_BYTES)
                .ok_or_else(|| format!("`{name}` has {elements} elements, more than {MAX_BYTES} bytes"))
        };
        // A receive has no input, and some versions give only one of the two.
        let (in_bytes, out_bytes) = match (args.in_elements, args.out_elements) {
            (Some(_), Some(_)) => {
                (bytes(args.in_elements, "In msg nelems")?, bytes(args.out_elements, "Out msg nelems")?)
            }
            (None, Some(_)) if kind == CallKind::Recv => (0, bytes(args.out_elements, "Out msg nelems")?),
            _ => (bytes(args.in_elements, "In msg nelems")?, 0),
        };
        Ok(NcclCall { kind, in_bytes, out_bytes, is_uneven: is_uneven(&args.in_split) })
    }

    /// Bytes of a message: what a sender begins with, or a receiver ends with.
    pub(super) fn message_bytes(&self) -> u64 {
        if self.kind == CallKind::Recv { self.out_bytes.max(self.in_bytes) } else { self.in_bytes.max(self.out_bytes) }
    }

    /// Bytes of a collective among `members`, as a program counts them. `None`: too many.
    pub(super) fn collective_bytes(&self, members: u64) -> Option<u64> {
        match self.kind {
            CallKind::Collective(CollectiveOp::AllGather) if self.out_bytes == 0 => {
                self.in_bytes.checked_mul(members).filter(|bytes| *bytes <= MAX_BYTES)
            }
            CallKind::Collective(CollectiveOp::AllGather) => Some(self.out_bytes),
            _ => Some(self.in_bytes),
        }
    }
}

/// Whether a list of sizes has different ones.
fn is_uneven(list: &str) -> bool {
    let mut sizes = list.trim_matches(['[', ']']).split(',').map(str::trim).filter(|size| !size.is_empty());
    let first = sizes.next();
    sizes.any(|size| Some(size) != first)
}
