//! The world of a batch: every experiment's rows as entities of shared archetypes, and the host systems that run between slices of the engine.
//!
//! Layer: host. Archetypes: (ExpId, Nic), (ExpId, Port), (ExpId, Switch), (ExpId, FlowTx, FlowRx), (ExpId, Task), (ExpId, Exp, EngineTables, ExperimentState), sorted by
//! (ExpId, row) and structurally frozen until the batch is over. So an experiment's rows are one slice of each column, which `world_rows` finds by ExpId.
//! Engines work on these slices as tables, and results are read from them: no row exists twice. The next batch's rows overwrite them, as a sweep's experiments are mostly of one size.
//!
//! Data that only engines use (packets, wires, clocks ...) is no entity: `columns::registry` gives the reason for each table. It is a component of the
//! experiment.
//!
//! Besides its columns `bevy_ecs` keeps 96 bytes per row (`host_memory`).

use std::mem::take;
use std::sync::Arc;
use std::time::Instant;

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;
use bevy_ecs::system::SystemParam;

use hyperfold_base::isolation::isolated;
use hyperfold_columns::{
    Columns, EngineTables, Exp, FlowRx, FlowTx, LinkEndIdx, Nic, OwnedTables, Port, SHARED_FLOWS_LEFT, Switch, Tables,
    Task, flag, status,
};
use hyperfold_config::spec::Config;
use hyperfold_engine::FoldStats;
use hyperfold_engine::{Engine, EngineError, is_final, packet_hops, series};
use hyperfold_flow::{FlowEngine, advance_beside};

use crate::batches::conserve;
use crate::batches::diagnose;
use crate::batches::world_rows::{DENSE, ExpId, WorldIndex, fill, fill_flows};
use crate::outcomes::flow_info::FlowInfo;
use crate::outcomes::outcome::{Ending, ExperimentOutcome};
use crate::outcomes::read_outcome::{OutcomeRows, read};
use crate::outcomes::series_outcome;
use crate::setup::links::names::link_names;
use crate::setup::prepare::Prepared;

/// Limits of one experiment; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of packet-hops that are simulated.
    pub packet_hops: Option<u64>,
    /// Maximum wall time of the simulation, ms.
    pub wall_ms: Option<u64>,
}

impl Limits {
    /// Returns the limits in a configuration.
    pub fn of(config: &Config) -> Limits {
        Limits { packet_hops: config.limits.packet_hops, wall_ms: config.limits.wall_ms }
    }
}

/// The host's state of an experiment in the batch.
#[derive(Component)]
struct ExperimentState {
    flows: Vec<FlowInfo>,
    program: Option<std::sync::Arc<crate::programs::job::Job>>,
    /// Rows of each of several jobs; else empty.
    jobs: Vec<crate::tables::job_rows::JobRows>,
    /// Links that several jobs share, if the configuration asks for them.
    shared_links: Vec<crate::tables::job_rows::LinkShares>,
    bill: crate::cost::Bill,
    link_names: Vec<String>,
    limits: Limits,
    seconds: f64,
    /// Packets that had left a port after the last slice.
    packet_hops: u64,
    /// Statistics of folding, if the engine folds.
    folds: Option<FoldStats>,
    /// Reason why the host ended it, if it did.
    ended: Option<Ending>,
    reported: bool,
}

/// The end of an experiment.
#[derive(Debug)]
pub struct Ended {
    /// Index in the sweep.
    pub exp_id: u64,
    /// The outcome, or the reason why there is none.
    pub result: Result<ExperimentOutcome, Ending>,
    /// Packets that left a port, simulated or not.
    pub packet_hops: u64,
    /// Statistics of folding; `None`: everything was simulated once.
    pub folds: Option<FoldStats>,
    /// Wall time that it took, s.
    pub seconds: f64,
}

impl Ended {
    /// Returns the end of an experiment that equals this one in everything: the same outcome or failure, without simulation.
    pub fn of_duplicate(&self, exp_id: u64) -> Ended {
        let folds = Some(folds_of_duplicate(&self.folds.unwrap_or_default()));
        Ended { exp_id, result: self.result.clone(), packet_hops: self.packet_hops, folds, seconds: 0.0 }
    }
}

