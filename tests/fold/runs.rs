//! Folding as a user runs it: the same sweep with and without, with a memo and without, on disk and not, gives the same flows; what is skipped as steady is close.

use std::path::{Path, PathBuf};

/// A sweep in a folder of its own, beside the files that it names.
pub struct Sweep {
    pub root: tempfile::TempDir,
    path: PathBuf,
}

impl Sweep {
    pub fn new(files: &[(&str, &str)], text: &str) -> Sweep {
        let root = tempfile::tempdir().unwrap();
        for (name, file) in files {
            std::fs::write(root.path().join(name), file).unwrap();
        }
        let path = root.path().join("sweep.toml");
        std::fs::write(&path, text).unwrap();
        Sweep { root, path }
    }

    /// One of the project's own.
    fn of_experiments(name: &str) -> Sweep {
        Sweep {
            root: tempfile::tempdir().unwrap(),
            path: Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments").join(name),
        }
    }

    /// Runs it into the folder `out`, on one thread unless `more` says otherwise.
    pub fn run(&self, out: &str, more: &[&str]) {
        let jobs: &[&str] = if more.contains(&"--jobs") { &[] } else { &["--jobs", "1"] };
        let run = std::process::Command::new(env!("CARGO_BIN_EXE_hyperfold"))
            .args(["run", "--quiet", "--engine", "cpu", "--out"])
            .args([&self.root.path().join(out), &self.path])
            .args(jobs)
            .args(more)
            .output()
            .unwrap();
        assert!(
            run.status.success(),
            "{} {more:?}: {}\n{}\n{}",
            out,
            run.status,
            String::from_utf8_lossy(&run.stderr),
            std::fs::read_to_string(&self.path).unwrap_or_default()
        );
    }

    /// Runs it into the folder `out`; its flows.
    pub fn flows(&self, out: &str, more: &[&str]) -> Vec<u8> {
        self.run(out, more);
        std::fs::read(self.root.path().join(out).join("flows.csv")).unwrap()
    }

    /// Runs it with `fidelity.fast_forward = fold` into a folder of that name; its flows.
    pub fn flows_by(&self, fold: &str) -> Vec<u8> {
        self.flows(fold, &["--set", &format!("fidelity.fast_forward={fold}")])
    }

    /// The path of a memo on disk.
    pub fn memo(&self) -> String {
        self.root.path().join("memo.bin").to_str().unwrap().into()
    }

    /// A column of results in the folder `out`.
    pub fn column(&self, out: &str, file: &str, name: &str) -> Vec<f64> {
        self.text(out, file, name).iter().map(|field| field.parse().unwrap()).collect()
    }

    /// The fields of a column as they are written; a field may be empty.
    pub fn text(&self, out: &str, file: &str, name: &str) -> Vec<String> {
        let mut rows = csv::Reader::from_path(self.root.path().join(out).join(file)).unwrap();
        let at = rows.headers().unwrap().iter().position(|h| h == name).unwrap();
        rows.records().map(|r| r.unwrap()[at].to_owned()).collect()
    }

    /// Runs it into `without` and `with`, without and with a memo: flows are the same.
    fn same_with_a_memo(&self) {
        assert!(
            self.flows("with", &[]) == self.flows("without", &["--memo", "off"]),
            "flows differ: {}",
            self.path.display()
        );
    }
}

/// Replicas with looked-up partitions that lag behind the one they meet: they have tasks of their own to see to first (found with a tree all-reduce under HPCC).
#[test]
fn partitions_that_lag_behind_catch_up() {
    let text = "name = \"m\"\nbase.cluster = { gpus = 16, gpus_per_server = 2 }\nbase.topology = { kind = \"clos\", link_gbps = 100, uplink_gbps = 100 }\nbase.transport.cc = \"hpcc\"\n\
        base.workload = { kind = \"collective\", op = \"all-reduce\", bytes = 200000, algorithm = \"tree\", channels = 2, chunk_kib = 16 }\nbase.output.flows = true\nsweep.replicas = 3\n";
    let sweep = Sweep::new(&[], text);
    assert!(sweep.flows_by("exact") == sweep.flows_by("off"), "flows differ");
}

