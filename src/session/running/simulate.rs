//! Runs the experiments of a plan on the chosen engine, and reports each as it ends.
//!
//! Layer: session. Writes no file: the receiver of the events does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use hyperfold_base::isolation::{take_defect, take_defects};
use hyperfold_config::spec;
use hyperfold_config::sweep::{self, Experiment, Hash128, SetOverrides, Sweep};
use hyperfold_engine::gpu::GpuDevice;
use hyperfold_engine::gpu::rates::FEWEST_THAT_PAY;
use hyperfold_host::{Ended, Ending, QueuedExperiment, RunEvent};
use hyperfold_results::{ExperimentRecord, Finished, StatsRecord};

use crate::error::SessionError;
use crate::experiment::{config, unmeasured};
use crate::memo::RunMemo;
use crate::planning::forecast::TimeForecast;
use crate::planning::plan::{self, LoadedSweep};
use crate::planning::planned::{Planned, SweepRequest};
use crate::records::convert::finished;
use crate::running::audits::Audits;
use crate::running::axis_effects::AxisEffects;
use crate::running::clusters::{self, ClusterUpdate};
use crate::running::dark_losses::DarkLosses;
use crate::running::devices;
use crate::running::jobs_alone::{AloneRuns, QueuedRuns, config_of, further_runs};
use crate::running::search;
use crate::running::simulator::Simulator;
use crate::running::update::{EngineUsed, Known, Update, UpdateSink};
use crate::running::watched_pauses::WatchedPauses;
use crate::running::work_done::WorkDone;
use crate::running::workers;
use crate::settings::{EngineChoice, MemoChoice, RunSettings};
use crate::trace;
use hyperfold_base::units::counted;

