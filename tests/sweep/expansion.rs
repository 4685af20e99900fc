//! Sweep files: expansion, identity of experiments, sampling, selection, speed, templates.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use hyperfold_config::spec::{self, SpecError, Value, WorkloadSection};
use hyperfold_config::sweep::{self, Selection, SetOverrides, Sweep};

fn parse(text: &str) -> Result<Sweep, SpecError> {
    sweep::parse(text, Path::new("sweep.toml"), &SetOverrides::default())
}

fn parse_set(text: &str, sets: &[&str]) -> Result<Sweep, SpecError> {
    sweep::parse(text, Path::new("sweep.toml"), &SetOverrides(sets.iter().map(|s| s.to_string()).collect()))
}

/// A sweep's experiments, one a line, without keys and seeds.
fn listed(text: &str) -> String {
    let sweep = parse(text).unwrap();
    let mut out = format!("{:?}\n", sweep.axes);
    for e in &sweep.experiments {
        let values: Vec<String> = sweep.axis_values(e).iter().map(Value::to_string).collect();
        let _ = writeln!(out, "{} r{} {}", e.exp_id, e.replica, values.join(" "));
    }
    out
}

const RING: &str = "name = \"t\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n";

#[test]
fn grid_varies_the_last_axis_fastest_and_replicas_faster_still() {
    insta::assert_snapshot!(listed(&format!(
        "{RING}[sweep]\nreplicas = 2\n[axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\"]\n\"topology.link_gbps\" = {{ start = 100, stop = 400, step = 150 }}\n"
    )));
}

#[test]
fn zip_pairs_and_list_falls_back_to_base() {
    insta::assert_snapshot!(listed(&format!(
        "{RING}[sweep]\nmethod = \"zip\"\n[axes]\ntransport.cc = [\"hpcc\", \"dcqcn\"]\ntopology.link_gbps = [100, 400]\n"
    )));
    insta::assert_snapshot!(listed(&format!(
        "{RING}[sweep]\nmethod = \"list\"\n[[experiment]]\ntransport.cc = \"timely\"\n[[experiment]]\ntopology.link_gbps = 100\n[[experiment]]\n"
    )));
}

#[test]
fn sampling_is_seeded_distinct_and_inside() {
    let text = |method: &str| {
        format!(
            "{RING}[sweep]\nmethod = \"{method}\"\nsamples = 8\n[axes]\n\"transport.hpcc.eta\" = {{ min = 0.8, max = 0.98 }}\n\
             \"topology.link_gbps\" = {{ min = 10, max = 400, scale = \"log\" }}\n\"workload.stride\" = {{ min = 1, max = 8 }}\n"
        )
    };
    insta::assert_snapshot!(listed(&text("random")));
    insta::assert_snapshot!(listed(&text("lhs")));
    let lhs = parse(&text("lhs")).unwrap();
    let mut strides: Vec<String> = lhs.experiments.iter().map(|e| lhs.axis_values(e)[2].to_string()).collect();
    strides.sort();
    assert_eq!(strides, ["1", "2", "3", "4", "5", "6", "7", "8"], "each eighth of the axis is used once");
    let other = parse(&text("lhs").replace("[base", "seed = 2\n[base")).unwrap();
    assert_ne!(other.axis_values(&other.experiments[0]), lhs.axis_values(&lhs.experiments[0]));
}

#[test]
fn constraints_filter_before_ids_and_selection_after() {
    let text = format!(
        "{RING}[axes]\n\"cluster.gpus\" = [16, 32, 64, 128]\n\"transport.cc\" = [\"hpcc\", \"none\"]\n\
         [[constraints]]\nwhere = \"cluster.gpus * 2 <= 128 && !(transport.cc == \\\"none\\\" && cluster.gpus == 16)\"\n"
    );
    insta::assert_snapshot!(listed(&text));
    let ids = |limit, shard: Option<&str>| {
        let mut s = parse(&text).unwrap();
        s.select(&Selection { limit, shard: shard.map(|s| s.parse().unwrap()) })
            .map(|()| s.experiments.iter().map(|e| e.exp_id).collect::<Vec<_>>())
    };
    assert_eq!(ids(Some(3), None), Ok(vec![0, 1, 2]));
    assert_eq!(ids(None, Some("1/2")), Ok(vec![1, 3]));
    assert_eq!(ids(Some(3), Some("1/2")), Ok(vec![1]));
    assert!(ids(Some(0), None).unwrap_err().to_string().contains("no experiments"));
    assert!("4/4".parse::<sweep::Shard>().is_err());
}

