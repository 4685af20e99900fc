//! Folders and files that fail while a run writes them, or that are damaged after it: what is lost is told, the rest is kept.

use std::process::{Command, Stdio};

use crate::small_runs::{MINUTES, SWEEP, arguments, folder, run, same_as_whole, started, two};
use crate::support::program::{Folder, command, seen};

#[test]
fn a_journal_whose_beginning_is_damaged_is_mended() {
    let folder = folder();
    let whole = folder.bytes("whole/journal.bin");
    // The name, and for each of the two records that say whose it is a mark, a length, a number, a checksum, and its bytes.
    let first = 16 + 40 + u64::from_le_bytes(whole[24..32].try_into().unwrap()) as usize;
    for at in [0, 7, 15, 16, 23, 24, 32, 40, 55, 56, 100, first - 1, first, first + 30, 2 * first - 17] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x15;
        std::fs::write(folder.file("whole/journal.bin"), damaged).unwrap();
        let merge = folder.run(&["merge", "whole", "--out", &format!("m{at}")]);
        assert!(merge.code < 2 && merge.stderr.contains("it is damaged"), "byte {at}: {}", merge.stderr);
        assert_eq!(run(&folder, "whole", &["--resume", "--limit", "10"]).code, 2, "byte {at}");
        let ran = run(&folder, "whole", &["--resume"]);
        assert!(ran.stderr.contains("its beginning is mended"), "byte {at}: {}", ran.stderr);
        assert!(ran.stderr.contains("all 72 experiments are complete"), "byte {at}: {}", ran.stderr);
        assert!(folder.bytes("whole/journal.bin") == whole, "byte {at}");
    }
    same_as_whole(&folder, "whole");
}

/// A limit on the length of files is how a full disk is had without one: writing fails in the middle of a run.
#[cfg(unix)]
#[test]
fn a_full_disk_is_told_and_the_run_goes_on_when_there_is_room() {
    let folder = folder();
    // In blocks of 1 KiB for bash; what exceeds it is an error for a program that ignores the signal, as this shell makes it do.
    let script = format!(
        "trap '' XFSZ; ulimit -f 600; exec {} run s.toml --engine cpu --out o",
        env!("CARGO_BIN_EXE_hyperfold")
    );
    let output = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().expect("bash is there");
    let ran = seen(&["run"], output);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot write o/") && ran.stderr.contains("File too large"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("of 72 experiments are safe in o; run the same command with --resume"),
        "{}",
        ran.stderr
    );
    let ran = run(&folder, "o", &["--resume"]);
    assert!(ran.code == 1 && ran.stderr.contains("of 72 experiments are complete"), "{}", ran.stderr);
    same_as_whole(&folder, "o");

    // The disk may be the one that messages go to.
    if cfg!(target_os = "linux") {
        let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        for (stdout, stderr) in [(Stdio::null(), full().into()), (full().into(), Stdio::null())] {
            let status =
                command(folder.path(), &arguments("s.toml", "o", &["--resume"])).stdout(stdout).stderr(stderr).status();
            assert_eq!(status.expect("the program starts").code(), Some(1));
        }
        same_as_whole(&folder, "o");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_bad_input() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    // Nobody can make a folder there, not even the superuser.
    let ran = run(&folder, "/proc/results", &[]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("/proc/results: the folder cannot be created"), "{}", ran.stderr);
}

