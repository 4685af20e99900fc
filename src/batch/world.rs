//! The world of a batch: every experiment's rows as entities of shared archetypes, and the host systems that run between slices of the engine.
//!
//! Layer: batch. Archetypes: (ExpId, Nic), (ExpId, Port), (ExpId, Switch), (ExpId, FlowTx, FlowRx), (ExpId, Task), (ExpId, Exp, Job), sorted by (ExpId, row) and
//! structurally frozen until the batch is over, so that each archetype's table holds an experiment's rows in one run and columns are copied
//! as slices. The next batch's rows are written over them: a sweep's experiments are mostly of one size. What only the engine needs (packets, wires, clocks ...) never becomes entities.

use std::time::Instant;

use bevy_ecs::bundle::NoBundleEffect;
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use bevy_ecs::query::IterQueryData;
use bevy_ecs::schedule::ScheduleLabel;

use crate::columns::{Exp, FlowRx, FlowTx, Nic, Port, SHARED_FLOWS_LEFT, Switch, Tables, Task, flag, status};
use crate::engine::fold::FoldStats;
use crate::engine::{Engine, EngineError, is_final, packet_hops};

use super::outcome::{Ending, Outcome};
use super::prepare::Prepared;
use super::read_outcome::{OutcomeRows, read};
use super::{conserve, diagnose};

/// The experiment a row belongs to: its index in the sweep.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpId(pub u64);

/// Limits of one experiment; `None`: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub packet_hops: Option<u64>,
    pub wall_ms: Option<u64>,
}

/// Where an experiment of the batch stands.
#[derive(Component)]
struct Job {
    /// Its place on the device.
    slot: usize,
    flows: Vec<super::prepare::FlowInfo>,
    program: Option<std::sync::Arc<super::job::Job>>,
    bill: crate::cost::Bill,
    link_names: Vec<String>,
    limits: Limits,
    seconds: f64,
    /// What folding did, where the engine folds.
    folds: Option<FoldStats>,
    /// Why the host ended it.
    ended: Option<Ending>,
    reported: bool,
}

/// How an experiment ended.
#[derive(Debug)]
pub struct Ended {
    pub exp_id: u64,
    /// What happened, or why nothing can be said.
    pub result: Result<Outcome, Ending>,
    /// Packets that left a port, simulated or not.
    pub packet_hops: u64,
    /// What folding did of that; `None`: all was simulated, once.
    pub folds: Option<FoldStats>,
    pub seconds: f64,
}

/// First row of every experiment in every archetype's table, by slot.
#[derive(Clone, Copy, Debug, Default)]
struct Bases {
    nic: usize,
    port: usize,
    switch: usize,
    flow: usize,
    task: usize,
}

/// What the device holds: one set of tables an experiment, by slot.
#[derive(Resource, Default)]
struct Device {
    tables: Vec<Tables>,
    bases: Vec<Bases>,
}

#[derive(Resource)]
struct EngineHandle(Box<dyn Engine>);

#[derive(Resource)]
struct Settings {
    packet_limit: u64,
    stop: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Experiments that ended in this round, and whether the engine broke.
#[derive(Resource, Default)]
struct Round {
    ended: Vec<Ended>,
    broken: Option<EngineError>,
}

/// The stages of a round, in this order.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The engine runs for a slice.
    Dispatch,
    /// Columns of experiments that ended come back.
    ReadBack,
    /// Outcomes are read off the world's columns.
    Complete,
}

#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RoundLabel;

/// A batch of experiments and the schedule that runs it.
pub struct Batch {
    world: World,
    schedule: Schedule,
}

impl Batch {
    /// An empty batch. `packet_limit`: records of packets that one experiment may have; `stop`: asked often, ends a round early.
    pub fn new(engine: Box<dyn Engine>, packet_limit: u64, stop: Box<dyn Fn() -> bool + Send + Sync>) -> Batch {
        let mut world = World::new();
        world.init_resource::<Device>();
        world.init_resource::<Round>();
        world.insert_resource(EngineHandle(engine));
        world.insert_resource(Settings { packet_limit, stop });
        let mut schedule = Schedule::new(RoundLabel);
        schedule.configure_sets((Stage::Dispatch, Stage::ReadBack, Stage::Complete).chain());
        schedule.add_systems((
            dispatch.in_set(Stage::Dispatch),
            read_back.in_set(Stage::ReadBack),
            complete.in_set(Stage::Complete),
        ));
        Batch { world, schedule }
    }

