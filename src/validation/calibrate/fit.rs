//! Fits parameters: finds the values with which the sweep predicts the measurements best, and how reliable they are.
//!
//! Layer: calibrate. Random choices depend on the seed only, and no result depends on the number of threads.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::calibration::{Calibration, FittedParameter, FittedRow, RowErrors, what_got_worse};
use super::error::CalibrateError;
use super::evaluate::{Evaluator, SweepAsItIs};
use super::objective::{FitObjective, log_error, mean_error};
use super::parameter::FitParameter;
use super::resample::{Determined, LinearModel};
use super::rows::CalibrationRow;
use super::simplex::{SimplexLimits, Vertex, minimise};
use super::weights::{RowWeights, weights};
use hyperfold_config::spec::mix;
use hyperfold_config::sweep::Sweep;
use hyperfold_session::Interrupt;

/// Number of initial candidates per parameter.
const DESIGN_A_PARAMETER: usize = 12;
/// Candidates of a local search per parameter, about.
const STEPS_A_PARAMETER: usize = 40;
/// A fit that is expected to take longer is told so beforehand.
const LONG: Duration = Duration::from_secs(60);
/// Step of a place for slopes: larger than the rounding of values, and small enough to be about linear.
const SLOPE_STEP: f64 = 0.015;
/// Places at which a parameter is tried if it changes nothing near the best point.
const MOVES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// Width of an interval, as a share of the parameter's range, above which the parameter counts as not determined.
const WIDE: f64 = 0.5;
/// Bases of Halton sequences, one per parameter. More parameters are not fitted at once.
const PRIMES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
/// Streams of random numbers.
const OF_DESIGN: u64 = 0xde51;
const OF_FOLDS: u64 = 0xf01d;

/// Settings of a fit.
#[derive(Clone, Copy, Debug)]
pub struct FitSettings {
    /// Weights of the rows. `None`: the file's own weights, else the square root of the times.
    pub weights: Option<RowWeights>,
    /// Weight of the order of rows, relative to squared errors.
    pub order_weight: f64,
    /// Number of local searches, which start from the best initial candidates.
    pub restarts: usize,
    /// Number of parts for cross-validation. Below 2: there is none.
    pub folds: usize,
    /// Seed of initial candidates, parts and resampling.
    pub seed: u64,
    /// Number of threads. No result depends on it.
    pub threads: usize,
}

/// Fits parameters of a sweep to measured rows. `progress` gets messages for the user. If `stop` fires, the best candidate so far is kept.
///
/// # Errors
/// The sweep cannot be run with its own values, or there is nothing to fit.
pub fn fit(
    sweep: &Sweep,
    rows: &[CalibrationRow],
    parameters: &[FitParameter],
    settings: &FitSettings,
    stop: &Interrupt,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Calibration, CalibrateError> {
    let fitted: Vec<usize> = (0..rows.len()).filter(|&i| !rows[i].held_back).collect();
    if fitted.is_empty() {
        return Err(CalibrateError::Input("every measured row is held back; nothing is left to fit".to_string()));
    }
    if parameters.is_empty() || parameters.len() > PRIMES.len() {
        return Err(CalibrateError::Input(format!(
            "--fit names {} keys; 1 to {} can be fitted at once",
            parameters.len(),
            PRIMES.len()
        )));
    }
    if let Some(twice) =
        (1..parameters.len()).find(|&i| parameters[..i].iter().any(|p| p.key.id == parameters[i].key.id))
    {
        return Err(CalibrateError::Input(format!(
            "--fit names `{}` twice; keep one of them",
            parameters[twice].key.name
        )));
    }
    let evaluator = Evaluator::new(sweep, rows, parameters, stop.clone());
    let began = Instant::now();
    let before = evaluator.as_it_is(settings.threads)?;
    if let Some(text) = takes_long(began.elapsed(), parameters.len(), settings) {
        progress(&text);
    }
    let row_weights = settings.weights.unwrap_or_else(|| RowWeights::usual(rows, &before.times_ns));
    let mut rows = rows.to_vec();
    let weights = weights(row_weights, sweep, &rows, &before.times_ns)?;
    rows.iter_mut().zip(weights).for_each(|(row, weight)| row.weight = weight);
    progress(&format!(
        "{} rows to fit, mean error {:.1} %; rows are weighted by: {}",
        fitted.len(),
        mean_error(&rows, &before.predicted, &fitted) * 100.0,
        row_weights.name()
    ));
    let search = Search {
        evaluator: &evaluator,
        objective: FitObjective::new(&rows, settings.order_weight),
        rows: &rows,
        fitted: &fitted,
        parameters,
        settings,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build()?;
    pool.install(|| search.run(before, row_weights, progress))
}

/// What to tell a user whose fit takes more than a minute. `sweep`: how long the sweep with its own values took. `None`: the fit takes less.
fn takes_long(sweep: Duration, n_parameters: usize, settings: &FitSettings) -> Option<String> {
    let candidates = n_parameters * (DESIGN_A_PARAMETER + STEPS_A_PARAMETER * settings.restarts);
    let expected = sweep * candidates as u32;
    (expected > LONG).then(|| {
        format!(
            "the sweep took {:.1} s, so some {candidates} candidates take about {:.0} minutes, and cross-validation as long again; --set workload.analytic=all may make it shorter, --budget 1m ends it early with the best so far",
            sweep.as_secs_f64(),
            (expected.as_secs_f64() / 60.0).ceil()
        )
    })
}

/// Context of a search.
struct Search<'a> {
    evaluator: &'a Evaluator<'a>,
    objective: FitObjective<'a>,
    rows: &'a [CalibrationRow],
    /// Indices of the rows that are fitted.
    fitted: &'a [usize],
    parameters: &'a [FitParameter],
    settings: &'a FitSettings,
}

/// Effect of a parameter on the rows, around the fitted point.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// Fitted rows change with it near its value.
    Here(Determined),
    /// Rows change with it only farther away.
    Elsewhere,
    /// No row changes with it anywhere.
    Nowhere,
    /// No other value of it has a result for every row.
    Immovable,
    /// The fit was stopped before the effect was known.
    Unknown,
}

