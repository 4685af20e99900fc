//! The stored experiments: every congestion control with marks, losses and pauses, task graphs, pools that grow, and steps that are resumed.
//!
//! Layer: host. They are small, so that a device simulates them side by side in a moment.

use std::collections::BTreeSet;

use hyperfold_columns::{LINK_DROPS, OwnedTables, Packet, PacketIdx, PortIdx};
use hyperfold_engine::cpu;
use hyperfold_engine::gpu::KernelParts;
use hyperfold_llm::workload::tasks::TaskGraph;
use hyperfold_network::changes::{NetworkChange, TimedChange};
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::ArcIdx;
use hyperfold_network::transport::{
    Cc, LossRecovery, Nscc, PauseWatchdog, PortWeights, ReceiverCredit, TrafficClass, Transport,
};

use super::dumbbell::{HOSTS, SmallCase, paths};
use super::graphs::{self, SmallGraph};
use crate::tables::build_tables::BuildOptions;

const US: u64 = 1_000_000;
const CONTROLS: [Cc; 6] = [Cc::Dcqcn, Cc::Hpcc, Cc::Timely, Cc::Dctcp, Cc::Swift, Cc::None];
/// Bytes of the first flow of an incast: enough for marks, and enough for losses and pauses with a small buffer.
const SHORT_FLOW: u64 = 20_000;
const LONG_FLOW: u64 = 60_000;

/// A stored experiment at the moment at which both engines begin.
#[derive(Clone, Debug)]
pub struct KernelCase {
    /// Its name in messages.
    pub name: String,
    /// Its tables.
    pub tables: OwnedTables,
}

/// A case before its tables are built.
struct Draft {
    name: String,
    case: SmallCase,
    graph: Option<SmallGraph>,
    /// Whether pools begin with few packets, so that they grow on the way.
    starved: bool,
    /// Number of steps that the CPU engine takes first.
    steps_before: u32,
}

impl Draft {
    fn new(name: String, case: SmallCase) -> Draft {
        Draft { name, case, graph: None, starved: false, steps_before: 0 }
    }

    /// The case number `i`. Those with an odd number keep round-trip times and integrals of queues.
    fn built(self, i: u32) -> KernelCase {
        let odd = i % 2 == 1;
        let options = BuildOptions { exp_id: i, links: odd, rtt_cap: if odd { 8 } else { 0 }, ..Default::default() };
        let mut tables = self.case.tables(self.graph.as_ref().map(SmallGraph::for_tables), options);
        if self.starved {
            starve(&mut tables);
        }
        make_changes(&mut tables);
        let_watchdog_act(&mut tables);
        let_switches_report(&mut tables);
        cpu::run(&mut tables.view(), self.steps_before);
        KernelCase { name: self.name, tables }
    }

    fn starved(mut self) -> Draft {
        self.name += ", few packets";
        self.starved = true;
        self
    }

    fn resumed_after(mut self, steps: u32) -> Draft {
        self.name += &format!(", resumed after {steps} steps");
        self.steps_before = steps;
        self
    }
}

/// Makes the changes of the network at time 0, as a device has no host beside it that would.
fn make_changes(tables: &mut OwnedTables) {
    let t = &mut *tables.view();
    while t.changes.next_time().is_some() {
        cpu::run(t, 1);
        hyperfold_engine::go_on(t, u64::from(u32::MAX)).expect("a change at time 0 needs no records");
    }
}

/// Goes on until the watchdog of pauses drops packets at some port, and makes it do so for good, as a device has no host beside it that would end it.
fn let_watchdog_act(tables: &mut OwnedTables) {
    let t = &mut *tables.view();
    while t.changes.watchdog.is_some() && !hyperfold_engine::is_final(t) {
        cpu::run(t, 1);
        hyperfold_engine::go_on(t, u64::from(u32::MAX)).expect("a small case needs few records");
        if t.ports.iter().any(|port| port.peer.is_some() && port.peer.0 & LINK_DROPS != 0) {
            t.changes.watchdog = None;
            t.exps[0].time_limit = t.changes.time_limit;
        }
    }
}

