//! What a run writes, read back: order, bytes, types, and what survives a kill.

use std::fs::{self, File};
use std::path::Path;

use crate::support::program::Folder;
use hyperfold_results::{
    Axis, Cell, ColumnKind, ExperimentRecord, Finished, FlowMeasures, FlowRecord, JobRecord, JournalReader, LinkEnds,
    LinkPackets, LinkPauses, LinkRecord, MeanRttRecord, Micro, Outputs, Ps, Recovered, ResultDir, ResultWriter,
    ResultsError, RttRecord, RunIdentity, StatsRecord,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;

const ALL: Outputs = Outputs {
    flows: true,
    links: true,
    rtt: true,
    rtt_means: true,
    jobs: true,
    jobs_of_flows: false,
    shared_links: false,
    cluster: false,
    cluster_jobs: false,
    cluster_map: false,
    iterations: false,
    serving: false,
    requests: false,
    series_links: false,
    series_flows: false,
};

fn axes() -> Vec<Axis> {
    vec![
        Axis { key: "topology.kind".into(), kind: ColumnKind::Text },
        Axis { key: "topology.link_gbps".into(), kind: ColumnKind::Int },
        Axis { key: "workload.load".into(), kind: ColumnKind::Real },
        Axis { key: "transport.pfc".into(), kind: ColumnKind::Flag },
    ]
}

/// An experiment whose every number follows from its id.
fn finished(exp_id: u64) -> Finished {
    let axis_values =
        vec!["fat-tree".into(), Cell::Int(100 + exp_id as i64), Cell::Real(0.25), Cell::Flag(exp_id.is_multiple_of(2))];
    let mut record =
        ExperimentRecord::new(exp_id, format!("c{exp_id}"), format!("e{exp_id}"), 0, u64::MAX - exp_id, axis_values);
    record.makespan = Some(Ps(1_234_567 + exp_id));
    record.flows = Some(2);
    record.fct_mean = Some(Ps(1_000_001));
    record.max_link_utilisation = Some(Micro(987_654));
    record.bottleneck_link = Some("64->0".into());
    record.mfu = Some(0.1 + 0.2);
    if exp_id == 3 {
        record = record.failed("=flow 1 gave up, \"all\" retries used\nport 3 waits for 4");
    }
    let flow = |flow_id, fct: Option<Ps>| FlowRecord {
        flow_id,
        src: 1,
        dst: 2,
        bytes: 3000,
        start: Ps(500),
        fct,
        measures: FlowMeasures { slowdown: fct.map(|_| Micro(1_500_000)), retransmissions: Some(2) },
    };
    let link = LinkRecord {
        link: "1->64".into(),
        bytes: 77,
        utilisation: Micro(500_000),
        packets: Some(LinkPackets {
            max_queue_bytes: 9,
            mean_queue_bytes: Micro(1_250_000),
            ecn_marks: 1,
            pfc_pauses: 2,
            drops: 0,
        }),
        ends: Some(LinkEnds { source: "1".into(), target: "64".into(), capacity_gbps: Micro(100_000_000) }),
        pauses: LinkPauses { paused: Some(Ps(1_500)) },
    };
    Finished {
        record,
        flows: vec![flow(0, Some(Ps(1_000_001))), flow(1, None)],
        links: vec![link],
        rtt: vec![RttRecord { flow_id: 0, sample: Ps(10), rtt: Ps(20_010) }],
        rtt_means: vec![MeanRttRecord { flow_id: 0, src: Some(1), dst: Some(2), round_trips: 2, mean: Ps(20_015) }],
        jobs: vec![JobRecord { job: "a".into(), start: Ps(5), end: Some(Ps(1_000_005)), ..JobRecord::default() }],
        stats: StatsRecord { packet_hops_simulated: 10, batches: 1, wall_s: 0.5, ..Default::default() },
        ..Finished::default()
    }
}

/// A writer in a new folder.
fn create(dir: &Path, ids: Vec<u64>, outputs: Outputs) -> ResultWriter {
    open(ResultDir::create(dir).unwrap(), ids, outputs).unwrap().0
}

/// A writer in that of an earlier run.
fn reopen(dir: &Path, ids: Vec<u64>) -> Result<(ResultWriter, Recovered), ResultsError> {
    open(ResultDir::reopen(dir).unwrap(), ids, ALL)
}

fn open(dir: ResultDir, ids: Vec<u64>, outputs: Outputs) -> Result<(ResultWriter, Recovered), ResultsError> {
    let run = RunIdentity { axes: axes(), outputs, ..RunIdentity::default() };
    ResultWriter::open(dir, &run.of_this_version(1), ids)
}

fn write(dir: &Path, order: &[u64]) {
    let mut ids = order.to_vec();
    ids.sort_unstable();
    let mut writer = create(dir, ids, ALL);
    for &id in order {
        writer.add(finished(id)).unwrap();
    }
    writer.finish().unwrap();
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn bytes_do_not_depend_on_the_order_of_finishing() {
    let root = tempfile::tempdir().unwrap();
    let orders: [&[u64]; 4] = [&[0, 1, 2, 3, 5], &[5, 3, 2, 1, 0], &[2, 0, 5, 1, 3], &[1, 0, 3, 2, 5]];
    for (at, order) in orders.iter().enumerate() {
        write(&root.path().join(at.to_string()), order);
    }
    let mut names: Vec<_> = fs::read_dir(root.path().join("0")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    names.retain(|name| name != "journal.bin");
    assert_eq!(
        names,
        [
            "failed.csv",
            "flows.csv",
            "jobs.csv",
            "links.csv",
            "results.csv",
            "results.parquet",
            "rtt.csv",
            "rtt_means.csv",
            "stats.csv"
        ]
    );
    for name in &names {
        let first = fs::read(root.path().join("0").join(name)).unwrap();
        for at in 1..orders.len() {
            assert!(
                first == fs::read(root.path().join(at.to_string()).join(name)).unwrap(),
                "{name:?} differs in order {at}"
            );
        }
    }
}

#[test]
fn files_show_exact_values() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &[3, 0]);
    insta::assert_snapshot!("results_csv", read(root.path(), "results.csv"));
    let others = ["flows.csv", "links.csv", "rtt.csv", "jobs.csv", "stats.csv", "failed.csv"];
    let shown: String = others.iter().map(|name| format!("# {name}\n{}", read(root.path(), name))).collect();
    insta::assert_snapshot!("other_csv", shown);
}

#[test]
fn every_row_has_its_headers_columns() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &[0, 1, 2, 3]);
    for name in ["results.csv", "flows.csv", "links.csv", "rtt.csv", "jobs.csv", "stats.csv", "failed.csv"] {
        // The reader is strict about lengths by default.
        let mut reader = csv::Reader::from_path(root.path().join(name)).unwrap();
        let rows = reader.records().collect::<Result<Vec<_>, _>>().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(!rows.is_empty(), "{name}");
    }
}

