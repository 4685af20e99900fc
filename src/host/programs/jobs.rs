//! Several jobs on one network: each is lowered alone on the GPUs that it gets, then their graphs and flows are joined into one job.
//!
//! Layer: host. `prepare` continues with the joined job as with a single one. Builds no tables.

use std::ops::Range;
use std::sync::Arc;

use crate::estimates::worked_out::RanksWithTasks;
use crate::programs::job::{self, Job};
use crate::programs::job_cache;
use crate::programs::join_graphs::{JobPart, join};
use crate::programs::traffic::{check_classes, flows, queue_pairs};
use crate::setup::error::{JobError, PrepareError};
use crate::setup::placement::{Wanted, gpu_list, place};
use crate::setup::servers::Described;
use hyperfold_config::spec::{Config, JobSection, JobsSection, KeyId, RunningJobs, WorkloadSection};
use hyperfold_llm::workload::Flow;
use hyperfold_network::topology::{Network, Node, Reducer};

/// One of several jobs, placed on its GPUs.
#[derive(Clone, Debug)]
pub struct PlacedJob {
    /// Name in the sweep file.
    pub name: Arc<str>,
    /// Value of `workload.kind`.
    pub kind: String,
    /// GPUs of the network, by the job's ranks.
    pub gpus: Vec<u32>,
    /// Placement as in the sweep file.
    pub placement: String,
    /// Time of its start, ps.
    pub start_ps: u64,
    /// Whether it is a background job, which the experiment does not wait for.
    pub background: bool,
    /// Programs of its ranks, in the job's own numbering; `None`: the job is flows only.
    pub program: Option<Arc<Job>>,
    /// Range of its tasks in the joined graph.
    pub tasks: Range<u32>,
    /// Id of its first flow or message.
    pub first_flow: u32,
    /// Number of its flows and messages.
    pub n_flows: u32,
    /// Range of its flows among the queue pairs of all programs.
    pub qps: Range<u32>,
}

/// All jobs of an experiment joined into one.
pub(crate) struct JoinedJobs {
    /// Flows of traffic, job by job, then queue pairs. Ids count the flows of all jobs, even if only one runs.
    pub flows: Vec<Flow>,
    /// Id of the first queue pair, which is the number of flows of traffic of all jobs.
    pub first_qp_id: u32,
    /// All programs joined into one job; `None`: no job has a program.
    pub job: Option<Arc<Job>>,
    /// The jobs that run.
    pub placed: Vec<PlacedJob>,
}

/// A job before it is joined with others.
struct Lowered {
    section: JobSection,
    gpus: Vec<u32>,
    program: Option<Arc<Job>>,
    flows: Vec<Flow>,
}

/// Places, lowers and joins the jobs of an experiment.
///
/// # Errors
/// A job does not find enough GPUs, or is wrong in itself; the error names the job.
pub(crate) fn joined(
    config: &Config,
    jobs: &JobsSection,
    net: &Network,
    described: Option<&Described>,
    ranks: RanksWithTasks,
    notes: &mut Vec<String>,
) -> Result<JoinedJobs, PrepareError> {
    let has = net.ranks.len() as u32;
    let wanted: Vec<Wanted> = jobs.jobs.iter().map(|job| Wanted { job, gpus: gpus_needed(job, has) }).collect();
    let placed = place(&wanted, net)?;
    let mut lowered = Vec::with_capacity(placed.len());
    for (job, gpus) in jobs.jobs.iter().zip(placed) {
        let mut own = Vec::new();
        let made =
            lower(config, job, gpus, net, described, ranks.of_several(), &mut own).map_err(|e| e.of_job(&job.name))?;
        notes.extend(own.into_iter().map(|note| format!("job {}: {note}", job.name)));
        lowered.push(made);
    }
    Ok(join_all(lowered, jobs.running, has))
}

/// Returns the number of GPUs of a job: the one it gives, the one its file needs, or all.
fn gpus_needed(job: &JobSection, has: u32) -> u32 {
    let from_file = || match &job.workload {
        WorkloadSection::Program(program) => job::ranks_needed(program),
        _ => None,
    };
    job.gpus.or_else(from_file).unwrap_or(has)
}

fn lower(
    config: &Config,
    section: &JobSection,
    gpus: Vec<u32>,
    net: &Network,
    described: Option<&Described>,
    ranks: RanksWithTasks,
    notes: &mut Vec<String>,
) -> Result<Lowered, PrepareError> {
    let own_config = config.of_job(section);
    // The network as the job sees it: its ranks are the job's GPUs.
    let mut own_net = net.clone();
    own_net.ranks = gpus.iter().map(|gpu| net.ranks[*gpu as usize]).collect();
    let (program, flows) = match &section.workload {
        WorkloadSection::Program(program) => {
            let job = job_cache::job(&own_config, program, &own_net, described, ranks, notes)?;
            if job.workload.ranks.len() < gpus.len() {
                let (needs, has) = (job.workload.ranks.len(), gpus.len());
                return Err(JobError::IdleRanks { needs, has }.into());
            }
            (Some(job), Vec::new())
        }
        _ => {
            if matches!(section.workload, WorkloadSection::Flows { .. }) {
                own_net = numbered_by_rank(&own_net);
            }
            let mut flows = flows(&own_config, &own_net, notes)?;
            check_classes(&flows, &own_config.classes)?;
            for flow in &mut flows {
                let gpu_of = |rank: u32| gpus[rank as usize];
                (flow.src_rank, flow.dst_rank) = (gpu_of(flow.src_rank), gpu_of(flow.dst_rank));
                flow.start_ps += section.start_ps;
            }
            (None, flows)
        }
    };
    Ok(Lowered { section: section.clone(), gpus, program, flows })
}

