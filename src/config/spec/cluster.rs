//! The keys of a cluster over days as types: `[base.jobs]`, `[base.scheduler]`, `[base.checkpoint]` and `[base.failures]`.
//!
//! Layer: spec. Names files without reading them. Times are milliseconds, shares and factors millionths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::applies_when::iterates;
use super::error::Conflict;
use super::key_id::KeyId;
use super::mix::mix;
use super::registered::RegisteredPolicy;
use super::scale::{PPM, scaled};
use super::value::{JobValues, Values};

const MS_PER_S: f64 = 1e3;
const MS_PER_HOUR: f64 = 3.6e6;

/// A cluster over days, with jobs as wholes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRun {
    /// Source of the jobs.
    pub jobs: JobSource,
    /// Classes of jobs: the `[[job]]` tables, in their order.
    pub classes: Vec<JobClassKeys>,
    /// Value of `jobs.comm_share`, in millionths.
    pub comm_share_ppm: u64,
    /// Value of `jobs.min_share`, in millionths.
    pub min_share_ppm: u64,
    /// When a job that shrank gets GPUs back.
    pub grow: GrowBack,
    /// End of the simulation, ms; `None`: when the last job has ended.
    pub end_ms: Option<u64>,
    /// Keys of `scheduler`.
    pub scheduler: SchedulerKeys,
    /// How iterations are simulated; `None`: speeds are assumed.
    pub iterations: Option<IterationKeys>,
    /// Keys of `checkpoint`.
    pub checkpoint: CheckpointKeys,
    /// Keys of `failures`.
    pub failures: FailureKeys,
    /// Value of `output.timeline_s`, ms.
    pub timeline_ms: u64,
    /// Whether to record the use of groups of servers over time.
    pub map: bool,
}

/// A class of jobs, from a `[[job]]` table. The [`super::JobSection`] of that name describes what its jobs run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobClassKeys {
    /// Name of the `[[job]]`.
    pub name: Arc<str>,
    /// GPUs of each of its jobs.
    pub gpus: u32,
    /// Whether its jobs train a model by several replicas, and so can go on with fewer.
    pub has_replicas: bool,
    /// Relative frequency of the class if jobs are drawn, millionths.
    pub weight_ppm: u64,
}

/// How iterations of jobs are simulated, and their size if no trace or class gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterationKeys {
    /// Whether iterations are simulated as packets, not as flows.
    pub as_packets: bool,
    /// Number of iterations of the slowest job of a set.
    pub count: u32,
    /// Difference of the halves' means above which twice as many iterations are simulated, millionths.
    pub within_ppm: u64,
    /// Whether results of a simulated set are reused.
    pub remembers: bool,
    /// Value of `scheduler.iterations_audit`, in millionths.
    pub audit_ppm: u64,
    /// Value of `scheduler.iterations_audit_bound`, in millionths.
    pub audit_bound_ppm: u64,
    /// Seed of the choice of audited sets.
    pub seed: u64,
    /// Computing time by number of GPUs, as (GPUs, ps), ascending.
    pub compute_ps: Vec<(u32, u64)>,
    /// Bytes that are all-reduced by number of GPUs, as (GPUs, bytes), ascending.
    pub comm_bytes: Vec<(u32, u64)>,
}

impl IterationKeys {
    /// Returns computing time (ps) and all-reduced bytes of an iteration of a job with so many GPUs.
    pub fn of_gpus(&self, gpus: u32) -> (u64, u64) {
        (between(&self.compute_ps, gpus), between(&self.comm_bytes, gpus))
    }
}

/// Interpolates linearly between two points; beyond them, returns the nearest value. PRECONDITION: there is a point; points ascend.
fn between(points: &[(u32, u64)], x: u32) -> u64 {
    let after = points.partition_point(|(n, _)| *n < x);
    match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
        (Some((a, low)), Some(&(b, high))) => {
            let step = (i128::from(high) - i128::from(low)) * i128::from(x - a) / i128::from(b - a);
            (i128::from(low) + step) as u64
        }
        (None, Some(&(_, value))) | (Some((_, value)), None) => value,
        (None, None) => 0,
    }
}

/// The source of a cluster's jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobSource {
    /// A CSV file with a job a line.
    Trace {
        /// Path of the file.
        path: PathBuf,
    },
    /// Jobs that are drawn from distributions.
    Generated(JobGenerator),
}

