//! The JSON of a dump: entries of the recorder, and members of process groups.
//!
//! Layer: workload. It checks each entry by itself, and keeps only what a workload needs of it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use crate::collective::CollectiveOp;
use crate::workload::import::torch::calls::{CallKind, bytes_of_element, kind_of};
use crate::workload::import::torch::listed;
use crate::workload::import::{ImportError, MAX_BYTES};
use hyperfold_base::budget::{self, MemoryMeter};
use hyperfold_base::json_scalar::JsonScalar;

/// How a dump is written as JSON, for messages.
pub(super) const HOW_TO_WRITE: &str = "torch._C._distributed_c10d._dump_nccl_trace_json() writes JSON";

/// A dump of one rank.
#[derive(Debug, Default)]
pub(super) struct DumpFile {
    /// Version of the format, such as `2.4`.
    pub(super) version: String,
    /// Members of process groups by name.
    pub(super) groups: BTreeMap<String, Vec<u32>>,
    pub(super) entries: Vec<Entry>,
    /// Names and descriptions of process groups that entries name.
    pub(super) named: Vec<(String, String)>,
}

/// An entry of the recorder.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) record_id: u64,
    /// Index into [`DumpFile::named`].
    pub(super) named: u32,
    pub(super) is_message: bool,
    pub(super) sequence: u64,
    pub(super) what: What,
    pub(super) created_ns: u64,
    pub(super) duration_ns: Option<u64>,
    pub(super) has_completed: bool,
}

/// What an entry stands for.
#[derive(Clone, Debug)]
pub(super) enum What {
    Call {
        kind: CallKind,
        /// PyTorch's name, without that of the library.
        name: Box<str>,
        in_bytes: u64,
        out_bytes: u64,
        /// Own member and the other one, of messages.
        ends: (u32, u32),
    },
    /// The end of calls that are launched together, with the collective that they make up.
    End(Option<CollectiveOp>),
}

/// Reads a dump. Errors name the line and column, or the entry.
pub(super) fn read(path: &str, bytes: &[u8]) -> Result<DumpFile, ImportError> {
    let bad = |problem: String| ImportError::path(path, problem);
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(bad("it is compressed; unpack it with gunzip".to_string()));
    }
    if bytes.starts_with(&[0x80]) {
        return Err(bad(format!("it is a pickle; a dump as JSON would be right: {HOW_TO_WRITE}")));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| bad(format!("byte {}: it is no UTF-8 text", e.valid_up_to())))?;
    let file: File = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|e| bad(e.to_string()))?;
    let version = file.version.text();
    if version.is_empty() || (file.entries.is_none() && file.pg_config.is_empty()) {
        return Err(bad(format!(
            "it has no `version` with `entries`, as a dump of the flight recorder has; {HOW_TO_WRITE}"
        )));
    }
    if version.split('.').next() != Some("2") {
        return Err(bad(format!("it has version {version}; PyTorch from 2.4 on writes version 2")));
    }
    let groups =
        file.pg_config.into_iter().map(|(name, group)| (name, listed(&group.ranks.text()).unwrap_or_default()));
    let Entries { list, named } = file.entries.unwrap_or_default();
    Ok(DumpFile { version, groups: groups.collect(), entries: list, named })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    version: JsonScalar,
    pg_config: BTreeMap<String, GroupInfo>,
    entries: Option<Entries>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupInfo {
    ranks: JsonScalar,
}

