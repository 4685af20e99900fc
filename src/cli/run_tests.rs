//! `run` against a simulator of a few lines: exit codes, what is written when.

use std::path::Path;

use super::*;
use crate::cli::args::SweepArgs;
use hyperfold_results::{
    Axis, Cell, ColumnKind, ExperimentRecord, Finished, Manifest, Outputs, Ps, StatsRecord, Status,
};
use hyperfold_session::{EngineChoice, GpuDispatch, Known, SweepRequest, UpdateSink};

/// Finishes experiments from the last to the first; each as `fate` says.
#[derive(Default)]
struct Fake {
    experiments: u64,
    fate: Option<fn(u64) -> Fate>,
    warnings: Vec<String>,
    late: Vec<String>,
    no_adapter: bool,
}

enum Fate {
    Ok,
    Oom,
    Failed,
    /// Ctrl-C comes before this one.
    Interrupt,
    /// The run breaks off before this one.
    Abort,
}

impl Simulator for Fake {
    type Sweep = Vec<u64>;
    type Engine = ();

    fn load(&self, _: &SweepRequest) -> Result<(Planned, Vec<u64>), SessionError> {
        let ids: Vec<u64> = (0..self.experiments).collect();
        let planned = Planned {
            name: "fake".into(),
            experiments: self.experiments,
            selected: ids.clone(),
            axes: vec![Axis { key: "transport.cc".into(), kind: ColumnKind::Text }],
            outputs: Outputs::default(),
            warnings: self.warnings.clone(),
            ..Planned::default()
        };
        Ok((planned, ids))
    }

    fn engine(&self, _: &Vec<u64>, _: &RunSettings) -> Result<(EngineUsed, ()), SessionError> {
        if self.no_adapter {
            return Err(hyperfold_engine::gpu::GpuError::NoAdapter.into());
        }
        Ok((EngineUsed { engine: "cpu", reason: "in a test".into(), adapters: Vec::new() }, ()))
    }

    fn run(
        &self,
        ids: Vec<u64>,
        (): (),
        settings: &RunSettings,
        known: &Known,
        sink: &mut UpdateSink<'_>,
    ) -> Result<Vec<String>, SessionError> {
        for id in ids.into_iter().rev().filter(|id| known.records.iter().all(|r| r.exp_id != *id)) {
            sink(Update::Started { exp_id: id })?;
            let mut record = ExperimentRecord::new(id, "c".into(), "e".into(), 0, 1, vec![Cell::from("hpcc")]);
            match self.fate.map_or(Fate::Ok, |fate| fate(id)) {
                Fate::Ok => record.makespan = Some(Ps(1000 + id)),
                Fate::Oom => record.status = Status::Oom,
                Fate::Failed => record = record.failed("why"),
                Fate::Interrupt => drop(settings.interrupt.request()),
                Fate::Abort => return Err(SessionError::Internal("lost")),
            }
            if settings.interrupt.requested() {
                return Ok(Vec::new());
            }
            let stats = StatsRecord::default();
            sink(Update::Finished(Box::new(Finished { record, stats, ..Finished::default() })))?;
        }
        Ok(self.late.clone())
    }
}

fn args(out: &Path) -> RunArgs {
    RunArgs {
        sweep: SweepArgs { sweep: "s.toml".into(), set: vec![], shard: None, limit: None, memory: None },
        out: out.into(),
        engine: EngineChoice::Auto,
        gpu_dispatch: GpuDispatch::Auto,
        device: vec![],
        jobs: Some(1),
        memo: None,
        memo_limit_mib: 1,
        resume: false,
        strict: false,
        quiet: true,
        json: false,
    }
}

/// Runs in `root/out` and gives the exit code and the manifest, if one was written.
fn run(fake: &Fake, root: &Path, change: impl FnOnce(&mut RunArgs)) -> (Exit, Option<Manifest>) {
    let mut args = args(&root.join("out"));
    change(&mut args);
    let exit = execute(&args, fake, &Interrupt::default()).unwrap_or_else(|e| e.exit);
    let manifest = std::fs::read(args.out.join("manifest.json")).ok();
    (exit, manifest.map(|text| serde_json::from_slice(&text).unwrap()))
}

fn rows(root: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("out/results.csv")).unwrap();
    text.lines().skip(1).map(|l| l.split(',').next().unwrap().to_string()).collect()
}

