//! Measured collectives from `assets/reference`: runs of nccl-tests, each with the machine that it ran on.
//!
//! Layer: collective. This module reads them; `curves` uses them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::base_time::NEIGHBOUR_NET_PS;
use super::communicator::Communicator;
use super::curve_kind::CurveKind;
use super::nccl::Env;
use super::server::Server;
use super::system::{CollectiveSystem, MemberPlacement};
use super::{Algorithm, CollectiveOp};

/// One size of a run.
#[derive(Clone, Debug)]
pub(super) struct ReferenceRow {
    pub bytes: u64,
    /// Time out of place in us.
    pub time_us: f64,
    pub op: CollectiveOp,
    pub placement: MemberPlacement,
}

/// A sweep over sizes on one machine.
#[derive(Clone, Debug)]
pub(super) struct ReferenceRun {
    pub id: String,
    pub system: CollectiveSystem,
    /// Whether the run is part of the database of curves.
    pub curve: bool,
    /// The run's algorithm if it is not NCCL's choice.
    pub algorithm: Option<Algorithm>,
    pub rows: Vec<ReferenceRow>,
}

impl ReferenceRun {
    /// The time of a row by `link_times` in us, and the curve that the row belongs to.
    pub(super) fn plain(&self, row: &ReferenceRow) -> Option<(f64, CurveKind)> {
        // Measured times hold the network between neighbours, which costs count by themselves.
        let system = CollectiveSystem { net_extra_ps: NEIGHBOUR_NET_PS, ..self.system };
        let us =
            Communicator::new(&row.placement, &system, &Env::default()).plain_us(row.op, self.algorithm, row.bytes);
        Some((us, CurveKind::new(row.op, &row.placement, &system)?))
    }
}

#[derive(Deserialize)]
struct RunEntry {
    server: String,
    ranks_per_node: Option<u32>,
    sharing: Option<u32>,
    #[serde(default)]
    curve: bool,
    #[serde(default)]
    hierarchical: bool,
}

#[derive(Deserialize)]
struct Systems {
    run: BTreeMap<String, RunEntry>,
}

#[derive(Deserialize)]
struct SweepRow {
    run_id: String,
    nodes: u32,
    gpus_per_node: u32,
    ranks: u32,
    collective: String,
    size_bytes: u64,
    time_us: f64,
}

const ASSET: &str = "the asset is part of the program and a test reads it";

fn systems() -> &'static Systems {
    static SYSTEMS: OnceLock<Systems> = OnceLock::new();
    SYSTEMS.get_or_init(|| toml::from_str(include_str!("../../../assets/reference/nccl_systems.toml")).expect(ASSET))
}

fn csv<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(text.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .expect(ASSET)
}

/// The operation with this name in nccl-tests. Words after the name are a remark.
pub(super) fn op_named(name: &str) -> Option<CollectiveOp> {
    Some(match name.split(' ').next().unwrap_or(name).replace('_', "").as_str() {
        "allreduce" => CollectiveOp::AllReduce,
        "allgather" => CollectiveOp::AllGather,
        "reducescatter" => CollectiveOp::ReduceScatter,
        "alltoall" => CollectiveOp::AllToAll,
        "broadcast" => CollectiveOp::Broadcast,
        "reduce" => CollectiveOp::Reduce,
        _ => return None,
    })
}

/// All sweeps.
pub(super) fn runs() -> &'static [ReferenceRun] {
    static RUNS: OnceLock<Vec<ReferenceRun>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let mut runs: Vec<ReferenceRun> = Vec::new();
        for row in csv::<SweepRow>(include_str!("../../../assets/reference/nccl_tests_sweeps.csv")) {
            let entry = systems().run.get(&row.run_id).expect(ASSET);
            let placement = MemberPlacement {
                ranks: row.ranks,
                ranks_per_node: entry.ranks_per_node.unwrap_or(if row.nodes > 1 {
                    row.gpus_per_node
                } else {
                    row.ranks
                }),
                sharing: entry.sharing.unwrap_or(1),
            };
            let op = op_named(&row.collective).expect(ASSET);
            if runs.last().is_none_or(|r| r.id != row.run_id) {
                runs.push(ReferenceRun {
                    id: row.run_id.clone(),
                    system: Server::preset(&entry.server).expect(ASSET).system(false),
                    curve: entry.curve,
                    algorithm: entry.hierarchical.then_some(Algorithm::Hierarchical),
                    rows: Vec::new(),
                });
            }
            runs.last_mut().expect("one was just pushed").rows.push(ReferenceRow {
                bytes: row.size_bytes,
                time_us: row.time_us,
                op,
                placement,
            });
        }
        runs
    })
}

/// Names of the runs that correct costs, in the order of their table.
pub fn measured_runs() -> impl Iterator<Item = &'static str> {
    runs().iter().filter(|r| r.curve).map(|r| r.id.as_str())
}

/// Whether a measured run corrects costs of the server with this name.
pub fn has_measured_run(server: &str) -> bool {
    let server_idx = Server::index(server);
    server_idx.is_some() && runs().iter().any(|r| r.curve && r.system.server_idx == server_idx)
}

/// The index of a run in [`measured_runs`].
pub fn measured_run(name: &str) -> Option<u16> {
    measured_runs().position(|id| id == name).map(|place| place as u16)
}
