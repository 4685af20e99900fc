//! What a run writes, read back: order, bytes, types, and what survives a kill.

use std::fs::{self, File};
use std::path::Path;

use hyperfold::results::{
    Axis, Cell, ExperimentRecord, Finished, FlowRecord, Kind, LinkRecord, Micro, Outputs, Ps, ResultDir, ResultWriter, ResultsError,
    RttRecord, StatsRecord,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

const ALL: Outputs = Outputs { flows: true, links: true, rtt: true };

fn axes() -> Vec<Axis> {
    vec![
        Axis { key: "topology.kind".into(), kind: Kind::Text },
        Axis { key: "topology.link_gbps".into(), kind: Kind::Int },
        Axis { key: "workload.load".into(), kind: Kind::Real },
        Axis { key: "transport.pfc".into(), kind: Kind::Flag },
    ]
}

/// An experiment whose every number follows from its id.
fn finished(exp_id: u64) -> Finished {
    let axis_values = vec!["fat-tree".into(), Cell::Int(100 + exp_id as i64), Cell::Real(0.25), Cell::Flag(exp_id.is_multiple_of(2))];
    let mut record = ExperimentRecord::new(exp_id, format!("c{exp_id}"), format!("e{exp_id}"), 0, u64::MAX - exp_id, axis_values);
    record.makespan = Some(Ps(1_234_567 + exp_id));
    record.flows = Some(2);
    record.fct_mean = Some(Ps(1_000_001));
    record.max_link_utilisation = Some(Micro(987_654));
    record.bottleneck_link = Some("64->0".into());
    record.mfu = Some(0.1 + 0.2);
    if exp_id == 3 {
        record = record.failed("=flow 1 gave up, \"all\" retries used\nport 3 waits for 4");
    }
    let flow = |flow_id, fct| FlowRecord { flow_id, src: 1, dst: 2, bytes: 3000, start: Ps(500), fct };
    let link = LinkRecord {
        link: "1->64".into(),
        bytes: 77,
        utilisation: Micro(500_000),
        max_queue_bytes: 9,
        mean_queue_bytes: Micro(1_250_000),
        ecn_marks: 1,
        pfc_pauses: 2,
        drops: 0,
    };
    Finished {
        record,
        flows: vec![flow(0, Some(Ps(1_000_001))), flow(1, None)],
        links: vec![link],
        rtt: vec![RttRecord { flow_id: 0, sample: Ps(10), rtt: Ps(20_010) }],
        stats: StatsRecord { packet_hops_simulated: 10, batches: 1, wall_s: 0.5, ..Default::default() },
    }
}

fn write(dir: &Path, order: &[u64]) {
    let mut ids = order.to_vec();
    ids.sort_unstable();
    let mut writer = ResultWriter::create(ResultDir::create(dir).unwrap(), axes(), ids, ALL).unwrap();
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
    assert_eq!(names, ["failed.csv", "flows.csv", "links.csv", "results.csv", "results.parquet", "rtt.csv", "stats.csv"]);
    for name in &names {
        let first = fs::read(root.path().join("0").join(name)).unwrap();
        for at in 1..orders.len() {
            assert!(first == fs::read(root.path().join(at.to_string()).join(name)).unwrap(), "{name:?} differs in order {at}");
        }
    }
}

#[test]
fn files_show_exact_values() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &[3, 0]);
    insta::assert_snapshot!("results_csv", read(root.path(), "results.csv"));
    let others = ["flows.csv", "links.csv", "rtt.csv", "stats.csv", "failed.csv"];
    let shown: String = others.iter().map(|name| format!("# {name}\n{}", read(root.path(), name))).collect();
    insta::assert_snapshot!("other_csv", shown);
}

#[test]
fn every_row_has_its_headers_columns() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &[0, 1, 2, 3]);
    for name in ["results.csv", "flows.csv", "links.csv", "rtt.csv", "stats.csv", "failed.csv"] {
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
    let mut writer = ResultWriter::create(ResultDir::create(root.path()).unwrap(), axes(), vec![0, 1, 2], ALL).unwrap();
    writer.add(finished(0)).unwrap();
    assert_eq!(read(root.path(), "results.csv").lines().count(), 2);
    // It waits for experiment 1, but on disk.
    writer.add(finished(2)).unwrap();
    assert_eq!(read(root.path(), "results.csv").lines().count(), 2);
    assert!(read(root.path(), "pending.part").contains("e2"));
    // As if killed here: nothing more is written.
    std::mem::forget(writer);
    assert!(read(root.path(), "flows.csv").starts_with("exp_id,flow_id,src,dst,bytes,start_ns,fct_ns\n0,0,1,2,3000,0.5,1000.001\n"));
}

#[test]
fn an_interrupted_run_keeps_what_is_complete_in_order() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = ResultWriter::create(ResultDir::create(root.path()).unwrap(), axes(), (0..10).collect(), ALL).unwrap();
    for id in [7, 0, 4] {
        writer.add(finished(id)).unwrap();
    }
    let (_, records) = writer.finish().unwrap();
    assert_eq!(records.iter().map(|r| r.exp_id).collect::<Vec<_>>(), [0, 4, 7]);
    let ids: Vec<String> = read(root.path(), "results.csv").lines().skip(1).map(|l| l.split(',').next().unwrap().into()).collect();
    assert_eq!(ids, ["0", "4", "7"]);
    assert!(!root.path().join("pending.part").exists());
    assert!(!root.path().join("failed.csv").exists(), "there is no failure");
}

#[test]
fn optional_files_are_there_only_on_request() {
    let root = tempfile::tempdir().unwrap();
    let dir = ResultDir::create(root.path()).unwrap();
    let mut writer = ResultWriter::create(dir, axes(), vec![0], Outputs { links: true, ..Outputs::default() }).unwrap();
    writer.add(finished(0)).unwrap();
    writer.finish().unwrap();
    assert!(!root.path().join("flows.csv").exists() && !root.path().join("rtt.csv").exists());
    assert_eq!(read(root.path(), "links.csv").lines().count(), 2);
}

#[test]
fn strangers_and_repeats_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = ResultWriter::create(ResultDir::create(root.path()).unwrap(), axes(), vec![0, 2], ALL).unwrap();
    writer.add(finished(0)).unwrap();
    assert!(matches!(writer.add(finished(0)), Err(ResultsError::Unexpected(0))));
    assert!(matches!(writer.add(finished(1)), Err(ResultsError::Unexpected(1))));
    let mut short = finished(2);
    short.record.axis_values.pop();
    assert!(matches!(writer.add(short), Err(ResultsError::AxisCount { exp_id: 2, got: 3, axes: 4 })));
}
