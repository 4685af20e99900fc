//! `hyperfold plot` from a run to a figure.

use std::process::Command;

use crate::support::program::{Folder, seen};

const SWEEP: &str = "name = \"rates\"\n[base.cluster]\ngpus = 8\ngpus_per_server = 1\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 20000\n\
                     [base.output]\nflows = true\n[axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\"]\n\"topology.link_gbps\" = [100, 200, 400]\n";

fn run() -> Folder {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    folder
}

#[test]
fn figures_are_written_from_the_shell() {
    let folder = run();
    let columns = ["plot", "o", "--x", "link_gbps", "--y", "makespan_ns", "--by", "cc"];
    let shown = folder.run(&columns);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    assert!(shown.stdout.starts_with("<?xml") && shown.stdout.ends_with("</svg>\n"), "{}", shown.stdout);
    for text in ["rates: makespan over topology.link_gbps", "hpcc", "dcqcn", "100", "400", "makespan (us)"] {
        assert!(shown.stdout.contains(&format!(">{text}</text>")), "{text}: {}", shown.stdout);
    }
    for (file, starts) in [("f.svg", &b"<?xml"[..]), ("f.png", b"\x89PNG"), ("F.PNG", b"\x89PNG")] {
        let written = folder.run(&[&columns[..], &["-o", file]].concat());
        assert_eq!((written.code, written.stdout), (0, format!("figure: {file}\n")), "{}", written.stderr);
        assert!(folder.bytes(file).starts_with(starts), "{file}");
    }
    assert_eq!(folder.text("f.svg"), shown.stdout);
    let cdf = folder.run(&["plot", "o", "--cdf", "fct", "--by", "transport.cc", "--log-x", "--title", "ours"]);
    assert_eq!((cdf.code, cdf.stderr.as_str()), (0, ""));
    assert!(
        cdf.stdout.contains(">ours</text>") && cdf.stdout.contains(">flow completion time</text>"),
        "{}",
        cdf.stdout
    );
}

