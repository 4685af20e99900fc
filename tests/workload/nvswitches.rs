//! NVLink of topology files: NVSwitches of a server add up, and files without any know no packets inside servers.

use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_host::prepare;
use hyperfold_host::setup::prepare::prepare_tasks;

use crate::support::engine;
use crate::support::program::Folder;

/// A server of eight GPUs below one switch of 400 Gb/s, with NVSwitches of these rates.
fn server_with(nvswitches_gbps: &[u32]) -> String {
    let n = nvswitches_gbps.len() as u32;
    let ids: Vec<String> = (8..9 + n).map(|id| id.to_string()).collect();
    let mut text = format!("{} 8 {n} 1 {} H100\n{}\n", 9 + n, 8 * (n + 1), ids.join(" "));
    for (nvswitch, gbps) in (8..).zip(nvswitches_gbps) {
        (0..8).for_each(|gpu| text += &format!("{gpu} {nvswitch} {gbps}Gbps 0.000025ms 0\n"));
    }
    (0..8).for_each(|gpu| text += &format!("{gpu} {} 400Gbps 0.0005ms 0\n", 8 + n));
    text
}

/// Sixteen hosts below four switches and a spine.
fn hosts() -> String {
    let mut text = "21 5 20\n16 17 18 19 20\n".to_string();
    (0..16).for_each(|host| text += &format!("{host} {} 400Gbps 0.0005ms 0\n", 16 + host / 4));
    (16..20).for_each(|leaf| text += &format!("{leaf} 20 1600Gbps 0.0005ms 0\n"));
    text
}

/// An all-reduce on a topology file: when its last task ends, ps, and what there is to note.
fn all_reduce(file: &str, format: &str, cluster: &str, workload: &str) -> (u64, Vec<String>) {
    let folder = Folder::new(&[("net.txt", file)]);
    let text = format!(
        "name = \"n\"\n[base]\ncluster = {{ {cluster} }}\ntopology = {{ kind = \"file\", path = \"net.txt\", format = \"{format}\" }}\n\
         transport = {{ cc = \"none\" }}\nworkload = {{ kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", bytes = 4000000, {workload} }}\n"
    );
    let sweep = sweep::parse(&text, &folder.file("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let config = sweep.config(&sweep.experiments[0]).unwrap_or_else(|e| panic!("{e}"));
    let mut prepared = prepare_tasks(&config, 0).unwrap_or_else(|e| panic!("{e}"));
    engine::run_cpu(&mut prepared.built.tables);
    (prepared.built.tables.tasks.iter().map(|t| t.done).max().unwrap_or(0), prepared.notes)
}

#[test]
fn nvswitches_of_a_server_add_up() {
    for nvlink in ["packet", "analytic"] {
        for channels in [1, 4, 8] {
            let ends = |rates: &[u32]| {
                let cluster = format!("gpus = 8, nvlink = \"{nvlink}\"");
                all_reduce(&server_with(rates), "simai", &cluster, &format!("channels = {channels}")).0
            };
            assert_eq!(ends(&[900; 4]), ends(&[3600]), "{nvlink}, {channels} channels");
            assert!(ends(&[900]) > ends(&[900; 2]), "{nvlink}, {channels} channels: the rate of the file counts");
        }
    }
}

#[test]
fn the_rate_of_the_file_is_the_cost_models_too() {
    // What NCCL would choose depends on NVLink's rate; that of the key is another one.
    let ends = |nvlink: &str| {
        let folder = Folder::new(&[("net.txt", &server_with(&[900]))]);
        let text = format!(
            "name = \"n\"\n[base]\ncluster = {{ nvlink = \"{nvlink}\" }}\ntopology = {{ kind = \"file\", path = \"net.txt\", format = \"simai\" }}\n\
             workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 64000000, analytic = \"all\" }}\n"
        );
        let sweep = sweep::parse(&text, &folder.file("s.toml"), &SetOverrides::default()).unwrap();
        let config = sweep.config(&sweep.experiments[0]).unwrap();
        prepare(&config, 0).unwrap().job.and_then(|job| job.worked_out).expect("by closed form").makespan_ps
    };
    assert_eq!(ends("packet"), ends("analytic"));
}

#[test]
fn files_without_servers_know_no_packets_inside_servers() {
    for format in ["ns3", "simai"] {
        let file = match format {
            "ns3" => hosts(),
            // A file of SimAI's form may have no NVSwitch either.
            _ => hosts().replacen("21 5 20", "21 1 0 5 20 H100", 1),
        };
        let ends = |cluster: &str| all_reduce(&file, format, cluster, "channels = 1");
        let ((without, quiet), (with, notes)) = (ends("gpus = 16"), ends("gpus = 16, nvlink = \"packet\""));
        assert_eq!(with, without, "{format}");
        assert!(quiet.iter().all(|note| !note.contains("cluster.nvlink")), "{quiet:?}");
        let told = notes.iter().any(|note| note.contains("cluster.nvlink = \"packet\" has no effect"));
        // The keys alone tell it of the ns-3 form, so the sweep says it, not the experiment.
        assert_eq!(told, format == "simai", "{format}: {notes:?}");
    }
}

#[test]
fn plan_and_run_say_that_the_key_has_no_effect() {
    let sweep = "name = \"n\"\n[base]\ncluster = { gpus = 16, nvlink = \"packet\" }\ntopology = { kind = \"file\", path = \"net.txt\" }\n\
                 workload = { kind = \"collective\", op = \"all-reduce\", bytes = 100000 }\n";
    let folder = Folder::new(&[("s.toml", sweep), ("net.txt", &hosts())]);
    for args in [&["plan", "s.toml"][..], &["run", "s.toml", "--out", "o"]] {
        let ran = folder.run(args);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == 0 && said.contains("`cluster.nvlink` has no effect on any experiment"), "{args:?}: {said}");
    }
}

#[test]
fn a_switch_without_links_is_noted() {
    let file = hosts().replacen("21 5 20\n16 17 18 19 20", "23 7 20\n16 17 18 19 20 21 22", 1);
    let (_, notes) = all_reduce(&file, "ns3", "gpus = 16", "channels = 1");
    assert!(notes.iter().any(|note| note.contains("switches 21, 22 have no links")), "{notes:?}");
    let (_, notes) = all_reduce(&hosts(), "ns3", "gpus = 16", "channels = 1");
    assert!(notes.iter().all(|note| !note.contains("no links")), "{notes:?}");
}
