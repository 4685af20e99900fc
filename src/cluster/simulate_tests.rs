//! Tests of clusters of a few servers with random jobs: what must hold whatever happens.

use proptest::prelude::*;

use super::*;
use crate::failing_parts::PartKind;
use crate::placement::PLACEMENTS;
use crate::queue_order::SCHEDULERS;
use crate::reports::outcome::{ClusterJobOutcome, ClusterMapRow};
use crate::state::JobPhase;
use hyperfold_config::spec::{
    CheckpointKeys, CheckpointPolicy, DrainKeys, FailureKeys, GrowBack, KeyId, KeyKind, SchedulerKeys, WritesShare, key,
};
use hyperfold_host::cost::Bill;

const MINUTE: u64 = 60_000;

/// A cluster of servers with 4 GPUs, two servers per rack, and rack uplinks with half of the rate of the servers.
fn machine(servers: u32) -> ClusterMachine {
    ClusterMachine {
        per_server: 4,
        links_per_server: 4,
        rack: (0..servers).map(|s| s / 2).collect(),
        racks: servers.div_ceil(2),
        oversubscription_ppm: 2_000_000,
        server_bps: 400_000_000,
        rack_out_bps: vec![400_000_000; servers.div_ceil(2) as usize],
        bill: Bill::default(),
    }
}

fn run_of(policy: &str, placement: &str) -> ClusterRun {
    ClusterRun {
        classes: Vec::new(),
        jobs: JobSource::Trace { path: "unused".into() },
        comm_share_ppm: 200_000,
        min_share_ppm: 1_000_000,
        grow: GrowBack::Never,
        end_ms: None,
        scheduler: SchedulerKeys {
            policy: policy.into(),
            own_policy: None,
            placement: placement.into(),
            own_placement: None,
            slowdown: vec![(1, 1_000_000), (4, 1_300_000)],
            quotas: Vec::new(),
            depth: 256,
            preempt: policy == "priority",
            low_delay_ms: 0,
            defragment: false,
            move_ms: 1_000,
        },
        iterations: None,
        checkpoint: CheckpointKeys {
            policy: CheckpointPolicy::Every { work_ms: 10 * MINUTE },
            cost_ms: 5_000,
            ps_per_gpu: 0,
            share: WritesShare::Nothing,
            bits_per_gpu: 0,
            storage_bps: 1,
            restart_ms: 30_000,
        },
        failures: FailureKeys {
            model: "exponential".into(),
            own_model: None,
            path: None,
            shape_milli: 800,
            gpu_mtbf_ms: 0,
            host_mtbf_ms: 0,
            link_mtbf_ms: 0,
            switch_mtbf_ms: 0,
            straggler_mtbf_ms: 0,
            repair_ms: 30 * MINUTE,
            switch_repair_ms: 20 * MINUTE,
            straggler_ms: 60 * MINUTE,
            straggler_ppm: 1_500_000,
            max_restarts: 10_000,
            hot_spares: 0,
            cold_spares: 0,
            hot_swap_ms: 10_000,
            cold_swap_ms: 60_000,
            drain: None,
            seed: 7,
        },
        timeline_ms: 10 * MINUTE,
        map: true,
    }
}

fn job(n: usize, submit: u64, gpus: u32, minutes: u64) -> ClusterJob {
    ClusterJob {
        name: n.to_string().into(),
        user: (n % 3).to_string().into(),
        submit_ms: submit * MINUTE,
        gpus,
        duration_ms: minutes * MINUTE,
        estimate_ms: minutes * MINUTE,
        priority: n.is_multiple_of(4).into(),
        min_gpus: gpus,
        comm_share_ppm: 200_000,
        compute_ps: 0,
        comm_bytes: 0,
        class: None,
        iterations: None,
    }
}

/// Jobs from tuples of minutes after the job before, GPUs, and duration in minutes.
fn jobs(shapes: &[(u64, u32, u64)]) -> Vec<ClusterJob> {
    let mut minute = 0;
    let one = |(n, &(gap, gpus, minutes))| {
        minute += gap;
        job(n, minute, gpus, minutes)
    };
    shapes.iter().enumerate().map(one).collect()
}