/// Results went on into a folder that nobody could see, and the run called them safe.
#[cfg(unix)]
#[test]
fn a_folder_that_is_removed_or_replaced_during_the_run_is_told() {
    for replaced in [false, true] {
        let folder = Folder::new(&[("two.toml", &two(MINUTES))]);
        let child = started(&folder, "two.toml", "o", &[], 1);
        std::fs::rename(folder.file("o"), folder.file("elsewhere")).unwrap();
        if replaced {
            std::fs::create_dir(folder.file("o")).unwrap();
        }
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let ran = seen(&["run"], child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("the folder was removed or replaced"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("safe"), "{}", ran.stderr);
    }
}

#[test]
fn what_a_damaged_folder_holds_is_recovered() {
    let folder = folder();
    let mut journal = folder.bytes("whole/journal.bin");
    let middle = journal.len() / 2;
    journal[middle] ^= 4;
    std::fs::create_dir(folder.file("damaged")).unwrap();
    std::fs::write(folder.file("damaged/journal.bin"), &journal).unwrap();
    let ran = folder.run(&["recover", "damaged"]);
    assert_eq!(ran.code, 1, "one is missing: {}", ran.stderr);
    assert!(
        ran.stderr.contains("it is damaged: bytes") && ran.stdout.contains("recovered: 71 experiments"),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    assert!(folder.bytes("damaged/journal.bin") == journal, "it is only read");
    let resumed = run(&folder, "damaged-recovered", &["--resume"]);
    // The sweep has an experiment that fails.
    assert_eq!(resumed.code, 1, "{}", resumed.stderr);
    same_as_whole(&folder, "damaged-recovered");
}

/// Without the selection of a shard, `--resume` refuses its folder, so the advice has it.
#[test]
fn the_advice_after_recovery_carries_on() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    run(&folder, "part", &["--shard", "1/6", "--limit", "30", "--quiet"]);
    let mut journal = folder.bytes("part/journal.bin");
    let last = journal.len() - 100;
    journal[last] ^= 4;
    std::fs::write(folder.file("part/journal.bin"), &journal).unwrap();
    let ran = folder.run(&["recover", "part"]);
    let command = "hyperfold run SWEEP.toml --out part-recovered --shard 1/6 --limit 30 --resume";
    assert!(ran.code == 1 && ran.stderr.contains(command), "{}", ran.stderr);
    let args = command.split(' ').skip(1).map(|word| if word == "SWEEP.toml" { "s.toml" } else { word });
    let resumed = folder.run(&args.chain(["--engine", "cpu"]).collect::<Vec<_>>());
    assert!(resumed.stderr.contains("of 5 experiments are complete"), "{}", resumed.stderr);
}

/// A file that may not grow is an error with its remedy, not a signal that ends the process.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_file_sizes_is_told() {
    let folder = folder();
    let program = env!("CARGO_BIN_EXE_hyperfold");
    let sweep = arguments("s.toml", "o", &[]).join(" ");
    let script = format!("ulimit -f 100; exec {program} {sweep}");
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("ulimit -f") && text.contains("--resume"), "{text}");
}

/// Loss is told by everyone who reads the folder, and with `--quiet`.
#[test]
fn what_a_journal_has_lost_is_told_by_every_command() {
    let folder = folder();
    let whole = folder.bytes("whole/journal.bin");
    let readers: [(&[&str], i32); 5] = [
        (&["compare", "whole"], 0),
        (&["compare", "whole", "--json"], 0),
        (&["report", "whole"], 0),
        (&["trace", "whole", "0"], 0),
        (&["merge", "whole", "--out", "m", "--quiet"], 1),
    ];
    let tells = |what: &str| {
        for (args, _) in readers {
            let ran = folder.run(args);
            assert!(ran.stderr.contains("warning:") && ran.stderr.contains(what), "{args:?}: {}", ran.stderr);
            let _ = std::fs::remove_dir_all(folder.file("m"));
        }
    };
    for (args, code) in readers {
        let ran = folder.run(args);
        assert!(ran.code == code && !ran.stderr.contains("journal"), "{args:?}: {}", ran.stderr);
        let _ = std::fs::remove_dir_all(folder.file("m"));
    }
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    std::fs::write(folder.file("whole/journal.bin"), &flipped).unwrap();
    tells("it is damaged: bytes");
    std::fs::write(folder.file("whole/journal.bin"), &whole[..whole.len() - 9]).unwrap();
    tells("it ends within a record");
    let quiet = run(&folder, "whole", &["--resume", "--quiet"]);
    assert!(quiet.stderr.contains("warning:") && quiet.stderr.contains("it ends within a record"), "{}", quiet.stderr);
    assert!(folder.file("whole/journal-damaged.bin").exists());
    tells("journal-damaged.bin: it keeps ");
    let again = run(&folder, "whole", &["--resume", "--quiet"]);
    assert!(again.stderr.contains("journal-damaged.bin: it keeps "), "{}", again.stderr);
    same_as_whole(&folder, "whole");
}
