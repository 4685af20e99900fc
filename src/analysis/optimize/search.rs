//! The search: which candidates are evaluated at which level, and which are chosen.
//!
//! Layer: optimize. There are three levels. All candidates are estimated; `coarse` of them are simulated with coarse packets, in waves; `full` of them are
//! simulated in full. The first wave has the candidates with the best estimates (with several objectives: by all and by the first, in turn), and a few random
//! ones, because estimates may be wrong together. Later waves have those that look best after earlier waves have shown what estimates miss. Every decision is
//! a function of values, budget and seed.

use super::rank::best_first;
use super::residual::CandidateFeatures;
use hyperfold_config::spec::mix;

/// Coarse simulations per full one. With an eighth of the packets, four of them cost half of a full one.
const COARSE_PER_FULL: usize = 4;
/// One of this many candidates of the first wave is random.
const LOT: usize = 4;
/// The first wave is the coarse budget divided by this. Later waves are half as large as the first.
const FIRST: usize = 2;
/// Minimum number of full runs, if there are as many candidates.
const MIN_FULL: usize = 2;
/// One of this many candidates is run in full by default.
const FULL_OF: u64 = 20;

/// Level of detail at which a candidate is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SearchLevel {
    /// Estimated at full size.
    Estimate,
    /// Estimated at coarse size, to compare with the coarse simulation.
    CoarseEstimate,
    /// Simulated with coarse packets.
    Coarse,
}

/// Number of candidates that are simulated at each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Most candidates that are simulated with coarse packets; 0: that level is left out.
    pub coarse: usize,
    /// Most candidates that are run in full.
    pub full: usize,
}

impl Budget {
    /// The budget for this many candidates, `samples` of them in full. `None`: one of twenty, and at least two.
    pub fn new(candidates: usize, samples: Option<u64>) -> Budget {
        let few = (candidates as u64 / FULL_OF).max(MIN_FULL as u64);
        let full = samples.unwrap_or(few).min(candidates as u64) as usize;
        let coarse = (full * COARSE_PER_FULL).min(candidates);
        // If all candidates are run in full, there is nothing to decide.
        Budget { coarse: if full == candidates { 0 } else { coarse }, full }
    }
}

/// Values of one candidate, with signs such that less is better, or why it has none. `None` is a value that the level does not know.
pub type CandidateValues = Result<Vec<Option<f64>>, String>;

/// Evaluates candidates.
pub trait Evaluate {
    /// Why the search must stop.
    type Stop;

    /// How many of a candidate's values are objectives. Later values are only for limits.
    fn objectives(&self) -> usize {
        usize::MAX
    }

    /// Whether candidates have limits.
    fn is_limited(&self) -> bool {
        false
    }

    /// Why a candidate with these values from this level exceeds a limit. `None`: it does not, or that is not known.
    fn beyond(&self, _values: &[Option<f64>], _level: SearchLevel) -> Option<String> {
        None
    }

    /// Values of each of the candidates, in their order.
    ///
    /// # Errors
    /// The search cannot or must not go on.
    fn evaluate(&mut self, level: SearchLevel, candidates: &[usize]) -> Result<Vec<CandidateValues>, Self::Stop>;
}

/// Outcome of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// The candidate is chosen for a full run.
    Full,
    /// The candidate is left out.
    Left {
        /// The level that it reached.
        at: SearchLevel,
        /// Its rank there, from 1.
        rank: usize,
        /// Number of candidates there.
        of: usize,
    },
    /// The candidate has no value.
    Out {
        /// The level that gave none.
        at: SearchLevel,
        /// Reason why there is no value, in words.
        why: String,
    },
}

/// Findings of a search about one candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateFindings {
    /// Its estimated values. `None`: it cannot be estimated.
    pub estimate: Option<Vec<Option<f64>>>,
    /// The estimate, corrected by the coarse simulation.
    pub coarse: Option<Vec<f64>>,
    /// Whether it is chosen, left out, or without a value.
    pub fate: Fate,
}

