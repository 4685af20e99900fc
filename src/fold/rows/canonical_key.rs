//! The canonical key of a partition's start: rows by local numbers, times relative to its start, sequence numbers relative to the queue pairs'
//! progress.
//!
//! Partitions with the same key behave the same. Numbers that break ties (of ingresses at a switch, of NICs, of queue pairs) enter as ranks.
//!
//! Layer: fold/rows.

use crate::rows::buffer_guard::BufferGuard;
use crate::rows::cc_state;
use crate::rows::cc_state::timers_run;
use crate::rows::partition_rows::PartitionRows;
use hyperfold_columns::{
    EndOwner, Exp, FlowIdx, INT_TX_UNIT, LinkEndIdx, NEVER, NicIdx, PortIdx, Tables, cc, mode, qp,
};

/// Initial capacity in bytes: enough for the parameters of an experiment and one queue pair with its rows.
const ROOT_BYTES: usize = 2048;

/// The header with only those columns that decide how a partition goes on; the others are 0. Every column is listed by name, so a new one does not
/// compile until somebody has decided. If a parameter were forgotten, different experiments would share what they must not.
fn rules(e: &Exp) -> Exp {
    let steady = e.modes & mode::STEADY != 0;
    Exp {
        modes: e.modes & !(mode::FOLD | mode::MEMO | mode::TRACED | mode::MUST_GAIN),
        theta_ppm: if steady { e.theta_ppm } else { 0 },
        samples: if steady { e.samples } else { 0 },
        interval_ns: if steady { e.interval_ns } else { 0 },
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
        psn_range: e.psn_range,
        packet_threshold: e.packet_threshold,
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
        swift_target: e.swift_target,
        swift_hop: e.swift_hop,
        swift_range: e.swift_range,
        swift_fs_alpha: e.swift_fs_alpha,
        swift_fs_floor: e.swift_fs_floor,
        swift_ai_q16: e.swift_ai_q16,
        swift_beta_q32: e.swift_beta_q32,
        swift_max_mdf_q32: e.swift_max_mdf_q32,
        nscc_rtt: e.nscc_rtt,
        nscc_target: e.nscc_target,
        nscc_low: e.nscc_low,
        nscc_near: e.nscc_near,
        nscc_far: e.nscc_far,
        nscc_eta: e.nscc_eta,
        nscc_fast_q16: e.nscc_fast_q16,
        nscc_md_q32: e.nscc_md_q32,
        credit_burst: e.credit_burst,
        credit_window: e.credit_window,
        credit_grant: e.credit_grant,
        credit_stretch_q16: e.credit_stretch_q16,
        adaptive_grade: e.adaptive_grade,
        cut_through: e.cut_through,
        class_n: 0,
        rates_mbps_lo: e.rates_mbps_lo,
        rates_mbps_hi: e.rates_mbps_hi,
        // These columns say where its rows are, and which experiment it is.
        nic_base: 0,
        nic_len: 0,
        port_base: 0,
        port_len: 0,
        switch_base: 0,
        switch_len: 0,
        flow_base: 0,
        flow_len: 0,
        packet_base: 0,
        packet_len: 0,
        int_base: 0,
        int_len: 0,
        path_base: 0,
        path_len: 0,
        plan_base: 0,
        plan_len: 0,
        shared_base: 0,
        shared_len: 0,
        rtt_base: 0,
        rtt_len: 0,
        bits_base: 0,
        bits_len: 0,
        class_base: 0,
        class_len: 0,
        task_base: 0,
        task_len: 0,
        edge_base: 0,
        edge_len: 0,
        signal_base: 0,
        signal_len: 0,
        gate_base: 0,
        gate_len: 0,
        server_base: 0,
        server_len: 0,
        exp_id: 0,
        mask_words: 0,
        end_base: 0,
        end_len: 0,
        // Progress. The step length is added to the key separately.
        fired: 0,
        status: 0,
        phase: 0,
        now: 0,
        step: 0,
        time_limit: 0,
        steps: 0,
        // Random draws are not remembered, and the buffer guard covers the buffer. Experiments with sampled round trips are not folded, and audits
        // change nothing.
        seed: 0,
        routing_seed: 0,
        reserve: 0,
        resume_offset: 0,
        buffer: 0,
        rtt_cap: 0,
        audit_ppm: 0,
        // Experiments whose pauses are watched, or whose marking goes by averages, are not folded.
        watch_first: 0,
        average_first: 0,
        average_weight: 0,
        // Experiments with adaptive routing, or with drops by WRED, are not folded.
        flowlet_gap: 0,
        flowlet_first: 0,
        remote_first: 0,
        wred_drops: 0,
        pad0: 0,
        pad1: 0,
        // What is remembered has sums of round trips or none.
        sums_rtts: e.sums_rtts,
    }
}

