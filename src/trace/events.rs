//! Selects the parts of a timeline that are shown: spans on tracks, and samples of counters.
//!
//! Layer: trace. Times become whole nanoseconds here. They are rounded down, so that the order of events is kept.

use std::cmp::Reverse;

use hyperfold_columns::NEVER;
use hyperfold_host::outcomes::timeline::{MessageSpan, OpSpan, Pause, Timeline};
use hyperfold_llm::workload::program::{Dim, Op, OpKind, Stream};

/// The track of a span. Tracks are shown in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Track {
    Stream { rank: u32, stream: u8 },
    Pair { src: u32, dst: u32, lane: u32 },
    Pause { link: u32 },
}

/// The value of a span's argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arg {
    Number(u64),
    Word(&'static str),
}

/// An activity with a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrackSpan {
    pub track: Track,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub name: String,
    pub category: &'static str,
    pub args: Vec<(&'static str, Arg)>,
}

/// Number of bytes that wait at a link's port from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueSample {
    pub link: u32,
    pub at_ns: u64,
    pub bytes: u64,
}

/// The origin of a span, before it is known whether the span is shown.
#[derive(Clone, Copy)]
enum Source {
    Op(usize),
    Message(usize),
    Pause(usize),
}

/// Number of spans of a timeline.
pub(super) fn count(t: &Timeline) -> usize {
    t.ops.iter().filter(|o| !matches!(op(t, o).kind, OpKind::Join)).count() + t.messages.len() + t.pauses.len()
}

/// The `limit` longest spans in the order of tracks and times, the number of all spans, and the length in ns of the longest span that is left out.
pub(super) fn longest(t: &Timeline, limit: usize) -> (Vec<TrackSpan>, usize, u64) {
    let length = |begin: u64, end: u64| end.min(t.until_ps.max(begin)) - begin;
    let ops = t
        .ops
        .iter()
        .enumerate()
        .filter(|(_, o)| !matches!(op(t, o).kind, OpKind::Join))
        .map(|(i, o)| (length(o.begin, o.end), Source::Op(i)));
    let messages = t.messages.iter().enumerate().map(|(i, m)| (length(m.flow.start_ps, end(m)), Source::Message(i)));
    let pauses = t.pauses.iter().enumerate().map(|(i, p)| (length(p.begin, p.end), Source::Pause(i)));
    let mut all: Vec<(u64, Source)> = ops.chain(messages).chain(pauses).collect();
    let n = all.len();
    // The sort is stable: of equally long spans, ops come first, then earlier spans.
    all.sort_by_key(|(length, _)| Reverse(*length));
    let left_out = all.get(limit).map_or(0, |(length, _)| length / 1000);
    all.truncate(limit);
    let mut spans: Vec<TrackSpan> = all
        .into_iter()
        .map(|(_, source)| match source {
            Source::Op(i) => op_span(t, &t.ops[i]),
            Source::Message(i) => message_span(t, &t.messages[i]),
            Source::Pause(i) => pause_span(t, &t.pauses[i]),
        })
        .collect();
    spans.sort_by_key(|s| (s.track, s.begin_ns, s.end_ns));
    (spans, n, left_out)
}

/// Samples of all queues: the maximum of every bin at its beginning, and the last value at its end unless another bin begins there.
pub(super) fn queue_samples(t: &Timeline) -> Vec<QueueSample> {
    let mut samples = Vec::new();
    for (link, bins) in t.queues.iter().enumerate() {
        for (i, b) in bins.iter().enumerate() {
            // The last bin may end after the timeline.
            let at_ns = |bin: u64| (bin * t.bin_ps).min(t.until_ps) / 1000;
            let mut sample = |bin: u64, bytes: u32| {
                samples.push(QueueSample { link: link as u32, at_ns: at_ns(bin), bytes: bytes.into() })
            };
            sample(b.bin, b.max);
            if b.last != b.max && bins.get(i + 1).is_none_or(|next| next.bin > b.bin + 1) {
                sample(b.bin + 1, b.last);
            }
        }
    }
    samples
}

/// The op of a rank's program.
fn op<'a>(t: &'a Timeline, span: &OpSpan) -> &'a Op {
    let workload = &t.job.as_ref().expect("ops are a program's").workload;
    &workload.programs[workload.ranks[span.rank as usize].program as usize].ops[span.op as usize]
}

fn end(m: &MessageSpan) -> u64 {
    m.flow.fct_ps.map_or(NEVER, |fct| m.flow.start_ps.saturating_add(fct))
}

