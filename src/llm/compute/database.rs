//! The operation database: measured kernels, one per row, keyed by GPU, operation, shape and data type (SimAI's Table 4, down to kernels).
//!
//! Layer: compute. It reads and checks rows. `curves` and `timing` derive the times of other shapes and GPUs.
//!
//! A file is CSV with a header and `#` comments: `gpu,operation,variant,shape,dtype,value,unit,source`.
//!
//! | operation | shape | unit |
//! |---|---|---|
//! | `gemm` | `m= n= k=`, `batch=` (1) | `us`, `tflops` |
//! | `attention-forward`, `attention-backward`, `attention` (both) | `batch= heads= seq= head_dim= causal=0 or 1` | `us`, `tflops` |
//! | name of a memory-bound kernel: `layernorm`, `gelu`, `adam` ... | `bytes=` (read and written) | `us`, `gbps` (10^9 bytes/s) |
//!
//! `variant` distinguishes implementations of attention (a GPU's `attention` chooses). Rows without a variant, as users write them, take precedence.

use std::sync::OnceLock;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Dtype, Error, Kernel};
use hyperfold_base::input;

/// The operation that a row measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A matrix product.
    Gemm,
    /// Fused attention, forward.
    AttentionForward,
    /// Fused attention, backward.
    AttentionBackward,
    /// Forward and backward together.
    Attention,
    /// A kernel bound by memory.
    Memory,
}

/// One measured kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredKernel {
    /// Name of the GPU.
    pub gpu: String,
    /// Operation that the kernel carries out.
    pub operation: Operation,
    /// Name of the operation in the file.
    pub name: String,
    /// Name of the implementation in the file.
    pub variant: String,
    /// The kernel. For both directions of attention it is the forward one; for memory-bound kernels its name is arbitrary.
    pub kernel: Kernel,
    /// Duration in ps.
    pub ps: f64,
    /// Line in its file.
    pub line: u64,
}

/// Measured kernels of any number of GPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserDatabase {
    /// Name of the file, for messages.
    pub file: String,
    /// Measured kernels, in the order of the file.
    pub rows: Vec<MeasuredKernel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    gpu: String,
    operation: String,
    #[serde(default)]
    variant: String,
    shape: String,
    dtype: String,
    value: f64,
    unit: String,
    source: String,
}

impl UserDatabase {
    /// The database of the assets.
    pub fn shipped() -> &'static UserDatabase {
        static READ: OnceLock<UserDatabase> = OnceLock::new();
        READ.get_or_init(UserDatabase::of_assets)
    }

    fn of_assets() -> UserDatabase {
        let read = |file, text| UserDatabase::parse(file, text).expect("assets/kernels are read by a test").rows;
        let mut rows = read("assets/kernels/attention.csv", include_str!("../../../assets/kernels/attention.csv"));
        rows.extend(read("assets/kernels/gemm.csv", include_str!("../../../assets/kernels/gemm.csv")));
        UserDatabase { file: "assets/kernels".to_string(), rows }
    }

    /// Parses a file's text. Every error names file and line.
    pub fn parse(file: &str, text: &str) -> Result<UserDatabase, Error> {
        let mut reader =
            csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
        let headers = reader.headers().map_err(|e| bad(file, 1, input::csv_problem(&e)))?.clone();
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| bad(file, e.position().map_or(0, |p| p.line()), input::csv_problem(&e)))?;
            let line = record.position().map_or(0, |p| p.line());
            let parsed: Line =
                record.deserialize(Some(&headers)).map_err(|e| bad(file, line, input::csv_problem(&e)))?;
            rows.push(measured(&parsed, line).map_err(|message| bad(file, line, message))?);
        }
        if rows.is_empty() {
            return Err(bad(file, 1, "no rows; a header `gpu,operation,variant,shape,dtype,value,unit,source` and a row a kernel would be right".to_string()));
        }
        Ok(UserDatabase { file: file.to_string(), rows })
    }
}

fn bad(file: &str, line: u64, message: String) -> Error {
    Error::Database { file: file.to_string(), line, message }
}

