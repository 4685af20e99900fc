//! Durations of kernels on one GPU: from measured rows if there are any, else from the roofline.
//!
//! Layer: compute. Each distinct kernel is computed once and cached.
//!
//! Rows of a GPU's baseline are scaled by physics: time by old over new FLOP/s if arithmetic decides, by old over new bandwidth if memory does. (SimAI's two
//! equations, section 3.3, print the inverse ratio.)

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::attention::{backward_curves, forward_curves};
use super::attention_names::operands;
use super::curves::{AttentionCurves, MemoryCurve};
use super::database::{MeasuredKernel, Operation, UserDatabase};
use super::{Class, Dtype, Error, Gpu, Kernel, roofline};

/// Energy of a FLOP of a product inside a layer over that in a benchmark, in 16 and in 8 bit, because operands are those of training. 16 bit: an H100 holds 769
/// TFLOP/s for a minute (assets/reference/gemm_mamf.csv) and 679 by the fitted rows of Megatron-Core, which is 1.13; the energy of bytes explains 0.04 of it.
/// 8 bit: 7 % fits the fitted rows of MLPerf's GPT-3 on H100 and those of Llama 3.1 405B on GB200 best together.
const LAYER_ENERGY: [f64; 2] = [1.09, 1.07];

/// Energy of a FLOP of fused attention over that of a product, forward and backward, from kernels of GB200 that run for 22 to 421 ms over 32,768 tokens
/// (assets/kernels/attention.csv). Forward they hold 1622 TFLOP/s (heads of 128) and 1584 (of 160, without a mask), backward 1226 and 1044. Products hold 1417 by
/// the energy of a FLOP and its power.
const ATTENTION_ENERGY: [f64; 2] = [0.884, 1.248];

/// Queries that one block of fused attention works on: 128 rows in FlashAttention-2 and later.
const ATTENTION_ROWS: u64 = 128;

/// Maximum number of GPUs whose durations [`Timing::shared`] keeps: more than a sweep has, few enough for a linear search.
const MAX_SHARED: usize = 64;

/// A measured product: its shape, and how its duration differs from the roofline.
#[derive(Clone, Debug)]
struct Product {
    /// log2 of m, n, k and batch.
    log_shape: [f64; 4],
    /// log of measured over roofline time.
    log_ratio: f64,
}

/// Durations on one GPU. Threads share it; the cache does not change results.
#[derive(Debug)]
pub struct Timing {
    gpu: Gpu,
    forward: AttentionCurves,
    backward: AttentionCurves,
    products: BTreeMap<Dtype, Vec<Product>>,
    memory: BTreeMap<String, MemoryCurve>,
    known: RwLock<HashMap<Kernel, u64>>,
    /// Durations inside layers.
    known_in_layer: RwLock<HashMap<Kernel, u64>>,
}

impl Timing {
    /// Durations on `gpu`. The user's rows, which may use any of a GPU's names, take precedence over the assets'. A database without a row of this GPU or its
    /// baseline is an error, because it would have no effect.
    pub fn new(gpu: &Gpu, user: Option<&UserDatabase>) -> Result<Timing, Error> {
        let named = |r: &MeasuredKernel| MeasuredKernel {
            gpu: Gpu::named(&r.gpu).map_or_else(|_| r.gpu.clone(), |g| g.name),
            ..r.clone()
        };
        let own: Vec<MeasuredKernel> = user.iter().flat_map(|u| &u.rows).map(named).collect();
        if let Some(user) = user {
            let mine = |r: &MeasuredKernel| r.gpu == gpu.name || r.gpu == gpu.baseline;
            if !own.iter().any(mine) {
                let mut found: Vec<&str> = user.rows.iter().map(|r| r.gpu.as_str()).collect();
                found.sort_unstable();
                found.dedup();
                return Err(Error::DatabaseGpu {
                    file: user.file.clone(),
                    gpu: gpu.name.clone(),
                    found: found.join(", "),
                });
            }
        }
        let rows = UserDatabase::shipped().rows.iter().chain(&own).cloned().collect::<Vec<_>>();
        Ok(Timing::from_rows(gpu, &rows))
    }

