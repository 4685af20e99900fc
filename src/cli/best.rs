//! The best configuration of a run, in one line for each kind of work, and the recommended design over all of them.
//!
//! Layer: cli. It prints what `hyperfold compare` finds in the folder: means over replicas, ties, and the front of a search for several objectives. The
//! recommendation is that of the report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::submit::quote;
use hyperfold_analysis::compare::knee::knees;
use hyperfold_analysis::compare::metric::searched_by;
use hyperfold_analysis::compare::rank::Ranked;
use hyperfold_analysis::compare::{Better, RankedGroup, RankingMetric, Study, front, rank};
use hyperfold_analysis::recommendation::recommend::{Alternative, Recommendation, Recommended, of_folder};
use hyperfold_config::spec::{self, split_job_name};
use hyperfold_results::{Cell, RunColumns};

use super::compare_render::shown;
use super::exit::with_causes;
use super::{knee, table};
use hyperfold_base::units::counted;

/// Number of workloads whose best configuration is printed.
const BESTS_UP_TO: usize = 8;
/// Number of experiments that are listed.
const NAMED_UP_TO: usize = 6;

/// Lines for standard output. `candidates` is the number of experiments that a search chose from. `tight` says for each experiment why it may need more
/// memory than its GPUs have.
pub(super) fn lines(dir: &Path, candidates: Option<u64>, tight: &BTreeMap<u64, String>) -> Vec<String> {
    let study = match Study::open(&[dir]) {
        Ok(study) => study,
        Err(error) => return vec![format!("nothing is ranked: {}", with_causes(&anyhow::Error::new(error)))],
    };
    let Ok(metric) = RankingMetric::default_of(&study) else {
        return vec!["no experiment completed".into()];
    };
    let mut lines = Vec::new();
    if let Some(candidates) = candidates {
        lines.push(format!(
            "a search: {} of {} {} run in full; optimize.csv says how the others fared",
            study.runs[0].rows.len(),
            counted(candidates, "experiment"),
            if candidates == 1 { "was" } else { "were" }
        ));
    }
    let groups: Vec<RankedGroup> = rank(&study, &metric).into_iter().filter(|g| !g.ranked.is_empty()).collect();
    let objectives = searched_by(&study);
    // The only conclusion of a sweep over load is its knee.
    let knees = knees(&study);
    if !knees.is_empty() && objectives.is_empty() {
        lines.extend(knee::lines(&study, &knees, usd));
        lines.extend(study.runs[0].incomplete().map(|why| format!("this is not all yet: {why}")));
        return lines;
    }
    for group in groups.iter().take(BESTS_UP_TO) {
        lines.push(best(&study, &metric, group));
        if objectives.len() > 1 {
            lines.push(of_front(&study, &objectives, group));
        }
    }
    if groups.len() > BESTS_UP_TO {
        lines.push(format!("... and the best of {}", counted(groups.len() - BESTS_UP_TO, "more workload")));
    }
    if groups.is_empty() {
        lines.push("no experiment completed".into());
    }
    lines.extend(by_which_job(&study.runs[0], &metric.name));
    match study.runs[0].incomplete() {
        Some(why) => lines.push(format!("nothing is recommended yet: {why}")),
        // An error of reading the folder was reported above.
        None => {
            let found = of_folder(dir).ok().flatten();
            lines.extend(found.iter().flat_map(recommended));
            lines.extend(found.and_then(|r| memory(&r, r.recommendation.as_ref()?, tight)));
        }
    }
    lines
}

/// If there are several jobs: the job whose metric the ranking uses, and how to rank by another job.
fn by_which_job(run: &RunColumns, metric: &str) -> Option<String> {
    let job = run.job_of_column(metric)?;
    let of_jobs = run.columns.iter().filter_map(|c| Some((split_job_name(&c.name)?, &c.name)));
    let other =
        of_jobs.filter(|((other, measure), _)| *other != job && *measure == metric).map(|(_, name)| name).next();
    let hint = other.map(|name| {
        let (dir, name) = (quote::shell(&run.path.display().to_string()), quote::shell(name));
        format!("; by another: `hyperfold compare {dir} --metric {name}`")
    });
    Some(format!("ranked by the {} of job {job}{}", words(metric), hint.unwrap_or_default()))
}

