//! Measured rows from a trace of PyTorch's profiler: steps, time in kernels, collectives, and single kernels.
//!
//! Layer: calibrate. `profiler_trace` reads the file; `kernel_rows` makes rows of single kernels.

use std::collections::BTreeMap;

use super::kernel_rows::kernel_rows;
use super::nccl_tests::quoted;
use super::profiler_trace::{TraceEvent, events};
use super::statistic::ProfilerStatistic;
use crate::calibrate::error::CalibrateError;

/// Name of a step's event, before the number of the step.
const STEP: &str = "ProfilerStep#";
/// Collectives by PyTorch's names, their names in `workload.op`, and whether their bytes are those of the output.
const COLLECTIVES: [(&str, &str, bool); 9] = [
    ("allreduce", "all-reduce", false),
    ("_allgather_base", "all-gather", true),
    ("allgather", "all-gather", true),
    ("_reduce_scatter_base", "reduce-scatter", false),
    ("reduce_scatter", "reduce-scatter", false),
    ("all_to_all", "all-to-all", false),
    ("all_to_allv", "all-to-all", false),
    ("broadcast", "broadcast", false),
    ("reduce", "reduce", false),
];

/// Kind of rows to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfilerRows<'a> {
    /// One row with the time of a step.
    Steps,
    /// One row with the time of a step in which kernels run, without NCCL's kernels.
    Compute,
    /// One row for each operation, size and number of ranks.
    Collectives,
    /// A database of matrix products for `workload.kernels`, measured on a GPU of this name.
    Kernels(&'a str),
}

/// Makes rows of a trace, as CSV. `file` is used in messages and as the source.
///
/// # Errors
/// The text is no trace, or has nothing of the requested kind.
pub fn profiler_rows(
    text: &str,
    file: &str,
    rows: ProfilerRows<'_>,
    statistic: ProfilerStatistic,
) -> Result<String, CalibrateError> {
    if text.as_bytes().starts_with(&[0x1f, 0x8b]) {
        return Err(CalibrateError::File {
            file: file.to_string(),
            why: "it is compressed; unpack it with gunzip".to_string(),
        });
    }
    let events = events(text).map_err(|e| {
        let why = format!("column {}: {e}", e.column());
        CalibrateError::Line { file: file.to_string(), line: e.line() as u64, why }
    })?;
    let missing = |why: &str| CalibrateError::File { file: file.to_string(), why: why.to_string() };
    match rows {
        ProfilerRows::Steps => steps_csv(&steps(&events), statistic, "iteration_time_ns", file)
            .ok_or_else(|| missing("there are no steps; call the profiler's step() in the training loop")),
        ProfilerRows::Compute => steps_csv(&compute(&events), statistic, "compute_ns+optimizer_ns", file)
            .ok_or_else(|| missing("there are no GPU kernels; profile with ProfilerActivity.CUDA")),
        ProfilerRows::Collectives => collectives_csv(&events, statistic, file).ok_or_else(|| {
            missing("there are no NCCL kernels with a collective's name and sizes; PyTorch notes them from 2.3 on")
        }),
        ProfilerRows::Kernels(gpu) => kernel_rows(&events, gpu, statistic, file)
            .ok_or_else(|| missing("there are no matrix products with shapes; profile with record_shapes=True")),
    }
}

/// Steps in the order of time. The first of several steps is left out, because it includes the initial setup.
fn step_events(events: &[TraceEvent]) -> Vec<&TraceEvent> {
    let mut steps: Vec<&TraceEvent> =
        events.iter().filter(|e| e.name().starts_with(STEP) && e.category() != "gpu_user_annotation").collect();
    steps.sort_by(|a, b| a.start_us().total_cmp(&b.start_us()));
    // A step may be recorded twice, by different threads.
    steps.dedup_by(|a, b| a.name() == b.name());
    if steps.len() > 2 {
        steps.remove(0);
    }
    steps
}

fn steps(events: &[TraceEvent]) -> Vec<f64> {
    step_events(events).iter().map(|e| e.duration_us()).collect()
}

fn is_nccl(event: &TraceEvent) -> bool {
    event.name().starts_with("nccl")
}