#[test]
fn parquet_has_the_rows_of_the_csv_with_types() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &[1, 3, 0]);
    let reader = SerializedFileReader::new(File::open(root.path().join("results.parquet")).unwrap()).unwrap();
    let columns: Vec<String> =
        reader.metadata().file_metadata().schema_descr().columns().iter().map(|c| c.name().to_string()).collect();
    let mut csv = csv::Reader::from_path(root.path().join("results.csv")).unwrap();
    assert_eq!(columns, csv.headers().unwrap().iter().collect::<Vec<_>>());

    let rows: Vec<Vec<(String, Field)>> =
        reader.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns()).collect();
    let field = |row: usize, name: &str| rows[row].iter().find(|(n, _)| n == name).map(|(_, f)| f.clone()).unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(field(1, "exp_id"), Field::ULong(1));
    assert_eq!(field(1, "seed"), Field::ULong(u64::MAX - 1));
    assert_eq!(field(0, "topology.kind"), Field::Str("fat-tree".into()));
    assert_eq!(field(1, "topology.link_gbps"), Field::Long(101));
    assert_eq!(field(1, "workload.load"), Field::Double(0.25));
    assert_eq!(field(1, "transport.pfc"), Field::Bool(false));
    assert_eq!(field(0, "makespan_ns"), Field::Double(1234.567));
    assert_eq!(field(0, "mfu"), Field::Double(0.1 + 0.2));
    assert_eq!(field(0, "iteration_time_ns"), Field::Null);
    assert_eq!(field(0, "error"), Field::Null);
    assert_eq!(field(2, "status"), Field::Str("failed".into()));

    // Every number is the one that the CSV shows.
    for (at, record) in csv.records().enumerate() {
        for (name, text) in columns.iter().zip(record.unwrap().iter()) {
            match field(at, name) {
                Field::Null => assert_eq!(text, "", "{name}"),
                Field::Double(v) => assert_eq!(v, text.parse::<f64>().unwrap(), "{name}"),
                Field::Long(v) => assert_eq!(v.to_string(), text, "{name}"),
                Field::ULong(v) => assert_eq!(v.to_string(), text, "{name}"),
                Field::Bool(v) => assert_eq!(v.to_string(), text, "{name}"),
                Field::Str(v) => assert_eq!(v, text.trim_start_matches('\''), "{name}"),
                other => panic!("{name}: unexpected type {other:?}"),
            }
        }
    }
}

