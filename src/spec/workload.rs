//! `[base.workload]` as types: generated traffic and flow files; programs are `program`'s.
//!
//! Layer: spec. Names files without reading them.

use std::path::Path;

use super::config::scaled;
use super::error::Conflict;
use super::keys::{BUILT_IN_CDFS, K, built_in_cdf};
use super::program::Program;
use super::sections::{Cdf, Pattern, StartUnit, Workload};
use super::value::Values;
use crate::units::PS_PER_NS;

/// Whether a pattern fits `n` members.
pub(super) fn members(pattern: &Pattern, n: u32) -> Result<(), Conflict> {
    match pattern {
        Pattern::Incast { fan_in, .. } if *fan_in >= n => {
            Err(Conflict { key: K::FanIn, why: format!("{n} GPUs take part, so it must be at most {}", n - 1) })
        }
        Pattern::Incast { receivers, .. } if *receivers > n => {
            Err(Conflict { key: K::Receivers, why: format!("{n} GPUs take part, so it must be at most {n}") })
        }
        Pattern::Ring { stride, .. } if stride % n == 0 => Err(Conflict {
            key: K::Stride,
            why: format!("{n} GPUs take part, so everyone would send to itself; use 1 to {}", n - 1),
        }),
        _ => Ok(()),
    }
}

pub(super) fn workload(v: &Values, dir: &Path) -> Result<Workload, Conflict> {
    let bytes = v.int(K::Bytes) as u64;
    let pattern = match (v.text(K::WorkloadKind), v.text(K::Pattern)) {
        ("model" | "collective" | "simai" | "chakra" | "htsim" | "goal" | "dag", _) => {
            return Program::new(v, dir).map(|p| Workload::Program(Box::new(p)));
        }
        ("flows", _) => {
            let start_unit = match v.text(K::StartUnit) {
                "ns" => Some(StartUnit::Ns),
                "s" => Some(StartUnit::S),
                _ => None,
            };
            return match v.text(K::WorkloadPath) {
                "" => Err(Conflict {
                    key: K::WorkloadPath,
                    why: "it is required with workload.kind = \"flows\"; give the path of a flow file".into(),
                }),
                p => Ok(Workload::Flows { path: dir.join(p), start_unit }),
            };
        }
        ("traffic", "incast") => {
            Pattern::Incast { fan_in: v.int(K::FanIn) as u32, receivers: v.int(K::Receivers) as u32, bytes }
        }
        ("traffic", "permutation") => Pattern::Permutation { bytes },
        ("traffic", "ring") => Pattern::Ring { stride: v.int(K::Stride) as u32, bytes },
        ("traffic", "all-to-all") => Pattern::AllToAll { bytes },
        ("traffic", "poisson") => Pattern::Poisson {
            load_ppm: scaled(v.float(K::Load), 1e6) as u32,
            cdf: cdf(v, dir)?,
            duration_ps: v.int(K::DurationNs) as u64 * PS_PER_NS,
        },
        ("traffic", _) => {
            let why =
                format!("it is required with workload.kind = \"traffic\": {}", super::key::key(K::Pattern).accepts());
            return Err(Conflict { key: K::Pattern, why });
        }
        _ => {
            let why = format!("it is required: {}", super::key::key(K::WorkloadKind).accepts());
            return Err(Conflict { key: K::WorkloadKind, why });
        }
    };
    let ranks = (v.int(K::Ranks) > 0).then(|| v.int(K::Ranks) as u32);
    Ok(Workload::Traffic { pattern, ranks })
}

fn cdf(v: &Values, dir: &Path) -> Result<Cdf, Conflict> {
    let name = v.text(K::Cdf);
    match built_in_cdf(name) {
        Some(b) => Ok(Cdf::BuiltIn(b)),
        None if name.is_empty() => {
            Err(Conflict { key: K::Cdf, why: format!("it must be one of {} or a file", BUILT_IN_CDFS.join(", ")) })
        }
        None => Ok(Cdf::File(dir.join(name))),
    }
}