/// Goes on until switches report queues that are not empty, and keeps these reports for good, as a device has no host beside it that would make others.
fn let_switches_report(tables: &mut OwnedTables) {
    let t = &mut *tables.view();
    while t.changes.reports.is_some() && !hyperfold_engine::is_final(t) {
        cpu::run(t, 1);
        hyperfold_engine::go_on(t, u64::from(u32::MAX)).expect("a small case needs few records");
        let e = &t.exps[0];
        if PortIdx::all(e.port_len).any(|port| t.shared[e.remote_word(port, 0)] > 0) {
            t.changes.reports = None;
            t.exps[0].time_limit = t.changes.time_limit;
        }
    }
}

/// A task graph with messages of about so many bytes.
type GraphShape = fn(u64) -> TaskGraph;

/// A case under a congestion control.
type CaseOfControl = fn(Cc) -> Draft;

/// Nine cases for the check before a run: every congestion control, a loss, a pause, task graphs and gates, a resumed step.
pub fn short() -> Vec<KernelCase> {
    let mut drafts: Vec<Draft> = CONTROLS[..4].iter().map(|&cc| marks(cc)).collect();
    drafts.push(pauses(Cc::None));
    drafts.push(losses(Cc::None));
    drafts.push(with_graph("ring", graphs::ring(9_000), Cc::Dcqcn, false));
    drafts.push(with_graph("transfers", graphs::transfers(6_000), Cc::Hpcc, true));
    drafts.push(variants().swap_remove(2).resumed_after(60));
    built(drafts)
}

/// All cases, for `hyperfold doctor --engine`.
pub fn all() -> Vec<KernelCase> {
    let mut drafts: Vec<Draft> = Vec::new();
    for cc in CONTROLS {
        drafts.extend([marks(cc), one_path(cc), losses(cc), pauses(cc)]);
    }
    drafts.extend(variants());
    let shapes: [(&str, GraphShape); 4] = [
        ("ring", graphs::ring),
        ("all-to-all", graphs::all_to_all),
        ("meetings", graphs::meetings),
        ("transfers", graphs::transfers),
    ];
    for (i, (name, graph)) in shapes.into_iter().enumerate() {
        for fresh in [false, true] {
            let cc = CONTROLS[(2 * i + usize::from(fresh)) % CONTROLS.len()];
            drafts.push(with_graph(name, graph(7_000), cc, fresh));
        }
    }
    drafts.push(lossy_graph("ring", graphs::ring(90_000), Cc::Dcqcn));
    drafts.push(lossy_graph("all-to-all", graphs::all_to_all(30_000), Cc::None));
    drafts.push(graph_beside_flows());
    drafts.extend([Cc::None, Cc::Dcqcn, Cc::Swift].map(any_order));
    drafts.push(in_any_order(lossy_graph("all-to-all", graphs::all_to_all(30_000), Cc::Hpcc)));
    drafts.extend([marks(Cc::Dcqcn).resumed_after(40), pauses(Cc::None).resumed_after(60)]);
    drafts.push(with_graph("transfers", graphs::transfers(6_000), Cc::Dctcp, false).resumed_after(12));
    drafts.extend([marks(Cc::Timely).starved(), losses(Cc::None).starved()]);
    drafts.push(with_graph("ring", graphs::ring(20_000), Cc::Hpcc, true).starved());
    built(drafts)
}

/// The cases of [`all`] that have one of `words` in their names; all of them if there are no words.
///
/// # Errors
/// A word that is in no name.
pub fn named(words: &[String]) -> Result<Vec<KernelCase>, UnknownCase> {
    let mut cases = all();
    let has = |case: &KernelCase, word: &str| case.name.contains(word);
    if let Some(word) = words.iter().find(|word| !cases.iter().any(|case| has(case, word))) {
        let names = cases.into_iter().map(|case| case.name).collect();
        return Err(UnknownCase { word: word.clone(), names });
    }
    cases.retain(|case| words.is_empty() || words.iter().any(|word| has(case, word)));
    Ok(cases)
}

