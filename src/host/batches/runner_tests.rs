//! Tests that batches take no more memory than they may, with the outcomes of batches of any size.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::setup::prepared_before::prepare_to_keep;
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::cpu::engine::CpuEngine;

fn tasks() -> Vec<QueuedExperiment> {
    let text = "name = \"s\"\n[base.cluster]\ngpus = 16\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 20000\n[axes]\n\
                \"transport.cc\" = [\"hpcc\", \"dcqcn\", \"none\"]\n\"topology.link_gbps\" = [100, 200, 300, 400]\n";
    let sweep = sweep::parse(text, Path::new("s.toml"), &SetOverrides::default()).unwrap();
    sweep.experiments.iter().map(|e| QueuedExperiment { exp_id: e.exp_id, config: sweep.config(e).unwrap() }).collect()
}

/// Returns the experiments of each batch, how many tasks had been taken when it began, and the outcomes.
fn run_within(bytes: u64) -> (Vec<Vec<u64>>, Vec<usize>, BTreeMap<u64, String>) {
    let taken = Cell::new(0);
    let tasks = tasks().into_iter().inspect(|_| taken.set(taken.get() + 1));
    let (mut batches, mut ahead, mut ends) = (Vec::new(), Vec::new(), BTreeMap::new());
    let options = RunOptions { bytes, ..RunOptions::default() };
    run::<EngineError>(tasks, Box::new(CpuEngine), &options, || false, &mut |news| {
        match news {
            RunEvent::Started(ids) => {
                batches.push(ids);
                ahead.push(taken.get());
            }
            RunEvent::Ended(e) => drop(ends.insert(e.exp_id, format!("{:?} {}", e.result, e.packet_hops))),
            RunEvent::Progress(_) | RunEvent::Note(_) | RunEvent::Lost(_) => {}
        }
        Ok(())
    })
    .unwrap();
    (batches, ahead, ends)
}

#[test]
fn a_batch_takes_no_more_memory_than_it_may_and_memory_changes_no_outcome() {
    let (batches, _, all) = run_within(u64::MAX);
    assert_eq!((batches.len(), batches[0].len(), all.len()), (1, 12, 12));
    let each: BTreeMap<u64, u64> =
        tasks().iter().map(|t| (t.exp_id, prepare(&t.config, 0).unwrap().host_bytes())).collect();
    let largest = each.values().copied().max().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for (bytes, min_experiments) in [(1, 1), (largest, 1), (3 * largest, 3), (5 * largest, 5)] {
        let (batches, ahead, ends) = pool.install(|| run_within(bytes));
        let batch_bytes = |batch: &[u64]| batch.iter().map(|id| each[id]).sum::<u64>();
        assert!(batches.iter().all(|b| b.len() == 1 || batch_bytes(b) <= bytes), "{bytes} bytes: {batches:?}");
        assert!(batches[..batches.len() - 1].iter().all(|b| b.len() >= min_experiments), "{bytes} bytes: {batches:?}");
        let mut begun = 0;
        for (batch, taken) in batches.iter().zip(&ahead) {
            begun += batch.len();
            // The first few experiments of a batch show how large they are.
            assert!(*taken <= begun + 1, "{bytes} bytes: {taken} were prepared when {begun} had begun");
        }
        assert_eq!(ends, all, "{bytes} bytes");
    }
}

#[test]
fn the_estimate_is_more_than_the_tables() {
    let p = prepare(&tasks()[0].config, 0).unwrap();
    let tables = p.built.tables.bytes();
    // The world has a copy of most rows.
    assert!(p.host_bytes() > tables && p.host_bytes() < 10 * tables, "{} of {tables}", p.host_bytes());
}

/// Tests that memory that runs out at any check while an experiment is prepared fails only that experiment, and leaves nothing behind.
#[test]
fn memory_may_run_out_anywhere() {
    let text = "name = \"s\"\n[base.cluster]\ngpus = 16\n[base.workload]\nkind = \"model\"\nmodel = \"gpt3-1.7b\"\ntp = 2\npp = 2\nglobal_batch = 16\n";
    let sweep = sweep::parse(text, Path::new("s.toml"), &SetOverrides::default()).unwrap();
    let config = sweep.config(&sweep.experiments[0]).unwrap();
    let whole = prepare(&config, 0).unwrap().built.tables.bytes();
    let (mut checks, mut failed) = (0, 0);
    loop {
        budget::inject(Some(checks));
        let made = guarded(&config, u64::MAX, || prepare(&config, 0));
        budget::inject(None);
        match made {
            Err(PrepareError::Memory(_)) => failed += 1,
            Ok(p) => {
                assert_eq!(p.built.tables.bytes(), whole);
                break;
            }
            Err(other) => panic!("{other}"),
        }
        checks += 1 + checks / 8;
    }
    assert!(failed > 20, "{failed} of its checks could fail");
    assert_eq!(prepare(&config, 0).unwrap().built.tables.bytes(), whole, "what experiments share is as it was");
}

#[test]
fn what_was_prepared_before_the_run_is_not_prepared_again() {
    let (_, _, all) = run_within(u64::MAX);
    for once in [false, true] {
        let kept = Arc::new(KeptExperiments::default());
        for (id, as_if) in [(0, 0), (5, 7)] {
            // The eighth experiment waits in the place of the sixth: if the sixth ends as the eighth does, nobody has prepared it again.
            let config = &tasks()[as_if].config;
            kept.put(id, prepare_to_keep(config, id as u32, u64::MAX, false).unwrap());
        }
        assert!(kept.has(5) && kept.bytes() > 0);
        let options = RunOptions { once, kept: Arc::clone(&kept), batch: 3, ..RunOptions::default() };
        let mut ends = BTreeMap::new();
        run::<EngineError>(tasks().into_iter(), Box::new(CpuEngine), &options, || false, &mut |news| {
            if let RunEvent::Ended(e) = news {
                ends.insert(e.exp_id, format!("{:?} {}", e.result, e.packet_hops));
            }
            Ok(())
        })
        .unwrap();
        assert_eq!((ends.len(), kept.bytes()), (12, 0));
        let as_if = |id: u64| if id == 5 { 7 } else { id };
        assert!(ends.iter().all(|(&id, end)| *end == all[&as_if(id)]), "{ends:?}");
    }
}

#[test]
fn a_defect_in_one_experiment_is_its_failure_alone() {
    let engines: [Box<dyn Engine>; 2] = [Box::new(CpuEngine), Box::new(hyperfold_fold::FoldEngine::default())];
    for engine in engines {
        let mut all: Vec<(u64, Prepared, Limits)> = tasks()
            .iter()
            .take(3)
            .map(|t| (t.exp_id, prepare(&t.config, t.exp_id as u32).unwrap(), Limits::default()))
            .collect();
        // Its packets lead out of its table.
        all[1].1.built.tables.paths.fill(hyperfold_columns::PortIdx(u32::MAX));
        let mut batch = Batch::new(engine, 1 << 20, Box::new(|| false));
        batch.admit(all);
        let mut ends = BTreeMap::new();
        while !batch.is_over() {
            ends.extend(batch.run_slice().unwrap().into_iter().map(|ended| (ended.exp_id, ended.result)));
        }
        assert!(ends[&0].is_ok() && ends[&2].is_ok());
        let why = format!("{:?}", ends[&1].as_ref().unwrap_err());
        assert!(why.contains("a defect in hyperfold") && why.contains("please report it"), "{why}");
    }
}
