//! Kernels and layers against published measurements, with the bounds that hold today; and how fast a kernel is evaluated.

use std::time::Instant;

use hyperfold_llm::collective::CollectiveOp;
use hyperfold_llm::compute::validation::{ComputeValidationRow, kernels, layers, mean_absolute_error};
use hyperfold_llm::compute::{Dtype, Gpu, Kernel, KernelFeatures, Timing, Trees};

/// Mean absolute error of the rows whose name contains `what` (and how many they are), with the rows in the message.
fn bound(rows: &[ComputeValidationRow], what: &str, count: usize, percent: f64) {
    let rows: Vec<ComputeValidationRow> = rows.iter().filter(|r| r.name.contains(what)).cloned().collect();
    let error = 100.0 * mean_absolute_error(&rows);
    let lines: Vec<String> =
        rows.iter().map(|r| format!("{}: {} {}, measured {}", r.name, r.simulated, r.unit, r.measured)).collect();
    assert_eq!(rows.len(), count, "{what}");
    assert!(error < percent, "{what}: {error:.2} %\n{}", lines.join("\n"));
}

#[test]
fn kernels_are_as_close_as_stated() {
    let (sustained, rows): (Vec<_>, Vec<_>) = kernels().into_iter().partition(|row| row.name.contains("cuBLASLt"));
    bound(&sustained, "cuBLASLt", 43, 15.0);
    bound(&rows, "FlashAttention-2 fwd+bwd", 47, 2.0);
    bound(&rows, "FlashAttention-2 fwd ", 36, 2.0);
    bound(&rows, "FlashAttention-1", 24, 4.0);
    bound(&rows, "FlashAttention-3", 35, 4.0);
    bound(&rows, "cuDNN", 35, 2.0);
    bound(&rows, "PyTorch standard", 40, 10.0);
    bound(&rows, "bf16 cuBLAS", 5, 7.0);
    bound(&rows, "fp8 DeepGEMM", 4, 18.0);
    bound(&rows, "H100 SXM", 2, 5.0);
    bound(&rows, "A100 SXM", 1, 13.0);
    bound(&rows, "B200 SXM", 2, 10.0);
}

#[test]
fn no_row_of_the_database_predicts_itself() {
    // Each is left out, so that hardly any is met exactly.
    let rows = kernels();
    let exact = rows.iter().filter(|r| r.note.contains("database") && r.error().abs() < 1e-9).count();
    assert_eq!(exact, 0);
}

#[test]
fn layers_are_as_close_as_stated() {
    let rows = layers();
    let layers: Vec<ComputeValidationRow> = rows.iter().filter(|r| r.unit == "ms").cloned().collect();
    bound(&layers, "forward", 5, 1.5);
    bound(&layers, "backward", 5, 6.0);
    assert!(rows.iter().all(|r| r.simulated > 0.0 && !r.note.is_empty()));
}

#[test]
fn a_kernel_is_evaluated_in_under_a_microsecond_on_average() {
    let timing = Timing::new(&Gpu::named("h100").unwrap(), None).unwrap();
    let distinct: Vec<Kernel> = (1..200).map(|i| Kernel::gemm(64 * i, 6144, 2048, Dtype::Bf16)).collect();
    let start = Instant::now();
    let mut sum = 0u64;
    for _ in 0..2000 {
        sum = distinct.iter().fold(sum, |s, k| s.wrapping_add(timing.ps(k)));
    }
    let ns = start.elapsed().as_nanos() as f64 / (2000.0 * distinct.len() as f64);
    assert!(sum > 0 && ns < 1000.0, "{ns} ns a kernel");
}

#[test]
fn boosted_trees_are_evaluated_as_xgboost_does() {
    let trees = Trees::parse("slowdown_model.json", include_str!("compute_data/slowdown_model.json")).unwrap();
    let timing = Timing::new(&Gpu::named("h100").unwrap(), None).unwrap();
    let mut lines = include_str!("compute_data/slowdown_predictions.csv").lines().skip(1);
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut rows = 0;
    for line in lines {
        let values: Vec<f64> =
            line.split(',').map(|v| if v.is_empty() { f64::NAN } else { v.parse().unwrap() }).collect();
        let mut features =
            KernelFeatures::new(&timing, &Kernel::gemm(64, 64, 64, Dtype::Bf16), CollectiveOp::AllReduce, 1);
        for (name, value) in names.iter().zip(&values).filter(|(n, _)| **n != "prediction") {
            assert!(features.set(name, *value), "{name}");
        }
        let expected = values[names.len() - 1] as f32;
        assert_eq!(trees.predict(&features), expected, "{line}");
        rows += 1;
    }
    assert_eq!(rows, 40);
}