/// The bytes of a canonical key.
#[derive(Default)]
pub struct CanonicalKey(pub Vec<u8>);

impl CanonicalKey {
    pub fn u32(&mut self, x: u32) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    pub fn u64(&mut self, x: u64) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    /// Adds a time that matters only relative to `start`.
    fn time(&mut self, x: u64, start: u64) {
        self.u64(if x == NEVER { NEVER } else { x.wrapping_sub(start) });
    }

    /// Adds a time before which something must not happen. All times up to `now` are equivalent.
    fn not_before(&mut self, x: u64, now: u64, start: u64) {
        self.u64(if x <= now { NEVER } else { x - start });
    }

    /// Adds a sequence number relative to `from`; 0 is a value of its own.
    fn seq(&mut self, x: u64, from: u64) {
        self.u64(if x == 0 { NEVER } else { x.wrapping_sub(from) });
    }

    /// The start of a key: the parameters of the experiment, and the unit of peaks. If telemetry depends on it, also the phase of the clock, unless
    /// ports add their own origin ([`CanonicalKey::port`]).
    pub fn head(t: &Tables, start: u64, guard: &BufferGuard) -> CanonicalKey {
        let e = &t.exps[0];
        let mut form = CanonicalKey(Vec::with_capacity(ROOT_BYTES));
        form.0.extend_from_slice(bytemuck::bytes_of(&rules(e)));
        // A partition retires at a whole number of steps after its start.
        form.u64(e.step);
        form.u64(if e.cc == cc::HPCC && t.fold_hints.telemetry_from.is_empty() { start % 1000 } else { 0 });
        form.u32(u32::from(t.fold_hints.random_marks) | u32::from(t.fold_hints.rounding) << 1);
        form.u32(guard.grain());
        form
    }

    /// Adds the first local numbers that rows joining next will get.
    pub fn first_locals(&mut self, rows: &PartitionRows) {
        self.u32(rows.nics.len() as u32);
        self.u32(rows.ports.len() as u32);
        self.u32(rows.members.len() as u32);
    }

    /// Adds the rank of link end `end` among the ingresses of `rows`.
    pub fn end_rank(&mut self, t: &Tables, rows: &PartitionRows, end: LinkEndIdx, nic: &dyn Fn(NicIdx) -> u32) {
        match end.owner(t.exps[0].nic_len) {
            EndOwner::Nic(n) => {
                self.u32(0);
                self.u32(nic(n));
            }
            EndOwner::Port(port) => {
                self.u32(1);
                self.u32(rank(&rows.ends, port));
            }
        }
    }

    /// Adds NIC `n`, before it joins. Its queue pairs in round-robin order follow.
    pub fn nic(&mut self, t: &Tables, rows: &PartitionRows, n: NicIdx, nic: &dyn Fn(NicIdx) -> u32) {
        let row = &t.nics[n];
        self.u32(b'N' as u32);
        self.u32(rank(&rows.nics, n));
        self.u64(row.rate);
        self.u64(row.delay);
        self.u32(row.rr);
        self.u32(row.qp_n);
        self.u32(row.paused);
        self.end_rank(t, rows, row.peer, nic);
    }

    /// Adds numbers of 32 bits, such as local numbers.
    pub fn numbers(&mut self, numbers: impl Iterator<Item = u32>) {
        for x in numbers {
            self.u32(x);
        }
    }

    /// Adds the rank of queue pair number `id` among those of `rows`.
    pub fn id(&mut self, rows: &PartitionRows, id: u32) {
        self.u32(place(&rows.flow_ids, id));
        self.u32(place(&rows.ancestors, id));
    }

