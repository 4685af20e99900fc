//! Turns a sweep into a plan: its experiments, the resources that it takes, and warnings.
//!
//! Layer: session. Writes nothing.

use std::sync::Arc;

use hyperfold_base::budget;
use hyperfold_config::spec::{Config, Source, WorkloadSection};
use hyperfold_config::sweep::{self, Selection, Sweep};
use hyperfold_engine::gpu::rates::FEWEST_THAT_PAY;
use hyperfold_host::KeptExperiments;
use hyperfold_results::{Axis, Cell, InputFile, Outputs};

use crate::error::SessionError;
use crate::experiment::config;
use crate::folders::identity::digest;
use crate::planning::excluded::Excluded;
use crate::planning::forecast::{self, BatchShape, ExperimentSize, MemoryForecast, TimeForecast};
use crate::planning::links_of_another;
use crate::planning::planned::{PlanProgress, Planned, SearchPlan};
use crate::planning::probe;
use crate::planning::survey::{Survey, survey};
use crate::planning::two_models;
use crate::running::search::{self, SearchSetup};
use crate::running::workers;

/// Experiments for each CPU thread, and at least, and packet-hops in all, from which a GPU pays. On an H200 beside 16 threads, 512 and more took between
/// 0.7 and 1.3 times as long as on the CPU (`benches/runs/2026-11-27-gpu-visit.txt`); the fewer experiments, the more of a GPU is idle.
const GPU_EXPERIMENTS_A_THREAD: usize = 32;
const GPU_EXPERIMENTS: usize = 64;
const GPU_PACKET_HOPS: u64 = 2_000_000_000;
/// Flows and tasks at flow level from which a GPU pays, if there are as many experiments as a device takes: half a minute of a CPU thread. Our choice, not
/// measured on a real GPU.
const GPU_FLOW_TASKS: u64 = 20_000_000;

/// Returns the axis columns with their types. Types follow from all values of the sweep, selected or not, so that shards agree on them.
fn axes(sweep: &Sweep) -> Vec<Axis> {
    let mut columns: Vec<Vec<Cell>> = vec![Vec::new(); sweep.axes.len()];
    for experiment in &sweep.experiments {
        for (column, value) in columns.iter_mut().zip(sweep.axis_values(experiment)) {
            // Only a change of type matters, and long runs of one type are the rule.
            let value = Cell::from(&value);
            if column.last().is_none_or(|last| std::mem::discriminant(last) != std::mem::discriminant(&value)) {
                column.push(value);
            }
        }
    }
    sweep.axes.iter().zip(&columns).map(|(key, values)| Axis::infer(key.as_str(), values)).collect()
}

/// Returns the files that the sweep writes: those that any of its experiments asks for.
fn outputs(sweep: &Sweep) -> Outputs {
    let decides = |key: &String| {
        key.starts_with("output.")
            || key == "fidelity.mode"
            || key == "scheduler.iterations_at"
            || key.ends_with(".kind")
    };
    let varies = sweep.axes.iter().any(decides);
    let n_examined = if varies { sweep.experiments.len() } else { 1 };
    let mut outputs = Outputs::default();
    let able = sweep.experiments.iter().filter(|e| sweep.cannot_run(e).is_none());
    for experiment in able.take(n_examined) {
        let config = config(sweep, experiment);
        let (output, jobs) = (config.output, &config.jobs);
        outputs.flows |= output.flows;
        outputs.links |= output.links;
        outputs.rtt |= output.rtt;
        outputs.rtt_means |= output.rtt_means;
        outputs.series_links |= output.series.is_some_and(|series| series.links);
        outputs.series_flows |= output.series.is_some_and(|series| series.flows);
        outputs.jobs |= jobs.is_some() && config.cluster_run().is_none();
        let several = jobs.as_ref().is_some_and(|jobs| jobs.jobs.len() > 1);
        outputs.jobs_of_flows |= output.flows && several;
        outputs.shared_links |= output.shared_links && several;
        outputs.cluster |= config.cluster_run().is_some();
        outputs.cluster_jobs |= output.cluster_jobs;
        outputs.cluster_map |= output.cluster_map;
        outputs.iterations |= config.cluster_run().is_some_and(|run| run.iterations.is_some());
        outputs.serving |= serves(&config);
        outputs.requests |= output.requests && serves(&config);
    }
    outputs
}

