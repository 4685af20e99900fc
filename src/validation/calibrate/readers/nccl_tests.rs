//! Reads the output of nccl-tests as measured rows.
//!
//! Layer: calibrate. It finds the columns of any version by their names in the header, and accepts lines with a launcher's prefix.

use std::collections::HashSet;

use crate::calibrate::error::CalibrateError;

/// Maximum number of rows of a log.
const MAX_ROWS: usize = 100_000;
/// Programs of nccl-tests, and the operations of `workload.op`.
const PROGRAMS: [(&str, &str); 7] = [
    ("all_reduce_perf", "all-reduce"),
    ("all_gather_perf", "all-gather"),
    ("reduce_scatter_perf", "reduce-scatter"),
    ("alltoall_perf", "all-to-all"),
    ("broadcast_perf", "broadcast"),
    ("reduce_perf", "reduce"),
    ("sendrecv_perf", "send-recv"),
];

/// One row of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NcclTestsRow {
    /// Number of bytes as nccl-tests counts them, as in `workload.bytes`.
    pub bytes: u64,
    /// Time in us.
    pub time_us: f64,
    /// Line number in the log.
    pub line: u64,
}

/// A parsed log.
#[derive(Clone, Debug, PartialEq)]
pub struct NcclTestsLog {
    /// Name of the operation, as in `workload.op`.
    pub op: String,
    /// Number of ranks. `None`: the log does not list them.
    pub ranks: Option<u32>,
    /// Number of servers. `None`: the log does not list the hosts of its ranks.
    pub servers: Option<u32>,
    /// Remarks about the log.
    pub notes: Vec<String>,
    /// Rows in the order of the log.
    pub rows: Vec<NcclTestsRow>,
}

/// Positions of the columns of a table.
struct Columns {
    size: usize,
    out_of_place: usize,
    in_place: Option<usize>,
    n: usize,
}

impl Columns {
    /// Finds the columns in a header line. The units below it are on another line.
    fn of(words: &[&str]) -> Option<Columns> {
        let size = words.iter().position(|w| *w == "size")?;
        let mut times = words.iter().enumerate().filter(|(_, w)| **w == "time").map(|(i, _)| i);
        Some(Columns { size, out_of_place: times.next()?, in_place: times.next(), n: words.len() })
    }
}

/// Reads a log. `in_place` selects the times of in-place operations. `op` is the operation if the log does not name it.
///
/// # Errors
/// There is no table, a row is cut off or has no numbers, or the operation is not known.
pub fn nccl_tests(text: &str, file: &str, op: Option<&str>, in_place: bool) -> Result<NcclTestsLog, CalibrateError> {
    let wrong_line =
        |line: usize, why: String| CalibrateError::Line { file: file.to_string(), line: line as u64 + 1, why };
    let whole = |why: String| CalibrateError::File { file: file.to_string(), why };
    let mut columns: Option<Columns> = None;
    let (mut found, mut rows, mut wrong) = (None, Vec::new(), 0usize);
    let (mut ranks, mut hosts) = (0u32, HashSet::<String>::new());
    for (number, line) in text.lines().enumerate() {
        let line = without_prefix(line);
        let named = PROGRAMS.iter().find(|(program, _)| has_word(line, program));
        if let Some((program, operation)) = named {
            if found.is_some_and(|(other, _)| other != *operation) {
                return Err(wrong_line(
                    number,
                    format!("{program} follows another operation's table; give each log its own file"),
                ));
            }
            found = Some((*operation, number));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"#") || line.starts_with('#') {
            let words: Vec<&str> = line.trim_start_matches('#').split_whitespace().collect();
            if let Some(header) = Columns::of(&words) {
                columns = Some(header);
            } else if words.first() == Some(&"Rank") && words.get(1).is_some_and(|w| w.parse::<u32>().is_ok()) {
                ranks += 1;
                let host = words.iter().position(|w| *w == "on").and_then(|i| words.get(i + 1));
                if let Some(host) = host.filter(|host| !hosts.contains(**host)) {
                    hosts.insert((*host).to_string());
                }
            }
            continue;
        }
        let Some(columns) = &columns else { continue };
        // Lines and warnings of NCCL itself can be between the rows of the table.
        let Some(bytes) = words.get(columns.size).filter(|_| columns.size == 0).and_then(|w| w.parse::<u64>().ok())
        else {
            continue;
        };
        if words.get(1).is_none_or(|w| w.parse::<u64>().is_err()) {
            continue;
        }
        if words.len() < columns.n {
            return Err(wrong_line(
                number,
                format!("the line has {} of {} columns: it is cut off", words.len(), columns.n),
            ));
        }
        let time_column = match (in_place, columns.in_place) {
            (true, None) => {
                return Err(wrong_line(number, "this table has no times in place; leave out --in-place".into()));
            }
            (true, Some(column)) => column,
            (false, _) => columns.out_of_place,
        };
        if words.get(time_column + 3).and_then(|w| w.parse::<f64>().ok()).is_some_and(|n| n > 0.0) {
            wrong += 1;
        }
        match words[time_column].parse::<f64>() {
            Ok(time_us) if time_us.is_finite() && time_us > 0.0 && bytes > 0 => {
                rows.push(NcclTestsRow { bytes, time_us, line: number as u64 + 1 });
            }
            // Sizes that are too small for the number of ranks become 0 bytes.
            Ok(_) if bytes == 0 => {}
            _ => {
                return Err(wrong_line(
                    number,
                    format!("time = {}; a number of microseconds above 0 would be right", shown(words[time_column])),
                ));
            }
        }
        if rows.len() > MAX_ROWS {
            return Err(wrong_line(number, format!("more than {MAX_ROWS} rows; this is no log of nccl-tests")));
        }
    }
    if columns.is_none() {
        let why = "there is no table of nccl-tests: no line `# size count type ... time algbw busbw`";
        return Err(whole(why.to_string()));
    }
    if rows.is_empty() {
        return Err(whole("the table has no rows with bytes and a time".to_string()));
    }
    let Some(op) = op.or(found.map(|f| f.0)) else {
        return Err(whole(
            "the log does not say which operation it is of; say so with --op, for example --op all-reduce".to_string(),
        ));
    };
    let mut notes = Vec::new();
    if wrong > 0 {
        notes.push(format!("{wrong} rows have wrong results (#wrong above 0); their times are taken all the same"));
    }
    let servers = (!hosts.is_empty()).then_some(hosts.len() as u32);
    Ok(NcclTestsLog { op: op.to_string(), ranks: (ranks > 0).then_some(ranks), servers, notes, rows })
}