    /// Takes experiments in, in ascending order of their ids.
    ///
    /// PRECONDITION: the batch is empty, or the last one was cleared.
    pub fn admit(&mut self, experiments: Vec<(u64, Prepared, Limits)>) {
        fill_one(&mut self.world, &experiments, |t| &t.nics);
        fill_one(&mut self.world, &experiments, |t| &t.ports);
        fill_one(&mut self.world, &experiments, |t| &t.switches);
        fill_flows(&mut self.world, &experiments);
        fill_one(&mut self.world, &experiments, |t| &t.tasks);
        let mut next = Bases::default();
        for (slot, (exp_id, prepared, limits)) in experiments.into_iter().enumerate() {
            let id = ExpId(exp_id);
            let t = prepared.built.tables;
            self.world.resource_mut::<Device>().bases.push(next);
            next.nic += t.nics.len();
            next.port += t.ports.len();
            next.switch += t.switches.len();
            next.flow += t.flow_tx.len();
            next.task += t.tasks.len();
            let job = Job {
                slot,
                flows: prepared.flows,
                program: prepared.job,
                bill: prepared.bill,
                link_names: link_names(&prepared.network, &prepared.built.end_arcs),
                limits,
                seconds: 0.0,
                folds: None,
                ended: None,
                reported: false,
            };
            self.world.spawn((id, t.exps[0], job));
            self.world.resource_mut::<Device>().tables.push(t);
        }
    }

    /// Runs one round; returns the experiments that ended in it.
    ///
    /// # Errors
    /// The engine cannot go on.
    pub fn round(&mut self) -> Result<Vec<Ended>, EngineError> {
        self.schedule.run(&mut self.world);
        let mut round = self.world.resource_mut::<Round>();
        match round.broken.take() {
            Some(e) => Err(e),
            None => Ok(std::mem::take(&mut round.ended)),
        }
    }

    /// Whether every experiment has ended and was reported.
    pub fn is_over(&mut self) -> bool {
        let mut jobs = self.world.query::<&Job>();
        jobs.iter(&self.world).all(|j| j.reported)
    }

    /// Removes all experiments, but for rows that the next ones will be written over; these may be admitted.
    pub fn clear(&mut self) {
        let mut jobs = self.world.query_filtered::<Entity, With<Job>>();
        let jobs: Vec<Entity> = jobs.iter(&self.world).collect();
        for job in jobs {
            self.world.despawn(job);
        }
        // Nobody asks what was removed; kept, it would pile up.
        self.world.clear_trackers();
        *self.world.resource_mut::<Device>() = Device::default();
    }

    /// How many experiments the engine can take at once, where it runs on `threads` threads.
    pub fn most(&self, threads: usize) -> usize {
        self.world.resource::<EngineHandle>().0.most(threads)
    }

    /// The engine, for another batch.
    pub fn into_engine(mut self) -> Box<dyn Engine> {
        self.world.remove_resource::<EngineHandle>().expect("a batch has its engine from the start").0
    }

    /// How many bytes of tables the engine can take at once.
    pub fn room(&self) -> u64 {
        self.world.resource::<EngineHandle>().0.room()
    }
}

/// Names of the links that link ends transmit on: `a->b`, and `a->b#k` where links are parallel.
pub(super) fn link_names(net: &crate::topology::Network, end_arcs: &[u32]) -> Vec<String> {
    let mut parallel = std::collections::HashMap::new();
    let key = |arc: u32| (net.arc_from(arc), net.arc_to(arc));
    for &arc in end_arcs {
        *parallel.entry(key(arc)).or_insert(0u32) += 1;
    }
    let mut seen = std::collections::HashMap::new();
    let id = |node: u32| net.nodes[node as usize].id;
    end_arcs
        .iter()
        .map(|&arc| {
            let (from, to) = key(arc);
            let plain = format!("{}->{}", id(from), id(to));
            if parallel[&(from, to)] == 1 {
                return plain;
            }
            let k = seen.entry((from, to)).or_insert(0u32);
            *k += 1;
            format!("{plain}#{k}")
        })
        .collect()
}

/// Row types are table components, so queries over them are dense; and one archetype is one table, so there is one slice.
const DENSE: &str = "row types are stored in tables";

/// Gives the archetype of `T` the `n` rows `rows`, by `put` where the last batch left some to be written over; too many of these go, the missing ones come.
fn fill<T: Component, D: IterQueryData, B: Bundle<Effect: NoBundleEffect>>(
    world: &mut World,
    n: usize,
    mut rows: impl Iterator<Item = B>,
    put: impl for<'w, 's> Fn(D::Item<'w, 's>, B),
) {
    for place in world.query_filtered::<D, With<T>>().iter_mut(world) {
        let Some(row) = rows.next() else { break };
        put(place, row);
    }
    world.spawn_batch(rows);
    shorten::<T>(world, n);
}

