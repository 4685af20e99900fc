//! Recommendation of a design: the one that does best over all kinds of work, what another choice would cost, and the prices.
//!
//! Layer: report. It reads rankings and prices; the command line and the page put it into words.

use std::path::Path;

use super::ReportError;
use super::design::Design;
use super::load::load;
use super::metric::{Metric, metrics};
use super::rank::{MetricSamples, Ranking};
use super::sheet::Sheet;
use super::verdict::{designs, worse};

/// A design that is compared with the recommended one.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Index of its configuration in the first group.
    pub configuration: usize,
    /// How much worse it is, relative, as a geometric mean over the groups.
    pub worse: f64,
    /// Whether it is tied with the recommended design in every group.
    pub tied: bool,
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
    pub cost_usd: Option<f64>,
    /// Lowest and highest cost over the axes that no experiment simulated, if these differ.
    pub costs_apart: Option<(f64, f64)>,
    /// The cheapest design that completed in every group, if it is cheaper.
    pub cheapest: Option<Alternative>,
    /// All other designs that completed in every group, best first.
    pub others: Vec<Alternative>,
}

/// Recommendation of a result folder, with its metric, its sheet and its design.
pub struct Recommended {
    pub metric: Metric,
    pub sheet: Sheet,
    pub design: Design,
    /// The recommendation. `None`: no design completed for every kind of work, or there is only one design.
    pub recommendation: Option<Recommendation>,
}

/// Computes the recommendation of a result folder. `None`: no experiment completed.
///
/// # Errors
/// It is no result folder, or one of its files is damaged.
pub fn of_folder(dir: &Path) -> Result<Option<Recommended>, ReportError> {
    let loaded = load(dir)?;
    let design = Design::of(&loaded.sheet);
    let Some(metric) = metrics(&loaded.sheet, &loaded.objectives).into_iter().next() else { return Ok(None) };
    let audits = loaded.times_error.as_ref();
    let measured = MetricSamples::of(&loaded.sheet, &design, &metric, audits);
    let rankings: Vec<Ranking> = (0..design.groups.len()).map(|g| Ranking::of(&design, &measured, g)).collect();
    let recommendation = recommendation(&design, &measured, &rankings);
    Ok(Some(Recommended { metric, sheet: loaded.sheet, design, recommendation }))
}

/// The recommendation. `None`: no design completed in every group, a value is not positive, or there is only one design.
pub fn recommendation(design: &Design, measured: &MetricSamples, rankings: &[Ranking]) -> Option<Recommendation> {
    let answers: Vec<usize> = design.answers().collect();
    let complete = designs(design, measured, rankings);
    let best = complete.first().filter(|_| complete.len() > 1)?;
    let cost = |c: usize| measured.cost_usd[c];
    let alternative = |other: &[(usize, f64)]| -> Option<Alternative> {
        // Both lists are in the order of the groups.
        let pairs = || best.iter().zip(other).map(|(a, b)| (a.0, b.0));
        let logs: Option<f64> = pairs().map(|(a, b)| worse(measured, a, b).map(|w| measured.log_ratio(w))).sum();
        Some(Alternative {
            configuration: other[0].0,
            worse: libm::expm1(logs? / best.len() as f64),
            tied: pairs().all(|(a, b)| measured.tied(a, b)),
            cost_usd: cost(other[0].0),
        })
    };
    let values = |c: usize| &design.configurations[c].values;
    let here = values(best[0].0);
    let around = |&axis: &usize| {
        let differs_only_here =
            |other: &&Vec<(usize, f64)>| answers.iter().all(|&a| (values(other[0].0)[a] == here[a]) != (a == axis));
        let mut others: Vec<Alternative> =
            complete.iter().filter(differs_only_here).filter_map(|o| alternative(o)).collect();
        others.sort_by(|a, b| a.worse.total_cmp(&b.worse));
        (axis, others)
    };
    let dearest = cost(best[0].0);
    // Among designs of the same cost the best one is taken, because the list is in that order.
    let cheaper = complete.iter().filter(|o| cost(o[0].0).zip(dearest).is_some_and(|(other, mine)| other < mine));
    let cheapest = cheaper.reduce(|a, b| if cost(b[0].0) < cost(a[0].0) { b } else { a });
    Some(Recommendation {
        configuration: best[0].0,
        groups: rankings.len(),
        regret: libm::expm1(best.iter().map(|b| b.1).sum::<f64>() / best.len() as f64),
        worst: libm::expm1(best.iter().map(|b| b.1).fold(0.0, f64::max)),
        axes: answers.iter().map(around).filter(|(_, others)| !others.is_empty()).collect(),
        cost_usd: dearest,
        costs_apart: costs_apart(design, measured, best[0].0),
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
        let rankings: Vec<Ranking> = (0..design.groups.len()).map(|g| Ranking::of(&design, &measured, g)).collect();
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
        assert_eq!((r.cost_usd, r.costs_apart), (Some(900.0), Some((800.0, 900.0))));
        assert_eq!(r.cheapest, None);
        let design = Design::of(&Sheet::from_lines(text));
        assert_eq!(design.not_simulated().map(|(axis, _)| axis).collect::<Vec<_>>(), [0]);
        // Equality of simulated packets is a finding, and the cheapest is taken.
        let packets = found(&text.replace(",0,900", ",77,900").replace(",0,800", ",77,800")).unwrap();
        assert_eq!((packets.configuration, packets.cost_usd), (1, Some(800.0)));
        let one = "exp_id,config_key,seed,topology.kind,status,makespan_ns,packet_hops\n0,k0,1,rail,ok,7,0\n1,k1,1,clos,ok,7,0";
        assert_eq!(found(one), None);
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
