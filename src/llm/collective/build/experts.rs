//! Schedules of an exchange of tokens with experts by kernels that do not use NCCL (`super::super::experts`).
//!
//! Layer: collective. A token goes once to each server, or once for each expert. In the first case a dispatch goes by rail to the GPU with the sender's place in the other server, which forwards over NVLink. A combine goes back the same
//! way: results are summed at that GPU, and it sends the sum. What a GPU gets is a part of what its server gets, so a piece is forwarded as soon as it is there.

use super::super::experts::{ExpertDirection, ExpertExchange};
use super::direct::Shares;
use super::error::ScheduleError;
use super::options::ScheduleOptions;
use super::shape::Shape;
use super::writer::{How, Range, ScheduleWriter, span};

/// Bytes that each member exchanges with each server and each GPU.
struct Volumes {
    /// Bytes of one member's tokens, each counted once.
    token_bytes: u64,
    /// Bytes for each member that holds experts.
    member_bytes: Vec<u64>,
    /// Bytes for each server.
    server_bytes: Vec<u64>,
}

impl Volumes {
    fn new(
        e: &ExpertExchange,
        bytes: u64,
        servers: &[Vec<u32>],
        weights: Option<&[u64]>,
    ) -> Result<Volumes, ScheduleError> {
        let n: usize = servers.iter().map(Vec::len).sum();
        let even = vec![1; n];
        let weights = weights.unwrap_or(&even);
        let sum: u128 = weights.iter().map(|&w| u128::from(w)).sum();
        if weights.len() != n || sum == 0 {
            return Err(ScheduleError::Shares { given: weights.len(), n: n as u32, sum });
        }
        // A member with more load counts as one with more experts.
        let held = |m: u32| f64::from(e.experts) * (weights[m as usize] as f64 / sum as f64);
        let once = |held: f64, members: usize| e.once_bytes(bytes, e.probability(held, members as f64 / n as f64));
        let token_bytes = e.once_bytes(bytes, 1.0);
        let member_bytes: Vec<u64> = (0..n as u32).map(|m| once(held(m), 1)).collect();
        let of_server = |members: &Vec<u32>| {
            let largest = members.iter().map(|&m| member_bytes[m as usize]).max().unwrap_or(0);
            once(members.iter().map(|&m| held(m)).sum(), members.len()).clamp(largest, token_bytes)
        };
        Ok(Volumes { token_bytes, server_bytes: servers.iter().map(of_server).collect(), member_bytes })
    }

    /// The tokens of `src` for a server: a range in a space with one part for each pair of a member and a server.
    fn for_server(&self, src: u32, server: usize) -> Range {
        let start = (u64::from(src) * self.server_bytes.len() as u64 + server as u64) * self.token_bytes;
        Range { start, end: start + self.server_bytes[server] }
    }

    /// The part of these tokens that one of the server's `members` gets in one of `rounds` rounds. The parts of its members begin evenly spread over those of the
    /// round.
    fn for_member(&self, all: Range, members: &[u32], place: usize, round: u64, rounds: u64) -> Range {
        let whole = span(all, round, rounds);
        let member = span(Range { start: 0, end: self.member_bytes[members[place] as usize] }, round, rounds);
        let length = (member.end - member.start).min(whole.end - whole.start);
        let room = u128::from(whole.end - whole.start - length);
        let skipped = (room * place as u128 / (members.len().max(2) - 1) as u128) as u64;
        Range { start: whole.start + skipped, end: whole.start + skipped + length }
    }
}

/// Writes an exchange in which a token crosses the network once for each server. `weights` are those of the members as holders of experts; `None` if they are
/// loaded evenly.
///
/// It goes in rounds, in which a GPU gets at most a chunk from each sender. So all rails work from the start, as tokens come in any order.
pub(super) fn once_a_server(
    w: &mut ScheduleWriter,
    e: &ExpertExchange,
    bytes: u64,
    shape: &Shape,
    options: &ScheduleOptions,
) -> Result<(), ScheduleError> {
    let (servers, channels) = (shape.by_server(), options.channels.max(1));
    let volumes = Volumes::new(e, bytes, &servers, options.shares)?;
    let largest = volumes.member_bytes.iter().copied().max().unwrap_or(0);
    let rounds = if options.chunk_bytes == 0 { 1 } else { largest.div_ceil(options.chunk_bytes).max(1) };
    let n = u64::from(w.n());
    // One transfer for each pair of members: each either crosses the network or is forwarded.
    if volumes.member_bytes.iter().all(|&bytes| bytes >= rounds) {
        w.announce((n * n.saturating_sub(1)).saturating_mul(rounds));
    }
    // Other servers come first for a combine, whose sums have the longer way, and last for a dispatch.
    let turns = 0..servers.len();
    let turns: Vec<usize> = match e.direction {
        ExpertDirection::Dispatch => turns.collect(),
        ExpertDirection::Combine => turns.map(|turn| (turn + 1) % servers.len()).collect(),
    };
    for round in 0..rounds {
        let c = (round % u64::from(channels)) as u16;
        for &turn in &turns {
            for (home, senders) in servers.iter().enumerate() {
                let server = (home + turn) % servers.len();
                let members = &servers[server];
                for (place, &src) in senders.iter().enumerate() {
                    // The GPU of the server that is on the sender's rail, or the sender itself.
                    let rail = place % members.len();
                    let relay = members[rail];
                    let all = volumes.for_server(src, server);
                    if turn > 0 && e.direction == ExpertDirection::Dispatch {
                        w.send(src, relay, c, span(all, round, rounds), How::Copy);
                    }
                    for step in 1..members.len() {
                        let other = (rail + step) % members.len();
                        let range = volumes.for_member(all, members, other, round, rounds);
                        match e.direction {
                            ExpertDirection::Dispatch => w.send(relay, members[other], c, range, How::Copy),
                            ExpertDirection::Combine => w.send(members[other], relay, c, range, How::Reduce),
                        }
                    }
                    if turn > 0 && e.direction == ExpertDirection::Combine {
                        w.send(relay, src, c, span(all, round, rounds), How::Reduce);
                    }
                }
            }
            if w.is_full() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Writes an exchange in which every member sends to every other directly, a copy for each expert. A sender begins with its own rail, and with the server after
/// its own, so that no two send to the same member at first.
pub(super) fn once_an_expert(
    w: &mut ScheduleWriter,
    bytes: u64,
    shape: &Shape,
    options: &ScheduleOptions,
) -> Result<(), ScheduleError> {
    let (servers, channels) = (shape.by_server(), options.channels.max(1));
    let shares = Shares::new(bytes, w.n(), options.shares)?;
    let largest = servers.iter().map(Vec::len).max().unwrap_or(0);
    w.announce((shares.receivers() * u64::from(w.n())).saturating_sub(u64::from(w.n())));
    for turn in 1..=servers.len() {
        for step in 0..largest {
            for (home, senders) in servers.iter().enumerate() {
                let members = &servers[(home + turn) % servers.len()];
                if step >= members.len() {
                    continue;
                }
                for (place, &src) in senders.iter().enumerate() {
                    let dst = members[(place + step) % members.len()];
                    for c in (0..channels).filter(|_| src != dst) {
                        w.send(src, dst, c, span(shares.range(src, dst), u64::from(c), u64::from(channels)), How::Copy);
                    }
                }
            }
            if w.is_full() {
                return Ok(());
            }
        }
    }
    Ok(())
}
