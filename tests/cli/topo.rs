//! `hyperfold topo`: networks shown, checked, written and drawn.

use crate::support::program::Folder;

const SWEEP: &str = "name = \"fabrics\"\n[base.cluster]\ngpus = 64\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n\
                     [axes]\n\"topology.kind\" = [\"clos\", \"dragonfly\", \"torus\"]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\"]\n";

#[test]
fn a_network_is_shown() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let args = ["topo", "show", "--set", "topology.kind=dragonfly", "--set", "cluster.gpus=1056"];
    let one = folder.run(&args);
    assert_eq!((one.code, one.stderr.as_str()), (0, ""));
    let table = folder.run(&["topo", "show", "s.toml"]);
    assert_eq!((table.code, table.stderr.as_str()), (0, ""));
    let json = folder.run(&["topo", "show", "s.toml", "--exp-id", "2", "--json"]);
    assert_eq!((json.code, json.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("topo_show", format!("{}\n{}\n{}", one.stdout, table.stdout, json.stdout));
    let value: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&value["kind"], &value["gpus"]), (&"dragonfly".into(), &64.into()));
}

#[test]
fn a_network_is_checked() {
    let folder = Folder::new(&[
        ("split.txt", "4 1 2\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n"),
        ("spare.txt", "5 2 3\n3 4\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n"),
    ]);
    let check = |args: &[&str]| {
        let ran = folder.run(&[&["topo", "check"], args].concat());
        format!("{} {}{}", ran.code, ran.stdout, ran.stderr)
    };
    assert_eq!(check(&[]), "0 nothing found\n");
    let torus = check(&["--set", "topology.kind=torus"]);
    assert!(torus.starts_with("0 remark: with pause frames, 4 ports on shortest paths can wait"), "{torus}");
    assert_eq!(check(&["--set", "topology.kind=torus", "--set", "transport.pfc=false"]), "0 nothing found\n");
    let narrow = check(&["--set", "topology.kind=clos", "--set", "topology.oversubscription=4"]);
    assert!(
        narrow.contains("8 of 8 switches with hosts are oversubscribed") && narrow.contains("4.00 to 1"),
        "{narrow}"
    );
    let with_outages = |outages: &str| {
        let outages = format!("topology.outages={outages}");
        check(&["--set", "topology.kind=clos", "--set", &outages])
    };
    let cut = with_outages("host3, leaf0 spine0");
    assert!(
        cut.starts_with(
            "3 fault: topology.outages takes down 2 links from the beginning: host3 leaf0, leaf0 spine0; so 254 pairs"
        ),
        "{cut}"
    );
    assert!(cut.contains("cut off are host3\n"), "{cut}");
    let around = with_outages("leaf0 spine0");
    assert!(
        around.starts_with("0 remark: topology.outages takes down 1 link from the beginning")
            && around.contains("still reach"),
        "{around}"
    );
    assert!(!with_outages("host3 down 5us").contains("topology.outages"), "it is up at the beginning");
    let wrong = with_outages("leaf99");
    assert!(wrong.starts_with("2 ") && wrong.contains("no node is called `leaf99`"), "{wrong}");
    let rails = check(&["--set", "topology.kind=rail-only"]);
    assert!(rails.starts_with("0 remark: 14.34 k pairs of NICs have no path of packets: rails"), "{rails}");
    let spare = check(&["spare.txt"]);
    assert_eq!(spare, "3 fault: 1 switch without links, the first is 4\n");
    let split = check(&["split.txt"]);
    assert!(
        split.starts_with("2 hyperfold: experiment 0: ") && split.contains("split.txt:1: host 2 has no link"),
        "{split}"
    );
}

