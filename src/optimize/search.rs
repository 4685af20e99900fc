//! The search: who is looked at how closely, and what is left.
//!
//! Layer: optimize. Three levels: all candidates are estimated; `coarse` of them are simulated with coarse packets, in waves; `full` of them in full. The first wave are those with
//! the best estimates (of several objectives by all and by the first in turn), and a few by lot, because estimates may be wrong together; the others those that look best once the waves before have shown what estimates miss.
//! Every decision is a function of values, the budget and the seed.

use super::rank::best_first;
use super::residual::CandidateFeatures;
use crate::spec::mix;

/// Coarse simulations for each full one. With an eighth of the packets four of them cost half a full one.
const COARSE_PER_FULL: usize = 4;
/// Of each so many of the first wave, one is drawn by lot.
const LOT: usize = 4;
/// The first wave is this part of the coarse simulations, later ones are half as large.
const FIRST: usize = 2;
/// Full runs are at least this many where there are so many candidates.
const LEAST_FULL: usize = 2;
/// One of so many candidates is run in full where the user says nothing.
const FULL_OF: u64 = 20;

/// How closely a candidate is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SearchLevel {
    /// Estimated, as it is.
    Estimate,
    /// Estimated at the coarse level's size: what a coarse simulation is held against.
    CoarseEstimate,
    /// Simulated with coarse packets.
    Coarse,
}

/// How many candidates are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub coarse: usize,
    pub full: usize,
}

impl Budget {
    /// The budget of so many candidates, `samples` of them in full; `None`: one of twenty, at least two.
    pub fn new(candidates: usize, samples: Option<u64>) -> Budget {
        let few = (candidates as u64 / FULL_OF).max(LEAST_FULL as u64);
        let full = samples.unwrap_or(few).min(candidates as u64) as usize;
        let coarse = (full * COARSE_PER_FULL).min(candidates);
        // Where all are run in full there is nothing to decide.
        Budget { coarse: if full == candidates { 0 } else { coarse }, full }
    }
}

/// The values of one candidate, less being better, `None` where a level does not know one; or why it has none.
pub type CandidateValues = Result<Vec<Option<f64>>, String>;

/// Looks at candidates.
pub trait Evaluate {
    /// Why the search must stop.
    type Stop;

    /// How many of the values that it finds are to be small; those after them only limits read.
    fn objectives(&self) -> usize {
        usize::MAX
    }

    /// Whether candidates have limits.
    fn is_limited(&self) -> bool {
        false
    }

    /// Why a candidate with these values, found at this level, is beyond a limit; `None`: it is not, or that is not known.
    fn beyond(&self, _values: &[Option<f64>], _level: SearchLevel) -> Option<String> {
        None
    }

    /// One verdict for each of the candidates, in their order.
    ///
    /// # Errors
    /// The search cannot or must not go on.
    fn evaluate(&mut self, level: SearchLevel, candidates: &[usize]) -> Result<Vec<CandidateValues>, Self::Stop>;
}

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// Chosen for a full run.
    Full,
    /// Left out: the level it reached, and its place there among how many.
    Left { at: SearchLevel, rank: usize, of: usize },
    /// It has no value.
    Out { at: SearchLevel, why: String },
}

/// Everything that a search found out about one candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateFindings {
    pub estimate: Option<Vec<Option<f64>>>,
    /// What the coarse simulation makes of the estimate.
    pub coarse: Option<Vec<f64>>,
    pub fate: Fate,
}

/// Searches among as many candidates as `ranks` has rows (see [`CandidateFeatures::new`]). Returns what was found, and the candidates chosen, ascending; they are for the caller to run.
///
/// # Errors
/// What `looking` stops with.
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
        // Whoever asked for limits wants none of them.
        return Ok((s.found, Vec::new()));
    }
    if alive.is_empty() {
        // Their rows say why.
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
    // Where coarse simulations all failed, estimates are what there is.
    let within: Vec<usize> = alive.iter().copied().filter(|&i| !s.beyond[i]).collect();
    let order = if order.is_empty() { s.by_estimate(&within, seed) } else { order };
    Ok(s.chosen(order, budget.full))
}

/// Writes down everybody's place.
fn place(found: &mut [CandidateFindings], order: &[usize], at: SearchLevel) {
    for (rank, &i) in order.iter().enumerate() {
        found[i].fate = Fate::Left { at, rank: rank + 1, of: order.len() };
    }
}

struct State {
    found: Vec<CandidateFindings>,
    /// Of those that were looked at more closely, whatever came of it.
    coarse_estimate: Vec<Option<Vec<Option<f64>>>>,
    /// Those that a coarse simulation found to be beyond a limit.
    beyond: Vec<bool>,
    /// How many values of each are to be small.
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
        // What an estimate does not know makes no difference.
        let value = |&i: &usize| {
            self.found[i].estimate.iter().flatten().take(self.objectives).map(|v| v.unwrap_or(0.0)).collect()
        };
        let values: Vec<Vec<f64>> = alive.iter().map(value).collect();
        best_first(&values, seed, 0).into_iter().map(|at| alive[at]).collect()
    }

    /// By several objectives and by the first alone in turn: what only the price of a design is known of would never be looked at among cheaper ones.
    fn promising(&self, order: &[usize], alive: &[usize], seed: u64) -> Vec<usize> {
        let first = |&i: &usize| vec![self.estimate(i, 0).unwrap_or(0.0)];
        let values: Vec<Vec<f64>> = alive.iter().map(first).collect();
        let alone = best_first(&values, seed, 0).into_iter().map(|at| alive[at]);
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
        best_first(&values, seed, 2).into_iter().map(|at| ids[at]).collect()
    }

    /// Simulates a wave, and corrects the estimates by what that shows.
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

    /// Those not simulated yet, the most promising first.
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
            // Times and rates are off by factors; counts, which may be 0, by differences.
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
        // What is likely to be beyond a limit comes last; stable.
        order.sort_by_key(|&at| beyond[at]);
        order.into_iter().map(|at| left[at]).collect()
    }
}

/// A value of the full size, from its estimate, the coarse size's estimate, and what the coarse size was simulated to be.
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
