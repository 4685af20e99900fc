//! The canonical form of what a partition starts from: rows by local numbers, times from its start, sequence numbers from where queue pairs stand.
//!
//! Two partitions with the same form go the same way: whatever breaks a tie (numbers of ingresses at a switch, of NICs, of queue pairs) is told by rank.

use bytemuck::Zeroable;

use super::calm::Calm;
use super::carry;
use super::part::Part;
use crate::columns::{Exp, INT_TX_UNIT, NEVER, Tables, cc, mode, qp};

/// Room for what governs an experiment and a queue pair with its rows.
const ROOT_BYTES: usize = 2048;

/// Bytes of a canonical form.
#[derive(Default)]
pub struct Form(pub Vec<u8>);

impl Form {
    pub fn u32(&mut self, x: u32) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    pub fn u64(&mut self, x: u64) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    /// A time that only matters as a distance from `start`.
    fn time(&mut self, x: u64, start: u64) {
        self.u64(if x == NEVER { NEVER } else { x.wrapping_sub(start) });
    }

    /// A time before which something may not happen: what lies before `now` says nothing.
    fn not_before(&mut self, x: u64, now: u64, start: u64) {
        self.u64(if x <= now { NEVER } else { x - start });
    }

    /// A sequence number from `from`; 0 is a value of its own.
    fn seq(&mut self, x: u64, from: u64) {
        self.u64(if x == 0 { NEVER } else { x.wrapping_sub(from) });
    }

    /// What governs the experiment; the phase of the clock where telemetry sees it, unless ports say by themselves what they see ([`Form::port`]); how peaks are counted.
    pub fn head(t: &Tables, start: u64, calm: &Calm) -> Form {
        let e = &t.exps[0];
        let steady = e.modes & mode::STEADY != 0;
        let rules = Exp {
            modes: e.modes & !(mode::FOLD | mode::MEMO | mode::NOTED),
            cc: e.cc,
            clock_ps: e.clock_ps,
            payload: e.payload,
            data_overhead: e.data_overhead,
            ack_bytes: e.ack_bytes,
            rto_retries: e.rto_retries,
            fast_recovery: e.fast_recovery,
            mi_thresh: e.mi_thresh,
            int_multi: e.int_multi,
            ack_interval: e.ack_interval,
            chunk: e.chunk,
            nack_interval: e.nack_interval,
            cnp_interval: e.cnp_interval,
            rto: e.rto,
            min_rate: e.min_rate,
            rai: e.rai,
            rhai: e.rhai,
            g_q32: e.g_q32,
            p_alpha: e.p_alpha,
            p_dec: e.p_dec,
            p_inc: e.p_inc,
            eta_q40: e.eta_q40,
            eta_q48: e.eta_q48,
            timely_alpha_q32: e.timely_alpha_q32,
            timely_beta_q32: e.timely_beta_q32,
            tlow: e.tlow,
            thigh: e.thigh,
            min_rtt: e.min_rtt,
            theta_ppm: if steady { e.theta_ppm } else { 0 },
            samples: if steady { e.samples } else { 0 },
            interval_ns: if steady { e.interval_ns } else { 0 },
            rates_mbps_lo: e.rates_mbps_lo,
            rates_mbps_hi: e.rates_mbps_hi,
            ..Exp::zeroed()
        };
        let mut form = Form(Vec::with_capacity(ROOT_BYTES));
        form.0.extend_from_slice(bytemuck::bytes_of(&rules));
        // A partition is laid down at an instant of its own, a whole number of steps on.
        form.u64(e.step);
        form.u64(if e.cc == cc::HPCC && t.aside.telemetry.is_empty() { start % 1000 } else { 0 });
        form.u32(u32::from(t.aside.chance) | u32::from(t.aside.rounds) << 1);
        form.u32(calm.grain());
        form
    }

    /// Where the next newcomers' local numbers begin.
    pub fn bases(&mut self, part: &Part) {
        self.u32(part.nics.len() as u32);
        self.u32(part.ports.len() as u32);
        self.u32(part.members.len() as u32);
    }

    /// The rank of link end `end` among the ingresses of `part`.
    pub fn end_rank(&mut self, t: &Tables, part: &Part, end: u32, nic: &dyn Fn(u32) -> u32) {
        let nics = t.exps[0].nic_len;
        if end < nics {
            self.u32(0);
            self.u32(nic(end));
            return;
        }
        self.u32(1);
        self.u32(rank(&part.ends, end - nics));
    }

    /// NIC `n`, before it joins; its turn of queue pairs follows with [`Form::turn`].
    pub fn nic(&mut self, t: &Tables, part: &Part, n: u32, nic: &dyn Fn(u32) -> u32) {
        let row = &t.nics[n as usize];
        self.u32(b'N' as u32);
        self.u32(rank(&part.nics, n));
        self.u64(row.rate);
        self.u64(row.delay);
        self.u32(row.rr);
        self.u32(row.qp_n);
        self.u32(row.paused);
        self.end_rank(t, part, row.peer, nic);
    }

    /// Local numbers of queue pairs.
    pub fn numbers(&mut self, numbers: impl Iterator<Item = u32>) {
        for x in numbers {
            self.u32(x);
        }
    }

    /// Where queue pair number `id` stands among those of `part`.
    pub fn id(&mut self, part: &Part, id: u32) {
        self.u32(place(&part.flow_ids, id));
        self.u32(place(&part.ancestors, id));
    }

