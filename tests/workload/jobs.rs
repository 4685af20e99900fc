//! Training jobs from the sweep file to the breakdown of an iteration, as packets: large shapes at a reduced size, every framework and dimension, memory, iterations.

use std::path::Path;

use crate::support::engine;
use crate::support::program::Folder;
use hyperfold_columns::NEVER;
use hyperfold_config::sweep::{self, SetOverrides, Sweep};
use hyperfold_engine::EngineError;
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_host::{Ending, ExperimentOutcome, QueuedExperiment, RunEvent, RunOptions, prepare};

/// GPUs in servers of eight on rails of 400 Gb/s.
const HEAD: &str = r#"
name = "workloads"
seed = 3

[base]
cluster = { server = "dgx-h100" }
transport = { cc = "dcqcn", payload_bytes = 4000 }
workload = { kind = "model" }
output = { flows = true }

[sweep]
method = "list"
"#;

/// What is tried: a name, ranks, keys.
const JOBS: &[(&str, u64, &str)] = &[
    // GPT-3 13B's degrees and heads on 128 GPUs; a fifth of its layers, an eighth of its width.
    (
        "gpt3-13b",
        128,
        "workload = { model = { name = \"gpt3-13b-small\", transformer = { layers = 8, hidden = 640, heads = 40, vocab = 3200, seq = 256, tied = true, learned_positions = true, \
         biases = true } }, tp = 8, dp = 4, pp = 4, zero = 1, overlap_grad = true, global_batch = 16 }",
    ),
    // Mixtral 8x7B's experts, heads and degrees on 64 GPUs.
    (
        "mixtral-8x7b",
        64,
        "workload = { model = { name = \"mixtral-8x7b-small\", transformer = { layers = 4, hidden = 256, heads = 32, kv_heads = 8, gated = true, ffn = 896, vocab = 2000, seq = 256, \
         moe = { experts = 8, top_k = 2 } } }, tp = 2, dp = 16, pp = 2, ep = 8, expert_skew = 1.25, zero = 1, global_batch = 64 }",
    ),
    (
        "zero-3",
        16,
        "workload = { model = MODEL, framework = \"deepspeed\", zero = 3, dp = 16, global_batch = 32, bucket_mb = 1 }",
    ),
    (
        "zero-1",
        16,
        "workload = { model = MODEL, framework = \"deepspeed\", zero = 1, tp = 2, dp = 8, global_batch = 16 }",
    ),
    ("fsdp", 16, "workload = { model = MODEL, framework = \"fsdp\", dp = 16, global_batch = 16, bucket_mb = 1 }"),
    (
        "metrics",
        16,
        "workload = { model = MODEL, framework = \"fsdp\", dp = 16, global_batch = 32, attention = \"flash2\", unpad_attention = true, loss_metrics = 2 }",
    ),
    ("ddp", 16, "workload = { model = \"vgg19\", framework = \"ddp\", dp = 16, microbatch = 8, global_batch = 128 }"),
    ("dlrm", 16, "workload = { model = \"dlrm\", framework = \"ddp\", dp = 16, microbatch = 64, global_batch = 1024 }"),
    ("context", 16, "workload = { model = MODEL, cp = 4, dp = 2, tp = 2, global_batch = 4, seq = 512 }"),
    ("interleaved", 16, "workload = { model = MODEL, pp = 4, vpp = 2, dp = 2, tp = 2, global_batch = 16 }"),
    (
        "zb-h1",
        16,
        "workload = { model = MODEL, pp = 4, schedule = \"zb-h1\", dp = 2, tp = 2, zero = 1, overlap_grad = true, overlap_param = true, global_batch = 12 }",
    ),
    (
        "zb-v",
        16,
        "workload = { model = MODEL, pp = 4, schedule = \"zb-v\", dp = 4, overlap_grad = true, bucket_mb = 1, global_batch = 20 }",
    ),
    (
        "v-half",
        16,
        "workload = { model = MODEL, pp = 4, schedule = \"v-half\", dp = 4, global_batch = 24, overlap_p2p = false }",
    ),
    ("gpipe", 16, "workload = { model = MODEL, pp = 4, schedule = \"gpipe\", dp = 4, global_batch = 16 }"),
    (
        "tensor",
        16,
        "workload = { model = MODEL, tp = 16, recompute = \"full\", tp_overlap_pieces = 4, global_batch = 2 }\ncluster.gpus_per_server = 4\ncluster.nics_per_server = 4",
    ),
    (
        "packets-inside",
        16,
        "workload = { model = MODEL, tp = 4, dp = 4, global_batch = 8 }\ncluster.nvlink = \"packet\"",
    ),
    (
        "shared-nics",
        16,
        "workload = { model = MODEL, tp = 2, pp = 2, dp = 4, global_batch = 8 }\ncluster.nics_per_server = 2",
    ),
    (
        "iterations",
        16,
        "workload = { model = MODEL, tp = 2, dp = 8, global_batch = 16, iterations = 2, warmup = 1, compute_jitter = 0.05 }",
    ),
];