#[test]
fn networks_are_written_and_read_again() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let export = |args: &[&str]| folder.run(&[&["topo", "export"], args].concat());
    // The form of htsim has trees alone.
    for (form, exp_id, lost) in
        [("ns3", "2", true), ("htsim", "0", true), ("simai", "2", false), ("infragraph", "2", false)]
    {
        let ran = export(&["s.toml", "--exp-id", exp_id, "--to", form, "--out", form]);
        assert_eq!((ran.code, ran.stdout, ran.stderr.is_empty()), (0, format!("wrote {form}\n"), !lost));
        let facts = |args: &[&str]| {
            let ran = folder.run(&[&["topo", "show", "--json"], args].concat());
            let mut value: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            for key in ["axes", "exp_id", "kind"].iter().chain(if lost {
                &["servers", "cost_usd", "power_kw"][..]
            } else {
                &[]
            }) {
                value[*key] = serde_json::Value::Null;
            }
            value
        };
        assert_eq!(facts(&[form]), facts(&["s.toml", "--exp-id", exp_id]), "{form}");
    }
    let pods = [
        "--set",
        "topology.kind=hpn",
        "--set",
        "topology.tiers=3",
        "--set",
        "topology.servers_per_pod=2",
        "--set",
        "cluster.gpus=64",
    ];
    for form in ["simai", "infragraph"] {
        let out = format!("pods-{form}");
        assert_eq!(export(&[&pods[..], &["--to", form, "--out", &out]].concat()).code, 0);
        let shown = |args: &[&str]| {
            let ran = folder.run(&[&["topo", "show"], args].concat());
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
            // In a file each port of a NIC has its own price.
            let (facts, _) = ran.stdout.split_once("price").unwrap();
            facts.split_once('\n').unwrap().1.to_string()
        };
        assert_eq!(shown(&[&out]), shown(&pods), "{form}: all but the kind");
    }
    let again = export(&["s.toml", "--exp-id", "2", "--to", "ns3", "--out", "ns3"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("ns3: exists already; name another --out, or give --force"), "{}", again.stderr);
    assert_eq!(export(&["s.toml", "--exp-id", "2", "--to", "ns3", "--out", "ns3", "--force"]).code, 0);
    let several = export(&["s.toml", "--to", "ns3", "--out", "x"]);
    assert_eq!(several.code, 2);
    assert!(
        several.stderr.contains("3 different networks") && several.stderr.contains("--exp-id 0 or --exp-id 2"),
        "{}",
        several.stderr
    );
    let absent = export(&["s.toml", "--exp-id", "6", "--to", "ns3", "--out", "x"]);
    assert!(absent.stderr.contains("--exp-id 6: the sweep has 6 experiments, from 0"), "{}", absent.stderr);
    let unknown = folder.run(&["topo", "show", "x.md"]);
    assert_eq!(unknown.code, 2);
    let dragonfly = export(&["s.toml", "--exp-id", "2", "--to", "htsim", "--out", "x"]);
    assert_eq!(dragonfly.code, 2);
    assert!(dragonfly.stderr.contains("cannot be written in the htsim form"), "{}", dragonfly.stderr);
    let bcube = export(&["--set", "topology.kind=bcube", "--to", "simai", "--out", "x"]);
    assert!(bcube.stderr.contains("cannot be written in the SimAI form"), "{}", bcube.stderr);
}

#[test]
fn switches_have_the_chips_that_hold_their_ports() {
    let folder = Folder::new(&[]);
    let show = |set: &[&str]| {
        let args: Vec<&str> = set.iter().flat_map(|key| ["--set", key]).collect();
        folder.run(&[&["topo", "show"], &args[..]].concat())
    };
    let chips = |set: &[&str]| {
        let ran = show(set);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{set:?}");
        let lines = ran.stdout.lines().filter(|line| line.contains(" like "));
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(chips(&[]), [""; 0]);
    assert_eq!(
        chips(&["topology.switch=by-rate"]),
        [
            "chips 8 like leaf0: tomahawk-3, 12.8 Tb/s, buffer 61.035 MiB",
            "16 like spine0: tomahawk-3, 12.8 Tb/s, buffer 61.035 MiB"
        ]
    );
    // A leaf of 64 servers has 128 ports of 400 Gb/s. Four segments give a spine 32 of them.
    let pods = ["topology.kind=spectrum-x", "cluster.gpus=2048"];
    assert_eq!(
        chips(&[&pods[..], &["topology.switch=by-rate", "topology.spine_buffer_mib=48"]].concat()),
        [
            "chips 32 like segment0.rail0: tomahawk-5, 51.2 Tb/s, buffer 157.356 MiB",
            "64 like spine0: tomahawk-3, 12.8 Tb/s, buffer 48.000 MiB"
        ]
    );
    assert_eq!(
        chips(&[&pods[..], &["topology.switch=spectrum-4"]].concat()),
        [
            "chips 32 like segment0.rail0: spectrum-4, 51.2 Tb/s, buffer 152.587 MiB",
            "64 like spine0: spectrum-4, 51.2 Tb/s, buffer 152.587 MiB"
        ]
    );
    assert_eq!(
        chips(&["topology.kind=rail-only", "cluster.gpus=2048", "topology.switch=by-rate"]),
        [
            "chips 8 like leaf0: tomahawk-6, 102.4 Tb/s, buffer 32.000 MiB, the default: that of the chip is not published"
        ]
    );
    // Servers that forward are no switches with a chip.
    assert_eq!(chips(&["topology.kind=bcube", "cluster.gpus=128", "topology.switch=by-rate"]).len(), 1);
    for (set, why) in [
        (
            &["topology.switch=tomahawk-2"][..],
            "leaf0 has 32 ports of up to 400 Gb/s, 12.8 Tb/s in all; tomahawk-2 has at most 128 ports, of 100 Gb/s, and 6.4 Tb/s in all; tomahawk-3 would hold it",
        ),
        (
            &["topology.kind=rail-only", "cluster.gpus=4096", "topology.switch=by-rate"],
            "leaf0 has 512 ports of up to 400 Gb/s, 204.8 Tb/s in all; no chip of the table holds that: give switches fewer ports",
        ),
    ] {
        let refused = show(set);
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.contains("`topology.switch`: ") && refused.stderr.contains(why), "{}", refused.stderr);
    }
    let sweep = "name = \"chip\"\n[base]\ncluster.gpus = 128\ntopology.switch = \"tomahawk-2\"\n\
                 workload = { kind = \"traffic\", pattern = \"ring\", bytes = 1000 }\n[axes]\n\"fidelity.mode\" = [\"packet\", \"flow\"]\n";
    let run = Folder::new(&[("s.toml", sweep)]).run(&["run", "s.toml", "--out", "out", "--engine", "cpu"]);
    assert!(run.code == 2 && run.stderr.contains("tomahawk-3 would hold it"), "{}", run.stderr);
}

