//! Folders that an earlier build wrote are still read, and come out with the same bytes.
//!
//! `tests/corpus/old-folders/NAME` is what `hyperfold run NAME.toml --out NAME --engine cpu` wrote there, without the log and the report. Who adds a field to a
//! record makes the folders of [`NAMES`] lack it: they go to [`EARLIER`], and are written anew for this list.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hyperfold_results::csv_rows::COMPANIONS;
use hyperfold_results::{ExperimentRecord, Finished, Outputs, RunColumns, StatsRecord};

use crate::support::program::Folder;

/// Folders of builds whose records have all fields.
const NAMES: [&str; 4] = ["cluster", "folding", "inference", "packets"];
/// Folders whose records lack fields: the first has no `critical_rank`, `retransmissions` and `slowed_by`, the second no `packet_hops_plain`, the third neither
/// the ends and rates of links nor slowdowns and retransmissions of flows, the fourth neither preemptions nor cached tokens of requests, the
/// fifth no errors of latencies, the sixth no paused times, the seventh no mean round trips, the eighth no ends of these.
const EARLIER: [&str; 8] = [
    "earlier",
    "earlier-packets",
    "earlier-links",
    "earlier-inference",
    "earlier-latency",
    "earlier-pauses",
    "earlier-round-trips",
    "earlier-round-trip-ends",
];

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/old-folders").join(name)
}

#[test]
fn all_files_come_out_of_the_journal_of_an_earlier_build() {
    let folder = Folder::new(&[]);
    for name in NAMES {
        let ran = folder.run(&["recover", stored(name).to_str().unwrap(), "--out", name]);
        assert!(ran.code < 2, "{name}: {}", ran.stderr);
        for file in fs::read_dir(stored(name)).unwrap() {
            let file = file.unwrap();
            let file_name = file.file_name().into_string().unwrap();
            // The manifest has the command and its times.
            if file_name != "manifest.json" {
                let recovered = folder.bytes(&format!("{name}/{file_name}"));
                assert!(fs::read(file.path()).unwrap() == recovered, "{name}/{file_name}");
            }
        }
    }
}

#[test]
fn a_journal_that_lacks_fields_gives_all_columns_that_it_had() {
    let folder = Folder::new(&[]);
    for name in EARLIER {
        let ran = folder.run(&["recover", stored(name).to_str().unwrap(), "--out", name]);
        assert!(ran.code < 2, "{name}: {}", ran.stderr);
        for file in fs::read_dir(stored(name)).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            if !file.ends_with(".csv") {
                continue;
            }
            let text = fs::read_to_string(stored(name).join(&file)).unwrap();
            folder.write("before.csv", &text);
            for column in text.lines().next().unwrap().split(',') {
                let values = folder.column(&format!("{name}/{file}"), column);
                assert_eq!(values, folder.column("before.csv", column), "{name}/{file}: {column}");
            }
        }
    }
    assert_eq!(folder.column("earlier-links/links.csv", "capacity_gbps")[0], "");
    assert_eq!(folder.column("earlier-pauses/links.csv", "pfc_paused_ns")[0], "");
    assert_eq!(folder.column("earlier-pauses/results.csv", "pfc_paused_max_ns"), ["", ""]);
    assert_eq!(folder.column("earlier-round-trip-ends/rtt_means.csv", "src"), [""; 6]);
    // What it lacks is empty, and a folder without other files is read from its journal.
    assert_eq!(folder.column("earlier/results.csv", "retransmissions"), ["", ""]);
    let run = RunColumns::open(&stored("earlier")).unwrap();
    assert!(run.column("retransmissions").is_some() && run.rows.len() == 2);
}

#[test]
fn what_is_read_of_a_file_is_all_that_it_has() {
    let outputs = Outputs { jobs_of_flows: true, ..Outputs::default() };
    let mut n_files = 0;
    for name in NAMES {
        let run = RunColumns::open(&stored(name)).unwrap();
        let mut read: BTreeMap<u64, Finished> = BTreeMap::new();
        for row in 0..run.rows.len() {
            let exp_id = run.exp_id(row);
            let record = ExperimentRecord { exp_id, ..ExperimentRecord::default() };
            let mut finished = Finished::without_rows(record, StatsRecord::default());
            finished.jobs = run.jobs_of(exp_id).unwrap().unwrap_or_default();
            finished.shared_links = run.shared_links_of(exp_id).unwrap().unwrap_or_default();
            read.insert(exp_id, finished);
        }
        run.each_flow(|exp_id, flow| read.get_mut(&exp_id).unwrap().flows.push(flow)).unwrap();
        run.each_link(|exp_id, link| read.get_mut(&exp_id).unwrap().links.push(link)).unwrap();
        run.each_rtt(|exp_id, rtt| read.get_mut(&exp_id).unwrap().rtt.push(rtt)).unwrap();
        run.each_rtt_mean(|exp_id, mean| read.get_mut(&exp_id).unwrap().rtt_means.push(mean)).unwrap();
        run.each_stats(|exp_id, stats| read.get_mut(&exp_id).unwrap().stats = stats).unwrap();
        for companion in COMPANIONS {
            let path = stored(name).join(companion.name);
            // Nobody reads the others row by row.
            let is_read =
                ["flows.csv", "links.csv", "rtt.csv", "rtt_means.csv", "stats.csv", "jobs.csv", "shared_links.csv"];
            if path.exists() && is_read.contains(&companion.name) {
                let rows: Vec<u8> = read.values().flat_map(|finished| (companion.text)(&outputs, finished)).collect();
                let text = fs::read_to_string(&path).unwrap();
                assert_eq!(text.split_once('\n').unwrap().1, String::from_utf8(rows).unwrap(), "{}", path.display());
                n_files += 1;
            }
        }
    }
    assert_eq!(n_files, 10, "stats.csv four times, the others once");
}
