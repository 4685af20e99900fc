//! Figures of results: what is in them, that names stay text, and that the same results give the same bytes.

use super::*;
use hyperfold_results::read::fixture;
use hyperfold_results::{
    Axis, Cell, ColumnKind, ExperimentRecord, Finished, FlowMeasures, FlowRecord, Micro, Ps, RunColumns, StatsRecord,
};

const HOSTILE: &str = "</text><script>alert(1)</script>\u{202e}\u{1b}[2J&\"'";

/// Two controls at three rates, two replicas each; the last experiment has failed.
fn folder(dir: &std::path::Path, names: [&str; 2]) -> RunColumns {
    let axes = [("transport.cc", ColumnKind::Text), ("topology.link_gbps", ColumnKind::Int)];
    let axes = axes.map(|(key, kind)| Axis { key: key.into(), kind });
    let mut experiments = Vec::new();
    for id in 0..12_u64 {
        let (cc, rate, replica) = (names[id as usize / 6], [100, 200, 400][id as usize / 2 % 3], id as u32 % 2);
        let values = vec![Cell::from(cc), Cell::Int(rate)];
        let mut record = ExperimentRecord::new(id, format!("c{}", id / 2), format!("e{id}"), replica, 1, values);
        record.makespan = Some(Ps(1_000_000_000_000 / rate as u64 + id * 1_000_000));
        record.max_queue_bytes = Some(65_536 * (1 + id));
        record.drops = Some(0);
        if id == 11 {
            record = record.failed("why");
            record.makespan = None;
        }
        let flow = |k: u32| FlowRecord {
            flow_id: k,
            src: 0,
            dst: 1,
            bytes: 1000,
            start: Ps(0),
            fct: (k != 3).then_some(Ps(1_000_000 * u64::from(k + 1))),
            measures: FlowMeasures {
                slowdown: (k != 3).then_some(Micro(1_000_000 + 250_000 * u64::from(k))),
                retransmissions: Some(0),
            },
        };
        experiments.push(Finished {
            record,
            flows: (0..4).map(flow).collect(),
            stats: StatsRecord::default(),
            ..Finished::default()
        });
    }
    fixture::write(dir, &axes, &experiments, "name = \"n\"\n[sweep]\nmethod = \"grid\"\n");
    RunColumns::open(dir).unwrap()
}

fn asked(x: &str, y: &str, by: &[&str]) -> ColumnFigure {
    ColumnFigure { x: x.into(), y: y.into(), by: by.iter().map(|b| b.to_string()).collect(), ..ColumnFigure::default() }
}

fn svg(figure: &Figure) -> String {
    String::from_utf8(figure.to_svg()).unwrap()
}

/// The texts of an SVG file, in order.
fn texts(svg: &str) -> Vec<&str> {
    svg.split("<text ").skip(1).map(|t| t.split_once('>').unwrap().1.split_once("</text>").unwrap().0).collect()
}

#[test]
fn a_line_for_each_series_through_the_means() {
    let root = tempfile::tempdir().unwrap();
    let run = folder(root.path(), ["hpcc", "dcqcn"]);
    let figure = figure_of_columns(&run, &asked("link_gbps", "makespan_ns", &["transport.cc"])).unwrap();
    let labels: Vec<&str> = figure.series.iter().map(|s| s.label.as_str()).collect();
    assert_eq!(labels, ["hpcc", "dcqcn"], "words in the order in which they appear");
    let points: Vec<(f64, f64)> = figure.series[0].points.iter().map(|p| (p.x, p.y)).collect();
    assert_eq!(points, [(100.0, 10_000_500.0), (200.0, 5_002_500.0), (400.0, 2_504_500.0)]);
    assert_eq!(figure.series[0].points[0].range, (10_000_000.0, 10_001_000.0));
    assert_eq!(
        figure.note,
        "means over up to 2 experiments; bars from least to most; 1 experiment without makespan_ns left out"
    );
    let svg = svg(&figure);
    let texts = texts(&svg);
    for text in [
        "n: makespan over topology.link_gbps",
        "100",
        "200",
        "400",
        "topology.link_gbps",
        "makespan (ms)",
        "hpcc",
        "dcqcn",
        "transport.cc",
        "10",
    ] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    // Each line in the field and in the legend, and each mark of the first series.
    assert_eq!((svg.matches("stroke-width=\"1.8\"").count(), svg.matches("<circle").count()), (4, 4));
}

#[test]
fn words_are_categories_and_bytes_are_binary() {
    let root = tempfile::tempdir().unwrap();
    let run = folder(root.path(), ["hpcc", "dcqcn"]);
    let figure = figure_of_columns(&run, &asked("transport.cc", "max_queue_bytes", &["link_gbps"])).unwrap();
    let svg = svg(&figure);
    let texts = texts(&svg);
    for text in ["hpcc", "dcqcn", "256 KiB", "768 KiB", "100", "max queue"] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    let log = ColumnFigure { log_y: true, ..asked("link_gbps", "max_queue_bytes", &[]) };
    let svg = String::from_utf8(figure_of_columns(&run, &log).unwrap().to_svg()).unwrap();
    assert!(svg.contains(">64 KiB<") && svg.contains(">1 MiB<"), "{svg}");
}

