//! Traffic classes, as a user sees them.

use crate::support::program::Folder;

/// Time in ns that `packets` full packets of 4,096 bytes take on a link of 100 Gb/s.
fn packets_ns(packets: f64) -> f64 {
    packets * 4144.0 * 8.0 / 100.0
}

/// Runs the flows of a file on two leaves with `hosts` hosts each and one spine, links of 100 Gb/s. Returns the folder and what the program said.
fn run_flows(hosts: u32, flows: &[&str], more: &str) -> (Folder, String) {
    let list = format!("{}\n{}\n", flows.len(), flows.join("\n"));
    let gpus = 2 * hosts;
    let sweep = format!(
        "name = \"classes\"\n[base]\ncluster = {{ gpus = {gpus}, gpus_per_server = 1 }}\n\
         topology.kind = \"clos\"\ntopology.hosts_per_leaf = {hosts}\ntopology.spines = 1\n\
         topology.link_gbps = 100\ntopology.link_delay_ns = 500\n\
         workload = {{ kind = \"flows\", path = \"flows.txt\", start_unit = \"ns\" }}\n\
         transport.cc = \"none\"\ntransport.payload_bytes = 4096\noutput.flows = true\n{more}"
    );
    let folder = Folder::new(&[("flows.txt", &list), ("sweep.toml", &sweep)]);
    let ran = folder.run(&["run", "sweep.toml", "--out", "out", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (folder, ran.stderr)
}

/// Two hosts send 1,000 packets each to a third one, at its leaf. The first flow is of class 0, the second of class 1.
const TWO_TO_ONE: [&str; 2] = ["0 2 0 100 4096000 0", "1 2 1 100 4096000 0"];

#[test]
fn a_higher_priority_takes_all_and_weights_share() {
    let axis = "[axes]\n\"transport.classes\" = [[\"a priority 1\", \"b\"], [\"a weight 3\", \"b\"], [\"a\", \"b\"], [\"a\", \"b priority 1\"]]\n";
    let (folder, _) = run_flows(3, &TWO_TO_ONE, axis);
    let times = folder.numbers("flows", "fct_ns");
    // The first of the two has sent 1,000 packets when all of these have left the port: of both, or of both until then.
    let expected = [[1000.0, 2000.0], [1333.0, 2000.0], [2000.0, 2000.0], [2000.0, 1000.0]];
    for (found, wanted) in times.chunks(2).zip(expected) {
        for (time, packets) in found.iter().zip(wanted) {
            let packets_late = (time - packets_ns(packets)) / packets_ns(1.0);
            assert!(
                (0.0..10.0).contains(&packets_late),
                "{time} ns is {packets_late} packets after {packets}: {times:?}"
            );
        }
    }
}

#[test]
fn a_pause_of_one_class_does_not_stop_another() {
    // Three hosts send to one host behind the uplink, which is paused. A fourth sends to another host over the same uplink.
    let flows = |class: u32| {
        let victim = format!("3 5 {class} 100 400000 200000");
        let bulk = ["0 4 1 100 8000000 0", "1 4 1 100 8000000 0", "2 4 1 100 8000000 0"];
        bulk.into_iter().map(String::from).chain([victim]).collect::<Vec<_>>()
    };
    let run = |flows: Vec<String>, more: &str| {
        let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
        let more = format!("topology.uplink_gbps = 400\ntopology.buffer_mib = 2\n{more}");
        let (folder, _) = run_flows(4, &flows, &more);
        let victim = folder.numbers("flows", "fct_ns")[3];
        (victim, folder.numbers("results", "pfc_pauses")[0], folder.numbers("results", "drops")[0])
    };
    let (alone, ..) = run(vec!["3 5 0 100 400000 200000".into(); 4], "");
    let (shared, pauses, _) = run(flows(1), "");
    let (apart, class_pauses, _) = run(flows(0), "transport.classes = [\"small\", \"bulk\"]\n");
    assert!(pauses > 0.0 && class_pauses > 0.0);
    assert!(shared > 3.0 * apart, "shared {shared}, apart {apart}, four of them {alone}");
    let ideal = packets_ns(98.0) + 4_000.0;
    assert!(apart < 1.3 * ideal, "apart {apart}, ideal {ideal}");
    // A lossy class loses packets, and the lossless one beside it none.
    let lossy = "transport.classes = [\"small\", \"bulk lossy\"]\n";
    let (beside, no_pauses, drops) = run(flows(0), lossy);
    assert!(no_pauses == 0.0 && drops > 0.0 && beside < 1.3 * ideal, "{beside} {no_pauses} {drops}");
}

#[test]
fn a_class_without_packets_is_noted_and_a_number_beyond_the_last_class_is_refused() {
    let (_, said) = run_flows(3, &TWO_TO_ONE, "transport.classes = [\"a\", \"b\", \"c\"]\n");
    assert!(said.contains("nothing is sent in these classes of transport.classes: c;"), "{said}");
    assert!(said.contains("each still takes headroom and reserves from the buffers of switches"), "{said}");
    let (_, said) = run_flows(3, &TWO_TO_ONE, "transport.classes = [\"a for dp\", \"b\"]\n");
    assert!(said.contains("`for` in transport.classes has no effect here"), "{said}");
    let sweep = "name = \"beyond\"\n[base]\ncluster = { gpus = 2, gpus_per_server = 1 }\n\
         workload = { kind = \"flows\", path = \"flows.txt\", start_unit = \"ns\" }\ntransport.classes = \"a,b\"\n";
    let folder = Folder::new(&[("flows.txt", "1\n0 1 5 100 4096 0\n"), ("sweep.toml", sweep)]);
    let ran = folder.run(&["run", "sweep.toml", "--out", "out", "--engine", "cpu"]);
    assert_ne!(ran.code, 0);
    let said = ran.stderr + &ran.stdout;
    assert!(said.contains("flow 0 has priority 5: transport.classes has classes 0 to 1"), "{said}");
}

#[test]
fn classes_of_dimensions_have_the_same_bytes_on_any_number_of_threads_and_with_folding() {
    let sweep = "name = \"dimensions\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\n\
         topology = { kind = \"clos\", hosts_per_leaf = 4, spines = 1, link_gbps = 100 }\ntransport.cc = \"dcqcn\"\n\
         output.flows = true\n[base.workload]\nkind = \"model\"\npp = 2\ndp = 4\nglobal_batch = 16\noverlap_grad = true\n\
         model = { name = \"tiny\", transformer = { layers = 8, hidden = 256, heads = 8, vocab = 512, seq = 128 } }\n\
         [axes]\n\"transport.classes\" = [\"\", [\"first priority 1 for pp\", \"rest\"], [\"first priority 1 for dp\", \"rest\"]]\n";
    let folder = Folder::new(&[("sweep.toml", sweep)]);
    let mut bytes = Vec::new();
    for (out, more) in [
        ("one", vec!["--jobs", "1"]),
        ("two", vec!["--jobs", "2"]),
        ("off", vec!["--set", "fidelity.fast_forward=\"off\""]),
    ] {
        let mut arguments = vec!["run", "sweep.toml", "--out", out, "--engine", "cpu", "--quiet"];
        arguments.extend(more);
        let ran = folder.run(&arguments);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        bytes.push(folder.bytes(&format!("{out}/flows.csv")));
    }
    assert_eq!(bytes[0], bytes[1]);
    let with_classes = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).expect("it is text");
        text.lines().filter(|line| !line.starts_with("0,")).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(with_classes(&bytes[0]), with_classes(&bytes[2]), "experiments with classes are simulated whole");
}
