//! Computes training jobs with very many micro-batches from shorter ones: once the pipelines are steady, each period adds the same time.
//!
//! Layer: host. `workload::lower::SteadyPairs` proves that it does; this module chooses lengths and extends sums. The result equals that of the whole job, to
//! the picosecond.

use crate::estimates::worked_out::{AskedPeriod, JobSums, RanksWithTasks, WorkedOut};
use crate::outcomes::outcome::Iteration;
use crate::programs::job::{Job, JobLength, MadeJob, job_of_length};
use crate::setup::error::PrepareError;
use crate::setup::servers::Described;
use hyperfold_config::spec::{Config, ProgramSpec, ScheduleChoice, Source, Training};
use hyperfold_network::topology::Network;

/// Builds a job of the given length. Returns it with its notes.
type Shorter<'a> = dyn FnMut(JobLength) -> Result<(MadeJob, Vec<String>), PrepareError> + 'a;

/// Jobs with fewer micro-batches are computed whole. Our choice: they take less than a second.
const FEWEST: u32 = 512;
/// A job is computed whole unless it is at least this many times longer than its examined part.
const LONGER: u32 = 4;

/// The micro-batches of a job, and the units in which they are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pipeline {
    microbatches: u32,
    stages: u32,
    /// Micro-batches that are added at a time, at least.
    group: u32,
    pairs: u32,
}

impl Pipeline {
    /// Describes the pipeline of a program. `None`: it has no steady phase of pairs, or the job is short.
    fn of(program: &ProgramSpec) -> Option<Pipeline> {
        let Source::Model(training) = &program.source else { return None };
        // Kernels that vary at random never repeat. What is deferred to the end grows with the micro-batches. GPipe has no pairs: it keeps the activations of all micro-batches, so there are never many.
        if program.compute.jitter_ppm > 0
            || training.schedule != ScheduleChoice::OneFOneB
            || training.defer_embedding_wgrad
        {
            return None;
        }
        let microbatches = microbatches(training)?;
        let (stages, chunks) = (training.pp, training.vpp.max(1));
        let group = if chunks > 1 { stages } else { 1 };
        let pipeline = Pipeline { microbatches, stages, group, pairs: group * chunks };
        (microbatches >= FEWEST && microbatches.is_multiple_of(group) && pipeline.first() <= microbatches / LONGER)
            .then_some(pipeline)
    }

    /// Micro-batches of the first job that is examined: several times the number that fills the pipeline.
    fn first(self) -> u32 {
        (16 + 8 * self.stages).next_multiple_of(self.group)
    }

    /// Micro-batches in so many pairs of passes.
    fn in_pairs(self, pairs: u32) -> u32 {
        pairs / self.pairs * self.group
    }
}

/// Micro-batches of an iteration; `None`: the layout is wrong.
fn microbatches(training: &Training) -> Option<u32> {
    training.global_batch.checked_div(training.dp.checked_mul(training.microbatch)?)
}

/// Builds the job of an experiment. If it is computed without simulation and very long, it is extended from shorter ones.
///
/// # Errors
/// Fails as [`job_of_length`] does.
pub(crate) fn job(
    config: &Config,
    program: &ProgramSpec,
    net: &Network,
    described: Option<&Described>,
    ranks: RanksWithTasks,
    notes: &mut Vec<String>,
) -> Result<Job, PrepareError> {
    let mut shorter = |length: JobLength| {
        let mut own_notes = Vec::new();
        let made = job_of_length(config, program, net, described, ranks, length, &mut own_notes)?;
        Ok((made, own_notes))
    };
    if ranks == RanksWithTasks::Unsimulated
        && let Some((job, own_notes)) = by_periods(program, &mut shorter)?
    {
        notes.extend(own_notes);
        return Ok(job);
    }
    let whole = JobLength { microbatches: None, period: AskedPeriod::No };
    job_of_length(config, program, net, described, ranks, whole, notes).map(|made| made.job)
}

/// Computes the job from shorter ones. `None`: it must be computed whole.
fn by_periods(program: &ProgramSpec, shorter: &mut Shorter) -> Result<Option<(Job, Vec<String>)>, PrepareError> {
    let Some(pipeline) = Pipeline::of(program) else { return Ok(None) };
    let mut job_of = |microbatches, period| shorter(JobLength { microbatches: Some(microbatches), period });
    let mut length = pipeline.first();
    while length <= pipeline.microbatches / LONGER {
        let (made, _) = job_of(length, AskedPeriod::Find(pipeline.pairs))?;
        if made.sums.is_none() {
            return Ok(None);
        }
        if let Some(pairs) = made.period {
            let each = pipeline.in_pairs(pairs);
            let whole = pipeline.microbatches;
            // A whole number of periods is left to add.
            let shortest = length + (whole - length) % each;
            if shortest <= whole / LONGER
                && let Some(found) =
                    extended(&mut job_of, pairs, [shortest, shortest + each, shortest + 2 * each], whole)?
            {
                return Ok(Some(found));
            }
        }
        length = length.saturating_mul(2).next_multiple_of(pipeline.group);
    }
    Ok(None)
}

/// Computes the job of `whole` micro-batches from three jobs that are one period apart. `None`: it is not proved that every period adds the same.
fn extended(
    job_of: &mut impl FnMut(u32, AskedPeriod) -> Result<(MadeJob, Vec<String>), PrepareError>,
    pairs: u32,
    [first, second, third]: [u32; 3],
    whole: u32,
) -> Result<Option<(Job, Vec<String>)>, PrepareError> {
    let (made, notes) = job_of(first, AskedPeriod::Prove(pairs))?;
    let (Some(sums), Some(_)) = (made.sums, made.period) else { return Ok(None) };
    let (Some(next), Some(last)) = (job_of(second, AskedPeriod::No)?.0.sums, job_of(third, AskedPeriod::No)?.0.sums)
    else {
        return Ok(None);
    };
    // Total times follow from the proof. Their attribution to parts is checked with the third job.
    if sums.extended(&next, 2) != Some(last) {
        return Ok(None);
    }
    let periods = u64::from((whole - first) / (second - first));
    let Some(all) = sums.extended(&next, periods) else { return Ok(None) };
    let worked_out = made.job.worked_out.map(|shorter| of_sums(shorter, &all));
    Ok(Some((Job { worked_out, ..made.job }, notes)))
}

/// Returns the outcome of a job that differs from another only in its sums.
fn of_sums(shorter: WorkedOut, sums: &JobSums) -> WorkedOut {
    let time = sums.critical.map(|(_, parts, iterations)| parts.per(iterations));
    let iteration = shorter.iteration.zip(time).map(|(iteration, time)| Iteration { time, ..iteration });
    WorkedOut { makespan_ps: sums.makespan_ps, iteration }
}

#[cfg(test)]
#[path = "steady_pipeline_tests.rs"]
mod tests;
