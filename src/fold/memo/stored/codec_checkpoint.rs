//! Encodes and decodes checkpoints and choices. A checkpoint names the snapshots that it leads to by id, so a repeating pattern, a cycle of
//! checkpoints, takes few records.
//!
//! Layer: fold/memo. Fetches nothing: whoever passes a checkpoint requests what it leads to.

use std::sync::Arc;

use crate::memo::node::{Checkpoint, Continuation};
use crate::memo::node_id::MemoNodeId;
use crate::memo::outcome::{CounterDelta, NicDelta, PartitionPiece, PortDelta};
use crate::memo::skip_choice::{NeededBytes, SkipChoice};
use crate::memo::skip_plan::{RoundTrips, SkipPlan, SkipRate, draw};
use crate::rows::bytes::{NumberReader, NumberWriter};

/// Kinds of continuation.
const SNAPSHOT: u64 = 0;

const RETIRE: u64 = 1;

const SKIP: u64 = 2;

pub(crate) fn put_checkpoint(w: &mut NumberWriter, checkpoint: &Checkpoint) {
    w.number(checkpoint.at);
    w.number(checkpoint.pieces.len() as u64);
    for (piece, continuation) in checkpoint.pieces.iter().zip(&checkpoint.continuations) {
        for rows in [&piece.nics, &piece.ports, &piece.ends, &piece.members, &piece.working, &piece.ancestors] {
            put_numbers(w, rows);
        }
        let (kind, bytes): (u64, &[u8]) = match continuation {
            Continuation::Snapshot(node) => (SNAPSHOT, &node.id()),
            Continuation::Stored(id) => (SNAPSHOT, id),
            Continuation::Retire(bytes) => (RETIRE, bytes),
            Continuation::Skip(plan) => (SKIP, &plan.state),
        };
        w.number(kind);
        w.bytes(bytes);
        if let Continuation::Skip(plan) = continuation {
            put_plan(w, plan);
        }
    }
    w.number(checkpoint.nics.len() as u64);
    checkpoint.nics.iter().for_each(|n| put_nic(w, n));
    w.number(checkpoint.ports.len() as u64);
    checkpoint.ports.iter().for_each(|p| put_port(w, p));
    put_numbers(w, &checkpoint.peaks);
    w.number(checkpoint.members.len() as u64);
    for m in &checkpoint.members {
        [m.una, m.sent_bytes, m.arrived_bytes, m.milestone].into_iter().for_each(|x| w.number(x));
        [u64::from(m.n_sent), u64::from(m.n_acks), m.rtt_sum, u64::from(m.rtt_seen)]
            .into_iter()
            .for_each(|x| w.number(x));
    }
}

/// Reads a checkpoint. `None` if the bytes are none.
pub(crate) fn get_checkpoint(r: &mut NumberReader) -> Option<Checkpoint> {
    let mut checkpoint = Checkpoint {
        at: r.number()?,
        pieces: Vec::new(),
        continuations: Vec::new(),
        nics: Vec::new(),
        ports: Vec::new(),
        peaks: Vec::new(),
        members: Vec::new(),
    };
    for _ in 0..r.count()? {
        let mut piece = PartitionPiece::default();
        for rows in [
            &mut piece.nics,
            &mut piece.ports,
            &mut piece.ends,
            &mut piece.members,
            &mut piece.working,
            &mut piece.ancestors,
        ] {
            *rows = numbers(r)?;
        }
        checkpoint.pieces.push(piece);
        let (kind, bytes) = (r.number()?, r.bytes()?);
        checkpoint.continuations.push(match kind {
            SNAPSHOT => Continuation::Stored(MemoNodeId::try_from(bytes).ok()?),
            RETIRE => Continuation::Retire(bytes.into()),
            SKIP => Continuation::Skip(Arc::new(get_plan(r, bytes.into())?)),
            _ => return None,
        });
    }
    for _ in 0..r.count()? {
        checkpoint.nics.push(get_nic(r)?);
    }
    for _ in 0..r.count()? {
        checkpoint.ports.push(get_port(r)?);
    }
    checkpoint.peaks = numbers(r)?;
    for _ in 0..r.count()? {
        checkpoint.members.push(CounterDelta {
            una: r.number()?,
            sent_bytes: r.number()?,
            arrived_bytes: r.number()?,
            milestone: r.number()?,
            n_sent: r.small()?,
            n_acks: r.small()?,
            rtt_sum: r.number()?,
            rtt_seen: r.small()?,
        });
    }
    Some(checkpoint)
}

