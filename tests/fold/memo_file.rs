//! Whatever happens to the memo's file, nothing but what was hit is lost: cut, changed, foreign, unreadable, of another version.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::memo_cases::{ROOMY, WAIT, cases, session, set_aside};
use hyperfold_fold::{Memo, Recorder, version};
use hyperfold_host::memo_file::memo_store::MemoStore;

#[test]
fn a_file_that_was_cut_off_is_set_aside_and_the_rest_is_used() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let cases = cases(0..30);
    for part in cases.chunks(8) {
        session(&path, part, ROOMY);
    }
    let whole = fs::read(&path).unwrap();
    let (_, best, _) = session(&path, &cases, ROOMY);
    let mut kept = 0;
    for k in 0..60 {
        let dir = root.path().join(format!("cut-{k}"));
        fs::create_dir(&dir).unwrap();
        let path = dir.join("m.db");
        // All lengths near both ends matter, and some between.
        let len = if k < 20 {
            k
        } else if k < 40 {
            whole.len() - 1 - (k - 20)
        } else {
            whole.len() * (k - 40) / 20 + 11
        };
        fs::write(&path, &whole[..len]).unwrap();
        let store = MemoStore::open(&path, ROOMY);
        let warnings = store.warnings();
        assert_eq!(
            (warnings.len(), set_aside(&path).len()),
            if len == 0 { (0, 0) } else { (1, 1) },
            "{len} bytes: {warnings:?}"
        );
        if let Some(aside) = set_aside(&path).first() {
            assert!(warnings[0].contains("set aside") && warnings[0].contains("m.db"), "{warnings:?}");
            assert_eq!(fs::read(aside).unwrap(), whole[..len], "what is set aside is what was there");
        }
        kept += fs::metadata(&path).unwrap().len();
        if k % 5 == 0 {
            session(&path, &cases, ROOMY);
            let (_, misses, warnings) = session(&path, &cases, ROOMY);
            assert!(
                misses <= best && warnings.is_empty(),
                "{len} bytes: {misses} misses, {best} of the whole; {warnings:?}"
            );
        }
    }
    assert!(kept > 20 * (whole.len() as u64 * 2 / 3), "{kept} bytes kept of {}", whole.len());
}

#[test]
fn changed_bytes_are_found_out() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let cases = cases(0..16);
    for part in cases.chunks(4) {
        session(&path, part, ROOMY);
    }
    let whole = fs::read(&path).unwrap();
    let mut seed = 7u64;
    let mut random = move |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let mut noticed = 0;
    for k in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random(4) {
            let at = random(bytes.len());
            bytes[at] ^= 1 << random(8);
        }
        if k % 10 == 0 {
            let (at, n) = (random(bytes.len()), random(3000));
            let end = (at + n).min(bytes.len());
            match k % 30 {
                0 => bytes[at..end].fill(0),
                10 => drop(bytes.drain(at..end)),
                _ => drop(bytes.splice(at..at, whole[..n.min(whole.len())].iter().copied())),
            }
        }
        if bytes == whole {
            continue;
        }
        let path = root.path().join(format!("m-{k}.db"));
        fs::write(&path, &bytes).unwrap();
        // Every outcome is compared with the unfolded one.
        let (_, _, warnings) = session(&path, if k % 8 == 0 { &cases } else { &cases[k % 12..k % 12 + 3] }, ROOMY);
        noticed += u32::from(!warnings.is_empty());
        assert!(warnings.len() <= 3, "{warnings:?}");
        if warnings.iter().any(|w| w.contains("set aside")) {
            assert!(MemoStore::open(&path, ROOMY).warnings().is_empty(), "what was made anew is whole");
        }
    }
    println!("{noticed} of 400 noticed by three cases or more");
    assert!(noticed > 100, "{noticed}");
}

#[test]
fn what_never_was_a_memo_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let cases = cases(0..4);
    for (k, bytes) in [
        &b"notes to myself\n"[..],
        b"redb\x1a\x0a\xa9\x0d\x0a and some tables of somebody else's, with pages and all",
        &[0; 5000],
    ]
    .iter()
    .enumerate()
    {
        let path = root.path().join(format!("file-{k}"));
        fs::write(&path, bytes).unwrap();
        let (_, _, warnings) = session(&path, &cases, ROOMY);
        assert!(warnings.len() == 2 && warnings.iter().all(|w| w.contains("it is no memo")), "{warnings:?}");
        assert_eq!(fs::read(&path).unwrap(), *bytes);
        assert_eq!(hyperfold_host::memo_file::memo_store::somebody_elses(&path), Some(path));
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3, "nothing is put beside it");
    // What begins as one has been one.
    let path = root.path().join("begun");
    fs::write(&path, b"hyperfold memo\r\n").unwrap();
    let (_, _, warnings) = session(&path, &cases, ROOMY);
    assert!(warnings.len() == 1 && warnings[0].contains("its beginning is damaged"), "{warnings:?}");
    assert_eq!(fs::read(&set_aside(&path)[0]).unwrap(), b"hyperfold memo\r\n");
    let (hits, _, warnings) = session(&path, &cases, ROOMY);
    assert!(hits > 0 && warnings.is_empty(), "{warnings:?}");
    // What is whole behind a damaged beginning is kept.
    let whole = fs::read(&path).unwrap();
    let (hits, misses, _) = session(&path, &cases, ROOMY);
    for (k, damage) in [0..1, 5..9, 16..40, 0..40].into_iter().enumerate() {
        let path = root.path().join(format!("begins-{k}"));
        let mut bytes = whole.clone();
        bytes[damage].iter_mut().for_each(|b| *b ^= 0x55);
        fs::write(&path, &bytes).unwrap();
        let (hits_then, misses_then, warnings) = session(&path, &cases, ROOMY);
        assert!(
            warnings.len() == 1
                && warnings[0].contains("its beginning is damaged")
                && !warnings[0].contains(" 0 records")
                && !warnings[0].contains("lost"),
            "{warnings:?}"
        );
        assert!(
            (hits_then, misses_then) == (hits, misses),
            "{hits_then} hits and {misses_then} misses instead of {hits} and {misses}"
        );
        assert_eq!(fs::read(&set_aside(&path)[0]).unwrap(), bytes);
    }
    // In a folder it is a file of that folder, which may have to be made.
    let folder = root.path().join("folder");
    fs::create_dir(&folder).unwrap();
    assert!(session(&folder, &cases, ROOMY).2.is_empty());
    assert!(session(&folder, &cases, ROOMY).0 > 0 && folder.join("episodes.memo").exists());
    assert!(session(&root.path().join("a/b/m.db"), &cases, ROOMY).2.is_empty());
    assert!(root.path().join("a/b/m.db").exists());
}

