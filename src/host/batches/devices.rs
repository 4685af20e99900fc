//! Runs experiments on several engines at once: each goes to an engine that is free. An engine that fails is retired, and its experiments go to others.
//!
//! Layer: host. Each engine has its own thread and batches and takes from one queue. The choice of engine changes no outcome.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyperfold_engine::{Engine, EngineError};

use crate::batches::runner::{ExperimentSource, RunEvent, RunOptions, drive};
use crate::batches::world::Batch;
use crate::setup::experiment::QueuedExperiment;

/// An engine and its name in messages.
pub struct Worker {
    /// Name of the device, for messages.
    pub name: String,
    /// Engine that advances this worker's batches.
    pub engine: Box<dyn Engine>,
    /// Whether the engine computes on the host, on the threads of the pool.
    pub on_pool: bool,
}

/// How often a worker without work checks whether the run was stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Batches that each worker should get of the remaining experiments, so that all workers end at about the same time.
const SHARES: usize = 2;

/// Runs every task on `workers`, each on its own thread; host work for them goes to `pool`. Once all workers are retired, the remaining tasks go to the worker
/// that `another` creates, as often as it creates one; it is told why the last one was retired. Afterwards `workers` holds those that were not retired.
/// Stops early, without an error, when `stop` returns true. `tell` is called on this thread.
///
/// No engine is left, or `tell` refuses news. A bad experiment is no error: it ends with a reason.
pub fn run_on_devices<E: From<EngineError>>(
    tasks: impl ExactSizeIterator<Item = QueuedExperiment> + Send,
    workers: &mut Vec<Worker>,
    another: &mut dyn FnMut(&EngineError) -> Option<Worker>,
    pool: &rayon::ThreadPool,
    options: &RunOptions,
    stop: impl Fn() -> bool + Send + Sync + Clone + 'static,
    tell: &mut dyn FnMut(RunEvent) -> Result<(), E>,
) -> Result<(), E> {
    let refused = Arc::new(AtomicBool::new(false));
    let stop = {
        let refused = Arc::clone(&refused);
        move || refused.load(Ordering::Relaxed) || stop()
    };
    let queue = Queue {
        state: Mutex::new(QueueState { source: Box::new(tasks), returned: BTreeMap::new(), in_flight: 0, workers: 0 }),
        changed: Condvar::new(),
    };
    let group = WorkerGroup { queue: &queue, pool, options, stop: &stop, refused: &refused };
    let mut last = group.run(workers, tell)?;
    while let Some(error) = last {
        let left = queue.lock().left();
        if left == 0 || stop() {
            return Ok(());
        }
        let Some(worker) = another(&error) else { return Err(error.into()) };
        tell(RunEvent::Lost(format!("no device is left; {left} experiments go to the {}", worker.name)))?;
        let mut more = vec![worker];
        last = group.run(&mut more, tell)?;
        workers.extend(more.into_iter().filter(|worker| !worker.on_pool));
    }
    Ok(())
}

/// State that all workers share.
struct WorkerGroup<'a, 'q, S> {
    queue: &'a Queue<'q>,
    pool: &'a rayon::ThreadPool,
    options: &'a RunOptions,
    stop: &'a S,
    /// Set once `tell` has refused news: all workers stop.
    refused: &'a AtomicBool,
}

enum WorkerMessage {
    Event(Box<RunEvent>),
    Retired { name: String, error: EngineError, returned: usize },
}

