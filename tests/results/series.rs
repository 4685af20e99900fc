//! Samples over time, as a user sees them.

use std::collections::BTreeMap;

use crate::support::program::Folder;

/// Seven hosts that send to one, with little buffer.
fn incast(more: &str, axes: &str) -> String {
    format!(
        "name = \"incast\"\n[base]\ncluster = {{ gpus = 8, gpus_per_server = 1 }}\n\
         topology = {{ kind = \"clos\", hosts_per_leaf = 4, spines = 2, link_gbps = 100, link_delay_ns = 500, buffer_mib = 1 }}\n\
         workload = {{ kind = \"traffic\", pattern = \"incast\", fan_in = 7, bytes = 500000 }}\n\
         transport = {{ ecn_kmin_kb = 20, ecn_kmax_kb = 100 }}\n\
         output = {{ flows = true, links = true, series = [\"links\", \"flows\"]{more} }}\n[axes]\n{axes}\n"
    )
}

fn ran(sweep: &str) -> Folder {
    let (folder, said, code) = Folder::with_run(sweep);
    assert_eq!(code, 0, "{said}");
    folder
}

/// Sums of a column, by experiment and the value of another column.
fn sums(folder: &Folder, file: &str, by: &str, column: &str) -> BTreeMap<(String, String), f64> {
    let name = format!("out/{file}.csv");
    let mut sums = BTreeMap::new();
    let names = folder.column(&name, "exp_id").into_iter().zip(folder.column(&name, by));
    for (name, value) in names.zip(folder.numbers(file, column)) {
        *sums.entry(name).or_insert(0.0) += value;
    }
    sums.retain(|_, sum| *sum > 0.0);
    sums
}

#[test]
fn samples_add_up_to_the_totals() {
    let axes = "\"transport.cc\" = [\"dcqcn\", \"hpcc\", \"swift\", \"none\"]\n\"transport.pfc\" = [true, false]\n\
                \"topology.outages\" = [\"\", \"leaf1 spine0 down 20us up 60us\"]";
    for more in ["", ", series_cap = 16"] {
        let folder = ran(&incast(more, axes));
        for (sampled, total) in
            [("tx_bytes", "bytes"), ("ecn_marks", "ecn_marks"), ("pfc_pauses", "pfc_pauses"), ("drops", "drops")]
        {
            let totals = sums(&folder, "links", "link", total);
            assert_eq!(sums(&folder, "series_links", "link", sampled), totals, "{sampled}");
            assert!(totals.len() > 8, "{total}: {totals:?}");
        }
        let sent = sums(&folder, "flows", "flow_id", "bytes");
        assert_eq!(sums(&folder, "series_flows", "flow_id", "acked_bytes"), sent);
        let longest = folder.numbers("series_links", "queue_bytes").into_iter().fold(0.0, f64::max);
        let max = folder.numbers("links", "max_queue_bytes").into_iter().fold(0.0, f64::max);
        assert!(longest > 0.8 * max && longest <= max, "{longest} {max}");
        assert!(folder.column("out/series_links.csv", "paused").iter().any(|paused| paused == "true"));
    }
}

#[test]
fn results_are_those_without_samples() {
    let axes = "\"transport.cc\" = [\"dcqcn\", \"hpcc\", \"timely\", \"dctcp\", \"none\"]\n\"transport.pfc\" = [true, false]\n\
                \"topology.outages\" = [\"\", \"leaf1 spine0 down 20us up 60us\"]";
    let folder = ran(&incast("", axes));
    let plain = folder.run(&["run", "s.toml", "--out", "plain", "--engine", "cpu", "--set", "output.series=\"\""]);
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    for file in ["results.csv", "results.parquet", "flows.csv", "links.csv"] {
        assert!(folder.bytes(&format!("out/{file}")) == folder.bytes(&format!("plain/{file}")), "{file}");
    }
    assert!(!folder.file("plain/series_links.csv").exists() && !folder.file("plain/series_flows.csv").exists());
}

