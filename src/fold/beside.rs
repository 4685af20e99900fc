//! Runs the folding engine beside a device engine. Experiments that may skip steady phases are folded on the host; all others run on the device. So
//! results do not depend on the device.
//!
//! Layer: fold. Exact results are the same with and without folding. Only the host decides what is skipped.

use std::time::Duration;

use super::FoldEngine;
use hyperfold_columns::{EndOwner, Tables, mode};
use hyperfold_engine::fair_rates::RateSolver;
use hyperfold_engine::{Engine, EngineError, FoldStats, SliceOutcome, is_final, packet_hops};

/// A device engine, with a folding engine for the experiments that the device does not run.
pub struct Beside {
    device: Box<dyn Engine>,
    fold: FoldEngine,
}

impl Beside {
    /// An engine of a device engine, and the folding engine that works beside it on the host.
    pub fn new(device: Box<dyn Engine>, fold: FoldEngine) -> Beside {
        Beside { device, fold }
    }
}

/// Whether two NICs are linked to each other. In system `nic` one sends on the wire from which the other takes its arrivals, and a device runs both at
/// once.
fn links_nics(t: &Tables) -> bool {
    let nics = t.exps[0].nic_len;
    t.nics.iter().any(|nic| nic.peer.is_some() && matches!(nic.peer.owner(nics), EndOwner::Nic(_)))
}

/// Whether experiment `t` runs on the host: two of its NICs are linked to each other; or it has a task graph, samples no round-trip times, and may skip
/// steady phases. An experiment that has started over stays with the host.
fn is_hosts(t: &Tables) -> bool {
    let e = &t.exps[0];
    links_nics(t) || e.modes & (mode::STEADY | mode::MUST_GAIN) != 0 && !t.tasks.is_empty() && e.rtt_cap == 0
}

impl Engine for Beside {
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError> {
        if !batch.iter().any(|t| !is_final(t) && is_hosts(t)) {
            return self.device.advance(batch, packet_limit, stop);
        }
        // Each engine gets all places of the batch, so that places stay the same from slice to slice; those of the other are empty.
        let is_devices: Vec<bool> = batch.iter().map(|t| !is_hosts(t)).collect();
        let mut others: Vec<Tables> = batch
            .iter_mut()
            .zip(&is_devices)
            .map(|(t, devices)| if *devices { std::mem::take(t) } else { Tables::default() })
            .collect();
        let folded = self.fold.advance(batch, packet_limit, stop);
        let ran = match others.iter().all(is_final) {
            true => None,
            false => Some(self.device.advance(&mut others, packet_limit, stop)),
        };
        let device_places = || (0..is_devices.len()).filter(|&k| is_devices[k]);
        for k in device_places() {
            batch[k] = std::mem::take(&mut others[k]);
        }
        let mut slice = folded?;
        for k in device_places() {
            slice.folds[k] = FoldStats { hops_simulated: packet_hops(&batch[k]), ..FoldStats::default() };
        }
        if let Some(device) = ran.transpose()? {
            for k in device_places() {
                slice.seconds[k] = device.seconds[k];
            }
            slice.failures.extend(device.failures);
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

    #[test]
    fn a_device_sees_its_experiments_in_the_same_places_before_and_after_those_of_the_host_end() {
        let places = std::sync::Arc::default();
        let device = Noting(std::sync::Arc::clone(&places));
        let mut engine = Beside::new(Box::new(device), FoldEngine::default());
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
