//! The encoding of Chakra execution traces: a GlobalMetadata, then Nodes, each preceded by its length.
//!
//! Layer: workload. Field numbers are those of the schema (`et_def.proto`, versions 0.0.4 to 1.0.2). The module `chakra` interprets the nodes. Names are
//! borrowed from the file's bytes. Attributes that no reader here uses are ignored.

use super::ImportError;
use super::wire::{Reader, WireError, WireValue};
use hyperfold_base::protobuf::ProtoMessage;

/// Values of a node's type.
pub(crate) const METADATA: u64 = 1;
pub(crate) const MEM_LOAD: u64 = 2;
pub(crate) const MEM_STORE: u64 = 3;
pub(crate) const COMPUTE: u64 = 4;
pub(crate) const SEND: u64 = 5;
pub(crate) const RECV: u64 = 6;
pub(crate) const COLLECTIVE: u64 = 7;

/// Field numbers of a Node.
mod field {
    pub(super) const ID: u64 = 1;
    pub(super) const NAME: u64 = 2;
    pub(super) const TYPE: u64 = 3;
    pub(super) const CTRL_DEPS: u64 = 4;
    pub(super) const DATA_DEPS: u64 = 5;
    pub(super) const DURATION_MICROS: u64 = 7;
    pub(super) const ATTR: u64 = 10;
}

/// Field numbers of an attribute: its name, and the members of its oneof that occur.
mod attr {
    pub(super) const NAME: u64 = 1;
    pub(super) const INT32: u64 = 7;
    pub(super) const INT64: u64 = 9;
    pub(super) const UINT32: u64 = 11;
    pub(super) const UINT64: u64 = 13;
    pub(super) const SINT32: u64 = 15;
    pub(super) const SINT64: u64 = 17;
    pub(super) const FIXED32: u64 = 19;
    pub(super) const FIXED64: u64 = 21;
    pub(super) const SFIXED32: u64 = 23;
    pub(super) const SFIXED64: u64 = 25;
    pub(super) const BOOL: u64 = 27;
    pub(super) const BOOL_LIST: u64 = 28;
    pub(super) const STRING: u64 = 29;
}

/// A node with the attributes that are used. Numbers of attributes are kept as written; the code that interprets the node checks them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExecutionTraceNode<'a> {
    pub(crate) id: u64,
    pub(crate) name: &'a str,
    pub(crate) kind: u64,
    pub(crate) ctrl_deps: Vec<u64>,
    pub(crate) data_deps: Vec<u64>,
    pub(crate) duration_micros: u64,
    pub(crate) comm_type: Option<i64>,
    pub(crate) comm_size: Option<i64>,
    pub(crate) comm_src: Option<i64>,
    pub(crate) comm_dst: Option<i64>,
    pub(crate) comm_tag: Option<i64>,
    pub(crate) num_ops: Option<i64>,
    pub(crate) tensor_size: Option<i64>,
    pub(crate) is_cpu_op: bool,
    /// Whether the node has `rf_id`, an attribute of PyTorch's record function. Then `ctrl_deps` are parents in the call stack.
    pub(crate) from_pytorch: bool,
    pub(crate) pg_name: Option<&'a str>,
    /// Which dimensions of the topology the collective spans; empty means all.
    pub(crate) involved_dim: Vec<bool>,
    /// Exact duration in ps. This field and the next three are attributes of this project, for what Chakra has no field for.
    pub(crate) duration_ps: Option<i64>,
    pub(crate) collective_bytes: Option<i64>,
    pub(crate) dim: Option<&'a str>,
    pub(crate) phase: Option<&'a str>,
}

/// Names of this project's own attributes.
pub(crate) mod own {
    pub(crate) const DURATION_PS: &str = "hyperfold_duration_ps";
    pub(crate) const COLLECTIVE_BYTES: &str = "hyperfold_collective_bytes";
    pub(crate) const DIM: &str = "hyperfold_dim";
    pub(crate) const PHASE: &str = "hyperfold_phase";
}

