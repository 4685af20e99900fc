//! Decides whether a solved pipeline job is steady: then more micro-batches would add whole periods and change nothing else.
//!
//! Layer: workload. This is a proof by induction for jobs that differ only in the number of pairs (a forward and a backward pass) in the steady phase of each
//! iteration:
//!
//! - In a *span* of pairs, the ops and dependencies of each pair equal those of the pair one period before. All times are later by the same amount on every rank.
//! - The longer job has more periods after a pair in the span, the *cut*. Its assumed times are: this job's times up to the cut; in the added pairs the span's times, continued period by period; after the cut this job's times, later by the added periods.
//! - These are the times of the longer job if they satisfy every equation `begin = latest end of what it waits for`. Each dependency is checked once: whether both sides move equally, and if one side does not move, whether another dependency that moves decides.

use foldhash::{HashMap, HashMapExt};

use super::machine::Lowering;
use super::op_times::{NONE, OpTimes, SolvedOps, TimedMessage, group_of, program};
use crate::workload::program::{Op, OpKind, Program, Workload};

/// Place of an op: its iteration, and the pair of its steady phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    iteration: u32,
    /// Index of the pair; [`BEFORE`] the first, [`BEHIND`] after the last.
    pair: i32,
}

const BEFORE: i32 = -1;
const BEHIND: i32 = i32::MAX;

impl Place {
    fn is_in_pair(self) -> bool {
        self.pair != BEFORE && self.pair != BEHIND
    }
}

/// How much later each side of a dependency becomes when periods are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moves {
    /// Both sides become later by the same amount.
    Together,
    /// The op that is waited for moves less than the op that waits, or not at all.
    Less,
    /// The op that is waited for moves more than the op that waits.
    More,
}

/// The pairs of passes of a solved job.
pub struct SteadyPairs<'a> {
    workload: &'a Workload,
    machine: &'a Lowering<'a>,
    solved: &'a SolvedOps<'a>,
    /// By program and op.
    places: Vec<Vec<Place>>,
    /// Number of pairs that every rank has in every iteration.
    n_pairs: i32,
    /// Ranks that no other rank stands for.
    ranks: Vec<u32>,
}

/// The pairs of the span, and the period that is tested.
#[derive(Clone, Copy, Debug)]
struct PairSpan {
    first: i32,
    /// First pair after the span.
    end: i32,
    period: i32,
    /// Periods are added after this pair.
    cut: i32,
}

impl PairSpan {
    fn has(self, place: Place) -> bool {
        (self.first..self.end).contains(&place.pair)
    }

    /// Number of cuts before a place.
    fn level(self, place: Place) -> u32 {
        place.iteration + u32::from(place.pair > self.cut)
    }

    /// How a dependency of `waits` on `waited_for` moves.
    fn moves(self, waited_for: Place, waits: Place) -> Moves {
        let (waited_level, waits_level) = (self.level(waited_for), self.level(waits));
        // An op in the span has a copy in each added period, next to the copy of the op that waits for it.
        match waited_level.abs_diff(waits_level) {
            0 => Moves::Together,
            1 if self.has(waited_for) => Moves::Together,
            _ if waited_level < waits_level => Moves::Less,
            _ => Moves::More,
        }
    }
}