const MODEL: &str =
    "{ name = \"small\", transformer = { layers = 8, hidden = 256, heads = 16, vocab = 1024, seq = 128 } }";

/// The experiment of a job; the keys of `[[experiment]]` are dotted.
fn experiment(keys: &str) -> String {
    let keys = keys.replace("MODEL", MODEL);
    let mut out = "[[experiment]]\n".to_string();
    for line in keys.lines() {
        match line.strip_prefix("workload = ") {
            Some(table) => {
                let table: toml::Table = format!("w = {table}").parse().unwrap_or_else(|e| panic!("{table}: {e}"));
                let toml::Value::Table(w) = &table["w"] else { panic!("{line}") };
                for (key, value) in w {
                    out += &format!("workload.{key} = {value}\n");
                }
            }
            None => out += &format!("{line}\n"),
        }
    }
    out
}

fn sweep_text(jobs: &[(&str, u64, &str)]) -> String {
    jobs.iter().fold(HEAD.to_string(), |text, job| text + &experiment(job.2))
}

fn sweep(text: &str) -> Sweep {
    sweep::parse(text, Path::new("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Outcomes of the experiments in `order`, by place, in batches of `batch`.
fn outcomes(sweep: &Sweep, order: &[usize], batch: usize) -> Vec<Result<ExperimentOutcome, Ending>> {
    let task = |(id, &place): (usize, &usize)| QueuedExperiment {
        exp_id: id as u64,
        config: sweep.config(&sweep.experiments[place]).unwrap(),
    };
    let mut found: Vec<Option<Result<ExperimentOutcome, Ending>>> = order.iter().map(|_| None).collect();
    let options = RunOptions { batch, ..RunOptions::default() };
    hyperfold_host::run::<EngineError>(
        order.iter().enumerate().map(task),
        Box::new(CpuEngine),
        &options,
        || false,
        &mut |news| {
            if let RunEvent::Ended(ended) = news {
                println!("  {:6.2} s", ended.seconds);
                found[order[ended.exp_id as usize]] = Some(ended.result);
            }
            Ok(())
        },
    )
    .unwrap();
    found.into_iter().map(|f| f.expect("every experiment ends")).collect()
}

#[test]
fn jobs_run_to_their_end_and_their_time_is_accounted_for() {
    let sweep = sweep(&sweep_text(JOBS));
    let order: Vec<usize> = (0..JOBS.len()).collect();
    for ((name, ranks, _), outcome) in JOBS.iter().zip(outcomes(&sweep, &order, 1)) {
        let o = outcome.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let i = o.iteration.unwrap_or_else(|| panic!("{name}: no iteration"));
        let t = i.time;
        let exposed: u64 = t.exposed.iter().sum();
        println!(
            "{name:15} {:>9.1} us: compute {:>8.1}, exposed {:?}, bubble {:>8.1}, optimizer {:>6.1}, other {:>6.1}; {} messages, {} packet-hops",
            t.total as f64 / 1e6,
            t.compute as f64 / 1e6,
            t.exposed.map(|e| e / 1_000_000),
            t.bubble as f64 / 1e6,
            t.optimizer as f64 / 1e6,
            t.other as f64 / 1e6,
            o.flows.len(),
            o.packet_hops
        );
        assert_eq!(i.ranks, *ranks, "{name}");
        assert_eq!(t.total, t.compute + exposed + t.bubble + t.optimizer + t.other, "{name}: {t:?}");
        assert!(o.flows.iter().all(|f| f.fct_ps.is_some()), "{name}: a message is lost");
        assert!(!o.flows.is_empty() && o.packet_hops > 0 && t.compute > 0 && t.optimizer > 0, "{name}: {t:?}");
        assert!(t.other * 20 < t.total, "{name}: more than a twentieth of the time is nobody's: {t:?}");
        assert!(o.peak_memory_bytes.is_some_and(|b| b > 1 << 30), "{name}: {:?}", o.peak_memory_bytes);
        assert!(t.total <= o.makespan_ps, "{name}");
        // Images and clicks are no tokens.
        assert!(
            (i.tokens > 0) != matches!(*name, "ddp" | "dlrm") && i.model_flops > 0 && i.peak_flops > 0,
            "{name}: {i:?}"
        );
    }
}

#[test]
fn threads_batches_and_neighbours_change_no_byte() {
    let jobs: Vec<_> = JOBS.iter().filter(|j| j.1 == 16 && j.0 != "ddp").copied().collect();
    let text = sweep_text(&jobs);
    let sweep = sweep(&text);
    let order: Vec<usize> = (0..jobs.len()).collect();
    let shuffled: Vec<usize> = (0..jobs.len()).map(|i| i * 7 % jobs.len()).collect();
    assert!(order.iter().all(|i| shuffled.contains(i)), "7 and {} have a factor in common", jobs.len());
    let alone = outcomes(&sweep, &order, 1);
    for (name, batch, order) in
        [("together", 512, &order), ("shuffled", 512, &shuffled), ("shuffled by four", 4, &shuffled)]
    {
        for ((a, b), job) in outcomes(&sweep, order, batch).iter().zip(&alone).zip(&jobs) {
            assert!(a == b, "{}: {name}", job.0);
        }
    }
    let folder = Folder::new(&[("s.toml", &text)]);
    for (out, threads) in [("1", "1"), ("2", "2")] {
        let ran = folder.run(&["run", "s.toml", "--out", out, "--quiet", "--engine", "cpu", "--jobs", threads]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    for file in ["results.csv", "flows.csv", "results.parquet"] {
        assert!(folder.bytes(&format!("1/{file}")) == folder.bytes(&format!("2/{file}")), "{file}");
    }
    // In the file too, parts add up to the picosecond.
    let column = |name: &str| -> Vec<u64> { folder.column("1/results.csv", name).iter().map(|v| ps(v)).collect() };
    let total = column("iteration_time_ns");
    let parts = [
        "compute_ns",
        "comm_exposed_tp_ns",
        "comm_exposed_pp_ns",
        "comm_exposed_dp_ns",
        "comm_exposed_ep_ns",
        "comm_exposed_cp_ns",
        "bubble_ns",
        "optimizer_ns",
        "other_ns",
    ];
    let parts: Vec<Vec<u64>> = parts.into_iter().map(column).collect();
    for (i, total) in total.iter().enumerate() {
        assert!(*total > 0);
        assert_eq!(*total, parts.iter().map(|p| p[i]).sum::<u64>(), "{}", jobs[i].0);
    }
}

/// Picoseconds of nanoseconds with up to three decimals; 0 if empty.
fn ps(ns: &str) -> u64 {
    let (whole, part) = ns.split_once('.').unwrap_or((ns, ""));
    if whole.is_empty() {
        0
    } else {
        whole.parse::<u64>().unwrap() * 1000 + format!("{part:0<3}").parse::<u64>().unwrap()
    }
}

#[test]
fn half_the_step_changes_no_task() {
    let jobs: Vec<_> = JOBS
        .iter()
        .filter(|j| matches!(j.0, "zero-3" | "context" | "interleaved" | "packets-inside" | "shared-nics"))
        .copied()
        .collect();
    let sweep = sweep(&sweep_text(&jobs));
    for (job, e) in jobs.iter().zip(&sweep.experiments) {
        let prepared = prepare(&sweep.config(e).unwrap(), 0).unwrap_or_else(|e| panic!("{}: {e}", job.0));
        let ends = |divisor: u64| {
            let mut tables = prepared.built.tables.clone();
            tables.exps[0].step = (tables.exps[0].step / divisor).max(1);
            engine::run_cpu(&mut tables);
            tables.tasks.iter().map(|t| (t.at, t.got, t.done)).collect::<Vec<_>>()
        };
        let whole = ends(1);
        assert!(whole.iter().all(|t| t.2 != NEVER), "{}: a task never ends", job.0);
        for divisor in [2, 3] {
            assert!(ends(divisor) == whole, "{}: step / {divisor}", job.0);
        }
    }
}

#[test]
fn what_does_not_fit_is_a_result_with_its_breakdown() {
    let big = [
        ("big", 8, "workload = { model = \"gpt3-175b\", tp = 8, global_batch = 1 }"),
        ("fits", 8, "workload = { model = MODEL, tp = 8, global_batch = 1 }"),
    ];
    let sweep = sweep(&sweep_text(&big));
    let found = outcomes(&sweep, &[0, 1], 512);
    let Err(Ending::Oom { peak_bytes, breakdown }) = &found[0] else { panic!("{:?}", found[0]) };
    assert!(*peak_bytes > 300 << 30, "{peak_bytes}");
    for part in ["parameters", "gradients", "optimizer", "activations"] {
        assert!(breakdown.contains(part), "{breakdown}");
    }
    assert!(found[1].is_ok());
    let folder = Folder::new(&[("s.toml", &sweep_text(&big))]);
    let ran = folder.run(&["run", "s.toml", "--out", "o"]);
    assert_eq!(ran.code, 0, "oom is a result: {}", ran.stderr);
    assert_eq!(folder.column("o/results.csv", "status"), ["oom", "ok"]);
    assert_eq!(folder.column("o/results.csv", "peak_memory_bytes")[0], peak_bytes.to_string());
    let plan = folder.run(&["plan", "s.toml"]);
    assert!(plan.stdout.contains("parameters"), "{}", plan.stdout);
}

#[test]
fn iterations_are_equal_and_the_first_ones_can_be_left_out() {
    let job = "workload = { model = MODEL, tp = 2, dp = 8, zero = 1, overlap_param = true, overlap_grad = true, global_batch = 16, ITERATIONS }";
    let time = |iterations: &str| {
        let text = sweep_text(&[("", 16, &job.replace("ITERATIONS", iterations))]);
        let o = outcomes(&sweep(&text), &[0], 1).remove(0).unwrap();
        (o.iteration.unwrap().time.total, o.makespan_ps, o.flows.len())
    };
    let (one, makespan, messages) = time("iterations = 1");
    assert_eq!(one, makespan);
    let (mean, makespan, of_three) = time("iterations = 3");
    assert_eq!((mean, of_three), (makespan / 3, 3 * messages));
    let (warm, _, _) = time("iterations = 2, warmup = 1");
    let off = |a: u64, b: u64| a.abs_diff(b) as f64 / b as f64;
    assert!(off(mean, one) < 0.05 && off(warm, one) < 0.05, "{one} {mean} {warm}");
}
