//! Traces read back by a decoder that shares nothing with the writer: wire types as the protocol-buffer documentation has them.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use hyperfold_config::spec::Config;
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_host::outcomes::timeline::{RecordedSpan, record};

/// The value of a field.
#[derive(Clone, Debug)]
enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0u64;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a varint ends");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    unreachable!()
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut bytes)),
            2 => {
                let n = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(n);
                bytes = rest;
                Value::Bytes(inner)
            }
            other => panic!("wire type {other} of field {}", key >> 3),
        };
        found.push((key >> 3, value));
    }
    found
}

fn number(fields: &[(u64, Value)], field: u64) -> Option<u64> {
    fields.iter().find_map(|(f, v)| match v {
        Value::Varint(v) if *f == field => Some(*v),
        _ => None,
    })
}

fn inner<'a>(fields: &[(u64, Value<'a>)], field: u64) -> Vec<&'a [u8]> {
    let bytes = |(f, v): &(u64, Value<'a>)| match v {
        Value::Bytes(b) if *f == field => Some(*b),
        _ => None,
    };
    fields.iter().filter_map(bytes).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[derive(Clone, Debug, PartialEq)]
struct ReadSpan {
    track: u64,
    begin: u64,
    end: u64,
    name: String,
    category: String,
    args: BTreeMap<String, String>,
}

#[derive(Default, Debug)]
struct ReadTrack {
    parent: Option<u64>,
    name: String,
}

#[derive(Default)]
struct ReadBack {
    tracks: BTreeMap<u64, ReadTrack>,
    spans: Vec<ReadSpan>,
    /// Samples of each track as (ns, bytes).
    counters: BTreeMap<u64, Vec<(u64, u64)>>,
    notes: Vec<String>,
}

impl ReadBack {
    /// The names of a track and its ancestors, from the top.
    fn path(&self, track: u64) -> Vec<String> {
        let t = &self.tracks[&track];
        let mut path = t.parent.map_or(Vec::new(), |p| self.path(p));
        path.push(t.name.clone());
        path
    }
}

/// Reads a trace and checks it: names are interned before use, tracks are described, and spans begin and end in turn on each track.
fn read_back(bytes: &[u8]) -> ReadBack {
    let mut back = ReadBack::default();
    let mut names: [BTreeMap<u64, String>; 3] = Default::default();
    let mut open: BTreeMap<u64, ReadSpan> = BTreeMap::new();
    let mut before = 0;
    for (n, packet) in fields(bytes).iter().enumerate() {
        let (1, Value::Bytes(packet)) = packet else { panic!("a trace is packets") };
        let packet = fields(packet);
        assert_eq!(number(&packet, 10), Some(1), "all packets are of one sequence");
        for interned in inner(&packet, 12) {
            assert_eq!((n, number(&packet, 13)), (0, Some(1)), "the first packet clears the state");
            for (kind, table) in names.iter_mut().enumerate() {
                for entry in inner(&fields(interned), kind as u64 + 1) {
                    let entry = fields(entry);
                    let id = number(&entry, 1).filter(|id| *id > 0).unwrap();
                    assert!(table.insert(id, text(inner(&entry, 2)[0])).is_none());
                }
            }
        }
        for track in inner(&packet, 60) {
            let track = fields(track);
            let named = |field, name| inner(&track, field).first().map(|p| text(inner(&fields(p), name)[0]));
            let name =
                inner(&track, 2).first().map(|n| text(n)).or_else(|| named(3, 6)).or_else(|| named(4, 5)).unwrap();
            let parent = number(&track, 5);
            assert!(parent.is_none_or(|p| back.tracks.contains_key(&p)), "parents come first");
            assert!(back.tracks.insert(number(&track, 1).unwrap(), ReadTrack { parent, name }).is_none());
        }
        for event in inner(&packet, 11) {
            let event = fields(event);
            let (at_ns, track) = (number(&packet, 8).unwrap(), number(&event, 11).unwrap());
            assert!(at_ns >= before && back.tracks.contains_key(&track));
            before = at_ns;
            let name = |field, table: usize| number(&event, field).map(|id| names[table][&id].clone());
            match number(&event, 9).unwrap() {
                1 => {
                    let arg = |a: &&[u8]| {
                        let a = fields(a);
                        let value = number(&a, 3).map(|v| v.to_string()).unwrap_or_else(|| text(inner(&a, 6)[0]));
                        (names[2][&number(&a, 1).unwrap()].clone(), value)
                    };
                    let args = inner(&event, 4).iter().map(arg).collect();
                    let span = ReadSpan {
                        track,
                        begin: at_ns,
                        end: at_ns,
                        name: name(10, 1).unwrap(),
                        category: name(3, 0).unwrap(),
                        args,
                    };
                    assert!(open.insert(track, span).is_none(), "spans of a track do not overlap");
                }
                2 => {
                    let span = open.remove(&track).expect("what ends has begun");
                    back.spans.push(ReadSpan { end: at_ns, ..span });
                }
                3 => back.notes.push(name(10, 1).unwrap()),
                4 => back.counters.entry(track).or_default().push((at_ns, number(&event, 30).unwrap())),
                other => panic!("event type {other}"),
            }
        }
    }
    assert!(open.is_empty(), "what begins ends");
    back
}