/// The rows of a table of all experiments, with whose they are: copied whole over those of the last batch, which mostly are as many.
fn fill_one<T: Component<Mutability = Mutable> + Copy>(
    world: &mut World,
    experiments: &[(u64, Prepared, Limits)],
    table: impl Fn(&Tables) -> &[T],
) {
    let tables = || experiments.iter().map(|e| (ExpId(e.0), table(&e.1.built.tables)));
    let (mut had, mut put) = (0, 0);
    for (mut ids, mut places) in world.query::<(&mut ExpId, &mut T)>().contiguous_iter_mut(world).expect(DENSE) {
        let (ids, places) = (ids.bypass_change_detection(), places.bypass_change_detection());
        had += places.len();
        for (id, rows) in tables() {
            let n = rows.len().min(places.len() - put);
            ids[put..put + n].fill(id);
            places[put..put + n].copy_from_slice(&rows[..n]);
            put += n;
        }
    }
    if put < had {
        shorten::<T>(world, put);
    } else {
        let rows = tables().flat_map(|(id, rows)| rows.iter().map(move |&row| (id, row)));
        world.spawn_batch(rows.skip(put));
    }
}

/// Leaves the archetype of `T` its first `n` rows.
fn shorten<T: Component>(world: &mut World, n: usize) {
    let surplus: Vec<Entity> = world.query_filtered::<Entity, With<T>>().iter(world).skip(n).collect();
    // The last first: nobody has to move.
    for row in surplus.into_iter().rev() {
        world.despawn(row);
    }
}

/// The same for queue pairs, both ends of which are one row.
fn fill_flows(world: &mut World, experiments: &[(u64, Prepared, Limits)]) {
    let n = experiments.iter().map(|e| e.1.built.tables.flow_tx.len()).sum();
    let ends =
        |t: &'_ Tables| -> Vec<(FlowTx, FlowRx)> { t.flow_tx.iter().copied().zip(t.flow_rx.iter().copied()).collect() };
    let rows =
        experiments.iter().flat_map(|e| ends(&e.1.built.tables).into_iter().map(|(tx, rx)| (ExpId(e.0), tx, rx)));
    fill::<FlowTx, (&mut ExpId, &mut FlowTx, &mut FlowRx), _>(
        world,
        n,
        rows,
        |(mut id, mut tx, mut rx), (of, new_tx, new_rx)| {
            *id.bypass_change_detection() = of;
            *tx.bypass_change_detection() = new_tx;
            *rx.bypass_change_detection() = new_rx;
        },
    );
}

/// Stage `Dispatch`: the engine runs; limits that only the host knows are applied.
fn dispatch(
    mut device: ResMut<Device>,
    mut engine: ResMut<EngineHandle>,
    settings: Res<Settings>,
    mut round: ResMut<Round>,
    mut jobs: Query<&mut Job>,
) {
    let slice = match engine.0.advance(&mut device.tables, settings.packet_limit, &settings.stop) {
        Ok(slice) => slice,
        Err(e) => {
            round.broken = Some(e);
            return;
        }
    };
    for mut job in &mut jobs {
        let t = &mut device.tables[job.slot];
        job.seconds += slice.seconds.get(job.slot).copied().unwrap_or(0.0);
        job.folds = slice.folds.get(job.slot).copied();
        if let Some((_, why)) = slice.failures.iter().find(|(slot, _)| *slot == job.slot) {
            job.ended = Some(Ending::Failed(why.clone()));
        }
        if let Some(most) = job.limits.packet_hops.filter(|&most| packet_hops(t) > most) {
            job.ended = Some(Ending::Failed(format!(
                "limit: packet_hops = {most} reached; raise limits.packet_hops or make the workload smaller"
            )));
        }
        if let Some(most) = job.limits.wall_ms.filter(|&most| !is_final(t) && job.seconds * 1e3 > most as f64) {
            job.ended = Some(Ending::WallLimit(format!(
                "limit: wall_s = {} reached; raise limits.wall_s or make the workload smaller",
                most as f64 / 1e3
            )));
        }
        if job.ended.is_some() {
            t.exps[0].status = status::ENDED_BY_HOST;
        }
    }
}

