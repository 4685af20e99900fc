//! `[base.workload]` for programs: training, one collective, and files of other tools.
//!
//! Layer: spec. Plain data in integers, with its own enums; `host` converts them to the types of `model`, `collective` and `compute`. Knows no model, no GPU
//! and no file's content, so it checks only conditions between keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::error::Conflict;
use super::experts::ExpertsSpec;
use super::key::{Key, VARIABLES};
use super::key_id::KeyId;
use super::keys::KEYS;
use super::lookup::key;
use super::scale::{PPM, scaled};
use super::serving::Serving;
use super::traffic_classes::DIMENSIONS;
use super::training::Training;
use super::value::{Value, Values};
use hyperfold_base::index_list::parse_part;
use hyperfold_base::units::PS_PER_NS;

/// A job of dependent operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSpec {
    /// Source of the program.
    pub source: Source,
    /// Number of measured iterations, after `warmup` that are not measured.
    pub iterations: u32,
    /// Value of `workload.warmup`.
    pub warmup: u32,
    /// How kernels' times are modified.
    pub compute: Compute,
    /// How collectives and messages are carried out.
    pub communication: Communication,
}

/// The source of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Training of a model.
    Model(Box<Training>),
    /// Inference with a model.
    Inference(Box<Serving>),
    /// A collective alone, again and again.
    Collective {
        /// Operation that is repeated, such as all-reduce.
        op: OpChoice,
        /// Size of the collective, bytes, as nccl-tests counts it.
        bytes: u64,
        /// Number of ranks, from rank 0; `None`: all.
        ranks: Option<u32>,
        /// Experts of a dispatch or combine without NCCL.
        experts: Option<ExpertsSpec>,
    },
    /// A program that files give.
    File {
        /// Format of the files.
        format: ProgramFormat,
        /// Path of the file, or of the folder or prefix that names several.
        path: PathBuf,
        /// For Chakra, Kineto and flight recorders: number of ranks on which the file of one rank is repeated.
        ranks: Option<u32>,
        /// Factor on bytes, millionths.
        bytes_scale_ppm: u64,
        /// For flight recorders: whether ranks wait for each call.
        wait_for_calls: bool,
    },
}

/// Format of a program's file or files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramFormat {
    /// SimAI's workload files.
    SimAi,
    /// Chakra's execution traces.
    Chakra,
    /// Connection matrices of htsim.
    Htsim,
    /// GOAL files of LogGOPSim and ATLAHS.
    Goal,
    /// Traces of PyTorch's profiler.
    Kineto,
    /// Dumps of PyTorch's flight recorder.
    FlightRecorder,
    /// The project's own form: ops and their dependencies.
    Dag,
}

/// The operation of a collective benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpChoice {
    /// Every rank gets the sum.
    AllReduce,
    /// Every rank gets the parts of all.
    AllGather,
    /// Every rank gets its part of the sum.
    ReduceScatter,
    /// Every rank sends a part to every other.
    AllToAll,
    /// Every rank gets the data of one.
    Broadcast,
    /// One rank gets the sum.
    Reduce,
    /// Every rank sends to the next.
    SendRecv,
    /// Every rank waits for all others.
    Barrier,
    /// Every rank sends tokens to experts.
    Dispatch,
    /// Every rank sends results of experts back.
    Combine,
}

/// Modifications of kernels' times. Factors are in millionths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compute {
    /// Value of `workload.compute_scale`, in millionths.
    pub scale_ppm: u64,
    /// Values of `workload.gemm_scale`, `workload.attention_scale` and `workload.memory_bound_scale`, in millionths.
    pub class_scales_ppm: [u64; 3],
    /// Standard deviation over the mean, drawn from [`super::Config::jitter_seed`].
    pub jitter_ppm: u64,
    /// Ranks that are slow, ascending, without repeats; empty also if their factor is one.
    pub stragglers: Vec<u32>,
    /// Factor on kernels of slow ranks.
    pub straggler_ppm: u64,
    /// Value of `workload.slowdown`.
    pub slowdown: SlowdownChoice,
    /// Value of `workload.slowdown_scale`, in millionths.
    pub slowdown_scale_ppm: u64,
}

