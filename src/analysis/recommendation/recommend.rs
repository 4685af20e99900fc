//! Recommendation of a design: the one that does best over all kinds of work, what another choice would cost, and the prices.
//!
//! Layer: recommendation. It reads rankings and prices; the command line and the page put it into words.

use std::path::Path;

use crate::compare::Ranking;

use super::design::Design;
use super::load::{LoadError, load};
use super::metric::{Metric, metrics};
use super::samples::MetricSamples;
use super::sheet::Sheet;
use super::verdict::{InGroup, designs, regret, worse};

/// A design that is compared with the recommended one.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Index of its configuration in the first group.
    pub configuration: usize,
    /// How much worse it is, relative, as a geometric mean over those groups.
    pub worse: f64,
    /// Whether it is tied with the recommended design in each of those groups.
    pub tied: bool,
    /// Number of groups whose way of simulating has every axis in which it differs from the recommended design. All groups if none has.
    pub groups: usize,
    /// Its cost in US dollars, if it is known.
    pub cost_usd: Option<f64>,
}

/// The recommended design.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// Index of its configuration in the first group.
    pub configuration: usize,
    /// Number of kinds of work, each with its own ranking.
    pub groups: usize,
    /// How much worse it is than the best of each group, relative, as a geometric mean over the groups.
    pub regret: f64,
    /// How much worse it is in the group where it does worst, relative.
    pub worst: f64,
    /// For each axis, the designs that differ from it only there, best first.
    pub axes: Vec<(usize, Vec<Alternative>)>,
    /// The lowest cost over the axes that no experiment simulated.
    pub cost_usd: Option<f64>,
    /// Lowest and highest cost over the axes that no experiment simulated, if these differ.
    pub costs_apart: Option<(f64, f64)>,
    /// The cheapest design that completed in every group, if it is cheaper.
    pub cheapest: Option<Alternative>,
    /// All other designs that completed in every group, best first. Of those that cannot be told apart the cheapest comes first.
    pub others: Vec<Alternative>,
}

/// Recommendation of a result folder, with its metric, its sheet and its design.
pub struct Recommended {
    /// The metric by which designs are ranked.
    pub metric: Metric,
    /// Results of the folder.
    pub sheet: Sheet,
    /// Axes and configurations of the sheet.
    pub design: Design,
    /// The recommendation. `None`: no design completed for every kind of work, or there is only one design.
    pub recommendation: Option<Recommendation>,
}

/// Computes the recommendation of a result folder. `None`: no experiment completed.
///
/// # Errors
/// It is no result folder, or one of its files is damaged.
pub fn of_folder(dir: &Path) -> Result<Option<Recommended>, LoadError> {
    let loaded = load(dir)?;
    let design = Design::of(&loaded.sheet);
    let Some(metric) = metrics(&loaded.sheet, &loaded.objectives).into_iter().next() else { return Ok(None) };
    let audits = loaded.times_error.as_ref();
    let measured = MetricSamples::of(&loaded.sheet, &design, &metric, audits);
    let rankings: Vec<Ranking> = (0..design.groups.len()).map(|g| measured.ranking(&design, g)).collect();
    let recommendation = recommendation(&design, &measured, &rankings);
    Ok(Some(Recommended { metric, sheet: loaded.sheet, design, recommendation }))
}

