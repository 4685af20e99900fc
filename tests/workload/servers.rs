//! Servers of all kinds carry collectives to their end, and what decides them does decide.

use std::path::Path;

use hyperfold_columns::status;
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::{cpu, grow};
use hyperfold_host::setup::prepare::prepare_tasks;
use hyperfold_host::{Prepared, prepare};
use hyperfold_llm::workload::tasks::Work;

use crate::support::program::{Folder, hyperfold};

fn config(base: &str) -> hyperfold_config::spec::Config {
    let text = format!("name = \"servers\"\n[base]\n{base}\n");
    let sweep = sweep::parse(&text, Path::new("servers.toml"), &SetOverrides(Vec::new()))
        .unwrap_or_else(|e| panic!("{base}: {e}"));
    sweep.config(&sweep.experiments[0]).unwrap_or_else(|e| panic!("{base}: {e}"))
}

fn prepared(base: &str) -> Prepared {
    prepare_tasks(&config(base), 0).unwrap_or_else(|e| panic!("{base}: {e}"))
}

fn refused(base: &str) -> String {
    match prepare(&config(base), 0) {
        Ok(_) => panic!("{base} is accepted"),
        Err(e) => e.to_string(),
    }
}

/// An all-reduce by rings on 16 GPUs; gives the end of the last task, in ps.
fn all_reduce(cluster: &str, more: &str) -> u64 {
    let base = format!(
        "cluster = {{ gpus = 16, {cluster} }}\nworkload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 4000000, algorithm = \"ring\"{more} }}"
    );
    ended(&base)
}

/// When the last task of an experiment ends, ps.
fn ended(base: &str) -> u64 {
    let mut tables = prepared(base).built.tables;
    loop {
        cpu::run(&mut tables.view(), u32::MAX);
        match tables.exps[0].status {
            status::NEEDS_PACKETS => grow::grow(&mut tables.view(), u32::MAX as u64).unwrap(),
            status::DONE => break,
            other => panic!("{base}: status {other}"),
        }
    }
    tables.tasks.iter().map(|t| t.done).max().unwrap()
}

#[test]
fn every_kind_of_server_ends_its_collectives() {
    for server in ["dgx-h100", "oci-a100", "hgx-a100-4nic", "dgx-1v", "pcie-gen4", "aws-p5", "gb200-tray"] {
        for nvlink in ["analytic", "packet"] {
            let end = all_reduce(&format!("server = \"{server}\", nvlink = \"{nvlink}\""), "");
            assert!(end > 1_000_000, "{server} {nvlink}: {end} ps");
        }
    }
}

#[test]
fn gpus_of_one_nic_reach_each_other_without_nvlink() {
    let own = all_reduce("nics_per_server = 8", ", nccl = { NCCL_P2P_DISABLE = 1 }");
    let shared = all_reduce("nics_per_server = 2", ", nccl = { NCCL_P2P_DISABLE = 1 }");
    let nvlink = all_reduce("nics_per_server = 2", "");
    assert!(shared > own && shared > nvlink, "{own} {shared} {nvlink}");
}

#[test]
fn fewer_nics_by_hca_take_longer() {
    let all = all_reduce("nics_per_server = 4", "");
    let one = all_reduce("nics_per_server = 4", ", nccl = { NCCL_IB_HCA = \"mlx5_2\" }");
    let but_one = all_reduce("nics_per_server = 4", ", nccl = { NCCL_IB_HCA = \"^mlx5_2,mlx5_0,mlx5_1\" }");
    assert!(one > 2 * all, "{all} {one}");
    assert_eq!(one, but_one);
    let why = refused(
        "cluster = { gpus = 16 }\nworkload = { kind = \"collective\", op = \"all-reduce\", nccl = { NCCL_IB_HCA = \"eth0\" } }",
    );
    assert!(why.contains("eth0") && why.contains("mlx5_7"), "{why}");
}