/// Calls `each` with every node of a trace and its byte offset; `path` is for messages.
pub(crate) fn nodes<'a>(
    path: &str,
    bytes: &'a [u8],
    mut each: impl FnMut(usize, ExecutionTraceNode<'a>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let error = |offset: usize, part: &str, e: WireError| ImportError::Encoding {
        path: path.to_string(),
        at: offset,
        problem: format!("{part}: {e}; is this a Chakra execution trace (length-delimited protobuf), and whole?"),
    };
    let mut r = Reader::new(bytes);
    let metadata = r.delimited().map_err(|e| error(0, "the metadata", e))?;
    check_metadata(metadata).map_err(|e| error(0, "the metadata", e))?;
    while !r.is_empty() {
        let offset = bytes.len() - r.left();
        let message = r.delimited().map_err(|e| error(offset, "a node", e))?;
        each(offset, node(message).map_err(|e| error(offset, "a node", e))?)?;
    }
    Ok(())
}

/// Checks that a message can be a GlobalMetadata, which holds a version (field 1) or attributes (field 2). A simulation needs none of it, but it shows whether
/// this is a trace at all.
fn check_metadata(message: &[u8]) -> Result<(), WireError> {
    let mut r = Reader::new(message);
    while let Some((number, value)) = r.field()? {
        if let 1 | 2 = number {
            value.bytes(number)?;
        }
    }
    Ok(())
}

fn node(message: &[u8]) -> Result<ExecutionTraceNode<'_>, WireError> {
    let mut n = ExecutionTraceNode::default();
    let mut r = Reader::new(message);
    while let Some((number, value)) = r.field()? {
        match number {
            field::ID => n.id = value.number(number)?,
            field::NAME => n.name = value.text(number)?,
            field::TYPE => n.kind = value.number(number)?,
            field::CTRL_DEPS => value.numbers(number, &mut n.ctrl_deps)?,
            field::DATA_DEPS => value.numbers(number, &mut n.data_deps)?,
            field::DURATION_MICROS => n.duration_micros = value.number(number)?,
            field::ATTR => attribute(value.bytes(number)?, &mut n)?,
            // Start times, inputs and outputs are ignored. A simulation computes the start times and does not need the others.
            _ => {}
        }
    }
    Ok(n)
}

fn attribute<'a>(message: &'a [u8], n: &mut ExecutionTraceNode<'a>) -> Result<(), WireError> {
    let (mut name, mut value) = ("", None);
    let mut r = Reader::new(message);
    while let Some((number, v)) = r.field()? {
        match number {
            attr::NAME => name = v.text(number)?,
            // Field 2 is documentation.
            2 => {}
            _ => value = Some((number, v)),
        }
    }
    match name {
        "comm_type" => n.comm_type = integer(value)?,
        "comm_size" => n.comm_size = integer(value)?,
        "comm_src" => n.comm_src = integer(value)?,
        "comm_dst" => n.comm_dst = integer(value)?,
        "comm_tag" => n.comm_tag = integer(value)?,
        "num_ops" => n.num_ops = integer(value)?,
        "tensor_size" => n.tensor_size = integer(value)?,
        "is_cpu_op" => n.is_cpu_op = integer(value)?.is_some_and(|v| v != 0),
        "rf_id" => n.from_pytorch = true,
        "pg_name" => n.pg_name = text(value)?,
        "involved_dim" => n.involved_dim = bools(value)?,
        own::DURATION_PS => n.duration_ps = integer(value)?,
        own::COLLECTIVE_BYTES => n.collective_bytes = integer(value)?,
        own::DIM => n.dim = text(value)?,
        own::PHASE => n.phase = text(value)?,
        _ => {}
    }
    Ok(())
}

