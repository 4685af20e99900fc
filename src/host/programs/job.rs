//! The job of an experiment: a program that is read or generated, its collectives planned, lowered to tasks on its cluster.
//!
//! Layer: host. Knows configuration and topology; `prepare` adds paths, `build` adds rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hyperfold_base::budget;
use hyperfold_config::spec::{self, Compute, Config};
use hyperfold_llm::collective::{Arch, CollectiveSystem, Env, InsideLink, Overheads, SwitchDelays, message_overheads};
use hyperfold_llm::compute::{Dtype, Gpu, Slowdown, Timing};
use hyperfold_llm::model::model_flops;
use hyperfold_llm::workload::dag::read_dag;
use hyperfold_llm::workload::import::{self, ImportError};
use hyperfold_llm::workload::lower::{self, GraphSize, Lowering, Relays, lower, min_size};
use hyperfold_llm::workload::program::{Dim, OpKind, Phase, Workload};
use hyperfold_llm::workload::repeat::repeat;
use hyperfold_llm::workload::tasks::TaskGraph;
use hyperfold_llm::workload::training::{Cluster, KernelScales, TrainingError, evaluate, generate_with, min_ops};
use hyperfold_network::topology::Network;

use crate::estimates::worked_out::{AskedPeriod, JobSums, RanksWithTasks, WorkedOut, representatives};
use crate::outcomes::breakdown::Breakdown;
use crate::outcomes::outcome::Iteration;
use crate::programs::benchmark::{benchmark, bus_factor};
use crate::programs::job_key::{JobKey, payload_share};
use crate::programs::kernel_times::factor_q32;
use crate::programs::plans::planner::{
    ClusterPlanner, CollectiveNetwork, Environments, LongestCollective, is_analytic,
};
use crate::programs::serving::{self, Served, ServingJob};
use crate::programs::training::{self as setup, TrainingSetup};
use crate::setup::error::{JobError, PrepareError, SetupError};
use crate::setup::memory_refusal::check_graph;
use crate::setup::servers::{self, Described, generation};
use crate::tables::task_row_cache::TaskRowCache;

/// A program and its tasks.
#[derive(Debug)]
pub struct Job {
    /// The programs of its ranks.
    pub workload: Workload,
    /// Its tasks, as a machine runs them.
    pub graph: TaskGraph,
    /// Iterations before the measured ones.
    pub warmup: u32,
    /// The collective whose algbw and busbw are reported.
    pub collective: Option<CollectiveBenchmark>,
    /// The collective that takes longest, and how it is carried out.
    pub longest: Option<LongestCollective>,
    /// Peak memory of the fullest rank, bytes, where the model tells.
    pub peak_bytes: Option<u64>,
    /// For inference, where its requests are in the programs.
    pub serving: Option<ServingJob>,
    /// Result of the job where it was computed without simulation: then there are neither programs nor tasks.
    pub worked_out: Option<WorkedOut>,
    /// Whether the packet size is among what decides the job ([`payload_share`]).
    pub(crate) depends_on_payload: bool,
    /// State that experiments with the same job share; `None` if no other has it.
    pub(crate) shared: Option<SharedJob>,
}

/// State that is common to experiments with the same job.
#[derive(Debug)]
pub(crate) struct SharedJob {
    /// The key that decides the job: jobs with equal keys are equal.
    pub key: Arc<JobKey>,
    /// Rows that another experiment built from the job's graph.
    pub rows: TaskRowCache,
}

impl Job {
    /// Approximate size of the job, bytes: its tasks, their edges, and its programs.
    pub fn bytes(&self) -> u64 {
        fn size<T>(v: &[T]) -> u64 {
            size_of_val(v) as u64
        }
        let g = &self.graph;
        let ops: u64 = g.ops.iter().map(|rank_ops| size(rank_ops)).sum();
        let tasks = size(&g.qps) + size(&g.tasks) + size(&g.edges) + size(&g.gates) + size(&g.releases) + ops;
        let w = &self.workload;
        let programs: u64 = w.programs.iter().map(|p| size(&p.ops) + size(&p.deps)).sum();
        let ranks: u64 = w.ranks.iter().map(|r| size_of_val(r) as u64 + size(&r.groups)).sum();
        let groups: u64 = w.groups.iter().map(|g| size_of_val(g) as u64 + size(&g.members)).sum();
        tasks + programs + ranks + groups
    }
}

