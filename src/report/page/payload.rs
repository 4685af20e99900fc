//! All data of a page, as JSON: the table's texts, statistics by configuration, and excerpts of the companion files.
//!
//! Layer: report. `assets/report/*.js` read these names in the JSON. Results are strings, so that no browser rounds them; values computed here are numbers.

use std::path::Path;

use serde_json::{Map, Value, json};

use hyperfold_analysis::compare;
use hyperfold_analysis::compare::fit::{AxisEffect, LevelEffect, Scale, effects};
use hyperfold_analysis::compare::knee;
use hyperfold_analysis::compare::spread::half_width;
use hyperfold_analysis::compare::{Better, Ranking, Sample};
use hyperfold_analysis::dominance::front_of;
use hyperfold_analysis::recommendation::design::Design;
use hyperfold_analysis::recommendation::load::LoadedFolder;
use hyperfold_analysis::recommendation::metric::{Metric, metrics};
use hyperfold_analysis::recommendation::recommend::{Alternative, Recommendation, recommendation};
use hyperfold_analysis::recommendation::samples::MetricSamples;
use hyperfold_analysis::recommendation::sheet::{Holds, SheetColumn};
use hyperfold_analysis::recommendation::verdict::{Overall, overall, verdict};

use super::clusters;
use super::details::{self, Excerpt, POINTS};
use super::error::ReportError;
use super::reasons::reasons;
use super::shared_links;

/// Number of groups whose effects and Pareto fronts are included. Rankings of all groups are included.
const GROUPS_UP_TO: usize = 40;
/// Number of experiments whose flows and links are included.
const DETAILED: usize = 240;
/// Number of designs in the ranking across groups.
const OVERALL: usize = 10;
/// Number of configurations in the picture of a group's ranking.
const PICTURED: usize = 12;
/// Number of experiments whose map of servers is included.
const MAPPED: usize = 8;
/// Number of experiments whose network is sketched.
const SKETCHED: usize = 8;

