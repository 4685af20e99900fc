//! Relays of messages between servers, as NCCL's PXN has them: data for another rail goes to the GPU on that rail first.
//!
//! Layer: workload. A rail is the number of a NIC in its server. Which ranks relay follows from the places of ranks alone.

use std::collections::HashMap;

/// The ranks on each rail of each server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relays {
    /// Server, rail, and number among the ranks of that rail, of each rank.
    places: Vec<(u32, u32, usize)>,
    /// Ranks by server and rail, ascending.
    on_rail: HashMap<(u32, u32), Vec<u32>>,
    /// Bytes that have to be at the relay before it begins to send, at least 1.
    pub(super) chunk_bytes: u64,
}

impl Relays {
    /// The relays of ranks with these servers and rails. A relay begins to send when it has `chunk_bytes`.
    pub fn new(servers: &[u32], rails: &[u32], chunk_bytes: u64) -> Relays {
        let mut on_rail: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
        let mut places = Vec::with_capacity(servers.len());
        for (rank, (&server, &rail)) in (0u32..).zip(servers.iter().zip(rails)) {
            let ranks = on_rail.entry((server, rail)).or_default();
            places.push((server, rail, ranks.len()));
            ranks.push(rank);
        }
        Relays { places, on_rail, chunk_bytes: chunk_bytes.max(1) }
    }

    /// The rank of the sender's server that is on the receiver's rail. `None`: they are in one server or on one rail, or the server has no rank there.
    ///
    /// Ranks of one rail share their NIC. They take turns by the receiver's number among its own.
    pub fn relay(&self, src: u32, dst: u32) -> Option<u32> {
        let ((server, rail, _), (far_server, far_rail, number)) =
            (self.places[src as usize], self.places[dst as usize]);
        if server == far_server || rail == far_rail {
            return None;
        }
        self.on_rail.get(&(server, far_rail)).map(|ranks| ranks[number % ranks.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_relay_is_on_the_rail_of_the_receiver() {
        // Two servers of four ranks, each with a NIC of its own.
        let servers: Vec<u32> = (0..8).map(|rank| rank / 4).collect();
        let rails: Vec<u32> = (0..8).map(|rank| rank % 4).collect();
        let own_nics = Relays::new(&servers, &rails, 1);
        assert_eq!((own_nics.relay(0, 7), own_nics.relay(6, 1)), (Some(3), Some(5)));
        assert_eq!((own_nics.relay(1, 5), own_nics.relay(1, 2)), (None, None), "one rail, one server");
        // Two ranks share each NIC.
        let shared = Relays::new(&servers, &rails.iter().map(|rail| rail / 2).collect::<Vec<_>>(), 1);
        assert_eq!([4, 5, 6, 7].map(|dst| shared.relay(0, dst)), [None, None, Some(2), Some(3)]);
        // The sender's server has no rank on the receiver's rail.
        assert_eq!(Relays::new(&[0, 0, 1], &[0, 1, 2], 1).relay(0, 2), None);
    }
}
