//! Measures what the queue pairs and ports of a partition did in a window of samples.
//!
//! Layer: fold/steady.

use crate::memo::skip_plan::RoundTrips;
use crate::rows::message_stream::MessageStream;
use crate::rows::partition_rows::PartitionRows;
use crate::steady::detector::Detector;
use hyperfold_columns::Tables;

/// The progress of each queue pair and each port of a partition in a window.
pub(crate) struct SampledRates {
    /// For each queue pair, packets that were acknowledged, and their bytes on the wire.
    pub packets: Vec<u64>,
    pub work: Vec<u64>,
    /// Values of [`Detector::turn`].
    pub turns: Vec<u64>,
    /// For each port, what the integral of its queue and its number of marks gained.
    pub ports: Vec<(u64, u64)>,
    /// For each queue pair, its round trips. Empty where they are not added up.
    pub round_trips: Vec<RoundTrips>,
}

impl SampledRates {
    /// Rates of the last `samples` samples. PRECONDITION: that many samples were taken, and one more.
    pub(crate) fn of(t: &Tables, rows: &PartitionRows, detector: &Detector, samples: usize) -> SampledRates {
        let (first, last) = (detector.ago(samples), detector.ago(0));
        let n = rows.members.len();
        let (mut packets, mut work, mut turns) = (Vec::with_capacity(n), Vec::with_capacity(n), Vec::with_capacity(n));
        for (k, (m, &(before, _))) in rows.members.iter().zip(&first.members).enumerate() {
            let tx = &t.flow_tx[m.flow];
            let posted: u64 = m.posted.iter().map(|&(i, _)| t.tasks[i].bytes).sum();
            let stream = MessageStream::new(t, m, tx.size - posted);
            let (from, to) = (stream.packet(before), stream.packet(tx.snd_una));
            packets.push(to - from);
            work.push(stream.work(to) - stream.work(from));
            turns.push(detector.turn(k, &stream, samples));
        }
        let ports = first.ports.iter().zip(&last.ports).map(|(a, b)| (b.0 - a.0, b.1 - a.1)).collect();
        let gains = first.round_trips.iter().zip(&last.round_trips).zip(&packets);
        let round_trips = gains
            .map(|((was, is), &packets)| RoundTrips {
                sum_ps: is.0 - was.0,
                n: u64::from(is.1.wrapping_sub(was.1)),
                packets,
            })
            .collect();
        SampledRates { packets, work, turns, ports, round_trips }
    }
}