/// A word that is in the name of no case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no case has `{word}` in its name; the cases are {}", names.join("; "))]
pub struct UnknownCase {
    word: String,
    names: Vec<String>,
}

fn built(drafts: Vec<Draft>) -> Vec<KernelCase> {
    (0..).zip(drafts).map(|(i, draft)| draft.built(i)).collect()
}

fn name(cc: Cc, what: &str) -> String {
    format!("{} {what}", format!("{cc:?}").to_lowercase())
}

fn marks(cc: Cc) -> Draft {
    Draft::new(name(cc, "with marks"), SmallCase::incast(cc, SHORT_FLOW))
}

fn one_path(cc: Cc) -> Draft {
    let mut case = SmallCase::incast(cc, SHORT_FLOW);
    case.keep_one_path();
    case.transport.ack_interval = 3_000;
    Draft::new(name(cc, "on one path"), case)
}

/// A small buffer without PFC: packets are lost and sent again.
fn losses(cc: Cc) -> Draft {
    let mut case = SmallCase::incast(cc, LONG_FLOW);
    case.transport.pfc = false;
    case.transport.buffer_bytes = 150_000;
    case.transport.ack_high_prio = matches!(cc, Cc::None | Cc::Timely);
    if matches!(cc, Cc::Dctcp | Cc::Timely) {
        case.transport.loss_recovery = LossRecovery::Ns3;
        case.transport.nack_interval_ps = US;
    }
    Draft::new(name(cc, "with losses"), case)
}

/// Losses again, on several paths, where receivers take packets in any order.
fn any_order(cc: Cc) -> Draft {
    in_any_order(losses(cc))
}

/// A case whose receivers take packets in any order.
fn in_any_order(mut draft: Draft) -> Draft {
    draft.case.transport.loss_recovery = LossRecovery::Selective;
    draft.name += ", in any order";
    draft
}

/// Cases of parts of the kernels that few experiments need. Ultra Ethernet: packets that are trimmed and sent again, paths that are chosen again or mixed, drops
/// without trimming, messages of a task graph, and receiver credit with and without a window. Ports with queues of their own under another congestion control.
/// Adaptive routing with a shared buffer, with pauses, with queues of ports, and by flowlets. Traffic classes. Links that lose
/// packets, and a flow that moves to another NIC. A watchdog of pauses. Averages of queues. Drops by WRED. Queues further on. Switches that cut through.
pub fn rare() -> Vec<KernelCase> {
    let mut drafts = ultra_ethernet(Cc::Nscc);
    drafts.extend(ultra_ethernet(Cc::Rccc));
    drafts.extend([with_credit(trims(Cc::Nscc)), trims(Cc::Nscc).resumed_after(60), port_queues(losses(Cc::Dcqcn))]);
    drafts.extend([any_order(Cc::Swift), pauses(Cc::Dcqcn)].map(adaptive));
    drafts.push(weighed(adaptive(pauses(Cc::Dcqcn))));
    drafts.push(in_flowlets(adaptive(any_order(Cc::Dcqcn))));
    drafts.extend([pauses(Cc::Dcqcn), pauses(Cc::Hpcc), any_order(Cc::Swift)].map(classed));
    drafts.push(lossy_links(any_order(Cc::Dcqcn)));
    drafts.push(watched(pauses(Cc::None)));
    drafts.push(averaged(marks(Cc::Dcqcn)));
    drafts.extend([any_order(Cc::None), classed(any_order(Cc::Swift)), averaged(losses(Cc::Dcqcn))].map(drops_early));
    drafts.push(reporting(adaptive(any_order(Cc::Dcqcn))));
    drafts.extend([pauses(Cc::Hpcc), any_order(Cc::Dcqcn)].map(cut_through));
    built(drafts)
}

/// Few cases for the check of kernels with these parts before a run: every kind of case that they can run, and every part of theirs in one at least.
pub fn of(parts: KernelParts) -> Vec<KernelCase> {
    let (mut kinds, mut covered) = (BTreeSet::new(), KernelParts::NONE);
    let mut kept = Vec::new();
    for (i, (kind, draft)) in (0..).zip(kinds_of_cases()) {
        let case = draft.built(i);
        let needed = KernelParts::needed_by(case.tables.exps.iter());
        if parts.suffice_for(needed) && (!covered.suffice_for(needed) || !kinds.contains(&kind)) {
            kinds.insert(kind);
            covered = covered.and(needed);
            kept.push(case);
        }
    }
    kept
}