/// Parameters of generated jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobGenerator {
    /// Distributions from which sizes and durations are drawn.
    pub like: JobsLike,
    /// Value of `jobs.count`.
    pub count: u64,
    /// Requested GPU time over available GPU time, millionths; 0: all jobs arrive at once.
    pub load_ppm: u64,
    /// Value of `jobs.users`.
    pub users: u32,
    /// Value of `jobs.high_share`, in millionths.
    pub high_share_ppm: u64,
    /// Seed of all that is drawn.
    pub seed: u64,
}

/// The distribution of generated jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobsLike {
    /// Sizes and durations as in Microsoft's trace of Philly.
    Philly,
    /// Sizes and durations as in Alibaba's trace of its GPU cluster.
    Alibaba,
    /// Drawn evenly between bounds.
    Uniform {
        /// Least and most GPUs of a job.
        gpus: (u32, u32),
        /// Least and longest duration, ms.
        duration_ms: (u64, u64),
    },
    /// Drawn by the weights of their classes.
    Classes {
        /// Least and longest duration, ms.
        duration_ms: (u64, u64),
    },
}

/// The scheduler: which job runs next, and on which GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerKeys {
    /// Value of `scheduler.policy`: one of its choices, or the name of `own_policy`.
    pub policy: String,
    /// Scheduler that the program registered under that name. `None`: `policy` is built in.
    pub own_policy: Option<RegisteredPolicy>,
    /// Value of `scheduler.placement`: one of its choices, or the name of `own_placement`.
    pub placement: String,
    /// Placement that the program registered under that name. `None`: `placement` is built in.
    pub own_placement: Option<RegisteredPolicy>,
    /// Slowdown by number of racks that a job spans, as (racks, factor in millionths), ascending.
    pub slowdown: Vec<(u32, u64)>,
    /// Most GPUs of each user at a time.
    pub quotas: Vec<(String, u32)>,
    /// Value of `scheduler.depth`.
    pub depth: usize,
    /// Whether jobs of higher priority take GPUs away from others.
    pub preempt: bool,
    /// Value of `scheduler.low_delay_s`, ms; 0 without priorities.
    pub low_delay_ms: u64,
    /// Whether `scheduler.defragment` is on.
    pub defragment: bool,
    /// Value of `scheduler.move_s`, ms.
    pub move_ms: u64,
}

/// When a job that shrank gets GPUs back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowBack {
    /// It keeps running with fewer.
    Never,
    /// After its next checkpoint.
    AtCheckpoint,
    /// It gets GPUs as soon as some are free.
    AtOnce,
}

/// The resources that writes to storage share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritesShare {
    /// Nothing: every job has the storage to itself.
    Nothing,
    /// Writes share the rate of the storage.
    Storage,
    /// The storage, the NICs of servers, and the links out of racks.
    Fabric,
}

/// When and how jobs save their state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointKeys {
    /// When jobs save.
    pub policy: CheckpointPolicy,
    /// Value of `checkpoint.cost_s`, ms.
    pub cost_ms: u64,
    /// Time of writing to storage in addition to `cost_ms`, per GPU of a job, ps.
    pub ps_per_gpu: u64,
    /// Resources that writes share.
    pub share: WritesShare,
    /// Data of each GPU, bits.
    pub bits_per_gpu: u64,
    /// Value of `checkpoint.storage_gbps`, bps.
    pub storage_bps: u64,
    /// Value of `checkpoint.restart_s`, ms.
    pub restart_ms: u64,
}

/// The interval between checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointPolicy {
    /// Jobs do not save.
    Never,
    /// Jobs save at regular intervals.
    Every {
        /// Time of work between two checkpoints, ms.
        work_ms: u64,
    },
    /// The optimum of Young 1974, from each job's cost and mean time between failures.
    Young,
}

