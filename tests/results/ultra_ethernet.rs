//! Ultra Ethernet as a user sees it: times beside htsim's, what is trimmed, and keys that do not go together.

use crate::support::program::Folder;

/// The mean of a column of `results.csv` over three replicas of each configuration.
fn means(folder: &Folder, column: &str) -> Vec<f64> {
    folder.numbers("results", column).chunks(3).map(|replicas| replicas.iter().sum::<f64>() / 3.0).collect()
}

/// Whether `found_ns` lies within five percent of what htsim's seeds gave, in us.
fn is_as_htsim(found_ns: f64, range_us: [f64; 2]) -> bool {
    (0.95 * range_us[0]..1.05 * range_us[1]).contains(&(found_ns / 1e3))
}

/// htsim (spcl/HTSIM, commit 8a33f33e, seeds 13 to 22): `htsim_uec -sender_cc_only -sender_cc_algo nscc` on 128 hosts of three tiers at 400 Gb/s. Ranges of the mean
/// and of the slowest flow over ten seeds; of mixed entropies over one, 13.
#[test]
fn a_permutation_takes_as_long_as_under_htsim() {
    let (folder, said, code) = Folder::with_run(
        "name = \"permutation\"\n[base]\ncluster = { gpus = 128, gpus_per_server = 1 }\n\
         topology = { kind = \"fat-tree\", k = 8, link_gbps = 400, link_delay_ns = 500 }\n\
         workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 2000000 }\ntransport.cc = \"nscc\"\n\
         [axes]\n\"routing.policy\" = [\"entropy\", \"reps\", \"mixed\"]\n[sweep]\nreplicas = 3\n",
    );
    assert_eq!(code, 0, "{said}");
    let (mean, slowest) = (means(&folder, "fct_mean_ns"), means(&folder, "fct_max_ns"));
    assert!(
        is_as_htsim(mean[0], [52.994, 54.079]) && is_as_htsim(slowest[0], [56.709, 62.234]),
        "{mean:?} {slowest:?}"
    );
    assert!(
        is_as_htsim(mean[1], [52.820, 53.685]) && is_as_htsim(slowest[1], [56.451, 60.080]),
        "{mean:?} {slowest:?}"
    );
    assert!(is_as_htsim(mean[2], [51.128; 2]) && is_as_htsim(slowest[2], [54.672; 2]), "{mean:?} {slowest:?}");
    let trimmed = means(&folder, "drops");
    assert_eq!(trimmed, means(&folder, "retransmissions"), "what is trimmed is sent again, and nothing else");
    assert!(
        trimmed[0] > trimmed[1] && trimmed[1] > 0.0 && trimmed[2] == 0.0,
        "{trimmed:?}, and htsim trims none of mixed"
    );
    // A queue holds one bandwidth-delay product: 79 packets in 6.5 us.
    let queues = means(&folder, "max_queue_bytes");
    assert!(queues[..2].iter().all(|&bytes| bytes == 328_640.0) && queues[2] < 328_640.0, "{queues:?}");
}

/// Senders learn of a slow or dead link from marks, trimmed packets and timeouts: with mixed entropies its flows are the least late.
#[test]
fn mixed_entropies_avoid_a_bad_link() {
    let (folder, said, code) = Folder::with_run(
        "name = \"bad\"\n[base]\ncluster = { gpus = 32, gpus_per_server = 1 }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 8, spines = 8, link_gbps = 400, link_delay_ns = 500 }\n\
         workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 2000000 }\ntransport.cc = \"nscc\"\n\
         [axes]\n\"topology.outages\" = [\"leaf0 spine0 rate 25%\", \"leaf0 spine0 down 5us\"]\n\
         \"routing.policy\" = [\"entropy\", \"reps\", \"mixed\"]\n[sweep]\nreplicas = 3\n",
    );
    assert_eq!(code, 0, "{said}");
    let slowest = means(&folder, "fct_max_ns");
    for link in slowest.chunks(3) {
        assert!(link[2] < 0.95 * link[1] && link[1] < link[0], "{slowest:?}");
    }
}