/// Stage `ReadBack`: columns of experiments that have just ended come back into the world.
fn read_back(
    device: Res<Device>,
    mut jobs: Query<(&Job, &mut Exp)>,
    mut nics: Query<&mut Nic>,
    mut ports: Query<&mut Port>,
    mut switches: Query<&mut Switch>,
    mut flows: Query<(&mut FlowTx, &mut FlowRx)>,
    mut tasks: Query<&mut Task>,
) {
    let mut over = Vec::new();
    for (job, mut exp) in &mut jobs {
        let t = &device.tables[job.slot];
        if !job.reported && is_final(t) {
            *exp = t.exps[0];
            over.push((t, device.bases[job.slot]));
        }
    }
    if over.is_empty() {
        return;
    }
    for mut column in nics.contiguous_iter_mut().expect(DENSE) {
        over.iter().for_each(|(t, b)| put(&t.nics, column.bypass_change_detection(), b.nic));
    }
    for mut column in ports.contiguous_iter_mut().expect(DENSE) {
        over.iter().for_each(|(t, b)| put(&t.ports, column.bypass_change_detection(), b.port));
    }
    for mut column in switches.contiguous_iter_mut().expect(DENSE) {
        over.iter().for_each(|(t, b)| put(&t.switches, column.bypass_change_detection(), b.switch));
    }
    for (mut tx, mut rx) in flows.contiguous_iter_mut().expect(DENSE) {
        for (t, b) in &over {
            put(&t.flow_tx, tx.bypass_change_detection(), b.flow);
            put(&t.flow_rx, rx.bypass_change_detection(), b.flow);
        }
    }
    for mut column in tasks.contiguous_iter_mut().expect(DENSE) {
        over.iter().for_each(|(t, b)| put(&t.tasks, column.bypass_change_detection(), b.task));
    }
}

fn put<T: Copy>(from: &[T], column: &mut [T], base: usize) {
    column[base..base + from.len()].copy_from_slice(from);
}

/// Stage `Complete`: outcomes of experiments that have just ended; their tables are let go.
fn complete(
    mut device: ResMut<Device>,
    mut round: ResMut<Round>,
    mut jobs: Query<(&ExpId, &mut Job, &Exp)>,
    nics: Query<&Nic>,
    ports: Query<&Port>,
    flows: Query<&FlowTx>,
    tasks: Query<&Task>,
) {
    let nics = column(nics.contiguous_iter().expect(DENSE));
    let ports = column(ports.contiguous_iter().expect(DENSE));
    let flows = column(flows.contiguous_iter().expect(DENSE));
    let tasks = column(tasks.contiguous_iter().expect(DENSE));
    for (id, mut job, exp) in &mut jobs {
        let slot = job.slot;
        if job.reported || !is_final(&device.tables[slot]) {
            continue;
        }
        job.reported = true;
        let (t, b) = (&device.tables[slot], device.bases[slot]);
        let rows = OutcomeRows {
            exp,
            nics: &nics[b.nic..b.nic + t.nics.len()],
            ports: &ports[b.port..b.port + t.ports.len()],
            tx: &flows[b.flow..b.flow + t.flow_tx.len()],
            tasks: &tasks[b.task..b.task + t.tasks.len()],
        };
        let started = Instant::now();
        let believed = match job.ended.clone() {
            Some(ending) => Err(ending),
            None => verdict(t, &job).map_err(Ending::Failed),
        };
        let result = match believed {
            Ok(()) => Ok(Outcome {
                bill: Some(job.bill),
                ..read(rows, &job.flows, job.program.as_deref(), &job.link_names, &t.rtts)
            }),
            Err(ending) => Err(ending),
        };
        job.seconds += started.elapsed().as_secs_f64();
        round.ended.push(Ended {
            exp_id: id.0,
            result,
            packet_hops: packet_hops(t),
            folds: job.folds,
            seconds: job.seconds,
        });
        let exps = std::mem::take(&mut device.tables[slot].exps);
        device.tables[slot] = Tables { exps, ..Tables::default() };
    }
}

/// The one slice of a column that is one archetype's.
fn column<'a, T>(slices: impl Iterator<Item = &'a [T]>) -> &'a [T] {
    slices.last().unwrap_or(&[])
}

/// Whether the experiment's numbers may be believed, and why not.
fn verdict(t: &Tables, job: &Job) -> Result<(), String> {
    let name = |end: u32| job.link_names[end as usize].clone();
    let e = &t.exps[0];
    match e.status {
        // A retransmission deadline that came to nothing may be all that is left; whoever is done by then has not reached the limit.
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
            let worst = t.flow_tx.iter().max_by_key(|f| f.retries).map_or(0, |f| f.flow_id);
            return Err(format!(
                "flow {worst} gave up after {} retransmission timeouts without progress (transport.rto_retries; transport.rto_us = {}); {}",
                e.rto_retries,
                e.rto / 1_000_000,
                diagnose::stuck(t, &name)
            ));
        }
        _ => {}
    }
    conserve::check(t).map_err(|v| format!("internal error, please report: {v}"))?;
    if t.shared[SHARED_FLOWS_LEFT as usize] > 0 {
        return Err(diagnose::stuck(t, &name));
    }
    Ok(())
}
