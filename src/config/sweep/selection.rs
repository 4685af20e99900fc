//! The part of a sweep that a run takes: `--limit` and `--shard`.
//!
//! Layer: sweep. Knows no experiments.

/// The experiments that `--limit` and `--shard` select.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only experiments with a smaller `exp_id` are selected.
    pub limit: Option<u64>,
    /// Only experiments of this shard are selected.
    pub shard: Option<Shard>,
}

/// The experiments whose `exp_id` modulo `of` is `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of the shard, from 0.
    pub index: u64,
    /// Number of shards.
    pub of: u64,
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// Reads `I/N` with `0 <= I < N`.
    fn from_str(s: &str) -> Result<Shard, String> {
        let parts = s.split_once('/').and_then(|(i, n)| Some((i.trim().parse().ok()?, n.trim().parse().ok()?)));
        match parts {
            Some((index, of)) if index < of => Ok(Shard { index, of }),
            _ => Err(format!("`{s}` is not a shard; write I/N with I from 0 to N - 1, for example 0/4")),
        }
    }
}
