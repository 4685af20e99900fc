//! Checks `topology.cut_through_bytes` against the packets of the transport and against routing.
//!
//! Layer: spec. The transport has the number as it is.

use super::applies_when::{flows, packets};
use super::error::Conflict;
use super::key_id::KeyId;
use super::value::Values;
use hyperfold_network::routing::{PolicyKeys, routing_policy};
use hyperfold_network::transport::Cc;

/// The congestion control that `transport.cc` names.
pub(super) fn congestion_control(v: &Values) -> Cc {
    match v.text(KeyId::Cc) {
        "dcqcn" => Cc::Dcqcn,
        "hpcc" => Cc::Hpcc,
        "timely" => Cc::Timely,
        "dctcp" => Cc::Dctcp,
        "swift" => Cc::Swift,
        "nscc" => Cc::Nscc,
        "rccc" => Cc::Rccc,
        _ => Cc::None,
    }
}

/// Bytes of a data packet on the wire beside its payload.
pub(super) fn data_overhead(cc: Cc) -> u32 {
    match cc {
        Cc::Hpcc => 90,
        Cc::Timely | Cc::Swift => 56,
        Cc::Nscc | Cc::Rccc => 64,
        Cc::None | Cc::Dcqcn | Cc::Dctcp => 48,
    }
}

/// Bytes of an Ethernet header, which names the destination.
const ETHERNET_HEADER: i64 = 14;

/// Checks the bytes after which switches forward packets: at least a header, at most a packet, and switches that do not choose its way.
pub(super) fn check_cut_through(v: &Values) -> Result<(), Conflict> {
    let bytes = v.int(KeyId::CutThroughBytes);
    if bytes == 0 || !(packets(v) || flows(v)) {
        return Ok(());
    }
    let fail = |why: String| Err(Conflict { job: None, key: KeyId::CutThroughBytes, why });
    if bytes < ETHERNET_HEADER {
        return fail(format!(
            "a switch reads the Ethernet header first: at least {ETHERNET_HEADER}, or 0 for store and forward"
        ));
    }
    let packet = v.int(KeyId::PayloadBytes) + i64::from(data_overhead(congestion_control(v)));
    if bytes > packet {
        return fail(format!(
            "a full packet has {packet} bytes on the wire, transport.payload_bytes and headers: at most {packet}, or 0 for store and forward"
        ));
    }
    let policy = routing_policy(v.text(KeyId::Policy), PolicyKeys { seed: 1, max_paths: 1 });
    if policy.is_some_and(|policy| policy.is_adaptive()) { Err(adaptive_cut_through()) } else { Ok(()) }
}

/// The conflict between adaptive routing and switches that cut through.
pub fn adaptive_cut_through() -> Conflict {
    let why = "switches that choose ports (routing.policy) do so when a packet arrives, but when its header counts as arrived depends on the port: 0, or a policy that is not adaptive";
    Conflict { job: None, key: KeyId::CutThroughBytes, why: why.to_string() }
}