/// Cases of every kind, each under every congestion control.
fn kinds_of_cases() -> Vec<(String, Draft)> {
    let mut drafts: Vec<(String, Draft)> = Vec::new();
    let kinds: [(&str, CaseOfControl); 20] = [
        ("marks", marks),
        ("losses", losses),
        ("pauses", pauses),
        ("a ring", |cc| with_graph("ring", graphs::ring(9_000), cc, false)),
        ("transfers", |cc| with_graph("transfers", graphs::transfers(6_000), cc, true)),
        ("any order", any_order),
        ("messages in any order", |cc| in_any_order(lossy_graph("all-to-all", graphs::all_to_all(30_000), cc))),
        ("queues of ports", |cc| port_queues(losses(cc))),
        ("adaptive routing", |cc| adaptive(pauses(cc))),
        ("weighed ports", |cc| weighed(adaptive(pauses(cc)))),
        ("adaptive routing in any order", |cc| adaptive(any_order(cc))),
        ("flowlets", |cc| in_flowlets(adaptive(any_order(cc)))),
        ("classes", |cc| classed(pauses(cc))),
        ("classes in any order", |cc| classed(any_order(cc))),
        ("links that lose packets", |cc| lossy_links(any_order(cc))),
        ("a watchdog of pauses", |cc| watched(pauses(cc))),
        ("averages of queues", |cc| averaged(marks(cc))),
        ("drops by WRED", |cc| drops_early(any_order(cc))),
        ("queues further on", |cc| reporting(adaptive(any_order(cc)))),
        ("cut-through", |cc| cut_through(pauses(cc))),
    ];
    for (kind, draft) in kinds {
        // HPCC has no queues of ports.
        let controls = CONTROLS.into_iter().filter(|cc| kind != "queues of ports" || *cc != Cc::Hpcc);
        drafts.extend(controls.map(|cc| (kind.to_string(), draft(cc))));
    }
    let named = |draft: Draft| (draft.name.clone(), draft);
    drafts.extend(variants().into_iter().map(named));
    drafts.push(named(variants().swap_remove(2).resumed_after(60)));
    drafts.extend([Cc::Nscc, Cc::Rccc].into_iter().flat_map(ultra_ethernet).map(named));
    drafts.push(named(with_credit(trims(Cc::Nscc))));
    drafts
}

/// Cases of Ultra Ethernet under one of its controls.
fn ultra_ethernet(cc: Cc) -> Vec<Draft> {
    let mut recycling = trims(cc);
    recycling.case.transport.recycles_paths = true;
    recycling.name += ", paths chosen again";
    let mut dropping = trims(cc);
    dropping.case.transport.trimming = false;
    dropping.name += ", not trimmed";
    let mut messages = with_graph("all-to-all", graphs::all_to_all(60_000), cc, false);
    messages.case.transport = trims(cc).case.transport;
    let [mut mixed, mut late] = [trims(cc), trims(cc)];
    for draft in [&mut mixed, &mut late] {
        (draft.case.transport.recycles_paths, draft.case.transport.spray_in_turn) = (true, true);
        draft.name += ", entropies mixed";
    }
    late.case.transport.trimming = false;
    late.name += ", not trimmed";
    vec![trims(cc), recycling, dropping, messages, mixed, late, adaptive(trims(cc))]
}

/// A case whose senders need credit from their receivers.
fn with_credit(mut draft: Draft) -> Draft {
    draft.case.transport.credit = Some(CREDIT);
    draft.name += ", receiver credit";
    draft
}

const CREDIT: ReceiverCredit =
    ReceiverCredit { burst_packets: 20, window_packets: 30, grant_packets: 4, stretch_q16: 66_198 };