/// Operations that `--op` may name.
pub fn nccl_operations() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|(_, op)| *op)
}

impl NcclTestsLog {
    /// Measured rows as CSV. Experiments are named by operation and bytes.
    pub fn csv(&self, source: &str) -> String {
        let mut out = String::from("workload.op,workload.bytes,value,unit,source\n");
        for row in &self.rows {
            out += &format!(
                "{},{},{},us,{}\n",
                self.op,
                row.bytes,
                row.time_us,
                quoted(&format!("{source}:{}", row.line))
            );
        }
        out
    }

    /// A sweep over the sizes of the log, on a server. `gpus` is the number of GPUs if the log does not list its ranks.
    ///
    /// # Errors
    /// The number of GPUs is not known.
    pub fn sweep(&self, name: &str, server: &str, gpus: Option<u32>) -> Result<String, String> {
        let Some(gpus) = gpus.or(self.ranks) else {
            return Err("the log does not list its ranks; say how many GPUs it is of with --gpus".to_string());
        };
        let mut bytes: Vec<u64> = self.rows.iter().map(|r| r.bytes).collect();
        bytes.sort_unstable();
        bytes.dedup();
        let bytes: Vec<String> = bytes.iter().map(u64::to_string).collect();
        let text = |s: &str| toml::Value::String(s.to_string()).to_string();
        Ok(format!(
            "# The sizes of a log of nccl-tests.\n\nname = {}\n\n[base.cluster]\nserver = {}\ngpus = {gpus}\n\n[base.workload]\nkind = \"collective\"\nop = \"{}\"\nanalytic = \"all\"\n\n[axes]\n\"workload.bytes\" = [{}]\n",
            text(name),
            text(server),
            self.op,
            bytes.join(", ")
        ))
    }
}

/// A field of CSV, quoted if necessary.
pub(super) fn quoted(field: &str) -> String {
    let plain = !field.contains(['"', ',', '\n', '\r', '#']);
    if plain { field.to_string() } else { format!("\"{}\"", field.replace('"', "\"\"").replace(['\n', '\r'], " ")) }
}

/// The line without the prefix of mpirun (`[1,0]<stdout>:`) or srun (`0: `).
fn without_prefix(line: &str) -> &str {
    let line = line.trim_start_matches('\u{feff}').trim_start();
    if let Some((_, rest)) = line.strip_prefix('[').and_then(|l| l.split_once(">:")) {
        return rest.trim_start();
    }
    match line.split_once(": ") {
        Some((task, rest)) if !task.is_empty() && task.bytes().all(|b| b.is_ascii_digit()) => rest.trim_start(),
        _ => line,
    }
}

/// Whether a line contains a program's name, and not as the end of another name.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(position, _)| {
        let before = line[..position].chars().next_back();
        before.is_none_or(|c| !(c.is_ascii_alphanumeric() || c == '_'))
    })
}

