//! The CPU engine against the golden cases of `../shared`. Skipped, with a printed line, where they are absent.

mod support;

use std::time::Instant;

use hyperfold::batch::build::BuildOptions;
use hyperfold::columns::status;
use support::{engine, golden};

#[test]
fn deterministic_cases() {
    let mut bad = 0;
    let only = std::env::var("GOLDEN").unwrap_or_default();
    for name in golden::names() {
        let g = golden::load(&name);
        if !g.deterministic() || !name.contains(&only) {
            continue;
        }
        let mut built = engine::tables(&g.case, BuildOptions::default());
        let clock = Instant::now();
        let st = engine::run_cpu(&mut built.tables);
        let wall = clock.elapsed().as_secs_f64();
        hyperfold::batch::conserve::check(&built.tables).unwrap_or_else(|e| panic!("{name}: {e}"));
        let fct = engine::fct_ps(&built);
        let mut worst = 0i64;
        let mut missing = 0;
        let mut sum = 0.0;
        let mut sum_ref = 0.0;
        for (got, want) in fct.iter().zip(&g.fct_ns) {
            match got {
                Some(ps) => {
                    worst = worst.max(((*ps / 1000) as i64 - *want as i64).abs());
                    sum += *ps as f64 / 1000.0;
                    sum_ref += *want as f64;
                }
                None => missing += 1,
            }
        }
        let hops = engine::packet_hops(&built.tables);
        println!(
            "{name:32} status {st} missing {missing} worst {worst} ns mean {:+.4} % pauses {}/{} hops {}/{} {:.1} Mhops/s steps {}",
            (sum / sum_ref - 1.0) * 100.0,
            engine::pauses(&built.tables),
            g.pauses,
            hops,
            g.packet_hops,
            hops as f64 / wall / 1e6,
            built.tables.exps[0].steps,
        );
        if st != status::DONE || missing > 0 || worst > 0 {
            bad += 1;
        }
    }
    println!("{bad} cases differ");
}
