//! Runs the folding engine beside a device engine. Experiments that may skip steady phases are folded on the host. Once nothing more is skipped and the
//! memo has little of what comes, they are handed over as they stand and continue on the device, like all others. So results do not depend on the device.
//!
//! Layer: fold. Exact results are the same with and without folding. Only the host decides what is skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::FoldEngine;
use crate::balance::{Balance, Owner};
use crate::run::engine::links_nics;
use hyperfold_columns::{Tables, mode};
use hyperfold_engine::fair_rates::RateSolver;
use hyperfold_engine::{Engine, EngineError, FoldStats, SliceOutcome, is_final, packet_hops};

/// A device engine, with a folding engine for the experiments that the device does not run. Both work at the same time.
pub struct Beside {
    device: Box<dyn Engine>,
    fold: FoldEngine,
    pool: Arc<rayon::ThreadPool>,
    balance: Balance,
    /// Whether the device has ended a slice. Its first one contains the compilation of its kernels.
    has_begun: bool,
}

impl Beside {
    /// An engine of a device engine, and of the folding engine that works beside it on the threads of `pool`.
    pub fn new(device: Box<dyn Engine>, fold: FoldEngine, pool: Arc<rayon::ThreadPool>) -> Beside {
        Beside { device, fold: fold.beside_another(), pool, balance: Balance::default(), has_begun: false }
    }

    /// This engine, set to let cores step some of the experiments that are not folded any more, as many as they can while the device is at work. Without it
    /// the device gets all.
    pub fn sharing_with_cores(mut self, cores_take: bool) -> Beside {
        self.balance.cores_take = cores_take;
        self
    }
}

/// Whether experiment `t` runs on the host, which is so in two cases. Two of its NICs are linked to each other. Or folding may pay: it has a task graph that may be
/// folded, and steady phases may be skipped or lookups must gain something. It leaves the host once it is handed over.
fn is_hosts(t: &Tables) -> bool {
    let e = &t.exps[0];
    links_nics(t) || e.modes & (mode::STEADY | mode::MUST_GAIN) != 0 && !t.tasks.is_empty() && e.may_fold()
}

/// Folds slice after slice until the device's slice is over, nothing is left for the cores, or an experiment fails. Asks the device to end its slice by
/// `wait` when as many experiments wait for it as it has.
fn fold_beside(
    fold: &mut FoldEngine,
    batch: &mut [Tables],
    packet_limit: u64,
    n_on_device: usize,
    stop: &(dyn Fn() -> bool + Sync),
    (is_over, wait): (&(dyn Fn() -> bool + Sync), &AtomicBool),
) -> Result<SliceOutcome, EngineError> {
    let mut slice = fold.advance(batch, packet_limit, stop)?;
    loop {
        let running = batch.iter().enumerate().filter(|(_, t)| !is_final(t));
        let (waiting, going_on): (Vec<usize>, Vec<usize>) =
            running.map(|(k, _)| k).partition(|&k| fold.has_handed_over(k));
        wait.store(waiting.len() >= n_on_device || (going_on.is_empty() && !waiting.is_empty()), Ordering::Relaxed);
        if going_on.is_empty() || !slice.failures.is_empty() || is_over() {
            return Ok(slice);
        }
        slice = joined(slice, fold.advance(batch, packet_limit, stop)?);
    }
}

/// Outcome of both slices, of which `later` has the statistics, if there are any.
fn joined(slice: SliceOutcome, later: SliceOutcome) -> SliceOutcome {
    let seconds = slice.seconds.iter().zip(&later.seconds).map(|(a, b)| a + b).collect();
    let failures = [slice.failures, later.failures].concat();
    SliceOutcome { seconds, failures, folds: if later.folds.is_empty() { slice.folds } else { later.folds } }
}