#[test]
fn queue_pairs_take_a_nics_links_in_turn() {
    let p = prepared(
        "cluster = { gpus = 2, gpus_per_server = 1, nic_ports = 2 }\nworkload = { kind = \"collective\", op = \"send-recv\", qps_per_connection = 2, split_data_on_qps = true }",
    );
    let t = &p.built.tables;
    for host in 0..2 {
        let mine = t
            .flow_tx
            .iter()
            .filter(|f| t.nics[f.nic].rate == 200_000_000_000 && f.nic.0 / 2 == host)
            .map(|f| f.nic)
            .collect::<std::collections::BTreeSet<_>>();
        assert_eq!(mine.len(), 2, "both links of host {host} are used");
    }
    let why =
        refused("cluster = { gpus = 16, nic_ports = 3 }\nworkload = { kind = \"collective\", op = \"all-reduce\" }");
    assert!(why.contains("cluster.nic_ports"), "{why}");
}

#[test]
fn too_small_pieces_are_refused_before_memory_runs_out() {
    let why = refused(
        "cluster = { gpus = 128 }\nworkload = { kind = \"collective\", op = \"all-reduce\", bytes = 1000000000, chunk_kib = 4, algorithm = \"ring\" }",
    );
    assert!(why.contains("workload.chunk_kib") && why.contains("4096"), "{why}");
}

#[test]
fn flags_of_protocols_are_on_the_wire() {
    let sent = |protocol: &str| -> u64 {
        let p = prepared(&format!(
            "cluster = {{ gpus = 2, gpus_per_server = 1 }}\nworkload = {{ kind = \"collective\", op = \"broadcast\", bytes = 1200, algorithm = \"ring\", channels = 1, protocol = \"{protocol}\" }}"
        ));
        let job = p.job.expect("a collective is a job");
        job.graph.tasks.iter().map(|t| if let Work::Message { bytes, .. } = t.work { bytes } else { 0 }).sum()
    };
    assert_eq!((sent("Simple"), sent("LL"), sent("LL128")), (1200, 2400, 1280));
}

#[test]
fn fp8_needs_units_that_compute_in_it() {
    let why = refused(
        "cluster = { gpu = \"a100\", gpus = 8 }\nworkload = { kind = \"model\", model = \"gpt3-6.7b\", tp = 8, fp8 = true }",
    );
    assert!(why.contains("workload.fp8") && why.contains("a100") && why.contains("h100"), "{why}");
}