/// The real simulator, as opposed to those of tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl Simulator for BuiltIn {
    type Sweep = LoadedSweep;
    type Engine = Vec<GpuDevice>;

    fn load(&self, request: &SweepRequest) -> Result<(Planned, LoadedSweep), SessionError> {
        let sweep = sweep::load(&request.path, &SetOverrides(request.set.clone()))?;
        plan::plan(sweep, &request.selection, request.estimates, &request.progress)
    }

    fn probe(&self, loaded: &LoadedSweep) -> Option<TimeForecast> {
        loaded.probe()
    }

    fn engine(
        &self,
        loaded: &LoadedSweep,
        settings: &RunSettings,
    ) -> Result<(EngineUsed, Vec<GpuDevice>), SessionError> {
        let (mut used, devices) = devices::choose(settings, || loaded.pays_for_gpu(settings.threads))?;
        if !devices.is_empty() && loaded.has_flow_level() {
            used.reason.push_str("; it solves rates at flow level, too");
            if settings.engine == EngineChoice::Auto {
                used.reason.push_str(&format!(", of batches of {FEWEST_THAT_PAY} experiments or more"));
            }
        }
        Ok((used, devices))
    }

    fn run(
        &self,
        loaded: LoadedSweep,
        devices: Vec<GpuDevice>,
        settings: &RunSettings,
        known: &Known,
        sink: &mut UpdateSink<'_>,
    ) -> Result<Vec<String>, SessionError> {
        let LoadedSweep { sweep, outputs, axes, search: setup, .. } = &loaded;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build();
        let pool = Arc::new(pool.map_err(SessionError::Threads)?);
        let compiling = Instant::now();
        let memo = RunMemo::start(&settings.memo);
        let mut workers = workers::workers(&devices, settings, &memo, &pool)?;
        if !workers.is_empty() {
            sink(Update::Compiled { seconds: compiling.elapsed().as_secs_f64() })?;
        }
        let mut lost_devices = Vec::new();
        let chosen: Option<HashSet<u64>> = match setup {
            None => None,
            Some(s) => match search::choose(sweep, s, axes, &mut workers, &pool, settings, &known.looks, sink)? {
                Some(choice) => {
                    lost_devices = choice.lost_devices;
                    Some(choice.ids)
                }
                None => return Ok(Vec::new()),
            },
        };
        let done: HashSet<u64> = known.records.iter().map(|r| r.exp_id).collect();
        let is_chosen = |e: &Experiment| chosen.as_ref().is_none_or(|c| c.contains(&e.exp_id));
        let open: Vec<&Experiment> =
            sweep.experiments.iter().filter(|e| !done.contains(&e.exp_id) && is_chosen(e)).collect();
        let mut findings = Findings::from_known(sweep, known);
        let (open, refused): (Vec<&Experiment>, Vec<&Experiment>) =
            open.into_iter().partition(|e| sweep.cannot_run(e).is_none());
        for experiment in refused {
            let done = refusal(sweep, experiment);
            findings.add(&done);
            sink(Update::Finished(Box::new(done)))?;
        }
        let (open, same) = once_each(open);
        let (clusters, open): (Vec<&Experiment>, Vec<&Experiment>) =
            open.into_iter().partition(|e| config(sweep, e).cluster_run().is_some());
        clusters::run(sweep, &clusters, &same, &pool, &settings.interrupt, &mut |news| match news {
            ClusterUpdate::Started(exp_id) => sink(Update::Started { exp_id }),
            ClusterUpdate::Traced { exp_id, bytes } => sink(Update::Traced { exp_id, bytes }),
            ClusterUpdate::Finished(done) => {
                findings.add(&done);
                sink(Update::Finished(done))
            }
        })?;
        let mut work = WorkDone::new(open.iter().map(|e| (e.exp_id, loaded.work_of(e.exp_id))));
        let runs_of = |e: &&Experiment| {
            let further = if outputs.jobs { further_runs(&config(sweep, e)) } else { Vec::new() };
            QueuedRuns { exp_id: e.exp_id, further }
        };
        let queued: Vec<QueuedRuns> = open.iter().map(runs_of).collect();
        let mut alone = AloneRuns::new(&queued);
        let queue = alone.queue(&queued);
        loaded.kept.retain(|id| !alone.renumbers() && queued.iter().any(|open| open.exp_id == id));
        let experiments: HashMap<u64, &Experiment> = open.into_iter().map(|e| (e.exp_id, e)).collect();
        let tasks = queue.into_iter().map(|(id, role)| {
            let config = config_of(role, config(sweep, experiments[&role.exp_id]));
            QueuedExperiment { exp_id: id, config }
        });
        // Experiments of a search that ran in full but exceed a limit, those of earlier sessions included.
        let excess_of = |r: &ExperimentRecord| Some((r.exp_id, setup.as_ref()?.beyond(r)?));
        let mut beyond: Vec<(u64, String)> = known.records.iter().filter_map(excess_of).collect();
        let mut tell = |news: RunEvent| -> Result<(), SessionError> {
            match news {
                RunEvent::Started(ids) => {
                    let all_ids = ids.into_iter().filter_map(|id| alone.experiment(id)).flat_map(|id| {
                        std::iter::once(id).chain(same.get(&id).into_iter().flatten().map(|e| e.exp_id))
                    });
                    all_ids.into_iter().try_for_each(|exp_id| sink(Update::Started { exp_id }))
                }
                RunEvent::Progress(running) => {
                    let to_experiment = |(id, hops): (u64, u64)| Some((alone.experiment(id)?, hops));
                    work.runs(running.into_iter().filter_map(to_experiment).collect());
                    work.report().map_or(Ok(()), &mut *sink)
                }
                RunEvent::Note(_) => Ok(()),
                RunEvent::Lost(text) => {
                    lost_devices.push(text.clone());
                    sink(Update::Message(text))
                }
                RunEvent::Ended(ended) => {
                    let Some(ended) = alone.take(*ended) else { return Ok(()) };
                    let exp_id = ended.exp_id;
                    let (ended_id, seconds) = (exp_id, ended.seconds);
                    let experiment = findings.by_id[&exp_id];
                    let defect = match &ended.result {
                        Err(Ending::Failed(why)) => take_defect(why),
                        _ => None,
                    };
                    if let Some(defect) = defect {
                        let axis_values = sweep.axes_text(experiment);
                        let report = format!("experiment {exp_id} ({axis_values}): {defect}\n{}\n", defect.backtrace);
                        sink(Update::Defect { exp_id, report })?;
                    }
                    let configured = config(sweep, experiment);
                    let others = same.get(&exp_id).map_or(&[][..], Vec::as_slice);
                    let copies: Vec<(&Experiment, Ended)> =
                        others.iter().map(|e| (*e, ended.of_duplicate(e.exp_id))).collect();
                    for (experiment, ended) in std::iter::once((experiment, ended)).chain(copies) {
                        let exp_id = experiment.exp_id;
                        if configured.output.trace {
                            let traced = trace::of_run(&configured, exp_id, &settings.interrupt);
                            // An interrupted timeline is incomplete, and an experiment without its timeline is not finished.
                            if settings.interrupt.requested() {
                                return Ok(());
                            }
                            match traced {
                                Ok(trace) => sink(Update::Traced { exp_id, bytes: trace.bytes })?,
                                // An experiment that cannot be prepared has no timeline; its row says why.
                                Err(_) if ended.result.is_err() => {}
                                Err(why) => {
                                    sink(Update::Message(format!("experiment {exp_id} has no timeline: {why}")))?;
                                }
                            }
                        }
                        if let Ok(outcome) = &ended.result {
                            findings.watched.add(exp_id, outcome.watchdog);
                        }
                        let done = finished(unmeasured(sweep, experiment), ended, outputs, &configured);
                        findings.add(&done);
                        let why = setup.as_ref().and_then(|s| s.beyond(&done.record));
                        beyond.extend(why.map(|why| (exp_id, why)));
                        sink(Update::Finished(Box::new(done)))?;
                    }
                    work.ends(ended_id, seconds);
                    work.report().map_or(Ok(()), &mut *sink)
                }
            }
        };
        let ran = workers::simulate(tasks, &mut workers, settings, &memo, &pool, Arc::clone(&loaded.kept), &mut tell);
        let memo_warnings = memo.finish();
        findings.messages(&settings.memo).into_iter().try_for_each(|text| sink(Update::Message(text)))?;
        ran?;
        if settings.interrupt.requested() {
            return Ok(memo_warnings);
        }
        // A search runs too few experiments to judge which axes have no effect.
        let mut warnings = if chosen.is_none() { findings.effects.warnings(&sweep.axes) } else { Vec::new() };
        beyond.sort();
        warnings.extend(setup.as_ref().and_then(|s| s.warning(&beyond)));
        warnings.extend(lost_devices);
        warnings.extend(take_defects().iter().map(ToString::to_string));
        warnings.extend(memo_warnings);
        warnings.extend(findings.audits.warnings());
        warnings.extend(findings.audits.doubt());
        warnings.extend(findings.audits.iterations_warning());
        warnings.extend(findings.audits.writes_warning());
        warnings.extend(findings.drops_warning());
        warnings.extend(findings.watched.warning());
        warnings.extend(findings.class_losses());
        warnings.extend(findings.lost_without_pfc.warning());
        warnings.extend(findings.lost_in_dark.warning());
        warnings.extend(findings.resent_warning());
        warnings.extend(findings.spray_warning());
        Ok(warnings)
    }
}

