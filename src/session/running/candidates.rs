//! Evaluates the candidates of a search: estimates and coarse simulations, each made once, even if the search is interrupted.
//!
//! Layer: session. Results go to the journal at once ([`Update::Looked`]). Results that an earlier run's search left there are reused. Decides nothing.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use hyperfold_analysis::optimize::{
    CandidateValues, Evaluate, Objective, SearchLevel, SearchLimit, WithinLimits, coarser, within,
};
use hyperfold_config::spec::Config;
use hyperfold_config::sweep::{Experiment, Sweep};
use hyperfold_host::{Ended, QueuedExperiment, RunEvent};
use hyperfold_results::{LookRecord, Outputs, Status};

use crate::error::SessionError;
use crate::experiment::{config, unmeasured};
use crate::memo::RunMemo;
use crate::records::convert::finished;
use crate::running::update::{Update, UpdateSink};
use crate::running::workers::{self, DeviceWorkers};
use crate::settings::RunSettings;

/// Candidates estimated between two writes to the journal: a killed search loses at most these.
const ESTIMATED_AT_ONCE: usize = 64;

/// Columns that an estimate knows exactly, as simulation does not change them.
const KNOWN_UNSIMULATED: [&str; 3] = ["cost_usd", "power_kw", "peak_memory_bytes"];

/// The reason why a search stopped early.
pub(crate) enum SearchStop {
    Interrupted,
    Failed(Box<SessionError>),
}

impl From<SessionError> for SearchStop {
    fn from(error: SessionError) -> Self {
        SearchStop::Failed(Box::new(error))
    }
}

/// The candidates of a search, and how they are run.
pub(crate) struct CandidateView<'a> {
    pub(crate) sweep: &'a Sweep,
    /// The experiments of each candidate.
    pub(crate) points: &'a [&'a [Experiment]],
    /// The evaluated columns: objectives, then columns that only limits read.
    pub(crate) columns: &'a [Objective],
    pub(crate) n_objectives: usize,
    pub(crate) limits: &'a [SearchLimit],
    pub(crate) pool: &'a Arc<rayon::ThreadPool>,
    pub(crate) settings: &'a RunSettings,
}

/// The result of estimating or simulating a candidate.
struct CandidateValue {
    verdict: CandidateValues,
    packet_hops: u64,
    /// Whether another run would find the same: no wall-clock limit ended it.
    lasting: bool,
}

/// Estimates and simulates candidates, and reports progress.
pub(crate) struct CandidateEvaluator<'a, 's> {
    view: CandidateView<'a>,
    workers: &'a mut DeviceWorkers,
    memo: RunMemo,
    /// Results by level and the candidate's first experiment.
    seen: HashMap<(u8, u64), (CandidateValues, u64)>,
    pub(crate) lost_devices: Vec<String>,
    sink: &'a mut UpdateSink<'s>,
}

/// Number of a level in the journal.
fn number(level: SearchLevel) -> u8 {
    match level {
        SearchLevel::Estimate => 0,
        SearchLevel::CoarseEstimate => 1,
        SearchLevel::Coarse => 2,
    }
}

impl<'a, 's> CandidateEvaluator<'a, 's> {
    /// Creates an evaluator. `known`: results of an earlier search.
    pub(crate) fn new(
        view: CandidateView<'a>,
        workers: &'a mut DeviceWorkers,
        known: &[LookRecord],
        sink: &'a mut UpdateSink<'s>,
    ) -> CandidateEvaluator<'a, 's> {
        let verdict = |look: &LookRecord| look.why.clone().map_or_else(|| Ok(look.values.clone()), Err);
        let seen = known.iter().map(|look| ((look.level, look.exp_id), (verdict(look), look.packet_hops))).collect();
        let memo = RunMemo::of_search(&view.settings.memo);
        CandidateEvaluator { view, workers, memo, seen, lost_devices: Vec::new(), sink }
    }

    fn estimate(&mut self, level: SearchLevel, candidates: &[usize]) -> Result<(), SearchStop> {
        for few in candidates.chunks(ESTIMATED_AT_ONCE) {
            let view = &self.view;
            let one = |&i: &usize| match view.settings.interrupt.requested() {
                true => Err(SearchStop::Interrupted),
                false => Ok((i, view.estimated(level, i))),
            };
            let all = view.pool.install(|| few.par_iter().map(one).collect::<Result<Vec<_>, SearchStop>>())?;
            if self.view.settings.interrupt.requested() {
                // An interrupt may have stopped some candidates early.
                return Err(SearchStop::Interrupted);
            }
            for (i, seen) in all {
                let exp_id = self.view.points[i][0].exp_id;
                keep(&mut self.seen, self.sink, level, exp_id, seen).map_err(SearchStop::from)?;
            }
        }
        Ok(())
    }