impl<S: Fn() -> bool + Send + Sync + Clone + 'static> WorkerGroup<'_, '_, S> {
    /// Lets workers run until no experiment or no worker is left. Returns why the last worker was retired, if any was.
    fn run<E: From<EngineError>>(
        &self,
        workers: &mut Vec<Worker>,
        tell: &mut dyn FnMut(RunEvent) -> Result<(), E>,
    ) -> Result<Option<EngineError>, E> {
        self.queue.lock().workers = workers.len();
        let (sender, receiver) = channel();
        let mut last = None;
        let mut answer = Ok(());
        std::thread::scope(|scope| {
            let work = |worker| {
                let sender = sender.clone();
                scope.spawn(move || self.work(worker, &sender))
            };
            let threads: Vec<_> = std::mem::take(workers).into_iter().map(work).collect();
            // The messages end when every worker has let go of its sender.
            drop(sender);
            for message in receiver {
                let news = match message {
                    WorkerMessage::Event(news) => *news,
                    WorkerMessage::Retired { name, error, returned } => {
                        let text = format!(
                            "{name} is not used any more: {error}; its {returned} unfinished experiments go elsewhere"
                        );
                        last = Some(error);
                        RunEvent::Lost(text)
                    }
                };
                if answer.is_ok() {
                    answer = tell(news);
                    self.refused.store(answer.is_err(), Ordering::Relaxed);
                }
            }
            for thread in threads {
                // A worker that panicked ends the run.
                workers.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
        answer.map(|()| last)
    }

    /// Runs one worker. Returns the worker, unless it was retired.
    fn work(&self, worker: Worker, sender: &Sender<WorkerMessage>) -> Option<Worker> {
        let Worker { name, engine, on_pool } = worker;
        let mut batch = Batch::new(engine, self.options.packet_limit, Box::new(self.stop.clone()));
        let mut share = WorkerShare {
            queue: self.queue,
            mine: BTreeMap::new(),
            max_batch: self.options.batch.max(1),
            stop: self.stop,
        };
        // The receiver outlives the workers, so no message is lost.
        let mut tell = |news| {
            sender
                .send(WorkerMessage::Event(Box::new(news)))
                .map_err(|_| EngineError::Device("nobody takes results".into()))
        };
        let run = drive(&mut batch, &mut share, Some((self.pool, on_pool)), self.options, self.stop, &mut tell);
        let returned = share.give_back();
        match run {
            Ok(()) => Some(Worker { name, engine: batch.into_engine(), on_pool }),
            // The other workers stop as well.
            Err(EngineError::Stopped) => None,
            Err(error) => {
                log::warn!("{name}: {error}");
                sender.send(WorkerMessage::Retired { name, error, returned }).unwrap_or_else(|e| log::error!("{e}"));
                None
            }
        }
    }
}

/// The experiments that no worker has taken.
struct Queue<'q> {
    state: Mutex<QueueState<'q>>,
    changed: Condvar,
}

struct QueueState<'q> {
    source: Box<dyn ExactSizeIterator<Item = QueuedExperiment> + Send + 'q>,
    /// Experiments that retired workers gave back, by `exp_id`.
    returned: BTreeMap<u64, QueuedExperiment>,
    /// Number of experiments that workers hold: they may come back.
    in_flight: usize,
    workers: usize,
}

impl<'q> Queue<'q> {
    fn lock(&self) -> MutexGuard<'_, QueueState<'q>> {
        // A worker that panics ends the run when its thread is joined.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState<'_> {
    fn left(&self) -> usize {
        self.source.len() + self.returned.len()
    }
}

/// A worker's side of the queue.
struct WorkerShare<'a, 'q, S> {
    queue: &'a Queue<'q>,
    /// Experiments that it has taken and not ended, to be given back if it fails.
    mine: BTreeMap<u64, QueuedExperiment>,
    /// Most experiments in a batch.
    max_batch: usize,
    stop: &'a S,
}

impl<S: Fn() -> bool> ExperimentSource for WorkerShare<'_, '_, S> {
    fn more(&mut self) -> Option<usize> {
        let mut state = self.queue.lock();
        loop {
            if (self.stop)() {
                return None;
            }
            match (state.left(), state.in_flight, state.workers) {
                (0, 0, _) => return None,
                // Experiments that other workers hold may come back.
                (0, ..) => {
                    state =
                        self.queue.changed.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0
                }
                (_, _, 0 | 1) => return Some(self.max_batch),
                (left, _, workers) => return Some((left / (SHARES * workers)).clamp(1, self.max_batch)),
            }
        }
    }

    fn take(&mut self, max_experiments: usize) -> Vec<QueuedExperiment> {
        let mut state = self.queue.lock();
        let next =
            |state: &mut QueueState| state.returned.pop_first().map(|(_, task)| task).or_else(|| state.source.next());
        let taken: Vec<QueuedExperiment> = std::iter::from_fn(|| next(&mut state)).take(max_experiments).collect();
        state.in_flight += taken.len();
        self.mine.extend(taken.iter().map(|task| (task.exp_id, task.clone())));
        taken
    }

