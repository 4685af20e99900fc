//! Conservation laws, checked on every experiment that ends. A violation means that the simulator is wrong.

use hyperfold_base::units::PS_PER_S;
use hyperfold_columns::{FRAME_BYTES, NEVER, NicIdx, PacketIdx, PortIdx, SHARED_HEADER, Tables, kind, meta, mode};
use hyperfold_engine::cpu::classes::has_classes;
use hyperfold_engine::cpu::switch::class_port::{held_word, port_queue_row};
use hyperfold_engine::cpu::transport::stream;

/// A law that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Bytes sent are not those that arrived, were dropped or are in flight.
    #[error("bytes are not conserved: {sent} sent, {arrived} arrived, {dropped} dropped, {in_flight} in flight")]
    Bytes {
        /// Payload bytes sent.
        sent: u64,
        /// Payload bytes arrived.
        arrived: u64,
        /// Payload bytes dropped.
        dropped: u64,
        /// Payload bytes in flight.
        in_flight: u64,
    },
    /// A link end sent more than its rate allows.
    #[error("{end} sent {bytes} bytes in {elapsed_ps} ps, more than its {rate_bps} bps allow")]
    Rate {
        /// Name of the link end, as in `links.csv`.
        end: String,
        /// Bytes that it sent.
        bytes: u64,
        /// Time that it had, ps.
        elapsed_ps: u64,
        /// Rate of the link end, bps.
        rate_bps: u64,
    },
    /// A switch held more than its buffer.
    #[error("{switch} held {held} bytes, more than its buffer of {buffer}")]
    Buffer {
        /// Name of the switch.
        switch: String,
        /// Bytes that it held.
        held: u64,
        /// Size of its buffer, bytes.
        buffer: u64,
    },
    /// Packet records were lost.
    #[error("packet records are not conserved: {found} of {all} found in a list")]
    Records {
        /// Records in lists.
        found: u64,
        /// Records in the table.
        all: u64,
    },
    /// An ingress is charged with other bytes than it has in the switch.
    #[error("{port} accounts for {charged} bytes that came in by it, its switch holds {held}")]
    Accounting {
        /// Name of the port by which the bytes came in.
        port: String,
        /// Bytes that it is charged with.
        charged: u64,
        /// Bytes that came in by it.
        held: u64,
    },
    /// A sender knows of more bytes than its receiver has.
    #[error("flow {flow}: {acked} bytes acknowledged of {delivered} delivered in order")]
    Order {
        /// Number of the flow.
        flow: u32,
        /// Bytes that the sender knows to be acknowledged.
        acked: u64,
        /// Bytes that the receiver has, in order.
        delivered: u64,
    },
    /// The bits of packets in any order do not agree with what is counted.
    #[error(
        "flow {flow}: {placed} packets placed of {beyond} counted, {known} known to have arrived of {sacked} counted, {lost} lost"
    )]
    Bits {
        /// Number of the flow.
        flow: u32,
        /// Bits of its receiver.
        placed: u32,
        /// Packets beyond the expected one that the receiver counts.
        beyond: u32,
        /// Bits of its sender.
        known: u32,
        /// Packets that the sender counts as arrived.
        sacked: u32,
        /// Packets that the sender counts as lost.
        lost: u32,
    },
    /// A row of another experiment is among those of this one.
    #[error("row {row} of {table} belongs to experiment {found}, it lies among the rows of experiment {expected}")]
    Owner {
        /// Name of the table.
        table: &'static str,
        /// Index of the row among those of the experiment.
        row: usize,
        /// ExpId of the row, low word.
        found: u32,
        /// ExpId of the experiment, low word.
        expected: u32,
    },
}

/// Names of rows for messages about violations: the names of links as in `links.csv`, or numbers where there are none.
struct RowNames<'a>(&'a [String]);

impl RowNames<'_> {
    fn nic(&self, nic: usize) -> String {
        self.0.get(nic).cloned().unwrap_or_else(|| format!("NIC {nic}"))
    }

    fn port(&self, t: &Tables, port: usize) -> String {
        self.0.get(t.nics.len() + port).cloned().unwrap_or_else(|| format!("port {port}"))
    }

    /// Returns the name of a switch: the node where the link of its first port begins.
    fn switch(&self, t: &Tables, switch: usize) -> String {
        let first = t.nics.len() + t.switches[switch].port_first.usize();
        match self.0.get(first).and_then(|link| link.split("->").next()) {
            Some(node) => node.to_string(),
            None => format!("switch {switch}"),
        }
    }
}

