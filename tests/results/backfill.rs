//! EASY backfill by its definition: a second implementation, written from that alone, starts every job at the same second. And what a user's Ctrl-C
//! has to wait for while a queue is looked at.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyperfold_cluster::{ClusterError, PreparedCluster};
use hyperfold_config::sweep::Sweep;

use crate::support::program::Folder;

/// A job of a trace, in seconds.
#[derive(Clone, Copy, Debug)]
struct Asked {
    submit: u64,
    gpus: u64,
    duration: u64,
    estimate: u64,
}

/// Starts of jobs under EASY backfill on a cluster that is `gpus` and nothing else. Jobs ascend by arrival.
///
/// The definition (Lifka 1995; Mu'alem and Feitelson 2001): jobs start in the order of arrival. Where the first has to wait, its shadow time is when enough
/// GPUs are free for it, if those that run end by their estimates. What is left over then is extra. A job behind it starts if it fits now, and either
/// ends by the shadow time by its estimate or takes extra GPUs only.
fn easy(gpus: u64, jobs: &[Asked]) -> Vec<u64> {
    let mut starts: Vec<Option<u64>> = vec![None; jobs.len()];
    let mut now = 0;
    while starts.iter().any(Option::is_none) {
        let is_running = |i: usize, at: u64| starts[i].is_some_and(|start| start + jobs[i].duration > at);
        let running: Vec<usize> = (0..jobs.len()).filter(|&i| is_running(i, now)).collect();
        let mut free = gpus - running.iter().map(|&i| jobs[i].gpus).sum::<u64>();
        let believed = |i: usize, start: u64| (start + jobs[i].estimate).max(now);
        let mut believed_ends: Vec<(u64, u64)> =
            running.iter().map(|&i| (believed(i, starts[i].unwrap()), jobs[i].gpus)).collect();
        let mut queue: Vec<usize> = (0..jobs.len()).filter(|&i| starts[i].is_none() && jobs[i].submit <= now).collect();
        queue.reverse();
        while let Some(first) = queue.pop_if(|first| jobs[*first].gpus <= free) {
            free -= jobs[first].gpus;
            starts[first] = Some(now);
            believed_ends.push((believed(first, now), jobs[first].gpus));
        }
        if let Some(first) = queue.pop() {
            let free_at =
                |at: u64| free + believed_ends.iter().filter(|(end, _)| *end <= at).map(|(_, gpus)| gpus).sum::<u64>();
            let shadow =
                believed_ends.iter().map(|(end, _)| *end).filter(|end| free_at(*end) >= jobs[first].gpus).min();
            let shadow = shadow.expect("every job fits into an empty cluster");
            let mut extra = free_at(shadow) - jobs[first].gpus;
            for other in queue.into_iter().rev() {
                let in_time = now + jobs[other].estimate <= shadow;
                if jobs[other].gpus <= free && (in_time || jobs[other].gpus <= extra) {
                    free -= jobs[other].gpus;
                    extra -= if in_time { 0 } else { jobs[other].gpus };
                    starts[other] = Some(now);
                }
            }
        }
        let ends = (0..jobs.len()).filter_map(|i| Some(starts[i]? + jobs[i].duration));
        let arrivals = jobs.iter().map(|job| job.submit);
        now = ends.chain(arrivals).filter(|at| *at > now).min().unwrap_or(now);
    }
    starts.into_iter().flatten().collect()
}

/// A cluster of so many GPUs that runs the jobs of a trace. Its folder lives as long as the file is read.
fn cluster(gpus: u64, per_server: u64, scheduler: &str, trace: &str) -> PreparedCluster {
    let folder = Folder::new(&[("t.csv", trace)]);
    let sweep = format!(
        "name = \"easy\"\n[base]\nfidelity.mode = \"job\"\ncluster = {{ gpus = {gpus}, gpus_per_server = {per_server} }}\n\
         topology = {{ kind = \"clos\", hosts_per_leaf = {} }}\njobs = {{ source = \"trace\", path = \"t.csv\" }}\n\
         scheduler = {{ {scheduler} }}\ncheckpoint.policy = \"none\"\n",
        gpus / per_server
    );
    let sweep = Sweep::parse(&sweep, &folder.file("s.toml")).unwrap();
    PreparedCluster::new(&sweep.config(&sweep.experiments[0]).unwrap()).unwrap()
}

/// Starts, in seconds, as the program has them.
fn simulated(gpus: u64, per_server: u64, placement: &str, jobs: &[Asked]) -> Vec<u64> {
    let mut trace = "job,submit_s,gpus,duration_s,estimate_s\n".to_string();
    for (n, job) in jobs.iter().enumerate() {
        writeln!(trace, "{n},{},{},{},{}", job.submit, job.gpus, job.duration, job.estimate).unwrap();
    }
    let scheduler = format!("policy = \"backfill\", placement = \"{placement}\"");
    let outcome = cluster(gpus, per_server, &scheduler, &trace).simulate(&|| false).unwrap();
    outcome.jobs.iter().map(|job| job.start_ms.unwrap() / 1000).collect()
}