/// Searches among the candidates of `ranks`, one row each (see [`CandidateFeatures::new`]). Returns the findings, and the chosen candidates in ascending
/// order; the caller runs them.
///
/// # Errors
/// The error that `looking` stops with.
pub fn search<E: Evaluate>(
    ranks: &[Vec<u32>],
    ordered: &[bool],
    budget: Budget,
    seed: u64,
    looking: &mut E,
) -> Result<(Vec<CandidateFindings>, Vec<usize>), E::Stop> {
    let n = ranks.len();
    let all: Vec<usize> = (0..n).collect();
    if budget.full >= n && !looking.is_limited() {
        let found = CandidateFindings { estimate: None, coarse: None, fate: Fate::Full };
        return Ok((vec![found; n], all));
    }
    let objectives = looking.objectives();
    let mut s =
        State { found: Vec::with_capacity(n), coarse_estimate: vec![None; n], beyond: vec![false; n], objectives };
    for verdict in looking.evaluate(SearchLevel::Estimate, &all)? {
        let verdict = verdict.and_then(|values| match looking.beyond(&values, SearchLevel::Estimate) {
            Some(why) => Err(why),
            None => Ok(values),
        });
        let fate = match &verdict {
            Ok(_) => Fate::Left { at: SearchLevel::Estimate, rank: 0, of: 0 },
            Err(why) => Fate::Out { at: SearchLevel::Estimate, why: why.clone() },
        };
        s.found.push(CandidateFindings { estimate: verdict.ok(), coarse: None, fate });
    }
    let alive: Vec<usize> = all.iter().copied().filter(|&i| s.found[i].estimate.is_some()).collect();
    if alive.is_empty() && looking.is_limited() {
        // If no candidate meets the limits, none is chosen.
        return Ok((s.found, Vec::new()));
    }
    if alive.is_empty() {
        // If no candidate has an estimate, some are run in full, so that their rows say why.
        return Ok((s.found, all.into_iter().take(budget.full).collect()));
    }
    let order = s.by_estimate(&alive, seed);
    place(&mut s.found, &order, SearchLevel::Estimate);
    if alive.len() <= budget.full {
        return Ok(s.chosen(order, budget.full));
    }
    let coarse = budget.coarse.min(alive.len());
    let first = coarse.div_ceil(FIRST);
    let lots = first / LOT;
    let promising = s.promising(&order, &alive, seed);
    let mut wave: Vec<usize> = promising[..first - lots].to_vec();
    let mut rest: Vec<usize> = promising[first - lots..].to_vec();
    rest.sort_by_key(|&i| mix(seed, i as u64, 101));
    wave.extend(rest.iter().take(lots));
    s.simulate(wave, looking)?;
    let features = CandidateFeatures::new(ranks, ordered);
    let mut left = coarse - first;
    while left > 0 {
        let wave = left.min(first.div_ceil(2));
        let unseen: Vec<usize> = order.iter().copied().filter(|&i| s.coarse_estimate[i].is_none()).collect();
        let predicted = s.predicted(&features, &unseen, seed, looking);
        s.simulate(predicted.into_iter().take(wave).collect(), looking)?;
        left -= wave;
    }
    let order = s.by_coarse(seed);
    place(&mut s.found, &order, SearchLevel::Coarse);
    // If all coarse simulations failed, the order is by estimates.
    let within_limits: Vec<usize> = alive.iter().copied().filter(|&i| !s.beyond[i]).collect();
    let order = if order.is_empty() { s.by_estimate(&within_limits, seed) } else { order };
    Ok(s.chosen(order, budget.full))
}

/// Records the rank of every candidate at a level.
fn place(found: &mut [CandidateFindings], order: &[usize], level: SearchLevel) {
    for (rank, &i) in order.iter().enumerate() {
        found[i].fate = Fate::Left { at: level, rank: rank + 1, of: order.len() };
    }
}

struct State {
    found: Vec<CandidateFindings>,
    /// Coarse-size estimates of candidates that were evaluated more closely. An empty list if the estimate failed.
    coarse_estimate: Vec<Option<Vec<Option<f64>>>>,
    /// Whether a coarse simulation found a candidate to exceed a limit.
    beyond: Vec<bool>,
    /// How many of a candidate's values are objectives.
    objectives: usize,
}

impl State {
    fn chosen(mut self, order: Vec<usize>, full: usize) -> (Vec<CandidateFindings>, Vec<usize>) {
        let mut chosen: Vec<usize> = order.into_iter().take(full).collect();
        chosen.iter().for_each(|&i| self.found[i].fate = Fate::Full);
        chosen.sort_unstable();
        (self.found, chosen)
    }

    fn by_estimate(&self, alive: &[usize], seed: u64) -> Vec<usize> {
        // An unknown value of an estimate makes no difference.
        let value = |&i: &usize| {
            self.found[i].estimate.iter().flatten().take(self.objectives).map(|v| v.unwrap_or(0.0)).collect()
        };
        let values: Vec<Vec<f64>> = alive.iter().map(value).collect();
        best_first(&values, seed, 0).into_iter().map(|index| alive[index]).collect()
    }

    /// Candidates in turn by all objectives and by the first one alone. Otherwise, designs of which only the price is known would never be simulated if there
    /// are cheaper ones.
    fn promising(&self, order: &[usize], alive: &[usize], seed: u64) -> Vec<usize> {
        let first = |&i: &usize| vec![self.estimate(i, 0).unwrap_or(0.0)];
        let values: Vec<Vec<f64>> = alive.iter().map(first).collect();
        let alone = best_first(&values, seed, 0).into_iter().map(|index| alive[index]);
        let mut seen = vec![false; self.found.len()];
        order
            .iter()
            .copied()
            .zip(alone)
            .flat_map(|(a, b)| [a, b])
            .filter(|&i| !std::mem::replace(&mut seen[i], true))
            .collect()
    }