/// A benchmark of one collective.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveBenchmark {
    /// Size of the operation, as nccl-tests counts it, bytes.
    pub bytes: u64,
    /// Bus bandwidth over algorithm bandwidth as (numerator, denominator), as in nccl-tests.
    pub bus: (u64, u64),
}

/// A job. If it was computed without simulation, also its sums, and the pairs of passes after which its pipelines repeat, if that was asked for and proved.
pub(crate) struct MadeJob {
    pub job: Job,
    pub sums: Option<JobSums>,
    pub period: Option<u32>,
}

/// The length of a model's job, and what is asked of its pipelines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobLength {
    /// Micro-batches of an iteration; `None`: all.
    pub microbatches: Option<u32>,
    pub period: AskedPeriod,
}

/// Builds the job of an experiment with as many micro-batches as `length` says.
///
/// # Errors
/// Files, models or collectives are wrong or do not fit.
pub(crate) fn job_of_length(
    config: &Config,
    program: &spec::ProgramSpec,
    net: &Network,
    described: Option<&Described>,
    ranks: RanksWithTasks,
    length: JobLength,
    notes: &mut Vec<String>,
) -> Result<MadeJob, PrepareError> {
    let c = &program.communication;
    let environments = environments(config, program, described)?;
    let env = environments.open();
    for name in env.without_effect() {
        notes.push(format!("workload.nccl.{name} changes nothing in this model"));
    }
    let gpu = setup::gpu(&config.cluster.gpu)?;
    let system = servers::system(config, net, &gpu, described);
    let servers: Vec<u32> = net.ranks.iter().map(|&h| net.nodes[h as usize].server).collect();
    let machine = ReadOn { gpu: &gpu, system, environments: &environments, servers: &servers };
    budget::doing("programs of ranks");
    let Read { workload, collective, peak_bytes, serving } =
        read(config, program, net, &machine, length.microbatches, notes)?;
    if let Some(&rank) = program.compute.stragglers.last().filter(|&&rank| rank as usize >= workload.ranks.len()) {
        return Err(JobError::Straggler { rank, ranks: workload.ranks.len() }.into());
    }
    if workload.ranks.len() > net.ranks.len() {
        return Err(JobError::Ranks { needs: workload.ranks.len(), has: net.ranks.len() }.into());
    }
    let (intra, shared_nic) = servers::ways(config, net, described);
    let strict = matches!(program.source, spec::Source::Collective { .. });
    let way = intra.unwrap_or(shared_nic);
    let inside = InsideLink { rate_bps: way.rate_bps, latency_ps: way.latency_ps, by_pair: way.links > 1 };
    let delays = SwitchDelays {
        hop_ps: config.topology.link_delay_ps,
        reduce_ps: net.min_delay_ps(),
        inside_by_packets: config.cluster.nvlink_packets,
    };
    let network = CollectiveNetwork {
        nics: &net.ranks,
        inside: (intra.is_some() || config.cluster.nvlink_packets).then_some(inside),
        inside_analytic: intra.is_some(),
        payload_share: payload_share(config, program, system.nic_bps)?,
        ports: if c.split_data_on_qps {
            (config.cluster.nic_ports / c.qps_per_connection.max(1)).max(1)
        } else {
            config.cluster.nic_ports
        },
        switches: (net.may_reduce && servers::reduces_packets(config)).then_some((net, delays)),
    };
    let message = Overheads::each(c.start_overhead_ps + c.work_queue_latency_ps);
    let p2p_overheads = match c.measured_overhead {
        true => message_overheads(&system, intra.map_or(0, |way| way.latency_ps)).plus(message.net_ps),
        false => message,
    };
    let relays = (c.pxn && servers::has_nvlink(config, &system, intra.is_some()))
        .then(|| Relays::new(&servers, &servers::rails(net), env.p2p_net_chunk_bytes()));
    let joining = config.joining();
    let join = joining != spec::Joining::Nothing;
    let mut planner = ClusterPlanner::new(c, &system, &environments, &servers, &network, strict, join);
    let network = (system.nic_bps, system.net_extra_ps.max(1));
    let analytic_p2p = |dim: Dim| is_analytic(&c.analytic, dim).then_some(network);
    let seed = config.jitter_seed();
    // Kernels of inference are scaled where steps are planned. Ops that are no kernels (arrivals of requests, latencies, the host) take the same time on every
    // GPU.
    let unscaled = Compute { scale_ppm: 1_000_000, ..program.compute.clone() };
    let factor = |rank: u32, op: u32| match &serving {
        None => factor_q32(&program.compute, seed, rank, op),
        Some(_) => match workload.programs[workload.ranks[rank as usize].program as usize].ops[op as usize].kind {
            OpKind::Compute { phase: Phase::Other, .. } => 1 << 32,
            _ => factor_q32(&unscaled, seed, rank, op),
        },
    };
    let lowering = Lowering {
        servers: &servers,
        hosts: &net.ranks,
        intra,
        shared_nic,
        analytic_p2p: &analytic_p2p,
        rendezvous_ps: (c.rendezvous_ps > 0).then_some(c.rendezvous_ps),
        local_ps: config.cluster.nvlink_latency_ps.max(1),
        reduce_ps: net.min_delay_ps(),
        p2p_overheads,
        qps_per_connection: c.qps_per_connection,
        weight: &|dim| if config.is_flow_level() { c.weights[dim as usize] } else { 1 },
        split: c.split_data_on_qps,
        relays: relays.as_ref(),
        representatives: None,
        factor_q32: &factor,
    };
    let class_representatives = match ranks {
        RanksWithTasks::Every => None,
        RanksWithTasks::Representatives | RanksWithTasks::Unsimulated => {
            representatives(&workload, program, &servers, joining == spec::Joining::Ranks)
        }
    };
    if joining == spec::Joining::Ranks && class_representatives.is_none() {
        notes.push(
            "fidelity.join = \"ranks\": no two ranks do the same at the same time, so each has its own tasks"
                .to_string(),
        );
    }
    let job_of = |workload, graph, worked_out, serving, planner: &ClusterPlanner| Job {
        workload,
        graph,
        warmup: program.warmup,
        collective,
        longest: planner.longest(),
        peak_bytes,
        serving,
        worked_out,
        depends_on_payload: planner.depends_on_payload(),
        shared: None,
    };
    if ranks == RanksWithTasks::Unsimulated && serving.is_none() {
        let class_lowering = Lowering { representatives: class_representatives.as_ref(), ..lowering.clone() };
        let bus = collective.map(|m| (m.bytes, m.bus));
        if let Some((sums, period)) =
            JobSums::of(&workload, &class_lowering, &mut planner, program.warmup, length.period)
        {
            let worked_out = Some(sums.worked_out(&workload, bus));
            let job = job_of(Workload::default(), TaskGraph::default(), worked_out, None, &planner);
            notes.extend(planner.notes());
            return Ok(MadeJob { job, sums: Some(sums), period });
        }
    }
    if matches!(program.source, spec::Source::Model(_)) {
        workload.check_end().map_err(|e| JobError::Training(TrainingError::Graph(e)))?;
    }
    budget::doing("tasks of ranks");
    let class_lowering = Lowering { representatives: class_representatives.as_ref(), ..lowering.clone() };
    check_graph(config, &min_size(&workload, &class_lowering, &mut planner)).map_err(PrepareError::Memory)?;
    let lowered = match &class_representatives {
        // The user asked for joined ranks, so do not fall back to separate ranks.
        Some(representatives) if joining == spec::Joining::Ranks => {
            lower(&workload, &Lowering { representatives: Some(representatives), ..lowering.clone() }, &mut planner)
        }
        // If lowering by class fails, lower all ranks: they report the error.
        Some(representatives) => {
            lower(&workload, &Lowering { representatives: Some(representatives), ..lowering.clone() }, &mut planner)
                .or_else(|_| lower(&workload, &lowering, &mut planner))
        }
        None => lower(&workload, &lowering, &mut planner),
    };
    let graph = lowered.map_err(JobError::Lower)?;
    let job = job_of(workload, graph, None, serving, &planner);
    notes.extend(planner.notes());
    Ok(MadeJob { job, sums: None, period: None })
}