#[test]
fn unknown_columns_are_answered_with_what_there_is() {
    let root = tempfile::tempdir().unwrap();
    let run = folder(root.path(), ["hpcc", "dcqcn"]);
    let why = |asked: ColumnFigure| figure_of_columns(&run, &asked).unwrap_err().to_string();
    assert!(why(asked("link_gbps", "makespan", &[])).contains("did you mean `makespan_ns`?"));
    let unknown = why(asked("link_gbps", "duration", &[]));
    assert!(
        unknown.starts_with("--y duration: no such column; there are exp_id, ") && unknown.contains("makespan_ns"),
        "{unknown}"
    );
    assert!(!unknown.contains("mfu"), "only what has values: {unknown}");
    assert!(why(asked("link_gbps", "makespam_ns", &[])).contains("did you mean `makespan_ns`?"));
    assert!(
        why(asked("cc", "transport.cc", &[])).contains("it has words, no numbers; columns with numbers are exp_id")
    );
    assert!(why(asked("cc", "mfu", &[])).contains("no experiment has a value"));
    assert!(why(asked("cc", "makespan_ns", &["ccc"])).starts_with("--by ccc: "));
    assert!(why(ColumnFigure { log_x: true, ..asked("cc", "makespan_ns", &[]) }).contains("no logarithm"));
    assert!(why(ColumnFigure { log_y: true, ..asked("cc", "drops", &[]) }).contains("no value is above 0"));
}

#[test]
fn distributions_are_of_flows() {
    let root = tempfile::tempdir().unwrap();
    let run = folder(root.path(), ["hpcc", "dcqcn"]);
    let distribution = |name: &str, by: &[&str]| DistributionFigure {
        of: name.into(),
        by: by.iter().map(|b| b.to_string()).collect(),
        ..DistributionFigure::default()
    };
    let figure = figure_of_distribution(&run, &distribution("fct", &["cc"])).unwrap();
    assert_eq!(figure.series.len(), 2);
    let last = figure.series[1].points.last().unwrap();
    assert_eq!((last.x, last.y, figure.series[1].points.len()), (3000.0, 1.0, 4));
    assert_eq!(figure.note, "12 unfinished flows left out");
    let slowdowns = figure_of_distribution(&run, &distribution("slowdown", &["cc"])).unwrap();
    let points: Vec<(f64, f64)> = slowdowns.series[0].points.iter().map(|p| (p.x, p.y)).collect();
    assert_eq!(points.last(), Some(&(1.5, 1.0)), "{points:?}");
    assert_eq!(
        (slowdowns.note.as_str(), slowdowns.x.label.as_str()),
        ("12 unfinished flows left out", "slowdown of flows")
    );
    let svg = svg(&figure);
    for text in ["n: flow completion time", "flow completion time (us)", "cumulative share of flows (%)", "100"] {
        assert!(texts(&svg).contains(&text), "{text}: {svg}");
    }
    assert!(matches!(
        figure_of_distribution(&run, &distribution("rtt", &[])),
        Err(PlotError::Nothing(_) | PlotError::NotWritten { .. })
    ));
    std::fs::remove_file(root.path().join("flows.csv")).unwrap();
    let why = figure_of_distribution(&run, &distribution("fct", &[])).unwrap_err().to_string();
    assert!(why.contains("there is no flows.csv; run the sweep with `output.flows = true`"), "{why}");
}

#[test]
fn names_stay_text() {
    let root = tempfile::tempdir().unwrap();
    let run = folder(root.path(), ["hpcc", HOSTILE]);
    for asked in [
        asked("transport.cc", "makespan_ns", &["transport.cc"]),
        ColumnFigure { title: Some(HOSTILE.into()), ..asked("link_gbps", "makespan_ns", &[]) },
    ] {
        let svg = svg(&figure_of_columns(&run, &asked).unwrap());
        assert!(!svg.contains("<script") && !svg.contains("</text><"), "{svg}");
        assert!(!svg.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{svg}");
        assert!(svg.contains("&lt;/text&gt;"), "{svg}");
        // Every tag is one of ours.
        for tag in svg.split('<').skip(1) {
            let name = tag.trim_start_matches('/').split([' ', '>']).next().unwrap();
            assert!(["?xml", "svg", "title", "rect", "polyline", "polygon", "circle", "text"].contains(&name), "{tag}");
        }
    }
}

/// FNV-1a, 64 bits.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn the_same_results_give_the_same_bytes() {
    let root = tempfile::tempdir().unwrap();
    let run = folder(root.path(), ["hpcc", "dcqcn"]);
    let figure = figure_of_columns(&run, &asked("link_gbps", "makespan_ns", &["transport.cc"])).unwrap();
    let png = figure.to_png().unwrap();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let side = |offset: usize| u32::from_be_bytes(png[offset..offset + 4].try_into().unwrap());
    assert!(side(16) > 1000 && side(20) > 700, "{} by {}", side(16), side(20));
    assert_eq!(png, figure.to_png().unwrap());
    assert_eq!(
        figure.to_svg(),
        figure_of_columns(&run, &asked("topology.link_gbps", "makespan_ns", &["cc"])).unwrap().to_svg()
    );
    // Recorded once: another machine, another system without fonts, the same picture.
    assert_eq!((digest(&figure.to_svg()), digest(&png)), (SVG_DIGEST, PNG_DIGEST));
}

const SVG_DIGEST: u64 = 4_807_212_900_829_795_943;
const PNG_DIGEST: u64 = 7_431_602_443_128_318_735;
