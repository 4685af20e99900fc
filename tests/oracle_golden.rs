//! The oracle against the golden cases of `../shared`, flow by flow. Skipped, with a printed line, where they are absent.

mod oracle;
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

#[test]
fn probe() {
    use oracle::*;
    let name = std::env::var("CASE").unwrap_or("c1_single_hpcc".into());
    for name in golden::names().iter().filter(|n| n.contains(&name)) {
    let g = golden::load(name);
    for order in [Order::Reference, Order::Lineage] {
        let start = std::time::Instant::now();
        let o = simulate(&g.case, order, Opts::default());
        let err: Vec<i64> = o.finish_ps.iter().zip(&g.fct_ns).zip(&g.case.flows).map(|((f, &w), fl)| {
            f.map_or(i64::MAX, |f| ((f - fl.start_ps) / 1000) as i64 - w as i64)
        }).collect();
        println!("{name} {order:?} max {} pauses {}/{} frames {}/{} hops {}/{} fail {:?} {:?}", err.iter().map(|e| e.abs()).max().unwrap(), o.pfc_pauses, g.pauses, o.pfc_frames, g.pfc_frames, o.packet_hops, g.packet_hops, o.failure, start.elapsed());
    }}
}
