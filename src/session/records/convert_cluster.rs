//! Converts outcomes of clusters to result records.
//!
//! Layer: session.

use hyperfold_cluster::{ClusterCongestion, ClusterJobOutcome, ClusterMapRow, ClusterOutcome, ClusterSample, JobPhase};
use hyperfold_config::spec::Config;
use hyperfold_results::{
    ClusterCongestionRecord, ClusterJobRecord, ClusterMapRecord, ClusterRecord, ClusterSampleRecord, ExperimentRecord,
    Finished, Ms, StatsRecord,
};

const MS_PER_HOUR: f64 = 3.6e6;
const HOURS_PER_YEAR: f64 = 8766.0;
const NS_PER_HOUR: f64 = 3.6e12;
const NS_PER_MS: u128 = 1_000_000;

/// Converts a finished cluster for writing. `record` holds its identity.
pub(crate) fn finished_cluster(
    mut record: ExperimentRecord,
    outcome: &ClusterOutcome,
    config: &Config,
    seconds: f64,
) -> Finished {
    let bill = &outcome.bill;
    record.cost_usd = Some(bill.cost_cents as f64 / 100.0);
    record.power_kw = Some(bill.power_mw as f64 / 1e6);
    record.cluster = Some(Box::new(figures(outcome, config)));
    let stats = StatsRecord { batches: 1, wall_s: seconds, ..StatsRecord::default() };
    Finished {
        cluster_timeline: outcome.samples.iter().map(sample).collect(),
        cluster_congestion: outcome.congestion.iter().map(congestion).collect(),
        cluster_map: outcome.map.iter().map(map_row).collect(),
        cluster_jobs: if config.output.cluster_jobs { outcome.jobs.iter().map(job).collect() } else { Vec::new() },
        ..Finished::without_rows(record, stats)
    }
}

fn figures(o: &ClusterOutcome, config: &Config) -> ClusterRecord {
    let (account, total) = (&o.account, o.account.total());
    let share = |part: u128| if total == 0 { 0.0 } else { part as f64 / total as f64 };
    let (waiting, turnaround) = (o.waiting(), o.turnaround());
    let useful_gpu_hours = account.useful as f64 / NS_PER_HOUR;
    let hours = o.span_ms as f64 / MS_PER_HOUR;
    // Price of this part of the cluster's life, and of its energy at full load.
    let price = o.bill.cost_cents as f64 / 100.0 * hours / (config.cost.years * HOURS_PER_YEAR);
    let energy = o.bill.power_mw as f64 / 1e6 * hours * config.cost.usd_per_kwh;
    let count = |field: fn(&ClusterJobOutcome) -> u64| o.jobs.iter().map(field).sum::<u64>();
    let measured = o.iterations.as_ref();
    // Converts millionths to a share.
    let share_of = |ppm: u64| ppm as f64 / 1e6;
    let audited = measured.filter(|m| m.audited_jobs > 0);
    ClusterRecord {
        span_ms: Ms(o.span_ms),
        jobs: o.jobs.len() as u64,
        jobs_done: o.done().count() as u64,
        jobs_given_up: count(|j| u64::from(j.phase == JobPhase::GivenUp)),
        utilisation: share(account.held()),
        goodput: share(account.useful),
        idle_share: share(account.free),
        stranded_share: share(account.stranded),
        slowdown_share: if total == 0 { 0.0 } else { account.slowdown as f64 / total as f64 },
        checkpoint_share: share(account.checkpoint),
        restart_share: share(account.restart),
        rollback_share: share(account.rolled_back),
        down_share: share(account.down),
        drained_share: share(account.drained),
        spare_share: share(account.spare),
        waiting_mean_ms: waiting.map(|d| Ms(d.mean_ms)),
        waiting_p50_ms: waiting.map(|d| Ms(d.p50_ms)),
        waiting_p99_ms: waiting.map(|d| Ms(d.p99_ms)),
        turnaround_mean_ms: turnaround.map(|d| Ms(d.mean_ms)),
        turnaround_p99_ms: turnaround.map(|d| Ms(d.p99_ms)),
        fairness: o.fairness,
        failures: o.failures,
        restarts: count(|j| j.restarts),
        preemptions: count(|j| j.preemptions),
        migrations: o.migrations,
        drains: o.drains,
        useful_gpu_hours,
        usd_per_useful_gpu_hour: (useful_gpu_hours > 0.0).then(|| (price + energy) / useful_gpu_hours),
        shrinks: o.shrinks,
        grows: o.grows,
        write_slowdown: o.write_slowdown_ppm.map(share_of),
        company_share: share(account.company),
        iteration_sets: measured.map(|m| m.sets),
        iteration_sets_asked: measured.map(|m| m.asked),
        iteration_set_most_jobs: measured.map(|m| m.max_jobs),
        iteration_audits: measured.map(|m| m.audited),
        iteration_error_mean: audited.map(|m| share_of(m.error_sum_ppm) / m.audited_jobs as f64),
        iteration_error_max: audited.map(|m| share_of(m.error_most_ppm)),
        beside_writes_share: (measured.is_some() && o.write_slowdown_ppm.is_some())
            .then(|| share(account.beside_writes / 1_000_000)),
        // Thousandths of samples over milliseconds.
        samples_per_s: o.samples_m.filter(|_| o.span_ms > 0).map(|samples| samples as f64 / o.span_ms as f64),
    }
}

