//! The fused kernel: whole runs against those of the CPU engine, with every barrier met by all invocations and no races between them.

use crate::executed::{Kernels, WORKGROUP, races, with_view};
use crate::support::engine::{go_on, is_final, run_cpu};
use crate::support::{engine, gpu_graphs, random, small};
use hyperfold_columns::OwnedTables;
use hyperfold_config::spec::SeriesKeys;
use hyperfold_engine::gpu::KernelParts;
use hyperfold_host::kernel_check::cases;
use hyperfold_host::kernel_check::difference::difference;
use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_interpreter::{KernelDispatch, Order};

/// Steps of a dispatch: few, so that runs are resumed often.
const STEPS: u32 = 100;

/// Runs `t` to its end by the fused kernel and compares it with `want`.
fn parity(kernels: &Kernels, name: &str, t: &mut OwnedTables, want: &OwnedTables, order: Order) {
    while !is_final(t) {
        go_on(t);
        let options = KernelDispatch { order, finds_races: true, ..KernelDispatch::of([1; 3]) };
        let done = with_view(t, |t| kernels.run_fused(STEPS, t, options));
        assert_eq!(races(&done), [""; 0], "{name}");
        assert_eq!(done.counts.beyond, 0, "{name}: an index is behind its table");
    }
    if let Some(first) = difference(t, want) {
        panic!("{name}: {first}");
    }
    assert_eq!(t.series, want.series, "{name}: samples");
}

fn all_orders(name: &str, before: &OwnedTables) {
    let kernels = Kernels::right();
    let mut want = before.clone();
    run_cpu(&mut want);
    for order in [Order::Forward, Order::Backward] {
        parity(kernels, name, &mut before.clone(), &want, order);
    }
}

#[test]
fn small_networks_end_as_on_the_cpu() {
    small::tables().iter().for_each(|(name, before)| all_orders(name, before));
}

#[test]
fn samples_are_those_of_the_cpu() {
    let series = Some(SeriesKeys { links: true, flows: true, interval_ps: 777_777, cap: 20 });
    let options = BuildOptions { series, ..BuildOptions::default() };
    let changing = (random::CHANGES..random::CHANGES + 6).map(|seed| ("changing", random::case(seed)));
    let watched = (random::WATCHED..random::WATCHED + 12).map(|seed| ("watched", random::case(seed)));
    for (name, case) in small::all().into_iter().chain(changing).chain(watched) {
        all_orders(name, &engine::tables(&case, options).tables);
    }
    let g = gpu_graphs::case(3);
    all_orders(&g.name, &gpu_graphs::tables(&g, options).tables);
}

#[test]
fn task_graphs_end_as_on_the_cpu() {
    for seed in (0..25)
        .chain(random::SWIFT..random::SWIFT + 5)
        .chain(random::SELECTIVE..random::SELECTIVE + 12)
        .chain(random::CHANGES..random::CHANGES + 12)
        .chain(random::UEC..random::UEC + 12)
        .chain(random::ADAPTIVE..random::ADAPTIVE + 12)
        .chain(random::CLASSES..random::CLASSES + 12)
        .chain(random::IMPAIRED..random::IMPAIRED + 12)
    {
        let g = gpu_graphs::case(seed);
        all_orders(&g.name, &gpu_graphs::tables(&g, BuildOptions::default()).tables);
    }
    for g in (0..12).chain(random::UEC..random::UEC + 6).map(gpu_graphs::cut_through) {
        all_orders(&g.name, &gpu_graphs::tables(&g, BuildOptions::default()).tables);
    }
}

/// Kernels that have no more parts than an experiment needs leave the bytes that kernels with all parts do.
#[test]
fn kernels_with_the_parts_that_experiments_need_end_as_on_the_cpu() {
    let mut covered = KernelParts::NONE;
    for case in cases::all().into_iter().chain(cases::rare()) {
        covered = covered.and(KernelParts::needed_by(case.tables.exps.iter()));
        let mut want = case.tables.clone();
        run_cpu(&mut want);
        parity(Kernels::fitting(&case.tables), &case.name, &mut case.tables.clone(), &want, Order::Forward);
    }
    for (name, part) in KernelParts::singles() {
        assert!(covered.suffice_for(part), "no case needs {name}");
    }
}

/// The test before would find a part that is missing. Of controls alone: without other parts a kernel may never end.
#[test]
fn without_the_code_of_its_control_an_experiment_ends_otherwise() {
    for (name, part) in KernelParts::singles() {
        let is_of = |case: &cases::KernelCase| case.name == format!("{name} with marks");
        let Some(case) = cases::all().into_iter().find(is_of).filter(|_| name != "none") else { continue };
        let mut want = case.tables.clone();
        run_cpu(&mut want);
        let less = Kernels::with(KernelParts::needed_by(case.tables.exps.iter()).without(part), WORKGROUP);
        let mut got = case.tables.clone();
        while !is_final(&got) {
            go_on(&mut got);
            with_view(&mut got, |t| less.run_fused(STEPS, t, KernelDispatch::of([1; 3])));
        }
        assert!(difference(&got, &want).is_some(), "{}: ends the same without {name}", case.name);
    }
}

/// What a device is checked with before it is believed.
#[test]
fn cases_of_the_device_check_end_as_on_the_cpu() {
    let all = cases::all().into_iter().chain(cases::rare());
    all.for_each(|case| all_orders(&case.name, &case.tables));
}