impl Engine for Beside {
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError> {
        let Beside { device, fold, pool, balance, has_begun } = self;
        let owners = balance.owners(batch, |k, t| match (is_hosts(t), fold.has_handed_over(k)) {
            (true, _) => Some(Owner::Cores),
            (false, true) => None,
            (false, false) => Some(Owner::Device),
        });
        for (k, owner) in owners.iter().enumerate() {
            if *owner == Owner::Cores && fold.has_handed_over(k) && !is_final(&batch[k]) {
                fold.take_back(k);
            }
        }
        // Each engine gets all places of the batch, so that places stay the same from slice to slice; those of the other are empty.
        let is_devices: Vec<bool> = owners.iter().map(|owner| *owner == Owner::Device).collect();
        let mut others: Vec<Tables> = batch
            .iter_mut()
            .zip(&is_devices)
            .map(|(t, devices)| if *devices { std::mem::take(t) } else { Tables::default() })
            .collect();
        // The device ends its slice early if experiments wait for it.
        let wait = AtomicBool::new(false);
        let hops_on_device = |others: &[Tables]| others.iter().filter(|t| !t.exps.is_empty()).map(packet_hops).sum();
        let hops_before: u64 = hops_on_device(&others);
        let simulated_before = fold.hops_simulated();
        let mut device_s = 0.0;
        let began = Instant::now();
        let mut run_device = |stop: &(dyn Fn() -> bool + Sync)| {
            let began = Instant::now();
            let ran = device.advance(&mut others, packet_limit, stop);
            device_s = began.elapsed().as_secs_f64();
            ran
        };
        let slice = match (batch.iter().all(is_final), !is_devices.contains(&true)) {
            (_, true) => pool.install(|| fold.advance(batch, packet_limit, stop)),
            (true, false) => run_device(stop),
            (false, false) => std::thread::scope(|scope| {
                let wait = &wait;
                let n_on_device = is_devices.iter().filter(|is_devices| **is_devices).count();
                let running = scope.spawn(move || run_device(&|| stop() || wait.load(Ordering::Relaxed)));
                let is_over = || running.is_finished() || stop();
                let folded =
                    pool.install(|| fold_beside(fold, batch, packet_limit, n_on_device, stop, (&is_over, wait)));
                let cores_s = began.elapsed().as_secs_f64();
                balance.note_cores(fold.hops_simulated().saturating_sub(simulated_before), cores_s);
                let ran = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                folded.and_then(|folded| ran.map(|ran| joined(folded, ran)))
            }),
        };
        if device_s > 0.0 && std::mem::replace(has_begun, true) {
            balance.note_device(hops_on_device(&others).saturating_sub(hops_before), device_s);
        }
        let device_places = || (0..is_devices.len()).filter(|&k| is_devices[k]);
        for k in device_places() {
            batch[k] = std::mem::take(&mut others[k]);
        }
        let mut slice = slice?;
        slice.folds.resize(batch.len(), FoldStats::default());
        for k in device_places() {
            slice.folds[k] = self.fold.stats_beside(k, &batch[k]);
        }
        Ok(slice)
    }

    fn forget(&mut self) {
        self.device.forget();
        self.fold.forget();
        self.balance.forget();
    }

    fn slice(&self) -> Duration {
        self.device.slice()
    }

    fn rates(&mut self) -> Option<&mut dyn RateSolver> {
        self.device.rates()
    }

    fn max_batch_bytes(&self) -> u64 {
        self.device.max_batch_bytes()
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use hyperfold_columns::{Exp, LinkEndIdx, Nic, OwnedTables, status};

    use super::*;

    /// A device that ends all it gets, and notes in which places something ran.
    #[derive(Default)]
    struct Noting(std::sync::Arc<std::sync::Mutex<Vec<Vec<usize>>>>);

    impl Engine for Noting {
        fn advance(
            &mut self,
            batch: &mut [Tables],
            _: u64,
            _: &(dyn Fn() -> bool + Sync),
        ) -> Result<SliceOutcome, EngineError> {
            let ran: Vec<usize> = (0..batch.len()).filter(|&k| !is_final(&batch[k])).collect();
            self.0.lock().unwrap().push(ran);
            Ok(SliceOutcome { seconds: vec![0.0; batch.len()], ..SliceOutcome::default() })
        }

        fn slice(&self) -> Duration {
            Duration::ZERO
        }
    }

    fn pool() -> Arc<rayon::ThreadPool> {
        Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap())
    }

    #[test]
    fn a_device_sees_its_experiments_in_the_same_places_before_and_after_those_of_the_host_end() {
        let places = std::sync::Arc::default();
        let device = Noting(std::sync::Arc::clone(&places));
        let mut engine = Beside::new(Box::new(device), FoldEngine::default(), pool());
        let plain = OwnedTables { exps: vec![Exp { status: status::RUNNING, ..Exp::zeroed() }], ..Default::default() };
        let mut ended = plain.clone();
        ended.exps[0].status = status::DONE;
        // The first experiment is the host's, as its NICs are linked. Then it has ended, and only its header is left.
        let linked = OwnedTables {
            exps: vec![Exp { nic_len: 2, status: status::RUNNING, ..Exp::zeroed() }],
            nics: [1, 0].map(|peer| Nic { peer: LinkEndIdx(peer), ..Nic::zeroed() }).to_vec(),
            ..OwnedTables::default()
        };
        // The host's engine is asked to stop at once, so that only places matter.
        for first in [linked, ended] {
            let mut batch = [first, plain.clone(), plain.clone()];
            OwnedTables::with_views(&mut batch, |batch| engine.advance(batch, 0, &|| true)).unwrap();
        }
        assert_eq!(*places.lock().unwrap(), [[1, 2], [1, 2]]);
    }

    #[test]
    fn linked_nics_stay_with_the_host() {
        let with_peers = |peers: [LinkEndIdx; 2]| OwnedTables {
            exps: vec![Exp { nic_len: 2, ..Exp::zeroed() }],
            nics: peers.map(|peer| Nic { peer, ..Nic::zeroed() }).to_vec(),
            ..OwnedTables::default()
        };
        // Ends 0 and 1 are the NICs, 2 and 3 ports of a switch.
        for (peers, is_linked) in [([1, 0], true), ([2, 3], false)] {
            let mut tables = with_peers(peers.map(LinkEndIdx));
            assert_eq!(is_hosts(&tables.view()), is_linked, "{peers:?}");
        }
        assert!(!is_hosts(&with_peers([LinkEndIdx::NONE; 2]).view()));
    }
}
