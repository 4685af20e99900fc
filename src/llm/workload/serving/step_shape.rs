//! The content of a step, as far as its time depends on it.

/// The shape of a step: what an instance computes in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepShape {
    /// Sequences that get one token each.
    pub decoding: u32,
    /// Sum of the tokens that these sequences attend to.
    pub decode_context: u64,
    /// Chunks of prompts: tokens, and tokens of the same prompt before them.
    pub chunks: Vec<(u32, u32)>,
    /// Sequences whose next token is chosen in the step.
    pub outputs: u32,
}

impl StepShape {
    /// Number of tokens that pass through the layers.
    pub fn tokens(&self) -> u32 {
        self.decoding + self.chunks.iter().map(|c| c.0).sum::<u32>()
    }
}
