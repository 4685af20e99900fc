//! Models as written in files, and their conversion to [`Model`]: defaults first, then checks.
//!
//! Layer: model. The same tables serve the presets and users' own files.

use serde::Deserialize;

use super::{Dlrm, Layer, Mla, Model, ModelError, ModelFamily, Moe, Transformer};

/// One model, with exactly one of `transformer`, `dlrm` and `blocks`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawModel {
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    #[serde(default)]
    source: String,
    transformer: Option<RawTransformer>,
    dlrm: Option<RawDlrm>,
    blocks: Option<Vec<RawBlock>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTransformer {
    layers: u32,
    hidden: u32,
    heads: u32,
    vocab: u32,
    seq: u32,
    /// Default: 4 x hidden. Required with `gated`.
    ffn: Option<u32>,
    kv_heads: Option<u32>,
    head_dim: Option<u32>,
    #[serde(default)]
    gated: bool,
    #[serde(default)]
    tied: bool,
    #[serde(default)]
    learned_positions: bool,
    #[serde(default = "yes")]
    causal: bool,
    #[serde(default)]
    biases: bool,
    /// Default: LayerNorm if there are biases, else RMSNorm.
    norm: Option<String>,
    #[serde(default)]
    attention_sink: bool,
    #[serde(default)]
    activation_clamp: bool,
    #[serde(default)]
    dropout: bool,
    moe: Option<RawMoe>,
    mla: Option<RawMla>,
    #[serde(default)]
    window: u32,
    #[serde(default)]
    full_every: u32,
    #[serde(default)]
    mtp: u32,
}

/// Maximum number of groups of experts. Our choice: DeepSeek-V3 has 8.
const MAX_EXPERT_GROUPS: u32 = 256;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMoe {
    experts: u32,
    top_k: u32,
    #[serde(default = "one")]
    groups: u32,
    /// Default: all groups.
    top_groups: Option<u32>,
    /// Default: the dense inner size.
    expert_ffn: Option<u32>,
    #[serde(default)]
    shared_experts: u32,
    #[serde(default)]
    dense_layers: u32,
    #[serde(default = "one")]
    every: u32,
    #[serde(default)]
    biases: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMla {
    #[serde(default)]
    q_rank: u32,
    kv_rank: u32,
    rope_dim: u32,
    nope_dim: u32,
    v_dim: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDlrm {
    tables: u32,
    rows_per_table: u64,
    embedding_dim: u32,
    #[serde(default = "one")]
    pooling: u32,
    dense_features: u32,
    bottom_mlp: Vec<u32>,
    top_mlp: Vec<u32>,
}

/// A sequence of layers that is repeated `repeat` times.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBlock {
    #[serde(default = "one")]
    repeat: u32,
    layers: Vec<RawLayer>,
}

/// One layer: a convolution, a matrix, or its totals.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLayer {
    name: String,
    /// Input channels, output channels, width of the square kernel, width of the square output.
    conv: Option<[u64; 4]>,
    /// Numbers of inputs and outputs of a linear layer.
    linear: Option<[u64; 2]>,
    #[serde(default)]
    bias: bool,
    #[serde(default)]
    batch_norm: bool,
    params: Option<u64>,
    flops: Option<u64>,
    activation_bytes: Option<u64>,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

/// Checks of values, each of which names the file.
struct Rules<'a> {
    file: &'a str,
}

impl Rules<'_> {
    fn must(
        &self,
        holds: bool,
        key: &'static str,
        value: impl ToString,
        expected: impl ToString,
    ) -> Result<(), ModelError> {
        if holds {
            return Ok(());
        }
        Err(ModelError::Value {
            file: self.file.to_string(),
            key,
            value: value.to_string(),
            expected: expected.to_string(),
        })
    }

    /// Checks a size: it must be positive, and small enough that products of sizes fit.
    fn size(&self, key: &'static str, value: u32) -> Result<(), ModelError> {
        self.up_to(1 << 20, key, value)
    }

    fn up_to(&self, max: u32, key: &'static str, value: u32) -> Result<(), ModelError> {
        self.must((1..=max).contains(&value), key, value, format!("from 1 to {max}"))
    }
}

