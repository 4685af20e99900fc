//! Simulates one experiment again, folded, and explains why parts of it were simulated instead of looked up.
//!
//! Layer: host. Begins with an empty memo, so it reports what repeats within the experiment. Formats nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyperfold_columns::{OwnedTables, mode};
use hyperfold_config::spec::Config;
use hyperfold_engine::FoldStats;
use hyperfold_engine::{Engine, is_final, packet_hops};
use hyperfold_fold::{FoldEngine, FoldExplanation, Memo};

use crate::batches::runner::RunOptions;
use crate::setup::error::PrepareError;
use crate::setup::prepare::prepare_tasks;

/// An account of what folding did with an experiment, and why it did not do more.
pub struct FoldReport {
    /// Packet-hops that were simulated, by what made that necessary.
    pub explanation: FoldExplanation,
    /// Counts of folding.
    pub stats: FoldStats,
    /// Packet-hops that the experiment stands for.
    pub packet_hops: u64,
    /// Why the simulation broke off before its end.
    pub cut: Option<String>,
    /// Whether the experiment is not folded in a normal run; it was folded here, without skips.
    pub folded_anyway: bool,
}

/// Simulates the experiment on one thread, for at most `longest`.
///
/// # Errors
/// It cannot be prepared, or is of a kind that cannot be folded.
pub fn explain(
    config: &Config,
    exp_id: u64,
    longest: Option<Duration>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<FoldReport, PrepareError> {
    let mut tables = [prepare_tasks(config, exp_id as u32)?.built.tables];
    let folded_anyway = tables[0].exps[0].modes & mode::FOLD == 0;
    tables[0].exps[0].modes |= mode::FOLD | mode::MEMO;
    let explained: Arc<Mutex<FoldExplanation>> = Arc::default();
    let mut engine = FoldEngine::remembering(Arc::<Memo>::default()).explaining(Arc::clone(&explained));
    let start = Instant::now();
    let mut stats = FoldStats::default();
    let (cut, packet_hops) = OwnedTables::with_views(&mut tables, |batch| {
        let mut cut = None;
        while !is_final(&batch[0]) && cut.is_none() {
            match engine.advance(batch, RunOptions::default().packet_limit, stop) {
                Ok(slice) => {
                    stats = slice.folds.first().copied().unwrap_or_default();
                    cut = slice.failures.into_iter().next().map(|(_, why)| why);
                }
                Err(e) => cut = Some(e.to_string()),
            }
            if stop() {
                cut = Some("interrupted".to_string());
            } else if longest.is_some_and(|longest| start.elapsed() > longest) && !is_final(&batch[0]) {
                cut = Some("--seconds was reached".to_string());
            }
        }
        (cut, packet_hops(&batch[0]))
    });
    let explanation = explained.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(FoldReport { explanation, stats, packet_hops, cut, folded_anyway })
}
