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
        let open = |hosts: bool, batch: &[Tables]| batch.iter().any(|t| is_hosts(t) == hosts && !is_final(t));
        if !open(true, batch) {
            return self.device.advance(batch, packet_limit, stop);
        }
        let device_places: Vec<usize> = (0..batch.len()).filter(|&k| !is_hosts(&batch[k])).collect();
        let with_device = open(false, batch);
        // Empty tables take the places of the device's experiments, so that the places of the folded ones stay the same.
        let mut others: Vec<Tables> = device_places.iter().map(|&k| std::mem::take(&mut batch[k])).collect();
        let folded = self.fold.advance(batch, packet_limit, stop);
        let ran = if with_device { Some(self.device.advance(&mut others, packet_limit, stop)) } else { None };
        for (&k, t) in device_places.iter().zip(others) {
            batch[k] = t;
        }
        let mut slice = folded?;
        for &k in &device_places {
            slice.folds[k] = FoldStats { hops_simulated: packet_hops(&batch[k]), ..FoldStats::default() };
        }
        if let Some(device) = ran.transpose()? {
            for (&k, seconds) in device_places.iter().zip(device.seconds) {
                slice.seconds[k] = seconds;
            }
            slice.failures.extend(device.failures.into_iter().map(|(place, why)| (device_places[place], why)));
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
    use hyperfold_columns::{Exp, LinkEndIdx, Nic, OwnedTables};

    use super::*;

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
