//! Every sweep of `experiments/` plans and runs, as its README says.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::support::program::{Folder, hyperfold};
use crate::worked_examples::hold_lines;

fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments")
}

/// Plans and runs a sweep from the crate's folder, as the README does; gives the results, and what it printed.
fn plan_and_run(name: &str) -> (Folder, String) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let typed = format!("experiments/{name}");
    let plan = hyperfold(here, &["plan", &typed]);
    assert_eq!(plan.code, 0, "{name}: {}", plan.stderr);
    assert!(!plan.stdout.contains("warning"), "{name} is an example, and warns: {}", plan.stdout);
    let folder = Folder::new(&[]);
    let out = folder.file("o").display().to_string();
    let started = Instant::now();
    let run = hyperfold(here, &["run", &typed, "--out", &out]);
    println!("{name}: {:.1} s\n{}", started.elapsed().as_secs_f64(), run.stdout);
    assert_eq!(run.code, 0, "{name}: {}", run.stderr);
    let status = folder.column("o/results.csv", "status");
    assert!(status.iter().all(|s| s == "ok"), "{name}: {status:?}");
    assert!(plan.stdout.starts_with(&format!("experiments: {}\n", status.len())), "{name}: {}", plan.stdout);
    assert!(run.stdout.contains("best"), "{name} ends with a table: {}", run.stdout);
    (folder, run.stdout)
}

#[test]
fn every_sweep_runs_and_the_readme_names_every_file() {
    let readme = fs::read_to_string(experiments().join("README.md")).unwrap();
    let mut sweeps = 0;
    for folder in [experiments(), experiments().join("reference-cases")] {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            assert!(
                name == "README.md" || readme.contains(name.trim_end_matches('/')),
                "experiments/README.md does not name {name}"
            );
            if name.ends_with(".toml") {
                let (_, printed) = plan_and_run(&name);
                if name == "quickstart.toml" {
                    hold_lines("README.md", "topology.kind  ", &printed);
                }
                sweeps += 1;
            }
        }
    }
    assert!(sweeps >= 2, "{sweeps} sweeps");
}

#[test]
fn reference_cases_write_every_flow() {
    let (folder, _) = plan_and_run("reference-cases.toml");
    let lines = |file: &str| {
        fs::read_to_string(experiments().join(file)).unwrap().lines().next().unwrap().parse::<usize>().unwrap()
    };
    let expected: usize = folder.column("o/results.csv", "workload.path").iter().map(|p| lines(p)).sum();
    let fct = folder.column("o/flows.csv", "fct_ns");
    assert_eq!(fct.len(), expected);
    // The nanosecond clock: every completion is a whole nanosecond.
    assert!(fct.iter().all(|f| f.parse::<u64>().is_ok_and(|ns| ns > 0)), "{fct:?}");
    let pauses = folder.column("o/results.csv", "pfc_pauses");
    let config = folder.column("o/results.csv", "transport.config");
    let storm = config.iter().position(|c| c.contains("none-small-buffer")).expect("the sweep has a storm");
    assert!(pauses[storm].parse::<u64>().unwrap() > 0, "{pauses:?}");
}

/// Two flows into one port under HPCC come to equal shares slowly: were they skipped on the way, as steady, they would stay where they are.
#[test]
fn shares_that_are_on_their_way_are_not_skipped() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mean = |mode: &str, theta: &str| {
        let folder = Folder::new(&[]);
        let out = folder.file("o").display().to_string();
        let set = [format!("fidelity.fast_forward={mode}"), format!("fidelity.steady_theta={theta}")];
        let run = hyperfold(
            here,
            &[
                "run",
                "experiments/contention/incast-2.toml",
                "--limit",
                "1",
                "--engine",
                "cpu",
                "--out",
                &out,
                "--set",
                &set[0],
                "--set",
                &set[1],
            ],
        );
        assert_eq!(run.code, 0, "{mode}: {}", run.stderr);
        assert_eq!(folder.column("o/results.csv", "transport.cc"), ["hpcc"]);
        let exactly = folder.column("o/stats.csv", "exact_instead")[0] == "1";
        (folder.column("o/results.csv", "fct_mean_ns")[0].parse::<f64>().unwrap(), exactly)
    };
    let exact = mean("off", "0").0;
    let off_by = |theta| {
        let (mean, exactly) = mean("steady", theta);
        ((mean / exact - 1.0).abs(), exactly)
    };
    assert!(off_by("0").0 < 0.001, "{:?}", off_by("0"));
    // Who asks for it gets skips, but too few: it starts over without them.
    assert_eq!(off_by("0.2"), (0.0, true));
}
