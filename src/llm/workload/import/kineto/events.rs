//! The JSON of a trace: kernels and copies of a GPU, waits between its streams, and what the trace says of its job.
//!
//! Layer: workload. It keeps only what a workload needs of each event while it reads, because traces can have gigabytes.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::workload::import::torch::listed;
use crate::workload::import::{ImportError, MAX_PS};
use hyperfold_base::budget::{self, MemoryMeter};
use hyperfold_base::json_scalar::JsonScalar;
use hyperfold_base::units::PS_PER_S;

/// A trace of one rank.
#[derive(Debug, Default)]
pub(super) struct KinetoTrace {
    /// Rank and number of ranks, as `distributedInfo` has them.
    pub(super) rank: Option<u32>,
    pub(super) world_size: Option<u32>,
    /// Members of process groups by name, of traces that list them.
    pub(super) groups: Vec<(String, Vec<u32>)>,
    /// What ran on the GPU, in order of begin.
    pub(super) work: Vec<GpuWork>,
    /// Waits of a stream for another one, in the order of their launch.
    pub(super) waits: Vec<StreamWait>,
}

/// A kernel, copy or fill on a stream of the GPU. Times are in ns from the first one.
#[derive(Debug)]
pub(super) struct GpuWork {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) stream: u64,
    pub(super) device: u64,
    /// Number of its launch, which counts up in the process; 0: not known.
    pub(super) correlation: u64,
    /// What NCCL's kernel says of its collective; `None`: it is none of NCCL's.
    pub(super) call: Option<Box<CommArgs>>,
}

/// A wait of a stream until another stream has done what was launched on it before an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamWait {
    pub(super) stream: u64,
    pub(super) correlation: u64,
    pub(super) other_stream: u64,
    pub(super) recorded: u64,
}

/// What a kernel of NCCL says of its call.
#[derive(Clone, Debug, Default)]
pub(super) struct CommArgs {
    /// Name of the kernel.
    pub(super) kernel: String,
    /// Begin as the file has it, us, for messages.
    pub(super) ts_us: f64,
    pub(super) collective: Option<String>,
    pub(super) dtype: Option<String>,
    pub(super) in_elements: Option<u64>,
    pub(super) out_elements: Option<u64>,
    pub(super) in_split: String,
    pub(super) group_size: Option<u64>,
    pub(super) group_name: String,
    pub(super) group_ranks: String,
    pub(super) rank_start: Option<u64>,
    pub(super) rank_stride: Option<u64>,
    pub(super) source: Option<u64>,
    pub(super) target: Option<u64>,
    pub(super) sequence: Option<u64>,
}

/// Reads a trace. Errors name the line and column, or the event.
pub(super) fn read(path: &str, bytes: &[u8]) -> Result<KinetoTrace, ImportError> {
    let bad = |problem: String| ImportError::path(path, problem);
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(bad("it is compressed; unpack it with gunzip".to_string()));
    }
    if bytes.starts_with(&[0x80]) {
        return Err(bad("it is a pickle; a trace is JSON, as export_chrome_trace writes it".to_string()));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| bad(format!("byte {}: it is no UTF-8 text", e.valid_up_to())))?;
    let file: File = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|e| bad(e.to_string()))?;
    let Some(events) = file.events else {
        return Err(bad("there is no `traceEvents`; save the trace with export_chrome_trace".to_string()));
    };
    let mut trace = KinetoTrace { rank: file.info.rank, world_size: file.info.world_size, ..KinetoTrace::default() };
    trace.groups = file.info.groups;
    trace.waits = events.waits;
    trace.waits.sort_by_key(|w| w.correlation);
    trace.work = on_one_clock(path, events.work)?;
    Ok(trace)
}