/// Failures, repairs and spares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureKeys {
    /// Value of `failures.model`: one of its choices, or the name of `own_model`.
    pub model: String,
    /// Failure model that the program registered under that name. `None`: `model` is built in.
    pub own_model: Option<RegisteredPolicy>,
    /// The trace that `model = "trace"` reads.
    pub path: Option<PathBuf>,
    /// Value of `failures.weibull_shape`, in thousandths.
    pub shape_milli: u64,
    /// Mean times between failures, ms; 0: never.
    pub gpu_mtbf_ms: u64,
    /// Value of `failures.host_mtbf_h`, ms.
    pub host_mtbf_ms: u64,
    /// Value of `failures.link_mtbf_h`, ms.
    pub link_mtbf_ms: u64,
    /// Value of `failures.switch_mtbf_h`, ms.
    pub switch_mtbf_ms: u64,
    /// Value of `failures.straggler_mtbf_h`, ms.
    pub straggler_mtbf_ms: u64,
    /// Value of `failures.repair_h`, ms.
    pub repair_ms: u64,
    /// Value of `failures.switch_repair_h`, ms.
    pub switch_repair_ms: u64,
    /// Value of `failures.straggler_h`, ms.
    pub straggler_ms: u64,
    /// Value of `failures.straggler_slowdown`, in millionths.
    pub straggler_ppm: u64,
    /// Value of `failures.max_restarts`.
    pub max_restarts: u64,
    /// Value of `failures.hot_spares`.
    pub hot_spares: u32,
    /// Value of `failures.cold_spares`.
    pub cold_spares: u32,
    /// Value of `failures.hot_swap_s`, ms.
    pub hot_swap_ms: u64,
    /// Value of `failures.cold_swap_s`, ms.
    pub cold_swap_ms: u64,
    /// Regular drains of servers; `None`: there are none.
    pub drain: Option<DrainKeys>,
    /// Seed of all failures.
    pub seed: u64,
}

/// Maintenance, server after server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainKeys {
    /// Value of `failures.drain_every_h`, ms.
    pub every_ms: u64,
    /// Value of `failures.drain_servers`.
    pub servers: u32,
    /// Value of `failures.drain_h`, ms.
    pub takes_ms: u64,
    /// Value of `failures.drain_wait_h`, ms.
    pub wait_ms: u64,
    /// Value of `failures.drain_risk`, in millionths.
    pub risk_ppm: u64,
}

fn conflict(key: KeyId, why: impl Into<String>) -> Conflict {
    Conflict { job: None, key, why: why.into() }
}