/// Partitions that were looked up and merge have checkpoints when those have that were simulated, or what is skipped by then would depend on the memo (found with DCQCN whose timers are fast).
#[test]
fn checkpoints_of_merged_partitions_depend_only_on_the_past() {
    let graph = "id,ranks,kind,duration_ns,bytes,deps,peer\nn0,all,all-to-all,,200000,,\nn1,all,all-reduce,,800000,n0,\nn2,all,all-to-all,,200000,n1,\nn3,all,all-gather,,800000,n0 n1 n2,\n";
    let text = "name = \"m\"\nseed = 2\nbase.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology = { kind = \"rail-optimized\", link_gbps = 200 }\n\
        base.transport = { cc = \"dcqcn\", ecn_kmin_kb = 80, ecn_kmax_kb = 200, dcqcn = { increase_us = 3, rai_mbps = 500, decrease_us = 4 } }\n\
        base.workload = { kind = \"dag\", path = \"graph.csv\", iterations = 8 }\n[axes]\n\"cluster.gpu\" = [\"h100\", \"a100\"]\n";
    let sweep = Sweep::new(&[("graph.csv", graph)], text);
    let flows =
        |memo: &str| sweep.flows(memo, &["--set", "output.flows=true", "--set", &format!("fidelity.memo={memo}")]);
    assert!(flows("true") == flows("false"), "flows differ");
}

/// How many messages wait is in no key, but it decides whether a skip promises enough: a skip begins where it begins without a memo (found with gradients that are scattered and parameters that are gathered,
/// where rails post at different times).
#[test]
fn what_waits_decides_with_a_memo_as_without() {
    let text = "name = \"m\"\nbase.cluster = { gpus = 16, server = \"dgx-a100\" }\nbase.topology = { kind = \"rail-optimized\", uplink_gbps = 200 }\n\
        base.transport = { payload_bytes = 4000, cc = \"dcqcn\" }\nbase.output.flows = true\n\
        base.workload = { kind = \"model\", zero = 1, microbatch = 2, global_batch = 32, model = { name = \"small\", source = \"our choice\", \
        transformer = { layers = 4, hidden = 512, heads = 8, vocab = 50257, seq = 128 } } }\naxes.\"fidelity.fast_forward\" = [\"steady\", \"rates\"]\n";
    let sweep = Sweep::new(&[], text);
    let memo = sweep.memo();
    let alone = sweep.flows("alone", &["--memo", "off"]);
    assert!(sweep.column("alone", "stats.csv", "steady_skips").iter().all(|&skips| skips > 0.0), "nothing was skipped");
    for out in ["within", "cold", "warm"] {
        let kept: &[&str] = if out == "within" { &[] } else { &["--memo", &memo] };
        assert!(sweep.flows(out, kept) == alone, "flows differ, {out}");
        assert!(sweep.column(out, "stats.csv", "memo_hits").iter().sum::<f64>() > 0.0, "nothing was looked up, {out}");
    }
}

/// HPCC moves the instant before which a queue pair does not send with every new rate, from where it is, also where that is past: a state must say it (found 1 ps late, in a
/// second run with a memo on disk).
#[test]
fn what_lies_in_the_past_may_still_move() {
    let graph = "id,ranks,kind,duration_ns,bytes,deps,peer\nn0,all,all-to-all,,30000,,\nn1,all,all-to-all,,30000,n0,\nn2,all,all-gather,,800000,n1,\nn3s,all,send,,1000,n0 n1,+1\n\
        n3r,all,recv,,1000,,-1\nn4,all,all-to-all,,2000,n0 n2,\nn5,all,reduce-scatter,,800000,n0 n2,\nn6,all,compute,1000,,n0 n2,\n";
    let text = "name = \"m\"\nseed = 9\nbase.cluster = { gpus = 16, gpus_per_server = 1 }\nbase.topology = { kind = \"fat-tree\", link_gbps = 200 }\nbase.transport.cc = \"hpcc\"\n\
        base.workload = { kind = \"dag\", path = \"graph.csv\" }\nbase.output.flows = true\n[axes]\n\"workload.iterations\" = [5, 9]\n";
    let sweep = Sweep::new(&[("graph.csv", graph)], text);
    let memo = sweep.memo();
    sweep.run("first", &["--shard", "0/2", "--memo", &memo]);
    sweep.run("second", &["--shard", "1/2", "--memo", &memo]);
    assert!(
        sweep.flows("third", &["--shard", "1/2", "--memo", &memo])
            == sweep.flows("alone", &["--shard", "1/2", "--memo", "off"]),
        "flows differ"
    );
}

