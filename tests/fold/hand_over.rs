//! An experiment that is handed over as it stands ends with the bytes of one that was never folded, at whatever instant that happens, and whoever steps it
//! then.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::graphs::{OPTIONS, run, same};
use crate::runs::Sweep;
use crate::support::engine::is_final;
use crate::support::{engine, gpu_graphs, random};
use hyperfold_columns::{OwnedTables, Tables, mode, status};
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_engine::{Engine, EngineError, FoldStats, SliceOutcome};
use hyperfold_fold::beside_device::Beside;
use hyperfold_fold::{FoldEngine, HandOver, Memo};
use hyperfold_host::{QueuedExperiment, RunEvent, RunOptions};

/// Shares of the packet-hops after which experiments are handed over, in percent.
const AFTER: [u64; 5] = [0, 15, 40, 70, 95];

#[test]
fn whoever_steps_it_afterwards_comes_to_the_same() {
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let (mut on_cores, mut beside, mut known) = (0, 0, 0);
    for seed in (0..200).chain(random::SWIFT..random::SWIFT + 40).chain(random::SELECTIVE..random::SELECTIVE + 40) {
        let g = gpu_graphs::case(seed);
        let start = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut plain = start.clone();
        if engine::run_cpu(&mut plain) == status::GAVE_UP {
            continue;
        }
        let all = engine::packet_hops(&plain);
        // A memo that knows all, so that partitions are looked up when they are handed over. Between distant checkpoints, the buffer guard checks what
        // happened when they are handed over.
        let memo = Arc::<Memo>::default();
        let fold = |hops| FoldEngine::remembering(Arc::clone(&memo)).with_checkpoints_every(hops);
        let mut recorded = start.clone();
        recorded.exps[0].modes |= mode::FOLD | mode::MEMO;
        run(&g.name, &mut fold(20), &mut recorded);
        for (k, percent) in AFTER.into_iter().enumerate() {
            let name = format!("{} handed over after {percent} %", g.name);
            let distance = if k % 2 == 0 { 20 } else { 100_000 };
            let mut fold = fold(distance).handing_over(HandOver::After(all * percent / 100));
            let mut got = start.clone();
            got.exps[0].modes |= mode::FOLD | mode::MEMO;
            // For the device, what is folded must be the host's: it may skip, but nothing is ever steady.
            let is_beside = (seed as usize + k).is_multiple_of(2);
            let stats = if is_beside {
                got.exps[0].modes |= mode::MUST_GAIN;
                run(&name, &mut Beside::new(Box::new(CpuEngine), fold, Arc::clone(&pool)), &mut got)
            } else {
                run(&name, &mut fold, &mut got)
            };
            same(&name, &got, &plain);
            assert_eq!(got.exps[0].modes & mode::TRACED, 0, "{name}");
            known += stats.hits;
            let count = if is_beside { &mut beside } else { &mut on_cores };
            *count += u32::from(stats.hops_plain > 0);
        }
    }
    println!("{on_cores} on cores, {beside} beside, {known} looked up before");
    assert!(on_cores > 250 && beside > 250 && known > 100, "{on_cores} on cores, {beside} beside, {known} looked up");
}

/// Experiments of a batch, some of which the cores take back from the device.
#[test]
fn a_batch_is_shared_out_and_comes_to_the_same() {
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let mut ended = 0;
    for first in (0..80).step_by(8) {
        let cases: Vec<_> = (first..first + 8).map(gpu_graphs::case).collect();
        let starts: Vec<OwnedTables> = cases.iter().map(|g| gpu_graphs::tables(g, OPTIONS).tables).collect();
        let mut batch = starts.clone();
        batch.iter_mut().for_each(|t| t.exps[0].modes |= mode::FOLD | mode::MEMO | mode::MUST_GAIN);
        let fold = FoldEngine::checkpointing_every(20).handing_over(HandOver::After(200));
        let mut engine = Beside::new(Box::new(CpuEngine), fold, Arc::clone(&pool)).sharing_with_cores(true);
        while !batch.iter().all(is_final) {
            let slice = OwnedTables::with_views(&mut batch, |batch| engine.advance(batch, 1 << 30, &|| false)).unwrap();
            assert!(slice.failures.is_empty(), "{:?}", slice.failures);
        }
        for ((g, got), mut plain) in cases.iter().zip(&batch).zip(starts) {
            if engine::run_cpu(&mut plain) != status::GAVE_UP {
                same(&g.name, got, &plain);
                ended += 1;
            }
        }
    }
    assert!(ended > 60, "{ended} ended");
}

/// A device that works until it is asked to stop, and gives up after a minute.
struct Busy;

