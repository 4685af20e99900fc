//! Jobs without packets, by classes of ranks that do the same: every figure is that of a graph with tasks for every rank.

use std::path::Path;

use crate::support::engine;
use crate::support::random::Rng;
use hyperfold_config::sweep::{self, SetOverrides, Sweep};
use hyperfold_host::outcomes::breakdown;
use hyperfold_host::setup::prepare::{prepare_every_rank, prepare_tasks};
use hyperfold_host::{Prepared, prepare};

const HEAD: &str = "name = \"classes\"\n[base]\ncluster = { server = \"dgx-h100\" }\n\
                    [base.workload]\nkind = \"model\"\nanalytic = \"all\"\n";

fn sweep(keys: &str) -> Sweep {
    let text = format!("{HEAD}{keys}");
    sweep::parse(&text, Path::new("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A small job with anything that a layout may have.
fn random_job(rng: &mut Rng) -> String {
    let (tp, pp, cp) = (rng.pick(&[1, 2, 4]), rng.pick(&[1, 2, 3, 4]), rng.pick(&[1, 1, 2]));
    let dp: u64 = rng.pick(&[1, 2, 4]);
    let microbatches: u64 = rng.pick(&[1, 2, 4]) * pp;
    let moe = if rng.chance(25) { ", moe = { experts = 4, top_k = 2 }" } else { "" };
    let layers = 12;
    let mut keys = vec![
        format!(
            "model = {{ name = \"m\", transformer = {{ layers = {layers}, hidden = 256, heads = 16, gated = true, ffn = 512, vocab = 1024, seq = 128{moe} }} }}"
        ),
        format!("tp = {tp}"),
        format!("pp = {pp}"),
        format!("cp = {cp}"),
        format!("dp = {dp}"),
        format!("global_batch = {}", dp * microbatches),
        format!("iterations = {}", rng.pick(&[1, 1, 2, 3])),
    ];
    if dp > 1 {
        keys.push(format!("overlap_grad = {}", rng.chance(50)));
    }
    if pp > 1 {
        keys.push(format!("overlap_p2p = {}", rng.chance(50)));
        if tp > 1 && rng.chance(50) {
            keys.push("sequence_parallel = false".into());
            keys.push("scatter_gather = true".into());
        }
    }
    if !moe.is_empty() {
        keys.push(format!("ep = {}", if dp > 1 { 2 } else { 1 }));
        if rng.chance(40) {
            keys.push("expert_skew = 1.25".into());
        }
    }
    if pp > 1 && rng.chance(40) {
        keys.push(format!("vpp = {}", if pp == 4 { 3 } else { 2 }));
    }
    if pp > 1 && rng.chance(20) {
        keys.retain(|k| !k.starts_with("vpp"));
        keys.push(format!("schedule = \"{}\"", rng.pick(&["gpipe", "zb-h1", "zb-v"])));
    }
    if dp > 1 && rng.chance(50) {
        keys.push("zero = 1".into());
        keys.push(format!("overlap_param = {}", rng.chance(50)));
    }
    if rng.chance(30) {
        let ranks = tp * pp * cp * dp;
        keys.push(format!("straggler_ranks = \"{}\"\nstraggler_slowdown = 1.5", rng.range(0, ranks - 1)));
    }
    if rng.chance(10) {
        keys.push("compute_jitter = 0.05".into());
    }
    keys.join("\n")
}

fn tasks(p: &Prepared) -> usize {
    p.built.tables.tasks.len()
}

/// The iteration on its critical rank, and when the last task of all ends.
fn simulated(p: &Prepared) -> (u32, breakdown::Breakdown, u64) {
    let mut tables = p.built.tables.clone();
    engine::run_cpu(&mut tables);
    let job = p.job.as_ref().expect("a program");
    let (rank, time) = breakdown::iteration(&job.workload, &job.graph, &tables.tasks, job.warmup, 0).expect("it ends");
    (rank, time, tables.tasks.iter().map(|t| t.done).max().unwrap_or(0))
}

/// The iteration on its critical rank, and when the last task would end, worked out without a graph.
fn worked_out(p: &Prepared) -> (u32, breakdown::Breakdown, u64) {
    assert_eq!(tasks(p), 0);
    let of = p.job.as_ref().and_then(|job| job.worked_out).expect("all communication is analytical");
    let iteration = of.iteration.expect("it ends");
    (iteration.rank, iteration.time, of.makespan_ps)
}

#[test]
fn a_class_says_what_every_rank_would() {
    let mut rng = Rng::new(11);
    let (mut fewer, mut all) = (0, 0);
    for case in 0..200 {
        let text = random_job(&mut rng);
        let s = sweep(&text);
        let config = s.config(&s.experiments[0]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let whole = prepare_every_rank(&config, 0).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let classes = prepare_tasks(&config, 0).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let of_every_rank = simulated(&whole);
        assert_eq!(simulated(&classes), of_every_rank, "case {case}\n{text}");
        assert_eq!(worked_out(&prepare(&config, 0).unwrap()), of_every_rank, "worked out, case {case}\n{text}");
        fewer += tasks(&classes);
        all += tasks(&whole);
    }
    println!("{fewer} tasks instead of {all}");
    assert!(fewer * 2 < all, "{fewer} of {all} tasks are left");
}

/// A job with many micro-batches, and with what frameworks overlap, shard, compute again and route.
fn long_job(rng: &mut Rng) -> String {
    let (tp, pp, cp) = (rng.pick(&[1, 2, 4]), rng.pick(&[1, 2, 3, 4]), rng.pick(&[1, 1, 2]));
    let (dp, vpp): (u64, u64) = (rng.pick(&[1, 2, 4]), rng.pick(&[1, 2]));
    let (microbatches, microbatch): (u64, u64) = (rng.pick(&[6, 16, 40]) * pp, rng.pick(&[1, 2]));
    let framework = rng.pick(&["megatron", "megatron", "deepspeed", "fsdp2", "ddp"]);
    let moe = framework == "megatron" && rng.chance(40);
    let experts = if moe { ", moe = { experts = 8, top_k = 2 }" } else { "" };
    let mut keys = vec![
        format!(
            "model = {{ name = \"m\", transformer = {{ layers = 12, hidden = 256, heads = 16, gated = true, ffn = 512, vocab = 1024, seq = 128{experts} }} }}"
        ),
        format!("tp = {tp}\npp = {pp}\ncp = {cp}\ndp = {dp}\nmicrobatch = {microbatch}"),
        format!("global_batch = {}", dp * microbatches * microbatch),
        format!("framework = \"{framework}\""),
        format!("recompute = \"{}\"", rng.pick(&["none", "selective", "full"])),
        format!("iterations = {}\nwarmup = {}", rng.pick(&[1, 2]), rng.pick(&[0, 0, 1])),
    ];
    if dp > 1 {
        keys.push(format!("zero = {}", rng.range(0, 3)));
        keys.push(format!("overlap_grad = {}", rng.chance(50)));
        keys.push(format!("overlap_param = {}", rng.chance(50)));
    }
    if pp > 1 {
        keys.push(format!("vpp = {vpp}\noverlap_p2p = {}", rng.chance(50)));
        keys.push(format!("scatter_gather = {}", tp > 1 && rng.chance(30)));
    }
    if moe {
        keys.push(format!("ep = {}\noverlap_ep = {}", dp.min(2), (vpp > 1 || pp == 1) && rng.chance(50)));
    }
    if rng.chance(20) {
        keys.push(format!("straggler_ranks = \"{}\"\nstraggler_slowdown = 1.5", rng.range(0, tp * pp * cp * dp - 1)));
    }
    keys.join("\n")
}

#[test]
fn what_is_worked_out_is_what_the_graph_comes_to() {
    let mut rng = Rng::new(29);
    let (mut compared, mut refused) = (0, 0);
    while compared < 150 {
        let text = long_job(&mut rng);
        let s = sweep::parse(&format!("{HEAD}{text}"), Path::new("s.toml"), &SetOverrides::default());
        // Some of these keys do not go together.
        let config = s.ok().and_then(|s| s.config(&s.experiments[0]).ok());
        let Some((config, classes)) = config.and_then(|config| Some((config.clone(), prepare_tasks(&config, 0).ok()?)))
        else {
            refused += 1;
            continue;
        };
        let prepared = prepare(&config, 0).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(worked_out(&prepared), simulated(&classes), "case {compared}\n{text}");
        compared += 1;
    }
    println!("{refused} were refused");
    assert!(refused < 300, "{refused} of {} were refused", refused + compared);
}

#[test]
fn a_slow_rank_is_told_apart_and_random_kernels_leave_no_classes() {
    let job = |more: &str| {
        let text = format!("model = \"gpt3-1.7b\"\ndp = 16\nglobal_batch = 32\n{more}\n");
        let s = sweep(&text);
        prepare_tasks(&s.config(&s.experiments[0]).unwrap(), 0).unwrap()
    };
    let ranks_with_tasks =
        |p: &Prepared| p.job.as_ref().unwrap().graph.ops.iter().filter(|ops| !ops.is_empty()).count();
    assert_eq!(ranks_with_tasks(&job("")), 1);
    // The straggler, and those that share its groups otherwise than the rest do.
    let straggler = ranks_with_tasks(&job("straggler_ranks = \"3\"\nstraggler_slowdown = 2.0"));
    assert!((2..16).contains(&straggler), "{straggler}");
    assert_eq!(ranks_with_tasks(&job("compute_jitter = 0.1")), 16);
}
