//! Sizes of one rank's share of a layer, and the steps that every linear layer consists of.

use crate::collective::CollectiveOp;
use crate::model::{Fp8Scaling, Framework, Layout, Precision, Transformer};

use super::super::{Dtype, Kernel};
use super::part::{Among, KernelRole, LayerPart, LayerStep, Site};

/// Builds the steps of one rank's share of a layer.
pub(super) struct Builder<'a> {
    pub model: &'a Transformer,
    pub layout: &'a Layout,
    /// Tokens of a micro-batch on this rank where tensor-parallel ranks work on the same tokens.
    pub tokens: u64,
    /// Tokens on this rank in norms, dropout and residuals: a share of `tokens` with sequence parallelism.
    pub local_tokens: u64,
    pub hidden: u64,
    pub tp: u64,
    /// Type of activations, and of products outside FP8.
    pub dtype: Dtype,
    /// Type of the products of linear layers.
    pub linear: Dtype,
    /// Bytes of an activation.
    pub bytes: u64,
    /// Whether attention sees only a window of the sequence.
    pub windowed: bool,
    /// Whether gradients of biases have kernels of their own. Otherwise the products of weights' gradients include them.
    pub bias_grads: bool,
    /// Role of forward computations: forward or recomputation.
    pub forward: KernelRole,
    /// Steps added so far.
    pub steps: Vec<LayerStep>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(model: &'a Transformer, layout: &'a Layout, forward: KernelRole) -> Builder<'a> {
        let tokens = layout.microbatch as u64 * layout.seq as u64 / layout.cp as u64;
        let tp = layout.tp as u64;
        let dtype = activation_dtype(layout);
        Builder {
            model,
            layout,
            tokens,
            local_tokens: if layout.sequence_parallel { tokens.div_ceil(tp) } else { tokens },
            hidden: model.hidden as u64,
            tp,
            dtype,
            linear: Dtype::of(layout.precision, dtype),
            bytes: dtype.bytes(),
            windowed: false,
            bias_grads: model.biases,
            forward,
            steps: Vec::new(),
        }
    }

    pub(super) fn kernel(&mut self, site: Site, role: KernelRole, kernel: Kernel) {
        self.steps.push(LayerStep::Kernel { part: LayerPart { site, role }, kernel });
    }

    /// Adds a kernel bound by memory, unless it has no bytes.
    pub(super) fn memory(&mut self, site: Site, role: KernelRole, name: &'static str, bytes: u64) {
        if bytes > 0 {
            self.kernel(site, role, Kernel::Memory { name, bytes });
        }
    }

    /// Type of the products of linear layers in a layer. Logits have another type.
    pub(super) fn layer_dtype(&self) -> Dtype {
        Dtype::of(self.layout.precision, self.dtype)
    }

    /// Whether sequence parallelism has an effect.
    pub(super) fn sequence(&self) -> bool {
        self.layout.sequence_parallel && self.tp > 1
    }

    /// Bytes of the activations that tensor-parallel ranks exchange.
    pub(super) fn exchanged(&self, tokens: u64) -> u64 {
        tokens * self.hidden * self.bytes
    }

    pub(super) fn exchange(&mut self, among: Among, op: CollectiveOp, bytes: u64, needed_by: Option<LayerPart>) {
        self.steps.push(LayerStep::Exchange { among, op, bytes, needed_by });
    }

    /// Bytes of the operands of products that tensor-parallel ranks gather, in so many orders of each. Transformer Engine converts them before it gathers them
    /// (`gather_along_first_dim` and `grad_output_preprocess` at v1.11; blocks at v2.8). Factors by block need both orders of an output's gradient. The logits
    /// are in 16 bit, and so is what latent attention compresses. Other frameworks gather 16 bit.
    fn gathered(&self, site: Site, tokens: u64, block_orders: u64) -> u64 {
        let wide = match site {
            Site::Logits | Site::Embedding => true,
            Site::Qkv => self.model.mla.is_some(),
            _ => false,
        };
        let orders = match self.layout.precision {
            Precision::Fp8 => 1,
            Precision::Bf16 | Precision::Mxfp8 | Precision::Nvfp4 => block_orders,
        };
        if wide || !self.layout.quantised() || self.layout.framework == Framework::Fsdp2 {
            return self.exchanged(tokens);
        }
        tokens * self.hidden * orders * self.layout.precision.bytes_of_32() / 32
    }

    /// Adds the exchange before a column-parallel layer: with sequence parallelism the shares of its input are gathered.
    pub(super) fn enter_forward(&mut self, site: Site, tokens: u64) {
        if self.sequence() {
            let part = LayerPart { site, role: self.forward };
            self.agree_on_scale(site, self.forward);
            self.exchange(Among::Tp, CollectiveOp::AllGather, self.gathered(site, tokens, 1), Some(part));
        }
    }

    /// Adds the exchange by which tensor-parallel ranks agree on the factor of a tensor that they gather, if factors are those of the tensors as they are. FP4
    /// has one by tensor besides those by block (`with_amax_reduction` of Transformer Engine's quantizers for current scaling, v2.2, and FP4, v2.8).
    fn agree_on_scale(&mut self, site: Site, role: KernelRole) {
        let narrow = self.layout.precision == Precision::Nvfp4 && self.layout.framework != Framework::Fsdp2;
        if (narrow || self.scales_current()) && !matches!(site, Site::Logits | Site::Embedding) {
            self.exchange(Among::Tp, CollectiveOp::AllReduce, 4, Some(LayerPart { site, role }));
        }
    }

    /// Adds the exchange after a row-parallel layer: partial sums are added up. With sequence parallelism each rank keeps a share.
    pub(super) fn leave_forward(&mut self, tokens: u64, needed_by: Option<LayerPart>) {
        if self.tp > 1 {
            let op = if self.sequence() { CollectiveOp::ReduceScatter } else { CollectiveOp::AllReduce };
            self.exchange(Among::Tp, op, self.exchanged(tokens), needed_by);
        }
    }

    /// Adds the exchange of the gradient of a row-parallel layer's output: with sequence parallelism its shares are gathered.
    pub(super) fn leave_backward(&mut self, needed_by: LayerPart, tokens: u64) {
        if self.sequence() {
            let bytes = self.gathered(needed_by.site, tokens, 2);
            self.agree_on_scale(needed_by.site, needed_by.role);
            self.exchange(Among::Tp, CollectiveOp::AllGather, bytes, Some(needed_by));
        }
    }

    /// Adds the backward pass of a row-parallel layer of `k` inputs, whose output is the hidden state. Its output's gradient is converted, gathered, and turned
    /// for the product of the weights' gradient. With sequence parallelism each rank converts its share, and the turned copy is made of the whole
    /// (`grad_output_preprocess` of Transformer Engine, v1.11).
    pub(super) fn row_backward(&mut self, site: Site, tokens: u64, k: u64) {
        let (role, hidden) = (KernelRole::InputGrad, self.hidden);
        let part = LayerPart { site, role };
        if self.sequence() {
            match self.turns() {
                true => self.convert(site, role, self.local_tokens * hidden),
                false => self.cast(site, role, self.local_tokens * hidden),
            }
            self.leave_backward(part, tokens);
            self.input_grad(site, tokens, hidden, k, 1);
            self.turn(site, tokens * hidden);
            self.turn(site, tokens * k);
        } else {
            self.leave_backward(part, tokens);
            self.cast(site, role, tokens * hidden);
            self.input_grad(site, tokens, hidden, k, 1);
        }
        self.weight_grad(site, tokens, hidden, k, 1);
    }

    /// Adds the forward product of `m` tokens with a `k` x `n` matrix.
    pub(super) fn linear_forward(&mut self, site: Site, m: u64, n: u64, k: u64, batch: u64) {
        self.scale(site, self.forward, m * k * batch);
        let apart = self.experts_apart(batch);
        self.kernel(site, self.forward, Kernel::Gemm { m, n, k, batch, kept: 0, apart, dtype: self.linear });
    }

    /// Adds the gradients of a linear layer whose output gradient is available: the input's, then the weights'.
    pub(super) fn linear_backward(&mut self, site: Site, m: u64, n: u64, k: u64, batch: u64) {
        self.input_grad(site, m, n, k, batch);
        self.weight_grad(site, m, n, k, batch);
    }

    /// Adds the gradients of a column-parallel layer. The partial sums of the input's gradient are added up while the weights' gradient is computed. With
    /// sequence parallelism only a share of the input was kept, so it is gathered meanwhile.
    pub(super) fn column_backward(&mut self, site: Site, tokens: u64, n: u64, k: u64, then: Site) {
        if self.sequence() {
            let bytes = self.gathered(site, tokens, 1);
            self.exchange(
                Among::Tp,
                CollectiveOp::AllGather,
                bytes,
                Some(LayerPart { site, role: KernelRole::WeightGrad }),
            );
        }
        self.input_grad(site, tokens, n, k, 1);
        self.leave_forward(tokens, Some(LayerPart { site: then, role: KernelRole::InputGrad }));
        self.turn(site, tokens * k);
        self.weight_grad(site, tokens, n, k, 1);
    }

    pub(super) fn input_grad(&mut self, site: Site, m: u64, n: u64, k: u64, batch: u64) {
        self.scale(site, KernelRole::InputGrad, m * n * batch);
        let apart = self.experts_apart(batch);
        self.kernel(
            site,
            KernelRole::InputGrad,
            Kernel::Gemm { m, n: k, k: n, batch, kept: 0, apart, dtype: self.linear },
        );
    }

    /// Whether the products of a rank's experts are kernels of their own, one after the other. Megatron's module for experts is Transformer Engine's, whose
    /// `grouped_linear.py` (v2.9) calls cuBLAS once for each expert. The fused grouped MLP is one kernel, and so are the grouped products of other frameworks, and of
    /// engines that serve, whose activation functions convert.
    fn experts_apart(&self, experts: u64) -> bool {
        let fused = self.layout.fused_grouped_mlp || self.layout.fused_activation_cast;
        experts > 1 && self.layout.framework == Framework::Megatron && !fused
    }

    /// Whether linear layers multiply fewer bits than activations have. Logits never do.
    fn quantised(&self) -> bool {
        self.linear != self.dtype
    }

    /// Adds the conversion of an operand of `elements` elements that no other kernel converts.
    ///
    /// - PyTorch's library (torchao) fuses it with nothing. Scaled by tensor, the operand is read to find the largest, then read and written. Scaled by block, it is read once. Inputs are kept in 16 bit and converted again for the weights' gradient. Shards of weights are converted before they are gathered, which is little.
    /// - Transformer Engine's FP4 conversion is a separate pass too: the operand is read to find the largest, then read and written in both orders, with the Hadamard transform and random rounding inside (arXiv 2509.25149, Section 4). The operand of the weights' gradient is then available.
    fn scale(&mut self, site: Site, role: KernelRole, elements: u64) {
        let written = elements * self.layout.precision.bytes_of_32();
        let bytes = match (self.layout.framework, self.layout.precision) {
            _ if !self.quantised() => 0,
            (Framework::Fsdp2, Precision::Mxfp8) => elements * self.bytes + written / 32,
            (Framework::Fsdp2, _) => elements * 2 * self.bytes + written / 32,
            (_, Precision::Nvfp4) if role != KernelRole::WeightGrad => elements * 2 * self.bytes + 2 * written / 32,
            _ => 0,
        };
        self.memory(site, role, "quantise", bytes);
    }

    /// Adds the weights' gradient, and the kernels by which the framework adds it to the gradient of earlier micro-batches. Megatron's product adds in place.
    pub(super) fn weight_grad(&mut self, site: Site, m: u64, n: u64, k: u64, batch: u64) {
        self.scale(site, KernelRole::WeightGrad, m * k * batch);
        if self.layout.precision == Precision::Mxfp8 {
            // Blocks of the output's gradient lie along the other dimension here.
            self.scale(site, KernelRole::WeightGrad, m * n * batch);
        }
        let in_place = if self.layout.framework == Framework::Megatron { self.layout.bytes.grads as u64 } else { 0 };
        self.kernel(
            site,
            KernelRole::WeightGrad,
            Kernel::Gemm {
                m: n,
                n: k,
                k: m,
                batch,
                kept: in_place,
                apart: self.experts_apart(batch),
                dtype: self.linear,
            },
        );
        if self.bias_grads && !self.quantised() {
            self.memory(site, KernelRole::WeightGrad, "bias-grad", m * n * batch * self.bytes);
        }
        let (gradient, kept) = (self.bytes, self.layout.bytes.grads as u64);
        let bytes = match self.layout.framework {
            Framework::Megatron => 0,
            // The gradient is read and added to the accumulated one, unless this micro-batch is the only one. DeepSpeed copies into its bucket in any case.
            Framework::DeepSpeed => gradient + kept + if self.layout.microbatches() > 1 { kept } else { 0 },
            Framework::Ddp if self.layout.microbatches() > 1 => gradient + 2 * kept,
            // FSDP adds shards: [`shard_kernels`](super::shard_kernels).
            Framework::Ddp | Framework::Fsdp | Framework::Fsdp2 => 0,
        };
        if bytes > 0 {
            self.memory(site, KernelRole::WeightGrad, "gradient-accumulate", n * k * batch * bytes);
        }
    }

    /// Bytes that a conversion to FP8 with a factor for the tensor touches for each element, without those it writes. The factor of the tensor as it is takes a
    /// pass before, over the tensor, for its largest element.
    fn read_to_convert(&self) -> u64 {
        if self.scales_current() { 2 * self.bytes } else { self.bytes }
    }

    /// Whether a tensor's factor is that of the tensor as it is (Transformer Engine's current scaling).
    pub(super) fn scales_current(&self) -> bool {
        self.scales_tensors() && self.layout.fp8_scaling == Fp8Scaling::Current
    }

    /// Whether FP8 operands have one factor a tensor, and are converted by kernels of Transformer Engine.
    fn scales_tensors(&self) -> bool {
        self.linear == Dtype::Fp8 && self.layout.framework != Framework::Fsdp2
    }

    /// Whether copies of FP8 operands are turned by kernels of Transformer Engine: factors are by tensor, and products take one order only.
    fn turns(&self) -> bool {
        self.scales_tensors() && !self.layout.fp8_any_order
    }

    /// Adds the conversion of the result of a norm before a product. Norms convert it themselves if factors come from earlier passes. With factors of the tensors
    /// as they are, a norm writes 16 bit and finds the largest element, and another kernel converts. With factors by block, another kernel makes both orders
    /// (`layernorm_fwd` of Transformer Engine, v2.7 and later).
    pub(super) fn convert_norm(&mut self, site: Site) {
        let elements = self.local_tokens * self.hidden;
        match self.layout.precision {
            Precision::Fp8 if self.scales_current() => {
                self.memory(site, self.forward, "fp8-cast", elements * (self.bytes + 1));
            }
            Precision::Mxfp8 => self.cast(site, self.forward, elements),
            Precision::Bf16 | Precision::Fp8 | Precision::Nvfp4 => {}
        }
    }

    /// Adds the conversion of `elements` to FP8 in one order.
    fn convert(&mut self, site: Site, role: KernelRole, elements: u64) {
        self.memory(site, role, "fp8-cast", elements * (self.read_to_convert() + 1));
    }

    /// Adds the conversion of the input of a row-parallel layer. With sequence parallelism the order that the weights' gradient reads is made in the backward
    /// pass ([`Self::row_backward`]), because Transformer Engine keeps one (`_Linear` at v1.11).
    pub(super) fn cast_row_input(&mut self, site: Site, elements: u64) {
        match self.turns() && self.sequence() {
            true => self.convert(site, self.forward, elements),
            false => self.cast(site, self.forward, elements),
        }
    }

    /// Adds the conversion of `elements` to FP8, in both orders that the forward and the backward product read (Hopper's FP8 products need one operand order,
    /// and factors by block lie along one). It reads the activation once and writes twice; where products take either order, once. Outputs of norms are
    /// converted by the norms' kernels instead (Transformer Engine).
    pub(super) fn cast(&mut self, site: Site, role: KernelRole, elements: u64) {
        if self.layout.framework != Framework::Fsdp2 {
            match self.layout.precision {
                Precision::Fp8 if !self.turns() => self.convert(site, role, elements),
                Precision::Fp8 => self.memory(site, role, "fp8-cast", elements * (self.read_to_convert() + 2)),
                Precision::Mxfp8 => {
                    let written = 2 * elements * Precision::Mxfp8.bytes_of_32() / 32;
                    self.memory(site, role, "mxfp8-cast", elements * self.bytes + written)
                }
                // FP4 converts every operand in `scale`.
                Precision::Bf16 | Precision::Nvfp4 => {}
            }
        }
    }

    /// Whether experts have biases, which only Megatron supports.
    pub(super) fn expert_biases(&self) -> bool {
        self.layout.framework == Framework::Megatron && self.model.moe.is_some_and(|m| m.biases)
    }

    /// Adds the conversion of an activation function's result, or of the gradient that it passes on, unless its own kernel converts.
    pub(super) fn cast_activation(&mut self, site: Site, role: KernelRole, elements: u64) {
        if !self.layout.fused_activation_cast {
            self.cast(site, role, elements);
        }
    }

    /// Adds the transposition of `elements` in FP8 for the product of the weights' gradient, where a conversion wrote one order only. With factors by block, both
    /// orders are written at once, because a block of one is not a block of the other.
    fn turn(&mut self, site: Site, elements: u64) {
        if self.turns() {
            self.memory(site, KernelRole::WeightGrad, "fp8-transpose", elements * 2);
        }
    }
}

/// Type of activations. BF16 stands for both 16-bit types, whose rates are equal where both exist.
pub(super) fn activation_dtype(layout: &Layout) -> Dtype {
    if layout.bytes.activations >= 4 { Dtype::Tf32 } else { Dtype::Bf16 }
}
