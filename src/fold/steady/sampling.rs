//! Chooses how a partition is sampled: theta, interval and number of samples, from what its queue pairs share.
//!
//! Layer: fold/steady. The rule is that of Wormhole's Appendix F.

use crate::rows::index::RowIndex;
use crate::rows::partition_rows::PartitionRows;
use crate::steady::detector::{ContentionTraits, Detector, DetectorRule};
use crate::steady::rates_plan;
use hyperfold_base::units::{PS_PER_NS, PS_PER_S};
use hyperfold_columns::{FlowIdx, NEVER, NicIdx, Tables, cc, mode};

/// Default of theta in millionths, if nothing about the partition requires more (Wormhole, section 7).
const THETA_PPM: u64 = 50_000;

/// Maximum of theta in millionths, even if Appendix F requires more (our choice).
const MAX_THETA_PPM: u64 = 200_000;

/// Minimum number of samples in a window (our choice): two halves of four.
const MIN_SAMPLES: u64 = 8;

/// Packets of a queue pair's fair share in an interval, times theta: one packet more or less is then a quarter of theta (our choice).
const PACKETS_THETA: u64 = 4;

/// If several senders meet at a port, shares drift for milliseconds, so windows are this many times as long (our choice).
const CONTENDED: u64 = 4;

pub(crate) fn is_steadying(t: &Tables) -> bool {
    t.exps[0].modes & mode::STEADY != 0
}

/// Chooses how the partition is sampled if the experiment does not say: Wormhole's Appendix F, from capacity, round-trip time and the number of queue
/// pairs that share a transmitter.
pub(crate) fn choose_rule(
    t: &Tables,
    rows: &PartitionRows,
    index: &RowIndex,
    detector: &mut Detector,
    checkpoint_hops: u64,
) -> DetectorRule {
    let mut traits = detector.traits.take().unwrap_or_default();
    survey(t, rows, index, &mut traits);
    let e = &t.exps[0];
    let carries = traits.contended && e.modes & mode::RATES != 0;
    let (flows, rtt, packet, contended) =
        (traits.flows.max(1), traits.rtt.max(1), traits.packet.max(1), traits.contended);
    let (senders, hops) = (traits.senders, traits.hops);
    let bdp = traits.bdp.clamp(1, 1 << 40);
    detector.traits = Some(traits);
    if carries {
        return rates_plan::rule(e, rtt);
    }
    // theta >= sqrt(7 N / (16 C RTT)), in packets.
    let min_ppm = (1_000_000_000_000 * 7 * flows / (16 * bdp)).isqrt().clamp(THETA_PPM, MAX_THETA_PPM);
    let theta_ppm = if e.theta_ppm > 0 { u64::from(e.theta_ppm) } else { min_ppm };
    // HPCC's shares drift for so long that skips would keep them from their fair values: a ring was 35 % late, see docs/explanation/fidelity.md. And
    // skips would gain little there.
    let never_skips = contended && e.cc == cc::HPCC && e.theta_ppm == 0;
    let interval = if e.interval_ns > 0 {
        u64::from(e.interval_ns) * PS_PER_NS
    } else {
        rtt.max(packet * flows * PACKETS_THETA * 1_000_000 / theta_ppm.max(1))
    };
    let interval = interval.max(packet);
    // A window covers sqrt(4 C RTT / (7 N)) round trips, and the periods of DCQCN's timers.
    let mut min_window_ps = rtt * (4 * bdp / (7 * flows)).isqrt().max(1);
    if e.cc == cc::DCQCN && e.p_inc != NEVER {
        min_window_ps = min_window_ps.max(2 * e.p_inc.max(e.p_dec).min(PS_PER_S / 1000));
    }
    let chosen = MIN_SAMPLES.max(min_window_ps.div_ceil(interval)) * if contended { CONTENDED } else { 1 };
    // The first skip is as long as its window, and must pay (`criterion::needed`) even at rates a little below line rate.
    let needs = u128::from(2 * checkpoint_hops * 5) * u128::from(packet) * u128::from(flows);
    let worth = if senders > 1 { needs.div_ceil(4 * u128::from(hops.max(1)) * u128::from(interval)) as u64 } else { 0 };
    let samples = if e.samples > 0 { u64::from(e.samples) } else { chosen.max(worth) };
    let few = if e.samples > 0 { samples } else { MIN_SAMPLES };
    DetectorRule {
        theta_ppm,
        samples: samples.max(1) as usize,
        few: few.max(1) as usize,
        interval,
        never_skips,
        patience: 0,
    }
}

/// Adds the members that `traits` does not count yet.
fn survey(t: &Tables, rows: &PartitionRows, index: &RowIndex, traits: &mut ContentionTraits) {
    traits.nics.resize(rows.nics.len(), 0);
    traits.ports.resize(rows.ports.len(), (0, NicIdx::NONE));
    for m in rows.members[traits.members..].iter().filter(|m| m.routed) {
        let tx = &t.flow_tx[m.flow];
        let nic = &t.nics[tx.nic];
        let sharing = &mut traits.nics[index.nic_local[tx.nic.usize()] as usize];
        *sharing += 1;
        traits.flows = traits.flows.max(*sharing);
        for &q in &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize] {
            let (sharing, last_sender) = &mut traits.ports[index.port_local[q.usize()] as usize];
            *sharing += 1;
            traits.flows = traits.flows.max(*sharing);
            traits.contended |= last_sender.is_some() && *last_sender != tx.nic;
            *last_sender = tx.nic;
        }
        traits.senders += 1;
        traits.hops += hops_there_and_back(t, m.flow);
        let base = u64::from(tx.base_rtt_ns) * 1000;
        traits.rtt = traits.rtt.max(base);
        traits.packet = traits.packet.max(nic.tx_full);
        let bdp =
            u128::from(nic.rate) * u128::from(base) / (8 * u128::from(PS_PER_S) * u128::from(t.exps[0].payload.max(1)));
        traits.bdp = traits.bdp.min(bdp as u64);
    }
    traits.members = rows.members.len();
}

/// Number of transmitters that a packet of queue pair `f` and its acknowledgement pass.
pub(crate) fn hops_there_and_back(t: &Tables, f: FlowIdx) -> u64 {
    u64::from(2 + t.flow_tx[f].path_len + t.flow_rx[f].path_len)
}