/// Whoever joins a partition that is looked up does so after what is told at that instant, or nobody is ever told (found by a user whose second run on a memo started over).
#[test]
fn what_is_told_goes_before_whoever_joins() {
    let graph = "id,ranks,kind,duration_ns,bytes,group,peer,tag,stream,deps\na,0 1 2 6 7 8 11 15,compute,68434,,,,,,\nb,0 1 2 6 7 8 11 15,broadcast,,10942412,0 1 2 6 7 8 11 15,,,,a\n\
        c,3 4 5 9 10 12 13 14,compute,69933,,,,,,\nd,3 4 5 9 10 12 13 14,broadcast,,10942412,3 4 5 9 10 12 13 14,,,,c\ne,0 3 6 8 12 13 14 15,compute,9,,,,,,\n\
        f,0 3 6 8 12 13 14 15,reduce-scatter,,419,0 3 6 8 12 13 14 15,,,,e\n";
    let text = "name = \"m\"\nbase.cluster = { gpus = 16, gpus_per_server = 1, nics_per_server = 1 }\nbase.topology = { kind = \"rail-optimized\", link_gbps = 25, uplink_gbps = 25, link_delay_ns = 1500 }\n\
        base.transport.cc = \"dcqcn\"\nbase.workload = { kind = \"dag\", path = \"graph.csv\" }\nbase.output.flows = true\n";
    let sweep = Sweep::new(&[("graph.csv", graph)], text);
    let memo = sweep.memo();
    let alone = sweep.flows("alone", &["--memo", "off"]);
    assert!(sweep.flows("cold", &["--memo", &memo]) == alone, "flows differ, cold");
    assert!(sweep.flows("warm", &["--memo", &memo]) == alone, "flows differ, warm");
}

/// A message behind unsent bytes is no input: it does not even make its NIC look for something else to send, which might be a paced queue pair whose time has come.
#[test]
fn what_waits_behind_unsent_bytes_changes_nothing() {
    let graph = |at: u32| {
        format!(
            "id,ranks,kind,duration_ns,bytes,peer,stream,deps\nb1,0,send,,300000,1,free,\nr1,1,recv,,300000,0,free,\ncb,0,compute,{at},,,free,\nb2,0,send,,1000,1,free,cb\n\
             r2,1,recv,,1000,0,free,\nca,0,compute,2000,,,free,\na,0,send,,1000,2,free,ca\nra,2,recv,,1000,0,free,\n"
        )
    };
    let (early, late) = (graph(1), graph(4867));
    for fold in ["exact", "steady", "off"] {
        let text = format!(
            "name = \"m\"\nbase.cluster = {{ gpus = 4, gpus_per_server = 1 }}\nbase.transport.cc = \"hpcc\"\nbase.workload.kind = \"dag\"\nbase.output.flows = true\n\
             base.fidelity.fast_forward = \"{fold}\"\naxes.\"workload.path\" = [\"early.csv\", \"late.csv\"]\n"
        );
        Sweep::new(&[("early.csv", &early), ("late.csv", &late)], &text).same_with_a_memo();
    }
}

/// The last thing that happens may be the rest of a partition that is looked up, long after its messages have ended.
#[test]
fn packets_fly_on_after_the_last_message() {
    let text = "name = \"m\"\nbase.cluster = { gpus = 2, gpus_per_server = 1 }\nbase.topology.link_gbps = 8\nbase.transport = { cc = \"none\", payload_bytes = 9000, rto_us = 10 }\n\
        base.workload = { kind = \"collective\", op = \"all-reduce\", bytes = 1000000 }\nbase.output.flows = true\naxes.\"workload.rendezvous_ns\" = [1000, 2000]\n";
    Sweep::new(&[], text).same_with_a_memo();
}

/// A state that is read takes packet records as it needs; the step after it finds as many as after any other step, and nothing starts over.
#[test]
fn a_state_that_is_read_leaves_records_for_what_follows() {
    let graph = |at: u32| {
        format!(
            "id,ranks,kind,duration_ns,bytes,peer,stream,deps\na,0,send,,1000000,1,free,\nb,1,recv,,1000000,0,free,\nc,2,send,,300000,1,free,\nd,1,recv,,300000,2,free,\n\
             e,0,compute,{at},,,,\nf,0,send,,20000,3,free,e\ng,3,recv,,20000,0,free,\n"
        )
    };
    let text = "name = \"m\"\nbase.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.topology.link_gbps = 8\nbase.transport = { cc = \"timely\", payload_bytes = 130, ecn = false }\n\
        base.workload.kind = \"dag\"\nbase.output.flows = true\nbase.fidelity = { steady_samples = 2, steady_interval_ns = 3000 }\naxes.\"workload.path\" = [\"a.csv\", \"b.csv\"]\n";
    Sweep::new(&[("a.csv", &graph(130_000)), ("b.csv", &graph(131_000))], text).same_with_a_memo();
}