/// The recommendation: what to build, what another choice would cost, and the price. Empty if there is nothing to choose.
pub(super) fn recommended(r: &Recommended) -> Vec<String> {
    let (unmodelled, apart) = (unmodelled(r), not_compared(r));
    let Some(best) = &r.recommendation else {
        let nothing = match (unmodelled.is_empty(), apart.is_empty()) {
            (true, true) => None,
            (false, true) => Some("nothing is recommended: no axis that tries designs was simulated".to_string()),
            (_, false) => Some("nothing is recommended: no designs are left that can be compared".to_string()),
        };
        return nothing.into_iter().chain(unmodelled).chain(apart).collect();
    };
    let scope = scope(r, best.groups);
    let for_all = scope.as_ref().map_or(String::new(), |scope| format!(" for all {scope}"));
    let regret = match best.groups {
        1 => String::new(),
        _ if best.worst <= 0.0 => format!("; it has the best {} of each", words(&r.metric.name)),
        _ => format!(
            "; on average it {} each one's own best, {} where it does worst",
            is_worse_than(r, best.regret),
            share(best.worst)
        ),
    };
    let mut lines = vec![format!("recommended{for_all}: {}{regret}", in_words(r, best.configuration))];
    lines.extend(around(r, best, scope.as_deref()));
    lines.extend(left_out(r, best));
    lines.extend(unmodelled);
    lines.extend(apart);
    lines.extend(next(r, best));
    lines.extend(price_line(r, best));
    lines
}

/// Beginnings of lines about axes that no experiment simulated, and about axes whose values are not compared.
const NOT_SIMULATED: &str = "  not simulated: ";
const NOT_COMPARED: &str = "  not compared: ";

/// Whether a line says of which axes the recommendation says nothing.
pub(super) fn is_of_axes_left_out(line: &str) -> bool {
    line.starts_with(NOT_SIMULATED) || line.starts_with(NOT_COMPARED)
}

/// Lines about axes that no experiment simulated, one for each reason.
fn unmodelled(r: &Recommended) -> Vec<String> {
    let axes = r.design.not_simulated().map(|(axis, why)| (r.design.axes[axis].key.as_str(), why));
    by_reason(NOT_SIMULATED, axes)
}

/// Lines about axes whose values are not compared, one for each reason.
fn not_compared(r: &Recommended) -> Vec<String> {
    by_reason(NOT_COMPARED, r.design.not_compared())
}

/// Lines with the axes of each reason. `axes`: key and reason of each.
fn by_reason<'a>(beginning: &str, axes: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, why) in axes {
        match by_reason.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, keys)) => keys.push(key),
            None => by_reason.push((why, vec![key])),
        }
    }
    by_reason.iter().map(|(why, keys)| format!("{beginning}{}; {why}", listed(keys))).collect()
}

/// The number and kind of groups that a recommendation averages over. `None`: there is a single ranking.
fn scope(r: &Recommended, groups: usize) -> Option<String> {
    let [_, several] = r.design.kinds_of_groups();
    (groups > 1).then(|| format!("{groups} {several}"))
}

/// In how many of the ways of simulating an axis was simulated, as a clause. Empty if it is all.
fn simulated_in(r: &Recommended, best: &Recommendation, others: &[Alternative]) -> String {
    let shown = others.first().map_or(best.groups, |other| other.groups);
    if shown == best.groups {
        return String::new();
    }
    let [_, several] = r.design.kinds_of_groups();
    let verb = if shown == 1 { "simulates" } else { "simulate" };
    format!("; of the {} {several}, {shown} {verb} it", best.groups)
}

