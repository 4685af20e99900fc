//! Whole runs on the GPU against whole runs on the CPU: final tables bit by bit, whatever shares a batch, however it is dispatched.

use crate::support;
use crate::support::{golden, gpu, gpu_graphs, random, small};
use hyperfold_columns::{OwnedTables, status};
use hyperfold_engine::gpu::{ExperimentError, GpuEngine, Mode, RunError};
use hyperfold_host::kernel_check::cases::starve;
use hyperfold_host::tables::build_tables::BuildOptions;

const PACKET_LIMIT: u64 = 1 << 20;

#[test]
fn fused_runs_end_as_on_the_cpu_in_any_company() {
    let (names, mut before): (Vec<_>, Vec<_>) = gpu::those_that_run(small::tables(), 5).into_iter().unzip();
    before.iter_mut().step_by(3).for_each(starve);
    let want = small::on_cpu(&before);
    assert!(want.iter().all(|t| t.exps[0].status == status::DONE));

    let mut engine = gpu::shared();
    let mut got = before.clone();
    let mut calls = 0;
    let mut last = 0;
    let report = gpu::run(&mut engine, &mut got, Mode::Fused, PACKET_LIMIT, &mut |p| {
        calls += 1;
        assert!(p.finished >= last && p.finished <= p.experiments);
        last = p.finished;
        true
    })
    .unwrap_or_else(|e| panic!("{e}"));
    small::compare(&names, &got, &want);
    assert!(report.failures.is_empty() && !report.stopped, "{report:?}");
    assert!(report.growths > 0, "starved pools must have grown");
    assert_eq!(calls, report.dispatches);
    assert_eq!(last, names.len());

    // The other way round, in small batches, the tables are the same.
    let mut reversed: Vec<OwnedTables> = before.iter().rev().cloned().collect();
    // Just enough for the largest of them at its end.
    engine.limit_batches(u64::MAX, want.iter().map(OwnedTables::bytes).max().unwrap());
    let report = gpu::run(&mut engine, &mut reversed, Mode::Fused, PACKET_LIMIT, &mut |_| true);
    engine.limit_batches(u64::MAX, u64::MAX);
    let report = report.unwrap_or_else(|e| panic!("{e}"));
    assert!(report.failures.is_empty() && report.batches > 1, "{report:?}");
    reversed.reverse();
    small::compare(&names, &reversed, &want);
}

#[test]
fn one_that_needs_too_much_fails_alone() {
    let mut all = gpu::those_that_run(small::tables(), 3);
    let needs = |t: &OwnedTables| small::on_cpu(std::slice::from_ref(t))[0].packets.len() as u64;
    // The first needs most, the others less than the limit.
    all.sort_by_key(|(_, t)| std::cmp::Reverse(needs(t)));
    let limit = needs(&all[0].1) - 1;
    let most = all[0].0;
    all.retain(|(name, t)| *name == most || needs(t) <= limit);
    let (names, before): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    assert!(names.len() >= 3, "{names:?}");
    let want = small::on_cpu(&before);
    let mut got = before;
    let report =
        gpu::run(&mut gpu::shared(), &mut got, Mode::Fused, limit, &mut |_| true).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        matches!(report.failures[..], [(0, ExperimentError::TooManyPackets(e))] if e.limit == limit && e.wanted > limit),
        "{report:?}"
    );
    assert_eq!(got[0].exps[0].status, status::NEEDS_PACKETS);
    small::compare(&names[1..], &got[1..], &want[1..]);
}

#[test]
fn one_that_is_too_large_for_the_device_fails_alone() {
    let mut all = gpu::those_that_run(small::tables(), 2);
    let bytes = |t: &OwnedTables| small::on_cpu(std::slice::from_ref(t))[0].bytes();
    // Room for what the second one ends with; the first grows beyond.
    all.sort_by_key(|(_, t)| std::cmp::Reverse(bytes(t)));
    all.drain(1..all.len() - 1);
    let (names, before): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let want = small::on_cpu(&before);
    let room = want[1].bytes();
    assert!(want[0].bytes() > room);
    let mut got = before;
    let mut engine = gpu::shared();
    engine.limit_batches(u64::MAX, room);
    let report = gpu::run(&mut engine, &mut got, Mode::Fused, PACKET_LIMIT, &mut |_| true);
    engine.limit_batches(u64::MAX, u64::MAX);
    let report = report.unwrap_or_else(|e| panic!("{e}"));
    assert!(
        matches!(report.failures[..], [(0, ExperimentError::TooLarge { limit, .. })] if limit == room),
        "{report:?}"
    );
    small::compare(&names[1..], &got[1..], &want[1..]);
}

#[test]
fn a_lost_device_is_an_error_and_no_panic() {
    let (device, queue, limits) = gpu::open();
    let mut engine = GpuEngine::new(device.clone(), queue, &limits).unwrap_or_else(|e| panic!("{e}"));
    device.destroy();
    let (_, mut tables): (Vec<_>, Vec<_>) = small::tables().into_iter().take(1).unzip();
    let before = tables.clone();
    let error = gpu::run(&mut engine, &mut tables, Mode::Fused, PACKET_LIMIT, &mut |_| true).unwrap_err();
    assert!(matches!(error, RunError::Lost(_) | RunError::Reported(_)), "{error:?}");
    assert_eq!(tables, before);
}

#[test]
fn a_device_with_few_bindings_is_refused() {
    let (device, queue, limits) = gpu::open();
    let few = wgpu::Limits { max_storage_buffers_per_shader_stage: 8, ..limits };
    let error = GpuEngine::new(device, queue, &few).unwrap_err();
    assert_eq!(error, RunError::TooFewBindings { found: 8, needed: 25 });
}

