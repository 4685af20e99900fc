//! Tests that a job extended from shorter ones equals the whole job, to the picosecond.

use std::path::Path;

use super::*;
use crate::setup::network::network_of;
use crate::setup::prepare::prepare;
use hyperfold_config::spec::WorkloadSection;
use hyperfold_config::sweep::{self, SetOverrides};

const HEAD: &str = "name = \"long\"\n[base]\ncluster = { server = \"dgx-h100\" }\n[base.workload]\nkind = \"model\"\nanalytic = \"all\"\n";

/// Random draws that are the same on every machine.
struct Draw(u64);

impl Draw {
    fn range(&mut self, min: u64, max: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        min + (self.0 >> 33) % (max - min + 1)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.range(0, choices.len() as u64 - 1) as usize]
    }
}

fn config(keys: &str) -> Option<Config> {
    let sweep = sweep::parse(&format!("{HEAD}{keys}"), Path::new("s.toml"), &SetOverrides::default()).ok()?;
    sweep.config(&sweep.experiments[0]).ok()
}

/// Returns keys of a job with more micro-batches than are computed one by one.
fn random_job(draw: &mut Draw) -> String {
    let (tp, pp, dp) = (draw.pick(&[1, 2]), draw.pick(&[1, 2, 2, 3, 4, 8]), draw.pick(&[1, 2]));
    let vpp = if pp > 1 { draw.pick(&[1, 1, 2]) } else { 1 };
    let layers = draw.pick(&[4, 5, 6]) * if vpp > 1 || pp == 8 { 2 } else { 1 };
    let microbatches = draw.range(512 / pp + 1, 640 / pp) * pp + if vpp == 1 { draw.range(0, pp - 1) } else { 0 };
    let moe = draw.range(0, 3) == 0;
    let experts = if moe { ", moe = { experts = 4, top_k = 2 }" } else { "" };
    let framework = draw.pick(&["megatron", "megatron", "deepspeed", "fsdp2", "ddp"]);
    let mut keys = vec![
        format!(
            "model = {{ name = \"m\", transformer = {{ layers = {layers}, hidden = {}, heads = 16, ffn = 512, vocab = {}, seq = 128{experts} }} }}",
            draw.pick(&[256, 1024]),
            draw.pick(&[1024, 32_000, 256_000])
        ),
        format!("tp = {tp}\npp = {pp}\ndp = {dp}\nvpp = {vpp}\nmicrobatch = 1\nglobal_batch = {}", dp * microbatches),
        format!(
            "framework = \"{framework}\"\niterations = {}\nwarmup = {}",
            draw.pick(&[1, 1, 2]),
            draw.pick(&[0, 0, 1])
        ),
        "memory_check = false".to_string(),
    ];
    if dp > 1 {
        keys.push(format!(
            "zero = {}\noverlap_grad = {}\noverlap_param = {}",
            draw.range(0, 3),
            draw.range(0, 1) == 1,
            draw.range(0, 1) == 1
        ));
    }
    if pp > 1 {
        keys.push(format!("overlap_p2p = {}", draw.range(0, 1) == 1));
    }
    if draw.range(0, 3) == 0 {
        keys.push(format!(
            "straggler_ranks = \"{}\"\nstraggler_slowdown = {}",
            draw.range(0, tp * pp * dp - 1),
            draw.pick(&["1.5", "1.001"])
        ));
    }
    keys.join("\n")
}

/// Returns the outcome extended from shorter jobs, and that of the whole job; `None` if the keys describe no job.
fn both_ways(keys: &str) -> Option<(Option<WorkedOut>, WorkedOut)> {
    let config = config(keys)?;
    let WorkloadSection::Program(program) = &config.workload else { unreachable!("a model is a program") };
    let (net, described, _) = network_of(&config).ok()?;
    let ranks = RanksWithTasks::Unsimulated;
    let mut shorter = |length: JobLength| {
        let mut notes = Vec::new();
        let made = job_of_length(&config, program, &net, described.as_ref(), ranks, length, &mut notes)?;
        Ok((made, notes))
    };
    let whole = shorter(JobLength { microbatches: None, period: AskedPeriod::No }).ok()?.0.job.worked_out?;
    let by_periods = by_periods(program, &mut shorter).expect("the whole job is in order");
    Some((by_periods.map(|(job, _)| job.worked_out.expect("it is worked out")), whole))
}

#[test]
fn a_long_job_is_what_its_whole_comes_to() {
    let mut draw = Draw(3);
    let (mut cases, mut extended, mut refused) = (0, 0, 0);
    while cases < 40 {
        let keys = random_job(&mut draw);
        let Some((by_periods, whole)) = both_ways(&keys) else {
            refused += 1;
            assert!(refused < 200, "too many jobs are refused");
            continue;
        };
        cases += 1;
        if let Some(by_periods) = by_periods {
            assert_eq!(by_periods, whole, "case {cases}\n{keys}");
            extended += 1;
        }
    }
    println!("{extended} of {cases} jobs were extended, {refused} refused");
    assert!(extended * 10 >= cases * 8, "only {extended} of {cases} jobs were found to be steady");
}

#[test]
fn a_million_micro_batches_take_no_longer_than_a_few_hundred() {
    let keys = |batch: u64| {
        format!("model = \"gpt2\"\npp = 2\ndp = 4\nmicrobatch = 1\nglobal_batch = {batch}\nmemory_check = false")
    };
    let start = std::time::Instant::now();
    let time = |batch: u64| {
        let prepared = prepare(&config(&keys(batch)).expect("it is in order"), 0).expect("it can be prepared");
        prepared.job.and_then(|job| job.worked_out).and_then(|time| time.iteration).expect("it is worked out").time
    };
    let (small, large) = (time(4096), time(1 << 20));
    // 255 times the micro-batches beyond those that fill and drain the pipeline.
    let ratio = large.total as f64 / small.total as f64;
    assert!((250.0..256.5).contains(&ratio), "{ratio}");
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