/// All data of the page.
///
/// # Errors
/// A companion file is damaged.
pub fn payload(loaded: &LoadedFolder, dir: &Path) -> Result<Value, ReportError> {
    let sheet = &loaded.sheet;
    let design = Design::of(sheet);
    let metrics = metrics(sheet, &loaded.objectives);
    let audits = loaded.times_error.as_ref();
    let measured: Vec<MetricSamples> = metrics.iter().map(|m| MetricSamples::of(sheet, &design, m, audits)).collect();
    let rankings: Vec<Vec<Ranking>> =
        (0..design.groups.len()).map(|g| measured.iter().map(|m| m.ranking(&design, g)).collect()).collect();
    let mut of_groups = Vec::new();
    for ranking in &rankings {
        let one = |m: usize| {
            let r = &ranking[m];
            let verdict = verdict(&design, &measured[m], r);
            json!({
                "order": r.order,
                // Uncertainty of the first configurations: the standard deviation of the replicas, or the audited error.
                "error": r.order.iter().take(PICTURED).filter_map(|&c| Some(short(measured[m].values[c].as_ref()?.uncertainty()))).collect::<Vec<_>>(),
                "starts": r.starts,
                "verdict": verdict.map(|v| json!({
                    "best": v.best,
                    "tied": v.leaders.len(),
                    "leaders": v.leaders.iter().take(PICTURED).collect::<Vec<_>>(),
                    "next": v.next,
                    "lead": v.lead.map(short),
                    "threshold": v.threshold.map(short),
                    "paired": v.paired,
                    "decides": v.decides.iter().map(|d| json!({
                        "axis": d.axis,
                        "others": d.others.iter().map(|o| json!([o.0, short(o.1), o.2])).collect::<Vec<_>>(),
                    })).collect::<Vec<_>>(),
                })),
            })
        };
        of_groups.push((0..metrics.len()).map(one).collect::<Vec<Value>>());
    }
    let ids = chosen(loaded, &design, &rankings);
    let bests: Vec<usize> = rankings.iter().filter_map(|r| r.first()?.order.first().copied()).take(SKETCHED).collect();
    let first_ok = |&c: &usize| design.configurations[c].rows.iter().copied().find(|&row| sheet.ok(row));
    let sketched: Vec<u64> =
        bests.iter().filter_map(first_ok).filter_map(|row| sheet.text("exp_id", row).parse().ok()).collect();
    // A map is as large as all other data of an experiment together.
    let mapped: Vec<u64> = {
        let shown = rankings.iter().filter_map(|r| r.first()).flat_map(|r| r.order.iter().take(MAPPED));
        let mut ids: Vec<u64> =
            shown.filter_map(first_ok).filter_map(|row| sheet.text("exp_id", row).parse().ok()).take(MAPPED).collect();
        ids.sort_unstable();
        ids
    };
    let replicated = design.configurations.iter().any(|c| c.rows.len() > 1);
    Ok(json!({
        "manifest": loaded.manifest,
        "state": loaded.state,
        "columns": sheet.columns.iter().map(column).collect::<Vec<_>>(),
        "rows": sheet.rows(),
        "axes": [sheet.axes.start, sheet.axes.end],
        "stats": loaded.stats.iter().map(column).collect::<Vec<_>>(),
        "design": {
            "axes": (0..design.axes.len()).map(|a| axis(&design, a)).collect::<Vec<_>>(),
            "kinds": design.kinds_of_groups(),
            "groups": design.groups,
            "group": design.configurations.iter().map(|c| c.group).collect::<Vec<_>>(),
            // Without replicas, configuration and row have the same index.
            "members": replicated.then(|| design.configurations.iter().map(|c| c.rows.clone()).collect::<Vec<_>>()),
        },
        "metrics": metrics.iter().map(|m| json!({ "name": m.name, "label": m.label, "unit": m.unit, "more": m.better == Better::More })).collect::<Vec<_>>(),
        "means": replicated.then(|| measured.iter().map(means).collect::<Vec<_>>()),
        // All replicas are alike: nothing in the run depends on the seed.
        "constant": replicated && measured.iter().all(|m| m.values.iter().flatten().all(|v| v.sample.deviation == 0.0)),
        "search": search(loaded, &measured, &metrics, &rankings),
        "audit": audits.and_then(largest),
        "steady": loaded.stats.iter().find(|c| c.name == "steady_error").and_then(largest),
        "rankings": of_groups,
        "knees": knees(loaded, dir),
        "overall": measured.iter().enumerate().map(|(m, s)| best_overall(&design, s, &rankings, m)).collect::<Vec<_>>(),
        "recommendations": measured.iter().enumerate().map(|(m, s)| recommended(&design, s, &rankings, m)).collect::<Vec<_>>(),
        "effects": all_effects(&design, &measured, &rankings),
        "pareto": all_fronts(&measured, &rankings),
        "flows": details::flows(dir, &ids)?.map(flows),
        "links": details::links(dir, &ids, &sketched)?.map(links),
        "shared": shared_links::links(dir, &ids)?.map(|found| excerpt(found, |s| json!({ "links": s.links, "busiest": s.busiest }))),
        "sharing": shared_links::jobs(dir, &ids)?.map(|found| excerpt(found, |jobs| json!(jobs))),
        "cluster": details::clusters(dir, &ids)?.map(|found| excerpt(found, |points| json!(points))),
        "map": clusters::maps(dir, &mapped)?.map(|found| excerpt(found, |m| json!({ "hours": m.hours.iter().map(|h| short(*h)).collect::<Vec<_>>(), "servers": m.servers, "shares": m.shares }))),
        "crowded": clusters::congestion(dir, &ids)?.map(|found| excerpt(found, |c| json!({ "times": c.times, "jobs": c.jobs, "lost": short(c.lost_hours), "worst": c.worst, "links": c.links.iter().map(|l| json!([l.0, short(l.1), l.2])).collect::<Vec<_>>() }))),
        "detailed": {
            "shown": ids.len(),
            "of": rankings.iter().filter_map(|r| r.first()).map(|r| r.order.len()).sum::<usize>(),
            "each": each_of(&rankings),
            "groups": rankings.len().min(DETAILED),
        },
        "reasons": reasons(sheet).iter().map(|r| json!({ "status": r.status, "count": r.count, "message": r.message, "same_message": r.same_message, "named": r.named })).collect::<Vec<_>>(),
    }))
}