/// Returns the row of an experiment whose keys contradict each other.
fn refusal(sweep: &Sweep, experiment: &Experiment) -> Finished {
    let why = sweep.cannot_run(experiment).unwrap_or_default();
    Finished::without_rows(unmeasured(sweep, experiment).failed(why), StatsRecord::default())
}

/// Returns the first of the experiments with one configuration and seed, which is simulated; and for each of these, by `exp_id`, the others.
fn once_each(open: Vec<&Experiment>) -> (Vec<&Experiment>, HashMap<u64, Vec<&Experiment>>) {
    let mut first: HashMap<Hash128, u64> = HashMap::with_capacity(open.len());
    let mut same: HashMap<u64, Vec<&Experiment>> = HashMap::new();
    let mut originals = Vec::with_capacity(open.len());
    for experiment in open {
        let original_id = *first.entry(experiment.exp_key).or_insert(experiment.exp_id);
        if original_id == experiment.exp_id {
            originals.push(experiment);
        } else {
            same.entry(original_id).or_default().push(experiment);
        }
    }
    (originals, same)
}

/// Experiments that lost packets with PFC off.
#[derive(Default)]
struct Losses {
    experiments: u64,
    /// How many of them had no congestion control.
    uncontrolled: u64,
    /// The experiment that dropped most: its id, packets dropped, data packets sent again, and its retransmission timeout in us.
    most: Option<(u64, u64, u64, f64)>,
}

