//! Samples over time: taking them changes nothing, the length of steps changes no sample, and a sample sees what is before its time.

use hyperfold_columns::{EndSample, FlowSample, LinkEndIdx, NicIdx, OwnedTables, PortIdx, status};
use hyperfold_config::spec::SeriesKeys;
use hyperfold_host::tables::build_tables::BuildOptions;

use crate::determinism::rows;
use crate::support::{Case, engine, gpu_graphs, random, small};

/// An odd interval, so that samples lie anywhere in a step.
const SERIES: SeriesKeys = SeriesKeys { links: true, flows: true, interval_ps: 777_777, cap: 40 };

fn options(series: Option<SeriesKeys>, step_divisor: u64) -> BuildOptions {
    BuildOptions { links: true, rtt_cap: 8, series, step_divisor, ..BuildOptions::default() }
}

/// Runs tables to their end, with the last sample.
fn run(mut t: OwnedTables) -> OwnedTables {
    engine::run_cpu(&mut t);
    hyperfold_engine::series::end(&mut t.view());
    t
}

/// Holds a run with samples against one without, and against shorter steps. Returns the number of its samples.
fn samples_change_nothing(name: &str, tables: impl Fn(BuildOptions) -> OwnedTables) -> usize {
    let plain = rows(&run(tables(options(None, 1))));
    let sampled = run(tables(options(Some(SERIES), 1)));
    if plain.status == status::GAVE_UP {
        // It stops at the end of the step in which a flow gave up; what else happened by then depends on the step.
        assert_eq!(sampled.exps[0].status, plain.status, "{name}");
        return 0;
    }
    let got = rows(&sampled);
    assert_eq!(got.status, plain.status, "{name}");
    assert!(got == plain, "{name}: samples change rows");
    assert!(sampled.series.samples.len() <= SERIES.cap as usize, "{name}");
    for divisor in [2, 3] {
        let cut = run(tables(options(Some(SERIES), divisor)));
        assert_eq!(cut.series.interval, sampled.series.interval, "{name}: step / {divisor}");
        for (a, b) in cut.series.samples.iter().zip(&sampled.series.samples) {
            assert_eq!(a, b, "{name}: step / {divisor}");
        }
        assert_eq!(cut.series.samples.len(), sampled.series.samples.len(), "{name}: step / {divisor}");
    }
    sampled.series.samples.len()
}

#[test]
fn samples_change_nothing_and_steps_change_no_sample() {
    let mut n_samples = 0;
    let mut n_full = 0;
    let mut case = |name: &str, case: &Case| {
        let n = samples_change_nothing(name, |options| engine::tables(case, options).tables);
        n_samples += n;
        n_full += u32::from(n > SERIES.cap as usize / 2);
    };
    for (name, small_case) in small::all() {
        case(name, &small_case);
    }
    let seeds = [
        (0, 120),
        (random::SWIFT, 12),
        (random::SELECTIVE, 24),
        (random::CHANGES, 40),
        (random::UEC, 30),
        (random::ADAPTIVE, 30),
        (random::CLASSES, 30),
        (random::IMPAIRED, 30),
        (random::MOVING, 30),
        (random::WATCHED, 30),
    ];
    for seed in seeds.iter().flat_map(|&(first, n)| first..first + n) {
        case(&format!("seed {seed}"), &random::case(seed));
    }
    for seed in (0..40).chain(random::CHANGES..random::CHANGES + 12).chain(random::UEC..random::UEC + 12) {
        let g = gpu_graphs::case(seed);
        n_samples += samples_change_nothing(&g.name, |options| gpu_graphs::tables(&g, options).tables);
    }
    assert!(n_samples > 2_000 && n_full > 20, "{n_samples} samples, {n_full} series that filled up");
}

/// The state of every link end and queue pair at `time_ps`, as samples have it.
fn state(t: &OwnedTables, time_ps: u64) -> (Vec<EndSample>, Vec<FlowSample>) {
    let n_nics = t.exps[0].nic_len;
    let paused: Vec<u64> = {
        let mut copy = t.clone();
        let view = copy.view();
        (0..view.exps[0].end_len).map(|end| view.paused_until(LinkEndIdx(end), time_ps)).collect()
    };
    let nics = t.nics.iter().enumerate().map(|(n, row)| EndSample {
        paused_ps: paused[n],
        end: LinkEndIdx(NicIdx::new(n).0),
        queue_bytes: 0,
        paused: row.paused == 1,
        pauses: row.pauses,
        drops: 0,
        marks: 0,
        tx_bytes: row.tx_bytes,
    });
    let ports = t.ports.iter().enumerate().map(|(p, row)| EndSample {
        paused_ps: paused[PortIdx::new(p).end(n_nics).usize()],
        end: PortIdx::new(p).end(n_nics),
        queue_bytes: row.q_bytes,
        paused: row.paused != 0,
        pauses: row.pauses,
        drops: row.drops,
        marks: row.marks,
        tx_bytes: row.tx_bytes,
    });
    let flows = t.flow_tx.iter().enumerate().map(|(row, tx)| FlowSample {
        flow: hyperfold_columns::FlowIdx::new(row),
        rate: tx.rate,
        window: (tx.win != 0 && tx.win != u64::MAX).then_some(tx.win),
        snd_nxt: tx.snd_nxt,
        snd_una: tx.snd_una,
    });
    (nics.chain(ports).collect(), flows.collect())
}

#[test]
fn a_sample_is_the_state_in_which_a_run_with_that_time_limit_ends() {
    let series = SeriesKeys { cap: 1_000_000, ..SERIES };
    let mut n = 0;
    for (name, case) in small::all() {
        let sampled = run(engine::tables(&case, options(Some(series), 1)).tables);
        let begin = engine::tables(&case, options(None, 1)).tables;
        let (mut ends, mut flows) = state(&begin, 0);
        for sample in &sampled.series.samples {
            sample.ends.iter().for_each(|end| ends[end.end.usize()] = *end);
            sample.flows.iter().for_each(|flow| flows[flow.flow.usize()] = *flow);
            // A prime distance, for most samples are like the others.
            if sample.number % 7 != 1 {
                continue;
            }
            let time_limit_ps = sample.number * series.interval_ps;
            let cut = run(engine::tables(&case, BuildOptions { time_limit_ps, ..options(None, 1) }).tables);
            let (cut_ends, cut_flows) = state(&cut, time_limit_ps);
            assert_eq!(ends, cut_ends, "{name} at {time_limit_ps} ps");
            for (flow, cut_flow) in flows.iter().zip(&cut_flows) {
                // Rate and window are sampled while there is something to send.
                let bytes = |f: &FlowSample| (f.snd_nxt, f.snd_una);
                assert_eq!(bytes(flow), bytes(cut_flow), "{name} at {time_limit_ps} ps");
                if cut_flow.snd_una < cut.flow_tx[cut_flow.flow.usize()].size {
                    assert_eq!(flow, cut_flow, "{name} at {time_limit_ps} ps");
                }
            }
            n += 1;
        }
    }
    assert!(n > 100, "{n} samples compared");
}