/// Lines about the other values of each axis, with all other axes as in the recommended design.
fn around(r: &Recommended, best: &Recommendation, scope: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    // Axes whose other values are all as good get no line of their own.
    let (idle, told): (Vec<_>, Vec<_>) = best.axes.iter().partition(|(_, others)| others.iter().all(|o| o.tied));
    if !told.is_empty() {
        let averaged = scope.map_or(String::new(), |scope| format!(", averaged over the {scope}"));
        lines.push(format!("  with all else the same{averaged}:"));
    }
    for (axis, others) in told {
        let value = |c: usize| spec::shown_value(&r.sheet.axes()[*axis].text[r.design.configurations[c].rows[0]]);
        let (tied, worse): (Vec<&Alternative>, Vec<&Alternative>) = others.iter().partition(|o| o.tied);
        let named: Vec<&str> = tied.iter().take(NAMED_UP_TO).map(|o| value(o.configuration)).collect();
        let more = tied.len().saturating_sub(NAMED_UP_TO);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let are = if tied.len() == 1 { "is" } else { "are" };
        let mut said: Vec<String> =
            (!tied.is_empty()).then(|| format!("{}{more} {are} as good", listed(&named))).into_iter().collect();
        let told = worse.iter().take(NAMED_UP_TO);
        said.extend(told.map(|o| format!("{} {}{}", value(o.configuration), is_worse(r, o.worse), price(best, o))));
        let unsaid = worse.len().saturating_sub(NAMED_UP_TO);
        said.extend((unsaid > 0).then(|| format!("{} worse", counted(unsaid, "more value"))));
        let (key, simulated) = (&r.design.axes[*axis].key, simulated_in(r, best, others));
        lines.push(format!("  {key} {}: {}{simulated}", value(best.configuration), said.join("; ")));
    }
    if !idle.is_empty() {
        let keys: Vec<&str> = idle.iter().map(|(axis, _)| r.design.axes[*axis].key.as_str()).collect();
        let replicas = r.design.configurations[best.configuration].rows.len();
        lines.push(match replicas {
            1 => format!("  does not matter here: {}", listed(&keys)),
            n => format!("  not decided by {n} replicas: {}", listed(&keys)),
        });
    }
    lines
}

/// Line about designs that are not compared, as an experiment of theirs has no result. A value that all designs left have lost is named.
fn left_out(r: &Recommended, best: &Recommendation) -> Option<String> {
    let rows = 0..r.sheet.rows();
    let without = rows.clone().filter(|&row| !r.sheet.ok(row)).count();
    if without == 0 {
        return None;
    }
    let failed = rows.filter(|&row| r.sheet.text("status", row) == "failed").count();
    let value = |c: usize, axis: usize| r.design.configurations[c].values[axis];
    let answers: Vec<usize> = r.design.answers().collect();
    let design = |c: usize| answers.iter().map(|&axis| value(c, axis)).collect::<Vec<_>>();
    let all: BTreeSet<Vec<u32>> = (0..r.design.configurations.len()).map(design).collect();
    let compared: Vec<usize> = best.others.iter().map(|o| o.configuration).chain([best.configuration]).collect();
    let values = |c: usize| answers.iter().map(move |&axis| (axis, value(c, axis)));
    let kept: BTreeSet<(usize, u32)> = compared.iter().flat_map(|&c| values(c)).collect();
    // Where memory does not suffice for some designs, only a value that has gone is news.
    let mut lost: BTreeMap<(usize, u32), String> = BTreeMap::new();
    for (c, (axis, level)) in (0..r.design.configurations.len()).flat_map(|c| values(c).map(move |v| (c, v))) {
        if !kept.contains(&(axis, level)) {
            let text = spec::shown_value(&r.sheet.axes()[axis].text[r.design.configurations[c].rows[0]]);
            lost.insert((axis, level), format!("{} {text}", r.design.axes[axis].key));
        }
    }
    let designs = all.len().saturating_sub(compared.len());
    if designs == 0 || (failed == 0 && lost.is_empty()) {
        return None;
    }
    let named: Vec<&str> = lost.values().take(NAMED_UP_TO).map(String::as_str).collect();
    let what = match lost.len().saturating_sub(NAMED_UP_TO) {
        _ if lost.is_empty() => counted(designs, "design"),
        0 => listed(&named),
        more => format!("{} and {more} more", listed(&named)),
    };
    let fate = if failed == without { "failed" } else { "without a result" };
    Some(format!(
        "  left out, as not all results are there: {what}; {without} of {} {fate}",
        counted(r.sheet.rows(), "experiment")
    ))
}