fn config(text: &str) -> Config {
    let sweep = sweep::parse(&format!("name = \"t\"\n{text}"), Path::new("t.toml"), &SetOverrides(Vec::new())).unwrap();
    sweep.config(&sweep.experiments[0]).unwrap()
}

fn timeline(text: &str, window: RecordedSpan) -> Timeline {
    record(&config(text), 0, window, &|| false).unwrap()
}

const TRAINING: &str = "[base.cluster]\ngpus_per_server = 2\n[base.workload]\nkind = \"model\"\ntp = 2\npp = 2\ndp = 4\nmicrobatch = 1\nglobal_batch = 8\n\
    model = { name = \"tiny\", transformer = { layers = 8, hidden = 256, heads = 8, vocab = 512, seq = 128 } }\n";
const INCAST: &str = "[base.cluster]\ngpus = 16\ngpus_per_server = 1\nnics_per_server = 1\n[base.topology]\nbuffer_mib = 8\n[base.transport]\ncc = \"none\"\nwindow = false\n\
    [base.workload]\nkind = \"traffic\"\npattern = \"incast\"\nfan_in = 8\nbytes = 1000000\n";

#[test]
fn training_shows_every_op_and_message() {
    let t = timeline(TRAINING, RecordedSpan::default());
    assert_eq!(t.cut, None);
    let trace = perfetto(&t, usize::MAX);
    assert_eq!((trace.slices, trace.notes.len()), (trace.slices_of, usize::from(trace.samples > 0)));
    let back = read_back(&trace.bytes);
    assert_eq!(back.spans.len(), trace.slices);
    let count = |category: &str| back.spans.iter().filter(|s| s.category == category).count();
    let messages = t.job.as_ref().unwrap().graph.messages().count();
    assert_eq!(count("message"), messages);
    assert!(count("compute") > 0 && count("collective") > 0 && count("send") > 0 && count("send") == count("receive"));
    let compute = back.spans.iter().find(|s| s.category == "compute" && back.path(s.track)[1] == "GPU rank 9").unwrap();
    assert_eq!(back.path(compute.track), ["server 4", "GPU rank 9", "compute"]);
    let reduce = back
        .spans
        .iter()
        .filter(|s| s.category == "collective" && s.args["dimension"] == "dp")
        .max_by_key(|s| s.end - s.begin)
        .unwrap();
    assert_eq!(reduce.args["ranks"], "4");
    assert_eq!(
        back.spans.iter().map(|s| s.end).max(),
        Some(t.makespan_ps / 1000),
        "the last thing that ends is the makespan"
    );
    // The results of the critical rank are what its tracks show.
    let outcome = t.job.as_ref().unwrap();
    let rows = outcome.graph.ops.iter().map(Vec::len).sum::<usize>();
    let joins = t.ops.len() - (back.spans.len() - messages - t.pauses.len());
    assert_eq!(t.ops.len(), rows, "all ops have begun and ended, {joins} of them meeting points that take no time");
}

