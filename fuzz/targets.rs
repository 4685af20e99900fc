//! What is fuzzed: a function a parser, with files to begin from. Whatever the bytes are, it must return.
//!
//! The programs in `fuzz_targets` hand it the bytes of libFuzzer; `tests/sweep/fuzz_targets.rs` those of seeded mutations.

use std::collections::BTreeMap;
use std::path::Path;

use hyperfold_base::budget;
use hyperfold_config::spec::read_ns3_config;
use hyperfold_config::sweep::conditions::condition::{Condition, ConditionNames, Val};
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_fold as fold;
use hyperfold_host::memo_file::memo_store::MemoStore;
use hyperfold_llm::collective::{Env, nccl};
use hyperfold_llm::compute::{Gpu, SlowdownTable, Trees, UserDatabase};
use hyperfold_llm::model::Model;
use hyperfold_llm::workload::dag::{parse_dag_csv, parse_dag_toml};
use hyperfold_llm::workload::import::{ImportOptions, chakra, flight_recorder, goal, htsim, kineto, simai};
use hyperfold_llm::workload::{Cdf, StartUnit, parse_flows};
use hyperfold_network::routing::{FlowKey, RouteFile};
use hyperfold_network::topology::{Network, parse_htsim, parse_ns3, parse_simai};
use hyperfold_results::JournalReader;
use hyperfold_validation::calibrate::{ProfilerRows, ProfilerStatistic, calibration_rows, nccl_tests, profiler_rows};

/// A parser.
pub struct FuzzTarget {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Files and folders to begin from, from the repository's root.
    pub seeds: &'static [&'static str],
}

const fn target(name: &'static str, run: fn(&[u8]), seeds: &'static [&'static str]) -> FuzzTarget {
    FuzzTarget { name, run, seeds }
}

/// All of them. Each has a program of its name in `fuzz_targets`.
pub const TARGETS: &[FuzzTarget] = &[
    target("cdf", cdf, &["tests/corpus/cdf", "assets/flow_cdf"]),
    target("chakra", chakra_trace, &["fuzz/seeds/chakra"]),
    target("condition", condition, &["fuzz/seeds/condition"]),
    target("dag_csv", dag_csv, &["experiments/contention/dumbbell-4.csv", "experiments/contention/incast-4.csv"]),
    target("dag_toml", dag_toml, &["fuzz/seeds/dag_toml"]),
    target("flight_recorder", flight_recorder_dump, &["fuzz/seeds/flight_recorder"]),
    target("flows", flows, &["tests/corpus/flows"]),
    target("goal", goal_schedule, &["tests/corpus/goal"]),
    target("gpu", gpu, &["fuzz/seeds/gpu"]),
    target("htsim", htsim_matrix, &["tests/corpus/htsim"]),
    target("journal", journal, &["fuzz/seeds/journal"]),
    target("journal_entry", journal_entry, &["fuzz/seeds/journal_entry"]),
    target("kernels", kernels, &["fuzz/seeds/kernels"]),
    target("kineto", kineto_trace, &["fuzz/seeds/kineto"]),
    target("measured_rows", measured_rows, &["experiments/validation/collectives/aws-p5-2.csv"]),
    target("memo", memo, &["fuzz/seeds/memo"]),
    target("memo_record", memo_record, &["fuzz/seeds/memo_record"]),
    target("model", model, &["experiments/wormhole-models"]),
    target("nccl_env", nccl_env, &["fuzz/seeds/nccl_env"]),
    target("nccl_xml", nccl_xml, &["fuzz/seeds/nccl_xml"]),
    target("nccl_tests", nccl_tests_log, &["experiments/calibration"]),
    target("ns3_config", ns3_config, &["tests/corpus/config", "experiments/reference-cases/hpcc.config.txt"]),
    target("profiler", profiler_trace, &["fuzz/seeds/profiler"]),
    target("routes", routes, &["tests/corpus/routes"]),
    target("simai", simai_workload, &["tests/corpus/simai"]),
    target("slowdown_table", slowdown_table, &["fuzz/seeds/slowdown_table"]),
    target("slowdown_trees", slowdown_trees, &["tests/workload/compute_data/slowdown_model.json"]),
    target("sweep", sweep_file, &["tests/corpus/sweep", "experiments/quickstart.toml", "experiments/studies"]),
    target("topology_htsim", topology_htsim, &["tests/corpus/topo"]),
    target("topology_ns3", topology_ns3, &["tests/corpus/topology"]),
    target("topology_simai", topology_simai, &["tests/corpus/topology"]),
];

/// Runs the target of that name.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|t| t.name == name).expect("the programs are named after the targets");
    // Memory is limited as when the program prepares an experiment: what would take more is given up.
    let _ = budget::within(256 << 20, || (target.run)(data));
}

