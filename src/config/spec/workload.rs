//! `[base.workload]` as types: generated traffic and flow files; `program` has programs.
//!
//! Layer: spec. Names files without reading them.

use std::path::Path;

use super::error::Conflict;
use super::key_id::KeyId;
use super::keys::{BUILT_IN_CDFS, built_in_cdf};
use super::lookup::key;
use super::program::ProgramSpec;
use super::scale::scaled;
use super::sections::{CdfChoice, Pattern, StartUnitChoice, WorkloadSection};
use super::value::Values;
use hyperfold_base::units::{PS_PER_NS, PS_PER_US};

/// Checks that a pattern fits `n` members.
pub(super) fn members(pattern: &Pattern, n: u32) -> Result<(), Conflict> {
    match pattern {
        Pattern::Incast { fan_in, .. } if *fan_in >= n => Err(Conflict {
            job: None,
            key: KeyId::FanIn,
            why: format!("{n} GPUs take part, so it must be at most {}", n - 1),
        }),
        Pattern::Incast { receivers, .. } if *receivers > n => Err(Conflict {
            job: None,
            key: KeyId::Receivers,
            why: format!("{n} GPUs take part, so it must be at most {n}"),
        }),
        Pattern::Ring { stride, .. } if stride % n == 0 => Err(Conflict {
            job: None,
            key: KeyId::Stride,
            why: format!("{n} GPUs take part, so everyone would send to itself; use 1 to {}", n - 1),
        }),
        Pattern::Storage { servers, .. } if *servers >= n => Err(Conflict {
            job: None,
            key: KeyId::StorageRanks,
            why: format!("{n} GPUs take part, so it must be at most {}", n.saturating_sub(1)),
        }),
        Pattern::Storage { servers, stripes, .. } if stripes > servers => Err(Conflict {
            job: None,
            key: KeyId::Stripes,
            why: format!("{servers} store, so it must be at most that"),
        }),
        _ => Ok(()),
    }
}

pub(super) fn workload(v: &Values, dir: &Path) -> Result<WorkloadSection, Conflict> {
    let bytes = v.int(KeyId::Bytes) as u64;
    let pattern = match (v.text(KeyId::WorkloadKind), v.text(KeyId::Pattern)) {
        (
            "model" | "collective" | "simai" | "chakra" | "htsim" | "goal" | "kineto" | "flight-recorder" | "dag"
            | "inference",
            _,
        ) => {
            return ProgramSpec::new(v, dir).map(|p| WorkloadSection::Program(Box::new(p)));
        }
        ("flows", _) => {
            let start_unit = match v.text(KeyId::StartUnit) {
                "ns" => Some(StartUnitChoice::Ns),
                "s" => Some(StartUnitChoice::S),
                _ => None,
            };
            return match v.text(KeyId::WorkloadPath) {
                "" => Err(Conflict {
                    job: None,
                    key: KeyId::WorkloadPath,
                    why: "it is required with workload.kind = \"flows\"; give the path of a flow file".into(),
                }),
                p => Ok(WorkloadSection::Flows { path: dir.join(p), start_unit }),
            };
        }
        ("traffic", "incast") => {
            Pattern::Incast { fan_in: v.int(KeyId::FanIn) as u32, receivers: v.int(KeyId::Receivers) as u32, bytes }
        }
        ("traffic", "storage") => Pattern::Storage {
            servers: v.int(KeyId::StorageRanks) as u32,
            stripes: v.int(KeyId::Stripes) as u32,
            bytes,
            reads: v.is(KeyId::Transfer, "read"),
            every_ps: scaled(v.float(KeyId::EveryUs), PS_PER_US as f64),
            duration_ps: v.int(KeyId::DurationNs) as u64 * PS_PER_NS,
        },
        ("traffic", "permutation") => Pattern::Permutation { bytes },
        ("traffic", "ring") => Pattern::Ring { stride: v.int(KeyId::Stride) as u32, bytes },
        ("traffic", "all-to-all") => Pattern::AllToAll { bytes },
        ("traffic", "poisson") => Pattern::Poisson {
            load_ppm: scaled(v.float(KeyId::Load), 1e6) as u32,
            cdf: cdf(v, dir)?,
            duration_ps: v.int(KeyId::DurationNs) as u64 * PS_PER_NS,
        },
        ("traffic", _) => {
            let why = format!("it is required with workload.kind = \"traffic\": {}", key(KeyId::Pattern).accepts());
            return Err(Conflict { job: None, key: KeyId::Pattern, why });
        }
        _ => {
            let why = format!("it is required: {}", key(KeyId::WorkloadKind).accepts());
            return Err(Conflict { job: None, key: KeyId::WorkloadKind, why });
        }
    };
    let ranks = (v.int(KeyId::Ranks) > 0).then(|| v.int(KeyId::Ranks) as u32);
    Ok(WorkloadSection::Traffic { pattern, ranks })
}

fn cdf(v: &Values, dir: &Path) -> Result<CdfChoice, Conflict> {
    let name = v.text(KeyId::Cdf);
    match built_in_cdf(name) {
        Some(b) => Ok(CdfChoice::BuiltIn(b)),
        None if name.is_empty() => Err(Conflict {
            job: None,
            key: KeyId::Cdf,
            why: format!("it must be one of {} or a file", BUILT_IN_CDFS.join(", ")),
        }),
        None => Ok(CdfChoice::File(dir.join(name))),
    }
}