/// A case whose egress ports have queues of their own.
fn port_queues(mut draft: Draft) -> Draft {
    draft.case.transport.port_queue_per_100g = 12_000;
    draft.name += ", queues of ports";
    draft
}

/// A case whose switches choose among its paths.
fn adaptive(mut draft: Draft) -> Draft {
    draft.case.transport.grade_packets = Some(2);
    draft.name += ", adaptive routing";
    draft
}

/// A case with three traffic classes: one is served before the others, of which one may lose packets.
fn classed(mut draft: Draft) -> Draft {
    let case = &mut draft.case;
    let packet = case.transport.payload + case.transport.data_overhead;
    let class = |level, packets, lossless| TrafficClass { level, quantum_bytes: packets * packet, lossless };
    case.transport.classes = vec![class(1, 1, true), class(0, 1, true), class(1, 3, false)];
    // Headroom and reserve of all classes.
    case.transport.buffer_bytes += case.transport.buffer_bytes;
    case.flows.iter_mut().for_each(|flow| flow.class = (flow.id % 3) as u8);
    draft.name += ", traffic classes";
    draft
}

/// A case whose switches mark by averages of queues.
fn averaged(mut draft: Draft) -> Draft {
    draft.case.transport.ecn_average_weight = 2;
    draft.name += ", averages of queues";
    draft
}

/// A case whose switches drop data by WRED.
fn drops_early(mut draft: Draft) -> Draft {
    let transport = &mut draft.case.transport;
    (transport.ecn, transport.wred_drops) = (true, true);
    draft.name += ", drops by WRED";
    draft
}

/// A case whose adaptive switches know of queues further on.
fn reporting(mut draft: Draft) -> Draft {
    draft.case.transport.remote_queues_ps = US;
    draft.name += ", queues further on";
    draft
}

/// A case whose switches cut through, where a port is not faster than the link before it.
fn cut_through(mut draft: Draft) -> Draft {
    draft.case.transport.cut_through_bytes = 64;
    draft.name += ", cut-through";
    draft
}

/// A case whose watchdog takes ordinary pauses for a deadlock, and drops packets.
fn watched(mut draft: Draft) -> Draft {
    draft.case.transport.watchdog = Some(PauseWatchdog { detect_ps: US / 4, restore_ps: US, drops: true });
    draft.name += ", a watchdog of pauses";
    draft
}

/// A case in which a NIC and a switch port lose every sixteenth packet. One flow moves to the NIC of another host while packets of it are on their way.
fn lossy_links(mut draft: Draft) -> Draft {
    let case = &mut draft.case;
    let first_arcs: Vec<ArcIdx> = case.paths[0].data[0].iter().copied().take(2).collect();
    let loss = |arc| TimedChange { time_ps: 0, change: NetworkChange::Loss { arc, share_q32: 1 << 28 } };
    case.changes = first_arcs.into_iter().map(loss).collect();
    let moving = case.flows.iter().find(|flow| flow.start_ps == 0).map_or(0, |flow| flow.id as usize);
    let (src, dst) = (case.flows[moving].src_rank, case.flows[moving].dst_rank);
    let other = (0..HOSTS).find(|host| ![src, dst].contains(host)).unwrap_or(src);
    let moved = FlowPaths { data: paths(other, dst), ack: paths(dst, other) };
    case.changes
        .push(TimedChange { time_ps: 8_000_000, change: NetworkChange::NewPaths { flow: moving, paths: moved } });
    draft.name += ", links that lose packets, a flow that moves";
    draft
}

/// A case of adaptive routing by flowlets.
fn in_flowlets(mut draft: Draft) -> Draft {
    draft.case.transport.flowlet_gap_ps = US / 2;
    draft.name += ", in flowlets";
    draft
}

/// A case of adaptive routing whose switches weigh their ports. The first path of each flow counts twice.
fn weighed(mut draft: Draft) -> Draft {
    draft.case.transport.port_weights = PortWeights::Paths;
    draft.case.paths.iter_mut().for_each(|paths| paths.data.push(paths.data[0].clone()));
    draft.name += ", ports weighed";
    draft
}

