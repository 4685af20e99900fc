//! The check of a device's kernels before a run: right kernels pass, wrong ones are named, and nothing of a wrong device is kept.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::support::gpu;
use hyperfold_columns::Tables;
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_engine::gpu::adapter::list_adapters;
use hyperfold_engine::gpu::{GpuEngine, Mode};
use hyperfold_engine::{Engine, EngineError, SliceOutcome};
use hyperfold_host::kernel_check::known::{KnownCase, digest};
use hyperfold_host::kernel_check::{CheckedEngine, cases, packets, rates, steps};
use hyperfold_host::{QueuedExperiment, RunEvent, RunOptions, Worker, run_on_devices};

fn short() -> Vec<KnownCase> {
    cases::short().into_iter().filter(|case| gpu::runs(&case.tables)).map(KnownCase::simulated).collect()
}

/// An engine whose system `advance` counts steps twice, as if a driver had compiled it so. It dispatches system by system: of a changed kernel, software
/// Vulkan compiles a small system in a moment, and the fused kernel in minutes.
fn with_a_fault() -> GpuEngine {
    let (right, wrong) = ("exps[exp_row].steps += 1lu;", "exps[exp_row].steps += 2lu;");
    let mut engine = gpu::engine();
    let change = move |text: String| {
        assert!(text.contains(right), "{right}");
        text.replace(right, wrong)
    };
    engine.change_kernels(change);
    engine.dispatch_as(Some(Mode::PerSystem));
    engine
}

fn checked(engine: GpuEngine) -> CheckedEngine {
    let found = list_adapters();
    CheckedEngine::new(engine, &found.first().expect("an adapter is open").report)
}

#[test]
fn right_kernels_have_the_bytes_of_the_cpu() {
    let known = short();
    let ends = packets::run(&mut gpu::shared(), Mode::Fused, &known).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ends.wrong, None);
    let digests: Vec<String> = ends.tables.iter().map(digest).collect();
    assert_eq!(digests, known.iter().map(|case| digest(&case.want)).collect::<Vec<_>>());
    assert!(digests.iter().all(|text| text.len() == 16) && digests[0] != digests[1], "{digests:?}");
}

/// All cases that the kernels run, as `hyperfold doctor --engine` runs them.
#[test]
fn right_kernels_pass_with_every_case() {
    let known: Vec<KnownCase> =
        cases::all().into_iter().filter(|case| gpu::runs(&case.tables)).map(KnownCase::simulated).collect();
    assert!(known.len() >= 15, "{} cases", known.len());
    let ends = packets::run(&mut gpu::shared(), Mode::Fused, &known).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ends.wrong, None);
}

#[test]
fn a_wrong_kernel_is_caught_and_nothing_of_its_device_is_kept() {
    let known = short();
    let mut engine = with_a_fault();
    let wrong = packets::run(&mut engine, Mode::PerSystem, &known[..2]).unwrap_or_else(|e| panic!("{e}")).wrong;
    let wrong = wrong.expect("the kernel is wrong");
    assert_eq!(wrong.case, known[0].name, "{wrong}");
    assert!(wrong.what.starts_with("table exps, row 0, column ") && wrong.what.contains(", must be "), "{wrong}");
    // Step by step the fault is found before it has spread, and the system is named.
    let step = steps::first_wrong_step(&mut engine, &known[0]).unwrap_or_else(|e| panic!("{e}"));
    let step = step.expect("a step is wrong");
    assert_eq!((step.case.as_str(), step.system), (known[0].name.as_str(), "advance"), "{step}");
    assert!(step.what.contains(", column steps") && step.step < known[0].want.exps[0].steps, "{step}");

    // A run on this device ends on the CPU engine.
    let (ends, lost, run) = on_device(Box::new(checked(engine)), &mut |why| {
        assert!(matches!(why, EngineError::Differs(_)), "{why}");
        Some(Worker { name: "CPU engine".into(), engine: Box::new(CpuEngine), on_pool: true })
    });
    run.unwrap();
    let [first, second] = &lost[..] else { panic!("{lost:?}") };
    for part in ["computes other results than the CPU engine", "driver ", "column ", "--engine cpu", "doctor --engine"]
    {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(second.contains("2 experiments go to the CPU engine"), "{second}");
    let (right, ..) = on_device(Box::new(CpuEngine), &mut |_| None);
    assert_eq!(ends, right);
}

fn tasks() -> Vec<QueuedExperiment> {
    let text = "name = \"s\"\n[base.cluster]\ngpus = 16\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 20000\n\
                [axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\"]\n";
    let sweep = sweep::parse(text, Path::new("s.toml"), &SetOverrides::default()).unwrap();
    sweep.experiments.iter().map(|e| QueuedExperiment { exp_id: e.exp_id, config: sweep.config(e).unwrap() }).collect()
}

/// Runs the tasks on a device. Returns how each ended, and the messages on lost devices.
fn on_device(
    engine: Box<dyn Engine>,
    another: &mut dyn FnMut(&EngineError) -> Option<Worker>,
) -> (BTreeMap<u64, String>, Vec<String>, Result<(), EngineError>) {
    let mut workers = vec![Worker { name: "the device".into(), engine, on_pool: false }];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let (mut ends, mut lost) = (BTreeMap::new(), Vec::new());
    let mut tell = |news: RunEvent| -> Result<(), EngineError> {
        match news {
            RunEvent::Ended(e) => assert!(ends.insert(e.exp_id, format!("{:?}", e.result)).is_none()),
            RunEvent::Lost(text) => lost.push(text),
            RunEvent::Started(_) | RunEvent::Progress(_) | RunEvent::Note(_) => {}
        }
        Ok(())
    };
    let options = RunOptions::default();
    let run = run_on_devices(tasks().into_iter(), &mut workers, another, &pool, &options, || false, &mut tell);
    (ends, lost, run)
}

/// A device that is wrong from its first batch on.
struct Differing;

impl Engine for Differing {
    fn advance(
        &mut self,
        _: &mut [Tables],
        _: u64,
        _: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError> {
        Err(EngineError::Differs("must be 2".into()))
    }

    fn slice(&self) -> Duration {
        Duration::from_millis(1)
    }
}

#[test]
fn a_run_on_a_wrong_device_alone_breaks_off() {
    let (ends, lost, run) = on_device(Box::new(Differing), &mut |_| None);
    let error = run.unwrap_err();
    assert!(matches!(&error, EngineError::Differs(text) if text == "must be 2"), "{error}");
    assert!(ends.is_empty() && lost.len() == 1, "{ends:?} {lost:?}");
}

#[test]
fn a_wrong_kernel_of_rates_is_caught() {
    let mut engine = gpu::engine();
    let solver = engine.rates().expect("a device solves rates");
    assert_eq!(rates::first_difference(solver).unwrap_or_else(|e| panic!("{e}")), None);
    let (right, wrong) = ("(product.lo >> SHARE_BITS)", "(product.lo >> (SHARE_BITS + 1u))");
    let change = move |text: String| {
        assert!(text.contains(right), "{right}");
        text.replace(right, wrong)
    };
    engine.change_rates_kernel(change).unwrap_or_else(|e| panic!("{e}"));
    let mut engine = checked(engine);
    let solver = engine.rates().expect("a device solves rates");
    let error = solver.load(&[]).map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, EngineError::Differs(text) if text.contains("the kernel of fair rates, network ")),
        "{error}"
    );
}
