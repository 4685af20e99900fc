//! Interval between checkpoints of a job, and their cost.
//!
//! Layer: cluster.

use super::job::ClusterJob;
use super::progress::CheckpointCost;
use crate::machine::ClusterMachine;
use hyperfold_config::spec::{CheckpointKeys, CheckpointPolicy, FailureKeys, WritesShare};

const PS_PER_MS: u64 = 1_000_000_000;
const MS_PER_S: u128 = 1_000;

/// Cost of a checkpoint of a job if no other job writes.
pub(crate) fn cost(job: &ClusterJob, machine: &ClusterMachine, keys: &CheckpointKeys) -> CheckpointCost {
    let write_ms = (u128::from(keys.ps_per_gpu) * u128::from(job.gpus)).div_ceil(u128::from(PS_PER_MS)) as u64;
    if keys.share == WritesShare::Nothing {
        return CheckpointCost { ms: keys.cost_ms + write_ms, ..CheckpointCost::default() };
    }
    let on_server = u128::from(job.gpus.min(machine.per_server)) * u128::from(keys.bits_per_gpu);
    let nic_ms = (on_server * MS_PER_S).div_ceil(u128::from(machine.server_bps.max(1))) as u64;
    let write_ms = if keys.share == WritesShare::Fabric { write_ms.max(nic_ms) } else { write_ms };
    CheckpointCost { ms: keys.cost_ms, bits: keys.bits_per_gpu, write_ms }
}

/// Mean time between failures that stop a job, in ms, if it runs on as few servers as possible. `None`: nothing fails.
pub(crate) fn mtbf_ms(job: &ClusterJob, machine: &ClusterMachine, keys: &FailureKeys) -> Option<f64> {
    let servers = job.gpus.div_ceil(machine.per_server);
    let per_rack = (machine.servers() / machine.racks).max(1);
    let rates = [
        (u64::from(servers * machine.per_server), keys.gpu_mtbf_ms),
        (u64::from(servers), keys.host_mtbf_ms),
        (u64::from(servers * machine.links_per_server), keys.link_mtbf_ms),
        (u64::from(servers.div_ceil(per_rack)), keys.switch_mtbf_ms),
    ];
    let rate: f64 = rates.iter().filter(|(_, mtbf)| *mtbf > 0).map(|(n, mtbf)| *n as f64 / *mtbf as f64).sum();
    (rate > 0.0).then(|| 1.0 / rate)
}

/// Work between two checkpoints, in ms. `None`: the job writes no checkpoints.
pub(crate) fn interval_ms(
    job: &ClusterJob,
    machine: &ClusterMachine,
    keys: &CheckpointKeys,
    failures: &FailureKeys,
) -> Option<u64> {
    match keys.policy {
        CheckpointPolicy::Never => None,
        CheckpointPolicy::Every { work_ms } => Some(work_ms),
        // Square root of twice the cost times the mean time between failures (Young, CACM 1974).
        CheckpointPolicy::Young => mtbf_ms(job, machine, failures).map(|mtbf| {
            let cost = cost(job, machine, keys);
            ((2.0 * (cost.ms + cost.write_ms) as f64 * mtbf).sqrt().round() as u64).max(1)
        }),
    }
}