/// Begin and end in ns. If the activity has not ended, it lasts until the end of the simulation and is marked as unfinished.
fn times(t: &Timeline, begin: u64, end: u64, args: &mut Vec<(&'static str, Arg)>) -> (u64, u64) {
    if end == NEVER {
        args.push(("unfinished", Arg::Number(1)));
    }
    (begin / 1000, end.min(t.until_ps.max(begin)) / 1000)
}

fn op_span(t: &Timeline, span: &OpSpan) -> TrackSpan {
    let workload = &t.job.as_ref().expect("ops are a program's").workload;
    let op = op(t, span);
    let rank = &workload.ranks[span.rank as usize];
    let program = &workload.programs[rank.program as usize];
    let group = |slot: u16| &workload.groups[rank.groups[slot as usize] as usize].members;
    let mut args = Vec::new();
    let category = match op.kind {
        OpKind::Compute { phase, .. } => {
            args.push(("phase", Arg::Word(phase.name())));
            "compute"
        }
        OpKind::Collective { slot, bytes, dim, .. } => {
            args.extend([
                ("bytes", Arg::Number(bytes)),
                ("dimension", Arg::Word(dim.name())),
                ("ranks", Arg::Number(group(slot).len() as u64)),
            ]);
            "collective"
        }
        OpKind::Send { peer, bytes, dim, .. } | OpKind::Recv { peer, bytes, dim, .. } => {
            let other = group(peer.slot).get(peer.member as usize).copied().unwrap_or(u32::MAX);
            args.extend([
                ("bytes", Arg::Number(bytes)),
                ("dimension", Arg::Word(dim.name())),
                ("peer", Arg::Number(other.into())),
            ]);
            if matches!(op.kind, OpKind::Send { .. }) { "send" } else { "receive" }
        }
        OpKind::Join => "join",
    };
    if program.iteration_ends.len() > 1 {
        let iteration = program.iteration_ends.partition_point(|&ops| ops <= span.op);
        args.push(("iteration", Arg::Number(iteration as u64)));
    }
    if span.go != NEVER && span.go > span.begin {
        args.push(("waited_for_peers_ns", Arg::Number((span.go - span.begin) / 1000)));
    }
    let (begin_ns, end_ns) = times(t, span.begin, span.end, &mut args);
    let name = workload.names.get(op.name).filter(|n| !n.is_empty()).unwrap_or(category).to_string();
    TrackSpan { track: Track::Stream { rank: span.rank, stream: op.stream.0 }, begin_ns, end_ns, name, category, args }
}

fn message_span(t: &Timeline, m: &MessageSpan) -> TrackSpan {
    let f = &m.flow;
    let mut args = vec![
        ("flow_id", Arg::Number(f.id.into())),
        ("bytes", Arg::Number(f.bytes)),
        ("alone_ns", Arg::Number(f.ideal_ps / 1000)),
    ];
    args.extend(m.got.map(|got| ("arrived_after_ns", Arg::Number(got.saturating_sub(f.start_ps) / 1000))));
    let (begin_ns, end_ns) = times(t, f.start_ps, end(m), &mut args);
    let name = if t.job.is_some() { "message" } else { "flow" };
    TrackSpan {
        track: Track::Pair { src: f.src, dst: f.dst, lane: m.lane },
        begin_ns,
        end_ns,
        name: name.into(),
        category: name,
        args,
    }
}

fn pause_span(t: &Timeline, p: &Pause) -> TrackSpan {
    let mut args = Vec::new();
    let (begin_ns, end_ns) = times(t, p.begin, p.end, &mut args);
    TrackSpan { track: Track::Pause { link: p.link }, begin_ns, end_ns, name: "paused".into(), category: "pause", args }
}

/// Name of a stream.
pub(super) fn stream_name(stream: u8) -> String {
    const DIMS: [Dim; 6] = [Dim::Tp, Dim::Pp, Dim::Dp, Dim::Ep, Dim::Cp, Dim::Other];
    match Stream(stream) {
        Stream::COMPUTE => "compute".into(),
        Stream::COPY => "copy".into(),
        Stream::FREE => "ops".into(),
        // The streams of dimensions repeat every 8 numbers.
        Stream(s) => match (DIMS.get(usize::from((s - 2) % 8)), (s - 2) / 8) {
            (Some(dim), 0) => format!("{} communication", dim.name()),
            (Some(dim), lane) => format!("{} communication {}", dim.name(), lane + 1),
            (None, _) => format!("stream {s}"),
        },
    }
}
