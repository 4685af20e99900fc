//! `fidelity.fast_forward = "rates"`: measured rates carried on where flows collide.

use crate::runs::Sweep;

/// Two rings whose queue pairs meet at the uplinks of a Clos, and a 4-to-1 incast.
const TEXT: &str = "name = \"m\"\nbase.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology = { kind = \"clos\", hosts_per_leaf = 4, spines = 1, link_gbps = 100, uplink_gbps = 100 }\n\
    base.transport.payload_bytes = 4000\nbase.workload.kind = \"dag\"\nbase.output.flows = true\naxes.\"transport.cc\" = [\"hpcc\", \"dcqcn\"]\naxes.\"workload.path\" = [\"rings.csv\", \"incast.csv\"]\n";
const RINGS: &str =
    "id,ranks,kind,bytes,group\na,0 2 4 6,all-reduce,24000000,0 2 4 6\nb,1 3 5 7,all-reduce,24000000,1 3 5 7\n";
const INCAST: &str = "id,ranks,kind,bytes,peer,tag\ns1,1,send,12000000,0,1\nr1,0,recv,12000000,1,1\ns2,2,send,12000000,0,2\nr2,0,recv,12000000,2,2\n\
    s3,3,send,12000000,0,3\nr3,0,recv,12000000,3,3\ns4,4,send,12000000,0,4\nr4,0,recv,12000000,4,4\n";

/// Without audits, jobs as short as these carry rates on; with them, there would be nothing to gain.
const UNAUDITED: [&str; 4] = ["--set", "fidelity.fast_forward=rates", "--set", "fidelity.audit=0"];

/// Bytes are conserved (a run fails otherwise), something is skipped, and the last completion is near the simulated one.
#[test]
fn carried_rates_end_when_packets_do() {
    let sweep = Sweep::new(&[("rings.csv", RINGS), ("incast.csv", INCAST)], TEXT);
    for fold in ["off", "steady"] {
        sweep.run(fold, &["--set", &format!("fidelity.fast_forward={fold}")]);
    }
    sweep.run("rates", &UNAUDITED);
    let [off, rates] = ["off", "rates"].map(|fold| sweep.column(fold, "results.csv", "makespan_ns"));
    // The first two are under HPCC. Under DCQCN jobs as short as these are further off, and say so.
    for (off, rates) in off.iter().zip(&rates).take(2) {
        assert!((rates / off - 1.0).abs() < 0.02, "{rates} instead of {off} ns");
    }
    assert!(sweep.column("rates", "stats.csv", "carried_skips").iter().any(|&n| n > 0.0), "nothing was carried on");
    assert_eq!(sweep.column("steady", "stats.csv", "carried_skips"), [0.0; 4]);
}

/// Each port has sent the bytes that it sends without skips, though the last packet of a message is shorter than others.
/// HPCC's telemetry counts them, and small differences decide there which queue pair gets more.
#[test]
fn skips_count_what_each_port_sent() {
    let rings = RINGS.replace("24000000", "24007700");
    let sweep = Sweep::new(&[("rings.csv", &rings), ("incast.csv", &INCAST.replace("12000000", "12001300"))], TEXT);
    let links = |fold: &str| {
        let set = format!("fidelity.fast_forward={fold}");
        let audit = "fidelity.audit=0";
        sweep.run(fold, &["--set", &set, "--set", audit, "--set", "output.links=true"]);
        sweep.column(fold, "links.csv", "bytes")
    };
    let off = links("off");
    for fold in ["rates", "steady"] {
        assert!(links(fold) == off, "bytes of links differ with {fold}");
    }
    assert!(sweep.column("rates", "stats.csv", "carried_skips").iter().any(|&n| n > 0.0), "nothing was carried on");
}

/// The bytes are the same with one thread and several, and whatever the memo holds.
#[test]
fn carried_rates_depend_on_the_experiment_alone() {
    let sweep = Sweep::new(&[("rings.csv", RINGS), ("incast.csv", INCAST)], TEXT);
    let memo = sweep.memo();
    let runs = [&["--jobs", "1"][..], &["--jobs", "3"], &["--memo", &memo], &["--memo", &memo]];
    let mut flows = Vec::new();
    for (k, more) in runs.into_iter().enumerate() {
        let out = format!("rates-{k}");
        sweep.run(&out, &[&UNAUDITED[..], more].concat());
        flows.push(std::fs::read(sweep.root.path().join(&out).join("flows.csv")).expect("flows are written"));
    }
    assert!(flows.iter().all(|x| *x == flows[0]), "flows differ");
}