/// The work of a GPU by begin, with times from the first one.
fn on_one_clock(path: &str, raw: Vec<RawWork>) -> Result<Vec<GpuWork>, ImportError> {
    let first_us = raw.iter().map(|w| w.ts_us).fold(f64::INFINITY, f64::min);
    let max_us = MAX_PS as f64 / PS_PER_S as f64 * 1e6;
    let mut work = Vec::with_capacity(raw.len());
    for w in raw {
        let (begin_us, end_us) = (w.ts_us - first_us, w.ts_us - first_us + w.dur_us);
        if end_us > max_us {
            let problem = format!(
                "the event at ts {} with dur {} ends more than a million seconds after the first; times are in microseconds",
                w.ts_us, w.dur_us
            );
            return Err(ImportError::path(path, problem));
        }
        let ns = |us: f64| (us * 1e3).round() as u64;
        let begin_ns = ns(begin_us);
        let end_ns = (begin_ns + ns(w.dur_us)).max(begin_ns);
        let RawWork { stream, device, correlation, call, .. } = w;
        work.push(GpuWork { begin_ns, end_ns, stream, device, correlation, call });
    }
    work.sort_by_key(|w| (w.begin_ns, w.end_ns, w.stream, w.correlation));
    Ok(work)
}

/// Work on a GPU with times as in the file.
struct RawWork {
    ts_us: f64,
    dur_us: f64,
    stream: u64,
    device: u64,
    correlation: u64,
    call: Option<Box<CommArgs>>,
}

#[derive(Default)]
struct JobInfo {
    rank: Option<u32>,
    world_size: Option<u32>,
    groups: Vec<(String, Vec<u32>)>,
}

#[derive(Default)]
struct File {
    info: JobInfo,
    events: Option<Events>,
}

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<File, D::Error> {
        d.deserialize_any(FileVisitor)
    }
}

struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = File;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace of PyTorch's profiler: an object with traceEvents, or a list of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
        let mut file = File::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "traceEvents" => file.events = Some(map.next_value()?),
                "distributedInfo" => file.info = map.next_value::<DistributedInfo>()?.job(),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(file)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<File, A::Error> {
        Ok(File { info: JobInfo::default(), events: Some(EventsVisitor.visit_seq(seq)?) })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DistributedInfo {
    rank: JsonScalar,
    world_size: JsonScalar,
    pg_config: Groups,
}

impl DistributedInfo {
    fn job(self) -> JobInfo {
        let small = |v: JsonScalar| v.whole().and_then(|n| u32::try_from(n).ok());
        JobInfo { rank: small(self.rank), world_size: small(self.world_size), groups: self.pg_config.0 }
    }
}

/// Process groups with a list of their ranks. Other forms count as none.
#[derive(Default)]
struct Groups(Vec<(String, Vec<u32>)>);

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupInfo {
    pg_name: JsonScalar,
    ranks: JsonScalar,
}

impl<'de> Deserialize<'de> for Groups {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Groups, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Groups;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of process groups")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Groups, A::Error> {
                let mut groups = Vec::new();
                while let Some(group) = seq.next_element::<GroupInfo>()? {
                    budget::check_growth("process groups", &groups);
                    let members = listed(&group.ranks.text()).unwrap_or_default();
                    groups.push((group.pg_name.text(), members));
                }
                Ok(Groups(groups))
            }
        }
        d.deserialize_seq(List)
    }
}

/// Events that count.
#[derive(Default)]
struct Events {
    work: Vec<RawWork>,
    waits: Vec<StreamWait>,
}

impl<'de> Deserialize<'de> for Events {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Events, D::Error> {
        d.deserialize_seq(EventsVisitor)
    }
}

struct EventsVisitor;