#[test]
fn incast_shows_queues_and_pauses() {
    let t = timeline(INCAST, RecordedSpan::default());
    let trace = perfetto(&t, usize::MAX);
    let back = read_back(&trace.bytes);
    let flows: Vec<&ReadSpan> = back.spans.iter().filter(|s| s.category == "flow").collect();
    assert_eq!(flows.len(), 8);
    assert_eq!(flows[0].args["bytes"], "1000000");
    let pauses: Vec<&ReadSpan> = back.spans.iter().filter(|s| s.category == "pause").collect();
    assert!(!pauses.is_empty() && pauses.iter().all(|p| back.path(p.track)[..2] == ["network", "pauses"]));
    // The fullest queue's peak is the largest in links.csv, up to the bytes that arrive in a step.
    let (track, queue) = back.counters.iter().max_by_key(|(_, q)| q.iter().map(|s| s.1).max()).unwrap();
    let peak = queue.iter().map(|s| s.1).max().unwrap();
    assert!(peak > 100_000, "{peak}");
    assert_eq!(queue.last().unwrap().1, 0, "queues are empty in the end");
    assert_eq!(back.path(*track)[..2], ["network", "queues"]);
    assert_eq!(trace.samples, back.counters.values().map(Vec::len).sum::<usize>());
    assert_eq!(back.notes, trace.notes);
}

#[test]
fn a_limit_keeps_the_longest_and_says_so() {
    let full = perfetto(&timeline(TRAINING, RecordedSpan::default()), usize::MAX);
    let limit = 400;
    let t = timeline(TRAINING, RecordedSpan { samples: samples(limit), ..RecordedSpan::default() });
    let trace = perfetto(&t, limit);
    let back = read_back(&trace.bytes);
    assert!(
        back.counters.values().flatten().all(|(at_ns, _)| *at_ns <= t.until_ps / 1000),
        "nothing is shown after the end"
    );
    assert!(
        trace.slices + trace.samples <= limit && trace.samples <= limit / 4 + 1,
        "{} {}",
        trace.slices,
        trace.samples
    );
    assert_eq!((back.spans.len(), trace.slices_of), (trace.slices, full.slices));
    let mut lengths: Vec<u64> = read_back(&full.bytes).spans.iter().map(|s| s.end - s.begin).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let shortest = back.spans.iter().map(|s| s.end - s.begin).min().unwrap();
    assert!(shortest + 2 >= lengths[trace.slices], "{shortest} {}", lengths[trace.slices]);
    assert!(back.notes[0].contains(&format!("the {} longest of {}", trace.slices, full.slices)), "{:?}", back.notes);
}

#[test]
fn events_go_before_queues_at_any_limit() {
    let all = perfetto(&timeline(INCAST, RecordedSpan { samples: 0, ..RecordedSpan::default() }), usize::MAX);
    assert_eq!(all.samples, 0);
    for limit in (1..40).chain([all.slices - 1, all.slices, all.slices + 1, 400]) {
        let trace =
            perfetto(&timeline(INCAST, RecordedSpan { samples: samples(limit), ..RecordedSpan::default() }), limit);
        assert!(trace.slices + trace.samples <= limit, "{limit}: {} {}", trace.slices, trace.samples);
        assert!(trace.slices >= (limit * 3 / 4).min(all.slices), "{limit}: {}", trace.slices);
        assert!(
            trace.slices == all.slices || all.slices > limit,
            "{limit}: all of {} fit, {} are shown",
            all.slices,
            trace.slices
        );
        let coarse = trace.notes.iter().find_map(|n| {
            n.strip_prefix("queues are shown as their maxima over ")?.strip_suffix(" ns")?.parse::<u64>().ok()
        });
        assert!(
            coarse.is_none_or(|ns| 8 * ns * 1000 <= timeline(INCAST, RecordedSpan::default()).until_ps),
            "{limit}: {coarse:?}"
        );
    }
}

#[test]
fn a_window_holds_only_what_touches_it() {
    let full = read_back(&perfetto(&timeline(TRAINING, RecordedSpan::default()), usize::MAX).bytes);
    let end = full.spans.iter().map(|s| s.end).max().unwrap();
    let (from, to) = (end / 3, end / 2);
    let t = timeline(TRAINING, RecordedSpan { from_ps: from * 1000, to_ps: to * 1000, ..RecordedSpan::default() });
    let back = read_back(&perfetto(&t, usize::MAX).bytes);
    assert!(!back.spans.is_empty() && back.spans.len() < full.spans.len());
    assert!(back.spans.iter().all(|s| s.begin < to && s.end >= from));
    let inside = |spans: &[ReadSpan]| {
        spans
            .iter()
            .filter(|s| s.begin >= from && s.end < to)
            .map(|s| (s.begin, s.end, s.name.clone()))
            .collect::<Vec<_>>()
    };
    let sorted = |mut v: Vec<(u64, u64, String)>| {
        v.sort();
        v
    };
    assert_eq!(
        sorted(inside(&back.spans)),
        sorted(inside(&full.spans)),
        "a window changes nothing of what is inside it"
    );
    assert!(back.spans.iter().any(|s| s.args.contains_key("unfinished")));
    assert!(back.notes.iter().any(|n| n.contains("the end of the window")));
}