/// Line about the price of the recommended design, and of the cheapest one.
fn price_line(r: &Recommended, best: &Recommendation) -> Option<String> {
    let cost = best.cost_usd?;
    let other = match &best.cheapest {
        None => "; no other is cheaper".to_string(),
        Some(o) => format!(
            "; the cheapest, {}, {}{}",
            in_words(r, o.configuration),
            if o.tied { "is as good".to_string() } else { is_worse(r, o.worse) },
            price(best, o)
        ),
    };
    let keys: Vec<&str> = r.design.not_simulated().map(|(axis, _)| r.design.axes[axis].key.as_str()).collect();
    let apart = best.costs_apart.map_or(String::new(), |(low, high)| {
        format!(" ({} to {} by {}, not simulated)", usd(low), usd(high), listed(&keys))
    });
    Some(format!("  price: {}{apart}{other}", usd(cost)))
}

/// Line about the next best design, if it differs from the recommended one in several axes. Otherwise a line of an axis has it already.
fn next(r: &Recommended, best: &Recommendation) -> Option<String> {
    let next = best.others.iter().find(|o| !o.tied)?;
    let in_axes = best.axes.iter().flat_map(|(_, others)| others);
    if in_axes.clone().any(|o| o.configuration == next.configuration) {
        return None;
    }
    let (name, worse) = (in_words(r, next.configuration), is_worse(r, next.worse));
    Some(format!("  next best: {name}, {worse}{}", price(best, next)))
}

/// Line that the recommended design may need more memory than its GPUs have, with the best design that does not. `None`: it does not.
fn memory(r: &Recommended, best: &Recommendation, tight: &BTreeMap<u64, String>) -> Option<String> {
    let why = |c: usize| {
        let ids = r.design.configurations[c].rows.iter().map(|&row| r.sheet.text("exp_id", row).parse::<u64>());
        ids.flatten().find_map(|id| tight.get(&id))
    };
    let text = why(best.configuration)?;
    let fits = best.others.iter().find(|o| why(o.configuration).is_none());
    Some(match fits {
        Some(o) if o.tied => {
            format!("  memory: {text}; {} needs no more than there is and is as good", in_words(r, o.configuration))
        }
        Some(o) => format!(
            "  memory: {text}; the best that needs no more than there is, {}, {}{}",
            in_words(r, o.configuration),
            is_worse(r, o.worse),
            price(best, o)
        ),
        None => format!("  memory: {text}; so does every other design that completed"),
    })
}

/// Values of a design on its axes.
fn in_words(r: &Recommended, configuration: usize) -> String {
    let row = r.design.configurations[configuration].rows[0];
    let values = r.design.answers().map(|a| spec::told_value(&r.design.axes[a].key, &r.sheet.axes()[a].text[row]));
    values.collect::<Vec<_>>().join(", ")
}

/// How much worse a design is, as a clause. On average over workloads, another value may be slightly better in the shown metric.
fn is_worse(r: &Recommended, worse: f64) -> String {
    match (r.metric.better, r.metric.unit) {
        _ if worse <= 0.0 => "is as good on average".to_string(),
        (Better::Less, "ns") => format!("takes {} longer", share(worse)),
        (Better::Less, _) => format!("has {} more {}", share(worse), words(&r.metric.name)),
        // A rate is lower by 1 + `worse` as a factor.
        (Better::More, _) => format!("has {} less {}", share(worse / (1.0 + worse)), words(&r.metric.name)),
    }
}

fn is_worse_than(r: &Recommended, worse: f64) -> String {
    format!("{} than", is_worse(r, worse))
}