impl RawModel {
    /// The model, or the first rule that it violates. `file` is for messages.
    pub(super) fn model(self, file: &str) -> Result<Model, ModelError> {
        let rules = Rules { file };
        rules.must(!self.name.is_empty(), "name", "\"\"", "a name")?;
        let body = match (self.transformer, self.dlrm, self.blocks) {
            (Some(t), None, None) => ModelFamily::Transformer(t.transformer(&rules)?),
            (None, Some(d), None) => ModelFamily::Dlrm(d.dlrm(&rules)?),
            (None, None, Some(blocks)) => ModelFamily::Layers(layers(&blocks, &rules)?),
            _ => {
                let why =
                    format!("model \"{}\" must have exactly one of [transformer], [dlrm] and [[blocks]]", self.name);
                return Err(ModelError::Syntax { place: file.to_string(), why });
            }
        };
        if let ModelFamily::Transformer(t) = &body {
            let weights = rough_weights(t);
            rules.must(
                weights < MAX_WEIGHTS,
                "transformer",
                format!("{} billion weights", (weights / 1e9) as u64),
                "of sizes that make less than 2^50 weights",
            )?;
        }
        Ok(Model { name: self.name, source: self.source, body })
    }
}

/// Maximum number of weights of a model. More would overflow counts per weight. It is a thousand times today's largest model.
const MAX_WEIGHTS: f64 = (1u64 << 50) as f64;

/// An upper bound of the matrices' weights, in floating point, which cannot overflow.
fn rough_weights(t: &Transformer) -> f64 {
    let [layers, h, ffn, heads, vocab, d] = [t.layers, t.hidden, t.ffn, t.heads, t.vocab, t.head_dim].map(f64::from);
    let attention = t.mla.map_or(4.0 * h * heads * d, |m| {
        let [q, kv, rope, nope, v] = [m.q_rank, m.kv_rank, m.rope_dim, m.nope_dim, m.v_dim].map(f64::from);
        (h + heads * (nope + rope)) * q
            + h * heads * (nope + rope)
            + h * (kv + rope)
            + kv * heads * (nope + v)
            + h * heads * v
    });
    let experts = t.moe.map_or(0.0, |m| {
        3.0 * h * f64::from(m.expert_ffn) * f64::from(m.experts + m.shared_experts) + h * f64::from(m.experts)
    });
    let predictions = f64::from(t.mtp) * 2.0 * h * h;
    2.0 * vocab * h
        + f64::from(t.seq) * h
        + predictions
        + (layers + f64::from(t.mtp)) * (attention + 3.0 * h * ffn + experts)
}

impl RawTransformer {
    fn transformer(self, rules: &Rules) -> Result<Transformer, ModelError> {
        for (key, value, max) in [
            ("transformer.layers", self.layers, 1 << 12),
            ("transformer.hidden", self.hidden, 1 << 20),
            ("transformer.heads", self.heads, 1 << 10),
            ("transformer.vocab", self.vocab, 1 << 24),
            ("transformer.seq", self.seq, 1 << 24),
        ] {
            rules.up_to(max, key, value)?;
        }
        rules.must(
            !self.gated || self.ffn.is_some(),
            "transformer.gated",
            true,
            "given together with `ffn`, the inner size of a gated feed-forward part",
        )?;
        rules.must(
            self.head_dim.is_some() || self.mla.is_some() || self.hidden.is_multiple_of(self.heads),
            "transformer.heads",
            self.heads,
            format!("a divisor of `hidden = {}`, or `head_dim` given", self.hidden),
        )?;
        let ffn = self.ffn.unwrap_or(4 * self.hidden);
        let kv_heads = self.kv_heads.unwrap_or(self.heads);
        let head_dim = self.head_dim.unwrap_or(self.mla.as_ref().map_or(self.hidden / self.heads, |m| m.nope_dim));
        rules.up_to(1 << 22, "transformer.ffn", ffn)?;
        rules.up_to(1 << 12, "transformer.head_dim", head_dim)?;
        let divides = kv_heads >= 1 && self.heads.is_multiple_of(kv_heads);
        rules.must(divides, "transformer.kv_heads", kv_heads, format!("a divisor of `heads = {}`", self.heads))?;
        rules.must(self.window <= 1 << 24, "transformer.window", self.window, "at most 16777216 tokens")?;
        rules.must(
            self.full_every <= self.layers && (self.full_every == 0 || self.window > 0),
            "transformer.full_every",
            self.full_every,
            format!("at most `layers = {}`, and given together with `window`", self.layers),
        )?;
        let rms_norm = match self.norm.as_deref() {
            None => !self.biases,
            Some("rmsnorm") => true,
            Some("layernorm") => false,
            Some(other) => {
                rules.must(false, "transformer.norm", format!("{other:?}"), "\"layernorm\" or \"rmsnorm\"")?;
                false
            }
        };
        rules.must(
            !self.activation_clamp || self.gated,
            "transformer.activation_clamp",
            true,
            "given together with `gated`",
        )?;
        let biased = self.biases || !self.moe.as_ref().is_some_and(|m| m.biases);
        rules.must(biased, "transformer.moe.biases", true, "given together with `biases` of the transformer")?;
        rules.must(self.mtp <= 8, "transformer.mtp", self.mtp, "at most 8 modules")?;
        let moe = match self.moe {
            Some(m) => Some(m.moe(ffn, self.layers, rules)?),
            None => None,
        };
        let mla = match self.mla {
            Some(m) => Some(m.mla(rules)?),
            None => None,
        };
        Ok(Transformer {
            layers: self.layers,
            hidden: self.hidden,
            ffn,
            heads: self.heads,
            kv_heads,
            head_dim,
            vocab: self.vocab,
            seq: self.seq,
            gated: self.gated,
            tied: self.tied,
            learned_positions: self.learned_positions,
            causal: self.causal,
            biases: self.biases,
            rms_norm,
            attention_sink: self.attention_sink,
            activation_clamp: self.activation_clamp,
            dropout: self.dropout,
            moe,
            mla,
            window: self.window,
            full_every: self.full_every,
            mtp: self.mtp,
        })
    }
}

