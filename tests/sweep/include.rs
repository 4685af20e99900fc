//! `include`: keys of other files, as if the sweep file had them.

use hyperfold::Sweep;
use hyperfold_config::sweep::{self, SetOverrides};

use crate::support::program::Folder;

const BELOW: &str = "[base.topology]\nlink_gbps = 100\nlink_delay_ns = 700\n\n[calibration]\nprogram = \"x\"\n";
const LATER: &str = "[base.topology]\nlink_delay_ns = 800\n";

fn sweep_text(top: &str, base: &str) -> String {
    format!(
        "name = \"s\"\n{top}\n[base]\ncluster.gpus = 4\ncluster.gpus_per_server = 1\n{base}\n[base.workload]\nkind = \"traffic\"\npattern = \"incast\"\nfan_in = 2\n[axes]\n\"workload.bytes\" = [1000, 2000]\n"
    )
}

fn keys(sweep: &Sweep) -> Vec<String> {
    sweep.experiments.iter().map(|e| e.exp_key.to_string()).collect()
}

#[test]
fn included_keys_are_as_if_written_there_and_those_of_the_sweep_win() {
    let folder = Folder::new(&[("below.toml", BELOW), ("later.toml", LATER)]);
    let path = folder.file("s.toml");
    let read = |top: &str, base: &str| Sweep::parse(&sweep_text(top, base), &path).unwrap();
    let included = read("include = [\"below.toml\"]", "");
    assert_eq!(keys(&included), keys(&read("", "topology.link_gbps = 100\ntopology.link_delay_ns = 700")));
    assert_ne!(keys(&included), keys(&read("", "")));
    let wins = read("include = [\"below.toml\"]", "topology.link_gbps = 200");
    assert_eq!(keys(&wins), keys(&read("", "topology.link_gbps = 200\ntopology.link_delay_ns = 700")));
    let both = read("include = [\"below.toml\", \"later.toml\"]", "");
    assert_eq!(keys(&both), keys(&read("", "topology.link_gbps = 100\ntopology.link_delay_ns = 800")));
    let set = SetOverrides(vec!["topology.link_gbps=50".to_string()]);
    let set = sweep::parse(&sweep_text("include = \"below.toml\"", ""), &path, &set).unwrap();
    assert_eq!(keys(&set), keys(&read("", "topology.link_gbps = 50\ntopology.link_delay_ns = 700")));
}

#[test]
fn included_files_are_inputs_and_part_of_the_resolved_sweep() {
    let folder = Folder::new(&[("below.toml", BELOW)]);
    let path = folder.file("s.toml");
    let sweep = Sweep::parse(&sweep_text("include = [\"below.toml\"]", ""), &path).unwrap();
    assert_eq!(sweep.inputs.iter().map(|i| i.path.clone()).collect::<Vec<_>>(), [folder.file("below.toml")]);
    assert_eq!(sweep.included[0].calibration, "program = \"x\"\n");
    let again = Sweep::parse(&sweep.resolved_toml, &path).unwrap();
    assert_eq!(keys(&again), keys(&sweep));
    let set = sweep.with_set(&["workload.fan_in=3".to_string()]).unwrap();
    assert_eq!(set.inputs, sweep.inputs);
    assert_eq!(set.included.len(), 1);
}

#[test]
fn included_files_lie_under_the_root() {
    let folder = Folder::new(&[("below.toml", BELOW)]);
    std::fs::create_dir(folder.file("in")).unwrap();
    folder.write("in/s.toml", &sweep_text("include = [\"../below.toml\"]", ""));
    let refused = folder.run(&["plan", "in/s.toml", "--root", "in"]);
    assert_eq!(refused.code, 2);
    for part in ["include", "../below.toml", "outside of --root in"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert_eq!(folder.run(&["plan", "in/s.toml"]).code, 0);
}