/// The same of eight senders on two tiers, and of 32 senders on three tiers without trimming (seed 13 alone).
#[test]
fn an_incast_takes_as_long_as_under_htsim() {
    let (folder, said, code) = Folder::with_run(
        "name = \"incast\"\n[base]\ncluster.gpus_per_server = 1\n\
         topology = { link_gbps = 400, link_delay_ns = 500 }\ntransport.cc = \"nscc\"\nrouting.policy = \"entropy\"\n\
         [sweep]\nmethod = \"list\"\nreplicas = 3\n\
         [[experiment]]\ncluster.gpus = 32\ntopology = { kind = \"clos\", hosts_per_leaf = 8, spines = 8 }\n\
         workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 8, bytes = 500000 }\n\
         [[experiment]]\ncluster.gpus = 128\ntopology = { kind = \"fat-tree\", k = 8 }\ntransport.trimming = false\n\
         workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 32, bytes = 500000 }\n",
    );
    assert_eq!(code, 0, "{said}");
    let (mean, slowest) = (means(&folder, "fct_mean_ns"), means(&folder, "fct_max_ns"));
    assert!(
        is_as_htsim(mean[0], [70.883, 76.204]) && is_as_htsim(slowest[0], [84.184, 90.617]),
        "{mean:?} {slowest:?}"
    );
    assert!(is_as_htsim(mean[1], [419.685; 2]) && is_as_htsim(slowest[1], [477.279; 2]), "{mean:?} {slowest:?}");
}

/// Receiver credit beside htsim (the same commit, seed 13, `-receiver_cc_only`): an incast of eight senders on two tiers, and a permutation of 128 hosts on three.
#[test]
fn receiver_credit_takes_as_long_as_under_htsim() {
    let (folder, said, code) = Folder::with_run(
        "name = \"credit\"\n[base]\ncluster.gpus_per_server = 1\n\
         topology = { link_gbps = 400, link_delay_ns = 500 }\ntransport.cc = \"rccc\"\nrouting.policy = \"entropy\"\n\
         [sweep]\nmethod = \"list\"\nreplicas = 3\n\
         [[experiment]]\ncluster.gpus = 32\ntopology = { kind = \"clos\", hosts_per_leaf = 8, spines = 8 }\n\
         workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 8, bytes = 500000 }\n\
         [[experiment]]\ncluster.gpus = 128\ntopology = { kind = \"fat-tree\", k = 8 }\n\
         workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 2000000 }\n",
    );
    assert_eq!(code, 0, "{said}");
    let (mean, slowest) = (means(&folder, "fct_mean_ns"), means(&folder, "fct_max_ns"));
    assert!(is_as_htsim(mean[0], [81.832; 2]) && is_as_htsim(slowest[0], [84.759; 2]), "{mean:?} {slowest:?}");
    assert!(is_as_htsim(mean[1], [54.254; 2]) && is_as_htsim(slowest[1], [59.476; 2]), "{mean:?} {slowest:?}");
}

/// A long flow gets the share of its receiver's link that `transport.credit.rate` says, and senders to one receiver share it alike. What is left of a burst's
/// credit beyond a round trip comes on top.
#[test]
fn a_receiver_gives_credit_at_its_rate() {
    let (folder, said, code) = Folder::with_run(
        "name = \"rates\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 8, spines = 1, link_gbps = 100, link_delay_ns = 500 }\n\
         workload = { kind = \"traffic\", pattern = \"incast\", bytes = 10000000 }\n\
         transport = { cc = \"rccc\", credit = { burst_packets = 2, window_packets = 40 } }\noutput.flows = true\n\
         [axes]\n\"workload.fan_in\" = [1, 4]\n\"transport.credit.rate\" = [0.99, 0.5]\n",
    );
    assert_eq!(code, 0, "{said}");
    let slowest = folder.numbers("results", "fct_max_ns");
    let mean = folder.numbers("results", "fct_mean_ns");
    let ideal_ns = 10_000_000.0 * 8.0 / 100.0 * 4_160.0 / 4_096.0;
    for (k, (senders, rate)) in [(1.0, 0.99), (1.0, 0.5), (4.0, 0.99), (4.0, 0.5)].into_iter().enumerate() {
        let expected_ns = senders * ideal_ns / rate;
        assert!((slowest[k] / expected_ns - 1.0).abs() < 0.01, "{senders} at {rate}: {} of {expected_ns}", slowest[k]);
        assert!((mean[k] / slowest[k] - 1.0).abs() < 0.01, "{senders} at {rate}: {} of {}", mean[k], slowest[k]);
    }
    assert!(
        folder.numbers("results", "drops").iter().all(|&drops| drops == 0.0),
        "bursts of two packets fit every queue"
    );
}

/// Messages of which many end with a short packet: each trimmed packet is sent again, and no other.
#[test]
fn what_is_trimmed_of_messages_is_sent_again() {
    let (folder, said, code) = Folder::with_run(
        "name = \"again\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 4, spines = 2, link_gbps = 400, link_delay_ns = 500 }\n\
         workload = { kind = \"collective\", op = \"all-to-all\", bytes = 8000000 }\n\
         [axes]\n\"transport.cc\" = [\"nscc\", \"rccc\"]\n",
    );
    assert_eq!(code, 0, "{said}");
    let drops = folder.numbers("results", "drops");
    assert_eq!(folder.numbers("results", "retransmissions"), drops);
    assert!(drops.iter().all(|&n| n > 100.0), "{drops:?}");
}