#[test]
fn what_cannot_be_read_or_written_stops_nothing() {
    let root = tempfile::tempdir().unwrap();
    let cases = cases(0..4);
    // Its folder cannot be: a file is in the way.
    fs::write(root.path().join("file"), "x").unwrap();
    let (_, misses, warnings) = session(&root.path().join("file/m.db"), &cases, ROOMY);
    assert!(misses > 0 && warnings.iter().any(|w| w.contains("is not kept")), "{warnings:?}");
    // A memo with a folder in the place of its lock can be read, not written.
    let cases = self::cases(0..30);
    let path = root.path().join("m.db");
    session(&path, &cases, ROOMY);
    fs::remove_file(root.path().join("m.db.lock")).unwrap();
    fs::create_dir(root.path().join("m.db.lock")).unwrap();
    let before = fs::read(&path).unwrap();
    let (hits, _, warnings) = session(&path, &cases, ROOMY);
    assert!(hits > 0 && warnings.iter().any(|w| w.contains("is not kept")), "{warnings:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn permissions_stop_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("dir");
    fs::create_dir(&dir).unwrap();
    let path = dir.join("m.db");
    let cases = cases(0..4);
    session(&path, &cases[..2], ROOMY);
    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for (file, folder) in [(0o444, 0o555), (0o000, 0o755), (0o000, 0o000)] {
        allow(&path, file);
        allow(&dir, folder);
        let (_, _, warnings) = session(&path, &cases, ROOMY);
        let is_refused = fs::OpenOptions::new().append(true).open(&path).is_err();
        allow(&dir, 0o755);
        allow(&path, 0o644);
        // Root may do everything.
        assert_eq!(!warnings.is_empty(), is_refused, "{file:o} {folder:o}: {warnings:?}");
    }
    assert!(session(&path, &cases, ROOMY).2.is_empty());
}

#[test]
fn other_versions_are_left_alone_while_there_is_room() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let keys = |from: u32| (from..from + 20).map(|k| vec![k as u8; 5000]).collect::<Vec<_>>();
    let add = |version, keys: Vec<Vec<u8>>, limit| {
        let store = Arc::new(MemoStore::open_as(&path, limit, version));
        let memo = Memo::on(store.clone());
        let found = keys.into_iter().filter(|key| memo.root(key.clone(), Recorder::default()).unwrap().1).count();
        assert!(store.publish(&memo, WAIT, true) && store.warnings().is_empty());
        found
    };
    let (old, new) = ([1; 16], version());
    assert_eq!(add(old, keys(0), ROOMY), 0);
    assert_eq!(add(new, keys(0), ROOMY), 0, "another version's are not found");
    assert_eq!((add(old, keys(0), ROOMY), add(new, keys(0), ROOMY)), (20, 20));
    // 40 records of 5,000 bytes: the older version's go first, then what was used longest ago.
    assert_eq!(add(new, keys(100), 250_000), 0);
    assert_eq!((add(new, keys(0), ROOMY), add(new, keys(100), ROOMY)), (17, 20));
    assert_eq!(add(old, keys(0), ROOMY), 0);
}

#[test]
fn what_was_used_last_stays() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let touch = |keys: std::ops::Range<u8>| {
        let store = Arc::new(MemoStore::open(&path, 130_000));
        let memo = Memo::on(store.clone());
        let found = keys.filter(|&k| memo.root(vec![k; 5000], Recorder::default()).unwrap().1).count();
        assert!(store.publish(&memo, WAIT, true));
        found
    };
    assert_eq!(touch(0..8), 0);
    assert_eq!(touch(8..16), 0);
    assert_eq!(touch(0..4), 4, "used again");
    assert_eq!(touch(16..28), 0, "more than there is room for");
    assert_eq!(touch(16..28), 12);
    assert_eq!(touch(0..4), 4);
    assert!(touch(4..16) < 12);
}