#[test]
fn networks_are_drawn() {
    let folder = Folder::new(&[]);
    for kind in ["dragonfly", "torus", "hpn", "slim-fly", "rail-only"] {
        let set = format!("topology.kind={kind}");
        let draw = |out: &str| folder.run(&["topo", "draw", "--set", &set, "--set", "cluster.gpus=32", "-o", out]);
        let (svg, png) = (format!("{kind}.svg"), format!("{kind}.png"));
        assert_eq!((draw(&svg).code, draw(&png).code), (0, 0), "{kind}");
        let text = folder.text(&svg);
        assert!(text.starts_with("<?xml") && text.contains(&format!("{kind}: 32 NICs")), "{text}");
        assert!(folder.bytes(&png).starts_with(b"\x89PNG"));
        let shown = folder.run(&["topo", "show", "--set", &set, "--set", "cluster.gpus=32", "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        let sum =
            |list: &str| shown[list].as_array().unwrap().iter().map(|c| c["count"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(text.matches("<circle").count() as u64, sum("switches"), "{kind}");
        // Each link, and the sample of each rate in the legend.
        let rates = text.matches(" Gb/s</text>").count() as u64;
        assert_eq!(text.matches("<polyline").count() as u64, sum("links") + rates, "{kind}");
    }
    let gif = folder.run(&["topo", "draw", "-o", "x.gif"]);
    assert!(gif.code == 2 && gif.stderr.contains("ends in .svg or .png"), "{}", gif.stderr);
    let large = ["topo", "draw", "--set", "topology.kind=torus", "--set", "cluster.gpus=4096", "-o", "x.svg"];
    let large = folder.run(&large);
    assert!(large.code == 2 && large.stderr.contains("too large to be drawn"), "{}", large.stderr);
}

#[test]
fn circuits_are_shown_with_their_times() {
    let folder = Folder::new(&[]);
    let show = |circuits: &str| {
        let set =
            ["topology.kind=optical", "topology.hosts_per_leaf=8", "topology.spines=3", "cluster.gpus=64", circuits];
        let args: Vec<&str> = set.iter().flat_map(|key| ["--set", key]).collect();
        let ran = folder.run(&[&["topo", "show"], &args[..]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{circuits}");
        let (_, after) = ran.stdout.split_once("circuits    ").unwrap();
        after.split_once("distance").unwrap().0.lines().map(|line| line.trim().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(show("topology.circuits=mesh"), ["a mesh of 12 circuits that stay"]);
    let rotating = show("topology.circuits=rotate every 900us dark 20us drain 100us until 20ms");
    assert!(rotating[0].starts_with("3 circuit switches with 7 patterns each"), "{rotating:?}");
    assert!(
        rotating[0].contains("for 900.0 us and has its first one again after 6.300 ms; 66 changes until 20.00 ms"),
        "{rotating:?}"
    );
    assert_eq!(
        rotating[1..],
        [
            "circuit switch 0: from the beginning leaf0 leaf7, leaf1 leaf6, leaf2 leaf5, leaf3 leaf4",
            "circuit switch 0: from 320.0 us (dark for 20.00 us and drained for 100.0 us before) leaf0 leaf2, leaf1 leaf7, leaf3 leaf6, leaf4 leaf5",
            "circuit switch 0: from 1.220 ms (dark for 20.00 us and drained for 100.0 us before) leaf0 leaf4, leaf1 leaf3, leaf2 leaf7, leaf5 leaf6",
            "circuit switch 0: from 2.120 ms (dark for 20.00 us and drained for 100.0 us before) leaf0 leaf6, leaf1 leaf5, leaf2 leaf4, leaf3 leaf7",
            "... 3 more",
        ]
    );
    let patterns = show("topology.circuits=leaf0 leaf1 x2, leaf2 leaf3, at 5ms dark 10ms, leaf0 leaf2");
    assert_eq!(
        patterns,
        [
            "2 patterns, one after the other",
            "from the beginning leaf0 leaf1 x2, leaf2 leaf3",
            "from 15.00 ms (dark for 10.00 ms before) leaf0 leaf2",
        ]
    );
}