/// How kernels slow down beside communication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlowdownChoice {
    /// Kernels do not slow down.
    None,
    /// The slowdown in the GPU's specification.
    Own,
    /// A CSV of measured slowdowns.
    Table(PathBuf),
    /// A gradient-boosted tree model in XGBoost's JSON form.
    Trees(PathBuf),
}

/// The algorithm of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlgorithmChoice {
    /// NCCL's cost model chooses.
    Auto,
    /// Rings through all ranks.
    Ring,
    /// NCCL's double binary trees.
    Tree,
    /// Recursive halving and doubling.
    HalvingDoubling,
    /// Parallel aggregated trees, of all-gather and reduce-scatter.
    Pat,
    /// Every rank sends to every other at once.
    Direct,
    /// First within servers, then between them.
    Hierarchical,
    /// NVLink switches reduce within servers.
    Nvls,
    /// Switches of the network reduce.
    InNetwork,
    /// Switches of the network reduce, at the heads of chains of GPUs.
    CollnetChain,
}

/// NCCL's protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolChoice {
    /// Low latency: flags beside data, 8 bytes a line.
    Ll,
    /// Low latency with lines of 128 bytes.
    Ll128,
    /// Whole chunks, with barriers between them.
    Simple,
}

/// How collectives and messages are carried out. `None` leaves the choice to NCCL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communication {
    /// Value of `workload.algorithm`.
    pub algorithm: AlgorithmChoice,
    /// Value of `workload.protocol`.
    pub protocol: Option<ProtocolChoice>,
    /// Value of `workload.channels`.
    pub channels: Option<u32>,
    /// Value of `workload.chunk_kib`, bytes.
    pub chunk_bytes: Option<u64>,
    /// Value of `workload.qps_per_connection`.
    pub qps_per_connection: u32,
    /// Whether every message is split over the queue pairs; else they take turns.
    pub split_data_on_qps: bool,
    /// Whether `workload.pxn` is on.
    pub pxn: bool,
    /// Value of `workload.start_overhead_ns`, ps.
    pub start_overhead_ps: u64,
    /// Value of `workload.work_queue_latency_ns`, ps.
    pub work_queue_latency_ps: u64,
    /// Value of `workload.rendezvous_ns`, ps.
    pub rendezvous_ps: u64,
    /// Factor on latencies of collectives and messages, millionths.
    pub latency_ppm: u64,
    /// Whether messages cost as much as makes a lone collective take as long as measured runs; else the cost is that of the two keys above.
    pub measured_overhead: bool,
    /// Value of `workload.analytic`.
    pub analytic: Analytic,
    /// Weights of flows at flow level, in the order tp, pp, dp, ep, cp, other: how many times more of a full link they get.
    pub weights: [u32; 6],
    /// Whether analytical collectives take the time of Moye's equations, if these have a form for them.
    pub cost_by_chunks: bool,
    /// Name of a measured run that is left out of the costs of collectives; empty: none is.
    pub leave_out_run: String,
    /// Variables of `[base.workload.nccl]` that were written and that no key overrides, by name.
    pub nccl: BTreeMap<String, String>,
}

/// Dimensions whose communication takes a calibrated time instead of crossing the network as packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analytic {
    /// Whether tensor-parallel communication takes a calibrated time.
    pub tp: bool,
    /// Whether pipeline communication takes a calibrated time.
    pub pp: bool,
    /// Whether data-parallel communication takes a calibrated time.
    pub dp: bool,
    /// Whether expert-parallel communication takes a calibrated time.
    pub ep: bool,
    /// Whether context-parallel communication takes a calibrated time.
    pub cp: bool,
    /// Whether communication that belongs to no dimension of training takes a calibrated time.
    pub other: bool,
}

impl Analytic {
    /// Every dimension.
    pub const ALL: Analytic = Analytic { tp: true, pp: true, dp: true, ep: true, cp: true, other: true };
}

