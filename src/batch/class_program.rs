//! The program of a class of a cluster's jobs, lowered on whichever GPUs one of them has.
//!
//! Layer: batch. As a `[[job]]` table of that name alone on a network of these GPUs; builds no tables.

use std::sync::Arc;

use super::error::{JobError, PrepareError};
use super::job::{Job, RanksWithTasks};
use super::job_cache;
use super::route::fits;
use super::servers::{self, Described};
use super::traffic;
use crate::spec::{Config, JobSection, ProgramSpec, WorkloadSection};
use crate::topology::Network;
use crate::workload::Flow;

/// What jobs of a class run.
#[derive(Clone, Debug)]
pub struct ClassProgram {
    name: Arc<str>,
    /// With what a description of its servers says.
    config: Config,
    program: ProgramSpec,
    described: Option<Described>,
    gpus: u32,
}

impl ClassProgram {
    /// Of a table of a configuration in which iterations are simulated.
    ///
    /// # Errors
    /// The model, its layout, the GPU or the servers' description cannot be had, or the model does not fit its GPUs' memory; by the job's name.
    ///
    /// # Panics
    /// The table's workload is no program.
    pub fn new(config: &Config, job: &JobSection) -> Result<ClassProgram, PrepareError> {
        let own = config.of_class(job);
        let of_job = |e: PrepareError| e.of_job(&job.name);
        fits(&own).map_err(of_job)?;
        let WorkloadSection::Program(program) = &own.workload else {
            unreachable!("classes of another kind are refused with the keys")
        };
        let described = servers::described(&own).map_err(|e| of_job(e.into()))?;
        let applied = servers::applied(&own, described.as_ref()).map_err(|e| of_job(e.into()))?.into_owned();
        let gpus = job.gpus.unwrap_or(0);
        Ok(ClassProgram { name: Arc::clone(&job.name), program: (**program).clone(), config: applied, described, gpus })
    }

    /// Of each of its jobs.
    pub fn gpus(&self) -> u32 {
        self.gpus
    }

    /// Queue pairs of a connection, whose messages take turns.
    pub fn queue_pairs_of_a_connection(&self) -> u32 {
        self.program.communication.qps_per_connection.max(1)
    }

    /// So many iterations on a network whose ranks are the job's.
    ///
    /// # Errors
    /// The program cannot be had, or does not use all of its GPUs.
    pub fn lowered(&self, net: &Network, iterations: u32) -> Result<Arc<Job>, PrepareError> {
        let program = ProgramSpec { iterations, warmup: 0, ..self.program.clone() };
        let described = self.described.as_ref();
        let ranks = RanksWithTasks::Representatives;
        let job = job_cache::job(&self.config, &program, net, described, ranks, &mut Vec::new())
            .map_err(|e| e.of_job(&self.name))?;
        if job.workload.ranks.len() < net.ranks.len() {
            let (needs, has) = (job.workload.ranks.len(), net.ranks.len());
            return Err(PrepareError::from(JobError::IdleRanks { needs, has }).of_job(&self.name));
        }
        Ok(job)
    }
}

/// The queue pairs of a program as flows between its ranks.
pub fn queue_pairs(job: &Job) -> Vec<Flow> {
    traffic::queue_pairs(job)
}