impl Losses {
    fn add(&mut self, record: &ExperimentRecord, values: &spec::Values) {
        self.experiments += 1;
        self.uncontrolled += u64::from(values.is(spec::KeyId::Cc, "none"));
        let (drops, again) = (record.drops.unwrap_or(0), record.retransmissions.unwrap_or(0));
        if self.most.is_none_or(|most| (drops, most.0) > (most.1, record.exp_id)) {
            self.most = Some((record.exp_id, drops, again, values.float(spec::KeyId::RtoUs)));
        }
    }

    /// Returns a warning that says how much was lost at most, why, and what would change it.
    fn warning(&self) -> Option<String> {
        let (exp_id, drops, again, rto_us) = self.most?;
        let how_many = |n: u64| if n == self.experiments { "all".to_string() } else { n.to_string() };
        let control = match self.uncontrolled {
            0 => String::new(),
            n => format!(", a transport.cc other than none ({} of them had none)", how_many(n)),
        };
        let waits = match rto_us > 0.0 {
            true => format!(
                "; a sender that loses the last packets of a message waits for a timeout, transport.rto_us = {rto_us}"
            ),
            false => String::new(),
        };
        Some(format!(
            "{} lost packets, as switch buffers overflowed and transport.pfc = false; experiment {exp_id} lost most: {drops} were dropped \
             and {again} data packets sent again{waits}. Less is lost with transport.pfc = true, a larger topology.buffer_mib{control}",
            counted(self.experiments, "experiment")
        ))
    }
}

/// Whether an experiment loses packets as it was told to: early, or on links that lose them. Then nothing is wrong with its buffers or its circuits.
fn is_lossy_anyway(config: &spec::Config) -> bool {
    let loses = |impaired: &spec::ImpairmentText| matches!(impaired.what, spec::Impairment::Loss(_));
    config.drops_early() || config.topology.impairments.iter().any(loses)
}

/// Findings over all experiments of a run.
struct Findings<'a> {
    sweep: &'a Sweep,
    by_id: HashMap<u64, &'a Experiment>,
    effects: AxisEffects,
    audits: Audits,
    /// Experiments that dropped packets although pauses were on.
    lost_with_pfc: u64,
    /// Experiments with lossy traffic classes that lost packets.
    lost_by_class: u64,
    lost_without_pfc: Losses,
    lost_in_dark: DarkLosses,
    watched: WatchedPauses,
    /// Experiments that sent packets again, of which none was dropped, to receivers that take packets in any order.
    resent_unlost: u64,
    /// Experiments that started over without folding.
    started_over: u64,
    /// Experiments that ended in this session.
    ended: u64,
    remembered: u64,
    /// Whether experiments in flow mode without (0) and with (1) spraying were seen, if routing policies are compared.
    flows_sprayed: [bool; 2],
}