impl<'a> SteadyPairs<'a> {
    /// Finds the pairs of a job. `None` if its programs do not mark pairs.
    pub fn of(workload: &'a Workload, machine: &'a Lowering<'a>, solved: &'a SolvedOps<'a>) -> Option<SteadyPairs<'a>> {
        let places: Vec<Vec<Place>> = workload.programs.iter().map(places).collect::<Option<_>>()?;
        let n_pairs = workload.programs.iter().flat_map(|p| &p.pairs).map(|pairs| pairs.len() as i32 - 1).min()?;
        let ranks = solved.times.own_ranks().collect();
        Some(SteadyPairs { workload, machine, solved, places, n_pairs, ranks })
    }

    /// The smallest multiple of `unit` pairs, as a number of times up to `max_times`, after which everything repeats. `None` if none can be proved.
    pub fn period(&self, unit: u32, max_times: u32) -> Option<u32> {
        (1..=max_times).find(|times| self.is_steady((times * unit) as i32))
    }

    /// Whether adding `period` pairs any number of times would add the same each time and change nothing else.
    pub fn is_steady(&self, period: i32) -> bool {
        // The span is the second half, since the first may still settle. It excludes the last period, in which gradients may be reduced.
        let (first, end) = (self.n_pairs - self.n_pairs / 2, self.n_pairs - period);
        let span = PairSpan { first, end, period, cut: end };
        if first + 2 * period > end || !self.repeats(span) {
            return false;
        }
        let Some((back, ahead)) = self.reach(span) else { return false };
        let cut = span.end - 1 - ahead;
        let span = PairSpan { cut, ..span };
        first + period + back <= cut + 1 && self.goes_on(span)
    }

    fn place(&self, rank: u32, op: u32) -> Place {
        self.places[self.workload.ranks[rank as usize].program as usize][op as usize]
    }

    fn time(&self, rank: u32, op: u32) -> OpTimes {
        self.solved.times.op(rank, op)
    }

    /// The message that an op sends or receives.
    fn message(&self, rank: u32, op: u32) -> &TimedMessage {
        &self.solved.messages[self.solved.meetings.of_op[rank as usize][op as usize] as usize]
    }

    /// Whether each pair of the span equals the pair one period before, later by the same amount.
    fn repeats(&self, span: PairSpan) -> bool {
        let iterations = self.workload.programs.iter().map(|p| p.pairs.len()).min().unwrap_or(0);
        (0..iterations).all(|iteration| {
            let mut later = None;
            self.ranks.iter().all(|&rank| self.rank_repeats(rank, iteration, span, &mut later))
        })
    }

    /// Whether each pair of one iteration of a rank in the span equals the pair one period before, later by the same amount. `later` is the shift of a period
    /// in ps, once it is known.
    fn rank_repeats(&self, rank: u32, iteration: usize, span: PairSpan, later: &mut Option<u64>) -> bool {
        let own_program = program(self.workload, rank);
        let starts = &own_program.pairs[iteration];
        (span.first..span.end - span.period).all(|pair| {
            let ops = starts[pair as usize]..starts[pair as usize + 1];
            let next = starts[(pair + span.period) as usize]..starts[(pair + span.period) as usize + 1];
            let op_shift = next.start - ops.start;
            ops.len() == next.len()
                && (ops.start..ops.end).all(|op| {
                    let (now, then) = (self.time(rank, op), self.time(rank, op + op_shift));
                    let expected = *later.get_or_insert(then.end.saturating_sub(now.end));
                    same_op(own_program, op, op + op_shift)
                        && [(now.begin, then.begin), (now.go, then.go), (now.end, then.end)]
                            .iter()
                            .all(|&(now, then)| now.checked_add(expected) == Some(then))
                        && self.message_repeats(rank, op, op + op_shift, expected, span.period)
                })
        })
    }

    /// Whether the message that an op sends equals the one a period before, and goes to the op a period after that one's receiver. True for ops that send
    /// nothing.
    fn message_repeats(&self, rank: u32, op: u32, next: u32, later: u64, period: i32) -> bool {
        if !matches!(program(self.workload, rank).ops[op as usize].kind, OpKind::Send { .. }) {
            return true;
        }
        let (now, then) = (self.message(rank, op), self.message(rank, next));
        let (now_place, then_place) = (self.place(now.dst, now.recv), self.place(then.dst, then.recv));
        let phase = |place: Place, dst: u32, recv: u32| {
            recv - program(self.workload, dst).pairs[place.iteration as usize][place.pair as usize]
        };
        now.dst == then.dst
            && now_place.is_in_pair()
            && then_place == (Place { pair: now_place.pair + period, ..now_place })
            && phase(now_place, now.dst, now.recv) == phase(then_place, then.dst, then.recv)
            && now.posted.checked_add(later) == Some(then.posted)
            && now.arrives.checked_add(later) == Some(then.arrives)
    }

    /// How many pairs back and ahead the dependencies of the span's last period reach. `None` if one reaches out of the pairs.
    fn reach(&self, span: PairSpan) -> Option<(i32, i32)> {
        let (mut back, mut ahead) = (0, 0);
        let last = span.end - span.period..span.end;
        for &rank in &self.ranks {
            for op in (0..program(self.workload, rank).ops.len() as u32)
                .filter(|&op| last.contains(&self.place(rank, op).pair))
            {
                let waits = self.place(rank, op);
                let mut within = true;
                self.waits_for(rank, op, &mut |waited_for, _| {
                    within &= waited_for.is_in_pair() && waited_for.iteration == waits.iteration;
                    back = back.max(waits.pair.saturating_sub(waited_for.pair));
                    ahead = ahead.max(waited_for.pair.saturating_sub(waits.pair));
                });
                if !within {
                    return None;
                }
            }
        }
        Some((back, ahead))
    }

    /// Calls `each` with the place and the end in ps of all that an op waits for, on its own rank and on others.
    fn waits_for(&self, rank: u32, op: u32, each: &mut impl FnMut(Place, u64)) {
        self.own_dependencies(rank, op, each);
        match program(self.workload, rank).ops[op as usize].kind {
            OpKind::Recv { .. } => {
                let message = self.message(rank, op);
                each(self.place(message.src, message.send), message.arrives);
            }
            OpKind::Collective { slot, .. } => self.parties(rank, op, slot, &mut |party, party_op| {
                each(self.place(party, party_op), self.time(party, party_op).begin);
            }),
            _ => {}
        }
    }

    /// Calls `each` with the place and the end in ps of all that an op waits for on its own rank.
    fn own_dependencies(&self, rank: u32, op: u32, each: &mut impl FnMut(Place, u64)) {
        let number = self.workload.ranks[rank as usize].program as usize;
        let before = self.solved.before[number][op as usize];
        let deps = self.workload.programs[number].deps_of(op).iter().copied();
        for dep in deps.chain((before != NONE).then_some(before)) {
            each(self.place(rank, dep), self.time(rank, dep).end);
        }
    }

    /// Calls `each` with the ranks and ops of a collective.
    fn parties(&self, rank: u32, op: u32, slot: u16, each: &mut impl FnMut(u32, u32)) {
        let group = group_of(self.workload, self.machine, rank, slot) as usize;
        let parties = &self.solved.parties[group];
        let nth = self.solved.meetings.of_op[rank as usize][op as usize] as usize;
        let ops = &self.solved.meetings.groups[group].ops[nth * parties.len()..(nth + 1) * parties.len()];
        parties.iter().zip(ops).for_each(|(&party, &op)| each(party, op));
    }

    /// Whether every equation holds in a longer job.
    fn goes_on(&self, span: PairSpan) -> bool {
        let ops = |&rank: &u32| (0..program(self.workload, rank).ops.len() as u32).map(move |op| (rank, op));
        self.ranks.iter().flat_map(ops).all(|(rank, op)| self.op_goes_on(rank, op, span)) && self.links_go_on(span)
    }

    /// Whether the equations of an op hold in a longer job.
    fn op_goes_on(&self, rank: u32, op: u32, span: PairSpan) -> bool {
        let waits = self.place(rank, op);
        let times = self.time(rank, op);
        let (mut decided, mut sound) = (false, true);
        self.own_dependencies(rank, op, &mut |place, end| {
            let moves = span.moves(place, waits);
            sound &= moves != Moves::More;
            decided |= moves == Moves::Together && end == times.begin;
        });
        // An op that waits for nothing begins at 0, with or without more periods.
        decided |= times.begin == 0 && span.level(waits) == 0;
        if !sound || !decided {
            return false;
        }
        match program(self.workload, rank).ops[op as usize].kind {
            OpKind::Recv { .. } => {
                let message = self.message(rank, op);
                match span.moves(self.place(message.src, message.send), waits) {
                    Moves::Together => true,
                    Moves::Less => message.arrives <= times.begin,
                    Moves::More => false,
                }
            }
            OpKind::Collective { slot, .. } => {
                let mut equal = true;
                self.parties(rank, op, slot, &mut |party, party_op| {
                    let place = self.place(party, party_op);
                    equal &= span.level(place) == span.level(waits);
                    // Added periods must have the same number of collectives on all ranks.
                    equal &= place == waits || !(span.has(place) || span.has(waits));
                });
                equal
            }
            _ => true,
        }
    }

    /// Whether the messages of each link go in the order of their sender's program, and whether each would wait for the same predecessor in a longer job.
    fn links_go_on(&self, span: PairSpan) -> bool {
        let mut last: HashMap<u32, &TimedMessage> = HashMap::new();
        // Messages are numbered by sender and op.
        self.solved.messages.iter().all(|message| {
            let Some(before) = last.insert(message.link, message) else { return true };
            let free = before.arrives - before.latency_ps;
            let (before_place, message_place) =
                (self.place(before.src, before.send), self.place(message.src, message.send));
            let moves = span.moves(before_place, message_place);
            before.src == message.src
                && before.posted <= message.posted
                && (moves == Moves::Together || (moves == Moves::Less && free <= message.posted))
                && (!span.has(message_place)
                    || (before_place.is_in_pair() && message_place.pair - before_place.pair <= span.period))
        })
    }
}

/// Whether two ops of a program are equal, with the same dependencies relative to them.
fn same_op(program: &Program, a: u32, b: u32) -> bool {
    let look = |op: &Op| (op.kind, op.stream, op.name, op.deps_n);
    let relative_deps = |op: u32| program.deps_of(op).iter().map(move |dep| op - dep);
    look(&program.ops[a as usize]) == look(&program.ops[b as usize]) && relative_deps(a).eq(relative_deps(b))
}

/// The place of each op of a program. `None` if the program does not mark its pairs.
fn places(program: &Program) -> Option<Vec<Place>> {
    if program.pairs.is_empty() || program.pairs.len() != program.iteration_ends.len() {
        return None;
    }
    let mut places = Vec::with_capacity(program.ops.len());
    for (iteration, (pairs, &end)) in (0..).zip(program.pairs.iter().zip(&program.iteration_ends)) {
        let mut pair = BEFORE;
        for op in places.len() as u32..end {
            while pair != BEHIND && pairs.get((pair + 1) as usize).is_some_and(|&start| start <= op) {
                pair += 1;
                if pair as usize + 1 == pairs.len() {
                    pair = BEHIND;
                }
            }
            places.push(Place { iteration, pair });
        }
    }
    Some(places)
}
