//! Several engines at once: experiments are handed to whichever is free; an engine that breaks is retired, and its experiments go elsewhere.
//!
//! Layer: batch. Each engine has a thread and batches of its own and takes from one queue. Which engine simulates what changes no outcome.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::engine::{Engine, EngineError};

use super::runner::{News, RunOptions, Supply, Task, drive};
use super::world::Batch;

/// An engine and how it is called in messages.
pub struct Worker {
    pub name: String,
    pub engine: Box<dyn Engine>,
    /// Whether it computes on the host, on the threads of the pool.
    pub on_pool: bool,
}

/// How often a worker without work looks whether the run was stopped.
const LOOK: Duration = Duration::from_millis(50);
/// Batches that each worker should get of what is left, so that all of them end at about the same time.
const SHARES: usize = 2;

/// Runs every task on `workers`, each on a thread of its own; what the host does for them goes to `pool`. Once all of them are retired, what is left goes
/// to what `fallback` makes, if there is one. Those that are not retired are in `workers` again afterwards. Stops early, without an error, when `stop` says so. `tell` is called on this thread.
///
/// # Errors
/// No engine is left to go on, or `tell` refuses news. A bad experiment is no error: it ends with a reason.
pub fn run_fleet<E: From<EngineError>>(
    tasks: impl ExactSizeIterator<Item = Task> + Send,
    workers: &mut Vec<Worker>,
    fallback: Option<&dyn Fn() -> Worker>,
    pool: &rayon::ThreadPool,
    options: &RunOptions,
    stop: impl Fn() -> bool + Send + Sync + Clone + 'static,
    tell: &mut dyn FnMut(News) -> Result<(), E>,
) -> Result<(), E> {
    let refused = Arc::new(AtomicBool::new(false));
    let stop = {
        let refused = Arc::clone(&refused);
        move || refused.load(Ordering::Relaxed) || stop()
    };
    let queue = Queue {
        state: Mutex::new(State { source: Box::new(tasks), returned: BTreeMap::new(), in_flight: 0, workers: 0 }),
        changed: Condvar::new(),
    };
    let crew = Crew { queue: &queue, pool, options, stop: &stop, refused: &refused };
    let Some(last) = crew.run(workers, tell)? else { return Ok(()) };
    let left = queue.lock().left();
    if left == 0 || stop() {
        return Ok(());
    }
    let Some(make) = fallback else { return Err(last.into()) };
    let worker = make();
    tell(News::Lost(format!("no device is left; {left} experiments go to the {}", worker.name)))?;
    match crew.run(&mut vec![worker], tell)? {
        Some(e) => Err(e.into()),
        None => Ok(()),
    }
}

/// What all workers share.
struct Crew<'a, 'q, S> {
    queue: &'a Queue<'q>,
    pool: &'a rayon::ThreadPool,
    options: &'a RunOptions,
    stop: &'a S,
    /// Set once `tell` has refused news: everybody stops.
    refused: &'a AtomicBool,
}

enum Message {
    News(Box<News>),
    Retired { name: String, error: EngineError, returned: usize },
}

impl<S: Fn() -> bool + Send + Sync + Clone + 'static> Crew<'_, '_, S> {
    /// Lets workers go on until there is nothing left, or none of them; why the last one was retired, if any was.
    fn run<E: From<EngineError>>(
        &self,
        workers: &mut Vec<Worker>,
        tell: &mut dyn FnMut(News) -> Result<(), E>,
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
                    Message::News(news) => *news,
                    Message::Retired { name, error, returned } => {
                        let text = format!(
                            "{name} is not used any more: {error}; its {returned} unfinished experiments go elsewhere"
                        );
                        last = Some(error);
                        News::Lost(text)
                    }
                };
                if answer.is_ok() {
                    answer = tell(news);
                    self.refused.store(answer.is_err(), Ordering::Relaxed);
                }
            }
            for thread in threads {
                // One that panicked takes the run with it.
                workers.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
        answer.map(|()| last)
    }

    /// One worker's work; itself, unless it was retired.
    fn work(&self, worker: Worker, sender: &Sender<Message>) -> Option<Worker> {
        let Worker { name, engine, on_pool } = worker;
        let mut batch = Batch::new(engine, self.options.packet_limit, Box::new(self.stop.clone()));
        let mut share =
            Share { queue: self.queue, mine: BTreeMap::new(), most: self.options.batch.max(1), stop: self.stop };
        // Whoever takes messages outlives the workers, so that none is lost.
        let mut tell = |news| {
            sender.send(Message::News(Box::new(news))).map_err(|_| EngineError::Device("nobody takes results".into()))
        };
        let run = drive(&mut batch, &mut share, Some((self.pool, on_pool)), self.options, self.stop, &mut tell);
        let returned = share.give_back();
        match run {
            Ok(()) => Some(Worker { name, engine: batch.into_engine(), on_pool }),
            Err(error) => {
                log::warn!("{name}: {error}");
                sender.send(Message::Retired { name, error, returned }).unwrap_or_else(|e| log::error!("{e}"));
                None
            }
        }
    }
}