/// The text of bytes; readers refuse what is none before they look at it.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

fn sweep_file(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(s) = sweep::parse(text, Path::new("fuzz.toml"), &SetOverrides::default()) {
        // What cannot be is its own row's failure.
        for e in s.experiments.iter().filter(|e| s.cannot_run(e).is_none()).take(3) {
            let config = s.config(e).expect("expansion has checked it");
            let _ = config.transport(100_000_000_000);
        }
    }
}

struct Names;

impl ConditionNames for Names {
    fn knows(&self, name: &str) -> bool {
        ["a", "b.c", "b.c-d", "e_f"].contains(&name)
    }
    fn unknown(&self, name: &str) -> String {
        format!("there is no {name}")
    }
    fn example(&self) -> &'static str {
        "a == 1"
    }
}

fn condition(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(condition) = Condition::parse(text, &Names) {
        for value in [Val::Int(i64::MIN), Val::Int(0), Val::Float(f64::NAN), Val::Bool(true)] {
            let _ = condition.holds(|_| value);
        }
    }
}

fn ns3_config(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = read_ns3_config(text, Path::new("fuzz.txt"));
}

fn topology_ns3(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(file) = parse_ns3("fuzz", text) {
        file.network.validate().expect("what is read is sound");
    }
}

fn topology_simai(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(file) = parse_simai("fuzz", text) {
        file.network.validate().expect("what is read is sound");
    }
}

fn topology_htsim(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(file) = parse_htsim("fuzz", text) {
        file.network.validate().expect("what is read is sound");
    }
}

fn star() -> Network {
    parse_ns3("star", include_str!("../tests/corpus/topology/ok-star.ns3")).expect("it is sound").network
}

fn flows(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let network = star();
    for unit in [None, Some(StartUnit::Ns), Some(StartUnit::S)] {
        let _ = parse_flows("fuzz", text, &network, unit);
    }
}

fn routes(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let network = star();
    let list = include_str!("../tests/corpus/flows/ok-ns.txt");
    let flows = parse_flows("flows", list, &network, Some(StartUnit::Ns)).expect("it is sound").flows;
    let _ = RouteFile::parse("fuzz", text, &network, flows.iter().map(FlowKey::from));
}

fn cdf(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(cdf) = Cdf::parse("fuzz", text) {
        assert!(cdf.mean() >= 0.0 && cdf.quantile(1.0) >= cdf.quantile(0.3));
    }
}

fn options() -> [ImportOptions; 2] {
    let speeds = ImportOptions { flops_per_s: 1_000_000, memory_bytes_per_s: 1, ..ImportOptions::default() };
    [ImportOptions { ranks: Some(3), ..ImportOptions::default() }, speeds]
}

fn chakra_trace(data: &[u8]) {
    for options in options() {
        let _ = chakra::parse("fuzz", &[("fuzz.0.et".to_string(), data.to_vec())], None, &options);
    }
    // The members of groups are a file of text beside the traces.
    let Some(text) = text(data) else { return };
    let trace = include_bytes!("seeds/chakra/trace.0.et").to_vec();
    let _ = chakra::parse("fuzz", &[("fuzz.0.et".to_string(), trace)], Some(("groups", text)), &options()[0]);
}

