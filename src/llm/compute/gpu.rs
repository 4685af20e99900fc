//! GPUs by their specifications: from `assets/gpus.toml`, or from a user's table.
//!
//! Layer: compute. Knows no kernels; `roofline` and the database say what a specification achieves in practice.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::{Dtype, Error};

/// Energy in pJ of a byte that crosses the interface of HBM: 3.92 pJ a bit of HBM2 (O'Connor et al., MICRO 2017, Fine-Grained DRAM). Newer generations publish
/// none.
const PJ_PER_BYTE: f64 = 8.0 * 3.92;

const PS_PER_US: f64 = 1e6;

/// Blocks of work for each multiprocessor up to which attention of decoding sequences takes its shorter time, and from which on the longer one. Between them it
/// grows in proportion (casys-kaist/LLMServingSim@5daddb2, profiler/perf, attention.csv of the RTX PRO 6000 and the RTX 4090).
const DECODE_BLOCKS: [f64; 2] = [0.7, 2.7];

const ASSETS: &str = include_str!("../../../assets/gpus.toml");

/// The properties of a GPU that determine how long kernels take and what fits into its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    /// Canonical name.
    pub name: String,
    /// Data sheet or paper with the numbers.
    pub source: String,
    /// The GPU whose measured kernels are used if this GPU has none, scaled by the ratio of specifications. It is the GPU's own name if it has measured
    /// kernels.
    pub baseline: String,
    /// Name in the database of the fused attention whose measurements apply.
    pub attention: String,
    /// The GPU whose measured attention is used where this one has none, scaled by peaks; it comes before that of `baseline`. Its own name or empty if there is
    /// none.
    pub attention_of: String,
    /// The GPU of the assets that this GPU is, or that it is `like`. Machines and networks with this GPU are treated as having that one.
    pub kin: String,
    /// The GPU whose price and power apply: the one of the assets that this GPU is, or that it is `like`; its own name if there is neither.
    pub priced_as: String,
    /// Dense peak FLOP/s for each of [`Dtype::ALL`]; 0 if the hardware has no units for the type.
    pub peak_flops: [f64; 7],
    /// Share of `peak_flops` that long products sustain within the power limit, for each of [`Dtype::ALL`].
    pub sustained: [f64; 7],
    /// Clock within the power limit divided by the clock without a limit; at most 1.
    pub clock: f64,
    /// Time of a product inside a layer divided by its time in a separate benchmark, for each of [`Dtype::ALL`], where power does not limit it.
    pub in_layer: [f64; 7],
    /// Power limit of the board in watts; 0 if it is not known to limit products.
    pub board_watts: f64,
    /// Watts of the board that no arithmetic draws.
    pub idle_watts: f64,
    /// Energy in pJ of a FLOP of a product that runs in a benchmark for seconds, for each of [`Dtype::ALL`]; 0 if it is not known.
    pub pj_per_flop: [f64; 7],
    /// Specified memory bandwidth in bytes/s.
    pub memory_bps: f64,
    /// Share of that bandwidth that streams reach.
    pub memory_efficiency: f64,
    /// Bandwidth to or from the host's memory in bytes/s, each direction.
    pub host_bps: f64,
    /// Memory in bytes.
    pub capacity_bytes: u64,
    /// Second-level cache in bytes.
    pub l2_bytes: u64,
    /// Rate in bytes/s at which all multiprocessors together read from the second-level cache.
    pub l2_bps: f64,
    /// Number of streaming multiprocessors.
    pub sms: u64,
    /// The number of columns of a matrix product's tile is a multiple of this.
    pub tile_step: u64,
    /// Number of multiprocessors that share what they load for a matrix product; 1 if each loads for itself.
    pub cluster: u64,
    /// Whether a tile's results go to memory while the multiprocessor works on other products.
    pub results_overlap: bool,
    /// Whether matrix products take FP8 operands in either order. Where they do not, operands of the backward pass are kept in both orders (Transformer Engine's
    /// `nvte_is_non_tn_fp8_gemm_supported`: compute capability 10, not 12).
    pub fp8_any_order: bool,
    /// Time of a product or attention kernel that overlaps with communication, divided by its time alone.
    pub slowdown: f64,
    /// Time of a memory-bound kernel that overlaps with communication, divided by its time alone.
    pub slowdown_memory: f64,
    /// Time in ps from the end of a kernel to the beginning of the next one on the same stream, including ramping up and down.
    pub launch_ps: u64,
    /// Time in ps of attention over the keys and values of decoding sequences, beyond that of their bytes and with its launch: with few blocks of work, and with
    /// so many that every multiprocessor has several. 0 if it was not measured.
    pub decode_attention_ps: [u64; 2],
    /// Time in ps of the host's processor for one operation of PyTorch, including the framework's code around it.
    pub host_op_ps: u64,
}