fn outcome_of(run: ClusterRun, servers: u32, jobs: Vec<ClusterJob>) -> ClusterOutcome {
    let cluster = PreparedCluster::of(run, machine(servers), jobs, Vec::new(), None).unwrap();
    cluster.simulate(&|| false).unwrap()
}

/// Checks what must hold for every outcome.
fn check(o: &ClusterOutcome, gpus: u64, interval_ms: u64) {
    assert_eq!(o.account.total(), u128::from(gpus) * u128::from(o.span_ms) * 1_000_000, "no GPU time is lost or made");
    assert!(o.account.stranded <= o.account.free);
    for of_bin in o.map.chunk_by(|a, b| a.from_ms == b.from_ms) {
        let looks = of_bin[0].looks;
        let sum = |r: &ClusterMapRow| r.gpus.used + r.gpus.idle + r.gpus.down + r.gpus.drained + r.gpus.spare;
        assert_eq!(of_bin.iter().map(sum).sum::<u64>(), gpus * looks, "every GPU is in the map at every look");
        assert!(of_bin.iter().map(|r| r.servers).sum::<u32>() > 0);
    }
    let finished: u128 = o.done().map(|j| u128::from(j.gpus) * u128::from(j.duration_ms) * 1_000_000).sum();
    assert!(o.account.useful >= finished);
    let lost: u128 = o.jobs.iter().map(|j| u128::from(j.gpus) * j.lost_ns).sum();
    assert_eq!(lost, o.account.rolled_back, "what jobs lost is what the cluster lost");
    for j in &o.jobs {
        let max_lost_ns = u128::from((j.restarts + j.preemptions) * interval_ms) * 1_000_000;
        let given_up = j.phase == JobPhase::GivenUp;
        assert!(given_up || j.lost_ns <= max_lost_ns, "no failure takes more than an interval: {j:?}");
        if let (Some(start), Some(end)) = (j.start_ms, j.end_ms) {
            assert!(j.submit_ms <= start && start <= end, "{j:?}");
            assert!(j.phase == JobPhase::GivenUp || end - start >= j.duration_ms, "{j:?}");
        }
    }
}