#[test]
fn what_is_finished_is_on_disk_before_the_run_ends() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), vec![0, 1, 2], ALL);
    writer.add(finished(0)).unwrap();
    assert_eq!(read(root.path(), "results.csv").lines().count(), 2);
    // It waits for experiment 1, but on disk.
    writer.add(finished(2)).unwrap();
    assert_eq!(read(root.path(), "results.csv").lines().count(), 2);
    let journal = fs::read(root.path().join("journal.bin")).unwrap();
    assert!(journal.windows(2).any(|two| two == b"e2"), "experiment 2 is in the journal");
    // The writer ends as if killed here: nothing more is written.
    std::mem::forget(writer);
    assert!(read(root.path(), "flows.csv").starts_with(
        "exp_id,flow_id,src,dst,bytes,start_ns,fct_ns,slowdown,retransmissions\n0,0,1,2,3000,0.5,1000.001,1.5,2\n"
    ));
}

#[test]
fn an_interrupted_run_keeps_what_is_complete_in_order() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), (0..10).collect(), ALL);
    for id in [7, 0, 4] {
        writer.add(finished(id)).unwrap();
    }
    let (_, records) = writer.finish().unwrap();
    assert_eq!(records.iter().map(|r| r.exp_id).collect::<Vec<_>>(), [0, 4, 7]);
    let ids: Vec<String> =
        read(root.path(), "results.csv").lines().skip(1).map(|l| l.split(',').next().unwrap().into()).collect();
    assert_eq!(ids, ["0", "4", "7"]);
    assert!(!root.path().join("failed.csv").exists(), "there is no failure");
}

#[test]
fn optional_files_are_there_only_on_request() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), vec![0], Outputs { links: true, ..Outputs::default() });
    writer.add(finished(0)).unwrap();
    writer.finish().unwrap();
    assert!(!root.path().join("flows.csv").exists() && !root.path().join("rtt.csv").exists());
    assert_eq!(read(root.path(), "links.csv").lines().count(), 2);
}

#[test]
fn strangers_and_repeats_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), vec![0, 2], ALL);
    writer.add(finished(0)).unwrap();
    assert!(matches!(writer.add(finished(0)), Err(ResultsError::Unexpected(0))));
    assert!(matches!(writer.add(finished(1)), Err(ResultsError::Unexpected(1))));
    let mut short = finished(2);
    short.record.axis_values.pop();
    assert!(matches!(writer.add(short), Err(ResultsError::AxisCount { exp_id: 2, got: 3, axes: 4 })));
}

