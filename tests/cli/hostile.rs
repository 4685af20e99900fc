//! Files, names and folders by somebody who means harm: what is printed steers no terminal, what is read has limits.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::program::{Folder, Ran, command, seen};

/// Clears the scrollback, moves the cursor up, colours, forges a line, turns text around, and hides tags.
const HOSTILE: &str = "a\u{1b}[3J\u{1b}[9A\u{1b}[31m\nhyperfold: all is well\u{2028}\u{202e}\u{2066}\u{e0041}\u{9b}b";

const SWEEP: &str = "name = \"rings\"\n[base.cluster]\ngpus = 8\ngpus_per_server = 1\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 20000\n\
                     [base.output]\nflows = true\nlinks = true\n[axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\", \"none\"]\n";

/// All output is lines of plain characters, and none of them is the forged one.
fn assert_plain(what: &str, ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        let steers = |c: char| (c.is_control() && c != '\n') || "\u{2028}\u{202e}\u{2066}\u{e0041}\u{9b}".contains(c);
        assert!(!text.contains(steers), "{what}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("hyperfold: all is well")), "{what}: {text:?}");
    }
}

#[test]
fn names_in_files_and_of_folders_steer_no_terminal() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let there = format!("{HOSTILE}.toml");
    folder.write(&there, SWEEP);
    let text = toml::Value::String(HOSTILE.into()).to_string();
    for (name, body) in [
        ("key.toml", format!("{SWEEP}[base.topology]\n{text} = 1\n")),
        ("value.toml", format!("{SWEEP}[base.topology]\nkind = {text}\n")),
        ("name.toml", SWEEP.replace("\"rings\"", &text)),
        ("file.toml", format!("{SWEEP}[base.topology]\nkind = \"file\"\npath = {text}\n")),
        ("include.toml", format!("include = [{text}]\n{SWEEP}")),
        ("where.toml", format!("{SWEEP}[[constraints]]\nwhere = {text}\n")),
        ("syntax.toml", format!("{SWEEP}{HOSTILE}")),
    ] {
        folder.write(name, &body);
        let ran = folder.run(&["plan", name]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.stderr);
        assert_plain(name, &ran);
    }
    let out = format!("out {HOSTILE}");
    for (args, code) in [
        (&["plan", &there][..], 0),
        (&["run", &there, "--out", &out, "--engine", "cpu"], 0),
        (&["run", &there, "--out", &out, "--engine", "cpu"], 2),
        (&["compare", &out], 0),
        (&["report", &out], 0),
        (&["watch", &out, "--once"], 0),
        (&["merge", &out, "--out", &format!("merged {HOSTILE}")], 0),
        (&["recover", &out, "--out", &format!("saved {HOSTILE}")], 0),
        (&["trace", &out, "0"], 0),
        (&["plot", &out, "--x", HOSTILE, "--y", "makespan_ns"], 2),
        (&["compare", &out, "--metric", HOSTILE], 2),
        (&["compare", HOSTILE], 2),
        (&["plan", HOSTILE], 2),
        (&["plan", "s.toml", "--set", HOSTILE], 2),
        (&[HOSTILE], 2),
        (&["run", HOSTILE, "--limit", HOSTILE], 2),
    ] {
        let ran = folder.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert_plain(&format!("{args:?}"), &ran);
    }
    // What others wrote into the files of results.
    let log = format!("{out}/events.jsonl");
    let lines: String =
        folder.text(&log).lines().filter(|line| !line.contains("run_started")).collect::<Vec<_>>().join("\n");
    let begun = serde_json::json!({"event": "run_started", "t_s": 0.0, "name": HOSTILE, "engine": HOSTILE, "selected": 3, "known": 0});
    folder.write(&log, &format!("{begun}\n{lines}\n"));
    let ran = folder.run(&["watch", &out, "--once"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_plain("the log of a run", &ran);
    let page = folder.text(&format!("{out}/report.html"));
    assert!(!page.contains(['\u{202e}', '\u{2028}', '\u{e0041}', '\u{1b}']), "a report is plain as well");
}

#[test]
fn json_stays_json_whatever_names_are_in_it() {
    let name = "x\u{202e}\u{e0041}y";
    let folder = Folder::new(&[("s.toml", &SWEEP.replace("\"rings\"", &format!("\"{name}\"")))]);
    let ran = folder.run(&["plan", "s.toml", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_plain("plan --json", &ran);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(json["name"], name);
}

/// The program with at most so many bytes of address space; fails the test where it takes longer than a minute.
fn limited(folder: &Folder, args: &[&str], address_space: u64) -> Ran {
    let program = command(folder.path(), &[]).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.current_dir(folder.path()).args(["-c", &format!("ulimit -v {}; exec \"$@\"", address_space >> 10), "sh"]);
    shell.arg(program).args(args);
    let mut child =
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell starts");
    let until = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("it can be asked").is_none() {
        if Instant::now() > until {
            child.kill().expect("it can be ended");
            panic!("{args:?} takes longer than a minute");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    seen(args, child.wait_with_output().expect("it has ended"))
}

const GIB: u64 = 1 << 30;

#[test]
fn trees_that_take_many_times_their_text_are_refused() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let empty = |bytes: usize| format!("x = [{}]\n", "{},".repeat(bytes / 3));
    folder.write("long.toml", &empty(9 << 20));
    let ran = limited(&folder, &["plan", "long.toml"], GIB);
    assert!(ran.code == 2 && ran.stderr.contains("TOML"), "{} {}", ran.code, ran.stderr);
    // What is read fits.
    folder.write("short.toml", &empty(2 << 20));
    let ran = limited(&folder, &["plan", "short.toml"], GIB);
    assert!(ran.code == 2 && ran.stderr.contains("unknown key `x`"), "{} {}", ran.code, ran.stderr);
    let ran = folder.run(&["plan", "short.toml", "--memory", "0.1"]);
    assert!(ran.code == 2 && ran.stderr.contains("see --memory"), "{} {}", ran.code, ran.stderr);
    // Includes count together, and tables of a GPU or a model are short.
    let names: Vec<String> = (0..20).map(|n| format!("i{n}.toml")).collect();
    names
        .iter()
        .for_each(|name| folder.write(name, &format!("[base.topology]\nlink_gbps = 100\n# {}\n", "x".repeat(1 << 20))));
    folder.write("all.toml", &format!("include = {names:?}\n{SWEEP}"));
    let ran = limited(&folder, &["plan", "all.toml"], GIB);
    assert!(ran.code == 2 && ran.stderr.contains("what it includes have"), "{} {}", ran.code, ran.stderr);
    let model = |gpu: &str, model: &str| {
        format!(
            "name = \"m\"\n[base.cluster]\ngpus = 8\ngpu = \"{gpu}\"\n[base.workload]\nkind = \"model\"\nmodel = \"{model}\"\n"
        )
    };
    folder.write("two.toml", &empty(2 << 20));
    for (gpu, named) in [("two.toml", "gpt3-13b"), ("h100", "two.toml")] {
        folder.write("m.toml", &model(gpu, named));
        let ran = limited(&folder, &["plan", "m.toml"], GIB);
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("two.toml") && said.contains("at most 1 MiB"), "{} {said}", ran.code);
    }
}

#[test]
fn a_profile_takes_no_more_memory_than_there_is() {
    let folder = Folder::new(&[]);
    let event = "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"dur\":1,\"args\":{\"Input Dims\":[[[[]]],{\"\":{}}]}},";
    folder.write("long.json", &format!("[{}{{}}]", event.repeat(400_000)));
    folder.write(
        "deep.json",
        &format!("[{{\"ph\":\"X\",\"dur\":1,\"args\":{{\"Input Dims\":[{}0]}}}}]", "[],".repeat(8 << 20)),
    );
    for file in ["long.json", "deep.json"] {
        for rows in ["steps", "compute", "collectives"] {
            let ran = limited(&folder, &["measured", "pytorch", file, "--rows", rows], GIB / 2);
            assert_eq!(ran.code, 2, "{file} {rows}: {}", ran.stderr);
        }
    }
}

#[test]
fn files_of_holes_among_results_are_refused_soon() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]).code, 0);
    for (name, without) in [
        ("results.csv", &["results.parquet", "journal.bin"][..]),
        ("results.csv", &[]),
        ("results.parquet", &[]),
        ("journal.bin", &["results.parquet"]),
        ("events.jsonl", &[]),
        ("manifest.json", &[]),
        ("flows.csv", &[]),
        ("links.csv", &[]),
        ("stats.csv", &[]),
        ("jobs.csv", &[]),
    ] {
        let dir = folder.file("d");
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).expect("a folder can be made");
        for entry in fs::read_dir(folder.file("o")).expect("there are results").map(|entry| entry.expect("it is there"))
        {
            let file = entry.file_name();
            if entry.path().is_file() && !without.iter().any(|other| *other == file) && file != name {
                fs::copy(entry.path(), dir.join(file)).expect("it can be copied");
            }
        }
        File::create(dir.join(name)).and_then(|file| file.set_len(100 << 30)).expect("holes take no room");
        for args in [
            &["compare", "d"][..],
            &["report", "d"],
            &["watch", "d", "--once"],
            &["plot", "d", "--x", "transport.cc", "--y", "makespan_ns", "--out", "p.svg"],
            &["merge", "d", "--out", "m"],
            &["recover", "d", "--out", "r"],
        ] {
            if matches!(args[0], "merge" | "recover") && !["journal.bin", "manifest.json"].contains(&name) {
                continue;
            }
            let ran = limited(&folder, args, 2 * GIB);
            assert!((0..=3).contains(&ran.code), "{name} {args:?}: {} {}", ran.code, ran.stderr);
            for made in ["m", "r"] {
                let _ = fs::remove_dir_all(folder.file(made));
            }
        }
    }
}