#[derive(Default)]
struct Entries {
    list: Vec<Entry>,
    named: Vec<(String, String)>,
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Entries, D::Error> {
        d.deserialize_seq(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Entries, A::Error> {
        let mut entries = Entries::default();
        let mut index_of: BTreeMap<(String, String), u32> = BTreeMap::new();
        let meter = MemoryMeter::new(budget::total() / 2);
        while let Some(raw) = seq.next_element::<RawEntry>()? {
            let full = entries.list.len() == entries.list.capacity();
            let growth = if full { 2 * entries.list.len() } else { 0 };
            meter.check("entries", (growth * size_of::<Entry>()) as u64).map_err(|exceeded| {
                let max_mib = exceeded.allowance >> 20;
                serde::de::Error::custom(format!(
                    "the entries up to here take more than {max_mib} MiB, half of the memory that may be used; a smaller TORCH_NCCL_TRACE_BUFFER_SIZE would be right"
                ))
            })?;
            let key = raw.group_key();
            let named = *index_of.entry(key.clone()).or_insert_with(|| {
                entries.named.push(key);
                entries.named.len() as u32 - 1
            });
            let shown = raw.shown();
            let entry = raw.entry(named).map_err(|why| serde::de::Error::custom(format!("{shown}: {why}")))?;
            entries.list.push(entry);
        }
        Ok(entries)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawEntry {
    record_id: JsonScalar,
    process_group: GroupName,
    collective_seq_id: JsonScalar,
    p2p_seq_id: JsonScalar,
    is_p2p: Option<bool>,
    profiling_name: JsonScalar,
    time_created_ns: JsonScalar,
    duration_ms: JsonScalar,
    input_sizes: Vec<Vec<u64>>,
    input_dtypes: Vec<Box<str>>,
    output_sizes: Vec<Vec<u64>>,
    output_dtypes: Vec<Box<str>>,
    state: JsonScalar,
}

/// Name and description of a process group.
#[derive(Default, Deserialize)]
#[serde(from = "Vec<JsonScalar>")]
struct GroupName(String, String);

impl From<Vec<JsonScalar>> for GroupName {
    fn from(parts: Vec<JsonScalar>) -> GroupName {
        let text = |i: usize| parts.get(i).map(JsonScalar::text).unwrap_or_default();
        GroupName(text(0), text(1))
    }
}

impl RawEntry {
    fn group_key(&self) -> (String, String) {
        (self.process_group.0.clone(), self.process_group.1.clone())
    }

    /// The entry, for messages.
    fn shown(&self) -> String {
        let name: String = self.profiling_name.text().chars().take(60).collect();
        let id = self.record_id.whole().map_or_else(|| "without record_id".to_string(), |id| format!("record_id {id}"));
        format!("entry `{name}` ({id})")
    }

    fn entry(self, named: u32) -> Result<Entry, String> {
        let whole = |value: &JsonScalar, field: &str| {
            value.whole().ok_or_else(|| format!("it has no whole number as `{field}`"))
        };
        let what = self.what()?;
        let by_name = matches!(&what, What::Call { kind: CallKind::Send | CallKind::Recv, .. });
        let is_message = self.is_p2p.unwrap_or(by_name);
        if by_name && !is_message {
            return Err("it is a message whose `is_p2p` is false".to_string());
        }
        let sequence = if is_message {
            whole(&self.p2p_seq_id, "p2p_seq_id")?
        } else {
            whole(&self.collective_seq_id, "collective_seq_id")?
        };
        let duration_ns = match self.duration_ms.number() {
            Some(ms) if (0.0..=1e12).contains(&ms) => Some((ms * 1e6).round() as u64),
            Some(ms) => return Err(format!("it has duration_ms {ms}; a duration is at least 0")),
            None => None,
        };
        Ok(Entry {
            record_id: whole(&self.record_id, "record_id")?,
            named,
            is_message,
            sequence,
            what,
            created_ns: whole(&self.time_created_ns, "time_created_ns")?,
            duration_ns,
            has_completed: self.state.as_str() == Some("completed"),
        })
    }

    fn what(&self) -> Result<What, String> {
        let full = self.profiling_name.as_str().unwrap_or_default();
        let Some((library, rest)) = full.split_once(':') else {
            return Err(
                "its `profiling_name` has no colon; a name such as `nccl:all_reduce` would be right".to_string()
            );
        };
        if !["nccl", "xccl"].contains(&library) {
            return Err(format!(
                "it is a call of `{library}`, not of NCCL; a dump of NCCL's calls alone would be right"
            ));
        }
        let (name, ends) = rest.split_once(' ').unwrap_or((rest, ""));
        match name {
            "coalesced" => return Ok(What::End(None)),
            "ALLGATHER_coalesced" => return Ok(What::End(Some(CollectiveOp::AllGather))),
            "REDUCE_SCATTER_coalesced" => return Ok(What::End(Some(CollectiveOp::ReduceScatter))),
            _ => {}
        }
        let kind = kind_of(name)?;
        let ends = match kind {
            CallKind::Send => ends.split_once("->"),
            CallKind::Recv => ends.split_once("<-"),
            CallKind::Collective(_) => Some(("0", "0")),
        };
        let member = |text: &str| text.trim().parse::<u32>().ok();
        let ends = ends.and_then(|(own, other)| Some((member(own)?, member(other)?)));
        let ends = ends
            .ok_or("its name lacks the two ends of a message; `nccl:send 0->1` or `nccl:recv 1<-0` would be right")?;
        let in_bytes = bytes(name, &self.input_sizes, &self.input_dtypes)?;
        let out_bytes = bytes(name, &self.output_sizes, &self.output_dtypes)?;
        if self.input_sizes.is_empty()
            && self.output_sizes.is_empty()
            && kind != CallKind::Collective(CollectiveOp::Barrier)
        {
            return Err("it has no sizes; the recorder of a newer PyTorch notes them".to_string());
        }
        Ok(What::Call { kind, name: name.into(), in_bytes, out_bytes, ends })
    }
}

/// Bytes of all tensors of a call.
fn bytes(call: &str, sizes: &[Vec<u64>], dtypes: &[Box<str>]) -> Result<u64, String> {
    if sizes.len() != dtypes.len() {
        return Err(format!("`{call}` has {} tensors, but {} dtypes", sizes.len(), dtypes.len()));
    }
    let mut sum = 0u64;
    for (size, dtype) in sizes.iter().zip(dtypes) {
        let element = bytes_of_element(call, dtype)?;
        let of_tensor = size.iter().try_fold(element, |product, n| product.checked_mul(*n));
        sum = of_tensor.and_then(|bytes| sum.checked_add(bytes)).filter(|sum| *sum <= MAX_BYTES).ok_or_else(|| {
            format!("`{call}` has a tensor of {size:?} elements, with which it has more than {MAX_BYTES} bytes")
        })?;
    }
    Ok(sum)
}
