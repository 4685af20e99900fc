//! Runs the folding engine beside a device engine. Experiments that may skip steady phases are folded on the host. Once nothing more is skipped and little is
//! known of them, they are handed over as they stand, and go on on the device, like all others. So results do not depend on the device.
//!
//! Layer: fold. Exact results are the same with and without folding. Only the host decides what is skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::FoldEngine;
use crate::run::engine::links_nics;
use hyperfold_columns::{Tables, mode};
use hyperfold_engine::fair_rates::RateSolver;
use hyperfold_engine::{Engine, EngineError, FoldStats, SliceOutcome, is_final};

/// A device engine, with a folding engine for the experiments that the device does not run. Both work at the same time.
pub struct Beside {
    device: Box<dyn Engine>,
    fold: FoldEngine,
    pool: Arc<rayon::ThreadPool>,
}

impl Beside {
    /// An engine of a device engine, and of the folding engine that works beside it on the threads of `pool`.
    pub fn new(device: Box<dyn Engine>, fold: FoldEngine, pool: Arc<rayon::ThreadPool>) -> Beside {
        Beside { device, fold: fold.beside_another(), pool }
    }
}

/// Whether experiment `t` runs on the host: two of its NICs are linked to each other; or it has a task graph, samples no round-trip times, and may skip
/// steady phases or may be known. It leaves the host once it is handed over.
fn is_hosts(t: &Tables) -> bool {
    let e = &t.exps[0];
    links_nics(t) || e.modes & (mode::STEADY | mode::MUST_GAIN) != 0 && !t.tasks.is_empty() && e.rtt_cap == 0
}

/// Folds slice after slice until `is_over`, nothing is left to fold, an experiment fails, or as many experiments wait for the device as it has.
fn fold_until(
    fold: &mut FoldEngine,
    batch: &mut [Tables],
    packet_limit: u64,
    n_on_device: usize,
    stop: &(dyn Fn() -> bool + Sync),
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<SliceOutcome, EngineError> {
    let mut slice = fold.advance(batch, packet_limit, stop)?;
    while slice.failures.is_empty() && !is_over() {
        let running = || batch.iter().filter(|t| !is_final(t));
        if !running().any(is_hosts) || running().filter(|t| !is_hosts(t)).count() >= n_on_device {
            break;
        }
        slice = joined(slice, fold.advance(batch, packet_limit, stop)?);
    }
    Ok(slice)
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
        // Each engine gets all places of the batch, so that places stay the same from slice to slice; those of the other are empty.
        let is_devices: Vec<bool> = batch.iter().map(|t| !is_hosts(t)).collect();
        let mut others: Vec<Tables> = batch
            .iter_mut()
            .zip(&is_devices)
            .map(|(t, devices)| if *devices { std::mem::take(t) } else { Tables::default() })
            .collect();
        let Beside { device, fold, pool } = self;
        // The device ends its slice early if experiments wait for it.
        let wait = AtomicBool::new(false);
        let slice = match (batch.iter().all(is_final), others.iter().all(is_final)) {
            (_, true) => pool.install(|| fold.advance(batch, packet_limit, stop)),
            (true, false) => device.advance(&mut others, packet_limit, stop),
            (false, false) => std::thread::scope(|scope| {
                let (others, wait) = (&mut others, &wait);
                let n_on_device = others.iter().filter(|t| !is_final(t)).count();
                let running = scope
                    .spawn(move || device.advance(others, packet_limit, &|| stop() || wait.load(Ordering::Relaxed)));
                let is_over = || running.is_finished() || stop();
                let folded = pool.install(|| fold_until(fold, batch, packet_limit, n_on_device, stop, &is_over));
                wait.store(batch.iter().any(|t| !is_final(t) && !is_hosts(t)), Ordering::Relaxed);
                let ran = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                folded.and_then(|folded| ran.map(|ran| joined(folded, ran)))
            }),
        };
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
