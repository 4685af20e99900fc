//! Processes that are killed while they write the memo lose nothing that was written.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::memo_cases::{ROOMY, WAIT, set_aside};
use hyperfold_fold::{Memo, Recorder};
use hyperfold_host::memo_file::memo_store::MemoStore;

/// Adds until it is killed; says what is on disk. Only another test starts it, by a variable.
#[test]
fn writer() {
    let Ok(path) = std::env::var("HYPERFOLD_TEST_MEMO") else { return };
    let store = Arc::new(MemoStore::open(Path::new(&path), ROOMY));
    let memo = Memo::on(store.clone());
    for k in 0u32.. {
        let key = key(std::process::id(), k);
        let (root, _) = memo.root(key, Recorder::default()).unwrap();
        memo.child(&root, vec![1; 3000], 5, Recorder::default()).unwrap();
        if store.publish(&memo, WAIT, false) {
            writeln!(std::io::stdout(), "\nhas {} {k}", std::process::id()).unwrap();
        }
    }
}

fn key(process: u32, k: u32) -> Vec<u8> {
    let mut key = format!("{process} {k} ").into_bytes();
    key.resize(200 + 700 * (k as usize % 40), b'.');
    key
}

#[test]
fn processes_that_are_killed_while_they_write_lose_nothing_that_was_written() {
    // Rounds of the long run: HYPERFOLD_SOAK=200.
    let rounds: u64 = std::env::var("HYPERFOLD_SOAK").map_or(5, |n| n.parse().unwrap());
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let mut has: HashSet<(u32, u32)> = HashSet::new();
    for round in 0..rounds {
        let mut writers: Vec<_> = (0..3)
            .map(|_| {
                let exe = std::env::current_exe().unwrap();
                let mut c = Command::new(exe);
                c.args(["--exact", "memo_writers::writer", "--nocapture", "--test-threads=1"])
                    .env("HYPERFOLD_TEST_MEMO", &path)
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null());
                c.spawn().unwrap()
            })
            .collect();
        std::thread::sleep(Duration::from_millis(120 + round * 37 % 200));
        for writer in &mut writers {
            writer.kill().unwrap();
        }
        for mut writer in writers {
            let out = BufReader::new(writer.stdout.take().unwrap());
            for line in out.lines().map_while(Result::ok) {
                let mut words = line.split(' ');
                if let (Some("has"), Some(process), Some(k)) = (words.next(), words.next(), words.next())
                    && let (Ok(process), Ok(k)) = (process.parse(), k.parse())
                {
                    has.insert((process, k));
                }
            }
            writer.wait().unwrap();
        }
    }
    assert!(has.len() > 20, "{} additions", has.len());
    let store = Arc::new(MemoStore::open(&path, ROOMY));
    println!(
        "{} additions by {} processes, {} set aside, {:?}",
        has.len(),
        rounds * 3,
        set_aside(&path).len(),
        store.warnings()
    );
    let memo = Memo::on(store.clone());
    for &(process, k) in &has {
        // The last line may have been cut.
        let whole = has.contains(&(process, k + 1)) || memo.root(key(process, k), Recorder::default()).unwrap().1;
        assert!(whole && memo.root(key(process, k), Recorder::default()).unwrap().1, "{process} {k}");
    }
    assert!(store.warnings().is_empty());
}
