//! The oracle against the golden cases of `../shared`, flow by flow. Skipped, with a printed line, where they are absent.

mod support;

use support::golden;

/// The reader finds every flow, path and result of every case.
#[test]
fn golden_cases_load() {
    if golden::root().is_none() {
        println!("skipped: no golden cases (../shared/golden, or set HYPERFOLD_SHARED)");
        return;
    }
    for name in golden::names() {
        let g = golden::load(&name);
        let n = g.case.flows.len();
        assert!(n > 0 && g.case.paths.len() == n && g.case.rtt.len() == n && g.fct_ns.len() == n, "{name}");
        for (flow, paths) in g.case.flows.iter().zip(&g.case.paths) {
            let net = &g.case.network;
            let (first, last) = (paths.data[0][0], *paths.data[0].last().unwrap());
            assert_eq!(net.arc_from(first), net.ranks[flow.src_rank as usize], "{name}");
            assert_eq!(net.arc_to(last), net.ranks[flow.dst_rank as usize], "{name}");
        }
        assert!(g.fct_seeds.iter().chain(&g.fct_jitter).all(|row| row.len() == n), "{name}");
    }
}