    fn simulate(&mut self, level: SearchLevel, candidates: &[usize]) -> Result<(), SearchStop> {
        let (view, sink, seen, lost_devices) = (&self.view, &mut *self.sink, &mut self.seen, &mut self.lost_devices);
        let configs: HashMap<u64, (usize, Config)> =
            candidates.iter().map(|&i| (view.points[i][0].exp_id, (i, view.config(level, i)))).collect();
        let task = |&i: &usize| {
            let exp_id = view.points[i][0].exp_id;
            QueuedExperiment { exp_id, config: configs[&exp_id].1.clone() }
        };
        let tasks: Vec<QueuedExperiment> = candidates.iter().map(task).collect();
        let mut tell = |news: RunEvent| -> Result<(), SessionError> {
            match news {
                RunEvent::Ended(ended) => {
                    let (exp_id, (i, config)) = (ended.exp_id, &configs[&ended.exp_id]);
                    keep(seen, sink, level, exp_id, view.value(*i, config, *ended))
                }
                RunEvent::Lost(text) => {
                    lost_devices.push(text.clone());
                    sink(Update::Message(text))
                }
                RunEvent::Started(_) | RunEvent::Progress(_) | RunEvent::Note(_) => Ok(()),
            }
        };
        match workers::simulate(
            tasks.into_iter(),
            self.workers,
            view.settings,
            &self.memo,
            view.pool,
            Arc::default(),
            &mut tell,
        ) {
            _ if view.settings.interrupt.requested() => Err(SearchStop::Interrupted),
            Ok(()) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

impl Evaluate for CandidateEvaluator<'_, '_> {
    type Stop = SearchStop;

    fn objectives(&self) -> usize {
        self.view.n_objectives
    }

    fn is_limited(&self) -> bool {
        !self.view.limits.is_empty()
    }

    fn beyond(&self, values: &[Option<f64>], level: SearchLevel) -> Option<String> {
        let known = |(column, value): (&Objective, &Option<f64>)| match level {
            SearchLevel::Estimate | SearchLevel::CoarseEstimate if !KNOWN_UNSIMULATED.contains(&column.name()) => None,
            _ => *value,
        };
        let values: Vec<Option<f64>> = self.view.columns.iter().zip(values).map(known).collect();
        match within(self.view.limits, self.view.columns, &values) {
            WithinLimits::No(why) => Some(why),
            WithinLimits::Yes | WithinLimits::Unknown => None,
        }
    }

    fn evaluate(&mut self, level: SearchLevel, candidates: &[usize]) -> Result<Vec<CandidateValues>, SearchStop> {
        let points = self.view.points;
        let place = |i: usize| (number(level), points[i][0].exp_id);
        let open: Vec<usize> = candidates.iter().copied().filter(|&i| !self.seen.contains_key(&place(i))).collect();
        match level {
            SearchLevel::Estimate | SearchLevel::CoarseEstimate => self.estimate(level, &open)?,
            SearchLevel::Coarse if !open.is_empty() => self.simulate(level, &open)?,
            SearchLevel::Coarse => {}
        }
        let mut packet_hops = 0;
        let mut verdicts = Vec::with_capacity(candidates.len());
        for &i in candidates {
            let (verdict, hops) = self
                .seen
                .get(&place(i))
                .ok_or_else(|| SearchStop::from(SessionError::Internal("a candidate ended without a result")))?;
            packet_hops += hops;
            verdicts.push(verdict.clone());
        }
        let what = match level {
            SearchLevel::Estimate => "estimated".to_string(),
            SearchLevel::CoarseEstimate => return Ok(verdicts),
            SearchLevel::Coarse => format!("simulated with coarse packets ({packet_hops} packet-hops)"),
        };
        let (n, n_failed) = (candidates.len(), verdicts.iter().filter(|v| v.is_err()).count());
        let lost = if n_failed > 0 { format!(", {n_failed} of them without a value") } else { String::new() };
        let known =
            if open.len() < n { format!("; {} of them by an earlier run", n - open.len()) } else { String::new() };
        (self.sink)(Update::Message(format!("search: {n} candidates {what}{lost}{known}")))
            .map_err(SearchStop::from)?;
        Ok(verdicts)
    }
}

/// Keeps a result and writes it to the journal, unless a wall-clock limit decided it.
fn keep(
    seen: &mut HashMap<(u8, u64), (CandidateValues, u64)>,
    sink: &mut UpdateSink<'_>,
    level: SearchLevel,
    exp_id: u64,
    found: CandidateValue,
) -> Result<(), SessionError> {
    let CandidateValue { verdict, packet_hops, lasting } = found;
    if lasting {
        let (values, why) = match &verdict {
            Ok(values) => (values.clone(), None),
            Err(why) => (Vec::new(), Some(why.clone())),
        };
        sink(Update::Looked(LookRecord { level: number(level), exp_id, packet_hops, values, why }))?;
    }
    seen.insert((number(level), exp_id), (verdict, packet_hops));
    Ok(())
}

impl CandidateView<'_> {
    /// Returns a candidate's configuration at a level. If coarser keys contradict each other, returns the candidate's own configuration.
    fn config(&self, level: SearchLevel, i: usize) -> Config {
        let experiment = &self.points[i][0];
        let own = config(self.sweep, experiment);
        match level {
            SearchLevel::Estimate => own,
            SearchLevel::Coarse | SearchLevel::CoarseEstimate => {
                self.sweep.config_with(experiment, &coarser(&own)).unwrap_or(own)
            }
        }
    }

    fn estimated(&self, level: SearchLevel, i: usize) -> CandidateValue {
        if let Some(why) = self.sweep.cannot_run(&self.points[i][0]) {
            return CandidateValue { verdict: Err(format!("failed: {why}")), packet_hops: 0, lasting: true };
        }
        let config = self.config(level, i);
        let result = hyperfold_host::estimate(&config);
        self.value(
            i,
            &config,
            Ended { exp_id: self.points[i][0].exp_id, result, packet_hops: 0, folds: None, seconds: 0.0 },
        )
    }

    fn value(&self, i: usize, config: &Config, ended: Ended) -> CandidateValue {
        let packet_hops = ended.packet_hops;
        let record = finished(unmeasured(self.sweep, &self.points[i][0]), ended, &Outputs::default(), config).record;
        let verdict = match record.status {
            Status::Ok => Ok(self.columns.iter().map(|o| o.value(&record)).collect()),
            Status::Oom | Status::Failed => Err(format!("{}: {}", record.status.as_str(), record.error)),
        };
        CandidateValue { verdict, packet_hops, lasting: !record.machine_limit }
    }
}