impl<'a> Findings<'a> {
    /// Creates the findings from experiments that an earlier session has run.
    fn from_known(sweep: &'a Sweep, known: &Known) -> Findings<'a> {
        let mut findings = Findings {
            sweep,
            by_id: sweep.experiments.iter().map(|e| (e.exp_id, e)).collect(),
            effects: AxisEffects::default(),
            audits: Audits::default(),
            lost_with_pfc: 0,
            lost_by_class: 0,
            lost_without_pfc: Losses::default(),
            lost_in_dark: DarkLosses::default(),
            watched: WatchedPauses::after(known.records.len()),
            resent_unlost: 0,
            started_over: 0,
            ended: 0,
            remembered: 0,
            flows_sprayed: [false; 2],
        };
        known.records.iter().for_each(|record| findings.add_record(record));
        for (&exp_id, stats) in &known.stats {
            findings.started_over += u64::from(stats.batches > 1);
            findings.audits.add(exp_id, stats, findings.audit_bound(exp_id));
        }
        findings
    }

    fn add(&mut self, done: &Finished) {
        let exp_id = done.record.exp_id;
        self.add_record(&done.record);
        self.started_over += u64::from(done.stats.batches > 1);
        self.ended += 1;
        self.remembered += u64::from(done.stats.memo_hits + done.stats.memo_misses > 0);
        self.audits.add(exp_id, &done.stats, self.audit_bound(exp_id));
    }

    fn add_record(&mut self, record: &ExperimentRecord) {
        self.effects.add(record);
        let experiment = self.by_id[&record.exp_id];
        if let Some(cluster) = &record.cluster {
            let config = self.sweep.config(experiment).ok();
            let bound = config.as_ref().and_then(|c| c.cluster_run()?.iterations.as_ref());
            let bound = bound.map_or(f64::INFINITY, |keys| keys.audit_bound_ppm as f64 / 1e6);
            self.audits.add_iterations(record.exp_id, cluster.iteration_error_mean, bound);
            self.audits.add_writes(record.exp_id, cluster.beside_writes_share);
        }
        let has_policy_axis = self.sweep.axes.iter().any(|axis| axis == "routing.policy");
        // An experiment whose keys contradict each other has failed and has no configuration.
        if has_policy_axis
            && let Ok(configured) = self.sweep.config(experiment)
            && configured.values.is(spec::KeyId::Mode, "flow")
        {
            let policy = hyperfold_host::named_routing_policy(&configured);
            self.flows_sprayed[usize::from(policy.is_some_and(|policy| policy.sprays()))] = true;
        }
        if record.drops == Some(0)
            && record.retransmissions.is_some_and(|n| n > 0)
            && config(self.sweep, experiment).values.is(spec::KeyId::LossRecovery, "selective")
        {
            self.resent_unlost += 1;
        }
        if let Some(drops) = record.drops.filter(|n| *n > 0) {
            let config = config(self.sweep, experiment);
            match config.values.bool(spec::KeyId::Pfc) {
                // Queues of ports are made to trim or drop what they cannot take.
                _ if config.values.bool(spec::KeyId::PortQueue) => {}
                _ if is_lossy_anyway(&config) => {}
                _ if config.topology.changes_circuits() => self.lost_in_dark.add(record.exp_id, drops, &config),
                // What fails or is impaired loses packets with any buffer.
                _ if config.topology.loses_packets() || hyperfold_host::file_loses_packets(&config) => {}
                // It gives up packets on purpose.
                true if !config.values.is(spec::KeyId::PfcWatchdog, "off") => self.watched.lost += 1,
                true if config.classes.has_lossy() => self.lost_by_class += 1,
                true => self.lost_with_pfc += 1,
                false => self.lost_without_pfc.add(record, &config.values),
            }
        }
    }

    fn audit_bound(&self, exp_id: u64) -> f64 {
        // An experiment that cannot run is never audited.
        let config = self.sweep.config(self.by_id[&exp_id]).ok();
        config.and_then(|c| c.steady()).map_or(f64::INFINITY, |s| s.audit_bound)
    }

    fn spray_warning(&self) -> Option<String> {
        (self.flows_sprayed == [true; 2]).then(|| {
            "flow mode knows no packets that overtake each other, so it is no judge between a routing.policy that sprays and others: \
             compare these as packets"
                .to_string()
        })
    }

    /// Returns messages for the user, whether or not the run is complete.
    fn messages(&self, memo: &MemoChoice) -> Vec<String> {
        let mut messages = Vec::new();
        if self.started_over > 0 {
            messages.push(format!(
                "{} of {} started over without folding (`batches` 2 in stats.csv), as with fidelity.fast_forward = \"off\": \
                 a switch came near pauses or drops, a sender gave up, or limits.sim_ns was reached",
                self.started_over,
                counted(self.sweep.experiments.len(), "experiment")
            ));
        }
        if let MemoChoice::Kept { path, .. } = memo
            && self.ended > 0
            && self.remembered == 0
        {
            messages.push(format!(
                "--memo {}: nothing to remember. Folded task graphs are remembered (fidelity.memo = true, fidelity.fast_forward = \"steady\" or \"exact\"){}",
                path.display(),
                self.unknown_to_folding().unwrap_or_default()
            ));
        }
        messages.extend(self.audits.notes(self.sweep.experiments.len()));
        messages
    }

    /// Says why the first experiment with something that folding does not know was not folded.
    fn unknown_to_folding(&self) -> Option<String> {
        self.sweep.experiments.iter().find_map(|experiment| {
            let config = self.sweep.config(experiment).ok()?;
            let why = hyperfold_host::unknown_to_folding(&config)?;
            Some(format!("; experiment {} was not folded, as {why}", experiment.exp_id))
        })
    }

    fn resent_warning(&self) -> Option<String> {
        (self.resent_unlost > 0).then(|| {
            format!(
                "{} sent packets again though none was dropped: packets overtook each other by more than transport.packet_threshold, or \
                 transport.rto_us is shorter than a round trip through full queues, or than what a class waits for those of a higher priority. With a larger threshold and a transport.psn_range of \
                 twice as much, less is sent again",
                counted(self.resent_unlost, "experiment")
            )
        })
    }

    fn class_losses(&self) -> Option<String> {
        (self.lost_by_class > 0).then(|| {
            format!(
                "{} lost packets, as switch buffers overflowed and some of transport.classes are lossy; flows.csv shows who waited (output.flows = true), and jobs.csv where there are several jobs",
                counted(self.lost_by_class, "experiment")
            )
        })
    }

    fn drops_warning(&self) -> Option<String> {
        (self.lost_with_pfc > 0).then(|| {
            format!(
                "{} dropped packets although transport.pfc = true and no link failed: headroom was exceeded, by ACKs that are never paused \
                 (transport.ack_high_prio = true) or by a pause that takes longer than 3/2 of the link's delay to act",
                counted(self.lost_with_pfc, "experiment")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_lost_is_told_with_what_would_change_it() {
        let text = "name = \"t\"\n[base]\ntransport.pfc = false\nworkload = { kind = \"traffic\", pattern = \"incast\" }\n\
                    [axes]\n\"transport.cc\" = [\"none\", \"dcqcn\", \"hpcc\"]\n";
        let sweep = sweep::parse(text, Path::new("s.toml"), &SetOverrides::default()).expect("it is right");
        let mut losses = Losses::default();
        assert_eq!(losses.warning(), None);
        for (experiment, (drops, again)) in sweep.experiments.iter().zip([(50, 70), (90, 95)]) {
            let mut record = unmeasured(&sweep, experiment);
            (record.drops, record.retransmissions) = (Some(drops), Some(again));
            losses.add(&record, &config(&sweep, experiment).values);
        }
        let told = losses.warning().unwrap();
        for words in [
            "2 experiments lost packets, as switch buffers overflowed and transport.pfc = false",
            "experiment 1 lost most: 90 were dropped and 95 data packets sent again",
            "transport.rto_us = 4194. Less is lost with transport.pfc = true",
            "a transport.cc other than none (1 of them had none)",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
    }
}
