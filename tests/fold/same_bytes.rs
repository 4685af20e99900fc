//! Random training and collective sweeps give one result, whatever the memo: none, empty, warm, full, or shared by two
//! runs.

use crate::runs::Sweep;
use crate::support::random::Rng;
use crate::support::soak;

/// Files whose bytes must be the same. `stats.csv` counts what the memo did.
const FILES: [&str; 4] = ["results.csv", "flows.csv", "links.csv", "rtt_means.csv"];

const CONTROLS: [&str; 6] = ["dcqcn", "hpcc", "dcqcn", "timely", "dcqcn", "dctcp"];

/// The sweep of `seed`: two or three experiments that are alike, of training or of a collective.
pub fn sweep_of(seed: u64) -> String {
    let mut rng = Rng::new(seed ^ 0x5a5a_0000);
    let gpus = rng.pick(&[8, 16, 16, 24]);
    let per_server = if rng.chance(60) { 8 } else { rng.pick(&[1, 2, 4]) };
    let named = per_server == 8 && rng.chance(50);
    let link = rng.pick(&[100, 200, 400]);
    let uplink = rng.pick(&[link, link, 200, 400]);
    let control = CONTROLS[(seed % CONTROLS.len() as u64) as usize];
    let kind = rng.pick(&["rail-optimized", "rail-optimized", "rail-optimized", "fat-tree", "clos"]);
    let payload = rng.pick(&[4000, 4096, 8192]);
    let mode = if rng.chance(25) { "rates" } else { "steady" };
    let cluster = if named { "server = \"dgx-a100\"".to_owned() } else { format!("gpus_per_server = {per_server}") };
    let links = if named { String::new() } else { format!("link_gbps = {link}, ") };
    let mut text = format!(
        "name = \"same\"\nseed = {}\n[base]\ncluster = {{ gpus = {gpus}, {cluster} }}\n\
         topology = {{ kind = \"{kind}\", {links}uplink_gbps = {uplink} }}\n\
         transport = {{ cc = \"{control}\", payload_bytes = {payload} }}\noutput = {{ flows = true, links = true, rtt_means = true }}\n\
         fidelity = {{ fast_forward = \"{mode}\"{} }}\n",
        rng.range(1, 9),
        rng.pick(&["", "", ", audit = 0.0", ", audit = 0.1", ", steady_theta = 0.1", ", steady_samples = 8"]),
    );
    if rng.chance(70) {
        text += &training(&mut rng, gpus, per_server);
    } else {
        text += &collective(&mut rng);
    }
    text += &match rng.range(0, 3) {
        0 => "[axes]\n\"topology.link_delay_ns\" = [1000, 600]\n".to_string(),
        1 => format!("[axes]\n\"topology.uplink_gbps\" = [{uplink}, {}]\n", uplink * 2),
        2 => "[axes]\n\"transport.seed\" = [1, 2]\n".to_string(),
        _ => format!("[axes]\n\"transport.cc\" = [\"{control}\", \"none\"]\n"),
    };
    text
}

fn training(rng: &mut Rng, gpus: u64, per_server: u64) -> String {
    let most = gpus.min(per_server);
    let tp = if most >= 4 && rng.chance(25) { rng.pick(&[2, 4]) } else { 1 };
    let pp = if rng.chance(20) { 2 } else { 1 };
    let dp = gpus / (tp * pp);
    let (layers, hidden) = (rng.pick(&[2, 4, 8]), rng.pick(&[256, 512, 512, 768]));
    let microbatch = rng.pick(&[1, 2, 4]);
    format!(
        "[base.workload]\nkind = \"model\"\ntp = {tp}\npp = {pp}\nzero = {}\nmicrobatch = {microbatch}\nglobal_batch = {}\niterations = {}\n\
         model = {{ name = \"small\", source = \"our choice\", transformer = {{ layers = {layers}, hidden = {hidden}, heads = 8, vocab = {}, seq = {} }} }}\n",
        rng.pick(&[0, 1, 1]),
        dp * microbatch * rng.pick(&[1, 2, 4]),
        rng.pick(&[1, 1, 2]),
        rng.pick(&[8192, 50_257]),
        rng.pick(&[64, 128, 512]),
    )
}

fn collective(rng: &mut Rng) -> String {
    format!(
        "[base.workload]\nkind = \"collective\"\nop = \"{}\"\nbytes = {}\niterations = {}\nchannels = {}\n",
        rng.pick(&["all-reduce", "all-reduce", "all-gather", "reduce-scatter", "all-to-all"]),
        rng.range(1, 64) * rng.pick(&[500_000, 2_097_152]),
        rng.range(1, 3),
        rng.pick(&[1, 2, 4, 8]),
    )
}