/// Reads the cluster that the keys describe.
pub(super) fn cluster_run(v: &Values, dir: &Path, seed: u64) -> Result<ClusterRun, Conflict> {
    let ms = |key: KeyId| scaled(v.float(key), MS_PER_S);
    let hours = |key: KeyId| scaled(v.float(key), MS_PER_HOUR);
    let ppm = |key: KeyId| scaled(v.float(key), PPM);
    let count = |key: KeyId| v.int(key) as u32;
    if v.int(KeyId::Gpus) == 0 && !v.is(KeyId::TopologyKind, "file") {
        return Err(conflict(
            KeyId::Gpus,
            "it is required with fidelity.mode = \"job\": how many GPUs the cluster has, at least 1",
        ));
    }
    if v.int(KeyId::GpusPerServer) > 64 {
        return Err(conflict(KeyId::GpusPerServer, "with fidelity.mode = \"job\" servers have at most 64 GPUs"));
    }
    let classes = classes(v)?;
    let path = |key: KeyId, when: &str| match v.text(key) {
        "" => Err(conflict(key, format!("it is required with {when}; give the path of a CSV file"))),
        p => Ok(dir.join(p)),
    };
    let jobs = match v.text(KeyId::JobsSource) {
        "trace" => JobSource::Trace { path: path(KeyId::JobsPath, "jobs.source = \"trace\"")? },
        like => JobSource::Generated(JobGenerator {
            like: match like {
                "philly" => JobsLike::Philly,
                "alibaba" => JobsLike::Alibaba,
                "classes" => JobsLike::Classes { duration_ms: durations(v)? },
                _ => uniform(v)?,
            },
            count: v.int(KeyId::JobsCount) as u64,
            load_ppm: ppm(KeyId::JobsLoad),
            users: count(KeyId::JobsUsers),
            high_share_ppm: ppm(KeyId::JobsHighShare),
            seed: mix(seed, v.int(KeyId::JobsSeed) as u64, 21),
        }),
    };
    let trace = v.is(KeyId::FailuresModel, "trace");
    if trace && v.is(KeyId::CheckpointPolicy, "young") {
        let why = "Young's optimum needs mean times between failures, which a trace does not give; use \"interval\"";
        return Err(conflict(KeyId::CheckpointPolicy, why));
    }
    let drain = (v.float(KeyId::DrainEveryH) > 0.0).then(|| DrainKeys {
        every_ms: hours(KeyId::DrainEveryH),
        servers: count(KeyId::DrainServers),
        takes_ms: hours(KeyId::DrainH),
        wait_ms: hours(KeyId::DrainWaitH),
        risk_ppm: ppm(KeyId::DrainRisk),
    });
    // Bits over bits per second, in picoseconds.
    let gib_bits = v.float(KeyId::CheckpointGib) * f64::from(1 << 30) * 8.0;
    Ok(ClusterRun {
        jobs,
        classes,
        comm_share_ppm: ppm(KeyId::JobsCommShare),
        min_share_ppm: ppm(KeyId::JobsMinShare),
        grow: grow_back(v)?,
        end_ms: Some(hours(KeyId::JobsHours)).filter(|&end| end > 0),
        scheduler: SchedulerKeys {
            policy: v.text(KeyId::SchedulerPolicy).to_string(),
            own_policy: v.registered(KeyId::SchedulerPolicy).cloned(),
            placement: v.text(KeyId::SchedulerPlacement).to_string(),
            own_placement: v.registered(KeyId::SchedulerPlacement).cloned(),
            slowdown: slowdown(v)?,
            quotas: quotas(v)?,
            depth: v.int(KeyId::SchedulerDepth) as usize,
            preempt: v.is(KeyId::SchedulerPolicy, "priority") && v.bool(KeyId::SchedulerPreempt),
            low_delay_ms: if v.is(KeyId::SchedulerPolicy, "priority") { ms(KeyId::SchedulerDelay) } else { 0 },
            defragment: v.bool(KeyId::SchedulerDefragment),
            move_ms: ms(KeyId::SchedulerMoveS),
        },
        iterations: iterations(v, seed)?,
        checkpoint: CheckpointKeys {
            policy: match v.text(KeyId::CheckpointPolicy) {
                "none" => CheckpointPolicy::Never,
                "young" => CheckpointPolicy::Young,
                _ => CheckpointPolicy::Every { work_ms: ms(KeyId::CheckpointInterval) },
            },
            cost_ms: ms(KeyId::CheckpointCost),
            ps_per_gpu: scaled(gib_bits / v.float(KeyId::CheckpointStorage), 1e3),
            share: match v.text(KeyId::CheckpointShare) {
                _ if gib_bits == 0.0 || v.is(KeyId::CheckpointPolicy, "none") => WritesShare::Nothing,
                "storage" => WritesShare::Storage,
                "fabric" => WritesShare::Fabric,
                _ => WritesShare::Nothing,
            },
            bits_per_gpu: scaled(gib_bits, 1.0),
            storage_bps: scaled(v.float(KeyId::CheckpointStorage), 1e9),
            restart_ms: ms(KeyId::CheckpointRestart),
        },
        failures: FailureKeys {
            model: v.text(KeyId::FailuresModel).to_string(),
            own_model: v.registered(KeyId::FailuresModel).cloned(),
            path: trace.then(|| path(KeyId::FailuresPath, "failures.model = \"trace\"")).transpose()?,
            shape_milli: scaled(v.float(KeyId::FailuresShape), 1e3),
            gpu_mtbf_ms: hours(KeyId::GpuMtbf),
            host_mtbf_ms: hours(KeyId::HostMtbf),
            link_mtbf_ms: hours(KeyId::LinkMtbf),
            switch_mtbf_ms: hours(KeyId::SwitchMtbf),
            straggler_mtbf_ms: hours(KeyId::SlowServerMtbf),
            repair_ms: hours(KeyId::RepairH),
            switch_repair_ms: hours(KeyId::SwitchRepairH),
            straggler_ms: hours(KeyId::SlowServerH),
            straggler_ppm: ppm(KeyId::SlowServerSlowdown),
            max_restarts: v.int(KeyId::MaxRestarts) as u64,
            hot_spares: count(KeyId::HotSpares),
            cold_spares: count(KeyId::ColdSpares),
            hot_swap_ms: ms(KeyId::HotSwapS),
            cold_swap_ms: ms(KeyId::ColdSwapS),
            drain,
            seed: mix(seed, v.int(KeyId::FailuresSeed) as u64, 22),
        },
        timeline_ms: ms(KeyId::TimelineS),
        map: v.bool(KeyId::OutMap),
    })
}

fn grow_back(v: &Values) -> Result<GrowBack, Conflict> {
    let grow = match v.text(KeyId::JobsGrow) {
        "checkpoint" => GrowBack::AtCheckpoint,
        "at-once" => GrowBack::AtOnce,
        _ => return Ok(GrowBack::Never),
    };
    if v.is(KeyId::CheckpointPolicy, "none") {
        let why = "a job saves its state before it grows, which checkpoint.policy = \"none\" rules out; use \"never\", or another policy";
        return Err(conflict(KeyId::JobsGrow, why));
    }
    Ok(grow)
}

