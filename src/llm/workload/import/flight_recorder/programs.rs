//! The calls of a rank as a program.
//!
//! Layer: workload.

use std::collections::BTreeMap;

use super::dump::{Dump, Kind, Launch, RecordedCall};
use super::groups::RecordedGroups;
use crate::workload::import::torch::{MAX_COMM_STREAMS, comm_streams};
use crate::workload::import::{ImportError, MAX_PS};
use crate::workload::program::{Dim, NameTable, OpKind, Peer, Phase, Program, Stream};
use hyperfold_base::units::PS_PER_NS;

/// Makes the program of a rank, with the groups of its slots.
///
/// # Errors
/// Durations are missing, a time is too long, or calls need more streams than there are.
pub(super) fn rank(
    dump: &Dump,
    groups: &RecordedGroups,
    wait_for_calls: bool,
    names: &mut NameTable,
) -> Result<(Program, Vec<u32>), ImportError> {
    let bad = |problem: String| ImportError::path(&dump.path, problem);
    let kept: Vec<&Launch> = dump.units.iter().filter(|u| u.keep).collect();
    if wait_for_calls {
        // What follows the last call is not known, so its duration does not matter.
        let before_last = &kept[..kept.len().saturating_sub(1)];
        let without = before_last.iter().filter(|u| u.duration_ns.is_none()).count();
        if without > 0 {
            return Err(bad(format!(
                "{without} of {} calls have no duration_ms, which workload.wait_for_calls needs; record with TORCH_NCCL_ENABLE_TIMING=1, or leave workload.wait_for_calls out",
                before_last.len()
            )));
        }
    }
    let mut builder = RankBuilder {
        groups,
        wait_for_calls,
        time: names.of(if wait_for_calls { "compute" } else { "host" }),
        program: Program::default(),
        slots: Vec::new(),
        lanes: BTreeMap::new(),
        host: None,
        waited: None,
    };
    let mut clock = Clock::default();
    for unit in kept {
        let gap_ns = clock.gap_ns(unit, wait_for_calls);
        builder.unit(dump, unit, gap_ns).map_err(|why| bad(format!("record_id {}: {why}", unit.record_id)))?;
    }
    let mut program = builder.program;
    program.iteration_ends = vec![program.ops.len() as u32];
    Ok((program, builder.slots))
}

/// The time of a rank that its calls leave.
#[derive(Default)]
struct Clock {
    /// When the call before was made, or ended if ranks wait for calls; `None`: there is none.
    before_ns: Option<u64>,
}

impl Clock {
    /// Time between a call and the one before it.
    fn gap_ns(&mut self, unit: &Launch, wait_for_calls: bool) -> u64 {
        let before_ns = self.before_ns.unwrap_or(unit.created_ns);
        let begin_ns = unit.created_ns.max(before_ns);
        let call_ns = if wait_for_calls { unit.duration_ns.unwrap_or(0) } else { 0 };
        self.before_ns = Some(begin_ns.saturating_add(call_ns));
        begin_ns - before_ns
    }
}

/// What runs on one stream: the calls of a group, or its messages with one member.
type Lane = (u32, Option<u32>);

struct RankBuilder<'a> {
    groups: &'a RecordedGroups,
    wait_for_calls: bool,
    /// Name of the time between calls.
    time: u32,
    program: Program,
    slots: Vec<u32>,
    /// Stream of each lane, and the last op on it.
    lanes: BTreeMap<Lane, (Stream, Option<u32>)>,
    /// The last time of the host.
    host: Option<u32>,
    /// The last call, for which the next waits.
    waited: Option<u32>,
}

impl RankBuilder<'_> {
    fn unit(&mut self, dump: &Dump, unit: &Launch, gap_ns: u64) -> Result<(), String> {
        let ps = gap_ns.checked_mul(PS_PER_NS).filter(|ps| *ps <= MAX_PS);
        let ps = ps.ok_or("it was made more than a million seconds after the call before it")?;
        if ps > 0 {
            let deps: Vec<u32> = self.waited.into_iter().collect();
            let kind = OpKind::Compute { ps, phase: Phase::Other };
            self.host = Some(self.program.push(kind, Stream::COMPUTE, self.time, &deps));
            self.waited = None;
        }
        let members = self.groups.get(unit.group).members.len();
        if members == 1 {
            // Nobody else takes part: a copy.
            return Ok(());
        }
        let calls: Vec<&RecordedCall> = dump.calls_of(unit).iter().filter(|c| c.keep).collect();
        let peer = match calls.as_slice() {
            [RecordedCall { kind: Kind::Send(other) | Kind::Recv(other), .. }] => Some(*other),
            _ => None,
        };
        let (stream, last) = self.lane((unit.group, peer))?;
        let slot = self.slot(unit.group)?;
        let after = [self.host, self.waited];
        let last = if calls.len() > 1 && unit.is_message {
            // All of them at once, after what came before them on their stream.
            let mut deps: Vec<u32> = after.into_iter().flatten().chain(last).collect();
            deps.sort_unstable();
            deps.dedup();
            let ops: Vec<u32> =
                calls.iter().map(|c| self.program.push(kind(c, slot), Stream::FREE, c.name, &deps)).collect();
            self.program.push(OpKind::Join, stream, calls[0].name, &ops)
        } else {
            let mut last = None;
            for call in calls {
                let deps: Vec<u32> = if last.is_none() { after.into_iter().flatten().collect() } else { Vec::new() };
                last = Some(self.program.push(kind(call, slot), stream, call.name, &deps));
            }
            last.expect("a unit that is kept has calls")
        };
        self.lanes.get_mut(&(unit.group, peer)).expect("the lane is there").1 = Some(last);
        self.waited = self.wait_for_calls.then_some(last);
        Ok(())
    }

    fn lane(&mut self, lane: Lane) -> Result<(Stream, Option<u32>), String> {
        if let Some(found) = self.lanes.get(&lane) {
            return Ok(*found);
        }
        let n = self.lanes.len();
        let stream = comm_streams().take(MAX_COMM_STREAMS).nth(n).ok_or_else(|| {
            format!("its rank has more than {MAX_COMM_STREAMS} process groups and ranks to which it sends one by one")
        })?;
        self.lanes.insert(lane, (stream, None));
        Ok((stream, None))
    }

    fn slot(&mut self, group: u32) -> Result<u16, String> {
        let slots = &mut self.slots;
        let slot = slots.iter().position(|g| *g == group).unwrap_or_else(|| {
            slots.push(group);
            slots.len() - 1
        });
        u16::try_from(slot).map_err(|_| "its rank is in more than 65,536 process groups".to_string())
    }
}

/// The op of a call.
fn kind(call: &RecordedCall, slot: u16) -> OpKind {
    let (bytes, tag, dim) = (call.bytes, 0, Dim::Other);
    match call.kind {
        Kind::Collective(op) => OpKind::Collective { op, slot, bytes, dim, algorithm: None, shares: None },
        Kind::Send(member) => OpKind::Send { peer: Peer { slot, member }, bytes, tag, dim },
        Kind::Recv(member) => OpKind::Recv { peer: Peer { slot, member }, bytes, tag, dim },
    }
}