#[test]
fn the_picture_needs_nothing_of_the_system() {
    let folder = run();
    let args = ["plot", "o", "--x", "cc", "--y", "fct_p99_ns", "-o", "bare.png"];
    let mut bare = Command::new(env!("CARGO_BIN_EXE_hyperfold"));
    let ran = seen(&args, bare.current_dir(folder.path()).args(args).env_clear().output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(folder.run(&["plot", "o", "--x", "cc", "--y", "fct_p99_ns", "-o", "full.png"]).code, 0);
    assert!(folder.bytes("bare.png") == folder.bytes("full.png"), "fonts and locale of the system change nothing");
}

#[test]
fn samples_are_drawn_over_time() {
    let folder = Folder::new(&[("s.toml", &SWEEP.replace("flows = true", "series = [\"links\", \"flows\"]"))]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let at_100 = ["plot", "o", "--where", "topology.link_gbps == 100"];
    let one = ["--where", "transport.cc == \"hpcc\""];
    for (args, texts) in [
        (
            &["--over-time", "throughput_gbps", "--by", "cc", "--link", "host0->leaf0"][..],
            &["rates: throughput (Gb/s) over time", "time (us)", "hpcc", "dcqcn", "transport.cc"][..],
        ),
        (&[&one[..], &["--over-time", "queue_bytes"]].concat(), &["rates: queue over time", "link"]),
        (&[&one[..], &["--over-time", "rate_gbps", "--flow", "3"]].concat(), &["rates: rate (Gb/s) over time"]),
        (&[&one[..], &["--over-time", "goodput_gbps"]].concat(), &["flow", "0: host0-&gt;host1"]),
    ] {
        let drawn = folder.run(&[&at_100[..], args].concat());
        assert_eq!((drawn.code, drawn.stderr.as_str()), (0, ""), "{args:?}");
        for text in texts {
            assert!(drawn.stdout.contains(&format!(">{text}</text>")), "{args:?}: {text}: {}", drawn.stdout);
        }
    }
    for (args, named) in [
        (
            &["--over-time", "queue_bytes"][..],
            "experiments 0 and 3 would be one series; name by --by what they differ in",
        ),
        (
            &["--over-time", "queue_bytes", "--by", "cc", "--link", "x->y"],
            "--link x->y: it has no row in series_links.csv; there are ",
        ),
        (
            &["--over-time", "queue_bytes", "--by", "cc", "--flow", "1"],
            "--flow does not go with --over-time queue_bytes",
        ),
        (
            &["--over-time", "rate_gbps", "--by", "cc", "--flow", "99"],
            "--flow 99: it has no row in series_flows.csv; there are 0: host0->host1",
        ),
    ] {
        let ran = folder.run(&[&at_100[..], args].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ran.stderr.contains(named), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let folder = run();
    for (args, named) in [
        (&["--x", "cc", "--y", "duration"][..], "hyperfold: --y duration: no such column; there are exp_id, "),
        (&["--x", "cc", "--y", "makespan"], "hyperfold: --y makespan: no such column; did you mean `makespan_ns`?"),
        (&["--x", "gpus", "--y", "makespan_ns"], "--x gpus: no such column"),
        (&["--x", "cc"], "--y <COLUMN>"),
        (&["--cdf", "rtt"], "o: there is no rtt.csv; run the sweep with `output.rtt = true` for it"),
        (&["--cdf", "queue"], "fct, slowdown, bytes, rtt"),
        (
            &["--over-time", "queue_bytes"],
            "o: there is no series_links.csv; run the sweep with `output.series = \"links\"` for it",
        ),
        (&["--over-time", "fct"], "queue_bytes, throughput_gbps"),
        (&["--link", "leaf0->host0", "--x", "cc", "--y", "makespan_ns"], "cannot be used with"),
        (&["--link", "leaf0->host0"], "--over-time <COLUMN>"),
        (&["--cdf", "fct", "--y", "makespan_ns"], "cannot be used with"),
        (&["--x", "cc", "--y", "makespan_ns", "-o", "f.pdf"], "-o f.pdf: a figure's file ends in .svg or .png"),
    ] {
        let ran = folder.run(&[&["plot", "o"], args].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ran.stderr.contains(named), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(folder.run(&["plot", "absent", "--cdf", "fct"]).code, 2);
    let broken = folder.run(&["plot", "o", "--cdf", "fct", "-o", "no/such/folder.svg"]);
    assert!(broken.code == 2 && broken.stderr.contains("-o no/such/folder.svg"), "{}", broken.stderr);
}

#[test]
fn a_figure_of_one_job_of_several_names_it() {
    let jobs = "[[job]]\nname = \"noise\"\nkind = \"traffic\"\npattern = \"poisson\"\nload = 0.2\nduration_ns = 1000000\nbackground = true\n\
                [[job]]\nname = \"a\"\nkind = \"collective\"\nop = \"all-reduce\"\nbytes = 20000\ngpus = 4\n\
                [[job]]\nname = \"b\"\nkind = \"collective\"\nop = \"all-reduce\"\nbytes = 40000\ngpus = 4\n";
    let text = format!(
        "name = \"j\"\nbase.cluster = {{ gpus = 8, gpus_per_server = 1 }}\n{jobs}[axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\"]\n"
    );
    let folder = Folder::new(&[("s.toml", &text)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = folder.run(&["plot", "o", "--x", "cc", "--y", "iteration_time_ns"]);
    assert!(shown.stdout.contains(">j: iteration time of job a over transport.cc</text>"), "{}", shown.stdout);
}

#[test]
fn a_figure_is_of_the_experiments_that_meet_a_condition() {
    let folder = run();
    let columns = ["plot", "o", "--x", "link_gbps", "--y", "makespan_ns", "--by", "cc"];
    let shown = folder.run(&[&columns[..], &["--where", "cc == \"hpcc\"", "--where", "link_gbps < 400"]].concat());
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    assert!(shown.stdout.contains(">100</text>") && !shown.stdout.contains(">400</text>"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("dcqcn"), "{}", shown.stdout);
    assert!(shown.stdout.contains("where cc == &quot;hpcc&quot;; where link_gbps &lt; 400</text>"), "{}", shown.stdout);
    let both = folder.run(&[&columns[..], &["--where", "cc == \"hpcc\"", "--where", "cc == \"dcqcn\""]].concat());
    assert!(both.code == 2 && both.stderr.contains("no experiment meets all of them"), "{}", both.stderr);
    let cdf = folder.run(&["plot", "o", "--cdf", "fct", "--by", "cc", "--where", "cc == \"dcqcn\""]);
    assert!(cdf.code == 0 && !cdf.stdout.contains("hpcc"), "{}{}", cdf.stdout, cdf.stderr);
    for (condition, why) in [
        ("cc == \"timely\"", "no experiment meets it"),
        ("makespan > 3", "did you mean `makespan_ns`?"),
        ("cc == hpcc", "there is no column `hpcc` (a text stands in double quotes); it takes those of results.csv"),
        ("cc = \"hpcc\"", "did you mean `==`?"),
        ("cc == \"hpcc\" and drops == 0", "write `&&` for `and`"),
        ("cc > 3", "--where 'cc > 3': "),
        ("mfu > 0.5", "of 6 experiments a value is missing"),
        ("link_gbps", "must give true or false"),
    ] {
        let wrong = folder.run(&[&columns[..], &["--where", condition]].concat());
        assert!(wrong.code == 2 && wrong.stderr.contains(why), "{condition}: {}", wrong.stderr);
    }
}