/// Whether a workload of an experiment, or of one of its jobs, is inference.
fn serves(config: &Config) -> bool {
    let inference =
        |w: &WorkloadSection| matches!(w, WorkloadSection::Program(p) if matches!(p.source, Source::Inference(_)));
    let jobs_serve = config.jobs.iter().flat_map(|jobs| &jobs.jobs).any(|job| inference(&job.workload));
    inference(&config.workload) || jobs_serve
}

/// Whether a GPU pays for so many experiments with so many packet-hops together, beside so many CPU threads.
fn packets_pay_for_gpu(experiments: usize, packet_hops: u64, threads: usize) -> bool {
    experiments >= GPU_EXPERIMENTS.max(GPU_EXPERIMENTS_A_THREAD * threads) && packet_hops >= GPU_PACKET_HOPS
}

/// A sweep, selected and surveyed.
pub struct LoadedSweep {
    pub(crate) sweep: Sweep,
    pub(crate) outputs: Outputs,
    /// Packet-hops of all selected experiments, at least.
    packet_hops: u64,
    /// Sizes of the experiments that were surveyed and can run, by `exp_id`, ascending.
    sizes: Vec<ExperimentSize>,
    /// Share of the estimated work that is simulated: less than 1 in a search.
    share: f64,
    pub(crate) axes: Vec<Axis>,
    pub(crate) search: Option<SearchSetup>,
    /// Large experiments that are prepared already.
    pub(crate) kept: Arc<KeptExperiments>,
}

impl LoadedSweep {
    /// Whether the batch is large enough for a real GPU to pay on a machine with so many CPU threads.
    pub(crate) fn pays_for_gpu(&self, threads: usize) -> bool {
        packets_pay_for_gpu(self.sweep.experiments.len(), self.packet_hops, threads) || flows_pay_for_gpu(&self.sizes)
    }

    /// Whether any experiment is at flow level.
    pub(crate) fn has_flow_level(&self) -> bool {
        self.sizes.iter().any(|s| s.flow_level)
    }

    /// Returns the work of an experiment, and its class. For an experiment that was not surveyed: the mean work of the others, and class 0.
    pub(crate) fn work_of(&self, exp_id: u64) -> (u64, u64) {
        match self.sizes.binary_search_by_key(&exp_id, |s| s.exp_id) {
            Ok(position) => (self.sizes[position].work(), self.sizes[position].class),
            Err(_) => (self.sizes.iter().map(ExperimentSize::work).sum::<u64>() / self.sizes.len().max(1) as u64, 0),
        }
    }

    /// Estimates the time of a run on the CPU by simulating one experiment of each class for a moment; `None` if nothing can be simulated.
    pub(crate) fn probe(&self) -> Option<TimeForecast> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        probe::probe(&self.sweep, &self.sizes, threads).map(|time| time.times(self.share))
    }
}

/// Whether the experiments at flow level are enough and large enough for a GPU to pay.
fn flows_pay_for_gpu(sizes: &[ExperimentSize]) -> bool {
    let tasks = || sizes.iter().filter(|s| s.flow_level).map(|s| s.tasks);
    tasks().count() >= FEWEST_THAT_PAY && tasks().sum::<u64>() >= GPU_FLOW_TASKS
}