/// Largest weight of a flow: rates have bits for this much (our choice).
const MAX_WEIGHT: u32 = 64;

impl ProgramSpec {
    /// Types the values of a program. `dir`: folder to which paths are relative. The error names the wrong key.
    pub(super) fn new(v: &Values, dir: &Path) -> Result<ProgramSpec, Conflict> {
        let ranks = (v.int(KeyId::Ranks) > 0).then(|| v.int(KeyId::Ranks) as u32);
        let format = match v.text(KeyId::WorkloadKind) {
            "simai" => Some(ProgramFormat::SimAi),
            "chakra" => Some(ProgramFormat::Chakra),
            "htsim" => Some(ProgramFormat::Htsim),
            "goal" => Some(ProgramFormat::Goal),
            "kineto" => Some(ProgramFormat::Kineto),
            "flight-recorder" => Some(ProgramFormat::FlightRecorder),
            "dag" => Some(ProgramFormat::Dag),
            _ => None,
        };
        let source = match format {
            Some(format) => match v.text(KeyId::WorkloadPath) {
                "" => {
                    let why = format!(
                        "it is required with workload.kind = \"{}\"; give the path of its file",
                        v.text(KeyId::WorkloadKind)
                    );
                    return Err(Conflict { job: None, key: KeyId::WorkloadPath, why });
                }
                p => Source::File {
                    format,
                    path: dir.join(p),
                    ranks,
                    bytes_scale_ppm: scaled(v.float(KeyId::BytesScale), PPM),
                    wait_for_calls: v.bool(KeyId::WaitForCalls),
                },
            },
            None if v.is(KeyId::WorkloadKind, "model") => Source::Model(Box::new(Training::new(v, dir)?)),
            None if v.is(KeyId::WorkloadKind, "inference") => Source::Inference(Box::new(Serving::new(v, dir)?)),
            None => Source::Collective {
                op: op(v)?,
                bytes: v.int(KeyId::Bytes) as u64,
                ranks,
                experts: ExpertsSpec::new(v),
            },
        };
        Ok(ProgramSpec {
            source,
            iterations: v.int(KeyId::Iterations) as u32,
            warmup: v.int(KeyId::Warmup) as u32,
            compute: Compute::new(v, dir)?,
            communication: Communication::new(v)?,
        })
    }

    /// Checks conditions between keys, and with the number of GPUs if it is known.
    pub(super) fn check(&self, v: &Values, gpus: Option<u32>) -> Result<(), Conflict> {
        match &self.source {
            Source::Model(training) => training.check(v, gpus),
            Source::Inference(serving) => serving.check(v, gpus),
            Source::Collective { ranks: Some(1), .. } => Err(Conflict {
                job: None,
                key: KeyId::Ranks,
                why: "it must be at least 2 (somebody sends, somebody else receives), or 0 for all".to_string(),
            }),
            Source::Collective { ranks: Some(ranks), .. } if gpus.is_some_and(|g| *ranks > g) => Err(Conflict {
                job: None,
                key: KeyId::Ranks,
                why: format!("it must be at most cluster.gpus = {}", gpus.unwrap_or(0)),
            }),
            Source::Collective { ranks: None, .. } if gpus == Some(1) => Err(Conflict {
                job: None,
                key: KeyId::Gpus,
                why: "it must be at least 2: somebody sends, somebody else receives".to_string(),
            }),
            Source::Collective { ranks, experts: Some(experts), .. } => experts.check(v, ranks.or(gpus)),
            _ => Ok(()),
        }
    }
}