#[test]
fn an_axis_of_seeds_points_to_replicas() {
    let sweep = parse("name = \"t\"\n[base.workload]\nkind = \"traffic\"\npattern = \"permutation\"\n[axes]\n\"workload.seed\" = [1, 2]\n").unwrap();
    let notes = sweep.notes.join("\n");
    assert!(notes.contains("6: the axis `workload.seed`") && notes.contains("`sweep.replicas`"), "{notes}");
    let sweep = parse("name = \"t\"\n[base.workload]\nkind = \"traffic\"\npattern = \"permutation\"\n[axes]\n\"routing.seed\" = [1, 2]\n").unwrap();
    let notes = sweep.notes.join("\n");
    assert!(notes.contains("6: the axis `routing.seed`") && notes.contains("how far they lie apart"), "{notes}");
}

#[test]
fn keys_ignore_what_nothing_reads_and_follow_what_is_read() {
    let key = |extra: &str| parse(&format!("{RING}{extra}")).unwrap().experiments[0].config_key;
    let base = key("");
    assert_eq!(
        key("bytes = 1000000\n[base.transport]\ncc = \"hpcc\"\nwindow = true\n"),
        base,
        "spelled-out defaults change nothing"
    );
    assert_eq!(key("[base.transport]\ndcqcn.g = 0.5\n"), base, "hpcc does not read it");
    assert_eq!(key("[base.output]\nflows = true\n"), base, "what is written decides nothing");
    assert_eq!(key("[base.topology]\nlink_gbps = 400\n"), base, "400 is 400.0");
    assert_ne!(key("[base.transport]\nhpcc.eta = 0.9\n"), base);
    assert_ne!(key("bytes = 2\n"), base);
}

#[test]
fn replicas_share_config_keys_and_differ_in_seeds() {
    let s = parse(&format!("{RING}[sweep]\nreplicas = 3\n")).unwrap();
    let [a, b, c] = &s.experiments[..] else { panic!("three replicas") };
    assert!(a.config_key == b.config_key && b.config_key == c.config_key);
    assert!(a.exp_key != b.exp_key && b.exp_key != c.exp_key);
    let seeds: Vec<u32> = s.experiments.iter().map(|e| s.config(e).unwrap().marking_seed()).collect();
    assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2]);
    let other = parse(&format!("seed = 9\n{RING}")).unwrap();
    assert_eq!(other.experiments[0].config_key, a.config_key);
    assert_ne!(other.experiments[0].exp_key, a.exp_key);
}

#[test]
fn files_count_by_content() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [("a.txt", "1\n"), ("b.txt", "1\n"), ("c.txt", "2\n")] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let sweep = |axis: &str| {
        let text = format!("name = \"t\"\n[base.workload]\nkind = \"flows\"\n[axes]\n\"workload.path\" = [{axis}]\n");
        sweep::parse(&text, &dir.path().join("sweep.toml"), &SetOverrides::default())
    };
    let same = sweep("\"a.txt\", \"b.txt\"").unwrap();
    assert_eq!(same.experiments[0].exp_key, same.experiments[1].exp_key);
    assert_eq!(
        same.duplicates_note.as_deref(),
        Some("1 row is simulated once with another: `workload.path` has no effect for some of them")
    );
    let s = sweep("\"a.txt\", \"c.txt\"").unwrap();
    assert_eq!(s.inputs.len(), 2);
    let WorkloadSection::Flows { path, .. } = s.config(&s.experiments[1]).unwrap().workload else { panic!("flows") };
    assert_eq!(path, dir.path().join("c.txt"), "paths are relative to the sweep file");
}

#[test]
fn set_overrides_base_and_refuses_axes() {
    let text = format!("{RING}[axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\"]\n");
    let s = parse_set(
        &text,
        &["topology.kind=fat-tree", "base.cluster.gpus=16", "sweep.replicas=2", "seed=7", "name=\"x\""],
    )
    .unwrap();
    assert_eq!((s.experiments.len(), s.seed, s.name.as_str()), (4, 7, "x"));
    assert_eq!(s.config(&s.experiments[0]).unwrap().cluster.gpus, Some(16));
    insta::assert_snapshot!(
        [
            "transport.cc=none",
            "topology.knid=clos",
            "cluster.gpus=many",
            "cluster.gpus",
            "sweep.method=zip",
            "workload.priority=8",
            "routing.policy=flowlet"
        ]
        .map(|set| parse_set(&text, &[set]).err().unwrap().to_string())
        .join("\n")
    );
}