/// Credit that is given in vain is told before anybody waits for it. A shared buffer has no short timeout.
#[test]
fn credit_that_is_lost_is_told() {
    let run = |keys: &str| {
        let (folder, said, code) = Folder::with_run(&format!(
            "name = \"told\"\n[base]\ncluster = {{ gpus = 16, gpus_per_server = 1 }}\n\
             topology = {{ kind = \"clos\", hosts_per_leaf = 8, spines = 8, link_gbps = 400, link_delay_ns = 500 }}\n\
             workload = {{ kind = \"traffic\", pattern = \"incast\", fan_in = 8, bytes = 500000 }}\n\
             routing.policy = \"entropy\"\n{keys}\n"
        ));
        assert_eq!(code, 0, "{keys}: {said}");
        (said, folder.numbers("results", "retransmissions")[0], folder.numbers("results", "drops")[0])
    };
    let (said, ..) = run("transport = { cc = \"rccc\" }");
    assert!(!said.contains("credit"), "{said}");
    let (said, ..) = run("transport = { cc = \"rccc\", credit.grant_packets = 200 }");
    assert!(said.contains("is more than the smallest queue of a port holds, 53:"), "{said}");
    let (said, ..) = run("transport = { cc = \"rccc\", credit = { grant_packets = 9, window_packets = 8 } }");
    assert!(said.contains("a sender keeps (transport.credit.window_packets), 8:"), "{said}");
    for cc in ["nscc", "rccc"] {
        let (said, again, drops) = run(&format!("transport = {{ cc = \"{cc}\", port_queue = false }}"));
        assert_eq!((again, drops), (0.0, 0.0), "{cc}: {said}");
    }
}

#[test]
fn keys_that_do_not_go_together_are_refused_with_those_that_do() {
    for (keys, wanted) in [
        ("transport = { cc = \"nscc\", loss_recovery = \"selective\" }", "go with \"uec\" only"),
        (
            "transport = { cc = \"swift\", loss_recovery = \"uec\" }",
            "goes with transport.cc = \"nscc\" and \"rccc\" only",
        ),
        ("transport = { cc = \"rccc\", receiver_credit = false }", "true, or another transport.cc"),
        (
            "transport.cc = \"rccc\"\n[axes]\n\"topology.outages\" = [[\"random 1 down 5us\"]]",
            "a link that is down from the start",
        ),
        ("transport = { cc = \"nscc\", pfc = true }", "no shared buffer that could pause"),
        ("transport = { cc = \"dcqcn\", port_queue = true, trimming = true }", "write transport.trimming = false"),
        ("transport.cc = \"swift\"\nrouting.policy = \"reps\"", "other policies go with any"),
        ("transport.cc = \"swift\"\nrouting.policy = \"mixed\"", "other policies go with any"),
        ("transport.cc = \"rccc\"\nrouting = { policy = \"mixed\", max_paths = 300 }", "at most 256 entropies"),
        ("transport.cc = \"nscc\"\nrouting = { policy = \"reps\", max_paths = 300 }", "at most 256 entropies"),
    ] {
        let (_, said, code) = Folder::with_run(&format!(
            "name = \"wrong\"\n[base]\ncluster = {{ gpus = 16, gpus_per_server = 1 }}\n\
             topology = {{ kind = \"fat-tree\", k = 4 }}\n\
             workload = {{ kind = \"traffic\", pattern = \"permutation\" }}\n{keys}\n"
        ));
        assert!(code != 0 && said.contains(wanted), "{keys}: {code} {said}");
    }
}

/// An axis of policies, of which one contradicts the congestion control: that experiment fails, and the others end.
#[test]
fn a_policy_that_contradicts_another_key_fails_alone() {
    let (folder, said, code) = Folder::with_run(
        "name = \"mixed\"\n[base]\ncluster = { gpus = 16, gpus_per_server = 1 }\n\
         topology = { kind = \"fat-tree\", k = 4 }\n\
         workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 50000 }\n\
         [axes]\n\"transport.cc\" = [\"dcqcn\", \"nscc\"]\n\"routing.policy\" = [\"ecmp\", \"reps\"]\n",
    );
    assert_eq!(code, 1, "{said}");
    assert_eq!(folder.column("out/results.csv", "status"), ["ok", "failed", "ok", "ok"], "{said}");
    assert!(said.contains("needs ACKs that carry entropies"), "{said}");
}
