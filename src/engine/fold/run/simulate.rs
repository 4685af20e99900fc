//! A partition's turn: the CPU systems over its rows, for a step.

use std::mem::take;

use crate::columns::{NEVER, NONE, SHARED_HEADER, Tables};
use crate::engine::cpu::key::START;
use crate::engine::cpu::{forward, nic, plan};
use crate::engine::fold::rows::canonical_key::timers_run;
use crate::engine::fold::run::turns::Run;
use crate::engine::fold::{Stop, reason};

impl Run {
    /// Partition `p` goes on from `at`, when it is the earliest of all.
    pub(in crate::engine::fold) fn simulate_turn(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        if self.partitions[p as usize].retires_at <= at {
            self.retire_idle(t, p);
            return Ok(());
        }
        if self.checkpoint_if_due(t, p, at) {
            return Ok(());
        }
        // All before a look must have happened, and nothing after it: also what a partition does to another.
        let sampling_at = self.next_sampling().map_or(NEVER, |sampling_at| sampling_at.0);
        let end = self.partitions[p as usize].mark(at + 1, self.step).min(t.exps[0].time_limit).min(sampling_at);
        self.partitions[p as usize].next = NEVER;
        self.partitions[p as usize].covered = end;
        self.partitions[p as usize].reached = self.partitions[p as usize].reached.max(end);
        if let Some(cursor) = &mut self.partitions[p as usize].cursor {
            cursor.turn(at);
        }
        self.turning = p;
        let p = self.window(t, p, at, end)?;
        self.turning = NONE;
        self.drain(t, p);
        t.exps[0].now = t.exps[0].now.max(end);
        let next = self.next_event_at(t, p);
        // A NIC stands still where somebody is to join.
        self.partitions[p as usize].covered = end.min(next);
        // A look may put it to sleep, or cut it.
        let known = next.min(self.partitions[p as usize].detector.next());
        self.flush_covered(p, known);
        self.update_claim(p);
        self.schedule_partition(p, next);
        Ok(())
    }

    /// When live partition `p` goes on, be it to be laid down.
    pub(in crate::engine::fold) fn next_event_at(&mut self, t: &Tables, p: u32) -> u64 {
        let partition = &mut self.partitions[p as usize];
        let next = partition.next_events(t);
        partition.retires_at =
            if next.idle { partition.mark(partition.reached.max(partition.start + 1), self.step) } else { NEVER };
        next.at.min(partition.retires_at)
    }

    /// Live partition `p` is at rest, and everybody else has come as far as that.
    pub(in crate::engine::fold) fn retire_idle(&mut self, t: &mut Tables, p: u32) {
        let end = self.partitions[p as usize].retires_at;
        self.partitions[p as usize].covered = NEVER;
        self.flush_covered(p, end);
        self.update_claim(p);
        self.record_final_state(t, p, end);
        self.report_peaks(t, p, end);
        self.dissolve(t, p);
    }

    /// A stretch of the life of `p` ends at `end`, and with it the most that its ingresses held.
    pub(in crate::engine::fold) fn report_peaks(&mut self, t: &Tables, p: u32, end: u64) {
        let partition = &self.partitions[p as usize];
        self.guard.report_peaks(t, partition.start, end, &partition.ends, &partition.peaks);
    }