    /// Durations on `gpu` by the assets. All callers with an equal GPU share the cache.
    pub fn shared(gpu: &Gpu) -> Arc<Timing> {
        static SHARED: Mutex<Vec<Arc<Timing>>> = Mutex::new(Vec::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(timing) = shared.iter().find(|t| t.gpu == *gpu) {
            return Arc::clone(timing);
        }
        let timing = Arc::new(Timing::from_rows(gpu, &UserDatabase::shipped().rows));
        if shared.len() >= MAX_SHARED {
            shared.remove(0);
        }
        shared.push(Arc::clone(&timing));
        timing
    }

    /// Durations on `gpu` by these rows only. Later rows replace earlier ones of the same kernel.
    pub(super) fn from_rows(gpu: &Gpu, rows: &[MeasuredKernel]) -> Timing {
        let baseline = Gpu::named(&gpu.baseline).unwrap_or_else(|_| gpu.clone());
        let curves = |name: &str, backward| {
            let shipped = if backward {
                backward_curves(rows, name, &gpu.attention)
            } else {
                forward_curves(rows, name, &gpu.attention)
            };
            let operation = if backward { Operation::AttentionBackward } else { Operation::AttentionForward };
            shipped.overlaid(AttentionCurves::collect(rows, name, operation, ""))
        };
        // Attention is bound by arithmetic.
        let peak = match operands(&gpu.attention) {
            Dtype::Bf16 => gpu.peak_16bit(),
            narrow => gpu.peak(narrow) as f64,
        };
        let scaled = |source: &Gpu, backward| {
            let ratio = source.peak(operands(&gpu.attention)) as f64 / (peak * gpu.clock);
            curves(&source.name, backward).map(|_, _, _, value| Some(value * ratio))
        };
        let closer = Gpu::named(&gpu.attention_of).ok();
        let merged_curves = |backward| {
            let mut all = scaled(&baseline, backward);
            if let Some(closer) = &closer {
                all = all.overlaid(scaled(closer, backward));
            }
            if gpu.name == baseline.name { all } else { all.overlaid(curves(&gpu.name, backward)) }
        };
        let mut timing = Timing {
            gpu: gpu.clone(),
            forward: merged_curves(false),
            backward: merged_curves(true),
            products: BTreeMap::new(),
            memory: BTreeMap::new(),
            known: RwLock::default(),
            known_in_layer: RwLock::default(),
        };
        if gpu.name != baseline.name {
            timing.add(rows, &baseline, baseline.memory_bps / gpu.memory_bps);
        }
        // Measurements on the GPU that a user's GPU is like take precedence over those on its baseline.
        if let Some(kin) = Gpu::named(&gpu.kin).ok().filter(|kin| kin.name != gpu.name && kin.name != baseline.name) {
            timing.add(rows, &kin, kin.memory_bps / gpu.memory_bps);
        }
        timing.add(rows, gpu, 1.0);
        timing.memory.values_mut().for_each(MemoryCurve::make_monotone);
        timing
    }

    /// Adds products and memory-bound kernels measured on `owner`.
    fn add(&mut self, rows: &[MeasuredKernel], owner: &Gpu, memory_ratio: f64) {
        for row in rows.iter().filter(|r| r.gpu == owner.name) {
            match row.kernel {
                Kernel::Gemm { m, n, k, batch, dtype, .. } => {
                    let log_ratio = libm::log(row.ps / roofline_ps(owner, &row.kernel));
                    let product = Product { log_shape: logs(m, n, k, batch), log_ratio };
                    let products = self.products.entry(owner.effective(dtype)).or_default();
                    products.retain(|p| p.log_shape != product.log_shape);
                    products.push(product);
                }
                Kernel::Memory { bytes, .. } => {
                    self.memory.entry(row.name.clone()).or_default().insert(bytes, row.ps * memory_ratio)
                }
                Kernel::Attention { .. } | Kernel::Work { .. } => {}
            }
        }
    }

    /// Picoseconds of a product that runs in a benchmark for seconds, until the board's power limits its clock.
    pub(super) fn sustained_ps(&self, kernel: &Kernel) -> u64 {
        let dtype = kernel.dtype().unwrap_or(Dtype::Bf16);
        let flops = kernel.flops() as f64;
        self.ps(kernel).max((flops / self.gpu.power_flops(dtype, 1.0, kernel.bytes() as f64 / flops) * 1e12) as u64)
    }

    /// The GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Picoseconds from the launch of a kernel to its end, alone on the GPU, including the gap before it.
    pub fn ps(&self, kernel: &Kernel) -> u64 {
        if let Some(ps) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(kernel) {
            return *ps;
        }
        let ps = self.compute_ps(kernel) as u64;
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(*kernel, ps);
        ps
    }

    /// Picoseconds of a kernel as [`Self::ps`] counts them, inside a layer. There products are slower, and so are products and attention at the board's power
    /// limit.
    pub fn in_layer_ps(&self, kernel: &Kernel) -> u64 {
        if let Some(ps) = self.known_in_layer.read().unwrap_or_else(PoisonError::into_inner).get(kernel) {
            return *ps;
        }
        let alone_ps = self.ps(kernel);
        let ps = match kernel.class() {
            Class::Gemm => {
                let dtype = self.gpu.effective(kernel.dtype().unwrap_or(Dtype::Bf16));
                let slower_ps = (alone_ps as f64 * self.gpu.in_layer[dtype as usize]) as u64;
                slower_ps.max(self.power_limited_ps(kernel) as u64)
            }
            Class::Attention => alone_ps.max(self.power_limited_ps(kernel) as u64),
            Class::Memory => alone_ps,
        };
        self.known_in_layer.write().unwrap_or_else(PoisonError::into_inner).insert(*kernel, ps);
        ps
    }

    /// Picoseconds of a kernel inside a layer at the rate that the board's power allows; 0 if power does not limit it. Products keep the shape of the roofline:
    /// idle multiprocessors and operands that come late take their time at the same clock.
    fn power_limited_ps(&self, kernel: &Kernel) -> f64 {
        let (flops, bytes) = (kernel.flops() as f64, kernel.bytes() as f64);
        if flops == 0.0 {
            return 0.0;
        }
        match *kernel {
            Kernel::Gemm { m, n, k, batch, kept, apart: true, dtype } => {
                let one = Kernel::Gemm { m, n, k, batch: 1, kept, apart: false, dtype };
                batch as f64 * self.power_limited_ps(&one)
            }
            Kernel::Gemm { dtype, .. } | Kernel::Work { dtype, .. } => {
                // Results that are written afterwards take no power from arithmetic.
                let later = if self.gpu.results_overlap { 0.0 } else { kernel.result_bytes() as f64 };
                let rate = self.gpu.power_flops(dtype, layer_energy(dtype), (bytes - later) / flops);
                if rate >= self.gpu.sustained_flops(dtype) {
                    return 0.0;
                }
                self.gpu.launch_ps as f64 + roofline::seconds_at(&self.gpu, kernel, rate) * 1e12
            }
            Kernel::Attention { dtype, backward, .. } => {
                let dtype = match operands(&self.gpu.attention) {
                    Dtype::Bf16 => dtype,
                    narrow => narrow,
                };
                let energy = layer_energy(dtype) * ATTENTION_ENERGY[usize::from(backward)];
                flops / self.gpu.power_flops(dtype, energy, bytes / flops) * 1e12
            }
            Kernel::Memory { .. } => 0.0,
        }
    }

    /// Picoseconds of several kernels one after another.
    pub fn total_ps<'k>(&self, kernels: impl IntoIterator<Item = &'k Kernel>) -> u64 {
        kernels.into_iter().map(|k| self.ps(k)).sum()
    }