/// The bytes of all results in `out`.
fn bytes(sweep: &Sweep, out: &str) -> Vec<Vec<u8>> {
    let folder = sweep.root.path().join(out);
    FILES.map(|file| std::fs::read(folder.join(file)).unwrap_or_default()).into()
}

/// Says which file of the run `out` differs from that of the run `off`, and where.
fn differs(sweep: &Sweep, out: &str) -> Option<String> {
    let (off, is) = (bytes(sweep, "off"), bytes(sweep, out));
    let k = (0..FILES.len()).find(|&k| off[k] != is[k])?;
    let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
    let (off, is) = (lines(&off[k]), lines(&is[k]));
    let line = (0..off.len().max(is.len())).find(|&n| off.get(n) != is.get(n))?;
    Some(format!("{} of {out}, line {}:\n{:?}\nwithout a memo:\n{:?}", FILES[k], line + 1, is.get(line), off.get(line)))
}

/// Runs every other experiment of the sweep as `first` says, and carries on with the rest as `then` says.
fn resumed(sweep: &Sweep, out: &str, first: &[&str], then: &[&str]) {
    sweep.run("half", &[&["--shard", "0/2"], first].concat());
    let merged = std::process::Command::new(env!("CARGO_BIN_EXE_hyperfold"))
        .arg("merge")
        .arg(sweep.root.path().join("half"))
        .arg("--out")
        .arg(sweep.root.path().join(out))
        .output()
        .expect("the program runs");
    assert_eq!(merged.status.code(), Some(1), "experiments are missing: {}", String::from_utf8_lossy(&merged.stderr));
    sweep.run(out, &[&["--resume"], then].concat());
}

/// Runs the sweep of `seed` in every way and checks that all give what it gives without a memo.
fn check(seed: u64) {
    let text = sweep_of(seed);
    let sweep = Sweep::new(&[], &text);
    let (memo, shared) =
        (sweep.memo(), sweep.root.path().join("shared.bin").to_str().expect("a path is text").to_owned());
    sweep.run("off", &["--memo", "off"]);
    sweep.run("cold", &[]);
    sweep.run("kept", &["--memo", &memo, "--jobs", "2"]);
    sweep.run("warm", &["--memo", &memo]);
    // An eighth of this is for the memo: 13 MiB.
    sweep.run("full", &["--memory", "0.1"]);
    std::thread::scope(|scope| {
        for out in ["one", "two"] {
            let (sweep, shared) = (&sweep, &shared);
            scope.spawn(move || sweep.run(out, &["--memo", shared]));
        }
    });
    resumed(&sweep, "resumed", &["--memo", "off"], &["--memo", &memo]);
    for out in ["cold", "kept", "warm", "full", "one", "two", "resumed"] {
        if let Some(difference) = differs(&sweep, out) {
            panic!("seed {seed}: {difference}\n{text}");
        }
    }
}

/// How many packet-hops the sweep of `seed` simulates by default, audits included, for each one that it needs.
fn cost(seed: u64) -> f64 {
    let sweep = Sweep::new(&[], &sweep_of(seed));
    sweep.run("cost", &["--set", "fidelity.fast_forward=steady"]);
    let sum = |file, name| sweep.column("cost", file, name).iter().sum::<f64>();
    let simulated = sum("stats.csv", "packet_hops_simulated") + sum("stats.csv", "audit_hops");
    simulated / sum("results.csv", "packet_hops").max(1.0)
}

/// A switch that fills up before anything is skipped costs little (found with these seeds, at between 1.5 and 2.5 times what every packet takes).
#[test]
fn skipping_costs_little_where_it_gains_nothing() {
    for seed in [1046, 1060, 1102, 1118] {
        let cost = cost(seed);
        assert!(cost < 1.06, "seed {seed}: {cost}");
    }
}

#[test]
fn random_sweeps_give_one_result_whatever_the_memo() {
    // The first three gave other bytes with a memo.
    [1067, 1106, 1134, 1000, 1003, 1010].into_iter().for_each(check);
}

/// More of the same, for a third of `HYPERFOLD_SOAK_MINUTES`.
#[test]
#[ignore = "soak: random sweeps for minutes; scripts/test.sh --soak and CI run it"]
fn soak_random_sweeps_give_one_result_whatever_the_memo() {
    let seeds = soak::third(|from| {
        check(from);
        1
    });
    println!("{seeds} random sweeps");
}