/// Checks a stopped experiment. `link_names` are the names of its link ends, NICs first; if empty, messages use numbers.
///
/// PRECONDITION: `t` holds one experiment, stopped between steps.
pub fn check(t: &Tables, link_names: &[String]) -> Result<(), Violation> {
    own_rows(t)?;
    let names = RowNames(link_names);
    let found = walk(t);
    let sent: u64 = t.flow_tx.iter().map(|f| f.sent_bytes).sum();
    let arrived: u64 = t.flow_rx.iter().map(|f| f.arrived_bytes).sum();
    let lost_of_nics = t.changes.bytes_lost_of_nics(&t.exps[0], &t.shared);
    let dropped: u64 = t.ports.iter().map(|p| p.dropped_bytes).sum::<u64>() + lost_of_nics;
    if sent != arrived + dropped + found.data_bytes {
        return Err(Violation::Bytes { sent, arrived, dropped, in_flight: found.data_bytes });
    }
    if found.records != t.packets.len() as u64 {
        return Err(Violation::Records { found: found.records, all: t.packets.len() as u64 });
    }
    for (tx, rx) in t.flow_tx.iter().zip(&t.flow_rx) {
        // What is posted ends at the packet after the last one, which may be short.
        if tx.snd_una > rx.expected || rx.expected > stream::next_start(&t.exps[0], tx.size) {
            return Err(Violation::Order { flow: tx.flow_id, acked: tx.snd_una, delivered: rx.expected });
        }
    }
    bits(t)?;
    for (port, &held) in found.held_by_ingress.iter().enumerate() {
        let charged = charged(t, PortIdx::new(port));
        if charged != held {
            return Err(Violation::Accounting { port: names.port(t, port), charged, held });
        }
    }
    for (i, s) in t.switches.iter().enumerate() {
        if s.max_held > t.exps[0].buffer {
            return Err(Violation::Buffer { switch: names.switch(t, i), held: s.max_held, buffer: t.exps[0].buffer });
        }
    }
    rates(t, &names)
}

/// Checks the bits of packets in any order: each end's number of them, and that a sender knows of no packet that its receiver lacks.
fn bits(t: &Tables) -> Result<(), Violation> {
    let words = (t.exps[0].psn_range / 32) as usize;
    if words == 0 {
        return Ok(());
    }
    for (f, bits) in t.psn_bits.chunks((t.exps[0].bits_of_qp() / 32) as usize).enumerate() {
        let (tx, rx) = (&t.flow_tx[f], &t.flow_rx[f]);
        let count = |bits: &[u32]| bits.iter().map(|word| word.count_ones()).sum::<u32>();
        let (placed, known) = (count(&bits[..words]), count(&bits[words..2 * words]));
        let spread = ((tx.snd_nxt - tx.snd_una) / t.exps[0].payload as u64) as u32;
        let behind = ((rx.expected - tx.snd_una) / t.exps[0].payload as u64) as u32;
        let lost_differs = bits.get(2 * words..3 * words).is_some_and(|lost| count(lost) != tx.lost);
        if lost_differs
            || placed != rx.beyond
            || known != tx.sacked
            || known > placed + behind
            || tx.sacked + tx.lost > spread
        {
            return Err(Violation::Bits {
                flow: tx.flow_id,
                placed,
                beyond: rx.beyond,
                known,
                sacked: tx.sacked,
                lost: tx.lost,
            });
        }
    }
    Ok(())
}

/// Checks that all rows are the experiment's own: engines and devices move the rows of many experiments at once.
fn own_rows(t: &Tables) -> Result<(), Violation> {
    let expected = t.exps[0].exp_id;
    belong_to(expected, "nics", t.nics.iter().map(|row| row.exp))?;
    belong_to(expected, "ports", t.ports.iter().map(|row| row.exp))?;
    belong_to(expected, "switches", t.switches.iter().map(|row| row.exp))?;
    belong_to(expected, "flow_tx", t.flow_tx.iter().map(|row| row.exp))?;
    belong_to(expected, "flow_rx", t.flow_rx.iter().map(|row| row.exp))?;
    belong_to(expected, "tasks", t.tasks.iter().map(|row| row.exp))?;
    belong_to(expected, "gates", t.gates.iter().map(|row| row.exp))
}

