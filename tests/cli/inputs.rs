//! Files that a sweep names: only regular ones of a limited size, and with `--root` only those under one folder.

use std::fs::{self, File};
#[cfg(unix)]
use std::process::{Command, Stdio};
#[cfg(unix)]
use std::time::{Duration, Instant};

use crate::support::program::Folder;
#[cfg(unix)]
use crate::support::program::{Ran, command, seen};

const SWEEP: &str =
    "name = \"s\"\n[base.cluster]\ngpus = 16\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 1000\n";
const POISSON: &str = "kind = \"traffic\"\npattern = \"poisson\"\nduration_ns = 1000\nload = 0.5";
const MODEL: &str = "kind = \"model\"\ntp = 8\ndp = 2";
const COLLECTIVE: &str = "kind = \"collective\"\nop = \"all-reduce\"\nbytes = 1000";

/// Every key that names a file: its section, its name, and the workload under which it is read.
const KEYS: &[(&str, &str, &str)] = &[
    ("topology", "path", "kind = \"traffic\"\npattern = \"ring\"\nbytes = 1000"),
    ("routing", "path", "kind = \"traffic\"\npattern = \"ring\"\nbytes = 1000"),
    ("transport", "config", "kind = \"traffic\"\npattern = \"ring\"\nbytes = 1000"),
    ("workload", "path", "kind = \"flows\""),
    ("workload", "path", "kind = \"simai\""),
    ("workload", "path", "kind = \"chakra\""),
    ("workload", "path", "kind = \"htsim\""),
    ("workload", "path", "kind = \"goal\""),
    ("workload", "cdf", POISSON),
    ("workload", "model", MODEL),
    ("workload", "kernels", MODEL),
    ("workload", "slowdown", MODEL),
    ("cluster", "gpu", MODEL),
    ("cluster", "server_xml", COLLECTIVE),
    ("workload.nccl", "NCCL_TOPO_FILE", COLLECTIVE),
];

/// A sweep in which `section.key` names `file`.
fn naming(section: &str, key: &str, workload: &str, file: &str) -> String {
    let mut sections = vec![("cluster", "gpus = 16".to_string()), ("workload", workload.to_string())];
    let mut add = |section: &'static str, line: String| match sections.iter_mut().find(|(s, _)| *s == section) {
        Some((_, lines)) => *lines += &format!("\n{line}"),
        None => sections.push((section, line)),
    };
    let line = format!("{key} = \"{file}\"");
    match section {
        "topology" => add("topology", format!("kind = \"file\"\n{line}")),
        "routing" => add("routing", format!("policy = \"file\"\n{line}")),
        "transport" => add("transport", line),
        "workload" => add("workload", line),
        "cluster" => add("cluster", line),
        "workload.nccl" => add("workload.nccl", line),
        _ => unreachable!("no such section"),
    }
    if workload == MODEL && key != "model" {
        add("workload", "model = \"gpt3-13b\"".to_string());
    }
    let text: Vec<String> = sections.iter().map(|(name, lines)| format!("[base.{name}]\n{lines}\n")).collect();
    format!("name = \"s\"\n{}", text.concat())
}

/// What the key takes as a file: some tell by its ending.
fn file_name(key: &str) -> &'static str {
    match key {
        "model" | "gpu" => "f.toml",
        "slowdown" => "f.json",
        _ => "f.txt",
    }
}

#[test]
fn a_file_outside_of_the_root_is_refused_whichever_key_names_it() {
    let folder = Folder::new(&[]);
    for dir in ["in", "out"] {
        fs::create_dir(folder.file(dir)).unwrap();
    }
    for (section, key, workload) in KEYS {
        let name = file_name(key);
        folder.write(&format!("out/{name}"), "what a stranger must not see");
        let value = format!("../out/{name}");
        folder.write("in/s.toml", &naming(section, key, workload, &value));
        for args in [&["plan", "in/s.toml", "--root", "in"][..], &["--root", "in", "run", "in/s.toml", "--out", "o"]] {
            let ran = folder.run(args);
            assert_eq!(ran.code, 2, "{section}.{key}: {}", ran.stderr);
            for part in [&format!("{section}.{key}")[..], &value, "--root in"] {
                assert!(ran.stderr.contains(part), "{section}.{key}, {workload}: {part}: {}", ran.stderr);
            }
            assert!(!ran.stderr.contains("stranger"), "{}", ran.stderr);
        }
        // Without a root, it is the content that is wrong, if anything.
        let free = folder.run(&["plan", "in/s.toml"]);
        assert!(!free.stderr.contains("--root"), "{}", free.stderr);
    }
    assert!(!folder.file("o").exists());
}

#[test]
fn what_lies_under_the_root_is_read_and_the_sweep_may_lie_elsewhere() {
    let folder = Folder::new(&[]);
    fs::create_dir(folder.file("in")).unwrap();
    folder.write("in/flows.txt", "2\n0 1 3 100 1000 0.1\n1 0 3 100 1000 0.1\n");
    folder.write("s.toml", &naming("workload", "path", "kind = \"flows\"", "in/flows.txt"));
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--root", "in", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // `trace` simulates again, and reads again.
    fs::create_dir(folder.file("other")).unwrap();
    let refused = folder.run(&["trace", "o", "0", "--root", "other"]);
    assert!(refused.code == 2 && refused.stderr.contains("outside of --root other"), "{}", refused.stderr);
    for (root, why) in [("none", "--root none: "), ("s.toml", "--root s.toml: it is not a folder")] {
        let ran = folder.run(&["plan", "s.toml", "--root", root]);
        assert!(ran.code == 2 && ran.stderr.contains(why), "{}", ran.stderr);
    }
}

