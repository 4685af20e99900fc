//! A partition's turn: the CPU systems over its rows, for a step.

use std::mem::take;

use super::canon::timers_run;
use super::run::Run;
use super::{Stop, because};
use crate::columns::{NEVER, NONE, SHARED_HEADER, Tables};
use crate::engine::cpu::key::START;
use crate::engine::cpu::{forward, nic, plan};

impl Run {
    /// Partition `p` goes on from `at`, when it is the earliest of all.
    pub(super) fn live_turn(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        if self.parts[p as usize].rests_at <= at {
            self.lay_down(t, p);
            return Ok(());
        }
        if self.cut(t, p, at) {
            return Ok(());
        }
        // All before a look must have happened, and nothing after it: also what a partition does to another.
        let look = self.next_look().map_or(NEVER, |look| look.0);
        let end = self.parts[p as usize].mark(at + 1, self.step).min(t.exps[0].time_limit).min(look);
        self.parts[p as usize].next = NEVER;
        self.parts[p as usize].covered = end;
        self.parts[p as usize].reached = self.parts[p as usize].reached.max(end);
        if let Some(script) = &mut self.parts[p as usize].script {
            script.turn(at);
        }
        self.turning = p;
        let p = self.window(t, p, at, end)?;
        self.turning = NONE;
        self.drain(t, p);
        t.exps[0].now = t.exps[0].now.max(end);
        let next = self.ahead(t, p);
        // A NIC stands still where somebody is to join.
        self.parts[p as usize].covered = end.min(next);
        // A look may put it to sleep, or cut it.
        let known = next.min(self.parts[p as usize].watch.next());
        self.flush_covered(p, known);
        self.hold(p);
        self.call_part(p, next);
        Ok(())
    }

    /// When live partition `p` goes on, be it to be laid down.
    pub(super) fn ahead(&mut self, t: &Tables, p: u32) -> u64 {
        let part = &mut self.parts[p as usize];
        let look = part.look(t);
        part.rests_at = if look.rest { part.mark(part.reached.max(part.start + 1), self.step) } else { NEVER };
        look.next.min(part.rests_at)
    }

    /// Live partition `p` is at rest, and everybody else has come as far as that.
    pub(super) fn lay_down(&mut self, t: &mut Tables, p: u32) {
        let end = self.parts[p as usize].rests_at;
        self.parts[p as usize].covered = NEVER;
        self.flush_covered(p, end);
        self.hold(p);
        self.keep(t, p, end);
        self.tell_peaks(t, p, end);
        self.dissolve(t, p);
    }

    /// A stretch of the life of `p` ends at `end`, and with it the most that its ingresses held.
    pub(super) fn tell_peaks(&mut self, t: &Tables, p: u32, end: u64) {
        let part = &self.parts[p as usize];
        self.calm.tell(t, part.start, end, &part.ends, &part.peaks);
    }

    /// The systems over the rows of `p`, from `at` up to `end`; gives the partition that they are of by then. A NIC that needs rows which are not of `p` yet stands still,
    /// unless that is at `at`: whoever joins does so when it is the earliest of all. PRECONDITION: nobody's next event is more than a step before `end`.
    pub(super) fn window(&mut self, t: &mut Tables, p: u32, at: u64, end: u64) -> Result<u32, Stop> {
        let own = t.exps[0].end_len;
        self.rise.begin(at, end);
        let part = &mut self.parts[p as usize];
        // Lists that are indexed once a row and window: they are not looked up in the partition each time.
        let (ends, peaks, ports) = (take(&mut part.ends), take(&mut part.peaks), take(&mut part.ports));
        let drew = self.switches(t, &ends, &peaks, &ports, end);
        let part = &mut self.parts[p as usize];
        (part.ends, part.peaks, part.ports) = (ends, peaks, ports);
        let drew = drew?;
        for (place, held) in self.rise.peaks() {
            let part = &mut self.parts[p as usize];
            let peak = self.calm.coarse(held);
            if peak <= part.peaks[place] {
                continue;
            }
            part.peaks[place] = peak;
            let (ends, peaks, local) = (&part.ends, &part.peaks, &self.end_local);
            let held = |port: usize| {
                ends.get(local[port] as usize).filter(|&&end| end as usize == port).map(|_| peaks[local[port] as usize])
            };
            // Else what nothing stops might fill all memory before the stretch ends.
            if !self.calm.may_hold(t, ends[place], held) {
                return Err(Stop::Abandon(because::BUFFER));
            }
        }
        let mut held: Vec<u32> = Vec::new();
        for k in 0..self.parts[p as usize].nics.len() {
            let n = self.parts[p as usize].nics[k];
            if t.clocks[n as usize] < end || t.clocks[(own + n) as usize] < end {
                nic::nic(t, n, end);
                if t.clocks[(own + n) as usize] < end {
                    held.push(n);
                }
            }
        }
        if drew {
            self.wild(p);
        }
        let p = self.let_go(t, p, held, at, end)?;
        self.collect_all(t, p);
        self.heed(t)?;
        Ok(p)
    }

