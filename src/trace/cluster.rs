//! Shows a cluster's history over days in Perfetto: a track for each job and for each server, with its activities.
//!
//! Layer: trace. Field numbers are those of `perfetto_trace.proto`, as in [`super::tracks`].

use std::cmp::Reverse;

use super::Trace;
use super::tracks::{BEGIN, END, Interned, MERGE_NONE, Names, SEQUENCE, write_trace};
use hyperfold_base::protobuf::ProtoMessage;
use hyperfold_cluster::{ActivityTime, ClusterHistory, JobActivity, ServerActivity, ServerUse};

const NS_PER_MS: u64 = 1_000_000;
/// Process number of the jobs.
const JOBS_PID: u64 = 1_000_000_000;
/// Process number of the servers.
const SERVERS_PID: u64 = 1_000_000_001;

/// One span on a track.
struct ClusterSpan {
    is_server: bool,
    /// Number of the job or server.
    owner: u32,
    from_ms: u64,
    to_ms: u64,
    name: String,
    /// Arguments as (name, number).
    args: Vec<(&'static str, u64)>,
}

fn job_span(time: &ActivityTime<JobActivity>) -> ClusterSpan {
    let (name, args) = match time.what {
        JobActivity::Waits => ("waits".to_string(), Vec::new()),
        JobActivity::Runs { gpus, slowdown_ppm } => {
            let slowdown = if slowdown_ppm == 1_000_000 {
                String::new()
            } else {
                format!(", {} times as long", slowdown_ppm as f64 / 1e6)
            };
            (format!("runs on {gpus} GPUs{slowdown}"), vec![("gpus", gpus.into()), ("slowdown_ppm", slowdown_ppm)])
        }
    };
    ClusterSpan { is_server: false, owner: time.of, from_ms: time.from_ms, to_ms: time.to_ms, name, args }
}

fn server_span(time: &ActivityTime<ServerActivity>, history: &ClusterHistory) -> ClusterSpan {
    let (name, args) = match time.what {
        ServerActivity::Job { job, gpus } => {
            (format!("job {}", history.names[job as usize].0), vec![("gpus", gpus.into())])
        }
        ServerActivity::Apart(what) => {
            let name = match what {
                ServerUse::InService => "in service",
                ServerUse::Draining => "draining",
                ServerUse::Maintenance => "maintenance",
                ServerUse::Down => "down",
                ServerUse::HotSpare => "hot spare",
                ServerUse::ColdSpare => "cold spare",
            };
            (name.to_string(), Vec::new())
        }
    };
    ClusterSpan { is_server: true, owner: time.of, from_ms: time.from_ms, to_ms: time.to_ms, name, args }
}

/// Shows a history from one time to another with at most `limit` spans. If there are more, the longest are shown.
pub fn perfetto_cluster(history: &ClusterHistory, from_ms: u64, to_ms: u64, limit: usize) -> Trace {
    let jobs = history.jobs.iter().map(job_span);
    let mut spans: Vec<ClusterSpan> = jobs.chain(history.servers.iter().map(|t| server_span(t, history))).collect();
    spans.retain(|s| s.to_ms > from_ms && s.from_ms < to_ms);
    let n_spans = spans.len();
    let mut notes = Vec::new();
    if n_spans > limit {
        spans.sort_by_key(|s| (Reverse(s.to_ms - s.from_ms), s.is_server, s.owner, s.from_ms));
        let shortest_s = (spans[limit].to_ms - spans[limit].from_ms) as f64 / 1e3;
        spans.truncate(limit);
        notes.push(format!(
            "the {limit} longest of {n_spans} states of jobs and servers are shown: none of the others takes longer than {shortest_s} s; a higher --limit shows more"
        ));
    }
    spans.sort_by_key(|s| (s.is_server, s.owner, s.from_ms, Reverse(s.to_ms)));
    Trace { bytes: encode(history, &spans), slices: spans.len(), slices_of: n_spans, samples: 0, notes }
}

/// Descriptions of tracks, numbered from 1.
#[derive(Default)]
struct ClusterTracks(Vec<ProtoMessage>);

impl ClusterTracks {
    fn add(&mut self, parent: Option<u64>, name: Option<&str>, process: Option<(u64, &str)>) -> u64 {
        let uuid = self.0.len() as u64 + 1;
        let mut packet = ProtoMessage::default();
        packet.uint(10, SEQUENCE).message(60, |track| {
            track.uint(1, uuid);
            name.map(|n| track.text(2, n));
            process.map(|(pid, name)| {
                track.message(3, |process| {
                    process.uint(1, pid).text(6, name);
                })
            });
            parent.map(|p| track.uint(5, p));
            track.uint(15, MERGE_NONE);
        });
        self.0.push(packet);
        uuid
    }
}

fn encode(history: &ClusterHistory, spans: &[ClusterSpan]) -> Vec<u8> {
    let mut tracks = ClusterTracks::default();
    let processes =
        [tracks.add(None, None, Some((JOBS_PID, "jobs"))), tracks.add(None, None, Some((SERVERS_PID, "servers")))];
    let (mut names, mut categories, mut arguments) = (Names::default(), Names::default(), Names::default());
    // Ends are sorted before beginnings of the same time.
    let mut timed: Vec<(u64, bool, ProtoMessage)> = Vec::with_capacity(2 * spans.len());
    for track_spans in spans.chunk_by(|a, b| (a.is_server, a.owner) == (b.is_server, b.owner)) {
        let (is_server, owner) = (track_spans[0].is_server, track_spans[0].owner);
        let name = if is_server {
            format!("server {owner}")
        } else {
            let (name, user, gpus) = &history.names[owner as usize];
            format!("job {name}: {gpus} GPUs, user {user}")
        };
        // Jobs that share a server are on different lanes: (end of the lane's last span, its track).
        let mut lanes: Vec<(u64, u64)> = Vec::new();
        for span in track_spans {
            let lane = lanes.iter().position(|(end, _)| *end <= span.from_ms).unwrap_or_else(|| {
                lanes.push((0, tracks.add(Some(processes[usize::from(is_server)]), Some(&name), None)));
                lanes.len() - 1
            });
            lanes[lane].0 = span.to_ms;
            let uuid = lanes[lane].1;
            let mut event = ProtoMessage::default();
            for (name, value) in &span.args {
                let id = arguments.id(name);
                event.message(4, |arg| {
                    arg.uint(1, id).uint(3, *value);
                });
            }
            event.uint(3, categories.id(if is_server { "server" } else { "job" }));
            event.uint(9, BEGIN).uint(10, names.id(&span.name)).uint(11, uuid);
            let mut end = ProtoMessage::default();
            end.uint(9, END).uint(11, uuid);
            timed.push((span.from_ms, true, event));
            timed.push((span.to_ms, false, end));
        }
    }
    timed.sort_by_key(|(ms, begins, _)| (*ms, *begins));
    let interned = Interned { categories, names, arguments };
    let events = timed.into_iter().map(|(ms, _, event)| (ms.saturating_mul(NS_PER_MS), event));
    write_trace(&interned, tracks.0, events)
}
