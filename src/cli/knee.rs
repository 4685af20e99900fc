//! Conclusion of a sweep over request rates, in words: up to which rate each design keeps the bounds.
//!
//! Layer: cli. [`hyperfold_analysis::compare::knee`] finds it.

use super::table::number;
use hyperfold_analysis::compare::Study;
use hyperfold_analysis::compare::knee::{HOLDS_FROM, Knee, KneeGroup, is_rate};
use hyperfold_base::units::counted;
use hyperfold_config::spec;

/// Number of questions whose knees are printed.
const GROUPS_UP_TO: usize = 8;
/// Number of designs of each question that are listed.
const NAMED_UP_TO: usize = 6;

/// Lines for standard output. `usd` formats a price. PRECONDITION: there is a group.
pub(super) fn lines(study: &Study, groups: &[KneeGroup], usd: fn(f64) -> String) -> Vec<String> {
    let mut lines: Vec<String> = groups.iter().take(GROUPS_UP_TO).flat_map(|group| of_group(study, group)).collect();
    if groups.len() > GROUPS_UP_TO {
        lines.push(format!("... and the knees of {}", counted(groups.len() - GROUPS_UP_TO, "more workload")));
    }
    if let [group] = groups
        && group.knees.len() > 1
    {
        lines.push(recommended(study, group, usd));
    }
    lines
}

fn of_group(study: &Study, group: &KneeGroup) -> Vec<String> {
    let label = group.label();
    let workload = if label.is_empty() { label } else { format!(" of {label}") };
    let named = |knee: &Knee| {
        let design = design(study, knee);
        if design.is_empty() { design } else { format!("{design}: ") }
    };
    let line = |(n, knee): (usize, &Knee)| match n {
        0 => format!("knee{workload}: {}{}", named(knee), told(knee, true)),
        _ => format!("  {}{}", named(knee), told(knee, false)),
    };
    let more = group.knees.len().saturating_sub(NAMED_UP_TO);
    let rest = (more > 0).then(|| format!("  ... and {}", counted(more, "more design")));
    group.knees.iter().take(NAMED_UP_TO).enumerate().map(line).chain(rest).collect()
}

/// A knee in words. With `whole`, the bounds are named.
fn told(knee: &Knee, whole: bool) -> String {
    let bounds = if whole { " of requests keep both bounds (ttft_bound_ms, tpot_bound_ms)" } else { "" };
    let min_share = format!("{} %", number(HOLDS_FROM * 100.0));
    // Shares are rounded down, so that a rate that does not hold never looks as if it did.
    let percent = |share: f64| format!("{} %", number((share * 1000.0).floor() / 10.0));
    match (knee.holds, knee.fails) {
        (Some(holds), Some(fails)) => {
            let clause = if whole { format!(", the highest rate at which {min_share}{bounds}") } else { String::new() };
            format!(
                "{} requests/s{clause}; at {}, {} do",
                number(holds.rate),
                number(fails.rate),
                percent(fails.within)
            )
        }
        (Some(holds), None) => {
            let clause = if whole { format!(", where {min_share}{bounds}") } else { String::new() };
            format!(
                "{} requests/s{clause}, the highest rate that was tried: the knee may lie beyond",
                number(holds.rate)
            )
        }
        (None, Some(fails)) => {
            let lowest = format!("below {} requests/s, the lowest rate that was tried", number(fails.rate));
            format!("{lowest}: there {}{bounds}", percent(fails.within))
        }
        (None, None) => "no rate was tried".to_string(),
    }
}

/// The recommendation: the design with the highest knee, if there is a single one.
fn recommended(study: &Study, group: &KneeGroup, usd: fn(f64) -> String) -> String {
    let best = &group.knees[0];
    match (best.holds, group.n_best()) {
        (None, _) => "nothing is recommended: no design keeps the bounds at any rate that was tried".to_string(),
        (Some(_), 1) => {
            let cost = study.sample(&study.configurations[best.configuration], "cost_usd");
            let price = cost.map_or(String::new(), |cost| format!("; price: {}", usd(cost.mean)));
            format!("recommended: {}, which keeps the bounds at the highest rate{price}", design(study, best))
        }
        (Some(holds), n) => {
            let between = match best.fails {
                Some(fails) => format!("rates between {} and {}", number(holds.rate), number(fails.rate)),
                None => format!("rates above {}", number(holds.rate)),
            };
            format!("not decided by these rates: {n} designs have the highest knee; try {between}")
        }
    }
}

/// Values of a design on the axes that change only how work is done, without the rate.
fn design(study: &Study, knee: &Knee) -> String {
    let c = &study.configurations[knee.configuration];
    let is_answer = |axis: &usize| !study.asks(&study.axes[*axis]) && !is_rate(&study.axes[*axis]);
    let value = |axis: usize| spec::named_value(&study.axes[axis], &c.values[axis]);
    (0..study.axes.len()).filter(is_answer).map(value).collect::<Vec<_>>().join(", ")
}