#[test]
fn a_file_in_nccls_form_describes_servers() {
    let dir = tempfile::tempdir().unwrap();
    let gpu =
        |d: u32| format!("<pci link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"{d}\" sm=\"80\"/></pci>");
    let nic = |n: &str| {
        format!(
            "<pci link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"{n}\" speed=\"100000\"/><net name=\"{n}\" speed=\"100000\"/></nic></pci>"
        )
    };
    let cpu = |c: u32| {
        format!(
            "<cpu numaid=\"{c}\" vendor=\"AuthenticAMD\"><pci link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">{}{}{}</pci></cpu>",
            gpu(2 * c),
            gpu(2 * c + 1),
            nic(&format!("mlx5_{c}"))
        )
    };
    let path = dir.path().join("server.xml");
    std::fs::write(&path, format!("<system>{}{}</system>", cpu(0), cpu(1))).unwrap();
    let base = |per_server: u32| {
        format!(
            "cluster = {{ gpus = 16, gpu = \"a100\", gpus_per_server = {per_server}, server_xml = {:?} }}\nworkload = {{ kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\" }}",
            path.display().to_string()
        )
    };
    let why = refused(&base(8));
    assert!(why.contains("cluster.gpus_per_server = 4"), "{why}");
    let net = prepared(&base(4)).network;
    // Two NICs of two links each in four servers; two GPUs to a NIC.
    assert_eq!(net.ranks[..8], [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(net.links.iter().filter(|l| l.a == 0).map(|l| l.rate_bps).collect::<Vec<_>>(), [100_000_000_000; 2]);
    // PCIe of 16 GT/s x16 by its data sheet.
    assert_eq!(net.nvlink.map(|n| n.rate_bps / 1_000_000_000), Some(256));
}

#[test]
fn experiments_on_other_transports_share_their_job() {
    let with = |cc: &str, bytes: u32| {
        prepared(&format!(
            "cluster = {{ gpus = 32 }}\ntransport = {{ cc = \"{cc}\" }}\nworkload = {{ kind = \"collective\", op = \"all-gather\", bytes = {bytes}, algorithm = \"ring\" }}"
        ))
    };
    let (a, b, c) = (with("hpcc", 4_321_000), with("dcqcn", 4_321_000), with("hpcc", 8_642_000));
    let (a_job, b_job, c_job) = (a.job.unwrap(), b.job.unwrap(), c.job.unwrap());
    assert!(std::sync::Arc::ptr_eq(&a_job, &b_job));
    assert_ne!(a_job.graph, c_job.graph);
    assert_eq!(a.notes, b.notes);
}

/// A collective alone on a cluster of named servers, ps. `workload` and `more` are further keys, of the workload and of a line of their own.
fn alone(server: &str, gpus: u32, op: &str, bytes: u64, workload: &str, more: &str) -> u64 {
    ended(&format!(
        "cluster = {{ server = \"{server}\", gpus = {gpus} }}\nworkload = {{ kind = \"collective\", op = \"{op}\", bytes = {bytes}{workload} }}\ntransport.cc = \"none\"\n{more}"
    ))
}

#[test]
fn packets_of_named_servers_take_what_measured_runs_take() {
    let mut far = Vec::new();
    for (server, gpus) in [("aws-p5", 16), ("dgx-h100", 32), ("oci-a100", 16), ("aws-p4de", 16)] {
        for op in ["all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all"] {
            for bytes in [8 << 10, 1 << 20, 32 << 20] {
                let packets = alone(server, gpus, op, bytes, "", "") as f64 / 1e6;
                let closed = alone(server, gpus, op, bytes, ", analytic = \"all\"", "") as f64 / 1e6;
                // A broadcast goes down a chain of all GPUs, chunk by chunk; its closed form knows no chunks.
                let most = if op == "broadcast" { 1.3 } else { 1.2 };
                if !(0.93..most).contains(&(packets / closed)) {
                    far.push(format!("{server} {op} {bytes}: {packets} us as packets, {closed} us by closed form"));
                }
            }
        }
    }
    assert!(far.is_empty(), "{}", far.join("\n"));
}

#[test]
fn without_overhead_packets_take_what_links_take() {
    let bare = alone("aws-p5", 16, "all-reduce", 1 << 20, ", collective_overhead = \"none\"", "");
    let measured = alone("aws-p5", 16, "all-reduce", 1 << 20, "", "");
    assert!(bare * 2 < measured, "{bare} ps without, {measured} ps with what software costs");
}

#[test]
fn a_faster_network_never_makes_a_collective_slower() {
    for bytes in [64 << 10, 1 << 20, 16 << 20, 64 << 20] {
        let at = |gbps: u32| alone("dgx-h100", 64, "all-reduce", bytes, "", &format!("topology.link_gbps = {gbps}"));
        let times = [100, 200, 400].map(at);
        assert!(times.is_sorted_by(|slow, fast| fast <= slow), "{bytes} bytes: {times:?} ps at 100, 200, 400 Gb/s");
    }
}

/// Measured times of all-reduces, by bytes, us: `assets/reference/nccl_tests_sweeps.csv`.
fn measured(run: &str) -> Vec<(u64, f64)> {
    let table = include_str!("../../assets/reference/nccl_tests_sweeps.csv");
    let rows = table.lines().filter(|l| l.starts_with(run) && l.contains(",all_reduce,"));
    let row = |line: &str| {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
        let record = reader.records().next().expect("a row").expect("a row of a CSV file");
        (record[9].parse().expect("bytes"), record[10].parse().expect("us"))
    };
    rows.map(row).filter(|&(bytes, _)| bytes <= 256 << 20).collect()
}

/// `docs/explanation/fidelity.md` has the figures.
#[test]
fn packets_are_near_measured_sweeps() {
    for (run, server, small, large) in [("aws_p5_2n,", "aws-p5", 0.12, 0.06), ("aws_p4de_2n,", "aws-p4de", 0.12, 0.18)]
    {
        let (mut errors, rows) = ([Vec::new(), Vec::new()], measured(run));
        assert!(rows.len() > 20, "{run}: {} rows", rows.len());
        for (bytes, us) in rows {
            let base = format!(
                "cluster = {{ server = \"{server}\", gpus = 16 }}\nworkload = {{ kind = \"collective\", op = \"all-reduce\", bytes = {bytes} }}"
            );
            errors[usize::from(bytes >= 1 << 20)].push((ended(&base) as f64 / 1e6 / us - 1.0).abs());
        }
        let [below, above] = errors.map(|e| e.iter().sum::<f64>() / e.len() as f64);
        println!("{server}: {:.1} % below 1 MiB, {:.1} % from there on", below * 100.0, above * 100.0);
        assert!(below < small && above < large, "{server}: {below} below 1 MiB, {above} from there on");
    }
}

#[test]
fn results_name_how_a_collective_was_carried_out() {
    let sweep = |gpus: u32, algorithms: &str| {
        format!(
            "name = \"named\"\n[base]\ncluster = {{ server = \"aws-p5\", gpus = {gpus} }}\nworkload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 65536, protocol = \"Simple\", channels = 4 }}\n[axes]\n\"workload.algorithm\" = [{algorithms}]\n"
        )
    };
    let folder = Folder::new(&[("two.toml", &sweep(16, "\"ring\", \"tree\"")), ("one.toml", &sweep(8, "\"nvls\""))]);
    let columns = |name: &str| {
        let ran = hyperfold(folder.path(), &["run", &format!("{name}.toml"), "--out", name, "--quiet"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ["algorithm", "protocol", "channels"].map(|c| folder.column(&format!("{name}/results.csv"), c))
    };
    assert_eq!(columns("two"), [["ring", "tree"], ["Simple", "Simple"], ["4", "4"]]);
    // In one server the switches reduce: neither protocol nor channels of messages.
    assert_eq!(columns("one"), [["nvls"], [""], [""]]);
}

/// Moye's equations beside packets, where every server has one GPU: then all edges of a ring are equal, and an all-gather is its rounds of chunks.
#[test]
fn chunk_equations_are_near_packets_where_edges_are_equal() {
    let sweep = r#"name = "chunks"
[base]
cluster = { gpus = 8, gpus_per_server = 1, gpu = "h100" }
transport = { cc = "none", payload_bytes = 4096 }
workload = { kind = "collective", algorithm = "ring", protocol = "Simple", bytes = 256_000_000 }
[axes]
"workload.op" = ["all-gather", "reduce-scatter", "all-reduce"]
"workload.analytic" = ["intra", "all"]
"workload.analytic_cost" = ["links", "chunks"]
[[constraints]]
where = '''workload.analytic == "all" || workload.analytic_cost == "links"'''
"#;
    let folder = Folder::new(&[("chunks.toml", sweep)]);
    let ran = hyperfold(folder.path(), &["run", "chunks.toml", "--out", "o", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let took: Vec<f64> = folder.column("o/results.csv", "makespan_ns").iter().map(|ns| ns.parse().unwrap()).collect();
    for of_op in took.chunks(3) {
        let [packets, links, chunks] = of_op else { panic!("{took:?}") };
        println!("{packets} ns as packets, {links} by links, {chunks} by chunks");
        assert!((chunks / packets - 1.0).abs() < 0.1, "{packets} ns as packets, {chunks} by chunks");
    }
}