#[test]
fn what_is_sound_before_holes_is_joined() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]).code, 0);
    let rows = folder.text("o/results.csv");
    let journal = File::options().write(true).open(folder.file("o/journal.bin")).expect("it is there");
    journal.set_len(100 << 30).expect("holes take no room");
    for (args, out) in [(&["merge", "o", "--out", "m"], "m"), (&["recover", "o", "--out", "r"], "r")] {
        let ran = limited(&folder, args, 2 * GIB);
        assert!(ran.code == 0 && ran.stderr.contains("it is damaged"), "{args:?}: {} {}", ran.code, ran.stderr);
        assert_eq!(folder.text(&format!("{out}/results.csv")), rows, "{args:?}");
    }
    let ran = limited(&folder, &["run", "s.toml", "--out", "o", "--resume", "--engine", "cpu"], 2 * GIB);
    assert!(ran.code == 2 && ran.stderr.contains("hyperfold recover"), "{} {}", ran.code, ran.stderr);
}

#[test]
fn a_memo_is_not_kept_inside_the_results() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    for memo in ["o", "o/memo.bin", "./x/../o/deep/memo.bin"] {
        let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--memo", memo]);
        assert!(
            ran.code == 2 && ran.stderr.contains("--memo") && ran.stderr.contains("outside"),
            "{memo}: {}",
            ran.stderr
        );
        assert!(!folder.file("o").exists(), "nothing was made");
    }
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--memo", "memo.bin"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