/// Returns the statistics of folding for an experiment that takes another's outcome: one lookup. Approximations of the original count for the duplicate too.
pub(crate) fn folds_of_duplicate(original: &FoldStats) -> FoldStats {
    FoldStats {
        hits: 1,
        skips: original.skips,
        rounded: original.rounded,
        audit: original.audit,
        hops_skipped: original.hops_skipped,
        wander_ps: original.wander_ps,
        unpaused: original.unpaused,
        carried: original.carried,
        drift_ps: original.drift_ps,
        drift_over_ps: original.drift_over_ps,
        hops_carried: original.hops_carried,
        carried_ppm: original.carried_ppm,
        carried_messages_ppm: original.carried_messages_ppm,
        exactly: original.exactly,
        ..FoldStats::default()
    }
}

#[derive(Resource)]
struct EngineHandle(Box<dyn Engine>);

/// The engine for experiments at flow level.
#[derive(Resource, Default)]
struct FlowLevel(FlowEngine);

#[derive(Resource)]
struct Settings {
    packet_limit: u64,
    stop: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Experiments that ended in this slice, and the error that broke the engine, if any.
#[derive(Resource, Default)]
struct EndedInSlice {
    ended: Vec<Ended>,
    broken: Option<EngineError>,
}

/// The stages of a slice, in this order.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SliceStage {
    /// The engine runs for a slice.
    Dispatch,
    /// What experiments have done so far is counted over the world's columns. Nothing is changed but the host's state of them.
    Observe,
    /// Experiments that reached a limit of theirs are ended, and those that the engine could not go on with.
    Decide,
    /// Outcomes of the experiments that ended are read from the world's columns.
    Complete,
}

#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SliceSchedule;

/// A batch of experiments and the schedule that runs it.
pub struct Batch {
    world: World,
    schedule: Schedule,
}

impl Batch {
    /// Creates an empty batch. `packet_limit`: most packet records of one experiment. `stop`: called often; ends a slice early.
    pub fn new(engine: Box<dyn Engine>, packet_limit: u64, stop: Box<dyn Fn() -> bool + Send + Sync>) -> Batch {
        let mut world = World::new();
        world.init_resource::<EndedInSlice>();
        world.init_resource::<WorldIndex>();
        world.insert_resource(EngineHandle(engine));
        world.init_resource::<FlowLevel>();
        world.insert_resource(Settings { packet_limit, stop });
        let mut schedule = Schedule::new(SliceSchedule);
        let stages = (SliceStage::Dispatch, SliceStage::Observe, SliceStage::Decide, SliceStage::Complete);
        schedule.configure_sets(stages.chain());
        schedule.add_systems((
            dispatch.in_set(SliceStage::Dispatch),
            count_packet_hops.in_set(SliceStage::Observe),
            apply_limits.in_set(SliceStage::Decide),
            complete.in_set(SliceStage::Complete),
        ));
        Batch { world, schedule }
    }

    /// Adds experiments, in ascending order of their ids.
    ///
    /// PRECONDITION: the batch is empty, or the last one was cleared.
    pub fn admit(&mut self, mut experiments: Vec<(u64, Prepared, Limits)>) {
        // Table after table, so that the rows of at most one table exist twice.
        let world = &mut self.world;
        fill(world, taken(&mut experiments, |t| take(&mut t.nics)));
        fill(world, taken(&mut experiments, |t| take(&mut t.ports)));
        fill(world, taken(&mut experiments, |t| take(&mut t.switches)));
        fill_flows(world, taken(&mut experiments, |t| (take(&mut t.flow_tx), take(&mut t.flow_rx))));
        fill(world, taken(&mut experiments, |t| take(&mut t.tasks)));
        for (exp_id, mut prepared, limits) in experiments {
            let t = &mut prepared.built.tables;
            let (exp, engine) = (t.exps[0], t.take_engine());
            let state = ExperimentState {
                flows: prepared.flows,
                program: prepared.job,
                jobs: prepared.jobs,
                shared_links: prepared.shared_links,
                bill: prepared.bill,
                link_names: link_names(&prepared.network, &prepared.built.end_arcs),
                limits,
                seconds: 0.0,
                packet_hops: 0,
                folds: None,
                ended: None,
                reported: false,
            };
            self.world.spawn((ExpId(exp_id), exp, engine, state));
        }
        let index = WorldIndex::of(&mut self.world);
        self.world.insert_resource(index);
    }