/// An axis of the design. `notSimulatedIn` has the reason for each group, if only some groups left it out.
fn axis(design: &Design, a: usize) -> Value {
    let of_group = |g: usize| {
        let first = design.configurations.iter().position(|c| c.group == g);
        first.and_then(|c| design.unmodelled.why(a, c))
    };
    let in_groups =
        design.unmodelled.is_partial(a).then(|| (0..design.groups.len()).map(of_group).collect::<Vec<Option<&str>>>());
    let axis = &design.axes[a];
    json!({
        "key": axis.key,
        "levels": axis.levels,
        "question": axis.question,
        "notSimulated": design.unmodelled.everywhere(a),
        "notSimulatedIn": in_groups,
        "notCompared": axis.not_compared,
        "binned": axis.binned,
    })
}

/// Rounds to six significant digits, more than a picture shows.
fn short(x: f64) -> f64 {
    format!("{x:.5e}").parse().expect("a number as text is a number")
}

/// Largest absolute value of a column of relative errors. `None`: the column is empty.
fn largest(audits: &SheetColumn) -> Option<f64> {
    (0..audits.text.len()).filter_map(|row| audits.number(row)).map(f64::abs).reduce(f64::max)
}

/// A column as JSON. If texts repeat, each distinct text is included once, with an index for each row.
fn column(c: &SheetColumn) -> Value {
    let mut head = Map::new();
    head.insert("name".into(), c.name.as_str().into());
    head.insert("number".into(), (c.holds == Holds::Number).into());
    let mut places = std::collections::HashMap::new();
    let mut texts: Vec<&str> = Vec::new();
    let mut place = |text| {
        *places.entry(text).or_insert_with(|| {
            texts.push(text);
            texts.len() - 1
        })
    };
    let text_of_row: Vec<usize> = c.text.iter().map(|t| place(t.as_str())).collect();
    if texts.len() * 2 <= text_of_row.len() {
        head.insert("texts".into(), json!(texts));
        // If all rows have the same text, there is no list of indices.
        head.insert("of".into(), if texts.len() == 1 { Value::Null } else { json!(text_of_row) });
    } else {
        head.insert("text".into(), json!(c.text));
    }
    Value::Object(head)
}

/// Means of all configurations, and half the widths of their 95 % intervals.
fn means(measured: &MetricSamples) -> Value {
    let samples = || (0..measured.values.len()).map(|c| measured.sample(c));
    let mean = samples().map(|s| s.map(|s| s.mean)).collect::<Vec<_>>();
    let half = samples().map(|s| s.and_then(|s| half_width(&s)).map(short)).collect::<Vec<_>>();
    json!({ "mean": mean, "half": half })
}

fn best_overall(design: &Design, measured: &MetricSamples, rankings: &[Vec<Ranking>], m: usize) -> Value {
    if rankings.len() < 2 {
        return Value::Null;
    }
    let of_metric: Vec<Ranking> = rankings.iter().map(|r| r[m].clone()).collect();
    let one = |o: &Overall| json!({ "configuration": o.configuration, "regret": short(o.regret), "worst": short(o.worst), "tied": o.tied, "error": short(o.error) });
    overall(design, measured, &of_metric).iter().take(OVERALL).map(one).collect()
}