/// Selects and surveys a sweep. `estimates`: its time and memory are estimated too.
///
/// # Errors
/// Nothing is selected, an input is wrong, or a search is impossible.
pub(crate) fn plan(
    mut sweep: Sweep,
    selection: &Selection,
    estimates: bool,
    progress: &PlanProgress,
) -> Result<(Planned, LoadedSweep), SessionError> {
    let (axes, outputs, digest) = (axes(&sweep), outputs(&sweep), digest(&sweep));
    // A shard says of the whole sweep what is not compared.
    let (by_costs, by_links) = (two_models::not_compared(&sweep), links_of_another::not_compared(&sweep));
    sweep.select(selection)?;
    let setup = search::setup(&sweep, selection)?;
    let survey = survey(&sweep, estimates, progress)?;
    let search = setup.as_ref().map(|s| s.plan(&sweep));
    let share = search.as_ref().map_or(1.0, |s| s.share());
    let (memory, seconds) = if estimates { forecasts(&survey, search.as_ref(), &sweep) } else { (None, None) };
    let input = |f: &sweep::SweepInputFile| InputFile { path: f.path.display().to_string(), sha256: f.sha256.clone() };
    let planned = Planned {
        name: sweep.name.clone(),
        experiments: sweep.n_experiments,
        selected: sweep.experiments.iter().map(|e| e.exp_id).collect(),
        axes: axes.clone(),
        outputs,
        resolved: sweep.resolved_toml.clone(),
        digest,
        sweep_path: std::path::absolute(&sweep.path).unwrap_or_else(|_| sweep.path.clone()).display().to_string(),
        replicas: u64::from(sweep.replicas),
        inputs: sweep.inputs.iter().map(input).collect(),
        warnings: sweep.notes.iter().cloned().chain(two_models::warning(&by_costs)).chain(survey.warnings).collect(),
        not_compared: [by_costs, by_links].concat(),
        tight: survey.tight,
        duplicates: sweep.duplicates,
        duplicates_note: sweep.duplicates_note.clone(),
        cannot_fit: Excluded::of(&sweep, survey.cannot_fit),
        cannot_run: Excluded::of(&sweep, survey.cannot_run),
        memory,
        seconds,
        search,
    };
    let (packet_hops, kept) = (survey.sizes.iter().map(|s| s.packet_hops).sum(), survey.kept);
    let loaded = LoadedSweep { sweep, outputs, packet_hops, sizes: survey.sizes, share, axes, search: setup, kept };
    Ok((planned, loaded))
}

/// Forecasts the memory and the time of a run.
fn forecasts(
    survey: &Survey,
    search: Option<&SearchPlan>,
    sweep: &Sweep,
) -> (Option<MemoryForecast>, Option<TimeForecast>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // It is unknown which experiments a search runs; the first are as good as others.
    let run = search.map_or(survey.sizes.len(), |s| (s.coarse.max(s.full) as usize).min(survey.sizes.len()));
    let host_bytes_of_long = budget::total() / 4;
    let host_bytes = workers::host_bytes(threads, false).min(host_bytes_of_long);
    let host_bytes_of_many = workers::host_bytes_of_many(threads, false).min(host_bytes);
    let shape = BatchShape {
        threads,
        max_len: threads * hyperfold_host::MAX_FOLDED_PER_THREAD,
        host_bytes,
        host_bytes_of_many,
        host_bytes_of_long,
    };
    let memory = forecast::memory(&survey.sizes[..run], survey.job_bytes, sweep.experiments.len(), shape);
    let time = match search {
        Some(search) => forecast::search_time(&survey.sizes, search.full, search.coarse, threads),
        None => forecast::time(&survey.sizes, threads),
    };
    (Some(memory), Some(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_experiments_with_many_flows_pay_for_a_gpu() {
        let one = ExperimentSize { flow_level: true, tasks: GPU_FLOW_TASKS / 100, ..ExperimentSize::default() };
        let pays = |n: usize, size: ExperimentSize| flows_pay_for_gpu(&vec![size; n]);
        assert!(pays(FEWEST_THAT_PAY, one));
        assert!(!pays(FEWEST_THAT_PAY - 1, one), "few experiments");
        assert!(!pays(FEWEST_THAT_PAY, ExperimentSize { tasks: 100, ..one }), "little to do");
        assert!(!pays(FEWEST_THAT_PAY, ExperimentSize { flow_level: false, ..one }), "packets");
    }

    #[test]
    fn a_gpu_pays_for_many_experiments_a_thread() {
        assert!(packets_pay_for_gpu(512, GPU_PACKET_HOPS, 16));
        assert!(!packets_pay_for_gpu(511, GPU_PACKET_HOPS, 16), "the cores are as fast");
        assert!(packets_pay_for_gpu(64, GPU_PACKET_HOPS, 2) && packets_pay_for_gpu(64, GPU_PACKET_HOPS, 1));
        assert!(!packets_pay_for_gpu(63, GPU_PACKET_HOPS, 1) && !packets_pay_for_gpu(512, GPU_PACKET_HOPS - 1, 1));
    }
}