/// When a partition is laid down is a matter of steps, which are not as long in every experiment.
#[test]
fn experiments_of_other_steps_remember_other_things() {
    let graph = "id,ranks,kind,duration_ns,bytes,peer,stream,deps\ns0,0,send,,100000,2,free,\nr0,2,recv,,100000,0,free,\nc,0,compute,50,,,free,s0\ns1,0,send,,300000,2,free,c\n\
        r1,2,recv,,300000,0,free,\n";
    let text = "name = \"m\"\nbase.cluster = { gpus = 4, gpus_per_server = 2, nvlink = \"packet\" }\nbase.transport = { global_rtt = false, payload_bytes = 256 }\n\
        base.workload = { kind = \"dag\", path = \"g.csv\" }\nbase.output.flows = true\nbase.fidelity = { steady_samples = 4, steady_interval_ns = 500 }\n\
        axes.\"cluster.nvlink_latency_ns\" = [10, 1000]\n";
    Sweep::new(&[("g.csv", graph)], text).same_with_a_memo();
}

/// Skips end, and err by less than half a percent, where each message has a queue pair of its own, where packets differ in length, and where one queue pair is done long before another.
#[test]
fn skip_lengths_go_by_what_is_on_the_wire() {
    let ring = "id,ranks,kind,duration_ns,bytes,peer,tag,stream,deps\nn0,0-3,send,,312500,+1,0,,\nn1,0-3,recv,,312500,-1,0,free,\nn2,1,send,,312500,2,2,free,\nn3,2,recv,,312500,1,2,free,\n";
    let cases = [
        "base.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.transport = { cc = \"none\", fresh_qp = true }\nbase.workload = { kind = \"collective\", op = \"all-to-all\", bytes = 4000000 }\n",
        "base.cluster = { gpus = 8, gpus_per_server = 4 }\nbase.transport = { cc = \"none\", payload_bytes = 9000 }\nbase.workload = { kind = \"collective\", op = \"all-to-all\", bytes = 64000000 }\n",
        "base.cluster.gpus = 16\nbase.topology.link_gbps = 10\nbase.transport.cc = \"none\"\nbase.workload = { kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", bytes = 16000000 }\n",
        "base.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.topology.link_gbps = 25\nbase.transport.cc = \"none\"\nbase.workload = { kind = \"dag\", path = \"ring.csv\" }\n",
        "base.cluster = { gpus = 2, gpus_per_server = 1 }\nbase.topology.link_gbps = 100\nbase.transport.cc = \"hpcc\"\nbase.workload = { kind = \"collective\", op = \"broadcast\", bytes = 5000000 }\n",
    ];
    let mut skipped = 0;
    for (k, case) in cases.iter().enumerate() {
        let text = format!(
            "name = \"m\"\nbase.output.flows = true\n{case}axes.\"fidelity.fast_forward\" = [\"off\", \"steady\"]\n"
        );
        let sweep = Sweep::new(&[("ring.csv", ring)], &text);
        sweep.same_with_a_memo();
        // Nothing of the ring is skipped: what was seen before is forgotten when a queue pair is done.
        let [skips, exact] = ["steady_skips", "exact_instead"].map(|name| sweep.column("with", "stats.csv", name)[1]);
        assert!(skips > 0.0 || exact > 0.0 || k == 3, "{case}");
        skipped += u32::from(skips > 0.0);
        for name in ["makespan_ns", "fct_mean_ns"] {
            let of = sweep.column("with", "results.csv", name);
            assert!((of[1] / of[0] - 1.0).abs() < 0.005, "{name} {of:?}: {case}");
        }
    }
    assert!(skipped >= 2, "{skipped} of the cases kept their skips");
}

/// After a skip a queue pair acts on congestion when its turn would have come, not a skip later, and goes at the line's rate where nothing else holds it back. Rings of
/// messages that are a skip or two long add up what each is off by.
#[test]
fn errors_of_skips_do_not_add_up() {
    let cases = [("hpcc", 4, 8, 0.003), ("hpcc", 8, 16, 0.003), ("dctcp", 8, 64, 0.000_5), ("timely", 8, 64, 0.000_5)];
    let mut skipped = 0;
    for (cc, gpus, megabytes, bound) in cases {
        let text = format!(
            "name = \"m\"\nbase.cluster = {{ gpus = {gpus}, gpus_per_server = 1 }}\nbase.topology = {{ kind = \"rail-optimized\", link_gbps = 100, uplink_gbps = 100 }}\n\
             base.transport.cc = \"{cc}\"\nbase.workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = {megabytes}000000 }}\naxes.\"fidelity.fast_forward\" = [\"exact\", \"steady\"]\n"
        );
        let sweep = Sweep::new(&[], &text);
        sweep.run("out", &[]);
        let [hops, exact] = ["hops_steady", "exact_instead"].map(|name| sweep.column("out", "stats.csv", name)[1]);
        assert!(hops > 0.0 || exact > 0.0, "{cc}: nothing was skipped");
        skipped += u32::from(hops > 0.0);
        for name in ["iteration_time_ns", "fct_mean_ns"] {
            let of = sweep.column("out", "results.csv", name);
            assert!((of[1] / of[0] - 1.0).abs() < bound, "{cc}, {megabytes} MB: {name} {of:?}");
        }
    }
    assert!(skipped >= 2, "{skipped} of the cases kept their skips");
}

