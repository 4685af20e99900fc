//! The program of a class of a cluster's jobs, lowered for the GPUs that one job of the class has.
//!
//! Layer: host. The result is the same as that of a `[[job]]` table of that name alone on a network of these GPUs. Builds no tables.

use std::sync::Arc;

use crate::estimates::worked_out::RanksWithTasks;
use crate::programs::job::Job;
use crate::programs::job_cache;
use crate::programs::traffic;
use crate::setup::error::{JobError, PrepareError};
use crate::setup::route::fits;
use crate::setup::servers::{self, Described};
use hyperfold_config::spec::{Config, JobSection, ProgramSpec, Source, TrafficClasses, Training, WorkloadSection};
use hyperfold_llm::workload::Flow;
use hyperfold_network::topology::Network;

/// The program that jobs of a class run.
#[derive(Clone, Debug)]
pub struct ClassProgram {
    name: Arc<str>,
    /// Configuration, with the keys that the description of its servers sets.
    config: Config,
    /// Programs by number of GPUs, ascending. The last one uses all GPUs that the class's jobs ask for; the others have fewer replicas.
    programs: Vec<(u32, ProgramSpec)>,
    described: Option<Described>,
}

impl ClassProgram {
    /// Creates the program of a class from a table of a configuration in which iterations are simulated. After a failure its jobs go on with `min_gpus` GPUs or
    /// more, where the model allows it.
    ///
    /// # Errors
    /// The model, its layout, the GPU or the servers' description is not available, or the model does not fit its GPUs' memory. Errors name the job.
    ///
    /// # Panics
    /// The table's workload is no program.
    pub fn new(config: &Config, job: &JobSection, min_gpus: u32) -> Result<ClassProgram, PrepareError> {
        let own = config.of_class(job);
        let name_job = |e: PrepareError| e.of_job(&job.name);
        fits(&own).map_err(name_job)?;
        let WorkloadSection::Program(program) = &own.workload else {
            unreachable!("classes of another kind are refused with the keys")
        };
        let described = servers::described(&own).map_err(|e| name_job(e.into()))?;
        let applied = servers::applied(&own, described.as_ref()).map_err(|e| name_job(e.into()))?.into_owned();
        let mut programs = fewer_replicas(&own, program, min_gpus);
        programs.push((job.gpus.unwrap_or(0), (**program).clone()));
        Ok(ClassProgram { name: Arc::clone(&job.name), programs, config: applied, described })
    }

    /// GPUs that each job of the class asks for.
    pub fn gpus(&self) -> u32 {
        self.whole().0
    }

    /// Numbers of GPUs that its jobs can run with, ascending: all of them, or those of fewer replicas.
    pub fn sizes(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.programs.iter().map(|(gpus, _)| *gpus)
    }

    fn whole(&self) -> &(u32, ProgramSpec) {
        self.programs.last().expect("there is one of all GPUs")
    }

    /// Sequences that an iteration trains on; `None` if it trains no model.
    pub fn samples_an_iteration(&self) -> Option<u32> {
        match &self.whole().1.source {
            Source::Model(training) => Some(training.global_batch),
            _ => None,
        }
    }

    /// Queue pairs per connection. Messages take turns on them.
    pub fn queue_pairs_of_a_connection(&self) -> u32 {
        self.whole().1.communication.qps_per_connection.max(1)
    }

    /// Lowers `iterations` iterations for a network whose ranks are the job's: all of them, or those of fewer replicas.
    ///
    /// # Errors
    /// The program is not available, or does not use all of its GPUs.
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

/// Returns the programs of a model trained by fewer replicas, on `min_gpus` GPUs or more, ascending, each with its number of GPUs. The global batch stays, so
/// an iteration is the same work: the remaining replicas take over the micro-batches of the others. Left out are numbers of replicas that do not divide these,
/// or whose state needs more memory than the GPUs have.
fn fewer_replicas(config: &Config, program: &ProgramSpec, min_gpus: u32) -> Vec<(u32, ProgramSpec)> {
    let Source::Model(training) = &program.source else { return Vec::new() };
    let gpus_per_replica = (training.gpus() / u64::from(training.dp.max(1))) as u32;
    let divides = |dp: &u32| training.global_batch.is_multiple_of(dp.saturating_mul(training.microbatch));
    let mut found = Vec::new();
    for dp in (1..training.dp).filter(|dp| dp.saturating_mul(gpus_per_replica) >= min_gpus).filter(divides) {
        let source = Source::Model(Box::new(Training { dp, ..Training::clone(training) }));
        let fewer = ProgramSpec { source, ..program.clone() };
        let mut own = config.clone();
        own.workload = WorkloadSection::Program(Box::new(fewer.clone()));
        if fits(&own).is_ok() {
            found.push((dp * gpus_per_replica, fewer));
        }
    }
    found
}

/// Returns the queue pairs of a program as flows between its ranks.
pub fn queue_pairs(job: &Job) -> Vec<Flow> {
    traffic::queue_pairs(job, &TrafficClasses::default())
}