/// The experiments that no worker has.
struct Queue<'q> {
    state: Mutex<State<'q>>,
    changed: Condvar,
}

struct State<'q> {
    source: Box<dyn ExactSizeIterator<Item = Task> + Send + 'q>,
    /// From workers that were retired, by `exp_id`.
    returned: BTreeMap<u64, Task>,
    /// How many experiments workers have: they may come back.
    in_flight: usize,
    workers: usize,
}

impl<'q> Queue<'q> {
    fn lock(&self) -> MutexGuard<'_, State<'q>> {
        // A worker that panics ends the run when its thread is joined.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State<'_> {
    fn left(&self) -> usize {
        self.source.len() + self.returned.len()
    }
}

/// A worker's side of the queue.
struct Share<'a, 'q, S> {
    queue: &'a Queue<'q>,
    /// What it has taken and not ended, to be given back should it break.
    mine: BTreeMap<u64, Task>,
    /// Most experiments of a batch.
    most: usize,
    stop: &'a S,
}

impl<S: Fn() -> bool> Supply for Share<'_, '_, S> {
    fn more(&mut self) -> Option<usize> {
        let mut state = self.queue.lock();
        loop {
            if (self.stop)() {
                return None;
            }
            match (state.left(), state.in_flight, state.workers) {
                (0, 0, _) => return None,
                // What others have may come back.
                (0, ..) => {
                    state = self.queue.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0
                }
                (_, _, 0 | 1) => return Some(self.most),
                (left, _, workers) => return Some((left / (SHARES * workers)).clamp(1, self.most)),
            }
        }
    }

