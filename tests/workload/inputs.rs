//! Every input file written by others, simulated to its end as packets, or refused for what is wrong with the file. Sizes are scaled down so that the table takes seconds.

use std::path::Path;
use std::time::Instant;

use crate::support::inputs;
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::EngineError;
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_host::{Ending, ExperimentOutcome, QueuedExperiment, RunEvent, RunOptions};
use hyperfold_llm::workload::import;

/// The sweep that simulates a file: programs on rails of 400 Gb/s and NVSwitches, both carrying packets; topologies under a ring.
fn sweep_text(inputs: &Path, name: &str, file: &Path) -> String {
    let head = "name = \"inputs\"\n[base]\ntransport = { cc = \"dcqcn\", payload_bytes = 4000 }\n";
    let shown = file.display();
    let topology = |path: &Path, format: &str| {
        format!("topology = {{ kind = \"file\", path = \"{}\", format = \"{format}\" }}\n", path.display())
    };
    let ring = "workload = { kind = \"traffic\", pattern = \"ring\", bytes = 100000 }\n";
    let kind = name.split('/').next().unwrap_or("");
    if kind == "topology" {
        return format!("{head}{}{ring}", topology(file, if name.contains("simai") { "simai" } else { "ns3" }));
    }
    if name.ends_with(".topo") {
        return format!("{head}{}{ring}", topology(file, "htsim"));
    }
    if kind == "traffic" {
        let flows = format!("workload = {{ kind = \"flows\", path = \"{shown}\", start_unit = \"s\" }}\n");
        return format!("{head}{}{flows}", topology(&inputs.join("topology/hpcc_fat.txt"), "ns3"));
    }
    let format = import::guess(file).unwrap_or_else(|| panic!("{name}: no reader")).name();
    // The file is for 9,216 ranks and says so nowhere: the fewest of the same shape do the same program, NVLink's part of it by its cost, on one channel.
    let large = name.contains("workload_analytical");
    let (cluster, channels) = if large { ("gpus = 384", ", channels = 1") } else { ("nvlink = \"packet\"", "") };
    format!(
        "{head}cluster = {{ {cluster} }}\nworkload = {{ kind = \"{format}\", path = \"{shown}\", bytes_scale = {}{channels} }}\n",
        scale(name)
    )
}

/// How much of its bytes a file sends here.
fn scale(name: &str) -> &'static str {
    match name {
        n if n.contains("workload_analytical") => "0.00001",
        n if n.starts_with("aicb") || n.starts_with("simai") => "0.001",
        n if n.contains("pytorch") => "0.01",
        _ => "1.0",
    }
}

fn simulate(text: &str) -> Result<ExperimentOutcome, String> {
    let sweep = sweep::parse(text, Path::new("s.toml"), &SetOverrides::default()).map_err(|e| format!("{e:#}"))?;
    let config = sweep.config(&sweep.experiments[0]).map_err(|e| e.to_string())?;
    let mut result = None;
    hyperfold_host::run::<EngineError>(
        std::iter::once(QueuedExperiment { exp_id: 0, config }),
        Box::new(CpuEngine),
        &RunOptions::default(),
        || false,
        &mut |news| {
            if let RunEvent::Ended(ended) = news {
                result = Some(ended.result);
            }
            Ok(())
        },
    )
    .map_err(|e| e.to_string())?;
    match result.expect("an experiment ends") {
        Ok(outcome) => Ok(outcome),
        Err(Ending::Failed(why)) => Err(why),
        Err(other) => Err(format!("{other:?}")),
    }
}

#[test]
fn every_file_of_others_is_simulated_or_refused_for_a_reason() {
    let Some(inputs) = inputs::folder() else { return };
    let mut files = Vec::new();
    inputs::entries(&inputs, &mut files);
    let mut rows = Vec::new();
    let started = Instant::now();
    for file in files.iter().filter(|f| f.extension().is_none_or(|e| e != "md")) {
        let name = file.strip_prefix(&inputs).unwrap().display().to_string();
        let now = Instant::now();
        let row = match simulate(&sweep_text(&inputs, &name, file)) {
            Ok(o) => {
                let ends = o.flows.iter().filter(|f| f.fct_ps.is_some()).count();
                assert_eq!(ends, o.flows.len(), "{name}: messages that never arrive");
                assert!(o.makespan_ps > 0, "{name}: takes no time");
                format!("{} messages, {} packet-hops, {} ns", ends, o.packet_hops, o.makespan_ps / 1000)
            }
            Err(why) => format!("REFUSED {why}"),
        };
        println!("{name}: {row} ({:.1} s)", now.elapsed().as_secs_f64());
        rows.push(format!("{name}: {}", row.replace(&format!("{}/", inputs.display()), "")));
    }
    println!("{} files in {:.1} s", rows.len(), started.elapsed().as_secs_f64());
    insta::assert_snapshot!(rows.join("\n"));
}
