//! Reads SimAI's and AICB's workload text: the header, the layer count, one row per layer.
//!
//! Layer: workload. It reads both kinds of headers (with and without `ep`, `pp`, `vpp`, `ga`, `all_gpus`, `pp_comm`); `simai_program` makes programs of the
//! rows. Names of fields follow the format. Durations are nanoseconds, sizes bytes.

use std::path::Path;

use super::simai_file::{SimaiFile, SimaiKind, SimaiLayer, SimaiPart, SimaiScope};
use super::{ImportError, ImportOptions, Imported, MAX_BYTES, MAX_PS, MAX_RANKS, simai_program};
use crate::collective::CollectiveOp;
use hyperfold_base::units::PS_PER_NS;
use hyperfold_network::topology::FileError;
use hyperfold_network::topology::text::{Line, Lines, load_text, shown};

/// First words of the headers that can be read.
pub(super) const KINDS: [&str; 6] =
    ["HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "DATA", "MODEL", "DISTRIBUTED_INFERENCE", "MICRO"];
/// First words of headers that are rejected because they say less than a simulation needs, with the reason.
const REFUSED: [(&str, &str); 5] = [
    ("HYBRID_DATA_MODEL", "its groups are dimensions of a logical topology that the file does not have"),
    ("HYBRID_MODEL_DATA", "its groups are dimensions of a logical topology that the file does not have"),
    ("HYBRID_CUSTOMIZED", "its groups are dimensions of a logical topology that the file does not have"),
    ("HYBRID_DLRM", "its order of embedding exchange is not supported"),
    ("HYBRID_DLRM_ENHANCED", "its order of embedding exchange is not supported"),
];
const ROW_SHAPE: &str =
    "name dependency fwd_ns fwd_comm fwd_bytes ig_ns ig_comm ig_bytes wg_ns wg_comm wg_bytes update_ns";
/// Maximum number of layers: far beyond real files. The limit makes a wrong count harmless.
const MAX_LAYERS: u32 = 1 << 24;

/// Reads a workload file. The number of ranks is `options.ranks`, else the header's `all_gpus`, else the smallest that holds its groups and at least a server
/// of 8.
///
/// # Errors
/// The file cannot be read, a line does not parse, or the ranks do not divide into the header's groups.
pub fn read(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    parse(&path.display().to_string(), &load_text(path)?, options)
}

/// Returns `all_gpus` of a workload file's header. `None`: the header leaves the number of ranks open, or [`read`] refuses it.
pub fn all_gpus(path: &Path) -> Option<u32> {
    let text = load_text(path).ok()?;
    let (file, ..) = parse_header(&Lines::new("", &text).next_line()?).ok()?;
    Some(file.all_gpus).filter(|&ranks| ranks > 0)
}

/// Parses workload text; `path` is for messages.
///
/// # Errors
/// All errors of [`read`] except those of reading the file.
pub fn parse(path: &str, text: &str, options: &ImportOptions) -> Result<Imported, ImportError> {
    simai_program::build(path, parse_file(path, text)?, options)
}

pub(super) fn parse_file(path: &str, text: &str) -> Result<SimaiFile, FileError> {
    let mut lines = Lines::new(path, text);
    let header = lines.expect(|| {
        "it should begin with a parallelism such as HYBRID_TRANSFORMER_FWD_IN_BCKWD, or MICRO".to_string()
    })?;
    let (mut file, checkpoints, initiates) = parse_header(&header)?;
    let count_line = lines.expect(|| "the number of layers should follow".to_string())?;
    let [count] = count_line.exactly("number of layers")?;
    let count = count_line.number("the number of layers", count, 1, MAX_LAYERS)?;
    while file.layers.len() < count as usize {
        let n = file.layers.len();
        let line = lines.expect(|| {
            format!(
                "line {} announces {count} layers, the file has {n}; it is cut off, or the count should be {n}",
                count_line.number
            )
        })?;
        let layer = parse_layer(&line, n)?;
        file.layers.push(layer);
    }
    let mut left_out = 0;
    while lines.next_line().is_some() {
        left_out += 1;
    }
    if left_out > 0 {
        file.notes.push(format!(
            "{left_out} line(s) follow the {count} layers that line {} announces; they are left out",
            count_line.number
        ));
    }
    for (key, marks, set) in [("checkpoints", checkpoints, true), ("checkpoint_initiates", initiates, false)] {
        for mark in marks {
            let n = file.layers.len();
            let layer = file.layers.get_mut(mark as usize);
            let layer = layer.ok_or_else(|| {
                header.error(format!("{key} names layer {mark}, but the {n} layers are numbered from 0"))
            })?;
            if set {
                layer.checkpoint = true;
            } else {
                layer.initiates_recompute = true;
            }
        }
    }
    if let Some(i) = file.layers.iter().position(|l| l.initiates_recompute)
        && !file.layers[..=i].iter().any(|l| l.checkpoint)
    {
        return Err(header.error(format!(
            "layer {i} initiates a recomputation, but no layer up to it is a checkpoint; name one in `checkpoints`"
        )));
    }
    let broadcasts = file
        .layers
        .iter()
        .flat_map(|l| [&l.fwd, &l.ig, &l.wg])
        .filter(|p| matches!(p.comm, Some((CollectiveOp::Broadcast, ..))))
        .count();
    if broadcasts > 0 {
        file.notes.push(format!("{broadcasts} BROADCAST(s) are simulated; SimAI itself leaves them out"));
    }
    Ok(file)
}

/// Parses the header. Returns it with the layers that are checkpoints and the layers that initiate recomputation.
fn parse_header(line: &Line) -> Result<(SimaiFile, Vec<u32>, Vec<u32>), FileError> {
    // The forms `key: value`, `key:value` and `key value` all occur.
    let spaced = line.text.replace(':', " ");
    let mut words = spaced.split_whitespace().peekable();
    let first = words.next().unwrap_or_default();
    let kind = match first {
        "HYBRID_TRANSFORMER" => SimaiKind::Transformer,
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD" => SimaiKind::Recompute,
        "DATA" => SimaiKind::Data,
        "MODEL" => SimaiKind::Model,
        "DISTRIBUTED_INFERENCE" => SimaiKind::Inference,
        "MICRO" => SimaiKind::Micro,
        _ => {
            let why =
                REFUSED.iter().find(|(word, _)| *word == first).map_or("it is no parallelism of SimAI", |(_, why)| why);
            return Err(line.error(format!(
                "`{}` cannot be read: {why}; what can is {}",
                shown(first),
                KINDS.join(", ")
            )));
        }
    };
    let mut file = SimaiFile {
        kind,
        tp: 1,
        ep: 1,
        pp: 1,
        vpp: 1,
        ga: 1,
        all_gpus: 0,
        pp_comm: 0,
        layers: Vec::new(),
        notes: Vec::new(),
    };
    let (mut checkpoints, mut initiates) = (Vec::new(), Vec::new());
    let mut seen: Vec<&str> = Vec::new();
    while let Some(key) = words.next() {
        if seen.contains(&key) {
            return Err(line.error(format!("`{}` is given twice", shown(key))));
        }
        seen.push(key);
        let value =
            words.next().ok_or_else(|| line.error(format!("`{}` has no value; write `{key}: 1`", shown(key))))?;
        let size = |max: u32| line.number(key, value, 1, max);
        match key {
            "model_parallel_NPU_group" => file.tp = size(MAX_RANKS)?,
            "ep" => file.ep = size(MAX_RANKS)?,
            "pp" => file.pp = size(MAX_RANKS)?,
            "vpp" => file.vpp = size(1 << 16)?,
            "ga" => file.ga = size(1 << 20)?,
            "all_gpus" => file.all_gpus = size(MAX_RANKS)?,
            "pp_comm" => file.pp_comm = line.number(key, value, 0, MAX_BYTES)?,
            "checkpoints" | "checkpoint_initiates" => {
                let n: u32 = line.number(key, value, 0, MAX_LAYERS)?;
                let list = if key == "checkpoints" { &mut checkpoints } else { &mut initiates };
                for _ in 0..n {
                    let layer = words
                        .next()
                        .ok_or_else(|| line.error(format!("`{key}: {n}` should be followed by {n} layer number(s)")))?;
                    list.push(line.number("a layer number", layer, 0, MAX_LAYERS)?);
                }
            }
            // Unknown keys are ignored with a note, as SimAI does, so that newer headers can be read.
            _ => {
                file.notes.push(format!("the header's `{}: {}` is not known and is left out", shown(key), shown(value)))
            }
        }
    }
    if kind != SimaiKind::Recompute && !(checkpoints.is_empty() && initiates.is_empty()) {
        return Err(line.error(format!("checkpoints belong to HYBRID_TRANSFORMER_FWD_IN_BCKWD, not to {first}")));
    }
    Ok((file, checkpoints, initiates))
}

fn parse_layer(line: &Line, index: usize) -> Result<SimaiLayer, FileError> {
    let [name, dependency, fwd_ns, fwd_comm, fwd_bytes, ig_ns, ig_comm, ig_bytes, wg_ns, wg_comm, wg_bytes, update_ns] =
        line.exactly(ROW_SHAPE)?;
    // A valid dependency is an earlier row, so the order of rows already ensures it.
    let dependency: i64 = line.number("dependency", dependency, -1, i64::from(MAX_LAYERS))?;
    if dependency >= index as i64 {
        return Err(line.error(format!(
            "layer {index} depends on layer {dependency}, which does not come before it; -1 stands for none"
        )));
    }
    let part = |part_name: &str, ns: &str, comm: &str, bytes: &str| -> Result<SimaiPart, FileError> {
        Ok(SimaiPart {
            ps: duration(line, &format!("{part_name}_ns"), ns)?,
            comm: communication(line, part_name, comm, bytes)?,
        })
    };
    Ok(SimaiLayer {
        name: name.to_string(),
        fwd: part("fwd", fwd_ns, fwd_comm, fwd_bytes)?,
        ig: part("ig", ig_ns, ig_comm, ig_bytes)?,
        wg: part("wg", wg_ns, wg_comm, wg_bytes)?,
        update_ps: duration(line, "update_ns", update_ns)?,
        checkpoint: false,
        initiates_recompute: false,
    })
}

fn duration(line: &Line, field_name: &str, text: &str) -> Result<u64, FileError> {
    Ok(line.number::<u64>(field_name, text, 0, MAX_PS / PS_PER_NS)? * PS_PER_NS)
}

fn communication(
    line: &Line,
    part_name: &str,
    comm: &str,
    bytes: &str,
) -> Result<Option<(CollectiveOp, SimaiScope, u64)>, FileError> {
    let bytes: u64 = line.number(&format!("{part_name}_bytes"), bytes, 0, MAX_BYTES)?;
    // SimAI does not look at the size either if the kind is `NONE`.
    if comm == "NONE" {
        return Ok(None);
    }
    let (word, scope) = match comm {
        _ if comm.ends_with("_DP_EP") => (&comm[..comm.len() - 6], SimaiScope::DpEp),
        _ if comm.ends_with("_EP") => (&comm[..comm.len() - 3], SimaiScope::Ep),
        _ => (comm, SimaiScope::Default),
    };
    let op = match word {
        "ALLREDUCE" => CollectiveOp::AllReduce,
        "ALLGATHER" => CollectiveOp::AllGather,
        "REDUCESCATTER" => CollectiveOp::ReduceScatter,
        "ALLTOALL" => CollectiveOp::AllToAll,
        "BROADCAST" => CollectiveOp::Broadcast,
        _ => {
            return Err(line.error(format!(
                "{part_name}_comm `{}` is none of NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, BROADCAST, alone or with _EP or _DP_EP",
                shown(comm)
            )));
        }
    };
    Ok((bytes > 0).then_some((op, scope, bytes)))
}