fn op(v: &Values) -> Result<OpChoice, Conflict> {
    Ok(match v.text(KeyId::Op) {
        "all-reduce" => OpChoice::AllReduce,
        "all-gather" => OpChoice::AllGather,
        "reduce-scatter" => OpChoice::ReduceScatter,
        "all-to-all" => OpChoice::AllToAll,
        "broadcast" => OpChoice::Broadcast,
        "reduce" => OpChoice::Reduce,
        "send-recv" => OpChoice::SendRecv,
        "barrier" => OpChoice::Barrier,
        "dispatch" => OpChoice::Dispatch,
        "combine" => OpChoice::Combine,
        _ => {
            let why = format!("it is required with workload.kind = \"collective\": {}", key(KeyId::Op).accepts());
            return Err(Conflict { job: None, key: KeyId::Op, why });
        }
    })
}

impl Compute {
    fn new(v: &Values, dir: &Path) -> Result<Compute, Conflict> {
        let straggler_ppm = scaled(v.float(KeyId::StragglerSlowdown), PPM);
        let stragglers = if straggler_ppm == PPM as u64 { Vec::new() } else { ranks(v.text(KeyId::StragglerRanks))? };
        Ok(Compute {
            scale_ppm: scaled(v.float(KeyId::ComputeScale), PPM),
            class_scales_ppm: [KeyId::GemmScale, KeyId::AttentionScale, KeyId::MemoryBoundScale]
                .map(|key| scaled(v.float(key), PPM)),
            jitter_ppm: scaled(v.float(KeyId::ComputeJitter), PPM),
            stragglers,
            straggler_ppm,
            slowdown_scale_ppm: scaled(v.float(KeyId::SlowdownScale), PPM),
            slowdown: match v.text(KeyId::Slowdown) {
                "none" => SlowdownChoice::None,
                "gpu" => SlowdownChoice::Own,
                path if path.ends_with(".csv") => SlowdownChoice::Table(dir.join(path)),
                path if path.ends_with(".json") => SlowdownChoice::Trees(dir.join(path)),
                _ => {
                    return Err(Conflict {
                        job: None,
                        key: KeyId::Slowdown,
                        why: "it must be \"gpu\", \"none\" or the path of a .csv or .json file".to_string(),
                    });
                }
            },
        })
    }
}

/// Parses ranks such as `0,5,8-15`. The result ascends, without repeats.
fn ranks(text: &str) -> Result<Vec<u32>, Conflict> {
    const MAX: u32 = 1 << 20;
    let mut out = BTreeSet::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let Some(ranks) = parse_part(part, MAX) else {
            let why =
                format!("`{part}` is neither a rank nor a range of ranks below {MAX}; write for example \"0,5,8-15\"");
            return Err(Conflict { job: None, key: KeyId::StragglerRanks, why });
        };
        out.extend(ranks);
    }
    Ok(out.into_iter().collect())
}

impl Communication {
    fn new(v: &Values) -> Result<Communication, Conflict> {
        let ns = |key: KeyId| scaled(v.float(key), PS_PER_NS as f64);
        let read = |k: &&Key| *v.get(k.id) != Value::Unset && k.applies(v);
        let nccl = KEYS.iter().filter(read).filter_map(|k| Some((k.name.strip_prefix(VARIABLES)?, v.get(k.id))));
        Ok(Communication {
            algorithm: match v.text(KeyId::Algorithm) {
                "ring" => AlgorithmChoice::Ring,
                "tree" => AlgorithmChoice::Tree,
                "halving-doubling" => AlgorithmChoice::HalvingDoubling,
                "pat" => AlgorithmChoice::Pat,
                "direct" => AlgorithmChoice::Direct,
                "hierarchical" => AlgorithmChoice::Hierarchical,
                "nvls" => AlgorithmChoice::Nvls,
                "in-network" => AlgorithmChoice::InNetwork,
                "collnet-chain" => AlgorithmChoice::CollnetChain,
                _ => AlgorithmChoice::Auto,
            },
            protocol: match v.text(KeyId::Protocol) {
                "LL" => Some(ProtocolChoice::Ll),
                "LL128" => Some(ProtocolChoice::Ll128),
                "Simple" => Some(ProtocolChoice::Simple),
                _ => None,
            },
            channels: (v.int(KeyId::Channels) > 0).then(|| v.int(KeyId::Channels) as u32),
            chunk_bytes: Some(scaled(v.float(KeyId::ChunkKib), 1024.0)).filter(|b| *b > 0),
            qps_per_connection: v.int(KeyId::QpsPerConnection) as u32,
            split_data_on_qps: v.bool(KeyId::SplitDataOnQps),
            pxn: v.bool(KeyId::Pxn),
            start_overhead_ps: ns(KeyId::StartOverheadNs),
            work_queue_latency_ps: ns(KeyId::WorkQueueLatencyNs),
            rendezvous_ps: ns(KeyId::RendezvousNs),
            latency_ppm: (v.float(KeyId::LatencyScale) * 1e6).round() as u64,
            measured_overhead: v.is(KeyId::CollectiveOverhead, "measured"),
            analytic: analytic(v.text(KeyId::Analytic))?,
            weights: weights(v.text(KeyId::FlowWeights))?,
            cost_by_chunks: v.is(KeyId::AnalyticCost, "chunks"),
            leave_out_run: match v.text(KeyId::LeaveOutRun) {
                "none" => String::new(),
                run => run.to_string(),
            },
            nccl: nccl.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        })
    }
}

