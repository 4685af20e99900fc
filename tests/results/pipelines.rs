//! Pipeline schedules and recipes from the command line: times in the order of their papers, the same bytes always, and what is refused.

use crate::support::program::Folder;

/// A job of 16 GPUs in four stages whose messages and gradients cross the network as packets.
const SCHEDULES: &str = r#"
name = "pipelines"
[base]
cluster = { gpus = 16, gpus_per_server = 2 }
topology = { kind = "rail-optimized", link_gbps = 100, uplink_gbps = 100 }
transport = { cc = "dcqcn", payload_bytes = 4000 }
[base.workload]
kind = "model"
model = { name = "deep", transformer = { layers = 16, hidden = 1024, heads = 16, vocab = 1024, seq = 512 } }
tp = 2
pp = 4
dp = 2
zero = 1
overlap_grad = true
overlap_param = true
launch_us = 0.0
global_batch = 16
[axes]
"workload.schedule" = ["1f1b", "zb-h1", "zb-v", "v-half", "v-min", "dualpipe"]
"#;

#[test]
fn split_backward_passes_are_faster_and_have_the_same_bytes_always() {
    let folder = Folder::new(&[("s.toml", SCHEDULES)]);
    let run = |out: &str, more: &[&str]| {
        let args = [&["run", "s.toml", "--out", out, "--quiet", "--engine", "cpu"], more].concat();
        let ran = folder.run(&args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    run("one", &["--jobs", "1"]);
    run("two", &["--jobs", "2"]);
    run("exact", &["--set", "fidelity.fast_forward=exact"]);
    run("off", &["--set", "fidelity.fast_forward=off"]);
    assert!(folder.bytes("one/results.csv") == folder.bytes("two/results.csv"), "threads change bytes");
    let column = |out: &str, name: &str| -> Vec<f64> {
        folder.column(&format!("{out}/results.csv"), name).iter().map(|v| v.parse().unwrap()).collect()
    };
    let time = column("off", "iteration_time_ns");
    assert_eq!(column("exact", "iteration_time_ns"), time);
    assert_eq!(column("exact", "packet_hops"), column("off", "packet_hops"));
    let [whole, h1, v, half, min, dual] = time[..] else { panic!("{time:?}") };
    assert!(v < h1 && h1 < whole && half < whole && v < half && half < min, "{time:?}");
    // Two copies of the parameters: on this slow network it takes longer to reduce their gradients than the bubble was.
    assert!(dual > whole, "{time:?}");
    let memory = column("off", "peak_memory_bytes");
    assert!(memory[3] < memory[0] && memory[4] < memory[3] && memory[5] > memory[0], "{memory:?}");
    // Shards of the same sweep, merged.
    for shard in ["0/2", "1/2"] {
        run(&format!("part{}", &shard[..1]), &["--shard", shard]);
    }
    let merged = folder.run(&["merge", "part0", "part1", "--out", "merged", "--quiet"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    assert!(folder.bytes("merged/results.csv") == folder.bytes("one/results.csv"), "shards change bytes");
}

#[test]
fn what_a_schedule_cannot_be_combined_with_is_refused() {
    let text = SCHEDULES.split("[axes]").next().unwrap().to_string() + "schedule = \"zb-v\"\n";
    let folder = Folder::new(&[("s.toml", &text)]);
    for (number, (set, expected)) in [
        (&["workload.pp=1", "workload.dp=8"][..], "it must be \"1f1b\" without a pipeline"),
        (&["workload.framework=deepspeed"], "split backward passes are modelled for \"megatron\" alone"),
        (&["workload.framework=deepspeed"], "it must be \"1f1b\" or \"gpipe\" with framework \"deepspeed\""),
        (
            &["workload.recipe=torchtitan-2025"],
            "workload.recipe = \"torchtitan-2025\" sets workload.framework = \"fsdp2\"",
        ),
        (&["workload.offload_layers=1"], "it must be 0 with schedule \"zb-v\""),
        (&["workload.pp=8", "workload.dp=1", "workload.global_batch=8", "workload.tp=2"], "fits"),
        (&["workload.defer_embedding_wgrad=true"], "with a pipeline (workload.pp above 1) and schedule \"1f1b\""),
        (&["workload.schedule=1f1b", "workload.defer_embedding_wgrad=true"], "fits"),
        (&["workload.schedule=zb"], "did you mean \"zb-"),
        (&["workload.schedule=dualpipe-v"], "not available in this version"),
        (&["workload.schedule=dualpipe", "workload.global_batch=4"], "is even and at least 2 x pp ="),
        (
            &[
                "workload.schedule=dualpipe",
                "workload.pp=3",
                "workload.dp=1",
                "cluster.gpus=6",
                "workload.global_batch=6",
            ],
            "even with schedule \"dualpipe\"",
        ),
        (
            &["workload.schedule=v-half", "workload.pp=16", "workload.tp=1", "workload.dp=1"],
            "each of the pp x vpp = 32",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let out = format!("o{number}");
        let mut args = vec!["run", "s.toml", "--out", &out, "--quiet"];
        set.iter().for_each(|s| args.extend(["--set", s]));
        let ran = folder.run(&args);
        match expected {
            "fits" => assert_eq!(ran.code, 0, "{set:?}: {}", ran.stderr),
            _ => assert!(ran.code != 0 && ran.stderr.contains(expected), "{set:?}: {}", ran.stderr),
        }
    }
}

#[test]
fn a_recipe_is_the_keys_that_it_stands_for() {
    let head = r#"
name = "recipes"
[base]
cluster = { gpus = 16, server = "dgx-h100" }
[base.workload]
kind = "model"
model = "llama3-8b"
tp = 2
pp = 2
global_batch = 16
analytic = "all"
precision = "fp8"
"#;
    let keys = "framework = \"megatron\"\nzero = 1\nparam_bytes = 1\nfp8_scaling = \"current\"\ngrad_bytes = 2\nfused_loss = true\noverlap_grad = true\noverlap_param = true\n";
    let folder = Folder::new(&[
        ("recipe.toml", &format!("{head}recipe = \"megatron-bridge-26.06\"\n")),
        ("keys.toml", &format!("{head}{keys}")),
        ("plain.toml", head),
        ("other.toml", &format!("{head}recipe = \"megatron-bridge-26.06\"\ngrad_bytes = 4\n")),
        ("unknown.toml", &format!("{head}recipe = \"megatron-bridge-26.6\"\n")),
    ]);
    let values = |name: &str| {
        let ran = folder.run(&["run", &format!("{name}.toml"), "--out", name, "--quiet"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ["iteration_time_ns", "peak_memory_bytes", "exp_key"].map(|c| folder.column(&format!("{name}/results.csv"), c))
    };
    let (recipe, keys, plain, other) = (values("recipe"), values("keys"), values("plain"), values("other"));
    // The experiment is the same one, by its key, too.
    assert_eq!(recipe, keys);
    assert!(recipe[1] != plain[1] && other[1] != recipe[1], "{recipe:?} {plain:?} {other:?}");
    let ran = folder.run(&["run", "unknown.toml", "--out", "o", "--quiet"]);
    assert!(ran.code != 0 && ran.stderr.contains("did you mean \"megatron-bridge-26.06\""), "{}", ran.stderr);
}

#[test]
fn sharded_parameters_are_gathered_as_keys_say() {
    let text = r#"
name = "sharded"
[base]
cluster = { gpus = 16, server = "dgx-a100" }
[base.workload]
kind = "model"
model = "gpt3-1.7b"
recompute = "full"
microbatch = 2
analytic = "all"
"#;
    let folder = Folder::new(&[("s.toml", text)]);
    let time = |set: &[&str]| -> f64 {
        let out = set.join("+").replace(['=', '.'], "_");
        let mut args = vec!["run", "s.toml", "--out", &out, "--quiet"];
        set.iter().for_each(|s| args.extend(["--set", s]));
        let ran = folder.run(&args);
        assert_eq!(ran.code, 0, "{set:?}: {}", ran.stderr);
        folder.column(&format!("{out}/results.csv"), "iteration_time_ns")[0].parse().unwrap()
    };
    let zero3 = |set: &[&str]| time(&[&["workload.framework=deepspeed", "workload.zero=3"], set].concat());
    let default = zero3(&[]);
    let at_once = zero3(&["workload.prefetch_mparams=0", "workload.reuse_mparams=0"]);
    assert_eq!(zero3(&["workload.live_mparams=0", "workload.reuse_mparams=0"]), at_once);
    assert!(default < at_once, "{default} {at_once}");
    let lists = zero3(&["workload.list_collectives=true"]);
    assert!(lists > default);
    assert_eq!(time(&["workload.recipe=deepspeed-0.3"]), lists);
    let fsdp = |set: &[&str]| time(&[&["workload.framework=fsdp2"], set].concat());
    let ahead = fsdp(&[]);
    assert!(ahead < fsdp(&["workload.gather_ahead=0"]));
    assert!(ahead >= fsdp(&["workload.gather_ahead=3"]));
    assert!(ahead != fsdp(&["workload.unit_layers=4"]));
}