/// Derives the job of `program` from a job that differs only in `workload.compute_scale`. `None`: it has to be built anew.
pub(crate) fn rescaled(job: &Job, config: &Config, program: &spec::ProgramSpec) -> Option<Job> {
    if job.serving.is_some() || job.worked_out.is_some() {
        return None;
    }
    budget::announce("tasks of ranks", job.bytes());
    let seed = config.jitter_seed();
    let factor = |rank: u32, op: u32| factor_q32(&program.compute, seed, rank, op);
    let &Job { warmup, collective, longest, peak_bytes, depends_on_payload, .. } = job;
    Some(Job {
        workload: job.workload.clone(),
        graph: lower::rescaled(&job.graph, &job.workload, &factor),
        warmup,
        collective,
        longest,
        peak_bytes,
        serving: None,
        worked_out: None,
        depends_on_payload,
        shared: None,
    })
}

/// Returns notes on kernel choices that have no effect here: no machine has such kernels, or another choice includes them.
fn without_effect(training: &spec::Training, gpu: &Gpu) -> Vec<String> {
    let mut notes = Vec::new();
    let has_kernel = generation(gpu) == Arch::Blackwell && training.precision == spec::PrecisionChoice::Mxfp8;
    if training.fused_grouped_mlp && !has_kernel {
        notes.push(format!(
            "workload.fused_grouped_mlp: Transformer Engine has this kernel for workload.precision = \"mxfp8\" on Blackwell alone; here, on {}, \
             false would be right",
            gpu.name
        ));
    }
    let modules = &training.recompute_modules;
    let inside = [(spec::RecomputeModule::MoeAct, "moe_act"), (spec::RecomputeModule::SharedExperts, "shared_experts")];
    for (module, name) in inside {
        if modules.contains(&spec::RecomputeModule::Moe) && modules.contains(&module) {
            notes.push(format!("workload.recompute_modules: {name} changes nothing beside moe, which it is a part of"));
        }
    }
    notes
}