    /// Port `p`, before it joins at `now`.
    pub fn port(&mut self, t: &Tables, part: &Part, p: u32, now: u64, nic: &dyn Fn(u32) -> u32) {
        self.u32(b'P' as u32);
        let e = &t.exps[0];
        if e.cc == cc::HPCC {
            let (from_ps, from_bytes) = t.aside.counts_from(p);
            self.u64((t.ports[p as usize].tx_bytes - from_bytes) % (INT_TX_UNIT as u64 * e.int_multi as u64));
            if !t.aside.telemetry.is_empty() {
                self.u64((now - from_ps) % 1000);
            }
        }
        self.fixed_port(t, part, p, nic);
    }

    /// What never changes about port `p`.
    pub fn fixed_port(&mut self, t: &Tables, part: &Part, p: u32, nic: &dyn Fn(u32) -> u32) {
        let row = &t.ports[p as usize];
        let e = &t.exps[0];
        self.u64(row.rate);
        self.u64(row.delay);
        if e.modes & mode::ECN != 0 {
            self.u32(row.kmin);
            self.u32(row.kmax);
            self.u64(row.pmax_q32);
        }
        if e.cc == cc::HPCC {
            self.u32(row.rate_idx);
        }
        self.end_rank(t, part, row.peer, nic);
    }

    /// Queue pair `f`, before it joins. What it is else matters when it sends ([`Form::state`]), or if others see its timers.
    pub fn flow(&mut self, t: &Tables, part: &Part, f: u32, now: u64) {
        let tx = &t.flow_tx[f as usize];
        self.u32(b'F' as u32);
        // Ties go by a queue pair's number.
        self.id(part, tx.flow_id);
        if timers_run(t) {
            self.state(t, f, now, part.start);
        }
    }

    /// The state of queue pair `f` at `now`, in a partition that came to life at `start`.
    pub fn state(&mut self, t: &Tables, f: u32, now: u64, start: u64) {
        let e = &t.exps[0];
        let (tx, rx) = (&t.flow_tx[f as usize], &t.flow_rx[f as usize]);
        let (quiet, recovered) = (carry::is_quiet(t, f), carry::is_recovered(t, f));
        self.u32(tx.flags & !if quiet { qp::HELD | qp::A_SEEN } else { qp::HELD });
        self.u32(tx.base_rtt_ns);
        self.u64(tx.window);
        self.not_before(tx.next_avail, now, start);
        self.not_before(rx.cnp_t, now, start);
        self.u64(rx.nack_seq);
        if e.ack_interval > 1 {
            self.u64(tx.size % e.chunk);
            self.u64(rx.milestone.wrapping_sub(tx.size));
        }
        self.u32(tx.retries);
        self.u32(tx.stalls);
        if e.cc == cc::DCTCP {
            // The first batch is counted from the first byte of all.
            self.u64(if tx.last_seq == 0 { tx.size } else { NEVER });
            self.seq(tx.last_seq, tx.size);
            self.u32(tx.cnt);
            self.u32(tx.batch);
        }
        if e.modes & mode::FRESH_QP != 0 || tx.flags & qp::CREATED == 0 {
            // All else is made anew by the next post.
            return;
        }
        self.u32(u32::from(quiet) + u32::from(recovered));
        self.u64(tx.rate);
        self.u64(tx.win);
        if recovered {
            return;
        }
        self.u64(tx.target);
        self.time(tx.t_inc, start);
        if !quiet {
            self.u64(tx.alpha);
            self.time(tx.t_alpha, start);
            self.time(tx.t_dec, start);
        }
        self.u32(carry::stage(t, tx));
        self.u64(tx.u);
        self.u64(tx.rc);
        self.seq(tx.high_seq, tx.size);
        self.u64(tx.diff as u64);
    }
}

/// What does not change about the rows of `part`, by local numbers; ranks of what breaks ties.
pub fn shape(t: &Tables, part: &Part, nic_local: &dyn Fn(u32) -> u32, port_local: &dyn Fn(u32) -> u32) -> Vec<u8> {
    let mut form = Form::default();
    form.bases(part);
    form.u32(part.ends.len() as u32);
    form.numbers(part.nics.iter().map(|&n| rank(&part.nics, n)));
    form.numbers(part.ends.iter().map(|&e| rank(&part.ends, e)));
    for &n in &part.nics {
        let row = &t.nics[n as usize];
        form.u64(row.rate);
        form.u64(row.delay);
        form.end_rank(t, part, row.peer, nic_local);
    }
    for &p in &part.ports {
        form.fixed_port(t, part, p, nic_local);
    }
    for m in &part.members {
        let (tx, rx) = (&t.flow_tx[m.flow as usize], &t.flow_rx[m.flow as usize]);
        form.u32(rank(&part.flow_ids, tx.flow_id));
        form.u32(u32::from(m.routed));
        if !m.routed {
            continue;
        }
        form.numbers([nic_local(tx.nic), nic_local(rx.nic), tx.base_rtt_ns, tx.path_len, rx.path_len].into_iter());
        form.u64(tx.window);
        for (first, len) in [(tx.path_first, tx.path_len), (rx.path_first, rx.path_len)] {
            form.numbers(t.paths[first as usize..(first + len) as usize].iter().map(|&p| port_local(p)));
        }
    }
    form.0
}

/// How many of `numbers` are below `x`.
pub fn rank(numbers: &[u32], x: u32) -> u32 {
    numbers.iter().map(|&n| u32::from(n < x)).sum()
}

/// How many of `numbers` are below `x`, twice, and whether `x` is one.
fn place(numbers: &[u32], x: u32) -> u32 {
    2 * rank(numbers, x) + u32::from(numbers.contains(&x))
}

/// Whether a NIC that looks for something to send advances the timers of queue pairs that have nothing.
pub fn timers_run(t: &Tables) -> bool {
    let both = mode::WINDOW | mode::VAR_WINDOW;
    t.exps[0].cc == cc::DCQCN && t.exps[0].modes & both == both
}
