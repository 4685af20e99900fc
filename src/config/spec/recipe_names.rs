//! Names of recipes. `recipes` reads what they set.
//!
//! Layer: spec. A file of its own, because the key table names the choices and recipes read their values with the key table.

/// Names of recipes, for the key's choices.
pub static RECIPES: [&str; 13] = [
    "nemo-24.11",
    "nemo-25.02",
    "nemo-25.05",
    "megatron-bridge-25.11",
    "megatron-bridge-26.02",
    "megatron-bridge-26.04",
    "megatron-bridge-26.06",
    "megatron-bridge-26.08",
    "torchtitan-2024",
    "torchtitan-2025",
    "llm-foundry-0.1",
    "deepspeed-0.3",
    "deepspeed-0.4",
];