    /// Runs the engine for one slice. Returns the experiments that ended in it.
    ///
    /// # Errors
    /// The engine cannot go on.
    pub fn run_slice(&mut self) -> Result<Vec<Ended>, EngineError> {
        self.schedule.run(&mut self.world);
        let mut in_slice = self.world.resource_mut::<EndedInSlice>();
        match in_slice.broken.take() {
            Some(e) => Err(e),
            None => Ok(std::mem::take(&mut in_slice.ended)),
        }
    }

    /// Whether every experiment has ended and was reported.
    pub fn is_over(&mut self) -> bool {
        let mut states = self.world.query::<&ExperimentState>();
        states.iter(&self.world).all(|state| state.reported)
    }

    /// Returns the ids of the experiments that have not ended, and how many packets have left a port of each.
    pub fn running(&mut self) -> Vec<(u64, u64)> {
        let mut states = self.world.query::<(&ExpId, &ExperimentState)>();
        let running = states.iter(&self.world).filter(|(_, state)| !state.reported);
        running.map(|(id, state)| (id.0, state.packet_hops)).collect()
    }

    /// Removes all experiments. Their rows stay, to be overwritten by the next experiments that are admitted.
    pub fn clear(&mut self) {
        let mut query = self.world.query_filtered::<Entity, With<ExperimentState>>();
        let experiments: Vec<Entity> = query.iter(&self.world).collect();
        for experiment in experiments {
            self.world.despawn(experiment);
        }
        self.world.insert_resource(WorldIndex::default());
        // Nobody reads the trackers of removed entities; without this they would pile up.
        self.world.clear_trackers();
        self.world.resource_mut::<EngineHandle>().0.forget();
    }

    /// Returns how many experiments the engine can take at once if it runs on `threads` threads.
    pub fn max_batch(&self, threads: usize) -> usize {
        self.world.resource::<EngineHandle>().0.max_batch(threads)
    }

    /// Returns the engine, for another batch.
    pub fn into_engine(mut self) -> Box<dyn Engine> {
        let mut engine = self.world.remove_resource::<EngineHandle>().expect("a batch has its engine from the start").0;
        engine.forget();
        engine
    }

    /// Returns how many bytes of tables the engine can take at once.
    pub fn max_batch_bytes(&self) -> u64 {
        self.world.resource::<EngineHandle>().0.max_batch_bytes()
    }
}

/// What `rows` takes out of the tables of each experiment.
fn taken<R>(experiments: &mut [(u64, Prepared, Limits)], rows: impl Fn(&mut OwnedTables) -> R) -> Vec<(ExpId, R)> {
    experiments.iter_mut().map(|(id, prepared, _)| (ExpId(*id), rows(&mut prepared.built.tables))).collect()
}

/// The columns of the world.
#[derive(SystemParam)]
struct WorldColumns<'w, 's> {
    experiments:
        Query<'w, 's, (&'static ExpId, &'static mut Exp, &'static mut EngineTables, &'static mut ExperimentState)>,
    nics: Query<'w, 's, &'static mut Nic>,
    ports: Query<'w, 's, &'static mut Port>,
    switches: Query<'w, 's, &'static mut Switch>,
    flows: Query<'w, 's, (&'static mut FlowTx, &'static mut FlowRx)>,
    tasks: Query<'w, 's, &'static mut Task>,
    index: Res<'w, WorldIndex>,
}