/// Time of each step in which a kernel runs. Without steps, of the whole trace.
fn compute(events: &[TraceEvent]) -> Vec<f64> {
    let mut kernels: Vec<(f64, f64)> = events
        .iter()
        .filter(|e| e.is_kernel() && !is_nccl(e))
        .map(|e| (e.start_us(), e.start_us() + e.duration_us()))
        .collect();
    kernels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut steps: Vec<(f64, f64)> =
        step_events(events).iter().map(|e| (e.start_us(), e.start_us() + e.duration_us())).collect();
    // A step ends where the next one begins, so that no kernel belongs to two steps.
    for next in (1..steps.len()).rev() {
        steps[next - 1].1 = steps[next - 1].1.min(steps[next].0);
    }
    let spans = if steps.is_empty() { vec![(f64::MIN, f64::MAX)] } else { steps };
    let busy = |(begin_us, end_us): (f64, f64)| {
        let (mut sum, mut busy_until) = (0.0, f64::MIN);
        let begun = |us: f64| kernels.partition_point(|kernel| kernel.0 < us);
        let (first, end) = (begun(begin_us), begun(end_us));
        for (start, end) in &kernels[first.min(end)..end] {
            sum += (end - start.max(busy_until)).max(0.0);
            busy_until = busy_until.max(*end);
        }
        sum
    };
    spans.into_iter().map(busy).filter(|us| *us > 0.0).collect()
}

/// One row from the times of several steps.
fn steps_csv(times: &[f64], statistic: ProfilerStatistic, column: &str, file: &str) -> Option<String> {
    let mut sorted = times.to_vec();
    (!sorted.is_empty()).then(|| {
        let value = statistic.of(&mut sorted);
        let n = times.len();
        format!("name,value,unit,column,source\n{n} steps,{value:.3},us,{column},{}\n", quoted(file))
    })
}

/// Bytes of an element, by PyTorch's name of its type.
pub(super) fn element_bytes(dtype: &str) -> Option<u64> {
    let name = dtype.trim_start_matches("c10::").to_ascii_lowercase();
    Some(match name.as_str() {
        "double" | "long" | "long int" | "int64" => 8,
        "float" | "int" | "int32" => 4,
        "half" | "bfloat16" | "short" => 2,
        "byte" | "char" | "bool" | "signed char" | "unsigned char" => 1,
        other if other.starts_with("float8") => 1,
        _ => return None,
    })
}