fn goal_schedule(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = goal::parse("fuzz", text, &ImportOptions::default());
}

fn htsim_matrix(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = htsim::parse("fuzz", text, &ImportOptions::default());
}

fn simai_workload(data: &[u8]) {
    let Some(text) = text(data) else { return };
    options().iter().for_each(|options| drop(simai::parse("fuzz", text, options)));
}

fn dag_csv(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = parse_dag_csv("fuzz", text, Some(8));
}

fn dag_toml(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = parse_dag_toml("fuzz", text, Some(8));
}

fn model(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = Model::parse(text, "fuzz");
}

fn gpu(data: &[u8]) {
    if let Some(table) = text(data).and_then(|text| text.parse().ok()) {
        let _ = Gpu::parse(&table);
    }
}

fn kernels(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = UserDatabase::parse("fuzz", text);
}

fn slowdown_table(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = SlowdownTable::parse("fuzz", text);
}

fn slowdown_trees(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = Trees::parse("fuzz", text);
}

fn nccl_tests_log(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for in_place in [false, true] {
        if let Ok(log) = nccl_tests(&text, "fuzz", Some("all-reduce"), in_place) {
            let _ = (log.csv("fuzz"), log.sweep("fuzz", "dgx-h100", None));
        }
    }
}

fn kineto_trace(data: &[u8]) {
    let named = |rank: u32, data: &[u8]| (format!("rank{rank}.json"), data.to_vec());
    for options in options() {
        let _ = kineto::parse("fuzz", &[named(0, data)], &options);
    }
    let other =
        String::from_utf8_lossy(include_bytes!("seeds/kineto/rank0.json")).replace("\"rank\": 0", "\"rank\": 1");
    let _ = kineto::parse("fuzz", &[named(0, data), named(1, other.as_bytes())], &ImportOptions::default());
}

fn flight_recorder_dump(data: &[u8]) {
    let named = |rank: u32, data: &[u8]| (format!("rank{rank}.json"), data.to_vec());
    let other = include_bytes!("seeds/flight_recorder/rank0.json");
    for wait_for_calls in [false, true] {
        for options in options() {
            let options = ImportOptions { wait_for_calls, ..options };
            let _ = flight_recorder::parse("fuzz", &[named(0, data)], &options);
            let _ = flight_recorder::parse(
                "fuzz",
                &[named(0, data), named(1, other)],
                &ImportOptions { ranks: None, ..options },
            );
        }
    }
}

fn profiler_trace(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for rows in [ProfilerRows::Steps, ProfilerRows::Compute, ProfilerRows::Collectives, ProfilerRows::Kernels("h100")] {
        let _ = profiler_rows(&text, "fuzz", rows, ProfilerStatistic::Median);
    }
}

fn measured_rows(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let sweep = include_str!("../experiments/validation/collectives/aws-p5-2.toml");
    let sweep = sweep::Sweep::parse(sweep, Path::new("fuzz.toml")).expect("the sweep of the seeds is sound");
    let _ = calibration_rows(text, "fuzz", &sweep, Some(2));
}

fn nccl_xml(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = nccl::topology(text);
}

fn nccl_env(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let _ = Env::parse(&pairs.map(|(k, v)| (k.to_string(), v.to_string())).collect::<BTreeMap<_, _>>());
}

fn journal(data: &[u8]) {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    std::fs::write(folder.path().join("journal.bin"), data).expect("it can be written");
    if let Ok(reader) = JournalReader::open(folder.path()) {
        for part in reader.parts().values() {
            reader.read(*part).expect("it was sound a moment ago");
        }
    }
    hyperfold_results::losses(folder.path());
}

fn journal_entry(data: &[u8]) {
    hyperfold_results::is_journal_entry(data);
}

fn memo(data: &[u8]) {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let path = folder.path().join("memo");
    std::fs::write(&path, data).expect("it can be written");
    MemoStore::open(&path, 1 << 20).warnings();
}

fn memo_record(data: &[u8]) {
    fold::is_record(data);
}