/// Checkpoints decide when a partition is tested for steadiness. Snapshots hold what does not matter any more, as telemetry of long ago, and a partition that is looked up has
/// another one's. When the next checkpoint comes must not go by how long those numbers are (found with queue pairs for each message, after different pauses: 0.3 % between a
/// warm memo and none).
#[test]
fn checkpoints_do_not_depend_on_stale_numbers() {
    let sizes = [6_000_000, 1_264_111, 564_511, 1_352_757, 154_242, 137_726, 179_841, 106_855, 70_401, 103_707];
    let begins = [1, 46_306, 35_290, 23_034, 46_843, 47_160, 47_477, 47_794, 48_111, 48_428];
    let graph = |pause: u32| {
        let mut graph = String::from("id,ranks,kind,duration_ns,bytes,peer,tag,deps\n");
        for (i, (bytes, begin)) in sizes.iter().zip(begins).enumerate() {
            for (k, (wait, after)) in [(begin, String::new()), (pause, format!("c{i}_0"))].into_iter().enumerate() {
                let tag = i * 100 + k;
                graph += &format!(
                    "c{i}_{k},{i},compute,{wait},,,,{after}\ns{i}_{k},{i},send,,{bytes},10,{tag},c{i}_{k}\nr{i}_{k},10,recv,,{bytes},{i},{tag},\n"
                );
            }
        }
        graph
    };
    let text = "name = \"m\"\nbase.cluster = { gpus = 11, gpus_per_server = 1 }\nbase.topology = { kind = \"rail-optimized\", link_gbps = 100, uplink_gbps = 100, link_delay_ns = 4000 }\n\
        base.transport = { cc = \"hpcc\", ecn = false, fresh_qp = true }\nbase.workload.kind = \"dag\"\nbase.output.flows = true\n\
        base.fidelity = { steady_theta = 0.3, steady_samples = 20, steady_interval_ns = 1000 }\naxes.\"workload.path\" = [\"long.csv\", \"short.csv\"]\n";
    let sweep = Sweep::new(&[("long.csv", &graph(3_398_926)), ("short.csv", &graph(17_800_480))], text);
    sweep.same_with_a_memo();
    // An experiment whose skips gain too little starts over without them, and what is remembered of the first attempt changes nothing either.
    let [skips, exactly] = ["steady_skips", "exact_instead"].map(|name| sweep.column("with", "stats.csv", name));
    assert!(skips.iter().zip(&exactly).all(|(s, e)| s + e > 0.0), "{skips:?} skips, {exactly:?} exact instead");
    assert!(sweep.column("with", "stats.csv", "snapshots_known")[1] > 0.0);
}

/// A first stage sends at the line's rate, its receiver passes on what comes, and the answers to that meet the data on the way back to the receiver: that port's queue grows by
/// some percent of what comes, while rates stay as they are. Such a phase is not skipped (found 2 % off, with audits at 0.06 %).
#[test]
fn queues_that_grow_are_not_skipped() {
    let mut graph = String::from("id,ranks,kind,duration_ns,bytes,peer,tag,deps\n");
    for k in 0..3 {
        for hop in 0..3 {
            let after = if hop == 0 { String::new() } else { format!("r{k}_{hop}") };
            let next = hop + 1;
            graph += &format!(
                "s{k}_{hop},{hop},send,,3000000,{next},{k},{after}\nr{k}_{next},{next},recv,,3000000,{hop},{k},\n"
            );
        }
    }
    for (cc, payload) in [("none", 2000), ("none", 9000), ("dcqcn", 1500), ("timely", 4096)] {
        let text = format!(
            "name = \"m\"\nbase.cluster = {{ gpus = 4, gpus_per_server = 1 }}\nbase.topology = {{ kind = \"rail-optimized\", link_gbps = 100 }}\nbase.transport = {{ cc = \"{cc}\", payload_bytes = {payload} }}\n\
             base.workload = {{ kind = \"dag\", path = \"g.csv\" }}\naxes.\"fidelity.fast_forward\" = [\"exact\", \"steady\"]\n"
        );
        let sweep = Sweep::new(&[("g.csv", &graph)], &text);
        sweep.run("out", &[]);
        for name in ["iteration_time_ns", "fct_mean_ns"] {
            let of = sweep.column("out", "results.csv", name);
            assert!((of[1] / of[0] - 1.0).abs() < 0.000_5, "{cc}, {payload} B: {name} {of:?}");
        }
    }
}

