//! Verdict on a group: which configuration is best, what decides that, and how certain it is.
//!
//! Layer: recommendation. It reads rankings; the page puts the verdict into words.

use std::collections::BTreeMap;

use crate::compare::{Better, MeasuredValue, Ranking};

use super::design::Design;
use super::samples::MetricSamples;

/// The best configuration of a group, and what changes when one axis takes another value. Among equally good configurations it is the cheapest.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Index of the best configuration.
    pub best: usize,
    /// The configurations tied with it, including itself, in the order of the ranking.
    pub leaders: Vec<usize>,
    /// The next configuration, which is not tied with it: the cheapest of those that cannot be told apart from the first such. `None`: there is none.
    pub next: Option<usize>,
    /// How much worse that one is, relative to the best.
    pub lead: Option<f64>,
    /// Difference to that configuration that would still be a tie, relative to the best.
    pub threshold: Option<f64>,
    /// Whether that configuration is told apart by pairs of replicas with the same seed, so that the threshold does not apply.
    pub paired: bool,
    /// Axes by how much another value costs, the most important first.
    pub decides: Vec<Deciding>,
}

/// The effect of one axis around the best configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Deciding {
    /// Index of the axis in [`Design::axes`](super::design::Design::axes).
    pub axis: usize,
    /// Configurations that differ from the best only in this axis, best first: index, how much worse (relative), and whether they are tied.
    pub others: Vec<(usize, f64, bool)>,
}

impl Deciding {
    /// Whether no other value is as good.
    pub fn decides(&self) -> bool {
        self.others.iter().all(|o| !o.2)
    }

    /// The smallest loss with another value, relative.
    fn min_loss(&self) -> f64 {
        self.others.iter().map(|o| o.1).fold(f64::INFINITY, f64::min)
    }
}

/// How much worse `b` is than `a`, relative to `a`. `None`: the ratio is not finite.
pub(super) fn worse(measured: &MetricSamples, a: usize, b: usize) -> Option<f64> {
    let (a, b) = (measured.mean(a)?, measured.mean(b)?);
    let ratio = if measured.better == Better::More { (a - b) / a } else { (b - a) / a };
    ratio.is_finite().then_some(ratio)
}

/// The verdict on a group. `None`: no configuration of it completed.
pub fn verdict(design: &Design, measured: &MetricSamples, ranking: &Ranking) -> Option<Verdict> {
    let ranking = &measured.trusted(design, ranking);
    let first = *ranking.order.first()?;
    let best = designs(design, measured, std::slice::from_ref(ranking)).first().map_or(first, |design| design[0].own);
    let next = ranking.second().iter().copied().reduce(|a, b| if measured.is_cheaper(b, a) { b } else { a });
    let mean = measured.mean(best)?.abs();
    let relative = |x: f64| Some(x / mean).filter(|x| x.is_finite());
    let lead = next.and_then(|n| worse(measured, best, n));
    let threshold = next.and_then(|n| relative(measured.of_both(best, n, MeasuredValue::threshold)?));
    let paired = next.and_then(|n| measured.of_both(best, n, MeasuredValue::is_paired_with)).unwrap_or(false);
    let mut decides: Vec<Deciding> = Vec::new();
    let here = &design.configurations[best].values;
    for axis in design.answers().filter(|&axis| design.simulates(axis, best)) {
        let differs_only_here = |c: usize| {
            let values = &design.configurations[c].values;
            (0..values.len()).all(|a| (values[a] == here[a]) != (a == axis))
        };
        let other = |&c: &usize| Some((c, worse(measured, best, c)?, measured.tied(best, c)));
        let others: Vec<(usize, f64, bool)> =
            ranking.order.iter().filter(|&&c| differs_only_here(c)).filter_map(other).collect();
        if !others.is_empty() {
            decides.push(Deciding { axis, others });
        }
    }
    decides.sort_by(|a, b| b.decides().cmp(&a.decides()).then(b.min_loss().total_cmp(&a.min_loss())));
    Some(Verdict { best, leaders: ranking.leaders().to_vec(), next, lead, threshold, paired, decides })
}

/// A design over all groups: one value on each axis that changes only how work is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Overall {
    /// Index of its configuration in the first group.
    pub configuration: usize,
    /// How much worse it is than the best of each group, relative, as a geometric mean over the groups.
    pub regret: f64,
    /// How much worse it is in the group where it does worst, relative.
    pub worst: f64,
    /// Whether it is tied with the first design in every group.
    pub tied: bool,
    /// Relative uncertainty of its values, as the mean over the groups.
    pub error: f64,
}

