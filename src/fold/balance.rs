//! Shares experiments out between a device and the cores beside it, so that both are done at about the same time.
//!
//! Layer: fold. Changes no result: whoever steps an experiment comes to the same bytes.

use crate::run::skips::gain::hops_needed;
use hyperfold_columns::Tables;
use hyperfold_engine::{is_final, packet_hops};

/// Weight of the last slice in the rates (our choice).
const WEIGHT: f64 = 0.5;

/// Who steps an experiment that was handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nobody has it yet.
    #[default]
    Free,
    Device,
    Cores,
}

/// What is known of the speed of both, and who has which experiment.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    /// Whether cores may take experiments. Else the device gets all.
    pub cores_take: bool,
    /// By place in the batch: who has the experiment, and how many packet-hops its messages need.
    places: Vec<(Owner, Option<u64>)>,
    /// Packet-hops a second of the device and of the cores. `None`: not measured yet.
    device_rate: Option<f64>,
    cores_rate: Option<f64>,
}

impl Balance {
    /// Forgets the experiments of the last batch.
    pub(crate) fn forget(&mut self) {
        self.places.clear();
    }

    /// Counts a slice of the device.
    pub(crate) fn note_device(&mut self, hops: u64, seconds: f64) {
        note(&mut self.device_rate, hops, seconds);
    }

    /// Counts a slice of the cores.
    pub(crate) fn note_cores(&mut self, hops: u64, seconds: f64) {
        note(&mut self.cores_rate, hops, seconds);
    }

    /// Who steps the experiment at each place. `must`: the owner of those for which there is no choice.
    pub(crate) fn owners(&mut self, batch: &[Tables], must: impl Fn(usize, &Tables) -> Option<Owner>) -> Vec<Owner> {
        self.places.resize(batch.len(), Default::default());
        let mut left_hops = [0.0; 2];
        let mut owners = vec![Owner::Cores; batch.len()];
        let mut free = Vec::new();
        for (k, t) in batch.iter().enumerate().filter(|(_, t)| !is_final(t)) {
            let (has_it, needed_hops) = &mut self.places[k];
            // Who has how much left only counts where there is a choice.
            let left = if self.cores_take {
                needed_hops.get_or_insert_with(|| hops_needed(t)).saturating_sub(packet_hops(t)) as f64
            } else {
                0.0
            };
            let owner = if *has_it == Owner::Free { must(k, t).unwrap_or_default() } else { *has_it };
            match owner {
                Owner::Free => free.push((k, left)),
                owner => {
                    owners[k] = owner;
                    left_hops[usize::from(owner == Owner::Cores)] += left;
                }
            }
        }
        for (k, left) in free {
            let owner = self.chosen(left_hops, left);
            left_hops[usize::from(owner == Owner::Cores)] += left;
            (owners[k], self.places[k].0) = (owner, owner);
        }
        owners
    }

    /// Who is done first with `left` more packet-hops, if the device and the cores have `left_hops` already. Until both were measured, that is the device.
    fn chosen(&self, left_hops: [f64; 2], left: f64) -> Owner {
        let (true, Some(device_rate), Some(cores_rate)) = (self.cores_take, self.device_rate, self.cores_rate) else {
            return Owner::Device;
        };
        let [device_s, cores_s] = [(left_hops[0] + left) / device_rate, (left_hops[1] + left) / cores_rate];
        if device_s <= cores_s { Owner::Device } else { Owner::Cores }
    }
}

fn note(rate: &mut Option<f64>, hops: u64, seconds: f64) {
    if hops == 0 || seconds <= 0.0 {
        return;
    }
    let new = hops as f64 / seconds;
    *rate = Some(rate.map_or(new, |old| old + WEIGHT * (new - old)));
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use hyperfold_columns::{Exp, FlowRx, FlowTx, OwnedTables, Task, status, task};

    use super::*;

    /// Experiments whose messages need these numbers of packet-hops: one packet crosses two transmitters there and back.
    fn experiments(packets: &[u64]) -> Vec<OwnedTables> {
        let experiment = |&n: &u64| OwnedTables {
            exps: vec![Exp { status: status::RUNNING, payload: 1, ..Exp::zeroed() }],
            flow_tx: vec![FlowTx::zeroed()],
            flow_rx: vec![FlowRx::zeroed()],
            tasks: vec![Task { flags: task::MESSAGE, bytes: n, ..Task::zeroed() }],
            ..OwnedTables::default()
        };
        packets.iter().map(experiment).collect()
    }

    fn shared_out(balance: &mut Balance, packets: &[u64]) -> Vec<Owner> {
        OwnedTables::with_views(&mut experiments(packets), |batch| balance.owners(batch, |_, _| None))
    }

    #[test]
    fn both_get_as_much_as_they_do_in_the_same_time() {
        let mut balance = Balance { cores_take: true, ..Balance::default() };
        assert_eq!(shared_out(&mut balance, &[10; 3]), [Owner::Device; 3], "nothing was measured");
        balance.forget();
        balance.note_device(300, 1.0);
        balance.note_cores(100, 1.0);
        let owners = shared_out(&mut balance, &[10; 40]);
        assert_eq!(owners.iter().filter(|&&owner| owner == Owner::Cores).count(), 10, "{owners:?}");
        assert_eq!(shared_out(&mut balance, &[10; 40]), owners, "what somebody has stays there");
        balance.forget();
        balance.cores_take = false;
        assert_eq!(shared_out(&mut balance, &[10; 40]), [Owner::Device; 40]);
    }

    #[test]
    fn rates_follow_what_was_measured_last() {
        let mut balance = Balance::default();
        balance.note_device(100, 1.0);
        balance.note_device(0, 1.0);
        balance.note_device(300, 1.0);
        assert_eq!(balance.device_rate, Some(200.0));
    }
}