    /// Computes the duration of a kernel in ps.
    fn compute_ps(&self, kernel: &Kernel) -> f64 {
        let roofline = roofline_ps(&self.gpu, kernel);
        let ps = match *kernel {
            Kernel::Gemm { m, n, k, batch, kept, apart: true, dtype } => {
                let one = Kernel::Gemm { m, n, k, batch: 1, kept, apart: false, dtype };
                Some(batch as f64 * self.compute_ps(&one))
            }
            Kernel::Gemm { m, n, k, batch, dtype, .. } => {
                let near =
                    self.products.get(&self.gpu.effective(dtype)).map_or(0.0, |p| log_ratio(p, logs(m, n, k, batch)));
                Some(roofline * libm::exp(near))
            }
            Kernel::Attention { .. } => self.attention_ps(kernel),
            Kernel::Memory { name, bytes } => {
                self.memory.get(name).and_then(|c| c.time_ps(bytes, self.gpu.launch_ps as f64))
            }
            Kernel::Work { .. } => None,
        };
        ps.unwrap_or(roofline) + 0.5
    }

    fn attention_ps(&self, kernel: &Kernel) -> Option<f64> {
        let Kernel::Attention { batch, heads, seq_q, seq_kv, head_dim, causal, backward, dtype, .. } = *kernel else {
            return None;
        };
        let curves = if backward { &self.backward } else { &self.forward };
        let per_flop = curves.ps_per_flop(causal, head_dim, seq_q.min(seq_kv))?;
        // Curves describe GPUs that are filled with blocks. An incomplete last wave leaves multiprocessors idle.
        let blocks = (batch * heads * seq_q.div_ceil(ATTENTION_ROWS)) as f64;
        let waves = libm::ceil(blocks / self.gpu.sms as f64);
        // From eight waves on, the incomplete wave matters as little as where the curves were measured.
        let idle = if waves >= 8.0 { 1.0 } else { waves * self.gpu.sms as f64 / blocks };
        let slower = self.gpu.peak_16bit() / self.gpu.peak(if dtype.bytes() == 1 { Dtype::Bf16 } else { dtype }) as f64;
        let ps = kernel.flops() as f64 * per_flop * idle * slower.max(1.0);
        Some(ps.max(roofline_ps(&self.gpu, kernel)))
    }
}