/// Builds the cluster as the cost models know it.
fn cluster(
    program: &spec::ProgramSpec,
    training: &spec::Training,
    gpu: &Gpu,
    system: CollectiveSystem,
    env: &Env,
    notes: &mut Vec<String>,
) -> Result<Cluster, PrepareError> {
    let kernels = training.kernels.as_deref().map(setup::kernels).transpose()?;
    let timing = match &kernels {
        Some(kernels) => Arc::new(Timing::new(gpu, Some(kernels)).map_err(SetupError::Gpu)?),
        None => Timing::shared(gpu),
    };
    notes.extend(without_effect(training, gpu));
    let slowdown = setup::slowdown(&program.compute.slowdown)?;
    if let Slowdown::Table(table) = &slowdown
        && !table.knows(gpu)
    {
        notes.push(format!(
            "workload.slowdown changes nothing: the table has no row for {} or its baseline {}",
            gpu.name, gpu.baseline
        ));
    }
    let [gemm_ppm, attention_ppm, memory_ppm] = program.compute.class_scales_ppm;
    let scales = KernelScales { gemm_ppm, attention_ppm, memory_ppm, slowdown_ppm: program.compute.slowdown_scale_ppm };
    Ok(Cluster { timing, system, env: env.clone(), slowdown, scales })
}