/// A design in one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InGroup {
    /// Its configuration. Of several that differ only in axes that no experiment simulated, the cheapest.
    pub own: usize,
    /// The configuration whose result counts: the best of those that differ only in axes that the way of simulating this group leaves out.
    pub compared: usize,
    /// Logarithm of how much worse it is than the best of the group.
    pub log: f64,
}

/// Designs that completed in every group, smallest mean regret first. Of those that cannot be told apart the cheapest is moved to the front. A design is a
/// list of its configurations in the order of the groups. Designs that differ only in axes that no experiment simulated are one design. An axis that the way
/// of simulating a group leaves out makes no difference in that group. Empty if a value is not positive.
pub(super) fn designs(design: &Design, measured: &MetricSamples, rankings: &[Ranking]) -> Vec<Vec<InGroup>> {
    let rankings: Vec<Ranking> = rankings.iter().map(|r| measured.trusted(design, r)).collect();
    let simulates = |axis: usize, ranking: &Ranking| ranking.order.first().is_some_and(|&c| design.simulates(axis, c));
    let answers: Vec<usize> = design.answers().filter(|&a| rankings.iter().any(|r| simulates(a, r))).collect();
    let values =
        |c: usize, axes: &[usize]| -> Vec<u32> { axes.iter().map(|&a| design.configurations[c].values[a]).collect() };
    // Each with the index of its group.
    let mut by_values: BTreeMap<Vec<u32>, Vec<(usize, InGroup)>> = BTreeMap::new();
    for (group_idx, ranking) in rankings.iter().enumerate() {
        let simulated: Vec<usize> = answers.iter().copied().filter(|&a| simulates(a, ranking)).collect();
        let mut best_of: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for &c in &ranking.order {
            let compared = *best_of.entry(values(c, &simulated)).or_insert(c);
            let worse_than_best = |c: usize| worse(measured, ranking.order[0], c).map(|w| measured.log_ratio(w));
            if !worse_than_best(c).is_some_and(f64::is_finite) {
                return Vec::new();
            }
            let log = worse_than_best(compared).expect("what is compared came before");
            let in_groups = by_values.entry(values(c, &answers)).or_default();
            match in_groups.last_mut().filter(|last| last.0 == group_idx) {
                None => in_groups.push((group_idx, InGroup { own: c, compared, log })),
                Some((_, last)) if measured.is_cheaper(c, last.own) => last.own = c,
                Some(_) => {}
            }
        }
    }
    let in_all = by_values.into_values().filter(|in_groups| in_groups.len() == rankings.len());
    let mut complete: Vec<Vec<InGroup>> = in_all.map(|g| g.into_iter().map(|(_, own)| own).collect()).collect();
    complete.sort_by(|a, b| regret(a).total_cmp(&regret(b)).then(a[0].own.cmp(&b[0].own)));
    if let Some(index) = cheapest_of_equals(measured, &complete) {
        complete[..=index].rotate_right(1);
    }
    cheapest_of_others(measured, &mut complete);
    complete
}

/// Whether two designs cannot be told apart in any group.
fn equal(measured: &MetricSamples, a: &[InGroup], b: &[InGroup]) -> bool {
    a.iter().zip(b).all(|(a, b)| measured.tied(a.compared, b.compared))
}

/// Index of the cheapest design among those tied with the first. `None`: it is the first, or prices are not known.
fn cheapest_of_equals(measured: &MetricSamples, complete: &[Vec<InGroup>]) -> Option<usize> {
    let first = complete.first()?;
    let own = |index: usize| complete[index][0].own;
    let is_cheaper = |index: &usize| measured.is_cheaper(own(*index), first[0].own);
    let cheaper = (1..complete.len()).filter(|index| is_cheaper(index) && equal(measured, &complete[*index], first));
    // Among designs of the same cost the best one is taken, which comes first.
    cheaper.reduce(|a, b| if measured.is_cheaper(own(b), own(a)) { b } else { a })
}

/// Moves the cheapest to the front of each run of further designs that cannot be told apart from the first of the run.
fn cheapest_of_others(measured: &MetricSamples, complete: &mut [Vec<InGroup>]) {
    let mut start = 1;
    while start < complete.len() {
        let (best, first) = (&complete[0], &complete[start]);
        // A run has either designs that are as good as the best, or others.
        let as_good = equal(measured, best, first);
        let is_of_run =
            |other: &&Vec<InGroup>| equal(measured, first, other) && equal(measured, best, other) == as_good;
        let end = start + complete[start..].iter().take_while(is_of_run).count().max(1);
        let own = |index: usize| complete[index][0].own;
        let cheapest = (start..end).reduce(|a, b| if measured.is_cheaper(own(b), own(a)) { b } else { a });
        complete[start..=cheapest.unwrap_or(start)].rotate_right(1);
        start = end;
    }
}

