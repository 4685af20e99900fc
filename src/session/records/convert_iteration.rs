//! Fills the columns of an iteration.
//!
//! Layer: session. A leaf of `convert`.

use hyperfold_base::units::PS_PER_S;
use hyperfold_host::Iteration;
use hyperfold_results::{ExperimentRecord, Ps};

/// Fills in the results of an iteration.
pub(crate) fn measured_iteration(r: &mut ExperimentRecord, i: &Iteration) {
    let t = &i.time;
    if t.total == 0 {
        return;
    }
    let [tp, pp, dp, ep, cp, other] = t.exposed.map(Ps);
    r.iteration_time = Some(Ps(t.total));
    r.compute = Some(Ps(t.compute));
    (r.comm_exposed_tp, r.comm_exposed_pp, r.comm_exposed_dp) = (Some(tp), Some(pp), Some(dp));
    (r.comm_exposed_ep, r.comm_exposed_cp) = (Some(ep), Some(cp));
    r.bubble = Some(Ps(t.bubble));
    r.optimizer = Some(Ps(t.optimizer));
    r.other = Some(Ps(t.other + other.0));
    r.critical_rank = Some(u64::from(i.rank));
    let seconds = t.total as f64 / PS_PER_S as f64;
    if i.tokens > 0 {
        r.tokens_per_s = Some(i.tokens as f64 / seconds);
        r.tokens_per_s_per_gpu = Some(i.tokens as f64 / seconds / i.ranks as f64);
    }
    if i.model_flops > 0 && i.peak_flops > 0 {
        r.mfu = Some(i.model_flops as f64 / seconds / (i.ranks as f64 * i.peak_flops as f64));
    }
    if let Some((bytes, (num, den))) = i.collective {
        let algbw = bytes as f64 * 8.0 / seconds / 1e9;
        r.algbw_gbps = Some(algbw);
        r.busbw_gbps = Some(algbw * num as f64 / den as f64);
    }
}