/// An incast under a control of Ultra Ethernet, whose packets find the queue of their port full. RCCC needs credit.
fn trims(cc: Cc) -> Draft {
    let mut case = SmallCase::incast(cc, LONG_FLOW);
    case.transport.loss_recovery = LossRecovery::Uec;
    case.transport.pfc = false;
    case.transport.trimming = true;
    case.transport.port_queue_per_100g = 12_000;
    case.transport.ack_interval = 4_000;
    case.transport.nscc = Nscc::of_network(6_500_000, 100_000_000_000, case.transport.payload, 0, true);
    case.transport.credit = (cc == Cc::Rccc).then_some(CREDIT);
    Draft::new(name(cc, "with trimmed packets"), case)
}

/// A small buffer with PFC: switches pause their neighbours, so they are processed jointly.
fn pauses(cc: Cc) -> Draft {
    let mut case = SmallCase::incast(cc, LONG_FLOW);
    case.transport.buffer_bytes = 220_000;
    case.transport.pfc_alpha_shift = 2;
    case.transport.clock_ps = 1000;
    Draft::new(name(cc, "with pauses"), case)
}

/// Other branches of HPCC and DCQCN.
fn variants() -> Vec<Draft> {
    let variant = |name: &str, cc, change: fn(&mut Transport)| {
        let mut case = SmallCase::incast(cc, LONG_FLOW);
        change(&mut case.transport);
        Draft::new(name.into(), case)
    };
    vec![
        variant("hpcc with additive increase", Cc::Hpcc, |t| {
            t.mi_thresh = 5;
            t.fast_react = false;
            t.ack_interval = 3_000;
            t.buffer_bytes = 220_000;
        }),
        variant("dcqcn with a clamped rate", Cc::Dcqcn, |t| {
            t.dcqcn_clamp = true;
            t.cnp_interval_ps = 4 * US;
            t.rate_bound = false;
            t.window = true;
            t.dcqcn_fast_recovery = 0;
        }),
        variant("dcqcn with windows and losses", Cc::Dcqcn, |t| {
            t.window = true;
            t.var_window = true;
            t.dcqcn_decrease_ps = 2 * US;
            t.dcqcn_increase_ps = 2 * US;
            t.pfc = false;
            t.buffer_bytes = 150_000;
            t.loss_recovery = LossRecovery::Ns3;
            t.nack_interval_ps = US;
        }),
    ]
}

fn with_graph(shape: &str, graph: TaskGraph, cc: Cc, fresh_qp: bool) -> Draft {
    let mut case = SmallCase::idle(cc);
    let graph = SmallGraph::added_to(&mut case, graph, fresh_qp);
    let state = if fresh_qp { "fresh" } else { "persistent" };
    Draft { graph: Some(graph), ..Draft::new(format!("{shape}, {}", name(cc, state)), case) }
}

fn lossy_graph(shape: &str, graph: TaskGraph, cc: Cc) -> Draft {
    let mut draft = with_graph(shape, graph, cc, false);
    draft.case.transport.pfc = false;
    draft.case.transport.buffer_bytes = 60_000;
    draft.name += ", with losses";
    draft
}

fn graph_beside_flows() -> Draft {
    let mut case = SmallCase::incast(Cc::Hpcc, SHORT_FLOW);
    let graph = SmallGraph::added_to(&mut case, graphs::meetings(8_000), false);
    Draft { graph: Some(graph), ..Draft::new(name(Cc::Hpcc, "with meetings beside flows"), case) }
}