/// Ring all-reduces of 8 hosts, of which steady phases are most.
const STEADY: &str = "name = \"steady\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\n\
     topology = { kind = \"clos\", hosts_per_leaf = 4, spines = 2, link_gbps = 100 }\n\
     workload = { kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", bytes = 32000000, iterations = 2 }\n\
     output = { links = true, series = [\"links\", \"flows\"], series_interval_us = 20 }\n\
     fidelity = { fast_forward = \"steady\", audit = 0 }\n[axes]\n\"transport.cc\" = [\"hpcc\", \"swift\", \"none\"]\n";

#[test]
fn what_is_skipped_is_sampled_as_it_was_measured() {
    let folder = ran(STEADY);
    let simulated = |out: &str| -> Vec<f64> {
        let column = folder.column(&format!("{out}/stats.csv"), "packet_hops_simulated");
        column.iter().map(|hops| hops.parse().expect("a number")).collect()
    };
    for (out, set) in [
        ("plain", ["output.series=\"\"", "fidelity.memo=false"]),
        ("off", ["fidelity.fast_forward=\"off\"", "fidelity.audit=0"]),
    ] {
        let ran = folder.run(&["run", "s.toml", "--out", out, "--engine", "cpu", "--set", set[0], "--set", set[1]]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    // Samples decide nothing: the same is skipped without them.
    for column in ["makespan_ns", "packet_hops", "ecn_marks", "max_queue_bytes"] {
        let [with, without] = ["out", "plain"].map(|out| folder.column(&format!("{out}/results.csv"), column));
        assert_eq!(with, without, "{column}");
    }
    assert!(folder.bytes("out/links.csv") == folder.bytes("plain/links.csv"));
    assert_eq!(simulated("out"), simulated("plain"));
    let [steady, off] = ["out", "off"].map(simulated);
    assert!(steady.iter().zip(&off).all(|(steady, off)| 2.0 * steady < *off), "{steady:?} of {off:?}");
    for (sampled, total) in [("tx_bytes", "bytes"), ("ecn_marks", "ecn_marks"), ("drops", "drops")] {
        let totals = sums(&folder, "links", "link", total);
        assert_eq!(sums(&folder, "series_links", "link", sampled), totals, "{sampled}");
    }
    // Rows come in skips too: as many sample times as without, within a few, and none in which a link carries more than it can.
    for exp_id in ["0", "1", "2"] {
        let times = |out: &str| {
            let file = format!("{out}/series_links.csv");
            let all = folder.column(&file, "exp_id").into_iter().zip(folder.column(&file, "time_ns"));
            all.filter(|(id, _)| id == exp_id).map(|(_, time)| time).collect::<std::collections::BTreeSet<_>>().len()
        };
        let [steady, off] = ["out", "off"].map(times);
        assert!(steady.abs_diff(off) * 20 <= off && off > 200, "{steady} sample times, {off} without skips");
    }
    // Also where the interval doubles in a skip.
    let few = folder.run(&["run", "s.toml", "--out", "few", "--engine", "cpu", "--set", "output.series_cap=20"]);
    assert_eq!(few.code, 0, "{}", few.stderr);
    let column = |out: &str| folder.column(&format!("{out}/series_links.csv"), "throughput_gbps");
    let rates: Vec<f64> = [column("out"), column("few")].concat().iter().filter_map(|rate| rate.parse().ok()).collect();
    assert!(rates.iter().all(|&rate| rate <= 103.0), "{:?}", rates.into_iter().fold(0.0, f64::max));
    // Until the first skip, rows are those of a run that skips nothing.
    let [steady, off] = ["out", "off"].map(|out| folder.text(&format!("{out}/series_links.csv")));
    let equal = steady.lines().zip(off.lines()).take_while(|(a, b)| a == b).count();
    assert!(equal > 100, "{equal} rows are equal");
}

#[test]
fn samples_of_skips_have_the_same_bytes_on_any_number_of_threads() {
    let folder = ran(STEADY);
    for jobs in ["1", "2"] {
        let ran = folder.run(&["run", "s.toml", "--out", jobs, "--engine", "cpu", "--jobs", jobs]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for file in ["results.csv", "series_links.csv", "series_flows.csv", "links.csv"] {
            assert!(folder.bytes(&format!("out/{file}")) == folder.bytes(&format!("{jobs}/{file}")), "{file}");
        }
    }
}

#[test]
fn a_job_is_simulated_packet_by_packet() {
    let folder = ran("name = \"job\"\n[base]\ncluster = { gpus = 16, gpus_per_server = 4 }\n\
         workload = { kind = \"collective\", op = \"all-reduce\", bytes = 2000000, iterations = 3 }\n\
         output = { flows = true, links = true, series = [\"links\", \"flows\"], series_cap = 100 }\n\
         fidelity.fast_forward = \"exact\"\n[axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\"]\n");
    // Without samples it is folded, which changes no bit of a result; with them no bit of a sample depends on what was asked for.
    for (out, set) in [("folded", "output.series=\"\""), ("off", "fidelity.fast_forward=\"off\"")] {
        let ran = folder.run(&["run", "s.toml", "--out", out, "--engine", "cpu", "--set", set]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for file in ["flows.csv", "links.csv"] {
            assert!(folder.bytes(&format!("out/{file}")) == folder.bytes(&format!("{out}/{file}")), "{out}: {file}");
        }
        assert_eq!(
            folder.column("out/results.csv", "makespan_ns"),
            folder.column(&format!("{out}/results.csv"), "makespan_ns")
        );
    }
    assert_eq!(folder.column("folded/stats.csv", "packet_hops_plain")[0], "0", "it was folded");
    for file in ["series_links.csv", "series_flows.csv"] {
        assert!(folder.bytes(&format!("out/{file}")) == folder.bytes(&format!("off/{file}")), "{file}");
    }
    let planned = folder.run(&["plan", "s.toml"]);
    let note = "output.series samples every packet here: fidelity.fast_forward = \"exact\" skips what repeats, of which no samples are known; \"steady\" keeps skips";
    assert!((planned.stdout.clone() + &planned.stderr).contains(note), "{} {}", planned.stdout, planned.stderr);
}

#[test]
fn a_sample_sees_what_is_before_its_time() {
    // Packets of 1,000 bytes on the wire: one begins every 80 ns, so one begins at each sample time.
    let folder = ran("name = \"one\"\n[base]\ncluster = { gpus = 2, gpus_per_server = 1 }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 1, spines = 1, link_gbps = 100, link_delay_ns = 500 }\n\
         workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 1, bytes = 95200 }\n\
         transport = { cc = \"none\", payload_bytes = 952, window = false }\n\
         output = { flows = true, links = true, series = [\"links\", \"flows\"], series_interval_us = 0.8 }\n");
    let links = folder.column("out/series_links.csv", "link");
    let of_link = |name: &str, column: &str| -> Vec<f64> {
        let values = folder.numbers("series_links", column);
        links.iter().zip(values).filter(|(link, _)| *link == name).map(|(_, value)| value).collect()
    };
    // 100 packets, ten before each sample time: the eleventh begins at that time.
    let wire =
        folder.column("out/links.csv", "link").iter().position(|link| link == "host1->leaf1").expect("it is there");
    assert_eq!(folder.numbers("links", "bytes")[wire], 100_000.0, "packets have 1,000 bytes");
    assert_eq!(of_link("host1->leaf1", "tx_bytes"), [10_000.0; 10]);
    assert_eq!(of_link("host1->leaf1", "throughput_gbps"), [100.0; 10]);
    let times: Vec<f64> = (1..=10).map(|k| 800.0 * f64::from(k)).collect();
    assert_eq!(of_link("host1->leaf1", "time_ns"), times);
    // The first packet is whole at leaf1 at 580 ns, so it begins there then, and at 1,160 ns at spine0.
    assert_eq!(of_link("leaf1->spine0", "tx_bytes")[..2], [3_000.0, 10_000.0]);
    assert_eq!(of_link("spine0->leaf0", "time_ns")[0], 1_600.0);
    let acked = folder.numbers("series_flows", "acked_bytes");
    assert_eq!(acked.iter().sum::<f64>(), 95_200.0);
    let first = folder.numbers("series_flows", "outstanding_bytes")[0];
    assert_eq!((first, acked[0]), (9_520.0, 0.0));
}

#[test]
fn the_interval_doubles_when_there_are_too_many_samples() {
    let fine = ran(&incast("", "\"transport.cc\" = [\"dcqcn\"]"));
    let coarse = ran(&incast(", series_cap = 20", "\"transport.cc\" = [\"dcqcn\"]"));
    let interval = coarse.numbers("series_links", "interval_ns")[0];
    assert!(interval > 2_000.0 && (interval / 1_000.0).log2().fract() == 0.0, "{interval}");
    let mut times = coarse.numbers("series_links", "time_ns");
    times.extend(coarse.numbers("series_flows", "time_ns"));
    times.sort_by(f64::total_cmp);
    times.dedup();
    assert!((10..=20).contains(&times.len()), "{times:?}");
    // At a time that is left, a queue is as long as before.
    let queues = |folder: &Folder| -> BTreeMap<(String, String), String> {
        let column = |name| folder.column("out/series_links.csv", name);
        column("link").into_iter().zip(column("time_ns")).zip(column("queue_bytes")).collect()
    };
    let (fine, coarse) = (queues(&fine), queues(&coarse));
    let mut n = 0;
    for (place, queue) in &coarse {
        if let Some(fine_queue) = fine.get(place) {
            assert_eq!(queue, fine_queue, "{place:?}");
            n += 1;
        }
    }
    assert!(n > 50, "{n} rows compared");
}

#[test]
fn links_can_be_chosen() {
    let all = ran(&incast("", "\"transport.cc\" = [\"dcqcn\"]"));
    let chosen = ran(&incast(", series_links = [\"leaf0->host0\", \"spine1\"]", "\"transport.cc\" = [\"dcqcn\"]"));
    let rows = |folder: &Folder| -> Vec<String> {
        let is_chosen = |line: &&str| line.contains(",leaf0->host0,") || line.contains("spine1");
        folder.text("out/series_links.csv").lines().filter(is_chosen).map(str::to_string).collect()
    };
    assert_eq!(rows(&chosen), rows(&all));
    assert_eq!(rows(&chosen).len() + 1, chosen.text("out/series_links.csv").lines().count(), "and no others");
    assert!(rows(&all).len() > 200 && chosen.bytes("out/series_flows.csv") == all.bytes("out/series_flows.csv"));
    let ran = chosen.run(&["run", "s.toml", "--out", "x", "--set", "output.series_links=\"leaf0->hots0\""]);
    let why = "`leaf0->hots0`: no link and no node is called so; links.csv has their names, such as `leaf0->host0`";
    let said = ran.stderr + &ran.stdout + &std::fs::read_to_string(chosen.file("x/failed.csv")).unwrap_or_default();
    assert!(ran.code != 0 && said.contains(why), "{said}");
}

#[test]
fn what_has_no_packets_is_refused() {
    for (set, why) in [
        (
            "fidelity.mode=\"flow\"",
            "`output.series = \"links,flows\"`: samples are of queues and packets, and fidelity.mode is \"flow\"; write fidelity.mode = \"packet\"",
        ),
        ("output.series=\"ports\"", "`output.series = \"ports\"`: `ports`: it must be \"links\", \"flows\" or"),
    ] {
        let folder = Folder::new(&[("s.toml", &incast("", "\"transport.cc\" = [\"dcqcn\"]"))]);
        let ran = folder.run(&["run", "s.toml", "--out", "out", "--set", set]);
        assert!(ran.code == 2 && ran.stderr.contains(why), "{set}: {} {}", ran.code, ran.stderr);
    }
}