#[cfg(unix)]
#[test]
fn links_and_folders_of_traces_do_not_lead_out_of_the_root() {
    let folder = Folder::new(&[]);
    for dir in ["in", "out", "in/traces"] {
        fs::create_dir(folder.file(dir)).unwrap();
    }
    for file in ["out/f.txt", "out/t.0.et", "out/t.json"] {
        folder.write(file, "secret");
    }
    std::os::unix::fs::symlink("../out/f.txt", folder.file("in/f.txt")).unwrap();
    std::os::unix::fs::symlink("../../out/t.0.et", folder.file("in/traces/t.0.et")).unwrap();
    std::os::unix::fs::symlink("../out", folder.file("in/linked")).unwrap();
    std::os::unix::fs::symlink("../../out/t.json", folder.file("in/traces/t.json")).unwrap();
    for (kind, path) in [
        ("kineto", "traces"),
        ("kineto", "linked"),
        ("flight-recorder", "traces"),
        ("flight-recorder", "linked"),
        ("flows", "f.txt"),
        ("chakra", "traces"),
        ("chakra", "traces/t"),
        ("chakra", "linked"),
        ("chakra", "linked/t"),
    ] {
        folder.write("in/s.toml", &naming("workload", "path", &format!("kind = \"{kind}\""), path));
        let ran = folder.run(&["plan", "in/s.toml", "--root", "in"]);
        assert_eq!(ran.code, 2, "{path}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("workload.path") && ran.stderr.contains("outside of --root in"),
            "{path}: {}",
            ran.stderr
        );
    }
    let inspect = folder.run(&["workload", "inspect", "in/f.txt", "--format", "simai", "--root", "in"]);
    assert!(inspect.code == 2 && inspect.stderr.contains("outside of --root in"), "{}", inspect.stderr);
}

/// Runs the program, and fails where it does not end by itself.
#[cfg(unix)]
fn ends(folder: &Folder, args: &[&str]) -> Ran {
    let mut child = command(folder.path(), args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let until = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("{args:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    seen(args, child.wait_with_output().unwrap())
}

#[cfg(unix)]
#[test]
fn devices_pipes_and_folders_are_no_inputs() {
    let folder = Folder::new(&[]);
    fs::create_dir(folder.file("dir")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.file("pipe")).status().unwrap().success());
    for (file, why) in
        [("/dev/zero", "a device, a pipe or a socket"), ("pipe", "a device, a pipe or a socket"), ("dir", "a folder")]
    {
        for args in [
            &["plan", file][..],
            &["run", file, "--out", "o"],
            &["submit", file, "--slurm", "--shards", "1", "--out", "o"],
        ] {
            let ran = ends(&folder, args);
            assert!(ran.code == 2 && ran.stderr.contains(why), "{args:?}: {}", ran.stderr);
        }
        for (section, key, workload) in KEYS {
            if !["f.txt"].contains(&file_name(key)) {
                continue;
            }
            folder.write("s.toml", &naming(section, key, workload, file));
            let ran = ends(&folder, &["plan", "s.toml"]);
            assert_eq!(ran.code, 2, "{section}.{key} = {file}: {}", ran.stderr);
        }
        let ran = ends(&folder, &["workload", "inspect", file, "--format", "goal"]);
        assert_eq!(ran.code, 2, "{file}: {}", ran.stderr);
    }
    // Files of a folder of results.
    let ran = ends(&folder, &["compare", "/dev"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    fs::create_dir(folder.file("r")).unwrap();
    for name in ["journal.bin", "manifest.json", "results.csv"] {
        assert!(Command::new("mkfifo").arg(folder.file("r").join(name)).status().unwrap().success());
    }
    folder.write("s.toml", SWEEP);
    for args in [
        &["compare", "r"][..],
        &["report", "r"],
        &["trace", "r", "0"],
        &["recover", "r"],
        &["merge", "r", "--out", "m"],
        &["run", "s.toml", "--out", "r", "--resume"],
    ] {
        let ran = ends(&folder, args);
        assert!([1, 2].contains(&ran.code), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_folder_without_files_is_called_a_folder() {
    let folder = Folder::new(&[]);
    fs::create_dir(folder.file("dir")).unwrap();
    folder.write("s.toml", &naming("workload", "path", "kind = \"flows\"", "dir"));
    let ran = folder.run(&["plan", "s.toml"]);
    assert!(ran.code == 2 && ran.stderr.contains("it is a folder that holds no files"), "{}", ran.stderr);
}

#[test]
fn a_file_that_is_too_long_is_refused_before_it_is_read() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    // Without contents on the disk.
    File::create(folder.file("long")).unwrap().set_len(10 << 30).unwrap();
    for args in [&["plan", "long"][..], &["run", "long", "--out", "o"]] {
        let ran = folder.run(args);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("it has 10240 MiB, and at most 8 MiB are read"), "{}", ran.stderr);
    }
    for (section, key, workload) in KEYS.iter().filter(|(_, key, _)| file_name(key) == "f.txt") {
        folder.write("s.toml", &naming(section, key, workload, "long"));
        let ran = folder.run(&["plan", "s.toml", "--memory", "1"]);
        assert_eq!(ran.code, 2, "{section}.{key}: {}", ran.stderr);
        let why = format!("{key} = \"long\"`");
        assert!(ran.stderr.contains(&why) && ran.stderr.contains("at most 512 MiB are read"), "{}", ran.stderr);
    }
    let ran = folder.run(&["workload", "inspect", "long", "--format", "htsim"]);
    assert!(ran.code == 2 && ran.stderr.contains("it has 10240 MiB"), "{}", ran.stderr);
}