    fn ended(&mut self, exp_id: u64) {
        if self.mine.remove(&exp_id).is_some() {
            self.queue.lock().in_flight -= 1;
            self.queue.changed.notify_all();
        }
    }
}

impl<S> WorkerShare<'_, '_, S> {
    /// Leaves the queue. Returns how many experiments go back to it.
    fn give_back(self) -> usize {
        let returned = self.mine.len();
        let mut state = self.queue.lock();
        state.in_flight -= returned;
        state.workers -= 1;
        state.returned.extend(self.mine);
        self.queue.changed.notify_all();
        returned
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use hyperfold_columns::Tables;
    use hyperfold_config::sweep::{self, SetOverrides};
    use hyperfold_engine::SliceOutcome;
    use hyperfold_engine::cpu::engine::CpuEngine;

    /// A CPU engine that stands in for a device: it counts its slices, and is lost after some.
    struct Device {
        engine: CpuEngine,
        slices: Arc<AtomicUsize>,
        lost_after: usize,
        /// Makes every device wait until all have work, so that a quick one does not take everything.
        begin: Arc<Barrier>,
    }

    impl Engine for Device {
        fn advance(
            &mut self,
            batch: &mut [Tables],
            packet_limit: u64,
            stop: &(dyn Fn() -> bool + Sync),
        ) -> Result<SliceOutcome, EngineError> {
            let n_before = self.slices.fetch_add(1, Ordering::Relaxed);
            if n_before == 0 {
                self.begin.wait();
            }
            if n_before >= self.lost_after {
                // A device may be lost in the middle of a step: its tables are then worthless.
                batch.iter_mut().for_each(|t| t.exps[0].now = u64::MAX);
                return Err(EngineError::Device("the device was lost: unplugged".into()));
            }
            self.engine.advance(batch, packet_limit, stop)
        }

        fn slice(&self) -> Duration {
            self.engine.slice()
        }
    }

    /// Creates one device per entry, each of which fails after so many slices. Returns also the counts of the slices that each was asked for.
    fn devices<const N: usize>(lost_after: [usize; N]) -> (Vec<Worker>, Vec<Arc<AtomicUsize>>) {
        let begin = Arc::new(Barrier::new(N));
        let device = |lost_after| {
            let slices = Arc::new(AtomicUsize::new(0));
            let engine =
                Device { engine: CpuEngine, slices: Arc::clone(&slices), lost_after, begin: Arc::clone(&begin) };
            (
                Worker { name: format!("device that lasts {lost_after}"), engine: Box::new(engine), on_pool: false },
                slices,
            )
        };
        lost_after.map(device).into_iter().unzip()
    }

    fn tasks() -> Vec<QueuedExperiment> {
        let text = "name = \"s\"\n[base.cluster]\ngpus = 16\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 100000\n[axes]\n\
                    \"transport.cc\" = [\"hpcc\", \"dcqcn\", \"none\"]\n\"topology.link_gbps\" = [100, 200, 300, 400]\n";
        let sweep = sweep::parse(text, Path::new("s.toml"), &SetOverrides::default()).unwrap();
        sweep
            .experiments
            .iter()
            .map(|e| QueuedExperiment { exp_id: e.exp_id, config: sweep.config(e).unwrap() })
            .collect()
    }

    /// The reports of a run: each experiment's end, and messages about lost devices.
    #[derive(Default)]
    struct Reported {
        ends: BTreeMap<u64, String>,
        lost: Vec<String>,
    }

    impl Reported {
        fn take(&mut self, news: RunEvent) -> Result<(), EngineError> {
            match news {
                RunEvent::Ended(e) => {
                    let twice = self.ends.insert(e.exp_id, format!("{:?} {}", e.result, e.packet_hops));
                    assert_eq!(twice, None, "experiment {} ended twice", e.exp_id);
                }
                RunEvent::Lost(text) => self.lost.push(text),
                RunEvent::Started(_) | RunEvent::Progress(_) | RunEvent::Note(_) => {}
            }
            Ok(())
        }
    }

    fn on_devices(
        mut workers: Vec<Worker>,
        another: &mut dyn FnMut(&EngineError) -> Option<Worker>,
    ) -> (Reported, Result<(), EngineError>) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut reported = Reported::default();
        let options = RunOptions { batch: 3, ..RunOptions::default() };
        let run = run_on_devices(tasks().into_iter(), &mut workers, another, &pool, &options, || false, &mut |news| {
            reported.take(news)
        });
        (reported, run)
    }

    /// Runs all experiments on one engine in one batch.
    fn alone() -> BTreeMap<u64, String> {
        let mut reported = Reported::default();
        crate::run(tasks().into_iter(), Box::new(CpuEngine), &RunOptions::default(), || false, &mut |news| {
            reported.take(news)
        })
        .unwrap();
        assert_eq!(reported.ends.len(), 12);
        reported.ends
    }

    #[test]
    fn several_engines_share_the_work_and_change_nothing() {
        let (workers, slices) = devices([usize::MAX; 3]);
        let (reported, run) = on_devices(workers, &mut |_| None);
        run.unwrap();
        assert_eq!((reported.ends, reported.lost), (alone(), Vec::new()));
        assert!(slices.iter().all(|n| n.load(Ordering::Relaxed) > 0), "every engine has worked: {slices:?}");
    }