fn sample(s: &ClusterSample) -> ClusterSampleRecord {
    ClusterSampleRecord {
        at_ms: Ms(s.at_ms),
        waiting_jobs: s.waiting_jobs,
        waiting_gpus: s.waiting_gpus,
        running_jobs: s.running_jobs,
        busy_gpus: s.busy_gpus,
        free_gpus: s.free_gpus,
        stranded_gpus: s.stranded_gpus,
        down_gpus: s.down_gpus,
        drained_gpus: s.drained_gpus,
        spare_gpus: s.spare_gpus,
        slowed_gpus: s.slowed_gpus,
    }
}

fn congestion(c: &ClusterCongestion) -> ClusterCongestionRecord {
    let times = |ppm: u64| ppm as f64 / 1e6;
    ClusterCongestionRecord {
        job: c.job.to_string(),
        from_ms: Ms(c.from_ms),
        to_ms: Ms(c.to_ms),
        link: c.link.clone(),
        set_off_by: c.set_off_by.as_deref().map(str::to_string),
        slowdown: times(c.slowdown_ppm),
        worst_slowdown: times(c.worst_slowdown_ppm),
        nic_share: times(c.nic_ppm),
        sharing: c.sharing.join(" "),
    }
}

fn map_row(m: &ClusterMapRow) -> ClusterMapRecord {
    let mean = |gpus: u64| gpus as f64 / m.looks.max(1) as f64;
    ClusterMapRecord {
        from_ms: Ms(m.from_ms),
        to_ms: Ms(m.to_ms),
        first_server: m.first_server.into(),
        servers: m.servers.into(),
        used_gpus: mean(m.gpus.used),
        idle_gpus: mean(m.gpus.idle),
        down_gpus: mean(m.gpus.down),
        drained_gpus: mean(m.gpus.drained),
        spare_gpus: mean(m.gpus.spare),
    }
}

fn job(j: &ClusterJobOutcome) -> ClusterJobRecord {
    let ended = match j.phase {
        JobPhase::Ahead => "ahead",
        JobPhase::Waiting => "waiting",
        JobPhase::Running => "running",
        JobPhase::Done => "done",
        JobPhase::GivenUp => "given up",
    };
    let worst = j.speed.worst.as_ref();
    let times = |ppm: u64| ppm as f64 / 1e6;
    ClusterJobRecord {
        job: j.name.to_string(),
        user: j.user.to_string(),
        priority: j.priority.into(),
        gpus: j.gpus.into(),
        submit_ms: Ms(j.submit_ms),
        start_ms: j.start_ms.map(Ms),
        end_ms: j.end_ms.map(Ms),
        duration_ms: Ms(j.duration_ms),
        ended: ended.into(),
        queued_ms: Ms(j.queued_ms),
        restarts: j.restarts,
        preemptions: j.preemptions,
        lost_work_ms: Ms((j.lost_ns / NS_PER_MS) as u64),
        slowdown: j.speed.slowdown_ppm.map(times),
        company_slowdown: j.speed.by_company_ppm.map(times),
        worst_company_slowdown: worst.map(|(ppm, ..)| times(*ppm)),
        worst_beside: worst.map(|(_, jobs, _)| jobs.join(" ")),
        worst_link: worst.map(|(_, _, link)| link.clone()),
        class: j.class.as_ref().map(ToString::to_string),
        iteration_s: j.iteration_ps.map(|ps| ps as f64 / 1e12),
        samples_per_s: j.iteration_ps.zip(j.samples_an_iteration).map(|(ps, n)| f64::from(n) * 1e12 / ps as f64),
    }
}