/// Shares of DCTCP wander, so the queue pair that ends last may be early though its port sends what it should (found with a shift whose flows meet in pairs).
#[test]
fn an_estimate_covers_the_share_of_who_ends_last() {
    let mut graph = String::from("id,ranks,kind,bytes,peer,tag,stream\n");
    for rank in 0..16 {
        let to = (rank + 13) % 16;
        graph +=
            &format!("s{rank},{rank},send,200000000,{to},{rank},free\nr{to},{to},recv,200000000,{rank},{rank},free\n");
    }
    let text = "name = \"m\"\nbase.cluster = { gpus = 16, gpus_per_server = 1 }\nbase.topology = { kind = \"fat-tree\", link_gbps = 100 }\n\
        base.transport = { cc = \"dctcp\", payload_bytes = 4096 }\nbase.workload = { kind = \"dag\", path = \"g.csv\" }\n\
        axes.\"fidelity.fast_forward\" = [\"off\", \"rates\"]\n";
    let sweep = Sweep::new(&[("g.csv", &graph)], text);
    sweep.run("both", &["--jobs", "2"]);
    let makespans = sweep.column("both", "results.csv", "makespan_ns");
    if sweep.text("both", "stats.csv", "exact_instead")[1] == "1" {
        assert_eq!(makespans[0], makespans[1], "without skips it is as simulated");
        return;
    }
    assert!(sweep.text("both", "stats.csv", "carried_skips")[1] != "0", "nothing was carried on");
    let estimate: f64 = sweep.text("both", "stats.csv", "steady_error")[1].parse().expect("rates were carried on");
    let off = (makespans[1] / makespans[0] - 1.0).abs();
    assert!(off <= estimate, "off by {off}, estimated {estimate}");
}

/// "rates" gives the bytes of "steady" under a congestion control that it does not apply to.
#[test]
fn carried_rates_are_for_controls_that_settle() {
    let text = TEXT.replace("[\"hpcc\", \"dcqcn\"]", "[\"timely\", \"none\"]");
    let sweep = Sweep::new(&[("rings.csv", RINGS), ("incast.csv", INCAST)], &text);
    sweep.run("steady", &["--set", "fidelity.audit=0"]);
    sweep.run("rates", &UNAUDITED);
    let [rates, steady] =
        ["rates", "steady"].map(|fold| std::fs::read(sweep.root.path().join(fold).join("flows.csv")).expect("written"));
    assert!(rates == steady, "flows differ");
    assert_eq!(sweep.column("rates", "stats.csv", "carried_skips"), [0.0; 4]);
}

/// Who reads results is told, by the run, its manifest, and a comparison.
#[test]
fn carried_rates_are_named() {
    let sweep = Sweep::new(&[("rings.csv", RINGS), ("incast.csv", INCAST)], TEXT);
    sweep.run("steady", &["--set", "fidelity.audit=0"]);
    sweep.run("rates", &UNAUDITED);
    let read = |name: &str| std::fs::read_to_string(sweep.root.path().join(name)).expect("written");
    let warning = "carried measured rates on where flows collide";
    assert!(read("rates/manifest.json").contains(warning) && !read("steady/manifest.json").contains(warning));
    let compared = |fold: &str| {
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_hyperfold"))
            .args(["compare", fold])
            .current_dir(sweep.root.path())
            .output()
            .expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).contains("approximate where flows collide")
    };
    assert!(compared("rates") && !compared("steady"));
}

/// An all-to-all over a Clos with buffers so small that pauses come within reach. DCQCN's rates do not settle in its time.
const ALL_TO_ALL: &str = "name = \"m\"\nbase.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology = { kind = \"clos\", hosts_per_leaf = 4, spines = 1, link_gbps = 100, uplink_gbps = 100, buffer_mib = 1 }\n\
    base.transport = { cc = \"dcqcn\", payload_bytes = 4000 }\nbase.workload = { kind = \"collective\", op = \"all-to-all\", bytes = 4000000 }\nbase.output.flows = true\n";

