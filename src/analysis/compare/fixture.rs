//! Result folders for tests.

use std::path::Path;

use hyperfold_results::read::fixture;
use hyperfold_results::{
    Axis, Cell, ColumnKind, ExperimentRecord, Finished, FlowRecord, LinkPackets, LinkRecord, Ps, StatsRecord,
};

/// A temporary folder that is deleted with the value.
pub(super) struct Folder(tempfile::TempDir);

/// A successful experiment with text values on the axes and a makespan in ps.
pub(super) fn ok(exp_id: u64, config: &str, axes: &[&str], makespan_ps: u64) -> Finished {
    let axes = axes.iter().map(|a| a.parse().map_or_else(|_| Cell::from(*a), Cell::Int)).collect();
    let mut record = ExperimentRecord::new(exp_id, config.into(), format!("e{exp_id}"), 0, exp_id, axes);
    record.makespan = Some(Ps(makespan_ps));
    Finished { record, stats: StatsRecord::default(), ..Finished::default() }
}

/// The experiment `f` with an iteration of this compute time and exposed data-parallel communication, in ps.
pub(super) fn iteration(mut f: Finished, compute: u64, exposed: u64) -> Finished {
    let r = &mut f.record;
    r.iteration_time = Some(Ps(compute + exposed));
    r.compute = Some(Ps(compute));
    r.comm_exposed_dp = Some(Ps(exposed));
    for part in [
        &mut r.comm_exposed_tp,
        &mut r.comm_exposed_pp,
        &mut r.comm_exposed_ep,
        &mut r.comm_exposed_cp,
        &mut r.bubble,
        &mut r.optimizer,
        &mut r.other,
    ] {
        *part = Some(Ps(0));
    }
    f
}

impl Folder {
    pub(super) fn new(axes: &[&str], experiments: Vec<Finished>) -> Folder {
        Self::with_sweep(axes, experiments, "")
    }

    /// Writes a folder with a sweep file. The replicas of equal configuration keys are numbered; ids must ascend.
    pub(super) fn with_sweep(axes: &[&str], mut experiments: Vec<Finished>, sweep: &str) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        let kind = |axis_idx: usize| Axis::infer("", experiments.iter().map(|e| &e.record.axis_values[axis_idx])).kind;
        let axes: Vec<Axis> =
            axes.iter().enumerate().map(|(axis_idx, key)| Axis { key: (*key).into(), kind: kind(axis_idx) }).collect();
        for a in axes.iter().enumerate().filter(|(_, a)| a.kind == ColumnKind::Text) {
            experiments
                .iter_mut()
                .for_each(|e| e.record.axis_values[a.0] = e.record.axis_values[a.0].to_string().into());
        }
        let mut seen: Vec<String> = Vec::new();
        for e in &mut experiments {
            e.record.replica = seen.iter().filter(|k| **k == e.record.config_key).count() as u32;
            seen.push(e.record.config_key.clone());
        }
        fixture::write(folder.path(), &axes, &experiments, sweep);
        Folder(folder)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// A flow with this completion time in ps.
pub(super) fn flow(flow_id: u32, src: u32, dst: u32, fct_ps: u64) -> FlowRecord {
    FlowRecord { flow_id, src, dst, bytes: 1000, fct: Some(Ps(fct_ps)), ..FlowRecord::default() }
}

/// A link with this utilisation in millionths.
pub(super) fn link(name: &str, utilisation: u64, max_queue_bytes: u64) -> LinkRecord {
    let (utilisation, mean_queue_bytes) = (hyperfold_results::Micro(utilisation), hyperfold_results::Micro(0));
    LinkRecord {
        link: name.into(),
        bytes: 1,
        utilisation,
        packets: Some(LinkPackets { max_queue_bytes, mean_queue_bytes, ecn_marks: 0, pfc_pauses: 0, drops: 0 }),
        ends: None,
        pauses: hyperfold_results::LinkPauses::default(),
    }
}