    /// The systems over the rows of `p`, from `at` up to `end`; gives the partition that they are of by then. A NIC that needs rows which are not of `p` yet stands still,
    /// unless that is at `at`: whoever joins does so when it is the earliest of all. PRECONDITION: nobody's next event is more than a step before `end`.
    pub(in crate::engine::fold) fn window(&mut self, t: &mut Tables, p: u32, at: u64, end: u64) -> Result<u32, Stop> {
        let own = t.exps[0].end_len;
        self.ingress_peaks.begin(at, end);
        let partition = &mut self.partitions[p as usize];
        // Lists that are indexed once a row and window: they are not looked up in the partition each time.
        let (ends, peaks, ports) = (take(&mut partition.ends), take(&mut partition.peaks), take(&mut partition.ports));
        let drew = self.switches(t, &ends, &peaks, &ports, end);
        let partition = &mut self.partitions[p as usize];
        (partition.ends, partition.peaks, partition.ports) = (ends, peaks, ports);
        let drew = drew?;
        for (place, held) in self.ingress_peaks.peaks() {
            let partition = &mut self.partitions[p as usize];
            let peak = self.guard.coarse(held);
            if peak <= partition.peaks[place] {
                continue;
            }
            partition.peaks[place] = peak;
            let (ends, peaks, local) = (&partition.ends, &partition.peaks, &self.end_local);
            let held = |port: usize| {
                ends.get(local[port] as usize).filter(|&&end| end as usize == port).map(|_| peaks[local[port] as usize])
            };
            // Else what nothing stops might fill all memory before the stretch ends.
            if !self.guard.may_hold(t, ends[place], held) {
                return Err(Stop::Abandon(reason::BUFFER));
            }
        }
        let mut held: Vec<u32> = Vec::new();
        for k in 0..self.partitions[p as usize].nics.len() {
            let n = self.partitions[p as usize].nics[k];
            if t.clocks[n as usize] < end || t.clocks[(own + n) as usize] < end {
                nic::nic(t, n, end);
                if t.clocks[(own + n) as usize] < end {
                    held.push(n);
                }
            }
        }
        if drew {
            self.mark_unpredictable(p);
        }
        let p = self.join_stalled(t, p, held, at, end)?;
        self.collect_all(t, p);
        self.check_flags(t)?;
        Ok(p)
    }

    /// The systems of switches up to `end`, over rows of a partition: link ends at switches with what each has held at most, and ports. Returns whether something random happened.
    fn switches(&mut self, t: &mut Tables, ends: &[u32], peaks: &[u32], ports: &[u32], end: u64) -> Result<bool, Stop> {
        let (nics, own, words) = (t.exps[0].nic_len, t.exps[0].end_len, t.exps[0].mask_words);
        for (k, (&i, &peak)) in ends.iter().zip(peaks).enumerate() {
            if t.clocks[(nics + i) as usize] < end {
                self.receive(t, k, i, peak, end)?;
            }
        }
        // Random marks are no function of the key; and DCQCN's timers, once they run, move windows that the NIC looks at whenever something is posted. Where windows stand,
        // what is remembered counts on hearing of no congestion (`carry::marks_by_chance`).
        let mut drew = false;
        let timers = timers_run(t) || t.fold_hints.random_marks;
        for &port in ports {
            let first = plan::want_word(t, port, 0) as usize;
            let wanted = t.shared[first..first + words as usize].iter().any(|&word| word != 0);
            if wanted || t.clocks[(own + nics + port) as usize] < end {
                let (draws, marks) = (t.ports[port as usize].draws, t.ports[port as usize].marks);
                let wire = t.wires[t.ports[port as usize].peer as usize];
                forward::forward(t, port, end);
                if self.ingress_peaks.is_watching(t.ports[port as usize].switch_idx) {
                    self.ingress_peaks.departures(t, port, wire.tail);
                }
                let row = &t.ports[port as usize];
                drew |= row.draws != draws || (timers && row.marks != marks);
            }
        }
        Ok(drew)
    }

    /// What arrives at switch port `i`, the `k`-th of the partition's ends, before `end` is planned for its egress, and counted at once: a calm switch asks no more of it.
    fn receive(&mut self, t: &mut Tables, k: usize, i: u32, peak: u32, end: u64) -> Result<(), Stop> {
        plan::plan(t, i, end);
        let row = &mut t.ports[i as usize];
        let bytes = take(&mut row.arr_bytes);
        row.arr_n = 0;
        if row.in_frames != NONE {
            return Err(Stop::Abandon(reason::FRAMES));
        }
        let word = (SHARED_HEADER + i) as usize;
        let held = t.shared[word];
        t.shared[word] = held.wrapping_add(bytes);
        if t.shared[word] > peak {
            self.ingress_peaks.arrivals(t, k, i, held, peak);
        }
        Ok(())
    }

    /// NICs stopped where a queue pair needs rows that are not of `p` yet: these join, if that is at `at`.
    fn join_stalled(&mut self, t: &mut Tables, p: u32, mut held: Vec<u32>, at: u64, end: u64) -> Result<u32, Stop> {
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
