//! Finds the values of parameters with which the sweep says what was measured, and how far that can be trusted.
//!
//! Layer: calibrate. Random choices come from the seed; no result depends on the number of threads.

use rayon::prelude::*;
use serde::Serialize;

use super::error::CalibrateError;
use super::evaluate::Evaluator;
use super::objective::{FitObjective, log_error, mean_error};
use super::parameter::FitParameter;
use super::resample::LinearModel;
use super::rows::CalibrationRow;
use super::simplex::{SimplexLimits, Vertex, minimise};
use crate::spec::mix;
use crate::sweep::Sweep;
use crate::validated::nearest_rank_90;

/// Candidates before the search begins, a parameter.
const DESIGN_A_PARAMETER: usize = 12;
/// Distance of places for a slope: beyond the digits of values, within what is about linear.
const SLOPE_STEP: f64 = 0.015;
/// Share of its range from which on an interval says nothing.
const WIDE: f64 = 0.5;
/// Primes that sequences of Halton are made of; more parameters are not fitted at once.
const PRIMES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
/// Streams of random numbers.
const OF_DESIGN: u64 = 0xde51;
const OF_FOLDS: u64 = 0xf01d;

/// How to fit.
#[derive(Clone, Copy, Debug)]
pub struct FitSettings {
    /// Weight of the order of rows beside squared errors.
    pub order_weight: f64,
    /// Searches, from the best candidates of the design.
    pub restarts: usize,
    /// Parts for cross-validation; below 2: none.
    pub folds: usize,
    /// Of design, folds and resampling.
    pub seed: u64,
    /// Threads; no result depends on it.
    pub jobs: usize,
}

/// A fitted parameter.
#[derive(Clone, Debug, Serialize)]
pub struct FittedParameter {
    /// Its key.
    pub key: &'static str,
    /// What the sweep has.
    pub before: f64,
    /// What fits.
    pub value: f64,
    /// Ends of the 95 % interval by resampling rows.
    pub low: f64,
    /// The upper one.
    pub high: f64,
    /// Bounds of the search.
    pub min: f64,
    /// The upper one.
    pub max: f64,
    /// Whether the rows say anything of it.
    pub determined: bool,
    /// What the user should know of it, in words; empty where there is nothing.
    pub note: String,
    /// As TOML.
    #[serde(skip)]
    pub toml: String,
}

/// A measured row and what is said of it.
#[derive(Clone, Debug, Serialize)]
pub struct FittedRow {
    /// As the measured file has it.
    pub name: String,
    /// Of the values.
    pub unit: String,
    /// Measured.
    pub measured: f64,
    /// What the sweep says as it is.
    pub before: f64,
    /// What it says with fitted values.
    pub after: f64,
    /// Not fitted, only checked.
    pub held_back: bool,
}

/// Mean and 90th percentile of absolute relative errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RowErrors {
    /// How many.
    pub rows: usize,
    /// Mean, before and after.
    pub mean: [f64; 2],
    /// 90th percentile, before and after.
    pub p90: [f64; 2],
}

/// What a fit came to.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// In the order asked for.
    pub parameters: Vec<FittedParameter>,
    /// In the order of the measured file.
    pub rows: Vec<FittedRow>,
    /// Of rows that were fitted.
    pub fitted: RowErrors,
    /// Of rows that were held back; none: 0 rows.
    pub held_back: RowErrors,
    /// Mean absolute error of rows by fits without them; `None` without cross-validation.
    pub cross_validation: Option<f64>,
    /// Parts of it.
    pub folds: usize,
    /// Candidates that were run.
    pub candidates: usize,
}

impl Calibration {
    /// Errors of rows, before and after.
    pub fn errors(rows: &[FittedRow], held_back: bool) -> RowErrors {
        let of: Vec<&FittedRow> = rows.iter().filter(|r| r.held_back == held_back).collect();
        let errors = |value: fn(&FittedRow) -> f64| {
            let mut all: Vec<f64> = of.iter().map(|r| (value(r) / r.measured - 1.0).abs()).collect();
            all.sort_by(f64::total_cmp);
            (all.iter().sum::<f64>() / all.len().max(1) as f64, nearest_rank_90(&all))
        };
        let (before, after) = (errors(|r| r.before), errors(|r| r.after));
        RowErrors { rows: of.len(), mean: [before.0, after.0], p90: [before.1, after.1] }
    }
}