/// Computes a training iteration by closed form: every communication takes its time on an idle cluster, and kernels take their mean times. Returns the
/// iteration and the peak memory in bytes.
///
/// # Errors
/// Fails as [`job_of_length`] does.
pub fn evaluated(
    config: &Config,
    program: &spec::ProgramSpec,
    training: &spec::Training,
    net: &Network,
    described: Option<&Described>,
) -> Result<(Iteration, u64), PrepareError> {
    let TrainingSetup { model, layout, gpu, memory, .. } = TrainingSetup::new(config, training)?;
    let environments = environments(config, program, described)?;
    let env = environments.held_to(program.communication.algorithm);
    let system = servers::system(config, net, &gpu, described);
    let cluster = cluster(program, training, &gpu, system, env, &mut Vec::new())?;
    let dtype = Dtype::of(layout.precision, Dtype::Bf16);
    let machine = cluster.machine(dtype);
    let b = evaluate(&model, &layout, &machine).map_err(JobError::Training)?;
    // All ranks wait for the slowest one.
    let c = &program.compute;
    let slowest = if c.stragglers.is_empty() { 1_000_000 } else { c.straggler_ppm };
    let factor = c.scale_ppm as f64 * slowest as f64 * 1e-12;
    let scaled = |ps: u64| (ps as f64 * factor) as u64;
    let mut time = Breakdown {
        total: 0,
        compute: scaled(b.compute),
        exposed: [b.tp, b.pp, b.dp, b.ep, b.cp, 0],
        bubble: scaled(b.bubble),
        optimizer: scaled(b.optimizer),
        other: b.other,
    };
    time.total = time.compute + time.exposed.iter().sum::<u64>() + time.bubble + time.optimizer + time.other;
    let tokens = if model.transformer().is_some() { u64::from(layout.global_batch) * u64::from(layout.seq) } else { 0 };
    let iteration = Iteration {
        rank: 0,
        time,
        ranks: layout.gpus(),
        tokens,
        model_flops: model_flops(&model, layout.global_batch, layout.seq),
        peak_flops: machine.peak_flops,
        collective: None,
    };
    Ok((iteration, memory.peak_bytes()))
}

/// Collects NCCL's settings: its variables, and the keys that set some of them.
fn environments(
    config: &Config,
    program: &spec::ProgramSpec,
    described: Option<&Described>,
) -> Result<Environments, PrepareError> {
    let c = &program.communication;
    let mut variables: BTreeMap<String, String> = c.nccl.clone();
    if described.is_some_and(|d| d.server.simple_only) {
        // A user's value takes precedence over the value that the machine's plugin would set.
        variables.entry("NCCL_PROTO".to_string()).or_insert_with(|| "Simple".to_string());
    }
    if let Some(protocol) = c.protocol {
        let name = match protocol {
            spec::ProtocolChoice::Ll => "LL",
            spec::ProtocolChoice::Ll128 => "LL128",
            spec::ProtocolChoice::Simple => "Simple",
        };
        variables.insert("NCCL_PROTO".to_string(), name.to_string());
    }
    if let Some(channels) = c.channels {
        variables
            .extend(["NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"].map(|name| (name.to_string(), channels.to_string())));
    }
    // If the network was generated for it, it has only the NICs that may be used.
    if !matches!(config.topology.kind, spec::TopologyKind::File { .. }) {
        variables.remove("NCCL_IB_HCA");
    }
    Ok(Environments::parse(&variables).map_err(JobError::Nccl)?)
}

/// Number of micro-batches from which the code checks, before it generates anything, whether the tasks of all ranks can fit. Our choice: generating fewer takes
/// a second.
const MANY_MICROBATCHES: u32 = 4096;

/// A program, and what is known besides it.
struct Read {
    workload: Workload,
    collective: Option<CollectiveBenchmark>,
    peak_bytes: Option<u64>,
    serving: Option<ServingJob>,
}

