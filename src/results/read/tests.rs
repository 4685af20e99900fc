//! Tests that what was written reads back, from either file.

use std::fs;
use std::path::Path;

use super::*;
use crate::{
    Axis, ColumnSets, ExperimentRecord, Finished, FlowMeasures, FlowRecord, LinkEnds, LinkPackets, LinkPauses,
    LinkRecord, Micro, Ps, RttRecord, StatsRecord,
};

fn axes() -> Vec<Axis> {
    let axis = |key: &str, kind| Axis { key: key.into(), kind };
    vec![
        axis("topology.kind", ColumnKind::Text),
        axis("topology.link_gbps", ColumnKind::Int),
        axis("transport.pfc", ColumnKind::Flag),
        axis("workload.load", ColumnKind::Real),
    ]
}

fn write(dir: &Path) -> Vec<Vec<Cell>> {
    let kinds = ["=fat,\"tree\"", "clos", "'quoted'"];
    let (mut rows, mut experiments) = (Vec::new(), Vec::new());
    for (n, id) in [1_u64, 4, 7].into_iter().enumerate() {
        let values =
            vec![kinds[n].into(), Cell::Int(-5), if n == 1 { Cell::Empty } else { Cell::Flag(true) }, Cell::Real(0.1)];
        let mut record = ExperimentRecord::new(id, "c".into(), "e".into(), n as u32, u64::MAX, values);
        if n == 2 {
            record = record.failed("why,\nnot");
        } else {
            record.makespan = Some(Ps(123_456_789_012_345_678));
            record.max_link_utilisation = Some(Micro(333_333));
        }
        rows.push(crate::csv_rows::results_row(&record, ColumnSets::default()));
        let flow = |k| FlowRecord {
            flow_id: k,
            src: 0,
            dst: 1,
            bytes: 7,
            start: Ps(1_001),
            fct: (k > 0).then_some(Ps(2_500)),
            measures: FlowMeasures { slowdown: (k > 0).then_some(Micro(1_250_000)), retransmissions: Some(k.into()) },
        };
        let link = LinkRecord {
            link: "0->1".into(),
            bytes: 9,
            utilisation: Micro(5),
            packets: Some(LinkPackets {
                max_queue_bytes: 1,
                mean_queue_bytes: Micro(2_500_000),
                ecn_marks: 3,
                pfc_pauses: 4,
                drops: 5,
            }),
            ends: Some(LinkEnds { source: "0".into(), target: "1".into(), capacity_gbps: Micro(400_000_000) }),
            pauses: LinkPauses { paused: Some(Ps(7_001)) },
        };
        let rtt = vec![RttRecord { flow_id: 1, sample: Ps(1), rtt: Ps(2) }];
        let stats = StatsRecord { audit_fct_error: (n == 0).then_some(0.25), wall_s: 0.5, ..StatsRecord::default() };
        experiments.push(Finished {
            record,
            flows: vec![flow(0), flow(1)],
            links: vec![link],
            rtt,
            stats,
            ..Finished::default()
        });
    }
    fixture::write(dir, &axes(), &experiments, "name = \"n\"\n");
    rows
}

/// Returns rows as files hold them: exact decimals become doubles.
fn as_read(rows: &[Vec<Cell>]) -> Vec<Vec<Cell>> {
    let cell = |c: &Cell| match c {
        Cell::Ps(_) | Cell::Micro(_) => Cell::Real(c.to_string().parse().unwrap()),
        other => other.clone(),
    };
    rows.iter().map(|r| r.iter().map(cell).collect()).collect()
}

#[test]
fn both_files_read_back_what_was_written() {
    let root = tempfile::tempdir().unwrap();
    let rows = as_read(&write(root.path()));
    let run = RunColumns::open(root.path()).unwrap();
    assert_eq!(run.rows, rows, "parquet");
    fs::remove_file(root.path().join("results.parquet")).unwrap();
    let csv = RunColumns::open(root.path()).unwrap();
    assert_eq!((csv.rows, csv.columns), (rows, run.columns.clone()), "csv");
    let axes: Vec<&str> = run.axes().map(|a| run.columns[a].name.as_str()).collect();
    assert_eq!(axes, ["topology.kind", "topology.link_gbps", "transport.pfc", "workload.load"]);
    let row = run.find(4).unwrap();
    assert_eq!((run.exp_id(row), run.config_key(row), run.replica(row), run.status(row)), (4, "c", 1, Status::Ok));
    assert_eq!((run.find(5), run.status(run.find(7).unwrap())), (None, Status::Failed));
    assert_eq!(run.number(row, run.column("max_link_utilisation").unwrap()), Some(0.333333));
    assert_eq!(run.sweep().unwrap()["name"].as_str(), Some("n"));
}

#[test]
fn companion_files_are_exact() {
    let root = tempfile::tempdir().unwrap();
    write(root.path());
    let run = RunColumns::open(root.path()).unwrap();
    let flows = run.flows_of(4).unwrap().unwrap();
    assert_eq!((flows.len(), flows[0].fct, flows[1].fct, flows[1].start), (2, None, Some(Ps(2_500)), Ps(1_001)));
    assert_eq!(run.links_of(7).unwrap().unwrap()[0].packets.unwrap().mean_queue_bytes, Micro(2_500_000));
    assert_eq!(run.rtt_of(99).unwrap().unwrap(), []);
    let mut errors = Vec::new();
    assert!(run.each_stats(|id, s| errors.push((id, s.audit_fct_error))).unwrap());
    assert_eq!(errors, [(1, Some(0.25)), (4, None), (7, None)]);
    fs::remove_file(root.path().join("flows.csv")).unwrap();
    assert_eq!(run.flows_of(4).unwrap(), None);
    let text = fs::read_to_string(root.path().join("links.csv")).unwrap();
    fs::write(root.path().join("links.csv"), text.replacen("2.5", "2.x", 1)).unwrap();
    let error = run.links_of(1).unwrap_err().to_string();
    assert!(error.contains("links.csv, line 2: mean_queue_bytes is `2.x`"), "{error}");
    assert_eq!(run.links_of(7).unwrap().unwrap().len(), 1, "a row that nobody asked for disturbs nobody");
}

#[test]
fn what_is_no_folder_of_results_is_said() {
    let root = tempfile::tempdir().unwrap();
    let why = |path: &Path| RunColumns::open(path).unwrap_err().to_string();
    assert!(why(&root.path().join("absent")).contains("no such folder"));
    assert!(why(root.path()).contains("no manifest.json"));
    write(root.path().join("r").as_path());
    let dir = root.path().join("r");
    fs::write(dir.join("results.parquet"), b"PAR1 not").unwrap();
    assert!(why(&dir).contains("results.parquet"));
    fs::remove_file(dir.join("results.parquet")).unwrap();
    let csv = fs::read_to_string(dir.join("results.csv")).unwrap();
    fs::write(dir.join("results.csv"), csv.replace("123456789012345.678", "fast")).unwrap();
    assert!(why(&dir).contains("makespan_ns is `fast`; it must be a number"), "{}", why(&dir));
    fs::remove_file(dir.join("results.csv")).unwrap();
    assert!(why(&dir).contains("no results.parquet and no results.csv"));
    fs::write(dir.join("manifest.json"), "{}").unwrap();
    assert!(why(&dir).contains("not a manifest"));
}