#[test]
fn a_search_narrows_what_there_will_be() {
    let root = tempfile::tempdir().unwrap();
    let ids: Vec<u64> = (0..5).collect();
    let mut writer = create(root.path(), ids, Outputs::default());
    // Two experiments are there as if recovered from a run before: one waits for an experiment that is not chosen.
    [0, 3].into_iter().for_each(|id| writer.add(finished(id)).unwrap());
    assert!(matches!(writer.only(vec![0, 1, 2]), Err(ResultsError::OtherChoice { exp_id: 3, .. })));
    writer.only(vec![0, 3, 4]).unwrap();
    let rows = || read(root.path(), "results.csv").lines().skip(1).map(|l| l[..1].to_string()).collect::<Vec<_>>();
    assert_eq!(rows(), ["0", "3"]);
    assert!(matches!(writer.add(finished(1)), Err(ResultsError::Unexpected(1))));
    writer.add(finished(4)).unwrap();
    writer.finish().unwrap();
    assert_eq!(rows(), ["0", "3", "4"]);
}

/// The files that must be the same bytes whatever happened on the way.
const FILES: [&str; 8] =
    ["failed.csv", "flows.csv", "jobs.csv", "links.csv", "results.csv", "results.parquet", "rtt.csv", "stats.csv"];

fn files(dir: &Path) -> Vec<Vec<u8>> {
    FILES.iter().map(|name| fs::read(dir.join(name)).unwrap_or_default()).collect()
}

#[test]
fn a_journal_cut_anywhere_is_carried_on_with() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    write(&whole, &[2, 0, 3, 1]);
    let journal = fs::read(whole.join("journal.bin")).unwrap();
    let ids = vec![0, 1, 2, 3];
    let mut held = Vec::new();
    // Its last cuts leave what every journal begins with, and nothing.
    for cut in (0..=journal.len()).rev().step_by(31).filter(|&cut| cut > 16).chain([16, 0]) {
        let dir = root.path().join(cut.to_string());
        // Files of the killed run lie there, with rows that do not belong to what the journal still holds.
        fs::create_dir(&dir).unwrap();
        for name in ["failed.csv", "results.parquet", "manifest.json.part"] {
            fs::write(dir.join(name), "left over").unwrap();
        }
        fs::write(dir.join("journal.bin"), &journal[..cut]).unwrap();
        let (mut writer, recovered) = reopen(&dir, ids.clone()).unwrap();
        let known: Vec<u64> = writer.records().map(|r| r.exp_id).collect();
        assert_eq!((recovered.complete, recovered.again), (known.len() as u64, 0));
        for &id in ids.iter().filter(|id| !known.contains(id)) {
            writer.add(finished(id)).unwrap();
        }
        writer.finish().unwrap();
        assert!(files(&dir) == files(&whole), "cut at {cut} of {}", journal.len());
        held.push(known.len());
        fs::remove_dir_all(dir).unwrap();
    }
    held.dedup();
    assert_eq!(held, [4, 3, 2, 1, 0], "every number of experiments occurred");
}

#[test]
fn damage_in_the_middle_costs_one_experiment() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    write(&whole, &[0, 1, 2, 3]);
    let journal = fs::read(whole.join("journal.bin")).unwrap();
    // The text that only experiment 1 has tells where its bytes are.
    let at = journal.windows(2).position(|two| two == b"e1").unwrap();
    for byte in [at, at + 20, at - 40] {
        let dir = root.path().join(byte.to_string());
        fs::create_dir(&dir).unwrap();
        let mut damaged = journal.clone();
        damaged[byte] ^= 1;
        fs::write(dir.join("journal.bin"), damaged).unwrap();
        let (mut writer, recovered) = reopen(&dir, vec![0, 1, 2, 3]).unwrap();
        assert_eq!(recovered.complete, 3, "what is behind the damage counts");
        assert!(recovered.damage.unwrap().contains("is run again"));
        writer.add(finished(1)).unwrap();
        writer.finish().unwrap();
        assert!(files(&dir) == files(&whole));
    }
}