/// Price of another design compared with the recommended one, as a clause. Empty if prices are equal or unknown.
fn price(best: &Recommendation, other: &Alternative) -> String {
    match (best.cost_usd, other.cost_usd) {
        (Some(mine), Some(theirs)) if mine != theirs && mine > 0.0 => {
            let word = if theirs < mine { "less" } else { "more" };
            format!(" and costs {} ({}) {word}", usd((theirs - mine).abs()), share((theirs / mine - 1.0).abs()))
        }
        _ => String::new(),
    }
}

/// US dollars with four digits.
fn usd(v: f64) -> String {
    match v {
        _ if v >= 999_950.0 => format!("${} million", table::number(v / 1e6)),
        _ => format!("${}", table::number(v)),
    }
}

/// A share in percent with three digits.
fn share(v: f64) -> String {
    let percent: f64 = format!("{:.2e}", v * 100.0).parse().expect("a number as text is a number");
    format!("{} %", table::number(percent))
}

fn listed(names: &[&str]) -> String {
    match names {
        [one, two] => format!("{one} and {two}"),
        _ => names.join(", "),
    }
}

/// Lines about the best configuration of each kind of work in one of the study's folders, at most `max_lines`.
pub(super) fn of_workloads(study: &Study, run: usize, metric: Option<&RankingMetric>, max_lines: usize) -> Vec<String> {
    let Some(metric) = metric else { return vec!["best: no experiment completed".into()] };
    let mut groups = rank(study, metric);
    for group in &mut groups {
        group.ranked.retain(|r| study.configurations[r.configuration].run == run);
    }
    let told = groups.iter().filter(|g| !g.ranked.is_empty()).take(max_lines);
    told.map(|group| best(study, metric, group)).collect()
}

fn label_clause(group: &RankedGroup) -> String {
    let label = group.label();
    if label.is_empty() { label } else { format!(" of {label}") }
}

fn best(study: &Study, metric: &RankingMetric, group: &RankedGroup) -> String {
    let first = &group.ranked[0];
    let c = &study.configurations[first.configuration];
    let answers = (0..study.axes.len()).filter(|&a| !study.asks(&study.axes[a]));
    let values: Vec<String> =
        answers.map(|a| format!("{} {}", short(study, a), spec::shown_value(&c.values[a].to_string()))).collect();
    let values = if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) };
    let tokens = study
        .sample(c, "tokens_per_s")
        .filter(|_| metric.name == "iteration_time_ns")
        .map(|s| format!("{} tokens/s, ", table::number(s.mean)));
    let value = format!("{} {}", words(&metric.name), shown(&metric.name, &Cell::Real(first.sample.mean)));
    let mean = if first.sample.n > 1 { format!(", mean of {} replicas", first.sample.n) } else { String::new() };
    let tied: Vec<&Ranked> = group.ranked.iter().skip(1).take_while(|r| r.rank == first.rank).collect();
    let ties = match tied.len() {
        0 => String::new(),
        n => format!(
            "; {} {} as good",
            experiments(study, tied.iter().map(|r| r.configuration)),
            if n == 1 { "is" } else { "are" }
        ),
    };
    format!(
        "best{}: {}{values}, {}{value}{mean}{ties}",
        label_clause(group),
        experiments(study, [first.configuration]),
        tokens.unwrap_or_default()
    )
}

fn of_front(study: &Study, objectives: &[RankingMetric], group: &RankedGroup) -> String {
    let members = group.ranked.iter().map(|r| r.configuration).chain(group.without.iter().copied());
    let front = front(study, objectives, members);
    let names: Vec<String> = objectives.iter().map(|o| words(&o.name)).collect();
    let members = match front.len() {
        0 => "no experiment has all of them".to_string(),
        n => format!(
            "{n} of {}: {}",
            counted(group.ranked.len() + group.without.len(), "configuration"),
            experiments(study, front.iter().copied())
        ),
    };
    format!(
        "Pareto front{} of {}: {members}; `hyperfold compare` shows their values",
        label_clause(group),
        names.join(", ")
    )
}