/// The hardware that a program is read for, besides its network.
struct ReadOn<'a> {
    gpu: &'a Gpu,
    system: CollectiveSystem,
    environments: &'a Environments,
    /// The server of each rank.
    servers: &'a [u32],
}

/// Reads a model that serves requests.
fn inference(
    config: &Config,
    program: &spec::ProgramSpec,
    asked: &spec::Serving,
    target: &ReadOn,
    notes: &mut Vec<String>,
) -> Result<Read, PrepareError> {
    let (gpu, env) = (target.gpu, target.environments.held_to(program.communication.algorithm));
    let kernels = asked.kernels.as_deref().map(setup::kernels).transpose()?;
    let timing = match &kernels {
        Some(kernels) => Arc::new(Timing::new(gpu, Some(kernels)).map_err(SetupError::Gpu)?),
        None => Timing::shared(gpu),
    };
    let (slowdown, scales) = (Slowdown::None, KernelScales::NONE);
    let cluster = Cluster { timing, system: target.system, env: env.clone(), slowdown, scales };
    let Served { workload, job, peak_bytes } =
        serving::served(config, program, asked, target.servers, gpu, &cluster, notes)?;
    Ok(Read { workload, collective: None, peak_bytes: Some(peak_bytes), serving: Some(job) })
}

/// Reads or generates the program. For a model, the caller must still check that nothing in it waits for ever.
fn read(
    config: &Config,
    program: &spec::ProgramSpec,
    net: &Network,
    target: &ReadOn,
    microbatches: Option<u32>,
    notes: &mut Vec<String>,
) -> Result<Read, PrepareError> {
    Ok(match &program.source {
        spec::Source::Collective { op, bytes, ranks, experts } => {
            let n = ranks.unwrap_or(net.ranks.len() as u32);
            let bus = bus_factor(*op, u64::from(n));
            let workload = benchmark(*op, *experts, *bytes, n, program.warmup + program.iterations);
            // A barrier carries no bytes.
            let collective = (*op != spec::OpChoice::Barrier).then_some(CollectiveBenchmark { bytes: *bytes, bus });
            Read { workload, collective, peak_bytes: None, serving: None }
        }
        spec::Source::Inference(serving) => inference(config, program, serving, target, notes)?,
        spec::Source::Model(t) => {
            let TrainingSetup { model, layout, gpu, memory, .. } = TrainingSetup::new(config, t)?;
            let dtype = Dtype::of(layout.precision, Dtype::Bf16);
            let env = target.environments.open();
            let cluster = cluster(program, t, &gpu, target.system, env, notes)?;
            let iterations = program.warmup + program.iterations;
            let every_rank =
                program.communication.analytic != spec::Analytic::ALL && config.joining() == spec::Joining::Nothing;
            if every_rank && layout.microbatches().saturating_mul(iterations) >= MANY_MICROBATCHES {
                let ops = min_ops(&model, &layout, &cluster.machine(dtype), iterations).map_err(JobError::Training)?;
                let size = GraphSize { ops, tasks: ops, messages: 0 };
                check_graph(config, &size).map_err(PrepareError::Memory)?;
            }
            let microbatches = microbatches.unwrap_or(layout.microbatches());
            let workload = generate_with(&model, &layout, &cluster.machine(dtype), iterations, microbatches)
                .map_err(JobError::Training)?;
            Read { workload, collective: None, peak_bytes: Some(memory.peak_bytes()), serving: None }
        }
        spec::Source::File { format, path, ranks, bytes_scale_ppm, wait_for_calls } => {
            let given = import::ImportOptions { ranks: *ranks, wait_for_calls: *wait_for_calls, ..Default::default() };
            let mut workload = file(*format, path, given, net, target.gpu, notes)?;
            scale_bytes(&mut workload, *bytes_scale_ppm);
            workload.check().map_err(JobError::Check)?;
            repeat(&mut workload, program.warmup + program.iterations);
            Read { workload, collective: None, peak_bytes: None, serving: None }
        }
    })
}