#[test]
fn resolved_toml_reads_back_to_the_same_experiments() {
    for text in [
        format!(
            "{RING}[base.transport]\nhpcc.eta = 0.9\n[sweep]\nreplicas = 2\n[axes]\ntopology.link_gbps = {{ start = 100, stop = 400, step = 100 }}\n[[constraints]]\nwhere = \"topology.kind == \\\"rail-optimized\\\"\"\n"
        ),
        format!("{RING}[sweep]\nmethod = \"lhs\"\nsamples = 5\n[axes.transport.hpcc.eta]\nmin = 0.8\nmax = 0.9\n"),
        format!(
            "{RING}[sweep]\nmethod = \"list\"\n[[experiment]]\ntransport.cc = \"timely\"\n[[experiment]]\ntopology.link_gbps = 100\n"
        ),
    ] {
        let a = parse(&text).unwrap();
        let b = parse(&a.resolved_toml).unwrap();
        assert_eq!(a.experiments, b.experiments);
        assert_eq!(a.resolved_toml, b.resolved_toml);
    }
}

#[test]
fn one_key_files_resolve_as_documented() {
    let s = parse(RING).unwrap();
    assert_eq!(s.experiments.len(), 1);
    insta::assert_snapshot!(s.resolved_toml);
}

#[test]
fn a_default_that_every_job_overrides_has_no_effect() {
    let text = |own: &str| {
        format!(
            "name = \"jobs\"\n[base]\ncluster.gpus = 8\n[[job]]\nname = \"a\"\ngpus = 4\nkind = \"traffic\"\npattern = \"ring\"\n{own}\n"
        )
    };
    let notes = |own: &str| parse_set(&text(own), &["workload.bytes=5"]).unwrap().notes.join("\n");
    let overridden = notes("bytes = 1000");
    assert!(overridden.contains("`workload.bytes` has no effect on any experiment of this sweep"), "{overridden}");
    assert_eq!(notes(""), "");
}

#[test]
fn notes_name_what_has_no_effect() {
    let s = parse("name = \"t\"\n[base.cluster]\ngpu = \"h100\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nload = 0.5\n").unwrap();
    insta::assert_snapshot!(s.notes.join("\n"));
}

#[test]
fn values_that_others_replace_are_noted() {
    let set = |sets: &[&str]| parse_set(RING, sets).unwrap().notes;
    let notes = set(&["transport.cc=hpcc", "topology.link_gbps=100", "base.transport.cc=dcqcn"]);
    assert_eq!(notes.len(), 1, "{notes:?}");
    let told = "--set transport.cc=hpcc: `transport.cc` is set again, and the last value, dcqcn, wins; set it once";
    assert_eq!(notes[0], told);
    assert_eq!(set(&["transport.cc=hpcc", "transport.cc=hpcc"]), Vec::<String>::new());

    let axis = |base: &str| {
        let axes = "[axes]\n\"topology.link_gbps\" = [100, 200]\n";
        parse(&format!("{RING}[base.topology]\nlink_gbps = {base}\n{axes}")).unwrap().notes
    };
    let notes = axis("400");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("sweep.toml:6: `topology.link_gbps = 400"), "{notes:?}");
    assert!(notes[0].contains("is in no experiment, because `topology.link_gbps` is also an axis"), "{notes:?}");
    assert_eq!(axis("200"), Vec::<String>::new(), "one of the axis' values");
}

#[test]
fn template_is_a_valid_sweep() {
    let template = spec::template();
    let s = parse(&template).unwrap();
    assert_eq!(s.experiments.len(), 4);
    assert_eq!(s.notes, Vec::<String>::new());
    insta::assert_snapshot!(template);
}

