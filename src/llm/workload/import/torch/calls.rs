//! Collectives and messages by PyTorch's names, and sizes of elements.
//!
//! Layer: workload. Tables.

use crate::collective::CollectiveOp;

/// Calls by PyTorch's names for them. Those with `None` have no counterpart here.
const CALLS: [(&str, Option<CallKind>); 39] = [
    ("allreduce", Some(CallKind::Collective(CollectiveOp::AllReduce))),
    ("all_reduce", Some(CallKind::Collective(CollectiveOp::AllReduce))),
    ("allreduce_coalesced", Some(CallKind::Collective(CollectiveOp::AllReduce))),
    ("allgather", Some(CallKind::Collective(CollectiveOp::AllGather))),
    ("all_gather", Some(CallKind::Collective(CollectiveOp::AllGather))),
    ("_allgather_base", Some(CallKind::Collective(CollectiveOp::AllGather))),
    ("allgather_base", Some(CallKind::Collective(CollectiveOp::AllGather))),
    ("all_gather_into_tensor", Some(CallKind::Collective(CollectiveOp::AllGather))),
    ("allgather_into_tensor_coalesced", Some(CallKind::Collective(CollectiveOp::AllGather))),
    ("all_gather_into_tensor_coalesced", Some(CallKind::Collective(CollectiveOp::AllGather))),
    ("_all_gather_base", Some(CallKind::Collective(CollectiveOp::AllGather))),
    ("allgather_coalesced", Some(CallKind::Collective(CollectiveOp::AllGather))),
    ("reduce_scatter", Some(CallKind::Collective(CollectiveOp::ReduceScatter))),
    ("_reduce_scatter_base", Some(CallKind::Collective(CollectiveOp::ReduceScatter))),
    ("reduce_scatter_base", Some(CallKind::Collective(CollectiveOp::ReduceScatter))),
    ("reduce_scatter_tensor", Some(CallKind::Collective(CollectiveOp::ReduceScatter))),
    ("reduce_scatter_tensor_coalesced", Some(CallKind::Collective(CollectiveOp::ReduceScatter))),
    ("all_to_all", Some(CallKind::Collective(CollectiveOp::AllToAll))),
    ("alltoall", Some(CallKind::Collective(CollectiveOp::AllToAll))),
    ("all_to_allv", Some(CallKind::Collective(CollectiveOp::AllToAll))),
    ("alltoall_base", Some(CallKind::Collective(CollectiveOp::AllToAll))),
    ("all_to_all_single", Some(CallKind::Collective(CollectiveOp::AllToAll))),
    ("broadcast", Some(CallKind::Collective(CollectiveOp::Broadcast))),
    ("_broadcast_oop", Some(CallKind::Collective(CollectiveOp::Broadcast))),
    ("reduce", Some(CallKind::Collective(CollectiveOp::Reduce))),
    ("_reduce_oop", Some(CallKind::Collective(CollectiveOp::Reduce))),
    ("barrier", Some(CallKind::Collective(CollectiveOp::Barrier))),
    ("all_reduce_barrier", Some(CallKind::Collective(CollectiveOp::Barrier))),
    ("send", Some(CallKind::Send)),
    ("recv", Some(CallKind::Recv)),
    ("recvanysource", None),
    ("gather", None),
    ("scatter", None),
    ("allgatherv", None),
    ("all_gather_v", None),
    ("reduce_scatterv", None),
    ("reduce_scatter_v", None),
    ("coalesced", None),
    ("nccl:coalesced", None),
];

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::workload::import) enum CallKind {
    Collective(CollectiveOp),
    Send,
    Recv,
}

/// The kind of a call by PyTorch's name. The error says why there is none.
pub(in crate::workload::import) fn kind_of(name: &str) -> Result<CallKind, String> {
    match CALLS.iter().find(|(known, _)| *known == name) {
        Some((_, Some(kind))) => Ok(*kind),
        Some((_, None)) => {
            Err(format!("`{name}` has no counterpart here; sends and receives, one by one, would be right"))
        }
        None => Err(format!("`{name}` is no collective that is known")),
    }
}

/// Bytes of an element of a call, by PyTorch's name of its type. The error says that the type is not known.
pub(in crate::workload::import) fn bytes_of_element(call: &str, dtype: &str) -> Result<u64, String> {
    element_bytes(dtype).ok_or_else(|| {
        format!("`{call}` has dtype `{dtype}`, whose size is not known; Float or BFloat16 would be right")
    })
}

/// Bytes of an element, by PyTorch's name of its type.
fn element_bytes(dtype: &str) -> Option<u64> {
    let name = dtype.trim_start_matches("c10::").trim_start_matches("torch.").to_ascii_lowercase();
    Some(match name.as_str() {
        "complexdouble" | "complex128" => 16,
        "double" | "long" | "int64" | "float64" | "uint64" | "complexfloat" | "complex64" => 8,
        "float" | "int" | "int32" | "float32" | "uint32" => 4,
        "half" | "bfloat16" | "short" | "float16" | "int16" | "uint16" => 2,
        "byte" | "char" | "bool" | "uint8" | "int8" => 1,
        other if other.starts_with("float8") => 1,
        _ => return None,
    })
}