impl RawMoe {
    fn moe(self, ffn: u32, layers: u32, rules: &Rules) -> Result<Moe, ModelError> {
        rules.up_to(1 << 16, "transformer.moe.experts", self.experts)?;
        let few = (1..=self.experts).contains(&self.top_k);
        rules.must(few, "transformer.moe.top_k", self.top_k, format!("from 1 to `experts = {}`", self.experts))?;
        let whole = self.groups > 0 && self.groups <= MAX_EXPERT_GROUPS && self.experts.is_multiple_of(self.groups);
        let divisor = format!("a divisor of `experts = {}`, at most {MAX_EXPERT_GROUPS}", self.experts);
        rules.must(whole, "transformer.moe.groups", self.groups, divisor)?;
        let top_groups = self.top_groups.unwrap_or(self.groups);
        let enough = top_groups <= self.groups
            && u64::from(self.experts / self.groups) * u64::from(top_groups) >= u64::from(self.top_k);
        rules.must(
            enough,
            "transformer.moe.top_groups",
            top_groups,
            format!("at most `groups = {}`, and enough to hold `top_k = {}` experts", self.groups, self.top_k),
        )?;
        let expert_ffn = self.expert_ffn.unwrap_or(ffn);
        rules.up_to(1 << 22, "transformer.moe.expert_ffn", expert_ffn)?;
        rules.must(
            self.dense_layers < layers,
            "transformer.moe.dense_layers",
            self.dense_layers,
            format!("less than `layers = {layers}`"),
        )?;
        rules.size("transformer.moe.every", self.every)?;
        rules.must(
            self.shared_experts <= 1 << 10,
            "transformer.moe.shared_experts",
            self.shared_experts,
            "at most 1024",
        )?;
        let Self { experts, top_k, groups, shared_experts, dense_layers, every, biases, .. } = self;
        Ok(Moe { experts, top_k, groups, top_groups, expert_ffn, shared_experts, dense_layers, every, biases })
    }
}

impl RawMla {
    fn mla(self, rules: &Rules) -> Result<Mla, ModelError> {
        for (key, value) in [
            ("transformer.mla.kv_rank", self.kv_rank),
            ("transformer.mla.rope_dim", self.rope_dim),
            ("transformer.mla.nope_dim", self.nope_dim),
            ("transformer.mla.v_dim", self.v_dim),
        ] {
            rules.up_to(1 << 12, key, value)?;
        }
        rules.must(self.q_rank <= 1 << 12, "transformer.mla.q_rank", self.q_rank, "at most 4096")?;
        let Self { q_rank, kv_rank, rope_dim, nope_dim, v_dim } = self;
        Ok(Mla { q_rank, kv_rank, rope_dim, nope_dim, v_dim })
    }
}