    #[test]
    fn workers_come_back_for_another_run_unless_they_were_lost() {
        let (mut workers, slices) = devices([0, usize::MAX, usize::MAX]);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let options = RunOptions { batch: 3, ..RunOptions::default() };
        for round in 0..2 {
            let mut reported = Reported::default();
            run_on_devices(tasks().into_iter(), &mut workers, &mut |_| None, &pool, &options, || false, &mut |news| {
                reported.take(news)
            })
            .unwrap();
            assert_eq!(reported.ends, alone());
            assert_eq!((workers.len(), reported.lost.len()), (2, 1 - round), "the lost one is not asked again");
        }
        assert_eq!(slices[0].load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_a_lost_device_had_goes_elsewhere() {
        let (workers, _) = devices([0, 0, usize::MAX]);
        let (reported, run) = on_devices(workers, &mut |_| None);
        run.unwrap();
        assert_eq!(reported.ends, alone());
        assert_eq!(reported.lost.len(), 2, "{:?}", reported.lost);
        assert!(
            reported.lost[0].contains("is not used any more: the device was lost: unplugged; its "),
            "{:?}",
            reported.lost
        );
    }

    #[test]
    fn without_devices_the_fallback_goes_on() {
        let (workers, _) = devices([0, 1]);
        let mut make =
            |_: &EngineError| Some(Worker { name: "CPU engine".into(), engine: Box::new(CpuEngine), on_pool: true });
        let (reported, run) = on_devices(workers, &mut make);
        run.unwrap();
        assert_eq!(reported.ends, alone());
        assert!(reported.lost.last().unwrap().ends_with("experiments go to the CPU engine"), "{:?}", reported.lost);
    }

    #[test]
    fn each_device_that_is_left_is_tried() {
        let (mut left, _) = devices([0]);
        left.extend(devices([1]).0);
        left.extend(devices([usize::MAX]).0);
        left.reverse();
        let (reported, run) = on_devices(devices([0]).0, &mut |_| left.pop());
        run.unwrap();
        assert_eq!(reported.ends, alone());
        assert!(
            reported.lost.last().unwrap().ends_with("experiments go to the device that lasts 18446744073709551615")
        );
        let (mut left, _) = devices([1]);
        let (reported, run) = on_devices(devices([0]).0, &mut |_| left.pop());
        assert_eq!(run.unwrap_err().to_string(), "the device was lost: unplugged");
        assert!(reported.ends.len() < 12);
    }

    /// A device that compiles until the run is stopped.
    struct Compiling(Arc<AtomicBool>);

    impl Engine for Compiling {
        fn advance(
            &mut self,
            _: &mut [Tables],
            _: u64,
            stop: &(dyn Fn() -> bool + Sync),
        ) -> Result<SliceOutcome, EngineError> {
            self.0.store(true, Ordering::Relaxed);
            while !stop() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(EngineError::Stopped)
        }

        fn slice(&self) -> Duration {
            Duration::from_secs(1)
        }
    }

    #[test]
    fn a_device_that_is_at_work_when_the_run_stops_is_not_lost() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let (begun, mut reported) = (Arc::new(AtomicBool::new(false)), Reported::default());
        let worker = Worker { name: "slow".into(), engine: Box::new(Compiling(Arc::clone(&begun))), on_pool: false };
        let stop = move || begun.load(Ordering::Relaxed);
        let options = RunOptions::default();
        let ran =
            run_on_devices(tasks().into_iter(), &mut vec![worker], &mut |_| None, &pool, &options, stop, &mut |news| {
                reported.take(news)
            });
        ran.unwrap();
        assert!(reported.ends.is_empty() && reported.lost.is_empty(), "{:?}", reported.lost);
    }

    #[test]
    fn without_a_fallback_what_was_complete_stays_and_the_run_breaks_off() {
        let (reported, run) = on_devices(devices([2]).0, &mut |_| None);
        let alone = alone();
        assert_eq!(run.unwrap_err().to_string(), "the device was lost: unplugged");
        assert!(reported.ends.len() < alone.len() && reported.ends.iter().all(|(id, end)| alone[id] == *end));
    }

    #[test]
    fn a_run_that_is_stopped_or_refused_ends() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let workers = || devices([usize::MAX; 2]).0;
        let options = RunOptions { batch: 1, ..RunOptions::default() };
        let mut seen = BTreeSet::new();
        let mut tell = |news: RunEvent| match news {
            RunEvent::Ended(e) if seen.insert(e.exp_id) => Err(EngineError::Device("the disk is full".into())),
            _ => Ok(()),
        };
        let refused =
            run_on_devices(tasks().into_iter(), &mut workers(), &mut |_| None, &pool, &options, || false, &mut tell);
        assert_eq!(refused.unwrap_err().to_string(), "the disk is full");
        assert_eq!(seen.len(), 1, "nothing is reported after that");
        let stopped = run_on_devices::<EngineError>(
            tasks().into_iter(),
            &mut workers(),
            &mut |_| None,
            &pool,
            &options,
            || true,
            &mut |_| Ok(()),
        );
        stopped.unwrap();
    }
}