/// Returns the job's GPUs as a network whose node ids are ranks, as a flow file names them.
fn numbered_by_rank(net: &Network) -> Network {
    let host = |(id, &host): (u32, &u32)| Node { id, ..net.nodes[host as usize].clone() };
    let nodes: Vec<Node> = (0u32..).zip(&net.ranks).map(host).collect();
    Network { ranks: (0..nodes.len() as u32).collect(), nodes, ..Network::default() }
}

/// Numbers flows and queue pairs and joins the graphs. Jobs that do not run keep their numbers, and nothing else.
fn join_all(lowered: Vec<Lowered>, running: RunningJobs, has: u32) -> JoinedJobs {
    let first_qp_id: u32 = lowered.iter().map(|l| l.flows.len() as u32).sum();
    let (mut next_flow, mut next_qp, mut next_message) = (0u32, first_qp_id, first_qp_id);
    let (mut plain, mut pairs, mut parts, mut placed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut reducers: Vec<Reducer> = Vec::new();
    for (j, Lowered { section, gpus, program, flows }) in lowered.into_iter().enumerate() {
        // A job that shares GPUs has ports of its own; else its flows would all take the same paths as the others'.
        let own_ports = if section.background { 1 + j as u16 } else { 0 };
        let (n_plain, n_qps) = (flows.len() as u32, program.as_ref().map_or(0, |job| job.graph.qps.len() as u32));
        let n_messages = program.as_ref().map_or(0, |job| job.graph.messages().count() as u32);
        let first_flow = if program.is_some() { next_message } else { next_flow };
        let mut job = PlacedJob {
            name: Arc::clone(&section.name),
            kind: section.values.text(KeyId::WorkloadKind).to_string(),
            placement: section.values.text(KeyId::JobPlacement).to_string(),
            start_ps: section.start_ps,
            background: section.background,
            program: program.clone(),
            tasks: 0..0,
            first_flow,
            n_flows: n_plain + n_messages,
            qps: 0..0,
            gpus,
        };
        if running.has(j) {
            plain.extend((next_flow..).zip(flows).map(|(id, flow)| Flow {
                id,
                dport: flow.dport.wrapping_add(own_ports),
                ..flow
            }));
            if let Some(program) = &program {
                let gpus = joined_ranks(&job.gpus, program, &mut reducers, has);
                let gpu_of = |rank: u32| gpus[rank as usize];
                let place = |qp: Flow| Flow {
                    id: next_qp + qp.id,
                    src_rank: gpu_of(qp.src_rank),
                    dst_rank: gpu_of(qp.dst_rank),
                    ..qp
                };
                let first = pairs.len() as u32;
                pairs.extend(queue_pairs(program, &section.classes).into_iter().map(place));
                job.qps = first..first + n_qps;
                parts.push(JobPart { job: Arc::clone(program), gpus, start_ps: job.start_ps });
            }
            placed.push(job);
        }
        (next_flow, next_qp, next_message) = (next_flow + n_plain, next_qp + n_qps, next_message + n_messages);
    }
    let joined = (!parts.is_empty()).then(|| join(&parts, has, reducers));
    if let Some(joined) = &joined {
        let programs = placed.iter_mut().filter(|job| job.program.is_some());
        programs.zip(&joined.tasks).for_each(|(job, tasks)| job.tasks = tasks.clone());
    }
    plain.append(&mut pairs);
    JoinedJobs { flows: plain, first_qp_id, job: joined.map(|j| Arc::new(j.job)), placed }
}

/// Ranks of a job in the joined one: its GPUs, then its reducers, which follow the `has` GPUs of the network. Jobs share reducers, which are added to `reducers`.
fn joined_ranks(gpus: &[u32], program: &Job, reducers: &mut Vec<Reducer>, has: u32) -> Vec<u32> {
    let mut ranks = gpus.to_vec();
    for reducer in &program.graph.reducers {
        let known = reducers.iter().position(|other| other == reducer);
        if known.is_none() {
            reducers.push(*reducer);
        }
        ranks.push(has + known.unwrap_or(reducers.len() - 1) as u32);
    }
    ranks
}

impl PlacedJob {
    /// Its GPUs as text, in the order of its ranks.
    pub fn gpus_text(&self) -> String {
        gpu_list(&self.gpus)
    }
}