#[test]
fn a_flipped_bit_costs_one_experiment_at_most_and_is_told() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("d");
    write(&dir, &(0..40).collect::<Vec<_>>());
    let journal = fs::read(dir.join("journal.bin")).unwrap();
    for flip in 0..300 {
        let (at, bit) = (flip * journal.len() / 300 + flip % 7, flip % 8);
        let mut damaged = journal.clone();
        damaged[at] ^= 1 << bit;
        fs::write(dir.join("journal.bin"), damaged).unwrap();
        let reader = JournalReader::open(&dir).unwrap();
        assert!(reader.parts().len() >= 39, "byte {at}: {} left", reader.parts().len());
        assert!(reader.damage().is_some(), "byte {at}");
        for (&id, &part) in reader.parts() {
            assert_eq!(reader.read(part).unwrap(), finished(id), "byte {at}");
        }
    }
}

#[test]
fn what_is_cut_off_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("d");
    write(&dir, &[0, 1]);
    let journal = fs::read(dir.join("journal.bin")).unwrap();
    fs::write(dir.join("journal.bin"), &journal[..journal.len() - 5]).unwrap();
    let (writer, recovered) = reopen(&dir, vec![0, 1]).unwrap();
    assert!(recovered.damage.unwrap().contains("is kept in journal-damaged.bin"));
    drop(writer);
    let kept = fs::read(dir.join("journal-damaged.bin")).unwrap();
    assert!(journal[..journal.len() - 5].ends_with(&kept) && kept.len() > 100, "{} bytes", kept.len());
}

proptest! {
    /// Whatever happens to the bytes, what is read is what was written, and each change costs one experiment at most.
    #[test]
    fn no_damage_is_taken_for_a_result(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut: prop::sample::Index) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("d");
        write(&dir, &[2, 0, 1]);
        let mut journal = fs::read(dir.join("journal.bin")).unwrap();
        let changed = changes.len();
        for (at, byte) in changes {
            let at = at.index(journal.len());
            journal[at] = byte;
        }
        journal.truncate(journal.len() - cut.index(64));
        fs::write(dir.join("journal.bin"), journal).unwrap();
        if let Ok(reader) = JournalReader::open(&dir) {
            let held: Vec<u64> = reader.parts().keys().copied().collect();
            prop_assert!(held.iter().all(|id| *id < 3) && held.len() + changed + 1 >= 3, "{held:?} after {changed} changes");
            for (&id, &part) in reader.parts() {
                prop_assert_eq!(reader.read(part).unwrap(), finished(id));
            }
        }
    }
}

#[test]
fn a_record_out_of_place_is_no_record() {
    let root = tempfile::tempdir().unwrap();
    write(&root.path().join("a"), &[0, 1]);
    let dir = root.path().join("a");
    let journal = fs::read(dir.join("journal.bin")).unwrap();
    let (zero, one) = (
        journal.windows(2).position(|two| two == b"e0").unwrap(),
        journal.windows(2).position(|two| two == b"e1").unwrap(),
    );
    let length = one - zero;
    // The last record once more: its own bytes and checksum are sound, its place is not.
    fs::write(dir.join("journal.bin"), [&journal[..], &journal[journal.len() - length..]].concat()).unwrap();
    let (writer, recovered) = reopen(&dir, vec![0, 1]).unwrap();
    assert_eq!((recovered.complete, recovered.damage.is_some()), (2, true));
    drop(writer);
}

#[test]
fn what_is_no_journal_of_this_run_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("d");
    write(&dir, &[0, 1]);
    let journal = fs::read(dir.join("journal.bin")).unwrap();
    let run =
        RunIdentity { axes: axes(), outputs: ALL, sweep: "other".into(), ..RunIdentity::default() }.of_this_version(1);
    let other = ResultWriter::open(ResultDir::reopen(&dir).unwrap(), &run, vec![0, 1]);
    assert!(matches!(other, Err(ResultsError::OtherRun { .. })));
    assert!(fs::read(dir.join("journal.bin")).unwrap() == journal);

    // A beginning that is only damaged is mended (`resume`).
    for damaged in [journal[..20].to_vec(), b"exp_id,flow_id\n".to_vec()] {
        fs::write(dir.join("journal.bin"), &damaged).unwrap();
        let Err(refused @ ResultsError::ForeignJournal(_)) = reopen(&dir, vec![0, 1]) else { panic!("it was read") };
        let advice = refused.to_string();
        assert!(advice.contains("into a new folder") && !advice.contains("--resume"), "{advice}");
        assert!(fs::read(dir.join("journal.bin")).unwrap() == damaged);
    }
    assert!(read(&dir, "results.csv").lines().count() == 3, "nor is anything else touched");
}