/// Who goes first at one instant may go back to a queue pair that has long had nothing to do and has left the partition. Halves of a cluster that do the same have other ones:
/// what was simulated in one half is looked up in the other, and ties there go by its own numbers.
#[test]
fn ties_go_by_queue_pairs_that_left_the_partition() {
    let graph = "id,ranks,kind,duration_ns,bytes,deps\nc,all,compute,60000,,\na,all,all-to-all,,2000,\nr,all,all-reduce,,100000,c a\n";
    let text = "name = \"m\"\nbase.cluster = { gpus = 16, gpus_per_server = 1 }\nbase.topology = { kind = \"rail-optimized\", link_gbps = 400 }\nbase.transport.cc = \"none\"\n\
        base.workload = { kind = \"dag\", path = \"graph.csv\" }\nbase.output.flows = true\n";
    let sweep = Sweep::new(&[("graph.csv", graph)], text);
    assert!(sweep.flows_by("exact") == sweep.flows_by("off"), "flows differ");
    assert!(sweep.column("exact", "stats.csv", "episodes_known")[0] > 0.0, "nothing was looked up");
}

/// The ports of a switch that may pause are processed together, folded: nothing starts over unfolded, and nothing of the switch is skipped.
#[test]
fn who_may_pause_is_folded_and_not_skipped() {
    let send = |n: u32, from: u32, to: u32, bytes: u32| {
        format!("s{n},{from},send,,{bytes},{to},{n},f\nq{n},{to},recv,,{bytes},{from},{n},f\n")
    };
    let graph = format!(
        "id,ranks,kind,duration_ns,bytes,peer,tag,deps\nf,all,compute,10000,,,,\n{}{}{}{}",
        send(1, 1, 0, 3_000_000),
        send(2, 2, 0, 3_000_000),
        send(3, 3, 0, 3_000_000),
        send(4, 4, 5, 5_000_000)
    );
    let text = "name = \"m\"\nbase.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology = { kind = \"rail-optimized\", link_gbps = 100, buffer_mib = 0.5 }\n\
        base.workload = { kind = \"dag\", path = \"g.csv\" }\nbase.output.flows = true\nbase.fidelity = { audit = 1, audit_bound = 0 }\naxes.\"transport.cc\" = [\"hpcc\", \"dcqcn\", \"none\"]\n";
    let sweep = Sweep::new(&[("g.csv", &graph)], text);
    sweep.run("out", &["--strict"]);
    assert_eq!(sweep.column("out", "stats.csv", "batches"), [1.0; 3]);
    assert_eq!(sweep.column("out", "stats.csv", "switches_coupled"), [1.0; 3]);
    // So short an experiment goes on without skips at once. The switch is coupled in time, except under HPCC: there it fills up too fast, and the
    // experiment starts over once.
    assert_eq!(sweep.column("out", "stats.csv", "couplings"), [1.0, 0.0, 0.0]);
    assert_eq!(sweep.column("out", "stats.csv", "exact_instead"), [1.0; 3]);
    assert!(sweep.flows_by("exact") == sweep.flows_by("off"), "flows differ");
    for name in ["steady_skips", "audited", "hops_steady"] {
        assert_eq!(sweep.column("out", "stats.csv", name), [0.0; 3], "{name}");
    }
}

/// Who asks for a memo on disk that nothing goes into is told so, and no file is made.
#[test]
fn a_memo_that_nothing_goes_into_is_said() {
    let text = "name = \"m\"\nbase.cluster = { gpus = 2, gpus_per_server = 1 }\nbase.workload = { kind = \"collective\", op = \"broadcast\", bytes = 50000 }\n";
    let sweep = Sweep::new(&[], text);
    for (fold, is_used) in [("off", false), ("exact", true)] {
        let run = std::process::Command::new(env!("CARGO_BIN_EXE_hyperfold"))
            .args([
                "run",
                "--engine",
                "cpu",
                "--set",
                &format!("fidelity.fast_forward={fold}"),
                "--memo",
                &sweep.memo(),
                "--out",
            ])
            .args([&sweep.root.path().join(fold), &sweep.path])
            .output()
            .unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.success() && said.contains("nothing to remember") != is_used, "{fold}: {said}");
        assert_eq!(Path::new(&sweep.memo()).exists(), is_used, "{fold}");
    }
}

