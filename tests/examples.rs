//! The programs under `examples/` run.

#![forbid(unsafe_code)]

#[path = "../examples/own_collective.rs"]
mod own_collective;
#[path = "../examples/own_policies.rs"]
mod own_policies;
#[path = "../examples/own_routing.rs"]
mod own_routing;
#[path = "../examples/own_topology.rs"]
mod own_topology;
#[path = "../examples/plot_column.rs"]
mod plot_column;
#[path = "../examples/quick_sweep.rs"]
mod quick_sweep;
#[path = "../examples/sweep_in_code.rs"]
mod sweep_in_code;
#[path = "../examples/typed_sweep.rs"]
mod typed_sweep;

#[test]
fn a_sweep_of_a_few_lines() {
    quick_sweep::main().unwrap();
}

#[test]
fn a_sweep_made_in_code() {
    sweep_in_code::main().unwrap();
}

#[test]
fn a_network_of_ones_own() {
    own_topology::main().unwrap();
}

#[test]
fn a_collective_of_ones_own() {
    own_collective::main().unwrap();
}

#[test]
fn a_routing_policy_of_ones_own() {
    own_routing::main().unwrap();
}

#[test]
fn policies_of_ones_own_by_name() {
    own_policies::main().unwrap();
}

#[test]
fn a_sweep_with_typed_keys() {
    typed_sweep::main().unwrap();
}

#[test]
fn a_folder_read_back() {
    plot_column::main().unwrap();
}

#[test]
fn every_example_is_run_and_fits_a_page() {
    let root = env!("CARGO_MANIFEST_DIR");
    let tests = std::fs::read_to_string(format!("{root}/tests/examples.rs")).unwrap();
    for entry in std::fs::read_dir(format!("{root}/examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(tests.contains(&format!("{name}::main()")), "examples/{name}.rs is not run here");
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 60, "examples/{name}.rs has {lines} lines; 60 is the most");
    }
}
