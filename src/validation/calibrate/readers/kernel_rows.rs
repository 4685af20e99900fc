//! Matrix products of a profiler trace, as a database of kernels in the form of `workload.kernels`.
//!
//! Layer: calibrate. A kernel gets the shape of the operation that launched it. The profiler joins the two by an id.

use std::collections::BTreeMap;

use super::nccl_tests::quoted;
use super::profiler_trace::{EventArgs, Inputs, TraceEvent};
use super::statistic::ProfilerStatistic;
use hyperfold_base::json_scalar::JsonScalar;

/// A matrix product: batch, m, n, k, and the type by its name in the database.
type Product = (u64, u64, u64, u64, &'static str);

/// The database as CSV. `None`: the trace has no product with a shape.
pub(super) fn kernel_rows(
    events: &[TraceEvent],
    gpu: &str,
    statistic: ProfilerStatistic,
    file: &str,
) -> Option<String> {
    let mut product_of_id: BTreeMap<u64, Product> = BTreeMap::new();
    for event in events.iter().filter(|e| e.is_operation()) {
        let product = event.args.as_ref().and_then(|args| Some((id(args)?, product(event.name(), args)?)));
        if let Some((id, product)) = product {
            product_of_id.insert(id, product);
        }
    }
    let mut times: BTreeMap<Product, BTreeMap<u64, f64>> = BTreeMap::new();
    for event in events.iter().filter(|e| e.is_kernel()) {
        let Some(id) = event.args.as_deref().and_then(id) else { continue };
        if let Some(product) = product_of_id.get(&id) {
            // A split-K product is one operation with several kernels.
            *times.entry(*product).or_default().entry(id).or_default() += event.duration_us();
        }
    }
    if times.is_empty() {
        return None;
    }
    let mut out = String::from("gpu,operation,variant,shape,dtype,value,unit,source\n");
    for ((batch, m, n, k, dtype), by_id) in times {
        let mut each: Vec<f64> = by_id.into_values().collect();
        let value = statistic.of(&mut each);
        let batch = if batch == 1 { String::new() } else { format!(" batch={batch}") };
        out += &format!("{},gemm,,m={m} n={n} k={k}{batch},{dtype},{value:.3},us,{}\n", quoted(gpu), quoted(file));
    }
    Some(out)
}

fn id(args: &EventArgs) -> Option<u64> {
    args.external_id.number().filter(|x| (0.0..9e15).contains(x)).map(|x| x as u64)
}

/// The matrix product that an operation computes.
fn product(name: &str, args: &EventArgs) -> Option<Product> {
    // The first input of addmm and baddbmm is added to the product.
    let (first, batched) = match name {
        "aten::mm" => (0, false),
        "aten::addmm" => (1, false),
        "aten::bmm" => (0, true),
        "aten::baddbmm" => (1, true),
        _ => return None,
    };
    let a = dims(args.input_dims.get(first)?)?;
    let b = dims(args.input_dims.get(first + 1)?)?;
    let dtype = match args.input_type.get(first)?.as_str()?.trim_start_matches("c10::").to_ascii_lowercase().as_str() {
        "bfloat16" => "bf16",
        "half" => "fp16",
        "float" => "fp32",
        _ => return None,
    };
    match (batched, a.as_slice(), b.as_slice()) {
        (false, &[m, k], &[inner, n]) if inner == k => Some((1, m, n, k, dtype)),
        (true, &[batch, m, k], &[other, inner, n]) if inner == k && other == batch => Some((batch, m, n, k, dtype)),
        _ => None,
    }
}

/// The dimensions, if all are whole numbers above 0.
fn dims(value: &Inputs<JsonScalar>) -> Option<Vec<u64>> {
    value.whole()?.iter().map(|d| d.as_u64().filter(|d| *d > 0)).collect()
}