#[test]
fn a_run_stops_when_told_and_goes_on_where_it_was() {
    let (names, before): (Vec<_>, Vec<_>) = gpu::those_that_run(small::tables(), 2).into_iter().take(2).unzip();
    let want = small::on_cpu(&before);
    let mut got = before;
    let mut engine = gpu::shared();
    let mut stops = 0;
    while got.iter().any(|t| matches!(t.exps[0].status, status::RUNNING | status::NEEDS_PACKETS)) {
        let report = gpu::run(&mut engine, &mut got, Mode::Fused, PACKET_LIMIT, &mut |_| false)
            .unwrap_or_else(|e| panic!("{e}"));
        stops += u32::from(report.stopped);
        assert!(report.dispatches <= 1 && stops < 10_000, "{report:?}");
    }
    small::compare(&names, &got, &want);
    assert!(stops > 0);
}

/// Tables of an experiment stay on the device between slices: what the host has of them is not read, and a run of others in between takes nothing away.
#[test]
fn experiments_stay_on_the_device_from_slice_to_slice() {
    let (names, before): (Vec<_>, Vec<_>) = gpu::those_that_run(small::tables(), 4).into_iter().take(4).unzip();
    let want = small::on_cpu(&before);
    let others = before[..1].to_vec();
    let mut got = before;
    let mut engine = gpu::shared();
    engine.bring_all_home(true);
    let mut slices = 0;
    while !got.iter().all(support::engine::is_final) {
        // A slice that is to stop at once is one dispatch.
        support::engine::advance(&mut *engine, &mut got, PACKET_LIMIT, &|| true).unwrap_or_else(|e| panic!("{e}"));
        slices += 1;
        assert!(slices < 10_000, "no end");
        for t in got.iter_mut().filter(|t| t.exps[0].status == status::RUNNING) {
            t.packets.fill(bytemuck::Zeroable::zeroed());
            t.clocks.fill(0);
        }
        if slices == 3 {
            let mut others = others.clone();
            gpu::run(&mut engine, &mut others, Mode::Fused, PACKET_LIMIT, &mut |_| true)
                .unwrap_or_else(|e| panic!("{e}"));
            small::compare(&names[..1], &others, &want[..1]);
        }
    }
    engine.bring_all_home(false);
    assert!(slices > 4, "{slices} slices");
    small::compare(&names, &got, &want);
}

#[test]
fn random_networks_end_as_on_the_cpu() {
    let seeds = || (100..160).chain(random::CHANGES..random::CHANGES + 20);
    let tables = |seed| support::engine::tables(&random::case(seed), BuildOptions::default()).tables;
    let all = seeds().map(|seed| (format!("random case {seed}"), tables(seed)));
    let (names, before): (Vec<String>, Vec<OwnedTables>) = gpu::those_that_run(all.collect(), 15).into_iter().unzip();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let want = small::on_cpu(&before);
    let mut got = before;
    // By way of the interface that the batch runner uses, slice after slice.
    let mut engine = gpu::shared();
    engine.bring_all_home(true);
    for _ in 0..1000 {
        let slice =
            support::engine::advance(&mut *engine, &mut got, PACKET_LIMIT, &|| false).unwrap_or_else(|e| panic!("{e}"));
        assert!(slice.failures.is_empty() && slice.seconds.len() == got.len());
        if got.iter().all(support::engine::is_final) {
            break;
        }
    }
    engine.bring_all_home(false);
    small::compare(&names, &got, &want);
}

#[test]
fn task_graphs_end_as_on_the_cpu() {
    let options = BuildOptions { rtt_cap: 4, ..Default::default() };
    let all = (100..125).map(gpu_graphs::case).map(|g| (g.name.clone(), gpu_graphs::tables(&g, options).tables));
    let (names, mut before): (Vec<String>, Vec<OwnedTables>) =
        gpu::those_that_run(all.collect(), 10).into_iter().unzip();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // With pools that must grow on the way.
    before.iter_mut().step_by(3).for_each(starve);
    let want = small::on_cpu(&before);
    let mut got = before;
    let report = gpu::run(&mut gpu::shared(), &mut got, Mode::Fused, PACKET_LIMIT, &mut |_| true)
        .unwrap_or_else(|e| panic!("{e}"));
    small::compare(&names, &got, &want);
    assert!(report.failures.is_empty() && report.growths > 0, "{report:?}");
    let lost = want.iter().filter(|t| t.ports.iter().any(|p| p.drops > 0)).count();
    let done = want.iter().filter(|t| t.exps[0].status == status::DONE).count();
    println!("{done} of {} to their end, {lost} with losses; {report:?}", want.len());
    assert!(done >= 8 && lost > 0, "{done} done, {lost} with losses");
}

#[test]
fn golden_cases_end_as_on_the_cpu() {
    let wanted = ["c2s_incast4_1M_dcqcnstep", "c2s_incast4_1M_hpcc", "c2s_incast4_1M_dctcp", "c2s_incast4_1M_timely"];
    if golden::root().is_none() {
        println!("skipped: the golden cases are not here");
        return;
    }
    let tables = |name: &str| support::engine::tables(&golden::load(name).case, BuildOptions::default()).tables;
    let all = wanted.map(|name| (name, tables(name)));
    let (wanted, before): (Vec<_>, Vec<_>) = gpu::those_that_run(all.into(), 1).into_iter().unzip();
    let want = small::on_cpu(&before);
    let mut got = before;
    let report = gpu::run(&mut gpu::shared(), &mut got, Mode::Fused, PACKET_LIMIT, &mut |_| true)
        .unwrap_or_else(|e| panic!("{e}"));
    small::compare(&wanted, &got, &want);
    println!("{report:?}");
}