pub(crate) fn put_choice(w: &mut NumberWriter, choice: &SkipChoice) {
    w.number(choice.at);
    w.number(choice.pieces.len() as u64);
    for needs in &choice.pieces {
        w.number(needs.len() as u64);
        needs.iter().flat_map(|need| [u64::from(need.member), need.bytes]).for_each(|x| w.number(x));
    }
}

/// Reads a choice. `None` if the bytes are none.
pub(crate) fn get_choice(r: &mut NumberReader) -> Option<SkipChoice> {
    let mut choice = SkipChoice { at: r.number()?, pieces: Vec::new() };
    for _ in 0..r.count()? {
        let need = |r: &mut NumberReader| Some(NeededBytes { member: r.small()?, bytes: r.number()? });
        choice.pieces.push((0..r.count()?).map(|_| need(r)).collect::<Option<_>>()?);
    }
    Some(choice)
}

/// Writes a skip plan without its snapshot.
fn put_plan(w: &mut NumberWriter, plan: &SkipPlan) {
    w.number(plan.window);
    w.number(plan.until);
    w.number(u64::from(plan.level));
    w.number(plan.theta_ppm);
    w.number(plan.unsure);
    w.number(plan.rates.len() as u64);
    plan.rates.iter().flat_map(|p| [p.work, p.left, p.arrived, p.sent, p.turn]).for_each(|x| w.number(x));
    put_numbers(w, &plan.waiting);
    w.number(plan.ports.len() as u64);
    plan.ports.iter().flat_map(|&(area, marks)| [area, marks]).for_each(|x| w.number(x));
    w.number(plan.round_trips.len() as u64);
    plan.round_trips.iter().flat_map(|own| [own.sum_ps, own.n, own.packets]).for_each(|x| w.number(x));
}

fn get_plan(r: &mut NumberReader, state: Arc<[u8]>) -> Option<SkipPlan> {
    // A rate needs a time above 0.
    let window = r.number()?.max(1);
    let until = r.number()?;
    let level = r.small()?;
    let theta_ppm = r.number()?;
    let unsure = r.number()?;
    let rates = (0..r.count()?)
        .map(|_| {
            Some(SkipRate {
                work: r.number()?,
                left: r.number()?,
                arrived: r.number()?,
                sent: r.number()?,
                turn: r.number()?,
            })
        })
        .collect::<Option<_>>()?;
    let waiting = numbers(r)?;
    let ports = (0..r.count()?).map(|_| Some((r.number()?, r.number()?))).collect::<Option<_>>()?;
    let round_trips = (0..r.count()?)
        .map(|_| Some(RoundTrips { sum_ps: r.number()?, n: r.number()?, packets: r.number()? }))
        .collect::<Option<_>>()?;
    let draw = draw(&state);
    let plan = SkipPlan {
        draw,
        state,
        window,
        until,
        level,
        theta_ppm,
        unsure,
        rates,
        waiting,
        ports,
        round_trips,
        carried: None,
    };
    Some(plan)
}

pub(crate) fn put_nic(w: &mut NumberWriter, n: &NicDelta) {
    [n.tx_bytes, n.hops, u64::from(n.pauses), n.paused_ps].into_iter().for_each(|x| w.number(x));
}

pub(crate) fn get_nic(r: &mut NumberReader) -> Option<NicDelta> {
    Some(NicDelta { tx_bytes: r.number()?, hops: r.number()?, pauses: r.small()?, paused_ps: r.number()? })
}

pub(crate) fn put_port(w: &mut NumberWriter, p: &PortDelta) {
    [p.tx_bytes, p.hops, u64::from(p.max_q), p.q_area, p.marks].into_iter().for_each(|x| w.number(x));
    [u64::from(p.pauses), u64::from(p.drops), p.dropped_bytes, p.paused_ps].into_iter().for_each(|x| w.number(x));
}

pub(crate) fn get_port(r: &mut NumberReader) -> Option<PortDelta> {
    Some(PortDelta {
        tx_bytes: r.number()?,
        hops: r.number()?,
        max_q: r.small()?,
        q_area: r.number()?,
        marks: r.number()?,
        pauses: r.small()?,
        drops: r.small()?,
        dropped_bytes: r.number()?,
        paused_ps: r.number()?,
    })
}

fn put_numbers(w: &mut NumberWriter, numbers: &[u32]) {
    w.number(numbers.len() as u64);
    numbers.iter().for_each(|&x| w.number(u64::from(x)));
}

fn numbers(r: &mut NumberReader) -> Option<Vec<u32>> {
    (0..r.count()?).map(|_| r.small()).collect()
}