    /// The systems of switches up to `end`, over rows of a partition: link ends at switches with what each has held at most, and ports. Returns whether something random happened.
    fn switches(&mut self, t: &mut Tables, ends: &[u32], peaks: &[u32], ports: &[u32], end: u64) -> Result<bool, Stop> {
        let (nics, own, words) = (t.exps[0].nic_len, t.exps[0].end_len, t.exps[0].mask_words);
        for (k, (&i, &peak)) in ends.iter().zip(peaks).enumerate() {
            if t.clocks[(nics + i) as usize] < end {
                self.take_in(t, k, i, peak, end)?;
            }
        }
        // Random marks are no function of the key; and DCQCN's timers, once they run, move windows that the NIC looks at whenever something is posted. Where windows stand,
        // what is remembered counts on hearing of no congestion (`carry::marks_by_chance`).
        let mut drew = false;
        let timers = timers_run(t) || t.aside.chance;
        for &port in ports {
            let first = plan::want_word(t, port, 0) as usize;
            let wanted = t.shared[first..first + words as usize].iter().any(|&word| word != 0);
            if wanted || t.clocks[(own + nics + port) as usize] < end {
                let (draws, marks) = (t.ports[port as usize].draws, t.ports[port as usize].marks);
                let wire = t.wires[t.ports[port as usize].peer as usize];
                forward::forward(t, port, end);
                if self.rise.is_watching(t.ports[port as usize].switch_idx) {
                    self.rise.departures(t, port, wire.tail);
                }
                let row = &t.ports[port as usize];
                drew |= row.draws != draws || (timers && row.marks != marks);
            }
        }
        Ok(drew)
    }

    /// What arrives at switch port `i`, the `k`-th of the partition's ends, before `end` is planned for its egress, and counted at once: a calm switch asks no more of it.
    fn take_in(&mut self, t: &mut Tables, k: usize, i: u32, peak: u32, end: u64) -> Result<(), Stop> {
        plan::plan(t, i, end);
        let row = &mut t.ports[i as usize];
        let bytes = take(&mut row.arr_bytes);
        row.arr_n = 0;
        if row.in_frames != NONE {
            return Err(Stop::Abandon(because::FRAMES));
        }
        let word = (SHARED_HEADER + i) as usize;
        let held = t.shared[word];
        t.shared[word] = held.wrapping_add(bytes);
        if t.shared[word] > peak {
            self.rise.arrivals(t, k, i, held, peak);
        }
        Ok(())
    }

    /// NICs stopped where a queue pair needs rows that are not of `p` yet: these join, if that is at `at`.
    fn let_go(&mut self, t: &mut Tables, p: u32, mut held: Vec<u32>, at: u64, end: u64) -> Result<u32, Stop> {
        let own = t.exps[0].end_len;
        let mut p = p;
        while let Some(k) = (0..held.len()).find(|&k| t.clocks[(own + held[k]) as usize] <= at) {
            let n = held[k];
            let next = nic::next_event(t, n);
            let flow = if next.kind == START {
                let row = &t.nics[n as usize];
                row.flow_first + row.flow_next
            } else {
                t.tasks[t.nics[n as usize].task_head as usize].flow
            };
            self.drain(t, p);
            p = self.join(t, n, flow, next.t)?;
            nic::nic(t, n, end);
            if t.clocks[(own + n) as usize] > at {
                held.remove(k);
            }
        }
        Ok(p)
    }
}