impl Engine for Busy {
    fn advance(
        &mut self,
        batch: &mut [Tables],
        _: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError> {
        let began = Instant::now();
        while !stop() {
            assert!(began.elapsed() < Duration::from_secs(60), "nobody asks it to stop");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(SliceOutcome { seconds: vec![0.0; batch.len()], ..SliceOutcome::default() })
    }

    fn slice(&self) -> Duration {
        Duration::from_secs(60)
    }
}

#[test]
fn a_device_does_not_let_experiments_wait_for_the_end_of_its_slice() {
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let devices = gpu_graphs::tables(&gpu_graphs::case(0), OPTIONS).tables;
    let mut hosts = gpu_graphs::tables(&gpu_graphs::case(1), OPTIONS).tables;
    hosts.exps[0].modes |= mode::FOLD | mode::MEMO | mode::MUST_GAIN;
    let fold = FoldEngine::default().handing_over(HandOver::After(0));
    let mut engine = Beside::new(Box::new(Busy), fold, pool);
    let mut batch = [devices, hosts];
    OwnedTables::with_views(&mut batch, |batch| engine.advance(batch, 1 << 30, &|| false)).unwrap();
    assert_eq!(batch[1].exps[0].modes & mode::FOLD, 0, "it was handed over");
    assert!(!is_final(&batch[1]), "it waits");
}

/// The outcome of the first experiment of `contention/all-reduce-all-gather-crossing.toml`, under HPCC, at a tenth of its bytes.
fn crossing(fast_forward: &str, engine: FoldEngine) -> (String, FoldStats) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/contention/all-reduce-all-gather-crossing.toml");
    let overrides = [format!("fidelity.fast_forward={fast_forward}"), "workload.bytes_scale=0.1".into()];
    let sweep =
        sweep::parse(&std::fs::read_to_string(&path).unwrap(), &path, &SetOverrides(overrides.to_vec())).unwrap();
    let first = &sweep.experiments[0];
    let tasks = [QueuedExperiment { exp_id: first.exp_id, config: sweep.config(first).unwrap() }];
    let mut ended = None;
    let mut tell = |news| {
        if let RunEvent::Ended(end) = news {
            ended = Some(*end);
        }
        Ok::<(), EngineError>(())
    };
    hyperfold_host::run(tasks.into_iter(), Box::new(engine), &RunOptions::default(), || false, &mut tell).unwrap();
    let ended = ended.expect("it ends");
    (format!("{:?} {}", ended.result.unwrap(), ended.packet_hops), ended.folds.expect("the engine folds"))
}

/// An experiment whose first skip would come late skips nothing. Its results are exact, and nothing is simulated twice.
#[test]
fn a_first_skip_that_comes_late_is_left_out() {
    let (off, plain) = crossing("off", FoldEngine::default());
    assert_eq!(plain.hops_plain, plain.hops_simulated, "nothing is folded");
    let (steady, folds) = crossing("steady", FoldEngine::default());
    assert_eq!(steady, off);
    assert_eq!((folds.skips, folds.exactly, folds.hops_plain), (0, 1, 0));
    assert_eq!(folds.hops_simulated, plain.hops_simulated);
    // Little of it is known. So most is simulated without folding, if that is allowed.
    let (steady, folds) = crossing("steady", FoldEngine::default().handing_over(HandOver::FindsLittle));
    assert_eq!(steady, off);
    assert_eq!((folds.skips, folds.hops_simulated), (0, plain.hops_simulated));
    assert!(folds.hops_plain > plain.hops_simulated * 6 / 10, "{folds:?}");
}

/// A switch fills up, beyond what may be simulated port by port, between two checks of the buffer guard. The experiment is not handed over in the middle of
/// that (found by random sweeps: another result, or more bytes in a switch than it can hold).
#[test]
fn a_switch_that_has_filled_up_is_not_handed_over() {
    let text = "name = \"m\"\nseed = 2\nbase.cluster = { gpus = 24, gpus_per_server = 8 }\nbase.topology = { kind = \"clos\", link_gbps = 200, uplink_gbps = 200, link_delay_ns = 600 }\n\
        base.transport = { cc = \"dcqcn\", payload_bytes = 4000 }\nbase.fidelity.audit = 0.0\nbase.output.flows = true\n\
        base.workload = { kind = \"model\", zero = 0, microbatch = 1, global_batch = 24, iterations = 2, model = { name = \"small\", source = \"our choice\", \
        transformer = { layers = 8, hidden = 768, heads = 8, vocab = 50257, seq = 128 } } }\n";
    let sweep = Sweep::new(&[], text);
    // Without a memo, an experiment of which little is known is handed over.
    assert!(sweep.flows("steady", &["--memo", "off"]) == sweep.flows_by("off"), "flows differ");
    let [plain, simulated] =
        ["packet_hops_plain", "packet_hops_simulated"].map(|name| sweep.column("steady", "stats.csv", name)[0]);
    assert!(plain > simulated / 2.0, "{plain} of {simulated} were simulated without folding");
}