#[test]
fn results_of_an_earlier_release_are_read_and_not_carried_on_with() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("d");
    let run = RunIdentity { axes: axes(), outputs: ALL, experiments: 2, ..RunIdentity::default() }.of_this_version(1);
    let earlier = RunIdentity { version: "0.1.0".into(), ..run.clone() };
    let (mut writer, _) = ResultWriter::open(ResultDir::create(&dir).unwrap(), &earlier, vec![0, 1]).unwrap();
    writer.add(finished(0)).unwrap();
    drop(writer);
    let journal = JournalReader::open(&dir).unwrap();
    assert_eq!(journal.read(journal.parts()[&0]).unwrap().record, finished(0).record);
    drop(journal);
    let out = root.path().join("recovered");
    let recovered = hyperfold_session::folders::merge::recover(&dir, &out, &mut |_| ()).unwrap();
    assert_eq!((recovered.run.version.as_str(), recovered.records.len()), ("0.1.0", 1));
    assert_eq!(read(&out, "results.csv").lines().count(), 2);
    let carried_on = ResultWriter::open(ResultDir::reopen(&dir).unwrap(), &run, vec![0, 1]);
    let Err(refused @ ResultsError::OtherRun { .. }) = carried_on else { panic!("it is carried on") };
    let this = env!("CARGO_PKG_VERSION");
    let reason = format!("written by hyperfold 0.1.0 with model 1; this is hyperfold {this} with model 1");
    assert!(refused.to_string().contains(&reason), "{refused}");
}

#[test]
fn only_a_limit_of_the_machine_is_run_again() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), vec![0, 1, 2], ALL);
    for (id, why) in [(0, "limit: wall_s = 1 reached"), (1, "limit: packet_hops = 5 reached")] {
        let mut ended = finished(id);
        ended.record = if id == 0 { ended.record.reached_machine_limit(why) } else { ended.record.failed(why) };
        writer.add(ended).unwrap();
    }
    drop(writer);
    let (mut writer, recovered) = reopen(root.path(), vec![0, 1, 2]).unwrap();
    assert_eq!((recovered.complete, recovered.again), (1, 1));
    writer.add(finished(0)).unwrap();
    drop(writer);
    let (writer, recovered) = reopen(root.path(), vec![0, 1, 2]).unwrap();
    assert_eq!((recovered.complete, recovered.again), (2, 0), "the later ending counts");
    writer.finish().unwrap();
    let rows: Vec<String> =
        read(root.path(), "failed.csv").lines().map(|l| l.split(',').next().unwrap().into()).collect();
    assert_eq!(rows, ["exp_id", "1"]);
}

/// Packets that take all paths are no faster than the paths together, where each of them is slower than a NIC.
#[test]
fn no_flow_is_faster_than_its_paths_together() {
    let (folder, said, code) = Folder::with_run(
        "name = \"narrow\"\n[base]\ncluster = { gpus = 16, gpus_per_server = 1 }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 4, link_gbps = 100, uplink_gbps = 10 }\n\
         workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 400000 }\noutput.flows = true\n\
         transport = { cc = \"none\", loss_recovery = \"selective\" }\n[axes]\n\
         \"routing.policy\" = [\"ecmp\", \"round-robin\", \"adaptive\"]\n\"fidelity.mode\" = [\"packet\", \"flow\"]\n",
    );
    assert_eq!(code, 0, "{said}");
    let slowdowns = folder.numbers("flows", "slowdown");
    assert!(slowdowns.len() == 6 * 16 && slowdowns.iter().all(|&slowdown| slowdown >= 1.0), "{slowdowns:?}");
}
