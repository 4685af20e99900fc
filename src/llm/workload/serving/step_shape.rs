//! The content of a step, as far as its time depends on it.

/// The shape of a step: what an instance computes in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepShape {
    /// Sequences that decode.
    pub decoding: u32,
    /// Tokens of these that pass through the layers: one each, and those that were drafted.
    pub decode_tokens: u32,
    /// Sum of the tokens that these sequences attend to.
    pub decode_context: u64,
    /// Chunks of prompts: tokens, and tokens of the same prompt before them.
    pub chunks: Vec<(u32, u32)>,
    /// Tokens whose successor is chosen in the step.
    pub outputs: u32,
}

/// How much passes through the layers in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepSize {
    /// All tokens.
    pub tokens: u32,
    /// Sequences that decode.
    pub decoding: u32,
}

impl StepSize {
    /// The size of a step of several instances, each padded to the busiest one.
    pub fn busiest<'a>(shapes: impl Iterator<Item = &'a StepShape>) -> StepSize {
        shapes.fold(StepSize::default(), |busiest, shape| StepSize {
            tokens: busiest.tokens.max(shape.tokens()),
            decoding: busiest.decoding.max(shape.decoding),
        })
    }
}

impl StepShape {
    /// Number of tokens that pass through the layers.
    pub fn tokens(&self) -> u32 {
        self.decode_tokens + self.chunks.iter().map(|c| c.0).sum::<u32>()
    }
}
