//! The turn of a partition that is looked up.
//!
//! Layer: fold/run.

use super::claim::must_simulate;
use super::lookup::{record_post_of_looked_up, report_events, start_simulating};
use super::progress::{final_state_by, has_more, next_reported};
use crate::rows::index::PartitionIdx;
use crate::run::explanations::explain::because;
use crate::run::explanations::explanation::FoldCause;
use crate::run::fold_run::FoldRun;
use crate::run::partitions::join::join;
use crate::run::partitions::retire::retire_looked_up;
use crate::run::simulation::simulate::next_event_at;
use crate::run::skips::skip::{SkipEnd, end_skip, post_while_skipped};
use crate::run::stop::Stop;
use crate::run::turn_order::{collect, collect_all, schedule_partition};
use hyperfold_columns::{NEVER, NONE, NicIdx, Tables, task as bits};
use hyperfold_engine::cpu::{nic, task};

/// Runs one instant, `at_ps`, of looked-up partition `p`.
pub(crate) fn lookup_turn(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> Result<(), Stop> {
    run.partitions[p].next = NEVER;
    let mut p = p;
    'turn: loop {
        report_events(run, t, p, at_ps)?;
        if run.partitions[p].is_simulated() {
            break;
        }
        if let Some(final_state) = final_state_by(run, p, at_ps) {
            t.exps[0].now = t.exps[0].now.max(at_ps);
            retire_looked_up(run, t, p, &final_state);
            return Ok(());
        }
        let starts = run.partitions[p].rows.nics.iter().any(|&n| t.nics[n].next_start <= at_ps);
        if run.partitions[p].skip().is_some() {
            if starts {
                end_skip(run, t, p, at_ps, SkipEnd::Started)?;
                continue;
            }
        } else if starts || must_simulate(run, p, at_ps)? {
            because(run, t, p, FoldCause::PostAtOtherTime);
            start_simulating(run, t, p, at_ps)?;
            break;
        } else if has_more(run, p, at_ps) {
            // Another thread has recorded it just now.
            continue;
        }
        let mut due: Vec<NicIdx> =
            run.partitions[p].rows.nics.iter().copied().filter(|&n| t.nics[n].next_task <= at_ps).collect();
        due.sort_unstable();
        for n in due {
            while t.nics[n].next_task <= at_ps && !run.partitions[p].is_simulated() {
                if run.partitions[p].skip().is_some() && post_while_skipped(run, t, p, n, at_ps) {
                    continue;
                }
                let i = t.nics[n].task_head;
                let f = t.tasks[i].flow;
                if t.tasks[i].flags & bits::MESSAGE == 0 {
                    let key = task::key(t, i);
                    task::due(t, n, &key);
                    continue;
                }
                let m = run.index.member[f.usize()];
                if m == NONE || !run.partitions[p].rows.members[m as usize].routed {
                    p = join(run, t, n, f, at_ps)?;
                    continue;
                }
                if run.partitions[p].skip().is_some() {
                    end_skip(run, t, p, at_ps, SkipEnd::Posted)?;
                    // It may be looked up from here; then events of this instant are reported first.
                    nic::set_clock(t, n);
                    collect(run, t, n);
                    continue 'turn;
                }
                record_post_of_looked_up(run, t, p, n, m, at_ps)?;
            }
            nic::set_clock(t, n);
            collect(run, t, n);
        }
        break;
    }
    collect_all(run, t, p);
    t.exps[0].now = t.exps[0].now.max(at_ps);
    let next = if !run.partitions[p].is_simulated() { next_reported(run, t, p) } else { next_event_at(run, t, p) };
    schedule_partition(run, p, next);
    Ok(())
}