fn uniform(v: &Values) -> Result<JobsLike, Conflict> {
    let gpus = (v.int(KeyId::JobsMinGpus) as u32, v.int(KeyId::JobsMaxGpus) as u32);
    if gpus.0 > gpus.1 {
        return Err(conflict(KeyId::JobsMinGpus, format!("it must be at most jobs.max_gpus = {}", gpus.1)));
    }
    Ok(JobsLike::Uniform { gpus, duration_ms: durations(v)? })
}

/// Returns the shortest and the longest duration, ms.
fn durations(v: &Values) -> Result<(u64, u64), Conflict> {
    let (min_hours, max_hours) = (v.float(KeyId::JobsMinHours), v.float(KeyId::JobsMaxHours));
    if min_hours > max_hours {
        return Err(conflict(KeyId::JobsMinHours, format!("it must be at most jobs.max_hours = {max_hours}")));
    }
    Ok((scaled(min_hours, MS_PER_HOUR), scaled(max_hours, MS_PER_HOUR)))
}

/// Reads and checks the classes of jobs.
fn classes(v: &Values) -> Result<Vec<JobClassKeys>, Conflict> {
    let drawn = v.is(KeyId::JobsSource, "classes");
    if drawn && v.jobs().is_empty() {
        let why = "it needs classes: [[job]] tables, each with a name and a workload, such as kind = \"model\", model = \"gpt3-13b\", tp = 8, dp = 4";
        return Err(conflict(KeyId::JobsSource, why));
    }
    if !v.jobs().is_empty() && v.is(KeyId::IterationsAt, "none") {
        let why = "with fidelity.mode = \"job\" [[job]] tables are classes of jobs, whose iterations are simulated: it must be \"flow\" or \"packet\"";
        return Err(conflict(KeyId::IterationsAt, why));
    }
    let class = |job: &JobValues| {
        let own = job.values();
        let fail = |key: KeyId, why: String| Err(conflict(key, why).of_job(&job.name));
        if !iterates(own) {
            let kind = own.text(KeyId::WorkloadKind);
            let instead = match kind {
                "inference" => {
                    "where the network is slow, its requests wait, and no work of it ends later. With fidelity.mode = \"flow\" it serves beside other [[job]] tables; here a job of no class can hold its GPUs"
                }
                _ => {
                    "its flows begin at times of their own. With fidelity.mode = \"flow\" they cross the network beside other [[job]] tables; checkpoint.writes_share is how jobs share storage here"
                }
            };
            let why = format!(
                "a class of a cluster's jobs repeats an iteration, which \"{kind}\" does not: {instead}. A class must be model, collective, simai, chakra, htsim, goal, kineto, flight-recorder or dag"
            );
            return fail(KeyId::WorkloadKind, why);
        }
        let (gpus, has) = (own.int(KeyId::Gpus), v.int(KeyId::Gpus));
        if gpus == 0 {
            return fail(KeyId::JobGpus, "say how many GPUs jobs of this class have".to_string());
        }
        if has > 0 && gpus > has {
            let why = format!("jobs of class {} have {gpus} GPUs; it must be at least that", job.name);
            return Err(conflict(KeyId::Gpus, why));
        }
        let weight_ppm = scaled(own.float(KeyId::JobWeight), PPM);
        let has_replicas = own.is(KeyId::WorkloadKind, "model") && own.int(KeyId::Dp) > 1;
        Ok(JobClassKeys { name: Arc::clone(&job.name), gpus: gpus as u32, has_replicas, weight_ppm })
    };
    let classes: Vec<JobClassKeys> = v.jobs().iter().map(class).collect::<Result<_, _>>()?;
    if drawn && classes.iter().all(|class| class.weight_ppm == 0) {
        return Err(conflict(KeyId::JobWeight, "one class at least needs a weight above 0").of_job(&classes[0].name));
    }
    if drawn && v.float(KeyId::JobsMinShare) < 1.0 && !classes.iter().any(|class| class.has_replicas) {
        let why = "no class can go on with fewer GPUs: only kind = \"model\" with dp above 1 gives up replicas; leave it at 1, or give a class several replicas";
        return Err(conflict(KeyId::JobsMinShare, why));
    }
    Ok(classes)
}

