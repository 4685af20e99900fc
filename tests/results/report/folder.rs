//! Result folders without simulation, written by the product's own writer.

use std::path::Path;

use hyperfold_results::{
    Axis, Cell, ColumnKind, ExperimentRecord, Finished, FlowMeasures, FlowRecord, LinkEnds, LinkPackets, LinkPauses,
    LinkRecord, Manifest, Micro, Outcome, Outputs, Ps, ResultDir, ResultWriter, RunIdentity, Seconds, StatsRecord,
};

/// What a folder holds.
#[derive(Clone)]
pub struct Folder {
    pub name: String,
    pub experiments: u64,
    pub replicas: u64,
    pub outputs: Outputs,
    /// Whether experiments are training iterations rather than plain traffic.
    pub training: bool,
    /// Whether some fail and some need too much memory.
    pub failures: bool,
    /// Names of congestion controls.
    pub ccs: Vec<String>,
    /// Patterns, each a workload of its own.
    pub patterns: Vec<String>,
    /// What its sweep says beside its name, TOML.
    pub sweep: String,
}

impl Folder {
    pub fn of(experiments: u64) -> Folder {
        let words = |all: &[&str]| all.iter().map(|s| s.to_string()).collect();
        Folder {
            name: "synthetic".into(),
            experiments,
            replicas: 1,
            outputs: Outputs::default(),
            training: false,
            failures: true,
            ccs: words(&["dcqcn", "hpcc", "timely", "dctcp"]),
            patterns: words(&["ring"]),
            sweep: String::new(),
        }
    }

    pub fn write(&self, dir: &Path) {
        let axis = |key: &str, kind| Axis { key: key.into(), kind };
        let axes = vec![
            axis("topology.kind", ColumnKind::Text),
            axis("transport.cc", ColumnKind::Text),
            axis("topology.link_gbps", ColumnKind::Int),
            axis("transport.hpcc.eta", ColumnKind::Real),
            axis("workload.pattern", ColumnKind::Text),
        ];
        let ids = (0..self.experiments).collect();
        let mut writer = ResultWriter::open(
            ResultDir::create(dir).unwrap(),
            &RunIdentity { axes: axes.clone(), outputs: self.outputs, ..RunIdentity::default() }.of_this_version(1),
            ids,
        )
        .unwrap()
        .0;
        for id in 0..self.experiments {
            writer.add(self.experiment(id)).unwrap();
        }
        let (dir, records) = writer.finish().unwrap();
        let count = |status: &str| records.iter().filter(|r| r.status.as_str() == status).count() as u64;
        let manifest = Manifest {
            version: "0.0.0".into(),
            command_line: vec!["hyperfold".into(), "run".into(), self.name.clone()],
            outcome: Outcome::Complete,
            name: self.name.clone(),
            sweep: format!("name = {:?}\n{}", self.name, self.sweep),
            sweep_path: String::new(),
            axes,
            replicas: self.replicas,
            inputs: Vec::new(),
            experiments: self.experiments,
            from_journal: 0,
            selected: self.experiments,
            ok: count("ok"),
            oom: count("oom"),
            failed: count("failed"),
            engine: "cpu".into(),
            engine_reason: "in a test".into(),
            adapters: Vec::new(),
            jobs: 1,
            seconds: Seconds::default(),
            warnings: vec![self.name.clone()],
            not_compared: Vec::new(),
        };
        manifest.write(&dir).unwrap();
    }

