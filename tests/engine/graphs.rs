//! Task graphs on the CPU: they end, and neither the order of rows nor the length of steps changes anything.

use crate::support::{engine, gpu_graphs, random};
use hyperfold_columns::{FlowRx, FlowTx, Gate, NONE, OwnedTables, PacketIdx, Task, TaskIdx, status};
use hyperfold_engine::systems::SYSTEMS;
use hyperfold_host::tables::build_tables::BuildOptions;

/// Everything is recorded, so that everything is compared.
const OPTIONS: BuildOptions = BuildOptions { links: true, rtt_cap: 8, ..BuildOptions::PACKETS };

#[test]
fn they_end() {
    let (mut done, mut paused, mut lost) = (0, 0, 0);
    for seed in 0..400 {
        let g = gpu_graphs::case(seed);
        let mut t = gpu_graphs::tables(&g, OPTIONS).tables;
        let status = engine::run_cpu(&mut t);
        engine::conserved(&t).unwrap_or_else(|e| panic!("{}: {e}", g.name));
        // With one retry and no PFC a queue pair may give up.
        assert!(matches!(status, status::DONE | status::GAVE_UP), "{}: status {status}", g.name);
        if status == status::DONE {
            gpu_graphs::complete(&g.name, &t);
            done += 1;
        }
        paused += u32::from(engine::pauses(&t) > 0);
        lost += u32::from(t.ports.iter().any(|p| p.drops > 0));
    }
    println!("400 task graphs, {done} to their end, {paused} with pauses, {lost} with losses");
    assert!(done > 380 && paused > 20 && lost > 10, "{done} done, {paused} paused, {lost} lost");
}

/// One step with the rows of every system in reverse order.
fn backwards(t: &mut OwnedTables) {
    let t = &mut *t.view();
    for system in SYSTEMS {
        let rows = system.rows.count(&t.exps[0]);
        system.run(t, (0..rows).rev());
    }
}

#[test]
fn the_order_of_rows_changes_nothing() {
    for seed in (1_000..1_100)
        .chain(random::SWIFT..random::SWIFT + 40)
        .chain(random::SELECTIVE..random::SELECTIVE + 60)
        .chain(random::CHANGES..random::CHANGES + 60)
    {
        let g = gpu_graphs::case(seed);
        let mut want = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut got = want.clone();
        engine::run_cpu(&mut want);
        loop {
            match got.exps[0].status {
                status::RUNNING => backwards(&mut got),
                _ if engine::is_final(&got) => break,
                _ => engine::go_on(&mut got),
            }
        }
        assert_eq!(got.tasks, want.tasks, "{}", g.name);
        assert!(got == want, "{}: tables differ", g.name);
    }
}

/// What a graph has come to, without lists and what says how far a step may go.
fn rows(t: &OwnedTables) -> (u32, Vec<Task>, Vec<Gate>, Vec<FlowTx>, Vec<FlowRx>) {
    (
        t.exps[0].status,
        t.tasks.iter().map(|r| Task { next: TaskIdx::NONE, ..*r }).collect(),
        t.gates.iter().map(|r| Gate { next: NONE, ..*r }).collect(),
        t.flow_tx.clone(),
        t.flow_rx.iter().map(|r| FlowRx { held: PacketIdx::NONE, ..*r }).collect(),
    )
}

#[test]
fn shorter_steps_change_nothing() {
    let mut compared = 0;
    for seed in 2_000..2_150 {
        let g = gpu_graphs::case(seed);
        let mut whole = gpu_graphs::tables(&g, OPTIONS).tables;
        if engine::run_cpu(&mut whole) == status::GAVE_UP {
            // It stops at the end of the step in which a queue pair gave up; what else happened by then depends on the step.
            continue;
        }
        for step_divisor in [2, 3] {
            let mut cut = gpu_graphs::tables(&g, BuildOptions { step_divisor, ..OPTIONS }).tables;
            engine::run_cpu(&mut cut);
            let (got, want) = (rows(&cut), rows(&whole));
            for (i, (a, b)) in got.1.iter().zip(&want.1).enumerate() {
                assert_eq!(a, b, "{}: step / {step_divisor}: task {i}", g.name);
            }
            assert!(got == want, "{}: step / {step_divisor}: rows differ", g.name);
        }
        compared += 1;
    }
    assert!(compared > 130, "only {compared} came to their end");
}
