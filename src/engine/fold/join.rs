//! Partitions grow, merge and dissolve.

use super::Stop;
use super::part::{Member, Part};
use super::run::Run;
use crate::columns::{NEVER, NONE, Tables, qp};
use crate::engine::cpu::nic;

impl Run {
    /// Queue pair `f` of NIC `n` is about to send: what it crosses becomes part of one partition, whose number is returned.
    pub(super) fn join(&mut self, t: &mut Tables, n: u32, f: u32) -> Result<u32, Stop> {
        let (nics, ports) = rows_of(t, f);
        let mut touched: Vec<u32> = Vec::new();
        let places = nics.iter().map(|&n| self.nic_part[n as usize]).chain(ports.iter().map(|&p| self.port_part[p as usize]));
        for p in places {
            if p != NONE && !touched.contains(&p) {
                touched.push(p);
            }
        }
        debug_assert!(nics.contains(&n), "a queue pair belongs to its NIC");
        touched.sort_by_key(|&p| self.parts[p as usize].first);
        let p = match touched.first() {
            Some(&p) => p,
            None => self.new_part(),
        };
        for &other in touched.iter().skip(1) {
            self.merge(p, other);
        }
        for n in nics {
            self.add_nic(t, p, n);
        }
        for port in ports {
            self.add_port(t, p, port);
        }
        self.add_member(t, p, f);
        let m = self.member[f as usize];
        self.parts[p as usize].members[m as usize].routed = true;
        t.flow_tx[f as usize].flags &= !qp::HELD;
        Ok(p)
    }

    fn new_part(&mut self) -> u32 {
        match self.spare.pop() {
            Some(p) => {
                self.parts[p as usize] = Part::new();
                p
            }
            None => {
                self.parts.push(Part::new());
                self.parts.len() as u32 - 1
            }
        }
    }

    /// The rows of `other` become rows of `p`.
    fn merge(&mut self, p: u32, other: u32) {
        let from = std::mem::replace(&mut self.parts[other as usize], Part::new());
        self.spare.push(other);
        for &n in &from.nics {
            self.nic_part[n as usize] = p;
        }
        for &port in &from.ports {
            self.port_part[port as usize] = p;
        }
        let part = &mut self.parts[p as usize];
        for m in from.members {
            self.member[m.flow as usize] = part.members.len() as u32;
            part.members.push(m);
        }
        part.nics.extend(from.nics);
        part.ports.extend(from.ports);
        part.ends.extend(from.ends);
        part.first = part.first.min(from.first);
        self.call_part(p, from.next);
    }

    fn add_nic(&mut self, t: &Tables, p: u32, n: u32) {
        if self.nic_part[n as usize] != NONE {
            return;
        }
        self.nic_part[n as usize] = p;
        let row = &t.nics[n as usize];
        let part = &mut self.parts[p as usize];
        part.nics.push(n);
        part.first = part.first.min(n);
        if row.peer >= t.exps[0].nic_len {
            part.ends.push(row.peer - t.exps[0].nic_len);
        }
        let tasks = row.next_task.min(row.next_start);
        for k in row.flow_first..row.flow_first + row.qp_n {
            self.add_member(t, p, t.order[k as usize]);
        }
        self.call_part(p, tasks);
    }

    fn add_port(&mut self, t: &Tables, p: u32, port: u32) {
        if self.port_part[port as usize] != NONE {
            return;
        }
        self.port_part[port as usize] = p;
        let peer = t.ports[port as usize].peer;
        let part = &mut self.parts[p as usize];
        part.ports.push(port);
        if peer >= t.exps[0].nic_len {
            part.ends.push(peer - t.exps[0].nic_len);
        }
    }

    fn add_member(&mut self, _t: &Tables, p: u32, f: u32) {
        if self.member[f as usize] == NONE {
            let members = &mut self.parts[p as usize].members;
            self.member[f as usize] = members.len() as u32;
            members.push(Member { flow: f, routed: false });
        }
    }

    /// Partition `p` is at rest: its rows are idle again.
    pub(super) fn dissolve(&mut self, t: &mut Tables, p: u32) {
        let part = std::mem::replace(&mut self.parts[p as usize], Part::new());
        self.spare.push(p);
        for m in &part.members {
            self.member[m.flow as usize] = NONE;
            t.flow_tx[m.flow as usize].flags |= qp::HELD;
        }
        for &port in &part.ports {
            self.port_part[port as usize] = NONE;
            // A transmission that ended unseen.
            t.ports[port as usize].busy = 0;
        }
        for &n in &part.nics {
            self.nic_part[n as usize] = NONE;
            // A deadline that nothing waits for any more.
            t.nics[n as usize].rto = NEVER;
            nic::set_clock(t, n);
            self.call(t, n);
        }
    }
}

/// NICs and switch ports that queue pair `f` needs: both ends, data and ACK paths.
fn rows_of(t: &Tables, f: u32) -> (Vec<u32>, Vec<u32>) {
    let (tx, rx) = (&t.flow_tx[f as usize], &t.flow_rx[f as usize]);
    let mut ports: Vec<u32> = Vec::new();
    for (first, len) in [(tx.path_first, tx.path_len * tx.n_paths), (rx.path_first, rx.path_len * rx.n_paths)] {
        for &port in &t.paths[first as usize..(first + len) as usize] {
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
    }
    let mut nics = vec![tx.nic];
    if rx.nic != tx.nic {
        nics.push(rx.nic);
    }
    (nics, ports)
}