/// A word, cut to a length that fits into a message.
fn shown(word: &str) -> String {
    word.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOG: &str = "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  11 on    node-a device  0 [0x53] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  12 on    node-b device  0 [0x64] NVIDIA H100 80GB HBM3
node-a:11:11 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0     float     sum      -1     0.21    0.00    0.00      0     0.20    0.00    0.00      0
           8             2     float     sum      -1    69.12    0.00    0.00      0    72.43    0.00    0.00      0
node-a:11:60 [0] NCCL INFO comm 0x5 nranks 2
          16             4     float     sum      -1    72.64    0.00    0.00    N/A    72.95    0.00    0.00    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.1
";

    fn read(text: &str) -> Result<NcclTestsLog, String> {
        nccl_tests(text, "log", Some("all-reduce"), false).map_err(|e| e.to_string())
    }

    #[test]
    fn tables_of_all_versions_are_read() {
        let log = read(LOG).unwrap();
        assert_eq!((log.ranks, log.servers), (Some(2), Some(2)));
        let rows: Vec<(u64, f64)> = log.rows.iter().map(|r| (r.bytes, r.time_us)).collect();
        assert_eq!(rows, [(8, 69.12), (16, 72.64)]);
        let in_place = nccl_tests(LOG, "log", Some("all-reduce"), true).unwrap();
        assert_eq!(in_place.rows[1].time_us, 72.95);
        let prefixed: String = LOG.lines().map(|l| format!("[1,0]<stdout>:{l}\n")).collect();
        assert_eq!(read(&prefixed).unwrap().rows, log.rows);
        let numbered: String = LOG.lines().map(|l| format!("0: {l}\n")).collect();
        assert_eq!(read(&numbered).unwrap().rows, log.rows);
        // Before 2.13 an all-gather had neither operation nor root.
        let old = "# size count type time algbw busbw error time algbw busbw error\n 1024 8 float 10.5 1 1 0e+00 11.5 1 1 0e+00\n";
        assert_eq!(read(old).unwrap().rows[0].time_us, 10.5);
    }

    #[test]
    fn the_operation_is_the_programs_name() {
        let named = format!("# Collective test starting: all_gather_perf\n{LOG}");
        assert_eq!(nccl_tests(&named, "log", None, false).unwrap().op, "all-gather");
        let typed = format!("$ mpirun ./build/all_reduce_perf -b 8 -e 64 -f 2\n{LOG}");
        assert_eq!(nccl_tests(&typed, "log", None, false).unwrap().op, "all-reduce");
        let unnamed = nccl_tests(LOG, "log", None, false).unwrap_err().to_string();
        assert!(unnamed.contains("--op"), "{unnamed}");
        let both = format!("{named}# Collective test starting: alltoall_perf\n");
        assert!(nccl_tests(&both, "log", None, false).unwrap_err().to_string().contains("its own file"));
    }

    #[test]
    fn faults_name_the_line() {
        let header = "# size count type redop root time algbw busbw #wrong\n";
        for (text, parts) in [
            ("hello\n".to_string(), &["log: there is no table"][..]),
            (header.to_string(), &["no rows"]),
            (format!("{header} 8 2 float sum -1 6"), &["log:2", "6 of 9 columns", "cut off"]),
            (format!("{header} 8 2 float sum -1 x 0 0 0\n"), &["log:2", "time = x"]),
        ] {
            let error = read(&text).unwrap_err();
            assert!(parts.iter().all(|p| error.contains(p)), "{text:?}: {error}");
        }
        let error = nccl_tests(&format!("{header} 8 2 float sum -1 6 0 0 0\n"), "log", None, true).unwrap_err();
        assert!(error.to_string().contains("in place"), "{error}");
    }

    #[test]
    fn a_log_of_many_hosts_takes_time_by_its_length() {
        let seconds = |hosts: usize| {
            let ranks: String =
                (0..hosts).map(|n| format!("#  Rank {n} Group 0 Pid {n} on n{n:06} device 0\n")).collect();
            let text = ranks + LOG;
            let clock = std::time::Instant::now();
            assert_eq!(read(&text).unwrap().servers, Some(hosts as u32 + 2));
            clock.elapsed().as_secs_f64()
        };
        // Comparing each host with all others would take 64 times as long.
        let best = |hosts| (0..3).map(|_| seconds(hosts)).fold(f64::MAX, f64::min);
        let (few, many) = (best(5_000), best(40_000));
        assert!(many < 24.0 * few, "{few} s and {many} s");
    }

    #[test]
    fn rows_and_sweep_belong_together() {
        let log = read(LOG).unwrap();
        assert_eq!(log.csv("a,b").lines().nth(1).unwrap(), "all-reduce,8,69.12,us,\"a,b:12\"");
        let text = log.sweep("mine", "dgx-h100", None).unwrap();
        assert!(text.contains("\"workload.bytes\" = [8, 16]") && text.contains("gpus = 2"), "{text}");
        let path = std::path::Path::new("s.toml");
        let sweep =
            hyperfold_config::sweep::Sweep::parse(&log.sweep("mine", "dgx-h100", Some(16)).unwrap(), path).unwrap();
        let rows = crate::calibrate::calibration_rows(&log.csv("log"), "m.csv", &sweep, None).unwrap();
        assert_eq!(rows.iter().map(|r| r.experiments.clone()).collect::<Vec<_>>(), [[0], [1]]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}", cut in 0usize..2000, position in 0usize..2000, byte in any::<u8>()) {
            let _ = read(&text);
            let mut bytes = LOG.as_bytes().to_vec();
            let position = position % bytes.len();
            bytes[position] = byte;
            bytes.truncate(cut.min(bytes.len()));
            let _ = read(&String::from_utf8_lossy(&bytes));
        }
    }
}