    /// An experiment whose numbers follow from its id.
    fn experiment(&self, id: u64) -> Finished {
        let (configuration, replica) = (id / self.replicas, id % self.replicas);
        let mut rest = configuration;
        let mut take = |n: usize| {
            let at = rest % n as u64;
            rest /= n as u64;
            at as usize
        };
        let (pattern, kind, cc, gbps) = (take(self.patterns.len()), take(3), take(self.ccs.len()), take(3));
        let values = vec![
            ["rail-optimized", "fat-tree", "clos"][kind].into(),
            self.ccs[cc].as_str().into(),
            Cell::Int([100, 200, 400][gbps]),
            Cell::Real(0.5 + rest as f64 / 1000.0),
            self.patterns[pattern].as_str().into(),
        ];
        let mut r = ExperimentRecord::new(
            id,
            format!("{configuration:032x}"),
            format!("{id:032x}"),
            replica as u32,
            u64::MAX - replica,
            values,
        );
        let stats = StatsRecord {
            packet_hops_simulated: 1000,
            packet_hops_skipped: 3000,
            memo_hits: 2,
            memo_misses: 1,
            batches: 1,
            wall_s: 0.25,
            ..Default::default()
        };
        let none = Finished { record: r.clone(), stats: stats.clone(), ..Finished::default() };
        if self.failures && configuration % 97 == 5 {
            return Finished { record: r.failed(format!("flow {id} gave up: {}", self.ccs[cc])), ..none };
        }
        if self.failures && configuration % 97 == 7 {
            return Finished { record: r.oom(200_000_000_000, "weights 150 GB, activations 50 GB"), ..none };
        }
        let noise = hash(id) % 1_000_000;
        let slow = [10, 13, 12][kind] * [10, 9, 11, 10, 10, 10][cc % 6] * [40, 20, 10][gbps] * (pattern as u64 + 1);
        // Some beyond what a double holds to the picosecond.
        let base = if id == 2 { 123_456_789_012_345_678 } else { slow * 1_000_000 + noise };
        r.makespan = Some(Ps(base));
        r.flows = Some(64);
        (r.fct_mean, r.fct_p50, r.fct_p99, r.fct_max) =
            (Some(Ps(base / 2 + 1)), Some(Ps(base / 2)), Some(Ps(base - 7)), Some(Ps(base)));
        (r.fct_slowdown_p50, r.fct_slowdown_p99) = (Some(Micro(1_000_001 + noise)), Some(Micro(1)));
        (r.packet_hops, r.ecn_marks, r.pfc_pauses, r.drops) =
            (Some(4000), Some(noise % 5000), Some(noise % 3), Some(0));
        r.max_queue_bytes = Some(noise * 1000 / slow);
        r.max_link_utilisation = Some(Micro(noise));
        r.bottleneck_link = Some("host0->leaf0".into());
        if self.training {
            r.iteration_time = Some(Ps(base));
            let part = |percent: u64| Some(Ps(base / 100 * percent));
            (r.compute, r.comm_exposed_tp, r.comm_exposed_dp, r.bubble, r.optimizer) =
                (part(50), part(10), part(20), part(10), part(5));
            (r.comm_exposed_pp, r.comm_exposed_ep, r.comm_exposed_cp) = (Some(Ps(0)), Some(Ps(0)), Some(Ps(0)));
            r.other = Some(Ps(base - base / 100 * 95));
            (r.tokens_per_s, r.mfu) = (Some(1e18 / base as f64), Some(1.0 / 3.0));
            r.peak_memory_bytes = Some(60_000_000_000 - slow);
        }
        let flow = |flow_id: u32| FlowRecord {
            flow_id,
            src: flow_id,
            dst: 64,
            bytes: 1000,
            start: Ps(0),
            fct: (flow_id != 9).then_some(Ps(base / (10 - u64::from(flow_id % 10)))),
            measures: FlowMeasures::default(),
        };
        let link = |at: u64| LinkRecord {
            link: format!("host{at}->leaf{}", at % 8),
            bytes: at,
            utilisation: Micro(1_000_000 / (at + 1)),
            packets: Some(LinkPackets {
                max_queue_bytes: 1000 * (at % 7),
                mean_queue_bytes: Micro(at),
                ecn_marks: at,
                pfc_pauses: 0,
                drops: 0,
            }),
            ends: Some(LinkEnds {
                source: format!("host{at}"),
                target: format!("leaf{}", at % 8),
                capacity_gbps: Micro(400_000_000),
            }),
            pauses: LinkPauses { paused: Some(Ps(at * 1_000)) },
        };
        Finished {
            record: r,
            flows: (0..40).map(flow).collect(),
            links: (0..100).map(link).collect(),
            stats,
            ..Finished::default()
        }
    }
}

/// A number that looks random and is not.
fn hash(id: u64) -> u64 {
    let x = (id + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}