/// Checks that the rows of `table`, whose ExpIds are `owners`, belong to experiment `expected`.
fn belong_to(expected: u32, table: &'static str, owners: impl Iterator<Item = u32>) -> Result<(), Violation> {
    match owners.enumerate().find(|&(_, exp)| exp != expected) {
        Some((row, found)) => Err(Violation::Owner { table, row, found, expected }),
        None => Ok(()),
    }
}

/// Checks that no transmitter sent more than its rate allows, the highest that it had. Each packet's time is rounded by at most half a clock tick, and the last
/// packet may still be in transmission.
fn rates(t: &Tables, names: &RowNames) -> Result<(), Violation> {
    let e = &t.exps[0];
    let check = |end: &dyn Fn() -> String, bytes: u64, packets: u64, rate: u64, busy_until: u64| {
        let last = if busy_until == NEVER { 0 } else { busy_until };
        let elapsed = e.now.max(last);
        let min_ps = bytes as u128 * 8 * PS_PER_S as u128 / rate as u128;
        let slack = packets as u128 * e.clock_ps as u128;
        if min_ps > elapsed as u128 + slack {
            return Err(Violation::Rate { end: end(), bytes, elapsed_ps: elapsed, rate_bps: rate });
        }
        Ok(())
    };
    for (i, n) in t.nics.iter().enumerate() {
        let rate = t.changes.own_rate(NicIdx::new(i).end(), n.rate);
        check(&|| names.nic(i), n.tx_bytes, n.hops, rate, n.busy_until)?;
    }
    for (i, p) in t.ports.iter().enumerate() {
        let frames = p.tx_bytes / FRAME_BYTES as u64;
        let rate = t.changes.own_rate(PortIdx::new(i).end(e.nic_len), p.rate);
        check(&|| names.port(t, i), p.tx_bytes, p.hops + frames, rate, p.busy_until)?;
    }
    Ok(())
}

/// Bytes that switches hold by their own accounts, of what came in by `port`.
fn charged(t: &Tables, port: PortIdx) -> u64 {
    let e = &t.exps[0];
    if !has_classes(e) {
        return u64::from(t.shared[(SHARED_HEADER + port.0) as usize]) + u64::from(t.ports[port].headroom_used);
    }
    let class = |class| {
        let headroom = t.class_queues[port_queue_row(e, port, class)].headroom_used;
        u64::from(t.shared[held_word(e, port, class)]) + u64::from(headroom)
    };
    (0..e.class_n).map(class).sum()
}

/// First packets of the egress queues of `port`: one queue, or one for each traffic class.
pub(super) fn egress_queues(t: &Tables, port: PortIdx) -> Vec<PacketIdx> {
    let e = &t.exps[0];
    if !has_classes(e) {
        return vec![t.ports[port].q_head];
    }
    (0..e.class_n).map(|class| t.class_queues[port_queue_row(e, port, class)].q_head).collect()
}

/// Totals over all lists of packets.
struct Found {
    records: u64,
    data_bytes: u64,
    /// Bytes queued in switches, by the port that they came in by.
    held_by_ingress: Vec<u64>,
}