/// List of the first experiments of configurations, by id.
fn experiments(study: &Study, configurations: impl IntoIterator<Item = usize>) -> String {
    let ids: Vec<String> = configurations.into_iter().map(|c| study.configurations[c].exp_id.to_string()).collect();
    let more = if ids.len() > NAMED_UP_TO { format!(" and {} more", ids.len() - NAMED_UP_TO) } else { String::new() };
    let named: Vec<&str> = ids.iter().take(NAMED_UP_TO).map(String::as_str).collect();
    format!("experiment{} {}{more}", if ids.len() > 1 { "s" } else { "" }, named.join(", "))
}

/// Name of an axis without its section, if that is unique.
fn short(study: &Study, axis: usize) -> &str {
    let key = study.axes[axis].as_str();
    let unique = study.axes.iter().filter(|a| spec::short_name(a) == spec::short_name(key)).count() == 1;
    if unique { spec::short_name(key) } else { key }
}

/// Name of a column as words. Its unit is shown with the value.
fn words(column: &str) -> String {
    column.trim_end_matches("_ns").trim_end_matches("_bytes").replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_analysis::compare::Ranking;
    use hyperfold_analysis::recommendation::design::Design;
    use hyperfold_analysis::recommendation::metric::metrics;
    use hyperfold_analysis::recommendation::recommend::recommendation;
    use hyperfold_analysis::recommendation::samples::MetricSamples;
    use hyperfold_analysis::recommendation::sheet::Sheet;
    use hyperfold_results::NotCompared;

    fn found(text: &str) -> Recommended {
        of_sheet(Sheet::from_lines(text))
    }

    fn of_sheet(sheet: Sheet) -> Recommended {
        let design = Design::of(&sheet);
        let metric = metrics(&sheet, &[]).into_iter().next().unwrap();
        let measured = MetricSamples::of(&sheet, &design, &metric, None);
        let rankings: Vec<Ranking> = (0..design.groups.len()).map(|g| measured.ranking(&design, g)).collect();
        let recommendation = recommendation(&design, &measured, &rankings);
        Recommended { metric, sheet, design, recommendation }
    }

    #[test]
    fn the_next_best_design_is_named_where_no_axis_names_it() {
        let grid = "exp_id,config_key,seed,t.kind,t.gbps,status,makespan_ns,cost_usd
            0,k0,1,rail,800,ok,100,900
            1,k1,1,clos,800,ok,110,800
            2,k2,1,rail,400,ok,120,700";
        let next_of = |text: &str| {
            let r = found(text);
            next(&r, r.recommendation.as_ref().unwrap())
        };
        assert_eq!(next_of(grid), None, "clos stands in the line of its axis");
        let apart = grid.replace("clos,800,ok,110", "clos,400,ok,110");
        let said = next_of(&apart).unwrap();
        assert_eq!(said, "  next best: clos, gbps 400, takes 10 % longer and costs $100 (11.1 %) less");
    }

    #[test]
    fn axes_that_one_way_leaves_out_are_told_with_the_others_figure() {
        let r = found(
            "exp_id,config_key,seed,workload.analytic,topology.oversubscription,status,makespan_ns,packet_hops
            0,k0,1,all,1,ok,100,0
            1,k1,1,all,4,ok,100,0
            2,k2,1,intra,1,ok,100,7
            3,k3,1,intra,4,ok,105,7",
        );
        let said = recommended(&r);
        let line = "  topology.oversubscription 1: 4 takes 5 % longer; of the 2 ways of simulating, 1 simulates it";
        assert!(said.iter().any(|l| l == line), "{said:?}");
    }

    #[test]
    fn axes_that_were_not_simulated_are_told_by_reason_and_the_price_is_the_lowest() {
        let r = found(
            "exp_id,config_key,seed,topology.kind,transport.cc,cluster.gpu,status,makespan_ns,packet_hops,cost_usd
            0,k0,1,rail,hpcc,h100,ok,100,0,900
            1,k1,1,clos,hpcc,h100,ok,100,0,800
            2,k2,1,rail,dcqcn,h100,ok,100,0,900
            3,k3,1,clos,dcqcn,h100,ok,100,0,800
            4,k4,1,rail,hpcc,a100,ok,120,0,500
            5,k5,1,clos,hpcc,a100,ok,120,0,400
            6,k6,1,rail,dcqcn,a100,ok,120,0,500
            7,k7,1,clos,dcqcn,a100,ok,120,0,400",
        );
        let said = recommended(&r).join("\n");
        for line in [
            "  not simulated: topology.kind and transport.cc; no packet",
            "  price: $800 ($800 to $900 by topology.kind and transport.cc, not simulated); the cheapest, a100, takes 20 % longer and costs $400 (50 %) less",
        ] {
            assert!(said.contains(line), "{line}\n{said}");
        }
    }

    #[test]
    fn values_whose_times_come_from_different_models_are_not_recommended() {
        let text = "exp_id,config_key,seed,cluster.gpu,transport.cc,status,makespan_ns
            0,k0,1,h100,hpcc,ok,100
            1,k1,1,h100,dcqcn,ok,110
            2,k2,1,l40s,hpcc,ok,50
            3,k3,1,l40s,dcqcn,ok,60";
        let found = |text: &str| {
            let mut sheet = Sheet::from_lines(text);
            sheet.asked.add_not_compared(&[NotCompared { key: "cluster.gpu".into(), why: "links of another".into() }]);
            recommended(&of_sheet(sheet)).join("\n")
        };
        let said = found(text);
        assert!(said.starts_with("recommended for all 2 ways of simulating: hpcc"), "{said}");
        assert!(said.contains("\n  not compared: cluster.gpu; links of another"), "{said}");
        let alone: Vec<&str> = text.lines().filter(|line| !line.contains("dcqcn")).collect();
        let said = found(&alone.join("\n"));
        let nothing = "nothing is recommended: no designs are left that can be compared\n  not compared: cluster.gpu;";
        assert!(said.starts_with(nothing), "{said}");
    }

    #[test]
    fn values_that_failed_experiments_leave_out_are_named() {
        let sweep = "exp_id,config_key,seed,transport.cc,workload.pattern,status,makespan_ns
            0,k0,1,hpcc,ring,ok,100
            1,k1,1,dcqcn,ring,ok,110
            2,k2,1,none,ring,ok,90
            3,k3,1,hpcc,incast,ok,200
            4,k4,1,dcqcn,incast,ok,210
            5,k5,1,none,incast,ok,220";
        let line = |text: &str| {
            let r = found(text);
            left_out(&r, r.recommendation.as_ref().unwrap())
        };
        assert_eq!(line(sweep), None);
        let said = line(&sweep.replace("ok,220", "failed,")).unwrap();
        assert_eq!(said, "  left out, as not all results are there: transport.cc none; 1 of 6 experiments failed");
        assert!(line(&sweep.replace("ok,220", "oom,")).unwrap().ends_with("1 of 6 experiments without a result"));
    }

    #[test]
    fn a_design_that_may_not_fit_is_said_to_with_the_best_that_does() {
        let r = found(
            "exp_id,config_key,seed,workload.microbatch,status,makespan_ns
            0,k0,1,2,ok,100
            1,k1,1,1,ok,105",
        );
        let memory = |r: &Recommended, tight: &_| memory(r, r.recommendation.as_ref().unwrap(), tight);
        let tight = |ids: &[u64]| ids.iter().map(|&id| (id, format!("the estimate of {id}"))).collect();
        assert_eq!(memory(&r, &tight(&[])), None);
        assert_eq!(memory(&r, &tight(&[1])), None, "another may be");
        let said = memory(&r, &tight(&[0])).unwrap();
        assert!(said.starts_with("  memory: the estimate of 0; the best that needs no more than there is, "), "{said}");
        assert!(said.ends_with("microbatch 1, takes 5 % longer"), "{said}");
        assert!(memory(&r, &tight(&[0, 1])).unwrap().ends_with("so does every other design that completed"));
    }
}