impl<'de> Visitor<'de> for EventsVisitor {
    type Value = Events;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Events, A::Error> {
        let mut events = Events::default();
        let meter = MemoryMeter::new(budget::total() / 2);
        while let Some(event) = seq.next_element::<Event>()? {
            let full = events.work.len() == events.work.capacity() || events.waits.len() == events.waits.capacity();
            let growth = if full { 2 * (events.work.len() + events.waits.len()) } else { 0 };
            meter.check("events", (growth * size_of::<RawWork>()) as u64).map_err(|exceeded| {
                let max_mib = exceeded.allowance >> 20;
                serde::de::Error::custom(format!(
                    "the events up to here take more than {max_mib} MiB, half of the memory that may be used; profile fewer steps"
                ))
            })?;
            event.sort_into(&mut events).map_err(serde::de::Error::custom)?;
        }
        Ok(events)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event {
    ph: JsonScalar,
    cat: JsonScalar,
    name: JsonScalar,
    ts: JsonScalar,
    dur: JsonScalar,
    tid: JsonScalar,
    pid: JsonScalar,
    args: Option<Box<Args>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Args {
    stream: JsonScalar,
    device: JsonScalar,
    correlation: JsonScalar,
    wait_on_stream: JsonScalar,
    wait_on_cuda_event_record_corr_id: JsonScalar,
    #[serde(rename = "Collective name")]
    collective: JsonScalar,
    dtype: JsonScalar,
    #[serde(rename = "In msg nelems")]
    in_elements: JsonScalar,
    #[serde(rename = "Out msg nelems")]
    out_elements: JsonScalar,
    #[serde(rename = "In split size")]
    in_split: JsonScalar,
    #[serde(rename = "Group size")]
    group_size: JsonScalar,
    #[serde(rename = "Process Group Name")]
    group_name: JsonScalar,
    #[serde(rename = "Process Group Ranks")]
    group_ranks: JsonScalar,
    #[serde(rename = "Global rank start")]
    rank_start: JsonScalar,
    #[serde(rename = "Global rank stride")]
    rank_stride: JsonScalar,
    #[serde(rename = "Src Rank")]
    source: JsonScalar,
    #[serde(rename = "Dst Rank")]
    target: JsonScalar,
    #[serde(rename = "Seq")]
    sequence: JsonScalar,
}

impl Event {
    /// Adds the event to those that count, if it is one. The error says what it lacks.
    fn sort_into(self, events: &mut Events) -> Result<(), String> {
        let is = |value: &JsonScalar, word: &str| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(word));
        if !is(&self.ph, "X") && !is(&self.cat, "cuda_sync") {
            return Ok(());
        }
        let args = self.args.unwrap_or_default();
        if is(&self.cat, "cuda_sync") {
            let found = || {
                Some(StreamWait {
                    stream: args.stream.whole()?,
                    correlation: args.correlation.whole()?,
                    other_stream: args.wait_on_stream.whole()?,
                    recorded: args.wait_on_cuda_event_record_corr_id.whole()?,
                })
            };
            events.waits.extend(found().filter(|_| is(&self.name, "Stream Wait Event")));
            return Ok(());
        }
        if !["kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"].iter().any(|word| is(&self.cat, word)) {
            return Ok(());
        }
        let name = self.name.text();
        let told = || format!("{} `{}`", self.cat.as_str().unwrap_or_default(), shortened(&name));
        let time = |value: &JsonScalar, field: &str| {
            value.number().ok_or_else(|| format!("{} has no number as `{field}`", told()))
        };
        let (ts_us, dur_us) = (time(&self.ts, "ts")?, time(&self.dur, "dur")?);
        if dur_us < 0.0 {
            return Err(format!("{} at ts {ts_us} has dur {dur_us}; a duration is at least 0", told()));
        }
        let stream = args.stream.whole().or(self.tid.whole());
        let stream = stream.ok_or_else(|| format!("{} at ts {ts_us} has no stream", told()))?;
        let call = name.starts_with("nccl").then(|| {
            Box::new(CommArgs {
                kernel: shortened(&name),
                ts_us,
                collective: args.collective.as_str().map(unquoted),
                dtype: args.dtype.as_str().map(unquoted),
                in_elements: args.in_elements.whole(),
                out_elements: args.out_elements.whole(),
                in_split: args.in_split.text(),
                group_size: args.group_size.whole(),
                group_name: unquoted(&args.group_name.text()),
                group_ranks: args.group_ranks.text(),
                rank_start: args.rank_start.whole(),
                rank_stride: args.rank_stride.whole(),
                source: args.source.whole(),
                target: args.target.whole(),
                sequence: args.sequence.whole(),
            })
        });
        let device = args.device.whole().or(self.pid.whole()).unwrap_or(0);
        let correlation = args.correlation.whole().unwrap_or(0);
        events.work.push(RawWork { ts_us, dur_us, stream, device, correlation, call });
        Ok(())
    }
}

/// The beginning of a kernel's name, which may have thousands of characters.
fn shortened(name: &str) -> String {
    const MOST: usize = 60;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_string(),
    }
}

/// A text without the quotes that some versions write around it.
fn unquoted(text: &str) -> String {
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text).to_string()
}