fn relative_error(measured: &MetricSamples, c: usize) -> f64 {
    let relative = |v: &MeasuredValue| if v.sample.mean == 0.0 { 0.0 } else { v.uncertainty() / v.sample.mean.abs() };
    measured.values[c].as_ref().map_or(0.0, relative)
}

/// Logarithm of how much worse a design is than the best of each group, as the mean over the groups.
pub(super) fn regret(in_groups: &[InGroup]) -> f64 {
    in_groups.iter().map(|g| g.log).sum::<f64>() / in_groups.len() as f64
}

/// Designs that completed in every group, smallest mean regret first. Empty if a value is not positive.
pub fn overall(design: &Design, measured: &MetricSamples, rankings: &[Ranking]) -> Vec<Overall> {
    let complete = designs(design, measured, rankings);
    let Some(first) = complete.first() else {
        return Vec::new();
    };
    let one = |in_groups: &Vec<InGroup>| Overall {
        configuration: in_groups[0].own,
        regret: libm::expm1(regret(in_groups)),
        worst: libm::expm1(in_groups.iter().map(|g| g.log).fold(0.0, f64::max)),
        tied: equal(measured, in_groups, first),
        error: in_groups.iter().map(|g| relative_error(measured, g.compared)).sum::<f64>() / in_groups.len() as f64,
    };
    complete.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recommendation::metric::Metric;
    use crate::recommendation::sheet::Sheet;

    fn with<T>(text: &str, better: Better, then: impl Fn(&Design, &MetricSamples, &[Ranking]) -> T) -> T {
        let s = Sheet::from_lines(text);
        let d = Design::of(&s);
        let m = MetricSamples::of(
            &s,
            &d,
            &Metric { name: "makespan_ns".into(), label: String::new(), unit: "ns", better },
            None,
        );
        let rankings: Vec<Ranking> = (0..d.groups.len()).map(|g| m.ranking(&d, g)).collect();
        then(&d, &m, &rankings)
    }

    const GRID: &str = "exp_id,config_key,seed,t.a,t.b,t.c,status,makespan_ns
        0,k0,1,x,u,1,ok,100
        1,k1,1,y,u,1,ok,110
        2,k2,1,x,v,1,ok,150
        3,k3,1,y,v,1,ok,160
        4,k4,1,x,u,2,ok,100";

    #[test]
    fn what_decides_is_what_costs_when_changed_alone() {
        let v = with(GRID, Better::Less, |d, m, r| verdict(d, m, &r[0])).unwrap();
        assert_eq!((v.best, v.leaders.len(), v.lead, v.threshold), (0, 2, Some(0.1), Some(0.0)));
        let found: Vec<(usize, bool, f64)> = v.decides.iter().map(|d| (d.axis, d.decides(), d.others[0].1)).collect();
        assert_eq!(found, [(1, true, 0.5), (0, true, 0.1), (2, false, 0.0)]);
        let more = with(GRID, Better::More, |d, m, r| verdict(d, m, &r[0])).unwrap();
        assert_eq!((more.best, more.lead), (3, Some(10.0 / 160.0)));
    }

    #[test]
    fn of_equal_configurations_the_cheapest_is_best() {
        let text = "exp_id,config_key,seed,t.a,status,makespan_ns,cost_usd
            0,k0,1,x,ok,100,900
            1,k1,1,y,ok,100,700
            2,k2,1,z,ok,101,500";
        let v = with(text, Better::Less, |d, m, r| verdict(d, m, &r[0])).unwrap();
        assert_eq!((v.best, v.leaders), (1, vec![0, 1]), "what is slower is no equal, however cheap");
    }

    /// The next is 10 % longer in three ways, of which one costs least.
    #[test]
    fn of_equal_followers_the_cheapest_is_next() {
        let text = "exp_id,config_key,seed,t.a,status,makespan_ns,cost_usd
            0,k0,1,u,ok,100,900
            1,k1,1,v,ok,110,800
            2,k2,1,w,ok,110,600
            3,k3,1,x,ok,110,700
            4,k4,1,y,ok,150,500";
        let v = with(text, Better::Less, |d, m, r| verdict(d, m, &r[0])).unwrap();
        assert_eq!((v.best, v.next, v.lead), (0, Some(2), Some(0.1)));
        let o: Vec<usize> = with(text, Better::Less, overall).iter().map(|o| o.configuration).collect();
        assert_eq!(o, [0, 2, 1, 3, 4]);
    }

    /// At flow level the two congestion controls differ by their headers alone.
    #[test]
    fn a_group_that_leaves_an_axis_out_says_nothing_of_it() {
        let text = "exp_id,config_key,seed,fidelity.mode,transport.cc,topology.kind,status,makespan_ns,packet_hops,max_link_utilisation
            0,k0,1,flow,hpcc,clos,ok,90,,0.5
            1,k1,1,flow,dcqcn,clos,ok,80,,0.5
            2,k2,1,flow,hpcc,rail,ok,99,,0.5
            3,k3,1,flow,dcqcn,rail,ok,88,,0.5
            4,k4,1,packet,hpcc,clos,ok,100,7,0.5
            5,k5,1,packet,dcqcn,clos,ok,101,7,0.5
            6,k6,1,packet,hpcc,rail,ok,120,7,0.5
            7,k7,1,packet,dcqcn,rail,ok,121,7,0.5";
        let found = with(text, Better::Less, |d, m, r| (verdict(d, m, &r[0]).unwrap(), overall(d, m, r)));
        let (flows, o) = found;
        assert_eq!((flows.best, flows.decides.len()), (1, 1), "the kind alone decides");
        assert_eq!((o[0].configuration, o[0].regret), (0, 0.0), "hpcc by packets, though flows with dcqcn are faster");
    }

    #[test]
    fn pairs_of_one_seed_decide_whatever_the_threshold() {
        let mut text = String::from("exp_id,config_key,seed,t.a,status,makespan_ns");
        for seed in 0..4 {
            text += &format!(
                "\n{seed},k0,{seed},x,ok,{}\n{},k1,{seed},y,ok,{}",
                100 + 20 * seed,
                4 + seed,
                101 + 20 * seed
            );
        }
        let v = with(&text, Better::Less, |d, m, r| verdict(d, m, &r[0])).unwrap();
        assert!(v.paired && v.leaders.len() == 1 && v.lead < v.threshold, "{v:?}");
        assert!(!with(GRID, Better::Less, |d, m, r| verdict(d, m, &r[0])).unwrap().paired, "one seed makes no pairs");
    }

    #[test]
    fn an_axis_of_many_values_decides_like_any_other() {
        let mut text = String::from("exp_id,config_key,seed,t.eta,t.cc,status,makespan_ns");
        (0..20).for_each(|n| text += &format!("\n{n},k{n},1,{n},hpcc,ok,{}", 100 + n));
        text += "\n20,k20,1,0,dcqcn,ok,300";
        let v = with(&text, Better::Less, |d, m, r| verdict(d, m, &r[0])).unwrap();
        let found: Vec<(usize, usize)> = v.decides.iter().map(|d| (d.axis, d.others.len())).collect();
        assert_eq!(found, [(1, 1), (0, 19)]);
        assert_eq!(v.decides[1].others[0].0, 1, "the next best value's configuration");
    }

    #[test]
    fn nothing_completed_has_no_verdict() {
        assert_eq!(
            with("exp_id,config_key,seed,t.a,status,makespan_ns\n0,k0,1,x,failed,", Better::Less, |d, m, r| verdict(
                d, m, &r[0]
            )),
            None
        );
    }

    #[test]
    fn the_best_on_average_ran_everywhere() {
        let text = "exp_id,config_key,seed,t.a,workload.pattern,status,makespan_ns
            0,k0,1,x,ring,ok,100
            1,k1,1,y,ring,ok,110
            2,k2,1,z,ring,ok,90
            3,k3,1,x,incast,ok,400
            4,k4,1,y,incast,ok,200
            5,k5,1,z,incast,failed,";
        let o = with(text, Better::Less, overall);
        assert_eq!(o.iter().map(|o| o.tied).collect::<Vec<_>>(), [true, false]);
        let equal_times = text.replace("110", "100").replace("400", "200");
        assert!(with(&equal_times, Better::Less, overall)[1].tied, "the same everywhere");
        assert_eq!(o.iter().map(|o| o.configuration).collect::<Vec<_>>(), [1, 0]);
        assert!(
            (o[0].worst - (110.0 / 90.0 - 1.0)).abs() < 1e-12,
            "against the best of each group, even one that failed elsewhere"
        );
        assert!((o[0].regret - ((110.0_f64 / 90.0).sqrt() - 1.0)).abs() < 1e-12);
    }
}