/// The recommendation. `None`: no design completed in every group, a value is not positive, or there is only one design.
pub fn recommendation(design: &Design, measured: &MetricSamples, rankings: &[Ranking]) -> Option<Recommendation> {
    let answers: Vec<usize> = design.answers().collect();
    let complete = designs(design, measured, rankings);
    let best = complete.first().filter(|_| complete.len() > 1)?;
    let cost = |c: usize| measured.cost_usd[c];
    let values = |c: usize| &design.configurations[c].values;
    let here = values(best[0].own);
    let alternative = |other: &[InGroup]| -> Option<Alternative> {
        let own = other[0].own;
        let differing: Vec<usize> = answers.iter().copied().filter(|&a| values(own)[a] != here[a]).collect();
        let shows = |group: &InGroup| differing.iter().all(|&a| design.simulates(a, group.own));
        // Both lists are in the order of the groups.
        let all = || best.iter().zip(other).map(|(a, b)| (a.compared, b.compared));
        let shown: Vec<(usize, usize)> =
            best.iter().zip(all()).filter(|(a, _)| shows(a)).map(|(_, pair)| pair).collect();
        let pairs = if shown.is_empty() { all().collect() } else { shown };
        let logs: Option<f64> = pairs.iter().map(|&(a, b)| worse(measured, a, b).map(|w| measured.log_ratio(w))).sum();
        Some(Alternative {
            configuration: own,
            worse: libm::expm1(logs? / pairs.len() as f64),
            tied: pairs.iter().all(|&(a, b)| measured.tied(a, b)),
            groups: pairs.len(),
            cost_usd: cost(own),
        })
    };
    let around = |&axis: &usize| {
        let differs_only_here =
            |other: &&Vec<InGroup>| answers.iter().all(|&a| (values(other[0].own)[a] == here[a]) != (a == axis));
        let mut others: Vec<Alternative> =
            complete.iter().filter(differs_only_here).filter_map(|o| alternative(o)).collect();
        others.sort_by(|a, b| a.worse.total_cmp(&b.worse));
        (axis, others)
    };
    let mine = cost(best[0].own);
    // Among designs of the same cost the best one is taken, because the list is in that order.
    let cheaper = complete.iter().filter(|o| measured.is_cheaper(o[0].own, best[0].own));
    let cheapest = cheaper.reduce(|a, b| if measured.is_cheaper(b[0].own, a[0].own) { b } else { a });
    Some(Recommendation {
        configuration: best[0].own,
        groups: rankings.len(),
        regret: libm::expm1(regret(best)),
        worst: libm::expm1(best.iter().map(|group| group.log).fold(0.0, f64::max)),
        axes: answers.iter().map(around).filter(|(_, others)| !others.is_empty()).collect(),
        cost_usd: mine,
        costs_apart: costs_apart(design, measured, best[0].own),
        cheapest: cheapest.and_then(|o| alternative(o)),
        others: complete[1..].iter().filter_map(|o| alternative(o)).collect(),
    })
}