    fn by_coarse(&self, seed: u64) -> Vec<usize> {
        let (ids, values): (Vec<usize>, Vec<Vec<f64>>) = self
            .found
            .iter()
            .enumerate()
            .filter(|(i, _)| !self.beyond[*i])
            .filter_map(|(i, f)| {
                f.coarse.as_ref()?;
                Some((i, f.coarse.iter().flatten().copied().take(self.objectives).collect()))
            })
            .unzip();
        best_first(&values, seed, 2).into_iter().map(|index| ids[index]).collect()
    }

    /// Simulates a wave of candidates, and corrects their estimates by the results.
    fn simulate<E: Evaluate>(&mut self, mut wave: Vec<usize>, looking: &mut E) -> Result<(), E::Stop> {
        wave.sort_unstable();
        if wave.is_empty() {
            return Ok(());
        }
        let estimates = looking.evaluate(SearchLevel::CoarseEstimate, &wave)?;
        for ((&i, estimate), verdict) in wave.iter().zip(estimates).zip(looking.evaluate(SearchLevel::Coarse, &wave)?) {
            let complete = verdict.and_then(|v| {
                v.into_iter().collect::<Option<Vec<f64>>>().ok_or_else(|| "an objective has no value".to_string())
            });
            self.coarse_estimate[i] = Some(estimate.unwrap_or_default());
            match complete {
                Ok(measured) => {
                    let value = |k: usize, m: f64| corrected(self.estimate(i, k), self.coarse_estimate(i, k), m);
                    let values: Vec<f64> = measured.iter().enumerate().map(|(k, &m)| value(k, m)).collect();
                    let known: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
                    if let Some(why) = looking.beyond(&known, SearchLevel::Coarse) {
                        self.beyond[i] = true;
                        self.found[i].fate = Fate::Out { at: SearchLevel::Coarse, why };
                    }
                    self.found[i].coarse = Some(values);
                }
                Err(why) => self.found[i].fate = Fate::Out { at: SearchLevel::Coarse, why },
            }
        }
        Ok(())
    }

    fn estimate(&self, i: usize, k: usize) -> Option<f64> {
        self.found[i].estimate.as_ref()?.get(k).copied().flatten()
    }

    fn coarse_estimate(&self, i: usize, k: usize) -> Option<f64> {
        self.coarse_estimate[i].as_ref()?.get(k).copied().flatten()
    }

    /// Candidates that were not simulated yet, most promising first.
    fn predicted<E: Evaluate>(
        &self,
        features: &CandidateFeatures,
        left: &[usize],
        seed: u64,
        looking: &E,
    ) -> Vec<usize> {
        let seen: Vec<usize> = (0..self.found.len()).filter(|&i| self.found[i].coarse.is_some()).collect();
        let Some(n) = seen.first().and_then(|&i| self.found[i].coarse.as_ref()).map(Vec::len) else {
            return left.to_vec();
        };
        let mut values = vec![Vec::with_capacity(n); left.len()];
        for k in 0..n {
            let pairs: Vec<(f64, f64)> = seen
                .iter()
                .map(|&i| (self.estimate(i, k).unwrap_or(0.0), self.found[i].coarse.as_ref().map_or(0.0, |c| c[k])))
                .collect();
            // Times and rates are corrected by factors; counts, which may be 0, by differences.
            let by_factor = pairs.iter().all(|(e, c)| e * c > 0.0)
                && left.iter().all(|&i| self.estimate(i, k).is_some_and(|e| e != 0.0));
            let off: Vec<f64> = pairs.iter().map(|(e, c)| if by_factor { libm::log(c / e) } else { c - e }).collect();
            let all = features.predict(&seen, &off);
            for (value, &i) in values.iter_mut().zip(left) {
                let e = self.estimate(i, k).unwrap_or(0.0);
                value.push(if by_factor { e * libm::exp(all[i]) } else { e + all[i] });
            }
        }
        let beyond: Vec<bool> = values
            .iter()
            .map(|v| looking.beyond(&v.iter().copied().map(Some).collect::<Vec<_>>(), SearchLevel::Coarse).is_some())
            .collect();
        values.iter_mut().for_each(|v| v.truncate(self.objectives));
        let mut order = best_first(&values, seed, 1);
        // Candidates that are likely to exceed a limit come last. The sort is stable.
        order.sort_by_key(|&index| beyond[index]);
        order.into_iter().map(|index| left[index]).collect()
    }
}

/// A value at full size, from its estimate, and from the estimate and the simulation at coarse size.
fn corrected(estimate: Option<f64>, coarse_estimate: Option<f64>, measured: f64) -> f64 {
    match (estimate, coarse_estimate) {
        (Some(e), Some(c)) if e * c > 0.0 => e * (measured / c),
        (Some(e), Some(c)) => e + (measured - c),
        _ => measured,
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
