//! Inference from the command line: latencies, transfers between pools, the same bytes whatever runs them, and what is refused.

use crate::support::program::Folder;

/// Llama 3 8B without its size: two layers of four heads for keys and values.
const SMALL: &str = r#"
[base]
cluster = { gpus = 8, gpus_per_server = 2, nvlink_gbps = 400 }
topology = { kind = "clos", hosts_per_leaf = 4, oversubscription = 2, link_gbps = 100, uplink_gbps = 100 }
output = { requests = true, flows = true }

[base.workload]
kind = "inference"
model = { name = "small", transformer = { layers = 2, hidden = 512, heads = 8, kv_heads = 4, ffn = 1024, gated = true, vocab = 1000, seq = 128 } }
request_count = 12
request_rate = 20000.0
prompt_tokens = 60
output_tokens = 8
max_batch_tokens = 256
"#;

fn sweep(more: &str) -> String {
    format!("name = \"serving\"\n{SMALL}{more}")
}

fn folder(more: &str) -> Folder {
    let folder = Folder::new(&[("s.toml", &sweep(more))]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    folder
}

fn numbers(folder: &Folder, file: &str, column: &str) -> Vec<f64> {
    folder.column(file, column).iter().map(|x| x.parse().unwrap_or(f64::NAN)).collect()
}

#[test]
fn latencies_of_requests_add_up() {
    let folder = folder("tp = 2\n");
    let of = |column: &str| numbers(&folder, "o/requests.csv", column);
    let (output, ttft, tpot, e2e, queue) =
        (of("output_tokens"), of("ttft_ns"), of("tpot_ns"), of("e2e_ns"), of("queue_ns"));
    assert_eq!(output.len(), 12);
    for i in 0..12 {
        assert!(queue[i] < ttft[i] && ttft[i] <= e2e[i], "{i}");
        if output[i] > 1.0 {
            assert!((ttft[i] + tpot[i] * (output[i] - 1.0) - e2e[i]).abs() < output[i], "{i}");
        }
    }
    let result = |column: &str| numbers(&folder, "o/results.csv", column)[0];
    assert_eq!((result("requests"), result("requests_done")), (12.0, 12.0));
    let mean = ttft.iter().sum::<f64>() / 12.0;
    assert!((result("ttft_mean_ns") / mean - 1.0).abs() < 1e-6);
    let last = of("arrival_ns").iter().zip(&e2e).map(|(at, e2e)| at + e2e).fold(0.0, f64::max);
    let span = last - of("arrival_ns").iter().copied().fold(f64::INFINITY, f64::min);
    assert!((result("output_tokens_per_s") / (output.iter().sum::<f64>() / span * 1e9) - 1.0).abs() < 1e-6);
    assert_eq!(result("output_tokens_per_s"), result("tokens_per_s"));
    let shares = ["compute_bound_share", "memory_bound_share", "launch_share", "network_share", "unused_share"];
    assert!((shares.into_iter().map(result).sum::<f64>() - 1.0).abs() < 1e-4);
    let error = &folder.column("o/results.csv", "validated_error")[0];
    assert!(error.starts_with("throughput: 9 of 10 within ") && error.contains("measured in 5 tables"), "{error}");
    assert!(error.contains("which disagree: the middle one, left out, needs "), "{error}");
    let error = &folder.column("o/results.csv", "validated_latency_error")[0];
    assert!(
        error.starts_with("latency: 9 of 10 within ") && error.contains("measured in 4 tables, nearest"),
        "{error}"
    );
    let (mean, p90) = (result("validated_latency_mean_error"), result("validated_latency_p90_error"));
    assert!(0.0 < mean && mean < p90 && p90 != result("validated_p90_error"), "{mean} {p90}");
    let header = String::from_utf8(folder.bytes("o/results.csv")).unwrap();
    assert!(
        header
            .lines()
            .next()
            .unwrap()
            .ends_with(",limited_by,validated_latency_error,validated_latency_mean_error,validated_latency_p90_error")
    );
    let printed = folder.run(&["run", "s.toml", "--out", "p", "--engine", "cpu"]).stdout;
    assert!(printed.contains("error of simulated latencies: 9 of 10 within "), "{printed}");
    assert!(folder.column("o/results.csv", "validated_class")[0].starts_with("serving/"));
    assert_eq!(folder.column("o/results.csv", "iteration_time_ns"), [""]);
}

#[test]
fn keys_and_values_cross_the_network_once() {
    let folder = folder("tp = 2\ndp = 2\nserving = \"disaggregated\"\nprefill_tp = 4\nlengths = \"fixed\"\n");
    // Two layers, four heads of 64 elements, keys and values of two bytes, sixty tokens.
    let each = 2 * 4 * 64 * 2 * 2 * 60;
    assert_eq!(numbers(&folder, "o/results.csv", "kv_transfer_bytes"), [f64::from(12 * each)]);
    // A receiver has two heads, from the two ranks that have one each.
    let flows = numbers(&folder, "o/flows.csv", "bytes");
    let (src, dst) = (numbers(&folder, "o/flows.csv", "src"), numbers(&folder, "o/flows.csv", "dst"));
    let between: Vec<f64> = (0..flows.len()).filter(|&i| src[i] < 4.0 && dst[i] >= 4.0).map(|i| flows[i]).collect();
    assert_eq!(between, [f64::from(each / 4); 48]);
    let of = |column: &str| numbers(&folder, "o/requests.csv", column);
    let (ttft, transfer, e2e) = (of("ttft_ns"), of("kv_transfer_ns"), of("e2e_ns"));
    assert!((0..12).all(|i| transfer[i] > 0.0 && ttft[i] + transfer[i] < e2e[i]));
}

#[test]
fn bytes_do_not_depend_on_threads_or_folding() {
    let axes = "\n[axes]\n\"workload.serving\" = [\"colocated\", \"disaggregated\"]\n\"workload.pp\" = [1, 2]\n\"workload.clients\" = [0, 5]\n\"workload.draft_tokens\" = [0, 2]\n\"fidelity.fast_forward\" = [\"exact\", \"off\"]\n";
    let folder = Folder::new(&[("s.toml", &sweep(&format!("tp = 2\nmax_sequences = 64\n{axes}")))]);
    for (out, jobs) in [("one", "1"), ("four", "4")] {
        let ran = folder.run(&["run", "s.toml", "--out", out, "--engine", "cpu", "--quiet", "--jobs", jobs]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    }
    for file in ["results.csv", "requests.csv", "flows.csv"] {
        assert_eq!(folder.text(&format!("one/{file}")), folder.text(&format!("four/{file}")), "{file}");
    }
    // Folding changes no byte.
    for column in ["makespan_ns", "ttft_p99_ns", "tpot_mean_ns", "e2e_p99_ns", "network_share", "flows"] {
        let values = folder.column("one/results.csv", column);
        assert!(values.chunks(2).all(|pair| pair[0] == pair[1]), "{column}: {values:?}");
    }
}

#[test]
fn a_client_waits_for_its_answer() {
    // Two clients a tensor-parallel pair; a request may go to another pair than the one before.
    let folder = folder("tp = 2\nclients = 6\nadmission = \"reserved\"\n");
    let of = |column: &str| numbers(&folder, "o/requests.csv", column);
    let (arrival, e2e) = (of("arrival_ns"), of("e2e_ns"));
    assert_eq!(arrival[..6], [0.0; 6]);
    let ends: Vec<f64> = arrival.iter().zip(&e2e).map(|(arrival, e2e)| arrival + e2e).collect();
    for (i, at) in arrival.iter().enumerate() {
        assert!(i < 6 || ends.iter().any(|end| (end - at).abs() < 0.01), "request {i} arrives at {at}: {ends:?}");
        let under_way = (0..12).filter(|&j| arrival[j] <= *at && ends[j] > *at).count();
        assert!(under_way <= 6, "{under_way} requests of six clients");
    }
    let instances = of("instance");
    assert!(instances.contains(&0.0) && instances.contains(&3.0), "{instances:?}");
    // A rate has no effect on clients that wait.
    let ran = Folder::new(&[("s.toml", &sweep("tp = 2\nclients = 6\n"))]).run(&["plan", "s.toml"]);
    assert!((ran.stdout + &ran.stderr).contains("workload.request_rate"));
}

#[test]
fn who_gives_memory_back_is_counted() {
    // Room for 528 tokens; twelve requests of 60 tokens and answers of 100 come at once.
    let more = "tp = 2\ndp = 1\nkv_block_tokens = 16\nmemory_reserve_gib = 0.0\nmemory_share = 1.0\nlengths = \"fixed\"\n\n[axes]\n\"workload.admission\" = [\"reserved\", \"on-demand\"]\n";
    let text = sweep(more)
        .replace("gpus = 8,", "gpus = 2, gpu_memory_gib = 0.008,")
        .replace("output_tokens = 8", "output_tokens = 100")
        .replace("max_batch_tokens = 256", "max_batch_tokens = 256\nmax_sequences = 16");
    let folder = Folder::new(&[("s.toml", &text)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let capacity = numbers(&folder, "o/results.csv", "kv_capacity_tokens");
    assert_eq!(capacity, [528.0; 2]);
    let preemptions = numbers(&folder, "o/requests.csv", "preemptions");
    assert_eq!(preemptions[..12], [0.0; 12]);
    let times: f64 = preemptions[12..].iter().sum();
    let count = preemptions[12..].iter().filter(|n| **n > 0.0).count();
    assert!(times > 0.0);
    let said = format!("{count} of 12 requests were preempted, {times} times in all");
    assert!(ran.stderr.contains(&said) || ran.stdout.contains(&said), "{said}: {}{}", ran.stdout, ran.stderr);
    assert_eq!(numbers(&folder, "o/results.csv", "requests_done"), [12.0; 2]);
    assert!(numbers(&folder, "o/results.csv", "kv_use_peak").iter().all(|share| *share <= 1.0));
}

#[test]
fn narrow_weights_and_drafted_tokens_make_answers_faster() {
    // One request alone, whose steps read the weights: by their bits, not by the products' rate.
    let alone = "tp = 1\ndp = 1\nmemory_reserve_gib = 0.0\nmax_sequences = 16\n";
    let text = |axes: &str| {
        sweep(&format!("{alone}\n[axes]\n{axes}\n"))
            .replace("request_count = 12", "request_count = 1")
            .replace("output_tokens = 8", "output_tokens = 100")
            .replace("gpus = 8, gpus_per_server = 2,", "gpus = 1, gpus_per_server = 1, gpu = \"b200\",")
            .replace(
                "layers = 2, hidden = 512, heads = 8, kv_heads = 4, ffn = 1024",
                "layers = 8, hidden = 8192, heads = 64, kv_heads = 8, ffn = 28672",
            )
    };
    let tpot = |axes: &str| {
        let folder = Folder::new(&[("s.toml", &text(axes))]);
        let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        numbers(&folder, "o/results.csv", "tpot_mean_ns")
    };
    let times = tpot("\"workload.precision\" = [\"bf16\", \"fp8\", \"nvfp4\", \"int4\"]");
    assert!(times[1] < 0.65 * times[0] && times[2] < 0.75 * times[1], "{times:?}");
    assert!(times[3] < 0.5 * times[0] && times[3] > 0.8 * times[2], "{times:?}");
    // Of four drafted tokens 2.8 are accepted on average where nine in ten are: with the one that a step gives anyway, 3.4 to 4.2 tokens a step.
    let drafted = tpot("\"workload.draft_acceptance\" = [0.0, 0.9]\n\"workload.draft_tokens\" = [4]");
    assert!(
        drafted[0] > times[0] && drafted[1] < times[0] / 2.0 && drafted[1] > times[0] / 5.0,
        "{drafted:?} {times:?}"
    );
}

#[test]
fn closed_form_takes_what_single_collectives_take() {
    // Joined or not, collectives that are alone take the same in sum; and no level of detail changes what is closed form.
    let axes = "\n[axes]\n\"workload.joined_layers\" = [0, 1]\n\"fidelity.mode\" = [\"packet\", \"flow\"]\n";
    let folder = folder(&format!("tp = 4\nanalytic = \"all\"\n{axes}"));
    let ttft = numbers(&folder, "o/results.csv", "ttft_mean_ns");
    assert!(ttft.iter().all(|x| (x / ttft[0] - 1.0).abs() < 1e-3), "{ttft:?}");
}

#[test]
fn experts_and_traces_are_served() {
    let moe = sweep("tp = 1\ndp = 8\nep = 4\nexpert_skew = 1.5\nrequests = \"trace\"\npath = \"t.csv\"\n")
        .replace("vocab = 1000,", "vocab = 1000, moe = { experts = 8, top_k = 2, expert_ffn = 256 },");
    let moe = ["request_count = 12\n", "request_rate = 20000.0\n", "prompt_tokens = 60\n", "output_tokens = 8\n"]
        .iter()
        .fold(moe, |text, key| text.replace(key, ""));
    let trace = "arrival_s,prompt_tokens,output_tokens\n0.0001,50,4\n0,30,1\n0.0002,9,6\n";
    let folder = Folder::new(&[("s.toml", &moe), ("t.csv", trace)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(folder.column("o/requests.csv", "prompt_tokens"), ["30", "50", "9"]);
    assert_eq!(folder.column("o/requests.csv", "arrival_ns"), ["0", "100000", "200000"]);
    assert_eq!(folder.column("o/requests.csv", "tpot_ns")[0], "");
    let flows = numbers(&folder, "o/results.csv", "flows")[0];
    assert!(flows > 0.0, "experts exchange tokens");
}

/// An instance without requests begins no step before the requests of the instances that it shares experts with.
#[test]
fn shares_of_time_add_up_where_instances_share_experts() {
    let axes = "\n[axes]\n\"workload.serving\" = [\"colocated\", \"disaggregated\"]\n\"workload.request_rate\" = [5.0, 20000.0]\n";
    let text = sweep(&format!("tp = 1\ndp = 4\nep = 4\nprefill_dp = 4\nprefill_ep = 4\nanalytic = \"all\"\n{axes}"))
        .replace("vocab = 1000,", "vocab = 1000, moe = { experts = 8, top_k = 2, expert_ffn = 256 },")
        .replace("cluster = { gpus = 8,", "cluster = {")
        .replace("[axes]\n", "[axes]\n\"cluster.gpus\" = [4, 8]\n")
        .replace("request_count = 12\nrequest_rate = 20000.0\n", "request_count = 6\n")
        + "\n[[constraints]]\nwhere = \"(workload.serving == \\\"colocated\\\") == (cluster.gpus == 4)\"\n";
    let folder = Folder::new(&[("s.toml", &text)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let of = |column: &str| numbers(&folder, "o/results.csv", column);
    let shares = ["compute_bound_share", "memory_bound_share", "launch_share", "network_share", "unused_share"].map(of);
    assert_eq!(shares[0].len(), 4);
    for i in 0..4 {
        let sum: f64 = shares.iter().map(|share| share[i]).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{i}: {sum}");
    }
    // Five requests a second leave the GPUs idle.
    let rates = of("workload.request_rate");
    assert!((0..4).all(|i| rates[i] > 5.0 || shares[4][i] > 0.9), "{:?}", shares[4]);
}

#[test]
fn a_neighbour_delays_tokens() {
    let jobs = |other: &str| {
        let text =
            sweep("").replace("[base.workload]\n", "[[job]]\nname = \"serve\"\nplacement = [0, 2, 4, 6]\ntp = 4\n");
        format!("{text}\n{other}")
    };
    let noise = "[[job]]\nname = \"other\"\nkind = \"traffic\"\npattern = \"permutation\"\nbytes = 4000000\nplacement = [1, 3, 5, 7]\n";
    let folder = Folder::new(&[("alone.toml", &jobs("")), ("both.toml", &jobs(noise))]);
    for name in ["alone", "both"] {
        let ran = folder.run(&["run", &format!("{name}.toml"), "--out", name, "--engine", "cpu", "--quiet"]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    }
    let e2e = |name: &str| numbers(&folder, &format!("{name}/requests.csv"), "e2e_ns");
    assert_eq!(folder.column("both/requests.csv", "job"), ["serve"; 12]);
    assert!(e2e("both").iter().sum::<f64>() > e2e("alone").iter().sum::<f64>());
}

#[test]
fn what_cannot_be_served_is_told() {
    for (keys, why) in [
        ("tp = 2\ncluster.gpu_memory_gib = 1.0\n", "leaves no room for keys and values"),
        ("tp = 3\n", "tp 3 x pp 1 x dp 2 are 6 GPUs"),
        ("tp = 2\nmax_batch_tokens = 16\n", "workload.max_sequences = 256"),
        ("tp = 2\ndraft_tokens = 3\n", "it must be at least 1024: each of 256 decoding sequences adds a token"),
        ("tp = 2\nprecision = \"nvfp4\"\n", "has no such units"),
        ("tp = 2\ndp = 4\nep = 3\n", "must be a multiple of it"),
        ("tp = 2\ndp = 8\n", "are 16 GPUs, but cluster.gpus = 8"),
        ("tp = 1\ndp = 1\n", "are 1 GPUs, but cluster.gpus = 8; in servers of 2 GPUs they take cluster.gpus = 2"),
        ("tp = 2\nrequests = \"trace\"\n", "workload.path"),
        ("tp = 2\nrequest_rate = 0.000001\n", "raise workload.request_rate"),
        // Not 0, which lets all arrive at once.
        ("tp = 2\nrequest_rate = 1e-300\n", "whole multiple of 0.000001"),
    ] {
        let text = keys.lines().fold(sweep(""), |text, line| {
            let key = line.split(" = ").next().unwrap();
            let kept: Vec<&str> = text.lines().filter(|l| !l.starts_with(&format!("{key} = "))).collect();
            match key.strip_prefix("cluster.") {
                Some(_) => kept.join("\n").replace("nvlink_gbps = 400", &format!("nvlink_gbps = 400, {}", &line[8..])),
                None => format!("{}\n{line}\n", kept.join("\n")),
            }
        });
        let folder = Folder::new(&[("s.toml", &text)]);
        let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu"]);
        let table = if ran.code < 2 { folder.text("o/results.csv") } else { String::new() };
        assert!(
            ran.stderr.contains(why) || ran.stdout.contains(why) || table.contains(why),
            "{keys}: {}{}{table}",
            ran.stdout,
            ran.stderr
        );
    }
}

/// What is served but has no effect, or cannot be trusted, is said; a request that has no room is named by its line.
#[test]
fn surprises_are_told() {
    let ran = |more: &str, trace: &str| {
        let text = sweep(more)
            .replace("nvlink_gbps = 400", "nvlink_gbps = 400, gpu_memory_gib = 4")
            .replace("request_count = 12\nrequest_rate = 20000.0\nprompt_tokens = 60\noutput_tokens = 8\n", "");
        let folder = Folder::new(&[("s.toml", &text), ("t.csv", trace)]);
        let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu"]);
        let table = if ran.code < 2 { folder.text("o/results.csv") } else { String::new() };
        format!("{}{}{table}", ran.stdout, ran.stderr)
    };
    let trace = "tp = 2\nchunk_tokens = 500\nrequests = \"trace\"\npath = \"t.csv\"\n";
    let said = ran(trace, "arrival_s,prompt_tokens,output_tokens\n0,50,4\n0,120,20\n");
    for wanted in [
        "1 of 2 requests are longer than the 128 tokens that small was made for; the longest has 140",
        "workload.chunk_tokens = 500 changes nothing",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let prefixes = format!("{trace}prefix_cache = true\nrequest_routing = \"prefix\"\n");
    let one_line = "arrival_s,prompt_tokens,output_tokens,prefix,prefix_tokens\n0,50,4,a,20\n";
    let one_instance = ran(&prefixes.replace("tp = 2", "tp = 4\npp = 2"), one_line);
    assert!(one_instance.contains("workload.request_routing = \"prefix\" changes nothing"), "{one_instance}");
    let several = ran(&prefixes, one_line);
    assert!(!several.contains("request_routing"), "{several}");
    let fitting = ran(&trace.replace("500", "64"), "arrival_s,prompt_tokens,output_tokens\n0,100,4\n");
    assert!(!fitting.contains("changes nothing"), "{fitting}");
    let said = ran(trace, "arrival_s,prompt_tokens,output_tokens\n1,50,4\n0,10000000,10000000\n");
    assert!(
        said.contains("t.csv line 3: the request takes memory for") && said.contains("use shorter requests"),
        "{said}"
    );
}

/// Requests that arrive almost evenly, all within the bounds, and whose answers take far longer than the time between two arrivals.
const EVEN: &str = "tp = 2\nanalytic = \"all\"\nburstiness = 100.0\nlengths = \"fixed\"\n";

#[test]
fn goodput_does_not_depend_on_the_number_of_requests() {
    let more = "\n[axes]\n\"workload.request_count\" = [50, 100, 400]\n";
    let text = sweep(&format!("{EVEN}{more}"))
        .replace("request_count = 12\n", "")
        .replace("output_tokens = 8", "output_tokens = 60");
    let folder = Folder::new(&[("s.toml", &text)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let of = |column: &str| numbers(&folder, "o/results.csv", column);
    assert_eq!(of("within_bounds"), [1.0; 3]);
    let goodput = of("goodput_rps");
    assert!(goodput.iter().all(|rate| (rate / 20_000.0 - 1.0).abs() < 0.03), "{goodput:?}");
    let served = of("requests_per_s");
    assert!(served[0] < 0.8 * served[2], "answers after the last arrival take their time: {served:?}");
    // By the rows of requests, to the digit.
    let ids = folder.column("o/requests.csv", "exp_id");
    let arrivals = numbers(&folder, "o/requests.csv", "arrival_ns");
    let of_first: Vec<f64> = ids.iter().zip(&arrivals).filter(|(id, _)| *id == "0").map(|(_, at)| *at).collect();
    let window = of_first[of_first.len() - 1] - of_first[0];
    assert!((goodput[0] / (50.0 / window * 1e9) - 1.0).abs() < 1e-6, "{}", goodput[0]);
}

#[test]
fn requests_that_arrive_at_once_are_good_over_the_time_until_the_last_token() {
    let folder = Folder::new(&[("s.toml", &sweep("tp = 2\n").replace("request_rate = 20000.0", "request_rate = 0.0"))]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let of = |column: &str| numbers(&folder, "o/results.csv", column)[0];
    assert_eq!((of("within_bounds"), of("goodput_rps")), (1.0, of("requests_per_s")));
}

#[test]
fn a_sweep_over_rates_ends_with_its_knee() {
    // The bound on the time to the first token holds until prompts queue, which they do sooner where each step takes longer.
    let axes = "\n[axes]\n\"workload.step_overhead_us\" = [0.0, 200.0]\n\"workload.request_rate\" = [4000.0, 8000.0, 16000.0, 32000.0, 64000.0, 128000.0]\n";
    let text = sweep(&format!("{EVEN}ttft_bound_ms = 1.0\n{axes}"))
        .replace("request_rate = 20000.0\n", "")
        .replace("request_count = 12", "request_count = 200");
    let folder = Folder::new(&[("s.toml", &text)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let of = |column: &str| numbers(&folder, "o/results.csv", column);
    let (rates, within) = (of("workload.request_rate"), of("within_bounds"));
    let overhead = of("workload.step_overhead_us");
    let knee = |us: f64| {
        let holds = (0..rates.len()).filter(|&i| overhead[i] == us && within[i] >= 0.99).map(|i| rates[i]);
        holds.fold(0.0, f64::max)
    };
    let (slow, fast) = (knee(200.0), knee(0.0));
    assert!(slow > 0.0 && slow < fast && fast < 128_000.0, "{slow} {fast}: {within:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let told = |rate: f64| format!("{},000 requests/s", rate / 1000.0);
    let first = lines.iter().position(|line| line.starts_with("knee: step_overhead_us 0: ")).expect(&ran.stdout);
    assert!(lines[first].contains(&told(fast)) && lines[first].contains("99 % of requests keep both bounds"));
    assert!(lines[first + 1].starts_with("  step_overhead_us 200: ") && lines[first + 1].contains(&told(slow)));
    let recommended = "recommended: step_overhead_us 0, which keeps the bounds at the highest rate; price: $";
    assert!(lines[first + 2].starts_with(recommended), "{}", lines[first + 2]);
    let page = folder.text("o/report.html");
    assert!(page.contains(&format!("\"holds\":{{\"rate\":{fast:.1},")) && page.contains("\"knees\":{"));
}