fn collectives_csv(events: &[TraceEvent], statistic: ProfilerStatistic, file: &str) -> Option<String> {
    let mut times_of: BTreeMap<(&str, u64, u64), Vec<f64>> = BTreeMap::new();
    for event in events.iter().filter(|e| e.is_kernel() && is_nccl(e)) {
        let Some(args) = &event.args else { continue };
        let name = args.collective.as_str().unwrap_or("");
        let Some((_, op, out)) = COLLECTIVES.iter().find(|c| c.0 == name) else { continue };
        let elements = if *out { &args.out_elements } else { &args.in_elements }.number();
        let size = args.dtype.as_str().and_then(element_bytes);
        let (Some(elements), Some(size), Some(ranks)) = (elements, size, args.group_size.number()) else { continue };
        let bytes = elements * size as f64;
        if (1.0..9e15).contains(&bytes) && (2.0..1e7).contains(&ranks) {
            times_of.entry((op, bytes as u64, ranks as u64)).or_default().push(event.duration_us());
        }
    }
    if times_of.is_empty() {
        return None;
    }
    let mut out = String::from("workload.op,workload.bytes,workload.ranks,value,unit,source,note\n");
    for ((op, bytes, ranks), mut times) in times_of {
        let n = times.len();
        let value = statistic.of(&mut times);
        out += &format!("{op},{bytes},{ranks},{value:.3},us,{},{n} kernels\n", quoted(file));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TRACE: &str = r#"{"schemaVersion": 1, "traceEvents": [
      {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 900},
      {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "ts": 1000, "dur": 500},
      {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "ts": 2000, "dur": 520},
      {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#3", "ts": 2000, "dur": 5},
      {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1000, "dur": 9, "args": {"External id": 7, "Input Dims": [[128, 512], [512, 256]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
      {"ph": "X", "cat": "kernel", "name": "sm90_gemm", "ts": 1010, "dur": 100, "args": {"External id": 7}},
      {"ph": "X", "cat": "kernel", "name": "add", "ts": 1090, "dur": 40, "args": {"External id": 8}},
      {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ts": 1200, "dur": 60, "args":
        {"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 8, "dtype": "BFloat16"}},
      {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL", "ts": 2200, "dur": 70, "args":
        {"Collective name": "_allgather_base", "In msg nelems": 16, "Out msg nelems": 128, "Group size": "8", "dtype": "Float"}},
      {"ph": "i", "name": "x", "ts": 1}, {"ph": "M", "name": "process_name", "args": {"name": "python"}}
    ]}"#;

    fn read(text: &str, rows: ProfilerRows<'_>) -> Result<String, String> {
        profiler_rows(text, "t.json", rows, ProfilerStatistic::Mean).map_err(|e| e.to_string())
    }

    #[test]
    fn each_kind_of_row_is_read() {
        let steps = read(TRACE, ProfilerRows::Steps).unwrap();
        assert_eq!(steps, "name,value,unit,column,source\n2 steps,510.000,us,iteration_time_ns,t.json\n");
        let compute = read(TRACE, ProfilerRows::Compute).unwrap();
        assert!(compute.contains("1 steps,120.000,us,compute_ns+optimizer_ns"), "{compute}");
        let collectives = read(TRACE, ProfilerRows::Collectives).unwrap();
        assert!(
            collectives.contains("\nall-gather,512,8,70.000,us,t.json,1 kernels\nall-reduce,2048,8,60.000"),
            "{collectives}"
        );
        let kernels = read(TRACE, ProfilerRows::Kernels("h100")).unwrap();
        assert!(kernels.contains("\nh100,gemm,,m=128 n=256 k=512,bf16,100.000,us,t.json\n"), "{kernels}");
        hyperfold_llm::compute::UserDatabase::parse("k.csv", &kernels).unwrap();
        let list = TRACE.split_once("\"traceEvents\": ").unwrap().1.trim_end().trim_end_matches('}');
        assert_eq!(read(list, ProfilerRows::Steps).unwrap(), steps);
    }

    #[test]
    fn steps_take_time_by_their_number() {
        let seconds = |steps: usize| {
            let step = |n: usize| {
                let start = 10 * n;
                format!(
                    r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{n}","ts":{start},"dur":1e9}},{{"ph":"X","cat":"kernel","name":"k","ts":{start},"dur":4}}"#
                )
            };
            let text = format!("[{}]", (0..steps).map(step).collect::<Vec<_>>().join(","));
            let clock = std::time::Instant::now();
            let rows = read(&text, ProfilerRows::Compute).unwrap();
            assert!(rows.contains(&format!("\n{} steps,4.000,us,", steps - 1)), "{rows}");
            clock.elapsed().as_secs_f64()
        };
        // Each step held against each kernel would take 64 times as long. The best of five, as the machine may be busy.
        let best = |steps| (0..5).map(|_| seconds(steps)).fold(f64::INFINITY, f64::min);
        let (few, many) = (best(2_500), best(20_000));
        assert!(many < 24.0 * few, "{few} s and {many} s");
    }

    #[test]
    fn faults_say_where_and_what_to_do() {
        for (text, rows, parts) in [
            ("{", ProfilerRows::Steps, &["t.json:1", "column"][..]),
            ("{\n\"traceEvents\": 3}", ProfilerRows::Steps, &["t.json:2", "list of events"]),
            ("{}", ProfilerRows::Steps, &["export_chrome_trace"]),
            ("\u{1f}\u{8b}", ProfilerRows::Steps, &["t.json"]),
            ("[]", ProfilerRows::Steps, &["step()"]),
            ("[]", ProfilerRows::Compute, &["ProfilerActivity.CUDA"]),
            ("[]", ProfilerRows::Collectives, &["2.3"]),
            ("[]", ProfilerRows::Kernels("h100"), &["record_shapes"]),
        ] {
            let error = read(text, rows).unwrap_err();
            assert!(parts.iter().all(|p| error.contains(p)), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}", cut in 0usize..3000, position in 0usize..3000, byte in any::<u8>()) {
            let mut bytes = TRACE.as_bytes().to_vec();
            let position = position % bytes.len();
            bytes[position] = byte;
            bytes.truncate(cut.min(bytes.len()));
            for text in [text, String::from_utf8_lossy(&bytes).into_owned()] {
                for rows in [ProfilerRows::Steps, ProfilerRows::Compute, ProfilerRows::Collectives, ProfilerRows::Kernels("g")] {
                    let _ = read(&text, rows);
                }
            }
        }
    }
}