impl RawDlrm {
    fn dlrm(self, rules: &Rules) -> Result<Dlrm, ModelError> {
        for (key, value) in [
            ("dlrm.tables", self.tables),
            ("dlrm.embedding_dim", self.embedding_dim),
            ("dlrm.pooling", self.pooling),
            ("dlrm.dense_features", self.dense_features),
        ] {
            rules.size(key, value)?;
        }
        rules.must(
            (1..=1u64 << 36).contains(&self.rows_per_table),
            "dlrm.rows_per_table",
            self.rows_per_table,
            "from 1 to 2^36",
        )?;
        rules.up_to(1 << 16, "dlrm.tables", self.tables)?;
        rules.must(
            self.rows_per_table as f64 * f64::from(self.tables) * f64::from(self.embedding_dim) < MAX_WEIGHTS,
            "dlrm.rows_per_table",
            self.rows_per_table,
            "less: the tables would have 2^50 weights",
        )?;
        let last = self.bottom_mlp.last() == Some(&self.embedding_dim);
        let expected = format!(
            "a list that ends with `embedding_dim = {}`: the dot products need equal sizes",
            self.embedding_dim
        );
        rules.must(last, "dlrm.bottom_mlp", format!("{:?}", self.bottom_mlp), expected)?;
        rules.must(!self.top_mlp.is_empty(), "dlrm.top_mlp", "[]", "a list of widths")?;
        for (key, widths) in [("dlrm.bottom_mlp", &self.bottom_mlp), ("dlrm.top_mlp", &self.top_mlp)] {
            rules.must(widths.len() <= 64, key, format!("{} widths", widths.len()), "at most 64 widths")?;
            for &width in widths {
                rules.size(key, width)?;
            }
        }
        let Self { tables, rows_per_table, embedding_dim, pooling, dense_features, bottom_mlp, top_mlp } = self;
        Ok(Dlrm { tables, rows_per_table, embedding_dim, pooling, dense_features, bottom_mlp, top_mlp })
    }
}

/// All layers in order, with repeats expanded.
fn layers(blocks: &[RawBlock], rules: &Rules) -> Result<Vec<Layer>, ModelError> {
    let mut all = Vec::new();
    for block in blocks {
        rules.up_to(1 << 12, "blocks.repeat", block.repeat)?;
        for k in 1..=block.repeat {
            for raw in &block.layers {
                let mut layer = raw.layer(rules)?;
                if block.repeat > 1 {
                    layer.name = format!("{}_{k}", layer.name);
                }
                all.push(layer);
            }
        }
    }
    rules.must((1..=1 << 13).contains(&all.len()), "blocks", format!("{} layers", all.len()), "of 1 to 8192 layers")?;
    let total = |property: fn(&Layer) -> u64| all.iter().map(|l| property(l) as f64).sum::<f64>();
    let fits = total(|l| l.params) < MAX_WEIGHTS && total(|l| l.activation_bytes) < MAX_WEIGHTS;
    rules.must(
        fits,
        "blocks",
        format!("{} layers", all.len()),
        "of less than 2^50 weights and bytes of activations in all",
    )?;
    Ok(all)
}

impl RawLayer {
    fn layer(&self, rules: &Rules) -> Result<Layer, ModelError> {
        // Larger values would overflow the sums; no real layer is that large.
        let fits = |v: u64| v < 1 << 50;
        let name = self.name.clone();
        if let (None, None, Some(params), Some(flops), Some(activation_bytes)) =
            (self.conv, self.linear, self.params, self.flops, self.activation_bytes)
        {
            rules.must(
                fits(params) && fits(flops) && fits(activation_bytes),
                "blocks.layers",
                name.clone(),
                "of totals below 2^50",
            )?;
            return Ok(Layer { name, params, flops, activation_bytes });
        }
        let totals = self.params.is_some() || self.flops.is_some() || self.activation_bytes.is_some();
        let shape = match (self.conv, self.linear) {
            (Some([inputs, outputs, kernel, width]), None) if !totals => {
                Some((inputs as u128 * (kernel as u128).pow(2), outputs as u128, (width as u128).pow(2)))
            }
            (None, Some([inputs, outputs])) if !totals => Some((inputs as u128, outputs as u128, 1)),
            _ => None,
        };
        let expected = "one with `conv = [in, out, kernel, width]`, `linear = [in, out]`, or all of `params`, `flops` and `activation_bytes`";
        let (inner, out, positions) = match shape {
            Some(shape) => shape,
            None => return Err(rules.must(false, "blocks.layers", name, expected).expect_err("the rule is broken")),
        };
        let (vectors, writes) = (self.bias as u128 + 2 * self.batch_norm as u128, 1 + self.batch_norm as u128);
        let [params, flops, activation_bytes] =
            [inner * out + vectors * out, 2 * inner * out * positions, 2 * out * positions * writes];
        let all_fit = [inner, out, positions].iter().all(|&v| (1..1 << 40).contains(&v))
            && [params, flops, activation_bytes].iter().all(|&v| v < 1 << 50);
        rules.must(all_fit, "blocks.layers", name.clone(), "of sizes from 1, with totals below 2^50")?;
        Ok(Layer { name, params: params as u64, flops: flops as u64, activation_bytes: activation_bytes as u64 })
    }
}