#[test]
fn every_default_may_be_written_out() {
    // Each line of the template that shows a default, uncommented, must read.
    let shown = |l: &str| {
        l.strip_prefix("# ").is_some_and(|l| {
            l.split_once(" = ").is_some_and(|(k, _)| k.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        })
    };
    let base = spec::template();
    let base = base.split("\n[sweep]").next().unwrap();
    let all: String = base.lines().map(|l| format!("{}\n", if shown(l) { &l[2..] } else { l })).collect();
    assert!(all.lines().filter(|l| l.contains(" = ") && !l.starts_with('#')).count() > 70, "{all}");
    let written = parse(&format!("{all}[axes]\nworkload.pattern = [\"ring\"]\n")).unwrap();
    let left = parse(&format!("{base}[axes]\nworkload.pattern = [\"ring\"]\n")).unwrap();
    assert_eq!(written.experiments[0].config_key, left.experiments[0].config_key);
}

#[test]
fn reference_lists_every_key() {
    let text = spec::reference_markdown();
    for k in &spec::KEYS {
        assert!(text.contains(&format!("`{}`", k.name)), "{}", k.name);
    }
    // The page that users read; `HYPERFOLD_WRITE_DOCS=1` writes it anew.
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/keys.md");
    if std::env::var_os("HYPERFOLD_WRITE_DOCS").is_some() {
        std::fs::write(&page, &text).unwrap();
    }
    let written = std::fs::read_to_string(&page).unwrap();
    assert!(
        written.trim_end() == text.trim_end(),
        "docs/reference/keys.md is not what the code says: run this test with HYPERFOLD_WRITE_DOCS=1"
    );
}

/// The bar is 2 seconds on one core; the bound here is generous because test machines are busy.
#[test]
fn a_hundred_thousand_experiments_expand_quickly() {
    let text = format!(
        "{RING}[axes]\n\"transport.hpcc.eta\" = {{ start = 0.8, stop = 0.899, step = 0.001 }}\n\"workload.stride\" = {{ start = 1, stop = 100, step = 1 }}\n\
         \"topology.link_gbps\" = {{ start = 100, stop = 1000, step = 100 }}\n[[constraints]]\nwhere = \"workload.stride * 2 < cluster.gpus * 4\"\n"
    );
    let start = Instant::now();
    let sweep = parse(&text).unwrap();
    let expanded = start.elapsed();
    assert_eq!(sweep.experiments.len(), 100_000);
    let typed = Instant::now();
    let bytes: u64 = sweep.experiments.iter().map(|e| sweep.config(e).unwrap().topology.link_bps).sum();
    assert!(bytes > 0);
    println!(
        "100,000 experiments: expanded, validated and hashed in {expanded:.2?}; all configurations built again in {:.2?}",
        typed.elapsed()
    );
    // Far below what a quadratic step would take. The ledger of instructions holds the speed.
    assert!(expanded.as_secs_f64() < 20.0, "{expanded:?}");
}

/// Ten times as many take about ten times as long; a minute is beyond any machine's noise.
#[test]
fn a_hundred_thousand_sampled_or_listed_experiments_expand_quickly() {
    let random = |n: usize| {
        format!(
            "{RING}[sweep]\nmethod = \"random\"\nsamples = {n}\n[axes]\n\"transport.hpcc.eta\" = {{ min = 0.8, max = 0.98 }}\n\
             \"topology.kind\" = [\"clos\", \"rail-optimized\"]\n\"topology.link_gbps\" = {{ min = 10, max = 800, scale = \"log\" }}\n\"workload.bytes\" = {{ min = 1000, max = 100000000 }}\n"
        )
    };
    let list = |n: usize| {
        let mut list = format!("{RING}[sweep]\nmethod = \"list\"\n");
        for i in 0..n {
            let _ = write!(list, "[[experiment]]\nworkload.bytes = {}\ntopology.kind = \"clos\"\n", i + 1);
        }
        list
    };
    let seconds = |text: String, n: usize| {
        let start = Instant::now();
        assert_eq!(parse(&text).unwrap().experiments.len(), n);
        start.elapsed().as_secs_f64()
    };
    for (name, text) in [("random", &random as &dyn Fn(usize) -> String), ("list", &list)] {
        let few = (0..3).map(|_| seconds(text(10_000), 10_000)).fold(f64::INFINITY, f64::min);
        let many = seconds(text(100_000), 100_000);
        println!("10,000 experiments by {name}: {few:.2} s, 100,000: {many:.2} s");
        assert!(many < 60.0 && many < 40.0 * few, "{name}: {few:.2} s, {many:.2} s");
    }
}

/// A key that only some of the drawn points read makes some of them the same, which nobody could mend in the file.
#[test]
fn drawn_points_that_are_the_same_are_left_out() {
    for method in ["random", "lhs", "optimize"] {
        let text = format!(
            "{RING}[sweep]\nmethod = \"{method}\"\nsamples = 8\n[axes]\n\"transport.cc\" = [\"hpcc\", \"none\"]\n\
             \"transport.hpcc.eta\" = {{ min = 0.8, max = 0.98 }}\n"
        );
        let s = parse(&text).unwrap();
        let keys: std::collections::BTreeSet<String> = s.experiments.iter().map(|e| e.config_key.to_string()).collect();
        assert_eq!(keys.len(), s.experiments.len(), "{method}");
        let without = s.experiments.iter().filter(|e| s.axis_values(e)[0].to_string() == "none").count();
        assert!(without == 1 && s.experiments.len() > 3, "{method}: {without} of {}", s.experiments.len());
        assert!(
            s.notes.len() == 1 && s.notes[0].contains("are left out, because they are the same as others"),
            "{method}: {:?}",
            s.notes
        );
        assert!(s.notes[0].contains("`transport.hpcc.eta` changes nothing"), "{method}: {:?}", s.notes);
        let ids: Vec<u64> = s.experiments.iter().map(|e| e.exp_id).collect();
        assert_eq!(ids, (0..ids.len() as u64).collect::<Vec<_>>(), "{method}");
    }
}

#[test]
fn points_that_are_the_same_keep_their_rows_and_are_explained() {
    let text = format!(
        "{RING}[sweep]\nreplicas = 2\n[axes]\n\"topology.kind\" = [\"clos\", \"rail-only\", \"fat-tree\"]\n\
         \"topology.uplink_gbps\" = [100, 200, 400]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\"]\n\"transport.hpcc.eta\" = [0.9, 0.95]\n"
    );
    let s = parse(&text).unwrap();
    assert_eq!((s.experiments.len(), s.duplicates), (72, 2 * (6 + 9)));
    let keys: std::collections::BTreeSet<String> = s.experiments.iter().map(|e| e.exp_key.to_string()).collect();
    assert_eq!(keys.len() as u64, 72 - s.duplicates);
    assert_eq!(
        s.duplicates_note.as_deref(),
        Some(
            "30 rows are simulated once each with another: `topology.uplink_gbps` has no effect where topology.kind = rail-only, \
             `transport.hpcc.eta` where transport.cc = dcqcn"
        )
    );
    assert_eq!(s.notes, Vec::<String>::new());
}

#[test]
fn an_axis_that_nothing_reads_and_values_listed_twice_are_refused() {
    let refused = |axes: &str| parse(&format!("{RING}{axes}")).err().unwrap().to_string();
    let unread = refused("[axes]\n\"transport.cc\" = [\"none\"]\n\"transport.hpcc.eta\" = [0.8, 0.9]\n");
    assert!(unread.contains("nothing reads the axis `transport.hpcc.eta` in any of the 2 experiments"), "{unread}");
    let twice = refused("[axes]\n\"transport.cc\" = [\"hpcc\", \"none\", \"hpcc\"]\n");
    assert!(twice.contains("[transport.cc = \"hpcc\"] and [transport.cc = \"hpcc\"]; list each once"), "{twice}");
    let spelled = "[sweep]\nmethod = \"list\"\n[[experiment]]\ntopology.kind = \"clos\"\ntransport.cc = \"hpcc\"\n[[experiment]]\ntopology.kind = \"clos\"\n";
    assert!(refused(spelled).contains("the same values on all axes"), "{}", refused(spelled));
}

#[test]
fn what_cannot_be_is_one_experiments_and_not_the_sweeps() {
    let text = format!("{RING}[axes]\n\"topology.kind\" = [\"fat-tree\", \"clos\"]\n\"topology.k\" = [4, 5]\n");
    let s = parse(&text).unwrap();
    let why: Vec<Option<&str>> = s.experiments.iter().map(|e| s.cannot_run(e)).collect();
    assert_eq!(why, [None, Some("`topology.k = 5`: it must be even: 4 or 6"), None, None]);
    assert!(s.config(&s.experiments[1]).is_err() && s.config(&s.experiments[2]).is_ok());
    assert_eq!(s.duplicates, 1, "a clos does not read k");
    let e = parse(&text.replace("\"fat-tree\", \"clos\"", "\"fat-tree\"").replace("[4, 5]", "[3, 5]")).err().unwrap();
    assert!(e.to_string().contains("`topology.k = 3`: it must be even"), "where nothing can run: {e}");
}

#[test]
fn samples_of_a_grid_are_noted() {
    let s = parse(&format!("{RING}[sweep]\nsamples = 5\n")).unwrap();
    assert_eq!(
        s.notes,
        ["sweep.toml:6: `sweep.samples` has no effect with method = \"grid\"; random, lhs and optimize read it"]
    );
}

#[test]
fn exploding_axes_are_refused_at_once() {
    let start = Instant::now();
    let axis = |k: &str| format!("\"{k}\" = {{ start = 1, stop = 1000, step = 1 }}\n");
    let e =
        parse(&format!("{RING}[axes]\n{}{}{}", axis("workload.bytes"), axis("workload.stride"), axis("routing.seed")))
            .err()
            .unwrap();
    assert!(e.to_string().contains("1000 x 1000 x 1000"), "{e}");
    let e = parse(&format!("{RING}[axes]\n\"workload.bytes\" = {{ start = 1, stop = 1000000000, step = 1 }}\n"))
        .err()
        .unwrap();
    assert!(e.to_string().contains("use larger steps"), "{e}");
    assert!(start.elapsed().as_secs_f64() < 1.0);
}

/// Suites too large to run in a test still expand, every key with an effect.
#[test]
fn shipped_sweeps_expand_to_what_their_readme_says() {
    let readme = std::fs::read_to_string("experiments/README.md").unwrap();
    for folder in ["studies", "suites"] {
        for entry in std::fs::read_dir(Path::new("experiments").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let s = sweep::load(&path, &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(s.notes, Vec::<String>::new(), "{}", path.display());
            let name = format!("`{folder}/{}`", path.file_name().unwrap().to_str().unwrap());
            let line = readme
                .lines()
                .find(|l| l.contains(&name))
                .unwrap_or_else(|| panic!("experiments/README.md does not name {name}"));
            assert!(
                line.contains(&format!("| {} experiment", s.experiments.len())),
                "{name}: {} experiments",
                s.experiments.len()
            );
            for e in &s.experiments {
                let workload = s.config(e).unwrap().workload;
                let of_traffic = [
                    "flow-beside-",
                    "spraying",
                    "failing-links",
                    "failed-link-routing",
                    "slow-links",
                    "lossy-links",
                    "ultra-ethernet",
                    "queues-further-on",
                    "optical-circuits",
                    "weighed-ports",
                    "flowlets",
                ];
                let traffic = of_traffic.iter().any(|part| name.contains(part));
                let jobs = matches!(
                    workload,
                    WorkloadSection::Program(_) | WorkloadSection::Jobs | WorkloadSection::Cluster(_)
                );
                assert!(traffic || jobs, "{name}");
            }
        }
    }
}

/// The payload of packets is that of the named server in every network, so the server is no key without effect.
#[test]
fn a_server_matters_in_a_network_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("net.txt"), "3 1 2\n2\n0 2 100Gbps 0.001ms 0\n1 2 100Gbps 0.001ms 0\n").unwrap();
    let read = |more: &str| {
        let text = format!("{RING}[base.topology]\nkind = \"file\"\npath = \"net.txt\"\n{more}");
        sweep::parse(&text, &folder.path().join("sweep.toml"), &SetOverrides::default()).unwrap()
    };
    let (without, with) = (read(""), read("[base.cluster]\nserver = \"dgx-h100\"\n"));
    assert!(without.notes.is_empty() && with.notes.is_empty(), "{:?}", with.notes);
    assert_ne!(without.experiments[0].config_key, with.experiments[0].config_key);
    let both = read("[axes]\n\"cluster.server\" = [\"dgx-h100\", \"gcp-a3mega\"]\n");
    assert_ne!(both.experiments[0].config_key, both.experiments[1].config_key);
}

/// Packets inside servers change the times of generated traffic, so they make another experiment of it. The closed form leaves the identity as it is without the key.
#[test]
fn what_carries_traffic_inside_a_server_is_part_of_its_identity() {
    let keys = |line: &str| {
        let text = format!("{RING}[base.cluster]\ngpus = 16\n{line}");
        let sweep = parse(&text).unwrap();
        (sweep.experiments.iter().map(|e| e.config_key).collect::<Vec<_>>(), sweep.notes.join("\n"))
    };
    let (plain, _) = keys("");
    let (packets, said) = keys("nvlink = \"packet\"\n");
    assert_ne!(plain, packets);
    assert!(!said.contains("cluster.nvlink"), "{said}");
    let (both, said) = keys("[axes]\n\"cluster.nvlink\" = [\"analytic\", \"packet\"]\n");
    assert_eq!(both, [plain, packets].concat());
    assert!(!said.contains("cluster.nvlink"), "{said}");
}