/// What comes after a random draw is not remembered, what came before it is: a message that is alone at first, then one of an incast with marks, then twice alone, side by
/// side. Of the last two one waits for what the other simulates, and has nothing left to simulate itself.
#[test]
fn a_draw_forgets_what_comes_after_it_alone() {
    let alone = "id,ranks,kind,duration_ns,bytes,group,peer,tag,stream,deps\na,0,send,,40000000,,3,1,,\nb,3,recv,,40000000,,0,1,,\n";
    let later = "w,1-2,compute,100000,,,,,,\nc,1,send,,2000000,,3,2,,w\nd,3,recv,,2000000,,1,2,free,\ne,2,send,,2000000,,3,3,,w\nf,3,recv,,2000000,,2,3,free,\n";
    let files = [format!("{alone}{later}"), alone.into(), format!("{alone}w,1,compute,5000,,,,,,\n")];
    let text = "name = \"m\"\nbase.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.topology = { kind = \"clos\", link_gbps = 100, uplink_gbps = 100 }\nbase.transport.cc = \"dcqcn\"\n\
        base.workload.kind = \"dag\"\nbase.fidelity.fast_forward = \"exact\"\naxes.\"workload.path\" = [\"joined.csv\", \"alone.csv\", \"again.csv\"]\n";
    let sweep = Sweep::new(&[("joined.csv", &files[0]), ("alone.csv", &files[1]), ("again.csv", &files[2])], text);
    sweep.run("out", &["--jobs", "1"]);
    let [marks, hops] = ["ecn_marks", "packet_hops"].map(|name| sweep.column("out", "results.csv", name));
    let simulated = sweep.column("out", "stats.csv", "packet_hops_simulated");
    assert!(marks[0] > 0.0 && marks[1..] == [0.0, 0.0], "{marks:?}");
    // On one thread: on two, the experiments race for who finds out first what all begin with.
    let (most, least) = (simulated[1].max(simulated[2]), simulated[1].min(simulated[2]));
    assert!(
        simulated[0] > 0.99 * hops[0] && most > 0.0 && most < hops[1] && least == 0.0,
        "simulated {simulated:?} of {hops:?}"
    );
}

/// Where skips leave out less than half of an experiment, it goes on without them. It simulates no packet twice, and what was skipped stays within the error
/// that is stated. Where marks are random it starts over, so that its bytes are those of "exact".
#[test]
fn where_skips_gain_too_little_nothing_is_simulated_twice() {
    let text = "name = \"m\"\nbase.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology = { kind = \"rail-optimized\", link_gbps = 400, uplink_gbps = 400 }\n\
        base.transport.cc = \"hpcc\"\nbase.workload = { kind = \"collective\", op = \"all-gather\", bytes = 16777216 }\nbase.output.flows = true\n";
    let sweep = Sweep::new(&[], text);
    assert!(sweep.flows_by("exact") != sweep.flows_by("steady"), "nothing was skipped");
    let of = |name| sweep.column("steady", "stats.csv", name)[0];
    let [simulated, skipped] = ["packet_hops_simulated", "packet_hops_skipped"].map(of);
    let needed = sweep.column("exact", "results.csv", "packet_hops")[0];
    assert!(skipped > 0.0 && skipped < needed / 2.0, "{skipped} of {needed} were skipped");
    assert!(simulated + skipped < 1.01 * needed, "{simulated} and {skipped} of {needed}");
    assert_eq!(of("exact_instead"), 0.0);
    let [exact, steady] = ["exact", "steady"].map(|out| sweep.column(out, "results.csv", "iteration_time_ns")[0]);
    let error = (steady / exact - 1.0).abs();
    assert!(error <= of("steady_error") && error < 0.002, "{error} of {}", of("steady_error"));
    sweep.same_with_a_memo();

    let random = Sweep::of_experiments("contention/gather-8.toml");
    let set = ["--set", "workload.bytes_scale=0.05", "--set", "output.flows=true", "--limit", "2"];
    for fold in ["exact", "steady"] {
        random.run(fold, &[&set[..], &["--set", &format!("fidelity.fast_forward={fold}")]].concat());
    }
    assert_eq!(random.text("steady", "results.csv", "transport.cc"), ["hpcc", "dcqcn"]);
    assert_eq!(random.column("steady", "stats.csv", "exact_instead"), [0.0, 1.0]);
    let [exact, steady] = ["exact", "steady"].map(|out| random.text(out, "results.csv", "iteration_time_ns"));
    assert_eq!(exact[1], steady[1]);
}