#[test]
fn all_ok_or_oom_is_success() {
    let root = tempfile::tempdir().unwrap();
    let fake = Fake { experiments: 3, fate: Some(|id| if id == 1 { Fate::Oom } else { Fate::Ok }), ..Fake::default() };
    let (exit, manifest) = run(&fake, root.path(), |_| {});
    let manifest = manifest.unwrap();
    assert_eq!((exit, manifest.outcome, manifest.ok, manifest.oom), (Exit::Ok, Outcome::Complete, 2, 1));
    assert_eq!(manifest.engine, "cpu");
    assert_eq!(rows(root.path()), ["0", "1", "2"]);
    let log = std::fs::read_to_string(root.path().join("out/events.jsonl")).unwrap();
    let events: Vec<serde_json::Value> = log.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["outcome"]), (&"run_ended".into(), &"complete".into()), "{log}");
    assert_eq!(events.iter().filter(|e| e["event"] == "finished").count(), 3, "{log}");
}

#[test]
fn a_failed_experiment_is_exit_1_and_the_rest_is_there() {
    let root = tempfile::tempdir().unwrap();
    let fake =
        Fake { experiments: 3, fate: Some(|id| if id == 1 { Fate::Failed } else { Fate::Ok }), ..Fake::default() };
    assert_eq!(run(&fake, root.path(), |_| {}).0, Exit::Failed);
    assert_eq!(rows(root.path()), ["0", "1", "2"]);
    assert!(root.path().join("out/failed.csv").exists());
}

#[test]
fn ctrl_c_keeps_what_is_complete() {
    let root = tempfile::tempdir().unwrap();
    let fake =
        Fake { experiments: 5, fate: Some(|id| if id == 1 { Fate::Interrupt } else { Fate::Ok }), ..Fake::default() };
    let (exit, manifest) = run(&fake, root.path(), |_| {});
    assert_eq!((exit, manifest.unwrap().outcome), (Exit::Interrupted, Outcome::Interrupted));
    assert_eq!(rows(root.path()), ["2", "3", "4"]);
}

#[test]
fn a_run_that_breaks_off_keeps_what_is_complete() {
    let root = tempfile::tempdir().unwrap();
    let fake =
        Fake { experiments: 3, fate: Some(|id| if id == 0 { Fate::Abort } else { Fate::Ok }), ..Fake::default() };
    let (exit, manifest) = run(&fake, root.path(), |_| {});
    assert_eq!((exit, manifest.unwrap().outcome), (Exit::Failed, Outcome::Aborted));
    assert_eq!(rows(root.path()), ["1", "2"]);
}

#[test]
fn strict_turns_warnings_into_exit_3() {
    for (warnings, late) in [(vec!["early".to_string()], vec![]), (vec![], vec!["late".to_string()])] {
        let root = tempfile::tempdir().unwrap();
        let fake = Fake { experiments: 1, warnings, late, ..Fake::default() };
        let (exit, manifest) = run(&fake, root.path(), |a| a.strict = true);
        assert_eq!((exit, manifest.unwrap().warnings.len()), (Exit::Condition, 1));
        let root = tempfile::tempdir().unwrap();
        assert_eq!(run(&fake, root.path(), |_| {}).0, Exit::Ok);
    }
}

#[test]
fn what_is_refused_leaves_no_folder() {
    let root = tempfile::tempdir().unwrap();
    let one = Fake { experiments: 1, ..Fake::default() };
    assert_eq!(
        run(&Fake { no_adapter: true, experiments: 1, ..Fake::default() }, root.path(), |_| {}),
        (Exit::BadInput, None)
    );
    assert_eq!(run(&Fake::default(), root.path(), |_| {}), (Exit::BadInput, None));
    assert!(!root.path().join("out").exists());
    assert_eq!(run(&one, root.path(), |a| a.memo = Some("off".into())).0, Exit::Ok);
    assert_eq!(run(&one, root.path(), |_| {}).0, Exit::BadInput, "the folder is in use now");
}

#[test]
fn ctrl_c_before_the_first_batch_leaves_no_folder() {
    let root = tempfile::tempdir().unwrap();
    let interrupt = Interrupt::default();
    interrupt.request();
    let exit =
        execute(&args(&root.path().join("out")), &Fake { experiments: 1, ..Fake::default() }, &interrupt).unwrap();
    assert_eq!(exit, Exit::Interrupted);
    assert!(!root.path().join("out").exists());
}