/// Parses `racks:factor` points, ascending.
fn slowdown(v: &Values) -> Result<Vec<(u32, u64)>, Conflict> {
    let text = v.text(KeyId::SchedulerSlowdown);
    let wrong = || {
        conflict(
            KeyId::SchedulerSlowdown,
            "it must be points `racks:factor` with racks ascending, the first `1:1`, and factors from 1 to 1000, such as `1:1 2:1.05 8:1.2`",
        )
    };
    let mut points: Vec<(u32, u64)> = Vec::new();
    for part in text.split([' ', ',']).filter(|part| !part.is_empty()) {
        let (racks, factor) = part.split_once(':').ok_or_else(wrong)?;
        let racks: u32 = racks.trim().parse().map_err(|_| wrong())?;
        let factor: f64 = factor.trim().parse().map_err(|_| wrong())?;
        if !(1.0..=1000.0).contains(&factor) || points.last().is_some_and(|last| last.0 >= racks) || racks == 0 {
            return Err(wrong());
        }
        // Durations are those in one rack.
        if points.is_empty() && (racks, factor) != (1, 1.0) {
            return Err(wrong());
        }
        points.push((racks, scaled(factor, PPM)));
    }
    if points.is_empty() { Err(wrong()) } else { Ok(points) }
}

fn iterations(v: &Values, seed: u64) -> Result<Option<IterationKeys>, Conflict> {
    if v.is(KeyId::IterationsAt, "none") {
        return Ok(None);
    }
    if v.is(KeyId::Policy, "file") {
        let why = "routes of a file are those of its flows; scheduler.iterations_at needs a policy of another name, such as \"ecmp\"";
        return Err(conflict(KeyId::Policy, why));
    }
    if v.is(KeyId::IterationsAt, "packet") && v.is(KeyId::FastForward, "rates") {
        let why = "what carried rates leave out is not told of iterations; use \"steady\", \"exact\" or \"off\"";
        return Err(conflict(KeyId::FastForward, why));
    }
    let per_gpus = |key: KeyId, max: f64, scale: f64, such: &str| {
        let wrong = || {
            conflict(
                key,
                format!(
                    "it must be points `gpus:value` with GPUs ascending and values from 0 to {max}, such as `{such}`"
                ),
            )
        };
        let mut points: Vec<(u32, u64)> = Vec::new();
        for part in v.text(key).split([' ', ',']).filter(|part| !part.is_empty()) {
            let (gpus, value) = part.split_once(':').ok_or_else(wrong)?;
            let gpus: u32 = gpus.parse().map_err(|_| wrong())?;
            let value: f64 = value.parse().map_err(|_| wrong())?;
            if !(0.0..=max).contains(&value) || gpus == 0 || points.last().is_some_and(|last| last.0 >= gpus) {
                return Err(wrong());
            }
            points.push((gpus, scaled(value, scale)));
        }
        if points.is_empty() { Err(wrong()) } else { Ok(points) }
    };
    Ok(Some(IterationKeys {
        as_packets: v.is(KeyId::IterationsAt, "packet"),
        count: v.int(KeyId::IterationsCount) as u32,
        within_ppm: scaled(v.float(KeyId::IterationsWithin), PPM),
        remembers: v.bool(KeyId::Memo),
        audit_ppm: scaled(v.float(KeyId::IterationsAudit), PPM),
        audit_bound_ppm: scaled(v.float(KeyId::IterationsAuditBound), PPM),
        seed: mix(seed, 0, 23),
        compute_ps: per_gpus(KeyId::JobsComputeS, 3600.0, 1e12, "8:0.4 1024:0.6")?,
        comm_bytes: per_gpus(KeyId::JobsCommMib, 1e7, f64::from(1 << 20), "8:2000 512:28000")?,
    }))
}

/// Parses `user:gpus` pairs.
fn quotas(v: &Values) -> Result<Vec<(String, u32)>, Conflict> {
    let pair = |part: &str| {
        let (user, gpus) = part.rsplit_once(':')?;
        Some((user.to_string(), gpus.parse().ok().filter(|_| !user.is_empty())?))
    };
    let mut quotas: Vec<(String, u32)> = Vec::new();
    for part in v.text(KeyId::SchedulerQuotas).split([' ', ',']).filter(|part| !part.is_empty()) {
        let (user, gpus) = pair(part).ok_or_else(|| {
            conflict(KeyId::SchedulerQuotas, "it must be pairs `user:gpus`, such as `0:256 1:128 *:64`")
        })?;
        if quotas.iter().any(|(other, _)| *other == user) {
            return Err(conflict(KeyId::SchedulerQuotas, format!("user `{user}` has two quotas; give each user one")));
        }
        quotas.push((user, gpus));
    }
    Ok(quotas)
}
