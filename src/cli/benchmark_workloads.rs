//! Benchmarks of the steps before simulation: generating the programs of a job, evaluating one analytically, and lowering one to tasks and tables.
//!
//! Layer: cli. They run the same code as `run` and `plan` with the same configuration.

use std::path::Path;
use std::time::Instant;

use anyhow::{anyhow, bail};

use super::measurement::{BenchInfo, BenchRow};
use super::tell;
use hyperfold_config::spec::{Config, Source, WorkloadSection};
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_host::{TrainingSetup, prepare};
use hyperfold_llm::collective::{Env, Server};
use hyperfold_llm::compute::{Dtype, Slowdown, Timing};
use hyperfold_llm::workload::program::Workload;
use hyperfold_llm::workload::training::{Cluster, KernelScales, evaluate, generate};

/// Number of evaluations that are timed together.
const EVALUATIONS: u32 = 1000;

/// The work that a benchmark times.
#[derive(Clone, Copy)]
enum Stage {
    /// Generation of the programs of all ranks.
    Generate,
    /// Evaluation of the analytic iteration time.
    Evaluate,
    /// Everything from the configuration to tables that an engine can run.
    Prepare,
}

struct Case {
    name: &'static str,
    about: &'static str,
    stage: Stage,
    gpus: u32,
    workload: &'static str,
}

/// Megatron's configuration with 1,536 samples per iteration on 8,192 GPUs.
const GPT3_175B: &str = "model = \"gpt3-175b\", tp = 8, pp = 16, dp = 64, microbatch = 1, global_batch = 1536, zero = 1, recompute = \"selective\"";
const GPT3_13B: &str =
    "model = \"gpt3-13b\", tp = 8, pp = 4, dp = 4, microbatch = 1, global_batch = 64, chunk_kib = 256";

const CASES: [Case; 3] = [
    Case {
        name: "generate-gpt3-175b-8192",
        about: "programs of a GPT-3 175B iteration for 8,192 GPUs",
        stage: Stage::Generate,
        gpus: 8192,
        workload: GPT3_175B,
    },
    Case {
        name: "evaluate-gpt3-175b-8192",
        about: "1,000 analytic evaluations of that iteration",
        stage: Stage::Evaluate,
        gpus: 8192,
        workload: GPT3_175B,
    },
    Case {
        name: "prepare-gpt3-13b-128",
        about: "a GPT-3 13B iteration for 128 GPUs: tasks and tables",
        stage: Stage::Prepare,
        gpus: 128,
        workload: GPT3_13B,
    },
];

/// The benchmarks of this file.
pub(super) fn list() -> impl Iterator<Item = BenchInfo> {
    CASES.iter().map(|c| BenchInfo { name: c.name.into(), about: c.about.into() })
}

/// Runs a benchmark. Values without a column in the row are printed on standard error. `None`: it is not one of this file.
pub(super) fn run(name: &str, sink: &mut dyn FnMut(BenchRow)) -> Option<anyhow::Result<()>> {
    CASES.iter().find(|c| c.name == name).map(|case| {
        let config = config(case)?;
        let start = Instant::now();
        let (seconds, experiments, packet_hops) = match case.stage {
            Stage::Prepare => {
                let prepared = prepare(&config, 0)?;
                let seconds = start.elapsed().as_secs_f64();
                let tasks = prepared.job.as_ref().map_or(0, |j| j.graph.tasks.len());
                tell(&format!("{name}: {tasks} tasks, {} bytes of tables", prepared.built.tables.bytes()));
                (seconds, 1, prepared.packet_hops)
            }
            Stage::Generate => {
                let programs = on_dgx(&config, |setup, cluster| {
                    Ok(generate(&setup.model, &setup.layout, &cluster.machine(Dtype::Bf16), 1)?)
                })?;
                let seconds = start.elapsed().as_secs_f64();
                tell(&format!(
                    "{name}: {} operations on {} ranks, {} programs",
                    operations(&programs),
                    programs.ranks.len(),
                    programs.programs.len()
                ));
                (seconds, 1, 0)
            }
            Stage::Evaluate => on_dgx(&config, |setup, cluster| {
                let one = || evaluate(&setup.model, &setup.layout, &cluster.machine(Dtype::Bf16));
                // The first evaluation loads and remembers data, and is not timed.
                let iteration = one()?.iteration;
                let start = Instant::now();
                for _ in 0..EVALUATIONS {
                    if one()?.iteration != iteration {
                        bail!("evaluations of one configuration differ");
                    }
                }
                Ok((start.elapsed().as_secs_f64(), u64::from(EVALUATIONS), 0))
            })?,
        };
        sink(BenchRow {
            name: name.into(),
            engine: "none".into(),
            hosts: u64::from(case.gpus),
            experiments,
            packet_hops,
            seconds,
            packet_hops_per_s: packet_hops as f64 / seconds,
            peak_bytes: peak_bytes(),
        });
        Ok(())
    })
}

fn config(case: &Case) -> anyhow::Result<Config> {
    let text = format!(
        "name = \"{}\"\n[base]\ncluster = {{ gpus = {}, server = \"dgx-h100\" }}\nworkload = {{ kind = \"model\", {} }}\n",
        case.name, case.gpus, case.workload
    );
    let sweep = sweep::parse(&text, Path::new("benchmark"), &SetOverrides(Vec::new()))?;
    sweep.config(&sweep.experiments[0]).map_err(|e| anyhow!("{e}"))
}

/// Calls `run` with the training job of a configuration, and the servers that it runs on.
fn on_dgx<T>(config: &Config, run: impl Fn(&TrainingSetup, &Cluster) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let WorkloadSection::Program(program) = &config.workload else { bail!("not a program") };
    let Source::Model(training) = &program.source else { bail!("not a training job") };
    let setup = TrainingSetup::new(config, training)?;
    let system = Server::preset("dgx-h100")?.system(false);
    let (timing, env) = (Timing::shared(&setup.gpu), Env::default());
    let cluster = Cluster { timing, system, env, slowdown: Slowdown::None, scales: KernelScales::NONE };
    run(&setup, &cluster)
}

/// Number of operations over all ranks.
fn operations(programs: &Workload) -> u64 {
    programs.ranks.iter().map(|r| programs.programs[r.program as usize].ops.len() as u64).sum()
}

/// Peak memory of this process in bytes; 0 if the system does not report it.
pub(super) fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}
