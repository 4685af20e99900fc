//! Searches among made-up candidates.

use super::*;

/// Values known beforehand: what estimates miss acts on `b` alone, and coarse simulations are a little off.
struct Made {
    ranks: Vec<Vec<u32>>,
    looked: Vec<(SearchLevel, usize)>,
    fails: fn(SearchLevel, usize) -> bool,
}

impl Made {
    fn new() -> Made {
        let ranks = (0..20u32).flat_map(|a| (0..20u32).map(move |b| vec![a, b])).collect();
        Made { ranks, looked: Vec::new(), fails: |_, _| false }
    }

    fn value(&self, level: SearchLevel, i: usize) -> f64 {
        let (a, b) = (f64::from(self.ranks[i][0]), f64::from(self.ranks[i][1]));
        let estimate = 100.0 + (a - 7.3) * (a - 7.3);
        let missed = 1.0 + 0.02 * (b - 13.2) * (b - 13.2);
        match level {
            SearchLevel::Estimate => estimate,
            SearchLevel::CoarseEstimate => estimate / 8.0,
            SearchLevel::Coarse => estimate / 8.0 * missed * (1.0 + 0.01 * (mix(3, i as u64, 4) % 100) as f64 / 100.0),
        }
    }

    /// Value of a candidate in a full run.
    fn truth(&self, i: usize) -> f64 {
        let b = f64::from(self.ranks[i][1]);
        self.value(SearchLevel::Estimate, i) * (1.0 + 0.02 * (b - 13.2) * (b - 13.2))
    }

    fn search(&mut self, seed: u64) -> (Vec<CandidateFindings>, Vec<usize>) {
        let budget = Budget::new(self.ranks.len(), None);
        match search(&self.ranks.clone(), &[true, true], budget, seed, self) {
            Ok(found) => found,
            Err(never) => match never {},
        }
    }
}

impl Evaluate for Made {
    type Stop = std::convert::Infallible;

    fn evaluate(&mut self, level: SearchLevel, candidates: &[usize]) -> Result<Vec<CandidateValues>, Self::Stop> {
        self.looked.extend(candidates.iter().map(|&i| (level, i)));
        let one = |&i: &usize| {
            if (self.fails)(level, i) { Err("failed".to_string()) } else { Ok(vec![Some(self.value(level, i))]) }
        };
        Ok(candidates.iter().map(one).collect())
    }
}

fn best(made: &Made) -> usize {
    (0..made.ranks.len()).min_by(|&a, &b| made.truth(a).total_cmp(&made.truth(b))).unwrap()
}

#[test]
fn the_best_is_found_although_estimates_see_only_one_axis() {
    let mut hits = 0;
    for seed in 0..10 {
        let mut made = Made::new();
        let (found, chosen) = made.search(seed);
        let n_looked = |level| made.looked.iter().filter(|l| l.0 == level).count();
        assert_eq!(
            (
                n_looked(SearchLevel::Estimate),
                n_looked(SearchLevel::Coarse),
                n_looked(SearchLevel::CoarseEstimate),
                chosen.len()
            ),
            (400, 80, 80, 20)
        );
        assert_eq!(found.iter().filter(|f| f.fate == Fate::Full).count(), 20);
        hits += usize::from(chosen.contains(&best(&made)));
    }
    assert!(hits >= 9, "{hits}");
}

/// A dearer kind is faster, which estimates do not know.
struct Priced;

impl Evaluate for Priced {
    type Stop = std::convert::Infallible;

    fn evaluate(&mut self, level: SearchLevel, candidates: &[usize]) -> Result<Vec<CandidateValues>, Self::Stop> {
        let one = |&i: &usize| {
            let (a, kind) = ((i / 4) as f64, (i % 4) as f64);
            let missed = if level >= SearchLevel::Coarse { 4.0 - kind } else { 1.0 };
            Ok(vec![Some((10.0 + a) * missed), Some(100.0 + 10.0 * kind)])
        };
        Ok(candidates.iter().map(one).collect())
    }
}

#[test]
fn a_dear_candidate_whose_worth_estimates_do_not_know_is_found() {
    let ranks: Vec<Vec<u32>> = (0..400).map(|i| vec![i / 4, i % 4]).collect();
    for seed in 0..10 {
        let Ok((_, chosen)) = search(&ranks, &[true, false], Budget::new(400, None), seed, &mut Priced);
        // The whole Pareto front: the best of each kind.
        assert!((0..4).all(|i| chosen.contains(&i)), "seed {seed}: {chosen:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_search() {
    let (mut a, mut b) = (Made::new(), Made::new());
    assert_eq!(a.search(4), b.search(4));
    assert_eq!(a.looked, b.looked);
    let mut c = Made::new();
    c.search(5);
    assert_ne!(a.looked, c.looked);
}

#[test]
fn what_fails_is_left_out_and_says_why() {
    let mut made = Made {
        fails: |level, i| level == SearchLevel::Estimate && i % 2 == 0 || level == SearchLevel::Coarse && i % 3 == 0,
        ..Made::new()
    };
    let (found, chosen) = made.search(1);
    assert!(chosen.len() == 20 && chosen.iter().all(|i| i % 2 == 1 && i % 3 != 0));
    assert!(found.iter().any(|f| f.fate == Fate::Out { at: SearchLevel::Coarse, why: "failed".into() }));
    assert_eq!(found[0].fate, Fate::Out { at: SearchLevel::Estimate, why: "failed".into() });
}

#[test]
fn where_nothing_has_an_estimate_some_run_and_say_why() {
    let mut made = Made { fails: |_, _| true, ..Made::new() };
    let (_, chosen) = made.search(1);
    assert_eq!(chosen, (0..20).collect::<Vec<_>>());
}

#[test]
fn a_budget_for_all_decides_nothing() {
    let mut made = Made::new();
    let Ok((found, chosen)) = search(&made.ranks.clone(), &[true, true], Budget::new(400, Some(1000)), 1, &mut made);
    assert!(chosen.len() == 400 && made.looked.is_empty() && found.iter().all(|f| f.fate == Fate::Full));
}

#[test]
fn one_in_twenty_is_run() {
    assert_eq!(Budget::new(400, None), Budget { coarse: 80, full: 20 });
    assert_eq!(Budget::new(399, None), Budget { coarse: 76, full: 19 });
    assert_eq!(Budget::new(3, None), Budget { coarse: 3, full: 2 });
    assert_eq!(Budget::new(1, None), Budget { coarse: 0, full: 1 });
    assert_eq!(Budget::new(400, Some(5)), Budget { coarse: 20, full: 5 });
}