impl Search<'_> {
    fn run(
        &self,
        before: SweepAsItIs,
        row_weights: RowWeights,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Calibration, CalibrateError> {
        let design = self.design();
        design.par_iter().for_each(|places| drop(self.evaluator.at(places)));
        let best = self.best(&design, self.fitted, self.settings.restarts);
        if best.cost.is_infinite() && !self.evaluator.is_stopped() {
            let why =
                "no candidate within the bounds has a result for every row; give other bounds with --fit KEY=MIN..MAX";
            return Err(CalibrateError::Input(why.to_string()));
        }
        // A stopped search may not have reached its own starting point.
        let as_it_is = self.objective.cost(Some(&before.predicted), self.fitted);
        let keeps_own = self.evaluator.is_stopped() && best.cost >= as_it_is;
        let mut values: Vec<f64> = self.parameters.iter().zip(&best.places).map(|(p, x)| p.value(*x)).collect();
        if keeps_own {
            values = self.parameters.iter().map(|p| p.before).collect();
        }
        let effects = self.effects(&best.places);
        self.leave_idle(&mut values, &effects, best.cost);
        let known = if keeps_own { None } else { self.evaluator.with_values(&values) };
        let after = known.unwrap_or_else(|| before.predicted.clone().into());
        let error = mean_error(self.rows, &after, self.fitted) * 100.0;
        progress(&format!("{} candidates, best mean error {error:.1} %", self.evaluator.n_run()));
        let folds = self.settings.folds.min(self.fitted.len());
        let validates = folds >= 2 && !self.evaluator.is_stopped();
        let cross_validation = validates.then(|| self.cross_validation(&design, folds));
        let cross_validation = cross_validation.filter(|_| !self.evaluator.is_stopped());
        if let Some(error) = cross_validation {
            progress(&format!("{} candidates, cross-validation {:.1} %", self.evaluator.n_run(), error * 100.0));
        }
        let rows: Vec<FittedRow> = (0..self.rows.len())
            .map(|i| FittedRow::new(&self.rows[i], before.predicted[i], after[i], self.rows[i].weight))
            .collect();
        let stopped = self.evaluator.is_stopped();
        let early = stopped.then(|| {
            let n = self.evaluator.n_run();
            format!(
                "the fit was stopped: values are the best of the {n} candidates that had run, and better ones may exist"
            )
        });
        let worse = what_got_worse(&rows, &before.times_ns, row_weights == RowWeights::Time);
        Ok(Calibration {
            parameters: (0..values.len()).map(|k| self.parameter(k, values[k], effects[k])).collect(),
            fitted: RowErrors::of(&rows, false),
            held_back: RowErrors::of(&rows, true),
            warnings: early.into_iter().chain(worse).collect(),
            rows,
            weights: row_weights.name(),
            folds: if cross_validation.is_some() { folds } else { 0 },
            cross_validation,
            candidates: self.evaluator.n_run(),
            stopped,
        })
    }

    /// Effect of each parameter on the rows around a point. A parameter that has no effect near the point is moved over all of its bounds before that is
    /// reported.
    fn effects(&self, places: &[f64]) -> Vec<Effect> {
        if self.evaluator.is_stopped() {
            return vec![Effect::Unknown; places.len()];
        }
        let model = self.linear(places);
        let determined = model.determined(places, self.settings.seed);
        let effect = |k: usize| match determined[k].is_flat {
            false => Effect::Here(determined[k]),
            true => self.moved(places, k),
        };
        let effects = (0..places.len()).map(effect).collect();
        if self.evaluator.is_stopped() { vec![Effect::Unknown; places.len()] } else { effects }
    }

    /// Whether any row, fitted or not, changes when one parameter is moved and the others are not.
    fn moved(&self, places: &[f64], k: usize) -> Effect {
        let Some(here) = self.evaluator.at(places) else { return Effect::Immovable };
        let predicted_at = |place: &f64| {
            let mut moved = places.to_vec();
            moved[k] = *place;
            let is_another = self.parameters[k].value(*place) != self.parameters[k].value(places[k]);
            if is_another { self.evaluator.at(&moved) } else { None }
        };
        let found: Vec<_> = MOVES.par_iter().filter_map(predicted_at).collect();
        match () {
            () if found.is_empty() => Effect::Immovable,
            () if found.iter().all(|moved| *moved == here) => Effect::Nowhere,
            () => Effect::Elsewhere,
        }
    }

    /// Sets parameters without an effect near the best point back to the sweep's own values, if the cost does not increase.
    fn leave_idle(&self, values: &mut [f64], effects: &[Effect], cost: f64) {
        for k in 0..values.len() {
            let fitted = match effects[k] {
                Effect::Here(_) | Effect::Unknown => continue,
                Effect::Nowhere | Effect::Elsewhere | Effect::Immovable => {
                    std::mem::replace(&mut values[k], self.parameters[k].before)
                }
            };
            let own_cost =
                self.objective.cost(self.evaluator.with_values(values).as_deref().map(Vec::as_slice), self.fitted);
            if own_cost > cost {
                values[k] = fitted;
            }
        }
    }

    fn parameter(&self, k: usize, value: f64, effect: Effect) -> FittedParameter {
        let p = &self.parameters[k];
        let (low, high, same_as) = match effect {
            Effect::Here(d) => (p.value(d.low), p.value(d.high), d.same_as),
            _ => (p.min, p.max, None),
        };
        let is_wide = match effect {
            Effect::Here(d) => d.high - d.low > WIDE,
            _ => true,
        };
        let note = match (effect, same_as) {
            (Effect::Nowhere, _) => "no effect on any measured row: left out of the overlay".to_string(),
            (Effect::Elsewhere, _) => {
                "rows depend on it, but not near this value: what fits best does not say where it lies".to_string()
            }
            (Effect::Immovable, _) => "no other value within its bounds has a result for every row".to_string(),
            (Effect::Unknown, _) => "the fit was stopped before its interval was found".to_string(),
            (_, Some(other)) => {
                let other = self.parameters[other].key.name;
                format!("cannot be told apart from {other} by these rows: fit one of the two")
            }
            _ if is_wide => "hardly determined by these rows: its interval is more than half of its bounds".to_string(),
            _ if value == p.min || value == p.max => "ends at a bound; what fits may lie beyond it".to_string(),
            _ => String::new(),
        };
        FittedParameter {
            key: p.key.name,
            before: p.before,
            value,
            low: low.min(value),
            high: high.max(value),
            min: p.min,
            max: p.max,
            determined: same_as.is_none() && !is_wide,
            has_effect: !matches!(effect, Effect::Nowhere),
            note,
            toml: p.toml(value),
        }
    }

    /// The sweep's own values, and then points that fill the unit cube: a Halton sequence, shifted by the seed.
    fn design(&self) -> Vec<Vec<f64>> {
        let n = self.parameters.len();
        let own = self.parameters.iter().map(|p| p.place(p.before)).collect();
        let shift: Vec<f64> = (0..n).map(|k| unit(mix(self.settings.seed, OF_DESIGN, k as u64))).collect();
        let point = |i: usize| (0..n).map(|k| (halton(i as u64 + 1, PRIMES[k]) + shift[k]).fract()).collect();
        std::iter::once(own).chain((0..DESIGN_A_PARAMETER * n).map(point)).collect()
    }

    /// Best result of local searches that start from the best initial candidates and from the sweep's own values. Of equally good results it is the first.
    /// `rows` are the indices of the rows to fit.
    fn best(&self, design: &[Vec<f64>], rows: &[usize], restarts: usize) -> Vertex {
        let cost = |places: &[f64]| self.objective.cost(self.evaluator.at(places).as_deref().map(Vec::as_slice), rows);
        let mut order: Vec<(f64, usize)> = design.iter().enumerate().skip(1).map(|(i, x)| (cost(x), i)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let starts: Vec<usize> = order.iter().take(restarts.max(1) - 1).map(|o| o.1).chain([0]).collect();
        let starts =
            if restarts <= 1 { vec![if cost(&design[0]) <= order[0].0 { 0 } else { order[0].1 }] } else { starts };
        let limits = SimplexLimits { edge: 0.08, tolerance: 5e-4, max_evaluations: 40 + 40 * self.parameters.len() };
        let found: Vec<Vertex> = starts.par_iter().map(|&i| minimise(cost, &design[i], limits)).collect();
        found.into_iter().reduce(|a, b| if b.cost < a.cost { b } else { a }).expect("there is a start")
    }

    /// Linear model of the rows, with slopes from differences around a point.
    fn linear(&self, places: &[f64]) -> LinearModel {
        let (rows, fitted) = (self.rows, self.fitted);
        let side = |k: usize, step: f64| {
            let mut moved = places.to_vec();
            moved[k] = (moved[k] + step).clamp(0.0, 1.0);
            // The places of the rounded values.
            let place = self.parameters[k].place(self.parameters[k].value(moved[k]));
            (place, self.evaluator.at(&moved))
        };
        let sides: Vec<_> = (0..2 * places.len())
            .into_par_iter()
            .map(|i| side(i / 2, if i % 2 == 0 { SLOPE_STEP } else { -SLOPE_STEP }))
            .collect();
        let here = self.evaluator.at(places);
        let slope = |k: usize, row: usize| {
            let own = (self.parameters[k].place(self.parameters[k].value(places[k])), here.clone());
            let [up, down] = [&sides[2 * k], &sides[2 * k + 1]].map(|s| if s.1.is_some() { s } else { &own });
            match (&up.1, &down.1) {
                (Some(a), Some(b)) if up.0 > down.0 => libm::log(a[row] / b[row]) / (up.0 - down.0),
                _ => 0.0,
            }
        };
        let error = |&i: &usize| here.as_ref().map_or(0.0, |p| log_error(&rows[i], p[i]));
        LinearModel {
            errors: fitted.iter().map(error).collect(),
            weights: fitted.iter().map(|&i| rows[i].weight).collect(),
            slopes: (0..places.len()).map(|k| fitted.iter().map(|&i| slope(k, i)).collect()).collect(),
        }
    }

    /// Mean absolute error of rows, predicted by fits to the other rows. The rows are split at random into parts of about equal size.
    fn cross_validation(&self, design: &[Vec<f64>], folds: usize) -> f64 {
        let mut order: Vec<usize> = self.fitted.to_vec();
        order.sort_by_key(|&i| (mix(self.settings.seed, OF_FOLDS, i as u64), i));
        let part = |fold: usize| order.iter().copied().skip(fold).step_by(folds).collect::<Vec<usize>>();
        let errors: Vec<f64> = (0..folds)
            .into_par_iter()
            .map(|fold| {
                let left_out = part(fold);
                let others: Vec<usize> = self.fitted.iter().copied().filter(|i| !left_out.contains(i)).collect();
                let best = self.best(design, &others, 1);
                left_out.len() as f64 * mean_of(self.evaluator, &best, self.rows, &left_out)
            })
            .collect();
        errors.iter().sum::<f64>() / self.fitted.len() as f64
    }
}

/// Mean absolute error of some rows at a point. Infinite if the point has no result.
fn mean_of(evaluator: &Evaluator<'_>, vertex: &Vertex, rows: &[CalibrationRow], fitted: &[usize]) -> f64 {
    evaluator.at(&vertex.places).map_or(f64::INFINITY, |p| mean_error(rows, &p, fitted))
}

/// A number from 0 to 1, from 64 random bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// The n-th number of a Halton sequence: the digits of `n` mirrored at the point.
fn halton(mut n: u64, base: u64) -> f64 {
    let (mut share, mut sum) = (1.0, 0.0);
    while n > 0 {
        share /= base as f64;
        sum += share * (n % base) as f64;
        n /= base;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_of_more_than_a_minute_is_told() {
        let settings = FitSettings { weights: None, order_weight: 0.0, restarts: 2, folds: 0, seed: 1, threads: 1 };
        let told = |ms: u64, n_parameters: usize| takes_long(Duration::from_millis(ms), n_parameters, &settings);
        // 3 keys: 3 x (12 + 2 x 40) candidates.
        assert_eq!(told(200, 3), None);
        let text = told(2000, 3).unwrap();
        assert!(text.starts_with("the sweep took 2.0 s, so some 276 candidates take about 10 minutes"), "{text}");
    }
}
