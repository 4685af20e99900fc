//! Stops of an experiment at given times, at which the host changes its network ([`super::changes`]), looks after pauses ([`super::watchdog`]), reports
//! queues ([`super::queue_reports`]) or takes samples ([`super::series`]).
//!
//! Until its next stop, that time is the time limit of the experiment. So no system knows of stops, and every engine makes them. Everything before that time
//! is done then, and nothing at it or after it.

use crate::grow::{TooManyPackets, grow};
use crate::{changes, queue_reports, series, watchdog};
use hyperfold_columns::{Exp, NEVER, Tables, TimeSeries, mode, status};

/// Prepares the first stop: the tables hold the state at time 0, and the time limit is that of the experiment.
pub fn begin(t: &mut Tables) {
    let limit = t.exps[0].time_limit;
    if t.changes.may_stop() {
        t.exps[0].modes |= mode::CHANGES;
        t.changes.time_limit = limit;
        watchdog::plan(t);
        queue_reports::begin(t);
    }
    if t.series.is_on() {
        t.exps[0].modes |= mode::SAMPLED;
        t.series.time_limit = limit;
        series::begin(t);
    }
    t.exps[0].time_limit = next_limit(t, limit);
}

/// Whether the experiment has stopped for the host.
pub fn is_due(t: &Tables) -> bool {
    // At flow level the network changes within a run.
    let changes = |e: &Exp| e.modes & mode::CHANGES != 0 && t.changes.next_time().is_some();
    t.exps.first().is_some_and(|e| match e.status {
        status::TIME_LIMIT => changes(e) || watchdog_is_due(t) || report_is_due(t) || sample_is_due(t),
        // The last sample is taken when the outcome is read.
        status::DONE => changes(e) || watchdog::holds_packets(t),
        _ => false,
    })
}

/// Does that for which the experiment has stopped: samples, reports, changes, the watchdog. Then it lets the experiment go on. `packet_limit` is the maximum number of its
/// packet records.
///
/// PRECONDITION: `t` holds one experiment, and [`is_due`].
///
/// # Errors
/// It needs more records.
pub fn pass(t: &mut Tables, packet_limit: u64) -> Result<(), TooManyPackets> {
    let limit = if t.series.is_on() { t.series.time_limit } else { t.changes.time_limit };
    let change = t.changes.next_time();
    let ended = t.exps[0].status == status::DONE;
    let watched = if ended { watchdog::next_deadline(t, limit) } else { watchdog::next_stop(t, limit) };
    let next = change.unwrap_or(NEVER).min(watched.unwrap_or(NEVER));
    // An experiment without events is at the time of its next change.
    let now = if ended { next } else { t.exps[0].now };
    // Samples and reports see what was before their time, and a change comes first at its time.
    let until = now.min(next).min(limit);
    series::take_until(t, until);
    queue_reports::report_until(t, until);
    if ended && next == NEVER {
        // What waits for the watchdog waits beyond the limit.
        (t.exps[0].now, t.exps[0].status) = (limit, status::TIME_LIMIT);
        return Ok(());
    }
    if let Some(time) = change.filter(|&time| time == next && (time <= now || limit <= now)) {
        changes::make(t, time);
    }
    if let Some(time) = watched.filter(|&time| time == next && time <= now) {
        watchdog::act(t, time);
    }
    watchdog::plan(t);
    t.exps[0].time_limit = next_limit(t, limit);
    if t.exps[0].now >= limit && t.changes.next_time().is_none() && change.is_none() {
        return Ok(());
    }
    // Pools may be short too: the stop at a time limit hides that.
    grow(t, packet_limit)
}

/// Stops no longer for samples: whoever steps the experiment takes them itself. PRECONDITION: it stops for nothing else.
pub fn suspend_sampling(t: &mut Tables) {
    if t.series.is_on() {
        t.exps[0].modes &= !mode::SAMPLED;
        t.exps[0].time_limit = t.series.time_limit;
    }
}

/// Stops for samples again, from the next sample time on, after [`suspend_sampling`].
pub fn resume_sampling(t: &mut Tables) {
    if t.series.is_on() {
        t.exps[0].modes |= mode::SAMPLED;
        t.exps[0].time_limit = next_limit(t, t.series.time_limit);
    }
}

/// Takes no more samples, and forgets those that were taken.
pub fn stop_sampling(t: &mut Tables) {
    if t.series.is_on() {
        let limit = t.series.time_limit;
        t.series = TimeSeries::default();
        t.exps[0].time_limit = next_limit(t, limit);
    }
}

/// Whether the watchdog has something to do before the experiment goes on.
fn watchdog_is_due(t: &Tables) -> bool {
    watchdog::next_stop(t, t.changes.time_limit).is_some_and(|time| time <= t.exps[0].now)
}

/// Whether there is a report to be made before the experiment goes on.
fn report_is_due(t: &Tables) -> bool {
    queue_reports::next_stop(t, t.changes.time_limit).is_some_and(|time| time <= t.exps[0].now)
}

/// Whether there is a sample to be taken before the experiment goes on.
fn sample_is_due(t: &Tables) -> bool {
    t.series.next_time().is_some_and(|time| time <= t.exps[0].now && time < t.series.time_limit)
}

/// Time of the next stop, `limit` at the latest.
fn next_limit(t: &Tables, limit: u64) -> u64 {
    let times = [
        t.changes.next_time(),
        watchdog::next_stop(t, limit),
        queue_reports::next_stop(t, limit),
        t.series.next_time(),
    ];
    times.into_iter().flatten().fold(limit, u64::min)
}