fn lot() -> impl Strategy<Value = Vec<(u64, u32, u64)>> {
    proptest::collection::vec((0u64..40, 1u32..17, 1u64..200), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn without_failures_every_job_ends_and_all_work_counts(shapes in lot()) {
        for (policy, _) in SCHEDULERS {
            for (placement, _) in PLACEMENTS {
                let mut run = run_of(policy, placement);
                run.scheduler.preempt = false;
                let o = outcome_of(run, 6, jobs(&shapes));
                check(&o, 24, 10 * MINUTE);
                prop_assert!(o.jobs.iter().all(|j| j.phase == JobPhase::Done), "{policy} {placement}");
                let work: u128 = o.jobs.iter().map(|j| u128::from(j.gpus) * u128::from(j.duration_ms) * 1_000_000).sum();
                prop_assert_eq!(o.account.useful, work);
                prop_assert_eq!(o.account.rolled_back + o.account.restart, 0);
            }
        }
    }

    #[test]
    fn first_come_first_served_starts_in_the_order_of_arrival(shapes in lot()) {
        let o = outcome_of(run_of("fcfs", "packed"), 6, jobs(&shapes));
        let starts: Vec<u64> = o.jobs.iter().map(|j| j.start_ms.unwrap()).collect();
        prop_assert!(starts.is_sorted(), "{starts:?}");
    }

    #[test]
    fn nothing_waits_while_all_that_wait_would_fit(shapes in lot()) {
        // With one GPU each no GPU is free while a job waits.
        let small: Vec<(u64, u32, u64)> = shapes.iter().map(|(gap, _, minutes)| (gap / 8, 1, *minutes)).collect();
        for (policy, _) in SCHEDULERS {
            let o = outcome_of(run_of(policy, "packed"), 2, jobs(&small));
            prop_assert!(o.samples.iter().all(|s| s.waiting_jobs == 0 || s.free_gpus == 0), "{policy}");
        }
    }

    #[test]
    fn failures_lose_no_more_than_an_interval_and_never_hang(
        shapes in lot(), mtbf_h in 1u64..40, policy in 0..SCHEDULERS.len(), placement in 0..PLACEMENTS.len(),
        spares in 0u32..2, elastic in any::<bool>(), drained in any::<bool>(), weibull in any::<bool>(), defragment in any::<bool>(),
        grow in 0usize..3, share in 0usize..3,
    ) {
        let mut run = run_of(SCHEDULERS[policy].0, PLACEMENTS[placement].0);
        let hour = 60 * MINUTE;
        let f = &mut run.failures;
        (f.gpu_mtbf_ms, f.host_mtbf_ms, f.link_mtbf_ms) = (mtbf_h * hour * 20, mtbf_h * hour * 10, mtbf_h * hour * 40);
        (f.switch_mtbf_ms, f.straggler_mtbf_ms) = (mtbf_h * hour * 10, mtbf_h * hour * 10);
        (f.hot_spares, f.cold_spares, f.max_restarts) = (spares, spares, 40);
        f.model = if weibull { "weibull" } else { "exponential" }.into();
        f.drain = drained.then_some(DrainKeys { every_ms: 3 * hour, servers: 2, takes_ms: hour, wait_ms: hour / 4, risk_ppm: 300_000 });
        run.scheduler.defragment = defragment;
        run.grow = [GrowBack::Never, GrowBack::AtCheckpoint, GrowBack::AtOnce][grow];
        (run.checkpoint.bits_per_gpu, run.checkpoint.storage_bps) = (1 << 30, 100_000_000);
        run.checkpoint.ps_per_gpu = 10_737_418_240_000;
        run.checkpoint.share = [WritesShare::Nothing, WritesShare::Storage, WritesShare::Fabric][share];
        let mut jobs = jobs(&shapes);
        if elastic {
            jobs.iter_mut().for_each(|j| j.min_gpus = j.gpus.div_ceil(2));
        }
        let again = run.clone();
        let o = outcome_of(run, 8, jobs.clone());
        check(&o, 32, 10 * MINUTE);
        prop_assert!(o.jobs.iter().all(|j| matches!(j.phase, JobPhase::Done | JobPhase::GivenUp)));
        prop_assert!(o.shrinks == 0 || elastic);
        prop_assert!(o.grows == 0 || (o.shrinks > 0 && grow > 0));
        prop_assert_eq!(share > 0, o.write_slowdown_ppm.is_some() || (share > 0 && o.account.checkpoint == 0));
        prop_assert_eq!(o, outcome_of(again, 8, jobs), "the same seed gives the same outcome");
    }
}

#[test]
fn backfill_fills_the_gap_and_does_not_delay_the_first() {
    // 8 GPUs: 6 run for 100 minutes; the next wants all 8, then come a short job of 2 and a long one of 2.
    let shapes = [(0, 6, 100), (1, 8, 10), (1, 2, 50), (1, 2, 200)];
    let starts = |policy| -> Vec<u64> {
        let mut run = run_of(policy, "packed");
        run.checkpoint.policy = CheckpointPolicy::Never;
        outcome_of(run, 2, jobs(&shapes)).jobs.iter().map(|j| j.start_ms.unwrap() / MINUTE).collect()
    };
    assert_eq!(starts("fcfs"), [0, 100, 110, 110]);
    assert_eq!(starts("backfill"), [0, 100, 2, 110]);
    assert_eq!(starts("sjf"), [0, 252, 2, 52], "the largest starves while others come");
}

#[test]
fn a_higher_priority_takes_gpus_and_the_others_go_back_to_a_checkpoint() {
    let mut asked_jobs = jobs(&[(0, 4, 100), (0, 8, 100), (37, 8, 10)]);
    asked_jobs[0].priority = 1;
    asked_jobs[1].priority = 0;
    asked_jobs[2].priority = 2;
    let o = outcome_of(run_of("priority", "packed"), 3, asked_jobs);
    let start: Vec<u64> = o.jobs.iter().map(|j| j.start_ms.unwrap() / MINUTE).collect();
    assert_eq!((start[2], o.jobs[1].preemptions, o.jobs[0].preemptions), (37, 1, 0));
    assert!(o.jobs[1].lost_ns > 0 && o.jobs[1].lost_ns < u128::from(10 * MINUTE) * 1_000_000);
}

#[test]
fn quotas_and_the_delay_of_low_priorities_hold() {
    let starts = |run: ClusterRun| -> Vec<u64> {
        let asked_jobs = jobs(&[(0, 4, 100), (0, 4, 100), (0, 4, 100), (0, 4, 100)]);
        outcome_of(run, 4, asked_jobs).jobs.iter().map(|j| j.start_ms.unwrap() / MINUTE).collect()
    };
    let mut quota = run_of("fcfs", "packed");
    quota.checkpoint.policy = CheckpointPolicy::Never;
    assert_eq!(starts(quota.clone()), [0, 0, 0, 0]);
    // Jobs 0 and 3 are of user 0.
    quota.scheduler.quotas = vec![("0".into(), 4)];
    assert_eq!(starts(quota), [0, 0, 0, 100]);
    let mut delay = run_of("priority", "packed");
    delay.scheduler.low_delay_ms = 30 * MINUTE;
    // Only job 0 has priority 1.
    assert_eq!(starts(delay), [0, 30, 30, 30]);
}

#[test]
fn a_failed_switch_stops_its_rack_and_a_shrunk_job_takes_longer() {
    let failure = ListedFailure {
        at_ms: 60 * MINUTE,
        part: Part { kind: PartKind::Switch, index: 0 },
        repair_ms: 10_000 * MINUTE,
    };
    let mut run = run_of("fcfs", "packed");
    run.scheduler.slowdown = vec![(1, 1_000_000)];
    run.checkpoint.cost_ms = 0;
    run.checkpoint.restart_ms = 0;
    let mut asked_jobs = jobs(&[(0, 16, 100)]);
    (asked_jobs[0].min_gpus, asked_jobs[0].comm_share_ppm) = (8, 0);
    let cluster = PreparedCluster::of(run, machine(4), asked_jobs, vec![failure], None).unwrap();
    let o = cluster.simulate(&|| false).unwrap();
    // An hour on 16 GPUs, and 40 minutes of work on 8.
    assert_eq!(o.jobs[0].end_ms.unwrap(), 140 * MINUTE);
    assert_eq!(o.account.down, 8 * 80 * u128::from(MINUTE) * 1_000_000);
}

#[test]
fn a_shrunk_job_grows_back_at_once_or_after_a_checkpoint() {
    // Host 0 of four is away from 65 to 75 minutes; work is saved every ten.
    let failure =
        ListedFailure { at_ms: 65 * MINUTE, part: Part { kind: PartKind::Host, index: 0 }, repair_ms: 10 * MINUTE };
    let ran = |grow: GrowBack, more: &[(u64, u32, u64)]| {
        let mut run = run_of("fcfs", "packed");
        run.grow = grow;
        run.scheduler.slowdown = vec![(1, 1_000_000)];
        (run.checkpoint.cost_ms, run.checkpoint.restart_ms) = (0, 0);
        let mut asked_jobs = jobs(&[&[(0, 16, 100)], more].concat());
        asked_jobs.iter_mut().for_each(|j| j.comm_share_ppm = 0);
        asked_jobs[0].min_gpus = 8;
        let cluster = PreparedCluster::of(run, machine(4), asked_jobs, vec![failure], None).unwrap();
        let o = cluster.simulate(&|| false).unwrap();
        check(&o, 16, 10 * MINUTE);
        (o.jobs[0].end_ms.unwrap() as f64 / MINUTE as f64, o.shrinks, o.grows)
    };
    // An hour is safe at 65; then 40 minutes of work on 12 of 16 GPUs.
    let (never, shrinks, grows) = ran(GrowBack::Never, &[]);
    assert!((never - (65.0 + 40.0 * 4.0 / 3.0)).abs() < 0.01 && (shrinks, grows) == (1, 0), "{never}");
    // Until 75, 7.5 minutes of it; the rest on all.
    let (once, shrinks, grows) = ran(GrowBack::AtOnce, &[]);
    assert!((once - (75.0 + 32.5)).abs() < 0.01 && (shrinks, grows) == (1, 1), "{once}");
    // The checkpoint after ten minutes of work is at 65 + 13.3.
    let (checkpoint, shrinks, grows) = ran(GrowBack::AtCheckpoint, &[]);
    assert!((checkpoint - (65.0 + 40.0 / 3.0 + 30.0)).abs() < 0.01 && (shrinks, grows) == (1, 1), "{checkpoint}");
    // It comes before a job that has arrived later.
    let (end, _, grows) = ran(GrowBack::AtOnce, &[(70, 4, 10)]);
    assert!(end == once && grows == 1, "{end}");
}

#[test]
fn jobs_that_write_at_once_share_the_storage_and_one_alone_does_not_notice() {
    // 16 GPUs with 1 Gbit each over 100 Mbit/s: 160 s alone for half of them, 5 s of standing, every ten minutes.
    let ran = |share: WritesShare, shapes: &[(u64, u32, u64)]| {
        let mut run = run_of("fcfs", "packed");
        run.scheduler.slowdown = vec![(1, 1_000_000)];
        run.checkpoint.share = share;
        (run.checkpoint.bits_per_gpu, run.checkpoint.storage_bps) = (1_000_000_000, 100_000_000);
        run.checkpoint.ps_per_gpu = 10_000_000_000_000;
        let o = outcome_of(run, 4, jobs(shapes));
        check(&o, 16, 10 * MINUTE);
        (o.jobs.iter().map(|j| j.end_ms.unwrap()).max().unwrap(), o.write_slowdown_ppm)
    };
    let one = [(0, 8, 25)];
    let alone_ms = 25 * MINUTE + 2 * (5_000 + 80_000);
    assert_eq!(ran(WritesShare::Nothing, &one), (alone_ms, None));
    assert_eq!(ran(WritesShare::Storage, &one), (alone_ms, Some(1_000_000)));
    assert_eq!(ran(WritesShare::Fabric, &one), (alone_ms, Some(1_000_000)));
    // Two that write at the same time each have half.
    let two = [(0, 8, 25), (0, 8, 25)];
    assert_eq!(ran(WritesShare::Nothing, &two).0, alone_ms);
    assert_eq!(ran(WritesShare::Storage, &two), (alone_ms + 2 * 80_000, Some(2_000_000)));
    // One that begins five minutes later meets nobody.
    assert_eq!(ran(WritesShare::Storage, &[(0, 8, 25), (5, 8, 25)]).1, Some(1_000_000));
}

#[test]
fn a_spare_keeps_a_job_going_where_it_would_wait_for_repair() {
    let failure =
        ListedFailure { at_ms: 25 * MINUTE, part: Part { kind: PartKind::Host, index: 0 }, repair_ms: 600 * MINUTE };
    let end = |hot: u32, elastic: bool| {
        let mut run = run_of("fcfs", "packed");
        run.checkpoint.cost_ms = 0;
        run.failures.hot_spares = hot;
        let mut asked_jobs = jobs(&[(0, 12, 100)]);
        if elastic {
            asked_jobs[0].min_gpus = 8;
        }
        let cluster = PreparedCluster::of(run, machine(3 + hot), asked_jobs, vec![failure], None).unwrap();
        let o = cluster.simulate(&|| false).unwrap();
        let j: &ClusterJobOutcome = &o.jobs[0];
        assert!(j.restarts == 1 && j.lost_ns <= u128::from(10 * MINUTE) * 1_000_000, "{j:?}");
        j.end_ms.unwrap() / MINUTE
    };
    let (spare, shrunk, waits) = (end(1, false), end(0, true), end(0, false));
    assert!(spare < shrunk && shrunk < waits && waits > 625, "{spare} {shrunk} {waits}");
}

#[test]
fn moving_small_jobs_together_makes_room() {
    let shapes = [(0, 1, 10), (0, 3, 500), (0, 3, 30), (0, 1, 500), (40, 4, 10)];
    let start = |defragment| {
        let mut run = run_of("fcfs", "packed");
        run.scheduler.defragment = defragment;
        let o = outcome_of(run, 2, jobs(&shapes));
        (o.jobs[4].start_ms.unwrap() / MINUTE, o.migrations, o.account.stranded > 0)
    };
    let (apart, together) = (start(false), start(true));
    assert!(apart.0 > 400 && apart.1 == 0 && apart.2, "{apart:?}");
    assert_eq!(together, (40, 1, false));
}

#[test]
fn the_best_interval_is_youngs() {
    // One job on all 16 servers for a month, whose failures come every 10 hours on average.
    let goodput_of = |minutes: u64, policy: Option<CheckpointPolicy>, written: bool| {
        let mut useful = 0.0;
        for seed in 0..24 {
            let mut run = run_of("fcfs", "packed");
            run.scheduler.slowdown = vec![(1, 1_000_000)];
            run.comm_share_ppm = 0;
            run.failures.host_mtbf_ms = 160 * 60 * MINUTE;
            run.failures.repair_ms = 1;
            run.failures.seed = seed;
            run.end_ms = Some(30 * 24 * 60 * MINUTE);
            run.checkpoint.cost_ms = 2 * MINUTE;
            if written {
                // These two minutes now come from a storage that the job would share with others.
                let c = &mut run.checkpoint;
                (c.cost_ms, c.share, c.storage_bps) = (0, WritesShare::Storage, 64_000_000);
                (c.bits_per_gpu, c.ps_per_gpu) = (120_000_000, 120_000_000_000_000 / 64);
            }
            run.checkpoint.restart_ms = 0;
            run.checkpoint.policy = policy.unwrap_or(CheckpointPolicy::Every { work_ms: minutes * MINUTE });
            let mut only = job(0, 0, 64, 60 * 24 * 60);
            only.comm_share_ppm = 0;
            let o = outcome_of(run, 16, vec![only]);
            useful += o.account.useful as f64 / o.account.total() as f64 / 24.0;
        }
        useful
    };
    let goodput = |minutes, policy| goodput_of(minutes, policy, false);
    // sqrt(2 * 2 min * 600 min) = 49 min.
    let goodputs: Vec<(u64, f64)> = [12, 24, 36, 49, 64, 98, 196].map(|m| (m, goodput(m, None))).to_vec();
    let best = goodputs.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert!((36..=64).contains(&best.0), "{goodputs:?}");
    assert!((goodput(0, Some(CheckpointPolicy::Young)) / best.1 - 1.0).abs() < 0.005, "{goodputs:?}");
    let written = goodput_of(0, Some(CheckpointPolicy::Young), true);
    assert!((written / goodput(0, Some(CheckpointPolicy::Young)) - 1.0).abs() < 1e-4, "{written}");
    // The share that is lost by Daly's first order: cost over interval plus half an interval over the mean time between failures.
    let expected = 1.0 - (2.0 / 49.0 + 49.0 / 2.0 / 600.0);
    assert!((goodputs[3].1 - expected).abs() < 0.01, "{} {expected}", goodputs[3].1);
}

#[test]
fn what_iterations_will_take_is_known_from_much_the_same_sets() {
    let text = "name = \"t\"\n[base]\nfidelity.mode = \"job\"\ncluster = { gpus = 64, gpus_per_server = 4 }\n\
        topology = { kind = \"rail-optimized\", servers_per_pod = 4, oversubscription = 4 }\n\
        jobs = { count = 40, min_gpus = 4, max_gpus = 32, load = 1.2, compute_s = \"4:0.1\", comm_mib = \"4:1000 64:4000\" }\n\
        scheduler = { iterations_at = \"flow\", placement = \"spread\" }\n";
    let sweep = hyperfold_config::sweep::parse(
        text,
        std::path::Path::new("t.toml"),
        &hyperfold_config::sweep::SetOverrides(Vec::new()),
    )
    .unwrap();
    let cluster = PreparedCluster::new(&sweep.config(&sweep.experiments[0]).unwrap()).unwrap();
    let forecast = cluster.foreseen(1, &|| false, &|| false).unwrap();
    let sets = cluster.simulate(&|| false).unwrap().iterations.unwrap().sets as f64;
    assert!(sets > 5.0 && (0.67..1.5).contains(&(forecast.sets / sets)), "{} {sets}", forecast.sets);
    assert!(forecast.seconds > 0.0);
    // A look that ends at once still says something.
    let short = cluster.foreseen(1, &|| true, &|| true).unwrap();
    assert!(short.seconds.is_finite() && short.seconds > 0.0, "{short:?}");
}

#[test]
fn what_can_never_run_is_refused() {
    let refused = |mut run: ClusterRun, quotas: Vec<(String, u32)>| {
        run.scheduler.quotas = quotas;
        PreparedCluster::of(run, machine(2), jobs(&[(0, 8, 1)]), Vec::new(), None).err().map(|e| e.to_string())
    };
    let mut spared = run_of("fcfs", "packed");
    spared.failures.hot_spares = 1;
    assert!(refused(spared, Vec::new()).unwrap().starts_with("job 0 asks for 8 GPUs; 4 run jobs; give it fewer"));
    let why = refused(run_of("fcfs", "packed"), vec![("*".into(), 4)]).unwrap();
    assert!(
        why.starts_with("job 0 asks for 8 GPUs; scheduler.quotas gives user 0 4 (as `*`); raise the quota"),
        "{why}"
    );
    assert!(refused(run_of("fcfs", "packed"), Vec::new()).is_none());
}

#[test]
fn every_choice_of_the_keys_is_in_its_registry() {
    let choices = |id: KeyId| match key(id).kind {
        KeyKind::Choice { now, .. } => now.to_vec(),
        _ => panic!("a choice"),
    };
    let names = |list: Vec<&'static str>| list;
    assert_eq!(choices(KeyId::SchedulerPolicy), names(SCHEDULERS.iter().map(|s| s.0).collect()));
    assert_eq!(choices(KeyId::SchedulerPlacement), names(PLACEMENTS.iter().map(|p| p.0).collect()));
    let models = crate::FAILURE_MODELS.iter().map(|m| m.0).chain(["trace"]).collect();
    assert_eq!(choices(KeyId::FailuresModel), names(models));
}

#[test]
fn a_server_is_down_until_the_last_of_its_parts_is_repaired() {
    let failed = |kind, minute: u64, repair: u64| ListedFailure {
        at_ms: minute * MINUTE,
        part: Part { kind, index: 0 },
        repair_ms: repair * MINUTE,
    };
    let end = |failures: Vec<ListedFailure>| {
        let mut run = run_of("fcfs", "packed");
        (run.checkpoint.cost_ms, run.checkpoint.restart_ms) = (0, 0);
        run.scheduler.slowdown = vec![(1, 1_000_000)];
        let cluster = PreparedCluster::of(run, machine(1), jobs(&[(0, 4, 60)]), failures, None).unwrap();
        cluster.simulate(&|| false).unwrap().jobs[0].end_ms.unwrap() / MINUTE
    };
    let (host, gpu) = (failed(PartKind::Host, 30, 10), failed(PartKind::Gpu, 35, 100));
    assert_eq!(end(vec![host]), 70);
    assert_eq!(end(vec![host, gpu]), 165, "30 minutes of work are left when the GPU is back at 135");
    assert_eq!(end(vec![failed(PartKind::Gpu, 30, 100), failed(PartKind::Host, 35, 10)]), 160);
}

#[test]
fn jobs_that_come_no_further_end_the_run_with_a_message() {
    // A server is always in maintenance, and the job needs them all.
    let mut run = run_of("fcfs", "packed");
    run.failures.drain =
        Some(DrainKeys { every_ms: 60 * MINUTE, servers: 1, takes_ms: 120 * MINUTE, wait_ms: 0, risk_ppm: 0 });
    let simulated = |run: ClusterRun| {
        PreparedCluster::of(run, machine(4), jobs(&[(120, 16, 2_000)]), Vec::new(), None).unwrap().simulate(&|| false)
    };
    let why = simulated(run.clone()).unwrap_err().to_string();
    assert!(why.contains("the first to wait is job 0 with 16 GPUs") && why.contains("jobs.simulated_hours"), "{why}");
    run.end_ms = Some(10_000 * MINUTE);
    assert_eq!(simulated(run).unwrap().done().count(), 0);
}