/// A table of specifications as written. Missing keys are taken from `like`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Specification {
    name: Option<String>,
    source: Option<String>,
    like: Option<String>,
    aliases: Option<Vec<String>>,
    /// Whether the database has rows of this GPU.
    measured: Option<bool>,
    attention: Option<String>,
    attention_of: Option<String>,
    fp32_tflops: Option<f64>,
    tf32_tflops: Option<f64>,
    bf16_tflops: Option<f64>,
    fp16_tflops: Option<f64>,
    fp8_tflops: Option<f64>,
    mxfp8_tflops: Option<f64>,
    nvfp4_tflops: Option<f64>,
    sustained: Option<f64>,
    sustained_fp8: Option<f64>,
    sustained_mxfp8: Option<f64>,
    sustained_nvfp4: Option<f64>,
    in_layer: Option<f64>,
    in_layer_fp8: Option<f64>,
    in_layer_nvfp4: Option<f64>,
    board_watts: Option<f64>,
    idle_watts: Option<f64>,
    pj_per_flop: Option<f64>,
    pj_per_flop_fp8: Option<f64>,
    /// Share of the board's power that the GPU is limited to.
    power_limit: Option<f64>,
    memory_gb_per_s: Option<f64>,
    memory_efficiency: Option<f64>,
    memory_gib: Option<f64>,
    host_gb_per_s: Option<f64>,
    l2_mib: Option<f64>,
    l2_gb_per_s: Option<f64>,
    sms: Option<u64>,
    tile_step: Option<u64>,
    cluster: Option<u64>,
    results_overlap: Option<bool>,
    fp8_any_order: Option<bool>,
    slowdown: Option<f64>,
    slowdown_memory: Option<f64>,
    /// `spec` reads the links inside a server from the same table. Here their keys are only accepted.
    #[serde(rename = "links")]
    _links: Option<serde::de::IgnoredAny>,
    #[serde(rename = "links_gbps")]
    _links_gbps: Option<serde::de::IgnoredAny>,
    #[serde(rename = "mesh_links")]
    _mesh_links: Option<serde::de::IgnoredAny>,
    #[serde(rename = "links_ns")]
    _links_ns: Option<serde::de::IgnoredAny>,
    #[serde(rename = "links_source")]
    _links_source: Option<serde::de::IgnoredAny>,
    launch_ns: Option<f64>,
    decode_attention_us: Option<[f64; 2]>,
    host_op_us: Option<f64>,
}

/// The GPUs of the assets, read once, because every experiment asks for its GPU.
fn assets() -> &'static BTreeMap<String, Specification> {
    static READ: OnceLock<BTreeMap<String, Specification>> = OnceLock::new();
    READ.get_or_init(|| toml::from_str(ASSETS).expect("assets/gpus.toml is read by a test"))
}

impl Gpu {
    /// Canonical names of the GPUs in the assets, in alphabetical order.
    pub fn names() -> Vec<String> {
        assets().keys().cloned().collect()
    }

    /// The GPU with this name or alias, in upper or lower case.
    pub fn named(name: &str) -> Result<Gpu, Error> {
        Self::find(assets(), name, 0)
    }

    /// Makes a GPU from a user's table. Its keys are those of `assets/gpus.toml`, `name`, and `power_limit`, the share of the board's power that the GPU is
    /// limited to.
    ///
    /// Power grows with the cube of the clock, because the voltage grows with it. So products and attention slow down by the cube root.
    ///
    /// With `like`, only differences need to be given. Without it all keys are required, except names and `results_overlap`; `slowdown` and `slowdown_memory`
    /// are then 1. Measured kernels come from the GPU that `like` names, scaled; without it from the A100.
    pub fn parse(table: &toml::Table) -> Result<Gpu, Error> {
        let label = table.get("name").and_then(|v| v.as_str()).unwrap_or("custom").to_string();
        let spec: Specification = table
            .clone()
            .try_into()
            .map_err(|e: toml::de::Error| Error::Gpu { name: label.clone(), message: e.message().to_string() })?;
        Self::resolve(assets(), &label, &spec, 0)
    }