/// Lowest and highest cost of the configurations that differ from this one only in axes that no experiment simulated. `None`: the costs are equal or unknown.
fn costs_apart(design: &Design, measured: &MetricSamples, here: usize) -> Option<(f64, f64)> {
    let idle: Vec<usize> = design.not_simulated().map(|(axis, _)| axis).collect();
    let values = |c: usize| &design.configurations[c].values;
    let differs_in_those_alone =
        |c: usize| (0..values(c).len()).all(|a| values(c)[a] == values(here)[a] || idle.contains(&a));
    let costs =
        (0..design.configurations.len()).filter(|&c| differs_in_those_alone(c)).filter_map(|c| measured.cost_usd[c]);
    let (low, high) = costs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), c| (low.min(c), high.max(c)));
    (low < high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHEET: &str = "exp_id,config_key,seed,topology.kind,transport.cc,workload.pattern,status,makespan_ns,cost_usd
        0,k0,1,rail,hpcc,ring,ok,100,900
        1,k1,1,rail,dcqcn,ring,ok,100,900
        2,k2,1,clos,hpcc,ring,ok,121,800
        3,k3,1,clos,dcqcn,ring,ok,130,700
        4,k4,1,rail,hpcc,incast,ok,210,900
        5,k5,1,rail,dcqcn,incast,ok,210,900
        6,k6,1,clos,hpcc,incast,ok,210,800
        7,k7,1,clos,dcqcn,incast,ok,200,700";

    fn found(text: &str) -> Option<Recommendation> {
        let s = Sheet::from_lines(text);
        let design = Design::of(&s);
        let metric = metrics(&s, &[]).into_iter().next().unwrap();
        let measured = MetricSamples::of(&s, &design, &metric, None);
        let rankings: Vec<Ranking> = (0..design.groups.len()).map(|g| measured.ranking(&design, g)).collect();
        recommendation(&design, &measured, &rankings)
    }

    #[test]
    fn one_design_is_recommended_for_all_kinds_of_work_with_its_price() {
        let r = found(SHEET).unwrap();
        assert_eq!((r.configuration, r.groups, r.cost_usd), (0, 2, Some(900.0)));
        assert!((r.worst - 0.05).abs() < 1e-12 && (r.regret - (1.05f64.sqrt() - 1.0)).abs() < 1e-12, "{r:?}");
        let (axis, kind) = &r.axes[0];
        assert_eq!((*axis, kind[0].configuration, kind[0].tied, kind[0].cost_usd), (0, 2, false, Some(800.0)));
        assert!((kind[0].worse - 0.1).abs() < 1e-12, "the mean of 21 % and nothing: {kind:?}");
        assert!(r.axes[1].1[0].tied, "hpcc and dcqcn on rails are alike");
        let others: Vec<usize> = r.others.iter().map(|o| o.configuration).collect();
        assert_eq!(others, [1, 2, 3], "all but the best, best first");
        let cheapest = r.cheapest.unwrap();
        assert_eq!((cheapest.configuration, cheapest.cost_usd), (3, Some(700.0)));
        assert!((cheapest.worse - ((1.3f64 * 200.0 / 210.0).sqrt() - 1.0)).abs() < 1e-12);
    }

    #[test]
    fn of_equal_designs_the_cheapest_is_recommended() {
        let cheaper = SHEET.replace("dcqcn,ring,ok,100,900", "dcqcn,ring,ok,100,850");
        let r = found(&cheaper.replace("dcqcn,incast,ok,210,900", "dcqcn,incast,ok,210,850")).unwrap();
        assert_eq!((r.configuration, r.cost_usd, r.others[0].configuration), (1, Some(850.0), 0));
        assert!(r.others[0].tied && !r.others[1].tied);
    }

    /// Closed forms give every topology one time; prices differ, and still nothing is said for one of them.
    #[test]
    fn nothing_is_recommended_of_an_axis_that_was_not_simulated() {
        let text = "exp_id,config_key,seed,topology.kind,workload.tp,status,makespan_ns,packet_hops,cost_usd
            0,k0,1,rail,1,ok,100,0,900
            1,k1,1,clos,1,ok,100,0,800
            2,k2,1,rail,2,ok,120,0,900
            3,k3,1,clos,2,ok,120,0,800";
        let r = found(text).unwrap();
        assert_eq!(r.axes.iter().map(|a| a.0).collect::<Vec<_>>(), [1], "of tp alone");
        assert_eq!((r.configuration, r.cost_usd, r.costs_apart), (1, Some(800.0), Some((800.0, 900.0))));
        assert_eq!(r.cheapest, None);
        assert_eq!(r.others[0].cost_usd, Some(800.0), "the cheapest of either is compared");
        let design = Design::of(&Sheet::from_lines(text));
        assert_eq!(design.not_simulated().map(|(axis, _)| axis).collect::<Vec<_>>(), [0]);
        // Equality of simulated packets is a finding, and the cheapest is taken.
        let packets = found(&text.replace(",0,900", ",77,900").replace(",0,800", ",77,800")).unwrap();
        assert_eq!((packets.configuration, packets.cost_usd), (1, Some(800.0)));
        let one = "exp_id,config_key,seed,topology.kind,status,makespan_ns,packet_hops\n0,k0,1,rail,ok,7,0\n1,k1,1,clos,ok,7,0";
        assert_eq!(found(one), None);
    }

    /// The next best is the cheapest of several, and stands in the line of its axis.
    #[test]
    fn of_equal_followers_the_cheapest_comes_first() {
        let r = found(
            "exp_id,config_key,seed,cluster.gpu,topology.link_gbps,status,makespan_ns,packet_hops,cost_usd
            0,k0,1,h100,100,ok,200,7,800
            1,k1,1,h100,400,ok,100,7,900
            2,k2,1,a100,100,ok,200,7,600
            3,k3,1,a100,400,ok,100,7,700",
        )
        .unwrap();
        assert_eq!((r.configuration, r.cost_usd), (3, Some(700.0)));
        assert_eq!(r.others.iter().map(|o| o.configuration).collect::<Vec<_>>(), [1, 2, 0]);
    }

    /// Ways of simulating that leave an axis out do not weaken its figure.
    #[test]
    fn what_an_axis_costs_is_taken_where_it_was_simulated() {
        let r = found(
            "exp_id,config_key,seed,workload.analytic,topology.oversubscription,cluster.gpu,status,makespan_ns,packet_hops
            0,k0,1,all,1,h100,ok,100,0
            1,k1,1,all,4,h100,ok,100,0
            2,k2,1,all,1,a100,ok,144,0
            3,k3,1,all,4,a100,ok,144,0
            4,k4,1,intra,1,h100,ok,100,7
            5,k5,1,intra,4,h100,ok,105,7
            6,k6,1,intra,1,a100,ok,121,7
            7,k7,1,intra,4,a100,ok,125,7",
        )
        .unwrap();
        let figures: Vec<(usize, usize, f64)> =
            r.axes.iter().map(|(axis, others)| (*axis, others[0].groups, others[0].worse)).collect();
        assert_eq!((r.configuration, r.groups, figures.len()), (0, 2, 2));
        assert!(figures[0].1 == 1 && (figures[0].2 - 0.05).abs() < 1e-9, "by packets alone: {figures:?}");
        let both = (1.44f64 * 1.21).sqrt() - 1.0;
        assert!(figures[1].1 == 2 && (figures[1].2 - both).abs() < 1e-9, "{figures:?}");
    }

    /// Flows are no judge of spraying, so other designs are compared without it.
    #[test]
    fn spraying_by_flows_is_not_recommended() {
        let text = "exp_id,config_key,seed,topology.kind,routing.policy,status,makespan_ns,max_link_utilisation
            0,k0,1,clos,ecmp,ok,130,0.5
            1,k1,1,clos,spray,ok,100,0.5
            2,k2,1,rail,ecmp,ok,120,0.5
            3,k3,1,rail,spray,ok,101,0.5";
        let r = found(text).unwrap();
        assert_eq!((r.configuration, r.axes.len()), (2, 1), "of rails and the kind alone");
        assert!((r.others[0].worse - (130.0 / 120.0 - 1.0)).abs() < 1e-9, "{r:?}");
    }

    /// Jobs that take the time that they are given say nothing of GPUs and networks.
    #[test]
    fn days_without_iterations_recommend_no_network() {
        let text =
            "exp_id,config_key,seed,topology.kind,cluster.gpu,scheduler.policy,status,makespan_ns,goodput,cluster_hours
            0,k0,1,rail,h100,fcfs,ok,,0.5,10
            1,k1,1,clos,h100,fcfs,ok,,0.5,10
            2,k2,1,rail,a100,fcfs,ok,,0.5,10
            3,k3,1,clos,a100,fcfs,ok,,0.5,10
            4,k4,1,rail,h100,backfill,ok,,0.6,9
            5,k5,1,clos,h100,backfill,ok,,0.6,9
            6,k6,1,rail,a100,backfill,ok,,0.6,9
            7,k7,1,clos,a100,backfill,ok,,0.6,9";
        let design = Design::of(&Sheet::from_lines(text));
        assert_eq!(design.not_simulated().map(|(axis, _)| axis).collect::<Vec<_>>(), [0, 1]);
        let iterated: String = text
            .lines()
            .enumerate()
            .map(|(n, line)| if n == 0 { format!("{line},iteration_sets\n") } else { format!("{line},3\n") })
            .collect();
        let design = Design::of(&Sheet::from_lines(iterated.trim_end()));
        assert_eq!(design.not_simulated().count(), 0);
    }

    #[test]
    fn a_single_design_and_one_that_did_not_complete_are_not_recommended() {
        assert_eq!(
            found("exp_id,config_key,seed,workload.bytes,status,makespan_ns\n0,k0,1,5,ok,7\n1,k1,1,6,ok,8"),
            None
        );
        let failed = SHEET.replace("rail,hpcc,incast,ok,210,900", "rail,hpcc,incast,failed,,");
        assert_eq!(found(&failed).unwrap().configuration, 1);
    }
}