    /// Adds port `p`, before it joins at `now` (ps).
    pub fn port(&mut self, t: &Tables, rows: &PartitionRows, p: PortIdx, now: u64, nic: &dyn Fn(NicIdx) -> u32) {
        self.u32(b'P' as u32);
        let e = &t.exps[0];
        if e.cc == cc::HPCC {
            let (from_ps, from_bytes) = t.fold_hints.counts_from(p);
            self.u64((t.ports[p].tx_bytes - from_bytes) % (INT_TX_UNIT as u64 * e.int_multi as u64));
            if !t.fold_hints.telemetry_from.is_empty() {
                self.u64((now - from_ps) % 1000);
            }
        }
        self.fixed_port(t, rows, p, nic);
    }

    /// Adds the constant properties of port `p`.
    pub fn fixed_port(&mut self, t: &Tables, rows: &PartitionRows, p: PortIdx, nic: &dyn Fn(NicIdx) -> u32) {
        let row = &t.ports[p];
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
        self.end_rank(t, rows, row.peer, nic);
    }

    /// Adds queue pair `f`, before it joins. Its other state matters when it sends ([`CanonicalKey::state`]), or if others see its timers.
    pub fn flow(&mut self, t: &Tables, rows: &PartitionRows, start: u64, f: FlowIdx, now: u64) {
        let tx = &t.flow_tx[f];
        self.u32(b'F' as u32);
        // Ties are broken by a queue pair's number.
        self.id(rows, tx.flow_id);
        if timers_run(t) {
            self.state(t, f, now, start);
        }
    }

    /// Adds the state of queue pair `f` at `now`, in a partition that started at `start` (ps).
    pub fn state(&mut self, t: &Tables, f: FlowIdx, now: u64, start: u64) {
        let e = &t.exps[0];
        let (tx, rx) = (&t.flow_tx[f], &t.flow_rx[f]);
        let (quiet, recovered) = (cc_state::is_quiet(t, f), cc_state::is_recovered(t, f));
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
        self.u64(tx.loss_window);
        if tx.loss_window != 0 {
            self.time(tx.back_at, start);
            self.time(tx.window_at, start);
        }
        if e.cc == cc::DCTCP {
            // The first batch is counted from the first byte of all.
            self.u64(if tx.last_seq == 0 { tx.size } else { NEVER });
            self.seq(tx.last_seq, tx.size);
            self.u32(tx.cnt);
            self.u32(tx.batch);
        }
        if e.modes & mode::FRESH_QP != 0 || tx.flags & qp::CREATED == 0 {
            // The next post renews everything else.
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
        self.u32(cc_state::stage(t, tx));
        self.u64(tx.u);
        self.u64(tx.rc);
        self.seq(tx.high_seq, tx.size);
        self.u64(tx.diff as u64);
    }
}

/// The constant properties of `rows`, by local numbers, and the ranks that break ties.
pub(crate) fn shape(
    t: &Tables,
    rows: &PartitionRows,
    nic_local: &dyn Fn(NicIdx) -> u32,
    port_local: &dyn Fn(PortIdx) -> u32,
) -> Vec<u8> {
    let mut form = CanonicalKey::default();
    form.first_locals(rows);
    form.u32(rows.ends.len() as u32);
    form.numbers(rows.nics.iter().map(|&n| rank(&rows.nics, n)));
    form.numbers(rows.ends.iter().map(|&e| rank(&rows.ends, e)));
    for &n in &rows.nics {
        let row = &t.nics[n];
        form.u64(row.rate);
        form.u64(row.delay);
        form.end_rank(t, rows, row.peer, nic_local);
    }
    for &p in &rows.ports {
        form.fixed_port(t, rows, p, nic_local);
    }
    for m in &rows.members {
        let (tx, rx) = (&t.flow_tx[m.flow], &t.flow_rx[m.flow]);
        form.u32(rank(&rows.flow_ids, tx.flow_id));
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

/// Number of `numbers` that are below `x`.
pub(crate) fn rank<T: Copy + PartialOrd>(numbers: &[T], x: T) -> u32 {
    numbers.iter().map(|&n| u32::from(n < x)).sum()
}

/// Twice the number of `numbers` below `x`, plus 1 if `x` is among them.
fn place(numbers: &[u32], x: u32) -> u32 {
    2 * rank(numbers, x) + u32::from(numbers.contains(&x))
}