impl WorldColumns<'_, '_> {
    /// Calls `work` with all experiments, in ascending order of their ids. Reported experiments have only headers.
    fn with(&mut self, work: impl FnOnce(&[ExpId], &mut [Tables], &mut [ExperimentState])) {
        let mut nics = self.nics.contiguous_iter_mut().expect(DENSE).last();
        let mut ports = self.ports.contiguous_iter_mut().expect(DENSE).last();
        let mut switches = self.switches.contiguous_iter_mut().expect(DENSE).last();
        let mut flows = self.flows.contiguous_iter_mut().expect(DENSE).last();
        let mut tasks = self.tasks.contiguous_iter_mut().expect(DENSE).last();
        let experiments = self.experiments.contiguous_iter_mut().expect(DENSE).last();
        let Some((ids, mut exps, mut engines, mut states)) = experiments else { return };
        let (flow_tx, flow_rx) = match &mut flows {
            Some((tx, rx)) => (tx.bypass_change_detection(), rx.bypass_change_detection()),
            None => Default::default(),
        };
        assert_eq!(ids, self.index.ids, "the rows of experiments are in the order of their ids");
        let columns = Columns {
            exps: exps.bypass_change_detection(),
            nics: nics.as_mut().map_or_else(Default::default, |column| column.bypass_change_detection()),
            ports: ports.as_mut().map_or_else(Default::default, |column| column.bypass_change_detection()),
            switches: switches.as_mut().map_or_else(Default::default, |column| column.bypass_change_detection()),
            flow_tx,
            flow_rx,
            tasks: tasks.as_mut().map_or_else(Default::default, |column| column.bypass_change_detection()),
        };
        let (engines, states) = (engines.bypass_change_detection(), states.bypass_change_detection());
        let running = engines.iter_mut().zip(&*states).map(|(engine, state)| (!state.reported).then(|| take(engine)));
        let mut tables = columns.split(&self.index.spans, running);
        work(ids, &mut tables, states);
        for (engine, t) in engines.iter_mut().zip(&mut tables) {
            *engine = t.take_engine();
        }
    }
}

/// Stage `Dispatch`: runs the engine.
fn dispatch(
    mut columns: WorldColumns,
    mut engine: ResMut<EngineHandle>,
    mut flows: ResMut<FlowLevel>,
    settings: Res<Settings>,
    mut in_slice: ResMut<EndedInSlice>,
) {
    columns.with(|_, tables, states| {
        let slice = advance_beside(&mut flows.0, &mut *engine.0, tables, settings.packet_limit, &settings.stop);
        let slice = match slice {
            Ok(slice) => slice,
            Err(e) => {
                in_slice.broken = Some(e);
                return;
            }
        };
        for (position, state) in states.iter_mut().enumerate() {
            state.seconds += slice.seconds.get(position).copied().unwrap_or(0.0);
            state.folds = slice.folds.get(position).copied();
        }
        for (position, why) in slice.failures {
            states[position].ended = Some(Ending::Failed(why));
        }
    });
}

/// Stage `Observe`: counts the packets that have left a port of each experiment.
fn count_packet_hops(
    nics: Query<&Nic>,
    ports: Query<&Port>,
    index: Res<WorldIndex>,
    in_slice: Res<EndedInSlice>,
    mut experiments: Query<(&ExpId, &mut ExperimentState)>,
) {
    if in_slice.broken.is_some() {
        return;
    }
    let nics = nics.contiguous_iter().expect(DENSE).last().unwrap_or_default();
    let ports = ports.contiguous_iter().expect(DENSE).last().unwrap_or_default();
    for (&id, mut state) in experiments.iter_mut().filter(|(_, state)| !state.reported) {
        let left_nics: u64 = nics[index.rows::<Nic>(id)].iter().map(|nic| nic.hops).sum();
        let left_ports: u64 = ports[index.rows::<Port>(id)].iter().map(|port| port.hops).sum();
        state.packet_hops = left_nics + left_ports;
    }
}

/// Stage `Decide`: ends experiments that reached one of the limits that only the host knows, and those that the engine could not go on with.
fn apply_limits(mut experiments: Query<(&mut Exp, &mut ExperimentState)>) {
    for (mut exp, mut state) in experiments.iter_mut().filter(|(_, state)| !state.reported) {
        if let Some(limit) = state.limits.packet_hops.filter(|&limit| state.packet_hops > limit) {
            state.ended = Some(Ending::Failed(format!(
                "limit: packet_hops = {limit} reached; raise limits.packet_hops or make the workload smaller"
            )));
        }
        let runs = matches!(exp.status, status::RUNNING | status::NEEDS_PACKETS);
        if let Some(limit) = state.limits.wall_ms.filter(|&limit| runs && state.seconds * 1e3 > limit as f64) {
            state.ended = Some(Ending::MachineLimit(format!(
                "limit: wall_s = {} reached; raise limits.wall_s or make the workload smaller",
                limit as f64 / 1e3
            )));
        }
        if state.ended.is_some() {
            exp.status = status::ENDED_BY_HOST;
        }
    }
}

