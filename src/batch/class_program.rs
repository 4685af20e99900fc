//! The program of a class of a cluster's jobs, lowered on whichever GPUs one of them has.
//!
//! Layer: batch. As a `[[job]]` table of that name alone on a network of these GPUs; builds no tables.

use std::sync::Arc;

use super::error::{JobError, PrepareError};
use super::job::Job;
use super::job_cache;
use super::route::fits;
use super::servers::{self, Described};
use super::traffic;
use super::worked_out::RanksWithTasks;
use crate::spec::{Config, JobSection, ProgramSpec, Source, Training, WorkloadSection};
use crate::topology::Network;
use crate::workload::Flow;

/// What jobs of a class run.
#[derive(Clone, Debug)]
pub struct ClassProgram {
    name: Arc<str>,
    /// With what a description of its servers says.
    config: Config,
    /// By the number of GPUs, ascending. The last is of all GPUs that its jobs ask for; the others have fewer replicas.
    programs: Vec<(u32, ProgramSpec)>,
    described: Option<Described>,
}

impl ClassProgram {
    /// Of a table of a configuration in which iterations are simulated. Its jobs go on with `least` GPUs or more after a failure, where that can be.
    ///
    /// # Errors
    /// The model, its layout, the GPU or the servers' description cannot be had, or the model does not fit its GPUs' memory; by the job's name.
    ///
    /// # Panics
    /// The table's workload is no program.
    pub fn new(config: &Config, job: &JobSection, least: u32) -> Result<ClassProgram, PrepareError> {
        let own = config.of_class(job);
        let of_job = |e: PrepareError| e.of_job(&job.name);
        fits(&own).map_err(of_job)?;
        let WorkloadSection::Program(program) = &own.workload else {
            unreachable!("classes of another kind are refused with the keys")
        };
        let described = servers::described(&own).map_err(|e| of_job(e.into()))?;
        let applied = servers::applied(&own, described.as_ref()).map_err(|e| of_job(e.into()))?.into_owned();
        let mut programs = fewer_replicas(&own, program, least);
        programs.push((job.gpus.unwrap_or(0), (**program).clone()));
        Ok(ClassProgram { name: Arc::clone(&job.name), programs, config: applied, described })
    }

    /// Of each of its jobs.
    pub fn gpus(&self) -> u32 {
        self.whole().0
    }

    /// With how many GPUs its jobs can run, ascending: with all of them, or with those of fewer replicas.
    pub fn sizes(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.programs.iter().map(|(gpus, _)| *gpus)
    }

    fn whole(&self) -> &(u32, ProgramSpec) {
        self.programs.last().expect("there is one of all GPUs")
    }

    /// Sequences that an iteration trains on, where it trains a model.
    pub fn samples_an_iteration(&self) -> Option<u32> {
        match &self.whole().1.source {
            Source::Model(training) => Some(training.global_batch),
            _ => None,
        }
    }

    /// Queue pairs of a connection, whose messages take turns.
    pub fn queue_pairs_of_a_connection(&self) -> u32 {
        self.whole().1.communication.qps_per_connection.max(1)
    }

    /// So many iterations on a network whose ranks are the job's: all of them, or those of fewer replicas.
    ///
    /// # Errors
    /// The program cannot be had, or does not use all of its GPUs.
    pub fn lowered(&self, net: &Network, iterations: u32) -> Result<Arc<Job>, PrepareError> {
        let gpus = net.ranks.len();
        let (_, program) = self.programs.iter().find(|(n, _)| *n as usize == gpus).unwrap_or(self.whole());
        let program = ProgramSpec { iterations, warmup: 0, ..program.clone() };
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

/// Programs of a model that is trained by fewer replicas, on `least` GPUs or more, ascending. The global batch stays, so an iteration is the same work: those that are
/// left take on the micro-batches of the others. Numbers of replicas that do not divide these, or whose state needs more memory than GPUs have, are left out.
fn fewer_replicas(config: &Config, program: &ProgramSpec, least: u32) -> Vec<(u32, ProgramSpec)> {
    let Source::Model(training) = &program.source else { return Vec::new() };
    let a_replica = (training.gpus() / u64::from(training.dp.max(1))) as u32;
    let divides = |dp: &u32| training.global_batch.is_multiple_of(dp.saturating_mul(training.microbatch));
    let mut found = Vec::new();
    for dp in (1..training.dp).filter(|dp| dp.saturating_mul(a_replica) >= least).filter(divides) {
        let source = Source::Model(Box::new(Training { dp, ..Training::clone(training) }));
        let fewer = ProgramSpec { source, ..program.clone() };
        let mut own = config.clone();
        own.workload = WorkloadSection::Program(Box::new(fewer.clone()));
        if fits(&own).is_ok() {
            found.push((dp * a_replica, fewer));
        }
    }
    found
}

/// The queue pairs of a program as flows between its ranks.
pub fn queue_pairs(job: &Job) -> Vec<Flow> {
    traffic::queue_pairs(job)
}