/// Fits parameters of a sweep to rows. `progress` is told in words how far it is.
///
/// # Errors
/// The sweep cannot be run as it is, or there is nothing to fit.
pub fn fit(
    sweep: &Sweep,
    rows: &[CalibrationRow],
    parameters: &[FitParameter],
    settings: &FitSettings,
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
    let evaluator = Evaluator::new(sweep, rows, parameters);
    let before = evaluator.as_it_is(settings.jobs)?;
    progress(&format!("{} rows to fit, mean error {:.1} %", fitted.len(), mean_error(rows, &before, &fitted) * 100.0));
    let search = Search {
        evaluator: &evaluator,
        objective: FitObjective::new(rows, settings.order_weight),
        parameters,
        settings,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(settings.jobs).build()?;
    pool.install(|| search.run(rows, &fitted, before, progress))
}

/// What a search needs at every step.
struct Search<'a> {
    evaluator: &'a Evaluator<'a>,
    objective: FitObjective<'a>,
    parameters: &'a [FitParameter],
    settings: &'a FitSettings,
}

impl Search<'_> {
    fn run(
        &self,
        rows: &[CalibrationRow],
        fitted: &[usize],
        before: Vec<f64>,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Calibration, CalibrateError> {
        let design = self.design();
        design.par_iter().for_each(|places| drop(self.evaluator.at(places)));
        let best = self.best(&design, fitted, self.settings.restarts);
        let cost = |v: &Vertex| mean_of(self.evaluator, v, rows, fitted);
        progress(&format!("{} candidates, best mean error {:.1} %", self.evaluator.n_run(), cost(&best) * 100.0));
        if best.cost.is_infinite() {
            let why =
                "no candidate within the bounds has a result for every row; give other bounds with --fit KEY=MIN..MAX";
            return Err(CalibrateError::Input(why.to_string()));
        }
        let model = self.linear(&best.places, rows, fitted);
        let determined = model.determined(&best.places, self.settings.seed);
        let mut values: Vec<f64> = self.parameters.iter().zip(&best.places).map(|(p, x)| p.value(*x)).collect();
        for ((value, p), d) in values.iter_mut().zip(self.parameters).zip(&determined) {
            if d.no_effect {
                *value = p.before;
            }
        }
        let after = self.evaluator.with_values(&values).unwrap_or_else(|| before.clone().into());
        let folds = self.settings.folds.min(fitted.len());
        let cross_validation = (folds >= 2).then(|| self.cross_validation(&design, rows, fitted, folds));
        if let Some(error) = cross_validation {
            progress(&format!("{} candidates, cross-validation {:.1} %", self.evaluator.n_run(), error * 100.0));
        }
        let parameter = |((i, p), d): ((usize, &FitParameter), &super::resample::Determined)| {
            let ends = [d.low, d.high].map(|x| p.value(x));
            let wide = d.high - d.low > WIDE;
            let at_bound = values[i] == p.min || values[i] == p.max;
            let note = match d.same_as {
                _ if d.no_effect => "no effect on any measured row: left out of the overlay".to_string(),
                Some(other) => {
                    let other = self.parameters[other].key.name;
                    format!("cannot be told apart from {other} by these rows: fit one of the two")
                }
                None if wide => {
                    "hardly determined by these rows: its interval is more than half of its bounds".to_string()
                }
                None if at_bound => "ends at a bound; what fits may lie beyond it".to_string(),
                None => String::new(),
            };
            FittedParameter {
                key: p.key.name,
                before: p.before,
                value: values[i],
                low: ends[0].min(values[i]),
                high: ends[1].max(values[i]),
                min: p.min,
                max: p.max,
                determined: !d.no_effect && d.same_as.is_none() && !wide,
                note,
                toml: p.toml(values[i]),
            }
        };
        let parameters = self.parameters.iter().enumerate().zip(&determined).map(parameter).collect();
        let row = |((row, before), after): ((&CalibrationRow, &f64), &f64)| FittedRow {
            name: row.name.clone(),
            unit: row.unit.clone(),
            measured: row.value,
            before: *before,
            after: *after,
            held_back: row.held_back,
        };
        let rows: Vec<FittedRow> = rows.iter().zip(&before).zip(after.iter()).map(row).collect();
        Ok(Calibration {
            parameters,
            fitted: Calibration::errors(&rows, false),
            held_back: Calibration::errors(&rows, true),
            rows,
            cross_validation,
            folds: if folds >= 2 { folds } else { 0 },
            candidates: self.evaluator.n_run(),
        })
    }

    /// The sweep's own values, then points that fill the cube: Halton's, shifted by the seed.
    fn design(&self) -> Vec<Vec<f64>> {
        let n = self.parameters.len();
        let own = self.parameters.iter().map(|p| p.place(p.before)).collect();
        let shift: Vec<f64> = (0..n).map(|k| unit(mix(self.settings.seed, OF_DESIGN, k as u64))).collect();
        let point = |i: usize| (0..n).map(|k| (halton(i as u64 + 1, PRIMES[k]) + shift[k]).fract()).collect();
        std::iter::once(own).chain((0..DESIGN_A_PARAMETER * n).map(point)).collect()
    }

    /// The best of searches from the best candidates, the sweep's own values among them. Of equals the first.
    fn best(&self, design: &[Vec<f64>], of: &[usize], restarts: usize) -> Vertex {
        let cost = |places: &[f64]| self.objective.of(self.evaluator.at(places).as_deref().map(Vec::as_slice), of);
        let mut order: Vec<(f64, usize)> = design.iter().enumerate().skip(1).map(|(i, x)| (cost(x), i)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let starts: Vec<usize> = order.iter().take(restarts.max(1) - 1).map(|o| o.1).chain([0]).collect();
        let starts =
            if restarts <= 1 { vec![if cost(&design[0]) <= order[0].0 { 0 } else { order[0].1 }] } else { starts };
        let limits = SimplexLimits { edge: 0.08, tolerance: 5e-4, most_evaluations: 40 + 40 * self.parameters.len() };
        let found: Vec<Vertex> = starts.par_iter().map(|&i| minimise(cost, &design[i], limits)).collect();
        found.into_iter().reduce(|a, b| if b.cost < a.cost { b } else { a }).expect("there is a start")
    }

    /// Slopes by differences around a point.
    fn linear(&self, places: &[f64], rows: &[CalibrationRow], fitted: &[usize]) -> LinearModel {
        let at = |k: usize, by: f64| {
            let mut moved = places.to_vec();
            moved[k] = (moved[k] + by).clamp(0.0, 1.0);
            // The places that the rounded values are at.
            let place = self.parameters[k].place(self.parameters[k].value(moved[k]));
            (place, self.evaluator.at(&moved))
        };
        let sides: Vec<_> = (0..2 * places.len())
            .into_par_iter()
            .map(|i| at(i / 2, if i % 2 == 0 { SLOPE_STEP } else { -SLOPE_STEP }))
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

    /// Mean absolute error of rows by fits to the others: parts of about equal size, by lot.
    fn cross_validation(&self, design: &[Vec<f64>], rows: &[CalibrationRow], fitted: &[usize], folds: usize) -> f64 {
        let mut order: Vec<usize> = fitted.to_vec();
        order.sort_by_key(|&i| (mix(self.settings.seed, OF_FOLDS, i as u64), i));
        let part = |fold: usize| order.iter().copied().skip(fold).step_by(folds).collect::<Vec<usize>>();
        let errors: Vec<f64> = (0..folds)
            .into_par_iter()
            .map(|fold| {
                let left_out = part(fold);
                let others: Vec<usize> = fitted.iter().copied().filter(|i| !left_out.contains(i)).collect();
                let best = self.best(design, &others, 1);
                left_out.len() as f64 * mean_of(self.evaluator, &best, rows, &left_out)
            })
            .collect();
        errors.iter().sum::<f64>() / fitted.len() as f64
    }
}

/// Mean absolute error at a point; infinite where it has no result.
fn mean_of(evaluator: &Evaluator<'_>, at: &Vertex, rows: &[CalibrationRow], of: &[usize]) -> f64 {
    evaluator.at(&at.places).map_or(f64::INFINITY, |p| mean_error(rows, &p, of))
}

/// From 0 to 1 of 64 random bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// The n-th number of Halton's sequence: the digits of `n` mirrored at the point.
fn halton(mut n: u64, base: u64) -> f64 {
    let (mut share, mut sum) = (1.0, 0.0);
    while n > 0 {
        share /= base as f64;
        sum += share * (n % base) as f64;
        n /= base;
    }
    sum
}