/// Returns the number of ranks that a program's file needs, where it tells. Errors in the file are ignored here; they are reported when it is read for the
/// simulation.
pub fn ranks_needed(program: &spec::ProgramSpec) -> Option<u32> {
    let spec::Source::File { format, path, ranks, .. } = &program.source else { return None };
    let options = import::ImportOptions { ranks: *ranks, flops_per_s: 1, memory_bytes_per_s: 1, wait_for_calls: false };
    let workload = read_file(*format, path, &options, &mut Vec::new()).ok()?;
    u32::try_from(workload.ranks.len()).ok()
}

/// Returns the number of ranks that the header of a SimAI file gives.
pub fn all_gpus(format: spec::ProgramFormat, path: &Path) -> Option<u32> {
    (format == spec::ProgramFormat::SimAi).then(|| import::simai::all_gpus(path)).flatten()
}

fn read_file(
    format: spec::ProgramFormat,
    path: &Path,
    options: &import::ImportOptions,
    notes: &mut Vec<String>,
) -> Result<Workload, JobError> {
    let format = match format {
        spec::ProgramFormat::SimAi => import::WorkloadFormat::Simai,
        spec::ProgramFormat::Chakra => import::WorkloadFormat::Chakra,
        spec::ProgramFormat::Htsim => import::WorkloadFormat::Htsim,
        spec::ProgramFormat::Goal => import::WorkloadFormat::Goal,
        spec::ProgramFormat::Kineto => import::WorkloadFormat::Kineto,
        spec::ProgramFormat::FlightRecorder => import::WorkloadFormat::FlightRecorder,
        spec::ProgramFormat::Dag => return Ok(read_dag(path, options.ranks)?),
    };
    let imported = import::read(path, format, options)?;
    notes.extend(imported.notes);
    Ok(imported.workload)
}

fn file(
    format: spec::ProgramFormat,
    path: &Path,
    given: import::ImportOptions,
    net: &Network,
    gpu: &Gpu,
    notes: &mut Vec<String>,
) -> Result<Workload, JobError> {
    let all_gpus = all_gpus(format, path);
    let gpus = net.ranks.len() as u32;
    let described = path.display();
    match all_gpus {
        Some(n) if n < gpus => {
            notes.push(format!(
                "{described}: all_gpus is {n}, so the first {n} of {gpus} GPUs run it; the others are idle"
            ));
        }
        Some(n) if n > gpus => {
            // A file whose own number of ranks is impossible is wrong on any number of GPUs.
            let own = import::ImportOptions { ranks: None, flops_per_s: 1, memory_bytes_per_s: 1, ..given };
            read_file(format, path, &own, &mut Vec::new())?;
            notes.push(format!("{described}: all_gpus is {n}, but {gpus} GPUs are there and run it"));
        }
        _ => {}
    }
    // A file that leaves the number of ranks open runs on all GPUs; one that does not says how many it needs.
    let options = import::ImportOptions {
        ranks: given.ranks.or(if all_gpus.is_some_and(|n| n <= gpus) { None } else { Some(gpus) }),
        flops_per_s: gpu.peak(Dtype::Bf16),
        memory_bytes_per_s: gpu.memory_bps as u64,
        ..given
    };
    match read_file(format, path, &options, notes) {
        Err(JobError::Import(ImportError::Ranks { .. })) if given.ranks.is_none() => {
            read_file(format, path, &import::ImportOptions { ranks: None, ..options }, notes)
        }
        read => read,
    }
}

/// Multiplies every message size by a factor in millionths; a size above 0 stays at least 1 byte.
fn scale_bytes(workload: &mut Workload, ppm: u64) {
    if ppm == 1_000_000 {
        return;
    }
    for op in workload.programs.iter_mut().flat_map(|p| &mut p.ops) {
        if let OpKind::Collective { bytes, .. } | OpKind::Send { bytes, .. } | OpKind::Recv { bytes, .. } = &mut op.kind
        {
            *bytes = ((*bytes as u128 * ppm as u128 / 1_000_000) as u64).max(u64::from(*bytes > 0));
        }
    }
}