/// A run that skips nothing is not approximate in anything else: pauses happen, and bytes are those of every packet simulated.
#[test]
fn what_skips_nothing_is_exact() {
    let sweep = Sweep::new(&[], ALL_TO_ALL);
    sweep.run("off", &["--set", "fidelity.fast_forward=off"]);
    sweep.run("rates", &UNAUDITED);
    let [off, rates] =
        ["off", "rates"].map(|fold| std::fs::read(sweep.root.path().join(fold).join("flows.csv")).expect("written"));
    let of = |name| sweep.column("rates", "stats.csv", name)[0];
    assert_eq!([of("exact_instead"), of("carried_skips"), of("pauses_left_out")], [1.0, 0.0, 0.0]);
    assert!(of("switches_coupled") > 0.0, "no pause came within reach");
    assert_eq!(of("couplings"), 0.0, "switches at which pauses were left out are coupled when it starts over");
    assert!(off == rates, "flows differ");
}

/// A job that audits would simulate as a whole is simulated as by "steady".
#[test]
fn short_jobs_are_not_worth_an_audit() {
    let sweep = Sweep::new(&[("rings.csv", RINGS), ("incast.csv", INCAST)], TEXT);
    for fold in ["rates", "steady"] {
        sweep.run(fold, &["--set", &format!("fidelity.fast_forward={fold}")]);
    }
    let [rates, steady] =
        ["rates", "steady"].map(|fold| std::fs::read(sweep.root.path().join(fold).join("flows.csv")).expect("written"));
    assert!(rates == steady, "flows differ");
    assert_eq!(sweep.column("rates", "stats.csv", "carried_skips"), [0.0; 4]);
}

/// An incast of ten million packet-hops: a copy goes on without skips, and what it says holds. It depends on the experiment alone.
#[test]
fn copies_say_how_far_off_carried_rates_are() {
    let text = TEXT
        .replace("payload_bytes = 4000", "payload_bytes = 1000")
        .replace("[\"hpcc\", \"dcqcn\"]", "[\"hpcc\"]")
        .replace("[\"rings.csv\", \"incast.csv\"]", "[\"incast.csv\"]");
    let sweep = Sweep::new(&[("incast.csv", &INCAST.replace("12000000", "500000000"))], &text);
    let memo = sweep.memo();
    for (out, more) in [("one", &["--jobs", "1"][..]), ("cold", &["--memo", &memo]), ("warm", &["--memo", &memo])] {
        sweep.run(out, &[&["--set", "fidelity.fast_forward=rates"], more].concat());
    }
    let of = |out: &str, name: &str| sweep.column(out, "stats.csv", name)[0];
    assert!(of("one", "carried_audits") >= 1.0, "no copy was made");
    // The port to the first rank is busy all the time.
    assert!(of("one", "steady_error") < 0.005, "{}", of("one", "steady_error"));
    for out in ["cold", "warm"] {
        for name in ["carried_audits", "steady_error", "carried_messages_error"] {
            assert_eq!(of(out, name), of("one", name), "{name}");
        }
    }
}

/// An all-to-all whose shares need milliseconds to become fair. Skips keep them from it: the busiest uplink is late by more than a tenth, while others are
/// early. Copies see that, so the experiment starts over with every packet.
#[test]
fn what_would_be_far_off_is_simulated() {
    let text = "name = \"m\"\nseed = 11\nbase.cluster = { gpus = 16, gpus_per_server = 1 }\nbase.transport = { cc = \"hpcc\", payload_bytes = 1000 }\n\
        base.topology = { kind = \"clos\", link_gbps = 400, uplink_gbps = 400, hosts_per_leaf = 8 }\n\
        base.workload = { kind = \"collective\", op = \"all-to-all\", bytes = 201326592 }\nbase.output.flows = true\n";
    let sweep = Sweep::new(&[], text);
    sweep.run("off", &["--set", "fidelity.fast_forward=off"]);
    sweep.run("rates", &["--set", "fidelity.fast_forward=rates"]);
    sweep.run("unaudited", &UNAUDITED);
    let [off, rates] =
        ["off", "rates"].map(|out| std::fs::read(sweep.root.path().join(out).join("flows.csv")).expect("written"));
    assert!(off == rates, "flows differ");
    let of = |name| sweep.column("rates", "stats.csv", name)[0];
    assert_eq!([of("exact_instead"), of("carried_skips")], [1.0, 0.0]);
    let [off, carried] = ["off", "unaudited"].map(|out| sweep.column(out, "results.csv", "makespan_ns")[0]);
    assert!(carried / off > 1.05, "{carried} instead of {off} ns: this job tells nothing any more");
}
