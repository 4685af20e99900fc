//! Cuts as bytes. The states that one leads to stand there by name, so that a pattern that repeats, a circle of cuts, is a few records.
//!
//! Layer: engine. Fetches nothing: who follows a cut asks for what it leads to.

use std::sync::Arc;

use super::bytes::{Reader, Writer};
use super::memo::{Cut, Gain, Id, Lead, Piece, PortEnd};
use super::sleep::{Pace, Sleep, draw};

/// What a lead is.
const STATE: u64 = 0;
const REST: u64 = 1;
const SLEEP: u64 = 2;

pub(super) fn put_cut(w: &mut Writer, cut: &Cut) {
    w.number(cut.at);
    w.number(cut.pieces.len() as u64);
    for (piece, lead) in cut.pieces.iter().zip(&cut.leads) {
        for rows in [&piece.nics, &piece.ports, &piece.ends, &piece.members, &piece.working, &piece.ancestors] {
            w.number(rows.len() as u64);
            rows.iter().for_each(|&x| w.number(u64::from(x)));
        }
        let (kind, bytes): (u64, &[u8]) = match lead {
            Lead::State(node) => (STATE, &node.id()),
            Lead::Shelved(id) => (STATE, id),
            Lead::Rest(bytes) => (REST, bytes),
            Lead::Sleep(sleep) => (SLEEP, &sleep.state),
        };
        w.number(kind);
        w.bytes(bytes);
        if let Lead::Sleep(sleep) = lead {
            put_sleep(w, sleep);
        }
    }
    w.number(cut.nics.len() as u64);
    cut.nics.iter().flat_map(|&(bytes, hops)| [bytes, hops]).for_each(|x| w.number(x));
    w.number(cut.ports.len() as u64);
    cut.ports.iter().for_each(|p| put_port(w, p));
    w.number(cut.peaks.len() as u64);
    cut.peaks.iter().for_each(|&x| w.number(u64::from(x)));
    w.number(cut.members.len() as u64);
    for m in &cut.members {
        [m.una, m.sent_bytes, m.arrived_bytes, m.milestone, u64::from(m.n_sent), u64::from(m.n_acks)]
            .into_iter()
            .for_each(|x| w.number(x));
    }
}

/// `None`: it is none.
pub(super) fn get_cut(r: &mut Reader) -> Option<Cut> {
    let mut cut = Cut {
        at: r.number()?,
        pieces: Vec::new(),
        leads: Vec::new(),
        nics: Vec::new(),
        ports: Vec::new(),
        peaks: Vec::new(),
        members: Vec::new(),
    };
    for _ in 0..r.count()? {
        let mut piece = Piece::default();
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
        cut.pieces.push(piece);
        let (kind, bytes) = (r.number()?, r.bytes()?);
        cut.leads.push(match kind {
            STATE => Lead::Shelved(Id::try_from(bytes).ok()?),
            REST => Lead::Rest(bytes.into()),
            SLEEP => Lead::Sleep(Arc::new(get_sleep(r, bytes.into())?)),
            _ => return None,
        });
    }
    for _ in 0..r.count()? {
        cut.nics.push((r.number()?, r.number()?));
    }
    for _ in 0..r.count()? {
        cut.ports.push(get_port(r)?);
    }
    cut.peaks = numbers(r)?;
    for _ in 0..r.count()? {
        cut.members.push(Gain {
            una: r.number()?,
            sent_bytes: r.number()?,
            arrived_bytes: r.number()?,
            milestone: r.number()?,
            n_sent: r.small()?,
            n_acks: r.small()?,
        });
    }
    Some(cut)
}

/// All of a sleep but its state.
fn put_sleep(w: &mut Writer, sleep: &Sleep) {
    w.number(sleep.window);
    w.number(sleep.until);
    w.number(u64::from(sleep.level));
    w.number(sleep.theta_ppm);
    w.number(sleep.paces.len() as u64);
    sleep.paces.iter().flat_map(|p| [p.work, p.left, p.arrived, p.sent, p.turn]).for_each(|x| w.number(x));
    w.number(sleep.ports.len() as u64);
    sleep.ports.iter().flat_map(|&(area, marks)| [area, marks]).for_each(|x| w.number(x));
}

fn get_sleep(r: &mut Reader, state: Arc<[u8]>) -> Option<Sleep> {
    // A rate without a time would be none.
    let window = r.number()?.max(1);
    let until = r.number()?;
    let level = r.small()?;
    let theta_ppm = r.number()?;
    let paces = (0..r.count()?)
        .map(|_| {
            Some(Pace {
                work: r.number()?,
                left: r.number()?,
                arrived: r.number()?,
                sent: r.number()?,
                turn: r.number()?,
            })
        })
        .collect::<Option<_>>()?;
    let ports = (0..r.count()?).map(|_| Some((r.number()?, r.number()?))).collect::<Option<_>>()?;
    Some(Sleep { draw: draw(&state), state, window, until, level, theta_ppm, paces, ports })
}

pub(super) fn put_port(w: &mut Writer, p: &PortEnd) {
    [p.tx_bytes, p.hops, u64::from(p.max_q), p.q_area, p.marks].into_iter().for_each(|x| w.number(x));
}

pub(super) fn get_port(r: &mut Reader) -> Option<PortEnd> {
    Some(PortEnd {
        tx_bytes: r.number()?,
        hops: r.number()?,
        max_q: r.small()?,
        q_area: r.number()?,
        marks: r.number()?,
    })
}

fn numbers(r: &mut Reader) -> Option<Vec<u32>> {
    (0..r.count()?).map(|_| r.small()).collect()
}
