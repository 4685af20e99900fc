//! `submit` against stand-ins of SLURM's commands; scripts/soak-slurm.sh does it against SLURM itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::program::{Ran, command, seen};

const SWEEP: &str = "name = \"s\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n[axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\", \"none\"]\n\
                     \"topology.link_gbps\" = [100, 400]\n";

/// A folder with a sweep file and programs that stand in for others, first on PATH. Its name holds what shells and SLURM read as more than a name.
struct Site {
    root: tempfile::TempDir,
}

impl Site {
    fn new() -> Site {
        let root = tempfile::tempdir().unwrap();
        let site = Site { root };
        fs::create_dir_all(site.work()).unwrap();
        fs::create_dir(site.root.path().join("bin")).unwrap();
        fs::write(site.work().join("my sweep.toml"), SWEEP).unwrap();
        site
    }

    fn work(&self) -> PathBuf {
        self.root.path().join("it's $HOME \"100% #1\"")
    }

    fn program(&self, name: &str, body: &str) -> PathBuf {
        let path = self.root.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/bash\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn path(&self) -> String {
        format!("{}:{}", self.root.path().join("bin").display(), std::env::var("PATH").unwrap())
    }

    fn submit(&self, args: &[&str]) -> Ran {
        let args = [&["submit", "my sweep.toml"], args].concat();
        seen(&args, command(&self.work(), &args).env("PATH", self.path()).output().expect("the program starts"))
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.work().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    /// Runs a script as a task of an array job would; what it printed, and its exit code.
    fn run_task(&self, script: &str, env: &[(&str, &str)]) -> (String, i32) {
        let output = Command::new("bash")
            .arg(self.work().join(script))
            .current_dir("/")
            .env("PATH", self.path())
            .envs([("SLURM_ARRAY_TASK_ID", "2"), ("SLURM_ARRAY_JOB_ID", "41")])
            .envs(env.iter().copied())
            .output()
            .expect("bash starts");
        let ran = seen(&[script], output);
        (format!("{}{}", ran.stdout, ran.stderr), ran.code)
    }
}

/// Prints its arguments, one a line in brackets.
const SHOW: &str = "printf '[%s]\\n' \"$@\"";
/// Takes jobs as `sbatch --parsable` does: 41, then 42.
const SBATCH: &str = "echo \"$@\" >> \"$0.log\"; echo \"$(( 40 + $(wc -l < \"$0.log\") ));cluster\"";

#[test]
fn jobs_are_submitted_with_their_dependency_and_paths_stay_what_they_are() {
    let site = Site::new();
    site.program("sbatch", SBATCH);
    let show = site.program("show me", SHOW);
    let args = [
        "--slurm",
        "--shards",
        "4",
        "--out",
        "my out",
        "--engine",
        "gpu",
        "--set",
        "topology.kind='clos'",
        "--program",
        show.to_str().unwrap(),
    ];
    let output = site.submit(&args);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.starts_with("array job 41: 4 shards, "), "{}", output.stdout);
    assert!(output.stdout.contains("merge job 42: "), "{}", output.stdout);

    let log = fs::read_to_string(site.root.path().join("bin/sbatch.log")).unwrap();
    let work = site.work().display().to_string();
    assert_eq!(
        log,
        format!(
            "--parsable {work}/my out/shards.sbatch\n--parsable --dependency=afterany:41 {work}/my out/merge.sbatch\n"
        )
    );
    let script = site.read("my out/shards.sbatch");
    assert!(script.contains("#SBATCH --array=0-3\n") && script.contains("#SBATCH --gres=gpu:1\n"), "{script}");
    let record: serde_json::Value = serde_json::from_str(&site.read("my out/submit.json")).unwrap();
    assert_eq!(record["jobs"], serde_json::json!(["41", "42"]));

    let (shown, code) = site.run_task("my out/shards.sbatch", &[]);
    assert_eq!(code, 0);
    let words = [
        "run",
        &format!("{work}/my sweep.toml"),
        "--shard",
        "2/4",
        "--out",
        &format!("{work}/my out/shard-2"),
        "--resume",
        "--engine",
        "gpu",
        "--set",
        "topology.kind='clos'",
    ];
    assert_eq!(shown, words.map(|w| format!("[{w}]\n")).concat());

    let (shown, code) = site.run_task("my out/merge.sbatch", &[]);
    assert_eq!(code, 0);
    let shards: String = (0..4).map(|i| format!("[{work}/my out/shard-{i}]\n")).collect();
    assert_eq!(shown, format!("[merge]\n{shards}[--out]\n[{work}/my out/merged]\n"));
}

#[test]
fn help_says_what_there_is() {
    let output = Site::new().submit(&["--help"]);
    insta::assert_snapshot!("submit_help", output.stdout);
}

#[test]
fn what_breaks_off_is_queued_again_a_limited_number_of_times() {
    let site = Site::new();
    site.program("sbatch", SBATCH);
    // The stand-in returns at once, where SLURM would end the script; `sleep` must not hold the test up.
    site.program("scontrol", "echo \"scontrol $*\"; exit 1");
    let cases = [
        ("kill -9 $$", "0", 137, true),
        ("kill -9 $$", "3", 137, false),
        ("exit 0", "0", 0, false),
        ("exit 1", "0", 1, false),
        ("exit 2", "0", 2, false),
        // The run broke off, as its manifest says: another node may do better.
        ("mkdir -p \"$6\"; printf '{\\n  \"outcome\": \"aborted\",\\n' > \"$6/manifest.json\"; exit 1", "0", 1, true),
    ];
    for (n, (body, restarts, expected, again)) in cases.into_iter().enumerate() {
        let program = site.program("program", body);
        let out = format!("out{n}");
        let output = site.submit(&["--slurm", "--shards", "4", "--out", &out, "--program", program.to_str().unwrap()]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let (shown, code) = site.run_task(&format!("{out}/shards.sbatch"), &[("SLURM_RESTART_COUNT", restarts)]);
        assert_eq!((code, shown.contains("scontrol requeue 41_2")), (expected, again), "{body}: {shown}");
    }
}

/// Near its time limit SLURM signals the script; a task that may not go back into the queue goes on to its end.
#[test]
fn the_warning_before_the_time_limit_queues_the_task_again() {
    let site = Site::new();
    site.program("sbatch", SBATCH);
    site.program("scontrol", "echo \"scontrol $*\" >> \"$0.log\"; exit 1");
    let program = site.program("program", "kill -USR1 $PPID; sleep 0.5; echo finished; exit 3");
    let output = site.submit(&[
        "--slurm",
        "--shards",
        "4",
        "--out",
        "o",
        "--time",
        "10",
        "--requeues",
        "2",
        "--program",
        program.to_str().unwrap(),
    ]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(site.read("o/shards.sbatch").contains("#SBATCH --signal=B:USR1@90\n"));
    for (restarts, asked) in [("1", true), ("2", false)] {
        let (shown, code) = site.run_task("o/shards.sbatch", &[("SLURM_RESTART_COUNT", restarts)]);
        assert_eq!(code, 3, "{shown}");
        assert!(shown.contains("shard 2: near its time limit; not queued again\nfinished\n"), "{shown}");
        assert_eq!(shown.contains("near its time limit; queued again"), asked, "{shown}");
    }
    assert_eq!(fs::read_to_string(site.root.path().join("bin/scontrol.log")).unwrap(), "scontrol requeue 41_2\n");
}

#[test]
fn the_same_is_submitted_again_only_as_the_same() {
    let site = Site::new();
    site.program("sbatch", SBATCH);
    let base = ["--slurm", "--shards", "2", "--out", "o"];
    assert_eq!(site.submit(&base).code, 0);
    let refused = |args: &[&str], named: &str| {
        let output = site.submit(args);
        assert_eq!(output.code, 2, "{args:?}");
        assert!(output.stderr.contains(named), "{args:?}: {}", output.stderr);
    };
    refused(&base, "--resume");
    refused(&["--slurm", "--shards", "3", "--out", "o", "--resume"], "shards = 2");
    refused(&["--slurm", "--shards", "2", "--out", "other", "--resume"], "submit.json");
    assert_eq!(site.submit(&[&base[..], &["--resume"]].concat()).code, 0);
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_written() {
    let site = Site::new();
    site.program("sbatch", "echo no partition >&2; exit 1");
    for (args, named) in [
        (&["--slurm", "--shards", "7", "--out", "o"][..], "6 experiments"),
        (&["--slurm", "--shards", "0", "--out", "o"], "--shards"),
        (&["--shards", "2", "--out", "o"], "--slurm"),
        (&["--slurm", "--kubernetes", "--shards", "2", "--out", "o"], "--kubernetes"),
        (&["--slurm", "--shards", "2", "--out", "o\nx"], "control characters"),
        (&["--slurm", "--shards", "2", "--out", "o", "--partition", "a\n#SBATCH --uid=0"], "--partition"),
        (&["--slurm", "--shards", "2", "--out", "o", "--set", "transport.cx=1"], "transport.cx"),
        (&["--slurm", "--shards", "2", "--out", "o", "--image", "i"], "--image"),
        (&["--slurm", "--shards", "2", "--out", "o", "--", "--no-such-option"], "--no-such-option"),
        (&["--kubernetes", "--shards", "2", "--out", "o"], "--image"),
        (&["--kubernetes", "--shards", "2", "--out", "/elsewhere/o", "--image", "i", "--claim", "c"], "--mount"),
        (&["--kubernetes", "--shards", "2", "--out", "../o", "--image", "i", "--claim", "c"], "--mount"),
        (&["--kubernetes", "--shards", "2", "--out", "o", "--image", "i", "--claim", "c", "--time", "5"], "--time"),
    ] {
        let output = site.submit(args);
        assert_eq!(output.code, 2, "{args:?}");
        assert!(output.stderr.contains(named), "{args:?}: {}", output.stderr);
        assert!(!site.work().join("o").exists(), "{args:?}");
    }
    let output = site.submit(&["--slurm", "--shards", "2", "--out", "o"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("no partition"), "{}", output.stderr);
}

#[test]
fn a_dry_run_and_a_manifest_contact_nobody() {
    let site = Site::new();
    let marker = site.root.path().join("contacted");
    for program in ["sbatch", "kubectl"] {
        site.program(program, &format!("touch {}", marker.display()));
    }
    let output = site.submit(&["--slurm", "--shards", "2", "--out", "o", "--dry-run"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("#SBATCH --array=0-1\n"), "{}", output.stdout);
    let kubernetes = ["--kubernetes", "--shards", "2", "--out", "o", "--image", "i", "--claim", "c"];
    let output = site.submit(&kubernetes);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let manifest = output.stdout;
    assert!(manifest.contains("completionMode: Indexed") && manifest.contains("\"/data/my sweep.toml\""), "{manifest}");
    let to_file = [&kubernetes[..], &["--manifest", "m.yaml"]].concat();
    assert_eq!(site.submit(&to_file).code, 0);
    assert_eq!(site.read("m.yaml"), manifest);
    assert_eq!(site.submit(&to_file).code, 2, "an existing file is kept");
    assert!(!marker.exists() && !Path::new(&site.work().join("o")).exists());
}
