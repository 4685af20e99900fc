//! Couples a switch while queue pairs cross it, before a pause, a resume or a drop can happen there.
//!
//! Layer: fold/run. Its partitions merge at once. Their rows may be up to a step apart in time, so the ports of the switch are processed jointly a
//! little later. Until then the buffer guard goes on with its proof.

use super::counters::{deltas, forget_finished_messages, report_peaks};
use super::join::{NeededRows, add_port, catch_up_rows, touched};
use super::merge::merge;
use crate::rows::canonical_key::CanonicalKey;
use crate::rows::coupling::coupled_rows;
use crate::rows::index::PartitionIdx;
use crate::run::explanations::explain::{because, settle};
use crate::run::explanations::explanation::FoldCause;
use crate::run::fold_run::FoldRun;
use crate::run::lookups::lookup::stop_remembering;
use crate::run::lookups::resume::resume;
use crate::run::simulation::simulate::next_event_at;
use crate::run::skips::gain::LeastGain;
use crate::run::stop::Stop;
use crate::run::turn_order::schedule_partition;
use crate::steady::detector::Detector;
use hyperfold_base::units::PS_PER_NS;
use hyperfold_columns::{NicIdx, PortIdx, SwitchIdx, Tables, mode};

/// Couples switch `s`: from `at_ps` on, which is the earliest time of all, all active queue pairs through it belong to one partition. Results do
/// not depend on when that is, so it may depend on turns and on the memo.
pub(crate) fn couple_from_now(run: &mut FoldRun, t: &mut Tables, s: SwitchIdx, at_ps: u64) -> Result<(), Stop> {
    if run.guard.is_coupled(s) {
        return Ok(());
    }
    log::debug!(
        "folding: experiment {}: switch {} fills up at {} ns, so its ports are processed together from now on",
        t.exps[0].exp_id,
        s.0,
        at_ps / PS_PER_NS
    );
    let may_wait = std::mem::take(&mut run.ticket.may_wait);
    let needed = NeededRows { nics: Vec::new(), ports: t.switches[s].ports().collect(), switches: Vec::new() };
    catch_up_rows(run, t, &needed, at_ps)?;
    let all = touched(run, &needed);
    let remembered = all.iter().all(|&p| run.partitions[p].is_memorable());
    for &p in &all {
        if !run.partitions[p].is_simulated() {
            because(run, t, p, FoldCause::Merge);
        }
        stop_remembering(run, t, p, at_ps)?;
    }
    run.ticket.may_wait = may_wait;
    run.guard.couple(s);
    run.stats.coupled = run.guard.n_coupled();
    let Some((&p, others)) = all.split_first() else { return Ok(()) };
    for &other in others {
        merge(run, t, p, other, NicIdx(0), at_ps)?;
    }
    let mut ingresses: Vec<PortIdx> = Vec::new();
    for m in run.partitions[p].rows.members.iter().filter(|m| m.routed) {
        let (_, crossed) = coupled_rows(t, m.flow, &|x| x == s);
        ingresses.extend(crossed.into_iter().filter(|&port| run.index.port_partition[port.usize()].is_none()));
    }
    ingresses.sort_unstable();
    ingresses.dedup();
    let mut form = CanonicalKey::default();
    for port in ingresses {
        add_port(run, t, p, port, at_ps, false, &mut form);
    }
    run.index.switch_partition[s.usize()] = p;
    let partition = &mut run.partitions[p];
    partition.rows.switches.push(s);
    partition.shape = None;
    partition.awaits = Some(remembered && partition.awaits != Some(false));
    let next = next_event_at(run, t, p).min(run.partitions[p].next);
    schedule_partition(run, p, next);
    Ok(())
}

/// All NICs and ports of `t`.
pub(crate) fn every_row(t: &Tables) -> NeededRows {
    NeededRows {
        nics: NicIdx::all(t.nics.len() as u32).collect(),
        ports: PortIdx::all(t.ports.len() as u32).collect(),
        switches: Vec::new(),
    }
}

/// Stops skipping from `at_ps` on, before anything happens at that instant: from now on every packet is simulated or looked up. Partitions in progress are
/// not remembered any more: other experiments may skip after what was recorded.
/// PRECONDITION: nothing was skipped or rounded so far. So results do not depend on `at_ps`.
pub(crate) fn go_on_without_skips(run: &mut FoldRun, t: &mut Tables, at_ps: u64, why: &str) -> Result<(), Stop> {
    log::info!("folding: experiment {}: from {} ns on nothing is skipped: {why}", t.exps[0].exp_id, at_ps / PS_PER_NS);
    let may_wait = std::mem::take(&mut run.ticket.may_wait);
    let all = every_row(t);
    catch_up_rows(run, t, &all, at_ps)?;
    for p in touched(run, &all) {
        if !run.partitions[p].is_simulated() {
            because(run, t, p, FoldCause::Merge);
        }
        stop_remembering(run, t, p, at_ps)?;
        run.partitions[p].detector = Detector::default();
        run.partitions[p].ended_skip = None;
        let next = next_event_at(run, t, p).min(run.partitions[p].next);
        schedule_partition(run, p, next);
    }
    run.schedule.samplings.clear();
    run.ticket.may_wait = may_wait;
    t.exps[0].modes &= !(mode::STEADY | (mode::METRIC_MASK << mode::METRIC_SHIFT));
    t.fold_hints.rounding = false;
    run.stats.exactly = u64::from(run.stats.skips + run.stats.rounded == 0);
    run.gain = LeastGain::unasked();
    run.guard.foresee_from_now(t);
    Ok(())
}

/// Begins to process the ports of the coupled switches of partition `p` jointly, if all its rows are at `at_ps`, from which it is to be simulated.
/// Its state is looked up if it was remembered before. Returns whether its turn is over.
pub(crate) fn process_jointly_if_due(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> bool {
    let partition = &run.partitions[p];
    let Some(remembered) = partition.awaits.filter(|_| partition.reached <= at_ps) else { return false };
    // Messages posted at the instant up to which a looked-up partition was simulated are not in its rows yet.
    if remembered && !partition.has_all_posts() {
        return false;
    }
    report_peaks(run, t, p, at_ps);
    for k in 0..run.partitions[p].rows.switches.len() {
        let s = run.partitions[p].rows.switches[k];
        run.guard.process_jointly(s);
    }
    run.partitions[p].awaits = None;
    if !(remembered && run.memo.is_some() && run.partitions[p].recordable) {
        return false;
    }
    forget_finished_messages(run, t, p);
    settle(run, t, p);
    run.partitions[p].explained_hops = 0;
    let gained = deltas(run, t, p, at_ps);
    run.stats.hops_simulated +=
        gained.nics.iter().map(|g| g.hops).sum::<u64>() + gained.ports.iter().map(|g| g.hops).sum::<u64>();
    resume(run, t, p, at_ps, true);
    let looked_up = !run.partitions[p].is_simulated();
    if looked_up {
        schedule_partition(run, p, at_ps);
    }
    looked_up
}