    fn find(all: &BTreeMap<String, Specification>, name: &str, depth: u32) -> Result<Gpu, Error> {
        let wanted = name.trim().to_ascii_lowercase();
        let hit = all.iter().find(|(key, spec)| **key == wanted || spec.aliases.iter().flatten().any(|a| *a == wanted));
        match hit {
            Some((key, spec)) => Self::resolve(all, key, spec, depth),
            None => Err(Error::UnknownGpu {
                name: name.to_string(),
                known: all.keys().cloned().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Copies what a user's table does not give from the GPU that it is like. The values are exact, since they do not pass through the rounding units of
    /// tables.
    fn take_over(&mut self, spec: &Specification, peaks: &[Option<f64>; 7], like: &Gpu) {
        fn keep<T: Copy>(given: Option<f64>, own: &mut T, theirs: T) {
            if given.is_none() {
                *own = theirs;
            }
        }
        for ((given, own), theirs) in peaks.iter().zip(&mut self.peak_flops).zip(like.peak_flops) {
            keep(*given, own, theirs);
        }
        keep(spec.memory_gb_per_s, &mut self.memory_bps, like.memory_bps);
        keep(spec.host_gb_per_s, &mut self.host_bps, like.host_bps);
        keep(spec.memory_gib, &mut self.capacity_bytes, like.capacity_bytes);
        keep(spec.l2_mib, &mut self.l2_bytes, like.l2_bytes);
        keep(spec.l2_gb_per_s, &mut self.l2_bps, like.l2_bps);
        keep(spec.launch_ns, &mut self.launch_ps, like.launch_ps);
        keep(spec.host_op_us, &mut self.host_op_ps, like.host_op_ps);
    }

    fn resolve(
        all: &BTreeMap<String, Specification>,
        name: &str,
        spec: &Specification,
        depth: u32,
    ) -> Result<Gpu, Error> {
        let bad = |message: String| Error::Gpu { name: name.to_string(), message };
        if depth > 8 {
            return Err(bad("`like` leads in a circle".to_string()));
        }
        let like = spec.like.as_deref().map(|like| Self::find(all, like, depth + 1)).transpose()?;
        let need = |key: &str, value: Option<f64>, inherited: Option<f64>, min: f64, max: f64| -> Result<f64, Error> {
            let value = value
                .or(inherited)
                .ok_or_else(|| bad(format!("`{key}` is missing; give it, or `like` a GPU that has it")))?;
            if value.is_finite() && value >= min && value <= max {
                Ok(value)
            } else {
                Err(bad(format!("{key} = {value} is out of range; from {min} to {max} would be right")))
            }
        };
        let given = [
            spec.fp32_tflops,
            spec.tf32_tflops,
            spec.bf16_tflops,
            spec.fp16_tflops,
            spec.fp8_tflops,
            spec.mxfp8_tflops,
            spec.nvfp4_tflops,
        ];
        let mut peak_flops = [0.0; 7];
        let mut sustained = [0.0; 7];
        let mut in_layer = [1.0; 7];
        let mut pj_per_flop = [0.0; 7];
        let clock = libm::cbrt(need("power_limit", spec.power_limit, Some(1.0), 0.05, 1.0)?);
        for (i, dtype) in Dtype::ALL.into_iter().enumerate() {
            let narrow = dtype.bytes() == 1;
            let key = format!("{dtype}_tflops");
            // Not every GPU has units for scaling factors by block.
            let none = (dtype as usize > Dtype::Fp8 as usize).then_some(0.0);
            let inherited = like.as_ref().map(|g| g.peak_flops[i] / 1e12).or(none);
            peak_flops[i] = need(&key, given[i], inherited, 0.0, 1e6)? * 1e12;
            let share = match dtype {
                Dtype::Fp8 => spec.sustained_fp8.or(spec.sustained),
                Dtype::Mxfp8 => spec.sustained_mxfp8.or(spec.sustained_fp8).or(spec.sustained),
                Dtype::Nvfp4 => spec.sustained_nvfp4.or(spec.sustained_fp8).or(spec.sustained),
                _ => spec.sustained,
            };
            sustained[i] = need("sustained", share, like.as_ref().map(|g| g.sustained[i]), 0.01, 1.0)? * clock;
            let slower = match dtype {
                Dtype::Nvfp4 => spec.in_layer_nvfp4.or(spec.in_layer_fp8).or(spec.in_layer),
                _ if narrow => spec.in_layer_fp8.or(spec.in_layer),
                _ => spec.in_layer,
            };
            in_layer[i] = need("in_layer", slower, like.as_ref().map(|g| g.in_layer[i]).or(Some(1.05)), 1.0, 10.0)?;
            let (key, energy) = match dtype {
                Dtype::Bf16 | Dtype::Fp16 => ("pj_per_flop", spec.pj_per_flop),
                Dtype::Fp8 | Dtype::Mxfp8 => ("pj_per_flop_fp8", spec.pj_per_flop_fp8),
                Dtype::Fp32 | Dtype::Tf32 | Dtype::Nvfp4 => continue,
            };
            // With another peak in the same power, a FLOP is taken to need less energy or more by as much.
            let inherited = like.as_ref().map_or(0.0, |g| match spec.board_watts {
                None if peak_flops[i] > 0.0 => g.pj_per_flop[i] * g.peak_flops[i] / peak_flops[i],
                _ => g.pj_per_flop[i],
            });
            pj_per_flop[i] = need(key, energy, Some(inherited), 0.0, 1000.0)?;
        }
        if peak_flops[0] == 0.0 {
            return Err(bad("fp32_tflops = 0; every GPU computes in fp32".to_string()));
        }
        let inherit = |property: fn(&Gpu) -> f64| like.as_ref().map(property);
        let measured = spec.measured.unwrap_or(false);
        let decode_us =
            |us: f64| need("decode_attention_us", Some(us), None, 0.0, 1e6).map(|us| (us * PS_PER_US + 0.5) as u64);
        let gib = (1u64 << 30) as f64;
        let mib = (1u64 << 20) as f64;
        let mut gpu = Gpu {
            name: spec.name.clone().unwrap_or_else(|| name.to_string()),
            source: spec.source.clone().unwrap_or_else(|| "given by the user".to_string()),
            baseline: if measured {
                name.to_string()
            } else {
                like.as_ref().map_or_else(|| "a100-80g-sxm".to_string(), |g| g.baseline.clone())
            },
            attention: spec
                .attention
                .as_ref()
                .map(|given| {
                    let known = super::attention_names::named_in_tables();
                    if known.contains(&given.as_str()) {
                        return Ok(given.clone());
                    }
                    Err(bad(format!(
                        "attention = {given:?}; {} would be right, and workload.attention has more",
                        known.join(", ")
                    )))
                })
                .transpose()?
                .or_else(|| like.as_ref().map(|g| g.attention.clone()))
                .unwrap_or_else(|| "FlashAttention-2".to_string()),
            attention_of: match &spec.attention_of {
                Some(other) if !assets().contains_key(other) => {
                    return Err(bad(format!(
                        "attention_of = {other:?}; the full name of a GPU, such as gb200 or h200-sxm, would be right"
                    )));
                }
                Some(other) => other.clone(),
                None => like.as_ref().map(|g| g.attention_of.clone()).unwrap_or_default(),
            },
            kin: match &like {
                _ if assets().contains_key(spec.name.as_deref().unwrap_or(name)) => {
                    spec.name.clone().unwrap_or_else(|| name.to_string())
                }
                Some(like) => like.kin.clone(),
                None => "a100-80g-sxm".to_string(),
            },
            priced_as: match &like {
                Some(like) if !assets().contains_key(spec.name.as_deref().unwrap_or(name)) => like.priced_as.clone(),
                _ => spec.name.clone().unwrap_or_else(|| name.to_string()),
            },
            peak_flops,
            sustained,
            clock,
            in_layer,
            board_watts: need("board_watts", spec.board_watts, inherit(|g| g.board_watts).or(Some(0.0)), 0.0, 1e5)?,
            idle_watts: need("idle_watts", spec.idle_watts, inherit(|g| g.idle_watts).or(Some(0.0)), 0.0, 1e5)?,
            pj_per_flop,
            memory_bps: need("memory_gb_per_s", spec.memory_gb_per_s, inherit(|g| g.memory_bps / 1e9), 1.0, 1e6)? * 1e9,
            memory_efficiency: need(
                "memory_efficiency",
                spec.memory_efficiency,
                inherit(|g| g.memory_efficiency),
                0.01,
                1.0,
            )?,
            host_bps: need(
                "host_gb_per_s",
                spec.host_gb_per_s,
                inherit(|g| g.host_bps / 1e9).or(Some(32.0)),
                0.1,
                1e5,
            )? * 1e9,
            capacity_bytes: (need(
                "memory_gib",
                spec.memory_gib,
                inherit(|g| g.capacity_bytes as f64 / (1u64 << 30) as f64),
                1.0,
                1e6,
            )? * gib) as u64,
            l2_bytes: (need("l2_mib", spec.l2_mib, inherit(|g| g.l2_bytes as f64 / (1u64 << 20) as f64), 0.1, 1e5)?
                * mib) as u64,
            l2_bps: need("l2_gb_per_s", spec.l2_gb_per_s, inherit(|g| g.l2_bps / 1e9), 1.0, 1e7)? * 1e9,
            sms: need("sms", spec.sms.map(|s| s as f64), inherit(|g| g.sms as f64), 1.0, 1e5)? as u64,
            tile_step: need("tile_step", spec.tile_step.map(|s| s as f64), inherit(|g| g.tile_step as f64), 8.0, 256.0)?
                as u64,
            cluster: need("cluster", spec.cluster.map(|s| s as f64), inherit(|g| g.cluster as f64), 1.0, 16.0)? as u64,
            results_overlap: spec.results_overlap.or(like.as_ref().map(|g| g.results_overlap)).unwrap_or(false),
            fp8_any_order: spec.fp8_any_order.or(like.as_ref().map(|g| g.fp8_any_order)).unwrap_or(false),
            slowdown: need("slowdown", spec.slowdown, inherit(|g| g.slowdown).or(Some(1.0)), 1.0, 1000.0)?,
            slowdown_memory: need(
                "slowdown_memory",
                spec.slowdown_memory,
                inherit(|g| g.slowdown_memory).or(Some(1.0)),
                1.0,
                1000.0,
            )?,
            decode_attention_ps: match spec.decode_attention_us {
                Some(us) => [decode_us(us[0])?, decode_us(us[1])?],
                None => like.as_ref().map_or([0, 0], |g| g.decode_attention_ps),
            },
            launch_ps: (need("launch_ns", spec.launch_ns, inherit(|g| g.launch_ps as f64 / 1e3), 0.0, 1e6)? * 1e3)
                as u64,
            host_op_ps: (need(
                "host_op_us",
                spec.host_op_us,
                inherit(|g| g.host_op_ps as f64 / 1e6).or(Some(0.0)),
                0.0,
                1e6,
            )? * 1e6) as u64,
        };
        if let Some(like) = like.filter(|_| !assets().contains_key(name)) {
            gpu.take_over(spec, &given, &like);
        }
        Ok(gpu)
    }

    /// Whether the hardware computes in this type.
    pub fn supports(&self, dtype: Dtype) -> bool {
        self.peak_flops[dtype as usize] > 0.0
    }

    /// The type that the hardware uses instead of one that it lacks: FP8 for FP4, 16 bits for FP8, FP32 for BF16 and TF32.
    pub fn effective(&self, dtype: Dtype) -> Dtype {
        let next = match dtype {
            _ if self.supports(dtype) => return dtype,
            Dtype::Mxfp8 | Dtype::Nvfp4 if self.supports(Dtype::Fp8) => Dtype::Fp8,
            Dtype::Fp8 | Dtype::Mxfp8 | Dtype::Nvfp4 if self.supports(Dtype::Bf16) => Dtype::Bf16,
            Dtype::Fp8 | Dtype::Mxfp8 | Dtype::Nvfp4 if self.supports(Dtype::Fp16) => Dtype::Fp16,
            _ => Dtype::Fp32,
        };
        debug_assert!(self.supports(next), "fp32 is there");
        next
    }

    /// Dense peak FLOP/s in this type (or the type used instead), for MFU.
    pub fn peak(&self, dtype: Dtype) -> u64 {
        self.peak_flops[self.effective(dtype) as usize] as u64
    }

    /// FLOP/s that long products sustain.
    pub fn sustained_flops(&self, dtype: Dtype) -> f64 {
        let i = self.effective(dtype) as usize;
        self.peak_flops[i] * self.sustained[i]
    }

    /// Time in ps of attention over the keys and values of decoding sequences, beyond that of their bytes. `blocks` is the number of sequences times heads of keys
    /// and values. 0 if it was not measured.
    pub fn decode_attention_ps(&self, blocks: u64) -> u64 {
        let [few, many] = self.decode_attention_ps.map(|ps| ps as f64);
        let share = (blocks as f64 / self.sms as f64 - DECODE_BLOCKS[0]) / (DECODE_BLOCKS[1] - DECODE_BLOCKS[0]);
        (few + (many - few) * share.clamp(0.0, 1.0)) as u64
    }

    /// FLOP/s at which a kernel draws all power of the board that is not idle. A FLOP takes `energy_factor` times the energy of a product's FLOP in a benchmark,
    /// and `bytes_per_flop` cross the memory interface meanwhile. It is infinite if power is not known to limit the type. A lower power limit lowers it as it
    /// lowers the clock.
    pub fn power_flops(&self, dtype: Dtype, energy_factor: f64, bytes_per_flop: f64) -> f64 {
        let arithmetic = self.pj_per_flop[self.effective(dtype) as usize] * energy_factor;
        if self.board_watts <= self.idle_watts || arithmetic == 0.0 {
            return f64::INFINITY;
        }
        let watts = self.board_watts - self.idle_watts;
        // More bytes than memory delivers meanwhile slow the kernel down without power.
        let delivered_per_flop = self.stream_bps() / (watts / arithmetic * 1e12);
        watts / (arithmetic + bytes_per_flop.min(delivered_per_flop) * PJ_PER_BYTE) * 1e12 * self.clock
    }

    /// Bytes/s that streams reach.
    pub fn stream_bps(&self) -> f64 {
        self.memory_bps * self.memory_efficiency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> toml::Table {
        text.parse().unwrap()
    }

    #[test]
    fn assets_are_all_read_and_sane() {
        for name in Gpu::names() {
            let gpu = Gpu::named(&name).unwrap();
            assert!(gpu.source.len() > 10, "{name} has no source");
            assert!(Gpu::named(&gpu.baseline).is_ok(), "{name}: baseline {}", gpu.baseline);
            let compute_per_byte = gpu.sustained_flops(Dtype::Fp16) / gpu.stream_bps();
            assert!((20.0..500.0).contains(&compute_per_byte), "{name}: {compute_per_byte} FLOP a byte");
            assert!(gpu.l2_bps > gpu.memory_bps, "{name}: cache slower than memory");
        }
    }

    #[test]
    fn aliases_and_case() {
        assert_eq!(Gpu::named("H100").unwrap().name, "h100-sxm");
        assert_eq!(Gpu::named("a100").unwrap().name, "a100-80g-sxm");
        let error = Gpu::named("h1000").unwrap_err().to_string();
        assert!(error.contains("h1000") && error.contains("h100-sxm"), "{error}");
    }

    #[test]
    fn fictional_gpus_say_what_differs() {
        let gpu = Gpu::parse(&table("name = 'x1'\nlike = 'h100'\nbf16_tflops = 2000")).unwrap();
        let h100 = Gpu::named("h100").unwrap();
        assert_eq!((gpu.name.as_str(), gpu.baseline.as_str()), ("x1", "h100-sxm"));
        let kin = |text: &str| Gpu::parse(&table(text)).unwrap().kin;
        assert_eq!((gpu.kin.as_str(), kin("like = 'b200'").as_str()), ("h100-sxm", "b200-sxm"));
        assert_eq!(kin("like = 'h100'\nname = 'gb200'"), "gb200", "a name of the assets counts");
        assert_eq!(Gpu::named("h200").unwrap().kin, "h200-sxm");
        let priced_as = |text: &str| Gpu::parse(&table(text)).unwrap().priced_as;
        assert_eq!((gpu.priced_as.as_str(), priced_as("like = 'b200'").as_str()), ("h100-sxm", "b200-sxm"));
        assert_eq!(priced_as("like = 'h100'\nname = 'gb200'"), "gb200");
        assert_eq!(gpu.peak(Dtype::Bf16), 2_000_000_000_000_000);
        assert_eq!(gpu.memory_bps, h100.memory_bps);
        assert_eq!(gpu.sustained, h100.sustained);
    }

    #[test]
    fn bad_tables_are_refused_with_the_key() {
        for (text, word) in [
            ("like = 'h100'\nbf16_tflop = 1", "bf16_tflop"),
            ("like = 'h100'\nsms = 0", "sms = 0"),
            ("like = 'nothing'", "nothing"),
            ("bf16_tflops = 100", "missing"),
            ("like = 'h100'\nnvlink_gbps = 900", "nvlink_gbps"),
            ("like = 'h100'\nmemory_gb_per_s = 'fast'", "string"),
        ] {
            let error = Gpu::parse(&table(text)).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn missing_types_have_stand_ins() {
        let (v100, a100) = (Gpu::named("v100").unwrap(), Gpu::named("a100").unwrap());
        assert_eq!(v100.effective(Dtype::Bf16), Dtype::Fp32);
        assert_eq!(v100.effective(Dtype::Fp8), Dtype::Fp16);
        assert_eq!(a100.effective(Dtype::Fp8), Dtype::Bf16);
        assert_eq!(a100.effective(Dtype::Nvfp4), Dtype::Bf16);
        assert_eq!(Gpu::named("h100").unwrap().effective(Dtype::Mxfp8), Dtype::Fp8);
        assert!(Gpu::named("b200").unwrap().supports(Dtype::Nvfp4));
    }

    #[test]
    fn energy_limits_what_a_board_sustains() {
        let parse = |text: &str| Gpu::parse(&text.parse().unwrap()).unwrap();
        let tflops = |gpu: &Gpu, bytes| gpu.power_flops(Dtype::Bf16, 1.0, bytes) / 1e12;
        let b200 = parse("like = 'b200'");
        assert!((tflops(&b200, 0.0) - 850.0 / 0.741).abs() < 1e-6);
        // Bytes that memory delivers take their share of the power.
        assert!((tflops(&b200, 0.001) - 850.0 / (0.741 + 0.001 * PJ_PER_BYTE)).abs() < 1e-6);
        assert!(tflops(&b200, 1.0) > 0.7 * tflops(&b200, 0.0));
        // More power sustains more. A GPU with another peak in the same power is taken to need as much less for each FLOP.
        let (more, faster) = (parse("like = 'b200'\nboard_watts = 1850"), parse("like = 'b200'\nbf16_tflops = 4500"));
        assert!((tflops(&more, 0.0) / tflops(&b200, 0.0) - 2.0).abs() < 1e-9);
        assert!((tflops(&faster, 0.0) / tflops(&b200, 0.0) - 2.0).abs() < 1e-9);
        for unlimited in ["like = 'a100'", "like = 'h100-pcie'", "like = 'b200'\nboard_watts = 0"] {
            assert!(tflops(&parse(unlimited), 0.0).is_infinite(), "{unlimited}");
        }
        assert!(b200.power_flops(Dtype::Nvfp4, 1.0, 0.0).is_infinite());
    }

    #[test]
    fn a_power_limit_lowers_what_is_sustained_by_its_cube_root() {
        let parse = |text: &str| Gpu::parse(&text.parse().unwrap());
        let attention = crate::compute::Kernel::Attention {
            batch: 8,
            heads: 32,
            kv_heads: 8,
            seq_q: 8192,
            seq_kv: 8192,
            head_dim: 128,
            causal: true,
            backward: false,
            dtype: Dtype::Bf16,
        };
        let (full, limited) = (parse("like = 'h100'").unwrap(), parse("like = 'h100'\npower_limit = 0.512").unwrap());
        let ratio = limited.sustained_flops(Dtype::Bf16) / full.sustained_flops(Dtype::Bf16);
        assert!((ratio - 0.8).abs() < 1e-9, "{ratio}");
        let ps = |gpu: &Gpu| crate::compute::Timing::shared(gpu).ps(&attention) as f64;
        assert!((ps(&full) / ps(&limited) - 0.8).abs() < 1e-3);
        assert_eq!((limited.in_layer, limited.host_bps), (full.in_layer, 64e9));
        assert!(parse("like = 'h100'\npower_limit = 1.2").unwrap_err().to_string().contains("power_limit"));
    }
}