    fn take(&mut self, most: usize) -> Vec<Task> {
        let mut state = self.queue.lock();
        let next = |state: &mut State| state.returned.pop_first().map(|(_, task)| task).or_else(|| state.source.next());
        let taken: Vec<Task> = std::iter::from_fn(|| next(&mut state)).take(most).collect();
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

impl<S> Share<'_, '_, S> {
    /// Leaves the queue; how many experiments go back to it.
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
    use crate::columns::Tables;
    use crate::engine::Slice;
    use crate::engine::cpu::engine::CpuEngine;
    use crate::sweep::{self, SetOverrides};

    /// A CPU engine that stands in for a device: it counts its slices, and is lost after some.
    struct Device {
        engine: CpuEngine,
        slices: Arc<AtomicUsize>,
        lost_after: usize,
        /// Nobody begins before everybody has something to do, so that a quick one does not leave the others without.
        begin: Arc<Barrier>,
    }

    impl Engine for Device {
        fn advance(
            &mut self,
            batch: &mut [Tables],
            packet_limit: u64,
            stop: &(dyn Fn() -> bool + Sync),
        ) -> Result<Slice, EngineError> {
            let before = self.slices.fetch_add(1, Ordering::Relaxed);
            if before == 0 {
                self.begin.wait();
            }
            if before >= self.lost_after {
                // Devices are lost in the middle of a step: what they held is worth nothing.
                batch.iter_mut().for_each(|t| t.exps[0].now = u64::MAX);
                return Err(EngineError::Device("the device was lost: unplugged".into()));
            }
            self.engine.advance(batch, packet_limit, stop)
        }

        fn slice(&self) -> Duration {
            self.engine.slice()
        }
    }

    /// Devices by how many slices each lasts, and the slices that each was asked for.
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

    fn tasks() -> Vec<Task> {
        let text = "name = \"s\"\n[base.cluster]\ngpus = 16\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 100000\n[axes]\n\
                    \"transport.cc\" = [\"hpcc\", \"dcqcn\", \"none\"]\n\"topology.link_gbps\" = [100, 200, 300, 400]\n";
        let sweep = sweep::parse(text, Path::new("s.toml"), &SetOverrides::default()).unwrap();
        sweep.experiments.iter().map(|e| Task { exp_id: e.exp_id, config: sweep.config(e).unwrap() }).collect()
    }

    /// What a run came to: each experiment's end, and what was told of devices.
    #[derive(Default)]
    struct Told {
        ends: BTreeMap<u64, String>,
        lost: Vec<String>,
    }

    impl Told {
        fn take(&mut self, news: News) -> Result<(), EngineError> {
            match news {
                News::Ended(e) => {
                    let twice = self.ends.insert(e.exp_id, format!("{:?} {}", e.result, e.packet_hops));
                    assert_eq!(twice, None, "experiment {} ended twice", e.exp_id);
                }
                News::Lost(text) => self.lost.push(text),
                News::Started(_) | News::Note(_) => {}
            }
            Ok(())
        }
    }

    fn fleet(mut workers: Vec<Worker>, fallback: Option<&dyn Fn() -> Worker>) -> (Told, Result<(), EngineError>) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut told = Told::default();
        let options = RunOptions { batch: 3, ..RunOptions::default() };
        let run = run_fleet(tasks().into_iter(), &mut workers, fallback, &pool, &options, || false, &mut |news| {
            told.take(news)
        });
        (told, run)
    }

    /// One engine, all in one batch.
    fn alone() -> BTreeMap<u64, String> {
        let mut told = Told::default();
        super::super::run(tasks().into_iter(), Box::new(CpuEngine), &RunOptions::default(), || false, &mut |news| {
            told.take(news)
        })
        .unwrap();
        assert_eq!(told.ends.len(), 12);
        told.ends
    }

    #[test]
    fn several_engines_share_the_work_and_change_nothing() {
        let (workers, slices) = devices([usize::MAX; 3]);
        let (told, run) = fleet(workers, None);
        run.unwrap();
        assert_eq!((told.ends, told.lost), (alone(), Vec::new()));
        assert!(slices.iter().all(|n| n.load(Ordering::Relaxed) > 0), "every engine has worked: {slices:?}");
    }

    #[test]
    fn workers_come_back_for_another_run_unless_they_were_lost() {
        let (mut workers, slices) = devices([0, usize::MAX, usize::MAX]);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let options = RunOptions { batch: 3, ..RunOptions::default() };
        for round in 0..2 {
            let mut told = Told::default();
            run_fleet(tasks().into_iter(), &mut workers, None, &pool, &options, || false, &mut |news| told.take(news))
                .unwrap();
            assert_eq!(told.ends, alone());
            assert_eq!((workers.len(), told.lost.len()), (2, 1 - round), "the lost one is not asked again");
        }
        assert_eq!(slices[0].load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_a_lost_device_had_goes_elsewhere() {
        let (workers, _) = devices([0, 0, usize::MAX]);
        let (told, run) = fleet(workers, None);
        run.unwrap();
        assert_eq!(told.ends, alone());
        assert_eq!(told.lost.len(), 2, "{:?}", told.lost);
        assert!(told.lost[0].contains("is not used any more: the device was lost: unplugged; its "), "{:?}", told.lost);
    }

    #[test]
    fn without_devices_the_fallback_goes_on() {
        let (workers, _) = devices([0, 1]);
        let make = || Worker { name: "CPU engine".into(), engine: Box::new(CpuEngine), on_pool: true };
        let (told, run) = fleet(workers, Some(&make));
        run.unwrap();
        assert_eq!(told.ends, alone());
        assert!(told.lost.last().unwrap().ends_with("experiments go to the CPU engine"), "{:?}", told.lost);
    }

    #[test]
    fn without_a_fallback_what_was_complete_stays_and_the_run_breaks_off() {
        let (told, run) = fleet(devices([2]).0, None);
        let alone = alone();
        assert_eq!(run.unwrap_err().to_string(), "the device was lost: unplugged");
        assert!(told.ends.len() < alone.len() && told.ends.iter().all(|(id, end)| alone[id] == *end));
    }

    #[test]
    fn a_run_that_is_stopped_or_refused_ends() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let workers = || devices([usize::MAX; 2]).0;
        let options = RunOptions { batch: 1, ..RunOptions::default() };
        let mut seen = BTreeSet::new();
        let mut tell = |news: News| match news {
            News::Ended(e) if seen.insert(e.exp_id) => Err(EngineError::Device("the disk is full".into())),
            _ => Ok(()),
        };
        let refused = run_fleet(tasks().into_iter(), &mut workers(), None, &pool, &options, || false, &mut tell);
        assert_eq!(refused.unwrap_err().to_string(), "the disk is full");
        assert_eq!(seen.len(), 1, "nothing is told after that");
        let stopped =
            run_fleet::<EngineError>(tasks().into_iter(), &mut workers(), None, &pool, &options, || true, &mut |_| {
                Ok(())
            });
        stopped.unwrap();
    }
}