/// Recommendation by a metric; the command line shows the same.
fn recommended(design: &Design, measured: &MetricSamples, rankings: &[Vec<Ranking>], m: usize) -> Value {
    let of_metric: Vec<Ranking> = rankings.iter().map(|r| r[m].clone()).collect();
    let other = |o: &Alternative| json!({ "configuration": o.configuration, "worse": short(o.worse), "tied": o.tied, "groups": o.groups, "cost": o.cost_usd });
    let one = |r: Recommendation| {
        let axis = |(axis, others): &(usize, Vec<Alternative>)| json!({ "axis": axis, "others": others.iter().map(other).collect::<Vec<_>>() });
        json!({
            "configuration": r.configuration,
            "cost": r.cost_usd,
            "costsApart": r.costs_apart.map(|(low, high)| [low, high]),
            "cheapest": r.cheapest.as_ref().map(other),
            "axes": r.axes.iter().map(axis).collect::<Vec<_>>(),
        })
    };
    recommendation(design, measured, &of_metric).map_or(Value::Null, one)
}

/// Effects by metric: for each group, and for all groups together if there are several.
fn all_effects(design: &Design, measured: &[MetricSamples], rankings: &[Vec<Ranking>]) -> Value {
    let grid = design.grid();
    let everything: Vec<usize> = (0..design.configurations.len()).collect();
    let effects_among = |samples: &[Option<Sample>], chosen: &[usize]| -> Value {
        let one = |e: &AxisEffect| {
            let level = |l: &LevelEffect| {
                let interval = l.interval.map(|(low, high)| [short(low), short(high)]);
                json!({ "level": l.level, "n": l.n, "effect": short(l.effect), "interval": interval, "range": [short(l.range.0), short(l.range.1)] })
            };
            let levels: Vec<Value> = e.levels.iter().map(level).collect();
            json!({ "axis": e.axis, "ratio": e.scale == Scale::Ratio, "matched": e.matched, "negligible": e.is_negligible(), "span": short(e.span), "levels": levels })
        };
        let shows = |axis: usize, c: usize| design.unmodelled.shows(axis, c);
        effects(&grid, samples, chosen.iter().copied(), shows).iter().map(one).collect()
    };
    let of_metric = |(metric_idx, m): (usize, &MetricSamples)| {
        let samples: Vec<Option<Sample>> = everything.iter().map(|&c| m.sample(c)).collect();
        let groups: Vec<Value> =
            rankings.iter().take(GROUPS_UP_TO).map(|r| effects_among(&samples, &r[metric_idx].order)).collect();
        json!({ "groups": groups, "all": if rankings.len() > 1 { effects_among(&samples, &everything) } else { Value::Null } })
    };
    measured.iter().enumerate().map(of_metric).collect()
}

/// Pareto fronts of each group, for all pairs of metrics `a` and `b` with `b` > `a`.
fn all_fronts(measured: &[MetricSamples], rankings: &[Vec<Ranking>]) -> Value {
    let n = measured.len();
    let fronts = |group: &Vec<Ranking>| -> Value {
        (0..n)
            .map(|a| (a + 1..n).map(|b| json!(pair_front(&group[a], &measured[a], &measured[b]))).collect::<Vec<_>>())
            .collect()
    };
    rankings.iter().take(GROUPS_UP_TO).map(fronts).collect()
}

/// The Pareto front of two metrics, as [`front`] says it. A page has many of them.
fn pair_front(ranking: &Ranking, a: &MetricSamples, b: &MetricSamples) -> Vec<usize> {
    let value = |m: &MetricSamples, c: usize| m.mean(c).map(|mean| m.better.turned(mean));
    front_of(ranking.order.iter().filter_map(|&c| Some((c, [value(a, c)?, value(b, c)?]))))
}

/// The Pareto front of some metrics among ranked configurations, best first by the first of them. Those that lack a metric are not on it.
fn front(ranking: &Ranking, metrics: &[&MetricSamples]) -> Vec<usize> {
    let point = |&c: &usize| {
        let turned = metrics.iter().map(|m| Some(m.better.turned(m.mean(c)?)));
        Some((c, turned.collect::<Option<Vec<f64>>>()?))
    };
    front_of(ranking.order.iter().filter_map(point))
}