/// Energy of a FLOP inside a layer over that in a benchmark.
fn layer_energy(dtype: Dtype) -> f64 {
    LAYER_ENERGY[usize::from(dtype.bytes() == 1)]
}

impl Gpu {
    /// Peak FLOP/s of the better of the 16-bit types.
    fn peak_16bit(&self) -> f64 {
        self.peak(Dtype::Bf16).max(self.peak(Dtype::Fp16)) as f64
    }
}

fn roofline_ps(gpu: &Gpu, kernel: &Kernel) -> f64 {
    gpu.launch_ps as f64 + roofline::seconds(gpu, kernel) * 1e12
}

fn logs(m: u64, n: u64, k: u64, batch: u64) -> [f64; 4] {
    [m, n, k, batch].map(|x| libm::log2(x.max(1) as f64))
}

/// log of measured over roofline time near a shape, by Shepard's weights. At the shape of a row it is exactly that row's. Beyond a factor of 2 (in all
/// dimensions together) from any row it is 0. In between it falls off smoothly against a weight of 1 for the roofline.
fn log_ratio(products: &[Product], log_shape: [f64; 4]) -> f64 {
    let (mut sum, mut weights) = (0.0, 1.0);
    for product in products {
        let distance = product.log_shape.iter().zip(&log_shape).map(|(a, b)| (a - b).abs()).sum::<f64>();
        if distance == 0.0 {
            return product.log_ratio;
        }
        if distance < 1.0 {
            let weight = (1.0 - distance) * (1.0 - distance) / (distance * distance);
            sum += weight * product.log_ratio;
            weights += weight;
        }
    }
    sum / weights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(gpu: &str) -> Timing {
        Timing::new(&Gpu::named(gpu).unwrap(), None).unwrap()
    }

    fn attention(seq: u64, head_dim: u64, backward: bool) -> Kernel {
        let heads = 2048 / head_dim;
        Kernel::Attention {
            batch: 16384 / seq,
            heads,
            kv_heads: heads,
            seq_q: seq,
            seq_kv: seq,
            head_dim,
            causal: true,
            backward,
            dtype: Dtype::Bf16,
        }
    }

    #[test]
    fn rows_are_met_exactly() {
        let h100 = timing("h100");
        let gemm = Kernel::gemm(2048, 2048, 13312, Dtype::Bf16);
        let tflops = |k: &Kernel, ps: u64| k.flops() as f64 / ps as f64;
        assert!((tflops(&gemm, h100.ps(&gemm)) - 794.5).abs() < 0.1);
        let fused = attention(4096, 128, false);
        assert!((tflops(&fused, h100.ps(&fused)) - 518.0).abs() < 0.1);
        // Both directions of FlashAttention-2 together, as measured on the A100.
        let a100 = timing("a100");
        let both = a100.ps(&attention(4096, 128, false)) + a100.ps(&attention(4096, 128, true));
        let flops = attention(4096, 128, false).flops() as f64 * 3.5;
        assert!((flops / both as f64 - 173.0).abs() < 0.2);
    }

    #[test]
    fn power_limits_kernels_in_layers_but_not_in_short_benchmarks() {
        let b200 = timing("b200");
        let large = Kernel::gemm(16384, 16384, 16384, Dtype::Bf16);
        let tflops = |k: &Kernel, ps: u64| k.flops() as f64 / ps as f64;
        assert!(tflops(&large, b200.ps(&large)) > 1600.0);
        let in_layer = tflops(&large, b200.in_layer_ps(&large));
        let bound = b200.gpu().power_flops(Dtype::Bf16, LAYER_ENERGY[0], 0.0) / 1e12;
        assert!(in_layer < bound && in_layer > 0.95 * bound, "{in_layer} {bound}");
        for backward in [false, true] {
            let kernel = attention(8192, 128, backward);
            assert!(b200.in_layer_ps(&kernel) > b200.ps(&kernel));
        }
        // Memory bounds a product with one row, and power does not.
        let thin = Kernel::gemm(1, 16384, 16384, Dtype::Bf16);
        assert!((b200.in_layer_ps(&thin) as f64 / b200.ps(&thin) as f64) < 1.06);
        // The experts' products take as long as one after the other.
        let experts = |apart| Kernel::Gemm { m: 512, n: 4096, k: 7168, batch: 32, kept: 0, apart, dtype: Dtype::Bf16 };
        let one = Kernel::gemm(512, 4096, 7168, Dtype::Bf16);
        assert!(b200.in_layer_ps(&experts(true)).abs_diff(32 * b200.in_layer_ps(&one)) < 64);
        assert!(b200.in_layer_ps(&experts(true)) > b200.in_layer_ps(&experts(false)));
    }

    #[test]
    fn gpus_that_do_not_exist_scale_as_physics_has_it() {
        let table: toml::Table =
            "like = 'h100'\nbf16_tflops = 1978.8\nfp16_tflops = 1978.8\nfp8_tflops = 3957.8\nl2_gb_per_s = 18740\nlaunch_ns = 0\nresults_overlap = true"
                .parse()
                .unwrap();
        let fast = Timing::new(&Gpu::parse(&table).unwrap(), None).unwrap();
        let h100 = Timing::new(
            &Gpu::parse(&"like = 'h100'\nlaunch_ns = 0\nresults_overlap = true".parse().unwrap()).unwrap(),
            None,
        )
        .unwrap();
        for kernel in [Kernel::gemm(8192, 8192, 8192, Dtype::Bf16), attention(4096, 128, true)] {
            let ratio = h100.ps(&kernel) as f64 / fast.ps(&kernel) as f64;
            // Memory, which is as fast, takes the results of a product's last wave.
            assert!((ratio - 2.0).abs() < 5e-3, "{kernel:?}: {ratio}");
        }
        let stream = Kernel::Memory { name: "gelu", bytes: 1 << 30 };
        assert_eq!(h100.ps(&stream), fast.ps(&stream));
        let h200 = Timing::new(&Gpu::parse(&"like = 'h200'\nlaunch_ns = 0".parse().unwrap()).unwrap(), None).unwrap();
        let ratio = h100.ps(&stream) as f64 / h200.ps(&stream) as f64;
        assert!((ratio - 4800.0 / 3352.0).abs() < 1e-3, "{ratio}");
    }

    #[test]
    fn results_take_their_time_after_the_products() {
        let h100 = timing("h100");
        let (m, n, k) = (12288, 12288, 2048);
        let product = |kept| Kernel::Gemm { m, n, k, batch: 1, kept, apart: false, dtype: Dtype::Fp8 };
        let written = h100.ps(&product(0));
        // The result is added to FP32 in place: 8 bytes per element instead of 2.
        let more = ((m * n * 6) as f64 / h100.gpu().stream_bps() * 1e12) as u64;
        let added = h100.ps(&product(4));
        assert!(added.abs_diff(written + more) < more / 5, "{added} {written} {more}");
        // If results overlap, only a product that memory cannot keep up with is slowed down.
        let overlapping =
            Timing::new(&Gpu::parse(&"like = 'h100'\nresults_overlap = true".parse().unwrap()).unwrap(), None).unwrap();
        assert!(overlapping.ps(&product(0)) < written);
    }

    #[test]
    fn users_rows_come_first_and_strangers_are_refused() {
        let header = "gpu,operation,variant,shape,dtype,value,unit,source\n";
        let text = format!(
            "{header}h100-sxm,gelu,,bytes=1000000,bf16,100,us,mine\nh100-sxm,gemm,,m=2048 n=2048 k=13312,bf16,300,us,mine\nh100-sxm,attention-forward,,batch=4 heads=16 seq=4096 head_dim=128 causal=1,bf16,1000,us,mine\n"
        );
        let user = UserDatabase::parse("mine.csv", &text).unwrap();
        let h100 = Timing::new(&Gpu::named("h100").unwrap(), Some(&user)).unwrap();
        assert_eq!(h100.ps(&Kernel::Memory { name: "gelu", bytes: 1_000_000 }), 100_000_000);
        assert_eq!(h100.ps(&Kernel::gemm(2048, 2048, 13312, Dtype::Bf16)), 300_000_000);
        assert_eq!(h100.ps(&attention(4096, 128, false)), 1_000_000_000);
        // A GPU that is like it inherits its rows, scaled by the ratio of bandwidths.
        let h200 = Timing::new(&Gpu::named("h200").unwrap(), Some(&user)).unwrap();
        assert_eq!(h200.ps(&Kernel::Memory { name: "gelu", bytes: 1_000_000 }), 69_833_333);
        let error = Timing::new(&Gpu::named("a100").unwrap(), Some(&user)).unwrap_err().to_string();
        assert!(error.contains("mine.csv") && error.contains("a100-80g-sxm") && error.contains("h100-sxm"), "{error}");
    }

    #[test]
    fn no_kernel_is_faster_than_its_half() {
        for gpu in Gpu::names() {
            let timing = timing(&gpu);
            for dtype in [Dtype::Fp32, Dtype::Bf16, Dtype::Fp8, Dtype::Mxfp8, Dtype::Nvfp4] {
                for (m, n, k) in [
                    (64, 64, 64),
                    (1, 4096, 4096),
                    (2048, 2048, 512),
                    (8192, 3072, 6144),
                    (4096, 4096, 4096),
                    (96, 50000, 700),
                ] {
                    let one = timing.ps(&Kernel::gemm(m, n, k, dtype));
                    for more in [
                        Kernel::gemm(2 * m, n, k, dtype),
                        Kernel::gemm(m, 2 * n, k, dtype),
                        Kernel::gemm(m, n, 2 * k, dtype),
                    ] {
                        assert!(timing.ps(&more) >= one, "{gpu}: {more:?}");
                    }
                }
            }
            let mut before = 0;
            for seq in [128, 256, 512, 1024, 2048, 4096, 8192, 16384] {
                let kernel = Kernel::Attention {
                    batch: 2,
                    heads: 8,
                    kv_heads: 8,
                    seq_q: seq,
                    seq_kv: seq,
                    head_dim: 96,
                    causal: true,
                    backward: true,
                    dtype: Dtype::Bf16,
                };
                assert!(timing.ps(&kernel) > before, "{gpu}: {seq}");
                before = timing.ps(&kernel);
            }
        }
    }

    #[test]
    fn nothing_beats_the_peak() {
        for gpu in Gpu::names() {
            let timing = timing(&gpu);
            for size in [64u64, 512, 4096, 32768] {
                let kernel = Kernel::gemm(size, size, size, Dtype::Bf16);
                let rate = kernel.flops() as f64 * 1e12 / timing.ps(&kernel) as f64;
                assert!(rate < timing.gpu().peak(Dtype::Bf16) as f64, "{gpu}: {size}");
            }
        }
    }
}