fn walk(t: &Tables) -> Found {
    let mut found = Found { records: 0, data_bytes: 0, held_by_ingress: vec![0; t.ports.len()] };
    // A list longer than the table is a cycle; the count of records then shows it.
    let max_records = t.packets.len() as u64;
    let list = |head: PacketIdx, queued: bool, travelling: bool, found: &mut Found| {
        let mut p = head;
        let mut n = 0;
        while p.is_some() && n <= max_records {
            n += 1;
            found.records += 1;
            let pk = &t.packets[p];
            let what = (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK;
            if travelling && what == kind::DATA {
                found.data_bytes += pk.payload as u64;
            }
            if travelling && (what == kind::ACK || what == kind::NACK) {
                let mut q = pk.records();
                while q.is_some() && found.records <= 2 * max_records {
                    found.records += 1;
                    q = t.packets[q].next;
                }
            }
            if queued {
                found.held_by_ingress[pk.in_port.usize()] += (pk.meta & meta::WIRE_MASK) as u64;
            }
            p = pk.next;
        }
    };
    for w in &t.wires {
        list(w.head, false, true, &mut found);
    }
    for n in &t.nics {
        list(n.free_head, false, false, &mut found);
        list(n.ack_head, false, true, &mut found);
        list(n.to_return, false, false, &mut found);
    }
    // Control packets are charged to their in-port as others are.
    let own_queues = t.exps[0].modes & mode::PORT_QUEUES != 0;
    for port in PortIdx::all(t.exps[0].port_len) {
        for head in egress_queues(t, port) {
            list(head, true, true, &mut found);
        }
        let p = &t.ports[port];
        list(p.frame_head, own_queues, own_queues, &mut found);
        list(p.to_return, false, false, &mut found);
    }
    // Answers of classes at NICs; those of ports are egress queues.
    for queue in t.class_queues.iter().take((t.exps[0].nic_len * t.exps[0].class_n) as usize) {
        list(queue.q_head, false, true, &mut found);
    }
    for s in &t.switches {
        list(s.free_head, false, false, &mut found);
    }
    for f in &t.flow_rx {
        list(f.held, false, false, &mut found);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::prepare;
    use crate::setup::links::names::link_names;
    use hyperfold_columns::FlowIdx;
    use hyperfold_config::sweep::{self, SetOverrides};

    /// The bits of both ends must be those that are counted; a sender must not know of a packet that its receiver lacks.
    #[test]
    fn bits_that_nobody_counted_are_found() {
        let text = "name = \"t\"\nbase.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.topology = { kind = \"clos\" }\n\
                    base.workload = { kind = \"traffic\", pattern = \"ring\" }\nbase.transport.loss_recovery = \"selective\"\n";
        let sweep = sweep::parse(text, Path::new("sweep.toml"), &SetOverrides::default()).unwrap();
        let prepared = prepare(&sweep.config(&sweep.experiments[0]).unwrap(), 0).unwrap();
        let words = (prepared.built.tables.exps[0].psn_range / 32) as usize;
        let said = |break_it: &dyn Fn(&mut Tables)| {
            let mut tables = prepared.built.tables.clone();
            let mut t = tables.view();
            break_it(&mut t);
            check(&t, &[])
        };
        assert_eq!(said(&|_| {}), Ok(()));
        let is_of_bits = |found: Result<(), Violation>| matches!(found, Err(Violation::Bits { .. }));
        assert!(is_of_bits(said(&|t| t.psn_bits[0] = 1)), "a packet that the receiver does not count");
        assert!(is_of_bits(said(&|t| t.psn_bits[words] = 1)), "a packet that the sender does not count");
        let unknown = |t: &mut Tables| {
            (t.flow_tx[FlowIdx(0)].snd_nxt, t.flow_tx[FlowIdx(0)].sacked) = (1 << 20, 1);
            t.psn_bits[words] = 2;
        };
        assert!(is_of_bits(said(&unknown)), "a packet that the receiver lacks");
    }

    #[test]
    fn messages_name_links_and_switches_as_results_do() {
        let text = "name = \"t\"\nbase.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology = { kind = \"clos\" }\n\
                    base.workload = { kind = \"traffic\", pattern = \"ring\" }\n";
        let sweep = sweep::parse(text, Path::new("sweep.toml"), &SetOverrides::default()).unwrap();
        let prepared = prepare(&sweep.config(&sweep.experiments[0]).unwrap(), 0).unwrap();
        let names = link_names(&prepared.network, &prepared.built.end_arcs);
        let said = |break_it: &dyn Fn(&mut Tables), names: &[String]| {
            let mut tables = prepared.built.tables.clone();
            let mut t = tables.view();
            break_it(&mut t);
            check(&t, names).unwrap_err().to_string()
        };
        assert_eq!(check(&prepared.built.tables.clone().view(), &names), Ok(()));
        let (nics, last) = (prepared.built.tables.nics.len(), prepared.built.tables.ports.len() - 1);
        let too_fast = |t: &mut Tables| t.nics[3].tx_bytes = 1 << 50;
        assert!(said(&too_fast, &names).starts_with(&format!("{} sent ", names[3])), "{}", said(&too_fast, &names));
        assert!(said(&too_fast, &[]).starts_with("NIC 3 sent "));
        let too_full = |t: &mut Tables| t.switches[0].max_held = u64::MAX;
        let switch = names[nics].split("->").next().unwrap();
        assert!(said(&too_full, &names).starts_with(&format!("{switch} held ")), "{}", said(&too_full, &names));
        let strange = |t: &mut Tables| t.ports[2].exp = 9;
        let whose = "row 2 of ports belongs to experiment 9, it lies among the rows of experiment 0";
        assert_eq!(said(&strange, &names), whose);
        let unaccounted = |t: &mut Tables| t.ports[last].headroom_used = 7;
        let port = format!("{} accounts for 7 bytes", names[nics + last]);
        assert!(said(&unaccounted, &names).starts_with(&port), "{}", said(&unaccounted, &names));
    }
}
