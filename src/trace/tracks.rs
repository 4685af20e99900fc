//! Writes spans and samples as Perfetto's packets. Field numbers are those of `perfetto_trace.proto`.
//!
//! Layer: trace. All names are interned in the first packet, so each later packet takes only a few bytes.

use std::collections::BTreeMap;

use super::events::{Arg, QueueSample, Track, TrackSpan, stream_name};
use hyperfold_base::protobuf::ProtoMessage;
use hyperfold_host::outcomes::timeline::Timeline;

/// Sequence number: all packets come from one writer.
pub(super) const SEQUENCE: u64 = 1;
/// Flag `SEQ_INCREMENTAL_STATE_CLEARED`.
const CLEARED: u64 = 1;
/// Flag `SEQ_NEEDS_INCREMENTAL_STATE`.
const NEEDS: u64 = 2;
/// Values of `TrackEvent.Type`.
pub(super) const BEGIN: u64 = 1;
pub(super) const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// Value of `CounterDescriptor.Unit`.
const UNIT_BYTES: u64 = 3;
/// Value of `TrackDescriptor.SiblingMergeBehavior`: tracks with equal names are not merged.
pub(super) const MERGE_NONE: u64 = 2;
/// Process number of the first server; the others follow. Thread numbers are ranks from 1, so they differ from process numbers.
const SERVER_PID: u64 = 1_000_000_000;
/// Process number of the messages.
const MESSAGES_PID: u64 = 1_900_000_000;
/// Process number of the network.
const NETWORK_PID: u64 = 1_900_000_001;

/// Interned names with their numbers, from 1.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, u64>);

impl Names {
    pub(super) fn id(&mut self, name: &str) -> u64 {
        let next = self.0.len() as u64 + 1;
        match self.0.get(name) {
            Some(id) => *id,
            None => *self.0.entry(name.to_string()).or_insert(next),
        }
    }

    fn write(&self, interned: &mut ProtoMessage, field: u64) {
        for (name, id) in &self.0 {
            interned.message(field, |m| {
                m.uint(1, *id).text(2, name);
            });
        }
    }
}

/// Tracks by kind and key, numbered in order of first use, with their descriptions.
struct Tracks<'a> {
    timeline: &'a Timeline,
    uuids: u64,
    known: BTreeMap<(u8, u64, u64), u64>,
    descriptors: Vec<ProtoMessage>,
}

impl Tracks<'_> {
    /// Adds a track and returns its number.
    fn describe(&mut self, parent: Option<u64>, name: Option<&str>, more: impl FnOnce(&mut ProtoMessage)) -> u64 {
        self.uuids += 1;
        let uuid = self.uuids;
        let mut packet = ProtoMessage::default();
        packet.uint(10, SEQUENCE).message(60, |track| {
            track.uint(1, uuid);
            name.map(|n| track.text(2, n));
            more(track);
            parent.map(|p| track.uint(5, p));
            track.uint(15, MERGE_NONE);
        });
        self.descriptors.push(packet);
        uuid
    }

    /// The track with this key; `add` adds it if it is new.
    fn get_or_add(&mut self, key: (u8, u64, u64), add: impl FnOnce(&mut Self) -> u64) -> u64 {
        if let Some(uuid) = self.known.get(&key) {
            return *uuid;
        }
        let uuid = add(self);
        self.known.insert(key, uuid);
        uuid
    }

    fn process(&mut self, pid: u64, name: &str) -> u64 {
        self.get_or_add((0, pid, 0), |t| {
            t.describe(None, None, |track| {
                track.message(3, |process| {
                    process.uint(1, pid).text(6, name);
                });
            })
        })
    }

    /// The track of a GPU, which is a thread of its server.
    fn rank(&mut self, rank: u32) -> u64 {
        let net = &self.timeline.network;
        let server = net.ranks.get(rank as usize).map_or(0, |&host| net.nodes[host as usize].server);
        let pid = SERVER_PID + u64::from(server);
        let process = self.process(pid, &format!("server {server}"));
        self.get_or_add((1, rank.into(), 0), |t| {
            t.describe(Some(process), None, |track| {
                track.message(4, |thread| {
                    thread.uint(1, pid).uint(2, u64::from(rank) + 1).text(5, &format!("GPU rank {rank}"));
                });
            })
        })
    }

    /// A track of the network process.
    fn network(&mut self, kind: u64, name: &str) -> u64 {
        let process = self.process(NETWORK_PID, "network");
        self.get_or_add((2, kind, 0), |t| t.describe(Some(process), Some(name), |_| {}))
    }

    /// A track of spans. Slices that overlap are on different lanes; `lane` is the number of the lane.
    fn add_track(&mut self, track: Track, lane: usize) -> u64 {
        let named = |name: String| if lane == 0 { name } else { format!("{name} ({})", lane + 1) };
        let (parent, name) = match track {
            Track::Stream { rank, stream } => (self.rank(rank), named(stream_name(stream))),
            Track::Pair { src, dst, lane: qp } => {
                let messages = self.process(MESSAGES_PID, "messages");
                let sender_track = self.get_or_add((3, src.into(), 0), |t| {
                    t.describe(Some(messages), Some(&format!("from {src}")), |_| {})
                });
                let pair =
                    if qp == 0 { format!("{src} to {dst}") } else { format!("{src} to {dst}, queue pair {}", qp + 1) };
                (sender_track, named(pair))
            }
            Track::Pause { link } => {
                let name = format!("{} paused", self.timeline.links[link as usize]);
                (self.network(0, "pauses"), named(name))
            }
        };
        self.describe(Some(parent), Some(&name), |_| {})
    }

    fn queue(&mut self, link: u32) -> u64 {
        let parent = self.network(1, "queues");
        let name = format!("{} queue", self.timeline.links[link as usize]);
        self.describe(Some(parent), Some(&name), |track| {
            track.message(8, |counter| {
                counter.uint(3, UNIT_BYTES);
            });
        })
    }
}