/// Takes packets away from every NIC's pool, so that it must grow on the way.
pub fn starve(t: &mut OwnedTables) {
    for n in 0..t.nics.len() {
        let keep = t.nics[n].worst;
        let mut p = t.nics[n].free_head;
        for _ in 1..keep {
            p = t.packets[p].next;
        }
        if t.nics[n].free_n > keep {
            t.packets[p] = Packet { next: PacketIdx::NONE, ..t.packets[p] };
            t.nics[n].free_n = keep;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_check::known::KnownCase;
    use hyperfold_columns::{NEVER, status};

    fn known(cases: Vec<KernelCase>) -> Vec<KnownCase> {
        cases.into_iter().map(KnownCase::simulated).collect()
    }

    fn count(cases: &[KnownCase], what: fn(&OwnedTables) -> u64) -> usize {
        cases.iter().filter(|case| what(&case.want) > 0).count()
    }

    fn losses_in(t: &OwnedTables) -> u64 {
        t.ports.iter().map(|p| u64::from(p.drops)).sum()
    }

    fn pauses_in(t: &OwnedTables) -> u64 {
        t.nics.iter().map(|n| u64::from(n.pauses)).sum::<u64>()
            + t.ports.iter().map(|p| u64::from(p.pauses)).sum::<u64>()
    }

    fn marks_in(t: &OwnedTables) -> u64 {
        t.ports.iter().map(|p| p.marks).sum()
    }

    #[test]
    fn what_the_cases_are_for_happens_in_them() {
        for (cases, least) in [(known(short()), 1), (known(all()), 4)] {
            let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            for (i, name) in names.iter().enumerate() {
                assert!(!names[..i].contains(name), "two cases are called {name}");
            }
            for case in &cases {
                let end = case.want.exps[0].status;
                assert!(!matches!(end, status::RUNNING | status::NEEDS_PACKETS), "{}: status {end}", case.name);
                assert!(case.want.exps[0].steps > case.before.exps[0].steps, "{}: nothing is left to do", case.name);
            }
            assert!(count(&cases, losses_in) >= least, "losses");
            assert!(count(&cases, pauses_in) >= least, "pauses");
            assert!(count(&cases, marks_in) >= least, "marks");
            let gates = |t: &OwnedTables| t.gates.iter().filter(|gate| gate.waits == 0).count() as u64;
            assert!(count(&cases, gates) >= least, "gates");
            let messages = |t: &OwnedTables| t.tasks.iter().filter(|task| task.got != NEVER).count() as u64;
            assert!(count(&cases, messages) > least, "messages");
            assert!(cases.iter().any(|case| case.before.exps[0].steps > 0), "no case is resumed");
        }
        assert_eq!((short().len(), all().len()), (9, 48));
        let drops = |case: &KernelCase| case.tables.ports.iter().any(|port| port.peer.0 & LINK_DROPS != 0);
        let watched: Vec<KernelCase> = CONTROLS.into_iter().map(|cc| watched(pauses(cc)).built(0)).collect();
        assert!(watched.iter().all(drops), "no pause lasts long enough for the watchdog");
        let done = known(all()).iter().filter(|case| case.want.exps[0].status == status::DONE).count();
        assert!(done > 35, "{done} cases end in order");
        let grown = known(all()).iter().filter(|case| case.want.packets.len() > case.before.packets.len()).count();
        assert!(grown >= 3, "pools grew in {grown} cases");
    }

    /// Every case stands for experiments that need the same parts of the kernels.
    #[test]
    fn kernels_are_checked_with_cases_of_all_their_parts_and_no_others() {
        let mut seen = BTreeSet::new();
        for case in all().into_iter().chain(rare()) {
            seen.insert(KernelParts::needed_by(case.tables.exps.iter()));
        }
        assert!(seen.len() > 25, "{}", seen.len());
        let unions = seen.iter().zip(seen.iter().skip(3)).map(|(a, b)| a.and(*b)).collect::<Vec<_>>();
        for parts in seen.iter().copied().chain(unions) {
            let needed: Vec<KernelParts> =
                of(parts).iter().map(|case| KernelParts::needed_by(case.tables.exps.iter())).collect();
            assert!(needed.iter().all(|needed| parts.suffice_for(*needed)), "{parts}");
            let covered = needed.into_iter().fold(KernelParts::NONE, KernelParts::and);
            assert_eq!(covered, parts, "{covered}, not {parts}");
        }
        let every = of(KernelParts::ALL);
        for case in every.into_iter().map(KnownCase::simulated) {
            let end = case.want.exps[0].status;
            assert!(!matches!(end, status::RUNNING | status::NEEDS_PACKETS), "{}: status {end}", case.name);
        }
    }
}