/// A switch that fills up within an interval: the experiment goes back to a copy from before that, and simulates hardly anything twice.
#[test]
fn a_switch_that_fills_up_costs_little() {
    let sweep = Sweep::of_experiments("contention/incast-4-chain.toml");
    for fold in ["off", "steady"] {
        let set = format!("fidelity.fast_forward={fold}");
        sweep.run(fold, &["--set", "workload.bytes_scale=0.1", "--set", &set]);
    }
    let none = sweep.text("steady", "results.csv", "transport.cc").iter().position(|cc| cc == "none").unwrap();
    let [off, steady] = ["off", "steady"].map(|out| sweep.column(out, "stats.csv", "packet_hops_simulated")[none]);
    assert_eq!(sweep.column("steady", "stats.csv", "exact_instead")[none], 1.0);
    assert!(steady > off && steady < 1.06 * off, "{steady} of {off}");
    for column in ["iteration_time_ns", "fct_mean_ns", "fct_p99_ns"] {
        let [off, steady] = ["off", "steady"].map(|out| sweep.text(out, "results.csv", column)[none].clone());
        assert_eq!(off, steady, "{column}");
    }
}

/// What the README says of skipped phases, on scaled-down GPT iterations under four congestion controls.
#[test]
fn steady_phases_are_skipped_within_half_a_percent() {
    let sweep = Sweep::of_experiments("suites/wormhole-cc.toml");
    for fold in ["exact", "steady"] {
        sweep.run(fold, &["--jobs", "2", "--limit", "4", "--set", &format!("fidelity.fast_forward={fold}")]);
    }
    for name in ["iteration_time_ns", "fct_mean_ns"] {
        let [exact, steady] = ["exact", "steady"].map(|fold| sweep.column(fold, "results.csv", name));
        for (k, (exact, steady)) in exact.into_iter().zip(steady).enumerate() {
            assert!((steady / exact - 1.0).abs() < 0.005, "experiment {k}: {name} {steady}, exactly {exact}");
        }
    }
    let [skips, audited, estimates] =
        ["steady_skips", "audited", "steady_error"].map(|name| sweep.column("steady", "stats.csv", name));
    assert!(skips.iter().chain(&audited).all(|&n| n > 0.0), "{skips:?} skips, {audited:?} audited");
    assert!(estimates.iter().all(|&e| e < 0.005), "estimates {estimates:?}");
    let [exact, steady] = ["exact", "steady"].map(|fold| sweep.column(fold, "stats.csv", "packet_hops_simulated"));
    assert!(
        exact.len() == 4 && exact.iter().zip(&steady).all(|(e, s)| s * 2.0 < *e),
        "simulated {steady:?}, exactly {exact:?}"
    );
}

/// What congestion control carries over from one all-to-all to the next makes few of them new.
#[test]
fn what_is_carried_over_repeats() {
    let sweep = Sweep::of_experiments("suites/wormhole-cc.toml");
    // A mixture of experts under DCQCN and TIMELY.
    for shard in ["5/8", "6/8"] {
        let out = &shard[..1];
        sweep.run(out, &["--shard", shard]);
        let [episodes, known] = ["episodes", "episodes_known"].map(|name| sweep.column(out, "stats.csv", name)[0]);
        assert!(episodes > 1000.0 && episodes - known < 20.0, "{shard}: {known} of {episodes} episodes known");
    }
}

/// A slow link does not change while an experiment runs, so folding stays exact: rings over it repeat like others, at its rate.
#[test]
fn a_slow_link_is_folded() {
    let text = |slow: &str| {
        format!(
            "name = \"m\"\nbase.cluster = {{ gpus = 16, gpus_per_server = 2 }}\n\
             base.topology = {{ kind = \"rail-optimized\", link_gbps = 100, outages = \"{slow}\" }}\n\
             base.workload = {{ kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", bytes = 8000000, iterations = 12 }}\n\
             base.transport.payload_bytes = 4000\nbase.output = {{ flows = true, links = true }}\n\
             [axes]\n\"transport.cc\" = [\"dcqcn\", \"none\"]\n"
        )
    };
    let runs = ["", "host0 rate 25%"].map(|slow| {
        let sweep = Sweep::new(&[], &text(slow));
        assert!(sweep.flows_by("exact") == sweep.flows_by("off"), "flows differ: {slow}");
        for file in ["results.csv", "links.csv"] {
            let [exact, off] =
                ["exact", "off"].map(|fold| std::fs::read(sweep.root.path().join(fold).join(file)).unwrap());
            assert!(file == "results.csv" || exact == off, "{file} differs: {slow}");
        }
        let [exact, off] = ["exact", "off"].map(|fold| sweep.column(fold, "results.csv", "makespan_ns"));
        assert_eq!(exact, off);
        let simulated = |fold: &str| sweep.column(fold, "stats.csv", "packet_hops_simulated").iter().sum::<f64>();
        assert!(simulated("exact") < 0.8 * simulated("off"), "little was folded: {slow}");
        exact
    });
    for (healthy, slow) in runs[0].iter().zip(&runs[1]) {
        assert!(*slow > 1.5 * healthy, "{runs:?}");
    }
}