/// An event with its time.
struct Timed {
    at_ns: u64,
    event: ProtoMessage,
}

/// Encodes the whole trace file.
pub(super) fn encode(timeline: &Timeline, spans: &[TrackSpan], samples: &[QueueSample], notes: &[String]) -> Vec<u8> {
    let mut tracks = Tracks { timeline, uuids: 0, known: BTreeMap::new(), descriptors: Vec::new() };
    let (mut names, mut categories, mut arguments) = (Names::default(), Names::default(), Names::default());
    let mut timed: Vec<Timed> = Vec::with_capacity(2 * spans.len() + samples.len());
    if !notes.is_empty() {
        let track = tracks.describe(None, Some("notes of hyperfold"), |_| {});
        for note in notes {
            timed.push(instant(track, names.id(note)));
        }
    }
    for track_spans in spans.chunk_by(|a, b| a.track == b.track) {
        // (end of the lane's last span, the lane's track).
        let mut lanes: Vec<(u64, u64)> = Vec::new();
        let mut by_lane: Vec<Vec<Timed>> = Vec::new();
        for span in track_spans {
            let lane = lanes.iter().position(|(end, _)| *end <= span.begin_ns).unwrap_or_else(|| {
                lanes.push((0, tracks.add_track(span.track, lanes.len())));
                by_lane.push(Vec::new());
                lanes.len() - 1
            });
            lanes[lane].0 = span.end_ns;
            let uuid = lanes[lane].1;
            let mut event = ProtoMessage::default();
            event.uint(3, categories.id(span.category));
            for (name, value) in &span.args {
                let id = arguments.id(name);
                event.message(4, |arg| {
                    arg.uint(1, id);
                    match value {
                        Arg::Number(v) => arg.uint(3, *v),
                        Arg::Word(w) => arg.text(6, w),
                    };
                });
            }
            event.uint(9, BEGIN).uint(10, names.id(&span.name)).uint(11, uuid);
            let mut end = ProtoMessage::default();
            end.uint(9, END).uint(11, uuid);
            by_lane[lane].extend([Timed { at_ns: span.begin_ns, event }, Timed { at_ns: span.end_ns, event: end }]);
        }
        timed.extend(by_lane.into_iter().flatten());
    }
    for link_samples in samples.chunk_by(|a, b| a.link == b.link) {
        let uuid = tracks.queue(link_samples[0].link);
        timed.extend(link_samples.iter().map(|s| {
            let mut event = ProtoMessage::default();
            event.uint(9, COUNTER).uint(11, uuid).uint(30, s.bytes);
            Timed { at_ns: s.at_ns, event }
        }));
    }
    // The sort is stable: events of a track at the same nanosecond keep their order.
    timed.sort_by_key(|t| t.at_ns);
    let interned = Interned { categories, names, arguments };
    write_trace(&interned, tracks.descriptors, timed.into_iter().map(|t| (t.at_ns, t.event)))
}

/// Interned names of a trace, by what they name.
#[derive(Default)]
pub(super) struct Interned {
    pub(super) categories: Names,
    pub(super) names: Names,
    pub(super) arguments: Names,
}

/// The whole trace file: interned names, descriptions of tracks, and events with their times in ns, ascending.
pub(super) fn write_trace(
    interned: &Interned,
    descriptors: Vec<ProtoMessage>,
    events: impl IntoIterator<Item = (u64, ProtoMessage)>,
) -> Vec<u8> {
    let mut trace = ProtoMessage::default();
    trace.message(1, |packet| {
        packet.uint(10, SEQUENCE).message(12, |m| {
            interned.categories.write(m, 1);
            interned.names.write(m, 2);
            interned.arguments.write(m, 3);
        });
        packet.uint(13, CLEARED).uint(87, 1);
    });
    for packet in descriptors {
        trace.nested(1, packet);
    }
    for (at_ns, event) in events {
        let mut packet = ProtoMessage::default();
        packet.uint(8, at_ns).uint(10, SEQUENCE).nested(11, event).uint(13, NEEDS);
        trace.nested(1, packet);
    }
    trace.into_bytes()
}

fn instant(track: u64, name: u64) -> Timed {
    let mut event = ProtoMessage::default();
    event.uint(9, INSTANT).uint(10, name).uint(11, track);
    Timed { at_ns: 0, event }
}
