//! Parity of CPU and GPU after every system: every bit of every table.

use crate::support;
use crate::support::{golden, gpu, gpu_graphs, random, small};
use hyperfold_columns::{NEVER, OwnedTables, qp, status, task};
use hyperfold_engine::gpu::{EntryPoint, GpuEngine, Mode};
use hyperfold_engine::grow;
use hyperfold_engine::systems::SYSTEMS;
use hyperfold_host::kernel_check::cases::starve;
use hyperfold_host::kernel_check::difference::difference;
use hyperfold_host::tables::build_tables::BuildOptions;

/// Experiments by name, each with the tables that the CPU engine works on.
type Named = Vec<(String, OwnedTables)>;

fn running(t: &OwnedTables) -> bool {
    t.exps[0].status == status::RUNNING
}

/// Runs `steps` steps of all experiments side by side on both, comparing after every system.
fn parity(engine: &mut GpuEngine, experiments: &mut Named, steps: u32) {
    let mut resident = None;
    for step in 0..steps {
        for (_, t) in experiments.iter_mut().filter(|e| e.1.exps[0].status == status::NEEDS_PACKETS) {
            grow::grow(&mut t.view(), u64::from(u32::MAX)).unwrap_or_else(|e| panic!("{e}"));
            resident = None;
        }
        let mut got: Vec<OwnedTables> = experiments.iter().map(|e| e.1.clone()).collect();
        let resident = &*resident.get_or_insert_with(|| {
            OwnedTables::with_views(&mut got, |all| engine.upload(&all.iter().collect::<Vec<_>>()))
                .unwrap_or_else(|e| panic!("{e}"))
        });
        if !experiments.iter().any(|e| running(&e.1)) {
            return;
        }
        let took_part: Vec<bool> = experiments.iter().map(|e| running(&e.1)).collect();
        for (k, system) in SYSTEMS.iter().enumerate() {
            OwnedTables::with_views(&mut got, |all| {
                let mut all: Vec<_> = all.iter_mut().collect();
                engine.run_system(resident, EntryPoint::System(k), Some(&mut all))
            })
            .unwrap_or_else(|e| panic!("{e}"));
            for (row, (experiment, t)) in experiments.iter_mut().enumerate().filter(|(row, _)| took_part[*row]) {
                let rows = system.rows.count(&t.exps[0]);
                system.run(&mut t.view(), 0..rows);
                if let Some(first) = difference(&got[row], t) {
                    panic!("{experiment}, step {step}, after {}: {first}", system.name);
                }
            }
        }
    }
}

#[test]
fn small_networks() {
    let all = small::all().into_iter().enumerate().map(|(i, (name, case))| {
        let options =
            BuildOptions { exp_id: i as u32, links: i % 2 == 0, rtt_cap: 4 * (i as u32 % 3), ..Default::default() };
        (name.to_string(), support::engine::tables(&case, options).tables)
    });
    let mut experiments: Named = gpu::those_that_run(all.collect(), 5);
    parity(&mut gpu::shared(), &mut experiments, 450);
    let sum = |count: fn(&OwnedTables) -> u64| experiments.iter().map(|e| count(&e.1)).sum::<u64>();
    // What the cases are for has happened.
    assert!(sum(support::engine::pauses) > 0, "no pause");
    assert!(sum(|t| t.ports.iter().map(|p| u64::from(p.drops)).sum()) > 0, "no drop");
    assert!(sum(|t| t.ports.iter().map(|p| p.marks).sum()) > 0, "no mark");
    let finished = sum(|t| t.flow_tx.iter().filter(|f| f.flags & qp::FINISHED != 0).count() as u64);
    assert!(finished > 10, "only {finished} flows finished");
}

#[test]
fn random_networks() {
    let tables = |seed| support::engine::tables(&random::case(seed), BuildOptions::default()).tables;
    let all = (0..40).map(|seed| (format!("random case {seed}"), tables(seed)));
    let mut experiments: Named = gpu::those_that_run(all.collect(), 10);
    parity(&mut gpu::shared(), &mut experiments, 150);
}

#[test]
fn task_graphs() {
    // Every shape with every congestion control.
    let all = (0..25).map(|seed| {
        let g = gpu_graphs::case(seed);
        let options = BuildOptions { exp_id: seed as u32, rtt_cap: 4 * (seed as u32 % 3), ..Default::default() };
        let t = gpu_graphs::tables(&g, options).tables;
        (g.name, t)
    });
    let mut experiments: Named = gpu::those_that_run(all.collect(), 10);
    parity(&mut gpu::shared(), &mut experiments, 250);
    let sum = |count: fn(&OwnedTables) -> usize| experiments.iter().map(|e| count(&e.1)).sum::<usize>();
    let messages = sum(|t| t.tasks.iter().filter(|r| r.flags & task::MESSAGE != 0 && r.done != NEVER).count());
    let gates = sum(|t| t.gates.iter().filter(|g| g.waits == 0).count());
    assert!(messages > 200 && gates > 40, "{messages} messages, {gates} gates");
}

#[test]
fn golden_cases() {
    let wanted = [
        "c2s_incast4_1M_dcqcnstep",
        "c2s_incast4_1M_hpcc",
        "c2s_incast4_1M_dctcp",
        "c2s_incast4_1M_timely",
        "c5_pfc_victim_dcqcnstep",
    ];
    let names = golden::names();
    let mut experiments: Named = Vec::new();
    for name in names.iter().filter(|n| wanted.contains(&n.as_str())) {
        experiments
            .push((name.clone(), support::engine::tables(&golden::load(name).case, BuildOptions::default()).tables));
    }
    if experiments.is_empty() {
        println!("skipped: the golden cases are not here");
        return;
    }
    assert_eq!(experiments.len(), wanted.len(), "{names:?}");
    let mut experiments = gpu::those_that_run(experiments, 2);
    parity(&mut gpu::shared(), &mut experiments, 100);
}

#[test]
fn runs_by_system_end_as_on_the_cpu() {
    let short = ["dcqcn", "dcqcn_windows", "pauses"];
    let (names, mut before): (Vec<_>, Vec<_>) =
        small::tables().into_iter().filter(|(name, _)| short.contains(name)).unzip();
    starve(&mut before[1]);
    let want = small::on_cpu(&before);
    let mut got = before;
    let report = gpu::run(&mut gpu::shared(), &mut got, Mode::PerSystem, 1 << 20, &mut |_| true)
        .unwrap_or_else(|e| panic!("{e}"));
    small::compare(&names, &got, &want);
    assert!(report.failures.is_empty() && report.growths > 0, "{report:?}");
}

#[test]
fn task_graphs_by_system_end_as_on_the_cpu() {
    let all = [0, 1, 6, 10, 11, 12, 15, 18, 21, 24].map(gpu_graphs::case);
    let all = all.into_iter().map(|g| (g.name.clone(), gpu_graphs::tables(&g, BuildOptions::default()).tables));
    let (names, before): (Vec<String>, Vec<OwnedTables>) = gpu::those_that_run(all.collect(), 4).into_iter().unzip();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let want = small::on_cpu(&before);
    let mut got = before;
    let report = gpu::run(&mut gpu::shared(), &mut got, Mode::PerSystem, 1 << 20, &mut |_| true)
        .unwrap_or_else(|e| panic!("{e}"));
    small::compare(&names, &got, &want);
    assert!(report.failures.is_empty(), "{report:?}");
}