/// Numbers below `n`, by lot.
struct Lot(u64);

impl Lot {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[test]
fn jobs_start_when_a_textbook_starts_them() {
    for trace in 0..200 {
        let mut lot = Lot(trace);
        let unit = [1, 1, 4][trace as usize % 3];
        let gpus = unit * (4 + lot.below(13));
        let mut submit = 0;
        let jobs: Vec<Asked> = (0..20 + lot.below(40))
            .map(|_| {
                // Tens of seconds, so that jobs often end at one instant.
                submit += 10 * lot.below(4);
                let most = [gpus / unit, 1 + gpus / unit / 3][lot.below(2) as usize];
                let duration = 10 * (1 + lot.below(30));
                let estimate = match lot.below(4) {
                    0 => duration * (1 + lot.below(5)),
                    1 => 10 * (1 + lot.below(60)),
                    _ => duration,
                };
                Asked { submit, gpus: unit * (1 + lot.below(most)), duration, estimate }
            })
            .collect();
        let expected = easy(gpus, &jobs);
        // Servers of one GPU, however they are chosen; and whole servers of four.
        let layouts: &[(u64, &str)] = if unit == 1 { &[(1, "spread"), (1, "packed")] } else { &[(4, "topology")] };
        for (per_server, placement) in layouts {
            let found = simulated(gpus, *per_server, placement, &jobs);
            let first = (0..jobs.len()).filter(|&i| found[i] != expected[i]).min_by_key(|&i| found[i].min(expected[i]));
            let shown = first.map(|i| format!("job {i}: {:?} starts at {}, not at {}", jobs[i], found[i], expected[i]));
            assert!(first.is_none(), "trace {trace}, {gpus} GPUs, {placement}: {}", shown.unwrap_or_default());
        }
    }
}

#[test]
fn a_reservation_believes_estimates_and_counts_all_that_ends_at_one_instant() {
    let job = |submit, gpus, duration, estimate| Asked { submit, gpus, duration, estimate };
    // The first ends nine times as early as it says. So the second waits until then, for all that anybody knows, and the third has ended before.
    let estimates = [job(0, 1, 1000, 10_000), job(1, 2, 1000, 1000), job(2, 1, 5000, 5000)];
    assert_eq!(simulated(2, 1, "spread", &estimates), [0, 5002, 2]);
    // The first two end together and leave four GPUs. The third takes three of them, and the fourth the one that is left over.
    let ties = [job(0, 2, 1000, 1000), job(0, 1, 1000, 1000), job(1, 3, 1000, 1000), job(2, 1, 5000, 5000)];
    assert_eq!(simulated(4, 1, "spread", &ties), [0, 0, 1000, 2]);
}

/// A trace with a long look at the queue. One job waits for all servers, of which one is in use. Those behind it would each fit, and last too long.
fn long_look(servers: u64, waiting: usize) -> String {
    let mut trace = format!("job,submit_s,gpus,duration_s\nruns,0,1,100000\nwaits,1,{servers},100\n");
    (0..waiting).for_each(|n| writeln!(trace, "{n},2,1,200000").unwrap());
    trace
}

#[test]
fn a_long_look_at_the_queue_asks_whether_to_stop() {
    let waiting = 20_000;
    let trace = long_look(512, waiting);
    let prepared = cluster(512, 1, "policy = \"backfill\", placement = \"packed\", depth = 1000000", &trace);
    // Arrivals ask, too; the look at the queue is whatever comes beyond.
    let asked = AtomicUsize::new(0);
    let most = 2 * waiting / 20;
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= most;
    assert!(matches!(prepared.simulate(&stop), Err(ClusterError::Interrupted)));
    assert_eq!(asked.load(Ordering::Relaxed), most + 1, "nobody is asked after a yes");
}

#[test]
fn a_stop_within_a_long_look_takes_less_than_three_seconds() {
    let trace = long_look(2048, 100_000);
    let prepared = cluster(2048, 1, "policy = \"backfill\", placement = \"packed\", depth = 1000000", &trace);
    let (flag, started) = (AtomicBool::new(false), Instant::now());
    let took = std::thread::scope(|scope| {
        let stopped = || matches!(prepared.simulate(&|| flag.load(Ordering::Relaxed)), Err(ClusterError::Interrupted));
        let run = scope.spawn(stopped);
        std::thread::sleep(Duration::from_millis(500));
        assert!(!run.is_finished(), "the look is long: {:?}", started.elapsed());
        flag.store(true, Ordering::Relaxed);
        let asked = Instant::now();
        assert!(run.join().unwrap());
        asked.elapsed()
    });
    assert!(took < Duration::from_secs(3), "{took:?}");
}