#[test]
fn names_from_files_are_text_and_nothing_else() {
    let mut t = timeline(INCAST, RecordedSpan::default());
    t.links.iter_mut().for_each(|l| *l = format!("{l}<script>\u{202e}\u{0}"));
    let back = read_back(&perfetto(&t, usize::MAX).bytes);
    assert!(back.tracks.values().any(|t| t.name.contains("<script>")));
}

#[test]
fn a_cluster_shows_what_every_job_and_server_did() {
    let text = "[base]\nfidelity.mode = \"job\"\ncluster = { gpus = 32, gpus_per_server = 4 }\n\
        jobs = { count = 12, min_gpus = 2, max_gpus = 16, min_hours = 2.0, max_hours = 20.0, load = 2.0 }\n\
        failures = { host_mtbf_h = 100.0, hot_spares = 1 }\n";
    let prepared = hyperfold_cluster::PreparedCluster::new(&config(text)).unwrap();
    let (outcome, history) = prepared.recorded(&|| false).unwrap();
    assert_eq!(outcome, prepared.simulate(&|| false).unwrap(), "recording changes nothing");
    let trace = perfetto_cluster(&history, 0, u64::MAX, 100_000);
    let back = read_back(&trace.bytes);
    assert_eq!((trace.slices, trace.slices_of), (back.spans.len(), back.spans.len()));
    for (number, job) in outcome.jobs.iter().enumerate() {
        let track = format!("job {}: {} GPUs, user {}", job.name, job.gpus, job.user);
        let mut own: Vec<&ReadSpan> =
            back.spans.iter().filter(|s| back.path(s.track) == ["jobs", track.as_str()]).collect();
        own.sort_by_key(|s| s.begin);
        // A job waits or runs at any time from its arrival to its end.
        assert_eq!(own[0].begin, job.submit_ms * 1_000_000, "job {number}");
        assert!(own.windows(2).all(|pair| pair[0].end == pair[1].begin), "job {number}");
        assert_eq!(own[own.len() - 1].end, job.end_ms.unwrap() * 1_000_000);
        let waits: u64 = own.iter().filter(|s| s.name == "waits").map(|s| s.end - s.begin).sum();
        assert_eq!(waits, job.queued_ms * 1_000_000, "job {number}");
        // The job is on its servers as long as it runs.
        let held: u64 = own.iter().filter(|s| s.name != "waits").map(|s| (s.end - s.begin) * u64::from(job.gpus)).sum();
        let name = format!("job {}", job.name);
        let gpus = |s: &ReadSpan| s.args["gpus"].parse::<u64>().unwrap();
        let server_spans = back.spans.iter().filter(|s| s.category == "server" && s.name == name);
        assert_eq!(server_spans.map(|s| gpus(s) * (s.end - s.begin)).sum::<u64>(), held, "job {number}");
    }
    let down: u64 = back.spans.iter().filter(|s| s.name == "down").map(|s| (s.end - s.begin) / 1_000_000).sum();
    assert_eq!(u128::from(down) * 4 * 1_000_000, outcome.account.down);
    assert!(back.spans.iter().any(|s| s.name == "hot spare"));
    // A limit keeps the longest spans; a window keeps the spans that touch it.
    let few = perfetto_cluster(&history, 0, u64::MAX, 10);
    assert_eq!((few.slices, few.notes.len(), read_back(&few.bytes).spans.len()), (10, 1, 10));
    let window = read_back(&perfetto_cluster(&history, 0, 3_600_000, 100_000).bytes);
    assert!(window.spans.len() < back.spans.len() && window.spans.iter().all(|s| s.begin < 3_600_000_000_000));
}