/// Objectives of a search, the number of candidates, and the fronts of all its objectives by group if there are several.
fn search(loaded: &LoadedFolder, measured: &[MetricSamples], metrics: &[Metric], rankings: &[Vec<Ranking>]) -> Value {
    let names = &loaded.objectives;
    if !loaded.searched {
        return Value::Null;
    }
    let places: Vec<usize> = names.iter().filter_map(|name| metrics.iter().position(|m| m.name == *name)).collect();
    let objectives: Vec<&MetricSamples> = places.iter().map(|&m| &measured[m]).collect();
    let front = |group: &Vec<Ranking>| front(&group[places[0]], &objectives);
    let fronts = (places.len() > 1).then(|| rankings.iter().take(GROUPS_UP_TO).map(front).collect::<Vec<_>>());
    json!({ "objectives": names, "metrics": places, "of": loaded.manifest.selected, "fronts": fronts })
}

/// Highest request rates at which designs keep their bounds, if the sweep varies the rate.
fn knees(loaded: &LoadedFolder, dir: &Path) -> Value {
    let sheet = &loaded.sheet;
    let is_over_load = sheet.axes().iter().any(|axis| knee::is_rate(&axis.name));
    if !is_over_load || loaded.searched || sheet.column("within_bounds").is_none() {
        return Value::Null;
    }
    // An error of reading the folder was reported before.
    let Ok(study) = compare::Study::open(&[dir]) else { return Value::Null };
    let tried = |t: Option<knee::TriedRate>| t.map(|t| json!({ "rate": t.rate, "within": t.within }));
    let one = |k: &knee::Knee| {
        let row = study.configurations[k.configuration].rows[0];
        json!({ "row": row, "holds": tried(k.holds), "fails": tried(k.fails) })
    };
    let groups = knee::knees(&study);
    let one_group = |g: &knee::KneeGroup| json!({ "question": g.label(), "best": g.n_best(), "designs": g.knees.iter().map(one).collect::<Vec<_>>() });
    if groups.is_empty() {
        return Value::Null;
    }
    json!({ "share": knee::HOLDS_FROM, "groups": groups.iter().map(one_group).collect::<Vec<_>>() })
}

/// Largest number of configurations of each group that are shown in detail.
fn each_of(rankings: &[Vec<Ranking>]) -> usize {
    (DETAILED / rankings.len().max(1)).max(1)
}

/// Ids of the experiments that are shown in detail, ascending: the first completed replica of the best configurations of each group by the first metric.
fn chosen(loaded: &LoadedFolder, design: &Design, rankings: &[Vec<Ranking>]) -> Vec<u64> {
    let sheet = &loaded.sheet;
    let each = each_of(rankings);
    let best = rankings.iter().filter_map(|r| r.first()).flat_map(|r| r.order.iter().take(each)).take(DETAILED);
    // The page looks details up by the first completed replica.
    let rows = best.filter_map(|&c| design.configurations[c].rows.iter().copied().find(|&row| sheet.ok(row)));
    let mut ids: Vec<u64> = rows.filter_map(|row| sheet.text("exp_id", row).parse().ok()).collect();
    ids.sort_unstable();
    ids
}

fn excerpt<T>(found: Excerpt<T>, one: impl Fn(&T) -> Value) -> Value {
    let by_experiment: Map<String, Value> = found.of.iter().map(|(id, t)| (id.to_string(), one(t))).collect();
    json!({ "of": by_experiment, "cut": found.cut })
}

fn flows(found: Excerpt<details::Fcts>) -> Value {
    let mut shown = excerpt(found, |f| json!({ "flows": f.flows, "unfinished": f.unfinished, "points": f.points }));
    shown["percent"] = json!(POINTS);
    shown
}

fn links(found: Excerpt<details::ExperimentLinks>) -> Value {
    excerpt(found, |l| {
        let mut shown =
            json!({ "links": l.links, "utilisation": l.utilisation, "queue": l.queue, "busiest": l.busiest });
        if let Some(s) = &l.sketch {
            shown["sketch"] = json!({ "tiers": s.tiers, "links": s.links });
        }
        shown
    })
}
