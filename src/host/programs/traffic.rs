//! Everything that is sent over a network: flows of a pattern or a file, or queue pairs of a job.
//!
//! Layer: host. Reads flow files.

use std::collections::HashMap;

use hyperfold_base::budget;
use hyperfold_columns::NEVER;
use hyperfold_config::spec::{self, CdfChoice, Config, Pattern, TrafficClasses, WorkloadSection};
use hyperfold_llm::workload::tasks::QueuePair;
use hyperfold_llm::workload::{
    self, AllToAll, Cdf, FIRST_SPORT, Flow, Incast, Permutation, Poisson, Ring, StorageTraffic,
};
use hyperfold_network::topology::Network;

use crate::programs::job::Job;
use crate::setup::error::PrepareError;
use crate::setup::memory_refusal::MemoryRefusal;

/// Destination port as in flow files of the reference simulator; only ECMP's hash uses it.
pub const QP_DPORT: u16 = 100;

pub(crate) fn flows(config: &Config, net: &Network, notes: &mut Vec<String>) -> Result<Vec<Flow>, PrepareError> {
    let (pattern, ranks) = match &config.workload {
        WorkloadSection::Flows { path, start_unit } => {
            let unit = start_unit.map(|u| match u {
                spec::StartUnitChoice::Ns => workload::StartUnit::Ns,
                spec::StartUnitChoice::S => workload::StartUnit::S,
            });
            let file = workload::read_flows(path, net, unit)?;
            if file.left_out > 0 {
                notes.push(format!(
                    "{}: {} flows after the announced ones were left out",
                    path.display(),
                    file.left_out
                ));
            }
            return Ok(file.flows);
        }
        WorkloadSection::Program(_) => unreachable!("programs have queue pairs, not flows"),
        WorkloadSection::Jobs => unreachable!("each job has its own flows"),
        WorkloadSection::Cluster(_) => {
            let why = "no packets are sent, so there is nothing to trace or to list; use fidelity.mode = \"packet\"";
            return Err(spec::Conflict { job: None, key: spec::KeyId::Mode, why: why.to_string() }.into());
        }
        WorkloadSection::Traffic { pattern, ranks } => (pattern, ranks.unwrap_or(net.ranks.len() as u32)),
    };
    let seed = config.traffic_seed();
    let mut flows = match pattern {
        Pattern::Incast { fan_in, receivers, bytes } => {
            Incast { fan_in: *fan_in, receivers: *receivers, bytes: *bytes, seed }.flows(ranks)?
        }
        Pattern::Storage { .. } => storage(pattern).expect("the pattern is storage").flows(ranks)?,
        Pattern::Permutation { bytes } => Permutation { bytes: *bytes, seed }.flows(ranks)?,
        Pattern::Ring { stride, bytes } => Ring { stride: *stride, bytes: *bytes }.flows(ranks)?,
        Pattern::AllToAll { bytes } => AllToAll { bytes: *bytes }.flows(ranks)?,
        Pattern::Poisson { load_ppm, cdf, duration_ps } => {
            let cdf = match cdf {
                CdfChoice::BuiltIn(name) => {
                    Cdf::named(name).expect("the key table offers only distributions that exist")
                }
                CdfChoice::File(path) => Cdf::read(path)?,
            };
            Poisson {
                load: *load_ppm as f64 / 1e6,
                link_bps: config.topology.link_bps,
                duration_ps: *duration_ps,
                cdf,
                seed,
            }
            .flows(ranks)?
        }
    };
    if !config.classes.is_empty() {
        flows.iter_mut().for_each(|flow| flow.class = config.classes.of_traffic());
    }
    Ok(flows)
}

/// Returns the storage traffic that a pattern describes; `None` for other patterns.
fn storage(pattern: &Pattern) -> Option<StorageTraffic> {
    let Pattern::Storage { servers, stripes, bytes, reads, every_ps, duration_ps } = *pattern else { return None };
    Some(StorageTraffic { servers, bytes, stripes, reads, every_ps, duration_ps })
}

/// Returns queue pairs as flows without bytes of their own: messages provide the bytes.
pub(crate) fn queue_pairs(job: &Job, classes: &TrafficClasses) -> Vec<Flow> {
    let mut n_of_pair: HashMap<(u32, u32), u16> = HashMap::new();
    let flow = |(id, qp): (usize, &QueuePair)| {
        let nth = n_of_pair.entry((qp.src, qp.dst)).or_insert(0);
        let sport = FIRST_SPORT.wrapping_add(*nth);
        *nth = nth.wrapping_add(1);
        Flow {
            id: id as u32,
            src_rank: qp.src,
            dst_rank: qp.dst,
            bytes: 0,
            start_ps: NEVER,
            sport,
            dport: QP_DPORT,
            class: classes.of_dimension(qp.dim as usize),
        }
    };
    job.graph.qps.iter().enumerate().map(flow).collect()
}

/// Checks that so many flows are supported and fit into memory, as far as that is known without generating them.
pub(crate) fn few_enough(pattern: &Pattern, ranks: u64) -> Result<(), PrepareError> {
    let flows = match pattern {
        Pattern::Incast { fan_in: 0, receivers, .. } => ranks.saturating_sub(1).saturating_mul(u64::from(*receivers)),
        Pattern::Incast { fan_in, receivers, .. } => u64::from(*fan_in) * u64::from(*receivers),
        Pattern::AllToAll { .. } => ranks * ranks.saturating_sub(1),
        Pattern::Permutation { .. } | Pattern::Ring { .. } => ranks,
        Pattern::Storage { .. } => storage(pattern).map_or(0, |storage| storage.n_flows(ranks)),
        Pattern::Poisson { .. } => 0,
    };
    if flows > u64::from(workload::MAX_FLOWS) {
        return Err(PrepareError::TooManyFlows { flows, ranks });
    }
    let (wanted, allowance) = (flows * workload::BYTES_A_FLOW, budget::total());
    if wanted > allowance {
        return Err(PrepareError::Memory(MemoryRefusal::of_flows(flows, wanted, allowance)));
    }
    Ok(())
}

/// Checks that the flows are of traffic classes that there are, or where there is one, that all have the same priority.
pub(crate) fn check_classes(flows: &[Flow], classes: &TrafficClasses) -> Result<(), PrepareError> {
    let Some(first) = flows.first() else { return Ok(()) };
    let wrong = |f: &&Flow| match classes.len() {
        0 => f.class != first.class,
        n => usize::from(f.class) >= n,
    };
    match (flows.iter().find(wrong), classes.len()) {
        (None, _) => Ok(()),
        (Some(other), 0) => {
            Err(PrepareError::Priorities { a: first.id, pa: first.class, b: other.id, pb: other.class })
        }
        (Some(other), n) => Err(PrepareError::NoSuchClass { flow: other.id, class: other.class, last: n - 1 }),
    }
}