fn measured(line: &Line, number: u64) -> Result<MeasuredKernel, String> {
    if line.source.is_empty() {
        return Err("source is empty; say where the value is from".to_string());
    }
    let dtype: Dtype = line.dtype.parse().map_err(|e: Error| e.to_string())?;
    let mut shape = Shape::parse(&line.shape)?;
    let mut attention = |backward| -> Result<Kernel, String> {
        let (seq, heads) = (shape.take("seq", None)?, shape.take("heads", None)?);
        Ok(Kernel::Attention {
            batch: shape.take("batch", None)?,
            heads,
            kv_heads: shape.take("kv_heads", Some(heads))?,
            seq_q: seq,
            seq_kv: seq,
            head_dim: shape.take("head_dim", None)?,
            causal: match shape.take_any("causal", None)? {
                0 => false,
                1 => true,
                other => return Err(format!("causal = {other}; 0 or 1 would be right")),
            },
            backward,
            dtype,
        })
    };
    let (operation, kernel) = match line.operation.as_str() {
        "gemm" => {
            let (m, n, k, batch) =
                (shape.take("m", None)?, shape.take("n", None)?, shape.take("k", None)?, shape.take("batch", Some(1))?);
            (Operation::Gemm, Kernel::Gemm { m, n, k, batch, kept: 0, apart: false, dtype })
        }
        "attention-forward" => (Operation::AttentionForward, attention(false)?),
        "attention-backward" => (Operation::AttentionBackward, attention(true)?),
        "attention" => (Operation::Attention, attention(false)?),
        "" => return Err("operation is empty".to_string()),
        _ => (Operation::Memory, Kernel::Memory { name: "", bytes: shape.take("bytes", None)? }),
    };
    shape.finish(&line.operation)?;
    if !(line.value.is_finite() && line.value > 0.0) {
        return Err(format!("value = {}; a positive number would be right", line.value));
    }
    let flops = kernel.flops() as f64 * if operation == Operation::Attention { 3.5 } else { 1.0 };
    let ps = match (line.unit.as_str(), operation) {
        ("us", _) => line.value * 1e6,
        ("gbps", Operation::Memory) => kernel.bytes() as f64 / line.value * 1e3,
        ("tflops", Operation::Memory) => {
            return Err("unit tflops; a memory-bound kernel is measured in us or gbps".to_string());
        }
        ("tflops", _) => flops / line.value,
        (other, _) => return Err(format!("unit {other:?}; us, tflops (arithmetic) or gbps (memory) would be right")),
    };
    Ok(MeasuredKernel {
        gpu: line.gpu.to_ascii_lowercase(),
        operation,
        name: line.operation.clone(),
        variant: line.variant.clone(),
        kernel,
        ps,
        line: number,
    })
}

/// The `key=value` pairs of a shape, which are taken one by one.
struct Shape(BTreeMap<String, u64>);

impl Shape {
    fn parse(text: &str) -> Result<Shape, String> {
        let mut pairs = BTreeMap::new();
        for pair in text.split_whitespace() {
            let value = pair.split_once('=').and_then(|(key, value)| Some((key, value.parse::<u64>().ok()?)));
            let (key, value) =
                value.ok_or_else(|| format!("shape {pair:?}; key=number would be right, as in m=4096"))?;
            if pairs.insert(key.to_string(), value).is_some() {
                return Err(format!("shape gives {key} twice"));
            }
        }
        Ok(Shape(pairs))
    }

    fn take_any(&mut self, key: &str, default: Option<u64>) -> Result<u64, String> {
        self.0.remove(key).or(default).ok_or_else(|| format!("shape lacks {key}"))
    }

    fn take(&mut self, key: &str, default: Option<u64>) -> Result<u64, String> {
        match self.take_any(key, default)? {
            value @ 1..=0x100_0000_0000 => Ok(value),
            value => Err(format!("shape has {key}={value}; from 1 to 2^40 would be right")),
        }
    }

    fn finish(self, operation: &str) -> Result<(), String> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(key) => Err(format!("shape has {key}, which {operation} does not take")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "gpu,operation,variant,shape,dtype,value,unit,source\n";

    #[test]
    fn assets_are_read() {
        let rows = &UserDatabase::shipped().rows;
        assert!(rows.len() > 150);
        for row in rows {
            assert!(
                super::super::Gpu::named(&row.gpu).is_ok_and(|g| g.name == row.gpu),
                "{}: line {}",
                row.gpu,
                row.line
            );
        }
    }

    #[test]
    fn units_mean_what_they_say() {
        let text = format!(
            "{HEADER}h100-sxm,gemm,,m=1000 n=1000 k=1000,bf16,2,tflops,x\nh100-sxm,gelu,,bytes=1000000,bf16,500,gbps,x\nh100-sxm,gelu,,bytes=5,bf16,7,us,x\n"
        );
        let ps: Vec<f64> = UserDatabase::parse("f", &text).unwrap().rows.iter().map(|r| r.ps).collect();
        assert_eq!(ps, [1e9, 2e6, 7e6]);
    }

    #[test]
    fn faults_name_file_line_and_remedy() {
        for (row, word) in [
            ("h100-sxm,gemm,,m=1 n=1,bf16,1,us,x", "lacks k"),
            ("h100-sxm,gemm,,m=1 n=1 k=0,bf16,1,us,x", "k=0"),
            ("h100-sxm,gemm,,m=1 n=1 k=1 q=1,bf16,1,us,x", "does not take"),
            ("h100-sxm,gemm,,m=1 n=1 k=1,bf17,1,us,x", "bf17"),
            ("h100-sxm,gemm,,m=1 n=1 k=1,bf16,-1,us,x", "positive"),
            ("h100-sxm,gemm,,m=1 n=1 k=1,bf16,1,furlongs,x", "furlongs"),
            ("h100-sxm,gelu,,bytes=1,bf16,1,tflops,x", "gbps"),
            ("h100-sxm,gemm,,m=1 n=1 k=1,bf16,1,us,", "source"),
            ("h100-sxm,gemm,,m:1,bf16,1,us,x", "m:1"),
            ("h100-sxm,attention,,batch=1 heads=1 seq=1 head_dim=1 causal=2,bf16,1,us,x", "causal"),
            ("h100-sxm,gemm,,m=1 n=1 k=1,bf16,1", "fields"),
        ] {
            let error =
                UserDatabase::parse("mine.csv", &format!("# a comment\n{HEADER}{row}\n")).unwrap_err().to_string();
            assert!(error.contains("mine.csv: line 3") && error.contains(word), "{row}: {error}");
        }
        assert!(UserDatabase::parse("mine.csv", HEADER).unwrap_err().to_string().contains("no rows"));
    }
}
