//! How long pauses hold links, as a user sees it.

use crate::support::program::Folder;

/// An all-to-all over two leaves with small buffers, held back by pauses alone or by HPCC too.
const SWEEP: &str = "name = \"paused\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\n\
    topology = { kind = \"clos\", hosts_per_leaf = 4, spines = 1, link_gbps = 100, buffer_mib = 1 }\n\
    workload = { kind = \"collective\", op = \"all-to-all\", algorithm = \"direct\", bytes = 8000000 }\n\
    transport.payload_bytes = 4096\noutput.links = true\n\
    [axes]\n\"transport.cc\" = [\"none\", \"hpcc\"]\n";

fn run(folder: &Folder, out: &str, more: &[&str]) {
    let mut arguments = vec!["run", "sweep.toml", "--out", out, "--engine", "cpu", "--quiet"];
    arguments.extend(more);
    let ran = folder.run(&arguments);
    assert_eq!(ran.code, 0, "{out}: {}", ran.stderr);
}

#[test]
fn paused_times_of_links_add_up_and_have_the_same_bytes_however_a_run_goes() {
    for classes in ["", "transport.classes = [\"a for tp\", \"b\"]\n"] {
        let sweep = SWEEP.replace("[axes]", &format!("{classes}[axes]"));
        let folder = Folder::new(&[("sweep.toml", &sweep)]);
        let mut bytes = Vec::new();
        for (out, more) in [
            ("one", vec!["--jobs", "1"]),
            ("two", vec!["--jobs", "2"]),
            ("memo-off", vec!["--memo", "off"]),
            ("exact", vec!["--set", "fidelity.fast_forward=\"exact\""]),
            ("off", vec!["--set", "fidelity.fast_forward=\"off\""]),
        ] {
            run(&folder, out, &more);
            let links = folder.bytes(&format!("{out}/links.csv"));
            let columns = ["pfc_pauses", "pfc_paused_ns", "pfc_paused_max_ns", "makespan_ns"];
            bytes.push((links, columns.map(|name| folder.column(&format!("{out}/results.csv"), name))));
        }
        bytes.dedup();
        assert_eq!(bytes.len(), 1, "{classes}: all ways to run come to the same");
        let links = |column: &str| folder.column("one/links.csv", column);
        let numbers = |column: &str| -> Vec<f64> { links(column).iter().map(|text| text.parse().unwrap()).collect() };
        let (ids, paused, pauses) = (links("exp_id"), numbers("pfc_paused_ns"), numbers("pfc_pauses"));
        for (row, (paused, pauses)) in paused.iter().zip(&pauses).enumerate() {
            assert_eq!(*paused > 0.0, *pauses > 0.0, "row {row}: {pauses} pauses, {paused} ns");
        }
        let results = |column: &str| -> Vec<f64> {
            folder.column("one/results.csv", column).iter().map(|text| text.parse().unwrap()).collect()
        };
        let (sums, most, makespans) = (results("pfc_paused_ns"), results("pfc_paused_max_ns"), results("makespan_ns"));
        for id in 0..sums.len() {
            let own = || paused.iter().zip(&ids).filter(|(_, of)| **of == id.to_string()).map(|(paused, _)| *paused);
            assert!((own().sum::<f64>() - sums[id]).abs() < 0.01, "experiment {id}");
            assert_eq!(own().fold(0.0, f64::max), most[id], "experiment {id}");
            assert!(most[id] < makespans[id], "experiment {id}: one class is used");
        }
        assert!(sums[0] > 0.1 * makespans[0] && sums[0] > 2.0 * sums[1], "{sums:?}: HPCC spares pauses");
    }
}

#[test]
fn comparisons_show_paused_times_by_what_links_join() {
    let folder = Folder::new(&[("sweep.toml", SWEEP)]);
    run(&folder, "out", &[]);
    let said = folder.run(&["compare", "out", "--explain", "0", "--json"]).stdout;
    let lines: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&serde_json::Value> = lines.iter().filter(|line| line["kind"] == "explain_link_kinds").collect();
    let sum_ns: f64 = kinds.iter().map(|kind| kind["pfc_paused_ns"].as_f64().unwrap()).sum();
    let all_ns: f64 = folder.column("out/results.csv", "pfc_paused_ns")[0].parse().unwrap();
    assert!(kinds.len() == 4 && all_ns > 0.0 && (sum_ns - all_ns).abs() < 0.01, "{kinds:?} {all_ns}");
    let gated = folder.run(&["compare", "out", "--metric", "pfc_paused_ns"]);
    assert_eq!(gated.code, 0, "{}", gated.stderr);
    assert!(gated.stdout.contains("pfc_paused_ns"), "{}", gated.stdout);
}

#[test]
fn flows_without_packets_are_not_paused() {
    let folder = Folder::new(&[("sweep.toml", SWEEP)]);
    run(&folder, "out", &["--set", "fidelity.mode=\"flow\""]);
    for (file, column) in [("results", "pfc_paused_ns"), ("results", "pfc_paused_max_ns"), ("links", "pfc_paused_ns")] {
        let values = folder.column(&format!("out/{file}.csv"), column);
        assert!(!values.is_empty() && values.iter().all(String::is_empty), "{file} {column}: {values:?}");
    }
}