/// Reads `workload.analytic`.
fn analytic(text: &str) -> Result<Analytic, Conflict> {
    let mut out = Analytic::default();
    for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        match word {
            "tp" => out.tp = true,
            "pp" => out.pp = true,
            "dp" => out.dp = true,
            "ep" => out.ep = true,
            "cp" => out.cp = true,
            "other" => out.other = true,
            "all" => out = Analytic::ALL,
            "intra" => {}
            _ => {
                let why = format!(
                    "`{word}` is no dimension: list some of tp, pp, dp, ep, cp, other, or write \"all\" or \"intra\""
                );
                return Err(Conflict { job: None, key: KeyId::Analytic, why });
            }
        }
    }
    Ok(out)
}

/// Reads `workload.flow_weights`.
fn weights(text: &str) -> Result<[u32; 6], Conflict> {
    let wrong = |why: String| Conflict { job: None, key: KeyId::FlowWeights, why };
    let mut weight_of: [Option<u32>; 6] = [None; 6];
    for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
        let weight = part.split_once(':').and_then(|(dim, weight)| {
            let dim_idx = DIMENSIONS.iter().position(|name| *name == dim)?;
            Some((dim_idx, weight.parse::<u32>().ok().filter(|weight| (1..=MAX_WEIGHT).contains(weight))?))
        });
        let Some((dim_idx, weight)) = weight else {
            return Err(wrong(format!(
                "`{part}` is no weight of a dimension; write for example \"pp:8 dp:2\": tp, pp, dp, ep, cp or other, and a whole number from 1 to {MAX_WEIGHT}"
            )));
        };
        if weight_of[dim_idx].replace(weight).is_some() {
            return Err(wrong(format!("`{part}` is the second weight of its dimension; give each dimension one")));
        }
    }
    Ok(weight_of.map(|weight| weight.unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_read() {
        assert_eq!(weights("pp:8, dp:2"), Ok([1, 8, 2, 1, 1, 1]));
        assert_eq!(weights(""), Ok([1; 6]));
        for wrong in ["pp", "pp:0", "pp:65", "xp:2", "pp:1.5", "pp:2 pp:3"] {
            assert!(weights(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranks_read_in_any_order() {
        assert_eq!(ranks("8-10, 0,9"), Ok(vec![0, 8, 9, 10]));
        assert_eq!(ranks(""), Ok(vec![]));
        assert!(ranks("3-1").is_err() && ranks("x").is_err() && ranks("0-4294967295").is_err());
    }

    #[test]
    fn dimensions_read() {
        assert_eq!(analytic("tp, ep"), Ok(Analytic { tp: true, ep: true, ..Analytic::default() }));
        assert_eq!(analytic("all"), Ok(Analytic::ALL));
        assert_eq!(analytic("intra"), Ok(Analytic::default()));
        assert!(analytic("tp;dp").is_err());
    }
}
