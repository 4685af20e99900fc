//! Every system of the kernels against its CPU twin, byte for byte, in two orders of rows; and no row may touch what another row writes.

use crate::executed::{Kernels, races, with_view};
use crate::support;
use crate::support::{golden, gpu_graphs, random, small};
use hyperfold_columns::{OwnedTables, status};
use hyperfold_config::spec::SeriesKeys;
use hyperfold_engine::systems::SYSTEMS;
use hyperfold_host::kernel_check::difference::difference;
use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_interpreter::{KernelDispatch, Order};

/// Runs up to `steps` steps of `t` on both, comparing after every system. Returns the number of steps. Rows go backwards in every other step.
fn parity(kernels: &Kernels, name: &str, t: &mut OwnedTables, steps: u32) -> u32 {
    for step in 0..steps {
        support::engine::go_on(t);
        if t.exps[0].status != status::RUNNING {
            return step;
        }
        let order = if step % 2 == 0 { Order::Forward } else { Order::Backward };
        let options = KernelDispatch { order, finds_races: true, ..KernelDispatch::of([1; 3]) };
        let mut got = t.clone();
        for (k, system) in SYSTEMS.iter().enumerate() {
            let done = with_view(&mut got, |got| kernels.run_system(k, got, options));
            let rows = system.rows.count(&t.exps[0]);
            system.run(&mut t.view(), 0..rows);
            if let Some(first) = difference(&got, t) {
                panic!("{name}, step {step}, after {}: {first}", system.name);
            }
            assert_eq!(races(&done), [""; 0], "{name}, step {step}, in {}", system.name);
            assert_eq!(done.counts.beyond, 0, "{name}, step {step}, in {}: an index is behind its table", system.name);
        }
    }
    steps
}

#[test]
fn small_networks() {
    let kernels = Kernels::right();
    let (mut pauses, mut drops, mut marks) = (0, 0, 0);
    for (i, (name, case)) in small::all().into_iter().enumerate() {
        let options =
            BuildOptions { exp_id: i as u32, links: i % 2 == 0, rtt_cap: 4 * (i as u32 % 3), ..Default::default() };
        let mut t = support::engine::tables(&case, options).tables;
        parity(kernels, name, &mut t, 450);
        pauses += support::engine::pauses(&t);
        drops += t.ports.iter().map(|p| p.drops).sum::<u32>();
        marks += t.ports.iter().map(|p| p.marks).sum::<u64>();
    }
    assert!(pauses > 0 && drops > 0 && marks > 0, "{pauses} pauses, {drops} drops, {marks} marks");
}

#[test]
fn sampled_networks() {
    let kernels = Kernels::right();
    let series = Some(SeriesKeys { links: true, flows: true, interval_ps: 777_777, cap: 20 });
    let mut n_samples = 0;
    for (name, case) in small::all() {
        let options = BuildOptions { series, ..Default::default() };
        let mut t = support::engine::tables(&case, options).tables;
        parity(kernels, name, &mut t, 60);
        n_samples += t.series.samples.len();
    }
    assert!(n_samples > 100, "{n_samples} samples");
}

/// Compares one of two halves of the random networks: every other seed, from the first or the second one on.
fn half_of_random_networks(first: usize) {
    let kernels = Kernels::right();
    let seeds = (0..40).chain(random::CHANGES..random::CHANGES + 24).chain(random::UEC..random::UEC + 40);
    let seeds = seeds
        .chain(random::ADAPTIVE..random::ADAPTIVE + 40)
        .chain(random::CLASSES..random::CLASSES + 48)
        .chain(random::IMPAIRED..random::IMPAIRED + 60)
        .chain(random::MOVING..random::MOVING + 60)
        .chain(random::WATCHED..random::WATCHED + 80)
        .chain(random::AVERAGED..random::AVERAGED + 60)
        .chain(random::CUT_THROUGH..random::CUT_THROUGH + 80)
        .chain(random::CLASSES_BY_CHOICE..random::CLASSES_BY_CHOICE + 60)
        .chain(random::REPORTS..random::REPORTS + 40)
        .chain(random::EARLY_DROPS..random::EARLY_DROPS + 40);
    for seed in seeds.skip(first).step_by(2) {
        let mut t = support::engine::tables(&random::case(seed), BuildOptions::default()).tables;
        parity(kernels, &format!("random case {seed}"), &mut t, 150);
    }
}

#[test]
fn random_networks() {
    half_of_random_networks(0);
}

#[test]
#[ignore = "soak: the other halves of two tests; scripts/test.sh --soak and CI run it"]
fn soak_the_other_half_of_random_cases() {
    half_of_random_networks(1);
    half_of_task_graphs(1);
}

#[test]
fn flowlets() {
    let kernels = Kernels::right();
    for seed in random::ADAPTIVE + 1_000..random::ADAPTIVE + 1_040 {
        let mut case = random::case(seed);
        case.transport.flowlet_gap_ps = [1, 40_000, 300_000, 20_000_000][seed as usize % 4];
        let mut t = support::engine::tables(&case, BuildOptions::default()).tables;
        parity(kernels, &format!("random case {seed} with flowlets"), &mut t, 150);
    }
}

#[test]
fn task_graphs() {
    half_of_task_graphs(0);
}

/// Compares one of two halves of the random task graphs: every other seed, from the first or the second one on.
fn half_of_task_graphs(first: usize) {
    let kernels = Kernels::right();
    let seeds = (0..50)
        .chain(random::SWIFT..random::SWIFT + 10)
        .chain(random::SELECTIVE..random::SELECTIVE + 24)
        .chain(random::CHANGES..random::CHANGES + 24)
        .chain(random::UEC..random::UEC + 24)
        .chain(random::ADAPTIVE..random::ADAPTIVE + 24)
        .chain(random::CLASSES..random::CLASSES + 24)
        .chain(random::IMPAIRED..random::IMPAIRED + 24)
        .chain(random::MOVING..random::MOVING + 48);
    for seed in seeds.skip(first).step_by(2) {
        let g = gpu_graphs::case(seed);
        let options = BuildOptions { exp_id: seed as u32, rtt_cap: 4 * (seed as u32 % 3), ..Default::default() };
        parity(kernels, &g.name, &mut gpu_graphs::tables(&g, options).tables, 250);
    }
    for g in (0..24).chain(random::UEC..random::UEC + 12).map(gpu_graphs::cut_through) {
        parity(kernels, &g.name, &mut gpu_graphs::tables(&g, BuildOptions::default()).tables, 250);
    }
}

#[test]
fn golden_cases() {
    let kernels = Kernels::right();
    for name in golden::names() {
        let mut t = support::engine::tables(&golden::load(&name).case, BuildOptions::default()).tables;
        parity(kernels, &name, &mut t, 20);
    }
}
