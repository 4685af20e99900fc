//! What a step holds, as far as its time depends on it.

/// What an instance computes in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepShape {
    /// Sequences that get one token each, and the tokens they see together.
    pub decoding: u32,
    pub decode_context: u64,
    /// Pieces of prompts: tokens, and tokens of the same prompt before them.
    pub chunks: Vec<(u32, u32)>,
    /// Sequences whose next token is chosen.
    pub outputs: u32,
}

impl StepShape {
    /// Tokens that pass through the layers.
    pub fn tokens(&self) -> u32 {
        self.decoding + self.chunks.iter().map(|c| c.0).sum::<u32>()
    }
}
