//! The key of a job: everything that decides it. Jobs with equal keys are equal, whoever built them and wherever they are kept.
//!
//! Layer: host. Reads configuration and network; `job_cache` finds jobs by their keys, `dedup` compares experiments by them.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::estimates::worked_out::RanksWithTasks;
use crate::setup::servers::reduces_packets;
use hyperfold_config::spec::{
    Compute, Config, Conflict, Joining, Named, ProgramSpec, RequestSource, SlowdownChoice, Source, TopologyKind,
};
use hyperfold_network::topology::{Link, Network, NodeIdx, NvLink};

/// Everything that decides a job, except packet size and kernel speed.
#[derive(Debug, PartialEq)]
struct JobInputs {
    with_tasks: RanksWithTasks,
    joining: Joining,
    /// Cluster and workload as text, without the speed of kernels.
    config: String,
    /// Seed of random draws; 0 if nothing is drawn.
    jitter_seed: u64,
    ranks: Vec<(NodeIdx, u32)>,
    nvlink: Option<NvLink>,
    /// Links of the first server's hosts: the part of the network that cost models know. All links where switches may reduce.
    links: Vec<Link>,
    /// Links that have failed before the beginning, where switches may reduce.
    failed: BTreeSet<u32>,
}

/// The key of a job.
#[derive(Debug, PartialEq)]
pub(crate) struct JobKey {
    /// Hash of the inputs. It comes first, so that most different jobs are told apart by it.
    number: u64,
    inputs: JobInputs,
    /// `workload.compute_scale` in millionths. Jobs that differ only in this have the same graph, apart from the times of kernels.
    scale_ppm: u64,
    /// Share of payload in a packet (see [`payload_share`]); `None`: the job is the same for every packet size.
    payload_share: Option<(u64, u64)>,
}

impl JobKey {
    /// Returns the key of a program, or `None` if files decide it, as files might change.
    ///
    /// # Errors
    /// Keys of the transport that contradict each other.
    pub(crate) fn new(
        config: &Config,
        program: &ProgramSpec,
        net: &Network,
        with_tasks: RanksWithTasks,
    ) -> Result<Option<JobKey>, Conflict> {
        if !is_self_contained(program, config) {
            return Ok(None);
        }
        let server = |host: NodeIdx| net.nodes[host as usize].server;
        let first = net.ranks.first().map(|&h| server(h));
        let is_first_servers = |l: &&Link| Some(server(l.a)) == first || Some(server(l.b)) == first;
        // Where switches reduce, the network decides which.
        let whole_network = net.may_reduce && reduces_packets(config);
        let from_file = matches!(config.topology.kind, TopologyKind::File { .. });
        // Requests are drawn at random, too.
        let serves = matches!(program.source, Source::Inference(_));
        let scale_ppm = program.compute.scale_ppm;
        let program = &at_full_speed(program);
        let inputs = JobInputs {
            with_tasks,
            joining: config.joining(),
            config: format!("{:?}{program:?}{from_file}{}", config.cluster, config.topology.link_bps),
            jitter_seed: if program.compute.jitter_ppm > 0 || serves { config.jitter_seed() } else { 0 },
            ranks: net.ranks.iter().map(|&h| (h, server(h))).collect(),
            nvlink: net.nvlink,
            links: net.links.iter().filter(|l| whole_network || is_first_servers(l)).cloned().collect(),
            failed: if whole_network { net.failed.clone() } else { BTreeSet::new() },
        };
        let payload_share = Some(payload_share(config, program, config.topology.link_bps)?);
        Ok(Some(JobKey { number: inputs.number(), inputs, scale_ppm, payload_share }))
    }

    /// Returns the key of a job that turned out to be the same for every packet size.
    pub(crate) fn of_any_payload(self) -> JobKey {
        JobKey { payload_share: None, ..self }
    }

    /// Whether the job with this key is the one that `asked` asks for.
    pub(crate) fn serves(&self, asked: &JobKey) -> bool {
        self.scale_ppm == asked.scale_ppm && self.is_sibling(asked)
    }

    /// Whether the job with this key is the one that `asked` asks for, apart from the speed of kernels.
    pub(crate) fn is_sibling(&self, asked: &JobKey) -> bool {
        self.number == asked.number
            && (self.payload_share.is_none() || self.payload_share == asked.payload_share)
            && self.inputs == asked.inputs
    }

    /// Hash of the inputs. Jobs with different numbers differ in more than packet size and kernel speed.
    pub(crate) fn number_of_inputs(&self) -> u64 {
        self.number
    }

    /// Hash of the whole key. Jobs with different numbers are different.
    pub(crate) fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.number, self.scale_ppm, self.payload_share).hash(&mut hasher);
        hasher.finish()
    }

    /// Approximate size of the key beyond its struct, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let JobInputs { config, ranks, links, .. } = &self.inputs;
        (config.len() + size_of_val(&**ranks) + size_of_val(&**links)) as u64
    }
}

impl JobInputs {
    fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.config, self.jitter_seed, &self.ranks, self.links.len()).hash(&mut hasher);
        hasher.finish()
    }
}

/// Returns a program whose kernels take the times of the model.
fn at_full_speed(program: &ProgramSpec) -> ProgramSpec {
    let compute = Compute { scale_ppm: 1_000_000, ..program.compute.clone() };
    ProgramSpec { compute, ..program.clone() }
}

/// Whether nothing but the configuration decides the program: no file, which might change.
fn is_self_contained(program: &ProgramSpec, config: &Config) -> bool {
    let named = |n: &Named| !matches!(n, Named::File(_));
    let source = match &program.source {
        Source::Model(t) => named(&t.model) && t.kernels.is_none(),
        Source::Inference(t) => {
            named(&t.model) && t.kernels.is_none() && matches!(t.requests, RequestSource::Generated(_))
        }
        Source::Collective { .. } => true,
        Source::File { .. } => false,
    };
    source
        && named(&config.cluster.gpu)
        && config.cluster.server_xml.is_none()
        && !matches!(program.compute.slowdown, SlowdownChoice::Table(_) | SlowdownChoice::Trees(_))
}

/// Returns (payload, wire bytes) of a full packet if software costs depend on it, else (1, 1).
///
/// # Errors
/// Keys of the transport that contradict each other.
pub(crate) fn payload_share(config: &Config, program: &ProgramSpec, nic_bps: u64) -> Result<(u64, u64), Conflict> {
    if !program.communication.measured_overhead {
        return Ok((1, 1));
    }
    let transport = config.transport(nic_bps.max(1))?;
    Ok((u64::from(transport.payload), u64::from(transport.payload + transport.data_overhead)))
}
