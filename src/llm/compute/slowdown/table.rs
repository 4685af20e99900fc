//! A table of slowdowns by GPU, class of kernel and kind of communication.

use serde::Deserialize;

use super::KernelFeatures;
use crate::collective::CollectiveOp;
use crate::compute::{Class, Error, Gpu};
use hyperfold_base::input;

/// One measured slowdown. A field that is `None` matches anything.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// The GPU's name and baseline.
    gpu: Option<(String, String)>,
    class: Option<Class>,
    op: Option<CollectiveOp>,
    factor: f64,
}

/// A table of slowdowns. If several rows apply, the most specific one counts: first by GPU (the GPU itself, a GPU with the same baseline, any), then by class,
/// then by communication. Of equal ones the last counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowdownTable(Vec<Entry>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    gpu: String,
    kernel: String,
    communication: String,
    slowdown: f64,
    source: String,
}

const OPS: [(&str, CollectiveOp); 7] = [
    ("all-reduce", CollectiveOp::AllReduce),
    ("all-gather", CollectiveOp::AllGather),
    ("reduce-scatter", CollectiveOp::ReduceScatter),
    ("all-to-all", CollectiveOp::AllToAll),
    ("broadcast", CollectiveOp::Broadcast),
    ("reduce", CollectiveOp::Reduce),
    ("barrier", CollectiveOp::Barrier),
];

impl SlowdownTable {
    /// Parses CSV with the header `gpu,kernel,communication,slowdown,source`: a GPU's name; `gemm`, `attention` or `memory`; a collective such as `all-reduce`;
    /// time with communication divided by time alone. `*` matches anything.
    pub fn parse(file: &str, text: &str) -> Result<SlowdownTable, Error> {
        let bad = |line: u64, message: String| Error::Slowdown { file: file.to_string(), line, message };
        let mut reader =
            csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
        let headers = reader.headers().map_err(|e| bad(1, input::csv_problem(&e)))?.clone();
        let mut entries = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| bad(e.position().map_or(0, |p| p.line()), input::csv_problem(&e)))?;
            let number = record.position().map_or(0, |p| p.line());
            let line: Line = record.deserialize(Some(&headers)).map_err(|e| bad(number, input::csv_problem(&e)))?;
            entries.push(entry(&line).map_err(|message| bad(number, message))?);
        }
        Ok(SlowdownTable(entries))
    }

    /// Whether any row applies to this GPU.
    pub fn knows(&self, gpu: &Gpu) -> bool {
        self.0
            .iter()
            .any(|e| e.gpu.as_ref().is_none_or(|(name, baseline)| *name == gpu.name || *baseline == gpu.baseline))
    }

    /// Time with communication divided by time alone; `None` if no row applies.
    pub fn factor(&self, features: &KernelFeatures) -> Option<f64> {
        let rank = |entry: &Entry| {
            let gpu = match &entry.gpu {
                None => 0,
                Some((name, _)) if *name == features.gpu => 2,
                Some((_, baseline)) if *baseline == features.baseline => 1,
                Some(_) => return None,
            };
            let applies = entry.class.is_none_or(|c| c == features.class) && entry.op.is_none_or(|o| o == features.op);
            applies.then_some((gpu, entry.class.is_some(), entry.op.is_some()))
        };
        // `max_by_key` returns the last of equal rows.
        self.0.iter().filter_map(|e| Some((rank(e)?, e.factor))).max_by_key(|r| r.0).map(|r| r.1)
    }
}

fn entry(line: &Line) -> Result<Entry, String> {
    let gpu = match line.gpu.as_str() {
        "*" => None,
        name => Some(
            Gpu::named(name).map(|g| (g.name, g.baseline)).unwrap_or_else(|_| (name.to_string(), name.to_string())),
        ),
    };
    let class = match line.kernel.as_str() {
        "*" => None,
        name => {
            let found = [Class::Gemm, Class::Attention, Class::Memory].into_iter().find(|c| c.name() == name);
            Some(found.ok_or_else(|| format!("kernel {name:?}; gemm, attention, memory or * would be right"))?)
        }
    };
    let op = match line.communication.as_str() {
        "*" => None,
        name => {
            let found = OPS.iter().find(|o| o.0 == name).map(|o| o.1);
            Some(found.ok_or_else(|| {
                format!("communication {name:?}; {} or * would be right", OPS.map(|o| o.0).join(", "))
            })?)
        }
    };
    if !(1.0..=1000.0).contains(&line.slowdown) {
        return Err(format!(
            "slowdown = {}; time beside communication over time alone is at least 1 (and below 1000)",
            line.slowdown
        ));
    }
    if line.source.is_empty() {
        return Err("source is empty; say where the value is from".to_string());
    }
    Ok(Entry { gpu, class, op, factor: line.slowdown })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Dtype, Kernel, Timing};

    #[test]
    fn the_most_particular_row_counts() {
        let text = "gpu,kernel,communication,slowdown,source\n*,*,*,1.1,x\n*,gemm,*,1.2,x\na100,gemm,*,1.3,x\na100,gemm,all-to-all,1.4,x\na800,*,*,1.5,x\n";
        let table = SlowdownTable::parse("t.csv", text).unwrap();
        let factor = |gpu: &str, kernel: Kernel, op| {
            let timing = Timing::new(&Gpu::named(gpu).unwrap(), None).unwrap();
            table.factor(&KernelFeatures::new(&timing, &kernel, op, 1)).unwrap()
        };
        let (gemm, memory) = (Kernel::gemm(64, 64, 64, Dtype::Bf16), Kernel::Memory { name: "gelu", bytes: 1000 });
        assert_eq!(factor("h100", memory, CollectiveOp::AllReduce), 1.1);
        assert_eq!(factor("h100", gemm, CollectiveOp::AllReduce), 1.2);
        assert_eq!(factor("a100", gemm, CollectiveOp::AllReduce), 1.3);
        assert_eq!(factor("a100", gemm, CollectiveOp::AllToAll), 1.4);
        assert_eq!(factor("a100", memory, CollectiveOp::AllToAll), 1.5);
        assert_eq!(factor("a800", gemm, CollectiveOp::AllToAll), 1.5);
        let of_a800 =
            SlowdownTable::parse("t.csv", "gpu,kernel,communication,slowdown,source\na800,*,*,1.5,x\n").unwrap();
        let h100 = Timing::new(&Gpu::named("h100").unwrap(), None).unwrap();
        assert_eq!(of_a800.factor(&KernelFeatures::new(&h100, &gemm, CollectiveOp::AllReduce, 1)), None);
    }

    #[test]
    fn faults_name_file_line_and_remedy() {
        for (row, word) in [
            ("*,gem,*,1.1,x", "gem"),
            ("*,gemm,all,1.1,x", "all-reduce"),
            ("*,gemm,*,0.9,x", "at least 1"),
            ("*,gemm,*,1.1,", "source"),
            ("*,gemm,*", "fields"),
        ] {
            let error = SlowdownTable::parse("t.csv", &format!("gpu,kernel,communication,slowdown,source\n{row}\n"))
                .unwrap_err()
                .to_string();
            assert!(error.contains("t.csv: line 2") && error.contains(word), "{row}: {error}");
        }
    }
}