/// An integer attribute's value, whichever integer type it was written with.
fn integer(value: Option<(u64, WireValue)>) -> Result<Option<i64>, WireError> {
    let Some((number, value)) = value else { return Ok(None) };
    let zigzag = |v: u64| (v >> 1) as i64 ^ -((v & 1) as i64);
    let v = match (number, value) {
        (attr::INT32 | attr::INT64 | attr::UINT32 | attr::BOOL, WireValue::Varint(v)) => v as i64,
        (attr::UINT64, WireValue::Varint(v)) | (attr::FIXED64, WireValue::Fixed64(v)) => {
            i64::try_from(v).unwrap_or(i64::MAX)
        }
        (attr::SINT32 | attr::SINT64, WireValue::Varint(v)) => zigzag(v),
        (attr::FIXED32, WireValue::Fixed32(v)) => i64::from(v),
        (attr::SFIXED32, WireValue::Fixed32(v)) => i64::from(v as i32),
        (attr::SFIXED64, WireValue::Fixed64(v)) => v as i64,
        _ => return Err(WireError::Mismatch { field: number }),
    };
    Ok(Some(v))
}

fn text<'a>(value: Option<(u64, WireValue<'a>)>) -> Result<Option<&'a str>, WireError> {
    match value {
        None => Ok(None),
        Some((attr::STRING, v)) => v.text(attr::STRING).map(Some),
        Some((number, _)) => Err(WireError::Mismatch { field: number }),
    }
}

fn bools(value: Option<(u64, WireValue)>) -> Result<Vec<bool>, WireError> {
    let Some((number, value)) = value else { return Ok(Vec::new()) };
    if number != attr::BOOL_LIST {
        return Err(WireError::Mismatch { field: number });
    }
    let (mut numbers, mut r) = (Vec::new(), Reader::new(value.bytes(number)?));
    while let Some((field, v)) = r.field()? {
        if field == 1 {
            v.numbers(field, &mut numbers)?;
        }
    }
    Ok(numbers.into_iter().map(|v| v != 0).collect())
}

/// Appends a GlobalMetadata with a version.
pub(crate) fn write_metadata(out: &mut ProtoMessage) {
    let mut m = ProtoMessage::default();
    m.text(1, "0.0.4");
    out.append_message(&m);
}

/// Appends a Node.
pub(crate) fn write_node(out: &mut ProtoMessage, n: &ExecutionTraceNode) {
    let mut m = ProtoMessage::default();
    m.uint_unless_zero(field::ID, n.id).text(field::NAME, n.name).uint_unless_zero(field::TYPE, n.kind);
    m.packed(field::CTRL_DEPS, n.ctrl_deps.iter().copied()).packed(field::DATA_DEPS, n.data_deps.iter().copied());
    m.uint_unless_zero(field::DURATION_MICROS, n.duration_micros);
    let mut number = |name: &str, member: u64, v: u64| {
        m.message(field::ATTR, |a| {
            a.text(attr::NAME, name).uint(member, v);
        });
    };
    number("is_cpu_op", attr::BOOL, u64::from(n.is_cpu_op));
    let numbers = [
        ("comm_type", attr::INT64, n.comm_type),
        ("comm_size", attr::INT64, n.comm_size),
        ("comm_src", attr::INT32, n.comm_src),
        ("comm_dst", attr::INT32, n.comm_dst),
        ("comm_tag", attr::INT32, n.comm_tag),
        (own::DURATION_PS, attr::INT64, n.duration_ps),
        (own::COLLECTIVE_BYTES, attr::INT64, n.collective_bytes),
    ];
    for (name, member, v) in numbers {
        if let Some(v) = v {
            number(name, member, v as u64);
        }
    }
    for (name, v) in [("pg_name", n.pg_name), (own::DIM, n.dim), (own::PHASE, n.phase)] {
        if let Some(v) = v {
            m.message(field::ATTR, |a| {
                a.text(attr::NAME, name).text(attr::STRING, v);
            });
        }
    }
    out.append_message(&m);
}