/// Stage `Complete`: reads outcomes of experiments that have just ended, and drops what only the engine had of them.
fn complete(mut columns: WorldColumns, mut in_slice: ResMut<EndedInSlice>) {
    columns.with(|ids, tables, states| {
        for ((id, t), state) in ids.iter().zip(tables).zip(states) {
            if state.reported || !is_final(t) {
                continue;
            }
            state.reported = true;
            let started = Instant::now();
            series::end(t);
            let samples = take(&mut t.series);
            let read_out = || {
                verdict(t, state).map_err(Ending::Failed)?;
                let outcome = read(
                    &OutcomeRows::of(t),
                    &state.flows,
                    state.program.as_deref(),
                    &state.jobs,
                    &state.link_names,
                    &t.rtts,
                );
                let shared_links = crate::outcomes::job_outcomes::shared_links(&state.shared_links, &state.link_names);
                let series = series_outcome::read(t, &samples).map(Arc::new);
                Ok(ExperimentOutcome { bill: Some(state.bill), shared_links, series, ..outcome })
            };
            let result = match state.ended.clone() {
                Some(ending) => Err(ending),
                None => isolated(read_out).unwrap_or_else(|defect| Err(Ending::Failed(defect.to_string()))),
            };
            state.seconds += started.elapsed().as_secs_f64();
            in_slice.ended.push(Ended {
                exp_id: id.0,
                result,
                packet_hops: packet_hops(t),
                folds: state.folds,
                seconds: state.seconds,
            });
            drop(t.take_engine());
        }
    });
}

/// What a message about timeouts adds where there are traffic classes of several levels.
fn waits_for_classes(t: &Tables) -> &'static str {
    if t.class_queues.iter().all(|queue| queue.level == 0) {
        return "";
    }
    "; a class waits as long as one of a higher priority sends (transport.classes): a longer transport.rto_us, or weights instead"
}

/// Checks that the experiment's numbers can be trusted; else returns the reason.
fn verdict(t: &Tables, state: &ExperimentState) -> Result<(), String> {
    let name = |end: LinkEndIdx| state.link_names[end.usize()].clone();
    let e = &t.exps[0];
    match e.status {
        // A retransmission deadline that has no effect may be all that is left: an experiment whose flows are done has not reached the limit.
        status::TIME_LIMIT if t.shared[SHARED_FLOWS_LEFT as usize] > 0 && e.time_limit > 1 << 63 => {
            return Err(
                "limit: it takes more than 107 days of simulated time; make the workload smaller, or links faster"
                    .into(),
            );
        }
        status::TIME_LIMIT if t.shared[SHARED_FLOWS_LEFT as usize] > 0 => {
            return Err(format!(
                "limit: sim_ns = {} reached; raise limits.sim_ns or make the workload smaller",
                e.time_limit / 1000
            ));
        }
        status::VIOLATION => {
            let flags = t.shared[0];
            let what = if flags & flag::OVER_BUFFER != 0 {
                "a switch held more than its buffer"
            } else {
                "a pool of packets ran dry"
            };
            return Err(format!("internal error, please report: {what}"));
        }
        status::GAVE_UP => {
            let worst = t
                .flow_tx
                .iter()
                .filter(|f| f.flow_id != hyperfold_columns::NO_FLOW)
                .max_by_key(|f| f.retries)
                .map_or(0, |f| f.flow_id);
            return Err(format!(
                "flow {worst} gave up after {} retransmission timeouts without progress (transport.rto_retries; transport.rto_us = {}); {}{}{}",
                e.rto_retries,
                e.rto as f64 / 1e6,
                diagnose::stuck(t, &name),
                diagnose::watchdog_acted(t),
                waits_for_classes(t)
            ));
        }
        _ => {}
    }
    conserve::check(t, &state.link_names).map_err(|v| format!("internal error, please report: {v}"))?;
    if t.shared[SHARED_FLOWS_LEFT as usize] > 0 {
        return Err(diagnose::stuck(t, &name));
    }
    Ok(())
}
